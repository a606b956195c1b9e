"""The functions of `GroupOp.LIBRARY` in plain arithmetic, for targets whose renderer says that it does not have them.

A half is computed as a float, and a float in double precision with short series, which leaves it half a unit in the
last place and a little more. A double is computed with the rounding errors carried along where they matter: under one
unit, TANH under two. Every operand works: NaN, infinities, zeros of both signs, subnormal numbers, and sines of numbers
as large as there are, whose multiples of pi/2 are taken away with as many bits of 2/pi as that takes (Payne and Hanek,
1983).

Coefficients are computed here from what they mean. Each operation rounds once and none is fused, so that all targets
give the same bits; but where a target has EXP2 and LOG2 of floats, EXP and LOG of floats are made of them.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

ROUNDER = 1.5 * 2.0**52         # adding it leaves a double's nearest integer in the low bits
SIGN, ABSOLUTE = -(1 << 63), (1 << 63) - 1
UPPER_HALF = -(1 << 27)         # keeps 26 bits of a double's significand: products of two such are exact
FRACTION = (1 << 52) - 1
LIMB = 32                       # bits of the integers that long multiplication works on
BITS = 160                      # of the constants that are computed in integers

Native = Callable[[Ops, DType], bool]


def lower(u: UOp, native: Native = lambda op, dtype: False) -> UOp:
  """What a function of floats means, without that op. Of float16 the op of float32 remains inside; `native` says which
  ops the target has."""
  dtype, src = u.dtype, u.src
  if dtype is dtypes.float16:
    first, *others = (s.cast(dtypes.float32) for s in src)
    return first.alu(u.op, *others).cast(dtype)
  if dtype is dtypes.float32:
    if u.op is Ops.EXP and native(Ops.EXP2, dtype): return _exp_of_exp2(src[0])
    if u.op is Ops.LOG and native(Ops.LOG2, dtype): return src[0].alu(Ops.LOG2) * math.log(2)
  precise = dtype is dtypes.float64
  wide = [s.cast(dtypes.float64) for s in src]
  return _FUNCTIONS[u.op](*wide, precise).cast(dtype)


# *** parts ***

def _series(x: UOp, coefficients: Sequence[float]) -> UOp:
  """The polynomial with the coefficients, that of x^0 first."""
  total = x.const_like(coefficients[-1])
  for c in reversed(coefficients[:-1]): total = total * x + c
  return total


def _bits(x: UOp) -> UOp: return x.bitcast(dtypes.int64)


def _double(bits: UOp) -> UOp: return bits.bitcast(dtypes.float64)


def _absolute(x: UOp) -> UOp: return _double(_bits(x) & ABSOLUTE)


def _upper(x: UOp) -> UOp: return _double(_bits(x) & UPPER_HALF)


def _clamp(x: UOp, low: float, high: float) -> UOp:
  """Within bounds; NaN stays."""
  return (x < low).where(x.const_like(low), (x > high).where(x.const_like(high), x))


def _nearest(x: UOp) -> tuple[UOp, UOp]:
  """The nearest whole number, as a double and as an int64."""
  rounded = x + ROUNDER
  return rounded - ROUNDER, _bits(rounded) - _float_bits(ROUNDER)


def _two_to(n: UOp) -> UOp:
  """2^n for -1022 <= n <= 1023."""
  return _double((n + 1023) << 52)


def _scaled(x: UOp, n: UOp) -> UOp:
  """x * 2^n in two steps: a subnormal result is rounded once, and n may be out of a double's range."""
  half = n >> 1
  return x * _two_to(half) * _two_to(n - half)


def _float_bits(value: float) -> int:
  return semantics.wrap(semantics.to_bits(value, dtypes.float64), dtypes.int64)


def _split(value: float, bits: int = 26) -> tuple[float, float]:
  """A number as one of so many bits and the rest."""
  kept = semantics.to_bits(value, dtypes.float64) >> 53 - bits << 53 - bits
  upper = float(semantics.from_bits(kept, dtypes.float64))
  return upper, value - upper


def _parts(numerator: int, denominator: int, bits: int) -> tuple[float, float, float]:
  """A fraction as the sum of a double of so many bits, one of what its nearest double has left, and what that lacks."""
  value = numerator / denominator
  upper, lower = _split(value, bits)
  n, d = value.as_integer_ratio()
  return upper, lower, (numerator * d - n * denominator) / (denominator * d)


