"""Registers of the gfx11 graphics core (GC 11.0.0): one class a register, fields as the vendor names them.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_11_0_0_offset.h sha256 a2394677509a3415a9e6307d876cae9cd654a99275ab40b3027d983da26801f2
    drivers/gpu/drm/amd/include/asic_reg/gc/gc_11_0_0_sh_mask.h sha256 83dd0060886da2927e3f722b992af208e4d41999b0740123a770a6561f060c94
    drivers/gpu/drm/amd/include/sienna_cichlid_ip_offset.h sha256 27ce382f43a5df3fffdfb5abdaafc85dc8beb940f68e6b10f52f5731068f3bbd
  GPUOpen-Drivers/pal commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29), licence MIT
    src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_offset.h sha256 5c5462b0404f278f6726837f0116bfd5abdfea2737687d2a0de530b9051328e5
Generator: tinyhw gen gc

Offsets are in dwords, with the segment's base. 95 of 199 stand at the same place in PAL; the others are in the
kernel's headers only. All fields default to 0.
"""
from __future__ import annotations

from tinyhw.core.layout import Register, bits

GC_BASE = (0x1260, 0xa000, 0x1c000, 0x2402c00, 0x0)  # bases of the block's segments, in dwords


class GRBM_STATUS2(Register, offset=0x2002):
  ME0PIPE1_CMDFIFO_AVAIL: int = bits(0, 3, 0, default=0)
  ME0PIPE1_CF_RQ_PENDING: int = bits(0, 4, 4, default=0)
  ME0PIPE1_PF_RQ_PENDING: int = bits(0, 5, 5, default=0)
  ME1PIPE0_RQ_PENDING: int = bits(0, 6, 6, default=0)
  ME1PIPE1_RQ_PENDING: int = bits(0, 7, 7, default=0)
  ME1PIPE2_RQ_PENDING: int = bits(0, 8, 8, default=0)
  ME1PIPE3_RQ_PENDING: int = bits(0, 9, 9, default=0)
  RLC_RQ_PENDING: int = bits(0, 14, 14, default=0)
  UTCL2_BUSY: int = bits(0, 15, 15, default=0)
  EA_BUSY: int = bits(0, 16, 16, default=0)
  RMI_BUSY: int = bits(0, 17, 17, default=0)
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
  GDS_DMA_RQ_PENDING: int = bits(0, 9, 9, default=0)
  DB_CLEAN: int = bits(0, 12, 12, default=0)
  CB_CLEAN: int = bits(0, 13, 13, default=0)
  TA_BUSY: int = bits(0, 14, 14, default=0)
  GDS_BUSY: int = bits(0, 15, 15, default=0)
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
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1H_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  SEDC_BUSY: int = bits(0, 8, 8, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
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
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1H_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  SEDC_BUSY: int = bits(0, 8, 8, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
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
  PH_BUSY: int = bits(0, 13, 13, default=0)
  CH_BUSY: int = bits(0, 14, 14, default=0)
  GL2CC_BUSY: int = bits(0, 15, 15, default=0)
  GL1CC_BUSY: int = bits(0, 16, 16, default=0)
  SEDC_BUSY: int = bits(0, 25, 25, default=0)
  PC_BUSY: int = bits(0, 26, 26, default=0)
  GL1H_BUSY: int = bits(0, 27, 27, default=0)
  GUS_LINK_BUSY: int = bits(0, 28, 28, default=0)
  GUS_BUSY: int = bits(0, 29, 29, default=0)
  UTCL1_BUSY: int = bits(0, 30, 30, default=0)
  PMM_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE2(Register, offset=0x200e):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1H_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  SEDC_BUSY: int = bits(0, 8, 8, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
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
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1H_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  SEDC_BUSY: int = bits(0, 8, 8, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE4(Register, offset=0x2010):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1H_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  SEDC_BUSY: int = bits(0, 8, 8, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
  PA_BUSY: int = bits(0, 24, 24, default=0)
  TA_BUSY: int = bits(0, 25, 25, default=0)
  SX_BUSY: int = bits(0, 26, 26, default=0)
  SPI_BUSY: int = bits(0, 27, 27, default=0)
  SC_BUSY: int = bits(0, 29, 29, default=0)
  DB_BUSY: int = bits(0, 30, 30, default=0)
  CB_BUSY: int = bits(0, 31, 31, default=0)


class GRBM_STATUS_SE5(Register, offset=0x2011):
  DB_CLEAN: int = bits(0, 1, 1, default=0)
  CB_CLEAN: int = bits(0, 2, 2, default=0)
  UTCL1_BUSY: int = bits(0, 3, 3, default=0)
  TCP_BUSY: int = bits(0, 4, 4, default=0)
  GL1CC_BUSY: int = bits(0, 5, 5, default=0)
  GL1H_BUSY: int = bits(0, 6, 6, default=0)
  PC_BUSY: int = bits(0, 7, 7, default=0)
  SEDC_BUSY: int = bits(0, 8, 8, default=0)
  RMI_BUSY: int = bits(0, 21, 21, default=0)
  BCI_BUSY: int = bits(0, 22, 22, default=0)
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
  GCRIU_BUSY: int = bits(0, 15, 15, default=0)
  MES_BUSY: int = bits(0, 16, 16, default=0)
  MES_SCRATCH_RAM_BUSY: int = bits(0, 17, 17, default=0)
  RCIU3_BUSY: int = bits(0, 18, 18, default=0)
  MES_INSTRUCTION_CACHE_BUSY: int = bits(0, 19, 19, default=0)
  MES_DATA_CACHE_BUSY: int = bits(0, 20, 20, default=0)
  MEC_DATA_CACHE_BUSY: int = bits(0, 21, 21, default=0)
  CPG_CPC_BUSY: int = bits(0, 29, 29, default=0)
  CPF_CPC_BUSY: int = bits(0, 30, 30, default=0)
  CPC_BUSY: int = bits(0, 31, 31, default=0)


class SQ_CONFIG(Register, offset=0x2300):
  ECO_SPARE: int = bits(0, 7, 0, default=0)
  NEW_TRANS_ARB_SCHEME: int = bits(0, 8, 8, default=0)
  DISABLE_VMEM_EXEC_ZERO_SKIP: int = bits(0, 9, 9, default=0)
  ENABLE_HIPRIO_ON_EXP_RDY_GS: int = bits(0, 18, 18, default=0)
  PRIO_VAL_ON_EXP_RDY_GS: int = bits(0, 20, 19, default=0)
  DISABLE_END_CLAUSE_TX: int = bits(0, 27, 27, default=0)


class SQ_WATCH0_ADDR_H(Register, offset=0x2330):
  ADDR: int = bits(0, 15, 0, default=0)


class SQ_WATCH0_ADDR_L(Register, offset=0x2331):
  ADDR: int = bits(0, 31, 6, default=0)


class SQ_WATCH0_CNTL(Register, offset=0x2332):
  MASK: int = bits(0, 23, 0, default=0)
  VMID: int = bits(0, 27, 24, default=0)
  VALID: int = bits(0, 31, 31, default=0)


class SQ_WATCH1_ADDR_H(Register, offset=0x2333):
  ADDR: int = bits(0, 15, 0, default=0)


class SQ_WATCH1_ADDR_L(Register, offset=0x2334):
  ADDR: int = bits(0, 31, 6, default=0)


class SQ_WATCH1_CNTL(Register, offset=0x2335):
  MASK: int = bits(0, 23, 0, default=0)
  VMID: int = bits(0, 27, 24, default=0)
  VALID: int = bits(0, 31, 31, default=0)


class SQ_WATCH2_ADDR_H(Register, offset=0x2336):
  ADDR: int = bits(0, 15, 0, default=0)


class SQ_WATCH2_ADDR_L(Register, offset=0x2337):
  ADDR: int = bits(0, 31, 6, default=0)


class SQ_WATCH2_CNTL(Register, offset=0x2338):
  MASK: int = bits(0, 23, 0, default=0)
  VMID: int = bits(0, 27, 24, default=0)
  VALID: int = bits(0, 31, 31, default=0)


class SQ_WATCH3_ADDR_H(Register, offset=0x2339):
  ADDR: int = bits(0, 15, 0, default=0)


class SQ_WATCH3_ADDR_L(Register, offset=0x233a):
  ADDR: int = bits(0, 31, 6, default=0)


class SQ_WATCH3_CNTL(Register, offset=0x233b):
  MASK: int = bits(0, 23, 0, default=0)
  VMID: int = bits(0, 27, 24, default=0)
  VALID: int = bits(0, 31, 31, default=0)


class GCVM_L2_PROTECTION_FAULT_CNTL(Register, offset=0x2824):
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


class GCVM_L2_PROTECTION_FAULT_CNTL2(Register, offset=0x2825):
  CLIENT_ID_PRT_FAULT_INTERRUPT: int = bits(0, 15, 0, default=0)
  OTHER_CLIENT_ID_PRT_FAULT_INTERRUPT: int = bits(0, 16, 16, default=0)
  ACTIVE_PAGE_MIGRATION_PTE: int = bits(0, 17, 17, default=0)
  ACTIVE_PAGE_MIGRATION_PTE_READ_RETRY: int = bits(0, 18, 18, default=0)
  ENABLE_RETRY_FAULT_INTERRUPT: int = bits(0, 19, 19, default=0)


class GCVM_L2_PROTECTION_FAULT_MM_CNTL3(Register, offset=0x2826):
  VML1_READ_CLIENT_ID_NO_RETRY_FAULT_INTERRUPT: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_MM_CNTL4(Register, offset=0x2827):
  VML1_WRITE_CLIENT_ID_NO_RETRY_FAULT_INTERRUPT: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_STATUS(Register, offset=0x2828):
  MORE_FAULTS: int = bits(0, 0, 0, default=0)
  WALKER_ERROR: int = bits(0, 3, 1, default=0)
  PERMISSION_FAULTS: int = bits(0, 7, 4, default=0)
  MAPPING_ERROR: int = bits(0, 8, 8, default=0)
  CID: int = bits(0, 17, 9, default=0)
  RW: int = bits(0, 18, 18, default=0)
  ATOMIC: int = bits(0, 19, 19, default=0)
  VMID: int = bits(0, 23, 20, default=0)
  VF: int = bits(0, 24, 24, default=0)
  VFID: int = bits(0, 28, 25, default=0)
  PRT: int = bits(0, 29, 29, default=0)


class GCVM_L2_PROTECTION_FAULT_ADDR_LO32(Register, offset=0x2829):
  LOGICAL_PAGE_ADDR_LO32: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_ADDR_HI32(Register, offset=0x282a):
  LOGICAL_PAGE_ADDR_HI4: int = bits(0, 3, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_LO32(Register, offset=0x282b):
  PHYSICAL_PAGE_ADDR_LO32: int = bits(0, 31, 0, default=0)


class GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_HI32(Register, offset=0x282c):
  PHYSICAL_PAGE_ADDR_HI4: int = bits(0, 3, 0, default=0)


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
  TUNNEL_ENABLE: int = bits(0, 13, 13, default=0)
  RESTORE: int = bits(0, 14, 14, default=0)
  CS_W32_EN: int = bits(0, 15, 15, default=0)
  AMP_SHADER_EN: int = bits(0, 16, 16, default=0)
  DISABLE_DISP_PREMPT_EN: int = bits(0, 17, 17, default=0)


class COMPUTE_DIM_X(Register, offset=0x2e01):
  SIZE: int = bits(0, 31, 0, default=0)


class COMPUTE_DIM_Y(Register, offset=0x2e02):
  SIZE: int = bits(0, 31, 0, default=0)


class COMPUTE_DIM_Z(Register, offset=0x2e03):
  SIZE: int = bits(0, 31, 0, default=0)


class COMPUTE_START_X(Register, offset=0x2e04):
  START: int = bits(0, 31, 0, default=0)


class COMPUTE_START_Y(Register, offset=0x2e05):
  START: int = bits(0, 31, 0, default=0)


class COMPUTE_START_Z(Register, offset=0x2e06):
  START: int = bits(0, 31, 0, default=0)


class COMPUTE_NUM_THREAD_X(Register, offset=0x2e07):
  NUM_THREAD_FULL: int = bits(0, 15, 0, default=0)
  NUM_THREAD_PARTIAL: int = bits(0, 31, 16, default=0)


class COMPUTE_NUM_THREAD_Y(Register, offset=0x2e08):
  NUM_THREAD_FULL: int = bits(0, 15, 0, default=0)
  NUM_THREAD_PARTIAL: int = bits(0, 31, 16, default=0)


class COMPUTE_NUM_THREAD_Z(Register, offset=0x2e09):
  NUM_THREAD_FULL: int = bits(0, 15, 0, default=0)
  NUM_THREAD_PARTIAL: int = bits(0, 31, 16, default=0)


class COMPUTE_PIPELINESTAT_ENABLE(Register, offset=0x2e0a):
  PIPELINESTAT_ENABLE: int = bits(0, 0, 0, default=0)


class COMPUTE_PERFCOUNT_ENABLE(Register, offset=0x2e0b):
  PERFCOUNT_ENABLE: int = bits(0, 0, 0, default=0)


class COMPUTE_PGM_LO(Register, offset=0x2e0c):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_PGM_HI(Register, offset=0x2e0d):
  DATA: int = bits(0, 7, 0, default=0)


class COMPUTE_DISPATCH_PKT_ADDR_LO(Register, offset=0x2e0e):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_DISPATCH_PKT_ADDR_HI(Register, offset=0x2e0f):
  DATA: int = bits(0, 7, 0, default=0)


class COMPUTE_DISPATCH_SCRATCH_BASE_LO(Register, offset=0x2e10):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_DISPATCH_SCRATCH_BASE_HI(Register, offset=0x2e11):
  DATA: int = bits(0, 7, 0, default=0)


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
  WGP_MODE: int = bits(0, 29, 29, default=0)
  MEM_ORDERED: int = bits(0, 30, 30, default=0)
  FWD_PROGRESS: int = bits(0, 31, 31, default=0)


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


class COMPUTE_VMID(Register, offset=0x2e14):
  DATA: int = bits(0, 3, 0, default=0)


class COMPUTE_RESOURCE_LIMITS(Register, offset=0x2e15):
  WAVES_PER_SH: int = bits(0, 9, 0, default=0)
  TG_PER_CU: int = bits(0, 15, 12, default=0)
  LOCK_THRESHOLD: int = bits(0, 21, 16, default=0)
  SIMD_DEST_CNTL: int = bits(0, 22, 22, default=0)
  FORCE_SIMD_DIST: int = bits(0, 23, 23, default=0)
  CU_GROUP_COUNT: int = bits(0, 26, 24, default=0)


class COMPUTE_DESTINATION_EN_SE0(Register, offset=0x2e16):
  CU_EN: int = bits(0, 31, 0, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE0(Register, offset=0x2e16):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_DESTINATION_EN_SE1(Register, offset=0x2e17):
  CU_EN: int = bits(0, 31, 0, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE1(Register, offset=0x2e17):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_TMPRING_SIZE(Register, offset=0x2e18):
  WAVES: int = bits(0, 11, 0, default=0)
  WAVESIZE: int = bits(0, 26, 12, default=0)


class COMPUTE_DESTINATION_EN_SE2(Register, offset=0x2e19):
  CU_EN: int = bits(0, 31, 0, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE2(Register, offset=0x2e19):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_DESTINATION_EN_SE3(Register, offset=0x2e1a):
  CU_EN: int = bits(0, 31, 0, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE3(Register, offset=0x2e1a):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_RESTART_X(Register, offset=0x2e1b):
  RESTART: int = bits(0, 31, 0, default=0)


class COMPUTE_RESTART_Y(Register, offset=0x2e1c):
  RESTART: int = bits(0, 31, 0, default=0)


class COMPUTE_RESTART_Z(Register, offset=0x2e1d):
  RESTART: int = bits(0, 31, 0, default=0)


class COMPUTE_THREAD_TRACE_ENABLE(Register, offset=0x2e1e):
  THREAD_TRACE_ENABLE: int = bits(0, 0, 0, default=0)


class COMPUTE_MISC_RESERVED(Register, offset=0x2e1f):
  SEND_SEID: int = bits(0, 2, 0, default=0)
  RESERVED3: int = bits(0, 3, 3, default=0)
  RESERVED4: int = bits(0, 4, 4, default=0)
  WAVE_ID_BASE: int = bits(0, 16, 5, default=0)


class COMPUTE_DISPATCH_ID(Register, offset=0x2e20):
  DISPATCH_ID: int = bits(0, 31, 0, default=0)


class COMPUTE_THREADGROUP_ID(Register, offset=0x2e21):
  THREADGROUP_ID: int = bits(0, 31, 0, default=0)


class COMPUTE_REQ_CTRL(Register, offset=0x2e22):
  SOFT_GROUPING_EN: int = bits(0, 0, 0, default=0)
  NUMBER_OF_REQUESTS_PER_CU: int = bits(0, 4, 1, default=0)
  SOFT_GROUPING_ALLOCATION_TIMEOUT: int = bits(0, 8, 5, default=0)
  HARD_LOCK_HYSTERESIS: int = bits(0, 9, 9, default=0)
  HARD_LOCK_LOW_THRESHOLD: int = bits(0, 14, 10, default=0)
  PRODUCER_REQUEST_LOCKOUT: int = bits(0, 15, 15, default=0)
  GLOBAL_SCANNING_EN: int = bits(0, 16, 16, default=0)
  ALLOCATION_RATE_THROTTLING_THRESHOLD: int = bits(0, 19, 17, default=0)
  DEDICATED_PREALLOCATION_BUFFER_LIMIT: int = bits(0, 26, 20, default=0)


class COMPUTE_USER_ACCUM_0(Register, offset=0x2e24):
  CONTRIBUTION: int = bits(0, 6, 0, default=0)


class COMPUTE_USER_ACCUM_1(Register, offset=0x2e25):
  CONTRIBUTION: int = bits(0, 6, 0, default=0)


class COMPUTE_USER_ACCUM_2(Register, offset=0x2e26):
  CONTRIBUTION: int = bits(0, 6, 0, default=0)


class COMPUTE_USER_ACCUM_3(Register, offset=0x2e27):
  CONTRIBUTION: int = bits(0, 6, 0, default=0)


class COMPUTE_PGM_RSRC3(Register, offset=0x2e28):
  SHARED_VGPR_CNT: int = bits(0, 3, 0, default=0)
  INST_PREF_SIZE: int = bits(0, 9, 4, default=0)
  TRAP_ON_START: int = bits(0, 10, 10, default=0)
  TRAP_ON_END: int = bits(0, 11, 11, default=0)
  IMAGE_OP: int = bits(0, 31, 31, default=0)


class COMPUTE_DDID_INDEX(Register, offset=0x2e29):
  INDEX: int = bits(0, 10, 0, default=0)


class COMPUTE_SHADER_CHKSUM(Register, offset=0x2e2a):
  CHECKSUM: int = bits(0, 31, 0, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE4(Register, offset=0x2e2b):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE5(Register, offset=0x2e2c):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE6(Register, offset=0x2e2d):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_STATIC_THREAD_MGMT_SE7(Register, offset=0x2e2e):
  SA0_CU_EN: int = bits(0, 15, 0, default=0)
  SA1_CU_EN: int = bits(0, 31, 16, default=0)


class COMPUTE_DISPATCH_INTERLEAVE(Register, offset=0x2e2f):
  INTERLEAVE: int = bits(0, 9, 0, default=0)


class COMPUTE_RELAUNCH(Register, offset=0x2e30):
  PAYLOAD: int = bits(0, 29, 0, default=0)
  IS_EVENT: int = bits(0, 30, 30, default=0)
  IS_STATE: int = bits(0, 31, 31, default=0)


class COMPUTE_WAVE_RESTORE_ADDR_LO(Register, offset=0x2e31):
  ADDR: int = bits(0, 31, 0, default=0)


class COMPUTE_WAVE_RESTORE_ADDR_HI(Register, offset=0x2e32):
  ADDR: int = bits(0, 15, 0, default=0)


class COMPUTE_RELAUNCH2(Register, offset=0x2e33):
  PAYLOAD: int = bits(0, 29, 0, default=0)
  IS_EVENT: int = bits(0, 30, 30, default=0)
  IS_STATE: int = bits(0, 31, 31, default=0)


class COMPUTE_USER_DATA_0(Register, offset=0x2e40):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_1(Register, offset=0x2e41):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_2(Register, offset=0x2e42):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_3(Register, offset=0x2e43):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_4(Register, offset=0x2e44):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_5(Register, offset=0x2e45):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_6(Register, offset=0x2e46):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_7(Register, offset=0x2e47):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_8(Register, offset=0x2e48):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_9(Register, offset=0x2e49):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_10(Register, offset=0x2e4a):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_11(Register, offset=0x2e4b):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_12(Register, offset=0x2e4c):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_13(Register, offset=0x2e4d):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_14(Register, offset=0x2e4e):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_USER_DATA_15(Register, offset=0x2e4f):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_DISPATCH_TUNNEL(Register, offset=0x2e7d):
  OFF_DELAY: int = bits(0, 9, 0, default=0)
  IMMEDIATE: int = bits(0, 10, 10, default=0)


class COMPUTE_DISPATCH_END(Register, offset=0x2e7e):
  DATA: int = bits(0, 31, 0, default=0)


class COMPUTE_NOWHERE(Register, offset=0x2e7f):
  DATA: int = bits(0, 31, 0, default=0)


class CP_HQD_GFX_CONTROL(Register, offset=0x30ff):
  MESSAGE: int = bits(0, 3, 0, default=0)
  MISC: int = bits(0, 14, 4, default=0)
  DB_UPDATED_MSG_EN: int = bits(0, 15, 15, default=0)


class CP_HQD_GFX_STATUS(Register, offset=0x3100):
  STATUS: int = bits(0, 15, 0, default=0)


class SPI_GDBG_PER_VMID_CNTL(Register, offset=0x31d2):
  STALL_VMID: int = bits(0, 0, 0, default=0)
  LAUNCH_MODE: int = bits(0, 2, 1, default=0)
  TRAP_EN: int = bits(0, 3, 3, default=0)
  EXCP_EN: int = bits(0, 12, 4, default=0)
  EXCP_REPLACE: int = bits(0, 13, 13, default=0)
  TRAP_ON_START: int = bits(0, 14, 14, default=0)
  TRAP_ON_END: int = bits(0, 15, 15, default=0)


class CP_MQD_BASE_ADDR(Register, offset=0x3209):
  BASE_ADDR: int = bits(0, 31, 2, default=0)


class CP_MQD_BASE_ADDR_HI(Register, offset=0x320a):
  BASE_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_ACTIVE(Register, offset=0x320b):
  ACTIVE: int = bits(0, 0, 0, default=0)
  BUSY_GATE: int = bits(0, 1, 1, default=0)


class CP_HQD_VMID(Register, offset=0x320c):
  VMID: int = bits(0, 3, 0, default=0)
  IB_VMID: int = bits(0, 11, 8, default=0)
  VQID: int = bits(0, 25, 16, default=0)


class CP_HQD_PERSISTENT_STATE(Register, offset=0x320d):
  PRELOAD_REQ: int = bits(0, 0, 0, default=0)
  TMZ_CONNECT_OVERRIDE: int = bits(0, 1, 1, default=0)
  SUSPEND_STATUS: int = bits(0, 7, 7, default=0)
  PRELOAD_SIZE: int = bits(0, 17, 8, default=0)
  TMZ_SWITCH_EXEMPT: int = bits(0, 18, 18, default=0)
  TMZ_MATCH_DIS: int = bits(0, 19, 19, default=0)
  WPP_CLAMP_EN: int = bits(0, 20, 20, default=0)
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


class CP_HQD_PIPE_PRIORITY(Register, offset=0x320e):
  PIPE_PRIORITY: int = bits(0, 1, 0, default=0)


class CP_HQD_QUEUE_PRIORITY(Register, offset=0x320f):
  PRIORITY_LEVEL: int = bits(0, 3, 0, default=0)


class CP_HQD_QUANTUM(Register, offset=0x3210):
  QUANTUM_EN: int = bits(0, 0, 0, default=0)
  QUANTUM_SCALE: int = bits(0, 4, 4, default=0)
  QUANTUM_DURATION: int = bits(0, 13, 8, default=0)
  QUANTUM_ACTIVE: int = bits(0, 31, 31, default=0)


class CP_HQD_PQ_BASE(Register, offset=0x3211):
  ADDR: int = bits(0, 31, 0, default=0)


class CP_HQD_PQ_BASE_HI(Register, offset=0x3212):
  ADDR_HI: int = bits(0, 7, 0, default=0)


class CP_HQD_PQ_RPTR(Register, offset=0x3213):
  CONSUMED_OFFSET: int = bits(0, 31, 0, default=0)


class CP_HQD_PQ_RPTR_REPORT_ADDR(Register, offset=0x3214):
  RPTR_REPORT_ADDR: int = bits(0, 31, 2, default=0)


class CP_HQD_PQ_RPTR_REPORT_ADDR_HI(Register, offset=0x3215):
  RPTR_REPORT_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_PQ_WPTR_POLL_ADDR(Register, offset=0x3216):
  WPTR_ADDR: int = bits(0, 31, 3, default=0)


class CP_HQD_PQ_WPTR_POLL_ADDR_HI(Register, offset=0x3217):
  WPTR_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_PQ_DOORBELL_CONTROL(Register, offset=0x3218):
  DOORBELL_MODE: int = bits(0, 0, 0, default=0)
  DOORBELL_BIF_DROP: int = bits(0, 1, 1, default=0)
  DOORBELL_OFFSET: int = bits(0, 27, 2, default=0)
  DOORBELL_SOURCE: int = bits(0, 28, 28, default=0)
  DOORBELL_SCHD_HIT: int = bits(0, 29, 29, default=0)
  DOORBELL_EN: int = bits(0, 30, 30, default=0)
  DOORBELL_HIT: int = bits(0, 31, 31, default=0)


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
  PQ_VOLATILE: int = bits(0, 26, 26, default=0)
  NO_UPDATE_RPTR: int = bits(0, 27, 27, default=0)
  UNORD_DISPATCH: int = bits(0, 28, 28, default=0)
  TUNNEL_DISPATCH: int = bits(0, 29, 29, default=0)
  PRIV_STATE: int = bits(0, 30, 30, default=0)
  KMD_QUEUE: int = bits(0, 31, 31, default=0)


class CP_HQD_IB_BASE_ADDR(Register, offset=0x321b):
  IB_BASE_ADDR: int = bits(0, 31, 2, default=0)


class CP_HQD_IB_BASE_ADDR_HI(Register, offset=0x321c):
  IB_BASE_ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_IB_RPTR(Register, offset=0x321d):
  CONSUMED_OFFSET: int = bits(0, 19, 0, default=0)


class CP_HQD_IB_CONTROL(Register, offset=0x321e):
  IB_SIZE: int = bits(0, 19, 0, default=0)
  MIN_IB_AVAIL_SIZE: int = bits(0, 21, 20, default=0)
  IB_EXE_DISABLE: int = bits(0, 23, 23, default=0)
  IB_CACHE_POLICY: int = bits(0, 25, 24, default=0)
  IB_VOLATILE: int = bits(0, 26, 26, default=0)
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
  IQ_VOLATILE: int = bits(0, 26, 26, default=0)
  QUEUE_TYPE: int = bits(0, 27, 27, default=0)
  REARM_TIMER: int = bits(0, 28, 28, default=0)
  PROCESS_IQ_EN: int = bits(0, 29, 29, default=0)
  PROCESSING_IQ: int = bits(0, 30, 30, default=0)
  ACTIVE: int = bits(0, 31, 31, default=0)


class CP_HQD_IQ_RPTR(Register, offset=0x3220):
  OFFSET_: int = bits(0, 5, 0, default=0)


class CP_HQD_DEQUEUE_REQUEST(Register, offset=0x3221):
  DEQUEUE_REQ: int = bits(0, 3, 0, default=0)
  IQ_REQ_PEND: int = bits(0, 4, 4, default=0)
  DEQUEUE_INT: int = bits(0, 8, 8, default=0)
  IQ_REQ_PEND_EN: int = bits(0, 9, 9, default=0)
  DEQUEUE_REQ_EN: int = bits(0, 10, 10, default=0)


class CP_HQD_DMA_OFFLOAD(Register, offset=0x3222):
  DMA_OFFLOAD: int = bits(0, 0, 0, default=0)
  DMA_OFFLOAD_EN: int = bits(0, 1, 1, default=0)
  AQL_OFFLOAD: int = bits(0, 2, 2, default=0)
  AQL_OFFLOAD_EN: int = bits(0, 3, 3, default=0)
  EOP_OFFLOAD: int = bits(0, 4, 4, default=0)
  EOP_OFFLOAD_EN: int = bits(0, 5, 5, default=0)


class CP_HQD_OFFLOAD(Register, offset=0x3222):
  DMA_OFFLOAD: int = bits(0, 0, 0, default=0)
  DMA_OFFLOAD_EN: int = bits(0, 1, 1, default=0)
  AQL_OFFLOAD: int = bits(0, 2, 2, default=0)
  AQL_OFFLOAD_EN: int = bits(0, 3, 3, default=0)
  EOP_OFFLOAD: int = bits(0, 4, 4, default=0)
  EOP_OFFLOAD_EN: int = bits(0, 5, 5, default=0)


class CP_HQD_SEMA_CMD(Register, offset=0x3223):
  RETRY: int = bits(0, 0, 0, default=0)
  RESULT: int = bits(0, 2, 1, default=0)
  POLLING_DIS: int = bits(0, 8, 8, default=0)
  MESSAGE_EN: int = bits(0, 9, 9, default=0)


class CP_HQD_MSG_TYPE(Register, offset=0x3224):
  ACTION: int = bits(0, 2, 0, default=0)
  SAVE_STATE: int = bits(0, 6, 4, default=0)


class CP_HQD_ATOMIC0_PREOP_LO(Register, offset=0x3225):
  ATOMIC0_PREOP_LO: int = bits(0, 31, 0, default=0)


class CP_HQD_ATOMIC0_PREOP_HI(Register, offset=0x3226):
  ATOMIC0_PREOP_HI: int = bits(0, 31, 0, default=0)


class CP_HQD_ATOMIC1_PREOP_LO(Register, offset=0x3227):
  ATOMIC1_PREOP_LO: int = bits(0, 31, 0, default=0)


class CP_HQD_ATOMIC1_PREOP_HI(Register, offset=0x3228):
  ATOMIC1_PREOP_HI: int = bits(0, 31, 0, default=0)


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
  QUEUE_SLOT_CONNECTED: int = bits(0, 15, 15, default=0)
  MES_INTERRUPT_ENABLED: int = bits(0, 20, 20, default=0)
  MES_INTERRUPT_PIPE: int = bits(0, 22, 21, default=0)
  CONCURRENT_PROCESS_COUNT: int = bits(0, 27, 24, default=0)
  QUEUE_IDLE: int = bits(0, 30, 30, default=0)
  DB_UPDATED_MSG_EN: int = bits(0, 31, 31, default=0)


class CP_HQD_HQ_CONTROL0(Register, offset=0x322a):
  CONTROL: int = bits(0, 31, 0, default=0)


class CP_HQD_HQ_SCHEDULER1(Register, offset=0x322a):
  SCHEDULER: int = bits(0, 31, 0, default=0)


class CP_MQD_CONTROL(Register, offset=0x322b):
  VMID: int = bits(0, 3, 0, default=0)
  PRIV_STATE: int = bits(0, 8, 8, default=0)
  PROCESSING_MQD: int = bits(0, 12, 12, default=0)
  PROCESSING_MQD_EN: int = bits(0, 13, 13, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)
  CACHE_POLICY: int = bits(0, 25, 24, default=0)
  MQD_VOLATILE: int = bits(0, 26, 26, default=0)


class CP_HQD_HQ_STATUS1(Register, offset=0x322c):
  STATUS: int = bits(0, 31, 0, default=0)


class CP_HQD_HQ_CONTROL1(Register, offset=0x322d):
  CONTROL: int = bits(0, 31, 0, default=0)


class CP_HQD_EOP_BASE_ADDR(Register, offset=0x322e):
  BASE_ADDR: int = bits(0, 31, 0, default=0)


class CP_HQD_EOP_BASE_ADDR_HI(Register, offset=0x322f):
  BASE_ADDR_HI: int = bits(0, 7, 0, default=0)


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
  EOP_VOLATILE: int = bits(0, 26, 26, default=0)
  SIG_SEM_RESULT: int = bits(0, 30, 29, default=0)
  PEND_SIG_SEM: int = bits(0, 31, 31, default=0)


class CP_HQD_EOP_RPTR(Register, offset=0x3231):
  RPTR: int = bits(0, 12, 0, default=0)
  RESET_FETCHER: int = bits(0, 28, 28, default=0)
  DEQUEUE_PEND: int = bits(0, 29, 29, default=0)
  RPTR_EQ_CSMD_WPTR: int = bits(0, 30, 30, default=0)
  INIT_FETCHER: int = bits(0, 31, 31, default=0)


class CP_HQD_EOP_WPTR(Register, offset=0x3232):
  WPTR: int = bits(0, 12, 0, default=0)
  EOP_EMPTY: int = bits(0, 15, 15, default=0)
  EOP_AVAIL: int = bits(0, 28, 16, default=0)


class CP_HQD_EOP_EVENTS(Register, offset=0x3233):
  EVENT_COUNT: int = bits(0, 11, 0, default=0)
  CS_PARTIAL_FLUSH_PEND: int = bits(0, 16, 16, default=0)


class CP_HQD_CTX_SAVE_BASE_ADDR_LO(Register, offset=0x3234):
  ADDR: int = bits(0, 31, 12, default=0)


class CP_HQD_CTX_SAVE_BASE_ADDR_HI(Register, offset=0x3235):
  ADDR_HI: int = bits(0, 15, 0, default=0)


class CP_HQD_CTX_SAVE_CONTROL(Register, offset=0x3236):
  POLICY: int = bits(0, 4, 3, default=0)
  EXE_DISABLE: int = bits(0, 23, 23, default=0)


class CP_HQD_CNTL_STACK_OFFSET(Register, offset=0x3237):
  OFFSET_: int = bits(0, 15, 2, default=0)


class CP_HQD_CNTL_STACK_SIZE(Register, offset=0x3238):
  SIZE: int = bits(0, 15, 12, default=0)


class CP_HQD_WG_STATE_OFFSET(Register, offset=0x3239):
  OFFSET_: int = bits(0, 25, 2, default=0)


class CP_HQD_CTX_SAVE_SIZE(Register, offset=0x323a):
  SIZE: int = bits(0, 25, 12, default=0)


class CP_HQD_GDS_RESOURCE_STATE(Register, offset=0x323b):
  OA_REQUIRED: int = bits(0, 0, 0, default=0)
  OA_ACQUIRED: int = bits(0, 1, 1, default=0)
  GWS_SIZE: int = bits(0, 9, 4, default=0)
  GWS_PNTR: int = bits(0, 17, 12, default=0)


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
  SEM_UTCL1_ERROR: int = bits(0, 14, 14, default=0)
  DMA_SRC_UTCL1_ERROR: int = bits(0, 15, 15, default=0)
  DMA_DST_UTCL1_ERROR: int = bits(0, 16, 16, default=0)
  SR_UTCL1_ERROR: int = bits(0, 17, 17, default=0)
  QU_UTCL1_ERROR: int = bits(0, 18, 18, default=0)
  TC_UTCL1_ERROR: int = bits(0, 19, 19, default=0)


class CP_HQD_EOP_WPTR_MEM(Register, offset=0x323d):
  WPTR: int = bits(0, 12, 0, default=0)


class CP_HQD_AQL_CONTROL(Register, offset=0x323e):
  CONTROL0: int = bits(0, 14, 0, default=0)
  CONTROL0_EN: int = bits(0, 15, 15, default=0)
  CONTROL1: int = bits(0, 30, 16, default=0)
  CONTROL1_EN: int = bits(0, 31, 31, default=0)


class CP_HQD_PQ_WPTR_LO(Register, offset=0x323f):
  OFFSET_: int = bits(0, 31, 0, default=0)


class CP_HQD_PQ_WPTR_HI(Register, offset=0x3240):
  DATA: int = bits(0, 31, 0, default=0)


class CP_HQD_SUSPEND_CNTL_STACK_OFFSET(Register, offset=0x3241):
  OFFSET_: int = bits(0, 15, 2, default=0)


class CP_HQD_SUSPEND_CNTL_STACK_DW_CNT(Register, offset=0x3242):
  CNT: int = bits(0, 13, 0, default=0)


class CP_HQD_SUSPEND_WG_STATE_OFFSET(Register, offset=0x3243):
  OFFSET_: int = bits(0, 25, 2, default=0)


class CP_HQD_DDID_RPTR(Register, offset=0x3244):
  RPTR: int = bits(0, 10, 0, default=0)


class CP_HQD_DDID_WPTR(Register, offset=0x3245):
  WPTR: int = bits(0, 10, 0, default=0)


class CP_HQD_DDID_INFLIGHT_COUNT(Register, offset=0x3246):
  COUNT: int = bits(0, 15, 0, default=0)


class CP_HQD_DDID_DELTA_RPT_COUNT(Register, offset=0x3247):
  COUNT: int = bits(0, 7, 0, default=0)


class CP_HQD_DEQUEUE_STATUS(Register, offset=0x3248):
  DEQUEUE_STAT: int = bits(0, 3, 0, default=0)
  SUSPEND_REQ_PEND: int = bits(0, 4, 4, default=0)
  SUSPEND_REQ_PEND_EN: int = bits(0, 9, 9, default=0)
  DEQUEUE_STAT_EN: int = bits(0, 10, 10, default=0)


class CP_MEC_CNTL(Register, offset=0xa802):
  MEC_ME1_PIPE0_RESET: int = bits(0, 16, 16, default=0)
  MEC_ME1_PIPE1_RESET: int = bits(0, 17, 17, default=0)
  MEC_ME1_PIPE2_RESET: int = bits(0, 18, 18, default=0)
  MEC_ME1_PIPE3_RESET: int = bits(0, 19, 19, default=0)
  MEC_ME2_PIPE0_RESET: int = bits(0, 20, 20, default=0)
  MEC_ME2_PIPE1_RESET: int = bits(0, 21, 21, default=0)
  MEC_ME2_PIPE2_RESET: int = bits(0, 22, 22, default=0)
  MEC_ME2_PIPE3_RESET: int = bits(0, 23, 23, default=0)
  MEC_INVALIDATE_ICACHE: int = bits(0, 27, 27, default=0)
  MEC_ME2_HALT: int = bits(0, 28, 28, default=0)
  MEC_ME2_STEP: int = bits(0, 29, 29, default=0)
  MEC_ME1_HALT: int = bits(0, 30, 30, default=0)
  MEC_ME1_STEP: int = bits(0, 31, 31, default=0)


class SH_MEM_BASES(Register, offset=0xa9e3):
  PRIVATE_BASE: int = bits(0, 15, 0, default=0)
  SHARED_BASE: int = bits(0, 31, 16, default=0)


class SH_MEM_CONFIG(Register, offset=0xa9e4):
  ADDRESS_MODE: int = bits(0, 0, 0, default=0)
  ALIGNMENT_MODE: int = bits(0, 3, 2, default=0)
  INITIAL_INST_PREFETCH: int = bits(0, 15, 14, default=0)
  ICACHE_USE_GL1: int = bits(0, 18, 18, default=0)


class SQ_SHADER_TBA_LO(Register, offset=0xa9e6):
  ADDR_LO: int = bits(0, 31, 0, default=0)


class SQ_SHADER_TBA_HI(Register, offset=0xa9e7):
  ADDR_HI: int = bits(0, 7, 0, default=0)
  TRAP_EN: int = bits(0, 31, 31, default=0)


class SQ_SHADER_TMA_LO(Register, offset=0xa9e8):
  ADDR_LO: int = bits(0, 31, 0, default=0)


class SQ_SHADER_TMA_HI(Register, offset=0xa9e9):
  ADDR_HI: int = bits(0, 7, 0, default=0)


class SPI_GDBG_WAVE_CNTL(Register, offset=0xb943):
  STALL_RA: int = bits(0, 0, 0, default=0)
  STALL_LAUNCH: int = bits(0, 1, 1, default=0)


class SPI_GDBG_TRAP_CONFIG(Register, offset=0xb944):
  PIPE0_EN: int = bits(0, 7, 0, default=0)
  PIPE1_EN: int = bits(0, 15, 8, default=0)
  PIPE2_EN: int = bits(0, 23, 16, default=0)
  PIPE3_EN: int = bits(0, 31, 24, default=0)


class SPI_GDBG_WAVE_CNTL3(Register, offset=0xb945):
  STALL_PS: int = bits(0, 0, 0, default=0)
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


class GRBM_GFX_INDEX(Register, offset=0xc200):
  INSTANCE_INDEX: int = bits(0, 7, 0, default=0)
  SA_INDEX: int = bits(0, 15, 8, default=0)
  SE_INDEX: int = bits(0, 23, 16, default=0)
  SA_BROADCAST_WRITES: int = bits(0, 29, 29, default=0)
  INSTANCE_BROADCAST_WRITES: int = bits(0, 30, 30, default=0)
  SE_BROADCAST_WRITES: int = bits(0, 31, 31, default=0)


class SQC_CACHES(Register, offset=0xc348):
  TARGET_INST: int = bits(0, 0, 0, default=0)
  TARGET_DATA: int = bits(0, 1, 1, default=0)
  INVALIDATE: int = bits(0, 2, 2, default=0)
  COMPLETE: int = bits(0, 16, 16, default=0)


class TA_CS_BC_BASE_ADDR(Register, offset=0xc380):
  ADDRESS: int = bits(0, 31, 0, default=0)


class TA_CS_BC_BASE_ADDR_HI(Register, offset=0xc381):
  ADDRESS: int = bits(0, 7, 0, default=0)


class SPI_CONFIG_CNTL(Register, offset=0xc440):
  GPR_WRITE_PRIORITY: int = bits(0, 20, 0, default=0)
  EXP_PRIORITY_ORDER: int = bits(0, 23, 21, default=0)
  ENABLE_SQG_TOP_EVENTS: int = bits(0, 24, 24, default=0)
  ENABLE_SQG_BOP_EVENTS: int = bits(0, 25, 25, default=0)
  ALLOC_ARB_LRU_ENA: int = bits(0, 28, 28, default=0)
  EXP_ARB_LRU_ENA: int = bits(0, 29, 29, default=0)
  PS_PKR_PRIORITY_CNTL: int = bits(0, 31, 30, default=0)


class RLC_GPU_CLOCK_COUNT_LSB(Register, offset=0xec24):
  GPU_CLOCKS_LSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_MSB(Register, offset=0xec25):
  GPU_CLOCKS_MSB: int = bits(0, 31, 0, default=0)


class RLC_CAPTURE_GPU_CLOCK_COUNT(Register, offset=0xec26):
  CAPTURE: int = bits(0, 0, 0, default=0)
  RESERVED: int = bits(0, 31, 1, default=0)


class RLC_GPU_CLOCK_COUNT_LSB_2(Register, offset=0xeceb):
  GPU_CLOCKS_LSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_MSB_2(Register, offset=0xecec):
  GPU_CLOCKS_MSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_LSB_1(Register, offset=0xecfb):
  GPU_CLOCKS_LSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_MSB_1(Register, offset=0xecfc):
  GPU_CLOCKS_MSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_SPM_LSB(Register, offset=0xede4):
  GPU_CLOCKS_LSB: int = bits(0, 31, 0, default=0)


class RLC_GPU_CLOCK_COUNT_SPM_MSB(Register, offset=0xede5):
  GPU_CLOCKS_MSB: int = bits(0, 31, 0, default=0)


REGISTERS: tuple[type[Register], ...] = (
  GRBM_STATUS2, GRBM_STATUS, GRBM_STATUS_SE0, GRBM_STATUS_SE1, GRBM_STATUS3, GRBM_STATUS_SE2, GRBM_STATUS_SE3,
  GRBM_STATUS_SE4, GRBM_STATUS_SE5, CP_CPC_STATUS, SQ_CONFIG, SQ_WATCH0_ADDR_H, SQ_WATCH0_ADDR_L,
  SQ_WATCH0_CNTL, SQ_WATCH1_ADDR_H, SQ_WATCH1_ADDR_L, SQ_WATCH1_CNTL, SQ_WATCH2_ADDR_H, SQ_WATCH2_ADDR_L,
  SQ_WATCH2_CNTL, SQ_WATCH3_ADDR_H, SQ_WATCH3_ADDR_L, SQ_WATCH3_CNTL, GCVM_L2_PROTECTION_FAULT_CNTL,
  GCVM_L2_PROTECTION_FAULT_CNTL2, GCVM_L2_PROTECTION_FAULT_MM_CNTL3, GCVM_L2_PROTECTION_FAULT_MM_CNTL4,
  GCVM_L2_PROTECTION_FAULT_STATUS, GCVM_L2_PROTECTION_FAULT_ADDR_LO32, GCVM_L2_PROTECTION_FAULT_ADDR_HI32,
  GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_LO32, GCVM_L2_PROTECTION_FAULT_DEFAULT_ADDR_HI32,
  COMPUTE_DISPATCH_INITIATOR, COMPUTE_DIM_X, COMPUTE_DIM_Y, COMPUTE_DIM_Z, COMPUTE_START_X, COMPUTE_START_Y,
  COMPUTE_START_Z, COMPUTE_NUM_THREAD_X, COMPUTE_NUM_THREAD_Y, COMPUTE_NUM_THREAD_Z,
  COMPUTE_PIPELINESTAT_ENABLE, COMPUTE_PERFCOUNT_ENABLE, COMPUTE_PGM_LO, COMPUTE_PGM_HI,
  COMPUTE_DISPATCH_PKT_ADDR_LO, COMPUTE_DISPATCH_PKT_ADDR_HI, COMPUTE_DISPATCH_SCRATCH_BASE_LO,
  COMPUTE_DISPATCH_SCRATCH_BASE_HI, COMPUTE_PGM_RSRC1, COMPUTE_PGM_RSRC2, COMPUTE_VMID, COMPUTE_RESOURCE_LIMITS,
  COMPUTE_DESTINATION_EN_SE0, COMPUTE_STATIC_THREAD_MGMT_SE0, COMPUTE_DESTINATION_EN_SE1,
  COMPUTE_STATIC_THREAD_MGMT_SE1, COMPUTE_TMPRING_SIZE, COMPUTE_DESTINATION_EN_SE2,
  COMPUTE_STATIC_THREAD_MGMT_SE2, COMPUTE_DESTINATION_EN_SE3, COMPUTE_STATIC_THREAD_MGMT_SE3, COMPUTE_RESTART_X,
  COMPUTE_RESTART_Y, COMPUTE_RESTART_Z, COMPUTE_THREAD_TRACE_ENABLE, COMPUTE_MISC_RESERVED, COMPUTE_DISPATCH_ID,
  COMPUTE_THREADGROUP_ID, COMPUTE_REQ_CTRL, COMPUTE_USER_ACCUM_0, COMPUTE_USER_ACCUM_1, COMPUTE_USER_ACCUM_2,
  COMPUTE_USER_ACCUM_3, COMPUTE_PGM_RSRC3, COMPUTE_DDID_INDEX, COMPUTE_SHADER_CHKSUM,
  COMPUTE_STATIC_THREAD_MGMT_SE4, COMPUTE_STATIC_THREAD_MGMT_SE5, COMPUTE_STATIC_THREAD_MGMT_SE6,
  COMPUTE_STATIC_THREAD_MGMT_SE7, COMPUTE_DISPATCH_INTERLEAVE, COMPUTE_RELAUNCH, COMPUTE_WAVE_RESTORE_ADDR_LO,
  COMPUTE_WAVE_RESTORE_ADDR_HI, COMPUTE_RELAUNCH2, COMPUTE_USER_DATA_0, COMPUTE_USER_DATA_1,
  COMPUTE_USER_DATA_2, COMPUTE_USER_DATA_3, COMPUTE_USER_DATA_4, COMPUTE_USER_DATA_5, COMPUTE_USER_DATA_6,
  COMPUTE_USER_DATA_7, COMPUTE_USER_DATA_8, COMPUTE_USER_DATA_9, COMPUTE_USER_DATA_10, COMPUTE_USER_DATA_11,
  COMPUTE_USER_DATA_12, COMPUTE_USER_DATA_13, COMPUTE_USER_DATA_14, COMPUTE_USER_DATA_15,
  COMPUTE_DISPATCH_TUNNEL, COMPUTE_DISPATCH_END, COMPUTE_NOWHERE, CP_HQD_GFX_CONTROL, CP_HQD_GFX_STATUS,
  SPI_GDBG_PER_VMID_CNTL, CP_MQD_BASE_ADDR, CP_MQD_BASE_ADDR_HI, CP_HQD_ACTIVE, CP_HQD_VMID,
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
  CP_HQD_AQL_CONTROL, CP_HQD_PQ_WPTR_LO, CP_HQD_PQ_WPTR_HI, CP_HQD_SUSPEND_CNTL_STACK_OFFSET,
  CP_HQD_SUSPEND_CNTL_STACK_DW_CNT, CP_HQD_SUSPEND_WG_STATE_OFFSET, CP_HQD_DDID_RPTR, CP_HQD_DDID_WPTR,
  CP_HQD_DDID_INFLIGHT_COUNT, CP_HQD_DDID_DELTA_RPT_COUNT, CP_HQD_DEQUEUE_STATUS, CP_MEC_CNTL, SH_MEM_BASES,
  SH_MEM_CONFIG, SQ_SHADER_TBA_LO, SQ_SHADER_TBA_HI, SQ_SHADER_TMA_LO, SQ_SHADER_TMA_HI, SPI_GDBG_WAVE_CNTL,
  SPI_GDBG_TRAP_CONFIG, SPI_GDBG_WAVE_CNTL3, GRBM_GFX_INDEX, SQC_CACHES, TA_CS_BC_BASE_ADDR,
  TA_CS_BC_BASE_ADDR_HI, SPI_CONFIG_CNTL, RLC_GPU_CLOCK_COUNT_LSB, RLC_GPU_CLOCK_COUNT_MSB,
  RLC_CAPTURE_GPU_CLOCK_COUNT, RLC_GPU_CLOCK_COUNT_LSB_2, RLC_GPU_CLOCK_COUNT_MSB_2, RLC_GPU_CLOCK_COUNT_LSB_1,
  RLC_GPU_CLOCK_COUNT_MSB_1, RLC_GPU_CLOCK_COUNT_SPM_LSB, RLC_GPU_CLOCK_COUNT_SPM_MSB,
)
