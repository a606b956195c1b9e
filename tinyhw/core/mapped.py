"""Which of this process's addresses a port has mapped, and the views of them that Python holds.

A view is a memoryview over a mapping. While one lives (or a slice, a cast or an array over it), its pages stay: what
the port unmaps meanwhile becomes private zeros, so that neither a read nor a store through the old view touches
anybody's memory, and goes for good with the last view. So no view leads to unmapped memory, whoever keeps it for how
long.

User memory that a client unmaps behind the mock's back is a GPU page fault.
"""
from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import threading
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tinyhw.core.errors import InvalidArgument

PAGE = 4096
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_MAP_FIXED = 0x10  # asm-generic/mman-common.h; the mmap module does not name these two
_MAP_NORESERVE = 0x4000
_MAP_FAILED = ctypes.c_void_p(-1).value


def _failed() -> OSError:
  code = ctypes.get_errno()
  return OSError(code, os.strerror(code))


def map_memory(fd: int, length: int, offset: int = 0, address: int | None = None, protection: int = 3) -> int:
  """mmap(2), shared, fixed when an address is given; anonymous without reserve for fd -1. Raises OSError."""
  flags = mmap.MAP_SHARED if fd >= 0 else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
  if address is not None: flags |= _MAP_FIXED
  at = _LIBC.mmap(address, length, protection, flags, fd, offset)
  if at is None or at == _MAP_FAILED: raise _failed()
  return int(at)


def unmap_memory(address: int, length: int) -> None:
  """munmap(2). Raises OSError."""
  if _LIBC.munmap(address, length): raise _failed()


def mapped_file(fd: int, size: int, offset: int = 0) -> Any:
  """A part of a file as a ctypes array of bytes. Its pages go with the last view of it; the descriptor is the caller's.
  """
  at = map_memory(fd, size, offset)
  array = (ctypes.c_uint8 * size).from_address(at)
  weakref.finalize(array, unmap_memory, at, size).atexit = False  # at the end of a process the kernel does it
  return array


def copy_on_write(fd: int, length: int, address: int, offset: int = 0) -> None:
  """Have a private copy of a file's pages in the place of a mapping of a part of it: a page is copied when it is first
  written, and what others write to the file until then shows. Raises OSError."""
  flags = mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE
  if _LIBC.mmap(address, length, 3, flags, fd, offset) != address: raise _failed()


def give_back(address: int, length: int) -> None:
  """Free the pages of a shared file below a mapping (MADV_REMOVE); they read as zeros afterwards. Raises OSError."""
  if _LIBC.madvise(address, length, mmap.MADV_REMOVE): raise _failed()


@dataclass(eq=False)
class Mapped:
  """A range of addresses that was mapped, or only reserved (not `usable`). `owner` is the port's."""
  start: int
  end: int
  usable: bool
  owner: Any = None


class Mappings:
  """The ranges of one port. `unmap(address, size)` is its munmap; `blank(address, size)` puts private zero pages in the
  place of what is there.

  Safe under threads. A view may go at any moment, also while this thread holds the lock (the garbage collector runs
  where it likes): then it is only noted, and whoever holds the lock sees to it.
  """

  def __init__(self, unmap: Callable[[int, int], None], blank: Callable[[int, int], None]) -> None:
    self._unmap, self._blank = unmap, blank
    self._starts: list[int] = []
    self._ranges: list[Mapped] = []
    self._views: dict[int, tuple[int, int]] = {}
    self._references: dict[int, weakref.ref[Any]] = {}
    self._waiting: list[tuple[int, int]] = []   # unmapped by the port, kept for views
    self._gone: deque[int] = deque()
    self._numbers = itertools.count()
    self._lock = threading.Lock()

  def __iter__(self) -> Iterator[Mapped]: return iter(list(self._ranges))

  def at(self, address: int) -> Mapped | None:
    """The range that holds an address."""
    i = bisect_right(self._starts, address) - 1
    return self._ranges[i] if i >= 0 and address < self._ranges[i].end else None

  def add(self, address: int, size: int, usable: bool = True, owner: Any = None) -> None:
    """The port has mapped whole pages; they replace what was there."""
    new = Mapped(address, address + -(-size // PAGE) * PAGE, usable, owner)
    with self._lock:
      self._remove(new.start, new.end)
      # What waited there is gone by now: the new pages must not go with an old view.
      self._waiting = [(lo, hi) for start, end in self._waiting
                       for lo, hi in ((start, min(end, new.start)), (max(start, new.end), end)) if lo < hi]
      i = bisect_right(self._starts, new.start)
      self._starts.insert(i, new.start)
      self._ranges.insert(i, new)
    self._sweep()

  def _remove(self, start: int, end: int) -> None:
    """Forget a range, splitting what lies across its ends."""
    i = max(bisect_right(self._starts, start) - 1, 0)
    while i < len(self._ranges) and self._ranges[i].start < end:
      old = self._ranges[i]
      if old.end <= start:
        i += 1
        continue
      parts = [Mapped(lo, hi, old.usable, old.owner) for lo, hi in ((old.start, start), (end, old.end)) if lo < hi]
      self._ranges[i:i + 1] = parts
      self._starts[i:i + 1] = [p.start for p in parts]
      i += len(parts)

  def view(self, address: int, size: int) -> memoryview:
    """The bytes of mapped memory, writable. Raises InvalidArgument unless the port has mapped all of it."""
    with self._lock:
      at = address
      while at < address + size:
        found = self.at(at)
        if found is None or not found.usable:
          raise InvalidArgument(f"{at:#x} is not mapped in this process", where="memory", hint="mmap it first")
        at = found.end
      array, number = (ctypes.c_uint8 * size).from_address(address), next(self._numbers)
      self._views[number] = address, address + size
      self._references[number] = weakref.ref(array, lambda _: self._went(number))
      return memoryview(array).cast("B")

  def unmap(self, address: int, size: int) -> None:
    """Unmap whole pages: now, or when the last view of them goes."""
    end = address + -(-size // PAGE) * PAGE
    with self._lock:
      self._remove(address, end)
      seen = [(max(lo, address), min(hi, end)) for lo, hi in self._views.values() if lo < end and address < hi]
      for lo, hi in seen: self._blank(lo & -PAGE, -(-hi // PAGE) * PAGE - (lo & -PAGE))
      if seen:
        self._waiting.append((address, end))
        _WITH_VIEWS.add(self)
      else: self._unmap(address, end - address)
    self._sweep()

  def _went(self, number: int) -> None:
    """A view is gone."""
    self._gone.append(number)
    self._sweep()

  def _sweep(self) -> None:
    """Unmap what waited for views that are gone."""
    while self._gone and self._lock.acquire(blocking=False):
      try:
        while self._gone:
          number = self._gone.popleft()
          del self._views[number], self._references[number]
        ready = [w for w in self._waiting if not any(lo < w[1] and w[0] < hi for lo, hi in self._views.values())]
        for start, end in ready:
          self._waiting.remove((start, end))
          self._unmap(start, end - start)
        if not self._waiting: _WITH_VIEWS.discard(self)
      finally: self._lock.release()


# Those that wait for views to go: they must live to be told, also when the port and the views go in one cycle.
_WITH_VIEWS: set[Mappings] = set()
