"""KFD's topology in sysfs (/sys/class/kfd/kfd/topology): property names in their order, capability bits.

Generated; do not edit. Source:
  Linux (Debian linux-source-6.12) 6.12.117-1~deb12u1, licence MIT (AMD's notice in each file)
    include/uapi/linux/kfd_sysfs.h sha256 57c8e407dbafe55179a9488eae54b828ccd93cc6e969a7cc90ffe440afdb472b
    drivers/gpu/drm/amd/amdkfd/kfd_topology.c sha256 3c22a5bfb1ec5ca84f6711e95f1718168681a01d2ca2cadc2b612bc489c4db9d
    drivers/gpu/drm/amd/amdkfd/kfd_crat.h sha256 b696c77856caed96e2c1bf93618b0cd153d5ad365103c0450fa3db52c948433b
Generator: tinyhw gen kfd_sysfs

A file `properties` has one line `name value` for each name; the number is the width of the value in bits (0: a list).
"""
from __future__ import annotations

HSA_CAP_HOT_PLUGGABLE = 1
HSA_CAP_ATS_PRESENT = 2
HSA_CAP_SHARED_WITH_GRAPHICS = 4
HSA_CAP_QUEUE_SIZE_POW2 = 8
HSA_CAP_QUEUE_SIZE_32BIT = 0x10
HSA_CAP_QUEUE_IDLE_EVENT = 0x20
HSA_CAP_VA_LIMIT = 0x40
HSA_CAP_WATCH_POINTS_SUPPORTED = 0x80
HSA_CAP_WATCH_POINTS_TOTALBITS_MASK = 0xf00
HSA_CAP_WATCH_POINTS_TOTALBITS_SHIFT = 8
HSA_CAP_DOORBELL_TYPE_TOTALBITS_MASK = 0x3000
HSA_CAP_DOORBELL_TYPE_TOTALBITS_SHIFT = 0xc
HSA_CAP_DOORBELL_TYPE_PRE_1_0 = 0
HSA_CAP_DOORBELL_TYPE_1_0 = 1
HSA_CAP_DOORBELL_TYPE_2_0 = 2
HSA_CAP_AQL_QUEUE_DOUBLE_MAP = 0x4000
HSA_CAP_TRAP_DEBUG_SUPPORT = 0x8000
HSA_CAP_TRAP_DEBUG_WAVE_LAUNCH_TRAP_OVERRIDE_SUPPORTED = 0x10000
HSA_CAP_TRAP_DEBUG_WAVE_LAUNCH_MODE_SUPPORTED = 0x20000
HSA_CAP_TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED = 0x40000
HSA_CAP_RESERVED_WAS_SRAM_EDCSUPPORTED = 0x80000
HSA_CAP_MEM_EDCSUPPORTED = 0x100000
HSA_CAP_RASEVENTNOTIFY = 0x200000
HSA_CAP_ASIC_REVISION_MASK = 0x3c00000
HSA_CAP_ASIC_REVISION_SHIFT = 0x16
HSA_CAP_SRAM_EDCSUPPORTED = 0x4000000
HSA_CAP_SVMAPI_SUPPORTED = 0x8000000
HSA_CAP_FLAGS_COHERENTHOSTACCESS = 0x10000000
HSA_CAP_TRAP_DEBUG_FIRMWARE_SUPPORTED = 0x20000000
HSA_CAP_TRAP_DEBUG_PRECISE_ALU_OPERATIONS_SUPPORTED = 0x40000000
HSA_CAP_RESERVED = 0x800f8000
HSA_DBG_WATCH_ADDR_MASK_LO_BIT_MASK = 0xf
HSA_DBG_WATCH_ADDR_MASK_LO_BIT_SHIFT = 0
HSA_DBG_WATCH_ADDR_MASK_HI_BIT_MASK = 0x3f0
HSA_DBG_WATCH_ADDR_MASK_HI_BIT_SHIFT = 4
HSA_DBG_DISPATCH_INFO_ALWAYS_VALID = 0x400
HSA_DBG_WATCHPOINTS_EXCLUSIVE = 0x800
HSA_DBG_RESERVED = 0xfffffffffffff000
HSA_MEM_HEAP_TYPE_SYSTEM = 0
HSA_MEM_HEAP_TYPE_FB_PUBLIC = 1
HSA_MEM_HEAP_TYPE_FB_PRIVATE = 2
HSA_MEM_HEAP_TYPE_GPU_GDS = 3
HSA_MEM_HEAP_TYPE_GPU_LDS = 4
HSA_MEM_HEAP_TYPE_GPU_SCRATCH = 5
HSA_MEM_FLAGS_HOT_PLUGGABLE = 1
HSA_MEM_FLAGS_NON_VOLATILE = 2
HSA_MEM_FLAGS_RESERVED = 0xfffffffc
HSA_CACHE_TYPE_DATA = 1
HSA_CACHE_TYPE_INSTRUCTION = 2
HSA_CACHE_TYPE_CPU = 4
HSA_CACHE_TYPE_HSACU = 8
HSA_CACHE_TYPE_RESERVED = 0xfffffff0
HSA_IOLINK_TYPE_UNDEFINED = 0
HSA_IOLINK_TYPE_HYPERTRANSPORT = 1
HSA_IOLINK_TYPE_PCIEXPRESS = 2
HSA_IOLINK_TYPE_AMBA = 3
HSA_IOLINK_TYPE_MIPI = 4
HSA_IOLINK_TYPE_QPI_1_1 = 5
HSA_IOLINK_TYPE_RESERVED1 = 6
HSA_IOLINK_TYPE_RESERVED2 = 7
HSA_IOLINK_TYPE_RAPID_IO = 8
HSA_IOLINK_TYPE_INFINIBAND = 9
HSA_IOLINK_TYPE_RESERVED3 = 0xa
HSA_IOLINK_TYPE_XGMI = 0xb
HSA_IOLINK_TYPE_XGOP = 0xc
HSA_IOLINK_TYPE_GZ = 0xd
HSA_IOLINK_TYPE_ETHERNET_RDMA = 0xe
HSA_IOLINK_TYPE_RDMA_OTHER = 0xf
HSA_IOLINK_TYPE_OTHER = 0x10
HSA_IOLINK_FLAGS_ENABLED = 1
HSA_IOLINK_FLAGS_NON_COHERENT = 2
HSA_IOLINK_FLAGS_NO_ATOMICS_32_BIT = 4
HSA_IOLINK_FLAGS_NO_ATOMICS_64_BIT = 8
HSA_IOLINK_FLAGS_NO_PEER_TO_PEER_DMA = 0x10
HSA_IOLINK_FLAGS_RESERVED = 0xffffffe0

