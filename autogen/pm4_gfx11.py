"""PM4 packets that gfx11's MEC (compute queues) executes: one class a packet, fields as the vendor names them.

Generated; do not edit. Source:
  GPUOpen-Drivers/pal commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29), licence MIT
    src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_f32_mec_pm4_packets.h sha256 2306521fc358bfd547674a38d67e8521b708332b9614128b479787b97d4fef1c
    src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_pm4_it_opcodes.h sha256 fdc46daab2653790ced8ec1d2aa426e9d9ca6b5e9e01b18d7cdee3d3c5640218
    src/core/hw/gfxip/gfx9/gfx9CmdUtil.cpp sha256 eaf47f28246173753051f2d5529bf0ad1d64026b919ddfbe6f971c1faa4519fb
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/amdgpu/nvd.h sha256 f65a105dfceff3bc03b3e02ac52ed18586586a5866135170a3239ec77fbe29c8
    drivers/gpu/drm/amd/include/soc21_enum.h sha256 38180a3a0b49d4cb1f3ced4df45e0d2fb1963fb928d8ec6ed5eb4ed9c9c42099
Generator: tinyhw gen pm4

110 opcodes and 18 fields are the same in PAL and in nvd.h; the opcodes of AQL_PACKET (0xff and 0x99),
DRAW_MULTI_PREAMBLE (0xfe and 0x8f) differ, and neither is declared here. A field X stands for the vendor's X_lo and
X_hi. Addresses are given whole: low bits that are not stored must be zero. Fields under 20 bits default to 0. Left
out, as they are other generations' or have no opcode: DISPATCH_DRAW_ACE, DISPATCH_DRAW_PREAMBLE_ACE, MEM_SEMAPHORE,
WAIT_ON_CE_COUNTER.
"""
from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from tinyhw.core.layout import Packet, Register, bits, rest, u32, u64, unused


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
  Reserved_0x09 = 9
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
  ENABLE_LEGACY_PIPELINE = 0x3e
  DRAW_DONE = 0x3f


