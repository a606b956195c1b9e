"""What lies beside: a call that ends one mapping, object or permission leaves its neighbours; and answers that are the
same whatever was in their place."""
from __future__ import annotations

import ctypes
import mmap
from typing import Any

import pytest

from tests.mock.nv.bench import FAR, launch_qmd, release
from tests.mock.nv.client import Client
from tests.mock.nv.test_compute import Compute, body
from tests.mock.nv.test_objects import data_of, dma, refused
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.core.errors import PageFault
from tinyhw.mock.memory import Refused
from tinyhw.mock.nv.driver.objects import VaSpace

PAGES = 65536


def space_of(c: Client) -> Any:
  found = data_of(c, c.va)
  assert isinstance(found, VaSpace)
  return found.space


# ---- RM

def test_a_freed_range_leaves_what_is_behind_it() -> None:
  c = Client(managed=False)
  fixed = alloc.NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE | alloc.NVOS32_ALLOC_FLAGS_VIRTUAL
  bases = [0x7_0000_0000 + n * PAGES for n in range(3)]
  ranges = [c.alloc(c.device, 0, alloc.NV50_MEMORY_VIRTUAL, alloc.NV_MEMORY_ALLOCATION_PARAMS(
    owner=c.root, hVASpace=c.va, size=PAGES, offset=base, flags=fixed)) for base in bases]
  for handle in ranges:
    c.call(rm.NVOS46_PARAMETERS(hClient=c.root, hDevice=c.device, hDma=handle, hMemory=c.memory(PAGES), length=4096))
  c.free(ranges[1])
  assert [space_of(c).find(base) is not None for base in bases] == [True, False, True]


def test_a_second_handle_goes_with_its_parent() -> None:
  c = Client()
  memory = c.memory(PAGES)
  device = c.alloc(c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS())
  p = rm.NVOS55_PARAMETERS(hClient=c.root, hParent=device, hObject=0, hClientSrc=c.root, hObjectSrc=memory)
  c.call(p)
  held = data_of(c, memory).physical
  assert held.holders == 2
  c.free(device)
  assert held.holders == 1
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.free, p.hObject)


def test_a_context_dma_holds_its_memory() -> None:
  c = Client()
  memory = c.memory(3 * PAGES, system=True)
  part = c.alloc(c.device, 0, alloc.NV01_CONTEXT_DMA,
                 alloc.NV_CONTEXT_DMA_ALLOCATION_PARAMS(hMemory=memory, offset=PAGES, limit=8191))
  assert (data_of(c, part).offset, data_of(c, part).size) == (PAGES, 8192)
  held = data_of(c, memory).physical
  assert held.holders == 2
  c.free(part)
  assert held.holders == 1


@pytest.mark.parametrize(("limit", "size"), [(4095, 4096), (4096, 8192), (0, 4096)])
def test_the_older_way_to_system_memory(limit: int, size: int) -> None:
  c = Client()
  free = c.machine.system_allocator.free_bytes
  p = rm.nv_ioctl_nvos02_parameters_with_fd(fd=-1)
  p.params.hRoot, p.params.hObjectParent, p.params.hObjectNew = c.root, c.device, 0xABC
  p.params.hClass, p.params.limit = alloc.NV01_MEMORY_SYSTEM, limit
  c.call(p, c.gpu_fd)
  assert p.params.limit == size - 1 and data_of(c, 0xABC).size == size
  assert free - c.machine.system_allocator.free_bytes == size


@pytest.mark.parametrize("size", [4096, 12288])
def test_pages_of_the_client_end_where_it_says(size: int) -> None:
  c = Client()
  kept = mmap.mmap(-1, 16384)
  at = ctypes.addressof(ctypes.c_char.from_buffer(kept))
  handle = c.alloc(c.device, 0, alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
                   alloc.NV_OS_DESC_MEMORY_ALLOCATION_PARAMS(descriptor=at, limit=size - 1))
  assert data_of(c, handle).size == size
  there = c.map(handle, size)
  space_of(c).store(there + size - 4, 4, 0x12345678)
  assert kept[size - 4:size] == bytes.fromhex("78563412")
  with pytest.raises(PageFault): space_of(c).store(there + size, 4, 1)


