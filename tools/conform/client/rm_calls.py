"""Cases of RM's and UVM's calls: allocations of classes, control commands, memory, mappings; the right call and the
status of each wrong argument.

Which status is told by open-gpu-kernel-modules 580.105 and 595.45, as they are public:

| call | who decides |
|---|---|
| REGISTER_FD | RmIoctl (escape.c): NV_ERR_INVALID_STATE and NV_ERR_INVALID_ARGUMENT, both of which are EINVAL |
| RM_ALLOC | _serverLockClientWithLockInfo, serverAllocResourceUnderLock, RsResInfoByExternalClassId |
| RM_FREE | _serverLockClientWithLockInfo, clientGetResourceRef |
| RM_CONTROL | _rmapiRmControl (client, sizes and pointers), clientGetResourceRef, resControlLookup |
| UVM_INITIALIZE, UVM_MM_INITIALIZE | uvm_api_initialize, uvm_va_space_create, uvm_api_mm_initialize |
| UVM's ranges | uvm_api_range_invalid_4k, uvm_va_range_create_external, uvm_free |
| UVM's mappings | uvm_map_external_allocation, uvm_map_external_allocation_on_gpu, uvm_unmap_external |
| UVM_ENABLE_PEER_ACCESS | retain_pcie_peers_from_uuids |
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

from tinyhw.arch.nv import NV_ARCHES, NvArch
from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_uvm
from tinyhw.autogen import nv_rm_control as c
from tinyhw.bringup.nv.bench import Aperture, NvBench
from tinyhw.core.errors import DriverError
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.nv import NvRoom
from tinyhw.tools.conform.client.question import Area, Heard, Question
from tinyhw.wire import rm

PAGE: Final = 4096
NOBODY: Final = 0x7FFF_1234  # the handle of no object
OK: Final = "NV_OK"
Play = Callable[[NvRoom, Heard], None]
_CASES: list[tuple[str, str, str, Play]] = []  # ioctl or control, its name, form, how it is asked


def case(kind: str, name: str, form: str = "plain") -> Callable[[Play], Play]:
  """Declare a case."""
  def declare(play: Play) -> Play:
    _CASES.append((kind, name, form, play))
    return play
  return declare


def questions(arch: NvArch) -> Iterator[Question]:
  """All cases, of any generation."""
  for kind, name, form, play in _CASES:
    text = " ".join((play.__doc__ or "").split())
    yield Question(f"{arch.name}/{kind}/{name}/{form}", "uvm" if name.startswith("UVM") else "rm", name, form,
                   "open-gpu-kernel-modules 580", play, (text,))


# ---- calls

def allocated(b: NvBench, parent: int, class_id: int, params: Any = None, *, root: int | None = None,
              size: int | None = None) -> tuple[str, int]:
  """(status, handle) of NV_ESC_RM_ALLOC."""
  argument = nv_rm.NVOS64_PARAMETERS(
    hRoot=b.rm.root if root is None else root, hObjectParent=parent, hClass=class_id,
    pAllocParms=0 if params is None else ctypes.addressof(params),
    paramsSize=size if size is not None else 0 if params is None else ctypes.sizeof(params))
  b.rm.call(argument)
  return rm.status_name(int(argument.status)), int(argument.hObjectNew)


def controlled(b: NvBench, handle: int, command: int, params: Any, *, size: int | None = None, root: int | None = None,
               pointer: int | None = None) -> str:
  """The status of NV_ESC_RM_CONTROL."""
  argument = nv_rm.NVOS54_PARAMETERS(
    hClient=b.rm.root if root is None else root, hObject=handle, cmd=command,
    params=ctypes.addressof(params) if pointer is None else pointer,
    paramsSize=ctypes.sizeof(params) if size is None else size)
  b.rm.call(argument)
  return rm.status_name(int(argument.status))


def freed(b: NvBench, handle: int, root: int | None = None) -> str:
  """The status of NV_ESC_RM_FREE."""
  client = b.rm.root if root is None else root
  argument = nv_rm.NVOS00_PARAMETERS(hRoot=client, hObjectParent=client, hObjectOld=handle)
  b.rm.call(argument)
  return rm.status_name(int(argument.status))


def uvm(b: NvBench, name: str, **fields: Any) -> str:
  """The status of a call of UVM."""
  number = getattr(nv_uvm, name)
  argument = getattr(nv_uvm, f"{name}_PARAMS")(**fields)
  try: b.port.ioctl(b.rm.uvm_fd, number, argument)
  except OSError as e: raise DriverError(name, e.errno or 0) from None
  return rm.status_name(int(argument.rmStatus))


def refused(heard: Heard, word: str, found: str) -> None:
  """What is no success, by whatever status the driver says it."""
  heard.holds(word, found != OK, found, "an error")


def text_of(raw: Any) -> str: return bytes(raw).split(b"\0")[0].decode("ascii", "replace")


# ---- RM's calls

@case("ioctl", "NV_ESC_CHECK_VERSION_STR")
def check_version(room: NvRoom, heard: Heard) -> None:
  """The driver tells its version, and that it knows the call."""
  p = room.bench.rm.call(nv_rm.nv_ioctl_rm_api_version_t(cmd=nv_rm.NV_RM_API_VERSION_CMD_QUERY))
  heard.same("reply", p.reply, nv_rm.NV_RM_API_VERSION_REPLY_RECOGNIZED)
  heard.holds("versionString", text_of(p.versionString)[:1].isdigit(), text_of(p.versionString), "a version")


@case("ioctl", "NV_ESC_CARD_INFO")
def card_info(room: NvRoom, heard: Heard) -> None:
  """Cards have ids of their own."""
  cards = room.bench.rm.cards
  heard.holds("cards", len(cards) > 0, "none", "one at least")
  heard.same("ids that are their own", len({x.gpu_id for x in cards}), len(cards))


@case("ioctl", "NV_ESC_REGISTER_FD")
def register_fd(room: NvRoom, heard: Heard) -> None:
  """A card's file joins the client's once: EINVAL the second time, and of a file that is none of nvidiactl's."""
  b = room.bench
  _ = b.gpu
  for word, ctl, wanted in (("no file", 1 << 20, "22"), ("first", b.rm.fd, "0")):
    fd = b.port.open(f"/dev/nvidia{b.card.minor}")
    heard.same(word, _errno(b, fd, ctl), wanted)
    if wanted == "0": heard.same("second", _errno(b, fd, ctl), "22")
    b.port.close(fd)


