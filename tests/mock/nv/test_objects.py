"""Objects of RM and ranges of UVM: what each constructor takes and refuses, and what goes when one of them goes."""

from __future__ import annotations

import ctypes
import errno
from typing import Any

import pytest

from tests.mock.nv.bench import release
from tests.mock.nv.client import MIB, REQUESTS, Client, Status
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.mock.nv.machine import NvMachine

INVALID, UNSUPPORTED, LIMIT = status.NV_ERR_INVALID_ARGUMENT, status.NV_ERR_NOT_SUPPORTED, status.NV_ERR_INVALID_LIMIT
DEVICE, ADDRESS, OBJECT = (
  status.NV_ERR_INVALID_DEVICE,
  status.NV_ERR_INVALID_ADDRESS,
  status.NV_ERR_INVALID_OBJECT_HANDLE,
)
NOT_FOUND, PARENT = status.NV_ERR_OBJECT_NOT_FOUND, status.NV_ERR_INVALID_OBJECT_PARENT


def refused(code: int, call: Any, *given: Any, **named: Any) -> None:
  with pytest.raises(Status) as caught:
    call(*given, **named)
  assert caught.value.code == code, f"{caught.value}, not {status.STATUS[code][0]}"


def data_of(c: Client, handle: int) -> Any:
  return c.machine.rm.clients[c.root].objects[handle].data


def test_handles_that_rm_chooses() -> None:
  """One after the other from RS_UNIQUE_HANDLE_BASE on, past those that the client has taken."""
  c = Client()
  made = [c.memory(4096) for _ in range(3)]
  assert made == [*range(made[0], made[0] + 3)] and 0xCAF0_0000 <= made[0] < 0xCAF0_0010
  params = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, size=4096, attr=0)
  assert c.alloc(c.device, made[2] + 1, alloc.NV01_MEMORY_LOCAL_USER, params) == made[2] + 1
  refused(status.NV_ERR_INSERT_DUPLICATE_NAME, c.alloc, c.device, made[1], alloc.NV01_MEMORY_LOCAL_USER, params)
  assert c.memory(4096) == made[2] + 2


# ---- devices and address spaces


def test_devices_and_their_parts() -> None:
  c = Client(card="sm_90,sm_90")
  two = c.alloc(c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=1))
  assert c.machine.rm.clients[c.root].objects[two].gpu is c.machine.gpus[1]
  plain = c.alloc(c.root, 0, alloc.NV01_DEVICE_0)
  assert c.machine.rm.clients[c.root].objects[plain].gpu is c.machine.gpus[0]
  refused(DEVICE, c.alloc, c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=2))
  refused(INVALID, c.alloc, two, 0, alloc.NV20_SUBDEVICE_0, alloc.NV2080_ALLOC_PARAMETERS(subDeviceId=1))
  refused(status.NV_ERR_INSUFFICIENT_PERMISSIONS, c.alloc, two, 0, alloc.NV01_MEMORY_LOCAL_PHYSICAL)
  p = rm.NVOS64_PARAMETERS(hObjectNew=c.root, hClass=alloc.NV01_ROOT_CLIENT)
  refused(status.NV_ERR_INSERT_DUPLICATE_NAME, c.call, p)
  refused(PARENT, c.alloc, c.root, 0, alloc.FERMI_VASPACE_A, alloc.NV_VASPACE_ALLOCATION_PARAMETERS())


def test_address_spaces() -> None:
  """New ones, the device's own, which is one; the size that is told."""
  c = Client()
  Params = alloc.NV_VASPACE_ALLOCATION_PARAMETERS
  own, new = alloc.NV_VASPACE_ALLOCATION_INDEX_GPU_DEVICE, alloc.NV_VASPACE_ALLOCATION_INDEX_GPU_NEW
  p = Params(index=new)
  fresh = c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, p)
  assert p.vaSize == 1 << 49 and not data_of(c, fresh).external
  p = Params(index=new, vaSize=1 << 40, flags=alloc.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED)
  assert data_of(c, c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, p)).external and p.vaSize == 1 << 40
  device = [c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, Params(index=own)) for _ in range(2)]
  assert data_of(c, device[0]) is data_of(c, device[1]) and not data_of(c, device[0]).external
  refused(UNSUPPORTED, c.alloc, c.device, 0, alloc.FERMI_VASPACE_A, Params(index=own + new + 1))
  group = c.alloc(
    c.device,
    0,
    alloc.KEPLER_CHANNEL_GROUP_A,
    alloc.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(engineType=alloc.NV2080_ENGINE_TYPE_GR0),
  )
  assert data_of(c, group).va is data_of(c, device[0])  # 0 is the device's own
  memory = c.memory(4096)
  refused(
    OBJECT,
    c.alloc,
    c.device,
    0,
    alloc.KEPLER_CHANNEL_GROUP_A,
    alloc.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(engineType=alloc.NV2080_ENGINE_TYPE_GR0, hVASpace=memory),
  )
  assert c.device in {n.handle for n in c.machine.rm.device_spaces}
  c.free(c.device)
  assert not c.machine.rm.device_spaces


