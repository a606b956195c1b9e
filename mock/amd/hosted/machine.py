"""Memory that programs in other processes share: one file with all memory of a machine's GPUs, one for each process
with what the kernel driver has for it.

A program maps them itself, by the offsets that the driver's calls answer: so each offset is the place in the file. The
GPUs see the same pages, and nobody is told of a mapping.
"""
from __future__ import annotations

import errno
import itertools
import os
from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.memory import PAGE, HostRegion, Region
from tinyhw.mock.amd.driver.places import MMAP_GPU_ID_SHIFT, ProcessPlaces
from tinyhw.mock.amd.hosted.user import copy_of
from tinyhw.mock.amd.machine import Gpu, Machine
from tinyhw.mock.clients.host import MARK
from tinyhw.mock.clients.memory import ClientMemory
from tinyhw.mock.memory import Refused, UserMemory

if TYPE_CHECKING:
  from collections.abc import Callable

  from tinyhw.mock.amd.driver.process import OpenFile
  from tinyhw.mock.memory import BufferObject

APART: Final = 1 << 32  # doorbells lie at a multiple of it: libhsakmt keeps the low bits of an offset for the doorbell
GPUS_BYTES: Final = 1 << 50
KFD_BYTES: Final = 1 << 62  # all offsets of /dev/kfd; a file takes none of 2**63 and above
EVENTS: Final = 1 << 44
_SERIAL: Final = itertools.count(1)


class HostedMachine(Machine):
  """A machine whose memory lies in `file`. `file_of` and `given` are those of who serves the programs."""

  at_once = True

  def __init__(self, cards: Any, **options: Any) -> None:
    self.file = os.memfd_create(f"{MARK}gpus", os.MFD_CLOEXEC)
    os.ftruncate(self.file, GPUS_BYTES)
    self._end = APART
    self.file_of: Callable[[int, int], OpenFile | None] = lambda pid, fd: None
    self.given: Callable[[OpenFile, int], int] = _nobody
    super().__init__(cards, **options)

  def region(self, name: str, size: int) -> Region:
    base, self._end = self._end, self._end + -(-size // APART) * APART
    return Region(name, size, self.file, base)

  def places(self, pid: int) -> HostedPlaces: return HostedPlaces(self, pid)

  def close(self) -> None:
    super().close()
    os.close(self.file)


def _nobody(file: OpenFile, fd: int) -> int: raise Refused(errno.EMFILE, "no program is being served")


class HostedPlaces(ProcessPlaces):
  """The memory of one process in another place. `file` is what its descriptors of /dev/kfd are of."""

  machine: HostedMachine

  def __init__(self, machine: HostedMachine, pid: int) -> None:
    self.machine, self.pid = machine, pid
    self.user: UserMemory = ClientMemory(pid)
    self.kfd = os.memfd_create(f"{MARK}kfd-{next(_SERIAL)}", os.MFD_CLOEXEC)
    os.ftruncate(self.kfd, KFD_BYTES)
    self._mmio: dict[int, Region] = {}

  def close(self) -> None:
    os.close(self.kfd)
    for page in self._mmio.values(): page.close()

  def doorbells(self, gpu: Gpu) -> Region:
    region = Region("kfd_doorbells", gpu.card.doorbell_slice, self.kfd, self.doorbell_offset(gpu))
    region.u8[:] = 0xFF  # what nobody rings: the first packet's doorbell is 0
    return region

  def event_page(self, size: int) -> Region: return Region("kfd_event_page", size, self.kfd, EVENTS)

  def mmio(self, gpu: Gpu) -> Region:
    if gpu.gpu_id not in self._mmio:
      self._mmio[gpu.gpu_id] = Region(f"GPU{gpu.index}.mmio_remap", PAGE, self.kfd, self.mmio_offset(gpu))
    return self._mmio[gpu.gpu_id]

  def user_region(self, start: int, size: int) -> HostRegion:
    assert isinstance(self.user, ClientMemory)
    self.machine.ignored.note("KFD setting", "ALLOC_MEMORY_OF_GPU of user memory",
                              "GPUs have a copy, without atomic operations that the host takes part in")
    return copy_of(self.user, start, size)

  def doorbell_offset(self, gpu: Gpu) -> int: return (gpu.index + 1) * APART

  def event_offset(self) -> int: return EVENTS

  def mmio_offset(self, gpu: Gpu) -> int: return gpu.gpu_id << MMAP_GPU_ID_SHIFT

  def buffer_offset(self, gpu: Gpu, buffer: BufferObject) -> int:
    return buffer.backing.base + buffer.offset if isinstance(buffer.backing, Region) else 0

  def forget_offset(self, gpu: Gpu, buffer: BufferObject) -> None:
    """Nothing is held for it."""

  def file(self, fd: int) -> OpenFile | None: return self.machine.file_of(self.pid, fd)

  def export(self, file: OpenFile, memory: Region) -> int:
    """A descriptor that tells the buffer's size and cannot be mapped: it would not be the buffer that is seen."""
    assert file.buffer is not None
    whole = os.memfd_create(f"{MARK}dmabuf-{next(_SERIAL)}", os.MFD_CLOEXEC)
    try:
      os.ftruncate(whole, file.buffer.size)
      fd = os.open(f"/proc/self/fd/{whole}", os.O_WRONLY | os.O_CLOEXEC)
    finally: os.close(whole)
    try: return self.machine.given(file, fd)
    finally: os.close(fd)
