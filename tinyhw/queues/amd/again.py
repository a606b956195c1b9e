"""KFD's calls made again: see `queues.replay`. Buffers get the same GPU addresses where these are free, else others;
files, handles and GPUs have others anyway.
"""
from __future__ import annotations

import ctypes
import errno
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from tinyhw.autogen import kfd
from tinyhw.core.port import Port
from tinyhw.queues.again import Again, failed
from tinyhw.queues.amd.moved import words
from tinyhw.queues.amd.world import AmdWorld
from tinyhw.queues.events import Close, Doorbell, Event, Ioctl, Mmap, Open
from tinyhw.queues.moved import Patch
from tinyhw.queues.world import Allocation, Follow, Queue, World
from tinyhw.wire import kfd as calls

T = TypeVar("T")
_PASSIVE: Final = frozenset({  # calls that ask, or wait
  kfd.AMDKFD_IOC_GET_VERSION, kfd.AMDKFD_IOC_GET_CLOCK_COUNTERS, kfd.AMDKFD_IOC_GET_PROCESS_APERTURES,
  kfd.AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, kfd.AMDKFD_IOC_GET_TILE_CONFIG, kfd.AMDKFD_IOC_AVAILABLE_MEMORY,
  kfd.AMDKFD_IOC_WAIT_EVENTS, kfd.AMDKFD_IOC_GET_QUEUE_WAVE_STATE, kfd.AMDKFD_IOC_GET_DMABUF_INFO})
_TAKEN: Final = frozenset({errno.EINVAL, errno.EEXIST, errno.EADDRINUSE})  # of a mapping where another one is
_ALIGN: Final = 2 << 20  # bytes: a large page of the GPU's
_DOORS: Final = 8192  # bytes of a process's doorbells on a GPU (KFD_MMAP_TYPE_DOORBELL; kfd_doorbell_process_slice)


