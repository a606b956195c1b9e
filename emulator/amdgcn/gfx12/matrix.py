"""Matrix instructions of RDNA4: v_wmma_* and the sparse v_swmmac_* (RDNA4 ISA manual, section 7.12).

Where an element lies is data. A is [row, k], B is [k, column], C and D are [row, column], all 16 rows and columns; the
row of A or the column of the others is the lane modulo 16. What is left of an element's position (k, or the row of C
and D) is spread by its bits over the lane's upper bits and the elements that one lane holds, lowest bits first.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.matrix import fused, half, half_constant, product, refuse_scalars, to_half, whole
from tinyhw.emulator.simt import Group, Step, full
from tinyhw.emulator.values.ops import F32, F64, U32, Ops
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.small_floats import BF8, FP8, SmallFloat
from tinyhw.isa.amdgcn import Instruction, Operand

BITS: Final = {"f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "iu8": 8, "iu4": 4, "f32": 32, "i32": 32}
HALVES: Final = ("f16", "bf16")
SMALL: Final[dict[str, SmallFloat]] = {"fp8": FP8, "bf8": BF8}
# (bits of an element, how many positions, lanes) -> bits of the position that number the elements of one lane, bits
# that number its group of 16 lanes. Tables of section 7.12.2; a sparse A lies as the dense one of half as many columns.
PLACES: Final[dict[tuple[int, int, int], tuple[tuple[int, ...], tuple[int, ...]]]] = {
  (16, 16, 32): ((0, 1, 3), (2,)), (16, 16, 64): ((0, 1), (2, 3)),
  (16, 32, 32): ((0, 1, 2, 4), (3,)), (16, 32, 64): ((0, 1, 2), (3, 4)),
  (8, 16, 32): ((0, 1, 2), (3,)), (8, 16, 64): ((0, 1), (3, 2)),
  (8, 32, 32): ((0, 1, 2, 3), (4,)), (8, 32, 64): ((0, 1, 2), (4, 3)),
  (4, 16, 32): ((0, 1, 2), (3,)), (4, 16, 64): ((0, 1, 2), (3,)),  # the upper 32 lanes are not used
  (4, 32, 32): ((0, 1, 2, 3), (4,)), (4, 32, 64): ((0, 1, 2), (4, 3)),
  (4, 64, 32): ((0, 1, 2, 3, 4), (5,)), (4, 64, 64): ((0, 1, 2, 3), (5, 4)),
}
ROWS: Final = {32: ((0, 1, 2), (3,)), 64: ((0, 1), (3, 2))}  # of C and D, whatever their elements' size


@dataclass(frozen=True)
class WmmaShape:
  """Element types of A and B, of C and D, and the length of the sum. `sparse`: two of four columns of A are stored."""
  a: str
  b: str
  result: str
  k: int
  sparse: bool = False


SHAPES: Final[dict[str, WmmaShape]] = {
  f"v_wmma_{result}_16x16x{k}_{name}": WmmaShape(a, b, result, k)
  for result, k, name, a, b in (
    ("f32", 16, "f16", "f16", "f16"), ("f32", 16, "bf16", "bf16", "bf16"), ("f16", 16, "f16", "f16", "f16"),
    ("bf16", 16, "bf16", "bf16", "bf16"), ("i32", 16, "iu8", "iu8", "iu8"), ("i32", 16, "iu4", "iu4", "iu4"),
    ("i32", 32, "iu4", "iu4", "iu4"),
    *(("f32", 16, f"{a}_{b}", a, b) for a in SMALL for b in SMALL))}
SHAPES.update({
  f"v_swmmac_{result}_16x16x{k}_{name}": WmmaShape(a, b, result, k, sparse=True)
  for result, k, name, a, b in (
    ("f32", 32, "f16", "f16", "f16"), ("f32", 32, "bf16", "bf16", "bf16"), ("f16", 32, "f16", "f16", "f16"),
    ("bf16", 32, "bf16", "bf16", "bf16"), ("i32", 32, "iu8", "iu8", "iu8"), ("i32", 32, "iu4", "iu4", "iu4"),
    ("i32", 64, "iu4", "iu4", "iu4"),
    *(("f32", 32, f"{a}_{b}", a, b) for a in SMALL for b in SMALL))})


@cache
def places(bits: int, count: int, lanes: int) -> tuple[Value, Value]:
  """(number of the element in its lane, first lane of its group) of each position of A or B."""
  return _spread(PLACES[bits, count, lanes], count)


@cache
def row_places(lanes: int) -> tuple[Value, Value]:
  """The same for the rows of C and D."""
  return _spread(ROWS[lanes], 16)


def _spread(where: tuple[tuple[int, ...], tuple[int, ...]], count: int) -> tuple[Value, Value]:
  position = np.arange(count)
  nowhere = np.zeros_like(position)
  inner, outer = (sum(((position >> bit & 1) << n for n, bit in enumerate(bits)), nowhere) for bits in where)
  return inner, outer * 16


def _raw(group: Group, first: int, bits: int, at: tuple[Value, Value]) -> Value:
  """Raw elements [waves, position, 16]."""
  number, lane = at
  per = 32 // bits
  words = np.stack([full(group, group.v[first + r].view(U32)) for r in range(int(number.max()) // per + 1)], axis=1)
  picked = words[:, (number // per)[:, None], lane[:, None] + np.arange(16)]
  return picked >> (number % per * bits).astype(U32)[:, None] & np.uint32((1 << bits) - 1)


def _numbers(raw: Value, kind: str, signed: int) -> Value:
  """Values as f64, or i64 of integers."""
  if kind in HALVES: return half(raw, kind)
  if kind in SMALL: return np.array(SMALL[kind].values, U32).view(F32).astype(F64)[raw]
  return whole(raw, BITS[kind], signed)


def _accumulator(group: Group, o: Operand, shape: WmmaShape, lanes: int) -> Value:
  """C as f64 or i64 [waves, 16, 16]; an inline constant is every element."""
  if o.kind != "v":
    value = half_constant(o, shape.result) if shape.result in HALVES else constant(o, shape.result)
    return np.full((group.size, 16, 16), value.astype(np.int64 if shape.result == "i32" else F64))
  raw = _raw(group, o.value, BITS[shape.result], row_places(lanes))
  if shape.result == "i32": return raw.view(np.int32).astype(np.int64)
  return raw.view(F32).astype(F64) if shape.result == "f32" else _numbers(raw, shape.result, 0)


def _store(group: Group, n: int, total: Value, shape: WmmaShape, clamp: int) -> None:
  """D [waves, 16, 16], rounded once to its type if it is wider, into registers."""
  lanes = group.cohort.lanes
  if shape.result == "i32":
    raw = (np.clip(total, -(1 << 31), (1 << 31) - 1) if clamp else total).astype(np.int32).view(U32)
  elif shape.result == "f32": raw = total.astype(F32).view(U32)
  else: raw = to_half(total, shape.result)
  number, lane = row_places(lanes)
  per = 32 // BITS[shape.result]
  words = np.zeros((int(number.max()) // per + 1, group.size, lanes), U32)
  for row in range(16):
    at = slice(int(lane[row]), int(lane[row]) + 16)
    words[number[row] // per, :, at] |= raw[:, row] << np.uint32(number[row] % per * BITS[shape.result])
  group.v[n + len(words) - 1]  # a register beyond the allocation must not be made
  for k, word in enumerate(words): group.v[n + k] = word


def _operand(group: Group, o: Operand, kind: str, at: tuple[Value, Value], even: int, odd: int) -> Value:
  """A or B [waves, position, 16]; `even` and `odd` negate the elements in low and high halves, or say "signed"."""
  integer = kind.startswith("i")
  x = _numbers(_raw(group, o.value, BITS[kind], at), kind, even)
  if even and not integer: x[:, 0::2] *= -1
  if odd and not integer: x[:, 1::2] *= -1
  return x


@binds(*(name for name, shape in SHAPES.items() if not shape.sparse), isa="gfx12")
def wmma(i: Instruction, pc: int, mode: int) -> Step:
  """D = A * B + C. MODE and EXEC are not looked at."""
  shape = SHAPES[i.mnemonic]
  refuse_scalars(i, pc)
  a, b, c, d = (i.operands[n] for n in ("src0", "src1", "src2", "vdst"))
  neg_lo, neg_hi, clamp = i.get("neg_lo"), i.get("neg_hi"), i.get("clamp")

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    x = _operand(group, a, shape.a, places(BITS[shape.a], shape.k, lanes), neg_lo & 1, neg_hi & 1)
    y = _operand(group, b, shape.b, places(BITS[shape.b], shape.k, lanes), neg_lo >> 1 & 1, neg_hi >> 1 & 1)
    old = _accumulator(group, c, shape, lanes)
    if neg_hi >> 2 & 1: old = np.abs(old)
    if neg_lo >> 2 & 1: old = -old
    total = fused(*(m.astype(F32) for m in (x, y, old))) if shape.result == "f32" else product(x, y) + old
    _store(group, d.value, total, shape, clamp)
  return step


@binds(*(name for name, shape in SHAPES.items() if shape.sparse), isa="gfx12")
def swmmac(i: Instruction, pc: int, mode: int) -> Step:
  """D += A * B, where of each four columns of A two are stored, with their numbers in source 2 (section 7.12.3).

  The products of the stored elements are summed as in `wmma`; no element of B is multiplied by a zero that is not
  stored. Of one register's sets of numbers the index key chooses one.
  """
  shape = SHAPES[i.mnemonic]
  refuse_scalars(i, pc)
  a, b, index, d = (i.operands[n] for n in ("src0", "src1", "src2", "vdst"))
  neg_lo, neg_hi, clamp = i.get("neg_lo"), i.get("neg_hi"), i.get("clamp")
  key = i.get("index_key_16bit") or i.get("index_key_8bit")

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    at = places(BITS[shape.a], shape.k // 2, lanes)
    x = _operand(group, a, shape.a, at, neg_lo & 1, neg_hi & 1)
    y = _operand(group, b, shape.b, places(BITS[shape.b], shape.k, lanes), neg_lo >> 1 & 1, neg_hi >> 1 & 1)
    number, lane = at
    shift = key * 2 * (int(number.max()) + 1) + number * 2  # two bits for each stored element
    word = full(group, group.v[index.value].view(U32))
    column = word[:, lane[:, None] + np.arange(16)] >> shift.astype(U32)[:, None] & np.uint32(3)  # [waves, k / 2, 16]
    first, second = column[:, 0::2], column[:, 1::2]
    stored = np.ones(column.shape, bool)
    stored[:, 0::2] = first < 3  # the first of a pair is never the fourth column, the second never the first
    stored[:, 1::2] = (second > 0) & ~((second == first) & (first < 3))
    old = _accumulator(group, d, shape, lanes)
    narrow = shape.result == "f32"
    total = old.astype(F32) if narrow else np.zeros((group.size, 16, 16), x.dtype)
    waves = np.arange(group.size)[:, None]
    for k in range(shape.k // 2):
      chosen, own = y[waves, k // 2 * 4 + column[:, k]], x[:, k, :, None]  # [waves, row, column]
      own, chosen = (np.where(stored[:, k, :, None], m, m.dtype.type(0)) for m in (own, chosen))
      total = Ops.fma(own.astype(F32), chosen.astype(F32), total) if narrow else total + own * chosen
    _store(group, d.value, total if narrow else total + old, shape, clamp)
  return step
