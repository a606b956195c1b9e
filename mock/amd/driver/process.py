"""What the kernel driver keeps for a client: one KfdProcess a process, in it one ProcessDevice for each GPU, and open
files.

After Linux 6.12 `amdkfd/kfd_priv.h` (struct kfd_process, kfd_process_device) and `kfd_process.c`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from tinyhw.core.memory import AddressSpace, Region
from tinyhw.mock.amd.chip.caches.spaces import WaveSpace
from tinyhw.mock.amd.driver.debug import Debug
from tinyhw.mock.amd.driver.events import Events
from tinyhw.mock.amd.driver.places import ProcessPlaces
from tinyhw.mock.memory import BufferObject, Refused, UserMemory

if TYPE_CHECKING:
  from tinyhw.mock.amd.chip.caches.chip import Chip
  from tinyhw.mock.amd.chip.queue import Queue
  from tinyhw.mock.amd.machine import Gpu


@dataclass(eq=False)
class OpenFile:
  """A file descriptor of the client: `kind` is "kfd", "render" (then `gpu` says which) or "dmabuf" (then `buffer`)."""

  fd: int
  kind: str
  pid: int
  gpu: Gpu | None = None
  buffer: BufferObject | None = None
  space: AddressSpace | None = None

  def close(self) -> None:
    """Close the descriptor; at the latest when the machine goes."""
    if self.fd >= 0:
      os.close(self.fd)
    self.fd = -1

  def __del__(self) -> None:
    self.close()


@dataclass(eq=False)
class ProcessDevice:
  """One GPU as one process sees it. `space` appears when the process gives its render node to ACQUIRE_VM."""

  gpu: Gpu
  places: ProcessPlaces
  drm_file: OpenFile | None = None
  space: AddressSpace | None = None
  buffers: dict[int, BufferObject] = field(default_factory=dict)
  _handles: tuple[list[int], int] = field(default_factory=lambda: ([], 0))  # a heap of those given back; the next
  queues: list[Queue] = field(default_factory=list)
  doorbells: Region | None = None
  doorbell_words: memoryview | None = None  # of 64 bits
  doorbell_used: set[int] = field(default_factory=set)
  by_doorbell: dict[int, Queue] = field(default_factory=dict)
  by_mmap: dict[int, BufferObject] = field(default_factory=dict)
  by_address: dict[int, BufferObject] = field(default_factory=dict)
  evicted: int = 0
  vram_used: int = 0
  scratch_base: int = 0
  trap_handler: tuple[int, int] = (0, 0)
  cache_policy: tuple[int, int, int, int] = (0, 0, 0, 0)

  chip: Chip | None = None  # the caches of the GPU, with weak memory
  _waves: WaveSpace | None = None

  def enter(self, buffer: BufferObject, handle: int | None = None) -> int:
    """Give a buffer the lowest handle that is free, or this one; the handle. Handles are given as by Linux' idr."""
    free, top = self._handles
    if handle is None: handle = heappop(free) if free else top
    for passed in range(top, handle): heappush(free, passed)
    self._handles = free, max(top, handle + 1)
    self.buffers[handle] = buffer
    return handle

  def leave(self, handle: int) -> None:
    """A handle is free again."""
    del self.buffers[handle]
    heappush(self._handles[0], handle)

  def wave_space(self) -> WaveSpace:
    """The address space as waves see it, with weak memory."""
    if self._waves is None or self._waves.base is not self.space:
      assert self.chip is not None
      self._waves = WaveSpace(self.bind(), self.chip)
    return self._waves

  def bind(self) -> AddressSpace:
    """kfd_bind_process_to_device: the address space, or ENODEV before ACQUIRE_VM."""
    if self.space is None:
      raise Refused(errno.ENODEV, f"no address space on GPU {self.gpu.gpu_id:#x} yet: ACQUIRE_VM comes first")
    return self.space

  def buffer(self, handle: int, code: int) -> BufferObject:
    """The buffer object behind a handle; `code` is the errno of the call for one that is not there."""
    found = self.buffers.get(handle & 0xFFFF_FFFF)
    if found is None:
      raise Refused(code, f"no buffer with handle {handle:#x}")
    return found

  def doorbell_region(self) -> Region:
    """The doorbells of this process on this GPU (kfd_alloc_process_doorbells)."""
    if self.doorbells is None:
      self.doorbells = self.places.doorbells(self.gpu)
      self.doorbell_words = self.doorbells.u8.data.cast("Q")
    return self.doorbells

  def close(self) -> None:
    """The process is gone from this GPU: what only it had of it goes."""
    if self.doorbells is not None:
      self.doorbells.close()


@dataclass(eq=False)
class KfdProcess:
  """A client process. Queue ids and events are its own; GPUs are keyed by their id."""

  pid: int
  places: ProcessPlaces
  devices: dict[int, ProcessDevice]
  events: Events
  queues: dict[int, Queue] = field(default_factory=dict)
  xnack: int = 0
  debug: Debug = field(default_factory=Debug)

  @property
  def user(self) -> UserMemory:
    """The client's memory."""
    return self.places.user

  def device(self, gpu_id: int, code: int = errno.EINVAL) -> ProcessDevice:
    """kfd_process_device_data_by_id, with EINVAL for a GPU that is not there."""
    found = self.devices.get(gpu_id)
    if found is None:
      raise Refused(code, f"no GPU with id {gpu_id:#x}")
    return found
