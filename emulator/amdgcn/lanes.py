"""Binders of instructions that read, write or exchange single lanes, or count them (RDNA3 ISA manual, section 16).

Lanes have numbers here, so that these are no pure functions of a lane's own values.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.registers import by_wave, column, reader, vector32, write_scalar32, writer
from tinyhw.emulator.simt import Group, Step, full, need_lanes
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction


def _first_lane(group: Group) -> Value:
  """Index of the lowest active lane of each wave; lane 0 where none is."""
  return np.zeros(group.size, np.intp) if group.mask is None else need_lanes(group).argmax(axis=1)


def _pick(group: Group, x: Value, lane: Value) -> Value:
  """One lane of each wave as () or [waves, 1]."""
  if x.ndim == 0: return x
  if x.shape[1] == 1: return x[0, 0] if x.shape[0] == 1 else x
  return column(full(group, x)[np.arange(group.size), by_wave(group, lane)])


@binds("v_readfirstlane_b32")
def readfirstlane(i: Instruction, pc: int, mode: int) -> Step:
  """v_readfirstlane_b32: the lowest active lane, or lane 0 where none is."""
  read, write = reader(i.operands["src0"], "u32"), write_scalar32(i.operands["vdst"].value)
  return lambda group: write(group, _pick(group, read(group), _first_lane(group)))


@binds("v_readlane_b32")
def readlane(i: Instruction, pc: int, mode: int) -> Step:
  """v_readlane_b32: a lane by its number, active or not."""
  read, lane = reader(i.operands["src0"], "u32"), reader(i.operands["src1"], "u32")
  write = write_scalar32(i.operands["vdst"].value)
  return lambda group: write(group, _pick(group, read(group), lane(group) & np.uint32(group.cohort.lanes - 1)))


@binds("v_writelane_b32")
def writelane(i: Instruction, pc: int, mode: int) -> Step:
  """v_writelane_b32: into a lane by its number, active or not."""
  value, lane, n = reader(i.operands["src0"], "u32"), reader(i.operands["src1"], "u32"), i.operands["vdst"].value

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    here = np.arange(lanes)[None, :] == (lane(group) & np.uint32(lanes - 1))
    group.v[n] = np.where(here, value(group), group.v[n].view(U32))
  return step


def fetched(i: Instruction, index_of: Callable[[Group], Value]) -> Step:
  """Each lane's source 0 comes from the lane that `index_of` names (one for all waves, or [waves, lanes]).

  op_sel says what a lane gives that is not active: FI its value all the same, else BOUND_CTRL 0, else the old result.
  """
  read, write = reader(i.operands["src0"], "u32"), writer(i.operands["vdst"], "u32")
  old = vector32(i.operands["vdst"].value, U32)
  fetch_inactive, bound = i.get("op_sel") & 1, i.get("op_sel") >> 1 & 1

  def step(group: Group) -> None:
    index = np.broadcast_to(index_of(group), (group.size, group.cohort.lanes))
    x = np.take_along_axis(full(group, read(group)), index, axis=1)
    if group.mask is not None and not fetch_inactive:
      valid = np.take_along_axis(need_lanes(group), index, axis=1)
      x = np.where(valid, x, np.uint32(0) if bound else old(group))
    write(group, x)
  return step


@binds("v_permlane16_b32", "v_permlanex16_b32")
def permlane(i: Instruction, pc: int, mode: int) -> Step:
  """v_permlane16 and v_permlanex16: any lane of the same row, or of the other row of the pair."""
  low, high = (reader(i.operands[n], "u32") for n in ("src1", "src2"))
  other = 16 if i.mnemonic == "v_permlanex16_b32" else 0

  def index(group: Group) -> Value:
    lane = np.arange(group.cohort.lanes)
    place = lane & 15
    select = np.where(place < 8, low(group), high(group)) >> (4 * (place & 7)).astype(U32) & np.uint32(15)
    return (lane & ~15 ^ other) + select.astype(np.intp)
  return fetched(i, index)


@binds("v_permlane64_b32")
def permlane64(i: Instruction, pc: int, mode: int) -> Step:
  """Swap the halves of a wave of 64 lanes; a wave of 32 does nothing (RDNA3 ISA manual, V_PERMLANE64_B32)."""
  read, write = reader(i.operands["src0"], "u32"), writer(i.operands["vdst"], "u32")

  def step(group: Group) -> None:
    lanes = group.cohort.lanes
    if lanes == 64: write(group, full(group, read(group))[:, np.arange(lanes) ^ 32])
  return step


@binds("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32")
def mbcnt(i: Instruction, pc: int, mode: int) -> Step:
  """Count mask bits of the lanes below this one: the low or the high 32 lanes."""
  mask, add = reader(i.operands["src0"], "u32"), reader(i.operands["src1"], "u32")
  write = writer(i.operands["vdst"], "u32")
  high = i.mnemonic.startswith("v_mbcnt_hi")

  def step(group: Group) -> None:
    lane = np.arange(group.cohort.lanes)[None, :] - (32 if high else 0)
    below = ((np.uint64(1) << np.clip(lane, 0, 32).astype(np.uint64)) - np.uint64(1)).astype(U32)
    write(group, np.bitwise_count(mask(group) & below).astype(U32) + add(group))
  return step
