"""The table of meanings: (opcode, modifiers, type) -> pure function."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tinyhw.core.errors import LayoutError
from tinyhw.isa.ptx.forms import Form

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Meaning:
  """What an instruction computes: `function(o, *sources) -> result` (or a tuple of results), of the form's types.

  `modifiers` belong to it; rounding, .ftz and .sat are the binder's. `types` are those of the operation, and `first`
  those of the first type where there are two. `carries`: the last source and result is the carry.
  """
  opcode: str
  modifiers: frozenset[str]
  types: frozenset[str]
  function: Callable[..., Any]
  carries: str = ""
  first: frozenset[str] = frozenset()


_TABLE: Final[dict[str, list[Meaning]]] = {}


def means(names: str, types: str, *, carries: str = "", first: str = "") -> Callable[[F], F]:
  """Decorator: the function is the meaning of these instructions ("mul.lo mad.hi") for these types. Registering one
  twice is refused."""
  def register(function: F) -> F:
    for name in names.split():
      opcode, *modifiers = name.split(".")
      new = Meaning(opcode, frozenset(modifiers), frozenset(types.split()), function, carries,
                    frozenset(first.split()))
      for m in _TABLE.setdefault(opcode, []):
        if m.modifiers == new.modifiers and m.types & new.types and (m.first & new.first or not (m.first or new.first)):
          raise LayoutError(f"PTX instruction {name} for {' '.join(sorted(m.types & new.types))} has two meanings")
      _TABLE[opcode].append(new)
    return function
  return register


def find(form: Form) -> Meaning | None:
  """The meaning of a form, the one with the most modifiers; None where there is none."""
  best: Meaning | None = None
  last, first = (form.types[-1], form.types[0]) if form.types else ("", "")
  for m in _TABLE.get(form.row.opcode, ()):
    if m.modifiers <= form.modifiers and last in m.types and (not m.first or first in m.first):
      if best is None or len(m.modifiers) > len(best.modifiers): best = m
  return best


def registered() -> list[Meaning]:
  """Every meaning."""
  return [m for ms in _TABLE.values() for m in ms]
