"""amdgpu's render nodes: what the driver asks of DRM beside memory mappings (version, chip and memory information).

After Linux 6.12 `amdgpu/amdgpu_kms.c` (amdgpu_info_ioctl) and `drm/drm_ioctl.c`: an unknown number is EINVAL, a query
that the chip does not answer is EINVAL too. Buffers and submissions of the graphics interface are not modelled.
"""

from __future__ import annotations

import ctypes
import errno
from typing import TYPE_CHECKING, Any, Final

from tinyhw.arch import arch
from tinyhw.autogen import amdgpu_drm as drm
from tinyhw.core.ioctl import split
from tinyhw.core.table import Handlers
from tinyhw.mock.memory import Refused

if TYPE_CHECKING:
  from tinyhw.mock.amd.driver.process import OpenFile
  from tinyhw.mock.amd.machine import Gpu, Machine

DRM_TYPE: Final = 0x64  # 'd', drm.h DRM_IOCTL_BASE
DRM_VERSION_NUMBER: Final = 0  # drm.h DRM_IOCTL_VERSION
DRIVER: Final = (3, 61, 0)  # amdgpu_drv.c KMS_DRIVER_*
VA_RESERVED_BOTTOM: Final = 1 << 16  # amdgpu_vm.h AMDGPU_VA_RESERVED_BOTTOM
GMC_HOLE_START: Final = 1 << 47  # amdgpu_vm.h AMDGPU_GMC_HOLE_START
PTE_FRAGMENT: Final = 2 << 20
GB_ADDR_CONFIG: Final = 0x1260 + 0x13DE  # dwords: GC's segment 0, regGB_ADDR_CONFIG (gc_11_0_0_offset.h)
TILING: Final = 0x545  # what it holds: pipes, banks and engines, of which computing needs nothing
MOST_REGISTERS: Final = 128

queries: Final[Handlers[int]] = Handlers("amdgpu info query")


class _Version(ctypes.Structure):
  """struct drm_version of drm.h."""

  _fields_ = [
    ("version_major", ctypes.c_int),
    ("version_minor", ctypes.c_int),
    ("version_patchlevel", ctypes.c_int),
    ("name_len", ctypes.c_size_t),
    ("name", ctypes.c_uint64),
    ("date_len", ctypes.c_size_t),
    ("date", ctypes.c_uint64),
    ("desc_len", ctypes.c_size_t),
    ("desc", ctypes.c_uint64),
  ]


def name_of(request: int) -> str:
  """The name of a call of a render node."""
  if split(request).number == DRM_VERSION_NUMBER: return "DRM_IOCTL_VERSION"
  known = drm.IOCTLS.get(request)
  return known.name if known is not None else f"ioctl {request:#x}"


def ioctl(machine: Machine, file: OpenFile, request: int, argument: Any) -> int:
  """drm_ioctl on a render node."""
  parts = split(request)
  if parts.group != DRM_TYPE:
    raise Refused(errno.ENOTTY, f"ioctl {request:#x} is not DRM's")
  if argument is None or ctypes.sizeof(argument) < parts.size:
    raise Refused(errno.EFAULT, "the argument is shorter than the request says")
  assert file.gpu is not None
  if parts.number == DRM_VERSION_NUMBER:
    return _version(machine, file, argument)
  if request == drm.DRM_IOCTL_AMDGPU_INFO:
    return _info(machine, file, argument)
  known = drm.IOCTLS.get(request)
  if known is None:
    raise Refused(errno.EINVAL, f"no DRM ioctl {request:#x}")
  machine.doubt(f"DRM ioctl {known.name} is not modelled: EOPNOTSUPP")
  raise Refused(errno.EOPNOTSUPP, f"{known.name} is not modelled")


def _version(machine: Machine, file: OpenFile, argument: Any) -> int:
  version = _Version.from_buffer(argument)
  user = machine.kfd.process(file.pid).user
  version.version_major, version.version_minor, version.version_patchlevel = DRIVER
  for part, text in (("name", b"amdgpu"), ("date", b"20150101"), ("desc", b"AMD GPU")):
    if getattr(version, part):
      user.write(getattr(version, part), text[: getattr(version, f"{part}_len")])
    setattr(version, f"{part}_len", len(text))
  return 0


def _info(machine: Machine, file: OpenFile, argument: Any) -> int:
  info = drm.drm_amdgpu_info.from_buffer(argument)
  if not info.return_size or not info.return_pointer:
    raise Refused(errno.EINVAL, "AMDGPU_INFO without room for the answer")
  query = queries.get(info.query)
  assert file.gpu is not None
  if query is None:
    raise Refused(errno.EINVAL, f"AMDGPU_INFO query {info.query:#x}")
  answer: bytes = query(file.gpu, info)
  machine.kfd.process(file.pid).user.write(info.return_pointer, answer[: info.return_size])
  return 0


@queries.handles(drm.AMDGPU_INFO_ACCEL_WORKING)
def accel_working(gpu: Gpu, info: Any) -> bytes:
  return (1).to_bytes(4, "little")


@queries.handles(drm.AMDGPU_INFO_TIMESTAMP)
def timestamp(gpu: Gpu, info: Any) -> bytes:
  return gpu.counter().to_bytes(8, "little")


@queries.handles(drm.AMDGPU_INFO_VRAM_USAGE, drm.AMDGPU_INFO_VIS_VRAM_USAGE)
def vram_usage(gpu: Gpu, info: Any) -> bytes:
  return (gpu.vram.size - gpu.vram_allocator.free_bytes).to_bytes(8, "little")


