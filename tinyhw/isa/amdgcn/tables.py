"""Bytes to instructions and back, from a generated table. Rows are parsed when first met: a cold process pays for what
it decodes.

A word means what the chip takes it for. Bits of unused sources are ignored
(`autogen/amdgcn_ignored.py`, asked of LLVM 22), so a word that an assembler fills otherwise is the
same instruction; `disasm` marks it. Two rows that match one word do not build a table.
"""
from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.core.lazy import cached_property
from tinyhw.isa.amdgcn.codes import (
  AGPR0,
  CODES,
  EXEC_HI,
  EXEC_LO,
  INLINE_FLOATS,
  LDS_DIRECT,
  LITERAL,
  M0,
  NULL,
  REGISTERS_ONLY,
  SDWA_SELECTIONS,
  TTMP0,
  VCC_LO,
  VGPR0,
)
from tinyhw.isa.amdgcn.images import IMAGES, data_dwords, groups
from tinyhw.isa.amdgcn.model import Instruction, Operand, Row

LONGEST: Final = 16  # bytes of an encoding
# Tables of other members of a generation than its first processor here, which are in the generation's module.
MEMBERS: Final = {"gfx1150": "gfx11", "gfx90a": "gfx9", "gfx950": "gfx9"}
EARLIER: Final = {"gfx90a"}  # members that came before it


