"""OpenCL: constants, error codes and the signatures of its functions.

Generated; do not edit. Source:
  OpenCL-Headers (Debian opencl-c-headers) 3.0~2023.02.06-1, licence Apache-2.0
    CL/cl.h sha256 c7f9f118ec96b6b1ba5e9109af7d5de58c6b12034972098d6c97aa95d922424b
    CL/cl_platform.h sha256 f329455a208ef048b9b58e26415c64357d573dc91d3f780c50b96f4e0a9f1b90
    CL/cl_version.h sha256 1b161f73c0f0b07121314055f75df6c19d6a93e3a0d24202c6f3e2dd1615b2a2
Generator: tinyhw gen opencl

FUNCTIONS has a function's result and parameters as ctypes has them. Pointers, handles and callbacks are addresses.
"""
from __future__ import annotations

from ctypes import c_int32, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p

CL_NAME_VERSION_MAX_NAME_SIZE = 0x40
CL_SUCCESS = 0
CL_DEVICE_NOT_FOUND = -1
CL_DEVICE_NOT_AVAILABLE = -2
CL_COMPILER_NOT_AVAILABLE = -3
CL_MEM_OBJECT_ALLOCATION_FAILURE = -4
CL_OUT_OF_RESOURCES = -5
CL_OUT_OF_HOST_MEMORY = -6
CL_PROFILING_INFO_NOT_AVAILABLE = -7
CL_MEM_COPY_OVERLAP = -8
CL_IMAGE_FORMAT_MISMATCH = -9
CL_IMAGE_FORMAT_NOT_SUPPORTED = -0xa
CL_BUILD_PROGRAM_FAILURE = -0xb
CL_MAP_FAILURE = -0xc
CL_MISALIGNED_SUB_BUFFER_OFFSET = -0xd
CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -0xe
CL_COMPILE_PROGRAM_FAILURE = -0xf
CL_LINKER_NOT_AVAILABLE = -0x10
CL_LINK_PROGRAM_FAILURE = -0x11
CL_DEVICE_PARTITION_FAILED = -0x12
CL_KERNEL_ARG_INFO_NOT_AVAILABLE = -0x13
CL_INVALID_VALUE = -0x1e
CL_INVALID_DEVICE_TYPE = -0x1f
CL_INVALID_PLATFORM = -0x20
CL_INVALID_DEVICE = -0x21
CL_INVALID_CONTEXT = -0x22
CL_INVALID_QUEUE_PROPERTIES = -0x23
CL_INVALID_COMMAND_QUEUE = -0x24
CL_INVALID_HOST_PTR = -0x25
CL_INVALID_MEM_OBJECT = -0x26
CL_INVALID_IMAGE_FORMAT_DESCRIPTOR = -0x27
CL_INVALID_IMAGE_SIZE = -0x28
CL_INVALID_SAMPLER = -0x29
CL_INVALID_BINARY = -0x2a
CL_INVALID_BUILD_OPTIONS = -0x2b
CL_INVALID_PROGRAM = -0x2c
CL_INVALID_PROGRAM_EXECUTABLE = -0x2d
CL_INVALID_KERNEL_NAME = -0x2e
CL_INVALID_KERNEL_DEFINITION = -0x2f
CL_INVALID_KERNEL = -0x30
CL_INVALID_ARG_INDEX = -0x31
CL_INVALID_ARG_VALUE = -0x32
CL_INVALID_ARG_SIZE = -0x33
CL_INVALID_KERNEL_ARGS = -0x34
CL_INVALID_WORK_DIMENSION = -0x35
CL_INVALID_WORK_GROUP_SIZE = -0x36
CL_INVALID_WORK_ITEM_SIZE = -0x37
CL_INVALID_GLOBAL_OFFSET = -0x38
CL_INVALID_EVENT_WAIT_LIST = -0x39
CL_INVALID_EVENT = -0x3a
CL_INVALID_OPERATION = -0x3b
CL_INVALID_GL_OBJECT = -0x3c
CL_INVALID_BUFFER_SIZE = -0x3d
CL_INVALID_MIP_LEVEL = -0x3e
CL_INVALID_GLOBAL_WORK_SIZE = -0x3f
CL_INVALID_PROPERTY = -0x40
CL_INVALID_IMAGE_DESCRIPTOR = -0x41
CL_INVALID_COMPILER_OPTIONS = -0x42
CL_INVALID_LINKER_OPTIONS = -0x43
CL_INVALID_DEVICE_PARTITION_COUNT = -0x44
CL_INVALID_PIPE_SIZE = -0x45
CL_INVALID_DEVICE_QUEUE = -0x46
CL_INVALID_SPEC_ID = -0x47
CL_MAX_SIZE_RESTRICTION_EXCEEDED = -0x48
CL_FALSE = 0
CL_TRUE = 1
CL_BLOCKING = 1
CL_NON_BLOCKING = 0
CL_PLATFORM_PROFILE = 0x900
CL_PLATFORM_VERSION = 0x901
CL_PLATFORM_NAME = 0x902
CL_PLATFORM_VENDOR = 0x903
CL_PLATFORM_EXTENSIONS = 0x904
CL_PLATFORM_HOST_TIMER_RESOLUTION = 0x905
CL_PLATFORM_NUMERIC_VERSION = 0x906
CL_PLATFORM_EXTENSIONS_WITH_VERSION = 0x907
CL_DEVICE_TYPE_DEFAULT = 1
CL_DEVICE_TYPE_CPU = 2
CL_DEVICE_TYPE_GPU = 4
CL_DEVICE_TYPE_ACCELERATOR = 8
CL_DEVICE_TYPE_CUSTOM = 0x10
CL_DEVICE_TYPE_ALL = 0xffffffff
CL_DEVICE_TYPE = 0x1000
CL_DEVICE_VENDOR_ID = 0x1001
CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002
CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS = 0x1003
CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004
CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005
CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR = 0x1006
CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT = 0x1007
CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT = 0x1008
CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG = 0x1009
CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT = 0x100a
CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE = 0x100b
CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100c
CL_DEVICE_ADDRESS_BITS = 0x100d
CL_DEVICE_MAX_READ_IMAGE_ARGS = 0x100e
CL_DEVICE_MAX_WRITE_IMAGE_ARGS = 0x100f
CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010
CL_DEVICE_IMAGE2D_MAX_WIDTH = 0x1011
CL_DEVICE_IMAGE2D_MAX_HEIGHT = 0x1012
CL_DEVICE_IMAGE3D_MAX_WIDTH = 0x1013
CL_DEVICE_IMAGE3D_MAX_HEIGHT = 0x1014
CL_DEVICE_IMAGE3D_MAX_DEPTH = 0x1015
CL_DEVICE_IMAGE_SUPPORT = 0x1016
CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017
CL_DEVICE_MAX_SAMPLERS = 0x1018
CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019
CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE = 0x101a
CL_DEVICE_SINGLE_FP_CONFIG = 0x101b
CL_DEVICE_GLOBAL_MEM_CACHE_TYPE = 0x101c
CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE = 0x101d
CL_DEVICE_GLOBAL_MEM_CACHE_SIZE = 0x101e
CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f
CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE = 0x1020
CL_DEVICE_MAX_CONSTANT_ARGS = 0x1021
CL_DEVICE_LOCAL_MEM_TYPE = 0x1022
CL_DEVICE_LOCAL_MEM_SIZE = 0x1023
CL_DEVICE_ERROR_CORRECTION_SUPPORT = 0x1024
CL_DEVICE_PROFILING_TIMER_RESOLUTION = 0x1025
CL_DEVICE_ENDIAN_LITTLE = 0x1026
CL_DEVICE_AVAILABLE = 0x1027
CL_DEVICE_COMPILER_AVAILABLE = 0x1028
CL_DEVICE_EXECUTION_CAPABILITIES = 0x1029
CL_DEVICE_QUEUE_PROPERTIES = 0x102a
CL_DEVICE_QUEUE_ON_HOST_PROPERTIES = 0x102a
CL_DEVICE_NAME = 0x102b
CL_DEVICE_VENDOR = 0x102c
CL_DRIVER_VERSION = 0x102d
CL_DEVICE_PROFILE = 0x102e
CL_DEVICE_VERSION = 0x102f
CL_DEVICE_EXTENSIONS = 0x1030
CL_DEVICE_PLATFORM = 0x1031
CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032
CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF = 0x1034
CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035
CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR = 0x1036
CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT = 0x1037
CL_DEVICE_NATIVE_VECTOR_WIDTH_INT = 0x1038
CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG = 0x1039
CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103a
CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE = 0x103b
CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF = 0x103c
CL_DEVICE_OPENCL_C_VERSION = 0x103d
CL_DEVICE_LINKER_AVAILABLE = 0x103e
CL_DEVICE_BUILT_IN_KERNELS = 0x103f
CL_DEVICE_IMAGE_MAX_BUFFER_SIZE = 0x1040
CL_DEVICE_IMAGE_MAX_ARRAY_SIZE = 0x1041
CL_DEVICE_PARENT_DEVICE = 0x1042
CL_DEVICE_PARTITION_MAX_SUB_DEVICES = 0x1043
CL_DEVICE_PARTITION_PROPERTIES = 0x1044
CL_DEVICE_PARTITION_AFFINITY_DOMAIN = 0x1045
CL_DEVICE_PARTITION_TYPE = 0x1046
CL_DEVICE_REFERENCE_COUNT = 0x1047
CL_DEVICE_PREFERRED_INTEROP_USER_SYNC = 0x1048
CL_DEVICE_PRINTF_BUFFER_SIZE = 0x1049
CL_DEVICE_IMAGE_PITCH_ALIGNMENT = 0x104a
CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT = 0x104b
CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS = 0x104c
CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE = 0x104d
CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES = 0x104e
CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE = 0x104f
CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE = 0x1050
CL_DEVICE_MAX_ON_DEVICE_QUEUES = 0x1051
CL_DEVICE_MAX_ON_DEVICE_EVENTS = 0x1052
CL_DEVICE_SVM_CAPABILITIES = 0x1053
CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE = 0x1054
CL_DEVICE_MAX_PIPE_ARGS = 0x1055
CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS = 0x1056
CL_DEVICE_PIPE_MAX_PACKET_SIZE = 0x1057
CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT = 0x1058
CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT = 0x1059
CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT = 0x105a
CL_DEVICE_IL_VERSION = 0x105b
CL_DEVICE_MAX_NUM_SUB_GROUPS = 0x105c
CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS = 0x105d
CL_DEVICE_NUMERIC_VERSION = 0x105e
CL_DEVICE_EXTENSIONS_WITH_VERSION = 0x1060
CL_DEVICE_ILS_WITH_VERSION = 0x1061
CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION = 0x1062
CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES = 0x1063
CL_DEVICE_ATOMIC_FENCE_CAPABILITIES = 0x1064
CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT = 0x1065
CL_DEVICE_OPENCL_C_ALL_VERSIONS = 0x1066
CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE = 0x1067
CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT = 0x1068
CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT = 0x1069
CL_DEVICE_OPENCL_C_FEATURES = 0x106f
CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES = 0x1070
CL_DEVICE_PIPE_SUPPORT = 0x1071
CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED = 0x1072
CL_FP_DENORM = 1
CL_FP_INF_NAN = 2
CL_FP_ROUND_TO_NEAREST = 4
CL_FP_ROUND_TO_ZERO = 8
CL_FP_ROUND_TO_INF = 0x10
CL_FP_FMA = 0x20
CL_FP_SOFT_FLOAT = 0x40
CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 0x80
CL_NONE = 0
CL_READ_ONLY_CACHE = 1
CL_READ_WRITE_CACHE = 2
CL_LOCAL = 1
CL_GLOBAL = 2
CL_EXEC_KERNEL = 1
CL_EXEC_NATIVE_KERNEL = 2
CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1
CL_QUEUE_PROFILING_ENABLE = 2
CL_QUEUE_ON_DEVICE = 4
CL_QUEUE_ON_DEVICE_DEFAULT = 8
CL_CONTEXT_REFERENCE_COUNT = 0x1080
CL_CONTEXT_DEVICES = 0x1081
CL_CONTEXT_PROPERTIES = 0x1082
CL_CONTEXT_NUM_DEVICES = 0x1083
CL_CONTEXT_PLATFORM = 0x1084
CL_CONTEXT_INTEROP_USER_SYNC = 0x1085
CL_DEVICE_PARTITION_EQUALLY = 0x1086
CL_DEVICE_PARTITION_BY_COUNTS = 0x1087
CL_DEVICE_PARTITION_BY_COUNTS_LIST_END = 0
CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN = 0x1088
CL_DEVICE_AFFINITY_DOMAIN_NUMA = 1
CL_DEVICE_AFFINITY_DOMAIN_L4_CACHE = 2
CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE = 4
CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE = 8
CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE = 0x10
CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE = 0x20
CL_DEVICE_SVM_COARSE_GRAIN_BUFFER = 1
CL_DEVICE_SVM_FINE_GRAIN_BUFFER = 2
CL_DEVICE_SVM_FINE_GRAIN_SYSTEM = 4
CL_DEVICE_SVM_ATOMICS = 8
CL_QUEUE_CONTEXT = 0x1090
CL_QUEUE_DEVICE = 0x1091
CL_QUEUE_REFERENCE_COUNT = 0x1092
CL_QUEUE_PROPERTIES = 0x1093
CL_QUEUE_SIZE = 0x1094
CL_QUEUE_DEVICE_DEFAULT = 0x1095
CL_QUEUE_PROPERTIES_ARRAY = 0x1098
CL_MEM_READ_WRITE = 1
CL_MEM_WRITE_ONLY = 2
CL_MEM_READ_ONLY = 4
CL_MEM_USE_HOST_PTR = 8
CL_MEM_ALLOC_HOST_PTR = 0x10
CL_MEM_COPY_HOST_PTR = 0x20
CL_MEM_HOST_WRITE_ONLY = 0x80
CL_MEM_HOST_READ_ONLY = 0x100
CL_MEM_HOST_NO_ACCESS = 0x200
CL_MEM_SVM_FINE_GRAIN_BUFFER = 0x400
CL_MEM_SVM_ATOMICS = 0x800
CL_MEM_KERNEL_READ_AND_WRITE = 0x1000
CL_MIGRATE_MEM_OBJECT_HOST = 1
CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED = 2
CL_R = 0x10b0
CL_A = 0x10b1
CL_RG = 0x10b2
CL_RA = 0x10b3
CL_RGB = 0x10b4
CL_RGBA = 0x10b5
CL_BGRA = 0x10b6
CL_ARGB = 0x10b7
CL_INTENSITY = 0x10b8
CL_LUMINANCE = 0x10b9
CL_Rx = 0x10ba
CL_RGx = 0x10bb
CL_RGBx = 0x10bc
CL_DEPTH = 0x10bd
CL_DEPTH_STENCIL = 0x10be
CL_sRGB = 0x10bf
CL_sRGBx = 0x10c0
CL_sRGBA = 0x10c1
CL_sBGRA = 0x10c2
CL_ABGR = 0x10c3
CL_SNORM_INT8 = 0x10d0
CL_SNORM_INT16 = 0x10d1
CL_UNORM_INT8 = 0x10d2
CL_UNORM_INT16 = 0x10d3
CL_UNORM_SHORT_565 = 0x10d4
CL_UNORM_SHORT_555 = 0x10d5
CL_UNORM_INT_101010 = 0x10d6
CL_SIGNED_INT8 = 0x10d7
CL_SIGNED_INT16 = 0x10d8
CL_SIGNED_INT32 = 0x10d9
CL_UNSIGNED_INT8 = 0x10da
CL_UNSIGNED_INT16 = 0x10db
CL_UNSIGNED_INT32 = 0x10dc
CL_HALF_FLOAT = 0x10dd
CL_FLOAT = 0x10de
CL_UNORM_INT24 = 0x10df
CL_UNORM_INT_101010_2 = 0x10e0
CL_MEM_OBJECT_BUFFER = 0x10f0
CL_MEM_OBJECT_IMAGE2D = 0x10f1
CL_MEM_OBJECT_IMAGE3D = 0x10f2
CL_MEM_OBJECT_IMAGE2D_ARRAY = 0x10f3
CL_MEM_OBJECT_IMAGE1D = 0x10f4
CL_MEM_OBJECT_IMAGE1D_ARRAY = 0x10f5
CL_MEM_OBJECT_IMAGE1D_BUFFER = 0x10f6
CL_MEM_OBJECT_PIPE = 0x10f7
CL_MEM_TYPE = 0x1100
CL_MEM_FLAGS = 0x1101
CL_MEM_SIZE = 0x1102
CL_MEM_HOST_PTR = 0x1103
CL_MEM_MAP_COUNT = 0x1104
CL_MEM_REFERENCE_COUNT = 0x1105
CL_MEM_CONTEXT = 0x1106
CL_MEM_ASSOCIATED_MEMOBJECT = 0x1107
CL_MEM_OFFSET = 0x1108
CL_MEM_USES_SVM_POINTER = 0x1109
CL_MEM_PROPERTIES = 0x110a
CL_IMAGE_FORMAT = 0x1110
CL_IMAGE_ELEMENT_SIZE = 0x1111
CL_IMAGE_ROW_PITCH = 0x1112
CL_IMAGE_SLICE_PITCH = 0x1113
CL_IMAGE_WIDTH = 0x1114
CL_IMAGE_HEIGHT = 0x1115
CL_IMAGE_DEPTH = 0x1116
CL_IMAGE_ARRAY_SIZE = 0x1117
CL_IMAGE_BUFFER = 0x1118
CL_IMAGE_NUM_MIP_LEVELS = 0x1119
CL_IMAGE_NUM_SAMPLES = 0x111a
CL_PIPE_PACKET_SIZE = 0x1120
CL_PIPE_MAX_PACKETS = 0x1121
CL_PIPE_PROPERTIES = 0x1122
CL_ADDRESS_NONE = 0x1130
CL_ADDRESS_CLAMP_TO_EDGE = 0x1131
CL_ADDRESS_CLAMP = 0x1132
CL_ADDRESS_REPEAT = 0x1133
CL_ADDRESS_MIRRORED_REPEAT = 0x1134
CL_FILTER_NEAREST = 0x1140
CL_FILTER_LINEAR = 0x1141
CL_SAMPLER_REFERENCE_COUNT = 0x1150
CL_SAMPLER_CONTEXT = 0x1151
CL_SAMPLER_NORMALIZED_COORDS = 0x1152
CL_SAMPLER_ADDRESSING_MODE = 0x1153
CL_SAMPLER_FILTER_MODE = 0x1154
CL_SAMPLER_MIP_FILTER_MODE = 0x1155
CL_SAMPLER_LOD_MIN = 0x1156
CL_SAMPLER_LOD_MAX = 0x1157
CL_SAMPLER_PROPERTIES = 0x1158
CL_MAP_READ = 1
CL_MAP_WRITE = 2
CL_MAP_WRITE_INVALIDATE_REGION = 4
CL_PROGRAM_REFERENCE_COUNT = 0x1160
CL_PROGRAM_CONTEXT = 0x1161
CL_PROGRAM_NUM_DEVICES = 0x1162
CL_PROGRAM_DEVICES = 0x1163
CL_PROGRAM_SOURCE = 0x1164
CL_PROGRAM_BINARY_SIZES = 0x1165
CL_PROGRAM_BINARIES = 0x1166
CL_PROGRAM_NUM_KERNELS = 0x1167
CL_PROGRAM_KERNEL_NAMES = 0x1168
CL_PROGRAM_IL = 0x1169
CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT = 0x116a
CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT = 0x116b
CL_PROGRAM_BUILD_STATUS = 0x1181
CL_PROGRAM_BUILD_OPTIONS = 0x1182
CL_PROGRAM_BUILD_LOG = 0x1183
CL_PROGRAM_BINARY_TYPE = 0x1184
CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE = 0x1185
CL_PROGRAM_BINARY_TYPE_NONE = 0
CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT = 1
CL_PROGRAM_BINARY_TYPE_LIBRARY = 2
CL_PROGRAM_BINARY_TYPE_EXECUTABLE = 4
CL_BUILD_SUCCESS = 0
CL_BUILD_NONE = -1
CL_BUILD_ERROR = -2
CL_BUILD_IN_PROGRESS = -3
CL_KERNEL_FUNCTION_NAME = 0x1190
CL_KERNEL_NUM_ARGS = 0x1191
CL_KERNEL_REFERENCE_COUNT = 0x1192
CL_KERNEL_CONTEXT = 0x1193
CL_KERNEL_PROGRAM = 0x1194
CL_KERNEL_ATTRIBUTES = 0x1195
CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196
CL_KERNEL_ARG_ACCESS_QUALIFIER = 0x1197
CL_KERNEL_ARG_TYPE_NAME = 0x1198
CL_KERNEL_ARG_TYPE_QUALIFIER = 0x1199
CL_KERNEL_ARG_NAME = 0x119a
CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119b
CL_KERNEL_ARG_ADDRESS_LOCAL = 0x119c
CL_KERNEL_ARG_ADDRESS_CONSTANT = 0x119d
CL_KERNEL_ARG_ADDRESS_PRIVATE = 0x119e
CL_KERNEL_ARG_ACCESS_READ_ONLY = 0x11a0
CL_KERNEL_ARG_ACCESS_WRITE_ONLY = 0x11a1
CL_KERNEL_ARG_ACCESS_READ_WRITE = 0x11a2
CL_KERNEL_ARG_ACCESS_NONE = 0x11a3
CL_KERNEL_ARG_TYPE_NONE = 0
CL_KERNEL_ARG_TYPE_CONST = 1
CL_KERNEL_ARG_TYPE_RESTRICT = 2
CL_KERNEL_ARG_TYPE_VOLATILE = 4
CL_KERNEL_ARG_TYPE_PIPE = 8
CL_KERNEL_WORK_GROUP_SIZE = 0x11b0
CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11b1
CL_KERNEL_LOCAL_MEM_SIZE = 0x11b2
CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE = 0x11b3
CL_KERNEL_PRIVATE_MEM_SIZE = 0x11b4
CL_KERNEL_GLOBAL_WORK_SIZE = 0x11b5
CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE = 0x2033
CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE = 0x2034
CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT = 0x11b8
CL_KERNEL_MAX_NUM_SUB_GROUPS = 0x11b9
CL_KERNEL_COMPILE_NUM_SUB_GROUPS = 0x11ba
CL_KERNEL_EXEC_INFO_SVM_PTRS = 0x11b6
CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM = 0x11b7
CL_EVENT_COMMAND_QUEUE = 0x11d0
CL_EVENT_COMMAND_TYPE = 0x11d1
CL_EVENT_REFERENCE_COUNT = 0x11d2
CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3
CL_EVENT_CONTEXT = 0x11d4
CL_COMMAND_NDRANGE_KERNEL = 0x11f0
CL_COMMAND_TASK = 0x11f1
CL_COMMAND_NATIVE_KERNEL = 0x11f2
CL_COMMAND_READ_BUFFER = 0x11f3
CL_COMMAND_WRITE_BUFFER = 0x11f4
CL_COMMAND_COPY_BUFFER = 0x11f5
CL_COMMAND_READ_IMAGE = 0x11f6
CL_COMMAND_WRITE_IMAGE = 0x11f7
CL_COMMAND_COPY_IMAGE = 0x11f8
CL_COMMAND_COPY_IMAGE_TO_BUFFER = 0x11f9
CL_COMMAND_COPY_BUFFER_TO_IMAGE = 0x11fa
CL_COMMAND_MAP_BUFFER = 0x11fb
CL_COMMAND_MAP_IMAGE = 0x11fc
CL_COMMAND_UNMAP_MEM_OBJECT = 0x11fd
CL_COMMAND_MARKER = 0x11fe
CL_COMMAND_ACQUIRE_GL_OBJECTS = 0x11ff
CL_COMMAND_RELEASE_GL_OBJECTS = 0x1200
CL_COMMAND_READ_BUFFER_RECT = 0x1201
CL_COMMAND_WRITE_BUFFER_RECT = 0x1202
CL_COMMAND_COPY_BUFFER_RECT = 0x1203
CL_COMMAND_USER = 0x1204
CL_COMMAND_BARRIER = 0x1205
CL_COMMAND_MIGRATE_MEM_OBJECTS = 0x1206
CL_COMMAND_FILL_BUFFER = 0x1207
CL_COMMAND_FILL_IMAGE = 0x1208
CL_COMMAND_SVM_FREE = 0x1209
CL_COMMAND_SVM_MEMCPY = 0x120a
CL_COMMAND_SVM_MEMFILL = 0x120b
CL_COMMAND_SVM_MAP = 0x120c
CL_COMMAND_SVM_UNMAP = 0x120d
CL_COMMAND_SVM_MIGRATE_MEM = 0x120e
CL_COMPLETE = 0
CL_RUNNING = 1
CL_SUBMITTED = 2
CL_QUEUED = 3
CL_BUFFER_CREATE_TYPE_REGION = 0x1220
CL_PROFILING_COMMAND_QUEUED = 0x1280
CL_PROFILING_COMMAND_SUBMIT = 0x1281
CL_PROFILING_COMMAND_START = 0x1282
CL_PROFILING_COMMAND_END = 0x1283
CL_PROFILING_COMMAND_COMPLETE = 0x1284
CL_DEVICE_ATOMIC_ORDER_RELAXED = 1
CL_DEVICE_ATOMIC_ORDER_ACQ_REL = 2
CL_DEVICE_ATOMIC_ORDER_SEQ_CST = 4
CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM = 8
CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP = 0x10
CL_DEVICE_ATOMIC_SCOPE_DEVICE = 0x20
CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES = 0x40
CL_DEVICE_QUEUE_SUPPORTED = 1
CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT = 2
CL_KHRONOS_VENDOR_ID_CODEPLAY = 0x10004
CL_VERSION_MAJOR_BITS = 0xa
CL_VERSION_MINOR_BITS = 0xa
CL_VERSION_PATCH_BITS = 0xc
CL_VERSION_MAJOR_MASK = 0x3ff
CL_VERSION_MINOR_MASK = 0x3ff
CL_VERSION_PATCH_MASK = 0xfff

