"""Vector registers that come and go while a wave runs: s_alloc_vgpr (RDNA4 ISA manual, sections 3.3.3 and 16.3).

A dispatch in this mode (COMPUTE_PGM_RSRC2.DYNAMIC_VGPR) begins with one block of registers a wave; a wave asks for up
to eight. The emulator never runs out of them, so that a request within that limit succeeds.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn import hwreg
from tinyhw.emulator.amdgcn.binders import Ender, ends
from tinyhw.emulator.amdgcn.fields import program_field
from tinyhw.emulator.amdgcn.registers import by_wave, column, reader
from tinyhw.emulator.simt import Group, Next, Split
from tinyhw.isa.amdgcn import Instruction

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.emulator.amdgcn.launch import Dispatch

Value = Any
BLOCKS: Final = 8  # the most that a wave may have
SIZES: Final = (16, 32)  # registers of a block


def first_block(arch: Arch, d: Dispatch, lanes: int) -> int:
  """With how many vector registers the waves of a dispatch begin in this mode; 0 for a dispatch that is not in it.

  Raises InvalidArgument where the chip could not run the dispatch.
  """
  if not program_field(arch.isa, "RSRC2", "DYNAMIC_VGPR", d.rsrc2): return 0
  if lanes != 32: raise InvalidArgument("dynamic vector registers are for waves of 32 lanes")
  if d.vgpr_block not in SIZES: raise InvalidArgument(f"a block of {d.vgpr_block} vector registers",
                                                      hint="SQ_DYN_VGPR.BLOCK_SIZE is 16 or 32")
  return d.vgpr_block


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
