"""What a forgiving memory hides and a chip punishes: rules, and what in a capture breaks them.

    for finding in lint(Capture("run.thq")): print(finding)

A rule is declared once (`RULES`): its name, what breaks it, why that is one, and what to do. Rules go by what
packets do (`queues.effects`), by the order between them (`queues.happens`), and by what the kernel driver's calls
and code objects say. What is unsure is no finding.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.queues import listing
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.checks import arguments, contradictions
from tinyhw.queues.cuda.stream import TIMELINES
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.events import Doorbell, Ioctl, Seen, Waited
from tinyhw.queues.happens import HOST, Access, Conflict, Happens, Place, Runner, Use, facts_of, pointers
from tinyhw.queues.world import PAGE, Allocation, Item, Launch
from tinyhw.wire import codeobject


@dataclass(frozen=True, slots=True)
class Rule:
  """`advice` is what costs time and does no harm."""
  name: str
  what: str
  why: str
  do: str
  source: str
  advice: bool = False


_BACK: Final = 1 << 30  # how far a signal goes back at most: more is a number that wraps
_MANUALS: Final = "docs/weak-memory.md; LLVM's AMDGPUUsage, memory model; HSA 2.10; NVIDIA's class headers"
RULES: Final[dict[str, Rule]] = {rule.name: rule for rule in (
  Rule("race", "two accesses of the same bytes, one of them a write, with nothing that orders them",
       "queues and engines run beside each other, and kernels beside the packets behind them",
       "let the second wait: for the first's signal or event on another queue, until idle on the same", _MANUALS),
  Rule("release", "what a kernel wrote is read by another engine or GPU, and was not written back before the signal",
       "the signal may be seen before the data is",
       "release to the system with the signal (GL2_WB; a membar in the QMD)", _MANUALS),
  Rule("acquire", "what another wrote is read behind the signal while caches may still hold what was there before",
       "a wait orders packets; it does not make caches forget", "acquire between the wait and the reader", _MANUALS),
  Rule("reuse", "the host stores into memory that submitted work may not have read yet",
       "arguments, staging memory, command words and signals belong to the GPU until it is done with them",
       "wait for the work's signal before memory is filled again", "HSA 2.9; open-gpu-kernel-modules, nv_uvm"),
  Rule("ring-overrun", "a doorbell tells of more entries than the ring has room for beside those that are not read",
       "entries that the engine has not read are overwritten", "wait until the read pointer has passed",
       "HSA 2.8.3; open-gpu-kernel-modules issue 1286"),
  Rule("write-pointer", "a doorbell's value is not the write pointer in memory",
       "the scheduler goes by memory when it maps the queue again, and reads too little or too much",
       "store the write pointer first, then ring", "Linux amdkfd, kfd_mqd_manager_v11.c; rocm-systems issue 7796"),
  Rule("no-packet", "words that an engine reads are no packet",
       "the engine stops there, or takes them for another packet", "see what wrote these words: a wrong length, a ring "
       "that wraps wrongly, a doorbell beyond what was written", "PAL's packet headers; NVIDIA's class headers"),
  Rule("unmapped", "a packet names an address where the process has no memory", "the GPU faults there",
       "see the halves of the address and what it was computed from", "Linux amdkfd; NVIDIA's UVM"),
  Rule("beyond", "a packet's bytes go on past the end of the memory that they begin in",
       "the GPU faults, or writes what is another's", "see the count and the unit that it counts in",
       "Linux amdkfd; NVIDIA's UVM"),
  Rule("freed", "a packet names memory that was given back", "the GPU faults, or writes what is another's by now",
       "keep memory until the signal of the last work that uses it", "Linux amdkfd; NVIDIA's UVM"),
  Rule("freed-in-use", "memory is given back while submitted work may still use it",
       "its pages leave the page tables under a running kernel", "wait for the work's signal first",
       "Linux amdkfd; NVIDIA's UVM"),
  Rule("not-mapped-here", "a packet names memory that its GPU does not have in its page tables", "the GPU faults there",
       "map it for this GPU too", "AMDKFD_IOC_MAP_MEMORY_TO_GPU; UVM_MAP_EXTERNAL_ALLOCATION"),
  Rule("program", "a launch's program address is no kernel's entry", "the GPU runs what lies there",
       "see the address and the shift that its register or field has", "the code object's symbols"),
  Rule("object", "registers or QMD fields contradict the code object",
       "the kernel runs with other registers, inputs or memory than it was compiled for",
       "take the value from the kernel's descriptor", "LLVM's AMDGPUUsage; cubin's .nv.info"),
  Rule("lds", "a launch has less LDS or shared memory than its kernel needs",
       "accesses past the end are dropped or fault", "round up the kernel's size and add what is dynamic",
       "LLVM's AMDGPUUsage; cubin's .nv.info"),
  Rule("scratch", "a launch has less scratch or local memory than its kernel needs", "waves write into one another's",
       "give each wave what the kernel's descriptor says", "LLVM's AMDGPUUsage; cubin's .nv.info"),
  Rule("argument", "an argument that the kernel uses as an address is none of this process's memory",
       "the kernel faults", "see which argument it is, and whether the memory was freed", "the code object's metadata"),
  Rule("wait", "a wait that nothing submitted ends", "the queue stands there for ever, and all that waits for it",
       "see who should have written the value, and when it is submitted", "HSA 2.4; NVIDIA's dev_pbdma"),
  Rule("signal-value", "a signal that is waited for with >= is written a value that is not above the one before",
       "who waits for the earlier one is let go too early or too late", "count on by one with each submission",
       "HSA 2.4"),
  Rule("signal-lost", "work ends with a signal that nobody ever saw arrive, though the host looked",
       "the work hangs, or the signal went to another address", "see the last packets of its queue", "HSA 2.4"),
  Rule("misaligned", "a signal or wait has an address that is not a multiple of its size",
       "engines drop the low bits of the address", "align it", "PAL's packet headers; NVIDIA's class headers"),
  Rule("unwritten", "a copy reads bytes that nobody wrote", "it copies what was there by chance",
       "see the source address, and what should have filled it", "the capture"),
  Rule("overlap", "a copy's source and destination overlap", "what is read late was written early",
       "copy by way of other memory", "NVIDIA's copy classes; Linux sdma_v6_0.c"),
  Rule("empty", "a launch has no threads or no groups", "the kernel does not run and its signal may come at once",
       "see the sizes; leave out empty launches", "HSA 2.6"),
  Rule("flush", "an acquire directly behind another, with nothing begun between", "each costs a walk over the caches",
       "leave one out", _MANUALS, advice=True),
  Rule("idle", "a wait until idle with nothing begun since the last", "it costs a bubble", "leave it out", _MANUALS,
       advice=True),
)}


@dataclass(frozen=True, slots=True)
class Finding:
  """What breaks a rule: the packets (the one to blame last), each with where it is; `missing` says what lacks."""
  rule: Rule
  missing: str
  places: tuple[Place, ...]
  notes: tuple[str, ...] = ()

  def lines(self) -> list[str]:
    """The finding as text."""
    out = [f"{self.rule.name}: {self.missing}"]
    for place, note in zip(self.places, (*self.notes, *[""] * len(self.places))):
      out.append(f"  {where(place)}" + (f" {note}" if note else ""))
      if place.item is None: continue
      out.append(f"    {place.item.address:#x}  {shortened(listing.packet_text(place.item))}")
    out.append(f"  do: {self.rule.do}")
    return out

  def row(self) -> dict[str, Any]:
    """The same as plain values."""
    return {"rule": self.rule.name, "missing": self.missing, "why": self.rule.why, "do": self.rule.do,
            "packets": [{"queue": p.queue, "submission": p.submission, "event": p.event,
                         "address": p.item.address if p.item is not None else None,
                         "packet": listing.packet_text(p.item) if p.item is not None else None, "note": n}
                        for p, n in zip(self.places, (*self.notes, *[""] * len(self.places)))]}

  def __str__(self) -> str: return "\n".join(self.lines())


def where(place: Place) -> str:
  """`submission 4, GPU0.SDMA.1`."""
  if place.agent == HOST:
    return f"the host, before submission {place.submission}" if place.submission >= 0 else "the host"
  return f"submission {place.submission}, {place.queue}"


_FAULTS: Final = frozenset({"unmapped", "beyond", "freed", "not-mapped-here", "no-packet"})  # what stops a queue


def shortened(text: str, limit: int = 160) -> str:
  """What fits a line."""
  return text if len(text) <= limit else text[:limit - 4] + " ...)"


@dataclass
class Linter:
  """Goes through a capture with `happens`; `found` has the findings, each pair once."""
  capture: Capture
  happens: Happens = field(init=False)
  found: list[Finding] = field(default_factory=list)
  ended: bool = False
  on_stand: Callable[[], Any] | None = None
  stood: list[tuple[Runner | None, Finding]] = field(default_factory=list)
  picture: Any = None

  def __post_init__(self) -> None:
    self.happens = Happens(self.capture)
    self._told: set[tuple[str, Any]] = set()
    self._look = False  # the host has just waited in vain
    self._written: set[tuple[str, int]] = set()
    self._begun: dict[tuple[str, int], tuple[bool, bool]] = {}  # begun since the last idle, since the last acquire

  def run(self) -> list[Finding]:
    """All of the capture."""
    for step in self.capture: self.feed(step)
    self.finish()
    return self.found

  def feed(self, step: Step) -> None:
    """Go past a step."""
    if step.world is not None and isinstance(step.event, Ioctl): self._freed(step)
    if self._look and not isinstance(step.event, Seen): self._picture()
    if isinstance(step.event, Waited): self._look, self.stood, self.picture = not step.event.met, [], None
    place = None
    if isinstance(step.event, Doorbell) and step.queue is not None and step.follow is not None:
      self._doorbell(step, step.event)
      launches = iter(step.follow.launches)
      for item in step.follow.items:
        place = Place(step.event.vendor, 0, step.queue.name, step.submission, item, step.number)
        if item.packet is None: self._tell("no-packet", item.error, (place,))
        for effect in item.effects:
          launch = next(launches, None) if effect.does is Does.LAUNCH else None
          self._effect(step, place, item, effect)
          if launch is not None: self._launch(step, place, launch)
        self._copy(step, place, item)
        self._advice(step, place, item)
    for conflict in self.happens.feed(step): self._conflict(conflict)

  def finish(self) -> None:
    """What is only known at the end."""
    if self.ended: return
    self.ended = True
    if not self.stood: self._picture()
    kept = [f for r, f in self.stood if r is None or r.waits is not None or r.forced]
    self.found += kept
    if self.stood and not kept: self.picture = None
    for conflict in self.happens.finish(): self._conflict(conflict)
    self._signals()

  def _picture(self) -> None:
    """What stands now. It counts if it never goes on."""
    vain, self._look, before = self._look, False, len(self.found)
    told = set(self._told)
    for runner in self.happens.runners.values():
      if runner.waits is not None and runner.ahead: self._stands(runner, runner.waits)
    if vain and len(self.found) == before: self._lost()
    new, self.found, self._told = self.found[before:], self.found[:before], told
    names = {r.queue.name: r for r in self.happens.runners.values()}
    self.stood = [(names.get(f.places[-1].queue) if f.rule.name == "wait" else None, f) for f in new]
    if self.on_stand is not None: self.picture = self.on_stand()

  # ---- one packet

  def _tell(self, rule: str, missing: str, places: tuple[Place, ...], notes: tuple[str, ...] = (), key: Any = None
            ) -> None:
    key = rule, key if key is not None else tuple(id(p.item) for p in places)
    if key in self._told: return
    self._told.add(key)
    self.found.append(Finding(RULES[rule], missing, places, notes))

  def _doorbell(self, step: Step, event: Doorbell) -> None:
    assert step.queue is not None and step.world is not None
    queue = step.queue
    last = step.follow.items[-1] if step.follow is not None and step.follow.items else None
    place = Place(event.vendor, 0, queue.name, step.submission, last, step.number)
    if len(event.pointers) == 2:
      ahead = event.last - step.world.reached(queue, event.pointers[0], event.first)
      room = step.world.room(queue)
      if queue.size and event.last > event.first and ahead > room:
        self._tell("ring-overrun", f"{ahead} entries are not read, the ring has room for {room}", (place,))
      told = step.world.told(queue, event.value)
      if told is not None and told != event.pointers[1]:
        self._tell("write-pointer", f"the doorbell says {told}, the write pointer in memory {event.pointers[1]}",
                   (place,))

  def _effect(self, step: Step, place: Place, item: Item, effect: Effect) -> None:
    if effect.does in (Does.READ, Does.WRITE, Does.STAMP, Does.WAIT, Does.SIGNAL, Does.ATOMIC, Does.CALL):
      self._address(step, place, effect.address, max(effect.size, 1), effect.does.value)
    if effect.does in (Does.WAIT, Does.SIGNAL) and effect.size and effect.address % min(effect.size, 4):
      self._tell("misaligned", f"{effect.address:#x} is no multiple of {effect.size}", (place,))
    if effect.does is Does.WRITE or effect.does is Does.ATOMIC:
      made = step.world.find(effect.address) if step.world is not None else None
      if made is not None: self._written.add((step.event.vendor, made.key))

  def _address(self, step: Step, place: Place, address: int, size: int, what: str) -> bool:
    """Whether memory that a packet names is there; tells why not."""
    assert step.world is not None and step.queue is not None
    made = step.world.find(address)
    if made is None:
      was = step.world.was(address)
      if was is not None:
        self._tell("freed", f"it {what} {address:#x}, in {was}, which was given back at event {was.freed_at}", (place,))
      else: self._tell("unmapped", f"it {what} {address:#x}{near(step, address)}", (place,))
      return False
    if not step.world.reaches(step.queue, made):
      self._tell("not-mapped-here", f"it {what} {made.at(address)}, which {step.queue.name}'s GPU has not mapped",
                 (place,))
      return False
    end = address + size
    while end > made.end and (more := step.world.find(made.end)) is not None: made = more
    if end > made.end:
      self._tell("beyond", f"it {what} {size:#x} bytes at {address:#x}, {end - made.end:#x} past the end of {made}",
                 (place,))
    return True

  def _copy(self, step: Step, place: Place, item: Item) -> None:
    reads = [e for e in item.effects if e.does is Does.READ and e.size]
    writes = [e for e in item.effects if e.does is Does.WRITE and e.size]
    if not reads or not writes: return
    for r in reads:
      for w in writes:
        if (r.address, r.end) == (w.address, w.end): continue  # onto itself: whoever comes first, it is the same
        if r.address < w.end and w.address < r.end:
          self._tell("overlap", f"it reads {r.address:#x}..{r.end:#x} and writes {w.address:#x}..{w.end:#x}", (place,))
    assert step.world is not None
    for r in reads:
      made = step.world.find(r.address)
      if made is None or made.host or not step.world.COMPLETE or self._filled(step, made): continue
      self._tell("unwritten", f"nothing was written to {made}, and it reads {r.address:#x}", (place,))

  def _filled(self, step: Step, made: Allocation) -> bool:
    """Whether somebody may have written to memory that the host does not see."""
    vendor = step.event.vendor
    if (vendor, made.key) in self._written or made.kind == "USER": return True
    if any(a.use is not Use.READ for a in self.happens.accesses.get((vendor, made.key), ())): return True
    ahead = (u for r in self.happens.runners.values() for p in r.ahead for u in p.uses)
    return any(use is not Use.READ and place is made for _, _, use, place, _, _ in ahead)

  def _launch(self, step: Step, place: Place, launch: Launch) -> None:
    assert step.world is not None and step.queue is not None
    vendor, capture = step.event.vendor, self.capture
    if not all(launch.grid) or not all(launch.block):
      self._tell("empty", f"grid {launch.grid}, block {launch.block}", (place,))
    there = self._address(step, place, launch.entry, 1, "runs code at")
    kernel = capture.kernels.get((vendor, launch.entry))
    if there and kernel is None and self._strange(vendor, step.queue.kind, launch.entry):
      names = listing.Names(capture, vendor, step.world)
      what = "kernel's descriptor is" if step.queue.kind == "aql" else "kernel begins"
      self._tell("program", f"{launch.entry:#x} is {names.at(launch.entry)}, and no {what} there", (place,))
    if step.queue.kind == "aql" and kernel is not None and kernel.argument_bytes:
      self._address(step, place, launch.arguments, kernel.argument_bytes, "has arguments at")
    for use in pointers(capture, step, launch):
      made = step.world.find(use[0])
      if made is not None:
        if not step.world.reaches(step.queue, made):
          self._tell("not-mapped-here", f"{use[2]} points to {made.at(use[0])}, which {step.queue.name}'s GPU has not "
                     "mapped", (place,))
        if use[1] is not Use.READ: self._written.add((vendor, made.key))
    facts = facts_of(capture, vendor, launch)
    if facts is None: return
    for rule, missing in contradictions(launch, facts): self._tell(rule, missing, (place,))
    for missing in arguments(capture, step, launch, facts): self._tell("argument", missing, (place,))

  def _strange(self, vendor: str, kind: str, entry: int) -> bool:
    """Whether an address that is no kernel's entry is known to be no program's. AQL packets name descriptors."""
    programs = [p for p in self.capture.programs if p.vendor == vendor]
    if kind != "aql": return bool(programs)
    for program in programs:
      image = self.capture.reader.blob(program.image)
      if not program.address <= entry < program.address + program.size or image is None: continue
      kernels = codeobject.load(image).kernels.values()
      return all(program.address + k.descriptor_offset != entry for k in kernels)
    return False

  def _advice(self, step: Step, place: Place, item: Item) -> None:
    assert step.queue is not None
    key = step.event.vendor, step.queue.key
    idle, acquired = self._begun.get(key, (True, True))
    for effect in item.effects:
      match effect.does:
        case Does.LAUNCH | Does.READ | Does.WRITE: idle = acquired = True
        case Does.WAIT: acquired = True
        case Does.IDLE if len(item.effects) == 1:
          if not idle: self._tell("idle", "nothing was begun since the last", (place,))
          idle = False
        case Does.ACQUIRE if not effect.size and len(item.effects) == 1:
          if not acquired: self._tell("flush", "nothing was waited for or begun since the last", (place,))
          acquired = False
    self._begun[key] = idle, acquired

  # ---- two packets

  def _conflict(self, c: Conflict) -> None:
    what = f"{_bytes(c.first, c.second)}"
    notes = _use(c.first), _use(c.second)
    places = c.first.place, c.second.place
    if c.missing == "order" and c.second.place.agent == HOST:
      self._tell("reuse", f"{what} are stored before {_whose(c.first)} is known to have read them", places, notes)
    elif c.missing == "order":
      self._tell("race", f"nothing orders the accesses of {what}", places, notes)
    elif c.missing == "release":
      self._tell("release", f"no write-back of {what} comes before the signal", places, notes)
    else: self._tell("acquire", f"nothing makes caches forget {what} before they are read", places, notes)

  def _freed(self, step: Step) -> None:
    assert step.world is not None
    gone = [a for a in reversed(step.world.freed[-64:]) if a.freed_at == step.number]
    for made in gone:
      for access in self.happens.unordered(step.event.vendor, made)[:1]:
        host = Place(step.event.vendor, HOST, "host", step.submission, None, step.number)
        self._tell("freed-in-use", f"{made} is given back at event {step.number}; {_whose(access)} may not be done",
                   (access.place, host), (_use(access), "gives it back"), key=(made.key, step.event.vendor))

  def _stands(self, runner: Runner, wait: Effect) -> None:
    packet = runner.ahead[0]
    place = Place(runner.vendor, runner.agent, runner.queue.name, packet.submission, packet.item, packet.event)
    writers = [(p, e) for p, e in self.happens.all_signals if e.address == wait.address and p.vendor == runner.vendor]
    later = self.happens.ahead(runner.vendor, wait)
    signal = self.happens.signals.get((runner.vendor, wait.address))
    if signal is not None and signal.seen is not None and wait.met(signal.seen): return
    how = f"it waits for {wait.address:#x} {wait.compare} {wait.value:#x}"
    notes = "waits",
    if later and later[0][0] is runner:
      self._tell("wait", f"{how}, which the same queue writes only behind it", (place,), notes)
    elif later:
      other, p, _ = later[0]
      there = Place(other.vendor, other.agent, other.queue.name, p.submission, p.item, p.event)
      self._tell("wait", f"{how}, which {other.queue.name} writes behind a wait of its own", (there, place),
                 ("would write it", "waits"))
    elif writers:
      last, effect = writers[-1]
      self._tell("wait", f"{how}, and what was written last is {effect.value:#x}", (last, place),
                 ("writes it", "waits"))
    else:
      alike = self._alike(runner, wait)
      self._tell("wait", f"{how}, and nothing that was submitted writes there{alike}", (place,), notes)

  def _alike(self, runner: Runner, wait: Effect) -> str:
    """A signal that differs from what is waited for in a way that looks like a slip."""
    for place, e in self.happens.all_signals:
      if place.vendor != runner.vendor or e.address == wait.address: continue
      if any(w.address == e.address for _, w in self.happens.waited): continue
      if place.vendor == "cuda" and e.address >= TIMELINES: continue  # no memory: how far a stream has come
      halves = (e.address >> 32 | (e.address & 0xFFFFFFFF) << 32) == wait.address
      if halves or (e.value == wait.value and (abs(e.address - wait.address) < PAGE
                                               or (e.address ^ wait.address) & 0xFFFFFFFF == 0
                                               or (e.address ^ wait.address) >> 32 == 0)):
        return f"; {where(place)} writes {e.value:#x} to {e.address:#x}"
    return ""

  def _lost(self) -> None:
    """The host waited in vain, and no packet stands at a wait: some work did not end."""
    faults = [f.places[-1] for f in self.found if f.rule.name in _FAULTS]
    rows = list(self.happens.running())
    stuck = [r for r in rows if any(p.queue == r[0].queue.name and p.submission <= r[1].submission for p in faults)]
    row = min(stuck or rows, key=lambda r: r[1].submission, default=None)
    if row is None: return
    runner, packet, effect = row
    place = Place(runner.vendor, runner.agent, runner.queue.name, packet.submission, packet.item, packet.event)
    signal = self.happens.signals[runner.vendor, effect.address]
    missing = f"{effect.value:#x} was to be written to {effect.address:#x}, the host saw {signal.seen:#x}"
    if stuck: missing += "; its queue has a packet before it that faults"
    self._tell("signal-lost", missing, (place,), ("would write it",))

  def _signals(self) -> None:
    """Values of signals that are waited for in order, one after the other."""
    compared: dict[tuple[str, int], set[str]] = {}
    for place, e in self.happens.waited: compared.setdefault((place.vendor, e.address), set()).add(e.compare)
    for runner in self.happens.runners.values():
      for p in runner.ahead:
        for e in p.item.effects:
          if e.does is Does.WAIT: compared.setdefault((runner.vendor, e.address), set()).add(e.compare)
    for (vendor, address), signal in self.happens.signals.items():
      how = compared.get((vendor, address), set())
      if not how or not all(c.endswith(">=") for c in how): continue
      before = None
      for row in signal.values:
        plain = row.place.item is None or all(not e.compare for e in row.place.item.effects
                                              if e.does is Does.SIGNAL and e.address == address)
        late = before is not None and row.place.item is not None and before.place.item is not None
        if late and plain and before is not None and row.know.has_packet(before) and \
            0 <= before.value - row.value < _BACK:
          self._tell("signal-value", f"{row.value:#x} is written to {address:#x} behind {before.value:#x}",
                     (before.place, row.place), ("writes", "writes"))
        before = row


def _bytes(first: Access, second: Access) -> str:
  start, end = max(first.start, second.start), min(first.end, second.end)
  made = first.made or second.made
  return f"{end - start:#x} bytes at {start:#x}" + (f" ({made.at(start)})" if made is not None else "")


def _whose(access: Access) -> str:
  return f"submission {access.place.submission} of {access.place.queue}"


def _use(access: Access) -> str:
  how = access.use.value
  return f"{how} them" + (f" ({access.what})" if access.what else "")


def near(step: Step, address: int) -> str:
  """The living memory that is next to an address, and where it was when its halves are swapped."""
  assert step.world is not None
  swapped = (address & 0xFFFFFFFF) << 32 | address >> 32
  made = step.world.find(swapped)
  if made is not None: return f"; with its halves swapped it would be in {made.at(swapped)}"
  below = max((a for a in step.world.living() if a.address <= address), key=lambda a: a.address, default=None)
  if below is None or address - below.end >= 1 << 30: return ""
  return f", {address - below.end:#x} bytes past the end of {below}"


def lint(capture: Capture, advice: bool = False) -> list[Finding]:
  """The findings of a whole capture, in the order in which they show."""
  return [f for f in Linter(capture).run() if advice or not f.rule.advice]

