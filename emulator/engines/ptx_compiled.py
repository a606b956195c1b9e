"""Whether a launch runs in compiled code: from its start, from where interpreting has cost as much, or not at all."""
from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.ptx.launch.grid import Grid
from tinyhw.emulator.schedule import Idle, Schedule, ended
from tinyhw.emulator.simt import Cohort, Stats

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.module.code import Kernel

# What interpreting costs, in microseconds: a step of a group of warps, and each warp's share of it.
_STEP: Final = 15.0
_INSTRUCTION: Final = 0.15
# What compiling costs: at all, for each instruction of a kernel, and more for those beyond so many.
_LLVM: Final = 100_000.0
_COMPILING: Final = 600.0
_LARGE: Final = 1_000
_BEYOND: Final = 15_000.0
SHOWN: Final = 8  # differences that an error spells out


def turns(grid: Grid, engine: str) -> Iterator[Idle | None]:
  """Run a launch in turns, see `Schedule.turns`; `engine` is "jit" or "auto", which decides by counts alone."""
  program, schedule = grid.dispatch.program, Schedule(grid)
  if engine == "auto" and program.spent < price(grid):
    from tinyhw.emulator.jit.ptx.module.code import kept  # it loads where something may be compiled
    if not kept(program, grid.dispatch.block, grid.shared.explicit):
      before = program.spent
      running = schedule.turns()
      while program.spent < price(grid):
        try: idle = next(running)
        except StopIteration:
          program.spent = before + cost(grid.stats)
          return
        program.spent = before + cost(grid.stats)
        yield idle
  yield from onward(grid, schedule.running)


def onward(grid: Grid, running: list[Cohort]) -> Iterator[Idle | None]:
  """Go on in compiled code, where there may be some, with what the reference has begun."""
  found = compiled(grid) if _may_compile(grid) else None
  if found is None: return (yield from Schedule(grid, running).turns())
  from tinyhw.emulator.jit.ptx.launch.run import CompiledLaunch  # as above
  yield from CompiledLaunch(grid, found).turns(running)


def _may_compile(grid: Grid) -> bool:
  """A process that ends begins no threads and processes any more: it takes what is compiled already."""
  from tinyhw.emulator.jit.ptx.module.code import kept  # it loads where something may be compiled
  return threading.main_thread().is_alive() or kept(grid.dispatch.program, grid.dispatch.block, grid.shared.explicit)


def cost(stats: Stats) -> float:
  """What a launch has cost so far in the reference."""
  heavy: float = sum(block.weight * waves for block, waves in stats.blocks.items() if block.weight)
  return stats.steps * _STEP + stats.instructions * _INSTRUCTION + heavy


def price(grid: Grid) -> float:
  """What compiling costs."""
  program = grid.dispatch.program
  lines = program.linked.lines[program.entry_name]
  return _LLVM + lines * _COMPILING + max(lines - _LARGE, 0) * _BEYOND


def compiled(grid: Grid) -> Kernel | None:
  """The compiled kernel; None where the reference is to run it, which `stats.interpreted` says why."""
  from tinyhw.emulator.jit.ptx.module.code import kernel  # as above
  try: return kernel(grid.dispatch.program, grid.dispatch.block, clustered=grid.shared.explicit)
  except NotCompiled as why:
    grid.stats.interpreted[why.why] = grid.total * grid.shared.warps
    return None


def both(grid: Grid) -> Iterator[Idle | None]:
  """The reference on a copy of the memory, compiled code on the memory itself: both must end alike, and leave the same.

  Raises EnginesDiffer.
  """
  from tinyhw.emulator.engines.both import EnginesDiffer, alike, copied, raise_time_outs
  space = copied(grid.space)
  told = copy.deepcopy(grid.dispatch.printed)
  expected = _outcome(Schedule(Grid(space, replace(grid.dispatch, printed=told), grid.watchdog, Stats())).turns())
  found = _outcome(turns(grid, "jit"))
  yield None
  raise_time_outs(expected, found)
  if not alike(expected, found, grid.total * grid.shared.warps > 1):
    raise EnginesDiffer(f"the reference {_told(expected)}, compiled code {_told(found)}")
  if found is not None: raise found
  if Counter(told.entries) != Counter(grid.dispatch.printed.entries):  # in which order they print is open
    raise EnginesDiffer("the reference has printed something else")
  for m, n in zip(space.mappings(), grid.space.mappings()):
    at = np.flatnonzero(m.u32 != n.u32)
    if not at.size: continue
    lines = "; ".join(f"{m.start + 4 * k:#x}: reference {int(m.u32[k]):#010x}, compiled {int(n.u32[k]):#010x}"
                      for k in at[:SHOWN].tolist())
    raise EnginesDiffer(f"{at.size} dwords of memory differ after {grid.dispatch.program.entry_name}: {lines}")


def _outcome(running: Iterator[Idle | None]) -> Error | None:
  """The error that a launch ends with."""
  try: ended(running)
  except Error as error: return error
  return None


def _told(error: Error | None) -> str:
  return "ended well" if error is None else f"raised {type(error).__name__}: {error}"