# ---- memory


def vram(c: Client, size: int, **more: int) -> tuple[int, Any]:
  p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, size=size, **more)
  return c.alloc(c.device, 0, alloc.NV01_MEMORY_LOCAL_USER, p), p


def attr(name: str, value: str) -> int:
  place = getattr(alloc, f"NVOS32_ATTR_{name}")
  return int(getattr(alloc, f"NVOS32_ATTR_{name}_{value}")) << place[1]


def test_sizes_and_alignments_of_memory() -> None:
  """Video memory has pages of 64 KiB unless others are asked for, system memory of 4 KiB."""
  c = Client()
  force = alloc.NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE
  for size, more, wanted in (
    (1, {}, 1 << 16),
    (65536, {}, 65536),
    (65537, {}, 131072),
    (5000, {"attr": attr("PAGE_SIZE", "4KB")}, 8192),
    (5000, {"attr": attr("PAGE_SIZE", "HUGE")}, 2 * MIB),
    (5000, {"attr": attr("PAGE_SIZE", "BIG")}, 65536),
  ):
    handle, p = vram(c, size, **more)
    assert (p.size, p.limit) == (wanted, wanted - 1) and data_of(c, handle).size == wanted, (size, more)
    assert p.offset == data_of(c, handle).physical.offset
  _, p = vram(c, 4096, alignment=1 << 20, flags=force)
  assert p.offset % (1 << 20) == 0
  _, other = vram(c, 4096, alignment=1 << 20)
  assert other.offset % (1 << 20)  # without the flag it is no more than a wish
  refused(INVALID, vram, c, 4096, alignment=3 << 16, flags=force)
  refused(INVALID, vram, c, 0)
  refused(INVALID, vram, c, 4096, flags=alloc.NVOS32_ALLOC_FLAGS_VIRTUAL)
  refused(INVALID, vram, c, 4096, attr=attr("LOCATION", "PCI"))
  refused(UNSUPPORTED, vram, c, 4096, flags=alloc.NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE)
  p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=c.root, size=5000, attr=attr("LOCATION", "PCI"))
  system = c.alloc(c.device, 0, alloc.NV01_MEMORY_SYSTEM, p)
  assert p.size == 8192 and data_of(c, system).physical.kind == "system" and not c.machine.findings
  c.alloc(
    c.device,
    0,
    alloc.NV01_MEMORY_SYSTEM,
    alloc.NV_MEMORY_ALLOCATION_PARAMS(
      owner=c.root, size=4096, attr=attr("LOCATION", "VIDMEM") | attr("PAGE_SIZE", "4KB")
    ),
  )
  assert "with LOCATION_VIDMEM: RM places it in system memory" in c.machine.findings[-1]