def _errno(b: NvBench, fd: int, ctl: int) -> str:
  try: b.rm.call(nv_rm.nv_ioctl_register_fd_t(ctl_fd=ctl), fd)
  except DriverError as error: return str(error.errno)
  return "0"


@case("ioctl", "NV_ESC_RM_ALLOC", "client")
def alloc_client(room: NvRoom, heard: Heard) -> None:
  """Clients have handles of their own, and are gone when they were freed."""
  b = room.bench
  made = [allocated(b, 0, nv_rm_alloc.NV01_ROOT_CLIENT, root=0) for _ in range(2)]
  for word, _ in made: heard.same("status", word, OK)
  heard.same("different handles", len({h for _, h in made}), 2)
  for _, handle in made:
    heard.same("NV_ESC_RM_FREE", freed(b, handle, handle), OK)
    refused(heard, "again", freed(b, handle, handle))


@case("ioctl", "NV_ESC_RM_ALLOC", "refuses")
def alloc_refused(room: NvRoom, heard: Heard) -> None:
  """No class, no client, no parent, a class of another parent, of another generation, parameters of another size, or
  none."""
  b, a = room.bench, nv_rm_alloc
  gpu = b.gpu
  rows: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("no class", (gpu.device, 0xDEAD), {}, "NV_ERR_INVALID_CLASS"),
    ("no client", (0, a.NV01_DEVICE_0, a.NV0080_ALLOC_PARAMETERS()), {"root": NOBODY}, "NV_ERR_INVALID_OBJECT_HANDLE"),
    ("a channel below the client", (b.rm.root, gpu.arch.channel_class, a.NV_CHANNEL_ALLOC_PARAMS()), {},
     "NV_ERR_INVALID_OBJECT_PARENT"),
    ("another generation's class", (room.copier.handle, next(
      n for n in (x.copy_class for x in NV_ARCHES.values()) if n not in gpu.classes)), {}, "NV_ERR_NOT_SUPPORTED"),
    ("no parameters", (gpu.device, a.FERMI_VASPACE_A), {}, ""),
    ("parameters of another size", (gpu.device, a.FERMI_VASPACE_A, a.NV_VASPACE_ALLOCATION_PARAMETERS()), {"size": 3},
     "")]
  for word, arguments, more, wanted in rows:
    found, _ = allocated(b, *arguments, **more)
    if wanted: heard.same(word, found, wanted)
    else: refused(heard, word, found)


