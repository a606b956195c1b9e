"""LLVM's code for every AMD generation that the emulator decodes: arithmetic, conversions, workgroups, vectors."""
from __future__ import annotations

import numpy as np
import pytest

from tests.compile.families import buffer, check_arithmetic, check_casts, check_large_integers, check_rounded_products
from tests.compile.gpu import run, runner
from tests.compile.test_render_amdgcn import linear
from tests.strength import seeds
from tinyhw.arch import DECODED
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

FAMILIES = ("gfx942", "gfx1201", "gfx1150")             # one processor of each that is not gfx1100's
SCALARS = [d for d in dtypes.all() if d.bits_type is None]
generations = pytest.mark.parametrize("name", DECODED)


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", FAMILIES)
def test_arithmetic(name: str, dtype: DType) -> None:
  check_arithmetic(dtype, runner(AMDGCNRenderer(DECODED[name])), threads=True)


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", FAMILIES)
def test_conversions(name: str, dtype: DType) -> None:
  check_casts(dtype, runner(AMDGCNRenderer(DECODED[name])), threads=True)


@generations
def test_rounded_products(name: str) -> None:
  check_rounded_products(runner(AMDGCNRenderer(DECODED[name])), threads=True)
  check_large_integers(runner(AMDGCNRenderer(DECODED[name])), threads=True)


def turn(dtype: DType, count: int) -> list[UOp]:
  """Each of two workgroups turns its 64 vectors around, through local memory."""
  group, item = UOp.special("gidx0", 2), UOp.special("lidx0", 64)
  shared = UOp(Ops.DEFINE_LOCAL, dtype.ptr(64 * count, AddressSpace.LOCAL), (), "turn")
  row = group * 64 + item
  value = UOp(Ops.LOAD, dtype.vec(count), (buffer(1, dtype, 128 * count).index(row * count),))
  barrier = UOp(Ops.BARRIER, dtypes.void, (shared.index(item * count).store(value),))
  turned = UOp(Ops.LOAD, dtype.vec(count), (shared.index((63 - item) * count), barrier))
  return linear(buffer(0, dtype, 128 * count).index(row * count).store(turned))


@generations
def test_workgroups_with_local_memory(name: str) -> None:
  for dtype, count in ((dtypes.float32, 4), (dtypes.float16, 8), (dtypes.bool, 4)):
    given = np.random.default_rng(1).integers(0, 2, (2, 64, count)).astype(dtype.numpy)
    out = np.zeros_like(given)
    run(AMDGCNRenderer(DECODED[name]), turn(dtype, count), [out, given])
    assert (out == given[:, ::-1]).all()


@pytest.mark.parametrize("seed", seeds(range(200, 202)))
@generations
def test_random_programs(name: str, seed: int) -> None:
  from tests.compile.test_render_random import agree
  agree(seed, True, runner(AMDGCNRenderer(DECODED[name])))
