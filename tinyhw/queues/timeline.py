"""A capture as a picture over time: lanes of threads and queues, spans on them, arrows, memory in use, what is wrong.

    taken = timeline(Capture("run.thq"))
    taken.spans[0].name, taken.lanes[taken.spans[0].lane].name

The recorder's clock has the calls, the doorbells, the host's waits and looks. Of a packet it has two bounds: it is read
after its doorbell, and it is over when the host has seen a signal behind it. In between `queues.happens` knows the
order alone. So the packets between two bounds are laid out in that order, those that run kernels and copies ten times
as wide as others: the order is real, a width within a submission is not measured.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tinyhw.core.source import Spot
from tinyhw.queues import calls, listing
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.doctor import Report, examine
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Doorbell, Note, Ran, Seen, Waited, Work
from tinyhw.queues.happens import HOST, Happens, Packet, Runner, Signalled
from tinyhw.queues.world import Item, World
from tinyhw.wire import methods

KINDS: Final = ("launch", "copy", "wait", "signal", "cache", "packet", "call", "doorbell", "host wait", "note")
WIDTH: Final = {"launch": 10.0, "copy": 10.0, "wait": 3.0}  # of a packet beside others
CODE_LINES: Final = 2000  # of a kernel's text that are kept


@dataclass(frozen=True, slots=True)
class Lane:
  """A row of the picture: a thread of the program, or a queue."""
  name: str
  vendor: str


@dataclass(eq=False, slots=True)
class Span:
  """Something on a lane, in nanoseconds of the recorder's clock. A call is a point: both are the same.

  `stands`: the queue has not gone past it. `lines` are its fields and what lies at its addresses, `kernel` names what
  it launches, `submission` counts the doorbells.
  """
  lane: int
  kind: str
  name: str
  start: float
  end: float
  submission: int = -1
  address: int = 0
  lines: list[str] = field(default_factory=list)
  kernel: str = ""
  stands: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
  """`to` came behind `start`: a doorbell and the first packet that it tells of, a signal and the wait that it ends, a
  packet and the host that saw it over. Both are indices of spans."""
  start: int
  to: int
  why: str


@dataclass(frozen=True, slots=True)
class Mark:
  """Something wrong, and where: a finding's last packet, a packet that a queue stands at. -1 is nowhere."""
  span: int
  name: str
  lines: list[str]


@dataclass
class Timeline:
  """See the module. `memory` is bytes in use by GPU: rows of (when, bytes). `code` is text of kernels by name, `source`
  where each of its lines comes from, of kernels whose code says that: the place, then the calls that led there."""
  path: str
  lanes: list[Lane] = field(default_factory=list)
  spans: list[Span] = field(default_factory=list)
  flows: list[Flow] = field(default_factory=list)
  marks: list[Mark] = field(default_factory=list)
  memory: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
  code: dict[str, list[str]] = field(default_factory=dict)
  source: dict[str, list[tuple[Spot, ...]]] = field(default_factory=dict)
  report: Report = field(default_factory=lambda: Report(""))
  end_ns: int = 0


CodeOf = Callable[[bytes, str], dict[str, list[str]]]
"""(a file of code, its kind) -> lines of each kernel."""
SourceOf = Callable[[bytes, str], dict[str, list[tuple[Spot, ...]]]]
"""The same -> where each of these lines comes from, of kernels of which that is known."""


def timeline(capture: Capture, code_of: CodeOf | None = None, source_of: SourceOf | None = None) -> Timeline:
  """The picture of a capture. `code_of` shows the code of kernels that were launched, `source_of` its source lines."""
  drawn = _Drawn(capture)
  drawn.out.report = examine(capture, drawn)
  drawn.finish()
  if code_of is not None: _code(capture, drawn.out, code_of, source_of or (lambda image, kind: {}))
  return drawn.out


def _code(capture: Capture, out: Timeline, code_of: CodeOf, source_of: SourceOf) -> None:
  """The code of the kernels that are launched; of several objects with a kernel of one name the last."""
  launched = {s.kernel for s in out.spans if s.kernel}
  for program in capture.programs:
    names = launched & {name for name, _, _ in program.kernels}
    image = capture.reader.blob(program.image) if names else None
    if image is None: continue
    code, source = code_of(image, program.kind), source_of(image, program.kind)
    for name in names & code.keys():
      out.code[name] = code[name][:CODE_LINES]
      out.source.pop(name, None)
      if name in source: out.source[name] = source[name][:CODE_LINES]


