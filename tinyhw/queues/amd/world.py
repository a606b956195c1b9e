"""What /dev/kfd and its render nodes have given a process: see `queues.world`."""
from __future__ import annotations

import ctypes
import re
from typing import Any, Final

from tinyhw.autogen import kfd
from tinyhw.queues.amd.plans import AmdPlan, learn
from tinyhw.queues.amd.stream import AmdFollow, AmdState
from tinyhw.queues.events import Ioctl, Mmap, Munmap
from tinyhw.queues.plans import KnownSubmission, Named, Plans
from tinyhw.queues.world import Allocation, Fault, Knows, Queue, Read, World, named
from tinyhw.wire import kfd as calls
from tinyhw.wire.aql import PACKET_BYTES

_KINDS: Final = {kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM: "VRAM", kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT: "GTT",
                 kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR: "USERPTR", kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL: "DOORBELL",
                 kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP: "MMIO"}
_QUEUES: Final = {kfd.KFD_IOC_QUEUE_TYPE_COMPUTE: "pm4", kfd.KFD_IOC_QUEUE_TYPE_SDMA: "sdma",
                  kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL: "aql", kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI: "sdma",
                  kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID: "sdma"}
_SHIFT: Final = {"pm4": 2, "sdma": 0, "aql": 6}  # bytes of what the pointers count, as a shift
_MASK: Final = (1 << 64) - 1
_CAUSES: Final = (("NotPresent", "not present"), ("ReadOnly", "read only"), ("NoExecute", "not executable"))
_MOST: Final = 4096  # bytes of GPU numbers that a call may have
_NODE: Final = re.compile(r"(?a)/sys/[\w/]+/kfd/topology/nodes/(\d{1,9})/(gpu_id|properties)")
_NUMBER: Final = re.compile(r"(?a)\s*(\d{1,10})\s*")
_MINOR: Final = re.compile(r"(?a)^drm_render_minor (\d{1,9})$", re.M)
_VERSION: Final = re.compile(r"(?a)^gfx_target_version (\d{5,6})$", re.M)