@case("ioctl", "NV_ESC_RM_FREE")
def free_object(room: NvRoom, heard: Heard) -> None:
  """What is below an object goes with it; a handle of none is NV_ERR_OBJECT_NOT_FOUND."""
  b, a = room.bench, nv_rm_alloc
  _ = b.gpu
  word, client = allocated(b, 0, a.NV01_ROOT_CLIENT, root=0)
  heard.same("a client", word, OK)
  info = c.NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS(gpuId=b.gpu.gpu_id)
  heard.same("its card", controlled(b, client, c.NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, info, root=client), OK)
  word, device = allocated(b, client, a.NV01_DEVICE_0, a.NV0080_ALLOC_PARAMETERS(
    deviceId=info.deviceInstance, hClientShare=client,
    vaMode=a.NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES), root=client)
  heard.same("a device", word, OK)
  word, below = allocated(b, device, a.NV20_SUBDEVICE_0, a.NV2080_ALLOC_PARAMETERS(subDeviceId=0), root=client)
  heard.same("a subdevice", word, OK)
  heard.same("NV_ESC_RM_FREE of the device", freed(b, device, client), OK)
  heard.same("of what was below it", freed(b, below, client), "NV_ERR_OBJECT_NOT_FOUND")
  heard.same("of the client", freed(b, client, client), OK)
  heard.same("of what was below the client", freed(b, device, client), "NV_ERR_INVALID_OBJECT_HANDLE")


@case("ioctl", "NV_ESC_RM_CONTROL", "refuses")
def control_refused(room: NvRoom, heard: Heard) -> None:
  """No client, no object, no command, a command of another class, parameters of another size, or nowhere."""
  b = room.bench
  time, p = c.NV2080_CTRL_CMD_TIMER_GET_TIME, c.NV2080_CTRL_TIMER_GET_TIME_PARAMS()
  sub, device = b.gpu.subdevice, b.gpu.device
  heard.same("right", controlled(b, sub, time, p), OK)
  rows: tuple[tuple[str, int, int, dict[str, int], str], ...] = (
          ("no client", sub, time, {"root": NOBODY}, "NV_ERR_INVALID_CLIENT"),
          ("no object", NOBODY, time, {}, "NV_ERR_OBJECT_NOT_FOUND"),
          ("no command", sub, 0x2080_FFFF, {}, "NV_ERR_NOT_SUPPORTED"),
          ("another class's", device, time, {}, "NV_ERR_NOT_SUPPORTED"),
          ("of another size", sub, time, {"size": 3}, "NV_ERR_INVALID_ARGUMENT"),
          ("no size", sub, time, {"size": 0}, "NV_ERR_INVALID_ARGUMENT"),
          ("of another size, another class's", device, time, {"size": 3}, "NV_ERR_INVALID_ARGUMENT"),
          ("of another size, no object", NOBODY, time, {"size": 3}, "NV_ERR_INVALID_ARGUMENT"),
          ("no parameters", sub, time, {"pointer": 0}, "NV_ERR_INVALID_ARGUMENT"))
  for word, handle, command, more, wanted in rows:
    heard.same(word, controlled(b, handle, command, p, **more), wanted)


@case("ioctl", "NV_ESC_RM_MAP_MEMORY")
@case("ioctl", "NV_ESC_RM_ALLOC", "memory")
def memory(room: NvRoom, heard: Heard) -> None:
  """Memory of both kinds is what the process sees behind mmap and the copy engine at its address."""
  b = room.bench
  for word, kind in (("system", Aperture.SYSTEM), ("video", Aperture.VRAM)):
    for size in (PAGE, 64 << 10, 2 << 20):
      made = b.take(size, kind, host=True)
      source = room.take(0, Area(models.noise(81, PAGE)))
      made.bytes()[:] = bytes(made.size)
      b.finish(room.copier, b.copies().copy(made.address + size - PAGE, source.address, PAGE), "the copy engine")
      heard.memory(f"{word}, {size:,} bytes", bytes(made.bytes()[size - PAGE:size]), models.noise(81, PAGE))
      b.free(made)


@case("ioctl", "NV_ESC_RM_ALLOC", "too-much")
def too_much(room: NvRoom, heard: Heard) -> None:
  """More video memory than the card has."""
  b, a = room.bench, nv_rm_alloc
  p = a.NV_MEMORY_ALLOCATION_PARAMS(owner=b.rm.root, type=a.NVOS32_TYPE_IMAGE, size=2 * b.gpu.vram_bytes,
                                    alignment=PAGE, flags=a.NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE)
  word, _ = allocated(b, b.gpu.device, a.NV01_MEMORY_LOCAL_USER, p)
  heard.holds("status", word in {"NV_ERR_NO_MEMORY", "NV_ERR_INSUFFICIENT_RESOURCES"}, word, "NV_ERR_NO_MEMORY")


