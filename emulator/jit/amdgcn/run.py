"""Runs waves with compiled code: those of a cohort one after the other, in turns, across barriers.

A wave runs until it ends, waits at a barrier, sleeps, has used up its turn, or comes to an instruction that is left to
the reference; that one is interpreted and the wave goes on. Faults and the watchdog raise what the reference raises.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from tinyhw.core.called import Plain
from tinyhw.core.errors import Error, MachineFault
from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.amdgcn.allocation import first_block
from tinyhw.emulator.amdgcn.launch import DispatchStats
from tinyhw.emulator.amdgcn.memory.vector import flat_fetch, flat_put
from tinyhw.emulator.amdgcn.memory.words import flat_offset
from tinyhw.emulator.amdgcn.program import AmdgcnProgram
from tinyhw.emulator.amdgcn.registers import exec_changed
from tinyhw.emulator.jit.amdgcn import atomics, context
from tinyhw.emulator.jit.amdgcn.forms import Form, Snapshot, Wish
from tinyhw.emulator.jit.amdgcn.site import Site
from tinyhw.emulator.jit.amdgcn.state import (
  HEADER,
  LDS,
  LEFT,
  MODE,
  PASSED,
  RESUME,
  SCC,
  SCRATCH,
  SGPRS,
  SIGNALS,
  STATUS,
  TARGET,
)
from tinyhw.emulator.jit.amdgcn.translate import (
  BARRIER,
  EACH_HOT,
  END,
  JUMP,
  RUN,
  STEP,
  WATCHED,
  YIELD,
  Place,
  state_words,
)
from tinyhw.emulator.jit.background import BACKGROUND
from tinyhw.emulator.jit.memory import Memory
from tinyhw.emulator.jit.refusal import CHECKED_SLOWLY, SLOW, NotCompiled, TranslatorFailed, tell
from tinyhw.emulator.memory import access
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.simt import ZERO, Barrier, Cohort, End, Group, Outside, Split, Wait, Yield
from tinyhw.emulator.values.ops import BOOL, FALSE
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.codes import EXEC_LO

TURN: Final = 1 << 16  # instructions that a wave may run while others could
GLANCE: Final = 1 << 8  # as many, of a wave that seems to wait
STEPS: Final = 1000  # as many, of a wave that stands where there is no code
# A program is compiled again when it has run so many times as many instructions (by weight) as it has; 0: at once. That
# costs milliseconds an instruction and holds up the end of the process, so it must have paid, and be no giant.
HOT = 50_000
LARGEST_HOT: Final = 4000  # instructions


class Code:
  """A program compiled for one number of lanes and vector registers; grows when waves come to new places."""

  def __init__(self, program: AmdgcnProgram, lanes: int, vgprs: int, partial: bool, detail: int, mode: int) -> None:
    self.program = program
    self._for = lanes, vgprs, partial, detail
    self._starts: list[Place] = []
    self._refused: set[Place] = set()
    self._lock = threading.Lock()
    self.cost = 0.0  # of a wave, as the last cohort had it that ran to its end in one turn: instructions by weight
    self._make((0, mode))

  def _make(self, place: Place) -> None:
    """Compile with one more place to start from. Raises NotCompiled, with all as it was."""
    wish = Wish(self.program, *self._for, [*self._starts, place])
    hot = HOT == 0 or wish.detail == EACH_HOT
    self._form = wish.find(True) or not hot and wish.find(False) or wish.make(hot)
    self._starts.append(place)
    self._wish, self._executed = wish, 0.0
    form = self._form
    self.form = form  # the best that there is by now
    self.counts = not form.hot and form.instructions <= LARGEST_HOT  # whether it matters how much is executed

  def grow(self, pc: int, mode: int) -> None:
    """Compile anew with one more place to start from, unless it is known by now. Indices of places change.

    A place that is refused has no code from then on.
    """
    place = pc - self.program.entry, mode
    with self._lock:  # waves in several threads may come to it
      if place in self.form.index or place in self._refused: return
      try: self._make(place)
      except NotCompiled as refused:
        self._refused.add(place)
        tell(f"the program at {self.program.entry:#x}", refused)

  def ran(self, instructions: int) -> None:
    """Count what waves executed; a program that has become hot is compiled again, meanwhile this form goes on."""
    self._executed += instructions * self._form.weight
    form, wish = self._form, self._wish
    if not self.counts or self._executed < HOT * form.instructions: return
    self.counts = False
    snapshot = Snapshot(self.program.arch, self.program.entry, form.code)

    def improve() -> None:
      try: made = wish.make(True, snapshot)
      except NotCompiled as refused:  # the form that there is serves on
        if isinstance(refused, TranslatorFailed):
          tell(f"the program at {wish.program.entry:#x}", refused, "stays as it was compiled at first")
        return
      with self._lock:
        if self._wish is wish: self.form = made
    BACKGROUND.add(improve)


def code_for(cohort: Cohort, vgprs: int, detail: int = 0) -> Code:
  """The code that a cohort's waves with so many vector registers run, made when it is first wanted.

  Raises NotCompiled, for this program always from then on.
  """
  program = cast(AmdgcnProgram, cohort.program)  # amdgcn's cohorts have no other
  if first_block(program.arch, cohort.dispatch, cohort.lanes): raise NotCompiled("vector registers that come and go")
  x, y, z = cohort.dispatch.block
  key = cohort.lanes, vgprs, x * y * z % cohort.lanes != 0, detail
  code: Code | NotCompiled | None = program.compiled.get(key)
  if code is None:
    try: code = Code(program, *key, cohort.mode)
    except NotCompiled as refused:
      tell(f"the program at {program.entry:#x}", refused, CHECKED_SLOWLY if detail & WATCHED else SLOW)
      code = refused
    program.compiled[key] = code
  if isinstance(code, NotCompiled): raise type(code)(code.why)
  return code


def aligned(shape: tuple[int, int]) -> Value:
  """Zeros of u32 at a multiple of 64 bytes."""
  n = shape[0] * shape[1]
  raw = np.zeros(n + 16, np.uint32)
  skip = -raw.ctypes.data % 64 // 4
  return raw[skip:skip + n].reshape(shape)


class Waves:
  """The waves of a cohort in memory, with the context that compiled code shares.

  The cohort may be new, or one that the reference has begun: its groups of waves go on where they stand.
  """

  def __init__(self, cohort: Cohort, memory: Memory, raw: Value | None = None, detail: int = 0) -> None:
    """`raw` is memory of other waves that have ended, to be used again; `detail` that of a translation."""
    groups = [*cohort.runnable, *cohort.parked]
    count = len(cohort.live)
    self.cohort, self.size = cohort, count * cohort.waves_a_group
    self.numbers = np.arange(cohort.first, cohort.first + self.size)  # of the waves in the dispatch
    self.workgroups = np.repeat(np.arange(count), cohort.waves_a_group)
    self.lanes, self.vgprs = cohort.lanes, len(groups[0].v)
    self.code = code_for(cohort, self.vgprs, detail)
    self._detail = detail
    for group in groups: self.code.grow(group.pc, group.mode)
    self.form: Form = self.code.form
    self._places = list(self.form.places)  # by what waves have as RESUME: the form's, then others that have no code
    self.error: BaseException | None = None
    self._begin()
    self._fill(groups, raw)
    self._callback = Plain(self._slow, ctypes.c_int64, ctypes.c_int32, failed=1)
    self._context(memory)
    cohort.runnable, cohort.parked = [], []

  def _begin(self) -> None:
    self.instructions = self.steps = 0  # executed, and not yet accounted for
    self._meetings = 0  # how often compiled code was left without an end
    self.interpreted: dict[str, int] = {}
    self.quiet = False  # all waves seem to wait
    self._turns = np.full(self.size, TURN)
    self._kept: Value | None = None
    self._age, self._renew = 0, 1
    self.executed = np.zeros(self.size, np.int64)

  # ---- memory that compiled code sees

  def _fill(self, groups: Sequence[Group], raw: Value | None) -> None:
    n, words = self.size, state_words(self.vgprs, self.lanes, self._detail)
    if raw is None or raw.size < n * words: raw = aligned((n, words)).reshape(-1)
    else: raw[:n * words] = 0
    self.raw = raw
    states = self.states = raw[:n * words].reshape(n, words)
    self.scratch = None if groups[0].scratch is None else np.zeros(n, np.uint64)
    states[:, STATUS] = END
    for group in groups: self._place(group, slice(None) if group.size == n else group.waves - self.cohort.first)
    for group in self.cohort.parked: states[group.waves - self.cohort.first, STATUS] = BARRIER
    states[::self.cohort.waves_a_group, SIGNALS] = self.cohort.arrived  # only their sum in a workgroup counts
    if self.cohort.passed is not None: states[:, PASSED] = self.cohort.passed
    base, size = self.cohort.lds.ctypes.data, self.cohort.lds_size
    states[:, LDS:LDS + 2] = _u64(base + self.workgroups.astype(np.uint64) * np.uint64(size))
    if self.scratch is not None: states[:, SCRATCH:SCRATCH + 2] = _u64(self.scratch)
    self.left = states[:, LEFT:LEFT + 2].view(np.int64)[:, 0]

  def use(self, raw: Value) -> None:
    """Have the registers in other memory, whose contents they are."""
    n, words = self.states.shape
    self.raw, self.states = raw, raw[:n * words].reshape(n, words)
    self.left = self.states[:, LEFT:LEFT + 2].view(np.int64)[:, 0]

  def _place(self, group: Group, rows: Value | slice) -> None:
    """The registers of a group to the states of its waves."""
    states, lanes = self.states, self.lanes
    for k, x in enumerate(group.s):
      if x is not ZERO: states[rows, k] = x if x.ndim == 0 else x.reshape(-1)
    for k, x in enumerate(group.v):
      if x is not ZERO: states[rows, HEADER + k * lanes:HEADER + (k + 1) * lanes] = x.view(np.uint32)
    if group.scc is not FALSE: states[rows, SCC] = np.asarray(group.scc).reshape(-1)
    states[rows, STATUS], states[rows, RESUME] = RUN, self._number((group.pc - self.code.program.entry, group.mode))
    self.executed[rows] = group.count
    if self.scratch is not None and group.scratch is not None: self.scratch[rows] = group.scratch.reshape(-1)

  def _context(self, memory: Memory) -> None:
    raw = self.context = aligned((1, context.CONTEXT_SIZE // 4))[0]
    words = raw.view(np.uint64)
    self._memory = memory
    self._clear_sites()
    for at, value in ((context.CALLBACK, self._callback.address), (context.MAPPINGS, len(memory.table)),
                      (context.TABLE, memory.table.ctypes.data), (context.SITES, self.sites.ctypes.data),
                      (context.ENTRY, self.code.program.entry), (context.LDS_SIZE, self.cohort.lds_size),
                      (context.SCRATCH_SIZE, self.cohort.dispatch.scratch_size)):
      words[at // 8] = value
    lanes = self.lanes
    self._wave = words[context.WAVE // 8:context.WAVE // 8 + 1]
    self._addresses = words[context.ADDRESSES // 8:context.ADDRESSES // 8 + lanes]
    self._mask = raw[context.MASK // 4:context.MASK // 4 + 2]
    self._data = raw[context.DATA // 4:context.DATA // 4 + 16 * lanes]

  def _clear_sites(self) -> None:
    """What memory each site found last, for the form's sites."""
    self.sites = np.zeros((max(1, len(self.form.sites)), 4), np.uint64)
    self.context.view(np.uint64)[context.SITES // 8] = self.sites.ctypes.data

  def _take(self, form: Form) -> None:
    """Go on with another form of the program; its numbers of places and sites are others."""
    self._note_outside(self.cohort.stats)
    self.form, self._places = form, list(form.places)
    self._clear_sites()

  def _number(self, place: Place) -> int:
    """What waves have as RESUME at a place. Where it has no code, the reference executes the next instruction."""
    known = self.form.index.get(place)
    if known is not None: return known
    if place not in self._places: self._places.append(place)
    return self._places.index(place)

  def _exchange(self, form: Form) -> None:
    """Go on with another form of the program when it has the places of all waves."""
    old, known = self._places, self.form.index
    found = [old[k] for k in self.states[:, RESUME].tolist()]
    if any(place in known and place not in form.index and at not in {STEP, END}
           for place, at in zip(found, self.states[:, STATUS].tolist())): return
    self._take(form)
    status = self.states[:, STATUS].tolist()
    self.states[:, RESUME] = [0 if at == END else self._number(place) for place, at in zip(found, status)]

  # ---- turns

  def run(self, turn: int | None = None) -> bool:
    """Run until all waves have ended (True) or some have used up their turn (False)."""
    status, alone = self.states[:, STATUS], 0
    while True:
      if self.cohort.tick is not None: self._tick(status)
      if len(self._places) > len(self.form.places):  # there are waves without code, or were
        if alone == STEPS: return False
        alone += 1
        status[(status == RUN) & (self.states[:, RESUME] >= self.form.compiled)] = STEP
      if self.form is not self.code.form: self._exchange(self.code.form)
      self.left[:] = granted = np.minimum(self._turns if turn is None else turn, self.cohort.watchdog - self.executed)
      self._enter()
      over = self._left(status, granted)
      if over is not None: return over

  def entered(self) -> None:
    """Somebody has put all waves where they begin, and run compiled code once."""
    self._begin()

  def resume(self, granted: Value) -> bool:
    """After `entered`: what `run` returns. Each wave had as many instructions to run as `granted` says."""
    over = self._left(self.states[:, STATUS], granted)
    return self.run() if over is None else over

  def _enter(self) -> None:
    """Run compiled code once."""
    states = self.states
    self.form.native.run(self.context.ctypes.data, states.ctypes.data, states.shape[1] * 4, self.size)
    if self.error is not None: raise self.error

  def _left(self, status: Value, granted: Value) -> bool | None:
    """Compiled code has been left, of the instructions `granted` to each wave: what `run` returns, or None to go on.
    """
    used = granted - self.left
    self.executed += used
    self.instructions += int(used.sum())
    self.steps += int(used.max())
    if (status == END).all(): return self._finish()
    for wave in np.flatnonzero(status == STEP): self._step(int(wave))
    for wave in np.flatnonzero(status == JUMP): self._jump(int(wave))
    slept = np.flatnonzero(status == YIELD)
    for wave in slept:
      if self.executed[wave] > self.cohort.watchdog: self._expired(int(wave))
    self.states[slept, STATUS] = RUN
    self._release(status)
    self._meetings += 1
    if not slept.size and self._meetings == STEPS: slept = np.flatnonzero(status == RUN)  # only at barriers
    if not slept.size: return None
    self._meetings = 0
    self._watch(slept)
    return False

  def _tick(self, status: Value) -> None:
    """As `Cohort.ticks`, for the first wave that could run."""
    assert self.cohort.tick is not None
    try: self.cohort.tick()
    except MachineFault:
      wave = int(np.argmax(status != END))
      self.cohort.ticks(self._small(wave, self.where(wave)[0], 0))  # once more, to say where
      raise

  def account(self, stats: DispatchStats) -> None:
    """Add what was executed to the launch's statistics."""
    self._note_outside(stats)
    stats.instructions += self.instructions
    stats.steps += self.steps
    for name, n in self.interpreted.items(): stats.interpreted[name] = stats.interpreted.get(name, 0) + n
    self.code.ran(self.instructions)
    self.instructions = self.steps = 0
    self.interpreted.clear()

  def _note_outside(self, stats: DispatchStats) -> None:
    """Take the accesses to LDS that the workgroups do not have out of the sites' rows."""
    rows = self.sites[self.form.lds_sites]
    for k in np.flatnonzero(rows[:, context.OUTSIDE_LANES // 8]):
      offset = self.form.sites[int(self.form.lds_sites[k])]["offset"]
      pc, program = self.code.program.entry + int(offset), self.code.program
      not_start, end, lanes = (int(rows[k, at // 8]) for at in (
        context.OUTSIDE_START, context.OUTSIDE_END, context.OUTSIDE_LANES))
      stats.add_outside(pc, Outside(program.describe(pc), self.cohort.lds_size, ~not_start & (1 << 64) - 1, end, lanes))
    if len(rows): self.sites[self.form.lds_sites] = 0

  def _finish(self) -> bool:
    self.cohort.left = 0
    self.code.cost = float(self.executed.mean()) * self.form.weight
    return True

  def _release(self, status: Value) -> None:
    """Let the waves go on whose workgroup's live waves have all signalled its barrier: those that wait, or will."""
    waiting, states, workgroups = status == BARRIER, self.states, self.workgroups
    if not waiting.any(): return
    live, signals = self._barriers(status)
    ready = (signals >= live if self.cohort.waves_a_group > 1 else live > 0)[workgroups]
    states[ready, SIGNALS] = 0
    states[ready & ~waiting, PASSED] = 1
    states[waiting & ready, STATUS] = RUN
    if not (status == RUN).any() and not (status == STEP).any():
      wave = int(np.flatnonzero(waiting)[0])
      raise MachineFault("a barrier that some waves of a workgroup never reach", pc=self.where(wave)[0],
                         wave=int(self.numbers[wave]))

  def _barriers(self, status: Value) -> tuple[Value, Value]:
    """The live waves of each workgroup, and how often its barrier has been signalled."""
    workgroups, count = self.workgroups, len(self.cohort.live)
    signals = np.bincount(workgroups, self.states[:, SIGNALS], count).astype(np.int64)
    return np.bincount(workgroups[status != END], minlength=count), signals

  def _watch(self, slept: Value) -> None:
    """Find waves that had their turn and are in a state in which they were before: they seem to wait.

    Those get short turns. States are kept and renewed as in `deadlock.Look`.
    """
    states, kept, size = self.states, self._kept, self.size
    same = np.zeros(size, bool)
    if kept is not None:
      header = (states[:, :LEFT] == kept[:, :LEFT]).all(axis=1) & (states[:, MODE] == kept[:, MODE])
      rows = slept[header[slept]]
      same[rows] = (states[rows, LEFT + 2:] == kept[rows, LEFT + 2:]).all(axis=1)
    self._turns = np.where(same, GLANCE, np.minimum(self._turns * 2, TURN))
    status = states[:, STATUS]
    self.quiet = bool(same[(status != END) & (status != BARRIER)].all())
    self._age += 1
    if kept is None or self._age >= self._renew:
      self._kept, self._age, self._renew = states.copy(), 0, 1 if kept is None else self._renew * 2
    self.cohort.live = np.bincount(self.workgroups[status != END], minlength=len(self.cohort.live))

  def held(self) -> int:
    """Workgroups that have not ended."""
    return self.cohort.held()

  def back(self) -> Cohort:
    """Give the waves back to the reference, where they stand."""
    cohort, status = self.cohort, self.states[:, STATUS]
    cohort.runnable, cohort.parked = [], []
    for parked, groups in ((False, cohort.runnable), (True, cohort.parked)):
      rows = np.flatnonzero((status == BARRIER) if parked else (status != BARRIER) & (status != END))
      resume = self.states[rows, RESUME]
      groups += [self._group(rows[resume == place]) for place in np.unique(resume)]
    cohort.left = int(np.count_nonzero(status != END))
    cohort.live, cohort.arrived = self._barriers(status)
    if cohort.waves_a_group > 1 and "s_barrier_signal" in table(cohort.arch.isa).mnemonics:
      cohort.passed = self.states[:, PASSED].astype(bool)
    return cohort

  def _group(self, rows: Value) -> Group:
    """The waves of some rows, which stand at one place."""
    n, lanes = len(rows), self.lanes
    pc, mode = self.where(int(rows[0]))
    group = Group(self.cohort, n, pc, 0, SGPRS)
    group.mode, group.waves, group.workgroups = mode, self.numbers[rows], self.workgroups[rows]
    state = self.states[rows]
    equal = (state[:, :SGPRS] == state[0, :SGPRS]).all(axis=0)
    group.s = [state[0, k] if equal[k] else state[:, k:k + 1] for k in range(SGPRS)]
    scc = state[:, SCC:SCC + 1] != 0
    group.scc = BOOL.type(scc[0, 0]) if (scc == scc[0]).all() else scc
    vectors = state[:, HEADER:HEADER + self.vgprs * lanes].reshape(n, self.vgprs, lanes)
    group.v = [np.ascontiguousarray(vectors[:, k]) for k in range(self.vgprs)]
    group.count = int(self.executed[rows].max())
    if self.scratch is not None: group.scratch = self.scratch[rows][:, None] if n > 1 else self.scratch[rows[0]]
    exec_changed(group)
    return group

  def where(self, wave: int) -> tuple[int, int]:
    """(PC, MODE) of a wave."""
    offset, mode = self._places[int(self.states[wave, RESUME])]
    return self.code.program.entry + offset, mode

  def _expired(self, wave: int) -> None:
    self.cohort.expired(self._small(wave, self.where(wave)[0], 0))

  def registers(self, wave: int) -> tuple[Value, Value, bool]:
    """Copies of u32 [scalars], u32 [vectors, lanes] and SCC of a wave."""
    state = self.states[wave]
    return state[:SGPRS].copy(), state[HEADER:].reshape(-1, self.lanes).copy(), bool(state[SCC])

  # ---- the reference's help

  def _small(self, wave: int, pc: int, vgprs: int) -> Group:
    """A group of one wave without register values."""
    group = Group(self.cohort, 1, pc, vgprs, SGPRS)
    group.waves, group.workgroups = self.numbers[wave:wave + 1], self.workgroups[wave:wave + 1]
    if self.scratch is not None: group.scratch = self.scratch[wave]
    return group

  def _loaded(self, wave: int, pc: int, mode: int) -> Group:
    """A group of one wave with the values of its registers."""
    group, state, lanes = self._small(wave, pc, self.vgprs), self.states[wave], self.lanes
    group.mode = mode
    group.s = list(state[:SGPRS])
    group.scc = BOOL.type(state[SCC])
    group.v = list(state[HEADER:].reshape(-1, 1, lanes))
    exec_changed(group)
    return group

  def _store(self, wave: int, group: Group, before: tuple[list[Value], list[Value]]) -> None:
    """Registers that the reference replaced go back to the wave's state."""
    state, lanes = self.states[wave], self.lanes
    for k, (old, new) in enumerate(zip(before[0], group.s)):
      if new is not old: state[k] = np.asarray(new).reshape(-1)[0]
    for k, (old, new) in enumerate(zip(before[1], group.v)):
      if new is not old: state[HEADER + k * lanes:HEADER + (k + 1) * lanes] = np.asarray(new).view(np.uint32)
    state[SCC] = bool(np.asarray(group.scc).reshape(-1)[0])

  def _step(self, wave: int) -> None:
    """Interpret the instruction at which a wave stopped."""
    pc, mode = self.where(wave)
    program, cohort = self.code.program, self.cohort
    group = self._loaded(wave, pc, mode)
    cohort.live, cohort.arrived = self._barriers(self.states[:, STATUS])
    before = list(group.s), list(group.v)
    try:
      i = program.fetch(pc)
      cohort.running, cohort.seen = None, (pc, i)
      end = control.ender(i, pc)
      after: Any = pc + i.size
      with np.errstate(all="ignore"):
        if end is not None: after = end(group)
        elif (step := program.step(i, pc, mode)) is not None: step(group)
    except (Error, IndexError) as error:
      raise cohort.located(error, pc, group) from (None if isinstance(error, Error) else error)
    self.interpreted[i.mnemonic] = self.interpreted.get(i.mnemonic, 0) + 1
    self.instructions += 1
    self.executed[wave] += 1
    self._store(wave, group, before)
    if i.mnemonic == "s_barrier_signal_isfirst" or isinstance(after, Barrier): self.states[wave, SIGNALS] += 1
    status = RUN
    if isinstance(after, End) or after is End:
      self.states[wave, STATUS] = END
      return
    if isinstance(after, Barrier): status, after = BARRIER, after.pc
    elif isinstance(after, Yield): status, after = YIELD, after.pc
    elif isinstance(after, Wait):
      status, after = RUN if self.states[wave, PASSED] else BARRIER, after.pc
      self.states[wave, PASSED] = 0
    elif isinstance(after, Split):
      if after.modes is not None: group.mode = int(after.modes[0])
      after = after.pcs[0]
    self.states[wave, STATUS] = status
    self._resume(wave, int(after), group.mode)
    if self.executed[wave] > cohort.watchdog: self._expired(wave)

  def _jump(self, wave: int) -> None:
    """Go on at the address that a wave jumps to."""
    state = self.states[wave]
    state[STATUS] = RUN
    self._resume(wave, int(state[TARGET]) | int(state[TARGET + 1]) << 32, int(state[MODE]))

  def _resume(self, wave: int, pc: int, mode: int) -> None:
    """Set where a wave goes on; the code grows for a place that is new."""
    place = pc - self.code.program.entry, mode
    if place not in self.form.index:
      status = self.states[wave, STATUS]
      self.states[wave, STATUS] = END  # where this one goes on is set below
      try: self.code.grow(pc, mode)
      except MachineFault as error:
        raise self.cohort.located(error, pc, self._loaded(wave, pc, mode)) from None
      if self.form is not self.code.form: self._exchange(self.code.form)
      self.states[wave, STATUS] = status
    self.states[wave, RESUME] = self._number(place)

  def _slow(self, handle: int, index: int) -> int:
    """Serve a memory access that compiled code could not; 1 when it faults, with the error kept."""
    try: self._site(index)
    except BaseException as error: self.error = error  # no exception may pass through compiled code
    return int(self.error is not None)

  def _site(self, index: int) -> None:
    """Serve a site's access for the wave that stands there. Raises what it leads to, with its place."""
    program, wave = self.code.program, int(self._wave[0])
    site = self.form.site(index, lambda offset: program.fetch(program.entry + offset))
    pc = program.entry + site.offset
    group = self._small(wave, pc, 256)
    self.cohort.running, self.cohort.seen = None, (pc, site.instruction)
    try:
      with np.errstate(all="ignore"): self._serve(site, group)
    except (Error, IndexError) as error: raise self.cohort.located(error, pc, group) from None

  def _serve(self, site: Site, group: Group) -> None:
    lanes, data = self.lanes, self._data.reshape(16, self.lanes)
    count = max(1, site.width // 4)
    if site.kind == "scalar":
      unit = min(site.width, 4)  # what is beyond the end of a buffer is not read
      inside = min(max(int(self._addresses[1:2].view(np.int64)[0]) // unit * unit, 0), site.width)
      self._data[:count] = 0
      if inside: self._data.view(np.uint8)[:inside] = np.frombuffer(
        self.cohort.space.read(int(self._addresses[0]), inside), np.uint8)
      return
    group.s[EXEC_LO], group.s[EXEC_LO + 1] = self._mask[0], self._mask[1]
    exec_changed(group)
    if access.nobody(group): return
    if site.kind == "atomic":
      words = data[:count * (1 + ATOMICS[site.operation].compares)].copy()
      data[:count] = atomics.serve(group, site.segment, site.operation, site.width, self._addresses.copy(), words)
      return
    addresses = self._addresses.copy()[None, :]
    words = [data[k].copy()[None, :] for k in range(count)]
    i = site.instruction
    if site.segment == "scratch":
      offsets = addresses.astype(np.uint32)
      if site.kind == "load": words = access.scratch_load(group, offsets, site.width)
      else: access.scratch_store(group, offsets, words, site.width)
    elif site.segment == "flat":
      n = i.operands["vaddr"].value
      raw = addresses - np.uint64(flat_offset(i) & (1 << 64) - 1)
      group.v[n], group.v[n + 1] = raw.astype(np.uint32), (raw >> np.uint64(32)).astype(np.uint32)
      if site.kind == "load": words = flat_fetch(i, site.width)(group)
      else: flat_put(i, site.width)(group, words)
    elif site.kind == "load": words = access.words_of(access.load(group, None, addresses, site.width), site.width)
    else: access.store(group, None, addresses, words, site.width)
    if site.kind == "load":
      for k, w in enumerate(words): data[k] = np.broadcast_to(w, (1, lanes))


def _u64(values: Value) -> Value:
  """u64 [n] as pairs of u32 [n, 2]."""
  return np.ascontiguousarray(values, np.uint64).view(np.uint32).reshape(-1, 2)