# CRAT flags that the topology reports as they are.
CRAT_CU_FLAGS_ENABLED = 0x00000001
CRAT_CU_FLAGS_HOT_PLUGGABLE = 0x00000002
CRAT_CU_FLAGS_CPU_PRESENT = 0x00000004
CRAT_CU_FLAGS_GPU_PRESENT = 0x00000008
CRAT_CU_FLAGS_IOMMU_PRESENT = 0x00000010
CRAT_CU_FLAGS_RESERVED = 0xffffffe0
CRAT_MEM_FLAGS_ENABLED = 0x00000001
CRAT_MEM_FLAGS_HOT_PLUGGABLE = 0x00000002
CRAT_MEM_FLAGS_NON_VOLATILE = 0x00000004
CRAT_MEM_FLAGS_RESERVED = 0xfffffff8
CRAT_MEMORY_RESERVED_LENGTH = 8
CRAT_CACHE_FLAGS_ENABLED = 0x00000001
CRAT_CACHE_FLAGS_DATA_CACHE = 0x00000002
CRAT_CACHE_FLAGS_INST_CACHE = 0x00000004
CRAT_CACHE_FLAGS_CPU_CACHE = 0x00000008
CRAT_CACHE_FLAGS_SIMD_CACHE = 0x00000010
CRAT_CACHE_FLAGS_RESERVED = 0xffffffe0
CRAT_IOLINK_FLAGS_ENABLED = 1 << 0
CRAT_IOLINK_FLAGS_NON_COHERENT = 1 << 1
CRAT_IOLINK_FLAGS_NO_ATOMICS_32_BIT = 1 << 2
CRAT_IOLINK_FLAGS_NO_ATOMICS_64_BIT = 1 << 3
CRAT_IOLINK_FLAGS_NO_PEER_TO_PEER_DMA = 1 << 4
CRAT_IOLINK_FLAGS_BI_DIRECTIONAL = 1 << 31
CRAT_IOLINK_FLAGS_RESERVED_MASK = 0x7fffffe0
CRAT_IOLINK_TYPE_UNDEFINED = 0
CRAT_IOLINK_TYPE_HYPERTRANSPORT = 1
CRAT_IOLINK_TYPE_PCIEXPRESS = 2
CRAT_IOLINK_TYPE_AMBA = 3
CRAT_IOLINK_TYPE_MIPI = 4
CRAT_IOLINK_TYPE_QPI_1_1 = 5
CRAT_IOLINK_TYPE_RESERVED1 = 6
CRAT_IOLINK_TYPE_RESERVED2 = 7
CRAT_IOLINK_TYPE_RAPID_IO = 8
CRAT_IOLINK_TYPE_INFINIBAND = 9
CRAT_IOLINK_TYPE_RESERVED3 = 10
CRAT_IOLINK_TYPE_XGMI = 11
CRAT_IOLINK_TYPE_XGOP = 12
CRAT_IOLINK_TYPE_GZ = 13
CRAT_IOLINK_TYPE_ETHERNET_RDMA = 14
CRAT_IOLINK_TYPE_RDMA_OTHER = 15
CRAT_IOLINK_TYPE_OTHER = 16
CRAT_IOLINK_TYPE_MAX = 255
CRAT_IOLINK_RESERVED_LENGTH = 24

