"""Lockstep execution of waves: groups of waves at one PC, their registers, EXEC, barriers, scheduling and the watchdog.

Nothing here knows an instruction set. A *program* gives blocks of bound steps for a PC; a step takes a `Group`.
Registers hold immutable NumPy values of dtype u32 (or any 4-byte type in vector registers) in the smallest shape
that says it all: () the same everywhere, (1, lanes) the same in each wave, (waves, 1) one a wave, (waves, lanes).
Writing a register replaces its value, so that moves, splits and merges of groups are cheap.
"""
from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tinyhw.core.errors import DecodeError, Error, MachineFault, WatchdogExpired
from tinyhw.emulator.deadlock import Look
from tinyhw.emulator.jit.refusal import OWN
from tinyhw.emulator.values.ops import FALSE, U32, Operations, Ops
from tinyhw.emulator.values.ops import Array as Value

if TYPE_CHECKING:
  from tinyhw.emulator.view import View

Step = Callable[["Group"], None]
ZERO: Final[Value] = U32.type(0)
NOBODY: Final[Value] = np.zeros(0, np.intp)  # waves, before there are any
BLOCKS_A_TURN: Final = 8192  # how long a cohort may run while others could
A_BLOCK: Final = 100  # microseconds, in which weights count
JUMPS_ALONE: Final = 32  # how often a group may jump back in a lap
JUMPS_A_LAP: Final = 4  # the same while others of its cohort could run
BLOCKS_A_TICK: Final = 256  # how often the caller may end a dispatch


class End: """A wave has ended."""


class Barrier:
  """The group waits at a barrier; it goes on at `pc`."""
  def __init__(self, pc: int) -> None: self.pc = pc


class Wait:
  """Waves of the group wait until their workgroup's split barrier has completed; then they go on at `pc`."""
  def __init__(self, pc: int) -> None: self.pc = pc


class Yield:
  """The group sleeps: others run first; it goes on at `pc`."""
  def __init__(self, pc: int) -> None: self.pc = pc


class Split:
  """Waves of the group go different ways: `pcs` holds an address for each wave, `modes` a MODE where that differs.

  `vgprs` is how many vector registers each has from now on; new ones hold 0.
  """
  def __init__(self, pcs: Value, modes: Value | None = None, vgprs: Value | None = None) -> None:
    self.pcs, self.modes, self.vgprs = pcs, modes, vgprs


Next = int | End | Barrier | Wait | Yield | Split


class Block(Protocol):
  """Instructions that run one after the other. `end` says where to go on; None for `next`."""
  steps: list[Step]
  count: int
  end: Callable[[Group], Next] | None
  next: int
  pcs: list[int]
  instructions: list[Any]

  @property
  def weight(self) -> int:
    """Microseconds that a wave takes longer here than its share of a step."""


class Observer(Protocol):
  """Sees what groups do; `emulator.observe` says when each is called."""
  def before(self, group: Group, pc: int, instruction: Any) -> None: ...

  def after(self, group: Group, pc: int, instruction: Any) -> None: ...

  def access(self, group: Group, pc: int, instruction: Any, access: Any) -> None: ...

  def outside(self, group: Group, pc: int, instruction: Any, access: Any) -> None: ...

  def copied(self, group: Group, pc: int, instruction: Any, copy: Any) -> None: ...

  def told(self, group: Group, rows: Any, token: Any, how: str = "") -> None: ...

  def complete(self, cohort: Cohort, token: Any) -> None: ...

  def heard(self, group: Group, rows: Any, token: Any) -> None: ...

  def barrier(self, group: Group, pc: int) -> None: ...

  def released(self, cohort: Cohort, workgroups: Value) -> None: ...

  def ended(self, group: Group) -> None: ...


class Program(Protocol):
  """Code that can be executed."""
  def block(self, pc: int, mode: int) -> Block: ...

  def describe(self, pc: int) -> str: ...

  def caller(self, group: Group, row: int) -> int | None: ...

  def refresh(self) -> None: ...


class StandIn(Protocol):
  """What a step finds in place of memory, LDS and scratch; asked once for each access that an observer is shown."""
  def load(self, width: int) -> list[Value]: ...

  def whole(self, width: int) -> Value: ...

  def store(self, words: list[Value], width: int) -> None: ...

  def atomic(self, width: int, operation: str, data: Value, compare: Value | None) -> Value: ...


