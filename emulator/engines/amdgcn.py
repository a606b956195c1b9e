"""Which engine runs a dispatch: the reference interpreter, compiled code, both against each other, or whichever pays.

`auto` interprets until a program has cost about as much as compiling it would, then compiles; the results are the same.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from tinyhw.arch import Arch
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats
from tinyhw.emulator.amdgcn import dispatch as interpret
from tinyhw.emulator.amdgcn.launch import Workgroups, interpreted
from tinyhw.emulator.amdgcn.program import AmdgcnProgram
from tinyhw.emulator.observe import OBSERVED, Observer
from tinyhw.emulator.schedule import Idle, Schedule
from tinyhw.emulator.simt import Cohort
from tinyhw.emulator.view import View

if TYPE_CHECKING:
  from tinyhw.emulator.jit.amdgcn.parts import Parts
  from tinyhw.emulator.jit.amdgcn.repeat import Again

Turns = Iterator[Idle | None]
Run = Generator[Idle | None, None, DispatchStats]

ENGINES: Final = ("auto", "ref", "jit", "both")
WATCHDOG: Final = 100_000_000  # instructions of one wave before a dispatch counts as endless
# What interpreting costs, in microseconds: a step of a group of waves, and each wave's share of it.
_STEP: Final = 15.0
_INSTRUCTION: Final = 0.15
_HANDED_BACK: Final = 100.0  # one wave's instruction from compiled code to the reference and back
# What compiling costs: for LLVM at all, and for each instruction of a program.
_LLVM: Final = 40_000.0
_COMPILING: Final = 60.0
_SOON: Final = 0.5  # the part of it after which the compiling process is started
_STALE, _ENDED, _LEFT_OFF = range(3)  # as in `jit.amdgcn.repeat`, which loads with the first compiled program
_BLOCKS_A_LOOK: Final = 256  # how often the first cohort's cost is looked at


def dispatch(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int | None = None, engine: str = "auto",
             observer: Observer | None = None) -> DispatchStats:
  """Run a dispatch with an engine of `ENGINES`; see `tinyhw.emulator.amdgcn.dispatch` for the rest.

  With an observer it is the reference that runs, whatever the engine: compiled code shows nothing of its instructions.
  But under the hazard checks `auto` and `jit` may find by compiled code that there is nothing to be seen. Without
  `watchdog`, a wave may execute WATCHDOG instructions, or OBSERVED.
  """
  running = start(space, arch, d, watchdog=watchdog, engine=engine, observer=observer)
  while True:
    try: idle = next(running)
    except StopIteration as end: return cast(DispatchStats, end.value)
    if idle is not None: raise idle.error()


def start(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int | None = None, engine: str = "auto",
          observer: Observer | None = None, view: View | None = None) -> Run:
  """`dispatch` in turns, for callers with which others change memory meanwhile.

  Yields None after some work, and an `Idle` when no wave can go on until memory changes; to go on is to say that it may
  have. `both` runs each of its two to the end at once. With a view it is the reference that runs, as with an observer.
  """
  if watchdog is None: watchdog = WATCHDOG if observer is None else OBSERVED
  if engine not in ENGINES:
    raise InvalidArgument(f"no engine is called {engine!r}", hint=f"there are {', '.join(ENGINES)}")
  if observer is None and view is None and engine == "both":
    from tinyhw.emulator.engines.both import both
    return both(space, arch, d, watchdog, compiled)
  workgroups = Workgroups(space, arch, d, watchdog, DispatchStats(), observer, view=view)
  if observer is not None and view is None and engine in {"auto", "jit"} and workgroups.left:
    proven = observer.proven(workgroups, WATCHDOG if watchdog == OBSERVED else watchdog, engine == "jit")
    if proven is not None: return proven
  if observer is not None or view is not None or engine == "ref":
    yield from interpreted(workgroups)
  elif engine == "jit": yield from _compiled(workgroups)
  else: yield from _auto(workgroups)
  return workgroups.stats


class Repeated:
  """A dispatch that is run again and again, each time with other user SGPRs: nothing is done twice that only depends on
  the rest. `auto` and `jit` only; what it does and counts is what `start` does."""

  def __init__(self, space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int, engine: str) -> None:
    self._space, self._arch, self._dispatch, self._watchdog, self._engine = space, arch, d, watchdog, engine
    self.again: Again | None = None  # its first state, where compiled code alone ran it the last time
    self._parts: Parts | None = None  # the same of one that has several
    self._alone = False  # the last run was compiled code's alone
    self._begun = False  # `at_once` has begun what `start` goes on with

  def ready(self) -> Again | None:
    """The dispatch as compiled code runs it again, as long as nothing that it was made from has changed."""
    again = self.again
    return again if again is not None and again.stands() else None

  def left(self, again: Again) -> None:
    """Somebody has run it, and not to its end: `start` goes on. Raises what ended it."""
    self.again = None
    again.check()
    self.again, self._begun = again, True

  def at_once(self, user_data: tuple[int, ...]) -> DispatchStats | None:
    """Run it to its end where nothing else is to be done than that; None where `start` has to do it, or what is left.
    """
    again = self.ready()
    if again is None: return None
    self.again = None  # until it is known that nothing was raised
    how = again.run(user_data)
    self.again = again
    if how == _ENDED: return again.stats
    self._begun = how == _LEFT_OFF
    return None

  def start(self, user_data: tuple[int, ...], tick: Callable[[], Callable[[], None] | None]) -> Run:
    """See `start`. `tick` makes the dispatch's, where it is wanted; one that is over at its second look never is."""
    again, self.again = self.again, None
    parts, self._parts = self._parts, None
    begun, self._begun = self._begun, False
    if again is None and parts is None and self._alone: again, parts = self._make(user_data)
    if parts is not None and parts.stands():
      yield from parts.run(user_data, tick())
      if self._note(parts.stats): self._parts = parts
      return parts.stats
    how = _LEFT_OFF if begun else again.run(user_data) if again is not None and again.stands() else _STALE
    if again is None or how == _STALE:
      d = replace(self._dispatch, user_data=user_data, tick=tick())
      stats = yield from start(self._space, self._arch, d, watchdog=self._watchdog, engine=self._engine)
      self._note(stats)
      return stats
    if how == _ENDED:
      yield None
      self.again = again
      return again.stats
    stats, turns = again.rest(tick())
    yield from turns
    if self._note(stats): self.again = again
    return stats

  def _note(self, stats: DispatchStats) -> bool:
    if stats.engine != "jit": return False
    from tinyhw.emulator.jit.amdgcn.repeat import alone
    self._alone = alone(stats)
    return self._alone

  def _make(self, user_data: tuple[int, ...]) -> tuple[Again | None, Parts | None]:
    """The dispatch made ready, in one piece or in parts."""
    from tinyhw.emulator.jit.amdgcn.parts import Parts
    from tinyhw.emulator.jit.amdgcn.repeat import Again, routine
    from tinyhw.emulator.jit.memory import Memory
    again = routine()
    if again is None: return None, None
    d = replace(self._dispatch, user_data=user_data)
    workgroups = Workgroups(self._space, self._arch, d, self._watchdog, DispatchStats())
    if Again.fits(workgroups): return Again(workgroups, Memory(self._space), again), None
    return None, Parts(workgroups, Memory(self._space), again) if Parts.fits(workgroups) else None


