"""What a process has of its GPUs, as its calls have made it: memory by GPU address, queues by their doorbells.

The same code follows the calls while they are recorded and while a capture is read, so both know the same. `World` is
what both vendors share; `amd.world` and `nv.world` know their own calls.
"""
from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.events import Close, Doorbell, Event, File, Ioctl, Mmap, Munmap, Note, Open, Seen, Waited
from tinyhw.queues.plans import KnownSubmission, Named
from tinyhw.wire import methods

Read = Callable[[int, int], bytes | None]
"""Bytes at a GPU address; None where they are not known."""
Knows = Callable[[int], bool]
"""Whether the byte at a GPU address is known."""
PAGE: Final = 4096
MOVES_NOTHING: Final = (Doorbell, Seen, Waited, Note)
"""Events behind which all is where it was."""


@dataclass(eq=False, slots=True)
class Allocation:
  """Memory that a GPU sees at `address`. `host`: where the process has it mapped, 0 for nowhere, from its first byte on
  so many bytes as are `shown`."""
  key: int
  address: int
  size: int
  kind: str
  gpu: int
  handle: int
  host: int = 0
  shown: int = 0
  label: str = ""
  made_at: int = 0
  freed_at: int = -1
  seen_by: set[int] | None = None  # the GPUs that have it in their page tables, where the calls tell

  @property
  def end(self) -> int: return self.address + self.size

  def __str__(self) -> str: return self.label or f"{self.kind} buffer {self.key}"

  def at(self, address: int) -> str:
    """`VRAM buffer 3 [0x100]`."""
    return f"{self} [{address - self.address:#x}]" if address != self.address else str(self)


@dataclass(eq=False, slots=True)
class Queue:
  """A hardware queue. `ring` and `size` are bytes; `at` is how far the doorbells have told, in the ring's own units."""
  key: int
  name: str
  kind: str
  gpu: int
  ring: int
  size: int
  handle: int
  at: int = 0
  class_id: int = 0
  engines: dict[int, int] = field(default_factory=dict)
  state: Any = None
  closed: bool = False

  def __str__(self) -> str: return self.name


@dataclass(slots=True)
class Item:
  """One thing that an engine reads: a packet, entry or method run at a GPU address. `depth` counts the calls to it.

  `packet` is the declared object; where the words are none, `error` says why and ends its piece. `class_id`: whose
  methods they are, on NVIDIA's channels; on AMD's queues the graphics core's generation, where it is known.
  """
  address: int
  words: tuple[int, ...]
  packet: Any
  depth: int = 0
  error: str = ""
  queue: Queue | None = None
  effects: list[Effect] = field(default_factory=list)
  class_id: int = 0


@dataclass(slots=True)
class Launch:
  """A kernel launch in a submission: where its code, its arguments and its descriptor lie, and its sizes."""
  item: Item
  entry: int
  arguments: int
  argument_bytes: int
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  user_data: list[int] = field(default_factory=list)
  state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
  """What the kernel driver told of a fault: `text` is the access, as its words have it."""
  address: int
  text: str


class Follow(Protocol):
  """A submission's packets, in the order in which an engine reads them; launches and addresses are noted on the way."""
  items: list[Item]
  launches: list[Launch]
  roots: list[tuple[int, int]]


class Submission(Follow, Protocol):
  """With the words behind the ring."""
  pieces: list[tuple[int, bytes]]


def named(follow: Submission) -> Named:
  """What a submission names, by its packets."""
  return Named(follow.pieces, [e for item in follow.items for e in item.effects],
               [(launch.entry, launch.argument_bytes) for launch in follow.launches], follow.roots,
               counted(follow.items))

def counted(items: Iterable[Item]) -> Counter[str] | None:
  """Packets by the names of their kinds; None where words are none, or lead nowhere."""
  found = Counter[str]()
  for item in items:
    packet = item.packet
    if packet is None or item.error: return None
    if isinstance(packet, methods.Send): found[packet.header.__name__] += 1
    else: found["NOP" if isinstance(packet, int) else type(packet).__name__] += 1
  return found