class Group:
  """Waves at one PC, with their registers."""

  __slots__ = ("bools", "cohort", "count", "mask", "mode", "pairs", "pc", "s", "scc", "scratch", "size", "space",
               "lap", "v", "waves", "workgroups")
  o: Operations[Value] = Ops  # the operations that its values have
  memory: StandIn | None = None  # what takes the place of memory and LDS for who only follows a step

  def __init__(self, cohort: Cohort, size: int, pc: int, vgprs: int, sgprs: int) -> None:
    self.cohort, self.size, self.pc, self.space = cohort, size, pc, cohort.space
    self.v: list[Value] = [ZERO] * vgprs
    self.s: list[Value] = [ZERO] * sgprs
    self.scc: Value = FALSE
    self.mask: Value | None = None  # None: every lane is active; else bool [1 or waves, lanes]
    self.mode = cohort.mode
    self.count = self.lap = 0
    self.bools: dict[int, tuple[Value, Value]] = {}  # register -> (its value, the same as bools)
    self.pairs: dict[int, tuple[Value, Value, Value]] = {}  # register -> (low, high, both as u64)
    self.waves = NOBODY  # index of each wave in the cohort
    self.workgroups = NOBODY  # index of each wave's workgroup in the cohort
    self.scratch: Value | None = None  # scratch base address of each wave [waves, 1]

  def take(self, index: Value) -> Group:
    """A group of some of the waves; `index` counts within this group."""
    other = Group.__new__(Group)
    n, size = len(index), self.size

    def part(x: Value) -> Value:
      if x.ndim != 2 or x.shape[0] != size or size == 1: return x
      y = x[index]
      return y[0, 0] if n == 1 and y.shape[1] == 1 else y

    other.cohort, other.size, other.pc, other.space, other.mode = self.cohort, n, self.pc, self.space, self.mode
    other.v, other.s = [part(x) for x in self.v], [part(x) for x in self.s]
    other.scc = part(self.scc)
    other.mask = None if self.mask is None else part(self.mask)
    if other.mask is not None and other.mask.all(): other.mask = None
    other.count, other.lap, other.bools, other.pairs = self.count, self.lap, {}, {}
    other.waves, other.workgroups = self.waves[index], self.workgroups[index]
    other.scratch = None if self.scratch is None else part(self.scratch)
    return other

  def put_back(self, parts: Sequence[Group]) -> None:
    """Have the registers of groups that were taken from this one, which together are all its waves."""
    whole, *others = parts
    for other in others: whole.join(other)
    self.v, self.s, self.scc, self.mask, self.bools, self.pairs = whole.v, whole.s, whole.scc, whole.mask, {}, {}

  def outer(self) -> list[Value | None]:
    """What decides where it goes on, beside the registers of the function that it is in."""
    return []

  def alike(self, other: Group) -> bool:
    """Whether the other's waves can be taken in where both stand at one PC: MODE and the registers are as many."""
    return self.mode == other.mode and len(self.v) == len(other.v)

  def join(self, other: Group) -> None:
    """Take the other group's waves in; both stand at one PC and are alike."""
    a, b = self.size, other.size
    waves = np.concatenate([self.waves, other.waves])
    order = None if (waves[1:] > waves[:-1]).all() else np.argsort(waves)  # lanes keep the order of their waves

    def both(x: Value, y: Value) -> Value:
      if x is y and (x.ndim == 0 or x.shape[0] == 1): return x
      if x.ndim == 0 and y.ndim == 0 and x == y: return x
      columns = max(x.shape[-1] if x.ndim else 1, y.shape[-1] if y.ndim else 1)
      y = y.view(x.dtype) if y.dtype != x.dtype else y
      z = np.concatenate([np.broadcast_to(x, (a, columns)), np.broadcast_to(y, (b, columns))])
      return z if order is None else z[order]

    self.v, self.s = [both(x, y) for x, y in zip(self.v, other.v)], [both(x, y) for x, y in zip(self.s, other.s)]
    self.scc = both(self.scc, other.scc)
    if self.mask is not None or other.mask is not None:
      lanes = self.cohort.lanes
      ones = np.ones((1, lanes), bool)
      self.mask = both(ones if self.mask is None else np.array(self.mask), ones if other.mask is None else other.mask)
    self.bools, self.pairs = {}, {}
    workgroups = np.concatenate([self.workgroups, other.workgroups])
    self.waves, self.workgroups = (waves, workgroups) if order is None else (waves[order], workgroups[order])
    if self.scratch is not None and other.scratch is not None: self.scratch = both(self.scratch, other.scratch)
    self.size = a + b
    self.count, self.lap = max(self.count, other.count), max(self.lap, other.lap)


