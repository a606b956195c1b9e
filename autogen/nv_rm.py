"""RM: the ioctls of /dev/nvidiactl and /dev/nvidiaN and their arguments.

Generated; do not edit. Source:
  NVIDIA/open-gpu-kernel-modules tag 580.142, licence MIT
    src/common/sdk/nvidia/inc/nvos.h sha256 07f9f453afbf080750663abc9e04e2d3b55500887303ba03bd6855916d2405bd
    src/nvidia/arch/nvalloc/unix/include/nv_escape.h sha256 12850ee7368dbfeba1e2392f9ff7fb44563d88ed12cbf478d0c0f61a03763570
    src/nvidia/arch/nvalloc/unix/include/nv-ioctl-numbers.h sha256 7f449a019521f2f858a2d485eed1ee0fa4a8ffc82c9aecd484be5d3f6821f87d
    src/nvidia/arch/nvalloc/unix/include/nv-ioctl.h sha256 65778345a796fce81827bbc63bd26fe80c60dbe970007009ae902f0a7f6e730f
    src/nvidia/arch/nvalloc/unix/include/nv-unix-nvos-params-wrappers.h sha256 d3ff263781baae28ade28d5fd7a9f69d2019e8f4ca7bfb5675fa280be77792e5
Generator: tinyhw gen nv_rm

Pairs are ranges of bits: (hi, lo). CARD_INFO takes an array of its struct.
"""
from __future__ import annotations

import ctypes

from tinyhw.core.ioctl import Ioctl
from tinyhw.core.layout import Struct, Union

