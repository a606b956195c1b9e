"""CDNA3: gfx942 (MI300).

Sources: LLVM 19 AMDGPUUsage and ELF.h (EF_AMDGPU_MACH, granules), Linux 6.12 amdkfd (topology), gfx_v9_4_3.c and
sdma_v4_4_2.c (whose packets are those of soc15d.h and vega10_sdma_pkt_open.h), CDNA3 ISA manual (limits). A wave
has one file of 512 vector registers; rsrc3.ACCUM_OFFSET says where its accumulation registers start.
"""
from __future__ import annotations

from typing import Final

from tinyhw.arch.base import Arch

GFX942: Final = Arch(
  name="gfx942", gfx_target_version=90402, elf_machine=0x4C, isa="gfx9", pm4="gfx9", sdma="v4",
  registers="gc_9_4_3",
  wave_sizes=(64,), lds_per_workgroup=64 * 1024, lds_granule=512, workgroup_limit=1024, sgprs=102, vgprs=512,
  vgpr_granule={64: 8}, scratch_granule=1024, cu_count=304, simd_per_cu=4, waves_per_simd=8, vgpr_unit={64: 8},
  kernarg_preload=True, features={"sramecc": True, "xnack": False},
  accumulation=True, simd_vgprs={64: 512}, simd_sgprs=800, cus_per_wgp=1, scratch_by_engine=False,
  rsrc3_kept=False, card="Instinct MI300X")