@dataclass
class Outside:
  """What an instruction touched of LDS beyond its workgroup's: reads there gave 0, writes were dropped.

  `start` and `end` bound the addresses of all its accesses outside, `lanes` counts them; `size` is the workgroup's LDS
  as it was allocated. Bytes.
  """
  instruction: str
  size: int
  start: int
  end: int
  lanes: int

  def __str__(self) -> str:
    lanes = f"{self.lanes:,} lanes" if self.lanes > 1 else "one lane"
    return (f"'{self.instruction}' touched LDS at {self.start:#x} to {self.end - 1:#x} in {lanes}, and its workgroup "
            f"has {self.size:,} bytes: reads gave 0 and writes were dropped, as on the chip")


@dataclass
class Stats:
  """What a dispatch did: instructions counted once for each wave that executed them."""
  waves: int = 0
  instructions: int = 0
  steps: int = 0
  blocks: dict[Any, int] = field(default_factory=dict, repr=False)  # block -> waves that executed it
  engine: str = "ref"
  modelled: Counter[str] = field(default_factory=Counter)  # uses of what only hardware has, by register or message
  interpreted: dict[str, int] = field(default_factory=dict)  # what compiled code left to the reference, by mnemonic
  helped: Counter[str] = field(default_factory=Counter)  # the same of single instructions, after which it went on
  outside: dict[int, Outside] = field(default_factory=dict)  # LDS beyond the workgroup's, by the PC that touched it
  _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

  @property
  def mnemonics(self) -> Counter[str]:
    """How many waves executed each mnemonic."""
    out: Counter[str] = Counter()
    for block, waves in self.blocks.items():
      for i in block.instructions: out[i.mnemonic] += waves
    return out

  @property
  def mistakes(self) -> dict[str, int]:
    """What of `interpreted` is for a mistake of this package's own."""
    return {why: waves for why, waves in self.interpreted.items() if OWN in why} if self.interpreted else {}

  def add_outside(self, pc: int, found: Outside) -> None:
    """Count accesses of an instruction to LDS that its workgroup does not have."""
    with self._lock:  # compiled code runs in threads
      known = self.outside.setdefault(pc, found)
      if known is found: return
      known.start, known.end = min(known.start, found.start), max(known.end, found.end)
      known.lanes += found.lanes


@dataclass
class Changes:
  """How often the waves of a dispatch changed memory, of any kind.

  A store counts as a change. With `exact` it does only where other bytes were there, as atomics always do: then waves
  that store one value for ever are seen to change nothing.
  """
  count: int = 0
  exact: bool = False