NV_IOCTL_FCT_BASE = 0x800
NVOS02_FLAGS_PHYSICALITY_CONTIGUOUS = 0
NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS = 1
NVOS02_FLAGS_LOCATION_PCI = 0
NVOS02_FLAGS_LOCATION_VIDMEM = 2
NVOS02_FLAGS_COHERENCY_UNCACHED = 0
NVOS02_FLAGS_COHERENCY_CACHED = 1
NVOS02_FLAGS_COHERENCY_WRITE_COMBINE = 2
NVOS02_FLAGS_COHERENCY_WRITE_THROUGH = 3
NVOS02_FLAGS_COHERENCY_WRITE_PROTECT = 4
NVOS02_FLAGS_COHERENCY_WRITE_BACK = 5
NVOS02_FLAGS_ALLOC_NONE = 1
NVOS02_FLAGS_GPU_CACHEABLE_NO = 0
NVOS02_FLAGS_GPU_CACHEABLE_YES = 1
NVOS02_FLAGS_KERNEL_MAPPING_NO_MAP = 0
NVOS02_FLAGS_KERNEL_MAPPING_MAP = 1
NVOS02_FLAGS_ALLOC_NISO_DISPLAY_NO = 0
NVOS02_FLAGS_ALLOC_NISO_DISPLAY_YES = 1
NVOS02_FLAGS_ALLOC_USER_READ_ONLY_NO = 0
NVOS02_FLAGS_ALLOC_USER_READ_ONLY_YES = 1
NVOS02_FLAGS_ALLOC_DEVICE_READ_ONLY_NO = 0
NVOS02_FLAGS_ALLOC_DEVICE_READ_ONLY_YES = 1
NVOS02_FLAGS_PEER_MAP_OVERRIDE_DEFAULT = 0
NVOS02_FLAGS_PEER_MAP_OVERRIDE_REQUIRED = 1
NVOS02_FLAGS_ALLOC_TYPE_SYNCPOINT_APERTURE = 1
NVOS02_FLAGS_MEMORY_PROTECTION_DEFAULT = 0
NVOS02_FLAGS_MEMORY_PROTECTION_PROTECTED = 1
NVOS02_FLAGS_MEMORY_PROTECTION_UNPROTECTED = 2
NVOS02_FLAGS_REGISTER_MEMDESC_TO_PHYS_RM_FALSE = 0
NVOS02_FLAGS_REGISTER_MEMDESC_TO_PHYS_RM_TRUE = 1
NVOS02_FLAGS_MAPPING_DEFAULT = 0
NVOS02_FLAGS_MAPPING_NO_MAP = 1
NVOS02_FLAGS_MAPPING_NEVER_MAP = 2
NVOS64_FLAGS_NONE = 0
NVOS64_FLAGS_FINN_SERIALIZED = 1
NVOS30_FLAGS_BEHAVIOR_SPIN = 0
NVOS30_FLAGS_BEHAVIOR_SLEEP = 1
NVOS30_FLAGS_BEHAVIOR_QUERY = 2
NVOS30_FLAGS_BEHAVIOR_FORCE_BUSY_CHECK = 3
NVOS30_FLAGS_CHANNEL_LIST = 0
NVOS30_FLAGS_CHANNEL_SINGLE = 1
NVOS30_FLAGS_IDLE_PUSH_BUFFER = 1
NVOS30_FLAGS_IDLE_CACHE1 = 2
NVOS30_FLAGS_IDLE_GRAPHICS = 4
NVOS30_FLAGS_IDLE_MPEG = 8
NVOS30_FLAGS_IDLE_MOTION_ESTIMATION = 0x10
NVOS30_FLAGS_IDLE_VIDEO_PROCESSOR = 0x20
NVOS30_FLAGS_IDLE_MSPDEC = 0x20
NVOS30_FLAGS_IDLE_BITSTREAM_PROCESSOR = 0x40
NVOS30_FLAGS_IDLE_MSVLD = 0x40
NVOS30_FLAGS_IDLE_NVDEC0 = 0x40
NVOS30_FLAGS_IDLE_CIPHER_DMA = 0x80
NVOS30_FLAGS_IDLE_SEC = 0x80
NVOS30_FLAGS_IDLE_CALLBACKS = 0x100
NVOS30_FLAGS_IDLE_MSPPP = 0x200
NVOS30_FLAGS_IDLE_CE0 = 0x400
NVOS30_FLAGS_IDLE_CE1 = 0x800
NVOS30_FLAGS_IDLE_CE2 = 0x1000
NVOS30_FLAGS_IDLE_CE3 = 0x2000
NVOS30_FLAGS_IDLE_CE4 = 0x4000
NVOS30_FLAGS_IDLE_CE5 = 0x8000
NVOS30_FLAGS_IDLE_VIC = 0x10000
NVOS30_FLAGS_IDLE_MSENC = 0x20000
NVOS30_FLAGS_IDLE_NVENC0 = 0x20000
NVOS30_FLAGS_IDLE_NVENC1 = 0x40000
NVOS30_FLAGS_IDLE_NVENC2 = 0x80000
NVOS30_FLAGS_IDLE_NVJPG = 0x100000
NVOS30_FLAGS_IDLE_NVDEC1 = 0x200000
NVOS30_FLAGS_IDLE_NVDEC2 = 0x400000
NVOS30_FLAGS_IDLE_ACTIVECHANNELS = 0x800000
NVOS30_FLAGS_IDLE_ALL_ENGINES = 0x7ffefc
NVOS30_FLAGS_WAIT_FOR_ELPG_ON_NO = 0
NVOS30_FLAGS_WAIT_FOR_ELPG_ON_YES = 1
NVOS33_FLAGS_ACCESS_READ_WRITE = 0
NVOS33_FLAGS_ACCESS_READ_ONLY = 1
NVOS33_FLAGS_ACCESS_WRITE_ONLY = 2
NVOS33_FLAGS_PERSISTENT_DISABLE = 0
NVOS33_FLAGS_PERSISTENT_ENABLE = 1
NVOS33_FLAGS_SKIP_SIZE_CHECK_DISABLE = 0
NVOS33_FLAGS_SKIP_SIZE_CHECK_ENABLE = 1
NVOS33_FLAGS_MEM_SPACE_CLIENT = 0
NVOS33_FLAGS_MEM_SPACE_USER = 1
NVOS33_FLAGS_MAPPING_DEFAULT = 0
NVOS33_FLAGS_MAPPING_DIRECT = 1
NVOS33_FLAGS_MAPPING_REFLECTED = 2
NVOS33_FLAGS_FIFO_MAPPING_DEFAULT = 0
NVOS33_FLAGS_FIFO_MAPPING_ENABLE = 1
NVOS33_FLAGS_MAP_FIXED_DISABLE = 0
NVOS33_FLAGS_MAP_FIXED_ENABLE = 1
NVOS33_FLAGS_RESERVE_ON_UNMAP_DISABLE = 0
NVOS33_FLAGS_RESERVE_ON_UNMAP_ENABLE = 1
NVOS33_FLAGS_OS_DESCRIPTOR_DISABLE = 0
NVOS33_FLAGS_OS_DESCRIPTOR_ENABLE = 1
NVOS33_FLAGS_CACHING_TYPE_CACHED = 0
NVOS33_FLAGS_CACHING_TYPE_UNCACHED = 1
NVOS33_FLAGS_CACHING_TYPE_WRITECOMBINED = 2
NVOS33_FLAGS_CACHING_TYPE_WRITEBACK = 5
NVOS33_FLAGS_CACHING_TYPE_DEFAULT = 6
NVOS33_FLAGS_CACHING_TYPE_UNCACHED_WEAK = 7
NVOS33_FLAGS_ALLOW_MAPPING_ON_HCC_NO = 0
NVOS33_FLAGS_ALLOW_MAPPING_ON_HCC_YES = 1
NVOS46_FLAGS_ACCESS_READ_WRITE = 0
NVOS46_FLAGS_ACCESS_READ_ONLY = 1
NVOS46_FLAGS_ACCESS_WRITE_ONLY = 2
NVOS46_FLAGS_32BIT_POINTER_DISABLE = 0
NVOS46_FLAGS_32BIT_POINTER_ENABLE = 1
NVOS46_FLAGS_PAGE_KIND_PHYSICAL = 0
NVOS46_FLAGS_PAGE_KIND_VIRTUAL = 1
NVOS46_FLAGS_CACHE_SNOOP_DISABLE = 0
NVOS46_FLAGS_CACHE_SNOOP_ENABLE = 1
NVOS46_FLAGS_KERNEL_MAPPING_NONE = 0
NVOS46_FLAGS_KERNEL_MAPPING_ENABLE = 1
NVOS46_FLAGS_SHADER_ACCESS_DEFAULT = 0
NVOS46_FLAGS_SHADER_ACCESS_READ_ONLY = 1
NVOS46_FLAGS_SHADER_ACCESS_WRITE_ONLY = 2
NVOS46_FLAGS_SHADER_ACCESS_READ_WRITE = 3
NVOS46_FLAGS_PAGE_SIZE_DEFAULT = 0
NVOS46_FLAGS_PAGE_SIZE_4KB = 1
NVOS46_FLAGS_PAGE_SIZE_BIG = 2
NVOS46_FLAGS_PAGE_SIZE_BOTH = 3
NVOS46_FLAGS_PAGE_SIZE_HUGE = 4
NVOS46_FLAGS_PAGE_SIZE_512M = 5
NVOS46_FLAGS_SYSTEM_L3_ALLOC_DEFAULT = 0
NVOS46_FLAGS_SYSTEM_L3_ALLOC_ENABLE_HINT = 1
NVOS46_FLAGS_DMA_OFFSET_GROWS_UP = 0
NVOS46_FLAGS_DMA_OFFSET_GROWS_DOWN = 1
NVOS46_FLAGS_DMA_OFFSET_FIXED_FALSE = 0
NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE = 1
NVOS46_FLAGS_DISABLE_ENCRYPTION_FALSE = 0
NVOS46_FLAGS_DISABLE_ENCRYPTION_TRUE = 1
NVOS46_FLAGS_GPU_CACHEABLE_DEFAULT = 0
NVOS46_FLAGS_GPU_CACHEABLE_YES = 1
NVOS46_FLAGS_GPU_CACHEABLE_NO = 2
NVOS46_FLAGS_GPU_CACHEABLE_INVALID = 3
NVOS46_FLAGS_PAGE_KIND_OVERRIDE_NO = 0
NVOS46_FLAGS_PAGE_KIND_OVERRIDE_YES = 1
NVOS46_FLAGS_P2P_ENABLE_NO = 0
NVOS46_FLAGS_P2P_ENABLE_YES = 1
NVOS46_FLAGS_P2P_ENABLE_NONE = 0
NVOS46_FLAGS_P2P_ENABLE_SLI = 1
NVOS46_FLAGS_P2P_ENABLE_NOSLI = 2
NVOS46_FLAGS_TLB_LOCK_DISABLE = 0
NVOS46_FLAGS_TLB_LOCK_ENABLE = 1
NVOS46_FLAGS_DMA_UNICAST_REUSE_ALLOC_FALSE = 0
NVOS46_FLAGS_DMA_UNICAST_REUSE_ALLOC_TRUE = 1
NVOS46_FLAGS_ENABLE_FORCE_COMPRESSED_MAP_FALSE = 0
NVOS46_FLAGS_ENABLE_FORCE_COMPRESSED_MAP_TRUE = 1
NVOS46_FLAGS_DEFER_TLB_INVALIDATION_FALSE = 0
NVOS46_FLAGS_DEFER_TLB_INVALIDATION_TRUE = 1
NVOS46_FLAGS2_GPU_CACHE_SNOOP_DEFAULT = 0
NVOS46_FLAGS2_GPU_CACHE_SNOOP_ENABLE = 1
NVOS46_FLAGS2_GPU_CACHE_SNOOP_DISABLE = 2
NVOS47_FLAGS_DEFER_TLB_INVALIDATION_FALSE = 0
NVOS47_FLAGS_DEFER_TLB_INVALIDATION_TRUE = 1
NVOS54_FLAGS_NONE = 0
NVOS54_FLAGS_IRQL_RAISED = 1
NVOS54_FLAGS_LOCK_BYPASS = 2
NVOS54_FLAGS_FINN_SERIALIZED = 4
NV04_DUP_HANDLE_FLAGS_NONE = 0
NV04_DUP_HANDLE_FLAGS_REJECT_KERNEL_DUP_PRIVILEGE = 1
NV_ESC_RM_ALLOC_MEMORY = 0x27
NV_ESC_RM_ALLOC_OBJECT = 0x28
NV_ESC_RM_FREE = 0x29
NV_ESC_RM_CONTROL = 0x2a
NV_ESC_RM_ALLOC = 0x2b
NV_ESC_RM_CONFIG_GET = 0x32
NV_ESC_RM_CONFIG_SET = 0x33
NV_ESC_RM_DUP_OBJECT = 0x34
NV_ESC_RM_SHARE = 0x35
NV_ESC_RM_CONFIG_GET_EX = 0x37
NV_ESC_RM_CONFIG_SET_EX = 0x38
NV_ESC_RM_I2C_ACCESS = 0x39
NV_ESC_RM_IDLE_CHANNELS = 0x41
NV_ESC_RM_VID_HEAP_CONTROL = 0x4a
NV_ESC_RM_ACCESS_REGISTRY = 0x4d
NV_ESC_RM_MAP_MEMORY = 0x4e
NV_ESC_RM_UNMAP_MEMORY = 0x4f
NV_ESC_RM_GET_EVENT_DATA = 0x52
NV_ESC_RM_ALLOC_CONTEXT_DMA2 = 0x54
NV_ESC_RM_ADD_VBLANK_CALLBACK = 0x56
NV_ESC_RM_MAP_MEMORY_DMA = 0x57
NV_ESC_RM_UNMAP_MEMORY_DMA = 0x58
NV_ESC_RM_BIND_CONTEXT_DMA = 0x59
NV_ESC_RM_EXPORT_OBJECT_TO_FD = 0x5c
NV_ESC_RM_IMPORT_OBJECT_FROM_FD = 0x5d
NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO = 0x5e
NV_ESC_RM_LOCKLESS_DIAGNOSTIC = 0x5f
NV_IOCTL_MAGIC = 0x46
NV_IOCTL_BASE = 0xc8
NV_ESC_CARD_INFO = 0xc8
NV_ESC_REGISTER_FD = 0xc9
NV_ESC_ALLOC_OS_EVENT = 0xce
NV_ESC_FREE_OS_EVENT = 0xcf
NV_ESC_STATUS_CODE = 0xd1
NV_ESC_CHECK_VERSION_STR = 0xd2
NV_ESC_IOCTL_XFER_CMD = 0xd3
NV_ESC_ATTACH_GPUS_TO_FD = 0xd4
NV_ESC_QUERY_DEVICE_INTR = 0xd5
NV_ESC_SYS_PARAMS = 0xd6
NV_ESC_EXPORT_TO_DMABUF_FD = 0xd9
NV_ESC_WAIT_OPEN_COMPLETE = 0xda
NV_RM_API_VERSION_STRING_LENGTH = 0x40
NV_RM_API_VERSION_CMD_STRICT = 0
NV_RM_API_VERSION_CMD_RELAXED = 0x31
NV_RM_API_VERSION_CMD_QUERY = 0x32
NV_RM_API_VERSION_REPLY_UNRECOGNIZED = 0
NV_RM_API_VERSION_REPLY_RECOGNIZED = 1
NV_DMABUF_EXPORT_MAX_HANDLES = 0x80
NV_DMABUF_EXPORT_MAPPING_TYPE_DEFAULT = 0
NV_DMABUF_EXPORT_MAPPING_TYPE_FORCE_PCIE = 1

