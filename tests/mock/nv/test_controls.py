"""Every control command of RM that the mock serves: what it answers, which fields it leaves alone, what it refuses."""

from __future__ import annotations

import ctypes
import uuid
from typing import Any

import pytest

from tests.mock.nv.bench import release
from tests.mock.nv.client import MIB, Client, Status, Work
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.mock.nv.driver.controls import Controls
from tinyhw.wire.gpfifo import Notification

NONE = control.NV0000_CTRL_GPU_INVALID_ID
IDS = [0x100, 0x200]  # of two cards: bus 1 and 2, slot 0
Values = dict[str, Any]


def put(p: Any, values: Values) -> None:
  """Set fields by name: lists are the first elements of arrays, dicts the fields of a struct within."""
  for name, value in values.items():
    if isinstance(value, dict):
      put(getattr(p, name), value)
    elif isinstance(value, list):
      for k, x in enumerate(value):
        if isinstance(x, dict):
          put(getattr(p, name)[k], x)
        else:
          getattr(p, name)[k] = x
    else:
      setattr(p, name, value)


def asked(c: Client, handle: int, name: str, given: Values, wanted: Values) -> None:
  """A command answers with exactly these fields, and leaves what else was there."""
  command = getattr(control, name)
  p, right = (control.CONTROLS[command].struct() for _ in range(2))
  for x in (p, right):
    ctypes.memset(ctypes.addressof(x), 0xA5, ctypes.sizeof(x))
    put(x, given)
  put(right, wanted)
  c.control(handle, p, command)
  assert bytes(p) == bytes(right), {f: (getattr(p, f), getattr(right, f)) for f, *_ in p._fields_}


def refused(c: Client, handle: int, name: str, code: int, **given: Any) -> None:
  command = getattr(control, name)
  p = control.CONTROLS[command].struct()
  put(p, given)
  with pytest.raises(Status) as caught:
    c.control(handle, p, command)
  assert caught.value.code == code, f"{caught.value}, not {status.STATUS[code][0]}"


INVALID, UNSUPPORTED = status.NV_ERR_INVALID_ARGUMENT, status.NV_ERR_NOT_SUPPORTED


@pytest.fixture
def two() -> Client:
  return Client(card="sm_90,sm_90")


def padded(data: bytes, count: int) -> list[int]:
  return [*data.ljust(count, b"\0")]


# ---- the client


def test_the_ids_of_cards(two: Client) -> None:
  c, rest = two, [NONE] * 30
  asked(c, c.root, "NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS", {}, {"gpuIds": IDS + rest})
  asked(c, c.root, "NV0000_CTRL_CMD_GPU_GET_PROBED_IDS", {}, {"gpuIds": IDS + rest, "excludedGpuIds": [NONE] * 32})
  asked(c, c.root, "NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS", {}, {"deviceIds": 3})
  name = "NV0000_CTRL_CMD_GPU_ATTACH_IDS"
  for ids in ([0x200, 0x100, NONE, 77], [control.NV0000_CTRL_GPU_ATTACH_ALL_PROBED_IDS, 77], [NONE, 77]):
    asked(c, c.root, name, {"gpuIds": ids}, {"failedId": NONE})
  refused(c, c.root, name, INVALID, gpuIds=[0x100, 0x300, NONE])
  asked(c, c.root, "NV0000_CTRL_CMD_GPU_DETACH_IDS", {"gpuIds": [0x100, NONE]}, {})
  one = Client()
  asked(one, one.root, "NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS", {}, {"deviceIds": 1})


def test_a_card_by_its_id(two: Client) -> None:
  c = two
  for index, gpu_id in enumerate(IDS):
    told = {"deviceInstance": index, "gpuInstance": index, "subDeviceInstance": 0, "boardId": gpu_id, "numaId": -1}
    for version in ("", "_V2"):
      asked(c, c.root, f"NV0000_CTRL_CMD_GPU_GET_ID_INFO{version}", {"gpuId": gpu_id}, told)
    asked(c, c.root, "NV0000_CTRL_CMD_GPU_GET_PCI_INFO", {"gpuId": gpu_id}, {"domain": 0, "bus": index + 1, "slot": 0})
  raw = uuid.uuid5(uuid.NAMESPACE_DNS, "tinyhw mock sm_90 1").bytes
  name = "NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID"
  binary = control.NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID_FLAGS_FORMAT_BINARY
  text = f"GPU-{uuid.UUID(bytes=raw)}".encode()
  asked(c, c.root, name, {"gpuId": 0x200, "flags": binary}, {"gpuUuid": padded(raw, 256), "uuidStrLen": 16})
  asked(c, c.root, name, {"gpuId": 0x200, "flags": 0}, {"gpuUuid": padded(text, 256), "uuidStrLen": 41})
  for bad in ("GPU_GET_ID_INFO", "GPU_GET_ID_INFO_V2", "GPU_GET_PCI_INFO", "GPU_GET_UUID_FROM_GPU_ID"):
    refused(c, c.root, f"NV0000_CTRL_CMD_{bad}", INVALID, gpuId=0x300)