class _Drawn:
  """Draws while the doctor goes through the capture."""

  def __init__(self, capture: Capture) -> None:
    self.out = Timeline(str(capture.reader.path))
    self._capture = capture
    self._happens = Happens()
    self._lanes: dict[tuple[str, int], int] = {}
    self._waiting: dict[int, int] = {}                             # a packet's item -> its span
    self._items: dict[int, int] = {}                               # the same, of all that are kept
    self._kept: list[Item] = []                                    # so that no other has the number of one of them
    self._past: dict[int, list[int]] = defaultdict(list)           # of each agent: its packets' spans, in order
    self._order: list[int] = []
    self._enders: dict[int, list[int]] = {}
    self._over: dict[int, float] = {}                              # when a packet is known to be over
    self._known: dict[int, int] = defaultdict(int)                 # of each agent: packets that the host knows of
    self._times: list[int] = []
    self._follows: dict[int, int] = {}                             # a packet -> the one before it on its queue
    self._worlds: dict[str, World] = {}
    self._wait = -1                                                # the host's last wait
    self._stood: dict[int, str] = {}                               # packets before which queues stood

  def begin(self, happens: Happens) -> None:
    self._happens = happens
    happens.on_past = self._gone_past

  def before(self, step: Step) -> None:
    event = step.event
    self._times.append(event.at_ns)
    self.out.end_ns = max(self.out.end_ns, event.at_ns)
    if step.world is not None: self._worlds[event.vendor] = step.world
    if step.follow is not None: self._submission(step)
    elif isinstance(event, Waited):
      self._wait = self._host(step, "host wait", "waits" if event.met else "waits in vain", event.at_ns - event.ns)
    elif isinstance(event, Note): self._host(step, "note", f"{event.kind}: {event.text}", event.at_ns)
    elif not isinstance(event, Seen | Ran) and (text := calls.text(step)):
      self._host(step, "call", text.partition("(")[0], event.at_ns)
      self.out.spans[-1].lines.append(text)

  def after(self, step: Step) -> None:
    if not isinstance(step.event, Doorbell | Seen): return
    know = self._happens.know_of_host(step.event.vendor)
    waits = self._wait if isinstance(step.event, Seen) else -1
    if waits >= 0: self.out.spans[waits].end = step.event.at_ns  # the recorder's look belongs to the wait
    for agent, (packets, _, _) in know.seats.items():
      first = self._known[agent]
      if packets <= first: continue
      spans = self._past[agent]
      for n in range(first, min(packets, len(spans))): self._over[spans[n]] = step.event.at_ns
      self._known[agent] = packets
      if waits >= 0 and packets <= len(spans): self._flow(spans[packets - 1], waits, "seen")

  def stood(self) -> None:
    self._stood = {self._items[id(r.ahead[0].item)]: f"{r.queue} stands here" for r in self._happens.runners.values()
                   if r.waits is not None and r.ahead and id(r.ahead[0].item) in self._items}

  # ---- spans

  def _lane(self, vendor: str, key: int, name: str) -> int:
    if (vendor, key) not in self._lanes:
      self._lanes[vendor, key] = len(self.out.lanes)
      self.out.lanes.append(Lane(name, vendor if key >= 0 else ""))
    return self._lanes[vendor, key]

  def _add(self, span: Span) -> int:
    self.out.spans.append(span)
    return len(self.out.spans) - 1

  def _host(self, step: Step, kind: str, name: str, start: int) -> int:
    lane = self._lane("", -1 - step.event.thread, f"thread {step.event.thread}")
    return self._add(Span(lane, kind, name, start, step.event.at_ns, step.submission))

  def _submission(self, step: Step) -> None:
    assert step.follow is not None and step.queue is not None
    event = step.event
    rang = self._host(step, "doorbell", f"{event.call}: {step.queue}" if isinstance(event, Work) else
                      f"rings {step.queue}", event.at_ns)
    lane = self._lane(event.vendor, step.queue.key, str(step.queue))
    names = listing.Names(self._capture, event.vendor, step.world)
    launches = {id(l.item): l for l in step.follow.launches}
    first = True
    for item in step.follow.items:
      launch = launches.get(id(item))
      known = listing.known(names, item, launch)
      kernel = (names.at(launch.entry) or f"code at {launch.entry:#x}") if launch is not None else ""
      kind = kind_of(item)
      span = Span(lane, kind, kernel.removeprefix("kernel ") or name_of(item, kind, names), event.at_ns, event.at_ns,
                  step.submission, item.address, [listing.packet_text(item), *known, *listing.below(item)],
                  kernel.removeprefix("kernel "))
      self._waiting[id(item)] = self._items[id(item)] = self._add(span)
      self._kept.append(item)
      if first: self._flow(rang, self._waiting[id(item)], "rung")
      first = False

  def _gone_past(self, runner: Runner, packet: Packet, enders: list[Signalled]) -> None:
    n = self._waiting.pop(id(packet.item), -1)
    if n < 0: return
    mine = self._past[runner.agent]
    if mine: self._follows[n] = mine[-1]
    mine.append(n)
    self._order.append(n)
    for row in enders:
      if row.place.agent == HOST or row.packet < 0 or row.packet >= len(self._past[row.place.agent]): continue
      other = self._past[row.place.agent][row.packet]
      self._enders.setdefault(n, []).append(other)
      if self.out.spans[other].lane != self.out.spans[n].lane: self._flow(other, n, "ends the wait")

  def _flow(self, start: int, to: int, why: str) -> None: self.out.flows.append(Flow(start, to, why))

  # ---- the end

  def finish(self) -> None:
    """Lay the packets out, and put on the picture what is found out at the end."""
    self._lay_out()
    self._memory()
    for runner in self._happens.runners.values(): self._standing(runner)
    if not self.out.report.edges: self._stood = {}  # it went on
    for n, text in self._stood.items():
      self.out.marks.append(Mark(n, "stands", [text, *self.out.spans[n].lines[:1]]))
    for finding in self.out.report.findings:
      items = [p.item for p in finding.places if p.item is not None]
      span = self._items.get(id(items[-1]), -1) if items else -1
      self.out.marks.append(Mark(span, finding.rule.name, finding.lines()))
    for vendor, world in self._worlds.items():
      for fault in world.faults:
        self.out.marks.append(Mark(-1, "fault", [f"{vendor}: {fault.text} at {fault.address:#x}"]))

  def _lay_out(self) -> None:
    spans, end = self.out.spans, float(self.out.end_ns)
    over = {n: self._over.get(n, end) for n in self._order}
    before = {n: [*self._enders.get(n, []), *([self._follows[n]] if n in self._follows else [])] for n in self._order}
    for n in reversed(self._order):
      for m in before[n]: over[m] = min(over[m], over[n])
    width = {n: WIDTH.get(spans[n].kind, 1.0) for n in self._order}
    chain = dict(width)
    for n in reversed(self._order):
      for m in before[n]:
        if over[m] == over[n]: chain[m] = max(chain[m], width[m] + chain[n])
    for n in self._order:
      span = spans[n]
      span.start = max([span.start, *(spans[m].end for m in before[n])])
      span.end = span.start + max(0.0, over[n] - span.start) * width[n] / chain[n]

  def _standing(self, runner: Runner) -> None:
    past = self._past[runner.agent]
    begin = self.out.spans[past[-1]].end if past else 0.0
    for k, packet in enumerate(runner.ahead):
      n = self._items.get(id(packet.item), -1)
      if n < 0: continue
      span = self.out.spans[n]
      span.stands, span.start, span.end = True, max(begin, span.start), float(self.out.end_ns)
      if k: span.start = span.end
      elif runner.waits is not None: self._stood[n] = f"{runner.queue} stands here"

  def _memory(self) -> None:
    for vendor, world in self._worlds.items():
      steps: dict[int, list[tuple[int, int]]] = defaultdict(list)
      for made in world.allocations:
        if not made.address: continue
        steps[made.gpu].append((made.made_at, made.size))
        if made.freed_at >= 0: steps[made.gpu].append((made.freed_at, -made.size))
      for place, gpu in enumerate(sorted(steps)):
        total, rows = 0, list[tuple[int, int]]()
        for event, size in sorted(steps[gpu]):
          total += size
          rows.append((self._times[event], total))
        self.out.memory[f"{vendor} GPU{place}"] = rows


