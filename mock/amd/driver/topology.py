"""The files of sysfs and procfs that amdkfd and amdgpu show: topology nodes, banks, caches, links, render nodes, IP
discovery.

Layout and property names after Linux 6.12 `amdkfd/kfd_topology.c` (sysfs_show_* calls, kfd_build_sysfs_node_entry) and
`kfd_crat.c`. Files are made when they are read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

from tinyhw.autogen import kfd_sysfs as sysfs
from tinyhw.core.environment import digits
from tinyhw.mock.amd.card import Cache, Card

ROOT: Final = "/sys/devices/virtual/kfd/kfd/topology"
ALIASES: Final = (("/sys/class/kfd/kfd", "/sys/devices/virtual/kfd/kfd"),)
RENDER_MINOR: Final = 128
CPU_LINK_WEIGHT: Final = 20  # kfd_crat.c: the distance of a PCIe device to its NUMA node


def local_memory(card: Card, vram_size: int, system_memory: int) -> int:
  """amdgpu_amdkfd_get_local_mem_info: the card's video memory, or what TTM may give an APU of the system's, which on
  this machine is all that GPUs can have (ttm.pages_limit)."""
  return system_memory if card.apu else vram_size


def gpu_id_of(card: Card, index: int, system_memory: int = 0) -> int:
  """kfd_generate_gpu_id: a CRC-16 over the card's PCI identity, made unique by its bus number."""
  size = local_memory(card, card.vram_size, system_memory)
  words = (0, 0, 0, card.device_id, bus_of(index), size & 0xFFFFFFFF, size >> 32, 0 | 1 << 16)
  crc = 0
  for byte in b"".join(w.to_bytes(4, "little") for w in words):
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
  return crc or 1


def bus_of(index: int) -> int:
  """PCI bus number of the card with this index."""
  return 3 + index * 0x20


_CAPABLE_12: Final = (sysfs.HSA_CAP_TRAP_DEBUG_PRECISE_ALU_OPERATIONS_SUPPORTED
                      | sysfs.HSA_CAP_TRAP_DEBUG_FIRMWARE_SUPPORTED)
# From Aldebaran on; firmware of chips that the kernel does not list is taken to work with a debugger.
_CAPABLE_9_4: Final = (sysfs.HSA_CAP_TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED
                       | sysfs.HSA_CAP_TRAP_DEBUG_FIRMWARE_SUPPORTED)


def capability(card: Card) -> int:
  """HSA_CAP_* of a node, as kfd_topology_set_capabilities and node_show compose them for GC 9.4.3, 11 and 12; four
  watch points."""
  return (
    sysfs.HSA_CAP_DOORBELL_TYPE_2_0 << sysfs.HSA_CAP_DOORBELL_TYPE_TOTALBITS_SHIFT
    | sysfs.HSA_CAP_TRAP_DEBUG_SUPPORT
    | sysfs.HSA_CAP_TRAP_DEBUG_WAVE_LAUNCH_TRAP_OVERRIDE_SUPPORTED
    | sysfs.HSA_CAP_TRAP_DEBUG_WAVE_LAUNCH_MODE_SUPPORTED
    | sysfs.HSA_CAP_WATCH_POINTS_SUPPORTED
    | 2 << sysfs.HSA_CAP_WATCH_POINTS_TOTALBITS_SHIFT
    | card.asic_revision << sysfs.HSA_CAP_ASIC_REVISION_SHIFT
    | (_CAPABLE_12 if card.gc_version >= (12, 0, 0) else _CAPABLE_9_4 if card.gc_version < (10, 0, 0) else 0)
  )


def _properties(rows: Sequence[tuple[str, int]]) -> bytes:
  return "".join(f"{k} {v}\n" for k, v in rows).encode()


def _line(value: str | int) -> bytes: return f"{value}\n".encode()


