"""A debugger of queues: a capture is submitted again on a mock, and stands before any packet.

    session = Session(lambda: Capture("run.thq"), machines)
    session.add("kernel r_*")
    print(session.run(), session.place)
    session.reverse_step()

The order of packets is the mock's, as its seed decides, and nothing that is asked changes it. So a moment is a number:
how many packets were executed since a submission began. To go back is to begin anew on a fresh machine and go forward
to that moment. Machines are handed in.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.port import Port
from tinyhw.queues import listing
from tinyhw.queues.breaks import Break, ExecutedRow, kernels, point, rows
from tinyhw.queues.capture import Capture
from tinyhw.queues.replay import Done, Look, Replay
from tinyhw.queues.world import Queue

LARGEST: Final = 1 << 20  # bytes of memory that are shown at once


class Standing(Protocol):
  """Where a queue of a machine stands; see `mock.running.Standing`."""
  @property
  def name(self) -> str: ...
  @property
  def gpu(self) -> int: ...
  @property
  def ring(self) -> int: ...
  @property
  def address(self) -> int | None: ...
  @property
  def state(self) -> str: ...
  @property
  def why(self) -> str: ...
  @property
  def runnable(self) -> bool: ...
  @property
  def failed(self) -> bool: ...
  @property
  def busy(self) -> bool: ...


class Machine(Protocol):
  """A mock whose queues go on one packet at a time."""
  observer: Any

  def standings(self) -> list[Any]: ...
  def draw(self) -> str | None: ...
  def single(self, name: str, stop: Callable[[], bool]) -> bool: ...
  def values_of(self, name: str) -> Mapping[str, int | str]: ...
  def close(self) -> None: ...


@dataclass(slots=True)
class Machines:
  """What a capture is submitted to: ports, looks and machines by their vendors."""
  ports: dict[str, Port]
  looks: dict[str, Look]
  machines: dict[str, Machine]


@dataclass(frozen=True, order=True, slots=True)
class Moment:
  """`packet` counts those that were executed since the submission began, on all queues."""
  submission: int
  packet: int


@dataclass(frozen=True, slots=True)
class Stop:
  """Why the run stands: "start", "step", "breakpoint", "over" (nothing of a submission can go on), "fault",
  "interrupted", "end"."""
  reason: str
  text: str
  breakpoint: int = 0

  def __str__(self) -> str: return self.text


@dataclass(slots=True)
class QueuePlace:
  """A packet that a queue executes next, or waits at. `row` is None for one that the capture does not hold."""
  vendor: str
  standing: Standing
  queue: Queue | None
  row: ExecutedRow | None
  names: listing.Names


@dataclass(slots=True)
class _Stream:
  """What a queue was given and has not gone through: submissions in order, and where it is in the first."""
  queue: Queue
  rows: deque[list[ExecutedRow]] = field(default_factory=deque)
  at: int = 0

  def find(self, address: int | None) -> ExecutedRow | None:
    """The packet at an address, from where the queue was on."""
    if address is None: return None
    start = self.at
    for n, part in enumerate(self.rows):
      for i in range(start, len(part)):
        item = part[i].item
        if not item.address <= address < item.address + max(4 * len(item.words), 1): continue
        for _ in range(n): self.rows.popleft()
        self.at = i
        return part[i]
      start = 0
    return None


class Session:
  """See the module."""

  def __init__(self, open_capture: Callable[[], Capture], machines: Callable[[Capture], Machines]) -> None:
    self._open_capture, self._machines = open_capture, machines
    self.breaks: dict[int, Break] = {}
    self._numbers = 0
    self._interrupted = False
    self.ended = False
    self._begin()

  # ---- the run

  def _begin(self) -> None:
    self.capture = self._open_capture()
    self.on = self._machines(self.capture)
    self.replay = Replay(self.capture, self.on.ports, look=self.on.looks)
    self._staged: Generator[tuple[Done, bool], None, None] = self.replay.staged(events=self.capture.before_the_end())
    self._streams: dict[tuple[str, int], _Stream] = {}
    self._failed: set[str] = set()
    self._launches = 0
    self.done: Done | None = None
    self.moment = Moment(-1, 0)
    self.ended = False
    self._drawn: tuple[str, str] | None = None
    self._submit()
    self.last = Stop("start", "the beginning")
    if self.ended: self.last = Stop("end", "the capture holds no submission")

  def close(self) -> None:
    """Let go of machines and file."""
    self._staged.close()
    for machine in self.on.machines.values(): machine.close()
    self.capture.close()

  def restart(self) -> Stop:
    """Begin anew."""
    self.close()
    self._begin()
    return self.last

  def interrupt(self) -> None:
    """Have the run, or the next one, stand before the next packet; for signals' handlers and other threads."""
    self._interrupted = True

  def interrupted(self) -> bool:
    """Whether somebody asked for that since the last time that this was asked."""
    was, self._interrupted = self._interrupted, False
    return was

  def _submit(self) -> list[str]:
    """The submission at hand is over: what it left behind is compared, and the next one is made. What differs."""
    told: list[str] = []
    for done, over in self._staged:
      if over:
        told = [str(d) for d in done.differences]
        continue
      step = done.step
      assert step.queue is not None and step.follow is not None
      stream = self._streams.setdefault((step.event.vendor, step.queue.key), _Stream(step.queue))
      made = rows(step.submission, step.follow.items, step.follow.launches, self._launches)
      stream.rows.append(made)
      self._launches += len(step.follow.launches)
      self.done, self.moment = done, Moment(step.submission, 0)
      self._draw()
      return told
    self.ended, self._drawn = True, None
    return told

  def _draw(self) -> None:
    """Whose packet is next."""
    self._drawn = None
    for vendor, machine in self.on.machines.items():
      name = machine.draw()
      if name is not None:
        self._drawn = vendor, name
        return

  def _advance(self) -> Stop | None:
    """Execute a packet, or go on to the next submission. What has to be told, if anything."""
    if self.ended: return Stop("end", "the capture has ended")
    if self._drawn is None: return self._on()
    vendor, name = self._drawn
    machine = self.on.machines[vendor]
    try:
      if not machine.single(name, lambda: self._interrupted): return None
    finally:
      self.moment = Moment(self.moment.submission, self.moment.packet + 1)
      self._draw()
    for place in self.places():
      s = place.standing
      if s.failed and s.name not in self._failed:
        self._failed.add(s.name)
        return Stop("fault", f"{s.name} {s.state}: {s.why}")
    return None

  def _on(self) -> Stop | None:
    before = self.moment.submission
    told = self._submit()
    if self.ended: return Stop("end", "\n".join([*_differ(before, told), "the capture has ended", *self.waiting()]))
    return Stop("differs", "\n".join(_differ(before, told))) if told else None

  def waiting(self) -> list[str]:
    """Queues that stand still: a line each."""
    return [f"{s.name} {s.state}: {s.why}" for m in self.on.machines.values() for s in m.standings() if s.why]

  # ---- where it stands

  def places(self) -> list[QueuePlace]:
    """Where each queue that the capture knows stands."""
    found = []
    for vendor, machine in self.on.machines.items():
      for standing in machine.standings():
        stream = self._stream(vendor, standing)
        world = None if self.done is None else self.capture.worlds.get(vendor)
        names = listing.Names(self.capture, vendor, world)
        row = None if stream is None else stream.find(standing.address)
        found.append(QueuePlace(vendor, standing, None if stream is None else stream.queue, row, names))
    return found

  def _stream(self, vendor: str, standing: Standing) -> _Stream | None:
    fitting = [s for (v, _), s in self._streams.items() if v == vendor and s.queue.ring == standing.ring]
    return next((s for s in fitting if s.queue.gpu == standing.gpu), fitting[0] if fitting else None)

  @property
  def place(self) -> QueuePlace | None:
    """The packet that is executed next; None where nothing can go on."""
    if self._drawn is None: return None
    return next((p for p in self.places() if (p.vendor, p.standing.name) == self._drawn), None)

  def focus(self) -> QueuePlace | None:
    """The packet that is next; else the one at which the queue of this submission stands; else any queue's."""
    if (place := self.place) is not None: return place
    found = self.places()
    step = None if self.done is None else self.done.step
    mine = [p for p in found if step is not None and p.queue is step.queue]
    standing = [p for p in found if p.standing.why]
    return next(iter([*[p for p in mine if p.standing.why], *standing, *mine]), None)

  def part(self, place: QueuePlace) -> list[ExecutedRow]:
    """All packets of the submission in which a queue stands."""
    stream = None if place.queue is None else self._streams.get((place.vendor, place.queue.key))
    return stream.rows[0] if stream is not None and stream.rows else []

  def values(self) -> Mapping[str, int | str]:
    """Registers, or methods with their fields, that the queue in focus holds for the packets to come."""
    place = self.focus()
    return {} if place is None else self.on.machines[place.vendor].values_of(place.standing.name)

  def memory(self, address: int, size: int) -> bytes:
    """Memory as it is now. Raises InvalidArgument where there is none."""
    if not 0 < size <= LARGEST: raise InvalidArgument(f"{size} bytes", where="memory", hint=f"1 to {LARGEST:,}")
    place = self.focus()
    vendors = [*([] if place is None else [place.vendor]), *self.on.machines]
    for vendor in vendors:
      found = self.replay.memory(vendor, address, size)
      if found is not None and len(found) == size: return found
    raise InvalidArgument(f"no memory of {size} bytes at {address:#x}", where="memory",
                          hint="info memory lists what there is")

  # ---- breakpoints

  def add(self, text: str) -> Break:
    """A breakpoint by its words: `packet KIND`, `kernel NAME`, `address A`, `dispatch N`, `submission N`."""
    made = point(self._numbers + 1, text)
    self._numbers = made.number
    self.breaks[made.number] = made
    return made

  def delete(self, number: int) -> None:
    """Raises InvalidArgument for a number that no breakpoint has."""
    if self.breaks.pop(number, None) is None:
      raise InvalidArgument(f"there is no breakpoint {number}", where="delete",
                            hint="info breakpoints lists them")

  def _hit(self) -> Break | None:
    if not self.breaks: return None
    place = self.place
    if place is None or place.row is None or place.standing.busy: return None
    row = place.row
    return next((b for b in self.breaks.values() if b.fits(row, place.names)), None)

  # ---- going on

  def _until(self, over: Callable[[], bool]) -> Stop:
    """Go on to what stops the run, or until `over()`; one packet at least."""
    while True:
      told = self._advance()
      asked = self.interrupted()
      if told is not None: return self._stand(told)
      if asked: return self._stand(Stop("interrupted", "interrupted"))
      hit = self._hit()
      if hit is not None:
        hit.hits += 1
        return self._stand(Stop("breakpoint", str(hit), hit.number))
      if over(): return self._stand(Stop("step", "") if self._drawn is not None else self._over())

  def _stand(self, stop: Stop) -> Stop:
    self.last = stop
    return stop

  def _over(self) -> Stop:
    waits = self.waiting()
    what = "is over" if not waits else "can go on no more"
    return Stop("over", "\n".join([f"submission {self.moment.submission} {what}", *waits]))

  def run(self) -> Stop:
    """Go on to a breakpoint, a fault, memory that differs, or the capture's end."""
    return self._until(lambda: False)

  def step(self, count: int = 1) -> Stop:
    """Execute so many packets, into indirect buffers and on whichever queue is next."""
    for _ in range(count):
      stop = self._until(lambda: True)
      if stop.reason not in ("step", "over"): break
    return stop

  def next(self, count: int = 1) -> Stop:
    """As `step`, over indirect buffers and what other queues do."""
    for _ in range(count):
      start = self.place
      name, depth, submission = (None, 0, -1) if start is None or start.row is None else (
        start.standing.name, start.row.item.depth, start.row.submission)
      def over(name: str | None = name, depth: int = depth, submission: int = submission) -> bool:
        here = self.place
        if here is None or name is None: return True
        if here.standing.name != name or here.row is None: return False
        return here.row.item.depth <= depth or here.row.submission != submission
      stop = self._until(over)
      if stop.reason not in ("step", "over"): break
    return stop

  def next_submission(self) -> Stop:
    """Go on to where the next submission begins."""
    now = self.moment.submission
    return self._until(lambda: self.moment.submission != now)

  # ---- going back

  def go_to(self, moment: Moment) -> Stop:
    """Stand at a moment, before or behind this one; breakpoints do not count."""
    if moment < self.moment or self.ended: self.restart()
    while self.moment < moment and not self.ended:
      self._advance()
      if self.interrupted(): return self._stand(Stop("interrupted", "interrupted"))
    return self._stand(Stop("step", ""))

  def back(self) -> Stop:
    """To the beginning of this submission; from there, to that of the one before."""
    at = self.moment
    wanted = at.submission if at.packet or self.ended else at.submission - 1
    if wanted < 0: return self._stand(Stop("start", "the beginning"))
    return self.go_to(Moment(wanted, 0))

  def reverse_step(self, count: int = 1) -> Stop:
    """So many packets back."""
    return self._go_back(lambda moments: moments[-count] if len(moments) >= count else None, count)

  def reverse_run(self) -> Stop:
    """To the last breakpoint before this moment, or the beginning."""
    found: list[tuple[Moment, Break]] = []
    def note(moment: Moment) -> None:
      hit = self._hit()
      if hit is not None: found[:] = [(moment, hit)]
    self._forward(self.moment, self.ended, note)
    if not found:
      self.restart()
      return self._stand(Stop("start", "the beginning"))
    moment, hit = found[0]
    self.go_to(moment)
    hit.hits += 1
    return self._stand(Stop("breakpoint", str(hit), hit.number))

  def _forward(self, end: Moment, ended: bool, note: Callable[[Moment], None]) -> None:
    """Begin anew and go forward to a moment; `note` is called at each before it."""
    self.restart()
    while not self.ended and (ended or self.moment < end):
      note(self.moment)
      self._advance()
      if self._interrupted: return  # what comes next is told of it

  def _go_back(self, choose: Callable[[list[Moment]], Moment | None], keep: int) -> Stop:
    moments: deque[Moment] = deque(maxlen=keep)
    self._forward(self.moment, self.ended, moments.append)
    found = choose(list(moments))
    if found is None:
      self.restart()
      return self._stand(Stop("start", "the beginning"))
    return self.go_to(found)


def _differ(submission: int, told: list[str]) -> list[str]:
  """What a submission left behind otherwise than in the capture, in lines."""
  return [f"submission {submission} left other memory behind than in the capture:", *(f"  {t}" for t in told)] if told \
    else []


__all__ = ["Break", "Machine", "Machines", "Moment", "QueuePlace", "Session", "Stop", "kernels"]
