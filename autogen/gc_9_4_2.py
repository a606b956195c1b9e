"""Registers of the gfx90a graphics core (GC 9.4.2): one class a register, fields as the vendor names them.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_9_4_2_offset.h sha256 6662864f945a30c7d646fc4325fe7b75c4b4076519638bd4a8649c71b3390932
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_9_4_2_sh_mask.h sha256 76dcbe5aede0a0506b7dff44ff3621f02f2869cb95eb49deefd5d775837ad936
    drivers/gpu/drm/amd/include/aldebaran_ip_offset.h sha256 c24cd4bdd90de4ab62eda2e01207327d34172dab48660ba0f67c16a8ba4be5c0
  GPUOpen-Drivers/pal commit 42e29f4d3d528c6a59c2db77fb6d70127fb9ffab (2024-03-21), licence MIT
    pal-42e29f4d/src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_offset.h sha256 ed04229b65217e07a4a5497fa62b6e2f300118b44068a24d4b5fa8a120eae0fa
Generator: tinyhw gen gc_9_4_2

Offsets are in dwords, with the segment's base. 53 of 162 stand at the same place in PAL; the others are in the
kernel's headers only. All fields default to 0. What an earlier class says letter for letter is imported.
"""
from __future__ import annotations

from tinyhw.autogen.gc_9_4_3 import (
  COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z, COMPUTE_DISPATCH_END, COMPUTE_DISPATCH_ID,
  COMPUTE_DISPATCH_INITIATOR, COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_PKT_ADDR_LO,
  COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO, COMPUTE_NOWHERE, COMPUTE_NUM_THREAD_X,
  COMPUTE_NUM_THREAD_Y, COMPUTE_NUM_THREAD_Z, COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_HI, COMPUTE_PGM_LO,
  COMPUTE_PGM_RSRC2, COMPUTE_PIPELINESTAT_ENABLE, COMPUTE_RELAUNCH, COMPUTE_RESOURCE_LIMITS, COMPUTE_RESTART_X,
  COMPUTE_RESTART_Y, COMPUTE_RESTART_Z, COMPUTE_SHADER_CHKSUM, COMPUTE_START_X, COMPUTE_START_Y,
  COMPUTE_START_Z, COMPUTE_STATIC_THREAD_MGMT_SE0, COMPUTE_STATIC_THREAD_MGMT_SE1,
  COMPUTE_STATIC_THREAD_MGMT_SE2, COMPUTE_STATIC_THREAD_MGMT_SE3, COMPUTE_THREADGROUP_ID,
  COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_TMPRING_SIZE, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1,
  COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11, COMPUTE_USER_DATA_12, COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14,
  COMPUTE_USER_DATA_15, COMPUTE_USER_DATA_2, COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5,
  COMPUTE_USER_DATA_6, COMPUTE_USER_DATA_7, COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_VMID,
  COMPUTE_WAVE_RESTORE_ADDR_HI, COMPUTE_WAVE_RESTORE_ADDR_LO, CP_COHER_BASE, CP_COHER_BASE_HI, CP_COHER_CNTL,
  CP_COHER_SIZE, CP_COHER_SIZE_HI, CP_COHER_START_DELAY, CP_COHER_STATUS, CP_CPC_STATUS, CP_HQD_ACTIVE,
  CP_HQD_AQL_CONTROL, CP_HQD_ATOMIC0_PREOP_HI, CP_HQD_ATOMIC0_PREOP_LO, CP_HQD_ATOMIC1_PREOP_HI,
  CP_HQD_ATOMIC1_PREOP_LO, CP_HQD_CNTL_STACK_OFFSET, CP_HQD_CNTL_STACK_SIZE, CP_HQD_CTX_SAVE_BASE_ADDR_HI,
  CP_HQD_CTX_SAVE_BASE_ADDR_LO, CP_HQD_CTX_SAVE_CONTROL, CP_HQD_CTX_SAVE_SIZE, CP_HQD_DEQUEUE_REQUEST,
  CP_HQD_DMA_OFFLOAD, CP_HQD_EOP_BASE_ADDR, CP_HQD_EOP_BASE_ADDR_HI, CP_HQD_EOP_CONTROL, CP_HQD_EOP_EVENTS,
  CP_HQD_EOP_RPTR, CP_HQD_EOP_WPTR, CP_HQD_EOP_WPTR_MEM, CP_HQD_ERROR, CP_HQD_GDS_RESOURCE_STATE,
  CP_HQD_GFX_CONTROL, CP_HQD_GFX_STATUS, CP_HQD_HQ_CONTROL0, CP_HQD_HQ_CONTROL1, CP_HQD_HQ_SCHEDULER0,
  CP_HQD_HQ_SCHEDULER1, CP_HQD_HQ_STATUS0, CP_HQD_HQ_STATUS1, CP_HQD_IB_BASE_ADDR, CP_HQD_IB_BASE_ADDR_HI,
  CP_HQD_IB_RPTR, CP_HQD_IQ_RPTR, CP_HQD_IQ_TIMER, CP_HQD_MSG_TYPE, CP_HQD_OFFLOAD, CP_HQD_PERSISTENT_STATE,
  CP_HQD_PIPE_PRIORITY, CP_HQD_PQ_BASE, CP_HQD_PQ_BASE_HI, CP_HQD_PQ_CONTROL, CP_HQD_PQ_DOORBELL_CONTROL,
  CP_HQD_PQ_RPTR, CP_HQD_PQ_RPTR_REPORT_ADDR, CP_HQD_PQ_RPTR_REPORT_ADDR_HI, CP_HQD_PQ_WPTR_HI,
  CP_HQD_PQ_WPTR_LO, CP_HQD_PQ_WPTR_POLL_ADDR, CP_HQD_PQ_WPTR_POLL_ADDR_HI, CP_HQD_QUANTUM,
  CP_HQD_QUEUE_PRIORITY, CP_HQD_SEMA_CMD, CP_HQD_VMID, CP_HQD_WG_STATE_OFFSET, CP_MEC_CNTL, CP_MQD_BASE_ADDR,
  CP_MQD_BASE_ADDR_HI, CP_MQD_CONTROL, GRBM_GFX_INDEX, RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB,
  RLC_GPU_CLOCK_COUNT_LSB_1, RLC_GPU_CLOCK_COUNT_LSB_2, RLC_GPU_CLOCK_COUNT_MSB, RLC_GPU_CLOCK_COUNT_MSB_1,
  RLC_GPU_CLOCK_COUNT_MSB_2, SH_MEM_BASES, SPI_CONFIG_CNTL, SPI_GDBG_TRAP_CONFIG, SPI_GDBG_WAVE_CNTL,
  SPI_GDBG_WAVE_CNTL3, SQC_CACHES, SQ_SHADER_TBA_HI, SQ_SHADER_TBA_LO, SQ_SHADER_TMA_HI, SQ_SHADER_TMA_LO,
)
from tinyhw.core.layout import Register, bits

