"""The operations that meanings are written against, and what they are on NumPy's arrays.

A meaning is a pure function `meaning(o, *operands) -> results`. Operands are typed values: NumPy arrays or scalars of
shape (), (waves, 1) or (waves, lanes) whose dtype is the operand's type, or what has a compiler's place for them. On
them a meaning may use what `Array` has and the methods of `Operations`, nothing else.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

DTYPES: Final = {name: np.dtype(code) for name, code in {
  "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
  "f16": "f2", "f32": "f4", "f64": "f8", "bool": "?"}.items()}
U16, U32, U64, I32, I64 = (DTYPES[t] for t in ("u16", "u32", "u64", "i32", "i64"))
F16, F32, F64 = (DTYPES[t] for t in ("f16", "f32", "f64"))
BOOL: Final = DTYPES["bool"]
TRUE: Final[Array] = BOOL.type(True)
FALSE: Final[Array] = BOOL.type(False)
BITS: Final = {"f16": "u16", "f32": "u32", "f64": "u64"}
_FLOATS: Final = {  # bits of the fraction, exponent mask, bias
  "f16": (10, 0x1F, 15), "f32": (23, 0xFF, 127), "f64": (52, 0x7FF, 1023)}
_TIE: Final = np.int64(-(1 << 63))  # the low 29 bits of an f64 half way between two f32, at the top
_NORMAL: Final = np.float32(2.0 ** -126)


class Value(Protocol):
  """What a meaning may do with an operand. The other side is a value of the same type, or a number that it can hold.

  Integers wrap around, `>>` of a signed one is arithmetic; floats round to nearest even; comparisons give bools.
  """
  @property
  def dtype(self) -> Any: ...
  def __add__(self, other: Self | float, /) -> Self: ...
  def __radd__(self, other: float, /) -> Self: ...
  def __sub__(self, other: Self | float, /) -> Self: ...
  def __rsub__(self, other: float, /) -> Self: ...
  def __mul__(self, other: Self | float, /) -> Self: ...
  def __rmul__(self, other: float, /) -> Self: ...
  def __floordiv__(self, other: Self, /) -> Self: ...
  def __and__(self, other: Self | int, /) -> Self: ...
  def __rand__(self, other: int, /) -> Self: ...
  def __or__(self, other: Self | int, /) -> Self: ...
  def __ror__(self, other: int, /) -> Self: ...
  def __xor__(self, other: Self | int, /) -> Self: ...
  def __rxor__(self, other: int, /) -> Self: ...
  def __lshift__(self, other: Self | int, /) -> Self: ...
  def __rshift__(self, other: Self | int, /) -> Self: ...
  def __invert__(self) -> Self: ...
  def __neg__(self) -> Self: ...
  def __lt__(self, other: Self | float, /) -> Self: ...
  def __le__(self, other: Self | float, /) -> Self: ...
  def __gt__(self, other: Self | float, /) -> Self: ...
  def __ge__(self, other: Self | float, /) -> Self: ...
  def __eq__(self, other: object, /) -> Self: ...  # type: ignore[override]  # lane by lane
  def __ne__(self, other: object, /) -> Self: ...  # type: ignore[override]  # lane by lane


V = TypeVar("V", bound=Value)


class Bits(Value, Protocol):
  """What a bound step may do with a value of any kind beside: have it as another type. NumPy's arrays and scalars are
  such values, and LLVM's."""
  def view(self, dtype: np.dtype[Any], /) -> Self: ...
  def astype(self, dtype: np.dtype[Any], /) -> Self: ...
  def __add__(self, other: Self | float | np.generic, /) -> Self: ...
  def __sub__(self, other: Self | float | np.generic, /) -> Self: ...
  def __and__(self, other: Self | int | np.generic, /) -> Self: ...
  def __or__(self, other: Self | int | np.generic, /) -> Self: ...
  def __xor__(self, other: Self | int | np.generic, /) -> Self: ...
  def __lshift__(self, other: Self | int | np.generic, /) -> Self: ...
  def __rshift__(self, other: Self | int | np.generic, /) -> Self: ...
  def __lt__(self, other: Self | float | np.generic, /) -> Self: ...
  def __gt__(self, other: Self | float | np.generic, /) -> Self: ...


B = TypeVar("B", bound=Bits)


