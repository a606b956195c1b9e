"""A device that is not there: kernels are compiled for it, and nothing runs.

It shows what a program's kernels are, and what compiling them takes, for any target: no memory is behind an allocation.
What goes in is dropped, and there is nothing to come out, which whoever asks is told.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.drive.base import Allocation, Dim3, Program, Runtime


class NullProgram(Program):
  """A kernel that does nothing."""

  def __init__(self, name: str):
    self.name = name

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    for b in buffers: b.memory(0, self.name)
    return 0.0 if wait else None


class NullRuntime(Runtime):
  """Takes everything and gives nothing. `target` is what kernels are compiled for, in words for a person."""

  def __init__(self, target: str, name: str = "NULL"):
    self.name, self.target = name, target

  def describe(self) -> str: return f"compiles for {self.target} and runs nothing"

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    return Allocation(None, nbytes, self)

  def free(self, allocation: Allocation) -> None:
    allocation.handle = None

  def is_peer(self, other: Runtime) -> bool: return isinstance(other, NullRuntime)

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    dst.memory(data.nbytes, self.name)

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    src.memory(dst.nbytes, self.name)
    raise DeviceError("nothing runs here, so there is no value to read", where=self.name,
                      hint="use a device that runs kernels, such as LLVM, for values")

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    for a in (dst, src): a.memory(nbytes, self.name)

  def load(self, binary: bytes, kernel: str) -> Program: return NullProgram(kernel)

  def synchronize(self) -> None: return None
