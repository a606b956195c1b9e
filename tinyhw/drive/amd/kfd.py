"""One process's connection to /dev/kfd: calls, memory, events. Shared by all GPUs that the process opens through one
port.

The kernel keeps one KFD state for each process, whichever file descriptor a call comes through (kfd_create_process),
with one event page. So there is one `Kfd` for each port, found with `Kfd.of(port)`.
"""
from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from tinyhw.autogen import amdgpu_drm, kfd
from tinyhw.core.errors import DeviceError, DriverError, Error, InvalidArgument, OutOfMemory
from tinyhw.core.locks import lock
from tinyhw.core.port import Port
from tinyhw.drive.allocate import round_up
from tinyhw.drive.amd.topology import GpuNode, gpus
from tinyhw.drive.kernellog import KernelLog

PAGE = 4096
DEVICE = "/dev/kfd"
_GUARD = 64 * 1024          # addresses behind each buffer that stay unmapped: a kernel that runs over its end faults
_LARGE_PAGE = 2 << 20       # buffers of at least this size start at a large page of the GPU's page tables
_ADDRESS_BITS = 47           # of a process on x86-64 (TASK_SIZE of four-level page tables)
_NO_DEVICE = (
  "load the amdgpu kernel driver for a supported card and give this user access to /dev/kfd and /dev/dri/renderD*, "
  "or set MOCKGPU=1 to use the mock GPU"
)


class Domain(Enum):
  """Kinds of memory, by the flags that KFD allocates them with."""
  VRAM = kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
  GTT = (
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT
    | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
    | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
    | kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED
  )
  USERPTR = (
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
    | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
    | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
  )
  MMIO = kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT


@dataclass(eq=False)
class Buffer:
  """Memory of one GPU (or host memory that it sees). `address` is the same for all GPUs and, where mapped, the host.

  `memory` is the host's view, None for memory that only GPUs see. `span` is what was reserved of the address space,
  guard included.
  """
  address: int
  size: int
  kind: Domain
  handle: int
  gpu_id: int
  span: int
  memory: memoryview | None = field(default=None, repr=False)
  mapped: set[int] = field(default_factory=set)

  def bytes(self) -> memoryview:
    if self.memory is None:
      raise DeviceError(f"{self.kind.name} buffer at {self.address:#x} is not visible to the host")
    return self.memory


@dataclass
class Gpu:
  """An opened GPU: its node and the render node whose address space it uses."""
  node: GpuNode
  drm_fd: int
  lds_base: int = 0
  scratch_base: int = 0

  @property
  def gpu_id(self) -> int: return self.node.gpu_id


@dataclass(frozen=True)
class Event:
  """A KFD event. `slot` is its index in the event page (signal events only)."""
  event_id: int
  trigger_data: int
  slot: int


@dataclass(frozen=True)
class GpuFault:
  """What the kernel said of a GPU that stopped."""
  gpu_id: int
  message: str
  address: int | None = None
  access: str | None = None


# What a memory exception is of where it is none of the page tables' (kfd_ioctl.h, KFD_MEM_ERR_*).
_MEMORY_ERRORS: Final = {
  kfd.KFD_MEM_ERR_SRAM_ECC: "uncorrectable memory error, memory lost",
  kfd.KFD_MEM_ERR_POISON_CONSUMED: "uncorrectable memory error, poisoned memory was used",
}


def _cannot_open(path: str, error: OSError, where: str) -> DeviceError:
  """A device file that does not open."""
  full = error.errno in (errno.EMFILE, errno.ENFILE)
  return DeviceError(f"cannot open {path}: {os.strerror(error.errno) if error.errno else error}", where=where,
                     hint="close files, or raise the limit (ulimit -n)" if full else _NO_DEVICE)


def _no_addresses(gpu: Gpu, size: int, error: object) -> OutOfMemory:
  """This process can have no more addresses, which each allocation takes some of."""
  try: used = int(open("/proc/self/statm", "rb").read().split()[0]) * PAGE
  except (OSError, ValueError, IndexError): used = 0
  limit = resource.getrlimit(resource.RLIMIT_AS)[0]
  free = (1 << _ADDRESS_BITS) - used if limit == resource.RLIM_INFINITY else max(limit - used, 0)
  return OutOfMemory(f"addresses of this process, for memory of GPU {gpu.node.target} ({error})", size, free,
                     hint="free buffers, or raise the limit of addresses (ulimit -v)")