def test_ranges_of_addresses() -> None:
  """Of a size, at a place of RM's or the client's; freed, they take what is mapped there along."""
  c = Client(managed=False)
  va, page = data_of(c, c.va), 65536

  def ranged(**more: Any) -> tuple[int, Any]:
    p = alloc.NV_MEMORY_ALLOCATION_PARAMS(
      owner=c.root, hVASpace=c.va, flags=more.pop("flags", 0) | alloc.NVOS32_ALLOC_FLAGS_VIRTUAL, **more
    )
    return c.alloc(c.device, 0, alloc.NV50_MEMORY_VIRTUAL, p), p

  handle, p = ranged(size=5000)
  assert (p.size, p.limit) == (page, p.offset + page - 1) and p.offset % page == 0
  _, far = ranged(size=5000, alignment=1 << 24)
  assert far.offset % (1 << 24) == 0 and far.offset != p.offset
  fixed = alloc.NVOS32_ALLOC_FLAGS_FIXED_ADDRESS_ALLOCATE
  chosen, at = ranged(size=page, offset=0x7_0000_0000, flags=fixed)
  assert at.offset == 0x7_0000_0000 and data_of(c, chosen).base == 0x7_0000_0000
  refused(INVALID, ranged, size=0)
  memory = c.memory(page)
  c.call(rm.NVOS46_PARAMETERS(hClient=c.root, hDevice=c.device, hDma=handle, hMemory=memory, length=4096))
  assert va.space.find(p.offset) is not None
  used = va.addresses.free_bytes
  c.free(handle)
  assert va.space.find(p.offset) is None and va.addresses.free_bytes == used + page
  c.free(chosen)
  Whole = alloc.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS
  for offset, limit, size in ((0, 0, 1 << 47), (4096, 0x1_0000_0FFF, 0x1_0000_0000)):
    one = c.alloc(c.device, 0, alloc.NV01_MEMORY_VIRTUAL, Whole(offset=offset, limit=limit, hVASpace=c.va))
    assert (data_of(c, one).base, data_of(c, one).size) == (offset, size)


def dma(c: Client, target: int, memory: int, **more: int) -> int:
  given = {"hClient": c.root, "hDevice": c.device, "hDma": target, "hMemory": memory, "length": 4096} | more
  return int(c.call(rm.NVOS46_PARAMETERS(**given)).dmaOffset)


def test_mappings_of_rm() -> None:
  """Where they are put, what they may do, and that each goes with memory, address space or a call."""
  c = Client(managed=False)
  va, memory = data_of(c, c.va), c.memory(MIB)
  fixed = rm.NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << rm.NVOS46_FLAGS_DMA_OFFSET_FIXED[1]
  read = rm.NVOS46_FLAGS_ACCESS_READ_ONLY << rm.NVOS46_FLAGS_ACCESS[1]
  at = dma(c, c.va, memory, offset=8192, length=5000)
  found = va.space.find(at)
  assert at % 65536 == 0 and (found.start, found.end - found.start) == (at, 8192)
  va.space.store(at, 4, 0x1234)
  assert c.port.memory(c.cpu(memory, MIB), MIB)[8192:8194] == b"\x34\x12"
  only = dma(c, c.va, memory, flags=read)
  assert va.space.find(only).access != found.access
  free = va.addresses.free_bytes
  c.call(rm.NVOS47_PARAMETERS(hClient=c.root, hDevice=c.device, hDma=c.va, hMemory=memory, dmaOffset=at))
  assert va.space.find(at) is None and va.addresses.free_bytes == free + 8192 and va.space.find(only) is not None
  high = (1 << 47) - 4096
  assert dma(c, c.va, memory, flags=fixed, dmaOffset=high) == high
  for place in (high + 4096, 4097):
    refused(status.NV_ERR_INVALID_OFFSET, dma, c, c.va, memory, flags=fixed, dmaOffset=place)
  for more in ({"length": 0}, {"offset": 100}, {"offset": MIB, "length": 4096}, {"length": MIB + 1}):
    refused(INVALID, dma, c, c.va, memory, **more)
  window = c.alloc(
    c.device,
    0,
    alloc.NV01_MEMORY_VIRTUAL,
    alloc.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(offset=0x9_0000_0000, limit=0x9_0000_FFFF, hVASpace=c.va),
  )
  assert dma(c, window, memory, flags=fixed, dmaOffset=0x9_0000_F000) == 0x9_0000_F000
  for place in (0x8_FFFF_F000, 0x9_0001_0000):
    refused(status.NV_ERR_INVALID_OFFSET, dma, c, window, memory, flags=fixed, dmaOffset=place)
  refused(OBJECT, c.call, rm.NVOS47_PARAMETERS(hClient=c.root, hDma=c.device, dmaOffset=only))
  c.free(memory)
  assert va.space.find(only) is None and not va.maps
  other = c.memory(4096)
  at = dma(c, c.va, other)
  c.free(c.va)
  assert va.space.find(at) is None and not va.maps


