"""RDNA3: gfx1102 (Navi 33), with the smaller file of vector registers.

Sources: as gfx1100's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1100 import GFX1100

GFX1102: Final = replace(
  GFX1100, name="gfx1102", gfx_target_version=110002, elf_machine=0x47, cu_count=32, card="Radeon RX 7600",
  vgpr_granule={32: 16, 64: 8}, simd_vgprs={32: 1024, 64: 512})
