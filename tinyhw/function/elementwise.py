"""Functions of each element by itself: casts, arithmetic, comparison, and what is made of them.

Operands broadcast as in NumPy and promote as `ir.dtype.promote` says; a Python number takes the tensor's
type where that can hold it. Integer division and remainder of `//` and `%` round down, as in Python;
division by zero gives 0 for integers.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.core import ConstType, TensorBase, broadcast_shape, expand_to, number, scalar_dtype, wide_float
from tinyhw.ir.dtype import DType, dtypes, promote
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp
from tinyhw.variable import Variable

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
    """Convert each element (semantics in `ir.semantics`: saturating and truncating from float to integer)."""
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
    if isinstance(other, Variable): return self._wrap(other.on(self.device))
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

  def idiv(self, other: Any, reverse: bool_ = False) -> Self:
    """Quotient rounded down."""
    other = self._operand(other)
    a, b = (other, self) if reverse else (self, other)
    if promote(a.dtype, b.dtype).is_float: return a.div(b).floor()
    x, y = a._together(b)
    quotient = a._wrap(x.alu(Ops.IDIV, y))
    if not x.dtype.is_signed: return quotient
    remainder = a._wrap(x.alu(Ops.MOD, y))
    return quotient - ((remainder != 0) & ((remainder < 0) != (a._wrap(y) < 0))).cast(x.dtype)

  def mod(self, other: Any, reverse: bool_ = False) -> Self:
    """Remainder with the sign of the divisor, as Python's `%`."""
    other = self._operand(other)
    a, b = (other, self) if reverse else (self, other)
    if promote(a.dtype, b.dtype).is_float:
      rest: Self = a - a.div(b).floor() * b
      return rest
    x, y = a._together(b)
    if not x.dtype.is_signed: return a._wrap(x.alu(Ops.MOD, y))
    remainder, divisor = a._wrap(x.alu(Ops.MOD, y)), a._wrap(y)
    return ((remainder != 0) & ((remainder < 0) != (divisor < 0))).where(remainder + divisor, remainder)

  def pow(self, other: Any, reverse: bool_ = False) -> Self:
    """Power. A small integer exponent is repeated multiplication; a negative base with another exponent gives NaN."""
    if not reverse and not isinstance(other, TensorBase):
      exponent = number(other)
      if isinstance(exponent, int) and exponent < 0 or not float(exponent).is_integer():
        base = self if self.dtype.is_float else self.cast(dtypes.default_float)
        if exponent == 0.5: return base.sqrt()
        if exponent == -0.5: return base.rsqrt()
        if float(exponent).is_integer() and exponent >= -64: return base.pow(-int(exponent)).reciprocal()
      elif 0 <= exponent <= 64:
        base = self if isinstance(exponent, int) or self.dtype.is_float else self.cast(dtypes.default_float)
        return base._power(int(exponent))
    other = self._operand(other)
    base, exp = (other, self) if reverse else (self, other)
    dtype = promote(base.dtype, exp.dtype)
    if not dtype.is_float:
      raise InvalidArgument(f"a power of {base.dtype} by a tensor of {exp.dtype}", hint="cast one of them to a float")
    x, y = (t.cast(wide_float(dtype)) for t in (base, exp))
    magnitude = (y * x.abs().log2()).exp2()
    odd = (y - (y / 2).trunc() * 2).ne(0)
    signed = (x < 0).where(y.trunc().ne(y).where(math.nan, odd.where(-magnitude, magnitude)), magnitude)
    result: Self = y.eq(0).where(1.0, (x.eq(0) & (y > 0)).where(0.0, signed)).cast(dtype)
    return result

  def _power(self, exponent: int_) -> Self:
    result, square = None, self
    while exponent:
      if exponent & 1: result = square if result is None else result * square
      exponent >>= 1
      if exponent: square = square * square
    return self.const_like(1) if result is None else result

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
  def __pos__(self) -> Self: return self
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
    """Bits shifted towards the high end; the count is modulo the width of the type."""
    return self._binary(Ops.SHL, self._integers("shift", other), reverse)
  def rshift(self, other: Any, reverse: bool_ = False) -> Self:
    """Bits shifted towards the low end, copying the sign of signed types."""
    return self._binary(Ops.SHR, self._integers("shift", other), reverse)

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

  def _compare(self, op: Ops, other: Any, reverse: bool_ = False) -> Self:
    a, b = self._together(other)
    return self._wrap(b.alu(op, a) if reverse else a.alu(op, b))

  def __lt__(self, x: Any) -> Self: return self._compare(Ops.CMPLT, x)
  def __gt__(self, x: Any) -> Self: return self._compare(Ops.CMPLT, x, True)
  def __le__(self, x: Any) -> Self:
    a, b = self._together(x)
    return self._wrap((a < b).alu(Ops.OR, a.eq(b)) if a.dtype.is_float else (b < a).logical_not())
  def __ge__(self, x: Any) -> Self:
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
    close: Self = self.eq(other) | ((self - other).abs() <= atol + rtol * other.abs())
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
    """The greater one; NaN where either is NaN."""
    return self._binary(Ops.MAX, other)

  def minimum(self, other: Any) -> Self:
    """The lesser one; NaN where either is NaN."""
    a, b = self, self._operand(other)
    dtype = promote(a.dtype, b.dtype)
    if dtype.is_float: return -((-a).maximum(-b))
    return a.cast(dtype).bitwise_not().maximum(b.cast(dtype).bitwise_not()).bitwise_not()

  def clip(self, low: Any = None, high: Any = None) -> Self:
    """Limited to `low`..`high`; None means no limit."""
    result = self if low is None else self.maximum(low)
    return result if high is None else result.minimum(high)
  clamp = clip

  # *** functions of floats (integers compute in the default float) ***

  def _unary(self, op: Ops) -> Self:
    wide = self.cast(wide_float(self.dtype))
    return wide._derive(wide.uop.alu(op)).cast(self.dtype if self.dtype.is_float else wide.dtype)

  def exp2(self) -> Self:
    """2 to the power of each element."""
    return self._unary(Ops.EXP2)
  def log2(self) -> Self:
    """Logarithm to base 2."""
    return self._unary(Ops.LOG2)
  def sin(self) -> Self:
    """Sine of radians."""
    return self._unary(Ops.SIN)
  def sqrt(self) -> Self:
    """Square root."""
    return self._unary(Ops.SQRT)
  def reciprocal(self) -> Self:
    """1 / x."""
    return self._unary(Ops.RECIP)
  recip = reciprocal

  def _in_wide(self) -> tuple[Self, DType]:
    """This in the type to compute in, and the type of the result."""
    wide = self.cast(wide_float(self.dtype))
    return wide, self.dtype if self.dtype.is_float else wide.dtype

  def exp(self) -> Self:
    """e to the power of each element."""
    x, dtype = self._in_wide()
    return (x * (1 / math.log(2))).exp2().cast(dtype)
  def log(self) -> Self:
    """Natural logarithm."""
    x, dtype = self._in_wide()
    return (x.log2() * math.log(2)).cast(dtype)
  def log10(self) -> Self:
    """Logarithm to base 10."""
    x, dtype = self._in_wide()
    return (x.log2() * math.log10(2)).cast(dtype)
  def cos(self) -> Self:
    """Cosine of radians."""
    x, dtype = self._in_wide()
    return (math.pi / 2 - x).sin().cast(dtype)
  def tan(self) -> Self:
    """Tangent of radians."""
    return self.sin() / self.cos()
  def rsqrt(self) -> Self:
    """1 / sqrt(x)."""
    x, dtype = self._in_wide()
    return x.sqrt().reciprocal().cast(dtype)
  def square(self) -> Self:
    """x * x."""
    return self * self

  def trunc(self) -> Self:
    """Rounded toward zero."""
    return self._derive(self.uop.alu(Ops.TRUNC)) if self.dtype.is_float else self
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
    down = self.floor()
    rest = self - down
    odd = (down / 2).floor() * 2 != down
    return ((rest > 0.5) | (rest.eq(0.5) & odd)).where(down + 1, down) if self.dtype.is_float else self
  def sign(self) -> Self:
    """-1, 0 or 1; NaN for NaN."""
    negative = self.const_like(-1 if self.dtype.min else 0)
    return (self > 0).where(self.const_like(1), (self < 0).where(negative, self * 0))
  def abs(self) -> Self:
    """Magnitude."""
    return self if self.dtype.is_bool or not self.dtype.min else self.maximum(-self)

  # *** activations ***

  def _magnitude(self) -> Self:
    """|x| whose derivative at 0 is 1: for functions that treat both sides alike and are smooth there."""
    return (self < 0).where(-self, self)

  def relu(self) -> Self:
    """max(x, 0); NaN stays."""
    return (self <= 0).where(0, self)
  def leaky_relu(self, slope: float_ = 0.01) -> Self:
    """x, or `slope * x` below 0."""
    return (self < 0).where(slope * self, self)
  def relu6(self) -> Self:
    """x limited to 0..6."""
    return self.relu().minimum(6)
  def sigmoid(self) -> Self:
    """1 / (1 + exp(-x)), without overflow on either side."""
    x, dtype = self._in_wide()
    small = (-x._magnitude()).exp()
    return ((x < 0).where(small, 1) / (1 + small)).cast(dtype)
  def tanh(self) -> Self:
    """Hyperbolic tangent, without overflow on either side."""
    x, dtype = self._in_wide()
    small = (-2 * x._magnitude()).exp()
    ratio = (1 - small) / (1 + small)
    return (x < 0).where(-ratio, ratio).cast(dtype)
  def silu(self) -> Self:
    """x * sigmoid(x)."""
    return self * self.sigmoid()
  swish = silu
  def gelu(self) -> Self:
    """The Gaussian error unit in its tanh form."""
    x, dtype = self._in_wide()
    return (0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)).tanh())).cast(dtype)
  def quick_gelu(self) -> Self:
    """x * sigmoid(1.702 x)."""
    return self * (self * 1.702).sigmoid()
  def elu(self, alpha: float_ = 1.0) -> Self:
    """x, or `alpha * (exp(x) - 1)` below 0."""
    return (self > 0).where(self, alpha * (self.minimum(0).exp() - 1))
  def softplus(self) -> Self:
    """log(1 + exp(x)), without overflow."""
    x, dtype = self._in_wide()
    return (x.maximum(0) + (1 + (-x._magnitude()).exp()).log()).cast(dtype)
  def softsign(self) -> Self:
    """x / (1 + |x|)."""
    return self / (1 + self._magnitude())
  def hardtanh(self, low: ConstType = -1, high: ConstType = 1) -> Self:
    """x limited to low..high."""
    return self.clip(low, high)
