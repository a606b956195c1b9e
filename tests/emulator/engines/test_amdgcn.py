"""The engines around compiled code: forms that are exchanged while waves run, code that is kept on disk."""
from __future__ import annotations

import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import ARCH, Gpu
from tests.emulator.jit.amdgcn.test_jit import (
  CODE,
  END,
  EXEC,
  OUT,
  descriptor,
  encode,
  inputs,
  outcome,
  program,
  prologue,
  store,
)
from tinyhw.core.errors import Error, InvalidArgument, PageFault, WatchdogExpired
from tinyhw.core.kept import Kept
from tinyhw.core.store import Store, store_in
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.amdgcn.launch import _PROGRAMS
from tinyhw.emulator.engines import amdgcn as engines
from tinyhw.emulator.engines.amdgcn import dispatch as choose
from tinyhw.emulator.engines.both import EnginesDiffer
from tinyhw.emulator.jit import native, servers
from tinyhw.emulator.jit import store as disk
from tinyhw.emulator.jit.amdgcn import forms, run, threads, translate
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.emulator.jit.amdgcn.translate import Translator
from tinyhw.emulator.jit.values import LLVMOps

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
  forget(monkeypatch)
  yield tmp_path / "emulator"
  store_in.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
  """This process has nothing that it has compiled: neither programs nor, with who compiles, their texts."""
  monkeypatch.setattr(forms, "_MEMORY", Kept(256))
  for server in servers._SERVERS: monkeypatch.setattr(server, "known", Kept(256))


