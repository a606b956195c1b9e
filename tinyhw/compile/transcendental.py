"""EXP2, LOG2 and SIN in plain arithmetic, for targets whose renderer says that it has no instruction for them.

A half is computed as a float, and a float in double precision with short series, which leaves it half a unit in the
last place and a little more. A double is computed with the rounding errors carried along where they matter: under one
unit. Every operand works: NaN, infinities, subnormal numbers, and sines of numbers as large as there are, whose
multiples of pi/2 are taken away with as many bits of 2/pi as that takes (Payne and Hanek, 1983).

Coefficients are computed here from what they mean. Nothing relies on MULACC rounding once or on it rounding twice.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from tinyhw.ir import semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

ROUNDER = 1.5 * 2.0**52         # adding it leaves a double's nearest integer in the low bits
SIGN, ABSOLUTE = -(1 << 63), (1 << 63) - 1
UPPER_HALF = -(1 << 27)         # keeps 26 bits of a double's significand: products of two such are exact
LIMB = 32                       # bits of the integers that long multiplication works on


def lower(u: UOp) -> UOp:
  """What EXP2, LOG2 or SIN of a float means, without that op. For float16 the op of a float32 remains inside."""
  x, dtype = u.src[0], u.dtype
  if dtype is dtypes.float16: return x.cast(dtypes.float32).alu(u.op).cast(dtype)
  compute = {Ops.EXP2: _exp2, Ops.LOG2: _log2, Ops.SIN: _sin}[u.op]
  return compute(x.cast(dtypes.float64), dtype is dtypes.float64).cast(dtype)


# *** parts ***

def _series(x: UOp, coefficients: Sequence[float]) -> UOp:
  """The polynomial with the coefficients, that of x^0 first."""
  total = x.const_like(coefficients[-1])
  for c in reversed(coefficients[:-1]): total = total.alu(Ops.MULACC, x, x.const_like(c))
  return total


def _bits(x: UOp) -> UOp: return x.bitcast(dtypes.int64)


def _upper(x: UOp) -> UOp: return (_bits(x) & UPPER_HALF).bitcast(dtypes.float64)


def _float_bits(value: float) -> int:
  return semantics.wrap(semantics.to_bits(value, dtypes.float64), dtypes.int64)


def _split(value: float) -> tuple[float, float]:
  """A number as one of 26 bits and the rest."""
  upper = semantics.from_bits((semantics.to_bits(value, dtypes.float64) >> 27) << 27, dtypes.float64)
  return float(upper), value - upper


# *** 2^x ***

def _exp2(x: UOp, precise: bool) -> UOp:
  """2^x = 2^n * 2^f with n the nearest integer, |f| <= 1/2, and Taylor's series for 2^f."""
  low, high = (-1080.0, 1030.0) if precise else (-160.0, 136.0)     # beyond, the result is 0 or infinite
  bounded = (x < low).where(x.const_like(low), (x > high).where(x.const_like(high), x))
  rounded = bounded + ROUNDER
  n = _bits(rounded) - _float_bits(ROUNDER)
  terms = 14 if precise else 9
  power = _series(bounded - (rounded - ROUNDER), [math.log(2)**k / math.factorial(k) for k in range(terms)])
  # A float's exponents leave room in a double. A double's do not: scaling in two steps rounds a subnormal result once.
  if not precise: return x.ne(x).where(x, (_bits(power) + (n << 52)).bitcast(dtypes.float64))
  half = n >> 1
  def scale(e: UOp) -> UOp: return ((e + 1023) << 52).bitcast(dtypes.float64)
  return x.ne(x).where(x, power * scale(half) * scale(n - half))


# *** log2(x) ***

