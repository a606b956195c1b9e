"""Text of declarations: packets, registers and enums as lines of a generated module."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TAKEN = {"encode", "decode", "items", "to_dict", "diff", "fuzz", "tail", "payload"}  # names of Packet and Register
TAKEN |= {"FIELDS", "DWORDS", "OFFSET", "REST", "OP", "SUB_OP"}
IN_REGISTER = {"value"}  # names that only Register has
REQUIRED_BITS = 20  # a field this wide carries a value (address, size, data), never a mode: the caller must give it


def identifier(name: str, *, register: bool = False) -> str:
  """The vendor's name as a Python name: an underscore before a digit, or after a keyword or a taken name."""
  if name[0].isdigit():
    name = "_" + name
  return name + "_" if keyword.iskeyword(name) or name in TAKEN or register and name in IN_REGISTER else name


@dataclass(frozen=True)
class FieldRow:
  """One declared field: bits hi..lo of `dword` (hi may pass 31), stored shifted right by `shift`."""

  name: str
  dword: int
  hi: int
  lo: int
  shift: int = 0
  enum: str | None = None
  default: int | None = None
  unused: bool = False

  @property
  def start(self) -> int:
    return self.dword * 32 + self.lo

  @property
  def end(self) -> int:
    return self.dword * 32 + self.hi


@dataclass(frozen=True)
class View:
  """A vendor's other name for some bits of a field: a read-only property. Bits hi..lo of the field's value."""

  name: str
  of: str
  hi: int
  lo: int
  in_place: bool  # an address part keeps its position, a number is shifted down


@dataclass
class PacketRow:
  """One declared packet."""

  name: str
  dwords: int
  fields: list[FieldRow]
  doc: str
  constants: dict[str, int] = field(default_factory=dict)
  views: list[View] = field(default_factory=list)
  payload: bool = False
  base: str = "Packet"


def field_line(f: FieldRow, *, register: bool = False) -> str:
  name, width, args = identifier(f.name, register=register), f.hi - f.lo + 1, []
  if f.unused: return f"  {name}: int = unused({f.dword}, {f.hi}, {f.lo})"
  required = width >= REQUIRED_BITS and not register  # a register is written by the fields that matter
  default = f.default if f.default is not None else None if required else 0
  if default is not None:
    args.append(f"default={default:#x}" if default > 9 else f"default={default}")
  if f.shift:
    args.append(f"shift={f.shift}")
  if f.enum:
    args.append(f"enum={f.enum}")
  if (f.hi, f.lo) == (31, 0):
    call = f"u32({', '.join([str(f.dword), *args])})" if not f.shift and not f.enum else ""
  elif (f.hi, f.lo) == (63, 0) and not f.enum:
    call = f"u64({', '.join([str(f.dword), *args])})"
  else:
    call = ""
  if register or not call:
    call = f"bits({', '.join([str(f.dword), str(f.hi), str(f.lo), *args])})"
  return f"  {name}: int = {call}"


def packet(row: PacketRow) -> str:
  lines = [f"class {row.name}({row.base}, dwords={row.dwords}):", f'  """{row.doc}"""']
  lines += [f"  {k}: ClassVar[int] = {v:#x}" for k, v in row.constants.items()]
  lines += [field_line(f) for f in row.fields]
  if row.payload:
    lines.append("  payload: tuple[int, ...] = rest(default=())")
  for v in row.views:
    mask = (1 << v.hi + 1) - (1 << v.lo) if v.in_place else (1 << v.hi - v.lo + 1) - 1
    source = f"self.{v.of}" if v.in_place or not v.lo else f"self.{v.of} >> {v.lo}"
    lines += ["", "  @property", f"  def {identifier(v.name)}(self) -> int: return {source} & {mask:#x}"]
  return "\n".join(lines) + "\n"


def register(name: str, offset: int, fields: Sequence[FieldRow]) -> str:
  body = [field_line(f, register=True) for f in fields]
  return "\n".join([f"class {name}(Register, offset={offset:#x}):", *body]) + "\n"


def enum(name: str, members: Mapping[str, int], doc: str = "") -> str:
  lines = [f"class {name}(IntEnum):"]
  if doc:
    lines.append(f'  """{doc}"""')
  lines += [f"  {identifier(k)} = {v:#x}" if v > 9 else f"  {identifier(k)} = {v}" for k, v in members.items()]
  return "\n".join(lines) + "\n"


def wrapped(names: list[str]) -> list[str]:
  """Names as lines of a tuple."""
  lines, line = [], " "
  for name in names:
    if len(line) + len(name) > 110:
      lines.append(line)
      line = " "
    line += f" {name},"
  return [*lines, line]


IMPORTED = "What an earlier class says letter for letter is imported."
_CLASS = re.compile(r"^class (\w+)", re.M)
_WORD = re.compile(r"\w+")
_DECLARES = ("Method", "Packet", "Register", "Word", "bits", "rest", "u32", "u64", "unused")  # of core.layout


def shared(parts: Mapping[str, str], before: Sequence[tuple[str, Mapping[str, str]]]) -> tuple[list[str], list[str]]:
  """(imports of what a module of `before` says letter for letter, from the first that does; the other texts).

  What names something that is said anew is said anew too.
  """
  owners = {name: next((m for m, earlier in before if earlier.get(name) == text), None) for name, text in parts.items()}
  words = {name: set(_WORD.findall(text)) for name, text in parts.items()}
  while True:
    anew = {c for name, owner in owners.items() if owner is None for c in _CLASS.findall(parts[name])}
    late = [name for name, owner in owners.items() if owner is not None and words[name] & anew]
    if not late: break
    owners |= dict.fromkeys(late)
  taken: dict[str, list[str]] = {}
  for name, owner in owners.items():
    if owner is not None: taken.setdefault(owner, []).extend(_CLASS.findall(parts[name]))
  lines = []
  for module, names in taken.items():
    lines += [f"from tinyhw.autogen.{module} import (", *wrapped(sorted(names)), ")"]
  return lines, [parts[name] for name, owner in owners.items() if owner is None]


def imports(own: Sequence[str], earlier: Sequence[str] = (), always: Sequence[str] = ()) -> list[str]:
  """The lines that a module's own texts need, around those of `shared`."""
  words = {*always, *(w for p in own for w in _WORD.findall(p))}
  used = [n for n in _DECLARES if n in words]
  library = [f"from {m} import {n}" for m, n in (("enum", "IntEnum"), ("typing", "ClassVar")) if n in words]
  layout = [f"from tinyhw.core.layout import {', '.join(used)}"] if used else []
  return [*library, *([""] if library else []), *earlier, *layout]
