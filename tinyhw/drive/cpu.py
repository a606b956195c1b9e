"""The host processor as a device: runs ELF objects made by the compiler through llvmlite's JIT linker.

A kernel is `void NAME(ptr buffer0, ..., i32 value0, ...)`, with every workgroup loop inside the function,
so its grid and block are both (1, 1, 1). Values that the kernel declares as other types are widened by the
compiler, never here. Execution is synchronous: a launch returns when the kernel has finished.
"""
from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory
from tinyhw.core.host import choose
from tinyhw.core.locks import lock
from tinyhw.drive.base import Allocation, Dim3, Program, Runtime, free_bytes

ALIGNMENT = 64  # a cache line, and the widest vector register of any host


class HostProgram(Program):
  """One function of a loaded object. Keeps the object's resources alive."""

  def __init__(self, name: str, library: Any):
    self.name, self._library = name, library
    self._address: int = library[name]
    self._functions: dict[tuple[int, int], Any] = {}

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    if grid != (1, 1, 1) or block != (1, 1, 1):
      raise InvalidArgument(f"a host kernel has one thread, not grid {grid} and block {block}", where=self.name)
    shape = (len(buffers), len(values))
    if (function := self._functions.get(shape)) is None:
      types = [ctypes.c_void_p] * shape[0] + [ctypes.c_int32] * shape[1]
      function = self._functions[shape] = ctypes.CFUNCTYPE(None, *types)(self._address)
    arguments = [b.address for b in buffers]
    if None in arguments: raise InvalidArgument("a buffer was freed", where=self.name)
    if not wait:
      function(*arguments, *values)
      return None
    start = time.perf_counter()
    function(*arguments, *values)
    return time.perf_counter() - start


class HostRuntime(Runtime):
  """The processor this process runs on. Threads may share it: a launch runs in its own, `lock` guards loading."""

  def __init__(self, name: str = "LLVM"):
    self.name = name
    self.lock = lock()
    self._jit: Any = None
    self._loaded = 0

  def describe(self) -> str:
    host = choose(llvm.get_process_triple(), llvm.get_host_cpu_features())
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_host_cpu_name()} as {host.cpu} through LLVM {version}"

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    try: memory = bytearray(nbytes + ALIGNMENT)
    except (MemoryError, OverflowError):
      raise OutOfMemory(self.name, nbytes, free_bytes(), hint="free tensors that are no longer needed") from None
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    offset = -start % ALIGNMENT
    return Allocation(start + offset, nbytes, memoryview(memory)[offset:offset + nbytes])

  def free(self, allocation: Allocation) -> None:
    allocation.handle, allocation.address = None, None

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    dst.memory(data.nbytes, self.name)[:data.nbytes] = data.cast("B")

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    dst.cast("B")[:] = src.memory(dst.nbytes, self.name)[:dst.nbytes]

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    dst.memory(nbytes, self.name)[:nbytes] = src.memory(nbytes, self.name)[:nbytes]

  def load(self, binary: bytes, kernel: str) -> Program:
    with self.lock: return self._load(binary, kernel)

  def _load(self, binary: bytes, kernel: str) -> Program:
    if self._jit is None:
      llvm.initialize_native_target()
      llvm.initialize_native_asmprinter()
      machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
      # JITLink puts the sections of an object side by side; the older linker ends the process when they are far apart.
      self._jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
    builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process().export_symbol(kernel)
    self._loaded += 1
    try: library = builder.link(self._jit, f"{kernel}.{self._loaded}")
    except RuntimeError as error:
      raise DeviceError(f"kernel {kernel!r} does not load: {error}", where=self.name) from None
    return HostProgram(kernel, library)

  def synchronize(self) -> None:
    return None
