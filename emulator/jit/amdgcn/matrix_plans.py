"""The matrix instructions of CDNA3 and RDNA4, compiled: operands to memory, a function of `blocks`, results back."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.gfx9 import matrix as gfx9
from tinyhw.emulator.amdgcn.gfx12 import matrix as gfx12
from tinyhw.emulator.amdgcn.modes import FP16_OVFL, denormals
from tinyhw.emulator.jit.amdgcn import alu, blocks
from tinyhw.emulator.jit.amdgcn.blocks import BlockProduct, Source
from tinyhw.emulator.jit.amdgcn.matrix import constant_of, narrowed
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.values.ops import DTYPES, F16, F32, F64, U32
from tinyhw.emulator.values.small_floats import SmallFloat
from tinyhw.isa.amdgcn import Instruction, Operand


def _source(kind: str, lane: Any, item: Any, small: dict[str, SmallFloat], **more: Any) -> Source:
  if kind.startswith("i"): return Source("int", int(kind.lstrip("iu")), lane, item, **more)
  values = [int(x) for x in small[kind].values] if kind in small else []
  bits = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16}.get(kind, 8)
  return Source(kind, bits, lane, item, values=values, **more)


def _at(r: Registers, at: int) -> str: return r.e.op(f"getelementptr i8, ptr %matrix, i64 {at}")


def _put(r: Registers, at: int, k: int, value: Value) -> None:
  """The k-th vector of a part of the memory."""
  place = _at(r, at + k * value.dtype.itemsize * r.lanes)
  r.e.do(f"store {r.e.type(value.dtype, True)} {value.in_lanes()}, ptr {place}, align 64")


def _registers(r: Registers, at: int, o: Operand, s: Source) -> None:
  """The registers of A or B."""
  if o.kind != "v": raise Untranslatable("a matrix in scalar registers")
  for k in range(max(1, (int(s.item.max()) + 1) * s.bits // 32)): _put(r, at, k, r.vector(o.value + k, U32))


def _run(r: Registers, p: BlockProduct, type_: Any) -> list[Value]:
  """Call the function; the items of its result."""
  e = r.e
  e.stack["matrix"] = f"alloca [{blocks.SIZE} x i8], align 64"
  blocks.define(e, p)
  e.do(f"call void @{p.name}(ptr %matrix)")
  t, width = e.type(type_, True), type_.itemsize * r.lanes
  return [Value(e, e.op(f"load {t}, ptr {_at(r, blocks.D + k * width)}, align 64"), type_, True)
          for k in range(len(p.out))]


def _name(r: Registers, i: Instruction, *more: Any) -> str:
  fields = [i.get(n) for n in ("cbsz", "abid", "blgp", "neg_lo", "neg_hi", "clamp", "index_key_16bit",
                               "index_key_8bit")]
  return "_".join(["matrix", i.table, i.mnemonic, str(r.lanes), *(f"{int(x):x}" for x in (*fields, *more))])


# ---- CDNA3

def _out(s: gfx9.Shape) -> Any:
  block, row, column = gfx9.outputs(s)
  return (block * s.rows + row) * s.columns + column


def _mfma(r: Registers, i: Instruction, mode: int) -> None:
  s = gfx9.shape(i.mnemonic)
  if FP16_OVFL.of(mode) or r.lanes != gfx9.LANES: raise Untranslatable(i.mnemonic)
  blgp, double, zeros = i.get("blgp"), s.c == "f64", gfx9.flushes(i, s)
  flush = zeros or s.a == "f32" and not denormals(mode, "f32") & 1
  a_lane, a_item = gfx9.inputs(s.rows, s.depth, s.blocks)
  b_lane, b_item = gfx9.inputs(s.columns, s.depth, s.blocks)
  negative: list[Any] = [None, None]
  if double: negative = [np.full(x.shape, True) if blgp >> k & 1 else None for k, x in enumerate((a_lane, b_lane))]
  else:
    try: a_lane, b_lane = gfx9.a_lanes(i, s.blocks)[a_lane], gfx9.b_lanes(blgp)[b_lane]
    except Unsupported as error: raise Untranslatable(str(error)) from None
  small = gfx9.SMALL[i.table]
  a = _source(s.a, a_lane, a_item, small, flush=flush, negative=negative[0])
  b = _source(s.b, b_lane, b_item, small, flush=flush, negative=negative[1])
  c = "fused" if double else s.c
  p = BlockProduct(_name(r, i, flush), r.lanes, s.blocks, s.rows, s.columns, s.depth, a, b, c, _out(s), flush=zeros)
  _gfx9(r, i, p, i.operands["src2"], s.c, bool(double and blgp >> 2 & 1))


def _smfmac(r: Registers, i: Instruction, mode: int) -> None:
  s = gfx9.shape(i.mnemonic)
  if FP16_OVFL.of(mode) or r.lanes != gfx9.LANES: raise Untranslatable(i.mnemonic)
  lane, item = gfx9.inputs(s.rows, s.depth // 2, 1)
  held = int(item.max()) + 1
  field = 0 if i.get("cbsz") & 3 else (i.get("abid") & (32 // (2 * held) - 1)) * 2 * held
  chosen = lane // s.rows * 2 * held + item // 2 * 4, lane, field + 2 * item
  small = gfx9.SMALL[i.table]
  a, b = _source(s.a, lane, item, small), _source(s.b, *gfx9.inputs(s.columns, s.depth, 1), small)
  p = BlockProduct(_name(r, i), r.lanes, 1, s.rows, s.columns, s.depth // 2, a, b, s.c, _out(s), chosen)
  _put(r, blocks.INDEX, 0, r.vector(i.operands["idx"].value, U32))
  _gfx9(r, i, p, i.operands["vdst"], s.c, False)


def _gfx9(r: Registers, i: Instruction, p: BlockProduct, c: Operand, kind: str, negative: bool) -> None:
  """C, the call, and D, which is written in every lane."""
  count, n, dtype = len(p.out), i.operands["vdst"].value, DTYPES[kind]
  wide = dtype.itemsize // 4
  if c.kind == "s": raise Untranslatable("a matrix in scalar registers")
  if n + count * wide > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  for k in range(count):
    if c.kind == "v": x = r.vector64(c.value + 2 * k, F64) if wide == 2 else r.vector(c.value + k, dtype)
    else: x = r.e.const(dtype, int(constant(c, kind).view(DTYPES[f"u{dtype.itemsize * 8}"])))
    _put(r, blocks.C, k, -x if negative else x)
  _registers(r, blocks.A, i.operands["src0"], p.a)
  _registers(r, blocks.B, i.operands["src1"], p.b)
  for k, value in enumerate(_run(r, p, DTYPES["u64"] if wide == 2 else U32)):
    if wide == 1: r.set_vector(n + k, value, everywhere=True)
    else:
      r.set_vector(n + 2 * k, convert(value, U32), everywhere=True)
      r.set_vector(n + 2 * k + 1, convert(value >> 32, U32), everywhere=True)


# ---- RDNA4

def _columns(at: tuple[Any, Any]) -> tuple[Any, Any]:
  """(lane, item) of [position, 16]."""
  number, lane = at
  return lane[:, None] + np.arange(16), np.broadcast_to(number[:, None], (len(number), 16))


def _gfx12(r: Registers, i: Instruction, mode: int) -> None:
  s = gfx12.SHAPES[i.mnemonic]
  e, neg_lo, neg_hi = r.e, i.get("neg_lo"), i.get("neg_hi")
  whole = s.result == "i32"
  if whole and (neg_lo | neg_hi) >> 2 & 1: raise Untranslatable("a modifier of integers")
  depth = s.k // 2 if s.sparse else s.k

  def source(kind: str, count: int, k: int) -> Source:
    lane, item = _columns(gfx12.places(gfx12.BITS[kind], count, r.lanes))
    if whole: return _source(kind, lane, item, gfx12.SMALL, signed=bool(neg_lo >> k & 1))
    odd = np.arange(count)[:, None] % 2 == 1
    signs = np.broadcast_to(np.where(odd, neg_hi >> k & 1, neg_lo >> k & 1), lane.shape) == 1
    return _source(kind, lane, item, gfx12.SMALL, negative=signs if signs.any() else None)

  a, b = source(s.a, depth, 0), source(s.b, s.k, 1)
  number, lane = gfx12.row_places(r.lanes)
  out = np.zeros((int(number.max()) + 1, r.lanes), np.intp)
  for row in range(16): out[number[row], lane[row]:lane[row] + 16] = row * 16 + np.arange(16)
  narrow = s.result in {"f16", "bf16"}
  result = "f64" if narrow else "fused32" if not whole else "sat" if i.get("clamp") else "i32"
  chosen = None
  if s.sparse:
    key = i.get("index_key_16bit") or i.get("index_key_8bit")
    first = np.broadcast_to((np.arange(depth) // 2 * 4)[:, None], a.lane.shape)
    chosen = first, a.lane, key * 2 * (int(a.item.max()) + 1) + 2 * a.item
    _put(r, blocks.INDEX, 0, r.vector(i.operands["src2"].value, U32))
  p = BlockProduct(_name(r, i), r.lanes, 1, 16, 16, depth, a, b, result, out, chosen, s.sparse)
  c, n = i.operands["vdst" if s.sparse else "src2"], i.operands["vdst"].value
  count = len(out) // (2 if narrow else 1)
  if n + count > r.vgprs: raise Untranslatable("a register beyond the wave's allocation")
  old = [_gfx12_old(r, c, s.result, k) for k in range(len(out))]
  if not s.sparse and neg_hi >> 2 & 1: old = [r.o.abs(x) for x in old]
  if not s.sparse and neg_lo >> 2 & 1: old = [-x for x in old]
  if not narrow:
    for k, x in enumerate(old): _put(r, blocks.C, k, x)
  _registers(r, blocks.A, i.operands["src0"], a)
  _registers(r, blocks.B, i.operands["src1"], b)
  values = _run(r, p, F64 if narrow else U32)
  if narrow:
    halves = [narrowed(r, total + x, s.result) for total, x in zip(values, old)]
    values = [low | high << 16 for low, high in zip(halves[::2], halves[1::2])]
  for k, value in enumerate(values): r.set_vector(n + k, Value(e, value.in_lanes(), U32, True), everywhere=True)


def _gfx12_old(r: Registers, o: Operand, result: str, k: int) -> Value:
  """Item k of C: f32 and i32 as they are, narrow floats as f64."""
  if o.kind == "s": raise Untranslatable("a matrix in scalar registers")
  if o.kind != "v": return constant_of(r, o, result)
  if result in {"f32", "i32"}: return r.vector(o.value + k, DTYPES[result])
  if result == "f16": x = r.vector16(o.value + k // 2, k % 2, F16)
  else:
    word = r.vector(o.value + k // 2, U32)
    x = (word & 0xFFFF0000 if k % 2 else word << 16).view(F32)
  return convert(x, F64)


alu.SPECIAL.update({gfx9.mfma: _mfma, gfx9.smfmac: _smfmac, gfx12.wmma: _gfx12, gfx12.swmmac: _gfx12})