class World(ABC):
  """One vendor's. `apply` takes events in order; lookups are by GPU address."""
  PATHS: tuple[str, ...] = ()
  COMPLETE = True  # whether all that writes memory of the GPU is told
  UNTOLD: tuple[str, ...] = ()  # how files begin whose mappings have the GPU's addresses, though no call says so

  def __init__(self) -> None:
    self.files: dict[int, str] = {}
    self.allocations: list[Allocation] = []
    self.queues: list[Queue] = []
    self._live: list[tuple[Any, ...]] = []  # (address, key, allocation), by address
    self._starts: list[int] = []
    self._hosts: list[tuple[int, int, Allocation]] = []  # (host address, key, allocation) of what is mapped
    self.freed: list[Allocation] = []
    self.used = 0  # bytes of the living
    self.version = 0  # of what is where: another one as soon as `find` may find something else
    self._signals_of = -1  # the version by which these were numbered last
    self.faults: list[Fault] = []
    self.signals: dict[int, tuple[int, int]] = {}  # by address, in the order of their first use: number, allocation
    self.naming: dict[object, str] = {}  # names of addresses and launches (`listing.Names`), while nothing changes

  # ---- memory

  def _add(self, address: int, size: int, kind: str, gpu: int, handle: int, when: int) -> Allocation:
    made = Allocation(len(self.allocations), address, size, kind, gpu, handle, made_at=when)
    self.allocations.append(made)
    if address: self._place(made)
    return made

  def _place(self, made: Allocation) -> None:
    insort(self._live, (made.address, made.key, made))
    insort(self._starts, made.address)
    self.used += made.size
    self.version += 1

  def _drop(self, gone: Allocation, when: int) -> None:
    gone.freed_at = when
    self.freed.append(gone)
    i = bisect_left(self._live, (gone.address, gone.key))
    if i == len(self._live) or self._live[i][2] is not gone: return  # it was never placed
    del self._live[i], self._starts[i]
    self.used -= gone.size
    self.version += 1

  def _map(self, made: Allocation, host: int, size: int) -> None:
    """The process has so many bytes of it mapped there."""
    made.host, made.shown = host, size
    insort(self._hosts, (host, made.key, made))

  def _unmap(self, address: int, length: int) -> None:
    """What the process has mapped from these addresses on is not mapped any more."""
    first, last = self._between(address, length)
    for host, _, made in self._hosts[first:last]:
      if made.host == host: made.host = 0
    del self._hosts[first:last]

  def mapped_from(self, address: int, length: int) -> list[Allocation]:
    """What the process has mapped from these addresses on."""
    first, last = self._between(address, length)
    return [made for _, _, made in self._hosts[first:last]]

  def _between(self, address: int, length: int) -> tuple[int, int]:
    return bisect_left(self._hosts, (address, -1)), bisect_left(self._hosts, (address + length, -1))

  def find(self, address: int) -> Allocation | None:
    """The living allocation that holds a GPU address."""
    i = bisect_right(self._starts, address) - 1
    if i < 0: return None
    found: Allocation = self._live[i][2]
    return found if address < found.address + found.size else None

  def signalled(self, items: Iterable[Item]) -> None:
    """Number what packets wait for and signal."""
    known = self.signals
    for item in items:
      for effect in item.effects:
        if effect.does is not Does.WAIT and effect.does is not Does.SIGNAL: continue
        there = known.get(effect.address)
        made = self.find(effect.address) if there is None or self.version != self._signals_of else None
        if made is not None and (there is None or there[1] != made.key):
          known[effect.address] = len(known) if there is None else there[0], made.key
    self._signals_of = self.version

  @property
  def span(self) -> tuple[int, int]:
    """The first address that an allocation has, and the end of the last one."""
    return (self._live[0][0], self._live[-1][2].end) if self._live else (0, 0)

  def was(self, address: int) -> Allocation | None:
    """The allocation that held an address last and is freed."""
    return next((a for a in reversed(self.freed) if a.address <= address < a.end), None)

  def living(self) -> Iterator[Allocation]:
    """Those that are not freed, by address."""
    return (row[2] for row in self._live)

  def place(self, made: Allocation) -> int:
    """Which of the GPUs in use, in the order of their first use, an allocation belongs to."""
    return made.gpu

  # ---- events

  def apply(self, event: Event, when: int) -> None:
    """Follow a call that succeeded; `when` is the event's number."""
    if isinstance(event, MOVES_NOTHING): return
    if self.naming: self.naming.clear()
    match event:
      case Open(fd=fd, path=path, errno=0): self.files[fd] = path
      case File(path=path, content=content): self.read(path, content)
      case Close(fd=fd): self.files.pop(fd, None)
      case Ioctl(result=result) if result == 0 and not event.errno: self.called(event, when)
      case Mmap(errno=0): self.mapped(event)
      case Munmap(): self.unmapped(event)

  def tells(self, path: str) -> bool:
    """Whether a file that the driver reads says what a GPU is."""
    return False

  def read(self, path: str, content: bytes) -> None:  # noqa: B027 - most vendors' drivers read no such file
    """Such a file was read."""

  def led(self, argument: Any) -> tuple[int, int]:
    """Where a call's pointer leads to: address and bytes, as far as the call says how much that is; else 0 bytes."""
    return 0, 0

  def inner(self, argument: Any) -> bytes:
    """What a call of this process leads to."""
    address, size = self.led(argument)
    return ctypes.string_at(address, size) if size else b""

  @abstractmethod
  def called(self, call: Ioctl, when: int) -> None:
    """An ioctl has succeeded."""

  @abstractmethod
  def mapped(self, call: Mmap) -> None:
    """Memory was mapped into the process."""

  @abstractmethod
  def unmapped(self, call: Munmap) -> None:
    """Addresses of the process were given back."""

  @abstractmethod
  def rung(self, address: int, value: int) -> Queue | None:
    """Whose doorbell a store is; None for nobody's."""

  def bells(self) -> list[tuple[int, int]]:
    """Where the process has doorbells of living queues mapped: (address, bytes that are stored)."""
    return []

  def rings_at(self, queue: Queue, address: int) -> bool:
    """Whether a store at an address of the process may ring for a queue."""
    return self.rung(address, 0) is queue

  @abstractmethod
  def pending(self, queue: Queue, value: int, read: Read) -> tuple[int, int]:
    """(first, last) of the entries that a doorbell tells of, in the ring's own units; they only grow."""

  @abstractmethod
  def found(self, queue: Queue, pointer: int) -> tuple[int, int]:
    """As `pending`, of what the ring's write pointer in memory says."""

  @abstractmethod
  def write_pointer_at(self, queue: Queue) -> tuple[Allocation | None, int, int]:
    """Where the write pointer lies: its memory, the byte in it, and how many bytes it has. Without a memory that is
    known it is the GPU address."""

  @abstractmethod
  def ring_pieces(self, queue: Queue, first: int, last: int) -> list[tuple[int, int]]:
    """(GPU address, bytes) of those entries, in one piece or two."""

  @abstractmethod
  def pointers(self, queue: Queue) -> list[tuple[int, int]]:
    """(GPU address, bytes) of the ring's read and write pointer in memory."""

  def reached(self, queue: Queue, read: int, first: int) -> int:
    """How far a queue has read, in the units of `pending`, where its read pointer says `read` at a doorbell whose
    entries begin at `first`."""
    return read

  def room(self, queue: Queue) -> int:
    """How many units fit beside each other that are not read."""
    return queue.size // self.unit(queue)

  def takes_back(self, address: int) -> bool:
    """Whether the kernel driver takes back what is signalled at a GPU address, as soon as it has seen it."""
    return False

  def reaches(self, queue: Queue, made: Allocation) -> bool:
    """Whether the queue's GPU has memory in its page tables; True where nobody knows."""
    return made.seen_by is None or queue.gpu in made.seen_by

  def unit(self, queue: Queue) -> int:
    """Bytes of what `pending` counts."""
    return 1

  def told(self, queue: Queue, value: int) -> int | None:
    """What a doorbell's value says that the write pointer in memory is; None where it says nothing of it."""
    return None

  @abstractmethod
  def follow(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read, knows: Knows | None = None) -> Submission:
    """All that a submission leads to; `queue.state` goes on. `knows` says of `read` what it would give, where that is
    cheaper."""

  def submits(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read) -> Named | KnownSubmission:
    """What a submission names, as `follow` tells it, by the quickest way; `queue.state` goes on."""
    return named(self.follow(queue, ring, read))

  def submitted(self, event: Doorbell, read: Read, knows: Knows | None = None) -> Follow | None:
    """The packets of a recorded doorbell; None where it is no queue's."""
    if not 0 <= event.queue < len(self.queues): return None
    queue = self.queues[event.queue]
    queue.at = event.last
    return self.follow(queue, [(a, b) for a, b in event.ring], read, knows)
