"""Registers of the gfx12 graphics core (GC 12.0.0): one class a register, fields as the vendor names them.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_12_0_0_offset.h sha256 f8d6635bda0624f5c4d5a2690c41cbd17ae92e24cde1203d69cc314860011e93
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_12_0_0_sh_mask.h sha256 571b966b6b65668522cceab66ea4addab6ed5c6599e3dbfbc1ea6308b9cee339
    drivers/gpu/drm/amd/include/sienna_cichlid_ip_offset.h sha256 27ce382f43a5df3fffdfb5abdaafc85dc8beb940f68e6b10f52f5731068f3bbd
  GPUOpen-Drivers/pal commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29), licence MIT
    src/core/hw/gfxip/gfx12/chip/gfx12_merged_offset.h sha256 ce7bbb99c6f2db00bc8d4de52ca92c4e38f2f34fbc2bd28ddfe1f49d58349b48
Generator: tinyhw gen gc_12_0_0

Offsets are in dwords, with the segment's base. 166 of 201 stand at the same place in PAL; the others are in the
kernel's headers only. All fields default to 0. What an earlier class says letter for letter is imported.
"""
from __future__ import annotations

from tinyhw.autogen.gc_11_0_0 import (
  COMPUTE_DDID_INDEX, COMPUTE_DESTINATION_EN_SE0, COMPUTE_DESTINATION_EN_SE1, COMPUTE_DESTINATION_EN_SE2,
  COMPUTE_DESTINATION_EN_SE3, COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z, COMPUTE_DISPATCH_END,
  COMPUTE_DISPATCH_ID, COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_PKT_ADDR_LO,
  COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO, COMPUTE_NOWHERE, COMPUTE_NUM_THREAD_Z,
  COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_HI, COMPUTE_PGM_LO, COMPUTE_PIPELINESTAT_ENABLE, COMPUTE_RELAUNCH,
  COMPUTE_RELAUNCH2, COMPUTE_REQ_CTRL, COMPUTE_RESOURCE_LIMITS, COMPUTE_RESTART_X, COMPUTE_RESTART_Y,
  COMPUTE_RESTART_Z, COMPUTE_SHADER_CHKSUM, COMPUTE_START_X, COMPUTE_START_Y, COMPUTE_START_Z,
  COMPUTE_STATIC_THREAD_MGMT_SE0, COMPUTE_STATIC_THREAD_MGMT_SE1, COMPUTE_STATIC_THREAD_MGMT_SE2,
  COMPUTE_STATIC_THREAD_MGMT_SE3, COMPUTE_STATIC_THREAD_MGMT_SE4, COMPUTE_STATIC_THREAD_MGMT_SE5,
  COMPUTE_STATIC_THREAD_MGMT_SE6, COMPUTE_STATIC_THREAD_MGMT_SE7, COMPUTE_THREADGROUP_ID,
  COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_USER_ACCUM_0, COMPUTE_USER_ACCUM_1, COMPUTE_USER_ACCUM_2,
  COMPUTE_USER_ACCUM_3, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1, COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11,
  COMPUTE_USER_DATA_12, COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14, COMPUTE_USER_DATA_15, COMPUTE_USER_DATA_2,
  COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5, COMPUTE_USER_DATA_6, COMPUTE_USER_DATA_7,
  COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_VMID, COMPUTE_WAVE_RESTORE_ADDR_HI,
  COMPUTE_WAVE_RESTORE_ADDR_LO, CP_CPC_STATUS, CP_HQD_ACTIVE, CP_HQD_AQL_CONTROL, CP_HQD_ATOMIC0_PREOP_HI,
  CP_HQD_ATOMIC0_PREOP_LO, CP_HQD_ATOMIC1_PREOP_HI, CP_HQD_ATOMIC1_PREOP_LO, CP_HQD_CNTL_STACK_OFFSET,
  CP_HQD_CNTL_STACK_SIZE, CP_HQD_CTX_SAVE_BASE_ADDR_HI, CP_HQD_CTX_SAVE_BASE_ADDR_LO, CP_HQD_CTX_SAVE_CONTROL,
  CP_HQD_CTX_SAVE_SIZE, CP_HQD_DDID_DELTA_RPT_COUNT, CP_HQD_DDID_INFLIGHT_COUNT, CP_HQD_DDID_RPTR,
  CP_HQD_DDID_WPTR, CP_HQD_DEQUEUE_REQUEST, CP_HQD_DEQUEUE_STATUS, CP_HQD_DMA_OFFLOAD, CP_HQD_EOP_BASE_ADDR,
  CP_HQD_EOP_BASE_ADDR_HI, CP_HQD_EOP_EVENTS, CP_HQD_EOP_RPTR, CP_HQD_EOP_WPTR, CP_HQD_EOP_WPTR_MEM,
  CP_HQD_GDS_RESOURCE_STATE, CP_HQD_GFX_CONTROL, CP_HQD_GFX_STATUS, CP_HQD_HQ_CONTROL0, CP_HQD_HQ_CONTROL1,
  CP_HQD_HQ_SCHEDULER1, CP_HQD_HQ_STATUS1, CP_HQD_IB_BASE_ADDR, CP_HQD_IB_BASE_ADDR_HI, CP_HQD_IB_RPTR,
  CP_HQD_IQ_RPTR, CP_HQD_MSG_TYPE, CP_HQD_OFFLOAD, CP_HQD_PERSISTENT_STATE, CP_HQD_PIPE_PRIORITY,
  CP_HQD_PQ_BASE, CP_HQD_PQ_BASE_HI, CP_HQD_PQ_DOORBELL_CONTROL, CP_HQD_PQ_RPTR, CP_HQD_PQ_RPTR_REPORT_ADDR,
  CP_HQD_PQ_RPTR_REPORT_ADDR_HI, CP_HQD_PQ_WPTR_HI, CP_HQD_PQ_WPTR_LO, CP_HQD_PQ_WPTR_POLL_ADDR,
  CP_HQD_PQ_WPTR_POLL_ADDR_HI, CP_HQD_QUANTUM, CP_HQD_QUEUE_PRIORITY, CP_HQD_SUSPEND_CNTL_STACK_DW_CNT,
  CP_HQD_SUSPEND_CNTL_STACK_OFFSET, CP_HQD_SUSPEND_WG_STATE_OFFSET, CP_HQD_VMID, CP_HQD_WG_STATE_OFFSET,
  CP_MQD_BASE_ADDR, CP_MQD_BASE_ADDR_HI, RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB,
  RLC_GPU_CLOCK_COUNT_LSB_1, RLC_GPU_CLOCK_COUNT_LSB_2, RLC_GPU_CLOCK_COUNT_MSB, RLC_GPU_CLOCK_COUNT_MSB_1,
  RLC_GPU_CLOCK_COUNT_MSB_2, RLC_GPU_CLOCK_COUNT_SPM_LSB, RLC_GPU_CLOCK_COUNT_SPM_MSB, SH_MEM_BASES,
  SPI_CONFIG_CNTL, SPI_GDBG_PER_VMID_CNTL, SPI_GDBG_TRAP_CONFIG, SPI_GDBG_WAVE_CNTL3, SQC_CACHES,
  SQ_SHADER_TBA_HI, SQ_SHADER_TBA_LO, SQ_SHADER_TMA_HI, SQ_SHADER_TMA_LO, SQ_WATCH0_ADDR_H, SQ_WATCH0_ADDR_L,
  SQ_WATCH0_CNTL, SQ_WATCH1_ADDR_H, SQ_WATCH1_ADDR_L, SQ_WATCH1_CNTL, SQ_WATCH2_ADDR_H, SQ_WATCH2_ADDR_L,
  SQ_WATCH2_CNTL, SQ_WATCH3_ADDR_H, SQ_WATCH3_ADDR_L, SQ_WATCH3_CNTL, TA_CS_BC_BASE_ADDR, TA_CS_BC_BASE_ADDR_HI,
)
from tinyhw.core.layout import Register, bits

