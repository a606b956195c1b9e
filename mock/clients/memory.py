"""A client's memory in another process, as its kernel would copy from and to it."""
from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.mock.clients.filter import LIBC
from tinyhw.mock.memory import Refused, UserMemory

_LONGEST: Final = 4096  # PATH_MAX


class _Piece(ctypes.Structure):
  """struct iovec."""
  _fields_ = (("base", ctypes.c_uint64), ("length", ctypes.c_uint64))


for _call in (LIBC.process_vm_readv, LIBC.process_vm_writev):
  _call.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)
  _call.restype = ctypes.c_ssize_t


class ClientMemory(UserMemory):
  """copy_from_user and copy_to_user of a process (process_vm_readv(2)): a bad address is EFAULT."""

  def __init__(self, pid: int) -> None:
    self._fd = -1
    self.pid, self._maps = pid, f"/proc/{pid}/maps"
    self._ours, self._theirs = _Piece(), _Piece()

  def _copy(self, function: Callable[..., int], room: ctypes.Array[Any], address: int) -> bool:
    """Whether all was copied."""
    ours, theirs, size = self._ours, self._theirs, len(room)
    if address + size > 1 << 64: return False
    ours.base, ours.length, theirs.base, theirs.length = ctypes.addressof(room), size, address, size
    return function(self.pid, ctypes.addressof(ours), 1, ctypes.addressof(theirs), 1, 0) == size

  def read(self, address: int, size: int) -> bytes:
    if not size: return b""
    room = ctypes.create_string_buffer(size)
    if not self._copy(LIBC.process_vm_readv, room, address):
      raise Refused(errno.EFAULT, f"{size} bytes at {address:#x} cannot be read")
    return room.raw

  def fill(self, address: int, room: ctypes.Array[ctypes.c_ubyte]) -> None:
    """As `read_into`, for an array of ctypes."""
    if not self._copy(LIBC.process_vm_readv, room, address):
      raise Refused(errno.EFAULT, f"{len(room)} bytes at {address:#x} cannot be read")

  def spill(self, address: int, room: ctypes.Array[ctypes.c_ubyte]) -> None:
    """Store an array in the client."""
    if not self._copy(LIBC.process_vm_writev, room, address):
      raise Refused(errno.EFAULT, f"{len(room)} bytes at {address:#x} cannot be written")

  def read_into(self, address: int, room: npt.NDArray[np.uint8]) -> None:
    """Bytes of the client, as many as there is room. Raises Refused unless all are there."""
    ours, theirs = self._ours, self._theirs
    ours.base, ours.length, theirs.base, theirs.length = room.ctypes.data, room.nbytes, address, room.nbytes
    done = LIBC.process_vm_readv(self.pid, ctypes.addressof(ours), 1, ctypes.addressof(theirs), 1, 0)
    if done != room.nbytes: raise Refused(errno.EFAULT, f"{room.nbytes} bytes at {address:#x} cannot be read")

  def gather(self, places: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(self.read(*place) for place in places)

  def write(self, address: int, data: bytes) -> None:
    if not data: return
    room = ctypes.create_string_buffer(bytes(data), len(data))
    if not self._copy(LIBC.process_vm_writev, room, address):
      raise Refused(errno.EFAULT, f"{len(data)} bytes at {address:#x} cannot be written")

  def text(self, address: int) -> bytes:
    """A string, which ends with a zero. Raises Refused where there is none, or it is no path any more."""
    found = b""
    while b"\0" not in found:
      if len(found) >= _LONGEST: raise Refused(errno.ENAMETOOLONG, "a path of more than 4096 bytes")
      at = address + len(found)
      found += self.read(at, 256 - at % 256)
    return found.partition(b"\0")[0]

  def close(self) -> None:
    """Nothing is held."""
