"""An NVIDIA GPU as a Runtime: its channels, memory, local memory, cubins, and what it says when it stops."""
from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from tinyhw.autogen import nv_rm_alloc
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, OutOfMemory, Unsupported, WaitTimeout
from tinyhw.core.port import Port
from tinyhw.drive.allocate import BounceBuffer, KernargRing, round_up
from tinyhw.drive.base import Allocation, Launch, Runner, Runtime
from tinyhw.drive.nv import copying, report
from tinyhw.drive.nv.bare import is_ptx
from tinyhw.drive.nv.channel import Channel
from tinyhw.drive.nv.commands import COMPUTE, COPY, ComputeCommands, CopyCommands, text
from tinyhw.drive.nv.gpu import CodeImage, GpuRuntime, Prepared
from tinyhw.drive.nv.program import NVProgram
from tinyhw.drive.nv.rm import BIG_PAGE, HUGE_PAGE, LOCAL_WINDOW, PAGE, SHARED_WINDOW, Aperture, Buffer, OsEvent, Rm
from tinyhw.drive.nv.runner import NVRunner
from tinyhw.drive.queue import BoundStream, LoadedCode
from tinyhw.drive.signal import SignalPool
from tinyhw.wire import qmd
from tinyhw.wire.codeobject import CodeObject
from tinyhw.wire.cubin import Cubin

_KERNARG_BYTES: Final = 1 << 20
_BOUNCE_BYTES: Final = 32 << 20
_BOUNCE_PARTS: Final = 8
_CACHE_BYTES: Final = 512 << 20
_MAX_COPY_BYTES: Final = 1 << 30   # LINE_LENGTH_IN has 32 bits
_TIMES_BYTES: Final = 32           # two semaphores of 16 bytes with their timestamps
_LOCAL_GRANULE: Final = 0x8000     # of a TPC's local memory
_NO_ERROR: Final = 0               # NvNotification.status of a channel that lives


