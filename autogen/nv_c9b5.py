"""BLACKWELL_DMA_COPY_A (0xc9b5): its methods, one class each, fields as the vendor names them.

Generated; do not edit. Source:
  NVIDIA/open-gpu-doc commit c8607fe576b53ff821ffcf97e7548d2de11c4eaf (2025-07-18), licence MIT
    classes/dma-copy/clc9b5.h sha256 14130b177d5e74dcaf9c3329f2c6a5ffa50a46d550ebbe9528d7aabcc8f23c23
Generator: tinyhw gen nv_c9b5

Offsets are in bytes. All fields default to 0.
"""
from __future__ import annotations

from enum import IntEnum

from tinyhw.core.layout import Method, bits

NAME = "BLACKWELL_DMA_COPY_A"
CLASS = 0xc9b5


class NOP(Method, offset=0x0100):
  PARAMETER: int = bits(0, 31, 0, default=0)


class PM_TRIGGER(Method, offset=0x0140):
  V: int = bits(0, 31, 0, default=0)


class SET_MONITORED_FENCE_TYPE_TYPE(IntEnum):
  MONITORED_FENCE = 0
  MONITORED_FENCE_EXT = 1


class SET_MONITORED_FENCE_TYPE(Method, offset=0x021c):
  TYPE: int = bits(0, 0, 0, default=0, enum=SET_MONITORED_FENCE_TYPE_TYPE)


class SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER(Method, offset=0x0220):
  UPPER: int = bits(0, 24, 0, default=0)


class SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER(Method, offset=0x0224):
  LOWER: int = bits(0, 31, 0, default=0)


class SET_SEMAPHORE_A(Method, offset=0x0240):
  UPPER: int = bits(0, 24, 0, default=0)


class SET_SEMAPHORE_B(Method, offset=0x0244):
  LOWER: int = bits(0, 31, 0, default=0)


class SET_SEMAPHORE_PAYLOAD(Method, offset=0x0248):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SET_SEMAPHORE_PAYLOAD_UPPER(Method, offset=0x024c):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SET_RENDER_ENABLE_A(Method, offset=0x0254):
  UPPER: int = bits(0, 24, 0, default=0)


class SET_RENDER_ENABLE_B(Method, offset=0x0258):
  LOWER: int = bits(0, 31, 0, default=0)


class SET_RENDER_ENABLE_C_MODE(IntEnum):
  FALSE = 0
  TRUE = 1
  CONDITIONAL = 2
  RENDER_IF_EQUAL = 3
  RENDER_IF_NOT_EQUAL = 4


class SET_RENDER_ENABLE_C(Method, offset=0x025c):
  MODE: int = bits(0, 2, 0, default=0, enum=SET_RENDER_ENABLE_C_MODE)


class SET_SRC_PHYS_MODE_TARGET(IntEnum):
  LOCAL_FB = 0
  COHERENT_SYSMEM = 1
  NONCOHERENT_SYSMEM = 2
  PEERMEM = 3


class SET_SRC_PHYS_MODE(Method, offset=0x0260):
  TARGET: int = bits(0, 1, 0, default=0, enum=SET_SRC_PHYS_MODE_TARGET)
  BASIC_KIND: int = bits(0, 5, 2, default=0)
  PEER_ID: int = bits(0, 8, 6, default=0)
  FLA: int = bits(0, 9, 9, default=0)


class SET_DST_PHYS_MODE_TARGET(IntEnum):
  LOCAL_FB = 0
  COHERENT_SYSMEM = 1
  NONCOHERENT_SYSMEM = 2
  PEERMEM = 3


class SET_DST_PHYS_MODE(Method, offset=0x0264):
  TARGET: int = bits(0, 1, 0, default=0, enum=SET_DST_PHYS_MODE_TARGET)
  BASIC_KIND: int = bits(0, 5, 2, default=0)
  PEER_ID: int = bits(0, 8, 6, default=0)
  FLA: int = bits(0, 9, 9, default=0)


