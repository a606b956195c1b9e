"""An AMD GPU as a Runtime: its queues, memory, scratch, code objects, and what it says when it stops.

Few bytes go through the BAR. Where the host sees VRAM ("large BAR") and no queued work is left, up
to 16 KiB in and 1 KiB out are the host's own stores and loads, with a flush of HDP behind stores.
All else, and a small BAR, is the copy engine's. Whenever the copy engine comes after another queue
it forgets what caches hold, also when there is nothing left to wait for.

After a page fault or a hang a process has lost the GPU, as KFD has it: its queues stay evicted
until it ends, also after a GPU reset. The first line of the error says how to get on. On the mock
`Device["AMD:1"].reset()` makes one card as after a GPU reset and in a new process
(`Machine.reset_gpu`, `Kfd.forget`): what it held is `ValueLost`, other devices keep all. On a card
the same call opens it anew, which is enough after a wait that did not end; after a fault it says
that only a new process helps.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import cast

from tinyhw.arch import ARCHES
from tinyhw.autogen import hsa, kfd
from tinyhw.core.errors import (
  DecodeError,
  DeviceError,
  DriverError,
  Error,
  InvalidArgument,
  Unsupported,
  WaitTimeout,
)
from tinyhw.core.layout import Register
from tinyhw.core.port import Port
from tinyhw.drive.allocate import BounceBuffer, KernargRing, round_up
from tinyhw.drive.amd import report
from tinyhw.drive.amd.commands import ComputeCommands, CopyCommands, register, sdma_padding
from tinyhw.drive.amd.gpu import CodeImage, GpuRuntime
from tinyhw.drive.amd.kfd import PAGE, Buffer, Domain, Event, Kfd
from tinyhw.drive.amd.program import AMDProgram
from tinyhw.drive.amd.runner import AMDRunner
from tinyhw.drive.amd.topology import save_area
from tinyhw.drive.base import Allocation, Launch, Runner, Runtime
from tinyhw.drive.queue import BoundStream, HardwareQueue, LoadedCode, PointerUnit, Ring
from tinyhw.drive.queued import CLOSE_TIMEOUT_S
from tinyhw.drive.signal import SignalPool
from tinyhw.wire import codeobject

DEBUGGABLE_VARIABLE = "TINYHW_DEBUGGABLE"
_RING_BYTES = 1 << 20
_KERNARG_BYTES = 1 << 20
_BOUNCE_BYTES = 8 << 20
_CACHE_BYTES = 512 << 20
_EOP_BYTES = 4096              # eop_buffer_size of every chip since gfx8 but Tonga (kfd_queue.c)
_POINTERS_BYTES = PAGE         # read and write pointer of a queue have pages of their own (kfd_queue_acquire_buffers)
_DOORBELLS_BYTES = 1024 * 8    # KFD_MAX_NUM_OF_QUEUES_PER_PROCESS doorbells of 8 bytes (kfd_priv.h, kfd_doorbell.c)
_MAX_COPY_BYTES = 0x400000     # sdma_v6_0.c, copy_max_bytes
# Copies that the host makes through the BAR: its stores are combined to whole bursts; its loads are not cached, each of
# 64 bytes takes a round trip over PCIe.
_HOST_WRITES = 16 << 10
_HOST_READS = 1 << 10


@dataclass(eq=False)
class QueueMemory:
  """What KFD knows of one queue, and its buffers."""
  queue_id: int
  buffers: list[Buffer]


class AMDRuntime(GpuRuntime):
  """GPU number `index` of the machine behind `port`. `timeout_s` bounds each wait: TINYHW_TIMEOUT_S or 30 s by
  default. `debuggable` lets a debugger attach to the process: TINYHW_DEBUGGABLE or not by default. Threads may share it
  (`QueuedRuntime`): its programs launch with `lock`, all else takes `memory`."""
  copy_counts_from = 1  # SDMA_PKT_COPY_LINEAR.count of one byte is 0

  def __init__(
    self, port: Port, index: int = 0, timeout_s: float | None = None, debuggable: bool | None = None
  ) -> None:
    super().__init__(port, f"AMD:{index}" if index else "AMD", timeout_s)
    self.index, self.max_copy_bytes = index, _MAX_COPY_BYTES
    self.kfd = Kfd.of(port)
    self.gpu = self.kfd.open_gpu(index)
    if os.environ.get(DEBUGGABLE_VARIABLE, "0") not in ("", "0") if debuggable is None else debuggable:
      self.kfd.make_debuggable()
    self.target = self.gpu.node.target
    if self.target not in ARCHES:
      raise Unsupported("GPU", self.target, where=self.name, hint=f"this driver runs {', '.join(ARCHES)}")
    self.arch = ARCHES[self.target]
    if self.gpu.gpu_id in self.kfd.faults:
      raise DeviceError("this process has lost the GPU by a page fault or a hang", where=self.name,
                        hint=report.go_on(self.name))
    self.counter_hz = self.kfd.counter_hz(self.gpu)
    self._own: list[Buffer] = []
    self._images: dict[bytes, CodeImage] = {}
    self._codes: list[LoadedCode] = []
    self.unserved = {}
    self.start_lending(_CACHE_BYTES)
    self._scratch: Buffer | None = None
    self._scratch_wave_bytes, self.scratch_generation = 0, 0
    self._doorbells: int | None = None
    self._queues: list[QueueMemory] = []
    self._event: Event = self.kfd.create_event()
    self._interrupts: dict[str, BoundStream] = {}
    self._armed = -1
    self.registers = None
    self._hdp = self._open_hdp()
    if self._hdp is not None: self.host_writes, self.host_reads = _HOST_WRITES, _HOST_READS
    shared = self._take(PAGE, Domain.GTT)
    self.start_timeline(SignalPool(shared.bytes(), shared.address))
    self._signals = shared
    arguments, bounce = self._take(_KERNARG_BYTES, Domain.GTT), self._take(_BOUNCE_BYTES, Domain.GTT)
    self.kernargs = KernargRing(arguments.bytes(), arguments.address, self.wait)
    self.bounce = BounceBuffer(bounce.bytes(), bounce.address, self.wait)
    self.queue_pointer = self._make_queue_descriptor()
    try: self._open_queues()
    except BaseException:
      self.take_down()
      raise

  def _take(self, size: int, kind: Domain, executable: bool = False) -> Buffer:
    """Memory that the runtime itself keeps until it is closed."""
    buffer = self.kfd.alloc(self.gpu, size, kind, executable=executable)
    self._own.append(buffer)
    return buffer

  def _open_hdp(self) -> memoryview | None:
    """The register by which stores of the host reach VRAM for certain (HDP_MEM_COHERENCY_FLUSH_CNTL); None where the
    host does not see VRAM ("small BAR"), or the kernel driver does not lend the register."""
    if not self.gpu.node.public_vram: return None
    try: page = self._take(PAGE, Domain.MMIO)
    except (DriverError, DeviceError): return None
    return page.bytes()[kfd.KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL:][:4].cast("I")

  def _make_queue_descriptor(self) -> int:
    """An amd_queue_t for kernels that ask for their queue: they read the apertures' high halves (amd_hsa_queue.h)."""
    buffer = self._take(ctypes.sizeof(hsa.amd_queue_t), Domain.GTT)
    queue = hsa.amd_queue_t.from_buffer(buffer.bytes())
    queue.group_segment_aperture_base_hi = self.gpu.lds_base >> 32
    queue.private_segment_aperture_base_hi = self.gpu.scratch_base >> 32
    return buffer.address

  # ---- queues

  def _open_queues(self) -> None:
    self.compute = self._open_queue("compute", kfd.KFD_IOC_QUEUE_TYPE_COMPUTE)
    self.copier = self._open_queue("copy", kfd.KFD_IOC_QUEUE_TYPE_SDMA)
    signal, event = self.timeline.signal, self._event
    # A wait is enough for launches: they bring a barrier.
    self.compute.wait_stream = ComputeCommands(self.arch, "wait").wait("address", "value").bind()
    self.copier.wait_stream = CopyCommands(self.arch, "wait").wait("address", "value").memory_barrier().bind()
    copy = CopyCommands(self.arch, "copy").copy("destination", "source", "count").signal(signal.address, "timeline")
    self.copy_stream = copy.bind()
    mailbox = self.kfd.mailbox(event)
    self._interrupts = {
      "compute": ComputeCommands(self.arch, "interrupt").interrupt(mailbox, event.event_id, event.trigger_data).bind(),
      "copy": CopyCommands(self.arch, "interrupt").interrupt(mailbox, event.event_id, event.trigger_data).bind(),
    }

  def _open_queue(self, name: str, queue_type: int) -> HardwareQueue:
    is_compute = queue_type == kfd.KFD_IOC_QUEUE_TYPE_COMPUTE
    ring = self.kfd.alloc(self.gpu, _RING_BYTES, Domain.GTT, executable=True)
    write, read = (self.kfd.alloc(self.gpu, _POINTERS_BYTES, Domain.GTT) for _ in range(2))
    args = kfd.kfd_ioctl_create_queue_args(
      ring_base_address=ring.address,
      write_pointer_address=write.address,
      read_pointer_address=read.address,
      ring_size=_RING_BYTES,
      gpu_id=self.gpu.gpu_id,
      queue_type=queue_type,
      queue_percentage=kfd.KFD_MAX_QUEUE_PERCENTAGE,
      queue_priority=7,
    )
    buffers = [ring, write, read]
    if is_compute:
      area = save_area(self.gpu.node)
      eop, save = self.kfd.alloc(self.gpu, _EOP_BYTES, Domain.VRAM), self.kfd.alloc(self.gpu, area.total, Domain.VRAM)
      args.eop_buffer_address, args.eop_buffer_size = eop.address, _EOP_BYTES
      args.ctx_save_restore_address, args.ctx_save_restore_size = save.address, area.save_restore
      args.ctl_stack_size = area.control_stack
      buffers += [eop, save]
    self.kfd.call("CREATE_QUEUE", kfd.AMDKFD_IOC_CREATE_QUEUE, args)
    self._queues.append(QueueMemory(int(args.queue_id), buffers))
    doorbell = self._doorbell(int(args.doorbell_offset))
    hardware = Ring(
      self.port,
      memory=ring.bytes()[:_RING_BYTES],
      read_pointer=read.bytes(),
      write_pointer=write.bytes(),
      doorbell=doorbell,
      unit=PointerUnit.DWORDS if is_compute else PointerUnit.BYTES,
      pad=sdma_padding,
      keep_whole=not is_compute,
    )
    lines = partial(report.pm4_lines, self.arch.pm4) if is_compute else partial(report.sdma_lines, self.arch.sdma)
    return HardwareQueue(f"{self.name} {name} queue {args.queue_id}", hardware, lines)

  def _doorbell(self, offset: int) -> int:
    """Map the process' doorbells of this GPU once; `offset` names the page for mmap and the doorbell in it."""
    inside = offset & (_DOORBELLS_BYTES - 1)
    if self._doorbells is None:
      try: self._doorbells = self.port.mmap(self.kfd.fd, _DOORBELLS_BYTES, offset - inside)
      except OSError as e:
        raise DriverError("mmap of the doorbells", e.errno or 0, f"offset={offset - inside:#x}") from None
    return self._doorbells + inside

  def _close_queues(self) -> None:
    for queue in self._queues:
      self.kfd.call(
        "DESTROY_QUEUE", kfd.AMDKFD_IOC_DESTROY_QUEUE, kfd.kfd_ioctl_destroy_queue_args(queue_id=queue.queue_id)
      )
      for buffer in queue.buffers: self.kfd.free(buffer)
    self._queues.clear()

  # ---- memory

  def rounded(self, nbytes: int) -> int: return round_up(nbytes, PAGE)

  def take(self, size: int) -> Buffer:
    return self.kfd.alloc(self.gpu, size, Domain.VRAM, host=size <= self.host_writes)

  def give(self, buffer: Buffer) -> None: self.kfd.free(buffer)

  def host_view(self, allocation: Allocation) -> memoryview | None:
    handle = allocation.handle
    if not isinstance(handle, tuple) or handle[0] is not self: return None
    memory = cast(Buffer, handle[1]).memory
    return None if memory is None or allocation.address is None else memory[allocation.address - handle[1].address:]

  def flush_host_writes(self) -> None:
    if self._hdp is None: return
    self._hdp[0] = 1
    self._hdp[0]  # which comes back when the store has arrived (amdgpu_hdp_generic_flush)

  def is_peer(self, other: Runtime) -> bool:
    if other is self: return True
    if not isinstance(other, AMDRuntime) or other.kfd is not self.kfd: return False
    pair = {self.gpu.node.node, other.gpu.node.node}
    return any(
      {link.node_from, link.node_to} == pair and link.peer_dma for link in (*self.gpu.node.links, *other.gpu.node.links)
    )

  def reach(self, allocation: Allocation) -> AMDRuntime:
    owner, buffer = self.owner(allocation)
    if owner is self: return self
    if not self.is_peer(owner):
      raise InvalidArgument(
        f"no peer link to {owner.name}", where=self.name, hint="copy through the host: copyout, then copyin"
      )
    self.kfd.map_to(buffer, [self.gpu.gpu_id])
    owner.check_usable()
    for mine, theirs in ((self._signals, owner.gpu), (owner._signals, self.gpu)): self.kfd.map_to(mine, [theirs.gpu_id])
    self._peers.add(owner)
    owner._peers.add(self)
    return owner

  # ---- scratch

  def require_scratch(self, wave_bytes: int, where: str) -> None:
    """Make sure that each wave can have `wave_bytes` of private memory; grows the one buffer that all kernels share."""
    with self.memory: self._grow_scratch(wave_bytes, where)

  def _grow_scratch(self, wave_bytes: int, where: str) -> None:
    wave_bytes = round_up(wave_bytes, self.arch.scratch_granule)
    if wave_bytes <= self._scratch_wave_bytes: return
    field = next(f for f in self.arch.gc.COMPUTE_TMPRING_SIZE.FIELDS if f.name == "WAVESIZE")
    if wave_bytes // self.arch.scratch_granule > field.limit:
      raise InvalidArgument(
        f"needs {wave_bytes:,} bytes of scratch a wave, at most {field.limit * self.arch.scratch_granule:,}",
        where=where,
      )
    new = self.kfd.alloc(self.gpu, wave_bytes * self._scratch_waves * self._scratch_parts, Domain.VRAM)
    with self.lock:  # launches that are queued from here on have it
      old, self._scratch, self._scratch_wave_bytes = self._scratch, new, wave_bytes
      self.scratch_generation += 1
    if old is not None: self._release(old)

  @property
  def _scratch_parts(self) -> int:
    """Parts of the chip that have wave slots of their own: shader engines from gfx11 on, before it the one XCC that
    executes a PM4 queue."""
    return self.gpu.node.shader_engines if self.arch.scratch_by_engine else 1

  @property
  def _scratch_waves(self) -> int:
    """Waves of such a part that may have scratch at one time, as TMPRING_SIZE.WAVES counts them."""
    ring: type[Register] = self.arch.gc.COMPUTE_TMPRING_SIZE
    field = next(f for f in ring.FIELDS if f.name == "WAVES")
    return min(self.gpu.node.max_waves // self.gpu.node.xccs // self._scratch_parts, field.limit)

  def scratch_registers(self, wave_bytes: int) -> tuple[int, Register]:
    """Base address of scratch, and the ring size, for a kernel whose waves need `wave_bytes`; zeros for none."""
    ring: type[Register] = self.arch.gc.COMPUTE_TMPRING_SIZE
    if not wave_bytes or self._scratch is None: return 0, register(ring)
    size = round_up(wave_bytes, self.arch.scratch_granule) // self.arch.scratch_granule
    return self._scratch.address, register(ring, WAVES=self._scratch_waves, WAVESIZE=size)

  def scratch_memory(self) -> tuple[int, int]:
    """Address and size of scratch; zeros for none."""
    return (0, 0) if self._scratch is None else (self._scratch.address, self._scratch.size)

  # ---- programs

  def load(self, binary: bytes, kernel: str) -> AMDProgram: return self.load_kernel(binary, kernel)

  def load_kernel(self, binary: bytes, kernel: str) -> AMDProgram:
    """Place a code object in GPU memory (once) and make one of its kernels ready. Errors name what the object holds."""
    with self.copying, self.memory:  # the code is copied in
      self.check_usable()
      image = self._images.get(binary)
      if image is None:
        image = self._images[binary] = self._place(binary)
        self._codes.append(image.told)
      found = image.code.kernel(kernel)
      program = AMDProgram(self, image, found)
      if program.layout.unserved: self.unserved[program.name] = program.layout.unserved
      return program

  def runner(self, launches: Sequence[Launch]) -> Runner:
    if any(not isinstance(l.program, AMDProgram) or l.program.runtime is not self for l in launches):
      raise InvalidArgument("a program of another device", where=self.name)
    return AMDRunner(self, launches)

  def loaded(self) -> list[tuple[int, codeobject.CodeObject]]:
    """(address, code object) of each code object in GPU memory."""
    return [(image.address, image.code) for image in list(self._images.values())]

  def codes(self) -> list[LoadedCode]:
    """What lies in GPU memory as code, with the file that it came in: one list, which grows."""
    return self._codes

  def _place(self, binary: bytes) -> CodeImage:
    code = codeobject.load(binary, arch=self.target, features=self.arch.features)
    if not code.image: raise DecodeError("no section or segment has anything to load", where="code object")
    buffer = self._take(len(code.image), Domain.VRAM, executable=True)
    data = code.link(buffer.address)
    self.copyin(Allocation(buffer.address, buffer.size), memoryview(data))
    return CodeImage(buffer, code, self.name)

  def elapsed(self) -> float:
    """Seconds between the two timestamps of the last profiled launch, on the GPU's clock."""
    return self.timeline.signal.ticks / self.counter_hz

  def began(self) -> float: return int(self.timeline.signal.words[1]) / self.counter_hz

  # ---- waiting and trouble

  def sleep(self, seconds: float) -> None:
    """Ask the GPU for an interrupt behind the queued work, then sleep in the kernel until it or a fault comes."""
    with self.lock:
      last, queue = self.timeline.last, self._last_queue
      if queue is not None and self._armed != last and self.lost is None:
        stream = self._interrupts["compute" if queue is self.compute else "copy"]
        if queue.ring.has_room(queue.words_for(stream, 0)):
          self._armed = last
          queue.submit(stream, last, (), self.timeout_s)
    self.kfd.wait_events(max(int(seconds * 1000), 1), self._event)
    self._check_faults()

  def stopped(self) -> bool:
    with suppress(Error): self.kfd.wait_events(0)
    return self.gpu.gpu_id in self.kfd.faults

  def raise_faults(self) -> None:
    if self.port.pid() != self._pid: self.check_usable()  # a fork, which KFD tells nothing
    self.kfd.wait_events(0)
    self._check_faults()

  def _check_faults(self) -> None:
    fault = self.kfd.faults.get(self.gpu.gpu_id)
    if fault is None: return
    with self.lock:
      if self.lost is None: self.lost = self.examined(report.fault_error(self, fault))
    self.check_usable()

  def timeout_error(self, value: int, seconds: float) -> WaitTimeout: return report.timeout_error(self, value, seconds)

  def reset(self) -> None:
    """Go on after a wait that did not end: new queues, memory kept; what was queued is dropped.

    After a page fault or a GPU hang the kernel driver keeps the process' queues off the GPU (`report.go_on`); then this
    raises DeviceError too.
    """
    with self.lock:
      if self._closed: self.check_usable()
      self._close_queues()
      self.lost, self._last_queue, self._armed, self.registers = None, None, -1, None
      self.kfd.faults.pop(self.gpu.gpu_id, None)
      self.dropped += ((self.timeline.signal.value + 1, self.timeline.last),)
      self.timeline.signal.value = self.timeline.last
      self._open_queues()
    try:
      with self.limited(min(self.timeout_s, CLOSE_TIMEOUT_S)):
        self.wait(self.submit(self.compute, self.compute_marker("probe")))
    except DeviceError as e:
      self.lost = DeviceError("does not run again after new queues", where=self.name, hint=report.go_on(self.name),
                              facts=str(e).splitlines())
      self.check_usable()

  # ---- for tools, reports and tests

  def live_buffers(self) -> Iterator[Buffer]:
    """All memory that this GPU has now (the cache of freed buffers included: it is still mapped)."""
    return (buffer for buffer in list(self.kfd.buffers) if self.gpu.gpu_id in buffer.mapped)

  def sees(self, address: int) -> bool:
    return any(b.address <= address < b.address + b.size for b in self.live_buffers())

  def peek(self, address: int) -> int | None:
    """The dword at a GPU address, if the host sees it."""
    for buffer in list(self.kfd.buffers):
      if buffer.memory is not None and buffer.address <= address <= buffer.address + buffer.size - 4:
        return int.from_bytes(buffer.memory[address - buffer.address:address - buffer.address + 4], "little")
    return None

  def siblings(self) -> int: return len(self.kfd.nodes)

  def own_stream(self, words: Sequence[int], copies: bool) -> BoundStream:
    commands = CopyCommands(self.arch, "words") if copies else ComputeCommands(self.arch, "words")
    commands.words += words
    return commands.signal(self.timeline.signal.address, "timeline").bind()

  def state_unknown(self) -> None: self.registers = None

  def compute_marker(self, label: str = "marker") -> BoundStream:
    """A submission that does nothing but reach its timeline value."""
    return ComputeCommands(self.arch, label).signal(self.timeline.signal.address, "timeline").bind()

  def describe(self) -> str:
    node = self.gpu.node
    chip = f"{self.target}, {node.compute_units} CUs, {node.vram_bytes >> 20:,} MiB"
    return f"{chip}, KFD {self.kfd.version[0]}.{self.kfd.version[1]}"

  def take_down(self) -> None:
    scratch = [] if self._scratch is None else [self._scratch]
    steps: list[Callable[[], None]] = [self._close_queues, lambda: self.kfd.destroy_event(self._event)]
    steps += [partial(self.kfd.free, buffer) for buffer in (*self._own, *self._lent, *scratch)]
    for step in steps:
      with suppress(Error): step()  # closing goes as far as the kernel lets it
    if self._doorbells is not None: self.port.munmap(self._doorbells, _DOORBELLS_BYTES)