@case("ioctl", "NV_ESC_ALLOC_OS_EVENT")
def os_event(room: NvRoom, heard: Heard) -> None:
  """A file of events, and an event below the subdevice that tells through it."""
  b = room.bench
  event = b.rm.open_event(b.gpu)
  heard.holds("the event's handle", event.handle != 0, "0", "a handle")
  b.rm.close_event(event)


# ---- controls

def _asked(b: NvBench, name: str, handle: int, **fields: Any) -> Any:
  """A control that must succeed: its parameters."""
  row = c.CONTROLS[getattr(c, name)]
  assert row.struct is not None
  return b.ask(handle, getattr(c, name), row.struct(**fields))


def _ids(array: Any) -> list[int]: return [int(i) for i in array if i != c.NV0000_CTRL_GPU_INVALID_ID]


@case("control", "NV0000_CTRL_CMD_GPU_GET_PROBED_IDS")
@case("control", "NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS")
def gpu_ids(room: NvRoom, heard: Heard) -> None:
  """The card that is open is among those that are there."""
  b = room.bench
  gpu = b.gpu.gpu_id
  for name in ("NV0000_CTRL_CMD_GPU_GET_PROBED_IDS", "NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS"):
    found = _ids(_asked(b, name, b.rm.root).gpuIds)
    heard.same(name, int(gpu in found and len(set(found)) == len(found)), 1)


@case("control", "NV0000_CTRL_CMD_GPU_ATTACH_IDS")
def attach_ids(room: NvRoom, heard: Heard) -> None:
  """The card that is open is attached again; an id of none is refused."""
  b = room.bench
  for gpu in (b.gpu.gpu_id, NOBODY):
    p = c.NV0000_CTRL_GPU_ATTACH_IDS_PARAMS()
    for i in range(len(p.gpuIds)): p.gpuIds[i] = c.NV0000_CTRL_GPU_INVALID_ID
    p.gpuIds[0] = gpu
    found = controlled(b, b.rm.root, c.NV0000_CTRL_CMD_GPU_ATTACH_IDS, p)
    if gpu == NOBODY: refused(heard, "none", found)
    else: heard.same("this one", found, OK)


@case("control", "NV0000_CTRL_CMD_GPU_GET_ID_INFO")
@case("control", "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2")
def id_info(room: NvRoom, heard: Heard) -> None:
  """Both forms tell the same instances; an id of no card is refused."""
  b = room.bench
  both = [_asked(b, name, b.rm.root, gpuId=b.gpu.gpu_id) for name in
          ("NV0000_CTRL_CMD_GPU_GET_ID_INFO", "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2")]
  for name in ("deviceInstance", "subDeviceInstance"):
    heard.same(name, int(getattr(both[0], name) == getattr(both[1], name)), 1)
  p = c.NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS(gpuId=NOBODY)
  refused(heard, "no card", controlled(b, b.rm.root, c.NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, p))


@case("control", "NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2")
def peer_caps(room: NvRoom, heard: Heard) -> None:
  """A card by itself, and an id of none."""
  b = room.bench
  for gpu in (b.gpu.gpu_id, NOBODY):
    p = c.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS(gpuCount=1)
    p.gpuIds[0] = gpu
    found = controlled(b, b.rm.root, c.NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2, p)
    if gpu == NOBODY: refused(heard, "none", found)
    else: heard.same("this one", found, OK)


@case("control", "NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE")
def address_space(room: NvRoom, heard: Heard) -> None:
  """Memory of the system and of the card are of different kinds."""
  b, kinds = room.bench, c
  for kind, wanted in ((Aperture.SYSTEM, kinds.NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE_SYSMEM),
                       (Aperture.VRAM, kinds.NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE_VIDMEM)):
    made = b.take(PAGE, kind)
    found = _asked(b, "NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE", b.rm.root, hObject=made.handle).addrSpaceType
    heard.same(kind.value, found, wanted)
    b.free(made)


@case("control", "NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES")
def sub_devices(room: NvRoom, heard: Heard) -> None:
  """A card that is not linked is one."""
  heard.same("numSubDevices", _asked(room.bench, "NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES",
                                     room.bench.gpu.device).numSubDevices, 1)


@case("control", "NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2")
def class_list(room: NvRoom, heard: Heard) -> None:
  """The classes of the generation are among those that the card has."""
  gpu = room.bench.gpu
  for name in ("compute_class", "copy_class", "channel_class", "usermode_class"):
    heard.same(name, int(getattr(gpu.arch, name) in gpu.classes), 1)


