"""sysfs, procfs and device nodes of amdgpu in a folder: what programs of ROCm and libdrm look for, at its real places.

Beside KFD's topology (`mock.amd.driver.topology`) there is each card's folder below /sys/devices, with the links that
lead there from /sys/class/drm and from /sys/dev/char by the numbers of its nodes (226: DRM's major, 0 and on for card
nodes, 128 and on for render nodes; Linux 6.12 `Documentation/admin-guide/devices.txt`).
"""
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from tinyhw.mock.amd.driver.topology import RENDER_MINOR, bus_of
from tinyhw.mock.clients.tree import Tree

if TYPE_CHECKING:
  from tinyhw.mock.amd.machine import Gpu, Machine

KFD_PATH: Final = "/dev/kfd"
RENDER_PATH: Final = "/dev/dri/renderD"
CARD_PATH: Final = "/dev/dri/card"
DRM_MAJOR: Final = 226
KFD_MAJOR: Final = 510  # register_chrdev(0, ...): the kernel draws one from the top
# Blocks of a chip: their folders are numbers, to which their names are links (soc15_hw_ip.h, amdgpu_discovery.c).
BLOCKS: Final = {"GC": 11, "SDMA0": 42, "NBIF": 108}
PCI: Final = "/sys/devices/pci0000:00"
# Names of sensors, which rocm-smi wants (Linux 6.12 amdgpu/pm/amdgpu_pm.c); what they measure is not modelled, so that
# the files with values are absent.
_SENSORS: Final = (("name", "amdgpu"), ("temp1_label", "edge"), ("temp2_label", "junction"), ("temp3_label", "mem"),
                   ("in0_label", "vddgfx"))
_DEVICE: Final = re.compile(r"(?a)/sys/class/drm/renderD(\d+)/device/(.*)")


def slot_of(index: int) -> str:
  """The address on the bus of the card with this index."""
  return f"0000:{bus_of(index):02x}:00.0"


def tree_of(machine: Machine, folder: str) -> Tree:
  """The files of a machine, in an empty folder."""
  nodes = {KFD_PATH: (KFD_MAJOR, 0)}
  for gpu in machine.gpus:
    nodes[f"{CARD_PATH}{gpu.index}"] = DRM_MAJOR, gpu.index
    nodes[f"{RENDER_PATH}{RENDER_MINOR + gpu.index}"] = DRM_MAJOR, RENDER_MINOR + gpu.index
  slots = [slot_of(gpu.index) for gpu in machine.gpus]
  prefixes = [KFD_PATH, "/dev/dri", "/sys/devices/virtual/kfd", "/sys/class/kfd", "/sys/class/drm",
              f"/sys/dev/char/{DRM_MAJOR}:", "/sys/module/amdgpu", "/proc/modules", "/sys/bus/pci/drivers/amdgpu",
              *(f"{place}/{slot}" for place in (PCI, "/sys/bus/pci/devices") for slot in slots),
              *(place for place in (PCI, "/sys/bus/pci") if not os.path.isdir(place))]  # what else is there stays
  tree = Tree(folder, tuple(p.encode() for p in prefixes), nodes)
  tree.fill([*_files(machine), *_cards(machine)], _links(machine),
            [path for path in machine.files.folders() if not path.startswith("/sys/class/")])
  tree.live = {folder + path: text for path, text in _live(machine)}
  tree.fill([(path[len(folder):], text()) for path, text in tree.live.items()], (), ())
  return tree


def _files(machine: Machine) -> Iterator[tuple[str, bytes]]:
  """What the driver shows, a card's files in its own folder."""
  for path, data in machine.files.contents():
    if (found := _DEVICE.fullmatch(path)) is not None:
      path = f"{PCI}/{slot_of(int(found[1]) - RENDER_MINOR)}/{found[2]}"
      for name, number in BLOCKS.items(): path = path.replace(f"/die/0/{name}/", f"/die/0/{number}/")
    elif path == "/proc/modules":
      with suppress(OSError), open(path, "rb") as file: data += file.read()
    yield path, data


