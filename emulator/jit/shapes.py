"""Instructions as calls: one function for each shape of an instruction, its registers and numbers are arguments.

A program has many instructions and few shapes: all that decides an instruction's text but the numbers of its registers,
its literal and its offset. So the text of a program that is compiled for the first time is little more than calls,
which LLVM selects fast. Where registers of several operands overlap, how they do is part of the shape.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.registers import constant
from tinyhw.emulator.amdgcn.values import DTYPES, U64
from tinyhw.emulator.jit import alu
from tinyhw.emulator.jit.access import Site
from tinyhw.emulator.jit.fields import FIELDS
from tinyhw.emulator.jit.outline import Outlined
from tinyhw.emulator.jit.state import HEADER, Registers
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert
from tinyhw.isa.amdgcn import VCC_LO, Instruction, Operand, Row

MEMORY: Final = frozenset({"SMEM", "FLAT", "DS", "MUBUF", "MTBUF"})
_SLOT: Final = 64  # more registers than operands that overlap can span
_NUMBERS: Final = frozenset(name for _, name in FIELDS.values())
_PATTERNS: Final = frozenset({"ds_swizzle_b32"})  # whose offset is none
Source = tuple[str, str]  # of an argument: a number's name, or an operand and the type as which it is read
Slots = tuple[list[int], list[int], list[tuple[int, int]]]


@dataclass
class Shape:
  """A function: what it is called with, the memory sites that it asks for, what it does to EXEC."""
  name: str
  accesses: bool  # it says whether an access faulted
  sources: list[Source] = field(default_factory=list)
  sites: list[Site] = field(default_factory=list)
  writes_exec: bool = False


class Shapes:
  """The shapes of a program's instructions; `functions` has the text of each and of what they call."""

  def __init__(self, e: Emitter, vgprs: int, arch: Arch, functions: dict[str, str]) -> None:
    self.e, self.vgprs, self.arch, self.functions = e, vgprs, arch, functions
    self._known: dict[tuple[Any, ...], Shape | None] = {}
    self._rows: dict[int, tuple[Row, tuple[str, ...], bool]] = {}

  def find(self, i: Instruction, mode: int, full: bool) -> tuple[Shape, list[int]] | None:
    """The shape of an instruction and the numbers that it is called with; None for one that has to be in place."""
    row, names, given = self._of_row(i)
    key: list[Any] = [id(row), mode, full]
    vectors: list[tuple[int, int]] = []
    scalars: list[tuple[int, int]] = []
    for o in i.operands.values():
      kind, n = o.kind, o.value
      if kind == "v":
        end = n + (o.dwords or 1)
        if end > self.vgprs: return None
        vectors.append((n, end))
        key.append(o.half)
      elif kind == "s" and n < VCC_LO:
        end = n + (o.dwords or self.e.lanes // 32)
        if end > VCC_LO: return None
        scalars.append((n, end))
        key.append("s")
      elif kind == "imm" or kind == "lit" and given: key.append(kind)
      else: key.append((kind, n))
    key += map(i.fields.get, names)
    v, s = _slots(vectors), _slots(scalars)
    key += v[2]
    key += s[2]
    place = tuple(key)
    if place not in self._known: self._known[place] = self._made(i, mode, full, given, v, s)
    shape = self._known[place]
    if shape is None: return None
    lanes = self.e.lanes
    arguments = [4 * (HEADER + n * lanes) for n in v[0]]
    arguments += [4 * n for n in s[0]]
    arguments += [_number(i, source) for source in shape.sources]
    return shape, arguments

  def _of_row(self, i: Instruction) -> tuple[Row, tuple[str, ...], bool]:
    """The row, the fields that are part of a shape, and whether literals are not."""
    row = i.row
    kept = self._rows.get(id(row))
    if kept is None:
      registers = {name for name, _, kind, _, _, _ in row.operands if kind != "i"}
      literal = {"imm"} if row.deferred else set()
      numbers = set() if row.mnemonic in _PATTERNS or not literal and _bound(i) else _NUMBERS | literal
      names = tuple(n for n in row.fields if n not in registers and n not in numbers)
      kept = self._rows[id(row)] = row, names, row.family not in MEMORY and not _bound(i)
    return kept

  def _made(self, i: Instruction, mode: int, full: bool, given: bool, v: Slots, s: Slots) -> Shape | None:
    e = Emitter(self.e.lanes)
    e.declared, e.constants, e.label = self.e.declared, self.e.constants, "entry"
    r = _Slotted(e, self.arch, [*v[1]], [*s[1]])
    r.full = full
    shape = Shape(f"@shape.{len(self._known)}", i.family in MEMORY)
    r.sources = shape.sources
    general = self._general(i, given, iter(v[2]), iter(s[2]))
    try:
      if shape.accesses: _Accesses(e, shape.sites, self.functions).translate(r, general, 0)
      else: alu.translate(r, general, mode)
    except Untranslatable: return None
    r.flush()
    shape.writes_exec = r.exec_written
    self.functions[shape.name] = _text(e, shape, len(v[0]), len(s[0]), e.lanes)
    return shape

  def _general(self, i: Instruction, given: bool, v: Any, s: Any) -> Instruction:
    """The instruction with places in slots in the place of registers, and without its numbers."""
    operands: dict[str, Operand] = {}
    for name, o in i.operands.items():
      if o.kind == "v":
        slot, at = next(v)
        o = replace(o, value=slot * _SLOT + at)
      elif o.kind == "s" and o.value < VCC_LO:
        slot, at = next(s)
        o = replace(o, value=at - (slot + 1) * _SLOT)
      elif o.kind == "lit" and given or name == "imm" and i.row.deferred: o = replace(o, kind="given", value=0)
      operands[name] = o
    fields = _Fields({n: i.fields[n] for n in self._of_row(i)[1]})
    return replace(i, fields=fields, operands=operands, words=(), literal=None)


def _bound(i: Instruction) -> bool: return binds.get(i.mnemonic, i.isa) is not None


def _slots(ranges: Sequence[tuple[int, int]]) -> Slots:
  """First registers and sizes of the groups of ranges that overlap; of each range its group and where it starts in it.

  Groups are in the order of their first range.
  """
  if len(ranges) == 1: return [ranges[0][0]], [ranges[0][1] - ranges[0][0]], [(0, 0)]
  group: list[int] = [0] * len(ranges)
  spans: list[list[int]] = []
  for k in sorted(range(len(ranges)), key=ranges.__getitem__):
    start, end = ranges[k]
    if spans and start < spans[-1][1]: spans[-1][1] = max(spans[-1][1], end)
    else: spans.append([start, end])
    group[k] = len(spans) - 1
  order = list(dict.fromkeys(group))
  number = {g: n for n, g in enumerate(order)}
  return ([spans[g][0] for g in order], [spans[g][1] - spans[g][0] for g in order],
          [(number[g], start - spans[g][0]) for g, (start, _) in zip(group, ranges)])


def _number(i: Instruction, source: Source) -> int:
  """The argument that an instruction gives, as u64."""
  name, type_ = source
  if not type_: return FIELDS[name][0](i) & (1 << 64) - 1
  o = i.operands[name]
  if o.kind == "imm": return o.value
  return int(constant(o, type_).view(DTYPES[f"u{DTYPES[type_].itemsize * 8}"]))


def _text(e: Emitter, shape: Shape, vectors: int, scalars: int, lanes: int) -> str:
  parameters = ["ptr %state"]
  if shape.accesses: parameters.append("ptr %context, i32 %index")
  parameters += [f"i64 %{x}{k}" for x, n in (("v", vectors), ("s", scalars), ("n", len(shape.sources)))
                 for k in range(n)]
  body = [f"  %p{x}{k} = getelementptr i8, ptr %state, i64 %{x}{k}" for x, n in (("v", vectors), ("s", scalars))
          for k in range(n)]
  stack = {"lanes": f"alloca [{lanes} x i32], align 64", **e.stack}
  text = "\n".join(e.lines)
  allocated = [f"  %{name} = {what}" for name, what in stack.items() if f"%{name}" in text]
  result, end = ("i1", ["  ret i1 false", "fault:", "  ret i1 true"]) if shape.accesses else ("void", ["  ret void"])
  head = f"define hidden {result} {shape.name}({', '.join(parameters)}) #1 {{\nentry:"
  return "\n".join([head, *allocated, *body, text, *end, "}"])


class _Fields(dict[str, int]):
  """The fields of an instruction without those that are arguments: what asks for one of these has no shape."""

  def __missing__(self, name: str) -> int: raise Untranslatable(f"the field {name} of a shape")

  def get(self, name: str, default: Any = None) -> Any:
    if name in self: return self[name]
    if name in _NUMBERS or name == "imm": raise Untranslatable(f"the field {name} of a shape")
    return default


class _Slotted(Registers):
  """Registers by slots: a place in slot k is vector register k * _SLOT and following, or SGPR -(k + 1) * _SLOT."""

  sources: list[Source]

  def __init__(self, e: Emitter, arch: Arch, vectors: Sequence[int], scalars: Sequence[int]) -> None:
    super().__init__(e, len(vectors) * _SLOT, arch)
    self._vectors, self._scalars = vectors, scalars

  def number(self, i: Instruction, name: str, dtype: Any) -> Value: return self.given((name, ""), dtype)

  def given(self, source: Source, dtype: Any) -> Value:
    if source not in self.sources: self.sources.append(source)
    x = Value(self.e, f"%n{self.sources.index(source)}", U64, False)
    return convert(x, DTYPES[f"u{dtype.itemsize * 8}"]).view(dtype)

  def _vector_place(self, n: int) -> str:
    slot, at = divmod(n, _SLOT)
    if at >= self._vectors[slot]: raise Untranslatable("registers beyond an operand")
    return self.e.op(f"getelementptr i32, ptr %pv{slot}, i64 {at * self.lanes}") if at else f"%pv{slot}"

  def _pointer(self, dword: int) -> str:
    if dword >= 0: return super()._pointer(dword)
    slot = -dword - 1 >> 6
    at = dword + (slot + 1) * _SLOT
    if at >= self._scalars[slot]: raise Untranslatable("registers beyond an operand")
    return self.e.op(f"getelementptr i32, ptr %ps{slot}, i64 {at}") if at else f"%ps{slot}"


class _Accesses(Outlined):
  """The accesses of a shape: the number of its first site is an argument."""

  def __init__(self, e: Emitter, sites: list[Site], functions: dict[str, str]) -> None:
    super().__init__(e, "fault", functions)
    self.sites = sites

  def _number(self, site: Site) -> str:
    self.sites.append(site)
    return self.e.op(f"add i32 %index, {len(self.sites) - 1}") if len(self.sites) > 1 else "%index"
