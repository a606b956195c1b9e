"""mma.sync of narrow floats, whose blocks may have scale factors (PTX ISA, sections 9.7.14.3, 9.7.14.5 and 9.7.14.6).

Which thread of a pair has the factors of which row the manual shows in a figure alone: here the first has those of the
upper eight rows, as CUTLASS's programs for sm_120 have it. Where the left matrix is sparse, all four threads have its
metadata, as those of int8 and int4 (`sparse`).
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import DecodeError, MachineFault, Unsupported
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, unknown
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.operands import Reader
from tinyhw.emulator.ptx.tensorcore import matrix, sparse
from tinyhw.emulator.ptx.tensorcore.tcgen05_mma import SCALES
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

ROWS: Final = 16
NARROW: Final = frozenset({"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"})


class Factors:
  """The scale factors of an operand: of its rows (A) or columns (B)."""

  def __init__(self, code: Code, line: Line, words: Operand, selector: Operand, which: str, count: int) -> None:
    parts = operands.elements(line, selector)
    if len(parts) != 2: raise DecodeError(f"{line.instruction.name} takes a byte and a thread", where=where(line))
    self.words = operands.reader(code, line, operands.only(line, words), "b32")
    self.byte, self.thread = (operands.reader(code, line, o, "u16") for o in parts)
    self.which, self.count = which, count

  def get(self, group: Warps, table: Value, k: int) -> Value:
    """[warps, rows or columns, k]."""
    words = operands.full(group, self.words(group))
    byte, thread = (operands.full(group, r(group))[:, 0].astype(np.int64) for r in (self.byte, self.thread))
    n = np.arange(ROWS if self.which == "a" else 8)
    if self.which == "a": lane = 4 * (n & 7) + 2 * (thread[:, None] & 1) + (n >> 3)
    else: lane = 4 * n + (thread[:, None] & 3)
    found = np.take_along_axis(words, lane, axis=1)[..., None]
    shifts = 8 * (byte[:, None, None] + np.arange(self.count)).astype(np.uint32)
    return np.repeat(table[found >> (shifts & np.uint32(31)) & np.uint32(0xFF)], k // self.count, axis=2)


def mma(code: Code, line: Line, form: Form) -> Step:
  """mma.sync and mma.sp with a .kind."""
  i, m = line.instruction, form.modifiers
  if code.program.chip_sums: raise Unsupported("sums as the chip's", f"of {i.name}: nobody has measured them")
  scaled, thin = "block_scale" in m, "sp::ordered_metadata" in m
  if len(i.operands) != 4 + 2 * thin + 4 * scaled: raise unknown(line)
  d, a, b, c = [x for x in i.modifiers if x in matrix.BITS][:4]
  packed = "kind::mxf8f6f4" not in m and "kind::f8f6f4" not in m
  k = (64 if packed else 32) << thin
  a, b = (t + "x2" if packed else t for t in (a, b))  # as they lie in registers
  word = {"f16": "b32"}
  parts = [operands.elements(line, o) for o in i.operands[:4]]
  wide = {"f16": 2, "f32": 4}
  if [len(p) for p in parts] != [wide[d], 4, 2 << thin, wide[c]]:
    raise DecodeError(f"{i.name} takes {wide[d]}, 4, {2 << thin} and {wide[c]} registers", where=where(line))
  writes = [operands.writer(code, line, o, word.get(d, d)) for o in parts[0]]
  reads: list[list[Reader]] = [[operands.reader(code, line, o, t) for o in p]
                               for p, t in zip(parts[1:], ("b32", "b32", word.get(c, c)))]
  count = next((int(x[11]) for x in m if x.startswith("scale_vec::")), 1 if "kind::mxf8f6f4" in m else 2)
  metadata = operands.reader(code, line, operands.only(line, i.operands[4]), "b32") if thin else None
  if thin and operands.immediate(line, i.operands[5], "u32") != 0:
    raise DecodeError(f"the sparsity selector of {i.name} is 0", where=where(line))
  of = i.operands[6 if thin else 4:]
  pairs = zip("ab", of[::2], of[1::2])
  factors = [Factors(code, line, words, selector, which, count) for which, words, selector in pairs]
  table = SCALES["ue4m3" if "ue4m3" in m else "ue8m0"]

  def spread(group: Warps, left: Value, words: Value) -> Value:
    """The left matrix with its zeros. Metadata of nothing but zeros, which CUTLASS's have, may be any."""
    at = sparse.positions(words, a, k, 0)
    twice = sparse.twice(at, a)
    bad = np.logical_or.reduce(twice & left.reshape(*twice.shape, -1).any(axis=3), axis=(1, 2))
    if bad.any():
      raise MachineFault(f"metadata of {i.name} that names a place of a chunk twice",
                         lane=spaces.lane_of(group, bad[:, None]))
    return sparse.expanded(left, at, a, k)

  def run(group: Warps) -> None:
    x, y, z = ([np.ascontiguousarray(operands.full(group, r(group))) for r in rs] for rs in reads)
    left, right = matrix.left(x, a, ROWS, k >> thin), matrix.right(y, b, k)
    if metadata is not None: left = spread(group, left, operands.full(group, metadata(group)))
    if factors:
      left = left * factors[0].get(group, table, k)
      right = right * factors[1].get(group, table, k).transpose(0, 2, 1)
    found = matrix.product(left, right, matrix.accumulator(z, c, ROWS), d, m)
    for write, value in zip(writes, matrix.spread(found, d, len(writes))): write(group, np.ascontiguousarray(value))
  return run

