"""KFD 1.17: the ioctls of /dev/kfd and their structs.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    include/uapi/linux/kfd_ioctl.h sha256 7ba0d8aed030cf2ea061253b148bc5a06c38c1e60739b9a6d918ddac921de70d
    include/uapi/drm/drm.h sha256 3ab6ac01bf91067aed96b70d7fa7847a86e7f726d74278151f085143688659cc
    include/uapi/drm/drm_mode.h sha256 3a5bad960e64a6374e046450dcb637145f4127950659a6429561d9d8faf4d14b
Generator: tinyhw gen kfd
"""
from __future__ import annotations

import ctypes

from tinyhw.core.ioctl import Ioctl
from tinyhw.core.layout import Struct, Union

KFD_IOCTL_MAJOR_VERSION = 1
KFD_IOCTL_MINOR_VERSION = 0x11
KFD_IOC_QUEUE_TYPE_COMPUTE = 0
KFD_IOC_QUEUE_TYPE_SDMA = 1
KFD_IOC_QUEUE_TYPE_COMPUTE_AQL = 2
KFD_IOC_QUEUE_TYPE_SDMA_XGMI = 3
KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID = 4
KFD_MAX_QUEUE_PERCENTAGE = 0x64
KFD_MAX_QUEUE_PRIORITY = 0xf
KFD_MIN_QUEUE_RING_SIZE = 0x400
KFD_IOC_CACHE_POLICY_COHERENT = 0
KFD_IOC_CACHE_POLICY_NONCOHERENT = 1
NUM_OF_SUPPORTED_GPUS = 7
MAX_ALLOWED_NUM_POINTS = 0x64
MAX_ALLOWED_AW_BUFF_SIZE = 0x1000
MAX_ALLOWED_WAC_BUFF_SIZE = 0x80
KFD_INVALID_FD = 0xffffffff
KFD_IOC_EVENT_SIGNAL = 0
KFD_IOC_EVENT_NODECHANGE = 1
KFD_IOC_EVENT_DEVICESTATECHANGE = 2
KFD_IOC_EVENT_HW_EXCEPTION = 3
KFD_IOC_EVENT_SYSTEM_EVENT = 4
KFD_IOC_EVENT_DEBUG_EVENT = 5
KFD_IOC_EVENT_PROFILE_EVENT = 6
KFD_IOC_EVENT_QUEUE_EVENT = 7
KFD_IOC_EVENT_MEMORY = 8
KFD_IOC_WAIT_RESULT_COMPLETE = 0
KFD_IOC_WAIT_RESULT_TIMEOUT = 1
KFD_IOC_WAIT_RESULT_FAIL = 2
KFD_SIGNAL_EVENT_LIMIT = 0x1000
KFD_HW_EXCEPTION_WHOLE_GPU_RESET = 0
KFD_HW_EXCEPTION_PER_ENGINE_RESET = 1
KFD_HW_EXCEPTION_GPU_HANG = 0
KFD_HW_EXCEPTION_ECC = 1
KFD_MEM_ERR_NO_RAS = 0
KFD_MEM_ERR_SRAM_ECC = 1
KFD_MEM_ERR_POISON_CONSUMED = 2
KFD_MEM_ERR_GPU_HANG = 3
KFD_IOC_ALLOC_MEM_FLAGS_VRAM = 1
KFD_IOC_ALLOC_MEM_FLAGS_GTT = 2
KFD_IOC_ALLOC_MEM_FLAGS_USERPTR = 4
KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL = 8
KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP = 0x10
KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE = -0x80000000
KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE = 0x40000000
KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC = 0x20000000
KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE = 0x10000000
KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM = 0x8000000
KFD_IOC_ALLOC_MEM_FLAGS_COHERENT = 0x4000000
KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED = 0x2000000
KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT = 0x1000000
KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS = 0x800000
KFD_SMI_EVENT_MSG_SIZE = 0x60
KFD_IOCTL_SVM_FLAG_HOST_ACCESS = 1
KFD_IOCTL_SVM_FLAG_COHERENT = 2
KFD_IOCTL_SVM_FLAG_HIVE_LOCAL = 4
KFD_IOCTL_SVM_FLAG_GPU_RO = 8
KFD_IOCTL_SVM_FLAG_GPU_EXEC = 0x10
KFD_IOCTL_SVM_FLAG_GPU_READ_MOSTLY = 0x20
KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED = 0x40
KFD_IOCTL_SVM_FLAG_EXT_COHERENT = 0x80
KFD_EC_MASK_QUEUE = 0x607f803f
KFD_EC_MASK_DEVICE = 0xf80000000
KFD_EC_MASK_PROCESS = 0x1800000000000
KFD_EC_MASK_PACKET = 0x7f8000
KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK = 1
KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK = 2
KFD_DBG_QUEUE_ERROR_BIT = 0x1e
KFD_DBG_QUEUE_INVALID_BIT = 0x1f
KFD_DBG_QUEUE_ERROR_MASK = 0x40000000
KFD_DBG_QUEUE_INVALID_MASK = -0x80000000
AMDKFD_IOCTL_BASE = 0x4b
AMDKFD_IOC_GET_VERSION = 0x80084b01
AMDKFD_IOC_CREATE_QUEUE = 0xc0604b02
AMDKFD_IOC_DESTROY_QUEUE = 0xc0084b03
AMDKFD_IOC_SET_MEMORY_POLICY = 0x40204b04
AMDKFD_IOC_GET_CLOCK_COUNTERS = 0xc0284b05
AMDKFD_IOC_GET_PROCESS_APERTURES = 0x81904b06
AMDKFD_IOC_UPDATE_QUEUE = 0x40184b07
AMDKFD_IOC_CREATE_EVENT = 0xc0204b08
AMDKFD_IOC_DESTROY_EVENT = 0x40084b09
AMDKFD_IOC_SET_EVENT = 0x40084b0a
AMDKFD_IOC_RESET_EVENT = 0x40084b0b
AMDKFD_IOC_WAIT_EVENTS = 0xc0184b0c
AMDKFD_IOC_DBG_REGISTER_DEPRECATED = 0x40084b0d
AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED = 0x40084b0e
AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED = 0x40104b0f
AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED = 0x40104b10
AMDKFD_IOC_SET_SCRATCH_BACKING_VA = 0xc0104b11
AMDKFD_IOC_GET_TILE_CONFIG = 0xc0284b12
AMDKFD_IOC_SET_TRAP_HANDLER = 0x40184b13
AMDKFD_IOC_GET_PROCESS_APERTURES_NEW = 0xc0104b14
AMDKFD_IOC_ACQUIRE_VM = 0x40084b15
AMDKFD_IOC_ALLOC_MEMORY_OF_GPU = 0xc0284b16
AMDKFD_IOC_FREE_MEMORY_OF_GPU = 0x40084b17
AMDKFD_IOC_MAP_MEMORY_TO_GPU = 0xc0184b18
AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU = 0xc0184b19
AMDKFD_IOC_SET_CU_MASK = 0x40104b1a
AMDKFD_IOC_GET_QUEUE_WAVE_STATE = 0xc0184b1b
AMDKFD_IOC_GET_DMABUF_INFO = 0xc0204b1c
AMDKFD_IOC_IMPORT_DMABUF = 0xc0184b1d
AMDKFD_IOC_ALLOC_QUEUE_GWS = 0xc0104b1e
AMDKFD_IOC_SMI_EVENTS = 0xc0084b1f
AMDKFD_IOC_SVM = 0xc0184b20
AMDKFD_IOC_SET_XNACK_MODE = 0xc0044b21
AMDKFD_IOC_CRIU_OP = 0xc0384b22
AMDKFD_IOC_AVAILABLE_MEMORY = 0xc0104b23
AMDKFD_IOC_EXPORT_DMABUF = 0xc0104b24
AMDKFD_IOC_RUNTIME_ENABLE = 0xc0104b25
AMDKFD_IOC_DBG_TRAP = 0xc0204b26
AMDKFD_COMMAND_START = 1
AMDKFD_COMMAND_END = 0x27