@pytest.mark.parametrize("seed", range(3))
def test_hot_code_does_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(run, "HOT", 0)
  code, data = sample(seed), inputs(random.Random(seed))
  expected, found = (outcome(engine, code, data, descriptor(32, 27)) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions


@pytest.mark.parametrize("seed", range(4))
def test_modules_make_one_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Waves go from one function to another and back."""
  monkeypatch.setattr(translate, "LINES_A_FUNCTION", 50)
  monkeypatch.setattr(translate, "MODULE", 1000)
  monkeypatch.setenv(threads.VARIABLE, "5")
  made: list[int] = []
  objects = servers.Job.objects
  def watched(self: servers.Job) -> list[bytes]:
    found = objects(self)
    made.append(len(found))
    return found
  monkeypatch.setattr(servers.Job, "objects", watched)
  forget(monkeypatch)
  code, data = sample(seed), inputs(random.Random(seed))
  expected, found = (outcome(engine, code, data, descriptor(32, 27)) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions
  assert len(made) == 1 and made[0] > 5


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
  assert len(list(folder.glob("*.tinyhw"))) == 1
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
  path, = folder.glob("*.tinyhw")
  kept = path.read_bytes()
  if damage == "truncated": path.write_bytes(kept[:-7])
  elif damage == "flipped": path.write_bytes(kept[:900] + bytes([kept[900] ^ 1]) + kept[901:])
  elif damage == "empty": path.write_bytes(b"")
  elif damage == "foreign": path.write_bytes(b"something else " * 100)
  elif damage == "header": Store(folder).save(path.stem, {"hot": True}, b"no object")
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
  assert results == [1, 2] and len(list(folder.glob("*.tinyhw"))) == 1


def test_a_full_disk_does_not_stop_a_dispatch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  def full(*_: Any, **__: Any) -> Any: raise OSError(28, "No space left on device")
  assert disk.store().folder == folder
  monkeypatch.setattr("os.replace", full)
  assert outcome(compiled, sample(1), inputs(random.Random(1)), descriptor())[1].engine == "jit"
  assert list(folder.glob("*.tinyhw")) == []


def test_an_object_that_does_not_link_is_an_error() -> None:
  with pytest.raises(Error): native.Native([b"no object"])


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


# ---- threads

def wide(lanes: int = 32, grid: int = 160, block: int = 256) -> Dispatch: return replace(
  descriptor(lanes), grid=(grid, 1, 1), block=(block, 1, 1))


def spread(monkeypatch: pytest.MonkeyPatch, n: int = 3) -> list[int]:
  """Every launch that may use threads does; the list gets an element for each turn that a thread gives."""
  turns: list[int] = []
  monkeypatch.setenv(threads.VARIABLE, str(n))
  monkeypatch.setattr(threads, "WORTH", 0)
  monkeypatch.setattr(threads, "_pool", None)
  submit = ThreadPoolExecutor.submit

  def watched(self: Any, *args: Any) -> Any:
    turns.append(1)
    return submit(self, *args)
  monkeypatch.setattr(ThreadPoolExecutor, "submit", watched)
  return turns


# v1 = 4 * (256 * workgroup + work-item): where each work-item has a dword of its own
PLACE = encode("s_lshl_b32", src0=4, src1=128 + 10, sdst=20) + encode("v_lshlrev_b32", "e32", src0=130, src1=0, vdst=1)
PLACE += encode("v_add_nc_u32", "e32", src0=20, src1=1, vdst=1)
PUT = encode("global_store_b32", "saddr", vdata=2, vaddr=1, saddr=0, offset=0)


def test_threads_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
  turns = spread(monkeypatch)
  code = PLACE + encode("s_mov_b32", src0=255, sdst=21, literal=500)
  loop = encode("v_mul_u32_u24", "e32", src0=133, src1=1, vdst=2) + encode("v_xor_b32", "e32", src0=4, src1=2, vdst=2)
  loop += encode("s_sub_u32", src0=21, src1=129, sdst=21) + encode("s_cmp_lg_u32", src0=21, src1=128)
  code += loop + encode("s_cbranch_scc1", simm16=-(len(loop) // 4 + 1) & 0xFFFF) + PUT
  one, several = (outcome(engine, code, b"", wide()) for engine in (dispatch, compiled))
  assert len(turns) == 4 and one[1].waves == several[1].waves == 1280
  assert np.array_equal(one[0], several[0]) and one[1].instructions == several[1].instructions


def test_a_program_that_was_worth_threads_has_them_from_its_first_workgroup_on(monkeypatch: pytest.MonkeyPatch) -> None:
  """More and smaller cohorts than at first, in whichever engine compiles."""
  turns = spread(monkeypatch)
  gpu = Gpu(1 << 21)
  gpu.space.write(CODE, PLACE + encode("v_mov_b32", "e32", src0=4, vdst=2) + PUT + END)
  given = []
  for engine in ("jit", "jit", "auto"):
    turns.clear()
    gpu.space.view(OUT, 4 * 160 * 256)[:] = 0
    _PROGRAMS.get(gpu.space, ARCH, CODE).spent = 1e9  # which `auto` compiles at once
    stats = choose(gpu.space, ARCH, wide(), engine=engine)
    assert stats.engine == "jit" and stats.waves == 1280
    assert np.array_equal(gpu.get(OUT, np.uint32, 160 * 256), np.arange(160 * 256) // 256)
    given.append(len(turns))
  assert given == [4, 13, 13]


def test_what_compilers_end_kernels_with_may_run_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
  """s_sendmsg MSG_DEALLOC_VGPRS is at the end of nearly every kernel; another message is not for threads."""
  turns = spread(monkeypatch)
  for message, given in ((3, 4), (1, 4)):
    code = PLACE + encode("v_mov_b32", "e32", src0=4, vdst=2) + PUT + encode("s_sendmsg", simm16=message)
    d = replace(wide(), interrupt=lambda what: None)
    expected, found = (outcome(engine, code, b"", d) for engine in (dispatch, compiled))
    assert np.array_equal(expected[0], found[0]) and len(turns) == given


@pytest.mark.parametrize("bad", [3, 40, 130, 159])
def test_the_first_fault_wins(bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All workgroups from one on fault; the error is that of the first of them."""
  spread(monkeypatch)
  code = PLACE + encode("s_cmp_ge_u32", src0=4, src1=255, literal=bad)
  code += encode("s_cselect_b32", src0=255, src1=128, sdst=22, literal=1 << 30)
  code += encode("v_add_nc_u32", "e32", src0=22, src1=1, vdst=1) + PUT
  expected, found = (outcome(engine, code, b"", wide()) for engine in (dispatch, compiled))
  assert expected[0] is found[0] is PageFault and found[2][2] == bad * 8
  assert expected[1:] == found[1:]


def test_workgroups_that_count_each_other_run_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
  turns = spread(monkeypatch)
  one = encode("v_mov_b32", "e32", src0=128, vdst=3) + encode("v_mov_b32", "e32", src0=129, vdst=2)
  code = PLACE + one
  code += encode("global_atomic_add_u32", "saddr", vdst=2, vdata=2, vaddr=3, saddr=0, offset=0)
  code += encode("global_store_b32", "saddr", vdata=2, vaddr=1, saddr=0, offset=16)
  expected, found = (outcome(engine, code, b"", wide()) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and not turns


def test_the_watchdog_ends_waves_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
  """From workgroup 40 on a counter runs for ever."""
  turns = spread(monkeypatch)
  loop = encode("s_add_u32", src0=20, src1=129, sdst=20)
  loop += encode("s_branch", simm16=-(len(loop) // 4 + 1) & 0xFFFF)
  code = encode("s_cmp_lt_u32", src0=4, src1=128 + 40) + encode("s_cbranch_scc1", simm16=len(loop) // 4) + loop
  expected, found = (outcome(engine, code, b"", wide(), 5000) for engine in (dispatch, compiled))
  assert expected[0] is found[0] is WatchdogExpired and expected[1:] == found[1:] and turns


def test_a_number_of_threads_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv(threads.VARIABLE, "many")
  with pytest.raises(InvalidArgument, match="TINYHW_THREADS is a number of threads"): threads.count()


# ---- choosing

def auto(*arguments: Any, **more: Any) -> Any: return choose(*arguments, engine="auto", **more)


@pytest.mark.parametrize("cost", [50, 400, 3000])
@pytest.mark.parametrize("seed", range(4))
def test_compiled_code_takes_waves_over(seed: int, cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Interpreted for a while, split by branches, then compiled: registers, memory and counts are the reference's."""
  monkeypatch.setattr(engines, "_LLVM", cost)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(engines, "_BLOCKS_A_LOOK", 1)
  code, data = sample(seed), inputs(random.Random(seed))
  expected, found = (outcome(engine, code, data, descriptor(32, 27)) for engine in (dispatch, auto))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions


@pytest.mark.parametrize("cost", [0, 100, 200, 300, 400])
def test_waves_at_a_barrier_are_taken_over(cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """The waves of a workgroup come to a barrier one after the other, and go on with each other's values from LDS."""
  monkeypatch.setattr(engines, "_LLVM", cost)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(engines, "_BLOCKS_A_LOOK", 1)
  number = encode("v_lshrrev_b32", "e32", src0=133, src1=0, vdst=5) + encode("v_readfirstlane_b32", src0=256 + 5,
                                                                             vdst=20)
  wait = encode("s_sub_u32", src0=20, src1=129, sdst=20) + encode("s_cmp_gt_i32", src0=20, src1=128)
  wait += encode("s_cbranch_scc1", simm16=-(len(wait) // 4 + 1) & 0xFFFF)
  at = encode("v_lshlrev_b32", "e32", src0=130, src1=0, vdst=6)
  code = PLACE + number + wait + at + encode("ds_store_b32", addr=6, data0=1, offset=0)
  code += encode("s_barrier") + encode("v_xor_b32", "e32", src0=255, src1=6, vdst=6, literal=4 * 255)
  code += encode("ds_load_b32", addr=6, vdst=2, offset=0) + PUT
  d = replace(wide(grid=4), lds_size=1024)
  expected, found = (outcome(engine, code, b"", d) for engine in (dispatch, auto))
  assert np.array_equal(expected[0], found[0]) and expected[1].instructions == found[1].instructions
  assert found[1].engine == "jit" and expected[0].any()


def test_a_launch_that_will_be_long_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
  """The first cohort's cost tells that of all."""
  monkeypatch.setattr(engines, "_LLVM", 1000.0)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  few, many = (outcome(auto, PLACE + PUT, b"", wide(grid=n))[1] for n in (32, 160))
  assert (few.engine, many.engine) == ("ref", "jit") and many.instructions == 160 * 8 * 5


def test_the_address_of_data_is_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
  """An address that the program makes may be that of data, which decodes as instructions without an end."""
  forget(monkeypatch)
  monkeypatch.setattr(translate, "LONGEST_RUN", 50)
  code = encode("s_cmp_eq_u32", src0=128, src1=129) + encode("s_getpc_b64", sdst=20)
  body = encode("s_cbranch_scc0", simm16=1) + encode("s_setpc_b64", src0=20)
  body += encode("v_mov_b32", "e32", src0=128, vdst=2) + PLACE + PUT + END
  code += encode("s_add_u32", src0=20, src1=255, sdst=20, literal=len(body) + 8) + body
  code += encode("s_nop", simm16=0) * 60
  expected, found = (outcome(engine, code, b"", descriptor()) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0])
  assert max(f.instructions for f in forms._MEMORY.values()) < 20


@pytest.mark.parametrize("name", ["jit", "auto"])
def test_giants_are_interpreted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(engines, "_LLVM", 0.0)
  monkeypatch.setattr(engines, "_COMPILING", 0.0)
  monkeypatch.setattr(translate, "LARGEST", 100)
  def run_it(*arguments: Any, **more: Any) -> Any: return choose(*arguments, engine=name, **more)
  code = PLACE + encode("s_nop", simm16=0) * 200 + PUT
  expected, found = (outcome(engine, code, b"", descriptor()) for engine in (dispatch, run_it))
  assert np.array_equal(expected[0], found[0]) and found[1].engine == "ref"


# ---- both

def side_by_side(code: bytes, data: bytes = b"", d: Dispatch | None = None) -> Any:
  return outcome(lambda *a, **k: choose(*a, engine="both", **k), code, data, d or descriptor())


@pytest.mark.parametrize("seed", range(4))
def test_both_agree_on_random_programs(seed: int) -> None:
  found = side_by_side(sample(seed), inputs(random.Random(seed)), descriptor(32, 27))
  assert not isinstance(found[0], type) and found[1].engine == "jit", found


def wrong(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
  """Compiled code of an operation of values is off by one."""
  right = getattr(LLVMOps, name)
  monkeypatch.setattr(LLVMOps, name, lambda self, *operands: right(self, *operands) + 1)
  forget(monkeypatch)


def test_both_name_the_first_wrong_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
  """The wrong value is overwritten in the end: what it led to is not, and the error tells where it began."""
  wrong(monkeypatch, "popcount")
  before = encode("v_mov_b32", "e32", src0=255, vdst=5, literal=0xF0F) * 3
  bad = encode("s_mov_b32", src0=255, sdst=20, literal=0x777) + encode("s_bcnt1_i32_b32", src0=20, sdst=21)
  after = encode("v_add_nc_u32", "e32", src0=21, src1=5, vdst=6) + encode("s_mov_b32", src0=128, sdst=21)
  loop = encode("s_sub_u32", src0=22, src1=129, sdst=22) + encode("s_cmp_lg_u32", src0=22, src1=128)
  start = encode("s_mov_b32", src0=128 + 9, sdst=22)
  code = start + loop + encode("s_cbranch_scc1", simm16=-(len(loop) // 4 + 1) & 0xFFFF) + before + bad + after
  kind, text, _ = side_by_side(code)
  assert kind is EnginesDiffer
  assert re.search(r"wave 0 after the dispatch at 0x100000000: v6\[lane 0\]: reference 0x00000f18, compiled 0x00000f19"
                   r"; .*; 24 more; first after instruction 33 of the wave, 's_bcnt1_i32_b32 s21, s20' at 0x[0-9a-f]+: "
                   r"s21: reference 0x00000009, compiled 0x0000000a$", text), text


def test_both_find_what_only_hot_code_does_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(run, "HOT", 0)
  forget(monkeypatch)
  right = Translator._plain

  def broken(self: Translator, i: Any, at: int, mode: int) -> None:
    right(self, i, at, mode)
    if i.mnemonic == "s_bcnt1_i32_b32" and not self.quick: self.r.set_scalar(21, self.r.scalar(21) + 1)
  monkeypatch.setattr(Translator, "_plain", broken)
  code = encode("s_mov_b32", src0=255, sdst=20, literal=0x777) + encode("s_bcnt1_i32_b32", src0=20, sdst=21)
  kind, text, _ = side_by_side(code)
  assert kind is EnginesDiffer and "first after instruction 2 of the wave, 's_bcnt1_i32_b32 s21, s20' at" in text


def test_both_compare_memory(monkeypatch: pytest.MonkeyPatch) -> None:
  wrong(monkeypatch, "popcount")
  code = encode("s_mov_b32", src0=255, sdst=20, literal=0x777) + encode("s_bcnt1_i32_b32", src0=20, sdst=21)
  code += encode("v_mov_b32", "e32", src0=21, vdst=2) + encode("v_mov_b32", "e32", src0=128, vdst=1) + PUT
  code += encode("v_mov_b32", "e32", src0=128, vdst=2) + encode("s_mov_b32", src0=128, sdst=21)
  code += encode("s_cmp_eq_u32", src0=128, src1=129)
  kind, text, _ = side_by_side(code)
  assert kind is EnginesDiffer and "1 dwords differ: 0x100100000: reference 0x00000009, compiled 0x0000000a" in text
