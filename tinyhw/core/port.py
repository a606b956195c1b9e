"""The one seam between a driver and a machine: what a driver asks of the operating system and of a mapped device.

A driver is handed a Port. `LinuxPort` reaches the kernel, the mock's port a machine in this process; neither side knows
which. Errors of the kernel come as OSError with the errno that the kernel gives.

A driver reads sysfs, calls ioctls and rings doorbells through its port. The mock sees ring buffers
in shared memory, as the chip does. Driver and mock share generated facts and nothing else.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntFlag
from typing import Any, Protocol, runtime_checkable


class Protection(IntFlag):
  """PROT_* of mmap(2)."""
  NONE = 0
  READ = 1
  WRITE = 2


@runtime_checkable
class Port(Protocol):
  """See the module. Addresses are those of the client process; sizes are bytes."""

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    """Open a device node; returns a file descriptor."""

  def close(self, fd: int) -> None: ...

  def read(self, path: str) -> bytes:
    """The whole of a sysfs or procfs file."""

  def listdir(self, path: str) -> list[str]:
    """Names in a sysfs folder, sorted."""

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    """`argument` is a ctypes object that the call may change in place."""

  def reserve(self, size: int, align: int = 4096) -> int:
    """Reserve addresses without memory (PROT_NONE), for a later `mmap` at a fixed address."""

  def mmap(self, fd: int, length: int, offset: int = 0, address: int | None = None,
           protection: Protection = Protection.READ | Protection.WRITE) -> int:
    """MAP_SHARED mapping of a file (fd -1: anonymous memory); at exactly `address` (MAP_FIXED) when given.

    The port owns it. A mock's unmaps it when its client ends: who has unmapped it otherwise loses what came there.
    """

  def munmap(self, address: int, length: int) -> None: ...

  def memory(self, address: int, length: int) -> memoryview:
    """The CPU's writable view of mapped memory, as bytes."""

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    """A store of 8 (or 4) bytes to a doorbell register, after all earlier stores to memory of the system."""

  def fence(self) -> None:
    """Have what was stored so far arrive before what is stored from here on, also in memory that the processor writes
    in bursts of its own order (the device's own, mapped write-combined)."""

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    """Let the machine go on until `done()`. False when the time is over, when nothing can change any more, or when
    something has failed that the caller may want to look at."""

  def poll(self, fd: int, timeout_s: float) -> bool:
    """Sleep until a file has something to tell, which is told once; False when the time is over."""

  def now_ns(self) -> int:
    """The clock that time-outs are measured by, in nanoseconds."""

  def pid(self) -> int:
    """The process that the next call would come from: a driver compares it to notice a fork."""
