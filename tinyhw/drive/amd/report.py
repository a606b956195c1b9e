"""What the driver says when the GPU stops: the packets of its queues as text, faults, and waits that do not end."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as p
from tinyhw.autogen import sdma_v6 as s
from tinyhw.core.errors import DecodeError, DeviceError, MachineFault, PageFault, WaitTimeout
from tinyhw.core.memory import PAGE
from tinyhw.drive.amd.explain import explain
from tinyhw.drive.amd.gpu import GpuRuntime
from tinyhw.drive.amd.kfd import Buffer, GpuFault
from tinyhw.drive.amd.program import NULL_PAGES
from tinyhw.drive.queue import HardwareQueue, Submission
from tinyhw.wire import codeobject, pm4, sdma

_SHOWN_LOG_LINES = 12
_LOG_PREFIX = re.compile(r"^amdgpu [0-9a-f:.]+: amdgpu: ")
_PC = re.compile(r"(?<!called )at PC 0x([0-9a-f]+)")
_TEXT, _WAVE, _LANE = re.compile(r" in '([^']*)'"), re.compile(r"(?a) wave (\d+)"), re.compile(r"(?a) lane (\d+)")
_CAUSE = re.compile(r" stopped: (.+?)(?= at PC 0x|; packet |$)")
_CALLER = re.compile(r"called at PC 0x([0-9a-f]+)")
_ACCESS = re.compile(r"(?a)page fault: (\w+) of (\d+) bytes at 0x([0-9a-f]+)")
_STATUS = re.compile(r"GCVM_L2_PROTECTION_FAULT_STATUS:0x([0-9A-Fa-f]+)")
# gfx12's GCVM_L2_PROTECTION_FAULT_STATUS_LO32, which is logged by this name, has the same bits up to VMID.
_STATUS_BITS = sum(f.mask for f in gc.GCVM_L2_PROTECTION_FAULT_STATUS.FIELDS)


def go_on(name: str) -> str:
  """What to do once a process has lost a GPU: it stays evicted as long as it lives (kfd_dqm_evict_pasid), also after a
  GPU reset (kgd2kfd_post_reset)."""
  return (f"go on with tinyhw.Device[{name!r}].reset() on a mock GPU, in a new process on a card: "
          "the kernel driver keeps this one off it")


def pm4_lines(generation: str, words: Sequence[int]) -> list[str]:
  """One line a packet, in a generation's words."""
  return pm4.text(words, of=pm4.table(generation)).splitlines()


def sdma_lines(version: str, words: Sequence[int]) -> list[str]:
  """One line a packet, in a version's words."""
  return sdma.text(words, of=sdma.table(version)).splitlines()


def _running(runtime: GpuRuntime) -> list[tuple[HardwareQueue, Submission]]:
  """Submissions that the timeline has not passed, oldest first."""
  done = runtime.timeline.signal.value
  rows = [(queue, submission) for queue in (runtime.compute, runtime.copier) for submission in queue.unfinished(done)]
  return sorted(rows, key=lambda row: row[1].value)


def fault_error(runtime: GpuRuntime, fault: GpuFault) -> DeviceError:
  """The kernel's fault event, with what the driver knows of the address and of the work in flight."""
  log = runtime.kfd.kernel_log()[-_SHOWN_LOG_LINES:]
  error: MachineFault
  if fault.address is None:
    cause = next((m[1] for line in reversed(log) if (m := _CAUSE.search(line))), None)
    error = MachineFault(f"the GPU stopped: {f'{cause} ({fault.message})' if cause else fault.message}")
  else:
    access = _logged_access(log) or fault.access or "access"
    error = PageFault(fault.address, access, 0, reason=fault.message)
  _told_by_log(error, log)
  if isinstance(error, PageFault) and error.address is not None: error.memory = _near(runtime, error.address)
  running = _running(runtime)
  if running:
    label = running[0][1].label
    explain(error, runtime.loaded(), label)
    if isinstance(error, PageFault) and error.address is not None and error.address < NULL_PAGES:
      if error.access != "execute": error.hidden = runtime.unserved.get(label.removeprefix("kernel "), ())
  images = runtime.loaded()
  error.where, error.hint = runtime.name, go_on(runtime.name)
  error.facts = tuple(f"kernel log: {codeobject.with_places(images, _LOG_PREFIX.sub('', line))}" for line in log)
  return error


