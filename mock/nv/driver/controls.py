"""RM's control commands: what an object of a class can be asked or told.

A command names the class that it is for in its upper half (NV2080_CTRL_... is for subdevices). A wrong size of
parameters is NV_ERR_INVALID_ARGUMENT (_rmapiRmControl), a command that the object does not know NV_ERR_NOT_SUPPORTED
(resControlLookup); one that RM knows and the mock does not is NV_ERR_NOT_SUPPORTED too, and the report names it.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.core.table import Handlers
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv.driver.objects import ChannelObject, GroupObject, MemoryObject, Node, RmError

if TYPE_CHECKING:
  from tinyhw.mock.nv.card import Card
  from tinyhw.mock.nv.driver.rm import Rm
  from tinyhw.mock.nv.machine import NvGpu

Handler = Callable[["Rm", Node, Any], None]
_FAMILIES: Final = {  # commands of these classes are for objects of these internal classes
  0x0000: ("RmClientResource",), 0x0080: ("Device",), 0x2080: ("Subdevice",), 0x906F: ("KernelChannel",),
  0xA06F: ("KernelChannel",), 0xC36F: ("KernelChannel",), 0xA06C: ("KernelChannelGroupApi",),
  0x90F1: ("VaSpaceApi",), 0x83DE: ("KernelSMDebuggerSession",),
  0x0041: ("VideoMemory", "SystemMemory", "OsDescMemory"),
}
SECTOR: Final = 256


class Controls:
  """The table of commands, and how one is run."""

  table: Handlers[str] = Handlers("RM control")

  @staticmethod
  def check(p: Any) -> None:
    """What is checked before the object is looked for: parameters of a command that RM knows (_rmapiRmControl)."""
    row = control.CONTROLS.get(p.cmd)
    if row is None: return
    size = 0 if row.struct is None else ctypes.sizeof(row.struct)
    if p.paramsSize != size or bool(size) != bool(p.params):
      raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{row.name} with {p.paramsSize} bytes at {p.params or 0:#x}, "
                    f"it has {size}")

  def run(self, rm: Rm, node: Node, p: Any) -> None:
    """NV_ESC_RM_CONTROL of an object."""
    row = control.CONTROLS.get(p.cmd)
    family = _FAMILIES.get(p.cmd >> 16)
    if row is None or family is None or node.internal not in family:
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"{node} has no control {row.name if row else hex(p.cmd)}")
    size = 0 if row.struct is None else ctypes.sizeof(row.struct)
    handler = self.table.get(row.name)
    if handler is None:
      if (why := self.table.why_ignored(row.name)) is not None:
        return rm.machine.ignored.note("RM control", row.name, why)
      rm.machine.doubt(f"RM control {row.name} is not modelled: NV_ERR_NOT_SUPPORTED")
      raise RmError(status.NV_ERR_NOT_SUPPORTED, f"{row.name} is not modelled")
    params: Any = None
    try:
      if row.struct is not None:
        params = row.struct.from_buffer_copy(rm.user.read(p.params, size))
      handler(rm, node, params)
      if params is not None:
        rm.user.write(p.params, bytes(params))
    except Refused as refusal:  # also of a list that the parameters point to
      raise RmError(status.NV_ERR_INVALID_ADDRESS, refusal.why) from None


CONTROLS: Final = Controls()
serves = Controls.table.handles
Controls.table.ignores("NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION", "NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK",
                       why="errors are told by notifiers and by what is read of them")
Controls.table.ignores("NVA06F_CTRL_CMD_SET_ERROR_NOTIFIER", why="each channel of a group is told of its end")
Controls.table.ignores("NV83DE_CTRL_CMD_SM_DEBUG_MODE_ENABLE", "NV83DE_CTRL_CMD_SM_DEBUG_MODE_DISABLE",
                       why="a fault ends the launch in either mode")
Controls.table.ignores("NV2080_CTRL_CMD_GR_CTXSW_PREEMPTION_BIND", why="launches take turns without it")
Controls.table.ignores("NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS", why="interrupts are served at once")


def gpu_of(node: Node) -> NvGpu:
  """The GPU that an object is on."""
  assert node.gpu is not None
  return node.gpu


def uuid_of(gpu: NvGpu) -> bytes:
  """The 16 bytes of a GPU's UUID: made from its slot and name, so the same in each run."""
  return uuid.uuid5(uuid.NAMESPACE_DNS, f"tinyhw mock {gpu.card.name} {gpu.index}").bytes