@case("control", "NV2080_CTRL_CMD_GPU_GET_GID_INFO")
def gid_info(room: NvRoom, heard: Heard) -> None:
  """The UUID is the same in bytes and as text."""
  b = room.bench
  made = [_asked(b, "NV2080_CTRL_CMD_GPU_GET_GID_INFO", b.gpu.subdevice, flags=flags) for flags in (
    c.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY, c.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_ASCII)]
  raw = bytes(made[0].data)[:16]
  said = bytes(made[1].data).split(b"\0")[0].decode("ascii", "replace").removeprefix("GPU-").replace("-", "").lower()
  heard.same("length in bytes", made[0].length, 16)
  heard.same("the same", int(said == raw.hex()), 1)


@case("control", "NV2080_CTRL_CMD_GPU_GET_NAME_STRING")
@case("control", "NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING")
def name_string(room: NvRoom, heard: Heard) -> None:
  """Names are there."""
  b = room.bench
  name = text_of(_asked(b, "NV2080_CTRL_CMD_GPU_GET_NAME_STRING", b.gpu.subdevice).gpuNameString.ascii)
  short = text_of(_asked(b, "NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING", b.gpu.subdevice).gpuShortNameString)
  heard.holds("gpuNameString", bool(name) and name.isprintable(), repr(name), "a name")
  heard.holds("gpuShortNameString", bool(short) and short.isprintable(), repr(short), "a name")


@case("control", "NV2080_CTRL_CMD_GPU_GET_ENGINES_V2")
def engines(room: NvRoom, heard: Heard) -> None:
  """An engine for graphics, and one for copies at least."""
  found, a = room.bench.gpu.engines, nv_rm_alloc
  heard.same("graphics", int(a.NV2080_ENGINE_TYPE_GRAPHICS in found), 1)
  heard.holds("copies", any(a.NV2080_ENGINE_TYPE_COPY0 <= e <= a.NV2080_ENGINE_TYPE_COPY19 for e in found),
              str(list(found)), "a copy engine")
  heard.same("each once", len(set(found)), len(found))


@case("control", "NV2080_CTRL_CMD_GR_GET_INFO")
def gr_info(room: NvRoom, heard: Heard) -> None:
  """The SM's version is the generation's, and there are SMs."""
  b, arch = room.bench, room.bench.gpu.arch
  version, = b.rm._gr_info(b.gpu.subdevice, (c.NV2080_CTRL_GR_INFO_INDEX_SM_VERSION,))
  major, minor = arch.version
  heard.same("SM version", version, arch.told_as or major << 8 | minor)
  heard.holds("SMs", b.gpu.sms > 0, str(b.gpu.sms), "one at least")
  heard.same("warps of an SM", b.gpu.warps_per_sm, arch.warps_per_sm)


@case("control", "NV2080_CTRL_CMD_FB_GET_INFO_V2")
def fb_info(room: NvRoom, heard: Heard) -> None:
  """What is free is less than what there is, and falls by what is taken."""
  b = room.bench
  before, total = b.free_vram(), b.gpu.vram_bytes
  heard.holds("free", 0 < before <= total, f"{before:#x} of {total:#x}", "less than all")
  taken = b.take(64 << 20, Aperture.VRAM)
  fewer = before - b.free_vram()
  b.free(taken)
  heard.holds("64 MiB fewer", 64 << 20 <= fewer <= 80 << 20, f"{fewer:#x}", f"{64 << 20:#x}")
  heard.holds("given back", b.free_vram() >= before - (2 << 20), f"{b.free_vram():#x}", f"{before:#x}")


@case("control", "NV2080_CTRL_CMD_TIMER_GET_TIME")
def get_time(room: NvRoom, heard: Heard) -> None:
  """Nanoseconds that go forward."""
  a, b = room.bench.time_ns(), room.bench.time_ns()
  heard.holds("time_nsec", 0 < a <= b, f"{a:#x}, then {b:#x}", "a clock that goes forward")


@case("control", "NV2080_CTRL_CMD_CE_GET_CAPS_V2")
@case("control", "NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK")
def copy_caps(room: NvRoom, heard: Heard) -> None:
  """Each copy engine tells what it is, and a type of none is refused."""
  b, a = room.bench, nv_rm_alloc
  for engine in (e for e in b.gpu.engines if a.NV2080_ENGINE_TYPE_COPY0 <= e <= a.NV2080_ENGINE_TYPE_COPY9):
    _asked(b, "NV2080_CTRL_CMD_CE_GET_CAPS_V2", b.gpu.subdevice, ceEngineType=engine)
    _asked(b, "NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK", b.gpu.subdevice, ceEngineType=engine)
  p = c.NV2080_CTRL_CE_GET_CAPS_V2_PARAMS(ceEngineType=a.NV2080_ENGINE_TYPE_GRAPHICS)
  refused(heard, "graphics", controlled(b, b.gpu.subdevice, c.NV2080_CTRL_CMD_CE_GET_CAPS_V2, p))


