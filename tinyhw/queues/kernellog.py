"""The kernel's log about GPUs, explained: amdgpu's page faults, ring time-outs and schedulers that do not answer,
NVRM's Xid lines, and the fences of debugfs (amdgpu_fence_info).

    for event in read(text): print("\\n".join(event.lines()))

Registers are decoded by the generated declarations, Xid numbers have RM's own names. Each pattern is a line's form
as the drivers print it (Linux: gmc_v11_0.c, amdgpu_job.c, mes_v11_0.c, amdgpu_fence.c; open-gpu-kernel-modules:
nv_rm_status).
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.core.environment import digits
from tinyhw.wire import rm


@dataclass
class LogEvent:
  """Something that the log tells. `fields` are its parts by name; `means` are sentences; `line` counts from 1."""
  kind: str
  line: int
  text: str
  fields: dict[str, Any] = field(default_factory=dict)
  means: list[str] = field(default_factory=list)

  def lines(self) -> list[str]:
    """The event as text."""
    return [f"line {self.line}: {self.text}", *(f"  {m}" for m in self.means)]

  def row(self) -> dict[str, Any]:
    """The same as plain values."""
    return {"kind": self.kind, "line": self.line, "text": self.text, "fields": self.fields, "means": self.means}


_STATUS_BITS: Final = sum(f.mask for f in gc.GCVM_L2_PROTECTION_FAULT_STATUS.FIELDS)
_XID_MEANS: Final = {
  13: "a kernel did what the SMs refuse: an illegal instruction, address or barrier; the lines beside it say which",
  31: "the MMU found no right page: `faulted @` is the address, the access type says how it was reached",
  43: "the channel was reset after its program's fault; see the first Xid before it",
  45: "the channel was torn down: its process ended or another of its channels died; see the first Xid before it",
  48: "an uncorrectable error of memory (double bit ECC)",
  62: "the GPU's own microcontroller (PMU) halted",
  69: "a method or its data was refused by the graphics class",
  79: "the GPU has fallen off the bus",
  94: "an uncorrectable error of memory, contained to its program",
  95: "an uncorrectable error of memory that was not contained: the GPU needs a reset",
  109: "a context did not leave the GPU in time: a kernel does not end or a wait is never met",
  119: "GSP, RM's own processor, did not answer a call in time",
  154: "the recovery that the GPU needs has changed"}


def _page_fault(m: re.Match[str], e: LogEvent) -> None:
  e.fields = {k: int(v) for k, v in m.groupdict().items() if v and digits(v)}
  space = f", process address space {m['pasid']}" if m["pasid"] else ""
  e.means = [f"a page fault of VMID {m['vmid']}, of ring {m['ring']}{space}"]


def _address(m: re.Match[str], e: LogEvent) -> None:
  e.fields = {"address": int(m[1], 16), "client": m[2]}
  e.means = [f"the page that begins at {int(m[1], 16):#x} has no entry that allows the access"]


def _status(m: re.Match[str], e: LogEvent) -> None: e.fields, e.means = fault_status(int(m[1], 16))


def fault_status(value: int) -> tuple[dict[str, Any], list[str]]:
  """Fields and meaning of a GCVM_L2_PROTECTION_FAULT_STATUS."""
  status: Any = gc.GCVM_L2_PROTECTION_FAULT_STATUS.decode(value & _STATUS_BITS)
  fields = {f.name: getattr(status, f.name) for f in status.FIELDS}
  how = "an atomic" if status.ATOMIC else "a write" if status.RW else "a read"
  means = [str(status), f"{how} by client {status.CID:#x} of VMID {status.VMID}"]
  if status.PERMISSION_FAULTS:
    means.append(f"the page's rights do not allow it (PERMISSION_FAULTS={status.PERMISSION_FAULTS:#x})")
  if status.MAPPING_ERROR: means.append("the entry is of another kind than the access (MAPPING_ERROR)")
  if status.WALKER_ERROR:
    means.append(f"the walk through the page tables failed (WALKER_ERROR={status.WALKER_ERROR:#x})")
  if status.MORE_FAULTS: means.append("more faults came before this one was read: the first tells most")
  return fields, means


def _timeout(m: re.Match[str], e: LogEvent) -> None:
  signaled, emitted = int(m["signaled"]), int(m["emitted"])
  e.fields = {"ring": m["ring"], "signaled": signaled, "emitted": emitted}
  left = emitted - signaled
  e.means = [f"ring {m['ring']} has not come to fence {signaled + 1}; on the way: {left} of the kernel driver's"
             if left else f"ring {m['ring']} signalled its last fence, and the time was over"]


def _scheduler(m: re.Match[str], e: LogEvent) -> None:
  e.fields = {"message": m[1]}
  e.means = [f"the scheduler's firmware (MES) did not answer {m[1]}: it neither maps nor removes user queues any more"]


def _removed(m: re.Match[str], e: LogEvent) -> None:
  e.fields = {"doorbell": int(m[1], 16)}
  e.means = [f"the queue of doorbell {m[1]} is still on the GPU: its process cannot be taken off"]


def _reset(m: re.Match[str], e: LogEvent) -> None: e.means = ["all queues of all processes are lost with it"]


def _reset_failed(m: re.Match[str], e: LogEvent) -> None:
  e.fields = {"errno": int(m[1])}
  e.means = ["the reset failed: the card stays dead until the machine is started again" + (
    " (-62 is ETIME: its firmware did not answer in time)" if m[1] == "62" else "")]


def _preempt(m: re.Match[str], e: LogEvent) -> None:
  e.means = ["the scheduler (HWS) did not take the queues off in time: a wave does not stop, or the firmware is dead"]


def _xid(m: re.Match[str], e: LogEvent) -> None:
  number = int(m["xid"])
  e.fields = {"bus": m["bus"], "xid": number, "name": rm.error_name(number)}
  e.means = [f"{rm.error_name(number)}: {_XID_MEANS.get(number, 'see the text behind it')}"]
  if fault := _XID_FAULT.search(m["rest"]):
    address = int(fault["high"], 16) << 32 | int(fault["low"], 16)
    e.fields |= {"address": address, "type": fault["type"], "access": fault["access"], "engine": fault["engine"]}
    what = _FAULT_TYPES.get(fault["type"], fault["type"])
    e.means.append(f"a {fault['access'].rpartition('_')[2].lower()} of {address:#x} by {fault['engine']}: {what}")
  if channel := re.search(r"Ch ([0-9a-f]{8})", m["rest"]): e.fields["channel"] = int(channel[1], 16)


_FAULT_TYPES: Final = {"FAULT_PDE": "no page table there", "FAULT_PTE": "no page there",
                       "FAULT_RO_VIOLATION": "the page is read only",
                       "FAULT_PRIV_VIOLATION": "the page is not for this engine's rights"}
_XID_FAULT: Final = re.compile(r"(?a)ENGINE (?P<engine>\S+).*faulted @ 0x(?P<high>[0-9a-f]+)_(?P<low>[0-9a-f]+)\. "
                               r"Fault is of type (?P<type>\w+) (?P<access>ACCESS_TYPE_\w+)")
_FORMS: Final[tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str], LogEvent], None]], ...]] = (
  ("page fault", re.compile(r"(?a)\[(?P<hub>\w+)\] (?:no-retry |retry )?page fault \(src_id:(?P<src>\d+) "
                            r"ring:(?P<ring>\d+) vmid:(?P<vmid>\d+)(?: pasid:(?P<pasid>\d+))?"), _page_fault),
  ("fault address", re.compile(r"(?a)in page starting at address (0x[0-9a-fA-F]+)"
                               r"(?: from (?:client|IH client) (?:ID )?(\w+))?"), _address),
  ("fault status", re.compile(r"GCVM_L2_PROTECTION_FAULT_STATUS: ?(0x[0-9a-fA-F]+)"), _status),
  ("ring timeout", re.compile(r"(?a)ring (?P<ring>\S+) timeout, (?:but soft recovered, )?"
                              r"signaled seq=(?P<signaled>\d+), emitted seq=(?P<emitted>\d+)"), _timeout),
  ("scheduler", re.compile(r"(?a)MES(?:\(\d+\))? failed to respond to msg=(\w+)"), _scheduler),
  ("queue stays", re.compile(r"failed to remove hardware queue from MES, doorbell=(0x[0-9a-fA-F]+)"), _removed),
  ("preemption", re.compile(r"fence wait loop timeout expired|The cp might be in an unrecoverable state"), _preempt),
  ("reset failed", re.compile(r"(?a)(?:GPU reset\(\d+\) failed|ASIC reset failed with error,|reset.* failed.*ret[ =:]*|"
                              r"GPU reset end with ret = )-(\d+)"), _reset_failed),
  ("reset", re.compile(r"GPU reset begin"), _reset),
  ("xid", re.compile(r"(?a)NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<xid>\d+), (?P<rest>.*)"), _xid))
_RING: Final = re.compile(r"(?a)^--- ring \d+ \((\S+)\) ---")
_FENCE: Final = re.compile(r"^Last (signaled fence|emitted)\s+(0x[0-9a-fA-F]+)")
_BUSY: Final = re.compile(r"(?a)gpu_busy_percent\W+(\d+)")
_FAMILY: Final = re.compile(r"(?a)amdgpu|NVRM|amdkfd|ring \S+ timeout|GCVM_L2|amdgpu_fence_info|--- ring \d+ ")


def is_log(text: str) -> bool:
  """Whether a text may be such a log."""
  return _FAMILY.search(text) is not None


def read(text: str) -> Iterator[LogEvent]:
  """What a log tells, line by line; the rings' fences as one event at the end."""
  ring, fences, busy, last = "", dict[str, dict[str, int]](), -1, 0
  for number, line in enumerate(text.splitlines(), 1):
    if m := _RING.match(line): ring, last = m[1], number
    elif (m := _FENCE.match(line)) and ring: fences.setdefault(ring, {})[m[1].split()[0]] = int(m[2], 16)
    elif m := _BUSY.search(line): busy, last = int(m[1]), number
    for kind, pattern, explain in _FORMS:
      if m := pattern.search(line):
        event = LogEvent(kind, number, line.strip())
        explain(m, event)
        yield event
        break
  if fences or busy >= 0: yield _idle(fences, busy, last)


