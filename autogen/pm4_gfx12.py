"""PM4 packets that gfx12's MEC (compute queues) executes: one class a packet, fields as the vendor names them.

Generated; do not edit. Source:
  GPUOpen-Drivers/pal commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29), licence MIT
    src/core/hw/gfxip/gfx12/chip/gfx12_merged_f32_mec_pm4_packets.h sha256 02e08a27750a4484966f1c8186188d1627f9e06e2cb782f789bb640f7f078e58
    src/core/hw/gfxip/gfx12/chip/gfx12_merged_pm4_it_opcodes.h sha256 ad1b2061d174674e3372cd712d8b339407e6915c81348c20ef7342f04d5dfa4f
    src/core/hw/gfxip/gfx12/gfx12CmdUtil.cpp sha256 43157fc6170268512e2ef60c72df4aef0e34d992f6ba56951ac4a3f1e7b03b08
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/amdgpu/nvd.h sha256 f65a105dfceff3bc03b3e02ac52ed18586586a5866135170a3239ec77fbe29c8
    drivers/gpu/drm/amd/include/soc24_enum.h sha256 e917c9330582f43b75e2965f2dc65b183ed01d111f54a07fa9f5fc85af5d890f
Generator: tinyhw gen pm4_gfx12

109 opcodes and 13 fields are the same in PAL and in nvd.h; the opcodes of AQL_PACKET (0xff and 0x99),
DRAW_MULTI_PREAMBLE (0xfe and 0x8f) differ, and neither is declared here. A field X stands for the vendor's X_lo and
X_hi. Addresses are given whole: low bits that are not stored must be zero. Fields under 20 bits default to 0. Left
out, as they are other generations' or have no opcode: CLEANER_SHADER. What an earlier class says letter for letter is
imported.
"""
from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from tinyhw.autogen.pm4_gfx11 import (
  ACQUIRE_MEM, ATOMIC_MEM_command, COND_INDIRECT_BUFFER_function, COND_INDIRECT_BUFFER_mode, COND_WRITE,
  COND_WRITE_function, COND_WRITE_poll_space, COND_WRITE_wr_confirm, COND_WRITE_write_space,
  COPY_DATA_count_sel, COPY_DATA_pq_exe_status, COPY_DATA_wr_confirm, DISPATCH_DIRECT, DISPATCH_INDIRECT,
  DISPATCH_TASKMESH_DIRECT_ACE, DISPATCH_TASKMESH_INDIRECT_MULTI_ACE, DISPATCH_TASK_STATE_INIT,
  DMA_DATA_FILL_MULTI_dst_sel, DMA_DATA_FILL_MULTI_src_sel, DMA_DATA_daic, DMA_DATA_das, DMA_DATA_saic,
  DMA_DATA_sas, EVENT_WRITE_samp_plst_cntr_mode, HDP_FLUSH, INVALIDATE_TLBS, INVALIDATE_TLBS_invalidate_sel,
  INVALIDATE_TLBS_mmhub_invalidate_sel, LOAD_SH_REG_INDEX, LOAD_SH_REG_INDEX_data_format,
  LOAD_SH_REG_INDEX_index, NOP, PERFMON_CONTROL, PERFMON_CONTROL_pmc_en, PERF_COUNTER_WINDOW_op, PRIME_UTCL2,
  PRIME_UTCL2_prime_mode, Pm4, RELEASE_MEM_dst_sel, RELEASE_MEM_event_index, RELEASE_MEM_int_sel,
  RELEASE_MEM_mes_action_id, REWIND, SET_CONFIG_REG, SET_CONFIG_REG_index, SET_QUEUE_REG, SET_SH_REG,
  SET_SH_REG_INDEX, SET_SH_REG_INDEX_index, SET_SH_REG_PAIRS_PACKED_N, SET_SH_REG_index, SET_UCONFIG_REG, TC_OP,
  TIMESTAMP, TIMESTAMP_clock_sel, WAIT_REG_MEM64_function, WAIT_REG_MEM64_mem_space, WAIT_REG_MEM64_operation,
  WAIT_REG_MEM_function, WAIT_REG_MEM_mem_space, WAIT_REG_MEM_operation, WRITE_DATA_addr_incr,
  WRITE_DATA_wr_confirm,
)
from tinyhw.core.layout import Register, bits, rest, u32, u64


