"""mma.sp: the left matrix has zeros, and only what is none is stored (PTX ISA, section 9.7.14.6).

Of each chunk half is stored; two bits of metadata say where in the chunk each stored element (or pair of 4 bits) was.
Which of four threads has what of rows g and g + 8 the manual shows in figures alone. Elements of 16 and 32 bits: a
thread has 16 bits of each of both rows, and the next one as much of the columns behind. Of 8 and 4 bits: a thread has
32 bits of row g and the next one of row g + 8; two more have those of the columns behind. CUTLASS's sparse programs for
sm_80 agree for the larger shape of each type; the smaller shapes of 8 and 4 bits are their first columns.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import DecodeError, MachineFault
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, need, unknown
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.matrix import BITS, accumulator, left, product, right, spread, unit_for
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

CHUNK: Final = {"f16": 4, "bf16": 4, "tf32": 2, "u8": 4, "s8": 4, "u4": 8, "s4": 8, "e4m3": 4, "e5m2": 4,
                "e2m3": 4, "e3m2": 4, "e2m1": 4, "e2m1x2": 8}
_ROW: Final = np.arange(8)


def positions(words: Value, t: str, k: int, selector: int) -> Value:
  """Where each stored element of a row is in its chunk [warps, 16, k // 2] from metadata [warps, 32]."""
  chunk = CHUNK[t]
  bits = 4 * k // chunk  # of a row
  w = words.astype(np.uint32)
  if BITS[t] > 8:  # 16 bits of two rows in a thread
    count = bits // 16
    parts = [w[:, 4 * _ROW + count * selector + part] for part in range(count)]
    rows = np.stack([np.concatenate([p & np.uint32(0xFFFF), p >> np.uint32(16)], axis=1) for p in parts], axis=-1)
  else:  # 32 bits of a row
    rows = np.stack([np.concatenate([w[:, 4 * _ROW + 2 * (selector + part) + row] for row in (0, 1)], axis=1)
                     for part in range(bits // 32)], axis=-1)
  each = bits // rows.shape[-1]
  pairs = rows[..., None] >> np.arange(0, each, 2, dtype=np.uint32) & np.uint32(3)
  found = pairs.reshape(*pairs.shape[:2], -1)  # 2 bits each
  if chunk == 4: return found
  if chunk == 8: return np.stack([2 * found, 2 * found + 1], axis=-1).reshape(*found.shape[:2], -1)
  return found[..., 1::2] >> 1  # 0b1110 or 0b0100: two halves of an element of 32 bits


def expanded(stored: Value, at: Value, t: str, k: int) -> Value:
  """The matrix [warps, 16, k] with its zeros."""
  chunk = CHUNK[t]
  half = chunk // 2
  columns = np.arange(k // 2) // half * chunk + at
  out = np.zeros((*stored.shape[:2], k), stored.dtype)
  np.put_along_axis(out, columns.astype(np.intp), stored, axis=2)
  return out


def twice(at: Value, t: str) -> Value:
  """Which chunks [warps, 16, chunks] metadata name a place of twice."""
  if CHUNK[t] == 2: return np.zeros(at.shape, bool)
  at = at[..., ::2] >> 1 if CHUNK[t] == 8 else at
  return at[..., ::2] == at[..., 1::2]


def valid(words: Value, t: str, k: int, selector: int) -> Value:
  """Whether metadata names two places of each chunk [warps]."""
  return ~np.logical_or.reduce(twice(positions(words, t, k, selector), t), axis=(1, 2))


def mma(code: Code, line: Line, form: Form) -> Step:
  """mma.sp and mma.sp::ordered_metadata."""
  i = line.instruction
  need(line, 6)
  shape = next((s for s in (re.fullmatch(r"(?a)m16n8k(\d+)", m) for m in i.modifiers) if s is not None), None)
  kinds = [m for m in i.modifiers if m in BITS]
  if shape is None or len(kinds) != 4: raise unknown(line)
  k, (d, a, b, c) = int(shape[1]), kinds
  chosen = operands.immediate(line, i.operands[5], "u32")
  bits = 4 * k // CHUNK[a]
  most = 64 // bits - 1  # 128 bits of four threads are those of rows g and g + 8, of which there may be a part
  if chosen is None or int(chosen) > most:
    raise DecodeError(f"the sparsity selector of {i.name} is 0 to {most}", where=where(line))
  selector = int(chosen)
  parts = [operands.elements(line, o) for o in i.operands[:4]]
  counts = [64 * BITS[d] // 512, 16 * (k // 2) * BITS[a] // 1024, 8 * k * BITS[b] // 1024, 64 * BITS[c] // 512]
  if [len(p) for p in parts] != counts:
    raise DecodeError(f"{i.name} takes {counts[0]}, {counts[1]}, {counts[2]} and {counts[3]} registers",
                      where=where(line))
  own = {"f16": "b32"}
  writes = [operands.writer(code, line, o, own.get(d, d)) for o in parts[0]]
  reads = [[operands.reader(code, line, o, t) for o in p]
           for p, t in zip(parts[1:], ("b32", "b32", own.get(c, c)))]
  metadata = operands.reader(code, line, i.operands[4], "b32")

  def run(group: Warps) -> None:
    x, y, z = ([np.ascontiguousarray(operands.full(group, r(group))) for r in rs] for rs in reads)
    words = operands.full(group, metadata(group))
    good = valid(words, a, k, selector)
    if not good.all():
      raise MachineFault(f"metadata of {i.name} that names a place of a chunk twice",
                         lane=spaces.lane_of(group, ~good[:, None]))
    sparse = expanded(left(x, a, 16, k // 2), positions(words, a, k, selector), a, k)
    matrix = product(sparse, right(y, b, k), accumulator(z, c, 16), d, form.modifiers, (a, b),
                     unit_for(code, group, line, a, True))
    for write, value in zip(writes, spread(matrix, d, len(writes))): write(group, np.ascontiguousarray(value))
  return run

