"""What the matrix instructions of all generations share: the order of the sums, and elements as numbers and back.

RDNA's sums of f32 are fused multiply-adds in f32, in the order of k, that start with the accumulator. Its manuals have
WMMA as a multiply-add of 16-bit and 32-bit numbers that the DOT instructions do (RDNA3, 7.5 and 7.9), and as a fused
one (RDNA4, V_WMMA_F32_16X16X16_F16). All other products are summed in f64, or i64, in the order of k; the accumulator
is added and the sum is rounded once. The chips' order of additions is not specified.
"""
from __future__ import annotations

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.values.ops import F16, F32, F64, U16, U32, Ops
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction, Operand


def product(x: Value, y: Value) -> Value:
  """A times B [waves, rows, columns] of A [waves, k, rows] and B [waves, k, columns], both in C order.

  Products of narrow floats are exact in f64; they are added to 0 in the order of k, one after the other: NumPy adds so
  where the innermost axis is not the one that is summed. Every engine keeps this order.
  """
  return np.einsum("wki,wkj->wij", np.ascontiguousarray(x), np.ascontiguousarray(y))


def fused(x: Value, y: Value, c: Value) -> Value:
  """C [waves, rows, columns] plus A times B, as `product` takes them, all in f32."""
  for k in range(x.shape[1]): c = Ops.fma(x[:, k, :, None], y[:, k, None, :], c)
  return c


def refuse_scalars(i: Instruction, pc: int) -> None:
  """Matrices lie in vector registers, or are one inline constant for C; the words have room for scalar registers."""
  for n in ("src0", "src1", "src2"):
    if i.operands[n].kind == "s" or n != "src2" and i.operands[n].kind != "v":
      raise Unsupported("instruction", f"{i.mnemonic} with {n} in no vector register", where=f"PC {pc:#x}")


# ---- elements

def half(raw: Value, kind: str) -> Value:
  """Bits of f16 or bf16, as any unsigned type, to f64."""
  if kind == "f16": return raw.astype(U16).view(F16).astype(F64)
  return (raw.astype(U32) << np.uint32(16)).view(F32).astype(F64)


def whole(raw: Value, bits: int, signed: int) -> Value:
  """Integers of some bits to i64."""
  wide = raw.astype(np.int64)
  return np.where(wide >> bits - 1, wide - (1 << bits), wide) if signed else wide


def half_constant(o: Operand, kind: str) -> Value:
  """An inline constant as f16 or bf16, in f64: of bf16 a float is the upper half of f32's, an integer is its bits."""
  if kind == "f16": return constant(o, kind).astype(F64)
  return half(constant(o, "u32") >> np.uint32(16 if o.value > 208 else 0), kind)


def to_half(x: Value, kind: str) -> Value:
  """f64 rounded once to f16 or bf16, as u32: bf16 by way of f32 rounded to odd."""
  if kind == "f16": return x.astype(F16).view(U16).astype(U32)
  near = x.astype(F32)
  raw = near.view(U32)
  outward, exact = np.abs(near) > np.abs(x), (near == x) | np.isnan(x)
  odd = np.where(exact, raw, raw - outward.astype(U32) | np.uint32(1))
  rounded = odd + np.uint32(0x7FFF) + (odd >> np.uint32(16) & np.uint32(1)) >> np.uint32(16)
  return np.where(np.isnan(x), np.uint32(0x7FC0), rounded)
