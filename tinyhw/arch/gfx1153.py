"""RDNA3.5: gfx1153 (Krackan Point 2), with the smaller file of vector registers.

Sources: as gfx1100's; LLVM 22 for its name in ELF files.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1150 import GFX1150

GFX1153: Final = replace(
  GFX1150, name="gfx1153", gfx_target_version=110503, elf_machine=0x58, cu_count=2, card="Radeon 820M",
  pm4="", sdma="", registers="")
