"""Queue meta data of compute class c7c0: one class a version.

Generated; do not edit. Source:
  NVIDIA/open-gpu-doc commit c8607fe576b53ff821ffcf97e7548d2de11c4eaf (2025-07-18), licence MIT
    classes/compute/clc7c0qmd.h sha256 e5057d62981b0ecba3c6774244ba531c78f1d6ded529339081ec84e77c0c4e36
Generator: tinyhw gen nv_c7c0_qmd

An array's copies are NAME_0, NAME_1 and so on. What an earlier class says letter for letter is imported.
"""
from __future__ import annotations

from tinyhw.autogen.nv_c6c0_qmd import (
  QMDV02_03, QMDV02_04, V02_03_API_VISIBLE_CALL_LIMIT, V02_03_CWD_MEMBAR_TYPE, V02_03_DEPENDENT_QMD_TYPE,
  V02_03_RELEASE0_REDUCTION_FORMAT, V02_03_RELEASE0_REDUCTION_OP, V02_03_RELEASE0_STRUCTURE_SIZE,
  V02_03_RELEASE1_REDUCTION_FORMAT, V02_03_RELEASE1_REDUCTION_OP, V02_03_RELEASE1_STRUCTURE_SIZE,
  V02_03_RELEASE_MEMBAR_TYPE, V02_03_SAMPLER_INDEX, V02_04_API_VISIBLE_CALL_LIMIT, V02_04_CWD_MEMBAR_TYPE,
  V02_04_DEPENDENT_QMD0_ACTION, V02_04_DEPENDENT_QMD1_ACTION, V02_04_PROGRAM_PREFETCH_TYPE,
  V02_04_RELEASE0_REDUCTION_FORMAT, V02_04_RELEASE0_REDUCTION_OP, V02_04_RELEASE0_STRUCTURE_SIZE,
  V02_04_RELEASE1_REDUCTION_FORMAT, V02_04_RELEASE1_REDUCTION_OP, V02_04_RELEASE1_STRUCTURE_SIZE,
  V02_04_RELEASE_MEMBAR_TYPE, V02_04_SAMPLER_INDEX,
)
from enum import IntEnum

from tinyhw.core.layout import Packet, bits


class V03_00_CWD_MEMBAR_TYPE(IntEnum):
  L1_NONE = 0
  L1_SYSMEMBAR = 1
  L1_MEMBAR = 3


class V03_00_API_VISIBLE_CALL_LIMIT(IntEnum):
  _32 = 0
  NO_CHECK = 1


class V03_00_SAMPLER_INDEX(IntEnum):
  INDEPENDENTLY = 0
  VIA_HEADER_INDEX = 1


class V03_00_DEPENDENT_QMD0_ACTION(IntEnum):
  QMD_INCREMENT_PUT = 0
  QMD_SCHEDULE = 1
  QMD_INVALIDATE_COPY_SCHEDULE = 3
  QMD_DECREMENT_DEPENDENCE = 4


class V03_00_DEPENDENT_QMD1_ACTION(IntEnum):
  QMD_INCREMENT_PUT = 0
  QMD_SCHEDULE = 1
  QMD_INVALIDATE_COPY_SCHEDULE = 3
  QMD_DECREMENT_DEPENDENCE = 4


class V03_00_RELEASE0_MEMBAR_TYPE(IntEnum):
  FE_NONE = 0
  FE_SYSMEMBAR = 1


class V03_00_RELEASE0_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class V03_00_RELEASE0_REDUCTION_FORMAT(IntEnum):
  UNSIGNED = 0
  SIGNED = 1


class V03_00_RELEASE0_TRAP_TYPE(IntEnum):
  TRAP_NONE = 0
  TRAP_UNCONDITIONAL = 1
  TRAP_CONDITIONAL = 2
  TRAP_CONDITIONAL_EXT = 3


class V03_00_RELEASE0_STRUCTURE_SIZE(IntEnum):
  SEMAPHORE_FOUR_WORDS = 0
  SEMAPHORE_ONE_WORD = 1
  SEMAPHORE_TWO_WORDS = 2


class V03_00_RELEASE1_MEMBAR_TYPE(IntEnum):
  FE_NONE = 0
  FE_SYSMEMBAR = 1


class V03_00_RELEASE1_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class V03_00_RELEASE1_REDUCTION_FORMAT(IntEnum):
  UNSIGNED = 0
  SIGNED = 1


class V03_00_RELEASE1_TRAP_TYPE(IntEnum):
  TRAP_NONE = 0
  TRAP_UNCONDITIONAL = 1
  TRAP_CONDITIONAL = 2
  TRAP_CONDITIONAL_EXT = 3


