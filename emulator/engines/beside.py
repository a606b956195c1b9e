"""Runs a launch that others may run beside (`overlap`): on the reference in short turns, so that a second one that
forgets to wait can come before the first one's stores.
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from tinyhw.emulator.engines import ptx_compiled
from tinyhw.emulator.ptx.launch.grid import Grid
from tinyhw.emulator.ptx.launch.overlap import Overlap
from tinyhw.emulator.schedule import Idle, Schedule
from tinyhw.emulator.simt import Cohort

ENOUGH: Final = 200_000.0  # what the reference may cost, in microseconds, before compiled code goes on


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
  for idle in schedule.turns():
    yield idle
    overlap.cost = ptx_compiled.cost(grid.stats)
    if overlap.cost > ENOUGH and overlap.ended(): return (yield from ptx_compiled.onward(grid, schedule.running))
