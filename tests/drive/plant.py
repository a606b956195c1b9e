"""Plants a mistake in a driver that is loaded: one place of its source is changed, the function made again, and put
back after the block.

A place that is no longer there, or there twice, is an error: a mutant that no longer mutates would score for ever.
"""
from __future__ import annotations

import ast
import importlib
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Change:
  """In the function `place` ("tinyhw.drive.amd.kfd:Kfd.alloc"), outdented, `old` becomes `new`."""
  place: str
  old: str
  new: str


@contextmanager
def planted(*changes: Change) -> Iterator[None]:
  """The driver with these mistakes, inside the block. Raises LookupError where a place is not as it was."""
  with ExitStack() as stack:
    for change in changes: stack.enter_context(_planted(change))
    yield


@contextmanager
def _planted(change: Change) -> Iterator[None]:
  module_name, _, name = change.place.partition(":")
  owner, key, made = _function(importlib.import_module(module_name), name, change)
  before = owner.__dict__[key]  # what it holds itself, a property as such
  setattr(owner, key, made)
  try: yield
  finally: setattr(owner, key, before)


def _source(module: ModuleType) -> str:
  assert module.__file__ is not None
  return Path(module.__file__).read_text()


def _once(text: str, change: Change) -> str:
  """The text with the change made."""
  count = text.count(change.old)
  if count != 1:
    raise LookupError(f"{change.place} has {count} times {change.old!r}: the driver has changed; mend the mistake")
  return text.replace(change.old, change.new)


def _function(module: ModuleType, name: str, change: Change) -> tuple[Any, str, Any]:
  """Owner, name and the changed function, property or staticmethod."""
  source = _source(module)
  nodes: list[ast.stmt] = ast.parse(source).body
  owner: Any = module
  *classes, last = name.split(".")
  for part in classes:
    found = next((n for n in nodes if isinstance(n, ast.ClassDef) and n.name == part), None)
    if found is None: raise LookupError(f"{change.place}: no class {part}")
    nodes, owner = found.body, getattr(owner, part)
  node = next((n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == last), None)
  if node is None: raise LookupError(f"{change.place}: no function {last}")
  first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
  text = "\n".join(source.splitlines()[first - 1:node.end_lineno])
  body = textwrap.indent(_once(textwrap.dedent(text), change), "  ")
  space: dict[str, Any] = {}
  # `__class__` as an argument of a function around it is what super() without arguments looks for
  code = compile(f"from __future__ import annotations\ndef around(__class__):\n{body}\n  return {last}",
                 f"<mistake in {change.place}>", "exec")
  exec(code, module.__dict__, space)
  made = space["around"](owner)
  if isinstance(owner, ModuleType): _refuse_shared(module, last)
  return owner, last, made


def _refuse_shared(module: ModuleType, name: str) -> None:
  """A function that others have imported by name is theirs too: only methods and unshared functions can be planted."""
  for other in list(sys.modules.values()):
    if other is not module and getattr(other, "__name__", "").startswith("tinyhw.") and \
        other.__dict__.get(name) is module.__dict__[name]:
      raise LookupError(f"{module.__name__}.{name} was imported by {other.__name__}: plant the mistake there")