GC_BASE = (0x1260, 0xa000, 0x1c000, 0x2402c00, 0x0)  # bases of the block's segments, in dwords


class GRBM_STATUS2(Register, offset=0x2002):
  ME0PIPE1_CMDFIFO_AVAIL: int = bits(0, 3, 0, default=0)
  ME0PIPE1_CF_RQ_PENDING: int = bits(0, 4, 4, default=0)
  ME0PIPE1_PF_RQ_PENDING: int = bits(0, 5, 5, default=0)
  ME1PIPE0_RQ_PENDING: int = bits(0, 6, 6, default=0)
  ME1PIPE1_RQ_PENDING: int = bits(0, 7, 7, default=0)
  RLC_RQ_PENDING: int = bits(0, 14, 14, default=0)
  UTCL2_BUSY: int = bits(0, 15, 15, default=0)
  EA_BUSY: int = bits(0, 16, 16, default=0)
  UTCL2_RQ_PENDING: int = bits(0, 18, 18, default=0)
  SDMA_SCH_RQ_PENDING: int = bits(0, 19, 19, default=0)
  EA_LINK_BUSY: int = bits(0, 20, 20, default=0)
  SDMA_BUSY: int = bits(0, 21, 21, default=0)
  SDMA0_RQ_PENDING: int = bits(0, 22, 22, default=0)
  SDMA1_RQ_PENDING: int = bits(0, 23, 23, default=0)
  RLC_BUSY: int = bits(0, 26, 26, default=0)
  TCP_BUSY: int = bits(0, 27, 27, default=0)
  CPF_BUSY: int = bits(0, 28, 28, default=0)
  CPC_BUSY: int = bits(0, 29, 29, default=0)
  CPG_BUSY: int = bits(0, 30, 30, default=0)


