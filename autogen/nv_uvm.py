"""UVM: the ioctls of /dev/nvidia-uvm; their numbers carry no size.

Generated; do not edit. Source:
  NVIDIA/open-gpu-kernel-modules tag 580.142, licence MIT
    kernel-open/nvidia-uvm/uvm_ioctl.h sha256 937a3fe1c0b2f4d8cfc18443d41ad10ee85c4445f954cc5c67b460ded2dd4916
    kernel-open/nvidia-uvm/uvm_linux_ioctl.h sha256 0ffb5cf3679fb5e150745e54b72fab861e319823e419f36376468a60862c2748
    kernel-open/common/inc/nv_uvm_user_types.h sha256 2f83bf2cf6bd7d53ab5fdb08bd820658498e2e0fd50b2d3e51823e043449cfa8
    kernel-open/nvidia-uvm/uvm_types.h sha256 576803d1cf6b2933cc284dd2d5a47974649a1da27e1476d84d083c0f0f6355fa
Generator: tinyhw gen nv_uvm
"""
from __future__ import annotations

import ctypes

from tinyhw.core.ioctl import Ioctl
from tinyhw.core.layout import Struct, Union

UVM_RESERVE_VA = 1
UVM_RELEASE_VA = 2
UVM_REGION_COMMIT = 3
UVM_REGION_DECOMMIT = 4
UVM_REGION_SET_STREAM = 5
UVM_SET_STREAM_RUNNING = 6
UVM_MAX_STREAMS_PER_IOCTL_CALL = 0x20
UVM_SET_STREAM_STOPPED = 7
UVM_RUN_TEST = 9
UVM_EVENTS_OFFSET_BASE = 0x8000000000000000
UVM_COUNTERS_OFFSET_BASE = 0x4000000000000000
UVM_ADD_SESSION = 0xa
UVM_REMOVE_SESSION = 0xb
UVM_MAX_COUNTERS_PER_IOCTL_CALL = 0x20
UVM_ENABLE_COUNTERS = 0xc
UVM_MAP_COUNTER = 0xd
UVM_CREATE_EVENT_QUEUE = 0xe
UVM_REMOVE_EVENT_QUEUE = 0xf
UVM_MAP_EVENT_QUEUE = 0x10
UVM_EVENT_CTRL = 0x11
UVM_REGISTER_MPS_SERVER = 0x12
UVM_REGISTER_MPS_CLIENT = 0x13
UVM_GET_GPU_UUID_TABLE = 0x14
UVM_CREATE_RANGE_GROUP = 0x17
UVM_DESTROY_RANGE_GROUP = 0x18
UVM_REGISTER_GPU_VASPACE = 0x19
UVM_UNREGISTER_GPU_VASPACE = 0x1a
UVM_REGISTER_CHANNEL = 0x1b
UVM_UNREGISTER_CHANNEL = 0x1c
UVM_ENABLE_PEER_ACCESS = 0x1d
UVM_DISABLE_PEER_ACCESS = 0x1e
UVM_SET_RANGE_GROUP = 0x1f
UVM_MAP_EXTERNAL_ALLOCATION = 0x21
UVM_FREE = 0x22
UVM_MEM_MAP = 0x23
UVM_REGISTER_GPU = 0x25
UVM_UNREGISTER_GPU = 0x26
UVM_PAGEABLE_MEM_ACCESS = 0x27
UVM_MAX_RANGE_GROUPS_PER_IOCTL_CALL = 0x20
UVM_PREVENT_MIGRATION_RANGE_GROUPS = 0x28
UVM_ALLOW_MIGRATION_RANGE_GROUPS = 0x29
UVM_SET_PREFERRED_LOCATION = 0x2a
UVM_UNSET_PREFERRED_LOCATION = 0x2b
UVM_ENABLE_READ_DUPLICATION = 0x2c
UVM_DISABLE_READ_DUPLICATION = 0x2d
UVM_SET_ACCESSED_BY = 0x2e
UVM_UNSET_ACCESSED_BY = 0x2f
UVM_MIGRATE_FLAG_ASYNC = 1
UVM_MIGRATE_FLAG_SKIP_CPU_MAP = 2
UVM_MIGRATE_FLAG_NO_GPU_VA_SPACE = 4
UVM_MIGRATE_FLAGS_TEST_ALL = 6
UVM_MIGRATE_FLAGS_ALL = 7
UVM_MIGRATE = 0x33
UVM_MIGRATE_RANGE_GROUP = 0x35
UVM_ENABLE_SYSTEM_WIDE_ATOMICS = 0x36
UVM_DISABLE_SYSTEM_WIDE_ATOMICS = 0x37
UVM_TOOLS_INIT_EVENT_TRACKER = 0x38
UVM_TOOLS_SET_NOTIFICATION_THRESHOLD = 0x39
UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS = 0x3a
UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS = 0x3b
UVM_TOOLS_ENABLE_COUNTERS = 0x3c
UVM_TOOLS_DISABLE_COUNTERS = 0x3d
UVM_TOOLS_READ_PROCESS_MEMORY = 0x3e
UVM_TOOLS_WRITE_PROCESS_MEMORY = 0x3f
UVM_TOOLS_GET_PROCESSOR_UUID_TABLE = 0x40
UVM_MAP_DYNAMIC_PARALLELISM_REGION = 0x41
UVM_UNMAP_EXTERNAL = 0x42
UVM_TOOLS_FLUSH_EVENTS = 0x43
UVM_ALLOC_SEMAPHORE_POOL = 0x44
UVM_CLEAN_UP_ZOMBIE_RESOURCES = 0x45
UVM_PAGEABLE_MEM_ACCESS_ON_GPU = 0x46
UVM_POPULATE_PAGEABLE = 0x47
UVM_POPULATE_PAGEABLE_FLAG_ALLOW_MANAGED = 1
UVM_POPULATE_PAGEABLE_FLAG_SKIP_PROT_CHECK = 2
UVM_POPULATE_PAGEABLE_FLAG_ALLOW_SPECIAL = 4
UVM_POPULATE_PAGEABLE_FLAGS_INTERNAL = 4
UVM_POPULATE_PAGEABLE_FLAGS_TEST = 3
UVM_POPULATE_PAGEABLE_FLAGS_ALL = 7
UVM_VALIDATE_VA_RANGE = 0x48
UVM_CREATE_EXTERNAL_RANGE = 0x49
UVM_MAP_EXTERNAL_SPARSE = 0x4a
UVM_MM_INITIALIZE = 0x4b
UVM_TOOLS_INIT_EVENT_TRACKER_V2 = 0x4c
UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2 = 0x4d
UVM_ALLOC_DEVICE_P2P = 0x4e
UVM_CLEAR_ALL_ACCESS_COUNTERS = 0x4f
UVM_DISCARD = 0x50
UVM_IS_8_SUPPORTED = 0x7ff
UVM_INITIALIZE = 0x30000001
UVM_DEINITIALIZE = 0x30000002
UVM_PAGE_SIZE_DEFAULT = 0
UVM_PAGE_SIZE_4K = 0x1000
UVM_PAGE_SIZE_64K = 0x10000
UVM_PAGE_SIZE_128K = 0x20000
UVM_PAGE_SIZE_2M = 0x200000
UVM_PAGE_SIZE_512M = 0x20000000
UVM_PAGE_SIZE_256G = 0x4000000000
UVM_STREAM_INVALID = 0
UVM_STREAM_ALL = 2
UVM_STREAM_NONE = 3
UVM_PARENT_ID_MAX_SUB_PROCESSORS = 8
UVM_MAX_GPUS_V1 = 0x20
UVM_MAX_PROCESSORS_V1 = 0x21
UVM_MAX_GPUS = 0x100
UVM_MAX_PROCESSORS = 0x101
UVM_PROCESSOR_MASK_SIZE = 5
UVM_INIT_FLAGS_DISABLE_HMM = 1
UVM_INIT_FLAGS_MULTI_PROCESS_SHARING_MODE = 2
UVM_INIT_FLAGS_MASK = 3
UVM_RANGE_GROUP_ID_NONE = 0
UVM_DISCARD_FLAGS_UNMAP = 1
UVM_DEBUG_V1 = 1
UVM_COUNTER_NAME_FLAG_BYTES_XFER_HTD = 1
UVM_COUNTER_NAME_FLAG_BYTES_XFER_DTH = 2
UVM_COUNTER_NAME_FLAG_CPU_PAGE_FAULT_COUNT = 4
UVM_COUNTER_NAME_FLAG_WDDM_BYTES_XFER_BTH = 8
UVM_COUNTER_NAME_FLAG_WDDM_BYTES_XFER_HTB = 0x10
UVM_COUNTER_NAME_FLAG_BYTES_XFER_DTB = 0x20
UVM_COUNTER_NAME_FLAG_BYTES_XFER_BTD = 0x40
UVM_COUNTER_NAME_FLAG_PREFETCH_BYTES_XFER_HTD = 0x80
UVM_COUNTER_NAME_FLAG_PREFETCH_BYTES_XFER_DTH = 0x100
UVM_COUNTER_NAME_FLAG_GPU_PAGE_FAULT_COUNT = 0x200
UVM_COUNTER_CONFIG_STATE_DISABLE_REQUESTED = 0
UVM_COUNTER_CONFIG_STATE_ENABLE_REQUESTED = 1
UVM_EVENT_ENABLE_MEMORY_VIOLATION = 2
UVM_EVENT_ENABLE_CPU_FAULT = 2
UVM_EVENT_ENABLE_MIGRATION = 4
UVM_EVENT_ENABLE_GPU_FAULT = 8
UVM_EVENT_ENABLE_GPU_FAULT_REPLAY = 0x10
UVM_EVENT_ENABLE_FAULT_BUFFER_OVERFLOW = 0x20
UVM_EVENT_ENABLE_FATAL_FAULT = 0x40
UVM_EVENT_ENABLE_READ_DUPLICATE = 0x80
UVM_EVENT_ENABLE_READ_DUPLICATE_INVALIDATE = 0x100
UVM_EVENT_ENABLE_PAGE_SIZE_CHANGE = 0x200
UVM_EVENT_ENABLE_THRASHING_DETECTED = 0x400
UVM_EVENT_ENABLE_THROTTLING_START = 0x800
UVM_EVENT_ENABLE_THROTTLING_END = 0x1000
UVM_EVENT_ENABLE_MAP_REMOTE = 0x2000
UVM_EVENT_ENABLE_EVICTION = 0x4000
UVM_EVENT_ENABLE_TEST_ACCESS_COUNTER = 0x8000000000000000
UVM_EVENT_ENABLE_TEST_HMM_SPLIT_INVALIDATE = 0x4000000000000000
UvmGpuMappingTypeDefault = 0
UvmGpuMappingTypeReadWriteAtomic = 1
UvmGpuMappingTypeReadWrite = 2
UvmGpuMappingTypeReadOnly = 3
UvmGpuMappingTypeCount = 4
UvmGpuCachingTypeDefault = 0
UvmGpuCachingTypeForceUncached = 1
UvmGpuCachingTypeForceCached = 2
UvmGpuCachingTypeCount = 3
UvmGpuFormatTypeDefault = 0
UvmGpuFormatTypeBlockLinear = 1
UvmGpuFormatTypeCount = 2
UvmGpuFormatElementBitsDefault = 0
UvmGpuFormatElementBits8 = 1
UvmGpuFormatElementBits16 = 2
UvmGpuFormatElementBits32 = 4
UvmGpuFormatElementBits64 = 5
UvmGpuFormatElementBits128 = 6
UvmGpuFormatElementBitsCount = 7
UvmGpuCompressionTypeDefault = 0
UvmGpuCompressionTypeEnabledNoPlc = 1
UvmGpuCompressionTypeCount = 2


