"""Warps at one PC, of which each may have other threads there: what a divergent branch parts, and what meets again.

A warp may be part of several groups, with disjoint masks. In a group only its own lanes of a warp count: a register's
other lanes hold anything, so that writing needs no mask; when groups meet, each lane's value comes from its group.

Groups are `simt`'s cohorts: a group is some warps at one PC with a mask. Values are taken over,
when groups meet, for registers that are still alive. The order of PCs (`module/flow.py`) has groups
meet at the immediate post-dominator at the latest.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from tinyhw.core.errors import DeviceError, MachineFault
from tinyhw.emulator.simt import NOBODY, Barrier, Cohort, End, Group, Next, Wait, Yield
from tinyhw.emulator.values.ops import FALSE, I64, U64
from tinyhw.emulator.values.ops import Array as Value

LANES = 32
LONG_LAP = 4096  # how many instructions a group may execute in a lap in which it parts, or waits
_BITS = np.uint32(1) << np.arange(LANES, dtype=np.uint32)[None, :]
JUMPS = 256  # how often a group may jump back while other threads of its cohort wait further on


def lanes_of(bits: Value) -> Value:
  """u32 of each warp, or each thread, as bools [.., 32]."""
  bits = np.asarray(bits)
  if bits.ndim == 0: return (bits & _BITS) != 0
  return (bits[:, :1] & _BITS) != 0


class Diverge:
  """Threads of the group go different ways: `ways` are (pc, lanes that go there), lanes as bools of any form. In the
  place of a PC may be what brings a group of its own there: `enter(group)` gives the PC."""
  def __init__(self, ways: Sequence[tuple[int | Callable[[Warps], int], Value]]) -> None: self.ways = ways

  def parts(self, group: Warps) -> list[Warps]:
    """The groups that it becomes."""
    out = []
    for pc, lanes in self.ways:
      lanes = np.broadcast_to(lanes, (group.size, LANES)) & group.lanes
      some = lanes.any(axis=1)
      if not some.any(): continue
      index = None if some.all() else np.flatnonzero(some)
      part = group.part(index, lanes if index is None else lanes[index], pc if isinstance(pc, int) else group.pc)
      if not isinstance(pc, int): part.pc = pc(part)
      out.append(part)
    return out


class Late(Diverge):
  """Warps that are `ready` (bools) go on at `pc`; the others come back to where they are when others have had a lap."""
  def __init__(self, pc: int, ready: Value) -> None: self.pc, self.ready = pc, ready

  def parts(self, group: Warps) -> list[Warps]:
    go, stay = group.take(np.flatnonzero(self.ready)), group.take(np.flatnonzero(~self.ready))
    go.pc, stay.lap = self.pc, group.cohort.lap + 1
    return [go, stay]


class Onward:
  """The group goes on at `pc` in another function, where it may meet others, or has to let them run."""
  def __init__(self, pc: int) -> None: self.pc = pc


class Meet:
  """Warps wait at `pc` until their threads in `lanes` (bools) are all there; those that were complete are `done`."""
  def __init__(self, pc: int, lanes: Value, done: Warps | None, rest: Value) -> None:
    self.pc, self.lanes, self.done, self.rest = pc, lanes, done, rest


class Arrive:
  """Threads are at barrier `number` (one for each warp): `expected` threads of it, 0 for all; `waits` for the others,
  and go on at `pc`. `votes` are the operands of a reduction, whose results `finish(group, sum, all)` takes."""
  at = 0  # the barrier's own PC

  def __init__(self, pc: int, number: Value, expected: Value, waits: bool, votes: Value | None = None,
               finish: Callable[[Warps, Value, Value], None] | None = None) -> None:
    self.pc, self.number, self.expected, self.waits = pc, number, expected, waits
    self.votes, self.finish = votes, finish


class Together:
  """Threads wait for those of the other blocks of their cluster, and go on at `pc`."""
  at = 0  # the barrier's own PC

  def __init__(self, pc: int) -> None: self.pc = pc


class Frame:
  """A function that has called: its registers, where it goes on, where its variables are on the stack, and what takes
  the results when the called one returns: `finish(group, its base, its registers)`."""
  __slots__ = ("base", "finish", "live", "pc", "top", "v")

  def __init__(self, pc: int, v: list[Value], base: int, live: tuple[int, ...], top: Value | None,
               finish: Callable[[Warps, int, list[Value]], None]) -> None:
    self.pc, self.v, self.base, self.live, self.top, self.finish = pc, v, base, live, top, finish

  def changed(self, v: list[Value], top: Value | None) -> Frame:
    """The same with other values."""
    return Frame(self.pc, v, self.base, self.live, top, self.finish)


@overload
def rows_of(x: Value, index: Value | None, size: int) -> Value: ...
@overload
def rows_of(x: Value | None, index: Value | None, size: int) -> Value | None: ...
def rows_of(x: Value | None, index: Value | None, size: int) -> Value | None:
  """A value of some of `size` warps."""
  if x is None or index is None or x.ndim != 2 or x.shape[0] != size or size == 1: return x
  return x[index]


def blended(x: Value, y: Value, a: Value, b: Value, size: int, lanes: Value) -> Value:
  """A value of `size` warps whose rows `a` come from x and whose lanes of rows `b`, as far as `lanes` says, from y."""
  if x.dtype != y.dtype: y = y.view(x.dtype) if y.dtype.itemsize == x.dtype.itemsize else y.astype(x.dtype)
  if x.ndim == 0 and y.ndim == 0 and x.tobytes() == y.tobytes(): return x
  out = np.zeros((size, LANES), x.dtype)
  out[a] = x
  if b is a or len(b) == size: np.copyto(out, np.broadcast_to(y, (size, LANES)), where=lanes)
  else: out[b] = np.where(lanes, y, out[b])
  return out


class Warps(Group):
  """See the module. `live` says which registers still count where the group is, `base` where its function's variables
  are on the stack of each thread, `frames` the functions that have called it, `top` the end of its stack."""
  __slots__ = ("base", "carry", "frames", "since", "top")

  cohort: Blocks

  def __init__(self, cohort: Blocks, size: int, pc: int, registers: list[Value]) -> None:
    super().__init__(cohort, size, pc, 0, 0)
    self.v = registers
    self.base, self.frames = 0, tuple[Frame, ...]()
    self.top: Value | None = None  # end of the frame where alloca has moved it, u64
    self.carry: Value = FALSE  # CC.CF of add.cc
    self.since = 0  # `count` when its lap began

  @property
  def lanes(self) -> Value:
    """Which lanes are in the group [waves, lanes]."""
    return np.broadcast_to(np.True_ if self.mask is None else self.mask, (self.size, LANES))

  def part(self, index: Value | None, mask: Value, pc: int) -> Warps:
    """A group at `pc` of some warps (None for all) with the lanes of `mask`, [of those warps, lanes]."""
    other = Warps.__new__(Warps)
    if index is None or len(index) == self.size: index = None
    everyone, size, program = index is None, self.size, self.cohort.program
    n = size if index is None else len(index)
    for name in ("cohort", "space", "mode", "count", "lap", "base", "s", "scc", "scratch", "since"):
      setattr(other, name, getattr(self, name))
    other.size, other.pc, other.bools, other.pairs = n, pc, {}, {}

    def picked(values: list[Value], at: int, live: Sequence[int]) -> list[Value]:
      if everyone: return [*values]
      out: list[Value] = program.blank(at)
      for k in live: out[k] = rows_of(values[k], index, size)
      return out
    other.v = picked(self.v, pc, program.live(pc))
    other.frames = self.frames if everyone else tuple(
      f.changed(picked(f.v, f.pc, f.live), rows_of(f.top, index, size)) for f in self.frames)
    other.top = self.top if everyone else rows_of(self.top, index, size)
    other.carry = self.carry if everyone else rows_of(self.carry, index, size)
    other.waves, other.workgroups = (self.waves, self.workgroups) if index is None else (
      self.waves[index], self.workgroups[index])
    other.mask = None if mask.all() else mask
    return other

  def take(self, index: Value) -> Warps: return self.part(index, self.lanes[index], self.pc)

  def outer(self) -> list[Value | None]:
    out: list[Value | None] = [self.carry, self.top, I64.type(self.base)]
    for f in self.frames: out += [I64.type(f.pc), I64.type(f.base), f.top, *f.v]
    return out

  def alike(self, other: Group) -> bool:
    assert isinstance(other, Warps)
    return (self.base == other.base and len(self.frames) == len(other.frames) and len(self.v) == len(other.v)
            and all(f.pc == g.pc and f.base == g.base for f, g in zip(self.frames, other.frames)))

  def join(self, other: Group) -> None:
    """Take the other group's threads in; both stand at one PC and are alike."""
    assert isinstance(other, Warps)
    mine, yours = self.lanes, other.lanes
    same = self.waves is other.waves or np.array_equal(self.waves, other.waves)
    waves = self.waves if same else np.union1d(self.waves, other.waves)
    n = len(waves)
    a = np.arange(n) if same else np.searchsorted(waves, self.waves)
    b = a if same else np.searchsorted(waves, other.waves)
    def both(x: Value, y: Value) -> Value:
      if x is y and (same or x.ndim == 0 or x.shape[0] == 1): return x
      return blended(x, y, a, b, n, yours)

    def all_of(x: list[Value], y: list[Value], pc: int, live: Sequence[int]) -> list[Value]:
      out = [*x] if same else self.cohort.program.blank(pc)
      for k in live: out[k] = both(x[k], y[k])
      return out
    self.v = all_of(self.v, other.v, self.pc, self.cohort.program.live(self.pc))
    def tops(x: Value | None, y: Value | None) -> Value | None:
      if x is None and y is None: return None
      return both(U64.type(0) if x is None else x, U64.type(0) if y is None else y)
    self.frames = tuple(f.changed(all_of(f.v, g.v, f.pc, f.live), tops(f.top, g.top))
                        for f, g in zip(self.frames, other.frames))
    self.top = tops(self.top, other.top)
    self.carry = both(self.carry, other.carry)
    mask = np.zeros((n, LANES), bool)
    mask[a] = mine
    if b is a: mask |= yours
    else: mask[b] |= yours
    self.mask = None if mask.all() else mask
    if not same:
      workgroups = np.zeros(n, self.workgroups.dtype)
      workgroups[a], workgroups[b] = self.workgroups, other.workgroups
      self.waves, self.workgroups, self.size = waves, workgroups, n
    self.count, self.lap = max(self.count, other.count), max(self.lap, other.lap)
    self.since = max(self.since, other.since)


