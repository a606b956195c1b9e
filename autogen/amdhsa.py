"""The AMDGPU kernel descriptor (amdhsa ABI): struct, code properties and program resource registers.

Generated; do not edit. Source:
  LLVM (Debian llvm-19-dev) 1:19.1.7-3~deb12u1, licence Apache-2.0 WITH LLVM-exception
    llvm/Support/AMDHSAKernelDescriptor.h sha256 f5aa03627f1baa20b4f5535275447513902926a467f65de886d15c53214609d3
Generator: tinyhw gen amdhsa

A class of a register has the fields that its generation has; reserved bits are not declared.
"""
from __future__ import annotations

import ctypes

from tinyhw.core.layout import Register, Struct, bits


FLOAT_ROUND_MODE_NEAR_EVEN = 0
FLOAT_ROUND_MODE_PLUS_INFINITY = 1
FLOAT_ROUND_MODE_MINUS_INFINITY = 2
FLOAT_ROUND_MODE_ZERO = 3
FLOAT_DENORM_MODE_FLUSH_SRC_DST = 0
FLOAT_DENORM_MODE_FLUSH_DST = 1
FLOAT_DENORM_MODE_FLUSH_SRC = 2
FLOAT_DENORM_MODE_FLUSH_NONE = 3
SYSTEM_VGPR_WORKITEM_ID_X = 0
SYSTEM_VGPR_WORKITEM_ID_X_Y = 1
SYSTEM_VGPR_WORKITEM_ID_X_Y_Z = 2
SYSTEM_VGPR_WORKITEM_ID_UNDEFINED = 3
GROUP_SEGMENT_FIXED_SIZE_OFFSET = 0
PRIVATE_SEGMENT_FIXED_SIZE_OFFSET = 4
KERNARG_SIZE_OFFSET = 8
RESERVED0_OFFSET = 12
KERNEL_CODE_ENTRY_BYTE_OFFSET_OFFSET = 16
RESERVED1_OFFSET = 24
COMPUTE_PGM_RSRC3_OFFSET = 44
COMPUTE_PGM_RSRC1_OFFSET = 48
COMPUTE_PGM_RSRC2_OFFSET = 52
KERNEL_CODE_PROPERTIES_OFFSET = 56
KERNARG_PRELOAD_OFFSET = 58
RESERVED3_OFFSET = 60

# Masks of KERNEL_CODE_PROPERTY bits.
KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER = 0x1
KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR = 0x2
KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR = 0x4
KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR = 0x8
KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_ID = 0x10
KERNEL_CODE_PROPERTY_ENABLE_SGPR_FLAT_SCRATCH_INIT = 0x20
KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_SIZE = 0x40
KERNEL_CODE_PROPERTY_RESERVED0 = 0x380
KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32 = 0x400
KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK = 0x800
KERNEL_CODE_PROPERTY_RESERVED1 = 0xf000
KERNEL_CODE_PROPERTY_RESERVED0_SHIFT = 7
KERNEL_CODE_PROPERTY_RESERVED1_SHIFT = 12

# Masks of KERNARG_PRELOAD_SPEC bits.
KERNARG_PRELOAD_SPEC_LENGTH = 0x7f
KERNARG_PRELOAD_SPEC_OFFSET = 0xff80
KERNARG_PRELOAD_SPEC_LENGTH_SHIFT = 0
KERNARG_PRELOAD_SPEC_OFFSET_SHIFT = 7

