"""RM and UVM by their calls: objects, handles, memory, mappings, channels; what is refused, and with which status."""
from __future__ import annotations

import ctypes
import mmap
import struct
import uuid
from typing import Any

import pytest

from tests.mock.nv.bench import release
from tests.mock.nv.client import MIB, REQUESTS, Client, Status, Work, upload
from tests.mock.nv.test_compute import ADD
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.autogen.nv_rm_chips import RESOURCES
from tinyhw.core.errors import InvalidArgument
from tinyhw.mock.nv.card import CARDS
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NOTIFY, NvPort
from tinyhw.wire.gpfifo import Notification
from tinyhw.wire.rm import flags as bits_of


def refused(code: int, call: Any, *given: Any, **named: Any) -> None:
  with pytest.raises(Status) as caught: call(*given, **named)
  assert caught.value.code == code, f"{caught.value}, not {status.STATUS[code][0]}"


@pytest.mark.parametrize("managed", [True, False])
@pytest.mark.parametrize("card", sorted(CARDS))
def test_a_kernel_from_open_to_result(card: str, managed: bool) -> None:
  c = Client(card=card, managed=managed)
  w = c.channel()
  data, view = c.both(4096)
  bank, bank_view = c.both(4096)
  struct.pack_into("<QI", bank_view, 0x210, data, 5)
  done, done_view = c.both(4096)
  w.launch(upload(c, ADD, "add"), bank, 0x220, (2, 1, 1), (32, 1, 1), c.both(4096))
  w.send(0, *release(done, 1))
  assert c.port.wait(lambda: done_view[0] == 1, 1.0)
  assert struct.unpack_from("<64I", view) == (5,) * 64
  assert w.notifier.status == 0 and not c.machine.kernel_log
  c.port.end()
  assert not c.machine.rm.clients and not c.machine.channels
  assert c.machine.gpus[0].vram_allocator.free_bytes == 64 * MIB == c.machine.system_allocator.free_bytes


def test_objects_have_parents_and_handles() -> None:
  c = Client()
  group = c.group(alloc.NV2080_ENGINE_TYPE_GR0)
  refused(status.NV_ERR_INVALID_CLASS, c.alloc, c.device, 0, 0x12345)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.alloc, 0xBAD, 0, alloc.NV20_SUBDEVICE_0)
  refused(status.NV_ERR_INVALID_OBJECT_PARENT, c.alloc, c.subdevice, 0, alloc.KEPLER_CHANNEL_GROUP_A,
          alloc.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS())
  refused(status.NV_ERR_NOT_SUPPORTED, c.alloc, c.channel().handle, 0, 0xCDC0)  # a class of Blackwell
  refused(status.NV_ERR_INVALID_ARGUMENT, c.alloc, c.device, 0, alloc.KEPLER_CHANNEL_GROUP_A)
  refused(status.NV_ERR_INSERT_DUPLICATE_NAME, c.alloc, c.root, c.device, alloc.NV01_DEVICE_0)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, c.alloc, c.device, c.root, alloc.NV20_SUBDEVICE_0)
  refused(status.NV_ERR_INVALID_DEVICE, c.alloc, c.root, 0, alloc.NV01_DEVICE_0,
          alloc.NV0080_ALLOC_PARAMETERS(deviceId=3))
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.free, 0xBAD)
  wrong = rm.NVOS64_PARAMETERS(hRoot=c.root, hObjectParent=c.device, hClass=alloc.FERMI_VASPACE_A, pAllocParms=8,
                               paramsSize=ctypes.sizeof(alloc.NV_VASPACE_ALLOCATION_PARAMETERS))
  refused(status.NV_ERR_INVALID_ADDRESS, c.call, wrong)
  wrong = rm.NVOS64_PARAMETERS(hRoot=c.root, hObjectParent=c.device, hClass=alloc.FERMI_VASPACE_A, pAllocParms=8,
                               paramsSize=47)
  refused(status.NV_ERR_INVALID_ARGUMENT, c.call, wrong)
  other = Client(c.machine)
  refused(status.NV_ERR_INVALID_CLIENT, c.call, rm.NVOS00_PARAMETERS(hRoot=other.root, hObjectOld=other.device))
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, c.call, rm.NVOS00_PARAMETERS(hRoot=5, hObjectOld=other.device))
  with pytest.raises(OSError, match="nvidiactl"): c.call(rm.NVOS00_PARAMETERS(hRoot=c.root, hObjectOld=group), c.gpu_fd)
  with pytest.raises(OSError, match="no RM call"): c.port.ioctl(c.ctl, 0xC00446FF, ctypes.c_uint32())


