"""What nobody has written: registers, shared and local memory, pages of device memory; and what is decided by it.

Each register has a shadow of its threads, each byte of shared and local memory one; a result depends on what nobody has
written where a source does. That is told where it is an address, decides where to go, or is stored to global memory; to
keep it in registers or shared memory is no mistake.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhw.emulator.check.holes import Holes
from tinyhw.emulator.check.ptx import matrices
from tinyhw.emulator.check.ptx.effects import Effects
from tinyhw.emulator.observe import Access, Copy
from tinyhw.emulator.ptx.group import LANES, Blocks, Warps
from tinyhw.emulator.ptx.module.scope import Register
from tinyhw.emulator.ptx.program import Code, Shown
from tinyhw.emulator.ptx.warp import source_lanes
from tinyhw.emulator.values.ops import FALSE
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.model import Not

Reader = Callable[[Warps], Value]


@dataclass(frozen=True)
class Use:
  """What nobody has written decides something in a thread; `origin` says where it comes from."""
  message: str
  row: int
  lane: int
  register: str | None
  origin_pc: int | None


class Undefined:
  """The shadows of one cohort. `w` are the indices of a group's warps in it."""

  def __init__(self, cohort: Blocks, waves: int, holes: Holes) -> None:
    self.waves, self.holes, self.cohort = waves, holes, cohort
    self._functions: dict[int, list[Value | None]] = {}  # function's base -> shadow of each register, None: defined
    self._everything = np.ones((waves, LANES), bool)
    self.shared = np.zeros(len(cohort.lds), bool)  # bytes that were written; what the system keeps is its own affair
    system = cohort.shared.system
    self.shared.reshape(-1, cohort.lds_size)[:, system.start:system.stop] = True
    self.local = np.zeros(len(cohort.local.u8), bool)
    self._loaded: Value | None = None  # what a load has found that nobody has written; and of each element of a vector
    self._found: Value | None = None
    self._data: Value | None = None  # what a result or a store's data depends on; and of each element of a vector
    self._elements: Value | None = None
    self._results: dict[int, Value] | None = None  # what each of several results depends on
    self.origin: dict[tuple[int, int], tuple[str, int | None]] = {}
    self._source: tuple[str, int | None] = ("", None)

  def registers(self, code: Code) -> list[Value | None]:
    """The shadows of a function's registers."""
    found = self._functions.get(code.base)
    if found is None:
      found = self._functions[code.base] = [self._everything] * len(code.flat.types)
      for place in (*code.flat.params, *code.flat.results):
        formal = code.flat.scope.find(place.variable.name)
        if isinstance(formal, Register): found[formal.number] = None
    return found

  # ---- an instruction

  def before(self, group: Warps, w: Value, lanes: Value, code: Code, i: Shown, does: Effects) -> Iterator[Use]:
    """Look at the sources; gives the uses that they decide. `lanes` are those whose guard is true."""
    self._loaded = self._data = self._found = self._elements = self._results = None
    shadow = self.registers(code)
    if does.guard is not None and shadow[does.guard] is not None:
      yield from self._decides("whether this is executed depends on", shadow, does.guard, w, group.lanes, code)
    if does.opcode in {"brx"}:
      for r in does.sources:
        if shadow[r] is not None: yield from self._decides("where to go depends on", shadow, r, w, lanes, code)
    for r in does.addresses:
      if shadow[r] is not None: yield from self._decides("the address depends on", shadow, r, w, lanes, code)
    tainted = [r for r in does.sources if (known := shadow[r]) is not None and (known[w] & lanes).any()]
    if not tainted or does.alike: return
    self._source = self._origin(code, tainted[0])
    self._data = self._result(group, w, lanes, code, i, does, shadow)
    def of(r: int) -> Value: return np.zeros((group.size, LANES), bool) if (x := shadow[r]) is None else x[w]
    if does.opcode in {"mma", "movmatrix"}: self._results = matrices.results(does, of)
    if does.opcode == "stmatrix": self._elements = matrices.stored(does, of)
    if does.opcode == "st" and does.elements:
      self._elements = np.zeros((group.size, LANES, len(does.elements)), bool)
      for k, registers in enumerate(does.elements):
        for r in registers: self._elements[:, :, k] |= lanes & (False if (known := shadow[r]) is None else known[w])

  def _result(self, group: Warps, w: Value, lanes: Value, code: Code, i: Shown, does: Effects,
              shadow: list[Value | None]) -> Value:
    """Which threads' results depend on what nobody has written."""
    def of(r: int) -> Value: return np.zeros((group.size, LANES), bool) if (x := shadow[r]) is None else x[w]
    if does.opcode == "selp" and len(does.sources) == 3:
      a, b, p = does.sources
      chosen = np.where(np.broadcast_to(group.v[p], (group.size, LANES)), of(a), of(b))
      return (chosen | of(p)) & lanes
    out = np.zeros((group.size, LANES), bool)
    for r in does.sources: out |= of(r)
    out &= lanes & ~_absorbed(group, i, does, of)
    if does.opcode == "shfl":
      j = source_lanes(code, i.line)(group)
      return np.take_along_axis(of(does.sources[0]) & lanes, j, axis=1) if does.sources else out
    if does.spread: return np.broadcast_to(out.any(axis=1, keepdims=True), out.shape)
    return out

  def after(self, w: Value, lanes: Value, code: Code, pc: int, does: Effects) -> None:
    """The instruction has run in `lanes`: note what it wrote."""
    new = self._data if self._loaded is None else self._loaded if self._data is None else self._loaded | self._data
    if does.opcode in {"call", "ld", "ldu", "ldmatrix", "atom"}: new = self._loaded
    if does.opcode == "ldmatrix" and new is not None:
      new = np.broadcast_to(new.any(axis=1, keepdims=True), new.shape)
      if self._found is not None and (found := matrices.loaded(does, self._found)) is not None:
        self._results = dict(zip(does.matrices[0], found))
    shadow = self.registers(code)
    whole = lanes.shape[0] == self.waves and bool(lanes.all())
    each = {r: k for k, registers in enumerate(does.elements) for r in registers} if self._found is not None else {}
    of_all = new
    for r in does.results:
      old, new = shadow[r], of_all
      if self._found is not None and r in each:
        new = self._found[:, :, each[r]]
        if not new.any(): new = None
      if self._results is not None and (new := self._results.get(r)) is not None and not new.any(): new = None
      if new is None and (old is None or whole):
        shadow[r] = None
        continue
      table = np.zeros((self.waves, LANES), bool) if old is None else old.copy() if old is self._everything else old
      table[w] = np.where(lanes, False if new is None else new, table[w])
      shadow[r] = table if table.any() else None
      if new is not None: self.origin[code.base, r] = self._source

  # ---- what is read

  def _origin(self, code: Code, r: int) -> tuple[str, int | None]:
    return self.origin.get((code.base, r), (f"{name_of(code, r)}, which nobody has written", None))

  def _decides(self, what: str, shadow: list[Value | None], r: int, w: Value, lanes: Value,
               code: Code) -> Iterator[Use]:
    """A use of a register; it counts as written from here on, so that it is told once."""
    known = shadow[r]
    if known is None or not (bad := known[w] & lanes).any(): return
    yield self._use(what, bad, self._origin(code, r), name_of(code, r))
    shadow[r] = None

  @staticmethod
  def _use(what: str, bad: Value, origin: tuple[str, int | None], register: str | None) -> Use:
    row, lane = (int(k) for k in np.argwhere(bad)[0])
    return Use(f"{what} {origin[0]}", row, lane, register, origin[1])

  # ---- memory

  def access(self, group: Warps, w: Value, pc: int, does: Effects, access: Access) -> Iterator[Use]:
    """What a load finds that nobody has written, what a store makes of its data."""
    if does.opcode == "mbarrier": return
    if access.kind != "store" and does.opcode in {"call", "cp"}: self._loaded = None
    if access.segment == "global":
      if access.kind != "load":
        data = self._stored(does)
        bad = None if data is None else data & access.active
        if bad is not None and bad.any():
          yield self._use("the value stored to memory depends on", bad, self._source, None)
        self.holes.stored(access.addresses[access.active])
      elif access.active.any():
        bad = self.holes.at(access.addresses) & access.active
        if bad.any(): self._take(bad, access, "device memory", pc)
      return
    memory, index = self._index(group, w, access)
    on = access.active
    if access.kind != "store":
      n = matrices.ELEMENTS if does.opcode == "ldmatrix" else len(does.elements) or 1
      each = on[:, :, None] & ~memory[index].reshape(*on.shape, n, access.width // n).all(axis=3)
      bad = each.any(axis=2)
      if bad.any(): self._take(bad, access, "shared memory" if access.segment == "lds" else "local memory", pc)
      if n > 1: self._found = each
    if access.kind == "load": return
    data = self._stored(does)
    known = np.ones(index.shape, bool)
    if self._elements is not None:
      known &= ~np.repeat(self._elements, access.width // self._elements.shape[2], axis=2)
    elif data is not None: known &= ~data[:, :, None]
    if access.kind == "atomic": known &= memory[index]
    memory[index[on]] = known[on]

  def _stored(self, does: Effects) -> Value | None:
    return self._loaded if does.opcode in {"call", "cp", "ret"} else self._data

  def _take(self, bad: Value, access: Access, name: str, pc: int) -> None:
    self._loaded = bad if self._loaded is None else self._loaded | bad
    self._source = f"{name} at {int(access.addresses[bad][0]):#x}, which nobody has written", pc

  def _index(self, group: Warps, w: Value, access: Access) -> tuple[Value, Value]:
    """(shadow, index of each byte [warps, lanes, width]) of shared or local memory."""
    each = np.arange(access.width, dtype=np.int64)
    at = np.where(access.active, access.addresses, np.uint64(0)).astype(np.int64)
    if access.segment == "lds":
      start = shared_start(group, at)
      return self.shared, np.minimum((start + (at & 0xFFFFFF))[:, :, None] + each, len(self.shared) - 1)
    threads = np.arange(self.waves)[w][:, None] * LANES + np.arange(LANES)
    size = self.cohort.local.size
    return self.local, (threads * size + np.minimum(at, size - access.width))[:, :, None] + each

  def copied(self, copy: Copy) -> None:
    """Bytes that a thread has moved: what is stored is written."""
    if copy.kind != "store": return
    if copy.segment == "global": return self.holes.stored(copy.addresses)
    start = copy.block * self.cohort.lds_size
    at = start + copy.addresses.astype(np.int64)[:, None] + np.arange(copy.width)
    self.shared[np.minimum(at, len(self.shared) - 1).reshape(-1)] = True


def _absorbed(group: Warps, i: Shown, does: Effects, of: Callable[[int], Value]) -> Value:
  """Where a source that was written decides the result alone: 0 in an `and`, all ones in an `or`, also of the predicate
  that a comparison is combined with."""
  how = does.opcode if does.opcode in {"and", "or"} else next((m for m in ("and", "or") if m in does.modifiers), "")
  if not how or does.opcode not in {"and", "or", "setp", "set"}: return FALSE
  if does.opcode in {"and", "or"}: given = [(r, False) for r in does.sources]
  else: given = [(does.sources[-1], isinstance(i.line.instruction.operands[-1], Not))]
  out: Value = FALSE
  for r, negated in given:
    value = group.v[r] if negated == (how == "or") else ~group.v[r]
    out = out | ((value == 0) & ~of(r))
  return out


def shared_start(group: Warps, at: Value) -> Value:
  """Where the shared memory begins that addresses [warps, lanes] are in, in the cohort's."""
  from tinyhw.emulator.ptx.memory import spaces
  slots = group.workgroups[:, None]
  rank = at >> spaces.RANK
  if rank.any(): slots = np.maximum(spaces.block_of(group, slots, rank), 0)
  return slots * group.cohort.lds_size


def name_of(code: Code, number: int) -> str:
  """A register's name in the text."""
  from tinyhw.emulator.ptx.module.scope import Range
  for scope in {id(line.scope): line.scope for line in code.flat.lines}.values():
    at: Any = scope
    while at is not None:
      for name, entity in at.names.items():
        if isinstance(entity, Register) and entity.number == number: return str(name)
        if isinstance(entity, Range) and entity.first <= number < entity.first + entity.count:
          return f"{name.removesuffix('<>')}{number - entity.first}"
      at = at.outer
  return f"register {number}"
