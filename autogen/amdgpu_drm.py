"""The ioctls of amdgpu's DRM nodes and their structs.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    include/uapi/drm/drm.h sha256 3ab6ac01bf91067aed96b70d7fa7847a86e7f726d74278151f085143688659cc
    include/uapi/drm/drm_mode.h sha256 3a5bad960e64a6374e046450dcb637145f4127950659a6429561d9d8faf4d14b
    include/uapi/drm/amdgpu_drm.h sha256 429ff99e3c3c0e728181e02a3c9e6de2a92ffa573ea5b9a1a450d6f486a460bd
Generator: tinyhw gen amdgpu_drm
"""
from __future__ import annotations

import ctypes

from tinyhw.core.ioctl import Ioctl
from tinyhw.core.layout import Struct, Union

DRM_AMDGPU_GEM_CREATE = 0
DRM_AMDGPU_GEM_MMAP = 1
DRM_AMDGPU_CTX = 2
DRM_AMDGPU_BO_LIST = 3
DRM_AMDGPU_CS = 4
DRM_AMDGPU_INFO = 5
DRM_AMDGPU_GEM_METADATA = 6
DRM_AMDGPU_GEM_WAIT_IDLE = 7
DRM_AMDGPU_GEM_VA = 8
DRM_AMDGPU_WAIT_CS = 9
DRM_AMDGPU_GEM_OP = 0x10
DRM_AMDGPU_GEM_USERPTR = 0x11
DRM_AMDGPU_WAIT_FENCES = 0x12
DRM_AMDGPU_VM = 0x13
DRM_AMDGPU_FENCE_TO_HANDLE = 0x14
DRM_AMDGPU_SCHED = 0x15
DRM_IOCTL_AMDGPU_GEM_CREATE = 0xc0206440
DRM_IOCTL_AMDGPU_GEM_MMAP = 0xc0086441
DRM_IOCTL_AMDGPU_CTX = 0xc0106442
DRM_IOCTL_AMDGPU_BO_LIST = 0xc0186443
DRM_IOCTL_AMDGPU_CS = 0xc0186444
DRM_IOCTL_AMDGPU_INFO = 0x40206445
DRM_IOCTL_AMDGPU_GEM_METADATA = 0xc1206446
DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE = 0xc0106447
DRM_IOCTL_AMDGPU_GEM_VA = 0x40286448
DRM_IOCTL_AMDGPU_WAIT_CS = 0xc0206449
DRM_IOCTL_AMDGPU_GEM_OP = 0xc0106450
DRM_IOCTL_AMDGPU_GEM_USERPTR = 0xc0186451
DRM_IOCTL_AMDGPU_WAIT_FENCES = 0xc0186452
DRM_IOCTL_AMDGPU_VM = 0xc0086453
DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE = 0xc0206454
DRM_IOCTL_AMDGPU_SCHED = 0x40106455
AMDGPU_GEM_DOMAIN_CPU = 1
AMDGPU_GEM_DOMAIN_GTT = 2
AMDGPU_GEM_DOMAIN_VRAM = 4
AMDGPU_GEM_DOMAIN_GDS = 8
AMDGPU_GEM_DOMAIN_GWS = 0x10
AMDGPU_GEM_DOMAIN_OA = 0x20
AMDGPU_GEM_DOMAIN_DOORBELL = 0x40
AMDGPU_GEM_DOMAIN_MASK = 0x7f
AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED = 1
AMDGPU_GEM_CREATE_NO_CPU_ACCESS = 2
AMDGPU_GEM_CREATE_CPU_GTT_USWC = 4
AMDGPU_GEM_CREATE_VRAM_CLEARED = 8
AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS = 0x20
AMDGPU_GEM_CREATE_VM_ALWAYS_VALID = 0x40
AMDGPU_GEM_CREATE_EXPLICIT_SYNC = 0x80
AMDGPU_GEM_CREATE_CP_MQD_GFX9 = 0x100
AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE = 0x200
AMDGPU_GEM_CREATE_ENCRYPTED = 0x400
AMDGPU_GEM_CREATE_PREEMPTIBLE = 0x800
AMDGPU_GEM_CREATE_DISCARDABLE = 0x1000
AMDGPU_GEM_CREATE_COHERENT = 0x2000
AMDGPU_GEM_CREATE_UNCACHED = 0x4000
AMDGPU_GEM_CREATE_EXT_COHERENT = 0x8000
AMDGPU_GEM_CREATE_GFX12_DCC = 0x10000
AMDGPU_BO_LIST_OP_CREATE = 0
AMDGPU_BO_LIST_OP_DESTROY = 1
AMDGPU_BO_LIST_OP_UPDATE = 2
AMDGPU_CTX_OP_ALLOC_CTX = 1
AMDGPU_CTX_OP_FREE_CTX = 2
AMDGPU_CTX_OP_QUERY_STATE = 3
AMDGPU_CTX_OP_QUERY_STATE2 = 4
AMDGPU_CTX_OP_GET_STABLE_PSTATE = 5
AMDGPU_CTX_OP_SET_STABLE_PSTATE = 6
AMDGPU_CTX_NO_RESET = 0
AMDGPU_CTX_GUILTY_RESET = 1
AMDGPU_CTX_INNOCENT_RESET = 2
AMDGPU_CTX_UNKNOWN_RESET = 3
AMDGPU_CTX_QUERY2_FLAGS_RESET = 1
AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST = 2
AMDGPU_CTX_QUERY2_FLAGS_GUILTY = 4
AMDGPU_CTX_QUERY2_FLAGS_RAS_CE = 8
AMDGPU_CTX_QUERY2_FLAGS_RAS_UE = 0x10
AMDGPU_CTX_QUERY2_FLAGS_RESET_IN_PROGRESS = 0x20
AMDGPU_CTX_PRIORITY_UNSET = -0x800
AMDGPU_CTX_PRIORITY_VERY_LOW = -0x3ff
AMDGPU_CTX_PRIORITY_LOW = -0x200
AMDGPU_CTX_PRIORITY_NORMAL = 0
AMDGPU_CTX_PRIORITY_HIGH = 0x200
AMDGPU_CTX_PRIORITY_VERY_HIGH = 0x3ff
AMDGPU_CTX_STABLE_PSTATE_FLAGS_MASK = 0xf
AMDGPU_CTX_STABLE_PSTATE_NONE = 0
AMDGPU_CTX_STABLE_PSTATE_STANDARD = 1
AMDGPU_CTX_STABLE_PSTATE_MIN_SCLK = 2
AMDGPU_CTX_STABLE_PSTATE_MIN_MCLK = 3
AMDGPU_CTX_STABLE_PSTATE_PEAK = 4
AMDGPU_VM_OP_RESERVE_VMID = 1
AMDGPU_VM_OP_UNRESERVE_VMID = 2
AMDGPU_SCHED_OP_PROCESS_PRIORITY_OVERRIDE = 1
AMDGPU_SCHED_OP_CONTEXT_PRIORITY_OVERRIDE = 2
AMDGPU_GEM_USERPTR_READONLY = 1
AMDGPU_GEM_USERPTR_ANONONLY = 2
AMDGPU_GEM_USERPTR_VALIDATE = 4
AMDGPU_GEM_USERPTR_REGISTER = 8
AMDGPU_TILING_ARRAY_MODE_SHIFT = 0
AMDGPU_TILING_ARRAY_MODE_MASK = 0xf
AMDGPU_TILING_PIPE_CONFIG_SHIFT = 4
AMDGPU_TILING_PIPE_CONFIG_MASK = 0x1f
AMDGPU_TILING_TILE_SPLIT_SHIFT = 9
AMDGPU_TILING_TILE_SPLIT_MASK = 7
AMDGPU_TILING_MICRO_TILE_MODE_SHIFT = 0xc
AMDGPU_TILING_MICRO_TILE_MODE_MASK = 7
AMDGPU_TILING_BANK_WIDTH_SHIFT = 0xf
AMDGPU_TILING_BANK_WIDTH_MASK = 3
AMDGPU_TILING_BANK_HEIGHT_SHIFT = 0x11
AMDGPU_TILING_BANK_HEIGHT_MASK = 3
AMDGPU_TILING_MACRO_TILE_ASPECT_SHIFT = 0x13
AMDGPU_TILING_MACRO_TILE_ASPECT_MASK = 3
AMDGPU_TILING_NUM_BANKS_SHIFT = 0x15
AMDGPU_TILING_NUM_BANKS_MASK = 3
AMDGPU_TILING_SWIZZLE_MODE_SHIFT = 0
AMDGPU_TILING_SWIZZLE_MODE_MASK = 0x1f
AMDGPU_TILING_DCC_OFFSET_256B_SHIFT = 5
AMDGPU_TILING_DCC_OFFSET_256B_MASK = 0xffffff
AMDGPU_TILING_DCC_PITCH_MAX_SHIFT = 0x1d
AMDGPU_TILING_DCC_PITCH_MAX_MASK = 0x3fff
AMDGPU_TILING_DCC_INDEPENDENT_64B_SHIFT = 0x2b
AMDGPU_TILING_DCC_INDEPENDENT_64B_MASK = 1
AMDGPU_TILING_DCC_INDEPENDENT_128B_SHIFT = 0x2c
AMDGPU_TILING_DCC_INDEPENDENT_128B_MASK = 1
AMDGPU_TILING_SCANOUT_SHIFT = 0x3f
AMDGPU_TILING_SCANOUT_MASK = 1
AMDGPU_TILING_GFX12_SWIZZLE_MODE_SHIFT = 0
AMDGPU_TILING_GFX12_SWIZZLE_MODE_MASK = 7
AMDGPU_TILING_GFX12_DCC_MAX_COMPRESSED_BLOCK_SHIFT = 3
AMDGPU_TILING_GFX12_DCC_MAX_COMPRESSED_BLOCK_MASK = 3
AMDGPU_TILING_GFX12_DCC_NUMBER_TYPE_SHIFT = 5
AMDGPU_TILING_GFX12_DCC_NUMBER_TYPE_MASK = 7
AMDGPU_TILING_GFX12_DCC_DATA_FORMAT_SHIFT = 8
AMDGPU_TILING_GFX12_DCC_DATA_FORMAT_MASK = 0x3f
AMDGPU_TILING_GFX12_DCC_WRITE_COMPRESS_DISABLE_SHIFT = 0xe
AMDGPU_TILING_GFX12_DCC_WRITE_COMPRESS_DISABLE_MASK = 1
AMDGPU_TILING_GFX12_SCANOUT_SHIFT = 0x3f
AMDGPU_TILING_GFX12_SCANOUT_MASK = 1
AMDGPU_GEM_METADATA_OP_SET_METADATA = 1
AMDGPU_GEM_METADATA_OP_GET_METADATA = 2
AMDGPU_GEM_OP_GET_GEM_CREATE_INFO = 0
AMDGPU_GEM_OP_SET_PLACEMENT = 1
AMDGPU_VA_OP_MAP = 1
AMDGPU_VA_OP_UNMAP = 2
AMDGPU_VA_OP_CLEAR = 3
AMDGPU_VA_OP_REPLACE = 4
AMDGPU_VM_DELAY_UPDATE = 1
AMDGPU_VM_PAGE_READABLE = 2
AMDGPU_VM_PAGE_WRITEABLE = 4
AMDGPU_VM_PAGE_EXECUTABLE = 8
AMDGPU_VM_PAGE_PRT = 0x10
AMDGPU_VM_MTYPE_MASK = 0x1e0
AMDGPU_VM_MTYPE_DEFAULT = 0
AMDGPU_VM_MTYPE_NC = 0x20
AMDGPU_VM_MTYPE_WC = 0x40
AMDGPU_VM_MTYPE_CC = 0x60
AMDGPU_VM_MTYPE_UC = 0x80
AMDGPU_VM_MTYPE_RW = 0xa0
AMDGPU_VM_PAGE_NOALLOC = 0x200
AMDGPU_HW_IP_GFX = 0
AMDGPU_HW_IP_COMPUTE = 1
AMDGPU_HW_IP_DMA = 2
AMDGPU_HW_IP_UVD = 3
AMDGPU_HW_IP_VCE = 4
AMDGPU_HW_IP_UVD_ENC = 5
AMDGPU_HW_IP_VCN_DEC = 6
AMDGPU_HW_IP_VCN_ENC = 7
AMDGPU_HW_IP_VCN_JPEG = 8
AMDGPU_HW_IP_VPE = 9
AMDGPU_HW_IP_NUM = 0xa
AMDGPU_HW_IP_INSTANCE_MAX_COUNT = 1
AMDGPU_CHUNK_ID_IB = 1
AMDGPU_CHUNK_ID_FENCE = 2
AMDGPU_CHUNK_ID_DEPENDENCIES = 3
AMDGPU_CHUNK_ID_SYNCOBJ_IN = 4
AMDGPU_CHUNK_ID_SYNCOBJ_OUT = 5
AMDGPU_CHUNK_ID_BO_HANDLES = 6
AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES = 7
AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT = 8
AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL = 9
AMDGPU_CHUNK_ID_CP_GFX_SHADOW = 0xa
AMDGPU_IB_FLAG_CE = 1
AMDGPU_IB_FLAG_PREAMBLE = 2
AMDGPU_IB_FLAG_PREEMPT = 4
AMDGPU_IB_FLAG_TC_WB_NOT_INVALIDATE = 8
AMDGPU_IB_FLAG_RESET_GDS_MAX_WAVE_ID = 0x10
AMDGPU_IB_FLAGS_SECURE = 0x20
AMDGPU_IB_FLAG_EMIT_MEM_SYNC = 0x40
AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ = 0
AMDGPU_FENCE_TO_HANDLE_GET_SYNCOBJ_FD = 1
AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD = 2
AMDGPU_CS_CHUNK_CP_GFX_SHADOW_FLAGS_INIT_SHADOW = 1
AMDGPU_IDS_FLAGS_FUSION = 1
AMDGPU_IDS_FLAGS_PREEMPTION = 2
AMDGPU_IDS_FLAGS_TMZ = 4
AMDGPU_IDS_FLAGS_CONFORMANT_TRUNC_COORD = 8
AMDGPU_INFO_ACCEL_WORKING = 0
AMDGPU_INFO_CRTC_FROM_ID = 1
AMDGPU_INFO_HW_IP_INFO = 2
AMDGPU_INFO_HW_IP_COUNT = 3
AMDGPU_INFO_TIMESTAMP = 5
AMDGPU_INFO_FW_VERSION = 0xe
AMDGPU_INFO_FW_VCE = 1
AMDGPU_INFO_FW_UVD = 2
AMDGPU_INFO_FW_GMC = 3
AMDGPU_INFO_FW_GFX_ME = 4
AMDGPU_INFO_FW_GFX_PFP = 5
AMDGPU_INFO_FW_GFX_CE = 6
AMDGPU_INFO_FW_GFX_RLC = 7
AMDGPU_INFO_FW_GFX_MEC = 8
AMDGPU_INFO_FW_SMC = 0xa
AMDGPU_INFO_FW_SDMA = 0xb
AMDGPU_INFO_FW_SOS = 0xc
AMDGPU_INFO_FW_ASD = 0xd
AMDGPU_INFO_FW_VCN = 0xe
AMDGPU_INFO_FW_GFX_RLC_RESTORE_LIST_CNTL = 0xf
AMDGPU_INFO_FW_GFX_RLC_RESTORE_LIST_GPM_MEM = 0x10
AMDGPU_INFO_FW_GFX_RLC_RESTORE_LIST_SRM_MEM = 0x11
AMDGPU_INFO_FW_DMCU = 0x12
AMDGPU_INFO_FW_TA = 0x13
AMDGPU_INFO_FW_DMCUB = 0x14
AMDGPU_INFO_FW_TOC = 0x15
AMDGPU_INFO_FW_CAP = 0x16
AMDGPU_INFO_FW_GFX_RLCP = 0x17
AMDGPU_INFO_FW_GFX_RLCV = 0x18
AMDGPU_INFO_FW_MES_KIQ = 0x19
AMDGPU_INFO_FW_MES = 0x1a
AMDGPU_INFO_FW_IMU = 0x1b
AMDGPU_INFO_FW_VPE = 0x1c
AMDGPU_INFO_NUM_BYTES_MOVED = 0xf
AMDGPU_INFO_VRAM_USAGE = 0x10
AMDGPU_INFO_GTT_USAGE = 0x11
AMDGPU_INFO_GDS_CONFIG = 0x13
AMDGPU_INFO_VRAM_GTT = 0x14
AMDGPU_INFO_READ_MMR_REG = 0x15
AMDGPU_INFO_DEV_INFO = 0x16
AMDGPU_INFO_VIS_VRAM_USAGE = 0x17
AMDGPU_INFO_NUM_EVICTIONS = 0x18
AMDGPU_INFO_MEMORY = 0x19
AMDGPU_INFO_VCE_CLOCK_TABLE = 0x1a
AMDGPU_INFO_VBIOS = 0x1b
AMDGPU_INFO_VBIOS_SIZE = 1
AMDGPU_INFO_VBIOS_IMAGE = 2
AMDGPU_INFO_VBIOS_INFO = 3
AMDGPU_INFO_NUM_HANDLES = 0x1c
AMDGPU_INFO_SENSOR = 0x1d
AMDGPU_INFO_SENSOR_GFX_SCLK = 1
AMDGPU_INFO_SENSOR_GFX_MCLK = 2
AMDGPU_INFO_SENSOR_GPU_TEMP = 3
AMDGPU_INFO_SENSOR_GPU_LOAD = 4
AMDGPU_INFO_SENSOR_GPU_AVG_POWER = 5
AMDGPU_INFO_SENSOR_VDDNB = 6
AMDGPU_INFO_SENSOR_VDDGFX = 7
AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_SCLK = 8
AMDGPU_INFO_SENSOR_STABLE_PSTATE_GFX_MCLK = 9
AMDGPU_INFO_SENSOR_PEAK_PSTATE_GFX_SCLK = 0xa
AMDGPU_INFO_SENSOR_PEAK_PSTATE_GFX_MCLK = 0xb
AMDGPU_INFO_SENSOR_GPU_INPUT_POWER = 0xc
AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS = 0x1e
AMDGPU_INFO_VRAM_LOST_COUNTER = 0x1f
AMDGPU_INFO_RAS_ENABLED_FEATURES = 0x20
AMDGPU_INFO_RAS_ENABLED_UMC = 1
AMDGPU_INFO_RAS_ENABLED_SDMA = 2
AMDGPU_INFO_RAS_ENABLED_GFX = 4
AMDGPU_INFO_RAS_ENABLED_MMHUB = 8
AMDGPU_INFO_RAS_ENABLED_ATHUB = 0x10
AMDGPU_INFO_RAS_ENABLED_PCIE = 0x20
AMDGPU_INFO_RAS_ENABLED_HDP = 0x40
AMDGPU_INFO_RAS_ENABLED_XGMI = 0x80
AMDGPU_INFO_RAS_ENABLED_DF = 0x100
AMDGPU_INFO_RAS_ENABLED_SMN = 0x200
AMDGPU_INFO_RAS_ENABLED_SEM = 0x400
AMDGPU_INFO_RAS_ENABLED_MP0 = 0x800
AMDGPU_INFO_RAS_ENABLED_MP1 = 0x1000
AMDGPU_INFO_RAS_ENABLED_FUSE = 0x2000
AMDGPU_INFO_VIDEO_CAPS = 0x21
AMDGPU_INFO_VIDEO_CAPS_DECODE = 0
AMDGPU_INFO_VIDEO_CAPS_ENCODE = 1
AMDGPU_INFO_MAX_IBS = 0x22
AMDGPU_INFO_GPUVM_FAULT = 0x23
AMDGPU_INFO_MMR_SE_INDEX_SHIFT = 0
AMDGPU_INFO_MMR_SE_INDEX_MASK = 0xff
AMDGPU_INFO_MMR_SH_INDEX_SHIFT = 8
AMDGPU_INFO_MMR_SH_INDEX_MASK = 0xff
AMDGPU_VRAM_TYPE_UNKNOWN = 0
AMDGPU_VRAM_TYPE_GDDR1 = 1
AMDGPU_VRAM_TYPE_DDR2 = 2
AMDGPU_VRAM_TYPE_GDDR3 = 3
AMDGPU_VRAM_TYPE_GDDR4 = 4
AMDGPU_VRAM_TYPE_GDDR5 = 5
AMDGPU_VRAM_TYPE_HBM = 6
AMDGPU_VRAM_TYPE_DDR3 = 7
AMDGPU_VRAM_TYPE_DDR4 = 8
AMDGPU_VRAM_TYPE_GDDR6 = 9
AMDGPU_VRAM_TYPE_DDR5 = 0xa
AMDGPU_VRAM_TYPE_LPDDR4 = 0xb
AMDGPU_VRAM_TYPE_LPDDR5 = 0xc
AMDGPU_VCE_CLOCK_TABLE_ENTRIES = 6
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_MPEG2 = 0
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_MPEG4 = 1
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_VC1 = 2
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_MPEG4_AVC = 3
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_HEVC = 4
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_JPEG = 5
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_VP9 = 6
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_AV1 = 7
AMDGPU_INFO_VIDEO_CAPS_CODEC_IDX_COUNT = 8
AMDGPU_VMHUB_TYPE_MASK = 0xff
AMDGPU_VMHUB_TYPE_SHIFT = 0
AMDGPU_VMHUB_TYPE_GFX = 0
AMDGPU_VMHUB_TYPE_MM0 = 1
AMDGPU_VMHUB_TYPE_MM1 = 2
AMDGPU_VMHUB_IDX_MASK = 0xff00
AMDGPU_VMHUB_IDX_SHIFT = 8
AMDGPU_FAMILY_UNKNOWN = 0
AMDGPU_FAMILY_SI = 0x6e
AMDGPU_FAMILY_CI = 0x78
AMDGPU_FAMILY_KV = 0x7d
AMDGPU_FAMILY_VI = 0x82
AMDGPU_FAMILY_CZ = 0x87
AMDGPU_FAMILY_AI = 0x8d
AMDGPU_FAMILY_RV = 0x8e
AMDGPU_FAMILY_NV = 0x8f
AMDGPU_FAMILY_VGH = 0x90
AMDGPU_FAMILY_GC_11_0_0 = 0x91
AMDGPU_FAMILY_YC = 0x92
AMDGPU_FAMILY_GC_11_0_1 = 0x94
AMDGPU_FAMILY_GC_10_3_6 = 0x95
AMDGPU_FAMILY_GC_10_3_7 = 0x97
AMDGPU_FAMILY_GC_11_5_0 = 0x96
AMDGPU_FAMILY_GC_12_0_0 = 0x98

