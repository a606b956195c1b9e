"""The state of some waves as the witness changes it: plain lists of integers."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tinyhw.isa.amdgcn import Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, INLINE_FLOATS, M0, NULL, VCC_LO
from tinyhw.tools.witness.softfloat import F16, F32, F64, Format
from tinyhw.tools.witness.table import Mode, format_of, width_of

M32: Final = (1 << 32) - 1
CODE: Final = 0x2000_0000_0000  # of programs: GPU addresses here are no addresses of a process of the host
MEMORY: Final = CODE + (1 << 36)  # where `State.memory` is mapped
MEMORY_SIZE: Final = 4 * 4096
LDS_SIZE: Final = 2048
# 1/(2*pi) in each format, from its binary expansion (RDNA3 ISA manual, table of source operands: 248).
_INVERSE_2PI: Final = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}
_OF_WIDTH: Final[dict[int, Format]] = {16: F16, 32: F32, 64: F64}


@dataclass(frozen=True)
class Loose:
  """A result that need not be exact: its format, first bit in the register, and what may differ.

  `allowed` has patterns that are right too. Any NaN stands for any other.
  """
  format: Format
  at: int = 0
  ulp: float = 0.0
  absolute: float = 0.0
  allowed: tuple[int, ...] = ()


@dataclass
class State:
  """Registers of `waves` waves of `lanes` lanes; `v[register][wave * lanes + lane]`, `s[register][wave]`.

  `loose` has results that need not be exact: (register, index) -> how; scalar register n is -1 - n. `jump` is where
  each wave goes on, None for the next instruction. `memory`, `lds` and `gds` are bytes.
  """
  lanes: int
  waves: int
  v: list[list[int]]
  s: list[list[int]]
  scc: list[bool]
  mode: Mode
  memory: bytearray = field(default_factory=bytearray)
  lds: bytearray = field(default_factory=bytearray)
  gds: bytearray = field(default_factory=bytearray)
  isa: str = "gfx11"
  table: str = ""  # a later member's where the instruction is one of it
  pc: int = 0
  loose: dict[tuple[int, int], list[Loose]] = field(default_factory=dict)
  jump: list[int | None] = field(default_factory=list)

  def pair(self, register: int, wave: int) -> int:
    """64 bits of an SGPR pair."""
    if register == NULL: return 0
    return self.s[register][wave] | self.s[register + 1][wave] << 32

  def set_pair(self, register: int, wave: int, value: int) -> None:
    if register == NULL: return
    self.s[register][wave], self.s[register + 1][wave] = value & M32, value >> 32 & M32

  def mask(self, register: int, wave: int) -> int:
    """A lane mask."""
    return self.pair(register, wave) if self.lanes == 64 else 0 if register == NULL else self.s[register][wave]

  def set_mask(self, register: int, wave: int, value: int) -> None:
    if register == NULL: return
    if self.lanes == 64: self.set_pair(register, wave, value)
    else: self.s[register][wave] = value & M32

  def exec(self, wave: int) -> int: return self.mask(EXEC_LO, wave)

  def vcc(self, wave: int) -> int: return self.mask(VCC_LO, wave)

  def m0(self, wave: int) -> int: return self.s[M0][wave]

  def active(self) -> list[tuple[int, int, int]]:
    """(wave, lane, index in a register) of each active lane."""
    return [(w, lane, w * self.lanes + lane) for w in range(self.waves) for lane in range(self.lanes)
            if self.exec(w) >> lane & 1]

  # ---- operands

  def bits(self, o: Operand, bits: int, wave: int, index: int, type_: str = "", selected: int = 0) -> int:
    """`bits` bits of an operand; `index` is the lane's place in vector registers, `selected` the half of a register."""
    half = o.half or selected
    if o.kind == "v":
      value = sum(self.v[o.value + k][index] << 32 * k for k in range(-(-bits // 32)))
      return (value >> 16 * half if bits == 16 else value) & (1 << bits) - 1
    if o.kind == "s":
      if o.value > 127: value = self.special(o.value, wave)
      elif o.value == NULL: value = 0
      else: value = sum(self.s[o.value + k][wave] << 32 * k for k in range(-(-bits // 32)))
      return (value >> 16 * half if bits == 16 else value) & (1 << bits) - 1
    if o.kind == "lit":
      if bits == 64 and type_ == "f64": return o.value << 32
      if bits == 64 and type_.startswith("i") and o.value >> 31: return o.value | M32 << 32
      return o.value & (1 << bits) - 1
    return constant(o.value, bits, o.type)

  def special(self, code: int, wave: int) -> int:
    """src_vccz, src_execz, src_scc."""
    return int({251: self.vcc(wave) == 0, 252: self.exec(wave) == 0, 253: self.scc[wave]}[code])

  def write(self, register: int, index: int, value: int) -> None: self.v[register][index] = value & M32


def constant(code: int, bits: int, type_: str = "") -> int:
  """An inline constant: integers -16 to 64, then floats (RDNA3 ISA manual, sections 4.1, 7.5.1 and 15).

  `type_` is the operand's: elements of 16 bits stand in the low half, as f16 or bf16, but pairs of integers get an f32.
  """
  if code <= 192: return code - 128
  if code <= 208: return 192 - code & (1 << bits) - 1
  pairs_of_integers = type_.startswith("v2") and "f" not in type_
  size = bits if bits == 64 or not type_ else 32 if pairs_of_integers or type_.endswith("32") else 16
  if type_.endswith("bf16"): return constant(code, 32) >> 16
  value = _INVERSE_2PI[size] if code == 248 else _OF_WIDTH[size].round(int(INLINE_FLOATS[code] * 2), -1)
  return value & (1 << bits) - 1


def typed(value: int, type_: str) -> int:
  """Bits as the Python value that a witness takes."""
  bits = width_of(type_)
  if type_.removeprefix("d:")[0] == "i" and value >> bits - 1 & 1: return value - (1 << bits)
  return value


def is_float(type_: str) -> bool: return format_of(type_) is not None
