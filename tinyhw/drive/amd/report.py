"""What the driver says when the GPU stops: the packets of its queues as text, faults, and waits that do not end."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as p
from tinyhw.autogen import sdma_v6 as s
from tinyhw.core.errors import DecodeError, DeviceError, WaitTimeout
from tinyhw.core.layout import Packet
from tinyhw.drive.amd.kfd import Buffer, Fault
from tinyhw.drive.amd.program import NULL_PAGES
from tinyhw.drive.queue import HardwareQueue, Submission
from tinyhw.wire import codeobject, pm4, sdma

if TYPE_CHECKING:
  from tinyhw.drive.amd.device import AMDRuntime

_SHOWN_LOG_LINES = 12
_LOG_PREFIX = re.compile(r"^amdgpu [0-9a-f:.]+: amdgpu: ")
_PC = re.compile(r"at PC 0x([0-9a-f]+)")
_STATUS = re.compile(r"GCVM_L2_PROTECTION_FAULT_STATUS:0x([0-9A-Fa-f]+)")
_STATUS_BITS = sum(f.mask for f in gc.GCVM_L2_PROTECTION_FAULT_STATUS.FIELDS)


def go_on(name: str) -> str:
  """What to do once a process has lost a GPU: it stays evicted as long as it lives (kfd_dqm_evict_pasid), also after a
  GPU reset (kgd2kfd_post_reset)."""
  return (f"go on with tinyhw.Device[{name!r}].reset() on a mock GPU, in a new process on a card: "
          "the kernel driver keeps this one off it")


def pm4_lines(words: Sequence[int]) -> list[str]:
  """One line a packet."""
  return pm4.text(words).splitlines()


def sdma_lines(words: Sequence[int]) -> list[str]:
  """One line a packet."""
  return sdma.text(words).splitlines()


def _running(runtime: AMDRuntime) -> list[tuple[HardwareQueue, Submission]]:
  """Submissions that the timeline has not passed, oldest first."""
  done = runtime.timeline.signal.value
  rows = [(queue, submission) for queue in (runtime.compute, runtime.copier) for submission in queue.unfinished(done)]
  return sorted(rows, key=lambda row: row[1].value)


def fault_error(runtime: AMDRuntime, fault: Fault) -> DeviceError:
  """The kernel's fault event, with what the driver knows of the address and of the work in flight."""
  log = runtime.kfd.kernel_log()[-_SHOWN_LOG_LINES:]
  if fault.address is None: message = f"the GPU stopped: {fault.message}"
  else:
    where = f"{fault.message}{_near(runtime, fault.address)}"
    access = _logged_access(log) or fault.access or "access"
    message = f"GPU page fault: {access} at {fault.address:#x} ({where})"
  running = _running(runtime)
  if running:
    label = running[0][1].label
    message += f"; running: {label}{_stopped_at(runtime, log)}"
    unserved = runtime.unserved.get(label.removeprefix("kernel "))
    if unserved and fault.address is not None and fault.address < NULL_PAGES:
      message += f", which asks for {', '.join(unserved)} (null here)"
  lines = (codeobject.with_places(runtime.loaded(), _LOG_PREFIX.sub("", line)) for line in log)
  facts = [f"kernel log: {line}" for line in lines]
  return DeviceError(message, where=runtime.name, hint=go_on(runtime.name), facts=facts)


def _logged_access(log: Sequence[str]) -> str | None:
  """Read, write or atomic, from the register that the kernel driver prints with a page fault (gmc_v11_0.c)."""
  for line in reversed(log):
    found = _STATUS.search(line)
    if found is None: continue
    status = gc.GCVM_L2_PROTECTION_FAULT_STATUS.decode(int(found[1], 16) & _STATUS_BITS)
    return "atomic" if status.ATOMIC else "write" if status.RW else "read"
  return None


def _stopped_at(runtime: AMDRuntime, log: Sequence[str]) -> str:
  """Where in the code the log's PC is."""
  found = (_PC.search(line) for line in reversed(log))
  pc = next((int(m[1], 16) for m in found if m), None)
  named = None if pc is None else codeobject.place(runtime.loaded(), pc)
  return f" at {named}" if named else ""


def _near(runtime: AMDRuntime, address: int) -> str:
  """Which buffer of this GPU lies at the address or closest below it."""
  below: Buffer | None = None
  for buffer in runtime.live_buffers():
    if buffer.address <= address and (below is None or buffer.address > below.address): below = buffer
  if below is None or address - below.address > 1 << 30: return ""
  named = f"the {below.size:,} byte buffer at {below.address:#x}"
  if address < below.address + below.size: return f", in {named}"
  return f", {address - below.address - below.size:,} bytes past the end of {named}"


def timeout_error(runtime: AMDRuntime, value: int, seconds: float) -> WaitTimeout:
  """Name the packet that holds the queues up: a wait in a queue if there is one, else the host's wait for the oldest
  work."""
  signal = runtime.timeline.signal
  running = _running(runtime)
  for queue, submission in running:
    stuck = _unmet_wait(runtime, queue, submission)
    if stuck is None: continue
    packet, address, wanted, seen = stuck
    return WaitTimeout(queue.name, packet=packet, address=address, wanted=wanted, seen=seen, seconds=seconds,
                       hint=f"nothing has signalled it; {_tail(queue, submission)}")
  seen = signal.value
  if not running:
    return WaitTimeout(runtime.name, packet="host", address=signal.address, wanted=value, seen=seen, seconds=seconds)
  queue, submission = running[0]
  return WaitTimeout(queue.name, packet=f"host, for '{submission.label}',", address=signal.address,
                     wanted=submission.value, seen=seen, seconds=seconds,
                     hint=f"Device[{runtime.name!r}].runtime.reset() drops it; {_tail(queue, submission)}")


def _tail(queue: HardwareQueue, submission: Submission) -> str:
  """Where the queue reads, and its packets in flight."""
  ring = queue.ring
  lines = queue.text_of(submission)
  shown = "".join(f"\n  {line}" for line in lines)
  return f"{ring.used} words unread at ring word {ring.read_at}; '{submission.label}' is:{shown}"


def _unmet_wait(runtime: AMDRuntime, queue: HardwareQueue, submission: Submission) -> tuple[str, int, int, int] | None:
  """(packet, address, wanted, seen) of the first memory wait in a submission whose condition does not hold now."""
  words = queue.words_of(submission)
  try: packets: list[Packet] = [packet for _, packet in (pm4 if queue is runtime.compute else sdma).walk(words)]
  except DecodeError: return None
  for packet in packets:
    if isinstance(packet, p.WAIT_REG_MEM): address, wanted, mask = packet.mem_poll_addr, packet.reference, packet.mask
    elif isinstance(packet, s.SDMA_PKT_POLL_REGMEM): address, wanted, mask = packet.addr, packet.value, packet.mask
    else: continue
    seen = runtime.peek(address)
    if seen is not None and seen & mask < wanted: return type(packet).__name__, address, wanted, seen & mask
  return None
