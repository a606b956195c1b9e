"""AMPERE_COMPUTE_A (0xc6c0): its methods, one class each, fields as the vendor names them.

Generated; do not edit. Source:
  NVIDIA/open-gpu-doc commit c8607fe576b53ff821ffcf97e7548d2de11c4eaf (2025-07-18), licence MIT
    classes/compute/clc6c0.h sha256 99d9dcdce739359f5a9c0f462b4bb4897c2f04e92f2e04d6186f1fbed55d6b7d
Generator: tinyhw gen nv_c6c0

Offsets are in bytes. All fields default to 0.
"""
from __future__ import annotations

from enum import IntEnum

from tinyhw.core.layout import Method, bits

NAME = "AMPERE_COMPUTE_A"
CLASS = 0xc6c0


class SET_OBJECT(Method, offset=0x0000):
  CLASS_ID: int = bits(0, 15, 0, default=0)
  ENGINE_ID: int = bits(0, 20, 16, default=0)


class NO_OPERATION(Method, offset=0x0100):
  V: int = bits(0, 31, 0, default=0)


class SET_NOTIFY_A(Method, offset=0x0104):
  ADDRESS_UPPER: int = bits(0, 7, 0, default=0)


class SET_NOTIFY_B(Method, offset=0x0108):
  ADDRESS_LOWER: int = bits(0, 31, 0, default=0)


class NOTIFY_TYPE(IntEnum):
  WRITE_ONLY = 0
  WRITE_THEN_AWAKEN = 1


class NOTIFY(Method, offset=0x010c):
  TYPE: int = bits(0, 31, 0, default=0, enum=NOTIFY_TYPE)


class WAIT_FOR_IDLE(Method, offset=0x0110):
  V: int = bits(0, 31, 0, default=0)


class SET_GLOBAL_RENDER_ENABLE_A(Method, offset=0x0130):
  OFFSET_UPPER: int = bits(0, 7, 0, default=0)


class SET_GLOBAL_RENDER_ENABLE_B(Method, offset=0x0134):
  OFFSET_LOWER: int = bits(0, 31, 0, default=0)


class SET_GLOBAL_RENDER_ENABLE_C_MODE(IntEnum):
  FALSE = 0
  TRUE = 1
  CONDITIONAL = 2
  RENDER_IF_EQUAL = 3
  RENDER_IF_NOT_EQUAL = 4


class SET_GLOBAL_RENDER_ENABLE_C(Method, offset=0x0138):
  MODE: int = bits(0, 2, 0, default=0, enum=SET_GLOBAL_RENDER_ENABLE_C_MODE)


class SEND_GO_IDLE(Method, offset=0x013c):
  V: int = bits(0, 31, 0, default=0)


class PM_TRIGGER(Method, offset=0x0140):
  V: int = bits(0, 31, 0, default=0)


class PM_TRIGGER_WFI(Method, offset=0x0144):
  V: int = bits(0, 31, 0, default=0)


class FE_ATOMIC_SEQUENCE_BEGIN(Method, offset=0x0148):
  V: int = bits(0, 31, 0, default=0)


class FE_ATOMIC_SEQUENCE_END(Method, offset=0x014c):
  V: int = bits(0, 31, 0, default=0)


class SET_INSTRUMENTATION_METHOD_HEADER(Method, offset=0x0150):
  V: int = bits(0, 31, 0, default=0)


class SET_INSTRUMENTATION_METHOD_DATA(Method, offset=0x0154):
  V: int = bits(0, 31, 0, default=0)


class LINE_LENGTH_IN(Method, offset=0x0180):
  VALUE: int = bits(0, 31, 0, default=0)


class LINE_COUNT(Method, offset=0x0184):
  VALUE: int = bits(0, 31, 0, default=0)


class OFFSET_OUT_UPPER(Method, offset=0x0188):
  VALUE: int = bits(0, 16, 0, default=0)


class OFFSET_OUT(Method, offset=0x018c):
  VALUE: int = bits(0, 31, 0, default=0)


class PITCH_OUT(Method, offset=0x0190):
  VALUE: int = bits(0, 31, 0, default=0)


class SET_DST_BLOCK_SIZE_WIDTH(IntEnum):
  ONE_GOB = 0


class SET_DST_BLOCK_SIZE_HEIGHT(IntEnum):
  ONE_GOB = 0
  TWO_GOBS = 1
  FOUR_GOBS = 2
  EIGHT_GOBS = 3
  SIXTEEN_GOBS = 4
  THIRTYTWO_GOBS = 5


