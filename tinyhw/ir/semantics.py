"""What the scalar operations mean, on Python bools, ints and floats.

This is the definition: constant folding calls it, emulators and renderers are held to it, and it is itself held to
NumPy by tests. Values come and go in canonical form: an int within its type's range, a float rounded to its type's
precision.

- Integer arithmetic wraps modulo 2^bits. IDIV truncates toward zero and MOD has the sign of the dividend, as in C;
  division by zero gives 0 and so does the remainder; the most negative number divided by -1 is itself.
- A shift count is taken modulo the width of the type. SHR of a signed number copies its sign.
- On bool ADD and MAX are OR and MUL is AND.
- MAX of floats is NaN where either is NaN; of two zeros it is +0.0 unless both are -0.0. CMPLT and CMPEQ with a NaN are
  False, CMPNE is True.
- CAST of a float to an integer truncates toward zero, saturates at the type's bounds and gives 0 for NaN. CAST to
  bool is `!= 0`.
- FDIV, RECIP and SQRT round correctly. EXP2, EXP, EXPM1 (exp(x)-1), LOG2, LOG, LOG10, LOG1P (log(1+x)), SIN, COS, TANH
  and POW are within 2 units in the last place on every device; POW has the special cases of IEEE 754's pow.
- The floats of 8 bits are those of the OCP 8-bit floating point specification (OFP8, revision 1.0), rounded without
  saturation: what is too large for float8_e5m2 is infinite, and NaN in float8_e4m3fn, which has no infinities. Those
  of CDNA3, float8_e4m3fnuz and float8_e5m2fnuz, have neither infinities nor -0.0, whose memory is their one NaN.
  Numbers get there, and to bfloat16, by way of float32.
- FMOD is C's: exact, with the sign of the dividend; NaN for a zero divisor or an infinite dividend.
- TRUNC is toward zero. MULACC is `a*b + c`, rounded once or twice: the device chooses.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tinyhw.ir.dtype import DType, Kind, dtypes
from tinyhw.ir.ops import Ops

Scalar = bool | int | float
FORMATS = {"bool": "?", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "int8": "b", "int16": "h",
           "int32": "i", "int64": "q", "float16": "e", "float32": "f", "float64": "d"}


def wrap(value: int, dtype: DType) -> int:
  """`value` modulo 2^bits, in the range of the integer type."""
  value &= (1 << dtype.bits) - 1
  return value - (1 << dtype.bits) if dtype.is_signed and value >> (dtype.bits - 1) else value


@dataclass(frozen=True)
class Small:
  """A float of 8 bits: of its fraction, and the bias of its exponent; `top` is the memory of the largest number, and
  what is larger is `over`; `nan` is NaN's memory. (Of 16 bits: a half.) Where NaN is the memory of -0, zero has no
  sign."""
  fraction: int
  bias: int
  top: int
  over: int
  nan: int
  width: int = 8

  @property
  def sign(self) -> int:
    """The bit of the sign."""
    return 1 << self.width - 1

  @property
  def one_zero(self) -> bool:
    """Whether there is no -0."""
    return self.nan == self.sign

  def round(self, value: float) -> float:
    """To nearest even; too large numbers become what `over` is."""
    if value == 0 and self.one_zero: return 0.0
    if value != value or value == 0: return value
    if math.isinf(value): return math.copysign(self.value(self.over), value)
    unit = max(math.frexp(value)[1] - 1, 1 - self.bias) - self.fraction
    found = math.ldexp(round(math.ldexp(value, -unit)), unit)       # exact but for the rounding, ties to even
    if abs(found) > self.value(self.top): found = math.copysign(self.value(self.over), value)
    return 0.0 if found == 0 and self.one_zero else math.copysign(found, value)

  def bits(self, value: float) -> int:
    """The memory of a rounded value."""
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    if value != value: return sign | self.nan
    if math.isinf(value): return sign | self.over
    if value == 0: return 0 if self.one_zero else sign
    exponent = max(math.frexp(value)[1] - 1, 1 - self.bias)
    scaled = int(math.ldexp(abs(value), self.fraction - exponent))  # with the leading 1 of a normal number
    return sign | scaled + (exponent + self.bias - 1 << self.fraction)

  def value(self, bits: int) -> float:
    """The number that memory holds."""
    if self.one_zero and bits == self.nan: return math.nan
    magnitude, sign = bits & 0x7F, -1.0 if bits & 0x80 else 1.0
    if magnitude > self.top: return math.copysign(math.inf if magnitude == self.over != self.nan else math.nan, sign)
    exponent, fraction = magnitude >> self.fraction, magnitude & (1 << self.fraction) - 1
    if exponent: fraction += 1 << self.fraction
    return sign * math.ldexp(fraction, max(exponent, 1) - self.bias - self.fraction)


SMALL = {dtypes.float8_e4m3fn: Small(3, 7, 0x7E, 0x7F, 0x7F), dtypes.float8_e5m2: Small(2, 15, 0x7B, 0x7C, 0x7E),
         dtypes.float8_e4m3fnuz: Small(3, 8, 0x7F, 0x80, 0x80), dtypes.float8_e5m2fnuz: Small(2, 16, 0x7F, 0x80, 0x80)}


def _round(value: float, dtype: DType) -> float:
  if (small := SMALL.get(dtype)) is not None: return small.round(_round(value, dtypes.float32))
  if dtype is dtypes.float64 or not math.isfinite(value): return value
  if dtype is dtypes.bfloat16:
    bits = int.from_bytes(struct.pack("<f", _round(value, dtypes.float32)), "little")
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000    # to nearest, ties to even
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])
  letter = FORMATS[dtype.name]
  try: return float(struct.unpack("<" + letter, struct.pack("<" + letter, value))[0])
  except OverflowError: return math.copysign(math.inf, value)


def canonical(value: Scalar, dtype: DType) -> Scalar:
  """`value` as a constant of the scalar type: ints wrap, floats round to nearest even."""
  if dtype.kind is Kind.FLOAT: return _round(float(value), dtype)
  if dtype.kind is Kind.BOOL: return bool(value)
  return wrap(int(value), dtype)


def cast(value: Scalar, source: DType, target: DType) -> Scalar:
  """CAST of a canonical value."""
  if target.is_bool: return value != 0
  if source.is_float and target.is_int:
    if math.isnan(value): return 0
    if math.isinf(value): return target.max if value > 0 else target.min
    return min(max(math.trunc(value), target.min), target.max)
  if target.is_float and isinstance(value, int) and abs(value) >> 53:
    # float() would round to 53 bits, and canonical() once more: keep 40 bits and whether there was more below them.
    below = abs(value).bit_length() - 40
    if target is not dtypes.float64: value = (value >> below | (value & ((1 << below) - 1) != 0)) << below
  return canonical(value, target)


def to_bits(value: Scalar, dtype: DType) -> int:
  """The memory of a canonical value as an unsigned integer."""
  if dtype in SMALL: return SMALL[dtype].bits(float(value))
  if dtype is dtypes.bfloat16: return int.from_bytes(struct.pack("<f", value), "little") >> 16
  return int.from_bytes(struct.pack("<" + FORMATS[dtype.name], value), "little")


def from_bits(bits: int, dtype: DType) -> Scalar:
  """The value whose memory is `bits`."""
  if dtype in SMALL: return SMALL[dtype].value(bits)
  if dtype is dtypes.bfloat16: return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
  value: Scalar = struct.unpack("<" + FORMATS[dtype.name], bits.to_bytes(dtype.itemsize, "little"))[0]
  return value


def bitcast(value: Scalar, source: DType, target: DType) -> Scalar:
  """BITCAST of a canonical value: the same memory read as another type of the same size."""
  return from_bits(to_bits(value, source), target)


def trunc_div(a: int, b: int) -> int:
  """C's `a / b`, with 0 for a zero divisor."""
  if b == 0: return 0
  quotient = abs(a) // abs(b)
  return quotient if (a < 0) == (b < 0) else -quotient


