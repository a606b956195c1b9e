"""One process's client of NVIDIA's resource manager (RM) and of UVM: calls, objects, memory. Shared by all GPUs that
the process opens through one port, found with `Rm.of(port)`.

Objects stand below each other: client, device, subdevice, address space, channel group, channel. Memory is an object
too; where a GPU sees it is UVM's business (external ranges, which the client places), where the process sees it that
of mmap on a file that NV_ESC_RM_MAP_MEMORY has prepared. So a buffer has two addresses, the GPU's and the host's.
The GPU's are this module's to give out, and are the same on all GPUs of the process.

The GPU's address is not the host's for a reason: pushbuffers, semaphores and QMDs are addressed by
40 bits, where no process has room for sure. So UVM's external ranges are placed below 1 TiB for
what channels read.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from tinyhw.arch.nv import NV_ARCHES, NvArch
from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_control, nv_rm_status, nv_uvm
from tinyhw.core.errors import DeviceError, DriverError, InvalidArgument, OutOfMemory, Unsupported
from tinyhw.core.locks import lock
from tinyhw.core.memory import Allocator
from tinyhw.core.port import Port
from tinyhw.drive.allocate import round_up
from tinyhw.drive.kernellog import KernelLog
from tinyhw.wire import rm, uvm

CTL: Final = "/dev/nvidiactl"
UVM: Final = "/dev/nvidia-uvm"
PAGE: Final = 4096
BIG_PAGE: Final = 64 << 10   # of video memory
HUGE_PAGE: Final = 2 << 20   # the same, of large buffers
USERMODE_BYTES: Final = nv_rm_alloc.NVC361_NV_USERMODE__SIZE
_GUARD: Final = 64 << 10     # addresses behind each buffer that stay unmapped: a kernel that runs over its end faults
# Pushbuffers, semaphores and QMDs have addresses of 40 bits (GP_ENTRY1.GET_HI, SEM_ADDR_HI, QMD_ADDRESS_SHIFTED8).
_LOW: Final = (64 << 30, 1 << 40)
_HIGH: Final = (1 << 40, 0x7000_0000_0000)
SHARED_WINDOW: Final = 0x7294_0000_0000  # where generic addresses reach shared and local memory: no buffer is there
LOCAL_WINDOW: Final = 0x7293_0000_0000
_WINDOW: Final = 1 << 32
_PAGES: Final = 0xD15C_0000  # handles of registered pages, which this client chooses
_SPACE: Final = (0x1000, 0x1FFF_FFFB_0000)  # first address and size of a GPU's address space
_CARDS: Final = 32
_NO_DEVICE: Final = ("load NVIDIA's kernel driver and give this user access to /dev/nvidia*, "
                     "or set MOCKGPU=sm_90 to use a mock GPU")
_ATTR: Final = nv_rm_alloc


class Aperture(Enum):
  """Where memory is: of the GPU, or of the system, cached by the processor and snooped by the GPU; USER are pages that
  the process has already."""
  VRAM = "video"
  SYSTEM = "system"
  USER = "user"


@dataclass(eq=False)
class Buffer:
  """Memory of one GPU, or of the system for it. `address` is the GPU's, `host` the process's (0: it has none)."""
  address: int
  size: int
  kind: Aperture
  handle: int
  gpu: Gpu
  span: int
  low: bool
  host: int = 0
  memory: memoryview | None = field(default=None, repr=False)
  mapped: set[bytes] = field(default_factory=set)  # UUIDs of the GPUs that see it

  def bytes(self) -> memoryview:
    """The host's view. Raises DeviceError for memory that it does not see."""
    if self.memory is None:
      raise DeviceError(f"{self.kind.value} buffer at {self.address:#x} is not visible to the host")
    return self.memory


@dataclass(eq=False)
class Gpu:
  """An opened GPU: its objects by handle, and what RM says of it. `tpcs` are those that its layout has room for."""
  index: int
  gpu_id: int
  minor: int
  bus: str
  fd: int
  device: int
  subdevice: int
  uuid: bytes
  name: str
  arch: NvArch
  classes: frozenset[int]
  engines: tuple[int, ...]
  sms: int
  tpcs: int
  warps_per_sm: int
  vram_bytes: int
  va_space: int = 0
  usermode: int = 0  # the process's address of the doorbell's page

  def identity(self) -> Any:
    """The UUID as UVM takes it."""
    return nv_uvm.nv_uuid((ctypes.c_uint8 * 16)(*self.uuid))


