"""CDNA2: gfx90a (MI200). Its waves find their scratch memory in registers, and their workgroup's ids in SGPRs.

Sources: LLVM 19 AMDGPUUsage (absolute flat scratch, granules) and ELF.h (EF_AMDGPU_MACH), FeatureISAVersion9_0_A; CDNA2
ISA manual 3.6 and 11 (registers, LDS), CDNA 2 white paper (compute units of a GCD). Its dispatch has the scratch base
that gfx942's has (Linux 6.12, gc_9_4_2_offset.h).
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.gfx942 import GFX942

GFX90A: Final = replace(
  GFX942, name="gfx90a", gfx_target_version=90010, elf_machine=0x3F, instructions="gfx90a", cu_count=104,
  registers="gc_9_4_2", scratch_in_sgprs=True, card="Instinct MI210")
