"""What can be seen of a dispatch while the reference interpreter runs it: instructions, accesses, barriers, ends.

An observer slows the run down by about one Python call an instruction and group; without one nothing is paid.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.core.memory import AddressSpace
  from tinyhw.emulator.simt import Cohort, Group, Stats


class Observer:
  """Override what you want to see. An exception that a method raises stops the dispatch and reaches its caller."""

  def dispatch(self, space: AddressSpace, arch: Arch, d: Any) -> None:
    """A dispatch begins; `d` is an `emulator.amdgcn.Dispatch`."""

  def cohort(self, cohort: Cohort) -> None:
    """Workgroups that run together have their first registers; they run next, or after others have had turns."""

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    """The waves of `group` execute the instruction at `pc` next; their registers are those that it reads."""

  def after(self, group: Group, pc: int, instruction: Any) -> None:
    """They have executed it; their registers hold its results. Where they go on is not known yet."""

  def end(self, stats: Stats) -> None:
    """The dispatch has run to its end without a fault."""
