"""What a stream shows when it runs: a hang, a fault, a finding, memory that is wrong; the same again in a smaller one.

A `Predicate` says of a `Trial` (a capture that can be run on a fresh machine) what it shows, as a `Shown`, or None.
Its `signature` is what must be the same in a smaller stream: the address and the access of a fault, who waits for
which value, and who would write it, the rule of a finding with its queues and addresses. So a smaller stream that
fails for another reason does not count.

Machines are handed in: a `Bench` gives a new one for each trial.
"""
from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.core.port import Port
from tinyhw.queues.capture import Capture
from tinyhw.queues.doctor import Report, examined
from tinyhw.queues.lint import RULES, Finding, Linter
from tinyhw.queues.replay import Difference, Look, Replay
from tinyhw.queues.world import PAGE

SETTLE_S: Final = 2.0   # a mock answers at once where nothing can go on
LONGEST_S: Final = 60.0  # of one trial
WIDE: Final = 1 << 32   # numbers above are addresses
_NUMBER: Final = re.compile(r"(?a)0x[0-9a-f]+|\d+")
_HEX: Final = re.compile(r"0x[0-9a-f]+")
Signature = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stop:
  """A queue that runs no more: `error` names its kind, `endless` says that its work does not end; of one that waits
  (`blocked`) `text` is the wait."""
  queue: str
  text: str
  error: str = ""
  address: int | None = None
  instruction: str = ""
  endless: bool = False
  blocked: bool = False


class Machine(Protocol):
  """A fresh machine: ports by vendor, what shows their memory, and what stopped."""
  ports: Mapping[str, Port]
  look: Mapping[str, Look]

  def failed(self) -> bool:
    """Whether a queue has failed."""

  def stops(self) -> list[Stop]:
    """The queues that run no more."""


Bench = Callable[[Capture], AbstractContextManager[Machine]]
"""Gives a fresh machine for a capture, and takes it away behind the block."""


@dataclass(frozen=True, slots=True)
class Place:
  """Bytes of a vendor's memory."""
  vendor: str
  address: int
  size: int


@dataclass
class Outcome:
  """What a run came to. `wrong` are the differences from what the capture saw, with their submissions; `left` are the
  bytes at the places that were asked for; `refused` is why it did not run to its end."""
  stops: list[Stop] = field(default_factory=list)
  wrong: list[tuple[int, str, Difference]] = field(default_factory=list)
  left: dict[Place, bytes] = field(default_factory=dict)
  refused: str = ""


class Ends(Exception):
  """Who was asked wants the search to end; `args` say why."""


class Trial:
  """A capture that may show something. What is asked is found out once."""

  def __init__(self, capture: Capture, bench: Bench, places: tuple[Place, ...] = (),
               settle_s: float = SETTLE_S) -> None:
    self.capture, self._bench, self._places, self._settle_s = capture, bench, places, settle_s

  @cached_property
  def examined(self) -> tuple[Linter, Report]:
    """What the doctor says, without a run."""
    return examined(self.capture)

  @cached_property
  def outcome(self) -> Outcome:
    """What a run on a fresh machine comes to."""
    made, end = Outcome(), time.monotonic() + LONGEST_S
    def over() -> bool: return time.monotonic() > end
    with self._bench(self.capture) as machine:
      replay = Replay(self.capture, machine.ports, look=machine.look, settle_s=self._settle_s)
      try:
        for done in replay.run():
          made.wrong += [(done.step.submission, done.step.event.vendor, d) for d in done.differences]
          self._read(replay, made)
          if machine.failed() or over(): break
        for vendor in replay.agains: machine.ports[vendor].wait(over, self._settle_s)  # what nobody waits for runs too
      except (Error, OSError) as error: made.refused = str(error).partition("\n")[0]
      self._read(replay, made)
      made.stops = machine.stops()
    return made

  def _read(self, replay: Replay, made: Outcome) -> None:
    """The bytes that are asked for, as long as there is memory."""
    for place in self._places:
      if place.vendor in replay.agains and (data := replay.bytes_at(place.vendor, place.address, place.size)):
        made.left[place] = data