def _log2(x: UOp, precise: bool) -> UOp:
  """x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log2(m) = 2/ln2 * artanh(s), s = (m-1)/(m+1), by artanh's series."""
  tiny = x < 2.0**-1022                       # only a double can be: float's subnormal numbers are normal doubles
  scaled = tiny.where(x * 2.0**54, x) if precise else x
  e = (_bits(scaled) - _float_bits(math.sqrt(0.5))) >> 52
  m = (_bits(scaled) - (e << 52)).bitcast(dtypes.float64)
  whole = e.cast(dtypes.float64)
  if precise: whole = tiny.where(whole - 54.0, whole)
  f, factor = m - 1.0, 2 / math.log(2)        # m - 1 is exact
  d = f + 2.0
  s = f / d
  z = s * s
  series = z * _series(z, [factor / (2 * k + 3) for k in range(11 if precise else 5)])      # without its first term
  if not precise: result = whole + s * (series + factor)
  else:
    # What the quotient and the product with the factor lose is added at the end.
    s1, d1, (factor1, factor2) = _upper(s), _upper(d), _split(factor)
    s2, d2 = s - s1, d - d1
    remainder = (f - s1 * d1) - s2 * d1 - s1 * d2 - s2 * d2 - s * (f - (d - 2.0))
    lost_factor = _lost_of_factor(factor)
    low = s1 * factor2 + (s2 + remainder / d) * factor + s * lost_factor + s * series
    high = s1 * factor1
    total = whole + high
    result = total + ((whole - total) + high + low)
  result = (x < math.inf).where(result, x)
  return x.eq(0.0).where(x.const_like(-math.inf), (x < 0.0).where(x.const_like(math.nan), result))


