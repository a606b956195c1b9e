"""Modules of PTX, their kernels and variables, and launches."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, MachineFault
from tinyhw.core.lazy import cached_property
from tinyhw.core.patience import Terms, ticker
from tinyhw.mock.cuda import devicelib, memory, parameters
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
from tinyhw.mock.cuda.streams import Stream, stream_of
from tinyhw.mock.nv.jobs import Turns
from tinyhw.wire import fatbin
from tinyhw.wire.cubin import PTX_SECTION
from tinyhw.wire.elf import MAGIC, Elf

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.ptx.repeat import Repeated
  from tinyhw.emulator.schedule import Idle
  from tinyhw.emulator.simt import Stats
  from tinyhw.mock.nv.card import Card

CYCLES_PER_INSTRUCTION: Final = 4
PORTABLE: Final = 8  # blocks of a cluster on every card that has clusters (CUDA Programming Guide)
WORKSPACE: Final = 8  # bytes in which blocks of a cooperative launch meet (cooperative_groups/details/driver_abi.h)
SHAPES: Final = 64  # sizes of launches that a kernel keeps


@dataclass(eq=False)
class Module:
  """A loaded module: `linked` by the emulator, its variables in a piece of memory."""

  context: Context
  text: str
  linked: Any
  piece: Piece | None
  handle: int = 0
  heap: Piece | None = None  # of malloc
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
  shapes: dict[tuple[Any, ...], Shape] = field(default_factory=dict)  # sizes that launches had and may have

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


def ptx_of(m: CudaMachine, image: int, card: Card | None = None) -> str:
  """The PTX of what a program gives to load: a text, an ELF that carries it, or a fat binary, of which the best for
  this card counts (the first one, where a library is loaded for all)."""
  head = m.user.read(image, 8)
  if head.startswith(MAGIC):
    header = m.user.read(image, 64)
    at, size, count = (int.from_bytes(header[i:j], "little") for i, j in ((40, 48), (58, 60), (60, 62)))
    segments, length, number = (int.from_bytes(header[i:j], "little") for i, j in ((32, 40), (54, 56), (56, 58)))
    end = max(at + size * count, segments + length * number)
    raw = m.user.read(image, end)
    for i in range(count):  # sections may lie behind the table
      row = raw[at + size * i:at + size * (i + 1)]
      if int.from_bytes(row[4:8], "little") != 8:  # SHT_NOBITS
        end = max(end, int.from_bytes(row[24:32], "little") + int.from_bytes(row[32:40], "little"))
    try:
      elf = Elf(m.user.read(image, end))
    except DecodeError as error:
      raise Failed(cuda.CUDA_ERROR_INVALID_IMAGE, str(error)) from None
    section = next((s for s in elf.sections if s.name == PTX_SECTION), None)
    if section is None:
      raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU, "a cubin without PTX: machine code (SASS) is not executed")
    return elf.contents(section).rstrip(b"\0").decode()
  magic = int.from_bytes(head[:4], "little")
  if magic == fatbin.WRAPPER_MAGIC: return ptx_of(m, m.get(image + 8, "Q")[0], card)
  if magic == fatbin.MAGIC: return _best(m, image, card or m.gpus[0].card)
  return m.text(image).decode(errors="replace")


def _fits(target: str, card: Card) -> bool:
  """Whether a card runs PTX for a target, as sm_90 or sm_90a: those with a letter are for one capability alone."""
  major, minor = card.capability
  number = int(target.rstrip("af").removeprefix("sm_"))
  return number == 10 * major + minor if target[-1] in "af" else number <= 10 * major + minor


def _best(m: CudaMachine, image: int, card: Card) -> str:
  """The newest PTX of a fat binary that the card runs."""
  found: list[tuple[int, bool, str]] = []
  others: list[str] = []
  try:
    for entry in fatbin.entries(m.user.read(image, fatbin.size_of(m.user.read(image, fatbin.HEADER.size)))):
      if entry.kind != fatbin.PTX: others.append(f"machine code for sm_{entry.sm}")
      elif 10 * card.capability[0] + card.capability[1] < entry.sm: others.append(f"PTX for sm_{entry.sm}")
      else:
        text = entry.text()
        target = text.partition(".target")[2].split()[0].rstrip(",")
        if _fits(target, card): found.append((entry.sm, target[-1] in "af", text))
        else: others.append(f"PTX for {target}")
  except DecodeError as error: raise Failed(cuda.CUDA_ERROR_INVALID_IMAGE, str(error)) from None
  if not found:
    none = "nothing (what is linked on the device, by -rdc=true, is machine code)"
    raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU, f"a fat binary with {', '.join(others) or none}: no PTX that "
                 f"the device, sm_{card.capability[0]}{card.capability[1]}, runs")
  return max(found)[2]


def load(m: CudaMachine, context: Context, text: str, log: tuple[int, int] = (0, 0)) -> Module:
  """Compile a text and lay its variables out. `log` is where errors are told: an address and its size."""
  from tinyhw.emulator.ptx.link import link_text
  try:
    text = devicelib.completed(text)
    linked = link_text(text.encode())
  except Error as error:
    if log[0] and log[1]:
      m.user.write(log[0], str(error).encode()[:log[1] - 1] + b"\0")
    code = cuda.CUDA_ERROR_INVALID_PTX if isinstance(error, DecodeError) else cuda.CUDA_ERROR_NOT_SUPPORTED
    raise Failed(code, str(error)) from None
  major, minor = context.gpu.card.capability
  if not _fits(linked.target[0], context.gpu.card):
    raise Failed(cuda.CUDA_ERROR_NO_BINARY_FOR_GPU,
                 f"PTX for {linked.target[0]}, and the device is sm_{major}{minor}")
  piece = memory.allocate(m, context, linked.size) if linked.size else None
  module = Module(context, text, linked, piece)
  if piece is not None:
    functions: dict[str, int] = {}
    if linked.fixups and linked.lines:
      functions = module.program(next(iter(linked.lines))).functions
    m.space.write(piece.address, linked.bytes_at(piece.address, functions))
    if devicelib.HEAP in linked.offsets: _heap(m, module)
  module.handle = m.new(module)
  context.modules.append(module)
  return module


def _heap(m: CudaMachine, module: Module) -> None:
  """Memory for a module's malloc, of as many bytes as the context's limit says now."""
  from tinyhw.mock.cuda.devices import limit_of
  context, size = module.context, limit_of(module.context, cuda.CU_LIMIT_MALLOC_HEAP_SIZE)
  module.heap = memory.allocate(m, context, size, "the heap of malloc")
  start = module.heap.address
  m.space.write(module.base + module.linked.offsets[devicelib.HEAP], struct.pack("<2Q", start, start + size))


def log_of(m: CudaMachine, count: int, options: int, values: int) -> tuple[int, int]:
  """Where a call wants errors told, by its options."""
  if not count:
    return 0, 0
  given = dict(zip(m.get(options, f"{count}i"), m.get(values, f"{count}Q"), strict=True))
  return (given.get(cuda.CU_JIT_ERROR_LOG_BUFFER, 0),
          given.get(cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0) & 0xFFFF_FFFF)


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
  context, path = m.working(), m.text(name).decode()
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
  memory.settle(m, module.context)
  del m.handles[handle]
  for function in module.functions.values():
    m.handles.pop(function.handle, None)
  module.context.modules.remove(module)
  for piece in (module.piece, module.heap):
    if piece is not None: memory.release(m, piece)


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
  m.out(out, "Q", function_of(m, m.find(handle, Module), m.text(name).decode(errors="replace")).handle)


@serves("cuModuleGetFunctionCount")
def module_get_function_count(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "I", len(m.find(handle, Module).linked.names))


@serves("cuModuleGetGlobal_v2")
def module_get_global(m: CudaMachine, out: int, size: int, handle: int, name: int) -> None:
  module, text = m.find(handle, Module), m.text(name).decode(errors="replace")
  place = module.linked.offsets.get(text)
  if place is None:
    raise Failed(cuda.CUDA_ERROR_NOT_FOUND, f"no variable {text}")
  if out:
    m.out(out, "Q", module.base + place)
  if size:
    m.out(size, "Q", module.linked.bytes_of(text))


@serves("cuModuleGetLoadingMode")
def module_get_loading_mode(m: CudaMachine, out: int) -> None:
  m.out(out, "i", 1)  # CU_MODULE_EAGER_LOADING


# ---- libraries: modules without a context

class Library:
  """A library: PTX that each context loads on its own."""

  def __init__(self, text: str) -> None:
    self.text = text
    self.modules: dict[Context, Module] = {}
    self.kernels: dict[str, Kernel] = {}

  def module(self, m: CudaMachine, context: Context) -> Module:
    """The library's module in a context."""
    if context not in self.modules:
      self.modules[context] = load(m, context, self.text)
    return self.modules[context]


