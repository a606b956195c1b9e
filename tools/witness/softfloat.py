"""Exact binary floating point on bit patterns: every rounding mode, every format of AMD's GPUs.

A finite value is a pair of integers (m, e) that stands for m * 2**e; the sign of a zero is kept apart. Arithmetic is
exact on those pairs and rounded once, by `Format.round`.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Final

RNE, UP, DOWN, ZERO = 0, 1, 2, 3  # MODE's round modes (RDNA3 ISA manual, section 3.4.2)


@dataclass(frozen=True)
class Format:
  """A binary format. `kind`: "ieee", or "fn" (no infinity, one NaN a sign), or "fnuz" (one NaN, no -0, no infinity)."""
  name: str
  bits: int
  mantissa: int
  bias: int
  kind: str = "ieee"

  @cached_property
  def sign(self) -> int: return 1 << self.bits - 1

  @cached_property
  def infinity(self) -> int: return (1 << self.bits - 1) - (1 << self.mantissa)

  @cached_property
  def least(self) -> int:
    """Exponent of the smallest normal number."""
    return 1 - self.bias

  @cached_property
  def nan(self) -> int:
    """A quiet NaN."""
    if self.kind == "fn": return self.sign - 1
    return self.sign if self.kind == "fnuz" else self.infinity | 1 << self.mantissa - 1

  @cached_property
  def largest(self) -> int:
    """Pattern of the largest finite number."""
    return {"ieee": self.infinity - 1, "fn": self.sign - 2, "fnuz": self.sign - 1}[self.kind]

  def negative(self, x: int) -> bool: return bool(x & self.sign)

  def is_nan(self, x: int) -> bool:
    if self.kind == "fnuz": return x == self.sign
    return x & self.sign - 1 > (self.infinity if self.kind == "ieee" else self.largest)

  def signals(self, x: int) -> bool:
    """Whether x is a signalling NaN."""
    return self.kind == "ieee" and self.is_nan(x) and not x >> self.mantissa - 1 & 1

  def is_inf(self, x: int) -> bool: return self.kind == "ieee" and x & self.sign - 1 == self.infinity

  def is_zero(self, x: int) -> bool: return x & self.sign - 1 == 0 and not (self.kind == "fnuz" and x)

  def denormal(self, x: int) -> bool: return 0 < x & self.sign - 1 < 1 << self.mantissa

  def exponent(self, x: int) -> int:
    """The biased exponent field."""
    return (x & self.sign - 1) >> self.mantissa

  def quiet(self, x: int) -> int: return x | 1 << self.mantissa - 1

  def flush(self, x: int) -> int:
    """A denormal becomes a zero of its sign."""
    return x & self.sign if self.denormal(x) else x

  def value(self, x: int) -> tuple[int, int]:
    """(m, e) of a finite pattern."""
    field, m = self.exponent(x), x & (1 << self.mantissa) - 1
    if field: m |= 1 << self.mantissa
    e = max(field, 1) - self.bias - self.mantissa
    return (-m if x & self.sign else m), e

  def inf(self, negative: bool) -> int: return self.infinity | (self.sign if negative else 0)

  def zero(self, negative: bool) -> int: return self.sign if negative and self.kind != "fnuz" else 0

  def overflow(self, negative: bool, mode: int) -> int:
    """What a finite result past the largest number becomes."""
    stays = mode == ZERO or mode == UP and negative or mode == DOWN and not negative
    top = self.largest if stays else self.infinity if self.kind == "ieee" else self.nan
    return top if self.kind == "fnuz" and top == self.nan else top | (self.sign if negative else 0)

  def round(self, m: int, e: int, mode: int = RNE, *, negative: bool | None = None) -> int:
    """The pattern nearest to m * 2**e in a mode; `negative` gives a zero its sign."""
    minus = m < 0 if m else bool(negative)
    if not m: return self.zero(minus)
    m = abs(m)
    high = e + m.bit_length() - 1
    quantum = max(high, self.least) - self.mantissa
    shift = quantum - e
    if shift <= 0: q = m << -shift
    else:
      q, rest, half = m >> shift, m & (1 << shift) - 1, 1 << shift - 1
      if mode == RNE: q += rest > half or rest == half and q & 1
      elif rest and (mode == UP and not minus or mode == DOWN and minus): q += 1
    x = q if high < self.least else (high - self.least << self.mantissa) + q
    if x > self.largest: return self.overflow(minus, mode)
    return x | self.sign if x and minus else x or self.zero(minus)

  # ---- arithmetic: NaN in, NaN out; which one is not specified, so it is always the same quiet one

  def add(self, a: int, b: int, mode: int = RNE) -> int:
    if self.is_nan(a) or self.is_nan(b): return self.nan
    if self.is_inf(a): return self.nan if self.is_inf(b) and a != b else a
    if self.is_inf(b): return b
    (m, e), (n, f) = self.value(a), self.value(b)
    low = min(e, f)
    total = (m << e - low) + (n << f - low)
    if not total:
      if self.is_zero(a) and self.is_zero(b) and self.negative(a) == self.negative(b): return a
      return self.zero(mode == DOWN)
    return self.round(total, low, mode)

  def sub(self, a: int, b: int, mode: int = RNE) -> int:
    return self.nan if self.is_nan(b) else self.add(a, b ^ self.sign, mode)

  def mul(self, a: int, b: int, mode: int = RNE) -> int:
    if self.is_nan(a) or self.is_nan(b): return self.nan
    minus = self.negative(a) != self.negative(b)
    if self.is_inf(a) or self.is_inf(b):
      return self.nan if self.is_zero(a) or self.is_zero(b) else self.inf(minus)
    (m, e), (n, f) = self.value(a), self.value(b)
    return self.round(m * n, e + f, mode, negative=minus)

  def fma(self, a: int, b: int, c: int, mode: int = RNE, *, scale: int = 0) -> int:
    """a * b + c, times 2**scale, rounded once."""
    if self.is_nan(a) or self.is_nan(b) or self.is_nan(c): return self.nan
    minus = self.negative(a) != self.negative(b)
    if self.is_inf(a) or self.is_inf(b):
      if self.is_zero(a) or self.is_zero(b): return self.nan
      return self.nan if self.is_inf(c) and self.negative(c) != minus else self.inf(minus)
    if self.is_inf(c): return c
    (m, e), (n, f), (k, g) = self.value(a), self.value(b), self.value(c)
    low = min(e + f, g)
    total = (m * n << e + f - low) + (k << g - low)
    if not total:
      exact = m * n == 0 and k == 0 and minus == self.negative(c)
      return self.zero(minus if exact else mode == DOWN)
    return self.round(total, low + scale, mode)

  def div(self, a: int, b: int, mode: int = RNE) -> int:
    if self.is_nan(a) or self.is_nan(b): return self.nan
    minus = self.negative(a) != self.negative(b)
    if self.is_inf(a): return self.nan if self.is_inf(b) else self.inf(minus)
    if self.is_inf(b): return self.zero(minus)
    if self.is_zero(b): return self.nan if self.is_zero(a) else self.inf(minus)
    (m, e), (n, f) = self.value(a), self.value(b)
    extra = n.bit_length() + self.mantissa + 4
    q, rest = divmod(abs(m) << extra, abs(n))
    q = q << 1 | (rest != 0)
    return self.round(-q if minus else q, e - f - extra - 1, mode, negative=minus)

  def sqrt(self, a: int, mode: int = RNE) -> int:
    if self.is_nan(a): return self.nan
    if self.is_zero(a): return a
    if self.negative(a): return self.nan
    if self.is_inf(a): return a
    m, e = self.value(a)
    extra = 2 * self.mantissa + 8 + (e & 1)
    m, e = m << extra, e - extra
    root = isqrt(m)
    return self.round(root << 1 | (root * root != m), (e >> 1) - 1, mode)

  def scaled(self, a: int, power: int, mode: int = RNE) -> int:
    """a * 2**power."""
    if self.is_nan(a): return self.nan
    if self.is_inf(a) or self.is_zero(a): return a
    m, e = self.value(a)
    return self.round(m, e + max(-5000, min(5000, power)), mode)

  def whole(self, a: int, how: int) -> int:
    """The integer value near a in a round mode, as a float; the sign of a zero result is a's."""
    if self.is_nan(a): return self.nan
    if self.is_inf(a) or self.is_zero(a): return a
    return self.round(integer(*self.value(a), how), 0, negative=self.negative(a))

  def less(self, a: int, b: int) -> bool:
    """a < b of two that are no NaN."""
    return self.order(a) < self.order(b)

  def order(self, a: int) -> int:
    """An integer that orders all patterns but NaN; both zeros are 0."""
    return -(a & self.sign - 1) if a & self.sign else a