def test_memory_of_another_card() -> None:
  """RM maps it where NV50_P2P joins the two."""
  c = Client(card="sm_90,sm_90", managed=False)
  device = c.alloc(c.root, 0, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=1))
  sub = c.alloc(device, 0, alloc.NV20_SUBDEVICE_0, alloc.NV2080_ALLOC_PARAMETERS())
  far = c.alloc(device, 0, alloc.NV01_MEMORY_LOCAL_USER, alloc.NV_MEMORY_ALLOCATION_PARAMS(size=65536))
  refused(status.NV_ERR_INVALID_STATE, dma, c, c.va, far)
  Params = alloc.NV503B_ALLOC_PARAMETERS
  refused(OBJECT, c.alloc, c.root, 0, alloc.NV50_P2P, Params(hSubDevice=c.subdevice, hPeerSubDevice=device))
  refused(NOT_FOUND, c.alloc, c.root, 0, alloc.NV50_P2P, Params(hSubDevice=c.subdevice, hPeerSubDevice=0xBAD))
  joined = c.alloc(c.root, 0, alloc.NV50_P2P, Params(hSubDevice=c.subdevice, hPeerSubDevice=sub))
  assert dma(c, c.va, far)
  c.free(sub)
  refused(NOT_FOUND, c.free, joined)
  refused(status.NV_ERR_INVALID_STATE, dma, c, c.va, far)


def test_context_dmas() -> None:
  """A part of memory by itself; it goes with the memory, which lives as long as it is used."""
  c = Client()
  memory, w = c.memory(8192, system=True), c.channel()
  Params = alloc.NV_CONTEXT_DMA_ALLOCATION_PARAMS
  part = c.alloc(c.device, 0, alloc.NV01_CONTEXT_DMA, Params(hMemory=memory, offset=4096, limit=4095))
  assert (data_of(c, part).offset, data_of(c, part).size) == (4096, 4096)
  refused(LIMIT, c.alloc, c.device, 0, alloc.NV01_CONTEXT_DMA, Params(hMemory=memory, offset=4096, limit=4096))
  refused(OBJECT, c.alloc, c.device, 0, alloc.NV01_CONTEXT_DMA, Params(hMemory=c.va, offset=0, limit=15))
  small = c.alloc(c.device, 0, alloc.NV01_CONTEXT_DMA, Params(hMemory=memory, offset=0, limit=14))
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.hObjectError = small
  refused(LIMIT, c.alloc, w.group, 0, c.card.channel_class, p)
  p.hObjectError = part
  told = c.alloc(w.group, 0, c.card.channel_class, p)
  assert data_of(c, told).notifier.offset == 4096
  c.free(memory)
  for handle in (part, small, told):
    refused(NOT_FOUND, c.free, handle)


# ---- channels


def test_channels_without_a_group() -> None:
  """Their engine is their own, their address space the device's or one that they name."""
  c = Client(managed=False)
  w = c.channel()
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.engineType = alloc.NV2080_ENGINE_TYPE_COPY0 + 2
  alone = data_of(c, c.alloc(c.device, 0, c.card.channel_class, p))
  assert (alone.channel.kind, alone.engine, alone.token >> 16) == ("copy", p.engineType, 3) and alone.va is not data_of(
    c, c.va
  )
  p.hVASpace = c.va
  named = data_of(c, c.alloc(c.device, 0, c.card.channel_class, p))
  assert named.va is data_of(c, c.va) and named.channel.group is not alone.channel.group
  p.engineType = alloc.NV2080_ENGINE_TYPE_GR0
  compute = data_of(c, c.alloc(c.device, 0, c.card.channel_class, p))
  assert (compute.channel.kind, compute.token >> 16, compute.token & 0xFFFF) == ("compute", 0, compute.channel.number)
  p.engineType = alloc.NV2080_ENGINE_TYPE_COPY0 + 10
  refused(INVALID, c.alloc, c.device, 0, c.card.channel_class, p)


def test_groups_of_no_engine_take_that_of_their_channels() -> None:
  c = Client(managed=False)
  w = c.channel()
  group = c.group(alloc.NV2080_ENGINE_TYPE_NULL)
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.engineType = alloc.NV2080_ENGINE_TYPE_COPY0
  first = data_of(c, c.alloc(group, 0, c.card.channel_class, p))
  assert first.channel.group is data_of(c, group).group and first.channel.group.kind == first.channel.kind == "copy"


