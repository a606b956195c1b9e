"""Values of which some bits are undefined: a value and a shadow, whose bits are 1 where the value's bits could be any.

`ShadowOps` has the operations of `values.ops` on such values. It is written against the operators and the methods of
another such class, so NumPy's arrays (`Ops`) and the JIT's LLVM values (`LLVMOps`) can both be below it:

    o = ShadowOps(LLVMOps(emitter))
    result = meaning.function(o, o.made(a, shadow_of_a), o.made(b, None))  # all of b is defined
    value, shadow = o.parts(result)                                        # None again where all is

A shadow has the value's width, as an unsigned type; that of a bool is a bool. What each operation makes of shadows is
sound: bits that the shadow says defined are the same, whatever the undefined bits of the operands are. It is exact for
logic, sums, differences and comparisons of operands that do not depend on one another, and for constant shifts. An
operation without a rule, as those on floats, is undefined as a whole where some bit of an operand is. So a meaning that
is added has its rule by being written against these operations.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from tinyhw.emulator.values.ops import DTYPES


class Value(Protocol):
  """A value of any kind, as NumPy's arrays, LLVM's and those with a shadow are: the operators, and other types."""
  @property
  def dtype(self) -> Any: ...
  def view(self, dtype: np.dtype[Any], /) -> Value: ...
  def astype(self, dtype: np.dtype[Any], /) -> Value: ...
  def __add__(self, other: Value | float, /) -> Value: ...
  def __sub__(self, other: Value | float, /) -> Value: ...
  def __mul__(self, other: Value | float, /) -> Value: ...
  def __and__(self, other: Value | int, /) -> Value: ...
  def __or__(self, other: Value | int, /) -> Value: ...
  def __xor__(self, other: Value | int, /) -> Value: ...
  def __lshift__(self, other: Value | int, /) -> Value: ...
  def __rshift__(self, other: Value | int, /) -> Value: ...
  def __lt__(self, other: Value | float, /) -> Any: ...
  def __eq__(self, other: object, /) -> Any: ...
  def __ne__(self, other: object, /) -> Any: ...
  def __invert__(self) -> Value: ...
  def __neg__(self) -> Value: ...


Parts = tuple[Value, Any]  # a value and its shadow, of its kind; None where all of it is defined
_SWAPPED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def unsigned(dtype: Any) -> Any:
  """The type of the shadows of a type."""
  return dtype if dtype.kind == "b" else DTYPES[f"u{dtype.itemsize * 8}"]


def name_of(dtype: Any) -> str:
  """The name that operations have for a type."""
  return "bool" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize * 8}"


class Shadowed:
  """A value, to use in a meaning as any other. `shadow` is of the unsigned type of its width, or None."""
  __slots__ = ("o", "shadow", "value")
  __hash__ = None  # type: ignore[assignment]  # unhashable: == gives no bool
  __array_ufunc__: Any = None  # NumPy's numbers leave operators to this class

  def __init__(self, o: ShadowOps, value: Value, shadow: Any) -> None:
    self.o, self.value, self.shadow = o, value, shadow

  @property
  def dtype(self) -> Any: return self.value.dtype

  def view(self, dtype: Any) -> Value: return self.o.bits(self, name_of(np.dtype(dtype)))

  def astype(self, dtype: Any) -> Value: return self.o.to(self, name_of(np.dtype(dtype)))

  def __add__(self, x: Any) -> Value: return self.o.binary("add", self, x)
  def __radd__(self, x: Any) -> Value: return self.o.binary("add", x, self)
  def __sub__(self, x: Any) -> Value: return self.o.binary("sub", self, x)
  def __rsub__(self, x: Any) -> Value: return self.o.binary("sub", x, self)
  def __mul__(self, x: Any) -> Value: return self.o.binary("mul", self, x)
  def __rmul__(self, x: Any) -> Value: return self.o.binary("mul", x, self)
  def __floordiv__(self, x: Any) -> Value: return self.o.binary("floordiv", self, x)
  def __and__(self, x: Any) -> Value: return self.o.binary("and_", self, x)
  def __rand__(self, x: Any) -> Value: return self.o.binary("and_", x, self)
  def __or__(self, x: Any) -> Value: return self.o.binary("or_", self, x)
  def __ror__(self, x: Any) -> Value: return self.o.binary("or_", x, self)
  def __xor__(self, x: Any) -> Value: return self.o.binary("xor", self, x)
  def __rxor__(self, x: Any) -> Value: return self.o.binary("xor", x, self)
  def __lshift__(self, x: Any) -> Value: return self.o.binary("lshift", self, x)
  def __rlshift__(self, x: Any) -> Value: return self.o.binary("lshift", x, self)
  def __rshift__(self, x: Any) -> Value: return self.o.binary("rshift", self, x)
  def __rrshift__(self, x: Any) -> Value: return self.o.binary("rshift", x, self)
  def __lt__(self, x: Any) -> Value: return self.o.compare("lt", self, x)
  def __le__(self, x: Any) -> Value: return self.o.compare("le", self, x)
  def __gt__(self, x: Any) -> Value: return self.o.compare("gt", self, x)
  def __ge__(self, x: Any) -> Value: return self.o.compare("ge", self, x)
  def __eq__(self, x: object) -> Value: return self.o.compare("eq", self, x)  # type: ignore[override]  # lane by lane
  def __ne__(self, x: object) -> Value: return self.o.compare("ne", self, x)  # type: ignore[override]  # lane by lane
  def __invert__(self) -> Value: return self.o.made(~self.value, self.shadow)
  def __neg__(self) -> Value: return self.o.neg(self)


class ShadowOps:
  """Value operations on values of which some may be `Shadowed`, in terms of those on plain ones (`base`)."""

  def __init__(self, base: Any) -> None: self.base = base

  # ---- values and their parts

  def made(self, value: Value, shadow: Any) -> Value:
    """A value with a shadow, or None where all of it is defined."""
    return Shadowed(self, value, shadow)

  @staticmethod
  def parts(x: Value) -> Parts:
    """(value, shadow) of an operand."""
    return (x.value, x.shadow) if isinstance(x, Shadowed) else (x, None)

  def _ones(self, dtype: Any) -> Value:
    return self.base.const("bool", True) if dtype.kind == "b" else self.base.const(
      name_of(unsigned(dtype)), (1 << dtype.itemsize * 8) - 1)

  def _zero(self, dtype: Any) -> Value: return self.base.const(name_of(unsigned(dtype)), 0)

  def _sign(self, dtype: Any) -> Value:
    return self.base.const(name_of(unsigned(dtype)), 1 << dtype.itemsize * 8 - 1)

  def _some(self, shadow: Any) -> Value:
    """Where some bit of a shadow is set."""
    return shadow if shadow.dtype.kind == "b" else shadow != 0

  def whole(self, value: Any, *operands: Value) -> Any:
    """The result of an operation without a rule: undefined as a whole where a bit of some operand is."""
    bad: Any = None
    for _, s in map(self.parts, operands):
      if s is not None: bad = _either(bad, self._some(s))

    def one(v: Value) -> Value:
      if bad is None or v.dtype.kind == "b": return self.made(v, bad)
      return self.made(v, self.base.where(bad, self._ones(v.dtype), self._zero(v.dtype)))
    return tuple(map(one, value)) if isinstance(value, tuple) else one(value)

  def opaque(self, function: Callable[..., Any], *operands: Value) -> Any:
    """What a function of plain values makes of these, as one operation without a rule."""
    return self.whole(function(*[self.parts(x)[0] for x in operands]), *operands)

  def __getattr__(self, name: str) -> Callable[..., Any]:
    """Any operation of `values.ops` that has no rule here."""
    plain = getattr(self.base, name)
    return lambda *operands: self.opaque(plain, *operands)

  def _raw(self, x: Value, dtype: Any) -> Parts:
    """The bits of an operand as a type has them, and their shadow."""
    value: Any  # or a number
    value, shadow = self.parts(x)
    kind = unsigned(dtype)
    if not hasattr(value, "dtype"):
      if dtype.kind == "f": return self.base.const(name_of(dtype), value).view(kind), None
      return self.base.const(name_of(kind), int(value) & (1 << dtype.itemsize * 8) - 1), None
    if value.dtype != dtype:
      shadow = None if shadow is None else self._extended(shadow, value.dtype, dtype)
      value = self.base.to(value, name_of(dtype))
    return value if dtype.kind == "b" else value.view(kind), shadow

  def _extended(self, shadow: Any, old: Any, new: Any) -> Value:
    """The shadow of an integer that becomes another type."""
    kind = unsigned(new)
    if new.kind == "b": return self._some(shadow)
    if old.kind != "i" or new.itemsize <= old.itemsize: return self.base.to(shadow, name_of(kind))
    return self.base.to(shadow.view(old), f"i{new.itemsize * 8}").view(kind)

  # ---- intervals: the least and the largest value that an operand may have

  def _least(self, raw: Value, shadow: Any) -> Value: return raw if shadow is None else raw & ~shadow

  def _most(self, raw: Value, shadow: Any) -> Value: return raw if shadow is None else raw | shadow

  def _bounds(self, x: Value, dtype: Any) -> tuple[Value, Value]:
    """The bounds of an operand in the order of an integer type, of that type."""
    raw, shadow = self._raw(x, dtype)
    if dtype.kind != "i": return self._least(raw, shadow), self._most(raw, shadow)
    if shadow is None: return (raw.view(dtype),) * 2
    top = shadow & self._sign(dtype)
    return (self._least(raw, shadow) | top).view(dtype), (self._most(raw, shadow) & ~top).view(dtype)

  def _between(self, a: Value, b: Value) -> Value:
    """The shadow of a number that lies between two: the bits below those that both begin with."""
    kind = unsigned(a.dtype)
    apart = a.view(kind) ^ b.view(kind)
    return self._ones(kind) >> self.base.to(self.base.leading_zeros(apart), name_of(kind))

  # ---- operators

  def binary(self, name: str, x: Value, y: Value) -> Value:
    """An operator of Python's, by its name in `operator`."""
    (a, s), (b, t) = self.parts(x), self.parts(y)
    value = getattr(operator, name)(a, b)
    if s is None and t is None: return self.made(value, None)
    rule = None if value.dtype.kind == "f" else _RULES.get(name)
    if rule is None: return self.whole(value, x, y)
    if name in {"xor", "sub"} and x is y: return self.made(value, None)
    return self.made(value, rule(self, value.dtype, *self._raw(x, value.dtype), *self._raw(y, value.dtype)))

  def _and(self, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value:
    if t is None: return s & b
    return t & a if s is None else s & (t | b) | t & a

  def _or(self, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value:
    if t is None: return s & ~b
    return t & ~a if s is None else s & (t | ~b) | t & ~a

  def _xor(self, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value: return _either(s, t)

  def _add(self, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value:
    """A bit is defined where both operands' and the carry are; the carry is where least and most agree in it."""
    if dtype.kind == "b": return _either(s, t)
    low = self._least(a, s) + self._least(b, t)
    return _either(s, t) | low ^ (self._most(a, s) + self._most(b, t))

  def _sub(self, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value:
    low = self._least(a, s) - self._most(b, t)
    return _either(s, t) | low ^ (self._most(a, s) - self._least(b, t))

  def _mul(self, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value:
    """Changes of one operand are multiples of its lowest undefined bit, and the other one of its own lowest bit."""
    steps: Any = None
    for bits, shadow in ((s, self._most(b, t)), (t, self._most(a, s))):
      if bits is not None: steps = _either(steps, _lowest(bits) * _lowest(shadow))
    return ~(_lowest(steps) - 1)

  def _shifted(self, left: bool, dtype: Any, a: Value, s: Any, b: Value, t: Any) -> Value:
    out: Any = None
    if s is not None:
      if left: out = s << b
      else: out = s >> b if dtype.kind != "i" else (s.view(dtype) >> b.view(dtype)).view(s.dtype)
    if t is None: return out
    unknown = self._some(t) & (self._most(a, s) != 0)
    return self.base.where(unknown, self._ones(dtype), self._zero(dtype) if out is None else out)

  def _lshift(self, dtype: Any, *operands: Value) -> Value: return self._shifted(True, dtype, *operands)

  def _rshift(self, dtype: Any, *operands: Value) -> Value: return self._shifted(False, dtype, *operands)

  def compare(self, name: str, x: Value, y: Any) -> Value:
    """A comparison, by its name in `operator`: defined where no choice of the undefined bits changes it."""
    (a, s), (b, t) = self.parts(x), self.parts(y)
    value = getattr(operator, name)(a, b)
    if s is None and t is None: return self.made(value, None)
    dtype = a.dtype if hasattr(a, "dtype") else b.dtype
    other = b.dtype if hasattr(b, "dtype") else dtype
    whole = dtype.kind == "f" or other != dtype or not self._holds(dtype, a) or not self._holds(dtype, b)
    if whole: return self.whole(value, x, y)
    if name in {"eq", "ne"} or dtype.kind == "b":
      if name not in {"eq", "ne"}: return self.whole(value, x, y)
      (p, s), (q, t) = self._raw(x, dtype), self._raw(y, dtype)
      doubt = _either(s, t)
      return self.made(value, self._some(doubt) & ~self._some((p ^ q) & ~doubt))
    if name in {"gt", "ge"}: name, x, y = _SWAPPED[name], y, x
    (low, high), (least, most) = self._bounds(x, dtype), self._bounds(y, dtype)
    holds = getattr(operator, name)
    return self.made(value, ~holds(high, least) & holds(low, most))

  @staticmethod
  def _holds(dtype: Any, x: Any) -> bool:
    """Whether a number of Python's is one of an integer type; one beyond it is compared as itself."""
    if hasattr(x, "dtype") or dtype.kind == "b": return True
    return isinstance(x, int) and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max

  # ---- constants and conversions

  def const(self, type_: str, value: float) -> Value: return self.made(self.base.const(type_, value), None)

  def from_bits(self, type_: str, bits: int) -> Value: return self.made(self.base.from_bits(type_, bits), None)

  def to(self, x: Value, type_: str) -> Value:
    value, shadow = self.parts(x)
    result = self.base.to(value, type_)
    if shadow is None or "f" in value.dtype.kind + result.dtype.kind: return self.whole(result, x)
    return self.made(result, self._extended(shadow, value.dtype, result.dtype))

  def bits(self, x: Value, type_: str) -> Value:
    value, shadow = self.parts(x)
    return self.made(self.base.bits(value, type_), shadow)

  def pack(self, low: Value, high: Value) -> Value: return self.to(low, "u64") | self.to(high, "u64") << 32

  # ---- selection

  def where(self, condition: Value, a: Value, b: Value) -> Value:
    (c, unsure), (x, s), (y, t) = self.parts(condition), self.parts(a), self.parts(b)
    value = self.base.where(c, x, y)
    if unsure is None and s is None and t is None: return self.made(value, None)
    dtype, zero = value.dtype, self._zero(value.dtype)
    (p, s), (q, t) = self._raw(a, dtype), self._raw(b, dtype)
    first, second = zero if s is None else s, zero if t is None else t
    shadow = self.base.where(c, first, second)
    if unsure is not None: shadow = self.base.where(unsure, p ^ q | first | second, shadow)
    return self.made(value, shadow)

  def _extreme(self, name: str, a: Value, b: Value) -> Value:
    (x, s), (y, t) = self.parts(a), self.parts(b)
    value = getattr(self.base, name)(x, y)
    if s is None and t is None: return self.made(value, None)
    dtype = value.dtype
    if dtype.kind == "f": return self.whole(value, a, b)
    chosen = self.where(self.compare("lt" if name == "min" else "gt", a, b), a, b)
    f, bounds = getattr(self.base, name), (self._bounds(a, dtype), self._bounds(b, dtype))
    reached = self._between(f(bounds[0][0], bounds[1][0]), f(bounds[0][1], bounds[1][1]))
    shadow = self.parts(chosen)[1]
    return self.made(value, None if shadow is None else shadow & reached)

  def min(self, a: Value, b: Value) -> Value: return self._extreme("min", a, b)

  def max(self, a: Value, b: Value) -> Value: return self._extreme("max", a, b)

  def clip(self, x: Value, low: int, high: int) -> Value:
    value, shadow = self.parts(x)
    limited = self.base.clip(value, low, high)
    if shadow is None or value.dtype.kind == "f": return self.whole(limited, x)
    least, most = self._bounds(x, value.dtype)
    reached = self._between(self.base.clip(least, low, high), self.base.clip(most, low, high))
    return self.made(limited, reached)

  # ---- bits

  def _counted(self, name: str, x: Value) -> Value:
    """A count that only grows, or only shrinks, with the bits that are set."""
    value, shadow = self.parts(x)
    count = getattr(self.base, name)
    result = count(value)
    if shadow is None: return self.made(result, None)
    raw, shadow = self._raw(x, value.dtype)
    return self.made(result, self._between(count(self._least(raw, shadow)), count(self._most(raw, shadow))))

  def popcount(self, x: Value) -> Value: return self._counted("popcount", x)

  def leading_zeros(self, x: Value) -> Value: return self._counted("leading_zeros", x)

  def trailing_zeros(self, x: Value) -> Value: return self._counted("trailing_zeros", x)

  def reverse(self, x: Value) -> Value:
    value, shadow = self.parts(x)
    return self.made(self.base.reverse(value), None if shadow is None else self.base.reverse(shadow))

  def mul_high(self, a: Value, b: Value) -> Value:
    (x, s), (y, t) = self.parts(a), self.parts(b)
    value = self.base.mul_high(x, y)
    if value.dtype.kind != "u" or s is None and t is None: return self.whole(value, a, b)
    (low, high), (least, most) = self._bounds(a, value.dtype), self._bounds(b, value.dtype)
    return self.made(value, self._between(self.base.mul_high(low, least), self.base.mul_high(high, most)))

  # ---- signs

  def abs(self, x: Value) -> Value:
    value, shadow = self.parts(x)
    result = self.base.abs(value)
    if shadow is None: return self.made(result, None)
    if value.dtype.kind == "f": return self.made(result, shadow & ~self._sign(value.dtype))
    negated, low = -x, x < 0
    return self.where(low, negated, x)

  def neg(self, x: Value) -> Value:
    value, shadow = self.parts(x)
    if value.dtype.kind == "f": return self.made(-value, shadow)
    return self.binary("sub", self.base.const(name_of(value.dtype), 0), x)

  def copysign(self, x: Value, sign: Value) -> Value:
    (value, s), (from_, t) = self.parts(x), self.parts(sign)
    top = self._sign(value.dtype)
    shadow = _either(None if s is None else s & ~top, None if t is None else t & top)
    return self.made(self.base.copysign(value, from_), shadow)

  def signbit(self, x: Value) -> Value:
    value, shadow = self.parts(x)
    return self.made(self.base.signbit(value), None if shadow is None else shadow & self._sign(value.dtype) != 0)


def _either(a: Any, b: Any) -> Any: return b if a is None else a if b is None else a | b


def _lowest(bits: Any) -> Value:
  """The lowest bit that is set, or 0."""
  return bits & (~bits + 1)


_RULES: Final[dict[str, Callable[..., Value]]] = {
  "and_": ShadowOps._and, "or_": ShadowOps._or, "xor": ShadowOps._xor, "add": ShadowOps._add, "sub": ShadowOps._sub,
  "mul": ShadowOps._mul, "lshift": ShadowOps._lshift, "rshift": ShadowOps._rshift}
