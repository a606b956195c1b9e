"""What every device with hardware queues does alike: its timeline, waits and time-outs, staging copies, copies between
peers.

A driver gives its queues and memory (see the abstract methods of `QueuedRuntime`); this module orders the work. All
submissions of one device, on whichever queue, form one sequence: a submission on another queue than the one before it
starts with a wait for the timeline. That is the whole memory model of `Runtime`: what is queued later sees what was
queued earlier.

Threads may share a device. Its locks, in the order in which a thread takes them:

    profiling  one timed launch at a time: there is one pair of timestamps
    copying    one copy between host and device at a time: it owns the bounce buffer
    memory     allocations, code objects, scratch
    lock       one submission: timeline, stream, ring, kernel arguments, doorbell

The first three may be held while the GPU is waited for: what else would have them is queued behind the same work.
`lock` is not: `enter` takes it once ring and argument memory have room.

Every submission gets the timeline's next value and writes it when it is done. The device interrupts
only when a waiter has gone to sleep and asked for it.
"""
from __future__ import annotations

import os
import threading
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from tinyhw.core.errors import DeviceError, Error, InvalidArgument, PageFault, WaitTimeout
from tinyhw.core.locks import lock
from tinyhw.core.port import Port
from tinyhw.core.timeout import within
from tinyhw.core.trace import Whose
from tinyhw.drive.allocate import BounceBuffer, BounceHalf, KernargRing
from tinyhw.drive.base import Allocation, Runtime
from tinyhw.drive.movers import Movers
from tinyhw.drive.queue import BoundStream, HardwareQueue
from tinyhw.drive.signal import Dependencies, Signal, SignalPool, Timeline

E = TypeVar("E", bound=Error)
TIMEOUT_VARIABLE = "TINYHW_TIMEOUT_S"
DEFAULT_TIMEOUT_S = 30.0
_POLL_S = 2e-3    # first look at the signal, before a wait asks the kernel driver for an interrupt
_PART_S = 1.0     # longest wait on a port whose clock stands still, between two looks at the device's faults
_SLEEP_S = 0.2    # longest sleep between two looks at the device's faults
_LOOK_S = 0.02    # how often a device that is closed looks whether it has stopped
CLOSE_TIMEOUT_S = 2.0  # how long a device that is closed or was reset may take to answer


def timeout_from_environment() -> float:
  """TINYHW_TIMEOUT_S, in seconds; 30 when it is not set."""
  text = os.environ.get(TIMEOUT_VARIABLE)
  if text is None: return DEFAULT_TIMEOUT_S
  try: seconds = float(text)
  except ValueError: seconds = -1.0
  if not seconds > 0: raise InvalidArgument(f"{TIMEOUT_VARIABLE}={text!r} is not a positive number of seconds")
  return seconds


