"""Simplification keeps meaning: random expressions have the same value before and after; and it does simplify."""
from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.test_shape import evaluate
from tests.strength import examples
from tinyhw.ir import proof, semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.symbolic import least, linear, most, polynomial, simplify
from tinyhw.ir.uop import Ops, UOp

RANGES = [UOp.range(size, i) for i, size in enumerate((1, 2, 3, 5, 8, 12))]
N, M = UOp.variable("n", 1, 9), UOp.variable("m", -4, 4)
COUNTED = [UOp.range(N, 20), UOp.range(N * 2, 21), UOp.range(M + 5, 22)]     # loops whose ends launches decide
BOUNDED = [*RANGES, N, M, *COUNTED]
n = UOp.variable("opaque", 0, 100)
ZERO = UOp.variable("zero", -9, 0)
i, j, k = UOp.range(64, 10), UOp.range(10, 11), UOp.range(7, 12)


@st.composite
def integers(draw: st.DrawFn, depth: int = 4) -> UOp:
  """A random int32 expression of ranges and variables."""
  if depth == 0 or draw(st.integers(0, 4)) == 0:
    if draw(st.booleans()): return draw(st.sampled_from(BOUNDED))
    return UOp.const(dtypes.int32, draw(st.sampled_from([0, 1, 2, 3, 4, 6, 8, 12, 100, -1, -3, 2 ** 31 - 1, -2 ** 31])))
  a, b = draw(integers(depth - 1)), draw(integers(depth - 1))
  op = draw(st.sampled_from([Ops.ADD, Ops.ADD, Ops.MUL, Ops.MUL, Ops.SUB, Ops.IDIV, Ops.IDIV, Ops.MOD, Ops.MOD, Ops.MAX,
                             Ops.NEG, Ops.WHERE, Ops.AND, Ops.SHR, Ops.XOR]))
  if op in (Ops.IDIV, Ops.MOD) and draw(st.integers(0, 4)):
    b = UOp.const(dtypes.int32, draw(st.sampled_from([1, 2, 3, 4, 6, 12])))
  if op is Ops.MUL and draw(st.integers(0, 4)):
    b = UOp.const(dtypes.int32, draw(st.sampled_from([0, 1, 2, 3, 4, 12, -1])))
  if op is Ops.NEG: return -a
  if op is Ops.WHERE: return draw(booleans(depth - 1)).where(a, b)
  return a.alu(op, b)


@st.composite
def booleans(draw: st.DrawFn, depth: int = 3) -> UOp:
  """A random condition."""
  if depth == 0 or draw(st.booleans()):
    a, b = draw(integers(max(depth - 1, 0))), draw(integers(max(depth - 1, 0)))
    return a.alu(draw(st.sampled_from([Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ])), b)
  a, b = draw(booleans(depth - 1)), draw(booleans(depth - 1))
  op = draw(st.sampled_from([Ops.AND, Ops.OR, Ops.XOR, Ops.CMPNE, Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPEQ]))
  return a.alu(op, b if draw(st.integers(0, 3)) else UOp.const(dtypes.bool, draw(st.booleans())))


def points(draw: st.DrawFn) -> list[dict[UOp, int]]:
  """Values of ranges and variables: ends and what is between. One draw is their seed, for each draw takes long."""
  rng, found = random.Random(draw(st.integers(0, 1 << 32))), []
  def among(low: int, high: int) -> int: return rng.choice((low, high, rng.randint(low, high)))
  for _ in range(6):
    values = {u: among(int(u.vmin), int(u.vmax)) for u in (*RANGES, N, M)}
    for u in COUNTED: values[u] = among(0, evaluate(u.src[0], values) - 1)
    found.append(values)
  return found


@settings(max_examples=examples(200))
@given(st.data())
def test_meaning_is_kept(data: st.DataObject) -> None:
  before = data.draw(st.one_of(integers(), booleans()))
  after = simplify(before)
  assert after.dtype is before.dtype
  for values in points(data.draw):
    value = evaluate(before, values)
    assert evaluate(after, values) == value
    assert after.vmin <= value <= after.vmax and before.vmin <= value <= before.vmax
  assert simplify(after) is after


SIZES = (N, N * 2, M + 5, N + 3, N * (M + 5), UOp.const(dtypes.int32, 4))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_flat_indices_come_apart_again(axes: int) -> None:
  """The number of an element in row-major order, of sizes that launches decide."""
  for sizes in itertools.product(SIZES, repeat=axes): comes_apart(sizes)


