"""Bit fields of a wave's and a program's registers by the vendor's names; autogen/sq.py has where they stand."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, overload

import numpy as np

from tinyhw.autogen import sq
from tinyhw.core.errors import LayoutError
from tinyhw.emulator.values.ops import U32, V
from tinyhw.emulator.values.ops import Array as Value


class Field(NamedTuple):
  """Bits [low, low + bits) of a register."""
  low: int
  bits: int

  @property
  def limit(self) -> int:
    """The largest value."""
    return (1 << self.bits) - 1

  @property
  def mask(self) -> int:
    """Its bits in the register."""
    return self.limit << self.low

  @overload
  def of(self, register: int) -> int: ...

  @overload
  def of(self, register: V) -> V: ...

  def of(self, register: Any) -> Any:
    """The value that it has in a register: a number, an array or a value of compiled code."""
    return register >> self.low & self.limit

  @overload
  def put(self, register: int, value: int) -> int: ...

  @overload
  def put(self, register: int, value: V) -> V: ...

  def put(self, register: int, value: Any) -> Any:
    """The register with another value in the field."""
    return register & ~self.mask | (value & self.limit) << self.low


def everywhere(table: Mapping[str, sq.Registers], register: str, field: str) -> Field:
  """A field that stands at one place in each generation that has it. Raises LayoutError for another."""
  found = {isa[register][field] for isa in table.values() if field in isa.get(register, {})}
  if len(found) != 1: raise LayoutError(f"it stands at {sorted(found) or 'no place'}", where=f"{register}.{field}")
  return Field(*found.pop())


def composed(isa: str, register: str, values: Mapping[str, Value | int]) -> Value:
  """A register of a wave from its fields' values, each cut to its field; what this generation lacks is left out."""
  layout = sq.WAVE[isa][register]
  out: Value = U32.type(0)
  for name, value in values.items():
    if name not in layout: continue
    field = Field(*layout[name])
    out = out | (np.asarray(value).astype(U32) & np.uint32(field.limit)) << np.uint32(field.low)
  return out


def limit(isa: str, register: str, field: str) -> int:
  """The largest value that a field of a program's register takes."""
  return Field(*sq.PROGRAM[isa][register][field]).limit


def program_field(isa: str, register: str, field: str, value: int) -> int:
  """What a COMPUTE_PGM register says in a field, 0 where the generation has no such field."""
  place = sq.PROGRAM[isa][register].get(field)
  return 0 if place is None else Field(*place).of(value)


def _program(register: str, field: str) -> Field: return everywhere(sq.PROGRAM, register, field)


# ---- COMPUTE_PGM_RSRC1 to 3
VGPRS: Final = _program("RSRC1", "VGPRS")  # in units of Arch.vgpr_unit, less one
SGPRS: Final = _program("RSRC1", "SGPRS")
FLOAT_MODE: Final = _program("RSRC1", "FLOAT_MODE")
USER_SGPR: Final = _program("RSRC2", "USER_SGPR")
GROUP_IDS: Final = tuple(_program("RSRC2", f"TGID_{axis}_EN") for axis in "XYZ")
TG_SIZE_EN: Final = _program("RSRC2", "TG_SIZE_EN")
ACCUM_OFFSET: Final = _program("RSRC3", "ACCUM_OFFSET")  # in units of 4 registers, less one