def test_memory_of_two_cards_is_joined_by_pairs() -> None:
  """NV50_P2P between two cards says nothing of a third one."""
  c = Client(card="sm_90,sm_90,sm_90", managed=False)
  devices = [c.alloc(c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=n)) for n in (1, 2)]
  subs = [c.alloc(d, 0, alloc.NV20_SUBDEVICE_0, alloc.NV2080_ALLOC_PARAMETERS()) for d in devices]
  far = [c.alloc(d, 0, alloc.NV01_MEMORY_LOCAL_USER, alloc.NV_MEMORY_ALLOCATION_PARAMS(size=PAGES)) for d in devices]
  Pair = alloc.NV503B_ALLOC_PARAMETERS
  c.alloc(c.root, 0, alloc.NV50_P2P, Pair(hSubDevice=subs[0], hPeerSubDevice=subs[1]))
  for memory in far: refused(status.NV_ERR_INVALID_STATE, dma, c, c.va, memory)
  c.alloc(c.root, 0, alloc.NV50_P2P, Pair(hSubDevice=c.subdevice, hPeerSubDevice=subs[0]))
  assert dma(c, c.va, far[0])
  refused(status.NV_ERR_INVALID_STATE, dma, c, c.va, far[1])
  told = control.NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS()
  assert c.control(c.root, told).deviceIds == 0b111


def test_mappings_of_the_client_have_a_place() -> None:
  c = Client()
  fd = c.port.open("/dev/nvidia0")
  p = rm.nv_ioctl_nvos33_parameters_with_fd(fd=fd)
  memory = p.params.hMemory = c.memory(PAGES)
  p.params.hClient, p.params.hDevice, p.params.length = c.root, c.device, PAGES
  c.call(p)
  moved = rm.NVOS56_PARAMETERS(hClient=c.root, hDevice=c.device, hMemory=0xBAD, pOldCpuAddress=p.params.pLinearAddress,
                               pNewCpuAddress=0x1000)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.call, moved)
  moved.hMemory = memory
  c.call(moved)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.call, moved)
  gone = rm.NVOS34_PARAMETERS(hClient=c.root, hDevice=c.device, hMemory=memory, pLinearAddress=0x1000)
  c.call(gone)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.call, gone)


def test_memory_is_mapped_through_its_cards_file() -> None:
  c = Client(card="sm_90,sm_90")
  memory = c.memory(PAGES)
  for path, right in (("/dev/nvidia1", False), ("/dev/nvidiactl", False), ("/dev/nvidia0", True)):
    p = rm.nv_ioctl_nvos33_parameters_with_fd(fd=c.port.open(path))
    p.params.hClient, p.params.hDevice, p.params.hMemory, p.params.length = c.root, c.device, memory, PAGES
    if right: c.call(p)
    else: refused(status.NV_ERR_INVALID_ARGUMENT, c.call, p)


def test_a_channels_pointers_lie_where_it_says() -> None:
  c = Client()
  w = c.channel("copy")
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.userdOffset[0], p.userdOffset[1] = 512, 1024
  channel = data_of(c, c.alloc(w.group, 0, c.card.channel_class, p)).channel
  view = c.port.memory(c.cpu(w.userd_memory, PAGES), PAGES)
  channel._userd[1] = 0x1234
  assert bytes(view[512:520]) == bytes(4) + bytes.fromhex("34120000")


def test_a_version_that_is_not_the_drivers() -> None:
  c = Client()
  p = rm.nv_ioctl_rm_api_version_t(cmd=rm.NV_RM_API_VERSION_CMD_STRICT, versionString=b"1.2.3", reply=77)
  number = next(n for n, row in rm.IOCTLS.items() if row.struct is type(p))
  with pytest.raises(Refused): c.port.ioctl(c.ctl, number, p)
  assert p.reply == rm.NV_RM_API_VERSION_REPLY_UNRECOGNIZED and p.versionString == b"580.142"


def test_a_device_has_an_address_space_of_its_own() -> None:
  c = Client(managed=False)
  own = c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, alloc.NV_VASPACE_ALLOCATION_PARAMETERS(
    index=alloc.NV_VASPACE_ALLOCATION_INDEX_GPU_DEVICE))
  at = dma(c, own, c.memory(PAGES))
  found = data_of(c, own)
  found.space.store(at, 4, 7)
  assert found.gpu is c.machine.gpus[0] and found.space.load(at, 4) == 7 and space_of(c).find(at) is None


@pytest.mark.parametrize(("code", "access"), [("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1;", 0),
                                              ("st.global.u32 [%rd1], 1;", 1),
                                              ("atom.global.add.u32 %r1, [%rd1], 1; st.global.u32 [%rd1], %r1;", 2)])
