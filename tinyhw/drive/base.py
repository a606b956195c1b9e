"""What every device runtime offers to the engine: memory, copies, programs.

A `Runtime` is one opened device. A `Program` is one kernel loaded on it. An `Allocation` is a piece of its memory.
Launches and copies are queued in order and may run asynchronously; `copyout` and `synchronize` wait. Drivers raise the
errors of `tinyhw.core.errors` and nothing else.
"""
from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinyhw.core.errors import InvalidArgument

Dim3 = tuple[int, int, int]


@dataclass(eq=False)
class Allocation:
  """A piece of device memory of `size` bytes.

  `address` is the device's own address of the first byte (None where the device has no addresses); it need not be an
  address of this process. `handle` belongs to the driver that made the allocation.
  """
  address: int | None
  size: int
  handle: Any = None

  def memory(self, nbytes: int, where: str) -> Any:
    """The handle of memory that the host itself holds, with at least `nbytes` in it."""
    if self.handle is None: raise InvalidArgument("the allocation was freed", where=where)
    if nbytes > self.size:
      raise InvalidArgument(f"a copy of {nbytes:,} bytes, but the allocation has {self.size:,}", where=where)
    return self.handle


class Program(ABC):
  """A kernel loaded on a device, ready to be launched any number of times."""

  name: str

  @abstractmethod
  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    """Launch with `buffers`, then `values`, as arguments in declaration order.

    `grid` counts workgroups and `block` counts threads of a workgroup, both as (x, y, z). Returns at once, unless
    `wait` is set: then it returns the kernel's duration in seconds on the device's clock.
    """


class Runtime(ABC):
  """One opened device."""

  name: str
  dropped: tuple[tuple[int, int], ...] = ()
  """First and last timeline values of queued work that was dropped, where there is a timeline."""

  @abstractmethod
  def alloc(self, nbytes: int) -> Allocation:
    """Allocate `nbytes` (> 0) bytes, aligned for every dtype; raises OutOfMemory. Contents are undefined."""

  @abstractmethod
  def free(self, allocation: Allocation) -> None:
    """Give the memory back. Work already queued on it finishes first."""

  @abstractmethod
  def copyin(self, dst: Allocation, data: memoryview) -> None:
    """Copy host bytes into the start of `dst`; `data` may be reused when this returns."""

  @abstractmethod
  def copyout(self, dst: memoryview, src: Allocation) -> None:
    """Copy the start of `src` into host bytes; waits for the work queued before it."""

  @abstractmethod
  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    """Copy between two allocations of this device, or from a peer device of the same driver to this one."""

  @abstractmethod
  def load(self, binary: bytes, kernel: str) -> Program:
    """Load a compiled `binary` and return its kernel named `kernel`."""

  @abstractmethod
  def synchronize(self) -> None:
    """Wait until all queued work is done; raises what that work raised."""

  @abstractmethod
  def describe(self) -> str:
    """What the device is, in a few words for a person."""

  def siblings(self) -> int:
    """How many devices of this kind the machine has, this one included."""
    return 1

  def is_peer(self, other: Runtime) -> bool:
    """Whether `copy` accepts a source allocation of `other`."""
    return other is self

  def close(self) -> None:
    """Release the device. Safe to call twice."""
    return None


def free_bytes() -> int:
  """Memory of the host that nobody uses."""
  return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
