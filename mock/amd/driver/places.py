"""Where the memory that a kernel driver gives a process lies, and by which offsets of its files the process maps it.

A client in this process has a port, which knows what an offset means: so its offsets are the driver's own tokens, and
each region has a file of its own. Who serves clients in other processes has their mappings come true without a look at
them (`mock.amd.hosted.places`).
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tinyhw.core.memory import HostRegion, Region
from tinyhw.mock.memory import UserMemory

if TYPE_CHECKING:
  from tinyhw.mock.amd.driver.process import OpenFile
  from tinyhw.mock.amd.machine import Gpu, Machine
  from tinyhw.mock.memory import BufferObject

# KFD_MMAP_TYPE_* and KFD_MMAP_GPU_ID of kfd_priv.h: tokens that only the driver makes and reads.
MMAP_TYPE_DOORBELL: Final = 3 << 62
MMAP_TYPE_EVENTS: Final = 2 << 62
MMAP_TYPE_MMIO: Final = 0
MMAP_TYPE_MASK: Final = 3 << 62
MMAP_GPU_ID_SHIFT: Final = 46


class ProcessPlaces:
  """The memory and the files of one process. A client in this process; another room's are for other clients."""

  def __init__(self, machine: Machine, pid: int) -> None:
    self.machine, self.pid = machine, pid
    self.user = UserMemory()

  def close(self) -> None:
    """The process is gone."""
    self.user.close()

  # ---- memory of the driver's

  def doorbells(self, gpu: Gpu) -> Region:
    """New doorbells on a GPU."""
    return Region("kfd_doorbells", gpu.card.doorbell_slice)

  def event_page(self, size: int) -> Region:
    """A new event page of the driver's own."""
    return Region("kfd_event_page", size)

  def mmio(self, gpu: Gpu) -> Region:
    """The page of registers that clients may write."""
    return self.machine.kfd.mmio[gpu.gpu_id]

  def user_region(self, start: int, size: int) -> HostRegion:
    """Memory of the client's own, all of which it can read. Raises Refused where GPUs cannot have it."""
    return HostRegion(start, size)

  # ---- offsets

  def doorbell_offset(self, gpu: Gpu) -> int:
    """Where /dev/kfd has the doorbells of a GPU."""
    return MMAP_TYPE_DOORBELL | gpu.gpu_id << MMAP_GPU_ID_SHIFT

  def event_offset(self) -> int:
    """Where /dev/kfd has the event page of the driver's own."""
    return MMAP_TYPE_EVENTS

  def mmio_offset(self, gpu: Gpu) -> int:
    """Where /dev/kfd has the page of registers."""
    return MMAP_TYPE_MMIO | gpu.gpu_id << MMAP_GPU_ID_SHIFT

  def buffer_offset(self, gpu: Gpu, buffer: BufferObject) -> int:
    """Where the render node has a new buffer."""
    return gpu.mmap_offsets.alloc(buffer.size)

  def forget_offset(self, gpu: Gpu, buffer: BufferObject) -> None:
    """The buffer is gone."""
    gpu.mmap_offsets.free(buffer.mmap_offset)

  # ---- files

  def file(self, fd: int) -> OpenFile | None:
    """The open file behind a descriptor of the process; None for one of somebody else's."""
    return self.machine.files_of(self.pid).get(fd)

  def export(self, file: OpenFile, memory: Region) -> int:
    """Give the process a descriptor of a dma-buf; `memory` is where it lies. Raises Refused where it has no more."""
    file.fd = os.dup(memory.fd)
    self.machine.files_of(self.pid)[file.fd] = file
    return file.fd
