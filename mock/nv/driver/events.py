"""OS events: files that become readable when a GPU interrupts, after `osapi.c`, `event.c` and `event_notification.c`.

A client registers a file (NV_ESC_ALLOC_OS_EVENT), then an object NV01_EVENT_OS_EVENT with it as its data. Interrupts
that stall nothing go by the engine: events with NV01_EVENT_NONSTALL_INTR name it by a notifier of the sub-device, and
that of the host engine hears of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.environment import digits
from tinyhw.mock.nv.driver.objects import Node, NvFile, RmError

if TYPE_CHECKING:
  from tinyhw.mock.nv.machine import NvGpu, NvMachine

HOST: Final = "host"
_NOTIFIERS: Final = {alloc.NV2080_NOTIFIERS_FIFO_EVENT_MTHD: HOST, **{
  getattr(alloc, name): f"copy{name.removeprefix('NV2080_NOTIFIERS_CE')}" for name in dir(alloc)
  if name.startswith("NV2080_NOTIFIERS_CE") and digits(name.removeprefix("NV2080_NOTIFIERS_CE"))}}
_INDEX: Final = (1 << alloc.NV0005_NOTIFY_INDEX_INDEX[0] + 1) - 1
_CALLBACKS: Final = (alloc.NV01_EVENT_KERNEL_CALLBACK, alloc.NV01_EVENT_KERNEL_CALLBACK_EX)


@dataclass(eq=False)
class RmEvent:
  """An event object: which file is told (None: that class tells nobody here), and of which engine of a GPU."""

  node: Node
  file: NvFile | None
  gpu: NvGpu | None
  engine: str
  with_data: bool


class OsEvents:
  """See the module."""

  def __init__(self, machine: NvMachine) -> None:
    self.machine = machine
    self._files: dict[tuple[int, int], NvFile] = {}  # by client and descriptor
    self._events: list[RmEvent] = []

  def alloc(self, file: NvFile, client: int, fd: int) -> int:
    """A file hears of events; one for each descriptor."""
    if (client, fd) in self._files:
      return status.NV_ERR_INSUFFICIENT_RESOURCES
    self._files[client, fd] = file
    return status.NV_OK

  def free(self, client: int, fd: int) -> int:
    """It hears of them no more."""
    file = self._files.pop((client, fd), None)
    if file is None:
      return status.NV_ERR_INVALID_EVENT
    for event in self._events:
      if event.file is file:
        event.file = None
    return status.NV_OK

  def closed(self, file: NvFile) -> None:
    """A file is closed, and all that it was to hear of is forgotten."""
    for key in [k for k, f in self._files.items() if f is file]:
      self.free(*key)

  def make(self, node: Node, p: Any) -> RmEvent:
    """An event object (eventConstruct)."""
    if node.class_id in _CALLBACKS:
      raise RmError(status.NV_ERR_ILLEGAL_ACTION, f"{node.row.name} from a process: it names a function of the kernel")
    source = node.client.find(p.hSrcResource)
    file = None
    if node.class_id == alloc.NV01_EVENT_OS_EVENT:
      file = self._files.get((node.client.handle, p.data & 0xFFFF_FFFF))
      if file is None:
        raise RmError(status.NV_ERR_OBJECT_NOT_FOUND, f"no OS event was made of descriptor {p.data & 0xFFFF_FFFF}")
    engine, gpu = "", source.gpu
    if p.notifyIndex & alloc.NV01_EVENT_NONSTALL_INTR:
      if source.internal != "Subdevice":
        raise RmError(status.NV_ERR_INVALID_ARGUMENT, f"NV01_EVENT_NONSTALL_INTR of {source}: it is of a sub-device")
      found = _NOTIFIERS.get(p.notifyIndex & _INDEX)
      if found is None:
        raise RmError(status.NV_ERR_NOT_SUPPORTED, f"notifier {p.notifyIndex & _INDEX:#x} is of no engine")
      engine = found
    event = RmEvent(node, file, gpu, engine, not p.notifyIndex & alloc.NV01_EVENT_WITHOUT_EVENT_DATA)
    self._events.append(event)
    return event

  def remove(self, event: RmEvent) -> None:
    """The object is freed."""
    if event in self._events:
      self._events.remove(event)

  def interrupt(self, gpu: NvGpu, engine: str) -> None:
    """An engine of a GPU interrupts: RM tells of it, and of the host engine."""
    for event in self._events:
      if event.gpu is not gpu or event.engine not in (HOST, engine) or event.file is None:
        continue
      if event.with_data:
        self.machine.doubt("an OS event with data (without NV01_EVENT_WITHOUT_EVENT_DATA): its data is not modelled")
      event.file.pending = True
    if self.machine.waiting:
      self.machine.changed.notify_all()