@dataclass(eq=False)
class OsEvent:
  """An event of RM, and the file that tells of it."""
  fd: int
  handle: int


@dataclass(frozen=True)
class Card:
  """A row of NV_ESC_CARD_INFO."""
  gpu_id: int
  minor: int
  bus: str


_OPEN: WeakKeyDictionary[Port, Rm] = WeakKeyDictionary()
_OPENING = lock()


class Rm:
  """See the module. Threads may share it: `lock` is held over calls that belong together."""

  @classmethod
  def of(cls, port: Port) -> Rm:
    """The one of this port. After a fork the child has one of its own: a client is its process's."""
    with _OPENING:
      found = _OPEN.get(port)
      if found is None or found.pid != port.pid(): found = _OPEN[port] = cls(port)
      return found

  def __init__(self, port: Port) -> None:
    self._port, self.pid = ref(port), port.pid()
    self.lock = lock()
    self.fd = self._open(CTL)
    self.version = self._check_version()
    self.cards = self._read_cards()
    self.root = 0
    self.root = self.alloc(0, nv_rm_alloc.NV01_ROOT_CLIENT)
    self.uvm_fd = self._open(UVM)
    self.uvm(nv_uvm.UVM_INITIALIZE, nv_uvm.UVM_INITIALIZE_PARAMS())
    self._mm_fd = self._open(UVM)  # holds the process's memory for as long as the first one lives
    self.uvm(nv_uvm.UVM_MM_INITIALIZE, nv_uvm.UVM_MM_INITIALIZE_PARAMS(uvmFd=self.uvm_fd), fd=self._mm_fd,
             accepts=(nv_rm_status.NV_WARN_NOTHING_TO_DO,))
    self.gpus: dict[int, Gpu] = {}
    self.buffers: set[Buffer] = set()
    self._low = Allocator(_LOW[0], _LOW[1] - _LOW[0], name="GPU addresses below 1 TiB")
    self._high = Allocator(_HIGH[0], _HIGH[1] - _HIGH[0], name="GPU addresses")
    self._peers: set[frozenset[bytes]] = set()
    self._pages = 0  # how often pages of the process were registered
    self._log = KernelLog(("NVRM",))
    self.kernel_log()  # what was told before is not of this process

  @property
  def port(self) -> Port:
    """The port that it was opened through."""
    port = self._port()
    if port is None: raise DeviceError("the port is gone", where=CTL)
    return port

  def _open(self, path: str) -> int:
    try: return self.port.open(path)
    except OSError as e:
      raise DeviceError(f"cannot open {path}: {os.strerror(e.errno) if e.errno else e}", where="NV",
                        hint=_NO_DEVICE) from None

  # ---- calls

  def call(self, argument: Any, fd: int | None = None) -> Any:
    """An ioctl whose request is told by its struct. Raises DriverError for an errno; a status is the caller's."""
    number = rm.request(type(argument))
    try: self.port.ioctl(self.fd if fd is None else fd, number, argument)
    except OSError as e: raise DriverError(rm.name(number), e.errno or 0) from None
    return argument

  def uvm(self, number: int, argument: Any, *, fd: int | None = None, accepts: tuple[int, ...] = ()) -> Any:
    """A call of UVM. Raises DriverError or DeviceError."""
    try: self.port.ioctl(self.uvm_fd if fd is None else fd, number, argument)
    except OSError as e: raise DriverError(uvm.name(number), e.errno or 0) from None
    self.check(uvm.name(number), int(argument.rmStatus), accepts)
    return argument

  def check(self, what: str, status: int, accepts: tuple[int, ...] = ()) -> None:
    """Raise for a status that is no success."""
    if status in (nv_rm_status.NV_OK, *accepts): return
    if status in (nv_rm_status.NV_ERR_NO_MEMORY, nv_rm_status.NV_ERR_INSUFFICIENT_RESOURCES):
      raise OutOfMemory(what, 0, 0)
    raise DeviceError(f"{what} failed: {rm.status_name(status)}: {rm.status_text(status)}", where="NV")

  def alloc(self, parent: int, class_id: int, params: Any = None, what: str = "") -> int:
    """A new object below `parent`; returns its handle."""
    argument = nv_rm.NVOS64_PARAMETERS(
      hRoot=self.root, hObjectParent=parent or self.root, hClass=class_id,
      pAllocParms=ctypes.addressof(params) if params is not None else 0,
      paramsSize=ctypes.sizeof(params) if params is not None else 0)
    self.call(argument)
    self.check(what or f"NV_ESC_RM_ALLOC of {rm.class_name(class_id)}", int(argument.status))
    return int(argument.hObjectNew)

  def control(self, handle: int, command: int, params: Any) -> Any:
    """A control command to an object; `params` is changed in place."""
    argument = nv_rm.NVOS54_PARAMETERS(hClient=self.root, hObject=handle, cmd=command,
                                       params=ctypes.addressof(params), paramsSize=ctypes.sizeof(params))
    self.call(argument)
    self.check(rm.command_name(command), int(argument.status))
    return params

  def free_object(self, handle: int) -> None:
    """Free an object and all below it."""
    argument = nv_rm.NVOS00_PARAMETERS(hRoot=self.root, hObjectParent=self.root, hObjectOld=handle)
    self.call(argument)
    self.check("NV_ESC_RM_FREE", int(argument.status))

  # ---- GPUs

  def _check_version(self) -> str:
    """The driver's version. Raises Unsupported for one whose structs are not those that are declared here."""
    p = nv_rm.nv_ioctl_rm_api_version_t(cmd=nv_rm.NV_RM_API_VERSION_CMD_QUERY)
    self.call(p)
    found = bytes(p.versionString).split(b"\0")[0].decode("ascii", "replace")
    if found.partition(".")[0] != nv_rm.VERSION.partition(".")[0]:
      raise Unsupported("driver", found or "without a version", where=CTL,
                        hint=f"structs are those of {nv_rm.VERSION}; use a driver of the same branch")
    return found

  def _read_cards(self) -> list[Card]:
    rows = (nv_rm.nv_ioctl_card_info_t * _CARDS)()
    number = rm.request(nv_rm.nv_ioctl_card_info_t)
    try: self.port.ioctl(self.fd, number, rows)
    except OSError as e: raise DriverError(rm.name(number), e.errno or 0) from None
    return [Card(int(r.gpu_id), int(r.minor_number),
                 f"{r.pci_info.domain:04x}:{r.pci_info.bus:02x}:{r.pci_info.slot:02x}.{r.pci_info.function}")
            for r in rows if r.valid]

  def open_gpu(self, index: int) -> Gpu:
    """The GPU of that place, opened once. Raises InvalidArgument or DeviceError."""
    with self.lock:
      if (known := self.gpus.get(index)) is not None: return known
      if not 0 <= index < len(self.cards):
        raise DeviceError(f"no GPU {index}: this machine has {len(self.cards)}", where="NV", hint=_NO_DEVICE)
      gpu = self._open_gpu(index, self.cards[index])
      self._make_space(gpu)
      self.gpus[index] = gpu
      return gpu

  def _open_gpu(self, index: int, card: Card) -> Gpu:
    c = nv_rm_control
    fd = self._open(f"/dev/nvidia{card.minor}")
    self.call(nv_rm.nv_ioctl_register_fd_t(ctl_fd=self.fd), fd)
    info = self.control(self.root, c.NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2,
                        c.NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS(gpuId=card.gpu_id))
    device = self.alloc(self.root, nv_rm_alloc.NV01_DEVICE_0, nv_rm_alloc.NV0080_ALLOC_PARAMETERS(
      deviceId=info.deviceInstance, hClientShare=self.root,
      vaMode=nv_rm_alloc.NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES))
    subdevice = self.alloc(device, nv_rm_alloc.NV20_SUBDEVICE_0,
                           nv_rm_alloc.NV2080_ALLOC_PARAMETERS(subDeviceId=info.subDeviceInstance))
    gid = self.control(subdevice, c.NV2080_CTRL_CMD_GPU_GET_GID_INFO, c.NV2080_CTRL_GPU_GET_GID_INFO_PARAMS(
      flags=c.NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY))
    named = self.control(subdevice, c.NV2080_CTRL_CMD_GPU_GET_NAME_STRING, c.NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS())
    classes = self.control(device, c.NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2, c.NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS())
    engines = self.control(subdevice, c.NV2080_CTRL_CMD_GPU_GET_ENGINES_V2, c.NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS())
    sm, gpcs, tpcs, sms, subs, warps = self._gr_info(subdevice, (
      c.NV2080_CTRL_GR_INFO_INDEX_SM_VERSION, c.NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS,
      c.NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC, c.NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC,
      c.NV2080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT, c.NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM))
    name = bytes(named.gpuNameString.ascii).split(b"\0")[0].decode("ascii", "replace")
    return Gpu(index, card.gpu_id, card.minor, card.bus, fd, device, subdevice, bytes(gid.data[:16]), name,
               arch_of(sm, name), frozenset(classes.classList[:classes.numClasses]),
               tuple(engines.engineList[:engines.engineCount]), subs * sms, gpcs * tpcs, warps,
               self.fb_info(subdevice, c.NV2080_CTRL_FB_INFO_INDEX_RAM_SIZE) << 10)

  def _gr_info(self, subdevice: int, indices: Sequence[int]) -> list[int]:
    rows = (nv_rm_control.NV2080_CTRL_GR_INFO * len(indices))()
    for row, index in zip(rows, indices, strict=True): row.index = index
    self.control(subdevice, nv_rm_control.NV2080_CTRL_CMD_GR_GET_INFO, nv_rm_control.NV2080_CTRL_GR_GET_INFO_PARAMS(
      grInfoListSize=len(indices), grInfoList=ctypes.addressof(rows)))
    return [int(r.data) for r in rows]

  def fb_info(self, subdevice: int, index: int) -> int:
    """A number of the frame buffer, in KiB for sizes."""
    p = nv_rm_control.NV2080_CTRL_FB_GET_INFO_V2_PARAMS(fbInfoListSize=1)
    p.fbInfoList[0].index = index
    self.control(subdevice, nv_rm_control.NV2080_CTRL_CMD_FB_GET_INFO_V2, p)
    return int(p.fbInfoList[0].data)

  def is_graphics_copy(self, gpu: Gpu, engine: int) -> bool:
    """Whether a copy engine belongs to the graphics engine's runlist (GRCE), or RM says nothing of it."""
    p = nv_rm_control.NV2080_CTRL_CE_GET_CAPS_V2_PARAMS(ceEngineType=engine)
    try: self.control(gpu.subdevice, nv_rm_control.NV2080_CTRL_CMD_CE_GET_CAPS_V2, p)
    except DeviceError: return True
    byte, mask = nv_rm_control.NV2080_CTRL_CE_CAPS_CE_GRCE
    return bool(p.capsTbl[byte] & mask)

  def copy_units(self, gpu: Gpu, engine: int) -> int:
    """How many physical copy engines (PCEs) a copy engine has, as far as RM says."""
    p = nv_rm_control.NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS(ceEngineType=engine)
    try: self.control(gpu.subdevice, nv_rm_control.NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK, p)
    except DeviceError: return 0
    return int(p.pceMask).bit_count()

  def _make_space(self, gpu: Gpu) -> None:
    """An address space whose page tables UVM has, the GPU known to UVM, the doorbell's page."""
    a = nv_rm_alloc
    flags = a.NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING | a.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED
    gpu.va_space = self.alloc(gpu.device, a.FERMI_VASPACE_A, a.NV_VASPACE_ALLOCATION_PARAMETERS(
      index=a.NV_VASPACE_ALLOCATION_INDEX_GPU_NEW, flags=flags, vaBase=_SPACE[0], vaSize=_SPACE[1]))
    self.uvm(nv_uvm.UVM_REGISTER_GPU, nv_uvm.UVM_REGISTER_GPU_PARAMS(
      gpu_uuid=gpu.identity(), rmCtrlFd=self.fd, hClient=self.root))
    self.uvm(nv_uvm.UVM_REGISTER_GPU_VASPACE, nv_uvm.UVM_REGISTER_GPU_VASPACE_PARAMS(
      gpuUuid=gpu.identity(), rmCtrlFd=self.fd, hClient=self.root, hVaSpace=gpu.va_space))
    class_id = gpu.arch.usermode_class
    params = a.NV_HOPPER_USERMODE_A_PARAMS(bBar1Mapping=1) if a.PARAMETERS.get(class_id) is not None else None
    usermode = self.alloc(gpu.subdevice, class_id, params)
    gpu.usermode = self._map_host(gpu, gpu.subdevice, usermode, USERMODE_BYTES, f"/dev/nvidia{gpu.minor}")

  # ---- memory

  def take(self, gpu: Gpu, size: int, kind: Aperture, *, host: bool | None = None, low: bool = False,
           contiguous: bool = False, mapped: bool = True) -> Buffer:
    """Allocate and map for `gpu`. `size` grows to whole pages. Host-visible unless it is VRAM (or as `host` says);
    `low` for what the host engine and launches address by 40 bits. Not `mapped`: for RM's own use, without address."""
    if size <= 0: raise InvalidArgument(f"alloc of {size} bytes", where=gpu.name)
    visible = kind is Aperture.SYSTEM if host is None else host
    page = PAGE if kind is Aperture.SYSTEM else HUGE_PAGE if size >= HUGE_PAGE else BIG_PAGE
    size = round_up(size, page)
    with self.lock:
      handle = self._memory(gpu, size, kind, page, contiguous)
      buffer = Buffer(0, size, kind, handle, gpu, 0, low)
      try:
        if mapped: self._place(buffer, page)
        if visible: self._show(buffer)
      except BaseException:
        self._give(buffer)
        raise
      self.buffers.add(buffer)
      return buffer

  def register_host(self, gpu: Gpu, address: int, size: int) -> Buffer:
    """Let a GPU see whole pages of this process at their own address. They stay the caller's, who unmaps them only when
    the buffer was given back."""
    if address % PAGE or size % PAGE or size <= 0:
      raise InvalidArgument(f"{size} bytes at {address:#x} are not whole pages", where="register_host")
    if address < _HIGH[1] or any(w < address + size and address < w + _WINDOW for w in (LOCAL_WINDOW, SHARED_WINDOW)):
      raise InvalidArgument(f"{size:#x} bytes at {address:#x} are where the driver has addresses of its own",
                            where="register_host", hint="register pages of mmap")
    with self.lock:
      self._pages += 1
      p = nv_rm.nv_ioctl_nvos02_parameters_with_fd(fd=-1)
      q, handle = p.params, _PAGES + self._pages
      q.hRoot, q.hObjectParent, q.hObjectNew = self.root, gpu.device, handle  # RM does not tell one that it chooses
      q.hClass, q.pMemory, q.limit = nv_rm_alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, address, size - 1
      q.flags = rm.flags(NVOS02_FLAGS_PHYSICALITY=nv_rm.NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS,
                         NVOS02_FLAGS_LOCATION=nv_rm.NVOS02_FLAGS_LOCATION_PCI,
                         NVOS02_FLAGS_COHERENCY=nv_rm.NVOS02_FLAGS_COHERENCY_CACHED,
                         NVOS02_FLAGS_MAPPING=nv_rm.NVOS02_FLAGS_MAPPING_NO_MAP)
      self.call(p, gpu.fd)
      self.check("NV_ESC_RM_ALLOC_MEMORY of NV01_MEMORY_SYSTEM_OS_DESCRIPTOR", int(q.status))
      buffer = Buffer(0, size, Aperture.USER, handle, gpu, 0, False)
      try:
        self.uvm(nv_uvm.UVM_CREATE_EXTERNAL_RANGE, nv_uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(base=address, length=size))
        buffer.address = address
        self._map_to(buffer, gpu)
      except BaseException:
        self._give(buffer)
        raise
      self.buffers.add(buffer)
      return buffer

  def _memory(self, gpu: Gpu, size: int, kind: Aperture, page: int, contiguous: bool) -> int:
    system = kind is Aperture.SYSTEM
    sizes = {PAGE: _ATTR.NVOS32_ATTR_PAGE_SIZE_4KB, BIG_PAGE: _ATTR.NVOS32_ATTR_PAGE_SIZE_BIG,
             HUGE_PAGE: _ATTR.NVOS32_ATTR_PAGE_SIZE_HUGE}
    attr = rm.flags(
      NVOS32_ATTR_LOCATION=_ATTR.NVOS32_ATTR_LOCATION_PCI if system else _ATTR.NVOS32_ATTR_LOCATION_VIDMEM,
      NVOS32_ATTR_PAGE_SIZE=sizes[page],
      NVOS32_ATTR_COHERENCY=_ATTR.NVOS32_ATTR_COHERENCY_WRITE_BACK if system else
      _ATTR.NVOS32_ATTR_COHERENCY_WRITE_COMBINE,
      NVOS32_ATTR_PHYSICALITY=_ATTR.NVOS32_ATTR_PHYSICALITY_CONTIGUOUS if contiguous else
      _ATTR.NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS)
    huge = _ATTR.NVOS32_ATTR2_PAGE_SIZE_HUGE_2MB if page == HUGE_PAGE else _ATTR.NVOS32_ATTR2_PAGE_SIZE_HUGE_DEFAULT
    cached = _ATTR.NVOS32_ATTR2_GPU_CACHEABLE_NO if system else _ATTR.NVOS32_ATTR2_GPU_CACHEABLE_YES
    attr2 = rm.flags(NVOS32_ATTR2_GPU_CACHEABLE=cached, NVOS32_ATTR2_PAGE_SIZE_HUGE=huge)
    flags = _ATTR.NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE | _ATTR.NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED
    if not system: flags |= _ATTR.NVOS32_ALLOC_FLAGS_PERSISTENT_VIDMEM | _ATTR.NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT
    params = nv_rm_alloc.NV_MEMORY_ALLOCATION_PARAMS(
      owner=self.root, type=nv_rm_alloc.NVOS32_TYPE_IMAGE, flags=flags, attr=attr, attr2=attr2, size=size,
      alignment=page)
    class_id = nv_rm_alloc.NV01_MEMORY_SYSTEM if system else nv_rm_alloc.NV01_MEMORY_LOCAL_USER
    try: return self.alloc(gpu.device, class_id, params)
    except OutOfMemory:
      if system:
        raise DeviceError(f"the kernel gives no {size:,} bytes of system memory to the GPU", where=gpu.name) from None
      free = self.fb_info(gpu.subdevice, nv_rm_control.NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE) << 10
      raise OutOfMemory(f"{gpu.name} video memory", size, free, hint="free buffers, or use smaller ones") from None

  def _place(self, buffer: Buffer, page: int) -> None:
    """Give the buffer addresses, and its GPU page tables for them."""
    addresses = self._low if buffer.low else self._high
    span = round_up(buffer.size + _GUARD, page)
    buffer.address, buffer.span = addresses.alloc(span, max(page, BIG_PAGE)), span
    self.uvm(nv_uvm.UVM_CREATE_EXTERNAL_RANGE, nv_uvm.UVM_CREATE_EXTERNAL_RANGE_PARAMS(
      base=buffer.address, length=buffer.size))
    self._map_to(buffer, buffer.gpu)

  def map_to(self, buffer: Buffer, gpu: Gpu) -> None:
    """Let another GPU see the buffer at the same address."""
    with self.lock: self._map_to(buffer, gpu)

  def _map_to(self, buffer: Buffer, gpu: Gpu) -> None:
    if gpu.uuid in buffer.mapped: return
    p = nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS(
      base=buffer.address, length=buffer.size, gpuAttributesCount=1, rmCtrlFd=self.fd, hClient=self.root,
      hMemory=buffer.handle)
    p.perGpuAttributes[0].gpuUuid = gpu.identity()
    p.perGpuAttributes[0].gpuMappingType = nv_uvm.UvmGpuMappingTypeReadWriteAtomic
    self.uvm(nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION, p)
    buffer.mapped.add(gpu.uuid)

  def _show(self, buffer: Buffer) -> None:
    path = CTL if buffer.kind is Aperture.SYSTEM else f"/dev/nvidia{buffer.gpu.minor}"
    buffer.host = self._map_host(buffer.gpu, buffer.gpu.device, buffer.handle, buffer.size, path)
    buffer.memory = self.port.memory(buffer.host, buffer.size)

  def _map_host(self, gpu: Gpu, parent: int, handle: int, size: int, path: str) -> int:
    """Map an object into the process, through a file of its own; returns the address."""
    fd = self._open(path)
    try:
      if path != CTL: self.call(nv_rm.nv_ioctl_register_fd_t(ctl_fd=self.fd), fd)
      p = nv_rm.nv_ioctl_nvos33_parameters_with_fd(fd=fd)
      p.params.hClient, p.params.hDevice, p.params.hMemory, p.params.length = self.root, parent, handle, size
      self.call(p)
      self.check("NV_ESC_RM_MAP_MEMORY", int(p.params.status))
      try: return self.port.mmap(fd, size)
      except OSError as e:
        raise DeviceError(f"cannot map {size:,} bytes of {path}: {e.strerror}", where=gpu.name) from None
    finally: self.port.close(fd)  # the mapping keeps the file

  def give(self, buffer: Buffer) -> None:
    """Take the buffer out of all page tables and give its memory back."""
    with self.lock:
      self.buffers.discard(buffer)
      self._give(buffer)

  def _give(self, buffer: Buffer) -> None:
    if buffer.host:
      buffer.memory, host, buffer.host = None, buffer.host, 0
      self.port.munmap(host, buffer.size)
    if buffer.address:
      self.uvm(nv_uvm.UVM_FREE, nv_uvm.UVM_FREE_PARAMS(base=buffer.address, length=buffer.size))
      if buffer.kind is not Aperture.USER: (self._low if buffer.low else self._high).free(buffer.address)
      buffer.address, buffer.span = 0, 0
      buffer.mapped.clear()
    if buffer.handle: self.free_object(buffer.handle)
    buffer.handle = 0

  # ---- interrupts

  def open_event(self, gpu: Gpu) -> OsEvent:
    """A file that becomes readable at each interrupt of the GPU that its channels ask for."""
    a, fd = nv_rm_alloc, self._open(CTL)
    event = OsEvent(fd, 0)
    try:
      p = nv_rm.nv_ioctl_alloc_os_event_t(hClient=self.root, hDevice=gpu.device, fd=fd)
      self.call(p, fd)
      self.check("NV_ESC_ALLOC_OS_EVENT", int(p.Status))
      event.handle = self.alloc(gpu.subdevice, a.NV01_EVENT_OS_EVENT, a.NV0005_ALLOC_PARAMETERS(
        hParentClient=self.root, hSrcResource=gpu.subdevice, hClass=a.NV01_EVENT_OS_EVENT, data=fd,
        notifyIndex=a.NV2080_NOTIFIERS_FIFO_EVENT_MTHD | a.NV01_EVENT_NONSTALL_INTR | a.NV01_EVENT_WITHOUT_EVENT_DATA))
    except BaseException:
      self.close_event(event)
      raise
    return event

  def close_event(self, event: OsEvent) -> None:
    """Let it go; closing the file ends the OS event."""
    if event.handle: self.free_object(event.handle)
    self.port.close(event.fd)

  def reserve(self, size: int) -> int:
    """Addresses of GPUs for UVM's own use (a channel's context), until the process ends."""
    with self.lock: return self._low.alloc(size, HUGE_PAGE)

  def connect(self, a: Gpu, b: Gpu) -> None:
    """Let two GPUs reach each other's memory."""
    pair = frozenset((a.uuid, b.uuid))
    with self.lock:
      if len(pair) < 2 or pair in self._peers: return
      self.uvm(nv_uvm.UVM_ENABLE_PEER_ACCESS, nv_uvm.UVM_ENABLE_PEER_ACCESS_PARAMS(
        gpuUuidA=a.identity(), gpuUuidB=b.identity()))
      self._peers.add(pair)

  def reaches(self, a: Gpu, b: Gpu) -> bool:
    """Whether RM says that the two can be connected."""
    c = nv_rm_control
    p = c.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS(gpuCount=2)
    p.gpuIds[0], p.gpuIds[1] = a.gpu_id, b.gpu_id
    self.control(self.root, c.NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2, p)
    return all(rm.bits(int(p.p2pCaps), place) for place in (c.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_READS_SUPPORTED,
                                                            c.NV0000_CTRL_SYSTEM_GET_P2P_CAPS_WRITES_SUPPORTED))

  def kernel_log(self) -> list[str]:
    """The kernel's log lines of the driver since the last call; none where this user may not read them."""
    return self._log.new(self.port)


def arch_of(sm_version: int, name: str) -> NvArch:
  """The generation of an SM version (0x806: 8.6). Raises Unsupported for one that this driver has no facts of."""
  named = next((a for a in NV_ARCHES.values() if a.told_as == sm_version), None)
  found = named or NV_ARCHES.get(f"sm_{sm_version >> 8}{sm_version & 0xFF}")
  if found is None:
    raise Unsupported("GPU", f"{name} (SM version {sm_version:#x})", where="NV",
                      hint=f"this driver runs {', '.join(NV_ARCHES)}")
  return found
