"""Memory that other processes may have by a file descriptor: memory of cuMemCreate, and pools.

Such memory is a file of its own, and not a part of its card's, of which it takes as much. Whoever gets a descriptor of
the file, over a socket or through a fork, maps it; it is there until nobody has it any more. The file's name says which
card it is of.
"""
from __future__ import annotations

import os
import re
import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from tinyhw.autogen import cuda
from tinyhw.core.mapped import mapped_file
from tinyhw.core.memory import Region
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import CudaMachine, Piece
from tinyhw.mock.cuda.memory.allocations import DEVICE, addresses_for
from tinyhw.mock.cuda.memory.pools import Pool, pool_of
from tinyhw.mock.cuda.memory.virtual import Physical
from tinyhw.mock.memory import page_align

_NAME: Final = re.compile(r"(?a)/memfd:CUDA(\d+)\.(memory|pool) \(deleted\)")
_PLACE: Final = struct.Struct("<8s2Q")  # of an allocation in a pool: a mark, where it begins, how many bytes it has
_MARK: Final = b"tinyhw\x00\x03"
_POSIX: Final = cuda.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


class Imported:
  """Memory of a file that another process has made, or this one."""

  def __init__(self, m: CudaMachine, fd: int, what: str, kind: int) -> None:
    if kind != _POSIX: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"handles of kind {kind}")
    try: name, self.size, self.fd = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd).st_size, os.dup(fd)
    except OSError as error: raise invalid(f"descriptor {fd}: {error}") from None
    found = _NAME.fullmatch(name)
    if found is None or found[2] != what or int(found[1]) >= len(m.gpus):
      self.close()
      raise invalid(f"descriptor {fd} ({name}) is no {what} of a card here")
    self.gpu = m.gpus[int(found[1])]
    self.u8: npt.NDArray[np.uint8] = np.frombuffer(mapped_file(self.fd, self.size), np.uint8)
    m.interprocess = True

  def close(self) -> None: self._close(self.fd)

  _close = staticmethod(os.close)  # when the interpreter ends, modules may go before the last file

  def __del__(self) -> None:
    if hasattr(self, "u8"): self.close()


def _told(m: CudaMachine, out: int, file: Region | Imported | None, kind: int, flags: int) -> None:
  """A descriptor of a file, for the program to hand on."""
  if file is None or kind != _POSIX or flags: raise invalid(f"no handle of kind {kind} was asked for, flags {flags:#x}")
  if not out: raise invalid("a pointer for a result is null")
  m.interprocess = True
  m.out(out, "i", os.dup(file.fd))


# ---- memory of cuMemCreate

@serves("cuMemExportToShareableHandle")
def mem_export(m: CudaMachine, out: int, handle: int, kind: int, flags: int) -> None:
  physical: Physical = m.find(handle, Physical, cuda.CUDA_ERROR_INVALID_VALUE)
  _told(m, out, physical.file, kind, flags)


@serves("cuMemImportFromShareableHandle")
def mem_import(m: CudaMachine, out: int, descriptor: int, kind: int) -> None:
  file = Imported(m, descriptor, "memory", kind)
  properties = cuda.CUmemAllocationProp_v1(type=cuda.CU_MEM_ALLOCATION_TYPE_PINNED, requestedHandleTypes=_POSIX)
  properties.location.type, properties.location.id = cuda.CU_MEM_LOCATION_TYPE_DEVICE, file.gpu.index
  physical = Physical(file.gpu, file.size, None, properties, file)
  physical.handle = m.new(physical)
  m.out(out, "Q", physical.handle)


# ---- pools

@serves("cuMemPoolExportToShareableHandle")
def pool_export(m: CudaMachine, out: int, handle: int, kind: int, flags: int) -> None:
  _told(m, out, pool_of(m, handle).file, kind, flags)


@serves("cuMemPoolImportFromShareableHandle")
def pool_import(m: CudaMachine, out: int, descriptor: int, kind: int, flags: int) -> None:
  if flags: raise invalid(f"flags {flags:#x}, which must be 0")
  file = Imported(m, descriptor, "pool", kind)
  pool = Pool(file.gpu, 0, file=file, imported=True)
  pool.handle = m.new(pool)
  m.out(out, "Q", pool.handle)


@serves("cuMemPoolExportPointer")
def pointer_export(m: CudaMachine, out: int, address: int) -> None:
  piece = m.pieces.get(address)
  if piece is None or piece.pool is None or piece.pool.file is None or piece.pool.imported:
    raise invalid(f"{address:#x} is not the start of memory of a pool that other processes may have")
  m.give(out, _PLACE.pack(_MARK, piece.offset, piece.size).ljust(64, b"\0"))


@serves("cuMemPoolImportPointer")
def pointer_import(m: CudaMachine, out: int, handle: int, data: int) -> None:
  pool, context = pool_of(m, handle), m.working()
  mark, offset, size = _PLACE.unpack(m.user.read(data, _PLACE.size))
  whole = page_align(size)
  if not pool.imported or pool.file is None or mark != _MARK or offset + whole > pool.file.size:
    raise invalid("the pool or the place is not one that another process has told of")
  address = addresses_for(m, whole)
  m.space.map(address, whole, pool.file, offset)
  m.space.used[address] = size, "memory of another process's pool"
  m.pieces[address] = Piece(address, size, DEVICE, pool.gpu, context, pool.file, offset, pool=pool)
  pool.took(size)
  m.out(out, "Q", address)


__all__ = ["Imported"]
