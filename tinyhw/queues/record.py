"""A port that writes down what goes through it: `RecordingPort(port, recorder)`, the driver cannot tell.

A `Recorder` owns the file and may have several ports (AMD's and NVIDIA's of one process). At a doorbell it follows the
submission from the ring on, as the engine will, and keeps the words and the memory that they lead to: kernel
arguments, and each buffer that a pointer in packets or arguments names. A submission that comes again is known by its
words (`World.submits`), and where it leads by the bytes of its arguments. Contents go by their hash, chunk by chunk,
so what did not change costs a hash. What the device leaves behind is looked at when the program has waited; of that
only hashes are kept, since a replay makes it again. All is on file before the doorbell rings, so whatever ends the
process, what it submitted is there.

Memory that the host cannot see is filled by submissions, which are there; hashes of it are told only where who composes
hands in `peek`.

Threads may share it: one lock, held while an event is made. A forked child writes no more: it opens its devices anew,
with a capture of its own where its caller makes one.
"""
from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final, Protocol

import numpy as np

from tinyhw.core.port import Port, Protection
from tinyhw.queues.container import Writer, content_hash
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Close, Doorbell, Event, Ioctl, Mmap, Munmap, Note, Open, Program, Seen, Waited
from tinyhw.queues.vendors import new_world
from tinyhw.queues.world import PAGE, Allocation, Named, Queue, World

SMALL: Final = 1 << 16  # bytes of an allocation that is kept by pages
CHUNK: Final = 1 << 16  # bytes of a chunk of a larger one
REACHES: Final = 1 << 12  # submissions whose memory is known
SIGNALS: Final = 256  # signals that are looked at: those that submissions named last
_WAIT, _SIGNAL, _STAMP = Does.WAIT, Does.SIGNAL, Does.STAMP
_PLACE: Final = itemgetter(0, 1)  # of a row of memory

Peek = Callable[[int, int, int], memoryview | None]
"""(GPU by its place among those in use, address, bytes) -> device memory that the host has not mapped, on a mock."""


class Code(Protocol):
  """Code in GPU memory; `kernels` are rows of (name, entry, argument bytes)."""
  address: int
  size: int
  name: str
  kind: str
  file: bytes
  kernels: tuple[tuple[str, int, int], ...]


Codes = Callable[[str], Iterable[list[Code]]]
"""What lies in the memory of each of a vendor's devices as code: a device's list only grows."""


@dataclass(slots=True)
class Part:
  """What submissions name of an allocation: ranges from its start, or all of it where an address alone is named."""
  made: Allocation
  ranges: set[tuple[int, int]] = field(default_factory=set)
  whole: bool = False


@dataclass(slots=True)
class Looked:
  """What was found in an allocation so far: hashes of its chunks of `step` bytes (by their first byte), of all of it,
  and of the range that was looked at last. `view` is where the process has it mapped, at `host`, until something is
  unmapped. `when` says when all of it was looked at, where it can only change with time."""
  step: int = 0
  known: dict[int, bytes] = field(default_factory=dict)
  all: bytes = b""
  range: tuple[int, int, bytes] | None = None
  view: memoryview | None = None
  host: int = 0
  when: tuple[int, int] | None = None


Parts = dict[int, Part]
"""By allocation."""


@dataclass(slots=True)
class Reach:
  """Where a submission leads: what it `may` change, all that is to be looked at (`whole` allocations by
  their `keys`, `parts` of others), and the keys of all in order."""
  may: Parts
  whole: list[tuple[Part, Looked]]
  keys: set[int]
  parts: Parts
  touched: list[int]


@dataclass(slots=True)
class Pending:
  """A submission whose end was not seen: where it signals (bytes by address), and what it may change."""
  number: int
  signals: dict[int, int] = field(default_factory=dict)
  touched: Parts = field(default_factory=dict)


