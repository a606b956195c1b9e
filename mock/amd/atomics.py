"""Atomic operations of the command processor and the copy engines: TC_OP on one memory location.

Names and numbers are the vendor's TC_OP (soc21_enum.h); what an operation does follows its name as in the RDNA3 ISA
manual's memory atomics: old value in, new value out, all unsigned unless the name says S.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.autogen.pm4_gfx11 import TC_OP
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.core.memory import Access, AddressSpace

Meaning = Callable[[int, int, int, int], int]  # old value, source, compare value, all ones of the width -> new value


def _signed(value: int, ones: int) -> int:
  return value - ones - 1 if value > ones >> 1 else value


_MEANINGS: Final[dict[str, Meaning]] = {
  "SWAP": lambda old, source, compare, ones: source,
  "CMPSWAP": lambda old, source, compare, ones: source if old == compare else old,
  "ADD": lambda old, source, compare, ones: old + source & ones,
  "SUB": lambda old, source, compare, ones: old - source & ones,
  "SMIN": lambda old, source, compare, ones: source if _signed(source, ones) < _signed(old, ones) else old,
  "UMIN": lambda old, source, compare, ones: min(old, source),
  "SMAX": lambda old, source, compare, ones: source if _signed(source, ones) > _signed(old, ones) else old,
  "UMAX": lambda old, source, compare, ones: max(old, source),
  "AND": lambda old, source, compare, ones: old & source,
  "OR": lambda old, source, compare, ones: old | source,
  "XOR": lambda old, source, compare, ones: old ^ source,
  "INC": lambda old, source, compare, ones: 0 if old >= source else old + 1,
  "DEC": lambda old, source, compare, ones: source if old == 0 or old > source else old - 1,
}


def _table() -> dict[int, tuple[str, int, bool, Meaning]]:
  """TC_OP number -> (name, bytes, returns the old value, meaning)."""
  rows: dict[int, tuple[str, int, bool, Meaning]] = {}
  for op in TC_OP:
    parts = op.name.split("_")
    if parts[:3] != ["TC", "OP", "ATOMIC"] or parts[3] not in _MEANINGS:
      continue
    rows[op.value] = (op.name, int(parts[-1]) // 8, "RTN" in parts, _MEANINGS[parts[3]])
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