class NVRuntime(GpuRuntime):
  """GPU number `index` of the machine behind `port`. `timeout_s` bounds each wait: TINYHW_TIMEOUT_S or 30 s by
  default. `qmd_version` is that of the generation unless it is given; with `inline_qmd` QMDs of single launches travel
  in the pushbuffer. Threads may share it (`QueuedRuntime`): its programs launch with `lock`, all else takes `memory`.
  """

  def __init__(self, port: Port, index: int = 0, timeout_s: float | None = None,
               qmd_version: tuple[int, int] | None = None, inline_qmd: bool = False) -> None:
    super().__init__(port, f"NV:{index}" if index else "NV", timeout_s)
    self.index, self.max_copy_bytes = index, _MAX_COPY_BYTES
    self.rm = Rm.of(port)
    self.gpu = self.rm.open_gpu(index)
    self.arch = self.gpu.arch
    for class_id in (self.arch.compute_class, self.arch.copy_class, self.arch.channel_class):
      if class_id not in self.gpu.classes:
        raise Unsupported("GPU without class", f"{class_id:#06x}", arch=self.arch.name, where=self.name)
    self.qmd_version, self.inline_qmd = qmd_version or self.arch.qmd, inline_qmd
    qmd.declared(self.arch.compute_class, self.qmd_version)
    self._own: list[Buffer] = []
    self._images: dict[bytes, CodeImage] = {}
    self._codes: list[LoadedCode] = []
    self._assembled: dict[bytes, bytes] = {}
    self.start_lending(_CACHE_BYTES)
    self._copies: NVProgram | None = None  # made by the first large copy
    self._event: OsEvent | None = None  # made by the first wait that sleeps
    self._armed = -1  # the timeline's value that the last interrupt stands behind
    self._local: Buffer | None = None
    self._local_thread_bytes, self.local_generation = 0, 0
    self._channels: list[Channel] = []
    self.assemble: Callable[[bytes], bytes] | None = None  # what makes PTX loadable, where somebody gives it
    self.signature = None
    try:
      self._signals = shared = self._take(PAGE, Aperture.SYSTEM)
      self.times = shared.address + PAGE - _TIMES_BYTES
      self._times = shared.bytes()[PAGE - _TIMES_BYTES:PAGE].cast("Q")
      self.start_timeline(SignalPool(shared.bytes()[:PAGE - _TIMES_BYTES], shared.address))
      self.chain, self.chains = self.signals.take(), 0
      arguments, bounce = self._take(_KERNARG_BYTES, Aperture.VRAM, True), self._take(_BOUNCE_BYTES, Aperture.SYSTEM)
      self.kernargs = KernargRing(arguments.bytes(), arguments.address, self.wait)
      self.bounce = BounceBuffer(bounce.bytes(), bounce.address, self.wait, _BOUNCE_PARTS)
      self._open_queues()
    except BaseException:
      self.take_down()
      raise

  def _take(self, size: int, kind: Aperture, host: bool | None = None) -> Buffer:
    """Memory that the runtime itself keeps until it is closed."""
    buffer = self.rm.take(self.gpu, size, kind, host=host, low=True)
    self._own.append(buffer)
    return buffer

  # ---- channels

  def _open_queues(self) -> None:
    arch, signal = self.arch, self.timeline.signal
    compute = self._channel("compute", nv_rm_alloc.NV2080_ENGINE_TYPE_GRAPHICS, arch.compute_class, COMPUTE)
    self.compute = self._launches = compute.queue
    self.copier = self._channel("copy", self._copy_engine(), arch.copy_class, COPY).queue
    self.compute.wait_stream = ComputeCommands(arch.compute_class, "wait").wait("address", "value").bind()
    self.copier.wait_stream = CopyCommands(arch.copy_class, "wait").wait("address", "value").bind()
    made = ((self.compute, ComputeCommands(arch.compute_class, "interrupt").wait_for_idle()),
            (self.copier, CopyCommands(arch.copy_class, "interrupt")))
    self._interrupts = {queue.name: commands.interrupt().bind() for queue, commands in made}
    copy = CopyCommands(arch.copy_class, "copy").copy("destination", "source", "count")
    self.copy_stream = copy.signal(signal.address, "timeline").bind()
    begin = ComputeCommands(arch.compute_class, "set up").begin().windows(SHARED_WINDOW, LOCAL_WINDOW)
    if self._local is not None: begin.local_memory(self._local.address, self._tpc_bytes(self._local_thread_bytes))
    self.submit(self.compute, begin.signal(signal.address, "timeline").bind())
    self.submit(self.copier, CopyCommands(arch.copy_class, "set up").begin().signal(signal.address, "timeline").bind())

  def _copy_engine(self) -> int:
    """The copy engine with a runlist of its own that has the most physical ones; where all belong to the graphics
    engine's, the first."""
    first, last = nv_rm_alloc.NV2080_ENGINE_TYPE_COPY0, nv_rm_alloc.NV2080_ENGINE_TYPE_COPY19
    engines = [e for e in self.gpu.engines if first <= e <= last]
    if not engines: raise Unsupported("GPU without", "copy engines", arch=self.arch.name, where=self.name)
    own = [e for e in engines if not self.rm.is_graphics_copy(self.gpu, e)]
    return max(own, key=partial(self.rm.copy_units, self.gpu), default=engines[0])

  def _channel(self, name: str, engine: int, class_id: int, subchannel: int) -> Channel:
    def done() -> int: return int(self._done[0])
    channel = Channel(self.rm, self.gpu, f"{self.name} {name} channel", engine, class_id, done,
                      partial(text, class_id=class_id, subchannel=subchannel))
    self._channels.append(channel)
    return channel

  # ---- memory

  def rounded(self, nbytes: int) -> int: return round_up(nbytes, HUGE_PAGE if nbytes >= HUGE_PAGE else BIG_PAGE)

  def take(self, size: int) -> Buffer: return self.rm.take(self.gpu, size, Aperture.VRAM)

  def give(self, buffer: Buffer) -> None: self.rm.give(buffer)

  def is_peer(self, other: Runtime) -> bool:
    if other is self: return True
    if not isinstance(other, NVRuntime) or other.rm is not self.rm: return False
    return self.rm.reaches(self.gpu, other.gpu)

  def reach(self, allocation: Allocation) -> NVRuntime:
    owner, buffer = self.owner(allocation)
    if owner is self: return self
    if owner not in self._peers and not self.is_peer(owner):
      raise InvalidArgument(f"no peer link to {owner.name}", where=self.name,
                            hint="copy through the host: copyout, then copyin")
    self.rm.connect(self.gpu, owner.gpu)
    self.rm.map_to(buffer, self.gpu)
    owner.check_usable()
    for mine, theirs in ((self._signals, owner.gpu), (owner._signals, self.gpu)): self.rm.map_to(mine, theirs)
    self._peers.add(owner)
    owner._peers.add(self)
    return owner

  def register_host(self, address: int, size: int) -> Allocation:
    """Whole pages of this process as memory of the device, without a copy: kernels and copies reach them at their own
    address. They must stay mapped until `unregister_host`."""
    with self.memory:
      self.check_usable()
      buffer = self.rm.register_host(self.gpu, address, size)
      self._lent.add(buffer)
      self.used[buffer.address] = size, "pages of the host"
    return Allocation(buffer.address, size, (self, buffer))

  def unregister_host(self, allocation: Allocation) -> None:
    """The pages are the process's alone again, when all queued work is done."""
    with self.memory:
      owner, buffer = self.owner(allocation)
      if owner is not self or buffer.kind is not Aperture.USER:
        raise InvalidArgument("the allocation is no pages of the host", where=self.name)
      self.used.pop(buffer.address, None)
      allocation.address = allocation.handle = None
      if not self._closed: self._release(buffer)

  def copy_by_kernel(self, destination: int, source: int, nbytes: int) -> int:
    blocks = nbytes // copying.BLOCK_BYTES
    if nbytes < copying.LEAST or (destination | source) % copying.ALIGN or self.assemble is None: return 0
    if self._copies is None: self._copies = self.load_kernel(copying.TEXT, copying.NAME)
    self._copies.launch(struct.pack("<QQ", destination, source), (blocks, 1, 1), (copying.THREADS, 1, 1))
    return blocks * copying.BLOCK_BYTES

  # ---- local memory

  def _tpc_bytes(self, thread_bytes: int) -> int:
    """Local memory of all threads that a TPC can hold."""
    threads = self.gpu.warps_per_sm * self.arch.warp_size * self.arch.sms_per_tpc
    return round_up(round_up(thread_bytes, 16) * threads, _LOCAL_GRANULE)

  def require_local(self, thread_bytes: int, where: str) -> None:
    """Make sure that each thread can have so much local memory; grows the one buffer that all kernels share."""
    with self.memory:
      if thread_bytes <= self._local_thread_bytes: return
      tpc = self._tpc_bytes(thread_bytes)
      try: new = self.rm.take(self.gpu, tpc * self.gpu.tpcs, Aperture.VRAM)
      except OutOfMemory as e:
        raise OutOfMemory(f"{where}: local memory, {thread_bytes:,} bytes a thread", e.asked, e.free) from None
      c = ComputeCommands(self.arch.compute_class, "local memory").wait_for_idle().local_memory(new.address, tpc)
      self.submit(self.compute, c.signal(self.timeline.signal.address, "timeline").bind())
      with self.lock:  # launches that are queued from here on have it
        old, self._local, self._local_thread_bytes = self._local, new, thread_bytes
        self.local_generation += 1
      if old is not None: self._release(old)

  # ---- programs

  def load(self, binary: bytes, kernel: str) -> NVProgram: return self.load_kernel(binary, kernel)

  def load_kernel(self, binary: bytes, kernel: str) -> NVProgram:
    """Place a cubin in GPU memory (once) and make one of its kernels ready. Errors name what the cubin holds.

    PTX is made a cubin first, where the device was given what does that.
    """
    if is_ptx(binary):
      if self.assemble is None: raise Unsupported("PTX", "without an assembler", where=self.name)
      known = self._assembled.get(binary)
      if known is None: known = self._assembled[binary] = self.assemble(binary)
      binary = known
    with self.copying, self.memory:  # the code is copied in
      self.check_usable()
      image = self._images.get(binary)
      if image is None:
        image = self._images[binary] = self._place(binary)
        self._codes.append(image.told)
      found = image.code.kernel(kernel)
    return NVProgram(self, image, found)

  def _place(self, binary: bytes) -> CodeImage:
    code = Cubin(binary)
    # Code runs on later minor versions of its major version (CUDA C++ Programming Guide, "Binary Compatibility").
    if code.sm // 10 != self.arch.sm // 10 or code.sm > self.arch.sm:
      raise Unsupported("cubin for", code.arch, arch=self.arch.name, where=self.name)
    if not code.kernels: raise DecodeError("no kernel", where="cubin")
    buffer = self._take(len(code.file), Aperture.VRAM)
    data = code.link(buffer.address)
    self.copyin(Allocation(buffer.address, buffer.size), memoryview(data))
    c = ComputeCommands(self.arch.compute_class, "new program").invalidate()
    self.submit(self.compute, c.signal(self.timeline.signal.address, "timeline").bind())
    return CodeImage(buffer, code, self.name)

  def codes(self) -> list[LoadedCode]:
    """What lies in GPU memory as code, with the file that it came in: one list, which grows."""
    return self._codes

  def loaded(self) -> list[tuple[int, CodeObject]]:
    """AMD's code objects in memory: none."""
    return []

  def runner(self, launches: Sequence[Launch]) -> Runner:
    if any(not isinstance(l.program, NVProgram) or l.program.runtime is not self for l in launches):
      raise InvalidArgument("a program of another device", where=self.name)
    return NVRunner(self, launches)

  def elapsed(self) -> float:
    """Seconds between the two timestamps of the last profiled launch, on the GPU's clock (PTIMER, nanoseconds)."""
    return (int(self._times[3]) - int(self._times[1])) / 1e9

  def began(self) -> float: return int(self._times[1]) / 1e9

  def launch_at_once(self, made: Prepared, packer: struct.Struct, addresses: Sequence[int | None],
                     values: Sequence[int | float]) -> bool:
    """What `enter`, `KernargRing.take`, `claim` and `submit_placed` do, in one piece: a launch is short."""
    arguments, queue, timeline, at = self.kernargs, self._launches, self.timeline, made.places
    if at is None: return False
    ring, dwords, value = queue.ring, made.dwords, 0
    self.lock.acquire()
    try:
      start, value = arguments.at, timeline.last + 1
      stop = start + len(made.bytes)
      if (stop > arguments.end or self._last_queue is not queue or self._dependencies or not value & 0xFFFFFFFF
          or not ring.has_entry() or made.generation != self.local_generation or self.lost is not None
          or os.getpid() != self._pid): return False
      packer.pack_into(made.bytes, made.params_at, *addresses, *values)
      address = arguments.address + start
      dwords[at.bank] = address + at.bank_at >> at.bank_shift & 0xFFFFFFFF
      dwords[at.low], dwords[at.high], dwords[at.send] = value & 0xFFFFFFFF, value >> 32, address >> at.send_shift
      arguments.at, timeline.last = stop, value
      arguments.memory[start:stop] = made.bytes
      ring.tell(address + made.stream_at, len(made.stream.words))
      ring.ring_doorbell()
      ring.used_by(value)
      arguments.used_by(value)
      queue.remember(0, len(made.stream.words), value, made.stream.label, made.stream.words.tolist())
      return True
    except BaseException:
      if timeline.last == value: self.abandon()
      raise
    finally: self.lock.release()

  def submit_placed(self, address: int, stream: BoundStream, value: int) -> None:
    queue, waits = self._launches, list[tuple[int, int]]()
    if queue is not self._last_queue or self._dependencies: waits = self._waits(queue, value - 1)
    queue.submit_at(address, stream, value, waits, self.timeout_s)
    self._last_queue = queue

  # ---- small writes and lines

  def write_inline(self, dst: Allocation, data: bytes, offset: int = 0) -> None:
    """Queue a write of few bytes that travel in the pushbuffer."""
    address = self._range(dst, offset + len(data), "inline write") + offset
    c = ComputeCommands(self.arch.compute_class, "inline data").inline(address, data)
    self.submit(self.compute, c.signal(self.timeline.signal.address, "timeline").bind())

  def copy_lines(self, dst: Allocation, src: Allocation, length: int, lines: int, to_pitch: int,
                 from_pitch: int) -> None:
    """Queue a copy of `lines` of `length` bytes, which begin so many bytes apart."""
    if length <= 0 or lines <= 0 or min(to_pitch, from_pitch) < length:
      raise InvalidArgument(f"{lines} lines of {length} bytes, {to_pitch} and {from_pitch} apart", where=self.name)
    to = self._range(dst, to_pitch * (lines - 1) + length, "copy to")
    source = self._range(src, from_pitch * (lines - 1) + length, "copy from")
    c = CopyCommands(self.arch.copy_class, "copy of lines").copy_lines(to, source, length, lines, to_pitch, from_pitch)
    self.submit(self.copier, c.signal(self.timeline.signal.address, "timeline").bind())

  # ---- waiting and trouble

  def sleep(self, seconds: float) -> None:
    self.asleep(seconds)
    self.raise_faults()

  def asleep(self, seconds: float) -> bool:
    """Sleep in the kernel until an interrupt behind the queued work comes, or the time is over; whether one came."""
    with self.rm.lock:  # threads may come here together
      if self._event is None: self._event = self.rm.open_event(self.gpu)
      event = self._event
    with self.lock:
      last, queue = self.timeline.last, self._last_queue
      if queue is not None and self._armed != last and self.lost is None:
        stream = self._interrupts[queue.name]
        if queue.ring.has_room(queue.words_for(stream, 0)):
          self._armed = last
          queue.submit(stream, last + 1, (), self.timeout_s)  # whose words are read before the next value comes
    return self._done[0] < last and self.port.poll(event.fd, seconds)

  def _dead(self) -> Channel | None:
    """A channel whose notifier tells of an error."""
    return next((c for c in self._channels if c.notifier.status != _NO_ERROR), None)

  def stopped(self) -> bool: return self._dead() is not None

  def raise_faults(self) -> None:
    dead = self._dead()
    if dead is None: return
    with self.lock:
      if self.lost is None: self.lost = self.examined(report.channel_error(self, dead, int(dead.notifier.info32)))
    self.check_usable()

  def timeout_error(self, value: int, seconds: float) -> WaitTimeout: return report.timeout_error(self, value, seconds)

  # ---- for tools, reports and tests

  def sees(self, address: int) -> bool:
    return any(b.address <= address < b.address + b.size and self.gpu.uuid in b.mapped for b in list(self.rm.buffers))

  def peek(self, address: int) -> int | None:
    """The dword at a GPU address, if the host sees it."""
    for buffer in list(self.rm.buffers):
      if buffer.memory is not None and buffer.address <= address <= buffer.address + buffer.size - 4:
        return int.from_bytes(buffer.memory[address - buffer.address:address - buffer.address + 4], "little")
    return None

  def siblings(self) -> int: return len(self.rm.cards)

  def alloc_for_words(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"alloc of {nbytes} bytes", where=self.name)
    with self.memory:
      self.check_usable()
      buffer = self.rm.take(self.gpu, self.rounded(nbytes), Aperture.VRAM, low=True)
      self._lent.add(buffer)
      self.used[buffer.address] = nbytes, ""
    return Allocation(buffer.address, nbytes, (self, buffer))

  def own_stream(self, words: Sequence[int], copies: bool) -> BoundStream:
    c = CopyCommands(self.arch.copy_class, "words") if copies else ComputeCommands(self.arch.compute_class, "words")
    c.words += words
    return c.signal(self.timeline.signal.address, "timeline").bind()

  def compute_marker(self, label: str = "marker") -> BoundStream:
    c = ComputeCommands(self.arch.compute_class, label)
    return c.signal(self.timeline.signal.address, "timeline").bind()

  def describe(self) -> str:
    gpu = self.gpu
    return f"{gpu.name} ({self.arch.name}), {gpu.sms} SMs, {gpu.vram_bytes >> 20:,} MiB, driver {self.rm.version}"

  # ---- the end

  def take_down(self) -> None:
    steps: list[Callable[[], None]] = [channel.close for channel in self._channels]
    if self._event is not None: steps.append(partial(self.rm.close_event, self._event))
    local = [] if self._local is None else [self._local]
    steps += [partial(self.rm.give, buffer) for buffer in (*self._own, *self._lent, *local)]
    for step in steps:
      with suppress(Error): step()  # closing goes as far as the kernel driver lets it