class Kernel:
  """A kernel of a library."""

  def __init__(self, library: Library, name: str) -> None:
    self.library, self.name, self.handle = library, name, 0


@serves("cuLibraryLoadData")
def library_load_data(m: CudaMachine, out: int, image: int, options: int, values: int, count: int, more: int,
                      more_values: int, more_count: int) -> None:
  from tinyhw.emulator.ptx.link import link_text
  text = ptx_of(m, image)
  try:
    link_text(text.encode())
  except Error as error:
    log = log_of(m, count, options, values)
    if log[0] and log[1]:
      m.user.write(log[0], str(error).encode()[:log[1] - 1] + b"\0")
    raise Failed(cuda.CUDA_ERROR_INVALID_PTX, str(error)) from None
  m.out(out, "Q", m.new(Library(text)))


@serves("cuLibraryUnload")
def library_unload(m: CudaMachine, handle: int) -> None:
  library: Library = m.find(handle, Library)
  for module in library.modules.values():
    if module.handle in m.handles:
      module_unload(m, module.handle)
  for kernel in library.kernels.values():
    m.handles.pop(kernel.handle, None)
  del m.handles[handle]


@serves("cuLibraryGetKernel")
def library_get_kernel(m: CudaMachine, out: int, handle: int, name: int) -> None:
  library, text = m.find(handle, Library), m.text(name).decode(errors="replace")
  from tinyhw.emulator.ptx.link import link_text
  if text not in link_text(library.text.encode()).names:
    raise Failed(cuda.CUDA_ERROR_NOT_FOUND, f"no kernel {text}")
  if text not in library.kernels:
    kernel = library.kernels[text] = Kernel(library, text)
    kernel.handle = m.new(kernel)
  m.out(out, "Q", library.kernels[text].handle)


