"""Channels: a ring of GPFIFO entries in memory, the host engine that reads it, and the engine behind.

A doorbell says that GP_PUT in the channel's USERD has moved. The host engine fetches entries, tells GP_GET as it does,
and decodes pushbuffers into methods (`host.py`). A method sequence may go on in the next piece. After `dev_pbdma.ref`
and `dev_ram.ref` of GA100.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.autogen import nv_c56f as host_class
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import DecodeError, Error, Interrupted, MachineFault, PageFault
from tinyhw.core.kept import Kept
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.mock import late
from tinyhw.mock.nv.chip import faults
from tinyhw.mock.nv.chip.caches import Caches
from tinyhw.mock.nv.chip.compute import ComputeEngine
from tinyhw.mock.nv.chip.copy import CopyEngine
from tinyhw.mock.nv.chip.engine import Engine
from tinyhw.mock.nv.chip.host import Host
from tinyhw.mock.nv.chip.jobs import Job, Jobs
from tinyhw.mock.running import Standing, Wait
from tinyhw.wire import gpfifo, methods
from tinyhw.wire.gpfifo import Notification, Userd

if TYPE_CHECKING:
  from tinyhw.emulator.schedule import Idle
  from tinyhw.mock.draws import Draws
  from tinyhw.mock.nv.machine import NvGpu

USERD_SIZE: Final = ctypes.sizeof(Userd)
_OFFSETS: Final[Any] = Userd
_GET: Final = _OFFSETS.GPGet.offset >> 2
_PUT: Final = _OFFSETS.GPPut.offset >> 2
_SOFTWARE: Final = 5  # subchannels from here on are for methods that software handles
_COMPUTE: Final = 1  # the subchannel of compute on the graphics engine's runlist
_COPY: Final = 4
_ADDRESSES: Final = gpfifo.END


_HEADERS: Kept[int, tuple[Any, int, int, int]] = Kept(4096)  # a memo


def _header(word: int) -> tuple[Any, int, int, int] | None:
  """(header, subchannel, method, words of data or the data itself) of a word; None for one that is no header."""
  header = methods.header(word)
  if header is None:
    return None
  fields = header.decode(word)
  method = fields.ADDRESS << 2
  if header is methods.IMMD:
    found = header, fields.SUBCHANNEL, method, fields.DATA
  else:
    steps = {methods.INCR: fields.COUNT, methods.ONEINCR: min(fields.COUNT, 2)}.get(header, 1)
    if method + 4 * max(steps - 1, 0) >= methods.METHODS_END:
      raise faults.host("PBENTRY", f"{fields!r} passes the last method")
    found = header, fields.SUBCHANNEL, method, fields.COUNT
  return _HEADERS.keep(word, found)


class State(Enum):
  """READY runs when its ring holds work; BLOCKED waits for memory; DEAD runs no more; IDLE was not scheduled yet."""

  IDLE = "not scheduled"
  READY = "ready"
  BLOCKED = "blocked"
  DEAD = "dead"


class Group:
  """Channels that share an engine's context (a TSG), and die together."""

  def __init__(self, kind: str) -> None:
    self.kind = kind
    self.channels: list[Channel] = []
    self.scheduled = False

  def fail(self, error: Error, culprit: Channel) -> None:
    """One channel's error ends them all."""
    for channel in [*self.channels]:
      channel.end(error, culprit is channel)