@functools.cache
def _ln(n: int) -> int:
  """ln(n) * 2^BITS for n = 2 or 10: ln 2 is the sum of 1 / (k 2^k), ln 10 is 3 ln 2 + 2 artanh(1/9)."""
  ln2: int = sum((1 << BITS) // (k << k) for k in range(1, BITS))
  if n == 2: return ln2
  artanh: int = sum((1 << BITS) // ((2 * k + 1) * 9**(2 * k + 1)) for k in range(BITS // 6))
  return 3 * ln2 + 2 * artanh


# *** 2^x, e^x, e^x - 1 ***

EXPONENTS = (-160.0, 136.0)         # beyond these 2^x is 0 or infinite as a float
EXPONENTS_PRECISE = (-1080.0, 1030.0)
TERMS, TERMS_PRECISE = 9, 14


def _after(r: UOp, tail: UOp, first: int = 2) -> UOp:
  """e^(r + tail) without the powers of r below `first`, 2 or 3, for |r| <= ln2/2 and a bit more, by Taylor's series."""
  power = r * r if first == 2 else r * r * r
  return tail + power * _series(r, [1 / math.factorial(k) for k in range(first, TERMS_PRECISE + 1)])


def _two_to_fraction(f: UOp) -> UOp:
  """2^f for |f| <= 1/2, and a little beyond, as e^(f ln2) with what the product loses."""
  upper, lower, lost = _parts(_ln(2), 1 << BITS, 26)
  f1 = _upper(f)
  high, low = f1 * upper, f1 * lower + (f - f1) * (upper + lower) + f * lost
  r = high + low
  return (r + _after(r, (high - r) + low)) + 1.0


def _exp2(x: UOp, precise: bool) -> UOp:
  """2^x = 2^n * 2^f with n the nearest integer."""
  bounded = _clamp(x, *(EXPONENTS_PRECISE if precise else EXPONENTS))
  whole, n = _nearest(bounded)
  if precise: return x.ne(x).where(x, _scaled(_two_to_fraction(bounded - whole), n))
  power = _series(bounded - whole, [math.log(2)**k / math.factorial(k) for k in range(TERMS)])
  # A float's exponents leave room in a double.
  return x.ne(x).where(x, _double(_bits(power) + (n << 52)))


def _exp(x: UOp, precise: bool) -> UOp:
  """e^x as 2^(x/ln2) where a double has bits to spare, else e^x = 2^n * e^r, r = x - n ln2, with what r lost."""
  if not precise: return _exp2(x * (1 / math.log(2)), False)
  n, r, tail = _without_powers_of_two(_clamp(x, -750.0, 720.0))
  return x.ne(x).where(x, _scaled((r + _after(r, tail)) + 1.0, n))


def _without_powers_of_two(x: UOp) -> tuple[UOp, UOp, UOp]:
  """(n, r, tail): x = n ln2 + r + tail, |r| <= ln2/2."""
  whole, n = _nearest(x * (1 / math.log(2)))
  # A product of n with the upper part is exact.
  upper, lower, lost = _parts(_ln(2), 1 << BITS, 42)
  high, low = x - whole * upper, whole * (lower + lost)
  r = high - low
  return n, r, (high - r) - low


def _expm1(x: UOp, precise: bool) -> UOp:
  """e^x - 1 = 2^n * p + (2^n - 1), where p = e^r - 1 is known without the 1."""
  if not precise:
    bounded = _clamp(x * (1 / math.log(2)), -60.0, EXPONENTS[1])
    whole, n = _nearest(bounded)
    f = bounded - whole
    p, power = f * _series(f, [math.log(2)**k / math.factorial(k) for k in range(1, TERMS + 1)]), _two_to(n)
    return x.ne(x).where(x, n.eq(0).where(p, p * power + (power - 1.0)))
  n, r, tail = _without_powers_of_two(_clamp(x, -45.0, 720.0))
  # 2^n * ((1 - 2^-n) + r + r^2/2 + ...), what each sum loses being added last. A 2^-n below a double's last bit counts
  # for nothing.
  inverse = _two_to((n > 60).where(n.const_like(-60), -n))
  less, r1 = 1.0 - inverse, _upper(r)
  square, more = r1 * r1 * 0.5, (r - r1) * (r + r1) * 0.5
  sum1 = less + r
  sum2 = sum1 + square
  lost = ((1.0 - less) - inverse) + ((less - sum1) + r) + ((sum1 - sum2) + square)
  result = _scaled(sum2 + (lost + more + _after(r, tail, 3)), n)
  return (x.ne(x) | x.eq(0.0)).where(x, result)


def _tanh(x: UOp, precise: bool) -> UOp:
  """With p = e^(2|x|) - 1: p / (p + 2), or 1 - 2 / (p + 2) where that is near 1."""
  size = _absolute(x)
  p = _expm1((size > 50.0).where(x.const_like(100.0), size + size), precise)
  result = (size < 0.5).where(p / (p + 2.0), 1.0 - 2.0 / (p + 2.0))
  return x.ne(x).where(x, _double(_bits(result) | (_bits(x) & SIGN)))


def _exp_of_exp2(x: UOp) -> UOp:
  """e^x of a float by the target's EXP2: 2^(high + low) = 2^high * (1 + low * ln2), high + low = x / ln2."""
  inverse = 1 / math.log(2)
  upper = math.floor(inverse * 2**11) / 2**11                     # 12 bits: products of two such halves are exact
  x1 = (x.bitcast(dtypes.int32) & -(1 << 12)).bitcast(dtypes.float32)
  high = x * inverse
  low = ((x1 * upper - high) + (x - x1) * upper) + x * (inverse - upper)
  power = high.alu(Ops.EXP2)
  return ((high > -200.0) & (power < math.inf)).where(power + power * (low * math.log(2)), power)


# *** logarithms ***

def _significand(x: UOp, precise: bool) -> tuple[UOp, UOp, UOp]:
  """(e, e as a double, m): a positive x = m * 2^e with m in [sqrt(1/2), sqrt(2))."""
  tiny = x < 2.0**-1022                       # only a double can be: float's subnormal numbers are normal doubles
  scaled = tiny.where(x * 2.0**54, x) if precise else x
  e = (_bits(scaled) - _float_bits(math.sqrt(0.5))) >> 52
  m = _double(_bits(scaled) - (e << 52))
  if precise: e = tiny.where(e - 54, e)
  return e, e.cast(dtypes.float64), m


def _artanh_series(z: UOp, factor: float, first: int, terms: int) -> UOp:
  """factor * (1/(2k+1) + z/(2k+3) + ...) from k = `first` on: the tail of factor * artanh(s) / s, z = s^2."""
  return _series(z, [factor / (2 * k + 1) for k in range(first, first + terms)])


def _log_short(x: UOp, base: float, terms: int = 6) -> UOp:
  """The logarithm of a positive double for a float: log(m) = 2/ln(base) * artanh(s), s = (m-1)/(m+1)."""
  _, whole, m = _significand(x, False)
  f, factor = m - 1.0, 2 / math.log(base)      # m - 1 is exact
  s = f / (f + 2.0)
  return whole * (math.log(2) / math.log(base)) + s * _artanh_series(s * s, factor, 0, terms)


def _log_pair(x: UOp, base: int, more: UOp | None = None, longer: bool = False) -> tuple[UOp, UOp]:
  """The logarithm of a positive double as (high, low), to about 2^-60 of itself; `longer`: 2^-65. `base` is 2, 10 or 1
  for e. `more` is added to x, and is less than a last place of x."""
  e, whole, m = _significand(x, True)
  ln = 1 << BITS if base == 1 else _ln(base)
  factor1, factor2, factor3 = _parts(2 << BITS, ln, 26)
  factor = factor1 + factor2
  f = m - 1.0                                  # exact
  d = f + 2.0
  s = f / d
  # What the quotient loses is had from s * d = f in parts.
  s1, d1 = _upper(s), _upper(d)
  s2, d2 = s - s1, d - d1
  remainder = (f - s1 * d1) - s2 * d1 - s1 * d2 - s2 * d2 - s * (f - (d - 2.0))
  if more is not None: remainder = remainder + _scaled(more, -e) * (1.0 - s)
  s2 = s2 + remainder / d                      # now s1 + s2 is the quotient
  z = s * s
  high, low = s1 * factor1, s1 * factor2 + s2 * factor + s * factor3
  if not longer: low = low + s * z * _artanh_series(z, factor, 1, 11)
  else:
    # The cube's term in parts as well; s1 * s1 is exact.
    c1, c2, c3 = _parts(2 << BITS, 3 * ln, 26)
    c2 += c3
    square = s1 * s1
    z1 = _upper(square)
    z2 = (square - z1) + s2 * (s1 + s)
    product = z1 * c1
    t1 = _upper(product)
    cube = s1 * t1
    low = low + (s * ((product - t1) + (z2 * c1 + z * c2)) + s2 * t1)
    low = low + s * z * z * _artanh_series(z, factor, 2, 10)
    total = high + cube
    high, low = total, low + ((high - total) + cube)
  unit1, unit2, unit3 = _parts(_ln(2), ln, 42)
  # A product with e is exact, and where e is not 0 it is more than half of the logarithm.
  large = whole * unit1
  total = large + high
  return total, ((large - total) + high) + (low if base == 2 else low + whole * (unit2 + unit3))


def _defined(x: UOp, zero: UOp, result: UOp, infinite: UOp) -> UOp:
  """A logarithm where x > 0; -infinity where `zero`, NaN below, infinity and NaN for themselves."""
  result = (infinite < math.inf).where(result, infinite)
  return zero.where(x.const_like(-math.inf), (infinite < 0.0).where(x.const_like(math.nan), result))


def _log(x: UOp, precise: bool, base: int, short: float) -> UOp:
  if precise: high, low = _log_pair(x, base)
  return _defined(x, x.eq(0.0), high + low if precise else _log_short(x, short), x)


def _log1p(x: UOp, precise: bool) -> UOp:
  """log(1 + x), as that of the rounded sum and of what it lost."""
  total = x + 1.0
  back = total - 1.0
  lost = (1.0 - (total - back)) + (x - back)
  if precise:
    high, low = _log_pair(total, 1, lost)
    result = high + low
  else: result = _log_short(total, math.e) + lost / total
  # Below a double's half last place of 1, and for zeros, log(1 + x) is x.
  return (_absolute(x) < 2.0**-54).where(x, _defined(x, total.eq(0.0), result, total))


# *** x^y ***

def _pow(x: UOp, y: UOp, precise: bool) -> UOp:
  """2^(y * log2|x|), with IEEE 754's special cases."""
  size = _absolute(x)
  limited = _clamp(y, -2.0**66, 2.0**66)                # enough for the number next to 1
  if precise:
    high, low = _log_pair(size, 2, longer=True)
    log = high + low
    low = (high - log) + low
    y1, log1 = _upper(limited), _upper(log)
    y2, log2 = limited - y1, log - log1
    product = limited * log
    lost = ((y1 * log1 - product) + y1 * log2 + y2 * log1) + y2 * log2 + limited * low
    bounded = _clamp(product, *EXPONENTS_PRECISE)
    whole, n = _nearest(bounded)
    power = _scaled(_two_to_fraction((bounded - whole) + bounded.eq(product).where(lost, 0.0)), n)
  else: power = _exp2(limited * _log_short(size, 2.0, 8), False)
  def nan(u: UOp) -> UOp: return u.ne(u)
  half, whole_y = y * 0.5, y.alu(Ops.TRUNC).eq(y)
  vanishes = size.eq(0.0).ne(y < 0.0)                   # of a zero or an infinity: to 0 or to infinity
  power = (size.eq(0.0) | size.eq(math.inf)).where(vanishes.where(power.const_like(0.0), math.inf), power)
  odd = whole_y & half.alu(Ops.TRUNC).ne(half)
  power = odd.where(_double(_bits(power) | (_bits(x) & SIGN)), power)
  undefined = nan(x) | nan(y) | (x < 0.0) & (size < math.inf) & whole_y.logical_not()
  return (y.eq(0.0) | x.eq(1.0)).where(x.const_like(1.0), undefined.where(x.const_like(math.nan), power))


# *** the remainder of x / y ***

def _fmod(x: UOp, y: UOp, precise: bool) -> UOp:
  """With |x| = a * 2^i, |y| = b * 2^j and integers a, b: (a * 2^(i-j) mod b) * 2^j, signed as x. Exact."""
  x_size, y_size = _absolute(x), _absolute(y)
  (a, i), (b, j) = (_integer(u, precise) for u in (x_size, y_size))
  b = b.eq(0).where(b.const_like(1), b)
  apart = i - j
  apart = (apart < 0).where(apart.const_like(0), apart)
  if precise:
    # 2^(i-j) by squaring, from its upper bits on: 2^63 at most is taken modulo b at once.
    steps = 5
    start = (UOp.const(dtypes.uint64, 1) << (apart >> steps)) % b.bitcast(dtypes.uint64)
    power, multiply = start.bitcast(dtypes.int64), _multiply_modulo
  else:
    # Products of two such integers are exact doubles.
    steps = 3
    a, b = a.cast(dtypes.float64), b.cast(dtypes.float64)
    power, multiply = _modulo(_two_to(apart >> steps), b), lambda p, q, m: _modulo(p * q, m)
  for step in reversed(range(steps)):
    power = multiply(power, power, b)
    twice = power + power
    twice = (twice < b).where(twice, twice - b)
    power = (apart >> step & 1).ne(0).where(twice, power)
  rest = multiply(a, power, b)
  result = _scaled(rest.cast(dtypes.float64), j) if precise else rest * _two_to(j)
  result = (x_size < y_size).where(x_size, result)
  result = _double(_bits(result) | (_bits(x) & SIGN))
  defined = (x_size < math.inf) & y_size.ne(0.0) & y.eq(y)
  return defined.where(result, x.const_like(math.nan))


def _integer(size: UOp, precise: bool) -> tuple[UOp, UOp]:
  """(m, e): a double that is not negative as m * 2^e. In a short one only 24 bits are set."""
  exponent, fraction = _bits(size) >> 52, _bits(size) & FRACTION
  if not precise: return (fraction | (1 << 52)) >> 29, exponent - (1023 + 23)
  subnormal = exponent.eq(0)
  exponent = subnormal.where(exponent.const_like(1), exponent)
  return subnormal.where(fraction, fraction | (1 << 52)), exponent - (1023 + 52)


def _modulo(p: UOp, m: UOp) -> UOp:
  """p mod m of whole doubles below 2^53. The quotient may be rounded up to the next integer."""
  rest = p - (p / m).alu(Ops.TRUNC) * m
  return (rest < 0.0).where(rest + m, rest)


def _multiply_modulo(p: UOp, q: UOp, m: UOp) -> UOp:
  """p * q mod m of int64s below 2^53, one of the factors below m. The quotient as a double is wrong by 2 at most; what
  it leaves is right modulo 2^64."""
  quotient = (p.cast(dtypes.float64) * q.cast(dtypes.float64) / m.cast(dtypes.float64)).cast(dtypes.int64)
  rest = p * q - quotient * m
  for _ in range(2): rest = (rest < 0).where(rest + m, rest)
  for _ in range(2): rest = (rest < m).where(rest, rest - m)
  return rest


# *** sin(x), cos(x) ***

def _circular(x: UOp, precise: bool, cosine_wanted: bool) -> UOp:
  """|x| = q * pi/2 + r with |r| <= pi/4, then a sine or a cosine of r, by Taylor's series, with a sign."""
  absolute = _absolute(x)
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
  if cosine_wanted: quadrant = quadrant + 1
  result = (quadrant & 1).eq(0).where(sine, cosine)
  # Quadrants 2 and 3 are negative, and so is sin(-x).
  signs = (quadrant << 62 if cosine_wanted else _bits(x) ^ (quadrant << 62)) & SIGN
  result = _double(_bits(result) ^ signs)
  return (absolute < math.inf).where(result, x.const_like(math.nan))


def _reduce(x: UOp, precise: bool) -> tuple[UOp, UOp, UOp | None]:
  """(quadrant, r, what r lost) of a positive double; in a short one only 24 bits are set.

  x = m * 2^k with an integer m. Of 2/pi only the bits from 2^(2-k) on matter, the others give multiples of four
  quadrants: the product of m with a window of them is a fraction of a turn. The window has bits for what m takes up,
  for the quadrant, for a result that is as small as it can be (2^-62 for a double) and for that result's precision.
  """
  digits, leading, size = (53, 2, 6) if precise else (24, 1, 3)
  bits, one = _bits(x).bitcast(dtypes.uint64), UOp.const(dtypes.uint64, 1)
  m = ((bits & FRACTION) | (1 << 52)) >> (53 - digits)
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


_FUNCTIONS: dict[Ops, Callable[..., UOp]] = {
  Ops.EXP2: _exp2,
  Ops.EXP: _exp,
  Ops.EXPM1: _expm1,
  Ops.LOG2: lambda x, precise: _log(x, precise, 2, 2.0),
  Ops.LOG: lambda x, precise: _log(x, precise, 1, math.e),
  Ops.LOG10: lambda x, precise: _log(x, precise, 10, 10.0),
  Ops.LOG1P: _log1p,
  Ops.SIN: lambda x, precise: _circular(x, precise, False),
  Ops.COS: lambda x, precise: _circular(x, precise, True),
  Ops.TANH: _tanh,
  Ops.POW: _pow,
  Ops.FMOD: _fmod,
}
