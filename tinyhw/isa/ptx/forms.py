"""Which instruction of the table an opcode with its modifiers is, and what types its operands have."""
from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from tinyhw.core.errors import LayoutError
from tinyhw.isa.ptx.table import ROWS, SETS

SIZES: Final = {  # bytes of a type
  "pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4,
  "f32": 4, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4, "tf32": 4, "e4m3x2": 2, "e5m2x2": 2, "b64": 8, "u64": 8,
  "s64": 8, "f64": 8, "f32x2": 8, "b128": 16, "texref": 8, "samplerref": 8, "surfref": 8, "e4m3": 1, "e5m2": 1,
  "e2m1x2": 1, "e2m3x2": 2, "e3m2x2": 2, "ue8m0x2": 2, "e2m1x4": 2, "e2m3x4": 4, "e3m2x4": 4, "e4m3x4": 4, "e5m2x4": 4,
  "s2f6x2": 2}
_WIDER: Final = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


@dataclass(frozen=True)
class Row:
  """A row of the table. `slots` are (optional, choices), `version` and `sm` the first PTX and target that have it;
  `own`: of targets those with a letter alone, `below`: those before another one."""
  opcode: str
  slots: tuple[tuple[bool, tuple[str, ...]], ...]
  results: tuple[str, ...]
  sources: tuple[str, ...]
  version: tuple[int, int]
  sm: int
  own: bool
  below: int

  def combinations(self) -> Iterator[str]:
    """Every instruction of the row by its name: `mul.lo.s32`."""
    for chosen in itertools.product(*[(("",) if optional else ()) + choices for optional, choices in self.slots]):
      yield ".".join([self.opcode, *(c for c in chosen if c)])

  @property
  def size(self) -> int:
    """How many those are."""
    total = 1
    for optional, choices in self.slots: total *= len(choices) + optional
    return total


@dataclass(frozen=True)
class Form:
  """An instruction of the table: its row, its modifiers, and the operands' types with `t`, `u` and `w` replaced."""
  name: str
  row: Row
  modifiers: frozenset[str]
  types: tuple[str, ...]
  results: tuple[str, ...]
  sources: tuple[str, ...]

  @property
  def type(self) -> str:
    """The last type: of the operation, or of a conversion's source."""
    return self.types[-1]


def _slot(word: str) -> tuple[bool, tuple[str, ...]]:
  optional = word.startswith("?")
  choices: list[str] = []
  for choice in word.removeprefix("?").split("|"):
    choices += SETS[choice[1:]].split("|") if choice.startswith("$") else [choice]
  if len(set(choices)) != len(choices): raise LayoutError(f"a choice twice in {word}", where="PTX table")
  return optional, tuple(choices)


def _read(line: str) -> Iterator[Row]:
  head, operands, *rest = (part.strip() for part in line.split(";"))
  names, *words = head.split()
  results, _, sources = operands.partition(":")
  version, target = (rest[0].split() if rest else ("1.0", "0"))
  major, _, minor = version.partition(".")
  sm, _, below = target.partition("<")
  for opcode in names.split(","):
    yield Row(opcode, tuple(map(_slot, words)), tuple(results.split()), tuple(sources.split()),
              (int(major), int(minor)), int(sm.removesuffix("a")), sm.endswith("a"), int(below or 0))


@cache
def rows() -> dict[str, tuple[Row, ...]]:
  """The table's rows by opcode."""
  found: dict[str, list[Row]] = {}
  for line in ROWS.splitlines():
    if line.strip():
      for row in _read(line): found.setdefault(row.opcode, []).append(row)
  return {opcode: tuple(r) for opcode, r in found.items()}


def _fits(slots: tuple[tuple[bool, tuple[str, ...]], ...], modifiers: list[str], slot: int = 0, at: int = 0) -> bool:
  """Whether modifiers from a place on are what slots from one on may have, in this order."""
  if slot == len(slots): return at == len(modifiers)
  optional, choices = slots[slot]
  if at < len(modifiers):
    if modifiers[at] in choices and _fits(slots, modifiers, slot + 1, at + 1): return True
    for two in choices:  # xorsign.abs
      if "." in two and two.split(".") == modifiers[at:at + 2]: return _fits(slots, modifiers, slot + 1, at + 2)
  return optional and _fits(slots, modifiers, slot + 1, at)


@lru_cache(maxsize=8192)
def find(name: str, operands: int = 0) -> Form | None:
  """The form of an instruction by its name (`add.rn.f32`); None where the table has none. `operands` chooses among rows
  of one name by their number (max.f32 of two numbers, or of three); otherwise the first one counts."""
  modifiers = name.split(".")
  fitting = [row for row in rows().get(modifiers[0], ()) if _fits(row.slots, modifiers[1:])]
  if fitting:
    row = next((r for r in fitting if len(r.results) + len(r.sources) == operands), fitting[0])
    return _form(name, row, modifiers[1:])
  for row in rows().get(modifiers[0], ()):  # compilers write them otherwise than the manual; ptxas reads any order
    ordered = _ordered(row, modifiers[1:])
    if ordered is not None: return _form(name, row, ordered)
  return None


@lru_cache(maxsize=8192)
def counts(name: str) -> tuple[int, ...]:
  """How many operands an instruction may have, by its name: of all rows that it is one of, in order."""
  modifiers, found = name.split("."), set[int]()
  for row in rows().get(modifiers[0], ()):
    if _fits(row.slots, modifiers[1:]) or _ordered(row, modifiers[1:]) is not None:
      words = (*row.results, *row.sources)
      found.update(range(len(words) - sum(w.startswith("*") for w in words), len(words) + 1))
  return tuple(sorted(found))


def _ordered(row: Row, modifiers: list[str]) -> list[str] | None:
  """The modifiers in the order of the row's slots; None where they do not fill them."""
  left = [*modifiers]
  out: list[str] = []
  for optional, choices in row.slots:
    found = next((m for m in left if m in choices), None)
    if found is not None:
      left.remove(found)
      out.append(found)
    elif not optional: return None
  return None if left else out


def _form(name: str, row: Row, modifiers: list[str]) -> Form:
  types = tuple(m for m in modifiers if m in SIZES)
  table = {"t": types[-1], "u": types[0], "w": _WIDER.get(types[-1], "")} if types else {}

  def resolved(word: str) -> str:
    star = "*" if word.startswith("*") else ""
    return star + "|".join(table.get(w, w) for w in word.removeprefix("*").split("|"))
  return Form(name, row, frozenset(modifiers), types, tuple(map(resolved, row.results)),
              tuple(map(resolved, row.sources)))


def known(opcode: str) -> bool:
  """Whether the table has any form of an opcode."""
  return opcode in rows()
