"""The command processor's compute engine (MEC): executes PM4 packets of one user queue.

Packets are decoded by `tinyhw.wire.pm4` from the generated declarations; equal words are decoded and checked once.
What a packet does follows the fields' names in AMD's PAL headers and their use in Linux 6.12 `gfx_v11_0.c`. A word
that is no packet stops the queue as CP_BAD_OPCODE does; a packet that the vendor has and the mock does not is
`Unsupported`, raised to whoever waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.errors import (
  DecodeError,
  Unsupported,
  WatchdogExpired,
)
from tinyhw.core.layout import Packet
from tinyhw.core.locks import lock
from tinyhw.core.memory import Access
from tinyhw.core.table import Handlers
from tinyhw.mock.amd.chip.atomics import atomic
from tinyhw.mock.amd.chip.compute import run_dispatch
from tinyhw.mock.amd.chip.planning import ACQUIRED, Planning, Step
from tinyhw.mock.amd.chip.queue import Frame, Properties
from tinyhw.mock.amd.chip.registers import USER_DATA, USER_DATA_COUNT, RegisterTable
from tinyhw.mock.running import Wait
from tinyhw.wire import pm4 as wire

if TYPE_CHECKING:
  from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice

MAX_DEPTH: Final = 2  # the ring and one level of indirect buffers
MAX_CHAIN: Final = 100_000  # chained indirect buffers that count as endless

_COMPARE: Final[dict[int, tuple[str, Callable[[int, int], bool]]]] = {
  int(pm4.WAIT_REG_MEM_function.always_pass): ("any value", lambda seen, wanted: True),
  int(pm4.WAIT_REG_MEM_function.less_than_ref_value): ("<", lambda seen, wanted: seen < wanted),
  int(pm4.WAIT_REG_MEM_function.less_than_equal_to_the_ref_value): ("<=", lambda seen, wanted: seen <= wanted),
  int(pm4.WAIT_REG_MEM_function.equal_to_the_reference_value): ("==", lambda seen, wanted: seen == wanted),
  int(pm4.WAIT_REG_MEM_function.not_equal_reference_value): ("!=", lambda seen, wanted: seen != wanted),
  int(pm4.WAIT_REG_MEM_function.greater_than_or_equal_reference_value): (">=", lambda seen, wanted: seen >= wanted),
  int(pm4.WAIT_REG_MEM_function.greater_than_reference_value): (">", lambda seen, wanted: seen > wanted),
}
_DATA: Final = pm4.RELEASE_MEM_data_sel
_INT: Final = pm4.RELEASE_MEM_int_sel
_NONE, _LOW, _WHOLE, _CLOCK = (
  int(_DATA.none),
  int(_DATA.send_32_bit_low),
  int(_DATA.send_64_bit_data),
  int(_DATA.send_gpu_clock_counter),
)
_ADD32: Final = int(_DATA.atomic_add32bit_low)  # gfx11's alone
_BYPASS: Final = int(pm4.RELEASE_MEM_cache_policy.bypass)  # of every packet that has a policy
_INT_NONE, _INT_ONLY = int(_INT.none), int(_INT.send_interrupt_only)
_INT_DATA: Final = int(_INT.send_data_and_write_confirm)  # data, and no interrupt
_EVENTS_DONE: Final = frozenset(
  int(e)
  for e in (
    pm4.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH,
    pm4.VGT_EVENT_TYPE.CACHE_FLUSH,
    pm4.VGT_EVENT_TYPE.CACHE_FLUSH_AND_INV_EVENT,
  )
)


Prepare = Callable[[Any, RegisterTable], tuple[tuple[int, int, str | None], ...]]


def _past_gl2(packet: Any, policy: str) -> bool:
  """Whether a packet's cache policy goes past GL2. gfx12's packets have hints instead, which keep to the caches."""
  return bool(getattr(packet, policy, None) == _BYPASS)


# BIF_BX_PF0_GPU_HDP_FLUSH_REQ and _DONE, in dwords (nbio_4_3_0_offset.h, nbif_6_3_1_offset.h; NBIO's segment 2).
HDP_FLUSH: Final = 0xD20 + 0x106, 0xD20 + 0x107


class ComputeQueue(Planning):
  """A PM4 queue of the command processor, with its persistent registers."""

  ENGINE: ClassVar[str] = "PM4"
  packets_table: ClassVar[Handlers[type[Packet]]] = Handlers("PM4 packet")
  handles = packets_table.handles

  def __init__(
    self, process: KfdProcess, device: ProcessDevice, queue_id: int, properties: Properties, doorbell: int
  ) -> None:
    super().__init__(process, device, queue_id, properties, doorbell)
    self.table = wire.table(self.processor.pm4)
    if self.processor.pm4 == "gfx9":
      _serve_gfx9()
    self.atomic_return = 0
    self._chained = 0

  def _report_read(self) -> None:
    self.memory.store(self.properties.read_pointer, 4, self.read & 0xFFFF_FFFF)

  def values(self) -> dict[str, int]:
    registers = self.registers | {USER_DATA + i: value for i, value in enumerate(self.user_data)}
    return {self.known.name_of(offset): value for offset, value in sorted(registers.items())}

  def snapshot(self) -> dict[str, Any]:
    return super().snapshot() | self.values()

  # ---- decoding

  def _text(self, words: list[int]) -> str:
    return wire.text(words, of=self.table).partition("\n")[0].split(maxsplit=1)[-1]

  def _decode(self, frame: Frame, key: tuple[int, ...], shape: tuple[int, ...] | None) -> Step:
    """Decode one packet, check what can be checked once, and remember it."""
    packet, used = wire.decode(key, 0, self.table)
    kind = type(packet) if self.table is wire.GFX11 else _declared_first(type(packet))
    handler = self.packets_table.get(kind)
    if handler is None:
      why = self.packets_table.why_ignored(kind)
      if why is None:
        raise Unsupported(
          "PM4 packet",
          kind.__name__,
          arch=self.gpu.card.name,
          where=f"{self.name} at {frame.address + frame.at * 4:#x}",
        )
      step: Step = (Planning.ignore, ("PM4 packet", kind.__name__, why), used)
    else:
      for name in _PLAIN.get(kind, ()):
        if value := getattr(packet, name, 0):  # a later generation may lack it
          raise self._unsupported(f"{kind.__name__}.{name}", value)
      prepare = _PREPARE.get(kind)
      step = (handler, packet if prepare is None else prepare(packet, self.known), used)
    self._steps.keep(key, step)
    if shape is not None and handler is not None:
      self._learn(shape, packet)
    return step

  # ---- registers

  def _lose_registers(self) -> None:
    """Registers that the queue's descriptor does not hold are as the queue before it on the engine left them."""
    lost = self.registers.keys() - self.known.kept
    for offset in lost:
      self.registers[offset] = self.machine.foreign_register() & self.known.bits_of(offset)
    if not lost.isdisjoint(self.known.settings):
      self.settings_version += 1

  def _write_registers(self, pairs: tuple[tuple[int, int, str | None], ...]) -> None:
    registers = self.registers
    self.settings_version += 1
    for offset, value, why in pairs:
      if 0 <= offset - USER_DATA < USER_DATA_COUNT:
        self.user_data[offset - USER_DATA] = value
      else:
        registers[offset] = value
      if why is not None:
        self.machine.ignored.note("register", self.known.name_of(offset), why)

  def read_register(self, offset: int) -> int:
    """What COPY_DATA and WAIT_REG_MEM see."""
    if offset in self.registers:
      return self.registers[offset]
    if 0 <= offset - USER_DATA < USER_DATA_COUNT:
      return int(self.user_data[offset - USER_DATA])
    if offset == gc.RLC_GPU_CLOCK_COUNT_LSB.OFFSET:
      return self.gpu.counter() & 0xFFFF_FFFF
    if offset == gc.RLC_GPU_CLOCK_COUNT_MSB.OFFSET:
      return self.gpu.counter() >> 32
    if offset in (gc.GRBM_STATUS.OFFSET, gc.GRBM_STATUS2.OFFSET) and not (self.beside is not None and self.beside.busy):
      return 0  # no dispatch runs
    raise Unsupported("register", self.known.name_of(offset), where=f"read on {self.name}")

  @handles(pm4.SET_SH_REG, pm4.SET_UCONFIG_REG, pm4.SET_SH_REG_INDEX)
  def set_registers(self, pairs: tuple[tuple[int, int, str | None], ...]) -> None:
    self._write_registers(pairs)

  # ---- memory

  @handles(pm4.NOP)
  def nop(self, packet: pm4.NOP) -> None:
    pass

  @handles(pm4.WRITE_DATA)
  def write_data(self, p: pm4.WRITE_DATA) -> None:
    if p.dst_sel == pm4.WRITE_DATA_dst_sel.mem_mapped_register:
      step = 0 if p.addr_incr else 1
      self._write_registers(
        tuple((at := p.dst_mmreg_addr + i * step, v, self.known.check_write(at, v)) for i, v in enumerate(p.payload))
      )
      return
    if p.dst_sel not in (pm4.WRITE_DATA_dst_sel.tc_l2, pm4.WRITE_DATA_dst_sel.memory):
      raise self._unsupported("WRITE_DATA.dst_sel", p.dst_sel)
    self._aligned("WRITE_DATA", p.dst_mem_addr, 4)
    past = p.dst_sel == pm4.WRITE_DATA_dst_sel.memory or _past_gl2(p, "cache_policy")
    space = self.past_gl2 if past else self.space
    if p.addr_incr:
      for value in p.payload:
        space.store(p.dst_mem_addr, 4, value)
    else:
      space.write(p.dst_mem_addr, b"".join(v.to_bytes(4, "little") for v in p.payload))

  @handles(pm4.COPY_DATA)
  def copy_data(self, p: pm4.COPY_DATA) -> None:
    width, source = 8 if p.count_sel else 4, pm4.COPY_DATA_src_sel
    if p.src_sel in (source.tc_l2, source.tc_l2_obsolete):
      self._aligned("COPY_DATA", p.src_addr, width)
      past = _past_gl2(p, "src_cache_policy")
      value = (self.past_gl2 if past else self.space).load(p.src_addr, width)
    elif p.src_sel == source.mem_mapped_register:
      value = self.read_register(p.src_reg_offset) | (
        self.read_register(p.src_reg_offset + 1) << 32 if width == 8 else 0
      )
    elif p.src_sel == source.immediate_data:
      value = p.src_addr
    elif p.src_sel == source.gpu_clock_count:
      value = self.gpu.counter()
    elif p.src_sel == source.atomic_return_data:
      value = self.atomic_return
    else:
      raise self._unsupported("COPY_DATA.src_sel", p.src_sel)
    value &= (1 << 8 * width) - 1
    target = pm4.COPY_DATA_dst_sel
    if p.dst_sel in (target.tc_l2, target.tc_l2_obsolete):
      self._aligned("COPY_DATA", p.dst_addr, width)
      past = _past_gl2(p, "dst_cache_policy")
      (self.past_gl2 if past else self.space).store(p.dst_addr, width, value)
    elif p.dst_sel == target.mem_mapped_register:
      parts = [(p.dst_reg_offset + i, value >> 32 * i & 0xFFFF_FFFF) for i in range(width // 4)]
      self._write_registers(tuple((at, v, self.known.check_write(at, v)) for at, v in parts))
    else:
      raise self._unsupported("COPY_DATA.dst_sel", p.dst_sel)

  @handles(pm4.DMA_DATA)
  def dma_data(self, p: pm4.DMA_DATA) -> None:
    source, target, size = pm4.DMA_DATA_src_sel, pm4.DMA_DATA_dst_sel, p.byte_count
    if p.dst_sel not in (target.dst_addr_using_das, target.dst_addr_using_l2) or p.das:
      raise self._unsupported("DMA_DATA.dst_sel", p.dst_sel)
    if p.saic or p.daic:
      raise self._unsupported("DMA_DATA without address increment", 1)
    if p.src_sel == source.data:
      self._aligned("DMA_DATA", p.dst_addr | size, 4)
      data = p.src_addr_lo_or_data.to_bytes(4, "little") * (size // 4)
    elif p.src_sel in (source.src_addr_using_sas, source.src_addr_using_l2) and not p.sas:
      past = p.src_sel == source.src_addr_using_sas or _past_gl2(p, "src_cache_policy")
      data = (self.past_gl2 if past else self.space).read(p.src_addr_hi << 32 | p.src_addr_lo_or_data, size)
    else:
      raise self._unsupported("DMA_DATA.src_sel", p.src_sel)
    past = p.dst_sel == target.dst_addr_using_das or _past_gl2(p, "dst_cache_policy")
    (self.past_gl2 if past else self.space).write(p.dst_addr, data)

  @handles(pm4.ATOMIC_MEM)
  def atomic_mem(self, p: pm4.ATOMIC_MEM) -> None:
    if p.command == pm4.ATOMIC_MEM_command.loop_until_compare_satisfied:
      width = 8 if p.atomic & 0x20 else 4
      if self.space.poll(p.addr, width) != p.cmp_data & ((1 << 8 * width) - 1):
        self.frames[-1].at -= p.DWORDS + 1
        self.block(
          Wait(
            repr(p),
            f"[{p.addr:#x}]",
            f"== {p.cmp_data:#x}",
            lambda: self.space.poll(p.addr, width),
            lambda: self.space.poll(p.addr, width) == p.cmp_data & ((1 << 8 * width) - 1),
          )
        )
        return
    old, _, returns = atomic(self.space, p.atomic, p.addr, p.src_data, p.cmp_data)
    if returns:
      self.atomic_return = old

  # ---- order and time

  @handles(pm4.EVENT_WRITE)
  def event_write(self, p: pm4.EVENT_WRITE) -> None:
    if p.event_type not in _EVENTS_DONE:
      raise self._unsupported("EVENT_WRITE.event_type", p.event_type)
    if (
      p.event_type == pm4.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH
      and p.event_index != pm4.EVENT_WRITE_event_index.cs_partial_flush
    ):
      self.machine.doubt(f"{self.name}: CS_PARTIAL_FLUSH with event_index {p.event_index}: it does not wait on a chip")
    elif p.event_type == pm4.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH and self.beside is not None:
      self._wait_for_dispatches("EVENT_WRITE CS_PARTIAL_FLUSH")

  @handles(pm4.ACQUIRE_MEM)
  def acquire_mem(self, p: pm4.ACQUIRE_MEM) -> None:
    """At once, whatever dispatches still run. `coher_base` and `coher_size` count 256 bytes."""
    if self.device.chip is None:
      self.machine.ignored.note(*ACQUIRED)
    else:
      what = pm4.ACQUIRE_MEM_GCR_CNTL.decode(p.gcr_cntl)
      self.device.chip.control(what, self.space, p.coher_base << 8, p.coher_size << 8, self.name)

  def starve(self, packet: str) -> None:
    """Wait for ever: the packet ends with an end-of-pipe event, and the queue has no buffer for these.

    CREATE_QUEUE allows it (kfd_queue_acquire_buffers checks an EOP buffer only where there is one). The descriptor's
    EOP_SIZE is 0 then, which is two dwords (gfx_v11_0.c), an entry has eight, and the CP never submits more than there
    are entries (kfd_mqd_manager_v11.c).
    """
    self.machine.doubt(f"{self.name}: CREATE_QUEUE was given no EOP buffer: {packet} never ends on a chip")
    self.block(Wait(packet, "a free entry of the EOP buffer", "that the queue does not have", lambda: 0, lambda: False))

  @handles(pm4.RELEASE_MEM)
  def release_mem(self, p: pm4.RELEASE_MEM) -> None:
    if (doubt := release_doubt(p)) is not None:
      self.machine.doubt(f"{self.name}: {doubt}")
    self._release(p, p.data)

  def _release(self, p: pm4.RELEASE_MEM, data: int) -> None:
    """The packet with its data, which a packet of the same shape may give anew."""
    if not self.ends_pipes:
      return self.starve("RELEASE_MEM")
    beside, chip, last = self.beside, self.device.chip, self.last
    if beside is None or chip is None:
      return self.machine.signal(self, self.guards(lambda: self._released(p, data)))

    def at_end() -> None:
      now, self.last = self.last, last
      self._speak()
      chip.control(pm4.RELEASE_MEM_GCR_CNTL.decode(p.gcr_cntl), self.space, 0, 1 << 64, self.name)
      self._released(p, data)
      self.last = now

    beside.at_end(at_end)

  def _released(self, p: pm4.RELEASE_MEM, data: int) -> None:
    """The dispatches before it have ended."""
    to_memory = p.dst_sel == pm4.RELEASE_MEM_dst_sel.memory_controller
    past = to_memory or _past_gl2(p, "cache_policy")
    space = self.past_gl2 if past else self.space
    if p.dst_sel > 1:
      raise self._unsupported("RELEASE_MEM.dst_sel", p.dst_sel)
    select, interrupt = p.data_sel, p.int_sel
    if interrupt > _INT_DATA and interrupt != _INT.unconditionally_send_int_ctxid:
      raise self._unsupported("RELEASE_MEM.int_sel", interrupt)
    if interrupt != _INT_ONLY:
      if select == _LOW:
        space.store(p.address, 4, data & 0xFFFF_FFFF)
      elif select == _WHOLE or select == _CLOCK:
        self._aligned("RELEASE_MEM", p.address, 8)
        space.store(p.address, 8, data if select == _WHOLE else self.gpu.counter())
      elif select == _ADD32 and self.table is wire.GFX11:
        space.store(p.address, 4, space.load(p.address, 4, Access.ATOMIC) + data & 0xFFFF_FFFF, Access.ATOMIC)
      elif select != _NONE:
        raise self._unsupported("RELEASE_MEM.data_sel", select)
    if interrupt not in (_INT_NONE, _INT_DATA):
      self.interrupt(p.int_ctxid, 32, "RELEASE_MEM")

  @handles(pm4.WAIT_REG_MEM)
  def wait_reg_mem(self, p: pm4.WAIT_REG_MEM) -> None:
    self._wait(p, 4, p.reference)

  @handles(pm4.WAIT_REG_MEM64)
  def wait_reg_mem64(self, p: pm4.WAIT_REG_MEM64) -> None:
    self._wait(p, 8, p.reference)

  def _wait(self, p: Any, width: int, reference: int) -> None:
    """Compare (value & mask) with the reference, now and until it holds."""
    function = _COMPARE.get(p.function)
    if function is None:
      raise DecodeError(f"{type(p).__name__}.function {p.function}", where=self.name)
    symbol, holds = function
    if p.mem_space:
      self._aligned(type(p).__name__, p.mem_poll_addr, width)
      past = _past_gl2(p, "cache_policy")
      where, address, space = f"[{p.mem_poll_addr:#x}]", p.mem_poll_addr, self.past_gl2 if past else self.space

      def seen() -> int:
        return space.poll(address, width)
    else:
      offset = p.reg_poll_addr
      if p.operation == pm4.WAIT_REG_MEM_operation.wr_wait_wr_reg:
        if (p.reg_write_addr1, p.reg_write_addr2) == HDP_FLUSH:
          return self.machine.ignored.note("PM4 packet", "WAIT_REG_MEM of GPU_HDP_FLUSH",
                                           "the host sees GPU memory at once")
        first = p.reg_write_addr1
        self._write_registers(((first, p.reference, self.known.check_write(first, p.reference)),))
        offset = p.reg_write_addr2
      where = self.known.name_of(offset)

      def seen() -> int:
        return self.read_register(offset)

    mask = p.mask

    def met() -> bool:
      return holds(seen() & mask, reference)

    if not met():
      wanted = f"{symbol} {reference:#x}" + ("" if mask == (1 << 8 * width) - 1 else f" under mask {mask:#x}")
      self.block(Wait(type(p).__name__, where, wanted, seen, met))

  # ---- control

  @handles(pm4.INDIRECT_BUFFER)
  def indirect_buffer(self, p: pm4.INDIRECT_BUFFER) -> None:
    if not p.valid:
      raise DecodeError("INDIRECT_BUFFER.valid is 0", where=self.name, hint="compute queues need the bit set")
    if p.chain and len(self.frames) > 1:
      self.frames.pop()
      self._chained += 1
      if self._chained > MAX_CHAIN:
        raise WatchdogExpired(f"{self._chained:,} indirect buffers chained without an end, the last at {p.ib_base:#x}")
    else:
      self._chained = 0
    if not p.ib_size:
      return
    if len(self.frames) >= MAX_DEPTH:
      raise DecodeError("an indirect buffer calls another one without chain", where=self.name)
    words = memoryview(self.space.read(p.ib_base, p.ib_size * 4)).cast("I").tolist()
    self.frames.append(Frame(words, p.ib_base))

  @handles(pm4.DISPATCH_DIRECT)
  def dispatch_direct(self, p: pm4.DISPATCH_DIRECT) -> None:
    run_dispatch(self, (p.dim_x, p.dim_y, p.dim_z), p.dispatch_initiator)

  @handles(pm4.DISPATCH_INDIRECT)
  def dispatch_indirect(self, p: pm4.DISPATCH_INDIRECT) -> None:
    self._aligned("DISPATCH_INDIRECT", p.addr, 4)
    x, y, z = (self.space.load(p.addr + 4 * i, 4) for i in range(3))
    run_dispatch(self, (x, y, z), p.dispatch_initiator)

  # ---- help

  def _aligned(self, packet: str, address: int, width: int) -> None:
    if address % width:
      raise DecodeError(f"{packet}: address {address:#x} is not a multiple of {width}", where=self.name)

  def _unsupported(self, field: str, value: int) -> Unsupported:
    return Unsupported("PM4 field", f"{field} = {value}", arch=self.gpu.card.name, where=self.name)


def _serve_gfx9() -> None:
  from tinyhw.mock.amd.chip.gfx9 import HANDLERS  # its packets are declared when the first of its queues opens
  with _SERVING:  # threads may open the first ones at once
    for kind, does in HANDLERS.items():
      if ComputeQueue.packets_table.get(kind) is None:
        ComputeQueue.packets_table.handles(kind)(does)


_SERVING: Final = lock()
_FIRST: Final = {cls.__name__: cls for cls in pm4.PACKETS}


def _declared_first(cls: Any) -> type[Packet]:
  """The packet of gfx11 that a later generation declares anew, whose handler serves both: they differ in hints for the
  caches and in values that are gone. One of another opcode or length is a packet of its own."""
  known = _FIRST.get(cls.__name__)
  found: type[Packet] = cls if known is None or (known.OP, known.DWORDS) != (cls.OP, cls.DWORDS) else known
  return found


ComputeQueue.packets_table.ignores(pm4.HDP_FLUSH, why="the host sees GPU memory at once")
ComputeQueue.packets_table.ignores(
  pm4.PRIME_UTCL2, pm4.INVALIDATE_TLBS, why="no address translation caches are modelled"
)


def _register_pairs(start: int, end: int) -> Prepare:
  def prepare(p: Any, known: RegisterTable) -> tuple[tuple[int, int, str | None], ...]:
    """Absolute offset, value, why it has no effect; each write checked once."""
    if getattr(p, "vmid_shift", 0) or getattr(p, "index", 0) not in (0, 3):
      raise Unsupported("PM4 field", f"{type(p).__name__}.index = {p.index}")
    first = start + p.reg_offset
    if first + len(p.payload) > end or not p.payload:
      raise DecodeError(
        f"{type(p).__name__}: registers {first:#x} to {first + len(p.payload):#x} are outside of {start:#x} to {end:#x}"
      )
    return tuple((first + i, v, known.check_write(first + i, v)) for i, v in enumerate(p.payload))

  return prepare


_PREPARE: Final[dict[type[Packet], Prepare]] = {
  pm4.SET_SH_REG: _register_pairs(pm4.SET_SH_REG_START, pm4.SET_SH_REG_END),
  pm4.SET_SH_REG_INDEX: _register_pairs(pm4.SET_SH_REG_START, pm4.SET_SH_REG_END),
  pm4.SET_UCONFIG_REG: _register_pairs(pm4.SET_UCONFIG_REG_START, pm4.SET_UCONFIG_REG_END),
}

# RELEASE_MEM's event_index by event: end of pipe for those with a time stamp, end of shader for CS_DONE and PS_DONE.
_AT_END_OF_PIPE: Final = frozenset(
  int(e)
  for e in (
    pm4.VGT_EVENT_TYPE.CACHE_FLUSH_TS,
    pm4.VGT_EVENT_TYPE.CACHE_FLUSH_AND_INV_TS_EVENT,
    pm4.VGT_EVENT_TYPE.BOTTOM_OF_PIPE_TS,
    pm4.VGT_EVENT_TYPE.FLUSH_AND_INV_DB_DATA_TS,
    pm4.VGT_EVENT_TYPE.FLUSH_AND_INV_CB_DATA_TS,
  )
)
_AT_END_OF_SHADER: Final = frozenset(int(e) for e in (pm4.VGT_EVENT_TYPE.CS_DONE, pm4.VGT_EVENT_TYPE.PS_DONE))


def release_doubt(p: pm4.RELEASE_MEM) -> str | None:
  """What of the packet's event does not fit (nvd.h's list of event indices), or None."""
  events = {
    int(pm4.RELEASE_MEM_event_index.end_of_pipe): _AT_END_OF_PIPE,
    int(pm4.RELEASE_MEM_event_index.shader_done): _AT_END_OF_SHADER,
  }.get(p.event_index, frozenset())
  if p.event_type in events:
    return None
  known = {int(e): e.name for e in pm4.VGT_EVENT_TYPE}.get(p.event_type, f"{p.event_type:#x}")
  return f"RELEASE_MEM of event {known} with event_index {p.event_index}: the engine does not wait for that event"

# Fields that ask for what is not modelled, or for what only the kernel's own queues may do, when they are not zero.
_PLAIN: Final[dict[type[Packet], tuple[str, ...]]] = {
  pm4.RELEASE_MEM: ("wait_sync", "pq_exe_status", "mes_intr_pipe", "mes_action_id"),
  pm4.WAIT_REG_MEM: ("mes_intr_pipe", "mes_action", "optimize_ace_offload_mode"),
  pm4.WAIT_REG_MEM64: ("mes_intr_pipe", "mes_action", "optimize_ace_offload_mode"),
  pm4.COPY_DATA: ("pq_exe_status",),
  pm4.INDIRECT_BUFFER: ("offload_polling", "vmid"),
  pm4.EVENT_WRITE: ("offload_enable", "samp_plst_cntr_mode"),
}
