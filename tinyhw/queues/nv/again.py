"""RM's and UVM's calls made again: see `queues.replay`.

Objects keep their handles; clients, files and GPUs have others. Memory keeps its GPU addresses where these are free,
else UVM's ranges lie elsewhere (`moved`).
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_control, nv_rm_status, nv_uvm
from tinyhw.core.port import Port
from tinyhw.queues.again import Again, failed
from tinyhw.queues.events import Close, Doorbell, Event, Ioctl, Mmap, Open
from tinyhw.queues.moved import Patch
from tinyhw.queues.nv.moved import Moved
from tinyhw.queues.nv.world import NvWorld
from tinyhw.queues.world import Follow, Queue, World
from tinyhw.wire import rm, uvm

_CLIENTS: Final = ("hClient", "hRoot", "hClientShare", "hParentClient", "hObjectParent", "hObject", "hDevice")
_ADDRESSES: Final = ("base", "gpFifoOffset")  # of the GPU's, in calls
_RANGES: Final = (nv_uvm.UVM_CREATE_EXTERNAL_RANGE, nv_uvm.UVM_REGISTER_CHANNEL)  # calls that take addresses
# Where addresses end: those that QMDs, semaphores and pushbuffers name, by 40 bits (GP_ENTRY1.GET_HI), and others; and
# how far from the capture's a range is put, what is tried first at first.
_STEPS: Final = {1 << 40: (1 << 39, 5 << 37, 6 << 37, 7 << 37), 0x7000_0000_0000: tuple(n << 44 for n in range(1, 7))}
_FILES: Final = ("fd", "ctl_fd", "rmCtrlFd", "uvmFd")
_UUID_BYTES: Final = 16


class NvAgain(Again):
  """See the module."""

  def __init__(self, port: Port, world: World) -> None:
    super().__init__(port, world)
    assert isinstance(world, NvWorld)
    self._nv = world
    self._files: dict[int, int] = {}
    self._clients: dict[int, int] = {}
    self._uuids: dict[bytes, bytes] = {}
    self._tokens: dict[int, int] = {}  # queue -> the token of its doorbell here
    self._usermode: dict[int, int] = {}  # where each GPU's doorbells are mapped here
    self._keep: list[Any] = []
    self._moved = Moved(self.moves)

  def make(self, event: Event) -> None:
    match event:
      case Open(errno=0):
        try: self._files[event.fd] = self.port.open(event.path, event.flags)
        except OSError as error: raise failed(f"open of {event.path}", error) from None
      case Close():
        fd = self._files.pop(event.fd, None)
        if fd is not None: self.port.close(fd)
      case Mmap(errno=0): self._map(event)
      case Ioctl(errno=0) if event.result == 0: self._call(event)

  def _map(self, event: Mmap) -> None:
    if event.fd not in self._files: return
    made = next((m for m in self._nv.allocations if m.host == event.address and m.freed_at < 0), None)
    gpu = self._nv.doorbells_at(event.address)
    if (made is None or made.key in self.views) and gpu is None: return
    try: address = self.port.mmap(self._files[event.fd], event.length, event.offset)
    except OSError as error: raise failed("mmap", error) from None
    if made is not None: self.show(made, address, event.length)
    if gpu is not None: self._usermode[gpu] = address

  # ---- calls

  def _call(self, event: Ioctl) -> None:
    is_uvm = "uvm" in self._nv.files.get(event.fd, "")
    found = uvm.find(event.request) if is_uvm else rm.find(event.request)
    name = uvm.name(event.request) if is_uvm else rm.name(event.request)
    if found is None or found.struct is None or len(event.before) != ctypes.sizeof(found.struct):
      return self.skip(name)
    a: Any = found.struct.from_buffer_copy(self._with_uuids(event.before))
    then: Any = found.struct.from_buffer_copy(event.after)
    if _status(then): return
    self._translate(a)
    inner = self._inner(a, then, event)
    if inner is _SKIP: return self.skip(rm.command_name(a.cmd) if isinstance(a, nv_rm.NVOS54_PARAMETERS) else name)
    if isinstance(a, nv_rm.nv_ioctl_nvos02_parameters_with_fd): self._user_memory(a, then)
    if self.moving and event.request in _RANGES: self._elsewhere(a, then)
    try:
      self.port.ioctl(self._files[event.fd], event.request, a)
      while event.request in _RANGES and _status(a) == nv_rm_status.NV_ERR_UVM_ADDRESS_IN_USE and self._elsewhere(
          a, then): self.port.ioctl(self._files[event.fd], event.request, a)
    except (OSError, KeyError) as error:
      raise failed(name, error if isinstance(error, OSError) else OSError(0, "its file is not open")) from None
    if status := _status(a): raise failed(name, OSError(0, rm.status_name(status)))
    self._made(a, then, event, inner)

  def _translate(self, a: Any) -> None:
    """Files and clients of this process for those of the capture's."""
    for part in _parts(a):
      for field in _FILES:
        if hasattr(part, field): setattr(part, field, self._files.get(getattr(part, field), getattr(part, field)))
      for field in _CLIENTS:
        if hasattr(part, field): setattr(part, field, self._clients.get(getattr(part, field), getattr(part, field)))
      for field in _ADDRESSES:
        if hasattr(part, field): setattr(part, field, self.moves.at(getattr(part, field)))

  def _inner(self, a: Any, then: Any, event: Ioctl) -> Any:
    """What the call's pointer leads to, made again; `_SKIP` for what only asks, by pointers of its own."""
    if isinstance(a, nv_rm.NVOS54_PARAMETERS): target, size = "params", "paramsSize"
    elif isinstance(a, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS): target, size = "pAllocParms", "paramsSize"
    else: return None
    if isinstance(a, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS) and then.hClass != nv_rm_alloc.NV01_ROOT_CLIENT:
      a.hObjectNew = then.hObjectNew
    struct: Any = rm.parameters(a)
    if not event.inner_before:
      if getattr(a, target): return _SKIP
      return None
    if struct is None or len(event.inner_before) != ctypes.sizeof(struct): return _SKIP
    inner = struct.from_buffer_copy(self._with_uuids(event.inner_before))
    if isinstance(a, nv_rm.NVOS54_PARAMETERS) and _leads_on(inner): return _SKIP
    self._translate(inner)
    if isinstance(inner, nv_rm_alloc.NV0005_ALLOC_PARAMETERS): inner.data = self._files.get(inner.data, inner.data)
    if getattr(a, size): setattr(a, size, ctypes.sizeof(inner))
    setattr(a, target, ctypes.addressof(inner))
    self._keep = [inner]
    return inner

  def _user_memory(self, a: Any, then: Any) -> None:
    a.params.pMemory = self.memory(int(a.params.limit) + 1)
    a.params.hObjectNew = then.params.hObjectNew

  def _elsewhere(self, a: Any, then: Any) -> bool:
    """Have a range of addresses lie somewhere else; False where nothing is left. The low 32 bits stay as they are, and
    where that can be the distance of all ranges is the same: so halves of addresses go together as they did."""
    base, size = int(then.base), int(then.length)
    limit = next((limit for limit in _STEPS if base < limit), max(_STEPS))
    for step in _STEPS[limit]:
      here = base + step
      if a.base >= here or here + size > limit or self.world.find(here) or self.world.find(here + size - 1): continue
      self.moves.add(base, size, here)
      a.base = here
      return True
    return False

  def moved(self, queue: Queue, follow: Follow) -> Iterator[Patch]: return self._moved.patches(queue, follow)
  def numbers(self) -> list[tuple[int, int]]: return self._moved.data

  def _made(self, a: Any, then: Any, event: Ioctl, inner: Any) -> None:
    if event.request == nv_uvm.UVM_FREE and a.base != then.base:
      self.moves.drop(int(then.base))
    if isinstance(a, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS):
      if then.hObjectNew != a.hObjectNew: self._clients[int(then.hObjectNew)] = int(a.hObjectNew)
    elif isinstance(a, nv_rm.nv_ioctl_nvos02_parameters_with_fd):
      made = self._nv.memory_of(int(then.params.hObjectNew))
      if made is not None: self.show(made, self._mapped[-1][0], made.size)
    elif isinstance(a, nv_rm.NVOS54_PARAMETERS):
      if a.cmd == nv_rm_control.NV2080_CTRL_CMD_GPU_GET_GID_INFO:
        old = type(inner).from_buffer_copy(event.inner_after)
        self._uuids[bytes(old.data[:_UUID_BYTES])] = bytes(inner.data[:_UUID_BYTES])
      elif a.cmd == nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN:
        queue = self._nv.channel(int(a.hObject))
        if queue is not None: self._tokens[queue.key] = int(inner.workSubmitToken)

  def _with_uuids(self, raw: bytes) -> bytes:
    for old, new in self._uuids.items(): raw = raw.replace(old, new)
    return raw

  # ---- submissions

  def submit(self, queue: Queue, event: Doorbell) -> None:
    entries = queue.size // 8
    self.store_put(queue, event.last % entries)
    self.port.fence()
    if queue.gpu not in self._usermode or queue.key not in self._tokens:
      raise failed("a submission", OSError(0, "the channel's doorbell is not mapped, or its token was not asked for"))
    door = self._usermode[queue.gpu] + nv_rm_alloc.NVC361_NOTIFY_CHANNEL_PENDING
    self.port.doorbell(door, self._tokens[queue.key], event.nbytes)

  def store_put(self, queue: Queue, value: int) -> None:
    """GP_PUT in USERD."""
    made, offset, _ = self._nv.write_pointer_at(queue)
    view = None if made is None else self.views.get(made.key)
    if view is None: raise failed("a submission", OSError(0, "USERD is not mapped"))
    view[offset:offset + 4] = value.to_bytes(4, "little")


_SKIP: Final = object()


def _status(a: Any) -> int:
  """A call's status, wherever its struct has it."""
  for part in _parts(a):
    for field in ("status", "rmStatus", "Status"):
      if hasattr(part, field): return int(getattr(part, field))
  return 0


def _parts(a: Any) -> Iterator[Any]:
  """A struct, and the one that it wraps with a file."""
  yield a
  if isinstance(getattr(a, "params", None), ctypes.Structure): yield a.params


def _leads_on(inner: Any) -> bool:
  """Whether a control's parameters have a pointer: then it asks for a list, and what it leads to is not recorded."""
  return any(getattr(inner, str(row[0])) >> 32 for row in inner._fields_
             if row[1] is ctypes.c_uint64 and not hasattr(getattr(inner, str(row[0])), "__len__"))