def kind_of(item: Item) -> str:
  """What a packet is mainly for."""
  does = {e.does for e in item.effects}
  if Does.LAUNCH in does: return "launch"
  if any(e.size for e in item.effects if e.does is Does.READ) and any(
      e.size for e in item.effects if e.does is Does.WRITE): return "copy"
  if Does.WAIT in does: return "wait"
  if Does.SIGNAL in does or Does.ATOMIC in does: return "signal"
  if does & {Does.ACQUIRE, Does.RELEASE, Does.IDLE}: return "cache"
  return "packet"


def name_of(item: Item, kind: str, names: listing.Names) -> str:
  """A packet's few words."""
  if kind == "copy": return f"copies {max(e.size for e in item.effects if e.does is Does.WRITE):,} bytes"
  for effect in item.effects:
    where = names.at(effect.address) or hex(effect.address)
    if kind == "wait" and effect.does is Does.WAIT: return f"waits for {where} {effect.compare} {effect.value:#x}"
    if kind == "signal" and effect.does is Does.SIGNAL: return f"signals {effect.value:#x} to {where}"
  packet = item.packet
  if packet is None: return "no packet"
  if isinstance(packet, methods.Send) and (named := listing.below(item)):
    return named[0].partition("(")[0].rpartition(".")[2]
  return "NOP" if isinstance(packet, int) else type(packet).__name__
