"""What happens before what: the order of all that a capture's queues and its host did, as far as something makes one.

`Happens` goes through a capture's steps. A doorbell puts a submission behind what the host knew when it rang; a queue's
packets come one after the other; kernels and copies that an engine begins run beside the packets behind them until an
IDLE, or an effect that is BEHIND them; a WAIT puts its queue behind the first SIGNAL that ends it; what the host
sees in a signal puts the host behind who wrote it. Queues go on as far as their waits let them, so the order in
which they were rung means nothing.

Two accesses of the same bytes, one of them a write, with no order between them are a race. In order, they still need
the caches between them told: what a kernel wrote must be released before another engine reads it, and a reader's caches
must be acquired behind the order. `conflicts` has what was missing, each with both accesses.

A launch's accesses are what its arguments point to. Where the kernel's code says so, they are reads or writes; else
it may touch them, which no other that may is held against. Nothing that is unsure is a conflict.
"""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from operator import itemgetter
from typing import Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.queues.arguments import Facts, facts
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.effects import Caches, Clock, Does, Effect
from tinyhw.queues.events import Doorbell, Ran, Seen, Work
from tinyhw.queues.world import PAGE, Allocation, Follow, Item, Launch, Queue, World

HOST: Final = -1


class Use(Enum):
  """How memory is accessed."""
  READ = "reads"
  WRITE = "writes"
  TOUCH = "may touch"
  STORE = "stores"  # a packet's own few bytes: data, or a signal where somebody waits for them


@dataclass(frozen=True, slots=True)
class Place:
  """Where something was done: a packet of a submission, or the host before one. `work` says what it began, if it
  did."""
  vendor: str
  agent: int
  queue: str
  submission: int
  item: Item | None
  event: int
  work: str = ""


# ---- what is known

Seat = tuple[int, int, frozenset[int]]
"""Of a queue: how many packets have happened, how many works from the first on have ended, and which later ones."""
_NOTHING: Final[Seat] = (0, 0, frozenset())


@dataclass(frozen=True, slots=True)
class Know:
  """What has happened, of each agent."""
  seats: dict[int, Seat] = field(default_factory=dict)

  def seat(self, agent: int) -> Seat: return self.seats.get(agent, _NOTHING)

  def join(self, other: Know) -> Know:
    """All that either knows."""
    if other is self or not other.seats: return self
    if not self.seats: return other
    out = dict(self.seats)
    for agent, (packets, works, more) in other.seats.items():
      mine = out.get(agent)
      if mine is None: out[agent] = packets, works, more
      elif mine != (packets, works, more):
        most = max(works, mine[1])
        out[agent] = max(packets, mine[0]), most, frozenset(n for n in more | mine[2] if n >= most)
    return Know(out)

  def put(self, agent: int, seat: Seat) -> Know:
    """The same, of one agent other."""
    return Know({**self.seats, agent: seat})

  def has_packet(self, row: Signalled) -> bool:
    """Whether a value of a signal was written."""
    return row.packet >= 0 and self.seat(row.place.agent)[0] > row.packet

  def has(self, access: Access) -> bool:
    """Whether an access has happened."""
    packets, works, more = self.seat(access.place.agent)
    if access.work < 0: return packets > access.packet
    return access.work < works or access.work in more


# ---- what is accessed

@dataclass(eq=False, slots=True)
class Access:
  """Bytes that somebody accesses. `packet` counts an agent's packets, `work` the kernels and copies that it began
  (-1: the packet itself does it)."""
  start: int
  end: int
  use: Use
  place: Place
  packet: int
  work: int
  engine: str
  gpu: int
  made: Allocation | None = None
  what: str = ""
  released: bool = False

  @property
  def writes(self) -> bool: return self.use is Use.WRITE


