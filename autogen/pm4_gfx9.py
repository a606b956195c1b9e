"""PM4 packets that gfx9's MEC (compute queues) executes: one class a packet, fields as the vendor names them.

Generated; do not edit. Source:
  GPUOpen-Drivers/pal commit 42e29f4d3d528c6a59c2db77fb6d70127fb9ffab (2024-03-21), licence MIT
    pal-42e29f4d/src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_f32_mec_pm4_packets.h sha256 292dfa8a09aa70c22ced026f5b5e43d30b83ac2219b5c08354ef5e8574071b44
    pal-42e29f4d/src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_pm4_it_opcodes.h sha256 b91962e68002ed01070b3fee11b3f293782bac1877aa1323c834065f6871433d
    pal-42e29f4d/src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_f32_pfp_pm4_packets.h sha256 c2ef9e18aa1f69d8b8cae97560c196f2429b8535a19c304d2bd9c6a3f41aacfc
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    drivers/gpu/drm/amd/amdgpu/soc15d.h sha256 45426641c204f06f54951174ac02a58c9bd49f7b0a7c822eaf984668ba3b8457
    drivers/gpu/drm/amd/include/vega10_enum.h sha256 cb4d03b3ee3fa28a240434f8742434facafb9b670f3dec9b49c1295a4d70a83d
Generator: tinyhw gen pm4_gfx9

65 opcodes and 12 fields are the same in PAL and in soc15d.h. A field X stands for the vendor's X_lo and X_hi.
Addresses are given whole: low bits that are not stored must be zero. Fields under 20 bits default to 0. Left out, as
they are other generations' or have no opcode: DISPATCH_TASK_STATE_INIT, DISPATCH_TASKMESH_DIRECT_ACE,
DISPATCH_TASKMESH_INDIRECT_MULTI_ACE, LOAD_SH_REG_INDEX, PERFMON_CONTROL, TIMESTAMP. What an earlier class says letter
for letter is imported.
"""
from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from tinyhw.autogen.pm4_gfx11 import (
  ATOMIC_GDS, ATOMIC_GDS_atom_cmp_swap, ATOMIC_GDS_atom_complete, ATOMIC_GDS_atom_rd_cntl, ATOMIC_GDS_atom_read,
  COND_INDIRECT_BUFFER_function, COND_INDIRECT_BUFFER_mode, COND_WRITE_function, COND_WRITE_poll_space,
  COND_WRITE_write_space, COPY_DATA_count_sel, COPY_DATA_pq_exe_status, COPY_DATA_wr_confirm, DISPATCH_DIRECT,
  DISPATCH_INDIRECT, DMA_DATA_FILL_MULTI_dst_sel, DMA_DATA_FILL_MULTI_src_sel, DMA_DATA_daic, DMA_DATA_das,
  DMA_DATA_dst_sel, DMA_DATA_saic, DMA_DATA_sas, DMA_DATA_src_sel, HDP_FLUSH, INVALIDATE_TLBS_invalidate_sel,
  INVALIDATE_TLBS_mmhub_invalidate_sel, NOP, PRIME_UTCL2_prime_mode, Pm4, RELEASE_MEM_event_index,
  RELEASE_MEM_int_sel, REWIND, SET_CONFIG_REG, SET_CONFIG_REG_index, SET_QUEUE_REG, SET_SH_REG,
  SET_SH_REG_INDEX_index, SET_SH_REG_index, SET_UCONFIG_REG, WAIT_REG_MEM64_function, WAIT_REG_MEM64_mem_space,
  WAIT_REG_MEM64_operation, WAIT_REG_MEM_function, WAIT_REG_MEM_mem_space, WAIT_REG_MEM_operation,
  WRITE_DATA_addr_incr, WRITE_DATA_dst_sel, WRITE_DATA_wr_confirm,
)
from tinyhw.core.layout import bits, rest, u32, u64, unused


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
  ZPASS_DONE = 0x15
  CACHE_FLUSH_AND_INV_EVENT = 0x16
  PERFCOUNTER_START = 0x17
  PERFCOUNTER_STOP = 0x18
  PIPELINESTAT_START = 0x19
  PIPELINESTAT_STOP = 0x1a
  PERFCOUNTER_SAMPLE = 0x1b
  Available_0x1c = 0x1c
  Available_0x1d = 0x1d
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
  THREAD_TRACE_FLUSH = 0x36
  THREAD_TRACE_FINISH = 0x37
  PIXEL_PIPE_STAT_CONTROL = 0x38
  PIXEL_PIPE_STAT_DUMP = 0x39
  PIXEL_PIPE_STAT_RESET = 0x3a
  CONTEXT_SUSPEND = 0x3b
  OFFCHIP_HS_DEALLOC = 0x3c
  ENABLE_NGG_PIPELINE = 0x3d
  ENABLE_LEGACY_PIPELINE = 0x3e
  Reserved_0x3f = 0x3f


