"""A vendor's calls made again on another port: the base of `amd.again` and `nv.again`, which `replay` goes by."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from tinyhw.core.errors import DeviceError, Error
from tinyhw.core.port import Port
from tinyhw.queues.events import Doorbell, Event
from tinyhw.queues.moved import Moves, Patch
from tinyhw.queues.world import Allocation, Follow, Queue, World


class Again(ABC):
  """One vendor's calls, made again on a port. `views` are allocations that the host sees, by their key."""

  def __init__(self, port: Port, world: World) -> None:
    self.port, self.world = port, world
    self.views: dict[int, memoryview] = {}
    self.moves = Moves()
    self.untold = False  # the capture has not all that the program had mapped
    self.moving = False  # all memory goes elsewhere, not only that whose place is taken
    self.skipped: dict[str, int] = {}
    self._mapped: list[tuple[int, int]] = []

  @abstractmethod
  def make(self, event: Event) -> None:
    """Make a call again that succeeded in the capture; the world knows of it already. Raises DeviceError."""

  @abstractmethod
  def submit(self, queue: Queue, event: Doorbell) -> None:
    """Store the pointer that tells of new entries, and ring the doorbell."""

  @abstractmethod
  def moved(self, queue: Queue, follow: Follow) -> Iterator[Patch]:
    """The words of a submission that have addresses of moved memory, and what they are here; a word that is the same
    here is no address, though it may look like one."""

  def numbers(self) -> list[tuple[int, int]]:
    """(where, number): what of the submission asked about last may be an address of moved memory, and is left alone."""
    return []

  def skip(self, name: str) -> None:
    """Note a call that is not made again: it asks for what is known."""
    self.skipped[name] = self.skipped.get(name, 0) + 1

  def show(self, made: Allocation, address: int, size: int) -> None:
    """The host sees an allocation."""
    self.views[made.key] = self.port.memory(address, size)

  def memory(self, length: int) -> int:
    """Anonymous memory of this process, in the place of a buffer that the program had made itself."""
    address = self.port.mmap(-1, length)
    self._mapped.append((address, length))
    return address

  def view(self, made: Allocation) -> memoryview | None:
    """All that the host sees of an allocation; None where it sees nothing."""
    return self.views.get(made.key)

  def store(self, address: int, data: bytes) -> None:
    """Bytes into memory that the host sees. Raises DeviceError where it does not."""
    made = self.world.find(address)
    view = None if made is None else self.view(made)
    if made is None or view is None or address + len(data) > made.end:
      raise DeviceError(f"{len(data)} bytes at {address:#x} that the host does not see", where="replay")
    at = address - made.address
    view[at:at + len(data)] = data


def failed(name: str, error: OSError | Error) -> DeviceError:
  """A call that cannot be made again."""
  return DeviceError(f"{name} cannot be made again: {getattr(error, 'strerror', None) or error}", where="replay",
                     hint="replay on a machine with cards of the same generation and as many of them")