@serves("cuLibraryGetGlobal")
def library_get_global(m: CudaMachine, out: int, size: int, handle: int, name: int) -> None:
  library: Library = m.find(handle, Library)
  module_get_global(m, out, size, library.module(m, m.working()).handle, name)


@serves("cuLibraryGetKernelCount")
def library_get_kernel_count(m: CudaMachine, out: int, handle: int) -> None:
  from tinyhw.emulator.ptx.link import link_text
  m.out(out, "I", len(link_text(m.find(handle, Library).text.encode()).names))


@serves("cuLibraryGetModule")
def library_get_module(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", m.find(handle, Library).module(m, m.working()).handle)


@serves("cuKernelGetFunction")
def kernel_get_function(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", function_for(m, handle, m.working()).handle)


def function_for(m: CudaMachine, handle: int, context: Context) -> Function:
  """A kernel by a CUfunction, or by a CUkernel, which is one of the context."""
  thing = m.handles.get(handle)
  if isinstance(thing, Kernel):
    return function_of(m, thing.library.module(m, context), thing.name)
  found: Function = m.find(handle, Function)
  return found


# ---- what is known of a kernel

@serves("cuFuncGetAttribute")
def func_get_attribute(m: CudaMachine, out: int, attribute: int, handle: int) -> None:
  function = function_for(m, handle, m.working())
  linked, program = function.module.linked, function.program
  entry = linked.kernel(function.name)
  most = entry.reqntid or entry.maxntid
  threads = 1
  for n in most or (1024,):
    threads *= n
  major, minor = linked.version
  known = {
    cuda.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: threads,
    cuda.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: program.shared_size,
    cuda.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: 0,
    cuda.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: entry.frame,
    cuda.CU_FUNC_ATTRIBUTE_NUM_REGS: 32,  # PTX's registers have no number: one that fits any block
    cuda.CU_FUNC_ATTRIBUTE_PTX_VERSION: linked.sm,
    cuda.CU_FUNC_ATTRIBUTE_BINARY_VERSION: 10 * function.context.gpu.card.capability[0],
    cuda.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: 0,
    cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: function.dynamic_limit,
    cuda.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: -1,
    cuda.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: 0, cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: 0,
  } | {k: v for k, v in function.attributes.items() if k != cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES}
  if attribute not in known:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"function attribute {attribute} is not modelled")
  m.out(out, "i", known[attribute])


@serves("cuFuncSetAttribute")
def func_set_attribute(m: CudaMachine, handle: int, attribute: int, value: int) -> None:
  function = function_for(m, handle, m.working())
  if attribute == cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    most = function.context.gpu.card.shared_limit - 1024 - function.program.shared_size
    if not 0 <= value <= most:
      raise invalid(f"{value:,} bytes of dynamic shared memory, {most:,} at most")
  elif attribute == cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    if value not in (0, 1): raise invalid(f"{value} is neither 0 nor 1")
  elif attribute != cuda.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"function attribute {attribute} cannot be set")
  function.attributes[attribute] = value
  function.shapes.clear()


