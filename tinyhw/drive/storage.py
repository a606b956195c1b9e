"""Devices that hold data and run no kernels: a file (`DISK:path`), and memory of the host (`NPY`).

Copies go to and from every other device. A file is read and written in place and never mapped: where somebody makes it
shorter meanwhile, a read says so, and no access ends the process.
"""
from __future__ import annotations

import os
import stat
from pathlib import Path

from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.core.locks import lock
from tinyhw.drive.base import Allocation, Program, Runtime
from tinyhw.drive.python import PythonRuntime

PIECE = 1 << 30         # the kernel moves less than 2 GiB in one call


def no_kernels(name: str) -> InvalidArgument:
  """What a device without kernels says to who wants one."""
  return InvalidArgument("it holds data and runs no kernels", where=name,
                         hint="move the tensor to a device that computes first: .to('LLVM')")


class ArrayRuntime(PythonRuntime):
  """Memory of the host, as NumPy arrays."""

  def __init__(self, name: str = "NPY"):
    def refuse(binary: bytes, kernel: str) -> None: raise no_kernels(name)
    super().__init__(refuse, name)  # type: ignore[arg-type]  # it never returns

  def describe(self) -> str: return "memory of this process; holds data, runs no kernels"


class DiskRuntime(Runtime):
  """A file. Every allocation begins at its first byte, and has the file's bytes in it; so what is written to the file
  changes every tensor on it.

  The file is made, or made longer, when something is written; it is never made shorter. One that was not there, or had
  no bytes, when it was first opened is memory that nobody has written: reading makes it, or makes it longer, too. One
  that had bytes, but not those that are wanted, is another file than the reader believes, and stays as it is.
  Threads may share it: `lock` is held while it opens, and each read and write says its own place.
  """

  def __init__(self, path: str, name: str = "DISK"):
    self.name, self.path = name, Path(path) if path else None
    self.lock = lock()
    self._file: int | None = None
    self._writable = False
    self._new = False         # whether there were no bytes of anybody when it was opened

  def describe(self) -> str:
    if self.path is None: return "a file is a device: DISK:PATH; holds data, runs no kernels"
    try: size = self.path.stat().st_size
    except OSError: return f"{self.path}, not there yet"
    return f"{self.path}, {size:,} bytes{'' if os.access(self.path, os.W_OK) else ', read-only'}"

  def _failed(self, what: str, error: OSError) -> DeviceError:
    return DeviceError(f"cannot {what}: {error.strerror or error}", where=self.name,
                       hint="DISK:PATH names a file" if isinstance(error, IsADirectoryError) else None)

  def _open(self, write: bool) -> int:
    """The open file; made where it is to be written and there is none."""
    assert self.path is not None
    with self.lock:
      if self._file is not None and (self._writable or not write): return self._file
      flags = os.O_CLOEXEC | (os.O_RDWR | os.O_CREAT if write else os.O_RDONLY)
      try:
        made = os.open(self.path, flags, 0o666)
        self._new = self._new or not os.fstat(made).st_size and stat.S_ISREG(os.fstat(made).st_mode)
      except OSError as error: raise self._failed("be written" if write else "be read", error) from None
      if self._file is not None: os.close(self._file)
      self._file, self._writable = made, write
      return made

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    if self.path is None: raise InvalidArgument("no file is named", where=self.name, hint="write DISK:PATH")
    return Allocation(None, nbytes, self)

  def free(self, allocation: Allocation) -> None:
    allocation.handle = None

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    dst.memory(data.nbytes, self.name)
    self._write(data.cast("B"))

  def reserve(self, nbytes: int) -> None:
    """Have the file at least so long, with zeros at its end: some of it is about to be written."""
    file = self._open(write=True)
    try:
      if os.fstat(file).st_size < nbytes: os.truncate(file, nbytes)
    except OSError as error: raise self._failed("be written", error) from None

  def _write(self, data: memoryview) -> None:
    file, at = self._open(write=True), 0
    try:
      while at < data.nbytes: at += os.pwrite(file, data[at:at + PIECE], at)
    except OSError as error: raise self._failed("be written", error) from None

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    src.memory(dst.nbytes, self.name)
    out, at = dst.cast("B"), 0
    file = self._open(write=self.path is not None and not self.path.exists())
    if self._new and os.fstat(file).st_size < out.nbytes:
      self.reserve(out.nbytes)
      file = self._open(write=False)
    try:
      while at < out.nbytes:
        if not (got := os.preadv(file, [out[at:at + PIECE]], at)):
          raise DeviceError(f"{out.nbytes:,} bytes are wanted, but the file has {at:,}", where=self.name,
                            hint="the shape or the dtype is not that of the file, or it was never written")
        at += got
    except OSError as error: raise self._failed("be read", error) from None

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    """All allocations are the file's first bytes: nothing moves."""
    for a in (dst, src): a.memory(nbytes, self.name)

  def load(self, binary: bytes, kernel: str) -> Program: raise no_kernels(self.name)

  def synchronize(self) -> None: return None

  def close(self) -> None:
    with self.lock:
      if self._file is not None: os.close(self._file)
      self._file = None
