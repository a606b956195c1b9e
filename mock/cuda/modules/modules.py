"""Modules of PTX, their kernels and variables."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.lazy import cached_property
from tinyhw.emulator.ptx.module.targets import VERSION
from tinyhw.mock.cuda.calls import Failed, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
from tinyhw.mock.cuda.memory import allocations
from tinyhw.mock.cuda.modules import devicelib
from tinyhw.mock.cuda.modules.images import fits, ptx_of

if TYPE_CHECKING:
  from tinyhw.mock.cuda.streams.launches import Shape
  from tinyhw.mock.cuda.streams.stepwise import Steps


MANAGED: Final = re.compile(r"\.attribute\s*\(\s*\.managed\b")  # a variable that the host reaches, too
PENDING: Final = 1 << 14  # launches by kernels of a grid, at most


@dataclass(eq=False)
class Module:
  """A loaded module: `linked` by the emulator, its variables in a piece of memory."""

  context: Context
  text: str
  linked: Any
  piece: Piece | None
  handle: int = 0
  queue: Piece | None = None  # what its kernels launch
  busy: object = None  # the launch of which kernels may launch others, until those have ended
  programs: dict[str, Any] = field(default_factory=dict)
  functions: dict[str, Function] = field(default_factory=dict)

  @property
  def base(self) -> int:
    return 0 if self.piece is None else self.piece.address

  def program(self, name: str) -> Any:
    """A kernel's code."""
    from tinyhw.emulator.ptx.program import Program
    if name not in self.programs:
      self.programs[name] = Program(self.linked, name, self.base)
    return self.programs[name]


@dataclass(eq=False)
class Function:
  """A kernel of a module."""

  module: Module
  name: str
  handle: int = 0
  attributes: dict[int, int] = field(default_factory=dict)
  shapes: Kept[tuple[Any, ...], Shape] = field(default_factory=lambda: Kept(64))  # sizes that launches had and may have
  steps: Steps | None = None  # what calls have said of its next launch

  @property
  def context(self) -> Context:
    return self.module.context

  @cached_property
  def program(self) -> Any:
    """Its code."""
    return self.module.program(self.name)

  @cached_property
  def params(self) -> list[tuple[int, int]]:
    """(offset, size) of each parameter."""
    return [*self.module.linked.kernel(self.name).params]

  @cached_property
  def params_size(self) -> int:
    """Bytes of all parameters."""
    return max((offset + size for offset, size in self.params), default=0)

  @cached_property
  def packed(self) -> bool:
    """Whether the parameters lie close together, in order."""
    return [offset for offset, _ in self.params] == [
      *accumulate((size for _, size in self.params[:-1]), initial=0)][:len(self.params)]

  @property
  def dynamic_limit(self) -> int:
    """Bytes of dynamic shared memory that a launch may ask for."""
    usual = (48 << 10) - int(self.program.shared_size)
    return max(self.attributes.get(cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0), usual)


@dataclass(frozen=True)
class Log:
  """Where a program wants errors told: an address and its size."""

  address: int
  size: int

  def tell(self, m: CudaMachine, text: str) -> None:
    """As much as there is room for, and a zero."""
    if self.address and self.size: m.user.write(self.address, text.encode()[:self.size - 1] + b"\0")


def load(m: CudaMachine, context: Context, text: str, log: Log | None = None) -> Module:
  """Compile a text and lay its variables out."""
  from tinyhw.emulator.ptx.module.link import link_text
  try:
    text = devicelib.completed(text)
    linked = link_text(text.encode())
  except Error as error:
    if log is not None: log.tell(m, str(error))
    code = cuda.CUDA_ERROR_INVALID_PTX if isinstance(error, DecodeError) else cuda.CUDA_ERROR_NOT_SUPPORTED
    if isinstance(error, Unsupported) and error.kind == VERSION: code = cuda.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    raise Failed(code, str(error)) from None
  major, minor = context.gpu.card.capability
  if not fits(linked.target[0], context.gpu.card):
    raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU,
                 f"PTX for {linked.target[0]}, and the device is sm_{major}{minor}")
  make = allocations.managed if MANAGED.search(text) else allocations.allocate
  piece = make(m, context, linked.size) if linked.size else None
  module = Module(context, text, linked, piece)
  if piece is not None:
    piece.ends = ""
    functions: dict[str, int] = {}
    if linked.fixups and linked.lines:
      functions = module.program(next(iter(linked.lines))).functions
    m.space.write(piece.address, linked.bytes_at(piece.address, functions))
    if devicelib.HEAP in linked.offsets: _heap(m, module)
    if devicelib.LAUNCHES in linked.offsets: _queue(m, module)
  module.handle = m.new(module)
  return module


def share(m: CudaMachine, module: Module, first: Module, names: Collection[str]) -> None:
  """Have these variables of a module, before it runs, where another card's module of the same text has them."""
  places = {n: first.base + first.linked.offsets[n] - module.base for n in names if n in module.linked.offsets}
  module.linked = module.linked.moved({**module.linked.offsets, **places})
  module.programs.clear()
  for offset, size, name, addend in module.linked.fixups:
    if name in places:
      value = module.base + places[name] + addend
      m.space.write(module.base + offset, struct.pack("<Q", value)[:size])