GC_BASE = (0x2000, 0xa000, 0x2402c00, 0x0, 0x0, 0x0)  # bases of the block's segments, in dwords


class CP_HQD_IB_CONTROL(Register, offset=0x325a):
  IB_SIZE: int = bits(0, 19, 0, default=0)
  MIN_IB_AVAIL_SIZE: int = bits(0, 21, 20, default=0)
  IB_EXE_DISABLE: int = bits(0, 23, 23, default=0)
  IB_CACHE_POLICY: int = bits(0, 24, 24, default=0)
  PROCESSING_IB: int = bits(0, 31, 31, default=0)


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
  RLC_BUSY: int = bits(0, 24, 24, default=0)
  TC_BUSY: int = bits(0, 25, 25, default=0)
  TCC_CC_RESIDENT: int = bits(0, 26, 26, default=0)
  CPF_BUSY: int = bits(0, 28, 28, default=0)
  CPC_BUSY: int = bits(0, 29, 29, default=0)
  CPG_BUSY: int = bits(0, 30, 30, default=0)


class GRBM_STATUS(Register, offset=0x2004):
  ME0PIPE0_CMDFIFO_AVAIL: int = bits(0, 3, 0, default=0)
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
  TA_BUSY_SE4: int = bits(0, 3, 3, default=0)
  SX_BUSY_SE4: int = bits(0, 4, 4, default=0)
  SPI_BUSY_SE4: int = bits(0, 5, 5, default=0)
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
  TA_BUSY_SE5: int = bits(0, 3, 3, default=0)
  SX_BUSY_SE5: int = bits(0, 4, 4, default=0)
  SPI_BUSY_SE5: int = bits(0, 5, 5, default=0)
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
  TA_BUSY_SE6: int = bits(0, 3, 3, default=0)
  SX_BUSY_SE6: int = bits(0, 4, 4, default=0)
  SPI_BUSY_SE6: int = bits(0, 5, 5, default=0)
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
  TA_BUSY_SE7: int = bits(0, 3, 3, default=0)
  SX_BUSY_SE7: int = bits(0, 4, 4, default=0)
  SPI_BUSY_SE7: int = bits(0, 5, 5, default=0)
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


