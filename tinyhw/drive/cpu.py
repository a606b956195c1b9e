"""The host processor as a device: runs ELF objects made by the compiler through llvmlite's JIT linker.

A kernel is `void NAME(ptr buffer0, ..., i32 value0, ...)`, with every loop inside the function: its grid and block are
(1, 1, 1). Or it is `void NAME(ptr arguments, i32 first, i32 last, ptr scratch)`, which computes some of `grid[0]`
stretches: `arguments` points to 8 bytes for each buffer and value, `scratch` to as many bytes as the object's constant
`NAME.scratch` says. The stretches are shared among native threads (`pool`). Values that the kernel declares as other
types are widened by the compiler, never here. Execution is synchronous: a launch returns when the kernel has finished.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import mmap
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory
from tinyhw.core.host import choose
from tinyhw.core.locks import lock
from tinyhw.drive.base import Allocation, Dim3, Launch, Program, Runner, Runtime, free_bytes
from tinyhw.drive.pool import pool
from tinyhw.drive.pool import source as pool_source

_loaded = itertools.count()
LARGE = 4 << 20  # bytes from which on memory gets pages of its own
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
    function = self.function(len(buffers), len(values))
    arguments = [b.address for b in buffers]
    if None in arguments: raise InvalidArgument("a buffer was freed", where=self.name)
    if not wait:
      function(*arguments, *values)
      return None
    start = time.perf_counter()
    function(*arguments, *values)
    return time.perf_counter() - start


  def function(self, buffers: int, values: int) -> Any:
    """What calls the kernel with so many addresses and integers."""
    shape = buffers, values
    if (function := self._functions.get(shape)) is None:
      types = [ctypes.c_void_p] * buffers + [ctypes.c_int32] * values
      function = self._functions[shape] = ctypes.CFUNCTYPE(None, *types)(self._address)
    return function


class HostRunner(Runner):
  """Kernels of this processor with their functions at hand."""

  def __init__(self, launches: Sequence[Launch]) -> None:
    super().__init__(launches)
    self._plain = [(l.program.function(len(l.buffers), 0), l.buffers) for l in launches
                   if isinstance(l.program, HostProgram) and l.grid == l.block == (1, 1, 1)]
    self._all_plain = len(self._plain) == len(self.launches)

  def __call__(self, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None) -> None:
    addresses = [m.address for m in memory]
    if values is not None or not self._all_plain or None in addresses: return super().__call__(memory, values)
    for function, places in self._plain: function(*[addresses[k] for k in places])


class SharedProgram(Program):
  """A kernel in stretches. Memory for copies of operands is kept for the next launch."""

  def __init__(self, name: str, library: Any, scratch: int):
    self.name, self._library = name, library
    self._address: int = library[name]
    self._stride = -(-scratch // ALIGNMENT) * ALIGNMENT
    self._scratch: deque[tuple[Any, int]] = deque()
    self._alone = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(
      self._address)

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    if grid[1:] != (1, 1) or block != (1, 1, 1):
      raise InvalidArgument(f"a host kernel is cut along x alone, not grid {grid} and block {block}", where=self.name)
    arguments = [b.address for b in buffers]
    if None in arguments: raise InvalidArgument("a buffer was freed", where=self.name)
    packed = (ctypes.c_int64 * (len(buffers) + len(values)))(*(int(a or 0) for a in arguments), *map(int, values))
    start = time.perf_counter() if wait else 0.0
    threads = pool(compiled)
    scratch: tuple[Any, int] = (None, 0)
    if self._stride:
      try: scratch = self._scratch.pop()
      except IndexError:
        try: memory = bytearray(self._stride * threads.size + ALIGNMENT)
        except MemoryError:
          raise OutOfMemory(self.name, self._stride * threads.size, free_bytes(), hint="free tensors") from None
        begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        scratch = (memory, begin + -begin % ALIGNMENT)
    if threads.size == 1 or grid[0] == 1 or not threads.run(self._address, ctypes.addressof(packed), grid[0],
                                                            scratch[1], self._stride):
      self._alone(ctypes.addressof(packed), 0, grid[0], scratch[1])
    if self._stride: self._scratch.append(scratch)
    return time.perf_counter() - start if wait else None


@functools.cache
def _linker() -> Any:
  """LLVM's linker in this process."""
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
  # JITLink puts the sections of an object side by side; the older linker ends the process when they are far apart.
  return llvm.create_lljit_compiler(machine, use_jit_link=True)


@functools.cache
def _pool_library() -> Any:
  """The pool's functions. They stay for good: threads are in them."""
  builder = llvm.JITLibraryBuilder().add_ir(pool_source()).add_current_process()
  for name in ("run", "work", "stop"): builder.export_symbol(name)
  return builder.link(_linker(), "tinyhw.pool")


def compiled(source: str) -> dict[str, int]:
  """The addresses of the pool's functions."""
  library = _pool_library()
  return {name: library[name] for name in ("run", "work", "stop")}


class HostRuntime(Runtime):
  """The processor this process runs on. Threads may share it: a launch runs in its own, `lock` guards loading."""

  def __init__(self, name: str = "LLVM"):
    self.name = name
    self.lock = lock()

  def describe(self) -> str:
    host = choose(llvm.get_process_triple(), llvm.get_host_cpu_features())
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_host_cpu_name()} as {host.cpu} through LLVM {version}"

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    try: memory = self._large(nbytes) if nbytes >= LARGE else bytearray(nbytes + ALIGNMENT)
    except (MemoryError, OverflowError, OSError, ValueError):
      raise OutOfMemory(self.name, nbytes, free_bytes(), hint="free tensors that are no longer needed") from None
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    offset = -start % ALIGNMENT
    return Allocation(start + offset, nbytes, memoryview(memory)[offset:offset + nbytes])

  @staticmethod
  def _large(nbytes: int) -> mmap.mmap:
    """Pages of their own, large ones where the system has them: a first touch of each costs as much as filling it."""
    memory = mmap.mmap(-1, nbytes + ALIGNMENT)
    if hasattr(mmap, "MADV_HUGEPAGE"):
      with contextlib.suppress(OSError): memory.madvise(mmap.MADV_HUGEPAGE)  # it is only advice
    return memory

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
    builder = llvm.JITLibraryBuilder().add_object_img(binary).add_current_process().export_symbol(kernel)
    if shared := f"{kernel}.scratch".encode() in binary: builder.export_symbol(f"{kernel}.scratch")
    try: library = builder.link(_linker(), f"{kernel}.{next(_loaded)}")
    except RuntimeError as error:
      raise DeviceError(f"kernel {kernel!r} does not load: {error}", where=self.name) from None
    if not shared: return HostProgram(kernel, library)
    return SharedProgram(kernel, library, ctypes.c_int64.from_address(library[f"{kernel}.scratch"]).value)

  def runner(self, launches: Sequence[Launch]) -> Runner: return HostRunner(launches)

  def synchronize(self) -> None:
    return None
