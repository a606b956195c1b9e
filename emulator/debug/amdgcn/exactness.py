"""Follows the results of AMD's instructions that are not exact: did they reach an address, a branch, memory ...?

Each register, LDS dword and memory dword carries origins (`debug.follow`). Where lanes mix (DPP, permutations,
matrices) every lane of a wave gets the union over its lanes. A division that corrects its v_rcp_f32 to the last bit
still carries it.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.check.amdgcn.effects import SGPR0, dwords, effects
from tinyhw.emulator.debug.follow import NONE, Bits, Cells, Tracker, union
from tinyhw.emulator.observe import Access
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_HI, EXEC_LO

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Cohort, Group

# where values can arrive -> in words
SINKS: Final = {"address": "an address", "branch": "a branch", "mask": "a lane mask (EXEC, VCC or a compare's result)",
                "memory": "memory", "wait": "a wait or message"}
EXEC: Final = frozenset({SGPR0 + EXEC_LO, SGPR0 + EXEC_HI})
_STORED: Final = frozenset({"vdata", "data0", "data1", "sdata"})
_ADDRESSES: Final = frozenset({"vaddr", "saddr", "addr", "sbase", "soffset", "srsrc", "rsrc"})


@dataclass
class DataFlow:
  """What an instruction reads and writes, by the numbers of `check.effects`; addresses apart from other data."""
  data: list[int]
  stored: list[int]  # the registers of a store's one data operand, a dword each
  address: list[int]
  out: list[int]
  keeps: bool  # parts of the old destination stay
  mixes: bool  # lanes read others' registers
  approximate: bool
  memory: bool
  sink: str  # where what it reads arrives: "branch", "mask" or "wait"


def shape_of(i: Instruction, lanes: int) -> DataFlow:
  """The registers that an instruction reads and writes, from its row in the generated table and its meaning."""
  does = effects(i, lanes)
  names = [p.strip().replace("v_dual_", "v_") for p in i.mnemonic.split("::")]
  memory = i.row.loads or i.row.stores
  addresses: list[int] = []
  others: set[int] = set()
  for name, o in i.operands.items():
    if o.role == "d": continue
    if memory and name in _ADDRESSES: addresses += dwords(o, lanes)
    else: others.update(dwords(o, lanes))
  lanes_active = not i.mnemonic.startswith("s_")  # EXEC chooses lanes; it is no operand of theirs
  data = [r for r in does.reads if (r not in addresses or r in others) and not (lanes_active and r in EXEC)]
  halves = any(o.half is not None for o in i.operands.values() if o.role == "d")
  keeps = halves or "d16" in i.mnemonic or "movrel" in i.mnemonic or i.mnemonic == "v_writelane_b32"
  operands = [o for n, o in i.operands.items() if n in _STORED and o.role != "d"]
  stored = list(dwords(operands[0], lanes)) if i.row.stores and len(operands) == 1 else []
  name = i.mnemonic
  if name.startswith(("s_cbranch", "s_setpc", "s_swappc")): sink = "branch"
  elif name.startswith(("s_wait", "s_sleep", "s_barrier", "s_sendmsg", "s_sethalt", "ds_gws")): sink = "wait"
  elif name.startswith(("v_cmp", "v_div_scale")) or EXEC & set(does.writes): sink = "mask"
  else: sink = ""
  return DataFlow(data, stored, addresses, list(does.writes), keeps, does.cross_lane or name == "v_writelane_b32",
                  any(coverage.status(n, i.isa) == "approximate" for n in names), memory, sink)


class Exactness(Tracker):
  """The sets of one dispatch."""

  def __init__(self) -> None:
    super().__init__()
    self._shapes: dict[tuple[int, int], DataFlow] = {}
    self._v: dict[Cohort, dict[int, Bits]] = {}  # register -> [waves, lanes]
    self._s: dict[Cohort, dict[int, Bits]] = {}  # register -> [waves]
    self._loaded: list[Bits] = []  # what the current instruction has loaded so far: [waves, lanes, dwords] an access
    self._sources: Any = None  # (data, address) that the current instruction reads: [waves, lanes] each, or None

  def cohort(self, cohort: Cohort) -> None:
    super().cohort(cohort)
    self._v[cohort], self._s[cohort] = {}, {}

  def forget(self, cohort: Cohort) -> None:
    super().forget(cohort)
    self._v.pop(cohort, None)
    self._s.pop(cohort, None)

  # ---- one instruction

  def _shape(self, group: Group, pc: int, i: Instruction) -> DataFlow:
    found = self._shapes.get((pc, id(i)))
    if found is None: found = self._shapes[pc, id(i)] = shape_of(i, group.cohort.lanes)
    return found

  def before(self, group: Group, pc: int, i: Instruction) -> None:
    """What the instruction reads, and where that arrives."""
    self._sources, self._loaded = None, []
    cohort, x = group.cohort, self._shape(group, pc, i)
    v, s = self._v[cohort], self._s[cohort]
    if not v and not s: return
    rows = group.waves - self.first[cohort]
    data, address = self._union(v, s, rows, x.data), self._union(v, s, rows, x.address)
    if data is None and address is None: return
    self._sources = data, address
    if x.sink and data is not None:
      cause = data if x.sink != "mask" else self._union(v, s, rows, [r for r in x.data if r not in EXEC])
      self._arrived(x.sink, pc, group, cause, i)
    if address is not None: self._arrived("address", pc, group, address, i)

  def _union(self, v: dict[int, Bits], s: dict[int, Bits], rows: Any, registers: list[int]) -> Bits | None:
    """Origins of some registers, [waves, lanes] or [waves, 1]; None where there are none."""
    out: Bits | None = None
    for n in registers:
      if n in v: out = v[n][rows] if out is None else out | v[n][rows]
      elif n in s: out = s[n][rows][:, None] if out is None else out | s[n][rows][:, None]
    return out

  def _arrived(self, sink: str, pc: int, group: Group, bits: Bits | None, i: Instruction) -> None:
    self.arrived(sink, pc, bits, None if i.mnemonic.startswith("s_") else group.mask)

  def access(self, group: Group, pc: int, i: Instruction, access: Access) -> None:
    """Memory gives its origins to what is loaded, and takes those of what is stored."""
    data = None if self._sources is None else self._sources[0]
    words = None if data is None else self._words(group, pc, i, access, data)
    if access.segment == "scratch": return self._scratch(group, access, words)
    if access.kind != "store" and (loaded := self._read(group, access)) is not None: self._loaded.append(loaded)
    if access.kind != "load":
      if data is not None: self._arrived("memory", pc, group, data, i)
      self._write(group, access, words)

  def _words(self, group: Group, pc: int, i: Instruction, access: Access, data: Bits) -> Bits:
    """Origins of each dword that is stored, [waves, lanes, dwords]; of all together where they cannot be told apart."""
    stored, cohort = self._shape(group, pc, i).stored, group.cohort
    if access.kind != "store" or len(stored) < 2 or len(stored) != access.width // 4: return data[:, :, None]
    rows = group.waves - self.first[cohort]
    shape = group.size, data.shape[1]
    each = [self._union(self._v[cohort], self._s[cohort], rows, [n]) for n in stored]
    return np.stack([np.zeros(shape, np.uint64) if e is None else np.broadcast_to(e, shape) for e in each], axis=2)

  def _scratch(self, group: Group, access: Access, words: Bits | None) -> None:
    """Scratch is memory where dword k of a wave's lanes lies side by side; values kept there arrive nowhere."""
    if group.scratch is None: return
    lanes = group.cohort.lanes
    base = np.broadcast_to(np.asarray(group.scratch), (group.size, 1)).astype(np.uint64)
    lane = np.arange(lanes, dtype=np.uint64) * np.uint64(4)
    at = base + (access.addresses >> np.uint64(2)) * np.uint64(4 * lanes) + lane
    loaded: list[Bits | None] = []
    for k in range(max(4, access.width) // 4):
      part = Access("global", access.kind, at + np.uint64(4 * lanes * k), min(4, access.width), access.active)
      if access.kind == "load": loaded.append(self._read(group, part))
      else: self._write(group, part, words if words is None or words.shape[2] == 1 else words[:, :, k:k + 1])
    if any(x is not None for x in loaded):
      none = np.zeros((*at.shape, 1), np.uint64)
      self._loaded.append(np.concatenate([none if x is None else x for x in loaded], axis=2))

  def _cells(self, group: Group, access: Access) -> tuple[Any, Any]:
    """Dword numbers of an access [waves, lanes, dwords], in the cohort's LDS or in memory, and which count."""
    words = max(1, access.width // 4)
    at = (access.addresses >> np.uint64(2)).astype(np.int64)
    if access.segment == "lds": at = at + (group.workgroups * (group.cohort.lds_size // 4))[:, None]
    at = at[:, :, None] + np.arange(words)
    return at, np.broadcast_to(access.active[:, :, None], at.shape)

  def _held(self, group: Group, access: Access) -> Cells:
    return self.lds(group.cohort) if access.segment == "lds" else self.memory

  def _read(self, group: Group, access: Access) -> Bits | None:
    """Origins of what is loaded, [waves, lanes, dwords]; None where there are none."""
    cells = self._held(group, access)
    return cells.read(*self._cells(group, access)) if cells.pages else None

  def _write(self, group: Group, access: Access, data: Bits | None) -> None:
    """Memory takes over origins [waves, lanes, dwords or 1]."""
    cells = self._held(group, access)
    if data is None and not cells.pages: return
    cells.write(*self._cells(group, access), data, access.kind == "atomic" or access.width < 4)

  def after(self, group: Group, pc: int, i: Instruction) -> None:
    """The results take over the origins of what was read."""
    cohort, x = group.cohort, self._shape(group, pc, i)
    v, s = self._v[cohort], self._s[cohort]
    if x.approximate: self.executed[pc] += group.size
    elif self._sources is None and not self._loaded and not v and not s: return
    total: Any = None if self._sources is None else union(self._sources)
    if x.memory and self._sources is not None and (self._loaded or i.row.loads):
      total = self._sources[1]  # what is loaded does not depend on what is stored
    words: Bits | None = None  # of each dword, where each goes to a register of its own
    if len(self._loaded) == 1 and self._loaded[0].shape[2] == len(x.out) and not x.mixes: words = self._loaded[0]
    else:
      for loaded in self._loaded:
        both = np.bitwise_or.reduce(loaded, axis=2)
        total = both if total is None else total | both
    if x.approximate:
      bit = self.bit(pc)
      total = np.full((group.size, 1), bit) if total is None else total | bit
    if total is None and words is None and not any(n in v or n in s for n in x.out): return
    if total is not None and x.mixes: total = np.bitwise_or.reduce(total, axis=1, keepdims=True)
    rows = group.waves - self.first[cohort]
    for k, n in enumerate(x.out):
      own = total if words is None else words[:, :, k] if total is None else total | words[:, :, k]
      if n < SGPR0: self._set_vector(group, v, n, rows, own, x.keeps)
      else: self._set_scalar(group, s, n, rows, own)

  def _set_scalar(self, group: Group, s: dict[int, Bits], n: int, rows: Any, total: Bits | None) -> None:
    flat: Any = NONE
    if total is not None:
      if group.mask is not None and total.shape[1] > 1: total = np.where(group.mask, total, NONE)
      flat = np.bitwise_or.reduce(total, axis=1)
    kept = s.get(n)
    if kept is None:
      if not flat.any(): return
      kept = s[n] = np.zeros(self.counts[group.cohort], np.uint64)
    kept[rows] = flat
    if not kept.any(): del s[n]

  def _set_vector(self, group: Group, v: dict[int, Bits], n: int, rows: Any, total: Bits | None, keeps: bool) -> None:
    kept = v.get(n)
    if kept is None:
      if total is None or not total.any(): return
      kept = v[n] = np.zeros((self.counts[group.cohort], group.cohort.lanes), np.uint64)
    old = kept[rows]
    new = np.broadcast_to(NONE if total is None else total, old.shape)
    if keeps: new = new | old
    kept[rows] = new if group.mask is None else np.where(group.mask, new, old)
    if not kept.any(): del v[n]