@serves("cuKernelGetAttribute")
def kernel_get_attribute(m: CudaMachine, out: int, attribute: int, handle: int, device: int) -> None:
  func_get_attribute(m, out, attribute, handle)


@serves("cuKernelSetAttribute")
def kernel_set_attribute(m: CudaMachine, attribute: int, value: int, handle: int, device: int) -> None:
  func_set_attribute(m, handle, attribute, value)


@serves("cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig")
def func_set_config(m: CudaMachine, handle: int, config: int) -> None:
  function_for(m, handle, m.working())  # a preference


@serves("cuKernelSetCacheConfig")
def kernel_set_cache_config(m: CudaMachine, handle: int, config: int, device: int) -> None:
  func_set_config(m, handle, config)


@serves("cuFuncGetModule")
def func_get_module(m: CudaMachine, out: int, handle: int) -> None:
  m.out(out, "Q", function_for(m, handle, m.working()).module.handle)


# ---- launches

class Shape:
  """A kernel with sizes that it may be launched with. Raises InvalidArgument, or Failed, for others."""

  def __init__(self, function: Function, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
               cluster: tuple[int, int, int] | None, cooperative: bool = False) -> None:
    from tinyhw.emulator.ptx.launch import Dispatch, check
    from tinyhw.emulator.ptx.repeat import Repeated
    self.function, self.grid, self.block, self.shared, self.cluster = function, grid, block, shared, cluster
    m = function.context.machine
    if cluster is not None and cluster != (1, 1, 1): check_cluster(function, cluster)
    if shared > function.dynamic_limit:
      raise invalid(f"{shared:,} bytes of dynamic shared memory, {function.dynamic_limit:,} at most "
                    "(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it)")
    self.cooperative = cooperative
    self.dispatch = dispatch = Dispatch(
      function.program, grid, block, params_size=function.params_size, dynamic_shared=shared, cluster=cluster,
      arch=function.context.gpu.card.arch)
    check(dispatch)
    if cooperative: _check_cooperative(function, grid, block)
    self.repeated = Repeated(m.space, dispatch, watchdog=m.watchdog, engine=m.engine)