def test_the_driver_and_its_peers(two: Client) -> None:
  c = two
  asked(
    c,
    c.root,
    "NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2",
    {},
    {
      "driverVersionBuffer": b"580.142",
      "versionBuffer": b"580.142",
      "titleBuffer": b"NVIDIA UNIX x86_64 Kernel Module",
    },
  )
  name, ones = "NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2", {"busPeerIds": [0] * 1024}
  both = (
    1 << control.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_WRITES_SUPPORTED[1]
    | 1 << control.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_READS_SUPPORTED[1]
  )
  asked(c, c.root, name, {"gpuIds": IDS, "gpuCount": 2}, {"p2pCaps": both, **ones})
  asked(c, c.root, name, {"gpuIds": [0x200], "gpuCount": 1}, {"p2pCaps": 0, **ones})
  asked(c, c.root, name, {"gpuIds": [0x100] * 32, "gpuCount": 32}, {"p2pCaps": both, **ones})
  for count in (0, 33):
    refused(c, c.root, name, INVALID, gpuIds=IDS, gpuCount=count)
  refused(c, c.root, name, INVALID, gpuIds=[0x100, 0x300], gpuCount=2)


# ---- the device and its part


def test_classes_of_a_device(two: Client) -> None:
  c, classes = two, two.card.classes
  asked(c, c.device, "NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES", {}, {"numSubDevices": 1})
  asked(c, c.device, "NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2", {}, {"numClasses": len(classes), "classList": [*classes]})
  name = "NV0080_CTRL_CMD_GPU_GET_CLASSLIST"
  asked(c, c.device, name, {"classList": 0}, {"numClasses": len(classes)})
  room = (ctypes.c_uint32 * (len(classes) + 1))(*[7] * (len(classes) + 1))
  where = ctypes.addressof(room)
  for count in (len(classes), len(classes) + 1):
    asked(c, c.device, name, {"numClasses": count, "classList": where}, {"numClasses": len(classes)})
  assert [*room] == [*classes, 7]
  refused(c, c.device, name, status.NV_ERR_INVALID_PARAM_STRUCT, numClasses=len(classes) - 1, classList=where)
  refused(c, c.device, name, status.NV_ERR_INVALID_ADDRESS, numClasses=999, classList=8)


def test_what_a_card_is_called(two: Client) -> None:
  c, title = two, b"NVIDIA H200"
  asked(
    c,
    c.subdevice,
    "NV2080_CTRL_CMD_GPU_GET_NAME_STRING",
    {"gpuNameStringFlags": 0},
    {"gpuNameString": {"ascii": padded(title, 64)}},
  )
  asked(
    c,
    c.subdevice,
    "NV2080_CTRL_CMD_GPU_GET_NAME_STRING",
    {"gpuNameStringFlags": 1},
    {"gpuNameString": {"unicode": padded(title, 64)}},
  )
  asked(c, c.subdevice, "NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING", {}, {"gpuShortNameString": padded(b"GH100", 64)})
  asked(c, c.subdevice, "NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO", {}, {"type": 0})
  asked(c, c.subdevice, "NV2080_CTRL_CMD_GPU_GET_ID", {}, {"gpuId": 0x100})
  asked(c, c.subdevice, "NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES", {}, {"rules": 0})
  asked(c, c.subdevice, "NV2080_CTRL_CMD_GPU_GET_MAX_SUPPORTED_PAGE_SIZE", {}, {"maxSupportedPageSize": 2 * MIB})
  asked(
    c, c.subdevice, "NV2080_CTRL_CMD_BUS_GET_PCI_INFO", {}, {"pciDeviceId": 0x233510DE, "pciExtDeviceId": 0x233510DE}
  )
  asked(c, c.subdevice, "NV2080_CTRL_CMD_GSP_GET_FEATURES", {}, {"bValid": 1})
  raw = uuid.uuid5(uuid.NAMESPACE_DNS, "tinyhw mock sm_90 0").bytes
  name, binary = "NV2080_CTRL_CMD_GPU_GET_GID_INFO", control.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY
  asked(c, c.subdevice, name, {"flags": binary}, {"length": 16, "data": padded(raw, 256)})
  asked(c, c.subdevice, name, {"flags": 0}, {"length": 41, "data": padded(f"GPU-{uuid.UUID(bytes=raw)}".encode(), 256)})
  other = Client(c.machine, gpu=1)
  asked(other, other.subdevice, "NV2080_CTRL_CMD_GPU_GET_ID", {}, {"gpuId": 0x200})


