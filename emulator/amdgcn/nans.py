"""Which NaN comes out of an instruction, where nothing says it: what `both` does not compare.

Everything else about NaNs is defined, and compared bit for bit: that a result is NaN, that arithmetic and conversions
make a signalling NaN quiet and keep its sign and the upper bits of its fraction, that what they make of numbers is
negative, quiet and otherwise 0 (the manuals' examples: 0xffc00000), and where an operand is copied as it is.

Open is the choice among several: NaNs in two operands (or one operand that is NaN in several of its parts), a NaN
operand of a fused multiply-add or a sum of products which makes another NaN on the way, and all sums of matrices. The
manuals do not say which one comes out, processors differ, and LLVM exchanges operands.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO

Cells = Callable[[int], Value]  # a vector register's number -> u32 of each lane
_ACROSS: Final = ("v_permlane", "v_readlane", "v_readfirstlane", "v_writelane", "ds_", "v_wmma", "v_swmmac", "v_mfma",
                  "v_smfmac", "v_movrel", "v_swaprel")
_SUMS: Final = ("v_dot", "v_wmma", "v_swmmac", "v_mfma", "v_smfmac")
_FUSED: Final = ("v_fma", "v_pk_fma", "v_mad_", "v_mac_", "v_madak", "v_madmk", "v_div_fmas", "s_fma")


def alike(a: Value, b: Value) -> Value:
  """Dwords that differ in nothing but which NaN they hold: an f32, a half of f16 or bf16, part of an f64."""
  def nan32(x: Value) -> Value: return x & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000)

  def half(shift: int) -> Value:
    x, y = (v >> np.uint32(shift) & np.uint32(0xFFFF) for v in (a, b))
    out = x == y
    for infinity in (0x7C00, 0x7F80):
      out |= (x & np.uint32(0x7FFF) > infinity) & (y & np.uint32(0x7FFF) > infinity)
    return out
  return nan32(a) & nan32(b) | half(0) & half(16)


def wide_alike(a: Value, b: Value) -> Value:
  """As `alike` of registers [n, lanes], where the upper half of an f64 that is NaN lies above its lower half."""
  out = alike(a, b) | (a == b)
  high = (a & 0x7FFFFFFF >= 0x7FF00000) & (b & 0x7FFFFFFF >= 0x7FF00000)
  out |= high
  out[:-1] |= high[1:]
  return out


def holds(words: Value) -> Value:
  """In how many parts dwords [n, lanes] could be NaN, as any type, in each lane."""
  count = np.zeros(words.shape[1:], int)
  for x in words:
    magnitude, parts = x & np.uint32(0x7FFFFFFF), _parts(x)
    # an f32, or the upper half of an f64 whose lower half decides
    count += np.maximum(magnitude >= np.uint32(0x7F800000), sum((p > 0x7C00).astype(int) for p in parts))
  return count


def _parts(x: Value) -> tuple[Value, Value]:
  """The magnitudes of both halves as f16."""
  return x & np.uint32(0x7FFF), x >> np.uint32(16) & np.uint32(0x7FFF)


def _infinite(words: Value) -> Value:
  """Lanes in which dwords could be infinite, as any type."""
  magnitude = words & np.uint32(0x7FFFFFFF)
  found = (magnitude == 0x7F800000) | (magnitude == 0x7FF00000)
  for p in _parts(words): found |= p == 0x7C00
  return np.logical_or.reduce(found, axis=0)


def _zero(words: Value) -> Value:
  """Lanes in which dwords could be zero, or a denormal that is taken for it."""
  magnitude = words & np.uint32(0x7FFFFFFF)
  found = magnitude < 0x00800000
  for p in _parts(words): found |= p < 0x0400
  return np.logical_or.reduce(found, axis=0)


def open_choice(i: Instruction, s: Value, v: Cells, lanes: int) -> Value:
  """The lanes [lanes] in which an instruction may have several NaNs to choose from, by its operands before it."""
  different = {(o.kind, o.value, o.half): o for o in sources(i)}  # one register twice is no choice
  operands = [_words(o, s, v, lanes) for o in different.values()]
  if not operands: return np.zeros(lanes, bool)
  found: Any = sum(map(holds, operands))
  if i.mnemonic.startswith(_SUMS) or "::" in i.mnemonic: return found > 0
  several = found > 1
  if i.mnemonic.startswith(_FUSED):
    made = np.any([_infinite(w) for w in operands], axis=0) & np.any([_zero(w) for w in operands], axis=0)
    several = several | (found > 0) & made
  return several


class Choices:
  """The cells of a wave's registers whose NaN was chosen among several: `s` [scalars], `v` [vectors, lanes]."""

  def __init__(self, scalars: int, vectors: int, lanes: int) -> None:
    self.s, self.v = np.zeros(scalars, bool), np.zeros((vectors, lanes), bool)
    self._stored = False

  def follow(self, i: Instruction, s: Value, v: Value) -> bool:
    """Take note of an instruction, by the registers before it; whether it stored such a NaN.

    Lanes may fetch from each other, and loads find what was stored: then the whole result is such.
    """
    lanes = self.v.shape[1]
    free, read = open_choice(i, s, lambda n: v[n], lanes), np.zeros(lanes, bool)
    for o in sources(i):
      numbers = range(o.value, o.value + max(1, o.dwords))
      if o.kind == "v": read |= self.v[[n for n in numbers if n < len(self.v)]].any(axis=0)
      elif o.kind == "s": read |= self.s[[n for n in numbers if n < len(self.s)]].any()
    if read.any() and ("dpp" in i.variant or i.mnemonic.startswith(_ACROSS)): read |= True
    result = free | read | (i.row.loads and self._stored)
    mask = int(s[EXEC_LO]) | int(s[EXEC_LO + 1]) << 32
    active = np.array([mask >> k & 1 for k in range(lanes)], bool)
    for o in i.operands.values():
      if o.role != "d": continue
      for n in range(o.value, o.value + max(1, o.dwords)):
        if o.kind == "v" and n < len(self.v): self.v[n] = np.where(active, result, self.v[n])
        elif o.kind == "s" and n < len(self.s): self.s[n] = (result & active).any()
    stored = bool(i.row.stores and read.any())
    self._stored |= stored
    return stored


def sources(i: Instruction) -> list[Operand]:
  """The operands that an instruction reads, an accumulator among them."""
  out = [o for o in i.operands.values() if o.role == "s"]
  meaning = MEANINGS.get(i.mnemonic, i.table)
  tied = meaning is None or any(t.startswith("d:") for t in meaning.sources)
  if tied: out += [o for o in i.operands.values() if o.role == "d" and o.kind == "v"]
  return out


def _words(o: Operand, s: Value, v: Cells, lanes: int) -> Value:
  """An operand's dwords [n, lanes]; constants and literals count as what they may stand for."""
  count = max(1, o.dwords)
  if o.kind == "v": return np.stack([v(o.value + k) for k in range(count)])
  if o.kind == "s" and o.value + count <= len(s): return np.repeat(s[o.value:o.value + count, None], lanes, axis=1)
  word = o.value if o.kind == "lit" else 0xFFFFFFFF if o.kind == "const" and 193 <= o.value <= 208 else 0
  return np.full((1, lanes), word, np.uint32)