def _told_by_log(error: MachineFault, log: Sequence[str]) -> None:
  """What the kernel driver's log knows: the very address (an event tells its page); the instruction's PC, text, wave,
  lane, and the call that led there."""
  for line in reversed(log):
    access = _ACCESS.search(line)
    if access is None or not isinstance(error, PageFault) or error.address is None: continue
    if int(access[3], 16) & -PAGE == error.address & -PAGE:
      told = PageFault(int(access[3], 16), access[1], int(access[2]), reason=error.reason)
      error.address, error.access, error.size, error.message = told.address, told.access, told.size, told.message
      break
  for line in reversed(log):
    found = _PC.search(line)
    if found is None: continue
    error.pc = int(found[1], 16)
    text, wave, lane, caller = (p.search(line, found.start()) for p in (_TEXT, _WAVE, _LANE, _CALLER))
    if text is not None: error.instruction = text[1]
    if wave is not None: error.wave = int(wave[1])
    if lane is not None: error.lane = int(lane[1])
    if caller is not None: error.caller = int(caller[1], 16)
    return


def _logged_access(log: Sequence[str]) -> str | None:
  """Read, write or atomic, from the register that the kernel driver prints with a page fault (gmc_v11_0.c)."""
  for line in reversed(log):
    found = _STATUS.search(line)
    if found is None: continue
    status = gc.GCVM_L2_PROTECTION_FAULT_STATUS.decode(int(found[1], 16) & _STATUS_BITS)
    return "atomic" if status.ATOMIC else "write" if status.RW else "read"
  return None


def _near(runtime: GpuRuntime, address: int) -> str | None:
  """The buffer of this GPU that an address is in, or the allocation past whose end it is."""
  below: Buffer | None = None
  for buffer in runtime.live_buffers():
    known = buffer.address in runtime.used or buffer.address <= address < buffer.address + buffer.size
    if known and buffer.address <= address and (below is None or buffer.address > below.address): below = buffer
  if below is None or address - below.address > 1 << 30: return None
  size, name = runtime.used.get(below.address, (below.size, ""))
  named = f"{name} ({size:,} bytes)" if name else f"the {below.size:,} byte buffer at {below.address:#x}"
  end = below.address + (size if name else below.size)
  return f"in {named}" if address < end else f"{address - end:,} bytes past the end of {named}"


def timeout_error(runtime: GpuRuntime, value: int, seconds: float) -> WaitTimeout:
  """Name the packet that holds the queues up: a wait in a queue if there is one, else the host's wait for the oldest
  work."""
  signal = runtime.timeline.signal
  running = _running(runtime)
  for queue, submission in running:
    stuck = _unmet_wait(runtime, queue, submission)
    if stuck is None: continue
    packet, address, wanted, seen = stuck
    return WaitTimeout(queue.name, packet=packet, address=address, wanted=wanted, seen=seen, seconds=seconds,
                       hint="nothing has signalled it", facts=_tail(queue, submission))
  seen = signal.value
  if not running:
    return WaitTimeout(runtime.name, packet="host", address=signal.address, wanted=value, seen=seen, seconds=seconds)
  queue, submission = running[0]
  return WaitTimeout(queue.name, packet=f"host, for '{submission.label}',", address=signal.address,
                     wanted=submission.value, seen=seen, seconds=seconds,
                     hint=f"Device[{runtime.name!r}].runtime.reset() drops it", facts=_tail(queue, submission))


def _tail(queue: HardwareQueue, submission: Submission) -> list[str]:
  """Where the queue reads, and its packets in flight."""
  ring = queue.ring
  return [f"{ring.used} words unread at ring word {ring.read_at}; '{submission.label}' is:", *queue.text_of(submission)]


def _unmet_wait(runtime: GpuRuntime, queue: HardwareQueue, submission: Submission) -> tuple[str, int, int, int] | None:
  """(packet, address, wanted, seen) of the first memory wait in a submission whose condition does not hold now."""
  words, arch = queue.words_of(submission), runtime.arch
  walk = pm4.walk(words, pm4.table(arch.pm4)) if queue is runtime.compute else sdma.walk(words, sdma.table(arch.sdma))
  try: packets: list[Any] = [packet for _, packet in walk]
  except DecodeError: return None
  for packet in packets:  # a generation may have its own declarations, of the same names
    name = type(packet).__name__
    if name == p.WAIT_REG_MEM.__name__: address, wanted, mask = packet.mem_poll_addr, packet.reference, packet.mask
    elif name == s.SDMA_PKT_POLL_REGMEM.__name__: address, wanted, mask = packet.addr, packet.value, packet.mask
    else: continue
    seen = runtime.peek(address)
    if seen is not None and seen & mask < wanted: return name, address, wanted, seen & mask
  return None
