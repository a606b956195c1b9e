"""Views of memory equal what NumPy does to an array of element numbers."""
from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.ir import semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.shape import ShapeTracker, View, move_indices
from tinyhw.ir.uop import Ops, UOp


def evaluate(u: UOp, values: dict[UOp, int]) -> int:
  """The value of an integer or bool expression where RANGEs have the given values."""
  done: dict[UOp, int] = dict(values)
  for v in u.toposort(lambda v: v not in values):
    if v.op is Ops.CONST: done[v] = v.arg
    elif v not in done:
      operand = v.src[1 if v.op is Ops.WHERE else 0].dtype
      done[v] = semantics.alu(v.op, operand, *(done[s] for s in v.src))
  return done[u]


def numpy_move(op: Ops, arg: tuple, a: np.ndarray) -> np.ndarray:
  """The movement on an array; padding is -1."""
  if op is Ops.RESHAPE: return a.reshape(arg)
  if op is Ops.PERMUTE: return a.transpose(arg)
  if op is Ops.EXPAND: return np.broadcast_to(a, arg)
  if op is Ops.PAD: return np.pad(a, arg, constant_values=-1) if arg else a
  if op is Ops.SHRINK: return a[tuple(slice(*b) for b in arg)]
  return a[tuple(slice(None, None, -1 if f else 1) for f in arg)]


def factorizations(draw: st.DrawFn, size: int) -> tuple[int, ...]:
  if size == 1 and draw(st.booleans()): return ()
  shape = []
  while size > 1 and len(shape) < 4:
    d = draw(st.sampled_from([k for k in range(1, size + 1) if size % k == 0]))
    shape.append(d)
    size //= d
  return (*shape, size)


@st.composite
def movements(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[Ops, tuple]]]:
  """A shape and a chain of movement operations that fit it, of at most 400 elements."""
  start = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
  shape, steps = start, []
  for _ in range(draw(st.integers(1, 6))):
    op = draw(st.sampled_from([Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP]))
    if op is Ops.RESHAPE: arg: tuple = factorizations(draw, math.prod(shape))
    elif op is Ops.PERMUTE: arg = tuple(draw(st.permutations(range(len(shape)))))
    elif op is Ops.EXPAND: arg = tuple(draw(st.integers(1, 3)) if s == 1 else s for s in shape)
    elif op is Ops.PAD: arg = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape)
    elif op is Ops.SHRINK:
      starts = [draw(st.integers(0, s - 1)) for s in shape]
      arg = tuple((b, draw(st.integers(b + 1, s))) for b, s in zip(starts, shape))
    else: arg = tuple(draw(st.booleans()) for _ in shape)
    after = numpy_move(op, arg, np.zeros(shape, np.int8)).shape
    if math.prod(after) > 400: continue
    shape = after
    steps.append((op, arg))
  return start, steps


def small_moves(shape: tuple[int, ...]) -> list[tuple[Ops, tuple]]:
  """Every kind of movement of a shape of one axis or none, in its smallest forms."""
  size = math.prod(shape)
  shapes = [(), (1,), (1, 1)] if size == 1 else [(size,), (1, size)]
  moves: list[tuple[Ops, tuple]] = [(Ops.RESHAPE, s) for s in shapes]
  if len(shape) > 1 and size < 4: moves.append((Ops.EXPAND, (2, *shape[1:]) if shape[0] == 1 else shape))
  if not shape or len(shape) > 1: return moves
  moves += [(Ops.FLIP, (True,)), (Ops.SHRINK, ((0, 1),)), (Ops.SHRINK, ((size - 1, size),))]
  return moves + ([(Ops.PAD, ((1, 0),)), (Ops.PAD, ((0, 1),))] if size < 4 else [])


def test_every_short_chain_equals_numpy() -> None:
  level = {(ShapeTracker.contiguous((n,)), tuple(range(n))): np.arange(n) for n in (1, 2)}
  seen = dict(level)
  for _ in range(5):
    after: dict[tuple[ShapeTracker, tuple[int, ...]], np.ndarray] = {}
    for (tracker, _), array in level.items():
      for op, arg in small_moves(tracker.shape):
        moved, wanted = tracker.apply(op, arg), numpy_move(op, arg, array)
        key = moved, tuple(wanted.reshape(-1).tolist())
        if key in seen: continue
        seen[key] = after[key] = wanted
        np.testing.assert_array_equal(elements(moved), wanted, err_msg=f"{tracker} {op} {arg}")
    level = after
  assert len(seen) > 200