class HeldAccesses:
  """Accesses of an allocation, in order. Those within a page are found by it: arguments are many and small."""

  def __init__(self) -> None:
    self._count = 0
    self._near: dict[int, dict[int, Access]] = {}  # by page, then by their number
    self._wide: dict[int, Access] = {}

  def __iter__(self) -> Iterator[Access]:
    rows = [row for held in (self._wide, *self._near.values()) for row in held.items()]
    return (access for _, access in sorted(rows, key=itemgetter(0)))

  def over(self, start: int, end: int) -> list[tuple[int, Access]]:
    """Those that have bytes of a range, by their numbers."""
    first, last = start // PAGE, max(end - 1, start) // PAGE
    near = self._near
    pages = range(first, last + 1) if last - first < len(near) else [p for p in near if first <= p <= last]
    found = [row for row in self._wide.items() if row[1].start < end and start < row[1].end]
    for page in pages:
      if (rows := near.get(page)) is not None:
        found += [row for row in rows.items() if row[1].start < end and start < row[1].end]
    found.sort(key=itemgetter(0))
    return found

  def add(self, access: Access) -> None:
    """Behind the others."""
    self._at(access)[self._count] = access
    self._count += 1

  def drop(self, number: int, access: Access) -> None:
    """Forget one."""
    del self._at(access)[number]

  def _at(self, access: Access) -> dict[int, Access]:
    page = access.start // PAGE
    return self._near.setdefault(page, {}) if max(access.end - 1, access.start) // PAGE == page else self._wide


@dataclass(frozen=True, slots=True)
class Conflict:
  """`first` and `second` in the order in which they were submitted. `missing` is "order", "release" or "acquire"."""
  missing: str
  first: Access
  second: Access


@dataclass(eq=False, slots=True)
class Signalled:
  """A value that was written to memory that is waited for."""
  value: int
  know: Know
  place: Place
  packet: int = -1


@dataclass(eq=False, slots=True)
class Signal:
  """Memory that is waited for: its values in order; `seen` is what the host saw in it last."""
  address: int
  values: list[Signalled] = field(default_factory=list)
  seen: int | None = None
  _first: dict[int, int] = field(default_factory=dict)  # the first place of each value
  _until: int = 0  # so many of the first are joined
  _joined: Know = field(default_factory=Know)

  def __post_init__(self) -> None:
    for n, row in enumerate(self.values): self._first.setdefault(row.value, n)

  def add(self, row: Signalled) -> None:
    """Another value."""
    self._first.setdefault(row.value, len(self.values))
    self.values.append(row)

  def index(self, value: int) -> int | None:
    """Where a value was written first."""
    return self._first.get(value)

  def known(self, index: int) -> Know:
    """What had happened when this value was there, and those before it."""
    if index + 1 < self._until: self._until, self._joined = 0, Know()  # a value that was there before
    for row in self.values[self._until:index + 1]: self._joined = self._joined.join(row.know)
    self._until = index + 1
    return self._joined

  @property
  def value(self) -> int | None: return self.values[-1].value if self.values else None


@dataclass(eq=False, slots=True)
class Packet:
  """An item that a queue has before it, with what it accesses."""
  item: Item
  submission: int
  event: int
  know: Know
  launches: list[Launch]
  uses: list[tuple[int, int, Use, Allocation | None, str, bool]]  # start, end, use, where, what, whether a work does it
  last: bool = False
  later: Work | None = None  # CUDA's: what it accesses is told when it has run


@dataclass(eq=False)
class Runner:
  """A queue as it goes on. `done` is the number of packets that it went past, `begun` of works."""
  queue: Queue
  vendor: str
  agent: int
  know: Know = field(default_factory=Know)
  pending: list[Packet] = field(default_factory=list)
  at: int = 0
  packets: int = 0
  begun: int = 0
  waits: Effect | None = None  # what it stands at
  acquired: dict[Caches, Know] = field(default_factory=dict)
  ranges: list[tuple[int, int, Caches, Know]] = field(default_factory=list)
  history: list[Packet] = field(default_factory=list)
  ends: list[tuple[int, int]] = field(default_factory=list)  # of each submission: entries of the ring, packets
  unreleased: list[Access] = field(default_factory=list)
  forced: bool = False  # went past a wait of which nobody is known who ended it

  @property
  def ahead(self) -> list[Packet]: return self.pending[self.at:]


Ready = tuple[Runner, Place, int, Know, Work]
"""Work of a queue that was reached: which of its packets, and what had happened by then."""
_BITS: Final = (Caches.DATA, Caches.SCALAR, Caches.CODE, Caches.SHARED)
_HOW: Final = {1: Use.READ, 2: Use.WRITE, 3: Use.TOUCH}  # as `Ran` has it
_KEPT: Final = 64      # packets of a queue that are kept behind it
_RANGES: Final = 8


