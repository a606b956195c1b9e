"""The debugger's observer: what one instruction did, beside the checks, which see it too."""
from __future__ import annotations

from typing import Any

from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.debug import snapshot as snapshots
from tinyhw.emulator.debug.breaks import MemoryBreak
from tinyhw.emulator.debug.snapshot import CohortState, Keeper
from tinyhw.emulator.observe import Access, Observer
from tinyhw.emulator.simt import Cohort, Group


class Watcher(Observer):
  """Collects what a single instruction did, for the debugger to judge."""
  keeper: Keeper

  def __init__(self, checker: Checker | None) -> None:
    self.ranges: list[MemoryBreak] = []
    self.hits: list[tuple[MemoryBreak, int, int, int, Access]] = []
    self.pristine: dict[Cohort, CohortState] = {}
    self.checker, self.checks = checker, Observer()  # of the dispatch

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> None:
    if self.checker is None: return
    self.checks = self.checker.dispatch(space, arch, d)
    for name in ("before", "after", "outside", "barrier", "released", "ended", "told", "complete", "heard", "copied"):
      setattr(self, name, getattr(self.checks, name))

  def cohort(self, cohort: Cohort) -> None:
    self.checks.cohort(cohort)
    if cohort in self.pristine: return  # started again, after a way back
    self.pristine[cohort] = snapshots.cohort_state(cohort, self.keeper)

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    self.checks.access(group, pc, instruction, access)
    for b in self.ranges:
      if b.enabled and (found := b.touched(group, access)) is not None:
        row, lane, address = found
        self.hits.append((b, int(group.waves[row]), lane, address, access))
