"""Why queues stand still: who waits for whom, who should have written what, and what was on the way.

    print("\\n".join(examine(Capture("run.thq")).lines()))

A capture is gone through as its queues would have (`queues.happens`), and held against what the host saw. What
stands then is the picture: waits, the signals that they are for, who would write them. `stand` makes it of queues
that are live, from what their driver hands in.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tinyhw.queues import listing
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.events import Note, Waited
from tinyhw.queues.happens import Happens, Packet, Runner, ends
from tinyhw.queues.lint import Finding, Linter, near, shortened
from tinyhw.queues.world import Allocation, Follow, Queue, World

BEHIND: Final = 2   # packets that are shown before the one that a queue stands at
AHEAD: Final = 3    # and after it
Name = Callable[[str, int], str]
"""(vendor, address) -> what lies there, or nothing."""


@dataclass(frozen=True, slots=True)
class Edge:
  """`who` waits for `what`, which `writer` would write; `why` is the sentence."""
  who: str
  what: str
  writer: str
  why: str


@dataclass
class Report:
  """What the doctor found. `verdict` is one line; each section has a head and lines."""
  verdict: str
  edges: list[Edge] = field(default_factory=list)
  cycle: list[str] = field(default_factory=list)
  sections: list[tuple[str, list[str]]] = field(default_factory=list)
  findings: list[Finding] = field(default_factory=list)

  @property
  def ill(self) -> bool:
    """Whether anything is wrong."""
    return bool(self.edges or self.findings or self.cycle or any(h in _ILL for h, _ in self.sections))

  def lines(self) -> list[str]:
    """The report as text."""
    out = [self.verdict]
    if self.edges: out += ["who waits for whom:", *(f"  {e.why}" for e in self.edges)]
    for head, lines in self.sections: out += [f"{head}:", *(f"  {line}" for line in lines)]
    for finding in self.findings: out += finding.lines()
    return out

  def row(self) -> dict[str, Any]:
    """The same as plain values."""
    return {"verdict": self.verdict, "cycle": self.cycle,
            "waits": [{"who": e.who, "what": e.what, "writer": e.writer, "text": e.why} for e in self.edges],
            "sections": {head: lines for head, lines in self.sections}, "findings": [f.row() for f in self.findings]}


FAULTS: Final = "faults"
STOOD: Final = "where waves stand"  # of kernels, on a mock
POLLED: Final = "what the driver looks at"
WAITS: Final = "what queues wait for"
UNKNOWN: Final = "whether these waits are over is not known"
_LOG, _RUNNING = "log", "was running"
_ILL: Final = (FAULTS, STOOD, _RUNNING)


class Beside(Protocol):
  """Who goes through a capture together with the doctor."""

  def begin(self, happens: Happens) -> None:
    """Before the first step."""

  def before(self, step: Step) -> None:
    """A step's call is made; its packets are not gone past."""

  def after(self, step: Step) -> None:
    """The queues have gone on as far as they can."""

  def stood(self) -> None:
    """The host has waited in vain, and queues stand: what the report shows is of now."""


def examine(capture: Capture, beside: Beside | None = None) -> Report:
  """What a capture shows. `beside` sees each step of the same walk."""
  return examined(capture, beside)[1]


def examined(capture: Capture, beside: Beside | None = None) -> tuple[Linter, Report]:
  """The same, beside the linter that has gone through it."""
  linter, faults, notes = Linter(capture), list[str](), list[str]()
  if beside is not None: beside.begin(linter.happens)
  def name(vendor: str, address: int) -> str:
    return listing.Names(capture, vendor, capture.worlds.get(vendor)).at(address)
  vain, untold = False, bool(capture.head.get("sniffed"))  # what waits are for may be where the recorder sees nothing
  def picture() -> Report:
    if beside is not None: beside.stood()
    return stand(linter.happens, name, vain, not untold)
  linter.on_stand = picture
  told: dict[str, int] = {}
  for step in capture:
    if beside is not None: beside.before(step)
    linter.feed(step)
    if beside is not None: beside.after(step)
    event = step.event
    if isinstance(event, Waited): vain = not event.met
    elif isinstance(event, Note): notes.append(f"{event.kind}: {event.text}")
    if step.world is not None and len(step.world.faults) > told.get(event.vendor, 0):
      for fault in step.world.faults[told.get(event.vendor, 0):]: faults += fault_lines(step, fault.address, fault.text)
      told[event.vendor] = len(step.world.faults)
  linter.finish()
  report = linter.picture if isinstance(linter.picture, Report) else stand(linter.happens, name, sure=not untold)
  if faults: report.sections.insert(0, (FAULTS, faults))
  if notes: report.sections.append((_LOG, notes))
  if untold: linter.found.clear()  # rules go by what the host had seen, which is not known there
  report.findings = [f for f in linter.found if not f.rule.advice]
  if faults and not report.edges: report.verdict = f"a GPU faulted: {faults[0]}"
  elif not report.edges and report.findings:
    count = len(report.findings)
    report.verdict = f"nothing stands; {count} finding{'s' if count > 1 else ''} all the same"
  return linter, report


