"""The kernels that `tinyhw bench` makes: as long as they claim, new for each seed, the same on both engines."""
from __future__ import annotations

import numpy as np
import pytest

import tinyhw
from tinyhw.cli import ptx
from tinyhw.cli.cold import code
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
