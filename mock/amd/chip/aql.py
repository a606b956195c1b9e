"""An AQL queue of the command processor: 64-byte HSA packets, signals, and the kernel descriptor turned into
registers.

Packets, signals and amd_queue_t are the generated ones of the HSA headers; what a packet does follows the HSA System
Architecture Specification (user-mode queues, 2.8 and 2.9) and LLVM's AMDGPUUsage (kernel descriptor, initial SGPRs).
The queue's amd_queue_t is found from the read pointer that CREATE_QUEUE was given: it is that structure's
read_dispatch_id.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.autogen import amdhsa, hsa
from tinyhw.core.errors import DecodeError, MachineFault, PageFault, Unsupported
from tinyhw.core.layout import Register, Struct
from tinyhw.core.memory import Access
from tinyhw.mock.amd.chip.compute import dispatch_again, run_dispatch
from tinyhw.mock.amd.chip.loaded import kernel_name
from tinyhw.mock.amd.chip.pm4 import ComputeQueue
from tinyhw.mock.amd.chip.queue import Frame, Place, Properties, State
from tinyhw.mock.running import Wait
from tinyhw.wire import aql

if TYPE_CHECKING:
  from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice

BYTES: Final = aql.PACKET_BYTES
_SCOPE: Final = (1 << hsa.HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE) - 1
NO_DOORBELL: Final = (1 << 64) - 1  # what a doorbell holds before the first packet, whose index is 0


def _offset(struct: type[ctypes.Structure], field: str) -> int:
  """Bytes from the start of a generated structure to a field, also one of its anonymous unions."""
  return int(getattr(struct, field).offset)


_VALUE: Final = _offset(hsa.amd_signal_t, "value")
_MAILBOX, _EVENT = _offset(hsa.amd_signal_t, "event_mailbox_ptr"), _offset(hsa.amd_signal_t, "event_id")
_START, _END = _offset(hsa.amd_signal_t, "start_ts"), _offset(hsa.amd_signal_t, "end_ts")
_READ: Final = _offset(hsa.amd_queue_t, "read_dispatch_id")

# A call of PM4 packets: vendor-specific packet of this format, with an INDIRECT_BUFFER behind its header (ROCr 6.1,
# core/inc/amd_gpu_pm4.h and amd_aql_queue.cpp: AMD_AQL_FORMAT_PM4_IB, amd_aql_pm4_ib). No header for users has it.
FORMAT_PM4_IB: Final = 1
_JUMP_WORDS: Final = 4
INSUFFICIENT_SCRATCH: Final = 1  # a bit of queue_inactive_signal (ROCr 6.1, AqlQueue::DynamicScratchHandler)


class PM4Call(Struct):
  """amd_aql_pm4_ib, 64 bytes."""

  ib_jump_cmd: ctypes.Array[ctypes.c_uint32]
  dw_cnt_remain: int
  completion_signal: hsa.hsa_signal_t
  _fields_ = [
    ("header", ctypes.c_uint16),
    ("ven_hdr", ctypes.c_uint16),
    ("ib_jump_cmd", ctypes.c_uint32 * _JUMP_WORDS),
    ("dw_cnt_remain", ctypes.c_uint32),
    ("reserved", ctypes.c_uint32 * 8),
    ("completion_signal", hsa.hsa_signal_t),
  ]


_CONDITIONS: Final[dict[int, tuple[str, Callable[[int, int], bool]]]] = {
  hsa.HSA_SIGNAL_CONDITION_EQ: ("==", lambda seen, wanted: seen == wanted),
  hsa.HSA_SIGNAL_CONDITION_NE: ("!=", lambda seen, wanted: seen != wanted),
  hsa.HSA_SIGNAL_CONDITION_LT: ("<", lambda seen, wanted: seen < wanted),
  hsa.HSA_SIGNAL_CONDITION_GTE: (">=", lambda seen, wanted: seen >= wanted),
}


def _signed(value: int) -> int:
  return value - (1 << 64) if value >> 63 else value


class AqlQueue(ComputeQueue):
  """A queue whose pointers count packets. It stalls at a packet whose type is INVALID, and goes on when the type
  changes."""

  ENGINE: ClassVar[str] = "AQL"

  def __init__(
    self, process: KfdProcess, device: ProcessDevice, queue_id: int, properties: Properties, doorbell: int
  ) -> None:
    super().__init__(process, device, queue_id, properties, doorbell)
    self.slots = properties.ring_size // BYTES
    # What the last dispatch has written: by what, when, the descriptor's properties, the initiator, whether it stays.
    self._kept: tuple[tuple[bytes, int, tuple[int, int, int], int], int, int, int, bool] | None = None
    self._asked = -1  # the index of the packet for which scratch memory was asked last
    self._after: Callable[[], None] | None = None  # PM4 packets run: what comes behind them
    device.doorbell_region().u8[doorbell : doorbell + 8] = 0xFF

  def share(self, cores: int) -> int:
    """All: workgroups go to the XCCs in turn (kfd_mqd_manager_v9.c, compute_tg_chunk_size 1)."""
    return cores

  # ---- the ring

  def ring_doorbell(self, value: int) -> None:
    """A store of a packet's index: this packet and those before it may run."""
    self.machine.trace_fast(self.name, "doorbell", value)
    if self.error is not None or value == NO_DOORBELL:
      return
    try:
      if self._was_off():
        self._map_again(self.memory.load(self.properties.write_pointer, 8))
      else:
        self._accept(value + 1, "doorbell")
    except PageFault as fault:
      return self.fail(fault)
    self._note_thread()

  def _accept(self, value: int, source: str) -> bool:
    """A new write index."""
    if value > self.read + self.slots:
      self.fail(
        DecodeError(
          f"{source} for {value:#x} packets with read index {self.read:#x} and {self.slots} slots", where=self.name
        )
      )
      return False
    self.write = max(self.write, value)
    return True

  @property
  def _fetched(self) -> int:
    return self.read

  def _slot(self) -> int:
    return self.properties.ring_address + self.read % self.slots * BYTES

  def _kind(self) -> int:
    """The type of the packet at the read index."""
    return self.memory.load(self._slot(), 2) & (1 << hsa.HSA_PACKET_HEADER_WIDTH_TYPE) - 1

  def upcoming(self) -> int | None:
    if self.wait is not None or self.busy or self.error is not None:
      return super().upcoming()
    return self._slot() if self.read < self.write else None

  def _ready(self) -> bool:
    if self.state is State.BLOCKED or self.busy:
      return super()._ready()
    try:
      if self.state is not State.READY: return False
      return bool(self.frames) or self.read < self.write and self._kind() != hsa.HSA_PACKET_TYPE_INVALID
    except PageFault as fault:
      self.fail(fault)
      return False

  def _report_read(self) -> None:
    self.memory.store(self.properties.read_pointer, 8, self.read)

  def _retire(self) -> None:
    pass  # the read index moves when a packet is complete

  def _text(self, words: list[int]) -> str:
    if self.frames: return super()._text(words)
    try:
      return repr(aql.decode(b"".join(w.to_bytes(4, "little") for w in words[:16])))
    except DecodeError as error:
      return str(error)

  def packet_text(self) -> str:
    text = super().packet_text()
    if self.last is None or self.frames or "hsa_kernel_dispatch" not in text: return text
    words = self.last[0].words
    packet = hsa.hsa_kernel_dispatch_packet_t.from_buffer_copy(b"".join(w.to_bytes(4, "little") for w in words[:16]))
    name = kernel_name(self.memory, packet.kernel_object)
    return text if name is None else f"{text} of kernel {name}"

  # ---- packets

  def _execute(self, packets: int) -> None:
    """Execute packets until one blocks, stalls or fails."""
    with self.guarded():
      self._turn_begins()
      if self.state is State.BLOCKED:
        self._resume()
        packets -= 1  # others may come before what is behind the wait
      while packets and self.state is State.READY:
        if self.busy:
          packets = self._go_on(packets)
        elif self.frames:
          packets = self._pm4(packets)
        elif self.read < self.write and self._kind() != hsa.HSA_PACKET_TYPE_INVALID:
          packets -= 1
          self._packet()
        else:
          break
        self._report_read()

  def _pm4(self, packets: int) -> int:
    """Go on with PM4 packets that a packet has called; how many may still be executed."""
    packets = self._follow(self.frames[-1], packets)
    if self.state is not State.READY or self.busy: return packets
    while self.frames and self.frames[-1].at >= len(self.frames[-1].words): self.frames.pop()
    if not self.frames and (after := self._after) is not None:
      self._after = None
      after()
    return packets

  def _packet(self) -> None:
    if not self.ends_pipes:
      return self.starve("an AQL packet")
    at = self._slot()
    raw = self.space.read(at, BYTES)
    self.last = Frame(memoryview(raw).cast("I").tolist(), at), 0
    self._speak()
    if self.beside is not None and not self._fenced(int.from_bytes(raw[:2], "little")):
      return
    kind = self._kind()
    packet = self._vendor(raw) if kind == hsa.HSA_PACKET_TYPE_VENDOR_SPECIFIC else aql.decode(raw)
    machine = self.machine
    machine.clock.advance(machine.packet_ns)
    if machine.trace.enabled:
      machine.trace.add(self.name, "packet", repr(packet), address=at)
    start = self.gpu.counter()
    if isinstance(packet, hsa.hsa_kernel_dispatch_packet_t):
      if not self._dispatch(packet, at): return
      if self.beside is None:
        self.when_ended(lambda: self._complete(packet, at, start))
      else:  # it has begun: its slot is free, and the packets behind it go on
        self._free(at)
        last = self.last
        self.when_ended(lambda: self._signal(packet, start, last))
      return
    elif isinstance(packet, hsa.hsa_barrier_and_packet_t):
      if not self._all_or_any(packet, "every", all):
        return
    elif isinstance(packet, hsa.hsa_barrier_or_packet_t):
      if not self._all_or_any(packet, "any", any):
        return
    elif isinstance(packet, hsa.hsa_amd_barrier_value_packet_t):
      if not self._barrier_value(packet):
        return
    elif isinstance(packet, PM4Call):
      self.frames.append(Frame(list(packet.ib_jump_cmd), at + 4))
      self._after = lambda: self._complete(packet, at, start)
      return
    else:
      raise DecodeError(f"{type(packet).__name__}: kernel agents do not take it", where=self.name)
    self._complete(packet, at, start)

  def _vendor(self, raw: bytes) -> Struct:
    form = hsa.hsa_amd_vendor_packet_header_t.from_buffer_copy(raw).AmdFormat
    if form == FORMAT_PM4_IB: return PM4Call.from_buffer_copy(raw)
    if form != hsa.HSA_AMD_PACKET_TYPE_BARRIER_VALUE:
      raise Unsupported("AQL packet", f"vendor-specific format {form}", where=self.name)
    return hsa.hsa_amd_barrier_value_packet_t.from_buffer_copy(raw)

  def _complete(self, packet: Any, at: int, start: int) -> None:
    self._free(at)
    self._signal(packet, start, self.last)

  def _free(self, at: int) -> None:
    """The packet's slot may be used again."""
    self.memory.store(at, 2, hsa.HSA_PACKET_TYPE_INVALID)
    self.read += 1
    self.packets += 1

  def _fenced(self, header: int) -> bool:
    """Wait where the barrier bit says so, then do what the acquire fence says. False while the queue waits."""
    if header >> hsa.HSA_PACKET_HEADER_BARRIER & 1:
      self._wait_for_dispatches("an AQL packet with the barrier bit")
      if self.state is State.BLOCKED:
        return False
    scope = header >> hsa.HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & _SCOPE
    if scope and self.device.chip is not None:
      self.device.chip.fence(acquire=True, system=scope == hsa.HSA_FENCE_SCOPE_SYSTEM)
    return True

  def _signal(self, packet: Any, start: int, last: Place | None) -> None:
    """Do what the release fence says, then decrement the completion signal, stamp it and notify its event."""
    if self.device.chip is not None:
      self.last, last = last, self.last
      self._speak()
      header = bytes(packet)[:2]
      scope = int.from_bytes(header, "little") >> hsa.HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & _SCOPE
      self.device.chip.fence(acquire=False, system=scope == hsa.HSA_FENCE_SCOPE_SYSTEM)
      self.last = last
    signal = packet.completion_signal.handle
    if not signal:
      return
    self.space.store(signal + _START, 8, start)
    self.space.store(signal + _END, 8, self.gpu.counter())
    value = self.space.load(signal + _VALUE, 8, Access.ATOMIC)
    self.space.store(signal + _VALUE, 8, value - 1 & NO_DOORBELL, Access.ATOMIC)
    self._notify(signal, "a completion signal")

  def _notify(self, signal: int, what: str) -> None:
    """Have a signal's event happen, where it has one."""
    mailbox = self.space.load(signal + _MAILBOX, 8)
    if mailbox:
      event = self.space.load(signal + _EVENT, 4)
      self.space.store(mailbox, 8, event)
      self.interrupt(event, 32, what)

  # ---- barriers

  def _all_or_any(self, packet: Any, word: str, test: Callable[[Any], bool]) -> bool:
    """A barrier over up to five signals, which must be zero; null handles do not count."""
    signals = [s.handle for s in packet.dep_signal if s.handle]
    if not signals:
      return True
    space = self.space

    def met() -> bool:
      return test(space.poll(s + _VALUE, 8) == 0 for s in signals)

    if met():
      return True
    where = f"{word} signal of {', '.join(f'{s:#x}' for s in signals)}"
    self.block(Wait(type(packet).__name__, where, "== 0", lambda: space.poll(signals[0] + _VALUE, 8), met))
    return False

  def _barrier_value(self, packet: hsa.hsa_amd_barrier_value_packet_t) -> bool:
    condition = _CONDITIONS.get(packet.cond)
    if condition is None:
      raise DecodeError(f"barrier-value condition {packet.cond}", where=self.name)
    (symbol, holds), at, space = condition, packet.signal.handle + _VALUE, self.space
    if not packet.signal.handle:
      return True
    mask, wanted = packet.mask, packet.value

    def seen() -> int:
      return _signed(space.poll(at, 8)) & mask

    def met() -> bool:
      return holds(seen(), wanted)

    if met():
      return True
    self.block(
      Wait("hsa_amd_barrier_value_packet_t", f"signal {packet.signal.handle:#x}", f"{symbol} {wanted:#x}", seen, met)
    )
    return False

  # ---- dispatches

  def _dispatch(self, p: hsa.hsa_kernel_dispatch_packet_t, at: int) -> bool:
    """Fill the registers as the packet processor does, and run. False while the queue waits for scratch memory."""
    dimensions = p.setup & (1 << hsa.HSA_KERNEL_DISPATCH_PACKET_SETUP_WIDTH_DIMENSIONS) - 1
    block = (p.workgroup_size_x, p.workgroup_size_y, p.workgroup_size_z)
    grid = (p.grid_size_x, p.grid_size_y, p.grid_size_z)
    if not 1 <= dimensions <= 3:
      raise MachineFault(f"{dimensions} dimensions in a dispatch packet")
    if 0 in block or any(n != 1 for n in (*block[dimensions:], *grid[dimensions:])):
      raise MachineFault(f"workgroups of {block} in a grid of {grid} with {dimensions} dimensions")
    if any(n % b for n, b in zip(grid, block, strict=True)):
      raise Unsupported("dispatch", f"partial workgroups ({grid} by {block})", where=self.name)
    raw = self.space.read(p.kernel_object, ctypes.sizeof(amdhsa.kernel_descriptor_t))
    key = raw, p.kernel_object, block, p.group_segment_size
    if self._kept is None or self._kept[:2] != (key, self.settings_version):
      found = self._set_registers(p, raw, block)
      if found is None: return False
      self._kept = key, self.settings_version, *found
    _, _, properties, initiator, same = self._kept
    users = self._user_data(p, properties, at)
    self.user_data[: len(users)] = users
    size = grid[0] // block[0], grid[1] // block[1], grid[2] // block[2]
    if self.machine.at_once: dispatch_again(self, size, initiator, [], 0)
    else: run_dispatch(self, size, initiator)
    if not same: self._kept = None
    return True

  def _set_registers(self, p: hsa.hsa_kernel_dispatch_packet_t, raw: bytes,
                     block: tuple[int, int, int]) -> tuple[int, int, bool] | None:
    """Write what descriptor and packet ask for; the properties of the descriptor, the initiator, and whether
    an equal packet finds it as it is. None while the queue waits for scratch memory."""
    kernel = amdhsa.kernel_descriptor_t.from_buffer_copy(raw)
    entry = p.kernel_object + kernel.kernel_code_entry_byte_offset
    if entry & 0xFF:
      raise MachineFault(f"kernel entry {entry:#x} is not a multiple of 256")
    gc = self.known.declared
    rsrc2 = gc.COMPUTE_PGM_RSRC2.decode(kernel.compute_pgm_rsrc2)
    rsrc1 = gc.COMPUTE_PGM_RSRC1.decode(kernel.compute_pgm_rsrc1)
    rsrc1.PRIV = int(self.gpu.card.traps_off)  # "CP is responsible for filling in" (AMDGPUUsage)
    rsrc2.LDS_SIZE = -(-p.group_segment_size // self.processor.lds_granule)
    memory = self._scratch(p, kernel) if rsrc2.SCRATCH_EN else (0, 0)
    if memory is None: return None
    scratch, ring = memory
    values: dict[type[Register], int] = {
      gc.COMPUTE_PGM_LO: entry >> 8 & 0xFFFF_FFFF,
      gc.COMPUTE_PGM_HI: entry >> 40,
      gc.COMPUTE_PGM_RSRC1: rsrc1.value(),
      gc.COMPUTE_PGM_RSRC2: rsrc2.value(),
      gc.COMPUTE_PGM_RSRC3: kernel.compute_pgm_rsrc3,
      gc.COMPUTE_NUM_THREAD_X: block[0],
      gc.COMPUTE_NUM_THREAD_Y: block[1],
      gc.COMPUTE_NUM_THREAD_Z: block[2],
      gc.COMPUTE_TMPRING_SIZE: ring,
      gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO: scratch >> 8 & 0xFFFF_FFFF,
      gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI: scratch >> 40,
    }
    for register, value in values.items():
      self.registers[register.OFFSET] = value
    self.settings_version += 1
    wave32 = bool(kernel.kernel_code_properties & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32)
    width = {"CS_W32_EN": int(wave32)} if self.processor.wave32 else {}
    initiator = gc.COMPUTE_DISPATCH_INITIATOR(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1, **width)
    return kernel.kernel_code_properties, initiator.value(), not rsrc2.SCRATCH_EN

  def _scratch(self, p: hsa.hsa_kernel_dispatch_packet_t,
               kernel: amdhsa.kernel_descriptor_t) -> tuple[int, int] | None:
    """Base and ring size from the queue's amd_queue_t. A queue with too little asks its runtime for more: then None."""
    queue = hsa.amd_queue_t.from_buffer_copy(
      self.space.read(self.properties.read_pointer - _READ, ctypes.sizeof(hsa.amd_queue_t))
    )
    ring = self.known.declared.COMPUTE_TMPRING_SIZE.decode(queue.compute_tmpring_size)
    lanes = 32 if kernel.kernel_code_properties & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32 else 64
    if ring.WAVESIZE * self.processor.scratch_granule < p.private_segment_size * lanes:
      what = f"{p.private_segment_size} bytes of scratch a lane, more than the queue has"
      signal = queue.queue_inactive_signal.handle
      if not signal:
        raise Unsupported("dispatch", what, where=self.name, hint="the queue has no queue_inactive_signal to ask by")
      if self._asked == self.read:
        raise MachineFault(f"{what}, and its runtime has given no more")
      self._asked = self.read
      self._ask(signal, INSUFFICIENT_SCRATCH, what)
      return None
    return queue.scratch_backing_memory_location, queue.compute_tmpring_size

  def _ask(self, signal: int, code: int, what: str) -> None:
    """Tell the runtime by the queue's queue_inactive_signal what it lacks, and wait until the signal is 0 again."""
    space = self.space
    space.store(signal + _VALUE, 8, code, Access.ATOMIC)
    self._notify(signal, "queue_inactive_signal")
    def seen() -> int: return space.poll(signal + _VALUE, 8)
    self.block(Wait("the dispatch", f"queue_inactive_signal {signal:#x} ({what})", "== 0", seen, lambda: seen() == 0))

  def _user_data(self, p: hsa.hsa_kernel_dispatch_packet_t, wanted: int, at: int) -> list[int]:
    """The user SGPRs that the kernel asks for, in the ABI's order."""

    def pair(value: int) -> list[int]:
      return [value & 0xFFFF_FFFF, value >> 32]

    data: list[int] = []
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER:
      data += [0, 0, 0, 0]
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR:
      data += pair(at)
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR:
      data += pair(self.properties.read_pointer - _READ)
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR:
      data += pair(p.kernarg_address)
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_ID:
      data += pair(self.read)
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_FLAT_SCRATCH_INIT:
      data += [0, 0]
    if wanted & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_SIZE:
      data += [p.private_segment_size]
    return data
