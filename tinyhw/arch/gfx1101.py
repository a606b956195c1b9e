"""RDNA3: gfx1101 (Navi 32).

Sources: as gfx1100's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1100 import GFX1100

GFX1101: Final = replace(
  GFX1100, name="gfx1101", gfx_target_version=110001, elf_machine=0x46, cu_count=60, card="Radeon RX 7800 XT")
