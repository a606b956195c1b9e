"""Runs a dispatch of AMD's machine code one instruction of one group of waves at a time; see `debug.engine`."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import Error
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn.launch import Dispatch, Workgroups
from tinyhw.emulator.debug.amdgcn.snapshot import AmdKeeper
from tinyhw.emulator.debug.engine import Bound, Engine
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Cohort, Group, Next


class AmdEngine(Engine):
  """The waves of a dispatch; instructions stay bound to their steps until code is read anew."""

  keeper = AmdKeeper()

  def __init__(self, space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, observer: Observer) -> None:
    self._bound: dict[tuple[int, int], Bound] = {}
    super().__init__(space, arch, d, watchdog, observer)

  def _begin(self) -> tuple[Any, int]:
    return (Workgroups(self.space, self.arch, self.dispatch, self._watchdog, self.stats),
            32 if self.dispatch.wave32 else 64)

  def bound(self, cohort: Cohort, pc: int, mode: int) -> Bound:
    found = self._bound.get((pc, mode))
    if found is None:
      block = cohort.program.block(pc, mode)
      steps = dict(zip(block.pcs, block.steps))
      at, last = pc, len(block.instructions) - 1
      for k, i in enumerate(block.instructions):
        self._bound[at, mode] = i, steps.get(at), block.end if k == last else None
        at += i.size
      found = self._bound[pc, mode]
    return found

  def execute(self, cohort: Cohort, group: Group, alone: bool = False) -> None:
    pc = group.pc
    i, step, end = self.bound(cohort, pc, group.mode)
    observer = self.observer
    after: Next = pc + i.size
    cohort.seen = pc, i
    try:
      observer.before(group, pc, i)
      with np.errstate(all="ignore"):
        if end is not None: after = end(group)
        elif step is not None: step(group)
      observer.after(group, pc, i)
    except (Error, IndexError) as error:
      raise cohort.located(error, pc, group) from (None if isinstance(error, Error) else error)
    if i.mnemonic == "s_icache_inv": self._bound.clear()
    self._go_on(cohort, group, pc, after, end is not None, alone)

  def code_changed(self) -> None:
    self._bound.clear()
    super().code_changed()
