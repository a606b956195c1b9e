"""Instructions as calls: one function for each shape of an instruction, its registers and numbers are arguments.

A program has many instructions and few shapes: all that decides an instruction's text but the numbers of its registers,
its literal and its offset. So the text of a program that is compiled for the first time is little more than calls,
which LLVM selects fast. Where registers of several operands overlap, how they do is part of the shape.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.jit.amdgcn import alu
from tinyhw.emulator.jit.amdgcn.fields import FIELDS
from tinyhw.emulator.jit.amdgcn.outline import Outlined
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import HEADER, Registers
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert
from tinyhw.emulator.values.ops import DTYPES, U64
from tinyhw.isa.amdgcn import Instruction, Operand, Row, table
from tinyhw.isa.amdgcn.codes import VCC_LO

MEMORY: Final = frozenset({"SMEM", "FLAT", "DS", "MUBUF", "MTBUF"})
_SLOT: Final = 64  # more registers than operands that overlap can span
_NUMBERS: Final = frozenset(name for _, name in FIELDS.values())
_PATTERNS: Final = frozenset({"ds_swizzle_b32"})  # whose offset is none
DONE, FAULTED, LEFT = range(3)  # LEFT: to the reference, with nothing done
Source = tuple[str, str]  # of an argument: a number's name, or an operand and the type as which it is read
Slots = tuple[list[int], list[int], list[tuple[int, int]]]


@dataclass
class Shape:
  """A function: what it is called with, the memory sites that it asks for, what it does to EXEC."""
  name: str
  accesses: bool  # it is for a memory instruction, and says what became of it: one of these
  sources: list[Source] = field(default_factory=list)
  sites: list[Site] = field(default_factory=list)
  writes_exec: bool = False
  leaves: bool = False  # it may be LEFT


@dataclass
class _Kind:
  """What a row decides: the fields that are part of a shape, and whether literals and constants are none.

  Registers that overlap count as different ones (`apart`) where all are read before the only operand is written.
  """
  row: Row
  fields: tuple[str, ...]
  literals: bool
  constants: bool
  apart: bool

  @staticmethod
  def of(row: Row) -> _Kind:
    meaning, bound = MEANINGS.get(row.mnemonic, row.table), binds.get(row.mnemonic, row.table) is not None
    memory = row.family in MEMORY
    registers = {name for name, _, kind, _, _, _ in row.operands if kind != "i"}
    numbers = set(_NUMBERS) if row.mnemonic not in _PATTERNS and (memory or not bound) else set()
    if row.deferred: numbers.add("imm")
    written = [name for name, role, _, _, _, _ in row.operands if role == "d"]
    several = meaning is None or any(t.startswith("s:") for t in meaning.results) or len(written) > 1
    plain = not memory and not bound
    halves = meaning is None or meaning.packed or "op_sel" in row.fields  # what constants are there depends on them
    return _Kind(row, tuple(n for n in row.fields if n not in registers and n not in numbers), plain,
                 plain and not halves, memory or plain and not several)


class Shapes:
  """The shapes of a program's instructions; `functions` has the text of each and of what they call."""

  def __init__(self, e: Emitter, vgprs: int, arch: Arch, functions: dict[str, str]) -> None:
    self.e, self.vgprs, self.arch, self.functions = e, vgprs, arch, functions
    self._known: dict[tuple[Any, ...], Shape | None] = {}
    self._kinds: dict[int, _Kind] = {}
    self._singles: dict[str, Row | None] = {}

  def find(self, i: Instruction, mode: int, full: bool) -> tuple[Shape, list[int]] | None:
    """The shape of an instruction and the numbers that it is called with; None for one that has to be in place."""
    k = self._kinds.get(id(i.row))
    if k is None: k = self._kinds[id(i.row)] = _Kind.of(i.row)
    key: list[Any] = [id(i.row), mode, full]
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
      elif _is_given(k, o): key.append("given")
      elif kind != "imm": key.append((kind, n))
    key += map(i.fields.get, k.fields)
    v, s = (_apart(vectors), _apart(scalars)) if k.apart else (_slots(vectors), _slots(scalars))
    if not k.apart: key += (*v[2], *s[2])
    place = tuple(key)
    if place not in self._known: self._known[place] = self._made(i, mode, full, k, v, s)
    shape = self._known[place]
    if shape is None: return None
    lanes = self.e.lanes
    arguments = [4 * (HEADER + n * lanes) for n in v[0]]
    arguments += [4 * n for n in s[0]]
    arguments += [_number(i, source) for source in shape.sources]
    return shape, arguments

  def halves(self, i: Instruction) -> list[Instruction] | None:
    """The two instructions of a dual one in an order that does the same; None where there is none.

    Each reads its registers before the other one writes where the second does not read what the first has written.
    """
    made: list[Instruction] = []
    for name, suffix in zip(i.mnemonic.split(" :: "), "XY"):
      row = self._single(name.replace("v_dual_", "v_"), i.isa)
      if row is None: return None
      operands = {}
      for to, one in (("vdst", "vdst" + suffix), ("src0", "src0" + suffix), ("src1", "vsrc1" + suffix), ("imm", "imm")):
        if one in i.operands and to in row.fields: operands[to] = replace(i.operands[one], name=to)
      made.append(Instruction(row, i.size, (), {"imm": i.fields["imm"]} if "imm" in row.fields else {}, operands))

    def reads(k: int) -> bool:
      n = made[1 - k].operands["vdst"].value
      return any(o.kind == "v" and o.value == n for name, o in made[k].operands.items() if name != "vdst")
    return made if not reads(1) else made[::-1] if not reads(0) else None

  def _single(self, mnemonic: str, isa: str) -> Row | None:
    """The row of half a dual instruction as an instruction of its own."""
    if mnemonic not in self._singles:
      meaning = MEANINGS.get(mnemonic, isa)
      rows = [row for row in table(isa).rows_of(mnemonic)
              if row.family in {"VOP1", "VOP2"} and row.variant in {"", "e32"}]
      plain = len(rows) == 1 and meaning is not None and not meaning.packed and binds.get(mnemonic, isa) is None
      self._singles[mnemonic] = rows[0] if plain else None
    return self._singles[mnemonic]

  def _made(self, i: Instruction, mode: int, full: bool, k: _Kind, v: Slots, s: Slots) -> Shape | None:
    e = Emitter(self.e.lanes)
    e.declared, e.constants, e.label = self.e.declared, self.e.constants, "entry"
    r = _Slotted(e, self.arch, [*v[1]], [*s[1]])
    r.full = full
    shape = Shape(f"@shape.{len(self._known)}", i.family in MEMORY)
    r.sources = shape.sources
    general = _general(i, k, iter(v[2]), iter(s[2]))

    def leave() -> None:
      if not shape.accesses: raise Untranslatable("a condition on numbers of registers")
      shape.leaves = True
      e.do(f"ret i32 {LEFT}")
    r.leave = leave
    try:
      if shape.accesses: _Accesses(e, shape.sites, self.functions).translate(r, general, 0)
      else: alu.translate(r, general, mode)
    except Untranslatable: return None
    r.flush()
    shape.writes_exec = r.exec_written
    self.functions[shape.name] = _text(e, shape, len(v[0]), len(s[0]), e.lanes)
    return shape


