"""Matrices spread over a warp, whose products are `mma`, and ldmatrix, stmatrix, movmatrix (PTX ISA, section 9.7.14.5).

Everywhere lane 4 * g + t holds, of the operands, 32 bits at a time, elements that lie side by side from column t on in
row g, and eight rows further down in every other register; of the result two elements of row g.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import address
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values import chip_sums
from tinyhw.emulator.values.chip_sums import Unit
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.small_floats import BF8, E2M1, E2M3, E3M2, FP8, SmallFloat
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

BITS: Final = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1, "e4m3": 8,
                "e5m2": 8, "e2m3": 8, "e3m2": 8, "e2m1": 8, "e2m1x2": 4, "f32": 32, "s32": 32}
_ROW, _COLUMN = np.arange(LANES) >> 2, np.arange(LANES) & 3  # g and t


def numbers(t: SmallFloat) -> Value:
  """The value of each code, f64."""
  return np.array(t.values, np.uint32).view(np.float32).astype(np.float64)


# By the bits of an element: those of 6 bits lie in the lower part of a byte, those of 4 in its middle, or two in one.
_TABLES: Final = {"e4m3": numbers(FP8), "e5m2": numbers(BF8), "e2m3": numbers(E2M3), "e3m2": numbers(E3M2),
                  "e2m1": numbers(E2M1)[np.arange(256) >> 2 & 15], "e2m1x2": numbers(E2M1)[:16]}


def decoded(words: Value, t: str) -> Value:
  """The elements [..., n] of registers of bits, as f64 or int64."""
  bits = BITS[t]
  if t == "f64": return words.view(np.float64)[..., None]
  if t == "f32": return words.view(np.float32).astype(np.float64)[..., None]
  if t == "tf32": return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)[..., None]
  shifts = np.arange(0, 32, bits, dtype=np.uint32)
  parts = words[..., None] >> shifts & np.uint32((1 << bits) - 1)
  if t == "f16": return parts.astype(np.uint16).view(np.float16).astype(np.float64)
  if t == "bf16": return (parts << np.uint32(16)).view(np.float32).astype(np.float64)
  if t in _TABLES: return _TABLES[t][parts]
  wide = parts.astype(np.int64)
  return np.where(wide >> bits - 1, wide - (1 << bits), wide) if t[0] == "s" else wide


def left(registers: list[Value], t: str, m: int, k: int) -> Value:
  """The left operand [warps, m, k] out of registers [warps, 32]."""
  out: Value | None = None
  for r, words in enumerate(registers):
    values = decoded(words, t)
    n = values.shape[-1]
    if out is None: out = np.zeros((values.shape[0], m, k), values.dtype)
    rows = _ROW + 8 * (r & 1 if m == 16 else 0)
    first = _COLUMN * n + (r >> 1 if m == 16 else r) * 4 * n
    out[:, rows[:, None], first[:, None] + np.arange(n)] = values
  assert out is not None
  return out


def right(registers: list[Value], t: str, k: int) -> Value:
  """The right operand [warps, k, 8]."""
  out: Value | None = None
  for r, words in enumerate(registers):
    values = decoded(words, t)
    n = values.shape[-1]
    if out is None: out = np.zeros((values.shape[0], k, 8), values.dtype)
    first = _COLUMN * n + r * 4 * n
    out[:, first[:, None] + np.arange(n), _ROW[:, None]] = values
  assert out is not None
  return out


def accumulator(registers: list[Value], t: str, m: int) -> Value:
  """The matrix that is added [warps, m, 8]: f64 or int64."""
  out: Value | None = None
  for r, words in enumerate(registers):
    if t == "f16": values = decoded(words.view(np.uint32), "f16")
    else: values = words[..., None].astype(np.int64 if t == "s32" else np.float64)
    n = values.shape[-1]
    if out is None: out = np.zeros((values.shape[0], m, 8), values.dtype)
    for i in range(n):
      at = r * n + i
      out[:, _ROW + 8 * (at >> 1), _COLUMN * 2 + (at & 1)] = values[..., i]
  assert out is not None
  return out


def spread(matrix: Value, t: str, count: int) -> list[Value]:
  """The result as registers."""
  flat = [matrix[:, _ROW + 8 * (at >> 1), _COLUMN * 2 + (at & 1)] for at in range(matrix.shape[1] // 8 * 2)]
  if t != "f16": return flat
  raw = [f.view(np.uint16).astype(np.uint32) for f in flat]
  return [raw[2 * k] | raw[2 * k + 1] << np.uint32(16) for k in range(count)]


def unit_for(code: Code, group: Warps, line: Line, kind: str, sparse: bool = False) -> Unit | None:
  """The chip's unit for elements of a type; None where sums are to be rounded once."""
  if not code.program.chip_sums: return None
  return chip_sums.unit(group.cohort.shared.sm, line.instruction.opcode, kind, sparse)


