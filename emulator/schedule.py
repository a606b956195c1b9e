"""Who runs when: workgroups that the chip holds at once take turns, and one that has ended makes room for the next.

A cohort of workgroups runs on as long as it gets on; while all of its waves only wait (`Cohort.idle`) it is passed
over. When every resident wave waits and no workgroup can begin, the run stands: whoever runs it may let others change
memory (the host, other queues) and go on, or take it as the deadlock that it is on a chip.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast

import numpy as np

from tinyhw.core.errors import Deadlock, MachineFault, PageFault, WatchdogExpired
from tinyhw.emulator.observe import Access, Observer, Several
from tinyhw.emulator.simt import Changes, Cohort, Group

BLOCKS_LATER: Final = 512  # a turn of a cohort that did not end in its first one
ROUND: Final = 100_000  # steps in which a cohort that waits comes round, or does not wait any more
TOLD: Final = 4  # places where waves wait that an error spells out


class Workgroups(Protocol):
  """Workgroups that have not begun; see `amdgcn.launch.Workgroups`."""
  space: Any
  places: int
  usual: int
  total: int
  left: int
  changes: Changes

  @property
  def begun(self) -> int: ...

  @property
  def rest(self) -> str: ...

  def begin(self, room: int) -> Cohort: ...

  def tell(self, room: int) -> None: ...


class Resident(Protocol):
  """Workgroups that began together and have not all ended."""
  def run(self) -> bool: ...

  def held(self) -> int: ...

  @property
  def idle(self) -> bool: ...


@dataclass(frozen=True)
class Poll:
  """Waves that wait at one place: `waves` of them, `wave` the first. In each round of their loop they read `width`
  bytes at `address` of a memory (`segment`) last, and found `value`."""
  pc: int
  wave: int
  waves: int
  segment: str
  address: int
  width: int
  value: int | None

  def __str__(self) -> str:
    where = f"{self.width} bytes at {self.address:#x}" + ("" if self.segment == "global" else f" of {self.segment}")
    return where if self.value is None else f"{where} (they hold {self.value:#x})"


class Idle:
  """No resident wave can go on until memory changes.

  It may be `over` at once: somebody else changed memory while it was looked at.
  """

  def __init__(self, workgroups: Workgroups, cohorts: list[Cohort]) -> None:
    self._workgroups, self._cohorts = workgroups, cohorts
    self.polls: list[Poll] = []
    self.watched: dict[tuple[int, int], int] = {}  # value by (address, width) of global memory that waves wait for
    self._endless: tuple[Cohort, Group] | None = None  # waves that look at nothing
    seen = [_Reads.of(cohort) for cohort in cohorts]
    for reads in seen: self.watched.update(dict.fromkeys(reads.watched(), 0))
    for key in self.watched: self.watched[key] = _loaded(workgroups.space, *key)
    # only a round that begins after this finds the values that are kept
    self.over = not all(_round(cohort) for cohort in cohorts)
    if self.over: return
    for cohort, reads in zip(cohorts, seen): self._tell(cohort, reads)
    found: dict[tuple[int, int, str], list[Poll]] = {}
    for p in self.polls: found.setdefault((p.pc, p.address, p.segment), []).append(p)
    same = (min(ps, key=lambda p: p.wave) for ps in found.values())
    self.polls = sorted((replace(p, waves=sum(q.waves for q in found[p.pc, p.address, p.segment])) for p in same),
                        key=lambda p: p.wave)

  def _tell(self, cohort: Cohort, reads: _Reads) -> None:
    """Note what the waves of a cohort wait for."""
    for group in cohort.runnable:
      rows = {int(w): reads.last[int(w)] for w in group.waves if int(w) in reads.last}
      if not rows:
        self._endless = self._endless or (cohort, group)
        continue
      found: dict[tuple[int, int], list[int]] = {}
      for wave, (pc, access, row) in rows.items():
        found.setdefault((pc, int(access.addresses[row, int(access.active[row].argmax())])), []).append(wave)
      for (pc, address), waves in found.items():
        access = rows[waves[0]][1]
        segment = "global" if access.segment == "scalar" else access.segment
        value = self.watched.get((address, access.width)) if segment == "global" else None
        self.polls.append(Poll(pc, min(waves), len(waves), segment, address, access.width, value))

  def changed(self) -> bool:
    """Whether memory that waves wait for holds something else by now."""
    space = self._workgroups.space
    return any(_loaded(space, *key) != value for key, value in self.watched.items())

  def hopeless(self) -> bool:
    """Whether no change of memory can end it: some waves run in circles and look at nothing, or only at their own."""
    return self._endless is not None or not self.watched

  def _parked(self) -> Iterator[tuple[int, int, int]]:
    """(PC, first wave, how many) of waves at barriers."""
    parked = [g for cohort in self._cohorts for g in cohort.parked]
    for pc in sorted({g.pc for g in parked}):
      here = [g for g in parked if g.pc == pc]
      yield pc, min(int(g.waves[0]) for g in here), sum(g.size for g in here)

  def stands(self) -> Iterator[MachineFault]:
    """Where the waves stand, for who shows it: one a place, whose message says what they wait for. Nobody raises them;
    whoever explains faults may say of them which line they are at."""
    program = self._cohorts[0].program
    rows = [(p.pc, p.wave, f"{_waves(p.waves)} for {p}") for p in self.polls]
    rows += [(pc, wave, f"{_waves(waves)} at a barrier") for pc, wave, waves in self._parked()]
    if self._endless is not None:
      group = self._endless[1]
      rows.append((group.pc, int(group.waves[0]), "waves repeat one state and store nothing"))
    for pc, wave, said in rows: yield MachineFault(said, pc=pc, instruction=program.describe(pc), wave=wave)

  def error(self) -> WatchdogExpired:
    """What it is when nobody else changes memory."""
    if self._endless is not None:
      cohort, group = self._endless
      return WatchdogExpired("an endless loop: these waves repeat one state and store nothing", pc=group.pc,
                             instruction=cohort.program.describe(group.pc), wave=int(group.waves[0]))
    first, *others = self.polls
    program = self._cohorts[0].program
    lines = [f"a deadlock: {_waves(first.waves)} for {first}, and nobody is left who could change that"]
    lines += [f"{_waves(p.waves)} in '{program.describe(p.pc)}' (PC {p.pc:#x}, first wave {p.wave}) for {p}"
              for p in others[:TOLD - 1]]
    if len(others) >= TOLD: lines.append(f"{len(others) - TOLD + 1} more places where waves wait")
    for pc, wave, waves in self._parked():
      lines.append(f"{_waves(waves)} at a barrier before PC {pc:#x} (first wave {wave})")
    w = self._workgroups
    if w.left: lines.append(w.rest)
    return Deadlock("; ".join(lines), pc=first.pc, instruction=program.describe(first.pc), wave=first.wave,
                    polls=self.polls, address=first.address if first.segment == "global" else None)


def _waves(n: int) -> str: return "a wave waits" if n == 1 else f"{n:,} waves wait"


def _loaded(space: Any, address: int, width: int) -> int:
  try: return int.from_bytes(space.read(address, width), "little")
  except PageFault: return -1


def _round(cohort: Cohort) -> bool:
  """Run a cohort that waits until it is where it was; False when it gets on instead."""
  cohort.look.idle = -1
  with np.errstate(all="ignore"):
    limit = cohort.stats.steps + ROUND
    while cohort.stats.steps < limit:
      if cohort.run(BLOCKS_LATER): return False
      if cohort.idle: return True
  return False


class _Reads(Observer):
  """Keeps the last read of each wave: PC, access, the wave's row in it."""

  def __init__(self) -> None: self.last: dict[int, tuple[int, Access, int]] = {}

  @classmethod
  def of(cls, cohort: Cohort) -> _Reads:
    """What the waves of a cohort read while it runs once round; or further, when others have changed memory."""
    reads, observer = cls(), cohort.observer
    cohort.observer = reads if observer is None else Several([cast(Observer, observer), reads])
    try: _round(cohort)
    finally: cohort.observer = observer
    return reads

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    """Keep it."""
    if access.kind == "store": return
    for row, wave in enumerate(group.waves):
      if access.active[row].any(): self.last[int(wave)] = pc, access, row

  def watched(self) -> Iterator[tuple[int, int]]:
    """(address, width) of what lanes read in memory that others could change."""
    for _, access, row in self.last.values():
      if access.segment not in {"global", "scalar"}: continue
      for address in np.unique(access.addresses[row][access.active[row]]).tolist(): yield address, access.width


