"""Launches of which one begins before the one before it has ended (`griddepcontrol`).

The first says when that may be: when each of its blocks has executed `launch_dependents`, or has ended. The second has
to wait for what it needs of the first. Both run on the reference in short turns, so that a second one that forgets to
wait can come before the first one's stores.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.schedule import Idle, Schedule
from tinyhw.emulator.simt import Cohort, Next, Yield
from tinyhw.isa.ptx.model import Instruction

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.group import Warps
  from tinyhw.emulator.ptx.launch import Grid

ENOUGH: Final = 200_000.0  # what the reference may cost, in microseconds, before compiled code goes on


@dataclass(eq=False)
class Overlap:
  """What a launch knows of its neighbours: `ended`, whether those before it have. `said` are blocks that let those
  behind it begin, `open`: all that have not ended do. `cost` is what it took in the reference, in microseconds, where
  compiled code could have run it."""

  ended: Callable[[], bool] = lambda: True
  said: set[int] = field(default_factory=set)
  open: bool = False
  cost: float = 0.0


def ender(i: Instruction, after: int) -> Callable[[Warps], Next]:
  """What griddepcontrol does."""
  def wait(group: Warps) -> Next:
    overlap: Overlap | None = group.cohort.dispatch.overlap
    return after if overlap is None or overlap.ended() else Yield(group.pc)

  def say(group: Warps) -> Next:
    overlap: Overlap | None = group.cohort.dispatch.overlap
    if overlap is not None: overlap.said.update((group.waves // group.cohort.shared.warps).tolist())
    return after
  return wait if "wait" in i.modifiers else say


class _Short(Schedule):
  """Turns of a block of instructions each. After each it is known whether those behind the launch may begin."""

  def __init__(self, grid: Grid, overlap: Overlap) -> None:
    super().__init__(grid)
    self.grid, self.overlap = grid, overlap

  def turn(self, cohort: Cohort, *blocks: int) -> None:
    super().turn(cohort, 1)
    overlap = self.overlap
    if not overlap.open: overlap.open = not self.grid.left and self._left() <= overlap.said

  def _left(self) -> set[int]:
    """Blocks that have not ended."""
    warps = self.grid.shared.warps
    found: list[Any] = [np.flatnonzero(c.alive()) + c.first // warps for c in self.running]
    return {*np.concatenate(found).tolist()} if found else set()


def turns(grid: Grid, engine: str = "") -> Iterator[Idle | None]:
  """Run a launch in short turns, see `Schedule.turns`. A long one goes on in compiled code when those before it have
  ended, if the engine is not the reference; those behind it begin at its end then."""
  overlap = grid.dispatch.overlap
  assert overlap is not None
  schedule = _Short(grid, overlap)
  if (engine or os.environ.get("EMU", "")) == "ref" or not grid.space.direct: return (yield from schedule.turns())
  from tinyhw.emulator.jit.ptx import engine as engines
  for idle in schedule.turns():
    yield idle
    overlap.cost = engines.cost(grid.stats)
    if overlap.cost > ENOUGH and overlap.ended(): return (yield from engines.onward(grid, schedule.running))
