"""CDNA4: gfx950 (MI350), whose compute units have 160 KiB of LDS. It has no matrix products of xf32.

Sources: LLVM 21 (EF_AMDGPU_MACH, FeatureISAVersion9_5_Common), CDNA4 ISA manual 3.7 and 11 (LDS), CDNA 4 white paper
(compute units); Linux (torvalds/linux 1a2f09ae11b4, IP_VERSION(9, 5, 0)): gfx_v9_4_3.c and sdma_v4_4_2.c drive it, with
gfx942's packets and registers.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx942 import GFX942

GFX950: Final = replace(
  GFX942, name="gfx950", gfx_target_version=90500, elf_machine=0x4F, instructions="gfx950",
  lds_per_workgroup=160 * 1024, lds_granule=1280, lds_per_cu=160 * 1024, cu_count=256, card="Instinct MI350X")
