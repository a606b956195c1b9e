"""The UOp emulator on programs written by hand."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.strength import seed
from tinyhw.core.errors import InvalidArgument, MachineFault
from tinyhw.emulator.uops import Executable
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import Axis, UOp, sources

Array = np.ndarray[Any, np.dtype[Any]]


def pointer(index: int, dtype: DType, size: int) -> UOp:
  return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), index)


def const(value: float, dtype: DType = dtypes.int32) -> UOp: return UOp.const(dtype, value)


def run(*roots: UOp, buffers: list[Array], values: tuple[int, ...] = (), grid: int = 1, block: int = 1,
        order: list[UOp] | None = None) -> None:
  program = order or list(sources(roots))
  Executable(program, "k")([b.reshape(-1).view(np.uint8) for b in buffers], values, (grid, 1, 1), (block, 1, 1))


@pytest.mark.parametrize("threads", [6, 1 << 18])
def test_a_grid_of_threads(threads: int) -> None:
  out, a = pointer(0, dtypes.float32, threads), pointer(1, dtypes.float32, threads)
  i = UOp.special("gidx0", threads)
  x, y = np.arange(threads, dtype=np.float32), np.zeros(threads, np.float32)
  run(out.index(i).store(a.index(i).load() * 2.0 + 1.0), buffers=[y, x], grid=threads)
  np.testing.assert_array_equal(y, x * 2 + 1)


def test_gates_mask_loads_and_stores() -> None:
  out, a = pointer(0, dtypes.int32, 4), pointer(1, dtypes.int32, 3)
  i = UOp.special("gidx0", 8)
  inside = i < 3
  loaded = UOp(Ops.LOAD, dtypes.int32, (a.index(i, inside), const(-5)))
  x, y = np.array([7, 8, 9], np.int32), np.zeros(4, np.int32)
  run(out.index(i, i < 4).store(loaded), buffers=[y, x], grid=8)
  assert y.tolist() == [7, 8, 9, -5]


@pytest.mark.parametrize(("threads", "count"), [(3, 1000), (1 << 16, 5)])
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX, Ops.MUL, Ops.MULACC])
def test_a_loop_accumulates_in_slabs_or_step_by_step(threads: int, count: int, op: Ops) -> None:
  out, a = pointer(0, dtypes.int32, threads), pointer(1, dtypes.int32, threads * count)
  i, r = UOp.special("gidx0", threads), UOp.range(count, 0, Axis.REDUCE)
  start = const({Ops.ADD: 3, Ops.MAX: -9, Ops.MUL: 1, Ops.MULACC: 3}[op])
  acc = UOp(Ops.DEFINE_ACC, dtypes.int32, (start,), 0)
  value = a.index(i * count + r).load()
  term = value.alu(op, value, acc) if op is Ops.MULACC else acc.alu(op, value)
  result = UOp(Ops.ASSIGN, dtypes.int32, (acc, term))
  store = out.index(i).store(result)
  body = [u for u in sources([result]) if u not in sources([acc, r])]
  order = [*sources([i, acc]), *(u for u in sources([r]) if u not in sources([i, acc])), *body,
           UOp(Ops.ENDRANGE, dtypes.void, (r,)), *(u for u in sources([store]) if u not in {*body,
                                                                                            *sources([i, acc, r])})]
  x, y = np.random.default_rng(seed(0)).integers(-3, 4, (threads, count)).astype(np.int32), np.zeros(threads, np.int32)
  run(buffers=[y, x], grid=threads, order=order)
  wanted = {Ops.ADD: lambda: 3 + x.sum(1), Ops.MAX: lambda: x.max(1), Ops.MUL: lambda: x.prod(1, dtype=np.int32),
            Ops.MULACC: lambda: 3 + (x * x).sum(1)}[op]()
  np.testing.assert_array_equal(y, wanted.astype(np.int32))


def test_local_memory_belongs_to_a_workgroup_and_barriers_order_it() -> None:
  groups, size = 3, 4
  out, a = pointer(0, dtypes.int32, groups * size), pointer(1, dtypes.int32, groups * size)
  local = UOp(Ops.DEFINE_LOCAL, dtypes.int32.ptr(size, AddressSpace.LOCAL), (), "temp")
  g, l = UOp.special("gidx0", groups), UOp.special("lidx0", size)
  barrier = UOp(Ops.BARRIER, dtypes.void, (local.index(l).store(a.index(g * size + l).load()),))
  other = local.index(const(size - 1) - l).load(barrier)
  x, y = np.arange(groups * size, dtype=np.int32), np.zeros(groups * size, np.int32)
  run(out.index(g * size + l).store(other), buffers=[y, x], grid=groups, block=size)
  np.testing.assert_array_equal(y.reshape(groups, size), x.reshape(groups, size)[:, ::-1])


def test_vectors_load_compute_and_store() -> None:
  out, a = pointer(0, dtypes.float32, 8), pointer(1, dtypes.float32, 8)
  i = UOp.special("gidx0", 2) * 4
  vector = a.index(i).load(dtype=dtypes.float32.vec(4))
  swapped = UOp(Ops.VECTORIZE, dtypes.float32.vec(4), tuple(vector.gep(k) + 1.0 for k in (3, 2, 1, 0)))
  x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
  run(out.index(i).store(swapped), buffers=[y, x], grid=2)
  assert y.tolist() == [4, 3, 2, 1, 8, 7, 6, 5]


def test_launch_values() -> None:
  out, n = pointer(0, dtypes.int32, 4), UOp.variable("n", 1, 9)
  i = UOp.special("gidx0", 4)
  y = np.zeros(4, np.int32)
  run(out.index(i).store(i * n), buffers=[y], values=(7,), grid=4)
  assert y.tolist() == [0, 7, 14, 21]
  with pytest.raises(InvalidArgument, match="launch values"):
    run(out.index(i).store(i * n), buffers=[y], values=(10,), grid=4)


def test_c_semantics_of_integers() -> None:
  a, b = np.array([-7, 7, -7, 5, -2**31, 9], np.int32), np.array([2, -2, -2, 0, -1, 33], np.int32)
  i = UOp.special("gidx0", 6)
  x, y = (pointer(k, dtypes.int32, 6).index(i).load() for k in (4, 5))
  out = [np.zeros(6, np.int32) for _ in range(4)]
  run(*(pointer(k, dtypes.int32, 6).index(i).store(x.alu(op, y)) for k,
        op in enumerate((Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR))),
      buffers=[*out, a, b], grid=6)
  assert out[0].tolist() == [-3, -3, 3, 0, -2**31, 0] and out[1].tolist() == [-1, 1, -1, 0, 0, 9]
  assert out[2][5] == 18 and out[3][5] == 4 and out[3][0] == -2


def test_casts_saturate() -> None:
  x = np.array([1e20, -1e20, np.nan, -1.9, 2**62, 255.9], np.float32)
  i = UOp.special("gidx0", 6)
  v = pointer(3, dtypes.float32, 6).index(i).load()
  kinds = (dtypes.int64, dtypes.uint8, dtypes.int32)
  out = [np.zeros(6, k.numpy) for k in kinds]
  run(*(pointer(k, d, 6).index(i).store(v.cast(d)) for k, d in enumerate(kinds)), buffers=[*out, x], grid=6)
  assert out[0].tolist() == [2**63 - 1, -2**63, 0, -1, 2**62, 255]
  assert out[1].tolist() == [255, 0, 0, 0, 255, 255] and out[2].tolist() == [2**31 - 1, -2**31, 0, -1, 2**31 - 1, 255]


@pytest.mark.parametrize(("shift", "what"), [(3, "load of element 8"), (-1, "load of element -1")])
def test_an_access_outside_of_a_buffer_is_a_fault(shift: int, what: str) -> None:
  out, a = pointer(0, dtypes.int32, 8), pointer(1, dtypes.int32, 8)
  i = UOp.special("gidx0", 8)
  x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
  with pytest.raises(MachineFault, match=f"kernel k, buffer 1: {what}, there are 8"):
    run(out.index(i).store(a.index(i + shift).load()), buffers=[y, x], grid=8)
  with pytest.raises(MachineFault, match="kernel k, buffer 0: store"):
    run(out.index(i + shift).store(a.index(i).load()), buffers=[y, x], grid=8)


def test_a_wrong_launch_is_refused() -> None:
  out, i = pointer(0, dtypes.int32, 8), UOp.special("gidx0", 8)
  with pytest.raises(InvalidArgument, match="it is made for"):
    run(out.index(i).store(i), buffers=[np.zeros(8, np.int32)], grid=9)
  with pytest.raises(InvalidArgument, match="buffers given"):
    run(out.index(i).store(i), buffers=[], grid=8)