def elements(tracker: ShapeTracker) -> np.ndarray:
  """The element numbers that the tracker's expression gives at each index; -1 where it is not valid."""
  ranges = [UOp.range(s, i) for i, s in enumerate(tracker.shape)]
  number, valid = tracker.expression(ranges)
  out = np.full(tracker.shape, -1)
  for index in np.ndindex(*tracker.shape):
    values = dict(zip(ranges, index))
    if evaluate(valid, values): out[index] = evaluate(number, values)
  return out


@settings(max_examples=examples(150))
@given(movements())
def test_tracker_equals_numpy(case: tuple[tuple[int, ...], list[tuple[Ops, tuple]]]) -> None:
  start, steps = case
  expected = np.arange(math.prod(start)).reshape(start)
  tracker = ShapeTracker.contiguous(start)
  for op, arg in steps: expected, tracker = numpy_move(op, arg, expected), tracker.apply(op, arg)
  assert tracker.shape == expected.shape
  np.testing.assert_array_equal(elements(tracker), expected)


@settings(max_examples=examples(100))
@given(movements())
def test_moved_indices_equal_numpy(case: tuple[tuple[int, ...], list[tuple[Ops, tuple]]]) -> None:
  start, steps = case
  arrays = [np.arange(math.prod(start)).reshape(start)]
  for op, arg in steps: arrays.append(numpy_move(op, arg, arrays[-1]))
  out = arrays[-1]
  ranges = [UOp.range(s, i) for i, s in enumerate(out.shape)]
  at, valid = list(ranges), UOp.const(dtypes.bool, True)
  for (op, arg), before in reversed(list(zip(steps, arrays))):
    at, v = move_indices(op, arg, before.shape, at, {})
    valid = valid & v
  for index in np.ndindex(*out.shape):
    values = {r: i for r, i in zip(ranges, index)}
    if evaluate(valid, values): assert arrays[0][tuple(evaluate(a, values) for a in at)] == out[index]
    else: assert out[index] == -1


def test_common_chains_stay_one_view() -> None:
  view = ShapeTracker.contiguous((4, 6))
  for op, arg in [(Ops.PERMUTE, (1, 0)), (Ops.RESHAPE, (2, 3, 4)), (Ops.RESHAPE, (2, 1, 3, 2, 2)),
                  (Ops.FLIP, (True,) * 5)]:
    view = view.apply(op, arg)
  assert len(view.views) == 1
  padded = View.contiguous((4,)).pad(((2, 2),)).reshape((4, 2))
  assert padded is not None and padded.mask == ((1, 3), (0, 2))
  rows = View.contiguous((3, 4)).pad(((2, 1), (0, 0))).reshape((24,))
  assert rows == View((24,), (1,), -8, ((8, 20),))


@settings(max_examples=examples(150))
@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=3), st.data())
def test_a_mask_lies_within_the_shape(size: int, pads: list[tuple[int, int]], data: st.DataObject) -> None:
  """However often something is added and cut off; a cut that leaves nothing masked has no mask."""
  view, valid = View.contiguous((size,)), list(range(size))
  for before, after in pads:
    view, valid = view.pad(((before, after),)), [-1] * before + valid + [-1] * after
    start = data.draw(st.integers(0, len(valid) - 1))
    stop = data.draw(st.integers(start + 1, len(valid)))
    view, valid = view.shrink(((start, stop),)), valid[start:stop]
    (low, high), = view.mask or ((0, view.shape[0]),)
    assert view.shape == (len(valid),) and 0 <= low <= high <= len(valid)
    assert [view.offset + i * view.strides[0] if low <= i < high else -1 for i in range(len(valid))] == valid
    assert (view.mask is None) == (-1 not in valid)


@settings(max_examples=examples(100))
@given(st.data())
def test_one_view_where_numpy_needs_no_copy(data: st.DataObject) -> None:
  """Permuted, repeated, reversed and cut arrays: what strides can tell, one view tells. Axes of size 1 do not count."""
  shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4)))
  a, view = np.arange(math.prod(shape)).reshape(shape), View.contiguous(shape)
  order = data.draw(st.permutations(range(len(shape))))
  a, view = a.transpose(order), view.permute(order)
  flips = data.draw(st.tuples(*(st.booleans() for _ in shape)))
  a, view = numpy_move(Ops.FLIP, flips, a), view.flip(flips)
  bounds = tuple((data.draw(st.integers(0, s - 1)), s) for s in a.shape)
  a, view = numpy_move(Ops.SHRINK, bounds, a), view.shrink(bounds)
  new = factorizations(data.draw, a.size)
  try: free = a.reshape(new, copy=False)
  except ValueError: free = None
  found = view.reshape(new)
  assert free is None or found is not None, (view, new)