class Recorder:
  """The file, and what is known of the process; see the module."""

  def __init__(self, path: str | os.PathLike[str], head: dict[str, Any] | None = None, *,
               codes: Codes | None = None) -> None:
    self._lock = threading.RLock()
    self._pid = os.getpid()
    self._writer = Writer(path, head or {})
    self._peeks: dict[str, Peek] = {}
    self._codes = codes
    self._worlds: dict[str, World] = {}
    self._threads: dict[int, int] = {}
    self._looked: dict[str, dict[int, Looked]] = {}  # by vendor and allocation
    self._still: dict[str, Callable[[], int]] = {}
    self._calls = 0  # ioctls so far
    self._argument_bytes: dict[tuple[str, int], int] = {}  # of kernels, by their entries
    self._pending: dict[str, list[Pending]] = {}  # submissions whose end was not seen yet
    self._values: dict[tuple[str, int], dict[int, int]] = {}  # signalled at an address: value -> submission
    self._reaches: dict[tuple[Any, ...], Reach] = {}  # by plan and arguments, as long as memory is where it is
    self._versions: dict[str, int] = {}  # of the worlds that these are of
    self._loaded: dict[tuple[str, int], tuple[list[Code], int]] = {}  # what `codes` gave last, how much of it is told
    self._signals: set[tuple[str, int]] = set()  # pages that submissions signal into
    self._named: dict[str, dict[int, int]] = {}  # bytes of a signal, by vendor and address: those that are looked at
    self._told: dict[str, list[list[int]]] = {}  # their values as they were told last
    self._ports: dict[str, Port] = {}
    self._start = time.perf_counter_ns()
    self.events = 0
    self.submissions = 0

  @property
  def path(self) -> str: return str(self._writer.path)

  @property
  def bytes_stored(self) -> int: return self._writer.bytes_stored

  def port(self, port: Port, vendor: str, peek: Peek | None = None,
           still: Callable[[], int] | None = None) -> RecordingPort:
    """A port of "amd" or "nv" that tells this recorder. `peek` shows a mock's device memory, which is as it was as long
    as `still` gives the same number, and changes while it gives -1."""
    with self._lock:
      world = self._worlds.setdefault(vendor, new_world(vendor))
      self._ports[vendor] = port
      if peek is not None: self._peeks[vendor] = peek
      if still is not None: self._still[vendor] = still
    return RecordingPort(port, self, vendor, world)

  def world(self, vendor: str) -> World:
    """What a vendor's calls have made so far."""
    with self._lock: return self._worlds.setdefault(vendor, new_world(vendor))

  def keep(self, content: bytes | memoryview) -> bytes:
    """Store a content; its hash."""
    name = content_hash(content)
    with self._lock:
      if self._mine: self._writer.blob(content, name)
    return name

  def note(self, kind: str, text: str) -> None:
    """Put a line of somebody's into the capture."""
    self.tell("", Note(kind=kind, text=text))

  def flush(self) -> None:
    """Have all that was told on file."""
    with self._lock:
      if self._mine: self._writer.flush()

  def close(self) -> None:
    """End the capture; safe to call twice. Ports go on without it."""
    with self._lock:
      if self._mine: self._writer.close()
      self._pid = -1

  # ---- for the ports

  @property
  def _mine(self) -> bool: return self._pid == os.getpid()

  def tell(self, vendor: str, event: Event, thread: int | None = None) -> None:
    """Put an event into the capture, behind the others; of another process's thread by its number."""
    with self._lock:
      if not self._mine: return
      event.at_ns = time.perf_counter_ns() - self._start
      event.thread = self._threads.setdefault(threading.get_ident() if thread is None else thread, len(self._threads))
      event.vendor = vendor
      if vendor:
        world = self._worlds[vendor]
        gone = len(world.freed)
        world.apply(event, self.events)
        if isinstance(event, Ioctl): self._calls += 1
        for made in world.freed[gone:]: self._looked.get(vendor, {}).pop(made.key, None)
        if len(world.freed) > gone and not isinstance(event, Seen): self._before_a_free(vendor, world, event)
      self._writer.event(event.row())
      self.events += 1

  def hides(self, vendor: str, address: int, length: int) -> None:
    """Addresses of the process are about to be given back: nothing is looked at there any more."""
    with self._lock:
      looked = self._looked.get(vendor, {})
      for made in self._worlds[vendor].mapped_from(address, length):
        if made.key in looked: looked[made.key].view = None

  def _rung(self, port: Port, vendor: str, address: int, value: int, nbytes: int) -> None:
    """A doorbell is about to ring."""
    with self._lock:
      if not self._mine: return
      world = self._worlds[vendor]
      event = Doorbell(address=address, value=value, nbytes=nbytes)
      queue = world.rung(address, value)
      if queue is not None:
        self._tell_programs(vendor)
        self._follow(port, vendor, world, queue, event)
      self.tell(vendor, event)
      self.submissions += queue is not None
      self._writer.flush()

  def _follow(self, port: Port, vendor: str, world: World, queue: Queue, event: Doorbell) -> None:
    def read(at: int, size: int) -> bytes | None: return self._read(port, vendor, world, at, size)
    event.queue = queue.key
    event.first, event.last = world.pending(queue, event.value, read)
    ring = [(at, read(at, size) or b"") for at, size in world.ring_pieces(queue, event.first, event.last)]
    queue.at = event.last
    found = world.submits(queue, ring, read)
    event.ring = [list(row) for row in ring]
    event.pieces = [list(row) for row in found.pieces]
    pending = Pending(self.submissions)
    signals = self._named.setdefault(vendor, {})
    for effect in found.effects:
      does, address = effect.does, effect.address
      if does is _WAIT or does is _SIGNAL:
        signals.pop(address, None)  # the last are kept
        signals[address] = effect.size
      if does is _SIGNAL or does is _STAMP: self._signals.add((vendor, address // PAGE))
      if does is _SIGNAL and not effect.compare:
        self._values.setdefault((vendor, address), {})[effect.value] = self.submissions
        pending.signals[address] = effect.size
    while len(signals) > SIGNALS: del signals[next(iter(signals))]
    reach, ranges = self._reached(port, vendor, world, found)
    event.touched = reach.touched
    event.signals = self._told[vendor] = self._look(port, vendor, world)
    event.pointers = [int.from_bytes(read(at, size) or b"", "little") for at, size in world.pointers(queue)]
    now = self._now(vendor)
    for part, looked in reach.whole:  # most are as they were
      if not part.made.host and now is not None and looked.when == now: continue
      view = looked.view
      if view is None or looked.host != part.made.host or content_hash(view) != looked.all:
        event.memory += self._changed(port, vendor, part, True)
    for part in _with(reach, ranges): event.memory += self._changed(port, vendor, part, True)
    if len(event.memory) > 1: event.memory.sort(key=_PLACE)
    pending.touched = reach.may
    self._pending.setdefault(vendor, []).append(pending)

  def _before_a_free(self, vendor: str, world: World, event: Event) -> None:
    """Memory was given back: what the host had seen by then says whether it was still in use."""
    port = self._ports.get(vendor)
    values = self._look(port, vendor, world) if port is not None else []
    if values == self._told.get(vendor, []): return
    self._told[vendor] = values
    self._writer.event(Seen(memory=[], signals=values, at_ns=event.at_ns, thread=event.thread, vendor=vendor).row())
    self.events += 1

  def _look(self, port: Port, vendor: str, world: World) -> list[list[int]]:
    """Values of the signals that submissions have named."""
    rows = []
    for address, size in self._named.get(vendor, {}).items():
      raw = self._read(port, vendor, world, address, size)
      if raw is not None and len(raw) == size: rows.append([address, size, int.from_bytes(raw, "little")])
    return rows

  def _reached(self, port: Port, vendor: str, world: World, found: Named) -> tuple[Reach, list[Part]]:
    """Where a submission leads, of arguments to what they point to as well; and the ranges of its arguments."""
    guessed = all(not size for _, size in found.launches)  # how many bytes the arguments have
    known = [self._argument_bytes.get((vendor, entry), 0) for entry, _ in found.launches] if guessed else []
    most = max(known, default=0) if all(known) else 0
    ranges, arguments = list[Part](), list[tuple[int, bytes | None]]()
    for address, size in found.roots:
      if not size: continue
      size = min(size, most) if most else size
      made = world.find(address)
      if made is None: continue
      at = address - made.address
      ranges.append(Part(made, {(at, min(at + size, made.size))}))
      arguments.append((made.key, self._read(port, vendor, world, address, min(size, made.size - at))))
    low, high = world.span
    if found.plan is None or any(low <= value < high for value in found.loose):
      return self._lead(vendor, world, found, arguments), ranges
    key = vendor, found.plan, *arguments
    if world.version != self._versions.get(vendor): self._reaches, self._versions[vendor] = {}, world.version
    reach = self._reaches.get(key)
    if reach is None:
      if len(self._reaches) >= REACHES: self._reaches.clear()
      reach = self._reaches[key] = self._lead(vendor, world, found, arguments)
    return reach, ranges

  def _lead(self, vendor: str, world: World, found: Named, arguments: list[tuple[int, bytes | None]]) -> Reach:
    """What a submission names without the ranges of its arguments, which are given as (allocation, bytes)."""
    reads, may = Parts(), Parts()
    exact: set[int] = set()
    for effect in found.effects:
      if not effect.size or effect.does in (Does.LAUNCH, Does.ACQUIRE, Does.RELEASE): continue
      exact.add(effect.address)
      _name(world, reads if effect.does in (Does.READ, Does.CALL) else may, effect.address, effect.size)
    for address, size in found.roots:
      if not size and address not in exact: _name(world, may, address, 0)
    low, high = world.span
    for _, raw in arguments:
      if not raw: continue
      words = np.frombuffer(raw, np.uint32, len(raw) // 4).astype(np.uint64)
      pointers = words[:-1] | words[1:] << np.uint64(32)
      for pointer in set(pointers[(pointers >= max(low, PAGE)) & (pointers < high)].tolist()):
        _name(world, may, pointer, 0)
    together = list(_together(reads, may))
    return Reach(may, [(p, self._of(vendor, p.made)) for p in together if p.whole],
                 {p.made.key for p in together if p.whole}, {p.made.key: p for p in together if not p.whole},
                 sorted({*reads, *may, *(key for key, _ in arguments)}))

  def _read(self, port: Port, vendor: str, world: World, address: int, size: int) -> bytes | None:
    made = world.find(address)
    if made is None or size <= 0: return None
    looked = self._of(vendor, made)
    view = looked.view if looked.host == made.host else None
    if view is None and (view := self._view(port, vendor, made, looked)) is None: return None
    at = address - made.address
    return bytes(view[at:at + size])

  def _of(self, vendor: str, made: Allocation) -> Looked:
    try: return self._looked[vendor][made.key]
    except KeyError: return self._looked.setdefault(vendor, {}).setdefault(made.key, Looked())

  def _view(self, port: Port, vendor: str, made: Allocation, looked: Looked) -> memoryview | None:
    """All of an allocation's bytes, where the host sees them."""
    if made.host:
      if looked.view is None or looked.host != made.host:
        looked.view, looked.host = port.memory(made.host, made.size), made.host
      return looked.view
    if not made.address or vendor not in self._peeks: return None
    return self._peeks[vendor](self._worlds[vendor].place(made), made.address, made.size)

  def _changed(self, port: Port, vendor: str, part: Part, content: bool) -> list[list[Any]]:
    """Rows of the chunks whose contents are others than the last time; with `content` they are stored too, where the
    host can have made them."""
    made, looked = part.made, self._of(vendor, part.made)
    now = None if made.host else self._now(vendor)
    if now is not None and looked.when == now: return []
    view = self._view(port, vendor, made, looked)
    if view is None: return []
    if part.whole:
      looked.when, before, looked.all = now, looked.all, content_hash(view)
      if before == looked.all: return []
    if not looked.step:  # what is named by ranges is small beside its allocation: arguments, what is copied by way of
      looked.step = CHUNK if part.whole and made.size > SMALL else PAGE
    rows: list[list[Any]] = []
    if part.whole: return self._range(vendor, made, looked, view, 0, made.size, content)
    for first, last in _chunks(part.ranges, looked.step, made.size):
      if last - first > looked.step:  # most is as it was
        name = first, last, content_hash(view[first:last])
        if looked.range == name: continue
        looked.range = name
      else: looked.range = None
      rows += self._range(vendor, made, looked, view, first, last, content)
    if rows: looked.all = b""
    return rows

  def _now(self, vendor: str) -> tuple[int, int] | None:
    """A time at which memory that the host has not mapped is as it is; None where nobody says."""
    still = self._still.get(vendor)
    if still is None or (runs := still()) < 0: return None
    return runs, self._calls

  def _range(self, vendor: str, made: Allocation, looked: Looked, view: memoryview, first: int, last: int,
             content: bool) -> list[list[Any]]:
    """Rows of a range of whole chunks."""
    step, known, hashed, rows = looked.step, looked.known, content_hash, list[list[Any]]()
    for at in range(first, last, step):
      chunk = view[at:at + step]
      name = hashed(chunk)
      if known.get(at) == name: continue
      known[at] = name
      if made.host and (content or self._has_signal(vendor, made.address + at, len(chunk))):
        self._writer.blob(chunk, name)
      rows.append([made.key, at, len(chunk), name])
    return rows

  def _has_signal(self, vendor: str, address: int, size: int) -> bool:
    """Whether submissions signal into a chunk: what they leave there is kept, since times are in it too."""
    return any((vendor, page) in self._signals for page in range(address // PAGE, -(-(address + size) // PAGE)))

  def _seen(self, port: Port, vendor: str) -> None:
    """The program has waited: look at what the submissions that have ended left behind, and no other may change."""
    with self._lock:
      if not self._mine: return
      values = self._look(port, vendor, self._worlds[vendor])
      told = values != self._told.get(vendor, [])
      self._told[vendor] = values
      open_, ended, over = list[Pending](), Parts(), dict[tuple[int, int], int]()
      for one in self._pending.get(vendor, ()):
        if all(self._over(port, vendor, place, over) >= one.number for place in one.signals.items()):
          for key, part in one.touched.items(): ended[key] = _both(ended.get(key, part), part)
        else: open_.append(one)
      self._pending[vendor] = open_
      for one in open_:
        for key in one.touched: ended.pop(key, None)
      rows = [row for part in ended.values() if part.made.freed_at < 0
              for row in self._changed(port, vendor, part, False)]
      if rows or told: self.tell(vendor, Seen(memory=rows, signals=values))

  def _over(self, port: Port, vendor: str, place: tuple[int, int], known: dict[tuple[int, int], int]) -> int:
    """The submission whose signal is at a place (address, bytes); -1 for none. `known`: those that were looked at."""
    if (found := known.get(place)) is not None: return found
    raw = self._read(port, vendor, self._worlds[vendor], *place)
    value = None if raw is None else int.from_bytes(raw, "little")
    values = self._values[vendor, place[0]]
    found = known[place] = -1 if value is None else values.get(value, -1)
    while values[first := next(iter(values))] < found: del values[first]  # signals before it are told by it
    return found

  def _tell_programs(self, vendor: str) -> None:
    """Name code that is new in GPU memory."""
    if self._codes is None: return
    for n, loaded in enumerate(self._codes(vendor)):
      before, told = self._loaded.get((vendor, n), (loaded, 0))
      if before is not loaded: told = 0  # another device has its place
      if told == len(loaded): continue
      self._loaded[vendor, n] = loaded, len(loaded)
      for code in loaded[told:]: self._tell_program(vendor, code)

  def _tell_program(self, vendor: str, code: Code) -> None:
    self._argument_bytes |= {(vendor, entry): size for _, entry, size in code.kernels}
    self._writer.blob(code.file, name := content_hash(code.file))
    self.tell(vendor, Program(address=code.address, size=code.size, name=code.name, kind=code.kind, image=name,
                              kernels=[list(k) for k in code.kernels]))


def _name(world: World, parts: Parts, address: int, size: int) -> Allocation | None:
  """Note that an address is named, with so many bytes, 0 for nobody knows. Its allocation, if it is in one."""
  made = world.find(address)
  if made is None: return None
  part = parts.get(made.key)
  if part is None: part = parts[made.key] = Part(made)
  if size: part.ranges.add((address - made.address, min(address + size, made.end) - made.address))
  else: part.whole = True
  return made


def _both(one: Part, other: Part) -> Part:
  """What is named of an allocation here or there."""
  if one.whole or one is other: return one
  return other if other.whole else Part(one.made, one.ranges | other.ranges)


def _together(one: Parts, other: Parts) -> Iterable[Part]:
  """What either names."""
  for key, part in one.items():
    yield _both(part, other.get(key, part))
  yield from (part for key, part in other.items() if key not in one)


def _with(reach: Reach, ranges: list[Part]) -> Iterable[Part]:
  """What is to be looked at beside whole allocations: what a submission leads to, and ranges."""
  parts = reach.parts
  for part in ranges:
    key = part.made.key
    if key not in reach.keys: parts = {**parts, key: _both(parts.get(key, part), part)}
  return parts.values()


def _chunks(ranges: set[tuple[int, int]], step: int, size: int) -> list[tuple[int, int]]:
  """Ranges of whole chunks, those that touch as one."""
  out: list[tuple[int, int]] = []
  for first, last in sorted((a // step * step, min(-(-b // step) * step, size)) for a, b in ranges):
    if out and first <= out[-1][1]: out[-1] = out[-1][0], max(last, out[-1][1])
    else: out.append((first, last))
  return out


class RecordingPort:
  """See the module: `core.port.Port`, each call handed on."""

  def __init__(self, port: Port, recorder: Recorder, vendor: str, world: World) -> None:
    self.inner, self._recorder, self._vendor, self._world = port, recorder, vendor, world

  def __getattr__(self, name: str) -> Any: return getattr(self.inner, name)

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    try: fd = self.inner.open(path, flags)
    except OSError as error:
      self._tell(Open(path=path, flags=flags, errno=error.errno or 0))
      raise
    self._tell(Open(path=path, flags=flags, fd=fd))
    return fd

  def close(self, fd: int) -> None:
    self.inner.close(fd)
    self._tell(Close(fd=fd))

  def read(self, path: str) -> bytes: return self.inner.read(path)
  def listdir(self, path: str) -> list[str]: return self.inner.listdir(path)

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    before, inner_before = raw(argument), self._world.inner(argument)
    event = Ioctl(fd=fd, request=request, before=before, after=b"", inner_before=inner_before)
    try: event.result = self.inner.ioctl(fd, request, argument)
    except OSError as error:
      event.errno = error.errno or 0
      raise
    finally:
      event.after, event.inner_after = raw(argument), self._world.inner(argument)
      self._tell(event)
    return event.result

  def reserve(self, size: int, align: int = PAGE) -> int: return self.inner.reserve(size, align)

  def mmap(self, fd: int, length: int, offset: int = 0, address: int | None = None,
           protection: Protection = Protection.READ | Protection.WRITE) -> int:
    event = Mmap(fd=fd, length=length, offset=offset, protection=int(protection))
    try: event.address = self.inner.mmap(fd, length, offset, address, protection)
    except OSError as error:
      event.errno = error.errno or 0
      raise
    finally: self._tell(event)
    return event.address

  def munmap(self, address: int, length: int) -> None:
    self._recorder.hides(self._vendor, address, length)
    self.inner.munmap(address, length)
    self._tell(Munmap(address=address, length=length))

  def memory(self, address: int, length: int) -> memoryview: return self.inner.memory(address, length)

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    self._recorder._rung(self.inner, self._vendor, address, value, nbytes)
    self.inner.doorbell(address, value, nbytes)

  def fence(self) -> None: self.inner.fence()

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    start = time.perf_counter_ns()
    met = self.inner.wait(done, timeout_s)
    self._tell(Waited(met=met, ns=time.perf_counter_ns() - start))
    self._recorder._seen(self.inner, self._vendor)
    return met

  def poll(self, fd: int, timeout_s: float) -> bool: return self.inner.poll(fd, timeout_s)
  def now_ns(self) -> int: return self.inner.now_ns()
  def pid(self) -> int: return self.inner.pid()

  def _tell(self, event: Event) -> None: self._recorder.tell(self._vendor, event)


def raw(argument: Any) -> bytes:
  """The bytes of a ctypes object."""
  if argument is None or not isinstance(argument, ctypes.Structure | ctypes.Union | ctypes.Array): return b""
  return bytes(memoryview(argument).cast("B")) if ctypes.sizeof(argument) else b""
