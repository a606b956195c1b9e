"""OpenCL C on the driver that this machine has: every operation and conversion, workgroups, vectors."""
from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pytest

from tests.compile.families import (
  Array,
  buffer,
  check_arithmetic,
  check_casts,
  check_constants,
  check_large_integers,
  check_rounded_products,
)
from tests.compile.test_render_amdgcn import linear
from tests.opencl import need_driver
from tinyhw.compile.render.base import block_size, grid_size
from tinyhw.compile.render.opencl import OpenCLRenderer
from tinyhw.core.errors import Unsupported
from tinyhw.drive.cl import CLRuntime
from tinyhw.ir import semantics
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp

SCALARS = [d for d in dtypes.all() if d.bits_type is None]
types = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)


@functools.cache
def device() -> CLRuntime:
  need_driver()
  return CLRuntime()


def renderer() -> OpenCLRenderer:
  found = device()
  return OpenCLRenderer(found.double, found.exact, found.max_block, found.max_local)


def run(uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  made = renderer()
  program = device().load(made.compile(made.source("k", uops), "k"), "k")
  memory = [device().alloc(a.nbytes) for a in arrays]
  for m, a in zip(memory, arrays): device().copyin(m, memoryview(a.view(np.uint8)))
  program(memory, (), grid_size(uops), block_size(uops))
  for m, a in zip(memory, arrays): device().copyout(memoryview(a.view(np.uint8)), m)


@types
def test_arithmetic(dtype: DType) -> None: check_arithmetic(dtype, run, threads=True)


@types
def test_conversions(dtype: DType) -> None: check_casts(dtype, run, threads=True)


@types
def test_constants(dtype: DType) -> None: check_constants(dtype, run, threads=True)


def test_rounded_products() -> None: check_rounded_products(run, threads=True)


def test_large_integers() -> None: check_large_integers(run, threads=True)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bool, dtypes.float16, dtypes.uint8], ids=lambda d: d.name)
def test_a_workgroup_turns_vectors_around_in_local_memory(dtype: DType) -> None:
  for count in (2, 4, 3):
    group, item = UOp.special("gidx0", 2), UOp.special("lidx0", 32)
    shared = UOp(Ops.DEFINE_LOCAL, dtype.ptr(32 * count, AddressSpace.LOCAL), (), "turn")
    row = group * 32 + item
    value = UOp(Ops.LOAD, dtype.vec(count), (buffer(1, dtype, 64 * count).index(row * count),))
    barrier = UOp(Ops.BARRIER, dtypes.void, (shared.index(item * count).store(value),))
    turned = UOp(Ops.LOAD, dtype.vec(count), (shared.index((31 - item) * count), barrier))
    uops = linear(buffer(0, dtype, 64 * count).index(row * count).store(turned))
    given = np.random.default_rng(1).integers(0, 2, (2, 32, count)).astype(dtype.numpy)
    out = np.zeros_like(given)
    run(uops, [out, given])
    assert (out == given[:, ::-1]).all()


def test_a_device_without_doubles_or_exact_division_gets_other_words() -> None:
  x = buffer(1, dtypes.float32).index(UOp.const(dtypes.int32, 0)).load()
  uops = linear(buffer(0, dtypes.float32).index(UOp.const(dtypes.int32, 0)).store(x.alu(Ops.FDIV, x.alu(Ops.SQRT))))
  assert "(float)((double)" in OpenCLRenderer(exact=False).source("k", uops)
  assert "(float)sqrt((double)" in OpenCLRenderer(exact=False).source("k", uops)
  assert "double" not in OpenCLRenderer(double=False).source("k", uops)
  with pytest.raises(Unsupported, match="float64"):
    wide = buffer(0, dtypes.float64).index(UOp.const(dtypes.int32, 0)).store(x.cast(dtypes.float64))
    OpenCLRenderer(double=False).source("k", linear(wide))
  assert len({OpenCLRenderer(*a).key for a in ((True, True), (True, False), (False, True))}) == 3


def test_quotients_by_way_of_double_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
  found = device()
  monkeypatch.setattr(found, "exact", False)
  monkeypatch.setattr(found, "options", b"-cl-std=CL1.2")
  check_arithmetic(dtypes.float32, run, threads=True)


def test_functions_of_a_device_without_doubles_are_its_own() -> None:
  made, found = OpenCLRenderer(double=False), device()
  ops = [Ops.EXP2, Ops.EXP, Ops.EXPM1, Ops.LOG2, Ops.LOG, Ops.LOG10, Ops.LOG1P, Ops.SIN, Ops.COS, Ops.TANH, Ops.POW,
         Ops.FMOD]
  row = UOp.special("gidx0", 4) * 64 + UOp.special("lidx0", 64)
  x, y = (buffer(len(ops) + i, dtypes.float32).index(row).load() for i in range(2))
  stores = [buffer(i, dtypes.float32).index(row).store(x.alu(op, y) if op in GroupOp.BINARY else x.alu(op))
            for i, op in enumerate(ops)]
  uops = linear(*stores)
  source = made.source("k", uops)
  assert "double" not in source and all(made.native(op, dtypes.float32) for op in ops)
  rng = np.random.default_rng(3)
  arrays = [*(np.zeros(256, np.float32) for _ in ops), *(rng.uniform(0.1, 5, 256).astype(np.float32) for _ in range(2))]
  memory = [found.alloc(a.nbytes) for a in arrays]
  for m, a in zip(memory, arrays): found.copyin(m, memoryview(a.view(np.uint8)))
  found.load(made.compile(source, "k"), "k")(memory, (), grid_size(uops), block_size(uops))
  for m, a in zip(memory, arrays): found.copyout(memoryview(a.view(np.uint8)), m)
  for op, out in zip(ops, arrays):
    for a, b, got in zip(arrays[-2].tolist(), arrays[-1].tolist(), out.tolist()):
      wanted = semantics.alu(op, dtypes.float32, a, b) if op in GroupOp.BINARY else semantics.alu(op, dtypes.float32, a)
      assert got == pytest.approx(wanted, rel=2e-6, abs=1e-6), (op, a, b)
