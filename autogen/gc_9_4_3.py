"""Registers of the gfx9.4.3 graphics core (GC 9.4.3): one class a register, fields as the vendor names them.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_9_4_3_offset.h sha256 dd6b804a3c5ff085201d26a21ad7eee181b4a77c34467936785f875f6df173dd
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_9_4_3_sh_mask.h sha256 e5b931d70ecd47c6506ba1b5533dccb652105b3521173aebd940c8bca77fa828
    drivers/gpu/drm/amd/include/aldebaran_ip_offset.h sha256 c24cd4bdd90de4ab62eda2e01207327d34172dab48660ba0f67c16a8ba4be5c0
  GPUOpen-Drivers/pal commit 42e29f4d3d528c6a59c2db77fb6d70127fb9ffab (2024-03-21), licence MIT
    pal-42e29f4d/src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_offset.h sha256 ed04229b65217e07a4a5497fa62b6e2f300118b44068a24d4b5fa8a120eae0fa
Generator: tinyhw gen gc_9_4_3

Offsets are in dwords, with the segment's base. 53 of 157 stand at the same place in PAL; the others are in the
kernel's headers only. All fields default to 0. What an earlier class says letter for letter is imported.
"""
from __future__ import annotations

from tinyhw.autogen.gc_11_0_0 import (
  COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z, COMPUTE_DISPATCH_END, COMPUTE_DISPATCH_ID,
  COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_PKT_ADDR_LO, COMPUTE_DISPATCH_SCRATCH_BASE_HI,
  COMPUTE_DISPATCH_SCRATCH_BASE_LO, COMPUTE_NOWHERE, COMPUTE_NUM_THREAD_X, COMPUTE_NUM_THREAD_Y,
  COMPUTE_NUM_THREAD_Z, COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_HI, COMPUTE_PGM_LO, COMPUTE_PIPELINESTAT_ENABLE,
  COMPUTE_RESTART_X, COMPUTE_RESTART_Y, COMPUTE_RESTART_Z, COMPUTE_START_X, COMPUTE_START_Y, COMPUTE_START_Z,
  COMPUTE_THREADGROUP_ID, COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1,
  COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11, COMPUTE_USER_DATA_12, COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14,
  COMPUTE_USER_DATA_15, COMPUTE_USER_DATA_2, COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5,
  COMPUTE_USER_DATA_6, COMPUTE_USER_DATA_7, COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_VMID,
  RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB, RLC_GPU_CLOCK_COUNT_LSB_2, RLC_GPU_CLOCK_COUNT_MSB,
  RLC_GPU_CLOCK_COUNT_MSB_2,
)
from tinyhw.core.layout import Register, bits

GC_BASE = (0x2000, 0xa000, 0x2402c00, 0x0, 0x0, 0x0)  # bases of the block's segments, in dwords