def _auto(workgroups: Workgroups) -> Turns:
  """Interpret until the program has cost, or the rest of the launch would cost, about as much as compiling does.

  Compiled code then takes the waves over where they stand. What is chosen depends on counts alone, not on time.
  """
  if not workgroups.left: return
  _spread(workgroups)
  stats, schedule = workgroups.stats, Schedule(workgroups)
  program, first = workgroups.program, schedule.begin()
  here, total, before = len(first.live), workgroups.total, program.spent
  vgprs, price = len(first.runnable[0].v), _price(program)
  while first in schedule.running and not first.idle and 0 <= before + _cost(stats) < price:
    schedule.turn(first, _BLOCKS_A_LOOK)
    price = _price(program)
    if before + _cost(stats) > price * _SOON: _expect_to_compile()
  waits = first.idle and first in schedule.running
  expected = before + _cost(stats) / (total if first in schedule.running else here) * total
  turns, compiles = schedule.turns(), expected >= price and _compiles(first, vgprs)
  while not compiles:  # that expectation may be wrong where workgroups wait for one another
    try: idle = next(turns)
    except StopIteration:
      program.spent = before + _cost(stats)
      return
    waits = waits or bool(schedule.running)
    yield idle
    if waits and program.spent >= 0 and before + _cost(stats) >= _price(program): compiles = _compiles(first, vgprs)
  interpreted = stats.instructions
  program.spent = before + _cost(stats)
  from tinyhw.emulator.jit.amdgcn.launch import CompiledDispatch
  yield from CompiledDispatch(workgroups, schedule.running).turns()
  # a program that compiled code keeps handing back to the reference is better interpreted as a whole
  handed_back = sum(stats.interpreted.values()) * _HANDED_BACK
  if handed_back > (stats.instructions - interpreted) * _INSTRUCTION: program.spent = -float("inf")