class TC_OP(IntEnum):
  """From the kernel's enums of the chip (soc*_enum.h)."""
  TC_OP_READ = 0
  TC_OP_ATOMIC_FCMPSWAP_RTN_32 = 1
  TC_OP_ATOMIC_FMIN_RTN_32 = 2
  TC_OP_ATOMIC_FMAX_RTN_32 = 3
  TC_OP_RESERVED_FOP_RTN_32_0 = 4
  TC_OP_RESERVED_FADD_RTN_32 = 5
  TC_OP_RESERVED_FOP_RTN_32_2 = 6
  TC_OP_ATOMIC_SWAP_RTN_32 = 7
  TC_OP_ATOMIC_CMPSWAP_RTN_32 = 8
  TC_OP_ATOMIC_FCMPSWAP_FLUSH_DENORM_RTN_32 = 9
  TC_OP_ATOMIC_FMIN_FLUSH_DENORM_RTN_32 = 0xa
  TC_OP_ATOMIC_FMAX_FLUSH_DENORM_RTN_32 = 0xb
  TC_OP_PROBE_FILTER = 0xc
  TC_OP_ATOMIC_FADD_FLUSH_DENORM_RTN_32 = 0xd
  TC_OP_RESERVED_FOP_FLUSH_DENORM_RTN_32_2 = 0xe
  TC_OP_ATOMIC_ADD_RTN_32 = 0xf
  TC_OP_ATOMIC_SUB_RTN_32 = 0x10
  TC_OP_ATOMIC_SMIN_RTN_32 = 0x11
  TC_OP_ATOMIC_UMIN_RTN_32 = 0x12
  TC_OP_ATOMIC_SMAX_RTN_32 = 0x13
  TC_OP_ATOMIC_UMAX_RTN_32 = 0x14
  TC_OP_ATOMIC_AND_RTN_32 = 0x15
  TC_OP_ATOMIC_OR_RTN_32 = 0x16
  TC_OP_ATOMIC_XOR_RTN_32 = 0x17
  TC_OP_ATOMIC_INC_RTN_32 = 0x18
  TC_OP_ATOMIC_DEC_RTN_32 = 0x19
  TC_OP_WBINVL1_VOL = 0x1a
  TC_OP_WBINVL1_SD = 0x1b
  TC_OP_RESERVED_NON_FLOAT_RTN_32_0 = 0x1c
  TC_OP_RESERVED_NON_FLOAT_RTN_32_1 = 0x1d
  TC_OP_RESERVED_NON_FLOAT_RTN_32_2 = 0x1e
  TC_OP_RESERVED_NON_FLOAT_RTN_32_3 = 0x1f
  TC_OP_WRITE = 0x20
  TC_OP_ATOMIC_FCMPSWAP_RTN_64 = 0x21
  TC_OP_ATOMIC_FMIN_RTN_64 = 0x22
  TC_OP_ATOMIC_FMAX_RTN_64 = 0x23
  TC_OP_RESERVED_FOP_RTN_64_0 = 0x24
  TC_OP_RESERVED_FOP_RTN_64_1 = 0x25
  TC_OP_RESERVED_FOP_RTN_64_2 = 0x26
  TC_OP_ATOMIC_SWAP_RTN_64 = 0x27
  TC_OP_ATOMIC_CMPSWAP_RTN_64 = 0x28
  TC_OP_ATOMIC_FCMPSWAP_FLUSH_DENORM_RTN_64 = 0x29
  TC_OP_ATOMIC_FMIN_FLUSH_DENORM_RTN_64 = 0x2a
  TC_OP_ATOMIC_FMAX_FLUSH_DENORM_RTN_64 = 0x2b
  TC_OP_WBINVL2_SD = 0x2c
  TC_OP_RESERVED_FOP_FLUSH_DENORM_RTN_64_0 = 0x2d
  TC_OP_RESERVED_FOP_FLUSH_DENORM_RTN_64_1 = 0x2e
  TC_OP_ATOMIC_ADD_RTN_64 = 0x2f
  TC_OP_ATOMIC_SUB_RTN_64 = 0x30
  TC_OP_ATOMIC_SMIN_RTN_64 = 0x31
  TC_OP_ATOMIC_UMIN_RTN_64 = 0x32
  TC_OP_ATOMIC_SMAX_RTN_64 = 0x33
  TC_OP_ATOMIC_UMAX_RTN_64 = 0x34
  TC_OP_ATOMIC_AND_RTN_64 = 0x35
  TC_OP_ATOMIC_OR_RTN_64 = 0x36
  TC_OP_ATOMIC_XOR_RTN_64 = 0x37
  TC_OP_ATOMIC_INC_RTN_64 = 0x38
  TC_OP_ATOMIC_DEC_RTN_64 = 0x39
  TC_OP_WBL2_NC = 0x3a
  TC_OP_WBL2_WC = 0x3b
  TC_OP_RESERVED_NON_FLOAT_RTN_64_1 = 0x3c
  TC_OP_RESERVED_NON_FLOAT_RTN_64_2 = 0x3d
  TC_OP_RESERVED_NON_FLOAT_RTN_64_3 = 0x3e
  TC_OP_RESERVED_NON_FLOAT_RTN_64_4 = 0x3f
  TC_OP_WBINVL1 = 0x40
  TC_OP_ATOMIC_FCMPSWAP_32 = 0x41
  TC_OP_ATOMIC_FMIN_32 = 0x42
  TC_OP_ATOMIC_FMAX_32 = 0x43
  TC_OP_RESERVED_FOP_32_0 = 0x44
  TC_OP_RESERVED_FADD_32 = 0x45
  TC_OP_RESERVED_FOP_32_2 = 0x46
  TC_OP_ATOMIC_SWAP_32 = 0x47
  TC_OP_ATOMIC_CMPSWAP_32 = 0x48
  TC_OP_ATOMIC_FCMPSWAP_FLUSH_DENORM_32 = 0x49
  TC_OP_ATOMIC_FMIN_FLUSH_DENORM_32 = 0x4a
  TC_OP_ATOMIC_FMAX_FLUSH_DENORM_32 = 0x4b
  TC_OP_INV_METADATA = 0x4c
  TC_OP_ATOMIC_FADD_FLUSH_DENORM_32 = 0x4d
  TC_OP_RESERVED_FOP_FLUSH_DENORM_32_2 = 0x4e
  TC_OP_ATOMIC_ADD_32 = 0x4f
  TC_OP_ATOMIC_SUB_32 = 0x50
  TC_OP_ATOMIC_SMIN_32 = 0x51
  TC_OP_ATOMIC_UMIN_32 = 0x52
  TC_OP_ATOMIC_SMAX_32 = 0x53
  TC_OP_ATOMIC_UMAX_32 = 0x54
  TC_OP_ATOMIC_AND_32 = 0x55
  TC_OP_ATOMIC_OR_32 = 0x56
  TC_OP_ATOMIC_XOR_32 = 0x57
  TC_OP_ATOMIC_INC_32 = 0x58
  TC_OP_ATOMIC_DEC_32 = 0x59
  TC_OP_INVL2_NC = 0x5a
  TC_OP_NOP_RTN0 = 0x5b
  TC_OP_RESERVED_NON_FLOAT_32_1 = 0x5c
  TC_OP_RESERVED_NON_FLOAT_32_2 = 0x5d
  TC_OP_RESERVED_NON_FLOAT_32_3 = 0x5e
  TC_OP_RESERVED_NON_FLOAT_32_4 = 0x5f
  TC_OP_WBINVL2 = 0x60
  TC_OP_ATOMIC_FCMPSWAP_64 = 0x61
  TC_OP_ATOMIC_FMIN_64 = 0x62
  TC_OP_ATOMIC_FMAX_64 = 0x63
  TC_OP_RESERVED_FOP_64_0 = 0x64
  TC_OP_RESERVED_FOP_64_1 = 0x65
  TC_OP_RESERVED_FOP_64_2 = 0x66
  TC_OP_ATOMIC_SWAP_64 = 0x67
  TC_OP_ATOMIC_CMPSWAP_64 = 0x68
  TC_OP_ATOMIC_FCMPSWAP_FLUSH_DENORM_64 = 0x69
  TC_OP_ATOMIC_FMIN_FLUSH_DENORM_64 = 0x6a
  TC_OP_ATOMIC_FMAX_FLUSH_DENORM_64 = 0x6b
  TC_OP_RESERVED_FOP_FLUSH_DENORM_64_0 = 0x6c
  TC_OP_RESERVED_FOP_FLUSH_DENORM_64_1 = 0x6d
  TC_OP_RESERVED_FOP_FLUSH_DENORM_64_2 = 0x6e
  TC_OP_ATOMIC_ADD_64 = 0x6f
  TC_OP_ATOMIC_SUB_64 = 0x70
  TC_OP_ATOMIC_SMIN_64 = 0x71
  TC_OP_ATOMIC_UMIN_64 = 0x72
  TC_OP_ATOMIC_SMAX_64 = 0x73
  TC_OP_ATOMIC_UMAX_64 = 0x74
  TC_OP_ATOMIC_AND_64 = 0x75
  TC_OP_ATOMIC_OR_64 = 0x76
  TC_OP_ATOMIC_XOR_64 = 0x77
  TC_OP_ATOMIC_INC_64 = 0x78
  TC_OP_ATOMIC_DEC_64 = 0x79
  TC_OP_WBINVL2_NC = 0x7a
  TC_OP_NOP_ACK = 0x7b
  TC_OP_RESERVED_NON_FLOAT_64_1 = 0x7c
  TC_OP_RESERVED_NON_FLOAT_64_2 = 0x7d
  TC_OP_RESERVED_NON_FLOAT_64_3 = 0x7e
  TC_OP_RESERVED_NON_FLOAT_64_4 = 0x7f


class ATOMIC_GDS_atom_cmp_swap(IntEnum):
  dont_repeat = 0
  repeat_until_pass = 1


class ATOMIC_GDS_atom_complete(IntEnum):
  dont_wait = 0
  wait_for_completion = 1


class ATOMIC_GDS_atom_read(IntEnum):
  dont_read_preop_data = 0
  read_preop_data = 1


class ATOMIC_GDS_atom_rd_cntl(IntEnum):
  _32bits_1returnval = 0
  _32bits_2returnval = 1
  _64bits_1returnval = 2
  _64bits_2returnval = 3


