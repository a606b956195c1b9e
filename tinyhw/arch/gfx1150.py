"""RDNA3.5: gfx1150 (Strix Point), with the smaller file of vector registers.

Sources: as gfx1100's; Linux 6.12 gfx_v11_0.c and sdma_v6_0.c, which drive it too, have gfx11's packets.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1100 import GFX1100

GFX1150: Final = replace(
  GFX1100, name="gfx1150", gfx_target_version=110500, elf_machine=0x43, cu_count=16, card="Radeon 890M",
  registers="gc_11_5_0", instructions="gfx1150",
  vgpr_granule={32: 16, 64: 8}, simd_vgprs={32: 1024, 64: 512}, saved_privileged=False)
