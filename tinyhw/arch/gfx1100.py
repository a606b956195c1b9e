"""RDNA3: gfx1100 (Navi 31) and its family, which share instructions, packets and registers.

Sources: LLVM 19 AMDGPUUsage (EF_AMDGPU_MACH, granules), Linux 6.12 amdkfd (topology) and gfx_v11_0.c (gds_size),
RDNA3 ISA manual (limits). What waves share: LLVM 19 (occupancy that its assembly listings state), RDNA3 ISA manual 2.1.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Final

from tinyhw.arch.base import Arch

GFX1100: Final = Arch(
  name="gfx1100", gfx_target_version=110000, elf_machine=0x41, isa="gfx11", pm4="gfx11", sdma="v6",
  registers="gc_11_0_0",
  wave_sizes=(32, 64), lds_per_workgroup=64 * 1024, lds_granule=512, workgroup_limit=1024, sgprs=106, vgprs=256,
  vgpr_granule={32: 24, 64: 12}, scratch_granule=256, cu_count=96, simd_per_cu=2, waves_per_simd=16,
  gds_size=4096, simd_vgprs={32: 1536, 64: 768}, card="Radeon RX 7900 XTX")
GFX1101: Final = replace(GFX1100, name="gfx1101", gfx_target_version=110001, elf_machine=0x46, cu_count=60,
                         card="Radeon RX 7800 XT")
GFX1102: Final = replace(GFX1100, name="gfx1102", gfx_target_version=110002, elf_machine=0x47, cu_count=32,
                         vgpr_granule={32: 16, 64: 8}, simd_vgprs={32: 1024, 64: 512}, card="Radeon RX 7600")
