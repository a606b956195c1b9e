"""The smallest stream that still shows what a capture shows: bisection over submissions, then delta debugging.

    shrinker = Shrinker(Capture("run.thq"), Fault(), bench)
    shrinker.bisect()      # the first submission at which it shows
    shrinker.shrink()      # submissions, packets, calls, memory, fields
    saved(shrinker.result(), Path("small.thq"))

Each stage starts from what is best so far and leaves something that was seen to show it; so whatever ends the work,
`result` is good. A trial runs on a fresh machine, and what was tried once is not tried again.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.queues import fields
from tinyhw.queues.capture import Capture
from tinyhw.queues.ddmin import first, minimal
from tinyhw.queues.draft import Choice, Draft, Packet, Row
from tinyhw.queues.events import Event, Program
from tinyhw.queues.shown import SETTLE_S, Bench, Predicate, Shown, Signature, Trial
from tinyhw.queues.world import Item

T = TypeVar("T")
TRIALS: Final = 3000
SECONDS: Final = 300.0
COUNTED: Final = 1 << 20   # a field above is no count
BLOCK: Final = 64          # bytes of memory that are tried to be zeros at once, at least
BLOCKS: Final = 16         # and how many of these a content has, at most
Tell = Callable[[str, int, int], None]
"""(stage, how much is left of what it goes over, trials so far)"""


class Spent(Exception):
  """The work has cost what it may."""


@dataclass(frozen=True, slots=True)
class Size:
  """How large a stream is."""
  submissions: int
  packets: int
  calls: int
  memory: int  # chunks that submissions bring along


@dataclass(frozen=True, slots=True)
class First:
  """The first submission at which it shows, and its packets as text."""
  submission: int
  queue: str
  shown: Shown


class Shrinker:
  """See the module. `wanted` is what must be shown; None: whatever the predicate finds in the whole."""

  def __init__(self, capture: Capture, predicate: Predicate, bench: Bench, *, trials: int = TRIALS,
               seconds: float = SECONDS, settle_s: float = SETTLE_S, tell: Tell | None = None,
               wanted: Signature | None = None) -> None:
    self.draft, self.predicate, self._bench, self._settle_s = Draft(capture), predicate, bench, settle_s
    self.wanted, self.best = wanted, Choice()
    self.trials, self._most, self._end = 0, trials, time.monotonic() + seconds
    self._tell: Tell = tell or (lambda stage, left, trials: None)
    self._tried: dict[Any, Shown | None] = {}
    self._base, self._now = self.best, dict[Packet, dict[str, int]]()
    self._rules: set[str] | None = None  # those that a trial may break, where not any
    self.before = self.size()
    self.stopped = ""  # why something was left undone
    self.bisected = False  # whether the first submission is known

  @property
  def whole(self) -> bool:
    """Whether nothing was left undone: without any one of its packets the result no longer shows."""
    return not self.stopped

  # ---- trials

  def check(self) -> Shown:
    """What the whole capture shows, twice. Raises InvalidArgument where it shows nothing, or not each time."""
    once, again = (self._shown(self.best, fresh=True) for _ in range(2))
    if once is None and again is None:
      raise InvalidArgument(f"does not show {self.predicate.name} when it runs", where=str(self._path),
                            hint="`tinyhw replay` and `tinyhw doctor` tell what it does show")
    if once is None or again is None or once.signature != again.signature:
      raise InvalidArgument(f"shows {self.predicate.name} at one time and not at another, or another one",
                            where=str(self._path), hint="a fixed MOCKGPU_SEED makes mocks alike; a script must tell "
                            "the same of the same file")
    self.wanted = once.signature
    return once

  @property
  def _path(self) -> object: return self.draft.base.reader.path

  def _shown(self, choice: Choice, fresh: bool = False) -> Shown | None:
    key = choice.key()
    if key in self._tried and not fresh: return self._tried[key]
    if not fresh and (self.trials >= self._most or time.monotonic() > self._end): raise Spent
    self.trials += 1
    try:
      trial = self._trial(choice)
      found = self.predicate.shown(trial, self.wanted)
      if found is not None and self._rules is not None and not _rules(trial) <= self._rules: found = None
    except Error: found = None  # what cannot be read or made any more shows nothing
    self._tried[key] = found
    return found

  def _trial(self, choice: Choice) -> Trial:
    return Trial(self.draft.capture(choice), self._bench, self.predicate.places, self._settle_s)

  def _try(self, choice: Choice, stage: str, left: int) -> bool:
    """Whether it still shows; if so, it is the best so far."""
    self._tell(stage, left, self.trials)
    if self._shown(choice) is None: return False
    self.best = choice
    return True

  def result(self) -> Capture:
    """The smallest stream that was seen to show it."""
    return self.draft.capture(self.best)

  # ---- what there is

  def _submissions(self) -> list[int]: return [n for n in self.draft.submissions if n not in self.best.events]

  def _packets(self, depth: int | None = None) -> list[Packet]:
    """Those that are still there: neither they nor what leads to them is gone."""
    return [p for p in self.draft.packets(depth) if p[0] not in self.best.events and p not in self.best.packets]

  def size(self) -> Size:
    """How large the best so far is."""
    capture = self.result()
    count = rows = packets = steps = 0
    for step in capture:
      if step.follow is None: steps += 1
      else:
        count, packets = count + 1, packets + len(step.follow.items)
        rows += len(getattr(step.event, "memory", ()))
    return Size(count, packets, steps, rows)

  # ---- where it shows first

  def bisect(self) -> First:
    """The first submission at which it shows; what comes behind it is cut off."""
    bells = self._submissions()
    if not bells: raise InvalidArgument("has no submissions", where=str(self._path))
    last, start = len(bells) - 1, self.best
    def prefix(k: int) -> Choice: return start if k == last else self._until(start, bells[k + 1])
    try: k = first(len(bells), lambda k: self._try(prefix(k), "bisect", k))
    except (Spent, KeyboardInterrupt) as why:  # at the latest at the last of those that are left
      self._stop(why)
      k = len(self._submissions()) - 1
    else: self.bisected = True
    found = self.draft.submissions[bells[k]]
    self.best = prefix(k)
    shown = self._tried.get(self.best.key())
    if shown is None: shown = self.check()  # the whole, where nobody has asked for it
    return First(found.number, str(found.step.queue), shown)

  def _stop(self, why: BaseException) -> None:
    self.stopped = "the search has cost what it may (--trials, --seconds)" if isinstance(why, Spent) else \
      "the search was interrupted"

  def end_behind(self, submission: int) -> None:
    """Leave out what comes behind a submission."""
    later = [n for n, s in self.draft.submissions.items() if s.number > submission]
    if later: self.best = self._until(self.best, later[0])

  def _until(self, choice: Choice, event: int) -> Choice:
    return replace(choice, events=choice.events | set(range(event, len(self.draft.events))))

  # ---- the smallest

  def shrink(self) -> None:
    """All stages, until nothing more can go, or the work has cost what it may."""
    if self.stopped: return
    try:
      self._cut()
      self._calls()
      self._rows()
      self._rules = _rules(self._trial(self.best))  # that a field was put to rest must not look like a bug of its own
      changed = self._fields()
      changed |= self._counts()
      changed |= self._contents()
      self._rules = None
      if changed:
        self._cut()
        self._calls()
    except (Spent, KeyboardInterrupt) as why: self._stop(why)

  def _cut(self) -> None:
    """Submissions and packets, until neither can go."""
    while True:
      before = len(self._submissions()), len(self._packets())
      self._minimal("submissions", self._submissions(), self._without_events)
      for depth in range(self.draft.depth() + 1):
        self._minimal("packets", self._packets(depth), self._without_packets)
      if (len(self._submissions()), len(self._packets())) == before: return

  def _minimal(self, stage: str, atoms: list[T], without: Callable[[Collection[T]], Choice], once: bool = False
               ) -> list[T]:
    """The atoms that must stay; `without` says what is best when others go."""
    self._base = self.best
    def shows(kept: list[T]) -> bool:
      keep = set(kept)
      return self._try(without([a for a in atoms if a not in keep]), stage, len(kept))
    return minimal(atoms, shows, once)

  def _without_events(self, gone: Collection[int]) -> Choice:
    return replace(self._base, events=self._base.events | set(gone))

  def _without_packets(self, gone: Collection[Packet]) -> Choice:
    return replace(self._base, packets=self._base.packets | set(gone))

  def _without_rows(self, gone: Collection[Row]) -> Choice: return replace(self._base, rows=self._base.rows | set(gone))

  def _calls(self) -> None:
    """The kernel driver's calls, and what was seen and noted between them."""
    launched = {launch.entry for step in self.result() if step.follow is not None for launch in step.follow.launches}
    def names(event: Event) -> bool:  # of kernels that are launched still
      return isinstance(event, Program) and any(event.address <= e < event.address + event.size for e in launched)
    kept = [n for n, event in enumerate(self.draft.events)
            if n not in self.draft.submissions and n not in self.best.events and not names(event)]
    self._minimal("calls", kept, self._without_events, once=True)

  def _rows(self) -> None:
    kept = [r for r in self.draft.rows() if r[0] not in self.best.events and r not in self.best.rows]
    self._minimal("memory", kept, self._without_rows)

  # ---- fields and contents

  def _left(self) -> dict[Packet, Item]:
    """Packets and descriptors that are still there and lead to no others, with what they are."""
    there, nodes = set(self._packets()), [n for s in self.draft.submissions.values() for n in s.nodes()]
    there |= {(n.packet[0], address) for n in nodes if n.packet in there for address in n.reads}
    there -= {n.packet for n in nodes if n.calls}
    return {p: i for p, i in self.draft.items() if p in there}

  def _fields(self) -> bool:
    """Fields to what says least."""
    left = self._left()
    rows = {p: {f.name: f for f in fields.of(i)} for p, i in left.items()}
    def values(gone: Collection[tuple[Packet, str]]) -> dict[Packet, dict[str, int]]:
      least: dict[Packet, dict[str, int]] = {}
      for p, name in gone: least.setdefault(p, {})[name] = rows[p][name].least
      return {p: made for p, made in least.items() if fields.put(left[p], made) is not None}
    def without(gone: Collection[tuple[Packet, str]]) -> Choice:
      return self._with_words({p: fields.put(left[p], made) for p, made in values(gone).items()})
    before, atoms = self.best, [(p, name) for p, named in rows.items() for name in named]
    kept = set(self._minimal("fields", atoms, without))
    least = values([a for a in atoms if a not in kept])
    self._now = {p: {**{n: f.value for n, f in named.items()}, **least.get(p, {})} for p, named in rows.items()}
    return self.best is not before

  def _with_words(self, made: Mapping[Packet, tuple[int, ...] | None]) -> Choice:
    words = {**self._base.words, **{p: w for p, w in made.items() if w is not None}}
    return replace(self._base, words=words)

  def _counts(self) -> bool:
    """Numbers that remain, grid sizes among them, towards 1."""
    before = self.best
    for p, item in self._left().items():
      now = self._now[p]
      for name in [f.name for f in fields.of(item) if f.counts and 1 < now[f.name] <= COUNTED]:
        for value in _downwards(now[name]):
          words = fields.put(item, {**now, name: value})
          if words is None: continue
          if self._try(replace(self.best, words={**self.best.words, p: words}), "counts", value): now[name] = value
          elif value > 1: break
          if now[name] == 1: break
    return self.best is not before

  def _contents(self) -> bool:
    """Memory that is still brought along, block by block to zeros."""
    before = self.best
    for row in [r for r in self.draft.rows() if r[0] not in self.best.events and r not in self.best.rows]:
      content = self.draft.content(row)
      if content is None or not any(content): continue
      block = max(BLOCK, -(-len(content) // BLOCKS))
      atoms = [at for at in range(0, len(content), block) if any(content[at:at + block])]
      self._minimal("contents", atoms, partial(self._zeroed, row, content, block))
    return self.best is not before

  def _zeroed(self, row: Row, content: bytes, block: int, places: Collection[int]) -> Choice:
    made = bytearray(content)
    for at in places: made[at:at + block] = bytes(len(made[at:at + block]))
    return replace(self._base, contents={**self._base.contents, row: bytes(made)})


def _rules(trial: Trial) -> set[str]: return {f.rule.name for f in trial.examined[0].found if not f.rule.advice}


def _downwards(value: int) -> Iterable[int]:
  """1 first, then halves."""
  yield 1
  while value > 3: yield (value := value // 2)