def product(a: Value, b: Value, c: Value, t: str, modifiers: frozenset[str], kinds: tuple[str, str] = ("", ""),
            by: Unit | None = None) -> Value:
  """a times b plus c. Sums of floats are made in f64, one product after the other, and rounded once; or as the chip's
  unit `by` makes them of elements of these kinds."""
  if by is not None: return chip_sums.product(a, b, c, kinds, t, by)
  if "popc" in modifiers:
    x, y = a[:, :, :, None], b[:, None]
    return (c + (x ^ y if "xor" in modifiers else x & y).sum(axis=2)).astype(np.int32)
  total = np.zeros(c.shape, a.dtype)
  for k in range(a.shape[2]): total = total + a[:, :, k, None] * b[:, None, k, :]
  total = total + c
  if t == "s32":
    if "satfinite" in modifiers: total = np.clip(total, -1 << 31, (1 << 31) - 1)
    return total.astype(np.int32)
  return total.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[t])


# ---- four products of 8 x 8 x 4, each of eight lanes (section 9.7.14.5.1)

QUARTER, _HIGH, _LOW = (x[:, None] for x in (np.arange(LANES) >> 2 & 3, np.arange(LANES) >> 4, np.arange(LANES) & 3))


def places_of_quarter(which: str, across: bool) -> tuple[Value, Value]:
  """(rows, columns) of a quarter's matrix at which lanes have their elements [lanes, elements]: of the left ("a") or
  right ("b") operand, or of a sum ("c"). `across`: a lane has a row of its own (of "b" a column)."""
  e = np.arange(8 if which == "c" else 4)[None, :]
  if across: rows, columns = _LOW + 4 * _HIGH, e
  elif which == "c": rows, columns = (_LOW & 1) + (e & 2) + 4 * _HIGH, (e & 4) + (_LOW & 2) + (e & 1)
  else: rows, columns = e + 4 * _HIGH, _LOW
  rows, columns = np.broadcast_arrays(rows, columns)
  return (columns, rows) if which == "b" else (rows, columns)


class Quarters:
  """The operands of such a product."""

  def __init__(self, code: Code, line: Line) -> None:
    i = line.instruction
    a, b, c, d = (m == kind for m, kind in zip((*i.modifiers[3:5], i.modifiers[8], i.modifiers[5]),
                                               ("row", "col", "f16", "f16")))
    self.types = ["f16" if x else "f32" for x in (d, c)]
    parts = [operands.elements(line, o) for o in i.operands]
    counts = [4 if d else 8, 2, 2, 4 if c else 8]
    if [len(p) for p in parts] != counts:
      raise DecodeError(f"{i.name} takes {counts[0]}, {counts[1]}, {counts[2]} and {counts[3]} registers",
                        where=where(line))
    self.writes = [operands.writer(code, line, o, "b32" if d else "f32") for o in parts[0]]
    self.reads = [[operands.reader(code, line, o, t) for o in p]
                  for p, t in zip(parts[1:], ("b32", "b32", "b32" if c else "f32"))]
    self.places = [places_of_quarter(which, across) for which, across in (("c", d), ("a", a), ("b", b), ("c", c))]


# ---- matrices of 8 x 8 elements of 16 bits, or of 8 x 16 narrow ones, in memory: a row a lane

def unpacked(raw: Value, bits: int) -> Value:
  """The 16 elements of 4 or 6 bits in the lower bytes of chunks [.., 16]."""
  found = np.unpackbits(np.ascontiguousarray(raw[..., :2 * bits]), axis=-1, bitorder="little")
  return (found.reshape(*raw.shape[:-1], 16, bits) << np.arange(bits)).sum(axis=-1)


def _count(form: Form) -> int: return next(int(m[1]) for m in ("x1", "x2", "x4") if m in form.modifiers)


def _addresses(group: Warps, read: Callable[[Warps], Value], count: int) -> Value:
  """Those of the first `count` lanes, again and again."""
  return operands.full(group, read(group))[:, np.arange(LANES) % count]