def uuid_text(gpu: NvGpu) -> str:
  """"GPU-...", as tools write it."""
  return f"GPU-{uuid.UUID(bytes=uuid_of(gpu))}"


def _by_id(rm: Rm, gpu_id: int) -> NvGpu:
  found = next((g for g in rm.machine.gpus if g.gpu_id == gpu_id), None)
  if found is None:
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"no GPU has the id {gpu_id:#x}")
  return found


def _ids(rm: Rm, array: Any) -> None:
  for i in range(len(array)):
    array[i] = rm.machine.gpus[i].gpu_id if i < len(rm.machine.gpus) else control.NV0000_CTRL_GPU_INVALID_ID


# ---- clients

@serves("NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS")
def attached_ids(rm: Rm, node: Node, p: Any) -> None:
  _ids(rm, p.gpuIds)


@serves("NV0000_CTRL_CMD_GPU_GET_PROBED_IDS")
def probed_ids(rm: Rm, node: Node, p: Any) -> None:
  _ids(rm, p.gpuIds)
  for i in range(len(p.excludedGpuIds)):
    p.excludedGpuIds[i] = control.NV0000_CTRL_GPU_INVALID_ID


@serves("NV0000_CTRL_CMD_GPU_ATTACH_IDS")
def attach_ids(rm: Rm, node: Node, p: Any) -> None:
  """A list of ids, or the constant for all."""
  for gpu_id in p.gpuIds:
    if gpu_id in (control.NV0000_CTRL_GPU_INVALID_ID, control.NV0000_CTRL_GPU_ATTACH_ALL_PROBED_IDS):
      break
    _by_id(rm, gpu_id)
  p.failedId = control.NV0000_CTRL_GPU_INVALID_ID


@serves("NV0000_CTRL_CMD_GPU_DETACH_IDS")
def detach_ids(rm: Rm, node: Node, p: Any) -> None:
  pass


@serves("NV0000_CTRL_CMD_GPU_GET_ID_INFO", "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2")
def id_info(rm: Rm, node: Node, p: Any) -> None:
  gpu = _by_id(rm, p.gpuId)
  p.deviceInstance = p.gpuInstance = gpu.index
  p.subDeviceInstance, p.boardId, p.numaId = 0, gpu.gpu_id, -1


@serves("NV0000_CTRL_CMD_GPU_GET_PCI_INFO")
def pci_info(rm: Rm, node: Node, p: Any) -> None:
  gpu = _by_id(rm, p.gpuId)
  p.domain, p.bus, p.slot = 0, gpu.card.bus(gpu.index), 0


@serves("NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS")
def device_ids(rm: Rm, node: Node, p: Any) -> None:
  p.deviceIds = (1 << len(rm.machine.gpus)) - 1


@serves("NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID")
def uuid_from_id(rm: Rm, node: Node, p: Any) -> None:
  binary = p.flags & control.NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID_FLAGS_FORMAT_BINARY
  _fill_uuid(_by_id(rm, p.gpuId), binary, p.gpuUuid)
  p.uuidStrLen = 16 if binary else len(uuid_text(_by_id(rm, p.gpuId))) + 1


@serves("NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2")
def build_version(rm: Rm, node: Node, p: Any) -> None:
  p.driverVersionBuffer = p.versionBuffer = rm.version.encode()
  p.titleBuffer = b"NVIDIA UNIX x86_64 Kernel Module"