# bits of flags and words: (hi, lo)
NVOS02_FLAGS_PHYSICALITY = (7, 4)
NVOS02_FLAGS_LOCATION = (11, 8)
NVOS02_FLAGS_COHERENCY = (15, 12)
NVOS02_FLAGS_ALLOC = (17, 16)
NVOS02_FLAGS_GPU_CACHEABLE = (18, 18)
NVOS02_FLAGS_KERNEL_MAPPING = (19, 19)
NVOS02_FLAGS_ALLOC_NISO_DISPLAY = (20, 20)
NVOS02_FLAGS_ALLOC_USER_READ_ONLY = (21, 21)
NVOS02_FLAGS_ALLOC_DEVICE_READ_ONLY = (22, 22)
NVOS02_FLAGS_PEER_MAP_OVERRIDE = (23, 23)
NVOS02_FLAGS_ALLOC_TYPE_SYNCPOINT = (24, 24)
NVOS02_FLAGS_MEMORY_PROTECTION = (26, 25)
NVOS02_FLAGS_REGISTER_MEMDESC_TO_PHYS_RM = (27, 27)
NVOS02_FLAGS_MAPPING = (31, 30)
NVOS30_FLAGS_BEHAVIOR = (3, 0)
NVOS30_FLAGS_CHANNEL = (7, 4)
NVOS30_FLAGS_IDLE = (30, 8)
NVOS30_FLAGS_WAIT_FOR_ELPG_ON = (31, 31)
NVOS33_FLAGS_ACCESS = (1, 0)
NVOS33_FLAGS_PERSISTENT = (4, 4)
NVOS33_FLAGS_SKIP_SIZE_CHECK = (8, 8)
NVOS33_FLAGS_MEM_SPACE = (14, 14)
NVOS33_FLAGS_MAPPING = (16, 15)
NVOS33_FLAGS_FIFO_MAPPING = (17, 17)
NVOS33_FLAGS_MAP_FIXED = (18, 18)
NVOS33_FLAGS_RESERVE_ON_UNMAP = (19, 19)
NVOS33_FLAGS_OS_DESCRIPTOR = (22, 22)
NVOS33_FLAGS_CACHING_TYPE = (25, 23)
NVOS33_FLAGS_ALLOW_MAPPING_ON_HCC = (26, 26)
NVOS46_FLAGS_ACCESS = (1, 0)
NVOS46_FLAGS_32BIT_POINTER = (2, 2)
NVOS46_FLAGS_PAGE_KIND = (3, 3)
NVOS46_FLAGS_CACHE_SNOOP = (4, 4)
NVOS46_FLAGS_KERNEL_MAPPING = (5, 5)
NVOS46_FLAGS_SHADER_ACCESS = (7, 6)
NVOS46_FLAGS_PAGE_SIZE = (11, 8)
NVOS46_FLAGS_SYSTEM_L3_ALLOC = (13, 13)
NVOS46_FLAGS_DMA_OFFSET_GROWS = (14, 14)
NVOS46_FLAGS_DMA_OFFSET_FIXED = (15, 15)
NVOS46_FLAGS_DISABLE_ENCRYPTION = (16, 16)
NVOS46_FLAGS_GPU_CACHEABLE = (18, 17)
NVOS46_FLAGS_PAGE_KIND_OVERRIDE = (19, 19)
NVOS46_FLAGS_P2P = (27, 20)
NVOS46_FLAGS_P2P_ENABLE = (21, 20)
NVOS46_FLAGS_P2P_SUBDEVICE_ID = (24, 22)
NVOS46_FLAGS_P2P_SUBDEV_ID_TGT = (27, 25)
NVOS46_FLAGS_TLB_LOCK = (28, 28)
NVOS46_FLAGS_DMA_UNICAST_REUSE_ALLOC = (29, 29)
NVOS46_FLAGS_ENABLE_FORCE_COMPRESSED_MAP = (30, 30)
NVOS46_FLAGS_DEFER_TLB_INVALIDATION = (31, 31)
NVOS46_FLAGS2_GPU_CACHE_SNOOP = (1, 0)
NVOS47_FLAGS_DEFER_TLB_INVALIDATION = (0, 0)


