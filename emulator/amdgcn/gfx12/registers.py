"""Vector registers that come and go while a wave runs: s_alloc_vgpr (RDNA4 ISA manual, sections 3.3.3 and 16.3).

A dispatch in this mode (COMPUTE_PGM_RSRC2.DYNAMIC_VGPR) begins with one block of registers a wave; a wave asks for up
to eight. The emulator never runs out of them, so that a request within that limit succeeds.
"""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn import hwreg
from tinyhw.emulator.amdgcn.allocation import first_block
from tinyhw.emulator.amdgcn.binders import Ender, ends
from tinyhw.emulator.amdgcn.registers import by_wave, column, reader
from tinyhw.emulator.simt import Group, Next, Split
from tinyhw.isa.amdgcn import Instruction

BLOCKS: Final = 8  # the most that a wave may have


@ends("s_alloc_vgpr", isa="gfx12")
def allocate(i: Instruction, pc: int) -> Ender:
  """s_alloc_vgpr: bits 8 to 0 of the source are rounded up to blocks; SCC says whether the wave has got them.

  Registers are added and taken away at the upper end; new ones hold 0. The first block stays: it is not the wave's
  to give back. In a dispatch without dynamic registers nothing happens, to SCC neither.
  """
  read, after = reader(i.operands["src0"], "u32"), pc + i.size

  def step(group: Group) -> Next:
    cohort = group.cohort
    size = first_block(cohort.arch, cohort.dispatch, cohort.lanes)
    if not size: return after
    hwreg.note(group, "s_alloc_vgpr")
    asked = by_wave(group, read(group)).astype(np.int64) & 0x1FF
    blocks = np.maximum(-(-asked // size), 1)
    granted = blocks <= BLOCKS
    group.scc = column(granted)
    return Split(np.full(group.size, after), vgprs=np.where(granted, blocks * size, len(group.v)))
  return step