def _spread(workgroups: Workgroups) -> None:
  if workgroups.program.compiled:
    from tinyhw.emulator.jit.amdgcn.launch import spread
    spread(workgroups)


def _compiles(cohort: Cohort, vgprs: int) -> bool:
  """Have the program compiled; a program that LLVM refuses is interpreted from then on. So is one that is still to be
  compiled when the interpreter ends: it begins no threads and processes any more."""
  program = cast(AmdgcnProgram, cohort.program)  # amdgcn's cohorts have no other
  if not program.compiled and not threading.main_thread().is_alive(): return False
  from tinyhw.emulator.jit.amdgcn.run import code_for
  from tinyhw.emulator.jit.refusal import NotCompiled, TranslatorFailed
  try: code_for(cohort, vgprs)
  except NotCompiled as refused:
    program.spent = -float("inf")
    if isinstance(refused, TranslatorFailed): cohort.stats.interpreted[str(refused)] = cohort.stats.waves
    return False
  return True


def _expect_to_compile() -> None:
  if not threading.main_thread().is_alive(): return
  from tinyhw.emulator.jit.servers import expect
  expect()


def _cost(stats: DispatchStats) -> float: return stats.steps * _STEP + stats.instructions * _INSTRUCTION


def _price(program: AmdgcnProgram) -> float: return _LLVM + program.size * _COMPILING


def _compiled(workgroups: Workgroups) -> Turns:
  """Run a dispatch with compiled code; LLVM loads with the first one. A program that it refuses is interpreted."""
  from tinyhw.emulator.jit.amdgcn.launch import CompiledDispatch
  from tinyhw.emulator.jit.refusal import NotCompiled
  stats = workgroups.stats
  schedule = Schedule(workgroups)
  if not workgroups.left: return
  _spread(workgroups)
  cohort = schedule.begin()
  try: yield from CompiledDispatch(workgroups, [cohort]).turns()
  except NotCompiled as refused:
    yield from schedule.turns()
    stats.interpreted[str(refused)] = stats.waves


def compiled(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int, **more: Any) -> DispatchStats:
  """Run a dispatch with compiled code, or interpret a program that LLVM refuses."""
  from tinyhw.emulator.jit.amdgcn.launch import dispatch as run
  from tinyhw.emulator.jit.refusal import NotCompiled
  try: return run(space, arch, d, watchdog=watchdog, **more)
  except NotCompiled as refused:
    stats = interpret(space, arch, d, watchdog=watchdog)
    stats.interpreted[str(refused)] = stats.waves
    return stats