@case("control", "NV2080_CTRL_CMD_GR_GET_GPC_MASK")
@case("control", "NV2080_CTRL_CMD_GR_GET_TPC_MASK")
@case("control", "NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER")
def masks(room: NvRoom, heard: Heard) -> None:
  """The TPCs of all GPCs are those of the order of SMs, which has each SM once."""
  b = room.bench
  sub = b.gpu.subdevice
  gpcs = _asked(b, "NV2080_CTRL_CMD_GR_GET_GPC_MASK", sub).gpcMask
  tpcs = sum(_asked(b, "NV2080_CTRL_CMD_GR_GET_TPC_MASK", sub, gpcId=g).tpcMask.bit_count() for g in range(32)
             if gpcs >> g & 1)
  order = _asked(b, "NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER", sub)
  heard.same("TPCs", int(tpcs == order.numTpc), 1)
  heard.same("SMs", int(order.numSm == b.gpu.sms), 1)
  places = {(int(s.gpcId), int(s.localTpcId), int(s.localSmId)) for s in order.globalSmId[:order.numSm]}
  heard.same("each once", int(len(places) == order.numSm), 1)


for _name, _who, _fields in (
    ("NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO", "subdevice", ("type",)),
    ("NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES", "subdevice", ("rules",)),
    ("NV2080_CTRL_CMD_MC_GET_ARCH_INFO", "subdevice", ("architecture",)),
    ("NV2080_CTRL_CMD_BUS_GET_PCI_INFO", "subdevice", ("pciDeviceId",)),
    ("NV2080_CTRL_CMD_GSP_GET_FEATURES", "subdevice", ("bValid",))):
  @case("control", _name)
  def told(room: NvRoom, heard: Heard, name: str = _name, who: str = _who, fields: tuple[str, ...] = _fields) -> None:
    """It answers, and the same the second time."""
    b = room.bench
    first, second = (_asked(b, name, getattr(b.gpu, who)) for _ in range(2))
    for field in fields: heard.same(field, int(getattr(first, field) == getattr(second, field)), 1)


@case("control", "NV2080_CTRL_CMD_GPU_GET_INFO_V2")
def gpu_info(room: NvRoom, heard: Heard) -> None:
  """Without indices it tells nothing, and that is no error."""
  p = c.NV2080_CTRL_GPU_GET_INFO_V2_PARAMS(gpuInfoListSize=0)
  word = controlled(room.bench, room.bench.gpu.subdevice, c.NV2080_CTRL_CMD_GPU_GET_INFO_V2, p)
  heard.holds("status", word in {OK, "NV_ERR_INVALID_ARGUMENT"}, word, OK)


@case("control", "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN")
@case("control", "NV906F_CTRL_GET_CLASS_ENGINEID")
def token(room: NvRoom, heard: Heard) -> None:
  """A channel's token is the same each time, and none but its own; no object's engine is refused."""
  b = room.bench
  tokens = [[_asked(b, "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN", x.handle).workSubmitToken for _ in range(2)]
            for x in (room.compute, room.copier)]
  heard.same("each time", int(all(a == z for a, z in tokens)), 1)
  heard.same("two channels", int(tokens[0][0] != tokens[1][0]), 1)
  engine = c.NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS(hObject=NOBODY)
  word = controlled(b, room.compute.handle, c.NV906F_CTRL_GET_CLASS_ENGINEID, engine)
  refused(heard, "the engine of no object", word)
  p = c.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS()
  word = controlled(b, b.gpu.subdevice, c.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, p)
  heard.same("of a subdevice", word, "NV_ERR_NOT_SUPPORTED")


@case("control", "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE")
@case("control", "NVA06C_CTRL_CMD_SET_TIMESLICE")
def schedule(room: NvRoom, heard: Heard) -> None:
  """A group that is not scheduled stands, and goes on when it is; a slice of time changes nothing of that."""
  b = room.bench
  channel = b.compute_channel("a channel that is scheduled")
  group = channel._handles[0]
  page = room.take(0, Area(bytes(PAGE)))
  _asked(b, "NVA06C_CTRL_CMD_SET_TIMESLICE", group, timesliceUs=2000)
  _asked(b, "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", group, bEnable=1)
  b.finish(channel, b.commands().signal(page.address, 7), "the runlist")
  heard.memory("memory", room.load(page, 8), models.words(7, bits=64))
  b.drop(channel)


# ---- UVM