def test_a_debugger_hears_what_a_fault_did(code: str, access: int) -> None:
  """NV_PFAULT_ACCESS_TYPE of dev_mmu.ref: read, write, atomic."""
  b = Compute()
  channel = b.channel()
  b.pcas(channel, launch_qmd(b, b.load(body(code), "k"), bank=b.bank(FAR), block=(1, 1, 1)))
  b.run()
  c = Client()
  w = c.channel()
  data_of(c, w.handle).channel.fail(channel.error)
  debugger = c.alloc(c.device, 0, alloc.GT200_DEBUGGER, alloc.NV83DE_ALLOC_PARAMETERS(
    hAppClient=c.root, hClass3dObject=w.object))
  fault = control.NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS()
  ctypes.memset(ctypes.addressof(fault), 0xA5, ctypes.sizeof(fault))
  c.control(debugger, fault)
  row = fault.mmuFaultInfoList[0]
  assert (fault.count, row.faultAddress, row.accessType) == (1, FAR, access)


def test_pages_that_a_client_unmaps_behind_its_drivers_back() -> None:
  """By the system's own call: a GPU faults there as soon as somebody waits."""
  c = Client()
  kept = mmap.mmap(-1, 8192)
  view = ctypes.c_char.from_buffer(kept)
  at = ctypes.addressof(view)
  p = c.pages(at, 8192)
  c.call(p, c.gpu_fd)
  address = c.map(p.params.hObjectNew, 8192)
  assert space_of(c).find(address) is not None
  w = c.channel("copy")
  del view
  kept.close()
  c.port.wait(lambda: False, 0.0)
  assert space_of(c).find(address) is None
  w.send(0, *release(address, 1))
  c.port.wait(lambda: w.notifier.status != 0, 1.0)
  assert w.notifier.info32 == status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT


def test_a_doorbell_rings_once() -> None:
  c = Client()
  w = c.channel("copy")
  word = ctypes.c_uint32.from_buffer(c.port.memory(w.door, 4096), 0x90)
  word.value = w.token
  c.port.wait(lambda: False, 0.0)
  rung = [e for e in c.machine.trace if "doorbell" in str(e)]
  for _ in range(2): c.port.wait(lambda: False, 0.0)
  assert len([e for e in c.machine.trace if "doorbell" in str(e)]) == len(rung)


def test_a_channel_goes_with_its_context_share() -> None:
  c = Client()
  w = c.channel()
  share = c.alloc(w.group, 0, alloc.FERMI_CONTEXT_SHARE_A, alloc.NV_CTXSHARE_ALLOCATION_PARAMETERS(hVASpace=c.va))
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.hContextShare, p.hVASpace = share, 0
  made = c.alloc(w.group, 0, c.card.channel_class, p)
  assert data_of(c, made).va is data_of(c, c.va)
  c.free(share)
  refused(status.NV_ERR_OBJECT_NOT_FOUND, c.free, made)
  assert data_of(c, w.handle).channel.state.value == "ready"


@pytest.mark.parametrize("card", ["sm_80", "sm_90", "sm_120"])
def test_copy_engines_are_known_by_their_number(card: str) -> None:
  c = Client(card=card)
  count = len(c.card.engines(c.card.copy_class))
  for number in range(-1, 12):
    kind = alloc.NV2080_ENGINE_TYPE_COPY0 + number
    for p in (control.NV2080_CTRL_CE_GET_CAPS_V2_PARAMS(ceEngineType=kind),
              control.NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS(ceEngineType=kind)):
      if 0 <= number < count: c.control(c.subdevice, p)
      else: refused(status.NV_ERR_NOT_SUPPORTED, c.control, c.subdevice, p)


# ---- UVM

def unmapped(c: Client, base: int, length: int) -> None:
  c.uvm(uvm.UVM_UNMAP_EXTERNAL_PARAMS(base=base, length=length, gpuUuid=c.named()))


