"""Matrix instructions of CDNA2 and CDNA3: v_mfma_* and v_smfmac_* (CDNA3 ISA manual, chapter 7).

The names say the shape: D[b] = C[b] + A[b] * B[b] for each of `blocks` blocks, A[b] being rows x depth and B[b]
depth x columns. Where an element lies is data (`inputs`, `outputs`), made from the manual's formulas (7.1.4). All 64
lanes take part, whatever EXEC says.

Products of floats of up to 32 bits are exact in f64; they are added in f64 in the order of k, then C is added, and the
sum is rounded once to f32. The chip's order of additions is not specified, nor how many bits it keeps on the way. f64
is fused in the order of k, starting with C. XF32 rounds the significands of A and B to 10 bits, here to nearest even.
Denormals are kept, but those of A and B of V_MFMA_F32_*_F32 obey MODE (7.3). With MODE.FP16_OVFL sums that overflow
become the greatest number instead of infinity or, of integers, instead of wrapping around (7.1.2).
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.matrix import half, product, whole
from tinyhw.emulator.amdgcn.modes import FP16_OVFL, denormals
from tinyhw.emulator.amdgcn.registers import reader
from tinyhw.emulator.simt import Group, Step, full
from tinyhw.emulator.values.ops import F32, F64, I32, U32, U64, Ops
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.small_floats import BF8, BF8_FNUZ, FP8, FP8_FNUZ, SmallFloat
from tinyhw.isa.amdgcn import Instruction, Operand

LANES: Final = 64
BITS: Final = {"f64": 64, "f32": 32, "xf32": 32, "i32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}
_EIGHT: Final = ("bf8_bf8", "bf8_fp8", "fp8_bf8", "fp8_fp8")
MFMA: Final = tuple(f"v_mfma_{name}" for name in (
  *(f"f32_{s}_f32" for s in ("32x32x1_2b", "16x16x1_4b", "4x4x1_16b", "32x32x2", "16x16x4")),
  *(f"f32_{s}_{t}" for t in ("f16", "bf16") for s in (
    "32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x8", "16x16x16")),
  *(f"i32_{s}_i8" for s in ("32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x16", "16x16x32")),
  "f32_16x16x8_xf32", "f32_32x32x4_xf32", "f64_16x16x4_f64", "f64_4x4x4_4b_f64",
  *(f"f32_{s}_{t}" for t in _EIGHT for s in ("16x16x32", "32x32x16"))))
SMFMAC: Final = tuple(f"v_smfmac_{name}" for name in (
  *(f"f32_{s}_{t}" for t in ("f16", "bf16") for s in ("16x16x32", "32x32x16")),
  *(f"i32_{s}_i8" for s in ("16x16x64", "32x32x32")),
  *(f"f32_{s}_{t}" for t in _EIGHT for s in ("16x16x64", "32x32x32"))))
# What gfx90a has instead: names that do not say the blocks, and of bf16 products half as deep too.
OLD: Final = tuple(f"v_mfma_{name}" for name in (
  *(f"f32_{s}f32" for s in ("32x32x1", "16x16x1", "4x4x1", "32x32x2", "16x16x4")),
  *(f"{c}_{s}{t}" for c, t in (("f32", "f16"), ("i32", "i8")) for s in (
    "32x32x4", "16x16x4", "4x4x4", "32x32x8", "16x16x16")),
  *(f"f32_{s}bf16_1k" for s in ("32x32x4", "16x16x4", "4x4x4", "32x32x8", "16x16x16")),
  *(f"f32_{s}bf16" for s in ("32x32x2", "16x16x2", "4x4x2", "32x32x4", "16x16x8")), "f64_16x16x4f64", "f64_4x4x4f64"))
OLD_HELD: Final = {"f64": 1, "f32": 1, "f16": 4, "bf16_1k": 4, "bf16": 2, "i8": 4}  # elements of A that a lane holds
# What gfx950 has beside them: twice the depth (CDNA4 ISA manual, chapter 7).
DEEP: Final = tuple(f"v_mfma_{name}" for name in (
  *(f"f32_{s}_{t}" for t in ("f16", "bf16") for s in ("16x16x32", "32x32x16")), "i32_16x16x64_i8", "i32_32x32x32_i8"))
DEEP_SPARSE: Final = tuple(f"v_smfmac_{name}" for name in (  # 7.5
  *(f"f32_{s}_{t}" for t in ("f16", "bf16") for s in ("16x16x64", "32x32x32")), "i32_16x16x128_i8", "i32_32x32x64_i8",
  *(f"f32_{s}_{t}" for t in _EIGHT for s in ("16x16x128", "32x32x64"))))
# The formats of 8-bit floats, by instruction table (CDNA3 ISA manual 7.2, CDNA4 ISA manual 7.2).
SMALL: Final[dict[str, dict[str, SmallFloat]]] = {
  "gfx9": {"fp8": FP8_FNUZ, "bf8": BF8_FNUZ}, "gfx90a": {}, "gfx950": {"fp8": FP8, "bf8": BF8}}


@dataclass(frozen=True)
class Shape:
  """What a mnemonic says: the blocks' sizes and the types of A, B and C."""
  rows: int
  columns: int
  depth: int
  blocks: int
  a: str
  b: str
  c: str


