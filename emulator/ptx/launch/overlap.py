"""Launches of which one begins before the one before it has ended (`griddepcontrol`).

The first says when that may be: when each of its blocks has executed `launch_dependents`, or has ended. The second has
to wait for what it needs of the first. `beside` runs them.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tinyhw.emulator.simt import Next, Yield
from tinyhw.isa.ptx.model import Instruction

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.group import Warps


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