class Channel:
  """See the module. `kind` is "compute" or "copy"; `classes` the ids of its engine's classes; `notifier` is where an
  error is told (region, offset), `userd` where pointers are."""

  def __init__(self, gpu: NvGpu, group: Group, number: int, space: AddressSpace, ring: int, entries: int,
               userd: tuple[Region, int], notifier: tuple[Region, int] | None, classes: Sequence[int],
               engine_number: int) -> None:
    self.gpu, self.group, self.machine = gpu, group, gpu.machine
    self.number, self.space, self.ring, self.entries, self.notifier = number, space, ring, entries, notifier
    self.kind, self.classes, self.engine_number = group.kind, tuple(classes), engine_number
    self.name = f"GPU{gpu.index}.channel.{number}"
    region, offset = userd
    self._userd = region.u8[offset : offset + USERD_SIZE].view(np.uint32).data
    self.state = State.IDLE
    self.get = self.put = 0
    self.wait: Wait | None = None
    self.error: Error | None = None
    self.rc = 0  # the error's number, once there was one
    self.fault_pc: int | None = None
    self.jobs = Jobs()
    self.images = gpu.images(space)
    self.waits_for_idle = False
    self.engines: dict[int, Engine] = {}
    self.host = Host(self)
    self.caches = Caches(self)
    self.unregistered = False  # UVM owns its page tables, and has not been told of it
    self.interrupts = 0
    self.packets = 0
    self._words: list[int] = []  # the piece of the pushbuffer in execution
    self._at = self._address = 0
    self._header: Any = None  # the sequence in execution: its header, and how many words it still has
    self._method = self._left = self._subchannel = 0
    self._active = True  # whether the sub-device mask has this GPU
    self._mask = 0xFFF
    self._kept_mask = 0xFFF
    self._queued = self._fetched = 0  # entries of the ring, all that there ever were
    self._late = late.of(self.machine, self.name, lambda: self.space.read(self.ring, self.entries * gpfifo.SIZE))
    self._rung: deque[tuple[int, int]] = deque()  # (entries queued, thread) of doorbells whose entries are not fetched
    self.by: int | None = None  # the thread that queued the entry in execution
    group.channels.append(self)
    if group.scheduled:
      self.schedule()

  # ---- control

  def schedule(self) -> None:
    """The kernel driver puts the channel on its runlist: doorbells count from now on."""
    if self.state is State.IDLE:
      self.state = State.READY if self.wait is None else State.BLOCKED

  def unschedule(self) -> None:
    """The kernel driver takes the channel off its runlist; it goes on when it is scheduled again."""
    if self.state in (State.READY, State.BLOCKED):
      self.state = State.IDLE

  def ring_doorbell(self) -> None:
    """GP_PUT may have moved."""
    put = int(self._userd[_PUT])
    self.machine.trace_fast(self.name, "doorbell", put)
    if self.state is State.DEAD:
      return
    if self.state is State.IDLE:
      self.machine.doubt(f"{self.name}: a doorbell before the channel was scheduled is lost")
      return
    if self.unregistered:
      self.machine.doubt(f"{self.name}: UVM_REGISTER_CHANNEL was not called, which maps the channel's context")
    if put >= self.entries:
      return self.fail(faults.host("GPPTR", f"GP_PUT {put} in a ring of {self.entries} entries"))
    self._queued += (put - self.put) % self.entries
    self.put = put
    if self._late is not None: self._late.rung()
    me = threading.get_ident()
    if self._rung and self._rung[-1][1] == me:
      self._rung.pop()
    self._rung.append((self._queued, me))

  def queued_by(self) -> int | None:
    """The thread that queued what runs: the first job, or the entry in execution."""
    return self.jobs.queue[0].by if self.jobs.queue else self.by

  # ---- the scheduler's view

  @property
  def busy(self) -> bool:
    """Whether something of it runs."""
    return bool(self.jobs)

  @property
  def dispatching(self) -> bool:
    return any(job.dispatch for job in self.jobs.queue)

  def runnable(self) -> bool:
    """Whether a step would make progress."""
    if self.state is State.DEAD or self.state is State.IDLE:
      return False
    return bool(self.jobs.queue and self.jobs.movable()) or self._host_ready()

  def _host_ready(self) -> bool:
    if self.waits_for_idle and self.jobs:
      return False
    if self.state is State.READY:
      return self._at < len(self._words) or self.get != self.put
    if self.wait is None:
      return False
    try:
      return self.wait.met()
    except PageFault as fault:
      self.fail(fault)
      return False

  def run(self, packets: int) -> None:
    """So many turns: a method sequence, or a turn of one of the engine's jobs, as the seed says."""
    rng, jobs = self.machine.rng, self.jobs
    for _ in range(packets):
      if self.state is not State.READY and self.state is not State.BLOCKED:
        break
      try:
        movable, ready = jobs.movable() if jobs.queue else (), self._host_ready()
        if self.machine.draws is not None:
          if not self._drawn(movable, ready, self.machine.draws): break
        elif movable and (not ready or rng.random() < 0.5):
          self._turn(movable[0] if len(movable) == 1 else rng.choice(movable))
        elif ready:
          self._go_on()
        else:
          break
      except BaseException as raised:
        if not self._stopped_by(raised):
          raise

  def _drawn(self, movable: Sequence[Job], ready: bool, draws: Draws) -> bool:
    """A turn of who is drawn: a job of the engine, the first by default, or the next method."""
    choices = len(movable) + ready
    at = draws.number(self.name, "in the place of the first job: another one, or the next method", choices,
                      0.5) if choices > 1 else 0
    if at < len(movable): self._turn(movable[at])
    elif ready: self._go_on()
    return choices > 0

  def single(self) -> None:
    """A turn of a job that can have one, else one entry or method sequence."""
    movable = self.jobs.movable() if self.jobs.queue else ()
    try:
      if movable:
        self._turn(movable[0])
      elif self._host_ready():
        self._go_on()
    except BaseException as raised:
      if not self._stopped_by(raised):
        raise

  def upcoming(self) -> int | None:
    """Address of the entry or word that is read next, or of the last one where that waits or has stopped the channel.
    """
    if self._words and (self.wait is not None or self.error is not None or self._at and self.waits_for_idle):
      return self._address + 4 * (self._at - 1)
    if self._at < len(self._words):
      return self._address + 4 * self._at
    return self.ring + self.get * gpfifo.SIZE if self.get != self.put else None

  def stands(self) -> Standing:
    """Where it stands, for a debugger."""
    idle = self.standing()
    why = str(self.error or self.wait or ("" if idle is None else f"a launch waits for {idle.polls[0]}, to change"))
    return Standing(self.name, self.gpu.index, self.ring, self.upcoming(), self.state.value, why, self.runnable(),
                    self.error is not None, self.movable())

  def movable(self) -> bool:
    """Whether a job can go on."""
    return self.state in (State.READY, State.BLOCKED) and bool(self.jobs.queue and self.jobs.movable())

  def values(self) -> dict[str, str]:
    """The methods that the engines hold for launches and copies to come, with their fields."""
    return {name: str(sent) for engine in self.engines.values() for name, sent in sorted(engine.state.items())}

  def _stopped_by(self, raised: BaseException) -> bool:
    """Stop for what was raised. False where it is the caller's to hear of: what the mock does not model."""
    if isinstance(raised, DecodeError):
      raised = faults.host("PBENTRY", str(raised))
    if isinstance(raised, Error):
      self.fail(raised)
      return isinstance(raised, MachineFault)
    self.fail(MachineFault(f"stopped in the middle of a method by {type(raised).__name__}"))
    return False

  def standing(self) -> Idle | None:
    """What the threads of a launch wait for where none can go on."""
    job = self.jobs.standing()
    return None if job is None else job.idle

  # ---- jobs

  def begin(self, job: Job) -> None:
    """The engine begins something."""
    self.jobs.add(job)

  def _turn(self, job: Job) -> None:
    """A turn of a job."""
    try:
      idle = next(job.turns)
    except StopIteration:
      self.jobs.queue.remove(job)
    except Interrupted as why:
      self.jobs.queue.remove(job)  # it counts as ended: what was queued behind it goes on
      self.machine.taken_off(self, job.terms, why)
    else:
      job.idle = idle
      if idle is not None and idle.hopeless():
        raise idle.error()
    if not self.jobs:
      self.waits_for_idle = False

  def wait_for_idle(self) -> None:
    """Methods behind this one wait for the end of what the engine does."""
    self.waits_for_idle = bool(self.jobs)

  # ---- the host engine

  def _go_on(self) -> None:
    if self.state is State.BLOCKED:
      self.wait, self.state = None, State.READY
      self.host.resume()
      return
    if self._at >= len(self._words):
      self._fetch()
    else:
      self._step()

  def _fetch(self) -> None:
    """Take the next entry of the ring. Its place is the driver's again at once, and so GP_GET says."""
    raw = self._late.read(self.get * gpfifo.SIZE, gpfifo.SIZE) if self._late is not None else None
    value = (int.from_bytes(raw, "little") if raw is not None else
             self.space.load(self.ring + self.get * gpfifo.SIZE, gpfifo.SIZE))
    index, self.get = self.get, (self.get + 1) % self.entries
    self._userd[_GET] = self.get
    self._fetched += 1
    while self._rung and self._rung[0][0] < self._fetched:
      self._rung.popleft()
    self.by = self._rung[0][1] if self._rung else None
    machine = self.machine
    try:
      entry = gpfifo.piece(value) or gpfifo.decode(value)
    except DecodeError as error:
      raise faults.host("GPENTRY", f"entry {index}: {error}") from None
    if machine.trace.enabled:
      machine.trace.add(self.name, "entry", str(gpfifo.decode(value)), index=index)
    machine.clock.advance(machine.packet_ns)
    if isinstance(entry, gpfifo.Control):
      if entry.opcode != host_class.GP_ENTRY1_OPCODE.NOP:
        raise faults.host("GPENTRY", f"entry {index}: {entry}")
      return
    if isinstance(entry, gpfifo.Segment):
      if entry.conditional and not self._active:
        return
      entry = entry.address, entry.dwords
    address, dwords = entry
    if address + 4 * dwords >= _ADDRESSES:
      raise faults.host("GPENTRY", f"entry {index}: {gpfifo.decode(value)} passes the end of addresses")
    raw = self.space.read(address, 4 * dwords)
    self._words, self._at, self._address = memoryview(raw).cast("I").tolist(), 0, address

  def _step(self) -> None:
    """A header with its data, or what is left of a sequence."""
    words, at = self._words, self._at
    if not self._left:
      word = words[at]
      self._at = at + 1
      if not self._active:
        return self._skip(word)
      self.machine.clock.advance(self.machine.packet_ns)
      self.packets += 1
      found = _HEADERS.get(word) or _header(word)
      if found is None:
        return self._control(word)
      self._header, self._subchannel, self._method, count = found
      if self._header is methods.IMMD:
        return self._send(self._method, count)
      self._left = count
    end, increasing, once = len(words), methods.INCR, methods.ONEINCR
    while self._left and (at := self._at) < end and self.state is State.READY and not (
        self.waits_for_idle and self.jobs.queue):
      method = self._method
      self._at = at + 1
      self._left -= 1
      if self._header is increasing:
        self._method = method + 4
      elif self._header is once:
        self._header = methods.NONINCR
        self._method = method + 4
      self._send(method, words[at])

  def _skip(self, word: int) -> None:
    """Words of a piece that the sub-device mask leaves out: headers are read for their length only."""
    header = methods.header(word)
    if header is None:
      return self._control(word)
    if header is not methods.IMMD:
      self._at += header.decode(word).COUNT

  def _control(self, word: int) -> None:
    found = methods.control(word)
    if found is None:
      raise faults.host("PBENTRY", f"{word:#010x} at {self._address + 4 * (self._at - 1):#x} is no header of a method "
                        "and no control word")
    if isinstance(found, host_class.DMA_SET_SUBDEVICE_MASK):
      self._mask = found.VALUE
    elif isinstance(found, host_class.DMA_STORE_SUBDEVICE_MASK):
      self._kept_mask = found.VALUE
    elif isinstance(found, host_class.DMA_USE_SUBDEVICE_MASK):
      self._mask = self._kept_mask
    elif isinstance(found, host_class.DMA_ENDSEG):
      self._at = len(self._words)
    self._active = bool(self._mask & 1)  # a GPU that is not linked to others is sub-device 0

  def _send(self, method: int, value: int) -> None:
    """One method, to the host engine or to the one behind the subchannel."""
    subchannel = self._subchannel
    if self.machine.trace.enabled:
      self.machine.trace.add(self.name, "method", self._text(subchannel, method, value))
    self._last = subchannel, method, value
    if method < methods.HOST_END and method != host_class.SET_OBJECT.OFFSET:
      return self.host.method(method, value)
    if subchannel >= _SOFTWARE:
      raise faults.host("DEVICE", f"subchannel {subchannel} is for software methods, and none is registered")
    if method == host_class.SET_OBJECT.OFFSET:
      return self._set_object(subchannel, value)
    engine = self.engines.get(self._slot(subchannel))
    if engine is None:
      engine = self._bind(subchannel, None)
    engine.method(method, value)

  def _slot(self, subchannel: int) -> int:
    """On copy engines' runlists the subchannel is ignored; on the graphics engine's it names an engine."""
    return _COPY if self.kind == "copy" else subchannel

  def _set_object(self, subchannel: int, value: int) -> None:
    try:
      class_id = int(host_class.SET_OBJECT.decode(value).NVCLASS)
    except DecodeError as error:
      raise faults.host("METHOD", f"SET_OBJECT: {error.message}") from None
    self._bind(subchannel, class_id)

  def _bind(self, subchannel: int, class_id: int | None) -> Engine:
    """The engine of a subchannel; with a class, after the check that SET_OBJECT makes."""
    slot = self._slot(subchannel)
    kinds = {0xB5: "copy", 0xC0: "compute"}
    wanted = "copy" if slot == _COPY else "compute" if slot == _COMPUTE else None
    fitting = [c for c in self.classes if kinds.get(c & 0xFF) == wanted]
    if class_id is not None and class_id not in fitting or not fitting:
      shown = "a method" if class_id is None else f"class {class_id:#06x}"
      if wanted == "copy":
        raise faults.host("HCE_ILLEGAL_CLASS", f"{shown} on subchannel {subchannel}, where copy classes "
                          f"{', '.join(map(hex, fitting)) or 'none'} are")
      if not self.classes:
        raise faults.host("CTXNOTVALID", f"{shown} on a channel without an engine object")
      raise faults.compute_class(f"{shown} on subchannel {subchannel} of a channel with classes "
                                 f"{', '.join(map(hex, self.classes)) or 'none'}")
    found = self.engines.get(slot)
    chosen = fitting[0] if class_id is None else class_id
    if found is None or found.class_id != chosen:
      found = self.engines[slot] = (CopyEngine(self, chosen, self.engine_number) if wanted == "copy" else
                                    ComputeEngine(self, chosen))
    return found

  def block(self, wait: Wait) -> None:
    """Park the channel until the condition holds."""
    self.wait, self.state = wait, State.BLOCKED

  def interrupt(self, what: str) -> None:
    """A non-stalling interrupt: events of the channel's clients are signalled."""
    self.interrupts += 1
    self.machine.trace_fast(self.name, f"interrupt {what}", self.interrupts)
    self.gpu.interrupted(f"copy{self.engine_number}" if self.kind == "copy" else self.kind)

  # ---- the end

  def fail(self, error: Error) -> None:
    """End the group for good, and tell the client as the kernel driver would."""
    if self.error is not None:
      return
    if isinstance(error, MachineFault): self.explain(error)  # threads that stand have raised nothing themselves
    self.group.fail(error, self)

  def explain(self, fault: MachineFault) -> None:
    """Say of a place where threads stand which line it is."""
    job = self.jobs.standing()
    if job is not None and job.explain is not None: job.explain(fault)

  def end(self, error: Error, culprit: bool) -> None:
    """This channel is dead: its notifier says so. `culprit` is the one at fault."""
    if self.state is State.DEAD:
      return
    self.error, self.wait, self.state = error.again(), None, State.DEAD  # one that was raised keeps its frames
    self.rc = faults.code_of(error)
    self.jobs.clear()
    if self.notifier is not None:
      region, offset = self.notifier
      now = self.gpu.timer()
      told = Notification(now & 0xFFFF_FFFF, now >> 32 & 0xFFFF_FFFF, self.rc, 0, 0xFFFF)
      region.u8[offset : offset + ctypes.sizeof(told)] = np.frombuffer(bytes(told), np.uint8)
    if culprit:
      self.machine.channel_failed(self, error)

  def close(self) -> None:
    """The object is freed."""
    self.jobs.clear()
    self.state = State.DEAD
    if self in self.group.channels:
      self.group.channels.remove(self)

  # ---- for people

  def _text(self, subchannel: int, method: int, value: int) -> str:
    if method < methods.HOST_END:
      return methods.method_text(host_class, method, value)
    engine = self.engines.get(self._slot(subchannel))
    if engine is None:
      return f"subchannel {subchannel} {method:#06x}({value:#x})"
    return methods.method_text(engine.module, method, value)

  def doing(self) -> str:
    return self.method_text() if self.wait is None else str(self.wait)

  def method_text(self) -> str:
    """The method in execution, or the last one."""
    last = getattr(self, "_last", None)
    return "no method yet" if last is None else self._text(*last)

  def describe(self) -> str:
    """One line: state, pointers, what it waits for or why it stopped."""
    text = f"{self.name}: {self.state.value}, GP_GET {self.get}, GP_PUT {self.put}"
    if self.wait is not None:
      text += f"; {self.wait}"
    elif (idle := self.standing()) is not None:
      text += f"; a launch waits for {idle.polls[0]}, to change"
    if self.error is not None:
      text += f"; {self.error}"
    return text

  def snapshot(self) -> dict[str, Any]:
    """The channel's state as plain values, for comparisons."""
    return {"state": self.state.value, "get": self.get, "put": self.put, "packets": self.packets, "rc": self.rc,
            "wait": str(self.wait) if self.wait else None, "error": str(self.error) if self.error else None}


def error_name(code: int) -> str:
  """ROBUST_CHANNEL_... of a number."""
  return status.ERRORS.get(code, f"Xid {code}")
