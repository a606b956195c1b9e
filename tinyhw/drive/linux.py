"""The port of a real Linux machine: system calls, mapped memory, doorbells.

Implements `tinyhw.core.port.Port` with the C library. Nothing in it knows a vendor or a device file.
"""
from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from tinyhw.core.mapped import Mappings
from tinyhw.core.port import Protection

_MAP_FIXED = 0x10        # asm-generic/mman-common.h; Python's mmap module does not name these two
_MAP_NORESERVE = 0x4000
_MAP_FAILED = ctypes.c_void_p(-1).value
_KMSG = "/dev/kmsg"
_PART, _LEAST_S, _MOST_S = 16, 20e-6, 1e-3  # a sleep takes such a part of what was waited already, in these bounds


def _libc() -> ctypes.CDLL:
  libc = ctypes.CDLL(None, use_errno=True)
  libc.mmap.restype, libc.munmap.restype = ctypes.c_void_p, ctypes.c_int
  libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
  libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
  return libc


def _system_error(what: str) -> OSError:
  number = ctypes.get_errno()
  return OSError(number, f"{what}: {os.strerror(number)}")


class LinuxPort:
  """The operating system of this machine.

  `spin_s` is how long `wait` polls without giving up the processor; after it, it sleeps a sixteenth of what it has
  waited, up to 1 ms.
  """

  def __init__(self, spin_s: float = 200e-6) -> None:
    self._libc = _libc()
    self._mappings = Mappings(self._unmap, self._blank)
    self._doorbells: dict[int, tuple[memoryview, ctypes.c_uint64 | ctypes.c_uint32]] = {}
    self._spin_s = spin_s
    self._fence = threading.Lock()

  def pid(self) -> int:
    """The calling process."""
    return os.getpid()

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    return os.open(path, flags | os.O_CLOEXEC)

  def close(self, fd: int) -> None:
    os.close(fd)

  def read(self, path: str) -> bytes:
    """A whole file of sysfs; for the kernel's log, the records that it holds now."""
    if path == _KMSG: return self._read_log()
    with open(path, "rb", buffering=0) as f: return f.read()

  def _read_log(self) -> bytes:
    """/dev/kmsg gives one record a read, and would block at the end."""
    fd, records = os.open(_KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), []
    try:
      while True:
        try: records.append(os.read(fd, 8192))
        except BrokenPipeError: continue  # records were overwritten while we read; the next read goes on after them
        except BlockingIOError: return b"".join(records)
    finally: os.close(fd)

  def listdir(self, path: str) -> list[str]:
    return sorted(os.listdir(path))

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    """Raises OSError with the kernel's errno. Calls interrupted by a signal are made again."""
    while True:
      try: return int(fcntl.ioctl(fd, request, argument, True))
      except InterruptedError: continue

  def reserve(self, size: int, align: int = 4096) -> int:
    """Address space without memory behind it, to be filled by `mmap` at fixed addresses."""
    span = size + (align if align > mmap.PAGESIZE else 0)
    base = self._map(None, span, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE, -1, 0)
    start = -(-base // align) * align
    if start > base: self._unmap(base, start - base)
    if base + span > start + size: self._unmap(start + size, base + span - start - size)
    self._mappings.add(start, size, usable=False)
    return start

  def mmap(self, fd: int, length: int, offset: int = 0, address: int | None = None,
           protection: Protection = Protection.READ | Protection.WRITE) -> int:
    """Map a file, or anonymous memory for fd -1; exactly at `address` when one is given (it replaces what was there).
    """
    flags = mmap.MAP_SHARED | (mmap.MAP_ANONYMOUS if fd < 0 else 0) | (_MAP_FIXED if address is not None else 0)
    at = self._map(address, length, int(protection), flags, fd, offset)
    self._mappings.add(at, length, bool(protection))
    return at

  def _map(self, address: int | None, length: int, protection: int, flags: int, fd: int, offset: int) -> int:
    signed = offset - (1 << 64) if offset >> 63 else offset  # KFD uses the top bits of the offset; off_t is signed
    where = self._libc.mmap(address, length, protection, flags, fd, signed)
    if where is None or where == _MAP_FAILED:
      raise _system_error(f"mmap of {length} bytes of fd {fd} at offset {offset:#x}")
    return int(where)

  def _unmap(self, address: int, length: int) -> None:
    if self._libc.munmap(address, length): raise _system_error(f"munmap of {length} bytes at {address:#x}")

  def _blank(self, address: int, length: int) -> None:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE | _MAP_FIXED
    self._map(address, length, int(Protection.READ | Protection.WRITE), flags, -1, 0)

  def munmap(self, address: int, length: int) -> None:
    """Unmap whole pages. Where views of them live, they keep pages of zeros (`tinyhw.core.mapped`)."""
    for door in [d for d in self._doorbells if address <= d < address + length]: del self._doorbells[door]
    self._mappings.unmap(address, length)

  def memory(self, address: int, length: int) -> memoryview:
    """The bytes of mapped memory, writable. Raises InvalidArgument unless this port mapped all of it."""
    return self._mappings.view(address, length)

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    """One store. What was stored before it is visible to the device before it: x86-64 keeps the order of stores."""
    cell = self._doorbells.get(address)
    if cell is None:
      view = self._mappings.view(address, nbytes)
      kind = ctypes.c_uint64 if nbytes == 8 else ctypes.c_uint32
      cell = self._doorbells[address] = view, kind.from_buffer(view)
    cell[1].value = value

  def fence(self) -> None:
    """Taking a lock is a locked instruction, and such a one empties the processor's write-combining buffers (Intel's
    manual, volume 3, "Buffering of Write Combining Memory Locations"; AMD's, volume 2, "Write-Combining Buffers").
    One that another thread holds is only looked at: a new one is taken then."""
    if self._fence.acquire(False): self._fence.release()
    else: threading.Lock().acquire()

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    """Whether `done` became true within the time: spins first, then sleeps."""
    start = time.perf_counter()
    while not done():
      waited = time.perf_counter() - start
      if waited > timeout_s: return done()
      if waited > self._spin_s:
        time.sleep(min(max(waited / _PART, _LEAST_S), _MOST_S, max(timeout_s - waited, 0.0)))
    return True

  def poll(self, fd: int, timeout_s: float) -> bool:
    """See Port; POLLIN or POLLPRI."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN | select.POLLPRI)
    return any(told & (select.POLLIN | select.POLLPRI) for _, told in waiting.poll(max(int(timeout_s * 1000), 0)))

  def now_ns(self) -> int:
    return time.monotonic_ns()