class TC_OP(IntEnum):
  """From the kernel's enums of the chip (soc*_enum.h)."""
  TC_OP_READ = 0
  TC_OP_ATOMIC_FCMPSWAP_RTN_32 = 1
  TC_OP_ATOMIC_FMIN_RTN_32 = 2
  TC_OP_ATOMIC_FMAX_RTN_32 = 3
  TC_OP_RESERVED_FOP_RTN_32_0 = 4
  TC_OP_RESERVED_FOP_RTN_32_1 = 5
  TC_OP_RESERVED_FOP_RTN_32_2 = 6
  TC_OP_ATOMIC_SWAP_RTN_32 = 7
  TC_OP_ATOMIC_CMPSWAP_RTN_32 = 8
  TC_OP_ATOMIC_FCMPSWAP_FLUSH_DENORM_RTN_32 = 9
  TC_OP_ATOMIC_FMIN_FLUSH_DENORM_RTN_32 = 0xa
  TC_OP_ATOMIC_FMAX_FLUSH_DENORM_RTN_32 = 0xb
  TC_OP_PROBE_FILTER = 0xc
  TC_OP_RESERVED_FOP_FLUSH_DENORM_RTN_32_1 = 0xd
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
  TC_OP_RESERVED_FOP_32_1 = 0x45
  TC_OP_RESERVED_FOP_32_2 = 0x46
  TC_OP_ATOMIC_SWAP_32 = 0x47
  TC_OP_ATOMIC_CMPSWAP_32 = 0x48
  TC_OP_ATOMIC_FCMPSWAP_FLUSH_DENORM_32 = 0x49
  TC_OP_ATOMIC_FMIN_FLUSH_DENORM_32 = 0x4a
  TC_OP_ATOMIC_FMAX_FLUSH_DENORM_32 = 0x4b
  TC_OP_INV_METADATA = 0x4c
  TC_OP_RESERVED_FOP_FLUSH_DENORM_32_1 = 0x4d
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


class ATOMIC_MEM_command(IntEnum):
  single_pass_atomic = 0
  loop_until_compare_satisfied = 1


class ATOMIC_MEM_cache_policy(IntEnum):
  lru = 0
  stream = 1


class COND_EXEC_cache_policy(IntEnum):
  lru = 0
  stream = 1


class COND_INDIRECT_BUFFER_cache_policy1(IntEnum):
  lru = 0
  stream = 1


class COND_INDIRECT_BUFFER_cache_policy2(IntEnum):
  lru = 0
  stream = 1


class COPY_DATA_src_sel(IntEnum):
  mem_mapped_register = 0
  memory = 1
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
  memory = 5
  mem_mapped_reg_dc = 6


class COPY_DATA_src_cache_policy(IntEnum):
  lru = 0
  stream = 1


class COPY_DATA_dst_cache_policy(IntEnum):
  lru = 0
  stream = 1


class DMA_DATA_src_cache_policy(IntEnum):
  lru = 0
  stream = 1


class DMA_DATA_dst_cache_policy(IntEnum):
  lru = 0
  stream = 1


class DMA_DATA_FILL_MULTI_dst_cache_policy(IntEnum):
  lru = 0
  stream = 1


class EVENT_WRITE_event_index(IntEnum):
  other = 0
  sample_pipelinestat = 2
  cs_partial_flush = 4


class INDIRECT_BUFFER_cache_policy(IntEnum):
  lru = 0
  stream = 1


class INDIRECT_BUFFER_PASID_cache_policy(IntEnum):
  lru = 0
  stream = 1


class MEM_SEMAPHORE_use_mailbox(IntEnum):
  do_not_wait_for_mailbox = 0
  wait_for_mailbox = 1


class MEM_SEMAPHORE_signal_type(IntEnum):
  signal_type_increment = 0
  signal_type_write = 1


class MEM_SEMAPHORE_sem_sel(IntEnum):
  signal_semaphore = 6
  wait_semaphore = 7


class PRIME_UTCL2_cache_perm(IntEnum):
  read = 0
  write = 1
  execute = 2


class RELEASE_MEM_cache_policy(IntEnum):
  lru = 0
  stream = 1


class RELEASE_MEM_pq_exe_status(IntEnum):
  default = 0
  phase_update = 1


class RELEASE_MEM_dst_sel(IntEnum):
  memory_controller = 0
  tc_l2 = 1
  queue_write_pointer_register__NOTGFX10 = 2
  queue_write_pointer_poll_mask_bit__NOTGFX10 = 3


