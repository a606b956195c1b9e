"""The bench of AMD's rungs: a client of /dev/kfd that makes its calls by itself, so that each says which one lies.

It grows as rungs ask for things: the file, the render node, the address space, queues. What is made once stays until
the process ends; rungs free what is theirs alone.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

from tinyhw.arch import ARCHES, Arch
from tinyhw.autogen import amdgpu_drm, kfd
from tinyhw.bringup.bench import LARGEST, SHOWN, Beside, TimedBench
from tinyhw.bringup.rung import Absent, Broken
from tinyhw.core.errors import DriverError, Unsupported
from tinyhw.core.port import Port
from tinyhw.drive.amd import report
from tinyhw.drive.amd.commands import ComputeCommands, CopyCommands, sdma_padding
from tinyhw.drive.amd.topology import GpuNode, gpus, save_area
from tinyhw.drive.kernellog import KernelLog
from tinyhw.drive.queue import CommandStream, HardwareQueue, PointerUnit, Ring

KFD: Final = "/dev/kfd"
PAGE: Final = 4096
GTT: Final = (kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
              | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED)
VRAM: Final = kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE
_GUARD: Final = 64 << 10
_RING: Final = 64 << 10
_DOORBELLS: Final = 1024 * 8   # KFD_MAX_NUM_OF_QUEUES_PER_PROCESS doorbells of 8 bytes (kfd_priv.h)
_EOP: Final = 4096
COMPUTE, COPY = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, kfd.KFD_IOC_QUEUE_TYPE_SDMA


@dataclass(eq=False)
class BenchMemory:
  """A buffer; `bytes` is the host's view (None: it has none)."""
  address: int
  size: int
  handle: int
  view: memoryview | None = field(default=None, repr=False)

  @property
  def bytes(self) -> memoryview:
    assert self.view is not None, "the host does not see this buffer"
    return self.view

  @property
  def words(self) -> memoryview[int]: return self.bytes.cast("I")

  @property
  def longs(self) -> memoryview[int]: return self.bytes.cast("Q")

  def fill(self, byte: int) -> None: self.bytes[:] = bytes([byte]) * self.size


class BenchQueue(HardwareQueue):
  """A queue with its buffers, and what was written to it since the rung began."""

  def __init__(self, bench: AmdBench, kind: int, ring_bytes: int = _RING) -> None:
    self.bench, self.kind = bench, kind
    take = bench.take
    self.ring_memory = take(ring_bytes, executable=True)
    self.write_pointer, self.read_pointer = take(PAGE), take(PAGE)
    args = kfd.kfd_ioctl_create_queue_args(
      ring_base_address=self.ring_memory.address, write_pointer_address=self.write_pointer.address,
      read_pointer_address=self.read_pointer.address, ring_size=ring_bytes, gpu_id=bench.node.gpu_id, queue_type=kind,
      queue_percentage=kfd.KFD_MAX_QUEUE_PERCENTAGE, queue_priority=7)
    self.buffers = [self.ring_memory, self.write_pointer, self.read_pointer]
    if kind == COMPUTE:
      area = save_area(bench.node)
      eop, save = take(_EOP, VRAM, host=False), take(area.total, VRAM, host=False)
      args.eop_buffer_address, args.eop_buffer_size = eop.address, _EOP
      args.ctx_save_restore_address, args.ctx_save_restore_size = save.address, area.save_restore
      args.ctl_stack_size = area.control_stack
      self.buffers += [eop, save]
    bench.call("CREATE_QUEUE", kfd.AMDKFD_IOC_CREATE_QUEUE, args)
    self.queue_id, self.offset = int(args.queue_id), int(args.doorbell_offset)
    lines = (partial(report.pm4_lines, bench.arch.pm4) if kind == COMPUTE else
             partial(report.sdma_lines, bench.arch.sdma))
    super().__init__(f"queue {self.queue_id}", Ring(
      bench.port, memory=self.ring_memory.bytes, read_pointer=self.read_pointer.bytes,
      write_pointer=self.write_pointer.bytes, doorbell=bench.doorbell(self.offset), pad=sdma_padding,
      unit=PointerUnit.DWORDS if kind == COMPUTE else PointerUnit.BYTES, keep_whole=kind == COPY), lines)
    self.began = 0
    bench.queues.append(self)

  def write(self, stream: CommandStream) -> None:
    """Put commands into the ring and ring the doorbell; nobody waits."""
    self.submit(stream.bind(), 0, timeout_s=self.bench.left)

  @property
  def idle(self) -> bool:
    """Whether the read pointer stands at the write pointer."""
    return self.ring.used == 0

  def run(self, stream: CommandStream, done: Callable[[], bool], what: str, look_at: str,
          wanted: str = "it happens") -> None:
    """Write commands and wait until something is so. Raises Broken."""
    self.write(stream)
    if self.bench.wait(done): return
    raise Broken(f"{what}; {self.ring.pointers()}{self.bench.why_stopped()}", wanted, look_at)

  def finish(self, stream: ComputeCommands | CopyCommands, look_at: str) -> None:
    """Write commands with a signal behind them, and wait for that."""
    bench = self.bench
    signal, value = bench.signal_page, bench.next_value()
    stream.signal(signal.address, "value")
    bound = stream.bind(value=value)
    self.submit(bound, value, timeout_s=bench.left)
    if not bench.wait(lambda: signal.words[0] == value & 0xFFFFFFFF):
      raise Broken(f"the signal behind it is {signal.words[0]:#x}; {self.ring.pointers()}{bench.why_stopped()}",
                   f"it is {value:#x}", look_at)

  def packets(self) -> list[str]:
    """What the rung has submitted, the last ones."""
    lines = [line for s in self.history if s.start >= self.began for line in self.text_of(s)]
    return [f"{self.name}: {line.strip()}" for line in lines[-SHOWN:]]

  def close(self) -> None:
    """DESTROY_QUEUE, and its buffers back."""
    bench = self.bench
    bench.call("DESTROY_QUEUE", kfd.AMDKFD_IOC_DESTROY_QUEUE,
               kfd.kfd_ioctl_destroy_queue_args(queue_id=self.queue_id))
    bench.queues.remove(self)
    for buffer in self.buffers: bench.free(buffer)