SYSTEM_PROPERTIES: tuple[tuple[str, int], ...] = (  # topology/system_properties
  ("platform_oem", 64),
  ("platform_id", 64),
  ("platform_rev", 64),
)

IO_LINK_PROPERTIES: tuple[tuple[str, int], ...] = (  # topology/nodes/N/io_links/M/properties, and p2p_links
  ("type", 32),
  ("version_major", 32),
  ("version_minor", 32),
  ("node_from", 32),
  ("node_to", 32),
  ("weight", 32),
  ("min_latency", 32),
  ("max_latency", 32),
  ("min_bandwidth", 32),
  ("max_bandwidth", 32),
  ("recommended_transfer_size", 32),
  ("recommended_sdma_engine_id_mask", 32),
  ("flags", 32),
)

MEM_PROPERTIES: tuple[tuple[str, int], ...] = (  # topology/nodes/N/mem_banks/M/properties
  ("heap_type", 32),
  ("size_in_bytes", 64),
  ("flags", 32),
  ("width", 32),
  ("mem_clk_max", 32),
)

CACHE_PROPERTIES: tuple[tuple[str, int], ...] = (  # topology/nodes/N/caches/M/properties
  ("processor_id_low", 32),
  ("level", 32),
  ("size", 32),
  ("cache_line_size", 32),
  ("cache_lines_per_tag", 32),
  ("association", 32),
  ("latency", 32),
  ("type", 32),
  ("sibling_map", 0),
)

NODE_PROPERTIES: tuple[tuple[str, int], ...] = (  # topology/nodes/N/properties
  ("cpu_cores_count", 32),
  ("simd_count", 32),
  ("mem_banks_count", 32),
  ("caches_count", 32),
  ("io_links_count", 32),
  ("p2p_links_count", 32),
  ("cpu_core_id_base", 32),
  ("simd_id_base", 32),
  ("max_waves_per_simd", 32),
  ("lds_size_in_kb", 32),
  ("gds_size_in_kb", 32),
  ("num_gws", 32),
  ("wave_front_size", 32),
  ("array_count", 32),
  ("simd_arrays_per_engine", 32),
  ("cu_per_simd_array", 32),
  ("simd_per_cu", 32),
  ("max_slots_scratch_cu", 32),
  ("gfx_target_version", 32),
  ("vendor_id", 32),
  ("device_id", 32),
  ("location_id", 32),
  ("domain", 32),
  ("drm_render_minor", 32),
  ("hive_id", 64),
  ("num_sdma_engines", 32),
  ("num_sdma_xgmi_engines", 32),
  ("num_sdma_queues_per_engine", 32),
  ("num_cp_queues", 32),
  ("cwsr_size", 32),
  ("ctl_stack_size", 32),
  ("max_engine_clk_fcompute", 32),
  ("local_mem_size", 64),
  ("fw_version", 32),
  ("capability", 32),
  ("debug_prop", 64),
  ("sdma_fw_version", 32),
  ("unique_id", 64),
  ("num_xcc", 32),
  ("max_engine_clk_ccompute", 32),
)