class COMPUTE_PGM_RSRC1_GFX11(Register, offset=-1):
  GRANULATED_WORKITEM_VGPR_COUNT: int = bits(0, 5, 0, default=0)
  GRANULATED_WAVEFRONT_SGPR_COUNT: int = bits(0, 9, 6, default=0)
  PRIORITY: int = bits(0, 11, 10, default=0)
  FLOAT_ROUND_MODE_32: int = bits(0, 13, 12, default=0)
  FLOAT_ROUND_MODE_16_64: int = bits(0, 15, 14, default=0)
  FLOAT_DENORM_MODE_32: int = bits(0, 17, 16, default=0)
  FLOAT_DENORM_MODE_16_64: int = bits(0, 19, 18, default=0)
  PRIV: int = bits(0, 20, 20, default=0)
  ENABLE_DX10_CLAMP: int = bits(0, 21, 21, default=0)
  DEBUG_MODE: int = bits(0, 22, 22, default=0)
  ENABLE_IEEE_MODE: int = bits(0, 23, 23, default=0)
  BULKY: int = bits(0, 24, 24, default=0)
  CDBG_USER: int = bits(0, 25, 25, default=0)
  FP16_OVFL: int = bits(0, 26, 26, default=0)
  WGP_MODE: int = bits(0, 29, 29, default=0)
  MEM_ORDERED: int = bits(0, 30, 30, default=0)
  FWD_PROGRESS: int = bits(0, 31, 31, default=0)