ENUMS: dict[str, dict[str, int]] = {  # enum -> member -> value
}


class drm_amdgpu_gem_create_in(Struct):
  """32 bytes."""
  bo_size: int
  alignment: int
  domains: int
  domain_flags: int
  _fields_ = [
    ("bo_size", ctypes.c_uint64),
    ("alignment", ctypes.c_uint64),
    ("domains", ctypes.c_uint64),
    ("domain_flags", ctypes.c_uint64),
  ]


class drm_amdgpu_gem_create_out(Struct):
  """8 bytes."""
  handle: int
  _pad: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_gem_create(Union):
  """32 bytes."""
  in_: drm_amdgpu_gem_create_in
  out: drm_amdgpu_gem_create_out
  _fields_ = [
    ("in_", drm_amdgpu_gem_create_in),
    ("out", drm_amdgpu_gem_create_out),
  ]


class drm_amdgpu_bo_list_in(Struct):
  """24 bytes."""
  operation: int
  list_handle: int
  bo_number: int
  bo_info_size: int
  bo_info_ptr: int
  _fields_ = [
    ("operation", ctypes.c_uint32),
    ("list_handle", ctypes.c_uint32),
    ("bo_number", ctypes.c_uint32),
    ("bo_info_size", ctypes.c_uint32),
    ("bo_info_ptr", ctypes.c_uint64),
  ]


