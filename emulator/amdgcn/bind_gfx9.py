"""Binders of gfx9 alone: its DPP controls, matrix instructions, packed moves, and VGPR indexing by M0.

Register indexing and VSKIP are bits of MODE, which code is bound for: a vector instruction met while one is set is
bound another way (`altered`).
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhw.emulator.amdgcn import bind, matrix_gfx9
from tinyhw.emulator.amdgcn.bind import dword
from tinyhw.emulator.amdgcn.registers import reader, write_vector32
from tinyhw.emulator.simt import Group, Step
from tinyhw.isa.amdgcn import Instruction

Value = Any


# ---- DPP controls (CDNA3 ISA manual, table 93)

def _wave_shift(step: int, around: bool) -> Any:
  """Each lane from the next (step 1) or the one before (-1) of the wave."""
  def control(lane: Value) -> tuple[Value, Value]:
    at = lane + step
    inside = (at >= 0) & (at < len(lane))
    return at % len(lane), np.ones(len(lane), bool) if around else inside
  return control


def _broadcast_row_end(rows: int) -> Any:
  """The last lane of each `rows` rows to the lanes after it; the first lanes have no source."""
  def control(lane: Value) -> tuple[Value, Value]:
    last = (lane & ~(16 * rows - 1)) - 1
    return np.maximum(last, 0), last >= 0
  return control


bind.DPP_OF["gfx9"] = {
  0x130: _wave_shift(1, False), 0x134: _wave_shift(1, True), 0x138: _wave_shift(-1, False),
  0x13C: _wave_shift(-1, True), 0x142: _broadcast_row_end(1), 0x143: _broadcast_row_end(2)}


# ---- packed moves

def pk_mov(i: Instruction, pc: int, mode: int) -> Step:
  """v_pk_mov_b32: the low register from source 0, the high one from source 1; op_sel says from which dword."""
  first, op_sel = i.operands["vdst"].value, i.get("op_sel")
  low, high = (reader(dword(i.operands[f"src{k}"], op_sel >> k & 1), "u32") for k in (0, 1))
  write_low, write_high = write_vector32(first), write_vector32(first + 1)

  def step(group: Group) -> None:
    a, b = low(group), high(group)
    write_low(group, a)
    write_high(group, b)
  return step


bind.SPECIAL_OF["gfx9"] = {**matrix_gfx9.BINDERS, "v_pk_mov_b32": pk_mov}
