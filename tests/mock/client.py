"""A small KFD client for the tests: opens GPUs, allocates and maps memory, makes queues and submits packets through a
MockPort."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinyhw.autogen import kfd
from tinyhw.core.layout import Packet
from tinyhw.core.port import Port
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.wire import pm4, sdma

F = kfd
FLAGS = (
  F.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | F.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | F.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC
) & 0xFFFF_FFFF
VRAM, USERPTR = F.KFD_IOC_ALLOC_MEM_FLAGS_VRAM, F.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
CACHED_GTT = F.KFD_IOC_ALLOC_MEM_FLAGS_GTT  # what nobody but GPUs should look at: GL2 keeps it
GTT = CACHED_GTT | F.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | F.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED
READ_ONLY = F.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC


@dataclass
class Memory:
  """Mapped memory: its address on GPU and CPU, size, handle and the CPU's view."""

  address: int
  size: int
  handle: int
  view: memoryview

  @property
  def u32(self) -> memoryview:
    return self.view.cast("I")

  @property
  def u64(self) -> memoryview:
    return self.view.cast("Q")


@dataclass
class Queue:
  """A queue and what belongs to it. `at` is the write pointer in dwords."""

  client: Client
  queue_id: int
  ring: Memory
  read: Memory
  write: Memory
  doorbell: int
  copy: bool
  at: int = 0

  def push(self, words: Sequence[int], ring: bool = True) -> None:
    n = self.ring.size // 4
    ring_words = self.ring.u32
    for w in words:
      ring_words[self.at % n] = w
      self.at += 1
    if ring:
      self.ring_doorbell()

  def ring_doorbell(self, value: int | None = None) -> None:
    value = (self.at * 4 if self.copy else self.at) if value is None else value
    self.write.u64[0] = value
    self.client.port.doorbell(self.doorbell, value)

  def submit(self, *packets: Packet) -> None:
    self.push((sdma if self.copy else pm4).stream(packets))

  @property
  def state(self) -> str:
    return self.client.machine.kfd.processes[self.client.port.pid()].queues[self.queue_id].state.value

  @property
  def read_pointer(self) -> int:
    return self.read.u64[0] // (4 if self.copy else 1)


@dataclass
class Client:
  """One process on a machine: /dev/kfd open, each GPU's address space acquired."""

  machine: Machine = field(default_factory=Machine)
  acquire: bool = True
  wrap: Callable[[Port], Any] = lambda port: port  # around the port, as a recorder does

  def __post_init__(self) -> None:
    self.port = self.wrap(MockPort(self.machine))
    self.fd = self.port.open("/dev/kfd")
    self.gpu_ids = [g.gpu_id for g in self.machine.gpus]
    self.render = [self.port.open(f"/dev/dri/renderD{128 + i}") for i in range(len(self.gpu_ids))]
    self.doorbells: dict[int, int] = {}
    if self.acquire:
      for fd, gpu_id in zip(self.render, self.gpu_ids, strict=True):
        self.call("ACQUIRE_VM", drm_fd=fd, gpu_id=gpu_id)

  def call(self, name: str, **values: Any) -> Any:
    """An ioctl by its name; returns the argument struct."""
    request = getattr(kfd, f"AMDKFD_IOC_{name}")
    argument = kfd.IOCTLS[request].struct(**values)  # type: ignore[misc]  # each of these has a struct
    self.port.ioctl(self.fd, request, argument)
    return argument

  def errno(self, name: str, **values: Any) -> int:
    """The errno with which an ioctl is refused; 0 when it is not."""
    try:
      self.call(name, **values)
    except OSError as error:
      return error.errno or 0
    return 0

  def alloc(
    self,
    size: int,
    kind: int = GTT,
    gpu: int = 0,
    flags: int = FLAGS,
    *,
    map_to: Sequence[int] | None = None,
    address: int | None = None,
  ) -> Memory:
    size = -(-size // 4096) * 4096
    at = self.port.reserve(size) if address is None else address
    a = self.call("ALLOC_MEMORY_OF_GPU", va_addr=at, size=size, gpu_id=self.gpu_ids[gpu], flags=kind | flags)
    self.port.mmap(self.render[gpu], size, a.mmap_offset, at)
    self.map(a.handle, [gpu] if map_to is None else map_to)
    return Memory(at, size, a.handle, self.port.memory(at, size))

  def map(self, handle: int, gpus: Sequence[int], name: str = "MAP_MEMORY_TO_GPU") -> Any:
    ids = (ctypes.c_uint32 * max(len(gpus), 1))(*(self.gpu_ids[g] for g in gpus))
    return self.call(name, handle=handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=len(gpus))

  def unmap(self, handle: int, gpus: Sequence[int]) -> Any:
    return self.map(handle, gpus, "UNMAP_MEMORY_FROM_GPU")

  def queue_arguments(
    self, gpu: int = 0, copy: bool = False, ring_size: int = 4096
  ) -> tuple[dict[str, Any], Memory, Memory, Memory]:
    card = self.machine.gpus[gpu].card
    ring, read, write = self.alloc(ring_size, GTT, gpu), self.alloc(4096, GTT, gpu), self.alloc(4096, GTT, gpu)
    arguments = {
      "ring_base_address": ring.address,
      "ring_size": ring_size,
      "read_pointer_address": read.address,
      "write_pointer_address": write.address,
      "gpu_id": self.gpu_ids[gpu],
      "queue_percentage": 100,
      "queue_priority": 7,
      "queue_type": F.KFD_IOC_QUEUE_TYPE_SDMA if copy else F.KFD_IOC_QUEUE_TYPE_COMPUTE,
    }
    if not copy:
      eop = self.alloc(4096, VRAM, gpu)
      save = self.alloc((card.save_area_size + card.debug_memory_size) * card.xccs, VRAM, gpu)
      arguments |= {
        "eop_buffer_address": eop.address,
        "eop_buffer_size": 4096,
        "ctx_save_restore_address": save.address,
        "ctx_save_restore_size": card.save_area_size,
        "ctl_stack_size": card.control_stack_size,
      }
    return arguments, ring, read, write

  def queue(self, gpu: int = 0, copy: bool = False, ring_size: int = 4096) -> Queue:
    arguments, ring, read, write = self.queue_arguments(gpu, copy, ring_size)
    a = self.call("CREATE_QUEUE", **arguments)
    if gpu not in self.doorbells:
      self.doorbells[gpu] = self.port.mmap(self.fd, 8192, a.doorbell_offset & ~0x1FFF)
    return Queue(self, a.queue_id, ring, read, write, self.doorbells[gpu] + (a.doorbell_offset & 0x1FFF), copy)

  def run(self) -> None:
    """Until nothing can proceed any more."""
    self.port.wait(lambda: False, 0.0)

  def event(self, kind: int = F.KFD_IOC_EVENT_SIGNAL, auto_reset: bool = True) -> Any:
    return self.call("CREATE_EVENT", event_type=kind, auto_reset=int(auto_reset), node_id=self.gpu_ids[0])

  def wait_events(self, ids: Sequence[int], timeout: int = 0, wait_all: bool = False) -> tuple[int, Any]:
    data = (kfd.kfd_event_data * len(ids))()
    for d, i in zip(data, ids, strict=True):
      d.event_id = i
    a = self.call(
      "WAIT_EVENTS", events_ptr=ctypes.addressof(data), num_events=len(ids), wait_for_all=int(wait_all), timeout=timeout
    )
    return a.wait_result, data
