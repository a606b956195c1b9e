"""Conversion to and from the small floats that no dtype holds: their bits stand in a byte each, and kernels convert."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.ir.dtype import dtypes
from tinyhw.tensor.tensor import Tensor


@dataclass(frozen=True)
class Format:
  """Bits of exponent and mantissa, the bias, the greatest code of a number, the code of NaN (None: there is none), and
  whether a zero has a sign."""
  exponent: int
  mantissa: int
  bias: int
  most: int
  nan: int | None
  signed_zero: bool


# IEEE-like fields without infinities: "FN" finite, "UZ" one unsigned zero, whose negative is NaN.
FORMATS: Final = {"float8e4m3fnuz": Format(4, 3, 8, 0x7F, 0x80, False),
                  "float8e5m2fnuz": Format(5, 2, 16, 0x7F, 0x80, False),
                  "float4e2m1": Format(2, 1, 1, 0x7, None, True)}
SCALE: Final = "float8e8m0"  # a power of 2 by its exponent: 2**(code - 127), and 255 is NaN


def _power(exponent: Tensor) -> Tensor:
  """2**exponent as float32, for exponents of normal numbers."""
  return ((exponent + 127) << 23).bitcast(dtypes.float32)


def decoded(codes: Tensor, name: str) -> Tensor:
  """Bytes as float32."""
  bits = codes.cast(dtypes.int32)
  if name == SCALE:
    # 2**-127 is no normal number: half of the next one.
    return bits.eq(255).where(float("nan"), bits.eq(0).where(2.0**-127, _power(bits.maximum(1) - 127)))
  f = FORMATS[name]
  fraction, raised = bits & ((1 << f.mantissa) - 1), (bits >> f.mantissa) & ((1 << f.exponent) - 1)
  whole = raised.eq(0).where(fraction, fraction + (1 << f.mantissa)).float()
  value = whole * _power(raised.maximum(1) - (f.bias + f.mantissa))
  value = (bits >> (f.mantissa + f.exponent)).eq(0).where(value, -value)
  return value if f.nan is None else bits.eq(f.nan).where(float("nan"), value)


def encoded(x: Tensor, name: str, saturate: bool, rounding: str = "up") -> Tensor:
  """Numbers as bytes, rounded to even; what is too large is the greatest with `saturate`, else NaN. Scales, which are
  powers of 2, round "up", "down" or to the "nearest"."""
  x = x.float()
  bits = x.bitcast(dtypes.int32)
  raised = (bits >> 23) & 255
  if name == SCALE:
    part = bits & 0x7FFFFF
    more = part.ne(0) if rounding == "up" else part >= 0x400000 if rounding == "nearest" else part.zeros_like().ne(0)
    # A subnormal's exponent field is 0, that of 2**-127.
    small = raised.eq(0)
    more = small.where((part > 0x400000) if rounding == "up" else small.zeros_like().ne(0), more)
    code = raised + more.cast(dtypes.int32)
    code = (code > 254).where(254 if saturate else 255, code)
    return x.isnan().where(255, code).cast(dtypes.uint8)
  f = FORMATS[name]
  place = (raised - 127).maximum(1 - f.bias)                                  # the exponent, at least the least one
  # As multiples of the last place: exact, for it is a division by a power of 2.
  count = (x.abs() * _power((f.mantissa - place).maximum(-126))).minimum(2.0**20).round().cast(dtypes.int32)
  code = ((place + (f.bias - 1)) << f.mantissa) + count
  beyond = f.most if saturate or f.nan is None else f.nan
  code = (x.isinf() | (code > f.most)).where(beyond, code)
  negative = (bits < 0) & code.ne(beyond if beyond == f.nan else -1)
  sign = 1 << (f.mantissa + f.exponent)
  code = (negative & (code.ne(0) if not f.signed_zero else code >= 0)).where(code | sign, code)
  # Where there is no NaN it is the negative zero, as in ml_dtypes.
  code = x.isnan().where(sign if f.nan is None else f.nan, code)
  return code.cast(dtypes.uint8)
