"""AMPERE_CHANNEL_GPFIFO_A (0xc56f): its methods, one class each, fields as the vendor names them.

Generated; do not edit. Source:
  NVIDIA/open-gpu-doc commit c8607fe576b53ff821ffcf97e7548d2de11c4eaf (2025-07-18), licence MIT
    classes/host/clc56f.h sha256 c7b1b8fe622a9071521477d0597ba036d2fc1c02663246f51e56506b1e4ec3f1
Generator: tinyhw gen nv_c56f

Offsets are in bytes. All fields default to 0.
"""
from __future__ import annotations

from enum import IntEnum

from tinyhw.core.layout import Method, Word, bits

NAME = "AMPERE_CHANNEL_GPFIFO_A"
CLASS = 0xc56f


class GP_ENTRY0_FETCH(IntEnum):
  UNCONDITIONAL = 0
  CONDITIONAL = 1


class GP_ENTRY0(Word):
  FETCH: int = bits(0, 0, 0, default=0, enum=GP_ENTRY0_FETCH)
  GET: int = bits(0, 31, 2, default=0)

  @property
  def OPERAND(self) -> int:
    """Another use of bits 31:0."""
    return self.value() >> 0 & 0xffffffff


class GP_ENTRY1_LEVEL(IntEnum):
  MAIN = 0
  SUBROUTINE = 1


class GP_ENTRY1_SYNC(IntEnum):
  PROCEED = 0
  WAIT = 1


class GP_ENTRY1_OPCODE(IntEnum):
  NOP = 0
  ILLEGAL = 1
  GP_CRC = 2
  PB_CRC = 3


class GP_ENTRY1(Word):
  GET_HI: int = bits(0, 7, 0, default=0)
  LEVEL: int = bits(0, 9, 9, default=0, enum=GP_ENTRY1_LEVEL)
  LENGTH: int = bits(0, 30, 10, default=0)
  SYNC: int = bits(0, 31, 31, default=0, enum=GP_ENTRY1_SYNC)

  @property
  def OPCODE(self) -> int:
    """Another use of bits 7:0."""
    return self.value() >> 0 & 0xff


class DMA_INCR_OPCODE(IntEnum):
  VALUE = 1


class DMA_INCR(Word):
  ADDRESS: int = bits(0, 11, 0, default=0)
  SUBCHANNEL: int = bits(0, 15, 13, default=0)
  COUNT: int = bits(0, 28, 16, default=0)
  OPCODE: int = bits(0, 31, 29, default=0, enum=DMA_INCR_OPCODE)

  @property
  def DATA(self) -> int:
    """Another use of bits 31:0."""
    return self.value() >> 0 & 0xffffffff


class DMA_NONINCR_OPCODE(IntEnum):
  VALUE = 3


class DMA_NONINCR(Word):
  ADDRESS: int = bits(0, 11, 0, default=0)
  SUBCHANNEL: int = bits(0, 15, 13, default=0)
  COUNT: int = bits(0, 28, 16, default=0)
  OPCODE: int = bits(0, 31, 29, default=0, enum=DMA_NONINCR_OPCODE)

  @property
  def DATA(self) -> int:
    """Another use of bits 31:0."""
    return self.value() >> 0 & 0xffffffff


class DMA_ONEINCR_OPCODE(IntEnum):
  VALUE = 5


class DMA_ONEINCR(Word):
  ADDRESS: int = bits(0, 11, 0, default=0)
  SUBCHANNEL: int = bits(0, 15, 13, default=0)
  COUNT: int = bits(0, 28, 16, default=0)
  OPCODE: int = bits(0, 31, 29, default=0, enum=DMA_ONEINCR_OPCODE)

  @property
  def DATA(self) -> int:
    """Another use of bits 31:0."""
    return self.value() >> 0 & 0xffffffff


class DMA_IMMD_OPCODE(IntEnum):
  VALUE = 4