# enum kfd_smi_event
KFD_SMI_EVENT_NONE = 0
KFD_SMI_EVENT_VMFAULT = 1
KFD_SMI_EVENT_THERMAL_THROTTLE = 2
KFD_SMI_EVENT_GPU_PRE_RESET = 3
KFD_SMI_EVENT_GPU_POST_RESET = 4
KFD_SMI_EVENT_MIGRATE_START = 5
KFD_SMI_EVENT_MIGRATE_END = 6
KFD_SMI_EVENT_PAGE_FAULT_START = 7
KFD_SMI_EVENT_PAGE_FAULT_END = 8
KFD_SMI_EVENT_QUEUE_EVICTION = 9
KFD_SMI_EVENT_QUEUE_RESTORE = 0xa
KFD_SMI_EVENT_UNMAP_FROM_GPU = 0xb
KFD_SMI_EVENT_ALL_PROCESS = 0x40

# enum KFD_MIGRATE_TRIGGERS
KFD_MIGRATE_TRIGGER_PREFETCH = 0
KFD_MIGRATE_TRIGGER_PAGEFAULT_GPU = 1
KFD_MIGRATE_TRIGGER_PAGEFAULT_CPU = 2
KFD_MIGRATE_TRIGGER_TTM_EVICTION = 3

# enum KFD_QUEUE_EVICTION_TRIGGERS
KFD_QUEUE_EVICTION_TRIGGER_SVM = 0
KFD_QUEUE_EVICTION_TRIGGER_USERPTR = 1
KFD_QUEUE_EVICTION_TRIGGER_TTM = 2
KFD_QUEUE_EVICTION_TRIGGER_SUSPEND = 3
KFD_QUEUE_EVICTION_CRIU_CHECKPOINT = 4
KFD_QUEUE_EVICTION_CRIU_RESTORE = 5

# enum KFD_SVM_UNMAP_TRIGGERS
KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY = 0
KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY_MIGRATE = 1
KFD_SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU = 2

# enum kfd_criu_op
KFD_CRIU_OP_PROCESS_INFO = 0
KFD_CRIU_OP_CHECKPOINT = 1
KFD_CRIU_OP_UNPAUSE = 2
KFD_CRIU_OP_RESTORE = 3
KFD_CRIU_OP_RESUME = 4

# enum kfd_mmio_remap
KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL = 0
KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL = 4

# enum kfd_ioctl_svm_op
KFD_IOCTL_SVM_OP_SET_ATTR = 0
KFD_IOCTL_SVM_OP_GET_ATTR = 1

# enum kfd_ioctl_svm_location
KFD_IOCTL_SVM_LOCATION_SYSMEM = 0
KFD_IOCTL_SVM_LOCATION_UNDEFINED = 0xffffffff

# enum kfd_ioctl_svm_attr_type
KFD_IOCTL_SVM_ATTR_PREFERRED_LOC = 0
KFD_IOCTL_SVM_ATTR_PREFETCH_LOC = 1
KFD_IOCTL_SVM_ATTR_ACCESS = 2
KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE = 3
KFD_IOCTL_SVM_ATTR_NO_ACCESS = 4
KFD_IOCTL_SVM_ATTR_SET_FLAGS = 5
KFD_IOCTL_SVM_ATTR_CLR_FLAGS = 6
KFD_IOCTL_SVM_ATTR_GRANULARITY = 7

# enum kfd_dbg_trap_override_mode
KFD_DBG_TRAP_OVERRIDE_OR = 0
KFD_DBG_TRAP_OVERRIDE_REPLACE = 1

# enum kfd_dbg_trap_mask
KFD_DBG_TRAP_MASK_FP_INVALID = 1
KFD_DBG_TRAP_MASK_FP_INPUT_DENORMAL = 2
KFD_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO = 4
KFD_DBG_TRAP_MASK_FP_OVERFLOW = 8
KFD_DBG_TRAP_MASK_FP_UNDERFLOW = 0x10
KFD_DBG_TRAP_MASK_FP_INEXACT = 0x20
KFD_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO = 0x40
KFD_DBG_TRAP_MASK_DBG_ADDRESS_WATCH = 0x80
KFD_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION = 0x100
KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START = 0x40000000
KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END = -0x80000000

# enum kfd_dbg_trap_wave_launch_mode
KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL = 0
KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT = 1
KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG = 3

# enum kfd_dbg_trap_address_watch_mode
KFD_DBG_TRAP_ADDRESS_WATCH_MODE_READ = 0
KFD_DBG_TRAP_ADDRESS_WATCH_MODE_NONREAD = 1
KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ATOMIC = 2
KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ALL = 3

# enum kfd_dbg_trap_flags
KFD_DBG_TRAP_FLAG_SINGLE_MEM_OP = 1
KFD_DBG_TRAP_FLAG_SINGLE_ALU_OP = 2

# enum kfd_dbg_trap_exception_code
EC_NONE = 0
EC_QUEUE_WAVE_ABORT = 1
EC_QUEUE_WAVE_TRAP = 2
EC_QUEUE_WAVE_MATH_ERROR = 3
EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4
EC_QUEUE_WAVE_MEMORY_VIOLATION = 5
EC_QUEUE_WAVE_APERTURE_VIOLATION = 6
EC_QUEUE_PACKET_DISPATCH_DIM_INVALID = 0x10
EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 0x11
EC_QUEUE_PACKET_DISPATCH_CODE_INVALID = 0x12
EC_QUEUE_PACKET_RESERVED = 0x13
EC_QUEUE_PACKET_UNSUPPORTED = 0x14
EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 0x15
EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 0x16
EC_QUEUE_PACKET_VENDOR_UNSUPPORTED = 0x17
EC_QUEUE_PREEMPTION_ERROR = 0x1e
EC_QUEUE_NEW = 0x1f
EC_DEVICE_QUEUE_DELETE = 0x20
EC_DEVICE_MEMORY_VIOLATION = 0x21
EC_DEVICE_RAS_ERROR = 0x22
EC_DEVICE_FATAL_HALT = 0x23
EC_DEVICE_NEW = 0x24
EC_PROCESS_RUNTIME = 0x30
EC_PROCESS_DEVICE_REMOVE = 0x31
EC_MAX = 0x32

# enum kfd_dbg_runtime_state
DEBUG_RUNTIME_STATE_DISABLED = 0
DEBUG_RUNTIME_STATE_ENABLED = 1
DEBUG_RUNTIME_STATE_ENABLED_BUSY = 2
DEBUG_RUNTIME_STATE_ENABLED_ERROR = 3