def _cards(machine: Machine) -> Iterator[tuple[str, bytes]]:
  """What the bus and DRM show of each card."""
  for gpu in machine.gpus:
    at, card = f"{PCI}/{slot_of(gpu.index)}", gpu.card
    yield f"{at}/class", b"0x030000\n"
    yield f"{at}/subsystem_vendor", f"{card.vendor_id:#06x}\n".encode()
    yield f"{at}/subsystem_device", f"{card.device_id:#06x}\n".encode()
    yield f"{at}/numa_node", b"-1\n"
    yield f"{at}/vbios_version", b"113-TINYHW-000\n"
    for name, clock in (("pp_dpm_sclk", card.engine_clock), ("pp_dpm_mclk", card.memory_clock)):
      yield f"{at}/{name}", f"0: {clock}Mhz *\n".encode()
    yield f"{at}/power_dpm_force_performance_level", b"auto\n"
    yield f"{at}/unique_id", f"{0x7100_0000_0000_0000 + gpu.gpu_id:016x}\n".encode()
    for name, text in _SENSORS: yield f"{at}/hwmon/hwmon{gpu.index}/{name}", f"{text}\n".encode()
    yield f"{at}/mem_info_vis_vram_total", _line(gpu.vram.size)
    yield f"{at}/mem_info_gtt_total", _line(machine.system.size)
    for name, minor in _names(gpu.index):
      yield f"{at}/drm/{name}/dev", f"{DRM_MAJOR}:{minor}\n".encode()
      yield f"{at}/drm/{name}/uevent", (f"MAJOR={DRM_MAJOR}\nMINOR={minor}\nDEVNAME=dri/{name}\n"
                                        "DEVTYPE=drm_minor\n").encode()
  yield "/sys/bus/pci/drivers/amdgpu/uevent", b""
  yield "/sys/class/drm/version", b"drm 1.1.0 20060810\n"


def _live(machine: Machine) -> Iterator[tuple[str, Callable[[], bytes]]]:
  """Files that say how things stand when they are opened."""
  for gpu in machine.gpus:
    at = f"{PCI}/{slot_of(gpu.index)}"
    for name in ("mem_info_vram_used", "mem_info_vis_vram_used"): yield f"{at}/{name}", partial(_vram_used, gpu)
    yield f"{at}/mem_info_gtt_used", lambda: _line(machine.system.size - machine.system_allocator.free_bytes)
    yield f"{at}/gpu_busy_percent", partial(_busy_percent, machine, gpu)


def _vram_used(gpu: Gpu) -> bytes: return _line(gpu.vram.size - gpu.vram_allocator.free_bytes)


def _busy_percent(machine: Machine, gpu: Gpu) -> bytes:
  return _line(100 * any(q.gpu is gpu and (q.busy or q.runnable()) for q in machine.queues))


def _line(number: int) -> bytes: return f"{number}\n".encode()


def _links(machine: Machine) -> Iterator[tuple[str, str]]:
  yield "/sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd"
  yield "/sys/devices/virtual/kfd/kfd/subsystem", "../../../../class/kfd"
  for gpu in machine.gpus:
    slot = slot_of(gpu.index)
    at = f"{PCI}/{slot}"
    yield f"{at}/subsystem", "../../../bus/pci"
    yield f"{at}/driver", "../../../bus/pci/drivers/amdgpu"
    yield f"/sys/bus/pci/devices/{slot}", f"../../../devices/pci0000:00/{slot}"
    yield f"/sys/bus/pci/drivers/amdgpu/{slot}", f"../../../../devices/pci0000:00/{slot}"
    for name, number in BLOCKS.items(): yield f"{at}/ip_discovery/die/0/{name}", str(number)
    for name, minor in _names(gpu.index):
      place = f"devices/pci0000:00/{slot}/drm/{name}"
      yield f"{at}/drm/{name}/device", f"../../../{slot}"
      yield f"{at}/drm/{name}/subsystem", "../../../../../class/drm"
      yield f"/sys/class/drm/{name}", f"../../{place}"
      yield f"/sys/dev/char/{DRM_MAJOR}:{minor}", f"../../{place}"


def _names(index: int) -> tuple[tuple[str, int], tuple[str, int]]:
  """A card's nodes, with their minor numbers."""
  return (f"card{index}", index), (f"renderD{RENDER_MINOR + index}", RENDER_MINOR + index)