class Kfd:
  """See the module. It stays open as long as the port: the kernel gives a process one address space for each GPU, and
  refuses a second (ACQUIRE_VM, EBUSY).

  Threads may share it: `lock` is held for what takes several calls or changes the tables, never for WAIT_EVENTS.
  """
  _connections: WeakKeyDictionary[Any, Kfd] = WeakKeyDictionary()
  _connecting = lock()

  @classmethod
  def of(cls, port: Port) -> Kfd:
    """The port's connection, opened at the first use (and again in a forked process)."""
    with cls._connecting:
      found = cls._connections.get(port)
      if found is None or found.pid != port.pid():
        found = cls._connections[port] = cls(port)
      return found

  def __init__(self, port: Port) -> None:
    self.lock = lock()
    self._port = ref(port)  # the port keeps its connection alive, not the other way round
    self.pid = port.pid()
    try: self.fd = port.open(DEVICE)
    except OSError as e: raise _cannot_open(DEVICE, e, "AMD") from None
    version = kfd.kfd_ioctl_get_version_args()
    self.call("GET_VERSION", kfd.AMDKFD_IOC_GET_VERSION, version)
    self.version = (int(version.major_version), int(version.minor_version))
    if self.version[0] != kfd.KFD_IOCTL_MAJOR_VERSION:
      raise DeviceError(
        f"KFD interface {self.version[0]}.{self.version[1]}, this driver speaks {kfd.KFD_IOCTL_MAJOR_VERSION}.x",
        where=DEVICE,
      )
    self.nodes = gpus(port)
    self.opened: dict[int, Gpu] = {}
    self.faults: dict[int, GpuFault] = {}
    self.buffers: set[Buffer] = set()
    self.event_page: Buffer | None = None
    self.debuggable = False
    self._log = KernelLog(("amdgpu", "kfd"))
    self._watched: list[Event] = []

  @property
  def port(self) -> Port:
    port = self._port()
    assert port is not None  # each runtime holds its port
    return port

  # ---- calls

  def call(self, name: str, request: int, argument: Any) -> None:
    """One ioctl of /dev/kfd; DriverError with name, errno and arguments when it fails."""
    try: self.port.ioctl(self.fd, request, argument)
    except OSError as e: raise DriverError(f"AMDKFD_IOC_{name}", e.errno or 0, argument.text()) from None

  def open_gpu(self, index: int) -> Gpu:
    """Open the render node of a GPU and make its address space the one of this process."""
    with self.lock: return self._open_gpu(index)

  def _open_gpu(self, index: int) -> Gpu:
    if not 0 <= index < len(self.nodes):
      there = ", ".join(f"AMD:{i} {n.target}" for i, n in enumerate(self.nodes)) or "none"
      raise DeviceError(f"no GPU number {index}; there: {there}", where="AMD", hint=None if self.nodes else _NO_DEVICE)
    node = self.nodes[index]
    if node.gpu_id in self.opened: return self.opened[node.gpu_id]
    try: drm_fd = self.port.open(node.render_node)
    except OSError as e: raise _cannot_open(node.render_node, e, f"AMD:{index}") from None
    gpu = Gpu(node, drm_fd)
    try:
      vm = kfd.kfd_ioctl_acquire_vm_args(drm_fd=drm_fd, gpu_id=node.gpu_id)
      self.call("ACQUIRE_VM", kfd.AMDKFD_IOC_ACQUIRE_VM, vm)
      self._read_apertures(gpu)
    except Error:
      self.port.close(drm_fd)
      raise
    self.opened[node.gpu_id] = gpu
    if self.event_page is None: self._create_event_page(gpu)
    else: self.map_to(self.event_page, [gpu.gpu_id])  # each GPU writes its events' ids there
    return gpu

  def make_debuggable(self) -> None:
    """Tell the kernel driver that a debugger may attach to this process, once and before its first queue.

    Waves find their dispatch in trap registers from then on. With a debugger attached the call ends when that has
    answered. There is no list of code objects for it (r_debug).
    """
    if self.debuggable: return
    mode = kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK | kfd.KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK
    args = kfd.kfd_ioctl_runtime_enable_args(mode_mask=mode)
    self.call("RUNTIME_ENABLE", kfd.AMDKFD_IOC_RUNTIME_ENABLE, args)
    self.debuggable = True

  def forget(self, gpu_id: int) -> None:
    """The kernel driver has nothing of this process on a GPU any more: neither has this side, but for the event page,
    which is the process'. `open_gpu` begins anew."""
    with self.lock: self._forget(gpu_id)

  def _forget(self, gpu_id: int) -> None:
    if self._watched: self.wait_events(0)  # faults that nobody has heard of yet
    for buffer in list(self.buffers):
      buffer.mapped.discard(gpu_id)
      if buffer.gpu_id != gpu_id or buffer is self.event_page: continue
      self.buffers.discard(buffer)
      buffer.memory = None
      if buffer.span: self.port.munmap(buffer.address, buffer.span)
    self.faults.pop(gpu_id, None)
    self.kernel_log()  # what it says of the past belongs to no later fault
    if (gpu := self.opened.pop(gpu_id, None)) is not None: self.port.close(gpu.drm_fd)

  def _read_apertures(self, gpu: Gpu) -> None:
    count = len(self.nodes)
    rows = (kfd.kfd_process_device_apertures * count)()
    self.call(
      "GET_PROCESS_APERTURES_NEW",
      kfd.AMDKFD_IOC_GET_PROCESS_APERTURES_NEW,
      kfd.kfd_ioctl_get_process_apertures_new_args(
        kfd_process_device_apertures_ptr=ctypes.addressof(rows), num_of_nodes=count
      ),
    )
    row = next((r for r in rows if r.gpu_id == gpu.gpu_id), None)
    if row is None: raise DeviceError(f"the kernel gives no apertures for GPU {gpu.gpu_id:#x}", where=DEVICE)
    gpu.lds_base, gpu.scratch_base = int(row.lds_base), int(row.scratch_base)

  def counter_hz(self, gpu: Gpu) -> float:
    """Frequency of the clock that RELEASE_MEM and SDMA timestamps count (drm_amdgpu_info_device.gpu_counter_freq, in
    kHz)."""
    info = amdgpu_drm.drm_amdgpu_info_device()
    request = amdgpu_drm.drm_amdgpu_info(
      return_pointer=ctypes.addressof(info), return_size=ctypes.sizeof(info), query=amdgpu_drm.AMDGPU_INFO_DEV_INFO
    )
    try: self.port.ioctl(gpu.drm_fd, amdgpu_drm.DRM_IOCTL_AMDGPU_INFO, request)
    except OSError as e: raise DriverError("DRM_IOCTL_AMDGPU_INFO", e.errno or 0, "AMDGPU_INFO_DEV_INFO") from None
    if not info.gpu_counter_freq: raise DeviceError("the kernel gives no gpu_counter_freq", where=gpu.node.render_node)
    return float(info.gpu_counter_freq) * 1e3

  def available(self, gpu: Gpu) -> int:
    """Bytes of VRAM that can still be allocated."""
    args = kfd.kfd_ioctl_get_available_memory_args(gpu_id=gpu.gpu_id)
    self.call("AVAILABLE_MEMORY", kfd.AMDKFD_IOC_AVAILABLE_MEMORY, args)
    return int(args.available)

  # ---- memory

  def alloc(
    self, gpu: Gpu, size: int, kind: Domain, *, executable: bool = False, host: bool | None = None, align: int = PAGE
  ) -> Buffer:
    """Allocate and map for `gpu`. `size` grows to whole pages. Host-visible unless it is VRAM (or as `host` says).

    MMIO is the one page of registers that the kernel lets its clients have (enum kfd_mmio_remap).
    """
    size = round_up(size, PAGE)
    visible = kind is not Domain.VRAM if host is None else host
    flags = kind.value | kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE
    if executable: flags |= kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
    if kind is Domain.VRAM and visible: flags |= kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC
    with self.lock: return self._alloc(gpu, size, kind, flags, visible, align)

  def _alloc(self, gpu: Gpu, size: int, kind: Domain, flags: int, visible: bool, align: int) -> Buffer:
    span = size + _GUARD
    if span >> _ADDRESS_BITS: raise _no_addresses(gpu, span, "no process has so many")
    try: address = self.port.reserve(span, _LARGE_PAGE if size >= _LARGE_PAGE else align)
    except OSError as e: raise _no_addresses(gpu, span, e) from None
    try: handle, offset = self._allocate(gpu, address, size, flags, 0)
    except BaseException:
      self.port.munmap(address, span)
      raise
    buffer = Buffer(address, size, kind, handle, gpu.gpu_id, span)
    self.buffers.add(buffer)
    if visible:
      try: self.port.mmap(self.fd if kind is Domain.MMIO else gpu.drm_fd, size, offset, address)
      except OSError as e:
        self._free(buffer)
        raise _no_addresses(gpu, size, e) from None
      buffer.memory = self.port.memory(address, size)
    self.map_to(buffer, [gpu.gpu_id])
    return buffer

  def register_host(self, gpu: Gpu, address: int, size: int) -> Buffer:
    """Make pages of this process visible to the GPU at their own address (USERPTR). Both must be page aligned."""
    if address % PAGE or size % PAGE or size <= 0:
      raise InvalidArgument(f"{size} bytes at {address:#x} are not whole pages", where="register_host")
    flags = Domain.USERPTR.value | kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE
    with self.lock:
      memory = self.port.memory(address, size)
      handle, _ = self._allocate(gpu, address, size, flags, address)
      buffer = Buffer(address, size, Domain.USERPTR, handle, gpu.gpu_id, 0, memory)
      self.buffers.add(buffer)
      self.map_to(buffer, [gpu.gpu_id])
    return buffer

  def _allocate(self, gpu: Gpu, address: int, size: int, flags: int, host_address: int) -> tuple[int, int]:
    args = kfd.kfd_ioctl_alloc_memory_of_gpu_args(
      va_addr=address, size=size, mmap_offset=host_address, gpu_id=gpu.gpu_id, flags=flags & 0xFFFFFFFF
    )
    try: self.call("ALLOC_MEMORY_OF_GPU", kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, args)
    except DriverError as e:
      if e.errno != errno.ENOMEM: raise
      if not flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
        raise DeviceError(f"the kernel gives no {size:,} bytes of system memory to the GPU", where=gpu.node.target,
                          hint="see the limits amdgpu.gttsize and ulimit -l") from None
      raise OutOfMemory(
        f"GPU {gpu.node.target} VRAM", size, self.available(gpu), hint="free buffers, or use smaller ones"
      ) from None
    return int(args.handle), int(args.mmap_offset)

  def map_to(self, buffer: Buffer, gpu_ids: Sequence[int]) -> None:
    """Enter the buffer into the page tables of these GPUs."""
    with self.lock: self._map_to(buffer, gpu_ids)

  def _map_to(self, buffer: Buffer, gpu_ids: Sequence[int]) -> None:
    new = [g for g in gpu_ids if g not in buffer.mapped]
    if not new: return
    ids = (ctypes.c_uint32 * len(new))(*new)
    self.call("MAP_MEMORY_TO_GPU", kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU, kfd.kfd_ioctl_map_memory_to_gpu_args(
      handle=buffer.handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=len(new), n_success=0))
    buffer.mapped.update(new)

  def free(self, buffer: Buffer) -> None:
    """Take the buffer out of all page tables and give its memory back."""
    with self.lock: self._free(buffer)

  def _free(self, buffer: Buffer) -> None:
    if buffer.mapped:
      ids = (ctypes.c_uint32 * len(buffer.mapped))(*sorted(buffer.mapped))
      self.call("UNMAP_MEMORY_FROM_GPU", kfd.AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, kfd.kfd_ioctl_unmap_memory_from_gpu_args(
        handle=buffer.handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=len(ids), n_success=0))
      buffer.mapped.clear()
    self.call(
      "FREE_MEMORY_OF_GPU",
      kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU,
      kfd.kfd_ioctl_free_memory_of_gpu_args(handle=buffer.handle),
    )
    buffer.memory = None
    self.buffers.discard(buffer)
    if buffer.span: self.port.munmap(buffer.address, buffer.span)

  # ---- events

  def _create_event_page(self, gpu: Gpu) -> None:
    """The page where the GPU leaves the ids of events; on a discrete GPU the first CREATE_EVENT brings it
    (kfd_kmap_event_page)."""
    self.event_page = self.alloc(gpu, kfd.KFD_SIGNAL_EVENT_LIMIT * 8, Domain.GTT)
    self._watched = [
      self.create_event(kfd.KFD_IOC_EVENT_MEMORY, page=self.event_page.handle),
      self.create_event(kfd.KFD_IOC_EVENT_HW_EXCEPTION),
    ]

  def create_event(self, event_type: int = kfd.KFD_IOC_EVENT_SIGNAL, page: int = 0) -> Event:
    args = kfd.kfd_ioctl_create_event_args(event_page_offset=page, event_type=event_type, auto_reset=1)
    self.call("CREATE_EVENT", kfd.AMDKFD_IOC_CREATE_EVENT, args)
    return Event(int(args.event_id), int(args.event_trigger_data), int(args.event_slot_index))

  def destroy_event(self, event: Event) -> None:
    self.call("DESTROY_EVENT", kfd.AMDKFD_IOC_DESTROY_EVENT, kfd.kfd_ioctl_destroy_event_args(event_id=event.event_id))

  def mailbox(self, event: Event) -> int:
    """Address where the GPU writes the event's id before it interrupts."""
    assert self.event_page is not None
    return self.event_page.address + 8 * event.slot

  def wait_events(self, milliseconds: int, signal: Event | None = None) -> None:
    """Sleep until `signal` is set, a GPU faults, or the time is over. Faults are collected in `faults`."""
    events = [*self._watched, signal] if signal is not None else self._watched
    rows = (kfd.kfd_event_data * len(events))()
    for row, event in zip(rows, events, strict=True): row.event_id = event.event_id
    args = kfd.kfd_ioctl_wait_events_args(
      events_ptr=ctypes.addressof(rows), num_events=len(events), wait_for_all=0, timeout=milliseconds
    )
    self.call("WAIT_EVENTS", kfd.AMDKFD_IOC_WAIT_EVENTS, args)
    if args.wait_result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE:
      self._collect(rows[0].memory_exception_data, rows[1].hw_exception_data)

  def _collect(self, memory: Any, hardware: Any) -> None:
    """The kernel fills in only the rows of events that were set; a gpu_id of 0 means that it was not."""
    if memory.gpu_id and memory.ErrorType in _MEMORY_ERRORS:  # no page fault: a hardware event comes with it
      self.faults[int(memory.gpu_id)] = GpuFault(int(memory.gpu_id), _MEMORY_ERRORS[memory.ErrorType])
    elif memory.gpu_id:
      failure = memory.failure
      # One flag a missing permission (event_interrupt_wq_v11): writing to a page that is not there sets the first two.
      access = "write" if failure.ReadOnly else "read" if failure.NotPresent else "execute"
      reason = ("page not present" if failure.NotPresent else "page is read-only" if failure.ReadOnly
                else "page is not executable")
      if failure.imprecise: reason += ", address imprecise"
      self.faults[int(memory.gpu_id)] = GpuFault(int(memory.gpu_id), reason, int(memory.va), access)
    if hardware.gpu_id:
      causes = {kfd.KFD_HW_EXCEPTION_GPU_HANG: "GPU hang", kfd.KFD_HW_EXCEPTION_ECC: "uncorrectable memory error"}
      message = causes.get(hardware.reset_cause, "reset") + (", memory lost" if hardware.memory_lost else "")
      self.faults.setdefault(int(hardware.gpu_id), GpuFault(int(hardware.gpu_id), message))

  def kernel_log(self) -> list[str]:
    """The kernel's log lines of amdgpu since the last call; none where this user may not read them."""
    return self._log.new(self.port)