class COMPUTE_PGM_RSRC1(Register, offset=0x2e12):
  VGPRS: int = bits(0, 5, 0, default=0)
  SGPRS: int = bits(0, 9, 6, default=0)
  PRIORITY: int = bits(0, 11, 10, default=0)
  FLOAT_MODE: int = bits(0, 19, 12, default=0)
  PRIV: int = bits(0, 20, 20, default=0)
  DX10_CLAMP: int = bits(0, 21, 21, default=0)
  IEEE_MODE: int = bits(0, 23, 23, default=0)
  BULKY: int = bits(0, 24, 24, default=0)
  FP16_OVFL: int = bits(0, 26, 26, default=0)


class COMPUTE_MISC_RESERVED(Register, offset=0x2e1f):
  SEND_SEID: int = bits(0, 1, 0, default=0)
  SEND_SEID_CORE1: int = bits(0, 3, 2, default=0)
  RESTORE_CORE_ID: int = bits(0, 4, 4, default=0)
  WAVE_ID_BASE: int = bits(0, 16, 5, default=0)
  CRAWLER_DONE_CORE0: int = bits(0, 17, 17, default=0)
  CRAWLER_DONE_CORE1: int = bits(0, 18, 18, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE4(Register, offset=0x2e25):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE5(Register, offset=0x2e26):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE6(Register, offset=0x2e27):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE7(Register, offset=0x2e28):
  SH0_CU_EN: int = bits(0, 15, 0, default=0)
  SH1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_RESTART_X2(Register, offset=0x2e29):
  RESTART: int = bits(0, 31, 0, default=0)


class COMPUTE_RESTART_Y2(Register, offset=0x2e2a):
  RESTART: int = bits(0, 31, 0, default=0)


class COMPUTE_RESTART_Z2(Register, offset=0x2e2b):
  RESTART: int = bits(0, 31, 0, default=0)


class COMPUTE_PGM_RSRC3(Register, offset=0x2e2d):
  ACCUM_OFFSET: int = bits(0, 5, 0, default=0)
  TG_SPLIT: int = bits(0, 16, 16, default=0)


class SPI_GDBG_PER_VMID_CNTL(Register, offset=0x31d3):
  STALL_VMID: int = bits(0, 0, 0, default=0)
  LAUNCH_MODE: int = bits(0, 2, 1, default=0)
  TRAP_EN: int = bits(0, 3, 3, default=0)
  EXCP_EN: int = bits(0, 12, 4, default=0)
  EXCP_REPLACE: int = bits(0, 13, 13, default=0)


class SPI_GDBG_TRAP_DATA0(Register, offset=0x31d8):
  DATA: int = bits(0, 31, 0, default=0)


class SPI_GDBG_TRAP_DATA1(Register, offset=0x31d9):
  DATA: int = bits(0, 31, 0, default=0)


class SQ_CONFIG(Register, offset=0x2300):
  DISABLE_BARRIER_WAITCNT: int = bits(0, 0, 0, default=0)
  DISABLE_REPEATER_FGCG_CLOCK_GATING: int = bits(0, 1, 1, default=0)
  DISABLE_SPIPRIO_OVER_USERPRIO: int = bits(0, 2, 2, default=0)
  OVERRIDE_SP_MAI_ALU_BUSY: int = bits(0, 3, 3, default=0)
  DISABLE_RAM_CLOCK_GATING: int = bits(0, 4, 4, default=0)
  DISABLE_MAI_CO_EXEC: int = bits(0, 5, 5, default=0)
  OVERRIDE_MAI_ALU_BUSY: int = bits(0, 6, 6, default=0)
  OVERRIDE_ALU_BUSY: int = bits(0, 7, 7, default=0)
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


class SH_MEM_CONFIG(Register, offset=0x230d):
  ADDRESS_MODE: int = bits(0, 0, 0, default=0)
  ALIGNMENT_MODE: int = bits(0, 4, 3, default=0)
  RETRY_DISABLE: int = bits(0, 12, 12, default=0)
  PRIVATE_NV: int = bits(0, 13, 13, default=0)


REGISTERS: tuple[type[Register], ...] = (
  CP_CPC_STATUS, CP_MEC_CNTL, CP_HQD_GFX_CONTROL, CP_HQD_GFX_STATUS, CP_MQD_BASE_ADDR, CP_MQD_BASE_ADDR_HI,
  CP_HQD_ACTIVE, CP_HQD_VMID, CP_HQD_PERSISTENT_STATE, CP_HQD_PIPE_PRIORITY, CP_HQD_QUEUE_PRIORITY,
  CP_HQD_QUANTUM, CP_HQD_PQ_BASE, CP_HQD_PQ_BASE_HI, CP_HQD_PQ_RPTR, CP_HQD_PQ_RPTR_REPORT_ADDR,
  CP_HQD_PQ_RPTR_REPORT_ADDR_HI, CP_HQD_PQ_WPTR_POLL_ADDR, CP_HQD_PQ_WPTR_POLL_ADDR_HI,
  CP_HQD_PQ_DOORBELL_CONTROL, CP_HQD_PQ_CONTROL, CP_HQD_IB_BASE_ADDR, CP_HQD_IB_BASE_ADDR_HI, CP_HQD_IB_RPTR,
  CP_HQD_IB_CONTROL, CP_HQD_IQ_TIMER, CP_HQD_IQ_RPTR, CP_HQD_DEQUEUE_REQUEST, CP_HQD_DMA_OFFLOAD,
  CP_HQD_OFFLOAD, CP_HQD_SEMA_CMD, CP_HQD_MSG_TYPE, CP_HQD_ATOMIC0_PREOP_LO, CP_HQD_ATOMIC0_PREOP_HI,
  CP_HQD_ATOMIC1_PREOP_LO, CP_HQD_ATOMIC1_PREOP_HI, CP_HQD_HQ_SCHEDULER0, CP_HQD_HQ_STATUS0, CP_HQD_HQ_CONTROL0,
  CP_HQD_HQ_SCHEDULER1, CP_MQD_CONTROL, CP_HQD_HQ_STATUS1, CP_HQD_HQ_CONTROL1, CP_HQD_EOP_BASE_ADDR,
  CP_HQD_EOP_BASE_ADDR_HI, CP_HQD_EOP_CONTROL, CP_HQD_EOP_RPTR, CP_HQD_EOP_WPTR, CP_HQD_EOP_EVENTS,
  CP_HQD_CTX_SAVE_BASE_ADDR_LO, CP_HQD_CTX_SAVE_BASE_ADDR_HI, CP_HQD_CTX_SAVE_CONTROL, CP_HQD_CNTL_STACK_OFFSET,
  CP_HQD_CNTL_STACK_SIZE, CP_HQD_WG_STATE_OFFSET, CP_HQD_CTX_SAVE_SIZE, CP_HQD_GDS_RESOURCE_STATE, CP_HQD_ERROR,
  CP_HQD_EOP_WPTR_MEM, CP_HQD_AQL_CONTROL, CP_HQD_PQ_WPTR_LO, CP_HQD_PQ_WPTR_HI, CP_COHER_BASE_HI,
  CP_COHER_START_DELAY, CP_COHER_CNTL, CP_COHER_SIZE, CP_COHER_BASE, CP_COHER_STATUS, CP_COHER_SIZE_HI,
  GRBM_GFX_INDEX, SQC_CACHES, SPI_CONFIG_CNTL, GRBM_STATUS2, GRBM_STATUS, GRBM_STATUS_SE0, GRBM_STATUS_SE1,
  GRBM_STATUS_SE2, GRBM_STATUS_SE3, RLC_GPU_CLOCK_COUNT_LSB, RLC_GPU_CLOCK_COUNT_MSB,
  RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB_1, RLC_GPU_CLOCK_COUNT_MSB_1, RLC_GPU_CLOCK_COUNT_LSB_2,
  RLC_GPU_CLOCK_COUNT_MSB_2, COMPUTE_DISPATCH_INITIATOR, COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z,
  COMPUTE_START_X, COMPUTE_START_Y, COMPUTE_START_Z, COMPUTE_NUM_THREAD_X, COMPUTE_NUM_THREAD_Y,
  COMPUTE_NUM_THREAD_Z, COMPUTE_PIPELINESTAT_ENABLE, COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_LO, COMPUTE_PGM_HI,
  COMPUTE_DISPATCH_PKT_ADDR_LO, COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO,
  COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_PGM_RSRC1, COMPUTE_PGM_RSRC2, COMPUTE_VMID, COMPUTE_RESOURCE_LIMITS,
  COMPUTE_STATIC_THREAD_MGMT_SE0, COMPUTE_STATIC_THREAD_MGMT_SE1, COMPUTE_TMPRING_SIZE,
  COMPUTE_STATIC_THREAD_MGMT_SE2, COMPUTE_STATIC_THREAD_MGMT_SE3, COMPUTE_RESTART_X, COMPUTE_RESTART_Y,
  COMPUTE_RESTART_Z, COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_MISC_RESERVED, COMPUTE_DISPATCH_ID,
  COMPUTE_THREADGROUP_ID, COMPUTE_RELAUNCH, COMPUTE_WAVE_RESTORE_ADDR_LO, COMPUTE_WAVE_RESTORE_ADDR_HI,
  COMPUTE_STATIC_THREAD_MGMT_SE4, COMPUTE_STATIC_THREAD_MGMT_SE5, COMPUTE_STATIC_THREAD_MGMT_SE6,
  COMPUTE_STATIC_THREAD_MGMT_SE7, COMPUTE_RESTART_X2, COMPUTE_RESTART_Y2, COMPUTE_RESTART_Z2,
  COMPUTE_SHADER_CHKSUM, COMPUTE_PGM_RSRC3, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1, COMPUTE_USER_DATA_2,
  COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5, COMPUTE_USER_DATA_6, COMPUTE_USER_DATA_7,
  COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11, COMPUTE_USER_DATA_12,
  COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14, COMPUTE_USER_DATA_15, COMPUTE_DISPATCH_END, COMPUTE_NOWHERE,
  SPI_GDBG_WAVE_CNTL, SPI_GDBG_TRAP_CONFIG, SPI_GDBG_PER_VMID_CNTL, SPI_GDBG_WAVE_CNTL3, SPI_GDBG_TRAP_DATA0,
  SPI_GDBG_TRAP_DATA1, SQ_CONFIG, SH_MEM_BASES, SH_MEM_CONFIG, SQ_SHADER_TBA_LO, SQ_SHADER_TBA_HI,
  SQ_SHADER_TMA_LO, SQ_SHADER_TMA_HI,
)