class Happens:
  """See the module. `feed` each step of a capture in turn; `finish` at its end."""

  def __init__(self, capture: Capture | None = None) -> None:
    self.capture = capture
    self.host: dict[str, Know] = {}
    self.runners: dict[tuple[str, int], Runner] = {}
    self.signals: dict[tuple[str, int], Signal] = {}
    self.accesses: dict[tuple[str, int], HeldAccesses] = {}
    self.conflicts: list[Conflict] = []
    self.waited: list[tuple[Place, Effect]] = []
    self.all_signals: list[tuple[Place, Effect]] = []
    self.starts: dict[tuple[str, int], set[int]] = {}  # where something begins, in each allocation
    self.on_past: Callable[[Runner, Packet, list[Signalled]], None] | None = None  # and who ended its waits
    self._told: set[tuple[int, int, str]] = set()
    self._stored: list[tuple[Access, Access]] = []  # in no order, one of them a packet's own few bytes
    self._contents: dict[tuple[str, int, int], tuple[bytes, Know]] = {}  # and what the host knew then
    self._hosts = 0
    self._open: dict[tuple[str, int, int], Ready] = {}  # CUDA's work that has not run yet

  # ---- steps

  def feed(self, step: Step) -> list[Conflict]:
    """Go past a step; returns what conflicts with what was before."""
    before = len(self.conflicts)
    event = step.event
    if isinstance(event, Doorbell) and step.world is not None:
      self._observe(event.vendor, event.signals, step)
      if step.queue is not None: self._consumed(step, event)
      self._host_wrote(step, event)
      if step.follow is not None: self._submit(step)
      self._run()
    elif isinstance(event, Ran): self._ran(step, event)
    elif isinstance(event, Seen):
      self._observe(event.vendor, event.signals, step)
      know = self.know_of_host(event.vendor)
      for key, at, _, name in event.memory: self._contents[event.vendor, key, at] = name, know
    return self.conflicts[before:]

  def runner(self, vendor: str, queue: Queue) -> Runner:
    """Of a queue."""
    key = vendor, queue.key
    if key not in self.runners: self.runners[key] = Runner(queue, vendor, len(self.runners))
    return self.runners[key]

  def know_of_host(self, vendor: str) -> Know: return self.host.get(vendor, Know())

  def add(self, vendor: str, queue: Queue, submission: int, follow: Follow) -> None:
    """A submission of a live queue: its packets, without the memory that they access."""
    runner, launches = self.runner(vendor, queue), iter(follow.launches)
    for item in follow.items:
      mine = [l for e in item.effects if e.does is Does.LAUNCH and (l := next(launches, None)) is not None]
      runner.pending.append(Packet(item, submission, -1, Know(), mine, []))

  def see(self, vendor: str, values: dict[int, int]) -> None:
    """What signals of live queues hold now; the queues go on as far as that lets them."""
    place = Place(vendor, HOST, "host", -1, None, -1)
    for address, value in values.items():
      self.signals[vendor, address] = Signal(address, [Signalled(value, Know(), place)], value)
    self._run()

  def _ran(self, step: Step, event: Ran) -> None:
    """CUDA's work has run: what it accessed. Work runs in an order that its queues allow, so what comes later is never
    held against what it comes before."""
    key = event.vendor, event.queue, event.value
    if key not in self._open: self._ended(event)
    row = self._open.pop(key, None)
    if row is not None and step.world is not None: self._accessed(row, step.world, event.accesses)

  def _ended(self, event: Ran) -> None:
    """Work has run that waits for a value in memory, and nobody is known to have written it: the host or a kernel has,
    by a plain store. It may come behind all that its queues have come to, so nothing of that is held against it."""
    runner = self.runners.get((event.vendor, event.queue))
    for packet in runner.ahead if runner is not None else ():
      if packet.later is None or packet.later.value > event.value: return
      for other in self.runners.values():
        if runner is not None and other.vendor == event.vendor: runner.know = runner.know.join(other.know)
      if runner is not None and not self._past(runner, False): self._past(runner, True)
    self._run()

  def _accessed(self, row: Ready, world: World, accesses: Iterable[list[int]]) -> None:
    runner, place, packet, know, _ = row
    for start, size, how in accesses:
      made = world.find(start) or world.was(start)
      access = Access(start, start + size, _HOW.get(how, Use.TOUCH), place, packet, -1, "front", runner.queue.gpu, made)
      self._check(runner, access, know)

  def finish(self) -> list[Conflict]:
    """The end: CUDA's work that never ran would have accessed what it says, and nothing that ran comes after it; and
    what packets stored was no signal where nobody has waited for it."""
    before = len(self.conflicts)
    rest, self._open = list(self._open.values()), {}
    for row in rest:
      event = row[4]
      if self.capture is not None:
        self._accessed(row, self.capture.world(event.vendor), [
          *([a, n, 1] for a, n in event.reads), *([a, n, 2] for a, n in event.writes)])
    for first, second in self._stored:
      store = first if first.use is Use.STORE else second
      if not self._is_signal(store.place.vendor, store.start, store.end): self._tell("order", first, second)
    self._stored = []
    return self.conflicts[before:]

  # ---- the host

  def _observe(self, vendor: str, rows: Iterable[list[int]], step: Step) -> None:
    know = self.know_of_host(vendor)
    for address, _, value in rows:
      signal = self.signals.setdefault((vendor, address), Signal(address))
      signal.seen = value
      if signal.index(value) is None: self._force(vendor, address, value)
      index = signal.index(value)
      if index is None:
        place = Place(vendor, HOST, "host", step.submission, None, step.number)
        signal.add(Signalled(value, know, place))
      else: know = know.join(signal.known(index))
    self.host[vendor] = know

  def _force(self, vendor: str, address: int, value: int) -> None:
    """The host has seen what a queue writes behind a wait of which nobody is known who ended it: somebody did."""
    for runner in self.runners.values():
      if runner.vendor != vendor: continue
      ahead = runner.ahead
      for packet in ahead:
        if any(e.does is Does.SIGNAL and e.address == address and e.value == value for e in packet.item.effects):
          runner.forced = runner.forced or runner.waits is not None
          while runner.at < len(runner.pending) and runner.pending[runner.at] is not packet: self._past(runner, True)
          self._past(runner, True)
          self._run()
          return

  def _consumed(self, step: Step, event: Doorbell) -> None:
    """The read pointer tells the host how far a queue has read."""
    if len(event.pointers) < 2 or step.queue is None or step.world is None: return
    runner = self.runner(event.vendor, step.queue)
    read = step.world.reached(step.queue, event.pointers[0], event.first)
    past = bisect_right(runner.ends, read, key=itemgetter(0))
    packets = runner.ends[past - 1][1] if past else 0
    know = self.know_of_host(event.vendor)
    seat = know.seat(runner.agent)
    if packets > seat[0]: self.host[event.vendor] = know.put(runner.agent, (packets, seat[1], seat[2]))

  def _host_wrote(self, step: Step, event: Doorbell) -> None:
    """Bytes that the host has changed since the last look, where nobody else can have."""
    assert step.world is not None and self.capture is not None
    vendor, know = event.vendor, self.know_of_host(event.vendor)
    self._hosts += 1
    place = Place(vendor, HOST, "host", step.submission, None, step.number)
    for key, at, _, name in event.memory:
      before = self._contents.get((vendor, key, at))
      self._contents[vendor, key, at] = name, know
      if before is None: continue
      old, new = self.capture.reader.blob(before[0]), self.capture.reader.blob(name)
      if old is None or new is None: continue
      made = step.world.allocations[key]
      for start, end in changed(old, new):
        self._host_write(made, made.address + at + start, made.address + at + end, place, know, before[1])

  def _host_write(self, made: Allocation, start: int, end: int, place: Place, know: Know,
                  then: Know) -> None:
    held = self.accesses.get((place.vendor, made.key))
    over = [] if held is None else [a for _, a in held.over(start, end)]
    if any(a.use is not Use.READ and not then.has(a) for a in over): return  # that one may have written it
    if any(s.address < end and start < s.address + 8 for (v, _), s in self.signals.items() if v == place.vendor): return
    for a in over:
      if a.use is Use.READ and a.place.agent != HOST and not know.has(a):
        mine = Access(start, end, Use.WRITE, place, self._hosts, -1, "host", -1, made, "stores")
        self._tell("order", a, mine)

  # ---- queues

  def _submit(self, step: Step) -> None:
    assert step.follow is not None and step.queue is not None and isinstance(step.event, Doorbell)
    vendor, runner = step.event.vendor, self.runner(step.event.vendor, step.queue)
    know = self.know_of_host(vendor)
    launches = iter(step.follow.launches)
    uses = Uses(self, step)
    for address, data in (*step.event.ring, *step.event.pieces): uses.piece(address, len(data))
    for item in step.follow.items:
      mine = [l for e in item.effects if e.does is Does.LAUNCH and (l := next(launches, None)) is not None]
      work = step.event if isinstance(step.event, Work) else None
      runner.pending.append(Packet(item, step.submission, step.number, know, mine,
                                   uses.of(item, mine) if work is None else [],
                                   later=work))
    if step.follow.items: runner.pending[-1].last = True
    runner.ends.append((step.event.last, runner.packets + len(runner.pending) - runner.at))

  def _run(self) -> None:
    moved = True
    while moved:
      moved = False
      for runner in self.runners.values():
        while runner.at < len(runner.pending) and self._past(runner, False): moved = True

  def _past(self, runner: Runner, force: bool) -> bool:
    """Go past one packet; False where it waits."""
    packet = runner.pending[runner.at]
    know = runner.know.join(packet.know)
    waits = [e for e in packet.item.effects if e.does is Does.WAIT]
    enders: list[Signalled] = []
    for wait in waits:
      found = self._ends(runner, wait, know)
      if found is not None:
        know = know.join(found.know)
        enders.append(found)
      elif not force:
        runner.waits = wait
        return False
    runner.waits = None
    place = Place(runner.vendor, runner.agent, runner.queue.name, packet.submission, packet.item, packet.event)
    for wait in waits: self.waited.append((place, wait))
    runner.know = self._effects(runner, packet, place, know)
    if packet.later is not None:
      key = runner.vendor, runner.queue.key, packet.later.value
      self._open[key] = runner, place, runner.packets, runner.know, packet.later
    if self.on_past is not None: self.on_past(runner, packet, enders)
    runner.packets += 1
    runner.at += 1
    runner.history.append(packet)
    if runner.at >= 256:
      del runner.pending[:runner.at]
      runner.at = 0
      del runner.history[:-_KEPT]
    return True

  def _ends(self, runner: Runner, wait: Effect, know: Know) -> Signalled | None:
    """Who ends a wait: the first value that does, of those that may still be there."""
    if wait.always: return Signalled(0, Know(), Place("", HOST, "", -1, None, -1))
    signal = self.signals.get((runner.vendor, wait.address))
    if signal is None: return None
    last = next((n for n in reversed(range(len(signal.values))) if know.has_packet(signal.values[n])), 0)
    return next((row for row in islice(signal.values, last, None) if wait.met(row.value)), None)

  def _effects(self, runner: Runner, packet: Packet, place: Place, know: Know) -> Know:
    agent, count = runner.agent, runner.packets + 1
    _, works, more = know.seat(agent)
    know = know.put(agent, (count, works, more))
    effects = packet.item.effects
    own = any(e.does is Does.LAUNCH for e in effects)
    mine: list[int] = []
    for effect in effects:
      if effect.does is Does.IDLE: know = know.put(agent, (count, runner.begun, frozenset()))
      elif effect.does is Does.ACQUIRE: self._acquire(runner, effect, know)
      elif effect.does is Does.LAUNCH: mine.append(self._begin(runner, packet, place, know))
      elif effect.does is Does.RELEASE: self._release(runner, effect, know, mine if own else None)
      elif effect.does is Does.SIGNAL:
        behind = know
        if effect.clock is Clock.BEHIND:
          _, works, more = know.seat(agent)
          behind = know.put(agent, (count, works, more | set(mine)) if own else (count, runner.begun, frozenset()))
        self._signal(runner, effect, behind, place)
    if not mine and packet.uses:
      copies = any(e.clock is Clock.BEHIND and e.does in (Does.READ, Does.WRITE) for e in effects)
      work = runner.begun if copies and runner.queue.kind == "gpfifo" else -1
      runner.begun += work >= 0
      if work >= 0 and any(e.does is Does.SIGNAL for e in effects):
        for e in effects:
          if e.does is Does.SIGNAL:
            signal = self.signals[runner.vendor, e.address]
            signal.values[-1].know = signal.values[-1].know.put(agent, (count, runner.begun, frozenset()))
      for start, end, use, made, what, _ in packet.uses:
        engine = "copy" if work >= 0 or runner.queue.kind == "sdma" else "front"
        access = Access(start, end, use, place, count - 1, work, engine, runner.queue.gpu, made, what)
        if engine != "front" and any(e.does is Does.RELEASE for e in effects): access.released = True
        self._check(runner, access, know)
    return know

  def _begin(self, runner: Runner, packet: Packet, place: Place, know: Know) -> int:
    """A kernel begins."""
    number = runner.begun
    runner.begun += 1
    for start, end, use, made, what, by_work in packet.uses:
      access = Access(start, end, use, place, runner.packets, number if by_work else -1,
                      "kernel" if by_work else "front", runner.queue.gpu, made, what)
      self._check(runner, access, know)
      if use is not Use.READ: runner.unreleased.append(access)
    return number

  def _acquire(self, runner: Runner, effect: Effect, know: Know) -> None:
    caches = Caches(effect.value)
    if effect.size:
      runner.ranges.append((effect.address, effect.end, caches, know))
      del runner.ranges[:-_RANGES]
      return
    for bit in _BITS:
      if bit & caches: runner.acquired[bit] = know

  def _release(self, runner: Runner, effect: Effect, know: Know, mine: list[int] | None) -> None:
    if not effect.value & Caches.SHARED: return
    left = []
    for access in runner.unreleased:
      over = access.work in mine if mine is not None else effect.clock is Clock.BEHIND or know.has(access)
      access.released = access.released or over
      if not access.released: left.append(access)
    runner.unreleased = left

  def _signal(self, runner: Runner, effect: Effect, know: Know, place: Place) -> None:
    signal = self.signals.setdefault((runner.vendor, effect.address), Signal(effect.address))
    value = effect.value
    limit = 1 << 8 * effect.size if effect.size else 1 << 64
    if effect.compare in ("+", "IADD"): value = (signal.value or 0) + value
    elif effect.compare == "-": value = (signal.value or 0) - value
    signal.add(Signalled(value % limit, know, place, runner.packets))
    self.all_signals.append((place, effect))

  # ---- memory

  def _check(self, runner: Runner, access: Access, know: Know) -> None:
    """Hold an access against those before it."""
    if access.made is None: return
    held = self.accesses.setdefault((runner.vendor, access.made.key), HeldAccesses())
    for number, a in held.over(access.start, access.end):
      ordered = know.has(a) or (a.place.agent == access.place.agent and a.work < 0 and a.packet <= access.packet)
      if not ordered:
        first, second = (access, a) if a.place.submission > access.place.submission >= 0 else (a, access)
        if Use.STORE in (a.use, access.use): self._store(first, second)
        elif self._collide(a, access): self._tell("order", first, second)
      elif a.writes and access.use is not Use.WRITE: self._seen_by(runner, a, access)
      covered = access.start <= a.start and a.end <= access.end and ordered
      if covered and (access.use is Use.WRITE or (access.use is a.use and access.engine == a.engine
                                                  and access.place.agent == a.place.agent)): held.drop(number, a)
    held.add(access)

  def _store(self, first: Access, second: Access) -> None:
    """A packet's own few bytes meet what reads or writes them: a conflict where they are no signal."""
    if {first.use, second.use} - {Use.STORE, Use.TOUCH} and first.place.agent != second.place.agent:
      if Use.TOUCH not in (first.use, second.use): self._stored.append((first, second))

  def _is_signal(self, vendor: str, start: int, end: int) -> bool:
    """Whether anybody waits for bytes there."""
    waits = [(p.vendor, e) for p, e in self.waited]
    waits += [(r.vendor, e) for r in self.runners.values() for p in r.ahead for e in p.item.effects
              if e.does is Does.WAIT]
    return any(v == vendor and e.address < end and start < e.end for v, e in waits)

  def _collide(self, a: Access, b: Access) -> bool:
    if a.engine == b.engine == "front" and a.place.agent == b.place.agent: return False
    if a.place.agent == b.place.agent and a.work == b.work >= 0: return False
    if Use.WRITE not in (a.use, b.use): return False
    return a.use is not Use.TOUCH or b.use is not Use.TOUCH

  def _seen_by(self, runner: Runner, wrote: Access, reads: Access) -> None:
    """In order: whether caches between the two were told."""
    if wrote.engine == "kernel" and reads.engine != "front" and (reads.engine != "kernel" or reads.gpu != wrote.gpu) \
        and not wrote.released:
      self._tell("release", wrote, reads)
      return
    if wrote.engine == "kernel" and reads.engine == "kernel" and reads.gpu == wrote.gpu: bit = Caches.DATA
    elif wrote.engine == "kernel" and reads.engine == "copy" and runner.queue.kind == "sdma" and reads.gpu == wrote.gpu:
      bit = Caches.SHARED
    else: return
    known = runner.acquired.get(bit)
    if known is not None and known.has(wrote): return
    if any(s <= reads.start and reads.end <= e and caches & bit and k.has(wrote)
           for s, e, caches, k in runner.ranges): return
    self._tell("acquire", wrote, reads)

  def _tell(self, missing: str, first: Access, second: Access) -> None:
    key = id(first.place.item), id(second.place.item), missing
    if key in self._told: return
    self._told.add(key)
    self.conflicts.append(Conflict(missing, first, second))

  # ---- for who asks

  def running(self) -> Iterator[tuple[Runner, Packet, Effect]]:
    """Signals that were submitted and that the host has not seen, with their packets: of each queue the oldest
    first."""
    for runner in self.runners.values():
      for packet in (*runner.history, *runner.ahead):
        for effect in packet.item.effects:
          if effect.does is not Does.SIGNAL: continue
          signal = self.signals.get((runner.vendor, effect.address))
          if signal is not None and signal.seen is not None and not effect.compare and \
              signal.seen < effect.value and not any(r.value == signal.seen and r.place.submission > packet.submission
                                                     for r in signal.values):
            yield runner, packet, effect

  def ahead(self, vendor: str, wait: Effect) -> list[tuple[Runner, Packet, Effect]]:
    """Packets before which queues stand and that would end a wait: the earliest first."""
    found = [(r, p, e) for r in self.runners.values() if r.vendor == vendor for p in r.ahead for e in p.item.effects
             if e.does is Does.SIGNAL and e.address == wait.address and ends(wait, e)]
    return sorted(found, key=lambda row: row[1].submission)

  def unordered(self, vendor: str, made: Allocation) -> list[Access]:
    """Accesses of an allocation that the host does not know to be over, by queues that are still there."""
    know = self.know_of_host(vendor)
    gone = {HOST, *(r.agent for r in self.runners.values() if r.queue.closed)}
    held = self.accesses.get((vendor, made.key))
    return [a for a in held or ()
            if a.place.agent not in gone and a.use is not Use.STORE and not know.has(a)]


