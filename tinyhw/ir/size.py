"""Sizes that launches decide: integers made of Variables, which shapes, strides and bounds of slices may be.

A `Size` is an index UOp over DEFINE_VARs and constants in its one simplified form, so that equal sizes are equal
objects, and what is constant is an int. It adds, multiplies and divides like an int. Comparisons are about every value
that the Variables may take: `==` says whether two are always equal, the order is decided by a proof or refused. A
size never becomes an int by itself: kernels made of its value would serve that value alone. `value` is its worth now.

In the tensor graph each DEFINE_VAR carries its value (`bound`): a graph keeps the values that it was made with. Kernels
are without them (`unbound`).

Shapes compare as those of ints do, and what would need a value is refused. A schedule is kept for
all values (`engine/planned.py` numbers values as it does memory). What the index arithmetic, masks
and divisions of kernels may leave out is proven for all values (`ir/proof.py`). Loops run to such
an end, also not at all; grids are computed for each launch. Memory is for the most; the elements
lie close together at its start, so that reshaping stays free and what is contiguous for one value
is so for all. The optimizer splits such an axis only where a number is known to divide it, or with
a gate. For types a `Size` is an int, so that code is one for both.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from tinyhw.core.errors import InvalidArgument
from tinyhw.ir import semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.symbolic import least, linear, most, simplify
from tinyhw.ir.uop import UOp, VariableArg

if TYPE_CHECKING:
  # To the type checker a size is an int: code that adds, multiplies and compares sizes is one code for both.
  Integer = int
else: Integer = object

Values = Mapping[VariableArg, int]
T = TypeVar("T")


readers: list[Callable[[str], None]] = []
"""Who is told when a value is read into Python: what is made of it would not change with it."""


class Size(Integer):
  """An integer that a launch decides. Made by arithmetic with a Variable."""
  __slots__ = ("node", "_hash")
  node: UOp
  _hash: int

  def __new__(cls, node: UOp) -> Size:
    self: Size = object.__new__(cls)
    self._set(node)
    return self

  def _set(self, node: UOp) -> None:
    self.node = node
    self._hash = hash(_without_values(node))

  def __reduce__(self) -> tuple[Any, ...]: return (Size, (self.node,))

  @property
  def low(self) -> int:
    """A number that it is never below."""
    return least(self.node)

  @property
  def high(self) -> int:
    """A number that it is never above."""
    return most(self.node)

  @property
  def value(self) -> int:
    """What it is worth."""
    for told in readers: told(f"the value of {self}")
    return worth(self)

  def present(self) -> UOp:
    """The expression as it goes into a graph."""
    return self.node

  def seen(self) -> UOp:
    """The same, where Variables may be without a value."""
    return self.node

  def kind(self) -> type[Size]:
    """What arithmetic with it gives."""
    return Size

  def __repr__(self) -> str: return _text(self.node)
  __str__ = __repr__
  def __format__(self, spec: str) -> str: return format(repr(self), "" if spec == "," else spec)
  def __hash__(self) -> int: return self._hash
  def __bool__(self) -> bool: return True       # what is always 0 is an int

  def __eq__(self, other: object) -> bool:
    if self is other: return True
    if not isinstance(other, (Size, Integral)): return NotImplemented
    return isinstance(other, Size) and self._hash == other._hash and (
      self.node is other.node or self.seen() is other.seen())
  def __ne__(self, other: object) -> bool:
    equal = self.__eq__(other)
    return equal if equal is NotImplemented else not equal

  def __lt__(self, other: int) -> Any: return _decided(self, "<", other, True, 1)
  def __le__(self, other: int) -> Any: return _decided(self, "<=", other, True, 0)
  def __gt__(self, other: int) -> Any: return _decided(self, ">", other, False, 1)
  def __ge__(self, other: int) -> Any: return _decided(self, ">=", other, False, 0)

  def __add__(self, other: int) -> Any: return _made(Ops.ADD, self, other)
  def __radd__(self, other: int) -> Any: return _made(Ops.ADD, other, self)
  def __sub__(self, other: int) -> Any: return _made(Ops.SUB, self, other)
  def __rsub__(self, other: int) -> Any: return _made(Ops.SUB, other, self)
  def __mul__(self, other: int) -> Any: return _made(Ops.MUL, self, other)
  def __rmul__(self, other: int) -> Any: return _made(Ops.MUL, other, self)
  def __floordiv__(self, other: int) -> Any: return _made(Ops.IDIV, self, other)
  def __rfloordiv__(self, other: int) -> Any: return _made(Ops.IDIV, other, self)
  def __mod__(self, other: int) -> Any: return _made(Ops.MOD, self, other)
  def __rmod__(self, other: int) -> Any: return _made(Ops.MOD, other, self)
  def __neg__(self) -> Any: return _made(Ops.SUB, 0, self)
  def __pos__(self) -> int: return self
  def __abs__(self) -> int: return larger(self, -self)
  def __divmod__(self, other: int) -> tuple[int, int]: return self // other, self % other

  def __truediv__(self, other: Any) -> Any: return self._no_fraction(other)
  def __rtruediv__(self, other: Any) -> Any: return self._no_fraction(other)

  def _no_fraction(self, other: object) -> Any:
    if isinstance(other, (Size, Integral, float)): raise self._no_int()
    return NotImplemented

  def __index__(self) -> int: raise self._no_int()
  def __int__(self) -> int: raise self._no_int()
  def __float__(self) -> float: raise self._no_int()

  def _no_int(self) -> InvalidArgument:
    return InvalidArgument(f"{self!r} is a number that each launch decides, and an int is needed here",
                           hint="`.value` is what it is worth now, for that value alone")


def is_size(x: object) -> bool:
  """Whether it is a number that launches decide."""
  return isinstance(x, Size)


def index(size: int) -> UOp:
  """The size as a node of index arithmetic."""
  return size.present() if isinstance(size, Size) else UOp.const(dtypes.index, size)


def plain(size: int) -> int:
  """The size as it goes into a graph: of Variables that carry their present values."""
  if type(size) is int or type(size) is Size: return size
  return _from_simple(simplify(size.present())) if isinstance(size, Size) else size


def from_node(node: UOp) -> int:
  """The size that an index expression of DEFINE_VARs is."""
  return _from_simple(simplify(node))


def _from_simple(node: UOp) -> int:
  if node.op is Ops.CONST: return int(node.arg)
  if node.vmin <= dtypes.index.min or node.vmax >= dtypes.index.max:
    raise InvalidArgument(f"{_text(node)} may be more than 32 bits hold", hint="give its Variables closer bounds")
  return Size(node)

@functools.lru_cache(4096)
def _computed(op: Ops, a: UOp, b: UOp) -> int:
  if op not in (Ops.IDIV, Ops.MOD): return _from_simple(simplify(a.alu(op, b)))
  if least(b) < 1:
    raise InvalidArgument(f"{_text(a)} by {_text(b)}: the divisor is not proven to be above 0",
                          hint="give its Variable a minimum of 1")
  # Nodes divide toward zero, sizes down: a multiple of the divisor in front makes both the same.
  below = -(least(a) // least(b)) if least(a) < 0 else 0
  shifted = simplify(a + b * below) if below else a
  if op is Ops.MOD: return _from_simple(simplify(shifted % b))
  return _from_simple(simplify(shifted // b - below))


def _made(op: Ops, a: Any, b: Any) -> Any:
  if not isinstance(a, (Size, Integral)) or not isinstance(b, (Size, Integral)): return NotImplemented
  found = _computed(op, *(x.node if isinstance(x, Size) else index(int(x)) for x in (a, b)))
  kind = next((k for x in (a, b) if isinstance(x, Size) and (k := x.kind()) is not Size), Size)
  return kind(found.node) if kind is not Size and isinstance(found, Size) else found


def _decided(a: Size, sign: str, b: Any, upward: bool, wanted: int) -> Any:
  if not isinstance(b, (Size, Integral)): return NotImplemented
  x, y = a.present(), index(b if isinstance(b, Size) else int(b))
  apart = _computed(Ops.SUB, y, x) if upward else _computed(Ops.SUB, x, y)
  if lowest(apart) >= wanted: return True
  if highest(apart) < wanted: return False
  raise InvalidArgument(f"whether {a} {sign} {b} depends on the value of {_ranges(apart)}",
                        hint="give the Variable closer bounds, or compare .value")


def _ranges(size: int) -> str:
  """The Variables of a size with their bounds, for an error."""
  found = sorted({u.arg for u in index(size).variables})
  return ", ".join(f"{v.name} in {v.min}..{v.max}" for v in found)


def lowest(size: int) -> int:
  """A number that the size is never below."""
  return size.low if isinstance(size, Size) else size


def highest(size: int) -> int:
  """A number that the size is never above."""
  return size.high if isinstance(size, Size) else size


def common_divisor(size: int) -> int:
  """A number that is known to divide the size: the size itself, where it is an int."""
  if not isinstance(size, Size): return size
  terms, constant = linear(size.node)
  return math.gcd(constant, *terms.values())


def always_most(a: int, b: int) -> bool:
  """Whether a <= b is proven."""
  return lowest(b - a) >= 0


def smaller(a: int, b: int) -> int:
  """The lesser of two sizes."""
  if not isinstance(a, Size) and not isinstance(b, Size): return min(a, b)
  return -larger(-a, -b)


def larger(a: int, b: int) -> int:
  """The greater of two sizes."""
  if not isinstance(a, Size) and not isinstance(b, Size): return max(a, b)
  return _computed(Ops.MAX, index(a), index(b))


def scalar(size: int, device: str) -> UOp:
  """The size as a value of a tensor on a device. (The constant says which device; adding 0 costs nothing.)"""
  return index(size) + UOp.const(dtypes.index, 0, device)


# *** values ***

def rewritten(u: UOp, change: Callable[[UOp], UOp]) -> UOp:
  """The expression with other DEFINE_VARs, in its simplified form."""
  mapping = {v: change(v) for v in u.variables}
  return simplify(u.substitute(mapping)) if any(k is not v for k, v in mapping.items()) else u


@functools.lru_cache(4096)
def _without_values(u: UOp) -> UOp: return rewritten(u, lambda v: v.replace(src=()))


def worth(size: int, values: Values | None = None) -> int:
  """The number that a size is: by these values of its Variables, else by those that it was made with."""
  if not isinstance(size, Size): return size
  return evaluated(size.present(), values)


def evaluated(node: UOp, values: Values | None = None) -> int:
  """The number that an index expression of DEFINE_VARs is."""
  done: dict[UOp, Any] = {}
  for u in node.toposort(lambda v: v.op is not Ops.DEFINE_VAR or values is None):
    if u.op is Ops.CONST: done[u] = u.arg
    elif u.op is Ops.DEFINE_VAR: done[u] = value_of(u)
    else: done[u] = semantics.alu(u.op, u.src[-1].dtype, *(
      done[s] if s in done else (values or {})[s.arg] for s in u.src))
  return int(done[node] if node in done else (values or {})[node.arg])


def value_of(variable: UOp) -> int:
  """The value that a DEFINE_VAR carries."""
  if not variable.src:
    raise InvalidArgument(f"Variable {variable.arg.name} has no value", hint="give it one with bind()")
  return int(variable.src[0].arg)


def changed(thing: T, change: Callable[[UOp], UOp]) -> T:
  """An argument (a size, tuples of them, a tracker of views) with other DEFINE_VARs in its sizes."""
  kind = type(thing)
  if kind is int or kind is bool or kind is str or thing is None: return thing
  if isinstance(thing, Size): return _from_simple(rewritten(thing.present(), change))  # type: ignore[return-value]
  if isinstance(thing, tuple):
    new = [changed(x, change) for x in thing]
    if all(a is b for a, b in zip(new, thing)): return thing
    return (kind(*new) if hasattr(thing, "_fields") else tuple(new))  # type: ignore[return-value]  # as above
  if hasattr(thing, "with_sizes"): return thing.with_sizes(lambda x: changed(x, change))  # type: ignore[no-any-return]
  return thing


def unbound(thing: T) -> T:
  """The argument as kernels know it: of Variables without values."""
  return changed(thing, lambda v: v.replace(src=()))


def bound(thing: T, values: Values) -> T:
  """The argument of Variables with these values; those that are not named keep theirs."""
  return changed(thing, lambda v: with_value(v, values[v.arg]) if v.arg in values else v)


def with_value(variable: UOp, value: int) -> UOp:
  """The DEFINE_VAR with a value."""
  return variable.replace(src=(UOp.const(dtypes.int32, value),))


def substituted(root: UOp, mapping: Mapping[UOp, UOp], change: Callable[[UOp], UOp]) -> UOp:
  """The graph with nodes replaced, and with other DEFINE_VARs in everything else."""
  done: dict[UOp, UOp] = dict(mapping)
  for u in root.toposort(lambda v: v not in mapping):
    src = tuple(done[s] for s in u.src)
    arg = changed(u.arg, change) if u.variables else u.arg
    done[u] = change(u) if u.op is Ops.DEFINE_VAR else UOp(u.op, u.dtype, src, arg)
  return done[root]


# *** text ***

def _text(u: UOp) -> str:
  """The expression as Python writes it."""
  if u.op is Ops.DEFINE_VAR: return str(u.arg.name)
  if u.op is Ops.CONST: return str(u.arg)
  if u.op in _WORDS:
    a, b = u.src
    return f"{_part(a)}{_WORDS[u.op]}{_part(b)}"
  if u.op is Ops.MAX: return f"max({_text(u.src[0])}, {_text(u.src[1])})"
  terms, constant = linear(u)
  if terms == {u: 1}: return f"{_part(u.src[0])}*{_part(u.src[1])}" if u.op is Ops.MUL else u.op.name.lower()
  return _sum(terms, constant)


def _sum(terms: Mapping[UOp, int], constant: int) -> str:
  if not terms: return str(constant)
  words = ""
  for t, c in terms.items():
    least_of = c < 0 and t.op is Ops.MAX        # of the negated ones
    sign, count = "+" if c > 0 or least_of else "-", "" if abs(c) == 1 else f"{abs(c)}*"
    words += f" {sign} {count}" + (f"min({', '.join(map(_negated, t.src))})" if least_of else _part(t))
  if constant: words += f" {'-' if constant < 0 else '+'} {abs(constant)}"
  return words[3:] if words.startswith(" + ") else "-" + words[3:]


def _negated(u: UOp) -> str:
  terms, constant = linear(u)
  return _sum({t: -c for t, c in terms.items()}, -constant)


def _part(u: UOp) -> str:
  text = _text(u)
  whole = u.op in (Ops.DEFINE_VAR, Ops.CONST, Ops.MUL, Ops.MAX) and " " not in text.split("(")[0]
  return text if whole else f"({text})"


_WORDS = {Ops.IDIV: "//", Ops.MOD: " % "}
