"""The text of linear programs: what is written reads back as the very same nodes, and nonsense is refused."""
from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.core.errors import DecodeError
from tinyhw.ir import program, semantics
from tinyhw.ir.dtype import AddressSpace, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import Axis, UOp


def test_a_program_comes_back() -> None:
  out, shared = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(64), (), 0), UOp(
    Ops.DEFINE_LOCAL, dtypes.float32.ptr(32, AddressSpace.LOCAL), (), "shared")
  n, group, item = UOp.variable("n", 1, 9), UOp.special("gidx0", 2), UOp.special("lidx0", 32)
  loop = UOp.range(n, 3, Axis.REDUCE)
  total = UOp(Ops.DEFINE_ACC, dtypes.float32, (UOp.const(dtypes.float32, -0.0),), 7)
  added = UOp(Ops.ASSIGN, dtypes.float32, (total, total + loop.cast(dtypes.float32).exp2()))
  stored = shared.index(item).store(added)
  barrier = UOp(Ops.BARRIER, dtypes.void, (stored,))
  pair = UOp(Ops.VECTORIZE, dtypes.float32.vec(2), (added, UOp.const(dtypes.float32, math.nan)))
  read = shared.index(item, item < 3).load(pair.gep((1, 0)).gep(0), barrier)
  nodes = [u for u in UOp.sink(out.index(group * 32 + item).store(read)).toposort() if u.op is not Ops.SINK]
  renderer = UOpRenderer()
  text = renderer.source("k", [*nodes, UOp(Ops.ENDRANGE, dtypes.void, (loop,))])
  back = program.load(renderer.compile(text, "k").decode())
  assert len(back) == len(nodes) + 1 and all(a is b for a, b in zip(back, nodes))


@given(st.sampled_from(dtypes.all()), st.integers(0, 2**64 - 1))
def test_constants_come_back_exactly(dtype: object, bits: int) -> None:
  assert isinstance(dtype, type(dtypes.int32))
  value = bool(bits & 1) if dtype.is_bool else semantics.from_bits(bits % (1 << dtype.bits), dtype)
  back, = program.load(program.dump([UOp.const(dtype, value)]))
  assert type(back.arg) is type(value) and (back.arg == value or value != value)
  assert not dtype.is_float or value != value or math.copysign(1, back.arg) == math.copysign(1, value)


@pytest.mark.parametrize(("text", "message"), [
  ("nonsense", "line 1 of the program: not a UOp"),
  ('["CONST", "int32", [], 1]\n["NEG", "int32", [1], null]', "line 2 of the program: .*stand before"),
  ('["EXEC", "int32", [], null]', "EXEC"),
  ('["CONST", "int33", [], 1]', "int33"),
  ('["CONST", "int32*nowhere:1", [], 1]', "nowhere"),
  ('["SINK", "void", [], {"a": 1}]', "has no argument"),
])
def test_nonsense_is_refused_by_line(text: str, message: str) -> None:
  with pytest.raises(DecodeError, match=message): program.load(text)