def ends(wait: Effect, signal: Effect) -> bool:
  """Whether a signal's value would end a wait; of one that counts on, nobody knows."""
  return bool(signal.compare) or wait.met(signal.value)


def changed(old: bytes, new: bytes) -> Iterator[tuple[int, int]]:
  """Ranges of bytes that differ; what is less than 8 bytes apart is one."""
  size = min(len(old), len(new))
  at = np.flatnonzero(np.frombuffer(old, np.uint8, size) != np.frombuffer(new, np.uint8, size))
  if not len(at): return
  cuts = np.flatnonzero(np.diff(at) > 8)
  first = 0
  for cut in (*cuts.tolist(), len(at) - 1):
    yield int(at[first]), int(at[cut]) + 1
    first = cut + 1


class Uses:
  """What the packets of a submission access, by the memory that there is when its doorbell rings."""

  def __init__(self, happens: Happens, step: Step) -> None:
    assert step.world is not None and happens.capture is not None
    self._happens, self._step, self._world, self._capture = happens, step, step.world, happens.capture
    self._vendor = step.event.vendor
    self._pieces: list[tuple[int, int]] = []

  def piece(self, address: int, size: int) -> None:
    """Words that an engine fetches."""
    self._pieces.append((address, size))

  def of(self, item: Item, launches: list[Launch]) -> list[tuple[int, int, Use, Allocation | None, str, bool]]:
    """Rows for `Packet.uses`."""
    rows: list[tuple[int, int, Use, Allocation | None, str, bool]] = []
    for e in item.effects:
      if e.does in (Does.READ, Does.WRITE) and e.size:
        made = self._start(e.address)
        use = Use.READ if e.does is Does.READ else Use.WRITE
        rows.append((e.address, e.end, use, made, "", False))
      elif e.does is Does.SIGNAL and e.clock is Clock.NOW and not e.compare:
        rows.append((e.address, e.end, Use.STORE, self._world.find(e.address), "", False))
    for launch in launches: rows += self._launch(launch)
    return rows

  def _start(self, address: int) -> Allocation | None:
    made = self._world.find(address)
    if made is not None: self._happens.starts.setdefault((self._vendor, made.key), set()).add(address)
    return made

  def _launch(self, launch: Launch) -> list[tuple[int, int, Use, Allocation | None, str, bool]]:
    rows: list[tuple[int, int, Use, Allocation | None, str, bool]] = []
    for pointer, use, name in pointers(self._capture, self._step, launch):
      made = self._start(pointer)
      if made is None: continue
      starts = self._happens.starts[self._vendor, made.key]
      end = min((s for s in starts if s > pointer), default=made.end)
      rows.append((pointer, end, use, made, name, True))
    at, size = arguments_at(self._capture, self._vendor, launch)
    if at and size: rows.append((at, at + size, Use.READ, self._world.find(at), "arguments", True))
    return rows