class Operations(Protocol[V]):
  """What a meaning may do beside, on values of one kind: see `Ops`, which does it on NumPy's."""
  def const(self, type_: str, value: float) -> V: ...
  def from_bits(self, type_: str, bits: int) -> V: ...
  def to(self, x: V, type_: str) -> V: ...
  def bits(self, x: V, type_: str) -> V: ...
  def to_int(self, x: V, type_: str) -> V: ...
  def pack(self, low: V, high: V) -> V: ...
  def where(self, condition: V, a: V | float, b: V | float) -> V: ...
  def min(self, a: V, b: V | int) -> V: ...
  def max(self, a: V, b: V | int) -> V: ...
  def clip(self, x: V, low: int, high: int) -> V: ...
  def lookup(self, type_: str, table: list[int], index: V) -> V: ...
  def popcount(self, x: V) -> V: ...
  def leading_zeros(self, x: V) -> V: ...
  def trailing_zeros(self, x: V) -> V: ...
  def reverse(self, x: V) -> V: ...
  def mul_high(self, a: V, b: V) -> V: ...
  def fma(self, a: V, b: V, c: V) -> V: ...
  def fma_scaled(self, a: V, b: V, c: V, e: V) -> V: ...
  def fma_f16_of_f32(self, a: V, b: V, c: V) -> V: ...
  def fdiv(self, a: V, b: V) -> V: ...
  def sqrt(self, x: V) -> V: ...
  def floor(self, x: V) -> V: ...
  def ceil(self, x: V) -> V: ...
  def trunc(self, x: V) -> V: ...
  def rint(self, x: V) -> V: ...
  def abs(self, x: V) -> V: ...
  def neg(self, x: V) -> V: ...
  def copysign(self, x: V, sign: V) -> V: ...
  def signbit(self, x: V) -> V: ...
  def isnan(self, x: V) -> V: ...
  def isinf(self, x: V) -> V: ...
  def fmin(self, a: V, b: V) -> V: ...
  def fmax(self, a: V, b: V) -> V: ...
  def ldexp(self, x: V, e: V) -> V: ...
  def exponent(self, x: V) -> V: ...
  def is_denormal(self, x: V) -> V: ...
  def frexp(self, x: V) -> tuple[V, V]: ...
  def flush(self, x: V) -> V: ...


class Unary(Protocol):
  """A meaning of one operand."""
  def __call__(self, o: Operations[V], a: V, /) -> V: ...


class Binary(Protocol):
  """A meaning of two operands."""
  def __call__(self, o: Operations[V], a: V, b: V, /) -> V: ...


class Ternary(Protocol):
  """A meaning of three operands."""
  def __call__(self, o: Operations[V], a: V, b: V, c: V, /) -> V: ...


