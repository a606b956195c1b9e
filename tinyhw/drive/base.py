"""What every device runtime offers to the engine: memory, copies, programs.

A `Runtime` is one opened device. A `Program` is one kernel loaded on it. An `Allocation` is a piece of its memory.
Launches and copies are queued in order and may run asynchronously; `copyout` and `synchronize` wait. Drivers raise the
errors of `tinyhw.core.errors` and nothing else.
"""
from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument, OutOfMemory, Unsupported
from tinyhw.core.trace import Whose

Dim3 = tuple[int, int, int]
ADDRESS: Final = attrgetter("address")  # of an allocation


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
  """A kernel loaded on a device, ready to be launched any number of times.

  `dynamic_bytes` is the local memory that calls and runners give each launch beside the kernel's own: set it before the
  first one.
  """

  name: str
  dynamic_bytes: int = 0

  @abstractmethod
  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    """Launch with `buffers`, then `values`, as arguments in declaration order.

    `grid` counts workgroups and `block` counts threads of a workgroup, both as (x, y, z). Returns at once, unless
    `wait` is set: then it returns the kernel's duration in seconds on the runtime's `clock`.
    """


@dataclass(frozen=True)
class Launch:
  """One launch of a `Runner`. `buffers` are places in the memory that the runner is called with."""
  program: Program
  buffers: tuple[int, ...]
  grid: Dim3
  block: Dim3


class Runner:
  """Launches in order, again and again, each time over other memory. This one asks each program; drivers do better.

  Who calls it sees to it that no two threads do so at one time.
  """

  def __init__(self, launches: Sequence[Launch]) -> None: self.launches = tuple(launches)

  def __call__(self, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
               grids: Sequence[Dim3] | None = None) -> None:
    """Queue all launches. `values` are each launch's; None where none takes any. `grids` are each launch's, of at least
    one workgroup and none greater than its own; None where all are their own."""
    for n, l in enumerate(self.launches):
      l.program([memory[k] for k in l.buffers], () if values is None else values[n],
                l.grid if grids is None else grids[n], l.block)

  def prepared(self, memory: Sequence[Allocation | None], changing: Sequence[int]) -> Callable[..., object] | None:
    """All launches without values as a function of the addresses at the places `changing`, which may be called where no
    runtime has to be told; all other memory stays. None where the driver has none."""
    return None


class Runtime(ABC):
  """One opened device."""

  name: str
  clock: Whose = Whose.HOST
  """Whose clock the times are of that launches return, and `began`: who opens a device behind a mock says so."""
  dropped: tuple[tuple[int, int], ...] = ()
  """First and last timeline values of queued work that was dropped, where there is a timeline."""

  @abstractmethod
  def alloc(self, nbytes: int) -> Allocation:
    """Allocate `nbytes` (> 0) bytes, aligned for every dtype; raises OutOfMemory. Contents are undefined."""

  @abstractmethod
  def free(self, allocation: Allocation) -> None:
    """Give the memory back. Work already queued on it finishes first."""

  def borrow(self, address: int, nbytes: int) -> Allocation:
    """Memory of this process that somebody else owns, as memory of the device. Raises Unsupported where it is not."""
    raise Unsupported("memory", "of somebody else", where=self.name, hint="copy it: Tensor(array, device=...)")

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

  def runner(self, launches: Sequence[Launch]) -> Runner:
    """What queues these launches of the device's programs, often."""
    return Runner(launches)

  @abstractmethod
  def synchronize(self) -> None:
    """Wait until all queued work is done; raises what that work raised."""

  @abstractmethod
  def describe(self) -> str:
    """What the device is, in a few words for a person."""

  def began(self) -> float | None:
    """When the last launch that was waited for began on the device's own clock, in seconds; None without one."""
    return None

  def siblings(self) -> int:
    """How many devices of this kind the machine has, this one included."""
    return 1

  def is_peer(self, other: Runtime) -> bool:
    """Whether `copy` accepts a source allocation of `other`."""
    return other is self

  def close(self) -> None:
    """Release the device. Safe to call twice."""
    return None


@contextmanager
def host_memory(what: str, nbytes: int) -> Iterator[None]:
  """Memory of the host that the block takes for something: raises OutOfMemory where there is none."""
  try: yield
  except (MemoryError, OverflowError):
    raise OutOfMemory(what, nbytes, free_bytes(), hint="use smaller pieces, or raise the limit (ulimit -v)") from None


def free_bytes() -> int:
  """Memory of the host that nobody uses."""
  return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