class _Ahead(set[int]):
  """The PCs of other groups; a group that gets to one of them, or past the lowest, lets the others run."""

  def __init__(self, pcs: set[int]) -> None:
    super().__init__(pcs)
    self.lowest = min(pcs)

  def __contains__(self, pc: object) -> bool: return isinstance(pc, int) and pc >= self.lowest


def warps(group: Group) -> Warps:
  """A group of a cohort of blocks as what it is, for those who are shown groups of any vendor."""
  assert isinstance(group, Warps)
  return group


class Blocks(Cohort):
  """Thread blocks that began together. `alive` are the threads that have not ended [waves, lanes]."""

  jumps_a_lap = JUMPS
  program: Any

  def __init__(self, *arguments: Any) -> None:
    super().__init__(*arguments)
    self.alive_lanes = NOBODY
    self.local: Any = None  # the stacks of the threads: memory.Local
    self.threads = NOBODY  # of each block that have not ended
    self.waiting: list[tuple[Warps, Any]] = []  # with what they wait for
    self.barriers: dict[tuple[int, int], list[Any]] = {}  # (block, number) -> threads arrived, expected, votes
    self.clusters: Any = None  # the barriers of its clusters: cluster.Barriers
    self.cancel: Callable[[], tuple[int, int, int] | None]  # of the next cluster that has not begun
    self.tensor: Any = None  # tensor memory of its blocks: tmem.TensorMemory
    self.committed: Value | None = None  # groups of products that each warp has committed; None: there were none

  def begin(self, group: Warps) -> None:
    """Add the first group, which holds every thread."""
    self.start(group)
    self.alive_lanes = np.array(group.lanes)
    self.threads = np.zeros(len(self.live), np.int64)
    np.add.at(self.threads, group.workgroups, self.alive_lanes.sum(axis=1))

  def shown(self, pc: int) -> int: return pc & ~1  # behind its guard an instruction has an odd one

  def order(self, group: Group) -> Any:
    assert isinstance(group, Warps)
    return group.lap, -len(group.frames), group.pc

  def meeting(self, group: Group) -> set[int] | None:
    assert isinstance(group, Warps)
    depth = len(group.frames)
    pcs = {g.pc for g in self.runnable if isinstance(g, Warps) and g.lap <= group.lap and len(g.frames) == depth}
    return _Ahead(pcs) if pcs else set() if self.runnable else None

  def row(self, group: Group) -> Value:
    """Where the group's warps are in arrays of all warps."""
    return group.waves - self.first

  def leave(self, group: Group, after: Next | Diverge | Onward | Meet | Arrive | Together) -> None:
    assert isinstance(group, Warps)
    if group.count - group.since > LONG_LAP: group.lap, group.since = self.lap + 1, group.count
    if isinstance(after, Diverge): self._diverge(group, after)
    elif isinstance(after, Onward):
      if group.count > self.watchdog: self.expired(group)
      group.pc = after.pc
      self._meet(group)
    elif isinstance(after, Meet): self._wait(group, after)
    elif isinstance(after, Arrive): self._arrive(group, after)
    elif isinstance(after, Together):
      after.at, group.pc = group.pc, after.pc
      self.waiting.append((group, after))
    elif isinstance(after, End): self._end(group)
    else:
      assert isinstance(after, (Yield, Barrier, Wait))
      super().leave(group, after)

  def _diverge(self, group: Warps, after: Diverge) -> None:
    if group.count > self.watchdog: self.expired(group)
    for part in after.parts(group): self._meet(part)

  def _end(self, group: Warps) -> None:
    if self.observer is not None: self.observer.ended(group)
    gone = group.lanes
    np.subtract.at(self.threads, group.workgroups, gone.sum(axis=1))
    at = self.row(group)
    self.alive_lanes[at] &= ~gone
    ended = ~self.alive_lanes[at].any(axis=1)
    self.left -= int(ended.sum())
    np.subtract.at(self.live, group.workgroups[ended], 1)
    if self.tensor is not None: self.tensor.check({*group.workgroups[ended].tolist()} - {*np.flatnonzero(self.threads)})
    if self.clusters is not None: self.clusters.complete(self)
    if self.waiting: self.look_again()

  # ---- warps that wait for threads of their own

  def complete_warps(self, group: Warps, members: Value) -> Value:
    """Which of the group's warps have all threads of `members` [waves, lanes] that still live [waves]."""
    wanted = np.broadcast_to(members, (group.size, LANES)) & self.alive_lanes[self.row(group)]
    return ~np.logical_or.reduce(wanted & ~group.lanes, axis=1)

  def _wait(self, group: Warps, after: Meet) -> None:
    if after.done is not None: self._meet(after.done)
    if after.rest is not None: group = group.take(after.rest)
    group.pc = after.pc
    for k, (other, what) in enumerate(self.waiting):
      if isinstance(what, Meet) and what.pc == after.pc and other.alike(group):
        del self.waiting[k]
        other.join(group)
        other.lap = max(other.lap, self.lap)
        self.runnable.append(other)
        return
    self.waiting.append((group, after))

  def look_again(self) -> None:
    """Threads have ended, or a cluster's barrier is complete: others may have waited for it."""
    waiting, self.waiting = self.waiting, []
    for group, what in waiting:
      if isinstance(what, Meet): self._meet(group)
      elif isinstance(what, Together): self._pass(group, what)
      else: self.waiting.append((group, what))
    self._release_blocks()

  def _pass(self, group: Warps, what: Together) -> None:
    """Let the warps go on whose cluster's barrier is complete."""
    go = self.clusters.passes(self.row(group), group.lanes)
    if not go.all(): self.waiting.append((group if not go.any() else group.take(np.flatnonzero(~go)), what))
    if not go.any(): return
    if not go.all(): group = group.take(np.flatnonzero(go))
    if self.observer is not None: self.clusters.heard(group)
    group.lap = self.lap + 1
    self._meet(group)

  # ---- barriers of blocks

  def _phases(self, number: Value, expected: Value, workgroups: Value, count: Value, complete: Value) -> Value:
    """In which phase of its barrier, counted from the one that is open, each warp of a group arrives [warps]: one that
    would come after as many as a barrier waits for begins the next."""
    came = {key: row[0] for key, row in self.barriers.items()}
    phase, at = dict[tuple[int, int], int](), np.zeros(len(number), np.int64)
    for k in np.flatnonzero(expected).tolist():
      key, wanted = (int(workgroups[k]), int(number[k])), int(expected[k])
      at[k] = phase.get(key, 0)
      came[key] = came.get(key, 0) + (LANES if complete[k] else int(count[k]))
      if came[key] >= wanted: came[key], phase[key] = 0, int(at[k]) + 1
    return at

  def _arrive(self, group: Warps, after: Arrive) -> None:
    if np.any(after.expected) and group.size > 1:
      one = [np.broadcast_to(np.asarray(x).reshape(-1), group.size) for x in (after.number, after.expected)]
      lanes = group.lanes
      whole = lanes.sum(axis=1) == self.alive_lanes[self.row(group)].sum(axis=1)
      phases = self._phases(one[0], one[1], group.workgroups, lanes.sum(axis=1), whole)
      for phase in range(int(phases.max()) + 1) if phases.any() else ():
        rows = np.flatnonzero(phases == phase)
        votes = None if after.votes is None else np.broadcast_to(after.votes, (group.size, LANES))[rows]
        self._arrive(group.take(rows), Arrive(after.pc, one[0][rows], one[1][rows], after.waits, votes, after.finish))
      if phases.any(): return
    after.at, group.pc = group.pc, after.pc
    if self.observer is not None: self.observer.barrier(group, self.seen[0])
    lanes = group.lanes
    count = lanes.sum(axis=1)
    number = np.broadcast_to(np.asarray(after.number).reshape(-1), group.size)
    expected = np.broadcast_to(np.asarray(after.expected).reshape(-1), group.size)
    if self.observer is not None:
      for token, rows in self._tokens(group, number).items(): self.observer.told(group, rows, token)
    if after.votes is None and after.waits and not expected.any() and (number == number[0]).all():
      here = np.bincount(group.workgroups, count, len(self.threads))
      if not self.barriers and (here[group.workgroups] == self.threads[group.workgroups]).all():  # all are here
        if self.observer is not None:
          self.observer.released(self, np.unique(group.workgroups))
          for token, rows in self._tokens(group, number).items():
            self.observer.complete(self, token)
            self.observer.heard(group, rows, token)
        group.lap = self.lap + 1  # who waits in a loop with a barrier lets the others run
        self._meet(group)
        return
    votes = None if after.votes is None else np.broadcast_to(after.votes, (group.size, LANES)) & lanes
    all_votes = None if after.votes is None else np.broadcast_to(after.votes, (group.size, LANES)) | ~lanes
    for k in range(group.size):
      key = int(group.workgroups[k]), int(number[k])
      row = self.barriers.setdefault(key, [0, 0, 0, True])
      # a barrier counts warps: one that arrives counts with all its threads
      row[0] += int(count[k]) if not expected[k] else LANES if count[k] == self._alive_in(group, k) else int(count[k])
      row[1] = int(expected[k])
      if votes is not None and all_votes is not None:
        row[2] += int(votes[k].sum())
        row[3] = row[3] and bool(all_votes[k].all())
    if after.waits: self.waiting.append((group, (number, after)))
    else: self._meet(group)
    self._release_blocks()

  def _alive_in(self, group: Warps, k: int) -> int: return int(self.alive_lanes[int(group.waves[k]) - self.first].sum())

  def _release_blocks(self) -> None:
    """Let threads go on whose barrier is complete."""
    done: dict[tuple[int, int], list[Any]] = {}
    for key, row in self.barriers.items():
      expected = row[1] or int(self.threads[key[0]])
      if row[0] and row[0] >= expected: done[key] = row
    if not done: return
    if self.observer is not None:
      self.observer.released(self, np.array([key[0] for key in done]))
      for key in done: self.observer.complete(self, ("bar", *key))
    for key in done: del self.barriers[key]
    waiting, self.waiting = self.waiting, []
    for group, what in waiting:
      if isinstance(what, (Meet, Together)):
        self.waiting.append((group, what))
        continue
      number, after = what
      go = np.array([(int(w), int(n)) in done for w, n in zip(group.workgroups, number)])
      if not go.any():
        self.waiting.append((group, what))
        continue
      if not go.all():
        stay = np.flatnonzero(~go)
        self.waiting.append((group.take(stay), (number[stay], after)))
        number = number[go]
        group = group.take(np.flatnonzero(go))
      if after.finish is not None:
        rows = [done[int(w), int(n)] for w, n in zip(group.workgroups, number)]
        after.finish(group, np.array([[r[2]] for r in rows], np.uint32), np.array([[r[3]] for r in rows]))
      if self.observer is not None:
        for token, at in self._tokens(group, number).items(): self.observer.heard(group, at, token)
      group.lap = self.lap + 1
      self._meet(group)

  @staticmethod
  def _tokens(group: Warps, number: Value) -> dict[tuple[str, int, int], Value]:
    """The barriers that a group's warps are at, for observers, with the warps."""
    keys = list(zip(group.workgroups.tolist(), number.tolist()))
    return {("bar", *key): np.array([k for k, other in enumerate(keys) if other == key]) for key in dict.fromkeys(keys)}

  def blocked(self) -> bool: return bool(self.waiting)

  def waits(self) -> list[Group]: return [group for group, _ in self.waiting]

  def stuck(self) -> DeviceError:
    group, what = self.waiting[0]
    if isinstance(what, Meet):
      lanes = np.broadcast_to(what.lanes, (group.size, LANES))[0] & ~group.lanes[0]
      lanes = lanes & self.alive_lanes[self.row(group)[0]]
      missing = ", ".join(map(str, np.flatnonzero(lanes).tolist()))
      return MachineFault(f"lanes of a warp wait for lanes that never come: {missing}", pc=group.pc,
                          wave=int(group.waves[0]), lane=int(group.lanes[0].argmax()),
                          instruction=self.program.describe(group.pc))
    if isinstance(what, Together):
      rows = self.clusters.rows(int(self.row(group)[0]) // self.clusters.warps)
      absent = int((self.alive_lanes[rows] & ~self.clusters.arrived[rows]).sum())
      return MachineFault(f"the barrier of a cluster never completes: {absent} threads have not come, and nobody else "
                          "can", pc=what.at, wave=int(group.waves[0]), lane=int(group.lanes[0].argmax()),
                          instruction=self.program.describe(what.at))
    number, after = what
    key = int(group.workgroups[0]), int(number[0])
    arrived, expected = self.barriers[key][:2]
    wanted = expected or int(self.threads[key[0]])
    return MachineFault(f"barrier {key[1]} never completes: {arrived} of {wanted} threads have come, and nobody else "
                        "can", pc=after.at, wave=int(group.waves[0]), lane=int(group.lanes[0].argmax()),
                        instruction=self.program.describe(after.at))