class Ops:
  """Operations in NumPy, on arrays and its scalars."""

  # ---- constants and conversions
  @staticmethod
  def const(type_: str, value: float) -> Array: return DTYPES[type_].type(value)

  @staticmethod
  def from_bits(type_: str, bits: int) -> Array: return DTYPES[BITS[type_]].type(bits).view(DTYPES[type_])

  @staticmethod
  def to(x: Array, type_: str) -> Array:
    """Integer to integer (wraps, extends by the source's sign), integer to float or float to float (nearest even).

    A NaN of another float type is quiet and keeps the upper bits of its fraction.
    """
    dtype = DTYPES[type_]
    if x.dtype.kind == "f" and dtype.kind == "f" and x.dtype != dtype: x = quieted(x)  # NumPy's f16 may stay signalling
    return x.astype(dtype)

  @staticmethod
  def bits(x: Array, type_: str) -> Array:
    """The same bits as another type of the same width."""
    return x.view(DTYPES[type_])

  @staticmethod
  def to_int(x: Array, type_: str) -> Array:
    """Float to integer toward zero, saturating; NaN gives 0."""
    low, high = np.iinfo(DTYPES[type_]).min, np.iinfo(DTYPES[type_]).max
    wide = np.trunc(x.astype(F64))
    limited = np.where(wide >= float(high), 0.0, np.where(wide > float(low), wide, float(low)))
    out = np.where(wide >= float(high), DTYPES[type_].type(high), np.nan_to_num(limited).astype(DTYPES[type_]))
    return np.where(np.isnan(wide), DTYPES[type_].type(0), out)

  @staticmethod
  def pack(low: Array, high: Array) -> Array:
    """Two u32 as one u64."""
    return low.astype(U64) | high.astype(U64) << np.uint64(32)

  # ---- selection
  @staticmethod
  def where(condition: Array, a: Array | float, b: Array | float) -> Array: return np.where(condition, a, b)

  @staticmethod
  def min(a: Array, b: Array | int) -> Array: return np.minimum(a, b)

  @staticmethod
  def max(a: Array, b: Array | int) -> Array: return np.maximum(a, b)

  @staticmethod
  def clip(x: Array, low: int, high: int) -> Array: return np.clip(x, low, high)

  @staticmethod
  def lookup(type_: str, table: list[int], index: Array) -> Array: return np.array(table, DTYPES[type_])[index]

  # ---- bits
  @staticmethod
  def popcount(x: Array) -> Array: return np.bitwise_count(x).astype(U32)

  @staticmethod
  def leading_zeros(x: Array) -> Array:
    """u32; the width for zero."""
    n = x.dtype.itemsize * 8
    v = x
    for k in (1, 2, 4, 8, 16, 32):
      if k < n: v = v | v >> x.dtype.type(k)
    return np.uint32(n) - np.bitwise_count(v).astype(U32)

  @staticmethod
  def trailing_zeros(x: Array) -> Array:
    """u32; the width for zero."""
    return np.bitwise_count((x & (~x + x.dtype.type(1))) - x.dtype.type(1)).astype(U32)

  @staticmethod
  def reverse(x: Array) -> Array:
    """Bits in reverse order (u32 or u64)."""
    n = x.dtype.itemsize * 8
    for k, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F),
                    (8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF)):
      if k < n:
        m, s = x.dtype.type(mask & (1 << n) - 1), x.dtype.type(k)
        x = (x >> s & m) | (x & m) << s
    return x

  @staticmethod
  def mul_high(a: Array, b: Array) -> Array:
    """Upper half of a 32-bit product, signed or unsigned by type."""
    wide = I64 if a.dtype.kind == "i" else U64
    return (a.astype(wide) * b.astype(wide) >> wide.type(32)).astype(a.dtype)

  # ---- floats
  @staticmethod
  def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c rounded once. A NaN operand comes before one that the product makes."""
    r = _fma32(a, b, c) if a.dtype == F32 else _fma16(a, b, c) if a.dtype == F16 else _fma64(a, b, c)
    return _kept_addend(r, a, b, c)

  @staticmethod
  def fma_scaled(a: Array, b: Array, c: Array, e: Array) -> Array:
    """(a * b + c) * 2**e of f32 or f64, rounded once."""
    if a.dtype == F32:
      wide = Ops.fma_f16_of_f32(a.astype(F64), b.astype(F64), c.astype(F64))
      return _kept_addend(np.ldexp(wide, e).astype(F32), a, b, c)
    r = np.asarray(_kept_addend(np.ldexp(_fma64(a, b, c), e), a, b, c))
    tiny = (np.abs(r) < 2.0**-1021) & (e != 0) & np.isfinite(r)
    if tiny.any():
      r = r.copy()
      x, y, z, n = (np.broadcast_to(v, r.shape)[tiny] for v in (a, b, c, e))
      r[tiny] = [_fma64_exact(float(p), float(q), float(s), int(k)) for p, q, s, k in zip(x, y, z, n)]
    return r[()]

  @staticmethod
  def fma_f16_of_f32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of f32 values given as f64, rounded to odd in f64, so that one more rounding to f16 is exact."""
    p = a * b
    s = np.asarray(p + c)
    return _to_odd(s, error_of_sum(p, c, s))

  @staticmethod
  def fdiv(a: Array, b: Array) -> Array: return np.true_divide(a, b)

  @staticmethod
  def sqrt(x: Array) -> Array: return np.sqrt(x)

  @staticmethod
  def floor(x: Array) -> Array: return np.floor(x)

  @staticmethod
  def ceil(x: Array) -> Array: return np.ceil(x)

  @staticmethod
  def trunc(x: Array) -> Array: return np.trunc(x)

  @staticmethod
  def rint(x: Array) -> Array:
    """To the nearest integer, ties to even."""
    return np.rint(x)

  @staticmethod
  def abs(x: Array) -> Array: return np.abs(x)

  @staticmethod
  def neg(x: Array) -> Array: return np.negative(x)

  @staticmethod
  def copysign(x: Array, sign: Array) -> Array: return np.copysign(x, sign)

  @staticmethod
  def signbit(x: Array) -> Array: return np.signbit(x)

  @staticmethod
  def isnan(x: Array) -> Array: return np.isnan(x)

  @staticmethod
  def isinf(x: Array) -> Array: return np.isinf(x)

  @staticmethod
  def fmin(a: Array, b: Array) -> Array:
    """The number of two operands where one is NaN; -0 is less than +0."""
    r = _of_numbers(np.fmin(a, b), a, b)
    if np.any(r == 0): r = np.where((a == 0) & (b == 0) & (np.signbit(a) | np.signbit(b)), a.dtype.type(-0.0), r)
    return r

  @staticmethod
  def fmax(a: Array, b: Array) -> Array:
    """The number of two operands where one is NaN; +0 is more than -0."""
    r = _of_numbers(np.fmax(a, b), a, b)
    if np.any(r == 0): r = np.where((a == 0) & (b == 0) & ~(np.signbit(a) & np.signbit(b)), a.dtype.type(0.0), r)
    return r

  @staticmethod
  def ldexp(x: Array, e: Array) -> Array:
    """x * 2**e rounded once."""
    e = np.clip(e.astype(I32), -6000, 6000)
    return np.ldexp(x.astype(F64), e).astype(x.dtype) if x.dtype != F64 else np.ldexp(x, e)

  @staticmethod
  def exponent(x: Array) -> Array:
    """The biased exponent field, as i32."""
    return Ops._split(x)[0]

  @staticmethod
  def is_denormal(x: Array) -> Array:
    exponent, fraction = Ops._split(x)
    return (exponent == 0) & (fraction != 0)

  @staticmethod
  def _split(x: Array) -> tuple[Array, Array]:
    name = f"f{x.dtype.itemsize * 8}"
    fraction, mask, _ = _FLOATS[name]
    raw = x.view(DTYPES[BITS[name]])
    t = raw.dtype.type
    return (raw >> t(fraction) & t(mask)).astype(I32), raw & t((1 << fraction) - 1)

  @staticmethod
  def frexp(x: Array) -> tuple[Array, Array]:
    """(fraction in [0.5, 1), exponent as i32) of finite x; zero gives (0, 0)."""
    m, e = np.frexp(x)
    return m, np.asarray(e).astype(I32)

  @staticmethod
  def flush(x: Array) -> Array:
    """Denormals become zeros of the same sign."""
    tiny = np.finfo(x.dtype).tiny
    small = np.abs(x) < tiny
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if np.any(small) else x

  @staticmethod
  def rounded(x: Array, type_: str, mode: str) -> Array:
    """A number as a float type, rounded "rz", "rm" or "rp": another kind of value has this, see `meanings.rounding`."""
    raise NotImplementedError

  @staticmethod
  def opaque(function: Any, *operands: Array) -> Any:
    """What a function of NumPy's arrays makes of the operands: another kind of value has its own way to ask it."""
    return function(*operands)


