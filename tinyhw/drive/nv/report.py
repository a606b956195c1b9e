"""What the driver says when a channel dies or does not go on: the error notifier, RM's fault information, the kernel's
log, and the methods in flight as text."""
from __future__ import annotations

import re
from typing import Final

from tinyhw.autogen import nv_rm_control, nv_rm_status
from tinyhw.core.errors import DeviceError, Error, MachineFault, PageFault, WaitTimeout
from tinyhw.drive.nv.channel import Channel
from tinyhw.drive.nv.gpu import GpuRuntime
from tinyhw.drive.nv.rm import Buffer
from tinyhw.drive.queue import HardwareQueue, Submission
from tinyhw.wire import rm

_SHOWN_LOG_LINES: Final = 6
_ACCESS: Final = re.compile(r"(?a)page fault: (\w+)(?: of (\d+) bytes)? at 0x([0-9a-f]+)")
_FAULT: Final = re.compile(r"(?a)faulted @ 0x[0-9a-f]+_[0-9a-f]+\. "
                           r"Fault is of type \w+ ACCESS_TYPE_(?:VIRT|PHYS)_([A-Z]+)")
_XID: Final = re.compile(r"(?a)NVRM: Xid \(PCI:([0-9a-f:.]+)\): (\d+), "
                         r"(?:.*?Ch [0-9a-f]{8}, |pid=[^,]*, name=[^,]*, )?(.*)")
_WHERE: Final = re.compile(r", in kernel |; in kernel ")


def _running(runtime: GpuRuntime) -> list[tuple[HardwareQueue, Submission]]:
  """Submissions that the timeline has not passed, oldest first."""
  done = runtime.timeline.signal.value
  rows = [(queue, submission) for queue in (runtime.compute, runtime.copier) for submission in queue.unfinished(done)]
  return sorted(rows, key=lambda row: row[1].value)


def go_on(name: str) -> str:
  """What to do once a channel has died: others live, so the device is opened anew."""
  return f"go on with tinyhw.Device[{name!r}].reset(): what the device held is lost"


def channel_error(runtime: GpuRuntime, channel: Channel, xid: int) -> DeviceError:
  """The error that the notifier tells of, with what RM and the kernel's log know of it."""
  place = f"(PCI:{runtime.gpu.bus.rpartition('.')[0]})"
  rows = [m for line in runtime.rm.kernel_log() if place in line and (m := _XID.search(line)) is not None]
  told = next((m[3] for m in rows if int(m[2]) == xid), "")  # the first line says most
  cause, *more = [part.strip() for part in told.partition("; method ")[0].split(" | ")]
  name = f"{rm.error_name(xid)}, Xid {xid}"
  fault = _page_fault(runtime, channel) if xid == nv_rm_status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT else None
  error: MachineFault
  if fault is not None: error = _told(cause, fault)
  else: error = MachineFault(f"{_WHERE.split(cause)[0]} ({name})" if cause else f"the channel stopped: {name}")
  if isinstance(error, PageFault) and error.address is not None: error.memory = _near(runtime, error.address)
  running = _running(runtime)
  if running:
    error.work = running[0][1].label
    error.kernel = error.work.removeprefix("kernel ") if error.work.startswith("kernel ") else None
  error.where, error.hint = runtime.name, go_on(runtime.name)
  method = told.partition("; method ")[2]
  error.facts = tuple([*more, *([f"the channel stood at {method}"] if method else []),
                       *(f"kernel log: Xid {m[2]}, {m[3]}" for m in rows[-_SHOWN_LOG_LINES:] if int(m[2]) != xid)])
  return error


def _page_fault(runtime: GpuRuntime, channel: Channel) -> PageFault | None:
  """What RM keeps of the channel's last fault of the MMU."""
  try:
    info = runtime.rm.control(channel.handle, nv_rm_control.NV906F_CTRL_CMD_GET_MMU_FAULT_INFO,
                              nv_rm_control.NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS())
  except Error: return None
  address = int(info.addrHi) << 32 | int(info.addrLo)
  text = bytes(info.faultString).split(b"\0")[0].decode("ascii", "replace")
  access, _, reason = text.partition(": ")
  known = access in ("read", "write", "atomic", "execute")
  return PageFault(address, access if known else "access", 0, reason=(reason if known else text) or "not mapped")


def _told(cause: str, fault: PageFault) -> PageFault:
  """The fault with its very address and size, where the log has them."""
  if (known := _FAULT.search(cause)) is not None and fault.access == "access":
    return PageFault(fault.address or 0, known[1].lower(), 0, reason=fault.reason)
  found = _ACCESS.search(cause)
  if found is None: return fault
  address = int(found[3], 16)
  if fault.address is not None and fault.address & -4096 != address & -4096: return fault
  return PageFault(address, found[1], int(found[2] or 0), reason=fault.reason)


def _near(runtime: GpuRuntime, address: int) -> str | None:
  """The buffer of this GPU that an address is in, or the allocation past whose end it is."""
  below: Buffer | None = None
  for buffer in list(runtime.rm.buffers):
    if buffer.address and buffer.address <= address and (below is None or buffer.address > below.address):
      below = buffer
  if below is None or address - below.address > 1 << 30: return None
  size, name = runtime.used.get(below.address, (below.size, ""))
  named = f"{name} ({size:,} bytes)" if name else f"the {size:,} byte buffer at {below.address:#x}"
  end = below.address + size
  return f"in {named}" if address < end else f"{address - end:,} bytes past the end of {named}"


def timeout_error(runtime: GpuRuntime, value: int, seconds: float) -> WaitTimeout:
  """Describe why the timeline does not reach `value`."""
  signal, facts = runtime.timeline.signal, []
  running = _running(runtime)
  for queue, submission in running[:2]:
    facts.append(f"{queue.name}: {submission.label}, value {submission.value}")
    facts += [f"  {line.strip()}" for line in queue.text_of(submission)[:12]]
  packet = running[0][1].label if running else "the timeline"
  return WaitTimeout(runtime.name, packet=packet, address=signal.address, wanted=value, seen=signal.value,
                     seconds=seconds, facts=facts,
                     hint=f"go on with tinyhw.Device[{runtime.name!r}].reset(); TINYHW_TIMEOUT_S sets the patience")
