"""Which engine runs a dispatch: the reference interpreter, compiled code, both against each other, or whichever pays.

`auto` interprets until a program has cost about as much as compiling it would, then compiles; the results are the same.
"""
from __future__ import annotations

from itertools import chain
from typing import Any, Final, cast

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats
from tinyhw.emulator.amdgcn import dispatch as interpret
from tinyhw.emulator.amdgcn.launch import prepare
from tinyhw.emulator.amdgcn.program import Program
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Cohort, run_all

ENGINES: Final = ("auto", "ref", "jit", "both")
WATCHDOG: Final = 100_000_000  # instructions of one wave before a dispatch counts as endless
OBSERVED: Final = 1_000_000  # the same for one that is observed, which takes a minute
# What interpreting costs, in microseconds: a step of a group of waves, and each wave's share of it.
_STEP: Final = 15.0
_INSTRUCTION: Final = 0.15
_HANDED_BACK: Final = 100.0  # one wave's instruction from compiled code to the reference and back
# What compiling costs: for LLVM at all, and for each instruction of a program.
_LLVM: Final = 40_000.0
_COMPILING: Final = 60.0
_SOON: Final = 0.5  # the part of it after which the compiling process is started
_BLOCKS_A_LOOK: Final = 256  # how often the first cohort's cost is looked at


def dispatch(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int | None = None, engine: str = "auto",
             observer: Observer | None = None) -> DispatchStats:
  """Run a dispatch with an engine of `ENGINES`; see `tinyhw.emulator.amdgcn.dispatch` for the rest.

  With an observer it is the reference that runs, whatever the engine: compiled code shows nothing of its instructions.
  Without `watchdog`, a wave may execute WATCHDOG instructions, or OBSERVED.
  """
  if watchdog is None: watchdog = WATCHDOG if observer is None else OBSERVED
  if observer is not None: return interpret(space, arch, d, watchdog=watchdog, observer=observer)
  if engine == "ref": return interpret(space, arch, d, watchdog=watchdog)
  if engine == "jit": return compiled(space, arch, d, watchdog=watchdog)
  if engine == "both":
    from tinyhw.emulator.both import both
    return both(space, arch, d, watchdog, compiled)
  if engine != "auto": raise InvalidArgument(f"no engine is called {engine!r}", hint=f"there are {', '.join(ENGINES)}")
  return _auto(space, arch, d, watchdog)


def _auto(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int) -> DispatchStats:
  """Interpret until the program has cost, or the rest of the launch would cost, about as much as compiling does.

  Compiled code then takes the waves over where they stand. What is chosen depends on counts alone, not on time.
  """
  stats = DispatchStats()
  cohorts, resident = prepare(space, arch, d, watchdog, stats)
  first = next(cohorts, None)
  if first is None: return stats
  program = cast(Program, first.program)  # amdgcn's cohorts have no other
  here, total, before = len(first.live), d.grid[0] * d.grid[1] * d.grid[2], program.spent
  vgprs, ended = len(first.runnable[0].v), False
  with np.errstate(all="ignore"):
    while not ended and 0 <= before + _cost(stats) < _price(program):
      ended = first.run(_BLOCKS_A_LOOK)
      if before + _cost(stats) > _price(program) * _SOON: _expect_to_compile()
    expected = before + _cost(stats) / (here if ended else total) * total
    unfinished = chain(() if ended else (first,), cohorts)
    if expected < _price(program) or not _compiles(first, vgprs):
      run_all(unfinished, resident)
      program.spent = before + _cost(stats)
      return stats
  interpreted = stats.instructions
  program.spent = before + _cost(stats)
  from tinyhw.emulator.jit.run import run_cohorts
  run_cohorts(unfinished, resident, d, stats)
  # a program that compiled code keeps handing back to the reference is better interpreted as a whole
  handed_back = sum(stats.interpreted.values()) * _HANDED_BACK
  if handed_back > (stats.instructions - interpreted) * _INSTRUCTION: program.spent = -float("inf")
  return stats


def _compiles(cohort: Cohort, vgprs: int) -> bool:
  """Have the program compiled; a program that LLVM refuses is interpreted from then on."""
  from tinyhw.emulator.jit.refusal import NotCompiled
  from tinyhw.emulator.jit.run import code_for
  program = cast(Program, cohort.program)  # amdgcn's cohorts have no other
  try: code_for(cohort, vgprs)
  except NotCompiled:
    program.spent = -float("inf")
    return False
  return True


def _expect_to_compile() -> None:
  from tinyhw.emulator.jit.servers import expect
  expect()


def _cost(stats: DispatchStats) -> float: return stats.steps * _STEP + stats.instructions * _INSTRUCTION


def _price(program: Program) -> float: return _LLVM + program.size * _COMPILING


def compiled(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int, **more: Any) -> DispatchStats:
  """Run a dispatch with compiled code; LLVM loads with the first one. A program that it refuses is interpreted."""
  from tinyhw.emulator.jit.refusal import NotCompiled
  from tinyhw.emulator.jit.run import dispatch as run
  try: return run(space, arch, d, watchdog=watchdog, **more)
  except NotCompiled as refused:
    stats = interpret(space, arch, d, watchdog=watchdog)
    stats.interpreted[str(refused)] = stats.waves
    return stats