class V03_00_RELEASE1_STRUCTURE_SIZE(IntEnum):
  SEMAPHORE_FOUR_WORDS = 0
  SEMAPHORE_ONE_WORD = 1
  SEMAPHORE_TWO_WORDS = 2


class V03_00_PROGRAM_PREFETCH_TYPE(IntEnum):
  PREFETCH_LAUNCH = 0
  PREFTECH_POST = 1


class V03_00_RELEASE2_MEMBAR_TYPE(IntEnum):
  FE_NONE = 0
  FE_SYSMEMBAR = 1


class V03_00_RELEASE2_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class V03_00_RELEASE2_REDUCTION_FORMAT(IntEnum):
  UNSIGNED = 0
  SIGNED = 1


class V03_00_RELEASE2_TRAP_TYPE(IntEnum):
  TRAP_NONE = 0
  TRAP_UNCONDITIONAL = 1
  TRAP_CONDITIONAL = 2
  TRAP_CONDITIONAL_EXT = 3


class V03_00_RELEASE2_STRUCTURE_SIZE(IntEnum):
  SEMAPHORE_FOUR_WORDS = 0
  SEMAPHORE_ONE_WORD = 1
  SEMAPHORE_TWO_WORDS = 2


class QMDV03_00(Packet, dwords=64):
  """256 bytes."""
  OUTER_PUT: int = bits(0, 30, 0, default=0)
  OUTER_OVERFLOW: int = bits(0, 31, 31, default=0)
  OUTER_GET: int = bits(1, 30, 0, default=0)
  OUTER_STICKY_OVERFLOW: int = bits(1, 31, 31, default=0)
  INNER_GET: int = bits(2, 30, 0, default=0)
  INNER_OVERFLOW: int = bits(2, 31, 31, default=0)
  INNER_PUT: int = bits(3, 30, 0, default=0)
  INNER_STICKY_OVERFLOW: int = bits(3, 31, 31, default=0)
  QMD_GROUP_ID: int = bits(4, 5, 0, default=0)
  SM_GLOBAL_CACHING_ENABLE: int = bits(4, 6, 6, default=0)
  RUN_CTA_IN_ONE_SM_PARTITION: int = bits(4, 7, 7, default=0)
  IS_QUEUE: int = bits(4, 8, 8, default=0)
  ADD_TO_HEAD_OF_QMD_GROUP_LINKED_LIST: int = bits(4, 9, 9, default=0)
  QMD_RESERVED04A: int = bits(4, 11, 10, default=0)
  REQUIRE_SCHEDULING_PCAS: int = bits(4, 12, 12, default=0)
  QMD_RESERVED04B: int = bits(4, 13, 13, default=0)
  DEPENDENCE_COUNTER: int = bits(4, 29, 14, default=0)
  SELF_COPY_ON_COMPLETION: int = bits(4, 30, 30, default=0)
  QMD_RESERVED04C: int = bits(4, 31, 31, default=0)
  CIRCULAR_QUEUE_SIZE: int = bits(5, 24, 0, default=0)
  DEMOTE_L2_EVICT_LAST: int = bits(5, 25, 25, default=0)
  INVALIDATE_TEXTURE_HEADER_CACHE: int = bits(5, 26, 26, default=0)
  INVALIDATE_TEXTURE_SAMPLER_CACHE: int = bits(5, 27, 27, default=0)
  INVALIDATE_TEXTURE_DATA_CACHE: int = bits(5, 28, 28, default=0)
  INVALIDATE_SHADER_DATA_CACHE: int = bits(5, 29, 29, default=0)
  INVALIDATE_INSTRUCTION_CACHE: int = bits(5, 30, 30, default=0)
  INVALIDATE_SHADER_CONSTANT_CACHE: int = bits(5, 31, 31, default=0)
  CTA_RASTER_WIDTH_RESUME: int = bits(6, 31, 0, default=0)
  CTA_RASTER_HEIGHT_RESUME: int = bits(7, 15, 0, default=0)
  CTA_RASTER_DEPTH_RESUME: int = bits(7, 31, 16, default=0)
  PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED: int = bits(8, 31, 0, default=0)
  CIRCULAR_QUEUE_ADDR_LOWER: int = bits(9, 31, 0, default=0)
  CIRCULAR_QUEUE_ADDR_UPPER: int = bits(10, 7, 0, default=0)
  CIRCULAR_QUEUE_ENTRY_SIZE: int = bits(10, 31, 16, default=0)
  CWD_REFERENCE_COUNT_ID: int = bits(11, 5, 0, default=0)
  CWD_REFERENCE_COUNT_DELTA_MINUS_ONE: int = bits(11, 13, 6, default=0)
  QMD_RESERVED11A: int = bits(11, 14, 14, default=0)
  CWD_REFERENCE_COUNT_INCR_ENABLE: int = bits(11, 15, 15, default=0)
  CWD_MEMBAR_TYPE: int = bits(11, 17, 16, default=0, enum=V03_00_CWD_MEMBAR_TYPE)
  SEQUENTIALLY_RUN_CTAS: int = bits(11, 18, 18, default=0)
  CWD_REFERENCE_COUNT_DECR_ENABLE: int = bits(11, 19, 19, default=0)
  QMD_RESERVED11B: int = bits(11, 25, 20, default=0)
  API_VISIBLE_CALL_LIMIT: int = bits(11, 26, 26, default=0, enum=V03_00_API_VISIBLE_CALL_LIMIT)
  QMD_RESERVED11C: int = bits(11, 29, 27, default=0)
  SAMPLER_INDEX: int = bits(11, 30, 30, default=0, enum=V03_00_SAMPLER_INDEX)
  DISABLE_AUTO_INVALIDATE: int = bits(11, 31, 31, default=0)
  CTA_RASTER_WIDTH: int = bits(12, 31, 0, default=0)
  CTA_RASTER_HEIGHT: int = bits(13, 15, 0, default=0)
  CTA_RASTER_DEPTH: int = bits(14, 15, 0, default=0)
  DEPENDENT_QMD0_POINTER: int = bits(15, 31, 0, default=0)
  DEPENDENT_QMD0_ENABLE: int = bits(16, 0, 0, default=0)
  DEPENDENT_QMD0_ACTION: int = bits(16, 3, 1, default=0, enum=V03_00_DEPENDENT_QMD0_ACTION)
  DEPENDENT_QMD0_PREFETCH: int = bits(16, 4, 4, default=0)
  DEPENDENT_QMD1_ENABLE: int = bits(16, 5, 5, default=0)
  DEPENDENT_QMD1_ACTION: int = bits(16, 8, 6, default=0, enum=V03_00_DEPENDENT_QMD1_ACTION)
  DEPENDENT_QMD1_PREFETCH: int = bits(16, 9, 9, default=0)
  COALESCE_WAITING_PERIOD: int = bits(16, 17, 10, default=0)
  QUEUE_ENTRIES_PER_CTA_LOG2: int = bits(16, 22, 18, default=0)
  OCCUPANCY_THRESHOLD_SHARED_MEM: int = bits(16, 30, 23, default=0)
  CTA_LAUNCH_QUEUE: int = bits(16, 31, 31, default=0)
  SHARED_MEMORY_SIZE: int = bits(17, 17, 0, default=0)
  MIN_SM_CONFIG_SHARED_MEM_SIZE: int = bits(17, 23, 18, default=0)
  QMD_RESERVED17A: int = bits(17, 24, 24, default=0)
  MAX_SM_CONFIG_SHARED_MEM_SIZE: int = bits(17, 30, 25, default=0)
  QMD_RESERVED17B: int = bits(17, 31, 31, default=0)
  QMD_VERSION: int = bits(18, 3, 0, default=0)
  QMD_MAJOR_VERSION: int = bits(18, 7, 4, default=0)
  OCCUPANCY_MAX_SHARED_MEM: int = bits(18, 15, 8, default=0)
  CTA_THREAD_DIMENSION0: int = bits(18, 31, 16, default=0)
  CTA_THREAD_DIMENSION1: int = bits(19, 15, 0, default=0)
  CTA_THREAD_DIMENSION2: int = bits(19, 31, 16, default=0)
  CONSTANT_BUFFER_VALID_0: int = bits(20, 0, 0, default=0)
  CONSTANT_BUFFER_VALID_1: int = bits(20, 1, 1, default=0)
  CONSTANT_BUFFER_VALID_2: int = bits(20, 2, 2, default=0)
  CONSTANT_BUFFER_VALID_3: int = bits(20, 3, 3, default=0)
  CONSTANT_BUFFER_VALID_4: int = bits(20, 4, 4, default=0)
  CONSTANT_BUFFER_VALID_5: int = bits(20, 5, 5, default=0)
  CONSTANT_BUFFER_VALID_6: int = bits(20, 6, 6, default=0)
  CONSTANT_BUFFER_VALID_7: int = bits(20, 7, 7, default=0)
  REGISTER_COUNT_V: int = bits(20, 16, 8, default=0)
  TARGET_SM_CONFIG_SHARED_MEM_SIZE: int = bits(20, 22, 17, default=0)
  SHARED_ALLOCATION_ENABLE: int = bits(20, 23, 23, default=0)
  FREE_CTA_SLOTS_EMPTY_SM: int = bits(20, 31, 24, default=0)
  SM_DISABLE_MASK_LOWER: int = bits(21, 31, 0, default=0)
  SM_DISABLE_MASK_UPPER: int = bits(22, 31, 0, default=0)
  SHADER_LOCAL_MEMORY_LOW_SIZE: int = bits(23, 23, 0, default=0)
  BARRIER_COUNT: int = bits(23, 31, 27, default=0)
  RELEASE0_ADDRESS_LOWER: int = bits(24, 31, 0, default=0)
  RELEASE0_ADDRESS_UPPER: int = bits(25, 7, 0, default=0)
  SEMAPHORE_RESERVED25A: int = bits(25, 18, 8, default=0)
  RELEASE0_MEMBAR_TYPE: int = bits(25, 19, 19, default=0, enum=V03_00_RELEASE0_MEMBAR_TYPE)
  RELEASE0_REDUCTION_OP: int = bits(25, 22, 20, default=0, enum=V03_00_RELEASE0_REDUCTION_OP)
  RELEASE0_ENABLE: int = bits(25, 23, 23, default=0)
  RELEASE0_REDUCTION_FORMAT: int = bits(25, 25, 24, default=0, enum=V03_00_RELEASE0_REDUCTION_FORMAT)
  RELEASE0_REDUCTION_ENABLE: int = bits(25, 26, 26, default=0)
  RELEASE0_TRAP_TYPE: int = bits(25, 28, 27, default=0, enum=V03_00_RELEASE0_TRAP_TYPE)
  RELEASE0_PAYLOAD64B: int = bits(25, 29, 29, default=0)
  RELEASE0_STRUCTURE_SIZE: int = bits(25, 31, 30, default=0, enum=V03_00_RELEASE0_STRUCTURE_SIZE)
  RELEASE0_PAYLOAD_LOWER: int = bits(26, 31, 0, default=0)
  RELEASE0_PAYLOAD_UPPER: int = bits(27, 31, 0, default=0)
  RELEASE1_ADDRESS_LOWER: int = bits(28, 31, 0, default=0)
  RELEASE1_ADDRESS_UPPER: int = bits(29, 7, 0, default=0)
  SEMAPHORE_RESERVED29A: int = bits(29, 18, 8, default=0)
  RELEASE1_MEMBAR_TYPE: int = bits(29, 19, 19, default=0, enum=V03_00_RELEASE1_MEMBAR_TYPE)
  RELEASE1_REDUCTION_OP: int = bits(29, 22, 20, default=0, enum=V03_00_RELEASE1_REDUCTION_OP)
  RELEASE1_ENABLE: int = bits(29, 23, 23, default=0)
  RELEASE1_REDUCTION_FORMAT: int = bits(29, 25, 24, default=0, enum=V03_00_RELEASE1_REDUCTION_FORMAT)
  RELEASE1_REDUCTION_ENABLE: int = bits(29, 26, 26, default=0)
  RELEASE1_TRAP_TYPE: int = bits(29, 28, 27, default=0, enum=V03_00_RELEASE1_TRAP_TYPE)
  RELEASE1_PAYLOAD64B: int = bits(29, 29, 29, default=0)
  RELEASE1_STRUCTURE_SIZE: int = bits(29, 31, 30, default=0, enum=V03_00_RELEASE1_STRUCTURE_SIZE)
  RELEASE1_PAYLOAD_LOWER: int = bits(30, 31, 0, default=0)
  RELEASE1_PAYLOAD_UPPER: int = bits(31, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_0: int = bits(32, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_0: int = bits(33, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_0: int = bits(33, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_0: int = bits(33, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_0: int = bits(33, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_1: int = bits(34, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_1: int = bits(35, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_1: int = bits(35, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_1: int = bits(35, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_1: int = bits(35, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_2: int = bits(36, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_2: int = bits(37, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_2: int = bits(37, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_2: int = bits(37, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_2: int = bits(37, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_3: int = bits(38, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_3: int = bits(39, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_3: int = bits(39, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_3: int = bits(39, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_3: int = bits(39, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_4: int = bits(40, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_4: int = bits(41, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_4: int = bits(41, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_4: int = bits(41, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_4: int = bits(41, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_5: int = bits(42, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_5: int = bits(43, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_5: int = bits(43, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_5: int = bits(43, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_5: int = bits(43, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_6: int = bits(44, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_6: int = bits(45, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_6: int = bits(45, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_6: int = bits(45, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_6: int = bits(45, 31, 19, default=0)
  CONSTANT_BUFFER_ADDR_LOWER_7: int = bits(46, 31, 0, default=0)
  CONSTANT_BUFFER_ADDR_UPPER_7: int = bits(47, 16, 0, default=0)
  CONSTANT_BUFFER_PREFETCH_POST_7: int = bits(47, 17, 17, default=0)
  CONSTANT_BUFFER_INVALIDATE_7: int = bits(47, 18, 18, default=0)
  CONSTANT_BUFFER_SIZE_SHIFTED4_7: int = bits(47, 31, 19, default=0)
  PROGRAM_ADDRESS_LOWER: int = bits(48, 31, 0, default=0)
  PROGRAM_ADDRESS_UPPER: int = bits(49, 16, 0, default=0)
  SHADER_LOCAL_MEMORY_HIGH_SIZE: int = bits(50, 23, 0, default=0)
  PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED: int = bits(51, 8, 0, default=0)
  PROGRAM_PREFETCH_SIZE: int = bits(51, 17, 9, default=0)
  PROGRAM_PREFETCH_TYPE: int = bits(51, 19, 18, default=0, enum=V03_00_PROGRAM_PREFETCH_TYPE)
  SASS_VERSION: int = bits(51, 31, 24, default=0)
  RELEASE2_ADDRESS_LOWER: int = bits(52, 31, 0, default=0)
  RELEASE2_ADDRESS_UPPER: int = bits(53, 7, 0, default=0)
  SEMAPHORE_RESERVED53A: int = bits(53, 18, 8, default=0)
  RELEASE2_MEMBAR_TYPE: int = bits(53, 19, 19, default=0, enum=V03_00_RELEASE2_MEMBAR_TYPE)
  RELEASE2_REDUCTION_OP: int = bits(53, 22, 20, default=0, enum=V03_00_RELEASE2_REDUCTION_OP)
  RELEASE2_ENABLE: int = bits(53, 23, 23, default=0)
  RELEASE2_REDUCTION_FORMAT: int = bits(53, 25, 24, default=0, enum=V03_00_RELEASE2_REDUCTION_FORMAT)
  RELEASE2_REDUCTION_ENABLE: int = bits(53, 26, 26, default=0)
  RELEASE2_TRAP_TYPE: int = bits(53, 28, 27, default=0, enum=V03_00_RELEASE2_TRAP_TYPE)
  RELEASE2_PAYLOAD64B: int = bits(53, 29, 29, default=0)
  RELEASE2_STRUCTURE_SIZE: int = bits(53, 31, 30, default=0, enum=V03_00_RELEASE2_STRUCTURE_SIZE)
  RELEASE2_PAYLOAD_LOWER: int = bits(54, 31, 0, default=0)
  RELEASE2_PAYLOAD_UPPER: int = bits(55, 31, 0, default=0)
  OCCUPANCY_THRESHOLD_WARP: int = bits(56, 7, 0, default=0)
  OCCUPANCY_MAX_WARP: int = bits(56, 15, 8, default=0)
  OCCUPANCY_THRESHOLD_REGISTER: int = bits(56, 23, 16, default=0)
  OCCUPANCY_MAX_REGISTER: int = bits(56, 31, 24, default=0)
  HW_ONLY_INNER_GET: int = bits(57, 30, 0, default=0)
  HW_ONLY_REQUIRE_SCHEDULING_PCAS: int = bits(57, 31, 31, default=0)
  HW_ONLY_INNER_PUT: int = bits(58, 30, 0, default=0)
  HW_ONLY_SPAN_LIST_HEAD_INDEX: int = bits(59, 29, 0, default=0)
  HW_ONLY_SPAN_LIST_HEAD_INDEX_VALID: int = bits(59, 31, 31, default=0)
  HW_ONLY_SKED_NEXT_QMD_POINTER: int = bits(60, 31, 0, default=0)
  HW_ONLY_DEPENDENCE_COUNTER: int = bits(61, 15, 0, default=0)
  DEBUG_ID_UPPER: int = bits(62, 31, 0, default=0)
  DEBUG_ID_LOWER: int = bits(63, 31, 0, default=0)


VERSIONS: tuple[type[Packet], ...] = (QMDV02_03, QMDV02_04, QMDV03_00,)