class VGT_EVENT_TYPE(IntEnum):
  """From the kernel's enums of the chip (soc*_enum.h)."""
  Reserved_0x00 = 0
  SAMPLE_STREAMOUTSTATS1 = 1
  SAMPLE_STREAMOUTSTATS2 = 2
  SAMPLE_STREAMOUTSTATS3 = 3
  CACHE_FLUSH_TS = 4
  CONTEXT_DONE = 5
  CACHE_FLUSH = 6
  CS_PARTIAL_FLUSH = 7
  VGT_STREAMOUT_SYNC = 8
  EVENT_STATE_CHANGE = 9
  VGT_STREAMOUT_RESET = 0xa
  END_OF_PIPE_INCR_DE = 0xb
  END_OF_PIPE_IB_END = 0xc
  RST_PIX_CNT = 0xd
  BREAK_BATCH = 0xe
  VS_PARTIAL_FLUSH = 0xf
  PS_PARTIAL_FLUSH = 0x10
  FLUSH_HS_OUTPUT = 0x11
  FLUSH_DFSM = 0x12
  RESET_TO_LOWEST_VGT = 0x13
  CACHE_FLUSH_AND_INV_TS_EVENT = 0x14
  WAIT_SYNC = 0x15
  CACHE_FLUSH_AND_INV_EVENT = 0x16
  PERFCOUNTER_START = 0x17
  PERFCOUNTER_STOP = 0x18
  PIPELINESTAT_START = 0x19
  PIPELINESTAT_STOP = 0x1a
  PERFCOUNTER_SAMPLE = 0x1b
  FLUSH_ES_OUTPUT = 0x1c
  BIN_CONF_OVERRIDE_CHECK = 0x1d
  SAMPLE_PIPELINESTAT = 0x1e
  SO_VGTSTREAMOUT_FLUSH = 0x1f
  SAMPLE_STREAMOUTSTATS = 0x20
  RESET_VTX_CNT = 0x21
  BLOCK_CONTEXT_DONE = 0x22
  CS_CONTEXT_DONE = 0x23
  VGT_FLUSH = 0x24
  TGID_ROLLOVER = 0x25
  SQ_NON_EVENT = 0x26
  SC_SEND_DB_VPZ = 0x27
  BOTTOM_OF_PIPE_TS = 0x28
  FLUSH_SX_TS = 0x29
  DB_CACHE_FLUSH_AND_INV = 0x2a
  FLUSH_AND_INV_DB_DATA_TS = 0x2b
  FLUSH_AND_INV_DB_META = 0x2c
  FLUSH_AND_INV_CB_DATA_TS = 0x2d
  FLUSH_AND_INV_CB_META = 0x2e
  CS_DONE = 0x2f
  PS_DONE = 0x30
  FLUSH_AND_INV_CB_PIXEL_DATA = 0x31
  SX_CB_RAT_ACK_REQUEST = 0x32
  THREAD_TRACE_START = 0x33
  THREAD_TRACE_STOP = 0x34
  THREAD_TRACE_MARKER = 0x35
  THREAD_TRACE_DRAW = 0x36
  THREAD_TRACE_FINISH = 0x37
  PIXEL_PIPE_STAT_CONTROL = 0x38
  PIXEL_PIPE_STAT_DUMP = 0x39
  PIXEL_PIPE_STAT_RESET = 0x3a
  CONTEXT_SUSPEND = 0x3b
  OFFCHIP_HS_DEALLOC = 0x3c
  ENABLE_NGG_PIPELINE = 0x3d
  ENABLE_PIPELINE_NOT_USED = 0x3e
  DRAW_DONE = 0x3f


class ATOMIC_MEM_atomic(IntEnum):
  gl2_op_read = 0
  gl2_op_atomic_swap_rtn_32 = 7
  gl2_op_atomic_cmpswap_rtn_32 = 8
  gl2_op_atomic_add_rtn_32 = 0xf
  gl2_op_atomic_sub_rtn_32 = 0x10
  gl2_op_atomic_smin_rtn_32 = 0x11
  gl2_op_atomic_umin_rtn_32 = 0x12
  gl2_op_atomic_smax_rtn_32 = 0x13
  gl2_op_atomic_umax_rtn_32 = 0x14
  gl2_op_atomic_and_rtn_32 = 0x15
  gl2_op_atomic_or_rtn_32 = 0x16
  gl2_op_atomic_xor_rtn_32 = 0x17
  gl2_op_atomic_inc_rtn_32 = 0x18
  gl2_op_atomic_dec_rtn_32 = 0x19
  gl2_op_atomic_clamp_sub_rtn_32 = 0x1a
  gl2_op_atomic_cond_sub_rtn_32 = 0x1b
  gl2_op_write = 0x20
  gl2_op_atomic_swap_rtn_64 = 0x27
  gl2_op_atomic_cmpswap_rtn_64 = 0x28
  gl2_op_atomic_add_rtn_64 = 0x2f
  gl2_op_atomic_sub_rtn_64 = 0x30
  gl2_op_atomic_smin_rtn_64 = 0x31
  gl2_op_atomic_umin_rtn_64 = 0x32
  gl2_op_atomic_smax_rtn_64 = 0x33
  gl2_op_atomic_umax_rtn_64 = 0x34
  gl2_op_atomic_and_rtn_64 = 0x35
  gl2_op_atomic_or_rtn_64 = 0x36
  gl2_op_atomic_xor_rtn_64 = 0x37
  gl2_op_atomic_inc_rtn_64 = 0x38
  gl2_op_atomic_dec_rtn_64 = 0x39
  gl2_op_atomic_swap_32 = 0x47
  gl2_op_atomic_cmpswap_32 = 0x48
  gl2_op_atomic_add_32 = 0x4f
  gl2_op_atomic_sub_32 = 0x50
  gl2_op_atomic_smin_32 = 0x51
  gl2_op_atomic_umin_32 = 0x52
  gl2_op_atomic_smax_32 = 0x53
  gl2_op_atomic_umax_32 = 0x54
  gl2_op_atomic_and_32 = 0x55
  gl2_op_atomic_or_32 = 0x56
  gl2_op_atomic_xor_32 = 0x57
  gl2_op_atomic_inc_32 = 0x58
  gl2_op_atomic_dec_32 = 0x59
  gl2_op_nop_rtn0 = 0x5b
  gl2_op_atomic_swap_64 = 0x67
  gl2_op_atomic_cmpswap_64 = 0x68
  gl2_op_atomic_add_64 = 0x6f
  gl2_op_atomic_sub_64 = 0x70
  gl2_op_atomic_smin_64 = 0x71
  gl2_op_atomic_umin_64 = 0x72
  gl2_op_atomic_smax_64 = 0x73
  gl2_op_atomic_umax_64 = 0x74
  gl2_op_atomic_and_64 = 0x75
  gl2_op_atomic_or_64 = 0x76
  gl2_op_atomic_xor_64 = 0x77
  gl2_op_atomic_inc_64 = 0x78
  gl2_op_atomic_dec_64 = 0x79
  gl2_op_nop_ack = 0x7b