class SET_DST_BLOCK_SIZE_DEPTH(IntEnum):
  ONE_GOB = 0
  TWO_GOBS = 1
  FOUR_GOBS = 2
  EIGHT_GOBS = 3
  SIXTEEN_GOBS = 4
  THIRTYTWO_GOBS = 5


class SET_DST_BLOCK_SIZE(Method, offset=0x0194):
  WIDTH: int = bits(0, 3, 0, default=0, enum=SET_DST_BLOCK_SIZE_WIDTH)
  HEIGHT: int = bits(0, 7, 4, default=0, enum=SET_DST_BLOCK_SIZE_HEIGHT)
  DEPTH: int = bits(0, 11, 8, default=0, enum=SET_DST_BLOCK_SIZE_DEPTH)


class SET_DST_WIDTH(Method, offset=0x0198):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_HEIGHT(Method, offset=0x019c):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_DEPTH(Method, offset=0x01a0):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_LAYER(Method, offset=0x01a4):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_ORIGIN_BYTES_X(Method, offset=0x01a8):
  V: int = bits(0, 20, 0, default=0)


class SET_DST_ORIGIN_SAMPLES_Y(Method, offset=0x01ac):
  V: int = bits(0, 16, 0, default=0)


class LAUNCH_DMA_DST_MEMORY_LAYOUT(IntEnum):
  BLOCKLINEAR = 0
  PITCH = 1


class LAUNCH_DMA_COMPLETION_TYPE(IntEnum):
  FLUSH_DISABLE = 0
  FLUSH_ONLY = 1
  RELEASE_SEMAPHORE = 2


class LAUNCH_DMA_INTERRUPT_TYPE(IntEnum):
  NONE = 0
  INTERRUPT = 1


class LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE(IntEnum):
  FOUR_WORDS = 0
  ONE_WORD = 1


class LAUNCH_DMA_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class LAUNCH_DMA_REDUCTION_FORMAT(IntEnum):
  UNSIGNED_32 = 0
  SIGNED_32 = 1


class LAUNCH_DMA(Method, offset=0x01b0):
  DST_MEMORY_LAYOUT: int = bits(0, 0, 0, default=0, enum=LAUNCH_DMA_DST_MEMORY_LAYOUT)
  COMPLETION_TYPE: int = bits(0, 5, 4, default=0, enum=LAUNCH_DMA_COMPLETION_TYPE)
  INTERRUPT_TYPE: int = bits(0, 9, 8, default=0, enum=LAUNCH_DMA_INTERRUPT_TYPE)
  SEMAPHORE_STRUCT_SIZE: int = bits(0, 12, 12, default=0, enum=LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE)
  REDUCTION_ENABLE: int = bits(0, 1, 1, default=0)
  REDUCTION_OP: int = bits(0, 15, 13, default=0, enum=LAUNCH_DMA_REDUCTION_OP)
  REDUCTION_FORMAT: int = bits(0, 3, 2, default=0, enum=LAUNCH_DMA_REDUCTION_FORMAT)
  SYSMEMBAR_DISABLE: int = bits(0, 6, 6, default=0)


class LOAD_INLINE_DATA(Method, offset=0x01b4):
  V: int = bits(0, 31, 0, default=0)


class SET_I2M_SEMAPHORE_A(Method, offset=0x01dc):
  OFFSET_UPPER: int = bits(0, 7, 0, default=0)


class SET_I2M_SEMAPHORE_B(Method, offset=0x01e0):
  OFFSET_LOWER: int = bits(0, 31, 0, default=0)


class SET_I2M_SEMAPHORE_C(Method, offset=0x01e4):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SET_SM_SCG_CONTROL(Method, offset=0x01e8):
  COMPUTE_IN_GRAPHICS: int = bits(0, 0, 0, default=0)


class SET_I2M_SPARE_NOOP00(Method, offset=0x01f0):
  V: int = bits(0, 31, 0, default=0)


class SET_I2M_SPARE_NOOP01(Method, offset=0x01f4):
  V: int = bits(0, 31, 0, default=0)


class SET_I2M_SPARE_NOOP02(Method, offset=0x01f8):
  V: int = bits(0, 31, 0, default=0)


class SET_I2M_SPARE_NOOP03(Method, offset=0x01fc):
  V: int = bits(0, 31, 0, default=0)


class SET_VALID_SPAN_OVERFLOW_AREA_A(Method, offset=0x0200):
  ADDRESS_UPPER: int = bits(0, 7, 0, default=0)


class SET_VALID_SPAN_OVERFLOW_AREA_B(Method, offset=0x0204):
  ADDRESS_LOWER: int = bits(0, 31, 0, default=0)


