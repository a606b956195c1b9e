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
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm

from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory
from tinyhw.core.host import choose
from tinyhw.core.locks import lock
from tinyhw.drive.base import Allocation, Dim3, Launch, Program, Runner, Runtime, free_bytes
from tinyhw.drive.batch import MOST, LaunchRow, batch
from tinyhw.drive.batch import source as batch_source
from tinyhw.drive.pool import pool
from tinyhw.drive.pool import source as pool_source

_loaded = itertools.count()
_once = lock()  # held while functions of our own are made
LARGE = 4 << 20  # bytes from which on memory gets pages of its own
ALIGNMENT = 64  # a cache line, and the widest vector register of any host


class HostProgram(Program):
  """One function of a loaded object. Keeps the object's resources alive."""

  def __init__(self, name: str, library: Any):
    self.name, self._library = name, library
    self.address: int = library[name]
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
      function = self._functions[shape] = ctypes.CFUNCTYPE(None, *types)(self.address)
    return function


class SharedProgram(Program):
  """A kernel in stretches. Memory for copies of operands is kept for the next launch."""

  def __init__(self, name: str, library: Any, scratch: int):
    self.name, self._library = name, library
    self.address: int = library[name]
    self.stride = -(-scratch // ALIGNMENT) * ALIGNMENT
    self._scratch: deque[Scratch] = deque()
    self._alone = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)(
      self.address)

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    self.check(grid, block)
    arguments = [b.address for b in buffers]
    if None in arguments: raise InvalidArgument("a buffer was freed", where=self.name)
    packed = (ctypes.c_int64 * (len(buffers) + len(values)))(*(int(a or 0) for a in arguments), *map(int, values))
    start = time.perf_counter() if wait else 0.0
    threads = pool(compiled)
    scratch: Scratch = (None, 0)
    if self.stride:
      try: scratch = self._scratch.pop()
      except IndexError: scratch = scratch_memory(self.name, self.stride * threads.size)
    if threads.size == 1 or grid[0] == 1 or not threads.run(self.address, ctypes.addressof(packed), grid[0],
                                                            scratch[1], self.stride):
      self._alone(ctypes.addressof(packed), 0, grid[0], scratch[1])
    if self.stride: self._scratch.append(scratch)
    return time.perf_counter() - start if wait else None

  def check(self, grid: Dim3, block: Dim3) -> None:
    """Refuse a grid that is not of stretches alone."""
    if grid[1:] != (1, 1) or block != (1, 1, 1):
      raise InvalidArgument(f"a host kernel is cut along x alone, not grid {grid} and block {block}", where=self.name)


Scratch = tuple[object, int]
"""Memory with its first aligned address."""


def scratch_memory(what: str, nbytes: int) -> Scratch:
  """Memory for copies of operands."""
  try: memory = bytearray(nbytes + ALIGNMENT)
  except MemoryError: raise OutOfMemory(what, nbytes, free_bytes(), hint="free tensors") from None
  begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
  return memory, begin + -begin % ALIGNMENT


class HostRunner(Runner):
  """Kernels of this processor, all in one call of native code (`batch`)."""

  def __init__(self, launches: Sequence[Launch]) -> None:
    super().__init__(launches)
    self._all: Callable[..., int] | None = None
    self._possible = True

  def prepared(self, memory: Sequence[Allocation | None], changing: Sequence[int]) -> Callable[..., int] | None:
    return self._made(memory, changing, [()] * len(self.launches))

  def __call__(self, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
               grids: Sequence[Dim3] | None = None) -> None:
    # Kernels of processors have loops where a GPU's grid would change.
    if grids is not None: return super().__call__(memory, values, grids)
    given = values or [()] * len(self.launches)
    if self._all is None and self._possible:
      places, n = list[Sequence[int]](), len(memory)
      for more in given:
        places.append(range(n, n + len(more)))
        n += len(more)
      self._all = self._made([None] * len(memory), range(n), places)
      self._possible = self._all is not None
    addresses = [m.address for m in memory]
    if self._all is None or None in addresses: return super().__call__(memory, values)
    self._all(*addresses, *[v for more in given for v in more])
    return None

  def _made(self, memory: Sequence[Allocation | None], changing: Sequence[int],
            values: Sequence[Sequence[int]]) -> Callable[..., int] | None:
    """What launches all of it over words that are the addresses of memory, then values, whose places are given for
    each launch; None where native code cannot do it."""
    programs = [l.program for l in self.launches]
    stride = max((p.stride for p in programs if isinstance(p, SharedProgram)), default=-1)
    threads = pool(compiled) if stride >= 0 else None
    scratch: Scratch = (None, 0) if threads is None else scratch_memory("kernels", stride * threads.size)
    rows = []
    for l, places in zip(self.launches, values):
      words, program = (*l.buffers, *places), l.program
      if isinstance(program, SharedProgram):
        program.check(l.grid, l.block)
        assert threads is not None
        piece = threads.piece(l.grid[0]) if threads.size > 1 and l.grid[0] > 1 else 0
        rows.append(LaunchRow(program.address, words, l.grid[0], piece, scratch[1], stride))
      elif isinstance(program, HostProgram) and len(words) <= MOST and l.grid == l.block == (1, 1, 1):
        rows.append(LaunchRow(program.address, words))
      else: return None
    known = [(m and m.address) or 0 for m in memory] + [0] * sum(map(len, values))
    return batch(_batch_code(), rows, known, changing, None if threads is None else threads.entry,
                 (programs, scratch, threads))


@functools.cache
def _target() -> Any:
  """LLVM's target for this process."""
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  return llvm.Target.from_default_triple()


@functools.cache
def _linker() -> Any:
  """LLVM's linker in this process."""
  # JITLink puts the sections of an object side by side; the older linker ends the process when they are far apart.
  return llvm.create_lljit_compiler(_target().create_target_machine(opt=2), use_jit_link=True)


def _library(source: str, name: str, *functions: str) -> Any:
  """Functions of our own from LLVM's text. They are short and call others: LLVM's optimizer would take ten times as
  long as it takes to translate them."""
  machine = _target().create_target_machine(opt=0, reloc="pic", codemodel="default")
  code = machine.emit_object(llvm.parse_assembly(source, llvm.create_context()))
  builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
  for function in functions: builder.export_symbol(function)
  return builder.link(_linker(), f"tinyhw.{name}")


@functools.cache
def _pool_library() -> Any:
  """The pool's functions. They stay for good: threads are in them."""
  return _library(pool_source(), "pool", "run", "work", "stop")


def compiled(source: str) -> dict[str, int]:
  """The addresses of the pool's functions."""
  with _once: library = _pool_library()
  return {name: library[name] for name in ("run", "work", "stop")}


@functools.cache
def _batch_library() -> Any: return _library(batch_source(), "batch", "call")


def _batch_code() -> int:
  """The address of what `batch` makes functions of."""
  with _once: return int(_batch_library()["call"])


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

  def borrow(self, address: int, nbytes: int) -> Allocation:
    return Allocation(address, nbytes, memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B"))

  @staticmethod
  def _large(nbytes: int) -> mmap.mmap:
    """Pages of their own, large ones where the system has them: a first touch of each costs as much as filling it, and
    to read gigabytes a second is to look many of them up. (Of memory that is shared with forked processes few systems
    have large ones, and a child's changes are its own.)"""
    memory = mmap.mmap(-1, nbytes + ALIGNMENT, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
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