# RM's own numbers of chips (ctrl2080mc.h): architecture, implementation
CHIPS = {
  "sm_80": (0x170, 0),
  "sm_86": (0x170, 2),
  "sm_89": (0x190, 2),
  "sm_90": (0x180, 0),
  "sm_100": (0x1A0, 0),
  "sm_120": (0x1B0, 2),
}


@pytest.mark.parametrize("card", sorted(CHIPS))
def test_the_parts_of_a_card(card: str) -> None:
  """Engines and their classes, GPCs and TPCs, numbers of the chip; two SMs a TPC."""
  c = Client(card=card)
  s, copies = c.subdevice, {"sm_80": 10, "sm_86": 5, "sm_89": 5, "sm_90": 5, "sm_100": 20, "sm_120": 8}[card]
  gr, copy = alloc.NV2080_ENGINE_TYPE_GR0, alloc.NV2080_ENGINE_TYPE_COPY0
  engines = [gr, *(copy + k for k in range(copies))]
  asked(c, s, "NV2080_CTRL_CMD_GPU_GET_ENGINES_V2", {}, {"engineCount": copies + 1, "engineList": engines})
  name, room = "NV2080_CTRL_CMD_GPU_GET_ENGINE_CLASSLIST", (ctypes.c_uint32 * 2)()
  for engine in engines:
    kind = c.card.compute_class if engine == gr else c.card.copy_class
    asked(c, s, name, {"engineType": engine, "classList": 0}, {"numClasses": 1})
    asked(c, s, name, {"engineType": engine, "classList": ctypes.addressof(room)}, {"numClasses": 1})
    assert [*room] == [kind, 0]
  for engine in (copy + copies, gr + 1):
    refused(c, s, name, INVALID, engineType=engine)
  name = "NV2080_CTRL_CMD_CE_GET_CAPS_V2"
  byte, mask = control.NV2080_CTRL_CE_CAPS_CE_GRCE
  for k in range(copies):
    asked(c, s, name, {"ceEngineType": copy + k}, {"capsTbl": [mask * (k < 2 and i == byte) for i in range(2)]})
  for engine in (copy + copies, copy - 1, gr):
    refused(c, s, name, UNSUPPORTED, ceEngineType=engine)
  asked(c, s, "NV2080_CTRL_CMD_MC_GET_ARCH_INFO", {}, dict(zip(("architecture", "implementation"), CHIPS[card])))
  gpcs = c.card.gpcs
  asked(c, s, "NV2080_CTRL_CMD_GR_GET_GPC_MASK", {}, {"gpcMask": (1 << gpcs) - 1})
  counts = [c.card.sms // 2 // gpcs + (k < c.card.sms // 2 % gpcs) for k in range(gpcs)]
  for k, n in enumerate(counts):
    asked(c, s, "NV2080_CTRL_CMD_GR_GET_TPC_MASK", {"gpcId": k}, {"tpcMask": (1 << n) - 1})
  refused(c, s, "NV2080_CTRL_CMD_GR_GET_TPC_MASK", INVALID, gpcId=gpcs)
  rows, tpc = [], 0
  for gpc, n in enumerate(counts):
    for local in range(n):
      for sm in range(2):
        rows.append(
          {
            "gpcId": gpc,
            "localTpcId": local,
            "localSmId": sm,
            "globalTpcId": tpc,
            "virtualGpcId": gpc,
            "migratableTpcId": tpc,
          }
        )
      tpc += 1
  wanted = {"numSm": c.card.sms, "numTpc": c.card.sms // 2, "globalSmId": rows}
  asked(c, s, "NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER", {}, wanted)


def test_lists_of_information() -> None:
  """What is asked by index: of graphics, memory and the card; an index that is not modelled reads 0 and is told."""
  c = Client()
  gr = {
    "SM_VERSION": 0x900,
    "MAX_WARPS_PER_SM": 64,
    "MAX_THREADS_PER_WARP": 32,
    "LITTER_NUM_GPCS": 8,
    "LITTER_NUM_TPC_PER_GPC": 9,
    "LITTER_NUM_SM_PER_TPC": 2,
    "SHADER_PIPE_COUNT": 8,
    "SHADER_PIPE_SUB_COUNT": 66,
    "GPU_CORE_COUNT": 132 * 128,
    "THREAD_STACK_SCALING_FACTOR": 1,
    "SM_REG_BANK_COUNT": 4,
    "SM_REG_BANK_REG_COUNT": 16384,
    "MAX_SP_PER_SM": 128,
  }
  rows = (control.NV2080_CTRL_GR_INFO * (len(gr) + 1))()
  for row, name in zip(rows, gr):
    row.index = getattr(control, f"NV2080_CTRL_GR_INFO_INDEX_{name}")
  rows[len(gr)].data = 99
  name, where = "NV2080_CTRL_CMD_GR_GET_INFO", ctypes.addressof(rows)
  asked(c, c.subdevice, name, {"grInfoListSize": len(gr), "grInfoList": where}, {})
  assert {n: r.data for n, r in zip(gr, rows)} == gr and rows[len(gr)].data == 99 and not c.machine.findings
  many = (control.NV2080_CTRL_GR_INFO * 256)()
  for row in many:
    row.index = control.NV2080_CTRL_GR_INFO_INDEX_SM_VERSION
  asked(c, c.subdevice, name, {"grInfoListSize": 256, "grInfoList": ctypes.addressof(many)}, {})
  assert {r.data for r in many} == {0x900}
  for size, place in ((0, where), (257, where), (1, 0)):
    refused(c, c.subdevice, name, INVALID, grInfoListSize=size, grInfoList=place)
  Index = control.NV2080_CTRL_GR_INFO_INDEX_SM_VERSION
  for card, version in (
    ("sm_80", 0x800),
    ("sm_89", 0x809),
    ("sm_100", 0xA00),
    ("sm_120", control.NV2080_CTRL_GR_INFO_SM_VERSION_10_4),
  ):
    one, rows = Client(card=card), (control.NV2080_CTRL_GR_INFO * 1)()
    rows[0].index = Index
    asked(one, one.subdevice, name, {"grInfoListSize": 1, "grInfoList": ctypes.addressof(rows)}, {})
    assert rows[0].data == version
    index = control.NV2080_CTRL_GPU_INFO_INDEX_GPU_SM_VERSION
    asked(
      one,
      one.subdevice,
      "NV2080_CTRL_CMD_GPU_GET_INFO_V2",
      {"gpuInfoListSize": 1, "gpuInfoList": [{"index": index}]},
      {"gpuInfoList": [{"data": version}]},
    )
  c.memory(MIB)
  fb = dict.fromkeys(
    ("RAM_SIZE", "TOTAL_RAM_SIZE", "HEAP_SIZE", "USABLE_RAM_SIZE", "BAR1_SIZE", "MAPPABLE_HEAP_SIZE"), 64 << 10
  )
  fb["HEAP_FREE"] = c.machine.gpus[0].vram_allocator.free_bytes >> 10
  assert 0 < 64 * 1024 - fb["HEAP_FREE"] <= 2048
  given = [{"index": getattr(control, f"NV2080_CTRL_FB_INFO_INDEX_{n}")} for n in fb]
  asked(
    c,
    c.subdevice,
    "NV2080_CTRL_CMD_FB_GET_INFO_V2",
    {"fbInfoListSize": len(fb), "fbInfoList": given},
    {"fbInfoList": [{"data": n} for n in fb.values()]},
  )
  gpu = {"GPU_SMC_MODE": 0, "GPU_DEBUGGING_CAPABILITY": 1}
  given = [{"index": getattr(control, f"NV2080_CTRL_GPU_INFO_INDEX_{n}")} for n in gpu]
  asked(
    c,
    c.subdevice,
    "NV2080_CTRL_CMD_GPU_GET_INFO_V2",
    {"gpuInfoListSize": 2, "gpuInfoList": given},
    {"gpuInfoList": [{"data": n} for n in gpu.values()]},
  )
  assert not c.machine.findings
  asked(
    c,
    c.subdevice,
    "NV2080_CTRL_CMD_GPU_GET_INFO_V2",
    {"gpuInfoListSize": 1, "gpuInfoList": [{"index": 0xFFF}]},
    {"gpuInfoList": [{"data": 0}]},
  )
  assert "NV2080_CTRL_GPU_INFO_INDEX_0xfff is not modelled: it reads 0" in c.machine.findings[-1]


def test_time_goes_on() -> None:
  c = Client()
  first, second = (c.control(c.subdevice, control.NV2080_CTRL_TIMER_GET_TIME_PARAMS()).time_nsec for _ in range(2))
  assert second >= first > 0 and c.machine.gpus[0].timer() >= second


# ---- channels


def test_groups_of_channels() -> None:
  c = Client()
  w = c.channel()
  asked(c, w.group, "NVA06C_CTRL_CMD_SET_TIMESLICE", {"timesliceUs": 1234}, {})
  asked(c, w.group, "NVA06C_CTRL_CMD_GET_TIMESLICE", {}, {"timesliceUs": 1234})
  asked(c, w.group, "NVA06C_CTRL_CMD_GET_INFO", {}, {"tsgID": w.group & 0xFFFF})
  asked(c, w.group, "NVA06C_CTRL_CMD_PREEMPT", {}, {})
  asked(c, w.handle, "NV906F_CTRL_CMD_GET_DEFER_RC_STATE", {}, {"bDeferRCPending": 0})
  for handle, kind in ((w.object, c.card.compute_class), (w.copier, c.card.copy_class)):
    asked(
      c,
      w.handle,
      "NV906F_CTRL_GET_CLASS_ENGINEID",
      {"hObject": handle},
      {
        "classID": kind,
        "engineID": alloc.NV2080_ENGINE_TYPE_GR0,
        "classEngineID": alloc.NV2080_ENGINE_TYPE_GR0 << 16 | kind,
      },
    )
  other = c.channel("copy", engine=alloc.NV2080_ENGINE_TYPE_COPY0 + 3)
  asked(
    c,
    other.handle,
    "NV906F_CTRL_GET_CLASS_ENGINEID",
    {"hObject": other.object},
    {
      "classID": c.card.copy_class,
      "engineID": alloc.NV2080_ENGINE_TYPE_COPY0 + 3,
      "classEngineID": alloc.NV2080_ENGINE_TYPE_COPY0 + 3 << 16 | c.card.copy_class,
    },
  )
  for handle in (other.object, 0xBAD):
    refused(c, w.handle, "NV906F_CTRL_GET_CLASS_ENGINEID", status.NV_ERR_OBJECT_NOT_FOUND, hObject=handle)


def told(w: Work, at: int, value: int, view: memoryview) -> bool:
  """Whether a channel does what it is told now."""
  w.send(0, *release(at, value))
  return bool(w.client.port.wait(lambda: view[0] == value, 0.2))


def test_channels_are_scheduled_and_stopped() -> None:
  """A doorbell counts only while its channel is scheduled; then all that was sent is done."""
  c = Client()
  w, (done, view) = c.channel(), c.both(4096)
  assert told(w, done, 1, view)
  alone, group = "NVA06F_CTRL_CMD_GPFIFO_SCHEDULE", "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE"
  for k, (handle, name, given, again) in enumerate(
    (
      (w.handle, alone, {"bEnable": 0}, alone),
      (w.group, group, {"bEnable": 0}, group),
      (w.handle, "NVA06F_CTRL_CMD_STOP_CHANNEL", {}, alone),
    )
  ):
    asked(c, handle, name, given, {})
    assert not told(w, done + 16, k + 2, view[16:])
    assert "a doorbell before the channel was scheduled is lost" in c.machine.findings[-1]
    asked(c, handle, again, {"bEnable": 1}, {})
    assert told(w, done, k + 2, view) and view[16] == k + 2
  bare = c.alloc(w.group, 0, c.card.channel_class, alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params))
  refused(c, bare, alone, status.NV_ERR_INVALID_STATE, bEnable=1)
  asked(c, bare, alone, {"bEnable": 0}, {})
  refused(c, w.group, group, status.NV_ERR_INVALID_STATE, bEnable=1)


def test_idle_channels() -> None:
  c = Client()
  w, (done, view) = c.channel(), c.both(4096)
  name = "NV0080_CTRL_CMD_FIFO_IDLE_CHANNELS"
  asked(c, c.device, name, {"numChannels": 1, "hChannels": [w.handle, 0xBAD]}, {})
  refused(c, c.device, name, status.NV_ERR_OBJECT_NOT_FOUND, numChannels=2, hChannels=[w.handle, 0xBAD])
  refused(c, c.device, name, status.NV_ERR_INVALID_OBJECT_HANDLE, numChannels=1, hChannels=[c.va])
  w.send(0, *release(done, 1))
  refused(c, c.device, name, status.NV_ERR_TIMEOUT, numChannels=1, hChannels=[w.handle])
  assert c.port.wait(lambda: view[0] == 1, 1.0)
  asked(c, c.device, name, {"numChannels": 1, "hChannels": [w.handle]}, {})


def test_a_channel_is_bound_to_an_engine_of_its_groups_kind() -> None:
  c = Client()
  copy = alloc.NV2080_ENGINE_TYPE_COPY0
  w = c.channel("copy", engine=copy + 3)
  name = "NVA06F_CTRL_CMD_BIND"
  asked(c, w.handle, name, {"engineType": copy + 4}, {})
  told_ = c.control(w.handle, control.NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS(hObject=w.object))
  assert told_.engineID == copy + 4
  refused(c, w.handle, name, INVALID, engineType=alloc.NV2080_ENGINE_TYPE_GR0)
  refused(c, w.handle, name, INVALID, engineType=copy + 10)


def test_tokens_are_written_to_notifiers() -> None:
  """By default to the one that is for it, in a notifier's last eight bytes; where there is no room, nowhere."""
  c = Client()
  w = c.channel()
  index = alloc.NV_CHANNELGPFIFO_NOTIFICATION_TYPE_WORK_SUBMIT_TOKEN
  w.errors[:] = bytes(len(w.errors))
  asked(c, w.handle, "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN", {}, {"workSubmitToken": w.token})
  assert Notification.from_buffer(w.errors, 16 * index).info32 == w.token
  assert sum(map(bool, w.errors)) == sum(map(bool, w.token.to_bytes(4, "little")))
  small = c.memory(4096, system=True)
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.hObjectError = small
  other = c.alloc(w.group, 0, c.card.channel_class, p)
  asked(c, other, "NVC36F_CTRL_CMD_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX", {"index": 255}, {})
  token = c.control(other, control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS()).workSubmitToken
  view = c.port.memory(c.cpu(small, 4096, system=True), 4096)
  assert Notification.from_buffer(view, 16 * 255).info32 == token != w.token and not any(view[:4080])


# ---- errors


def debugger(c: Client, w: Work) -> int:
  return c.alloc(
    c.device, 0, alloc.GT200_DEBUGGER, alloc.NV83DE_ALLOC_PARAMETERS(hAppClient=c.root, hClass3dObject=w.object)
  )


def test_errors_of_channels() -> None:
  """Before one, after a reset by the client, after a page fault: what channel and debugger tell."""
  c = Client()
  w, other = c.channel(), c.channel("copy")
  at = debugger(c, w)
  nothing: tuple[tuple[int, str, Values], ...] = (
    (w.handle, "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO", {}),
    (at, "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO", {}),
    (at, "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES", {"hTargetChannel": 0}),
    (at, "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES", {"hTargetChannel": w.handle}),
    (at, "NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES", {"hTargetChannel": 0}),
  )
  for handle, name, given in nothing:
    asked(c, handle, name, given, {})
  asked(c, c.subdevice, "NV2080_CTRL_CMD_RC_GET_ERROR_COUNT", {}, {"errorCount": 0})
  asked(c, other.handle, "NV906F_CTRL_CMD_RESET_CHANNEL", {}, {})
  assert (
    "the client has reset its channel" in str(other.client.machine.channels[1].error)
    and other.notifier.status == 0xFFFF
  )
  asked(c, other.handle, "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO", {}, {})
  asked(c, at, "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO", {}, {})
  asked(
    c,
    at,
    "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES",
    {"hTargetChannel": other.handle},
    {"smErrorStateArray": [{"hwwGlobalEsr": 1, "hwwEsrAddr": 0}]},
  )
  w.send(0, *release(0x12_7700_0000, 1))
  c.port.wait(lambda: w.notifier.status != 0, 1.0)
  asked(
    c,
    w.handle,
    "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO",
    {},
    {"addrHi": 0x12, "addrLo": 0x7700_0000, "faultString": b"write: not mapped"},
  )
  asked(
    c,
    at,
    "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES",
    {"hTargetChannel": w.handle},
    {"smErrorStateArray": [{"hwwGlobalEsr": 1, "hwwEsrAddr": 0x12_7700_0000}], "mmuFault": {"valid": 1}},
  )
  refused(c, at, "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES", status.NV_ERR_OBJECT_NOT_FOUND, hTargetChannel=0xBAD)
  asked(
    c,
    c.subdevice,
    "NV2080_CTRL_CMD_RC_GET_ERROR_COUNT",
    {},
    {"errorCount": sum("Xid" in x for x in c.machine.kernel_log)},
  )
  assert sum("Xid" in x for x in c.machine.kernel_log) == 2


def test_the_program_counter_of_a_fault() -> None:
  c = Client()
  w = c.channel()
  at, channel = debugger(c, w), c.machine.channels[0]
  w.send(0, *release(0x12_7700_0000, 1))
  c.port.wait(lambda: w.notifier.status != 0, 1.0)
  channel.fault_pc = 0x5_0000_1230
  asked(
    c,
    w.handle,
    "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO",
    {},
    {"addrHi": 0x12, "addrLo": 0x7700_0000, "faultString": b"write: not mapped", "shaderProgramVA": [0x5_0000_1230]},
  )
  row = {"hwwGlobalEsr": 1, "hwwEsrAddr": 0x12_7700_0000}
  wanted = {
    "smErrorStateArray": [{**row, "hwwWarpEsrPc64": 0x5_0000_1230, "hwwWarpEsrPc": 0x1230}],
    "mmuFault": {"valid": 1},
  }
  for handle in (0, w.handle):
    asked(c, at, "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES", {"hTargetChannel": handle}, wanted)
  asked(
    c,
    at,
    "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO",
    {},
    {"count": 1, "mmuFaultInfoList": [{"faultAddress": 0x12_7700_0000, "accessType": 1}]},
  )
  asked(c, at, "NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES", {"hTargetChannel": w.handle}, {})
  assert channel.fault_pc is None
  asked(
    c,
    at,
    "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES",
    {"hTargetChannel": 0},
    {"smErrorStateArray": [row], "mmuFault": {"valid": 1}},
  )


# ---- all of them

FAMILIES = {"NV0000": "root", "NV0080": "device", "NV2080": "subdevice"}


def test_parameters_are_checked_before_a_command() -> None:
  """The object's class, the size of the parameters, where they are."""
  c = Client()
  assert {n[:6] for n in Controls.table} == {*FAMILIES, "NV83DE", "NV906F", "NVA06F", "NVA06C", "NVC36F"}
  for name in Controls.table:
    command = getattr(control, name)
    struct_ = control.CONTROLS[command].struct
    if name[:6] not in FAMILIES or struct_ is None:
      continue
    right = getattr(c, FAMILIES[name[:6]])
    for handle in {c.root, c.device, c.subdevice, c.va} - {right}:
      with pytest.raises(Status) as caught:
        c.control(handle, struct_(), command)
      assert caught.value.code == UNSUPPORTED, name
    size, p = ctypes.sizeof(struct_), struct_()

    def call(where: int, count: int, right: int = right, command: int = command) -> int:
      from tinyhw.autogen import nv_rm as rm

      given = rm.NVOS54_PARAMETERS(hClient=c.root, hObject=right, cmd=command, params=where, paramsSize=count)
      try:
        c.call(given)
      except Status as error:
        return error.code
      return 0

    for count in (0, size - 1, size + 1):
      assert call(ctypes.addressof(p), count) == INVALID, name
    assert call(0, size) == INVALID, name
    if name not in {n for n in Controls.table if Controls.table.why_ignored(n)}:
      assert call(8, size) == status.NV_ERR_INVALID_ADDRESS, name