class SET_VALID_SPAN_OVERFLOW_AREA_C(Method, offset=0x0208):
  SIZE: int = bits(0, 31, 0, default=0)


class PERFMON_TRANSFER(Method, offset=0x0210):
  V: int = bits(0, 31, 0, default=0)


class SET_QMD_VIRTUALIZATION_BASE_A(Method, offset=0x0214):
  ADDRESS_UPPER: int = bits(0, 7, 0, default=0)


class SET_QMD_VIRTUALIZATION_BASE_B(Method, offset=0x0218):
  ADDRESS_LOWER: int = bits(0, 31, 0, default=0)


class INVALIDATE_SHADER_CACHES(Method, offset=0x021c):
  INSTRUCTION: int = bits(0, 0, 0, default=0)
  DATA: int = bits(0, 4, 4, default=0)
  CONSTANT: int = bits(0, 12, 12, default=0)
  LOCKS: int = bits(0, 1, 1, default=0)
  FLUSH_DATA: int = bits(0, 2, 2, default=0)


class SET_RESERVED_SW_METHOD00(Method, offset=0x0220):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD01(Method, offset=0x0224):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD02(Method, offset=0x0228):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD03(Method, offset=0x022c):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD04(Method, offset=0x0230):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD05(Method, offset=0x0234):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD06(Method, offset=0x0238):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD07(Method, offset=0x023c):
  V: int = bits(0, 31, 0, default=0)


class INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI_LINES(IntEnum):
  ALL = 0
  ONE = 1


class INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI(Method, offset=0x0244):
  LINES: int = bits(0, 0, 0, default=0, enum=INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI_LINES)
  TAG: int = bits(0, 25, 4, default=0)


class SET_CWD_REF_COUNTER(Method, offset=0x0248):
  SELECT: int = bits(0, 5, 0, default=0)
  VALUE: int = bits(0, 23, 8, default=0)


class SET_RESERVED_SW_METHOD08(Method, offset=0x024c):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD09(Method, offset=0x0250):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD10(Method, offset=0x0254):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD11(Method, offset=0x0258):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD12(Method, offset=0x025c):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD13(Method, offset=0x0260):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD14(Method, offset=0x0264):
  V: int = bits(0, 31, 0, default=0)


class SET_RESERVED_SW_METHOD15(Method, offset=0x0268):
  V: int = bits(0, 31, 0, default=0)


class SET_SCG_CONTROL(Method, offset=0x0270):
  COMPUTE1_MAX_SM_COUNT: int = bits(0, 8, 0, default=0)
  COMPUTE1_MIN_SM_COUNT: int = bits(0, 20, 12, default=0)
  DISABLE_COMPUTE1_LIMIT_IN_ALL_COMPUTE: int = bits(0, 24, 24, default=0)


class SET_COMPUTE_CLASS_VERSION(Method, offset=0x0280):
  CURRENT: int = bits(0, 15, 0, default=0)
  OLDEST_SUPPORTED: int = bits(0, 31, 16, default=0)


class CHECK_COMPUTE_CLASS_VERSION(Method, offset=0x0284):
  CURRENT: int = bits(0, 15, 0, default=0)
  OLDEST_SUPPORTED: int = bits(0, 31, 16, default=0)


class SET_QMD_VERSION(Method, offset=0x0288):
  CURRENT: int = bits(0, 15, 0, default=0)
  OLDEST_SUPPORTED: int = bits(0, 31, 16, default=0)


class CHECK_QMD_VERSION(Method, offset=0x0290):
  CURRENT: int = bits(0, 15, 0, default=0)
  OLDEST_SUPPORTED: int = bits(0, 31, 16, default=0)


class INVALIDATE_SKED_CACHES(Method, offset=0x0298):
  V: int = bits(0, 0, 0, default=0)


class SET_QMD_VIRTUALIZATION_CONTROL(Method, offset=0x029c):
  CONSTANT_BUFFER_MASK: int = bits(0, 7, 0, default=0)
  I2M_ADDR_ENABLE: int = bits(0, 8, 8, default=0)
  I2M_CONSTANT_BUFFER_ENABLE: int = bits(0, 12, 12, default=0)
  IQ2M_ADDR_ENABLE: int = bits(0, 16, 16, default=0)
  IQ2M_CONSTANT_BUFFER_ENABLE: int = bits(0, 20, 20, default=0)
  SEND_PCAS_ENABLE: int = bits(0, 24, 24, default=0)


class SET_SHADER_SHARED_MEMORY_WINDOW_A(Method, offset=0x02a0):
  BASE_ADDRESS_UPPER: int = bits(0, 16, 0, default=0)