class GRBM_STATUS(Register, offset=0x2004):
  ME0PIPE0_CMDFIFO_AVAIL: int = bits(0, 3, 0, default=0)
  SDMA_RQ_PENDING: int = bits(0, 6, 6, default=0)
  ME0PIPE0_CF_RQ_PENDING: int = bits(0, 7, 7, default=0)
  ME0PIPE0_PF_RQ_PENDING: int = bits(0, 8, 8, default=0)
  SC_CLEAN: int = bits(0, 11, 11, default=0)
  DB_CLEAN: int = bits(0, 12, 12, default=0)
  CB_CLEAN: int = bits(0, 13, 13, default=0)
  TA_BUSY: int = bits(0, 14, 14, default=0)
  GE_BUSY_NO_DMA: int = bits(0, 16, 16, default=0)
  SX_BUSY: int = bits(0, 20, 20, default=0)
  GE_BUSY: int = bits(0, 21, 21, default=0)
  SPI_BUSY: int = bits(0, 22, 22, default=0)
  BCI_BUSY: int = bits(0, 23, 23, default=0)
  SC_BUSY: int = bits(0, 24, 24, default=0)
  PA_BUSY: int = bits(0, 25, 25, default=0)
  DB_BUSY: int = bits(0, 26, 26, default=0)
  ANY_ACTIVE: int = bits(0, 27, 27, default=0)
  CP_COHERENCY_BUSY: int = bits(0, 28, 28, default=0)
  CP_BUSY: int = bits(0, 29, 29, default=0)
  CB_BUSY: int = bits(0, 30, 30, default=0)
  GUI_ACTIVE: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE0(Register, offset=0x2005):
  SC_CLEAN: int = bits(0, 0, 0, default=0)
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1XCC_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE1(Register, offset=0x2006):
  SC_CLEAN: int = bits(0, 0, 0, default=0)
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1XCC_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS3(Register, offset=0x2007):
  GRBM_RLC_INTR_CREDIT_PENDING: int = bits(0, 5, 5, default=0)
  GRBM_CPF_INTR_CREDIT_PENDING: int = bits(0, 7, 7, default=0)
  MESPIPE0_RQ_PENDING: int = bits(0, 8, 8, default=0)
  MESPIPE1_RQ_PENDING: int = bits(0, 9, 9, default=0)
  CH_BUSY: int = bits(0, 14, 14, default=0)
  GL2CC_BUSY: int = bits(0, 15, 15, default=0)
  GL1CC_BUSY: int = bits(0, 16, 16, default=0)
  PC_BUSY: int = bits(0, 26, 26, default=0)
  GL1XCC_BUSY: int = bits(0, 27, 27, default=0)
  UTCL1_BUSY: int = bits(0, 30, 30, default=0)
  PMM_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE2(Register, offset=0x200e):
  SC_CLEAN: int = bits(0, 0, 0, default=0)
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1XCC_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE3(Register, offset=0x200f):
  SC_CLEAN: int = bits(0, 0, 0, default=0)
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1XCC_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


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
  PING_PONG_EN: int = bits(0, 12, 12, default=0)
  TUNNEL_ENABLE: int = bits(0, 13, 13, default=0)
  RESTORE: int = bits(0, 14, 14, default=0)
  CS_W32_EN: int = bits(0, 15, 15, default=0)
  AMP_SHADER_EN: int = bits(0, 16, 16, default=0)
  DISABLE_DISP_PREMPT_EN: int = bits(0, 17, 17, default=0)
  INTERLEAVE_2D_EN: int = bits(0, 18, 18, default=0)
  TTRACE_QUEUE_ID: int = bits(0, 31, 29, default=0)


class COMPUTE_NUM_THREAD_X(Register, offset=0x2e07):
  NUM_THREAD_FULL: int = bits(0, 12, 0, default=0)
  INTERLEAVE_BITS_X: int = bits(0, 15, 13, default=0)
  NUM_THREAD_PARTIAL: int = bits(0, 31, 16, default=0)


class COMPUTE_NUM_THREAD_Y(Register, offset=0x2e08):
  NUM_THREAD_FULL: int = bits(0, 12, 0, default=0)
  INTERLEAVE_BITS_Y: int = bits(0, 15, 13, default=0)
  NUM_THREAD_PARTIAL: int = bits(0, 31, 16, default=0)


class COMPUTE_PGM_RSRC1(Register, offset=0x2e12):
  VGPRS: int = bits(0, 5, 0, default=0)
  SGPRS: int = bits(0, 9, 6, default=0)
  PRIORITY: int = bits(0, 11, 10, default=0)
  FLOAT_MODE: int = bits(0, 19, 12, default=0)
  PRIV: int = bits(0, 20, 20, default=0)
  WG_RR_EN: int = bits(0, 21, 21, default=0)
  DEBUG_MODE: int = bits(0, 22, 22, default=0)
  DISABLE_PERF: int = bits(0, 23, 23, default=0)
  BULKY: int = bits(0, 24, 24, default=0)
  CDBG_USER: int = bits(0, 25, 25, default=0)
  FP16_OVFL: int = bits(0, 26, 26, default=0)
  WGP_MODE: int = bits(0, 29, 29, default=0)
  MEM_ORDERED: int = bits(0, 30, 30, default=0)
  FWD_PROGRESS: int = bits(0, 31, 31, default=0)


class COMPUTE_PGM_RSRC2(Register, offset=0x2e13):
  SCRATCH_EN: int = bits(0, 0, 0, default=0)
  USER_SGPR: int = bits(0, 5, 1, default=0)
  DYNAMIC_VGPR: int = bits(0, 6, 6, default=0)
  TGID_X_EN: int = bits(0, 7, 7, default=0)
  TGID_Y_EN: int = bits(0, 8, 8, default=0)
  TGID_Z_EN: int = bits(0, 9, 9, default=0)
  TG_SIZE_EN: int = bits(0, 10, 10, default=0)
  TIDIG_COMP_CNT: int = bits(0, 12, 11, default=0)
  EXCP_EN_MSB: int = bits(0, 14, 13, default=0)
  LDS_SIZE: int = bits(0, 23, 15, default=0)
  EXCP_EN: int = bits(0, 30, 24, default=0)
  WGP_TAKEOVER: int = bits(0, 31, 31, default=0)


