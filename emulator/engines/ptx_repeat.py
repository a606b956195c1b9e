"""Launches that are run again and again, with other parameters each time."""
from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tinyhw.core.memory import AddressSpace
from tinyhw.core.printf import Printed
from tinyhw.emulator.engines.ptx import turns
from tinyhw.emulator.ptx.launch.grid import Dispatch, Grid
from tinyhw.emulator.schedule import Idle
from tinyhw.emulator.simt import Stats

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.launch.repeat import Again
  from tinyhw.emulator.observe import Observer

_ENGINES: Final = frozenset({"auto", "jit"})

Run = Generator["Idle | None", None, Stats]


class Repeated:
  """A launch that is run again and again: nothing is done twice that does not depend on the parameters. What it does
  and counts is what `engines.turns` does. `d` is the launch without parameters' address, tick and what is printed."""

  def __init__(self, space: AddressSpace, d: Dispatch, *, watchdog: int, engine: str = "") -> None:
    self.space, self.dispatch, self._watchdog = space, d, watchdog
    self._engine = engine or os.environ.get("EMU", "") or "auto"
    self._again: Again | None = None
    self._alone = False  # compiled code ran the last one by itself
    self._large = False  # it is not kept
    self._begun = False  # `at_once` has begun what `start` goes on with

  def at_once(self, params: int) -> Stats | None:
    """Run it to its end where nothing else is to be done than that; None where `start` has to do it, or what is left.
    """
    again = self._again
    if again is None or not again.stands(): return None
    ended = again.run(params)
    self._begun = not ended
    return again.stats if ended else None

  def start(self, params: int, tick: Callable[[], None] | None, printed: Printed,
            observer: Observer | None = None) -> Run:
    """Run it in turns, see `Schedule.turns`; an observer sees it on the reference. Raises what those raise."""
    again, self._again = self._again, None
    begun, self._begun = self._begun, False
    d = replace(self.dispatch, params=params, tick=tick, printed=printed)
    if observer is not None:
      grid = Grid(self.space, d, self._watchdog, Stats(), observer)
      yield from turns(grid)
      return grid.stats
    if again is not None and not begun and not again.stands(): again = None
    if again is None and self._alone and not self._large: again = self._made(d)
    if again is None:
      grid = self._grid(d)
      yield from turns(grid, self._engine)
      self._note(grid.stats)
      return grid.stats
    if not begun and again.run(params):
      yield None
      self._again = again
      return again.stats
    grid = self._grid(d)
    yield from again.rest(grid)
    if self._note(grid.stats): self._again = again
    return grid.stats

  def _grid(self, d: Dispatch) -> Grid: return Grid(self.space, d, self._watchdog, Stats())

  def _note(self, stats: Stats) -> bool:
    self._alone = stats.engine == "jit" and not stats.interpreted and self._engine in _ENGINES
    return self._alone

  def _made(self, d: Dispatch) -> Again | None:
    """None where it is not to be kept, which does not change."""
    from tinyhw.emulator.jit.ptx.launch.repeat import again
    made = None if d.clusters is not None or not self.space.direct else again(self._grid(d))
    self._large = made is None
    return made