class SET_SHADER_SHARED_MEMORY_WINDOW_B(Method, offset=0x02a4):
  BASE_ADDRESS: int = bits(0, 31, 0, default=0)


class SCG_HYSTERESIS_CONTROL(Method, offset=0x02a8):
  USE_TIMEOUT_ONCE: int = bits(0, 0, 0, default=0)
  USE_NULL_TIMEOUT_ONCE: int = bits(0, 1, 1, default=0)


class SET_CWD_SLOT_COUNT(Method, offset=0x02b0):
  V: int = bits(0, 7, 0, default=0)


class SEND_PCAS_A(Method, offset=0x02b4):
  QMD_ADDRESS_SHIFTED8: int = bits(0, 31, 0, default=0)


class SEND_PCAS_B(Method, offset=0x02b8):
  FROM: int = bits(0, 23, 0, default=0)
  DELTA: int = bits(0, 31, 24, default=0)


class SEND_SIGNALING_PCAS_B(Method, offset=0x02bc):
  INVALIDATE: int = bits(0, 0, 0, default=0)
  SCHEDULE: int = bits(0, 1, 1, default=0)


class SEND_SIGNALING_PCAS2_B_PCAS_ACTION(IntEnum):
  NOP = 0
  INVALIDATE = 1
  SCHEDULE = 2
  INVALIDATE_COPY_SCHEDULE = 3
  INCREMENT_PUT = 6
  DECREMENT_DEPENDENCE = 7
  PREFETCH = 8
  PREFETCH_SCHEDULE = 9
  INVALIDATE_PREFETCH_COPY_SCHEDULE = 0xa
  INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING = 0xb


class SEND_SIGNALING_PCAS2_B(Method, offset=0x02c0):
  PCAS_ACTION: int = bits(0, 3, 0, default=0, enum=SEND_SIGNALING_PCAS2_B_PCAS_ACTION)


