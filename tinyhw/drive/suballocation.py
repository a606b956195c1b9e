"""Device memory that is lent: what was freed is kept for the next who asks, and no finalizer waits for the device."""
from __future__ import annotations

from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from threading import current_thread
from typing import Final, Generic, Protocol, Self, TypeVar

from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.drive.allocate import FreeCache
from tinyhw.drive.base import Allocation
from tinyhw.drive.queued import QueuedRuntime


class DeviceBuffer(Protocol):
  """Memory of a device that its kernel driver has given out: where it lies for the device, and its bytes."""
  @property
  def address(self) -> int: ...
  @property
  def size(self) -> int: ...


FREED: Final = 1024  # allocations that are remembered when they are gone


@dataclass(frozen=True, slots=True)
class Freed:
  """An allocation that was given back: by a thread of this name, when `submitted` was the timeline's last value."""
  address: int
  size: int
  name: str
  thread: str
  submitted: int


B = TypeVar("B", bound=DeviceBuffer)


class SuballocatingRuntime(QueuedRuntime, Generic[B]):
  """A runtime whose kernel driver gives out buffers. The driver's constructor calls `start_lending`."""
  used: dict[int, tuple[int, str]]  # of allocations by address: bytes that were asked for, and a name
  freed: deque[Freed]  # what was given back last, for reports

  def start_lending(self, kept_bytes: int) -> None:
    """Have no memory lent, and keep at most so many bytes of what is given back."""
    self.used, self.freed = {}, deque(maxlen=FREED)
    self._lent: set[B] = set()  # allocations that somebody has, or that were freed and are kept
    self._free: FreeCache[B] = FreeCache(kept_bytes, self._release)

  @abstractmethod
  def rounded(self, nbytes: int) -> int:
    """The bytes of whole pages that an allocation of so many takes."""

  @abstractmethod
  def take(self, size: int) -> B:
    """A buffer of the kernel driver's in this device's memory. Raises OutOfMemory."""

  @abstractmethod
  def sees(self, address: int) -> bool:
    """Whether the device's page tables have an address, as far as the driver knows."""

  @abstractmethod
  def give(self, buffer: B) -> None:
    """Give a buffer back to the kernel driver: nothing reaches it any more."""

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"alloc of {nbytes} bytes", where=self.name)
    size = self.rounded(nbytes)
    with self.memory:
      self.check_usable()
      buffer = self._free.take(size)
      if buffer is None:
        try: buffer = self.take(size)
        except OutOfMemory:
          if not self._free.nbytes: raise
          self._free.clear()
          buffer = self.take(size)
        self._lent.add(buffer)
      self.used[buffer.address] = nbytes, ""
    return Allocation(buffer.address, nbytes, (self, buffer))

  def rename(self, allocation: Allocation, name: str) -> None:
    """Let reports call an allocation by a name."""
    assert allocation.address is not None
    self.used[allocation.address] = allocation.size, name

  def free(self, allocation: Allocation) -> None:
    with self.memory:
      owner, buffer = self.owner(allocation)
      size, name = owner.used.pop(buffer.address, (buffer.size, ""))
      owner.freed.append(Freed(buffer.address, size, name, current_thread().name, self.timeline.last))
      allocation.address = allocation.handle = None
      if self._closed: return
      if owner is self: return self._free.give(buffer.size, buffer)
    with owner.memory: owner._free.give(buffer.size, buffer)

  def _release(self, buffer: B) -> None:
    """Memory leaves the page tables only when no queued work can touch it any more."""
    if self.lost is None: self.synchronize()
    self._lent.discard(buffer)
    self.give(buffer)

  def owner(self, allocation: Allocation) -> tuple[Self, B]:
    """The device of this driver that an allocation is of, and its buffer. Raises InvalidArgument for another's."""
    handle = allocation.handle
    if not isinstance(handle, tuple) or not isinstance(handle[0], type(self)):
      raise InvalidArgument("the allocation is not of this driver, or was freed", where=self.name)
    return handle
