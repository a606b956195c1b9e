"""The checks of one dispatch. Others may run beside it, so nothing of a dispatch is kept anywhere else."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.check.report import Finding, Report
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Stats

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker


class Part(Observer):
  """What a vendor's checks derive from. `found` is what they have found of their dispatch."""

  def __init__(self, checker: Checker) -> None:
    self.checker, self.kinds, self.found = checker, checker.kinds, Report()

  def add(self, finding: Finding) -> None:
    """Keep a finding, here and with the checker."""
    self.found.add(finding)
    self.checker.add(finding)

  def unseen(self, text: str) -> None:
    """Say what the checks do not see of this dispatch."""
    self.found.unseen.add(text)
    self.checker.unseen(text)

  def end(self, stats: Stats) -> None:
    """Raises HazardFound where a dispatch with findings is to fail."""
    if self.checker.fails and len(self.found): raise self.checker.failed(self.found)
