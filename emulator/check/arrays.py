"""`values.shadow` on NumPy's arrays, for bound steps: shadowed arrays stand where registers' values do.

A step reads, selects, permutes and masks arrays by NumPy's functions; those that have a rule here do the same to the
shadow. Where a step must decide something by an undefined value, or uses what has no rule, `Undecided` is raised.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.emulator.values.ops import U32, Ops
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.shadow import Shadowed, ShadowOps, unsigned


class Undecided(Exception):
  """A step cannot be followed on these values."""


class Array(Shadowed):
  """A shadowed NumPy array; value and shadow have one shape."""
  __slots__ = ()
  o: ArrayOps
  value: Value

  @property
  def shape(self) -> Any: return self.value.shape

  @property
  def ndim(self) -> int: return int(self.value.ndim)

  def __array__(self, *_: Any, **__: Any) -> Any: raise Undecided("an array of values with undefined bits")

  def __bool__(self) -> bool: raise Undecided("a decision")

  def __int__(self) -> int: raise Undecided("a number")

  __index__ = __int__

  def __float__(self) -> float: raise Undecided("a number")

  def __getattr__(self, name: str) -> Any:
    if name.startswith("__"): raise AttributeError(name)
    raise Undecided(name)  # what arrays have and this one has no rule for

  def __iter__(self) -> Any: raise Undecided("an iteration")

  def __len__(self) -> int: return len(self.value)

  def _same(self, what: Callable[[Value], Value]) -> Value: return self.o.made(what(self.value), what(self.shadow))

  def __getitem__(self, index: Any) -> Value:
    if any(isinstance(k, Array) for k in (index if isinstance(index, tuple) else (index,))): raise Undecided("an index")
    return self._same(lambda x: x[index])

  def __setitem__(self, index: Any, value: Any) -> None: raise Undecided("a change in place")

  def reshape(self, *shape: Any) -> Value: return self._same(lambda x: x.reshape(*shape))

  def take(self, index: Value, axis: int) -> Value: return self._same(lambda x: x.take(index, axis=axis))

  def any(self, *args: Any, **kwargs: Any) -> Value: raise Undecided("whether any is set")

  def all(self, *args: Any, **kwargs: Any) -> Value: raise Undecided("whether all are set")

  def in_lanes(self) -> Value:
    """Dwords of a mask as bools of the lanes."""
    return self._same(lambda x: np.unpackbits(np.ascontiguousarray(x.reshape(-1, 1)).view(np.uint8), axis=1,
                                              bitorder="little").view(bool))

  def in_bits(self) -> Value:
    """Bools of 32 lanes as the dwords of a mask."""
    def packed(x: Value) -> Value:
      if x.shape[1] == 1: x = np.broadcast_to(x, (x.shape[0], 32))
      return np.ascontiguousarray(np.packbits(x, axis=1, bitorder="little")).view(U32)
    return self._same(packed)

  def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if method != "__call__" or set(kwargs) - {"dtype"}: raise Undecided(f"{ufunc.__name__}.{method}")
    if kwargs: inputs = tuple(x.astype(kwargs["dtype"]) for x in inputs)
    rule = _UFUNCS.get(ufunc.__name__)
    return self.o.opaque(ufunc, *inputs) if rule is None else rule(self.o, *inputs)

  def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if function is np.where and len(args) == 3: return self.o.where(*args)
    if function is np.clip: return self.o.clip(*args)
    if function is np.take_along_axis: return _taken(self.o, *args, **kwargs)
    if function not in _STRUCTURE or not args: raise Undecided(function.__name__)
    first, *rest = args
    if any(isinstance(x, Array) for x in (*rest, *kwargs.values())): raise Undecided(function.__name__)
    many = isinstance(first, list | tuple)
    pairs = [_both(x) for x in first] if many else [_both(first)]
    value, shadow = (function(list(x) if many else x[0], *rest, **kwargs) for x in zip(*pairs))
    return self.o.made(value, shadow)


_STRUCTURE: Final = frozenset((np.broadcast_to, np.concatenate, np.stack, np.moveaxis, np.reshape, np.repeat, np.tile,
                               np.swapaxes, np.squeeze))


def _both(x: Value) -> tuple[Value, Value]:
  """A value and its shadow."""
  return (x.value, x.shadow) if isinstance(x, Array) else (x, np.zeros(np.shape(x), unsigned(x.dtype)))


def _taken(o: ArrayOps, x: Value, index: Value, axis: int) -> Value:
  """Elements by index; where the index is undefined the element is."""
  (value, shadow), (at, unsure) = _both(x), _both(index)
  found = o.made(np.take_along_axis(value, at, axis=axis), np.take_along_axis(shadow, at, axis=axis))
  return found if not isinstance(index, Array) else o.whole_where(found, unsure != 0)


def _operator(name: str) -> Callable[..., Value]: return lambda o, a, b: o.binary(name, a, b)


def _comparison(name: str) -> Callable[..., Value]: return lambda o, a, b: o.compare(name, a, b)


_UFUNCS: Final[dict[str, Callable[..., Value]]] = {
  "add": _operator("add"), "subtract": _operator("sub"), "multiply": _operator("mul"),
  "bitwise_and": _operator("and_"), "bitwise_or": _operator("or_"), "bitwise_xor": _operator("xor"),
  "logical_and": _operator("and_"), "logical_or": _operator("or_"),
  "left_shift": _operator("lshift"), "right_shift": _operator("rshift"),
  "less": _comparison("lt"), "less_equal": _comparison("le"), "greater": _comparison("gt"),
  "greater_equal": _comparison("ge"), "equal": _comparison("eq"), "not_equal": _comparison("ne"),
  "invert": lambda o, x: ~x, "negative": lambda o, x: o.neg(x), "absolute": lambda o, x: o.abs(x),
  "minimum": lambda o, a, b: o.min(a, b), "maximum": lambda o, a, b: o.max(a, b),
  "bitwise_count": lambda o, x: o.popcount(x), "signbit": lambda o, x: o.signbit(x),
  "copysign": lambda o, a, b: o.copysign(a, b)}


class ArrayOps(ShadowOps):
  """Value operations on arrays; what has no undefined bit is a plain one."""

  def __init__(self) -> None: super().__init__(Ops)

  def made(self, value: Any, shadow: Any) -> Any:
    if shadow is None or not shadow.any(): return value
    shape = np.broadcast_shapes(value.shape, shadow.shape)
    if value.shape != shape: value = np.broadcast_to(value, shape)
    if shadow.shape != shape: shadow = np.broadcast_to(shadow, shape)
    return Array(self, value, shadow)

  def whole_where(self, x: Value, bad: Value) -> Value:
    """A value that is undefined as a whole where `bad` is, besides its own undefined bits."""
    value, shadow = self.parts(x)
    whole: tuple[Any, Any] = self._ones(value.dtype), self._zero(value.dtype)
    ones = np.where(bad, *whole)
    return self.made(value, ones if shadow is None else shadow | ones)


SHADOW_OPS: Final = ArrayOps()
