"""How many vector registers the waves of a dispatch have (LLVM AMDGPUUsage; RDNA4 ISA manual, section 3.3.3)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn.fields import ACCUM_OFFSET, VGPRS, program_field
from tinyhw.isa.amdgcn.codes import AGPR0

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.emulator.amdgcn.launch import Dispatch

SIZES: Final = (16, 32)  # registers of a block, where waves allocate registers by blocks


def first_block(arch: Arch, d: Dispatch, lanes: int) -> int:
  """With how many registers waves begin that allocate more as they run; 0 for a dispatch whose waves do not.

  Raises InvalidArgument where the chip could not run the dispatch.
  """
  if not program_field(arch.isa, "RSRC2", "DYNAMIC_VGPR", d.rsrc2): return 0
  if lanes != 32: raise InvalidArgument("dynamic vector registers are for waves of 32 lanes")
  if d.vgpr_block not in SIZES: raise InvalidArgument(f"a block of {d.vgpr_block} vector registers",
                                                      hint="SQ_DYN_VGPR.BLOCK_SIZE is 16 or 32")
  return d.vgpr_block


def numbers(arch: Arch, d: Dispatch, lanes: int) -> int:
  """How many numbers a wave's registers have when it starts: with accumulation registers, from 256, those before too.

  rsrc3.ACCUM_OFFSET says where accumulation registers start in a wave's file, in units of 4. Numbers between the last
  other register and 256 exist in vain.
  """
  if dynamic := first_block(arch, d, lanes): return dynamic
  total, first = (VGPRS.of(d.rsrc1) + 1) * arch.vgpr_unit[lanes], _before_accumulation(d)
  return AGPR0 + total - first if arch.accumulation and total > first else total


def allocated(d: Dispatch, count: int) -> tuple[int, int]:
  """(vector registers, accumulation registers) of a wave whose registers have that many numbers."""
  return (count, 0) if count <= AGPR0 else (_before_accumulation(d), count - AGPR0)


def _before_accumulation(d: Dispatch) -> int: return 4 * ACCUM_OFFSET.of(d.rsrc3) + 4
