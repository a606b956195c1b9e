"""Which bits of registers, LDS and scratch were written: a shadow of each, carried along by what instructions compute.

A shadow bit is 1 where the bit is undefined. Copying undefined bits is no error (compilers copy, shift, mask and spill
them); `Undefined` finds where they decide something: an address, a branch, EXEC, or a value stored to LDS or memory.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.emulator.amdgcn.allocation import first_block
from tinyhw.emulator.amdgcn.fields import GROUP_IDS, TG_SIZE_EN, USER_SGPR
from tinyhw.emulator.check.amdgcn import rules
from tinyhw.emulator.check.amdgcn.effects import REGISTERS, SGPR0, Effects, dwords, name_of
from tinyhw.emulator.check.holes import Holes
from tinyhw.emulator.observe import Access
from tinyhw.emulator.simt import Cohort, Group
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, TTMP0

Value = Any
ONES: Final = np.uint32(0xFFFFFFFF)
ZERO32: Final = np.uint32(0)
PAGE: Final = 4096
_EXEC: Final = (SGPR0 + EXEC_LO, SGPR0 + EXEC_LO + 1)
_ADDRESSES: Final = ("vaddr", "saddr", "sbase", "srsrc", "rsrc", "soffset", "addr", *(f"vaddr{k}" for k in range(5)))
# Whose registers are as many as components, and not as dwords in memory.
_CONVERTS: Final = re.compile(r"t?buffer_(load|store)_\w*format|image_(load|store)(_mip)?$")
_DATA: Final = ("vdata", "data0", "data1", "sdata")
_BY_INDEX: Final = frozenset({"ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32"})
_NO_OPERAND: Final = Operand("", "s", "imm", 0, 0, "")
_PAIR: Final = re.compile(r"ds_\w+2(addr|st64)?(_stride64)?(_rtn)?_b")
_KEPT_OF: Final = {"gfx9": (102, 103, 104, 105)}  # scalar registers that hardware keeps: FLAT_SCRATCH, XNACK_MASK
_JUMPS: Final = frozenset({"s_setpc_b64", "s_swappc_b64"})


@dataclass(frozen=True)
class Use:
  """Undefined bits decide something. `origin` and `origin_pc` say where they come from; `wave` is an index."""
  message: str
  wave: int
  lane: int | None
  register: str
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
    self._scratch_size = int(cohort.dispatch.scratch_size)
    self._slow: dict[int, Value] | None = None  # shadows of the results, where not all are defined
    self._source: tuple[str, int | None] = ("", None)
    self._loaded: list[Value] | None = None
    self._stores = 0
    dynamic = first_block(cohort.arch, cohort.dispatch, cohort.lanes)
    self._vgprs = np.full(self.waves, dynamic) if dynamic else None  # how many each wave has, where that changes

  # ---- an instruction

  def before(self, group: Group, w: Value, pc: int, i: Instruction, does: Effects) -> Iterator[Use]:
    """Look at the sources; gives the uses that they decide."""
    self._slow, self._loaded, self._stores = None, None, 0
    if self._vgprs is not None: self._allocated(group, w, self._vgprs)
    tainted = [r for r in does.reads if self.shadow[r] is not None and self._bad(group, w, r, does.cross_lane)]
    if not tainted: return
    self._source = self._origin(tainted[0])
    if does.kind and i.mnemonic not in _BY_INDEX: yield from self._addresses(group, w, i, tainted)
    elif does.kind == "" and i.family == "SOPP" or i.mnemonic in _JUMPS: yield from self._branch(group, w, i, tainted)
    else:
      self._slow = rules.results(self, group, w, pc, i, does)
      for r in _EXEC:
        if (bad := self._slow.get(r)) is not None and np.any(bad):
          yield self._use("EXEC depends on", w, (np.broadcast_to(bad, (group.size, 1)) != 0), None, tainted[0])
          self._slow[r] = np.zeros((1, 1), np.uint32)

  def after(self, group: Group, w: Value, mask: Value, i: Instruction, does: Effects) -> None:
    """The instruction has run under `mask` (None: all lanes): note what it wrote."""
    slow = self._slow
    if self._loaded is not None: slow = rules.loaded(self, i, self._loaded)
    for r in does.writes:
      new = None if slow is None else slow.get(r)
      if new is None and self.shadow[r] is None: continue
      bits = rules.written(i, r, self.isa)
      whole = None if i.mnemonic in rules.WITHOUT_EXEC else mask
      self._write(group, w, r, new, bits, whole)

  def _write(self, group: Group, w: Value, r: int, new: Value | None, bits: int, mask: Value | None) -> None:
    vector = r < SGPR0
    everyone = group.size == self.waves
    if new is None and everyone and bits == 0xFFFFFFFF and (mask is None or not vector):
      self.shadow[r] = None
      return
    old = self.shadow[r]
    shape = (self.waves, self.lanes if vector else 1)
    table = np.zeros(shape, np.uint32) if old is None else np.array(old)
    part = (group.size, shape[1])
    value = np.broadcast_to(ZERO32 if new is None else new, part)
    kept = table[w]
    value = kept & np.uint32(~bits & 0xFFFFFFFF) | value & np.uint32(bits)
    if vector and mask is not None: value = np.where(mask, value, kept)
    table[w] = value
    self.shadow[r] = table if table.any() else None
    if new is not None: self.origin[r] = self._source

  def _allocated(self, group: Group, w: Value, known: Value) -> None:
    """Vector registers that waves gave back, or that are new, hold nothing."""
    count, before = len(group.v), known[w]
    if (before == count).all(): return
    lost = np.minimum(before, count)[:, None]
    for r in range(int(lost.min()), SGPR0):
      self._write(group, w, r, self.of(w, r) | np.where(lost <= r, ONES, ZERO32), 0xFFFFFFFF, None)
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

  def _use(self, what: str, w: Value, bad: Value, lane: bool | None, r: int) -> Use:
    wave, column = (int(k[0]) for k in np.nonzero(bad))
    text, at = self._origin(r)
    index = int(np.arange(self.waves)[w][wave])
    return Use(f"{what} {text}", index, column if lane else None, name_of(r), at)

  def _addresses(self, group: Group, w: Value, i: Instruction, tainted: list[int]) -> Iterator[Use]:
    for name in _ADDRESSES:
      o = i.operands.get(name)
      if o is None or o.role == "d": continue
      for r in dwords(o, self.lanes):
        if r in tainted: yield from self._decided(group, w, r, "the address depends on")
    if "addtid" in i.mnemonic and SGPR0 + M0 in tainted:
      yield from self._decided(group, w, SGPR0 + M0, "the address depends on")

  def _branch(self, group: Group, w: Value, i: Instruction, tainted: list[int]) -> Iterator[Use]:
    if i.mnemonic.startswith("s_wait"): return
    for r in tainted: yield from self._decided(group, w, r, "where to go depends on")

  def _decided(self, group: Group, w: Value, r: int, what: str) -> Iterator[Use]:
    """A use of a whole register in the active lanes; it counts as written from here on, so that it is told once."""
    bad = np.broadcast_to(self.of(w, r), (group.size, self.lanes if r < SGPR0 else 1)) != 0
    if r < SGPR0 and group.mask is not None: bad = bad & group.mask
    yield self._use(what, w, bad, r < SGPR0, r)
    self.shadow[r] = None

  # ---- memory

  def access(self, group: Group, w: Value, pc: int, i: Instruction, access: Access) -> Iterator[Use]:
    """The memory's part: what a load finds undefined, what a store makes of its data."""
    kind, segment = access.kind, access.segment
    self._stores += 1
    if segment == "scalar":
      if self.holes.at(access.addresses).any() and (sdst := i.operands.get("sdst")) is not None:
        bad = self.holes.at(access.addresses)[:, :1]
        self._find(f"device memory at {int(access.addresses[bad][0]):#x}, which nobody has written", pc)
        self._loaded = [np.where(bad, ONES, ZERO32)] * sdst.dwords
      return
    count, words = max(1, access.width // 4), len(dwords(self._result(i), self.lanes))
    if _CONVERTS.match(i.mnemonic): count = words
    elif not _PAIR.match(i.mnemonic) and words > count:
      return  # a wide buffer access of which some dwords are out of range comes dword by dword
    if kind != "load": yield from self._stored(group, w, i, access)
    if kind == "store": return
    if segment == "global":
      if kind == "atomic": return
      bad = self.holes.at(access.addresses) & access.active
      if bad.any(): self._take(i, [np.where(bad, ONES, ZERO32)] * count, access, bad, pc)
      return
    raw = self._bytes(w, access)
    if raw is None: return
    bad = (raw != 0xFF).any(axis=2) & access.active
    if not bad.any(): return
    missing = np.where(bad[:, :, None], ~raw, np.uint8(0))
    if access.width < 4: missing = np.concatenate([missing, np.zeros((*bad.shape, 4 - access.width), np.uint8)], axis=2)
    arrived = np.ascontiguousarray(missing).view(np.uint32)
    self._take(i, [arrived[:, :, k] for k in range(arrived.shape[2])], access, bad, pc)

  def _result(self, i: Instruction) -> Operand:
    """The operand whose registers the instruction loads or stores."""
    return next((i.operands[n] for n in ("vdst", "vdata", "data0", "addr") if n in i.operands), _NO_OPERAND)

  def _take(self, i: Instruction, words: list[Value], access: Access, bad: Value, pc: int) -> None:
    """Undefined dwords arrive."""
    names = {"lds": "LDS", "scratch": "scratch", "global": "device memory"}
    self._find(f"{names[access.segment]} at {int(access.addresses[bad][0]):#x}, which nobody has written", pc)
    if _PAIR.match(i.mnemonic):
      zero = [np.zeros((1, 1), np.uint32)] * len(words)
      self._loaded = (self._loaded or zero)[:len(words)] + words if self._stores > 1 else words + zero
    elif self._loaded is None: self._loaded = words
    else: self._loaded = [a | b for a, b in zip(self._loaded, words)]

  def _find(self, text: str, pc: int) -> None: self._source = (text, pc)

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

  def _bytes(self, w: Value, access: Access) -> Value | None:
    found = self._index(w, access)
    return None if found is None else found[0][found[1]]

  def _stored(self, group: Group, w: Value, i: Instruction, access: Access) -> Iterator[Use]:
    names = [n for n in _DATA if n in i.operands]
    if _PAIR.match(i.mnemonic): names = names[self._stores - 1:self._stores]
    elif i.mnemonic.startswith("ds_") and access.kind == "store": names = names[:1]
    words = self._data(w, [i.operands[n] for n in names[:1]], i, access.width)
    defined = words is None or not (np.broadcast_to(words.any(axis=2), access.active.shape) & access.active).any()
    if not defined and access.segment != "scratch":
      assert words is not None
      bad = np.broadcast_to(words.any(axis=2), access.active.shape) & access.active
      r = next(r for r in dwords(i.operands[names[0]], self.lanes) if self.shadow[r] is not None)
      memory = {"lds": "LDS", "gds": "the global data share"}.get(access.segment, "memory")
      yield self._use(f"the value stored to {memory} depends on", w, bad, True, r)
    if access.segment == "global":
      self.holes.stored(access.addresses[access.active])
      return
    found = self._index(w, access)
    if found is None: return
    memory, index = found
    on = access.active
    known = np.full((*on.shape, access.width), 0xFF, np.uint8)
    if words is not None and access.segment == "scratch": known = known & ~np.broadcast_to(words, known.shape)
    if access.kind == "atomic": known = known & memory[index]  # the old value is part of the new one
    memory[index[on]] = known[on]

  def _data(self, w: Value, operands: list[Operand], i: Instruction, width: int) -> Value | None:
    """Undefined bits of the bytes that a store takes from its data [waves, lanes, bytes]; None where there are none."""
    converts = _CONVERTS.match(i.mnemonic) is not None
    registers = [r for o in operands for r in range(o.value, o.value + (o.dwords if converts else max(1, width // 4)))]
    if all(self.shadow[r] is None for r in registers): return None
    words = np.stack([np.broadcast_to(self.of(w, r), (len(np.arange(self.waves)[w]), self.lanes)) for r in registers],
                     axis=2)
    raw = np.ascontiguousarray(words).view(np.uint8)
    if converts: return raw
    first = 2 if "d16_hi" in i.mnemonic else 0
    return raw[:, :, first:first + width]


def set_up_registers(d: Any, arch: Arch) -> set[int]:
  """What a launch writes: user SGPRs, workgroup numbers, work-item numbers, EXEC, and what hardware keeps for itself.

  LLVM AMDGPUUsage, "Initial Kernel Execution State".
  """
  ids = 0 if arch.ids_in_ttmp else sum(f.of(d.rsrc2) for f in (*GROUP_IDS, TG_SIZE_EN))
  scalars = USER_SGPR.of(d.rsrc2) + ids
  kept = range(TTMP0, TTMP0 + 16)
  registers = {SGPR0 + s for s in (*range(scalars), *kept, *_KEPT_OF.get(arch.isa, ()), EXEC_LO, EXEC_LO + 1)}
  return registers | {0}

