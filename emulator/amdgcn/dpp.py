"""Data-parallel primitives: which lane each lane's source 0 comes from, and which lanes are written.

RDNA3 ISA manual, section 15.3.8; CDNA3, table 93, whose controls across rows only gfx9 has.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction

VARIANTS: Final = ("dpp", "dpp8", "dpp8_fi")  # how the names of a row's variant end
Control = Callable[[Value], tuple[Value, Value]]  # (source lane, whether it exists) of lane numbers


def _wave_shift(step: int, around: bool) -> Control:
  """Each lane from the next (step 1) or the one before (-1) of the wave."""
  def control(lane: Value) -> tuple[Value, Value]:
    at = lane + step
    inside = (at >= 0) & (at < len(lane))
    return at % len(lane), np.ones(len(lane), bool) if around else inside
  return control


def _broadcast_row_end(rows: int) -> Control:
  """The last lane of each `rows` rows to the lanes after it; the first lanes have no source."""
  def control(lane: Value) -> tuple[Value, Value]:
    last = (lane & ~(16 * rows - 1)) - 1
    return np.maximum(last, 0), last >= 0
  return control


def _none(code: int) -> Control:
  def control(lane: Value) -> tuple[Value, Value]: raise Unsupported("DPP control", hex(code))
  return control


# Controls that an instruction table has by itself, or has not, by its name.
CONTROLS_OF: Final[dict[str, dict[int, Control]]] = {"gfx9": {
  0x130: _wave_shift(1, False), 0x134: _wave_shift(1, True), 0x138: _wave_shift(-1, False),
  0x13C: _wave_shift(-1, True), 0x142: _broadcast_row_end(1), 0x143: _broadcast_row_end(2),
  **{code: _none(code) for code in range(0x160, 0x170)}}}


def source_lanes(i: Instruction, lanes: int) -> tuple[Value, Value]:
  """(source lane, whether it exists) for each lane of a wave."""
  lane = np.arange(lanes)
  if "dpp8" in i.fields:
    select = i.fields["dpp8"]
    return (lane & ~7) + (select >> 3 * (lane & 7) & 7), np.ones(lanes, bool)
  ctrl = i.fields["dpp_ctrl"]
  if (found := CONTROLS_OF.get(i.isa, {}).get(ctrl)) is not None: return found(lane)
  row, column, n = lane & ~15, lane & 15, ctrl & 15
  if ctrl < 0x100: return (lane & ~3) + (ctrl >> 2 * (lane & 3) & 3), np.ones(lanes, bool)
  kind = ctrl & 0x1F0
  if kind == 0x100: at = column + n
  elif kind == 0x110: at = column - n
  elif kind == 0x120: at = column - n & 15
  elif ctrl == 0x140: at = 15 - column
  elif ctrl == 0x141: at = column ^ 7
  elif kind == 0x150: at = np.full(lanes, n)
  elif kind == 0x160: at = column ^ n
  else: raise Unsupported("DPP control", hex(ctrl))
  valid = (at >= 0) & (at < 16)
  return row + np.where(valid, at, column), valid


def enabled(i: Instruction, lanes: int) -> Value:
  """Lanes that row_mask and bank_mask leave enabled."""
  if "dpp8" in i.fields: return np.ones(lanes, bool)
  lane = np.arange(lanes)
  rows, banks = i.fields["row_mask"], i.fields["bank_mask"]
  return (rows >> (lane >> 4) & 1 == 1) & (banks >> (lane >> 2 & 3) & 1 == 1)
