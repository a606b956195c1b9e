"""The engines around compiled code: forms that are exchanged while waves run, code that is kept on disk."""
from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import ARCH, Gpu
from tests.emulator.test_jit import CODE, END, EXEC, OUT, descriptor, encode, inputs, outcome, program, prologue, store
from tinyhw.core.errors import TinyhwError
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.jit import forms, native, run
from tinyhw.emulator.jit import store as disk
from tinyhw.emulator.jit.run import dispatch as compiled

GUARD = encode("s_mov_b64", src0=EXEC, sdst=70)


def sample(seed: int) -> bytes:
  """A random program that leaves its registers in memory."""
  rng = random.Random(seed)
  code = GUARD + prologue(32) + program(rng, 1) + encode("s_mov_b64", src0=70, sdst=EXEC)
  return code + b"".join(store(n) for n in range(12))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
  """A store of this test's own, and nothing in memory."""
  monkeypatch.setenv(disk.VARIABLE, str(tmp_path))
  monkeypatch.setattr(forms, "_MEMORY", {})
  yield tmp_path / "emulator"
  disk._store_at.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None: monkeypatch.setattr(forms, "_MEMORY", {})


@pytest.mark.parametrize("seed", range(3))
def test_hot_code_does_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(run, "HOT", 0)
  code, data = sample(seed), inputs(random.Random(seed))
  expected, found = (outcome(engine, code, data, descriptor(32, 27)) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions


def test_waves_go_on_in_the_hot_form(monkeypatch: pytest.MonkeyPatch) -> None:
  """A loop outlives the first form: the turns after the exchange run the second one."""
  monkeypatch.setattr(run, "HOT", 1)
  monkeypatch.setattr(run, "TURN", 500)
  monkeypatch.setattr(run.BACKGROUND, "add", lambda job: job())
  loop = encode("v_add_nc_u32", "e32", src0=129, src1=1, vdst=1) + encode("s_sub_u32", src0=20, src1=129, sdst=20)
  loop += encode("s_cmp_lg_u32", src0=20, src1=128)
  loop += encode("s_cbranch_scc1", simm16=-(len(loop) // 4 + 1) & 0xFFFF)
  code = prologue(32) + encode("v_mov_b32", "e32", src0=128, vdst=1)
  code += encode("s_mov_b32", src0=255, sdst=20, literal=3000) + loop + store(1)
  taken: list[bool] = []
  exchange = run.Waves._exchange

  def watched(self: Any, form: forms.Form) -> None:
    exchange(self, form)
    taken.append(self.form.hot)
  monkeypatch.setattr(run.Waves, "_exchange", watched)
  expected, found = (outcome(engine, code, b"", descriptor()) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions
  assert taken and all(taken)


def test_code_is_found_on_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  code, data = sample(1), inputs(random.Random(1))
  first = outcome(compiled, code, data, descriptor())
  assert len(list(folder.iterdir())) == 1
  forget(monkeypatch)
  monkeypatch.setattr(forms, "Translator", None)  # whoever would translate fails
  second = outcome(compiled, code, data, descriptor())
  assert np.array_equal(first[0], second[0]) and first[1].instructions == second[1].instructions


def test_a_fault_is_exact_in_code_from_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  code = encode("v_mov_b32", "e32", src0=0, vdst=1) + encode("v_mov_b32", "e32", src0=128, vdst=2)
  code += encode("global_load_b32", "", vdst=4, vaddr=1, offset=8)
  first = outcome(compiled, code, b"", descriptor())
  forget(monkeypatch)
  monkeypatch.setattr(forms, "Translator", None)
  assert outcome(compiled, code, b"", descriptor()) == first == outcome(dispatch, code, b"", descriptor())


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign", "header", "unreadable"])
def test_a_damaged_file_is_ignored(damage: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  code, data = sample(2), inputs(random.Random(2))
  first = outcome(compiled, code, data, descriptor())
  path, = folder.iterdir()
  kept = path.read_bytes()
  if damage == "truncated": path.write_bytes(kept[:-7])
  elif damage == "flipped": path.write_bytes(kept[:900] + bytes([kept[900] ^ 1]) + kept[901:])
  elif damage == "empty": path.write_bytes(b"")
  elif damage == "foreign": path.write_bytes(b"something else " * 100)
  elif damage == "header": disk.Store(folder).save(path.name, {"hot": True}, b"no object")
  else:
    path.unlink()
    path.mkdir()
  forget(monkeypatch)
  second = outcome(compiled, code, data, descriptor())
  assert np.array_equal(first[0], second[0])
  if damage != "unreadable": assert path.read_bytes() == kept  # written anew


def test_other_code_with_the_same_beginning_is_not_mistaken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """The name of a form covers the bytes up to the first s_endpgm; what follows is compared."""
  results = []
  for value in (1, 2):
    skip = encode("s_cmp_eq_u32", src0=128, src1=128) + encode("s_cbranch_scc1", simm16=1) + END
    code = prologue(32) + skip + encode("v_mov_b32", "e32", src0=128 + value, vdst=1) + store(1)
    forget(monkeypatch)
    results.append(outcome(compiled, code, b"", descriptor())[0].max())
  assert results == [1, 2] and len(list(folder.iterdir())) == 1


def test_the_store_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(disk, "LIMIT", 10_000)
  kept = disk.Store(tmp_path)
  for n in range(20):
    kept.save(f"{n:02}", {}, bytes(1000))
    os.utime(tmp_path / f"{n:02}", (n, n))
  assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 11_100
  assert kept.load("19") == ({}, bytes(1000)) and kept.load("00") is None


def test_no_store_where_others_could_plant_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  (tmp_path / "emulator").mkdir()
  (tmp_path / "emulator").chmod(0o777)
  assert disk._store_at(str(tmp_path)).folder is None
  assert disk._store_at("0").folder is None
  (tmp_path / "file").write_text("")
  assert disk._store_at(str(tmp_path / "file")).folder is None


def test_a_full_disk_does_not_stop_a_dispatch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  def full(*_: Any, **__: Any) -> Any: raise OSError(28, "No space left on device")
  monkeypatch.setattr("tempfile.mkstemp", full)
  assert outcome(compiled, sample(1), inputs(random.Random(1)), descriptor())[1].engine == "jit"
  assert list(folder.iterdir()) == []


def test_processes_write_one_file(tmp_path: Path) -> None:
  """Writers of one key at the same time: whoever reads meanwhile finds a whole file."""
  kept, results = disk.Store(tmp_path), []
  children = []
  for n in range(4):
    child = os.fork()
    if not child:
      for _ in range(50): kept.save("key", {"n": n}, bytes([n]) * 5000)
      os._exit(0)
    children.append(child)
  for _ in range(300): results.append(kept.load("key"))
  for child in children: os.waitpid(child, 0)
  for found in filter(None, results): assert found[1] == bytes([found[0]["n"]]) * 5000
  assert any(results) and [p.name for p in tmp_path.iterdir()] == ["key"]


def test_an_object_that_does_not_link_is_an_error() -> None:
  with pytest.raises(TinyhwError): native.Native(b"no object")


def test_changed_code_is_compiled_anew(folder: Path) -> None:
  """The same entry with other instructions, found by their bytes."""
  gpu = Gpu(1 << 21)
  values = []
  for value in (3, 4, 3):
    code = encode("v_mov_b32", "e32", src0=128 + value, vdst=1) + encode("v_mov_b32", "e32", src0=128, vdst=3)
    code += encode("global_store_b32", "saddr", vdata=1, vaddr=3, saddr=0, offset=0)
    gpu.space.write(CODE, code + END)
    compiled(gpu.space, ARCH, descriptor(), watchdog=1000)
    values.append(int(gpu.get(OUT, np.uint32, 1)[0]))
  assert values == [3, 4, 3]
