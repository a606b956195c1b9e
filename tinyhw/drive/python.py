"""The reference emulator as a device: a "binary" is a serialised UOp program, run by the emulator that is handed in.

The runtime knows nothing of UOps: it keeps memory as NumPy byte arrays and gives them to the emulator.
Execution is synchronous.
"""
from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.drive.base import Allocation, Dim3, Program, Runtime, free_bytes

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Execute = Callable[[Sequence[Bytes], Sequence[int | float], Dim3, Dim3], None]
"""Runs a loaded kernel: (memory of each buffer, values, grid in workgroups, block in threads)."""
Emulator = Callable[[bytes, str], Execute]
"""Makes a runnable kernel of (binary, kernel name)."""


class EmulatedProgram(Program):
  """One UOp program, prepared by the emulator."""

  def __init__(self, name: str, execute: Execute):
    self.name, self._execute = name, execute

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    start = time.perf_counter()
    self._execute([b.memory(0, self.name) for b in buffers], values, grid, block)
    return time.perf_counter() - start if wait else None


class PythonRuntime(Runtime):
  """A device without hardware: memory is NumPy arrays, programs run in `emulator`."""

  def __init__(self, emulator: Emulator, name: str = "PYTHON"):
    self.name, self._emulator = name, emulator

  def describe(self) -> str: return f"UOp emulator on NumPy {np.__version__}"

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    try: memory = np.zeros(nbytes, np.uint8)
    except (MemoryError, ValueError, OverflowError):
      raise OutOfMemory(self.name, nbytes, free_bytes(), hint="free tensors that are no longer needed") from None
    return Allocation(None, nbytes, memory)

  def borrow(self, address: int, nbytes: int) -> Allocation:
    raw = memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
    return Allocation(None, nbytes, np.frombuffer(raw, np.uint8))

  def free(self, allocation: Allocation) -> None:
    allocation.handle = None

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    dst.memory(data.nbytes, self.name)[:data.nbytes] = np.frombuffer(data.cast("B"), np.uint8)

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    dst.cast("B")[:] = src.memory(dst.nbytes, self.name)[:dst.nbytes].data

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    dst.memory(nbytes, self.name)[:nbytes] = src.memory(nbytes, self.name)[:nbytes]

  def load(self, binary: bytes, kernel: str) -> Program:
    return EmulatedProgram(kernel, self._emulator(binary, kernel))

  def synchronize(self) -> None:
    return None
