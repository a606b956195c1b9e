"""Runs a dispatch one instruction of one group of waves at a time, so that it can stand anywhere and go on.

Groups, blocks and steps are the reference's own; only the loop around them is here. All that it knows between two
instructions is data (no thread, no suspended function), so that a run that stands can be looked at, changed, put back
to an earlier state, or dropped.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.schedule import BLOCKS_LATER, Idle
from tinyhw.emulator.simt import BLOCKS_A_TURN, JUMPS_A_LAP, JUMPS_ALONE, Cohort, Group, Next, Stats, Step

if TYPE_CHECKING:
  from tinyhw.emulator.debug.snapshot import Keeper

Bound = tuple[Any, Step | None, Any]  # an instruction, its step, its end


class Engine(ABC):
  """The waves of one dispatch. `pick` says which group is next, `execute` runs one instruction of a group.

  A group stays in its cohort's `runnable` (or `parked`) while it stands.
  """

  keeper: ClassVar[Keeper]  # what snapshots ask of the vendor

  def __init__(self, space: AddressSpace, arch: Arch, d: Any, watchdog: int, observer: Observer) -> None:
    self.space, self.arch, self.dispatch, self.observer = space, arch, d, observer
    self.stats = Stats()
    self._watchdog = watchdog
    self._workgroups, self.lanes = self._begin()
    self.changes = self._workgroups.changes
    self.changes.exact = True
    self.waves_a_group: int = -(-d.block[0] * d.block[1] * d.block[2] // self.lanes)
    self.wave_count: int = self.waves_a_group * d.grid[0] * d.grid[1] * d.grid[2]
    self.started = 0  # waves that have started: the first so many
    self.running: list[Cohort] = []  # cohorts with waves that have not ended
    self.first_wave: dict[Cohort, int] = {}
    self.waiting: list[Cohort] = []  # made, but put back to before their start
    self.cohort: Cohort | None = None  # the one whose turn it is
    self.group: Group | None = None  # the one that runs, for as long as nothing speaks against it
    self._round = 0
    self._ended = True  # whether a cohort ended in the last round
    self._jumps = 0
    self.observer = observer.dispatch(space, arch, d) or observer

  @abstractmethod
  def _begin(self) -> tuple[Any, int]:
    """(workgroups that have not begun, lanes of a wave)."""

  # ---- whose turn it is

  def _room(self) -> int:
    """How many more workgroups can begin."""
    w, held = self._workgroups, sum(c.held() for c in self.running)
    room = w.places - held
    if self.waiting: return room if len(self.waiting[0].live) <= room else 0
    return room if room >= (1 if not self._ended else min(w.usual, w.left)) and w.left else 0

  def _start(self, room: int) -> Cohort:
    """The next cohort that has not started yet."""
    if self.waiting: cohort = self.waiting.pop(0)
    else:
      cohort = self._workgroups.begin(room)
      self.first_wave[cohort] = self.started
    group = cohort.runnable[0]
    self.started += group.size
    cohort.observer = self.observer
    self.observer.cohort(cohort)
    self.running.append(cohort)
    return cohort

  def _turn(self) -> Cohort | None:
    """The cohort whose turn is next; a new one while the GPU has room. Raises Deadlock where none can go on."""
    live = [c for c in self.running if c.left]
    self._ended |= len(live) < len(self.running)
    self.running = live
    if room := self._room(): return self._start(room)
    if not self.running: return None
    for _ in self.running:
      if self._round >= len(self.running): self._round, self._ended = 0, False
      self._round += 1
      cohort = self.running[self._round - 1]
      if not cohort.idle: return cohort
    self._ended = False
    if room := self._room(): return self._start(room)
    raise Idle(self._workgroups, self.running).error()

  def pick(self) -> tuple[Cohort, Group] | None:
    """The group that runs next, or None when every wave has ended. Raises MachineFault for a barrier never reached."""
    while True:
      cohort = self.cohort
      if cohort is None or not cohort.left or cohort.budget <= 0:
        cohort = self.cohort = self._turn()
        if cohort is None: return None
        cohort.budget, self.group = BLOCKS_LATER if cohort.lap else BLOCKS_A_TURN, None
      group = self.group
      if group is not None and any(g is group for g in cohort.runnable): return cohort, group
      if not cohort.runnable: raise cohort.stuck()
      self.group, self._jumps = min(cohort.runnable, key=cohort.order), 0
      if self.group.lap > cohort.lap:
        cohort.lap = self.group.lap
        if cohort.look.at(cohort):
          self.cohort = None
          continue
      return cohort, self.group

  # ---- execution

  @abstractmethod
  def bound(self, cohort: Cohort, pc: int, mode: int) -> Bound:
    """The instruction at pc with its step. Raises PageFault or DecodeError where there is none."""

  @abstractmethod
  def execute(self, cohort: Cohort, group: Group, alone: bool = False) -> None:
    """One instruction of a group. With `alone` it does not join waves that stand where it comes to.

    Raises MachineFault and the like with the place; the group then stands at the instruction.
    """

  def _go_on(self, cohort: Cohort, group: Group, pc: int, after: Next, ends: bool, alone: bool) -> None:
    """A group has executed the instruction at `pc`, which `ends` a block or does not."""
    group.count += 1
    self.stats.instructions += group.size
    self.stats.steps += 1
    cohort.runnable = [g for g in cohort.runnable if g is not group]
    if type(after) is not int:
      cohort.leave(group, after)
      if not cohort.left: self.group = None
      return
    group.pc = after
    if ends: cohort.budget -= 1
    joined = None if alone else next((g for g in cohort.runnable if g.pc == after and g.alike(group)), None)
    if joined is not None: joined.join(group)
    else: cohort.runnable.append(group)
    if group.count > self._watchdog: cohort.expired(group)
    if after <= pc:
      self._jumps += 1
      if self._jumps >= (1 if cohort.looking else JUMPS_ALONE if len(cohort.runnable) == 1 else JUMPS_A_LAP):
        group.lap = cohort.lap + 1
        self.group = None

  def touched(self) -> None:
    """Somebody changed registers or memory from outside: what was remembered of them does not count any more."""
    self.changes.count += 1

  def code_changed(self) -> None:
    """Code in memory was changed from outside: decode it anew."""
    for cohort in (*self.running, *self.waiting):
      cohort.program.refresh()

  # ---- waves

  def groups(self) -> Iterator[tuple[Cohort, Group, bool]]:
    """Each group of waves that have started and not ended, and whether it can run (else it waits at a barrier)."""
    for cohort in self.running:
      for group in cohort.runnable: yield cohort, group, True
      for group in cohort.waits(): yield cohort, group, False

  def find(self, wave: int) -> tuple[Cohort, Group, int, bool] | None:
    """(cohort, group, the wave's row in it, whether it can run) of a wave that has started and not ended."""
    for cohort, group, runs in self.groups():
      at = np.flatnonzero(group.waves == wave)
      if at.size: return cohort, group, int(at[0]), runs
    return None

  def isolate(self, cohort: Cohort, group: Group, row: int) -> Group:
    """Take one wave out of a group that can run, so that it can go on alone."""
    if group.size == 1: return group
    rows = np.arange(group.size)
    one, others = group.take(rows[row:row + 1]), group.take(np.delete(rows, row))
    one.count = others.count = group.count
    one.lap = others.lap = group.lap
    cohort.runnable = [part for g in cohort.runnable for part in ((one, others) if g is group else (g,))]
    return one
