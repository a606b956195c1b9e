"""Exchanges of rows between two registers, which gfx950 has (CDNA4 ISA manual, V_PERMLANE16_SWAP_B32 and the next)."""
from __future__ import annotations

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds, unsupported
from tinyhw.emulator.amdgcn.registers import vector32
from tinyhw.emulator.simt import Group, Step, full
from tinyhw.emulator.values.ops import U32
from tinyhw.isa.amdgcn import Instruction


@binds("v_permlane16_swap_b32", "v_permlane32_swap_b32", isa="gfx950")
def swap_rows(i: Instruction, pc: int, mode: int) -> Step:
  """Lanes of the destination whose bit 16 (32) is set change places with those of the source without it.

  All lanes take part where all are active. The manual does not say what one gets from a lane that is not, nor what
  BOUND_CTRL and FI make of it: that is refused.
  """
  distance = 16 if "16" in i.mnemonic else 32
  first, second = i.operands["vdst"].value, i.operands["src0"].value
  one, other = vector32(first, U32), vector32(second, U32)

  def step(group: Group) -> None:
    if group.mask is not None: raise unsupported(i, pc, "with lanes that are not active")
    a, b = full(group, one(group)), full(group, other(group))
    lane = np.arange(group.cohort.lanes)
    upper = (lane & distance) != 0
    group.v[first] = np.where(upper, b[:, lane ^ distance], a)
    group.v[second] = np.where(upper, b, a[:, lane ^ distance])
  return step
