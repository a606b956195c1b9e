"""What changed between two generations, from the generated tables and the records of `arch`.

A difference is a section (instructions, registers, packets, methods, limits ...), what happened (new, gone, changed)
and the names; of what changed, both sides. Nothing here is typed by hand: a fact that differs is in two tables.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final

from tinyhw.arch import DECODED, Arch, lacking
from tinyhw.arch.nv import NV_ARCHES, NvArch
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.layout import Field
from tinyhw.core.nearest import offered
from tinyhw.isa.amdgcn import Row, table
from tinyhw.isa.ptx import forms

# What names a generation, and so differs always.
NAMES: Final = {"name", "card", "isa", "instructions", "pm4", "sdma", "registers", "chip"}


@dataclass(frozen=True)
class Change:
  """One difference: `what` is new, gone or changed, `was` and `now` say how."""

  section: str
  what: str
  name: str
  was: str = ""
  now: str = ""


Facts = dict[str, str]  # name -> a text that is equal where nothing differs


def compared(section: str, before: Facts, after: Facts) -> list[Change]:
  """What is in one of them alone, and what differs; by name, gone ones first."""
  out = [Change(section, "gone", name, was=before[name]) for name in sorted(before.keys() - after.keys())]
  out += [Change(section, "new", name, now=after[name]) for name in sorted(after.keys() - before.keys())]
  return out + [Change(section, "changed", name, before[name], after[name])
                for name in sorted(before.keys() & after.keys()) if before[name] != after[name]]


def _bits(field: Field) -> str:
  """The lowest bit of a field, how many it has, and the value's lowest bit where that is not 0."""
  return f"[{field.lo}+{field.width}{f'<<{field.shift}' if field.shift else ''}]"


def _layout(declared: Any) -> str:
  """A declaration's fields, each with its bits."""
  return " ".join(f.name + _bits(f) for f in declared.FIELDS)


# ---- instructions

def _row(row: Row) -> str:
  where = " ".join(f"{name}={','.join(':'.join(map(str, p)) for p in pieces)}" for name, pieces in row.fields.items())
  operands = " ".join(f"{name}:{kind}{dwords}" for name, _, kind, dwords, _, _ in row.operands)
  return f"{row.family} {row.size} bytes {row.value:#x}/{row.mask:#x} {where} | {operands}"


@cache
def instructions(name: str) -> Facts:
  """The encodings of each instruction of an instruction table, by mnemonic: the forms that it has, as one text."""
  found: dict[str, list[str]] = {}
  for row in table(name).rows(): found.setdefault(row.mnemonic, []).append(f"{row.variant or 'one form'}: {_row(row)}")
  return {mnemonic: "\n".join(sorted(rows)) for mnemonic, rows in found.items()}


@cache
def ptx_forms(sm: int) -> Facts:
  """The instructions of PTX that a target has, by row: how many combinations of modifiers, and since which PTX."""
  out: Facts = {}
  for opcode, rows in forms.rows().items():
    for row in rows:
      if (row.sm != sm if row.own else row.sm > sm) or 0 < row.below <= sm: continue
      slots = " ".join("|".join(choices) + "?" * optional for optional, choices in row.slots)
      operands = f"{' '.join(row.results)} : {' '.join(row.sources)}"
      out[f"{opcode} {slots} ; {operands}"] = f"{row.size} forms, PTX {row.version[0]}.{row.version[1]}"
  return out


# ---- declarations

def _declared(module: str, listed: str) -> tuple[Any, ...]:
  found: tuple[Any, ...] = getattr(importlib.import_module(f"tinyhw.autogen.{module}"), listed)
  return found


def registers(arch: Arch) -> Facts:
  """Place and fields of each register that is declared."""
  if not arch.registers: return {}
  return {r.__name__: f"{r.OFFSET:#x} {_layout(r)}" for r in _declared(arch.registers, "REGISTERS")}


def packets(module: str) -> Facts:
  """Opcode, length and fields of each packet."""
  if not module: return {}
  return {p.__name__: f"{_opcode(p)}, {p.DWORDS} dwords {_layout(p)}" for p in _declared(module, "PACKETS")}


def _opcode(packet: Any) -> str:
  parts = ((part.lower(), getattr(packet, part, None)) for part in ("OP", "SUB_OP"))
  return ", ".join(f"{part} {value:#x}" for part, value in parts if value is not None)


def methods(number: int) -> Facts:
  """Place and fields of each method of a class."""
  return {m.__name__: f"{m.OFFSET:#x} {_layout(m)}" for m in _declared(f"nv_{number:04x}", "METHODS")}