class Cohort:
  """Workgroups that began together and share a block of LDS."""

  jumps_a_lap = JUMPS_A_LAP

  def __init__(self, program: Program, space: Any, lanes: int, mode: int, watchdog: int, stats: Stats, lds_size: int,
               workgroups: int) -> None:
    self.program, self.space, self.lanes, self.mode = program, space, lanes, mode
    self.watchdog, self.stats = watchdog, stats
    self.lds_size = lds_size
    self.lds = np.zeros(workgroups * lds_size, np.uint8)
    self.lds32 = self.lds.view(np.uint32)
    self.arch: Any = None
    self.dispatch: Any = None
    self.shared: Any = None  # what the workgroups of a dispatch share
    self.observer: Observer | None = None
    self.view: View | None = None  # how its waves see memory, where caches stand between
    self.seen: tuple[int, Any] = (0, None)  # PC and instruction that the observer is shown
    self.running: tuple[Block, Iterator[Step]] | None = None  # the block, and its steps to come; None: `seen` knows
    self.tick: Callable[[], None] | None = None  # called now and then; what it raises ends the dispatch
    self.live = NOBODY  # waves of each workgroup that have not ended
    self.arrived = NOBODY  # waves of each workgroup that wait at a barrier, or have signalled a split one
    self.first, self.waves_a_group = 0, 1  # index of the first wave; waves of each workgroup when they began
    self.passed: Value | None = None  # split barriers: whether each wave's completed since it last waited; None: unused
    self.left = 0
    self.changes = Changes()  # of all cohorts of the dispatch
    self.runnable: list[Group] = []
    self.parked: list[Group] = []
    self.budget = 0
    self.lap = 0  # the lap that groups are in: each that can runs once a lap
    self.looking = False  # laps are short
    self.apart = False  # waves that stand at one place do not go on together
    self.look = Look()

  def start(self, group: Group) -> None:
    """Add the first group, which holds every wave."""
    self.left = group.size
    self.live = np.bincount(group.workgroups)
    self.arrived = self.live * 0
    self.first, self.waves_a_group = int(group.waves[0]), group.size // len(self.live)
    self.runnable = [group.take(np.array([k])) for k in range(group.size)] if self.apart else [group]
    self.stats.waves += group.size

  def run(self, blocks: int = BLOCKS_A_TURN) -> bool:
    """Run until all waves have ended (True), or the cohort has had its turn, sleeps or is `idle` (False).

    Of several groups the one at the lowest PC runs first, so that the others wait where they meet again. Each runs
    once a lap: one that keeps jumping back lets the others run, because it may wait for them.
    """
    self.budget = blocks
    if self.tick is not None and self.runnable: self.ticks(self.runnable[0])  # they may do nothing but sleep
    while self.runnable:
      group = self.runnable[0] if len(self.runnable) == 1 else min(self.runnable, key=self.order)
      idle = False
      if group.lap > self.lap:
        self.lap = group.lap
        idle = self.look.at(self)
      if idle or self.budget <= 0: return False
      self.runnable.remove(group)
      self._run(group, self.meeting(group))
    if self.blocked(): raise self.stuck()
    return True

  def order(self, group: Group) -> Any:
    """Of several groups the one where this is least runs first."""
    return group.lap, group.pc

  def meeting(self, group: Group) -> set[int] | None:
    """The PCs at which a group, which runs next, may meet others; None when no other could run."""
    others = self.runnable and not self.apart
    return {g.pc for g in self.runnable if g.alike(group)} if others else None

  def blocked(self) -> bool:
    """Whether waves are left, of which none can run."""
    return bool(self.parked)

  def waits(self) -> list[Group]:
    """The groups that cannot run."""
    return self.parked

  def stuck(self) -> Exception:
    """What it is that waves are left of which none can run."""
    at = self.parked[0]
    return MachineFault("a barrier that some waves of a workgroup never reach", pc=at.pc, wave=int(at.waves[0]))

  @property
  def idle(self) -> bool:
    """Whether no wave can go on until memory changes: all came to where they were, and memory is what it was."""
    return self.left > 0 and self.look.idle == self.changes.count

  def alive(self) -> Value:
    """Which of the workgroups have not ended."""
    return self.live > 0 if self.left else np.zeros(len(self.live), bool)

  def held(self) -> int:
    """Workgroups that have not ended."""
    return int(np.count_nonzero(self.live)) if self.left else 0

  def _run(self, group: Group, meeting: set[int] | None) -> None:
    """Run a group until it ends, waits, splits, meets another group (at a PC of `meeting`) or has had its lap."""
    program, stats, size = self.program, self.stats, group.size
    executed, jumps = stats.blocks, 1 if self.looking else JUMPS_ALONE if meeting is None else self.jumps_a_lap
    while True:
      start = group.pc
      try: block = program.block(start, group.mode)
      except MachineFault as error: raise self.located(error, start, group) from None
      steps = iter(block.steps)
      self.running = block, steps
      left = 0
      after: Next
      try:
        if self.observer is not None: after = self._observed(group, block)
        else:
          for step in steps: step(group)
          left = -1
          after = block.next if block.end is None else block.end(group)
      except (Error, IndexError) as error:
        if left == 0: left = length_hint(steps)
        at = block.pcs[len(block.steps) - left - 1] if self.observer is None else group.pc
        raise self.located(error, at, group) from (
          None if isinstance(error, Error) else error)
      count = block.count
      group.count += count
      stats.instructions += count * size
      stats.steps += count
      executed[block] = executed.get(block, 0) + size
      self.budget -= 1 + block.weight * size // A_BLOCK
      if type(after) is int:
        group.pc = start  # an observer has seen it move on
        if group.count > self.watchdog: self.expired(group)
        back, group.pc = after <= group.pc, after
        if self.tick is not None and not self.budget % BLOCKS_A_TICK: self.ticks(group)
        if back:
          jumps -= 1
          if not jumps: return self._lapped(group)
        if meeting is not None and after in meeting: return self._meet(group)
        if self.budget <= 0:
          self.runnable.append(group)
          return
        continue
      group.pc = start
      return self.leave(group, after)

  def _lapped(self, group: Group) -> None:
    """A group has had its lap."""
    group.lap = self.lap + 1
    self._meet(group)

  def _observed(self, group: Group, block: Block) -> Next:
    """Run a block instruction by instruction, with `group.pc` on each; where to go on."""
    observer = self.observer
    assert observer is not None
    self.running, steps = None, dict(zip(block.pcs, block.steps))
    last = len(block.instructions) - 1
    if last < 0 and block.end is not None: return block.end(group)  # a guard that is asked apart from its instruction
    after: Next = block.next
    for k, i in enumerate(block.instructions):
      at = group.pc
      pc = self.shown(at)
      self.seen = pc, i
      observer.before(group, pc, i)
      if k == last and block.end is not None: after = block.end(group)
      elif (step := steps.get(at)) is not None: step(group)
      observer.after(group, pc, i)
      group.pc = at + i.size
    return after

  def shown(self, pc: int) -> int:
    """The PC of the instruction that is at one, as observers know it."""
    return pc

  def leave(self, group: Group, after: Next) -> None:
    """A group ends, waits, sleeps or splits."""
    observer = self.observer
    if isinstance(after, End):
      if observer is not None: observer.ended(group)
      self.left -= group.size
      if self.left: np.subtract.at(self.live, group.workgroups, 1)
      if self.parked or self.passed is not None: self._release()
    elif isinstance(after, Barrier):
      group.pc = after.pc
      if observer is not None: observer.barrier(group, self.seen[0])
      if group.size == self.left:  # every wave is here
        if observer is not None: observer.released(self, np.flatnonzero(self.live))
        group.lap = self.lap + 1  # a loop that meets at a barrier may never have its jumps of a lap together
        self.runnable.append(group)
        return
      np.add.at(self.arrived, group.workgroups, 1)
      self.parked.append(group)
      self._release()
    elif isinstance(after, Wait):
      group.pc = after.pc
      self.parked.append(group)
      self._release()
    elif isinstance(after, Yield):
      group.pc = after.pc
      if not self.runnable: self.budget = 0
      if group.count > self.watchdog: self.expired(group)
      self._lapped(group)
    else:
      assert isinstance(after, Split)
      if group.count > self.watchdog: self.expired(group)
      modes = np.full(group.size, group.mode) if after.modes is None else after.modes
      vgprs = np.full(group.size, len(group.v)) if after.vgprs is None else after.vgprs
      ways = np.stack([after.pcs, modes, vgprs], axis=1)
      for way in np.unique(ways, axis=0):
        part = group.take(np.flatnonzero((ways == way).all(axis=1)))
        part.pc, part.mode, count = map(int, way)
        if part.pc <= group.pc: part.lap = self.lap + 1  # it jumped back
        part.v = part.v[:count] + [ZERO] * (count - len(part.v))
        self._meet(part)

  def _meet(self, group: Group) -> None:
    """Make a group runnable, as part of a group at the same PC where there is one."""
    for other in () if self.apart else self.runnable:
      if other.pc == group.pc and other.alike(group):
        other.join(group)
        return
    self.runnable.append(group)

  def signal(self, group: Group) -> Value:
    """Waves signal their workgroup's split barrier; whether each is the first to do so since it last completed."""
    workgroups = group.workgroups
    if self.observer is not None: self.observer.barrier(group, self.seen[0])
    if self.waves_a_group == 1: return np.zeros(len(workgroups), bool)  # a wave that is its workgroup has no barrier
    if self.passed is None: self.passed = np.zeros(len(self.live) * self.waves_a_group, bool)
    rank = np.arange(len(workgroups)) - np.searchsorted(workgroups, workgroups)
    first = self.arrived[workgroups] + rank == 0
    np.add.at(self.arrived, workgroups, 1)
    self._release()
    return first

  def complete(self) -> None:
    """Note which split barriers every live wave has signalled, and begin them anew."""
    ready = (self.arrived >= self.live) & (self.live > 0) & (self.arrived > 0)
    if not ready.any(): return
    if self.observer is not None: self.observer.released(self, np.flatnonzero(ready))
    assert self.passed is not None
    self.passed |= np.repeat(ready, self.waves_a_group)
    self.arrived[ready] = 0

  def take_passed(self, waves: Value) -> Value:
    """Which of these waves may pass the split barrier that they wait for; those have used it up."""
    if self.waves_a_group == 1: return np.ones(len(waves), bool)
    if self.passed is None: return np.zeros(len(waves), bool)
    go: Value = self.passed[waves - self.first]
    self.passed[waves[go] - self.first] = False
    return go

  def _release(self) -> None:
    """Let the waves of workgroups go on whose every live wave stands at the barrier or has signalled it."""
    ready = (self.arrived >= self.live) & (self.live > 0)
    if self.passed is not None: self.complete()
    elif not ready.any(): return
    elif self.observer is not None: self.observer.released(self, np.flatnonzero(ready))
    parked, self.parked = self.parked, []
    for group in parked:
      go = ready[group.workgroups] if self.passed is None else self.take_passed(group.waves)
      if go.any(): group.lap = self.lap + 1
      if go.all(): self._meet(group)
      elif not go.any(): self.parked.append(group)
      else:
        self.parked.append(group.take(np.flatnonzero(~go)))
        self._meet(group.take(np.flatnonzero(go)))
    if self.passed is None: self.arrived[ready] = 0

  def now(self) -> int | None:
    """The PC of the instruction that a step is executing; None for a step that no program runs."""
    if self.running is None: return self.seen[0] or None
    block, steps = self.running
    return block.pcs[len(block.steps) - length_hint(steps) - 1]

  def outside(self, addresses: Value, width: int, lanes: Value) -> None:
    """Take note of accesses to LDS that the workgroup does not have; both arrays are [waves, lanes]."""
    pc = self.now()
    if pc is None or not lanes.any(): return
    where = addresses[lanes].astype(np.uint64)
    self.stats.add_outside(pc, Outside(self.program.describe(pc), self.lds_size, int(where.min()),
                                       int(where.max()) + width, where.size))

  def ticks(self, group: Group) -> None:
    """Let the caller end the dispatch; its error says where a group stands."""
    assert self.tick is not None
    try: self.tick()
    except MachineFault as error:
      error.wave = int(group.waves[0])
      raise self.located(error, group.pc, group) from None

  def expired(self, group: Group) -> None:
    """Report a group that ran longer than the watchdog allows."""
    raise WatchdogExpired(f"a wave ran more than {self.watchdog:,} instructions", pc=group.pc,
                          instruction=self.program.describe(group.pc), wave=int(group.waves[0]),
                          hint="an endless loop, or raise the watchdog (MOCKGPU_WATCHDOG on a mock GPU)")

  def located(self, error: Exception, pc: int, group: Group) -> Exception:
    """The error with the PC, the instruction and the wave that met it."""
    if isinstance(error, DecodeError): return error
    if isinstance(error, MachineFault):
      if error.pc is None: error.pc, error.instruction = pc, self.program.describe(pc)
      if error.lane is not None and error.wave is None:
        error.wave, error.lane = int(group.waves[error.lane // self.lanes]), error.lane % self.lanes
      if error.wave is None and error.pc == error.address: error.wave = int(group.waves[0])
      row = np.flatnonzero(group.waves == error.wave)
      if error.caller is None and row.size: error.caller = self.program.caller(group, int(row[0]))
      return error
    if isinstance(error, IndexError):
      text = self.program.describe(pc)
      return MachineFault("a register beyond the wave's allocation", pc=pc, instruction=text, wave=int(group.waves[0]))
    return error


def full(group: Group, x: Value) -> Value:
  """A value as [waves, lanes]."""
  return np.broadcast_to(x, (group.size, group.cohort.lanes))


def need_lanes(group: Group) -> Value:
  """EXEC as [waves, lanes] bools."""
  if group.mask is None: return np.ones((group.size, group.cohort.lanes), bool)
  return np.broadcast_to(group.mask, (group.size, group.cohort.lanes))
