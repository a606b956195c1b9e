"""Kernels as a compiler writes them, at several levels and wave sizes, against NumPy (objects/README.md)."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.strength import seed
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.base import Dim3
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort

OBJECTS = Path(__file__).parent / "objects"
Array = npt.NDArray[Any]


class Bench:
  """One GPU and one code object."""

  def __init__(self, binary: bytes) -> None:
    self.gpu, self.binary = AMDRuntime(MockPort(Machine("gfx1100")), timeout_s=20), binary

  def run(self, kernel: str, grid: Dim3, block: Dim3, arrays: list[Array], values: list[int | float]) -> Array:
    """Launch with arrays, then values; returns the first array afterwards."""
    gpu = self.gpu
    buffers = [gpu.alloc(a.nbytes) for a in arrays]
    for b, a in zip(buffers, arrays): gpu.copyin(b, memoryview(a).cast("B"))
    gpu.load(self.binary, kernel)(buffers, values, grid, block)
    out = np.empty_like(arrays[0])
    gpu.copyout(memoryview(out).cast("B"), buffers[0])
    for b in buffers: gpu.free(b)
    return out


@pytest.fixture(scope="module", params=("wave32_O0.co", "wave64_O2.co", "wave32_O2_cu.o"))
def bench(request: pytest.FixtureRequest) -> Bench: return Bench((OBJECTS / request.param).read_bytes())


def test_recursion_on_a_stack_of_unknown_size(bench: Bench) -> None:
  want = [0, 1]
  while len(want) < 8: want.append(want[-1] + want[-2])
  assert bench.run("fibs", (1, 1, 1), (8, 1, 1), [np.zeros(8, np.uint32)], []).tolist() == want


def test_ids_in_three_dimensions(bench: Bench) -> None:
  got = bench.run("ids", (3, 2, 2), (4, 3, 2), [np.zeros(288, np.uint32)], [288]).reshape(4, 6, 12)
  z, y, x = np.indices((4, 6, 12))
  assert np.array_equal(got, x | y << 8 | z << 16)


def test_an_array_in_private_memory(bench: Bench) -> None:
  data = np.random.default_rng(seed(0)).random((32, 17), dtype=np.float32)
  assert np.array_equal(bench.run("sort", (1, 1, 1), (32, 1, 1), [data], [17]), np.sort(data, 1))


def test_doubles_and_a_grid_that_is_larger_than_the_data(bench: Bench) -> None:
  rng = np.random.default_rng(seed(0))
  x, y = rng.random(1000), rng.random(1000)
  assert np.allclose(bench.run("saxpy", (16, 1, 1), (64, 1, 1), [y, x], [2.5, 1000]), y + 2.5 * x, rtol=1e-15, atol=0)


def test_atomics_of_many_lanes_on_few_addresses(bench: Bench) -> None:
  data = np.random.default_rng(seed(0)).integers(0, 1 << 30, 1000).astype(np.uint32)
  got = bench.run("hist", (16, 1, 1), (64, 1, 1), [np.zeros(16, np.uint32), data], [1000])
  assert np.array_equal(got, np.bincount(data & 15, minlength=16))
