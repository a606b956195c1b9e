"""Sums that pick an element are loads: the same values as the sums, for places inside and outside of the axis."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile.test_kernels import ON, check, run
from tests.compile.witness import buffer
from tests.strength import examples
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.lower import lower
from tinyhw.function.movement import iota
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import Ops, UOp

Memory = dict[UOp, np.ndarray]


def positions(size: int, shape: tuple[int, ...]) -> UOp:
  """0, 1, ... along the last axis."""
  return iota(size, "TEST").reshape((1,) * (len(shape) - 1) + (size,)).expand(shape)


def picked(table: UOp, places: UOp, shift: int, nothing: float, also: UOp | None = None) -> UOp:
  """Rows of a table (size, width): the sum of where(places + shift == k, table[k], nothing) over k."""
  (size, width), n = table.shape, places.size
  shape = (n, width, size)
  wanted = places.reshape((n, 1, 1)).expand(shape)
  match = (wanted + shift).eq(positions(size, shape).cast(places.dtype))
  if also is not None: match = match & also.reshape((1, 1, size)).expand(shape)
  rows = table.permute((1, 0)).reshape((1, width, size)).expand(shape)
  return match.where(rows, nothing).reduce(Ops.ADD, (2,)).reshape((n, width))


@settings(max_examples=examples(40))
@given(st.data(), st.sampled_from(sorted(ON)))
def test_picked_rows_are_those_that_a_sum_gives(data: st.DataObject, target: str) -> None:
  memory: Memory = {}
  rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
  size, width, n = (data.draw(st.integers(low, high)) for low, high in ((2, 33), (1, 17), (1, 9)))
  kind = data.draw(st.sampled_from([np.float32, np.int32]))
  table = buffer(rng.integers(-9, 10, (size, width)).astype(kind), memory)
  low, high = -(2**31), 2**31 - 1
  values = st.integers(-2, size + 2) | st.sampled_from([low, low + 1, high, high - 1])
  places = buffer(np.array(data.draw(st.lists(values, min_size=n, max_size=n)), np.int32), memory)
  also = buffer(rng.integers(0, 2, size).astype(np.bool_), memory) if data.draw(st.booleans()) else None
  nothing = -0.0 if kind is np.float32 else 0
  u = picked(table, places, data.draw(st.integers(-3, 3)), nothing, also)
  check([u], memory, target)
  (item,) = schedule([u])
  assert not any(v.op is Ops.REDUCE for v in lower(item.ast).toposort())


@pytest.mark.parametrize(("nothing", "sign"), [(0.0, False), (-0.0, True)])
def test_a_picked_zero_keeps_its_sign_where_the_sum_does(nothing: float, sign: bool) -> None:
  memory: Memory = {}
  table, places = buffer(np.full((4, 1), -0.0, np.float32), memory), buffer(np.array([1, 7], np.int32), memory)
  (found,) = run([picked(table, places, 0, nothing)], memory, "host")
  assert np.signbit(found).reshape(-1).tolist() == [sign, sign]


def test_positions_are_index_arithmetic() -> None:
  """No loop, no load and no choice makes them."""
  (item,) = schedule([(iota(1000, "TEST") * 3 + 1).contiguous()])
  ops = {u.op for u in lower(item.ast).toposort()}
  assert ops <= {Ops.DEFINE_GLOBAL, Ops.CONST, Ops.RANGE, Ops.INDEX, Ops.MUL, Ops.ADD, Ops.STORE, Ops.SINK}


def test_what_is_read_does_not_grow_with_the_table() -> None:
  def loads(size: int) -> int:
    table, places = (UOp.new_buffer("TEST", n, d) for n, d in ((size * 8, dtypes.float32), (4, dtypes.int32)))
    (item,) = schedule([picked(table.reshape((size, 8)), places, 0, -0.0)])
    program = compile_kernel(item.ast, ON["uops"][0])
    assert not any(u.op is Ops.RANGE for u in program.uops)
    return sum(u.op is Ops.LOAD for u in program.uops)
  assert loads(10) == loads(100_000) <= 2


def test_matches_of_two_loops_are_one() -> None:
  """The diagonal of a matrix, as a sum over both axes of where(i == j, x[i, j], 0)."""
  memory: Memory = {}
  x = buffer(np.arange(49, dtype=np.float32).reshape(7, 7), memory)
  rows, columns = positions(7, (7, 7)).permute((1, 0)), positions(7, (7, 7))
  u = rows.eq(columns).where(x, 0.0).reduce(Ops.ADD, (1,))
  for target in ON: check([u], memory, target)
  assert not any(v.op is Ops.REDUCE for v in lower(schedule([u]).items[0].ast).toposort())


def test_whether_any_of_the_flags_is_picked() -> None:
  """Of `match & flags` over an axis `any` is a load; `all` is none, and has its own value."""
  memory: Memory = {}
  rng = np.random.default_rng(5)
  places = buffer(np.array([0, 3, 8, 9, -1], np.int32), memory).reshape((5, 1)).expand((5, 9))
  match = places.eq(positions(9, (5, 9)).cast(dtypes.int32))
  flags = buffer(rng.integers(0, 2, 9).astype(np.bool_), memory).reshape((1, 9)).expand((5, 9))
  for op, loop in ((Ops.MAX, False), (Ops.MUL, True)):
    u = (match & flags).reduce(op, (1,))
    check([u], memory, "uops")
    assert any(v.op is Ops.REDUCE for v in lower(schedule([u]).items[0].ast).toposort()) == loop


def test_an_axis_that_a_value_counts_stays_an_axis() -> None:
  """Two axes that memory would take as one are two where the position along one is added."""
  memory: Memory = {}
  x = buffer(np.arange(24, dtype=np.float32).reshape(4, 6), memory)
  u = x * 2.0 + positions(6, (4, 6)).cast(dtypes.float32)
  check([u], memory, "uops")
  for v, loops in ((u, 2), (x * 2.0, 1)):
    assert sum(w.op is Ops.RANGE for w in lower(schedule([v]).items[0].ast).toposort()) == loops
