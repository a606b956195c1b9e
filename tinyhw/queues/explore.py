"""Looks for a schedule under which a program fails, and makes it short.

Who runs programs is handed in: a function from a schedule to an `Outcome`, which threads may call at once. Three ways
to choose the next schedule take turns: departures from runs that are known, one more each time and short ones first
(iterative context bounding: most bugs need few preemptions); priorities that change at few points (PCT); and any order
at all.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Final

from tinyhw.core.schedule import Departure, Draw, Rest, Schedule
from tinyhw.queues.ddmin import minimal

WAYS: Final = ("mixed", "few", "pct", "random")
NUMBERS: Final = 3  # that are tried of a draw with more
MOST_WAITING: Final = 20_000  # schedules of `few` that wait
SHRINKS: Final = 400  # runs that shrinking may take
Row = tuple[int, Departure]


@dataclass(frozen=True)
class Outcome:
  """What a run came to. `failure` is what runs have in common that fail alike; it is empty where all went well."""

  schedule: Schedule  # that replays it
  failure: str
  digest: str = ""
  turns: int = 0
  draws: tuple[tuple[Draw, ...], ...] = ()
  texts: tuple[tuple[str, ...], ...] = ()  # of each draw, where they were asked for
  log: str = ""
  way: str = ""
  calls: tuple[tuple[str, str], ...] = ()  # where faults are declared: the kind that fails each, and its name
  struck: int = 0  # declared faults that came
  handled: bool = False  # it ended in an error of tinyhw's, in one line
  timed_out: bool = False


@dataclass
class Found:
  """A way to fail: the first run that did, and the shortest schedule that does."""

  first: Outcome
  run: int
  shrunk: Outcome
  shrinks: int = 0
  replays: tuple[int, int] = (0, 0)  # how many of how many failed alike


@dataclass
class Search:
  """What an exploration has come to so far."""

  runs: int = 0
  seconds: float = 0.0
  digests: set[str] = field(default_factory=set)
  failures: dict[str, tuple[int, Outcome]] = field(default_factory=dict)  # with the run's number, from 1 on
  interrupted: bool = False
  most_draws: int = 0
  exhausted: bool = False  # `few` has nothing to try any more


class Chooser:
  """The next schedule. Threads may use it, one at a time."""

  def __init__(self, way: str, seed: int) -> None:
    self.way, self.seed = way, seed
    self._rng = random.Random(f"explore {seed}")
    self._waiting: list[tuple[int, float, Schedule]] = []
    self.asked = 0
    self.length = 50

  def next(self) -> tuple[str, Schedule] | None:
    """Its way and itself; None where `few` waits for what runs come to."""
    self.asked += 1
    if self.asked == 1: return "default", Schedule()
    way = self.way if self.way != "mixed" else ("few", "pct", "few", "random")[self.asked % 4]
    if way == "few":
      if self._waiting: return way, heapq.heappop(self._waiting)[2]
      if self.way == "few":
        self.asked -= 1
        return None
      way = "pct"
    seed = self.seed * 1_000_003 + self.asked
    return way, Schedule(rest=Rest(way, seed, self._rng.choice((2, 3, 3, 4)), self.length))

  def learn(self, way: str, outcome: Outcome) -> None:
    """A run has ended: longer schedules follow from it."""
    self.length = max(self.length, sum(map(len, outcome.draws)))
    if way not in ("default", "few") or self.way not in ("mixed", "few"): return
    given = outcome.schedule.flat()
    for number, draws in enumerate(outcome.draws):
      last = max((n for n, d in enumerate(draws) if d.took != d.default), default=-1)
      for draw in draws[last + 1:]:
        for other in self._others(draw):
          if len(self._waiting) >= MOST_WAITING: return
          longer = outcome.schedule.keeping([*given, (number, draw.departure(other))])
          heapq.heappush(self._waiting, (len(longer), self._rng.random(), longer))

  def _others(self, draw: Draw) -> list[int]:
    """What else could have been drawn."""
    count = draw.of if isinstance(draw.of, int) else len(draw.of)
    others = [n for n in range(count) if n != draw.took]
    if isinstance(draw.of, int) and len(others) > NUMBERS: others = self._rng.sample(others, NUMBERS)
    return others


def explore(run: Callable[[Schedule], Outcome], *, runs: int, seconds: float, jobs: int = 1, way: str = "mixed",
            seed: int = 0, all_failures: bool = False, told: Callable[[Search], None] = lambda search: None) -> Search:
  """Run schedules until one fails, or all have been that were asked for. Ctrl-C ends it, and what was found is kept."""
  chooser, search, began = Chooser(way, seed), Search(), time.monotonic()
  pending: dict[Future[Outcome], str] = {}

  def over() -> bool:
    return (chooser.asked >= runs or time.monotonic() - began >= seconds
            or bool(search.failures) and not all_failures)

  with ThreadPoolExecutor(jobs) as pool:
    try:
      while True:
        while len(pending) < jobs and not over() and (chosen := chooser.next()) is not None:
          pending[pool.submit(run, chosen[1])] = chosen[0]
          if chosen[0] == "default": break  # what comes next follows from it
        if not pending: break
        for future in wait(pending, return_when=FIRST_COMPLETED)[0]:
          way_of = pending.pop(future)
          _note(search, chooser, way_of, replace(future.result(), way=way_of))
          search.seconds = time.monotonic() - began
          told(search)
    except KeyboardInterrupt:
      search.interrupted = True
  search.seconds = time.monotonic() - began
  search.exhausted = not over() and not search.interrupted
  return search


def _note(search: Search, chooser: Chooser, way: str, outcome: Outcome) -> None:
  search.runs += 1
  search.digests.add(outcome.digest)
  search.most_draws = max(search.most_draws, sum(map(len, outcome.draws)))
  if outcome.failure: search.failures.setdefault(outcome.failure, (search.runs, outcome))
  else: chooser.learn(way, outcome)


# ---- a failing one made short


def shrink(run: Callable[[Schedule], Outcome], failed: Outcome, most: int = SHRINKS) -> tuple[Outcome, int]:
  """The shortest schedule that is found to fail alike, and after how many runs."""
  best, count = failed, 0

  def fails(rows: Sequence[Row]) -> bool:
    nonlocal best, count
    if count >= most: return False
    count += 1
    outcome = run(replace(failed.schedule.keeping(rows), rest=Rest()))
    if outcome.failure != failed.failure: return False
    if len(outcome.schedule) <= len(best.schedule): best = replace(outcome, way=failed.way)
    return True

  fails([])
  while len(best.schedule):
    before = best.schedule
    minimal(best.schedule.flat(), fails)
    for n, (machine, departure) in enumerate(best.schedule.flat()):  # the least number that does
      if isinstance(departure.took, int) and departure.took > 1:
        rows = best.schedule.flat()
        rows[n] = machine, replace(departure, took=1)
        fails(rows)
    if len(best.schedule) >= len(before) or count >= most: break
  return best, count


def again(run: Callable[[Schedule], Outcome], outcome: Outcome, times: int) -> tuple[int, int]:
  """How often a schedule fails alike."""
  alike = sum(run(outcome.schedule).failure == outcome.failure for _ in range(times))
  return alike, times


def sentences(outcome: Outcome) -> Iterator[str]:
  """A schedule in words, a line a departure; the outcome's run was asked for its texts."""
  for number, draws in enumerate(outcome.draws):
    machine = f"machine {number}: " if len(outcome.draws) > 1 else ""
    for n, draw in enumerate(draws):
      if draw.took == draw.default: continue
      texts = outcome.texts[number][n].split("\n") if outcome.texts else []
      yield machine + _sentence(draw, texts)


def _sentence(draw: Draw, texts: Sequence[str]) -> str:
  who, _, count = draw.at.rpartition(" ")
  if isinstance(draw.of, int):
    doing = f"; {texts[0]}" if texts and texts[0] else ""
    return f"{who}, the {ordinal(int(count))} time: {draw.what}: {draw.took}{doing}"
  took, default = draw.of[draw.took], draw.of[draw.default]
  first, waits = (texts[0], texts[1]) if len(texts) == 2 else (took, default)
  return f"after {who}'s {ordinal(int(count))} turn {first} goes on, and {waits} waits"


def ordinal(n: int) -> str:
  """1st, 2nd, 3rd, 4th."""
  ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
  return f"{n}{ending}"
