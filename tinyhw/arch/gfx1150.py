"""RDNA3.5: gfx1150 (Strix Point), with the smaller file of vector registers.

Sources: as gfx1100's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1100 import GFX1100

GFX1150: Final = replace(
  GFX1100, name="gfx1150", gfx_target_version=110500, elf_machine=0x43, cu_count=16, card="Radeon 890M",
  pm4="", sdma="", registers="", instructions="gfx1150",
  vgpr_granule={32: 16, 64: 8}, simd_vgprs={32: 1024, 64: 512}, saved_privileged=False)