def test_freeing_takes_all_below() -> None:
  c = Client()
  w = c.channel()
  assert len(c.machine.channels) == 1
  c.free(w.group)
  assert not c.machine.channels
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.free, w.handle)
  w = c.channel()
  c.free(w.userd_memory)  # what a channel cannot be without takes it along
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.free, w.handle)
  w = c.channel()
  c.free(c.root)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, c.free, c.device)
  assert not c.machine.channels and not c.machine.rm.clients


def test_memory_is_mapped_and_checked() -> None:
  for managed in (True, False):
    c = Client(managed=managed)
    refused(status.NV_ERR_NO_MEMORY, c.memory, 1 << 30)
    refused(status.NV_ERR_INVALID_ARGUMENT, c.memory, 0)
    memory = c.memory(100)
    at = c.map(memory, 4096)
    va = next(n.data for n in c.machine.rm.clients[c.root].objects.values() if n.handle == c.va)
    va.space.store(at, 4, 7)
    cpu = c.port.memory(c.cpu(memory, 4096), 4096)
    assert cpu[0] == 7
    c.free(memory)
    assert (va.space.find(at) is not None) == managed  # UVM holds its own reference
    assert cpu[0] == 7 and c.machine.gpus[0].vram_allocator.free_bytes < 64 * MIB


def test_memory_of_the_client_becomes_an_object() -> None:
  c = Client()
  at = c.port.mmap(-1, 8192)
  def pages(address: int, size: int) -> int:
    return c.alloc(c.device, 0, alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
                   alloc.NV_OS_DESC_MEMORY_ALLOCATION_PARAMS(descriptor=address, limit=size - 1))
  there = c.map(pages(at, 8192), 8192)
  va = next(n.data for n in c.machine.rm.clients[c.root].objects.values() if n.handle == c.va)
  va.space.store(there + 4096, 4, 7)
  assert c.port.memory(at, 8192)[4096] == 7
  refused(status.NV_ERR_NOT_SUPPORTED, pages, at + 1, 4096)
  refused(status.NV_ERR_INVALID_ADDRESS, pages, at, 1 << 30)
  kept = mmap.mmap(-1, 4096)
  address = ctypes.addressof(ctypes.c_char.from_buffer(kept))
  assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096), mmap.PROT_READ) == 0
  refused(status.NV_ERR_INVALID_ADDRESS, pages, address, 4096)


def test_places_are_not_the_clients_to_choose() -> None:
  c = Client()
  p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, size=4096, offset=1 << 16,
                                        flags=alloc.NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE)
  refused(status.NV_ERR_NOT_SUPPORTED, c.alloc, c.device, 0, alloc.NV01_MEMORY_LOCAL_USER, p)


def test_a_gpu_has_one_uuid_by_whichever_name() -> None:
  c = Client(card="sm_90,sm_80")
  for gpu in c.machine.gpus:
    text, binary = (c.control(c.root, control.NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS(gpuId=gpu.gpu_id, flags=f))
                    for f in (control.NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID_FLAGS_FORMAT_ASCII,
                              control.NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID_FLAGS_FORMAT_BINARY))
    raw = bytes(binary.gpuUuid[:binary.uuidStrLen])
    assert bytes(text.gpuUuid[:text.uuidStrLen]).decode() == f"GPU-{uuid.UUID(bytes=raw)}\0"
    assert (raw == c.uuid) == (gpu.index == 0) and len(raw) == 16


def test_pageable_memory_is_asked_about_registered_gpus() -> None:
  c = Client(card="sm_90,sm_80")
  assert not c.uvm(uvm.UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS(gpu_uuid=c.named())).pageableMemAccess
  other = Client(c.machine, gpu=1)
  refused(status.NV_ERR_INVALID_DEVICE, c.uvm, uvm.UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS(gpu_uuid=other.named()))