class COMPUTE_TMPRING_SIZE(Register, offset=0x2e18):
  WAVES: int = bits(0, 11, 0, default=0)
  WAVESIZE: int = bits(0, 29, 12, default=0)


class COMPUTE_MISC_RESERVED(Register, offset=0x2e1f):
  SEND_SEID: int = bits(0, 3, 0, default=0)
  RESERVED4: int = bits(0, 4, 4, default=0)
  WAVE_ID_BASE: int = bits(0, 16, 5, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE8(Register, offset=0x2e23):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_PGM_RSRC3(Register, offset=0x2e28):
  SHARED_VGPR_CNT: int = bits(0, 3, 0, default=0)
  INST_PREF_SIZE: int = bits(0, 11, 4, default=0)
  GLG_EN: int = bits(0, 13, 13, default=0)
  IMAGE_OP: int = bits(0, 31, 31, default=0)


class COMPUTE_DISPATCH_INTERLEAVE(Register, offset=0x2e2f):
  INTERLEAVE_1D: int = bits(0, 9, 0, default=0)
  INTERLEAVE_2D_X_SIZE: int = bits(0, 19, 16, default=0)
  INTERLEAVE_2D_Y_SIZE: int = bits(0, 27, 24, default=0)


class COMPUTE_PRESCALED_DIM_X(Register, offset=0x2e35):
  SIZE: int = bits(0, 31, 0, default=0)


class COMPUTE_PRESCALED_DIM_Y(Register, offset=0x2e36):
  SIZE: int = bits(0, 31, 0, default=0)


class COMPUTE_PRESCALED_DIM_Z(Register, offset=0x2e37):
  SIZE: int = bits(0, 31, 0, default=0)


class COMPUTE_DISPATCH_TUNNEL(Register, offset=0x2e7d):
  OFF_DELAY: int = bits(0, 12, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_CNTL(Register, offset=0x282c):
  CLEAR_PROTECTION_FAULT_STATUS_ADDR: int = bits(0, 0, 0, default=0)
  ALLOW_SUBSEQUENT_PROTECTION_FAULT_STATUS_ADDR_UPDATES: int = bits(0, 1, 1, default=0)
  RANGE_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 2, 2, default=0)
  PDE0_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 3, 3, default=0)
  PDE1_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 4, 4, default=0)
  PDE2_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 5, 5, default=0)
  TRANSLATE_FURTHER_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 6, 6, default=0)
  NACK_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 7, 7, default=0)
  DUMMY_PAGE_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 8, 8, default=0)
  VALID_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 9, 9, default=0)
  READ_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 10, 10, default=0)
  WRITE_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 11, 11, default=0)
  EXECUTE_PROTECTION_FAULT_ENABLE_DEFAULT: int = bits(0, 12, 12, default=0)
  CLIENT_ID_NO_RETRY_FAULT_INTERRUPT: int = bits(0, 28, 13, default=0)
  OTHER_CLIENT_ID_NO_RETRY_FAULT_INTERRUPT: int = bits(0, 29, 29, default=0)
  CRASH_ON_NO_RETRY_FAULT: int = bits(0, 30, 30, default=0)
  CRASH_ON_RETRY_FAULT: int = bits(0, 31, 31, default=0)


class GCVM_L2_PROTECTION_FAULT_CNTL2(Register, offset=0x282d):
  CLIENT_ID_PRT_FAULT_INTERRUPT: int = bits(0, 15, 0, default=0)
  OTHER_CLIENT_ID_PRT_FAULT_INTERRUPT: int = bits(0, 16, 16, default=0)
  ACTIVE_PAGE_MIGRATION_PTE: int = bits(0, 17, 17, default=0)
  ACTIVE_PAGE_MIGRATION_PTE_READ_RETRY: int = bits(0, 18, 18, default=0)
  ENABLE_RETRY_FAULT_INTERRUPT: int = bits(0, 19, 19, default=0)


class GCVM_L2_PROTECTION_FAULT_MM_CNTL3(Register, offset=0x282e):
  VML1_READ_CLIENT_ID_NO_RETRY_FAULT_INTERRUPT: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_MM_CNTL4(Register, offset=0x282f):
  VML1_WRITE_CLIENT_ID_NO_RETRY_FAULT_INTERRUPT: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_STATUS_LO32(Register, offset=0x2830):
  MORE_FAULTS: int = bits(0, 0, 0, default=0)
  WALKER_ERROR: int = bits(0, 3, 1, default=0)
  PERMISSION_FAULTS: int = bits(0, 7, 4, default=0)
  MAPPING_ERROR: int = bits(0, 8, 8, default=0)
  CID: int = bits(0, 17, 9, default=0)
  RW: int = bits(0, 18, 18, default=0)
  ATOMIC: int = bits(0, 19, 19, default=0)
  VMID: int = bits(0, 23, 20, default=0)
  VF: int = bits(0, 24, 24, default=0)
  VFID: int = bits(0, 29, 25, default=0)
  PRT: int = bits(0, 30, 30, default=0)
  UCE: int = bits(0, 31, 31, default=0)


