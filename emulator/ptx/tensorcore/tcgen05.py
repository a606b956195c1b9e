"""The fifth generation of tensor cores, but their products: tensor memory and what moves data there (PTX ISA, section
9.7.16).

All is done at once, in the order of the threads: what the program waits for has happened already, and tcgen05.commit
arrives at its mbarrier. A block has the tensor memory of a multiprocessor to itself. Of a pair of blocks each allocates
and gives back for itself; what one thread starts for the pair is done in both.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, computed, need, nothing, unknown
from tinyhw.emulator.ptx.group import LANES, Late, Warps
from tinyhw.emulator.ptx.meanings.registry import find
from tinyhw.emulator.ptx.memory import mbarrier, spaces
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.memory.copies import multicast
from tinyhw.emulator.ptx.memory.ranges import Thread, threads
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore import tcgen05_mma, tmem
from tinyhw.emulator.ptx.tensorcore.cta_group import blocks, missing, pair_of
from tinyhw.emulator.ptx.tensorcore.matrix import unpacked
from tinyhw.emulator.ptx.tensorcore.shared_matrix import Chunks
from tinyhw.emulator.simt import Yield
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.ops import Ops
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

COPIES: Final = {"128x256b": (128, 2), "4x256b": (4, 2), "128x128b": (128, 1), "64x128b": (64, 1), "32x128b": (32, 1)}


def alike(group: Warps, row: int, values: Value, what: str) -> int:
  """What the threads of a warp give alike. Raises MachineFault where they do not."""
  given = operands.full(group, values)[row]
  first = int(given[0])
  if (given != first).any():
    raise tmem.fault(group, row, int((given != first).argmax()), f"threads of a warp give different {what}")
  return first


@binds("tcgen05")
def tcgen05(code: Code, line: Line, form: Form) -> Step:
  """All of them; products are `tcgen05_mma`'s."""
  m = form.modifiers
  if "mma" in m: return tcgen05_mma.bound(code, line, form)
  kind = line.instruction.modifiers[0]
  if "::" in kind: return nothing  # fences and waits: all is done
  return _KINDS[kind](code, line, form)


# ---- allocation

def _allocating(code: Code, line: Line, form: Form) -> Callable[[Warps], Value]:
  """Allocates for each warp of a group, as far as columns are free: which warps have got theirs."""
  i, pair = line.instruction, pair_of(form)
  need(line, 2)
  space = spaces.space_of(form.modifiers)
  to, count = address(code, line, i.operands[0], space), operands.reader(code, line, i.operands[1], "u32")

  def run(group: Warps) -> Value:
    done = np.zeros(group.size, bool)
    store = tmem.of(group.cohort)
    wanted, ats = count(group), operands.full(group, to(group))
    for row in range(group.size):
      t = Thread(group, row, 0)
      blocks(t, pair)
      block, pc = int(group.workgroups[row]), group.cohort.shown(group.pc)
      try: first = store.allocate(block, alike(group, row, wanted, "numbers of columns"), pc, int(group.waves[row]),
                                  group.cohort.program.describe(pc))
      except ValueError as why: raise t.fault(str(why)) from None
      except tmem.Blocked: continue
      t.write(space, int(ats[row, 0]), np.array([first], np.uint32).view(np.uint8))
      done[row] = True
    return done
  return run


def _alloc(code: Code, line: Line, form: Form) -> Step:
  run = _allocating(code, line, form)

  def step(group: Warps) -> None:
    if not run(group).all(): raise tmem.Blocked
  return step


def waiting(code: Code, line: Line, form: Form, after: int) -> Callable[[Warps], Any]:
  """tcgen05.alloc where all threads of the warps are: those that get no columns come back."""
  run = _allocating(code, line, form)

  def end(group: Warps) -> Any:
    ready = run(group)
    return after if ready.all() else Late(after, ready) if ready.any() else Yield(group.pc)
  return end


def _dealloc(code: Code, line: Line, form: Form) -> Step:
  i, pair = line.instruction, pair_of(form)
  need(line, 2)
  at, count = (operands.reader(code, line, o, "u32") for o in i.operands)

  def run(group: Warps) -> None:
    for row in range(group.size):
      t = Thread(group, row, 0)
      blocks(t, pair, lives=False)
      try: tmem.of(group.cohort).free(int(group.workgroups[row]), alike(group, row, at(group), "addresses"),
                                      alike(group, row, count(group), "numbers of columns"))
      except ValueError as why: raise t.fault(str(why)) from None
      group.cohort.changes.count += 1
  return guarded(line, run)


def _relinquish(code: Code, line: Line, form: Form) -> Step:
  def run(group: Warps) -> None:
    for row in range(group.size):
      blocks(Thread(group, row, 0), pair_of(form), lives=False)
      tmem.of(group.cohort).relinquished[int(group.workgroups[row])] = True
  return guarded(line, run)


# ---- between registers and tensor memory