def test_rm_maps_into_ranges() -> None:
  c = Client(managed=False)
  memory = c.memory(1 << 20)
  whole = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, size=1 << 20, hVASpace=c.va,
                                            flags=alloc.NVOS32_ALLOC_FLAGS_VIRTUAL)
  target = c.alloc(c.device, 0, alloc.NV50_MEMORY_VIRTUAL, whole)

  def into(dma: int, **more: int) -> int:
    given = {"hClient": c.root, "hDevice": c.device, "hDma": dma, "hMemory": memory, "length": 4096} | more
    return int(c.call(rm.NVOS46_PARAMETERS(**given)).dmaOffset)
  assert into(target) == whole.offset
  refused(status.NV_ERR_STATE_IN_USE, into, target)
  refused(status.NV_ERR_INVALID_ARGUMENT, into, c.va, length=2 << 20)
  refused(status.NV_ERR_INVALID_ARGUMENT, into, c.va, offset=5)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, into, c.device)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, into, c.va, hMemory=c.va)
  one, two = into(c.va), into(c.va)
  assert one != two
  c.call(rm.NVOS47_PARAMETERS(hClient=c.root, hDevice=c.device, hDma=c.va, hMemory=memory, dmaOffset=one))
  refused(status.NV_ERR_INVALID_OFFSET, c.call, rm.NVOS47_PARAMETERS(hClient=c.root, hDma=c.va, dmaOffset=one))
  managed = Client(c.machine)
  refused(status.NV_ERR_INVALID_OPERATION, managed.call, rm.NVOS46_PARAMETERS(
    hClient=managed.root, hDma=managed.va, hMemory=managed.memory(4096), length=4096))


def test_mapping_for_the_client() -> None:
  c = Client()
  memory, system = c.memory(65536), c.memory(4096, system=True)

  def ask(fd: int, handle: int, length: int = 4096, offset: int = 0, flags: int = 0) -> None:
    p = rm.nv_ioctl_nvos33_parameters_with_fd(fd=fd)
    p.params.hClient, p.params.hDevice, p.params.hMemory = c.root, c.device, handle
    p.params.length, p.params.offset, p.params.flags = length, offset, flags
    c.call(p)
  gpu, ctl = c.port.open("/dev/nvidia0"), c.port.open("/dev/nvidiactl")
  with pytest.raises(OSError, match="nothing was mapped"): c.port.mmap(gpu, 4096)
  refused(status.NV_ERR_INVALID_ARGUMENT, ask, ctl, memory)
  refused(status.NV_ERR_INVALID_ARGUMENT, ask, gpu, system)
  refused(status.NV_ERR_INVALID_ARGUMENT, ask, 999, memory)
  refused(status.NV_ERR_INVALID_LIMIT, ask, gpu, memory, 65536, 4096)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, ask, gpu, c.va)
  ask(gpu, memory, flags=rm.NVOS33_FLAGS_ACCESS_READ_ONLY)
  refused(status.NV_ERR_STATE_IN_USE, ask, gpu, memory)
  with pytest.raises(OSError, match="read-only"): c.port.mmap(gpu, 4096)
  with pytest.raises(OSError, match="0x2000 bytes"): c.port.mmap(gpu, 8192)
  with pytest.raises(OSError, match="offset"): c.port.mmap(gpu, 4096, 4096)


def test_channels_are_checked() -> None:
  c = Client()
  w = c.channel()

  def make(**more: Any) -> int:
    p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
    for name, value in more.items():
      if name == "userd": p.hUserdMemory[0] = value
      elif name == "place": p.userdOffset[0] = value
      else: setattr(p, name, value)
    return c.alloc(w.group, 0, c.card.channel_class, p)
  assert make() != w.handle
  refused(status.NV_ERR_INVALID_ARGUMENT, make, gpFifoEntries=63)
  refused(status.NV_ERR_INVALID_ARGUMENT, make, gpFifoEntries=0)
  refused(status.NV_ERR_INVALID_ARGUMENT, make, gpFifoOffset=4)
  refused(status.NV_ERR_INVALID_ARGUMENT, make, engineType=alloc.NV2080_ENGINE_TYPE_COPY0)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, make, userd=0)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, make, userd=0xBAD)
  refused(status.NV_ERR_INVALID_OFFSET, make, place=8)
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, make, hObjectError=c.va)
  refused(status.NV_ERR_INVALID_ARGUMENT, c.group, alloc.NV2080_ENGINE_TYPE_COPY0 + 17)
  copier = c.channel("copy", engine=alloc.NV2080_ENGINE_TYPE_COPY0 + 3)
  refused(status.NV_ERR_INVALID_CLASS, c.alloc, copier.handle, 0, c.card.compute_class)
  bare = make()
  refused(status.NV_ERR_INVALID_STATE, c.control, bare, control.NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS(bEnable=1),
          control.NVA06F_CTRL_CMD_GPFIFO_SCHEDULE)
  for n in range(2):  # each in a group has a number
    p = alloc.NV_CTXSHARE_ALLOCATION_PARAMETERS(hVASpace=c.va, subctxId=9)
    share = c.alloc(w.group, 0, alloc.FERMI_CONTEXT_SHARE_A, p)
    assert p.subctxId == n and make(hContextShare=share)
  refused(status.NV_ERR_INVALID_ARGUMENT, make, hContextShare=share, hVASpace=c.va)


