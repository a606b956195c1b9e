"""The way into a machine of NVIDIA GPUs: /dev/nvidiactl, /dev/nvidiaN, /dev/nvidia-uvm, procfs, the doorbell.

What a file maps was said before by NV_ESC_RM_MAP_MEMORY (nv-mmap.c); a doorbell is a store to NOTIFY_CHANNEL_PENDING of
a mapped usermode page. `wait` also looks at that word, for clients that store to it without `doorbell`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.autogen import nv_rm as rm
from tinyhw.autogen import nv_rm_alloc as alloc
from tinyhw.autogen import nv_uvm as uvm
from tinyhw.core.environment import digits
from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.core.mapped import Mapped
from tinyhw.core.memory import Access, Region
from tinyhw.core.port import Protection
from tinyhw.mock.memory import Refused, page_align
from tinyhw.mock.nv.card import VENDOR
from tinyhw.mock.nv.driver.controls import uuid_text
from tinyhw.mock.nv.driver.objects import Context, NvFile
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.mock.port import SharedPort

CTL_PATH: Final = "/dev/nvidiactl"
GPU_PATH: Final = "/dev/nvidia"
UVM_PATH: Final = "/dev/nvidia-uvm"
TOOLS_PATH: Final = "/dev/nvidia-uvm-tools"
KERNEL_LOG: Final = "/dev/kmsg"
PROC: Final = "/proc/driver/nvidia"
PCI: Final = "/sys/bus/pci/devices"
NOTIFY: Final = alloc.NVC361_NOTIFY_CHANNEL_PENDING
_NO_TOKEN: Final = 0xFFFF_FFFF


class NvPort(SharedPort):
  """A client's way into a machine (tinyhw.core.port.Port)."""

  def __init__(self, machine: NvMachine) -> None:
    super().__init__(machine)
    self.machine = machine
    self._held: set[Context] = set()
    self._rung = [region.u8[NOTIFY : NOTIFY + 4].view(np.uint32).data for region in machine.rm.usermode]
    for word in self._rung:
      word[0] = _NO_TOKEN

  # ---- files

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    """Device nodes."""
    machine, pid = self.machine, self.pid()
    with machine.lock:
      self._enter()
      gpu = None
      kinds = {CTL_PATH: "ctl", UVM_PATH: "uvm", TOOLS_PATH: "tools"}
      kind = kinds.get(path, "gpu")
      if kind == "gpu":
        number = path[len(GPU_PATH) :] if path.startswith(GPU_PATH) else ""
        if not digits(number) or int(number) >= len(machine.gpus):
          raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        gpu = machine.gpus[int(number)]
      fd = os.dup(machine.system.fd)
      machine.files_of(pid)[fd] = NvFile(fd, kind, pid, gpu)
      return fd

  def close(self, fd: int) -> None:
    with self.machine.lock:
      file = self.machine.files_of(self.pid()).pop(fd, None)
      if file is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
      self._closed(file)

  def _closed(self, file: NvFile) -> None:
    if file.uvm is not None:
      file.uvm.close()
    self.machine.rm.events.closed(file)
    if file.kind == "ctl":
      self.machine.rm.file_closed(file)
    file.close()

  def _file(self, fd: int) -> NvFile:
    pid = self.pid()
    found = self.machine.files_of(pid).get(fd)
    if found is None:  # a child has its parent's descriptors
      found = next((f for files in self.machine.open_files.values() for f in files.values()
                    if f.fd == fd), None)
    if found is None:
      raise Refused(errno.EBADF, f"{fd} is not an open file")
    return found

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    """RM and UVM answer in the argument; refusals by errno are OSErrors, and the trace keeps each with its reason."""
    machine = self.machine
    with machine.lock:
      machine.note_thread()
      try:
        file = self._file(fd)
        if machine.watched:
          table = uvm.IOCTLS if file.kind in ("uvm", "tools") else rm.IOCTLS
          row = table.get(request)
          machine.injected.call(row.name if row is not None else f"ioctl {request & 0xFF:#x}")
        if file.pid != self.pid():
          raise Refused(errno.EBADF, "the file is of the parent process")
        if file.kind in ("uvm", "tools"):
          return machine.uvm.ioctl(file, request, argument, self.pid())
        return machine.rm.ioctl(file, request, argument, self.pid())
      except (MemoryError, OutOfMemory) as short:
        raise Refused(errno.ENOMEM, f"ioctl {request:#x}: {short}") from None
      except Refused as refusal:
        machine.trace.add("kernel", "refused", f"ioctl {request:#x}: {refusal.why}",
                          errno=errno.errorcode.get(refusal.errno or 0, "?"))
        raise

  def end(self) -> None:
    """The client process ends: files, objects and mappings go; views of its memory that live show zeros."""
    with self.machine.lock:
      for file in self.machine.open_files.pop(self.pid(), {}).values():
        self._closed(file)
      self._forget_mappings()

  # ---- procfs and sysfs

  def read(self, path: str) -> bytes:
    """The driver's version, what it says of each GPU, the kernel's log."""
    machine = self.machine
    if path == KERNEL_LOG:
      return "".join(machine.kernel_log).encode()
    if path == f"{PROC}/version":
      return f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {machine.rm.version}\n".encode()
    for gpu in machine.gpus:
      slot = f"0000:{gpu.card.bus(gpu.index):02x}:00.0"
      if path == f"{PROC}/gpus/{slot}/information":
        return (f"Model: \t\t {gpu.card.title}\nIRQ:   \t\t 0\nGPU UUID: \t {uuid_text(gpu)}\n"
                f"Bus Location: \t {slot}\nDevice Minor: \t {gpu.index}\n").encode()
      values = {"vendor": VENDOR, "device": gpu.card.device_id, "class": 0x030200}
      name = path.removeprefix(f"{PCI}/{slot}/")
      if name in values:
        return f"{values[name]:#0{8 if name == 'class' else 6}x}\n".encode()
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

  def listdir(self, path: str) -> list[str]:
    slots = [f"0000:{g.card.bus(g.index):02x}:00.0" for g in self.machine.gpus]
    path = path.rstrip("/")
    if path in (f"{PROC}/gpus", PCI):
      return slots
    if path == "/dev":
      return sorted(["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", *(f"nvidia{g.index}" for g in self.machine.gpus)])
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

  # ---- memory

  def _target(self, fd: int, length: int, offset: int, protection: Protection) -> tuple[Region, int, Any]:
    """nvidia_mmap: what NV_ESC_RM_MAP_MEMORY has said of this file. UVM's files reserve addresses only."""
    file = self._file(fd)
    if file.kind == "uvm":
      raise Refused(errno.EINVAL, "mmap of UVM: managed memory is not modelled")
    context = file.context
    if context is None:
      raise Refused(errno.EINVAL, "mmap: nothing was mapped through this file (NV_ESC_RM_MAP_MEMORY)")
    if offset:
      raise Refused(errno.EINVAL, f"mmap: offset {offset:#x} of a file of the driver")
    if page_align(length) > page_align(context.size):
      raise Refused(errno.EINVAL, f"mmap: {length:#x} bytes, the mapping has {context.size:#x}")
    if protection & Protection.WRITE and not context.access & Access.WRITE:
      raise Refused(errno.EACCES, "mmap: the mapping is read-only")
    if context.physical is not None and context not in self._held:
      context.physical.hold()
      self._held.add(context)
    return context.region, context.offset, context

  def _unmapped(self, start: int, end: int) -> None:
    self.machine.rm.user_memory_gone(self.pid(), start, end)

  def _have_doorbells(self, found: list[Mapped]) -> None:
    super()._have_doorbells(found)
    owners = {m.owner for m in found}
    self._doorbells = [m for m in found if m.owner.usermode is not None]
    for context in [c for c in self._held if c not in owners]:
      self._held.discard(context)
      if context.physical is not None:
        context.physical.drop()

  # ---- the device

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    """A store to a usermode page. Only NOTIFY_CHANNEL_PENDING, 4 bytes, rings."""
    for m in self._doorbells:
      if m.start <= address < m.end:
        return self._ring(m, address, value, nbytes)
    raise InvalidArgument(f"no doorbells are mapped at {address:#x}", where="doorbell")

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    self._look()
    return super().wait(done, timeout_s)

  def poll(self, fd: int, timeout_s: float) -> bool:
    """nvidia_poll: an event that was told of a file is told once."""
    file = self._file(fd)
    if file.kind not in ("ctl", "gpu"):
      raise Refused(errno.EPERM, f"{fd} is a file of UVM, which tells of nothing")
    self.wait(lambda: file.pending, timeout_s)
    with self.machine.lock:
      found, file.pending = file.pending, False
    return found

  def _look(self) -> None:
    """Ring for a client that has stored to the page itself."""
    for n, word in enumerate(self._rung):
      token = word[0]
      if token != _NO_TOKEN:
        with self.machine.lock:
          word[0] = _NO_TOKEN
          self.machine.gpus[n].doorbell(token)

  def _ring(self, mapped: Mapped, address: int, value: int, nbytes: int) -> None:
    context: Any = mapped.owner
    gpu, machine = context.usermode, self.machine
    if machine.watched and machine.injected.of("lost doorbell") is not None: return
    offset = context.offset + address - mapped.start
    if nbytes not in (4, 8) or offset % nbytes:
      raise InvalidArgument(f"a doorbell store of {nbytes} bytes at {address:#x}", where="doorbell")
    with machine.lock:
      machine.note_thread()
      if offset != NOTIFY:
        machine.doubt(f"GPU{gpu.index}: a store of {value:#x} to {offset:#x} of the usermode page, which rings nothing")
        return
      gpu.doorbell(value & 0xFFFF_FFFF)
      if machine.draws is not None:
        machine.rung()
      if machine.waiting:
        machine.changed.notify_all()
