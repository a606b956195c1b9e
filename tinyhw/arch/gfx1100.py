"""RDNA3: gfx1100 (Navi 31). The other members of the family are this one with other numbers.

Sources: LLVM 19 AMDGPUUsage (EF_AMDGPU_MACH, granules) and its AMDGPU features (Feature1_5xVGPRs: registers of a SIMD),
Linux 6.12 amdkfd (topology; kfd_queue.c: which have the larger register file) and gfx_v11_0.c (gds_size), RDNA3 ISA
manual (limits), AMD's product pages (compute units).
What waves share: LLVM 19 (occupancy that its assembly listings state), RDNA3 ISA manual 2.1.
"""
from __future__ import annotations

from typing import Final

from tinyhw.arch.base import Arch

GFX1100: Final = Arch(
  name="gfx1100", gfx_target_version=110000, elf_machine=0x41, isa="gfx11", pm4="gfx11", sdma="v6",
  registers="gc_11_0_0",
  wave_sizes=(32, 64), lds_per_workgroup=64 * 1024, lds_granule=512, workgroup_limit=1024, sgprs=106, vgprs=256,
  vgpr_granule={32: 24, 64: 12}, scratch_granule=256, cu_count=96, simd_per_cu=2, waves_per_simd=16,
  gds_size=4096, simd_vgprs={32: 1536, 64: 768}, saved_privileged=True, card="Radeon RX 7900 XTX")