def test_an_error_is_told_and_others_live() -> None:
  c = Client()
  w, other = c.channel(), c.channel("copy")
  done, view = c.both(4096)
  w.send(0, *release(0x7700_0000, 1))
  other.send(0, *release(done, 4))
  assert c.port.wait(lambda: view[0] == 4, 1.0)
  c.port.wait(lambda: w.notifier.status != 0, 1.0)
  assert (w.notifier.info32, w.notifier.status) == (status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT, 0xFFFF)
  assert other.notifier.status == 0
  told = c.control(w.handle, control.NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS())
  assert told.addrHi << 32 | told.addrLo == 0x7700_0000
  debugger = c.alloc(c.device, 0, alloc.GT200_DEBUGGER, alloc.NV83DE_ALLOC_PARAMETERS(hAppClient=c.root,
                                                                                      hClass3dObject=w.object))
  fault = c.control(debugger, control.NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS())
  assert fault.count == 1 and fault.mmuFaultInfoList[0].faultAddress == 0x7700_0000
  states = c.control(debugger, control.NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS(hTargetChannel=w.handle))
  first, second = states.smErrorStateArray[:2]
  assert states.mmuFault.valid and (first.hwwGlobalEsr, first.hwwEsrAddr) == (1, 0x7700_0000)
  assert (second.hwwGlobalEsr, second.hwwEsrAddr) == (0, 0)
  assert b"Xid (PCI:0000:01:00): 31" in c.port.read("/dev/kmsg")


def test_a_fault_in_a_kernel_says_where() -> None:
  c = Client()
  w = c.channel()
  bank, view = c.both(4096)
  struct.pack_into("<QI", view, 0x210, 0x66_0000_0000, 5)
  program = upload(c, ADD, "add")
  w.launch(program, bank, 0x220, (1, 1, 1), (32, 1, 1), c.both(4096))
  assert not c.port.wait(lambda: False, 0.5)
  told = c.control(w.handle, control.NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS())
  assert told.addrHi == 0x66 and told.faultString == b"read: not mapped"
  at = told.shaderProgramVA[0]
  va = next(n.data for n in c.machine.rm.clients[c.root].objects.values() if n.handle == c.va)
  assert va.space.read(at, 27) == b"ld.global.u32 %r4, [%rd3];\n"
  error = c.machine.channels[0].error
  assert "PTX:9" in str(error) and "in kernel add" in str(error)


