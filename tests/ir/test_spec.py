"""Malformed graphs and programs are refused with the op and the reason."""
from __future__ import annotations

import pytest

from tinyhw.core.errors import Error
from tinyhw.ir.dtype import AddressSpace, dtypes
from tinyhw.ir.shape import ShapeTracker
from tinyhw.ir.spec import SpecError, check_kernel, check_linear, check_tensor
from tinyhw.ir.uop import Axis, BufferArg, Ops, RangeArg, ScatterArg, SpecialArg, UOp

F32, I32, VOID = dtypes.float32, dtypes.int32, dtypes.void
x, n = UOp.new_buffer("X", 6, F32).reshape((2, 3)), UOp.new_buffer("X", 6, I32).reshape((2, 3))
one = UOp.const(F32, 1.0)
ptr = UOp(Ops.DEFINE_GLOBAL, F32.ptr(6), (), 0)
lds = UOp(Ops.DEFINE_LOCAL, F32.ptr(6, AddressSpace.LOCAL), (), "shared")
zero, six = UOp.const(I32, 0), UOp.const(I32, 6)
loop = UOp.range(6, 0)
at = ptr.index(zero)
view = UOp(Ops.VIEW, ptr.dtype, (ptr,), ShapeTracker.contiguous((6,)))


@pytest.mark.parametrize("u, reason", [
  (UOp(Ops.ADD, F32, (x, n)), "ADD of dtypes.float32: its operands are dtypes.float32, dtypes.int32"),
  (UOp(Ops.ADD, F32, (x,)), "takes 2 sources, not 1"),
  (UOp(Ops.CMPLT, F32, (x, x)), "operands of dtypes.float32 give dtypes.bool"),
  (UOp(Ops.WHERE, F32, (n, x, x)), "its condition is dtypes.int32"),
  (UOp(Ops.EXP2, I32, (n,)), "is for floats"),
  (UOp(Ops.MOD, F32, (x, x)), "is for integers"),
  (UOp(Ops.XOR, F32, (x, x)), "is for integers and bools"),
  (UOp(Ops.SHL, I32, (n, x)), "its count is dtypes.float32"),
  (UOp(Ops.RESHAPE, I32, (x,), (6,)), "its source is dtypes.float32"),
  (UOp(Ops.REDUCE_AXIS, F32, (x,), (Ops.XOR, (0,))), "is not ADD, MUL or MAX"),
  (UOp(Ops.REDUCE_AXIS, F32, (x,), (Ops.ADD, (1, 0))), "are not in order"),
  (UOp(Ops.CONST, I32, (), 1.5), "1.5 is not a number of its dtype"),
  (UOp(Ops.CONST, dtypes.uint8, (), 256), "256 is not a number of its dtype"),
  (UOp(Ops.CONST, F32, (), 0.1), "0.1 is not a number of its dtype"),
  (UOp(Ops.CONST, F32.vec(4), (), 1.0), "is a vector"),
  (UOp(Ops.BITCAST, dtypes.float64, (x,)), "4 bytes cannot be read as 8"),
  (UOp(Ops.ASSIGN, F32, (x + x, x)), "its target is ADD, not a view of a BUFFER"),
  (UOp(Ops.ASSIGN, F32, (x, n)), "dtypes.int32 into dtypes.float32"),
  (UOp(Ops.COPY, F32, (x,), ""), "is no name"),
  (UOp.special("gidx0", 4), "does not occur at this stage"),
  (UOp(Ops.ADD, F32, (x, one)), "ADD of different shapes"),
  (UOp(Ops.BUFFER, F32, (), BufferArg(0, "X", -1)), "arg"),
  (UOp.variable("n", 4, 3), "bounds 4..3 are empty"),
])
def test_tensor_graph(u: UOp, reason: str) -> None:
  with pytest.raises(SpecError, match="tensor graph: ") as found: check_tensor([u])
  assert reason in str(found.value) and u.op.name in str(found.value) and isinstance(found.value, Error)


places, values = UOp.const(I32, 0, None, (6,)), UOp.const(F32, 1.0, None, (6,))
scatter = UOp(Ops.SCATTER, VOID, (view, places, values), ScatterArg(0))