@serves("NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2")
def p2p_caps(rm: Rm, node: Node, p: Any) -> None:
  """All GPUs of the machine reach each other."""
  if not 0 < p.gpuCount <= len(p.gpuIds):
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"{p.gpuCount} GPUs")
  for gpu_id in p.gpuIds[: p.gpuCount]:
    _by_id(rm, gpu_id)
  places = (control.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_WRITES_SUPPORTED,
            control.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_READS_SUPPORTED)
  p.p2pCaps = sum(1 << lo for _, lo in places) if p.gpuCount > 1 else 0
  for i in range(len(p.busPeerIds)):
    p.busPeerIds[i] = 0


@serves("NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE")
def address_space_type(rm: Rm, node: Node, p: Any) -> None:
  memory: MemoryObject = node.client.of(p.hObject, MemoryObject)
  names = {"system": "SYSMEM", "user": "SYSMEM", "video": "VIDMEM"}
  p.addrSpaceType = getattr(control, f"NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE_{names[memory.physical.kind]}")


# ---- devices

@serves("NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2")
def class_list_v2(rm: Rm, node: Node, p: Any) -> None:
  classes = gpu_of(node).card.classes
  p.numClasses = len(classes)
  for i, class_id in enumerate(classes):
    p.classList[i] = class_id


@serves("NV0080_CTRL_CMD_GPU_GET_CLASSLIST")
def class_list(rm: Rm, node: Node, p: Any) -> None:
  """How many there are, and with a pointer which."""
  classes = gpu_of(node).card.classes
  if p.classList:
    if p.numClasses < len(classes):
      raise RmError(status.NV_ERR_INVALID_PARAM_STRUCT, f"place for {p.numClasses} classes, there are {len(classes)}")
    rm.user.write(p.classList, b"".join(c.to_bytes(4, "little") for c in classes))
  p.numClasses = len(classes)


@serves("NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES")
def sub_devices(rm: Rm, node: Node, p: Any) -> None:
  p.numSubDevices = 1


@serves("NV0080_CTRL_CMD_FIFO_IDLE_CHANNELS")
def idle_channels(rm: Rm, node: Node, p: Any) -> None:
  for handle in p.hChannels[: p.numChannels]:
    channel: ChannelObject = node.client.of(handle, ChannelObject)
    if channel.channel.busy or channel.channel.runnable():
      raise RmError(status.NV_ERR_TIMEOUT, f"{channel.channel.name} is not idle")


# ---- subdevices

@serves("NV2080_CTRL_CMD_GPU_GET_NAME_STRING")
def name_string(rm: Rm, node: Node, p: Any) -> None:
  text = p.gpuNameString
  _fill(text.unicode if p.gpuNameStringFlags else text.ascii, gpu_of(node).card.title.encode())


@serves("NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING")
def short_name(rm: Rm, node: Node, p: Any) -> None:
  _fill(p.gpuShortNameString, gpu_of(node).card.chip.encode())


@serves("NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO")
def simulation(rm: Rm, node: Node, p: Any) -> None:
  p.type = control.NV2080_CTRL_GPU_GET_SIMULATION_INFO_TYPE_NONE


@serves("NV2080_CTRL_CMD_GPU_GET_GID_INFO")
def gid_info(rm: Rm, node: Node, p: Any) -> None:
  gpu = gpu_of(node)
  binary = p.flags & control.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY
  _fill_uuid(gpu, binary, p.data)
  p.length = 16 if binary else len(uuid_text(gpu)) + 1


def _fill_uuid(gpu: NvGpu, binary: int, array: Any) -> None:
  _fill(array, uuid_of(gpu) if binary else uuid_text(gpu).encode())


def _fill(array: Any, data: bytes) -> None:
  """An array of a struct with these numbers, and zeros behind them."""
  array[:] = [*data, *[0] * (len(array) - len(data))]


@serves("NV2080_CTRL_CMD_GPU_GET_ID")
def gpu_id(rm: Rm, node: Node, p: Any) -> None:
  p.gpuId = gpu_of(node).gpu_id


def engine_types(card: Card) -> list[int]:
  """NV2080_ENGINE_TYPE_* of the engines that the mock has."""
  copies = range(len(card.engines(card.copy_class)))
  return [alloc.NV2080_ENGINE_TYPE_GR0, *(alloc.NV2080_ENGINE_TYPE_COPY0 + i for i in copies)]


