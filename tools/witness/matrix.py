"""Witnesses of the dense matrix instructions: v_wmma_* (RDNA3 ISA manual, 7.9; RDNA4, 7.12), v_mfma_* (CDNA3, 7.1).

A, B and C are drawn so that every sum is exact in the result's type: the order of the chip's additions does not matter,
and every element's place does. Integers are drawn from their whole range and wrap, or saturate with clamp.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness.atomics import signed
from tinyhw.tools.witness.softfloat import BF16, F16, F32, F64, Format
from tinyhw.tools.witness.state import M32, State
from tinyhw.tools.witness.table import EXACT, WITNESSES
from tinyhw.tools.witness.waves import small

Place = tuple[int, int]  # (lane, item in the lane's registers)
WIDTHS: Final = {"f16": 16, "bf16": 16, "f32": 32, "xf32": 32, "f64": 64, "i8": 8, "iu8": 8, "iu4": 4, "fp8": 8,
                 "bf8": 8}
_FORMATS: Final = {"f16": F16, "bf16": BF16, "f32": F32, "xf32": F32, "f64": F64}


@dataclass(frozen=True)
class MatrixShape:
  """D[b] = A[b] * B[b] + C[b]: `m` x `k` times `k` x `n`, `blocks` of them; types of A, B and of C and D."""
  m: int
  n: int
  k: int
  blocks: int
  a: str
  b: str
  d: str


def shape_of(mnemonic: str) -> MatrixShape:
  """From the name: v_mfma_f32_4x4x4_16b_f16, v_wmma_i32_16x16x16_iu8."""
  x = re.fullmatch(r"v_\w+?_(\w+?)_(\d+)x(\d+)x(\d+)(?:_(\d+)b)?_(\w+)", mnemonic)
  assert x, mnemonic
  types = x[6].split("_")
  return MatrixShape(int(x[2]), int(x[3]), int(x[4]), int(x[5] or 1), types[0], types[-1], x[1])


def format_for(s: State, t: str) -> Format | None:
  """The float format of an element type."""
  return small(s, t) if t in {"fp8", "bf8"} else _FORMATS.get(t)


# ---- where the elements are

def input_place(i: Instruction, x: MatrixShape, lanes: int, row: int, k: int, block: int, size: int) -> Place:
  """Where A[block, row, k] is; B[block, k, column] by its column. `size` is m for A, n for B."""
  if i.isa == "gfx9":
    each = x.k // (64 // (size * x.blocks))
    return row + size * (block + x.blocks * (k // each)), k % each
  if i.isa == "gfx11": return row, k  # lanes 16 and up repeat the first ones
  return input_gfx12(x.k, lanes, row, k, WIDTHS[x.a])


def input_gfx12(count: int, lanes: int, row: int, k: int, bits: int) -> Place:
  """RDNA4's place of element k of `count` (RDNA4 ISA manual, 7.12.2). 16 elements of 4 bits fill 32 lanes of 64."""
  if bits == 4 and count == 16: lanes = 32
  each = count * 16 // lanes
  group = k // each
  if lanes == 64: group = group >> 1 | (group & 1) << 1
  return row + 16 * group, k % each


