"""RDNA3: gfx1103 (Phoenix), with the smaller file of vector registers.

Sources: as gfx1100's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1102 import GFX1102

GFX1103: Final = replace(
  GFX1102, name="gfx1103", gfx_target_version=110003, elf_machine=0x44, cu_count=12, card="Radeon 780M")
