"""Follows the results of PTX instructions that are not exact: did they reach an address, a branch, a guard, memory ...?

Each register, each dword of shared, local and global memory carries origins (`debug.follow`). Registers count by how
deep in calls their function is. Where threads give values to others (`shfl`, `vote`, `mma`, `ldmatrix` ...) every
thread of a warp gets the union over its threads.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.check.ptx.effects import Effects, effects
from tinyhw.emulator.check.ptx.undefined import shared_start
from tinyhw.emulator.debug.follow import NONE, Bits, Cells, Tracker, union
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps, warps
from tinyhw.emulator.ptx.module.scope import Line, Register
from tinyhw.emulator.ptx.program import Code, Shown
from tinyhw.emulator.ptx.tensorcore.tmem import COLUMNS, WORDS
from tinyhw.isa.ptx.model import Name, Vector

if TYPE_CHECKING:
  from collections.abc import Callable

  from tinyhw.emulator.observe import Access, Copy
  from tinyhw.emulator.simt import Cohort, Group

# where values can arrive -> in words
SINKS: Final = {"address": "an address", "branch": "a branch", "guard": "a guard (whether a thread executes this)",
                "memory": "memory", "wait": "a wait or barrier"}
_BRANCHES: Final = frozenset({"bra", "brx", "call", "ret", "exit", "trap"})
_WAITS: Final = frozenset({"bar", "barrier", "mbarrier", "nanosleep", "griddepcontrol", "setmaxnreg"})
_SURFACES: Final = frozenset({"sust", "sured"})
_LOADS: Final = frozenset({"ld", "ldu"})
_MOVES: Final = frozenset({"call", "ret", "cp"})  # each load is stored by the store behind it
_CARRIED: Final = frozenset({"addc", "subc", "madc"})
_CARRY: Final = -1  # the register CC.CF

Registers = dict[int, Bits]  # number -> [warps, 32]


@dataclass(frozen=True)
class DataFlow:
  """What an instruction reads and writes: `into` and `from_` count the elements of a vector that it loads to, or
  stores, one register each; 0 where registers and elements do not go together so."""
  does: Effects
  reads: tuple[int, ...]
  results: tuple[int, ...]
  into: int
  from_: int
  mixes: bool
  approximate: bool


def shape_of(line: Line, approximate: bool) -> DataFlow:
  """See `DataFlow`."""
  does, i = effects(line), line.instruction
  reads, results = does.read, does.results
  if does.opcode == "wgmma": reads += results  # it adds to what is there
  if does.opcode in _CARRIED: reads += (_CARRY,)
  if "cc" in does.modifiers: results += (_CARRY,)
  vectors = [o for o in i.operands if isinstance(o, Vector)]
  single = len(vectors) == 1 and len(vectors[0].elements)
  into = len(results) if does.opcode in _LOADS and len(results) == (single or 1) else 0
  from_ = len(reads) if does.opcode == "st" and len(reads) == (single or 1) else 0
  return DataFlow(does, reads, results, into, from_, does.spread or does.opcode == "shfl", approximate)


class Exactness(Tracker):
  """The sets of one launch. `status` grades an instruction."""

  def __init__(self, status: Callable[[Shown], str]) -> None:
    super().__init__()
    self._status = status
    self._shapes: dict[int, tuple[Line, DataFlow]] = {}
    self._tables: dict[Cohort, dict[tuple[int, int], Registers]] = {}  # (depth of calls, function's base) -> registers
    self._passed: dict[Cohort, Registers] = {}  # depth -> union of the arguments that functions at it were given
    self._local: dict[Cohort, Cells] = {}
    self._calls: dict[int, dict[int, Line]] = {}  # base of a function -> PC behind a call -> the call
    self._formals: dict[int, frozenset[int]] = {}  # base of a function -> registers that are its parameters
    # of the current instruction
    self._shape: Any = None
    self._table: Any = None  # of whose registers: (cohort, depth, code)
    self._waves: Any = None
    self._back = 0  # where a `ret` goes on
    self._lanes: Any = None
    self._data: Bits | None = None
    self._address: Bits | None = None
    self._loaded: Any = []  # [warps, 32, dwords] an access
    self._bulk: Any = NONE  # of all bytes that were read in bulk

  def cohort(self, cohort: Cohort) -> None:
    super().cohort(cohort)
    self._tables[cohort], self._passed[cohort], self._local[cohort] = {}, {}, Cells()

  def forget(self, cohort: Cohort) -> None:
    super().forget(cohort)
    kept: tuple[dict[Cohort, Any], ...] = (self._tables, self._passed, self._local)
    for by_cohort in kept: by_cohort.pop(cohort, None)

  # ---- registers

  def _registers(self, cohort: Cohort, depth: int, code: Code) -> Registers:
    return self._tables[cohort].setdefault((depth, code.base), {})

  def _read(self, cohort: Cohort, depth: int, code: Code, numbers: tuple[int, ...], rows: Any) -> Bits | None:
    """The union over some registers; a parameter that the function has not written is what it was given."""
    table, passed = self._registers(cohort, depth, code), self._passed[cohort].get(depth)
    found = [table[n][rows] for n in numbers if n in table]
    if passed is not None and any(n in self._given(code) for n in numbers if n not in table): found.append(passed[rows])
    return union(found)

  def _given(self, code: Code) -> frozenset[int]:
    known = self._formals.get(code.base)
    if known is None:
      entities = [code.flat.scope.find(p.variable.name) for p in code.flat.params]
      known = self._formals[code.base] = frozenset(e.number for e in entities if isinstance(e, Register))
    return known

  def _set(self, cohort: Cohort, table: Registers, n: int, rows: Any, lanes: Any, bits: Bits | None) -> None:
    kept = table.get(n)
    if kept is None:
      if bits is None or not bits.any(): return
      kept = table[n] = np.zeros((self.counts[cohort], LANES), np.uint64)
    kept[rows] = np.where(lanes, NONE if bits is None else bits, kept[rows])
    if not kept.any(): del table[n]

  # ---- one instruction

  def before(self, group: Group, pc: int, i: Shown) -> None:
    here = warps(group)
    cohort, code, depth = here.cohort, here.cohort.program.at(i.pc), len(here.frames)
    known = self._shapes.get(id(i.line))
    if known is None:
      known = self._shapes[id(i.line)] = i.line, shape_of(i.line, self._status(i) == "approximate")
    x = self._shape = known[1]
    self._table, self._waves, self._lanes = (cohort, depth, code), here.waves, here.lanes
    self._data = self._address = None
    self._loaded, self._bulk = [], NONE
    does, rows = x.does, here.waves - self.first[cohort]
    self._back = here.frames[-1].pc if here.frames else 0
    if does.guard is not None:
      bits = self._read(cohort, depth, code, (does.guard,), rows)
      self.arrived("branch" if does.opcode in _BRANCHES else "guard", pc, bits, self._lanes)
      if does.opcode != "bra":
        p = np.broadcast_to(here.v[does.guard], self._lanes.shape)
        self._lanes = self._lanes & (~p if does.negated else p)
    if not self._tables[cohort] and not self._passed[cohort]: return
    self._address = self._masked(self._read(cohort, depth, code, does.addresses, rows))
    data = self._masked(self._read(cohort, depth, code, x.reads, rows))
    if data is not None and x.mixes: data = np.broadcast_to(np.bitwise_or.reduce(data, 1, keepdims=True), data.shape)
    self._data = data
    self.arrived("address", pc, self._address)
    if does.opcode == "brx": self.arrived("branch", pc, data)
    elif does.opcode in _WAITS: self.arrived("wait", pc, data)
    elif does.opcode in _SURFACES: self.arrived("memory", pc, data)
    elif does.opcode == "call": self._called(pc, i, rows)
    elif does.opcode == "ret": self._data = self._read(cohort, depth, code, self._results(code), rows)

  def _masked(self, bits: Bits | None) -> Bits | None:
    """In the threads that execute the instruction."""
    return None if bits is None else np.where(self._lanes, bits, NONE)

  def after(self, group: Group, pc: int, i: Shown) -> None:
    x, (cohort, depth, code), rows = self._shape, self._table, self._waves - self.first[self._table[0]]
    lanes, opcode, results = self._lanes, x.does.opcode, x.results
    if x.approximate: self.executed[pc] += len(rows)
    elif self._data is None and not self._loaded and not self._bulk and not self._tables[cohort]: return
    if opcode == "ret":
      here = warps(group)
      if depth == 0: return
      code, depth = here.cohort.program.at(self._back), depth - 1
      line = self._behind(code).get(self._back)
      results = () if line is None else effects(line).results
    parts = [self._data, self._address, *(np.bitwise_or.reduce(word, axis=2) for word in self._loaded)]
    if self._bulk: parts.append(np.full((len(rows), LANES), self._bulk))
    if x.approximate: parts.append(np.full((len(rows), LANES), self.bit(pc)))
    total = union(parts)
    if total is not None and x.mixes:
      total = np.broadcast_to(np.bitwise_or.reduce(np.where(lanes, total, NONE), 1, keepdims=True), total.shape)
    table = self._registers(cohort, depth, code)
    words = self._loaded[0] if x.into > 1 and len(self._loaded) == 1 else None
    for k, n in enumerate(results):
      own = total
      if words is not None:
        own = np.bitwise_or.reduce(words[:, :, _dwords(k, x.into, words.shape[2])], axis=2)
        if self._address is not None: own = own | self._address
      self._set(cohort, table, n, rows, lanes, own)

  # ---- calls

  def _results(self, code: Code) -> tuple[int, ...]:
    entities = [code.flat.scope.find(p.variable.name) for p in code.flat.results]
    return tuple(e.number for e in entities if isinstance(e, Register))

  def _behind(self, code: Code) -> dict[int, Line]:
    """The calls of a function, by the PC behind each."""
    found = self._calls.get(code.base)
    if found is None:
      found = self._calls[code.base] = {code.pc(k + 1): line for k, line in enumerate(code.flat.lines)
                                        if line.instruction.opcode == "call"}
    return found

  def _called(self, pc: int, i: Shown, rows: Any) -> None:
    """A function is given its arguments; its registers are clean."""
    cohort, depth, code = self._table
    target = next((o for o in i.line.instruction.operands if isinstance(o, Name)), None)
    found = None if target is None else i.line.scope.find(target.text)
    if isinstance(found, Register): self.arrived("branch", pc, self._masked(
      self._read(cohort, depth, code, (found.number,), rows)))
    for (at, _), table in [*self._tables[cohort].items()]:
      if at == depth + 1:
        for n in [*table]: self._set(cohort, table, n, rows, self._lanes, None)
    self._set(cohort, self._passed[cohort], depth + 1, rows, self._lanes, self._data)

  # ---- memory

  def _place(self, group: Warps, access: Access) -> tuple[Cells, Any, Any]:
    """(memory, dwords by number [warps, 32, dwords], which count)."""
    cohort: Blocks = group.cohort
    at = np.where(access.active, access.addresses, np.uint64(0)).astype(np.int64)
    cells = self.memory
    if access.segment == "lds": cells, at = self.lds(cohort), shared_start(group, at) + (at & 0xFFFFFF)
    elif access.segment == "scratch":
      threads = (group.waves - self.first[cohort])[:, None] * LANES + np.arange(LANES)
      cells, at = self._local[cohort], at + threads * cohort.local.size
    words = (at >> 2)[:, :, None] + np.arange(max(1, access.width // 4))
    return cells, words, np.broadcast_to(access.active[:, :, None], words.shape)

  def _of(self, group: Warps, bits: Bits | None) -> Bits | None:
    """Of those warps of the instruction's that are in a group: some of them may wait."""
    if bits is None or len(bits) == group.size: return bits
    found: Bits = bits[np.searchsorted(self._waves, group.waves)]
    return found

  def access(self, group: Group, pc: int, i: Shown, access: Access) -> None:
    """Memory gives its origins to what is loaded, and takes those of what is stored."""
    here, x = warps(group), self._shape
    cells, at, on = self._place(here, access)
    moves = x.does.opcode in _MOVES
    if access.kind == "load":
      if moves: self._loaded = []
      return self._take(here, cells.read(at, on))
    data = self._of(here, self._data)
    words = None if data is None else data[:, :, None]
    if moves and self._loaded: words = self._of(here, self._loaded[0])
    elif x.from_ > 1 and data is not None: words = self._elements(here, x, at.shape[2])
    if moves: self._loaded = []
    if words is not None and access.segment != "scratch":
      self.arrived("memory", pc, np.bitwise_or.reduce(words, axis=2), access.active)
    cells.write(at, on, words, access.kind == "atomic" or access.width < 4)
    if access.kind == "atomic": self._take(here, cells.read(at, on))  # with what others have brought there with it

  def _take(self, group: Warps, loaded: Bits | None) -> None:
    """Some of the instruction's warps have loaded this."""
    if loaded is None: return
    if group.size != len(self._waves):
      out = np.zeros((len(self._waves), *loaded.shape[1:]), np.uint64)
      out[np.searchsorted(self._waves, group.waves)] = loaded
      loaded = out
    self._loaded.append(loaded)

  def _elements(self, group: Warps, x: DataFlow, dwords: int) -> Bits:
    """Origins of each dword that the elements of a vector are stored to."""
    cohort, depth, code = self._table
    rows = group.waves - self.first[cohort]
    out = np.zeros((group.size, LANES, dwords), np.uint64)
    for k, n in enumerate(x.reads):
      bits = self._read(cohort, depth, code, (n,), rows)
      if bits is not None: out[:, :, _dwords(k, x.from_, dwords)] |= bits[:, :, None]
    return out

  def copied(self, group: Group, pc: int, i: Shown, copy: Copy) -> None:
    """All that a thread reads in bulk goes to all that it writes behind it, and to its results."""
    cohort = group.cohort
    byte = (copy.addresses.astype(np.int64)[:, None] + np.arange(0, copy.width, min(4, copy.width))).reshape(-1)
    if copy.segment == "lds": byte = byte + copy.block * cohort.lds_size
    elif copy.segment == "tensor":  # its words follow those of shared memory
      at = copy.addresses.astype(np.int64)
      byte = len(cohort.lds) + 4 * (copy.block * WORDS + (at >> 16) * COLUMNS + (at & 0xFFFF))
    cells, at = self.memory if copy.segment == "global" else self.lds(cohort), np.unique(byte >> 2)
    on = np.ones(at.shape, bool)
    if copy.kind == "load":
      found = cells.read(at, on)
      if found is not None: self._bulk = self._bulk | np.bitwise_or.reduce(found)
      return
    data = self._bulk
    if self._data is not None: data = data | self._data[np.searchsorted(self._waves, group.waves[copy.row]), copy.lane]
    if data: self.arrived("memory", pc, np.full((1, 1), data))
    cells.write(at, on, np.full(at.shape, data) if data else None, "reduce" in self._shape.does.modifiers)


def _dwords(k: int, elements: int, dwords: int) -> slice:
  """The dwords that element k of a vector is in."""
  first = k * dwords // elements
  return slice(first, max(first + 1, -(-(k + 1) * dwords // elements)))