@serves("NV2080_CTRL_CMD_GPU_GET_ENGINES_V2")
def engines(rm: Rm, node: Node, p: Any) -> None:
  found = engine_types(gpu_of(node).card)
  p.engineCount = len(found)
  for i, engine in enumerate(found):
    p.engineList[i] = engine


@serves("NV2080_CTRL_CMD_GPU_GET_ENGINE_CLASSLIST")
def engine_classes(rm: Rm, node: Node, p: Any) -> None:
  card = gpu_of(node).card
  if p.engineType not in engine_types(card):
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"engine type {p.engineType:#x}")
  classes = [card.compute_class if p.engineType == alloc.NV2080_ENGINE_TYPE_GR0 else card.copy_class]
  if p.classList:
    rm.user.write(p.classList, b"".join(c.to_bytes(4, "little") for c in classes))
  p.numClasses = len(classes)


def _copy_engine(node: Node, kind: int) -> int:
  """The number of a copy engine that the card has."""
  number, card = kind - alloc.NV2080_ENGINE_TYPE_COPY0, gpu_of(node).card
  if not 0 <= number < len(card.engines(card.copy_class)):
    raise RmError(status.NV_ERR_NOT_SUPPORTED, f"{kind:#x} is no copy engine")
  return number


@serves("NV2080_CTRL_CMD_CE_GET_CAPS_V2")
def copy_engine_caps(rm: Rm, node: Node, p: Any) -> None:
  """The first two copy engines belong to the graphics engine's runlist, as on the chips."""
  number = _copy_engine(node, p.ceEngineType)
  byte, mask = control.NV2080_CTRL_CE_CAPS_CE_GRCE
  for i in range(len(p.capsTbl)):
    p.capsTbl[i] = mask if i == byte and number < 2 else 0


# Physical copy engines by copy engine, as driver 580.159.04 tells of an H200: the graphics engine's share theirs.
_PCES: Final = (0x5000, 0xA000, 0x5000, 0xA000, 0xFFF)


@serves("NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK")
def copy_engine_units(rm: Rm, node: Node, p: Any) -> None:
  number = _copy_engine(node, p.ceEngineType)
  p.pceMask = _PCES[number] if number < len(_PCES) else 0


@serves("NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES")
def compute_mode(rm: Rm, node: Node, p: Any) -> None:
  p.rules = control.NV2080_CTRL_GPU_COMPUTE_MODE_RULES_NONE


@serves("NV2080_CTRL_CMD_GPU_GET_MAX_SUPPORTED_PAGE_SIZE")
def page_size(rm: Rm, node: Node, p: Any) -> None:
  p.maxSupportedPageSize = 2 << 20


def _information(rm: Rm, table: dict[str, int], prefix: str, rows: Any) -> None:
  """Fill a list of (index, data) from a table by name; an index that is not in it reads 0, and is told."""
  names = {value: name for name, value in reversed(vars(control).items())
           if name.startswith(prefix) and isinstance(value, int)}
  for row in rows:
    name = names.get(row.index, "").removeprefix(prefix)
    if name not in table:
      rm.machine.doubt(f"RM control: {prefix}{name or hex(row.index)} is not modelled: it reads 0")
    row.data = table.get(name, 0)


def gr_information(card: Card) -> dict[str, int]:
  """NV2080_CTRL_GR_INFO_INDEX_* of a card."""
  major, minor = card.capability
  versions = {(12, 0): control.NV2080_CTRL_GR_INFO_SM_VERSION_10_4}  # what GB202 says of itself
  return {"SM_VERSION": versions.get((major, minor), major << 8 | minor), "MAX_WARPS_PER_SM": card.arch.warps_per_sm,
          "MAX_THREADS_PER_WARP": 32, "LITTER_NUM_GPCS": card.gpcs, "LITTER_NUM_TPC_PER_GPC": card.tpcs_a_gpc,
          "LITTER_NUM_SM_PER_TPC": 2, "SHADER_PIPE_COUNT": card.gpcs, "SHADER_PIPE_SUB_COUNT": card.sms // 2,
          "GPU_CORE_COUNT": card.sms * 128, "THREAD_STACK_SCALING_FACTOR": 1, "SM_REG_BANK_COUNT": 4,
          "SM_REG_BANK_REG_COUNT": 16384, "MAX_SP_PER_SM": 128}


