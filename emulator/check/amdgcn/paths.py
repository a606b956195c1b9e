"""What no run of a program can do wrong, by all of its paths: waits, wait states, what barriers leave under way.

The rules are those of `waits`, `nops`, `alu` and `races`, with each register's latest meeting on any path in the place
of a wave's. So a program that is proven has no such finding; one that is not may have none either.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.check.amdgcn.alu import COUNT, GUARDS_OF, PAUSES, settles, unit_of
from tinyhw.emulator.check.amdgcn.counters import COUNTERS, Order
from tinyhw.emulator.check.amdgcn.effects import SGPR0, Effects, effects
from tinyhw.emulator.check.amdgcn.nops import LONGEST, Nops
from tinyhw.emulator.check.amdgcn.states import SELECT, first_rules, roles_of, rules_of, second_rules, states_of
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import NULL, VCC_HI, VCC_LO

K = TypeVar("K")
MOST: Final = 64  # a counter counts no further: as many younger ones are more than any wait asks for
ROUNDS: Final = 200  # visits of one place, on average, after which a program counts as not proven
LDS, GLOBAL = 1, 2  # memories that an access may reach


@dataclass
class _State:
  """What may hold where some paths meet: each entry with the least that came after it."""
  waits: dict[tuple[Order, int], int] = field(default_factory=dict)  # by register: younger ones of the queue
  accesses: dict[tuple[Order, int], int] = field(default_factory=dict)  # by offset: the same
  states: dict[tuple[tuple[str, str], int, int], int] = field(default_factory=dict)  # by register and offset
  read: frozenset[int] = frozenset()  # pairs of SGPRs that a vector instruction has read
  open: frozenset[tuple[str, int]] = frozenset()  # guard, SGPR

  def copy(self) -> _State:
    return _State(dict(self.waits), dict(self.accesses), dict(self.states), self.read, self.open)

  def join(self, other: _State) -> bool:
    """Take in another path; whether that changed anything."""
    changed = [_least(self.waits, other.waits), _least(self.accesses, other.accesses),
               _least(self.states, other.states), not other.read <= self.read, not other.open <= self.open]
    self.read, self.open = self.read | other.read, self.open | other.open
    return any(changed)


def _least(mine: dict[K, int], its: dict[K, int]) -> bool:
  """Take the smaller ones; whether there were some."""
  less = {key: n for key, n in its.items() if mine.get(key, MOST + 1) > n}
  mine.update(less)
  return bool(less)


@dataclass(frozen=True)
class Proof:
  """`why` is "" for a program that is proven, else what is not. `late` are offsets of loads of global memory that may
  be under way at a barrier, `shared` and `everywhere` those of flat accesses that may, where they reach LDS, and
  global memory."""
  why: str
  late: tuple[int, ...] = ()
  shared: tuple[int, ...] = ()
  everywhere: tuple[int, ...] = ()


class _Guilty(Exception):
  """Some path may do something wrong."""


class _Paths:
  def __init__(self, code: Mapping[int, Instruction], isa: str, lanes: int, wgp: bool, targets: Iterable[int]) -> None:
    self.code, self.lanes, self.wgp = code, lanes, wgp
    self.counters, self.guards = COUNTERS[isa], GUARDS_OF.get(isa, ())
    table = next((i.table for i in code.values()), isa)
    self.rules = rules_of(table) or ()
    self.nops = Nops(self.rules, 1)
    self.effects: dict[int, Effects] = {}
    self.targets = [*targets, *(at + i.size for at, i in code.items() if i.mnemonic in {"s_swappc_b64", "s_call_b64"})]
    self.late: set[int] = set()
    self.shared: set[int] = set()
    self.everywhere: set[int] = set()
    self.reach: dict[int, int] = {}

  def does(self, at: int) -> Effects:
    known = self.effects.get(at)
    if known is None:
      known = self.effects[at] = effects(self.code[at], self.lanes)
      i = self.code[at]
      memory = LDS if known.kind in {"lds", "vmem_lds"} or known.kind.startswith("flat") else 0
      if known.kind in {"vmem_load", "vmem_store", "vmem_lds"} and "scratch" not in i.mnemonic: memory |= GLOBAL
      if known.kind.startswith("flat"): memory |= GLOBAL
      self.reach[at] = memory
    return known

  def run(self, start: int) -> None:
    at_entry: dict[int, _State] = {start: _State()}
    todo, left = [start], ROUNDS * max(1, len(self.code))
    while todo:
      at = todo.pop()
      state = at_entry[at].copy()
      while True:
        left -= 1
        if left < 0: raise _Guilty("paths that do not settle")
        i = self.code.get(at)
        if i is None: break  # where there is no code the reference says so
        self.step(state, at, i)
        after = self.after(at, i)
        if len(after) == 1 and after[0] not in at_entry and not self.met(after[0]):
          at = after[0]
          continue
        for place in after:
          known = at_entry.get(place)
          if known is None:
            at_entry[place] = state.copy()
            todo.append(place)
          elif known.join(state): todo.append(place)
        break

  def met(self, at: int) -> bool:
    """Whether several paths may come here."""
    return at in self._joins

  def after(self, at: int, i: Instruction) -> list[int]:
    name, following = i.mnemonic, at + i.size
    if name == "s_endpgm": return []
    if name in {"s_setpc_b64", "s_swappc_b64"}: return self.targets
    if name in control.DIRECT:
      target = control.target(i, at)
      return [target] if name in {"s_branch", "s_call_b64"} else [following, target]
    return [following]

  def prepare(self, start: int) -> None:
    counts: dict[int, int] = {start: 1}
    for at, i in self.code.items():
      for place in self.after(at, i): counts[place] = counts.get(place, 0) + 1
    self._joins = {at for at, n in counts.items() if n > 1}

  def step(self, state: _State, at: int, i: Instruction) -> None:
    does = self.does(at)
    self.check_waits(state, at, does)
    if self.guards: self.alu(state, at, i, does)
    if self.rules: self.states(state, at, i, does)
    if does.kind: self.issue(state, at, does)
    else: self.wait(state, i)
    if i.mnemonic in {"s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst"}: self.barrier(state)

  def check_waits(self, state: _State, at: int, does: Effects) -> None:
    own = self.counters.events.get(does.kind, ())
    for order, register in state.waits:
      if register in does.reads: raise _Guilty(f"a wait before {at:#x}")
      if register in does.writes and not (order[1] and order in own): raise _Guilty(f"a wait before {at:#x}")
    if self.reach[at] & LDS:
      for _, offset in state.accesses:
        if self.does(offset).kind == "vmem_lds": raise _Guilty(f"loads to LDS under way at {at:#x}")

  def issue(self, state: _State, at: int, does: Effects) -> None:
    for order in self.counters.events.get(does.kind, ()):
      for table in (state.waits, state.accesses):
        for key, n in table.items():
          if key[0] == order: table[key] = min(n + 1, MOST)
      for r in does.writes: state.waits[order, r] = 0
      if self.reach[at]: state.accesses[order, at] = 0

  def wait(self, state: _State, i: Instruction) -> None:
    if i.mnemonic in self.counters.wait_all:
      state.waits.clear()
      state.accesses.clear()
      return
    limits = self.counters.waits.get(i.mnemonic)
    if limits is None or "sdst" in i.operands and i.operands["sdst"].value != NULL: return
    for counter, pieces in limits.items():
      limit = shift = 0
      for bit, width in pieces:
        limit |= (i.fields["simm16"] >> bit & (1 << width) - 1) << shift
        shift += width
      for table in (state.waits, state.accesses):
        for key, n in [*table.items()]:
          if key[0][0] == counter and (n >= limit if key[0][1] else not limit): del table[key]

  def barrier(self, state: _State) -> None:
    """What is under way counts as done after it."""
    for _, at in state.accesses:
      reach, kind = self.reach[at], self.does(at).kind
      if kind.startswith("flat"): self.shared.add(at)
      elif reach & LDS: raise _Guilty(f"an access to LDS at {at:#x} that is under way at a barrier")
      if not self.wgp or not reach & GLOBAL: continue
      if kind == "flat_store":
        self.everywhere.add(at)
        continue
      if kind not in {"vmem_load", "flat_load"}: raise _Guilty(f"a store at {at:#x} that is under way at a barrier")
      self.late.add(at)

  def alu(self, state: _State, at: int, i: Instruction, does: Effects) -> None:
    unit = unit_of(i)
    reads = [r - SGPR0 for r in does.reads if SGPR0 <= r < SGPR0 + COUNT]
    for guard in self.guards:
      if unit and unit in guard.readers and any((guard.name, r) in state.open for r in reads):
        raise _Guilty(f"{guard.wait} {guard.name}(0) before {at:#x}")
    for guard in self.guards:
      if settles(guard, i, does):
        state.open = frozenset(x for x in state.open if x[0] != guard.name)
    if does.kind or i.mnemonic.startswith(PAUSES):
      state.read, state.open = frozenset(), frozenset()
      return
    if unit == "VALU": state.read |= {r // 2 for r in reads}
    elif unit == "SALU" and reads:  # which waits for what vector instructions write
      mine = {g.name for g in self.guards if g.writer == "VALU"}
      state.open = frozenset(x for x in state.open if x[0] not in mine)
    for r in does.writes:
      if not SGPR0 <= r < SGPR0 + COUNT: continue
      code = r - SGPR0
      state.open = frozenset(x for x in state.open if x[1] != code)
      for guard in self.guards:
        its = guard.writer == unit and guard.vcc in {None, code in {VCC_LO, VCC_HI}}
        if its and code // 2 in state.read: state.open |= {(guard.name, code)}

  def states(self, state: _State, at: int, i: Instruction, does: Effects) -> None:
    roles = roles_of(i)
    for rule in second_rules(self.rules, roles):
      registers = SELECT[rule.by](i, does)
      if not registers: continue
      for (key, register, other), since in state.states.items():
        if key != (rule.first, rule.of) or register not in registers or since >= rule.states: continue
        if since < self.nops.needed(rule, i, does, self.code[other]): raise _Guilty(f"wait states before {at:#x}")
    by = states_of(i)
    state.states = {k: n + by for k, n in state.states.items() if n + by < LONGEST}
    for key in first_rules(self.rules, roles):
      for r in SELECT[key[1]](i, does):
        for known in [k for k in state.states if k[0] == key and k[1] == r]: del state.states[known]
        state.states[key, r, at] = 0


def prove(code: Mapping[int, Instruction], starts: Iterable[int], isa: str, lanes: int, wgp: bool,
          targets: Iterable[int] = ()) -> Proof:
  """Look at all paths of a program: its instructions by offset, where waves begin, and where else its own jumps by
  register lead (`targets`; behind calls as well). `wgp` says that workgroups run in WGP mode."""
  try:
    paths = _Paths(code, isa, lanes, wgp, targets)
    for start in starts:
      paths.prepare(start)
      paths.run(start)
  except _Guilty as guilty: return Proof(str(guilty))
  return Proof("", *(tuple(sorted(x)) for x in (paths.late, paths.shared, paths.everywhere)))