def fault_lines(step: Step, address: int, text: str) -> list[str]:
  """A faulting address: what is there, what was there, what is next to it."""
  assert step.world is not None
  return [f"{text} at {address:#x}", *(f"  {line}" for line in history(step.world, address, near(step, address)))]


def history(world: World, address: int, close: str = "") -> Iterator[str]:
  """What an address is and was."""
  made = world.find(address)
  if made is not None:
    yield f"it is in {made.at(address)}, {_life(made)}"
    if made.seen_by is not None:
      gpus = ", ".join(sorted({q.name for q in world.queues if not q.closed and world.reaches(q, made)}))
      yield f"queues whose GPU has it mapped: {gpus or 'none'}"
  for gone in [a for a in reversed(world.freed) if a.address <= address < a.end][:2]:
    yield f"it was in {gone.at(address)}, {_life(gone)}"
  if made is None and not any(a.address <= address < a.end for a in world.freed):
    yield "no memory of the process was ever there"
  if close and made is None: yield close.lstrip("; ,")


def _life(made: Allocation) -> str:
  return f"made at event {made.made_at}" + (f", given back at event {made.freed_at}" if made.freed_at >= 0 else "")


@dataclass(frozen=True)
class Live:
  """A queue of a device that is open: `submissions` are (number, what it holds), from the oldest that is not done."""
  vendor: str
  queue: Queue
  submissions: list[tuple[int, Follow]]


def live(queues: list[Live], peek: Callable[[int], int | None], name: Name) -> Report:
  """The picture of queues that are open. `peek` gives the dword at a GPU address, where the host sees it."""
  happens, seen = Happens(), dict[str, dict[int, int]]()
  for row in queues:
    for number, follow in row.submissions:
      happens.add(row.vendor, row.queue, number, follow)
      for effect in (e for item in follow.items for e in item.effects if e.does in (Does.WAIT, Does.SIGNAL)):
        value = peek(effect.address)
        if value is not None: seen.setdefault(row.vendor, {})[effect.address] = value
  for vendor in {row.vendor for row in queues}: happens.see(vendor, seen.get(vendor, {}))
  return stand(happens, name, True)


def pictured(edges: list[Edge], sections: list[tuple[str, list[str]]]) -> Report:
  """The picture of what others have looked at: waits, and what else there is to show; sections without lines go."""
  kept = [(head, lines) for head, lines in sections if lines]
  cycle = _cycle({e.who: e.writer for e in edges})
  if faults := dict(kept).get(FAULTS): verdict = f"a GPU faulted: {faults[0]}"
  elif not edges and (stood := dict(kept).get(STOOD)): verdict = f"work does not end: {stood[0]}"
  elif not edges and (waits := dict(kept).get(WAITS)): verdict = waits[0]
  else: verdict = _verdict(edges, cycle, [])
  return Report(verdict, edges, cycle, kept)


# ---- what stands

def stand(happens: Happens, name: Name, vain: bool = False, sure: bool = True) -> Report:
  """The picture of queues as far as they went. `vain`: the host has waited for nothing to come. Where it is not `sure`
  that values are known, a queue whose wait has none may have gone on."""
  standing = [r for r in happens.runners.values() if r.waits is not None and r.ahead and not _over(happens, r)]
  unknown = [r for r in standing if not sure and not _known(happens, r)]
  standing = [r for r in standing if r not in unknown]
  edges = [_edge(happens, r, name) for r in standing]
  running = list(_running(happens, name)) if vain or standing else []
  cycle = _cycle({e.who: e.writer for e in edges})
  report = Report(_verdict(edges, cycle, running), edges, cycle)
  if running: report.sections.append((_RUNNING, [line for row in running for line in row[1]]))
  for r in standing: report.sections.append((f"packets of {r.queue.name}", list(_packets(r))))
  for runner, _ in running:
    if runner not in standing: report.sections.append((f"packets of {runner.queue.name}", list(_packets(runner))))
  if unknown: report.sections.append((UNKNOWN, [_edge(happens, r, name).why for r in unknown]))
  polled = [line for r in standing if (line := _polled(happens, r, name))]
  if polled: report.sections.append(("polled, and never changes", polled))
  return report


def _over(happens: Happens, runner: Runner) -> bool:
  """Whether what a queue seems to stand at was seen to hold."""
  wait = runner.waits
  signal = happens.signals.get((runner.vendor, wait.address)) if wait is not None else None
  return wait is not None and signal is not None and signal.seen is not None and wait.met(signal.seen)


def _known(happens: Happens, runner: Runner) -> bool:
  """Whether anybody has seen what a queue waits for."""
  signal = happens.signals.get((runner.vendor, runner.waits.address)) if runner.waits is not None else None
  return signal is not None and signal.seen is not None


