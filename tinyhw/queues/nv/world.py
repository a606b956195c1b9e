"""What RM and UVM have given a process: see `queues.world`. Objects go by their handles, memory by where UVM or RM has
mapped it for a GPU, channels by the token that their doorbell takes."""
from __future__ import annotations

import ctypes
from typing import Any, Final

from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_control, nv_uvm
from tinyhw.autogen.nv_rm_chips import RESOURCES
from tinyhw.queues.events import Ioctl, Mmap, Munmap
from tinyhw.queues.nv.plans import NvPlans
from tinyhw.queues.nv.stream import NvFollow, NvState
from tinyhw.queues.plans import KnownSubmission, Named
from tinyhw.queues.world import Allocation, Fault, Knows, Queue, Read, World
from tinyhw.wire import gpfifo, methods, rm

_MEMORY: Final = {nv_rm_alloc.NV01_MEMORY_SYSTEM: "SYSTEM", nv_rm_alloc.NV01_MEMORY_LOCAL_USER: "VIDMEM",
                  nv_rm_alloc.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR: "USER"}
_DOOR: Final = nv_rm_alloc.NVC361_NOTIFY_CHANNEL_PENDING
_LONGEST: Final = 1 << 20  # bytes that a call's parameters may have
_USERD_PUT: Final = gpfifo.Userd.GPPut.offset  # type: ignore[attr-defined]  # a descriptor of ctypes
_USERD_GET: Final = gpfifo.Userd.GPGet.offset  # type: ignore[attr-defined]