@binds("ldmatrix")
def ldmatrix(code: Code, line: Line, form: Form) -> Step:
  """Rows of 16 bytes, at the addresses of eight lanes a matrix; each lane gets two elements of each. Of 16 x 16 bytes,
  at those of 16 lanes, it gets four of two rows of the transpose."""
  i = line.instruction
  need(line, 2)
  space, count, transposed = spaces.space_of(form.modifiers), _count(form), "trans" in form.modifiers
  bits = 4 if "b4x16_p64" in form.modifiers else 6 if "b6x16_p32" in form.modifiers else 0
  square = "m16n16" in form.modifiers
  registers, rows_of = (2 * count, 16 * count) if square else (count, 8 * count)
  read = address(code, line, i.operands[1], space)
  destinations = operands.elements(line, i.operands[0])
  if len(destinations) != registers: raise DecodeError(f"{i.name} has {registers} destinations", where=where(line))
  writes = [operands.writer(code, line, d, "b32") for d in destinations]

  def run(group: Warps) -> None:
    rows = np.ascontiguousarray(spaces.load(group, space, _addresses(group, read, rows_of), 16))
    rows = np.broadcast_to(rows, (group.size, LANES, 4))
    if bits: rows = unpacked(np.ascontiguousarray(rows).view(np.uint8), bits).astype(np.uint8).view(np.uint32)
    if square:
      turned = np.ascontiguousarray(rows).view(np.uint8).reshape(group.size, 2, 16, 16).transpose(0, 1, 3, 2)
      quads = np.ascontiguousarray(turned).view(np.uint32).reshape(group.size, 4, LANES)
      for k, write in enumerate(writes): write(group, np.ascontiguousarray(quads[:, k]))
      return
    halves = np.ascontiguousarray(rows).view(np.uint16).reshape(group.size, 4, 8, 8)
    if transposed: halves = halves.transpose(0, 1, 3, 2)
    words = np.ascontiguousarray(halves).view(np.uint32).reshape(group.size, 4, LANES)
    for k, write in enumerate(writes): write(group, np.ascontiguousarray(words[:, k]))
  return run


@binds("stmatrix")
def stmatrix(code: Code, line: Line, form: Form) -> Step:
  """The other way. Of 16 x 8 bytes a lane has two of each of two rows, and memory has the transpose."""
  i = line.instruction
  need(line, 2)
  space, count, transposed = spaces.space_of(form.modifiers), _count(form), "trans" in form.modifiers
  read = address(code, line, i.operands[0], space)
  reads = [operands.reader(code, line, s, "b32") for s in operands.elements(line, i.operands[1])]
  if len(reads) != count: raise DecodeError(f"{i.name} has {count} sources", where=where(line))

  def run(group: Warps) -> None:
    out = np.zeros((group.size, LANES, 4), np.uint32)
    for k, source in enumerate(reads):
      if "b8" in form.modifiers:  # [column, row of 8, pair of rows, of the two]
        four = np.ascontiguousarray(operands.full(group, source(group))).view(np.uint8).reshape(group.size, 8, 4, 2, 2)
        turned = np.ascontiguousarray(four.transpose(0, 2, 4, 3, 1)).view(np.uint32)
        out[:, 8 * k:8 * k + 8] = turned.reshape(group.size, 8, 4)
        continue
      halves = np.ascontiguousarray(operands.full(group, source(group))).view(np.uint16).reshape(group.size, 8, 8)
      if transposed: halves = halves.transpose(0, 2, 1)
      out[:, 8 * k:8 * k + 8] = np.ascontiguousarray(halves).view(np.uint32).reshape(group.size, 8, 4)
    mask = group.mask
    if count < 4: group.mask = np.broadcast_to(np.arange(LANES) < 8 * count, (group.size, LANES))
    try: spaces.store(group, space, operands.full(group, read(group)), out, 16)
    finally: group.mask = mask
  return run


@binds("movmatrix")
def movmatrix(code: Code, line: Line, form: Form) -> Step:
  """The transpose of a matrix in registers."""
  i = line.instruction
  need(line, 2)
  read, write = operands.reader(code, line, i.operands[1], "b32"), operands.writer(code, line, i.operands[0], "b32")

  def run(group: Warps) -> None:
    halves = np.ascontiguousarray(operands.full(group, read(group))).view(np.uint16).reshape(group.size, 8, 8)
    write(group, np.ascontiguousarray(halves.transpose(0, 2, 1)).view(np.uint32).reshape(group.size, LANES))
  return run