class DMA_IMMD(Word):
  DATA: int = bits(0, 28, 16, default=0)
  ADDRESS: int = bits(0, 11, 0, default=0)
  SUBCHANNEL: int = bits(0, 15, 13, default=0)
  OPCODE: int = bits(0, 31, 29, default=0, enum=DMA_IMMD_OPCODE)


class DMA_SET_SUBDEVICE_MASK_OPCODE(IntEnum):
  VALUE = 1


class DMA_SET_SUBDEVICE_MASK(Word):
  VALUE: int = bits(0, 15, 4, default=0)
  OPCODE: int = bits(0, 31, 16, default=0, enum=DMA_SET_SUBDEVICE_MASK_OPCODE)


class DMA_STORE_SUBDEVICE_MASK_OPCODE(IntEnum):
  VALUE = 2


class DMA_STORE_SUBDEVICE_MASK(Word):
  VALUE: int = bits(0, 15, 4, default=0)
  OPCODE: int = bits(0, 31, 16, default=0, enum=DMA_STORE_SUBDEVICE_MASK_OPCODE)


class DMA_USE_SUBDEVICE_MASK_OPCODE(IntEnum):
  VALUE = 3


class DMA_USE_SUBDEVICE_MASK(Word):
  OPCODE: int = bits(0, 31, 16, default=0, enum=DMA_USE_SUBDEVICE_MASK_OPCODE)


class DMA_ENDSEG_OPCODE(IntEnum):
  VALUE = 7


class DMA_ENDSEG(Word):
  OPCODE: int = bits(0, 31, 29, default=0, enum=DMA_ENDSEG_OPCODE)


class SET_OBJECT_ENGINE(IntEnum):
  SW = 0x1f


class SET_OBJECT(Method, offset=0x0000):
  NVCLASS: int = bits(0, 15, 0, default=0)
  ENGINE: int = bits(0, 20, 16, default=0, enum=SET_OBJECT_ENGINE)


class ILLEGAL(Method, offset=0x0004):
  HANDLE: int = bits(0, 31, 0, default=0)


class NOP(Method, offset=0x0008):
  HANDLE: int = bits(0, 31, 0, default=0)


class SEMAPHOREA(Method, offset=0x0010):
  OFFSET_UPPER: int = bits(0, 7, 0, default=0)


class SEMAPHOREB(Method, offset=0x0014):
  OFFSET_LOWER: int = bits(0, 31, 2, default=0)


class SEMAPHOREC(Method, offset=0x0018):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SEMAPHORED_OPERATION(IntEnum):
  ACQUIRE = 1
  RELEASE = 2
  ACQ_GEQ = 4
  ACQ_AND = 8
  REDUCTION = 0x10


class SEMAPHORED_ACQUIRE_SWITCH(IntEnum):
  DISABLED = 0
  ENABLED = 1


class SEMAPHORED_RELEASE_WFI(IntEnum):
  EN = 0
  DIS = 1


class SEMAPHORED_RELEASE_SIZE(IntEnum):
  _16BYTE = 0
  _4BYTE = 1


class SEMAPHORED_REDUCTION(IntEnum):
  MIN = 0
  MAX = 1
  XOR = 2
  AND = 3
  OR = 4
  ADD = 5
  INC = 6
  DEC = 7


class SEMAPHORED_FORMAT(IntEnum):
  SIGNED = 0
  UNSIGNED = 1


class SEMAPHORED(Method, offset=0x001c):
  OPERATION: int = bits(0, 4, 0, default=0, enum=SEMAPHORED_OPERATION)
  ACQUIRE_SWITCH: int = bits(0, 12, 12, default=0, enum=SEMAPHORED_ACQUIRE_SWITCH)
  RELEASE_WFI: int = bits(0, 20, 20, default=0, enum=SEMAPHORED_RELEASE_WFI)
  RELEASE_SIZE: int = bits(0, 24, 24, default=0, enum=SEMAPHORED_RELEASE_SIZE)
  REDUCTION: int = bits(0, 30, 27, default=0, enum=SEMAPHORED_REDUCTION)
  FORMAT: int = bits(0, 31, 31, default=0, enum=SEMAPHORED_FORMAT)