def _link(kind: int, source: int, target: int, weight: int, bandwidth: tuple[int, int]) -> bytes:
  return _properties(
    (
      ("type", kind),
      ("version_major", 0),
      ("version_minor", 0),
      ("node_from", source),
      ("node_to", target),
      ("weight", weight),
      ("min_latency", 0),
      ("max_latency", 0),
      ("min_bandwidth", bandwidth[0]),
      ("max_bandwidth", bandwidth[1]),
      ("recommended_transfer_size", 0),
      ("recommended_sdma_engine_id_mask", 0),
      ("flags", sysfs.HSA_IOLINK_FLAGS_ENABLED),
    )
  )


class Files:
  """A read-only tree of made-up files. Missing ones give ENOENT, a folder read as a file EISDIR, as the kernel does."""

  def __init__(
    self, cards: Sequence[Card], gpu_ids: Sequence[int], vram_sizes: Sequence[int], system_memory: int
  ) -> None:
    self.cards, self.gpu_ids, self.vram_sizes, self.system_memory = (
      tuple(cards),
      tuple(gpu_ids),
      tuple(vram_sizes),
      system_memory,
    )
    self._files: dict[str, Callable[[], bytes]] = {}
    self._folders: dict[str, set[str]] = {}
    self._add(f"{ROOT}/generation_id", lambda: b"2\n")
    self._add(
      f"{ROOT}/system_properties", lambda: _properties((("platform_oem", 0), ("platform_id", 0), ("platform_rev", 0)))
    )
    self._cpu_node()
    for index, card in enumerate(self.cards):
      self._gpu_node(index, card)
    for folder in ("mem_banks", "caches", "io_links", "p2p_links", "perf"):
      for node in range(len(self.cards) + 1):
        self._folder(f"{ROOT}/nodes/{node}/{folder}")
    self._add("/sys/module/amdgpu/initstate", lambda: b"live\n")
    self._add("/proc/modules", lambda: b"amdgpu 12345678 0 - Live 0x0000000000000000\n")

  # ---- the tree

  def _folder(self, path: str) -> None:
    while path != "/":
      path, name = os.path.split(path)
      names = self._folders.setdefault(path, set())
      if name in names:
        return
      names.add(name)

  def _add(self, path: str, text: Callable[[], bytes]) -> None:
    self._files[path] = text
    self._folder(path)

  def _real(self, path: str) -> str:
    path = os.path.normpath(path)
    for alias, target in ALIASES:
      if path == alias or path.startswith(alias + "/"):
        return target + path[len(alias) :]
    return path

  def holds(self, path: str) -> bool:
    path = self._real(path)
    return path in self._files or path in self._folders

  def contents(self) -> Iterator[tuple[str, bytes]]:
    """All files, each with its path."""
    for path, text in self._files.items(): yield path, text()

  def folders(self) -> list[str]:
    """All folders, also those that hold nothing."""
    inner = (f"{folder}/{name}" for folder, names in self._folders.items() for name in names)
    return [path for path in inner if path not in self._files]

  def read(self, path: str) -> bytes:
    """The whole file."""
    real = self._real(path)
    text = self._files.get(real)
    if text is not None:
      return text()
    code = errno.EISDIR if real in self._folders else errno.ENOENT
    raise OSError(code, os.strerror(code), path)

  def listdir(self, path: str) -> list[str]:
    """Names in a folder, numbers in their order."""
    real = self._real(path)
    if real in self._folders:
      return sorted(self._folders[real], key=lambda n: (len(n), n) if digits(n) else (0, n))
    leaf = any(real.endswith(f"/{f}") for f in ("mem_banks", "caches", "io_links", "p2p_links", "perf"))
    if leaf and os.path.basename(real) in self._folders.get(os.path.dirname(real), ()):
      return []
    code = errno.ENOTDIR if real in self._files else errno.ENOENT
    raise OSError(code, os.strerror(code), path)

  # ---- nodes

  def _cpu_node(self) -> None:
    at, cores = f"{ROOT}/nodes/0", os.cpu_count() or 1
    zeros = ("simd_count",)
    self._add(f"{at}/gpu_id", lambda: b"0\n")
    self._add(f"{at}/name", lambda: b"\n")
    rows = (
      ("cpu_cores_count", cores),
      *((z, 0) for z in zeros),
      ("mem_banks_count", 1),
      ("caches_count", 0),
      ("io_links_count", len(self.cards)),
      ("p2p_links_count", 0),
      ("cpu_core_id_base", 0),
      ("simd_id_base", 0),
      *(
        (name, 0)
        for name in (
          "max_waves_per_simd",
          "lds_size_in_kb",
          "gds_size_in_kb",
          "num_gws",
          "wave_front_size",
          "array_count",
          "simd_arrays_per_engine",
          "cu_per_simd_array",
          "simd_per_cu",
          "max_slots_scratch_cu",
          "gfx_target_version",
          "vendor_id",
          "device_id",
          "location_id",
          "domain",
          "drm_render_minor",
          "hive_id",
          "num_sdma_engines",
          "num_sdma_xgmi_engines",
          "num_sdma_queues_per_engine",
          "num_cp_queues",
          "cwsr_size",
          "ctl_stack_size",
        )
      ),
      ("max_engine_clk_ccompute", 4000),
    )
    self._add(f"{at}/properties", lambda: _properties(rows))
    self._add(
      f"{at}/mem_banks/0/properties",
      lambda: _properties(
        (
          ("heap_type", sysfs.HSA_MEM_HEAP_TYPE_SYSTEM),
          ("size_in_bytes", self.system_memory),
          ("flags", 0),
          ("width", 64),
          ("mem_clk_max", 0),
        )
      ),
    )
    for index, card in enumerate(self.cards):
      self._add(
        f"{at}/io_links/{index}/properties",
        partial(_link, sysfs.HSA_IOLINK_TYPE_PCIEXPRESS, 0, index + 1, CPU_LINK_WEIGHT, card.link_bandwidth),
      )

  def _gpu_node(self, index: int, card: Card) -> None:
    node, minor = index + 1, RENDER_MINOR + index
    vram_size = self.vram_sizes[index]
    at, gpu_id, peers = (
      f"{ROOT}/nodes/{node}",
      self.gpu_ids[index],
      [n + 1 for n in range(len(self.cards)) if n != index],
    )
    caches = [(cache, first) for cache in card.caches for first in range(0, card.compute_units, cache.compute_units)]
    rows = (
      ("cpu_cores_count", 0),
      ("simd_count", card.simds),
      ("mem_banks_count", 1),
      ("caches_count", len(caches)),
      ("io_links_count", 1),
      ("p2p_links_count", len(peers)),
      ("cpu_core_id_base", 0),
      ("simd_id_base", 0x80001000 + index),
      ("max_waves_per_simd", card.max_waves_per_simd),
      ("lds_size_in_kb", card.lds_kib),
      ("gds_size_in_kb", 0),
      ("num_gws", 64),
      ("wave_front_size", card.wave_size),
      ("array_count", card.arrays),
      ("simd_arrays_per_engine", card.arrays_per_engine),
      ("cu_per_simd_array", card.compute_units_per_array),
      ("simd_per_cu", card.simds_per_compute_unit),
      ("max_slots_scratch_cu", card.scratch_slots_per_compute_unit),
      ("gfx_target_version", card.gfx_target_version),
      ("vendor_id", card.vendor_id),
      ("device_id", card.device_id),
      ("location_id", bus_of(index) << 8),
      ("domain", 0),
      ("drm_render_minor", minor),
      ("hive_id", 0),
      ("num_sdma_engines", card.sdma_engines),
      ("num_sdma_xgmi_engines", card.sdma_xgmi_engines),
      ("num_sdma_queues_per_engine", card.sdma_queues_per_engine - card.sdma_queues_reserved),
      ("num_cp_queues", card.cp_queues),
      ("cwsr_size", card.save_area_size),
      ("ctl_stack_size", card.control_stack_size),
      ("max_engine_clk_fcompute", card.engine_clock),
      ("local_mem_size", 0),
      ("fw_version", card.mec_firmware),
      ("capability", capability(card)),
      ("debug_prop", self._debug_prop(card)),
      ("sdma_fw_version", card.sdma_firmware),
      ("unique_id", 0x7100_0000_0000_0000 + gpu_id),
      ("num_xcc", card.xccs),
      ("max_engine_clk_ccompute", 4000),
    )
    self._add(f"{at}/gpu_id", lambda: f"{gpu_id}\n".encode())
    self._add(f"{at}/name", lambda: b"ip discovery\n")
    self._add(f"{at}/properties", lambda: _properties(rows))
    self._add(
      f"{at}/mem_banks/0/properties",
      lambda: _properties(
        (
          ("heap_type", sysfs.HSA_MEM_HEAP_TYPE_FB_PUBLIC),
          ("size_in_bytes", local_memory(card, vram_size, self.system_memory)),
          ("flags", 0),
          ("width", card.vram_width),
          ("mem_clk_max", card.memory_clock),
        )
      ),
    )
    for i, (cache, first) in enumerate(caches):
      self._add(f"{at}/caches/{i}/properties", partial(self._cache, cache, first))
    self._add(
      f"{at}/io_links/0/properties",
      lambda: _link(sysfs.HSA_IOLINK_TYPE_PCIEXPRESS, node, 0, CPU_LINK_WEIGHT, card.link_bandwidth),
    )
    for i, peer in enumerate(peers):
      self._add(
        f"{at}/p2p_links/{i}/properties",
        partial(_link, sysfs.HSA_IOLINK_TYPE_PCIEXPRESS, node, peer, 2 * CPU_LINK_WEIGHT, card.link_bandwidth),
      )
    device = f"/sys/class/drm/renderD{minor}/device"
    for name, text in (
      ("vendor", f"{card.vendor_id:#06x}"),
      ("device", f"{card.device_id:#06x}"),
      ("revision", f"{card.revision_id:#04x}"),
      ("product_name", card.marketing_name),
      ("mem_info_vram_total", str(vram_size)),
      ("uevent", f"DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{bus_of(index):02x}:00.0"),
    ):
      self._add(f"{device}/{name}", partial(_line, text))
    for name, version in (("GC", card.gc_version), ("SDMA0", card.sdma_version), ("NBIF", card.nbio_version)):
      for part, number in zip(("major", "minor", "revision"), version):
        self._add(f"{device}/ip_discovery/die/0/{name}/0/{part}", partial(_line, number))

  @staticmethod
  def _debug_prop(card: Card) -> int:
    """HSA_DBG_* of GC 9.4.3, 11 and 12 (kfd_topology_set_capabilities): watch address mask bits 7 to 29, dispatch
    valid; GC 9.4.3 has bit 30."""
    return (
      7 << sysfs.HSA_DBG_WATCH_ADDR_MASK_LO_BIT_SHIFT
      | (30 if card.gc_version < (10, 0, 0) else 29) << sysfs.HSA_DBG_WATCH_ADDR_MASK_HI_BIT_SHIFT
      | sysfs.HSA_DBG_DISPATCH_INFO_ALWAYS_VALID
    )

  @staticmethod
  def _cache(cache: Cache, first: int) -> bytes:
    kind = sysfs.HSA_CACHE_TYPE_INSTRUCTION if cache.kind == "instruction" else sysfs.HSA_CACHE_TYPE_DATA
    siblings = ",".join(["1"] * cache.compute_units)
    return (
      _properties(
        (
          ("processor_id_low", first),
          ("level", cache.level),
          ("size", cache.size),
          ("cache_line_size", cache.line),
          ("cache_lines_per_tag", 1),
          ("association", 0),
          ("latency", 0),
          ("type", kind | sysfs.HSA_CACHE_TYPE_HSACU),
        )
      )
      + f"sibling_map {siblings}\n".encode()
    )


@lru_cache(maxsize=16)
def files_of(cards: tuple[Card, ...], gpu_ids: tuple[int, ...], vram_sizes: tuple[int, ...],
             system_memory: int) -> Files:
  """The files of a machine. They never change, so machines alike share them."""
  return Files(cards, gpu_ids, vram_sizes, system_memory)
