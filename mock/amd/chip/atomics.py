"""Atomic operations of the command processor and the copy engines: TC_OP on one memory location.

Names and numbers are the vendor's TC_OP (soc21_enum.h); what an operation does follows its name as in the RDNA3 ISA
manual's memory atomics: old value in, new value out, all unsigned unless the name says S.
"""

from __future__ import annotations

from typing import Final

from tinyhw.autogen.pm4_gfx11 import TC_OP
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.core.memory import Access, AddressSpace
from tinyhw.mock.reductions import MEANINGS, Meaning


def _table() -> dict[int, tuple[str, int, bool, Meaning]]:
  """TC_OP number -> (name, bytes, returns the old value, meaning)."""
  rows: dict[int, tuple[str, int, bool, Meaning]] = {}
  for op in TC_OP:
    parts = op.name.split("_")
    if parts[:3] != ["TC", "OP", "ATOMIC"] or parts[3] not in MEANINGS:
      continue
    rows[op.value] = (op.name, int(parts[-1]) // 8, "RTN" in parts, MEANINGS[parts[3]])
  return rows


OPERATIONS: Final = _table()


def atomic(space: AddressSpace, operation: int, address: int, source: int, compare: int) -> tuple[int, int, bool]:
  """Do it. Returns the old value, the width in bytes and whether the operation returns it. The address is a multiple
  of the width."""
  row = OPERATIONS.get(operation)
  if row is None:
    known = operation in TC_OP._value2member_map_
    if known:
      raise Unsupported("atomic operation", TC_OP(operation).name)
    raise DecodeError(f"atomic operation {operation:#x} does not exist", words=(operation,))
  name, width, returns, meaning = row
  if address % width:
    raise DecodeError(f"{name} at {address:#x}: not a multiple of {width}", words=(operation,))
  ones = (1 << 8 * width) - 1
  old = space.load(address, width, Access.ATOMIC)
  space.store(address, width, meaning(old, source & ones, compare & ones, ones), Access.ATOMIC)
  return old, width, returns