class RELEASE_MEM_data_sel(IntEnum):
  none = 0
  send_32_bit_low = 1
  send_64_bit_data = 2
  send_gpu_clock_counter = 3
  send_system_clock_counter = 4
  store_gds_data_to_memory = 5


class WRITE_DATA_cache_policy(IntEnum):
  lru = 0
  stream = 1


class ACQUIRE_MEM(Pm4, dwords=6):
  """ACQUIRE_MEM, type 3 opcode 0x58, 6 dwords after the header."""
  OP: ClassVar[int] = 0x58
  coher_cntl: int = bits(0, 30, 0)
  coher_size: int = bits(1, 39, 0)
  coher_size_unused: int = unused(2, 31, 8)
  coher_base: int = bits(3, 55, 0)
  poll_interval: int = bits(5, 15, 0, default=0)


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


class DISPATCH_DRAW_ACE(Pm4, dwords=5):
  """DISPATCH_DRAW_ACE, type 3 opcode 0x8d, 5 dwords after the header."""
  OP: ClassVar[int] = 0x8d
  krb_loc_sgpr: int = bits(0, 3, 0, default=0)
  dim_x: int = u32(1)
  dim_y: int = u32(2)
  dim_z: int = u32(3)
  dispatch_initiator: int = u32(4)


class DISPATCH_DRAW_PREAMBLE_ACE(Pm4, dwords=1):
  """DISPATCH_DRAW_PREAMBLE_ACE, type 3 opcode 0x8c, 1 dword after the header."""
  OP: ClassVar[int] = 0x8c
  krb_size: int = bits(0, 9, 0, default=0)
  krb_free_offset: int = bits(0, 19, 10, default=0)
  krb_offset: int = bits(0, 29, 20, default=0)


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


class EVENT_WRITE_ADDRESS(EVENT_WRITE, dwords=3):
  """EVENT_WRITE with its address dwords."""
  address: int = bits(1, 63, 3, shift=3)


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
  gfx_flush_type: int = bits(0, 31, 29, default=0)
  invalidate_sel: int = bits(0, 2, 0, default=0, enum=INVALIDATE_TLBS_invalidate_sel)
  mmhub_invalidate_sel: int = bits(0, 4, 3, default=0, enum=INVALIDATE_TLBS_mmhub_invalidate_sel)
  pasid: int = bits(0, 20, 5, default=0)
  mmhub_flush_type: int = bits(0, 27, 25, default=0)


class MEM_SEMAPHORE(Pm4, dwords=3):
  """MEM_SEMAPHORE, type 3 opcode 0x39, 3 dwords after the header."""
  OP: ClassVar[int] = 0x39
  address: int = bits(0, 63, 3, shift=3)
  use_mailbox: int = bits(2, 16, 16, default=0, enum=MEM_SEMAPHORE_use_mailbox)
  signal_type: int = bits(2, 20, 20, default=0, enum=MEM_SEMAPHORE_signal_type)
  sem_sel: int = bits(2, 31, 29, default=0, enum=MEM_SEMAPHORE_sem_sel)


class PRIME_UTCL2(Pm4, dwords=4):
  """PRIME_UTCL2, type 3 opcode 0x5d, 4 dwords after the header."""
  OP: ClassVar[int] = 0x5d
  cache_perm: int = bits(0, 2, 0, default=0, enum=PRIME_UTCL2_cache_perm)
  prime_mode: int = bits(0, 3, 3, default=0, enum=PRIME_UTCL2_prime_mode)
  addr: int = u64(1)
  requested_pages: int = bits(3, 13, 0, default=0)


class RELEASE_MEM(Pm4, dwords=7):
  """RELEASE_MEM, type 3 opcode 0x49, 7 dwords after the header."""
  OP: ClassVar[int] = 0x49
  event_type: int = bits(0, 5, 0, default=0, enum=VGT_EVENT_TYPE)
  event_index: int = bits(0, 11, 8, default=0, enum=RELEASE_MEM_event_index)
  cache_policy: int = bits(0, 26, 25, default=0, enum=RELEASE_MEM_cache_policy)
  tcl1_vol_action_ena: int = bits(0, 12, 12, default=0)
  tc_wb_action_ena: int = bits(0, 15, 15, default=0)
  tcl1_action_ena: int = bits(0, 16, 16, default=0)
  tc_action_ena: int = bits(0, 17, 17, default=0)
  tc_nc_action_ena: int = bits(0, 19, 19, default=0)
  tc_wc_action_ena: int = bits(0, 20, 20, default=0)
  tc_md_action_ena: int = bits(0, 21, 21, default=0)
  pq_exe_status: int = bits(0, 29, 29, default=0, enum=RELEASE_MEM_pq_exe_status)
  dst_sel: int = bits(1, 17, 16, default=0, enum=RELEASE_MEM_dst_sel)
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