def queue_data(arch: NvArch) -> Facts:
  """The fields of the newest queue meta data that the generation's driver makes."""
  wanted = f"QMDV{arch.qmd[0]:02d}_{arch.qmd[1]:02d}"
  found = next((q for q in _declared(f"nv_{arch.compute_class:04x}_qmd", "VERSIONS") if q.__name__ == wanted), None)
  return {} if found is None else {f.name: _bits(f) for f in found.FIELDS}


def limits(arch: Arch | NvArch) -> Facts:
  """What the record of a generation says, but for its names."""
  return {f.name: str(getattr(arch, f.name)) for f in fields(arch) if f.name not in NAMES}


# ---- generations

def of(name: str) -> Arch | NvArch:
  """A generation of either vendor. Raises what `lacking` says, or InvalidArgument with what is near."""
  if name in DECODED: return DECODED[name]
  if name in NV_ARCHES: return NV_ARCHES[name]
  known = (*DECODED, *NV_ARCHES)
  if name.startswith("gfx"): raise lacking(name, DECODED, "generation")
  raise InvalidArgument(f"unknown generation {name!r}", where="tinyhw gen diff", hint=offered(name, known))


def _amd(before: Arch, after: Arch) -> list[Change]:
  out = compared("instructions", instructions(before.table), instructions(after.table))
  out += compared("registers", registers(before), registers(after))
  for section, module in (("packets", "pm4"), ("copy packets", "sdma")):
    was, now = (f"{module}_{given}" if (given := getattr(a, module)) else "" for a in (before, after))
    out += compared(section, packets(was), packets(now))
  return out + compared("limits", limits(before), limits(after))


def _nvidia(before: NvArch, after: NvArch) -> list[Change]:
  out = compared("PTX", ptx_forms(before.sm), ptx_forms(after.sm))
  for section, kind in (("compute methods", "compute_class"), ("copy methods", "copy_class")):
    out += compared(section, methods(getattr(before, kind)), methods(getattr(after, kind)))
  out += compared("QMD", queue_data(before), queue_data(after))
  return out + compared("limits", limits(before), limits(after))


def changes(before: str, after: str) -> list[Change]:
  """What changed from one generation to another of the same vendor. Raises InvalidArgument for two vendors'."""
  a, b = of(before), of(after)
  if isinstance(a, Arch) and isinstance(b, Arch): return _amd(a, b)
  if isinstance(a, NvArch) and isinstance(b, NvArch): return _nvidia(a, b)
  raise InvalidArgument(f"{before} and {after} are of two vendors", where="tinyhw gen diff",
                        hint="compare gfx... with gfx..., or sm_... with sm_...")


# ---- text

def wrapped(names: Iterable[str], width: int = 96) -> list[str]:
  """Names in lines of at most so many letters."""
  lines, line = [], ""
  for name in names:
    if line and len(line) + len(name) + 2 > width:
      lines.append(line)
      line = ""
    line += (", " if line else "") + name
  return [*lines, line] if line else lines


_WORDS: Final[Mapping[str, Callable[[Change], str]]] = {
  "new": lambda c: f"{c.name}: {c.now}", "gone": lambda c: f"{c.name}: {c.was}",
  "changed": lambda c: f"{c.name}: {c.was} -> {c.now}"}


def lines(found: Sequence[Change], *, full: bool = False) -> list[str]:
  """For people: a heading a section, how many of each kind, and the names; limits, and with `full` all, with what they
  were and are."""
  out: list[str] = []
  for section in dict.fromkeys(c.section for c in found):
    mine = [c for c in found if c.section == section]
    counts = ", ".join(f"{n} {what}" for what in ("new", "gone", "changed") if (n := sum(c.what == what for c in mine)))
    out.append(f"{section}: {counts}")
    for what in ("new", "gone", "changed"):
      some = [c for c in mine if c.what == what]
      if not some: continue
      out.append(f"  {what}")
      if full or section == "limits" or what == "changed" and section == "QMD":
        out += [f"    {line}" for c in some for line in _WORDS[what](c).splitlines()]
      elif section == "PTX": out += [f"    {c.name}" for c in some]
      else: out += [f"    {line}" for line in wrapped(c.name for c in some)]
  return out


def document(before: str, after: str, found: Sequence[Change]) -> dict[str, Any]:
  """For programs: section -> what -> name -> [was, now], where one is not empty."""
  out: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
  for c in found:
    said = {key: value for key, value in (("was", c.was), ("now", c.now)) if value}
    out.setdefault(c.section, {}).setdefault(c.what, {})[c.name] = said
  return {"from": before, "to": after, "changes": out}