ERRORS = {
  0: "CL_SUCCESS",
  -1: "CL_DEVICE_NOT_FOUND",
  -2: "CL_DEVICE_NOT_AVAILABLE",
  -3: "CL_COMPILER_NOT_AVAILABLE",
  -4: "CL_MEM_OBJECT_ALLOCATION_FAILURE",
  -5: "CL_OUT_OF_RESOURCES",
  -6: "CL_OUT_OF_HOST_MEMORY",
  -7: "CL_PROFILING_INFO_NOT_AVAILABLE",
  -8: "CL_MEM_COPY_OVERLAP",
  -9: "CL_IMAGE_FORMAT_MISMATCH",
  -10: "CL_IMAGE_FORMAT_NOT_SUPPORTED",
  -11: "CL_BUILD_PROGRAM_FAILURE",
  -12: "CL_MAP_FAILURE",
  -13: "CL_MISALIGNED_SUB_BUFFER_OFFSET",
  -14: "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
  -15: "CL_COMPILE_PROGRAM_FAILURE",
  -16: "CL_LINKER_NOT_AVAILABLE",
  -17: "CL_LINK_PROGRAM_FAILURE",
  -18: "CL_DEVICE_PARTITION_FAILED",
  -19: "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
  -30: "CL_INVALID_VALUE",
  -31: "CL_INVALID_DEVICE_TYPE",
  -32: "CL_INVALID_PLATFORM",
  -33: "CL_INVALID_DEVICE",
  -34: "CL_INVALID_CONTEXT",
  -35: "CL_INVALID_QUEUE_PROPERTIES",
  -36: "CL_INVALID_COMMAND_QUEUE",
  -37: "CL_INVALID_HOST_PTR",
  -38: "CL_INVALID_MEM_OBJECT",
  -39: "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
  -40: "CL_INVALID_IMAGE_SIZE",
  -41: "CL_INVALID_SAMPLER",
  -42: "CL_INVALID_BINARY",
  -43: "CL_INVALID_BUILD_OPTIONS",
  -44: "CL_INVALID_PROGRAM",
  -45: "CL_INVALID_PROGRAM_EXECUTABLE",
  -46: "CL_INVALID_KERNEL_NAME",
  -47: "CL_INVALID_KERNEL_DEFINITION",
  -48: "CL_INVALID_KERNEL",
  -49: "CL_INVALID_ARG_INDEX",
  -50: "CL_INVALID_ARG_VALUE",
  -51: "CL_INVALID_ARG_SIZE",
  -52: "CL_INVALID_KERNEL_ARGS",
  -53: "CL_INVALID_WORK_DIMENSION",
  -54: "CL_INVALID_WORK_GROUP_SIZE",
  -55: "CL_INVALID_WORK_ITEM_SIZE",
  -56: "CL_INVALID_GLOBAL_OFFSET",
  -57: "CL_INVALID_EVENT_WAIT_LIST",
  -58: "CL_INVALID_EVENT",
  -59: "CL_INVALID_OPERATION",
  -60: "CL_INVALID_GL_OBJECT",
  -61: "CL_INVALID_BUFFER_SIZE",
  -62: "CL_INVALID_MIP_LEVEL",
  -63: "CL_INVALID_GLOBAL_WORK_SIZE",
  -64: "CL_INVALID_PROPERTY",
  -65: "CL_INVALID_IMAGE_DESCRIPTOR",
  -66: "CL_INVALID_COMPILER_OPTIONS",
  -67: "CL_INVALID_LINKER_OPTIONS",
  -68: "CL_INVALID_DEVICE_PARTITION_COUNT",
  -69: "CL_INVALID_PIPE_SIZE",
  -70: "CL_INVALID_DEVICE_QUEUE",
  -71: "CL_INVALID_SPEC_ID",
  -72: "CL_MAX_SIZE_RESTRICTION_EXCEEDED",
}

