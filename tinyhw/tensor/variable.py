"""Launch-time integers: a `Variable` in a graph is an argument of its kernels, so another value needs no new kernel.

`n = Variable("n", 1, 100).bind(5)`; then `x * n` computes with 5 and `x[:n]` has 5 elements, and after `n.bind(6)` new
graphs (and replays of a TinyJit) have 6. Graphs keep the value that they were made with. A thread that has bound a
Variable computes with its own value, others with the one bound last.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.devices import watch
from tinyhw.engine.binding import bound_value, known_value, set_value, with_present_value
from tinyhw.function.spelling import by_any_spelling
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.size import Size, readers, rewritten, scalar
from tinyhw.ir.uop import UOp, VariableArg

if TYPE_CHECKING:
  from tinyhw.tensor.tensor import Tensor


def _is_read(what: str) -> None:
  if (watcher := watch.watching()) is not None: watcher.outside(f"{what} is read into Python")


readers.append(_is_read)


class Formula(Size):
  """A number made of Variables, such as `n + 1`: it has their values where it is used, as they are then."""
  __slots__ = ()

  def present(self) -> UOp:
    return rewritten(self.node, lambda v: v if v.src else with_present_value(v))

  def seen(self) -> UOp:
    known = all(v.src or known_value(v.arg) is not None for v in self.node.variables)
    return self.present() if known else self.node

  def kind(self) -> type[Size]: return Formula

  def on(self, device: str) -> UOp:
    """The scalar graph node on a device."""
    return scalar(self, device)

  def cast(self, dtype: DType | str, device: str | None = None) -> Tensor:
    """A tensor of shape () with this number, of a type."""
    from tinyhw.tensor.tensor import Tensor
    return Tensor(self, device=device).cast(dtype)


class Variable(Formula):
  """An int32 within inclusive bounds, known by its name and bounds: two Variables of the same name and bounds are
  one. It is a number in shapes, slices and arithmetic, whose type the other operand says; `dtype` is that of the
  tensor which is made of it alone, `Tensor(n)`."""
  __slots__ = ("dtype",)
  dtype: DType

  @by_any_spelling
  def __new__(cls, name: str, minimum: int, maximum: int, dtype: DType | str = dtypes.int32) -> Variable:
    if not name.isidentifier(): raise InvalidArgument(f"{name!r} is not a name for a Variable")
    if not dtypes.int32.min <= minimum <= maximum <= dtypes.int32.max:
      raise InvalidArgument(f"Variable {name}: {minimum}..{maximum} is not a range of int32",
                            hint="that is what launches take; a greater number is a tensor's")
    kind = dtypes.named(dtype) if isinstance(dtype, str) else dtype
    if not kind.is_int or not kind.min <= minimum <= maximum <= kind.max:
      raise InvalidArgument(f"Variable {name}: {minimum}..{maximum} is not a range of {kind}")
    self: Variable = object.__new__(cls)
    self.dtype = kind
    self._set(UOp.variable(name, int(minimum), int(maximum)))
    return self

  def __reduce__(self) -> tuple[Any, ...]: return (Variable, (*self.node.arg, self.dtype))

  @property
  def name(self) -> str:
    """Its name."""
    return str(self.node.arg.name)

  @property
  def value(self) -> int:
    """The value bound last."""
    _is_read(f"Variable {self.name}")
    return bound_value(self.node.arg)

  def bind(self, value: int) -> Variable:
    """Give it a value. Returns this."""
    arg: VariableArg = self.node.arg
    self._changes("bound")
    if not arg.min <= value <= arg.max:
      raise InvalidArgument(f"{value} is outside of {arg.min}..{arg.max}", where=f"Variable {arg.name}")
    set_value(arg, int(value))
    return self

  def unbind(self) -> tuple[Variable, int]:
    """Take its value from it. Returns this, and the value that it had. Graphs keep theirs."""
    self._changes("unbound")
    value = bound_value(self.node.arg)
    set_value(self.node.arg, None)
    return self, value

  def _changes(self, what: str) -> None:
    if (watcher := watch.watching()) is not None: watcher.outside(f"Variable {self.name} is {what}")

  def __repr__(self) -> str:
    arg: VariableArg = self.node.arg
    value = known_value(arg)
    return f"Variable({arg.name!r}, {arg.min}, {arg.max}){'' if value is None else f'.bind({value})'}"