class ATOMIC_MEM_command(IntEnum):
  single_pass_atomic = 0
  loop_until_compare_satisfied = 1
  wait_for_write_confirmation = 2
  send_and_continue = 3


class ATOMIC_MEM_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class COND_EXEC_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class COND_INDIRECT_BUFFER_mode(IntEnum):
  if_then = 1
  if_then_else = 2


class COND_INDIRECT_BUFFER_function(IntEnum):
  always_pass = 0
  less_than_ref_value = 1
  less_than_equal_to_the_ref_value = 2
  equal_to_the_reference_value = 3
  not_equal_reference_value = 4
  greater_than_or_equal_reference_value = 5
  greater_than_reference_value = 6


class COND_INDIRECT_BUFFER_cache_policy1(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class COND_INDIRECT_BUFFER_cache_policy2(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class COND_WRITE_function(IntEnum):
  always_pass = 0
  less_than_ref_value = 1
  less_than_equal_to_the_ref_value = 2
  equal_to_the_reference_value = 3
  not_equal_reference_value = 4
  greater_than_or_equal_reference_value = 5
  greater_than_reference_value = 6


class COND_WRITE_poll_space(IntEnum):
  register = 0
  memory = 1


class COND_WRITE_write_space(IntEnum):
  register = 0
  memory = 1
  scratch = 2


class COND_WRITE_wr_confirm(IntEnum):
  do_not_wait_for_write_confirmation = 0
  wait_for_write_confirmation = 1


class COPY_DATA_src_sel(IntEnum):
  mem_mapped_register = 0
  tc_l2_obsolete = 1
  tc_l2 = 2
  gds = 3
  perfcounters = 4
  immediate_data = 5
  atomic_return_data = 6
  gds_atomic_return_data0 = 7
  gds_atomic_return_data1 = 8
  gpu_clock_count = 9
  system_clock_count = 0xa


class COPY_DATA_dst_sel(IntEnum):
  mem_mapped_register = 0
  tc_l2 = 2
  gds = 3
  perfcounters = 4
  tc_l2_obsolete = 5
  mem_mapped_reg_dc = 6


class COPY_DATA_src_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class COPY_DATA_count_sel(IntEnum):
  _32_bits_of_data = 0
  _64_bits_of_data = 1


class COPY_DATA_wr_confirm(IntEnum):
  do_not_wait_for_confirmation = 0
  wait_for_confirmation = 1


class COPY_DATA_dst_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class COPY_DATA_pq_exe_status(IntEnum):
  default = 0
  phase_update = 1


class DMA_DATA_src_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class DMA_DATA_dst_sel(IntEnum):
  dst_addr_using_das = 0
  gds = 1
  dst_nowhere = 2
  dst_addr_using_l2 = 3


class DMA_DATA_dst_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class DMA_DATA_src_sel(IntEnum):
  src_addr_using_sas = 0
  gds = 1
  data = 2
  src_addr_using_l2 = 3


class DMA_DATA_sas(IntEnum):
  memory = 0


class DMA_DATA_das(IntEnum):
  memory = 0


class DMA_DATA_saic(IntEnum):
  increment = 0
  no_increment = 1


class DMA_DATA_daic(IntEnum):
  increment = 0
  no_increment = 1


class DMA_DATA_FILL_MULTI_dst_sel(IntEnum):
  dst_addr_using_l2 = 3


class DMA_DATA_FILL_MULTI_dst_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class DMA_DATA_FILL_MULTI_src_sel(IntEnum):
  data = 2


class EVENT_WRITE_event_index(IntEnum):
  other = 0
  sample_pipelinestat = 2
  cs_partial_flush = 4
  sample_streamoutstats = 8
  sample_streamoutstats1 = 9
  sample_streamoutstats2 = 0xa
  sample_streamoutstats3 = 0xb


class EVENT_WRITE_samp_plst_cntr_mode(IntEnum):
  legacy_mode = 0
  mixed_mode1 = 1
  new_mode = 2
  mixed_mode3 = 3


class INDIRECT_BUFFER_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class INDIRECT_BUFFER_PASID_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class INVALIDATE_TLBS_invalidate_sel(IntEnum):
  invalidate = 0
  use_pasid = 1


class INVALIDATE_TLBS_mmhub_invalidate_sel(IntEnum):
  do_not_invalidate_mmhub = 0
  use_mmhub_flush_type = 1
  use_gfx_flush_type = 2


class PRIME_UTCL2_prime_mode(IntEnum):
  dont_wait_for_xack = 0
  wait_for_xack = 1


class RELEASE_MEM_event_index(IntEnum):
  end_of_pipe = 5
  shader_done = 6


class RELEASE_MEM_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class RELEASE_MEM_dst_sel(IntEnum):
  memory_controller = 0
  tc_l2 = 1
  queue_write_pointer_register = 2
  queue_write_pointer_poll_mask_bit = 3


class RELEASE_MEM_mes_action_id(IntEnum):
  no_mes_notification = 0
  interrupt_and_fence = 1
  interrupt_no_fence_then_address_payload = 2
  interrupt_and_address_payload = 3


class RELEASE_MEM_int_sel(IntEnum):
  none = 0
  send_interrupt_only = 1
  send_interrupt_after_write_confirm = 2
  send_data_and_write_confirm = 3
  unconditionally_send_int_ctxid = 4
  conditionally_send_int_ctxid_based_on_32_bit_compare = 5
  conditionally_send_int_ctxid_based_on_64_bit_compare = 6


class RELEASE_MEM_data_sel(IntEnum):
  none = 0
  send_32_bit_low = 1
  send_64_bit_data = 2
  send_gpu_clock_counter = 3
  send_system_clock_counter = 4
  store_gds_data_to_memory = 5
  atomic_add32bit_low = 7


class SET_CONFIG_REG_index(IntEnum):
  default = 0
  insert_vmid = 1


class SET_SH_REG_index(IntEnum):
  default = 0
  insert_vmid = 1


class SET_SH_REG_INDEX_index(IntEnum):
  default = 0
  insert_vmid = 1
  apply_kmd_cu_and_mask = 3


class WAIT_REG_MEM_function(IntEnum):
  always_pass = 0
  less_than_ref_value = 1
  less_than_equal_to_the_ref_value = 2
  equal_to_the_reference_value = 3
  not_equal_reference_value = 4
  greater_than_or_equal_reference_value = 5
  greater_than_reference_value = 6


class WAIT_REG_MEM_mem_space(IntEnum):
  register_space = 0
  memory_space = 1


class WAIT_REG_MEM_operation(IntEnum):
  wait_reg_mem = 0
  wr_wait_wr_reg = 1
  wait_mem_preemptable = 3


class WAIT_REG_MEM_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class WAIT_REG_MEM64_function(IntEnum):
  always_pass = 0
  less_than_ref_value = 1
  less_than_equal_to_the_ref_value = 2
  equal_to_the_reference_value = 3
  not_equal_reference_value = 4
  greater_than_or_equal_reference_value = 5
  greater_than_reference_value = 6


class WAIT_REG_MEM64_mem_space(IntEnum):
  register_space = 0
  memory_space = 1


class WAIT_REG_MEM64_operation(IntEnum):
  wait_reg_mem = 0
  wr_wait_wr_reg = 1
  wait_mem_preemptable = 3


class WAIT_REG_MEM64_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class WRITE_DATA_dst_sel(IntEnum):
  mem_mapped_register = 0
  tc_l2 = 2
  gds = 3
  memory = 5
  memory_mapped_adc_persistent_state = 6


class WRITE_DATA_addr_incr(IntEnum):
  increment_address = 0
  do_not_increment_address = 1


class WRITE_DATA_wr_confirm(IntEnum):
  do_not_wait_for_write_confirmation = 0
  wait_for_write_confirmation = 1


class WRITE_DATA_cache_policy(IntEnum):
  lru = 0
  stream = 1
  noa = 2
  bypass = 3


class LOAD_SH_REG_INDEX_index(IntEnum):
  direct_addr = 0
  indirect_addr = 2


class LOAD_SH_REG_INDEX_data_format(IntEnum):
  offset_and_size = 0
  offset_and_data = 1


class PERFMON_CONTROL_pmc_en(IntEnum):
  perfmon_disable = 0
  perfmon_enable = 1


class PERF_COUNTER_WINDOW_op(IntEnum):
  stop_window = 0
  start_window = 7


class TIMESTAMP_clock_sel(IntEnum):
  gfx_ip_clock = 0
  soc_clock = 1


class Pm4(Packet):
  """Base of the packets. OP is the type-3 opcode; the header is made and read by tinyhw.wire.pm4."""
  OP: ClassVar[int] = -1


class ACQUIRE_MEM_GCR_CNTL(Register, offset=-1):
  """Bits of ACQUIRE_MEM.gcr_cntl: `ACQUIRE_MEM_GCR_CNTL(...).value()`."""
  GLI_INV: int = bits(0, 1, 0, default=0)
  GL1_RANGE: int = bits(0, 3, 2, default=0)
  GLM_WB: int = bits(0, 4, 4, default=0)
  GLM_INV: int = bits(0, 5, 5, default=0)
  GLK_WB: int = bits(0, 6, 6, default=0)
  GLK_INV: int = bits(0, 7, 7, default=0)
  GLV_INV: int = bits(0, 8, 8, default=0)
  GL1_INV: int = bits(0, 9, 9, default=0)
  GL2_US: int = bits(0, 10, 10, default=0)
  GL2_RANGE: int = bits(0, 12, 11, default=0)
  GL2_DISCARD: int = bits(0, 13, 13, default=0)
  GL2_INV: int = bits(0, 14, 14, default=0)
  GL2_WB: int = bits(0, 15, 15, default=0)
  SEQ: int = bits(0, 17, 16, default=0)
  RANGE_IS_PA: int = bits(0, 18, 18, default=0)


class RELEASE_MEM_GCR_CNTL(Register, offset=-1):
  """Bits of RELEASE_MEM.gcr_cntl: `RELEASE_MEM_GCR_CNTL(...).value()`."""
  GLM_WB: int = bits(0, 0, 0, default=0)
  GLM_INV: int = bits(0, 1, 1, default=0)
  GLV_INV: int = bits(0, 2, 2, default=0)
  GL1_INV: int = bits(0, 3, 3, default=0)
  GL2_US: int = bits(0, 4, 4, default=0)
  GL2_RANGE: int = bits(0, 6, 5, default=0)
  GL2_DISCARD: int = bits(0, 7, 7, default=0)
  GL2_INV: int = bits(0, 8, 8, default=0)
  GL2_WB: int = bits(0, 9, 9, default=0)
  SEQ: int = bits(0, 11, 10, default=0)
  GLK_WB: int = bits(0, 12, 12, default=0)


class ACQUIRE_MEM(Pm4, dwords=7):
  """ACQUIRE_MEM, type 3 opcode 0x58, 7 dwords after the header."""
  OP: ClassVar[int] = 0x58
  coher_size: int = bits(1, 39, 0)
  coher_size_unused: int = unused(2, 31, 8)
  coher_base: int = bits(3, 55, 0)
  poll_interval: int = bits(5, 15, 0, default=0)
  gcr_cntl: int = bits(6, 18, 0, default=0)


class ATOMIC_GDS(Pm4, dwords=10):
  """ATOMIC_GDS, type 3 opcode 0x1d, 10 dwords after the header."""
  OP: ClassVar[int] = 0x1d
  atom_op: int = bits(0, 7, 0, default=0)
  atom_cmp_swap: int = bits(0, 16, 16, default=0, enum=ATOMIC_GDS_atom_cmp_swap)
  atom_complete: int = bits(0, 17, 17, default=0, enum=ATOMIC_GDS_atom_complete)
  atom_read: int = bits(0, 18, 18, default=0, enum=ATOMIC_GDS_atom_read)
  atom_rd_cntl: int = bits(0, 20, 19, default=0, enum=ATOMIC_GDS_atom_rd_cntl)
  auto_inc_bytes: int = bits(1, 5, 0, default=0)
  dmode: int = bits(1, 8, 8, default=0)
  atom_base: int = bits(2, 15, 0, default=0)
  atom_size: int = bits(3, 15, 0, default=0)
  atom_offset0: int = bits(4, 7, 0, default=0)
  atom_offset1: int = bits(4, 23, 16, default=0)
  atom_dst: int = u32(5)
  atom_src0: int = u32(6)
  atom_src0_u: int = u32(7)
  atom_src1: int = u32(8)
  atom_src1_u: int = u32(9)


class ATOMIC_MEM(Pm4, dwords=8):
  """ATOMIC_MEM, type 3 opcode 0x1e, 8 dwords after the header."""
  OP: ClassVar[int] = 0x1e
  atomic: int = bits(0, 6, 0, default=0, enum=TC_OP)
  command: int = bits(0, 11, 8, default=0, enum=ATOMIC_MEM_command)
  cache_policy: int = bits(0, 26, 25, default=0, enum=ATOMIC_MEM_cache_policy)
  addr: int = u64(1)
  src_data: int = u64(3)
  cmp_data: int = u64(5)
  loop_interval: int = bits(7, 12, 0, default=0)


class COND_EXEC(Pm4, dwords=4):
  """COND_EXEC, type 3 opcode 0x22, 4 dwords after the header."""
  OP: ClassVar[int] = 0x22
  addr: int = bits(0, 63, 2, shift=2)
  cache_policy: int = bits(2, 26, 25, default=0, enum=COND_EXEC_cache_policy)
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
  cache_policy1: int = bits(9, 29, 28, default=0, enum=COND_INDIRECT_BUFFER_cache_policy1)
  ib_base2: int = bits(10, 63, 2, shift=2)
  ib_size2: int = bits(12, 19, 0)
  cache_policy2: int = bits(12, 29, 28, default=0, enum=COND_INDIRECT_BUFFER_cache_policy2)


class COND_WRITE(Pm4, dwords=8):
  """COND_WRITE, type 3 opcode 0x45, 8 dwords after the header."""
  OP: ClassVar[int] = 0x45
  function: int = bits(0, 2, 0, default=0, enum=COND_WRITE_function)
  poll_space: int = bits(0, 4, 4, default=0, enum=COND_WRITE_poll_space)
  write_space: int = bits(0, 9, 8, default=0, enum=COND_WRITE_write_space)
  wr_confirm: int = bits(0, 20, 20, default=0, enum=COND_WRITE_wr_confirm)
  poll_address: int = u64(1)
  reference: int = u32(3)
  mask: int = u32(4)
  write_address: int = u64(5)
  write_data: int = u32(7)


class COPY_DATA(Pm4, dwords=5):
  """COPY_DATA, type 3 opcode 0x40, 5 dwords after the header."""
  OP: ClassVar[int] = 0x40
  src_sel: int = bits(0, 3, 0, default=0, enum=COPY_DATA_src_sel)
  dst_sel: int = bits(0, 11, 8, default=0, enum=COPY_DATA_dst_sel)
  src_cache_policy: int = bits(0, 14, 13, default=0, enum=COPY_DATA_src_cache_policy)
  count_sel: int = bits(0, 16, 16, default=0, enum=COPY_DATA_count_sel)
  wr_confirm: int = bits(0, 20, 20, default=0, enum=COPY_DATA_wr_confirm)
  dst_cache_policy: int = bits(0, 26, 25, default=0, enum=COPY_DATA_dst_cache_policy)
  pq_exe_status: int = bits(0, 29, 29, default=0, enum=COPY_DATA_pq_exe_status)
  src_addr: int = u64(1)
  dst_addr: int = u64(3)

  @property
  def src_reg_offset(self) -> int: return self.src_addr & 0x3ffff

  @property
  def src_32b_addr_lo(self) -> int: return self.src_addr & 0xfffffffc

  @property
  def src_64b_addr_lo(self) -> int: return self.src_addr & 0xfffffff8

  @property
  def src_gds_addr_lo(self) -> int: return self.src_addr & 0xffff

  @property
  def imm_data(self) -> int: return self.src_addr & 0xffffffff

  @property
  def src_memtc_addr_hi(self) -> int: return self.src_addr >> 32 & 0xffffffff

  @property
  def src_imm_data(self) -> int: return self.src_addr >> 32 & 0xffffffff

  @property
  def dst_reg_offset(self) -> int: return self.dst_addr & 0x3ffff

  @property
  def dst_32b_addr_lo(self) -> int: return self.dst_addr & 0xfffffffc

  @property
  def dst_64b_addr_lo(self) -> int: return self.dst_addr & 0xfffffff8

  @property
  def dst_gds_addr_lo(self) -> int: return self.dst_addr & 0xffff


class DISPATCH_DIRECT(Pm4, dwords=4):
  """DISPATCH_DIRECT, type 3 opcode 0x15, 4 dwords after the header."""
  OP: ClassVar[int] = 0x15
  dim_x: int = u32(0)
  dim_y: int = u32(1)
  dim_z: int = u32(2)
  dispatch_initiator: int = u32(3)


class DISPATCH_INDIRECT(Pm4, dwords=3):
  """DISPATCH_INDIRECT, type 3 opcode 0x16, 3 dwords after the header."""
  OP: ClassVar[int] = 0x16
  addr: int = u64(0)
  dispatch_initiator: int = u32(2)


class DISPATCH_TASK_STATE_INIT(Pm4, dwords=2):
  """DISPATCH_TASK_STATE_INIT, type 3 opcode 0xa9, 2 dwords after the header."""
  OP: ClassVar[int] = 0xa9
  control_buf_addr: int = bits(0, 63, 8, shift=8)


class DISPATCH_TASKMESH_DIRECT_ACE(Pm4, dwords=5):
  """DISPATCH_TASKMESH_DIRECT_ACE, type 3 opcode 0xaa, 5 dwords after the header."""
  OP: ClassVar[int] = 0xaa
  x_dim: int = u32(0)
  y_dim: int = u32(1)
  z_dim: int = u32(2)
  dispatch_initiator: int = u32(3)
  ring_entry_loc: int = bits(4, 15, 0, default=0)


class DISPATCH_TASKMESH_INDIRECT_MULTI_ACE(Pm4, dwords=10):
  """DISPATCH_TASKMESH_INDIRECT_MULTI_ACE, type 3 opcode 0xad, 10 dwords after the header."""
  OP: ClassVar[int] = 0xad
  data_addr: int = bits(0, 63, 2, shift=2)
  ring_entry_loc: int = bits(2, 15, 0, default=0)
  thread_trace_marker_enable: int = bits(3, 0, 0, default=0)
  count_indirect_enable: int = bits(3, 1, 1, default=0)
  draw_index_enable: int = bits(3, 2, 2, default=0)
  compute_xyz_dim_enable: int = bits(3, 3, 3, default=0)
  dispatch_index_loc: int = bits(3, 31, 16, default=0)
  compute_xyz_dim_loc: int = bits(4, 15, 0, default=0)
  count: int = u32(5)
  count_addr: int = bits(6, 63, 2, shift=2)
  stride: int = u32(8)
  dispatch_initiator: int = u32(9)


class DMA_DATA(Pm4, dwords=6):
  """DMA_DATA, type 3 opcode 0x50, 6 dwords after the header."""
  OP: ClassVar[int] = 0x50
  src_cache_policy: int = bits(0, 14, 13, default=0, enum=DMA_DATA_src_cache_policy)
  dst_sel: int = bits(0, 21, 20, default=0, enum=DMA_DATA_dst_sel)
  dst_cache_policy: int = bits(0, 26, 25, default=0, enum=DMA_DATA_dst_cache_policy)
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
  dst_cache_policy: int = bits(0, 26, 25, default=0, enum=DMA_DATA_FILL_MULTI_dst_cache_policy)
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
  offload_enable: int = bits(0, 31, 31, default=0)
  samp_plst_cntr_mode: int = bits(0, 30, 29, default=0, enum=EVENT_WRITE_samp_plst_cntr_mode)


class EVENT_WRITE_ADDRESS(EVENT_WRITE, dwords=3):
  """EVENT_WRITE with its address dwords."""
  address: int = bits(1, 63, 3, shift=3)


class HDP_FLUSH(Pm4, dwords=1):
  """HDP_FLUSH, type 3 opcode 0x95, 1 dword after the header."""
  OP: ClassVar[int] = 0x95
  dummy: int = u32(0)


class INDIRECT_BUFFER(Pm4, dwords=3):
  """INDIRECT_BUFFER, type 3 opcode 0x3f, 3 dwords after the header."""
  OP: ClassVar[int] = 0x3f
  ib_base: int = bits(0, 63, 2, shift=2)
  ib_size: int = bits(2, 19, 0)
  chain: int = bits(2, 20, 20, default=0)
  offload_polling: int = bits(2, 21, 21, default=0)
  valid: int = bits(2, 23, 23, default=0)
  vmid: int = bits(2, 27, 24, default=0)
  cache_policy: int = bits(2, 29, 28, default=0, enum=INDIRECT_BUFFER_cache_policy)


class INDIRECT_BUFFER_PASID(Pm4, dwords=4):
  """INDIRECT_BUFFER_PASID, type 3 opcode 0x5c, 4 dwords after the header."""
  OP: ClassVar[int] = 0x5c
  ib_base: int = bits(0, 63, 2, shift=2)
  ib_size: int = bits(2, 19, 0)
  chain: int = bits(2, 20, 20, default=0)
  offload_polling: int = bits(2, 21, 21, default=0)
  valid: int = bits(2, 23, 23, default=0)
  cache_policy: int = bits(2, 29, 28, default=0, enum=INDIRECT_BUFFER_PASID_cache_policy)
  pasid: int = bits(3, 15, 0, default=0)


class INVALIDATE_TLBS(Pm4, dwords=1):
  """INVALIDATE_TLBS, type 3 opcode 0x98, 1 dword after the header."""
  OP: ClassVar[int] = 0x98
  invalidate_sel: int = bits(0, 2, 0, default=0, enum=INVALIDATE_TLBS_invalidate_sel)
  mmhub_invalidate_sel: int = bits(0, 4, 3, default=0, enum=INVALIDATE_TLBS_mmhub_invalidate_sel)
  pasid: int = bits(0, 20, 5, default=0)
  mmhub_flush_type: int = bits(0, 27, 25, default=0)
  gfx_flush_type: int = bits(0, 31, 29, default=0)


class NOP(Pm4, dwords=0):
  """NOP, type 3 opcode 0x10, 0 dwords after the header, then the payload."""
  OP: ClassVar[int] = 0x10
  payload: tuple[int, ...] = rest(default=())


class PRIME_UTCL2(Pm4, dwords=4):
  """PRIME_UTCL2, type 3 opcode 0x5d, 4 dwords after the header."""
  OP: ClassVar[int] = 0x5d
  cache_perm: int = bits(0, 2, 0, default=0)
  prime_mode: int = bits(0, 3, 3, default=0, enum=PRIME_UTCL2_prime_mode)
  addr: int = u64(1)
  requested_pages: int = bits(3, 13, 0, default=0)


class RELEASE_MEM(Pm4, dwords=7):
  """RELEASE_MEM, type 3 opcode 0x49, 7 dwords after the header."""
  OP: ClassVar[int] = 0x49
  event_type: int = bits(0, 5, 0, default=0, enum=VGT_EVENT_TYPE)
  event_index: int = bits(0, 11, 8, default=0, enum=RELEASE_MEM_event_index)
  cache_policy: int = bits(0, 26, 25, default=0, enum=RELEASE_MEM_cache_policy)
  wait_sync: int = bits(0, 7, 7, default=0)
  gcr_cntl: int = bits(0, 24, 12, default=0)
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
  def dw_offset(self) -> int: return self.data & 0xffff

  @property
  def num_dwords(self) -> int: return self.data >> 16 & 0xffff

  @property
  def data_hi(self) -> int: return self.data >> 32 & 0xffffffff

  @property
  def cmp_data_hi(self) -> int: return self.data >> 32 & 0xffffffff


class REWIND(Pm4, dwords=1):
  """REWIND, type 3 opcode 0x59, 1 dword after the header."""
  OP: ClassVar[int] = 0x59
  offload_enable: int = bits(0, 24, 24, default=0)
  valid: int = bits(0, 31, 31, default=0)


class SET_CONFIG_REG(Pm4, dwords=1):
  """SET_CONFIG_REG, type 3 opcode 0x68, 1 dword after the header, then the payload."""
  OP: ClassVar[int] = 0x68
  reg_offset: int = bits(0, 15, 0, default=0)
  vmid_shift: int = bits(0, 27, 23, default=0)
  index: int = bits(0, 31, 28, default=0, enum=SET_CONFIG_REG_index)
  payload: tuple[int, ...] = rest(default=())


class SET_QUEUE_REG(Pm4, dwords=1):
  """SET_QUEUE_REG, type 3 opcode 0x78, 1 dword after the header, then the payload."""
  OP: ClassVar[int] = 0x78
  reg_offset: int = bits(0, 7, 0, default=0)
  defer_exec: int = bits(0, 15, 15, default=0)
  vqid: int = bits(0, 25, 16, default=0)
  payload: tuple[int, ...] = rest(default=())


class SET_SH_REG(Pm4, dwords=1):
  """SET_SH_REG, type 3 opcode 0x76, 1 dword after the header, then the payload."""
  OP: ClassVar[int] = 0x76
  reg_offset: int = bits(0, 15, 0, default=0)
  vmid_shift: int = bits(0, 27, 23, default=0)
  index: int = bits(0, 31, 28, default=0, enum=SET_SH_REG_index)
  payload: tuple[int, ...] = rest(default=())


class SET_SH_REG_INDEX(Pm4, dwords=1):
  """SET_SH_REG_INDEX, type 3 opcode 0x9b, 1 dword after the header, then the payload."""
  OP: ClassVar[int] = 0x9b
  reg_offset: int = bits(0, 15, 0, default=0)
  vmid_shift: int = bits(0, 27, 23, default=0)
  index: int = bits(0, 31, 28, default=0, enum=SET_SH_REG_INDEX_index)
  payload: tuple[int, ...] = rest(default=())


class SET_UCONFIG_REG(Pm4, dwords=1):
  """SET_UCONFIG_REG, type 3 opcode 0x79, 1 dword after the header, then the payload."""
  OP: ClassVar[int] = 0x79
  reg_offset: int = bits(0, 15, 0, default=0)
  payload: tuple[int, ...] = rest(default=())


class WAIT_REG_MEM(Pm4, dwords=6):
  """WAIT_REG_MEM, type 3 opcode 0x3c, 6 dwords after the header."""
  OP: ClassVar[int] = 0x3c
  function: int = bits(0, 2, 0, default=0, enum=WAIT_REG_MEM_function)
  mem_space: int = bits(0, 5, 4, default=0, enum=WAIT_REG_MEM_mem_space)
  operation: int = bits(0, 7, 6, default=0, enum=WAIT_REG_MEM_operation)
  mes_intr_pipe: int = bits(0, 23, 22, default=0)
  mes_action: int = bits(0, 24, 24, default=0)
  cache_policy: int = bits(0, 26, 25, default=0, enum=WAIT_REG_MEM_cache_policy)
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
  cache_policy: int = bits(0, 26, 25, default=0, enum=WAIT_REG_MEM64_cache_policy)
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
  cache_policy: int = bits(0, 26, 25, default=0, enum=WRITE_DATA_cache_policy)
  dst_mem_addr: int = u64(1)
  payload: tuple[int, ...] = rest(default=())

  @property
  def dst_mmreg_addr(self) -> int: return self.dst_mem_addr & 0x3ffff

  @property
  def dst_gds_addr(self) -> int: return self.dst_mem_addr & 0xffff

  @property
  def dst_mem_addr_lo(self) -> int: return self.dst_mem_addr & 0xfffffffc


class LOAD_SH_REG_INDEX(Pm4, dwords=4):
  """LOAD_SH_REG_INDEX, type 3 opcode 0x63, 4 dwords after the header."""
  OP: ClassVar[int] = 0x63
  index: int = bits(0, 1, 0, default=0, enum=LOAD_SH_REG_INDEX_index)
  mem_addr: int = bits(0, 63, 2, shift=2)
  reg_offset: int = bits(2, 15, 0, default=0)
  data_format: int = bits(2, 31, 31, default=0, enum=LOAD_SH_REG_INDEX_data_format)
  num_dwords: int = bits(3, 13, 0, default=0)


class PERFMON_CONTROL(Pm4, dwords=2):
  """PERFMON_CONTROL, type 3 opcode 0x54, 2 dwords after the header."""
  OP: ClassVar[int] = 0x54
  pmc_id: int = bits(0, 2, 0, default=0)
  pmc_en: int = bits(0, 15, 15, default=0, enum=PERFMON_CONTROL_pmc_en)
  pmc_unit_mask: int = bits(0, 23, 16, default=0)
  pmc_event: int = bits(1, 13, 0, default=0)


class PERF_COUNTER_WINDOW(Pm4, dwords=1):
  """PERF_COUNTER_WINDOW, type 3 opcode 0x3d, 1 dword after the header."""
  OP: ClassVar[int] = 0x3d
  op: int = bits(0, 1, 0, default=0)


class SET_SH_REG_PAIRS_PACKED(Pm4, dwords=4):
  """SET_SH_REG_PAIRS_PACKED, type 3 opcode 0xbb, 4 dwords after the header, then the payload."""
  OP: ClassVar[int] = 0xbb
  reg_writes_count: int = bits(0, 15, 0, default=0)
  reg_offset0: int = bits(1, 15, 0, default=0)
  reg_offset1: int = bits(1, 31, 16, default=0)
  reg_data0: int = u32(2)
  reg_data1: int = u32(3)
  payload: tuple[int, ...] = rest(default=())


class SET_SH_REG_PAIRS_PACKED_N(Pm4, dwords=4):
  """SET_SH_REG_PAIRS_PACKED_N, type 3 opcode 0xbd, 4 dwords after the header, then the payload."""
  OP: ClassVar[int] = 0xbd
  reg_writes_count: int = bits(0, 15, 0, default=0)
  reg_offset0: int = bits(1, 15, 0, default=0)
  reg_offset1: int = bits(1, 31, 16, default=0)
  reg_data0: int = u32(2)
  reg_data1: int = u32(3)
  payload: tuple[int, ...] = rest(default=())


class TIMESTAMP(Pm4, dwords=5):
  """TIMESTAMP, type 3 opcode 0xb2, 5 dwords after the header."""
  OP: ClassVar[int] = 0xb2
  enable_bottom: int = bits(0, 0, 0, default=0)
  enable_top: int = bits(0, 1, 1, default=0)
  clock_sel: int = bits(0, 2, 2, default=0, enum=TIMESTAMP_clock_sel)
  pipe_bot_addr: int = bits(1, 63, 3, shift=3)
  pipe_top_addr: int = bits(3, 63, 3, shift=3)


OPCODES: dict[int, str] = {  # every type-3 opcode that the vendor names, declared above or not
  0x10: "NOP",
  0x11: "SET_BASE",
  0x12: "CLEAR_STATE",
  0x13: "INDEX_BUFFER_SIZE",
  0x15: "DISPATCH_DIRECT",
  0x16: "DISPATCH_INDIRECT",
  0x17: "INDIRECT_BUFFER_END",
  0x19: "INDIRECT_BUFFER_CNST_END",
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
  0x2a: "INDEX_TYPE",
  0x2c: "DRAW_INDIRECT_MULTI",
  0x2d: "DRAW_INDEX_AUTO",
  0x2f: "NUM_INSTANCES",
  0x30: "DRAW_INDEX_MULTI_AUTO",
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
  0x50: "DMA_DATA",
  0x51: "CONTEXT_REG_RMW",
  0x52: "GFX_CNTX_UPDATE",
  0x53: "BLK_CNTX_UPDATE",
  0x54: "PERFMON_CONTROL",
  0x55: "INCR_UPDT_STATE",
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
  0x68: "SET_CONFIG_REG",
  0x69: "SET_CONTEXT_REG",
  0x6a: "SET_CONTEXT_REG_INDEX",
  0x6b: "DRAW_RESERVED0",
  0x6c: "DRAW_RESERVED1",
  0x6d: "DRAW_RESERVED2",
  0x6e: "DRAW_RESERVED3",
  0x71: "SET_VGPR_REG_DI_MULTI",
  0x72: "SET_SH_REG_DI",
  0x73: "SET_CONTEXT_REG_INDIRECT",
  0x74: "SET_SH_REG_DI_MULTI",
  0x75: "GFX_PIPE_LOCK",
  0x76: "SET_SH_REG",
  0x77: "SET_SH_REG_OFFSET",
  0x78: "SET_QUEUE_REG",
  0x79: "SET_UCONFIG_REG",
  0x7a: "SET_UCONFIG_REG_INDEX",
  0x7c: "FORWARD_HEADER",
  0x7d: "SCRATCH_RAM_WRITE",
  0x7e: "SCRATCH_RAM_READ",
  0x80: "LOAD_CONST_RAM",
  0x81: "WRITE_CONST_RAM",
  0x83: "DUMP_CONST_RAM",
  0x84: "INCREMENT_CE_COUNTER",
  0x85: "INCREMENT_DE_COUNTER",
  0x86: "WAIT_ON_CE_COUNTER",
  0x88: "WAIT_ON_DE_COUNTER_DIFF",
  0x8b: "SWITCH_BUFFER",
  0x8e: "GET_LOD_STATS__APU103",
  0x90: "FRAME_CONTROL",
  0x91: "INDEX_ATTRIBUTES_INDIRECT",
  0x92: "WAIT_FOR_WRITE_CONFIRM",
  0x93: "WAIT_REG_MEM64",
  0x94: "COND_PREEMPT",
  0x95: "HDP_FLUSH",
  0x98: "INVALIDATE_TLBS",
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
  0xa9: "DISPATCH_TASK_STATE_INIT",
  0xaa: "DISPATCH_TASKMESH_DIRECT_ACE",
  0xab: "CONTEXT_PUSH",
  0xac: "CONTEXT_POP",
  0xad: "DISPATCH_TASKMESH_INDIRECT_MULTI_ACE",
  0xae: "EXECUTE_INDIRECT__EXECINDIRECT",
  0xaf: "BUILD_UNTYPED_SRD",
  0xb1: "EVENT_WRITE_ZPASS",
  0xb2: "TIMESTAMP",
  0xb3: "UBER_DRAWS",
  0xb4: "EXECUTE_INDIRECT_V2",
  0xb7: "MARKER",
  0xb8: "SET_CONTEXT_REG_PAIRS",
  0xb9: "SET_CONTEXT_REG_PAIRS_PACKED",
  0xba: "SET_SH_REG_PAIRS",
  0xbb: "SET_SH_REG_PAIRS_PACKED",
  0xbd: "SET_SH_REG_PAIRS_PACKED_N",
  0xf0: "SET_Q_PREEMPTION_MODE",
  0xfe: "DRAW_MULTI_PREAMBLE",
  0xff: "AQL_PACKET",
}

PACKETS: tuple[type[Pm4], ...] = (
  ACQUIRE_MEM, ATOMIC_GDS, ATOMIC_MEM, COND_EXEC, COND_INDIRECT_BUFFER, COND_WRITE, COPY_DATA, DISPATCH_DIRECT,
  DISPATCH_INDIRECT, DISPATCH_TASK_STATE_INIT, DISPATCH_TASKMESH_DIRECT_ACE,
  DISPATCH_TASKMESH_INDIRECT_MULTI_ACE, DMA_DATA, DMA_DATA_FILL_MULTI, EVENT_WRITE, EVENT_WRITE_ADDRESS,
  HDP_FLUSH, INDIRECT_BUFFER, INDIRECT_BUFFER_PASID, INVALIDATE_TLBS, NOP, PRIME_UTCL2, RELEASE_MEM, REWIND,
  SET_CONFIG_REG, SET_QUEUE_REG, SET_SH_REG, SET_SH_REG_INDEX, SET_UCONFIG_REG, WAIT_REG_MEM, WAIT_REG_MEM64,
  WRITE_DATA, LOAD_SH_REG_INDEX, PERFMON_CONTROL, PERF_COUNTER_WINDOW, SET_SH_REG_PAIRS_PACKED,
  SET_SH_REG_PAIRS_PACKED_N, TIMESTAMP,
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