class LAUNCH_DMA_DATA_TRANSFER_TYPE(IntEnum):
  NONE = 0
  PIPELINED = 1
  NON_PIPELINED = 2


class LAUNCH_DMA_FLUSH_TYPE(IntEnum):
  SYS = 0
  GL = 1


class LAUNCH_DMA_SEMAPHORE_TYPE(IntEnum):
  NONE = 0
  RELEASE_SEMAPHORE_NO_TIMESTAMP = 1
  RELEASE_SEMAPHORE_WITH_TIMESTAMP = 2
  RELEASE_ONE_WORD_SEMAPHORE = 1
  RELEASE_FOUR_WORD_SEMAPHORE = 2
  RELEASE_CONDITIONAL_INTR_SEMAPHORE = 3


class LAUNCH_DMA_INTERRUPT_TYPE(IntEnum):
  NONE = 0
  BLOCKING = 1
  NON_BLOCKING = 2


class LAUNCH_DMA_SRC_MEMORY_LAYOUT(IntEnum):
  BLOCKLINEAR = 0
  PITCH = 1


class LAUNCH_DMA_DST_MEMORY_LAYOUT(IntEnum):
  BLOCKLINEAR = 0
  PITCH = 1


class LAUNCH_DMA_SRC_TYPE(IntEnum):
  VIRTUAL = 0
  PHYSICAL = 1


class LAUNCH_DMA_DST_TYPE(IntEnum):
  VIRTUAL = 0
  PHYSICAL = 1


class LAUNCH_DMA_SEMAPHORE_REDUCTION(IntEnum):
  IMIN = 0
  IMAX = 1
  IXOR = 2
  IAND = 3
  IOR = 4
  IADD = 5
  INC = 6
  DEC = 7
  INVALIDA = 8
  INVALIDB = 9
  FADD = 0xa
  FMIN = 0xb
  FMAX = 0xc
  INVALIDC = 0xd
  INVALIDD = 0xe
  INVALIDE = 0xf


class LAUNCH_DMA_SEMAPHORE_REDUCTION_SIGN(IntEnum):
  SIGNED = 0
  UNSIGNED = 1


class LAUNCH_DMA_COPY_TYPE(IntEnum):
  PROT2PROT = 0
  DEFAULT = 0
  SECURE = 1
  NONPROT2NONPROT = 2
  RESERVED = 3


class LAUNCH_DMA_VPRMODE(IntEnum):
  VPR_NONE = 0
  VPR_VID2VID = 1


class LAUNCH_DMA_SEMAPHORE_PAYLOAD_SIZE(IntEnum):
  ONE_WORD = 0
  TWO_WORD = 1


class LAUNCH_DMA(Method, offset=0x0300):
  DATA_TRANSFER_TYPE: int = bits(0, 1, 0, default=0, enum=LAUNCH_DMA_DATA_TRANSFER_TYPE)
  FLUSH_ENABLE: int = bits(0, 2, 2, default=0)
  FLUSH_TYPE: int = bits(0, 25, 25, default=0, enum=LAUNCH_DMA_FLUSH_TYPE)
  SEMAPHORE_TYPE: int = bits(0, 4, 3, default=0, enum=LAUNCH_DMA_SEMAPHORE_TYPE)
  INTERRUPT_TYPE: int = bits(0, 6, 5, default=0, enum=LAUNCH_DMA_INTERRUPT_TYPE)
  SRC_MEMORY_LAYOUT: int = bits(0, 7, 7, default=0, enum=LAUNCH_DMA_SRC_MEMORY_LAYOUT)
  DST_MEMORY_LAYOUT: int = bits(0, 8, 8, default=0, enum=LAUNCH_DMA_DST_MEMORY_LAYOUT)
  MULTI_LINE_ENABLE: int = bits(0, 9, 9, default=0)
  REMAP_ENABLE: int = bits(0, 10, 10, default=0)
  SRC_TYPE: int = bits(0, 12, 12, default=0, enum=LAUNCH_DMA_SRC_TYPE)
  DST_TYPE: int = bits(0, 13, 13, default=0, enum=LAUNCH_DMA_DST_TYPE)
  SEMAPHORE_REDUCTION: int = bits(0, 17, 14, default=0, enum=LAUNCH_DMA_SEMAPHORE_REDUCTION)
  SEMAPHORE_REDUCTION_SIGN: int = bits(0, 18, 18, default=0, enum=LAUNCH_DMA_SEMAPHORE_REDUCTION_SIGN)
  SEMAPHORE_REDUCTION_ENABLE: int = bits(0, 19, 19, default=0)
  COPY_TYPE: int = bits(0, 21, 20, default=0, enum=LAUNCH_DMA_COPY_TYPE)
  VPRMODE: int = bits(0, 22, 22, default=0, enum=LAUNCH_DMA_VPRMODE)
  MEMORY_SCRUB_ENABLE: int = bits(0, 23, 23, default=0)
  RESERVED_START_OF_COPY: int = bits(0, 24, 24, default=0)
  DISABLE_PLC: int = bits(0, 26, 26, default=0)
  SEMAPHORE_PAYLOAD_SIZE: int = bits(0, 27, 27, default=0, enum=LAUNCH_DMA_SEMAPHORE_PAYLOAD_SIZE)
  RESERVED_ERR_CODE: int = bits(0, 31, 28, default=0)