@dataclass(frozen=True)
class Launch:
  """A launch with its parameters."""

  shape: Shape
  params: bytes

  @property
  def function(self) -> Function:
    return self.shape.function

  def turns(self, stream: Stream) -> Turns:
    """Run the blocks."""
    m, function, shape = stream.machine, self.function, self.shape
    by = stream.queued_by()
    stream.terms = terms = m.agreed.get(by or 0) if m.agreed else None
    observer = m.observer if terms is None or terms.observer is None else terms.observer
    at = m.parameters.put(self.params)
    try:
      plain = terms is None and observer is None and not shape.cooperative
      stats = shape.repeated.at_once(at) if plain else None
      if stats is not None: pass
      elif shape.cooperative: stats = yield from self._together(at, terms, by, observer)
      else: stats = yield from self._turns(shape.repeated, at, terms, by, observer)
    except MachineFault as fault:
      fault.work, fault.kernel = f"kernel {function.name}", function.name
      function.program.explain(fault, shape.grid, shape.block, function.module.text.splitlines(), shape.cluster)
      raise
    finally: m.parameters.free(at)
    m.executed += stats.instructions
    card, waves = stream.context.gpu.card, max(stats.waves, 1)
    m.clock.advance(stats.instructions // waves * -(-waves // (4 * card.sms)) * CYCLES_PER_INSTRUCTION * 1000
                    // card.clock_mhz)

  def _together(self, at: int, terms: Terms | None, by: int | None,
                observer: Observer | None) -> Generator[Idle | None, None, Stats]:
    """Run them with a workspace, in which they meet."""
    from tinyhw.emulator.ptx.repeat import Repeated
    m = self.function.context.machine
    piece = memory.allocate(m, self.function.context, WORKSPACE)
    try:
      m.space.write(piece.address, WORKSPACE.to_bytes(4, "little") + bytes(4))
      dispatch = replace(self.shape.dispatch, workspace=piece.address)
      return (yield from self._turns(Repeated(m.space, dispatch, watchdog=m.watchdog, engine=m.engine), at, terms, by,
                                     observer))
    finally: memory.release(m, piece)

  def _turns(self, repeated: Repeated, at: int, terms: Terms | None, by: int | None,
             observer: Observer | None) -> Generator[Idle | None, None, Stats]:
    """Run them turn by turn, and print what they print."""
    printed: list[str] = []
    try:
      return (yield from repeated.start(
        at, ticker(terms, by in (None, threading.main_thread().ident)), printed, observer))
    finally: sys.stdout.write("".join(printed))


def prepare(m: CudaMachine, context: Context, handle: int, grid: tuple[int, int, int], block: tuple[int, int, int],
            shared: int, params: int, extra: int, cluster: tuple[int, int, int] | None = None,
            cooperative: bool = False) -> Launch:
  """A launch from what the client says. Raises Failed for what the driver refuses."""
  function = function_for(m, handle, context)
  if function.context is not context:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"kernel {function.name} is of another context")
  data = _given(m, function, params, extra)
  key = grid, block, shared, cluster, cooperative
  shape = function.shapes.get(key)
  if shape is None:
    try: shape = Shape(function, grid, block, shared, cluster, cooperative)
    except InvalidArgument as error:
      raise invalid(str(error)) from None
    while len(function.shapes) >= SHAPES: del function.shapes[next(iter(function.shapes))]
    function.shapes[key] = shape
  return Launch(shape, data)


def _given(m: CudaMachine, function: Function, params: int, extra: int) -> bytes:
  """The bytes of a launch's parameters."""
  size = function.params_size
  if extra:
    words = m.get(extra, "5Q")
    given = dict(zip(words[0:4:2], words[1:4:2], strict=True))
    if set(given) != {cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT}:
      raise invalid("extra has CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE and an end")
    length, = m.get(given[cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT], "Q")
    if length < size or length > parameters.LIMIT:
      raise invalid(f"{function.name} has {size} bytes of parameters, {length} are given")
    return m.user.read(given[cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT], size)
  if not function.params: return b""
  places = m.get(params, f"{len(function.params)}Q")
  found = m.user.gather([(place, length) for place, (_, length) in zip(places, function.params, strict=True)])
  if function.packed: return found
  data, start = bytearray(size), 0
  for offset, length in function.params:
    data[offset:offset + length] = found[start:start + length]
    start += length
  return bytes(data)


