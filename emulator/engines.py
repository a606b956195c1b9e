"""Which engine runs a dispatch: the reference interpreter, compiled code, both against each other, or whichever pays.

`auto` interprets until a program has cost about as much as compiling it would, then compiles; the results are the same.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import InvalidArgument, TinyhwError
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats
from tinyhw.emulator.amdgcn import dispatch as interpret
from tinyhw.emulator.amdgcn.launch import prepare
from tinyhw.emulator.amdgcn.program import Program
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Cohort, run_all

ENGINES: Final = ("auto", "ref", "jit", "both")
# What interpreting costs, in microseconds: a step of a group of waves, and each wave's share of it.
_STEP: Final = 15.0
_INSTRUCTION: Final = 0.15
_HANDED_BACK: Final = 100.0  # one wave's instruction from compiled code to the reference and back
# What compiling costs: for LLVM at all, and for each instruction of a program.
_LLVM: Final = 40_000.0
_COMPILING: Final = 150.0
_BLOCKS_A_LOOK: Final = 256  # how often the first cohort's cost is looked at


class EnginesDiffer(TinyhwError):
  """The reference and the compiled code do not agree."""


def dispatch(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int = 100_000_000, engine: str = "auto",
             observer: Observer | None = None) -> DispatchStats:
  """Run a dispatch with an engine of `ENGINES`; see `tinyhw.emulator.amdgcn.dispatch` for the rest.

  With an observer it is the reference that runs, whatever the engine: compiled code shows nothing of its instructions.
  """
  if observer is not None: return interpret(space, arch, d, watchdog=watchdog, observer=observer)
  if engine == "ref": return interpret(space, arch, d, watchdog=watchdog)
  if engine == "jit": return compiled(space, arch, d, watchdog=watchdog)
  if engine == "both": return _both(space, arch, d, watchdog)
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
  program: Program = first.program  # type: ignore[assignment]
  here, total, before = len(first.live), d.grid[0] * d.grid[1] * d.grid[2], program.spent
  vgprs, ended = len(first.runnable[0].v), False
  with np.errstate(all="ignore"):
    while not ended and 0 <= before + _cost(stats) < _price(program): ended = first.run(_BLOCKS_A_LOOK)
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
  from tinyhw.emulator.jit.native import NotCompiled
  from tinyhw.emulator.jit.run import code_for
  program: Program = cohort.program  # type: ignore[assignment]
  try: code_for(cohort, vgprs)
  except NotCompiled:
    program.spent = -float("inf")
    return False
  return True


def _cost(stats: DispatchStats) -> float: return stats.steps * _STEP + stats.instructions * _INSTRUCTION


def _price(program: Program) -> float: return _LLVM + program.size * _COMPILING


def compiled(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int) -> DispatchStats:
  """Run a dispatch with compiled code; LLVM loads with the first one. A program that it refuses is interpreted."""
  from tinyhw.emulator.jit.native import NotCompiled
  from tinyhw.emulator.jit.run import dispatch as run
  try: return run(space, arch, d, watchdog=watchdog)
  except NotCompiled as refused:
    if refused.started: raise
    stats = interpret(space, arch, d, watchdog=watchdog)
    stats.interpreted[str(refused)] = stats.waves
    return stats


def _copy(space: AddressSpace) -> AddressSpace:
  """The same mappings over a copy of the memory; what is shared in it stays shared."""
  other = AddressSpace(space.name)
  regions: dict[int, Region] = {}
  for m in space.mappings():
    key = id(m.backing)
    if key not in regions: regions[key] = Region("copy", -(-m.backing.size // 4096) * 4096)
    regions[key].u8[m.offset:m.offset + m.end - m.start] = m.u8
    other.map(m.start, m.end - m.start, regions[key], m.offset, m.access)
  return other


def _outcome(run: Callable[..., DispatchStats], *arguments: Any, watchdog: int) -> tuple[DispatchStats | None, Any]:
  try: return run(*arguments, watchdog=watchdog), None
  except TinyhwError as error: return None, error


def _both(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int) -> DispatchStats:
  """The reference on a copy of the memory, compiled code on the memory itself. Raises EnginesDiffer."""
  copy = _copy(space)
  expected, error = _outcome(interpret, copy, arch, d, watchdog=watchdog)
  stats, other = _outcome(compiled, space, arch, d, watchdog=watchdog)
  if type(error) is not type(other) or str(error) != str(other):
    raise EnginesDiffer(f"the reference {_told(error)}, compiled code {_told(other)}")
  if error is not None: raise other
  assert expected is not None and stats is not None
  # how often waves try may depend on who runs when, where they wait for each other with atomics
  if expected.instructions != stats.instructions and not any("atomic" in name for name in expected.mnemonics):
    raise EnginesDiffer(f"the reference executed {expected.instructions:,} instructions, compiled code "
                        f"{stats.instructions:,}")
  for m, n in zip(copy.mappings(), space.mappings()):
    if (m.u64 == n.u64).all(): continue
    at = np.flatnonzero(m.u32 != n.u32)
    at = at[~_both_nan(m.u32[at], n.u32[at])]
    if not at.size: continue
    lines = [f"{m.start + 4 * int(k):#x}: reference {int(m.u32[k]):#010x}, compiled {int(n.u32[k]):#010x}"
             for k in at[:8]]
    raise EnginesDiffer(f"memory differs in {at.size} dwords after the dispatch at {d.entry_pc:#x}: {'; '.join(lines)}")
  return stats


def _both_nan(a: Any, b: Any) -> Any:
  """Which NaN comes out of several is not compared: f32, or f16 in either half."""
  def f32(x: Any) -> Any: return x & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000)

  def halves_agree() -> Any:
    x, y = a.view(np.uint16).reshape(-1, 2), b.view(np.uint16).reshape(-1, 2)
    nan = [v & np.uint16(0x7FFF) > np.uint16(0x7C00) for v in (x, y)]
    return ((x == y) | nan[0] & nan[1]).all(axis=1)
  return f32(a) & f32(b) | halves_agree()


def _told(error: Any) -> str: return "ended well" if error is None else f"raised {type(error).__name__}: {error}"
