"""2**x, the logarithm to base 2 and the sine, in f64, from sums, products and quotients alone.

Functions of C libraries, and NumPy's, differ in their last bits from host to host. These give the same bits in NumPy
and in compiled code everywhere, within 3 units of f64's last place, for what is rounded to f32 or f16 after.
"""
from __future__ import annotations

from itertools import accumulate
from math import factorial, inf
from typing import Final

from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V

_LN2: Final = 0.6931471805599453
_TWO_OVER_LN2: Final = 2.8853900817779268
_TURN: Final = 6.283185307179586
_SHIFTER: Final = 1.5 * 2.0**52  # added to a number it leaves the nearest integer in the low bits
_ROOT_HALF: Final = 0.7071067811865476
# power series, each up to where the next term is below half a unit of the last place
_EXP2: Final = list(accumulate(range(2, 15), lambda c, k: c * _LN2 / k, initial=_LN2))
_LOG2: Final = [_TWO_OVER_LN2 / (2 * k + 1) for k in range(12)]
_SIN: Final = [(-1)**k / factorial(2 * k + 1) for k in range(1, 12)]


def _series(x: V, coefficients: list[float]) -> V:
  """The polynomial with these coefficients, the lowest first."""
  total = x * coefficients[-1] + coefficients[-2]
  for c in coefficients[-3::-1]: total = total * x + c
  return total


def exp2(o: O[V], x: V) -> V:
  """2**x; 0 and infinity beyond 1000, which is beyond f32 as well."""
  shifted = x + _SHIFTER
  r = x - (shifted - _SHIFTER)
  power = o.bits(o.bits(shifted, "u64") + 1023 << 52, "f64")
  y = (r * _series(r, _EXP2) + 1) * power
  return o.where(x > 1000, o.const("f64", inf), o.where(x < -1000, o.const("f64", 0), y))


def log2(o: O[V], x: V) -> V:
  """The logarithm to base 2; NaN with a sign of a negative number, as the manuals' examples of V_LOG have it."""
  m, e = o.frexp(x)
  low = m < _ROOT_HALF
  m, e = o.where(low, m * 2, m), o.where(low, e - 1, e)
  f = o.fdiv(m - 1, m + 1)
  y = f * _series(f * f, _LOG2) + o.to(e, "f64")
  y = o.where((x > 0) & (x < inf), y, o.where(x < 0, o.from_bits("f64", 0xFFF8 << 48), x))  # infinity, NaN
  return o.where(x == 0, o.const("f64", -inf), y)


def sin_of_turns(o: O[V], turns: V) -> V:
  """sin(2 pi x) for x from -1/4 to 1/4, where the sine of a rounded angle is as near as the angle is."""
  x = turns * _TURN
  s = x * x
  return x * (s * _series(s, _SIN) + 1)
