"""Functions of each element by itself: casts, arithmetic, comparison, and what is made of them.

Operands broadcast as in NumPy and promote as `ir.dtype.promote` says; a Python number takes the tensor's
type where that can hold it. Integer division and remainder of `//` and `%` round down, as in Python;
division by zero gives 0 for integers.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.core import (
  ConstType,
  TensorBase,
  broadcast_shape,
  expand_to,
  fitting,
  number,
  result_dtype,
  scalar_dtype,
  wide_float,
)
from tinyhw.function.views import Bitcast, in_row_major_order, strides_of
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


def _met(tensors: list[Any], promotes: bool = True) -> list[UOp]:
  """The nodes of tensors on one device, broadcast to one shape and promoted to one type."""
  nodes = [t.uop for t in tensors]
  shape, kind = nodes[0].shape, nodes[0].dtype
  same = True
  for u in nodes:
    if u.shape != shape: same = False
    if u.dtype is not kind and promotes: return _promoted(tensors, nodes)
  if same: return nodes
  shape = broadcast_shape(*(u.shape for u in nodes))
  return [expand_to(u, shape) for u in nodes]


def _promoted(tensors: list[Any], nodes: list[UOp]) -> list[UOp]:
  """The same for nodes of several types."""
  shape, dtype = broadcast_shape(*(u.shape for u in nodes)), result_dtype(*tensors)
  return [expand_to(u.cast(dtype), shape) for u in nodes]


MOST_DECIMALS = 308  # of float64


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
    """The same memory read as another type. Of another size it changes that of the last axis."""
    if isinstance(dtype, str): dtype = dtypes.named(dtype)
    if dtype.itemsize != self.dtype.itemsize: result = self._resized(dtype)
    elif self.dtype.is_bool is dtype.is_bool: result = self._wrap(self.uop.bitcast(dtype))
    else: raise InvalidArgument("bool has no bits to reinterpret", hint="use cast")
    same = dtype.itemsize == self.dtype.itemsize
    result._view = Bitcast(self, dtype, strides_of(self) if same else in_row_major_order(result.shape))
    return result

  def _resized(self, dtype: DType) -> Self:
    """`bitcast` to a type of another size, by shifts of unsigned integers. The first element has the lowest bits."""
    mine, theirs = self.dtype.itemsize, dtype.itemsize
    times = max(mine, theirs) // min(mine, theirs)
    if self.dtype.is_bool or dtype.is_bool or not self.shape or theirs > mine and self.shape[-1] % times:
      raise InvalidArgument(f"bitcast of shape {self.shape} from {self.dtype} to {dtype}: their sizes differ",
                            hint="the last axis must hold a whole number of them")
    kinds = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
    bits, lead = self.bitcast(kinds[mine]).uop, self.shape[:-1]
    def shifts(kind: DType) -> UOp:
      rows = [UOp.const(kind, 8 * min(mine, theirs) * i, self._device, (1,)).pad(((i, times - 1 - i),))
              for i in range(times)]
      total = rows[0]
      for row in rows[1:]: total = total.alu(Ops.OR, row)
      return total.reshape((1,) * len(self.shape) + (times,))
    if mine > theirs:
      wide = bits.reshape((*self.shape, 1)).expand((*self.shape, times))
      found = wide.alu(Ops.SHR, shifts(kinds[mine]).expand(wide.shape)).cast(kinds[theirs])
      found = found.reshape((*lead, self.shape[-1] * times))
    else:
      wide = bits.cast(kinds[theirs]).reshape((*lead, self.shape[-1] // times, times))
      moved = wide.alu(Ops.SHL, shifts(kinds[theirs]).expand(wide.shape))
      found = moved.reduce(Ops.ADD, (len(self.shape),)).reshape((*lead, self.shape[-1] // times))
    return self._wrap(found.bitcast(dtype))

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
  def short(self) -> Self:
    """Cast to int16."""
    return self.cast(dtypes.int16)
  def char(self) -> Self:
    """Cast to int8."""
    return self.cast(dtypes.int8)
  def byte(self) -> Self:
    """Cast to uint8."""
    return self.cast(dtypes.uint8)
  def type_as(self, other: TensorBase) -> Self:
    """Cast to the other's dtype."""
    return self.cast(other.dtype)
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
    if isinstance(other, Size): return self._wrap(scalar(other, self._device))
    value = number(other)
    return self._wrap(UOp.const(scalar_dtype(value, self.dtype), value, self._device))

  def _together(self, *others: Any, promotes: bool_ = True) -> list[UOp]:
    """This node and the others', broadcast to one shape and promoted to one type."""
    return _met([self, *(self._operand(o) for o in others)], promotes)

  def _binary(self, op: Ops, other: Any, reverse: bool_ = False) -> Self:
    kind = type(other)
    if (kind is float_ or kind is int_) and scalar_dtype(other, self.dtype) is self.dtype:
      a, b = self.uop, self._const(other)   # what is below gives the same
      return self._derive(b.alu(op, a) if reverse else a.alu(op, b))
    other = self._operand(other)
    a, b = _met([self, other])
    return self._wrap(b.alu(op, a) if reverse else a.alu(op, b), self, other)

  def _integers(self, op: str, other: Any) -> Any:
    other = self._operand(other)
    if self.dtype.is_float or other.dtype.is_float:
      raise InvalidArgument(f"{op} of {self.dtype} and {other.dtype}: it is for integers and bools")
    if op != "shift" and result_dtype(self, other).is_float:
      raise InvalidArgument(f"{op} of {self.dtype} and {other.dtype}: no integer type holds both", hint="cast one")
    return other

  # *** arithmetic ***

  def _scaled(self, other: Any, alpha: ConstType) -> Any:
    """The second operand of `add` and `sub` times a number: in the type of the result, which may be a wider one."""
    if alpha == 1: return other
    second = self._operand(other)
    kind = result_dtype(self, second)
    return second.cast(kind) * (bool(alpha) if kind.is_bool else alpha)

  def add(self, other: Any, reverse: bool_ = False, *, alpha: ConstType = 1) -> Self:
    """Sum; of `alpha` times the other."""
    return self._binary(Ops.ADD, self._scaled(other, alpha), reverse)

  def sub(self, other: Any, reverse: bool_ = False, *, alpha: ConstType = 1) -> Self:
    """Difference, of `alpha` times the other; bools subtract as int32."""
    other = self._scaled(other, alpha)
    a, b = (self.int(), other) if self.dtype.is_bool else (self, other)
    return a._binary(Ops.SUB, b.int() if isinstance(b, Elementwise) and b.dtype.is_bool and a.dtype.is_bool else b,
                     reverse)

  def mul(self, other: Any, reverse: bool_ = False) -> Self:
    """Product."""
    return self._binary(Ops.MUL, other, reverse)

  def div(self, other: Any, reverse: bool_ = False, *, rounding_mode: str | None = None) -> Self:
    """Quotient as a float; with a `rounding_mode` "trunc" or "floor" a whole number of the operands' type."""
    if rounding_mode == "floor": return self.idiv(other, reverse)
    if rounding_mode == "trunc": return self._truncated(other, reverse)
    if rounding_mode is not None:
      raise InvalidArgument(f'rounding_mode {rounding_mode!r} is neither "trunc" nor "floor" nor None')
    a, b = (self, self._operand(other))
    if not result_dtype(a, b).is_float: a, b = a.cast(dtypes.default_float), b.cast(dtypes.default_float)
    return a._binary(Ops.FDIV, b, reverse)

  def _truncated(self, other: Any, reverse: bool_) -> Self:
    a, b, dtype = self._divided(other, reverse)
    if not dtype.is_float: return a._binary(Ops.IDIV, b).cast(dtype)
    whole: Self = a.div(b).trunc().cast(dtype)
    return whole

  def _divided(self, other: Any, reverse: bool_) -> tuple[Self, Self, DType]:
    """Dividend and divisor in the type to compute in, and the type of the result; bools divide as int32."""
    a, b = (self._operand(other), self) if reverse else (self, self._operand(other))
    dtype = result_dtype(a, b)
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
    return self._wrap(result.uop.detach(), a, b)       # it has steps, and nowhere a slope

  def mod(self, other: Any, reverse: bool_ = False) -> Self:
    """Remainder with the sign of the divisor, as Python's `%`; exact but where the divisor is added for that sign."""
    a, b, dtype = self._divided(other, reverse)
    return a._remainder(b).cast(dtype)

  def fmod(self, other: Any) -> Self:
    """Remainder with the sign of the dividend, as C's `fmod` and, of integers, C's `%`; of an integer by 0 it is 0."""
    a, b, dtype = self._divided(other, False)
    rest: Self = a._binary(Ops.FMOD if dtype.is_float else Ops.MOD, b).cast(dtype)
    return rest

  def rsub(self, other: Any, *, alpha: ConstType = 1) -> Self:
    """The other less `alpha` times this."""
    scaled: Self = self._operand(other)._scaled(self, alpha)
    return scaled.sub(other, True)

  subtract = sub
  multiply = mul
  divide = div
  true_divide = div
  floor_divide = idiv
  remainder = mod

  def neg(self) -> Self:
    """Negative; of a bool the inverse."""
    return self.logical_not() if self.dtype.is_bool else self._derive(self.uop.alu(Ops.NEG))

  negative = neg

  def positive(self) -> Self:
    """The value as it is: this tensor."""
    return self

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
  xor = bitwise_xor
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
    dtype = result_dtype(a, b)
    if dtype.is_bool: dtype = dtypes.default_int
    if dtype.is_float: dtype = a.dtype  # no integer type holds both: the count need not fit
    a = a.cast(dtype)
    shifted = a._binary(op, b.cast(dtype))
    if not reverse and type(other) is int and 0 <= other < dtype.bits: return shifted
    beyond = (b < 0) | (b >= dtype.bits)
    gone = a._binary(op, dtype.bits - 1) if op is Ops.SHR and dtype.is_signed else 0
    return beyond.where(gone, shifted)

  bitwise_left_shift = lshift
  bitwise_right_shift = rshift

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
  def lt(self, x: Any) -> Self:
    """Whether the elements are less."""
    return self.__lt__(x)
  def gt(self, x: Any) -> Self:
    """Whether the elements are greater."""
    return self.__gt__(x)
  def le(self, x: Any) -> Self:
    """Whether the elements are less or equal."""
    return self.__le__(x)
  def ge(self, x: Any) -> Self:
    """Whether the elements are greater or equal."""
    return self.__ge__(x)
  less, greater, less_equal, greater_equal, not_equal = lt, gt, le, ge, ne

  def __eq__(self, x: Any) -> Self: return self.eq(x)  # type: ignore[override]  # element by element
  def __ne__(self, x: Any) -> Self: return self.ne(x)  # type: ignore[override]  # element by element
  __hash__ = object.__hash__

  def logical_not(self) -> Self:
    """Whether each element is zero."""
    return self._wrap(self.uop.cast(dtypes.bool).logical_not())
  def logical_and(self, other: Any) -> Self:
    """Whether both elements are not zero."""
    return self.bool()._binary(Ops.AND, self._operand(other).bool())
  def logical_or(self, other: Any) -> Self:
    """Whether one of the elements is not zero."""
    return self.bool()._binary(Ops.OR, self._operand(other).bool())
  def logical_xor(self, other: Any) -> Self:
    """Whether just one of the elements is not zero."""
    return self.bool()._binary(Ops.XOR, self._operand(other).bool())
  def isnan(self) -> Self:
    """Whether each element is NaN."""
    return self != self
  def isinf(self, detect_positive: bool_ = True, detect_negative: bool_ = True) -> Self:
    """Whether each element is an infinity (of the signs that are looked for)."""
    found = self._wrap(self._const(False, dtypes.bool))
    if not self.dtype.is_float: return found
    if detect_positive: found = self.eq(math.inf)
    return found | self.eq(-math.inf) if detect_negative else found
  def isfinite(self) -> Self:
    """Whether each element is neither an infinity nor NaN."""
    if not self.dtype.is_float: return self._all(True)
    return (self < math.inf) & (self > -math.inf)
  def isposinf(self) -> Self:
    """Whether each element is the infinity above 0."""
    return self.isinf(detect_negative=False)
  def isneginf(self) -> Self:
    """Whether each element is the infinity below 0."""
    return self.isinf(detect_positive=False)
  def signbit(self) -> Self:
    """Whether each element has a sign: is negative, also -0.0 and a NaN with a sign."""
    if not self.dtype.is_float: return self < 0 if self.dtype.is_signed else self._all(False)
    kinds = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
    return self.bitcast(kinds[self.dtype.itemsize]) < 0
  def isclose(self, other: Any, rtol: float_ = 1e-5, atol: float_ = 1e-8, equal_nan: bool_ = False) -> Self:
    """Whether each element is within `atol + rtol*|other|` of the other one; two NaNs are with `equal_nan`."""
    other = self._operand(other)
    dtype = result_dtype(self, other)
    wide = wide_float(dtype)
    a, b = self.cast(wide), other.cast(wide)
    close: Self = self.eq(other) | ((a - b).abs() <= atol + rtol * b.abs()) & (b.abs() < math.inf)
    return close | self.isnan() & other.isnan() if equal_nan else close

  # *** choice ***

  def where(self, yes: Any, no: Any) -> Self:
    """`yes` where this is True (or not zero), else `no`; all three broadcast."""
    if not isinstance(yes, TensorBase) and not isinstance(no, TensorBase):
      value = number(yes)
      other = number(no)
      # Two bare numbers: their common default type.
      dtype = promote(dtypes.from_py(value), dtypes.from_py(other))
      yes = self._wrap(UOp.const(dtype, value, self._device))
    a: Self = yes if isinstance(yes, TensorBase) else self._like(no,
                                                                 yes)  # type: ignore[assignment]  # one kind of tensor
    b: Self = no if isinstance(no, TensorBase) else self._like(a, no)  # type: ignore[assignment]  # the same
    a, b = self._operand(a), self._operand(b)
    dtype, shape = result_dtype(a, b), broadcast_shape(self.shape, a.shape, b.shape)
    condition = expand_to(self.uop.cast(dtypes.bool), shape)
    return self._wrap(condition.where(expand_to(a.uop.cast(dtype), shape), expand_to(b.uop.cast(dtype), shape)), a, b)

  def _like(self, tensor: TensorBase, value: Any) -> Self:
    plain = number(value)
    return self._wrap(UOp.const(scalar_dtype(plain, tensor.dtype), plain, self._device))

  def masked_fill(self, mask: Any, value: Any) -> Self:
    """`value` where `mask` is True, else this."""
    if isinstance(value, int_) and self.dtype.is_bool: value = bool(value)
    if isinstance(value, int_) and scalar_dtype(value, self.dtype) is self.dtype: fitting(value, self.dtype)
    result: Self = self._operand(mask).where(value, self)
    return result

  def nan_to_num(self, nan: float_ = 0.0, posinf: float_ | None = None, neginf: float_ | None = None) -> Self:
    """NaN and infinities replaced by numbers: 0 and the type's greatest and least, unless told."""
    if not self.dtype.is_float: return self._same()
    top = {1: 57344.0 if self.dtype is dtypes.float8_e5m2 else self.dtype.max, 2: 65504.0, 4: 3.4028234663852886e38,
           8: 1.7976931348623157e308}[self.dtype.itemsize]
    if self.dtype is dtypes.bfloat16: top = 3.3895313892515355e38
    high = self.eq(math.inf).where(top if posinf is None else posinf, self)
    low = self.eq(-math.inf).where(-top if neginf is None else neginf, high)
    return self.isnan().where(nan, low)

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
    dtype = result_dtype(self, b)
    # The types meet first: the negative of an unsigned number is none.
    a, b = self.cast(dtype), b.cast(dtype)
    if dtype.is_float: return -((-a).maximum(-b))
    return a.bitwise_not().maximum(b.bitwise_not()).bitwise_not()

  def fmax(self, other: Any) -> Self:
    """The greater one; the other where one is NaN. Of equal ones the first has the gradient."""
    b = self._operand(other)
    equal = self.isnan().where(b, self._first_of(b, 1))
    result: Self = ((self > b) | b.isnan()).where(self, (self < b).where(b, equal))
    return result

  def _first_of(self, other: Self, sign: int_) -> Self:
    """Of equal numbers the first one, as a zero the greater of both, or the lesser."""
    top = self.maximum(other) if sign > 0 else self.minimum(other)
    if not top.dtype.is_float: return self
    return top._with_derivative((self._wrap(self._together(other)[0], self), lambda: top.const_like(1)))

  def fmin(self, other: Any) -> Self:
    """The lesser one; the other where one is NaN. Of equal ones the first has the gradient."""
    b = self._operand(other)
    equal = self.isnan().where(b, self._first_of(b, -1))
    result: Self = ((self < b) | b.isnan()).where(self, (self > b).where(b, equal))
    return result

  def clip(self, low: Any = None, high: Any = None) -> Self:
    """Limited to `low`..`high`; None means no limit."""
    if low is None and high is None: raise InvalidArgument("clip without a limit", hint="give min, max, or both")
    if not self.dtype.is_float or not result_dtype(self, *(self._operand(x) for x in (low, high) if x is not None)
                                                   ).is_float:
      result = self if low is None else self.maximum(low)
      return result if high is None else result.minimum(high)
    # A limit is within: what is equal to one keeps its gradient.
    ends = [None if x is None else self._operand(x) for x in (low, high)]
    kind = result_dtype(self, *(x for x in ends if x is not None))
    there = [x.cast(kind) for x in (self, *ends) if x is not None]
    spread = [self._wrap(u, t) for u, t in zip(there[0]._together(*there[1:]), there)]
    x, *limits = spread
    y, *bounds = (t._wrap(t.uop.detach()) for t in spread)
    least, most = (bounds[0] if low is not None else None), (bounds[-1] if high is not None else None)
    found = y if least is None else y.maximum(least)
    if most is not None: found = found.minimum(most)
    def beyond(number: Self | None, sign: int_) -> Self:
      return self._all(False) if number is None else y < number if sign < 0 else y > number
    # A choice, no factor of 0: what is no number behind a limit stays there.
    ways: list[tuple[Self, Any]] = []
    def goes(value: Self, mask: Callable[[], Self]) -> None:
      if value._asked: ways.append((mask().where(value, 0), lambda: found.const_like(1)))
    goes(x, lambda: (beyond(least, -1) | beyond(most, 1)).logical_not())
    if least is not None:
      goes(limits[0], lambda: beyond(least, -1) & (self._all(True) if most is None else least < most))
    if most is not None:
      goes(limits[-1], lambda: beyond(most, 1) | (self._all(False) if least is None else most < least))
    return found._with_derivative(*ways)
  clamp = clip

  def clamp_min(self, low: Any) -> Self:
    """Limited from below."""
    return self.clip(low)
  def clamp_max(self, high: Any) -> Self:
    """Limited from above."""
    return self.clip(None, high)

  # *** rounding and sign ***

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
  def round(self, decimals: int_ = 0) -> Self:
    """Rounded to the nearest integer, halves to the even one; or to `decimals` places behind the point."""
    if not self.dtype.is_float: return self._same()
    if not -MOST_DECIMALS <= decimals <= MOST_DECIMALS:
      raise InvalidArgument(f"round to {decimals} decimals", hint=f"a float has {MOST_DECIMALS} at most")
    if decimals: return (self * 10.0**decimals).round() / 10.0**decimals
    whole = self.trunc()
    rest, half = (self - whole).abs(), whole * 0.5        # both are exact
    away = (rest > 0.5) | (rest.eq(0.5) & half.ne(half.trunc()))
    return away.where((self < 0).where(whole - 1, whole + 1), whole)
  def sign(self) -> Self:
    """-1, 0 or 1; NaN for NaN."""
    negative = self.const_like(-1 if self.dtype.min else 0)
    return (self > 0).where(self.const_like(1), (self < 0).where(negative, self.eq(0).where(self.const_like(0), self)))
  sgn = sign
  fix = trunc

  def frac(self) -> Self:
    """What is behind the point: x - trunc(x)."""
    return self - self.trunc()

  def copysign(self, other: Any) -> Self:
    """The magnitude of this with the sign of the other, of -0.0 too."""
    b = self._operand(other)
    dtype = result_dtype(self, b)
    if not dtype.is_float: dtype = dtypes.default_float
    a, b = self.cast(dtype), b.cast(dtype)
    # A change of sign is exact, and keeps the derivative; at 0 there is none.
    result: Self = a.signbit().ne(b.signbit()).where(-a, a)
    still: Self = result._wrap(result.uop.detach())
    return a.eq(0).where(still, result)

  def abs(self) -> Self:
    """Magnitude."""
    if self.dtype.is_bool or not self.dtype.min: return self._same()
    if not self.dtype.is_float: return self.maximum(-self)
    return (self < 0).where(-self, self.eq(0).where(self.const_like(0), self))
  absolute = abs
