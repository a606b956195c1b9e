"""Memory that processes share by handles (cuIpc*). Video memory is a file, so a handle says whose file it is and where
in it the memory lies; who opens it maps that. Events are not shared: what a stream waits for is this process's own.
"""
from __future__ import annotations

import mmap
import os
import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
from tinyhw.mock.cuda.memory import addresses_for, release, settle
from tinyhw.mock.cuda.streams import Event
from tinyhw.mock.memory import page_align

_HANDLE: Final = struct.Struct("<8s2I5Q")  # a mark; process, file; its device and inode; offset, size, card
_MARK: Final = b"tinyhw\x00\x01"


class Opened:
  """Memory of another process here, and how often the handle was opened."""

  def __init__(self, handle: bytes, fd: int, offset: int, size: int) -> None:
    self.handle, self.size, self.count = handle, size, 1
    self.u8: npt.NDArray[np.uint8] = np.frombuffer(mmap.mmap(fd, size, offset=offset), np.uint8)


@serves("cuIpcGetMemHandle")
def ipc_get_mem_handle(m: CudaMachine, out: int, address: int) -> None:
  m.working()
  piece = m.pieces.get(address)
  if (piece is None or piece.gpu is None or piece.kind != cuda.CU_MEMORYTYPE_DEVICE or piece.opaque or piece.mapped
      or piece.pool is not None or piece.reserved is not None or piece.opened is not None):
    raise invalid(f"{address:#x} is not the start of memory of cuMemAlloc")
  vram = piece.gpu.vram
  file = os.fstat(vram.fd)
  if not out: raise invalid("a pointer for a result is null")
  m.user.write(out, _HANDLE.pack(_MARK, os.getpid(), vram.fd, file.st_dev, file.st_ino, piece.offset, piece.size,
                                 piece.gpu.index).ljust(cuda.CU_IPC_HANDLE_SIZE, b"\0"))


@serves("cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2")
def ipc_open_mem_handle(m: CudaMachine, out: int, given: Any, flags: int) -> None:
  context, handle = m.working(), bytes(given)
  if flags != cuda.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: raise invalid(f"flags {flags:#x} of an opened handle")
  mark, pid, *_ = _HANDLE.unpack_from(handle)
  if mark != _MARK: raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "the handle is not one of cuIpcGetMemHandle")
  if pid == os.getpid(): raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "the handle is of this process")
  piece = next((p for p in m.pieces.values()
                if p.opened is not None and p.opened.handle == handle and p.context is context), None)
  if piece is not None and piece.opened is not None: piece.opened.count += 1
  else: piece = _mapped(m, context, handle)
  m.out(out, "Q", piece.address)


def _mapped(m: CudaMachine, context: Context, handle: bytes) -> Piece:
  """Memory that a handle of another process tells of, at addresses of this one."""
  _, pid, number, device, inode, offset, size, card = _HANDLE.unpack_from(handle)
  whole = page_align(size)
  try: fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
  except OSError as error:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"process {pid} has not the memory any more: {error}") from None
  try:
    file = os.fstat(fd)
    if (file.st_dev, file.st_ino) != (device, inode) or offset + whole > file.st_size:
      raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"process {pid} is another one by now")
    opened = Opened(handle, fd, offset, whole)
  except OSError as error: raise Failed(cuda.CUDA_ERROR_MAP_FAILED, str(error)) from None
  finally: os.close(fd)
  gpu, address = m.gpus[card] if card < len(m.gpus) else context.gpu, addresses_for(m, whole)
  m.space.map(address, whole, opened)
  m.space.used[address] = size, "memory of another process"
  piece = m.pieces[address] = Piece(address, size, cuda.CU_MEMORYTYPE_DEVICE, gpu, context, opened, opened=opened)
  return piece


@serves("cuIpcCloseMemHandle")
def ipc_close_mem_handle(m: CudaMachine, address: int) -> None:
  m.working()
  piece = m.pieces.get(address)
  if piece is None or piece.opened is None: raise invalid(f"{address:#x} is not memory of an opened handle")
  piece.opened.count -= 1
  if piece.opened.count: return
  if piece.context is not None: settle(m, piece.context)
  release(m, piece)


@serves("cuIpcGetEventHandle")
def ipc_get_event_handle(m: CudaMachine, out: int, handle: int) -> None:
  event: Event = m.find(handle, Event)
  if not event.flags & cuda.CU_EVENT_INTERPROCESS:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "the event was not created with CU_EVENT_INTERPROCESS")
  raise _unshared()


@serves("cuIpcOpenEventHandle")
def ipc_open_event_handle(m: CudaMachine, out: int, given: Any) -> None:
  raise _unshared()


def _unshared() -> Failed:
  return Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "each process has mock cards of its own: their events are not shared")
