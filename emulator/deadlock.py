"""Whether waves only wait: they come back to where they were, and memory is what it was (`simt.Changes`).

Waves take turns by what changes. Every change of memory counts; atomics and, once workgroups wait,
stores count only where bytes differ. A cohort whose state comes back with the count as it was
waits, and is passed over until the count moves (`schedule.py`). When all wait, the dispatch stands,
and who runs it decides what that means: `engines.dispatch` tells a deadlock, the mock lets other
queues and the host go on. Compiled code only suspects (`_watch` of `jit/amdgcn/run.py`) and gives
its waves back to the reference, which proves it. A dispatch is a generator for this: it can stand
and go on without a thread of its own.
"""
from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from operator import is_
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Cohort, Group

from tinyhw.emulator.values.ops import Array as Value

FIRST_LOOK: Final = 16  # laps of one jump in which a cohort is first held against its earlier states
LONGEST_LOOK: Final = 1024
BETWEEN: Final = 4  # laps of a look for each lap between it and the next


class Look:
  """Holds a cohort against its earlier states, lap by lap, to notice that its waves only wait.

  A state is kept and compared with later ones; the kept one is renewed at powers of two (Brent's way to find a cycle).
  Between looks, which become longer, groups run long laps, so that loops that get on pay next to nothing.
  """

  def __init__(self) -> None:
    self.idle = -1  # what `Changes.count` was when the waves were found to wait
    self._length = FIRST_LOOK
    self._left = -FIRST_LOOK // BETWEEN  # laps that are left of the look, or less than 0 of the time before it
    self._kept: State | None = None
    self._age, self._renew = 0, 1

  def __deepcopy__(self, memo: object) -> Look: return copy(self)  # the kept state never changes

  def at(self, cohort: Cohort) -> bool:
    """Called between two laps. Whether the cohort is idle."""
    if self._left < 0:
      self._left += 1
      if self._left < 0 and cohort.observer is None: return False
      self._left, self._kept, self._renew, cohort.looking = self._length, None, 1, True
    count, kept = cohort.changes.count, self._kept
    if kept is not None and kept.changes == count and kept.same(cohort):
      self.idle = count
      self._left, self._length = FIRST_LOOK, FIRST_LOOK  # it is likely to wait again
      return True
    self._age += 1
    if kept is None or kept.changes != count or self._age == self._renew:
      self._renew = self._renew * 2 if kept is not None and kept.changes == count else 1
      self._kept, self._age = State(cohort), 0
    self._left -= 1
    if self._left <= 0 and cohort.observer is not None: self._left = 1  # beside what is watched, looking costs nothing
    elif self._left <= 0:
      self._left, cohort.looking = -self._length // BETWEEN, False
      self._length = min(self._length * 2, LONGEST_LOOK)
    return False


class State:
  """All that decides what the waves of a cohort do next, but memory, whose changes are counted.

  Values of registers are never changed in place, so that keeping them costs next to nothing.
  """

  def __init__(self, cohort: Cohort) -> None:
    self.changes = cohort.changes.count
    self._arrived, self._passed = cohort.arrived.copy(), None if cohort.passed is None else cohort.passed.copy()
    self._groups = [self._of(g) for g in _by_wave(cohort.runnable)]
    self._parked = [self._of(g) for g in _by_wave(cohort.parked)]

  @staticmethod
  def _of(g: Group) -> tuple[Any, ...]: return g.pc, g.mode, g.waves, g.scc, g.mask, [*g.s], [*g.v], g.outer()

  def same(self, cohort: Cohort) -> bool:
    """Whether the cohort is in this state."""
    return (len(self._groups) == len(cohort.runnable) and len(self._parked) == len(cohort.parked)
            and all(map(_at, self._groups, _by_wave(cohort.runnable)))
            and all(map(_at, self._parked, _by_wave(cohort.parked)))
            and _equal(self._arrived, cohort.arrived) and _equal(self._passed, cohort.passed))


def _by_wave(groups: Sequence[Group]) -> Sequence[Group]:
  return groups if len(groups) < 2 else sorted(groups, key=lambda g: int(g.waves[0]))


def _at(kept: tuple[Any, ...], g: Group) -> bool:
  pc, mode, waves, scc, mask, s, v, outer = kept
  return (pc == g.pc and mode == g.mode and _equal(scc, g.scc) and len(v) == len(g.v) and _alike(s, g.s)
          and bool(_equal(waves, g.waves)) and _equal(mask, g.mask) and _alike(v, g.v)
          and len(outer) == len(now := g.outer()) and _alike(outer, now))


def _alike(a: Sequence[Value | None], b: Sequence[Value | None]) -> bool:
  """Whether lists of values, most of which are the same object, are equal."""
  if all(map(is_, a, b)): return True
  return all(x is y or _equal(x, y) for x, y in zip(a, b))


def _equal(a: Value | None, b: Value | None) -> bool:
  """Equality of two values, bit by bit."""
  if a is b: return True
  if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype: return False
  return bool(a.tobytes() == b.tobytes())
