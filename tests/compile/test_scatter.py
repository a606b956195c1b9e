"""Values that go to their places: as NumPy's loop over them has it, in every form, on every target."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile.test_kernels import ON, check, run
from tests.compile.witness import buffer, evaluate
from tests.strength import examples
from tinyhw.compile import schedule
from tinyhw.compile.lower import lower
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.spec import SpecError, check_tensor
from tinyhw.ir.uop import Axis, Ops, ScatterArg, UOp

Memory = dict[UOp, np.ndarray]


@st.composite
def scatters(draw: st.DrawFn) -> tuple[UOp, Memory]:
  """A SCATTER of small whole numbers, with what is before and behind it."""
  memory: Memory = {}
  rng = np.random.default_rng(draw(st.integers(0, 1000)))
  kind = draw(st.sampled_from([np.float32, np.int32, np.float64, np.uint8, np.int64]))
  lead = tuple(draw(st.lists(st.integers(1, 9), max_size=2)))
  axis, size, count = draw(st.integers(0, len(lead))), draw(st.integers(1, 20)), draw(st.integers(1, 20))
  op = draw(st.sampled_from([None, None, Ops.ADD, Ops.MAX]))
  unique = op is None and count <= size and draw(st.booleans())
  def shape(n: int) -> tuple[int, ...]: return (*lead[:axis], n, *lead[axis:])
  whole = unique and draw(st.booleans())
  if whole: count = size
  if unique: places = np.argsort(rng.random(shape(size)), axis).take(range(count), axis)
  else: places = rng.integers(-2, size + 2, shape(count))
  table = buffer(rng.integers(0, 5, shape(size)).astype(kind), memory)
  index = buffer(places.astype(np.int32), memory)
  value = buffer(rng.integers(0, 9, shape(count)).astype(kind), memory)
  if draw(st.booleans()): table = table + table
  if draw(st.booleans()): value = value.flip((True,) * len(value.shape)) + value
  if draw(st.booleans()): index = (index + 1) - UOp.const(dtypes.int32, 1, "TEST", index.shape)
  found = table.scatter(index, value, ScatterArg(axis, op, unique, whole=whole))
  return (found + table if draw(st.booleans()) else found), memory


@settings(max_examples=examples(60))
@given(scatters(), st.sampled_from(sorted(ON)))
def test_values_go_to_their_places_in_their_order(case: tuple[UOp, Memory], target: str) -> None:
  u, memory = case
  check([u], memory, target)


@settings(max_examples=examples(30))
@given(st.integers(0, 1000), st.integers(1, 5), st.integers(1, 9), st.integers(1, 30), st.sampled_from(sorted(ON)))
def test_what_was_before_each(seed: int, rows: int, size: int, count: int, target: str) -> None:
  memory: Memory = {}
  rng = np.random.default_rng(seed)
  table = buffer(rng.integers(0, 9, (rows, size)).astype(np.int32), memory)
  index = buffer(rng.integers(0, size, (rows, count)).astype(np.int32), memory)
  value = buffer(rng.integers(0, 9, (rows, count)).astype(np.int32), memory)
  for op in (None, Ops.ADD): check([table.scatter(index, value, ScatterArg(1, op, before=True))], memory, target)


def test_a_place_that_stays_is_loaded_each_time() -> None:
  memory: Memory = {}
  value = buffer(np.arange(1, 7, dtype=np.int32).reshape(2, 3), memory)
  table, index = UOp.const(dtypes.int32, 10, "TEST", (2, 1)), UOp.const(dtypes.int32, 0, "TEST", (2, 3))
  same = buffer(np.array([3], np.int32), memory).reshape((1, 1)).expand((2, 3))
  for op, of, want in ((Ops.ADD, value, [[10, 11, 13], [10, 14, 19]]), (None, value, [[10, 1, 2], [10, 4, 5]]),
                       (Ops.ADD, same, [[10, 13, 16]] * 2), (None, same, [[10, 3, 3]] * 2)):
    for target in ON:
      assert run([table.scatter(index, of, ScatterArg(1, op, before=True))], memory, target)[0].tolist() == want


def test_a_table_that_others_read_stays_as_it_is() -> None:
  memory: Memory = {}
  table = buffer(np.arange(4, dtype=np.int32), memory)
  index, value = (buffer(np.array(x, np.int32), memory) for x in ([1, 1], [7, 8]))
  base = (table + 1).contiguous()
  outputs = [base.scatter(index, value, ScatterArg(0)), base.scatter(index, value, ScatterArg(0, Ops.ADD)), base]
  for target in ON:
    for got, want in zip(run(outputs, memory, target), ([1, 8, 3, 4], [1, 17, 3, 4], [1, 2, 3, 4])):
      assert got.tolist() == want
  assert [evaluate(u, memory).tolist() for u in outputs] == [[1, 8, 3, 4], [1, 17, 3, 4], [1, 2, 3, 4]]


def test_only_what_has_an_order_is_a_loop() -> None:
  table, value = (UOp.new_buffer("TEST", n, dtypes.float32).reshape((4, n // 4)) for n in (40, 24))
  index = UOp.new_buffer("TEST", 24, dtypes.int32).reshape((4, 6))
  for how, kinds in ((ScatterArg(1), {Axis.LOOP, Axis.ORDER}), (ScatterArg(1, unique=True), {Axis.LOOP})):
    _, item = schedule([table.scatter(index, value, how)])
    assert {u.arg.kind for u in lower(item.ast).toposort() if u.op is Ops.RANGE} == kinds
  assert len(schedule([table.scatter(index, value, ScatterArg(1, None, True, False, True))])) == 1


@pytest.mark.parametrize(("how", "why"), [
  (ScatterArg(2), "along axis 2"), (ScatterArg(0), "of shapes"), (ScatterArg(1, Ops.SUB), "not ADD, MUL or MAX"),
  (ScatterArg(1, None, True, True), "needs an order"), (ScatterArg(1, None, False, False, True), "not unique")])
def test_wrong_ones_are_refused(how: ScatterArg, why: str) -> None:
  table, index = UOp.const(dtypes.int32, 1, "TEST", (2, 5)), UOp.const(dtypes.int32, 1, "TEST", (2, 3))
  with pytest.raises((SpecError, InvalidArgument), match=why): check_tensor([table.scatter(index, index, how)])
