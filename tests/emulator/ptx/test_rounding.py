"""Directed roundings beside exact arithmetic: no f64 lies between a result and the exact value, on the side it says."""
from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinyhw.emulator.ptx.meanings import floats
from tinyhw.emulator.ptx.meanings.directed import FUNCTIONS
from tinyhw.emulator.values import rounding
from tinyhw.emulator.values.ops import Ops
from tinyhw.emulator.values.rounding import DOWN, UP, ZERO

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SHORT = st.builds(lambda m, e: math.ldexp(m, e), st.integers(-40, 40), st.integers(-8, 8))  # exact results, ties, zeros
NEAR = st.builds(lambda m, e: math.ldexp(1 + m * 2.0 ** -52, e), st.integers(-9, 9), st.integers(-3, 3))
EDGE = st.builds(lambda m, e, s: s * math.ldexp(1 + m * 2.0 ** -52, e), st.integers(0, (1 << 52) - 1),
                 st.sampled_from([-1074, -1022, -538, -511, -451, -450, 449, 450, 511, 512, 970, 995, 1022, 1023]),
                 st.sampled_from([-1, 1]))
NUMBERS = st.one_of(FINITE, SHORT, NEAR, EDGE)
LARGEST = np.finfo(np.float64).max


def neighbours(exact: Fraction) -> tuple[float, float]:
  """The greatest f64 at most, and the smallest at least, an exact value; infinities are numbers here."""
  try: near = float(exact)
  except OverflowError: return (LARGEST, math.inf) if exact > 0 else (-math.inf, -LARGEST)
  if Fraction(near) == exact: return near, near
  return (near, math.nextafter(near, math.inf)) if Fraction(near) < exact else (math.nextafter(near, -math.inf), near)


def expected(exact: Fraction, mode: int) -> float:
  low, high = neighbours(exact)
  if mode == UP: return high
  if mode == DOWN: return low
  return low if exact > 0 else high