class NvWorld(World):
  """See the module."""
  PATHS = ("/dev/nvidia",)
  UNTOLD = ("/dev/nvidia", "/dev/zero")  # CUDA has pushbuffers at one address for both (tools/nvcapture)

  def __init__(self) -> None:
    super().__init__()
    self._objects: dict[int, tuple[int, int]] = {}  # handle -> (class, parent)
    self._memory: dict[int, Allocation] = {}
    self._waiting: dict[int, tuple[int, int]] = {}  # file -> the object that its next mapping shows, from which byte
    self._usermode: dict[int, tuple[int, int]] = {}  # where a GPU's doorbells are mapped: address -> (bytes, GPU)
    self._tokens: dict[tuple[int, int], Queue] = {}  # by GPU and token
    self._channels: dict[int, Queue] = {}
    self._userd: dict[int, tuple[int, int]] = {}  # of a queue's key: memory handle, offset
    self._gpus: list[int] = []
    self._gpu_uuids: dict[int, int] = {}  # of a GPU's number
    self._plans = NvPlans()

  # ---- calls

  def led(self, argument: Any) -> tuple[int, int]:
    if isinstance(argument, nv_rm.NVOS54_PARAMETERS): address, size = argument.params, argument.paramsSize
    elif isinstance(argument, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS):
      address, size = argument.pAllocParms, argument.paramsSize
    else: return 0, 0
    struct = rm.parameters(argument)
    if not size and struct is not None: size = ctypes.sizeof(struct)
    return (int(address), int(size)) if address and 0 < size <= _LONGEST else (0, 0)

  def called(self, call: Ioctl, when: int) -> None:
    name = self.files.get(call.fd, "")
    if "uvm" in name: return self._uvm(call, when)
    found = rm.find(call.request)
    if found is None or found.struct is None: return
    a: Any = found.struct.from_buffer_copy(call.after.ljust(ctypes.sizeof(found.struct), b"\0"))
    if isinstance(a, nv_rm.NVOS21_PARAMETERS | nv_rm.NVOS64_PARAMETERS):
      if not a.status: self._allocated(a, call, when)
    elif isinstance(a, nv_rm.nv_ioctl_nvos02_parameters_with_fd):
      if not a.params.status:
        self._note(int(a.params.hObjectNew), int(a.params.hClass), int(a.params.hObjectParent))
        made = self._remember(int(a.params.hObjectNew), "USER", int(a.params.limit) + 1, when)
        made.host, made.shown = int(a.params.pMemory), made.size
    elif isinstance(a, nv_rm.NVOS00_PARAMETERS):
      if not a.status: self._freed(int(a.hObjectOld), when)
    elif isinstance(a, nv_rm.nv_ioctl_nvos33_parameters_with_fd):
      if not a.params.status: self._waiting[int(a.fd)] = int(a.params.hMemory), int(a.params.offset)
    elif isinstance(a, nv_rm.NVOS46_PARAMETERS):
      if not a.status: self._mapped_at(int(a.hMemory), int(a.dmaOffset), int(a.length))
    elif isinstance(a, nv_rm.NVOS54_PARAMETERS) and not a.status:
      self._controlled(a, call)

  def _note(self, handle: int, class_id: int, parent: int) -> None:
    self._objects[handle] = class_id, parent

  def _remember(self, handle: int, kind: str, size: int, when: int) -> Allocation:
    made = self._memory[handle] = self._add(0, size, kind, self._gpu_of(handle), handle, when)
    return made

  def _gpu_of(self, handle: int) -> int:
    """Which device an object is below: counted in the order of their first use."""
    at = handle
    while at in self._objects and self._objects[at][0] != nv_rm_alloc.NV01_DEVICE_0: at = self._objects[at][1]
    if at not in self._gpus: self._gpus.append(at)
    return self._gpus.index(at)

  def _allocated(self, a: Any, call: Ioctl, when: int) -> None:
    handle, class_id, parent = int(a.hObjectNew), int(a.hClass), int(a.hObjectParent)
    self._note(handle, class_id, parent)
    inner = call.inner_after or call.inner_before
    struct: Any = nv_rm_alloc.PARAMETERS.get(class_id)
    given: Any = None
    if struct is not None and inner: given = struct.from_buffer_copy(inner.ljust(ctypes.sizeof(struct), b"\0"))
    if class_id in _MEMORY and given is not None:
      self._remember(handle, _MEMORY[class_id], int(given.size), when)
    elif isinstance(given, nv_rm_alloc.NV_CHANNEL_ALLOC_PARAMS): self._channel(handle, class_id, given)
    elif class_id in methods.CLASS_IDS and parent in self._channels:
      queue = self._channels[parent]
      queue.class_id = queue.class_id or class_id
      queue.state.classes.append(class_id)

  def _channel(self, handle: int, class_id: int, given: Any) -> None:
    gpu = self._gpu_of(handle)
    name = f"GPU{gpu}.channel {len(self.queues)}"
    queue = Queue(len(self.queues), name, "gpfifo", gpu, int(given.gpFifoOffset),
                  int(given.gpFifoEntries) * gpfifo.SIZE, handle, state=NvState())
    self.queues.append(queue)
    self._channels[handle] = queue
    self._userd[queue.key] = int(given.hUserdMemory[0]), int(given.userdOffset[0])
    for label, found in ((f"{name} GPFIFO", self.find(queue.ring)),
                         (f"{name} USERD", self._memory.get(int(given.hUserdMemory[0]))),
                         (f"{name} error notifier", self._memory.get(int(given.hObjectError)))):
      if found is not None and not found.label: found.label = label

  def _controlled(self, a: Any, call: Ioctl) -> None:
    if a.cmd == nv_rm_control.NV906F_CTRL_CMD_GET_MMU_FAULT_INFO and \
        len(call.inner_after) == ctypes.sizeof(nv_rm_control.NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS):
      fault: Any = nv_rm_control.NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS.from_buffer_copy(call.inner_after)
      text = bytes(fault.faultString).split(b"\0")[0].decode("ascii", "replace")
      self.faults.append(Fault(int(fault.addrHi) << 32 | int(fault.addrLo), f"a fault of the MMU ({text})"))
      return
    if a.cmd != nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN: return
    queue = self._channels.get(int(a.hObject))
    struct = nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS
    if queue is None or len(call.inner_after) < ctypes.sizeof(struct): return
    self._tokens[queue.gpu, int(struct.from_buffer_copy(call.inner_after).workSubmitToken)] = queue

  def _freed(self, handle: int, when: int) -> None:
    """An object goes, and all below it."""
    below = [handle]
    for at in below: below += [h for h, (_, parent) in self._objects.items() if parent == at and h not in below]
    for at in below:
      self._objects.pop(at, None)
      gone = self._memory.pop(at, None)
      if gone is not None and gone.freed_at < 0: self._drop(gone, when)
      queue = self._channels.pop(at, None)
      if queue is not None:
        queue.closed = True
        self._tokens = {t: q for t, q in self._tokens.items() if q is not queue}

  def _uvm(self, call: Ioctl, when: int) -> None:
    found = nv_uvm.IOCTLS.get(call.request)
    if found is None or found.struct is None: return
    a: Any = found.struct.from_buffer_copy(call.after.ljust(ctypes.sizeof(found.struct), b"\0"))
    if getattr(a, "rmStatus", 0): return
    if call.request == nv_uvm.UVM_MAP_EXTERNAL_ALLOCATION:
      self._mapped_at(int(a.hMemory), int(a.base), int(a.length))
      made, count = self._memory.get(int(a.hMemory)), min(int(a.gpuAttributesCount), len(a.perGpuAttributes))
      gpus = {_number(a.perGpuAttributes[n].gpuUuid) for n in range(count)}
      if made is not None: made.seen_by = (made.seen_by or set()) | gpus
    elif call.request == nv_uvm.UVM_REGISTER_CHANNEL:
      queue = self._channels.get(int(a.hChannel))
      if queue is not None: self._gpu_uuids[queue.gpu] = _number(a.gpuUuid)
    elif call.request == nv_uvm.UVM_FREE:
      gone = self.find(int(a.base))
      if gone is not None: self._drop(gone, when)

  def _mapped_at(self, handle: int, address: int, length: int) -> None:
    made = self._memory.get(handle)
    if made is None or made.address == address: return
    made.address = address
    self._place(made)

  # ---- mappings

  def mapped(self, call: Mmap) -> None:
    handle, offset = self._waiting.pop(call.fd, (0, 0))
    if not handle: return
    made = self._memory.get(handle)
    if made is not None:
      if not offset: self._map(made, call.address, call.length)  # of a part amid it, its own beginning is not there
    elif "USERMODE" in _class_name(self._objects.get(handle, (0, 0))[0]):
      self._usermode[call.address] = call.length, self._gpu_of(handle)

  def unmapped(self, call: Munmap) -> None:
    self._unmap(call.address, call.length)
    end = call.address + call.length
    self._usermode = {at: row for at, row in self._usermode.items() if not call.address <= at < end}

  # ---- submissions

  def rung(self, address: int, value: int) -> Queue | None:
    row = self._usermode.get(address - _DOOR)
    return None if row is None else self._tokens.get((row[1], value))

  def bells(self) -> list[tuple[int, int]]:
    gpus = {queue.gpu for queue in self.queues if not queue.closed}
    return [(at + _DOOR, 4) for at, (length, gpu) in self._usermode.items() if gpu in gpus and _DOOR + 4 <= length]

  def rings_at(self, queue: Queue, address: int) -> bool:
    row = self._usermode.get(address - _DOOR)
    return row is not None and row[1] == queue.gpu  # which, its value says

  def pending(self, queue: Queue, value: int, read: Read) -> tuple[int, int]:
    memory, offset, size = self.write_pointer_at(queue)
    raw = read(memory.address + offset, size) if memory is not None else None
    if raw is None or len(raw) < size: return queue.at, queue.at
    return self.found(queue, int.from_bytes(raw, "little"))

  def found(self, queue: Queue, pointer: int) -> tuple[int, int]:
    entries = queue.size // gpfifo.SIZE
    return queue.at, queue.at + ((pointer - queue.at) % entries if entries else 0)

  def doorbells_at(self, address: int) -> int | None:
    """Whose doorbells are mapped at an address of the process: a GPU, or None."""
    row = self._usermode.get(address)
    return None if row is None else row[1]

  def memory_of(self, handle: int) -> Allocation | None:
    """The memory of a handle."""
    return self._memory.get(handle)

  def channel(self, handle: int) -> Queue | None:
    """The channel of a handle."""
    return self._channels.get(handle)

  def write_pointer_at(self, queue: Queue) -> tuple[Allocation | None, int, int]:
    """GP_PUT in USERD."""
    handle, offset = self._userd.get(queue.key, (0, 0))
    return self._memory.get(handle), offset + _USERD_PUT, 4

  def ring_pieces(self, queue: Queue, first: int, last: int) -> list[tuple[int, int]]:
    entries = queue.size // gpfifo.SIZE
    at, count = first % entries, last - first
    head = min(count, entries - at)
    return [(queue.ring + a * gpfifo.SIZE, n * gpfifo.SIZE) for a, n in ((at, head), (0, count - head)) if n]

  def pointers(self, queue: Queue) -> list[tuple[int, int]]:
    handle, offset = self._userd.get(queue.key, (0, 0))
    memory = self._memory.get(handle)
    if memory is None: return []
    return [(memory.address + offset + at, 4) for at in (_USERD_GET, _USERD_PUT)]

  def reaches(self, queue: Queue, made: Allocation) -> bool:
    uuid = self._gpu_uuids.get(queue.gpu)
    return made.seen_by is None or uuid is None or uuid in made.seen_by

  def reached(self, queue: Queue, read: int, first: int) -> int:
    return first - (first - read) % (queue.size // gpfifo.SIZE or 1)

  def room(self, queue: Queue) -> int: return queue.size // gpfifo.SIZE - 1  # GP_PUT at GP_GET: nothing is there

  def unit(self, queue: Queue) -> int: return gpfifo.SIZE

  def follow(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read, knows: Knows | None = None) -> NvFollow:
    return NvFollow(queue, ring, read)

  def submits(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read) -> Named | KnownSubmission:
    known = self._plans.known(queue.state, ring, read)
    return known or self._plans.learn(queue.state, ring, read, NvFollow(queue, ring, read))


def _number(uuid: Any) -> int: return int.from_bytes(bytes(uuid.uuid), "little")


def _class_name(class_id: int) -> str:
  row = RESOURCES.get(class_id)
  return "" if row is None else row.name