if TYPE_CHECKING: NUMPY: Operations[Array] = Ops  # it has them all


def quieted(x: Array) -> Array:
  """Floats with their signalling NaNs quiet."""
  nan = x != x
  if not np.any(nan): return x
  name = f"f{x.dtype.itemsize * 8}"
  raw = x.view(DTYPES[BITS[name]])
  return np.where(nan, raw | raw.dtype.type(1 << _FLOATS[name][0] - 1), raw).view(x.dtype)


def _kept_addend(r: Array, a: Array, b: Array, c: Array) -> Array:
  """The result of a * b + c, where a NaN that is c and the only one comes before one that the product makes."""
  if not np.any(r != r): return r
  return np.where((c != c) & (a == a) & (b == b), quieted(c), r)


def _of_numbers(r: Array, a: Array, b: Array) -> Array:
  """NumPy's fmin or fmax r of a and b: it may give NaN for a number and a signalling NaN, as the C library does."""
  return np.where(np.isnan(b), a, np.where(np.isnan(a), b, r)) if np.any(r != r) else r


def error_of_sum(a: Array, b: Array, s: Array) -> Array:
  """What a + b lost when it was rounded to s (Knuth's two-sum); exact in the absence of overflow."""
  bb = s - a
  return (a - (s - bb)) + (b - bb)