@queries.handles(drm.AMDGPU_INFO_GTT_USAGE)
def gtt_usage(gpu: Gpu, info: Any) -> bytes:
  return (gpu.machine.system.size - gpu.machine.system_allocator.free_bytes).to_bytes(8, "little")


@queries.handles(drm.AMDGPU_INFO_VRAM_GTT)
def vram_gtt(gpu: Gpu, info: Any) -> bytes:
  return bytes(
    drm.drm_amdgpu_info_vram_gtt(
      vram_size=gpu.vram.size, vram_cpu_accessible_size=gpu.vram.size, gtt_size=gpu.machine.system.size
    )
  )


@queries.handles(drm.AMDGPU_INFO_MEMORY)
def memory(gpu: Gpu, info: Any) -> bytes:
  answer, used = drm.drm_amdgpu_memory_info(), gpu.vram.size - gpu.vram_allocator.free_bytes
  for heap in (answer.vram, answer.cpu_accessible_vram):
    heap.total_heap_size = heap.usable_heap_size = gpu.vram.size
    heap.heap_usage, heap.max_allocation = used, gpu.vram.size * 3 // 4
  system = gpu.machine.system
  answer.gtt.total_heap_size = answer.gtt.usable_heap_size = system.size
  answer.gtt.heap_usage, answer.gtt.max_allocation = (
    system.size - gpu.machine.system_allocator.free_bytes,
    system.size * 3 // 4,
  )
  return bytes(answer)


@queries.handles(drm.AMDGPU_INFO_READ_MMR_REG)
def registers(gpu: Gpu, info: Any) -> bytes:
  """The registers that every client may read (soc21_allowed_read_registers): of them, the one that libdrm asks for."""
  first, count = int(info.read_mmr_reg.dword_offset), int(info.read_mmr_reg.count)
  if count > MOST_REGISTERS: raise Refused(errno.EINVAL, f"{count} registers")
  for register in range(first, first + count):
    if register != GB_ADDR_CONFIG: raise Refused(errno.EFAULT, f"register {register:#x} may not be read")
  return TILING.to_bytes(4, "little") * count


@queries.handles(drm.AMDGPU_INFO_FW_VERSION)
def firmware(gpu: Gpu, info: Any) -> bytes:
  versions = {drm.AMDGPU_INFO_FW_GFX_MEC: gpu.card.mec_firmware, drm.AMDGPU_INFO_FW_SDMA: gpu.card.sdma_firmware}
  if info.query_fw.fw_type not in versions:
    raise Refused(errno.EINVAL, f"firmware {info.query_fw.fw_type:#x}")
  return bytes(drm.drm_amdgpu_info_firmware(ver=versions[info.query_fw.fw_type], feature=0))


# By the core's version, the highest that is not above the card's (amdgpu_discovery.c; 11.0.2 and 11.0.3 are 11.0.0's).
_FAMILIES: Final = {
  (9, 0, 0): drm.AMDGPU_FAMILY_AI, (11, 0, 0): drm.AMDGPU_FAMILY_GC_11_0_0, (11, 0, 1): drm.AMDGPU_FAMILY_GC_11_0_1,
  (11, 0, 2): drm.AMDGPU_FAMILY_GC_11_0_0, (11, 5, 0): drm.AMDGPU_FAMILY_GC_11_5_0,
  (12, 0, 0): drm.AMDGPU_FAMILY_GC_12_0_0}


@queries.handles(drm.AMDGPU_INFO_DEV_INFO)
def device(gpu: Gpu, info: Any) -> bytes:
  """Clocks in kHz, sizes of caches in KiB."""
  card = gpu.card
  sizes = {(c.level, c.kind, c.compute_units): c.size for c in card.caches}
  answer = drm.drm_amdgpu_info_device(
    device_id=card.device_id,
    chip_rev=card.asic_revision,
    external_rev=card.asic_revision + card.external_revision,
    pci_rev=card.revision_id,
    family=_FAMILIES[max(version for version in _FAMILIES if version <= card.gc_version)],
    ids_flags=drm.AMDGPU_IDS_FLAGS_FUSION if card.apu else 0,
    num_shader_engines=card.shader_engines,
    num_shader_arrays_per_engine=card.arrays_per_engine,
    gpu_counter_freq=card.counter_clock_khz,
    max_engine_clock=card.engine_clock * 1000,
    max_memory_clock=card.memory_clock * 1000,
    cu_active_number=card.compute_units,
    virtual_address_offset=VA_RESERVED_BOTTOM,
    virtual_address_max=GMC_HOLE_START,
    virtual_address_alignment=4096,
    pte_fragment_size=PTE_FRAGMENT,
    gart_page_size=4096,
    vram_bit_width=card.vram_width,
    wave_front_size=card.wave_size,
    num_shader_visible_vgprs=arch(card.name).vgprs,
    num_cu_per_sh=card.compute_units_per_array,
    tcp_cache_size=sizes[1, "data", 1],
    sqc_inst_cache_size=sizes[1, "instruction", 2],
    sqc_data_cache_size=sizes[1, "data", 2],
    gl1c_cache_size=sizes.get((1, "data", card.compute_units_per_array), 0),
    gl2c_cache_size=sizes[2, "data", card.compute_units // card.xccs] << 10,
    mall_size=sizes.get((3, "data", card.compute_units), 0) << 10,
    pcie_gen=4,
    pcie_num_lanes=16,
  )
  for engine in range(min(card.shader_engines, 4)):
    for array in range(min(card.arrays_per_engine, 4)):
      answer.cu_bitmap[engine][array] = (1 << card.compute_units_per_array) - 1
  return bytes(answer)
