"""Functions of each element by itself: casts, arithmetic, comparison, and what is made of them.

Operands broadcast as in NumPy and promote as `ir.dtype.promote` says; a Python number takes the tensor's
type where that can hold it. Integer division and remainder of `//` and `%` round down, as in Python;
division by zero gives 0 for integers.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.core import ConstType, TensorBase, broadcast_shape, expand_to, number, scalar_dtype, wide_float
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes, promote
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, scalar
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self

# The methods `int`, `float` and `bool` of the class hide the builtins in annotations inside it.
int_ = int
float_ = float
bool_ = bool


class Elementwise(TensorBase):
  """The functions that work element by element."""
  __slots__ = ()

  # *** types ***

  def cast(self, dtype: DType | str) -> Self:
    """Convert each element (semantics in `ir.semantics`: saturating and truncating from float to integer). This tensor
    itself when it is of that type."""
    if isinstance(dtype, str): dtype = dtypes.named(dtype)
    return self if dtype is self.dtype else self._derive(self.uop.cast(dtype))

  def bitcast(self, dtype: DType | str) -> Self:
    """The same memory read as another type of the same size."""
    if isinstance(dtype, str): dtype = dtypes.named(dtype)
    if dtype.itemsize != self.dtype.itemsize:
      raise InvalidArgument(f"bitcast from {self.dtype} to {dtype}: their sizes differ")
    if self.dtype.is_bool is not dtype.is_bool:
      raise InvalidArgument("bool has no bits to reinterpret", hint="use cast")
    return self._wrap(self.uop.bitcast(dtype))

  def float(self) -> Self:
    """Cast to float32."""
    return self.cast(dtypes.float32)
  def double(self) -> Self:
    """Cast to float64."""
    return self.cast(dtypes.float64)
  def half(self) -> Self:
    """Cast to float16."""
    return self.cast(dtypes.float16)
  def bfloat16(self) -> Self:
    """Cast to bfloat16."""
    return self.cast(dtypes.bfloat16)
  def int(self) -> Self:
    """Cast to int32."""
    return self.cast(dtypes.int32)
  def long(self) -> Self:
    """Cast to int64."""
    return self.cast(dtypes.int64)
  def bool(self) -> Self:
    """Cast to bool: whether each element differs from zero."""
    return self.cast(dtypes.bool)

  # *** how operands meet ***

  def _operand(self, other: Any) -> Any:
    """`other` as a tensor on this device: a Tensor as it is, a number as a constant, array data as a new Tensor."""
    if isinstance(other, TensorBase):
      if other.device != self.device:
        raise InvalidArgument(f"operands on {self.device} and {other.device}", hint="move one with .to(device)")
      return other
    if isinstance(other, (list, tuple)) or getattr(other, "shape", ()) != ():
      return type(self)(other, device=self.device)  # type: ignore[call-arg]  # a Tensor is made of data
    if isinstance(other, Size): return self._wrap(scalar(other, self.device))
    value = number(other)
    return self._wrap(UOp.const(scalar_dtype(value, self.dtype), value, self.device))

  def _together(self, *others: Any, promotes: bool_ = True) -> list[UOp]:
    """This node and the others', broadcast to one shape and promoted to one type."""
    tensors = [self, *(self._operand(o) for o in others)]
    shape = broadcast_shape(*(t.shape for t in tensors))
    dtype = promote(*(t.dtype for t in tensors)) if promotes else None
    return [expand_to(t.uop.cast(dtype) if dtype else t.uop, shape) for t in tensors]

  def _binary(self, op: Ops, other: Any, reverse: bool_ = False) -> Self:
    other = self._operand(other)
    a, b = self._together(other)
    return self._wrap(b.alu(op, a) if reverse else a.alu(op, b), self, other)

  def _integers(self, op: str, other: Any) -> Any:
    other = self._operand(other)
    if self.dtype.is_float or other.dtype.is_float:
      raise InvalidArgument(f"{op} of {self.dtype} and {other.dtype}: it is for integers and bools")
    if op != "shift" and promote(self.dtype, other.dtype).is_float:
      raise InvalidArgument(f"{op} of {self.dtype} and {other.dtype}: no integer type holds both", hint="cast one")
    return other

  # *** arithmetic ***

  def add(self, other: Any, reverse: bool_ = False) -> Self:
    """Sum."""
    return self._binary(Ops.ADD, other, reverse)

  def sub(self, other: Any, reverse: bool_ = False) -> Self:
    """Difference; bools subtract as int32."""
    a, b = (self.int(), other) if self.dtype.is_bool else (self, other)
    return a._binary(Ops.SUB, b.int() if isinstance(b, Elementwise) and b.dtype.is_bool and a.dtype.is_bool else b,
                     reverse)

  def mul(self, other: Any, reverse: bool_ = False) -> Self:
    """Product."""
    return self._binary(Ops.MUL, other, reverse)

  def div(self, other: Any, reverse: bool_ = False) -> Self:
    """Quotient as a float."""
    a, b = (self, self._operand(other))
    if not promote(a.dtype, b.dtype).is_float: a, b = a.cast(dtypes.default_float), b.cast(dtypes.default_float)
    return a._binary(Ops.FDIV, b, reverse)

  def _divided(self, other: Any, reverse: bool_) -> tuple[Self, Self, DType]:
    """Dividend and divisor in the type to compute in, and the type of the result; bools divide as int32."""
    a, b = (self._operand(other), self) if reverse else (self, self._operand(other))
    dtype = promote(a.dtype, b.dtype)
    if dtype.is_bool: dtype = dtypes.default_int
    wide = wide_float(dtype) if dtype.is_float else dtype
    return a.cast(wide), b.cast(wide), dtype

  def _remainder(self, divisor: Self) -> Self:
    """The remainder with the sign of the divisor, a zero's too. Both have one type."""
    x, y = self._together(divisor)
    rest, negative = self._wrap(x.alu(Ops.FMOD if x.dtype.is_float else Ops.MOD, y), self, divisor), self._wrap(y) < 0
    if not x.dtype.is_signed and not x.dtype.is_float: return rest
    found = (rest < 0).ne(negative).where(rest + divisor, rest)
    # A float's zero takes the divisor's sign; written so that it keeps the derivative.
    zero = negative.where(-(0.0 - rest), rest + 0.0) if x.dtype.is_float else rest
    result: Self = rest.eq(0).where(zero, found)
    return result

  def idiv(self, other: Any, reverse: bool_ = False) -> Self:
    """Quotient rounded down, of floats too: of their exact quotient. An integer divided by 0 gives 0."""
    a, b, dtype = self._divided(other, reverse)
    if not dtype.is_float:
      x, y = a._together(b)
      quotient = a._wrap(x.alu(Ops.IDIV, y))
      if not dtype.is_signed: return quotient
      remainder = a._wrap(x.alu(Ops.MOD, y))
      return quotient - (remainder.ne(0) & (remainder < 0).ne(a._wrap(y) < 0)).cast(dtype)
    rest, quotient = a._binary(Ops.FMOD, b), a.div(b)
    # Without its remainder the dividend is a multiple: its quotient is whole but for rounding.
    near = (a - rest).div(b) - (rest.ne(0) & (rest < 0).ne(b < 0)).cast(a.dtype)
    whole = near.floor()
    whole = (near - whole > 0.5).where(whole + 1, whole)
    result: Self = b.eq(0).where(quotient, near.eq(0).where(quotient * 0, whole)).cast(dtype)
    return result

  def mod(self, other: Any, reverse: bool_ = False) -> Self:
    """Remainder with the sign of the divisor, as Python's `%`; exact but where the divisor is added for that sign."""
    a, b, dtype = self._divided(other, reverse)
    return a._remainder(b).cast(dtype)

  def pow(self, other: Any, reverse: bool_ = False) -> Self:
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
    dtype = promote(base.dtype, exp.dtype)
    if not dtype.is_float:
      if dtype.is_bool: dtype = dtypes.default_int
      whole: Self = base.cast(dtype)._integer_power(exp.cast(dtype))
      return whole
    x: Self = base.cast(wide_float(dtype))
    y: Self = exp.cast(wide_float(dtype))
    if reverse and not isinstance(other, TensorBase) and number(other) == 2: return y.exp2().cast(dtype)
    return x._binary(Ops.POW, y).cast(dtype)

  def _power(self, exponent: int_) -> Self:
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

  def neg(self) -> Self:
    """Negative; of a bool the inverse."""
    return self.logical_not() if self.dtype.is_bool else self._derive(self.uop.alu(Ops.NEG))

  def __add__(self, x: Any) -> Self: return self.add(x)
  def __radd__(self, x: Any) -> Self: return self.add(x, True)
  def __sub__(self, x: Any) -> Self: return self.sub(x)
  def __rsub__(self, x: Any) -> Self: return self.sub(x, True)
  def __mul__(self, x: Any) -> Self: return self.mul(x)
  def __rmul__(self, x: Any) -> Self: return self.mul(x, True)
  def __truediv__(self, x: Any) -> Self: return self.div(x)
  def __rtruediv__(self, x: Any) -> Self: return self.div(x, True)
  def __floordiv__(self, x: Any) -> Self: return self.idiv(x)
  def __rfloordiv__(self, x: Any) -> Self: return self.idiv(x, True)
  def __mod__(self, x: Any) -> Self: return self.mod(x)
  def __rmod__(self, x: Any) -> Self: return self.mod(x, True)
  def __pow__(self, x: Any) -> Self: return self.pow(x)
  def __rpow__(self, x: Any) -> Self: return self.pow(x, True)
  def __neg__(self) -> Self: return self.neg()
  def __pos__(self) -> Self: return self._same()
  def __abs__(self) -> Self: return self.abs()

  # *** bits ***

  def bitwise_and(self, other: Any) -> Self:
    """AND of the bits, or of bools."""
    return self._binary(Ops.AND, self._integers("and", other))
  def bitwise_or(self, other: Any) -> Self:
    """OR of the bits, or of bools."""
    return self._binary(Ops.OR, self._integers("or", other))
  def bitwise_xor(self, other: Any) -> Self:
    """XOR of the bits, or of bools."""
    return self._binary(Ops.XOR, self._integers("xor", other))
  def bitwise_not(self) -> Self:
    """The inverse of each bit, or of a bool."""
    if self.dtype.is_bool: return self.logical_not()
    return self.bitwise_xor(-1 if self.dtype.is_signed else self.dtype.max)
  def lshift(self, other: Any, reverse: bool_ = False) -> Self:
    """Bits shifted towards the high end. A count that is negative, or the width at least, leaves none."""
    return self._shift(Ops.SHL, other, reverse)
  def rshift(self, other: Any, reverse: bool_ = False) -> Self:
    """Bits shifted towards the low end, copying the sign of signed types. A count that is negative, or the width at
    least, leaves nothing but the sign."""
    return self._shift(Ops.SHR, other, reverse)

  def _shift(self, op: Ops, other: Any, reverse: bool_) -> Self:
    dtype = self.dtype if self.dtype.is_int else dtypes.default_int
    # A number that is no count of the type must not become one by wrapping.
    if not reverse and type(other) is int and not 0 <= other < dtype.bits: other = -1 if dtype.is_signed else dtype.bits
    operand = self._integers("shift", other)
    a, b = (operand, self) if reverse else (self, operand)
    dtype = promote(a.dtype, b.dtype)
    if dtype.is_bool: dtype = dtypes.default_int
    if dtype.is_float: dtype = a.dtype  # no integer type holds both: the count need not fit
    a = a.cast(dtype)
    shifted = a._binary(op, b.cast(dtype))
    if not reverse and type(other) is int and 0 <= other < dtype.bits: return shifted
    beyond = (b < 0) | (b >= dtype.bits)
    gone = a._binary(op, dtype.bits - 1) if op is Ops.SHR and dtype.is_signed else 0
    return beyond.where(gone, shifted)

  def __and__(self, x: Any) -> Self: return self.bitwise_and(x)
  def __rand__(self, x: Any) -> Self: return self.bitwise_and(x)
  def __or__(self, x: Any) -> Self: return self.bitwise_or(x)
  def __ror__(self, x: Any) -> Self: return self.bitwise_or(x)
  def __xor__(self, x: Any) -> Self: return self.bitwise_xor(x)
  def __rxor__(self, x: Any) -> Self: return self.bitwise_xor(x)
  def __invert__(self) -> Self: return self.bitwise_not()
  def __lshift__(self, x: Any) -> Self: return self.lshift(x)
  def __rlshift__(self, x: Any) -> Self: return self.lshift(x, True)
  def __rshift__(self, x: Any) -> Self: return self.rshift(x)
  def __rrshift__(self, x: Any) -> Self: return self.rshift(x, True)

  # *** comparison (bool results; with a NaN only `!=` is True) ***

  def _beyond(self, other: Any) -> int_:
    """1 or -1 where a Python int is above or below every integer of this type, else 0."""
    if type(other) is not int or not self.dtype.is_int: return 0
    return (other > self.dtype.max) - (other < self.dtype.min)

  def _compare(self, op: Ops, other: Any, reverse: bool_ = False) -> Self:
    if side := self._beyond(other): return self._all(op is Ops.CMPNE or op is Ops.CMPLT and (side > 0) is not reverse)
    a, b = self._together(other)
    return self._wrap(b.alu(op, a) if reverse else a.alu(op, b))

  def _all(self, value: bool_) -> Self:
    return self._wrap(self._const(value, dtypes.bool))

  def __lt__(self, x: Any) -> Self: return self._compare(Ops.CMPLT, x)
  def __gt__(self, x: Any) -> Self: return self._compare(Ops.CMPLT, x, True)
  def __le__(self, x: Any) -> Self:
    if side := self._beyond(x): return self._all(side > 0)
    a, b = self._together(x)
    return self._wrap((a < b).alu(Ops.OR, a.eq(b)) if a.dtype.is_float else (b < a).logical_not())
  def __ge__(self, x: Any) -> Self:
    if side := self._beyond(x): return self._all(side < 0)
    a, b = self._together(x)
    return self._wrap((b < a).alu(Ops.OR, a.eq(b)) if a.dtype.is_float else (a < b).logical_not())
  def eq(self, x: Any) -> Self:
    """Whether the elements are equal."""
    return self._compare(Ops.CMPEQ, x)
  def ne(self, x: Any) -> Self:
    """Whether the elements differ."""
    return self._compare(Ops.CMPNE, x)
  def __eq__(self, x: Any) -> Self: return self.eq(x)  # type: ignore[override]  # element by element
  def __ne__(self, x: Any) -> Self: return self.ne(x)  # type: ignore[override]  # element by element
  __hash__ = object.__hash__

  def logical_not(self) -> Self:
    """Whether each element is zero."""
    return self._wrap(self.uop.cast(dtypes.bool).logical_not())
  def isnan(self) -> Self:
    """Whether each element is NaN."""
    return self != self
  def isinf(self) -> Self:
    """Whether each element is an infinity."""
    if not self.dtype.is_float: return self._wrap(self._const(False, dtypes.bool))
    return self.eq(math.inf) | self.eq(-math.inf)
  def isclose(self, other: Any, rtol: float_ = 1e-5, atol: float_ = 1e-8) -> Self:
    """Whether each element is within `atol + rtol*|other|` of the other one."""
    other = self._operand(other)
    dtype = promote(self.dtype, other.dtype)
    wide = wide_float(dtype)
    a, b = self.cast(wide), other.cast(wide)
    close: Self = self.eq(other) | ((a - b).abs() <= atol + rtol * b.abs()) & (b.abs() < math.inf)
    return close

  # *** choice ***

  def where(self, yes: Any, no: Any) -> Self:
    """`yes` where this is True (or not zero), else `no`; all three broadcast."""
    if not isinstance(yes, TensorBase) and not isinstance(no, TensorBase):
      value = number(yes)
      other = number(no)
      # Two bare numbers: their common default type.
      dtype = promote(dtypes.from_py(value), dtypes.from_py(other))
      yes = self._wrap(UOp.const(dtype, value, self.device))
    a: Self = yes if isinstance(yes, TensorBase) else self._like(no, yes)  # type: ignore[assignment]  # one kind of tensor
    b: Self = no if isinstance(no, TensorBase) else self._like(a, no)  # type: ignore[assignment]  # the same
    a, b = self._operand(a), self._operand(b)
    dtype, shape = promote(a.dtype, b.dtype), broadcast_shape(self.shape, a.shape, b.shape)
    condition = expand_to(self.uop.cast(dtypes.bool), shape)
    return self._wrap(condition.where(expand_to(a.uop.cast(dtype), shape), expand_to(b.uop.cast(dtype), shape)), a, b)

  def _like(self, tensor: TensorBase, value: Any) -> Self:
    plain = number(value)
    return self._wrap(UOp.const(scalar_dtype(plain, tensor.dtype), plain, self.device))

  def masked_fill(self, mask: Any, value: Any) -> Self:
    """`value` where `mask` is True, else this."""
    result: Self = self._operand(mask).where(value, self)
    return result

  def maximum(self, other: Any) -> Self:
    """The greater one; NaN where either is NaN. +0.0 is greater than -0.0."""
    if side := self._beyond(other): return self._extreme(other, side < 0)
    return self._binary(Ops.MAX, other)

  def _extreme(self, other: int_, self_wins: bool_) -> Self:
    if self_wins: return self._same()
    raise InvalidArgument(f"{other} is not a number of {self.dtype}, which the result has", hint="cast this first")

  def minimum(self, other: Any) -> Self:
    """The lesser one; NaN where either is NaN. -0.0 is less than +0.0."""
    if side := self._beyond(other): return self._extreme(other, side > 0)
    b = self._operand(other)
    dtype = promote(self.dtype, b.dtype)
    # The types meet first: the negative of an unsigned number is none.
    a, b = self.cast(dtype), b.cast(dtype)
    if dtype.is_float: return -((-a).maximum(-b))
    return a.bitwise_not().maximum(b.bitwise_not()).bitwise_not()

  def clip(self, low: Any = None, high: Any = None) -> Self:
    """Limited to `low`..`high`; None means no limit."""
    result = self._same() if low is None else self.maximum(low)
    return result if high is None else result.minimum(high)
  clamp = clip

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

  def _in_wide(self) -> tuple[Self, DType]:
    """This in the type to compute in, and the type of the result."""
    wide = self.cast(wide_float(self.dtype))
    return wide, self.dtype if self.dtype.is_float else wide.dtype

  def square(self) -> Self:
    """x * x."""
    return self * self

  def trunc(self) -> Self:
    """Rounded toward zero."""
    return self._derive(self.uop.alu(Ops.TRUNC)) if self.dtype.is_float else self._same()
  def floor(self) -> Self:
    """Rounded down."""
    whole = self.trunc()
    return (self < whole).where(whole - 1, whole)
  def ceil(self) -> Self:
    """Rounded up."""
    whole = self.trunc()
    return (self > whole).where(whole + 1, whole)
  def round(self) -> Self:
    """Rounded to the nearest integer, halves to the even one."""
    if not self.dtype.is_float: return self._same()
    whole = self.trunc()
    rest, half = (self - whole).abs(), whole * 0.5        # both are exact
    away = (rest > 0.5) | (rest.eq(0.5) & half.ne(half.trunc()))
    return away.where((self < 0).where(whole - 1, whole + 1), whole)
  def sign(self) -> Self:
    """-1, 0 or 1; NaN for NaN."""
    negative = self.const_like(-1 if self.dtype.min else 0)
    return (self > 0).where(self.const_like(1), (self < 0).where(negative, self.eq(0).where(self.const_like(0), self)))
  def abs(self) -> Self:
    """Magnitude."""
    if self.dtype.is_bool or not self.dtype.min: return self._same()
    if not self.dtype.is_float: return self.maximum(-self)
    return (self < 0).where(-self, self.eq(0).where(self.const_like(0), self))

  # *** activations ***

  def _magnitude(self) -> Self:
    """|x| whose derivative at 0 is 1: for functions that treat both sides alike and are smooth there."""
    return (self < 0).where(-self, self)

  def _head(self) -> Self:
    """Each element rounded to half of its bits or less, so that products of two are exact. It has no gradient."""
    narrow = dtypes.float32 if self.dtype is dtypes.float64 else dtypes.bfloat16
    return self._wrap(self.uop.detach()).cast(narrow).cast(self.dtype)

  def _constant(self, value: Fraction, head: bool_ = False) -> tuple[float_, float_]:
    """A number as two of this type, or as one with half of its bits and the rest."""
    half = dtypes.float32 if self.dtype is dtypes.float64 else dtypes.bfloat16
    upper = float(semantics.canonical(float(value), half if head else self.dtype))
    return upper, float(value - Fraction(upper))

  def _gated(self, head: Self, rest: Self | None = None) -> Self:
    """x * sigmoid(head + rest), where the gate has the sign of x. Where the exponential would be a subnormal number the
    product need not be one: it is scaled at the end."""
    size, limit = head._magnitude(), 512 if self.dtype is dtypes.float64 else 64
    far = size > limit
    scale = far.where(self.const_like(math.exp(-limit)), self.const_like(1))
    power = (far.where(self.const_like(limit), self.const_like(0)) - size).exp()
    if rest is not None: power = power * (self < 0).where(rest, -rest).exp()
    below = 1 + power * scale
    return (self < 0).where(self * power / below * scale, self / below)

  def relu(self) -> Self:
    """max(x, 0); NaN stays."""
    return (self <= 0).where(0, self)
  def leaky_relu(self, slope: float_ = 0.01) -> Self:
    """x, or `slope * x` below 0."""
    x, dtype = self._in_wide()
    return (x < 0).where(slope * x, x).cast(dtype)
  def relu6(self) -> Self:
    """x limited to 0..6."""
    return self.relu().minimum(6)
  def sigmoid(self) -> Self:
    """1 / (1 + exp(-x)), without overflow on either side."""
    x, dtype = self._in_wide()
    small = (-x._magnitude()).exp()
    return ((x < 0).where(small, 1) / (1 + small)).cast(dtype)
  def tanh(self) -> Self:
    """Hyperbolic tangent."""
    return self._unary(Ops.TANH)
  def silu(self) -> Self:
    """x * sigmoid(x)."""
    x, dtype = self._in_wide()
    return x._gated(x).cast(dtype)
  swish = silu
  def gelu(self) -> Self:
    """The Gaussian error unit in its tanh form: x * sigmoid(2u), u = sqrt(2/pi) * (x + 0.044715 x^3)."""
    x, dtype = self._in_wide()
    factor, factor_rest = x._constant(_GELU)
    upper, lower = x._constant(_GELU * Fraction("0.044715"), head=True)
    t = x.clip(-40, 40)               # beyond, the gate is 0 or 1
    # exp(2u) has 2u's absolute error for its relative one: 2u is head + rest, products of heads are exact.
    t1 = t._head()
    square1, square2 = t1 * t1, (t + t1) * (t - t1)                           # t^2
    product = square1._head() * upper
    more = (square1 - square1._head()) * upper + square1 * lower + square2 * (upper + lower)
    total = product + factor
    back = total - product
    # total + more = the factor + its 0.044715th * t^2
    more = more + ((product - (total - back)) + (factor - back)) + factor_rest
    total1 = total._head()
    return x._gated(t1 * total1, (t - t1) * total1 + t * (total - total1) + t * more).cast(dtype)
  def quick_gelu(self) -> Self:
    """x * sigmoid(1.702 x)."""
    x, dtype = self._in_wide()
    t = x.clip(-1000, 1000)           # beyond, the gate is 0 or 1
    t1, (upper, lower) = t._head(), x._constant(Fraction("1.702"), head=True)
    return x._gated(t1 * upper, (t - t1) * upper + t * lower).cast(dtype)
  def elu(self, alpha: float_ = 1.0) -> Self:
    """x, or `alpha * (exp(x) - 1)` below 0."""
    x, dtype = self._in_wide()
    return (x > 0).where(x, alpha * x.expm1()).cast(dtype)
  def softplus(self) -> Self:
    """log(1 + exp(x)), without overflow."""
    x, dtype = self._in_wide()
    return ((x < 0).where(0, x) + (-x._magnitude()).exp().log1p()).cast(dtype)
  def softsign(self) -> Self:
    """x / (1 + |x|)."""
    x, dtype = self._in_wide()
    return (x / (1 + x._magnitude())).cast(dtype)
  def hardtanh(self, low: ConstType = -1, high: ConstType = 1) -> Self:
    """x limited to low..high."""
    return self.clip(low, high)


_GELU = Fraction("1.59576912160573071175978423973752747390343452465570")      # 2 * sqrt(2 / pi)

_SHORT_POWERS: dict[float_, Callable[[Any], Any]] = {
  -1: lambda x: x.reciprocal(), -0.5: lambda x: x.rsqrt(), 0: lambda x: x.const_like(1), 0.5: lambda x: x.sqrt(),
  1: lambda x: +x, 2: lambda x: x * x, 3: lambda x: x * x * x}
"""Exponents whose powers are computed without POW."""