class SET_SKED_CACHE_CONTROL(Method, offset=0x02cc):
  IGNORE_VEID: int = bits(0, 0, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A(Method, offset=0x02e4):
  SIZE_UPPER: int = bits(0, 7, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B(Method, offset=0x02e8):
  SIZE_LOWER: int = bits(0, 31, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C(Method, offset=0x02ec):
  MAX_SM_COUNT: int = bits(0, 8, 0, default=0)


class SET_SPA_VERSION(Method, offset=0x0310):
  MINOR: int = bits(0, 7, 0, default=0)
  MAJOR: int = bits(0, 15, 8, default=0)


class SET_INLINE_QMD_ADDRESS_A(Method, offset=0x0318):
  QMD_ADDRESS_SHIFTED8_UPPER: int = bits(0, 31, 0, default=0)


class SET_INLINE_QMD_ADDRESS_B(Method, offset=0x031c):
  QMD_ADDRESS_SHIFTED8_LOWER: int = bits(0, 31, 0, default=0)


class LOAD_INLINE_QMD_DATA(Method, offset=0x0320, apart=4, copies=120):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON00(Method, offset=0x0500):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON01(Method, offset=0x0504):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON02(Method, offset=0x0508):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON03(Method, offset=0x050c):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON04(Method, offset=0x0510):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON05(Method, offset=0x0514):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON06(Method, offset=0x0518):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON07(Method, offset=0x051c):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON08(Method, offset=0x0520):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON09(Method, offset=0x0524):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON10(Method, offset=0x0528):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON11(Method, offset=0x052c):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON12(Method, offset=0x0530):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON13(Method, offset=0x0534):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON14(Method, offset=0x0538):
  V: int = bits(0, 31, 0, default=0)


class SET_FALCON15(Method, offset=0x053c):
  V: int = bits(0, 31, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_A(Method, offset=0x0790):
  ADDRESS_UPPER: int = bits(0, 16, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_B(Method, offset=0x0794):
  ADDRESS_LOWER: int = bits(0, 31, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_WINDOW_A(Method, offset=0x07b0):
  BASE_ADDRESS_UPPER: int = bits(0, 16, 0, default=0)


class SET_SHADER_LOCAL_MEMORY_WINDOW_B(Method, offset=0x07b4):
  BASE_ADDRESS: int = bits(0, 31, 0, default=0)


class SET_SHADER_CACHE_CONTROL(Method, offset=0x0d94):
  ICACHE_PREFETCH_ENABLE: int = bits(0, 0, 0, default=0)


class SET_SCG_COMPUTE_SCHEDULING_PARAMETERS(Method, offset=0x0da0, apart=4, copies=17):
  V: int = bits(0, 31, 0, default=0)


class SET_SM_TIMEOUT_INTERVAL(Method, offset=0x0de4):
  COUNTER_BIT: int = bits(0, 5, 0, default=0)


class INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI_LINES(IntEnum):
  ALL = 0
  ONE = 1


class INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI(Method, offset=0x1288):
  LINES: int = bits(0, 0, 0, default=0, enum=INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI_LINES)
  TAG: int = bits(0, 25, 4, default=0)


class ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT(Method, offset=0x12a8):
  ALL: int = bits(0, 0, 0, default=0)


class INVALIDATE_SAMPLER_CACHE_LINES(IntEnum):
  ALL = 0
  ONE = 1


class INVALIDATE_SAMPLER_CACHE(Method, offset=0x1330):
  LINES: int = bits(0, 0, 0, default=0, enum=INVALIDATE_SAMPLER_CACHE_LINES)
  TAG: int = bits(0, 25, 4, default=0)


class INVALIDATE_TEXTURE_HEADER_CACHE_LINES(IntEnum):
  ALL = 0
  ONE = 1


class INVALIDATE_TEXTURE_HEADER_CACHE(Method, offset=0x1334):
  LINES: int = bits(0, 0, 0, default=0, enum=INVALIDATE_TEXTURE_HEADER_CACHE_LINES)
  TAG: int = bits(0, 25, 4, default=0)


class INVALIDATE_TEXTURE_DATA_CACHE_LINES(IntEnum):
  ALL = 0
  ONE = 1


class INVALIDATE_TEXTURE_DATA_CACHE(Method, offset=0x1338):
  LINES: int = bits(0, 0, 0, default=0, enum=INVALIDATE_TEXTURE_DATA_CACHE_LINES)
  TAG: int = bits(0, 25, 4, default=0)


class INVALIDATE_SAMPLER_CACHE_NO_WFI_LINES(IntEnum):
  ALL = 0
  ONE = 1


class INVALIDATE_SAMPLER_CACHE_NO_WFI(Method, offset=0x1424):
  LINES: int = bits(0, 0, 0, default=0, enum=INVALIDATE_SAMPLER_CACHE_NO_WFI_LINES)
  TAG: int = bits(0, 25, 4, default=0)


class SET_SHADER_EXCEPTIONS(Method, offset=0x1528):
  ENABLE: int = bits(0, 0, 0, default=0)


class SET_RENDER_ENABLE_A(Method, offset=0x1550):
  OFFSET_UPPER: int = bits(0, 7, 0, default=0)


class SET_RENDER_ENABLE_B(Method, offset=0x1554):
  OFFSET_LOWER: int = bits(0, 31, 0, default=0)


class SET_RENDER_ENABLE_C_MODE(IntEnum):
  FALSE = 0
  TRUE = 1
  CONDITIONAL = 2
  RENDER_IF_EQUAL = 3
  RENDER_IF_NOT_EQUAL = 4


class SET_RENDER_ENABLE_C(Method, offset=0x1558):
  MODE: int = bits(0, 2, 0, default=0, enum=SET_RENDER_ENABLE_C_MODE)


class SET_TEX_SAMPLER_POOL_A(Method, offset=0x155c):
  OFFSET_UPPER: int = bits(0, 16, 0, default=0)


class SET_TEX_SAMPLER_POOL_B(Method, offset=0x1560):
  OFFSET_LOWER: int = bits(0, 31, 0, default=0)


class SET_TEX_SAMPLER_POOL_C(Method, offset=0x1564):
  MAXIMUM_INDEX: int = bits(0, 19, 0, default=0)


class SET_TEX_HEADER_POOL_A(Method, offset=0x1574):
  OFFSET_UPPER: int = bits(0, 16, 0, default=0)


class SET_TEX_HEADER_POOL_B(Method, offset=0x1578):
  OFFSET_LOWER: int = bits(0, 31, 0, default=0)


class SET_TEX_HEADER_POOL_C(Method, offset=0x157c):
  MAXIMUM_INDEX: int = bits(0, 21, 0, default=0)


class INVALIDATE_SHADER_CACHES_NO_WFI(Method, offset=0x1698):
  INSTRUCTION: int = bits(0, 0, 0, default=0)
  GLOBAL_DATA: int = bits(0, 4, 4, default=0)
  CONSTANT: int = bits(0, 12, 12, default=0)


class SET_RENDER_ENABLE_OVERRIDE_MODE(IntEnum):
  USE_RENDER_ENABLE = 0
  ALWAYS_RENDER = 1
  NEVER_RENDER = 2


class SET_RENDER_ENABLE_OVERRIDE(Method, offset=0x1944):
  MODE: int = bits(0, 1, 0, default=0, enum=SET_RENDER_ENABLE_OVERRIDE_MODE)


class PIPE_NOP(Method, offset=0x1a2c):
  V: int = bits(0, 31, 0, default=0)


class SET_SPARE00(Method, offset=0x1a30):
  V: int = bits(0, 31, 0, default=0)


class SET_SPARE01(Method, offset=0x1a34):
  V: int = bits(0, 31, 0, default=0)


class SET_SPARE02(Method, offset=0x1a38):
  V: int = bits(0, 31, 0, default=0)


class SET_SPARE03(Method, offset=0x1a3c):
  V: int = bits(0, 31, 0, default=0)


class SET_REPORT_SEMAPHORE_A(Method, offset=0x1b00):
  OFFSET_UPPER: int = bits(0, 7, 0, default=0)


class SET_REPORT_SEMAPHORE_B(Method, offset=0x1b04):
  OFFSET_LOWER: int = bits(0, 31, 0, default=0)


class SET_REPORT_SEMAPHORE_C(Method, offset=0x1b08):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SET_REPORT_SEMAPHORE_D_OPERATION(IntEnum):
  RELEASE = 0
  TRAP = 3


class SET_REPORT_SEMAPHORE_D_STRUCTURE_SIZE(IntEnum):
  FOUR_WORDS = 0
  ONE_WORD = 1


class SET_REPORT_SEMAPHORE_D_REDUCTION_OP(IntEnum):
  RED_ADD = 0
  RED_MIN = 1
  RED_MAX = 2
  RED_INC = 3
  RED_DEC = 4
  RED_AND = 5
  RED_OR = 6
  RED_XOR = 7


class SET_REPORT_SEMAPHORE_D_REDUCTION_FORMAT(IntEnum):
  UNSIGNED_32 = 0
  SIGNED_32 = 1


class SET_REPORT_SEMAPHORE_D(Method, offset=0x1b0c):
  OPERATION: int = bits(0, 1, 0, default=0, enum=SET_REPORT_SEMAPHORE_D_OPERATION)
  AWAKEN_ENABLE: int = bits(0, 20, 20, default=0)
  STRUCTURE_SIZE: int = bits(0, 28, 28, default=0, enum=SET_REPORT_SEMAPHORE_D_STRUCTURE_SIZE)
  FLUSH_DISABLE: int = bits(0, 2, 2, default=0)
  REDUCTION_ENABLE: int = bits(0, 3, 3, default=0)
  REDUCTION_OP: int = bits(0, 11, 9, default=0, enum=SET_REPORT_SEMAPHORE_D_REDUCTION_OP)
  REDUCTION_FORMAT: int = bits(0, 18, 17, default=0, enum=SET_REPORT_SEMAPHORE_D_REDUCTION_FORMAT)
  CONDITIONAL_TRAP: int = bits(0, 19, 19, default=0)


class SET_TRAP_HANDLER_A(Method, offset=0x25f8):
  ADDRESS_UPPER: int = bits(0, 16, 0, default=0)


class SET_TRAP_HANDLER_B(Method, offset=0x25fc):
  ADDRESS_LOWER: int = bits(0, 31, 0, default=0)


class SET_BINDLESS_TEXTURE(Method, offset=0x2608):
  CONSTANT_BUFFER_SLOT_SELECT: int = bits(0, 2, 0, default=0)


class SET_SHADER_PERFORMANCE_SNAPSHOT_COUNTER_VALUE(Method, offset=0x32f4, apart=4, copies=8):
  V: int = bits(0, 31, 0, default=0)


class SET_SHADER_PERFORMANCE_SNAPSHOT_COUNTER_VALUE_UPPER(Method, offset=0x3314, apart=4, copies=8):
  V: int = bits(0, 31, 0, default=0)


class ENABLE_SHADER_PERFORMANCE_SNAPSHOT_COUNTER(Method, offset=0x3334):
  V: int = bits(0, 0, 0, default=0)


class DISABLE_SHADER_PERFORMANCE_SNAPSHOT_COUNTER(Method, offset=0x3338):
  V: int = bits(0, 0, 0, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_VALUE_UPPER(Method, offset=0x333c, apart=4, copies=8):
  V: int = bits(0, 31, 0, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_VALUE(Method, offset=0x335c, apart=4, copies=8):
  V: int = bits(0, 31, 0, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_EVENT(Method, offset=0x337c, apart=4, copies=8):
  EVENT: int = bits(0, 7, 0, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_CONTROL_A(Method, offset=0x339c, apart=4, copies=8):
  EVENT0: int = bits(0, 1, 0, default=0)
  BIT_SELECT0: int = bits(0, 4, 2, default=0)
  EVENT1: int = bits(0, 6, 5, default=0)
  BIT_SELECT1: int = bits(0, 9, 7, default=0)
  EVENT2: int = bits(0, 11, 10, default=0)
  BIT_SELECT2: int = bits(0, 14, 12, default=0)
  EVENT3: int = bits(0, 16, 15, default=0)
  BIT_SELECT3: int = bits(0, 19, 17, default=0)
  EVENT4: int = bits(0, 21, 20, default=0)
  BIT_SELECT4: int = bits(0, 24, 22, default=0)
  EVENT5: int = bits(0, 26, 25, default=0)
  BIT_SELECT5: int = bits(0, 29, 27, default=0)
  SPARE: int = bits(0, 31, 30, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_CONTROL_B(Method, offset=0x33bc, apart=4, copies=8):
  EDGE: int = bits(0, 0, 0, default=0)
  MODE: int = bits(0, 2, 1, default=0)
  WINDOWED: int = bits(0, 3, 3, default=0)
  FUNC: int = bits(0, 19, 4, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_TRAP_CONTROL(Method, offset=0x33dc):
  MASK: int = bits(0, 7, 0, default=0)


class START_SHADER_PERFORMANCE_COUNTER(Method, offset=0x33e0):
  COUNTER_MASK: int = bits(0, 7, 0, default=0)


class STOP_SHADER_PERFORMANCE_COUNTER(Method, offset=0x33e4):
  COUNTER_MASK: int = bits(0, 7, 0, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_SCTL_FILTER(Method, offset=0x33e8):
  V: int = bits(0, 31, 0, default=0)


class SET_SHADER_PERFORMANCE_COUNTER_CORE_MIO_FILTER(Method, offset=0x33ec):
  V: int = bits(0, 31, 0, default=0)


class SET_MME_SHADOW_SCRATCH(Method, offset=0x3400, apart=4, copies=768):
  V: int = bits(0, 31, 0, default=0)


METHODS: tuple[type[Method], ...] = (
  SET_OBJECT, NO_OPERATION, SET_NOTIFY_A, SET_NOTIFY_B, NOTIFY, WAIT_FOR_IDLE, SET_GLOBAL_RENDER_ENABLE_A,
  SET_GLOBAL_RENDER_ENABLE_B, SET_GLOBAL_RENDER_ENABLE_C, SEND_GO_IDLE, PM_TRIGGER, PM_TRIGGER_WFI,
  FE_ATOMIC_SEQUENCE_BEGIN, FE_ATOMIC_SEQUENCE_END, SET_INSTRUMENTATION_METHOD_HEADER,
  SET_INSTRUMENTATION_METHOD_DATA, LINE_LENGTH_IN, LINE_COUNT, OFFSET_OUT_UPPER, OFFSET_OUT, PITCH_OUT,
  SET_DST_BLOCK_SIZE, SET_DST_WIDTH, SET_DST_HEIGHT, SET_DST_DEPTH, SET_DST_LAYER, SET_DST_ORIGIN_BYTES_X,
  SET_DST_ORIGIN_SAMPLES_Y, LAUNCH_DMA, LOAD_INLINE_DATA, SET_I2M_SEMAPHORE_A, SET_I2M_SEMAPHORE_B,
  SET_I2M_SEMAPHORE_C, SET_SM_SCG_CONTROL, SET_I2M_SPARE_NOOP00, SET_I2M_SPARE_NOOP01, SET_I2M_SPARE_NOOP02,
  SET_I2M_SPARE_NOOP03, SET_VALID_SPAN_OVERFLOW_AREA_A, SET_VALID_SPAN_OVERFLOW_AREA_B,
  SET_VALID_SPAN_OVERFLOW_AREA_C, PERFMON_TRANSFER, SET_QMD_VIRTUALIZATION_BASE_A,
  SET_QMD_VIRTUALIZATION_BASE_B, INVALIDATE_SHADER_CACHES, SET_RESERVED_SW_METHOD00, SET_RESERVED_SW_METHOD01,
  SET_RESERVED_SW_METHOD02, SET_RESERVED_SW_METHOD03, SET_RESERVED_SW_METHOD04, SET_RESERVED_SW_METHOD05,
  SET_RESERVED_SW_METHOD06, SET_RESERVED_SW_METHOD07, INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI,
  SET_CWD_REF_COUNTER, SET_RESERVED_SW_METHOD08, SET_RESERVED_SW_METHOD09, SET_RESERVED_SW_METHOD10,
  SET_RESERVED_SW_METHOD11, SET_RESERVED_SW_METHOD12, SET_RESERVED_SW_METHOD13, SET_RESERVED_SW_METHOD14,
  SET_RESERVED_SW_METHOD15, SET_SCG_CONTROL, SET_COMPUTE_CLASS_VERSION, CHECK_COMPUTE_CLASS_VERSION,
  SET_QMD_VERSION, CHECK_QMD_VERSION, INVALIDATE_SKED_CACHES, SET_QMD_VIRTUALIZATION_CONTROL,
  SET_SHADER_SHARED_MEMORY_WINDOW_A, SET_SHADER_SHARED_MEMORY_WINDOW_B, SCG_HYSTERESIS_CONTROL,
  SET_CWD_SLOT_COUNT, SEND_PCAS_A, SEND_PCAS_B, SEND_SIGNALING_PCAS_B, SEND_SIGNALING_PCAS2_B,
  SET_SKED_CACHE_CONTROL, SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B,
  SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C, SET_SPA_VERSION, SET_INLINE_QMD_ADDRESS_A, SET_INLINE_QMD_ADDRESS_B,
  LOAD_INLINE_QMD_DATA, SET_FALCON00, SET_FALCON01, SET_FALCON02, SET_FALCON03, SET_FALCON04, SET_FALCON05,
  SET_FALCON06, SET_FALCON07, SET_FALCON08, SET_FALCON09, SET_FALCON10, SET_FALCON11, SET_FALCON12,
  SET_FALCON13, SET_FALCON14, SET_FALCON15, SET_SHADER_LOCAL_MEMORY_A, SET_SHADER_LOCAL_MEMORY_B,
  SET_SHADER_LOCAL_MEMORY_WINDOW_A, SET_SHADER_LOCAL_MEMORY_WINDOW_B, SET_SHADER_CACHE_CONTROL,
  SET_SCG_COMPUTE_SCHEDULING_PARAMETERS, SET_SM_TIMEOUT_INTERVAL, INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI,
  ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT, INVALIDATE_SAMPLER_CACHE, INVALIDATE_TEXTURE_HEADER_CACHE,
  INVALIDATE_TEXTURE_DATA_CACHE, INVALIDATE_SAMPLER_CACHE_NO_WFI, SET_SHADER_EXCEPTIONS, SET_RENDER_ENABLE_A,
  SET_RENDER_ENABLE_B, SET_RENDER_ENABLE_C, SET_TEX_SAMPLER_POOL_A, SET_TEX_SAMPLER_POOL_B,
  SET_TEX_SAMPLER_POOL_C, SET_TEX_HEADER_POOL_A, SET_TEX_HEADER_POOL_B, SET_TEX_HEADER_POOL_C,
  INVALIDATE_SHADER_CACHES_NO_WFI, SET_RENDER_ENABLE_OVERRIDE, PIPE_NOP, SET_SPARE00, SET_SPARE01, SET_SPARE02,
  SET_SPARE03, SET_REPORT_SEMAPHORE_A, SET_REPORT_SEMAPHORE_B, SET_REPORT_SEMAPHORE_C, SET_REPORT_SEMAPHORE_D,
  SET_TRAP_HANDLER_A, SET_TRAP_HANDLER_B, SET_BINDLESS_TEXTURE, SET_SHADER_PERFORMANCE_SNAPSHOT_COUNTER_VALUE,
  SET_SHADER_PERFORMANCE_SNAPSHOT_COUNTER_VALUE_UPPER, ENABLE_SHADER_PERFORMANCE_SNAPSHOT_COUNTER,
  DISABLE_SHADER_PERFORMANCE_SNAPSHOT_COUNTER, SET_SHADER_PERFORMANCE_COUNTER_VALUE_UPPER,
  SET_SHADER_PERFORMANCE_COUNTER_VALUE, SET_SHADER_PERFORMANCE_COUNTER_EVENT,
  SET_SHADER_PERFORMANCE_COUNTER_CONTROL_A, SET_SHADER_PERFORMANCE_COUNTER_CONTROL_B,
  SET_SHADER_PERFORMANCE_COUNTER_TRAP_CONTROL, START_SHADER_PERFORMANCE_COUNTER,
  STOP_SHADER_PERFORMANCE_COUNTER, SET_SHADER_PERFORMANCE_COUNTER_SCTL_FILTER,
  SET_SHADER_PERFORMANCE_COUNTER_CORE_MIO_FILTER, SET_MME_SHADOW_SCRATCH,
)
