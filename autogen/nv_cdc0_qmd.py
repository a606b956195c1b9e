"""Queue meta data of compute class cdc0: one class a version.

Generated; do not edit. Source:
  NVIDIA/open-gpu-doc commit c8607fe576b53ff821ffcf97e7548d2de11c4eaf (2025-07-18), licence MIT
    classes/compute/clcdc0qmd.h sha256 dac26460204ec90bf4736914dbeb507409957cda9168ce84a62a05b31883d85f
Generator: tinyhw gen nv_cdc0_qmd

An array's copies are NAME_0, NAME_1 and so on.
"""
from __future__ import annotations

from enum import IntEnum

from tinyhw.core.layout import Packet, bits


class V04_01_QMD_TYPE(IntEnum):
  QUEUE = 0
  GRID_NULL = 1
  GRID_CTA = 2
  GRID_GPC_CGA = 3
  GRID_GPU_CGA = 4
  GRID_GPU_GPC_CGA = 5


class V04_01_RELEASE_STRUCTURE_SIZE(IntEnum):
  SEMAPHORE_FOUR_WORDS = 0
  SEMAPHORE_ONE_WORD = 1
  SEMAPHORE_TWO_WORDS = 2


class V04_01_RELEASE_MEMBAR_TYPE(IntEnum):
  FE_NONE = 0
  FE_SYSMEMBAR = 1


class V04_01_RELEASE_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class V04_01_RELEASE_REDUCTION_FORMAT(IntEnum):
  UNSIGNED = 0
  SIGNED = 1


class V04_01_RELEASE_TRAP_TYPE(IntEnum):
  TRAP_NONE = 0
  TRAP_UNCONDITIONAL = 1
  TRAP_CONDITIONAL = 2
  TRAP_CONDITIONAL_EXT = 3


class V04_01_DEPENDENT_QMD_ACTION(IntEnum):
  QMD_INCREMENT_PUT = 0
  QMD_SCHEDULE = 1
  QMD_INVALIDATE_COPY_SCHEDULE = 3
  QMD_DECREMENT_DEPENDENCE = 4


class V04_01_CONSTANT_BUFFER_PREFETCH(IntEnum):
  PREFETCH_NONE = 0
  PREFETCH_PRE = 1
  PREFETCH_POST = 2


class V04_01_API_VISIBLE_CALL_LIMIT(IntEnum):
  _32 = 0
  NO_CHECK = 1


class V04_01_SAMPLER_INDEX(IntEnum):
  INDEPENDENTLY = 0
  VIA_HEADER_INDEX = 1


class V04_01_CWD_MEMBAR_TYPE(IntEnum):
  L1_NONE = 0
  L1_SYSMEMBAR = 1
  L1_MEMBAR = 3


class V04_01_PROGRAM_PREFETCH_TYPE(IntEnum):
  PREFETCH_LAUNCH = 0
  PREFTECH_POST = 1


class V04_01_CGA_CTA_DISTRIBUTION_MODE(IntEnum):
  LOAD_BALANCING = 0
  MULTI_CAST = 1