@dataclass
class Table:
  """The instruction table of a generation, or of a later `member` of it, which has instructions of its own.

  `name` is the generation's either way: its rules for operands, names and meanings hold for the member too.
  """
  name: str
  module: Any
  member: str = ""
  _parsed: dict[tuple[str, int], tuple[Row, ...]] = field(default_factory=dict)

  def __post_init__(self) -> None:
    self._families: list[str | None] = [None] * 512
    for family, prefix in sorted(self.module.FAMILIES, key=lambda f: len(f[1])):
      if len(prefix) > 9: raise EncodeError(f"{family}: prefix {prefix} is longer than the index")
      first = int(prefix.ljust(9, "0"), 2)
      for i in range(first, first + (1 << 9 - len(prefix))): self._families[i] = family

  @property
  def key(self) -> str:
    """What `table` knows it by."""
    return self.member or self.name

  @cached_property
  def opcodes(self) -> dict[str, tuple[int, dict[int, str]]]:
    """Family -> (mask of the opcode's bits in the first dword, opcode -> the text of its rows)."""
    if not self.member: return dict(self.module.ROWS)
    later = self.module.LATER[self.member]
    return {family: (mask, {k: v for k, v in (texts | later.get(family, {})).items() if v})
            for family, (mask, texts) in self.module.ROWS.items()}

  def rows(self) -> Iterator[Row]:
    """Every row of the table."""
    for family, (_, opcodes) in self.opcodes.items():
      for opcode in opcodes: yield from self._candidates(family, opcode)

  @cached_property
  def mnemonics(self) -> frozenset[str]:
    """Every vendor mnemonic, without encoding suffixes; the two halves of a dual instruction count as one name each."""
    return frozenset(r.mnemonic for r in self.rows())

  @cached_property
  def by_mnemonic(self) -> dict[str, tuple[Row, ...]]:
    """Rows of each mnemonic."""
    out: dict[str, list[Row]] = {}
    for row in self.rows(): out.setdefault(row.mnemonic, []).append(row)
    return {k: tuple(v) for k, v in out.items()}

  @cached_property
  def _places(self) -> dict[str, list[tuple[str, int]]]:
    """(family, opcode) of the rows of each mnemonic, from the table's text: nothing is parsed."""
    out: dict[str, list[tuple[str, int]]] = {}
    for family, (_, opcodes) in self.opcodes.items():
      for opcode, text in opcodes.items():
        for name in dict.fromkeys(line.partition(";")[0] for line in text.split("\n")):
          out.setdefault(name, []).append((family, opcode))
    return out

  def rows_of(self, mnemonic: str) -> tuple[Row, ...]:
    """The rows of one mnemonic, as `by_mnemonic` has them; only these are parsed."""
    found = (row for place in self._places.get(mnemonic, ()) for row in self._candidates(*place))
    return tuple(row for row in found if row.mnemonic == mnemonic)

  def _candidates(self, family: str, opcode: int) -> tuple[Row, ...]:
    key = family, opcode
    rows = self._parsed.get(key)
    if rows is None:
      text = self.opcodes[family][1].get(opcode)
      rows = self._parsed[key] = tuple(self._row(family, line) for line in text.split("\n")) if text else ()
    return rows

  def _row(self, family: str, line: str) -> Row:
    mnemonic, variant, size, mask, value, layout, operands, template, effects = line.split(";")
    fields = {}
    for item in self.module.FIELDS[int(layout)].split():
      name, pieces = item.split("=")
      fields[name] = tuple(tuple(map(int, p.split(":"))) for p in pieces.split(","))
    specs = []
    for item in self.module.OPERANDS[int(operands)].split():
      name, role, kind, dwords, kind_type, half = item.split(":")
      specs.append((name, role, kind, int(dwords), kind_type, half))
    uses, defs, memory = self.module.EFFECTS[int(effects)].split("|")
    fixed, bits = int(mask, 16), int(value, 16)
    return Row(mnemonic, variant, family, int(size), fixed, bits & fixed, fields, tuple(specs),  # type: ignore[arg-type]  # threes
               self.module.TEXTS[int(template)], tuple(uses.split()), tuple(defs.split()), "L" in memory, "S" in memory,
               self.name, self.key, bits & ~fixed, self.rows_of)

  def decode(self, code: bytes | memoryview, at: int = 0, *, where: int = 0) -> Instruction:
    """The instruction at offset `at`. `where` is the address that errors name. Raises DecodeError for unknown words."""
    left = len(code) - at
    if left < 4: raise DecodeError(f"{left} bytes are left where an instruction is expected", where=hex(where))
    first = int.from_bytes(code[at:at + 4], "little")
    family = self._families[first >> 23]
    word = int.from_bytes(code[at:at + LONGEST], "little")
    if family is not None:
      opmask = self.opcodes[family][0]
      for row in self._candidates(family, first & opmask):
        if word & row.mask == row.value and row.size <= left: return self._decoded(row, word, code, at, where)
    shown = tuple(int.from_bytes(code[at + i:at + i + 4], "little") for i in range(0, min(left, 8), 4))
    raise DecodeError(f"no {self.key} instruction{self._elsewhere(word)}", where=hex(where), words=shown)

  def _elsewhere(self, word: int) -> str:
    """Which later member of the generation has the word, for the error of one that has not."""
    if self.member: return ""
    for member in self.module.LATER:
      who = f"{member} has" if member in EARLIER else f"{member} and later have"
      try: return f" ({who} {table(member).decode(word.to_bytes(LONGEST, 'little')).mnemonic})"
      except DecodeError: continue
    return ""

  def _decoded(self, row: Row, word: int, code: bytes | memoryview, at: int, where: int) -> Instruction:
    fields = {name: word >> position & mask for name, position, mask in row.whole}
    for name, pieces in row.split:
      value = 0
      for position, bit, width in pieces: value |= (word >> position & (1 << width) - 1) << bit
      fields[name] = value
    if row.variant == "sdwa" and (fields.get("dst_unused") == 3 or 7 in map(fields.get, SDWA_SELECTIONS)):
      raise DecodeError("a reserved byte or word selection", where=hex(where))
    if "dpp_ctrl" in fields: self._check_lanes(row, fields["dpp_ctrl"], where)
    size, literal = row.size, None
    if any(fields[n] == LITERAL for n in row.literal_operands):
      if at + size + 4 > len(code): raise DecodeError("the literal of an instruction is missing", where=hex(where))
      literal = int.from_bytes(code[at + size:at + size + 4], "little")
      size += 4
    if row.deferred: literal = fields["imm"]
    operands = {}
    op_sel = fields.get("op_sel", 0)
    for name, role, kind, dwords, kind_type, half in row.operands:
      if name == "cpol" and row.returns: fields[name] |= 1  # atomics that return: the bit is part of the opcode
      value = fields[name]
      if kind == "i": operand = Operand(name, role, "imm", value, dwords, kind_type)
      elif kind == "v" or kind in "xp" and value >= VGPR0:
        value &= 0xFF
        if value + dwords > 256: raise DecodeError(f"operand {name} passes the last register", where=hex(where))
        which = None
        if name == "vdstY": value |= ~fields["vdstX"] & 1  # the Y half writes the other parity
        if half[:1] == "h": which, value = value >> 7, value & 0x7F
        elif half[:1] == "o": which = op_sel >> (3 if role == "d" else int(name[-1])) & 1
        operand = Operand(name, role, "v", value, dwords, kind_type, which)
      elif kind in "sx":
        operand = self._scalar(name, role, value, dwords, kind_type, literal, where, kind == "x")
        if operand.kind != "s" and kind == "s" and kind_type in REGISTERS_ONLY:
          raise DecodeError(f"operand {name} is no register", where=hex(where))
        if row.family == "SMEM" and name in {"sdst", "sdata"} and operand.value in {M0, EXEC_LO, EXEC_HI}:
          raise DecodeError(f"operand {name} is M0 or EXEC, which scalar memory does not reach", where=hex(where))
      else: operand = self._other(name, role, kind, value, dwords, kind_type, fields, where)
      operands[name] = operand
    words = tuple(int.from_bytes(code[i:i + 4], "little") for i in range(at, at + size, 4))
    if row.family in IMAGES and "dmask" in fields: self._size_image(row, fields, operands, where)
    return Instruction(row, size, words, fields, operands, None if row.deferred else literal)

  def _check_lanes(self, row: Row, pattern: int, where: int) -> None:
    """Refuse reserved lane patterns."""
    codes = CODES[self.name]
    if pattern >= 0x100 and pattern not in codes.lane_patterns:
      raise DecodeError(f"the reserved lane pattern {pattern:#x}", where=hex(where))
    few = codes.long_patterns
    if few is not None and pattern not in few and any(o[3] == 2 for o in row.operands):
      raise DecodeError(f"the lane pattern {pattern:#x} of an instruction on 64 bits", where=hex(where))

  def _size_image(self, row: Row, fields: Mapping[str, int], operands: dict[str, Operand], where: int) -> None:
    """Give data and addresses the registers that the other fields say; addresses that are not used go."""
    slots = [n for n in operands if n.startswith("vaddr")]
    sizes = groups(row.mnemonic, fields, len(slots))
    for name, dwords in zip(["vdata", *slots], [data_dwords(row.mnemonic, fields), *sizes], strict=False):
      if operands[name].value + dwords > 256:
        raise DecodeError(f"operand {name} passes the last register", where=hex(where))
      operands[name] = replace(operands[name], dwords=dwords)
    for name in slots[len(sizes):]: del operands[name]

  def _other(self, name: str, role: str, kind: str, value: int, dwords: int, kind_type: str, fields: Mapping[str, int],
            where: int) -> Operand:
    """Operands that are accumulation registers (a) or of either kind (g), the third source of gfx9's matrix
    instructions (y, z: a register or a constant), SDWA's operands (w, c), vector registers alone (p)."""
    if kind == "c":  # VCC, unless bit 7 says that a register is given
      return self._scalar(name, role, value & 0x7F if value & 0x80 else VCC_LO, dwords, kind_type, None, where)
    if kind == "w":
      if value < VGPR0: return Operand(name, role, "v", value, dwords, kind_type)
      return self._scalar(name, role, value - VGPR0, dwords, kind_type, None, where)
    if kind in "yz" and value < VGPR0:
      found = self._scalar(name, role, value, dwords, kind_type, None, where)
      if found.kind != "s" or found.value > EXEC_HI: return found
      raise DecodeError(f"operand {name} is a scalar register", where=hex(where))
    if name.startswith("src") and not value & VGPR0:
      raise DecodeError(f"operand {name} is no vector register", where=hex(where))
    if kind == "p": raise DecodeError(f"operand {name} is no vector register", where=hex(where))
    accumulator = value >> 9 or fields.get("acc", 0) if kind == "g" else kind != "z"
    value &= 0xFF
    if value + dwords > AGPR0: raise DecodeError(f"operand {name} passes the last register", where=hex(where))
    return Operand(name, role, "v", value | (AGPR0 if accumulator else 0), dwords, kind_type)

  def _scalar(self, name: str, role: str, code: int, dwords: int, kind_type: str, literal: int | None,
              where: int, vector: bool = True) -> Operand:
    codes = CODES[self.name]
    code = codes.canonical.get(code, code)
    if code in codes.single and (dwords or codes.mask_dwords) > 1:
      raise DecodeError(f"operand {name} starts no group", where=hex(where))
    if dwords > 2 and code <= EXEC_HI and code != NULL:
      # groups start at a multiple of four, and end with their file of registers
      first, end = (0, codes.sgprs) if code < codes.sgprs else (TTMP0, NULL)
      if code < first or code in codes.pairs or first + (code - first & -4) + dwords > end:
        raise DecodeError(f"operand {name} passes the last register", where=hex(where))
    if code <= EXEC_HI or code in codes.specials:
      if code != LDS_DIRECT or vector and dwords < 2: return Operand(name, role, "s", code, dwords, kind_type)
    if code == LITERAL and literal is not None: return Operand(name, role, "lit", literal, dwords, kind_type)
    if 128 <= code <= 208 or code in INLINE_FLOATS: return Operand(name, role, "const", code, dwords, kind_type)
    raise DecodeError(f"operand {name} has the reserved code {code}", where=hex(where))

  def encode(self, row: Row, values: Mapping[str, int], literal: int | None = None) -> bytes:
    """Bytes of a row from raw field values. Raises EncodeError for an unknown field or a value that does not fit."""
    word = row.value | row.fill
    for name, value in values.items():
      pieces = row.fields.get(name)
      if pieces is None: raise EncodeError(f"{row.mnemonic} has no field {name}")
      left = value
      for position, bit, width in pieces:
        part = (1 << width) - 1
        placed = (value >> bit & part) << position
        if (placed ^ row.value) & row.mask & part << position:  # a format that says how many registers others are
          raise EncodeError(f"{row.mnemonic}: {name} {value} goes with other operands")
        word |= placed
        left &= ~(part << bit)
      if left: raise EncodeError(f"{row.mnemonic}.{name}: {value:#x} does not fit its field")
    wanted = any(values.get(n) == LITERAL for n in row.literal_operands)
    if wanted != (literal is not None): raise EncodeError(f"{row.mnemonic}: a literal goes with operand code {LITERAL}")
    tail = b"" if literal is None else literal.to_bytes(4, "little")
    return word.to_bytes(row.size, "little") + tail


@cache
def table(name: str) -> Table:
  """The instruction table of a generation ("gfx11") or a later member ("gfx1150"), built once; it is never changed."""
  generation = MEMBERS.get(name, name)
  module = importlib.import_module(f"tinyhw.autogen.amdgcn_{generation}")
  return Table(generation, module, name if name != generation else "")
