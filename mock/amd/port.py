"""The mock's side of the seam: a Port whose device nodes, sysfs and doorbells belong to a Machine in this process.

Memory is shared as with a kernel: `mmap` maps the machine's memfds at the client's addresses. Doorbell stores reach
the machine at once; queues proceed while somebody waits.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from tinyhw.core.environment import digits
from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.core.mapped import Mapped
from tinyhw.core.memory import PAGE, Region
from tinyhw.core.port import Protection
from tinyhw.mock.amd.broken import may_fail
from tinyhw.mock.amd.driver import drm
from tinyhw.mock.amd.driver.places import (
  MMAP_GPU_ID_SHIFT,
  MMAP_TYPE_DOORBELL,
  MMAP_TYPE_EVENTS,
  MMAP_TYPE_MASK,
  MMAP_TYPE_MMIO,
)
from tinyhw.mock.amd.driver.process import OpenFile, ProcessDevice
from tinyhw.mock.amd.driver.topology import RENDER_MINOR
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.memory import Refused, page_align
from tinyhw.mock.port import SharedPort
from tinyhw.mock.running import HANG_S

KFD_PATH = "/dev/kfd"
KERNEL_LOG = "/dev/kmsg"
RENDER_PATH = "/dev/dri/renderD"


Bell = tuple[ProcessDevice, memoryview, int]  # whose it is, all of those, which one in bytes


class MockPort(SharedPort):
  """A client's way into a machine (tinyhw.core.port.Port). Calls may come from several threads."""

  def __init__(self, machine: Machine) -> None:
    super().__init__(machine)
    self.machine = machine
    self._bells: dict[int, Bell] = {}  # doorbells that were rung, by address

  # ---- files

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    """Device nodes: /dev/kfd and /dev/dri/renderD128 and on."""
    machine, pid = self.machine, self.pid()
    with machine.lock:
      self._enter()
      gpu = None
      if path.startswith(RENDER_PATH) and digits(path[len(RENDER_PATH) :]):
        index = int(path[len(RENDER_PATH) :]) - RENDER_MINOR
        gpu = machine.gpus[index] if 0 <= index < len(machine.gpus) else None
      if path != KFD_PATH and gpu is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
      fd = os.dup(gpu.vram.fd if gpu is not None else machine.system.fd)
      machine.files_of(pid)[fd] = OpenFile(fd, "kfd" if gpu is None else "render", pid, gpu)
      if gpu is None:
        machine.kfd.process(pid)
      return fd

  def close(self, fd: int) -> None:
    with self.machine.lock:
      file = self.machine.files_of(self.pid()).pop(fd, None)
      if file is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
      self._closed(file)

  def _closed(self, file: OpenFile) -> None:
    """Close a file; a dma-buf lets go of its memory."""
    file.close()
    if file.buffer is not None:
      self.machine.kfd.drop(file.buffer)

  def read(self, path: str) -> bytes:
    """sysfs and procfs; /dev/kmsg gives the kernel's log of the machine."""
    if path == KERNEL_LOG:
      return "".join(self.machine.kernel_log).encode()
    return self.machine.files.read(path)

  def listdir(self, path: str) -> list[str]:
    if path.rstrip("/") == "/dev/dri":
      return [f"renderD{RENDER_MINOR + g.index}" for g in self.machine.gpus]
    return self.machine.files.listdir(path)

  def _file(self, fd: int) -> OpenFile:
    pid = self.pid()
    found = self.machine.files_of(pid).get(fd)
    if found is None:  # a child has its parent's descriptors
      found = next(
        (f for files in self.machine.open_files.values() for f in files.values() if f.fd == fd and f.pid != pid), None
      )
    if found is None:
      raise Refused(errno.EBADF, f"{fd} is not an open file")
    return found

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    """Refusals are OSErrors with the kernel's errno; the machine's trace keeps each with its reason."""
    machine = self.machine
    with machine.lock:
      machine.note_thread()
      try:
        file = self._file(fd)
        if machine.watched:
          may_fail(machine, file, request)
        if file.kind == "kfd":
          return machine.kfd.ioctl(file, request, argument, self.pid())
        if file.kind == "dmabuf":
          raise Refused(errno.ENOTTY, "a dma-buf has no such ioctl here")
        return drm.ioctl(machine, file, request, argument)
      except (MemoryError, OutOfMemory) as short:
        raise Refused(errno.ENOMEM, f"ioctl {request:#x}: {short}") from None
      except Refused as refusal:
        machine.trace.add(
          "kernel", "refused", f"ioctl {request:#x}: {refusal.why}", errno=errno.errorcode.get(refusal.errno or 0, "?")
        )
        raise

  def end(self) -> None:
    """The client process ends: queues, files, buffers and mappings go; views of its memory that live show zeros.

    A new port on the same machine is a new process, for which a GPU works again after a fault or a hang.
    """
    with self.machine.lock:
      for file in self.machine.open_files.pop(self.pid(), {}).values():
        self._closed(file)
      self.machine.kfd.end_process(self.pid())
      self._forget_mappings()

  # ---- memory

  def _target(self, fd: int, length: int, offset: int,
              protection: Protection) -> tuple[Region, int, ProcessDevice | None]:
    """kfd_mmap and amdgpu_gem_mmap."""
    file = self._file(fd)
    process = self.machine.kfd.process(self.pid())
    if file.buffer is not None:
      if offset + page_align(length) > file.buffer.size or not isinstance(file.buffer.backing, Region):
        raise Refused(errno.EINVAL, f"mmap: the dma-buf has {file.buffer.size:#x} bytes")
      return file.buffer.backing, file.buffer.offset + offset, None
    if file.kind == "render":
      assert file.gpu is not None
      device = process.devices[file.gpu.gpu_id]
      buffer = device.by_mmap.get(offset)
      if buffer is None or page_align(length) > buffer.size:
        raise Refused(errno.EINVAL, f"mmap: no buffer of {length:#x} bytes at offset {offset:#x}")
      if device.drm_file is not file:
        raise Refused(errno.EACCES, "mmap: the buffer belongs to another open file")
      if not isinstance(buffer.backing, Region):
        raise Refused(errno.EPERM, "mmap: user memory is not mapped again")
      return buffer.backing, buffer.offset, device if buffer.kind == "doorbell" else None
    kind, gpu_id = offset & MMAP_TYPE_MASK, offset >> MMAP_GPU_ID_SHIFT & 0xFFFF
    if kind == MMAP_TYPE_EVENTS:
      if process.events.page is None or page_align(length) > 4096 * 8:
        raise Refused(errno.EINVAL, "mmap: no event page of this size")
      region, start = process.events.page
      process.events.mapped_size = length
      return region, start, None
    found = process.devices.get(gpu_id)
    if found is None:
      raise Refused(errno.ENODEV, f"mmap: no GPU with id {gpu_id:#x}")
    if kind == MMAP_TYPE_DOORBELL:
      if length != found.gpu.card.doorbell_slice:
        raise Refused(errno.EINVAL, f"mmap: doorbells are {found.gpu.card.doorbell_slice:#x} bytes")
      return found.doorbell_region(), 0, found
    if kind == MMAP_TYPE_MMIO:
      if length != PAGE:
        raise Refused(errno.EINVAL, "mmap: the remapped MMIO is one page")
      return self.machine.kfd.mmio[gpu_id], 0, None
    raise Refused(errno.EFAULT, f"mmap: offset {offset:#x} means nothing")

  def _unmapped(self, start: int, end: int) -> None:
    self.machine.kfd.user_memory_gone(self.pid(), start, end)

  # ---- the device

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    device, words, offset = self._bells.get(address) or self._bell(address)
    if address & 7 or nbytes != 8:
      raise InvalidArgument(f"{nbytes} bytes to the doorbell at {address:#x}: it takes aligned stores of 64 bits",
                            where="doorbell")
    machine = self.machine
    if machine.watched and machine.injected.of("lost doorbell") is not None: return
    with machine.lock:
      words[offset >> 3] = value & (1 << 64) - 1
      queue = device.by_doorbell.get(offset)
      if queue is not None:
        queue.ring_doorbell(value)
      else:
        machine.doubt(
          f"GPU{device.gpu.index}: a store of {value:#x} to doorbell {offset:#x}, which belongs to no queue"
        )
      if machine.draws is not None:
        machine.rung()
      if machine.waiting:
        machine.changed.notify_all()

  def _bell(self, address: int) -> Bell:
    """Remember what is at an address."""
    bells = self._bells
    for mapped in self._doorbells:
      if mapped.start <= address < mapped.end:
        device = mapped.owner
        assert device is not None and device.doorbell_words is not None
        bell = device, device.doorbell_words, (address - mapped.start) % device.gpu.card.doorbell_slice
        bells[address] = bell
        return bell
    raise InvalidArgument(f"no doorbells are mapped at {address:#x}", where="doorbell")

  def _have_doorbells(self, found: list[Mapped]) -> None:
    super()._have_doorbells(found)
    self._bells = {}

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    machine = self.machine
    if machine.weak is None:
      return machine.run(done, timeout_s, machine.other_threads)
    if done():
      return True
    ended = machine.run(done, timeout_s, machine.other_threads)
    if ended or timeout_s >= HANG_S:
      with machine.lock:
        machine.weak.host_looks()
    return ended
