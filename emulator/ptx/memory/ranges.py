"""Bytes that one thread names by an address and a length: of global memory, or of a block's shared memory."""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.emulator.observe import Copy
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.values.ops import I64
from tinyhw.emulator.values.ops import Array as Value

_LOW: Final = (1 << spaces.RANK) - 1


class Thread:
  """One thread of a group, for memory that it names itself."""

  def __init__(self, group: Warps, row: int, lane: int) -> None:
    self.group, self.row, self.lane = group, row, lane
    self.cohort = group.cohort
    self.how = ""  # when what it copies is done: see `observe.Copy`
    self.combines = False  # whether it combines what it reads and writes next

  def fault(self, text: str, address: int | None = None) -> MachineFault:
    """An error of this thread."""
    return MachineFault(text, address=address, lane=self.row * LANES + self.lane)

  def block(self, rank: int) -> int:
    """A block of its cluster, counted in the cohort. Raises MachineFault where there is none."""
    slot = int(spaces.block_of(self.group, I64.type(self.group.workgroups[self.row]), I64.type(rank + 1)))
    if slot < 0: raise self.fault(f"block {rank} of the cluster, which there is not, or which has ended")
    return slot

  def shared(self, space: str, address: int) -> tuple[int, int]:
    """(block, offset in its shared memory) of an address that is in shared memory."""
    if space == spaces.GENERIC: address -= spaces.SHARED_WINDOW
    rank = address >> spaces.RANK
    own = int(self.group.workgroups[self.row])
    return own if not rank else self.block(rank - 1), address & _LOW

  def span(self, block: int, offset: int, size: int, what: str) -> Value:
    """Bytes of a block's shared memory, as they lie there."""
    total = self.cohort.shared.total
    if offset + size > total:
      raise self.fault(f"{what} of {size:,} bytes at {offset:#x} of shared memory, which has {total:,} bytes", offset)
    start = block * self.cohort.lds_size + offset
    return self.cohort.lds[start:start + size]

  def show(self, segment: str, kind: str, addresses: Value | int, width: int, block: int = 0,
           how: str | None = None, data: Value | None = None) -> None:
    """Show observers bytes that the thread moves; `data` is what it stores, which nobody knows where it combines."""
    observer = self.cohort.observer
    if observer is None: return
    pc, i = self.cohort.seen
    at = np.atleast_1d(np.asarray(addresses, np.uint64))
    if not at.size: return
    observer.copied(self.group, pc, i, Copy(self.row, self.lane, segment, kind, at, width, block,
                                            self.how if how is None else how, self.combines,
                                            None if self.combines or data is None else data.reshape(-1).view(np.uint8)))

  def near(self, space: str, address: int) -> str:
    """The space of an address: "shared" or "global", also where it is generic."""
    if space != spaces.GENERIC: return space
    inside = spaces.SHARED_WINDOW <= address < spaces.SHARED_WINDOW + spaces.WINDOW
    return "shared" if inside else "global"

  def read(self, space: str, address: int, size: int) -> Value:
    """Bytes as u8."""
    if self.near(space, address) == "shared":
      block, offset = self.shared(space, address)
      self.show("lds", "load", offset, size, block)
      return self.span(block, offset, size, "read").copy()
    self.show("global", "load", address, size)
    try: return np.frombuffer(self.cohort.space.read(address, size), np.uint8)
    except PageFault as fault: raise self._mine(fault) from None

  def write(self, space: str, address: int, data: Value) -> None:
    """Store bytes."""
    self.cohort.changes.count += 1
    if self.near(space, address) == "shared":
      block, offset = self.shared(space, address)
      self.show("lds", "store", offset, data.size, block, data=data)
      self.span(block, offset, data.size, "write")[:] = data
      return
    self.show("global", "store", address, data.size, data=data)
    try: self.cohort.space.write(address, data.tobytes())
    except PageFault as fault: raise self._mine(fault) from None

  def gather(self, addresses: Value, width: int) -> Value:
    """Elements of global memory."""
    self.show("global", "load", addresses, width)
    try: return self.cohort.space.gather(addresses, width)
    except PageFault as fault: raise self._mine(fault) from None

  def scatter(self, addresses: Value, values: Value) -> None:
    """Store elements to global memory."""
    self.cohort.changes.count += 1
    self.show("global", "store", addresses, values.dtype.itemsize, data=values)
    try: self.cohort.space.scatter(addresses, values)
    except PageFault as fault: raise self._mine(fault) from None

  def _mine(self, fault: PageFault) -> PageFault:
    fault.lane = self.row * LANES + self.lane
    return fault


def threads(group: Warps) -> list[Thread]:
  """The group's threads, the lowest first."""
  return [Thread(group, row, lane) for row, lane in np.argwhere(group.lanes).tolist()]
