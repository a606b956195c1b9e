"""What NVML tells: of itself, of the system, and of each card."""
from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import nv_rm, nvml
from tinyhw.mock.cuda.devices import VERSION, place, uuid
from tinyhw.mock.cuda.machine import Context, Gpu
from tinyhw.mock.cuda.nvml.calls import HANDLES, Cards, Refusal, invalid, tells

DRIVER: Final = nv_rm.VERSION  # of the kernel's modules that the mocks follow
_UUID: Final = re.compile(r"(?ai)GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ASCII, _BINARY = 1, 2  # nvmlUUIDType_t
_NONE: Final = 0xFFFF_FFFF  # in place of an instance of MIG
_ARCHES: Final = {(8, 9): nvml.NVML_DEVICE_ARCH_ADA, 8: nvml.NVML_DEVICE_ARCH_AMPERE, 9: nvml.NVML_DEVICE_ARCH_HOPPER,
                  10: nvml.NVML_DEVICE_ARCH_BLACKWELL, 12: nvml.NVML_DEVICE_ARCH_BLACKWELL}
_FLAGS: Final = nvml.NVML_INIT_FLAG_NO_GPUS | nvml.NVML_INIT_FLAG_NO_ATTACH | nvml.NVML_INIT_FLAG_FORCE_INIT


# ---- the library and the system

@tells("nvmlInit", "nvmlInit_v2")
def init(c: Cards) -> None:
  if not c.gpus: raise Refusal(nvml.NVML_ERROR_DRIVER_NOT_LOADED)
  c.count += 1


@tells("nvmlInitWithFlags")
def init_with_flags(c: Cards, flags: int) -> None:
  if flags & ~_FLAGS: raise invalid(f"flags {flags:#x}")
  init(c)


@tells("nvmlShutdown")
def shutdown(c: Cards) -> None:
  c.count -= 1


@tells("nvmlSystemGetDriverVersion")
def system_get_driver_version(c: Cards, out: int, room: int) -> None: c.text(out, room, DRIVER)


@tells("nvmlSystemGetNVMLVersion")
def system_get_nvml_version(c: Cards, out: int, room: int) -> None: c.text(out, room, f"{VERSION // 1000}.{DRIVER}")


@tells("nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2")
def system_get_cuda_driver_version(c: Cards, out: int) -> None: c.number(out, VERSION)


@tells("nvmlSystemGetProcessName")
def system_get_process_name(c: Cards, pid: int, out: int, room: int) -> None:
  """The word that a process began with, as much of it as there is room for."""
  if not room: raise invalid("no room for a name")
  try: first = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
  except OSError: raise Refusal(nvml.NVML_ERROR_NOT_FOUND, f"no process {pid}") from None
  c.give(out, first[:room - 1] + b"\0")


@tells("nvmlUnitGetCount")
def unit_get_count(c: Cards, out: int) -> None: c.number(out, 0)


# ---- handles

def handle(gpu: Gpu) -> int: return HANDLES + gpu.index


@tells("nvmlDeviceGetCount", "nvmlDeviceGetCount_v2")
def device_get_count(c: Cards, out: int) -> None: c.number(out, len(c.gpus))


@tells("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2")
def device_get_handle_by_index(c: Cards, index: int, out: int) -> None:
  gpus = c.gpus
  if index >= len(gpus): raise invalid(f"no device {index}")
  c.number(out, handle(gpus[index]), form="Q")


def found(c: Cards, out: int, which: Callable[[Gpu], bool], what: str) -> None:
  """Store the handle of the card of which this holds."""
  for gpu in c.gpus:
    if which(gpu): return c.number(out, handle(gpu), form="Q")
  raise Refusal(nvml.NVML_ERROR_NOT_FOUND, f"no device is {what}")


@tells("nvmlDeviceGetHandleByUUID")
def device_get_handle_by_uuid(c: Cards, text: int, out: int) -> None: _by_text(c, c.name(text), out)


def _by_text(c: Cards, name: str, out: int) -> None:
  if _UUID.fullmatch(name) is None: raise invalid(f"{name!r} is no UUID")
  found(c, out, lambda gpu: named(gpu).lower() == name.lower(), name)


@tells("nvmlDeviceGetHandleByUUIDV")
def device_get_handle_by_uuidv(c: Cards, asked: int, out: int) -> None:
  version(c, asked, nvml.nvmlUUID_v1)
  given = nvml.nvmlUUID_t.from_buffer_copy(c.user.read(asked, nvml.nvmlUUID_v1 & 0xFF_FFFF))
  if given.type == _ASCII: return _by_text(c, given.value.str.decode(errors="replace"), out)
  if given.type != _BINARY: raise invalid(f"a UUID of type {given.type}")
  data = bytes(given.value.bytes)
  found(c, out, lambda gpu: uuid(gpu) == data, data.hex())


def version(c: Cards, pointer: int, wanted: int) -> None:
  """Have the struct that the client points to be of this version, which it says at its beginning."""
  if (asked := c.word(pointer)) != wanted:
    raise Refusal(nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, f"version {asked:#x} of a struct, not {wanted:#x}")


@tells("nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleByPciBusId_v2")
def device_get_handle_by_pci_bus_id(c: Cards, text: int, out: int) -> None:
  name = c.name(text)
  if (where := place(name)) is None: raise invalid(f"{name!r} is no place on a PCI bus")
  found(c, out, lambda gpu: where == (0, gpu.card.bus(gpu.index), 0, 0), f"at {name}")


# ---- what a card is

def named(gpu: Gpu) -> str:
  """The UUID as NVML writes it, of what the driver's function tells."""
  text = uuid(gpu).hex()
  return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@tells("nvmlDeviceGetName")
def device_get_name(c: Cards, gpu: Gpu, out: int, room: int) -> None: c.text(out, room, gpu.card.title)


@tells("nvmlDeviceGetUUID")
def device_get_uuid(c: Cards, gpu: Gpu, out: int, room: int) -> None: c.text(out, room, named(gpu))


@tells("nvmlDeviceGetIndex", "nvmlDeviceGetMinorNumber")
def device_get_index(c: Cards, gpu: Gpu, out: int) -> None:
  """The minor number is that of /dev/nvidiaN."""
  c.number(out, gpu.index)


@tells("nvmlDeviceGetBrand")
def device_get_brand(c: Cards, gpu: Gpu, out: int) -> None:
  c.number(out, nvml.NVML_BRAND_GEFORCE if "GeForce" in gpu.card.title else nvml.NVML_BRAND_NVIDIA)


@tells("nvmlDeviceGetArchitecture")
def device_get_architecture(c: Cards, gpu: Gpu, out: int) -> None:
  capability = gpu.card.capability
  c.number(out, _ARCHES.get(capability) or _ARCHES[capability[0]])


@tells("nvmlDeviceGetCudaComputeCapability")
def device_get_cuda_compute_capability(c: Cards, gpu: Gpu, major: int, minor: int) -> None:
  for out, value in zip((major, minor), gpu.card.capability, strict=True): c.number(out, value)


def bus_ids(gpu: Gpu) -> dict[str, Any]:
  """Where a card is, as all versions of the struct have it; it has no subsystem, which the board's maker gives."""
  bus = gpu.card.bus(gpu.index)
  return dict(bus=bus, pciDeviceId=gpu.card.pci_id, busId=f"{0:08X}:{bus:02X}:00.0".encode())


def places(gpu: Gpu, behind: str = "") -> bytes:
  """The struct, or of it what comes before a member: the first versions have that."""
  bus = gpu.card.bus(gpu.index)
  whole = bytes(nvml.nvmlPciInfo_t(busIdLegacy=f"{0:04X}:{bus:02X}:00.0".encode(), **bus_ids(gpu)))
  return whole[:getattr(nvml.nvmlPciInfo_t, behind).offset] if behind else whole


@tells("nvmlDeviceGetPciInfo_v3")
def device_get_pci_info(c: Cards, gpu: Gpu, out: int) -> None: c.give(out, places(gpu))


@tells("nvmlDeviceGetPciInfo")
def device_get_pci_info_v1(c: Cards, gpu: Gpu, out: int) -> None:
  c.give(out, places(gpu, "pciSubSystemId"))


@tells("nvmlDeviceGetPciInfo_v2")
def device_get_pci_info_v2(c: Cards, gpu: Gpu, out: int) -> None:
  c.give(out, places(gpu, "busId"))


@tells("nvmlDeviceGetPciInfoExt")
def device_get_pci_info_ext(c: Cards, gpu: Gpu, out: int) -> None:
  version(c, out, nvml.nvmlPciInfoExt_v1)
  # of PCI's classes a VGA controller, or a 3D controller
  c.give(out, nvml.nvmlPciInfoExt_t(version=nvml.nvmlPciInfoExt_v1, baseClass=3,
                                  subClass=0 if "GeForce" in gpu.card.title else 2, **bus_ids(gpu)))


@tells("nvmlDeviceGetMemoryBusWidth")
def device_get_memory_bus_width(c: Cards, gpu: Gpu, out: int) -> None: c.number(out, gpu.card.bus_bits)


@tells("nvmlDeviceGetBusType")
def device_get_bus_type(c: Cards, gpu: Gpu, out: int) -> None: c.number(out, nvml.NVML_BUS_TYPE_PCIE)


@tells("nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo")
def device_get_clock_info(c: Cards, gpu: Gpu, which: int, out: int) -> None:
  """Clocks stand still at their most."""
  if not 0 <= which < nvml.NVML_CLOCK_COUNT: raise invalid(f"no clock {which}")
  if which == nvml.NVML_CLOCK_VIDEO: raise Refusal(nvml.NVML_ERROR_NOT_SUPPORTED, "the clock of video is not modelled")
  c.number(out, gpu.card.memory_khz // 1000 if which == nvml.NVML_CLOCK_MEM else gpu.card.clock_mhz)


@tells("nvmlDeviceGetComputeMode")
def device_get_compute_mode(c: Cards, gpu: Gpu, out: int) -> None: c.number(out, nvml.NVML_COMPUTEMODE_DEFAULT)


@tells("nvmlDeviceGetEccMode")
def device_get_ecc_mode(c: Cards, gpu: Gpu, current: int, pending: int) -> None:
  """Off, as the driver's attribute says."""
  for out in (current, pending): c.number(out, nvml.NVML_FEATURE_DISABLED)


@tells("nvmlDeviceGetMultiGpuBoard", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceIsMigDeviceHandle",
        "nvmlDeviceGetVirtualizationMode")
def device_is_none(c: Cards, gpu: Gpu, out: int) -> None:
  """A card is a board, is not divided, and is the machine's own (NVML_GPU_VIRTUALIZATION_MODE_NONE)."""
  c.number(out, 0)


@tells("nvmlDeviceOnSameBoard")
def device_on_same_board(c: Cards, gpu: Gpu, other: int, out: int) -> None: c.number(out, int(c.gpu(other) is gpu))


@tells("nvmlDeviceGetP2PStatus")
def device_get_p2p_status(c: Cards, gpu: Gpu, other: int, which: int, out: int) -> None:
  """Cards reach each other over the bus; there is no NVLink."""
  if c.gpu(other) is gpu: raise invalid("a device is no peer of its own")
  if not 0 <= which < nvml.NVML_P2P_CAPS_INDEX_UNKNOWN: raise invalid(f"no way {which} between devices")
  linked = which == nvml.NVML_P2P_CAPS_INDEX_NVLINK
  c.number(out, nvml.NVML_P2P_STATUS_NOT_SUPPORTED if linked else nvml.NVML_P2P_STATUS_OK)


# ---- what it does

def used(gpu: Gpu) -> tuple[int, int]:
  """(bytes that are allocated, all)."""
  return gpu.vram.size - gpu.allocator.free_bytes, gpu.vram.size


@tells("nvmlDeviceGetMemoryInfo")
def device_get_memory_info(c: Cards, gpu: Gpu, out: int) -> None:
  taken, total = used(gpu)
  c.give(out, nvml.nvmlMemory_t(total=total, free=total - taken, used=taken))


@tells("nvmlDeviceGetMemoryInfo_v2")
def device_get_memory_info_v2(c: Cards, gpu: Gpu, out: int) -> None:
  """Nothing is reserved."""
  version(c, out, nvml.nvmlMemory_v2)
  taken, total = used(gpu)
  c.give(out, nvml.nvmlMemory_v2_t(version=nvml.nvmlMemory_v2, total=total, free=total - taken, used=taken))


@tells("nvmlDeviceGetUtilizationRates")
def device_get_utilization_rates(c: Cards, gpu: Gpu, out: int) -> None:
  """Shares of the machine's clock since the last such call: of kernels, and of copies and fills."""
  now = gpu.machine.clock.now_ns(), gpu.kernels_ns, gpu.copies_ns
  whole, kernels, copies = (new - old for new, old in zip(now, gpu.looked, strict=True))
  c.give(out, nvml.nvmlUtilization_t(gpu=100 * kernels // whole, memory=100 * copies // whole))
  gpu.looked = now


def processes(c: Cards, gpu: Gpu, count: int, out: int, kind: type[Any]) -> None:
  """Store the processes with a context on a card: this one, if it has one, for no other uses its cards."""
  room = c.word(count)
  contexts = [x for x in list(gpu.machine.handles.values()) if isinstance(x, Context)]
  if gpu.primary is not None: contexts.append(gpu.primary)
  here = any(x.alive and x.gpu is gpu for x in contexts)
  c.number(count, int(here))
  if not here: return
  if not room: raise Refusal(nvml.NVML_ERROR_INSUFFICIENT_SIZE)
  more = {} if kind is nvml.nvmlProcessInfo_v1_t else dict(gpuInstanceId=_NONE, computeInstanceId=_NONE)
  c.give(out, kind(pid=os.getpid(), usedGpuMemory=used(gpu)[0], **more))


@tells("nvmlDeviceGetComputeRunningProcesses")
def device_get_compute_running_processes_v1(c: Cards, gpu: Gpu, count: int, out: int) -> None:
  processes(c, gpu, count, out, nvml.nvmlProcessInfo_v1_t)


@tells("nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3")
def device_get_compute_running_processes(c: Cards, gpu: Gpu, count: int, out: int) -> None:
  processes(c, gpu, count, out, nvml.nvmlProcessInfo_t)


@tells(*(f"nvmlDeviceGet{what}RunningProcesses{v}" for what in ("Graphics", "MPSCompute") for v in ("", "_v2", "_v3")))
def device_get_no_processes(c: Cards, gpu: Gpu, count: int, out: int) -> None:
  """Nothing draws, and there is no MPS."""
  c.word(count)
  c.number(count, 0)
