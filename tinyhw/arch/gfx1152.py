"""RDNA3.5: gfx1152 (Krackan Point), with the smaller file of vector registers.

Sources: as gfx1100's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1150 import GFX1150

GFX1152: Final = replace(
  GFX1150, name="gfx1152", gfx_target_version=110502, elf_machine=0x55, cu_count=8, card="Radeon 860M",
  pm4="", sdma="", registers="")