class nv_uuid(Struct):
  """16 bytes."""
  uuid: ctypes.Array[ctypes.c_uint8]
  _fields_ = [
    ("uuid", ctypes.c_uint8 * 16),
  ]


class UvmGpuMappingAttributes(Struct):
  """36 bytes."""
  gpuUuid: nv_uuid
  gpuMappingType: int
  gpuCachingType: int
  gpuFormatType: int
  gpuElementBits: int
  gpuCompressionType: int
  _fields_ = [
    ("gpuUuid", nv_uuid),
    ("gpuMappingType", ctypes.c_uint32),
    ("gpuCachingType", ctypes.c_uint32),
    ("gpuFormatType", ctypes.c_uint32),
    ("gpuElementBits", ctypes.c_uint32),
    ("gpuCompressionType", ctypes.c_uint32),
  ]


class UvmCounterConfig(Struct):
  """28 bytes."""
  scope: int
  name: int
  gpuid: nv_uuid
  state: int
  _fields_ = [
    ("scope", ctypes.c_uint32),
    ("name", ctypes.c_uint32),
    ("gpuid", nv_uuid),
    ("state", ctypes.c_uint32),
  ]


class UVM_RESERVE_VA_PARAMS(Struct):
  """24 bytes."""
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_RELEASE_VA_PARAMS(Struct):
  """24 bytes."""
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGION_COMMIT_PARAMS(Struct):
  """48 bytes."""
  requestedBase: int
  length: int
  streamId: int
  gpuUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("streamId", ctypes.c_uint64),
    ("gpuUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGION_DECOMMIT_PARAMS(Struct):
  """24 bytes."""
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGION_SET_STREAM_PARAMS(Struct):
  """48 bytes."""
  requestedBase: int
  length: int
  newStreamId: int
  gpuUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("newStreamId", ctypes.c_uint64),
    ("gpuUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_SET_STREAM_RUNNING_PARAMS(Struct):
  """16 bytes."""
  streamId: int
  rmStatus: int
  _fields_ = [
    ("streamId", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_SET_STREAM_STOPPED_PARAMS(Struct):
  """272 bytes."""
  streamIdArray: ctypes.Array[ctypes.c_uint64]
  nStreams: int
  rmStatus: int
  _fields_ = [
    ("streamIdArray", ctypes.c_uint64 * 32),
    ("nStreams", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_RUN_TEST_PARAMS_multiGpu(Struct):
  """20 bytes."""
  peerGpuUuid: nv_uuid
  peerId: int
  _fields_ = [
    ("peerGpuUuid", nv_uuid),
    ("peerId", ctypes.c_uint32),
  ]


class UVM_RUN_TEST_PARAMS(Struct):
  """44 bytes."""
  gpuUuid: nv_uuid
  test: int
  multiGpu: UVM_RUN_TEST_PARAMS_multiGpu
  rmStatus: int
  _fields_ = [
    ("gpuUuid", nv_uuid),
    ("test", ctypes.c_uint32),
    ("multiGpu", UVM_RUN_TEST_PARAMS_multiGpu),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ADD_SESSION_PARAMS(Struct):
  """24 bytes."""
  pidTarget: int
  countersBaseAddress: int
  sessionIndex: int
  rmStatus: int
  _fields_ = [
    ("pidTarget", ctypes.c_uint32),
    ("countersBaseAddress", ctypes.c_uint64),
    ("sessionIndex", ctypes.c_int32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REMOVE_SESSION_PARAMS(Struct):
  """8 bytes."""
  sessionIndex: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ENABLE_COUNTERS_PARAMS(Struct):
  """908 bytes."""
  sessionIndex: int
  config: ctypes.Array[UvmCounterConfig]
  count: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("config", UvmCounterConfig * 32),
    ("count", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MAP_COUNTER_PARAMS(Struct):
  """48 bytes."""
  sessionIndex: int
  scope: int
  counterName: int
  gpuUuid: nv_uuid
  addr: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("scope", ctypes.c_uint32),
    ("counterName", ctypes.c_uint32),
    ("gpuUuid", nv_uuid),
    ("addr", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_CREATE_EVENT_QUEUE_PARAMS(Struct):
  """32 bytes."""
  sessionIndex: int
  eventQueueIndex: int
  queueSize: int
  notificationCount: int
  timeStampType: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("eventQueueIndex", ctypes.c_uint32),
    ("queueSize", ctypes.c_uint64),
    ("notificationCount", ctypes.c_uint64),
    ("timeStampType", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REMOVE_EVENT_QUEUE_PARAMS(Struct):
  """12 bytes."""
  sessionIndex: int
  eventQueueIndex: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("eventQueueIndex", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MAP_EVENT_QUEUE_PARAMS(Struct):
  """56 bytes."""
  sessionIndex: int
  eventQueueIndex: int
  userRODataAddr: int
  userRWDataAddr: int
  readIndexAddr: int
  writeIndexAddr: int
  queueBufferAddr: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("eventQueueIndex", ctypes.c_uint32),
    ("userRODataAddr", ctypes.c_uint64),
    ("userRWDataAddr", ctypes.c_uint64),
    ("readIndexAddr", ctypes.c_uint64),
    ("writeIndexAddr", ctypes.c_uint64),
    ("queueBufferAddr", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_EVENT_CTRL_PARAMS(Struct):
  """20 bytes."""
  sessionIndex: int
  eventQueueIndex: int
  eventType: int
  enable: int
  rmStatus: int
  _fields_ = [
    ("sessionIndex", ctypes.c_int32),
    ("eventQueueIndex", ctypes.c_uint32),
    ("eventType", ctypes.c_int32),
    ("enable", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGISTER_MPS_SERVER_PARAMS(Struct):
  """536 bytes."""
  gpuUuidArray: ctypes.Array[nv_uuid]
  numGpus: int
  serverId: int
  rmStatus: int
  _fields_ = [
    ("gpuUuidArray", nv_uuid * 32),
    ("numGpus", ctypes.c_uint32),
    ("serverId", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGISTER_MPS_CLIENT_PARAMS(Struct):
  """16 bytes."""
  serverId: int
  rmStatus: int
  _fields_ = [
    ("serverId", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_GET_GPU_UUID_TABLE_PARAMS(Struct):
  """520 bytes."""
  gpuUuidArray: ctypes.Array[nv_uuid]
  validCount: int
  rmStatus: int
  _fields_ = [
    ("gpuUuidArray", nv_uuid * 32),
    ("validCount", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_CREATE_RANGE_GROUP_PARAMS(Struct):
  """16 bytes."""
  rangeGroupId: int
  rmStatus: int
  _fields_ = [
    ("rangeGroupId", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_DESTROY_RANGE_GROUP_PARAMS(Struct):
  """16 bytes."""
  rangeGroupId: int
  rmStatus: int
  _fields_ = [
    ("rangeGroupId", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGISTER_GPU_VASPACE_PARAMS(Struct):
  """32 bytes."""
  gpuUuid: nv_uuid
  rmCtrlFd: int
  hClient: int
  hVaSpace: int
  rmStatus: int
  _fields_ = [
    ("gpuUuid", nv_uuid),
    ("rmCtrlFd", ctypes.c_int32),
    ("hClient", ctypes.c_uint32),
    ("hVaSpace", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_UNREGISTER_GPU_VASPACE_PARAMS(Struct):
  """20 bytes."""
  gpuUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("gpuUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGISTER_CHANNEL_PARAMS(Struct):
  """56 bytes."""
  gpuUuid: nv_uuid
  rmCtrlFd: int
  hClient: int
  hChannel: int
  base: int
  length: int
  rmStatus: int
  _fields_ = [
    ("gpuUuid", nv_uuid),
    ("rmCtrlFd", ctypes.c_int32),
    ("hClient", ctypes.c_uint32),
    ("hChannel", ctypes.c_uint32),
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_UNREGISTER_CHANNEL_PARAMS(Struct):
  """28 bytes."""
  gpuUuid: nv_uuid
  hClient: int
  hChannel: int
  rmStatus: int
  _fields_ = [
    ("gpuUuid", nv_uuid),
    ("hClient", ctypes.c_uint32),
    ("hChannel", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ENABLE_PEER_ACCESS_PARAMS(Struct):
  """36 bytes."""
  gpuUuidA: nv_uuid
  gpuUuidB: nv_uuid
  rmStatus: int
  _fields_ = [
    ("gpuUuidA", nv_uuid),
    ("gpuUuidB", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_DISABLE_PEER_ACCESS_PARAMS(Struct):
  """36 bytes."""
  gpuUuidA: nv_uuid
  gpuUuidB: nv_uuid
  rmStatus: int
  _fields_ = [
    ("gpuUuidA", nv_uuid),
    ("gpuUuidB", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_SET_RANGE_GROUP_PARAMS(Struct):
  """32 bytes."""
  rangeGroupId: int
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("rangeGroupId", ctypes.c_uint64),
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(Struct):
  """9264 bytes."""
  base: int
  length: int
  offset: int
  perGpuAttributes: ctypes.Array[UvmGpuMappingAttributes]
  gpuAttributesCount: int
  rmCtrlFd: int
  hClient: int
  hMemory: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("offset", ctypes.c_uint64),
    ("perGpuAttributes", UvmGpuMappingAttributes * 256),
    ("gpuAttributesCount", ctypes.c_uint64),
    ("rmCtrlFd", ctypes.c_int32),
    ("hClient", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_FREE_PARAMS(Struct):
  """24 bytes."""
  base: int
  length: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MEM_MAP_PARAMS(Struct):
  """24 bytes."""
  regionBase: int
  regionLength: int
  rmStatus: int
  _fields_ = [
    ("regionBase", ctypes.c_uint64),
    ("regionLength", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_REGISTER_GPU_PARAMS(Struct):
  """40 bytes."""
  gpu_uuid: nv_uuid
  numaEnabled: int
  numaNodeId: int
  rmCtrlFd: int
  hClient: int
  hSmcPartRef: int
  rmStatus: int
  _fields_ = [
    ("gpu_uuid", nv_uuid),
    ("numaEnabled", ctypes.c_uint8),
    ("numaNodeId", ctypes.c_int32),
    ("rmCtrlFd", ctypes.c_int32),
    ("hClient", ctypes.c_uint32),
    ("hSmcPartRef", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_UNREGISTER_GPU_PARAMS(Struct):
  """20 bytes."""
  gpu_uuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("gpu_uuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_PAGEABLE_MEM_ACCESS_PARAMS(Struct):
  """8 bytes."""
  pageableMemAccess: int
  rmStatus: int
  _fields_ = [
    ("pageableMemAccess", ctypes.c_uint8),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS(Struct):
  """272 bytes."""
  rangeGroupIds: ctypes.Array[ctypes.c_uint64]
  numGroupIds: int
  rmStatus: int
  _fields_ = [
    ("rangeGroupIds", ctypes.c_uint64 * 32),
    ("numGroupIds", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS(Struct):
  """272 bytes."""
  rangeGroupIds: ctypes.Array[ctypes.c_uint64]
  numGroupIds: int
  rmStatus: int
  _fields_ = [
    ("rangeGroupIds", ctypes.c_uint64 * 32),
    ("numGroupIds", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_SET_PREFERRED_LOCATION_PARAMS(Struct):
  """40 bytes."""
  requestedBase: int
  length: int
  preferredLocation: nv_uuid
  preferredCpuNumaNode: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("preferredLocation", nv_uuid),
    ("preferredCpuNumaNode", ctypes.c_int32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_UNSET_PREFERRED_LOCATION_PARAMS(Struct):
  """24 bytes."""
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ENABLE_READ_DUPLICATION_PARAMS(Struct):
  """24 bytes."""
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_DISABLE_READ_DUPLICATION_PARAMS(Struct):
  """24 bytes."""
  requestedBase: int
  length: int
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_SET_ACCESSED_BY_PARAMS(Struct):
  """40 bytes."""
  requestedBase: int
  length: int
  accessedByUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("accessedByUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_UNSET_ACCESSED_BY_PARAMS(Struct):
  """40 bytes."""
  requestedBase: int
  length: int
  accessedByUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("requestedBase", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("accessedByUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MIGRATE_PARAMS(Struct):
  """80 bytes."""
  base: int
  length: int
  destinationUuid: nv_uuid
  flags: int
  semaphoreAddress: int
  semaphorePayload: int
  cpuNumaNode: int
  userSpaceStart: int
  userSpaceLength: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("destinationUuid", nv_uuid),
    ("flags", ctypes.c_uint32),
    ("semaphoreAddress", ctypes.c_uint64),
    ("semaphorePayload", ctypes.c_uint32),
    ("cpuNumaNode", ctypes.c_int32),
    ("userSpaceStart", ctypes.c_uint64),
    ("userSpaceLength", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MIGRATE_RANGE_GROUP_PARAMS(Struct):
  """32 bytes."""
  rangeGroupId: int
  destinationUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("rangeGroupId", ctypes.c_uint64),
    ("destinationUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS(Struct):
  """20 bytes."""
  gpu_uuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("gpu_uuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_DISABLE_SYSTEM_WIDE_ATOMICS_PARAMS(Struct):
  """20 bytes."""
  gpu_uuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("gpu_uuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS(Struct):
  """56 bytes."""
  queueBuffer: int
  queueBufferSize: int
  controlBuffer: int
  processor: nv_uuid
  allProcessors: int
  uvmFd: int
  rmStatus: int
  _fields_ = [
    ("queueBuffer", ctypes.c_uint64),
    ("queueBufferSize", ctypes.c_uint64),
    ("controlBuffer", ctypes.c_uint64),
    ("processor", nv_uuid),
    ("allProcessors", ctypes.c_uint32),
    ("uvmFd", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_SET_NOTIFICATION_THRESHOLD_PARAMS(Struct):
  """8 bytes."""
  notificationThreshold: int
  rmStatus: int
  _fields_ = [
    ("notificationThreshold", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS_PARAMS(Struct):
  """16 bytes."""
  eventTypeFlags: int
  rmStatus: int
  _fields_ = [
    ("eventTypeFlags", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS_PARAMS(Struct):
  """16 bytes."""
  eventTypeFlags: int
  rmStatus: int
  _fields_ = [
    ("eventTypeFlags", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_ENABLE_COUNTERS_PARAMS(Struct):
  """16 bytes."""
  counterTypeFlags: int
  rmStatus: int
  _fields_ = [
    ("counterTypeFlags", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_DISABLE_COUNTERS_PARAMS(Struct):
  """16 bytes."""
  counterTypeFlags: int
  rmStatus: int
  _fields_ = [
    ("counterTypeFlags", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS(Struct):
  """40 bytes."""
  buffer: int
  size: int
  targetVa: int
  bytesRead: int
  rmStatus: int
  _fields_ = [
    ("buffer", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("targetVa", ctypes.c_uint64),
    ("bytesRead", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS(Struct):
  """40 bytes."""
  buffer: int
  size: int
  targetVa: int
  bytesWritten: int
  rmStatus: int
  _fields_ = [
    ("buffer", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("targetVa", ctypes.c_uint64),
    ("bytesWritten", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS(Struct):
  """16 bytes."""
  tablePtr: int
  rmStatus: int
  _fields_ = [
    ("tablePtr", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS(Struct):
  """40 bytes."""
  base: int
  length: int
  gpuUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("gpuUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_UNMAP_EXTERNAL_PARAMS(Struct):
  """40 bytes."""
  base: int
  length: int
  gpuUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("gpuUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_TOOLS_FLUSH_EVENTS_PARAMS(Struct):
  """4 bytes."""
  rmStatus: int
  _fields_ = [
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ALLOC_SEMAPHORE_POOL_PARAMS(Struct):
  """9248 bytes."""
  base: int
  length: int
  perGpuAttributes: ctypes.Array[UvmGpuMappingAttributes]
  gpuAttributesCount: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("perGpuAttributes", UvmGpuMappingAttributes * 256),
    ("gpuAttributesCount", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS(Struct):
  """4 bytes."""
  rmStatus: int
  _fields_ = [
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS(Struct):
  """24 bytes."""
  gpu_uuid: nv_uuid
  pageableMemAccess: int
  rmStatus: int
  _fields_ = [
    ("gpu_uuid", nv_uuid),
    ("pageableMemAccess", ctypes.c_uint8),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_POPULATE_PAGEABLE_PARAMS(Struct):
  """24 bytes."""
  base: int
  length: int
  flags: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("flags", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_VALIDATE_VA_RANGE_PARAMS(Struct):
  """24 bytes."""
  base: int
  length: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_CREATE_EXTERNAL_RANGE_PARAMS(Struct):
  """24 bytes."""
  base: int
  length: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MAP_EXTERNAL_SPARSE_PARAMS(Struct):
  """40 bytes."""
  base: int
  length: int
  gpuUuid: nv_uuid
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("gpuUuid", nv_uuid),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_MM_INITIALIZE_PARAMS(Struct):
  """8 bytes."""
  uvmFd: int
  rmStatus: int
  _fields_ = [
    ("uvmFd", ctypes.c_int32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_ALLOC_DEVICE_P2P_PARAMS(Struct):
  """56 bytes."""
  base: int
  length: int
  offset: int
  gpuUuid: nv_uuid
  rmCtrlFd: int
  hClient: int
  hMemory: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("offset", ctypes.c_uint64),
    ("gpuUuid", nv_uuid),
    ("rmCtrlFd", ctypes.c_int32),
    ("hClient", ctypes.c_uint32),
    ("hMemory", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS(Struct):
  """4 bytes."""
  rmStatus: int
  _fields_ = [
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_DISCARD_PARAMS(Struct):
  """32 bytes."""
  base: int
  length: int
  flags: int
  rmStatus: int
  _fields_ = [
    ("base", ctypes.c_uint64),
    ("length", ctypes.c_uint64),
    ("flags", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_IS_8_SUPPORTED_PARAMS(Struct):
  """8 bytes."""
  is8Supported: int
  rmStatus: int
  _fields_ = [
    ("is8Supported", ctypes.c_uint32),
    ("rmStatus", ctypes.c_uint32),
  ]


class UVM_INITIALIZE_PARAMS(Struct):
  """16 bytes."""
  flags: int
  rmStatus: int
  _fields_ = [
    ("flags", ctypes.c_uint64),
    ("rmStatus", ctypes.c_uint32),
  ]


IOCTLS: dict[int, Ioctl] = {  # by request number
  UVM_RESERVE_VA: Ioctl("UVM_RESERVE_VA", UVM_RESERVE_VA_PARAMS),
  UVM_RELEASE_VA: Ioctl("UVM_RELEASE_VA", UVM_RELEASE_VA_PARAMS),
  UVM_REGION_COMMIT: Ioctl("UVM_REGION_COMMIT", UVM_REGION_COMMIT_PARAMS),
  UVM_REGION_DECOMMIT: Ioctl("UVM_REGION_DECOMMIT", UVM_REGION_DECOMMIT_PARAMS),
  UVM_REGION_SET_STREAM: Ioctl("UVM_REGION_SET_STREAM", UVM_REGION_SET_STREAM_PARAMS),
  UVM_SET_STREAM_RUNNING: Ioctl("UVM_SET_STREAM_RUNNING", UVM_SET_STREAM_RUNNING_PARAMS),
  UVM_SET_STREAM_STOPPED: Ioctl("UVM_SET_STREAM_STOPPED", UVM_SET_STREAM_STOPPED_PARAMS),
  UVM_RUN_TEST: Ioctl("UVM_RUN_TEST", UVM_RUN_TEST_PARAMS),
  UVM_ADD_SESSION: Ioctl("UVM_ADD_SESSION", UVM_ADD_SESSION_PARAMS),
  UVM_REMOVE_SESSION: Ioctl("UVM_REMOVE_SESSION", UVM_REMOVE_SESSION_PARAMS),
  UVM_ENABLE_COUNTERS: Ioctl("UVM_ENABLE_COUNTERS", UVM_ENABLE_COUNTERS_PARAMS),
  UVM_MAP_COUNTER: Ioctl("UVM_MAP_COUNTER", UVM_MAP_COUNTER_PARAMS),
  UVM_CREATE_EVENT_QUEUE: Ioctl("UVM_CREATE_EVENT_QUEUE", UVM_CREATE_EVENT_QUEUE_PARAMS),
  UVM_REMOVE_EVENT_QUEUE: Ioctl("UVM_REMOVE_EVENT_QUEUE", UVM_REMOVE_EVENT_QUEUE_PARAMS),
  UVM_MAP_EVENT_QUEUE: Ioctl("UVM_MAP_EVENT_QUEUE", UVM_MAP_EVENT_QUEUE_PARAMS),
  UVM_EVENT_CTRL: Ioctl("UVM_EVENT_CTRL", UVM_EVENT_CTRL_PARAMS),
  UVM_REGISTER_MPS_SERVER: Ioctl("UVM_REGISTER_MPS_SERVER", UVM_REGISTER_MPS_SERVER_PARAMS),
  UVM_REGISTER_MPS_CLIENT: Ioctl("UVM_REGISTER_MPS_CLIENT", UVM_REGISTER_MPS_CLIENT_PARAMS),
  UVM_GET_GPU_UUID_TABLE: Ioctl("UVM_GET_GPU_UUID_TABLE", UVM_GET_GPU_UUID_TABLE_PARAMS),
  UVM_CREATE_RANGE_GROUP: Ioctl("UVM_CREATE_RANGE_GROUP", UVM_CREATE_RANGE_GROUP_PARAMS),
  UVM_DESTROY_RANGE_GROUP: Ioctl("UVM_DESTROY_RANGE_GROUP", UVM_DESTROY_RANGE_GROUP_PARAMS),
  UVM_REGISTER_GPU_VASPACE: Ioctl("UVM_REGISTER_GPU_VASPACE", UVM_REGISTER_GPU_VASPACE_PARAMS),
  UVM_UNREGISTER_GPU_VASPACE: Ioctl("UVM_UNREGISTER_GPU_VASPACE", UVM_UNREGISTER_GPU_VASPACE_PARAMS),
  UVM_REGISTER_CHANNEL: Ioctl("UVM_REGISTER_CHANNEL", UVM_REGISTER_CHANNEL_PARAMS),
  UVM_UNREGISTER_CHANNEL: Ioctl("UVM_UNREGISTER_CHANNEL", UVM_UNREGISTER_CHANNEL_PARAMS),
  UVM_ENABLE_PEER_ACCESS: Ioctl("UVM_ENABLE_PEER_ACCESS", UVM_ENABLE_PEER_ACCESS_PARAMS),
  UVM_DISABLE_PEER_ACCESS: Ioctl("UVM_DISABLE_PEER_ACCESS", UVM_DISABLE_PEER_ACCESS_PARAMS),
  UVM_SET_RANGE_GROUP: Ioctl("UVM_SET_RANGE_GROUP", UVM_SET_RANGE_GROUP_PARAMS),
  UVM_MAP_EXTERNAL_ALLOCATION: Ioctl("UVM_MAP_EXTERNAL_ALLOCATION", UVM_MAP_EXTERNAL_ALLOCATION_PARAMS),
  UVM_FREE: Ioctl("UVM_FREE", UVM_FREE_PARAMS),
  UVM_MEM_MAP: Ioctl("UVM_MEM_MAP", UVM_MEM_MAP_PARAMS),
  UVM_REGISTER_GPU: Ioctl("UVM_REGISTER_GPU", UVM_REGISTER_GPU_PARAMS),
  UVM_UNREGISTER_GPU: Ioctl("UVM_UNREGISTER_GPU", UVM_UNREGISTER_GPU_PARAMS),
  UVM_PAGEABLE_MEM_ACCESS: Ioctl("UVM_PAGEABLE_MEM_ACCESS", UVM_PAGEABLE_MEM_ACCESS_PARAMS),
  UVM_PREVENT_MIGRATION_RANGE_GROUPS: Ioctl("UVM_PREVENT_MIGRATION_RANGE_GROUPS", UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS),
  UVM_ALLOW_MIGRATION_RANGE_GROUPS: Ioctl("UVM_ALLOW_MIGRATION_RANGE_GROUPS", UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS),
  UVM_SET_PREFERRED_LOCATION: Ioctl("UVM_SET_PREFERRED_LOCATION", UVM_SET_PREFERRED_LOCATION_PARAMS),
  UVM_UNSET_PREFERRED_LOCATION: Ioctl("UVM_UNSET_PREFERRED_LOCATION", UVM_UNSET_PREFERRED_LOCATION_PARAMS),
  UVM_ENABLE_READ_DUPLICATION: Ioctl("UVM_ENABLE_READ_DUPLICATION", UVM_ENABLE_READ_DUPLICATION_PARAMS),
  UVM_DISABLE_READ_DUPLICATION: Ioctl("UVM_DISABLE_READ_DUPLICATION", UVM_DISABLE_READ_DUPLICATION_PARAMS),
  UVM_SET_ACCESSED_BY: Ioctl("UVM_SET_ACCESSED_BY", UVM_SET_ACCESSED_BY_PARAMS),
  UVM_UNSET_ACCESSED_BY: Ioctl("UVM_UNSET_ACCESSED_BY", UVM_UNSET_ACCESSED_BY_PARAMS),
  UVM_MIGRATE: Ioctl("UVM_MIGRATE", UVM_MIGRATE_PARAMS),
  UVM_MIGRATE_RANGE_GROUP: Ioctl("UVM_MIGRATE_RANGE_GROUP", UVM_MIGRATE_RANGE_GROUP_PARAMS),
  UVM_ENABLE_SYSTEM_WIDE_ATOMICS: Ioctl("UVM_ENABLE_SYSTEM_WIDE_ATOMICS", UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS),
  UVM_DISABLE_SYSTEM_WIDE_ATOMICS: Ioctl("UVM_DISABLE_SYSTEM_WIDE_ATOMICS", UVM_DISABLE_SYSTEM_WIDE_ATOMICS_PARAMS),
  UVM_TOOLS_INIT_EVENT_TRACKER: Ioctl("UVM_TOOLS_INIT_EVENT_TRACKER", UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS),
  UVM_TOOLS_SET_NOTIFICATION_THRESHOLD: Ioctl("UVM_TOOLS_SET_NOTIFICATION_THRESHOLD", UVM_TOOLS_SET_NOTIFICATION_THRESHOLD_PARAMS),
  UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS: Ioctl("UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS", UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS_PARAMS),
  UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS: Ioctl("UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS", UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS_PARAMS),
  UVM_TOOLS_ENABLE_COUNTERS: Ioctl("UVM_TOOLS_ENABLE_COUNTERS", UVM_TOOLS_ENABLE_COUNTERS_PARAMS),
  UVM_TOOLS_DISABLE_COUNTERS: Ioctl("UVM_TOOLS_DISABLE_COUNTERS", UVM_TOOLS_DISABLE_COUNTERS_PARAMS),
  UVM_TOOLS_READ_PROCESS_MEMORY: Ioctl("UVM_TOOLS_READ_PROCESS_MEMORY", UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS),
  UVM_TOOLS_WRITE_PROCESS_MEMORY: Ioctl("UVM_TOOLS_WRITE_PROCESS_MEMORY", UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS),
  UVM_TOOLS_GET_PROCESSOR_UUID_TABLE: Ioctl("UVM_TOOLS_GET_PROCESSOR_UUID_TABLE", UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS),
  UVM_MAP_DYNAMIC_PARALLELISM_REGION: Ioctl("UVM_MAP_DYNAMIC_PARALLELISM_REGION", UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS),
  UVM_UNMAP_EXTERNAL: Ioctl("UVM_UNMAP_EXTERNAL", UVM_UNMAP_EXTERNAL_PARAMS),
  UVM_TOOLS_FLUSH_EVENTS: Ioctl("UVM_TOOLS_FLUSH_EVENTS", UVM_TOOLS_FLUSH_EVENTS_PARAMS),
  UVM_ALLOC_SEMAPHORE_POOL: Ioctl("UVM_ALLOC_SEMAPHORE_POOL", UVM_ALLOC_SEMAPHORE_POOL_PARAMS),
  UVM_CLEAN_UP_ZOMBIE_RESOURCES: Ioctl("UVM_CLEAN_UP_ZOMBIE_RESOURCES", UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS),
  UVM_PAGEABLE_MEM_ACCESS_ON_GPU: Ioctl("UVM_PAGEABLE_MEM_ACCESS_ON_GPU", UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS),
  UVM_POPULATE_PAGEABLE: Ioctl("UVM_POPULATE_PAGEABLE", UVM_POPULATE_PAGEABLE_PARAMS),
  UVM_VALIDATE_VA_RANGE: Ioctl("UVM_VALIDATE_VA_RANGE", UVM_VALIDATE_VA_RANGE_PARAMS),
  UVM_CREATE_EXTERNAL_RANGE: Ioctl("UVM_CREATE_EXTERNAL_RANGE", UVM_CREATE_EXTERNAL_RANGE_PARAMS),
  UVM_MAP_EXTERNAL_SPARSE: Ioctl("UVM_MAP_EXTERNAL_SPARSE", UVM_MAP_EXTERNAL_SPARSE_PARAMS),
  UVM_MM_INITIALIZE: Ioctl("UVM_MM_INITIALIZE", UVM_MM_INITIALIZE_PARAMS),
  UVM_TOOLS_INIT_EVENT_TRACKER_V2: Ioctl("UVM_TOOLS_INIT_EVENT_TRACKER_V2", None),
  UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2: Ioctl("UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2", None),
  UVM_ALLOC_DEVICE_P2P: Ioctl("UVM_ALLOC_DEVICE_P2P", UVM_ALLOC_DEVICE_P2P_PARAMS),
  UVM_CLEAR_ALL_ACCESS_COUNTERS: Ioctl("UVM_CLEAR_ALL_ACCESS_COUNTERS", UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS),
  UVM_DISCARD: Ioctl("UVM_DISCARD", UVM_DISCARD_PARAMS),
  UVM_IS_8_SUPPORTED: Ioctl("UVM_IS_8_SUPPORTED", UVM_IS_8_SUPPORTED_PARAMS),
  UVM_INITIALIZE: Ioctl("UVM_INITIALIZE", UVM_INITIALIZE_PARAMS),
  UVM_DEINITIALIZE: Ioctl("UVM_DEINITIALIZE", None),
}