def test_objects_of_engines() -> None:
  c = Client()
  w, copier = c.channel(), c.channel("copy")
  assert data_of(c, w.handle).channel.classes == (c.card.compute_class, c.card.copy_class)
  for class_id in (0xCB97, 0xCBA2, 0x902D):  # 3D, inline to memory, 2D: of the chip, and not modelled
    refused(UNSUPPORTED, c.alloc, w.handle, 0, class_id)
    assert "is not modelled: NV_ERR_NOT_SUPPORTED" in c.machine.findings[-1]
  refused(status.NV_ERR_INVALID_CLASS, c.alloc, copier.handle, 0, c.card.compute_class)
  refused(
    NOT_FOUND,
    c.alloc,
    c.device,
    0,
    alloc.GT200_DEBUGGER,
    alloc.NV83DE_ALLOC_PARAMETERS(hAppClient=c.root, hClass3dObject=0xBAD),
  )


# ---- calls of RM that are no objects


def test_linear_addresses() -> None:
  """What MAP_MEMORY tells; the client may say where it really is, and takes it back once."""
  c = Client()
  memory, fd = c.memory(65536), c.port.open("/dev/nvidia0")
  p = rm.nv_ioctl_nvos33_parameters_with_fd(fd=fd)
  p.params.hClient, p.params.hDevice, p.params.hMemory, p.params.length = c.root, c.device, memory, 65536
  at = int(c.call(p).params.pLinearAddress)
  p.fd = c.port.open("/dev/nvidia0")
  assert int(c.call(p).params.pLinearAddress) != at
  Update, Unmap = rm.NVOS56_PARAMETERS, rm.NVOS34_PARAMETERS

  def unmap(address: int, handle: int = memory) -> None:
    c.call(Unmap(hClient=c.root, hDevice=c.device, hMemory=handle, pLinearAddress=address))

  c.call(Update(hClient=c.root, hDevice=c.device, hMemory=memory, pOldCpuAddress=at, pNewCpuAddress=0x7000))
  refused(
    NOT_FOUND,
    c.call,
    Update(hClient=c.root, hDevice=c.device, hMemory=memory, pOldCpuAddress=at, pNewCpuAddress=0x8000),
  )
  refused(NOT_FOUND, unmap, at)
  refused(NOT_FOUND, unmap, 0x7000, 0xBAD)
  unmap(0x7000)
  refused(NOT_FOUND, unmap, 0x7000)


def test_second_handles() -> None:
  c = Client()
  other = Client(c.machine)
  memory = c.memory(65536)

  def dup(source: int, parent: int | None = None, handle: int = 0) -> int:
    p = rm.NVOS55_PARAMETERS(
      hClient=c.root,
      hParent=c.device if parent is None else parent,
      hObject=handle,
      hClientSrc=c.root,
      hObjectSrc=source,
    )
    return int(c.call(p).hObject)

  copy = dup(memory, handle=0x777)
  assert copy == 0x777 and data_of(c, copy).physical is data_of(c, memory).physical
  refused(UNSUPPORTED, dup, c.va)
  refused(PARENT, dup, memory, c.va)
  refused(status.NV_ERR_INSERT_DUPLICATE_NAME, dup, memory, None, 0x777)
  refused(
    status.NV_ERR_INVALID_CLIENT,
    c.call,
    rm.NVOS55_PARAMETERS(hClient=c.root, hParent=c.device, hClientSrc=other.root, hObjectSrc=1),
  )
  free = c.machine.gpus[0].vram_allocator.free_bytes
  c.free(memory)
  assert c.machine.gpus[0].vram_allocator.free_bytes == free
  c.free(copy)
  assert c.machine.gpus[0].vram_allocator.free_bytes == free + 65536