FUNCTIONS = {
  "clGetPlatformIDs": (c_int32, (c_uint32, c_void_p, c_void_p)),
  "clGetPlatformInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetDeviceIDs": (c_int32, (c_void_p, c_uint64, c_uint32, c_void_p, c_void_p)),
  "clGetDeviceInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clCreateSubDevices": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clRetainDevice": (c_int32, (c_void_p,)),
  "clReleaseDevice": (c_int32, (c_void_p,)),
  "clSetDefaultDeviceCommandQueue": (c_int32, (c_void_p, c_void_p, c_void_p)),
  "clGetDeviceAndHostTimer": (c_int32, (c_void_p, c_void_p, c_void_p)),
  "clGetHostTimer": (c_int32, (c_void_p, c_void_p)),
  "clCreateContext": (c_void_p, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clCreateContextFromType": (c_void_p, (c_void_p, c_uint64, c_void_p, c_void_p, c_void_p)),
  "clRetainContext": (c_int32, (c_void_p,)),
  "clReleaseContext": (c_int32, (c_void_p,)),
  "clGetContextInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clSetContextDestructorCallback": (c_int32, (c_void_p, c_void_p, c_void_p)),
  "clCreateCommandQueueWithProperties": (c_void_p, (c_void_p, c_void_p, c_void_p, c_void_p)),
  "clRetainCommandQueue": (c_int32, (c_void_p,)),
  "clReleaseCommandQueue": (c_int32, (c_void_p,)),
  "clGetCommandQueueInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clCreateBuffer": (c_void_p, (c_void_p, c_uint64, c_size_t, c_void_p, c_void_p)),
  "clCreateSubBuffer": (c_void_p, (c_void_p, c_uint64, c_uint32, c_void_p, c_void_p)),
  "clCreateImage": (c_void_p, (c_void_p, c_uint64, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clCreatePipe": (c_void_p, (c_void_p, c_uint64, c_uint32, c_uint32, c_void_p, c_void_p)),
  "clCreateBufferWithProperties": (c_void_p, (c_void_p, c_void_p, c_uint64, c_size_t, c_void_p, c_void_p)),
  "clCreateImageWithProperties": (c_void_p, (c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clRetainMemObject": (c_int32, (c_void_p,)),
  "clReleaseMemObject": (c_int32, (c_void_p,)),
  "clGetSupportedImageFormats": (c_int32, (c_void_p, c_uint64, c_uint32, c_uint32, c_void_p, c_void_p)),
  "clGetMemObjectInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetImageInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetPipeInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clSetMemObjectDestructorCallback": (c_int32, (c_void_p, c_void_p, c_void_p)),
  "clSVMAlloc": (c_void_p, (c_void_p, c_uint64, c_size_t, c_uint32)),
  "clSVMFree": (None, (c_void_p, c_void_p)),
  "clCreateSamplerWithProperties": (c_void_p, (c_void_p, c_void_p, c_void_p)),
  "clRetainSampler": (c_int32, (c_void_p,)),
  "clReleaseSampler": (c_int32, (c_void_p,)),
  "clGetSamplerInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clCreateProgramWithSource": (c_void_p, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p)),
  "clCreateProgramWithBinary": (c_void_p, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clCreateProgramWithBuiltInKernels": (c_void_p, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p)),
  "clCreateProgramWithIL": (c_void_p, (c_void_p, c_void_p, c_size_t, c_void_p)),
  "clRetainProgram": (c_int32, (c_void_p,)),
  "clReleaseProgram": (c_int32, (c_void_p,)),
  "clBuildProgram": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clCompileProgram": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clLinkProgram": (c_void_p, (c_void_p, c_uint32, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
  "clSetProgramReleaseCallback": (c_int32, (c_void_p, c_void_p, c_void_p)),
  "clSetProgramSpecializationConstant": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p)),
  "clUnloadPlatformCompiler": (c_int32, (c_void_p,)),
  "clGetProgramInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetProgramBuildInfo": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clCreateKernel": (c_void_p, (c_void_p, c_void_p, c_void_p)),
  "clCreateKernelsInProgram": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p)),
  "clCloneKernel": (c_void_p, (c_void_p, c_void_p)),
  "clRetainKernel": (c_int32, (c_void_p,)),
  "clReleaseKernel": (c_int32, (c_void_p,)),
  "clSetKernelArg": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p)),
  "clSetKernelArgSVMPointer": (c_int32, (c_void_p, c_uint32, c_void_p)),
  "clSetKernelExecInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p)),
  "clGetKernelInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetKernelArgInfo": (c_int32, (c_void_p, c_uint32, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetKernelWorkGroupInfo": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clGetKernelSubGroupInfo": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p)),
  "clWaitForEvents": (c_int32, (c_uint32, c_void_p)),
  "clGetEventInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clCreateUserEvent": (c_void_p, (c_void_p, c_void_p)),
  "clRetainEvent": (c_int32, (c_void_p,)),
  "clReleaseEvent": (c_int32, (c_void_p,)),
  "clSetUserEventStatus": (c_int32, (c_void_p, c_int32)),
  "clSetEventCallback": (c_int32, (c_void_p, c_int32, c_void_p, c_void_p)),
  "clGetEventProfilingInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, c_void_p)),
  "clFlush": (c_int32, (c_void_p,)),
  "clFinish": (c_int32, (c_void_p,)),
  "clEnqueueReadBuffer": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_size_t, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueReadBufferRect": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueWriteBuffer": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_size_t, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueWriteBufferRect": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueFillBuffer": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueCopyBuffer": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueCopyBufferRect": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueReadImage": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueWriteImage": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueFillImage": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueCopyImage": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueCopyImageToBuffer": (c_int32, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueCopyBufferToImage": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueMapBuffer": (c_void_p, (c_void_p, c_void_p, c_uint32, c_uint64, c_size_t, c_size_t, c_uint32, c_void_p, c_void_p, c_void_p)),
  "clEnqueueMapImage": (c_void_p, (c_void_p, c_void_p, c_uint32, c_uint64, c_void_p, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p)),
  "clEnqueueUnmapMemObject": (c_int32, (c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueMigrateMemObjects": (c_int32, (c_void_p, c_uint32, c_void_p, c_uint64, c_uint32, c_void_p, c_void_p)),
  "clEnqueueNDRangeKernel": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueNativeKernel": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueMarkerWithWaitList": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueBarrierWithWaitList": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueSVMFree": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueSVMMemcpy": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueSVMMemFill": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueSVMMap": (c_int32, (c_void_p, c_uint32, c_uint64, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p)),
  "clEnqueueSVMUnmap": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
  "clEnqueueSVMMigrateMem": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_uint64, c_uint32, c_void_p, c_void_p)),
  "clGetExtensionFunctionAddressForPlatform": (c_void_p, (c_void_p, c_void_p)),
  "clCreateImage2D": (c_void_p, (c_void_p, c_uint64, c_void_p, c_size_t, c_size_t, c_size_t, c_void_p, c_void_p)),
  "clCreateImage3D": (c_void_p, (c_void_p, c_uint64, c_void_p, c_size_t, c_size_t, c_size_t, c_size_t, c_size_t, c_void_p, c_void_p)),
  "clEnqueueMarker": (c_int32, (c_void_p, c_void_p)),
  "clEnqueueWaitForEvents": (c_int32, (c_void_p, c_uint32, c_void_p)),
  "clEnqueueBarrier": (c_int32, (c_void_p,)),
  "clUnloadCompiler": (c_int32, ()),
  "clGetExtensionFunctionAddress": (c_void_p, (c_void_p,)),
  "clCreateCommandQueue": (c_void_p, (c_void_p, c_void_p, c_uint64, c_void_p)),
  "clCreateSampler": (c_void_p, (c_void_p, c_uint32, c_uint32, c_uint32, c_void_p)),
  "clEnqueueTask": (c_int32, (c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
}