def check_cluster(function: Function, cluster: tuple[int, int, int]) -> None:
  """Raises Failed for a cluster that the card has not. More blocks than every card has are for a function that allows
  it (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)."""
  if function.context.gpu.card.capability < (9, 0):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "clusters of blocks before compute capability 9.0")
  from tinyhw.emulator.ptx.launch import CLUSTER
  more = function.attributes.get(cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
  most = CLUSTER if more else PORTABLE
  if math.prod(cluster) > most:
    raise Failed(cuda.CUDA_ERROR_INVALID_CLUSTER_SIZE, f"a cluster of {cluster} blocks, {most} at most")


def enqueue(stream: Stream, launch: Launch) -> None:
  """Queue a launch, or have a graph take it."""
  if stream.capture is not None:
    from tinyhw.mock.cuda.works import KernelWork
    stream.capture.take(stream, KernelWork(launch))
  else: stream.add(f"kernel {launch.function.name}", launch.turns(stream))


@serves("cuLaunchKernel")
def launch_kernel(m: CudaMachine, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int,
                  handle: int, params: int, extra: int) -> None:
  stream = stream_of(m, handle)
  enqueue(stream, prepare(m, stream.context, function, (gx, gy, gz), (bx, by, bz), shared, params, extra))


@serves("cuLaunchCooperativeKernel")
def launch_cooperative_kernel(m: CudaMachine, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
                              shared: int, handle: int, params: int) -> None:
  stream = stream_of(m, handle)
  enqueue(stream, prepare(m, stream.context, function, (gx, gy, gz), (bx, by, bz), shared, params, 0,
                          cooperative=True))


def _check_cooperative(function: Function, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
  """Raises Failed for more blocks than can run at a time."""
  from tinyhw.emulator.ptx.launch import BLOCKS_A_SM, RESIDENT
  most = min(BLOCKS_A_SM, RESIDENT // (-(-math.prod(block) // 32) * 32)) * function.context.gpu.card.sms
  if math.prod(grid) > most:
    raise Failed(cuda.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, f"{math.prod(grid)} blocks, {most} fit")


def configuration(m: CudaMachine, config: int) -> tuple[Any, tuple[int, int, int] | None, bool]:
  """A CUlaunchConfig, the cluster that it asks for, and whether it is cooperative."""
  c = cuda.CUlaunchConfig.from_buffer_copy(m.user.read(config, ctypes.sizeof(cuda.CUlaunchConfig)))
  harmless = {cuda.CU_LAUNCH_ATTRIBUTE_IGNORE, cuda.CU_LAUNCH_ATTRIBUTE_PRIORITY,
              cuda.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, cuda.CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
              cuda.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
              cuda.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, cuda.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN}
  width = ctypes.sizeof(cuda.CUlaunchAttribute)
  cluster, cooperative = None, False
  for i in range(c.numAttrs):
    attribute = cuda.CUlaunchAttribute.from_buffer_copy(m.user.read(c.attrs + width * i, width))
    kind, size = attribute.id, attribute.value.clusterDim
    if kind == cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: cluster = size.x, size.y, size.z
    elif kind == cuda.CU_LAUNCH_ATTRIBUTE_COOPERATIVE: cooperative = bool(attribute.value.cooperative)
    elif kind not in harmless:
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"launch attribute {kind} is not modelled")
  return c, cluster, cooperative


@serves("cuLaunchKernelEx")
def launch_kernel_ex(m: CudaMachine, config: int, function: int, params: int, extra: int) -> None:
  c, cluster, cooperative = configuration(m, config)
  stream = stream_of(m, c.hStream)
  enqueue(stream, prepare(m, stream.context, function, (c.gridDimX, c.gridDimY, c.gridDimZ),
                          (c.blockDimX, c.blockDimY, c.blockDimZ), c.sharedMemBytes, params, extra, cluster,
                          cooperative))