def _or_infinite(function: Callable[[float], float]) -> Callable[[float], float]:
  """A growing function of math, infinite where that overflows."""
  def computed(x: float) -> float:
    try: return function(x)
    except OverflowError: return math.inf
  return computed


def _logarithm(function: Callable[[float], float], zero: float = 0.0) -> Callable[[float], float]:
  """A logarithm of math that is -infinity at `zero` and NaN below."""
  return lambda x: -math.inf if x == zero else function(x) if x > zero else math.nan


def _circular(function: Callable[[float], float]) -> Callable[[float], float]:
  return lambda x: function(x) if math.isfinite(x) else math.nan


def _fmod(a: float, b: float) -> float:
  return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)


def _pow(a: float, b: float) -> float:
  try: return math.pow(a, b)
  except OverflowError: return math.copysign(math.inf, a if b % 2 == 1 else 1.0)
  except ValueError:          # a zero to a negative power, or a negative number to a fraction
    if a != 0: return math.nan
    return math.copysign(math.inf, a) if b % 2 == 1 else math.inf


def _fdiv(a: float, b: float) -> float:
  if b != 0: return a / b
  if a == 0 or math.isnan(a): return math.nan
  return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _maximum(a: Scalar, b: Scalar) -> Scalar:
  if a == b == 0: return a if math.copysign(1.0, a) > 0 else b
  return a if a > b or a != a else b