def _idle(fences: dict[str, dict[str, int]], busy: int, line: int) -> LogEvent:
  behind = {r: f for r, f in fences.items() if f.get("signaled", 0) != f.get("emitted", 0)}
  event = LogEvent("rings", line, f"{len(fences)} rings" + (f", GPU {busy} % busy" if busy >= 0 else ""),
                {"busy": busy, "behind": sorted(behind)})
  for name, f in behind.items():
    event.means.append(f"ring {name} is at fence {f.get('signaled', 0):#x} of {f.get('emitted', 0):#x}")
  if fences and not behind:
    event.means.append("each of the kernel driver's rings has signalled its last fence: they are idle")
  return event


def verdict(events: list[LogEvent]) -> str:
  """One line: what the log as a whole says."""
  kinds = {e.kind for e in events}
  rings = next((e for e in events if e.kind == "rings"), None)
  idle = rings is not None and not rings.fields["behind"]
  if "scheduler" in kinds and idle:
    busy = rings is not None and rings.fields["busy"] > 0
    return ("the rings are idle" + (", the GPU is busy" if busy else "") + " and its scheduler is dead: a user queue's "
            "work does not end, and no ring time-out tells of it: user queues have no fences of the kernel driver's")
  if idle and rings is not None and rings.fields["busy"] > 0:
    return ("the rings are idle and the GPU is busy: the work is in a user queue, which the kernel driver's fences do "
            "not see")
  first = next((e for e in events if e.kind in ("xid", "page fault", "fault address", "fault status")), None)
  if first is not None: return f"first came: {first.means[-1] if first.means else first.text}"
  if "scheduler" in kinds: return "the scheduler's firmware does not answer"
  if events: return f"first came: {events[0].means[0] if events[0].means else events[0].text}"
  return "nothing in it tells of a GPU's fault"