class SET_SH_REG_INDEX(Pm4, dwords=1):
  """SET_SH_REG_INDEX, type 3 opcode 0x9b, 1 dword after the header, then the payload."""
  OP: ClassVar[int] = 0x9b
  reg_offset: int = bits(0, 15, 0, default=0)
  index: int = bits(0, 31, 28, default=0, enum=SET_SH_REG_INDEX_index)
  vmid_shift: int = bits(0, 27, 23, default=0)
  payload: tuple[int, ...] = rest(default=())


class WAIT_ON_CE_COUNTER(Pm4, dwords=1):
  """WAIT_ON_CE_COUNTER, type 3 opcode 0x86, 1 dword after the header."""
  OP: ClassVar[int] = 0x86
  cond_acquire_mem: int = bits(0, 0, 0, default=0)
  force_sync: int = bits(0, 1, 1, default=0)


class WAIT_REG_MEM(Pm4, dwords=6):
  """WAIT_REG_MEM, type 3 opcode 0x3c, 6 dwords after the header."""
  OP: ClassVar[int] = 0x3c
  function: int = bits(0, 2, 0, default=0, enum=WAIT_REG_MEM_function)
  mem_space: int = bits(0, 5, 4, default=0, enum=WAIT_REG_MEM_mem_space)
  operation: int = bits(0, 7, 6, default=0, enum=WAIT_REG_MEM_operation)
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


class PRED_EXEC(Pm4, dwords=1):
  """PRED_EXEC, type 3 opcode 0x23, 1 dword after the header."""
  OP: ClassVar[int] = 0x23
  exec_count: int = bits(0, 13, 0, default=0)
  device_select: int = bits(0, 31, 24, default=0)


OPCODES: dict[int, str] = {  # every type-3 opcode that the vendor names, declared above or not
  0x10: "NOP",
  0x11: "SET_BASE",
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
  0x3a: "DRAW_INDEX_MULTI_INST",
  0x3b: "COPY_DW",
  0x3c: "WAIT_REG_MEM",
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
  0x4c: "DRAW_RESERVED0",
  0x4d: "DRAW_RESERVED1",
  0x4e: "DRAW_RESERVED2",
  0x4f: "DRAW_RESERVED3",
  0x50: "DMA_DATA",
  0x51: "CONTEXT_REG_RMW",
  0x52: "GFX_CNTX_UPDATE",
  0x53: "BLK_CNTX_UPDATE",
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
  0x68: "SET_CONFIG_REG",
  0x69: "SET_CONTEXT_REG",
  0x6a: "SET_CONTEXT_REG_INDEX",
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
  0x8c: "DISPATCH_DRAW_PREAMBLE",
  0x8d: "DISPATCH_DRAW",
  0x8e: "GET_LOD_STATS__APU103",
  0x8f: "DRAW_MULTI_PREAMBLE",
  0x90: "FRAME_CONTROL",
  0x91: "INDEX_ATTRIBUTES_INDIRECT",
  0x93: "WAIT_REG_MEM64",
  0x94: "COND_PREEMPT",
  0x95: "HDP_FLUSH",
  0x98: "INVALIDATE_TLBS",
  0x99: "AQL_PACKET",
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
  0xae: "EXECUTE_INDIRECT__EXECINDIRECT",
  0xaf: "BUILD_UNTYPED_SRD__VEGA",
}

PACKETS: tuple[type[Pm4], ...] = (
  ACQUIRE_MEM, ATOMIC_GDS, ATOMIC_MEM, COND_EXEC, COND_INDIRECT_BUFFER, COND_WRITE, COPY_DATA, DISPATCH_DIRECT,
  DISPATCH_DRAW_ACE, DISPATCH_DRAW_PREAMBLE_ACE, DISPATCH_INDIRECT, DMA_DATA, DMA_DATA_FILL_MULTI, EVENT_WRITE,
  EVENT_WRITE_ADDRESS, HDP_FLUSH, INDIRECT_BUFFER, INDIRECT_BUFFER_PASID, INVALIDATE_TLBS, MEM_SEMAPHORE, NOP,
  PRIME_UTCL2, RELEASE_MEM, REWIND, SET_CONFIG_REG, SET_QUEUE_REG, SET_SH_REG, SET_SH_REG_INDEX,
  SET_UCONFIG_REG, WAIT_ON_CE_COUNTER, WAIT_REG_MEM, WAIT_REG_MEM64, WRITE_DATA, PRED_EXEC,
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