def _heap(m: CudaMachine, module: Module) -> None:
  """Memory for malloc in the context's modules, of as many bytes as its limit says when the first one is loaded."""
  context = module.context
  if context.heap is None:
    size = context.limits[cuda.CU_LIMIT_MALLOC_HEAP_SIZE] + devicelib.HEAP_HEAD
    context.heap = allocations.allocate(m, context, size, "the heap of malloc")
    start = context.heap.address
    first = -(-(start + devicelib.HEAP_HEAD) // 256) * 256
    m.space.write(start, struct.pack("<2Q", first, start + size))
  m.space.write(module.base + module.linked.offsets[devicelib.HEAP], struct.pack("<Q", context.heap.address))


def _queue(m: CudaMachine, module: Module) -> None:
  """Memory for what the module's kernels launch."""
  largest = max((offset + size for name in module.linked.names for offset, size in module.linked.kernel(name).params),
                default=0)
  record = devicelib.RECORD + -(-largest // 64) * 64
  queue = module.queue = allocations.allocate(m, module.context, record * PENDING, "launches by kernels")
  m.space.write(module.base + module.linked.offsets[devicelib.LAUNCHES],
                struct.pack("<5Q", queue.address, queue.address + queue.size, 0, record, 0))


def log_of(m: CudaMachine, count: int, options: int, values: int) -> Log | None:
  """Where a call wants errors told, by its options. Both of its logs are empty as long as there is nothing to say."""
  if not count: return None
  given = dict(zip(m.get(options, f"{count}i"), m.get(values, f"{count}Q"), strict=True))
  info, errors = (Log(given.get(log, 0), given.get(size, 0) & 0xFFFF_FFFF) for log, size in (
    (cuda.CU_JIT_INFO_LOG_BUFFER, cuda.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES),
    (cuda.CU_JIT_ERROR_LOG_BUFFER, cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)))
  for log in (info, errors): log.tell(m, "")
  return errors


@serves("cuModuleLoadData", "cuModuleLoadFatBinary")
def module_load_data(m: CudaMachine, out: int, image: int) -> None:
  context = m.working()
  m.out(out, "Q", load(m, context, ptx_of(m, image, context.gpu.card)).handle)


@serves("cuModuleLoadDataEx")
def module_load_data_ex(m: CudaMachine, out: int, image: int, count: int, options: int, values: int) -> None:
  context = m.working()
  m.out(out, "Q", load(m, context, ptx_of(m, image, context.gpu.card), log_of(m, count, options, values)).handle)


@serves("cuModuleLoad")
def module_load(m: CudaMachine, out: int, name: int) -> None:
  context, path = m.working(), m.name(name)
  try:
    with open(path, "rb") as file:
      data = file.read() + b"\0"
  except OSError as error:
    raise Failed(cuda.CUDA_ERROR_FILE_NOT_FOUND, f"{path}: {error.strerror}") from None
  kept = ctypes.create_string_buffer(data)
  m.out(out, "Q", load(m, context, ptx_of(m, ctypes.addressof(kept), context.gpu.card)).handle)


@serves("cuModuleUnload")
def module_unload(m: CudaMachine, handle: int) -> None:
  module: Module = m.find(handle, Module)
  allocations.settle(m, module.context)
  del m.handles[handle]
  for function in module.functions.values():
    m.handles.pop(function.handle, None)
  for piece in (module.piece, module.queue):
    if piece is not None: allocations.drop(m, piece)


def function_of(m: CudaMachine, module: Module, name: str) -> Function:
  """A kernel by its name."""
  found = module.functions.get(name)
  if found is None:
    try:
      module.linked.kernel(name)
    except InvalidArgument as error:
      raise Failed(cuda.CUDA_ERROR_NOT_FOUND, str(error)) from None
    found = module.functions[name] = Function(module, name)
    found.handle = m.new(found)
  return found


@serves("cuModuleGetFunction")
def module_get_function(m: CudaMachine, out: int, handle: int, name: int) -> None:
  m.out(out, "Q", function_of(m, m.find(handle, Module), m.name(name)).handle)


@serves("cuModuleGetFunctionCount")
def module_get_function_count(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "I", len(m.find(handle, Module).linked.names))


@serves("cuModuleEnumerateFunctions")
def module_enumerate_functions(m: CudaMachine, out: int, count: int, handle: int) -> None:
  module: Module = m.find(handle, Module)
  names = [*module.linked.names][:count]
  m.user.write(out, struct.pack(f"<{len(names)}Q", *(function_of(m, module, n).handle for n in names)))


@serves("cuModuleGetGlobal_v2")
def module_get_global(m: CudaMachine, out: int, size: int, handle: int, name: int) -> None:
  module, text = m.find(handle, Module), m.name(name)
  place = module.linked.offsets.get(text)
  if place is None:
    raise Failed(cuda.CUDA_ERROR_NOT_FOUND, f"no variable {text}")
  if out:
    m.out(out, "Q", module.base + place)
  if size:
    m.out(size, "Q", module.linked.bytes_of(text))


@serves("cuModuleGetLoadingMode")
def module_get_loading_mode(m: CudaMachine, out: int) -> None:
  m.out(out, "i", cuda.CU_MODULE_EAGER_LOADING)
