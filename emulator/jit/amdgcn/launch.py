"""Runs dispatches with compiled code: cohorts in turns, in threads where they are independent.

Waves that seem to wait for one another go back to the reference, which finds out whether they do.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Final

from tinyhw.arch import Arch
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn.launch import Dispatch, DispatchStats, Workgroups
from tinyhw.emulator.jit.amdgcn import threads
from tinyhw.emulator.jit.amdgcn.run import Code, Waves
from tinyhw.emulator.jit.amdgcn.state import STATUS
from tinyhw.emulator.jit.amdgcn.translate import EACH, EACH_HOT, END, LAST
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.schedule import Idle, Schedule, ended
from tinyhw.emulator.simt import Cohort
from tinyhw.emulator.values.ops import Array as Value

Last = dict[int, tuple[Value, Value, bool]]  # by a wave's number: u32 [scalars], u32 [vectors, lanes], SCC
Traced = tuple[int, int, Value, Value, bool]
PATIENCE: Final = 10_000  # passes in which a traced wave may wait for others
PARTS: Final = 4  # cohorts of each thread, at least
CHECKING: Final = 4  # turns of each cohort in which the reference finds out whether its waves wait


def dispatch(space: AddressSpace, arch: Arch, d: Dispatch, *, watchdog: int = 100_000_000,
             last: Last | None = None) -> DispatchStats:
  """Run a dispatch to its end with compiled code. Raises what the reference's `dispatch` raises.

  `last` gets the scalars, vectors and SCC of each wave as it ends; waves then run in one thread.
  """
  workgroups = Workgroups(space, arch, d, watchdog, DispatchStats())
  ended(CompiledDispatch(workgroups, last=last).turns())
  return workgroups.stats


def trace(space: AddressSpace, arch: Arch, d: Dispatch, watchdog: int, wave: int,
          hot: bool) -> Iterator[Traced]:
  """Run a dispatch with code of single instructions, made quickly or as hot code is.

  One wave is shown as (count, PC, scalars, vectors, SCC) before each. Instructions that the reference helps with are
  not seen by themselves. Ends with the wave, or with an error.
  """
  workgroups = Workgroups(space, arch, d, watchdog, DispatchStats())
  memory = Memory(space)
  while workgroups.left:
    waves = Waves(workgroups.begin(workgroups.usual), memory, detail=EACH_HOT if hot else EACH)
    row, seen, idle = wave - waves.cohort.first, -1, 0
    if not 0 <= row < waves.size:
      waves.run()
      continue
    while waves.states[row, STATUS] != END and idle < PATIENCE:
      count = int(waves.executed[row])
      if count != seen: yield count, waves.where(row)[0], *waves.registers(row)
      idle, seen = 0 if count != seen else idle + 1, count
      waves.run(0)
    return


def spread(workgroups: Workgroups) -> None:
  """Have fewer workgroups begin together, so that all threads get some from the first on, where earlier runs showed
  that this pays."""
  w, n = workgroups, threads.count()
  cost = cost_alone(w)
  if n > 1 and cost and cost >= threads.WORTH and w.total >= PARTS * n:
    w.spread, w.usual = True, min(w.usual, w.total // (PARTS * n))


def cost_alone(w: Workgroups) -> float | None:
  """What earlier runs say that all waves cost (instructions by weight), where workgroups may run in any order."""
  costs = [code.cost for code in w.program.compiled.values() if isinstance(code, Code) and code.form.alone]
  return max(costs) * w.waves if costs and not w.dispatch.scratch_size else None


class CompiledDispatch:
  """A dispatch in compiled code: the cohorts in threads, and those that have had a turn and have not ended.

  `cohorts` have begun in the reference and go on where they stand; `entered` are those whose waves compiled code has
  run once, with what it granted these, `running` those that have had a whole turn.
  """

  def __init__(self, workgroups: Workgroups, cohorts: Sequence[Cohort] = (), last: Last | None = None,
               entered: Sequence[tuple[Waves, Value]] = (), running: Sequence[Waves] = ()) -> None:
    self.workgroups, self.stats, self._last, self._entered = workgroups, workgroups.stats, last, entered
    self._cohorts = [*cohorts]
    self._running = [*running]
    self._scratch = bool(workgroups.dispatch.scratch_size)
    self._threads = 0  # how many; 0 until it is known that threads pay
    self._turns: deque[tuple[Waves, Future[bool]]] = deque()
    self._memory: Memory | None = None
    self._states: list[Value] = []
    self._patience, self._quiet = 1, 0

  def _room(self) -> int:
    """For how many workgroups there is room; those in threads count as a whole."""
    return (self.workgroups.places - sum(w.held() for w in self._running)
            - sum(len(w.cohort.live) for w, _ in self._turns))

  def turns(self) -> Iterator[Idle | None]:
    """As `Schedule.turns`.

    Raises NotCompiled before anything is done for a program that is refused; once waves run, the reference helps out.
    """
    w, part = self.workgroups, False
    for waves, granted in self._entered:
      self._ended(waves, waves.resume(granted))
      yield None
    while True:
      while self._cohorts or w.left and self._fits(part):
        cohort = self._cohorts.pop(0) if self._cohorts else w.begin(self._room())
        try: waves = self._waves(cohort)
        except NotCompiled:  # of later ones, those that have another number of registers or lanes
          if self.stats.engine != "jit": raise
          self.settle(0)
          yield from Schedule(w, [*(r.back() for r in self._running), cohort, *self._cohorts]).turns()
          return
        self.stats.engine = "jit"
        self._begin(waves)
        if not self._turns: yield None  # nobody else may see or end what threads are about
      self.settle(0)
      if not self._running:
        if w.left: continue
        return
      before = len(self._running)
      for waves in [*self._running]:
        if self._again(waves): self._running.remove(waves)
        yield None
      part = len(self._running) == before
      self._quiet = self._quiet + 1 if self._running and all(r.quiet for r in self._running) else 0
      if self._quiet >= self._patience and not (w.left and self._room() > 0): yield from self._wait()

  def _fits(self, part: bool) -> bool:
    """Whether new workgroups can begin: as many as usual, or with `part` any."""
    w = self.workgroups
    enough = 1 if part else min(w.usual, w.left)
    if self._turns and self._room() < enough: self.settle(0)
    return self._room() >= enough

  def _wait(self) -> Iterator[Idle | None]:
    """All waves seem to wait. The reference finds out whether they do; then compiled code goes on."""
    schedule, self._quiet = Schedule(self.workgroups, [r.back() for r in self._running]), 0
    self._running = []
    self._patience *= 2
    changes = self.workgroups.changes
    changes.count, changes.exact = changes.count + 1, True  # what compiled code changed was not counted
    for turn, idle in enumerate(schedule.turns()):
      if idle is not None:
        self._patience = 1
        yield idle
      if idle is not None or turn > CHECKING * (len(schedule.running) + 1): break
    self._cohorts = schedule.running

  def _waves(self, cohort: Cohort) -> Waves:
    """The waves of a cohort, ready to run."""
    if self._memory is None: self._memory = Memory(cohort.space)
    detail = 0 if self._last is None else LAST
    return Waves(cohort, self._memory, self._states.pop() if self._states else None, detail)

  def _begin(self, waves: Waves) -> None:
    """Give new waves their first turn, here or in a thread."""
    if self._threads:
      self._turns.append((waves, threads.pool().submit(waves.run)))
      return self.settle(2 * self._threads)
    alone = waves.form.alone and not self._scratch and self._last is None and threads.count() > 1
    if alone and self.workgroups.spread:
      self._threads = threads.count()
      return self._begin(waves)
    ended = waves.run()
    expected = waves.instructions * waves.form.weight // len(waves.cohort.live) * self.workgroups.left
    self._ended(waves, ended)
    if alone and ended and expected >= threads.WORTH: self._threads = threads.count()

  def settle(self, limit: int) -> None:
    """Wait until at most `limit` turns are out in threads. Raises the error of the first cohort that has one."""
    try:
      while len(self._turns) > limit:
        waves, turn = self._turns.popleft()
        self._ended(waves, turn.result())
    except BaseException:
      for _, turn in self._turns: turn.cancel()
      wait([turn for _, turn in self._turns])  # they use memory that the caller may give back
      raise

  def _again(self, waves: Waves) -> bool:
    ended = waves.run()
    waves.account(self.stats)
    if ended: self._keep(waves)
    return ended

  def _keep(self, waves: Waves) -> None:
    if self._last is None: return
    for row, number in enumerate(waves.numbers): self._last[int(number)] = waves.registers(row)

  def _ended(self, waves: Waves, ended: bool) -> None:
    """Take note of a first turn."""
    waves.account(self.stats)
    if ended: self._keep(waves)
    if not ended: self._running.append(waves)
    elif len(self._states) <= self._threads: self._states.append(waves.raw)