def test_what_rm_says_of_a_card() -> None:
  for name, card in CARDS.items():
    c = Client(card=name)
    classes = c.control(c.device, control.NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS())
    found = list(classes.classList[:classes.numClasses])
    assert {card.compute_class, card.copy_class, card.channel_class, alloc.NV01_DEVICE_0} <= set(found)
    assert len(set(found)) == len(found)
    string = c.control(c.subdevice, control.NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS())
    assert bytes(string.gpuNameString.ascii).rstrip(b"\0").decode() == card.title
    infos = (control.NV2080_CTRL_GR_INFO * 2)()
    infos[0].index = control.NV2080_CTRL_GR_INFO_INDEX_SM_VERSION
    infos[1].index = control.NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC
    c.control(c.subdevice, control.NV2080_CTRL_GR_GET_INFO_PARAMS(grInfoListSize=2,
                                                                 grInfoList=ctypes.addressof(infos)))
    version = control.NV2080_CTRL_GR_INFO_SM_VERSION_10_4 if name == "sm_120" else int(name[3:-1]) << 8 | int(name[-1])
    assert infos[0].data == version and infos[1].data == 2
    masks = c.control(c.subdevice, control.NV2080_CTRL_GR_GET_GPC_MASK_PARAMS()).gpcMask
    tpcs = [c.control(c.subdevice, control.NV2080_CTRL_GR_GET_TPC_MASK_PARAMS(gpcId=g)).tpcMask.bit_count()
            for g in range(masks.bit_count())]
    assert sum(tpcs) * 2 == card.sms
    order = c.control(c.subdevice, control.NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS())
    assert order.numSm == 2 * order.numTpc == card.sms
    rows = order.globalSmId[:card.sms]
    assert [(r.globalTpcId, r.localSmId) for r in rows] == [(i // 2, i % 2) for i in range(card.sms)]
    assert [sum(r.gpcId == g for r in rows) for g in range(len(tpcs))] == [2 * n for n in tpcs]
    assert c.control(c.subdevice, control.NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS()).architecture
    ids = c.control(c.root, control.NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS())
    assert ids.gpuIds[0] == 0x100 and ids.gpuIds[1] == control.NV0000_CTRL_GPU_INVALID_ID
    refused(status.NV_ERR_NOT_SUPPORTED, c.control, c.device, control.NV2080_CTRL_GR_GET_GPC_MASK_PARAMS())
    refused(status.NV_ERR_NOT_SUPPORTED, c.control, c.subdevice, None, 0x20800FFF)
    refused(status.NV_ERR_INVALID_ARGUMENT, c.control, c.subdevice, ctypes.c_uint32(),
            control.NV2080_CTRL_CMD_GR_GET_GPC_MASK)
    assert c.port.read("/proc/driver/nvidia/version").startswith(b"NVRM version") and len(c.port.listdir("/dev")) == 4
    assert c.port.listdir("/proc/driver/nvidia/gpus") == ["0000:01:00.0"]
    assert card.title.encode() in c.port.read("/proc/driver/nvidia/gpus/0000:01:00.0/information")


def test_a_gpus_name_is_text_or_bytes() -> None:
  c = Client()
  Gid = control.NV2080_CTRL_GPU_GET_GID_INFO_PARAMS
  asked = Gid(data=(ctypes.c_uint8 * len(Gid().data))(*[0xEE] * len(Gid().data)))  # what was there before goes
  text = c.control(c.subdevice, asked)
  raw = bytes(text.data)
  assert raw[:text.length] == f"GPU-{uuid.UUID(bytes=c.uuid)}".encode() + b"\0" and not any(raw[text.length:])
  asked.flags = control.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY
  binary = c.control(c.subdevice, asked)
  assert binary.length == 16 and bytes(binary.data) == c.uuid.ljust(len(raw), b"\0")


def test_where_memory_is() -> None:
  c = Client()
  Place = control.NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS
  for handle, name in ((c.memory(4096), "VIDMEM"), (c.memory(4096, system=True), "SYSMEM"),
                       (c.private(4096)[1], "SYSMEM")):
    told = c.control(c.root, Place(hObject=handle, mapFlags=0), control.NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE)
    assert told.addrSpaceType == getattr(control, f"NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE_{name}")
  refused(status.NV_ERR_INVALID_OBJECT_HANDLE, c.control, c.root, Place(hObject=c.va))
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.control, c.root, Place(hObject=0xBAD))


def test_a_channels_token_is_told_where_it_is_asked_for() -> None:
  c = Client()
  w = c.channel()
  Index = control.NVC36F_CTRL_GPFIFO_SET_WORK_SUBMIT_TOKEN_NOTIF_INDEX_PARAMS
  for index in (2, 255):
    c.control(w.handle, Index(index=index))
    c.control(w.handle, control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS())
    told = Notification.from_buffer(w.errors, 16 * index)
    assert told.info32 == w.token
  refused(status.NV_ERR_OUT_OF_RANGE, c.control, w.handle, Index(index=256))
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.hObjectError = 0
  silent = c.alloc(w.group, 0, c.card.channel_class, p)
  refused(status.NV_ERR_INVALID_STATE, c.control, silent, Index(index=1))


def test_commands_without_an_effect_are_taken_and_reported() -> None:
  c = Client()
  w = c.channel()
  debugger = c.alloc(c.device, 0, alloc.GT200_DEBUGGER,
                     alloc.NV83DE_ALLOC_PARAMETERS(hAppClient=c.root, hClass3dObject=w.object))
  for handle, name in ((c.subdevice, "NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION"),
                       (debugger, "NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK"),
                       (debugger, "NV83DE_CTRL_CMD_SM_DEBUG_MODE_ENABLE"),
                       (debugger, "NV83DE_CTRL_CMD_SM_DEBUG_MODE_DISABLE"),
                       (w.handle, "NVA06F_CTRL_CMD_SET_ERROR_NOTIFIER"),
                       (c.subdevice, "NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS")):
    command = getattr(control, name)
    struct_ = control.CONTROLS[command].struct
    for _ in range(2): c.control(handle, None if struct_ is None else struct_(), command)
    assert any(f"{name} x2: " in line for line in c.machine.report()), c.machine.report()


def test_a_cards_file_joins_a_control_file_once() -> None:
  c = Client()
  fd, other = c.port.open("/dev/nvidia0"), c.port.open("/dev/nvidiactl")
  for wrong in (999, fd, c.gpu_fd, c.uvm_fd):
    with pytest.raises(OSError, match=f"{wrong} is no nvidiactl file"):
      c.port.ioctl(fd, REQUESTS[rm.nv_ioctl_register_fd_t], rm.nv_ioctl_register_fd_t(ctl_fd=wrong))
  c.port.ioctl(fd, REQUESTS[rm.nv_ioctl_register_fd_t], rm.nv_ioctl_register_fd_t(ctl_fd=other))
  with pytest.raises(OSError, match="registered already"):
    c.port.ioctl(fd, REQUESTS[rm.nv_ioctl_register_fd_t], rm.nv_ioctl_register_fd_t(ctl_fd=other))


def test_uvm_is_checked() -> None:
  c = Client()
  port = c.port
  early = port.open("/dev/nvidia-uvm")
  p = uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=4096, length=4096)
  port.ioctl(early, uvm.UVM_CREATE_EXTERNAL_RANGE, p)
  assert p.rmStatus == status.NV_ERR_ILLEGAL_ACTION
  Range = uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS
  for base, length in ((1, 4096), (0, 4096), (4096, 0), (4096, 5)):
    refused(status.NV_ERR_INVALID_ADDRESS, c.uvm, Range(base=base, length=length))
  c.uvm(Range(base=1 << 32, length=1 << 16))
  refused(status.NV_ERR_UVM_ADDRESS_IN_USE, c.uvm, Range(base=(1 << 32) + 4096, length=4096))
  memory = c.memory(65536)
  refused(status.NV_ERR_INVALID_ADDRESS, c.map_range, memory, 4096, 1 << 33)
  refused(status.NV_ERR_INVALID_ADDRESS, c.map_range, memory, 1 << 17, 1 << 32)
  refused(status.NV_ERR_INVALID_OFFSET, c.map_range, memory, 65536, 1 << 32, 4096)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.map_range, 0xBAD, 4096, 1 << 32)
  refused(status.NV_ERR_INVALID_ARGUMENT, c.map_range, memory, 4096, 1 << 32, 0, c.uvm_fd)
  c.map_range(memory, 65536, 1 << 32)
  c.map_range(memory, 65536, 1 << 32)  # the new mapping takes the place of the old one
  c.uvm(uvm.UVM_UNMAP_EXTERNAL_PARAMS(base=1 << 32, length=65536, gpuUuid=c.named()))
  c.uvm(uvm.UVM_FREE_PARAMS(base=1 << 32, length=65536))
  refused(status.NV_ERR_INVALID_ADDRESS, c.uvm, uvm.UVM_FREE_PARAMS(base=1 << 32, length=65536))
  again = uvm.UVM_REGISTER_GPU_VASPACE_PARAMS(gpuUuid=c.named(), rmCtrlFd=c.ctl, hClient=c.root, hVaSpace=c.va)
  refused(status.NV_ERR_INVALID_DEVICE, c.uvm, again)
  refused(status.NV_ERR_INVALID_DEVICE, c.uvm, uvm.UVM_REGISTER_GPU_PARAMS())
  refused(status.NV_ERR_NOT_SUPPORTED, c.uvm, uvm.UVM_MIGRATE_PARAMS())
  (told,) = [e.name for e in c.machine.trace if (e.source, e.kind) == ("uvm", "refused") and "UVM_MIGRATE" in e.name]
  assert "NV_ERR_NOT_SUPPORTED" in told
  with pytest.raises(OSError, match="no UVM call"): port.ioctl(c.uvm_fd, 0xFFF, p)
  c.free(c.va)
  refused(status.NV_ERR_INVALID_DEVICE, c.uvm, uvm.UVM_UNREGISTER_GPU_VASPACE_PARAMS(gpuUuid=c.named()))
  assert any("UVM_MIGRATE is not modelled" in line for line in c.machine.report())