class AmdAgain(Again):
  """See the module."""

  def __init__(self, port: Port, world: World) -> None:
    super().__init__(port, world)
    assert isinstance(world, AmdWorld)
    self._amd = world
    self._files: dict[int, int] = {}
    self._handles: dict[int, int] = {}
    self._offsets: dict[int, int] = {}  # allocation -> offset for mmap
    self._asked: dict[int, tuple[Allocation, int, int, int]] = {}  # handle: what it is, flags, GPU here, user memory
    self._shown: dict[int, tuple[int, int]] = {}  # allocation -> (file here, bytes) of its mapping
    self._hidden: set[int] = set()  # allocations that the host cannot map
    self._gpus: dict[int, int] = {}
    self._queues: dict[int, int] = {}
    self._bells: dict[int, int] = {}   # queue -> address of its doorbell
    self._pages: dict[int, int] = {}   # offset of mapped doorbells -> address
    self._nodes: list[tuple[str, int]] | None = None  # of this machine: render node, gpu_id

  def make(self, event: Event) -> None:
    match event:
      case Open(errno=0): self._open(event)
      case Close(): self._close(event)
      case Mmap(errno=0): self._map(event)
      case Ioctl(errno=0) if event.result == 0: self._call(event)

  # ---- files

  def _open(self, event: Open) -> None:
    path = event.path
    if path.startswith("/dev/dri/"):
      opened = len([f for f in self._amd.files.values() if "/dri/" in f]) - 1
      path = self._card(self._place([card for _, card in self._then()], path, opened))
    try: self._files[event.fd] = self.port.open(path, event.flags)
    except OSError as error: raise failed(f"open of {path}", error) from None

  def _then(self) -> list[tuple[int, str]]:
    """gpu_id and render node of the GPUs that the capture was made on, where there are as many here."""
    cards = self._amd.cards()
    return cards if len(cards) <= len(self._cards()) else []

  @staticmethod
  def _place(known: Sequence[T], wanted: T, otherwise: int) -> int:
    """Which of the machine's GPUs it is: by its place in the topology, or in the order of use."""
    return known.index(wanted) if wanted in known else otherwise

  def _card(self, index: int) -> str:
    cards = self._cards()
    if index >= len(cards): raise failed(f"the use of GPU {index}", OSError(0, f"this machine has {len(cards)}"))
    return cards[index][0]

  def _cards(self) -> list[tuple[str, int]]:
    """Render node and gpu_id of each GPU here, by KFD's topology."""
    if self._nodes is None:
      base, self._nodes = "/sys/devices/virtual/kfd/kfd/topology/nodes", []
      for node in sorted(self.port.listdir(base), key=int):
        gpu_id = int(self.port.read(f"{base}/{node}/gpu_id") or b"0")
        rows = dict(line.split() for line in self.port.read(f"{base}/{node}/properties").decode().splitlines())
        if gpu_id: self._nodes.append((f"/dev/dri/renderD{rows['drm_render_minor']}", gpu_id))
    return self._nodes

  def _close(self, event: Close) -> None:
    fd = self._files.pop(event.fd, None)
    if fd is not None: self.port.close(fd)

  # ---- memory and queues

  def _map(self, event: Mmap) -> None:
    made = next((m for m in self._amd.living() if m.host == event.address and m.key in self._offsets), None)
    if made is None or made.key in self.views or event.fd not in self._files: return
    try: address = self.port.mmap(self._files[event.fd], event.length, self._offsets[made.key])
    except OSError as error: raise failed(f"mmap of {made}", error) from None
    self._mapped.append((address, event.length))
    self._shown[made.key] = self._files[event.fd], event.length
    self.show(made, address, event.length)

  def view(self, made: Allocation) -> memoryview | None:
    """Where the capture does not tell who had mapped it, it is mapped now."""
    found = self.views.get(made.key)
    if found is not None or not self.untold or made.key in self._hidden: return found
    if made.key not in self._offsets or made.freed_at >= 0: return None
    node = next((here for fd, here in self._files.items() if self._amd.renders(fd, made.gpu)), None)
    try:
      if node is None: raise OSError(0, "no render node is open")
      address = self.port.mmap(node, made.size, self._offsets[made.key])
    except OSError:
      self._hidden.add(made.key)  # the kernel driver shows it to nobody
      return None
    self._mapped.append((address, made.size))
    self._shown[made.key] = node, made.size
    self.show(made, address, made.size)
    return self.views[made.key]

  def _call(self, event: Ioctl) -> None:
    found = calls.find(event.request)
    name = calls.name(event.request)
    if found is None or found.struct is None or event.request in _PASSIVE or "DRM" in name: return self.skip(name)
    a: Any = found.struct.from_buffer_copy(event.before)
    then: Any = found.struct.from_buffer_copy(event.after)
    for field in ("gpu_id",):
      if hasattr(a, field): setattr(a, field, self._gpus.get(getattr(a, field), getattr(a, field)))
    if hasattr(a, "handle") and a.handle in self._handles: a.handle = self._handles[a.handle]
    if hasattr(a, "queue_id") and event.request != kfd.AMDKFD_IOC_CREATE_QUEUE:
      a.queue_id = self._queues.get(a.queue_id, a.queue_id)
    keep: Any = None
    self._move(a)
    match event.request:
      case kfd.AMDKFD_IOC_ACQUIRE_VM: self._acquire(a)
      case kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU if a.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR:
        a.mmap_offset = self.memory(int(a.size))
        if self.moving: a.va_addr = self.port.reserve(int(a.size), _ALIGN)
      case kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU if self.moving: a.va_addr = self.port.reserve(int(a.size), _ALIGN)
      case kfd.AMDKFD_IOC_CREATE_EVENT if a.event_page_offset in self._handles:
        a.event_page_offset = self._handles[a.event_page_offset]
      case kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU | kfd.AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU:
        ids = memoryview(event.inner_before).cast("I").tolist()
        keep = (ctypes.c_uint32 * len(ids))(*(self._gpus.get(i, i) for i in ids))
        a.device_ids_array_ptr, a.n_success = ctypes.addressof(keep), 0
    try:
      try: self.port.ioctl(self._files[event.fd], event.request, a)
      except OSError as error:
        if event.request != kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU or error.errno not in _TAKEN: raise
        a.handle, a.n_success = self._elsewhere(self._files[event.fd], int(then.handle)), 0
        self.port.ioctl(self._files[event.fd], event.request, a)
    except (OSError, KeyError) as error:
      raise failed(name, error if isinstance(error, OSError) else OSError(0, "its file is not open")) from None
    del keep
    self._made(event, a, then)

  # ---- memory that lies elsewhere

  def _move(self, a: Any) -> None:
    """Addresses of the GPU's in a call, here."""
    for name, kind, *_ in a._fields_ if self.moves else ():
      if kind is ctypes.c_uint64 and name.endswith(("_address", "_addr")):
        setattr(a, name, self.moves.at(getattr(a, name)))

  def _elsewhere(self, fd: int, handle: int) -> int:
    """Allocate a buffer whose addresses are taken once more, at others; its handle here. Raises OSError."""
    if handle not in self._asked: raise OSError(0, "its addresses are taken")
    made, flags, gpu_id, user = self._asked[handle]
    self.port.ioctl(fd, kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU, kfd.kfd_ioctl_free_memory_of_gpu_args(
      handle=self._handles[handle]))
    here = self.port.reserve(made.size, _ALIGN)
    again = kfd.kfd_ioctl_alloc_memory_of_gpu_args(va_addr=here, size=made.size, gpu_id=gpu_id, flags=flags,
                                                   mmap_offset=user)
    self.port.ioctl(fd, kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, again)
    self._handles[handle], self._offsets[made.key] = int(again.handle), int(again.mmap_offset)
    self.moves.add(made.address, made.size, here)
    if made.key in self._shown:
      node, length = self._shown[made.key]
      self.show(made, self.port.mmap(node, length, self._offsets[made.key]), length)
    return int(again.handle)

  def moved(self, queue: Queue, follow: Follow) -> Iterator[Patch]:
    for item in follow.items:
      inside = queue.ring <= item.address < queue.ring + queue.size
      for i, word in enumerate(words(item, self.moves) or ()):
        at = item.address + 4 * i
        if inside: at = queue.ring + (at - queue.ring) % queue.size
        if word != item.words[i]: yield at, item.words[i], word

  def _acquire(self, a: Any) -> None:
    """The GPU of a render node, and its number there and here."""
    index = self._place([gpu for gpu, _ in self._then()], int(a.gpu_id), len(self._gpus))
    self._gpus[int(a.gpu_id)] = self._cards()[index][1]
    a.gpu_id, a.drm_fd = self._gpus[int(a.gpu_id)], self._files.get(int(a.drm_fd), -1)

  def _made(self, event: Ioctl, a: Any, then: Any) -> None:
    match event.request:
      case kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU:
        self._handles[int(then.handle)] = int(a.handle)
        made = self.world.find(int(then.va_addr))
        if made is None: return
        self._offsets[made.key] = int(a.mmap_offset)
        user = self._mapped[-1][0] if made.kind == "USERPTR" else 0
        self._asked[int(then.handle)] = made, int(a.flags), int(a.gpu_id), user
        if user: self.show(made, user, made.size)
        if a.va_addr != then.va_addr: self.moves.add(made.address, made.size, int(a.va_addr))
      case kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU:
        if (gone := self._asked.pop(int(then.handle), None)) is not None: self.moves.drop(gone[0].address)
      case kfd.AMDKFD_IOC_CREATE_QUEUE:
        self._queues[int(then.queue_id)] = int(a.queue_id)
        self._bells[self._amd.queues[-1].key] = self._bell(event.fd, int(a.doorbell_offset))

  def _bell(self, fd: int, offset: int) -> int:
    inside = offset & _DOORS - 1
    page = offset - inside
    if page not in self._pages: self._pages[page] = self.port.mmap(self._files[fd], _DOORS, page)
    return self._pages[page] + inside

  def submit(self, queue: Queue, event: Doorbell) -> None:
    self.store(self._amd.write_pointer(queue), event.last.to_bytes(8, "little"))
    self.port.fence()
    if queue.key not in self._bells: raise failed("a submission", OSError(0, "its queue was not made"))
    self.port.doorbell(self._bells[queue.key], event.value, event.nbytes)
