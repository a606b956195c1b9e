"""What a client's way into a mock machine has of any vendor: mapped memory and waiting.

Memory is shared as with a kernel: `mmap` maps the machine's memfds at the client's addresses.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from tinyhw.core.mapped import Mapped, Mappings, map_memory, unmap_memory
from tinyhw.core.memory import PAGE, Region
from tinyhw.core.port import Protection
from tinyhw.mock.memory import Refused, blank_memory, page_align, reserve_memory
from tinyhw.mock.running import Running


class SharedPort(ABC):
  """Base of the ports. Calls may come from several threads; a mapping with an owner has doorbells."""

  def __init__(self, running: Running) -> None:
    self._running = running
    self._mappings = Mappings(unmap_memory, blank_memory)
    self._owned: list[Mapped] = []      # mappings with an owner, of which these are doorbells
    self._doorbells: list[Mapped] = []

  def pid(self) -> int:
    return os.getpid()

  def _enter(self) -> None:
    """Raises Refused in a forked child."""
    if self._running.forked: raise Refused(errno.EBADF, "the machine is of the parent process")

  # ---- memory

  @abstractmethod
  def _target(self, fd: int, length: int, offset: int, protection: Protection) -> tuple[Region, int, Any]:
    """What memory an offset of a file means, where in it, and whose doorbells it is."""

  @abstractmethod
  def _unmapped(self, start: int, end: int) -> None:
    """The client is about to unmap these addresses."""

  def reserve(self, size: int, align: int = PAGE) -> int:
    at = reserve_memory(size, align)
    self._remember(at, size, False)
    return at

  def mmap(
    self,
    fd: int,
    length: int,
    offset: int = 0,
    address: int | None = None,
    protection: Protection = Protection.READ | Protection.WRITE,
  ) -> int:
    """The offset of a device's file says what is meant; without a file it is anonymous memory."""
    if length <= 0 or offset % PAGE or (address is not None and address % PAGE):
      raise Refused(22, "mmap: not whole pages")
    with self._running.lock:
      running = self._running
      if running.watched: running.injected.call("mmap")
      if fd < 0:
        at = map_memory(-1, length, 0, address, int(protection))
        self._remember(at, length, bool(protection))
        return at
      self._enter()
      region, start, owner = self._target(fd, length, offset, protection)
      gone = running.watched and running.injected.of("sigbus") is not None
      at = (_map_nothing(length, address, int(protection)) if gone else
            map_memory(region.fd, length, region.base + start, address, int(protection)))
      self._remember(at, length, bool(protection), owner)
      return at

  def munmap(self, address: int, length: int) -> None:
    with self._running.lock:
      self._unmapped(address, address + page_align(length))
      self._mappings.unmap(address, length)
      self._find_doorbells(address, length)

  def _remember(self, address: int, size: int, usable: bool, owner: Any = None) -> None:
    self._mappings.add(address, size, usable, owner)
    self._find_doorbells(address, size, owner is not None)

  def _find_doorbells(self, address: int, size: int, new: bool = False) -> None:
    """Look anew where a change of these addresses has brought doorbells or reached some: others have none."""
    if new or any(m.start < address + size and address < m.end for m in self._owned):
      self._have_doorbells([m for m in self._mappings if m.owner is not None])

  def _have_doorbells(self, found: list[Mapped]) -> None:
    """These mappings have owners from now on."""
    self._owned = self._doorbells = found

  def _forget_mappings(self) -> None:
    """The client process ends: views of its memory that live show zeros."""
    for mapped in self._mappings:
      self._mappings.unmap(mapped.start, mapped.end - mapped.start)
    self._have_doorbells([])

  def memory(self, address: int, length: int) -> memoryview:
    """Raises InvalidArgument unless this port mapped all of it."""
    return self._mappings.view(address, length)

  # ---- time

  def fence(self) -> None:
    """Memory is one, and stores reach it as they are made."""
    return None

  def poll(self, fd: int, timeout_s: float) -> bool:
    """Raises Refused: no file of this machine tells of anything."""
    raise Refused(errno.EPERM, f"{fd} cannot be polled")

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    return self._running.run(done, timeout_s, self._running.other_threads)

  def now_ns(self) -> int:
    return self._running.clock.now_ns()


def _map_nothing(length: int, address: int | None, protection: int) -> int:
  """A mapping whose backing is gone: a file that ends before it, so that each access is a SIGBUS (mmap(2))."""
  file = os.memfd_create("gone")
  try: return map_memory(file, length, 0, address, protection)
  finally: os.close(file)
