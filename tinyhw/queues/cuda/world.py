"""What CUDA has given a process: see `queues.world`. Memory, streams and kernels are told by events of their own."""
from __future__ import annotations

from typing import Any

from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError
from tinyhw.queues.cuda.stream import STEP, CudaFollow, effects, packet, timeline
from tinyhw.queues.events import Buffer, Doorbell, Event, Function, Ioctl, Mmap, Munmap, Program, Stream, Work
from tinyhw.queues.world import Allocation, Follow, Item, Knows, Launch, Queue, Read, World

HOST, DEVICE = "HOST", "DEVICE"
TIMELINE, PROGRAM = "timeline", "program"  # kinds of what has an address and is no memory


class CudaWorld(World):
  """See the module. Kernels reach memory by other ways than their arguments, and libraries by none that is told."""
  COMPLETE = False

  def __init__(self) -> None:
    super().__init__()
    self._buffers: dict[int, Allocation] = {}
    self._kernels: dict[int, tuple[str, int]] = {}  # by their entries: name, bytes of parameters
    self._parameters: dict[int, list[list[Any]]] = {}

  def apply(self, event: Event, when: int) -> None:
    match event:
      case Buffer(gone=False): self._came(event, when)
      case Buffer(): self._went(event, when)
      case Stream(): self._stream(event, when)
      case Function(): self._parameters[event.entry] = event.parameters
      case Program():
        self._add(event.address, max(event.size, 1), PROGRAM, 0, 0, when)
        self._kernels |= {entry: (name, size) for name, entry, size in event.kernels}

  def names(self, address: int) -> bool:
    """Whether an address is of memory that cards know, or have known. Of the host's own nobody is told when it goes."""
    if (made := self.find(address)) is not None: return made.kind not in (TIMELINE, PROGRAM)
    was = self.was(address)
    return was is not None and was.kind != HOST

  def _came(self, event: Buffer, when: int) -> None:
    there = self._buffers.get(event.address)
    if there is not None and there.size == event.size: return  # a graph's, which its launch has told of
    if there is not None: self._drop(there, when)
    made = self._buffers[event.address] = self._add(event.address, event.size, event.kind, event.gpu, 0, when)
    if event.kind == HOST: made.host = event.address

  def _went(self, event: Buffer, when: int) -> None:
    gone = self._buffers.pop(event.address, None)
    if gone is not None: self._drop(gone, when)

  def _stream(self, event: Stream, when: int) -> None:
    if event.queue != len(self.queues):
      raise DecodeError(f"stream {event.queue} comes after {len(self.queues)} others", where="capture")
    self.queues.append(Queue(event.queue, event.name, "stream", event.gpu, 0, 0, event.handle))
    self._add(timeline(event.queue), STEP, TIMELINE, event.gpu, 0, when).label = f"timeline of {event.name}"

  def submitted(self, event: Doorbell, read: Read, knows: Knows | None = None) -> Follow | None:
    if not isinstance(event, Work) or not 0 <= event.queue < len(self.queues): return None
    queue = self.queues[event.queue]
    queue.at = event.last
    if event.node == cuda.CU_GRAPH_NODE_TYPE_MEM_ALLOC:  # what comes behind it may name it
      for address, bytes_ in event.writes:
        self._came(Buffer(address=address, size=bytes_, kind=DEVICE, gpu=queue.gpu), len(self.allocations))
    name, size = self._kernels.get(event.entry, ("", 0))
    made = packet(event, name, self._parameters.get(event.entry, []), self.names)
    item = Item(event.address, (), made, queue=queue, effects=effects(event, self))
    found = CudaFollow([item])
    if event.entry:
      at, length = (event.pieces[0][0], len(event.pieces[0][1])) if event.pieces else (0, 0)
      found.launches.append(Launch(item, event.entry, at, length, _three(event.grid), _three(event.block)))
    return found

  # ---- what streams have not

  def called(self, call: Ioctl, when: int) -> None:
    """No kernel driver is called."""

  def mapped(self, call: Mmap) -> None:
    """Nor is memory mapped."""

  def unmapped(self, call: Munmap) -> None:
    """Nor unmapped."""

  def rung(self, address: int, value: int) -> Queue | None: return None
  def pending(self, queue: Queue, value: int, read: Read) -> tuple[int, int]: return value - 1, value
  def found(self, queue: Queue, pointer: int) -> tuple[int, int]: return pointer - 1, pointer
  def write_pointer_at(self, queue: Queue) -> tuple[Allocation | None, int, int]: return None, 0, 0
  def ring_pieces(self, queue: Queue, first: int, last: int) -> list[tuple[int, int]]: return []
  def pointers(self, queue: Queue) -> list[tuple[int, int]]: return []

  def follow(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read, knows: Knows | None = None) -> CudaFollow:
    return CudaFollow()


def _three(sizes: list[int]) -> tuple[int, int, int]:
  """A grid or block of the capture; zeros where there is none."""
  return (sizes[0], sizes[1], sizes[2]) if len(sizes) == 3 else (0, 0, 0)
