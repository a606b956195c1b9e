"""Which engine runs a launch: the reference interpreter, compiled code, both against each other, or whichever pays."""
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.engines import ptx_compiled
from tinyhw.emulator.observe import OBSERVED, Observer
from tinyhw.emulator.ptx.launch.grid import WATCHDOG, Dispatch, Grid
from tinyhw.emulator.schedule import Idle, Schedule, ended
from tinyhw.emulator.simt import Stats

ENGINES: Final = ("auto", "ref", "jit", "both")


def dispatch(space: AddressSpace, d: Dispatch, *, watchdog: int = WATCHDOG,
             observer: Observer | None = None, engine: str = "") -> Stats:
  """Run a launch to its end. `watchdog` is the number of instructions that a warp may execute, `engine` one of ENGINES
  (default: what `EMU` says).

  Raises MachineFault (PageFault, WatchdogExpired) with PC, instruction, warp and lane; Unsupported for an instruction
  that has no meaning here, when control gets there.
  """
  grid = Grid(space, d, watchdog, Stats(), observer)
  ended(turns(grid, engine))
  return grid.stats


def turns(grid: Grid, engine: str = "") -> Iterator[Idle | None]:
  """Run a launch in turns, see `Schedule.turns`, with an engine of ENGINES."""
  engine = engine or os.environ.get("EMU", "") or "auto"
  if engine not in ENGINES:
    raise InvalidArgument(f"no engine is called {engine!r}", hint=f"there are {', '.join(ENGINES)}")
  observer = grid.observer
  if observer is not None:
    if engine in {"auto", "jit"} and grid.space.direct and grid.left:
      found = observer.proven(grid, WATCHDOG if grid.watchdog == OBSERVED else grid.watchdog, engine == "jit")
      if found is not None: return grid.ran(found)
    grid.observer = observer.dispatch(grid.space, grid.dispatch.generation, grid.dispatch) or observer
  elif engine != "ref" and grid.space.direct:
    return (yield from ptx_compiled.both(grid) if engine == "both" else ptx_compiled.turns(grid, engine))
  yield from Schedule(grid).turns()
  if grid.observer is not None: grid.observer.end(grid.stats)