class OFFSET_IN_UPPER(Method, offset=0x0400):
  UPPER: int = bits(0, 24, 0, default=0)


class OFFSET_IN_LOWER(Method, offset=0x0404):
  VALUE: int = bits(0, 31, 0, default=0)


class OFFSET_OUT_UPPER(Method, offset=0x0408):
  UPPER: int = bits(0, 24, 0, default=0)


class OFFSET_OUT_LOWER(Method, offset=0x040c):
  VALUE: int = bits(0, 31, 0, default=0)


class PITCH_IN(Method, offset=0x0410):
  VALUE: int = bits(0, 31, 0, default=0)


class PITCH_OUT(Method, offset=0x0414):
  VALUE: int = bits(0, 31, 0, default=0)


class LINE_LENGTH_IN(Method, offset=0x0418):
  VALUE: int = bits(0, 31, 0, default=0)


class LINE_COUNT(Method, offset=0x041c):
  VALUE: int = bits(0, 31, 0, default=0)


class SET_SECURE_COPY_MODE_MODE(IntEnum):
  ENCRYPT = 0
  DECRYPT = 1


class SET_SECURE_COPY_MODE(Method, offset=0x0500):
  MODE: int = bits(0, 0, 0, default=0, enum=SET_SECURE_COPY_MODE_MODE)


class SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_UPPER(Method, offset=0x0514):
  UPPER: int = bits(0, 24, 0, default=0)


class SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_LOWER(Method, offset=0x0518):
  LOWER: int = bits(0, 31, 0, default=0)


class SET_ENCRYPT_AUTH_TAG_ADDR_UPPER(Method, offset=0x0530):
  UPPER: int = bits(0, 24, 0, default=0)


class SET_ENCRYPT_AUTH_TAG_ADDR_LOWER(Method, offset=0x0534):
  LOWER: int = bits(0, 31, 0, default=0)


class SET_ENCRYPT_IV_ADDR_UPPER(Method, offset=0x0538):
  UPPER: int = bits(0, 24, 0, default=0)


class SET_ENCRYPT_IV_ADDR_LOWER(Method, offset=0x053c):
  LOWER: int = bits(0, 31, 0, default=0)


class SET_MEMORY_SCRUB_PARAMETERS(Method, offset=0x06fc):
  DISCARDABLE: int = bits(0, 0, 0, default=0)


class SET_REMAP_CONST_A(Method, offset=0x0700):
  V: int = bits(0, 31, 0, default=0)


class SET_REMAP_CONST_B(Method, offset=0x0704):
  V: int = bits(0, 31, 0, default=0)


class SET_REMAP_COMPONENTS_DST_X(IntEnum):
  SRC_X = 0
  SRC_Y = 1
  SRC_Z = 2
  SRC_W = 3
  CONST_A = 4
  CONST_B = 5
  NO_WRITE = 6