def root(x: float, mode: int) -> float:
  """The root of a positive number, by whole numbers."""
  n, d = x.as_integer_ratio()
  e = 1100 + d.bit_length()
  below = Fraction(math.isqrt((n << 2 * e) // d), 1 << e)
  exact = below if below * below == Fraction(x) else below + Fraction(1, 1 << e + 1)  # no f64 lies between
  return expected(exact, mode)


EXACT: dict[str, tuple[int, Callable[..., Fraction], Callable[..., Any]]] = {
  "add": (2, lambda a, b: a + b, rounding.add),
  "mul": (2, lambda a, b: a * b, rounding.mul),
  "fma": (3, lambda a, b, c: a * b + c, rounding.fma),
  "div": (2, lambda a, b: a / b, lambda a, b, mode: FUNCTIONS["div"](mode, a, b))}


@pytest.mark.parametrize("mode", [UP, DOWN, ZERO])
@pytest.mark.parametrize("name", EXACT)
@given(data=st.data())
def test_of_two_numbers_and_three(name: str, mode: int, data: st.DataObject) -> None:
  count, exact, function = EXACT[name]
  rows = data.draw(st.lists(st.tuples(*[NUMBERS] * count).filter(lambda x: name != "div" or x[1] != 0),
                            min_size=1, max_size=12))
  if name == "fma":  # sums that cancel, nearly or to nothing
    rows += [(a, b, -a * b) for a, b, _ in rows if math.isfinite(a * b)]
  columns = [np.array(c) for c in zip(*rows)]
  with np.errstate(all="ignore"): got = function(*columns, mode)
  for row, r in zip(rows, got.tolist()):
    want = expected(exact(*map(Fraction, row)), mode)
    assert r == want, (row, r, want)
    if r and want: continue
    value = exact(*map(Fraction, row))
    if value: assert math.copysign(1, r) == (1 if value > 0 else -1), (row, r)


F32 = st.one_of(
  st.floats(width=32, allow_nan=False, allow_infinity=False),
  st.builds(lambda m, e, s: s * math.ldexp(m, e), st.integers(1, (1 << 24) - 1),
            st.sampled_from([-149, -148, -126, -98, -75, -74, -63, -51, -24, -12, 0]), st.sampled_from([-1, 1])))


def nearest32(exact: Fraction) -> float:
  """The f32 nearest to an exact value, ties to even."""
  if not exact: return 0.0
  e = max(exact.numerator.bit_length() - exact.denominator.bit_length() - 24, -149)
  while abs(exact) >= Fraction(2) ** (e + 24): e += 1
  while e > -149 and abs(exact) < Fraction(2) ** (e + 23): e -= 1
  value = round(exact / Fraction(2) ** e) * Fraction(2) ** e
  return math.copysign(math.inf, value) if abs(value) >= 2 ** 128 else float(value)


@given(rows=st.lists(st.tuples(F32, F32, F32), min_size=1, max_size=8), near=st.integers(-3, 3))
@example([(math.ldexp(8384513, -98), -math.ldexp(8392705, -98), 2.0 ** -126)], 0)  # just below a tie with 2^-126
def test_fused_f32(rows: list[tuple[float, float, float]], near: int) -> None:
  with np.errstate(all="ignore"):
    rows = rows + [(a, b, float(np.float32(-a * b * (1 + near * 2.0 ** -24)))) for a, b, _ in rows]
  rows = [row for row in rows if all(map(math.isfinite, row))]
  a, b, c = (np.array(x, np.float32).reshape(1, -1) for x in zip(*rows))
  with np.errstate(all="ignore"): got = Ops.fma(a, b, c)
  for row, r in zip(rows, got[0].tolist()):
    x, y, z = map(Fraction, row)
    assert r == nearest32(x * y + z), row


@pytest.mark.parametrize("mode", [UP, DOWN, ZERO])
@given(values=st.lists(NUMBERS.map(abs).filter(bool), min_size=1, max_size=12))
def test_roots(mode: int, values: list[float]) -> None:
  got = FUNCTIONS["sqrt"](mode, np.array(values))
  for x, r in zip(values, got.tolist()): assert r == root(x, mode), (x, r)


@pytest.mark.parametrize(("function", "exact"), [
  (floats.tanh, np.tanh), (floats.ex2, np.exp2), (floats.sin, np.sin), (floats.cos, np.cos),
  (floats.lg2, lambda x: np.log2(np.abs(x))), (floats.rsqrt, lambda x: 1 / np.sqrt(np.abs(x)))])
@given(values=st.lists(st.one_of(st.floats(-2.0 ** 5, 2.0 ** 5, width=32), st.floats(-0.0625, 0.0625, width=32)),
                       min_size=1, max_size=40))
def test_what_is_approximate_on_a_chip_is_the_nearest_here(function: Any, exact: Any, values: list[float]) -> None:
  """The manual's bounds are wider; f64 and a rounding leave half a unit in the last place and little more."""
  given_ = np.array(values, np.float32)
  if function in {floats.lg2, floats.rsqrt}: given_ = np.abs(given_[np.abs(given_) > 2.0 ** -126])
  want = exact(given_.astype(np.float64))
  with np.errstate(all="ignore"): got = function(Ops, given_).astype(np.float64)
  unit = np.spacing(np.abs(want.astype(np.float32))).astype(np.float64)
  turn = 2.0 ** -50 if function in {floats.sin, floats.cos} else 0  # what f64 leaves of angles near half a turn
  assert (np.abs(got - want) <= 0.501 * unit + turn).all(), (given_, got, want)


@pytest.mark.parametrize("mode", [UP, DOWN, ZERO])
def test_what_is_no_number_stays(mode: int) -> None:
  a = np.array([math.inf, -math.inf, math.nan, 1.0, math.inf])
  b = np.array([1.0, 1.0, 1.0, math.nan, -math.inf])
  with np.errstate(all="ignore"):
    np.testing.assert_array_equal(rounding.add(a, b, mode), a + b)
    np.testing.assert_array_equal(rounding.mul(a, b, mode), a * b)
    np.testing.assert_array_equal(FUNCTIONS["div"](mode, a, b), a / b)
    np.testing.assert_array_equal(FUNCTIONS["sqrt"](mode, a), np.sqrt(a))
    zeros = FUNCTIONS["div"](mode, np.array([1.0, -1.0, 0.0]), np.zeros(3))
    np.testing.assert_array_equal(zeros, [math.inf, -math.inf, math.nan])