def test_calls_that_are_not_modelled_and_transfers() -> None:
  c = Client()
  x = rm.nv_ioctl_xfer_t(cmd=rm.NV_ESC_RM_FREE, size=3, ptr=8)
  with pytest.raises(OSError, match="with 3 bytes") as caught:
    c.port.ioctl(c.ctl, REQUESTS[rm.nv_ioctl_xfer_t], x)
  assert caught.value.errno == errno.EINVAL
  seen = {row.name: number for number, row in rm.IOCTLS.items()}
  names = [n for n in seen if n not in c.machine.rm.calls and n != "NV_ESC_IOCTL_XFER_CMD"]
  assert "NV_ESC_RM_SHARE" in names
  for name in names:
    struct_ = rm.IOCTLS[seen[name]].struct
    given = struct_() if struct_ is not None else ctypes.c_uint32()
    with pytest.raises(OSError, match=f"{name} is not modelled"):
      c.port.ioctl(c.ctl, seen[name], given)
    assert any(f"RM call {name} is not modelled: EINVAL" in line for line in c.machine.report()), name


# ---- UVM


def spaces(c: Client) -> Any:
  return c.machine.files_of(c.port.pid())[c.uvm_fd].uvm


def test_uvm_begins_once() -> None:
  c = Client()
  fd = c.port.open("/dev/nvidia-uvm")

  def call(at: int, p: Any) -> int:
    c.port.ioctl(at, next(n for n, row in uvm.IOCTLS.items() if row.struct is type(p)), p)
    return int(p.rmStatus)

  mask = uvm.UVM_INIT_FLAGS_MASK
  assert call(fd, uvm.UVM_MM_INITIALIZE_PARAMS(uvmFd=c.uvm_fd)) == 0
  for other in (fd, c.ctl, 999):
    assert call(fd, uvm.UVM_MM_INITIALIZE_PARAMS(uvmFd=other)) == INVALID
  assert (
    call(fd, uvm.UVM_INITIALIZE_PARAMS(flags=mask + 1)) == INVALID
    and call(fd, uvm.UVM_PAGEABLE_MEM_ACCESS_PARAMS()) == status.NV_ERR_ILLEGAL_ACTION
  )
  assert (
    call(fd, uvm.UVM_INITIALIZE_PARAMS(flags=mask)) == 0
    and call(fd, uvm.UVM_MM_INITIALIZE_PARAMS(uvmFd=c.uvm_fd)) == INVALID
  )
  p = uvm.UVM_PAGEABLE_MEM_ACCESS_PARAMS(pageableMemAccess=1)
  assert call(fd, p) == 0 and p.pageableMemAccess == 0
  before = spaces(c)
  c.uvm(uvm.UVM_INITIALIZE_PARAMS())
  assert spaces(c) is before
  assert call(c.uvm_fd, uvm.UVM_REGISTER_GPU_PARAMS(gpu_uuid=c.named(), numaEnabled=1, numaNodeId=5)) == 0


def test_gpus_and_address_spaces_of_uvm() -> None:
  c = Client()
  told = c.uvm(uvm.UVM_REGISTER_GPU_PARAMS(gpu_uuid=c.named(), numaEnabled=1, numaNodeId=5))
  assert (told.numaEnabled, told.numaNodeId) == (0, -1)

  def register(va: int, fd: int | None = None) -> None:
    c.uvm(
      uvm.UVM_REGISTER_GPU_VASPACE_PARAMS(
        gpuUuid=c.named(), rmCtrlFd=c.ctl if fd is None else fd, hClient=c.root, hVaSpace=va
      )
    )

  def unregister() -> None:
    c.uvm(uvm.UVM_UNREGISTER_GPU_VASPACE_PARAMS(gpuUuid=c.named()))

  plain = c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, alloc.NV_VASPACE_ALLOCATION_PARAMETERS())
  refused(status.NV_ERR_INVALID_FLAGS, register, plain)
  refused(DEVICE, register, c.va)
  at = c.map(c.memory(65536), 65536)
  va = data_of(c, c.va)
  assert va.space.find(at) is not None
  unregister()
  assert va.space.find(at) is None and va.registered is None
  refused(DEVICE, unregister)
  refused(INVALID, register, c.va, c.gpu_fd)
  register(c.va)
  assert va.registered is spaces(c)
  other = Client(c.machine)
  refused(
    status.NV_ERR_INVALID_CLIENT,
    c.uvm,
    uvm.UVM_REGISTER_GPU_VASPACE_PARAMS(gpuUuid=c.named(), rmCtrlFd=c.ctl, hClient=other.root, hVaSpace=other.va),
  )
  c.uvm(uvm.UVM_UNREGISTER_GPU_PARAMS(gpu_uuid=c.named()))
  assert va.registered is None and not spaces(c).gpus
  refused(DEVICE, c.uvm, uvm.UVM_UNREGISTER_GPU_PARAMS(gpu_uuid=c.named()))
  refused(DEVICE, unregister)


