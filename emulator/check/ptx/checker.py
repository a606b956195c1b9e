"""The observer that checks PTX."""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.emulator.observe import Observer

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker


class Hazards(Observer):
  """Checks a launch of a PTX kernel."""

  def __init__(self, checker: Checker) -> None: self.checker = checker