def test_pages_of_the_client() -> None:
  c = Client()
  at, memory = c.private(8192)
  address = c.map(memory, 8192)
  w, (done, view) = c.channel("copy"), c.both(4096)
  w.send(0, *release(address + 8, 77), *release(done, 1))
  assert c.port.wait(lambda: view[0] == 1, 1.0) and c.port.memory(at, 8192)[8] == 77
  c.port.munmap(at, 8192)
  w.send(0, *release(address + 8, 78))
  c.port.wait(lambda: w.notifier.status != 0, 1.0)
  assert w.notifier.info32 == status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT
  refused(status.NV_ERR_INVALID_ADDRESS, c.call, c.pages(at, 8192, 0x77), c.gpu_fd)
  at = c.port.mmap(-1, 8192)
  refused(status.NV_ERR_INSERT_DUPLICATE_NAME, c.call, c.pages(at, 8192), c.gpu_fd)
  refused(status.NV_ERR_NOT_SUPPORTED, c.call, c.pages(at + 1, 4096, 0x77), c.gpu_fd)
  refused(status.NV_ERR_INVALID_LIMIT, c.call, c.pages(at, 0, 0x77), c.gpu_fd)
  for wrong in ({"NVOS02_FLAGS_MAPPING": 0}, {"NVOS02_FLAGS_LOCATION": rm.NVOS02_FLAGS_LOCATION_VIDMEM},
                {"NVOS02_FLAGS_COHERENCY": rm.NVOS02_FLAGS_COHERENCY_WRITE_COMBINE}):
    p = c.pages(at, 8192, 0x77)
    p.params.flags = bits_of(**{"NVOS02_FLAGS_MAPPING": rm.NVOS02_FLAGS_MAPPING_NO_MAP, **wrong})
    refused(status.NV_ERR_INVALID_FLAGS, c.call, p, c.gpu_fd)
  p = c.pages(at, 8192, 0)  # RM chooses a handle, and does not say which
  c.call(p, c.gpu_fd)
  assert p.params.hObjectNew == 0