@serves("NV2080_CTRL_CMD_GR_GET_INFO")
def gr_info(rm: Rm, node: Node, p: Any) -> None:
  """The client's list of (index, data)."""
  row_type = control.NV2080_CTRL_GR_INFO
  size = ctypes.sizeof(row_type)
  if not 0 < p.grInfoListSize <= SECTOR or not p.grInfoList:
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"a list of {p.grInfoListSize} rows")
  rows = (row_type * p.grInfoListSize).from_buffer_copy(rm.user.read(p.grInfoList, size * p.grInfoListSize))
  _information(rm, gr_information(gpu_of(node).card), "NV2080_CTRL_GR_INFO_INDEX_", rows)
  rm.user.write(p.grInfoList, bytes(rows))


@serves("NV2080_CTRL_CMD_FB_GET_INFO_V2")
def fb_info(rm: Rm, node: Node, p: Any) -> None:
  gpu = gpu_of(node)
  kib = gpu.vram.size >> 10
  table = {"RAM_SIZE": kib, "TOTAL_RAM_SIZE": kib, "HEAP_SIZE": kib, "USABLE_RAM_SIZE": kib, "BAR1_SIZE": kib,
           "HEAP_FREE": gpu.vram_allocator.free_bytes >> 10, "MAPPABLE_HEAP_SIZE": kib}
  _information(rm, table, "NV2080_CTRL_FB_INFO_INDEX_", p.fbInfoList[: p.fbInfoListSize])


@serves("NV2080_CTRL_CMD_GPU_GET_INFO_V2")
def gpu_info(rm: Rm, node: Node, p: Any) -> None:
  _information(rm, {"GPU_SM_VERSION": gr_information(gpu_of(node).card)["SM_VERSION"], "GPU_SMC_MODE": 0,
                    "GPU_DEBUGGING_CAPABILITY": 1}, "NV2080_CTRL_GPU_INFO_INDEX_", p.gpuInfoList[: p.gpuInfoListSize])


@serves("NV2080_CTRL_CMD_GR_GET_GPC_MASK")
def gpc_mask(rm: Rm, node: Node, p: Any) -> None:
  p.gpcMask = (1 << gpu_of(node).card.gpcs) - 1


def tpcs(card: Card) -> list[int]:
  """TPCs of each GPC: two SMs a TPC, spread evenly."""
  count = card.sms // 2
  return [count // card.gpcs + (i < count % card.gpcs) for i in range(card.gpcs)]


@serves("NV2080_CTRL_CMD_GR_GET_TPC_MASK")
def tpc_mask(rm: Rm, node: Node, p: Any) -> None:
  found = tpcs(gpu_of(node).card)
  if p.gpcId >= len(found):
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"GPC {p.gpcId} of {len(found)}")
  p.tpcMask = (1 << found[p.gpcId]) - 1


@serves("NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER")
def sm_order(rm: Rm, node: Node, p: Any) -> None:
  card = gpu_of(node).card
  p.numSm, p.numTpc, sm = card.sms, card.sms // 2, 0
  for gpc, count in enumerate(tpcs(card)):
    for tpc in range(count):
      for local in range(2):
        row = p.globalSmId[sm]
        row.gpcId, row.localTpcId, row.localSmId, row.globalTpcId = gpc, tpc, local, sm // 2
        row.virtualGpcId, row.migratableTpcId = gpc, sm // 2
        sm += 1


@serves("NV2080_CTRL_CMD_BUS_GET_PCI_INFO")
def bus_pci_info(rm: Rm, node: Node, p: Any) -> None:
  p.pciDeviceId = p.pciExtDeviceId = gpu_of(node).card.pci_id


