"""Launch-time integers: a `Variable` in a graph is an argument of its kernels, so another value needs no new kernel.

`n = Variable("n", 1, 100).bind(5)`; then `x * n` computes with 5, and after `n.bind(6)` new graphs (and
replays of a TinyJit) with 6. Graphs that were made before keep the value that they were made with: binding
computes them first. A thread that has bound a Variable computes with its own value, others with the one bound last.
"""
from __future__ import annotations

import itertools
import threading
from typing import NamedTuple

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine import watch
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp, VariableArg


class Binding(NamedTuple):
  """A value with the number that graphs have from it: those made with another are other graphs, also in memory.

  `numbers` are all that the thread has given that bound it: where these occur, its value is meant.
  """
  value: int
  number: int
  numbers: set[int]


class _Bindings(threading.local):
  """What a thread has bound."""

  def __init__(self) -> None:
    self.values: dict[VariableArg, Binding] = {}
    self.numbers: set[int] = set()


_mine = _Bindings()
_last: dict[VariableArg, Binding] = {}  # what any thread has bound last
_count = itertools.count(1)


def _binding(arg: VariableArg) -> Binding | None: return _mine.values.get(arg) or _last.get(arg)


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
    before, numbers = _binding(arg), _mine.numbers
    if before is None or before.value == value: number = 0 if before is None else before.number
    else:
      self._settle(numbers | {before.number})
      number = next(_count)
    numbers.add(number)
    _mine.values[arg] = _last[arg] = Binding(value, number, numbers)
    return self

  def _settle(self, numbers: set[int]) -> None:
    """Compute the tensors that were made with the old value, which has these numbers."""
    from tinyhw.engine.realize import lost_below, placed, realize
    from tinyhw.function.core import living
    waiting = [t for t in living() if placed(t.uop) is None]
    def meant(u: UOp) -> bool: return u.op is Ops.DEFINE_VAR and u.arg == self.node.arg and u.src[0].arg in numbers
    mine = [t for t in waiting if any(map(meant, t.uop.toposort()))]
    realize(*(t for t in mine if lost_below(t.uop) is None))  # what was lost is told to who reads it

  def on(self, device: str) -> UOp:
    """The scalar graph node on a device. (The constant says which device; adding 0 costs nothing.)"""
    _ = self.value
    binding = _binding(self.node.arg)
    bound = self.node.replace(src=(UOp.const(dtypes.int32, 0 if binding is None else binding.number),))
    return bound + UOp.const(dtypes.int32, 0, device)

  def __repr__(self) -> str:
    arg: VariableArg = self.node.arg
    binding = _binding(arg)
    return f"Variable({arg.name!r}, {arg.min}, {arg.max}){'' if binding is None else f'.bind({binding.value})'}"


def new_bindings() -> None:
  """From now on graphs of Variables are other graphs than those made before, although the values are the same."""
  for table in (_last, _mine.values):
    for arg, old in list(table.items()):
      number = next(_count)
      old.numbers.add(number)
      table[arg] = old._replace(number=number)


def bound_value(arg: VariableArg) -> int:
  """The launch value of a kernel's variable."""
  if (binding := _binding(arg)) is None:
    raise InvalidArgument(f"Variable {arg.name} has no value", hint="give it one with bind()")
  return binding.value
