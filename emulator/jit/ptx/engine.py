"""Whether a launch runs in compiled code: from its start, from where interpreting has cost as much, or not at all."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.schedule import Idle, Schedule

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.code import Kernel
  from tinyhw.emulator.ptx.launch import Grid
  from tinyhw.emulator.simt import Stats

# What interpreting costs, in microseconds: a step of a group of warps, and each warp's share of it.
_STEP: Final = 15.0
_INSTRUCTION: Final = 0.15
# What compiling costs: at all, and for each instruction of a kernel.
_LLVM: Final = 100_000.0
_COMPILING: Final = 600.0


def turns(grid: Grid, engine: str) -> Iterator[Idle | None]:
  """Run a launch in turns, see `Schedule.turns`; `engine` is "jit" or "auto", which decides by counts alone."""
  program, schedule = grid.dispatch.program, Schedule(grid)
  if engine == "auto" and program.spent < price(grid):
    from tinyhw.emulator.jit.ptx.code import kept
    if not kept(program, grid.dispatch.block):
      before = program.spent
      running = schedule.turns()
      while program.spent < price(grid):
        try: idle = next(running)
        except StopIteration:
          program.spent = before + cost(grid.stats)
          return
        program.spent = before + cost(grid.stats)
        yield idle
  found = compiled(grid)
  if found is None: return (yield from schedule.turns())
  from tinyhw.emulator.jit.ptx.run import Launch
  yield from Launch(grid, found).turns(schedule.running)


def cost(stats: Stats) -> float:
  """What a launch has cost so far in the reference."""
  return stats.steps * _STEP + stats.instructions * _INSTRUCTION


def price(grid: Grid) -> float:
  """What compiling costs."""
  program = grid.dispatch.program
  return _LLVM + len(program.linked.flats[program.entry_name].lines) * _COMPILING


def compiled(grid: Grid) -> Kernel | None:
  """The compiled kernel; None where the reference is to run it, which `stats.interpreted` says why."""
  from tinyhw.emulator.jit.ptx.code import kernel
  try: return kernel(grid.dispatch.program, grid.dispatch.block)
  except NotCompiled as why:
    grid.stats.interpreted[why.why] = grid.total * grid.shared.warps
    return None