class drm_amdgpu_bo_list_entry(Struct):
  """8 bytes."""
  bo_handle: int
  bo_priority: int
  _fields_ = [
    ("bo_handle", ctypes.c_uint32),
    ("bo_priority", ctypes.c_uint32),
  ]


class drm_amdgpu_bo_list_out(Struct):
  """8 bytes."""
  list_handle: int
  _pad: int
  _fields_ = [
    ("list_handle", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_bo_list(Union):
  """24 bytes."""
  in_: drm_amdgpu_bo_list_in
  out: drm_amdgpu_bo_list_out
  _fields_ = [
    ("in_", drm_amdgpu_bo_list_in),
    ("out", drm_amdgpu_bo_list_out),
  ]


class drm_amdgpu_ctx_in(Struct):
  """16 bytes."""
  op: int
  flags: int
  ctx_id: int
  priority: int
  _fields_ = [
    ("op", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("ctx_id", ctypes.c_uint32),
    ("priority", ctypes.c_int32),
  ]


class drm_amdgpu_ctx_out_alloc(Struct):
  """8 bytes."""
  ctx_id: int
  _pad: int
  _fields_ = [
    ("ctx_id", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_ctx_out_state(Struct):
  """16 bytes."""
  flags: int
  hangs: int
  reset_status: int
  _fields_ = [
    ("flags", ctypes.c_uint64),
    ("hangs", ctypes.c_uint32),
    ("reset_status", ctypes.c_uint32),
  ]


class drm_amdgpu_ctx_out_pstate(Struct):
  """8 bytes."""
  flags: int
  _pad: int
  _fields_ = [
    ("flags", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_ctx_out(Union):
  """16 bytes."""
  alloc: drm_amdgpu_ctx_out_alloc
  state: drm_amdgpu_ctx_out_state
  pstate: drm_amdgpu_ctx_out_pstate
  _fields_ = [
    ("alloc", drm_amdgpu_ctx_out_alloc),
    ("state", drm_amdgpu_ctx_out_state),
    ("pstate", drm_amdgpu_ctx_out_pstate),
  ]


class drm_amdgpu_ctx(Union):
  """16 bytes."""
  in_: drm_amdgpu_ctx_in
  out: drm_amdgpu_ctx_out
  _fields_ = [
    ("in_", drm_amdgpu_ctx_in),
    ("out", drm_amdgpu_ctx_out),
  ]


class drm_amdgpu_vm_in(Struct):
  """8 bytes."""
  op: int
  flags: int
  _fields_ = [
    ("op", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class drm_amdgpu_vm_out(Struct):
  """8 bytes."""
  flags: int
  _fields_ = [
    ("flags", ctypes.c_uint64),
  ]


class drm_amdgpu_vm(Union):
  """8 bytes."""
  in_: drm_amdgpu_vm_in
  out: drm_amdgpu_vm_out
  _fields_ = [
    ("in_", drm_amdgpu_vm_in),
    ("out", drm_amdgpu_vm_out),
  ]


class drm_amdgpu_sched_in(Struct):
  """16 bytes."""
  op: int
  fd: int
  priority: int
  ctx_id: int
  _fields_ = [
    ("op", ctypes.c_uint32),
    ("fd", ctypes.c_uint32),
    ("priority", ctypes.c_int32),
    ("ctx_id", ctypes.c_uint32),
  ]


class drm_amdgpu_sched(Union):
  """16 bytes."""
  in_: drm_amdgpu_sched_in
  _fields_ = [
    ("in_", drm_amdgpu_sched_in),
  ]


class drm_amdgpu_gem_userptr(Struct):
  """24 bytes."""
  addr: int
  size: int
  flags: int
  handle: int
  _fields_ = [
    ("addr", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("flags", ctypes.c_uint32),
    ("handle", ctypes.c_uint32),
  ]


class drm_amdgpu_gem_metadata_data(Struct):
  """280 bytes."""
  flags: int
  tiling_info: int
  data_size_bytes: int
  data: ctypes.Array[ctypes.c_uint32]
  _fields_ = [
    ("flags", ctypes.c_uint64),
    ("tiling_info", ctypes.c_uint64),
    ("data_size_bytes", ctypes.c_uint32),
    ("data", ctypes.c_uint32 * 64),
  ]


class drm_amdgpu_gem_metadata(Struct):
  """288 bytes."""
  handle: int
  op: int
  data: drm_amdgpu_gem_metadata_data
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("op", ctypes.c_uint32),
    ("data", drm_amdgpu_gem_metadata_data),
  ]


class drm_amdgpu_gem_mmap_in(Struct):
  """8 bytes."""
  handle: int
  _pad: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_gem_mmap_out(Struct):
  """8 bytes."""
  addr_ptr: int
  _fields_ = [
    ("addr_ptr", ctypes.c_uint64),
  ]


class drm_amdgpu_gem_mmap(Union):
  """8 bytes."""
  in_: drm_amdgpu_gem_mmap_in
  out: drm_amdgpu_gem_mmap_out
  _fields_ = [
    ("in_", drm_amdgpu_gem_mmap_in),
    ("out", drm_amdgpu_gem_mmap_out),
  ]


class drm_amdgpu_gem_wait_idle_in(Struct):
  """16 bytes."""
  handle: int
  flags: int
  timeout: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("timeout", ctypes.c_uint64),
  ]


class drm_amdgpu_gem_wait_idle_out(Struct):
  """8 bytes."""
  status: int
  domain: int
  _fields_ = [
    ("status", ctypes.c_uint32),
    ("domain", ctypes.c_uint32),
  ]


class drm_amdgpu_gem_wait_idle(Union):
  """16 bytes."""
  in_: drm_amdgpu_gem_wait_idle_in
  out: drm_amdgpu_gem_wait_idle_out
  _fields_ = [
    ("in_", drm_amdgpu_gem_wait_idle_in),
    ("out", drm_amdgpu_gem_wait_idle_out),
  ]


class drm_amdgpu_wait_cs_in(Struct):
  """32 bytes."""
  handle: int
  timeout: int
  ip_type: int
  ip_instance: int
  ring: int
  ctx_id: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
    ("timeout", ctypes.c_uint64),
    ("ip_type", ctypes.c_uint32),
    ("ip_instance", ctypes.c_uint32),
    ("ring", ctypes.c_uint32),
    ("ctx_id", ctypes.c_uint32),
  ]


class drm_amdgpu_wait_cs_out(Struct):
  """8 bytes."""
  status: int
  _fields_ = [
    ("status", ctypes.c_uint64),
  ]


class drm_amdgpu_wait_cs(Union):
  """32 bytes."""
  in_: drm_amdgpu_wait_cs_in
  out: drm_amdgpu_wait_cs_out
  _fields_ = [
    ("in_", drm_amdgpu_wait_cs_in),
    ("out", drm_amdgpu_wait_cs_out),
  ]


class drm_amdgpu_fence(Struct):
  """24 bytes."""
  ctx_id: int
  ip_type: int
  ip_instance: int
  ring: int
  seq_no: int
  _fields_ = [
    ("ctx_id", ctypes.c_uint32),
    ("ip_type", ctypes.c_uint32),
    ("ip_instance", ctypes.c_uint32),
    ("ring", ctypes.c_uint32),
    ("seq_no", ctypes.c_uint64),
  ]


class drm_amdgpu_wait_fences_in(Struct):
  """24 bytes."""
  fences: int
  fence_count: int
  wait_all: int
  timeout_ns: int
  _fields_ = [
    ("fences", ctypes.c_uint64),
    ("fence_count", ctypes.c_uint32),
    ("wait_all", ctypes.c_uint32),
    ("timeout_ns", ctypes.c_uint64),
  ]


class drm_amdgpu_wait_fences_out(Struct):
  """8 bytes."""
  status: int
  first_signaled: int
  _fields_ = [
    ("status", ctypes.c_uint32),
    ("first_signaled", ctypes.c_uint32),
  ]


class drm_amdgpu_wait_fences(Union):
  """24 bytes."""
  in_: drm_amdgpu_wait_fences_in
  out: drm_amdgpu_wait_fences_out
  _fields_ = [
    ("in_", drm_amdgpu_wait_fences_in),
    ("out", drm_amdgpu_wait_fences_out),
  ]


class drm_amdgpu_gem_op(Struct):
  """16 bytes."""
  handle: int
  op: int
  value: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("op", ctypes.c_uint32),
    ("value", ctypes.c_uint64),
  ]


class drm_amdgpu_gem_va(Struct):
  """40 bytes."""
  handle: int
  _pad: int
  operation: int
  flags: int
  va_address: int
  offset_in_bo: int
  map_size: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
    ("operation", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("va_address", ctypes.c_uint64),
    ("offset_in_bo", ctypes.c_uint64),
    ("map_size", ctypes.c_uint64),
  ]


class drm_amdgpu_cs_chunk(Struct):
  """16 bytes."""
  chunk_id: int
  length_dw: int
  chunk_data: int
  _fields_ = [
    ("chunk_id", ctypes.c_uint32),
    ("length_dw", ctypes.c_uint32),
    ("chunk_data", ctypes.c_uint64),
  ]


class drm_amdgpu_cs_in(Struct):
  """24 bytes."""
  ctx_id: int
  bo_list_handle: int
  num_chunks: int
  flags: int
  chunks: int
  _fields_ = [
    ("ctx_id", ctypes.c_uint32),
    ("bo_list_handle", ctypes.c_uint32),
    ("num_chunks", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("chunks", ctypes.c_uint64),
  ]


class drm_amdgpu_cs_out(Struct):
  """8 bytes."""
  handle: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
  ]


class drm_amdgpu_cs(Union):
  """24 bytes."""
  in_: drm_amdgpu_cs_in
  out: drm_amdgpu_cs_out
  _fields_ = [
    ("in_", drm_amdgpu_cs_in),
    ("out", drm_amdgpu_cs_out),
  ]


class drm_amdgpu_cs_chunk_ib(Struct):
  """32 bytes."""
  _pad: int
  flags: int
  va_start: int
  ib_bytes: int
  ip_type: int
  ip_instance: int
  ring: int
  _fields_ = [
    ("_pad", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("va_start", ctypes.c_uint64),
    ("ib_bytes", ctypes.c_uint32),
    ("ip_type", ctypes.c_uint32),
    ("ip_instance", ctypes.c_uint32),
    ("ring", ctypes.c_uint32),
  ]


class drm_amdgpu_cs_chunk_dep(Struct):
  """24 bytes."""
  ip_type: int
  ip_instance: int
  ring: int
  ctx_id: int
  handle: int
  _fields_ = [
    ("ip_type", ctypes.c_uint32),
    ("ip_instance", ctypes.c_uint32),
    ("ring", ctypes.c_uint32),
    ("ctx_id", ctypes.c_uint32),
    ("handle", ctypes.c_uint64),
  ]


class drm_amdgpu_cs_chunk_fence(Struct):
  """8 bytes."""
  handle: int
  offset: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("offset", ctypes.c_uint32),
  ]


class drm_amdgpu_cs_chunk_sem(Struct):
  """4 bytes."""
  handle: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
  ]


class drm_amdgpu_cs_chunk_syncobj(Struct):
  """16 bytes."""
  handle: int
  flags: int
  point: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("point", ctypes.c_uint64),
  ]


class drm_amdgpu_fence_to_handle_in(Struct):
  """32 bytes."""
  fence: drm_amdgpu_fence
  what: int
  pad: int
  _fields_ = [
    ("fence", drm_amdgpu_fence),
    ("what", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class drm_amdgpu_fence_to_handle_out(Struct):
  """4 bytes."""
  handle: int
  _fields_ = [
    ("handle", ctypes.c_uint32),
  ]


class drm_amdgpu_fence_to_handle(Union):
  """32 bytes."""
  in_: drm_amdgpu_fence_to_handle_in
  out: drm_amdgpu_fence_to_handle_out
  _fields_ = [
    ("in_", drm_amdgpu_fence_to_handle_in),
    ("out", drm_amdgpu_fence_to_handle_out),
  ]


class drm_amdgpu_cs_chunk_data_0(Union):
  """32 bytes."""
  ib_data: drm_amdgpu_cs_chunk_ib
  fence_data: drm_amdgpu_cs_chunk_fence
  _fields_ = [
    ("ib_data", drm_amdgpu_cs_chunk_ib),
    ("fence_data", drm_amdgpu_cs_chunk_fence),
  ]


class drm_amdgpu_cs_chunk_data(Struct):
  """32 bytes."""
  ib_data: drm_amdgpu_cs_chunk_ib
  fence_data: drm_amdgpu_cs_chunk_fence
  _anonymous_ = ('_0',)
  _fields_ = [
    ("_0", drm_amdgpu_cs_chunk_data_0),
  ]


class drm_amdgpu_cs_chunk_cp_gfx_shadow(Struct):
  """32 bytes."""
  shadow_va: int
  csa_va: int
  gds_va: int
  flags: int
  _fields_ = [
    ("shadow_va", ctypes.c_uint64),
    ("csa_va", ctypes.c_uint64),
    ("gds_va", ctypes.c_uint64),
    ("flags", ctypes.c_uint64),
  ]


class drm_amdgpu_query_fw(Struct):
  """16 bytes."""
  fw_type: int
  ip_instance: int
  index: int
  _pad: int
  _fields_ = [
    ("fw_type", ctypes.c_uint32),
    ("ip_instance", ctypes.c_uint32),
    ("index", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0_mode_crtc(Struct):
  """8 bytes."""
  id: int
  _pad: int
  _fields_ = [
    ("id", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0_query_hw_ip(Struct):
  """8 bytes."""
  type: int
  ip_instance: int
  _fields_ = [
    ("type", ctypes.c_uint32),
    ("ip_instance", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0_read_mmr_reg(Struct):
  """16 bytes."""
  dword_offset: int
  count: int
  instance: int
  flags: int
  _fields_ = [
    ("dword_offset", ctypes.c_uint32),
    ("count", ctypes.c_uint32),
    ("instance", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0_vbios_info(Struct):
  """8 bytes."""
  type: int
  offset: int
  _fields_ = [
    ("type", ctypes.c_uint32),
    ("offset", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0_sensor_info(Struct):
  """4 bytes."""
  type: int
  _fields_ = [
    ("type", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0_video_cap(Struct):
  """4 bytes."""
  type: int
  _fields_ = [
    ("type", ctypes.c_uint32),
  ]


class drm_amdgpu_info_0(Union):
  """16 bytes."""
  mode_crtc: drm_amdgpu_info_0_mode_crtc
  query_hw_ip: drm_amdgpu_info_0_query_hw_ip
  read_mmr_reg: drm_amdgpu_info_0_read_mmr_reg
  query_fw: drm_amdgpu_query_fw
  vbios_info: drm_amdgpu_info_0_vbios_info
  sensor_info: drm_amdgpu_info_0_sensor_info
  video_cap: drm_amdgpu_info_0_video_cap
  _fields_ = [
    ("mode_crtc", drm_amdgpu_info_0_mode_crtc),
    ("query_hw_ip", drm_amdgpu_info_0_query_hw_ip),
    ("read_mmr_reg", drm_amdgpu_info_0_read_mmr_reg),
    ("query_fw", drm_amdgpu_query_fw),
    ("vbios_info", drm_amdgpu_info_0_vbios_info),
    ("sensor_info", drm_amdgpu_info_0_sensor_info),
    ("video_cap", drm_amdgpu_info_0_video_cap),
  ]


class drm_amdgpu_info(Struct):
  """32 bytes."""
  return_pointer: int
  return_size: int
  query: int
  mode_crtc: drm_amdgpu_info_0_mode_crtc
  query_hw_ip: drm_amdgpu_info_0_query_hw_ip
  read_mmr_reg: drm_amdgpu_info_0_read_mmr_reg
  query_fw: drm_amdgpu_query_fw
  vbios_info: drm_amdgpu_info_0_vbios_info
  sensor_info: drm_amdgpu_info_0_sensor_info
  video_cap: drm_amdgpu_info_0_video_cap
  _anonymous_ = ('_0',)
  _fields_ = [
    ("return_pointer", ctypes.c_uint64),
    ("return_size", ctypes.c_uint32),
    ("query", ctypes.c_uint32),
    ("_0", drm_amdgpu_info_0),
  ]


class drm_amdgpu_info_gds(Struct):
  """32 bytes."""
  gds_gfx_partition_size: int
  compute_partition_size: int
  gds_total_size: int
  gws_per_gfx_partition: int
  gws_per_compute_partition: int
  oa_per_gfx_partition: int
  oa_per_compute_partition: int
  _pad: int
  _fields_ = [
    ("gds_gfx_partition_size", ctypes.c_uint32),
    ("compute_partition_size", ctypes.c_uint32),
    ("gds_total_size", ctypes.c_uint32),
    ("gws_per_gfx_partition", ctypes.c_uint32),
    ("gws_per_compute_partition", ctypes.c_uint32),
    ("oa_per_gfx_partition", ctypes.c_uint32),
    ("oa_per_compute_partition", ctypes.c_uint32),
    ("_pad", ctypes.c_uint32),
  ]


class drm_amdgpu_info_vram_gtt(Struct):
  """24 bytes."""
  vram_size: int
  vram_cpu_accessible_size: int
  gtt_size: int
  _fields_ = [
    ("vram_size", ctypes.c_uint64),
    ("vram_cpu_accessible_size", ctypes.c_uint64),
    ("gtt_size", ctypes.c_uint64),
  ]


class drm_amdgpu_heap_info(Struct):
  """32 bytes."""
  total_heap_size: int
  usable_heap_size: int
  heap_usage: int
  max_allocation: int
  _fields_ = [
    ("total_heap_size", ctypes.c_uint64),
    ("usable_heap_size", ctypes.c_uint64),
    ("heap_usage", ctypes.c_uint64),
    ("max_allocation", ctypes.c_uint64),
  ]


class drm_amdgpu_memory_info(Struct):
  """96 bytes."""
  vram: drm_amdgpu_heap_info
  cpu_accessible_vram: drm_amdgpu_heap_info
  gtt: drm_amdgpu_heap_info
  _fields_ = [
    ("vram", drm_amdgpu_heap_info),
    ("cpu_accessible_vram", drm_amdgpu_heap_info),
    ("gtt", drm_amdgpu_heap_info),
  ]


class drm_amdgpu_info_firmware(Struct):
  """8 bytes."""
  ver: int
  feature: int
  _fields_ = [
    ("ver", ctypes.c_uint32),
    ("feature", ctypes.c_uint32),
  ]


class drm_amdgpu_info_vbios(Struct):
  """200 bytes."""
  name: ctypes.Array[ctypes.c_uint8]
  vbios_pn: ctypes.Array[ctypes.c_uint8]
  version: int
  pad: int
  vbios_ver_str: ctypes.Array[ctypes.c_uint8]
  date: ctypes.Array[ctypes.c_uint8]
  _fields_ = [
    ("name", ctypes.c_uint8 * 64),
    ("vbios_pn", ctypes.c_uint8 * 64),
    ("version", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
    ("vbios_ver_str", ctypes.c_uint8 * 32),
    ("date", ctypes.c_uint8 * 32),
  ]


class drm_amdgpu_info_device(Struct):
  """440 bytes."""
  device_id: int
  chip_rev: int
  external_rev: int
  pci_rev: int
  family: int
  num_shader_engines: int
  num_shader_arrays_per_engine: int
  gpu_counter_freq: int
  max_engine_clock: int
  max_memory_clock: int
  cu_active_number: int
  cu_ao_mask: int
  cu_bitmap: ctypes.Array[ctypes.Array[ctypes.c_uint32]]
  enabled_rb_pipes_mask: int
  num_rb_pipes: int
  num_hw_gfx_contexts: int
  pcie_gen: int
  ids_flags: int
  virtual_address_offset: int
  virtual_address_max: int
  virtual_address_alignment: int
  pte_fragment_size: int
  gart_page_size: int
  ce_ram_size: int
  vram_type: int
  vram_bit_width: int
  vce_harvest_config: int
  gc_double_offchip_lds_buf: int
  prim_buf_gpu_addr: int
  pos_buf_gpu_addr: int
  cntl_sb_buf_gpu_addr: int
  param_buf_gpu_addr: int
  prim_buf_size: int
  pos_buf_size: int
  cntl_sb_buf_size: int
  param_buf_size: int
  wave_front_size: int
  num_shader_visible_vgprs: int
  num_cu_per_sh: int
  num_tcc_blocks: int
  gs_vgt_table_depth: int
  gs_prim_buffer_depth: int
  max_gs_waves_per_vgt: int
  pcie_num_lanes: int
  cu_ao_bitmap: ctypes.Array[ctypes.Array[ctypes.c_uint32]]
  high_va_offset: int
  high_va_max: int
  pa_sc_tile_steering_override: int
  tcc_disabled_mask: int
  min_engine_clock: int
  min_memory_clock: int
  tcp_cache_size: int
  num_sqc_per_wgp: int
  sqc_data_cache_size: int
  sqc_inst_cache_size: int
  gl1c_cache_size: int
  gl2c_cache_size: int
  mall_size: int
  enabled_rb_pipes_mask_hi: int
  shadow_size: int
  shadow_alignment: int
  csa_size: int
  csa_alignment: int
  _fields_ = [
    ("device_id", ctypes.c_uint32),
    ("chip_rev", ctypes.c_uint32),
    ("external_rev", ctypes.c_uint32),
    ("pci_rev", ctypes.c_uint32),
    ("family", ctypes.c_uint32),
    ("num_shader_engines", ctypes.c_uint32),
    ("num_shader_arrays_per_engine", ctypes.c_uint32),
    ("gpu_counter_freq", ctypes.c_uint32),
    ("max_engine_clock", ctypes.c_uint64),
    ("max_memory_clock", ctypes.c_uint64),
    ("cu_active_number", ctypes.c_uint32),
    ("cu_ao_mask", ctypes.c_uint32),
    ("cu_bitmap", ctypes.c_uint32 * 4 * 4),
    ("enabled_rb_pipes_mask", ctypes.c_uint32),
    ("num_rb_pipes", ctypes.c_uint32),
    ("num_hw_gfx_contexts", ctypes.c_uint32),
    ("pcie_gen", ctypes.c_uint32),
    ("ids_flags", ctypes.c_uint64),
    ("virtual_address_offset", ctypes.c_uint64),
    ("virtual_address_max", ctypes.c_uint64),
    ("virtual_address_alignment", ctypes.c_uint32),
    ("pte_fragment_size", ctypes.c_uint32),
    ("gart_page_size", ctypes.c_uint32),
    ("ce_ram_size", ctypes.c_uint32),
    ("vram_type", ctypes.c_uint32),
    ("vram_bit_width", ctypes.c_uint32),
    ("vce_harvest_config", ctypes.c_uint32),
    ("gc_double_offchip_lds_buf", ctypes.c_uint32),
    ("prim_buf_gpu_addr", ctypes.c_uint64),
    ("pos_buf_gpu_addr", ctypes.c_uint64),
    ("cntl_sb_buf_gpu_addr", ctypes.c_uint64),
    ("param_buf_gpu_addr", ctypes.c_uint64),
    ("prim_buf_size", ctypes.c_uint32),
    ("pos_buf_size", ctypes.c_uint32),
    ("cntl_sb_buf_size", ctypes.c_uint32),
    ("param_buf_size", ctypes.c_uint32),
    ("wave_front_size", ctypes.c_uint32),
    ("num_shader_visible_vgprs", ctypes.c_uint32),
    ("num_cu_per_sh", ctypes.c_uint32),
    ("num_tcc_blocks", ctypes.c_uint32),
    ("gs_vgt_table_depth", ctypes.c_uint32),
    ("gs_prim_buffer_depth", ctypes.c_uint32),
    ("max_gs_waves_per_vgt", ctypes.c_uint32),
    ("pcie_num_lanes", ctypes.c_uint32),
    ("cu_ao_bitmap", ctypes.c_uint32 * 4 * 4),
    ("high_va_offset", ctypes.c_uint64),
    ("high_va_max", ctypes.c_uint64),
    ("pa_sc_tile_steering_override", ctypes.c_uint32),
    ("tcc_disabled_mask", ctypes.c_uint64),
    ("min_engine_clock", ctypes.c_uint64),
    ("min_memory_clock", ctypes.c_uint64),
    ("tcp_cache_size", ctypes.c_uint32),
    ("num_sqc_per_wgp", ctypes.c_uint32),
    ("sqc_data_cache_size", ctypes.c_uint32),
    ("sqc_inst_cache_size", ctypes.c_uint32),
    ("gl1c_cache_size", ctypes.c_uint32),
    ("gl2c_cache_size", ctypes.c_uint32),
    ("mall_size", ctypes.c_uint64),
    ("enabled_rb_pipes_mask_hi", ctypes.c_uint32),
    ("shadow_size", ctypes.c_uint32),
    ("shadow_alignment", ctypes.c_uint32),
    ("csa_size", ctypes.c_uint32),
    ("csa_alignment", ctypes.c_uint32),
  ]


class drm_amdgpu_info_hw_ip(Struct):
  """32 bytes."""
  hw_ip_version_major: int
  hw_ip_version_minor: int
  capabilities_flags: int
  ib_start_alignment: int
  ib_size_alignment: int
  available_rings: int
  ip_discovery_version: int
  _fields_ = [
    ("hw_ip_version_major", ctypes.c_uint32),
    ("hw_ip_version_minor", ctypes.c_uint32),
    ("capabilities_flags", ctypes.c_uint64),
    ("ib_start_alignment", ctypes.c_uint32),
    ("ib_size_alignment", ctypes.c_uint32),
    ("available_rings", ctypes.c_uint32),
    ("ip_discovery_version", ctypes.c_uint32),
  ]


class drm_amdgpu_info_num_handles(Struct):
  """8 bytes."""
  uvd_max_handles: int
  uvd_used_handles: int
  _fields_ = [
    ("uvd_max_handles", ctypes.c_uint32),
    ("uvd_used_handles", ctypes.c_uint32),
  ]


class drm_amdgpu_info_vce_clock_table_entry(Struct):
  """16 bytes."""
  sclk: int
  mclk: int
  eclk: int
  pad: int
  _fields_ = [
    ("sclk", ctypes.c_uint32),
    ("mclk", ctypes.c_uint32),
    ("eclk", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class drm_amdgpu_info_vce_clock_table(Struct):
  """104 bytes."""
  entries: ctypes.Array[drm_amdgpu_info_vce_clock_table_entry]
  num_valid_entries: int
  pad: int
  _fields_ = [
    ("entries", drm_amdgpu_info_vce_clock_table_entry * 6),
    ("num_valid_entries", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class drm_amdgpu_info_video_codec_info(Struct):
  """24 bytes."""
  valid: int
  max_width: int
  max_height: int
  max_pixels_per_frame: int
  max_level: int
  pad: int
  _fields_ = [
    ("valid", ctypes.c_uint32),
    ("max_width", ctypes.c_uint32),
    ("max_height", ctypes.c_uint32),
    ("max_pixels_per_frame", ctypes.c_uint32),
    ("max_level", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class drm_amdgpu_info_video_caps(Struct):
  """192 bytes."""
  codec_info: ctypes.Array[drm_amdgpu_info_video_codec_info]
  _fields_ = [
    ("codec_info", drm_amdgpu_info_video_codec_info * 8),
  ]


class drm_amdgpu_info_gpuvm_fault(Struct):
  """16 bytes."""
  addr: int
  status: int
  vmhub: int
  _fields_ = [
    ("addr", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
    ("vmhub", ctypes.c_uint32),
  ]


class drm_color_ctm_3x4(Struct):
  """96 bytes."""
  matrix: ctypes.Array[ctypes.c_uint64]
  _fields_ = [
    ("matrix", ctypes.c_uint64 * 12),
  ]


IOCTLS: dict[int, Ioctl] = {  # by request number
  DRM_IOCTL_AMDGPU_GEM_CREATE: Ioctl("DRM_IOCTL_AMDGPU_GEM_CREATE", drm_amdgpu_gem_create),
  DRM_IOCTL_AMDGPU_GEM_MMAP: Ioctl("DRM_IOCTL_AMDGPU_GEM_MMAP", drm_amdgpu_gem_mmap),
  DRM_IOCTL_AMDGPU_CTX: Ioctl("DRM_IOCTL_AMDGPU_CTX", drm_amdgpu_ctx),
  DRM_IOCTL_AMDGPU_BO_LIST: Ioctl("DRM_IOCTL_AMDGPU_BO_LIST", drm_amdgpu_bo_list),
  DRM_IOCTL_AMDGPU_CS: Ioctl("DRM_IOCTL_AMDGPU_CS", drm_amdgpu_cs),
  DRM_IOCTL_AMDGPU_INFO: Ioctl("DRM_IOCTL_AMDGPU_INFO", drm_amdgpu_info),
  DRM_IOCTL_AMDGPU_GEM_METADATA: Ioctl("DRM_IOCTL_AMDGPU_GEM_METADATA", drm_amdgpu_gem_metadata),
  DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE: Ioctl("DRM_IOCTL_AMDGPU_GEM_WAIT_IDLE", drm_amdgpu_gem_wait_idle),
  DRM_IOCTL_AMDGPU_GEM_VA: Ioctl("DRM_IOCTL_AMDGPU_GEM_VA", drm_amdgpu_gem_va),
  DRM_IOCTL_AMDGPU_WAIT_CS: Ioctl("DRM_IOCTL_AMDGPU_WAIT_CS", drm_amdgpu_wait_cs),
  DRM_IOCTL_AMDGPU_GEM_OP: Ioctl("DRM_IOCTL_AMDGPU_GEM_OP", drm_amdgpu_gem_op),
  DRM_IOCTL_AMDGPU_GEM_USERPTR: Ioctl("DRM_IOCTL_AMDGPU_GEM_USERPTR", drm_amdgpu_gem_userptr),
  DRM_IOCTL_AMDGPU_WAIT_FENCES: Ioctl("DRM_IOCTL_AMDGPU_WAIT_FENCES", drm_amdgpu_wait_fences),
  DRM_IOCTL_AMDGPU_VM: Ioctl("DRM_IOCTL_AMDGPU_VM", drm_amdgpu_vm),
  DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE: Ioctl("DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE", drm_amdgpu_fence_to_handle),
  DRM_IOCTL_AMDGPU_SCHED: Ioctl("DRM_IOCTL_AMDGPU_SCHED", drm_amdgpu_sched),
}
