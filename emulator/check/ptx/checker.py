"""The observer that checks PTX and turns what the checks see into findings."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.memory import AddressSpace
from tinyhw.emulator.check.bounds import UNKNOWN, Bounds
from tinyhw.emulator.check.holes import Holes
from tinyhw.emulator.check.part import Part
from tinyhw.emulator.check.ptx import price
from tinyhw.emulator.check.ptx.effects import Effects, effects
from tinyhw.emulator.check.ptx.races import (
  ATOMIC,
  BULK,
  COMPARE,
  COPY,
  MAKES,
  MATRIX,
  OWN,
  PLAIN,
  PROXIES,
  STORE,
  TENSOR,
  Race,
  Races,
  Shadow,
  Touch,
)
from tinyhw.emulator.check.ptx.undefined import Undefined, Use, name_of, shared_start
from tinyhw.emulator.check.ptx.waits import Products
from tinyhw.emulator.check.races import Memory
from tinyhw.emulator.check.report import Finding
from tinyhw.emulator.debug import traffic
from tinyhw.emulator.observe import Access, Copy
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps, lanes_of
from tinyhw.emulator.ptx.launch.grid import Dispatch, system_shared
from tinyhw.emulator.ptx.launch.occupancy import unfit
from tinyhw.emulator.ptx.program import Code, Shown
from tinyhw.emulator.ptx.tensorcore import wgmma
from tinyhw.emulator.ptx.tensorcore.tmem import COLUMNS, WORDS
from tinyhw.emulator.simt import Cohort, Group, Stats

if TYPE_CHECKING:
  from tinyhw.emulator.check.checker import Checker

from tinyhw.emulator.values.ops import Array as Value

_AGENTS: Final = {"": OWN, "mbarrier": BULK, "bulk_group": STORE, "wgmma": MATRIX, "tcgen05": TENSOR}
_RACES: Final = frozenset({"race", "workgroup-race", "wait"})


class CheckedWarps:
  """What the checks know of the warps of one cohort."""

  def __init__(self, cohort: Blocks, holes: Holes | None) -> None:
    group = cohort.runnable[0]
    self.first, self.count, self.a_block = int(group.waves[0]), group.size, cohort.shared.warps
    self.races = Races(self.count, self.a_block * cohort.shared.clustered, self.first)
    self.shared = Shadow(len(cohort.lds))
    self.tensor: Shadow | None = None  # of the words of tensor memory
    self.blocks = len(cohort.threads)
    self.products = Products(self.count)
    # by barriers: the warps of which not all threads have come to one, with its PC: those that have
    self.parts: dict[Any, dict[tuple[int, int], Value]] = {}
    self.inits: dict[int, tuple[int, int, int, int]] = {}  # who initialized an mbarrier, when, where, its lane
    self.undefined = None if holes is None else Undefined(cohort, self.count, holes)


class Hazards(Part):
  """Checks a launch of a PTX kernel."""

  def __init__(self, checker: Checker) -> None:
    super().__init__(checker)
    self._states: dict[Cohort, CheckedWarps] = {}
    self._effects: dict[int, tuple[Any, Effects]] = {}
    self._memory = Memory(Shadow)
    self._holes: Holes | None = None
    self._bounds: Bounds | None = None
    self._now: tuple[CheckedWarps, Effects, Value, Value, Code] | None = None
    self._issued = False
    self._unfit: list[str] = []
    self._belongs: Value = np.ones(0, bool)  # which bytes of a block's shared memory are in an array

  # ---- what the interpreter shows

  def dispatch(self, space: AddressSpace, arch: Any, d: Dispatch) -> None:
    from tinyhw.emulator.debug.ptx.code import PtxCode
    self.program, self.code = d.program, PtxCode(d.program)
    self._holes = Holes(space) if "undefined" in self.kinds else None
    total = system_shared(d).stop
    self._bounds = Bounds(space, total, {**self.checker.used(), **variables(d)}, "shared memory")
    self._belongs = arrays(d, total)
    self._unfit = unfit(d)

  def cohort(self, cohort: Cohort) -> None:
    assert isinstance(cohort, Blocks)
    for done in [c for c in self._states if not c.left]: del self._states[done]
    self._states[cohort] = CheckedWarps(cohort, self._holes)
    while self._unfit: self._found(cohort, "occupancy", self._unfit.pop(0), self.program.entry)

  def before(self, group: Group, pc: int, instruction: Shown) -> None:
    assert isinstance(group, Warps)
    state, code = self._states[group.cohort], self.program.at(pc)
    line = instruction.line
    known = self._effects.get(id(line))
    if known is None: known = self._effects[id(line)] = line, effects(line)
    does, w = known[1], group.waves - state.first
    lanes = group.lanes
    if does.guard is not None and does.opcode != "bra":
      p = np.broadcast_to(group.v[does.guard], lanes.shape)
      lanes = lanes & (~p if does.negated else p)
    self._now, self._issued = (state, does, w, lanes, code), False
    if does.members is not None: self._check_mask(group, pc, instruction, does, lanes, code)
    for what, register, row, other in state.products.find(code.base, w, does, state.races):
      self._found(group.cohort, "wait", f"{name_of(code, register)} {what}", pc, other=other,
                  wave=int(group.waves[row]), register=name_of(code, register))
    if state.undefined is not None:
      for use in state.undefined.before(group, w, lanes, code, instruction, does): self._undefined(group, use, pc)

  def _undefined(self, group: Group, use: Use, pc: int) -> None:
    self._found(group.cohort, "undefined", use.message, pc, other=use.origin_pc, wave=int(group.waves[use.row]),
                lane=use.lane, register=use.register)

  def _check_mask(self, group: Warps, pc: int, i: Shown, does: Effects, lanes: Value, code: Code) -> None:
    assert does.members is not None
    bits = operands.full(group, operands.reader(code, i.line, does.members, "u32")(group))
    first = bits[np.arange(group.size), lanes.argmax(axis=1)][:, None]
    if not (lanes & (bits != first)).any(): outside, unlike = lanes & ~lanes_of(first), np.zeros_like(lanes)
    else:  # parts of a warp may have masks of their own: whom a thread names has to name the same
      named = lanes_of(bits.reshape(-1, 1)).reshape(*bits.shape, -1) & lanes[:, None, :]
      outside = lanes & ~named.diagonal(axis1=1, axis2=2)
      unlike = lanes & (named & (bits[:, :, None] != bits[:, None, :])).any(axis=2)
    for bad, text in ((unlike, "threads of a warp name different masks"),
                      (outside & ~unlike, "a thread executes this, and the mask leaves it out")):
      if not bad.any(): continue
      row, lane = map(int, np.argwhere(bad)[0])
      self._found(group.cohort, "mask", f"{text} ({int(bits[row, lane]):#010x})", pc, wave=int(group.waves[row]),
                  lane=lane)

  def access(self, group: Group, pc: int, instruction: Shown, access: Access) -> None:
    assert isinstance(group, Warps) and self._now is not None
    state, does, _, _, _ = self._now
    w = group.waves - state.first
    if state.undefined is not None:
      for use in state.undefined.access(group, w, pc, does, access): self._undefined(group, use, pc)
    if access.segment not in {"lds", "global"}: return
    if "bounds" in self.kinds: self._check_bounds(group, pc, access)
    if "bank" in self.kinds and access.segment == "lds": self._check_banks(group, pc, access)
    if not self.kinds & _RACES or not access.active.any(): return
    row, lane = np.nonzero(access.active)
    start, wave = access.addresses[access.active], w[row]
    shared = access.segment == "lds"
    how, writes, kind = PLAIN, access.kind != "load", OWN
    if does.opcode in {"atom", "red"}:
      how = COMPARE if "cas" in does.modifiers else ATOMIC
      state.races.speak(wave, start, does.opcode == "atom")
    elif does.opcode == "mbarrier": how = MAKES if does.modifiers & {"init", "inval"} else ATOMIC
    elif does.strong and does.opcode in {"ld", "st"}:
      how = ATOMIC
      state.races.speak(wave, start, does.opcode == "ld", does.opcode == "st")
    elif does.opcode == "cp" and "mbarrier" in does.modifiers: how = ATOMIC  # it tells of copies, and is none
    elif does.opcode == "cp" and writes:
      kind = COPY
      state.races.issue(COPY, np.unique(wave))
    byte = (start[:, None] + np.arange(access.width, dtype=np.uint64)).reshape(-1)
    if shared:
      at = np.where(access.active, access.addresses, np.uint64(0)).astype(np.int64)
      places = (shared_start(group, at) + (at & 0xFFFFFF))[access.active]
      index = (places[:, None] + np.arange(access.width)).reshape(-1)
      index = np.clip(index, 0, state.shared.size - 1)  # one beyond it is a fault, which comes next
      if "mbarrier" in {does.opcode, *does.modifiers}: self._initialized(group, state, does, wave, lane, places, pc)
    else: index = self._memory.index(start, access.width)
    touch = Touch(self._shadow(state, shared), index, np.repeat(wave, access.width),
                  np.repeat(lane, access.width), byte, writes, how, kind,
                  None if access.data is None else access.data[access.active].reshape(-1))
    self._touched(group, state, touch, pc, shared)

  def _initialized(self, group: Warps, state: CheckedWarps, does: Effects, wave: Value, lane: Value, places: Value,
                   pc: int) -> None:
    """An mbarrier is initialized, or used: the others' uses must come behind that."""
    races = state.races
    for w, at, k in zip(wave.tolist(), places.tolist(), lane.tolist()):
      if does.modifiers & {"init", "inval"}:
        state.inits[at] = w, int(races.known[w, races.own[w]]), pc, k
        continue
      first, clock, other, thread = state.inits.get(at, (w, 0, 0, 0))
      if first == w or races.initialized(w, first) >= clock: continue
      name = (first + state.first) % state.a_block * LANES + thread
      self._found(group.cohort, "race", f"uses the mbarrier at {at % group.cohort.lds_size:#x}, which thread {name} "
                  "initializes with nothing that orders them", pc, other=other, wave=w + state.first, lane=k,
                  address=at)

  def copied(self, group: Group, pc: int, instruction: Shown, copy: Copy) -> None:
    assert isinstance(group, Warps)
    state = self._states[group.cohort]
    kind, wave = _AGENTS[copy.how], int(group.waves[copy.row]) - state.first
    if kind != OWN: state.races.issue(kind, np.array([wave]))
    if state.undefined is not None: state.undefined.copied(copy)
    if copy.segment == "tensor": return self._in_tensor_memory(group, state, copy, wave, kind, pc)
    shared = copy.segment == "lds"
    byte = (copy.addresses[:, None] + np.arange(copy.width, dtype=np.uint64)).reshape(-1)
    if shared: index = np.minimum(copy.block * group.cohort.lds_size + byte.astype(np.int64), state.shared.size - 1)
    else: index = self._memory.index(byte, 1)
    touch = Touch(self._shadow(state, shared), index, np.full(byte.size, wave),
                  np.full(byte.size, copy.lane), byte, copy.kind == "store", ATOMIC if copy.atomic else PLAIN, kind,
                  copy.data)
    self._touched(group, state, touch, pc, shared)

  def _in_tensor_memory(self, group: Warps, state: CheckedWarps, copy: Copy, wave: int, kind: int, pc: int) -> None:
    if state.tensor is None: state.tensor = Shadow(state.blocks * WORDS)
    at = copy.addresses.astype(np.int64)
    index = copy.block * WORDS + (at >> 16) * COLUMNS + (at & 0xFFFF)
    touch = Touch(state.tensor, index, np.full(index.size, wave), np.full(index.size, copy.lane), copy.addresses,
                  copy.kind == "store", PLAIN, kind, tensor=True)
    for race in state.races.touch(touch, pc, False): self._race(group.cohort, state, race, kind, pc, "tensor memory")

  def _shadow(self, state: CheckedWarps, shared: bool) -> Shadow:
    """That of the block's shared memory, or of global memory."""
    found = state.shared if shared else self._memory.shadow
    assert isinstance(found, Shadow)
    return found

  def _touched(self, group: Warps, state: CheckedWarps, touch: Touch, pc: int, shared: bool) -> None:
    across = "workgroup-race" in self.kinds and not shared
    memory = "shared memory" if shared else "global memory"
    for race in state.races.touch(touch, pc, across): self._race(group.cohort, state, race, touch.kind, pc, memory)

  def _race(self, cohort: Cohort, state: CheckedWarps, race: Race, kind: int, pc: int, memory: str) -> None:
    verbs = [("write" if w else "read") + "s" for w in (race.write, race.other_write)]
    at = f"{verbs[0]} {memory} at {race.address:#x}, which"
    within, other = "race", f"thread {race.other_wave % state.a_block * LANES + race.other_lane}"
    late = {COPY: "a cp.async", BULK: "a copy in bulk", STORE: "a copy in bulk", MATRIX: "a product of wgmma",
            TENSOR: "tcgen05"}
    if race.other_kind != OWN:
      wait = {COPY: "cp.async.wait_group", BULK: "wait for its mbarrier", STORE: "cp.async.bulk.wait_group",
              MATRIX: "wgmma.wait_group", TENSOR: "tcgen05.commit, wait for its mbarrier"}[race.other_kind]
      text = f"{at} {late[race.other_kind]} {verbs[1]} that no {wait} and barrier behind it says to be done"
      within = "wait" if race.other_wave == race.wave else "race"
    elif kind in PROXIES and not race.write and race.other_write and memory != "tensor memory":
      text = f"{at} {other} {verbs[1]} with no fence.proxy.async and barrier between them"
    elif race.other_wave == race.wave:
      text = f"{at} {other} of its warp {verbs[1]} with no .sync between them"
    elif race.wave // state.races.a_cluster != race.other_wave // state.races.a_cluster:
      within, text = "workgroup-race", (f"{at} block {race.other_wave // state.a_block} {verbs[1]} with nothing that "
                                        "orders them")
    else: text = f"{at} {other} {verbs[1]} with nothing that orders them"
    self._found(cohort, within, text, pc, other=race.other_pc, wave=race.wave, lane=race.lane, address=race.address)

  def _check_bounds(self, group: Warps, pc: int, access: Access) -> None:
    assert self._bounds is not None
    if access.segment == "global":
      found = self._bounds.find(access)
      if found is not None:
        row, lane, address, message = found
        self._found(group.cohort, "bounds", message, pc, wave=int(group.waves[row]), lane=lane, address=address)
      return
    if self._belongs.all(): return
    at = np.where(access.active, access.addresses, np.uint64(0)).astype(np.int64) & 0xFFFFFF
    ends = np.minimum(at[:, :, None] + np.arange(access.width), len(self._belongs) - 1)
    bad = access.active & ~self._belongs[ends].all(axis=2)
    if not bad.any(): return
    row, lane = map(int, np.argwhere(bad)[0])
    address = int(access.addresses[row, lane])
    self._found(group.cohort, "bounds", f"touches shared memory at {address:#x}, where no array is", pc,
                wave=int(group.waves[row]), lane=lane, address=address)

  def _check_banks(self, group: Warps, pc: int, access: Access) -> None:
    cycles, ideal = traffic.lds_cycles(access.addresses, access.active, access.width, access.kind == "atomic")
    if not (cycles > ideal).any(): return
    row = int((cycles - ideal).argmax())
    self._found(group.cohort, "bank", f"takes {int(cycles[row])} cycles, {int(ideal[row])} without bank conflicts", pc,
                wave=int(group.waves[row]))

  def after(self, group: Group, pc: int, instruction: Shown) -> None:
    assert self._now is not None
    state, does, w, lanes, code = self._now
    if state.undefined is not None: state.undefined.after(w, lanes, code, pc, does)
    state.products.after(code, w, pc, does, state.races)
    m, rows = does.modifiers, w[lanes.any(axis=1)]
    if does.together: state.races.synced(w)
    if does.opcode == "cp" and m & {"commit_group", "wait_group", "wait_all"}:
      kind = STORE if "bulk" in m else COPY
      if "commit_group" in m: state.races.commit(kind, rows)
      else: state.races.wait(kind, rows, None if "wait_all" in m else _number(instruction))
    elif does.opcode == "wgmma" and m & {"commit_group", "wait_group"}:
      if "commit_group" in m: state.races.commit(MATRIX, rows)
      else: state.races.together(rows, wgmma.others(rows, state.a_block), _number(instruction))
    elif does.opcode == "fence" and "async" in m: state.races.fenced(rows)
    elif does.opcode in {"fence", "membar"} and not m & {"proxy", "acquire"}:
      state.races.released(rows, "mbarrier_init" in m)

  # ---- order

  def _rows(self, group: Group, rows: Any) -> tuple[CheckedWarps, Value]:
    state = self._states[group.cohort]
    w = group.waves - state.first
    return state, w if rows is None else w[np.asarray(rows, np.intp)]

  def told(self, group: Group, rows: Any, token: Any, how: str = "") -> None:
    state, w = self._rows(group, rows)
    state.races.told(w, token, how)
    if token[0] == "bar": self._came(group, np.asarray(rows, np.intp), w, state.parts.setdefault(token, {}))

  def _came(self, group: Group, rows: Value, w: Value, parts: dict[tuple[int, int], Value]) -> None:
    """Warps come to a barrier. Where it is for whole warps, all of their threads that have not ended have to come to
    the same instruction before the barrier is complete: how many come at once is the interpreter's affair."""
    assert isinstance(group, Warps)
    pc, shown = group.cohort.seen
    i = shown.line.instruction
    if i.opcode != "bar" and "aligned" not in i.modifiers: return
    lanes = group.lanes[rows]
    for k in np.flatnonzero((group.cohort.alive_lanes[w] & ~lanes).any(axis=1)).tolist():
      at = int(w[k]), pc
      parts[at] = lanes[k] | parts[at] if at in parts else lanes[k]

  def complete(self, cohort: Cohort, token: Any) -> None:
    state = self._states[cohort]
    state.races.complete(token)
    for (w, pc), lanes in state.parts.pop(token, {}).items():
      assert isinstance(cohort, Blocks)
      missing = cohort.alive_lanes[w] & ~lanes
      if missing.any(): self._found(
        cohort, "barrier", f"threads of a warp come to this barrier, which is for whole warps, without thread "
        f"{int(missing.argmax())} of the warp", pc, wave=w + state.first, lane=int(lanes.argmax()))

  def heard(self, group: Group, rows: Any, token: Any) -> None:
    state, w = self._rows(group, rows)
    state.races.heard(w, token)

  def end(self, stats: Stats) -> None:
    price.ran(self.program, stats)
    self._states.clear()
    self._effects.clear()
    if "bounds" in self.kinds and self._bounds is not None and self._bounds.unknown: self.unseen(UNKNOWN)
    super().end(stats)

  # ---- helpers

  def _found(self, cohort: Cohort, kind: str, message: str, pc: int, *, other: int | None = None,
             wave: int | None = None, lane: int | None = None, register: str | None = None,
             address: int | None = None) -> None:
    """Add a finding; `wave` counts from the launch's first."""
    if kind not in self.kinds: return
    state, describe, where = self._states[cohort], self.program.describe, self.code.where
    self.add(Finding(
      kind, message, pc, describe(pc), self.program.entry, other, None if other is None else describe(other),
      None if wave is None else wave // state.a_block, None if wave is None else wave % state.a_block, lane, register,
      address, 1, self._line(pc), self._line(other), None, where(pc), None if other is None else where(other)))

  def _line(self, pc: int | None) -> str | None:
    spot = None if pc is None else self.code.source.spot(pc)
    return None if spot is None else spot.told()


def _number(i: Shown) -> int:
  """The constant of a wait_group."""
  return int(operands.immediate(i.line, i.line.instruction.operands[0], "u32") or 0)


def variables(d: Dispatch) -> Mapping[int, tuple[int, str]]:
  """Where the module's variables are in global memory."""
  linked = d.program.linked
  return {d.program.base + at: (linked.bytes_of(name), name) for name, at in linked.offsets.items()
          if "::" not in name and linked.bytes_of(name)}


def arrays(d: Dispatch, total: int) -> Value:
  """Which bytes of shared memory belong to an array; where there is dynamic memory its bytes do."""
  out = np.zeros(max(total, 1), bool)
  linked, places = d.program.linked, d.program.shared
  known = [*linked.shared.values(), *(p for name in linked.reachable(d.program.entry_name)
                                      for p in linked.flats[name].shared)]
  for p in known:
    if id(p) in places: out[places[id(p)]:places[id(p)] + p.size if p.size else None] = True
  if d.dynamic_shared: out[d.program.shared_size:d.program.shared_size + d.dynamic_shared] = True
  system = system_shared(d)
  out[system.start:system.stop] = True
  return out