# enum kfd_dbg_trap_operations
KFD_IOC_DBG_TRAP_ENABLE = 0
KFD_IOC_DBG_TRAP_DISABLE = 1
KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT = 2
KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED = 3
KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE = 4
KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE = 5
KFD_IOC_DBG_TRAP_SUSPEND_QUEUES = 6
KFD_IOC_DBG_TRAP_RESUME_QUEUES = 7
KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH = 8
KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH = 9
KFD_IOC_DBG_TRAP_SET_FLAGS = 0xa
KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT = 0xb
KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO = 0xc
KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT = 0xd
KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT = 0xe

ENUMS: dict[str, dict[str, int]] = {  # enum -> member -> value
  "kfd_smi_event": {"KFD_SMI_EVENT_NONE": 0, "KFD_SMI_EVENT_VMFAULT": 1, "KFD_SMI_EVENT_THERMAL_THROTTLE": 2, "KFD_SMI_EVENT_GPU_PRE_RESET": 3, "KFD_SMI_EVENT_GPU_POST_RESET": 4, "KFD_SMI_EVENT_MIGRATE_START": 5, "KFD_SMI_EVENT_MIGRATE_END": 6, "KFD_SMI_EVENT_PAGE_FAULT_START": 7, "KFD_SMI_EVENT_PAGE_FAULT_END": 8, "KFD_SMI_EVENT_QUEUE_EVICTION": 9, "KFD_SMI_EVENT_QUEUE_RESTORE": 10, "KFD_SMI_EVENT_UNMAP_FROM_GPU": 11, "KFD_SMI_EVENT_ALL_PROCESS": 64},
  "KFD_MIGRATE_TRIGGERS": {"KFD_MIGRATE_TRIGGER_PREFETCH": 0, "KFD_MIGRATE_TRIGGER_PAGEFAULT_GPU": 1, "KFD_MIGRATE_TRIGGER_PAGEFAULT_CPU": 2, "KFD_MIGRATE_TRIGGER_TTM_EVICTION": 3},
  "KFD_QUEUE_EVICTION_TRIGGERS": {"KFD_QUEUE_EVICTION_TRIGGER_SVM": 0, "KFD_QUEUE_EVICTION_TRIGGER_USERPTR": 1, "KFD_QUEUE_EVICTION_TRIGGER_TTM": 2, "KFD_QUEUE_EVICTION_TRIGGER_SUSPEND": 3, "KFD_QUEUE_EVICTION_CRIU_CHECKPOINT": 4, "KFD_QUEUE_EVICTION_CRIU_RESTORE": 5},
  "KFD_SVM_UNMAP_TRIGGERS": {"KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY": 0, "KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY_MIGRATE": 1, "KFD_SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU": 2},
  "kfd_criu_op": {"KFD_CRIU_OP_PROCESS_INFO": 0, "KFD_CRIU_OP_CHECKPOINT": 1, "KFD_CRIU_OP_UNPAUSE": 2, "KFD_CRIU_OP_RESTORE": 3, "KFD_CRIU_OP_RESUME": 4},
  "kfd_mmio_remap": {"KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL": 0, "KFD_MMIO_REMAP_HDP_REG_FLUSH_CNTL": 4},
  "kfd_ioctl_svm_op": {"KFD_IOCTL_SVM_OP_SET_ATTR": 0, "KFD_IOCTL_SVM_OP_GET_ATTR": 1},
  "kfd_ioctl_svm_location": {"KFD_IOCTL_SVM_LOCATION_SYSMEM": 0, "KFD_IOCTL_SVM_LOCATION_UNDEFINED": 4294967295},
  "kfd_ioctl_svm_attr_type": {"KFD_IOCTL_SVM_ATTR_PREFERRED_LOC": 0, "KFD_IOCTL_SVM_ATTR_PREFETCH_LOC": 1, "KFD_IOCTL_SVM_ATTR_ACCESS": 2, "KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE": 3, "KFD_IOCTL_SVM_ATTR_NO_ACCESS": 4, "KFD_IOCTL_SVM_ATTR_SET_FLAGS": 5, "KFD_IOCTL_SVM_ATTR_CLR_FLAGS": 6, "KFD_IOCTL_SVM_ATTR_GRANULARITY": 7},
  "kfd_dbg_trap_override_mode": {"KFD_DBG_TRAP_OVERRIDE_OR": 0, "KFD_DBG_TRAP_OVERRIDE_REPLACE": 1},
  "kfd_dbg_trap_mask": {"KFD_DBG_TRAP_MASK_FP_INVALID": 1, "KFD_DBG_TRAP_MASK_FP_INPUT_DENORMAL": 2, "KFD_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO": 4, "KFD_DBG_TRAP_MASK_FP_OVERFLOW": 8, "KFD_DBG_TRAP_MASK_FP_UNDERFLOW": 16, "KFD_DBG_TRAP_MASK_FP_INEXACT": 32, "KFD_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO": 64, "KFD_DBG_TRAP_MASK_DBG_ADDRESS_WATCH": 128, "KFD_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION": 256, "KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_START": 1073741824, "KFD_DBG_TRAP_MASK_TRAP_ON_WAVE_END": -2147483648},
  "kfd_dbg_trap_wave_launch_mode": {"KFD_DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL": 0, "KFD_DBG_TRAP_WAVE_LAUNCH_MODE_HALT": 1, "KFD_DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG": 3},
  "kfd_dbg_trap_address_watch_mode": {"KFD_DBG_TRAP_ADDRESS_WATCH_MODE_READ": 0, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_NONREAD": 1, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ATOMIC": 2, "KFD_DBG_TRAP_ADDRESS_WATCH_MODE_ALL": 3},
  "kfd_dbg_trap_flags": {"KFD_DBG_TRAP_FLAG_SINGLE_MEM_OP": 1, "KFD_DBG_TRAP_FLAG_SINGLE_ALU_OP": 2},
  "kfd_dbg_trap_exception_code": {"EC_NONE": 0, "EC_QUEUE_WAVE_ABORT": 1, "EC_QUEUE_WAVE_TRAP": 2, "EC_QUEUE_WAVE_MATH_ERROR": 3, "EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION": 4, "EC_QUEUE_WAVE_MEMORY_VIOLATION": 5, "EC_QUEUE_WAVE_APERTURE_VIOLATION": 6, "EC_QUEUE_PACKET_DISPATCH_DIM_INVALID": 16, "EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID": 17, "EC_QUEUE_PACKET_DISPATCH_CODE_INVALID": 18, "EC_QUEUE_PACKET_RESERVED": 19, "EC_QUEUE_PACKET_UNSUPPORTED": 20, "EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID": 21, "EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID": 22, "EC_QUEUE_PACKET_VENDOR_UNSUPPORTED": 23, "EC_QUEUE_PREEMPTION_ERROR": 30, "EC_QUEUE_NEW": 31, "EC_DEVICE_QUEUE_DELETE": 32, "EC_DEVICE_MEMORY_VIOLATION": 33, "EC_DEVICE_RAS_ERROR": 34, "EC_DEVICE_FATAL_HALT": 35, "EC_DEVICE_NEW": 36, "EC_PROCESS_RUNTIME": 48, "EC_PROCESS_DEVICE_REMOVE": 49, "EC_MAX": 50},
  "kfd_dbg_runtime_state": {"DEBUG_RUNTIME_STATE_DISABLED": 0, "DEBUG_RUNTIME_STATE_ENABLED": 1, "DEBUG_RUNTIME_STATE_ENABLED_BUSY": 2, "DEBUG_RUNTIME_STATE_ENABLED_ERROR": 3},
  "kfd_dbg_trap_operations": {"KFD_IOC_DBG_TRAP_ENABLE": 0, "KFD_IOC_DBG_TRAP_DISABLE": 1, "KFD_IOC_DBG_TRAP_SEND_RUNTIME_EVENT": 2, "KFD_IOC_DBG_TRAP_SET_EXCEPTIONS_ENABLED": 3, "KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE": 4, "KFD_IOC_DBG_TRAP_SET_WAVE_LAUNCH_MODE": 5, "KFD_IOC_DBG_TRAP_SUSPEND_QUEUES": 6, "KFD_IOC_DBG_TRAP_RESUME_QUEUES": 7, "KFD_IOC_DBG_TRAP_SET_NODE_ADDRESS_WATCH": 8, "KFD_IOC_DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH": 9, "KFD_IOC_DBG_TRAP_SET_FLAGS": 10, "KFD_IOC_DBG_TRAP_QUERY_DEBUG_EVENT": 11, "KFD_IOC_DBG_TRAP_QUERY_EXCEPTION_INFO": 12, "KFD_IOC_DBG_TRAP_GET_QUEUE_SNAPSHOT": 13, "KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT": 14},
}