@case("ioctl", "UVM_INITIALIZE")
@case("ioctl", "UVM_MM_INITIALIZE")
def initialize(room: NvRoom, heard: Heard) -> None:
  """Another time it is no error; flags that mean nothing, or are not those of the first time, are
  NV_ERR_INVALID_ARGUMENT."""
  b = room.bench
  heard.same("again", uvm(b, "UVM_INITIALIZE"), OK)
  heard.same("flags", uvm(b, "UVM_INITIALIZE", flags=1 << 40), "NV_ERR_INVALID_ARGUMENT")
  other = nv_uvm.UVM_INIT_FLAGS_DISABLE_HMM
  heard.same("other flags than before", uvm(b, "UVM_INITIALIZE", flags=other), "NV_ERR_INVALID_ARGUMENT")
  heard.same("of no file", uvm(b, "UVM_MM_INITIALIZE", uvmFd=1 << 20), "NV_ERR_INVALID_ARGUMENT")


@case("ioctl", "UVM_REGISTER_GPU")
@case("ioctl", "UVM_REGISTER_GPU_VASPACE")
def register_gpu(room: NvRoom, heard: Heard) -> None:
  """A UUID of no card is refused; a second address space of a card is not taken."""
  b = room.bench
  gpu = b.gpu
  nobody = nv_uvm.nv_uuid((ctypes.c_uint8 * 16)(*range(16)))
  refused(heard, "no card", uvm(b, "UVM_REGISTER_GPU", gpu_uuid=nobody, rmCtrlFd=b.rm.fd, hClient=b.rm.root))
  refused(heard, "a second address space", uvm(
    b, "UVM_REGISTER_GPU_VASPACE", gpuUuid=gpu.identity(), rmCtrlFd=b.rm.fd, hClient=b.rm.root, hVaSpace=gpu.va_space))


def _space(b: NvBench, size: int) -> int: return b.rm.reserve(size)


@case("ioctl", "UVM_CREATE_EXTERNAL_RANGE")
@case("ioctl", "UVM_FREE")
def ranges(room: NvRoom, heard: Heard) -> None:
  """Whole pages, which no other range has; freed by the address at which they begin."""
  b = room.bench
  base, size = _space(b, 2 << 20), 64 << 10
  rows = (("no bytes", "UVM_CREATE_EXTERNAL_RANGE", base, 0, "NV_ERR_INVALID_ADDRESS"),
          ("no page's start", "UVM_CREATE_EXTERNAL_RANGE", base + 8, size, "NV_ERR_INVALID_ADDRESS"),
          ("no whole pages", "UVM_CREATE_EXTERNAL_RANGE", base, size + 8, "NV_ERR_INVALID_ADDRESS"),
          ("right", "UVM_CREATE_EXTERNAL_RANGE", base, size, OK),
          ("the same", "UVM_CREATE_EXTERNAL_RANGE", base, size, "NV_ERR_UVM_ADDRESS_IN_USE"),
          ("its last page", "UVM_CREATE_EXTERNAL_RANGE", base + size - PAGE, size, "NV_ERR_UVM_ADDRESS_IN_USE"),
          ("behind it", "UVM_CREATE_EXTERNAL_RANGE", base + size, PAGE, OK),
          ("free, in the middle", "UVM_FREE", base + PAGE, PAGE, "NV_ERR_INVALID_ADDRESS"),
          ("free", "UVM_FREE", base, size, OK), ("free again", "UVM_FREE", base, size, "NV_ERR_INVALID_ADDRESS"),
          ("free what is behind", "UVM_FREE", base + size, PAGE, OK),
          ("at 0", "UVM_CREATE_EXTERNAL_RANGE", 0, PAGE, "NV_ERR_INVALID_ADDRESS"),
          ("to the end of 64 bits", "UVM_CREATE_EXTERNAL_RANGE", (1 << 64) - PAGE, PAGE, "NV_ERR_INVALID_ADDRESS"),
          ("past it", "UVM_CREATE_EXTERNAL_RANGE", (1 << 64) - PAGE, 2 * PAGE, "NV_ERR_INVALID_ADDRESS"))
  for word, name, at, length, wanted in rows: heard.same(word, uvm(b, name, base=at, length=length), wanted)


