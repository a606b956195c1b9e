"""Sizes that launches decide: arithmetic and views with Variables are those of their values."""
from __future__ import annotations

import itertools
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.test_shape import evaluate, numpy_move
from tests.strength import examples
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.shape import ShapeTracker, move_indices
from tinyhw.ir.size import Size, Values, always_most, bound, larger, smaller, unbound, worth
from tinyhw.ir.uop import UOp

N, M, Z = (UOp.variable(*v) for v in (("n", 1, 5), ("m", 2, 4), ("z", 0, 3)))
n, m, z = (Size(u) for u in (N, M, Z))


EVERY = [dict(zip((N.arg, M.arg, Z.arg), values)) for values in itertools.product(
  *(range(u.arg.min, u.arg.max + 1) for u in (N, M, Z)))]


def valued(draw: st.DrawFn, count: int) -> list[Values]:
  """So many of the variables' values. One draw is their seed, for each draw takes long."""
  return random.Random(draw(st.integers(0, 1 << 32))).sample(EVERY, count)


@st.composite
def sums(draw: st.DrawFn, depth: int = 4) -> tuple[Any, Any]:
  """A size, and the function of the values that it should be."""
  if depth == 0 or draw(st.integers(0, 3)) == 0:
    if draw(st.booleans()):
      u = draw(st.sampled_from([N, M, Z]))
      return Size(u), lambda values: values[u.arg]
    k = draw(st.integers(-6, 12))
    return k, lambda values: k
  (a, f), (b, g) = draw(sums(depth - 1)), draw(sums(depth - 1))
  match draw(st.sampled_from(["+", "-", "*", "//", "%", "max", "min", "-x"])):
    case "+": return a + b, lambda v: f(v) + g(v)
    case "-": return a - b, lambda v: f(v) - g(v)
    case "*": return a * b, lambda v: f(v) * g(v)
    case "max": return larger(a, b), lambda v: max(f(v), g(v))
    case "min": return smaller(a, b), lambda v: min(f(v), g(v))
    case "-x": return -a, lambda v: -f(v)
    case "//": return (a // b, lambda v: f(v) // g(v)) if always_most(1, b) else (a, f)
    case _: return (a % b, lambda v: f(v) % g(v)) if always_most(1, b) else (a, f)


@settings(max_examples=examples(200))
@given(st.data())
def test_arithmetic_is_that_of_the_values(data: st.DataObject) -> None:
  (a, f), (b, g) = data.draw(sums()), data.draw(sums())
  points = valued(data.draw, 8)
  for values in points: assert worth(a, values) == f(values)
  if a == b: assert all(f(v) == g(v) for v in points) and hash(a) == hash(b)
  try: less = a < b
  except InvalidArgument as error: assert "depends on the value of" in str(error)
  else: assert all((f(v) < g(v)) is less for v in points)
  if isinstance(a, Size):
    assert all(a.low <= f(v) <= a.high for v in points)
    assert pickle.loads(pickle.dumps(a)) == a
    assert bound(a, points[0]) == a or worth(bound(a, points[0])) == f(points[0])
    assert unbound(bound(a, points[0])) == a


def test_division_knows_its_bounds_up_to_the_largest_size() -> None:
  """What is divided needs no room beyond its own."""
  most = 2 ** 31 - 2
  a, b = UOp.variable("a", 1, most), UOp.variable("b", 1, 100)
  quotient, rest = Size(a) // Size(b), Size(a) % Size(b)
  assert isinstance(quotient, Size) and isinstance(rest, Size)
  assert (quotient.low, quotient.high, rest.low, rest.high) == (0, most, 0, 99)
  for x, d in ((most, 1), (most, 100), (99, 100), (7, 2)):
    values = {a.arg: x, b.arg: d}
    assert (worth(quotient, values), worth(rest, values)) == divmod(x, d)


def test_equal_sizes_are_one() -> None:
  assert (n + 1) * 2 == 2 * n + 2 and (n * 8) // n == 8 and n - n == 0 and (n * 4) % 4 == 0
  assert (n * m) // m == n and (2 * n) * (m + 1) == n * m * 2 + n + n
  assert n != m and n != 1 and n + 0 == n and hash(n + 1) == hash(1 + n)
  assert (n <= 5) is True and (n > 5) is False and (n < n + 1) is True and (n * n >= n) is True


def test_the_lesser_of_two_is_known_to_be() -> None:
  cut = n + larger(-z, -n)                    # n less the lesser of z and n
  assert always_most(smaller(cut, 1), cut) and always_most(smaller(n, z), z) and always_most(larger(n, z), n + z)
  assert larger(n * 8, n) == n * 8 and smaller(n, n + z) == n


def test_the_lesser_and_the_greater_of_two_are_both() -> None:
  assert larger(n, m) + smaller(n, m) == n + m and larger(n, 2 * m) * 3 + 3 * smaller(2 * m, n) - 6 * m == 3 * n
  assert n + larger(3 - n, 0) + smaller(3 - n, 0) == 3        # what a pad to a size gives that may be exceeded
  assert larger(n, m) * 2 + smaller(n, m) != n + m + larger(n, z)


def test_text_is_an_expression() -> None:
  assert [str(s) for s in (n, n + 1, 2 * n * m + 1, -n, n // 2, (n + 1) % 2)] == [
    "n", "n + 1", "2*m*n + 1", "-n", "n//2", "(n + 1) % 2"]
  assert str((2, n, 8)) == "(2, n, 8)" and f"{n:,}" == "n"
  assert [str(s) for s in (smaller(n, 2), 7 - smaller(n, m) * 2, smaller(n + 1, 2 * m) + 3, larger(n, m))] == [
    "min(n, 2)", "2*max(-n, -m) + 7", "min(n + 1, 2*m) + 3", "max(n, m)"]


def test_what_is_not_known_is_refused() -> None:
  with pytest.raises(InvalidArgument, match=r"whether n < 3 depends on the value of n in 1\.\.5"): bool(n < 3)
  with pytest.raises(InvalidArgument, match="an int is needed here"): range(n)
  with pytest.raises(InvalidArgument, match="divisor is not proven to be above 0"): n // z
  with pytest.raises(InvalidArgument, match="more than 32 bits"): Size(UOp.variable("big", 0, 1 << 30)) * 8
  with pytest.raises(InvalidArgument, match="Variable n has no value; give it one with bind"): print(n.value)
  with pytest.raises(TypeError): n + "1"


SIZES = [1, 2, 3, n, m, n + 1, 2 * n, z, n * m]


@st.composite
def movements(draw: st.DrawFn) -> tuple[tuple[Any, ...], list[tuple[Ops, Any]]]:
  """A shape and a chain of movements with sizes that launches decide."""
  start = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
  shape, steps = start, []
  for _ in range(draw(st.integers(1, 5))):
    op = draw(st.sampled_from([Ops.RESHAPE, Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.SHRINK, Ops.FLIP]))
    rank = len(shape)
    if op is Ops.RESHAPE:
      at = draw(st.integers(0, rank))
      kind = draw(st.sampled_from(["one", "join", "split"]))
      if kind == "join" and at + 1 < rank: arg: Any = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:])
      elif kind == "split" and at < rank:
        part = draw(st.sampled_from([2, n, m]))
        if shape[at] % part != 0: continue
        halves = [part, shape[at] // part]
        arg = (*shape[:at], *(halves if draw(st.booleans()) else halves[::-1]), *shape[at + 1:])
      else: arg = (*shape[:at], 1, *shape[at:])
    elif op is Ops.PERMUTE: arg = tuple(draw(st.permutations(range(rank))))
    elif op is Ops.EXPAND: arg = tuple(draw(st.sampled_from([1, 3, n, z])) if s == 1 else s for s in shape)
    elif op is Ops.PAD: arg = tuple((draw(st.sampled_from([0, 0, 1, z])), draw(st.sampled_from([0, 0, 2, n])))
                                    for _ in shape)
    elif op is Ops.FLIP: arg = tuple(draw(st.booleans()) for _ in shape)
    else:
      bounds = []
      for s in shape:
        options = [(a, b) for a in (0, 1, z, n) for b in (s, s - 1, n, a + 1)
                   if always_most(a, b) and always_most(b, s) and always_most(0, a)]
        bounds.append(draw(st.sampled_from([(0, s), *options])))
      arg = tuple(bounds)
    after = ShapeTracker.contiguous(shape).apply(op, arg).shape
    if len(after) > 5 or math.prod(worth(s, {u.arg: u.arg.max for u in (N, M, Z)}) for s in after) > 2000: continue
    shape = after
    steps.append((op, arg))
  return start, steps


def with_values(thing: Any, values: Values) -> Any:
  return tuple(with_values(x, values) for x in thing) if isinstance(thing, tuple) else worth(thing, values)


@settings(max_examples=examples(150))
@given(movements(), st.data())
def test_views_are_those_of_the_values(case: tuple[tuple[Any, ...], list[tuple[Ops, Any]]],
                                       data: st.DataObject) -> None:
  start, steps = case
  tracker, shapes = ShapeTracker.contiguous(start), [start]
  for op, arg in steps:
    tracker = tracker.apply(op, arg)
    shapes.append(tracker.shape)
  ranges = [UOp.range(s, i) for i, s in enumerate(tracker.shape)]
  number, valid = tracker.expression(ranges)
  at, inside = list(ranges), UOp.const(dtypes.bool, True)
  for (op, arg), before in reversed(list(zip(steps, shapes))):
    at, gate = move_indices(op, arg, before, at, {})
    inside = inside & gate
  for values in valued(data.draw, 2):
    sizes = with_values(start, values)
    expected = numbers = np.arange(math.prod(sizes)).reshape(sizes)
    for op, arg in steps: expected = numpy_move(op, with_values(arg, values) if op is not Ops.FLIP else arg, expected)
    assert expected.shape == with_values(tracker.shape, values)
    variables = {u: values[u.arg] for u in (N, M, Z)}
    for index in list(np.ndindex(*expected.shape))[::max(1, expected.size // 60)]:
      known = {**variables, **{r: i for r, i in zip(ranges, index)}}
      if expected[index] == -1:
        assert not evaluate(valid, known) and not evaluate(inside, known)
        continue
      assert evaluate(valid, known) and evaluate(inside, known)
      assert evaluate(number, known) == expected[index]
      assert numbers[tuple(evaluate(a, known) for a in at)] == expected[index]


def test_common_chains_need_no_division() -> None:
  """A cache of keys: cut, split into heads, transposed."""
  view = ShapeTracker.contiguous((2, 16, 8))
  for op, arg in [(Ops.SHRINK, ((0, 2), (0, z + 1), (0, 8))), (Ops.RESHAPE, (2, z + 1, 2, 4)),
                  (Ops.PERMUTE, (0, 2, 1, 3)), (Ops.RESHAPE, (4, z + 1, 4))]:
    view = view.apply(op, arg)
  number, _ = view.expression([UOp.range(s, i) for i, s in enumerate(view.shape)])
  dense = ShapeTracker.contiguous((2, n, 8)).apply(Ops.RESHAPE, (n * 16,)).apply(Ops.RESHAPE, (2, n * 2, 4))
  assert len(dense.views) == 1 and dense.is_contiguous
  back = dense.apply(Ops.PERMUTE, (1, 0, 2)).apply(Ops.RESHAPE, (n, 2, 2, 4))
  assert len(back.views) == 1
  flat, _ = back.expression([UOp.range(s, i) for i, s in enumerate(back.shape)])
  assert not any(u.op in (Ops.IDIV, Ops.MOD) for u in flat.toposort())