def test_channels_of_uvm() -> None:
  """A doorbell of one that UVM does not know is doubted."""
  c = Client()
  w, (done, view) = c.channel(), c.both(4096)
  Register = uvm.UVM_REGISTER_CHANNEL_PARAMS

  def register(**more: Any) -> None:
    given = {"gpuUuid": c.named(), "rmCtrlFd": c.ctl, "hClient": c.root, "hChannel": w.handle} | more
    c.uvm(Register(**given))

  w.send(0, *release(done, 1))
  assert "UVM_REGISTER_CHANNEL was not called" in c.machine.findings[-1]
  count = len(c.machine.findings)
  own = c.alloc(c.device, 0, alloc.FERMI_VASPACE_A, alloc.NV_VASPACE_ALLOCATION_PARAMETERS())
  p = alloc.NV_CHANNEL_ALLOC_PARAMS.from_buffer_copy(w.params)
  p.hVASpace = own
  foreign = c.alloc(w.group, 0, c.card.channel_class, p)
  refused(status.NV_ERR_INVALID_CHANNEL, register, hChannel=foreign)
  refused(OBJECT, register, hChannel=c.va)
  register()
  w.send(0, *release(done, 2))
  assert c.port.wait(lambda: view[0] == 2, 1.0) and len(c.machine.findings) == count
  gone = uvm.UVM_UNREGISTER_CHANNEL_PARAMS(gpuUuid=c.named(), hClient=c.root, hChannel=w.handle)
  c.uvm(gone)
  refused(status.NV_ERR_INVALID_CHANNEL, c.uvm, gone)
  c.uvm(uvm.UVM_UNREGISTER_GPU_VASPACE_PARAMS(gpuUuid=c.named()))
  refused(DEVICE, register)


def test_external_ranges() -> None:
  c = Client()
  Range, base = uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS, 1 << 32
  c.uvm(Range(base=base, length=1 << 20))
  for at, length in ((base - 4096, 8192), (base + (1 << 20) - 4096, 8192), (base - 4096, 2 << 20), (base + 4096, 4096)):
    refused(status.NV_ERR_UVM_ADDRESS_IN_USE, c.uvm, Range(base=at, length=length))
  for at in (base - 4096, base + (1 << 20)):
    c.uvm(Range(base=at, length=4096))
  top = (1 << 64) - 8192
  c.uvm(Range(base=top, length=4096))
  refused(ADDRESS, c.uvm, Range(base=top + 4096, length=4096))
  refused(ADDRESS, c.uvm, Range(base=top + 4096, length=8192))
  Valid = uvm.UVM_VALIDATE_VA_RANGE_PARAMS
  for at, length in ((base, 1 << 20), (base - 4096, 4096), (top, 4096)):
    c.uvm(Valid(base=at, length=length))
  for at, length in ((base - 8192, 4096), (base + (2 << 20), 4096), (base, 4096), (base + 4096, (1 << 20) - 4096)):
    refused(ADDRESS, c.uvm, Valid(base=at, length=length))
  Free = uvm.UVM_FREE_PARAMS
  refused(ADDRESS, c.uvm, Free(base=base, length=4096))
  refused(ADDRESS, c.uvm, Free(base=base + 4096, length=(1 << 20) - 4096))
  refused(ADDRESS, c.uvm, Free(base=base, length=0))
  c.uvm(Free(base=base, length=1 << 20))
  refused(ADDRESS, c.uvm, Free(base=base, length=1 << 20))
  c.uvm(Free(base=top, length=4096))


