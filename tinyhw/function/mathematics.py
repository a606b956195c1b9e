"""Functions of each element by itself that are no single operation: powers, exponentials, logarithms, circles.

Integers compute in the default float, 16-bit floats in float32. How exactly stands in docs/accuracy.md.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidType
from tinyhw.function.core import ConstType, TensorBase, number, result_dtype, wide_float
from tinyhw.function.elementwise import Elementwise
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self


class Mathematics(Elementwise):
  """The functions of numbers."""
  __slots__ = ()

  def _in_wide(self) -> tuple[Self, DType]:
    """This in the type to compute in, and the type of the result."""
    wide = self.cast(wide_float(self.dtype))
    return wide, self.dtype if self.dtype.is_float else wide.dtype

  # *** powers ***

  def pow(self, other: Any, reverse: bool = False) -> Self:
    """Power. Of integers it wraps, a bool counts as int32; an integer to the power of a negative number is refused, and
    is that of the whole numbers where the exponents are a tensor. Of floats it has the special cases of IEEE 754."""
    if not reverse and not isinstance(other, TensorBase):
      exponent = number(other)
      if isinstance(exponent, int) and not self.dtype.is_float:
        if exponent < 0:
          raise InvalidArgument(f"{self.dtype} to the power of {exponent}", hint="cast the base to a float")
        return (self.cast(dtypes.default_int) if self.dtype.is_bool else self)._power(exponent)
      if exponent in _SHORT_POWERS:
        base, dtype = self._in_wide()
        short: Self = _SHORT_POWERS[exponent](base).cast(dtype)
        return short
    operand = self._operand(other)
    base, exp = (operand, self) if reverse else (self, operand)
    dtype = result_dtype(base, exp)
    if not dtype.is_float:
      if dtype.is_bool: dtype = dtypes.default_int
      whole: Self = base.cast(dtype)._integer_power(exp.cast(dtype))
      return whole
    x: Self = base.cast(wide_float(dtype))
    y: Self = exp.cast(wide_float(dtype))
    if reverse and not isinstance(other, TensorBase) and number(other) == 2: return y.exp2().cast(dtype)
    return x._binary(Ops.POW, y).cast(dtype)

  def _power(self, exponent: int) -> Self:
    result, square = None, self
    while exponent:
      if exponent & 1: result = square._same() if result is None else result * square
      exponent >>= 1
      if exponent: square = square * square
    return self.const_like(1) if result is None else result

  def _integer_power(self, exponent: Self) -> Self:
    """Integers to the power of integers of the same type; below 0 what is left of the fraction: 0, or 1 and -1."""
    bits = self.dtype.bits
    square: Self = self
    result: Self = (exponent & 1).ne(0).where(self, 1)
    for bit in range(1, bits):
      square = square * square
      result = ((exponent >> bit) & 1).ne(0).where(result * square, result)
    if not self.dtype.is_signed: return result
    # The square of 1 and of -1 is 1: for them the bits of a negative exponent give what is wanted.
    return (exponent < 0).where((self.eq(1) | self.eq(-1)).where(result, 0), result)

  def __pow__(self, x: Any) -> Self: return self.pow(x)
  def __rpow__(self, x: Any) -> Self: return self.pow(x, True)

  # *** functions of floats (integers compute in the default float) ***

  def _unary(self, op: Ops) -> Self:
    wide = self.cast(wide_float(self.dtype))
    return wide._derive(wide.uop.alu(op)).cast(self.dtype if self.dtype.is_float else wide.dtype)

  def exp2(self) -> Self:
    """2 to the power of each element."""
    return self._unary(Ops.EXP2)
  def exp(self) -> Self:
    """e to the power of each element."""
    return self._unary(Ops.EXP)
  def expm1(self) -> Self:
    """exp(x) - 1, accurate next to 0."""
    return self._unary(Ops.EXPM1)
  def log2(self) -> Self:
    """Logarithm to base 2."""
    return self._unary(Ops.LOG2)
  def log(self) -> Self:
    """Natural logarithm."""
    return self._unary(Ops.LOG)
  def log10(self) -> Self:
    """Logarithm to base 10."""
    return self._unary(Ops.LOG10)
  def log1p(self) -> Self:
    """log(1 + x), accurate next to 0."""
    return self._unary(Ops.LOG1P)
  def sin(self) -> Self:
    """Sine of radians."""
    return self._unary(Ops.SIN)
  def cos(self) -> Self:
    """Cosine of radians."""
    return self._unary(Ops.COS)
  def tan(self) -> Self:
    """Tangent of radians."""
    x, dtype = self._in_wide()
    return (x.sin() / x.cos()).cast(dtype)
  def sqrt(self) -> Self:
    """Square root."""
    return self._unary(Ops.SQRT)
  def rsqrt(self) -> Self:
    """1 / sqrt(x)."""
    x, dtype = self._in_wide()
    return x.sqrt().reciprocal().cast(dtype)
  def reciprocal(self) -> Self:
    """1 / x."""
    return self._unary(Ops.RECIP)
  recip = reciprocal

  def square(self) -> Self:
    """x * x."""
    return self * self

  # *** circles and hyperbolas: float32 computes in float64 ***

  def _in_double(self) -> tuple[Self, Self, DType]:
    """This in the type to compute in, the same without a gradient, and the type of the result."""
    kind = self.dtype if self.dtype.is_float else dtypes.default_float
    wide = self.cast(kind).cast(dtypes.float32 if kind.bits < 32 else dtypes.float64)
    return wide, wide._wrap(wide.uop.detach()), kind

  def _signed_as(self, x: Self) -> Self:
    """This, which is not negative, with the sign of `x`; a zero with the sign of a zero."""
    return (x < 0).where(-self, x.eq(0).where(x, self))

  def sinh(self) -> Self:
    """Hyperbolic sine."""
    x, y, dtype = self._in_double()
    return y._sinh()._with_derivative((x, y._cosh)).cast(dtype)
  def cosh(self) -> Self:
    """Hyperbolic cosine."""
    x, y, dtype = self._in_double()
    return y._cosh()._with_derivative((x, y._sinh)).cast(dtype)

  def _sinh(self) -> Self:
    size = self.abs()
    less, half = size.expm1(), (size * 0.5).exp()
    return (size > 20).where(half * (half * 0.5), (less + less / (less + 1)) * 0.5)._signed_as(self)

  def _cosh(self) -> Self:
    size = self.abs()
    power, half = size.exp(), (size * 0.5).exp()
    return (size > 20).where(half * (half * 0.5), (power + 1 / power) * 0.5)

  def asinh(self) -> Self:
    """Inverse of the hyperbolic sine."""
    x, y, dtype = self._in_double()
    a = y.abs()
    far = a > 1e8          # the square of more than that is no number of float32, and 1 is lost in it
    near = (a + a * a / ((a * a + 1).sqrt() + 1)).log1p()
    found = far.where(a.log() + math.log(2), near)._signed_as(y)
    return found._with_derivative((x, lambda: far.where(1 / a, (a * a + 1).rsqrt()))).cast(dtype)

  def acosh(self) -> Self:
    """Inverse of the hyperbolic cosine, from 1 on; else NaN."""
    x, y, dtype = self._in_double()
    t = y - 1
    found = (y > 1e8).where(y.log() + math.log(2), (t + (t * (y + 1)).sqrt()).log1p())
    found = (y < 1).where(math.nan, found)
    return found._with_derivative((x, lambda: (t * (y + 1)).rsqrt())).cast(dtype)

  def atanh(self) -> Self:
    """Inverse of the hyperbolic tangent, within -1..1; else NaN."""
    x, y, dtype = self._in_double()
    a = y.abs()
    found = ((2 * a / (1 - a)).log1p() * 0.5)._signed_as(y)
    return found._with_derivative((x, lambda: 1 / ((1 - y) * (1 + y)))).cast(dtype)

  def _atan_of_part(self) -> Self:
    """Arc tangent of 0..1: twice that of what half the angle has, a polynomial."""
    t = self / ((self * self + 1).sqrt() + 1)
    return 2 * (t * (t * t)._polynomial(_ATAN))

  def _polynomial(self, coefficients: Sequence[float]) -> Self:
    """The sum of coefficients[i] * x**i."""
    total = self.const_like(coefficients[-1])
    for c in coefficients[-2::-1]: total = total * self + c
    return total

  def atan(self) -> Self:
    """Inverse of the tangent, in radians."""
    x, y, dtype = self._in_double()
    return y._atan()._with_derivative((x, lambda: 1 / (1 + y * y))).cast(dtype)

  def _atan(self) -> Self:
    a = self.abs()
    steep = a > 1
    part = steep.where(1 / steep.where(a, 1), a)._atan_of_part()
    return steep.where(math.pi / 2 - part + _HALF_PI_REST, part)._signed_as(self)

  def asin(self) -> Self:
    """Inverse of the sine, in radians; NaN beyond -1..1."""
    x, y, dtype = self._in_double()
    a = y.abs()
    steep = a > 0.7
    # Beyond 0.7 it is a right angle less twice that of the half; below, twice the arc tangent of half the angle.
    part = steep.where(((1 - a) * 0.5).sqrt(), a)
    t = part / (((1 - part) * (1 + part)).sqrt() + 1)
    angle = 2 * (t * (t * t)._polynomial(_ATAN))
    found = steep.where(math.pi / 2 - 2 * angle + _HALF_PI_REST, angle)._signed_as(y)
    return found._with_derivative((x, lambda: ((1 - y) * (1 + y)).rsqrt())).cast(dtype)

  def acos(self) -> Self:
    """Inverse of the cosine, in radians; NaN beyond -1..1."""
    x, y, dtype = self._in_double()
    found = 2 * ((1 - y) / (1 + y)).sqrt()._atan()
    return found._with_derivative((x, lambda: -((1 - y) * (1 + y)).rsqrt())).cast(dtype)

  arcsinh, arccosh, arctanh, arcsin, arccos, arctan = asinh, acosh, atanh, asin, acos, atan

  def _two(self, other: Any, double: bool = True) -> tuple[Self, Self, Self, Self, DType]:
    """Both operands in the type to compute in, the same without a gradient, and the type of the result."""
    b = self._operand(other)
    kind = result_dtype(self, b)
    if not kind.is_float: kind = dtypes.default_float
    wide = wide_float(kind)
    if double and wide is dtypes.float32 and kind.bits == 32: wide = dtypes.float64
    x, y = (self._wrap(u, t) for u, t in zip(self.cast(wide)._together(b.cast(wide)), (self, b)))
    return x, y, x._wrap(x.uop.detach()), y._wrap(y.uop.detach()), kind

  def atan2(self, other: Any) -> Self:
    """The angle of the point (other, self), -pi..pi, with the signs of zeros and infinities as in C."""
    p, q, y, x, dtype = self._two(other)
    a, b = y.abs(), x.abs()
    steep = a > b
    low, high = steep.where(b, a), steep.where(a, b)
    same = low.eq(high)
    ratio = same.where(1, low / same.where(1, high))
    ratio = high.eq(0).where(0, ratio)
    angle = ratio._atan_of_part()
    angle = steep.where(math.pi / 2 - angle + _HALF_PI_REST, angle)
    angle = x.signbit().where(math.pi - angle + 2 * _HALF_PI_REST, angle)
    angle = y.signbit().where(-angle, angle)
    found = (y.isnan() | x.isnan()).where(math.nan, angle)
    square = x * x + y * y
    square = square.eq(0).where(1, square)       # in the middle, where there is no slope, it is 0
    return found._with_derivative((p, lambda: x / square), (q, lambda: -y / square)).cast(dtype)
  arctan2 = atan2

  def hypot(self, other: Any) -> Self:
    """sqrt(x*x + y*y), without overflow; infinite where one is, even beside NaN."""
    p, q, x, y, dtype = self._two(other)
    a, b = x.abs(), y.abs()
    high, low = (a < b).where(b, a), (a < b).where(a, b)
    part = low / (high.eq(0) | high.eq(math.inf)).where(1, high)
    found = (a.eq(math.inf) | b.eq(math.inf)).where(math.inf, high * (1 + part * part).sqrt())
    return found._with_derivative((p, lambda: x / found), (q, lambda: y / found)).cast(dtype)

  def logaddexp(self, other: Any) -> Self:
    """log(exp(x) + exp(y)), without overflow."""
    return self._log_of_sum(other, 1.0)
  def logaddexp2(self, other: Any) -> Self:
    """log2(2**x + 2**y), without overflow."""
    return self._log_of_sum(other, math.log(2))

  def _log_of_sum(self, other: Any, scale: float) -> Self:
    p, q, x, y, dtype = self._two(other, double=False)
    top = x.maximum(y)
    same = x.eq(y)
    apart = same.where(0, (x - y).abs()) * -scale
    found = top + apart.exp().log1p() / scale
    def share(a: Self, b: Self) -> Self: return 1 / (1 + (same.where(0, b - a) * scale).exp())
    return found._with_derivative((p, lambda: share(x, y)), (q, lambda: share(y, x))).cast(dtype)

  # *** the error function ***

  def erf(self) -> Self:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
    x, y, dtype = self._in_double()
    a = y.abs()
    found = (a > 1).where((1 - a._erfc_beyond())._signed_as(y), y * (y * y).minimum(1)._polynomial(_ERF))
    return found._with_derivative((x, lambda: (-(y * y)).exp() * (2 / math.sqrt(math.pi)))).cast(dtype)

  def erfc(self) -> Self:
    """1 - erf(x), exact where that is next to 0."""
    x, y, dtype = self._in_double()
    a = y.abs()
    beyond = a._erfc_beyond()
    near = 1 - y * (y * y).minimum(1)._polynomial(_ERF)
    found = (a > 0.5).where((y < 0).where(2 - beyond, beyond), near)
    return found._with_derivative((x, lambda: (-(y * y)).exp() * (-2 / math.sqrt(math.pi)))).cast(dtype)

  def _erfc_beyond(self) -> Self:
    """erfc of 0.5 and more: exp(-x*x) times a polynomial of (x - 3) / (x + 3), over x + 1."""
    x = self.minimum(28)
    # The square of a head of half the bits is exact.
    head = x.cast(dtypes.bfloat16 if x.dtype is dtypes.float32 else dtypes.float32).cast(x.dtype)
    power = (-(head * head)).exp()
    power = power + power * ((head - x) * (head + x)).expm1()
    return power * ((x - 3) / (x + 3))._polynomial(_ERFC) / (x + 1)

  # *** more ***

  def exp10(self) -> Self:
    """10 to the power of each element."""
    x, _, dtype = self._in_double()
    return (x * math.log(10)).exp().cast(dtype)

  def logit(self, eps: float | None = None) -> Self:
    """log(x / (1 - x)); with `eps` of x limited to eps..1-eps."""
    x, _, dtype = self._in_double()
    if eps is not None: x = x.clip(eps, 1 - eps)
    return (x / (1 - x)).log().cast(dtype)

  def sinc(self) -> Self:
    """sin(pi x) / (pi x), 1 at 0."""
    x, y, dtype = self._in_double()
    zero = y.eq(0)
    angle = zero.where(1, y) * math.pi
    found = zero.where(1, angle.sin() / angle)
    slope = zero.where(0, (angle.cos() - found) / zero.where(1, y))
    return found._with_derivative((x, lambda: slope)).cast(dtype)

  def xlogy(self, other: Any) -> Self:
    """x * log(y), 0 where x is 0 (and y not NaN)."""
    p, q, x, y, dtype = self._two(other, double=False)
    zero = x.eq(0) & y.isnan().logical_not()
    found = zero.where(0, x * zero.where(1, y).log())
    none = x.eq(0) & (y <= 0)              # as PyTorch has it: 0 stays 0 there
    return found._with_derivative((p, lambda: none.where(0, none.where(1, y).log())), (q, lambda: x / y)).cast(dtype)

  def float_power(self, exponent: Any) -> Self:
    """Power in float64."""
    b = self._operand(exponent)
    result: Self = self.double().pow(b.double())
    return result

  def lerp(self, end: Any, weight: Any) -> Self:
    """self + weight * (end - self), exact at both ends."""
    b = self._operand(end)
    w: Any = weight if isinstance(weight, TensorBase) else self._operand(weight)
    if b.dtype is not self.dtype: raise InvalidType(f"lerp from {self.dtype} to {b.dtype}", hint="cast one of them")
    result: Self = (w < 0.5).where(self + w * (b - self), b - (b - self) * (1 - w)).cast(self.dtype)
    return result

  def addcmul(self, tensor1: Any, tensor2: Any, *, value: ConstType = 1) -> Self:
    """self + value * tensor1 * tensor2."""
    product: Self = self._operand(tensor1) * tensor2
    return self + (product if value == 1 else value * product)

  def addcdiv(self, tensor1: Any, tensor2: Any, *, value: ConstType = 1) -> Self:
    """self + value * tensor1 / tensor2."""
    quotient: Self = self._operand(tensor1) / tensor2
    return self + (quotient if value == 1 else value * quotient)

  def deg2rad(self) -> Self:
    """Degrees as radians."""
    x, dtype = self._in_wide()
    return (x * (math.pi / 180)).cast(dtype)
  def rad2deg(self) -> Self:
    """Radians as degrees."""
    x, dtype = self._in_wide()
    return (x * (180 / math.pi)).cast(dtype)

  def heaviside(self, values: Any) -> Self:
    """0 below 0 and for NaN, 1 above 0, and `values` at 0."""
    b = self._operand(values)
    result: Self = self.eq(0).where(b, (self > 0).cast(self.dtype))
    return result

  def ldexp(self, other: Any) -> Self:
    """x times 2 to the power of the other."""
    b = self._operand(other)
    wide = dtypes.float64 if dtypes.float64 in (self.dtype, b.dtype) else dtypes.default_float
    result: Self = self * b.cast(wide).exp2()
    return result


_HALF_PI_REST = 6.123233995736766e-17         # pi / 2 less the double of it

# Chebyshev interpolation in 200 bits, rounded; their greatest relative errors are 4e-18, 2e-17 and 5e-17.
_ATAN = (
  1.0, -0.3333333333333312, 0.19999999999940837, -0.14285714279244968,
  0.11111110744657099, -0.09090896801472813, 0.07692045194561481, -0.06662950246036792,
  0.05846866752275139, -0.05035049795312439, 0.03796390316111083, -0.017803896394812564)
"""atan(sqrt(u)) / sqrt(u) for u in 0..(sqrt(2) - 1)^2."""
_ERF = (
  1.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792,
  0.0052239776248180145, -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05,
  1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09,
  5.957176147748911e-11)
"""erf(sqrt(u)) / sqrt(u) for u in 0..1."""
_ERFC = (
  0.7160046047255598, -0.23092733308380964, 0.09902075367944352, -0.010235388898964281,
  -0.02380391310895243, 0.021957764011341085, -0.0097506892843668, 0.0016185691444354912,
  0.0006458140818397361, -0.0003672885924305077, -2.055062005219989e-05, 5.6119695175309186e-05,
  -1.5192176555617349e-06, -8.989915917822441e-06, 2.752780116386715e-07, 1.5850401331538162e-06,
  3.368447166517678e-08, -2.8280426373051597e-07, -1.772854616721105e-08, 3.74893598754558e-08)
"""erfc(x) * exp(x*x) * (x + 1) for t = (x - 3) / (x + 3), x in 0.5..28."""

_SHORT_POWERS: dict[float, Callable[[Any], Any]] = {
  -1: lambda x: x.reciprocal(), -0.5: lambda x: x.rsqrt(), 0: lambda x: x.const_like(1)._unmoved_by(x),
  0.5: lambda x: x.sqrt(), 1: lambda x: +x, 2: lambda x: x * x, 3: lambda x: x * x * x}
"""Exponents whose powers are computed without POW."""
