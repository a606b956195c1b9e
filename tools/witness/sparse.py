"""Witnesses of sparse matrices: v_smfmac_* (CDNA3 ISA manual, 7.4), v_swmmac_* (RDNA4, 7.12.2 and 7.12.3).

Of each four elements of a row of A two are stored, and a pair of 2-bit indices says which. Elements are drawn as for
the dense products, so that no order of additions shows.
"""
from __future__ import annotations

import re
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness.matrix import (
  WIDTHS,
  MatrixShape,
  Place,
  added,
  drawn,
  element,
  format_for,
  input_gfx12,
  input_place,
  output_place,
  read_item,
  write_item,
)
from tinyhw.tools.witness.state import State
from tinyhw.tools.witness.table import EXACT, WITNESSES

PAIRS: Final = tuple(a | b << 2 for b in range(4) for a in range(b))  # the lower index comes first


def shape_of(mnemonic: str) -> MatrixShape:
  """From the name: v_smfmac_f32_16x16x32_f16."""
  x = re.fullmatch(r"v_\w+?_(\w+?)_(\d+)x(\d+)x(\d+)_(\w+)", mnemonic)
  assert x, mnemonic
  types = x[5].split("_")
  return MatrixShape(int(x[2]), int(x[3]), int(x[4]), 1, types[0], types[-1], x[1])


def packed(x: MatrixShape) -> MatrixShape:
  """A as it is stored: half as many columns."""
  return MatrixShape(x.m, x.n, x.k // 2, 1, x.a, x.b, x.d)


def selected_set(i: Instruction, x: MatrixShape) -> int:
  """Which set of indices of a register counts: ABID unless CBSZ is set, or index_key."""
  if i.isa == "gfx9": return 0 if i.get("cbsz") & 3 else i.get("abid") & (3 if WIDTHS[x.a] == 16 else 1)
  return i.get("index_key_8bit") or i.get("index_key_16bit")


def bits_a_lane(s: State, x: MatrixShape) -> int:
  """Bits of indices that a lane of A needs: two for each element it stores."""
  return 2 * max(8 if WIDTHS[x.a] == 4 else 0, x.m * x.k // 2 // s.lanes)


def names(i: Instruction) -> tuple[str, str]:
  """(operand with the indices, operand with C and D)."""
  return ("idx" if "idx" in i.operands else "src2"), "vdst"


def prepare(s: State, i: Instruction, rng: Random) -> None:
  """Random matrices; every pair of indices in order."""
  x = shape_of(i.mnemonic)
  for name, t, count in (("src0", x.a, x.m * x.k // 2), ("src1", x.b, x.k * x.n), ("vdst", x.d, x.m * x.n)):
    o = i.operands[name]
    bits = 32 if t == "i32" else WIDTHS[t]
    for lane in range(s.lanes):
      for item in range(max(32 // bits, count // s.lanes)):
        write_item(s, o.value, lane, item, bits, rng.getrandbits(32) if t == "i32" else drawn(s, t, x.d, rng))
  register = i.operands[names(i)[0]].value
  s.v[register] = [sum(rng.choice(PAIRS) << 4 * k for k in range(8)) for _ in range(s.lanes)]


def fields(e: Any, k: int) -> bool:
  """Sets of indices, signs of integers, clamp. The forms for waves of 64 are rows of their own."""
  for name in ("abid", "index_key_8bit", "index_key_16bit"):
    if name in e.row.fields: e.fields[name] = e.rng.getrandbits(4) & e.all_ones(name)
  if "cbsz" in e.row.fields: e.fields["cbsz"] = int(k == 2)
  if "neg_lo" in e.row.fields and "iu" in e.row.mnemonic: e.fields["neg_lo"] = k & 3
  if "clamp" in e.row.fields and "_i32_" in e.row.mnemonic: e.fields["clamp"] = k & 1
  alone = e.table.name == "gfx9" or e.row.mnemonic == "v_swmmac_i32_16x16x32_iu4"
  return alone or bool(e.row.variant == "w64") == (k == 2)


def multiply(s: State, i: Instruction) -> None:
  """D += A * B with A's elements where their indices say."""
  x = shape_of(i.mnemonic)
  stored = packed(x)
  index, d = i.operands[names(i)[0]].value, i.operands["vdst"]
  first_bit = selected_set(i, x) * bits_a_lane(s, x)

  def place(row: int, k: int, source: int) -> Place:
    if i.isa == "gfx9": return input_place(i, (x, stored)[source == 0], s.lanes, row, k, 0, x.n if source else x.m)
    return input_gfx12(x.k if source else x.k // 2, s.lanes, row, k, WIDTHS[x.a])
  a_of: dict[tuple[int, int], int] = {}
  for row in range(x.m):
    for k in range(x.k // 2):  # which of its group of four the stored element is
      lane, item = place(row, k, 0)
      which = s.v[index][lane] >> first_bit + 2 * item & 3
      a_of[row, k // 2 * 4 + which] = element(s, i, x.a, (lane, item), 0, k)
  b_of = {(c, k): element(s, i, x.b, place(c, k, 1), 1, k) for c in range(x.n) for k in range(x.k)}
  bits, f = 16 if x.d in {"f16", "bf16"} else 32, format_for(s, x.d)
  out = []
  for row in range(x.m):
    terms = [(k, a_of[row, k]) for k in range(x.k) if a_of.get((row, k))]
    for column in range(x.n):
      lane, item = output_place(i, x, s.lanes, row, column, 0)
      old = read_item(s, d.value, lane, item, bits)
      out.append((lane, item, added(i, f, old, sum(a * b_of[column, k] for k, a in terms))))
  for lane, item, value in out: write_item(s, d.value, lane, item, bits, value)


_EIGHT: Final = ("bf8_bf8", "bf8_fp8", "fp8_bf8", "fp8_fp8")
SMFMAC: Final = [f"v_smfmac_f32_{s}_{t}" for s, types in (
  ("16x16x32", ("f16", "bf16")), ("32x32x16", ("f16", "bf16")), ("16x16x64", _EIGHT), ("32x32x32", _EIGHT))
  for t in types] + ["v_smfmac_i32_16x16x64_i8", "v_smfmac_i32_32x32x32_i8"]
SWMMAC: Final = [f"v_swmmac_{n}" for n in (
  "f32_16x16x32_f16", "f32_16x16x32_bf16", "f16_16x16x32_f16", "bf16_16x16x32_bf16", "i32_16x16x32_iu8",
  "i32_16x16x32_iu4", "i32_16x16x64_iu4", *(f"f32_16x16x32_{t}" for t in _EIGHT))]
WITNESSES.wave(" ".join(SMFMAC), EXACT, prepare=prepare, fields=fields, forms=3, waves=1)(multiply)
WITNESSES.wave(" ".join(SWMMAC), EXACT, prepare=prepare, fields=fields, forms=4, waves=1, lanes=(32, 32, 64))(multiply)