class NON_STALL_INTERRUPT(Method, offset=0x0020):
  HANDLE: int = bits(0, 31, 0, default=0)


class FB_FLUSH(Method, offset=0x0024):
  HANDLE: int = bits(0, 31, 0, default=0)


class MEM_OP_A_TLB_INVALIDATE_SYSMEMBAR(IntEnum):
  EN = 1
  DIS = 0


class MEM_OP_A_TLB_INVALIDATE_INVAL_SCOPE(IntEnum):
  ALL_TLBS = 0
  LINK_TLBS = 1
  NON_LINK_TLBS = 2
  RSVRVD = 3


class MEM_OP_A(Method, offset=0x0028):
  TLB_INVALIDATE_CANCEL_TARGET_CLIENT_UNIT_ID: int = bits(0, 5, 0, default=0)
  TLB_INVALIDATE_CANCEL_TARGET_GPC_ID: int = bits(0, 10, 6, default=0)
  TLB_INVALIDATE_SYSMEMBAR: int = bits(0, 11, 11, default=0, enum=MEM_OP_A_TLB_INVALIDATE_SYSMEMBAR)
  TLB_INVALIDATE_TARGET_ADDR_LO: int = bits(0, 31, 12, default=0)

  @property
  def TLB_INVALIDATE_INVALIDATION_SIZE(self) -> int:
    """Another use of bits 5:0."""
    return self.value() >> 0 & 0x3f

  @property
  def TLB_INVALIDATE_INVAL_SCOPE(self) -> int:
    """Another use of bits 7:6."""
    return self.value() >> 6 & 0x3

  @property
  def TLB_INVALIDATE_CANCEL_MMU_ENGINE_ID(self) -> int:
    """Another use of bits 6:0."""
    return self.value() >> 0 & 0x7f


class MEM_OP_B(Method, offset=0x002c):
  TLB_INVALIDATE_TARGET_ADDR_HI: int = bits(0, 31, 0, default=0)


class MEM_OP_C_MEMBAR_TYPE(IntEnum):
  SYS_MEMBAR = 0
  MEMBAR = 1


class MEM_OP_C_TLB_INVALIDATE_ACK_TYPE(IntEnum):
  NONE = 0
  GLOBALLY = 1
  INTRANODE = 2


class MEM_OP_C_TLB_INVALIDATE_ACCESS_TYPE(IntEnum):
  VIRT_READ = 0
  VIRT_WRITE = 1
  VIRT_ATOMIC_STRONG = 2
  VIRT_RSVRVD = 3
  VIRT_ATOMIC_WEAK = 4
  VIRT_ATOMIC_ALL = 5
  VIRT_WRITE_AND_ATOMIC = 6
  VIRT_ALL = 7


class MEM_OP_C_TLB_INVALIDATE_PDB_APERTURE(IntEnum):
  VID_MEM = 0
  SYS_MEM_COHERENT = 2
  SYS_MEM_NONCOHERENT = 3


class MEM_OP_C_TLB_INVALIDATE_PDB(IntEnum):
  ONE = 0
  ALL = 1


class MEM_OP_C_TLB_INVALIDATE_GPC(IntEnum):
  ENABLE = 0
  DISABLE = 1


class MEM_OP_C_TLB_INVALIDATE_REPLAY(IntEnum):
  NONE = 0
  START = 1
  START_ACK_ALL = 2
  CANCEL_TARGETED = 3
  CANCEL_GLOBAL = 4
  CANCEL_VA_GLOBAL = 5


class MEM_OP_C_TLB_INVALIDATE_PAGE_TABLE_LEVEL(IntEnum):
  ALL = 0
  PTE_ONLY = 1
  UP_TO_PDE0 = 2
  UP_TO_PDE1 = 3
  UP_TO_PDE2 = 4
  UP_TO_PDE3 = 5
  UP_TO_PDE4 = 6
  UP_TO_PDE5 = 7


