"""A dispatch of many workgroups that compiled code ran to its end, made ready to run again: `repeat.py` for each part.

Its parts are the cohorts that `launch.py` would make, of workgroups that cannot wait for each other. In threads each
takes the next part; in one thread every part is a turn. The memory of registers is a thread's: only waves that have not
ended keep it.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn.launch import Workgroups
from tinyhw.emulator.jit.amdgcn import threads
from tinyhw.emulator.jit.amdgcn.launch import CompiledDispatch, cost_alone, spread
from tinyhw.emulator.jit.amdgcn.repeat import ENDED, Again, Run
from tinyhw.emulator.jit.amdgcn.run import aligned
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.routine import Routine
from tinyhw.emulator.schedule import Idle

WAVES: Final = 1 << 14  # of a dispatch that is kept, at most
LDS: Final = 1 << 20  # bytes, of all its workgroups; so much is kept for each dispatch
MORE: Final = 16  # parts of each thread, where there are several: one more costs microseconds
_mine = threading.local()  # its `raw` is a thread's memory of registers
Tick = Callable[[], None] | None


class Parts:
  """See the module. After a run, `stats` are its statistics."""

  def __init__(self, workgroups: Workgroups, memory: Memory, again: Routine) -> None:
    self._workgroups = workgroups
    self._threads = n = threads.count() if workgroups.spread else 1
    if n > 1: workgroups.usual = max(1, min(workgroups.usual, workgroups.total // (MORE * n)))
    raw, self._parts = None, list[Again]()
    while workgroups.left:
      self._parts.append(Again(workgroups, memory, again, raw))
      raw = self._parts[-1].waves.raw
    self._dwords = max(part.waves.states.size for part in self._parts)

  @staticmethod
  def fits(workgroups: Workgroups) -> bool:
    """Whether its workgroups may run in any order, and what tells them apart is little enough to be kept."""
    w = workgroups
    if not w.left or w.waves > WAVES or w.total * w.dispatch.lds_size > LDS: return False
    cost = cost_alone(w)
    if cost is None: return False
    spread(w)
    return w.spread or threads.count() == 1 or cost < threads.WORTH

  def stands(self) -> bool:
    """Whether the mappings, the compiled form and the code are what this was made from."""
    if not all(part.stands() for part in self._parts) or not self._parts[0].same_code(): return False
    for part in self._parts: part.trust()
    return True

  def run(self, user_data: tuple[int, ...], tick: Tick) -> Iterator[Idle | None]:
    """Run the dispatch in turns. Raises what its waves raise, and what `tick` does."""
    w = self._workgroups
    run = self._run = Run(w, user_data, tick)
    self.stats, self._user_data, self._numbers = run.stats, user_data, count()
    self._had: dict[int, bool | Error] = {}  # by a part's number: whether it ran to its end at once, or what it raised
    self._stops = False
    if self._threads == 1:
      while self._next(tick): yield None
    else:
      helpers = [threads.pool().submit(self._help) for _ in range(min(self._threads, len(self._parts)) - 1)]
      try:
        while self._next(tick): pass
      finally:
        self._stops = True
        for helper in helpers: helper.result()
    had = len(self._had)  # parts are taken in order
    running = []
    for part, how in zip(self._parts, (self._had[k] for k in range(had))):
      if isinstance(how, Error): raise how
      run.stats.waves += part.waves.size
      if how:
        run.stats.instructions += part.executed()
        part.code.ran(part.executed())
      else:
        part.waves.account(run.stats)
        if part.waves.cohort.left: running.append(part.waves)
    w.left = w.total - self._parts[had].begun if had < len(self._parts) else 0
    yield from CompiledDispatch(w, running=running).turns()

  def _help(self) -> None:
    while self._next(None): pass

  def _next(self, tick: Tick) -> bool:
    """Run the next part, where there is one; whether there was. Parts that do not end are the last."""
    if self._stops: return False
    if tick is not None: tick()
    number = next(self._numbers)
    if number >= len(self._parts): return False
    try: self._had[number] = self._enter(self._parts[number])
    except Error as error: self._had[number], self._stops = error, True
    return True

  def _enter(self, part: Again) -> bool:
    """Run a part, through barriers and what the reference does; whether compiled code ran it to its end at once."""
    raw = getattr(_mine, "raw", None)
    if raw is None or raw.size < self._dwords: raw = _mine.raw = aligned((1, self._dwords))[0]
    if part.waves.raw is not raw: part.use(raw)
    if part.enter(self._user_data) == ENDED: return True
    waves, granted = part.go_on(self._run)
    part.check()
    if not waves.resume(granted):
      self._stops = True
      del _mine.raw  # they go on with it
    return False