class SET_REMAP_COMPONENTS_DST_Y(IntEnum):
  SRC_X = 0
  SRC_Y = 1
  SRC_Z = 2
  SRC_W = 3
  CONST_A = 4
  CONST_B = 5
  NO_WRITE = 6


class SET_REMAP_COMPONENTS_DST_Z(IntEnum):
  SRC_X = 0
  SRC_Y = 1
  SRC_Z = 2
  SRC_W = 3
  CONST_A = 4
  CONST_B = 5
  NO_WRITE = 6


class SET_REMAP_COMPONENTS_DST_W(IntEnum):
  SRC_X = 0
  SRC_Y = 1
  SRC_Z = 2
  SRC_W = 3
  CONST_A = 4
  CONST_B = 5
  NO_WRITE = 6


class SET_REMAP_COMPONENTS_COMPONENT_SIZE(IntEnum):
  ONE = 0
  TWO = 1
  THREE = 2
  FOUR = 3


class SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS(IntEnum):
  ONE = 0
  TWO = 1
  THREE = 2
  FOUR = 3


class SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS(IntEnum):
  ONE = 0
  TWO = 1
  THREE = 2
  FOUR = 3


class SET_REMAP_COMPONENTS(Method, offset=0x0708):
  DST_X: int = bits(0, 2, 0, default=0, enum=SET_REMAP_COMPONENTS_DST_X)
  DST_Y: int = bits(0, 6, 4, default=0, enum=SET_REMAP_COMPONENTS_DST_Y)
  DST_Z: int = bits(0, 10, 8, default=0, enum=SET_REMAP_COMPONENTS_DST_Z)
  DST_W: int = bits(0, 14, 12, default=0, enum=SET_REMAP_COMPONENTS_DST_W)
  COMPONENT_SIZE: int = bits(0, 17, 16, default=0, enum=SET_REMAP_COMPONENTS_COMPONENT_SIZE)
  NUM_SRC_COMPONENTS: int = bits(0, 21, 20, default=0, enum=SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS)
  NUM_DST_COMPONENTS: int = bits(0, 25, 24, default=0, enum=SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS)


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


class SET_DST_BLOCK_SIZE_GOB_HEIGHT(IntEnum):
  GOB_HEIGHT_FERMI_8 = 1


class SET_DST_BLOCK_SIZE(Method, offset=0x070c):
  WIDTH: int = bits(0, 3, 0, default=0, enum=SET_DST_BLOCK_SIZE_WIDTH)
  HEIGHT: int = bits(0, 7, 4, default=0, enum=SET_DST_BLOCK_SIZE_HEIGHT)
  DEPTH: int = bits(0, 11, 8, default=0, enum=SET_DST_BLOCK_SIZE_DEPTH)
  GOB_HEIGHT: int = bits(0, 15, 12, default=0, enum=SET_DST_BLOCK_SIZE_GOB_HEIGHT)


class SET_DST_WIDTH(Method, offset=0x0710):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_HEIGHT(Method, offset=0x0714):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_DEPTH(Method, offset=0x0718):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_LAYER(Method, offset=0x071c):
  V: int = bits(0, 31, 0, default=0)


class SET_DST_ORIGIN(Method, offset=0x0720):
  X: int = bits(0, 15, 0, default=0)
  Y: int = bits(0, 31, 16, default=0)


class SET_SRC_BLOCK_SIZE_WIDTH(IntEnum):
  ONE_GOB = 0


class SET_SRC_BLOCK_SIZE_HEIGHT(IntEnum):
  ONE_GOB = 0
  TWO_GOBS = 1
  FOUR_GOBS = 2
  EIGHT_GOBS = 3
  SIXTEEN_GOBS = 4
  THIRTYTWO_GOBS = 5


class SET_SRC_BLOCK_SIZE_DEPTH(IntEnum):
  ONE_GOB = 0
  TWO_GOBS = 1
  FOUR_GOBS = 2
  EIGHT_GOBS = 3
  SIXTEEN_GOBS = 4
  THIRTYTWO_GOBS = 5