def facts_of(capture: Capture, vendor: str, launch: Launch) -> Facts | None:
  """What the object says of the kernel that a launch names."""
  kernel = capture.kernels.get((vendor, launch.entry))
  if kernel is None: return None
  for program in reversed(capture.programs):
    if program.vendor == vendor and any(k[1] == launch.entry for k in program.kernels):
      image = capture.reader.blob(program.image)
      if image is None: return None
      try: return facts(image, program.kind).get(kernel.name)
      except Error: return None
  return None


def arguments_at(capture: Capture, vendor: str, launch: Launch) -> tuple[int, int]:
  """Address and bytes of a launch's arguments."""
  if launch.argument_bytes: return launch.arguments, launch.argument_bytes
  kernel, known = capture.kernels.get((vendor, launch.entry)), facts_of(capture, vendor, launch)
  at = launch.arguments
  if known is not None and launch.user_data: at = launch.user_data[known.sgpr] | launch.user_data[known.sgpr + 1] << 32
  return at, kernel.argument_bytes if kernel is not None else 0


def pointers(capture: Capture, step: Step, launch: Launch) -> list[tuple[int, Use, str]]:
  """(address, use, which argument) of what a launch's arguments point to."""
  at, size = arguments_at(capture, step.event.vendor, launch)
  if not size or step.world is None: return []
  raw = capture.memories[step.event.vendor].read(step.world, at, size) or b""
  known = facts_of(capture, step.event.vendor, launch)
  first = known.first if known is not None else 0
  found: dict[int, int] = {}
  offsets = [first + o for o in known.pointers] if known is not None and known.pointers is not None else range(
    first, len(raw) - 7, 8)
  for offset in offsets:
    value = int.from_bytes(raw[offset:offset + 8], "little")
    if offset + 8 <= len(raw) and value >= PAGE and step.world.find(value) is not None: found[offset - first] = value
  out = []
  for n, (offset, value) in enumerate(found.items()):
    use = _use(known, offset, set(found))
    if use is not None: out += [(value, u, f"argument {n}") for u in use]
  return out


def _use(known: Facts | None, offset: int, there: set[int]) -> list[Use] | None:
  if known is None or known.accesses is None: return [Use.TOUCH]
  mine = [a for a in known.accesses if offset in a.offsets]
  if not mine: return None
  if any(len(a.offsets & there) > 1 for a in mine): return [Use.TOUCH]
  uses = []
  if any(a.reads for a in mine): uses.append(Use.READ)
  if any(a.writes for a in mine): uses.append(Use.WRITE)
  return uses