def test_a_part_of_a_range_is_unmapped() -> None:
  """Whole mappings alone; others stay. What is no whole page, or nothing, is refused before all else."""
  c = Client()
  base, memory = 0x6_0000_0000, c.memory(4 * PAGES)
  c.uvm(uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=4 * PAGES))
  for n in range(4): c.map_range(memory, PAGES, base + n * PAGES, n * PAGES)
  unmapped(c, base + PAGES, 2 * PAGES)
  assert [space_of(c).find(base + n * PAGES) is not None for n in range(4)] == [True, False, False, True]
  for at, length in ((0, PAGES), (base, 0), (base + 1, PAGES), (base, PAGES + 1)):
    refused(status.NV_ERR_INVALID_ADDRESS, unmapped, c, at, length)
  refused(status.NV_ERR_NOT_SUPPORTED, unmapped, c, base, 4096)
  assert space_of(c).find(base) is not None


def test_peers_go_by_pairs() -> None:
  """Of three cards: who ends access between two of them takes those mappings, and no others."""
  c = Client(card="sm_90,sm_90,sm_90")
  others = [Client(c.machine, gpu=n) for n in (1, 2)]
  for o in others:
    c.uvm(uvm.UVM_REGISTER_GPU_PARAMS(gpu_uuid=o.named(), rmCtrlFd=c.ctl, hClient=c.root))
  devices = [c.alloc(c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=n)) for n in (1, 2)]
  far = [c.alloc(d, 0, alloc.NV01_MEMORY_LOCAL_USER, alloc.NV_MEMORY_ALLOCATION_PARAMS(size=PAGES)) for d in devices]
  base, own = 0x6_0000_0000, c.memory(PAGES)
  c.uvm(uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=3 * PAGES))
  pairs = [{"gpuUuidA": c.named(), "gpuUuidB": o.named()} for o in others]
  for pair in pairs: c.uvm(uvm.UVM_ENABLE_PEER_ACCESS_PARAMS(**pair))
  for n, memory in enumerate((own, *far)): c.map_range(memory, PAGES, base + n * PAGES)
  c.uvm(uvm.UVM_DISABLE_PEER_ACCESS_PARAMS(**pairs[0]))
  assert [space_of(c).find(base + n * PAGES) is not None for n in range(3)] == [True, False, True]
  refused(status.NV_ERR_INVALID_DEVICE, c.uvm, uvm.UVM_DISABLE_PEER_ACCESS_PARAMS(**pairs[0]))
  refused(status.NV_ERR_INVALID_DEVICE, c.map_range, far[0], PAGES, base + PAGES)
  c.uvm(uvm.UVM_ENABLE_PEER_ACCESS_PARAMS(**pairs[0]))
  c.map_range(far[0], PAGES, base + PAGES)


def test_channels_that_uvm_knows_of() -> None:
  """A doorbell of one that it was not told of is in the report, by its name; of another it is not."""
  c = Client()
  works = [c.channel("copy") for _ in range(2)]
  c.uvm(uvm.UVM_REGISTER_CHANNEL_PARAMS(gpuUuid=c.named(), rmCtrlFd=c.ctl, hClient=c.root, hChannel=works[0].handle))
  done, view = c.both(4096)
  for n, w in enumerate(works):
    w.send(0, *release(done + 16 * n, 1))
    assert c.port.wait(lambda n=n: view[16 * n] == 1, 1.0)  # type: ignore[misc]
  names = [data_of(c, w.handle).channel.name for w in works]
  told = [line for line in c.machine.report() if "UVM_REGISTER_CHANNEL was not called" in line]
  assert len(told) == 1 and told[0].startswith(names[1])


def test_pages_that_go_take_their_own_mappings() -> None:
  c = Client()
  base, memory = 0x6_0000_0000, c.memory(PAGES)
  at, pages = c.private(8192)
  c.uvm(uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=2 * PAGES))
  c.map_range(memory, PAGES, base)
  c.map_range(pages, 8192, base + PAGES)
  c.port.munmap(at, 8192)
  assert [space_of(c).find(base + n * PAGES) is not None for n in range(2)] == [True, False]


def test_answers_of_uvm_are_whole() -> None:
  c = Client()
  p = uvm.UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS(gpu_uuid=c.named(), pageableMemAccess=5)
  assert c.uvm(p).pageableMemAccess == 0
  number = next(n for n, row in uvm.IOCTLS.items() if row.name == "UVM_DEINITIALIZE")
  c.port.ioctl(c.uvm_fd, number, None)
  assert any("UVM_DEINITIALIZE x1: the file's end does it" in line for line in c.machine.report()), c.machine.report()
  with pytest.raises(Refused, match="managed memory is not modelled"): c.port.mmap(c.uvm_fd, 4096)
