"""Launch-time integers: a `Variable` in a graph is an argument of its kernels, so another value needs no new kernel.

`n = Variable("n", 1, 100).bind(5)`; then `x * n` computes with 5, and after `n.bind(6)` new graphs (and
replays of a TinyJit) with 6. Graphs that were made before keep the value that they were made with: binding
computes them first.
"""
from __future__ import annotations

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine import watch
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp, VariableArg

_bound: dict[VariableArg, int] = {}
_bindings: dict[VariableArg, int] = {}
"""How often each got another value: a graph that was made with the old one is another graph, also in memory."""


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
    if _bound.get(arg, value) != value:
      self._settle()
      _bindings[arg] = _bindings.get(arg, 0) + 1
    _bound[arg] = value
    return self

  def _settle(self) -> None:
    """Compute the tensors that were made with the old value."""
    from tinyhw.engine.realize import lost_below, placed, realize
    from tinyhw.function.core import live_tensors
    waiting = [t for t in list(live_tensors) if placed(t.uop) is None]
    mine = [t for t in waiting if any(u.op is Ops.DEFINE_VAR and u.arg == self.node.arg for u in t.uop.toposort())]
    realize(*(t for t in mine if lost_below(t.uop) is None))  # what was lost is told to who reads it

  def on(self, device: str) -> UOp:
    """The scalar graph node on a device. (The constant says which device; adding 0 costs nothing.)"""
    _ = self.value
    bound = self.node.replace(src=(UOp.const(dtypes.int32, _bindings.get(self.node.arg, 0)),))
    return bound + UOp.const(dtypes.int32, 0, device)

  def __repr__(self) -> str:
    arg: VariableArg = self.node.arg
    return f"Variable({arg.name!r}, {arg.min}, {arg.max}){f'.bind({_bound[arg]})' if arg in _bound else ''}"


def new_bindings() -> None:
  """From now on graphs of Variables are other graphs than those made before, although the values are the same."""
  for arg in _bound: _bindings[arg] = _bindings.get(arg, 0) + 1


def bound_value(arg: VariableArg) -> int:
  """The launch value of a kernel's variable."""
  if arg not in _bound: raise InvalidArgument(f"Variable {arg.name} has no value", hint="give it one with bind()")
  return _bound[arg]
