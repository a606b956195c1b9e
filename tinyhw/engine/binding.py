"""The values that Variables have: by thread, with the numbers by which graphs tell one value from another."""
from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import NamedTuple

from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.uop import VariableArg


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


def binding_of(arg: VariableArg) -> Binding | None:
  """What a Variable is bound to for this thread."""
  return _mine.values.get(arg) or _last.get(arg)


def bind(arg: VariableArg, value: int, settle: Callable[[set[int]], None]) -> None:
  """Give a Variable a value. `settle` is called first, where it had another one: with the numbers that mean that."""
  before, numbers = binding_of(arg), _mine.numbers
  if before is None or before.value == value: number = 0 if before is None else before.number
  else:
    settle(numbers | {before.number})
    number = next(_count)
  numbers.add(number)
  _mine.values[arg] = _last[arg] = Binding(value, number, numbers)


def new_bindings() -> None:
  """From now on graphs of Variables are other graphs than those made before, although the values are the same."""
  for table in (_last, _mine.values):
    for arg, old in list(table.items()):
      number = next(_count)
      old.numbers.add(number)
      table[arg] = old._replace(number=number)


def bound_value(arg: VariableArg) -> int:
  """The launch value of a kernel's variable."""
  if (binding := binding_of(arg)) is None:
    raise InvalidArgument(f"Variable {arg.name} has no value", hint="give it one with bind()")
  return binding.value
