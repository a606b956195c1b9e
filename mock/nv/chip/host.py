"""Host methods: semaphores, waits, cache operations. What they do is told by `dev_pbdma.ref` of GA100, "Host Methods".

A method that is none, or ILLEGAL, ends the channel with METHOD; a semaphore that is misaligned, or asks for a reduction
that the memory system has not, with SEMAPHORE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError
from tinyhw.core.kept import Kept
from tinyhw.core.layout import Method
from tinyhw.core.table import Handlers
from tinyhw.mock.nv.chip import faults, semaphores
from tinyhw.mock.nv.chip.engine import DECODED
from tinyhw.mock.running import Wait
from tinyhw.wire import methods

if TYPE_CHECKING:
  from tinyhw.mock.nv.chip.channel import Channel

_BY_ADDRESS: Final = methods.by_address(host)
_OPERATIONS: Final = {int(o): o.name for o in host.SEM_EXECUTE_OPERATION}
_Row = tuple[Callable[..., Any] | None, Method, str]


class Host:
  """The host engine's registers of one channel."""

  table: ClassVar[Handlers[str]] = Handlers("host method")
  handles = table.handles

  def __init__(self, channel: Channel) -> None:
    self.channel = channel
    self._known: Kept[tuple[int, int], _Row] = Kept(DECODED)
    self.reference = 0
    self._address_low = self._address_high = self._payload_low = self._payload_high = 0
    self._old_high = self._old_low = self._old_payload = 0
    self._after: Any = None  # what follows a wait for idle

  def method(self, address: int, value: int) -> None:
    """One method below 0x100."""
    whole = _WHOLE.get(address)
    if whole is not None:
      return whole(self, value)
    row = self._known.get((address, value))
    if row is None:
      row = self._known.keep((address, value), _decode(address, value))
    handler, decoded, why = row
    if handler is not None:
      handler(self, decoded)
    else:
      self.channel.machine.ignored.note("host method", type(decoded).__name__, why)

  @handles("NOP")
  def nop(self, p: host.NOP) -> None:
    pass

  @handles("ILLEGAL")
  def illegal(self, p: host.ILLEGAL) -> None:
    raise faults.host("METHOD", f"ILLEGAL({p.HANDLE:#x})")

  @handles("CLEAR_FAULTED")
  def clear_faulted(self, p: host.CLEAR_FAULTED) -> None:
    raise faults.host("METHOD", "CLEAR_FAULTED is a software method, and the kernel driver expects none")

  # ---- semaphores

  @handles("SEM_ADDR_LO")
  def address_low(self, p: host.SEM_ADDR_LO) -> None:
    self._address_low = p.OFFSET_ << 2

  @handles("SEM_ADDR_HI")
  def address_high(self, p: host.SEM_ADDR_HI) -> None:
    self._address_high = p.OFFSET_

  @handles("SEM_PAYLOAD_LO")
  def payload_low(self, payload: int) -> None:
    self._payload_low = payload

  @handles("SEM_PAYLOAD_HI")
  def payload_high(self, payload: int) -> None:
    self._payload_high = payload

  @handles("SEM_EXECUTE")
  def execute(self, p: host.SEM_EXECUTE) -> None:
    """Acquire, release or reduce."""
    wide = bool(p.PAYLOAD_SIZE)
    address = self._address_high << 32 | self._address_low
    payload = self._payload_high << 32 | self._payload_low if wide else self._payload_low
    operation = _OPERATIONS.get(p.OPERATION)
    if operation is None:
      raise faults.host("SEMAPHORE", f"SEM_EXECUTE.OPERATION = {p.OPERATION}")
    if operation not in ("RELEASE", "REDUCTION"):
      self._acquire(operation, address, payload, wide)
      return
    timed = bool(p.RELEASE_TIMESTAMP)
    name, signed = "", False
    if operation == "REDUCTION":
      if p.REDUCTION not in host.SEM_EXECUTE_REDUCTION._value2member_map_:
        raise faults.host("SEMAPHORE", f"SEM_EXECUTE.REDUCTION = {p.REDUCTION}")
      name = host.SEM_EXECUTE_REDUCTION(p.REDUCTION).name
      signed = p.REDUCTION_FORMAT == host.SEM_EXECUTE_REDUCTION_FORMAT.SIGNED
      if name in ("INC", "DEC") and (wide or signed) or name == "IADD" and wide and signed:
        raise faults.host("SEMAPHORE", f"a {'64' if wide else '32'}-bit {'signed' if signed else 'unsigned'} {name}")
    self._write(address, payload, name, wide, signed, timed, bool(p.RELEASE_WFI))

  def _write(self, address: int, payload: int, name: str, wide: bool, signed: bool, timed: bool, waits: bool) -> None:
    """Release a semaphore, or change it, now or when the engine is idle."""
    self._aligned(address, semaphores.alignment(wide, timed))

    def write() -> None:
      channel = self.channel
      channel.caches.released()
      semaphores.write(channel.space, address, payload, name, wide=wide, signed=signed,
                       time_ns=channel.gpu.timer() if timed else None)

    self._when_idle(write, waits)

  def _aligned(self, address: int, size: int) -> None:
    if address % size:
      raise faults.host("SEMAPHORE", f"a semaphore of {size} bytes at {address:#x}")

  def _acquire(self, operation: str, address: int, payload: int, wide: bool) -> None:
    width = 8 if wide else 4
    self._aligned(address, width)
    space = self.channel.space

    def seen() -> int:
      return space.poll(address, width)

    def met() -> bool:
      return semaphores.acquired(operation, seen(), payload, wide)

    if not met():
      self.channel.block(Wait("SEM_EXECUTE", f"[{address:#x}]", f"{operation} {payload:#x}", seen, met))

  def _when_idle(self, then: Any, wait: bool) -> None:
    """Now, or when the engine has nothing to do any more."""
    channel = self.channel
    if not wait or not channel.jobs:
      return then()  # type: ignore[no-any-return]
    self._after = then
    channel.block(Wait("SEM_EXECUTE", "the engine", "idle", lambda: len(channel.jobs.queue), lambda: not channel.jobs))

  def resume(self) -> None:
    """The wait is over."""
    after, self._after = self._after, None
    if after is not None:
      after()

  # ---- semaphores as they were before Volta; the methods are still there

  @handles("SEMAPHOREA")
  def semaphore_a(self, p: host.SEMAPHOREA) -> None:
    self._old_high = p.OFFSET_UPPER

  @handles("SEMAPHOREB")
  def semaphore_b(self, p: host.SEMAPHOREB) -> None:
    self._old_low = p.OFFSET_LOWER << 2

  @handles("SEMAPHOREC")
  def semaphore_c(self, p: host.SEMAPHOREC) -> None:
    self._old_payload = p.PAYLOAD

  @handles("SEMAPHORED")
  def semaphore_d(self, p: host.SEMAPHORED) -> None:
    """OPERATION is one bit of several here, and a release waits for idle unless it says not to."""
    operations = host.SEMAPHORED_OPERATION
    if p.OPERATION not in operations._value2member_map_:
      raise faults.host("SEMAPHORE", f"SEMAPHORED.OPERATION = {p.OPERATION}")
    operation, address, payload = operations(p.OPERATION), self._old_high << 32 | self._old_low, self._old_payload
    acquires = {operations.ACQUIRE: "ACQUIRE", operations.ACQ_GEQ: "ACQ_CIRC_GEQ", operations.ACQ_AND: "ACQ_AND"}
    if operation in acquires:
      return self._acquire(acquires[operation], address, payload, False)
    waits = p.RELEASE_WFI == host.SEMAPHORED_RELEASE_WFI.EN
    if operation is operations.RELEASE:
      timed = p.RELEASE_SIZE == host.SEMAPHORED_RELEASE_SIZE._16BYTE
      return self._write(address, payload, "", False, False, timed, waits)
    if p.REDUCTION not in host.SEMAPHORED_REDUCTION._value2member_map_:
      raise faults.host("SEMAPHORE", f"SEMAPHORED.REDUCTION = {p.REDUCTION}")
    name, signed = host.SEMAPHORED_REDUCTION(p.REDUCTION).name, p.FORMAT == host.SEMAPHORED_FORMAT.SIGNED
    self._write(address, payload, name, False, signed, False, waits)

  # ---- waits, caches

  @handles("WFI")
  def wait_for_idle(self, p: host.WFI) -> None:
    self.channel.wait_for_idle()

  @handles("SET_REFERENCE")
  def set_reference(self, p: host.SET_REFERENCE) -> None:
    """The count is told once the engine is idle."""
    def set_it() -> None:
      self.reference = p.COUNT
    self._when_idle(set_it, True)

  @handles("NON_STALL_INTERRUPT")
  def interrupt(self, p: host.NON_STALL_INTERRUPT) -> None:
    self.channel.interrupt("NON_STALL_INTERRUPT")

  @handles("MEM_OP_D")
  def memory_operation(self, p: host.MEM_OP_D) -> None:
    operations = host.MEM_OP_D_OPERATION
    if p.OPERATION not in operations._value2member_map_:
      raise faults.host("METHOD", f"MEM_OP_D.OPERATION = {p.OPERATION:#x}")
    operation = operations(p.OPERATION)
    if operation in (operations.MMU_TLB_INVALIDATE, operations.MMU_TLB_INVALIDATE_TARGETED,
                     operations.ACCESS_COUNTER_CLR):
      raise faults.host("METHOD", f"MEM_OP_D.OPERATION = {operation.name} is privileged, the channel is not")
    self.channel.machine.ignored.note("host method", f"MEM_OP_D {operation.name}", "no caches are modelled")

  table.ignores("MEM_OP_A", "MEM_OP_B", "MEM_OP_C", why="what they set is for operations of MEM_OP_D on caches")
  table.ignores("YIELD", why="time slices are the scheduler's own")
  table.ignores("FB_FLUSH", why="no caches are modelled")


# Methods whose data is one number of 32 bits: there is nothing to decode, and nearly every submission has new ones.
_WHOLE: Final = {host.SEM_PAYLOAD_LO.OFFSET: Host.payload_low, host.SEM_PAYLOAD_HI.OFFSET: Host.payload_high}
assert all((f.lo, f.width) == (0, 32) for m in (host.SEM_PAYLOAD_LO, host.SEM_PAYLOAD_HI) for f in m.FIELDS)


def _decode(address: int, value: int) -> _Row:
  """Who takes a method, its fields, and why nobody takes it where that is so."""
  row = _BY_ADDRESS.get(address)
  if row is None:
    raise faults.host("METHOD", f"there is no host method {address:#04x} (data {value:#x})")
  declared = row[0]
  try:
    decoded = declared.decode(value)
  except DecodeError as error:
    raise faults.host("METHOD", f"{declared.__name__}: {error.message}") from None
  handler, why = Host.table.get(declared.__name__), Host.table.why_ignored(declared.__name__)
  if handler is None and why is None:
    raise faults.host("METHOD", f"{declared.__name__} is no method of this chip")
  return handler, decoded, why or ""