def integer(m: int, e: int, how: int) -> int:
  """m * 2**e as an integer, rounded as `how` says."""
  if e >= 0: return m << e
  q, rest, half = m >> -e, m & (1 << -e) - 1, 1 << -e - 1
  if how == RNE: return q + (rest > half or rest == half and bool(q & 1))
  if how == UP: return q + (rest != 0)
  return q + (rest != 0 and m < 0) if how == ZERO else q


F16: Final = Format("f16", 16, 10, 15)
BF16: Final = Format("bf16", 16, 7, 127)
F32: Final = Format("f32", 32, 23, 127)
F64: Final = Format("f64", 64, 52, 1023)
FP8: Final = Format("fp8", 8, 3, 7, "fn")  # OCP E4M3
BF8: Final = Format("bf8", 8, 2, 15)  # OCP E5M2
FP8_FNUZ: Final = Format("fp8", 8, 3, 8, "fnuz")
BF8_FNUZ: Final = Format("bf8", 8, 2, 16, "fnuz")
FORMATS: Final = {f.name: f for f in (F16, BF16, F32, F64)}


def convert(a: int, source: Format, target: Format, mode: int = RNE) -> int:
  """One format's number in another."""
  if source.is_nan(a): return target.nan
  if source.is_inf(a): return target.inf(source.negative(a)) if target.kind == "ieee" else target.nan
  return target.round(*source.value(a), mode, negative=source.negative(a))


def from_integer(value: int, target: Format, mode: int = RNE) -> int:
  """An integer as a float."""
  return target.round(value, 0, mode)


def to_integer(a: int, source: Format, low: int, high: int, how: int = ZERO) -> int:
  """A float as an integer that saturates to [low, high]; NaN gives 0 (RDNA3 ISA manual, V_CVT_I32_F32)."""
  if source.is_nan(a): return 0
  if source.is_inf(a): return low if source.negative(a) else high
  return max(low, min(high, integer(*source.value(a), how)))


def to_float(a: int, source: Format) -> float:
  """Python's float of a finite number that fits one."""
  m, e = source.value(a)
  return float(m) * 2.0 ** e if m else (-0.0 if source.negative(a) else 0.0)