def test_mappings_of_uvm() -> None:
  """What one covers as a whole goes, over a part of another there is none; one or several GPUs."""
  c = Client()
  va, base, memory = data_of(c, c.va), 1 << 32, c.memory(1 << 20)
  c.uvm(uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=1 << 20))

  def mapped(at: int, length: int, *, count: int = 1, kind: int = 0, offset: int = 0) -> None:
    p = uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(
      base=at, length=length, offset=offset, gpuAttributesCount=count, rmCtrlFd=c.ctl, hClient=c.root, hMemory=memory
    )
    for row in p.perGpuAttributes:
      row.gpuUuid, row.gpuMappingType = c.named(), kind
    c.uvm(p)

  mapped(base, 65536)
  mapped(base + 65536, 65536, kind=uvm.UvmGpuMappingTypeReadOnly, offset=4096)
  first, second = (va.space.find(base + k) for k in (0, 65536))
  assert first.access != second.access
  for at, length in ((base, 4096), (base + 4096, 65536), (base + 61440, 8192)):
    refused(UNSUPPORTED, mapped, at, length)
  mapped(base, 131072)
  assert va.space.find(base).end == base + 131072 and len(spaces(c).ranges[0].maps) == 1
  refused(INVALID, mapped, base, 4096, count=0)
  refused(INVALID, mapped, base, 4096, count=len(uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS().perGpuAttributes) + 1)
  refused(INVALID, mapped, base + 131072, 4096, kind=uvm.UvmGpuMappingTypeCount)
  mapped(
    base + 131072,
    4096,
    kind=uvm.UvmGpuMappingTypeCount - 1,
    count=len(uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS().perGpuAttributes),
  )
  Unmap = uvm.UVM_UNMAP_EXTERNAL_PARAMS
  refused(UNSUPPORTED, c.uvm, Unmap(base=base, length=4096, gpuUuid=c.named()))
  for at, length in ((base + (2 << 20), 4096), (base + (1 << 20) - 4096, 8192)):
    refused(ADDRESS, c.uvm, Unmap(base=at, length=length, gpuUuid=c.named()))
  c.uvm(Unmap(base=base, length=1 << 20, gpuUuid=c.named()))
  assert va.space.find(base) is None and va.space.find(base + 131072) is None and not spaces(c).ranges[0].maps
  mapped(base, 65536)
  free = c.machine.gpus[0].vram_allocator.free_bytes
  c.free(memory)
  assert c.machine.gpus[0].vram_allocator.free_bytes == free
  c.uvm(uvm.UVM_FREE_PARAMS(base=base, length=1 << 20))
  assert c.machine.gpus[0].vram_allocator.free_bytes == free + (1 << 20) and va.space.find(base) is None


def test_a_mapping_on_several_cards_is_whole_or_none() -> None:
  machine = NvMachine("sm_90,sm_90", vram=64 * MIB, system_memory=64 * MIB)
  c, other = Client(machine), Client(machine, gpu=1)
  two, base, memory = other.named(), 1 << 32, c.memory(65536, system=True)
  c.uvm(uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=base, length=65536))
  p = uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(
    base=base, length=4096, gpuAttributesCount=2, rmCtrlFd=c.ctl, hClient=c.root, hMemory=memory
  )
  p.perGpuAttributes[0].gpuUuid, p.perGpuAttributes[1].gpuUuid = c.named(), two
  refused(DEVICE, c.uvm, p)
  assert data_of(c, c.va).space.find(base) is None
  c.uvm(uvm.UVM_REGISTER_GPU_PARAMS(gpu_uuid=two, rmCtrlFd=c.ctl, hClient=c.root))
  refused(DEVICE, c.uvm, p)  # it has no address space here
  Pair = uvm.UVM_ENABLE_PEER_ACCESS_PARAMS
  refused(DEVICE, c.uvm, Pair(gpuUuidA=two, gpuUuidB=two))
  refused(DEVICE, c.uvm, uvm.UVM_DISABLE_PEER_ACCESS_PARAMS(gpuUuidA=c.named(), gpuUuidB=two))
  c.uvm(Pair(gpuUuidA=c.named(), gpuUuidB=two))
  refused(DEVICE, c.uvm, Pair(gpuUuidA=two, gpuUuidB=c.named()))


def test_calls_of_uvm_without_an_effect() -> None:
  c = Client()
  for name in ("UVM_DEINITIALIZE", "UVM_CLEAN_UP_ZOMBIE_RESOURCES"):
    number, row = next((n, r) for n, r in uvm.IOCTLS.items() if r.name == name)
    assert c.port.ioctl(c.uvm_fd, number, None if row.struct is None else row.struct()) == 0
    assert any(name in line for line in c.machine.report())
