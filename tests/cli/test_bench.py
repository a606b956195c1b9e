"""The kernels that `tinyhw bench` makes: as long as they claim, new for each seed, the same on both engines."""
from __future__ import annotations

import os

import numpy as np
import pytest

import tinyhw
from tinyhw.cli import arithmetic, overheads, ptx
from tinyhw.cli.cold import code
from tinyhw.core.errors import Error
from tinyhw.isa.amdgcn import table
from tinyhw.wire.codeobject import load


@pytest.mark.parametrize("seed", range(3))
def test_a_cold_kernel_has_about_a_thousand_instructions(seed: int) -> None:
  found = load(code(seed))
  at, count, instructions = found.kernel("mixed").entry_offset, 1, table("gfx11")
  while (i := instructions.decode(found.image, at)).mnemonic != "s_endpgm": at, count = at + i.size, count + 1
  assert 900 < count < 1300


def test_engines_agree_on_a_cold_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
  results = []
  for name in ("ref", "jit"):
    tinyhw.Device.close()
    monkeypatch.setenv("MOCKGPU", "1")
    monkeypatch.setenv("EMU", name)
    x, out = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    results.append(tinyhw.launch(code(7), "mixed", (1,), (256,), [x, out], device="AMD")[1])
  tinyhw.Device.close()
  assert np.array_equal(*results, equal_nan=True) and results[0].any()


def test_the_product_that_is_measured_as_ptx() -> None:
  seconds, instructions = ptx.matmul()
  assert len(seconds) == 15 and instructions > 500_000


def test_engines_agree_on_a_cold_kernel_of_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
  results = []
  for name in ("ref", "jit"):
    monkeypatch.setenv("EMU", name)
    x, out = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    results.append(tinyhw.launch(ptx.mixed(7), "mixed", 1, 256, [x, out], "EMU")[1])
  assert np.array_equal(*results, equal_nan=True) and results[0].any()


def test_arithmetic_is_held_to_numpy_before_it_is_measured() -> None:
  assert len(arithmetic.Work(((3, 2), (2,)), lambda a, b: a + b, lambda a, b: a + b).ours()) == 15
  assert len(arithmetic.Work(((3, 2),), lambda a: a * 2, None).ours()) == 15
  wrong = arithmetic.Work(((3, 2),), lambda a: a * 2, lambda a: a * 3)
  with pytest.raises(Error, match="LLVM: wrong values"): wrong.ours()


@pytest.mark.parametrize("kept", [None, "some/where"])
def test_new_kernels_are_new_and_the_cache_is_there_again(kept: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
  if kept is None: monkeypatch.delenv("CACHEDB", raising=False)
  else: monkeypatch.setenv("CACHEDB", kept)
  seen: list[str | None] = []
  def measured(run: object, runs: int, warm: int) -> list[float]:
    assert callable(run) and run() != run()        # sums of other sizes
    seen.append(os.environ.get("CACHEDB"))
    return [1.0]
  monkeypatch.setattr(arithmetic, "repeat", measured)
  assert arithmetic.new_kernel() == [1.0] and seen == ["0"] and os.environ.get("CACHEDB") == kept


def test_what_is_measured_computes(monkeypatch: pytest.MonkeyPatch) -> None:
  """Copies bring the bytes back, a replayed kernel adds, a network learns: or nothing is measured."""
  monkeypatch.setenv("MOCKGPU", "1")
  def measured(run: object, runs: int, warm: int) -> list[float]:
    assert callable(run)
    for _ in range(3): run()
    return [0.0] * runs
  monkeypatch.setattr(overheads, "repeat", measured)
  assert [len(overheads.copies()), len(overheads.replayed()), len(overheads.training(True))] == [500, 2000, 100]
  monkeypatch.setattr(overheads, "repeat", lambda *_, **__: [])
  with pytest.raises(Error, match="copies: wrong bytes"): overheads.copies()