@pytest.mark.parametrize("ast, reason", [
  (UOp.sink(scatter, view.store(values)), "of a SCATTER and others"),
  (UOp.sink(view.store(values), view.store(values + values), scatter), "of a SCATTER and others"),
  (UOp.sink(scatter, scatter.replace(arg=ScatterArg(0, Ops.ADD))), "of a SCATTER and others"),
  (UOp.sink(scatter.replace(src=(view, places, values, view))), "4 sources"),
  (one, "is not a SINK"),
  (UOp.sink(), "stores nothing"),
  (UOp.sink(one), "of CONST, not of STOREs"),
  (UOp.sink(view.store(one)), "shape () to (6,)"),
  (UOp.sink(view.store(UOp.const(I32, 0, None, (6,)))), "dtypes.int32 to"),
  (UOp.sink(at.store(one)), "INDEX of dtypes.float32.ptr(6, GLOBAL): does not occur"),
  (UOp.sink(view.store(UOp.new_buffer("X", 6, F32))), "BUFFER of dtypes.float32: does not occur at this stage"),
  (UOp.sink(view.store(UOp.const(F32, 1.0, "X", (6,)))), "DEVICE of dtypes.void: does not occur"),
  (UOp.sink(view.replace(arg=view.arg.apply(Ops.PAD, ((1, 1),))).store(one.reshape((1,)).expand((8,)))), "with a mask"),
])
def test_kernel_graph(ast: UOp, reason: str) -> None:
  with pytest.raises(SpecError, match="kernel graph: ") as found: check_kernel(ast)
  assert reason in str(found.value)


gated = ptr.index(zero, UOp.const(dtypes.bool, True))
register = UOp(Ops.DEFINE_ACC, F32, (one,), 0)


@pytest.mark.parametrize("uops, reason", [
  ([at], "its source DEFINE_GLOBAL does not stand before it"),
  ([ptr, ptr], "stands twice"),
  ([six, loop], "its loop does not end"),
  ([six, loop, UOp(Ops.ENDRANGE, VOID, (loop,)), UOp(Ops.ENDRANGE, VOID, (loop,), 1)], "does not end the innermost"),
  ([zero, UOp(Ops.RANGE, I32, (zero,), RangeArg(0, Axis.LOOP))], "never runs"),
  ([six, UOp.range(6, 0, Axis.UPCAST)], "a range of kind upcast is no loop"),
  ([six, loop, loop + six, UOp(Ops.ENDRANGE, VOID, (loop,)), ptr, ptr.index(loop + six)], "of a loop that has ended"),
  ([ptr, one, UOp(Ops.INDEX, ptr.dtype, (ptr, one))], "by dtypes.float32"),
  ([ptr, zero, at, UOp(Ops.LOAD, I32, (at,))], "from dtypes.float32.ptr(6, GLOBAL)"),
  ([ptr, zero, gated.src[2], gated, gated.load()], "takes a value for a False gate exactly where"),
  ([ptr, zero, at, one, at.load(one)], "takes a value for a False gate exactly where"),
  ([ptr, zero, at, zero + 0, at.store(zero + 0)], "dtypes.int32 to"),
  ([one, UOp(Ops.VECTORIZE, F32.vec(2), (one,))], "of 1 scalars"),
  ([one, zero, UOp(Ops.VECTORIZE, F32.vec(2), (one, zero))], "of dtypes.int32"),
  ([UOp(Ops.SPECIAL, I32, (), SpecialArg("idx0", 4))], "no index is called 'idx0'"),
  ([UOp(Ops.DEFINE_GLOBAL, F32.ptr(6, AddressSpace.LOCAL), (), 0)], "points to local memory"),
  ([UOp(Ops.DEFINE_GLOBAL, dtypes.bfloat16.ptr(6), (), 0)], "bfloat16 does not occur here"),
  ([one, register, UOp(Ops.ASSIGN, F32, (one, one))], "to CONST, not to a DEFINE_ACC"),
  ([lds, zero, lds.index(zero), one, lds.index(zero).store(one), UOp(Ops.BARRIER, VOID, (lds,))], "not of STOREs"),
  ([UOp.new_buffer("X", 4, F32)], "does not occur at this stage"),
])
def test_linear_program(uops: list[UOp], reason: str) -> None:
  unique = [u for i, u in enumerate(uops) if u is not six or u not in uops[:i]]
  with pytest.raises(SpecError, match="linear program: ") as found: check_linear(unique)
  assert reason in str(found.value), str(found.value)


def test_what_is_right_passes() -> None:
  for ast in (UOp.sink(scatter), UOp.sink(view.store(values), view.store(values + values))): check_kernel(ast)
  check_tensor([(x + 1.0).reduce(Ops.ADD, (0,)), x.reshape((6,)).assign(n.reshape((6,)).cast(F32))])
  total = register + 1.0
  assign = UOp(Ops.ASSIGN, F32, (register, total))
  end = UOp(Ops.ENDRANGE, VOID, (loop,))
  check_linear([ptr, zero, six, one, register, loop, total, assign, end, at, at.store(assign)])
