"""Matrix instructions: v_wmma_* (RDNA3 ISA manual, section 7.9 "Wave Matrix Multiply Accumulate").

A is 16x16, lane l of 0..15 holds row l; B holds column l; the other lanes repeat them. Of C and D, register r of lane l
holds column l % 16 and row `r * groups + l // 16`, where groups is the number of 16-lane groups of the wave.
"""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.registers import constant, full
from tinyhw.emulator.amdgcn.values import F16, F32, F64, U16, U32
from tinyhw.emulator.simt import Group, Step
from tinyhw.isa.amdgcn import INLINE_FLOATS, Instruction, Operand

Value = Any
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


def product(x: Value, y: Value) -> Value:
  """A times B [waves, rows, columns] of A [waves, k, rows] and B [waves, k, columns], both in C order.

  Products of narrow floats are exact in f64; they are added to 0 in the order of k, one after the other: NumPy adds so
  where the innermost axis is not the one that is summed. Every engine keeps this order.
  """
  return np.einsum("wki,wkj->wij", np.ascontiguousarray(x), np.ascontiguousarray(y))


def _bf16(raw: Value) -> Value: return (raw.astype(U32) << np.uint32(16)).view(F32)


def _to_bf16(x: Value) -> Value:
  raw = x.astype(F32).view(U32)
  rounded = (raw + np.uint32(0x7FFF) + (raw >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
  return np.where(np.isnan(x), np.uint32(0x7FC0), rounded)


def _numbers(raw: Value, kind: str, bits: int, signed: bool) -> Value:
  if kind == "f16": return raw.astype(U16).view(F16).astype(F64)
  if kind == "bf16": return _bf16(raw).astype(F64)
  wide = raw.astype(np.int64)
  return np.where(wide >> bits - 1, wide - (1 << bits), wide) if signed else wide


def refuse_scalars(i: Instruction, pc: int) -> None:
  """Matrices lie in vector registers, or are one inline constant for C; the words have room for scalar registers."""
  for n in ("src0", "src1", "src2"):
    if i.operands[n].kind == "s" or n != "src2" and i.operands[n].kind != "v":
      raise Unsupported("instruction", f"{i.mnemonic} with {n} in no vector register", where=f"PC {pc:#x}")


@binds(*SHAPES, isa="gfx11")
def wmma(i: Instruction, pc: int, mode: int) -> Step:
  """The products are summed in f64 (or i64) in the order of k, C is added, and the sum is rounded once.

  The chip's order of additions is not specified.
  """
  bits, source, result = SHAPES[i.mnemonic]
  refuse_scalars(i, pc)
  a, b, c, d = (i.operands[n] for n in ("src0", "src1", "src2", "vdst"))
  neg_lo, neg_hi, clamp = i.get("neg_lo"), i.get("neg_hi"), i.get("clamp")
  half = i.get("op_sel") >> 2 & 1  # which half of the registers holds C and D of 16 bits

  def accumulator(group: Group, o: Operand, rows: int) -> list[Value]:
    """C as [waves, lanes] for each register."""
    if o.kind != "v":
      if result == "bf16": value = INLINE_FLOATS.get(o.value, 0.0)
      else: value = float(constant(o, result))
      return [np.full((group.size, group.cohort.lanes), value)] * rows
    words = [full(group, group.v[o.value + r].view(U32)) for r in range(rows)]
    if result == "f32": return [w.view(F32).astype(F64) for w in map(np.ascontiguousarray, words)]
    if result == "i32": return [w.astype(np.int32).astype(np.int64) for w in words]
    halves = [(w >> np.uint32(16 * half)).astype(U16) for w in words]
    return [h.view(F16).astype(F64) if result == "f16" else _bf16(h).astype(F64) for h in halves]

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    groups = lanes // 16
    rows = 16 // groups
    x = _numbers(_elements(group, a.value, bits), source, bits, bool(neg_lo & 1))
    y = _numbers(_elements(group, b.value, bits), source, bits, bool(neg_lo >> 1 & 1))
    if source != "int":  # neg_lo and neg_hi negate the even and odd elements of A and B, and negate and abs C
      for matrix, k in ((x, 0), (y, 1)):
        if neg_lo >> k & 1: matrix[:, 0::2] *= -1
        if neg_hi >> k & 1: matrix[:, 1::2] *= -1
    products = product(x, y)
    lane = np.arange(lanes)
    for r, old in enumerate(accumulator(group, c, rows)):
      if source != "int":
        if neg_hi >> 2 & 1: old = np.abs(old)
        if neg_lo >> 2 & 1: old = -old
      total = products[:, r * groups + lane // 16, lane % 16] + old
      if result == "f32": word = total.astype(F32)
      elif result == "i32":
        whole = total.astype(np.int64)
        word = (np.clip(whole, -(1 << 31), (1 << 31) - 1) if clamp else whole).astype(np.int32).view(U32)
      else:
        raw = total.astype(F16).view(U16).astype(U32) if result == "f16" else _to_bf16(total)
        kept = full(group, group.v[d.value + r].view(U32)) & np.uint32(0xFFFF if half else 0xFFFF0000)
        word = kept | raw << np.uint32(16 * half)
      group.v[d.value + r] = word
  return step