class COMPUTE_PGM_RSRC2_GFX11(Register, offset=-1):
  ENABLE_PRIVATE_SEGMENT: int = bits(0, 0, 0, default=0)
  USER_SGPR_COUNT: int = bits(0, 5, 1, default=0)
  ENABLE_TRAP_HANDLER: int = bits(0, 6, 6, default=0)
  ENABLE_SGPR_WORKGROUP_ID_X: int = bits(0, 7, 7, default=0)
  ENABLE_SGPR_WORKGROUP_ID_Y: int = bits(0, 8, 8, default=0)
  ENABLE_SGPR_WORKGROUP_ID_Z: int = bits(0, 9, 9, default=0)
  ENABLE_SGPR_WORKGROUP_INFO: int = bits(0, 10, 10, default=0)
  ENABLE_VGPR_WORKITEM_ID: int = bits(0, 12, 11, default=0)
  ENABLE_EXCEPTION_ADDRESS_WATCH: int = bits(0, 13, 13, default=0)
  ENABLE_EXCEPTION_MEMORY: int = bits(0, 14, 14, default=0)
  GRANULATED_LDS_SIZE: int = bits(0, 23, 15, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_INVALID_OPERATION: int = bits(0, 24, 24, default=0)
  ENABLE_EXCEPTION_FP_DENORMAL_SOURCE: int = bits(0, 25, 25, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_DIVISION_BY_ZERO: int = bits(0, 26, 26, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_OVERFLOW: int = bits(0, 27, 27, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_UNDERFLOW: int = bits(0, 28, 28, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_INEXACT: int = bits(0, 29, 29, default=0)
  ENABLE_EXCEPTION_INT_DIVIDE_BY_ZERO: int = bits(0, 30, 30, default=0)


class COMPUTE_PGM_RSRC3_GFX11(Register, offset=-1):
  SHARED_VGPR_COUNT: int = bits(0, 3, 0, default=0)
  INST_PREF_SIZE: int = bits(0, 9, 4, default=0)
  TRAP_ON_START: int = bits(0, 10, 10, default=0)
  TRAP_ON_END: int = bits(0, 11, 11, default=0)
  IMAGE_OP: int = bits(0, 31, 31, default=0)


class COMPUTE_PGM_RSRC1_GFX12(Register, offset=-1):
  GRANULATED_WORKITEM_VGPR_COUNT: int = bits(0, 5, 0, default=0)
  GRANULATED_WAVEFRONT_SGPR_COUNT: int = bits(0, 9, 6, default=0)
  PRIORITY: int = bits(0, 11, 10, default=0)
  FLOAT_ROUND_MODE_32: int = bits(0, 13, 12, default=0)
  FLOAT_ROUND_MODE_16_64: int = bits(0, 15, 14, default=0)
  FLOAT_DENORM_MODE_32: int = bits(0, 17, 16, default=0)
  FLOAT_DENORM_MODE_16_64: int = bits(0, 19, 18, default=0)
  PRIV: int = bits(0, 20, 20, default=0)
  ENABLE_WG_RR_EN: int = bits(0, 21, 21, default=0)
  DEBUG_MODE: int = bits(0, 22, 22, default=0)
  DISABLE_PERF: int = bits(0, 23, 23, default=0)
  BULKY: int = bits(0, 24, 24, default=0)
  CDBG_USER: int = bits(0, 25, 25, default=0)
  FP16_OVFL: int = bits(0, 26, 26, default=0)
  WGP_MODE: int = bits(0, 29, 29, default=0)
  MEM_ORDERED: int = bits(0, 30, 30, default=0)
  FWD_PROGRESS: int = bits(0, 31, 31, default=0)


class COMPUTE_PGM_RSRC2_GFX12(Register, offset=-1):
  ENABLE_PRIVATE_SEGMENT: int = bits(0, 0, 0, default=0)
  USER_SGPR_COUNT: int = bits(0, 5, 1, default=0)
  ENABLE_SGPR_WORKGROUP_ID_X: int = bits(0, 7, 7, default=0)
  ENABLE_SGPR_WORKGROUP_ID_Y: int = bits(0, 8, 8, default=0)
  ENABLE_SGPR_WORKGROUP_ID_Z: int = bits(0, 9, 9, default=0)
  ENABLE_SGPR_WORKGROUP_INFO: int = bits(0, 10, 10, default=0)
  ENABLE_VGPR_WORKITEM_ID: int = bits(0, 12, 11, default=0)
  ENABLE_EXCEPTION_ADDRESS_WATCH: int = bits(0, 13, 13, default=0)
  ENABLE_EXCEPTION_MEMORY: int = bits(0, 14, 14, default=0)
  GRANULATED_LDS_SIZE: int = bits(0, 23, 15, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_INVALID_OPERATION: int = bits(0, 24, 24, default=0)
  ENABLE_EXCEPTION_FP_DENORMAL_SOURCE: int = bits(0, 25, 25, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_DIVISION_BY_ZERO: int = bits(0, 26, 26, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_OVERFLOW: int = bits(0, 27, 27, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_UNDERFLOW: int = bits(0, 28, 28, default=0)
  ENABLE_EXCEPTION_IEEE_754_FP_INEXACT: int = bits(0, 29, 29, default=0)
  ENABLE_EXCEPTION_INT_DIVIDE_BY_ZERO: int = bits(0, 30, 30, default=0)


class COMPUTE_PGM_RSRC3_GFX12(Register, offset=-1):
  INST_PREF_SIZE: int = bits(0, 11, 4, default=0)
  GLG_EN: int = bits(0, 13, 13, default=0)
  IMAGE_OP: int = bits(0, 31, 31, default=0)


class kernel_descriptor_t(Struct):
  """64 bytes; its symbol is the kernel's name with `.kd`."""
  group_segment_fixed_size: int
  private_segment_fixed_size: int
  kernarg_size: int
  reserved0: ctypes.Array[ctypes.c_uint8]
  kernel_code_entry_byte_offset: int
  reserved1: ctypes.Array[ctypes.c_uint8]
  compute_pgm_rsrc3: int
  compute_pgm_rsrc1: int
  compute_pgm_rsrc2: int
  kernel_code_properties: int
  kernarg_preload: int
  reserved3: ctypes.Array[ctypes.c_uint8]
  _fields_ = [
    ("group_segment_fixed_size", ctypes.c_uint32),
    ("private_segment_fixed_size", ctypes.c_uint32),
    ("kernarg_size", ctypes.c_uint32),
    ("reserved0", ctypes.c_uint8 * 4),
    ("kernel_code_entry_byte_offset", ctypes.c_int64),
    ("reserved1", ctypes.c_uint8 * 20),
    ("compute_pgm_rsrc3", ctypes.c_uint32),
    ("compute_pgm_rsrc1", ctypes.c_uint32),
    ("compute_pgm_rsrc2", ctypes.c_uint32),
    ("kernel_code_properties", ctypes.c_uint16),
    ("kernarg_preload", ctypes.c_uint16),
    ("reserved3", ctypes.c_uint8 * 4),
  ]
