"""RDNA4: gfx1200 (Navi 44).

Sources: as gfx1201's.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx1201 import GFX1201

GFX1200: Final = replace(
  GFX1201, name="gfx1200", gfx_target_version=120000, elf_machine=0x48, cu_count=32, card="Radeon RX 9060 XT")
