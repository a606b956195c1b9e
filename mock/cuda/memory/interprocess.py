"""Memory that processes share by handles (cuIpc*). Video memory is a file, so a handle says whose file it is and where
in it the memory lies; who opens it maps that. Events are two numbers in a file of their own.
"""
from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.autogen import cuda
from tinyhw.core.memory import PAGE
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
from tinyhw.mock.cuda.memory.allocations import addresses_for, release, settle
from tinyhw.mock.cuda.streams.streams import Event, Job
from tinyhw.mock.memory import page_align
from tinyhw.mock.nv.chip.jobs import at_once

_HANDLE: Final = struct.Struct("<8s2I5Q")  # a mark; process, file; its device and inode; offset, size, card
_MARK: Final = b"tinyhw\x00\x01"
_EVENT: Final = b"tinyhw\x00\x02"


class Opened:
  """Memory of another process here, and how often the handle was opened."""

  def __init__(self, handle: bytes, fd: int, offset: int, size: int) -> None:
    self.handle, self.size, self.count = handle, size, 1
    self.u8: npt.NDArray[np.uint8] = np.frombuffer(mmap.mmap(fd, size, offset=offset), np.uint8)


@serves("cuIpcGetMemHandle")
def ipc_get_mem_handle(m: CudaMachine, out: int, address: int) -> None:
  m.working()
  piece = m.pieces.get(address)
  if (piece is None or piece.gpu is None or piece.ends != "cuMemFree" or piece.managed or piece.pool is not None
      or piece.reserved is not None):
    raise invalid(f"{address:#x} is not the start of memory of cuMemAlloc")
  vram = piece.gpu.vram
  file = os.fstat(vram.fd)
  if not out: raise invalid("a pointer for a result is null")
  m.interprocess = True
  m.user.write(out, _HANDLE.pack(_MARK, os.getpid(), vram.fd, file.st_dev, file.st_ino, piece.offset, piece.size,
                                 piece.gpu.index).ljust(cuda.CU_IPC_HANDLE_SIZE, b"\0"))


@serves("cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2")
def ipc_open_mem_handle(m: CudaMachine, out: int, given: Any, flags: int) -> None:
  context, handle = m.working(), bytes(given)
  if flags != cuda.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: raise invalid(f"flags {flags:#x} of an opened handle")
  mark, pid, *_ = _HANDLE.unpack_from(handle)
  if mark != _MARK: raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "the handle is not one of cuIpcGetMemHandle")
  _of_another(pid)
  piece = next((p for p in m.pieces.values()
                if p.opened is not None and p.opened.handle == handle and p.context is context), None)
  if piece is not None and piece.opened is not None: piece.opened.count += 1
  else: piece = _mapped(m, context, handle)
  m.out(out, "Q", piece.address)


def _of_another(pid: int) -> None:
  """Raises Failed for a handle that this process made."""
  if pid == os.getpid(): raise Failed(cuda.CUDA_ERROR_INVALID_CONTEXT, "the handle is of this process")


def _file(handle: bytes) -> int:
  """The file that a handle tells of, opened anew. Raises Failed where the process has it no more."""
  _, pid, number, device, inode, offset, size, _ = _HANDLE.unpack_from(handle)
  _of_another(pid)
  try: fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
  except OSError as error:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"process {pid} has it no more: {error}") from None
  file = os.fstat(fd)
  if (file.st_dev, file.st_ino) != (device, inode) or offset + page_align(size) > file.st_size:
    os.close(fd)
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"process {pid} is another one by now")
  return fd


def _mapped(m: CudaMachine, context: Context, handle: bytes) -> Piece:
  """Memory that a handle of another process tells of, at addresses of this one."""
  *_, offset, size, card = _HANDLE.unpack_from(handle)
  whole = page_align(size)
  fd = _file(handle)
  try: opened = Opened(handle, fd, offset, whole)
  except OSError as error: raise Failed(cuda.CUDA_ERROR_MAP_FAILED, str(error)) from None
  finally: os.close(fd)
  m.interprocess = True
  gpu, address = m.gpus[card] if card < len(m.gpus) else context.gpu, addresses_for(m, whole)
  m.space.map(address, whole, opened)
  m.space.used[address] = size, "memory of another process"
  piece = m.pieces[address] = Piece(address, size, cuda.CU_MEMORYTYPE_DEVICE, gpu, context, opened, opened=opened,
                                    ends="cuIpcCloseMemHandle")
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


class SharedEvent:
  """An event that processes share, as two numbers in a file: how often it was recorded, and up to which record all has
  been done."""

  def __init__(self, fd: int) -> None:
    self.fd = fd
    self.numbers: npt.NDArray[np.uint64] = np.frombuffer(mmap.mmap(fd, PAGE), np.uint64, 2)

  def recorded(self) -> Callable[[], None]:
    """It is recorded; what is to be done when the stream gets there."""
    self.numbers[0] += np.uint64(1)
    number = self.numbers[0]

    def reached() -> None: self.numbers[1] = max(self.numbers[1], number)
    return reached

  def passed(self) -> Callable[[], bool]:
    """Whether all has been done up to the record that is the last one now."""
    number = self.numbers[0]
    return lambda: bool(self.numbers[1] >= number)

  def __del__(self) -> None: self._close(self.fd)

  _close = staticmethod(os.close)  # when the interpreter ends, modules may go before the last event


@serves("cuIpcGetEventHandle")
def ipc_get_event_handle(m: CudaMachine, out: int, handle: int) -> None:
  event: Event = m.find(handle, Event)
  if not event.flags & cuda.CU_EVENT_INTERPROCESS:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "the event was not created with CU_EVENT_INTERPROCESS")
  if not out: raise invalid("a pointer for a result is null")
  if event.shared is None:
    fd = os.memfd_create("CUDA event", os.MFD_CLOEXEC)
    os.ftruncate(fd, PAGE)
    event.shared = SharedEvent(fd)
    if event.job is not None: _again(event, event.job)
  file = os.fstat(event.shared.fd)
  m.interprocess = True
  m.user.write(out, _HANDLE.pack(_EVENT, os.getpid(), event.shared.fd, file.st_dev, file.st_ino, 0, PAGE, 0).ljust(
    cuda.CU_IPC_HANDLE_SIZE, b"\0"))


def _again(event: Event, job: Job) -> None:
  """An event that was recorded before anybody knew that others would ask for it."""
  assert event.shared is not None
  reached = event.shared.recorded()
  if job.done: reached()
  else: job.turns = at_once(reached)  # it has not begun: an event's is one turn


@serves("cuIpcOpenEventHandle")
def ipc_open_event_handle(m: CudaMachine, out: int, given: Any) -> None:
  context, handle = m.working(), bytes(given)
  if _HANDLE.unpack_from(handle)[0] != _EVENT:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "the handle is not one of cuIpcGetEventHandle")
  fd = _file(handle)
  event = Event(context, cuda.CU_EVENT_INTERPROCESS | cuda.CU_EVENT_DISABLE_TIMING)
  event.shared, event.handle, m.interprocess = SharedEvent(fd), m.new(event), True
  m.out(out, "Q", event.handle)