def comes_apart(sizes: tuple[UOp, ...]) -> None:
  indices = [UOp.range(simplify(size), 30 + at) for at, size in enumerate(sizes)]
  flat = UOp.const(dtypes.int32, 0)
  for size, index in zip(sizes, indices): flat = flat * size + index
  inner = UOp.const(dtypes.int32, 1)
  for index, size in reversed(list(zip(indices, sizes))):
    assert simplify(simplify(flat // inner) % size) is index
    inner = simplify(inner * size)
  assert simplify(flat < inner).arg is True and simplify(flat // inner).arg == 0


@settings(max_examples=examples(100))
@given(st.data())
def test_bounds_hold(data: st.DataObject) -> None:
  """By proof as by interval, and divisions by what a launch decides mean what they did."""
  a, b = data.draw(integers()), data.draw(st.sampled_from([N, N * 2 + 1, M + 5, N * (M + 5)]))
  forms = [a, a + b * data.draw(st.sampled_from(COUNTED)), a // b, a % b]
  for u in forms:
    low, high, after = least(u), most(u), simplify(u)
    for values in points(data.draw):
      value = evaluate(u, values)
      assert low <= value <= high and evaluate(after, values) == value


@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD])
def test_bounds_of_division_are_those_of_its_values(op: Ops) -> None:
  """Tight for a quotient by a constant, or by what is not negative; whole where nothing is known."""
  ends = [(-7, -2), (-7, 9), (0, 9), (3, 5), (0, 0)]
  for (low, high), (least_d, most_d) in itertools.product(ends, [(a, b) for a in range(-3, 4) for b in range(a, 4)]):
    u = UOp.variable("x", low, high).alu(op, UOp.variable("d", least_d, most_d))
    values = {semantics.alu(op, dtypes.int32, x, d) for x in range(low, high + 1) for d in range(least_d, most_d + 1)}
    assert u.vmin <= min(values) and max(values) <= u.vmax
    if op is Ops.IDIV and (least_d == most_d != 0 or 0 <= least_d < most_d):
      assert (u.vmin, u.vmax) == (min(values), max(values)), ((low, high), (least_d, most_d))


FACTORS = [(UOp.variable("a", 1, 4), range(1, 5)), (UOp.variable("b", 0, 3), range(4)), (M, range(-4, 5)),
           (UOp.range(3, 30), range(3))]


@settings(max_examples=examples(150))
@given(st.dictionaries(st.lists(st.integers(0, 3), max_size=2).map(lambda f: tuple(sorted(f))), st.integers(-3, 3),
                       min_size=1, max_size=5))
def test_a_proven_bound_is_one(terms: dict[tuple[int, ...], int]) -> None:
  """Of any polynomial, whether it grows, falls, or does both along its atoms."""
  p: proof.Polynomial = {}
  for factors, c in terms.items():
    p = proof.added(p, {tuple(sorted((FACTORS[f][0] for f in factors), key=lambda u: u.order)): c})
  totals = [sum(c * math.prod(point[f] for f in factors) for factors, c in terms.items())
            for point in itertools.product(*(values for _, values in FACTORS))]
  assert proof.bound(p, False, polynomial) <= min(totals) <= max(totals) <= proof.bound(p, True, polynomial)


def test_a_bound_is_exact_where_all_grows_or_falls() -> None:
  a, b = FACTORS[0][0], UOp.variable("b5", 1, 5)
  for u, low, high in ((a * b - a, 0, 16), (a * b - b, 0, 15), (a * b * 2 - a - b, 0, 31), (a - a * b, -16, 0)):
    assert (least(u), most(u)) == (low, high)


def test_counters_on_their_own_leave_the_steps_to_others() -> None:
  """However many terms have nothing to do with the rest, the rest is bounded as it would be without them."""
  a, b = FACTORS[0][0], UOp.variable("b5", 1, 5)
  rest = polynomial(a * b - a)
  alone: proof.Polynomial = {(UOp.range(3, axis),): 1 for axis in range(100, 140)}
  for upper in (False, True):
    assert proof.bound(proof.added(rest, alone), upper, polynomial) == \
      proof.bound(rest, upper, polynomial) + (2 * 40 if upper else 0)


@settings(max_examples=examples(100))
@given(st.data())
def test_linear_form_is_the_same_number(data: st.DataObject) -> None:
  u = data.draw(integers())
  terms, constant = linear(u)
  for values in points(data.draw):
    total = constant + sum(evaluate(t, values) * c for t, c in terms.items())
    assert (total - evaluate(u, values)) % 2 ** 32 == 0


@pytest.mark.parametrize("before, after", [
  ((i * 10 + j) // 10, i),
  ((i * 10 + j) % 10, j),
  (((i * 10 + j) // 10) * 10 + (i * 10 + j) % 10, i * 10 + j),
  ((i * 64 + j * 4 + 3) // 4, i * 16 + j),
  ((i * 64 + j * 4 + 3) % 4, UOp.const(dtypes.int32, 3)),
  ((i * 4 + 3) < 100, i < 25),
  ((i // 4) // 4, i // 16),
  ((i % 32) % 8, i % 8),
  ((i + 5) - 5, i),
  (i * 0 + j, j),
  ((i < 64) & (j < 5), j < 5),
  ((i < 5).logical_not().logical_not(), i < 5),
  (i + i + i, i * 3),
  ((i < 3).where(j, j), j),
  ((n // 4) * 4 + n % 4, n),
  ((n // 4) * 8 + (n % 4) * 2 + j, n * 2 + j),
  ((n % 12) // 4, (n // 4) % 3),
  ((n * 4) % 12, (n % 3) * 4),
  ((n * 6 + 5) % 9, (n * 2 + 1) % 3 * 3 + 2),
  (n.maximum(200), UOp.const(dtypes.int32, 200)),
  ((N * 4) % 4, UOp.const(dtypes.int32, 0)),
  ((M * 4 + 16) % 4, UOp.const(dtypes.int32, 0)),
  ((M * 4 + 16) % 8, (M + 4) % 2 * 4),
  ((M * 4 + 18) % 4, UOp.const(dtypes.int32, 2)),
  (N * 7 % 1, UOp.const(dtypes.int32, 0)),
  ((N * 8 - N * 7) // 4, N // 4),
  (((N * N - N) * 4 + 3) % 4, UOp.const(dtypes.int32, 3)),
  (((N * N - N) * 4 + 3) // 4, N * N + N * -1),
  (N - 2 ** 30 - 2 ** 30, N + UOp.const(dtypes.int32, -2 ** 31)),
  (ZERO + 2 ** 30 + (2 ** 30 - 1), ZERO + (2 ** 31 - 1)),
  ((N * 8 + k) // 8, N),
  ((N * 8 + k) % N, k % N),
  ((N * N * 6) // (N * 2), N * 3),
  ((N + 1) * (N + 2), N * N + N * 3 + 2),
  ((N * 8 - 1) // N, UOp.const(dtypes.int32, 7)),
  (COUNTED[0] < N, UOp.const(dtypes.bool, True)),
  (COUNTED[0] * 8 + k < N * 8, UOp.const(dtypes.bool, True)),
  ((N * N).maximum(N), N * N),
  ((N * 3).eq(N * 2), UOp.const(dtypes.bool, False)),
  ((N * 2 - N).eq(N), UOp.const(dtypes.bool, True)),
])
def test_simplest_form(before: UOp, after: UOp) -> None:
  assert simplify(before) is simplify(after)
  assert len(simplify(before).toposort()) <= len(after.toposort())


def test_a_loop_that_may_not_run_stays_one() -> None:
  once, perhaps = UOp.variable("once", 1, 2) // 2 + 1, UOp.variable("perhaps", 0, 1)
  assert simplify(UOp.range(perhaps, 0)).op is Ops.RANGE and simplify(UOp.range(perhaps * 0 + 1, 0)).arg == 0
  assert simplify(UOp.range(once, 0)).op is Ops.RANGE and once.vmin == 1


def test_numbers_from_memory_may_wrap() -> None:
  x = UOp.new_buffer("X", 1, dtypes.int32)
  big = UOp.const(dtypes.int32, 2 ** 31 - 1).reshape((1,))
  assert simplify((x + big) < big).op is Ops.CMPLT          # x + big < big is not x < 0 where it wraps
  assert simplify((x * UOp.const(dtypes.int32, 4).reshape((1,))) // UOp.const(dtypes.int32, 4).reshape((1,))) is not x


def test_floats_keep_their_rounding() -> None:
  x = UOp.new_buffer("X", 1, dtypes.float32).reshape(())
  one = UOp.const(dtypes.float32, 1.0)
  zero, minus_zero = (UOp.const(dtypes.float32, v) for v in (0.0, -0.0))
  assert all(simplify(u) is x for u in (x * one, x - zero, x + minus_zero, minus_zero + x))
  # -0.0 + 0.0 is 0.0.
  for u in (x + zero, x - minus_zero, x - x, x * zero, x / x, (x + one) - one): assert simplify(u) is u
  assert simplify(UOp.const(dtypes.float32, 0.1) + UOp.const(dtypes.float32, 0.2)).arg != 0.1 + 0.2


def test_rules_that_undo_each_other_are_found() -> None:
  x = UPat.var("x")
  endless = PatternMatcher([(UPat(Ops.ADD, None, (x, UPat(Ops.CONST, "c"))), lambda x, c: x - c),
                            (UPat(Ops.SUB, None, (x, UPat(Ops.CONST, "c"))), lambda x, c: x + c)])
  with pytest.raises(RuntimeError, match="rewriting does not end"): graph_rewrite(i + 1, endless)


def test_patterns_bind_names_once_and_try_both_orders() -> None:
  x, y = UPat.var("x"), UPat.var("y")
  twice = PatternMatcher([(UPat(Ops.ADD, None, (x, UPat(Ops.MUL, None, (x, y)))), lambda x, y: x * (y + 1))])
  assert twice.rewrite(i * j + i) is i * (j + 1)
  assert twice.rewrite(i * j + k) is None