class NVOS00_PARAMETERS(Struct):
  """16 bytes."""
  hRoot: int
  hObjectParent: int
  hObjectOld: int
  status: int
  _fields_ = [
    ("hRoot", ctypes.c_uint32),
    ("hObjectParent", ctypes.c_uint32),
    ("hObjectOld", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS02_PARAMETERS(Struct):
  """48 bytes."""
  hRoot: int
  hObjectParent: int
  hObjectNew: int
  hClass: int
  flags: int
  pMemory: int
  limit: int
  status: int
  _fields_ = [
    ("hRoot", ctypes.c_uint32),
    ("hObjectParent", ctypes.c_uint32),
    ("hObjectNew", ctypes.c_uint32),
    ("hClass", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("pMemory", ctypes.c_uint64),
    ("limit", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
  ]


class NVOS21_PARAMETERS(Struct):
  """32 bytes."""
  hRoot: int
  hObjectParent: int
  hObjectNew: int
  hClass: int
  pAllocParms: int
  paramsSize: int
  status: int
  _fields_ = [
    ("hRoot", ctypes.c_uint32),
    ("hObjectParent", ctypes.c_uint32),
    ("hObjectNew", ctypes.c_uint32),
    ("hClass", ctypes.c_uint32),
    ("pAllocParms", ctypes.c_uint64),
    ("paramsSize", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS64_PARAMETERS(Struct):
  """48 bytes."""
  hRoot: int
  hObjectParent: int
  hObjectNew: int
  hClass: int
  pAllocParms: int
  pRightsRequested: int
  paramsSize: int
  flags: int
  status: int
  _fields_ = [
    ("hRoot", ctypes.c_uint32),
    ("hObjectParent", ctypes.c_uint32),
    ("hObjectNew", ctypes.c_uint32),
    ("hClass", ctypes.c_uint32),
    ("pAllocParms", ctypes.c_uint64),
    ("pRightsRequested", ctypes.c_uint64),
    ("paramsSize", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS30_PARAMETERS(Struct):
  """56 bytes."""
  hClient: int
  hDevice: int
  hChannel: int
  numChannels: int
  phClients: int
  phDevices: int
  phChannels: int
  flags: int
  timeout: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("hChannel", ctypes.c_uint32),
    ("numChannels", ctypes.c_uint32),
    ("phClients", ctypes.c_uint64),
    ("phDevices", ctypes.c_uint64),
    ("phChannels", ctypes.c_uint64),
    ("flags", ctypes.c_uint32),
    ("timeout", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_AllocSize(Struct):
  """120 bytes."""
  owner: int
  hMemory: int
  type: int
  flags: int
  attr: int
  format: int
  comprCovg: int
  zcullCovg: int
  partitionStride: int
  width: int
  height: int
  size: int
  alignment: int
  offset: int
  limit: int
  address: int
  rangeBegin: int
  rangeEnd: int
  attr2: int
  ctagOffset: int
  numaNode: int
  _fields_ = [
    ("owner", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("type", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("attr", ctypes.c_uint32),
    ("format", ctypes.c_uint32),
    ("comprCovg", ctypes.c_uint32),
    ("zcullCovg", ctypes.c_uint32),
    ("partitionStride", ctypes.c_uint32),
    ("width", ctypes.c_uint32),
    ("height", ctypes.c_uint32),
    ("size", ctypes.c_uint64),
    ("alignment", ctypes.c_uint64),
    ("offset", ctypes.c_uint64),
    ("limit", ctypes.c_uint64),
    ("address", ctypes.c_uint64),
    ("rangeBegin", ctypes.c_uint64),
    ("rangeEnd", ctypes.c_uint64),
    ("attr2", ctypes.c_uint32),
    ("ctagOffset", ctypes.c_uint32),
    ("numaNode", ctypes.c_int32),
  ]


class NVOS32_PARAMETERS_0_AllocTiledPitchHeight(Struct):
  """120 bytes."""
  owner: int
  hMemory: int
  type: int
  flags: int
  height: int
  pitch: int
  attr: int
  width: int
  format: int
  comprCovg: int
  zcullCovg: int
  partitionStride: int
  size: int
  alignment: int
  offset: int
  limit: int
  address: int
  rangeBegin: int
  rangeEnd: int
  attr2: int
  ctagOffset: int
  numaNode: int
  _fields_ = [
    ("owner", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("type", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("height", ctypes.c_uint32),
    ("pitch", ctypes.c_int32),
    ("attr", ctypes.c_uint32),
    ("width", ctypes.c_uint32),
    ("format", ctypes.c_uint32),
    ("comprCovg", ctypes.c_uint32),
    ("zcullCovg", ctypes.c_uint32),
    ("partitionStride", ctypes.c_uint32),
    ("size", ctypes.c_uint64),
    ("alignment", ctypes.c_uint64),
    ("offset", ctypes.c_uint64),
    ("limit", ctypes.c_uint64),
    ("address", ctypes.c_uint64),
    ("rangeBegin", ctypes.c_uint64),
    ("rangeEnd", ctypes.c_uint64),
    ("attr2", ctypes.c_uint32),
    ("ctagOffset", ctypes.c_uint32),
    ("numaNode", ctypes.c_int32),
  ]


class NVOS32_PARAMETERS_0_Free(Struct):
  """12 bytes."""
  owner: int
  hMemory: int
  flags: int
  _fields_ = [
    ("owner", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_ReleaseCompr(Struct):
  """12 bytes."""
  owner: int
  flags: int
  hMemory: int
  _fields_ = [
    ("owner", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_ReacquireCompr(Struct):
  """12 bytes."""
  owner: int
  flags: int
  hMemory: int
  _fields_ = [
    ("owner", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_Info(Struct):
  """32 bytes."""
  attr: int
  offset: int
  size: int
  base: int
  _fields_ = [
    ("attr", ctypes.c_uint32),
    ("offset", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("base", ctypes.c_uint64),
  ]


class NVOS32_PARAMETERS_0_AllocSizeRange(Struct):
  """112 bytes."""
  owner: int
  hMemory: int
  type: int
  flags: int
  attr: int
  format: int
  comprCovg: int
  zcullCovg: int
  partitionStride: int
  size: int
  alignment: int
  offset: int
  limit: int
  rangeBegin: int
  rangeEnd: int
  address: int
  attr2: int
  ctagOffset: int
  numaNode: int
  _fields_ = [
    ("owner", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("type", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("attr", ctypes.c_uint32),
    ("format", ctypes.c_uint32),
    ("comprCovg", ctypes.c_uint32),
    ("zcullCovg", ctypes.c_uint32),
    ("partitionStride", ctypes.c_uint32),
    ("size", ctypes.c_uint64),
    ("alignment", ctypes.c_uint64),
    ("offset", ctypes.c_uint64),
    ("limit", ctypes.c_uint64),
    ("rangeBegin", ctypes.c_uint64),
    ("rangeEnd", ctypes.c_uint64),
    ("address", ctypes.c_uint64),
    ("attr2", ctypes.c_uint32),
    ("ctagOffset", ctypes.c_uint32),
    ("numaNode", ctypes.c_int32),
  ]


class NVOS32_PARAMETERS_0_AllocHintAlignment(Struct):
  """56 bytes."""
  alignType: int
  alignAttr: int
  alignInputFlags: int
  alignSize: int
  alignHeight: int
  alignWidth: int
  alignPitch: int
  alignPad: int
  alignMask: int
  alignKind: int
  alignAdjust: int
  alignAttr2: int
  _fields_ = [
    ("alignType", ctypes.c_uint32),
    ("alignAttr", ctypes.c_uint32),
    ("alignInputFlags", ctypes.c_uint32),
    ("alignSize", ctypes.c_uint64),
    ("alignHeight", ctypes.c_uint32),
    ("alignWidth", ctypes.c_uint32),
    ("alignPitch", ctypes.c_uint32),
    ("alignPad", ctypes.c_uint32),
    ("alignMask", ctypes.c_uint32),
    ("alignKind", ctypes.c_uint32),
    ("alignAdjust", ctypes.c_uint32),
    ("alignAttr2", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_8_comprInfo(Struct):
  """24 bytes."""
  compPageShift: int
  compressedKind: int
  compTagLineMin: int
  compPageIndexLo: int
  compPageIndexHi: int
  compTagLineMultiplier: int
  _fields_ = [
    ("compPageShift", ctypes.c_uint32),
    ("compressedKind", ctypes.c_uint32),
    ("compTagLineMin", ctypes.c_uint32),
    ("compPageIndexLo", ctypes.c_uint32),
    ("compPageIndexHi", ctypes.c_uint32),
    ("compTagLineMultiplier", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_HwAlloc(Struct):
  """144 bytes."""
  allocOwner: int
  allochMemory: int
  flags: int
  allocType: int
  allocAttr: int
  allocInputFlags: int
  allocSize: int
  allocHeight: int
  allocWidth: int
  allocPitch: int
  allocMask: int
  allocComprCovg: int
  allocZcullCovg: int
  bindResultFunc: int
  pHandle: int
  hResourceHandle: int
  retAttr: int
  kind: int
  osDeviceHandle: int
  allocAttr2: int
  retAttr2: int
  allocAddr: int
  comprInfo: NVOS32_PARAMETERS_0_8_comprInfo
  uncompressedKind: int
  _fields_ = [
    ("allocOwner", ctypes.c_uint32),
    ("allochMemory", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("allocType", ctypes.c_uint32),
    ("allocAttr", ctypes.c_uint32),
    ("allocInputFlags", ctypes.c_uint32),
    ("allocSize", ctypes.c_uint64),
    ("allocHeight", ctypes.c_uint32),
    ("allocWidth", ctypes.c_uint32),
    ("allocPitch", ctypes.c_uint32),
    ("allocMask", ctypes.c_uint32),
    ("allocComprCovg", ctypes.c_uint32),
    ("allocZcullCovg", ctypes.c_uint32),
    ("bindResultFunc", ctypes.c_uint64),
    ("pHandle", ctypes.c_uint64),
    ("hResourceHandle", ctypes.c_uint32),
    ("retAttr", ctypes.c_uint32),
    ("kind", ctypes.c_uint32),
    ("osDeviceHandle", ctypes.c_uint64),
    ("allocAttr2", ctypes.c_uint32),
    ("retAttr2", ctypes.c_uint32),
    ("allocAddr", ctypes.c_uint64),
    ("comprInfo", NVOS32_PARAMETERS_0_8_comprInfo),
    ("uncompressedKind", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_HwFree(Struct):
  """8 bytes."""
  hResourceHandle: int
  flags: int
  _fields_ = [
    ("hResourceHandle", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_0_AllocOsDesc(Struct):
  """48 bytes."""
  hMemory: int
  type: int
  flags: int
  attr: int
  attr2: int
  descriptor: int
  limit: int
  descriptorType: int
  _fields_ = [
    ("hMemory", ctypes.c_uint32),
    ("type", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("attr", ctypes.c_uint32),
    ("attr2", ctypes.c_uint32),
    ("descriptor", ctypes.c_uint64),
    ("limit", ctypes.c_uint64),
    ("descriptorType", ctypes.c_uint32),
  ]


class NVOS32_PARAMETERS_data(Union):
  """144 bytes."""
  AllocSize: NVOS32_PARAMETERS_0_AllocSize
  AllocTiledPitchHeight: NVOS32_PARAMETERS_0_AllocTiledPitchHeight
  Free: NVOS32_PARAMETERS_0_Free
  ReleaseCompr: NVOS32_PARAMETERS_0_ReleaseCompr
  ReacquireCompr: NVOS32_PARAMETERS_0_ReacquireCompr
  Info: NVOS32_PARAMETERS_0_Info
  AllocSizeRange: NVOS32_PARAMETERS_0_AllocSizeRange
  AllocHintAlignment: NVOS32_PARAMETERS_0_AllocHintAlignment
  HwAlloc: NVOS32_PARAMETERS_0_HwAlloc
  HwFree: NVOS32_PARAMETERS_0_HwFree
  AllocOsDesc: NVOS32_PARAMETERS_0_AllocOsDesc
  _fields_ = [
    ("AllocSize", NVOS32_PARAMETERS_0_AllocSize),
    ("AllocTiledPitchHeight", NVOS32_PARAMETERS_0_AllocTiledPitchHeight),
    ("Free", NVOS32_PARAMETERS_0_Free),
    ("ReleaseCompr", NVOS32_PARAMETERS_0_ReleaseCompr),
    ("ReacquireCompr", NVOS32_PARAMETERS_0_ReacquireCompr),
    ("Info", NVOS32_PARAMETERS_0_Info),
    ("AllocSizeRange", NVOS32_PARAMETERS_0_AllocSizeRange),
    ("AllocHintAlignment", NVOS32_PARAMETERS_0_AllocHintAlignment),
    ("HwAlloc", NVOS32_PARAMETERS_0_HwAlloc),
    ("HwFree", NVOS32_PARAMETERS_0_HwFree),
    ("AllocOsDesc", NVOS32_PARAMETERS_0_AllocOsDesc),
  ]


class NVOS32_PARAMETERS(Struct):
  """184 bytes."""
  hRoot: int
  hObjectParent: int
  function: int
  hVASpace: int
  ivcHeapNumber: int
  status: int
  total: int
  free: int
  data: NVOS32_PARAMETERS_data
  _fields_ = [
    ("hRoot", ctypes.c_uint32),
    ("hObjectParent", ctypes.c_uint32),
    ("function", ctypes.c_uint32),
    ("hVASpace", ctypes.c_uint32),
    ("ivcHeapNumber", ctypes.c_int16),
    ("status", ctypes.c_uint32),
    ("total", ctypes.c_uint64),
    ("free", ctypes.c_uint64),
    ("data", NVOS32_PARAMETERS_data),
  ]


class NVOS33_PARAMETERS(Struct):
  """48 bytes."""
  hClient: int
  hDevice: int
  hMemory: int
  offset: int
  length: int
  pLinearAddress: int
  status: int
  flags: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("offset", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("pLinearAddress", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class NVOS34_PARAMETERS(Struct):
  """32 bytes."""
  hClient: int
  hDevice: int
  hMemory: int
  pLinearAddress: int
  status: int
  flags: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("pLinearAddress", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class NVOS39_PARAMETERS(Struct):
  """56 bytes."""
  hObjectParent: int
  hSubDevice: int
  hObjectNew: int
  hClass: int
  flags: int
  selector: int
  hMemory: int
  offset: int
  limit: int
  status: int
  _fields_ = [
    ("hObjectParent", ctypes.c_uint32),
    ("hSubDevice", ctypes.c_uint32),
    ("hObjectNew", ctypes.c_uint32),
    ("hClass", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("selector", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("offset", ctypes.c_uint64),
    ("limit", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
  ]


class NVOS41_PARAMETERS(Struct):
  """16 bytes."""
  pEvent: int
  MoreEvents: int
  status: int
  _fields_ = [
    ("pEvent", ctypes.c_uint64),
    ("MoreEvents", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS46_PARAMETERS(Struct):
  """64 bytes."""
  hClient: int
  hDevice: int
  hDma: int
  hMemory: int
  offset: int
  length: int
  flags: int
  flags2: int
  kindOverride: int
  dmaOffset: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("hDma", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("offset", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("flags", ctypes.c_uint32),
    ("flags2", ctypes.c_uint32),
    ("kindOverride", ctypes.c_uint32),
    ("dmaOffset", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
  ]


class NVOS47_PARAMETERS(Struct):
  """48 bytes."""
  hClient: int
  hDevice: int
  hDma: int
  hMemory: int
  flags: int
  dmaOffset: int
  size: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("hDma", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("dmaOffset", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
  ]


class NVOS49_PARAMETERS(Struct):
  """16 bytes."""
  hClient: int
  hChannel: int
  hCtxDma: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hChannel", ctypes.c_uint32),
    ("hCtxDma", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS54_PARAMETERS(Struct):
  """32 bytes."""
  hClient: int
  hObject: int
  cmd: int
  flags: int
  params: int
  paramsSize: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hObject", ctypes.c_uint32),
    ("cmd", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("params", ctypes.c_uint64),
    ("paramsSize", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS55_PARAMETERS(Struct):
  """28 bytes."""
  hClient: int
  hParent: int
  hObject: int
  hClientSrc: int
  hObjectSrc: int
  flags: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hParent", ctypes.c_uint32),
    ("hObject", ctypes.c_uint32),
    ("hClientSrc", ctypes.c_uint32),
    ("hObjectSrc", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class NVOS56_PARAMETERS(Struct):
  """40 bytes."""
  hClient: int
  hDevice: int
  hMemory: int
  pOldCpuAddress: int
  pNewCpuAddress: int
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("pOldCpuAddress", ctypes.c_uint64),
    ("pNewCpuAddress", ctypes.c_uint64),
    ("status", ctypes.c_uint32),
  ]


class RS_ACCESS_MASK(Struct):
  """4 bytes."""
  limbs: ctypes.Array[ctypes.c_uint32]
  _fields_ = [
    ("limbs", ctypes.c_uint32 * 1),
  ]


class RS_SHARE_POLICY(Struct):
  """12 bytes."""
  target: int
  accessMask: RS_ACCESS_MASK
  type: int
  action: int
  _fields_ = [
    ("target", ctypes.c_uint32),
    ("accessMask", RS_ACCESS_MASK),
    ("type", ctypes.c_uint16),
    ("action", ctypes.c_uint8),
  ]


class NVOS57_PARAMETERS(Struct):
  """24 bytes."""
  hClient: int
  hObject: int
  sharePolicy: RS_SHARE_POLICY
  status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hObject", ctypes.c_uint32),
    ("sharePolicy", RS_SHARE_POLICY),
    ("status", ctypes.c_uint32),
  ]


class nv_pci_info_t(Struct):
  """12 bytes."""
  domain: int
  bus: int
  slot: int
  function: int
  vendor_id: int
  device_id: int
  _fields_ = [
    ("domain", ctypes.c_uint32),
    ("bus", ctypes.c_uint8),
    ("slot", ctypes.c_uint8),
    ("function", ctypes.c_uint8),
    ("vendor_id", ctypes.c_uint16),
    ("device_id", ctypes.c_uint16),
  ]


class nv_ioctl_xfer_t(Struct):
  """16 bytes."""
  cmd: int
  size: int
  ptr: int
  _fields_ = [
    ("cmd", ctypes.c_uint32),
    ("size", ctypes.c_uint32),
    ("ptr", ctypes.c_uint64),
  ]


class nv_ioctl_card_info_t(Struct):
  """72 bytes."""
  valid: int
  pci_info: nv_pci_info_t
  gpu_id: int
  interrupt_line: int
  reg_address: int
  reg_size: int
  fb_address: int
  fb_size: int
  minor_number: int
  dev_name: ctypes.Array[ctypes.c_uint8]
  _fields_ = [
    ("valid", ctypes.c_uint8),
    ("pci_info", nv_pci_info_t),
    ("gpu_id", ctypes.c_uint32),
    ("interrupt_line", ctypes.c_uint16),
    ("reg_address", ctypes.c_uint64),
    ("reg_size", ctypes.c_uint64),
    ("fb_address", ctypes.c_uint64),
    ("fb_size", ctypes.c_uint64),
    ("minor_number", ctypes.c_uint32),
    ("dev_name", ctypes.c_uint8 * 10),
  ]


class nv_ioctl_alloc_os_event_t(Struct):
  """16 bytes."""
  hClient: int
  hDevice: int
  fd: int
  Status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("fd", ctypes.c_uint32),
    ("Status", ctypes.c_uint32),
  ]


class nv_ioctl_free_os_event_t(Struct):
  """16 bytes."""
  hClient: int
  hDevice: int
  fd: int
  Status: int
  _fields_ = [
    ("hClient", ctypes.c_uint32),
    ("hDevice", ctypes.c_uint32),
    ("fd", ctypes.c_uint32),
    ("Status", ctypes.c_uint32),
  ]


class nv_ioctl_status_code_t(Struct):
  """12 bytes."""
  domain: int
  bus: int
  slot: int
  status: int
  _fields_ = [
    ("domain", ctypes.c_uint32),
    ("bus", ctypes.c_uint8),
    ("slot", ctypes.c_uint8),
    ("status", ctypes.c_uint32),
  ]


class nv_ioctl_rm_api_version_t(Struct):
  """72 bytes."""
  cmd: int
  reply: int
  versionString: bytes
  _fields_ = [
    ("cmd", ctypes.c_uint32),
    ("reply", ctypes.c_uint32),
    ("versionString", ctypes.c_char * 64),
  ]


class nv_ioctl_query_device_intr(Struct):
  """8 bytes."""
  intrStatus: int
  status: int
  _fields_ = [
    ("intrStatus", ctypes.c_uint32),
    ("status", ctypes.c_uint32),
  ]


class nv_ioctl_sys_params_t(Struct):
  """8 bytes."""
  memblock_size: int
  _fields_ = [
    ("memblock_size", ctypes.c_uint64),
  ]


class nv_ioctl_register_fd_t(Struct):
  """4 bytes."""
  ctl_fd: int
  _fields_ = [
    ("ctl_fd", ctypes.c_int32),
  ]


class nv_ioctl_export_to_dma_buf_fd_t(Struct):
  """2608 bytes."""
  fd: int
  hClient: int
  totalObjects: int
  numObjects: int
  index: int
  totalSize: int
  mappingType: int
  bAllowMmap: int
  handles: ctypes.Array[ctypes.c_uint32]
  offsets: ctypes.Array[ctypes.c_uint64]
  sizes: ctypes.Array[ctypes.c_uint64]
  status: int
  _fields_ = [
    ("fd", ctypes.c_int32),
    ("hClient", ctypes.c_uint32),
    ("totalObjects", ctypes.c_uint32),
    ("numObjects", ctypes.c_uint32),
    ("index", ctypes.c_uint32),
    ("totalSize", ctypes.c_uint64),
    ("mappingType", ctypes.c_uint8),
    ("bAllowMmap", ctypes.c_uint8),
    ("handles", ctypes.c_uint32 * 128),
    ("offsets", ctypes.c_uint64 * 128),
    ("sizes", ctypes.c_uint64 * 128),
    ("status", ctypes.c_uint32),
  ]


class nv_ioctl_wait_open_complete_t(Struct):
  """8 bytes."""
  rc: int
  adapterStatus: int
  _fields_ = [
    ("rc", ctypes.c_int32),
    ("adapterStatus", ctypes.c_uint32),
  ]


class nv_ioctl_nvos02_parameters_with_fd(Struct):
  """56 bytes."""
  params: NVOS02_PARAMETERS
  fd: int
  _fields_ = [
    ("params", NVOS02_PARAMETERS),
    ("fd", ctypes.c_int32),
  ]


class nv_ioctl_nvos33_parameters_with_fd(Struct):
  """56 bytes."""
  params: NVOS33_PARAMETERS
  fd: int
  _fields_ = [
    ("params", NVOS33_PARAMETERS),
    ("fd", ctypes.c_int32),
  ]


VERSION = "580.142"

IOCTLS: dict[int, Ioctl] = {  # by request number
  0xc0384627: Ioctl("NV_ESC_RM_ALLOC_MEMORY", nv_ioctl_nvos02_parameters_with_fd),
  0xc0104629: Ioctl("NV_ESC_RM_FREE", NVOS00_PARAMETERS),
  0xc020462a: Ioctl("NV_ESC_RM_CONTROL", NVOS54_PARAMETERS),
  0xc020462b: Ioctl("NV_ESC_RM_ALLOC", NVOS21_PARAMETERS),
  0xc030462b: Ioctl("NV_ESC_RM_ALLOC", NVOS64_PARAMETERS),
  0xc01c4634: Ioctl("NV_ESC_RM_DUP_OBJECT", NVOS55_PARAMETERS),
  0xc0184635: Ioctl("NV_ESC_RM_SHARE", NVOS57_PARAMETERS),
  0xc0384641: Ioctl("NV_ESC_RM_IDLE_CHANNELS", NVOS30_PARAMETERS),
  0xc0b8464a: Ioctl("NV_ESC_RM_VID_HEAP_CONTROL", NVOS32_PARAMETERS),
  0xc038464e: Ioctl("NV_ESC_RM_MAP_MEMORY", nv_ioctl_nvos33_parameters_with_fd),
  0xc020464f: Ioctl("NV_ESC_RM_UNMAP_MEMORY", NVOS34_PARAMETERS),
  0xc0104652: Ioctl("NV_ESC_RM_GET_EVENT_DATA", NVOS41_PARAMETERS),
  0xc0384654: Ioctl("NV_ESC_RM_ALLOC_CONTEXT_DMA2", NVOS39_PARAMETERS),
  0xc0404657: Ioctl("NV_ESC_RM_MAP_MEMORY_DMA", NVOS46_PARAMETERS),
  0xc0304658: Ioctl("NV_ESC_RM_UNMAP_MEMORY_DMA", NVOS47_PARAMETERS),
  0xc0104659: Ioctl("NV_ESC_RM_BIND_CONTEXT_DMA", NVOS49_PARAMETERS),
  0xc028465e: Ioctl("NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO", NVOS56_PARAMETERS),
  0xc90046c8: Ioctl("NV_ESC_CARD_INFO", nv_ioctl_card_info_t),
  0xc00446c9: Ioctl("NV_ESC_REGISTER_FD", nv_ioctl_register_fd_t),
  0xc01046ce: Ioctl("NV_ESC_ALLOC_OS_EVENT", nv_ioctl_alloc_os_event_t),
  0xc01046cf: Ioctl("NV_ESC_FREE_OS_EVENT", nv_ioctl_free_os_event_t),
  0xc00c46d1: Ioctl("NV_ESC_STATUS_CODE", nv_ioctl_status_code_t),
  0xc04846d2: Ioctl("NV_ESC_CHECK_VERSION_STR", nv_ioctl_rm_api_version_t),
  0xc01046d3: Ioctl("NV_ESC_IOCTL_XFER_CMD", nv_ioctl_xfer_t),
  0xc00846d5: Ioctl("NV_ESC_QUERY_DEVICE_INTR", nv_ioctl_query_device_intr),
  0xc00846d6: Ioctl("NV_ESC_SYS_PARAMS", nv_ioctl_sys_params_t),
  0xca3046d9: Ioctl("NV_ESC_EXPORT_TO_DMABUF_FD", nv_ioctl_export_to_dma_buf_fd_t),
  0xc00846da: Ioctl("NV_ESC_WAIT_OPEN_COMPLETE", nv_ioctl_wait_open_complete_t),
}
