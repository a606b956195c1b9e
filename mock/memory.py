"""Memory as the kernel sees it: the client's address space (safe copies, mappings) and buffer objects of the GPUs.

The client is this process for now, but nothing here dereferences its addresses: copies go through system calls that
answer EFAULT for a bad pointer, and shared memory is mapped from file descriptors, as for a client in another process.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tinyhw.autogen import kfd
from tinyhw.core.mapped import map_memory, unmap_memory
from tinyhw.core.memory import PAGE, U8, Access, AddressSpace, HostRegion, Region
from tinyhw.core.port import Protection

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.pwrite.argtypes = _LIBC.pread.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_longlong)
_LIBC.pwrite.restype = _LIBC.pread.restype = ctypes.c_ssize_t
_LIBC.pwritev.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong)
_LIBC.pwritev.restype = ctypes.c_ssize_t
_END: Final = 1 << 64  # of all addresses
_PIECES: Final = 1024  # of one call (IOV_MAX)

UNCACHED: Final = (
  kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT
  | kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT
  | kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED
)


class _Piece(ctypes.Structure):
  """struct iovec."""
  _fields_ = (("base", ctypes.c_uint64), ("length", ctypes.c_uint64))


class Refused(OSError):
  """The kernel's refusal of a call: an errno, with the reason that only the mock tells."""

  def __init__(self, code: int, why: str) -> None:
    super().__init__(code, why)
    self.why = why


def page_align(size: int) -> int:
  return -(-size // PAGE) * PAGE


class UserMemory:
  """copy_from_user and copy_to_user of one client process: a bad address is EFAULT, never a signal."""

  _maps = "/proc/self/maps"

  def __init__(self) -> None:
    self._fd = -1
    self._fd = os.memfd_create("copy_user", os.MFD_CLOEXEC)

  def read(self, address: int, size: int) -> bytes:
    """Bytes of the client."""
    if not size:
      return b""
    if address + size > _END: raise Refused(errno.EFAULT, f"{size} bytes at {address:#x} cannot be read")
    if _LIBC.pwrite(self._fd, address, size, 0) != size:
      raise Refused(errno.EFAULT, f"{size} bytes at {address:#x} cannot be read")
    return os.pread(self._fd, size, 0)

  def gather(self, places: Sequence[tuple[int, int]]) -> bytes:
    """Bytes of the client from places (address, size), one behind the other."""
    total = sum(size for _, size in places)
    for at in range(0, len(places), _PIECES):
      part = places[at:at + _PIECES]
      pieces = (_Piece * len(part))(*(_Piece(*place) for place in part))
      before, size = sum(s for _, s in places[:at]), sum(s for _, s in part)
      if size and _LIBC.pwritev(self._fd, pieces, len(part), before) != size:
        for address, length in part:  # which one it was
          self.read(address, length)
    return os.pread(self._fd, total, 0)

  def write(self, address: int, data: bytes) -> None:
    """Store bytes in the client."""
    if not data:
      return
    if address + len(data) > _END: raise Refused(errno.EFAULT, f"{len(data)} bytes at {address:#x} cannot be written")
    os.pwrite(self._fd, data, 0)
    if _LIBC.pread(self._fd, address, len(data), 0) != len(data):
      raise Refused(errno.EFAULT, f"{len(data)} bytes at {address:#x} cannot be written")

  def mapped(self, address: int, size: int, write: bool = False) -> bool:
    """Whether each page of the range can be read (and written) by the client: what get_user_pages asks."""
    at, end = address & ~(PAGE - 1), address + size
    with open(self._maps, "rb") as ranges:
      for line in ranges:
        where, permissions = line.split(maxsplit=2)[:2]
        lo, hi = (int(word, 16) for word in where.split(b"-"))
        if lo <= at < hi:
          if permissions[:1] != b"r" or write and permissions[1:2] != b"w":
            return False
          at = hi
        if at >= end:
          return True
    return False

  def close(self) -> None:
    if self._fd >= 0:
      os.close(self._fd)
    self._fd = -1

  def __del__(self) -> None:
    self.close()


def reserve_memory(size: int, align: int) -> int:
  """Addresses without memory behind them, aligned."""
  size = page_align(size)
  at = map_memory(-1, size + align, 0, None, Protection.NONE)
  start = -(-at // align) * align
  if start > at:
    unmap_memory(at, start - at)
  if tail := at + align - start:
    unmap_memory(start + size, tail)
  return start


def blank_memory(address: int, length: int) -> None:
  """Private zero pages in the place of what is mapped there."""
  map_memory(-1, length, 0, address, int(Protection.READ | Protection.WRITE))


def spans(space: AddressSpace, address: int, size: int, access: int = Access.READ) -> list[U8]:
  """Views of a range of GPU memory, one for each mapping that it crosses. Raises PageFault first."""
  views, at = [], address
  while at < address + size:
    mapping = space.find(at)
    take = address + size - at if mapping is None else min(mapping.end, address + size) - at
    views.append(space.view(at, take, access))
    at += take
  return views


@dataclass(eq=False)
class Extent:
  """The memory of one allocation: free again when the last buffer or dma-buf that holds it goes. `counted` is the id of
  the APU whose video memory it counts as while it is the system's, 0 of none."""

  holders: int = 1
  counted: int = 0


@dataclass(eq=False)
class BufferObject:
  """A buffer object (kgd_mem with its bo): `size` bytes of `backing` at `offset`, to be mapped at `va` on GPUs.

  `kind` is "vram", "gtt", "userptr", "doorbell" or "mmio". `mapped` holds the ids of the GPUs that map it, `queues`
  counts, by GPU, the queues that hold it (amdgpu_bo_va.queue_refcount). `twice` marks the double mapping of old AQL
  rings, `gone` user memory that the client has unmapped, `imported` what came through a dma-buf.
  """

  handle: int
  gpu_id: int
  kind: str
  va: int
  size: int
  flags: int
  backing: Region | HostRegion
  offset: int
  mmap_offset: int
  access: int
  twice: bool = False
  gone: bool = False
  imported: bool = False
  mapped: set[int] = field(default_factory=set)
  queues: dict[int, int] = field(default_factory=dict)
  extent: Extent = field(default_factory=Extent)

  @property
  def uncached(self) -> bool:
    """Whether its pages are MTYPE UC (gmc_v11_0_get_vm_pte), or no memory at all."""
    return bool(self.flags & UNCACHED) or self.kind in ("doorbell", "mmio")

  def __repr__(self) -> str:
    return f"{self.kind} buffer {self.handle:#x} of {self.size:#x} bytes at {self.va:#x}"


def access_of(writable: bool, executable: bool) -> int:
  """Page-table permissions (amdgpu_amdkfd get_pte_flags): always readable; atomics go where writes go."""
  return Access.READ | (Access.WRITE | Access.ATOMIC if writable else 0) | (Access.EXECUTE if executable else 0)
