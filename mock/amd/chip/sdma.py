"""A copy engine (SDMA v6, or gfx9's v4): executes the packets of one user queue.

Packets are decoded by `tinyhw.wire.sdma` from the generated declarations. What they do follows Linux 6.12
`sdma_v6_0.c` and the fields' names; byte counts are stored less one there, as in COPY_LINEAR's and CONSTANT_FILL's
`count`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tinyhw.arch import arch
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.core.memory import Access
from tinyhw.core.table import Handlers
from tinyhw.mock.amd.chip.atomics import atomic
from tinyhw.mock.amd.chip.caches.spaces import Client, NearSpace, SdmaSpace
from tinyhw.mock.amd.chip.flights import Packets
from tinyhw.mock.amd.chip.plans import Quick
from tinyhw.mock.amd.chip.queue import Frame, Properties, Queue, State
from tinyhw.mock.memory import spans
from tinyhw.mock.running import MOST_PIECES, PIECES, Wait
from tinyhw.wire import sdma as wire

if TYPE_CHECKING:
  from tinyhw.mock.amd.chip.caches.chip import Chip
  from tinyhw.mock.amd.chip.waves import Waves
  from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice

_MTYPE_UC: Final = 3  # sdma_v6_0_ring_emit_fence
LONGEST: Final = 1 << 11  # dwords that are looked for behind a packet that was cut short
_FILL_DWORDS: Final = 2
_REQUESTED: Final = "SDMA packet", "SDMA_PKT_GCR_REQ", "no caches are modelled"
_LARGEST_ELEMENT: Final = 4  # log2 of bytes
MAX_COPY: Final = 1 << 22  # sdma_v6_0.c copy_max_bytes and fill_max_bytes: 0x400000 bytes a packet
BYTES_PER_NS: Final = 25  # what a copy costs on the machine's clock: a PCIe 4.0 x16 link

# SDMA_PKT_POLL_REGMEM.func, as in the vendor's poll and wait packets.
Compare = tuple[str, Callable[[int, int], bool]]
_COMPARE: Final[tuple[Compare, ...]] = (
  ("any value", lambda seen, wanted: True),
  ("<", lambda seen, wanted: seen < wanted),
  ("<=", lambda seen, wanted: seen <= wanted),
  ("==", lambda seen, wanted: seen == wanted),
  ("!=", lambda seen, wanted: seen != wanted),
  (">=", lambda seen, wanted: seen >= wanted),
  (">", lambda seen, wanted: seen > wanted),
)


# v6's packet that v4 declares too, with fewer hints: one handler serves both.
_FIRST: Final[dict[str, type[sdma.Sdma]]] = {cls.__name__: cls for cls in sdma.PACKETS}


class SdmaQueue(Queue):
  """A queue of a copy engine. Its pointers count bytes."""

  ENGINE: ClassVar[str] = "SDMA"
  SHIFT: ClassVar[int] = 2
  packets_table: ClassVar[Handlers[type[Any]]] = Handlers("SDMA packet")
  handles = packets_table.handles

  def __init__(
    self, process: KfdProcess, device: ProcessDevice, queue_id: int, properties: Properties, doorbell: int
  ) -> None:
    super().__init__(process, device, queue_id, properties, doorbell)
    self.table = wire.table(arch(self.gpu.card.name).sdma)
    self._quick: dict[int, tuple[int, Callable[[list[int], int], bool], Quick]] = {}  # by header: dwords, whether, what

  def _connect(self, chip: Chip) -> None:
    self._packets = Packets(self, 0)
    base, engine = self.space, SdmaSpace(self.space, chip, self._packets)
    self.space = self.past_gl2 = engine
    self._near = NearSpace(base, chip, self._packets)

  def _report_read(self) -> None:
    self.memory.store(self.properties.read_pointer, 8, self.read)

  # ---- decoding

  def _step(self) -> None:
    frame = self.frames[-1]
    words, at = frame.words, frame.at
    self.last = frame, at
    if isinstance(self.space, Client):
      self.space.detail = self._near.detail = self.last
    machine = self.machine
    quick = self._quick.get(words[at])
    if quick is not None and at + quick[0] <= len(words) and not machine.trace.enabled:
      size, fits, run = quick
      if fits(words, at):
        frame.at = at + size
        self.packets += 1
        machine.clock.advance(machine.packet_ns)
        run(words, at)
        return
    packet, used = self._decode(words, at)
    if packet is None:
      return self._truncated(used)
    kind = _FIRST.get(type(packet).__name__, type(packet))
    handler = self.packets_table.get(kind)
    frame.at = at + used
    self.packets += 1
    machine.clock.advance(machine.packet_ns)
    if machine.trace.enabled:
      machine.trace.add(self.name, "packet", repr(packet), address=frame.address + at * 4)
    if handler is not None:
      handler(self, packet)
      self._learn(packet, words[at : at + used])
    else:
      why = self.packets_table.why_ignored(kind)
      if why is None:
        raise Unsupported("SDMA packet", kind.__name__, where=f"{self.name} at {frame.address + at * 4:#x}")
      machine.ignored.note("SDMA packet", kind.__name__, why)

  def _learn(self, packet: Any, words: list[int]) -> None:
    """Remember how packets with this header run that differ in addresses, counts and data only: what else they say was
    decoded and checked with this one."""
    if self.device.chip is not None or words[0] in self._quick:
      return
    kind = _FIRST.get(type(packet).__name__)
    if kind is sdma.SDMA_PKT_COPY_LINEAR:
      flags = words[2]

      def copies(words: list[int], at: int) -> bool:
        return words[at + 2] == flags and words[at + 1] < MAX_COPY

      def copy(words: list[int], at: int) -> None:
        size = words[at + 1] + 1
        self.machine.clock.advance(size // BYTES_PER_NS)
        self._copy(words[at + 3] | words[at + 4] << 32, words[at + 5] | words[at + 6] << 32, size)

      self._quick[words[0]] = len(words), copies, copy
    elif kind is sdma.SDMA_PKT_FENCE:

      def aligned(words: list[int], at: int) -> bool:
        return not words[at + 1] & 3

      def fence(words: list[int], at: int) -> None:
        address, data = words[at + 1] | words[at + 2] << 32, words[at + 3]
        self.machine.signal(self, self.guards(lambda: self.space.store(address, 4, data)))

      self._quick[words[0]] = len(words), aligned, fence
    elif kind is sdma.SDMA_PKT_POLL_REGMEM and packet.mem_poll and not packet.hdp_flush:
      func, mask, retries, last = packet.func, packet.mask, packet.retry_count, words[4:6]

      def polls(words: list[int], at: int) -> bool:
        return not words[at + 1] & 3 and words[at + 4 : at + 6] == last

      def poll(words: list[int], at: int) -> None:
        self._poll(func, words[at + 1] | words[at + 2] << 32, mask, words[at + 3], retries)

      self._quick[words[0]] = len(words), polls, poll
    elif kind in (sdma.SDMA_PKT_GCR_REQ, sdma.SDMA_PKT_GCR_USER):
      size, same = len(words), words[:]

      def equals(words: list[int], at: int) -> bool:
        return words[at : at + size] == same

      def request(words: list[int], at: int) -> None:
        self.machine.ignored.note(*_REQUESTED)

      self._quick[words[0]] = size, equals, request

  def _text(self, words: list[int]) -> str:
    return wire.text(words, of=self.table).partition("\n")[0].split(maxsplit=1)[-1]

  def _decode(self, words: list[int], at: int) -> tuple[Any, int]:
    """The packet and its dwords; (None, dwords) for one whose end was not submitted yet."""
    try:
      return wire.decode(words, at, self.table)
    except DecodeError as error:
      padded = [*words[at:], *([0] * LONGEST)]  # a packet that is legal with zeros behind it is cut short, not wrong
      try:
        packet, used = wire.decode(padded, 0, self.table)
      except DecodeError:
        packet, used = None, 0
      if packet is not None and at + used > len(words):
        return None, used
      raise DecodeError(error.message, where=self.name, words=words[at : at + 8]) from None

  # ---- copies

  @handles(sdma.SDMA_PKT_COPY_LINEAR)
  def copy_linear(self, p: sdma.SDMA_PKT_COPY_LINEAR) -> None:
    self._plain(p, "encrypt", "tmz", "backwards", "broadcast", "dst_sw", "src_sw")
    size = p.count + 1  # Linux asks for no more than MAX_COPY, ROCr 6.1 for as much as the field holds
    self.machine.clock.advance(size // BYTES_PER_NS)
    self._copy(p.src_addr, p.dst_addr, size)

  def _copy(self, source: int, target: int, size: int) -> None:
    """Across mappings; nothing is stored when a part of it faults."""
    space, draws = self.space, self.machine.draws
    if draws is not None and size > 1 and not source - size < target < source + size and (
        more := draws.number(self.name, PIECES, MOST_PIECES)):
      spans(space, source, size)
      spans(space, target, size, Access.WRITE)
      self.waves = self._pieces(source, target, size, more + 1)
      return
    self._piece(source, target, size)

  def _pieces(self, source: int, target: int, size: int, count: int) -> Waves:
    """A copy in parts, between which others come."""
    step = -(-size // count)
    for at in range(0, size, step):
      self._piece(source + at, target + at, min(step, size - at))
      yield None
    return 0

  def _go_on(self, turns: int) -> int:
    while turns and self.waves is not None and self.state is State.READY:
      turns -= 1
      self._turn_begins()
      if next(self.waves, 0) == 0: self.waves = None
    return turns

  def fail(self, error: Error) -> None:
    self.waves = None
    super().fail(error)

  def _piece(self, source: int, target: int, size: int) -> None:
    space = self.space
    if not space.direct:
      return space.write(target, space.read(source, size))
    a, b = space.find(source), space.find(target)
    if a is not None and b is not None and source + size <= a.end and target + size <= b.end:
      if a.access & Access.READ and b.access & Access.WRITE:
        b.raw[target - b.start : target - b.start + size] = a.raw[source - a.start : source - a.start + size]
        return
    read, write = spans(self.space, source, size), spans(self.space, target, size, Access.WRITE)
    if len(read) == len(write) == 1:
      write[0][:] = read[0]
      return
    data, at = np.concatenate(read), 0
    for view in write:
      view[:] = data[at : at + len(view)]
      at += len(view)

  @handles(sdma.SDMA_PKT_COPY_LINEAR_SUBWIN)
  def copy_window(self, p: Any) -> None:
    """Lines of a box of elements, of 2^elementsize bytes, from a window of one surface to that of another. Pitches and
    extents are stored less one, and count elements (radv_sdma_emit_copy_linear_sub_window)."""
    self._plain(p, "tmz", "dst_sw", "src_sw")
    if p.elementsize > _LARGEST_ELEMENT:
      raise DecodeError(f"SDMA_PKT_COPY_LINEAR_SUBWIN.elementsize {p.elementsize}", where=self.name)
    unit = 1 << p.elementsize
    for side, address, pitch in (("src", p.src_addr, p.src_pitch), ("dst", p.dst_addr, p.dst_pitch)):
      if address % 4 or p.rect_y and (pitch + 1) * unit % 4:
        self.machine.doubt(f"{self.name}: COPY_LINEAR_SUBWIN.{side}_addr and pitches are multiples of 4 bytes; "
                           f"here {address:#x} and {(pitch + 1) * unit}")
    source = p.src_addr + (p.src_x + p.src_y * (p.src_pitch + 1) + p.src_z * (p.src_slice_pitch + 1)) * unit
    target = p.dst_addr + (p.dst_x + p.dst_y * (p.dst_pitch + 1) + p.dst_z * (p.dst_slice_pitch + 1)) * unit
    size, space = (p.rect_x + 1) * unit, self.space
    lines = [(source + (z * (p.src_slice_pitch + 1) + y * (p.src_pitch + 1)) * unit,
              target + (z * (p.dst_slice_pitch + 1) + y * (p.dst_pitch + 1)) * unit)
             for z in range(p.rect_z + 1) for y in range(p.rect_y + 1)]
    self.machine.clock.advance(size * len(lines) // BYTES_PER_NS)
    for _, to in lines: spans(space, to, size, Access.WRITE)  # nothing is stored when a part of it faults
    found = [space.read(at, size) for at, _ in lines]
    for (_, to), data in zip(lines, found, strict=True): space.write(to, data)

  @handles(sdma.SDMA_PKT_WRITE_UNTILED)
  def write_linear(self, p: Any) -> None:
    self._plain(p, "encrypt", "tmz", "sw")
    self._aligned(p, p.dst_addr, 4)
    self.space.write(p.dst_addr, b"".join(v.to_bytes(4, "little") for v in p.payload))

  @handles(sdma.SDMA_PKT_CONSTANT_FILL)
  def constant_fill(self, p: sdma.SDMA_PKT_CONSTANT_FILL) -> None:
    self._plain(p, "sw")
    size = p.count + 1
    if p.fillsize == _FILL_DWORDS:  # the count names the last dword's bytes: its low bits do not matter
      size = (p.count >> 2) + 1 << 2
      self._aligned(p, p.dst_addr, 4)
      pattern = p.src_data.to_bytes(4, "little")
    elif p.fillsize == 0:
      pattern = bytes([p.src_data & 0xFF])
      if p.src_data not in (pattern[0], pattern[0] * 0x0101_0101):
        self.machine.doubt(
          f"{self.name}: CONSTANT_FILL of bytes with the pattern {p.src_data:#x}: only its low byte counts"
        )
    else:
      raise Unsupported("SDMA field", f"SDMA_PKT_CONSTANT_FILL.fillsize = {p.fillsize}", where=self.name)
    self.machine.clock.advance(size // BYTES_PER_NS)
    if not self.space.direct:
      return self.space.write(p.dst_addr, (pattern * -(-size // len(pattern)))[:size])
    at = 0
    for view in spans(self.space, p.dst_addr, size, Access.WRITE):
      turn = at % len(pattern)
      if len(pattern) == 1:
        view[:] = pattern[0]
      else:
        view[:] = np.resize(np.frombuffer(pattern[turn:] + pattern[:turn], np.uint8), len(view))
      at += len(view)

  # ---- signals and waits

  @handles(sdma.SDMA_PKT_FENCE)
  def fence(self, p: sdma.SDMA_PKT_FENCE) -> None:
    self._plain(p, "gpa")
    self._aligned(p, p.addr, 4)
    # It goes by its own MTYPE, where it has one, not by the page's.
    kept = self.device.chip is not None and getattr(p, "mtype", _MTYPE_UC) != _MTYPE_UC
    space = self._near if kept else self.space
    self.machine.signal(self, self.guards(lambda: space.store(p.addr, 4, p.data)))

  @handles(sdma.SDMA_PKT_TRAP)
  def trap(self, p: Any) -> None:
    self.interrupt(p.int_context, 28, "SDMA_PKT_TRAP")

  @handles(sdma.SDMA_PKT_POLL_REGMEM)
  def poll_regmem(self, p: Any) -> None:
    if p.hdp_flush:
      self.machine.ignored.note("SDMA packet", "SDMA_PKT_POLL_REGMEM.hdp_flush", "the host sees GPU memory at once")
      return
    if not p.mem_poll and not p.func:  # any value will do: what ROCr's runtime flushes HDP with
      self.machine.ignored.note("SDMA packet", "SDMA_PKT_POLL_REGMEM of a register that may have any value",
                                "the host sees GPU memory at once")
      return
    if not p.mem_poll:
      raise Unsupported("SDMA field", "SDMA_PKT_POLL_REGMEM of a register", where=self.name)
    if p.func >= len(_COMPARE):
      raise DecodeError(f"SDMA_PKT_POLL_REGMEM.func {p.func}", where=self.name)
    self._aligned(p, p.addr, 4)
    self._poll(p.func, p.addr, p.mask, p.value, p.retry_count)

  def _poll(self, func: int, address: int, mask: int, reference: int, retries: int) -> None:
    """Wait until what memory holds, under a mask, compares so with the reference."""
    compare: Compare = _COMPARE[func]
    (symbol, holds), space = compare, self.space

    def seen() -> int:
      return space.poll(address, 4)

    def met() -> bool:
      return holds(seen() & mask, reference)

    if met():
      return
    wanted = f"{symbol} {reference:#x}" + ("" if mask == 0xFFFF_FFFF else f" under mask {mask:#x}")
    if retries != 0xFFF:
      self.machine.doubt(f"{self.name}: POLL_REGMEM gives up after {retries} retries on a chip; here it waits")
    self.block(Wait("SDMA_PKT_POLL_REGMEM", f"[{address:#x}]", wanted, seen, met))

  @handles(sdma.SDMA_PKT_TIMESTAMP_GET, sdma.SDMA_PKT_TIMESTAMP_GET_GLOBAL)
  def timestamp(self, p: Any) -> None:
    self.space.store(p.write_addr, 8, self.gpu.counter())

  @handles(sdma.SDMA_PKT_ATOMIC)
  def atomic(self, p: Any) -> None:
    self._plain(p, "tmz")
    if p.loop:
      width = 8 if p.atomic_op & 0x20 else 4
      wanted = p.cmp_data & ((1 << 8 * width) - 1)
      if self.space.poll(p.addr, width) != wanted:
        self.frames[-1].at -= p.DWORDS
        self.block(
          Wait(
            "SDMA_PKT_ATOMIC",
            f"[{p.addr:#x}]",
            f"== {wanted:#x}",
            lambda: self.space.poll(p.addr, width),
            lambda: self.space.poll(p.addr, width) == wanted,
          )
        )
        return
    atomic(self.space, p.atomic_op, p.addr, p.src_data, p.cmp_data)

  # ---- caches

  @handles(sdma.SDMA_PKT_GCR_REQ, sdma.SDMA_PKT_GCR_USER)
  def cache_request(self, p: sdma.SDMA_PKT_GCR_REQ | sdma.SDMA_PKT_GCR_USER) -> None:
    """GCR_CONTROL has the bits of ACQUIRE_MEM's GCR_CNTL (sdma_v6_0_0_pkt_open.h, SDMA_GCR_*)."""
    if self.device.chip is None:
      self.machine.ignored.note(*_REQUESTED)
    else:
      what = pm4.ACQUIRE_MEM_GCR_CNTL.decode(p.gcr_control)
      self.device.chip.control(what, self.space, p.base_va, p.limit_va - p.base_va, self.name)

  # ---- control

  @handles(sdma.SDMA_PKT_NOP)
  def nop(self, p: Any) -> None:
    pass

  @handles(sdma.SDMA_PKT_INDIRECT)
  def indirect(self, p: Any) -> None:
    """sdma_v6_0.c emit_ib: the buffer is 32-byte aligned and the packet ends at a multiple of 8 dwords."""
    self._plain(p, "vmid", "priv")
    if len(self.frames) > 1:
      raise DecodeError("an indirect buffer calls another one", where=self.name)
    self._aligned(p, p.ib_base, 32)
    if self.frames[-1].at & 7:
      self.machine.doubt(f"{self.name}: INDIRECT ends at dword {self.frames[-1].at}: the engine needs a multiple of 8")
    if not p.ib_size:
      return
    self.frames.append(Frame(memoryview(self.space.read(p.ib_base, p.ib_size * 4)).cast("I").tolist(), p.ib_base))

  @handles(sdma.SDMA_PKT_COND_EXE)
  def cond_exe(self, p: Any) -> None:
    """Skip the next exec_count dwords unless the reference stands in memory."""
    self._aligned(p, p.addr, 4)
    if self.space.load(p.addr, 4) != p.reference:
      self.frames[-1].at += p.exec_count

  # ---- help

  def _plain(self, packet: Any, *fields: str) -> None:
    """These fields ask for what is not modelled when they are not zero."""
    for name in fields:
      if value := getattr(packet, name, 0):
        raise Unsupported("SDMA field", f"{type(packet).__name__}.{name} = {value}", where=self.name)

  def _aligned(self, packet: Any, address: int, width: int) -> None:
    if address % width:
      raise DecodeError(f"{type(packet).__name__}: {address:#x} is not a multiple of {width}", where=self.name)


