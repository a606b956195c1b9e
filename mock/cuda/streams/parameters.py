"""Where parameters of launches lie while they run: memory that GPUs read and never write, in slots that are used again.
"""

from __future__ import annotations

from typing import Final

from tinyhw.core.memory import PAGE, Access, AddressSpace, Allocator, Region

LIMIT: Final = 32764  # bytes of a kernel's parameters (PTX ISA, section 11.2.1)
SLOT: Final = -(-LIMIT // PAGE) * PAGE
SLOTS: Final = 32  # of a block of memory that is mapped at once


class Parameters:
  """Slots of LIMIT bytes. Mappings change only when more launches run at a time than ever before."""

  def __init__(self, space: AddressSpace, addresses: Allocator) -> None:
    self._space, self._addresses = space, addresses
    self._free: list[int] = []
    self._memory: dict[int, memoryview] = {}  # of each slot, by its address

  def put(self, data: bytes) -> int:
    """Parameters in memory; returns their address, which `free` gives back."""
    if not self._free:
      self._more()
    address = self._free.pop()
    self._memory[address][: len(data)] = data
    self._space.used[address] = max(len(data), 1), "parameters"
    return address

  def free(self, address: int) -> None:
    """The launch has ended: an address in there is nobody's again."""
    self._free.append(address)
    self._space.used.pop(address, None)

  def _more(self) -> None:
    region = Region("parameters", SLOT * SLOTS)
    start = self._addresses.alloc(SLOT * SLOTS)
    self._space.map(start, SLOT * SLOTS, region, 0, Access.READ)
    view = region.u8.data
    for n in reversed(range(SLOTS)):
      self._memory[start + n * SLOT] = view[n * SLOT : (n + 1) * SLOT]
      self._free.append(start + n * SLOT)