@serves("NV2080_CTRL_CMD_MC_GET_ARCH_INFO")
def arch_info(rm: Rm, node: Node, p: Any) -> None:
  """The chip's number in RM's tables, by its name."""
  chip = gpu_of(node).card.chip
  p.architecture = getattr(control, f"NV2080_CTRL_MC_ARCH_INFO_ARCHITECTURE_{chip[:3]}00")
  p.implementation = getattr(control, f"NV2080_CTRL_MC_ARCH_INFO_IMPLEMENTATION_{chip}")


@serves("NV2080_CTRL_CMD_TIMER_GET_TIME")
def get_time(rm: Rm, node: Node, p: Any) -> None:
  p.time_nsec = gpu_of(node).timer()


@serves("NV2080_CTRL_CMD_GSP_GET_FEATURES")
def gsp(rm: Rm, node: Node, p: Any) -> None:
  p.bValid = 1


@serves("NV2080_CTRL_CMD_RC_GET_ERROR_COUNT")
def error_count(rm: Rm, node: Node, p: Any) -> None:
  p.errorCount = rm.machine.failures


# ---- channels

def _schedule(channel: ChannelObject, on: bool) -> None:
  if on:
    if not channel.channel.classes:
      raise RmError(status.NV_ERR_INVALID_STATE, f"{channel.channel.name} has no engine object")
    channel.channel.schedule()
  else:
    channel.channel.unschedule()


@serves("NVA06F_CTRL_CMD_GPFIFO_SCHEDULE")
def schedule(rm: Rm, node: Node, p: Any) -> None:
  _schedule(node.data, bool(p.bEnable))


@serves("NVA06C_CTRL_CMD_GPFIFO_SCHEDULE")
def schedule_group(rm: Rm, node: Node, p: Any) -> None:
  """All channels of the group."""
  group: GroupObject = node.data
  group.group.scheduled = bool(p.bEnable)
  for child in node.children:
    if isinstance(child.data, ChannelObject):
      _schedule(child.data, bool(p.bEnable))


@serves("NVA06F_CTRL_CMD_BIND")
def bind(rm: Rm, node: Node, p: Any) -> None:
  channel: ChannelObject = node.data
  kind, number = rm._engine(gpu_of(node), p.engineType)
  if isinstance(node.parent and node.parent.data, GroupObject) and kind != channel.channel.kind:
    raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"engine {p.engineType:#x} of a channel for {channel.engine:#x}")
  channel.engine, channel.channel.kind, channel.channel.engine_number = p.engineType, kind, number


@serves("NVA06F_CTRL_CMD_STOP_CHANNEL")
def stop(rm: Rm, node: Node, p: Any) -> None:
  node.data.channel.unschedule()


@serves("NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN")
def work_submit_token(rm: Rm, node: Node, p: Any) -> None:
  """What rings the channel's doorbell. It is written to the notifier too, where one was chosen for it."""
  channel: ChannelObject = node.data
  p.workSubmitToken = channel.token
  index = alloc.NV_CHANNELGPFIFO_NOTIFICATION_TYPE_WORK_SUBMIT_TOKEN if channel.token_index is None else \
    channel.token_index
  if channel.notifier is not None and channel.notifier.size >= 16 * (index + 1):
    region, offset = channel.notifier.at(16 * index)
    region.u8[offset + 8 : offset + 12].data[:] = channel.token.to_bytes(4, "little")


@serves("NVC36F_CTRL_CMD_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX")
def token_index(rm: Rm, node: Node, p: Any) -> None:
  channel: ChannelObject = node.data
  if channel.notifier is None:
    raise RmError(status.NV_ERR_INVALID_STATE, "a channel without a notifier")
  if channel.notifier.size < 16 * (p.index + 1):
    raise RmError(status.NV_ERR_OUT_OF_RANGE, f"notifier {p.index} of {channel.notifier.size} bytes")
  channel.token_index = p.index