class ATOMIC_MEM_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class COND_EXEC_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class COND_INDIRECT_BUFFER_temporal1(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class COND_INDIRECT_BUFFER_temporal2(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class COPY_DATA_src_sel(IntEnum):
  mem_mapped_register = 0
  tc_l2_obsolete = 1
  tc_l2 = 2
  perfcounters = 4
  immediate_data = 5
  atomic_return_data = 6
  gpu_clock_count = 9
  system_clock_count = 0xa


class COPY_DATA_dst_sel(IntEnum):
  mem_mapped_register = 0
  tc_l2 = 2
  perfcounters = 4
  tc_l2_obsolete = 5
  mem_mapped_reg_dc = 6


class COPY_DATA_src_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class COPY_DATA_mode(IntEnum):
  PF_VF_disabled = 0
  PF_VF_enabled = 1


class COPY_DATA_dst_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class DMA_DATA_src_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class DMA_DATA_dst_sel(IntEnum):
  dst_addr_using_das = 0
  dst_nowhere = 2
  dst_addr_using_l2 = 3


class DMA_DATA_dst_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class DMA_DATA_src_sel(IntEnum):
  src_addr_using_sas = 0
  data = 2
  src_addr_using_l2 = 3


class DMA_DATA_FILL_MULTI_dst_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class EVENT_WRITE_event_index(IntEnum):
  other = 0
  sample_pipelinestat = 2
  cs_partial_flush = 4


class EXECUTE_INDIRECT_V2_operation(IntEnum):
  dispatch = 2
  dispatch_taskmesh = 5


class EXECUTE_INDIRECT_V2_userdata_scatter_mode(IntEnum):
  cs_only = 0


class INDIRECT_BUFFER_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class INDIRECT_BUFFER_PASID_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class RELEASE_MEM_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class RELEASE_MEM_data_sel(IntEnum):
  none = 0
  send_32_bit_low = 1
  send_64_bit_data = 2
  send_gpu_clock_counter = 3
  send_system_clock_counter = 4


class SET_BASE_base_index(IntEnum):
  execute_indirect_v2 = 6


class WAIT_REG_MEM_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class WAIT_REG_MEM64_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class WRITE_DATA_dst_sel(IntEnum):
  mem_mapped_register = 0
  tc_l2 = 2
  memory = 5
  memory_mapped_adc_persistent_state = 6


class WRITE_DATA_mode(IntEnum):
  PF_VF_disabled = 0
  PF_VF_enabled = 1


class WRITE_DATA_temporal(IntEnum):
  rt = 0
  nt = 1
  ht = 2
  lu = 3


class ACQUIRE_MEM_GCR_CNTL(Register, offset=-1):
  """Bits of ACQUIRE_MEM.gcr_cntl: `ACQUIRE_MEM_GCR_CNTL(...).value()`."""
  GLI_INV: int = bits(0, 1, 0, default=0)
  GL1_RANGE: int = bits(0, 3, 2, default=0)
  GLK_WB: int = bits(0, 6, 6, default=0)
  GLK_INV: int = bits(0, 7, 7, default=0)
  GLV_INV: int = bits(0, 8, 8, default=0)
  GL2_US: int = bits(0, 10, 10, default=0)
  GL2_RANGE: int = bits(0, 12, 11, default=0)
  GL2_DISCARD: int = bits(0, 13, 13, default=0)
  GL2_INV: int = bits(0, 14, 14, default=0)
  GL2_WB: int = bits(0, 15, 15, default=0)
  SEQ: int = bits(0, 17, 16, default=0)
  RANGE_IS_PA: int = bits(0, 18, 18, default=0)
  GLM_WB: int = bits(0, 4, 4, default=0)
  GLM_INV: int = bits(0, 5, 5, default=0)
  GL1_INV: int = bits(0, 9, 9, default=0)


class RELEASE_MEM_GCR_CNTL(Register, offset=-1):
  """Bits of RELEASE_MEM.gcr_cntl: `RELEASE_MEM_GCR_CNTL(...).value()`."""
  GLV_INV: int = bits(0, 2, 2, default=0)
  GL2_US: int = bits(0, 4, 4, default=0)
  GL2_RANGE: int = bits(0, 6, 5, default=0)
  GL2_DISCARD: int = bits(0, 7, 7, default=0)
  GL2_INV: int = bits(0, 8, 8, default=0)
  GL2_WB: int = bits(0, 9, 9, default=0)
  SEQ: int = bits(0, 11, 10, default=0)
  GLK_WB: int = bits(0, 12, 12, default=0)
  GLM_WB: int = bits(0, 0, 0, default=0)
  GLM_INV: int = bits(0, 1, 1, default=0)
  GL1_INV: int = bits(0, 3, 3, default=0)


class ATOMIC_MEM(Pm4, dwords=8):
  """ATOMIC_MEM, type 3 opcode 0x1e, 8 dwords after the header."""
  OP: ClassVar[int] = 0x1e
  atomic: int = bits(0, 6, 0, default=0, enum=TC_OP)
  command: int = bits(0, 11, 8, default=0, enum=ATOMIC_MEM_command)
  temporal: int = bits(0, 26, 25, default=0, enum=ATOMIC_MEM_temporal)
  addr: int = u64(1)
  src_data: int = u64(3)
  cmp_data: int = u64(5)
  loop_interval: int = bits(7, 12, 0, default=0)


class COND_EXEC(Pm4, dwords=4):
  """COND_EXEC, type 3 opcode 0x22, 4 dwords after the header."""
  OP: ClassVar[int] = 0x22
  addr: int = bits(0, 63, 2, shift=2)
  temporal: int = bits(2, 26, 25, default=0, enum=COND_EXEC_temporal)
  exec_count: int = bits(3, 13, 0, default=0)


class COND_INDIRECT_BUFFER(Pm4, dwords=13):
  """COND_INDIRECT_BUFFER, type 3 opcode 0x3f, 13 dwords after the header."""
  OP: ClassVar[int] = 0x3f
  mode: int = bits(0, 1, 0, default=0, enum=COND_INDIRECT_BUFFER_mode)
  function: int = bits(0, 10, 8, default=0, enum=COND_INDIRECT_BUFFER_function)
  compare_addr: int = bits(1, 63, 3, shift=3)
  mask: int = u64(3)
  reference: int = u64(5)
  ib_base1: int = bits(7, 63, 2, shift=2)
  ib_size1: int = bits(9, 19, 0)
  temporal1: int = bits(9, 29, 28, default=0, enum=COND_INDIRECT_BUFFER_temporal1)
  ib_base2: int = bits(10, 63, 2, shift=2)
  ib_size2: int = bits(12, 19, 0)
  temporal2: int = bits(12, 29, 28, default=0, enum=COND_INDIRECT_BUFFER_temporal2)


class COPY_DATA(Pm4, dwords=5):
  """COPY_DATA, type 3 opcode 0x40, 5 dwords after the header."""
  OP: ClassVar[int] = 0x40
  src_sel: int = bits(0, 3, 0, default=0, enum=COPY_DATA_src_sel)
  dst_sel: int = bits(0, 11, 8, default=0, enum=COPY_DATA_dst_sel)
  src_temporal: int = bits(0, 14, 13, default=0, enum=COPY_DATA_src_temporal)
  count_sel: int = bits(0, 16, 16, default=0, enum=COPY_DATA_count_sel)
  wr_confirm: int = bits(0, 20, 20, default=0, enum=COPY_DATA_wr_confirm)
  mode: int = bits(0, 21, 21, default=0, enum=COPY_DATA_mode)
  aid_id: int = bits(0, 24, 23, default=0)
  dst_temporal: int = bits(0, 26, 25, default=0, enum=COPY_DATA_dst_temporal)
  pq_exe_status: int = bits(0, 29, 29, default=0, enum=COPY_DATA_pq_exe_status)
  src_addr: int = u64(1)
  dst_addr: int = u64(3)

  @property
  def src_reg_offset_lo(self) -> int: return self.src_addr & 0xffffffff

  @property
  def src_32b_addr_lo(self) -> int: return self.src_addr & 0xfffffffc

  @property
  def src_64b_addr_lo(self) -> int: return self.src_addr & 0xfffffff8

  @property
  def imm_data(self) -> int: return self.src_addr & 0xffffffff

  @property
  def src_reg_offset_hi(self) -> int: return self.src_addr >> 32 & 0x3f

  @property
  def src_memtc_addr_hi(self) -> int: return self.src_addr >> 32 & 0xffffffff

  @property
  def src_imm_data(self) -> int: return self.src_addr >> 32 & 0xffffffff

  @property
  def dst_reg_offset_lo(self) -> int: return self.dst_addr & 0xffffffff

  @property
  def dst_32b_addr_lo(self) -> int: return self.dst_addr & 0xfffffffc

  @property
  def dst_64b_addr_lo(self) -> int: return self.dst_addr & 0xfffffff8

  @property
  def dst_reg_offset_hi(self) -> int: return self.dst_addr >> 32 & 0x3f

  @property
  def dst_addr_hi(self) -> int: return self.dst_addr >> 32 & 0xffffffff


class DMA_DATA(Pm4, dwords=6):
  """DMA_DATA, type 3 opcode 0x50, 6 dwords after the header."""
  OP: ClassVar[int] = 0x50
  src_temporal: int = bits(0, 14, 13, default=0, enum=DMA_DATA_src_temporal)
  dst_sel: int = bits(0, 21, 20, default=0, enum=DMA_DATA_dst_sel)
  dst_temporal: int = bits(0, 26, 25, default=0, enum=DMA_DATA_dst_temporal)
  src_sel: int = bits(0, 30, 29, default=0, enum=DMA_DATA_src_sel)
  src_addr_lo_or_data: int = u32(1)
  src_addr_hi: int = u32(2)
  dst_addr: int = u64(3)
  byte_count: int = bits(5, 25, 0)
  sas: int = bits(5, 26, 26, default=0, enum=DMA_DATA_sas)
  das: int = bits(5, 27, 27, default=0, enum=DMA_DATA_das)
  saic: int = bits(5, 28, 28, default=0, enum=DMA_DATA_saic)
  daic: int = bits(5, 29, 29, default=0, enum=DMA_DATA_daic)
  raw_wait: int = bits(5, 30, 30, default=0)
  dis_wc: int = bits(5, 31, 31, default=0)


class DMA_DATA_FILL_MULTI(Pm4, dwords=6):
  """DMA_DATA_FILL_MULTI, type 3 opcode 0x9a, 6 dwords after the header."""
  OP: ClassVar[int] = 0x9a
  memlog_clear: int = bits(0, 10, 10, default=0)
  dst_sel: int = bits(0, 21, 20, default=0, enum=DMA_DATA_FILL_MULTI_dst_sel)
  dst_temporal: int = bits(0, 26, 25, default=0, enum=DMA_DATA_FILL_MULTI_dst_temporal)
  src_sel: int = bits(0, 30, 29, default=0, enum=DMA_DATA_FILL_MULTI_src_sel)
  byte_stride: int = u32(1)
  dma_count: int = u32(2)
  dst_addr: int = u64(3)
  byte_count: int = bits(5, 25, 0)


class EVENT_WRITE(Pm4, dwords=1):
  """EVENT_WRITE, type 3 opcode 0x46, 1 dword after the header."""
  OP: ClassVar[int] = 0x46
  event_type: int = bits(0, 5, 0, default=0, enum=VGT_EVENT_TYPE)
  event_index: int = bits(0, 11, 8, default=0, enum=EVENT_WRITE_event_index)
  samp_plst_cntr_mode: int = bits(0, 30, 29, default=0, enum=EVENT_WRITE_samp_plst_cntr_mode)
  offload_enable: int = bits(0, 31, 31, default=0)


class EVENT_WRITE_ADDRESS(EVENT_WRITE, dwords=3):
  """EVENT_WRITE with its address dwords."""
  address: int = bits(1, 63, 3, shift=3)


class EXECUTE_INDIRECT_V2(Pm4, dwords=12):
  """EXECUTE_INDIRECT_V2, type 3 opcode 0xb4, 12 dwords after the header."""
  OP: ClassVar[int] = 0xb4
  count_indirect_enable: int = bits(0, 0, 0, default=0)
  userdata_dw_count: int = bits(0, 5, 1, default=0)
  command_index_enable: int = bits(0, 6, 6, default=0)
  num_spill_regs: int = bits(0, 9, 8, default=0)
  init_mem_copy_count: int = bits(0, 12, 10, default=0)
  update_mem_copy_count: int = bits(0, 18, 16, default=0)
  operation: int = bits(0, 21, 19, default=0, enum=EXECUTE_INDIRECT_V2_operation)
  userdata_scatter_mode: int = bits(0, 25, 23, default=0, enum=EXECUTE_INDIRECT_V2_userdata_scatter_mode)
  thread_trace_enable: int = bits(0, 31, 31, default=0)
  count_addr: int = bits(1, 47, 2, shift=2)
  max_count: int = u32(3)
  stride: int = u32(4)
  data_addr: int = bits(5, 47, 2, shift=2)
  userdata_offset: int = bits(7, 31, 16, default=0)
  spill_table_addr: int = bits(8, 47, 2, shift=2)
  spill_table_stride: int = bits(10, 31, 16, default=0)
  spill_compute_reg0: int = bits(11, 15, 0, default=0)
  spill_compute_reg1: int = bits(11, 31, 16, default=0)


class INDIRECT_BUFFER(Pm4, dwords=3):
  """INDIRECT_BUFFER, type 3 opcode 0x3f, 3 dwords after the header."""
  OP: ClassVar[int] = 0x3f
  ib_base: int = bits(0, 63, 2, shift=2)
  ib_size: int = bits(2, 19, 0)
  chain: int = bits(2, 20, 20, default=0)
  offload_polling: int = bits(2, 21, 21, default=0)
  valid: int = bits(2, 23, 23, default=0)
  vmid: int = bits(2, 27, 24, default=0)
  temporal: int = bits(2, 29, 28, default=0, enum=INDIRECT_BUFFER_temporal)


class INDIRECT_BUFFER_PASID(Pm4, dwords=4):
  """INDIRECT_BUFFER_PASID, type 3 opcode 0x5c, 4 dwords after the header."""
  OP: ClassVar[int] = 0x5c
  ib_base: int = bits(0, 63, 2, shift=2)
  ib_size: int = bits(2, 19, 0)
  chain: int = bits(2, 20, 20, default=0)
  offload_polling: int = bits(2, 21, 21, default=0)
  valid: int = bits(2, 23, 23, default=0)
  temporal: int = bits(2, 29, 28, default=0, enum=INDIRECT_BUFFER_PASID_temporal)
  pasid: int = bits(3, 15, 0, default=0)


class PERF_COUNTER_WINDOW(Pm4, dwords=1):
  """PERF_COUNTER_WINDOW, type 3 opcode 0x3d, 1 dword after the header."""
  OP: ClassVar[int] = 0x3d
  op: int = bits(0, 2, 0, default=0, enum=PERF_COUNTER_WINDOW_op)


class RELEASE_MEM(Pm4, dwords=7):
  """RELEASE_MEM, type 3 opcode 0x49, 7 dwords after the header."""
  OP: ClassVar[int] = 0x49
  event_type: int = bits(0, 5, 0, default=0, enum=VGT_EVENT_TYPE)
  wait_sync: int = bits(0, 7, 7, default=0)
  event_index: int = bits(0, 11, 8, default=0, enum=RELEASE_MEM_event_index)
  gcr_cntl: int = bits(0, 24, 12, default=0)
  temporal: int = bits(0, 26, 25, default=0, enum=RELEASE_MEM_temporal)
  pq_exe_status: int = bits(0, 28, 28, default=0)
  glk_inv: int = bits(0, 30, 30, default=0)
  dst_sel: int = bits(1, 17, 16, default=0, enum=RELEASE_MEM_dst_sel)
  mes_intr_pipe: int = bits(1, 21, 20, default=0)
  mes_action_id: int = bits(1, 23, 22, default=0, enum=RELEASE_MEM_mes_action_id)
  int_sel: int = bits(1, 26, 24, default=0, enum=RELEASE_MEM_int_sel)
  data_sel: int = bits(1, 31, 29, default=0, enum=RELEASE_MEM_data_sel)
  address: int = bits(2, 63, 2, shift=2)
  data: int = u64(4)
  int_ctxid: int = u32(6)

  @property
  def address_lo_32b(self) -> int: return self.address & 0xfffffffc

  @property
  def address_lo_64b(self) -> int: return self.address & 0xfffffff8

  @property
  def data_lo(self) -> int: return self.data & 0xffffffff

  @property
  def cmp_data_lo(self) -> int: return self.data & 0xffffffff

  @property
  def data_hi(self) -> int: return self.data >> 32 & 0xffffffff

  @property
  def cmp_data_hi(self) -> int: return self.data >> 32 & 0xffffffff


class SET_BASE(Pm4, dwords=3):
  """SET_BASE, type 3 opcode 0x11, 3 dwords after the header."""
  OP: ClassVar[int] = 0x11
  base_index: int = bits(0, 3, 0, default=0, enum=SET_BASE_base_index)
  address: int = bits(1, 63, 3, shift=3)


class SET_SH_REG_PAIRS(Pm4, dwords=2):
  """SET_SH_REG_PAIRS, type 3 opcode 0xba, 2 dwords after the header."""
  OP: ClassVar[int] = 0xba
  reg_offset: int = bits(0, 15, 0, default=0)
  reg_data: int = u32(1)


class SET_SH_REG_PAIRS_PACKED(Pm4, dwords=4):
  """SET_SH_REG_PAIRS_PACKED, type 3 opcode 0xbc, 4 dwords after the header, then the payload."""
  OP: ClassVar[int] = 0xbc
  reg_writes_count: int = bits(0, 15, 0, default=0)
  reg_offset0: int = bits(1, 15, 0, default=0)
  reg_offset1: int = bits(1, 31, 16, default=0)
  reg_data0: int = u32(2)
  reg_data1: int = u32(3)
  payload: tuple[int, ...] = rest(default=())


class SET_UCONFIG_REG_PAIRS(Pm4, dwords=2):
  """SET_UCONFIG_REG_PAIRS, type 3 opcode 0xbe, 2 dwords after the header."""
  OP: ClassVar[int] = 0xbe
  reg_offset: int = bits(0, 15, 0, default=0)
  reg_data: int = u32(1)


class WAIT_REG_MEM(Pm4, dwords=6):
  """WAIT_REG_MEM, type 3 opcode 0x3c, 6 dwords after the header."""
  OP: ClassVar[int] = 0x3c
  function: int = bits(0, 2, 0, default=0, enum=WAIT_REG_MEM_function)
  mem_space: int = bits(0, 5, 4, default=0, enum=WAIT_REG_MEM_mem_space)
  operation: int = bits(0, 7, 6, default=0, enum=WAIT_REG_MEM_operation)
  mes_intr_pipe: int = bits(0, 23, 22, default=0)
  mes_action: int = bits(0, 24, 24, default=0)
  temporal: int = bits(0, 26, 25, default=0, enum=WAIT_REG_MEM_temporal)
  mem_poll_addr: int = u64(1)
  reference: int = u32(3)
  mask: int = u32(4)
  poll_interval: int = bits(5, 15, 0, default=0)
  optimize_ace_offload_mode: int = bits(5, 31, 31, default=0)

  @property
  def mem_poll_addr_lo(self) -> int: return self.mem_poll_addr & 0xfffffffc

  @property
  def reg_poll_addr(self) -> int: return self.mem_poll_addr & 0x3ffff

  @property
  def reg_write_addr1(self) -> int: return self.mem_poll_addr & 0x3ffff

  @property
  def mem_poll_addr_hi(self) -> int: return self.mem_poll_addr >> 32 & 0xffffffff

  @property
  def reg_write_addr2(self) -> int: return self.mem_poll_addr >> 32 & 0x3ffff


class WAIT_REG_MEM64(Pm4, dwords=8):
  """WAIT_REG_MEM64, type 3 opcode 0x93, 8 dwords after the header."""
  OP: ClassVar[int] = 0x93
  function: int = bits(0, 2, 0, default=0, enum=WAIT_REG_MEM64_function)
  mem_space: int = bits(0, 5, 4, default=0, enum=WAIT_REG_MEM64_mem_space)
  operation: int = bits(0, 7, 6, default=0, enum=WAIT_REG_MEM64_operation)
  mes_intr_pipe: int = bits(0, 23, 22, default=0)
  mes_action: int = bits(0, 24, 24, default=0)
  temporal: int = bits(0, 26, 25, default=0, enum=WAIT_REG_MEM64_temporal)
  mem_poll_addr: int = u64(1)
  reference: int = u64(3)
  mask: int = u64(5)
  poll_interval: int = bits(7, 15, 0, default=0)
  optimize_ace_offload_mode: int = bits(7, 31, 31, default=0)

  @property
  def mem_poll_addr_lo(self) -> int: return self.mem_poll_addr & 0xfffffff8

  @property
  def reg_poll_addr(self) -> int: return self.mem_poll_addr & 0x3ffff

  @property
  def reg_write_addr1(self) -> int: return self.mem_poll_addr & 0x3ffff

  @property
  def mem_poll_addr_hi(self) -> int: return self.mem_poll_addr >> 32 & 0xffffffff

  @property
  def reg_write_addr2(self) -> int: return self.mem_poll_addr >> 32 & 0x3ffff


class WRITE_DATA(Pm4, dwords=3):
  """WRITE_DATA, type 3 opcode 0x37, 3 dwords after the header, then the payload."""
  OP: ClassVar[int] = 0x37
  dst_sel: int = bits(0, 11, 8, default=0, enum=WRITE_DATA_dst_sel)
  addr_incr: int = bits(0, 16, 16, default=0, enum=WRITE_DATA_addr_incr)
  wr_confirm: int = bits(0, 20, 20, default=0, enum=WRITE_DATA_wr_confirm)
  mode: int = bits(0, 21, 21, default=0, enum=WRITE_DATA_mode)
  aid_id: int = bits(0, 24, 23, default=0)
  temporal: int = bits(0, 26, 25, default=0, enum=WRITE_DATA_temporal)
  dst_mem_addr: int = u64(1)
  payload: tuple[int, ...] = rest(default=())

  @property
  def dst_mmreg_addr_lo(self) -> int: return self.dst_mem_addr & 0xffffffff

  @property
  def dst_mem_addr_lo(self) -> int: return self.dst_mem_addr & 0xfffffffc

  @property
  def dst_mmreg_addr_hi(self) -> int: return self.dst_mem_addr >> 32 & 0x3f

  @property
  def dst_mem_addr_hi(self) -> int: return self.dst_mem_addr >> 32 & 0xffffffff


OPCODES: dict[int, str] = {  # every type-3 opcode that the vendor names, declared above or not
  0x10: "NOP",
  0x11: "SET_BASE",
  0x12: "CLEAR_STATE",
  0x13: "INDEX_BUFFER_SIZE",
  0x15: "DISPATCH_DIRECT",
  0x16: "DISPATCH_INDIRECT",
  0x17: "INDIRECT_BUFFER_END",
  0x19: "INDIRECT_BUFFER_CNST_END",
  0x1c: "RESERVED_1C",
  0x1d: "ATOMIC_GDS",
  0x1e: "ATOMIC_MEM",
  0x1f: "OCCLUSION_QUERY",
  0x20: "SET_PREDICATION",
  0x21: "REG_RMW",
  0x22: "COND_EXEC",
  0x23: "PRED_EXEC",
  0x24: "DRAW_INDIRECT",
  0x25: "DRAW_INDEX_INDIRECT",
  0x26: "INDEX_BASE",
  0x27: "DRAW_INDEX_2",
  0x28: "CONTEXT_CONTROL",
  0x29: "RESERVED_29",
  0x2a: "INDEX_TYPE",
  0x2b: "RESERVED_2B",
  0x2c: "DRAW_INDIRECT_MULTI",
  0x2d: "DRAW_INDEX_AUTO",
  0x2e: "RESERVED_2E",
  0x2f: "NUM_INSTANCES",
  0x30: "DRAW_INDEX_MULTI_AUTO",
  0x31: "RESERVED_31",
  0x32: "INDIRECT_BUFFER_PRIV",
  0x33: "INDIRECT_BUFFER_CNST",
  0x34: "STRMOUT_BUFFER_UPDATE",
  0x35: "DRAW_INDEX_OFFSET_2",
  0x36: "DRAW_PREAMBLE",
  0x37: "WRITE_DATA",
  0x38: "DRAW_INDEX_INDIRECT_MULTI",
  0x39: "MEM_SEMAPHORE",
  0x3b: "COPY_DW",
  0x3c: "WAIT_REG_MEM",
  0x3d: "PERF_COUNTER_WINDOW",
  0x3e: "RESERVED_3E",
  0x3f: "INDIRECT_BUFFER",
  0x40: "COPY_DATA",
  0x41: "CP_DMA",
  0x42: "PFP_SYNC_ME",
  0x43: "SURFACE_SYNC",
  0x44: "ME_INITIALIZE",
  0x45: "COND_WRITE",
  0x46: "EVENT_WRITE",
  0x47: "EVENT_WRITE_EOP",
  0x48: "EVENT_WRITE_EOS",
  0x49: "RELEASE_MEM",
  0x4a: "PREAMBLE_CNTL",
  0x4c: "DISPATCH_MESH_INDIRECT_MULTI",
  0x4d: "DISPATCH_TASKMESH_GFX",
  0x4e: "DISPATCH_MESH_DIRECT",
  0x4f: "RESERVED_4F",
  0x50: "DMA_DATA",
  0x51: "CONTEXT_REG_RMW",
  0x52: "GFX_CNTX_UPDATE",
  0x53: "BLK_CNTX_UPDATE",
  0x54: "PERFMON_CONTROL",
  0x55: "INCR_UPDT_STATE",
  0x57: "RESERVED_57",
  0x58: "ACQUIRE_MEM",
  0x59: "REWIND",
  0x5a: "INTERRUPT",
  0x5b: "GEN_PDEPTE",
  0x5c: "INDIRECT_BUFFER_PASID",
  0x5d: "PRIME_UTCL2",
  0x5e: "LOAD_UCONFIG_REG",
  0x5f: "LOAD_SH_REG",
  0x60: "LOAD_CONFIG_REG",
  0x61: "LOAD_CONTEXT_REG",
  0x62: "LOAD_COMPUTE_STATE",
  0x63: "LOAD_SH_REG_INDEX",
  0x64: "LOAD_UCONFIG_REG_INDEX",
  0x65: "RESERVED_65",
  0x66: "RESERVED_66",
  0x67: "RESERVED_67",
  0x68: "SET_CONFIG_REG",
  0x69: "SET_CONTEXT_REG",
  0x6a: "SET_CONTEXT_REG_INDEX",
  0x6b: "DRAW_RESERVED0",
  0x6c: "DRAW_RESERVED1",
  0x6d: "DRAW_RESERVED2",
  0x6e: "DRAW_RESERVED3",
  0x70: "RESERVED_70",
  0x71: "SET_VGPR_REG_DI_MULTI",
  0x72: "SET_SH_REG_DI",
  0x73: "SET_CONTEXT_REG_INDIRECT",
  0x74: "SET_SH_REG_DI_MULTI",
  0x75: "RESERVED_75",
  0x76: "SET_SH_REG",
  0x77: "SET_SH_REG_OFFSET",
  0x78: "SET_QUEUE_REG",
  0x79: "SET_UCONFIG_REG",
  0x7a: "SET_UCONFIG_REG_INDEX",
  0x7c: "FORWARD_HEADER",
  0x7d: "SCRATCH_RAM_WRITE",
  0x7e: "SCRATCH_RAM_READ",
  0x7f: "RESERVED_7F",
  0x80: "LOAD_CONST_RAM",
  0x81: "WRITE_CONST_RAM",
  0x82: "RESERVED_82",
  0x83: "DUMP_CONST_RAM",
  0x84: "INCREMENT_CE_COUNTER",
  0x85: "INCREMENT_DE_COUNTER",
  0x86: "WAIT_ON_CE_COUNTER",
  0x87: "RESERVED_87",
  0x88: "WAIT_ON_DE_COUNTER_DIFF",
  0x8b: "SWITCH_BUFFER",
  0x8c: "RESERVED_8C",
  0x8d: "RESERVED_8D",
  0x8e: "RESERVED_8E",
  0x8f: "RESERVED_8F",
  0x90: "FRAME_CONTROL",
  0x91: "INDEX_ATTRIBUTES_INDIRECT",
  0x92: "WAIT_FOR_WRITE_CONFIRM",
  0x93: "WAIT_REG_MEM64",
  0x94: "COND_PREEMPT",
  0x95: "HDP_FLUSH",
  0x98: "INVALIDATE_TLBS",
  0x99: "RESERVED_99",
  0x9a: "DMA_DATA_FILL_MULTI",
  0x9b: "SET_SH_REG_INDEX",
  0x9c: "DRAW_INDIRECT_COUNT_MULTI",
  0x9d: "DRAW_INDEX_INDIRECT_COUNT_MULTI",
  0x9e: "DUMP_CONST_RAM_OFFSET",
  0x9f: "LOAD_CONTEXT_REG_INDEX",
  0xa0: "SET_RESOURCES",
  0xa1: "MAP_PROCESS",
  0xa2: "MAP_QUEUES",
  0xa3: "UNMAP_QUEUES",
  0xa4: "QUERY_STATUS",
  0xa5: "RUN_LIST",
  0xa6: "MAP_PROCESS_VM",
  0xa7: "DISPATCH_DIRECT_INTERLEAVED",
  0xa8: "DISPATCH_INDIRECT_INTERLEAVED",
  0xa9: "DISPATCH_TASK_STATE_INIT",
  0xaa: "DISPATCH_TASKMESH_DIRECT_ACE",
  0xab: "CONTEXT_PUSH",
  0xac: "CONTEXT_POP",
  0xad: "DISPATCH_TASKMESH_INDIRECT_MULTI_ACE",
  0xae: "EXECUTE_INDIRECT",
  0xaf: "BUILD_UNTYPED_SRD",
  0xb1: "EVENT_WRITE_ZPASS",
  0xb2: "TIMESTAMP",
  0xb3: "UBER_DRAWS",
  0xb4: "EXECUTE_INDIRECT_V2",
  0xb5: "RESERVED_B5",
  0xb7: "MARKER",
  0xb8: "SET_CONTEXT_REG_PAIRS",
  0xb9: "SET_CONTEXT_REG_PAIRS_PACKED",
  0xba: "SET_SH_REG_PAIRS",
  0xbc: "SET_SH_REG_PAIRS_PACKED",
  0xbd: "SET_SH_REG_PAIRS_PACKED_N",
  0xbe: "SET_UCONFIG_REG_PAIRS",
  0xbf: "RESERVED_BF",
  0xc0: "LOAD_BUFFER_FILLED_SIZE",
  0xc1: "SET_BUFFER_FILLED_SIZE",
  0xc2: "SAVE_BUFFER_FILLED_SIZE",
  0xc3: "STRMOUT_STATS_QUERY",
  0xc4: "RESERVED_C4",
  0xc5: "RESERVED_C5",
  0xc6: "RESERVED_C6",
  0xc7: "RESERVED_C7",
  0xc8: "RESERVED_C8",
  0xc9: "RESERVED_C9",
  0xca: "RESERVED_CA",
  0xcb: "RESERVED_CB",
  0xcc: "RESERVED_CC",
  0xcd: "RESERVED_CD",
  0xce: "RESERVED_CE",
  0xcf: "RESERVED_CF",
  0xd0: "RESERVED_D0",
  0xd1: "RESERVED_D1",
  0xd2: "RESERVED_D2",
  0xd3: "RESERVED_D3",
  0xd5: "RESERVED_D5",
  0xd6: "RESERVED_D6",
  0xd7: "RESERVED_D7",
  0xd8: "RESERVED_D8",
  0xd9: "RESERVED_D9",
  0xda: "RESERVED_DA",
  0xdb: "RESERVED_DB",
  0xdc: "RESERVED_DC",
  0xdd: "RESERVED_DD",
  0xde: "RESERVED_DE",
  0xdf: "RESERVED_DF",
  0xe0: "RESERVED_E0",
  0xe1: "RESERVED_E1",
  0xe2: "RESERVED_E2",
  0xe3: "RESERVED_E3",
  0xe4: "RESERVED_E4",
  0xe5: "RESERVED_E5",
  0xe6: "RESERVED_E6",
  0xe7: "RESERVED_E7",
  0xe8: "RESERVED_E8",
  0xe9: "RESERVED_E9",
  0xea: "RESERVED_EA",
  0xeb: "RESERVED_EB",
  0xec: "RESERVED_EC",
  0xed: "RESERVED_ED",
  0xee: "RESERVED_EE",
  0xef: "UPDATE_DB_SUMMARIZER_TIMEOUT",
  0xf0: "SET_Q_PREEMPTION_MODE",
  0xf1: "RESERVED_F1",
  0xf2: "RESERVED_F2",
  0xf3: "RESERVED_F3",
  0xf4: "RESERVED_F4",
  0xf5: "RESERVED_F5",
  0xf6: "RESERVED_F6",
  0xf7: "RESERVED_F7",
  0xf8: "RESERVED_F8",
  0xf9: "RESERVED_F9",
  0xfa: "RESERVED_FA",
  0xfb: "RESERVED_FB",
  0xfe: "DRAW_MULTI_PREAMBLE",
  0xff: "AQL_PACKET",
}

PACKETS: tuple[type[Pm4], ...] = (
  ACQUIRE_MEM, ATOMIC_MEM, COND_EXEC, COND_INDIRECT_BUFFER, COND_WRITE, COPY_DATA, DISPATCH_DIRECT,
  DISPATCH_INDIRECT, DISPATCH_TASK_STATE_INIT, DISPATCH_TASKMESH_DIRECT_ACE,
  DISPATCH_TASKMESH_INDIRECT_MULTI_ACE, DMA_DATA, DMA_DATA_FILL_MULTI, EVENT_WRITE, EVENT_WRITE_ADDRESS,
  EXECUTE_INDIRECT_V2, HDP_FLUSH, INDIRECT_BUFFER, INDIRECT_BUFFER_PASID, INVALIDATE_TLBS, LOAD_SH_REG_INDEX,
  NOP, PERF_COUNTER_WINDOW, PERFMON_CONTROL, PRIME_UTCL2, RELEASE_MEM, REWIND, SET_BASE, SET_CONFIG_REG,
  SET_QUEUE_REG, SET_SH_REG, SET_SH_REG_INDEX, SET_SH_REG_PAIRS, SET_SH_REG_PAIRS_PACKED,
  SET_SH_REG_PAIRS_PACKED_N, SET_UCONFIG_REG, SET_UCONFIG_REG_PAIRS, TIMESTAMP, WAIT_REG_MEM, WAIT_REG_MEM64,
  WRITE_DATA,
)

# First register and the one after the last of each SET_*_REG packet, in dwords.
SET_CONFIG_REG_START = 0x2000
SET_CONFIG_REG_END = 0x2c00
SET_CONTEXT_REG_START = 0xa000
SET_CONTEXT_REG_END = 0xa400
SET_SH_REG_START = 0x2c00
SET_SH_REG_END = 0x3000
SET_UCONFIG_REG_START = 0xc000
SET_UCONFIG_REG_END = 0xc400
