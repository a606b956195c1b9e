"""A device with one behaviour broken: a mock machine, one place of whose source is changed, and put back after it.

A row of `defects_amd.py` or `defects_nv.py` names the rung that has to be the first broken one, says what is broken,
and gives the change. Handlers of tables (packets, ioctls, controls) are replaced in their tables too. A place that is
no longer as it was is an error: a defect that no longer is one would be found for ever.
"""
from __future__ import annotations

import ast
import importlib
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import _lru_cache_wrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from tinyhw.core.table import Handlers
from tinyhw.emulator.amdgcn.binders import Binders
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS


@dataclass(frozen=True)
class Defect:
  """In the function `place` ("tinyhw.mock.amd.chip.sdma:SdmaQueue._copy"), `old` becomes `new`: once, or `times`."""
  rung: str
  what: str
  place: str
  old: str
  new: str
  times: int = 1
  cards: tuple[str, ...] = ()  # where it shows, if not on the first card of its vendor
  memory: str = "strong"  # "weak" for what only caches show


@contextmanager
def built_in(defect: Defect) -> Iterator[None]:
  """Machines that are made inside the block have the defect."""
  module_name, _, name = defect.place.partition(":")
  module = importlib.import_module(module_name)
  owner, key, before, made = changed(module, name, defect)
  with ExitStack() as stack:
    for table, row, value in _tables(_plain(before), made):
      stack.callback(table.__setitem__, row, table[row])
      table[row] = value
    if isinstance(owner, ModuleType): _by_name(stack, owner, key, before, made)
    else:
      stack.callback(setattr, owner, key, before)
      setattr(owner, key, staticmethod(made) if isinstance(before, staticmethod) else
              property(made) if isinstance(before, property) else made)
    _forget()
    stack.callback(_forget)
    yield


def _by_name(stack: ExitStack, owner: ModuleType, key: str, before: Any, made: Any) -> None:
  """A function of a module is also what others have imported by its name."""
  for other in list(sys.modules.values()):
    if getattr(other, "__name__", "").startswith("tinyhw.") and other.__dict__.get(key) is before:
      stack.callback(setattr, other, key, before)
      setattr(other, key, made)


def _forget() -> None:
  """What is made once and shared: files of machines alike, code that was bound before."""
  for module in [m for n, m in list(sys.modules.items()) if n.startswith(("tinyhw.mock", "tinyhw.emulator"))]:
    for thing in list(module.__dict__.values()):
      if isinstance(thing, _lru_cache_wrapper): thing.cache_clear()


def _plain(before: Any) -> Any:
  if isinstance(before, property): return before.fget
  return before.__func__ if isinstance(before, staticmethod) else before


def _tables(function: Any, made: Any) -> Iterator[tuple[dict[Any, Any], Any, Any]]:
  """The tables that the function serves keys of, these, and what is to be there; of instructions the meanings too."""
  meanings = MEANINGS._meanings
  yield from ((meanings, k, replace(m, function=made)) for k, m in list(meanings.items()) if m.function is function)
  seen: set[int] = set()
  for module in [m for n, m in list(sys.modules.items()) if n.startswith("tinyhw.")]:
    for thing in list(module.__dict__.values()):
      for table in (thing, *(vars(thing).values() if isinstance(thing, type) else ())):
        rows = table._handlers if isinstance(table, Handlers) else table._rows if isinstance(table, Binders) else table
        if isinstance(rows, dict) and id(rows) not in seen:
          seen.add(id(rows))
          yield from ((rows, k, made) for k, f in list(rows.items()) if f is function)


def changed(module: ModuleType, name: str, defect: Defect) -> tuple[Any, str, Any, Any]:
  """Owner, name, the function as it is and as it will be."""
  assert module.__file__ is not None
  source = Path(module.__file__).read_text()
  nodes: list[ast.stmt] = ast.parse(source).body
  owner: Any = module
  *classes, last = name.split(".")
  for part in classes:
    found = next((n for n in nodes if isinstance(n, ast.ClassDef) and n.name == part), None)
    if found is None: raise LookupError(f"{defect.place}: no class {part}")
    nodes, owner = found.body, getattr(owner, part)
  node = next((n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == last), None)
  if node is None: raise LookupError(f"{defect.place}: no function {last}")
  text = textwrap.dedent("\n".join(source.splitlines()[node.lineno - 1:node.end_lineno]))
  if (count := text.count(defect.old)) != defect.times:
    raise LookupError(f"{defect.place} has {count} times {defect.old!r}: the mock has changed; mend the defect")
  renamed = text.replace(defect.old, defect.new).replace(f"def {last}(", "def _made(", 1)  # its own name means others
  body = textwrap.indent(renamed, "  ")
  space: dict[str, Any] = {}
  code = compile(f"from __future__ import annotations\ndef around(__class__):\n{body}\n  return _made",
                 f"<defect in {defect.place}>", "exec")
  exec(code, module.__dict__, space)
  return owner, last, owner.__dict__[last], space["around"](owner)