class MEM_OP_C(Method, offset=0x0030):
  MEMBAR_TYPE: int = bits(0, 2, 0, default=0, enum=MEM_OP_C_MEMBAR_TYPE)
  TLB_INVALIDATE_ACK_TYPE: int = bits(0, 6, 5, default=0, enum=MEM_OP_C_TLB_INVALIDATE_ACK_TYPE)
  TLB_INVALIDATE_ACCESS_TYPE: int = bits(0, 9, 7, default=0, enum=MEM_OP_C_TLB_INVALIDATE_ACCESS_TYPE)
  TLB_INVALIDATE_PDB_APERTURE: int = bits(0, 11, 10, default=0, enum=MEM_OP_C_TLB_INVALIDATE_PDB_APERTURE)
  TLB_INVALIDATE_PDB_ADDR_LO: int = bits(0, 31, 12, default=0)

  @property
  def TLB_INVALIDATE_PDB(self) -> int:
    """Another use of bits 0:0."""
    return self.value() >> 0 & 0x1

  @property
  def TLB_INVALIDATE_GPC(self) -> int:
    """Another use of bits 1:1."""
    return self.value() >> 1 & 0x1

  @property
  def TLB_INVALIDATE_REPLAY(self) -> int:
    """Another use of bits 4:2."""
    return self.value() >> 2 & 0x7

  @property
  def TLB_INVALIDATE_PAGE_TABLE_LEVEL(self) -> int:
    """Another use of bits 9:7."""
    return self.value() >> 7 & 0x7

  @property
  def ACCESS_COUNTER_CLR_TARGETED_NOTIFY_TAG(self) -> int:
    """Another use of bits 19:0."""
    return self.value() >> 0 & 0xfffff


class MEM_OP_D_OPERATION(IntEnum):
  MEMBAR = 5
  MMU_TLB_INVALIDATE = 9
  MMU_TLB_INVALIDATE_TARGETED = 0xa
  L2_PEERMEM_INVALIDATE = 0xd
  L2_SYSMEM_INVALIDATE = 0xe
  L2_CLEAN_COMPTAGS = 0xf
  L2_FLUSH_DIRTY = 0x10
  L2_WAIT_FOR_SYS_PENDING_READS = 0x15
  ACCESS_COUNTER_CLR = 0x16


class MEM_OP_D_ACCESS_COUNTER_CLR_TYPE(IntEnum):
  MIMC = 0
  MOMC = 1
  ALL = 2
  TARGETED = 3


class MEM_OP_D_ACCESS_COUNTER_CLR_TARGETED_TYPE(IntEnum):
  MIMC = 0
  MOMC = 1


class MEM_OP_D(Method, offset=0x0034):
  TLB_INVALIDATE_PDB_ADDR_HI: int = bits(0, 26, 0, default=0)
  OPERATION: int = bits(0, 31, 27, default=0, enum=MEM_OP_D_OPERATION)

  @property
  def ACCESS_COUNTER_CLR_TYPE(self) -> int:
    """Another use of bits 1:0."""
    return self.value() >> 0 & 0x3

  @property
  def ACCESS_COUNTER_CLR_TARGETED_TYPE(self) -> int:
    """Another use of bits 2:2."""
    return self.value() >> 2 & 0x1

  @property
  def ACCESS_COUNTER_CLR_TARGETED_BANK(self) -> int:
    """Another use of bits 6:3."""
    return self.value() >> 3 & 0xf


class SET_REFERENCE(Method, offset=0x0050):
  COUNT: int = bits(0, 31, 0, default=0)


class SEM_ADDR_LO(Method, offset=0x005c):
  OFFSET_: int = bits(0, 31, 2, default=0)


class SEM_ADDR_HI(Method, offset=0x0060):
  OFFSET_: int = bits(0, 7, 0, default=0)