class SET_SRC_BLOCK_SIZE_GOB_HEIGHT(IntEnum):
  GOB_HEIGHT_FERMI_8 = 1


class SET_SRC_BLOCK_SIZE(Method, offset=0x0728):
  WIDTH: int = bits(0, 3, 0, default=0, enum=SET_SRC_BLOCK_SIZE_WIDTH)
  HEIGHT: int = bits(0, 7, 4, default=0, enum=SET_SRC_BLOCK_SIZE_HEIGHT)
  DEPTH: int = bits(0, 11, 8, default=0, enum=SET_SRC_BLOCK_SIZE_DEPTH)
  GOB_HEIGHT: int = bits(0, 15, 12, default=0, enum=SET_SRC_BLOCK_SIZE_GOB_HEIGHT)


class SET_SRC_WIDTH(Method, offset=0x072c):
  V: int = bits(0, 31, 0, default=0)


class SET_SRC_HEIGHT(Method, offset=0x0730):
  V: int = bits(0, 31, 0, default=0)


class SET_SRC_DEPTH(Method, offset=0x0734):
  V: int = bits(0, 31, 0, default=0)


class SET_SRC_LAYER(Method, offset=0x0738):
  V: int = bits(0, 31, 0, default=0)


class SET_SRC_ORIGIN(Method, offset=0x073c):
  X: int = bits(0, 15, 0, default=0)
  Y: int = bits(0, 31, 16, default=0)


class SRC_ORIGIN_X(Method, offset=0x0744):
  VALUE: int = bits(0, 31, 0, default=0)


class SRC_ORIGIN_Y(Method, offset=0x0748):
  VALUE: int = bits(0, 31, 0, default=0)


class DST_ORIGIN_X(Method, offset=0x074c):
  VALUE: int = bits(0, 31, 0, default=0)


class DST_ORIGIN_Y(Method, offset=0x0750):
  VALUE: int = bits(0, 31, 0, default=0)


class PM_TRIGGER_END(Method, offset=0x1114):
  V: int = bits(0, 31, 0, default=0)


METHODS: tuple[type[Method], ...] = (
  NOP, PM_TRIGGER, SET_MONITORED_FENCE_TYPE, SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER,
  SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER, SET_SEMAPHORE_A, SET_SEMAPHORE_B, SET_SEMAPHORE_PAYLOAD,
  SET_SEMAPHORE_PAYLOAD_UPPER, SET_RENDER_ENABLE_A, SET_RENDER_ENABLE_B, SET_RENDER_ENABLE_C, SET_SRC_PHYS_MODE,
  SET_DST_PHYS_MODE, LAUNCH_DMA, OFFSET_IN_UPPER, OFFSET_IN_LOWER, OFFSET_OUT_UPPER, OFFSET_OUT_LOWER, PITCH_IN,
  PITCH_OUT, LINE_LENGTH_IN, LINE_COUNT, SET_SECURE_COPY_MODE, SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_UPPER,
  SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_LOWER, SET_ENCRYPT_AUTH_TAG_ADDR_UPPER, SET_ENCRYPT_AUTH_TAG_ADDR_LOWER,
  SET_ENCRYPT_IV_ADDR_UPPER, SET_ENCRYPT_IV_ADDR_LOWER, SET_MEMORY_SCRUB_PARAMETERS, SET_REMAP_CONST_A,
  SET_REMAP_CONST_B, SET_REMAP_COMPONENTS, SET_DST_BLOCK_SIZE, SET_DST_WIDTH, SET_DST_HEIGHT, SET_DST_DEPTH,
  SET_DST_LAYER, SET_DST_ORIGIN, SET_SRC_BLOCK_SIZE, SET_SRC_WIDTH, SET_SRC_HEIGHT, SET_SRC_DEPTH,
  SET_SRC_LAYER, SET_SRC_ORIGIN, SRC_ORIGIN_X, SRC_ORIGIN_Y, DST_ORIGIN_X, DST_ORIGIN_Y, PM_TRIGGER_END,
)