@case("ioctl", "UVM_MAP_EXTERNAL_ALLOCATION")
@case("ioctl", "UVM_UNMAP_EXTERNAL")
def map_external(room: NvRoom, heard: Heard) -> None:
  """Memory of RM at two addresses is the same memory; no range, too many bytes, no memory are refused."""
  b = room.bench
  gpu, size = b.gpu, 64 << 10
  made, base = b.take(size, Aperture.SYSTEM), _space(b, 2 << 20)
  heard.same("range", uvm(b, "UVM_CREATE_EXTERNAL_RANGE", base=base, length=size), OK)

  def mapped(handle: int, at: int, length: int, offset: int = 0) -> str:
    p = nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(base=at, length=length, offset=offset, gpuAttributesCount=1,
                                                  rmCtrlFd=b.rm.fd, hClient=b.rm.root, hMemory=handle)
    p.perGpuAttributes[0].gpuUuid = gpu.identity()
    p.perGpuAttributes[0].gpuMappingType = nv_uvm.UvmGpuMappingTypeReadWriteAtomic
    b.port.ioctl(b.rm.uvm_fd, nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION, p)
    return rm.status_name(int(p.rmStatus))
  heard.same("no range", mapped(made.handle, base + (1 << 20), size), "NV_ERR_INVALID_ADDRESS")
  heard.same("past the range", mapped(made.handle, base, 2 * size), "NV_ERR_INVALID_ADDRESS")
  heard.same("past the memory", mapped(made.handle, base, size, size), "NV_ERR_INVALID_OFFSET")
  refused(heard, "no memory", mapped(NOBODY, base, size))
  heard.same("right", mapped(made.handle, base, size), OK)
  source = room.take(0, Area(models.noise(82, PAGE)))
  b.finish(room.copier, b.copies().copy(base + PAGE, source.address, PAGE), "the copy engine")
  heard.memory("memory", bytes(made.bytes()[PAGE:2 * PAGE]), models.noise(82, PAGE))
  other = b.take(size, Aperture.SYSTEM)
  heard.same("another memory in its place", mapped(other.handle, base, size), OK)
  source = room.take(0, Area(models.noise(83, PAGE)))
  b.finish(room.copier, b.copies().copy(base + PAGE, source.address, PAGE), "the copy engine")
  heard.memory("memory that took the place", bytes(other.bytes()[PAGE:2 * PAGE]), models.noise(83, PAGE))
  heard.memory("memory that was there", bytes(made.bytes()[PAGE:2 * PAGE]), models.noise(82, PAGE))
  b.free(other)
  for word, at, length, wanted in (("unmap past the range", base, 2 * size, "NV_ERR_INVALID_ADDRESS"),
                                   ("unmap no bytes", base, 0, "NV_ERR_INVALID_ADDRESS"),
                                   ("unmap no range", base + (1 << 20), size, "NV_ERR_INVALID_ADDRESS")):
    heard.same(word, uvm(b, "UVM_UNMAP_EXTERNAL", base=at, length=length, gpuUuid=gpu.identity()), wanted)
  nobody = nv_uvm.nv_uuid((ctypes.c_uint8 * 16)(*range(16)))
  heard.same("unmap of no card", uvm(b, "UVM_UNMAP_EXTERNAL", base=base, length=size, gpuUuid=nobody),
             "NV_ERR_INVALID_DEVICE")
  heard.same("UVM_UNMAP_EXTERNAL", uvm(b, "UVM_UNMAP_EXTERNAL", base=base, length=size, gpuUuid=gpu.identity()), OK)
  heard.same("right, again", mapped(made.handle, base, size), OK)
  half = size // 2
  heard.same("unmap again", uvm(b, "UVM_UNMAP_EXTERNAL", base=base, length=size, gpuUuid=gpu.identity()), OK)
  for i in (0, 1): heard.same(f"half {i}", mapped(made.handle, base + i * half, half, (1 - i) * half), OK)
  b.finish(room.copier, b.copies().copy(base + half, source.address, PAGE), "the copy engine")
  heard.memory("the second half, which is the memory's first", bytes(made.bytes()[:PAGE]), models.noise(83, PAGE))
  heard.same("UVM_FREE", uvm(b, "UVM_FREE", base=base, length=size), OK)
  b.free(made)


@case("ioctl", "UVM_REGISTER_CHANNEL")
def register_channel(room: NvRoom, heard: Heard) -> None:
  """A handle of no channel is refused."""
  b = room.bench
  word = uvm(b, "UVM_REGISTER_CHANNEL", gpuUuid=b.gpu.identity(), rmCtrlFd=b.rm.fd, hClient=b.rm.root, hChannel=NOBODY,
             base=_space(b, 2 << 20), length=2 << 20)
  refused(heard, "no channel", word)


@case("ioctl", "UVM_ENABLE_PEER_ACCESS")
def peers(room: NvRoom, heard: Heard) -> None:
  """A card is no peer of itself."""
  b = room.bench
  word = uvm(b, "UVM_ENABLE_PEER_ACCESS", gpuUuidA=b.gpu.identity(), gpuUuidB=b.gpu.identity())
  heard.same("itself", word, "NV_ERR_INVALID_DEVICE")
