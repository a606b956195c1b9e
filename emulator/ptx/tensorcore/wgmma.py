"""Products of matrices of a warpgroup (PTX ISA, section 9.7.15): operands lie in shared memory, described by 64 bits.

Each warp of the four makes its 16 rows when it gets there. A product is the warpgroup's: it is done, and what it reads
may be written, when the last of its warps has made its rows. So wgmma.commit_group counts and wgmma.wait_group waits
until the others have committed as many groups (section 9.7.15.7: a wgmma-group is made per warpgroup); wgmma.fence has
nothing to do.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, MachineFault
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, nothing, unknown
from tinyhw.emulator.ptx.group import LANES, Late, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.ranges import Thread
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore import sparse
from tinyhw.emulator.ptx.tensorcore.matrix import BITS, decoded, left, product, unit_for
from tinyhw.emulator.simt import Yield
from tinyhw.emulator.values.ops import U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Vector

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

WARPS: Final = 4  # of a warpgroup
_SWIZZLE: Final = {0: (16, 0), 1: (128, 7), 2: (64, 3), 3: (32, 1)}  # mode -> bytes of a row, bits that are exchanged
_ROW, _COLUMN = np.arange(LANES) >> 2, np.arange(LANES) & 3


def _offsets(rows: int, k: int, size: int, mode: int, leading: int, stride: int, across: bool) -> Value:
  """Byte offsets [rows, k] of a matrix's elements (section 9.7.15.5.1, canonical layouts). `across`: rows lie side by
  side, not the elements of a row."""
  width, _ = _SWIZZLE[mode]
  r, c = np.arange(rows)[:, None], np.arange(k)[None, :]
  n = width // size  # elements that lie side by side
  if not across:
    if mode: return r % 8 * width + r // 8 * stride + c * size
    return r % 8 * 16 + r // 8 * stride + c // n * leading + c % n * size
  if mode: return r % n * size + r // n * leading + c % 8 * width + c // 8 * stride
  return r % n * size + r // n * stride + c % 8 * 16 + c // 8 * leading


def operand(group: Warps, descriptor: int, rows: Value, total: int, k: int, t: str,
            across: bool) -> tuple[Value, int]:
  """Rows [n] of a matrix in shared memory as [1, n, k]."""
  size = BITS[t] // 8
  field = [(descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32)]
  mode = descriptor >> 62 & 3
  at = field[0] + _offsets(total, k, size, mode, field[1], field[2], across)[rows]
  at = at ^ (at >> 7 & _SWIZZLE[mode][1]) << 4
  return at.astype(np.int64), size


def commit(group: Warps) -> None:
  """wgmma.commit_group."""
  cohort = group.cohort
  if cohort.committed is None: cohort.committed = np.zeros(len(cohort.alive_lanes), np.int64)
  cohort.committed[cohort.row(group)] += 1
  cohort.changes.count += 1


def others(rows: Value, a_block: int) -> Value:
  """The four warps of each one's warpgroup [n, 4]: itself for those that its block of `a_block` warps has not."""
  in_block = (rows % a_block // WARPS * WARPS)[:, None] + np.arange(WARPS)
  return np.where(in_block < a_block, rows[:, None] // a_block * a_block + in_block, rows[:, None])


def waiting(line: Line, after: int) -> Callable[[Warps], Any]:
  """wgmma.wait_group, where all threads of the warps are."""
  left = operands.immediate(line, line.instruction.operands[0], "u32")
  if left is None: raise unknown(line)

  def end(group: Warps) -> Any:
    cohort = group.cohort
    if cohort.committed is None: return after
    rows = cohort.row(group)
    four = others(rows, cohort.shared.warps)
    late = cohort.committed[four] < cohort.committed[rows][:, None] - int(left)
    ready = ~np.logical_or.reduce(late & cohort.alive_lanes[four].any(axis=2), axis=1)
    return after if ready.all() else Late(after, ready) if ready.any() else Yield(group.pc)
  return end


@binds("wgmma")
def wgmma(code: Code, line: Line, form: Form) -> Step:
  """wgmma.mma_async and what orders it."""
  i = line.instruction
  if "commit_group" in form.modifiers: return commit
  if "mma_async" not in form.modifiers: return nothing
  shape = next(re.fullmatch(r"(?a)m64n(\d+)k(\d+)", m) for m in i.modifiers if m.startswith("m64"))
  kinds = [m for m in i.modifiers if m in BITS]
  if shape is None or len(kinds) != 3: raise unknown(line)
  n, k = int(shape[1]), int(shape[2])
  d, a, b = kinds
  if len(i.operands) < 3 + 2 * ("sp" in form.modifiers): raise operands.not_taken(line)
  registers = operands.elements(line, i.operands[0])
  packed = d == "f16"
  if len(registers) != n // (4 if packed else 2): raise DecodeError(f"{i.name} has {n // 2} results", where=where(line))
  own = "b32" if packed else d
  writes = [operands.writer(code, line, o, own) for o in registers]
  reads = [operands.reader(code, line, o, own) for o in registers]
  left_in_registers = isinstance(i.operands[1], Vector)
  first = ([operands.reader(code, line, o, "b32") for o in operands.elements(line, i.operands[1])]
           if left_in_registers else [operands.reader(code, line, i.operands[1], "b64")])
  second = operands.reader(code, line, i.operands[2], "b64")
  after = [*i.operands[3:]]
  metadata, selector, stored = None, 0, k
  if "sp" in form.modifiers:
    metadata, chosen = operands.reader(code, line, after.pop(0), "b32"), operands.immediate(line, after.pop(0), "u32")
    most, stored = 1 if BITS[a] > 8 else 0, k // 2
    if chosen is None or int(chosen) > most:
      raise DecodeError(f"the sparsity selector of {i.name} is 0 to {most}", where=where(line))
    selector = int(chosen)
  scale = operands.reader(code, line, after[0], "pred") if after else None
  rest = [int(operands.immediate(line, o, "s32") or 0) for o in after[1:]]
  signs = rest[:2] if len(rest) >= 2 else [1, 1]
  turned = rest[2:] if a in {"f16", "bf16"} else []
  across_a = bool(turned[0]) if turned and not left_in_registers else False
  across_b = bool(turned[-1]) if turned else False

  def fetched(group: Warps, row: int, descriptor: int, rows: Value, total: int, k: int, t: str, across: bool) -> Value:
    """A matrix for one warp of the group [n, k]."""
    if t == "b1":
      whole = fetched(group, row, descriptor, rows, total, k // 8, "u8", across)
      return np.unpackbits(whole.astype(np.uint8), axis=1, bitorder="little").astype(np.int64)
    at, size = operand(group, descriptor, rows, total, k, t, across)
    if int(at.max()) + size > group.cohort.shared.total:
      spaces.load(group, "shared", U64.type(int(at.max())), size)  # tells what is wrong
    if group.cohort.observer is not None:
      pieces = np.unique(at >> 4).astype(np.uint64) << np.uint64(4)
      Thread(group, row, 0).show("lds", "load", pieces, 16, int(group.workgroups[row]), "wgmma")
    base = int(group.workgroups[row]) * group.cohort.lds_size
    raw = group.cohort.lds[(base + at)[..., None] + np.arange(size)].view(np.dtype(f"u{size}"))[..., 0]
    return decoded(raw.astype(np.uint32), t)[..., 0]

  def run(group: Warps) -> None:
    rows = np.arange(16)
    descriptors = np.broadcast_to(second(group), (group.size, LANES))[:, 0].tolist()
    right = np.stack([fetched(group, w, x, np.arange(n), n, k, b, across_b) for w, x in enumerate(descriptors)])
    if left_in_registers:
      x = left([np.ascontiguousarray(operands.full(group, r(group))) for r in first], a, 16, stored)
    else:
      given = np.broadcast_to(first[0](group), (group.size, LANES))[:, 0].tolist()
      warp = group.waves % group.cohort.shared.warps % 4
      x = np.stack([fetched(group, w, y, rows + 16 * int(warp[w]), 64, stored, a, across_a)
                    for w, y in enumerate(given)])
    if metadata is not None:
      words = operands.full(group, metadata(group))
      good = sparse.valid(words, a, k, selector)
      if not good.all():
        raise MachineFault(f"metadata of {i.name} that names a place of a chunk twice",
                           lane=spaces.lane_of(group, ~good[:, None]))
      x = sparse.expanded(x, sparse.positions(words, a, k, selector), a, k)
    x, y = x * (signs[0] or 1), right.transpose(0, 2, 1) * (signs[1] or 1)
    old = [operands.full(group, r(group)) for r in reads]
    if packed: old = [h for w in old for h in (w.astype(np.uint16).view(np.float16),
                                               (w >> np.uint32(16)).astype(np.uint16).view(np.float16))]
    wide = np.int64 if d == "s32" else np.float64
    c = np.zeros((group.size, 16, n), wide)
    for e, value in enumerate(old): c[:, _ROW + 8 * (e >> 1 & 1), 8 * (e >> 2) + 2 * _COLUMN + (e & 1)] = value
    if scale is not None: c = np.where(np.broadcast_to(scale(group), (group.size, LANES))[:, :1, None], c, 0)
    total = product(x, y, c, d, form.modifiers, (a, b), unit_for(code, group, line, a, metadata is not None))
    out = [np.ascontiguousarray(total[:, _ROW + 8 * (e >> 1 & 1), 8 * (e >> 2) + 2 * _COLUMN + (e & 1)])
           for e in range(n // 2)]
    if packed:
      raw = [o.view(np.uint16).astype(np.uint32) for o in out]
      out = [raw[2 * e] | raw[2 * e + 1] << np.uint32(16) for e in range(n // 4)]
    for write, value in zip(writes, out): write(group, value)
  return run
