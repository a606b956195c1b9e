"""Launch-time integers: a `Variable` in a graph is an argument of its kernels, so another value needs no new kernel.

`n = Variable("n", 1, 100).bind(5)`; then `x * n` computes with 5, and after `n.bind(6)` new graphs (and
replays of a TinyJit) with 6. Graphs that were made before keep the value that they were made with: binding
computes them first. A thread that has bound a Variable computes with its own value, others with the one bound last.
"""
from __future__ import annotations

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine import watch
from tinyhw.engine.binding import bind, binding_of, bound_value
from tinyhw.engine.realize import lost_below, placed, realize
from tinyhw.function.core import living
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp, VariableArg


class Variable:
  """An int32 within inclusive bounds, known by its name and bounds: two Variables of the same name and bounds are
  one."""

  def __init__(self, name: str, minimum: int, maximum: int):
    if not name.isidentifier(): raise InvalidArgument(f"{name!r} is not a name for a Variable")
    if not dtypes.int32.min <= minimum <= maximum <= dtypes.int32.max:
      raise InvalidArgument(f"Variable {name}: {minimum}..{maximum} is not a range of int32")
    self.node = UOp.variable(name, minimum, maximum)

  @property
  def name(self) -> str:
    """Its name."""
    return str(self.node.arg.name)

  @property
  def value(self) -> int:
    """The value bound last."""
    return bound_value(self.node.arg)

  def bind(self, value: int) -> Variable:
    """Give it a value. Returns this."""
    arg: VariableArg = self.node.arg
    if (watcher := watch.watching()) is not None: watcher.outside(f"Variable {arg.name} is bound")
    if not arg.min <= value <= arg.max:
      raise InvalidArgument(f"{value} is outside of {arg.min}..{arg.max}", where=f"Variable {arg.name}")
    bind(arg, value, self._settle)
    return self

  def _settle(self, numbers: set[int]) -> None:
    """Compute the tensors that were made with the old value, which has these numbers."""
    waiting = [t for t in living() if placed(t.uop) is None]
    def meant(u: UOp) -> bool: return u.op is Ops.DEFINE_VAR and u.arg == self.node.arg and u.src[0].arg in numbers
    mine = [t for t in waiting if any(map(meant, t.uop.toposort()))]
    realize(*(t for t in mine if lost_below(t.uop) is None))  # what was lost is told to who reads it

  def on(self, device: str) -> UOp:
    """The scalar graph node on a device. (The constant says which device; adding 0 costs nothing.)"""
    _ = self.value
    binding = binding_of(self.node.arg)
    bound = self.node.replace(src=(UOp.const(dtypes.int32, 0 if binding is None else binding.number),))
    return bound + UOp.const(dtypes.int32, 0, device)

  def __repr__(self) -> str:
    arg: VariableArg = self.node.arg
    binding = binding_of(arg)
    return f"Variable({arg.name!r}, {arg.min}, {arg.max}){'' if binding is None else f'.bind({binding.value})'}"
