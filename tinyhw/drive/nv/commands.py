"""Commands of NVIDIA's channels as pushbuffer words: host semaphores, copies, launches, what a channel begins with.

Fields come from the classes' declarations; a word that changes between two submissions is a named value of the stream.
"""
from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Self

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import Unsupported
from tinyhw.core.layout import Method
from tinyhw.drive.queue import CommandStream, Patch
from tinyhw.wire import methods

_INLINE = 64  # dwords of an inline QMD where the class has no INLINE_SIZE, or that is INLINE_256
COMPUTE, COPY = 1, 4  # subchannels: on the graphics engine's runlist the number says which engine is meant


class HostCommands(CommandStream):
  """Methods of the host engine, which all channels have. `subchannel` is where the channel's class stands."""

  def __init__(self, module: ModuleType, subchannel: int, label: str = "") -> None:
    super().__init__(label)
    self.module, self.subchannel = module, subchannel

  def send(self, *sent: Method) -> Self:
    """Methods in this order."""
    self.words += methods.send(self.subchannel, *sent)
    return self

  def run(self, first: type[Method], *values: int) -> int:
    """Values for methods that stand one after the other, under one header; returns the index of the first value."""
    self.words += methods.Send(methods.INCR, self.subchannel, first.OFFSET, values).encode()
    return len(self.words) - len(values)

  def begin(self) -> Self:
    """The class for the subchannel."""
    return self.send(host.SET_OBJECT(NVCLASS=self.module.CLASS))

  def _semaphore(self, address: int | str, payload: int | str, execute: Any) -> Self:
    low = address & 0xFFFFFFFF if isinstance(address, int) else 0
    high = address >> 32 if isinstance(address, int) else 0
    value = payload if isinstance(payload, int) else 0
    at = self.run(host.SEM_ADDR_LO, low, high, value & 0xFFFFFFFF, value >> 32, execute.value())
    if isinstance(address, str): self.mark_words(address, at, at + 1)
    if isinstance(payload, str): self.mark_words(payload, at + 2, at + 3)
    return self

  def signal(self, address: int, payload: int | str, timestamp: bool = False) -> Self:
    """Write 64 bits once the engine is idle; with a timestamp the 64 bits behind them too."""
    e = host.SEM_EXECUTE_OPERATION
    return self._semaphore(address, payload, host.SEM_EXECUTE(
      OPERATION=e.RELEASE, RELEASE_WFI=host.SEM_EXECUTE_RELEASE_WFI.EN,
      PAYLOAD_SIZE=host.SEM_EXECUTE_PAYLOAD_SIZE._64BIT,
      RELEASE_TIMESTAMP=host.SEM_EXECUTE_RELEASE_TIMESTAMP(int(timestamp))))

  def interrupt(self) -> Self:
    """Interrupt the processor when what stands before it has been executed."""
    return self.send(host.NON_STALL_INTERRUPT())

  def wait(self, address: int | str, value: int | str) -> Self:
    """Go on when the low dword in memory is `value` or came after it."""
    return self._semaphore(address, value, host.SEM_EXECUTE(
      OPERATION=host.SEM_EXECUTE_OPERATION.ACQ_CIRC_GEQ, ACQUIRE_SWITCH_TSG=host.SEM_EXECUTE_ACQUIRE_SWITCH_TSG.EN))


class CopyCommands(HostCommands):
  """Methods of a copy engine."""

  def __init__(self, class_id: int, label: str = "") -> None:
    super().__init__(methods.declared(class_id), COPY, label)

  def copy(self, destination: int | str, source: int | str, count: int | str) -> Self:
    """Copy bytes; what the channel did before is done, and what it does later sees them."""
    m = self.module
    given = [v if isinstance(v, int) else 0 for v in (source, destination, count)]
    at = self.run(m.OFFSET_IN_UPPER, given[0] >> 32, given[0] & 0xFFFFFFFF, given[1] >> 32, given[1] & 0xFFFFFFFF)
    if isinstance(source, str): self.mark_words(source, at + 1, at)
    if isinstance(destination, str): self.mark_words(destination, at + 3, at + 2)
    at = self.run(m.LINE_LENGTH_IN, given[2], 1)
    if isinstance(count, str): self.mark_word(count, Patch(at, 0, 0, 0), 0xFFFFFFFF)
    return self._launch(multi=0)

  def copy_lines(self, destination: int, source: int, length: int, lines: int, to_pitch: int, from_pitch: int) -> Self:
    """Copy `lines` of `length` bytes, which begin so many bytes apart."""
    m = self.module
    self.run(m.OFFSET_IN_UPPER, source >> 32, source & 0xFFFFFFFF, destination >> 32, destination & 0xFFFFFFFF,
             from_pitch, to_pitch, length, lines)
    return self._launch(multi=1)

  def _launch(self, multi: int) -> Self:
    m = self.module
    return self.send(m.LAUNCH_DMA(
      DATA_TRANSFER_TYPE=m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NON_PIPELINED, FLUSH_ENABLE=1, MULTI_LINE_ENABLE=multi,
      SRC_MEMORY_LAYOUT=m.LAUNCH_DMA_SRC_MEMORY_LAYOUT.PITCH, DST_MEMORY_LAYOUT=m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH,
      SRC_TYPE=m.LAUNCH_DMA_SRC_TYPE.VIRTUAL, DST_TYPE=m.LAUNCH_DMA_DST_TYPE.VIRTUAL))