def _to_odd(s: Array, e: Array) -> Array:
  """The f64 sum s with lost part e, rounded to odd: it then rounds correctly to any narrower format."""
  raw = s.view(I64)
  inexact = np.isfinite(e) & (e != 0) & (raw & 1 == 0)
  step = np.where((e > 0) == (s > 0), np.int64(1), np.int64(-1))
  return np.where(inexact, raw + step, raw).view(F64)


def _fma32(a: Array, b: Array, c: Array) -> Array:
  """The product of two f32 is exact in f64; the sum is rounded twice, which only shows where the f64 sum is a tie: at
  the bit that normal numbers round at, or at another one for those that become subnormal or the smallest normal."""
  p = np.multiply(a, b, dtype=F64)
  s = np.add(p, c)
  r = s.astype(F32)
  if s.ndim == 0: return _to_odd(s, error_of_sum(p, c.astype(F64), s)).astype(F32)
  ties = (s.view(I64) << 35).min() == _TIE
  if ties or not np.abs(r).min() > _NORMAL and ((r.view(U32) << 1) - np.uint32(1)).min() <= 0x00FFFFFF:
    return _to_odd(s, error_of_sum(p, np.asarray(c, F64), s)).astype(F32)
  return r


def _fma16(a: Array, b: Array, c: Array) -> Array:
  p, c64 = np.multiply(a, b, dtype=F64), c.astype(F64)
  s = np.asarray(p + c64)
  return _to_odd(s, error_of_sum(p, c64, s)).astype(F16)


def _fma64(a: Array, b: Array, c: Array) -> Array:
  """Exact through long arithmetic on lanes that need it; otherwise by double-double products (Dekker)."""
  a, b, c = np.broadcast_arrays(np.asarray(a), np.asarray(b), np.asarray(c))
  plain = a * b + c
  out = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, plain)
  # The scaled product keeps clear of overflow and underflow, so that Dekker's split and two-sum are exact.
  finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
  if not finite.any(): return out if out.ndim else out[()]
  x, y, z = a[finite], b[finite], c[finite]
  magnitude = np.frexp(x)[1] + np.frexp(y)[1]
  safe = (np.abs(magnitude) < 900) & ((z == 0) | (np.abs(np.frexp(z)[1]) < 900)) & (np.abs(np.frexp(x)[1]) < 900) \
    & (np.abs(np.frexp(y)[1]) < 900)
  result = np.empty_like(x)
  if safe.any(): result[safe] = _fma64_safe(x[safe], y[safe], z[safe])
  for i in np.flatnonzero(~safe): result[i] = _fma64_exact(float(x[i]), float(y[i]), float(z[i]))
  out[finite] = result
  return out if out.ndim else out[()]


def _halves(x: Array) -> tuple[Array, Array]:
  t = x * 134217729.0
  high = t - (t - x)
  return high, x - high


def error_of_product(a: Array, b: Array, p: Array) -> Array:
  """What a * b lost when it was rounded to p (Dekker); exact for f64 far from the ends of its range."""
  (ah, al), (bh, bl) = _halves(a), _halves(b)
  return al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def _fma64_safe(a: Array, b: Array, c: Array) -> Array:
  p = a * b
  pe = error_of_product(a, b, p)
  s = p + c
  se = error_of_sum(p, c, s)
  # s + se + pe is exact in value; add the two errors to odd, so that the last addition rounds correctly
  e = pe + se
  return s + _to_odd(e, error_of_sum(pe, se, e))


def _fma64_exact(a: float, b: float, c: float, e: int = 0) -> float:
  """(a * b + c) * 2**e of one lane by integers."""
  (an, ad), (bn, bd), (cn, cd) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
  n, d = an * bn * cd + cn * ad * bd, ad * bd * cd
  if n == 0: return a * b + c
  if e < 0: d <<= -e
  else: n <<= e
  try: return n / d
  except OverflowError: return float("inf") if n > 0 else float("-inf")