class Schedule:
  """The resident cohorts of a dispatch and their turns. `running` have begun already."""

  def __init__(self, workgroups: Workgroups, running: list[Cohort] | None = None) -> None:
    self.workgroups = workgroups
    self.running: list[Cohort] = running or []

  def room(self) -> int:
    """For how many workgroups there is room."""
    return self.workgroups.places - sum(c.held() for c in self.running)

  def begin(self) -> Cohort:
    """Begin new workgroups, which then run first when they have their turn."""
    cohort = self.workgroups.begin(self.room())
    self.running.append(cohort)
    return cohort

  def turns(self) -> Iterator[Idle | None]:
    """Run to the end. Yields None after turns, and what waves wait for when none can go on; to go on then is to say
    that memory may have changed."""
    w, part = self.workgroups, False
    while True:
      while w.left and (room := self.room()) > 0 and (part or room >= min(w.usual, w.left)):
        self.turn(self.begin())
        yield None
      if not self.running: return
      before = len(self.running)
      w.tell(self.room())
      for cohort in [*self.running]:
        if cohort.idle: continue
        self.turn(cohort, BLOCKS_LATER)
        yield None
      part = len(self.running) == before  # no place for a whole cohort: begin what there is room for
      if self.running and all(c.idle for c in self.running) and not (w.left and self.room() > 0):
        idle = Idle(w, self.running)
        if not idle.over: yield idle
        w.changes.count += 1

  def turn(self, cohort: Cohort, *blocks: int) -> None:
    """Give one of the running cohorts a turn."""
    with np.errstate(all="ignore"):
      if cohort.run(*blocks): self.running.remove(cohort)
      else: self.workgroups.changes.exact = True


def ended(turns: Iterator[Idle | None]) -> None:
  """Take turns to the end where nobody else can change memory. Raises Deadlock and the like."""
  for idle in turns:
    if idle is not None: raise idle.error()