@serves("NV906F_CTRL_GET_CLASS_ENGINEID")
def class_engine_id(rm: Rm, node: Node, p: Any) -> None:
  below = node.client.find(p.hObject)
  if below.parent is not node:
    raise RmError(status.NV_ERR_OBJECT_NOT_FOUND, f"{below} is not below {node}")
  p.classID, p.engineID = below.class_id, node.data.engine
  p.classEngineID = p.engineID << 16 | p.classID


@serves("NV906F_CTRL_CMD_RESET_CHANNEL")
def reset_channel(rm: Rm, node: Node, p: Any) -> None:
  """RC by the client: the group ends."""
  channel: ChannelObject = node.data
  channel.channel.fail(MachineFault("the client has reset its channel"))


@serves("NV906F_CTRL_CMD_GET_DEFER_RC_STATE")
def defer_rc(rm: Rm, node: Node, p: Any) -> None:
  p.bDeferRCPending = 0


@serves("NV906F_CTRL_CMD_GET_MMU_FAULT_INFO")
def mmu_fault_info(rm: Rm, node: Node, p: Any) -> None:
  """The last fault of the channel: address, what was asked, where the program stood."""
  channel = node.data.channel
  fault = channel.error
  if isinstance(fault, PageFault) and fault.address is not None:
    p.addrHi, p.addrLo = fault.address >> 32, fault.address & 0xFFFF_FFFF
    p.faultString = f"{fault.access}: {fault.reason}".encode()[:31]
    if channel.fault_pc is not None:
      p.shaderProgramVA[0] = channel.fault_pc


@serves("NVA06C_CTRL_CMD_SET_TIMESLICE")
def set_timeslice(rm: Rm, node: Node, p: Any) -> None:
  node.data.timeslice_us = p.timesliceUs


@serves("NVA06C_CTRL_CMD_GET_TIMESLICE")
def get_timeslice(rm: Rm, node: Node, p: Any) -> None:
  p.timesliceUs = node.data.timeslice_us


@serves("NVA06C_CTRL_CMD_PREEMPT")
def preempt(rm: Rm, node: Node, p: Any) -> None:
  pass


@serves("NVA06C_CTRL_CMD_GET_INFO")
def group_info(rm: Rm, node: Node, p: Any) -> None:
  p.tsgID = node.handle & 0xFFFF


# ---- errors

def _dead(node: Node, handle: int) -> Any:
  """The channel that a debugger asks of: by handle, or the one at fault."""
  if handle:
    return node.client.of(handle, ChannelObject).channel
  found = [n.data.channel for n in node.client.objects.values() if isinstance(n.data, ChannelObject)]
  return next((c for c in found if c.error is not None), None)


@serves("NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES")
def sm_errors(rm: Rm, node: Node, p: Any) -> None:
  """SM 0 tells of the fault that has ended the channel: its error, the address, the PC."""
  channel = _dead(node, p.hTargetChannel)
  error = None if channel is None else channel.error
  if error is None:
    return
  if isinstance(error, PageFault):
    p.mmuFault.valid = 1
  row = p.smErrorStateArray[0]
  row.hwwGlobalEsr = 1
  row.hwwEsrAddr = getattr(error, "address", None) or 0
  if channel.fault_pc is not None:
    row.hwwWarpEsrPc64, row.hwwWarpEsrPc = channel.fault_pc, channel.fault_pc & 0xFFFF_FFFF


@serves("NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES")
def clear_sm_errors(rm: Rm, node: Node, p: Any) -> None:
  channel = _dead(node, p.hTargetChannel)
  if channel is not None:
    channel.fault_pc = None


@serves("NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO")
def debug_mmu_fault(rm: Rm, node: Node, p: Any) -> None:
  channel = _dead(node, 0)
  fault = None if channel is None else channel.error
  if isinstance(fault, PageFault) and fault.address is not None:
    p.count = 1
    row = p.mmuFaultInfoList[0]
    row.faultAddress = fault.address
    row.accessType = {"read": 0, "write": 1, "atomic": 2}.get(fault.access, 0)  # NV_PFAULT_ACCESS_TYPE of dev_mmu.ref