class AmdBench(TimedBench):
  """See the module: GPU number `index` of the machine behind `port`."""

  def __init__(self, port: Port, index: int = 0, largest: int = LARGEST, beside: Beside | None = None) -> None:
    super().__init__(port, index, largest, beside)
    self.queues: list[BenchQueue] = []
    self._value = 0
    self._spans: list[tuple[int, int]] = []
    self._log = KernelLog(("amdgpu", "kfd"))
    self._log.new(port)  # what was told before is not of this process

  def begin(self, seconds: float) -> None:
    super().begin(seconds)
    for queue in self.queues: queue.began = queue.ring.at

  def submitted(self) -> list[str]: return [line for queue in self.queues for line in queue.packets()]

  def facts(self) -> dict[str, Any]:
    """Of the topology what tells nobody's piece from another's."""
    node = self.node
    return {"name": node.name, "target": node.target, "vram_bytes": node.vram_bytes, "public_vram": node.public_vram,
            "properties": {k: v for k, v in sorted(node.p.items()) if k not in PRIVATE_PROPERTIES},
            "kfd": ".".join(map(str, self.version))}

  def secrets(self) -> list[bytes]:
    """The chip's number, as a file of the topology and as a structure have it."""
    numbers = [n for n in (self.node.p.get("unique_id", 0), self.node.p.get("hive_id", 0)) if n]
    return [text for n in numbers for text in (str(n).encode(), f"{n:x}".encode(), n.to_bytes(8, "little"))]

  def close(self) -> None:
    """End other processes and close the files: the kernel driver ends the rest with the process."""
    self.end_others()
    for name in ("drm", "fd"):
      if name in self.__dict__: self.port.close(self.__dict__.pop(name))

  # ---- calls

  @cached_property
  def fd(self) -> int:
    """/dev/kfd."""
    return self.port.open(KFD)

  def call(self, name: str, request: int, argument: Any) -> Any:
    """An ioctl of /dev/kfd. Raises DriverError with name, errno and arguments."""
    try: self.port.ioctl(self.fd, request, argument)
    except OSError as e: raise DriverError(f"AMDKFD_IOC_{name}", e.errno or 0, argument.text()) from None
    return argument

  @cached_property
  def version(self) -> tuple[int, int]:
    got = self.call("GET_VERSION", kfd.AMDKFD_IOC_GET_VERSION, kfd.kfd_ioctl_get_version_args())
    return int(got.major_version), int(got.minor_version)

  @cached_property
  def nodes(self) -> list[GpuNode]: return gpus(self.port)

  @property
  def node(self) -> GpuNode:
    if not 0 <= self.index < len(self.nodes):
      raise Broken(f"the topology has {len(self.nodes)} GPUs", f"one of number {self.index}",
                   "/sys/devices/virtual/kfd/kfd/topology/nodes, and the kernel's log for amdgpu")
    return self.nodes[self.index]

  @cached_property
  def arch(self) -> Arch:
    """The generation. Raises Unsupported for one that there are no packets of."""
    found = ARCHES.get(self.node.target)
    if found is None:
      raise Unsupported("GPU", self.node.target, hint=f"packets and registers are there for {', '.join(ARCHES)}")
    return found

  @cached_property
  def drm(self) -> int:
    """The render node."""
    return self.port.open(self.node.render_node)

  def info(self, query: int, answer: Any) -> Any:
    """An AMDGPU_INFO query; `answer` is filled."""
    request = amdgpu_drm.drm_amdgpu_info(return_pointer=ctypes.addressof(answer), return_size=ctypes.sizeof(answer),
                                         query=query)
    try: self.port.ioctl(self.drm, amdgpu_drm.DRM_IOCTL_AMDGPU_INFO, request)
    except OSError as e: raise DriverError("DRM_IOCTL_AMDGPU_INFO", e.errno or 0, f"query {query:#x}") from None
    return answer

  @cached_property
  def shared(self) -> bool:
    """Whether the GPU is an APU, whose video memory is the system's: KFD tells what it can have of that, and counts it
    with it (amdgpu_amdkfd_get_local_mem_info; amdgpu_amdkfd_gpuvm.c, AMDGPU_GEM_DOMAIN_GTT)."""
    chip = self.info(amdgpu_drm.AMDGPU_INFO_DEV_INFO, amdgpu_drm.drm_amdgpu_info_device())
    return bool(chip.ids_flags & amdgpu_drm.AMDGPU_IDS_FLAGS_FUSION)

  @cached_property
  def vm(self) -> bool:
    """The process has an address space on the GPU."""
    self.call("ACQUIRE_VM", kfd.AMDKFD_IOC_ACQUIRE_VM,
              kfd.kfd_ioctl_acquire_vm_args(drm_fd=self.drm, gpu_id=self.node.gpu_id))
    return True

  @cached_property
  def apertures(self) -> Any:
    count = len(self.nodes)
    rows = (kfd.kfd_process_device_apertures * count)()
    self.call("GET_PROCESS_APERTURES_NEW", kfd.AMDKFD_IOC_GET_PROCESS_APERTURES_NEW,
              kfd.kfd_ioctl_get_process_apertures_new_args(
                kfd_process_device_apertures_ptr=ctypes.addressof(rows), num_of_nodes=count))
    found = next((r for r in rows if r.gpu_id == self.node.gpu_id), None)
    if found is None:
      raise Broken("GET_PROCESS_APERTURES_NEW has no row of this GPU", f"one with gpu_id {self.node.gpu_id:#x}",
                   "kfd_process_device_init_vm, and gpu_id in the topology")
    return found

  def available(self) -> int:
    """AVAILABLE_MEMORY of the GPU, in bytes."""
    got = self.call("AVAILABLE_MEMORY", kfd.AMDKFD_IOC_AVAILABLE_MEMORY,
                    kfd.kfd_ioctl_get_available_memory_args(gpu_id=self.node.gpu_id))
    return int(got.available)

  def clocks(self) -> Any:
    return self.call("GET_CLOCK_COUNTERS", kfd.AMDKFD_IOC_GET_CLOCK_COUNTERS,
                     kfd.kfd_ioctl_get_clock_counters_args(gpu_id=self.node.gpu_id))

  @cached_property
  def counter_khz(self) -> int:
    """The clock that timestamps count, as DRM tells it."""
    return int(self.info(amdgpu_drm.AMDGPU_INFO_DEV_INFO, amdgpu_drm.drm_amdgpu_info_device()).gpu_counter_freq)

  # ---- memory

  def reserve(self, size: int) -> int:
    """Addresses for a buffer, with a guard behind it that stays unmapped."""
    address = self.port.reserve(size + _GUARD, 2 << 20 if size >= 2 << 20 else PAGE)
    self._spans.append((address, size + _GUARD))
    return address

  def allocate(self, size: int, flags: int, address: int, host: int = 0) -> tuple[int, int]:
    """ALLOC_MEMORY_OF_GPU; its handle, and the offset for mmap."""
    _ = self.vm
    got = self.call("ALLOC_MEMORY_OF_GPU", kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, kfd.kfd_ioctl_alloc_memory_of_gpu_args(
      va_addr=address, size=size, gpu_id=self.node.gpu_id, flags=flags & 0xFFFFFFFF, mmap_offset=host))
    return int(got.handle), int(got.mmap_offset)

  def _map_call(self, name: str, request: int, kind: Any, handle: int) -> None:
    ids = (ctypes.c_uint32 * 1)(self.node.gpu_id)
    got = self.call(name, request, kind(handle=handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=1))
    if got.n_success != 1:
      raise Broken(f"{name} has n_success {got.n_success}", "1", "kfd_ioctl_map_memory_to_gpu, and the page tables")

  def map(self, handle: int) -> None:
    self._map_call("MAP_MEMORY_TO_GPU", kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU, kfd.kfd_ioctl_map_memory_to_gpu_args, handle)

  def unmap(self, handle: int) -> None:
    self._map_call("UNMAP_MEMORY_FROM_GPU", kfd.AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU,
                   kfd.kfd_ioctl_unmap_memory_from_gpu_args, handle)

  def take(self, size: int, flags: int = GTT, *, host: bool = True, executable: bool = False, writable: bool = True,
           mapped: bool = True) -> BenchMemory:
    """BenchMemory that the GPU sees, zeroed by nobody."""
    size = -(-size // PAGE) * PAGE
    if writable: flags |= kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE
    if executable: flags |= kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
    if host and flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM: flags |= kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC
    made = BenchMemory(self.reserve(size), size, 0)
    made.handle, offset = self.allocate(size, flags, made.address)
    if host:
      self.port.mmap(self.drm, size, offset, made.address)
      made.view = self.port.memory(made.address, size)
    if mapped: self.map(made.handle)
    return made

  def take_vram(self, size: int) -> BenchMemory:
    """The card's own memory, seen by the host. Raises Absent where the host sees none of it."""
    if not self.node.public_vram: raise Absent("the host does not see the card's memory (small BAR)")
    return self.take(size, VRAM)

  def free(self, buffer: BenchMemory, *, mapped: bool = True) -> None:
    """Out of the page tables, and given back."""
    if mapped: self.unmap(buffer.handle)
    self.call("FREE_MEMORY_OF_GPU", kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU,
              kfd.kfd_ioctl_free_memory_of_gpu_args(handle=buffer.handle))
    buffer.view = None
    span = next(s for s in self._spans if s[0] == buffer.address)
    self._spans.remove(span)
    self.port.munmap(*span)

  # ---- queues

  @cached_property
  def doorbells(self) -> dict[str, int]:
    """Where the process' doorbells are mapped, once there is a queue: one entry, "at"."""
    return {}

  def doorbell(self, offset: int) -> int:
    """The address of a doorbell."""
    inside = offset & (_DOORBELLS - 1)
    if "at" not in self.doorbells: self.doorbells["at"] = self.port.mmap(self.fd, _DOORBELLS, offset - inside)
    return self.doorbells["at"] + inside

  @cached_property
  def compute(self) -> BenchQueue: return BenchQueue(self, COMPUTE)

  @cached_property
  def copier(self) -> BenchQueue: return BenchQueue(self, COPY)

  @cached_property
  def signal_page(self) -> BenchMemory:
    """A page whose first words are the signal of `finish`."""
    page = self.take(PAGE)
    page.fill(0)
    return page

  def next_value(self) -> int:
    """The next value of that signal."""
    self._value += 1
    return self._value

  def pm4(self) -> ComputeCommands: return ComputeCommands(self.arch, "bring-up")
  def sdma(self) -> CopyCommands: return CopyCommands(self.arch, "bring-up")

  # ---- events

  @cached_property
  def event_page(self) -> BenchMemory: return self.take(kfd.KFD_SIGNAL_EVENT_LIMIT * 8)

  @cached_property
  def _page_told(self) -> list[bool]: return [False]

  def event(self, kind: int = kfd.KFD_IOC_EVENT_SIGNAL) -> Any:
    """CREATE_EVENT; the first one brings the event page."""
    page = 0 if self._page_told[0] else self.event_page.handle
    args = self.call("CREATE_EVENT", kfd.AMDKFD_IOC_CREATE_EVENT, kfd.kfd_ioctl_create_event_args(
      event_page_offset=page, event_type=kind, auto_reset=1))
    self._page_told[0] = True
    return args

  def wait_events(self, ids: Sequence[int], milliseconds: int) -> list[Any] | None:
    """WAIT_EVENTS for any of them: its rows, or None when the time was over."""
    rows = (kfd.kfd_event_data * len(ids))()
    for row, event_id in zip(rows, ids, strict=True): row.event_id = event_id
    got = self.call("WAIT_EVENTS", kfd.AMDKFD_IOC_WAIT_EVENTS, kfd.kfd_ioctl_wait_events_args(
      events_ptr=ctypes.addressof(rows), num_events=len(ids), wait_for_all=0, timeout=milliseconds))
    return list(rows) if got.wait_result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE else None

  @cached_property
  def watched(self) -> tuple[int, int]:
    """Events that tell of memory faults and of hangs. Rungs of faults make them before anything goes wrong."""
    return (int(self.event(kfd.KFD_IOC_EVENT_MEMORY).event_id),
            int(self.event(kfd.KFD_IOC_EVENT_HW_EXCEPTION).event_id))

  def why_stopped(self) -> str:
    """What the kernel's log has said of the card meanwhile, behind a semicolon; nothing where it may not be read."""
    lines = self._log.new(self.port)
    return f"; the kernel's log: {lines[-1]}" if lines else ""


# Of a node's properties: what tells a piece from another, and where it sits in somebody's machine.
PRIVATE_PROPERTIES: Final = frozenset({"unique_id", "location_id", "domain", "hive_id", "drm_render_minor"})
