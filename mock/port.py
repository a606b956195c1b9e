"""The mock's side of the seam: a Port whose device nodes, sysfs and doorbells belong to a Machine in this process.

Memory is shared as with a kernel: `mmap` maps the machine's memfds at the client's addresses. Doorbell stores reach
the machine at once; queues proceed while somebody waits.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.core.mapped import Mapped, Mappings, map_memory, unmap_memory
from tinyhw.core.memory import PAGE, Region
from tinyhw.core.port import Protection
from tinyhw.mock.amd import drm
from tinyhw.mock.amd.kfd import MMAP_GPU_ID_SHIFT, MMAP_TYPE_DOORBELL, MMAP_TYPE_EVENTS, MMAP_TYPE_MASK, MMAP_TYPE_MMIO
from tinyhw.mock.amd.process import OpenFile, ProcessDevice
from tinyhw.mock.amd.topology import RENDER_MINOR
from tinyhw.mock.machine import Machine
from tinyhw.mock.memory import Refused, blank_memory, page_align, reserve_memory
from tinyhw.mock.running import HANG_S

KFD_PATH = "/dev/kfd"
KERNEL_LOG = "/dev/kmsg"
RENDER_PATH = "/dev/dri/renderD"


class MockPort:
  """A client's way into a machine (tinyhw.core.port.Port). Calls may come from several threads."""

  def __init__(self, machine: Machine) -> None:
    self.machine = machine
    self._mappings = Mappings(unmap_memory, blank_memory)
    self._doorbells: list[Mapped] = []  # whose owner is a ProcessDevice

  # ---- files

  def pid(self) -> int:
    return os.getpid()

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    """Device nodes: /dev/kfd and /dev/dri/renderD128 and on."""
    machine, pid = self.machine, self.pid()
    with machine.lock:
      gpu = None
      if path.startswith(RENDER_PATH) and path[len(RENDER_PATH) :].isdigit():
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
      for mapped in self._mappings:
        self._mappings.unmap(mapped.start, mapped.end - mapped.start)
      self._doorbells.clear()

  # ---- memory

  def reserve(self, size: int, align: int = PAGE) -> int:
    at = reserve_memory(size, align)
    self._remember(at, size, False)
    return at

  def mmap(
    self,
    fd: int,
    length: int,
    offset: int = 0,
    address: int | None = None,
    protection: Protection = Protection.READ | Protection.WRITE,
  ) -> int:
    """kfd_mmap and amdgpu_gem_mmap: the offset says what is meant."""
    if length <= 0 or offset % PAGE or (address is not None and address % PAGE):
      raise Refused(errno.EINVAL, "mmap: not whole pages")
    with self.machine.lock:
      if fd < 0:
        at = map_memory(-1, length, 0, address, int(protection))
        self._remember(at, length, bool(protection))
        return at
      file = self._file(fd)
      region, start, owner = self._target(file, length, offset)
      at = map_memory(region.fd, length, start, address, int(protection))
      self._remember(at, length, bool(protection), owner)
      return at

  def _target(self, file: OpenFile, length: int, offset: int) -> tuple[Region, int, ProcessDevice | None]:
    """What memory an offset of a device node means, where in it, and whose doorbells it is."""
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

  def munmap(self, address: int, length: int) -> None:
    with self.machine.lock:
      end = address + page_align(length)
      self.machine.kfd.user_memory_gone(self.pid(), address, end)
      self._mappings.unmap(address, length)
      self._find_doorbells()

  def _remember(self, address: int, size: int, usable: bool, doorbells: ProcessDevice | None = None) -> None:
    self._mappings.add(address, size, usable, doorbells)
    if doorbells is not None or self._doorbells:
      self._find_doorbells()

  def _find_doorbells(self) -> None:
    self._doorbells = [m for m in self._mappings if m.owner is not None]

  def memory(self, address: int, length: int) -> memoryview:
    """Raises InvalidArgument unless this port mapped all of it."""
    return self._mappings.view(address, length)

  # ---- the device

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    for m in self._doorbells:
      if m.start <= address < m.end:
        self._ring(m, address, value, nbytes)
        return
    raise InvalidArgument(f"no doorbells are mapped at {address:#x}", where="doorbell")

  def _ring(self, mapped: Mapped, address: int, value: int, nbytes: int) -> None:
    device, machine = mapped.owner, self.machine
    assert device is not None and device.doorbell_words is not None
    if address % 8 or nbytes != 8:
      raise InvalidArgument(f"{nbytes} bytes to the doorbell at {address:#x}: it takes aligned stores of 64 bits",
                            where="doorbell")
    offset = (address - mapped.start) % device.gpu.card.doorbell_slice
    with machine.lock:
      device.doorbell_words[offset >> 3] = value & (1 << 64) - 1
      queue = device.by_doorbell.get(offset)
      if queue is None:
        machine.doubt(
          f"GPU{device.gpu.index}: a store of {value:#x} to doorbell {offset:#x}, which belongs to no queue"
        )
      else:
        queue.ring_doorbell(value)
      if machine.waiting:
        machine.changed.notify_all()

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    if done():
      return True
    self.machine.note_thread()
    ended = self.machine.run(done, timeout_s, self.machine.other_threads)
    if self.machine.weak is not None and (ended or timeout_s >= HANG_S):
      with self.machine.lock:
        self.machine.weak.host_looks()
    return ended

  def now_ns(self) -> int:
    return self.machine.clock.now_ns()