class TmemAccess:
  """The words that a tcgen05.ld or tcgen05.st of a warp touches."""

  def __init__(self, code: Code, line: Line, form: Form, place: Operand, half: Operand | None) -> None:
    m = line.instruction.modifiers
    self.shape = next(s for s in tmem.REGISTERS if s in m)
    self.count = next(int(x[1:]) for x in m if x[0] == "x" and digits(x[1:]))
    apart = 0
    if half is not None:
      given = operands.immediate(line, half, "u32")
      if given is None: raise unknown(line)
      apart = int(given)
    self.packed = not form.modifiers.isdisjoint({"pack::16b", "unpack::16b"})
    self.lanes, self.columns = tmem.places(self.shape, self.count, self.packed, apart)
    self.most = int(self.columns.max()) + 1
    self.read = address(code, line, place, tmem.SPACE)
    self.registers = tmem.REGISTERS[self.shape] * self.count
    self.what = {"ld": "reads", "st": "writes"}[m[0]]

  def places(self, group: Warps, row: int) -> tuple[int, Value, Value]:
    """(block, lanes, columns) for a warp. Raises MachineFault for what it may not touch."""
    at = alike(group, row, self.read(group), "addresses of tensor memory")
    t, lane, column = Thread(group, row, 0), at >> 16, at & 0xFFFF
    quarter = int(group.waves[row]) % group.cohort.shared.warps % 4 * tmem.UNIT
    last = lane + int(self.lanes.max())
    if lane < quarter or last >= quarter + tmem.UNIT:
      raise t.fault(f"a warp {self.what} lanes {lane} to {last} of tensor memory, and reaches {quarter} to "
                    f"{quarter + tmem.UNIT - 1}", at)
    block = int(group.workgroups[row])
    bad = tmem.of(group.cohort).missing(block, column, column + self.most - 1)
    if bad is not None and bad - column in self.columns:
      raise t.fault(f"a warp {self.what} columns {column} to {column + self.most - 1} of tensor memory, of which {bad} "
                    "is not allocated", at)
    return block, self.lanes + lane, self.columns + column


def _registers(line: Line, operand: Operand, access: TmemAccess) -> tuple[Operand, ...]:
  found = operands.elements(line, operand)
  if len(found) != access.registers:
    raise DecodeError(f"{line.instruction.name} has {access.registers} registers", where=where(line))
  return found


def _ld(code: Code, line: Line, form: Form) -> Step:
  """Loads; with .red also the extreme of what each thread gets."""
  i, reduces = line.instruction, "red" in form.modifiers
  to, *rest = i.operands
  extreme = rest.pop(0) if reduces else None
  t = form.type if reduces else "b32"
  access = TmemAccess(code, line, form, rest[0], rest[1] if len(rest) > 1 else None)
  writes = [operands.writer(code, line, o, t) for o in _registers(line, to, access)]
  reduced = None if extreme is None else operands.writer(code, line, extreme, t)
  fold = _extreme(form) if reduces else None

  def run(group: Warps) -> None:
    out = np.zeros((len(writes), group.size, LANES), np.uint32)
    for row in range(group.size):
      block, lanes, columns = access.places(group, row)
      tmem.show(Thread(group, row, 0), block, lanes, columns, "load")
      words = tmem.of(group.cohort).cells(block)[lanes, columns]
      found = words[..., 0] if not access.packed else words[..., 0] & np.uint32(0xFFFF) | words[..., 1] << np.uint32(16)
      out[:, row] = found.T
    values = out.view(operands.dtype_of(t))
    for write, value in zip(writes, values): write(group, value)
    if reduced is not None and fold is not None: reduced(group, fold(Ops, *values))
  return guarded(line, run)


def _extreme(form: Form) -> Callable[..., Value]:
  """min or max of numbers, as the instruction of that name has it."""
  m = form.modifiers
  two = forms.find(".".join(w for w in ("min", "max", "NaN", form.type) if w in m))
  assert two is not None and (meaning := find(two)) is not None
  run = computed(two, meaning)

  def fold(o: Any, *values: Value) -> Value:
    return reduce(lambda a, b: run(o, a, b), map(o.abs, values) if "abs" in m else values)
  return fold


