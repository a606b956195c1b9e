"""Semaphores in memory as all engines write them: a payload of 4 or 8 bytes, or 16 bytes with a timestamp behind it.

Layout and reductions after `dev_pbdma.ref` of GA100, "Host Semaphore Methods": little-endian payload at byte 0, the
timer's nanoseconds at byte 8, written before the payload.
"""

from __future__ import annotations

from typing import Final

from tinyhw.core.memory import Access, AddressSpace
from tinyhw.mock.reductions import MEANINGS

# What a reduction is called by the methods of the host engine and of the copy engines.
REDUCTIONS: Final = {name: short for short in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")
                     for name in (short, f"I{short}")}
_SIGNED: Final = {"MIN": "SMIN", "MAX": "SMAX"}
_UNSIGNED: Final = {"MIN": "UMIN", "MAX": "UMAX"}


def alignment(wide: bool, timed: bool) -> int:
  """What a semaphore's address is a multiple of: as many bytes as are written."""
  return 16 if timed else 8 if wide else 4


def write(space: AddressSpace, address: int, payload: int, operation: str, *, wide: bool, signed: bool = False,
          time_ns: int | None = None) -> None:
  """Write a payload of 8 bytes (`wide`) or 4, or change what is there by an `operation` of REDUCTIONS, where one is
  named; with a time, 16 bytes. Raises PageFault."""
  width = 8 if wide else 4
  if time_ns is not None:
    space.prove(address, 16, Access.WRITE)
    space.store(address + 8, 8, time_ns & (1 << 64) - 1)
    if not operation: width, payload = 8, payload if wide else payload & 0xFFFF_FFFF
  if not operation: return space.store(address, width, payload)
  ones = (1 << 8 * width) - 1
  name = REDUCTIONS[operation]
  meaning = MEANINGS[(_SIGNED if signed else _UNSIGNED).get(name, name)]
  old = space.load(address, width, Access.ATOMIC)
  space.store(address, width, meaning(old, payload & ones, 0, ones), Access.ATOMIC)


def acquired(operation: str, seen: int, payload: int, wide: bool) -> bool:
  """Whether an acquire succeeds: `operation` is one of SEM_EXECUTE_OPERATION's."""
  width = 64 if wide else 32
  ones = (1 << width) - 1
  payload &= ones
  if operation == "ACQUIRE":
    return seen == payload
  if operation == "ACQ_STRICT_GEQ":
    return seen >= payload
  if operation == "ACQ_CIRC_GEQ":
    return not (seen - payload & ones) >> width - 1
  if operation == "ACQ_AND":
    return bool(seen & payload)
  assert operation == "ACQ_NOR"
  return bool(~(seen | payload) & ones)
