"""mma.sync of dense matrices, each spread over the registers of a warp (PTX ISA, section 9.7.14.5); those with a .kind
are `block_scales`, those with a sparse one `sparse`."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need, unknown
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore import block_scales, sparse
from tinyhw.emulator.ptx.tensorcore.matrix import (
  BITS,
  QUARTER,
  Quarters,
  accumulator,
  decoded,
  left,
  product,
  right,
  spread,
  unit_for,
)
from tinyhw.emulator.values.ops import Array
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code



@binds("mma")
def mma(code: Code, line: Line, form: Form) -> Step:
  """A product of matrices, each of which is spread over the registers of the warp."""
  i = line.instruction
  if any(m.startswith("kind::") for m in i.modifiers): return block_scales.mma(code, line, form)
  if i.modifiers[0].startswith("sp"): return sparse.mma(code, line, form)
  need(line, 4)
  shape = next(re.fullmatch(r"(?a)m(\d+)n8k(\d+)", m) for m in i.modifiers if m[0] == "m" and digits(m[1]))
  kinds = [m for m in i.modifiers if m in BITS]
  if shape is None or len(kinds) != 4: raise unknown(line)
  m, k = int(shape[1]), int(shape[2])
  d, a, b, c = kinds
  if (m, k, a) == (8, 4, "f16"): return _quarters(code, line, form)
  columns = {"f16": "b32"}
  word = "b64" if a == "f64" else "b32"
  parts = [operands.elements(line, o) for o in i.operands]
  counts = [m * 8 * BITS[d] // max(32, BITS[d]) // LANES, m * k * BITS[a] // (64 if a == "f64" else 32) // LANES,
            8 * k * BITS[b] // (64 if b == "f64" else 32) // LANES, m * 8 * BITS[c] // max(32, BITS[c]) // LANES]
  if [len(p) for p in parts] != counts:
    raise DecodeError(f"{i.name} takes {counts[0]}, {counts[1]}, {counts[2]} and {counts[3]} registers",
                      where=where(line))
  writes = [operands.writer(code, line, o, columns.get(d, d)) for o in parts[0]]
  reads = [[operands.reader(code, line, o, t) for o in p]
           for p, t in zip(parts[1:], (word, word, columns.get(c, c)))]

  def run(group: Warps) -> None:
    x, y, z = ([np.ascontiguousarray(operands.full(group, r(group))) for r in rs] for rs in reads)
    matrix = product(left(x, a, m, k), right(y, b, k), accumulator(z, c, m), d, form.modifiers, (a, b),
                     unit_for(code, group, line, a))
    for write, value in zip(writes, spread(matrix, d, len(writes))): write(group, np.ascontiguousarray(value))
  return run


def _halves(words: list[Array]) -> Array:
  """Elements [warps, 32, n] of registers of two halves."""
  return np.concatenate([decoded(w, "f16") for w in words], axis=-1)


def _quarters(code: Code, line: Line, form: Form) -> Step:
  i, q = line.instruction, Quarters(code, line)
  d, c = q.types

  def run(group: Warps) -> None:
    n, matrices = group.size, list[Array]()
    by = unit_for(code, group, line, "f16")
    if by is not None and by.steps != 4:
      raise Unsupported("sums as the chip's", f"of {i.name} for sm_{group.cohort.shared.sm}, which has no unit for it")
    for reads, places, shape, t in zip(q.reads, q.places[1:], ((8, 4), (4, 8), (8, 8)), ("f16", "f16", c)):
      words = [np.ascontiguousarray(operands.full(group, r(group))) for r in reads]
      matrix = np.zeros((n, 4, *shape))
      matrix[:, QUARTER, *places] = _halves(words) if t == "f16" else np.stack(words, axis=-1).astype(np.float64)
      matrices.append(matrix.reshape(-1, *shape))
    x, y, z = matrices
    found = product(x, y, z, d, form.modifiers, ("f16", "f16"), by)
    out = found.reshape(n, 4, 8, 8)[:, QUARTER, *q.places[0]]
    if d == "f16":
      raw = out.view(np.uint16).astype(np.uint32)
      words = [raw[..., 2 * k] | raw[..., 2 * k + 1] << np.uint32(16) for k in range(4)]
    else: words = [np.ascontiguousarray(out[..., k]) for k in range(8)]
    for write, value in zip(q.writes, words): write(group, value)
  return run
