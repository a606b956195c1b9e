"""Floats of 8 bits and fewer as operations on values: decode, encode to nearest even, stochastic rounding, products.

Formats are data: the OCP pair of RDNA4, E4M3 ("fp8": no infinity, one NaN of either sign) and E5M2 ("bf8"), and any
other with a sign, an exponent and a fraction (RDNA4 ISA manual, section 7.5).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.core.lazy import cached_property
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V


@dataclass(frozen=True)
class SmallFloat:
  """A float of 8 bits, or of `bits`. `top` is the code of the largest number, `overflow` what larger numbers become,
  `nan` a NaN, or what NaN becomes where there is none.

  `unsigned_zero`: the code of -0 is the only NaN, as in the FNUZ formats.
  """
  name: str
  fraction: int
  bias: int
  top: int
  overflow: int
  nan: int
  infinity: int = -1
  unsigned_zero: bool = False
  bits: int = 8

  def value(self, code: int) -> int:
    """Bits of the f32 with a code's value."""
    sign, magnitude = (code >> self.bits - 1 & 1) << 31, code & (1 << self.bits - 1) - 1
    if code == 0x80 and self.unsigned_zero: return 0x7FC00000
    if magnitude == self.infinity: return sign | 0x7F800000
    if magnitude > self.top: return sign | 0x7FC00000
    exponent, fraction = magnitude >> self.fraction, magnitude & (1 << self.fraction) - 1
    if exponent: return sign | exponent - self.bias + 127 << 23 | fraction << 23 - self.fraction
    if not fraction: return sign
    lead = fraction.bit_length() - 1  # a denormal number is a normal f32
    return sign | lead - self.fraction + 1 - self.bias + 127 << 23 | fraction - (1 << lead) << 23 - lead

  @cached_property
  def values(self) -> list[int]:
    """Bits of the f32 of each code."""
    return [self.value(code) for code in range(256)]


FP8: Final = SmallFloat("fp8", fraction=3, bias=7, top=0x7E, overflow=0x7F, nan=0x7F)
BF8: Final = SmallFloat("bf8", fraction=2, bias=15, top=0x7B, overflow=0x7C, nan=0x7F, infinity=0x7C)
# OCP's of 6 and 4 bits: no infinity and no NaN.
E2M3: Final = SmallFloat("e2m3", fraction=3, bias=1, top=0x1F, overflow=0x1F, nan=0x1F, bits=6)
E3M2: Final = SmallFloat("e3m2", fraction=2, bias=3, top=0x1F, overflow=0x1F, nan=0x1F, bits=6)
E2M1: Final = SmallFloat("e2m1", fraction=1, bias=1, top=0x7, overflow=0x7, nan=0x7, bits=4)
# CDNA3 (its ISA manual, section 7.2): no infinity, no -0, whose code is the NaN.
FP8_FNUZ: Final = SmallFloat("fp8", fraction=3, bias=8, top=0x7F, overflow=0x80, nan=0x80, unsigned_zero=True)
BF8_FNUZ: Final = SmallFloat("bf8", fraction=2, bias=16, top=0x7F, overflow=0x80, nan=0x80, unsigned_zero=True)


def decoded(o: O[V], code: V, t: SmallFloat) -> V:
  """f32 of codes given as u32 below 256."""
  return o.bits(o.lookup("u32", t.values, code), "f32")


def encoded(o: O[V], x: V, t: SmallFloat, limit: V) -> V:
  """Codes (u32) of f32, rounded to nearest even; with `limit` what overflows becomes the largest number."""
  raw = o.bits(x, "u32")
  magnitude = raw & 0x7FFFFFFF
  drop = 23 - t.fraction
  normal = (magnitude + ((1 << drop - 1) - 1) + (magnitude >> drop & 1) >> drop) - (127 - t.bias << t.fraction)
  small = o.to(o.rint(o.bits(magnitude, "f32") * o.const("f32", 2.0 ** (t.bias - 1 + t.fraction))), "f32")
  return _finished(o, raw, magnitude, normal, o.to_int(small, "u32"), t, limit)


def stochastic(o: O[V], x: V, seed: V, t: SmallFloat, limit: V) -> V:
  """Codes of f32 after adding the seed's high bits below the last bit that is kept, truncated.

  The manuals' pseudocode lets the sum of fraction and seed wrap around; here its carry goes to the exponent, without
  which the expected value would not be the operand: RDNA4's section 7.6.1 adds the seed to the value, and truncates.
  CDNA3's does not say how it is rounded. Infinities and NaN take no seed.
  """
  raw = o.bits(x, "u32")
  magnitude = raw & 0x7FFFFFFF
  drop = 23 - t.fraction
  moved = o.where(magnitude >= 0x7F800000, magnitude, magnitude + (seed >> 32 - drop))
  normal = (moved >> drop) - (127 - t.bias << t.fraction)
  small = o.bits(o.min(moved, o.const("u32", 0x7F800000)), "f32") * o.const("f32", 2.0 ** (t.bias - 1 + t.fraction))
  return _finished(o, raw, moved, normal, o.to_int(small, "u32"), t, limit)


def _finished(o: O[V], raw: V, magnitude: V, normal: V, small: V, t: SmallFloat, limit: V) -> V:
  """The code of a normal or a denormal number, or of what is none; with the sign."""
  code = o.where(magnitude < (128 - t.bias << 23), small, normal)
  beyond = o.where(limit != 0, o.const("u32", t.top), o.const("u32", t.overflow))
  code = o.where((magnitude >= (128 - t.bias << 23)) & (normal > t.top), beyond, code)
  sign = raw >> 24 & 0x80 if t.bits == 8 else raw >> 31 << t.bits - 1
  code = o.where((raw & 0x7FFFFFFF) > 0x7F800000, o.const("u32", t.nan), code)
  if t.unsigned_zero: sign = o.where(code == 0, o.const("u32", 0), sign)
  return sign | code


def dot4(o: O[V], a: V, b: V, c: V, s: SmallFloat, t: SmallFloat) -> V:
  """c + the sum of four products: the sum of the products is exact, that with c is rounded once.

  The chip's own order and roundings of the sum are not specified.
  """
  total = o.const("f64", 0)
  for shift in (0, 8, 16, 24):
    x, y = decoded(o, a >> shift & 0xFF, s), decoded(o, b >> shift & 0xFF, t)
    total = total + o.to(x, "f64") * o.to(y, "f64")
  return o.to(o.fma_f16_of_f32(total, o.const("f64", 1), o.to(c, "f64")), "f32")