class ComputeCommands(HostCommands):
  """Methods of a compute class."""

  def __init__(self, class_id: int, label: str = "") -> None:
    super().__init__(methods.declared(class_id), COMPUTE, label)

  def windows(self, shared: int, local: int) -> Self:
    """Where generic addresses reach shared and local memory: 4 GiB each."""
    m = self.module
    self.run(m.SET_SHADER_SHARED_MEMORY_WINDOW_A, shared >> 32, shared & 0xFFFFFFFF)
    self.run(m.SET_SHADER_LOCAL_MEMORY_WINDOW_A, local >> 32, local & 0xFFFFFFFF)
    return self

  def local_memory(self, address: int, tpc_bytes: int) -> Self:
    """The memory of all threads' local variables: so many bytes a TPC."""
    m = self.module
    self.run(m.SET_SHADER_LOCAL_MEMORY_A, address >> 32, address & 0xFFFFFFFF)
    sms = next(f.limit for f in m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C.FIELDS if f.name == "MAX_SM_COUNT")
    self.run(m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, tpc_bytes >> 32, tpc_bytes & 0xFFFFFFFF, sms)
    return self

  def invalidate(self) -> Self:
    """Caches of programs, constants and data forget what they hold."""
    return self.send(self.module.INVALIDATE_SHADER_CACHES_NO_WFI(INSTRUCTION=1, GLOBAL_DATA=1, CONSTANT=1))

  def inline(self, address: int, data: bytes) -> Self:
    """Write bytes that stand in the pushbuffer itself."""
    m = self.module
    self.run(m.LINE_LENGTH_IN, len(data), 1, address >> 32, address & 0xFFFFFFFF)
    self.send(m.LAUNCH_DMA(DST_MEMORY_LAYOUT=m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH,
                           COMPLETION_TYPE=m.LAUNCH_DMA_COMPLETION_TYPE.FLUSH_ONLY))
    padded = data + bytes(-len(data) % 4)
    self.words += methods.repeated(self.subchannel, m.LOAD_INLINE_DATA, memoryview(padded).cast("I").tolist())
    return self

  def launch(self, name: str) -> Self:
    """Schedule the QMD at the address of that name, which is a multiple of 256."""
    m = self.module
    at = self.run(m.SEND_PCAS_A, 0)
    self.mark_word(name, Patch(at, 0, 8, 0), (1 << 40) - 1, 8)
    return self.send(m.SEND_SIGNALING_PCAS2_B(
      PCAS_ACTION=m.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.INVALIDATE_PREFETCH_COPY_SCHEDULE))

  def launch_inline(self, name: str, count: int) -> int:
    """Send a QMD of so many dwords, which goes to the address of that name and is scheduled; returns where it stands
    among the words."""
    m, size = self.module, getattr(self.module, "SET_INLINE_QMD_ADDRESS_A_INLINE_SIZE", None)
    if size is None and count != _INLINE: raise Unsupported(f"an inline QMD of {count} dwords on", m.NAME)
    large = {} if size is None else {"INLINE_SIZE": size.INLINE_384 if count > _INLINE else size.INLINE_256}
    at = self.run(m.SET_INLINE_QMD_ADDRESS_A, m.SET_INLINE_QMD_ADDRESS_A(**large).value(), 0)
    high = next(f for f in m.SET_INLINE_QMD_ADDRESS_A.FIELDS if f.name == "QMD_ADDRESS_SHIFTED8_UPPER")
    self.mark_word(name, Patch(at, 0xFFFFFFFF & ~high.mask, 40, high.lo), (1 << 40) - 1, 8)
    self.mark_word(name, Patch(at + 1, 0, 8, 0), (1 << 40) - 1, 8)
    return self.run(m.LOAD_INLINE_QMD_DATA, *[0] * count)

  def wait_for_idle(self) -> Self:
    """Methods behind it wait until all launches have ended."""
    return self.send(host.WFI(SCOPE=host.WFI_SCOPE.ALL))


def text(words: Sequence[int], class_id: int, subchannel: int) -> list[str]:
  """One line a method."""
  return methods.text(words, {subchannel: class_id}).splitlines()
