"""Where a driver keeps short-lived bytes: the kernel-argument ring, bounce buffers of copies, and freed buffers for
reuse.

All three know one thing of the device: a timeline value, and how to wait for it. They serve every driver that has
queues. None has a lock: who uses them holds the device's (`drive/queued.py` says which).
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from tinyhw.core.errors import InvalidArgument

Wait = Callable[[int], None]


def round_up(value: int, unit: int) -> int: return -(-value // unit) * unit


class KernargRing:
  """Kernel arguments, written by the host and read by kernels in flight.

  The memory is a ring of `segments` equal parts. A part remembers the last timeline value that uses it; the ring waits
  for that value before it writes into the part again. So a launch costs an addition, and a comparison when it enters
  the next part.
  """
  ALIGN = 64  # the HSA ABI asks for 16; a whole cache line keeps two launches apart

  def __init__(self, memory: memoryview, address: int, wait: Wait, segments: int = 8) -> None:
    self.memory, self.address, self._wait = memory, address, wait
    self._segment_bytes = len(memory) // segments // self.ALIGN * self.ALIGN
    if self._segment_bytes <= 0:
      raise InvalidArgument(f"{len(memory)} bytes do not make {segments} segments", where="KernargRing")
    self._last_use = [0] * segments
    self._segment, self.at, self.end = 0, 0, self._segment_bytes  # the part, and what is left of it

  def take(self, nbytes: int) -> int:
    """Offset of `nbytes` (rounded up to ALIGN) for the next submission; tell its value with `used_by`."""
    at = self.at
    stop = at + (nbytes + 63 & -64)
    if stop > self.end: at, stop = self._enter_next(nbytes)
    self.at = stop
    return at

  def busy_until(self, nbytes: int) -> int:
    """The timeline value that `take` would wait for, or 0."""
    if self.at + (nbytes + 63 & -64) <= self.end: return 0
    return self._last_use[(self._segment + 1) % len(self._last_use)]

  def used_by(self, value: int) -> None:
    """The bytes taken last are read until the timeline reaches `value`."""
    self._last_use[self._segment] = value

  def _enter_next(self, nbytes: int) -> tuple[int, int]:
    size = round_up(nbytes, self.ALIGN)
    if size > self._segment_bytes:
      raise InvalidArgument(
        f"{nbytes} bytes of kernel arguments exceed the {self._segment_bytes} that one launch may have"
      )
    self._segment = (self._segment + 1) % len(self._last_use)
    self._wait(self._last_use[self._segment])
    start = self._segment * self._segment_bytes
    self.end = start + self._segment_bytes
    return start, start + size


class BounceHalf:
  """One part of the bounce buffer, the timeline value after which it may be used again, and who still moves its bytes.
  """
  __slots__ = ("address", "busy_until", "memory", "moving")

  def __init__(self, memory: memoryview, address: int) -> None:
    self.memory, self.address, self.busy_until = memory, address, 0
    self.moving: Future[None] | None = None

  def moved(self) -> None:
    """Wait until nobody moves its bytes."""
    moving, self.moving = self.moving, None
    if moving is not None: moving.result()


class BounceBuffer:
  """Host memory that the copy engine reads and writes, in halves, or more parts than two: some are filled while others
  travel."""

  def __init__(self, memory: memoryview, address: int, wait: Wait, halves: int = 2) -> None:
    self.half_bytes, self.halves = len(memory) // halves, halves
    self._wait, self._next = wait, 0
    self._halves = [
      BounceHalf(memory[i * self.half_bytes : (i + 1) * self.half_bytes], address + i * self.half_bytes)
      for i in range(halves)
    ]

  def take(self) -> BounceHalf:
    """The half used longest ago, free to be filled."""
    half = self._halves[self._next]
    self._next = (self._next + 1) % len(self._halves)
    half.moved()
    self._wait(half.busy_until)
    return half

  def settle(self) -> None:
    """Wait until nobody moves bytes of any part."""
    for half in self._halves: half.moved()


T = TypeVar("T")


class FreeCache(Generic[T]):
  """Freed buffers kept for the next request of the same size, up to `limit` bytes; the oldest go first.

  A buffer may be taken while queued work still uses it: all work of one device runs in the order of its timeline, so
  the new owner's work comes after it.
  """

  def __init__(self, limit: int, release: Callable[[T], None]) -> None:
    self._limit, self._release = limit, release
    self._bytes = 0
    self._by_size: OrderedDict[int, list[T]] = OrderedDict()

  @property
  def nbytes(self) -> int: return self._bytes

  def take(self, size: int) -> T | None:
    held = self._by_size.get(size)
    if not held: return None
    buffer = held.pop()
    if not held: del self._by_size[size]
    self._bytes -= size
    return buffer

  def give(self, size: int, buffer: T) -> None:
    if size > self._limit: return self._release(buffer)
    self._by_size.setdefault(size, []).append(buffer)
    self._by_size.move_to_end(size)
    self._bytes += size
    while self._bytes > self._limit: self._drop_oldest()

  def _drop_oldest(self) -> None:
    size, held = next(iter(self._by_size.items()))
    self._release(held.pop(0))
    self._bytes -= size
    if not held: del self._by_size[size]

  def clear(self) -> None:
    while self._by_size: self._drop_oldest()