@cache
def shape(mnemonic: str) -> Shape:
  """The shape in a mnemonic: v_mfma_[type of C]_[rows]x[columns]x[depth][_[blocks]b]_[type of A][_[type of B]], on
  gfx90a v_mfma_[type of C]_[rows]x[columns]x[depth][type of A]."""
  if old := re.fullmatch(r"(?a)v_mfma_(f32|i32|f64)_(\d+)x(\d+)x(\d+)([a-z].*)", mnemonic):
    rows, columns, depth = map(int, old.group(2, 3, 4))
    kind = old[5].removesuffix("_1k")
    return Shape(rows, columns, depth, OLD_HELD[old[5]] * LANES // (depth * rows), kind, kind, old[1])
  m = re.fullmatch(r"(?a)v_s?mfmac?_(?:scale_)?(f32|i32|f64)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?"
                   r"_(x?f\d+|bf16|i8|bf8|fp8|f8f6f4)(?:_(bf8|fp8))?", mnemonic)
  assert m, mnemonic
  return Shape(int(m[2]), int(m[3]), int(m[4]), int(m[5] or 1), m[6], m[7] or m[6], m[1])


@cache
def inputs(size: int, depth: int, blocks: int) -> tuple[Value, Value]:
  """(lane, item) of each element of A [block, k, row] or, with columns as `size`, of B [block, k, column] (7.1.4.1).

  A lane holds consecutive k in its items, which fill its registers from the low bits on.
  """
  held = depth * size * blocks // LANES
  b, k, i = np.indices((blocks, depth, size))
  return i + size * (b + blocks * (k // held)), k % held


@cache
def outputs(s: Shape) -> tuple[Value, Value, Value]:
  """(block, row, column) that each item of each lane of C and D holds [item, lane] (7.1.4.2)."""
  height = 1 if s.c == "f64" else 4
  together = -(-LANES // (s.columns * s.rows // height))  # blocks that one item holds over the lanes
  rows = LANES // together // s.columns
  groups = s.rows // (height * rows)
  b, i, j = (x.reshape(-1) for x in np.indices((s.blocks, s.rows, s.columns)))
  item = i % height + height * (i // (height * rows) + groups * (b // together))
  lane = j + s.columns * (i // height % rows + rows * (b % together))
  out = np.empty((3, s.blocks * s.rows * s.columns // LANES, LANES), np.intp)
  for axis, x in enumerate((b, i, j)): out[axis, item, lane] = x
  return out[0], out[1], out[2]


# ---- elements

@cache
def values_of(t: SmallFloat) -> Value: return np.array(t.values, U32).view(F32).astype(F64)


def _items(group: Group, first: int, bits: int, count: int) -> Value:
  """Raw items of each lane of registers from `first` on [waves, item, lane], as u64 for 64 bits, else u32."""
  words = [full(group, group.v[first + r].view(U32)) for r in range(max(1, count * bits // 32))]
  if bits == 64: return np.stack([low.astype(U64) | high.astype(U64) << np.uint64(32)
                                  for low, high in zip(words[::2], words[1::2])], axis=1)
  if bits == 32: return np.stack(words, axis=1)
  mask, per = np.uint32((1 << bits) - 1), 32 // bits
  return np.stack([words[k // per] >> np.uint32(k % per * bits) & mask for k in range(count)], axis=1)


def _numbers(raw: Value, kind: str, flush: bool, table: str = "gfx9") -> Value:
  """Raw elements as f64, or as i64 for integers."""
  if kind == "f64": return raw.view(F64)
  if kind == "f32": return (Ops.flush(raw.view(F32)) if flush else raw.view(F32)).astype(F64)
  if kind == "xf32":
    kept = raw + np.uint32(0xFFF) + (raw >> np.uint32(13) & np.uint32(1)) & np.uint32(0xFFFFE000)
    special = raw & np.uint32(0x7F800000) == np.uint32(0x7F800000)
    return np.where(special, raw, kept).view(F32).astype(F64)
  if kind in {"f16", "bf16"}: return half(raw, kind)
  if kind == "i8": return whole(raw, 8, 1)
  return values_of(SMALL[table][kind])[raw]


def accumulator(group: Group, o: Operand, kind: str, count: int) -> Value:
  """C as f64 or i64 [waves, item, lane]; a constant is the same everywhere."""
  if o.kind != "v": raw = np.asarray(reader(o, kind)(group)).reshape(-1, 1, 1)
  else: raw = _items(group, o.value, BITS[kind], count).view({"f64": F64, "f32": F32, "i32": I32}[kind])
  return raw.astype(np.int64 if kind == "i32" else F64)


def finish(total: Value, kind: str, mode: int) -> Value:
  """The sums as raw items: u64 for f64, else u32."""
  limit = FP16_OVFL.of(mode)
  if kind == "f64": return total.view(U64)
  if kind == "i32":
    return (np.clip(total, -(1 << 31), (1 << 31) - 1) if limit else total).astype(I32).view(U32)
  out = total.astype(F32)
  if limit:
    most = np.finfo(F32).max
    out = np.where(np.isinf(out) & np.isfinite(total), np.copysign(most, out), out)
  return out.view(U32)


def write_matrix(group: Group, first: int, raw: Value) -> None:
  """Write items [waves, item, lane] of 32 or 64 bits; matrix instructions write every lane."""
  v = group.v
  wide = raw.dtype == U64
  v[first + raw.shape[1] * (2 if wide else 1) - 1]  # a register beyond the allocation must not be made
  for k in range(raw.shape[1]):
    if wide: v[first + 2 * k], v[first + 2 * k + 1] = raw[:, k].astype(U32), (raw[:, k] >> np.uint64(32)).astype(U32)
    else: v[first + k] = np.ascontiguousarray(raw[:, k])


# ---- which lanes are read

def a_lanes(i: Instruction, blocks: int) -> Value:
  """The lane that each lane's values of A come from: one of 2**CBSZ groups of lanes gives its own to all (7.1.5.1).

  Raises Unsupported for more groups than there are blocks and for a group that is not there, which are undefined.
  """
  cbsz, abid = i.get("cbsz"), i.get("abid")
  if 1 << cbsz > blocks or abid >> cbsz:
    raise Unsupported("broadcast", f"of block {abid} (ABID) of {1 << cbsz} (CBSZ {cbsz}) in {i.mnemonic}",
                      hint=f"it has {blocks} block{'s' * (blocks > 1)}; the chip's result is undefined")
  size = LANES >> cbsz
  return np.arange(LANES) % size + size * abid


def b_lanes(blgp: int) -> Value:
  """The lane that each lane's values of B come from (7.1.5.2)."""
  lane = np.arange(LANES)
  if blgp == 0: return lane
  if blgp < 3: return lane % 32 + 32 * (blgp - 1)
  return (lane + 16) % 64 if blgp == 3 else lane % 16 + 16 * (blgp - 4)


# ---- binders

def flushes(i: Instruction, s: Shape) -> bool:
  """Whether denormals of A, B, C and D become zeros: gfx90a's products of 16-bit floats do so, whatever MODE says
  (CDNA2 ISA manual, table 25: they flush input and output denormals; MIOpen's page "MI200 matrix fused multiply-add
  (MFMA) behavior specifics" too). gfx942's do not (CDNA3 ISA manual, 7.3)."""
  return i.table == "gfx90a" and s.a in {"f16", "bf16"}


def _without_denormals(x: Value, kind: str) -> Value:
  """Numbers of a type as f64, its denormals as zeros of the same sign."""
  least = {"f16": 2.0 ** -14, "bf16": 2.0 ** -126, "f32": 2.0 ** -126}[kind]
  return np.where(np.abs(x) < least, np.copysign(0.0, x), x)


@binds(*DEEP, isa="gfx950")
@binds(*OLD, isa="gfx90a")
@binds(*MFMA, isa="gfx9")
def mfma(i: Instruction, pc: int, mode: int) -> Step:
  """v_mfma_*: dense matrices."""
  s = shape(i.mnemonic)
  a, b, c, d = (i.operands[n] for n in ("src0", "src1", "src2", "vdst"))
  blgp, double = i.get("blgp"), s.c == "f64"
  a_lane, a_item = inputs(s.rows, s.depth, s.blocks)
  b_lane, b_item = inputs(s.columns, s.depth, s.blocks)
  if not double: a_lane, b_lane = a_lanes(i, s.blocks)[a_lane], b_lanes(blgp)[b_lane]
  held = (s.depth * s.rows * s.blocks // LANES, s.depth * s.columns * s.blocks // LANES)
  block, row, column = outputs(s)
  zeros = flushes(i, s)
  flush = s.a == "f32" and not denormals(mode, "f32") & 1

  def step(group: Group) -> None:
    x = _numbers(_items(group, a.value, BITS[s.a], held[0])[:, a_item, a_lane], s.a, flush, i.table)
    y = _numbers(_items(group, b.value, BITS[s.b], held[1])[:, b_item, b_lane], s.b, flush, i.table)
    z = accumulator(group, c, s.c, len(block))
    if zeros: x, y, z = (_without_denormals(m, t) for m, t in ((x, s.a), (y, s.b), (z, s.c)))
    if double:  # BLGP negates A, B and C (7.1.5.3)
      x, y, z = (-m if blgp >> k & 1 else m for k, m in enumerate((x, y, z)))
      total = np.broadcast_to(z, (len(x), *block.shape))
      for k in range(s.depth): total = Ops.fma(x[:, block, k, row], y[:, block, k, column], total)
    else:
      flat = product(x.reshape(-1, s.depth, s.rows), y.reshape(-1, s.depth, s.columns))
      total = flat.reshape(-1, s.blocks, s.rows, s.columns)[:, block, row, column] + z
    raw = finish(total, s.c, mode)
    write_matrix(group, d.value, Ops.flush(raw.view(F32)).view(U32) if zeros else raw)
  return step


def sparse_k(s: Shape, words: Value, cbsz: int, abid: int) -> Value:
  """Which k each stored element of A stands for [waves, element, row], from the index register (7.4.1).

  Of 4 consecutive k two are stored; 2 bits for each of the two say which. A lane's elements take 8 bits of its index
  register for 16-bit types and 16 bits for 8-bit types; ABID says which, unless CBSZ is set.
  """
  lane, item = inputs(s.rows, s.depth // 2, 1)
  lane, item = lane[0], item[0]
  held = int(item.max()) + 1
  field = 0 if cbsz & 3 else (abid & (32 // (2 * held) - 1)) * 2 * held
  index = words[:, lane] >> (field + 2 * item).astype(U32) & np.uint32(3)
  return (lane // s.rows * 2 * held + item // 2 * 4) + index.astype(np.intp)


@binds(*DEEP_SPARSE, isa="gfx950")
@binds(*SMFMAC, isa="gfx9")
def smfmac(i: Instruction, pc: int, mode: int) -> Step:
  """v_smfmac_*: A is sparse; C is what the destination held, and source 2 has the indices."""
  s = shape(i.mnemonic)
  a, b, index, d = (i.operands[n] for n in ("src0", "src1", "idx", "vdst"))
  cbsz, abid = i.get("cbsz"), i.get("abid")
  a_lane, a_item = inputs(s.rows, s.depth // 2, 1)
  b_lane, b_item = inputs(s.columns, s.depth, 1)
  held = s.depth // 2 * s.rows // LANES
  block, row, column = outputs(s)

  def step(group: Group) -> None:
    x = _numbers(_items(group, a.value, BITS[s.a], held)[:, a_item[0], a_lane[0]], s.a, False, i.table)
    y = _numbers(_items(group, b.value, BITS[s.b], 2 * held)[:, b_item[0], b_lane[0]], s.b, False, i.table)
    k = sparse_k(s, full(group, group.v[index.value].view(U32)), cbsz, abid)
    wave = np.arange(len(x))[:, None]
    total = np.zeros((len(x), s.rows, s.columns), x.dtype)
    for e in range(s.depth // 2): total += x[:, e, :, None] * y[wave, k[:, e]]
    result = total[:, row, column] + accumulator(group, d, s.c, len(block))
    write_matrix(group, d.value, finish(result, s.c, mode))
  return step
