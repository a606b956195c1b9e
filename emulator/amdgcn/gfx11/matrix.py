"""Matrix instructions of RDNA3: v_wmma_* (ISA manual, section 7.9 "Wave Matrix Multiply Accumulate").

A is 16x16, lane l of 0..15 holds row l; B holds column l; the other lanes repeat them. Of C and D, register r of lane l
holds column l % 16 and row `r * groups + l // 16`, where groups is the number of 16-lane groups of the wave.
"""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.matrix import fused, half, half_constant, product, refuse_scalars, to_half, whole
from tinyhw.emulator.simt import Group, Step, full
from tinyhw.emulator.values.ops import F32, F64, U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction, Operand

# mnemonic -> (bits of an element of A and B, kind of A and B, kind of C and D)
SHAPES: Final = {
  "v_wmma_f32_16x16x16_f16": (16, "f16", "f32"), "v_wmma_f32_16x16x16_bf16": (16, "bf16", "f32"),
  "v_wmma_f16_16x16x16_f16": (16, "f16", "f16"), "v_wmma_bf16_16x16x16_bf16": (16, "bf16", "bf16"),
  "v_wmma_i32_16x16x16_iu8": (8, "int", "i32"), "v_wmma_i32_16x16x16_iu4": (4, "int", "i32"),
}


def _elements(group: Group, first: int, bits: int) -> Value:
  """Raw elements of A or B [waves, 16, row or column]."""
  per = 32 // bits
  out = np.empty((group.size, 16, 16), U32)
  for r in range(16 // per):
    word = full(group, group.v[first + r].view(U32))[:, :16]
    for k in range(per): out[:, r * per + k] = word >> np.uint32(k * bits) & np.uint32((1 << bits) - 1)
  return out


def _numbers(raw: Value, kind: str, bits: int, signed: int) -> Value:
  return whole(raw, bits, signed) if kind == "int" else half(raw, kind)


@binds(*SHAPES, isa="gfx11")
def wmma(i: Instruction, pc: int, mode: int) -> Step:
  """D = A * B + C, of 16x16 elements each."""
  bits, source, result = SHAPES[i.mnemonic]
  narrow = result in {"f16", "bf16"}
  refuse_scalars(i, pc)
  a, b, c, d = (i.operands[n] for n in ("src0", "src1", "src2", "vdst"))
  neg_lo, neg_hi, clamp = i.get("neg_lo"), i.get("neg_hi"), i.get("clamp")
  upper = i.get("op_sel") >> 2 & 1  # which half of the registers holds C and D of 16 bits

  def accumulator(group: Group, o: Operand, rows: int) -> list[Value]:
    """C as [waves, lanes] for each register."""
    if o.kind != "v":
      value = half_constant(o, result) if narrow else constant(o, result)
      return [np.full((group.size, group.cohort.lanes), value, F64)] * rows
    words = [full(group, group.v[o.value + r].view(U32)) for r in range(rows)]
    if result == "f32": return [w.view(F32).astype(F64) for w in map(np.ascontiguousarray, words)]
    if result == "i32": return [w.astype(np.int32).astype(np.int64) for w in words]
    return [half(w >> np.uint32(16 * upper) & np.uint32(0xFFFF), result) for w in words]

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    groups = lanes // 16
    rows = 16 // groups
    x = _numbers(_elements(group, a.value, bits), source, bits, neg_lo & 1)
    y = _numbers(_elements(group, b.value, bits), source, bits, neg_lo >> 1 & 1)
    if source != "int":  # neg_lo and neg_hi negate the even and odd elements of A and B, and negate and abs C
      for matrix, k in ((x, 0), (y, 1)):
        if neg_lo >> k & 1: matrix[:, 0::2] *= -1
        if neg_hi >> k & 1: matrix[:, 1::2] *= -1
    lane = np.arange(lanes)
    olds = accumulator(group, c, rows)
    if source != "int":
      if neg_hi >> 2 & 1: olds = [np.abs(old) for old in olds]
      if neg_lo >> 2 & 1: olds = [-old for old in olds]
    if result == "f32":
      z = np.stack(olds, axis=1).reshape(group.size, 16, 16).astype(F32)  # a register's lanes are whole rows
      sums = fused(x.astype(F32), y.astype(F32), z).reshape(group.size, rows, lanes)
      for r in range(rows): group.v[d.value + r] = np.ascontiguousarray(sums[:, r])
      return
    products = product(x, y)
    for r, old in enumerate(olds):
      total = products[:, r * groups + lane // 16, lane % 16] + old
      if result == "i32":
        whole_sums = total.astype(np.int64)
        word = (np.clip(whole_sums, -(1 << 31), (1 << 31) - 1) if clamp else whole_sums).astype(np.int32).view(U32)
      else:
        kept = full(group, group.v[d.value + r].view(U32)) & np.uint32(0xFFFF if upper else 0xFFFF0000)
        word = kept | to_half(total, result) << np.uint32(16 * upper)
      group.v[d.value + r] = word
  return step

