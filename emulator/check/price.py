"""Whether watched code pays for a dispatch: what the checks would cost by the reference, about.

It is chosen by counts alone, never by time: instructions in the code, waves, and what earlier dispatches executed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

# Microseconds: a step of the reference under the checks, each wave's share of it; watched code at all.
_STEP: Final = 100.0
_WAVE: Final = 4.0
_LLVM: Final = 100_000.0
_RESTS: Final = 6  # after so many suspicions watched code rests for 2 ** this dispatches


class _Known:
  """What is known of a program: what it would cost, has cost, and how often watched code was in vain."""

  def __init__(self, extent: tuple[int, int]) -> None:
    self.size, self.steps = extent
    self.spent = 0.0
    self.waves = 0
    self.compiled = False
    self.suspected = self.rests = 0


class Price:
  """Of one vendor's programs. `extent` gives a program's instructions and how many a wave may execute, `compiling` is
  what an instruction costs LLVM."""

  def __init__(self, extent: Callable[[Any], tuple[int, int]], compiling: float) -> None:
    self._extent, self._compiling = extent, compiling
    self._programs: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()

  def _known(self, program: Any) -> _Known:
    known = self._programs.get(program)
    if known is None: known = self._programs[program] = _Known(self._extent(program))
    return known

  def pays(self, program: Any, waves: int) -> bool:
    """Whether a dispatch of so many waves is to be run by watched code first."""
    known = self._known(program)
    if known.rests:
      known.rests -= 1
      return False
    if known.compiled: return True
    price = _LLVM + known.size * self._compiling
    expected = known.steps * (_STEP + waves * _WAVE)
    if known.waves: expected = known.spent * waves / known.waves
    return known.spent + expected > price

  def ran(self, program: Any, stats: Any) -> None:
    """The reference has run a dispatch of it under the checks."""
    known = self._known(program)
    known.spent += stats.steps * _STEP + stats.instructions * _WAVE
    known.waves += stats.waves

  def watched(self, program: Any, clean: bool) -> None:
    """Watched code has run a dispatch of it, or found that the reference has to look."""
    known = self._known(program)
    known.compiled = True
    if clean: known.suspected = 0
    else:
      known.suspected = min(known.suspected + 1, _RESTS)
      known.rests = (1 << known.suspected) - 1