class QueuedRuntime(Runtime):
  """A device with a compute queue and a copy queue. Set up by the driver's constructor, in this order:

  `port`, `name`, `timeout_s`; then memory; then `start_timeline`, `kernargs`, `bounce`, `compute`, `copier`,
  `copy_stream`.
  """
  clock = Whose.CARD
  port: Port
  timeout_s: float
  signals: SignalPool
  timeline: Timeline
  kernargs: KernargRing
  bounce: BounceBuffer
  compute: HardwareQueue
  copier: HardwareQueue
  copy_stream: BoundStream  # values "source", "destination", "count" (bytes), "timeline"
  max_copy_bytes: int
  copy_counts_from = 0  # how much more than "count" a copy's bytes are
  # who waits for whom, when a device stops, and what is at the address of its fault
  examine: Callable[[QueuedRuntime, int | None], Sequence[str]] | None = None
  host_writes = host_reads = 0  # bytes up to which the host itself copies to and from device memory that it sees

  def __init__(self, port: Port, name: str, timeout_s: float | None = None) -> None:
    self.port, self.name = port, name
    self.timeout_s = timeout_from_environment() if timeout_s is None else timeout_s
    self.lost: DeviceError | None = None  # why the device cannot be used any more
    self._pid = port.pid()
    self._last_queue: HardwareQueue | None = None
    self._dependencies = Dependencies()
    self.profiling, self.copying, self.memory, self.lock = lock(), lock(), lock(), lock()
    self.dropped: tuple[tuple[int, int], ...] = ()  # first and last timeline values of work that will never be done
    self._limits: dict[int, float] = {}  # by thread: how long it waits, where that is not `timeout_s`
    self._closed = self._closing = False
    self._peers: set[QueuedRuntime] = set()  # devices whose queues can wait for this one's signals
    self.movers = Movers()
    self._unsure = False  # a submission was interrupted: the timeline's last value may never come

  # ---- what a driver gives

  @abstractmethod
  def raise_faults(self) -> None:
    """Ask the kernel driver, without waiting, whether the device faulted; raises DeviceError if it did."""

  @abstractmethod
  def sleep(self, seconds: float) -> None:
    """Sleep until the work queued so far is done, the device faults, or the time is over."""

  @abstractmethod
  def timeout_error(self, value: int, seconds: float) -> WaitTimeout:
    """Describe why the timeline does not reach `value`."""

  @abstractmethod
  def compute_marker(self, label: str = "marker") -> BoundStream:
    """A submission to the compute queue that does nothing but reach its timeline value."""

  @abstractmethod
  def own_stream(self, words: Sequence[int], copies: bool) -> BoundStream:
    """Words of a caller's own making as a submission to the compute queue, or with `copies` to the copy queue."""

  @abstractmethod
  def stopped(self) -> bool:
    """Whether the device has said that it does no more work; asks it without waiting."""

  @abstractmethod
  def take_down(self) -> None:
    """Give everything back. Nothing is submitted any more."""

  @abstractmethod
  def reach(self, allocation: Allocation) -> QueuedRuntime:
    """The device that owns the allocation, after making its memory and its timeline reachable from this device."""

  def copy_by_kernel(self, destination: int, source: int, nbytes: int) -> int:
    """Queue a copy within the device's memory by a kernel, where that is faster; returns how many bytes it copies."""
    return 0

  def host_view(self, allocation: Allocation) -> memoryview | None:
    """Memory of this device as the host sees it, if it does."""
    return None

  def flush_host_writes(self) -> None:
    """Have what the host has stored into memory of the device arrive there."""

  # ---- order

  def start_timeline(self, signals: SignalPool, start: int = 0) -> None:
    self.signals = signals
    self.timeline = Timeline(signals.take(), self.wait, start)
    self._done = self.timeline.signal.words

  def check_usable(self) -> None:
    """Raises DeviceError when the device was lost, or when this process is a fork of the one that opened it."""
    if os.getpid() != self._pid and self.port.pid() != self._pid:
      raise DeviceError(
        f"opened by process {self._pid} and used by its fork {self.port.pid()}",
        where=self.name,
        hint="queues do not pass through fork: in the child, call tinyhw.Device.close() and open the device again",
      )
    if self.lost is not None: raise self.lost.again()  # a new one: an error that was raised keeps its frames

  def patience(self) -> float:
    """How long the calling thread waits."""
    return self._limits.get(threading.get_ident(), self.timeout_s) if self._limits else self.timeout_s

  @contextmanager
  def limited(self, seconds: float) -> Iterator[None]:
    """In the block the calling thread waits so long."""
    with within(self._limits, seconds): yield

  def enter(self, queue: HardwareQueue, stream: BoundStream | None = None, nbytes: int = 0) -> None:
    """Take `lock` for a submission of the stream with so many bytes of arguments: who returns from here need not wait.

    Without a stream the queue's room is not looked at. The caller releases `lock`.
    """
    while True:
      self.lock.acquire()
      try:
        if self.lost is not None or os.getpid() != self._pid: self.check_usable()
        ring, arguments = queue.ring, self.kernargs
        if stream is None: words = 0
        elif self._dependencies: words = queue.words_for(stream, len(self._dependencies) + 1)
        else: words = stream.room or queue.room_for(stream)
        value = arguments.busy_until(nbytes) if arguments.at + nbytes + 63 > arguments.end and nbytes else 0
        room = ring.free_to - ring.at >= words or ring.has_room(words)
        if room and (not value or self._done[0] >= value): return
      except BaseException:
        self.lock.release()
        raise
      self.lock.release()
      if room: self.wait(value)
      else: self._wait_for_room(queue, words)

  def _wait_for_room(self, queue: HardwareQueue, words: int) -> None:
    try: queue.ring.wait_for_room(words, self.patience(), queue.name)
    except WaitTimeout:
      self.raise_faults()
      raise

  def submit(self, queue: HardwareQueue, stream: BoundStream) -> int:
    """Queue the stream behind all work queued so far; returns the timeline value that it will write."""
    self.enter(queue, stream)
    try: return self.submit_entered(queue, stream)
    finally: self.lock.release()

  def submit_entered(self, queue: HardwareQueue, stream: BoundStream) -> int:
    """`submit` for who has entered with the stream."""
    timeline = self.timeline
    before = timeline.last
    value = timeline.next()
    stream.set("timeline", value)
    waits: Iterable[tuple[int, int]] = ()
    if queue is not self._last_queue or self._dependencies: waits = self._waits(queue, before)
    at = queue.ring.at
    try: queue.submit(stream, value, waits, self.timeout_s)
    except BaseException:
      if queue.ring.at == at: timeline.last = before  # nothing was written: nobody will reach the value
      else: self._unsure = True
      raise
    self._last_queue = queue
    return value

  def submit_words(self, words: Sequence[int], copies: bool = False) -> int:
    """Queue words of the caller's own making, on the compute or the copy queue, behind all work queued so far; returns
    the timeline value that is written when they are done. The caller answers for what they do."""
    queue, stream = self.copier if copies else self.compute, self.own_stream(words, copies)
    self.enter(queue, stream)
    try:
      self.state_unknown()
      return self.submit_entered(queue, stream)
    finally: self.lock.release()

  def alloc_for_words(self, nbytes: int) -> Allocation:
    """As `alloc`, of memory that all packets and methods can name: some have addresses of fewer bits than kernels."""
    return self.alloc(nbytes)

  def state_unknown(self) -> None:
    """Somebody else sets what launches had left out since the queue held it."""

  def claim(self) -> int:
    """The timeline's next value, for a submission that its caller, who has entered, makes himself at once."""
    return self.timeline.next()

  def abandon(self) -> None:
    """Nobody may write a value that was claimed: the next wait sees to it that a later one comes."""
    self._unsure = True

  def _waits(self, queue: HardwareQueue, before: int) -> list[tuple[int, int]]:
    waits = [(signal.address, value) for signal, value in self._dependencies.drain()]
    # A copy engine that comes after others forgets what caches hold with its wait (`wait_stream`), so that one is there
    # also when the time has come.
    if queue is not self._last_queue and (queue is self.copier or self._done[0] < before):
      waits.append((self.timeline.signal.address, before))
    return waits

  def depend_on(self, signal: Signal, value: int) -> None:
    """The next submission, on any queue, waits until the signal's low dword is at least that of `value`."""
    with self.lock: self._dependencies.add(signal, value)

  def synchronize(self) -> None:
    if self._unsure: self._settle()
    self.wait(self.timeline.last)

  def _settle(self) -> None:
    """After an interrupted submission: one more, whose value is reached."""
    self._unsure = False
    self.submit(self.compute, self.compute_marker())

  def wait(self, value: int) -> None:
    """Wait until the timeline reaches `value`. Raises what stopped the device, or WaitTimeout."""
    if self._done[0] < value: self._wait_slowly(value)
    elif self._closing: self.check_usable()  # `close` has moved the timeline to its end: nothing is known of the work

  def _wait_slowly(self, value: int) -> None:
    if self.lost is not None or os.getpid() != self._pid: self.check_usable()
    words, port, timeout_s = self._done, self.port, self.patience() if self._limits else self.timeout_s
    def done() -> bool: return bool(words[0] >= value) or self._closing
    start = port.now_ns()
    first = min(_POLL_S, timeout_s)
    if not port.wait(done, first):
      waited = (port.now_ns() - start) / 1e9
      over = waited < first / 2  # the port gave up before the time: nothing can change any more, but by other threads
      if not (over and self._wait_out(done, timeout_s)): self._sleep_until(done, value, start, over)
    if self._closing: self.check_usable()  # its timeline was moved to its end to let go of who waits

  def _wait_out(self, done: Callable[[], bool], timeout_s: float) -> bool:
    """Wait for all the time that there is, so that what hangs is told; faults end it. False when it did not help."""
    part = min(timeout_s, _PART_S)
    for _ in range(max(int(timeout_s / part), 3)):  # a port may give up early to have faults looked at
      if self.port.wait(done, part): return True
      self.raise_faults()
    return False

  def _sleep_until(self, done: Callable[[], bool], value: int, start: int, over: bool) -> None:
    """The rest of a wait that began at `start`; with `over` nothing can change any more."""
    timeout_s, waited = self.patience(), (self.port.now_ns() - start) / 1e9
    while not done():
      self.raise_faults()
      if over or waited >= timeout_s: raise self.examined(self.timeout_error(value, max(waited, timeout_s)))
      self.sleep(min(_SLEEP_S, timeout_s - waited))
      waited = (self.port.now_ns() - start) / 1e9

  def examined(self, error: E) -> E:
    """The error, with what a doctor that was handed in makes of the queues."""
    at = error.address if isinstance(error, PageFault) else None
    if self.examine is not None: error.facts = (*error.facts, *self.examine(self, at))
    return error

  # ---- for tools, reports and tests

  def last_submission(self) -> list[str]:
    """The packets or methods of the last compute submission, one a line."""
    return self.compute.text_of(self.compute.history[-1]) if self.compute.history else []

  def new_signal(self) -> Signal:
    """A signal that queues of this device can wait for (`wait_for`) and the host can set."""
    return self.signals.take()

  def wait_for(self, signal: Signal, value: int) -> None:
    """Work queued after this starts when the signal's value (low dword) is at least `value`."""
    self.depend_on(signal, value)
    self.submit(self.compute, self.compute_marker("wait for signal"))

  # ---- the end

  def close(self) -> None:
    """Wait a little for the queued work, then give everything back. Warns of work that is dropped."""
    with self.lock:
      if self._closed: return
      self._closed = self._closing = True
      fine = self.lost is None
      self.lost = self.lost or DeviceError("the device was closed", where=self.name, hint="open it again")
    if self.port.pid() != self._pid: return  # a fork: everything belongs to the parent
    last = self.timeline.last
    if fine and not self._drain(last):
      warnings.warn(f"{self.name} was closed before its work was done: {self._why(last)}", RuntimeWarning, stacklevel=2)
    self.timeline.signal.value = last  # peers and threads may wait for work that is dropped
    for peer in list(self._peers):
      with suppress(Error): peer.part_from(self)
    with self.copying, self.memory, self.lock: self.take_down()
    self.movers.close()

  def part_from(self, peer: QueuedRuntime) -> None:
    """The peer goes: queues of this device wait for its signals no more. Its timeline stands at its end."""
    self._peers.discard(peer)
    with self.lock: self._dependencies.drop(peer.signals)
    if self.lost is None: self.synchronize()

  def _drain(self, last: int) -> bool:
    """Wait for the queued work, as long as there is hope; whether it is done."""
    words, looks = self._done, int(min(self.timeout_s, CLOSE_TIMEOUT_S) / _LOOK_S) + 1
    for _ in range(looks):
      if self.port.wait(lambda: bool(words[0] >= last), _LOOK_S): return True
      if self.stopped(): break
    return bool(words[0] >= last)

  def _why(self, last: int) -> str:
    """What stopped the device, or how far it has come."""
    closed, self.lost = self.lost, None
    try: self.raise_faults()
    except Error as error: return str(error).partition("\n")[0]
    finally: self.lost = closed
    return f"its timeline is at {self._done[0]} of {last}"

  # ---- copies

  def _copy(self, destination: int, source: int, nbytes: int) -> int:
    stream = self.copy_stream
    self.enter(self.copier, stream)
    try:
      stream.set("destination", destination)
      stream.set("source", source)
      stream.set("count", nbytes - self.copy_counts_from)
      return self.submit_entered(self.copier, stream)
    finally: self.lock.release()

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    with self.copying: self._copyin(dst, data)

  def _copyin(self, dst: Allocation, data: memoryview) -> None:
    source = data.cast("B") if data.format != "B" or data.ndim != 1 else data
    address = self._range(dst, len(source), "copyin")
    if len(source) <= self.host_writes and self._store_at_once(dst, source): return
    bounce, movers = self.bounce, self.movers
    beside, filling = min(movers.threads, bounce.halves - 1), deque[tuple[BounceHalf, int, int]]()

    def send() -> None:
      half, at, size = filling.popleft()
      half.moved()
      half.busy_until = self._copy(address + at, half.address, size)

    try:
      for at in range(0, len(source), bounce.half_bytes):
        if len(filling) == beside: send()
        half, part = bounce.take(), source[at:at + bounce.half_bytes]
        half.moving = movers.move(half.memory[:len(part)], part)
        filling.append((half, at, len(part)))
      while filling: send()
    finally: bounce.settle()

  def _store_at_once(self, dst: Allocation, source: memoryview) -> bool:
    """The host stores bytes itself, where it sees the memory and all queued work is done."""
    view = self.host_view(dst)
    if view is None: return False
    with self.lock:
      if self._done[0] < self.timeline.last or self._unsure or self._dependencies: return False
      view[:len(source)] = source
      self.flush_host_writes()
    return True

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    with self.copying: self._copyout(dst, src)

  def _copyout(self, dst: memoryview, src: Allocation) -> None:
    target = dst.cast("B") if dst.format != "B" or dst.ndim != 1 else dst
    address = self._range(src, len(target), "copyout")
    if len(target) <= self.host_reads and (view := self.host_view(src)) is not None:
      self.synchronize()
      target[:] = view[:len(target)]
      return
    bounce, movers, travelling = self.bounce, self.movers, deque[tuple[BounceHalf, int, int]]()
    beside = bounce.halves if movers.threads == 1 else max(bounce.halves - movers.threads, 1)

    def land() -> None:
      half, at, size = travelling.popleft()
      self.wait(half.busy_until)
      half.moving = movers.move(target[at:at + size], half.memory[:size])

    try:
      for at in range(0, len(target), bounce.half_bytes):
        if len(travelling) == beside: land()
        half = bounce.take()
        size = min(bounce.half_bytes, len(target) - at)
        half.busy_until = self._copy(half.address, address + at, size)
        travelling.append((half, at, size))
      while travelling: land()
    finally: bounce.settle()

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    to, source = self._range(dst, nbytes, "copy to"), self._range(src, nbytes, "copy from")
    owner = self.reach(src)
    if owner is not self:
      if owner._unsure: owner._settle()
      self.depend_on(owner.timeline.signal, owner.timeline.last)
    value, done = self.timeline.last, self.copy_by_kernel(to, source, nbytes) if owner is self else 0
    for at in range(done, nbytes, self.max_copy_bytes):
      value = self._copy(to + at, source + at, min(self.max_copy_bytes, nbytes - at))
    # the source may be written again only after the copy
    if owner is not self: owner.depend_on(self.timeline.signal, value)

  def _range(self, allocation: Allocation, nbytes: int, what: str) -> int:
    if self.lost is not None or os.getpid() != self._pid: self.check_usable()
    if nbytes > allocation.size:
      raise InvalidArgument(f"{what} of {nbytes:,} bytes, but the allocation has {allocation.size:,}", where=self.name)
    if allocation.address is None:
      raise InvalidArgument(f"{what}: the allocation has no address (was it freed?)", where=self.name)
    return allocation.address
