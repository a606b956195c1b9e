"""Which bits of registers, LDS and scratch were written: a shadow of each, carried along by what instructions compute.

A shadow bit is 1 where the bit is undefined. Copying undefined bits is no error (compilers copy, shift, mask and spill
them, also through LDS); `Undefined` finds where they decide something: an address, a branch, EXEC, or a value stored to
global memory. What an instruction makes of them is found by running its own step on them (`follow`).
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn.allocation import first_block
from tinyhw.emulator.amdgcn.bind import SCALAR_FAMILIES
from tinyhw.emulator.amdgcn.binders import ends
from tinyhw.emulator.amdgcn.fields import GROUP_IDS, TG_SIZE_EN, USER_SGPR
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.amdgcn.memory.lds import BETWEEN_LANES
from tinyhw.emulator.check.amdgcn.effects import REGISTERS, SGPR0, Effects, dwords, name_of
from tinyhw.emulator.check.amdgcn.follow import Following, Traffic
from tinyhw.emulator.check.arrays import Undecided
from tinyhw.emulator.check.holes import Holes
from tinyhw.emulator.observe import Access
from tinyhw.emulator.simt import Cohort, Group, Step
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, TTMP0

ONES: Final = np.uint32(0xFFFFFFFF)
ZERO32: Final = np.uint32(0)
PAGE: Final = 4096
_EXEC: Final = (SGPR0 + EXEC_LO, SGPR0 + EXEC_LO + 1)
_ADDRESSES: Final = ("vaddr", "saddr", "sbase", "srsrc", "rsrc", "soffset", "addr", *(f"vaddr{k}" for k in range(5)))
_KEPT_OF: Final = {"gfx9": (102, 103, 104, 105)}  # scalar registers that hardware keeps: FLAT_SCRATCH, XNACK_MASK
_GOES: Final = frozenset({"SOPP", "SOP1"})  # families whose instructions, where they end a block, go by what they read
# Kinds of instructions that move data between vector registers and memory.
_FOLLOWED: Final = frozenset({"vmem_load", "vmem_store", "vmem_lds", "flat_load", "flat_store", "lds"})


@dataclass(frozen=True)
class Use:
  """Undefined bits decide something. `origin` and `origin_pc` say where they come from; `wave` is an index."""
  message: str
  wave: int
  lane: int | None
  register: str | None
  origin_pc: int | None


class Undefined:
  """The shadows of one cohort. Waves are indices into it; `w` selects those of a group."""

  def __init__(self, cohort: Cohort, holes: Holes, set_up: set[int]) -> None:
    group = cohort.runnable[0]
    self.waves, self.lanes, self.holes = group.size, cohort.lanes, holes
    self.isa = cohort.arch.isa
    vector = np.broadcast_to(ONES, (self.waves, self.lanes))
    scalar = np.broadcast_to(ONES, (self.waves, 1))
    self.shadow: list[Value | None] = [None if r in set_up else vector if r < SGPR0 else scalar
                                       for r in range(REGISTERS)]
    self.origin: dict[int, tuple[str, int | None]] = {}
    self.lds = np.zeros(len(cohort.lds), np.uint8)  # bits that were written
    self.lds_size = cohort.lds_size
    self._scratch: Value | None = None
    # Scratch that is a buffer is memory like other: what is stored there is no use, and is not followed.
    self._scratch_size = 0 if cohort.arch.scratch_in_sgprs else int(cohort.dispatch.scratch_size)
    d, first = cohort.dispatch, int(cohort.dispatch.scratch_base)
    self._buffer = range(first, first + int(d.scratch_size) * cohort.lanes * int(d.scratch_waves)
                         if cohort.arch.scratch_in_sgprs else first)
    self._steps: dict[tuple[Instruction, int, int], Step | None] = {}
    self._filling: dict[Instruction, bool] = {}  # see `_fills`
    # of the instruction at hand:
    self._source: tuple[str, int | None] | None = None  # where undefined bits that it reads come from
    self._step: tuple[Instruction, int]
    self._results: dict[int, Value | None] | None = None  # shadows of the results, where not all are defined
    self._clone: Following | None = None  # its group as it was before
    self._data: list[int] = []  # registers that are no address and have undefined bits
    self._loads: list[Value | None] = []  # undefined bits of what was loaded so far
    self._traffic: Traffic | None = None  # what following it has stored,
    self._done = 0  # of which so many are seen
    dynamic = first_block(cohort.arch, cohort.dispatch, cohort.lanes)
    self._vgprs = np.full(self.waves, dynamic) if dynamic else None  # how many each wave has, where that changes

  # ---- an instruction

  def before(self, group: Group, w: Value, pc: int, i: Instruction, actual: Instruction,
             does: Effects) -> Iterator[Use]:
    """Look at the sources; gives the uses that they decide. `actual` has the registers that M0 makes of `i`'s."""
    self._results, self._clone, self._loads, self._traffic, self._step = None, None, [], None, (i, pc)
    if self._vgprs is not None: self._allocated(group, w, self._vgprs)
    self._data, self._done = [], 0
    reaches, alike = does.kind != "" and i.mnemonic not in BETWEEN_LANES, by_lane(i)
    everywhere = not (reaches or alike)
    tainted = [r for r in does.reads if self.shadow[r] is not None and self._bad(group, w, r, everywhere)]
    self._source = self._origin(tainted[0]) if tainted else None
    if reaches: yield from self._reaches(group, w, actual, does, tainted)
    elif ends.get(i.mnemonic, self.isa) is not None and i.family in _GOES:
      for r in tainted: yield from self._decided(group, w, r, "where to go depends on")
    elif tainted: yield from self._computes(group, w, does, tainted)
    elif i.family not in SCALAR_FAMILIES and any(self.shadow[r] is not None for r in does.writes) and not (
        alike and self._fills(group, does)): yield from self._computes(group, w, does, tainted)

  def _computes(self, group: Group, w: Value, does: Effects, tainted: list[int]) -> Iterator[Use]:
    """Follow an instruction that computes; EXEC is a use."""
    i, _ = self._step
    if i.family in SCALAR_FAMILIES and not by_lane(i): self._results = self._whole(group, w, does)
    else: self._results = self._followed(self._copy(group, w, {*does.reads, *does.writes}), w, does)
    for r in _EXEC:
      if (bad := self._results.get(r)) is not None and np.any(bad):
        yield self._use("EXEC depends on", w, np.broadcast_to(bad, (group.size, 1)) != 0, None, tainted[0])
        self._results[r] = None

  def _fills(self, group: Group, does: Effects) -> bool:
    """Whether an instruction of which each lane is computed apart writes all bits of its registers in active lanes."""
    key = self._step[0]
    known = self._filling.get(key)
    if known is None:
      clone = Following.of(group, Traffic(group))
      clone.mask = None
      for r in does.writes: clone.put(r, np.broadcast_to(ONES, (group.size, self.lanes if r < SGPR0 else 1)))
      try:
        self._run(clone)
        known = all(clone.get(r) is None for r in does.writes)
      except (Undecided, Error): known = False
      self._filling[key] = known
    return known

  def _copy(self, group: Group, w: Value, registers: Iterable[int]) -> Following:
    """The group before the instruction, with the undefined bits that these registers have."""
    clone = Following.of(group, Traffic(group))
    for r in registers:
      if self.shadow[r] is not None: clone.put(r, self.of(w, r))
    return clone

  def _run(self, clone: Following) -> None:
    """Execute the instruction on a copy."""
    i, pc = self._step
    key = i, pc, clone.mode
    if key not in self._steps:
      program: Any = clone.cohort.program
      self._steps[key] = program.step(i, pc, clone.mode)
    step = self._steps[key]
    if step is not None: step(clone)

  def _followed(self, clone: Following, w: Value, does: Effects) -> dict[int, Value | None]:
    """The shadows of the registers that the instruction writes, by following it on the copy."""
    before = list(clone.v)
    try: self._run(clone)
    except Error: return {}  # what the instruction itself raises next
    except Undecided:
      clone.v = before
      return self._whole(clone, w, does)
    return {r: clone.get(r) for r in does.writes}

  def _whole(self, group: Group, w: Value, does: Effects) -> dict[int, Value | None]:
    """All that is written is undefined where something that is read is: in the lane, or for a wave in any."""
    lanes = np.zeros((group.size, self.lanes), bool)
    for r in does.reads: lanes = lanes | np.broadcast_to(self.of(w, r) != 0, lanes.shape)
    for missing in self._loads:
      if missing is not None: lanes = lanes | missing.any(axis=2)
    on = np.broadcast_to(np.True_ if group.mask is None else group.mask, lanes.shape)
    if does.cross_lane: lanes = np.broadcast_to(lanes.any(axis=1, keepdims=True), lanes.shape)
    else: lanes = lanes & on
    each, wave = np.where(lanes, ONES, ZERO32), np.where(lanes.any(axis=1, keepdims=True), ONES, ZERO32)
    return {r: np.where(on, each, self.of(w, r)) if r < SGPR0 else wave for r in does.writes}

  def after(self, group: Group, w: Value, mask: Value | None, does: Effects) -> None:
    """The instruction has run under `mask` (None: all lanes): note what it wrote."""
    if self._clone is not None and (any(x is not None for x in self._loads) or any(
        self.shadow[r] is not None for r in does.writes)):
      self._clone.memory = Traffic(group, self._loads)
      self._results = self._followed(self._clone, w, does)
    for r in does.writes:
      if self._results is not None: self._set(group, w, r, self._results.get(r))
      elif self.shadow[r] is not None: self._write(group, w, r, None, mask)

  def _set(self, group: Group, w: Value, r: int, new: Value | None) -> None:
    """The shadow of a register of the waves `w`."""
    if new is None and self.shadow[r] is None: return
    self._write(group, w, r, new, None)

  def _write(self, group: Group, w: Value, r: int, new: Value | None, mask: Value | None) -> None:
    """The waves' shadow of a register, None for no bit, in the lanes of `mask`."""
    vector = r < SGPR0
    if new is None and group.size == self.waves and (mask is None or not vector):
      self.shadow[r] = None
      return
    old = self.shadow[r]
    shape = (self.waves, self.lanes if vector else 1)
    table = np.zeros(shape, np.uint32) if old is None else np.array(old)
    value = np.broadcast_to(ZERO32 if new is None else new, (group.size, shape[1]))
    if vector and mask is not None: value = np.where(mask, value, table[w])
    table[w] = value
    self.shadow[r] = table if table.any() else None
    if self._source is not None and new is not None and new.any(): self.origin[r] = self._source

  def _allocated(self, group: Group, w: Value, known: Value) -> None:
    """Vector registers that waves gave back, or that are new, hold nothing."""
    count, before = len(group.v), known[w]
    if (before == count).all(): return
    lost = np.minimum(before, count)[:, None]
    for r in range(int(lost.min()), SGPR0):
      self._write(group, w, r, self.of(w, r) | np.where(lost <= r, ONES, ZERO32), None)
      self.origin[r] = f"{name_of(r)}, which nobody has written since it was allocated", None
    known[w] = count

  # ---- what is read

  def of(self, w: Value, r: int) -> Value:
    """The shadow of a register for the waves `w`: u32 [waves, lanes], or [waves, 1] of a scalar one."""
    known = self.shadow[r]
    return np.zeros((1, 1), np.uint32) if known is None else known[w]

  def _bad(self, group: Group, w: Value, r: int, everywhere: bool) -> bool:
    known = self.of(w, r)
    if r < SGPR0 and group.mask is not None and not everywhere: known = np.where(group.mask, known, ZERO32)
    return bool(known.any())

  def _origin(self, r: int) -> tuple[str, int | None]:
    return self.origin.get(r, (f"{name_of(r)}, which nobody has written", None))

  def _use(self, what: str, w: Value, bad: Value, lane: bool | None, r: int | None) -> Use:
    """What is undefined in `bad` [waves, lanes or 1] is used, out of a register or (None) from where it was loaded."""
    wave, column = (int(k[0]) for k in np.nonzero(bad))
    text, at = self._origin(r) if r is not None else self._source or ("what nobody has written", None)
    index = int(np.arange(self.waves)[w][wave])
    return Use(f"{what} {text}", index, column if lane else None, None if r is None else name_of(r), at)

  def _addresses(self, group: Group, w: Value, i: Instruction, tainted: list[int]) -> Iterator[Use]:
    for name in _ADDRESSES:
      o = i.operands.get(name)
      if o is None or o.role == "d": continue
      for r in dwords(o, self.lanes):
        if r in tainted: yield from self._decided(group, w, r, "the address depends on")
    if "addtid" in i.mnemonic and SGPR0 + M0 in tainted:
      yield from self._decided(group, w, SGPR0 + M0, "the address depends on")

  def _decided(self, group: Group, w: Value, r: int, what: str) -> Iterator[Use]:
    """A use of a whole register in the active lanes; it counts as written from here on, so that it is told once."""
    bad = np.broadcast_to(self.of(w, r), (group.size, self.lanes if r < SGPR0 else 1)) != 0
    if r < SGPR0 and group.mask is not None: bad = bad & group.mask
    yield self._use(what, w, bad, r < SGPR0, r)
    self.shadow[r] = None

  # ---- memory

  def _reaches(self, group: Group, w: Value, i: Instruction, does: Effects, tainted: list[int]) -> Iterator[Use]:
    """An instruction that reaches memory: its address is a use; its data, and what it loads, are followed."""
    addresses = {r for name in _ADDRESSES if (o := i.operands.get(name)) is not None and o.role != "d"
                 for r in dwords(o, self.lanes)}
    self._data = [r for r in tainted if r not in addresses]
    if tainted: yield from self._addresses(group, w, i, tainted)
    if does.kind in _FOLLOWED and (self._data or does.writes or does.kind == "vmem_lds"):
      self._clone = self._copy(group, w, {*self._data, *does.writes})

  def access(self, group: Group, w: Value, pc: int, i: Instruction, access: Access) -> Iterator[Use]:
    """The memory's part: what a load finds undefined, what a store makes of its data."""
    kind, segment = access.kind, access.segment
    if segment == "scalar":
      self._scalar(i, access, pc)
      return
    missing = None if kind == "store" else self._missing(w, access, pc)
    if kind != "store": self._loads.append(missing)
    if kind != "load":
      data = self._anything(group, w) if segment == "gds" else self._stored(group, w)
      if data is not None and segment in {"global", "gds"} and (
          bad := self._outside(access, np.asarray(data.any(axis=2)))
      ).any():
        where = "memory" if segment == "global" else "the global data share"
        yield self._use(f"the value stored to {where} depends on", w, bad, True, next(iter(self._data), None))
      if segment == "global": self.holes.stored(access.addresses[access.active])
      else: self._keep(w, access, data)

  def _outside(self, access: Access, bad: Value) -> Value:
    """Those of the bad elements that are active and do not lie in scratch."""
    bad = bad & access.active
    if access.segment != "global" or not self._buffer: return bad
    inside = (access.addresses >= np.uint64(self._buffer.start)) & (access.addresses < np.uint64(self._buffer.stop))
    return np.asarray(bad & ~inside)

  def _scalar(self, i: Instruction, access: Access, pc: int) -> None:
    """A scalar load of memory that nobody has written."""
    bad = self.holes.at(access.addresses)
    if not bad.any() or (sdst := i.operands.get("sdst")) is None: return
    self._found("device memory", access.addresses[bad][0], pc)
    self._results = {r: np.where(bad[:, :1], ONES, ZERO32) for r in dwords(sdst, self.lanes)}

  def _missing(self, w: Value, access: Access, pc: int) -> Value | None:
    """The undefined bits of the bytes that a load finds [waves, lanes, width]; None where there are none."""
    if access.segment == "global":
      if access.kind == "atomic": return None
      bad = self.holes.at(access.addresses) & access.active
      if not bad.any(): return None
      missing = np.broadcast_to(np.where(bad, np.uint8(0xFF), np.uint8(0))[:, :, None], (*bad.shape, access.width))
    else:
      found = self._index(w, access)
      if found is None: return None
      raw = found[0][found[1]]
      bad = (raw != 0xFF).any(axis=2) & access.active
      if not bad.any(): return None
      missing = np.where(bad[:, :, None], ~raw, np.uint8(0))
    names = {"lds": "LDS", "scratch": "scratch", "global": "device memory"}
    self._found(names[access.segment], access.addresses[bad][0], pc)
    return missing

  def _found(self, memory: str, address: Value, pc: int) -> None:
    self._source = f"{memory} at {int(address):#x}, which nobody has written", pc

  def _index(self, w: Value, access: Access) -> tuple[Value, Value] | None:
    """(memory of written bits, index of each byte [waves, lanes, width]) of LDS or scratch."""
    each = np.arange(access.width, dtype=np.int64)
    at = np.where(access.active, access.addresses, np.uint64(0)).astype(np.int64)[:, :, None] + each
    wave = np.arange(self.waves)[w][:, None, None]
    if access.segment == "gds": return None  # who wrote it last may be another dispatch
    if access.segment == "lds":
      if not self.lds_size: return None
      a_group = self.waves * self.lds_size // len(self.lds)
      return self.lds, wave // a_group * self.lds_size + np.minimum(at, self.lds_size - 1)
    if not self._scratch_size: return None
    if self._scratch is None: self._scratch = np.zeros(self.waves * self.lanes * self._scratch_size, np.uint8)
    lane = np.arange(self.lanes)[None, :, None]
    return self._scratch, (wave * self.lanes + lane) * self._scratch_size + np.minimum(at, self._scratch_size - 1)

  def _stored(self, group: Group, w: Value) -> Value | None:
    """The undefined bits of the bytes that the next store leaves [waves, lanes, width]; None where there are none."""
    if self._clone is None or not self._data and all(x is None for x in self._loads): return None
    if self._traffic is None or any(x is not None for x in self._loads):  # what was loaded since goes into it too
      self._traffic = Traffic(group, self._loads)
      try: self._run(Following.of(self._clone, self._traffic))
      except Error: return None  # what the instruction itself raises next
      except Undecided: return self._anything(group, w)
    if self._done >= len(self._traffic.stores): return None
    self._done += 1
    found: Value | None = self._traffic.stores[self._done - 1]
    return found

  def _anything(self, group: Group, w: Value) -> Value | None:
    """Undefined data of a store that is not followed [waves, lanes, 1]."""
    if not self._data: return None
    bad = np.zeros((group.size, self.lanes), bool)
    for r in self._data: bad = bad | np.broadcast_to(self.of(w, r) != 0, bad.shape)
    return np.where(bad, np.uint8(0xFF), np.uint8(0))[:, :, None]

  def _keep(self, w: Value, access: Access, data: Value | None) -> None:
    """LDS or scratch holds what is stored, with its undefined bits: a copy is no use."""
    found = self._index(w, access)
    if found is None: return
    memory, index = found
    on = access.active
    known = np.full((*on.shape, access.width), 0xFF, np.uint8)
    if data is not None: known = known & ~np.broadcast_to(data, known.shape)
    memory[index[on]] = known[on]


def set_up_registers(d: Any, arch: Arch) -> set[int]:
  """What a launch writes: user SGPRs, workgroup numbers, work-item numbers, EXEC, and what hardware keeps for itself.

  LLVM AMDGPUUsage, "Initial Kernel Execution State".
  """
  ids = 0 if arch.ids_in_ttmp else sum(f.of(d.rsrc2) for f in (*GROUP_IDS, TG_SIZE_EN))
  scalars = USER_SGPR.of(d.rsrc2) + ids + int(arch.scratch_in_sgprs and d.scratch_size > 0)
  kept = range(TTMP0, TTMP0 + 16)
  registers = {SGPR0 + s for s in (*range(scalars), *kept, *_KEPT_OF.get(arch.isa, ()), EXEC_LO, EXEC_LO + 1)}
  return registers | {0}



def by_lane(i: Instruction) -> bool:
  """Whether each lane of the instruction is computed from its own registers alone, by a meaning."""
  return "dpp" not in i.variant and all(MEANINGS.get(part.replace("v_dual_", "v_"), i.table) is not None
                                        for part in i.mnemonic.split(" :: "))
