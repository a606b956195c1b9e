"""The observer that checks AMD's machine code and turns what the checks see into findings."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.amdgcn.fields import program_field
from tinyhw.emulator.amdgcn.occupancy import unfit
from tinyhw.emulator.check.amdgcn import price
from tinyhw.emulator.check.amdgcn.alu import GUARDS_OF, AluWaits
from tinyhw.emulator.check.amdgcn.counters import COUNTERS
from tinyhw.emulator.check.amdgcn.effects import SGPR0, Effects, effects, gives, indices, moved, name_of
from tinyhw.emulator.check.amdgcn.nops import Nops
from tinyhw.emulator.check.amdgcn.races import Race, Races, Shadow
from tinyhw.emulator.check.amdgcn.states import rules_of
from tinyhw.emulator.check.amdgcn.undefined import Undefined, Use, set_up_registers
from tinyhw.emulator.check.amdgcn.waits import Waits
from tinyhw.emulator.check.bounds import UNKNOWN, Bounds
from tinyhw.emulator.check.holes import Holes
from tinyhw.emulator.check.part import Part
from tinyhw.emulator.check.races import ATOMIC, COMPARE, PLAIN, Memory
from tinyhw.emulator.check.report import Finding
from tinyhw.emulator.observe import Access
from tinyhw.emulator.simt import Cohort, Group, Stats
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_HI, EXEC_LO

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker


_32 = np.uint64(32)


RACES: Final = frozenset({"race", "workgroup-race"})


class CheckedWaves:
  """What the checks know of the waves of one cohort."""

  def __init__(self, cohort: Cohort, isa: str, memory: Memory, holes: Holes | None) -> None:
    group = cohort.runnable[0]
    self.first, self.count = int(group.waves[0]), group.size
    self.a_group = int(cohort.live[0])
    self.first_workgroup = self.first // self.a_group
    self.waits = Waits(COUNTERS[isa], group.size)
    guards = GUARDS_OF.get(isa)
    self.alu = None if guards is None else AluWaits(guards, group.size)
    rules = rules_of(cohort.arch.table)
    self.nops = None if rules is None else Nops(rules, group.size)
    wgp = bool(program_field(isa, "RSRC1", "WGP_MODE", cohort.dispatch.rsrc1))
    self.races = Races(self.count, self.a_group, self.first, cohort.lds_size, memory, wgp)
    self.undefined = None if holes is None else Undefined(cohort, holes, set_up_registers(cohort.dispatch, cohort.arch))
    self.barrier = np.zeros(self.count, np.int64)  # PC of the barrier at which each wave stands or stood last
    self.waiting: set[int] = set()  # waves that wait for a split barrier
    self.end = np.zeros(self.count, np.int64)  # PC at which each wave has ended


# state of the cohort, effects, indices of the waves, EXEC as u64 of each, the instruction with its actual registers
Now = tuple[CheckedWaves, Effects, Any, Value, Instruction]


class Hazards(Part):
  """Checks a dispatch of AMD's machine code."""

  def __init__(self, checker: Checker) -> None:
    super().__init__(checker)
    self._effects: dict[tuple[Instruction, int, tuple[int, ...] | None], tuple[Instruction, Effects]] = {}
    self._now: Now | None = None
    self._states: dict[Cohort, CheckedWaves] = {}
    self._segments: set[str] = set()
    self._mask: Value | None = None  # the lanes under which the current instruction runs
    self._entry, self._isa = 0, ""
    self._memory = Memory(Shadow)
    self._holes: Holes | None = None
    self._bounds: Bounds | None = None
    self._program: Any = None
    self._unfit: list[str] = []

  # ---- what the interpreter shows

  def dispatch(self, space: AddressSpace, arch: Arch, d: Any) -> None:
    self._entry, self._isa = d.entry_pc, arch.isa
    self._states.clear()
    self._effects.clear()
    self._memory = Memory(Shadow)
    self._holes = Holes(space) if "undefined" in self.kinds else None
    self._bounds = Bounds(space, d.lds_size, self.checker.used(), "LDS")
    self._unfit = unfit(arch, d)

  def cohort(self, cohort: Cohort) -> None:
    self._program = cohort.program
    for done in [c for c in self._states if not c.left]: del self._states[done]
    self._states[cohort] = CheckedWaves(cohort, self._isa, self._memory, self._holes)
    while self._unfit: self._found(cohort, "occupancy", self._unfit.pop(0), self._entry)

  def before(self, group: Group, pc: int, instruction: Instruction) -> None:
    now = self._now = self._at(group, instruction)
    state, does, w, active, actual = now
    if state.waiting: self._passed(state, group.waves - state.first)
    self._segments = set()
    for reading, (counter, register, wave, lane, other) in state.waits.find(w, active, does):
      what = "read" if reading else "overwritten"
      self._found(group.cohort, "wait", f"{name_of(register)} is {what} before {counter} says that it is loaded", pc,
                  other=other, wave=int(group.waves[wave]), lane=lane if register < SGPR0 else None,
                  register=name_of(register))
    if state.alu is not None:
      for guard, register, wave, other in state.alu.find(w, actual, does):
        self._found(group.cohort, "wait", f"{name_of(register)} is read before {guard.wait} {guard.name}(0)", pc,
                    other=other, wave=wave + state.first, register=name_of(register), hint=guard.hint)
    if state.nops is not None:
      for soon in state.nops.find(w, actual, does):
        where = "" if soon.register is None else f" in {name_of(soon.register)}"
        self._found(group.cohort, "wait-states",
                    f"{soon.needed} wait states are needed behind {soon.rule.first}{where} and there are {soon.found} "
                    f"(CDNA3 ISA manual, section {soon.rule.section})", pc, other=soon.other_pc,
                    wave=soon.wave + state.first, register=None if soon.register is None else name_of(soon.register))
    if state.undefined is not None:
      self._mask = group.mask
      for use in state.undefined.before(group, w, pc, instruction, actual, does): self._undefined(group.cohort, use, pc)

  def _undefined(self, cohort: Cohort, use: Use, pc: int) -> None:
    self._found(cohort, "undefined", use.message, pc, other=use.origin_pc,
                wave=use.wave + self._states[cohort].first, lane=use.lane, register=use.register)

  def access(self, group: Group, pc: int, instruction: Instruction, access: Access) -> None:
    self._segments.add(access.segment)
    assert self._now is not None
    state, _, w, _, instruction = self._now
    if state.undefined is not None:
      for use in state.undefined.access(group, w, pc, instruction, access): self._undefined(group.cohort, use, pc)
    if access.segment not in {"lds", "global"}: return
    if "bounds" in self.kinds: self._check_bounds(group, pc, access)
    if not self.kinds & RACES: return
    returns = access.kind == "atomic" and gives(instruction)
    compares = "cmps" in instruction.mnemonic
    how = PLAIN if access.kind != "atomic" else COMPARE if compares else ATOMIC
    across = "workgroup-race" in self.kinds
    for race in state.races.touch(group.waves - state.first, access.segment, access.kind, access.addresses,
                                  access.width, access.active, pc, how, returns, across, access.data):
      self._race(group.cohort, access, race, pc)

  def outside(self, group: Group, pc: int, instruction: Instruction, access: Access) -> None:
    self._check_bounds(group, pc, access)

  def _check_bounds(self, group: Group, pc: int, access: Access) -> None:
    assert self._bounds is not None
    found = self._bounds.find(access)
    if found is not None:
      row, lane, address, message = found
      self._found(group.cohort, "bounds", message, pc, wave=int(group.waves[row]), lane=lane, address=address)

  def _race(self, cohort: Cohort, access: Access, race: Race, pc: int) -> None:
    a_group = self._states[cohort].a_group
    if race.wave == race.other_wave:
      what = "overwritten" if race.write else "read"
      return self._found(cohort, "wait", f"LDS at {race.address:#x} is {what} before its load is waited for", pc,
                         other=race.other_pc, wave=race.wave, lane=race.lane, address=race.address)
    within = race.wave // a_group == race.other_wave // a_group
    verbs = [("write" if w else "read") + "s" for w in (race.write, race.other_write)]
    memory = "LDS" if access.segment == "lds" else "global memory"
    other = f"wave {race.other_wave % a_group}" if within else f"workgroup {race.other_wave // a_group}"
    self._found(cohort, "race" if within else "workgroup-race",
                f"{verbs[0]} {memory} at {race.address:#x}, which {other} {verbs[1]} with nothing that orders them", pc,
                other=race.other_pc, wave=race.wave, lane=race.lane, address=race.address)

  def after(self, group: Group, pc: int, instruction: Instruction) -> None:
    assert self._now is not None
    state, does, w, active, instruction = self._now
    if state.alu is not None: state.alu.issue(w, pc, instruction, does)
    if state.nops is not None: state.nops.issue(w, pc, instruction, does)
    if state.undefined is not None: state.undefined.after(group, w, self._mask, does)
    if does.kind:
      numbers = state.waits.issue(w, active, pc, does, self._segments)
      if self._segments: state.races.issued(group.waves - state.first, numbers, state.waits, pc,
                                               does.kind == "vmem_lds")
    elif instruction.mnemonic == "s_barrier_wait": state.waiting.update((group.waves - state.first).tolist())
    else: state.waits.wait(group, w, instruction)

  def _passed(self, state: CheckedWaves, w: Value) -> None:
    """Waves that waited for a split barrier go on."""
    behind = state.waiting.intersection(w.tolist())
    if behind: state.races.learn(np.array(sorted(behind)))
    state.waiting -= behind

  def barrier(self, group: Group, pc: int) -> None:
    state = self._states[group.cohort]
    w = group.waves - state.first
    state.barrier[w] = pc
    state.races.signal(w, state.waits)

  def released(self, cohort: Cohort, workgroups: Any) -> None:
    state = self._states[cohort]
    rows = (workgroups[:, None] * state.a_group + np.arange(state.a_group)).astype(np.intp)
    state.races.meet(workgroups)
    if cohort.passed is None: state.races.learn(rows.reshape(-1))
    if state.a_group == 1: return
    at, ended = state.barrier[rows], state.end[rows]
    for k in np.flatnonzero((ended > 0).any(axis=1) | (at != at[:, :1]).any(axis=1)):
      self._divergent(cohort, rows[k] + state.first, at[k], ended[k])

  def _divergent(self, cohort: Cohort, waves: Value, at: Value, ended: Value) -> None:
    """The waves of a workgroup have met at a barrier that is not the same for all."""
    living = np.flatnonzero(ended == 0)
    pc = int(at[living[0]])
    elsewhere = living[at[living] != pc]
    if len(elsewhere):
      k = int(elsewhere[0])
      self._found(cohort, "barrier", f"a wave waits here while wave {k} of its workgroup waits at another barrier", pc,
                  other=int(at[k]), wave=int(waves[living[0]]))
    for k in np.flatnonzero(ended)[:1]:
      self._found(cohort, "barrier", f"a wave waits here though wave {k} of its workgroup has ended", pc,
                  other=int(ended[k]), wave=int(waves[living[0]]))

  def ended(self, group: Group) -> None:
    state = self._states[group.cohort]
    state.end[group.waves - state.first] = group.cohort.seen[0]

  def end(self, stats: Stats) -> None:
    if self._program is not None: price.ran(self._program, stats)
    self._states.clear()
    self._effects.clear()
    if "bounds" in self.kinds and self._bounds is not None and self._bounds.unknown:
      self.unseen(UNKNOWN)
    super().end(stats)

  # ---- helpers

  def _at(self, group: Group, i: Instruction) -> Now:
    """What the waves are about to execute; registers that M0 moves have the numbers that it gives them."""
    lanes = group.cohort.lanes
    m0 = indices(group, i)
    known = self._effects.get((i, lanes, m0))
    if known is None:
      actual = i if m0 is None else moved(i, m0)
      known = self._effects[i, lanes, m0] = actual, effects(actual, lanes)
    actual, does = known
    state = self._states[group.cohort]
    w: Value | slice = slice(None) if group.size == state.count else group.waves - state.first
    low = np.asarray(group.s[EXEC_LO]).astype(np.uint64)
    if lanes == 64: low = low | np.asarray(group.s[EXEC_HI]).astype(np.uint64) << _32
    return state, does, w, np.broadcast_to(low.reshape(-1), (group.size,)), actual

  def _found(self, cohort: Cohort, kind: str, message: str, pc: int, *, other: int | None = None,
             wave: int | None = None, lane: int | None = None, register: str | None = None,
             address: int | None = None, hint: str | None = None) -> None:
    """Add a finding; `wave` counts from the dispatch's first."""
    if kind not in self.kinds: return
    state, describe = self._states[cohort], cohort.program.describe
    finding = Finding(
      kind, message, pc, describe(pc), self._entry, other, None if other is None else describe(other),
      None if wave is None else wave // state.a_group, None if wave is None else wave % state.a_group, lane, register,
      address, 1, self.checker.line(pc), self.checker.line(other), hint)
    self.add(finding)