def _edge(happens: Happens, runner: Runner, name: Name) -> Edge:
  wait = runner.waits
  assert wait is not None
  what = name(runner.vendor, wait.address) or "memory that nobody has"
  signal = happens.signals.get((runner.vendor, wait.address))
  seen = signal.seen if signal is not None and signal.seen is not None else signal.value if signal is not None else None
  is_now = f"it is {seen:#x}" if seen is not None else "its value is not known"
  how = (f"{runner.queue.name} (submission {runner.ahead[0].submission}) waits for {wait.address:#x} ({what}) "
         f"{wait.compare} {wait.value:#x}; {is_now}; ")
  ahead = happens.ahead(runner.vendor, wait)
  if ahead:
    other, packet, e = ahead[0]
    told = "it writes that itself, only behind this wait" if other is runner else \
      f"{other.queue.name} would write {e.value:#x} (submission {packet.submission}) and waits itself"
    return Edge(runner.queue.name, f"{wait.address:#x}", other.queue.name, how + told)
  done = [(p, e) for p, e in happens.all_signals if p.vendor == runner.vendor and e.address == wait.address]
  if done:
    place, effect = done[-1]
    unseen = seen is not None and effect.value != seen and ends(wait, effect)
    who = f"{place.queue} (submission {place.submission})"
    told = f"{who} would write {effect.value:#x} and has not come to it" if unseen else \
      f"the last that writes there is {who}, and it writes {effect.value:#x}"
    return Edge(runner.queue.name, f"{wait.address:#x}", place.queue if unseen else "", how + told)
  return Edge(runner.queue.name, f"{wait.address:#x}", "", how + "nothing that was submitted writes there: the "
              "host should, or a submission that never came")


def _cycle(writers: dict[str, str]) -> list[str]:
  """A circle of queues that wait for each other, if there is one."""
  for start in writers:
    way, at = [start], writers[start]
    while at in writers and at not in way:
      way.append(at)
      at = writers[at]
    if at in way: return way[way.index(at):]
  return []


def _running(happens: Happens, name: Name) -> Iterator[tuple[Runner, list[str]]]:
  """Of each queue the oldest work whose signal the host has not seen."""
  oldest: dict[int, tuple[Runner, Packet, Effect]] = {}
  for runner, packet, effect in happens.running():
    if packet in runner.ahead: continue
    if runner.agent not in oldest or packet.submission < oldest[runner.agent][1].submission:
      oldest[runner.agent] = runner, packet, effect
  for runner, packet, effect in oldest.values():
    lines = [f"{runner.queue.name}, submission {packet.submission}: its signal {effect.value:#x} to "
             f"{effect.address:#x} was not seen"]
    for p in runner.history:
      if p.submission != packet.submission: continue
      for launch in p.launches:
        what = name(runner.vendor, launch.entry) or f"code at {launch.entry:#x}"
        grid, block = (",".join(map(str, n)) for n in (launch.grid, launch.block))
        lines.append(f"  {what}, grid {grid}, block {block}: {p.item.address:#x} {_short(p)}")
    yield runner, lines


def _verdict(edges: list[Edge], cycle: list[str], running: list[tuple[Runner, list[str]]]) -> str:
  if cycle: return f"a circle: {' waits for '.join([*cycle, cycle[0]])}"
  ends = [e for e in edges if not e.writer or e.writer not in {o.who for o in edges}]
  if ends and not ends[0].writer: return f"{ends[0].who} waits for a value that nobody writes"
  if running:
    first = running[0][1]
    return f"work does not end: {first[1].strip() if len(first) > 1 else first[0]}"
  if ends: return f"{ends[0].who} waits for {ends[0].writer}"
  return "nothing stands"


def _short(packet: Packet) -> str: return shortened(listing.packet_text(packet.item), 120)


def _packets(runner: Runner) -> Iterator[str]:
  """The last packets around the place where a queue reads."""
  for packet in runner.history[-BEHIND:]: yield f"     {packet.item.address:#x}  {_short(packet)}"
  for n, packet in enumerate(runner.ahead[:AHEAD]):
    yield f"{'->' if not n else '  '}   {packet.item.address:#x}  {_short(packet)}"
  if (more := len(runner.ahead) - AHEAD) > 0: yield f"     and {more} more"


def _polled(happens: Happens, runner: Runner, name: Name) -> str:
  """A wait's memory that has held one value all the time."""
  wait = runner.waits
  signal = happens.signals.get((runner.vendor, wait.address)) if wait is not None else None
  if wait is None or signal is None or len(signal.values) > 1: return ""
  value = f"{signal.values[0].value:#x}" if signal.values else "nothing known"
  what = name(runner.vendor, wait.address) or "memory that nobody has"
  return f"{wait.address:#x} ({what}): {value} from the beginning"
