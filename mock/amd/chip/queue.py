"""A hardware queue: a ring of dwords in GPU memory, its pointers and doorbell, and the engine's progress through it.

Engines (the command processor, SDMA) subclass `Queue` and execute one packet at a time with `step`, so that a
scheduler can interleave queues in any order. Pointers count up without wrapping, in dwords for the command processor
and in bytes for SDMA, as Linux 6.12 `gfx_v11_0.c` and `sdma_v6_0.c` read and write them; a ring position is the
pointer modulo the ring's size.

The mock's scheduler takes queues away. Queues leave their engine in an order that the seed decides.
They come back with what their descriptor keeps (`autogen/mqd.py`) and the write pointer that memory
holds. So what a driver takes for granted is tried: `tests/drive/mistakes.py` keeps mistakes of
drivers as changes of source, and each must be noticed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import DecodeError, Error, MachineFault, PageFault
from tinyhw.core.memory import Access, AddressSpace
from tinyhw.mock import late
from tinyhw.mock.amd.chip.plans import Plan, Row
from tinyhw.mock.running import Standing, Wait

if TYPE_CHECKING:
  from tinyhw.core.timeout import Terms
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.schedule import Idle
  from tinyhw.mock.amd.chip.caches.chip import Chip
  from tinyhw.mock.amd.chip.compute import Shader
  from tinyhw.mock.amd.chip.onecall import OneCall, Submitted
  from tinyhw.mock.amd.chip.waves import Waves
  from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice
  from tinyhw.mock.memory import BufferObject


class State(Enum):
  """READY runs when its ring holds work; BLOCKED waits for memory or a register; the others run no more."""

  READY = "ready"
  BLOCKED = "blocked"
  INACTIVE = "inactive"
  EVICTED = "evicted"
  FAULTED = "faulted"
  HUNG = "hung"


DOORBELLS: Final = 256  # of which a queue knows what each told of
_READY: Final = State.READY  # asked for often


@dataclass(frozen=True)
class Properties:
  """What CREATE_QUEUE was asked for. Addresses are GPU virtual addresses, sizes bytes."""

  kind: int
  ring_address: int
  ring_size: int
  read_pointer: int
  write_pointer: int
  percentage: int
  priority: int
  eop_address: int
  eop_size: int
  save_area: int
  save_size: int
  control_stack_size: int
  engine: int = 0
  engine_queue: int = 0
  target_xcc: int = 0  # the XCC that executes a PM4 queue

  @property
  def active(self) -> bool:
    return bool(self.ring_size and self.ring_address and self.percentage)


@dataclass(eq=False, slots=True)
class Frame:
  """Dwords under execution: a part of the ring, or an indirect buffer called from it."""

  words: list[int]
  address: int
  at: int = 0
  plan: Plan | None = None  # its packets, where words like these were seen before
  learning: list[Row] | None = None  # its packets so far, where it may come again
  before: Shader | None = None  # what a plan's first dispatch runs, where its packets do not say that
  whole: bool = True  # executed packet by packet from its beginning


Place = tuple["Frame | Submitted", int]  # of a packet


class Queue(ABC):
  """Base of the engines' queues. `read` and `write` are the hardware's copies of the pointers: dwords shifted left by
  `SHIFT`."""

  SHIFT: ClassVar[int] = 0
  ENGINE: ClassVar[str] = "?"

  def __init__(
    self, process: KfdProcess, device: ProcessDevice, queue_id: int, properties: Properties, doorbell: int
  ) -> None:
    self.process, self.device, self.gpu, self.machine = process, device, device.gpu, device.gpu.machine
    self.queue_id, self.properties, self.doorbell = queue_id, properties, doorbell
    self.space: AddressSpace = device.bind()
    self.memory = self.past_gl2 = self.space  # as it is, for pointers; and as packets see it that go past GL2
    self.name = f"GPU{self.gpu.index}.{self.ENGINE}.{queue_id}"
    self.state = (
      State.READY if properties.active and not device.evicted else State.EVICTED if device.evicted else State.INACTIVE
    )
    self._span, self._within = properties.ring_size >> 2 << self.SHIFT, (1 << self.SHIFT) - 1  # as pointers count
    self.read = self.write = 0
    self.wait: Wait | None = None
    self.error: Error | None = None
    self.terms: Terms | None = None  # of who queued the dispatch that runs
    self.observer: Observer | None = None  # what it is shown to
    self.packets = 0
    self.sdma_bit = -1
    self.masked = self.gws = False  # by SET_CU_MASK; has global wave synchronization
    self.debugged = False  # masked by the driver, for a debugger on a chip that needs it (is_dbg_wa)
    self.held: list[BufferObject] = []
    self.frames: list[Frame] = []
    self.expected: OneCall | None = None  # what the ring may hold next, where that is one call
    self.waves: Waves | None = None  # those of a dispatch that has not ended, where an engine has dispatches
    self.last: Place | None = None  # where the packet in execution starts
    self.taken = 0  # how far the ring was copied into frames, or executed
    ring = properties.ring_address, properties.ring_size
    self._late = late.of(self.machine, self.name, lambda: self.space.read(*ring))
    # Doorbells and turns until it was off its engine meanwhile.
    self._until_mapped = self.machine.turns_of_a_queue(self.name)
    self.reported = 0  # how far the client was told that it was read
    self._told: deque[int] = deque(maxlen=DOORBELLS)  # write pointers of doorbells, of what is not fetched yet
    self._rung: deque[tuple[int, int]] = deque()  # (write pointer, thread) of doorbells that are not read yet
    self._ring_version = -1
    self._ring: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
    if device.chip is not None:
      self._connect(device.chip)

  def _connect(self, chip: Chip) -> None:
    """See memory through the caches of the chip (weak memory)."""
    raise NotImplementedError

  def reconfigure(self, properties: Properties) -> None:
    """UPDATE_QUEUE: a new ring starts where the pointers stand; an inactive queue keeps its place."""
    self.properties, self._span = properties, properties.ring_size >> 2 << self.SHIFT
    self._ring_version = -1
    if self.state in (State.READY, State.INACTIVE):
      self.state = State.READY if properties.active else State.INACTIVE
    if self.state is State.READY:
      try:
        self._map_again(self.space.load(properties.write_pointer, 8))
      except PageFault as fault:
        self.fail(fault)

  # ---- the ring

  def ring_doorbell(self, value: int) -> None:
    """A store to the doorbell: the new write pointer, or the sign to look for it, where the queue was off its engine.
    """
    if self.machine.trace.enabled:
      self.machine.trace_fast(self.name, "doorbell", value)
    if self.error is not None:
      return
    try:
      stored = self.memory.load(self.properties.write_pointer, 8)
    except PageFault as fault:
      self.fail(fault)
      return
    if self._until_mapped > 1:
      self._until_mapped -= 1
      if self.write <= value <= self.read + self._span and not value & self._within:
        self.write = value
        self._told.append(value)
      elif not self._accept(value, "doorbell"):
        return
    elif self._was_off():
      self._map_again(stored)
    if self._late is not None: self._late.rung()
    self._note_thread()
    if stored != value:
      self.machine.doubt(
        f"{self.name}: doorbell {value:#x} but the write pointer in memory is {stored:#x}: "
        "a queue that is not mapped at that moment would lose the submission"
      )

  def _accept(self, value: int, source: str) -> bool:
    """A new write pointer. What makes no sense stops the queue."""
    if not self.write <= value <= self.read + self._span or value & self._within:
      self.fail(
        DecodeError(
          f"{source} {value:#x} with read pointer {self.read:#x}, write pointer {self.write:#x}, ring of "
          f"{self._span:#x}",
          where=self.name,
          hint="the write pointer only grows and never passes the read pointer by more than the ring",
        )
      )
      return False
    self.write = value
    return True

  # ---- the scheduler

  def _was_off(self) -> bool:
    """Whether the scheduler had taken the queue off its engine since the last time that this was asked."""
    self._until_mapped -= 1
    if self._until_mapped > 0:
      return False
    self._until_mapped = self.machine.turns_of_a_queue(self.name)
    return True

  def _map_again(self, stored: int) -> None:
    """The scheduler puts the queue on its engine: the write pointer is what memory holds, doorbells before are lost.

    So Linux 6.12: amdgpu_amdkfd_gfx_v11.c (hqd_load_v11 has the CP read the pointer, hqd_sdma_load_v11 reads it);
    kfd_process_queue_manager.c gives MES the pointer's address, by which that finds work on queues that are off ("no
    aggregated doorbell"). Registers that the queue's descriptor does not hold are another queue's.
    """
    self.machine.trace_fast(self.name, "mapped", stored)
    self._lose_registers()
    if self._fetched <= stored < self.write:
      self.write = stored  # what a doorbell told is forgotten
      self._drop(stored)
    elif stored != self.write:
      self._accept(stored, "queue mapped again: the write pointer in memory,")

  @property
  def _fetched(self) -> int:
    """The pointer up to which the engine needs the ring no more: what was read, but has not begun, is read again."""
    if len(self.frames) != 1 or self.wait is not None or self.busy:
      return self.taken
    return self.taken - (len(self.frames[0].words) - self.frames[0].at << self.SHIFT)

  def _drop(self, end: int) -> None:
    """Forget what was read of the ring from a pointer on."""
    if self.taken > end:
      frame, more = self.frames[0], self.taken - end >> self.SHIFT
      left = frame.words[:-more]
      self.frames[:] = [Frame(left, frame.address, frame.at)] if frame.at < len(left) else []
      self.taken = end

  def _lose_registers(self) -> None:
    """Let go of what the queue's descriptor does not keep: nothing, where an engine has no registers of its own."""
    return None

  def _turn_begins(self) -> None:
    """The engine turns to this queue, which may have been off it since the last time."""
    if self._until_mapped > 1:
      self._until_mapped -= 1
    elif self._was_off() and self.properties.active:
      stored = self.memory.load(self.properties.write_pointer, 8)
      # A thread may have stored the pointer and be about to ring: only then is known whose terms the work has.
      self._map_again(min(stored, self.write) if self.machine.agreed else stored)

  def _note_thread(self) -> None:
    """Remember who queued what is written by now."""
    rung, me = self._rung, get_ident()
    if rung and rung[-1][1] == me:
      rung[-1] = self.write, me
      return
    while rung and rung[0][0] <= self.read:
      rung.popleft()
    rung.append((self.write, me))

  def queued_by(self) -> int | None:
    """The thread that queued the packet in execution, if it is known."""
    at = self.taken - (len(self.frames[0].words) - self.frames[0].at << self.SHIFT) if self.frames else self.read + 1
    return next((thread for write, thread in self._rung if write >= at), None)

  def _ready(self) -> bool:
    """Whether a packet would make progress."""
    if self.state is _READY:
      return self.write != self.taken or bool(self.frames) or self.waves is not None
    if self.state is not State.BLOCKED or self.wait is None or not self.properties.active:
      return False
    try:
      return self.wait.met()
    except PageFault as fault:
      self.fail(fault)
      return False

  runnable = _ready  # whether a turn would

  def _fetch(self) -> None:
    """Copy what is submitted in the ring, which is not empty, into a frame: as much as the next doorbell told of."""
    properties, shift, end = self.properties, self.SHIFT, self.write
    while self._told:
      told = self._told.popleft()
      if self.taken < told < end:
        end = told
        break
    at, count = (self.taken >> shift) % (properties.ring_size >> 2), end - self.taken >> shift
    self.frames.append(self._frame(self._words_from(at, count), properties.ring_address + at * 4))
    self.taken = end

  def _words_from(self, at: int, count: int) -> list[int]:
    """Dwords of the ring from a place on, across its end."""
    n = self.properties.ring_size >> 2
    return self._words(at, count) if at + count <= n else self._words(at, n - at) + self._words(0, at + count - n)

  def _frame(self, words: list[int], address: int) -> Frame:
    """A submission that was read from an address of the ring."""
    return Frame(words, address)

  def _words(self, at: int, count: int) -> list[int]:
    """Dwords of the ring."""
    if self._late is not None and (raw := self._late.read(4 * at, 4 * count)) is not None:
      return memoryview(raw).cast("I").tolist()
    if not self.space.direct:
      raw = self.space.read(self.properties.ring_address + 4 * at, 4 * count)
      return memoryview(raw).cast("I").tolist()
    if self._ring_version != self.space.version:
      self._ring = self.space.view(self.properties.ring_address, self.properties.ring_size, Access.READ).view(np.uint32)
      self._ring_version = self.space.version
    words: list[int] = self._ring[at : at + count].tolist()
    return words

  @abstractmethod
  def _report_read(self) -> None:
    """Tell the client how far the ring was read: write the read pointer where it looks for it."""

  # ---- execution

  def run(self, packets: int) -> None:
    """Execute up to `packets` packets, as far as the queue is not blocked. Faults stop the queue, not the machine."""
    self._execute(packets)

  def _execute(self, packets: int) -> None:
    most = packets
    try:
      if self._until_mapped > 1:
        self._until_mapped -= 1
      else:
        self._turn_begins()
      if self.state is not _READY:
        self._resume()
        packets -= 1  # others may come before what is behind the wait
      frames = self.frames
      while packets > 0 and self.state is _READY:
        if self.waves is not None:
          packets = self._go_on(packets)
        elif frames:
          packets = self._follow(frames[-1], packets)
        elif self.write == self.taken:
          break
        elif self.expected is not None and (done := self.expected.run(packets)):
          packets -= done
          continue
        elif self.expected is not None and packets < min(self.expected.packets, most):
          break  # it is for the next turn
        else:
          self._fetch()
          packets = self._follow(frames[-1], packets)
        if frames and frames[-1].at >= len(frames[-1].words):
          self._retire()
      if frames or self.read != self.taken:
        self._retire()
      elif self.taken == self.write:
        self._told.clear()
      if self.read != self.reported:
        self._report_read()
        self.reported = self.read
    except BaseException as raised:
      self._tell_where()
      if not self._stopped_by(raised):
        raise

  def _tell_where(self) -> None:
    """A packet stops the queue: the client is told of those before it, wherever the turn has begun."""
    if not self.frames or self.last is None:
      return
    first, (frame, at) = self.frames[0], self.last
    left = len(first.words) - (at if frame is first else first.at)
    read = self.taken - (left << self.SHIFT)
    if read > self.read:
      self.read = self.reported = read
      with suppress(PageFault):
        self._report_read()

  def guards(self, do: Callable[[], None]) -> Callable[[], None]:
    """The same, which stops the queue where it raises; as it is while the queue's packet does it."""
    def guarded() -> None:
      with self.guarded():
        if self.error is None: do()
    return do if self.machine.draws is None else guarded

  @contextmanager
  def guarded(self) -> Iterator[None]:
    """What is raised inside stops the queue; what a client cannot cause, or tinyhw does not model, goes on from here.
    """
    try:
      yield
    except BaseException as raised:
      if not self._stopped_by(raised):
        raise

  def _stopped_by(self, raised: BaseException) -> bool:
    """Stop for what was raised. False where it is the caller's to hear of."""
    if isinstance(raised, Error):
      self.fail(raised)
      return isinstance(raised, (PageFault, MachineFault, DecodeError))  # else: what tinyhw does not model
    # an interrupt by the user, or a mistake of ours: the packet is not done
    self.fail(MachineFault(f"stopped in the middle of a packet by {type(raised).__name__}"))
    return False

  def standing(self) -> Idle | None:
    """What the waves of a dispatch wait for where none can go on."""
    return None

  def _resume(self) -> None:
    if self.state is State.BLOCKED and self.wait is not None and self.wait.met():
      self.wait = None
      self.state = State.READY
      self._retire()

  def block(self, wait: Wait) -> None:
    """Park the queue until the condition holds. The waiting packet counts as read when it is over."""
    self.wait = wait
    self.state = State.BLOCKED

  @property
  def busy(self) -> bool:
    """Whether the last packet goes on for some turns more."""
    return self.waves is not None

  @property
  def dispatching(self) -> bool:
    """Whether a dispatch of the queue has not ended."""
    return self.busy

  def _go_on(self, turns: int) -> int:
    """Go on with the last packet for up to so many turns; how many are left."""
    raise NotImplementedError

  def _follow(self, frame: Frame, packets: int) -> int:
    """Execute up to so many packets of the top frame, one at least; how many are left."""
    self._step()
    return packets - 1

  @abstractmethod
  def _step(self) -> None:
    """Execute the packet at the top frame's position and move past it."""

  def _retire(self) -> None:
    """Drop finished frames and move the read pointer, which counts the ring's dwords only."""
    if self.state is State.BLOCKED or self.waves is not None:
      return
    frames = self.frames
    while frames:
      if frames[-1].at < len(frames[-1].words):
        self.read = self.taken - (len(frames[0].words) - frames[0].at << self.SHIFT)
        return
      frames.pop()
    self.read = self.taken

  def _truncated(self, need: int) -> None:
    """The packet at hand goes on past the submitted dwords: wait for the next doorbell. In an indirect buffer it is an
    error."""
    frame = self.frames[-1]
    have = len(frame.words) - frame.at
    if len(self.frames) > 1:
      raise DecodeError(
        f"a packet of {need} dwords passes the end of its indirect buffer by {need - have}",
        where=self.name,
        words=frame.words[frame.at :],
      )
    if need > self.properties.ring_size >> 2:
      raise DecodeError(
        f"a packet of {need} dwords is longer than the ring", where=self.name, words=frame.words[frame.at :]
      )
    self.taken -= have << self.SHIFT
    self.frames.clear()
    if self.write == self.taken + (have << self.SHIFT):
      written = self.write
      self.block(
        Wait(
          "the fetcher",
          f"{need - have} more dwords of the packet at {frame.address + frame.at * 4:#x}",
          "in the ring",
          lambda: self.write,
          lambda: self.write != written,
        )
      )

  def interrupt(self, context: int, bits: int, packet: str) -> None:
    """Interrupt the host: the kernel driver looks for an event whose slot was written. It comes behind what was
    written before."""
    if self.machine.watched and self.machine.injected.of("lost interrupt") is not None: return
    self.machine.behind(self, lambda: self._interrupted(context, bits, packet))

  def _interrupted(self, context: int, bits: int, packet: str) -> None:
    if not self.process.events.interrupt(context, bits):
      self.machine.doubt(f"{self.name}: the interrupt {context:#x} of {packet} signals no event: its slot of the event "
                         "page was not written, or belongs to none")

  # ---- the end

  def fail(self, error: Error) -> None:
    """Stop this queue for good and tell the client as the kernel driver would."""
    self.error = error.again()  # one that was raised keeps its frames
    self.wait = None
    self.state = State.FAULTED if isinstance(error, PageFault) else State.HUNG
    self.machine.queue_failed(self, error)

  def doing(self) -> str:
    return self.packet_text() if self.wait is None else f"{self.wait}"

  def upcoming(self) -> int | None:
    """Address of the packet that is executed next, or is in execution, or has stopped the queue."""
    if self.last is not None and (self.wait is not None or self.busy or self.error is not None):
      return self.last[0].address + self.last[1] * 4
    for frame in reversed(self.frames):
      if frame.at < len(frame.words):
        return frame.address + frame.at * 4
    properties = self.properties
    if self.write == self.taken or not properties.active:
      return None
    return properties.ring_address + (self.taken >> self.SHIFT) % (properties.ring_size >> 2) * 4

  def stands(self) -> Standing:
    """Where it stands, for a debugger."""
    idle = self.standing()
    why = str(self.error or self.wait or ("" if idle is None else f"a dispatch waits for {idle.polls[0]}, to change"))
    return Standing(self.name, self.gpu.index, self.properties.ring_address, self.upcoming(), self.state.value, why,
                    self.runnable(), self.error is not None, self.movable())

  def explain(self, fault: MachineFault) -> None:
    """Say whose a place is. The line is known to the driver, whose code objects these are."""
    fault.where = self.name

  def movable(self) -> bool:
    """Whether the packet in execution can go on."""
    return self.busy and self.runnable()

  def single(self) -> None:
    """Execute one packet, or go on with the last one for a turn."""
    self.run(1)

  def values(self) -> dict[str, int]:
    """What the engine holds for the packets to come, by the vendor's names."""
    return {}

  def packet_text(self) -> str:
    """The packet in execution, or the last one: its address and text."""
    if self.last is None:
      return "no packet yet"
    frame, at = self.last
    return f"{frame.address + at * 4:#x}: {self._text(frame.words[at : at + 64])}"

  @abstractmethod
  def _text(self, words: list[int]) -> str:
    """The first packet of some words, for people."""

  def describe(self) -> str:
    """One line: state, pointers, what it waits for or why it stopped."""
    text = f"{self.name}: {self.state.value}, read {self.read:#x}, write {self.write:#x}"
    if self.wait is not None:
      text += f"; {self.wait}"
    elif (idle := self.standing()) is not None:
      text += f"; a dispatch waits for {idle.polls[0]}, to change"
    if self.error is not None:
      text += f"; {self.error}"
    return text

  def snapshot(self) -> dict[str, Any]:
    """The queue's state as plain values, for comparisons."""
    return {
      "state": self.state.value,
      "read": self.read,
      "write": self.write,
      "packets": self.packets,
      "wait": str(self.wait) if self.wait else None,
      "error": str(self.error) if self.error else None,
    }