@dataclass(frozen=True, slots=True)
class Shown:
  """See the module. `submission`: where it is known by itself."""
  kind: str
  signature: Signature
  text: str
  submission: int = -1


class Predicate(Protocol):
  """What is looked for."""

  @property
  def name(self) -> str:
    """As `--until` has it."""

  @property
  def places(self) -> tuple[Place, ...]:
    """Memory that a trial must tell of."""

  def shown(self, trial: Trial, wanted: Signature | None = None) -> Shown | None:
    """What a trial shows; with `wanted` only that counts."""


@dataclass(frozen=True)
class Fault:
  """A queue fails: a page fault, words that are no packet, an access that the chip refuses."""
  name: str = "fault"
  places: tuple[Place, ...] = ()

  def shown(self, trial: Trial, wanted: Signature | None = None) -> Shown | None:
    for stop in trial.outcome.stops:
      if stop.blocked or stop.endless: continue
      named = _addresses(stop.text) if stop.address is None else [stop.address // PAGE]
      signature: Signature = (_plain(stop.queue), stop.error, *named, _plain(stop.text),
                              *_history(trial.capture, stop.address))
      if wanted is None or signature == wanted: return Shown(self.name, signature, f"{stop.queue}: {stop.text}")
    return None


@dataclass(frozen=True)
class Hang:
  """Queues wait and nothing can end it, or a kernel does not end."""
  name: str = "hang"
  places: tuple[Place, ...] = ()

  def shown(self, trial: Trial, wanted: Signature | None = None) -> Shown | None:
    waits = [] if wanted is not None and wanted[0] == "endless" else list(self._waits(trial))
    still = next((w for w in waits if wanted is None or w.signature == wanted), None)
    if wanted is not None and wanted[0] != "endless" and still is None: return None  # a run would not change that
    for stop in trial.outcome.stops:
      signature: Signature = ("endless", stop.error, _plain(stop.instruction))
      if stop.endless and (wanted is None or signature == wanted):
        return Shown(self.name, signature, f"{stop.queue}: {stop.text}")
    return still if any(s.blocked for s in trial.outcome.stops) else None

  def _waits(self, trial: Trial) -> Iterator[Shown]:
    """Who waits for whom, by the packets alone: the circle, and those at whose ends others wait."""
    linter, report = trial.examined
    if report.cycle: yield Shown(self.name, ("circle", *sorted(report.cycle)), report.verdict)
    waiting = {e.who for e in report.edges}
    for edge in report.edges:
      if edge.writer in waiting and edge.writer != edge.who: continue
      at = int(edge.what, 0)
      written = [e.value for _, e in linter.happens.all_signals if e.address == at]
      signature = "wait", edge.who, edge.what, edge.writer, written[-1] if written else None
      yield Shown(self.name, signature, edge.why)


@dataclass(frozen=True)
class Rule:
  """`tinyhw lint` has a finding of a rule, or of any."""
  rule: str = ""
  places: tuple[Place, ...] = ()

  @property
  def name(self) -> str: return f"finding:{self.rule}" if self.rule else "finding"

  def shown(self, trial: Trial, wanted: Signature | None = None) -> Shown | None:
    for finding in trial.examined[0].found:
      if finding.rule.name != self.rule and (self.rule or finding.rule.advice): continue
      signature = _of_finding(finding)
      if wanted is None or signature == wanted:
        return Shown(self.name, signature, f"{finding.rule.name}: {finding.missing}", finding.places[-1].submission)
    return None


@dataclass(frozen=True)
class Left:
  """The run leaves the same bytes at a place."""
  place: Place
  text: str = ""
  submission: int = -1

  @property
  def name(self) -> str: return f"left:{self.place.address:#x}:{self.place.size}"

  @property
  def places(self) -> tuple[Place, ...]: return (self.place,)

  def shown(self, trial: Trial, wanted: Signature | None = None) -> Shown | None:
    data = trial.outcome.left.get(self.place)
    if data is None or trial.outcome.stops: return None
    signature = (data.hex(),)
    if wanted is not None and signature != wanted: return None
    head = data[:16].hex(" ") + (" ..." if len(data) > 16 else "")
    what = f"{self.place.size} bytes at {self.place.address:#x} are {head}"
    return Shown(self.name, signature, f"{self.text}; {what}" if self.text else what, self.submission)


@dataclass(frozen=True)
class Differs:
  """The first memory that a run leaves otherwise than the capture saw it, of any buffer or of one. It is no predicate
  itself: `found` gives the one for the bytes that are wrong there."""
  buffer: int | None = None

  def found(self, trial: Trial) -> Left | None:
    for submission, vendor, d in trial.outcome.wrong:
      made = d.allocation
      if self.buffer is not None and self.buffer != made.key and not made.address <= self.buffer < made.end: continue
      place = Place(vendor, made.address + d.offset, d.size)
      return Left(place, f"behind submission {submission} {d}", submission)
    return None


KINDS: Final = ("hang", "fault", "finding", "finding:RULE", "difference", "wrong:BUFFER", "left:ADDRESS[:BYTES]")


def predicate(text: str, vendor: str) -> Predicate | Differs:
  """What `--until` says. `vendor` is whose memory an address is in. Raises InvalidArgument."""
  kind, _, more = text.replace(" ", ":", 1).partition(":")
  if kind == "hang" and not more: return Hang()
  if kind == "fault" and not more: return Fault()
  if kind == "difference" and not more: return Differs()
  if kind == "finding":
    if more and more not in RULES:
      raise InvalidArgument(f"no rule is called {more!r}", where="--until", hint="tinyhw lint --list has them")
    return Rule(more)
  if kind == "wrong" and more: return Differs(_count(more))
  if kind == "left" and more:
    address, _, size = more.partition(":")
    return Left(Place(vendor, _count(address), _count(size) if size else 4))
  raise InvalidArgument(f"{text!r} is nothing to look for", where="--until", hint=f"there are {', '.join(KINDS)}")


def by_itself(trial: Trial) -> Predicate | Differs | None:
  """What a capture shows without being asked: its fault, its hang, what differs when it runs, its finding."""
  stops = trial.outcome.stops
  if any(not s.blocked and not s.endless for s in stops): return Fault()
  if stops: return Hang()
  if trial.outcome.wrong: return Differs()
  found = [f for f in trial.examined[0].found if not f.rule.advice]
  return Rule(found[0].rule.name) if found else None


def _count(text: str) -> int:
  try: number = int(text, 0)
  except ValueError: number = -1
  if number < 0: raise InvalidArgument(f"{text!r} is no number and no address", where="--until")
  return number


def _plain(text: str) -> str:
  """A line without its numbers, which are others in a smaller stream."""
  return _NUMBER.sub("N", text.partition("\n")[0])


def _history(capture: Capture, address: int | None) -> tuple[bool, bool]:
  """Whether memory is at an address, and whether there was."""
  if address is None: return False, False
  worlds = capture.worlds.values()
  return any(w.find(address) for w in worlds), any(w.was(address) for w in worlds)


def _of_finding(finding: Finding) -> Signature:
  packets = tuple((p.queue, type(p.item.packet).__name__ if p.item is not None else "") for p in finding.places)
  return finding.rule.name, packets, tuple(_addresses(finding.missing))


def _addresses(text: str) -> list[int]:
  """Numbers of a text that are too wide for anything but an address."""
  return sorted({n for n in (int(m, 16) for m in _HEX.findall(text)) if n >= WIDE})