class SEM_PAYLOAD_LO(Method, offset=0x0064):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SEM_PAYLOAD_HI(Method, offset=0x0068):
  PAYLOAD: int = bits(0, 31, 0, default=0)


class SEM_EXECUTE_OPERATION(IntEnum):
  ACQUIRE = 0
  RELEASE = 1
  ACQ_STRICT_GEQ = 2
  ACQ_CIRC_GEQ = 3
  ACQ_AND = 4
  ACQ_NOR = 5
  REDUCTION = 6


class SEM_EXECUTE_ACQUIRE_SWITCH_TSG(IntEnum):
  DIS = 0
  EN = 1


class SEM_EXECUTE_RELEASE_WFI(IntEnum):
  DIS = 0
  EN = 1


class SEM_EXECUTE_PAYLOAD_SIZE(IntEnum):
  _32BIT = 0
  _64BIT = 1


class SEM_EXECUTE_RELEASE_TIMESTAMP(IntEnum):
  DIS = 0
  EN = 1


class SEM_EXECUTE_REDUCTION(IntEnum):
  IMIN = 0
  IMAX = 1
  IXOR = 2
  IAND = 3
  IOR = 4
  IADD = 5
  INC = 6
  DEC = 7


class SEM_EXECUTE_REDUCTION_FORMAT(IntEnum):
  SIGNED = 0
  UNSIGNED = 1


class SEM_EXECUTE(Method, offset=0x006c):
  OPERATION: int = bits(0, 2, 0, default=0, enum=SEM_EXECUTE_OPERATION)
  ACQUIRE_SWITCH_TSG: int = bits(0, 12, 12, default=0, enum=SEM_EXECUTE_ACQUIRE_SWITCH_TSG)
  RELEASE_WFI: int = bits(0, 20, 20, default=0, enum=SEM_EXECUTE_RELEASE_WFI)
  PAYLOAD_SIZE: int = bits(0, 24, 24, default=0, enum=SEM_EXECUTE_PAYLOAD_SIZE)
  RELEASE_TIMESTAMP: int = bits(0, 25, 25, default=0, enum=SEM_EXECUTE_RELEASE_TIMESTAMP)
  REDUCTION: int = bits(0, 30, 27, default=0, enum=SEM_EXECUTE_REDUCTION)
  REDUCTION_FORMAT: int = bits(0, 31, 31, default=0, enum=SEM_EXECUTE_REDUCTION_FORMAT)


class WFI_SCOPE(IntEnum):
  CURRENT_SCG_TYPE = 0
  CURRENT_VEID = 0
  ALL = 1


class WFI(Method, offset=0x0078):
  SCOPE: int = bits(0, 0, 0, default=0, enum=WFI_SCOPE)


class YIELD_OP(IntEnum):
  NOP = 0
  TSG = 3


class YIELD(Method, offset=0x0080):
  OP_: int = bits(0, 1, 0, default=0, enum=YIELD_OP)


class CLEAR_FAULTED_TYPE(IntEnum):
  PBDMA_FAULTED = 0
  ENG_FAULTED = 1


class CLEAR_FAULTED(Method, offset=0x0084):
  HANDLE: int = bits(0, 30, 0, default=0)
  TYPE: int = bits(0, 31, 31, default=0, enum=CLEAR_FAULTED_TYPE)


METHODS: tuple[type[Method], ...] = (
  SET_OBJECT, ILLEGAL, NOP, SEMAPHOREA, SEMAPHOREB, SEMAPHOREC, SEMAPHORED, NON_STALL_INTERRUPT, FB_FLUSH,
  MEM_OP_A, MEM_OP_B, MEM_OP_C, MEM_OP_D, SET_REFERENCE, SEM_ADDR_LO, SEM_ADDR_HI, SEM_PAYLOAD_LO,
  SEM_PAYLOAD_HI, SEM_EXECUTE, WFI, YIELD, CLEAR_FAULTED,
)
