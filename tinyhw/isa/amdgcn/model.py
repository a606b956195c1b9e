"""What a row of an instruction table, a decoded instruction and its operands are."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tinyhw.core.lazy import cached_property
from tinyhw.isa.amdgcn.codes import CODES


@dataclass(frozen=True, slots=True)
class Operand:
  """One operand of a decoded instruction.

  `kind`: "v" vector register (accumulation registers from AGPR0 on), "s" scalar register or special (by its code),
  "const" inline constant (`value` is its code), "lit" 32-bit literal (`value` is it), "imm" a plain field. `dwords` 0
  marks a lane mask (one or two SGPRs by wave size).
  `half` is 0 or 1 for 16-bit operands that name half a vector register, else None.
  """
  name: str
  role: str
  kind: str
  value: int
  dwords: int
  type: str
  half: int | None = None


@dataclass(frozen=True, eq=False)
class Row:
  """One encoding of one instruction. `fields` maps a name to (position in the word, position in the field, width).

  A row is equal to itself alone: each table makes its rows once.
  """
  mnemonic: str
  variant: str
  family: str
  size: int
  mask: int
  value: int
  fields: Mapping[str, tuple[tuple[int, int, int], ...]]
  operands: tuple[tuple[str, str, str, int, str, str], ...]
  text: str
  uses: tuple[str, ...]
  defs: tuple[str, ...]
  loads: bool
  stores: bool
  isa: str
  table: str = ""  # the table that it is of: `isa`, or a later member of that generation
  fill: int = 0  # bits that no field has and that the decoder ignores, as an assembler sets them
  rows_of: Callable[[str], tuple[Row, ...]] = field(default=lambda mnemonic: (), repr=False)  # those of its table

  @cached_property
  def siblings(self) -> tuple[Row, ...]:
    """The rows of its mnemonic in its table, itself among them."""
    return self.rows_of(self.mnemonic)

  @cached_property
  def declared(self) -> int:
    """Mask of the bits that are fields."""
    return sum((1 << width) - 1 << at for pieces in self.fields.values() for at, _, width in pieces)

  @cached_property
  def ignored(self) -> int:
    """Mask of the bits that are neither fixed nor fields: the chip ignores them, and the assembler sets `fill`."""
    return ~(self.mask | self.declared) & (1 << 8 * self.size) - 1

  @cached_property
  def literal_operands(self) -> tuple[str, ...]:
    """Operands whose code 255 calls for a literal dword after the instruction."""
    if self.deferred: return ()
    if self.family.startswith("VOP3") and not CODES[self.isa].long_literals: return ()
    return tuple(n for n, _, kind, _, _, _ in self.operands
                 if kind in "sx" and n.startswith(("src", "ssrc")) and sum(w for _, _, w in self.fields[n]) >= 8)

  @cached_property
  def deferred(self) -> bool:
    """Whether the second dword is an operand of its own (fmaak and its kin), which sources of code 255 share."""
    return "imm" in self.fields and self.fields["imm"][0][2] == 32 and self.family != "SOPK"

  @cached_property
  def whole(self) -> tuple[tuple[str, int, int], ...]:
    """(name, position, mask) of the fields that lie in one place: nearly all, so they are taken out at once."""
    return tuple((n, p[0][0], (1 << p[0][2]) - 1) for n, p in self.fields.items() if len(p) == 1 and not p[0][1])

  @cached_property
  def split(self) -> tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]:
    """The fields in several pieces."""
    whole = {name for name, _, _ in self.whole}
    return tuple((n, p) for n, p in self.fields.items() if n not in whole)

  @cached_property
  def extended(self) -> frozenset[str]:
    """Integer sources in encodings whose modifiers are those of floats: LLVM calls neg sign extension there."""
    return frozenset(o[0] for o in self.operands if "e" in o[5])

  @cached_property
  def returns(self) -> bool:
    """Whether this is an atomic that gives the old value: its opcode holds the lowest bit of the cache policy."""
    return any(o[4].startswith("CPol_GLC") for o in self.operands) or (
      "_atomic_" in self.mnemonic and "$cpol" in self.text and any(o[1] == "d" for o in self.operands))


@dataclass(frozen=True, eq=False)
class Instruction:
  """A decoded instruction. `words` are its dwords with the literal, `size` is in bytes."""
  row: Row
  size: int
  words: tuple[int, ...]
  fields: Mapping[str, int]
  operands: Mapping[str, Operand]
  literal: int | None = None

  @property
  def mnemonic(self) -> str: return self.row.mnemonic

  @property
  def isa(self) -> str:
    """Name of the instruction table."""
    return self.row.isa

  @property
  def table(self) -> str:
    """What its meanings go by: `isa`, or a later member of that generation ("gfx950")."""
    return self.row.table or self.row.isa

  @property
  def family(self) -> str: return self.row.family

  @property
  def variant(self) -> str: return self.row.variant

  def get(self, name: str, default: int = 0) -> int:
    """A modifier field, or `default` where the encoding has none."""
    return self.fields.get(name, default)

  @property
  def spare(self) -> int:
    """The bits that the chip ignores and that are not as the assembler here sets them, as a mask; 0 for most words."""
    return (int.from_bytes(self.data[:self.row.size], "little") ^ self.row.fill) & self.row.ignored

  @property
  def data(self) -> bytes: return b"".join(w.to_bytes(4, "little") for w in self.words)

  def __str__(self) -> str:
    from tinyhw.isa.amdgcn.text import text  # what runs code seldom shows it
    return text(self)