class AmdWorld(World):
  """See the module."""
  PATHS = ("/dev/kfd", "/dev/dri/")
  UNTOLD = ("",)  # ROCm has one address space for both

  def __init__(self) -> None:
    super().__init__()
    self._handles: dict[int, Allocation] = {}
    self._offsets: dict[tuple[int, int], Allocation] = {}  # (GPU, offset for mmap)
    self._by_id: dict[int, Queue] = {}
    self._pointers: dict[int, tuple[int, int]] = {}  # (write, read) pointer addresses of a queue
    self._doors: dict[int, tuple[int, int]] = {}  # of a queue's key: its doorbell_offset, GPU
    self._door_maps: list[tuple[int, int, int]] = []  # (address, bytes, offset) of mapped doorbells
    self._rung: dict[int, Queue] = {}
    self._events: dict[int, int] = {}  # the type of an event
    self._pages: set[int] = set()  # allocations that have events' mailboxes
    self._nodes: dict[int, int] = {}  # drm fd -> gpu_id
    self._topology: dict[str, dict[str, str]] = {}  # of each node: its gpu_id, its properties
    self._plans = {kind: Plans[AmdPlan]() for kind in ("pm4", "sdma")}

  def tells(self, path: str) -> bool: return _NODE.fullmatch(path) is not None

  def read(self, path: str, content: bytes) -> None:
    if found := _NODE.fullmatch(path): self._topology.setdefault(found[1], {})[found[2]] = content.decode("latin-1")

  def cards(self) -> list[tuple[int, str]]:
    """(gpu_id, render node) of the GPUs of the machine, by KFD's topology; none where the capture has it not."""
    found = []
    for node in sorted(self._topology, key=int):
      rows = self._topology[node]
      number, minor = _NUMBER.fullmatch(rows.get("gpu_id", "")), _MINOR.search(rows.get("properties", ""))
      if number and int(number[1]) and minor: found.append((int(number[1]), f"/dev/dri/renderD{minor[1]}"))
    return found

  def _generation(self, gpu_id: int) -> int:
    """The generation of a GPU's graphics core, 0 where nobody knows."""
    for node in self._topology.values():
      if node.get("gpu_id", "").strip() == str(gpu_id) and (m := _VERSION.search(node.get("properties", ""))):
        return int(m[1]) // 10000
    return 0

  def place(self, made: Allocation) -> int:
    gpus = list(dict.fromkeys(self._nodes.values()))
    return gpus.index(made.gpu) if made.gpu in gpus else 0

  def takes_back(self, address: int) -> bool:
    made = self.find(address)
    return made is not None and made.key in self._pages

  def renders(self, fd: int, gpu: int) -> bool:
    """Whether a file of the process is a GPU's render node."""
    return self._nodes.get(fd) == gpu

  def write_pointer(self, queue: Queue) -> int:
    """GPU address of the write pointer."""
    return self._pointers[queue.key][0]

  def read_pointer(self, queue: Queue) -> int:
    """GPU address of the read pointer."""
    return self._pointers[queue.key][1]

  def called(self, call: Ioctl, when: int) -> None:
    found = calls.find(call.request)
    if found is None or found.struct is None: return
    a: Any = found.struct.from_buffer_copy(call.after.ljust(ctypes.sizeof(found.struct), b"\0"))
    match call.request:
      case kfd.AMDKFD_IOC_ACQUIRE_VM: self._nodes[int(a.drm_fd)] = int(a.gpu_id)
      case kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU: self._allocated(a, call, when)
      case kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU:
        gone = self._handles.pop(int(a.handle), None)
        if gone is not None: self._drop(gone, when)
      case kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU | kfd.AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU:
        self._mapped_to(a, call, call.request == kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU)
      case kfd.AMDKFD_IOC_CREATE_EVENT:
        self._events[int(a.event_id)] = int(a.event_type)
        page = self._handles.get(int(type(a).from_buffer_copy(call.before).event_page_offset)) if call.before else None
        if page is not None: self._pages.add(page.key)
      case kfd.AMDKFD_IOC_WAIT_EVENTS: self._waited(call)
      case kfd.AMDKFD_IOC_CREATE_QUEUE: self._created(a)
      case kfd.AMDKFD_IOC_DESTROY_QUEUE:
        queue = self._by_id.pop(int(a.queue_id), None)
        if queue is not None:
          queue.closed, self._rung = True, {}
          self._doors.pop(queue.key, None)

  def _allocated(self, a: Any, call: Ioctl, when: int) -> None:
    kind = next((name for bit, name in _KINDS.items() if a.flags & bit), "memory")
    made = self._add(int(a.va_addr), int(a.size), kind, int(a.gpu_id), int(a.handle), when)
    if kind == "USERPTR":  # the call takes the process's address where others give the offset for mmap
      made.host, made.shown = int(type(a).from_buffer_copy(call.before).mmap_offset), made.size
    self._handles[made.handle] = made
    self._offsets[made.gpu, int(a.mmap_offset)] = made

  def led(self, argument: Any) -> tuple[int, int]:
    if isinstance(argument, kfd.kfd_ioctl_wait_events_args):
      address, size = argument.events_ptr, ctypes.sizeof(kfd.kfd_event_data) * int(argument.num_events)
    elif isinstance(argument, kfd.kfd_ioctl_map_memory_to_gpu_args | kfd.kfd_ioctl_unmap_memory_from_gpu_args):
      address, size = argument.device_ids_array_ptr, 4 * int(argument.n_devices)
    else: return 0, 0
    return (int(address), size) if address and 0 < size <= _MOST else (0, 0)

  def _waited(self, call: Ioctl) -> None:
    """Events that came with a fault."""
    size = ctypes.sizeof(kfd.kfd_event_data)
    for at in range(0, len(call.inner_after) - size + 1, size):
      row: Any = kfd.kfd_event_data.from_buffer_copy(call.inner_after, at)
      if self._events.get(int(row.event_id)) != kfd.KFD_IOC_EVENT_MEMORY: continue
      data = row.memory_exception_data
      if not data.va or any(f.address == data.va for f in self.faults): continue
      causes = [text for bit, text in _CAUSES if getattr(data.failure, bit)]
      self.faults.append(Fault(int(data.va), f"a page fault ({', '.join(causes) or 'no cause is told'})"))

  def _mapped_to(self, a: Any, call: Ioctl, there: bool) -> None:
    made = self._handles.get(int(a.handle))
    if made is None or not call.inner_before: return  # a capture of before this was taken down
    gpus = set(memoryview(call.inner_before).cast("I").tolist())
    made.seen_by = (made.seen_by or set()) | gpus if there else (made.seen_by or set()) - gpus

  def _created(self, a: Any) -> None:
    kind = _QUEUES.get(int(a.queue_type), "pm4")
    gpus = list(dict.fromkeys([*(q.gpu for q in self.queues), int(a.gpu_id)]))  # by their first queue
    name = f"GPU{gpus.index(int(a.gpu_id))}.{kind.upper()}.{int(a.queue_id)}"
    queue = Queue(len(self.queues), name, kind, int(a.gpu_id), int(a.ring_base_address), int(a.ring_size),
                  int(a.queue_id), class_id=self._generation(int(a.gpu_id)), state=AmdState())
    self.queues.append(queue)
    self._by_id[queue.handle] = queue
    self._pointers[queue.key] = int(a.write_pointer_address), int(a.read_pointer_address)
    self._doors[queue.key] = int(a.doorbell_offset), queue.gpu
    for address, label in ((queue.ring, "ring"), (int(a.write_pointer_address), "write pointer"),
                           (int(a.read_pointer_address), "read pointer"), (int(a.eop_buffer_address), "EOP buffer"),
                           (int(a.ctx_save_restore_address), "save area")):
      if address and (found := self.find(address)) is not None and not found.label: found.label = f"{name} {label}"
    self._rung = {}

  def mapped(self, call: Mmap) -> None:
    gpu = self._nodes.get(call.fd)
    made = None if gpu is None else self._offsets.get((gpu, call.offset & _MASK))
    if made is None and gpu is None:
      made = next((m for (_, offset), m in self._offsets.items() if offset == call.offset & _MASK and m.kind != "VRAM"
                   and offset), None)
    if made is not None:
      self._map(made, call.address, call.length)
      return
    self._door_maps.append((call.address, call.length, call.offset & _MASK))
    self._rung = {}

  def unmapped(self, call: Munmap) -> None:
    self._unmap(call.address, call.length)
    end = call.address + call.length
    kept = [row for row in self._door_maps if not call.address <= row[0] < end]
    if len(kept) != len(self._door_maps): self._door_maps, self._rung = kept, {}

  def rung(self, address: int, value: int) -> Queue | None:
    if (known := self._rung.get(address)) is not None: return known
    for at, length, offset in self._door_maps:
      if not at <= address < at + length: continue
      for key, (door, _) in self._doors.items():
        if door - offset == address - at:
          self._rung[address] = self.queues[key]
          return self.queues[key]
    return None

  def bells(self) -> list[tuple[int, int]]:
    return [(at + door - offset, 8) for door, _ in self._doors.values() for at, length, offset in self._door_maps
            if offset <= door < offset + length and (at + door - offset) % 8 == 0]

  def pending(self, queue: Queue, value: int, read: Read) -> tuple[int, int]:
    return self.found(queue, value + (queue.kind == "aql"))  # AQL's doorbell is the last packet's index (HSA 2.7)

  def found(self, queue: Queue, pointer: int) -> tuple[int, int]: return queue.at, max(queue.at, pointer)

  def write_pointer_at(self, queue: Queue) -> tuple[Allocation | None, int, int]:
    at = self.write_pointer(queue)
    made = self.find(at)
    return made, at - (made.address if made is not None else 0), 8

  def ring_pieces(self, queue: Queue, first: int, last: int) -> list[tuple[int, int]]:
    shift, size = _SHIFT[queue.kind], queue.size
    count = min(last - first << shift, size)
    at = ((last << shift) - count) % size
    head = min(count, size - at)
    return [(queue.ring + a, n) for a, n in ((at, head), (0, count - head)) if n]

  def pointers(self, queue: Queue) -> list[tuple[int, int]]:
    write, read = self._pointers[queue.key]
    return [(read, 8), (write, 8)]

  def unit(self, queue: Queue) -> int: return 1 << _SHIFT[queue.kind]

  def told(self, queue: Queue, value: int) -> int | None: return value + (queue.kind == "aql")

  def follow(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read, knows: Knows | None = None) -> AmdFollow:
    return AmdFollow(queue, ring, read, knows)

  def submits(self, queue: Queue, ring: list[tuple[int, bytes]], read: Read) -> Named | KnownSubmission:
    plans = self._plans.get(queue.kind)
    if plans is None or len(ring) != 1 or queue.state is None: return named(AmdFollow(queue, ring, read))
    raw = ring[0][1]
    plan = plans.find(raw)
    if plan is not None: return plan.known(raw, queue.state)
    return learn(plans, raw, AmdFollow(queue, ring, read))


assert PACKET_BYTES == 1 << _SHIFT["aql"]