class kfd_ioctl_get_version_args(Struct):
  """8 bytes."""
  major_version: int
  minor_version: int
  _fields_ = [
    ("major_version", ctypes.c_uint32),
    ("minor_version", ctypes.c_uint32),
  ]


class kfd_ioctl_create_queue_args(Struct):
  """96 bytes."""
  ring_base_address: int
  write_pointer_address: int
  read_pointer_address: int
  doorbell_offset: int
  ring_size: int
  gpu_id: int
  queue_type: int
  queue_percentage: int
  queue_priority: int
  queue_id: int
  eop_buffer_address: int
  eop_buffer_size: int
  ctx_save_restore_address: int
  ctx_save_restore_size: int
  ctl_stack_size: int
  sdma_engine_id: int
  pad: int
  _fields_ = [
    ("ring_base_address", ctypes.c_uint64),
    ("write_pointer_address", ctypes.c_uint64),
    ("read_pointer_address", ctypes.c_uint64),
    ("doorbell_offset", ctypes.c_uint64),
    ("ring_size", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
    ("queue_type", ctypes.c_uint32),
    ("queue_percentage", ctypes.c_uint32),
    ("queue_priority", ctypes.c_uint32),
    ("queue_id", ctypes.c_uint32),
    ("eop_buffer_address", ctypes.c_uint64),
    ("eop_buffer_size", ctypes.c_uint64),
    ("ctx_save_restore_address", ctypes.c_uint64),
    ("ctx_save_restore_size", ctypes.c_uint32),
    ("ctl_stack_size", ctypes.c_uint32),
    ("sdma_engine_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_destroy_queue_args(Struct):
  """8 bytes."""
  queue_id: int
  pad: int
  _fields_ = [
    ("queue_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_update_queue_args(Struct):
  """24 bytes."""
  ring_base_address: int
  queue_id: int
  ring_size: int
  queue_percentage: int
  queue_priority: int
  _fields_ = [
    ("ring_base_address", ctypes.c_uint64),
    ("queue_id", ctypes.c_uint32),
    ("ring_size", ctypes.c_uint32),
    ("queue_percentage", ctypes.c_uint32),
    ("queue_priority", ctypes.c_uint32),
  ]


class kfd_ioctl_set_cu_mask_args(Struct):
  """16 bytes."""
  queue_id: int
  num_cu_mask: int
  cu_mask_ptr: int
  _fields_ = [
    ("queue_id", ctypes.c_uint32),
    ("num_cu_mask", ctypes.c_uint32),
    ("cu_mask_ptr", ctypes.c_uint64),
  ]


class kfd_ioctl_get_queue_wave_state_args(Struct):
  """24 bytes."""
  ctl_stack_address: int
  ctl_stack_used_size: int
  save_area_used_size: int
  queue_id: int
  pad: int
  _fields_ = [
    ("ctl_stack_address", ctypes.c_uint64),
    ("ctl_stack_used_size", ctypes.c_uint32),
    ("save_area_used_size", ctypes.c_uint32),
    ("queue_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_get_available_memory_args(Struct):
  """16 bytes."""
  available: int
  gpu_id: int
  pad: int
  _fields_ = [
    ("available", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_dbg_device_info_entry(Struct):
  """120 bytes."""
  exception_status: int
  lds_base: int
  lds_limit: int
  scratch_base: int
  scratch_limit: int
  gpuvm_base: int
  gpuvm_limit: int
  gpu_id: int
  location_id: int
  vendor_id: int
  device_id: int
  revision_id: int
  subsystem_vendor_id: int
  subsystem_device_id: int
  fw_version: int
  gfx_target_version: int
  simd_count: int
  max_waves_per_simd: int
  array_count: int
  simd_arrays_per_engine: int
  num_xcc: int
  capability: int
  debug_prop: int
  _fields_ = [
    ("exception_status", ctypes.c_uint64),
    ("lds_base", ctypes.c_uint64),
    ("lds_limit", ctypes.c_uint64),
    ("scratch_base", ctypes.c_uint64),
    ("scratch_limit", ctypes.c_uint64),
    ("gpuvm_base", ctypes.c_uint64),
    ("gpuvm_limit", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("location_id", ctypes.c_uint32),
    ("vendor_id", ctypes.c_uint32),
    ("device_id", ctypes.c_uint32),
    ("revision_id", ctypes.c_uint32),
    ("subsystem_vendor_id", ctypes.c_uint32),
    ("subsystem_device_id", ctypes.c_uint32),
    ("fw_version", ctypes.c_uint32),
    ("gfx_target_version", ctypes.c_uint32),
    ("simd_count", ctypes.c_uint32),
    ("max_waves_per_simd", ctypes.c_uint32),
    ("array_count", ctypes.c_uint32),
    ("simd_arrays_per_engine", ctypes.c_uint32),
    ("num_xcc", ctypes.c_uint32),
    ("capability", ctypes.c_uint32),
    ("debug_prop", ctypes.c_uint32),
  ]


class kfd_ioctl_set_memory_policy_args(Struct):
  """32 bytes."""
  alternate_aperture_base: int
  alternate_aperture_size: int
  gpu_id: int
  default_policy: int
  alternate_policy: int
  pad: int
  _fields_ = [
    ("alternate_aperture_base", ctypes.c_uint64),
    ("alternate_aperture_size", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("default_policy", ctypes.c_uint32),
    ("alternate_policy", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_get_clock_counters_args(Struct):
  """40 bytes."""
  gpu_clock_counter: int
  cpu_clock_counter: int
  system_clock_counter: int
  system_clock_freq: int
  gpu_id: int
  pad: int
  _fields_ = [
    ("gpu_clock_counter", ctypes.c_uint64),
    ("cpu_clock_counter", ctypes.c_uint64),
    ("system_clock_counter", ctypes.c_uint64),
    ("system_clock_freq", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_process_device_apertures(Struct):
  """56 bytes."""
  lds_base: int
  lds_limit: int
  scratch_base: int
  scratch_limit: int
  gpuvm_base: int
  gpuvm_limit: int
  gpu_id: int
  pad: int
  _fields_ = [
    ("lds_base", ctypes.c_uint64),
    ("lds_limit", ctypes.c_uint64),
    ("scratch_base", ctypes.c_uint64),
    ("scratch_limit", ctypes.c_uint64),
    ("gpuvm_base", ctypes.c_uint64),
    ("gpuvm_limit", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_get_process_apertures_args(Struct):
  """400 bytes."""
  process_apertures: ctypes.Array[kfd_process_device_apertures]
  num_of_nodes: int
  pad: int
  _fields_ = [
    ("process_apertures", kfd_process_device_apertures * 7),
    ("num_of_nodes", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_get_process_apertures_new_args(Struct):
  """16 bytes."""
  kfd_process_device_apertures_ptr: int
  num_of_nodes: int
  pad: int
  _fields_ = [
    ("kfd_process_device_apertures_ptr", ctypes.c_uint64),
    ("num_of_nodes", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_register_args(Struct):
  """8 bytes."""
  gpu_id: int
  pad: int
  _fields_ = [
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_unregister_args(Struct):
  """8 bytes."""
  gpu_id: int
  pad: int
  _fields_ = [
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_address_watch_args(Struct):
  """16 bytes."""
  content_ptr: int
  gpu_id: int
  buf_size_in_bytes: int
  _fields_ = [
    ("content_ptr", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("buf_size_in_bytes", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_wave_control_args(Struct):
  """16 bytes."""
  content_ptr: int
  gpu_id: int
  buf_size_in_bytes: int
  _fields_ = [
    ("content_ptr", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("buf_size_in_bytes", ctypes.c_uint32),
  ]


class kfd_ioctl_create_event_args(Struct):
  """32 bytes."""
  event_page_offset: int
  event_trigger_data: int
  event_type: int
  auto_reset: int
  node_id: int
  event_id: int
  event_slot_index: int
  _fields_ = [
    ("event_page_offset", ctypes.c_uint64),
    ("event_trigger_data", ctypes.c_uint32),
    ("event_type", ctypes.c_uint32),
    ("auto_reset", ctypes.c_uint32),
    ("node_id", ctypes.c_uint32),
    ("event_id", ctypes.c_uint32),
    ("event_slot_index", ctypes.c_uint32),
  ]


class kfd_ioctl_destroy_event_args(Struct):
  """8 bytes."""
  event_id: int
  pad: int
  _fields_ = [
    ("event_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_set_event_args(Struct):
  """8 bytes."""
  event_id: int
  pad: int
  _fields_ = [
    ("event_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_reset_event_args(Struct):
  """8 bytes."""
  event_id: int
  pad: int
  _fields_ = [
    ("event_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_memory_exception_failure(Struct):
  """16 bytes."""
  NotPresent: int
  ReadOnly: int
  NoExecute: int
  imprecise: int
  _fields_ = [
    ("NotPresent", ctypes.c_uint32),
    ("ReadOnly", ctypes.c_uint32),
    ("NoExecute", ctypes.c_uint32),
    ("imprecise", ctypes.c_uint32),
  ]


class kfd_hsa_memory_exception_data(Struct):
  """32 bytes."""
  failure: kfd_memory_exception_failure
  va: int
  gpu_id: int
  ErrorType: int
  _fields_ = [
    ("failure", kfd_memory_exception_failure),
    ("va", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("ErrorType", ctypes.c_uint32),
  ]


class kfd_hsa_hw_exception_data(Struct):
  """16 bytes."""
  reset_type: int
  reset_cause: int
  memory_lost: int
  gpu_id: int
  _fields_ = [
    ("reset_type", ctypes.c_uint32),
    ("reset_cause", ctypes.c_uint32),
    ("memory_lost", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
  ]


class kfd_hsa_signal_event_data(Struct):
  """8 bytes."""
  last_event_age: int
  _fields_ = [
    ("last_event_age", ctypes.c_uint64),
  ]


class kfd_event_data_0(Union):
  """32 bytes."""
  memory_exception_data: kfd_hsa_memory_exception_data
  hw_exception_data: kfd_hsa_hw_exception_data
  signal_event_data: kfd_hsa_signal_event_data
  _fields_ = [
    ("memory_exception_data", kfd_hsa_memory_exception_data),
    ("hw_exception_data", kfd_hsa_hw_exception_data),
    ("signal_event_data", kfd_hsa_signal_event_data),
  ]


class kfd_event_data(Struct):
  """48 bytes."""
  memory_exception_data: kfd_hsa_memory_exception_data
  hw_exception_data: kfd_hsa_hw_exception_data
  signal_event_data: kfd_hsa_signal_event_data
  kfd_event_data_ext: int
  event_id: int
  pad: int
  _anonymous_ = ('_0',)
  _fields_ = [
    ("_0", kfd_event_data_0),
    ("kfd_event_data_ext", ctypes.c_uint64),
    ("event_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_wait_events_args(Struct):
  """24 bytes."""
  events_ptr: int
  num_events: int
  wait_for_all: int
  timeout: int
  wait_result: int
  _fields_ = [
    ("events_ptr", ctypes.c_uint64),
    ("num_events", ctypes.c_uint32),
    ("wait_for_all", ctypes.c_uint32),
    ("timeout", ctypes.c_uint32),
    ("wait_result", ctypes.c_uint32),
  ]


class kfd_ioctl_set_scratch_backing_va_args(Struct):
  """16 bytes."""
  va_addr: int
  gpu_id: int
  pad: int
  _fields_ = [
    ("va_addr", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_get_tile_config_args(Struct):
  """40 bytes."""
  tile_config_ptr: int
  macro_tile_config_ptr: int
  num_tile_configs: int
  num_macro_tile_configs: int
  gpu_id: int
  gb_addr_config: int
  num_banks: int
  num_ranks: int
  _fields_ = [
    ("tile_config_ptr", ctypes.c_uint64),
    ("macro_tile_config_ptr", ctypes.c_uint64),
    ("num_tile_configs", ctypes.c_uint32),
    ("num_macro_tile_configs", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
    ("gb_addr_config", ctypes.c_uint32),
    ("num_banks", ctypes.c_uint32),
    ("num_ranks", ctypes.c_uint32),
  ]


class kfd_ioctl_set_trap_handler_args(Struct):
  """24 bytes."""
  tba_addr: int
  tma_addr: int
  gpu_id: int
  pad: int
  _fields_ = [
    ("tba_addr", ctypes.c_uint64),
    ("tma_addr", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_acquire_vm_args(Struct):
  """8 bytes."""
  drm_fd: int
  gpu_id: int
  _fields_ = [
    ("drm_fd", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
  ]


class kfd_ioctl_alloc_memory_of_gpu_args(Struct):
  """40 bytes."""
  va_addr: int
  size: int
  handle: int
  mmap_offset: int
  gpu_id: int
  flags: int
  _fields_ = [
    ("va_addr", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("handle", ctypes.c_uint64),
    ("mmap_offset", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
  ]


class kfd_ioctl_free_memory_of_gpu_args(Struct):
  """8 bytes."""
  handle: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
  ]


class kfd_ioctl_map_memory_to_gpu_args(Struct):
  """24 bytes."""
  handle: int
  device_ids_array_ptr: int
  n_devices: int
  n_success: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
    ("device_ids_array_ptr", ctypes.c_uint64),
    ("n_devices", ctypes.c_uint32),
    ("n_success", ctypes.c_uint32),
  ]


class kfd_ioctl_unmap_memory_from_gpu_args(Struct):
  """24 bytes."""
  handle: int
  device_ids_array_ptr: int
  n_devices: int
  n_success: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
    ("device_ids_array_ptr", ctypes.c_uint64),
    ("n_devices", ctypes.c_uint32),
    ("n_success", ctypes.c_uint32),
  ]


class kfd_ioctl_alloc_queue_gws_args(Struct):
  """16 bytes."""
  queue_id: int
  num_gws: int
  first_gws: int
  pad: int
  _fields_ = [
    ("queue_id", ctypes.c_uint32),
    ("num_gws", ctypes.c_uint32),
    ("first_gws", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_get_dmabuf_info_args(Struct):
  """32 bytes."""
  size: int
  metadata_ptr: int
  metadata_size: int
  gpu_id: int
  flags: int
  dmabuf_fd: int
  _fields_ = [
    ("size", ctypes.c_uint64),
    ("metadata_ptr", ctypes.c_uint64),
    ("metadata_size", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
    ("dmabuf_fd", ctypes.c_uint32),
  ]


class kfd_ioctl_import_dmabuf_args(Struct):
  """24 bytes."""
  va_addr: int
  handle: int
  gpu_id: int
  dmabuf_fd: int
  _fields_ = [
    ("va_addr", ctypes.c_uint64),
    ("handle", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("dmabuf_fd", ctypes.c_uint32),
  ]


class kfd_ioctl_export_dmabuf_args(Struct):
  """16 bytes."""
  handle: int
  flags: int
  dmabuf_fd: int
  _fields_ = [
    ("handle", ctypes.c_uint64),
    ("flags", ctypes.c_uint32),
    ("dmabuf_fd", ctypes.c_uint32),
  ]


class kfd_ioctl_smi_events_args(Struct):
  """8 bytes."""
  gpuid: int
  anon_fd: int
  _fields_ = [
    ("gpuid", ctypes.c_uint32),
    ("anon_fd", ctypes.c_uint32),
  ]


class kfd_ioctl_criu_args(Struct):
  """56 bytes."""
  devices: int
  bos: int
  priv_data: int
  priv_data_size: int
  num_devices: int
  num_bos: int
  num_objects: int
  pid: int
  op: int
  _fields_ = [
    ("devices", ctypes.c_uint64),
    ("bos", ctypes.c_uint64),
    ("priv_data", ctypes.c_uint64),
    ("priv_data_size", ctypes.c_uint64),
    ("num_devices", ctypes.c_uint32),
    ("num_bos", ctypes.c_uint32),
    ("num_objects", ctypes.c_uint32),
    ("pid", ctypes.c_uint32),
    ("op", ctypes.c_uint32),
  ]


class kfd_criu_device_bucket(Struct):
  """16 bytes."""
  user_gpu_id: int
  actual_gpu_id: int
  drm_fd: int
  pad: int
  _fields_ = [
    ("user_gpu_id", ctypes.c_uint32),
    ("actual_gpu_id", ctypes.c_uint32),
    ("drm_fd", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_criu_bo_bucket(Struct):
  """48 bytes."""
  addr: int
  size: int
  offset: int
  restored_offset: int
  gpu_id: int
  alloc_flags: int
  dmabuf_fd: int
  pad: int
  _fields_ = [
    ("addr", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("offset", ctypes.c_uint64),
    ("restored_offset", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("alloc_flags", ctypes.c_uint32),
    ("dmabuf_fd", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_svm_attribute(Struct):
  """8 bytes."""
  type: int
  value: int
  _fields_ = [
    ("type", ctypes.c_uint32),
    ("value", ctypes.c_uint32),
  ]


class kfd_ioctl_svm_args(Struct):
  """24 bytes."""
  start_addr: int
  size: int
  op: int
  nattr: int
  attrs: ctypes.Array[kfd_ioctl_svm_attribute]
  _fields_ = [
    ("start_addr", ctypes.c_uint64),
    ("size", ctypes.c_uint64),
    ("op", ctypes.c_uint32),
    ("nattr", ctypes.c_uint32),
    ("attrs", kfd_ioctl_svm_attribute * 0),
  ]


class kfd_ioctl_set_xnack_mode_args(Struct):
  """4 bytes."""
  xnack_enabled: int
  _fields_ = [
    ("xnack_enabled", ctypes.c_int32),
  ]


class kfd_runtime_info(Struct):
  """16 bytes."""
  r_debug: int
  runtime_state: int
  ttmp_setup: int
  _fields_ = [
    ("r_debug", ctypes.c_uint64),
    ("runtime_state", ctypes.c_uint32),
    ("ttmp_setup", ctypes.c_uint32),
  ]


class kfd_ioctl_runtime_enable_args(Struct):
  """16 bytes."""
  r_debug: int
  mode_mask: int
  capabilities_mask: int
  _fields_ = [
    ("r_debug", ctypes.c_uint64),
    ("mode_mask", ctypes.c_uint32),
    ("capabilities_mask", ctypes.c_uint32),
  ]


class kfd_queue_snapshot_entry(Struct):
  """64 bytes."""
  exception_status: int
  ring_base_address: int
  write_pointer_address: int
  read_pointer_address: int
  ctx_save_restore_address: int
  queue_id: int
  gpu_id: int
  ring_size: int
  queue_type: int
  ctx_save_restore_area_size: int
  reserved: int
  _fields_ = [
    ("exception_status", ctypes.c_uint64),
    ("ring_base_address", ctypes.c_uint64),
    ("write_pointer_address", ctypes.c_uint64),
    ("read_pointer_address", ctypes.c_uint64),
    ("ctx_save_restore_address", ctypes.c_uint64),
    ("queue_id", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
    ("ring_size", ctypes.c_uint32),
    ("queue_type", ctypes.c_uint32),
    ("ctx_save_restore_area_size", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32),
  ]


class kfd_context_save_area_header_wave_state(Struct):
  """16 bytes."""
  control_stack_offset: int
  control_stack_size: int
  wave_state_offset: int
  wave_state_size: int
  _fields_ = [
    ("control_stack_offset", ctypes.c_uint32),
    ("control_stack_size", ctypes.c_uint32),
    ("wave_state_offset", ctypes.c_uint32),
    ("wave_state_size", ctypes.c_uint32),
  ]


class kfd_context_save_area_header(Struct):
  """40 bytes."""
  wave_state: kfd_context_save_area_header_wave_state
  debug_offset: int
  debug_size: int
  err_payload_addr: int
  err_event_id: int
  reserved1: int
  _fields_ = [
    ("wave_state", kfd_context_save_area_header_wave_state),
    ("debug_offset", ctypes.c_uint32),
    ("debug_size", ctypes.c_uint32),
    ("err_payload_addr", ctypes.c_uint64),
    ("err_event_id", ctypes.c_uint32),
    ("reserved1", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_enable_args(Struct):
  """24 bytes."""
  exception_mask: int
  rinfo_ptr: int
  rinfo_size: int
  dbg_fd: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
    ("rinfo_ptr", ctypes.c_uint64),
    ("rinfo_size", ctypes.c_uint32),
    ("dbg_fd", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_send_runtime_event_args(Struct):
  """16 bytes."""
  exception_mask: int
  gpu_id: int
  queue_id: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("queue_id", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_set_exceptions_enabled_args(Struct):
  """8 bytes."""
  exception_mask: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
  ]


class kfd_ioctl_dbg_trap_set_wave_launch_override_args(Struct):
  """16 bytes."""
  override_mode: int
  enable_mask: int
  support_request_mask: int
  pad: int
  _fields_ = [
    ("override_mode", ctypes.c_uint32),
    ("enable_mask", ctypes.c_uint32),
    ("support_request_mask", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_set_wave_launch_mode_args(Struct):
  """8 bytes."""
  launch_mode: int
  pad: int
  _fields_ = [
    ("launch_mode", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_suspend_queues_args(Struct):
  """24 bytes."""
  exception_mask: int
  queue_array_ptr: int
  num_queues: int
  grace_period: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
    ("queue_array_ptr", ctypes.c_uint64),
    ("num_queues", ctypes.c_uint32),
    ("grace_period", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_resume_queues_args(Struct):
  """16 bytes."""
  queue_array_ptr: int
  num_queues: int
  pad: int
  _fields_ = [
    ("queue_array_ptr", ctypes.c_uint64),
    ("num_queues", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_set_node_address_watch_args(Struct):
  """24 bytes."""
  address: int
  mode: int
  mask: int
  gpu_id: int
  id: int
  _fields_ = [
    ("address", ctypes.c_uint64),
    ("mode", ctypes.c_uint32),
    ("mask", ctypes.c_uint32),
    ("gpu_id", ctypes.c_uint32),
    ("id", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_clear_node_address_watch_args(Struct):
  """8 bytes."""
  gpu_id: int
  id: int
  _fields_ = [
    ("gpu_id", ctypes.c_uint32),
    ("id", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_set_flags_args(Struct):
  """8 bytes."""
  flags: int
  pad: int
  _fields_ = [
    ("flags", ctypes.c_uint32),
    ("pad", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_query_debug_event_args(Struct):
  """16 bytes."""
  exception_mask: int
  gpu_id: int
  queue_id: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
    ("gpu_id", ctypes.c_uint32),
    ("queue_id", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_query_exception_info_args(Struct):
  """24 bytes."""
  info_ptr: int
  info_size: int
  source_id: int
  exception_code: int
  clear_exception: int
  _fields_ = [
    ("info_ptr", ctypes.c_uint64),
    ("info_size", ctypes.c_uint32),
    ("source_id", ctypes.c_uint32),
    ("exception_code", ctypes.c_uint32),
    ("clear_exception", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_queue_snapshot_args(Struct):
  """24 bytes."""
  exception_mask: int
  snapshot_buf_ptr: int
  num_queues: int
  entry_size: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
    ("snapshot_buf_ptr", ctypes.c_uint64),
    ("num_queues", ctypes.c_uint32),
    ("entry_size", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_device_snapshot_args(Struct):
  """24 bytes."""
  exception_mask: int
  snapshot_buf_ptr: int
  num_devices: int
  entry_size: int
  _fields_ = [
    ("exception_mask", ctypes.c_uint64),
    ("snapshot_buf_ptr", ctypes.c_uint64),
    ("num_devices", ctypes.c_uint32),
    ("entry_size", ctypes.c_uint32),
  ]


class kfd_ioctl_dbg_trap_args_0(Union):
  """24 bytes."""
  enable: kfd_ioctl_dbg_trap_enable_args
  send_runtime_event: kfd_ioctl_dbg_trap_send_runtime_event_args
  set_exceptions_enabled: kfd_ioctl_dbg_trap_set_exceptions_enabled_args
  launch_override: kfd_ioctl_dbg_trap_set_wave_launch_override_args
  launch_mode: kfd_ioctl_dbg_trap_set_wave_launch_mode_args
  suspend_queues: kfd_ioctl_dbg_trap_suspend_queues_args
  resume_queues: kfd_ioctl_dbg_trap_resume_queues_args
  set_node_address_watch: kfd_ioctl_dbg_trap_set_node_address_watch_args
  clear_node_address_watch: kfd_ioctl_dbg_trap_clear_node_address_watch_args
  set_flags: kfd_ioctl_dbg_trap_set_flags_args
  query_debug_event: kfd_ioctl_dbg_trap_query_debug_event_args
  query_exception_info: kfd_ioctl_dbg_trap_query_exception_info_args
  queue_snapshot: kfd_ioctl_dbg_trap_queue_snapshot_args
  device_snapshot: kfd_ioctl_dbg_trap_device_snapshot_args
  _fields_ = [
    ("enable", kfd_ioctl_dbg_trap_enable_args),
    ("send_runtime_event", kfd_ioctl_dbg_trap_send_runtime_event_args),
    ("set_exceptions_enabled", kfd_ioctl_dbg_trap_set_exceptions_enabled_args),
    ("launch_override", kfd_ioctl_dbg_trap_set_wave_launch_override_args),
    ("launch_mode", kfd_ioctl_dbg_trap_set_wave_launch_mode_args),
    ("suspend_queues", kfd_ioctl_dbg_trap_suspend_queues_args),
    ("resume_queues", kfd_ioctl_dbg_trap_resume_queues_args),
    ("set_node_address_watch", kfd_ioctl_dbg_trap_set_node_address_watch_args),
    ("clear_node_address_watch", kfd_ioctl_dbg_trap_clear_node_address_watch_args),
    ("set_flags", kfd_ioctl_dbg_trap_set_flags_args),
    ("query_debug_event", kfd_ioctl_dbg_trap_query_debug_event_args),
    ("query_exception_info", kfd_ioctl_dbg_trap_query_exception_info_args),
    ("queue_snapshot", kfd_ioctl_dbg_trap_queue_snapshot_args),
    ("device_snapshot", kfd_ioctl_dbg_trap_device_snapshot_args),
  ]


class kfd_ioctl_dbg_trap_args(Struct):
  """32 bytes."""
  pid: int
  op: int
  enable: kfd_ioctl_dbg_trap_enable_args
  send_runtime_event: kfd_ioctl_dbg_trap_send_runtime_event_args
  set_exceptions_enabled: kfd_ioctl_dbg_trap_set_exceptions_enabled_args
  launch_override: kfd_ioctl_dbg_trap_set_wave_launch_override_args
  launch_mode: kfd_ioctl_dbg_trap_set_wave_launch_mode_args
  suspend_queues: kfd_ioctl_dbg_trap_suspend_queues_args
  resume_queues: kfd_ioctl_dbg_trap_resume_queues_args
  set_node_address_watch: kfd_ioctl_dbg_trap_set_node_address_watch_args
  clear_node_address_watch: kfd_ioctl_dbg_trap_clear_node_address_watch_args
  set_flags: kfd_ioctl_dbg_trap_set_flags_args
  query_debug_event: kfd_ioctl_dbg_trap_query_debug_event_args
  query_exception_info: kfd_ioctl_dbg_trap_query_exception_info_args
  queue_snapshot: kfd_ioctl_dbg_trap_queue_snapshot_args
  device_snapshot: kfd_ioctl_dbg_trap_device_snapshot_args
  _anonymous_ = ('_0',)
  _fields_ = [
    ("pid", ctypes.c_uint32),
    ("op", ctypes.c_uint32),
    ("_0", kfd_ioctl_dbg_trap_args_0),
  ]


IOCTLS: dict[int, Ioctl] = {  # by request number
  AMDKFD_IOC_GET_VERSION: Ioctl("AMDKFD_IOC_GET_VERSION", kfd_ioctl_get_version_args),
  AMDKFD_IOC_CREATE_QUEUE: Ioctl("AMDKFD_IOC_CREATE_QUEUE", kfd_ioctl_create_queue_args),
  AMDKFD_IOC_DESTROY_QUEUE: Ioctl("AMDKFD_IOC_DESTROY_QUEUE", kfd_ioctl_destroy_queue_args),
  AMDKFD_IOC_SET_MEMORY_POLICY: Ioctl("AMDKFD_IOC_SET_MEMORY_POLICY", kfd_ioctl_set_memory_policy_args),
  AMDKFD_IOC_GET_CLOCK_COUNTERS: Ioctl("AMDKFD_IOC_GET_CLOCK_COUNTERS", kfd_ioctl_get_clock_counters_args),
  AMDKFD_IOC_GET_PROCESS_APERTURES: Ioctl("AMDKFD_IOC_GET_PROCESS_APERTURES", kfd_ioctl_get_process_apertures_args),
  AMDKFD_IOC_UPDATE_QUEUE: Ioctl("AMDKFD_IOC_UPDATE_QUEUE", kfd_ioctl_update_queue_args),
  AMDKFD_IOC_CREATE_EVENT: Ioctl("AMDKFD_IOC_CREATE_EVENT", kfd_ioctl_create_event_args),
  AMDKFD_IOC_DESTROY_EVENT: Ioctl("AMDKFD_IOC_DESTROY_EVENT", kfd_ioctl_destroy_event_args),
  AMDKFD_IOC_SET_EVENT: Ioctl("AMDKFD_IOC_SET_EVENT", kfd_ioctl_set_event_args),
  AMDKFD_IOC_RESET_EVENT: Ioctl("AMDKFD_IOC_RESET_EVENT", kfd_ioctl_reset_event_args),
  AMDKFD_IOC_WAIT_EVENTS: Ioctl("AMDKFD_IOC_WAIT_EVENTS", kfd_ioctl_wait_events_args),
  AMDKFD_IOC_DBG_REGISTER_DEPRECATED: Ioctl("AMDKFD_IOC_DBG_REGISTER_DEPRECATED", kfd_ioctl_dbg_register_args),
  AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED: Ioctl("AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED", kfd_ioctl_dbg_unregister_args),
  AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED: Ioctl("AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED", kfd_ioctl_dbg_address_watch_args),
  AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED: Ioctl("AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED", kfd_ioctl_dbg_wave_control_args),
  AMDKFD_IOC_SET_SCRATCH_BACKING_VA: Ioctl("AMDKFD_IOC_SET_SCRATCH_BACKING_VA", kfd_ioctl_set_scratch_backing_va_args),
  AMDKFD_IOC_GET_TILE_CONFIG: Ioctl("AMDKFD_IOC_GET_TILE_CONFIG", kfd_ioctl_get_tile_config_args),
  AMDKFD_IOC_SET_TRAP_HANDLER: Ioctl("AMDKFD_IOC_SET_TRAP_HANDLER", kfd_ioctl_set_trap_handler_args),
  AMDKFD_IOC_GET_PROCESS_APERTURES_NEW: Ioctl("AMDKFD_IOC_GET_PROCESS_APERTURES_NEW", kfd_ioctl_get_process_apertures_new_args),
  AMDKFD_IOC_ACQUIRE_VM: Ioctl("AMDKFD_IOC_ACQUIRE_VM", kfd_ioctl_acquire_vm_args),
  AMDKFD_IOC_ALLOC_MEMORY_OF_GPU: Ioctl("AMDKFD_IOC_ALLOC_MEMORY_OF_GPU", kfd_ioctl_alloc_memory_of_gpu_args),
  AMDKFD_IOC_FREE_MEMORY_OF_GPU: Ioctl("AMDKFD_IOC_FREE_MEMORY_OF_GPU", kfd_ioctl_free_memory_of_gpu_args),
  AMDKFD_IOC_MAP_MEMORY_TO_GPU: Ioctl("AMDKFD_IOC_MAP_MEMORY_TO_GPU", kfd_ioctl_map_memory_to_gpu_args),
  AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU: Ioctl("AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU", kfd_ioctl_unmap_memory_from_gpu_args),
  AMDKFD_IOC_SET_CU_MASK: Ioctl("AMDKFD_IOC_SET_CU_MASK", kfd_ioctl_set_cu_mask_args),
  AMDKFD_IOC_GET_QUEUE_WAVE_STATE: Ioctl("AMDKFD_IOC_GET_QUEUE_WAVE_STATE", kfd_ioctl_get_queue_wave_state_args),
  AMDKFD_IOC_GET_DMABUF_INFO: Ioctl("AMDKFD_IOC_GET_DMABUF_INFO", kfd_ioctl_get_dmabuf_info_args),
  AMDKFD_IOC_IMPORT_DMABUF: Ioctl("AMDKFD_IOC_IMPORT_DMABUF", kfd_ioctl_import_dmabuf_args),
  AMDKFD_IOC_ALLOC_QUEUE_GWS: Ioctl("AMDKFD_IOC_ALLOC_QUEUE_GWS", kfd_ioctl_alloc_queue_gws_args),
  AMDKFD_IOC_SMI_EVENTS: Ioctl("AMDKFD_IOC_SMI_EVENTS", kfd_ioctl_smi_events_args),
  AMDKFD_IOC_SVM: Ioctl("AMDKFD_IOC_SVM", kfd_ioctl_svm_args),
  AMDKFD_IOC_SET_XNACK_MODE: Ioctl("AMDKFD_IOC_SET_XNACK_MODE", kfd_ioctl_set_xnack_mode_args),
  AMDKFD_IOC_CRIU_OP: Ioctl("AMDKFD_IOC_CRIU_OP", kfd_ioctl_criu_args),
  AMDKFD_IOC_AVAILABLE_MEMORY: Ioctl("AMDKFD_IOC_AVAILABLE_MEMORY", kfd_ioctl_get_available_memory_args),
  AMDKFD_IOC_EXPORT_DMABUF: Ioctl("AMDKFD_IOC_EXPORT_DMABUF", kfd_ioctl_export_dmabuf_args),
  AMDKFD_IOC_RUNTIME_ENABLE: Ioctl("AMDKFD_IOC_RUNTIME_ENABLE", kfd_ioctl_runtime_enable_args),
  AMDKFD_IOC_DBG_TRAP: Ioctl("AMDKFD_IOC_DBG_TRAP", kfd_ioctl_dbg_trap_args),
}