def _multiply(a: Scalar, b: Scalar) -> Scalar: return a * b


_MEANING: dict[Ops, Callable[..., Scalar]] = {
  Ops.EXP2: _or_infinite(lambda a: math.pow(2.0, a)),
  Ops.EXP: _or_infinite(math.exp),
  Ops.EXPM1: _or_infinite(math.expm1),
  Ops.LOG2: _logarithm(math.log2),
  Ops.LOG: _logarithm(math.log),
  Ops.LOG10: _logarithm(math.log10),
  Ops.LOG1P: _logarithm(math.log1p, -1.0),
  Ops.SIN: _circular(math.sin),
  Ops.COS: _circular(math.cos),
  Ops.TANH: math.tanh,
  Ops.FMOD: _fmod,
  Ops.POW: _pow,
  Ops.SQRT: lambda a: math.sqrt(a) if a >= 0 else math.nan,
  Ops.RECIP: lambda a: _fdiv(1.0, a),
  Ops.NEG: lambda a: -a,
  Ops.TRUNC: lambda a: math.copysign(math.trunc(a), a) if math.isfinite(a) else a,
  Ops.ADD: lambda a, b: a + b,
  Ops.SUB: lambda a, b: a - b,
  Ops.MUL: _multiply,
  Ops.FDIV: _fdiv,
  Ops.IDIV: trunc_div,
  Ops.MOD: lambda a, b: a - trunc_div(a, b) * b if b != 0 else 0,
  Ops.MAX: _maximum,
  Ops.CMPLT: lambda a, b: a < b,
  Ops.CMPNE: lambda a, b: a != b,
  Ops.CMPEQ: lambda a, b: a == b,
  Ops.AND: lambda a, b: a & b,
  Ops.OR: lambda a, b: a | b,
  Ops.XOR: lambda a, b: a ^ b,
  Ops.WHERE: lambda c, a, b: a if c else b,
  Ops.MULACC: lambda a, b, c: a * b + c,
}


def alu(op: Ops, operand: DType, *values: Scalar) -> Scalar:
  """The result of the arithmetic `op` on canonical values.

  `operand` is the type of the operands (for WHERE of the second and third); comparisons give a bool, all
  else `operand`.
  """
  if op is Ops.SHL: return wrap(int(values[0]) << (int(values[1]) % operand.bits), operand)
  if op is Ops.SHR: return wrap(int(values[0]) >> (int(values[1]) % operand.bits), operand)
  result = _MEANING[op](*values)
  return result if op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.WHERE) else canonical(result, operand)