@functools.cache
def _lost_of_factor(factor: float) -> float:
  """2/ln2 less its double, from ln2 in integers."""
  bits = 160
  ln2 = sum((1 << bits) // (k << k) for k in range(1, bits))          # ln2 = sum of 1 / (k 2^k)
  exact = (2 << 2 * bits) // ln2
  numerator, denominator = factor.as_integer_ratio()
  return math.ldexp(exact - (numerator << bits) // denominator, -bits)


# *** sin(x) ***

def _sin(x: UOp, precise: bool) -> UOp:
  """|x| = q * pi/2 + r with |r| <= pi/4, then a sine or a cosine of r, by Taylor's series, with a sign."""
  absolute = (_bits(x) & ABSOLUTE).bitcast(dtypes.float64)
  quadrant, r, tail = _reduce(absolute, precise)
  small = absolute < math.pi / 4
  r, quadrant = small.where(absolute, r), small.where(quadrant.const_like(0), quadrant)
  z = r * r
  terms = 9 if precise else 6
  odd = [(-1)**k / math.factorial(2 * k + 1) for k in range(terms)]
  even = [(-1)**k / math.factorial(2 * k) for k in range(terms)]
  cube = z * r * _series(z, odd[1:])
  square = z * -0.5
  if tail is not None:
    tail = small.where(tail.const_like(0.0), tail)
    sine = r + (cube + tail * (square + 1.0))
    # 1 + square loses bits, which are known: (1 - rounded) + square.
    rounded = square + 1.0
    cosine = rounded + (((1.0 - rounded) + square) + (z * z * _series(z, even[2:]) - r * tail))
  else: sine, cosine = r + cube, square + 1.0 + z * z * _series(z, even[2:])
  result = (quadrant & 1).eq(0).where(sine, cosine)
  signs = (_bits(x) ^ (quadrant << 62)) & SIGN            # quadrants 2 and 3 are negative, and so is sin(-x)
  result = (_bits(result) ^ signs).bitcast(dtypes.float64)
  return (absolute < math.inf).where(result, x.const_like(math.nan))


def _reduce(x: UOp, precise: bool) -> tuple[UOp, UOp, UOp | None]:
  """(quadrant, r, what r lost) of a positive double; in a short one only 24 bits are set.

  x = m * 2^k with an integer m. Of 2/pi only the bits from 2^(2-k) on matter, the others give multiples of four
  quadrants: the product of m with a window of them is a fraction of a turn. The window has bits for what m takes up,
  for the quadrant, for a result that is as small as it can be (2^-62 for a double) and for that result's precision.
  """
  digits, leading, size = (53, 2, 6) if precise else (24, 1, 3)
  bits, one = _bits(x).bitcast(dtypes.uint64), UOp.const(dtypes.uint64, 1)
  m = ((bits & ((1 << 52) - 1)) | (1 << 52)) >> (53 - digits)
  shift = (bits >> 52) - (1023 + digits - 1 + 2 - leading * LIMB)       # modulo 2^64 where x is too small to matter
  window = _window(shift, leading, size, 6 if precise else 3)
  parts = [m] if not precise else [m & 0xFFFFFFFF, m >> LIMB]
  columns = _multiply(parts, window)
  turn = (columns[0] << LIMB) | columns[1]                              # in 2^-64 of a turn
  quadrant = (turn + (one << 61)) >> 62
  fraction = (turn << 2).bitcast(dtypes.int64)                          # in 2^-64 of a quadrant, from -1/2 to 1/2
  if not precise: return quadrant.bitcast(dtypes.int64), fraction.cast(dtypes.float64) * (math.pi / 2 * 2.0**-64), None
  rest = (columns[2] << LIMB) | columns[3]
  fraction = fraction | (rest >> 62).bitcast(dtypes.int64)
  high = fraction.cast(dtypes.float64)
  # The cast rounds to 2^64 or -2^64 no fraction, so what it lost can be had back from integers.
  low = (fraction - high.cast(dtypes.int64)).cast(dtypes.float64) + (rest << 2).cast(dtypes.float64) * 2.0**-64
  a1, (b1, b2) = _upper(high), _split(math.pi / 2)
  a2 = high - a1
  lost = _lost_of_quarter_turn()
  r1, r2 = a1 * b1, a1 * b2 + a2 * b1 + a2 * b2 + high * lost + low * (math.pi / 2)
  r = r1 + r2
  return quadrant.bitcast(dtypes.int64), r * 2.0**-64, ((r1 - r) + r2) * 2.0**-64


def _window(shift: UOp, leading: int, size: int, stages: int) -> list[UOp]:
  """`size` limbs of 2/pi after `leading` zero limbs, from bit `shift` on, the first bits first."""
  need = [size + 1]
  for stage in range(stages): need.append(need[-1] + (1 << stage))
  limbs = [UOp.const(dtypes.uint64, v) for v in [0] * leading + _two_over_pi(need[-1] - leading)]
  index = shift >> 5
  for stage in reversed(range(stages)):       # a barrel shifter of whole limbs
    chosen = (index & (1 << stage)).ne(0)
    limbs = [chosen.where(limbs[i + (1 << stage)], limbs[i]) for i in range(need[stage])]
  back = UOp.const(dtypes.uint64, LIMB) - (shift & 31)
  return [(((a << LIMB) | b) >> back) & 0xFFFFFFFF for a, b in zip(limbs, limbs[1:])]


def _multiply(m: Sequence[UOp], window: Sequence[UOp]) -> list[UOp]:
  """The product modulo 2^(32 * limbs of the window). `m` has its low limb first, the window and the result do not."""
  size = len(window)
  terms: list[list[UOp]] = [[] for _ in range(size)]        # terms[0] is the lowest limb
  for i, part in enumerate(m):
    for j, limb in enumerate(reversed(window)):
      if i + j >= size: continue
      product = part * limb
      terms[i + j].append(product & 0xFFFFFFFF)
      if i + j + 1 < size: terms[i + j + 1].append(product >> LIMB)
  found: list[UOp] = []
  carry: list[UOp] = []
  for column in terms:
    total = functools.reduce(UOp.__add__, column + carry)
    carry = [total >> LIMB]
    found.append(total & 0xFFFFFFFF)
  return found[::-1]


@functools.cache
def _pi(bits: int) -> int:
  """pi * 2^bits, by Machin's formula."""
  def arctan_of_inverse(n: int) -> int:
    total = term = (1 << bits + 16) // n
    k = 1
    while term:
      term = -(abs(term) // (n * n)) if term > 0 else abs(term) // (n * n)
      k += 2
      total += (abs(term) // k) * (1 if term > 0 else -1)
    return total
  return (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) >> 16


@functools.cache
def _two_over_pi(limbs: int) -> list[int]:
  """The first limbs of 2/pi after the point."""
  bits = limbs * LIMB
  value = (2 << 2 * bits + 64) // (_pi(bits + 64))
  return [value >> (bits - LIMB * (i + 1)) & 0xFFFFFFFF for i in range(limbs)]


@functools.cache
def _lost_of_quarter_turn() -> float:
  """pi/2 less its double."""
  numerator, denominator = (math.pi / 2).as_integer_ratio()
  return math.ldexp((_pi(160) >> 1) - (numerator << 160) // denominator, -160)
