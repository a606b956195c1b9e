"""RDNA4: gfx1201 (Navi 48).

Sources: LLVM 19 AMDGPUUsage (EF_AMDGPU_MACH, granules), Linux 6.12 amdkfd (topology), gfx_v12_0.c and sdma_v7_0.c
(which includes SDMA v6's packets), RDNA4 ISA manual (limits), LLVM 19 (occupancy that its assembly listings state).
"""
from __future__ import annotations

from typing import Final

from tinyhw.arch.base import Arch

GFX1201: Final = Arch(
  name="gfx1201", gfx_target_version=120001, elf_machine=0x4E, isa="gfx12", pm4="gfx12", sdma="v6",
  registers="gc_12_0_0",
  wave_sizes=(32, 64), lds_per_workgroup=64 * 1024, lds_granule=512, workgroup_limit=1024, sgprs=106, vgprs=256,
  vgpr_granule={32: 24, 64: 12}, scratch_granule=256, cu_count=64, simd_per_cu=2, waves_per_simd=16,
  ids_in_ttmp=True, simd_vgprs={32: 1536, 64: 768}, card="Radeon RX 9070 XT")