class QMDV04_01(Packet, dwords=96):
  """384 bytes."""
  DEPENDENCE_COUNTER: int = bits(0, 15, 0, default=0)
  QMD_GROUP_ID: int = bits(0, 21, 16, default=0)
  ADD_TO_HEAD_OF_QMD_GROUP_LINKED_LIST: int = bits(0, 22, 22, default=0)
  QMD_TYPE: int = bits(0, 25, 23, default=0, enum=V04_01_QMD_TYPE)
  ARRIVE_AT_LATCH_VALID: int = bits(0, 28, 28, default=0)
  WAIT_ON_LATCH_VALID: int = bits(0, 29, 29, default=0)
  REQUIRE_SCHEDULING_PCAS: int = bits(0, 30, 30, default=0)
  TPC_DISABLE_MASK_VALID: int = bits(0, 31, 31, default=0)
  CIRCULAR_QUEUE_SIZE: int = bits(1, 24, 0, default=0)
  INNER_GET: int = bits(2, 30, 0, default=0)
  INNER_OVERFLOW: int = bits(2, 31, 31, default=0)
  INNER_PUT: int = bits(3, 30, 0, default=0)
  INNER_STICKY_OVERFLOW: int = bits(3, 31, 31, default=0)
  HW_ONLY_INNER_GET: int = bits(5, 30, 0, default=0)
  HW_ONLY_INNER_PUT: int = bits(6, 30, 0, default=0)
  HW_ONLY_SPAN_LIST_HEAD_INDEX: int = bits(7, 29, 0, default=0)
  HW_ONLY_SPAN_LIST_HEAD_INDEX_VALID: int = bits(7, 30, 30, default=0)
  HW_ONLY_SKED_NEXT_QMD_POINTER: int = bits(8, 31, 0, default=0)
  HW_ONLY_DEPENDENCE_COUNTER: int = bits(9, 15, 0, default=0)
  HW_ONLY_REQUIRE_SCHEDULING_PCAS: int = bits(9, 16, 16, default=0)
  RELEASE_ENABLE_0: int = bits(10, 0, 0, default=0)
  RELEASE_STRUCTURE_SIZE_0: int = bits(10, 2, 1, default=0, enum=V04_01_RELEASE_STRUCTURE_SIZE)
  RELEASE_MEMBAR_TYPE_0: int = bits(10, 3, 3, default=0, enum=V04_01_RELEASE_MEMBAR_TYPE)
  RELEASE_REDUCTION_ENABLE_0: int = bits(10, 4, 4, default=0)
  RELEASE_REDUCTION_OP_0: int = bits(10, 7, 5, default=0, enum=V04_01_RELEASE_REDUCTION_OP)
  RELEASE_REDUCTION_FORMAT_0: int = bits(10, 9, 8, default=0, enum=V04_01_RELEASE_REDUCTION_FORMAT)
  RELEASE_TRAP_TYPE_0: int = bits(10, 11, 10, default=0, enum=V04_01_RELEASE_TRAP_TYPE)
  RELEASE_PAYLOAD64B_0: int = bits(10, 12, 12, default=0)
  RELEASE_RESERVED_INFO_0: int = bits(10, 15, 13, default=0)
  RELEASE_ENABLE_1: int = bits(10, 16, 16, default=0)
  RELEASE_STRUCTURE_SIZE_1: int = bits(10, 18, 17, default=0, enum=V04_01_RELEASE_STRUCTURE_SIZE)
  RELEASE_MEMBAR_TYPE_1: int = bits(10, 19, 19, default=0, enum=V04_01_RELEASE_MEMBAR_TYPE)
  RELEASE_REDUCTION_ENABLE_1: int = bits(10, 20, 20, default=0)
  RELEASE_REDUCTION_OP_1: int = bits(10, 23, 21, default=0, enum=V04_01_RELEASE_REDUCTION_OP)
  RELEASE_REDUCTION_FORMAT_1: int = bits(10, 25, 24, default=0, enum=V04_01_RELEASE_REDUCTION_FORMAT)
  RELEASE_TRAP_TYPE_1: int = bits(10, 27, 26, default=0, enum=V04_01_RELEASE_TRAP_TYPE)
  RELEASE_PAYLOAD64B_1: int = bits(10, 28, 28, default=0)
  RELEASE_RESERVED_INFO_1: int = bits(10, 31, 29, default=0)
  RELEASE_ENABLE_2: int = bits(11, 0, 0, default=0)
  RELEASE_STRUCTURE_SIZE_2: int = bits(11, 2, 1, default=0, enum=V04_01_RELEASE_STRUCTURE_SIZE)
  RELEASE_MEMBAR_TYPE_2: int = bits(11, 3, 3, default=0, enum=V04_01_RELEASE_MEMBAR_TYPE)
  RELEASE_REDUCTION_ENABLE_2: int = bits(11, 4, 4, default=0)
  RELEASE_REDUCTION_OP_2: int = bits(11, 7, 5, default=0, enum=V04_01_RELEASE_REDUCTION_OP)
  RELEASE_REDUCTION_FORMAT_2: int = bits(11, 9, 8, default=0, enum=V04_01_RELEASE_REDUCTION_FORMAT)
  RELEASE_TRAP_TYPE_2: int = bits(11, 11, 10, default=0, enum=V04_01_RELEASE_TRAP_TYPE)
  RELEASE_PAYLOAD64B_2: int = bits(11, 12, 12, default=0)
  RELEASE_RESERVED_INFO_2: int = bits(11, 15, 13, default=0)
  DEPENDENT_QMD_ENABLE_0: int = bits(11, 16, 16, default=0)
  DEPENDENT_QMD_ACTION_0: int = bits(11, 19, 17, default=0, enum=V04_01_DEPENDENT_QMD_ACTION)
  DEPENDENT_QMD_PREFETCH_0: int = bits(11, 20, 20, default=0)
  DEPENDENT_QMD_ENABLE_1: int = bits(11, 21, 21, default=0)
  DEPENDENT_QMD_ACTION_1: int = bits(11, 24, 22, default=0, enum=V04_01_DEPENDENT_QMD_ACTION)
  DEPENDENT_QMD_PREFETCH_1: int = bits(11, 25, 25, default=0)
  SELF_COPY_ON_COMPLETION: int = bits(11, 26, 26, default=0)
  DEMOTE_L2_EVICT_LAST: int = bits(11, 27, 27, default=0)
  DISABLE_AUTO_INVALIDATE: int = bits(11, 28, 28, default=0)
  CORRELATION_ID_INTERNAL: int = bits(11, 29, 29, default=0)
  CWD_MEMBAR_TASK_CHASING_ENABLE: int = bits(11, 30, 30, default=0)
  CORRELATION_ID: int = bits(12, 31, 0, default=0)
  CONSTANT_BUFFER_VALID_0: int = bits(13, 0, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_0: int = bits(13, 2, 1, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_0: int = bits(13, 3, 3, default=0)
  CONSTANT_BUFFER_VALID_1: int = bits(13, 4, 4, default=0)
  CONSTANT_BUFFER_PREFETCH_1: int = bits(13, 6, 5, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_1: int = bits(13, 7, 7, default=0)
  CONSTANT_BUFFER_VALID_2: int = bits(13, 8, 8, default=0)
  CONSTANT_BUFFER_PREFETCH_2: int = bits(13, 10, 9, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_2: int = bits(13, 11, 11, default=0)
  CONSTANT_BUFFER_VALID_3: int = bits(13, 12, 12, default=0)
  CONSTANT_BUFFER_PREFETCH_3: int = bits(13, 14, 13, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_3: int = bits(13, 15, 15, default=0)
  CONSTANT_BUFFER_VALID_4: int = bits(13, 16, 16, default=0)
  CONSTANT_BUFFER_PREFETCH_4: int = bits(13, 18, 17, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_4: int = bits(13, 19, 19, default=0)
  CONSTANT_BUFFER_VALID_5: int = bits(13, 20, 20, default=0)
  CONSTANT_BUFFER_PREFETCH_5: int = bits(13, 22, 21, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_5: int = bits(13, 23, 23, default=0)
  CONSTANT_BUFFER_VALID_6: int = bits(13, 24, 24, default=0)
  CONSTANT_BUFFER_PREFETCH_6: int = bits(13, 26, 25, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_6: int = bits(13, 27, 27, default=0)
  CONSTANT_BUFFER_VALID_7: int = bits(13, 28, 28, default=0)
  CONSTANT_BUFFER_PREFETCH_7: int = bits(13, 30, 29, default=0, enum=V04_01_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_7: int = bits(13, 31, 31, default=0)
  DEPENDENT_QMD0_POINTER: int = bits(14, 31, 0, default=0)
  DEPENDENT_QMD1_POINTER: int = bits(15, 31, 0, default=0)
  SHADER_LOCAL_MEMORY_LOW_SIZE: int = bits(16, 23, 0, default=0)
  SASS_VERSION: int = bits(16, 31, 24, default=0)
  SHADER_LOCAL_MEMORY_HIGH_SIZE: int = bits(17, 23, 0, default=0)
  API_VISIBLE_CALL_LIMIT: int = bits(17, 24, 24, default=0, enum=V04_01_API_VISIBLE_CALL_LIMIT)
  SAMPLER_INDEX: int = bits(17, 25, 25, default=0, enum=V04_01_SAMPLER_INDEX)
  CONSTANT_BUFFER_PREFETCH_PRE_MAX_SIZE_SHIFTED8: int = bits(17, 31, 26, default=0)
  QMD_MINOR_VERSION: int = bits(18, 3, 0, default=0)
  QMD_MAJOR_VERSION: int = bits(18, 7, 4, default=0)
  SHARED_MEMORY_SIZE: int = bits(18, 25, 8, default=0)
  INVALIDATE_TEXTURE_HEADER_CACHE: int = bits(18, 26, 26, default=0)
  INVALIDATE_TEXTURE_SAMPLER_CACHE: int = bits(18, 27, 27, default=0)
  INVALIDATE_TEXTURE_DATA_CACHE: int = bits(18, 28, 28, default=0)
  INVALIDATE_SHADER_DATA_CACHE: int = bits(18, 29, 29, default=0)
  INVALIDATE_INSTRUCTION_CACHE: int = bits(18, 30, 30, default=0)
  INVALIDATE_SHADER_CONSTANT_CACHE: int = bits(18, 31, 31, default=0)
  MIN_SM_CONFIG_SHARED_MEM_SIZE: int = bits(19, 5, 0, default=0)
  MAX_SM_CONFIG_SHARED_MEM_SIZE: int = bits(19, 11, 6, default=0)
  TARGET_SM_CONFIG_SHARED_MEM_SIZE: int = bits(19, 17, 12, default=0)
  SHARED_ALLOCATION_ENABLE: int = bits(19, 18, 18, default=0)
  RELEASE_SEMAPHORE0_ADDR_LOWER: int = bits(20, 31, 0, default=0)
  RELEASE_SEMAPHORE0_ADDR_UPPER: int = bits(21, 24, 0, default=0)
  RELEASE_SEMAPHORE0_PAYLOAD_LOWER: int = bits(22, 31, 0, default=0)
  RELEASE_SEMAPHORE0_PAYLOAD_UPPER: int = bits(23, 31, 0, default=0)
  RELEASE_SEMAPHORE1_ADDR_LOWER: int = bits(24, 31, 0, default=0)
  RELEASE_SEMAPHORE1_ADDR_UPPER: int = bits(25, 24, 0, default=0)
  RELEASE_SEMAPHORE1_PAYLOAD_LOWER: int = bits(26, 31, 0, default=0)
  RELEASE_SEMAPHORE1_PAYLOAD_UPPER: int = bits(27, 31, 0, default=0)
  RELEASE_SEMAPHORE2_ADDR_LOWER: int = bits(28, 31, 0, default=0)
  RELEASE_SEMAPHORE2_ADDR_UPPER: int = bits(29, 24, 0, default=0)
  RELEASE_SEMAPHORE2_PAYLOAD_LOWER: int = bits(30, 31, 0, default=0)
  RELEASE_SEMAPHORE2_PAYLOAD_UPPER: int = bits(31, 31, 0, default=0)
  GRID_WIDTH: int = bits(32, 31, 0, default=0)
  GRID_HEIGHT: int = bits(33, 15, 0, default=0)
  GRID_DEPTH: int = bits(34, 15, 0, default=0)
  CWD_REFERENCE_COUNT_DELTA_MINUS_ONE: int = bits(35, 7, 0, default=0)
  CWD_REFERENCE_COUNT_ID: int = bits(35, 13, 8, default=0)
  CWD_REFERENCE_COUNT_INCR_ENABLE: int = bits(35, 14, 14, default=0)
  CWD_REFERENCE_COUNT_DECR_ENABLE: int = bits(35, 15, 15, default=0)
  CWD_MEMBAR_TYPE: int = bits(35, 17, 16, default=0, enum=V04_01_CWD_MEMBAR_TYPE)
  SEQUENTIALLY_RUN_CTAS: int = bits(35, 18, 18, default=0)
  CTA_LAUNCH_QUEUE: int = bits(35, 19, 19, default=0)
  FREE_CTA_SLOTS_EMPTY_SM: int = bits(35, 27, 20, default=0)
  SYNC_DOMAIN_ID: int = bits(35, 29, 28, default=0)
  PRE_EXIT_AT_LAST_CTA_LAUNCH: int = bits(35, 30, 30, default=0)
  ENABLE_PROGRAM_PRE_EXIT: int = bits(35, 31, 31, default=0)
  CTA_THREAD_DIMENSION0: int = bits(36, 15, 0, default=0)
  CTA_THREAD_DIMENSION1: int = bits(36, 31, 16, default=0)
  CTA_THREAD_DIMENSION2: int = bits(37, 7, 0, default=0)
  VIRTUAL_RESOURCE_COUNT: int = bits(37, 15, 8, default=0)
  REGISTER_COUNT: int = bits(37, 24, 16, default=0)
  SHARED_MEM_BARRIER_INIT_ENABLE: int = bits(37, 26, 26, default=0)
  BARRIER_COUNT: int = bits(37, 31, 27, default=0)
  PROGRAM_ADDRESS_LOWER: int = bits(38, 31, 0, default=0)
  PROGRAM_ADDRESS_UPPER: int = bits(39, 24, 0, default=0)
  OCCUPANCY_THRESHOLD_WARP: int = bits(40, 7, 0, default=0)
  OCCUPANCY_MAX_WARP: int = bits(40, 15, 8, default=0)
  OCCUPANCY_THRESHOLD_REGISTER: int = bits(40, 23, 16, default=0)
  OCCUPANCY_MAX_REGISTER: int = bits(40, 31, 24, default=0)
  OCCUPANCY_THRESHOLD_SHARED_MEM: int = bits(41, 7, 0, default=0)
  OCCUPANCY_MAX_SHARED_MEM: int = bits(41, 15, 8, default=0)
  ICC_PREFETCH_SIZE: int = bits(41, 21, 16, default=0)
  PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED: int = bits(42, 31, 0, default=0)
  PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED: int = bits(43, 16, 0, default=0)
  PROGRAM_PREFETCH_SIZE: int = bits(43, 25, 17, default=0)
  PROGRAM_PREFETCH_TYPE: int = bits(43, 27, 26, default=0, enum=V04_01_PROGRAM_PREFETCH_TYPE)
  LATCH_ACQUIRE_INVALIDATE_SHADER_DATA_CACHE: int = bits(43, 30, 30, default=0)
  LATCH_ACQUIRE_INVALIDATE_TEXTURE_DATA_CACHE: int = bits(43, 31, 31, default=0)
  GRID_WIDTH_RESUME: int = bits(44, 31, 0, default=0)
  GRID_HEIGHT_RESUME: int = bits(45, 15, 0, default=0)
  GRID_DEPTH_RESUME: int = bits(45, 31, 16, default=0)
  ARRIVE_AT_LATCH_ID: int = bits(46, 31, 0, default=0)
  WAIT_ON_LATCH_ID: int = bits(47, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_0: int = bits(48, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_0: int = bits(49, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_0: int = bits(49, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_1: int = bits(50, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_1: int = bits(51, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_1: int = bits(51, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_2: int = bits(52, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_2: int = bits(53, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_2: int = bits(53, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_3: int = bits(54, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_3: int = bits(55, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_3: int = bits(55, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_4: int = bits(56, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_4: int = bits(57, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_4: int = bits(57, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_5: int = bits(58, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_5: int = bits(59, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_5: int = bits(59, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_6: int = bits(60, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_6: int = bits(61, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_6: int = bits(61, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_7: int = bits(62, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_7: int = bits(63, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_7: int = bits(63, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_8: int = bits(64, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_8: int = bits(65, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_8: int = bits(65, 31, 19, default=0)
  COALESCE_WAITING_PERIOD: int = bits(66, 23, 16, default=0)
  QUEUE_ENTRIES_PER_CTA_LOG2: int = bits(66, 28, 24, default=0)
  GPC_CGA_WIDTH: int = bits(67, 5, 0, default=0)
  GPC_CGA_HEIGHT: int = bits(67, 13, 8, default=0)
  GPC_CGA_DEPTH: int = bits(67, 21, 16, default=0)
  LARGE_GPC_CGA_WIDTH_MINUS_ONE: int = bits(67, 27, 24, default=0)
  LARGE_GPC_CGA_HEIGHT_MINUS_ONE: int = bits(67, 31, 28, default=0)
  CGA_CTA_DISTRIBUTION_MODE: int = bits(68, 31, 31, default=0, enum=V04_01_CGA_CTA_DISTRIBUTION_MODE)
  GPU_CGA_WIDTH: int = bits(69, 15, 0, default=0)
  GPU_CGA_HEIGHT: int = bits(69, 31, 16, default=0)
  GPU_CGA_DEPTH: int = bits(70, 15, 0, default=0)
  DEBUG_ID_LOWER: int = bits(74, 31, 0, default=0)
  DEBUG_ID_UPPER: int = bits(75, 31, 0, default=0)
  TPC_DISABLE_MASK_0: int = bits(76, 31, 0, default=0)
  TPC_DISABLE_MASK_1: int = bits(77, 31, 0, default=0)
  TPC_DISABLE_MASK_2: int = bits(78, 31, 0, default=0)
  TPC_DISABLE_MASK_3: int = bits(79, 31, 0, default=0)
  INCOMPLETE_BOX_BASE_WIDTH_RESUME: int = bits(80, 31, 0, default=0)
  INCOMPLETE_BOX_BASE_HEIGHT_RESUME: int = bits(81, 15, 0, default=0)
  INCOMPLETE_BOX_BASE_DEPTH_RESUME: int = bits(81, 31, 16, default=0)
  INCOMPLETE_BOX_OFFSET_WIDTH_RESUME: int = bits(82, 3, 0, default=0)
  INCOMPLETE_BOX_OFFSET_HEIGHT_RESUME: int = bits(82, 7, 4, default=0)
  TPC_DISABLE_MASK_UPPER_0: int = bits(84, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_1: int = bits(85, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_2: int = bits(86, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_3: int = bits(87, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_4: int = bits(88, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_5: int = bits(89, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_6: int = bits(90, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_7: int = bits(91, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_8: int = bits(92, 31, 0, default=0)
  TPC_DISABLE_MASK_UPPER_9: int = bits(93, 31, 0, default=0)
  OUTER_PUT: int = bits(94, 30, 0, default=0)
  OUTER_OVERFLOW: int = bits(94, 31, 31, default=0)
  OUTER_GET: int = bits(95, 30, 0, default=0)
  OUTER_STICKY_OVERFLOW: int = bits(95, 31, 31, default=0)


class V05_00_QMD_TYPE(IntEnum):
  QUEUE = 0
  GRID_NULL = 1
  GRID_CTA = 2
  GRID_GPC_CGA = 3
  GRID_GPU_CGA = 4
  GRID_GPU_GPC_CGA = 5


class V05_00_RELEASE_STRUCTURE_SIZE(IntEnum):
  SEMAPHORE_FOUR_WORDS = 0
  SEMAPHORE_ONE_WORD = 1
  SEMAPHORE_TWO_WORDS = 2


class V05_00_RELEASE_MEMBAR_TYPE(IntEnum):
  FE_NONE = 0
  FE_SYSMEMBAR = 1


class V05_00_RELEASE_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class V05_00_RELEASE_REDUCTION_FORMAT(IntEnum):
  UNSIGNED = 0
  SIGNED = 1


class V05_00_RELEASE_TRAP_TYPE(IntEnum):
  TRAP_NONE = 0
  TRAP_UNCONDITIONAL = 1
  TRAP_CONDITIONAL = 2
  TRAP_CONDITIONAL_EXT = 3


class V05_00_DEPENDENT_QMD0_ACTION(IntEnum):
  QMD_INCREMENT_PUT = 0
  QMD_SCHEDULE = 1
  QMD_INVALIDATE_COPY_SCHEDULE = 3
  QMD_DECREMENT_DEPENDENCE = 4


class V05_00_DEPENDENT_QMD1_ACTION(IntEnum):
  QMD_INCREMENT_PUT = 0
  QMD_SCHEDULE = 1
  QMD_INVALIDATE_COPY_SCHEDULE = 3
  QMD_DECREMENT_DEPENDENCE = 4


class V05_00_API_VISIBLE_CALL_LIMIT(IntEnum):
  _32 = 0
  NO_CHECK = 1


class V05_00_SAMPLER_INDEX(IntEnum):
  INDEPENDENTLY = 0
  VIA_HEADER_INDEX = 1


class V05_00_CWD_MEMBAR_TYPE(IntEnum):
  L1_NONE = 0
  L1_SYSMEMBAR = 1
  L1_MEMBAR = 3


class V05_00_PROGRAM_PREFETCH_TYPE(IntEnum):
  PREFETCH_LAUNCH = 0
  PREFTECH_POST = 1


class V05_00_CONSTANT_BUFFER_PREFETCH(IntEnum):
  PREFETCH_NONE = 0
  PREFETCH_PRE = 1
  PREFETCH_POST = 2


class V05_00_CGA_CTA_DISTRIBUTION_MODE(IntEnum):
  LOAD_BALANCING = 0
  MULTI_CAST = 1


class QMDV05_00(Packet, dwords=96):
  """384 bytes."""
  HW_ONLY_SPAN_LIST_HEAD_INDEX: int = bits(0, 29, 0, default=0)
  HW_ONLY_SPAN_LIST_HEAD_INDEX_VALID: int = bits(0, 30, 30, default=0)
  HW_ONLY_REQUIRE_SCHEDULING_PCAS: int = bits(0, 31, 31, default=0)
  HW_ONLY_SKED_NEXT_QMD_POINTER: int = bits(1, 31, 0, default=0)
  INNER_GET: int = bits(2, 30, 0, default=0)
  INNER_OVERFLOW: int = bits(2, 31, 31, default=0)
  INNER_PUT: int = bits(3, 30, 0, default=0)
  INNER_STICKY_OVERFLOW: int = bits(3, 31, 31, default=0)
  DEPENDENCE_COUNTER: int = bits(4, 15, 0, default=0)
  QMD_GROUP_ID: int = bits(4, 21, 16, default=0)
  ADD_TO_HEAD_OF_QMD_GROUP_LINKED_LIST: int = bits(4, 22, 22, default=0)
  QMD_TYPE: int = bits(4, 25, 23, default=0, enum=V05_00_QMD_TYPE)
  NUM_SUB_TASKS_PER_TASK: int = bits(4, 29, 26, default=0)
  REQUIRE_SCHEDULING_PCAS: int = bits(4, 30, 30, default=0)
  TPC_DISABLE_MASK_VALID: int = bits(4, 31, 31, default=0)
  CIRCULAR_QUEUE_SIZE: int = bits(5, 24, 0, default=0)
  HW_ONLY_DEPENDENCE_COUNTER: int = bits(6, 15, 0, default=0)
  RESUME_SUB_TASK_ID: int = bits(6, 18, 16, default=0)
  COMPLETED_SUB_TASK_MASK: int = bits(6, 26, 19, default=0)
  GRID_WIDTH_RESUME: int = bits(7, 31, 0, default=0)
  GRID_HEIGHT_RESUME: int = bits(8, 15, 0, default=0)
  GRID_DEPTH_RESUME: int = bits(8, 31, 16, default=0)
  RELEASE_ENABLE_0: int = bits(9, 0, 0, default=0)
  RELEASE_STRUCTURE_SIZE_0: int = bits(9, 2, 1, default=0, enum=V05_00_RELEASE_STRUCTURE_SIZE)
  RELEASE_MEMBAR_TYPE_0: int = bits(9, 3, 3, default=0, enum=V05_00_RELEASE_MEMBAR_TYPE)
  RELEASE_REDUCTION_ENABLE_0: int = bits(9, 4, 4, default=0)
  RELEASE_REDUCTION_OP_0: int = bits(9, 7, 5, default=0, enum=V05_00_RELEASE_REDUCTION_OP)
  RELEASE_REDUCTION_FORMAT_0: int = bits(9, 9, 8, default=0, enum=V05_00_RELEASE_REDUCTION_FORMAT)
  RELEASE_TRAP_TYPE_0: int = bits(9, 11, 10, default=0, enum=V05_00_RELEASE_TRAP_TYPE)
  RELEASE_PAYLOAD64B_0: int = bits(9, 12, 12, default=0)
  RELEASE_RESERVED_INFO_0: int = bits(9, 15, 13, default=0)
  RELEASE_ENABLE_1: int = bits(9, 16, 16, default=0)
  RELEASE_STRUCTURE_SIZE_1: int = bits(9, 18, 17, default=0, enum=V05_00_RELEASE_STRUCTURE_SIZE)
  RELEASE_MEMBAR_TYPE_1: int = bits(9, 19, 19, default=0, enum=V05_00_RELEASE_MEMBAR_TYPE)
  RELEASE_REDUCTION_ENABLE_1: int = bits(9, 20, 20, default=0)
  RELEASE_REDUCTION_OP_1: int = bits(9, 23, 21, default=0, enum=V05_00_RELEASE_REDUCTION_OP)
  RELEASE_REDUCTION_FORMAT_1: int = bits(9, 25, 24, default=0, enum=V05_00_RELEASE_REDUCTION_FORMAT)
  RELEASE_TRAP_TYPE_1: int = bits(9, 27, 26, default=0, enum=V05_00_RELEASE_TRAP_TYPE)
  RELEASE_PAYLOAD64B_1: int = bits(9, 28, 28, default=0)
  RELEASE_RESERVED_INFO_1: int = bits(9, 31, 29, default=0)
  RELEASE_ENABLE_2: int = bits(10, 0, 0, default=0)
  RELEASE_STRUCTURE_SIZE_2: int = bits(10, 2, 1, default=0, enum=V05_00_RELEASE_STRUCTURE_SIZE)
  RELEASE_MEMBAR_TYPE_2: int = bits(10, 3, 3, default=0, enum=V05_00_RELEASE_MEMBAR_TYPE)
  RELEASE_REDUCTION_ENABLE_2: int = bits(10, 4, 4, default=0)
  RELEASE_REDUCTION_OP_2: int = bits(10, 7, 5, default=0, enum=V05_00_RELEASE_REDUCTION_OP)
  RELEASE_REDUCTION_FORMAT_2: int = bits(10, 9, 8, default=0, enum=V05_00_RELEASE_REDUCTION_FORMAT)
  RELEASE_TRAP_TYPE_2: int = bits(10, 11, 10, default=0, enum=V05_00_RELEASE_TRAP_TYPE)
  RELEASE_PAYLOAD64B_2: int = bits(10, 12, 12, default=0)
  RELEASE_RESERVED_INFO_2: int = bits(10, 15, 13, default=0)
  DEPENDENT_QMD0_ENABLE: int = bits(10, 16, 16, default=0)
  DEPENDENT_QMD0_ACTION: int = bits(10, 19, 17, default=0, enum=V05_00_DEPENDENT_QMD0_ACTION)
  DEPENDENT_QMD0_PREFETCH: int = bits(10, 20, 20, default=0)
  SELF_COPY_ON_COMPLETION: int = bits(10, 21, 21, default=0)
  DEMOTE_L2_EVICT_LAST: int = bits(10, 22, 22, default=0)
  DISABLE_AUTO_INVALIDATE: int = bits(10, 23, 23, default=0)
  DEPENDENT_QMD1_ENABLE: int = bits(10, 24, 24, default=0)
  DEPENDENT_QMD1_ACTION: int = bits(10, 27, 25, default=0, enum=V05_00_DEPENDENT_QMD1_ACTION)
  DEPENDENT_QMD1_PREFETCH: int = bits(10, 28, 28, default=0)
  CORRELATION_ID_INTERNAL: int = bits(10, 29, 29, default=0)
  CWD_MEMBAR_TASK_CHASING_ENABLE: int = bits(10, 30, 30, default=0)
  SHARED_ALLOCATION_ENABLE: int = bits(10, 31, 31, default=0)
  CORRELATION_ID: int = bits(11, 31, 0, default=0)
  DEPENDENT_QMD0_POINTER: int = bits(12, 31, 0, default=0)
  DEPENDENT_QMD1_POINTER: int = bits(13, 31, 0, default=0)
  SASS_VERSION: int = bits(14, 7, 0, default=0)
  API_VISIBLE_CALL_LIMIT: int = bits(14, 8, 8, default=0, enum=V05_00_API_VISIBLE_CALL_LIMIT)
  SAMPLER_INDEX: int = bits(14, 9, 9, default=0, enum=V05_00_SAMPLER_INDEX)
  CONSTANT_BANK_PREFETCH_PRE_MAX_SIZE_SHIFTED8: int = bits(14, 15, 10, default=0)
  QMD_MINOR_VERSION: int = bits(14, 19, 16, default=0)
  QMD_MAJOR_VERSION: int = bits(14, 23, 20, default=0)
  INVALIDATE_TEXTURE_HEADER_CACHE: int = bits(14, 24, 24, default=0)
  INVALIDATE_TEXTURE_SAMPLER_CACHE: int = bits(14, 25, 25, default=0)
  INVALIDATE_TEXTURE_DATA_CACHE: int = bits(14, 26, 26, default=0)
  INVALIDATE_SHADER_DATA_CACHE: int = bits(14, 27, 27, default=0)
  INVALIDATE_INSTRUCTION_CACHE: int = bits(14, 28, 28, default=0)
  INVALIDATE_SHADER_CONSTANT_CACHE: int = bits(14, 29, 29, default=0)
  LATCH_ACQUIRE_INVALIDATE_SHADER_DATA_CACHE: int = bits(14, 30, 30, default=0)
  LATCH_ACQUIRE_INVALIDATE_TEXTURE_DATA_CACHE: int = bits(14, 31, 31, default=0)
  RELEASE_SEMAPHORE0_ADDR_LOWER: int = bits(15, 31, 0, default=0)
  RELEASE_SEMAPHORE0_ADDR_UPPER: int = bits(16, 24, 0, default=0)
  RELEASE_SEMAPHORE0_PAYLOAD_LOWER: int = bits(17, 31, 0, default=0)
  RELEASE_SEMAPHORE0_PAYLOAD_UPPER: int = bits(18, 31, 0, default=0)
  CWD_REFERENCE_COUNT_DELTA_MINUS_ONE: int = bits(19, 7, 0, default=0)
  CWD_REFERENCE_COUNT_ID: int = bits(19, 13, 8, default=0)
  CWD_REFERENCE_COUNT_INCR_ENABLE: int = bits(19, 14, 14, default=0)
  CWD_REFERENCE_COUNT_DECR_ENABLE: int = bits(19, 15, 15, default=0)
  CWD_MEMBAR_TYPE: int = bits(19, 17, 16, default=0, enum=V05_00_CWD_MEMBAR_TYPE)
  LATCH_ACQUIRE_INVALIDATE_CONSTANT_CACHE: int = bits(19, 18, 18, default=0)
  CTA_LAUNCH_QUEUE: int = bits(19, 19, 19, default=0)
  FREE_CTA_SLOTS_EMPTY_SM: int = bits(19, 27, 20, default=0)
  SYNC_DOMAIN_ID: int = bits(19, 29, 28, default=0)
  PRE_EXIT_AT_LAST_CTA_LAUNCH: int = bits(19, 30, 30, default=0)
  ENABLE_PROGRAM_PRE_EXIT: int = bits(19, 31, 31, default=0)
  ARRIVE_AT_LATCH_ID: int = bits(20, 31, 0, default=0)
  WAIT_ON_LATCH_ID: int = bits(21, 31, 0, default=0)
  OCCUPANCY_THRESHOLD_SHARED_MEM: int = bits(22, 17, 10, default=0)
  OCCUPANCY_MAX_SHARED_MEM: int = bits(22, 25, 18, default=0)
  ARRIVE_AT_LATCH_VALID: int = bits(22, 26, 26, default=0)
  WAIT_ON_LATCH_VALID: int = bits(22, 27, 27, default=0)
  LATCH_RELEASE_INVALIDATE_ENABLE: int = bits(22, 28, 28, default=0)
  HOLD_CTA_LAUNCH_UNTIL_PARENT_LATCH_ACQUIRE_AND_CTA_COMPLETE: int = bits(22, 29, 29, default=0)
  HOLD_MEMBAR_UNTIL_LATCH_ACQUIRE: int = bits(22, 30, 30, default=0)
  PRIORITY_DEMOTE_UNTIL_LATCH_ACQUIRE: int = bits(22, 31, 31, default=0)
  OCCUPANCY_THRESHOLD_WARP: int = bits(23, 7, 0, default=0)
  OCCUPANCY_MAX_WARP: int = bits(23, 15, 8, default=0)
  OCCUPANCY_THRESHOLD_REGISTER: int = bits(23, 23, 16, default=0)
  OCCUPANCY_MAX_REGISTER: int = bits(23, 31, 24, default=0)
  RELEASE_SEMAPHORE1_ADDR_LOWER: int = bits(24, 31, 0, default=0)
  RELEASE_SEMAPHORE1_ADDR_UPPER: int = bits(25, 24, 0, default=0)
  RELEASE_SEMAPHORE1_PAYLOAD_LOWER: int = bits(26, 31, 0, default=0)
  RELEASE_SEMAPHORE1_PAYLOAD_UPPER: int = bits(27, 31, 0, default=0)
  RELEASE_SEMAPHORE2_ADDR_LOWER: int = bits(28, 31, 0, default=0)
  RELEASE_SEMAPHORE2_ADDR_UPPER: int = bits(29, 24, 0, default=0)
  RELEASE_SEMAPHORE2_PAYLOAD_LOWER: int = bits(30, 31, 0, default=0)
  RELEASE_SEMAPHORE2_PAYLOAD_UPPER: int = bits(31, 31, 0, default=0)
  PROGRAM_ADDRESS_LOWER_SHIFTED4: int = bits(32, 31, 0, default=0)
  PROGRAM_ADDRESS_UPPER_SHIFTED4: int = bits(33, 20, 0, default=0)
  PROGRAM_PREFETCH_SIZE: int = bits(33, 29, 21, default=0)
  PROGRAM_PREFETCH_TYPE: int = bits(33, 31, 30, default=0, enum=V05_00_PROGRAM_PREFETCH_TYPE)
  CTA_THREAD_DIMENSION0: int = bits(34, 15, 0, default=0)
  CTA_THREAD_DIMENSION1: int = bits(34, 31, 16, default=0)
  CTA_THREAD_DIMENSION2: int = bits(35, 7, 0, default=0)
  REGISTER_COUNT: int = bits(35, 16, 8, default=0)
  BARRIER_COUNT: int = bits(35, 21, 17, default=0)
  ICC_PREFETCH_SIZE: int = bits(35, 27, 22, default=0)
  SHARED_MEMORY_SIZE_SHIFTED7: int = bits(36, 10, 0, default=0)
  MIN_SM_CONFIG_SHARED_MEM_SIZE: int = bits(36, 16, 11, default=0)
  MAX_SM_CONFIG_SHARED_MEM_SIZE: int = bits(36, 22, 17, default=0)
  TARGET_SM_CONFIG_SHARED_MEM_SIZE: int = bits(36, 28, 23, default=0)
  SHARED_MEM_BARRIER_INIT_ENABLE: int = bits(36, 29, 29, default=0)
  SHADER_LOCAL_MEMORY_LOW_SIZE_SHIFTED4: int = bits(37, 15, 0, default=0)
  SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4: int = bits(37, 31, 16, default=0)
  VIRTUAL_RESOURCE_COUNT: int = bits(38, 7, 0, default=0)
  GRID_WIDTH: int = bits(39, 31, 0, default=0)
  GRID_HEIGHT: int = bits(40, 15, 0, default=0)
  GRID_DEPTH: int = bits(41, 15, 0, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_0: int = bits(42, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_0: int = bits(43, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_0: int = bits(43, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_1: int = bits(44, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_1: int = bits(45, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_1: int = bits(45, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_2: int = bits(46, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_2: int = bits(47, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_2: int = bits(47, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_3: int = bits(48, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_3: int = bits(49, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_3: int = bits(49, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_4: int = bits(50, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_4: int = bits(51, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_4: int = bits(51, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_5: int = bits(52, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_5: int = bits(53, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_5: int = bits(53, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_6: int = bits(54, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_6: int = bits(55, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_6: int = bits(55, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6_7: int = bits(56, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6_7: int = bits(57, 18, 0, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_7: int = bits(57, 31, 19, default=0)
  CONSTANT_BUFFER_VALID_0: int = bits(58, 0, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_0: int = bits(58, 2, 1, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_0: int = bits(58, 3, 3, default=0)
  CONSTANT_BUFFER_VALID_1: int = bits(58, 4, 4, default=0)
  CONSTANT_BUFFER_PREFETCH_1: int = bits(58, 6, 5, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_1: int = bits(58, 7, 7, default=0)
  CONSTANT_BUFFER_VALID_2: int = bits(58, 8, 8, default=0)
  CONSTANT_BUFFER_PREFETCH_2: int = bits(58, 10, 9, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_2: int = bits(58, 11, 11, default=0)
  CONSTANT_BUFFER_VALID_3: int = bits(58, 12, 12, default=0)
  CONSTANT_BUFFER_PREFETCH_3: int = bits(58, 14, 13, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_3: int = bits(58, 15, 15, default=0)
  CONSTANT_BUFFER_VALID_4: int = bits(58, 16, 16, default=0)
  CONSTANT_BUFFER_PREFETCH_4: int = bits(58, 18, 17, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_4: int = bits(58, 19, 19, default=0)
  CONSTANT_BUFFER_VALID_5: int = bits(58, 20, 20, default=0)
  CONSTANT_BUFFER_PREFETCH_5: int = bits(58, 22, 21, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_5: int = bits(58, 23, 23, default=0)
  CONSTANT_BUFFER_VALID_6: int = bits(58, 24, 24, default=0)
  CONSTANT_BUFFER_PREFETCH_6: int = bits(58, 26, 25, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_6: int = bits(58, 27, 27, default=0)
  CONSTANT_BUFFER_VALID_7: int = bits(58, 28, 28, default=0)
  CONSTANT_BUFFER_PREFETCH_7: int = bits(58, 30, 29, default=0, enum=V05_00_CONSTANT_BUFFER_PREFETCH)
  CONSTANT_BUFFER_INVALIDATE_7: int = bits(58, 31, 31, default=0)
  PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED: int = bits(59, 31, 0, default=0)
  PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED: int = bits(60, 16, 0, default=0)
  GPC_CGA_WIDTH: int = bits(64, 5, 0, default=0)
  GPC_CGA_HEIGHT: int = bits(64, 13, 8, default=0)
  GPC_CGA_DEPTH: int = bits(64, 21, 16, default=0)
  LARGE_GPC_CGA_WIDTH_MINUS_ONE: int = bits(64, 27, 24, default=0)
  LARGE_GPC_CGA_HEIGHT_MINUS_ONE: int = bits(64, 31, 28, default=0)
  CGA_CTA_DISTRIBUTION_MODE: int = bits(65, 31, 31, default=0, enum=V05_00_CGA_CTA_DISTRIBUTION_MODE)
  GPU_CGA_WIDTH: int = bits(66, 15, 0, default=0)
  GPU_CGA_HEIGHT: int = bits(66, 31, 16, default=0)
  GPU_CGA_DEPTH: int = bits(67, 15, 0, default=0)
  DEBUG_ID_LOWER: int = bits(68, 31, 0, default=0)
  DEBUG_ID_UPPER: int = bits(69, 31, 0, default=0)
  TPC_DISABLE_MASK_0: int = bits(70, 31, 0, default=0)
  TPC_DISABLE_MASK_1: int = bits(71, 31, 0, default=0)
  TPC_DISABLE_MASK_2: int = bits(72, 31, 0, default=0)
  TPC_DISABLE_MASK_3: int = bits(73, 31, 0, default=0)
  TPC_DISABLE_MASK_4: int = bits(74, 31, 0, default=0)
  TPC_DISABLE_MASK_5: int = bits(75, 31, 0, default=0)
  TPC_DISABLE_MASK_6: int = bits(76, 31, 0, default=0)
  TPC_DISABLE_MASK_7: int = bits(77, 31, 0, default=0)
  INCOMPLETE_BOX_BASE_WIDTH_RESUME: int = bits(78, 31, 0, default=0)
  INCOMPLETE_BOX_BASE_HEIGHT_RESUME: int = bits(79, 15, 0, default=0)
  INCOMPLETE_BOX_BASE_DEPTH_RESUME: int = bits(79, 31, 16, default=0)
  INCOMPLETE_BOX_OFFSET_WIDTH_RESUME: int = bits(80, 3, 0, default=0)
  INCOMPLETE_BOX_OFFSET_HEIGHT_RESUME: int = bits(80, 7, 4, default=0)
  QUEUE_ENTRIES_PER_CTA_LOG2: int = bits(81, 4, 0, default=0)
  HW_ONLY_INNER_GET: int = bits(82, 30, 0, default=0)
  HW_ONLY_INNER_PUT: int = bits(83, 30, 0, default=0)
  OUTER_PUT: int = bits(94, 30, 0, default=0)
  OUTER_OVERFLOW: int = bits(94, 31, 31, default=0)
  OUTER_GET: int = bits(95, 30, 0, default=0)
  OUTER_STICKY_OVERFLOW: int = bits(95, 31, 31, default=0)


VERSIONS: tuple[type[Packet], ...] = (QMDV04_01, QMDV05_00,)