def test_two_gpus_and_peers() -> None:
  machine = NvMachine("sm_90,sm_90", vram=64 * MIB, system_memory=64 * MIB)
  one = Client(machine)
  two = uvm.nv_uuid((ctypes.c_uint8 * 16)(*Client(machine, gpu=1).uuid))
  device = one.alloc(one.root, 0x500, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=1))
  one.alloc(device, 0x501, alloc.NV20_SUBDEVICE_0, alloc.NV2080_ALLOC_PARAMETERS())
  far = one.alloc(device, 0, alloc.NV01_MEMORY_LOCAL_USER, alloc.NV_MEMORY_ALLOCATION_PARAMS(size=65536))
  refused(status.NV_ERR_INVALID_DEVICE, one.map, far, 65536)
  one.uvm(uvm.UVM_REGISTER_GPU_PARAMS(gpu_uuid=two, rmCtrlFd=one.ctl, hClient=one.root))
  one.uvm(uvm.UVM_ENABLE_PEER_ACCESS_PARAMS(gpuUuidA=one.named(), gpuUuidB=two))
  address = one.map(far, 65536)
  w, (done, view) = one.channel("copy"), one.both(4096)
  w.send(0, *release(address, 9), *release(done, 1))
  assert one.port.wait(lambda: view[0] == 1, 1.0) and 9 in machine.gpus[1].vram.u8[:1 << 20]
  one.uvm(uvm.UVM_DISABLE_PEER_ACCESS_PARAMS(gpuUuidA=one.named(), gpuUuidB=two))
  w.send(0, *release(address, 9))
  one.port.wait(lambda: w.notifier.status != 0, 1.0)
  assert w.notifier.info32 == status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT


def test_doorbells_ring_one_register() -> None:
  c = Client()
  w, (done, view) = c.channel(), c.both(4096)
  c.port.doorbell(w.door, 5, 4)
  assert "a store of 0x5 to 0x0 of the usermode page" in c.machine.findings[-1]
  words = w.client.port.memory(w.door, 4096)
  real, c.port.doorbell = c.port.doorbell, lambda *given: None  # type: ignore[method-assign]
  w.send(0, *release(done, 1))
  c.port.doorbell = real  # type: ignore[method-assign]
  words[NOTIFY:NOTIFY + 4] = w.token.to_bytes(4, "little")  # a client that stores by itself
  assert c.port.wait(lambda: view[0] == 1, 1.0)
  c.port.doorbell = lambda at, token, _: real(at, 0xAB << 32 | token, 8)  # type: ignore[method-assign]
  w.send(0, *release(done, 2))  # the lower half counts
  c.port.doorbell = real  # type: ignore[method-assign]
  assert c.port.wait(lambda: view[0] == 2, 1.0)
  for at, size in ((0, 1), (0, 2), (0, 3), (0, 9), (0, 16), (2, 4), (1, 8), (4, 8)):
    with pytest.raises(InvalidArgument, match=f"a doorbell store of {size} bytes"):
      c.port.doorbell(w.door + NOTIFY + at, w.token, size)


def test_other_calls() -> None:
  c = Client()
  version = rm.nv_ioctl_rm_api_version_t(cmd=rm.NV_RM_API_VERSION_CMD_QUERY)
  c.port.ioctl(c.ctl, next(n for n, r in rm.IOCTLS.items() if r.name == "NV_ESC_CHECK_VERSION_STR"), version)
  assert version.versionString == b"580.142" and version.reply == rm.NV_RM_API_VERSION_REPLY_RECOGNIZED
  strict = rm.nv_ioctl_rm_api_version_t(cmd=rm.NV_RM_API_VERSION_CMD_STRICT, versionString=b"535.1")
  with pytest.raises(OSError, match="535"): c.port.ioctl(c.ctl, 0xC04846D2, strict)
  cards = (rm.nv_ioctl_card_info_t * 2)()
  c.port.ioctl(c.ctl, 0xC00046C8 | ctypes.sizeof(cards) << 16, cards)
  assert [r.valid for r in cards] == [1, 0] and cards[0].pci_info.device_id == 0x2335
  inner = rm.NVOS00_PARAMETERS(hRoot=c.root, hObjectOld=0xBAD)
  transfer = rm.nv_ioctl_xfer_t(cmd=rm.NV_ESC_RM_FREE, size=ctypes.sizeof(inner), ptr=ctypes.addressof(inner))
  c.port.ioctl(c.ctl, 0xC01046D3, transfer)
  assert inner.status == status.NV_ERR_OBJECT_NOT_FOUND
  register = rm.nv_ioctl_register_fd_t(ctl_fd=c.ctl)
  fd = c.port.open("/dev/nvidia0")
  c.port.ioctl(fd, 0xC00446C9, register)
  with pytest.raises(OSError, match="registered already"): c.port.ioctl(fd, 0xC00446C9, register)
  with pytest.raises(FileNotFoundError): c.port.open("/dev/nvidia1")
  with pytest.raises(FileNotFoundError): c.port.open("/dev/kfd")
  memory = c.memory(65536)
  copy = c.call(rm.NVOS55_PARAMETERS(hClient=c.root, hParent=c.device, hClientSrc=c.root, hObjectSrc=memory)).hObject
  c.free(memory)
  assert c.map(copy, 65536)
  assert all(row.parents for number, row in RESOURCES.items() if number > 0x41)


def test_a_new_process_begins_anew() -> None:
  c = Client()
  c.channel()
  c.port.end()
  assert not c.machine.rm.clients and not c.machine.channels and not c.machine.files_of(c.port.pid())
  again = Client(c.machine)
  assert isinstance(again.channel(), Work) and NvPort(c.machine) is not None
