"""Several PTX modules as one, by the manual's "Linking Directives": what `nvlink` does with machine code."""
from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx.module.builtin import FUNCTIONS
from tinyhw.isa.ptx import parse, text
from tinyhw.isa.ptx.model import (
  Arguments,
  Block,
  Directive,
  Function,
  Instruction,
  Item,
  Member,
  Module,
  Name,
  Section,
  Variable,
)

_LOCAL: Final = ""
_PROVIDED: Final = FUNCTIONS | {"malloc", "free"}  # by the driver
_NAMES: Final = frozenset({"text", "name", "label", "register"})  # fields that name what a module has
_FILE, _LOC = "file", "loc"
_PLACE: Final = 3  # words of a .loc that are a place: file, line, column; the rest names functions that were inlined


def _defines(item: Function | Variable) -> bool:
  return item.body is not None if isinstance(item, Function) else item.linkage != "extern"


def _shared(item: Function | Variable) -> bool:
  """Whether other modules know it: kernels are found by name, whatever they are."""
  return item.linkage != _LOCAL or isinstance(item, Function) and item.kind == "entry"


def _renamed(thing: Any, names: dict[str, str], files: int) -> Any:
  """A part of a module with other names for its own, and its files counted from another number."""
  if isinstance(thing, tuple): return tuple(_renamed(x, names, files) for x in thing)
  if isinstance(thing, Directive): return _numbered(thing, files)
  if not dataclasses.is_dataclass(thing) or isinstance(thing, Member): return thing
  if not names and not isinstance(thing, (Function, Block)): return thing
  changes: dict[str, Any] = {}
  for f in dataclasses.fields(thing):
    value = getattr(thing, f.name)
    if f.name in _NAMES and isinstance(value, str) and value in names: changes[f.name] = names[value]
    elif f.name == "names": changes[f.name] = tuple(names.get(n, n) for n in value)
    elif isinstance(value, tuple) or dataclasses.is_dataclass(value): changes[f.name] = _renamed(value, names, files)
  changed: Any = dataclasses.replace(cast(Any, thing), **changes)
  return changed


def _numbered(d: Directive, files: int) -> Directive:
  """A directive with its file counted from another number; of a .loc its place alone."""
  if d.name not in {_FILE, _LOC} or not d.words or not digits(d.words[0]): return d
  words = d.words if d.name == _FILE else d.words[:_PLACE]
  return dataclasses.replace(d, words=(str(int(words[0]) + files), *words[1:]))


def _names(items: Iterable[Item]) -> dict[str, Function | Variable]:
  """What a module calls at its outermost level, definitions before declarations."""
  found: dict[str, Function | Variable] = {}
  for item in items:
    if isinstance(item, (Function, Variable)) and (item.name not in found or _defines(item)): found[item.name] = item
  return found


def _strength(item: Function | Variable) -> int:
  return 0 if not _defines(item) else 1 if item.linkage in {"weak", "common"} else 2


def _without_results(thing: Any, names: set[str]) -> Any:
  """A part of a module that takes no results of these functions. Objects are linked without a look at what functions
  give: who declares a result that there is none of gets what nobody has written (Numba does, of `void`)."""
  if isinstance(thing, tuple): return tuple(_without_results(x, names) for x in thing)
  if isinstance(thing, Function) and thing.name in names and thing.body is None:
    return dataclasses.replace(thing, results=())
  if isinstance(thing, Function): return dataclasses.replace(thing, body=_without_results(thing.body, names))
  if isinstance(thing, Block): return dataclasses.replace(thing, statements=_without_results(thing.statements, names))
  if isinstance(thing, Instruction) and thing.opcode == "call" and len(thing.operands) > 1:
    results, target = thing.operands[:2]
    if isinstance(results, Arguments) and isinstance(target, Name) and target.text in names:
      return dataclasses.replace(thing, operands=thing.operands[1:])
  return thing


def merge(modules: Sequence[Module]) -> Module:
  """One module of all. What is known only in its own module keeps to itself; a weak definition gives way to a strong
  one, or to the first. Raises DecodeError where two define one name, or address in another way."""
  if len(modules) == 1: return modules[0]
  if len(sizes := {m.address_size for m in modules} - {0}) > 1:
    raise DecodeError("modules of different .address_size", where="PTX")
  known = [_names(m.items) for m in modules]
  taken = {name for names in known for name in names}
  chosen: dict[str, tuple[int, Function | Variable]] = {}
  parts: list[tuple[Item, ...]] = []
  files = 0
  for number, module in enumerate(modules):
    fresh: dict[str, str] = {}
    for name, item in known[number].items():
      if _shared(item):
        before = chosen.get(name)
        if before is not None and _strength(before[1]) == _strength(item) == 2:
          raise DecodeError(f"{name} is defined in two modules", where="PTX")
        if before is None or _strength(item) > _strength(before[1]): chosen[name] = number, item
      elif any(name in names for names in known if names is not known[number]):
        fresh[name] = next(new for i in itertools.count(number) if (new := f"{name}${i}") not in taken)
        taken.add(fresh[name])
    parts.append(_renamed(module.items, fresh, files))
    files += max((int(d.words[0]) for d in module.items if isinstance(d, Directive) and d.name == _FILE), default=0)
  silent = {name for name, (_, item) in chosen.items() if isinstance(item, Function) and item.body is not None
            and not item.results}
  for number, names in enumerate(known):
    wrong = {n for n, item in names.items() if n in silent and isinstance(item, Function) and item.results}
    if wrong: parts[number] = _without_results(parts[number], wrong)
  return Module(max(m.version for m in modules), max(modules, key=lambda m: m.sm).target, max(sizes, default=0),
                tuple(_kept(parts, chosen)))


def _kept(parts: Sequence[tuple[Item, ...]], chosen: dict[str, tuple[int, Function | Variable]]) -> Iterable[Item]:
  """What is left when each name is defined once; declarations of functions come first, and debug sections go."""
  for number, items in enumerate(parts):
    for item in items:
      if isinstance(item, Section): continue
      if isinstance(item, (Function, Variable)) and item.name in chosen and _shared(item):
        where, winner = chosen[item.name]
        if _defines(item) and where != number: continue
        if isinstance(item, Variable) and not _defines(item) and _defines(winner): continue
      yield item


def linked(texts: Sequence[tuple[str, str]], provided: frozenset[str] = _PROVIDED) -> str:
  """One text of several, each with a name; what is `provided` comes later. Raises DecodeError for what is no PTX, or
  does not fit together."""
  modules = []
  for name, ptx in texts:
    try: modules.append(parse(ptx.encode()))
    except DecodeError as error: raise DecodeError(f"{name}: {error}") from None
  whole = merge(modules)
  missing = sorted(n for n, f in whole.functions.items() if f.body is None and f.linkage == "extern"
                   and n not in provided | _PROVIDED)
  if missing: raise DecodeError(f"Undefined reference to '{missing[0]}' in '{texts[0][0]}'")
  return texts[0][1] if len(texts) == 1 else text(whole)
