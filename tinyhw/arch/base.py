"""What a GPU generation is: a frozen record of names, sizes and tables. Code asks it, never the number of the chip."""
from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType


@dataclass(frozen=True)
class Arch:
  """An AMD GPU as programs see it. Sizes are in bytes unless a name says otherwise.

  `gfx_target_version` is KFD's topology property (major * 10000 + minor * 100 + stepping), `elf_machine` the
  EF_AMDGPU_MACH value of its code objects, `isa` the name of its instruction table (autogen/amdgcn_<isa>.py),
  `pm4`, `sdma` and `registers` the names of its packet and register tables.
  """
  name: str
  gfx_target_version: int
  elf_machine: int
  isa: str
  pm4: str
  sdma: str
  registers: str
  wave_sizes: tuple[int, ...]
  lds_per_workgroup: int
  lds_granule: int
  workgroup_limit: int
  sgprs: int
  vgprs: int
  vgpr_granule: dict[int, int]
  scratch_granule: int
  cu_count: int
  simd_per_cu: int
  waves_per_simd: int
  simd_vgprs: Mapping[int, int]  # registers of a SIMD's file for each lane, by wave size
  # The upper halves of flat addresses that reach LDS and scratch (KFD: MAKE_LDS_APP_BASE_V9, MAKE_SCRATCH_APP_BASE_V9).
  shared_aperture: int = 0x1 << 48
  private_aperture: int = 0x2 << 48
  # Whether a wave finds its workgroup's ids in TTMP9 and TTMP7 (LLVM AMDGPUUsage: architected SGPRs), not in SGPRs
  # behind the user data.
  ids_in_ttmp: bool = False
  # How many vector registers COMPUTE_PGM_RSRC1's count stands for, by wave size (LLVM AMDGPUUsage).
  vgpr_unit: Mapping[int, int] = field(default_factory=lambda: {32: 8, 64: 4})
  # Whether a wave finds its scratch in SGPRs, as user data and the offset of its own behind the workgroup's ids
  # (AMDGPUUsage, "Flat Scratch": not architected, absolute), instead of in a register that hardware sets.
  scratch_in_sgprs: bool = False
  gds_size: int = 0  # bytes of global data share
  # The name of its instruction table where it has instructions that `isa`'s first processors lack.
  instructions: str = ""
  # Whether the command processor puts kernel arguments in SGPRs before a wave starts (descriptor: KERNARG_PRELOAD).
  kernarg_preload: bool = False
  # Features that cards of this processor can have on or off, and how a card has them (AMDGPUUsage, "Target ID").
  features: Mapping[str, bool] = field(default_factory=dict)
  accumulation: bool = False  # the second half of `vgprs` is for accumulation registers, numbered from 256
  # What the waves on a chip share; with `cu_count`, `simd_per_cu` and `waves_per_simd` it says how many workgroups are
  # resident at once (emulator/amdgcn/occupancy.py). 0 SGPRs: as many as its waves can use. Compute units come in
  # pairs (WGPs), which share their LDS, where `cus_per_wgp` is 2.
  simd_sgprs: int = 0
  sgpr_granule: int = 16
  lds_per_cu: int = 64 * 1024
  cus_per_wgp: int = 2
  # Whether waves have to start privileged (COMPUTE_PGM_RSRC1.PRIV) for the kernel driver to be able to save them: it
  # maps queues of GC 11.0.0 to 11.0.3 with traps off, and a context save is a trap (Linux 6.12 kfd_debug.h,
  # kfd_dbg_has_cwsr_workaround; kfd_device_queue_manager.c, trap_en; cwsr_trap_handler_gfx10.asm, SW_SA_TRAP).
  saved_privileged: bool = False
  # Whether COMPUTE_TMPRING_SIZE.WAVES counts the waves of a shader engine; before gfx11 it counts those of the core.
  scratch_by_engine: bool = True
  # Whether a queue that comes back to its engine has its COMPUTE_PGM_RSRC3: gfx9's descriptor names no dword for it.
  rsrc3_kept: bool = True
  card: str = ""  # the card whose number of compute units `cu_count` is

  @property
  def wave32(self) -> bool:
    """Whether dispatches say how wide their waves are (COMPUTE_DISPATCH_INITIATOR.CS_W32_EN)."""
    return len(self.wave_sizes) > 1

  @property
  def gc(self) -> ModuleType:
    """The declarations of its graphics core's registers, imported now."""
    return _declared(self.registers)

  @property
  def packets(self) -> ModuleType:
    """The declarations of its compute queues' PM4 packets, imported now."""
    return _declared(f"pm4_{self.pm4}")

  @property
  def copies(self) -> ModuleType:
    """The declarations of its copy engines' packets, imported now."""
    return _declared(f"sdma_{self.sdma}")

  @property
  def table(self) -> str:
    """The name of its instruction table; names, registers and meanings go by `isa`."""
    return self.instructions or self.isa

  @property
  def version(self) -> tuple[int, int, int]:
    """(major, minor, stepping)."""
    v = self.gfx_target_version
    return v // 10000, v // 100 % 100, v % 100


@cache
def _declared(name: str) -> ModuleType: return importlib.import_module(f"tinyhw.autogen.{name}")
