"""A client of RM and UVM that makes the calls itself, from the generated structs alone: no driver is in between."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from tests.mock.nv.bench import cubin
from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_control as control
from tinyhw.autogen import nv_rm_status as status
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.core.layout import Method
from tinyhw.core.port import Protection
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.nv.port import NOTIFY, NvPort
from tinyhw.wire import gpfifo, methods, qmd
from tinyhw.wire.gpfifo import Notification, Userd
from tinyhw.wire.rm import flags

REQUESTS = {row.struct: number for number, row in rm.IOCTLS.items()}
ENTRIES = 64
MIB = 1 << 20


class Status(Exception):
  """A call that RM or UVM has refused."""

  def __init__(self, name: str, code: int) -> None:
    super().__init__(f"{name}: {status.STATUS[code][0]}")
    self.code = code


class Client:
  """One client with a device: `flags` choose how its address space is made, `uvm` or RM's own mapping."""

  def __init__(self, machine: NvMachine | None = None, *, gpu: int = 0, managed: bool = True, card: str = "sm_90",
               seed: int = 0) -> None:
    self.machine = machine or NvMachine(card, seed=seed, vram=64 * MIB, system_memory=64 * MIB, tracing=True)
    self.port = NvPort(self.machine)
    self.card = self.machine.gpus[gpu].card
    self.managed = managed
    self.ctl = self.port.open("/dev/nvidiactl")
    self.gpu_fd = self.port.open(f"/dev/nvidia{gpu}")
    self.port.ioctl(self.gpu_fd, REQUESTS[rm.nv_ioctl_register_fd_t], rm.nv_ioctl_register_fd_t(ctl_fd=self.ctl))
    self.index = gpu
    self.root = self.alloc(0, 0, alloc.NV01_ROOT_CLIENT)
    self.device = self.alloc(self.root, 0x100 + gpu, alloc.NV01_DEVICE_0, alloc.NV0080_ALLOC_PARAMETERS(deviceId=gpu))
    self.subdevice = self.alloc(self.device, 0x200 + gpu, alloc.NV20_SUBDEVICE_0, alloc.NV2080_ALLOC_PARAMETERS())
    flags = alloc.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED if managed else 0
    self.va = self.alloc(self.device, 0, alloc.FERMI_VASPACE_A, alloc.NV_VASPACE_ALLOCATION_PARAMETERS(flags=flags))
    gid = control.NV2080_CTRL_GPU_GET_GID_INFO_PARAMS(flags=control.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY)
    self.control(self.subdevice, gid)
    self.uuid = bytes(gid.data[:16])
    self.uvm_fd = self.port.open("/dev/nvidia-uvm")
    self.next = 0x2_0000_0000 + (gpu << 34)
    if managed:
      self.uvm(uvm.UVM_INITIALIZE_PARAMS())
      self.uvm(uvm.UVM_REGISTER_GPU_PARAMS(gpu_uuid=self.named(), rmCtrlFd=self.ctl, hClient=self.root))
      self.uvm(uvm.UVM_REGISTER_GPU_VASPACE_PARAMS(gpuUuid=self.named(), rmCtrlFd=self.ctl, hClient=self.root,
                                                   hVaSpace=self.va))

  def named(self) -> uvm.nv_uuid:
    return uvm.nv_uuid((ctypes.c_uint8 * 16)(*self.uuid))

  # ---- calls

  def call(self, argument: Any, fd: int | None = None) -> Any:
    """An ioctl of RM; raises Status. What is in the place for it before says nothing."""
    inner = getattr(argument, "params", argument)
    place = inner if hasattr(inner, "status") else argument
    place.status = 0xBAD
    self.port.ioctl(self.ctl if fd is None else fd, REQUESTS[type(argument)], argument)
    if place.status: raise Status(type(argument).__name__, place.status)
    return argument

  def alloc(self, parent: int, handle: int, class_id: int, params: Any = None) -> int:
    """A new object's handle."""
    p = rm.NVOS64_PARAMETERS(hRoot=getattr(self, "root", 0), hObjectParent=parent, hObjectNew=handle, hClass=class_id,
                             pAllocParms=ctypes.addressof(params) if params is not None else 0,
                             paramsSize=ctypes.sizeof(params) if params is not None else 0)
    return int(self.call(p).hObjectNew)

  def free(self, handle: int) -> None:
    self.call(rm.NVOS00_PARAMETERS(hRoot=self.root, hObjectOld=handle))

  def control(self, handle: int, params: Any, command: int | None = None) -> Any:
    """A control command, by its parameters' struct unless it is named."""
    if command is None:
      command = next(c for c, row in control.CONTROLS.items() if row.struct is type(params))
    self.call(rm.NVOS54_PARAMETERS(hClient=self.root, hObject=handle, cmd=command,
                                   params=ctypes.addressof(params) if params is not None else 0,
                                   paramsSize=ctypes.sizeof(params) if params is not None else 0))
    return params

  def uvm(self, params: Any) -> Any:
    """A call of UVM, by its parameters' struct; raises Status."""
    number = next(n for n, row in uvm.IOCTLS.items() if row.struct is type(params))
    params.rmStatus = 0xBAD
    self.port.ioctl(self.uvm_fd, number, params)
    if params.rmStatus: raise Status(type(params).__name__, params.rmStatus)
    return params

  # ---- memory

  def memory(self, size: int, *, system: bool = False) -> int:
    """A memory object."""
    place = alloc.NVOS32_ATTR_LOCATION_PCI if system else alloc.NVOS32_ATTR_LOCATION_VIDMEM
    p = alloc.NV_MEMORY_ALLOCATION_PARAMS(owner=self.root, size=size, attr=place << alloc.NVOS32_ATTR_LOCATION[1])
    return self.alloc(self.device, 0, alloc.NV01_MEMORY_SYSTEM if system else alloc.NV01_MEMORY_LOCAL_USER, p)

  def map(self, memory: int, size: int, address: int | None = None, offset: int = 0) -> int:
    """Into the GPU's address space; the address."""
    if address is None: address, self.next = self.next, self.next + -(-size // (2 * MIB)) * 2 * MIB
    if self.managed:
      self.uvm(uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=address, length=size))
      self.map_range(memory, size, address, offset)
    else:
      fixed = rm.NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << rm.NVOS46_FLAGS_DMA_OFFSET_FIXED[1]
      self.call(rm.NVOS46_PARAMETERS(hClient=self.root, hDevice=self.device, hDma=self.va, hMemory=memory,
                                     offset=offset, length=size, flags=fixed, dmaOffset=address))
    return address

  def map_range(self, memory: int, size: int, address: int, offset: int = 0, fd: int | None = None) -> None:
    p = uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(base=address, length=size, offset=offset, gpuAttributesCount=1,
                                               rmCtrlFd=self.ctl if fd is None else fd, hClient=self.root,
                                               hMemory=memory)
    p.perGpuAttributes[0].gpuUuid = self.named()
    self.uvm(p)

  def cpu(self, memory: int, size: int, *, system: bool = False) -> int:
    """Into this process; the address."""
    fd = self.port.open("/dev/nvidiactl" if system else f"/dev/nvidia{self.index}")
    p = rm.nv_ioctl_nvos33_parameters_with_fd(fd=fd)
    p.params.hClient, p.params.hDevice, p.params.hMemory = self.root, self.device, memory
    p.params.length = size
    self.call(p)
    return self.port.mmap(fd, size)

  def both(self, size: int, *, system: bool = True) -> tuple[int, memoryview]:
    """Memory that both see: (GPU's address, bytes)."""
    size = -(-size // 65536) * 65536
    memory = self.memory(size, system=system)
    address = self.map(memory, size)
    return address, self.port.memory(self.cpu(memory, size, system=system), size)

  def private(self, size: int) -> tuple[int, int]:
    """Anonymous pages of this process: (address, memory object), for the GPU too."""
    at = self.port.mmap(-1, size, protection=Protection.READ | Protection.WRITE)
    p = self.pages(at, size)
    self.call(p, self.gpu_fd)
    return at, int(p.params.hObjectNew)

  def pages(self, at: int, size: int, handle: int = 0x0D15C) -> rm.nv_ioctl_nvos02_parameters_with_fd:
    """The call that registers pages of this process."""
    p = rm.nv_ioctl_nvos02_parameters_with_fd(fd=-1)
    p.params.hRoot, p.params.hObjectParent, p.params.hObjectNew = self.root, self.device, handle
    p.params.hClass, p.params.pMemory, p.params.limit = alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, at, size - 1
    p.params.flags = flags(NVOS02_FLAGS_PHYSICALITY=rm.NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS,
                           NVOS02_FLAGS_COHERENCY=rm.NVOS02_FLAGS_COHERENCY_CACHED,
                           NVOS02_FLAGS_MAPPING=rm.NVOS02_FLAGS_MAPPING_NO_MAP)
    return p

  # ---- channels

  def group(self, engine: int) -> int:
    return self.alloc(self.device, 0, alloc.KEPLER_CHANNEL_GROUP_A, alloc.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(
      hVASpace=self.va, engineType=engine))

  def channel(self, kind: str = "compute", group: int | None = None, engine: int | None = None) -> Work:
    """A channel with its engine's object, scheduled."""
    if engine is None:
      engine = alloc.NV2080_ENGINE_TYPE_GR0 if kind == "compute" else alloc.NV2080_ENGINE_TYPE_COPY0
    return Work(self, kind, self.group(engine) if group is None else group, engine)


class Work:
  """A channel with its rings in memory that this process sees."""

  def __init__(self, client: Client, kind: str, group: int, engine: int) -> None:
    self.client, self.kind, self.group = client, kind, group
    c = client
    ring, self.ring = c.both(ENTRIES * 8)
    size = 65536
    self.userd_memory = c.memory(size)
    self.userd = Userd.from_buffer(c.port.memory(c.cpu(self.userd_memory, size), size))
    self.error_memory = c.memory(4096, system=True)
    self.errors = c.port.memory(c.cpu(self.error_memory, 4096, system=True), 4096)
    self.notifier = Notification.from_buffer(self.errors)
    self.params = alloc.NV_CHANNEL_ALLOC_PARAMS(gpFifoOffset=ring, gpFifoEntries=ENTRIES, engineType=engine,
                                                hObjectError=self.error_memory)
    self.params.hUserdMemory[0] = self.userd_memory
    self.handle = c.alloc(group, 0, c.card.channel_class, self.params)
    self.object = c.alloc(self.handle, 0, c.card.compute_class if kind == "compute" else c.card.copy_class)
    if kind == "compute": self.copier = c.alloc(self.handle, 0, c.card.copy_class)
    c.control(group, control.NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS(bEnable=1), control.NVA06C_CTRL_CMD_GPFIFO_SCHEDULE)
    self.token = c.control(self.handle, control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS()).workSubmitToken
    usermode = next(u for u in (alloc.HOPPER_USERMODE_A, alloc.AMPERE_USERMODE_A, alloc.BLACKWELL_USERMODE_A)
                    if u in c.card.classes)
    if not hasattr(c, "doorbell_page"):
      page = c.alloc(c.subdevice, 0, usermode)
      c.doorbell_page = c.cpu(page, alloc.NVC361_NV_USERMODE__SIZE)  # type: ignore[attr-defined]
    self.door: int = c.doorbell_page  # type: ignore[attr-defined]
    self.commands, self.words = c.both(65536 * 4)
    self.at = 0

  def submit(self, words: Sequence[int]) -> None:
    """Words behind the next entry, and the doorbell."""
    if self.at + 4 * len(words) > len(self.words): self.at = 0
    self.words[self.at:self.at + 4 * len(words)] = struct.pack(f"<{len(words)}I", *words)
    put = self.userd.GPPut
    entry = gpfifo.Segment(self.commands + self.at, len(words)).encode()
    self.ring[put * 8:put * 8 + 8] = entry.to_bytes(8, "little")
    self.at += 4 * len(words)
    self.userd.GPPut = (put + 1) % ENTRIES
    self.client.port.doorbell(self.door + NOTIFY, self.token, 4)

  def send(self, subchannel: int, *sent: Method) -> None:
    self.submit(methods.send(subchannel, *sent))

  def launch(self, program: int, bank: int, bank_size: int, grid: tuple[int, int, int], block: tuple[int, int, int],
             where: tuple[int, memoryview]) -> None:
    """A QMD at a place, scheduled."""
    c = self.client
    made = qmd.new(c.card.compute_class, c.card.qmd_versions[-1])
    if qmd.has(type(made), "QMD_TYPE"): qmd.write(made, "QMD_TYPE", 2)
    values = dict(zip(("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH"), grid)) | {
      f"CTA_THREAD_DIMENSION{n}": v for n, v in enumerate(block)} | {
      "PROGRAM_ADDRESS": program, "REGISTER_COUNT": 32, "SHARED_MEMORY_SIZE": 1024}
    for name, value in values.items(): qmd.write(made, name, value)
    for name, value in (("VALID", 1), ("ADDR", bank), ("SIZE", bank_size)):
      qmd.write(made, f"CONSTANT_BUFFER_{name}", value, 0)
    words = qmd.encode(made)
    where[1][:4 * len(words)] = struct.pack(f"<{len(words)}I", *words)
    m = methods.declared(c.card.compute_class)
    self.send(1, m.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=where[0] >> 8),
              m.SEND_SIGNALING_PCAS2_B(PCAS_ACTION=m.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.INVALIDATE_COPY_SCHEDULE))


def upload(client: Client, ptx: str, kernel: str, size: int = 12) -> int:
  """A program in video memory; the address of its text."""
  image = cubin(ptx, kernel, size=size)
  address, view = client.both(len(image), system=False)
  view[:len(image)] = image
  return address + 128
