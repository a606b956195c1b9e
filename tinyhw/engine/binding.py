"""The values that Variables have, by thread."""
from __future__ import annotations

import threading

from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.size import with_value
from tinyhw.ir.uop import UOp, VariableArg


class _Bindings(threading.local):
  """What a thread has bound."""

  def __init__(self) -> None: self.values: dict[VariableArg, int] = {}


_mine = _Bindings()
_last: dict[VariableArg, int] = {}  # what any thread has bound last


def set_value(arg: VariableArg, value: int | None) -> None:
  """Give a variable a value for this thread, and for those that have none of their own; None takes it away."""
  if value is not None: _mine.values[arg] = _last[arg] = value
  else:
    _mine.values.pop(arg, None)
    _last.pop(arg, None)


def known_value(arg: VariableArg) -> int | None:
  """The value of a variable now, if it has one."""
  mine = _mine.values.get(arg)
  return _last.get(arg) if mine is None else mine


def bound_value(arg: VariableArg) -> int:
  """The value of a variable now."""
  if (value := known_value(arg)) is None:
    raise InvalidArgument(f"Variable {arg.name} has no value", hint="give it one with bind()")
  return value


def with_present_value(variable: UOp) -> UOp:
  """The DEFINE_VAR with the value of its Variable now."""
  return with_value(variable, bound_value(variable.arg))