class GRBM_STATUS2(Register, offset=0x2002):
  ME0PIPE1_CMDFIFO_AVAIL: int = bits(0, 3, 0, default=0)
  ME0PIPE1_CF_RQ_PENDING: int = bits(0, 4, 4, default=0)
  ME0PIPE1_PF_RQ_PENDING: int = bits(0, 5, 5, default=0)
  ME1PIPE0_RQ_PENDING: int = bits(0, 6, 6, default=0)
  ME1PIPE1_RQ_PENDING: int = bits(0, 7, 7, default=0)
  ME1PIPE2_RQ_PENDING: int = bits(0, 8, 8, default=0)
  ME1PIPE3_RQ_PENDING: int = bits(0, 9, 9, default=0)
  ME2PIPE0_RQ_PENDING: int = bits(0, 10, 10, default=0)
  ME2PIPE1_RQ_PENDING: int = bits(0, 11, 11, default=0)
  ME2PIPE2_RQ_PENDING: int = bits(0, 12, 12, default=0)
  ME2PIPE3_RQ_PENDING: int = bits(0, 13, 13, default=0)
  RLC_RQ_PENDING: int = bits(0, 14, 14, default=0)
  UTCL2_BUSY: int = bits(0, 15, 15, default=0)
  EA_BUSY: int = bits(0, 16, 16, default=0)
  RMI_BUSY: int = bits(0, 17, 17, default=0)
  UTCL2_RQ_PENDING: int = bits(0, 18, 18, default=0)
  CPF_RQ_PENDING: int = bits(0, 19, 19, default=0)
  EA_LINK_BUSY: int = bits(0, 20, 20, default=0)
  CANE_BUSY: int = bits(0, 21, 21, default=0)
  CANE_LINK_BUSY: int = bits(0, 22, 22, default=0)
  RLC_BUSY: int = bits(0, 24, 24, default=0)
  TC_BUSY: int = bits(0, 25, 25, default=0)
  TCC_CC_RESIDENT: int = bits(0, 26, 26, default=0)
  CPF_BUSY: int = bits(0, 28, 28, default=0)
  CPC_BUSY: int = bits(0, 29, 29, default=0)
  CPG_BUSY: int = bits(0, 30, 30, default=0)
  CPAXI_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS(Register, offset=0x2004):
  ME0PIPE0_CMDFIFO_AVAIL: int = bits(0, 3, 0, default=0)
  RSMU_RQ_PENDING: int = bits(0, 5, 5, default=0)
  ME0PIPE0_CF_RQ_PENDING: int = bits(0, 7, 7, default=0)
  ME0PIPE0_PF_RQ_PENDING: int = bits(0, 8, 8, default=0)
  GDS_DMA_RQ_PENDING: int = bits(0, 9, 9, default=0)
  DB_CLEAN: int = bits(0, 12, 12, default=0)
  CB_CLEAN: int = bits(0, 13, 13, default=0)
  TA_BUSY: int = bits(0, 14, 14, default=0)
  GDS_BUSY: int = bits(0, 15, 15, default=0)
  WD_BUSY_NO_DMA: int = bits(0, 16, 16, default=0)
  VGT_BUSY: int = bits(0, 17, 17, default=0)
  IA_BUSY_NO_DMA: int = bits(0, 18, 18, default=0)
  IA_BUSY: int = bits(0, 19, 19, default=0)
  SX_BUSY: int = bits(0, 20, 20, default=0)
  WD_BUSY: int = bits(0, 21, 21, default=0)
  SPI_BUSY: int = bits(0, 22, 22, default=0)
  BCI_BUSY: int = bits(0, 23, 23, default=0)
  SC_BUSY: int = bits(0, 24, 24, default=0)
  PA_BUSY: int = bits(0, 25, 25, default=0)
  DB_BUSY: int = bits(0, 26, 26, default=0)
  CP_COHERENCY_BUSY: int = bits(0, 28, 28, default=0)
  CP_BUSY: int = bits(0, 29, 29, default=0)
  CB_BUSY: int = bits(0, 30, 30, default=0)
  GUI_ACTIVE: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE0(Register, offset=0x2005):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  VGT_BUSY: int = bits(0, 23, 23, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE1(Register, offset=0x2006):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  VGT_BUSY: int = bits(0, 23, 23, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE2(Register, offset=0x200e):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  VGT_BUSY: int = bits(0, 23, 23, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE3(Register, offset=0x200f):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  VGT_BUSY: int = bits(0, 23, 23, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class CP_CPC_STATUS(Register, offset=0x2084):
  MEC1_BUSY: int = bits(0, 0, 0, default=0)
  MEC2_BUSY: int = bits(0, 1, 1, default=0)
  DC0_BUSY: int = bits(0, 2, 2, default=0)
  DC1_BUSY: int = bits(0, 3, 3, default=0)
  RCIU1_BUSY: int = bits(0, 4, 4, default=0)
  RCIU2_BUSY: int = bits(0, 5, 5, default=0)
  ROQ1_BUSY: int = bits(0, 6, 6, default=0)
  ROQ2_BUSY: int = bits(0, 7, 7, default=0)
  TCIU_BUSY: int = bits(0, 10, 10, default=0)
  SCRATCH_RAM_BUSY: int = bits(0, 11, 11, default=0)
  QU_BUSY: int = bits(0, 12, 12, default=0)
  UTCL2IU_BUSY: int = bits(0, 13, 13, default=0)
  SAVE_RESTORE_BUSY: int = bits(0, 14, 14, default=0)
  CPG_CPC_BUSY: int = bits(0, 29, 29, default=0)
  CPF_CPC_BUSY: int = bits(0, 30, 30, default=0)
  CPC_BUSY: int = bits(0, 31, 31, default=0)


class CP_MEC_CNTL(Register, offset=0x208d):
  MEC_INVALIDATE_ICACHE: int = bits(0, 4, 4, default=0)
  MEC_ME1_PIPE0_RESET: int = bits(0, 16, 16, default=0)
  MEC_ME1_PIPE1_RESET: int = bits(0, 17, 17, default=0)
  MEC_ME1_PIPE2_RESET: int = bits(0, 18, 18, default=0)
  MEC_ME1_PIPE3_RESET: int = bits(0, 19, 19, default=0)
  MEC_ME2_PIPE0_RESET: int = bits(0, 20, 20, default=0)
  MEC_ME2_PIPE1_RESET: int = bits(0, 21, 21, default=0)
  MEC_ME2_HALT: int = bits(0, 28, 28, default=0)
  MEC_ME2_STEP: int = bits(0, 29, 29, default=0)
  MEC_ME1_HALT: int = bits(0, 30, 30, default=0)
  MEC_ME1_STEP: int = bits(0, 31, 31, default=0)


class SQ_CONFIG(Register, offset=0x2300):
  DISABLE_BARRIER_WAITCNT: int = bits(0, 0, 0, default=0)
  DISABLE_REPEATER_FGCG_CLOCK_GATING: int = bits(0, 1, 1, default=0)
  DISABLE_SPIPRIO_OVER_USERPRIO: int = bits(0, 2, 2, default=0)
  OVERRIDE_SP_MAI_ALU_BUSY: int = bits(0, 3, 3, default=0)
  DISABLE_RAM_CLOCK_GATING: int = bits(0, 4, 4, default=0)
  DISABLE_MAI_CO_EXEC: int = bits(0, 5, 5, default=0)
  OVERRIDE_MAI_ALU_BUSY: int = bits(0, 6, 6, default=0)
  OVERRIDE_ALU_BUSY: int = bits(0, 7, 7, default=0)
  DEBUG_EN: int = bits(0, 8, 8, default=0)
  DEBUG_SINGLE_MEMOP: int = bits(0, 9, 9, default=0)
  DEBUG_ONE_INST_CLAUSE: int = bits(0, 10, 10, default=0)
  OVERRIDE_LDS_IDX_BUSY: int = bits(0, 11, 11, default=0)
  EARLY_TA_DONE_DISABLE: int = bits(0, 12, 12, default=0)
  DUA_FLAT_LOCK_ENABLE: int = bits(0, 13, 13, default=0)
  DUA_LDS_BYPASS_DISABLE: int = bits(0, 14, 14, default=0)
  DUA_FLAT_LDS_PINGPONG_DISABLE: int = bits(0, 15, 15, default=0)
  DISABLE_VMEM_SOFT_CLAUSE: int = bits(0, 16, 16, default=0)
  DISABLE_SMEM_SOFT_CLAUSE: int = bits(0, 17, 17, default=0)
  ENABLE_HIPRIO_ON_EXP_RDY_VS: int = bits(0, 18, 18, default=0)
  PRIO_VAL_ON_EXP_RDY_VS: int = bits(0, 20, 19, default=0)
  REPLAY_SLEEP_CNT: int = bits(0, 27, 21, default=0)
  DISABLE_SP_VGPR_WRITE_SKIP: int = bits(0, 28, 28, default=0)
  DISABLE_SP_REDUNDANT_THREAD_GATING: int = bits(0, 29, 29, default=0)
  DISABLE_FLAT_SOFT_CLAUSE: int = bits(0, 30, 30, default=0)
  DISABLE_MIMG_SOFT_CLAUSE: int = bits(0, 31, 31, default=0)


class SH_MEM_BASES(Register, offset=0x230a):
  PRIVATE_BASE: int = bits(0, 15, 0, default=0)
  SHARED_BASE: int = bits(0, 31, 16, default=0)


class SH_MEM_CONFIG(Register, offset=0x230d):
  ADDRESS_MODE: int = bits(0, 0, 0, default=0)
  ALIGNMENT_MODE: int = bits(0, 4, 3, default=0)
  F8_MODE: int = bits(0, 8, 8, default=0)
  RETRY_DISABLE: int = bits(0, 12, 12, default=0)
  PRIVATE_NV: int = bits(0, 13, 13, default=0)


class SQ_SHADER_TBA_LO(Register, offset=0x231c):
  ADDR_LO: int = bits(0, 31, 0, default=0)


class SQ_SHADER_TBA_HI(Register, offset=0x231d):
  ADDR_HI: int = bits(0, 7, 0, default=0)


class SQ_SHADER_TMA_LO(Register, offset=0x231e):
  ADDR_LO: int = bits(0, 31, 0, default=0)


class SQ_SHADER_TMA_HI(Register, offset=0x231f):
  ADDR_HI: int = bits(0, 7, 0, default=0)


class COMPUTE_DISPATCH_INITIATOR(Register, offset=0x2e00):
  COMPUTE_SHADER_EN: int = bits(0, 0, 0, default=0)
  PARTIAL_TG_EN: int = bits(0, 1, 1, default=0)
  FORCE_START_AT_000: int = bits(0, 2, 2, default=0)
  ORDERED_APPEND_ENBL: int = bits(0, 3, 3, default=0)
  ORDERED_APPEND_MODE: int = bits(0, 4, 4, default=0)
  USE_THREAD_DIMENSIONS: int = bits(0, 5, 5, default=0)
  ORDER_MODE: int = bits(0, 6, 6, default=0)
  SCALAR_L1_INV_VOL: int = bits(0, 10, 10, default=0)
  VECTOR_L1_INV_VOL: int = bits(0, 11, 11, default=0)
  RESERVED: int = bits(0, 12, 12, default=0)
  RESTORE: int = bits(0, 14, 14, default=0)


class COMPUTE_PGM_RSRC1(Register, offset=0x2e12):
  VGPRS: int = bits(0, 5, 0, default=0)
  SGPRS: int = bits(0, 9, 6, default=0)
  PRIORITY: int = bits(0, 11, 10, default=0)
  FLOAT_MODE: int = bits(0, 19, 12, default=0)
  PRIV: int = bits(0, 20, 20, default=0)
  DX10_CLAMP: int = bits(0, 21, 21, default=0)
  DEBUG_MODE: int = bits(0, 22, 22, default=0)
  IEEE_MODE: int = bits(0, 23, 23, default=0)
  BULKY: int = bits(0, 24, 24, default=0)
  CDBG_USER: int = bits(0, 25, 25, default=0)
  FP16_OVFL: int = bits(0, 26, 26, default=0)


class COMPUTE_PGM_RSRC2(Register, offset=0x2e13):
  SCRATCH_EN: int = bits(0, 0, 0, default=0)
  USER_SGPR: int = bits(0, 5, 1, default=0)
  TRAP_PRESENT: int = bits(0, 6, 6, default=0)
  TGID_X_EN: int = bits(0, 7, 7, default=0)
  TGID_Y_EN: int = bits(0, 8, 8, default=0)
  TGID_Z_EN: int = bits(0, 9, 9, default=0)
  TG_SIZE_EN: int = bits(0, 10, 10, default=0)
  TIDIG_COMP_CNT: int = bits(0, 12, 11, default=0)
  EXCP_EN_MSB: int = bits(0, 14, 13, default=0)
  LDS_SIZE: int = bits(0, 23, 15, default=0)
  EXCP_EN: int = bits(0, 30, 24, default=0)
  SKIP_USGPR0: int = bits(0, 31, 31, default=0)


class COMPUTE_RESOURCE_LIMITS(Register, offset=0x2e15):
  WAVES_PER_SH: int = bits(0, 9, 0, default=0)
  TG_PER_CU: int = bits(0, 15, 12, default=0)
  LOCK_THRESHOLD: int = bits(0, 21, 16, default=0)
  SIMD_DEST_CNTL: int = bits(0, 22, 22, default=0)
  FORCE_SIMD_DIST: int = bits(0, 23, 23, default=0)
  CU_GROUP_COUNT: int = bits(0, 26, 24, default=0)
  SIMD_DISABLE: int = bits(0, 30, 27, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE0(Register, offset=0x2e16):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE1(Register, offset=0x2e17):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_TMPRING_SIZE(Register, offset=0x2e18):
  WAVES: int = bits(0, 11, 0, default=0)
  WAVESIZE: int = bits(0, 24, 12, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE2(Register, offset=0x2e19):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE3(Register, offset=0x2e1a):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_MISC_RESERVED(Register, offset=0x2e1f):
  SEND_SEID: int = bits(0, 1, 0, default=0)
  WAVE_ID_BASE: int = bits(0, 16, 5, default=0)


class COMPUTE_RELAUNCH(Register, offset=0x2e22):
  PAYLOAD: int = bits(0, 29, 0, default=0)
  IS_EVENT: int = bits(0, 30, 30, default=0)
  IS_STATE: int = bits(0, 31, 31, default=0)


class COMPUTE_WAVE_RESTORE_ADDR_LO(Register, offset=0x2e23):
  ADDR: int = bits(0, 31, 0, default=0)


class COMPUTE_WAVE_RESTORE_ADDR_HI(Register, offset=0x2e24):
  ADDR: int = bits(0, 15, 0, default=0)


class COMPUTE_TG_CHUNK_SIZE(Register, offset=0x2e27):
  TG_CHUNK_SIZE: int = bits(0, 15, 0, default=0)


class COMPUTE_SHADER_CHKSUM(Register, offset=0x2e2c):
  CHECKSUM: int = bits(0, 31, 0, default=0)


class COMPUTE_PGM_RSRC3(Register, offset=0x2e2d):
  ACCUM_OFFSET: int = bits(0, 5, 0, default=0)
  TRAP_ON_START: int = bits(0, 10, 10, default=0)
  TRAP_ON_END: int = bits(0, 11, 11, default=0)
  TG_SPLIT: int = bits(0, 16, 16, default=0)


class SPI_GDBG_WAVE_CNTL(Register, offset=0x31d1):
  STALL_RA: int = bits(0, 0, 0, default=0)


class SPI_GDBG_TRAP_CONFIG(Register, offset=0x31d2):
  PIPE0_EN: int = bits(0, 7, 0, default=0)
  PIPE1_EN: int = bits(0, 15, 8, default=0)
  PIPE2_EN: int = bits(0, 23, 16, default=0)
  PIPE3_EN: int = bits(0, 31, 24, default=0)


class SPI_GDBG_PER_VMID_CNTL(Register, offset=0x31d3):
  STALL_VMID: int = bits(0, 0, 0, default=0)
  LAUNCH_MODE: int = bits(0, 2, 1, default=0)
  TRAP_EN: int = bits(0, 3, 3, default=0)
  EXCP_EN: int = bits(0, 12, 4, default=0)
  EXCP_REPLACE: int = bits(0, 13, 13, default=0)
  TRAP_ON_START: int = bits(0, 14, 14, default=0)
  TRAP_ON_END: int = bits(0, 15, 15, default=0)


class SPI_GDBG_WAVE_CNTL3(Register, offset=0x31d5):
  STALL_PS: int = bits(0, 0, 0, default=0)
  STALL_VS: int = bits(0, 1, 1, default=0)
  STALL_GS: int = bits(0, 2, 2, default=0)
  STALL_HS: int = bits(0, 3, 3, default=0)
  STALL_CSG: int = bits(0, 4, 4, default=0)
  STALL_CS0: int = bits(0, 5, 5, default=0)
  STALL_CS1: int = bits(0, 6, 6, default=0)
  STALL_CS2: int = bits(0, 7, 7, default=0)
  STALL_CS3: int = bits(0, 8, 8, default=0)
  STALL_CS4: int = bits(0, 9, 9, default=0)
  STALL_CS5: int = bits(0, 10, 10, default=0)
  STALL_CS6: int = bits(0, 11, 11, default=0)
  STALL_CS7: int = bits(0, 12, 12, default=0)
  STALL_DURATION: int = bits(0, 27, 13, default=0)
  STALL_MULT: int = bits(0, 28, 28, default=0)


class CP_HQD_GFX_CONTROL(Register, offset=0x323e):
  MESSAGE: int = bits(0, 3, 0, default=0)
  MISC: int = bits(0, 14, 4, default=0)
  DB_UPDATED_MSG_EN: int = bits(0, 15, 15, default=0)


class CP_HQD_GFX_STATUS(Register, offset=0x323f):
  STATUS: int = bits(0, 15, 0, default=0)


class CP_MQD_BASE_ADDR(Register, offset=0x3245):
  BASE_ADDR: int = bits(0, 31, 2, default=0)


class CP_MQD_BASE_ADDR_HI(Register, offset=0x3246):
  BASE_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_ACTIVE(Register, offset=0x3247):
  ACTIVE: int = bits(0, 0, 0, default=0)
  BUSY_GATE: int = bits(0, 1, 1, default=0)


class CP_HQD_VMID(Register, offset=0x3248):
  VMID: int = bits(0, 3, 0, default=0)
  IB_VMID: int = bits(0, 11, 8, default=0)
  VQID: int = bits(0, 25, 16, default=0)


class CP_HQD_PERSISTENT_STATE(Register, offset=0x3249):
  PRELOAD_REQ: int = bits(0, 0, 0, default=0)
  PRELOAD_SIZE: int = bits(0, 17, 8, default=0)
  WPP_SWITCH_QOS_EN: int = bits(0, 21, 21, default=0)
  IQ_SWITCH_QOS_EN: int = bits(0, 22, 22, default=0)
  IB_SWITCH_QOS_EN: int = bits(0, 23, 23, default=0)
  EOP_SWITCH_QOS_EN: int = bits(0, 24, 24, default=0)
  PQ_SWITCH_QOS_EN: int = bits(0, 25, 25, default=0)
  TC_OFFLOAD_QOS_EN: int = bits(0, 26, 26, default=0)
  CACHE_FULL_PACKET_EN: int = bits(0, 27, 27, default=0)
  RESTORE_ACTIVE: int = bits(0, 28, 28, default=0)
  RELAUNCH_WAVES: int = bits(0, 29, 29, default=0)
  QSWITCH_MODE: int = bits(0, 30, 30, default=0)
  DISP_ACTIVE: int = bits(0, 31, 31, default=0)


class CP_HQD_PIPE_PRIORITY(Register, offset=0x324a):
  PIPE_PRIORITY: int = bits(0, 1, 0, default=0)


class CP_HQD_QUEUE_PRIORITY(Register, offset=0x324b):
  PRIORITY_LEVEL: int = bits(0, 3, 0, default=0)


class CP_HQD_QUANTUM(Register, offset=0x324c):
  QUANTUM_EN: int = bits(0, 0, 0, default=0)
  QUANTUM_SCALE: int = bits(0, 4, 4, default=0)
  QUANTUM_DURATION: int = bits(0, 13, 8, default=0)
  QUANTUM_ACTIVE: int = bits(0, 31, 31, default=0)


class CP_HQD_PQ_BASE(Register, offset=0x324d):
  ADDR: int = bits(0, 31, 0, default=0)


class CP_HQD_PQ_BASE_HI(Register, offset=0x324e):
  ADDR_HI: int = bits(0, 7, 0, default=0)


class CP_HQD_PQ_RPTR(Register, offset=0x324f):
  CONSUMED_OFFSET: int = bits(0, 31, 0, default=0)


class CP_HQD_PQ_RPTR_REPORT_ADDR(Register, offset=0x3250):
  RPTR_REPORT_ADDR: int = bits(0, 31, 2, default=0)


class CP_HQD_PQ_RPTR_REPORT_ADDR_HI(Register, offset=0x3251):
  RPTR_REPORT_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_PQ_WPTR_POLL_ADDR(Register, offset=0x3252):
  WPTR_ADDR: int = bits(0, 31, 3, default=0)


class CP_HQD_PQ_WPTR_POLL_ADDR_HI(Register, offset=0x3253):
  WPTR_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_PQ_DOORBELL_CONTROL(Register, offset=0x3254):
  DOORBELL_MODE: int = bits(0, 0, 0, default=0)
  DOORBELL_BIF_DROP: int = bits(0, 1, 1, default=0)
  DOORBELL_OFFSET: int = bits(0, 27, 2, default=0)
  DOORBELL_SOURCE: int = bits(0, 28, 28, default=0)
  DOORBELL_SCHD_HIT: int = bits(0, 29, 29, default=0)
  DOORBELL_EN: int = bits(0, 30, 30, default=0)
  DOORBELL_HIT: int = bits(0, 31, 31, default=0)


class CP_HQD_PQ_CONTROL(Register, offset=0x3256):
  QUEUE_SIZE: int = bits(0, 5, 0, default=0)
  WPTR_CARRY: int = bits(0, 6, 6, default=0)
  RPTR_CARRY: int = bits(0, 7, 7, default=0)
  RPTR_BLOCK_SIZE: int = bits(0, 13, 8, default=0)
  QUEUE_FULL_EN: int = bits(0, 14, 14, default=0)
  PQ_EMPTY: int = bits(0, 15, 15, default=0)
  WPP_CLAMP_EN: int = bits(0, 16, 16, default=0)
  ENDIAN_SWAP: int = bits(0, 18, 17, default=0)
  MIN_AVAIL_SIZE: int = bits(0, 21, 20, default=0)
  TMZ: int = bits(0, 22, 22, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 24, 24, default=0)
  SLOT_BASED_WPTR: int = bits(0, 26, 25, default=0)
  NO_UPDATE_RPTR: int = bits(0, 27, 27, default=0)
  UNORD_DISPATCH: int = bits(0, 28, 28, default=0)
  ROQ_PQ_IB_FLIP: int = bits(0, 29, 29, default=0)
  PRIV_STATE: int = bits(0, 30, 30, default=0)
  KMD_QUEUE: int = bits(0, 31, 31, default=0)


class CP_HQD_IB_BASE_ADDR(Register, offset=0x3257):
  IB_BASE_ADDR: int = bits(0, 31, 2, default=0)


class CP_HQD_IB_BASE_ADDR_HI(Register, offset=0x3258):
  IB_BASE_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_IB_RPTR(Register, offset=0x3259):
  CONSUMED_OFFSET: int = bits(0, 19, 0, default=0)


class CP_HQD_IB_CONTROL(Register, offset=0x325a):
  IB_SIZE: int = bits(0, 19, 0, default=0)
  MIN_IB_AVAIL_SIZE: int = bits(0, 21, 20, default=0)
  IB_EXE_DISABLE: int = bits(0, 23, 23, default=0)
  IB_CACHE_POLICY: int = bits(0, 24, 24, default=0)
  IB_PRIV_STATE: int = bits(0, 30, 30, default=0)
  PROCESSING_IB: int = bits(0, 31, 31, default=0)


class CP_HQD_IQ_TIMER(Register, offset=0x325b):
  WAIT_TIME: int = bits(0, 7, 0, default=0)
  RETRY_TYPE: int = bits(0, 10, 8, default=0)
  IMMEDIATE_EXPIRE: int = bits(0, 11, 11, default=0)
  INTERRUPT_TYPE: int = bits(0, 13, 12, default=0)
  CLOCK_COUNT: int = bits(0, 15, 14, default=0)
  INTERRUPT_SIZE: int = bits(0, 21, 16, default=0)
  QUANTUM_TIMER: int = bits(0, 22, 22, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 24, 24, default=0)
  QUEUE_TYPE: int = bits(0, 25, 25, default=0)
  REARM_TIMER: int = bits(0, 28, 28, default=0)
  PROCESS_IQ_EN: int = bits(0, 29, 29, default=0)
  PROCESSING_IQ: int = bits(0, 30, 30, default=0)
  ACTIVE: int = bits(0, 31, 31, default=0)


class CP_HQD_IQ_RPTR(Register, offset=0x325c):
  OFFSET_: int = bits(0, 5, 0, default=0)


class CP_HQD_DEQUEUE_REQUEST(Register, offset=0x325d):
  DEQUEUE_REQ: int = bits(0, 2, 0, default=0)
  IQ_REQ_PEND: int = bits(0, 4, 4, default=0)
  DEQUEUE_INT: int = bits(0, 8, 8, default=0)
  IQ_REQ_PEND_EN: int = bits(0, 9, 9, default=0)
  DEQUEUE_REQ_EN: int = bits(0, 10, 10, default=0)


class CP_HQD_DMA_OFFLOAD(Register, offset=0x325e):
  DMA_OFFLOAD: int = bits(0, 0, 0, default=0)


class CP_HQD_OFFLOAD(Register, offset=0x325e):
  DMA_OFFLOAD: int = bits(0, 0, 0, default=0)
  DMA_OFFLOAD_EN: int = bits(0, 1, 1, default=0)
  AQL_OFFLOAD: int = bits(0, 2, 2, default=0)
  AQL_OFFLOAD_EN: int = bits(0, 3, 3, default=0)
  EOP_OFFLOAD: int = bits(0, 4, 4, default=0)
  EOP_OFFLOAD_EN: int = bits(0, 5, 5, default=0)


class CP_HQD_SEMA_CMD(Register, offset=0x325f):
  RETRY: int = bits(0, 0, 0, default=0)
  RESULT: int = bits(0, 2, 1, default=0)


class CP_HQD_MSG_TYPE(Register, offset=0x3260):
  ACTION: int = bits(0, 2, 0, default=0)
  SAVE_STATE: int = bits(0, 6, 4, default=0)


class CP_HQD_ATOMIC0_PREOP_LO(Register, offset=0x3261):
  ATOMIC0_PREOP_LO: int = bits(0, 31, 0, default=0)


class CP_HQD_ATOMIC0_PREOP_HI(Register, offset=0x3262):
  ATOMIC0_PREOP_HI: int = bits(0, 31, 0, default=0)


class CP_HQD_ATOMIC1_PREOP_LO(Register, offset=0x3263):
  ATOMIC1_PREOP_LO: int = bits(0, 31, 0, default=0)


class CP_HQD_ATOMIC1_PREOP_HI(Register, offset=0x3264):
  ATOMIC1_PREOP_HI: int = bits(0, 31, 0, default=0)


class CP_HQD_HQ_SCHEDULER0(Register, offset=0x3265):
  SCHEDULER: int = bits(0, 31, 0, default=0)


class CP_HQD_HQ_STATUS0(Register, offset=0x3265):
  DEQUEUE_STATUS: int = bits(0, 1, 0, default=0)
  DEQUEUE_RETRY_CNT: int = bits(0, 3, 2, default=0)
  RSV_6_4: int = bits(0, 6, 4, default=0)
  SCRATCH_RAM_INIT: int = bits(0, 7, 7, default=0)
  TCL2_DIRTY: int = bits(0, 8, 8, default=0)
  PG_ACTIVATED: int = bits(0, 9, 9, default=0)
  RSVR_29_10: int = bits(0, 29, 10, default=0)
  QUEUE_IDLE: int = bits(0, 30, 30, default=0)
  DB_UPDATED_MSG_EN: int = bits(0, 31, 31, default=0)


class CP_HQD_HQ_CONTROL0(Register, offset=0x3266):
  CONTROL: int = bits(0, 31, 0, default=0)


class CP_HQD_HQ_SCHEDULER1(Register, offset=0x3266):
  SCHEDULER: int = bits(0, 31, 0, default=0)


class CP_MQD_CONTROL(Register, offset=0x3267):
  VMID: int = bits(0, 3, 0, default=0)
  PRIV_STATE: int = bits(0, 8, 8, default=0)
  PROCESSING_MQD: int = bits(0, 12, 12, default=0)
  PROCESSING_MQD_EN: int = bits(0, 13, 13, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 24, 24, default=0)


class CP_HQD_HQ_STATUS1(Register, offset=0x3268):
  STATUS: int = bits(0, 31, 0, default=0)


class CP_HQD_HQ_CONTROL1(Register, offset=0x3269):
  CONTROL: int = bits(0, 31, 0, default=0)


class CP_HQD_EOP_BASE_ADDR(Register, offset=0x326a):
  BASE_ADDR: int = bits(0, 31, 0, default=0)


class CP_HQD_EOP_BASE_ADDR_HI(Register, offset=0x326b):
  BASE_ADDR_HI: int = bits(0, 7, 0, default=0)


class CP_HQD_EOP_CONTROL(Register, offset=0x326c):
  EOP_SIZE: int = bits(0, 5, 0, default=0)
  PROCESSING_EOP: int = bits(0, 8, 8, default=0)
  PROCESS_EOP_EN: int = bits(0, 12, 12, default=0)
  PROCESSING_EOPIB: int = bits(0, 13, 13, default=0)
  PROCESS_EOPIB_EN: int = bits(0, 14, 14, default=0)
  HALT_FETCHER: int = bits(0, 21, 21, default=0)
  HALT_FETCHER_EN: int = bits(0, 22, 22, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 24, 24, default=0)
  SIG_SEM_RESULT: int = bits(0, 30, 29, default=0)
  PEND_SIG_SEM: int = bits(0, 31, 31, default=0)


class CP_HQD_EOP_RPTR(Register, offset=0x326d):
  RPTR: int = bits(0, 12, 0, default=0)
  RESET_FETCHER: int = bits(0, 28, 28, default=0)
  DEQUEUE_PEND: int = bits(0, 29, 29, default=0)
  RPTR_EQ_CSMD_WPTR: int = bits(0, 30, 30, default=0)
  INIT_FETCHER: int = bits(0, 31, 31, default=0)


class CP_HQD_EOP_WPTR(Register, offset=0x326e):
  WPTR: int = bits(0, 12, 0, default=0)
  EOP_EMPTY: int = bits(0, 15, 15, default=0)
  EOP_AVAIL: int = bits(0, 28, 16, default=0)


class CP_HQD_EOP_EVENTS(Register, offset=0x326f):
  EVENT_COUNT: int = bits(0, 11, 0, default=0)
  CS_PARTIAL_FLUSH_PEND: int = bits(0, 16, 16, default=0)


class CP_HQD_CTX_SAVE_BASE_ADDR_LO(Register, offset=0x3270):
  ADDR: int = bits(0, 31, 12, default=0)


class CP_HQD_CTX_SAVE_BASE_ADDR_HI(Register, offset=0x3271):
  ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_CTX_SAVE_CONTROL(Register, offset=0x3272):
  POLICY: int = bits(0, 3, 3, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)


class CP_HQD_CNTL_STACK_OFFSET(Register, offset=0x3273):
  OFFSET_: int = bits(0, 15, 2, default=0)


class CP_HQD_CNTL_STACK_SIZE(Register, offset=0x3274):
  SIZE: int = bits(0, 15, 12, default=0)


class CP_HQD_WG_STATE_OFFSET(Register, offset=0x3275):
  OFFSET_: int = bits(0, 26, 2, default=0)


class CP_HQD_CTX_SAVE_SIZE(Register, offset=0x3276):
  SIZE: int = bits(0, 26, 12, default=0)


class CP_HQD_GDS_RESOURCE_STATE(Register, offset=0x3277):
  OA_REQUIRED: int = bits(0, 0, 0, default=0)
  OA_ACQUIRED: int = bits(0, 1, 1, default=0)
  GWS_SIZE: int = bits(0, 9, 4, default=0)
  GWS_PNTR: int = bits(0, 17, 12, default=0)


class CP_HQD_ERROR(Register, offset=0x3278):
  EDC_ERROR_ID: int = bits(0, 3, 0, default=0)
  SUA_ERROR: int = bits(0, 4, 4, default=0)
  AQL_ERROR: int = bits(0, 5, 5, default=0)
  PQ_UTCL1_ERROR: int = bits(0, 8, 8, default=0)
  IB_UTCL1_ERROR: int = bits(0, 9, 9, default=0)
  EOP_UTCL1_ERROR: int = bits(0, 10, 10, default=0)
  IQ_UTCL1_ERROR: int = bits(0, 11, 11, default=0)
  RRPT_UTCL1_ERROR: int = bits(0, 12, 12, default=0)
  WPP_UTCL1_ERROR: int = bits(0, 13, 13, default=0)
  SEM_UTCL1_ERROR: int = bits(0, 14, 14, default=0)
  DMA_SRC_UTCL1_ERROR: int = bits(0, 15, 15, default=0)
  DMA_DST_UTCL1_ERROR: int = bits(0, 16, 16, default=0)
  SR_UTCL1_ERROR: int = bits(0, 17, 17, default=0)
  QU_UTCL1_ERROR: int = bits(0, 18, 18, default=0)
  TC_UTCL1_ERROR: int = bits(0, 19, 19, default=0)


class CP_HQD_EOP_WPTR_MEM(Register, offset=0x3279):
  WPTR: int = bits(0, 12, 0, default=0)


class CP_HQD_AQL_CONTROL(Register, offset=0x327a):
  CONTROL0: int = bits(0, 14, 0, default=0)
  CONTROL0_EN: int = bits(0, 15, 15, default=0)
  CONTROL1: int = bits(0, 30, 16, default=0)
  CONTROL1_EN: int = bits(0, 31, 31, default=0)


class CP_HQD_PQ_WPTR_LO(Register, offset=0x327b):
  OFFSET_: int = bits(0, 31, 0, default=0)


class CP_HQD_PQ_WPTR_HI(Register, offset=0x327c):
  DATA: int = bits(0, 31, 0, default=0)


class CP_HQD_AQL_CONTROL_1(Register, offset=0x327d):
  RESERVED: int = bits(0, 31, 0, default=0)


class CP_HQD_AQL_DISPATCH_ID(Register, offset=0x327e):
  CONSUMED_OFFSET: int = bits(0, 31, 0, default=0)


class CP_HQD_AQL_DISPATCH_ID_HI(Register, offset=0x327f):
  CONSUMED_OFFSET: int = bits(0, 31, 0, default=0)


class CP_COHER_BASE_HI(Register, offset=0xc079):
  COHER_BASE_HI_256B: int = bits(0, 7, 0, default=0)


class CP_COHER_START_DELAY(Register, offset=0xc07b):
  START_DELAY_COUNT: int = bits(0, 5, 0, default=0)


class CP_COHER_CNTL(Register, offset=0xc07c):
  TC_NC_ACTION_ENA: int = bits(0, 3, 3, default=0)
  TC_WC_ACTION_ENA: int = bits(0, 4, 4, default=0)
  TC_INV_METADATA_ACTION_ENA: int = bits(0, 5, 5, default=0)
  TCL1_VOL_ACTION_ENA: int = bits(0, 15, 15, default=0)
  TC_WB_ACTION_ENA: int = bits(0, 18, 18, default=0)
  TCL1_ACTION_ENA: int = bits(0, 22, 22, default=0)
  TC_ACTION_ENA: int = bits(0, 23, 23, default=0)
  CB_ACTION_ENA: int = bits(0, 25, 25, default=0)
  DB_ACTION_ENA: int = bits(0, 26, 26, default=0)
  SH_KCACHE_ACTION_ENA: int = bits(0, 27, 27, default=0)
  SH_KCACHE_VOL_ACTION_ENA: int = bits(0, 28, 28, default=0)
  SH_ICACHE_ACTION_ENA: int = bits(0, 29, 29, default=0)
  SH_KCACHE_WB_ACTION_ENA: int = bits(0, 30, 30, default=0)


class CP_COHER_SIZE(Register, offset=0xc07d):
  COHER_SIZE_256B: int = bits(0, 31, 0, default=0)


class CP_COHER_BASE(Register, offset=0xc07e):
  COHER_BASE_256B: int = bits(0, 31, 0, default=0)


class CP_COHER_STATUS(Register, offset=0xc07f):
  MEID: int = bits(0, 25, 24, default=0)
  STATUS: int = bits(0, 31, 31, default=0)


class CP_COHER_SIZE_HI(Register, offset=0xc08c):
  COHER_SIZE_HI_256B: int = bits(0, 7, 0, default=0)


class GRBM_GFX_INDEX(Register, offset=0xc200):
  INSTANCE_INDEX: int = bits(0, 7, 0, default=0)
  SH_INDEX: int = bits(0, 15, 8, default=0)
  SE_INDEX: int = bits(0, 23, 16, default=0)
  SH_BROADCAST_WRITES: int = bits(0, 29, 29, default=0)
  INSTANCE_BROADCAST_WRITES: int = bits(0, 30, 30, default=0)
  SE_BROADCAST_WRITES: int = bits(0, 31, 31, default=0)


class SQC_CACHES(Register, offset=0xc348):
  TARGET_INST: int = bits(0, 0, 0, default=0)
  TARGET_DATA: int = bits(0, 1, 1, default=0)
  INVALIDATE: int = bits(0, 2, 2, default=0)
  WRITEBACK: int = bits(0, 3, 3, default=0)
  VOL: int = bits(0, 4, 4, default=0)
  COMPLETE: int = bits(0, 16, 16, default=0)


class SPI_CONFIG_CNTL(Register, offset=0xc440):
  GPR_WRITE_PRIORITY: int = bits(0, 20, 0, default=0)
  EXP_PRIORITY_ORDER: int = bits(0, 23, 21, default=0)
  ENABLE_SQG_TOP_EVENTS: int = bits(0, 24, 24, default=0)
  ENABLE_SQG_BOP_EVENTS: int = bits(0, 25, 25, default=0)
  RSRC_MGMT_RESET: int = bits(0, 26, 26, default=0)
  TTRACE_STALL_ALL: int = bits(0, 27, 27, default=0)
  ALLOC_ARB_LRU_ENA: int = bits(0, 28, 28, default=0)
  EXP_ARB_LRU_ENA: int = bits(0, 29, 29, default=0)
  PS_PKR_PRIORITY_CNTL: int = bits(0, 31, 30, default=0)


class RLC_GPU_CLOCK_COUNT_LSB_1(Register, offset=0xece8):
  GPU_CLOCKS_LSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_MSB_1(Register, offset=0xece9):
  GPU_CLOCKS_MSB: int = bits(0, 31, 0, default=0)


REGISTERS: tuple[type[Register], ...] = (
  GRBM_STATUS2, GRBM_STATUS, GRBM_STATUS_SE0, GRBM_STATUS_SE1, GRBM_STATUS_SE2, GRBM_STATUS_SE3, CP_CPC_STATUS,
  CP_MEC_CNTL, SQ_CONFIG, SH_MEM_BASES, SH_MEM_CONFIG, SQ_SHADER_TBA_LO, SQ_SHADER_TBA_HI, SQ_SHADER_TMA_LO,
  SQ_SHADER_TMA_HI, COMPUTE_DISPATCH_INITIATOR, COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z, COMPUTE_START_X,
  COMPUTE_START_Y, COMPUTE_START_Z, COMPUTE_NUM_THREAD_X, COMPUTE_NUM_THREAD_Y, COMPUTE_NUM_THREAD_Z,
  COMPUTE_PIPELINESTAT_ENABLE, COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_LO, COMPUTE_PGM_HI,
  COMPUTE_DISPATCH_PKT_ADDR_LO, COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO,
  COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_PGM_RSRC1, COMPUTE_PGM_RSRC2, COMPUTE_VMID, COMPUTE_RESOURCE_LIMITS,
  COMPUTE_STATIC_THREAD_MGMT_SE0, COMPUTE_STATIC_THREAD_MGMT_SE1, COMPUTE_TMPRING_SIZE,
  COMPUTE_STATIC_THREAD_MGMT_SE2, COMPUTE_STATIC_THREAD_MGMT_SE3, COMPUTE_RESTART_X, COMPUTE_RESTART_Y,
  COMPUTE_RESTART_Z, COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_MISC_RESERVED, COMPUTE_DISPATCH_ID,
  COMPUTE_THREADGROUP_ID, COMPUTE_RELAUNCH, COMPUTE_WAVE_RESTORE_ADDR_LO, COMPUTE_WAVE_RESTORE_ADDR_HI,
  COMPUTE_TG_CHUNK_SIZE, COMPUTE_SHADER_CHKSUM, COMPUTE_PGM_RSRC3, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1,
  COMPUTE_USER_DATA_2, COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5, COMPUTE_USER_DATA_6,
  COMPUTE_USER_DATA_7, COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11,
  COMPUTE_USER_DATA_12, COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14, COMPUTE_USER_DATA_15, COMPUTE_DISPATCH_END,
  COMPUTE_NOWHERE, SPI_GDBG_WAVE_CNTL, SPI_GDBG_TRAP_CONFIG, SPI_GDBG_PER_VMID_CNTL, SPI_GDBG_WAVE_CNTL3,
  CP_HQD_GFX_CONTROL, CP_HQD_GFX_STATUS, CP_MQD_BASE_ADDR, CP_MQD_BASE_ADDR_HI, CP_HQD_ACTIVE, CP_HQD_VMID,
  CP_HQD_PERSISTENT_STATE, CP_HQD_PIPE_PRIORITY, CP_HQD_QUEUE_PRIORITY, CP_HQD_QUANTUM, CP_HQD_PQ_BASE,
  CP_HQD_PQ_BASE_HI, CP_HQD_PQ_RPTR, CP_HQD_PQ_RPTR_REPORT_ADDR, CP_HQD_PQ_RPTR_REPORT_ADDR_HI,
  CP_HQD_PQ_WPTR_POLL_ADDR, CP_HQD_PQ_WPTR_POLL_ADDR_HI, CP_HQD_PQ_DOORBELL_CONTROL, CP_HQD_PQ_CONTROL,
  CP_HQD_IB_BASE_ADDR, CP_HQD_IB_BASE_ADDR_HI, CP_HQD_IB_RPTR, CP_HQD_IB_CONTROL, CP_HQD_IQ_TIMER,
  CP_HQD_IQ_RPTR, CP_HQD_DEQUEUE_REQUEST, CP_HQD_DMA_OFFLOAD, CP_HQD_OFFLOAD, CP_HQD_SEMA_CMD, CP_HQD_MSG_TYPE,
  CP_HQD_ATOMIC0_PREOP_LO, CP_HQD_ATOMIC0_PREOP_HI, CP_HQD_ATOMIC1_PREOP_LO, CP_HQD_ATOMIC1_PREOP_HI,
  CP_HQD_HQ_SCHEDULER0, CP_HQD_HQ_STATUS0, CP_HQD_HQ_CONTROL0, CP_HQD_HQ_SCHEDULER1, CP_MQD_CONTROL,
  CP_HQD_HQ_STATUS1, CP_HQD_HQ_CONTROL1, CP_HQD_EOP_BASE_ADDR, CP_HQD_EOP_BASE_ADDR_HI, CP_HQD_EOP_CONTROL,
  CP_HQD_EOP_RPTR, CP_HQD_EOP_WPTR, CP_HQD_EOP_EVENTS, CP_HQD_CTX_SAVE_BASE_ADDR_LO,
  CP_HQD_CTX_SAVE_BASE_ADDR_HI, CP_HQD_CTX_SAVE_CONTROL, CP_HQD_CNTL_STACK_OFFSET, CP_HQD_CNTL_STACK_SIZE,
  CP_HQD_WG_STATE_OFFSET, CP_HQD_CTX_SAVE_SIZE, CP_HQD_GDS_RESOURCE_STATE, CP_HQD_ERROR, CP_HQD_EOP_WPTR_MEM,
  CP_HQD_AQL_CONTROL, CP_HQD_PQ_WPTR_LO, CP_HQD_PQ_WPTR_HI, CP_HQD_AQL_CONTROL_1, CP_HQD_AQL_DISPATCH_ID,
  CP_HQD_AQL_DISPATCH_ID_HI, CP_COHER_BASE_HI, CP_COHER_START_DELAY, CP_COHER_CNTL, CP_COHER_SIZE,
  CP_COHER_BASE, CP_COHER_STATUS, CP_COHER_SIZE_HI, GRBM_GFX_INDEX, SQC_CACHES, SPI_CONFIG_CNTL,
  RLC_GPU_CLOCK_COUNT_LSB, RLC_GPU_CLOCK_COUNT_MSB, RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB_1,
  RLC_GPU_CLOCK_COUNT_MSB_1, RLC_GPU_CLOCK_COUNT_LSB_2, RLC_GPU_CLOCK_COUNT_MSB_2,
)