class GCVM_L2_PROTECTION_FAULT_STATUS_HI32(Register, offset=0x2831):
  FED: int = bits(0, 0, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_ADDR_LO32(Register, offset=0x2832):
  LOGICAL_PAGE_ADDR_LO32: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_ADDR_HI32(Register, offset=0x2833):
  LOGICAL_PAGE_ADDR_HI4: int = bits(0, 3, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_LO32(Register, offset=0x2834):
  PHYSICAL_PAGE_ADDR_LO32: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_HI32(Register, offset=0x2835):
  PHYSICAL_PAGE_ADDR_HI4: int = bits(0, 3, 0, default=0)


class CP_HQD_PQ_CONTROL(Register, offset=0x321a):
  QUEUE_SIZE: int = bits(0, 5, 0, default=0)
  WPTR_CARRY: int = bits(0, 6, 6, default=0)
  RPTR_CARRY: int = bits(0, 7, 7, default=0)
  RPTR_BLOCK_SIZE: int = bits(0, 13, 8, default=0)
  QUEUE_FULL_EN: int = bits(0, 14, 14, default=0)
  PQ_EMPTY: int = bits(0, 15, 15, default=0)
  SLOT_BASED_WPTR: int = bits(0, 19, 18, default=0)
  MIN_AVAIL_SIZE: int = bits(0, 21, 20, default=0)
  TMZ: int = bits(0, 22, 22, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 25, 24, default=0)
  NO_UPDATE_RPTR: int = bits(0, 27, 27, default=0)
  UNORD_DISPATCH: int = bits(0, 28, 28, default=0)
  TUNNEL_DISPATCH: int = bits(0, 29, 29, default=0)
  PRIV_STATE: int = bits(0, 30, 30, default=0)
  KMD_QUEUE: int = bits(0, 31, 31, default=0)


class CP_HQD_IB_CONTROL(Register, offset=0x321e):
  IB_SIZE: int = bits(0, 19, 0, default=0)
  MIN_IB_AVAIL_SIZE: int = bits(0, 21, 20, default=0)
  IB_EXE_DISABLE: int = bits(0, 23, 23, default=0)
  IB_CACHE_POLICY: int = bits(0, 25, 24, default=0)
  IB_PRIV_STATE: int = bits(0, 30, 30, default=0)
  PROCESSING_IB: int = bits(0, 31, 31, default=0)


class CP_HQD_IQ_TIMER(Register, offset=0x321f):
  WAIT_TIME: int = bits(0, 7, 0, default=0)
  RETRY_TYPE: int = bits(0, 10, 8, default=0)
  IMMEDIATE_EXPIRE: int = bits(0, 11, 11, default=0)
  INTERRUPT_TYPE: int = bits(0, 13, 12, default=0)
  CLOCK_COUNT: int = bits(0, 15, 14, default=0)
  INTERRUPT_SIZE: int = bits(0, 21, 16, default=0)
  QUANTUM_TIMER: int = bits(0, 22, 22, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 25, 24, default=0)
  QUEUE_TYPE: int = bits(0, 27, 27, default=0)
  REARM_TIMER: int = bits(0, 28, 28, default=0)
  PROCESS_IQ_EN: int = bits(0, 29, 29, default=0)
  PROCESSING_IQ: int = bits(0, 30, 30, default=0)
  ACTIVE: int = bits(0, 31, 31, default=0)


class CP_HQD_HQ_SCHEDULER0(Register, offset=0x3229):
  CWSR: int = bits(0, 0, 0, default=0)
  SAVE_STATUS: int = bits(0, 1, 1, default=0)
  RSRV: int = bits(0, 2, 2, default=0)
  STATIC_QUEUE: int = bits(0, 5, 3, default=0)
  QUEUE_RUN_ONCE: int = bits(0, 6, 6, default=0)
  SCRATCH_RAM_INIT: int = bits(0, 7, 7, default=0)
  TCL2_DIRTY: int = bits(0, 8, 8, default=0)
  C_INHERIT_VMID: int = bits(0, 9, 9, default=0)
  QUEUE_SCHEDULER_TYPE: int = bits(0, 12, 10, default=0)
  C_QUEUE_USE_GWS: int = bits(0, 13, 13, default=0)
  C_QUEUE_DEBUG_EN: int = bits(0, 14, 14, default=0)
  QUEUE_SLOT_CONNECTED: int = bits(0, 15, 15, default=0)
  MES_INTERRUPT_ENABLED: int = bits(0, 20, 20, default=0)
  MES_INTERRUPT_PIPE: int = bits(0, 22, 21, default=0)
  CONCURRENT_PROCESS_COUNT: int = bits(0, 27, 24, default=0)
  QUEUE_IDLE: int = bits(0, 30, 30, default=0)
  DB_UPDATED_MSG_EN: int = bits(0, 31, 31, default=0)


class CP_HQD_HQ_STATUS0(Register, offset=0x3229):
  CWSR: int = bits(0, 0, 0, default=0)
  SAVE_STATUS: int = bits(0, 1, 1, default=0)
  RSRV: int = bits(0, 2, 2, default=0)
  STATIC_QUEUE: int = bits(0, 5, 3, default=0)
  QUEUE_RUN_ONCE: int = bits(0, 6, 6, default=0)
  SCRATCH_RAM_INIT: int = bits(0, 7, 7, default=0)
  TCL2_DIRTY: int = bits(0, 8, 8, default=0)
  C_INHERIT_VMID: int = bits(0, 9, 9, default=0)
  QUEUE_SCHEDULER_TYPE: int = bits(0, 12, 10, default=0)
  C_QUEUE_USE_GWS: int = bits(0, 13, 13, default=0)
  C_QUEUE_DEBUG_EN: int = bits(0, 14, 14, default=0)
  QUEUE_SLOT_CONNECTED: int = bits(0, 15, 15, default=0)
  MES_INTERRUPT_ENABLED: int = bits(0, 20, 20, default=0)
  MES_INTERRUPT_PIPE: int = bits(0, 22, 21, default=0)
  CONCURRENT_PROCESS_COUNT: int = bits(0, 27, 24, default=0)
  QUEUE_IDLE: int = bits(0, 30, 30, default=0)
  DB_UPDATED_MSG_EN: int = bits(0, 31, 31, default=0)


class CP_MQD_CONTROL(Register, offset=0x322b):
  VMID: int = bits(0, 3, 0, default=0)
  PRIV_STATE: int = bits(0, 8, 8, default=0)
  PROCESSING_MQD: int = bits(0, 12, 12, default=0)
  PROCESSING_MQD_EN: int = bits(0, 13, 13, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 25, 24, default=0)


class CP_HQD_EOP_CONTROL(Register, offset=0x3230):
  EOP_SIZE: int = bits(0, 5, 0, default=0)
  PROCESSING_EOP: int = bits(0, 8, 8, default=0)
  PROCESS_EOP_EN: int = bits(0, 12, 12, default=0)
  PROCESSING_EOPIB: int = bits(0, 13, 13, default=0)
  PROCESS_EOPIB_EN: int = bits(0, 14, 14, default=0)
  HALT_FETCHER: int = bits(0, 21, 21, default=0)
  HALT_FETCHER_EN: int = bits(0, 22, 22, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 25, 24, default=0)


class CP_HQD_ERROR(Register, offset=0x323c):
  EDC_ERROR_ID: int = bits(0, 3, 0, default=0)
  SUA_ERROR: int = bits(0, 4, 4, default=0)
  AQL_ERROR: int = bits(0, 5, 5, default=0)
  PQ_UTCL1_ERROR: int = bits(0, 8, 8, default=0)
  IB_UTCL1_ERROR: int = bits(0, 9, 9, default=0)
  EOP_UTCL1_ERROR: int = bits(0, 10, 10, default=0)
  IQ_UTCL1_ERROR: int = bits(0, 11, 11, default=0)
  RRPT_UTCL1_ERROR: int = bits(0, 12, 12, default=0)
  WPP_UTCL1_ERROR: int = bits(0, 13, 13, default=0)
  DMA_SRC_UTCL1_ERROR: int = bits(0, 15, 15, default=0)
  DMA_DST_UTCL1_ERROR: int = bits(0, 16, 16, default=0)
  SR_UTCL1_ERROR: int = bits(0, 17, 17, default=0)
  QU_UTCL1_ERROR: int = bits(0, 18, 18, default=0)
  TC_UTCL1_ERROR: int = bits(0, 19, 19, default=0)


class CP_MEC_CNTL(Register, offset=0xa802):
  MEC_ME1_PIPE0_RESET: int = bits(0, 16, 16, default=0)
  MEC_ME1_PIPE1_RESET: int = bits(0, 17, 17, default=0)
  MEC_INVALIDATE_ICACHE: int = bits(0, 27, 27, default=0)
  MEC_ME1_HALT: int = bits(0, 30, 30, default=0)
  MEC_ME1_STEP: int = bits(0, 31, 31, default=0)


class GRBM_GFX_INDEX(Register, offset=0xc200):
  INSTANCE_INDEX: int = bits(0, 6, 0, default=0)
  SA_INDEX: int = bits(0, 9, 8, default=0)
  SE_INDEX: int = bits(0, 19, 16, default=0)
  SA_BROADCAST_WRITES: int = bits(0, 29, 29, default=0)
  INSTANCE_BROADCAST_WRITES: int = bits(0, 30, 30, default=0)
  SE_BROADCAST_WRITES: int = bits(0, 31, 31, default=0)


class SQ_CONFIG(Register, offset=0x2300):
  ECO_SPARE: int = bits(0, 7, 0, default=0)
  NEW_TRANS_ARB_SCHEME: int = bits(0, 8, 8, default=0)
  DISABLE_VMEM_EXEC_ZERO_SKIP: int = bits(0, 9, 9, default=0)
  DISABLE_SGPR_RD_KILL: int = bits(0, 10, 10, default=0)
  ENABLE_HIPRIO_ON_EXP_RDY_GS: int = bits(0, 18, 18, default=0)
  PRIO_VAL_ON_EXP_RDY_GS: int = bits(0, 20, 19, default=0)
  WCLK_HYSTERESIS_CNT: int = bits(0, 22, 21, default=0)
  DISABLE_ILLEGAL_OPCODE_DETECTION: int = bits(0, 23, 23, default=0)
  DISABLE_ILLEGAL_TO_NOP_DETECTION: int = bits(0, 24, 24, default=0)
  DISABLE_ILLEGAL_EXPORT_DETECTION: int = bits(0, 25, 25, default=0)
  DISABLE_ILLEGAL_CLAUSE_DETECTION: int = bits(0, 26, 26, default=0)
  DISABLE_END_CLAUSE_TX: int = bits(0, 27, 27, default=0)
  DISABLE_SP_SINGLE_ISSUE_WAVE64_TRANS: int = bits(0, 30, 30, default=0)
  DISABLE_ISC_PREFETCH_LIMITER: int = bits(0, 31, 31, default=0)


class SH_MEM_CONFIG(Register, offset=0xa9e4):
  ADDRESS_MODE: int = bits(0, 0, 0, default=0)
  ALIGNMENT_MODE: int = bits(0, 3, 2, default=0)
  F8_MODE: int = bits(0, 8, 8, default=0)
  INITIAL_INST_PREFETCH: int = bits(0, 15, 14, default=0)
  ICACHE_USE_GL1: int = bits(0, 18, 18, default=0)


class SPI_GDBG_WAVE_CNTL(Register, offset=0xb943):
  STALL_RA: int = bits(0, 0, 0, default=0)
  STALL_LAUNCH: int = bits(0, 1, 1, default=0)
  STALL_STATUS: int = bits(0, 2, 2, default=0)


REGISTERS: tuple[type[Register], ...] = (
  GRBM_STATUS2, GRBM_STATUS, GRBM_STATUS_SE0, GRBM_STATUS_SE1, GRBM_STATUS3, GRBM_STATUS_SE2, GRBM_STATUS_SE3,
  CP_CPC_STATUS, COMPUTE_DISPATCH_INITIATOR, COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z, COMPUTE_START_X,
  COMPUTE_START_Y, COMPUTE_START_Z, COMPUTE_NUM_THREAD_X, COMPUTE_NUM_THREAD_Y, COMPUTE_NUM_THREAD_Z,
  COMPUTE_PIPELINESTAT_ENABLE, COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_LO, COMPUTE_PGM_HI,
  COMPUTE_DISPATCH_PKT_ADDR_LO, COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO,
  COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_PGM_RSRC1, COMPUTE_PGM_RSRC2, COMPUTE_VMID, COMPUTE_RESOURCE_LIMITS,
  COMPUTE_DESTINATION_EN_SE0, COMPUTE_STATIC_THREAD_MGMT_SE0, COMPUTE_DESTINATION_EN_SE1,
  COMPUTE_STATIC_THREAD_MGMT_SE1, COMPUTE_TMPRING_SIZE, COMPUTE_DESTINATION_EN_SE2,
  COMPUTE_STATIC_THREAD_MGMT_SE2, COMPUTE_DESTINATION_EN_SE3, COMPUTE_STATIC_THREAD_MGMT_SE3, COMPUTE_RESTART_X,
  COMPUTE_RESTART_Y, COMPUTE_RESTART_Z, COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_MISC_RESERVED, COMPUTE_DISPATCH_ID,
  COMPUTE_THREADGROUP_ID, COMPUTE_REQ_CTRL, COMPUTE_STATIC_THREAD_MGMT_SE8, COMPUTE_USER_ACCUM_0,
  COMPUTE_USER_ACCUM_1, COMPUTE_USER_ACCUM_2, COMPUTE_USER_ACCUM_3, COMPUTE_PGM_RSRC3, COMPUTE_DDID_INDEX,
  COMPUTE_SHADER_CHKSUM, COMPUTE_STATIC_THREAD_MGMT_SE4, COMPUTE_STATIC_THREAD_MGMT_SE5,
  COMPUTE_STATIC_THREAD_MGMT_SE6, COMPUTE_STATIC_THREAD_MGMT_SE7, COMPUTE_DISPATCH_INTERLEAVE, COMPUTE_RELAUNCH,
  COMPUTE_WAVE_RESTORE_ADDR_LO, COMPUTE_WAVE_RESTORE_ADDR_HI, COMPUTE_RELAUNCH2, COMPUTE_PRESCALED_DIM_X,
  COMPUTE_PRESCALED_DIM_Y, COMPUTE_PRESCALED_DIM_Z, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1,
  COMPUTE_USER_DATA_2, COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5, COMPUTE_USER_DATA_6,
  COMPUTE_USER_DATA_7, COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11,
  COMPUTE_USER_DATA_12, COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14, COMPUTE_USER_DATA_15,
  COMPUTE_DISPATCH_TUNNEL, COMPUTE_DISPATCH_END, COMPUTE_NOWHERE, GCVM_L2_PROTECTION_FAULT_CNTL,
  GCVM_L2_PROTECTION_FAULT_CNTL2, GCVM_L2_PROTECTION_FAULT_MM_CNTL3, GCVM_L2_PROTECTION_FAULT_MM_CNTL4,
  GCVM_L2_PROTECTION_FAULT_STATUS_LO32, GCVM_L2_PROTECTION_FAULT_STATUS_HI32,
  GCVM_L2_PROTECTION_FAULT_ADDR_LO32, GCVM_L2_PROTECTION_FAULT_ADDR_HI32,
  GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_LO32, GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_HI32, CP_HQD_GFX_CONTROL,
  CP_HQD_GFX_STATUS, CP_MQD_BASE_ADDR, CP_MQD_BASE_ADDR_HI, CP_HQD_ACTIVE, CP_HQD_VMID, CP_HQD_PERSISTENT_STATE,
  CP_HQD_PIPE_PRIORITY, CP_HQD_QUEUE_PRIORITY, CP_HQD_QUANTUM, CP_HQD_PQ_BASE, CP_HQD_PQ_BASE_HI,
  CP_HQD_PQ_RPTR, CP_HQD_PQ_RPTR_REPORT_ADDR, CP_HQD_PQ_RPTR_REPORT_ADDR_HI, CP_HQD_PQ_WPTR_POLL_ADDR,
  CP_HQD_PQ_WPTR_POLL_ADDR_HI, CP_HQD_PQ_DOORBELL_CONTROL, CP_HQD_PQ_CONTROL, CP_HQD_IB_BASE_ADDR,
  CP_HQD_IB_BASE_ADDR_HI, CP_HQD_IB_RPTR, CP_HQD_IB_CONTROL, CP_HQD_IQ_TIMER, CP_HQD_IQ_RPTR,
  CP_HQD_DEQUEUE_REQUEST, CP_HQD_DMA_OFFLOAD, CP_HQD_OFFLOAD, CP_HQD_MSG_TYPE, CP_HQD_ATOMIC0_PREOP_LO,
  CP_HQD_ATOMIC0_PREOP_HI, CP_HQD_ATOMIC1_PREOP_LO, CP_HQD_ATOMIC1_PREOP_HI, CP_HQD_HQ_SCHEDULER0,
  CP_HQD_HQ_STATUS0, CP_HQD_HQ_CONTROL0, CP_HQD_HQ_SCHEDULER1, CP_MQD_CONTROL, CP_HQD_HQ_STATUS1,
  CP_HQD_HQ_CONTROL1, CP_HQD_EOP_BASE_ADDR, CP_HQD_EOP_BASE_ADDR_HI, CP_HQD_EOP_CONTROL, CP_HQD_EOP_RPTR,
  CP_HQD_EOP_WPTR, CP_HQD_EOP_EVENTS, CP_HQD_CTX_SAVE_BASE_ADDR_LO, CP_HQD_CTX_SAVE_BASE_ADDR_HI,
  CP_HQD_CTX_SAVE_CONTROL, CP_HQD_CNTL_STACK_OFFSET, CP_HQD_CNTL_STACK_SIZE, CP_HQD_WG_STATE_OFFSET,
  CP_HQD_CTX_SAVE_SIZE, CP_HQD_GDS_RESOURCE_STATE, CP_HQD_ERROR, CP_HQD_EOP_WPTR_MEM, CP_HQD_AQL_CONTROL,
  CP_HQD_PQ_WPTR_LO, CP_HQD_PQ_WPTR_HI, CP_HQD_SUSPEND_CNTL_STACK_OFFSET, CP_HQD_SUSPEND_CNTL_STACK_DW_CNT,
  CP_HQD_SUSPEND_WG_STATE_OFFSET, CP_HQD_DDID_RPTR, CP_HQD_DDID_WPTR, CP_HQD_DDID_INFLIGHT_COUNT,
  CP_HQD_DDID_DELTA_RPT_COUNT, CP_HQD_DEQUEUE_STATUS, CP_MEC_CNTL, GRBM_GFX_INDEX, RLC_GPU_CLOCK_COUNT_LSB,
  RLC_GPU_CLOCK_COUNT_MSB, RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB_2, RLC_GPU_CLOCK_COUNT_MSB_2,
  RLC_GPU_CLOCK_COUNT_LSB_1, RLC_GPU_CLOCK_COUNT_MSB_1, RLC_GPU_CLOCK_COUNT_SPM_LSB,
  RLC_GPU_CLOCK_COUNT_SPM_MSB, SQ_CONFIG, SQ_WATCH0_ADDR_H, SQ_WATCH0_ADDR_L, SQ_WATCH0_CNTL, SQ_WATCH1_ADDR_H,
  SQ_WATCH1_ADDR_L, SQ_WATCH1_CNTL, SQ_WATCH2_ADDR_H, SQ_WATCH2_ADDR_L, SQ_WATCH2_CNTL, SQ_WATCH3_ADDR_H,
  SQ_WATCH3_ADDR_L, SQ_WATCH3_CNTL, SPI_GDBG_PER_VMID_CNTL, SH_MEM_BASES, SH_MEM_CONFIG, SQ_SHADER_TBA_LO,
  SQ_SHADER_TBA_HI, SQ_SHADER_TMA_LO, SQ_SHADER_TMA_HI, SPI_GDBG_WAVE_CNTL, SPI_GDBG_TRAP_CONFIG,
  SPI_GDBG_WAVE_CNTL3, SQC_CACHES, TA_CS_BC_BASE_ADDR, TA_CS_BC_BASE_ADDR_HI, SPI_CONFIG_CNTL,
)
