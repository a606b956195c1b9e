"""Runs a launch of PTX one instruction of one group of threads at a time; see `debug.engine`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.emulator.debug.engine import Bound, Engine
from tinyhw.emulator.debug.ptx.snapshot import PtxKeeper
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.launch.grid import Grid
from tinyhw.emulator.ptx.program import Program, Shown
from tinyhw.emulator.simt import Cohort, Group


@dataclass(frozen=True)
class End:
  """What stands behind a function's last instruction: control returns there."""
  mnemonic: str = "ret"
  size: int = 2

  def __str__(self) -> str: return "the end of the function"


_END: Final = End()


class PtxEngine(Engine):
  """The threads of a launch. A warp whose threads have parted is in several groups; `lane` says which one is meant."""

  keeper = PtxKeeper()
  lane = 0

  def _begin(self) -> tuple[Any, int]:
    return Grid(self.space, self.dispatch, self._watchdog, self.stats), LANES

  def bound(self, cohort: Cohort, pc: int, mode: int) -> Bound:
    """The instruction at a PC with its step, or its end; where its guard is asked first (the even PC), the guard's."""
    program: Any = cohort.program
    block = program.block(pc, mode)
    if not block.instructions:
      line = program.at(pc).line(pc)
      return _END if line is None else Shown(line, pc), None, block.end
    return block.instructions[0], dict(zip(block.pcs, block.steps)).get(pc), block.end

  def execute(self, cohort: Cohort, group: Group, alone: bool = False) -> None:
    """One instruction of a group, or the guard that parts it. With `alone` it does not join threads where it comes to.
    """
    pc, program = group.pc, cohort.program
    i, step, end = self.bound(cohort, pc, 0)
    block: Any = program.block(pc, 0)
    after: Any = pc + 2 if len(block.instructions) > 1 else block.next
    seen = cohort.shown(pc)
    cohort.seen = seen, i
    try:
      with np.errstate(all="ignore"):
        if not block.instructions and end is not None and not isinstance(i, End):  # the guard is asked first
          after = end(group)
          if after == pc + 1:
            group.pc = after
            return self.execute(cohort, group, alone)
        else:
          if not isinstance(i, End): self.observer.before(group, seen, i)
          if end is not None: after = end(group)
          elif step is not None: step(group)
          if not isinstance(i, End): self.observer.after(group, seen, i)
    except (Error, IndexError) as error:
      raise cohort.located(error, pc, group) from (None if isinstance(error, Error) else error)
    self._go_on(cohort, group, pc, after, end is not None, alone)
    if len(cohort.runnable) > 1: self.group = None  # the lowest place runs first, so that threads meet

  def find(self, wave: int) -> tuple[Cohort, Group, int, bool] | None:
    """Of a warp whose threads have parted, those that the lane in focus is with; else the first ones."""
    found = None
    for cohort, group, runs in self.groups():
      at = np.flatnonzero(group.waves == wave)
      if not at.size: continue
      assert isinstance(group, Warps)
      row = int(at[0])
      if group.lanes[row, self.lane]: return cohort, group, row, runs
      found = found or (cohort, group, row, runs)
    return found

  @property
  def program(self) -> Program:
    """The kernel's code."""
    found: Program = self.dispatch.program
    return found
