"""RDNA3.5: gfx1151 (Strix Halo), with the larger file of vector registers.

Sources: as gfx1100's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.arch.gfx1150 import GFX1150

GFX1151: Final = replace(
  GFX1150, name="gfx1151", gfx_target_version=110501, elf_machine=0x4A, cu_count=40, card="Radeon 8060S",
  vgpr_granule=GFX1100.vgpr_granule, simd_vgprs=GFX1100.simd_vgprs)