def _is_given(k: _Kind, o: Operand) -> bool:
  """Whether what an operand holds is an argument. That of a lane mask is none: it says that there are all, or none."""
  if o.kind == "lit": return k.literals
  if o.kind == "const": return k.constants and o.dwords > 0
  return o.name == "imm" and k.row.deferred


def _general(i: Instruction, k: _Kind, v: Iterator[tuple[int, int]], s: Iterator[tuple[int, int]]) -> Instruction:
  """The instruction with places in slots in the place of registers, and without its numbers."""
  operands: dict[str, Operand] = {}
  for name, o in i.operands.items():
    if o.kind == "v":
      slot, at = next(v)
      o = replace(o, value=slot * _SLOT + at)
    elif o.kind == "s" and o.value < VCC_LO:
      slot, at = next(s)
      o = replace(o, value=at - (slot + 1) * _SLOT)
    elif _is_given(k, o): o = replace(o, kind="given", value=0)
    operands[name] = o
  return replace(i, fields=_Fields({n: i.fields[n] for n in k.fields}), operands=operands, words=(), literal=None)


def _apart(ranges: Sequence[tuple[int, int]]) -> Slots:
  """As `_slots`, a group for each range."""
  return [a for a, _ in ranges], [b - a for a, b in ranges], [(n, 0) for n in range(len(ranges))]


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
  result, end = "void", ["  ret void"]
  if shape.accesses: result, end = "i32", [f"  ret i32 {DONE}", "fault:", f"  ret i32 {FAULTED}"]
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