def _st(code: Code, line: Line, form: Form) -> Step:
  i = line.instruction
  access = TmemAccess(code, line, form, i.operands[0], i.operands[1] if len(i.operands) > 2 else None)
  reads = [operands.reader(code, line, o, "b32") for o in _registers(line, i.operands[-1], access)]

  def run(group: Warps) -> None:
    values = np.stack([operands.full(group, r(group)) for r in reads], axis=-1)
    for row in range(group.size):
      block, lanes, columns = access.places(group, row)
      tmem.show(Thread(group, row, 0), block, lanes, columns, "store")
      words = values[row][..., None]
      if access.packed: words = np.concatenate([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=-1)
      tmem.of(group.cohort).cells(block)[lanes, columns] = words
    group.cohort.changes.count += 1
  return guarded(line, run)


# ---- from shared memory

def _cp(code: Code, line: Line, form: Form) -> Step:
  i, m, pair = line.instruction, form.modifiers, pair_of(form)
  need(line, 2)
  rows, chunks = next(COPIES[x] for x in i.modifiers if x in COPIES)
  to, descriptor = address(code, line, i.operands[0], tmem.SPACE), operands.reader(code, line, i.operands[1], "b64")
  lanes = _lanes(rows, m)
  bits = 4 if "b4x16_p64" in m else 6 if "b6x16_p32" in m else 0

  def run(group: Warps) -> None:
    ats, given = operands.full(group, to(group)), operands.full(group, descriptor(group))
    for t in threads(group):
      at = int(ats[t.row, t.lane])
      lane, column = at >> 16, at & 0xFFFF
      if lane: raise t.fault(f"tcgen05.cp to lane {lane} of tensor memory: it begins at lane 0", at)
      source = Chunks(t, int(given[t.row, t.lane]))
      for block in blocks(t, pair):
        missing(t, block, column, 4 * chunks, "a copy to")
        raw = source.rows(block, rows, chunks)
        if bits: raw = decompressed(raw, bits)
        words = np.ascontiguousarray(raw).view(np.uint32).reshape(rows, 4 * chunks)
        cells = tmem.of(group.cohort).cells(block)
        for first, count, start in lanes:
          there = first + np.arange(count) if rows > 4 else first + tmem.UNIT * np.arange(4)
          tmem.show(t, block, there[:, None], np.arange(column, column + 4 * chunks), "store", "tcgen05")
          cells[there, column:column + 4 * chunks] = words[start:start + count]
      group.cohort.changes.count += 1
  return guarded(line, run)


def _lanes(rows: int, m: frozenset[str]) -> list[tuple[int, int, int]]:
  """(first lane, how many, first row) of the parts of a copy."""
  if "warpx4" in m: return [(32 * k, 32, 0) for k in range(4)]
  if "warpx2::02_13" in m: return [(32 * k, 32, 32 * (k & 1)) for k in range(4)]
  if "warpx2::01_23" in m: return [(32 * k, 32, 32 * (k >> 1)) for k in range(4)]
  return [(0, rows, 0)]


def decompressed(raw: Value, bits: int) -> Value:
  """Chunks of 16 bytes [.., 16] that hold 16 elements of 4 or 6 bits, with a byte for each: one of 4 bits lies in the
  middle of its byte."""
  codes = unpacked(raw, bits)
  return (codes << 2 if bits == 4 else codes).astype(np.uint8)


def _shift(code: Code, line: Line, form: Form) -> Step:
  i, pair = line.instruction, pair_of(form)
  need(line, 1)
  read = address(code, line, i.operands[0], tmem.SPACE)

  def run(group: Warps) -> None:
    ats = operands.full(group, read(group))
    for t in threads(group):
      at = int(ats[t.row, t.lane])
      lane, column = at >> 16, at & 0xFFFF
      if lane % tmem.UNIT or lane >= tmem.LANES:
        raise t.fault(f"tcgen05.shift at lane {lane} of tensor memory, no multiple of {tmem.UNIT}", at)
      for block in blocks(t, pair):
        missing(t, block, column, 8, "a shift of")
        cells = tmem.of(group.cohort).cells(block)
        rows, eight = lane + np.arange(tmem.UNIT)[:, None], np.arange(column, column + 8)
        tmem.show(t, block, rows[:-1], eight, "load", "tcgen05")
        tmem.show(t, block, rows[1:], eight, "store", "tcgen05")
        part = cells[lane:lane + tmem.UNIT, column:column + 8].copy()
        cells[lane + 1:lane + tmem.UNIT, column:column + 8] = part[:-1]
      group.cohort.changes.count += 1
  return guarded(line, run)


def _commit(code: Code, line: Line, form: Form) -> Step:
  i, m, pair = line.instruction, form.modifiers, pair_of(form)
  several = "multicast::cluster" in m
  need(line, 2 if several else 1)
  space = spaces.space_of(m)
  read = address(code, line, i.operands[0], space)
  mask = operands.reader(code, line, i.operands[1], "u16") if several else None

  def run(group: Warps) -> None:
    ats = operands.full(group, read(group))
    masks = None if mask is None else operands.full(group, mask(group))
    for t in threads(group):
      blocks(t, pair)
      at = int(ats[t.row, t.lane])
      if t.near(space, at) != "shared": raise t.fault(f"an mbarrier outside of shared memory: {at:#x}", at)
      slot, offset = t.shared(space, at)
      for block in [slot] if masks is None else multicast(t, int(masks[t.row, t.lane])):
        mbarrier.arrived(group, t.row, t.lane, block, offset)
  return guarded(line, run)


_KINDS: Final[dict[str, Callable[[Code, Line, Form], Step]]] = {
  "alloc": _alloc, "dealloc": _dealloc, "relinquish_alloc_permit": _relinquish, "ld": _ld, "st": _st, "cp": _cp,
  "shift": _shift, "commit": _commit}