def output_place(i: Instruction, x: MatrixShape, lanes: int, row: int, column: int, block: int) -> Place:
  """Where C and D [block, row, column] are."""
  if i.isa == "gfx9":
    height = 1 if x.d == "f64" else 4
    together = -(-64 // (x.n * x.m // height))
    rows = 64 // together // x.n
    groups = x.m // (height * rows)
    item = row % height + height * (row // (height * rows) + groups * (block // together))
    return column + x.n * (row // height % rows + rows * (block % together)), item
  if i.isa == "gfx11":
    groups = lanes // 16
    return column + 16 * (row % groups), row // groups
  if lanes == 64: return row // 4 % 2 * 32 + row // 8 * 16 + column, row % 4
  return column + 16 * (row // 8), row % 8


def read_item(s: State, register: int, lane: int, item: int, bits: int) -> int:
  """An element of a lane: several to a register, or two registers for one."""
  if bits == 64: return s.v[register + 2 * item][lane] | s.v[register + 2 * item + 1][lane] << 32
  per = 32 // bits
  return s.v[register + item // per][lane] >> item % per * bits & (1 << bits) - 1


def write_item(s: State, register: int, lane: int, item: int, bits: int, value: int) -> None:
  if bits == 64:
    s.write(register + 2 * item, lane, value)
    s.write(register + 2 * item + 1, lane, value >> 32)
    return
  per, at = 32 // bits, item % (32 // bits) * bits
  mask = (1 << bits) - 1
  s.v[register + item // per][lane] = s.v[register + item // per][lane] & ~(mask << at) & M32 | (value & mask) << at


def halves(i: Instruction, x: MatrixShape) -> bool:
  """Whether 16-bit results take a half of a register each, which op_sel chooses (gfx11)."""
  return i.isa == "gfx11" and x.d in {"f16", "bf16"}


# ---- numbers

def drawn(s: State, t: str, d: str, rng: Random) -> int:
  """An element whose products sum without rounding."""
  f = format_for(s, t)
  if f is None: return rng.getrandbits(WIDTHS[t])
  if d == "bf16" or t in {"fp8", "bf8"}: return f.round(rng.randrange(-1, 2), 0)
  return f.round(rng.randrange(-4, 5), -1)


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """Random matrices, in the whole of their registers."""
  x = shape_of(i.mnemonic)
  for name, t in (("src0", x.a), ("src1", x.b), ("src2", x.d)):
    o = i.operands[name]
    if o.kind != "v": continue
    bits = 32 if t == "i32" else WIDTHS[t]
    for lane in range(s.lanes):
      for item in range(o.dwords * 32 // bits):
        write_item(s, o.value, lane, item, bits, rng.getrandbits(32) if t == "i32" else drawn(s, t, x.d, rng))
  if i.isa == "gfx11":
    for o in (i.operands["src0"], i.operands["src1"]):
      for k in range(o.dwords):
        column = s.v[o.value + k]
        for lane in range(s.lanes): column[lane] = column[lane % 16]


def fields(e: Any, k: int) -> None:
  """Signs of integers, or neg and abs of floats; clamp; a broadcast block (gfx9)."""
  x = shape_of(e.row.mnemonic)
  if x.a.startswith("iu"): e.fields["neg_lo"] = k & 3
  elif "neg_lo" in e.row.fields and k and x.a not in {"fp8", "bf8"}:
    e.fields |= {n: e.rng.randrange(8) & e.all_ones(n) for n in ("neg_lo", "neg_hi")}
  if "clamp" in e.row.fields and x.d == "i32": e.fields["clamp"] = k & 1
  if "op_sel" in e.row.fields and x.d in {"f16", "bf16"}: e.fields["op_sel"] = (k & 1) << 2
  if "op_sel_hi" in e.row.fields and e.table.name == "gfx11": e.fields["op_sel_hi"] = 7
  if "cbsz" in e.row.fields and x.blocks > 1 and k == 2 and x.d != "f64":
    e.fields |= {"cbsz": 1, "abid": 1}


def element(s: State, i: Instruction, t: str, place: Place, source: int, k: int) -> int:
  """An element of A or B as an integer, floats in units of 1/2, with its sign changed where neg says so."""
  o = i.operands[f"src{source}"]
  raw = read_item(s, o.value, place[0], place[1], WIDTHS[t])
  f = format_for(s, t)
  if f is None:
    is_signed = t == "i8" or i.get("neg_lo") >> source & 1
    return signed(raw, WIDTHS[t]) if is_signed else raw
  m, e = f.value(raw)
  number = m << e + 1 if e >= -1 else m >> -1 - e
  if t not in {"f16", "bf16"} or i.isa == "gfx9": return number
  return -number if (i.get("neg_hi") if k % 2 else i.get("neg_lo")) >> source & 1 else number


def multiply(s: State, i: Instruction) -> None:
  """D = A * B + C. EXEC does not count (CDNA3 ISA manual, 7.1; RDNA3: all lanes take part)."""
  x = shape_of(i.mnemonic)
  a_of, b_of = {}, {}
  size = 64 >> i.get("cbsz")
  for block in range(x.blocks):
    for k in range(x.k):
      for row in range(x.m):
        lane, item = input_place(i, x, s.lanes, row, k, block, x.m)
        if i.get("cbsz"): lane = lane % size + size * i.get("abid")
        a_of[block, row, k] = element(s, i, x.a, (lane, item), 0, k)
      for column in range(x.n):
        b_of[block, column, k] = element(s, i, x.b, input_place(i, x, s.lanes, column, k, block, x.n), 1, k)
  c, d = i.operands["src2"], i.operands["vdst"]
  bits = 16 if x.d in {"f16", "bf16"} else 64 if x.d == "f64" else 32
  half = i.get("op_sel") >> 2 & 1
  f = format_for(s, x.d)
  out = []
  for block in range(x.blocks):
    for row in range(x.m):
      for column in range(x.n):
        lane, item = output_place(i, x, s.lanes, row, column, block)
        if halves(i, x): item = 2 * item + half
        old = read_item(s, c.value, lane, item, bits)
        total = sum(a_of[block, row, k] * b_of[block, column, k] for k in range(x.k))
        out.append((lane, item, added(i, f, old, total)))
  for lane, item, value in out: write_item(s, d.value, lane, item, bits, value)


def added(i: Instruction, f: Format | None, old: int, total: int) -> int:
  """The accumulator and a sum of products, which for floats is in units of 1/4."""
  if f is None:
    value = signed(old, 32) + total
    return max(-(1 << 31), min((1 << 31) - 1, value)) if i.get("clamp") else value
  if i.isa != "gfx9":
    if i.get("neg_hi") >> 2 & 1: old &= ~f.sign
    if i.get("neg_lo") >> 2 & 1: old ^= f.sign
  m, e = f.value(old)
  low = min(e, -2)
  return f.round((m << e - low) + (total << -2 - low), low)


_EIGHT: Final = ("bf8_bf8", "bf8_fp8", "fp8_bf8", "fp8_fp8")
MFMA = [f"v_mfma_f32_{s}_{t}" for t, shapes in {
  "f32": ("32x32x1_2b", "16x16x1_4b", "4x4x1_16b", "32x32x2", "16x16x4"), "xf32": ("16x16x8", "32x32x4"),
  **dict.fromkeys(("f16", "bf16"), ("32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x8", "16x16x16")),
  **dict.fromkeys(_EIGHT, ("16x16x32", "32x32x16"))}.items() for s in shapes]
MFMA += [f"v_mfma_i32_{s}_i8" for s in ("32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x16", "16x16x32")]
MFMA += [f"v_mfma_f32_{s}_{t}" for t in ("f16", "bf16") for s in ("16x16x32", "32x32x16")]  # gfx950 alone, as the next
MFMA += ["v_mfma_i32_16x16x64_i8", "v_mfma_i32_32x32x32_i8"]
MFMA += ["v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"]
WMMA: Final = [f"v_wmma_{n}" for n in (
  "f32_16x16x16_f16", "f32_16x16x16_bf16", "f16_16x16x16_f16", "bf16_16x16x16_bf16", "i32_16x16x16_iu8",
  "i32_16x16x16_iu4", "i32_16x16x32_iu4", *(f"f32_16x16x16_{t}" for t in _EIGHT))]
WITNESSES.wave(" ".join(MFMA), EXACT, prepare=prepare, fields=fields, forms=3, waves=1)(multiply)
WITNESSES.wave(" ".join(WMMA), EXACT, prepare=prepare, fields=fields, forms=4, waves=1, lanes=(32, 32, 64))(multiply)
