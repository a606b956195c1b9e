"""libcudart.so as a library of this process, upon the driver API's stand-in: what programs of nvcc are linked to.

The vendor's own runtime asks its driver for tables that NVIDIA does not document, so programs get this one: it
registers their fat binaries, finds their kernels by the addresses of host functions, and hands all else to the driver's
functions. The primary context of a card is made current at a thread's first call. Errors of a thread stay until it asks
for them. The lock is the driver's; what binaries register they register before main.
"""
from __future__ import annotations

import ctypes
import os
import struct
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from tinyhw.autogen import cuda, cudart
from tinyhw.core.called import Called
from tinyhw.core.layout import Struct
from tinyhw.mock.cuda.calls import Failed, Forked, answer, uncollected
from tinyhw.mock.cuda.library.shared import Loaded
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.memory.arrays import Array
from tinyhw.mock.cuda.modules.modules import Module, share
from tinyhw.mock.cuda.runtime.tables import FUNCTION, PROPERTIES, SAME, WITHOUT_CONTEXT
from tinyhw.mock.cuda.watching import Watch
from tinyhw.mock.memory import Refused

SONAME: Final = "libcudart.so.13"
VERSION: Final = cuda.CUDA_VERSION
Handler = Callable[..., int | None]
S = TypeVar("S", bound=Struct)
Row = tuple[Handler, bool]  # of a function: what does it, and whether in the thread's context
RUNS: Final[dict[str, Row]] = {}
_PLAIN: Final = frozenset({"__cudaRegisterFatBinary", "cudaGetErrorName", "cudaGetErrorString"})  # return an address
_CHANNEL: Final = "cudaCreateChannelDesc"
_PROFILER: Final = ("cudaProfilerStart", "cudaProfilerStop")  # of cuda_profiler_api.h; nobody profiles

OWN: Final = {**cudart.PER_THREAD, "__cudaLaunchKernel": "__cudaLaunchKernel_ptsz"}  # those on the thread's own stream
NAMES: Final = sorted({*cudart.FUNCTIONS, *cudart.BY_VALUE, *OWN.values(), _CHANNEL, *_PROFILER})  # of the library


class Refusal(Exception):
  """A function fails with this cudaError."""

  def __init__(self, code: int, why: str = "") -> None:
    self.code, self.why = code, why
    super().__init__(why)


def runs(*names: str, context: bool = True) -> Callable[[Handler], Handler]:
  """Register what functions of the runtime do; most work in the thread's context, which is made where it has none."""

  def register(handler: Handler) -> Handler:
    for name in names:
      assert name in cudart.FUNCTIONS and name not in RUNS and name not in SAME, name
      RUNS[name] = handler, context
    return handler

  return register


@dataclass(eq=False)
class Binary:
  """A fat binary of a program: where its wrapper is, and the names that the program's symbols stand for."""

  image: int
  cell: Any
  functions: dict[int, str] = field(default_factory=dict)
  variables: dict[int, str] = field(default_factory=dict)
  managed: dict[int, str] = field(default_factory=dict)  # by where the program has their addresses
  modules: dict[int, int] = field(default_factory=dict)  # by contexts


class Runtime:
  """The library. `machine` gives the machine behind it, or None; it raises Forked in a child of a process that used
  one. `rows` are its own functions (`handlers.runs`)."""

  def __init__(self, machine: Callable[[], CudaMachine | None], rows: Mapping[str, Row]) -> None:
    self.behind, self.rows = machine, rows
    self.watch: Callable[[], Watch | None] = lambda: None  # who is told of calls
    self.driver = {name: answer(machine, name) for name in (*cuda.FUNCTIONS, *cuda.BY_VALUE)}
    self.binaries: dict[int, Binary] = {}
    self.kernels: dict[int, tuple[Binary, str]] = {}  # by the host's functions
    self.thread = threading.local()
    self.texts: dict[str, Any] = {}
    self.descriptions: dict[int, tuple[bytes, ...]] = {}  # of texture and surface objects: resource, sampling, view
    self.loaded = Loaded(SONAME, NAMES, SONAME)
    for name in (*cudart.FUNCTIONS, *cudart.BY_VALUE): self.loaded.fill(name, self._function(name))
    for name, own in OWN.items(): self.loaded.fill(own, self._function(name, True))
    for name in _PROFILER: self.loaded.fill(name, Called(lambda block: 0, 0))
    # A struct of more than 16 bytes comes back where the caller says, as if it were a first parameter (x86-64's ABI).
    self.loaded.fill(_CHANNEL, uncollected(self._channel, (ctypes.c_uint64, *[ctypes.c_int32] * 5), 0, 0))

  def forget(self) -> None:
    """Another machine stands behind the library: what threads and binaries have of the last one is gone."""
    self.thread = threading.local()
    for binary in self.binaries.values(): binary.modules.clear()

  def _channel(self, out: int, *words: int) -> int:
    """cudaCreateChannelDesc: bits of four components, and their kind."""
    self.machine.out(out, "5i", *words)
    return out

  @property
  def machine(self) -> CudaMachine:
    found = self.behind()
    if found is None: raise Refusal(cudart.cudaErrorCudartUnloading)
    return found

  def _function(self, name: str, own: bool = False) -> Called:
    """A function of the library, as C calls it. `own`: stream 0 is the calling thread's."""
    row, same = self.rows.get(name), SAME.get(name)
    kinds = cudart.FUNCTIONS.get(name, ()) if row or same else ()

    def call(*arguments: Any) -> int:
      if not own: return called(arguments)
      try: machine = self.behind()
      except Forked: machine = None  # which `called` says
      with nullcontext() if machine is None else machine.own_default(): return called(arguments)

    def called(arguments: tuple[Any, ...]) -> int:
      watch = self.watch()
      if watch is None: return done(arguments)
      watch.entered(name, arguments)
      code = done(arguments)
      watch.called(name, arguments, code)
      return code

    def done(arguments: tuple[Any, ...]) -> int:
      try:
        if same is not None:
          if name in WITHOUT_CONTEXT: self.initialize()
          else: self.context()
          self.call(same, *arguments)
        elif row is None: raise Refusal(cudart.cudaErrorNotSupported, f"{name} is not modelled")
        else:
          handler, within = row
          if within: self.context()
          return handler(self, *arguments) or 0
      except Refusal as refusal: return self.failed(name, refusal)
      except Failed as failed: return self.failed(name, Refusal(failed.code, failed.why))
      except Refused as refused: return self.failed(name, Refusal(cudart.cudaErrorInvalidValue, refused.why))
      except Forked: return cudart.cudaErrorInitializationError
      except Exception:  # a mistake of the mock's own
        traceback.print_exc()
        return self.failed(name, Refusal(cudart.cudaErrorUnknown))
      return 0

    if name in _PLAIN:
      text = self.text(cudart.ERRORS[cudart.cudaErrorCudartUnloading])
      ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.texts))
      return uncollected(call, kinds, 0, text if "Error" in name else 0)
    return uncollected(call, kinds, cudart.cudaErrorUnknown, cudart.cudaErrorCudartUnloading)

  def failed(self, name: str, refusal: Refusal) -> int:
    """Note the error for the thread, and why; its code."""
    code = refusal.code if refusal.code in cudart.ERRORS else cudart.cudaErrorUnknown
    if code != cudart.cudaErrorNotReady: self.thread.error = code
    machine = self.behind()
    if refusal.why and machine is not None:
      machine.log(name, cudart.ERRORS[code], refusal.why, code == cudart.cudaErrorNotSupported)
      if code == cudart.cudaErrorNotSupported: machine.doubt(f"{name}: {refusal.why}")
    return code

  def call(self, name: str, *arguments: Any) -> None:
    """A function of the driver. Raises Refusal where it fails, for which it has told why."""
    code = self.driver[name](*arguments)
    if code: raise Refusal(code)

  def made(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint64) -> int:
    """What a function of the driver stores through its first argument."""
    out = kind()
    self.call(name, ctypes.addressof(out), *arguments)
    return int(out.value)

  def struct(self, kind: type[S], pointer: int) -> S:
    """A struct of the program's."""
    if not pointer: raise Refusal(cudart.cudaErrorInvalidValue, "a pointer is null")
    return kind.from_buffer_copy(self.machine.user.read(pointer, ctypes.sizeof(kind)))

  def told(self, pointer: int, struct: Struct) -> None:
    """Give the program a struct."""
    self.machine.user.write(pointer, bytes(struct))

  def element(self, array: int) -> int:
    """Bytes of an array's element."""
    found = self.machine.handles.get(array)
    if not isinstance(found, Array): raise Refusal(cudart.cudaErrorInvalidValue, f"{array:#x} is no array")
    return found.header.element

  # ---- contexts

  def initialize(self) -> CudaMachine:
    """The machine, with a driver that is initialized."""
    machine = self.machine
    if not machine.ready: self.call("cuInit", 0)
    return machine

  def context(self) -> int:
    """The thread's context; where it has none, the primary one of its card."""
    self.initialize()
    found = self.made("cuCtxGetCurrent")
    return found or self.use(getattr(self.thread, "device", 0))

  def use(self, device: int) -> int:
    """Have a card's primary context current."""
    context = self.made("cuDevicePrimaryCtxRetain", device)
    self.call("cuCtxSetCurrent", context)
    self.thread.device = device
    return context

  # ---- kernels and variables

  def module(self, binary: Binary) -> int:
    """A fat binary's module in the current context."""
    context = self.context()
    if context not in binary.modules:
      first = next(iter(binary.modules.values()), None)
      handle = binary.modules[context] = self.made("cuModuleLoadFatBinary", binary.image)
      if first is not None and binary.managed:  # which all cards share
        find = self.machine.find
        share(self.machine, find(handle, Module), find(first, Module), binary.managed.values())
        return handle
      for place, name in binary.managed.items():
        address = self._global(binary.modules[context], name)[0]
        self.machine.user.write(place, struct.pack("<Q", address))
        binary.variables[address] = name
    return binary.modules[context]

  def _global(self, module: int, name: str) -> tuple[int, int]:
    """Address and bytes of a module's variable."""
    size, text = ctypes.c_uint64(), ctypes.create_string_buffer(os.fsencode(name))
    address = self.made("cuModuleGetGlobal_v2", ctypes.addressof(size), module, ctypes.addressof(text))
    return address, int(size.value)

  def kernel(self, function: int) -> int:
    """The driver's function for a function of the host's, or for a handle of it."""
    if function not in self.kernels:
      raise Refusal(cudart.cudaErrorInvalidDeviceFunction, f"no kernel was registered for {function:#x}")
    binary, name = self.kernels[function]
    text = ctypes.create_string_buffer(os.fsencode(name))
    return self.made("cuModuleGetFunction", self.module(binary), ctypes.addressof(text))

  def loaded_kernel(self, function: int) -> int:
    """The driver's function for one of the host's, if its module is loaded in the current context."""
    return self.kernel(function) if self.context() in self.kernels[function][0].modules else 0

  def variable(self, symbol: int) -> tuple[int, int]:
    """Address and bytes of a variable of a module's."""
    for binary in reversed(self.binaries.values()):  # addresses of a library that is gone may be another one's
      if symbol not in binary.variables: continue
      return self._global(self.module(binary), binary.variables[symbol])
    raise Refusal(cudart.cudaErrorInvalidSymbol, f"no variable was registered for {symbol:#x}")

  def text(self, words: str) -> int:
    """The address of a string that stays."""
    if words not in self.texts: self.texts[words] = ctypes.create_string_buffer(os.fsencode(words))
    return ctypes.addressof(self.texts[words])


# ---- what the compiler's own code calls

@runs("__cudaRegisterFatBinary", context=False)
def register_fat_binary(r: Runtime, wrapper: int) -> int:
  cell = ctypes.c_uint64(wrapper)
  handle = ctypes.addressof(cell)
  r.binaries[handle] = Binary(wrapper, cell)
  return handle


@runs("__cudaRegisterFatBinaryEnd", context=False)
def nothing(r: Runtime, handle: int) -> int: return 0


@runs("__cudaInitModule", context=False)
def initialize_module(r: Runtime, handle: int) -> int:
  """A program is about to touch its managed variables: whether it may."""
  r.module(r.binaries[handle])
  return 1


@runs("__cudaUnregisterFatBinary", context=False)
def unregister_fat_binary(r: Runtime, handle: int) -> None:
  binary = r.binaries.pop(handle, None)
  if binary is not None: r.kernels = {at: row for at, row in r.kernels.items() if row[0] is not binary}


@runs("__cudaRegisterFunction", context=False)
def register_function(r: Runtime, handle: int, host: int, device: int, name: int, *rest: int) -> None:
  r.kernels[host] = r.binaries[handle], r.machine.name(name)


@runs("__cudaRegisterVar", context=False)
def register_variable(r: Runtime, handle: int, host: int, device: int, name: int, *rest: int) -> None:
  r.binaries[handle].variables[host] = r.machine.name(name)


@runs("__cudaRegisterManagedVar", context=False)
def register_managed_variable(r: Runtime, handle: int, host: int, device: int, name: int, *rest: int) -> None:
  r.binaries[handle].managed[host] = r.machine.name(name)


@runs("__cudaPushCallConfiguration", context=False)
def push_configuration(r: Runtime, grid: Any, block: Any, shared: int, stream: int) -> int:
  if not hasattr(r.thread, "calls"): r.thread.calls = []
  r.thread.calls.append((bytes(grid), bytes(block), shared, stream))
  return 0


@runs("__cudaPopCallConfiguration", context=False)
def pop_configuration(r: Runtime, grid: int, block: int, shared: int, stream: int) -> None:
  calls = getattr(r.thread, "calls", [])
  if not calls: raise Refusal(cudart.cudaErrorMissingConfiguration)
  row = calls.pop()
  for at, data in zip((grid, block, shared, stream), (*row[:2], *(struct.pack("<Q", v) for v in row[2:])), strict=True):
    r.machine.user.write(at, data)


@runs("__cudaGetKernel", "cudaGetKernel", context=False)
def get_kernel(r: Runtime, out: int, function: int) -> None:
  if function not in r.kernels: raise Refusal(cudart.cudaErrorInvalidDeviceFunction)
  r.machine.out(out, "Q", function)  # the host's function is its own handle


@runs("__cudaLaunchKernel", "cudaLaunchKernel")
def launch_kernel(r: Runtime, function: int, grid: Any, block: Any, arguments: int, shared: int, stream: int) -> None:
  _sizes(grid, block)
  r.call("cuLaunchKernel", r.kernel(function), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream,
         arguments, 0)


@runs("cudaLaunchCooperativeKernel")
def launch_cooperative_kernel(r: Runtime, function: int, grid: Any, block: Any, arguments: int, shared: int,
                              stream: int) -> None:
  _sizes(grid, block)
  r.call("cuLaunchCooperativeKernel", r.kernel(function), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
         stream, arguments)


@runs("cudaLaunchKernelExC")
def launch_kernel_ex(r: Runtime, config: int, function: int, arguments: int) -> None:
  given = cudart.cudaLaunchConfig_t.from_buffer_copy(
    r.machine.user.read(config, ctypes.sizeof(cudart.cudaLaunchConfig_t)))
  _sizes(given.gridDim, given.blockDim)
  if given.dynamicSmemBytes >> 32: raise Refusal(cudart.cudaErrorInvalidValue, "dynamic shared memory past 4 GiB")
  r.call("cuLaunchKernelEx", config, r.kernel(function), arguments, 0)  # CUlaunchConfig has the same places


def _sizes(grid: Any, block: Any) -> None:
  """Raises Refusal where a launch has no threads, or more in a block than any card takes."""
  if not all((grid.x, grid.y, grid.z, block.x, block.y, block.z)) or block.x * block.y * block.z > 1024:
    raise Refusal(cudart.cudaErrorInvalidConfiguration, f"a grid of {grid.x, grid.y, grid.z} blocks of "
                  f"{block.x, block.y, block.z} threads")


# ---- errors and versions

@runs("cudaGetLastError", context=False)
def get_last_error(r: Runtime) -> int:
  code, r.thread.error = getattr(r.thread, "error", 0), 0
  return int(code)


@runs("cudaPeekAtLastError", context=False)
def peek_at_last_error(r: Runtime) -> int:
  return int(getattr(r.thread, "error", 0))


@runs("cudaGetErrorName", context=False)
def get_error_name(r: Runtime, code: int) -> int:
  return r.text(cudart.ERRORS.get(code, "unrecognized error code"))


@runs("cudaGetErrorString", context=False)
def get_error_string(r: Runtime, code: int) -> int:
  name = cudart.ERRORS.get(code)
  if name is None: return r.text("unrecognized error code")
  words = "".join(" " + c.lower() if c.isupper() else c for c in name.removeprefix("cudaError").removeprefix("cuda"))
  return r.text(words.strip())


@runs("cudaRuntimeGetVersion", context=False)
def runtime_get_version(r: Runtime, out: int) -> None: r.machine.out(out, "i", VERSION)


@runs("cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion", context=False)
def get_driver_entry_point(r: Runtime, name: int, out: int, *rest: int) -> None:
  """With a version or without: (flags, status) or (version, flags, status)."""
  version, flags, status = rest if len(rest) == 3 else (VERSION, *rest)
  r.call("cuGetProcAddress_v2", name, out, version, flags, status)


# ---- devices

@runs("cudaSetDeviceFlags", context=False)
def set_device_flags(r: Runtime, flags: int) -> None:
  r.initialize()
  device = getattr(r.thread, "device", 0)
  r.call("cuDevicePrimaryCtxSetFlags_v2", device, flags & ~cuda.CU_CTX_MAP_HOST)  # as it is anyway


@runs("cudaGetDeviceFlags")
def get_device_flags(r: Runtime, out: int) -> None:
  r.call("cuCtxGetFlags", out)


@runs("cudaSetDevice", context=False)
def set_device(r: Runtime, device: int) -> None:
  r.initialize()
  r.use(device)


@runs("cudaGetDevice", context=False)
def get_device(r: Runtime, out: int) -> None:
  r.initialize()
  if r.made("cuCtxGetCurrent"): r.call("cuCtxGetDevice", out)
  else: r.machine.out(out, "i", getattr(r.thread, "device", 0))


@runs("cudaDeviceReset")
def device_reset(r: Runtime) -> None:
  context = r.context()
  for binary in r.binaries.values(): binary.modules.pop(context, None)
  r.call("cuDevicePrimaryCtxReset_v2", getattr(r.thread, "device", 0))
  r.call("cuCtxSetCurrent", 0)


def _peer(r: Runtime, device: int) -> int:
  """Another card's context."""
  mine = r.context()
  here = r.made("cuCtxGetDevice", kind=ctypes.c_int32)
  other = r.use(device)
  r.call("cuCtxSetCurrent", mine)
  r.thread.device = here
  return other


@runs("cudaDeviceEnablePeerAccess")
def device_enable_peer_access(r: Runtime, device: int, flags: int) -> None:
  own, peer = r.context(), _peer(r, device)
  if peer == own: raise Refusal(cudart.cudaErrorInvalidDevice, "a device is no peer of its own")
  r.call("cuCtxEnablePeerAccess", peer, flags)


@runs("cudaDeviceDisablePeerAccess")
def device_disable_peer_access(r: Runtime, device: int) -> None: r.call("cuCtxDisablePeerAccess", _peer(r, device))


@runs("cudaGetDeviceProperties", context=False)
def get_device_properties(r: Runtime, out: int, device: int) -> None:
  r.initialize()

  def known(name: str) -> int:
    return r.made("cuDeviceGetAttribute", getattr(cuda, f"CU_DEVICE_ATTRIBUTE_{name}"), device, kind=ctypes.c_int32)

  properties, places = cudart.cudaDeviceProp(), vars(cudart.cudaDeviceProp)
  for field_name, names in PROPERTIES.items():
    if isinstance(names, str): setattr(properties, field_name, known(names))
    else: getattr(properties, field_name)[:] = [known(name) for name in names]
  r.machine.out(out, f"{ctypes.sizeof(properties)}s", bytes(properties))
  r.call("cuDeviceGetName", out + places["name"].offset, 256, device)
  r.call("cuDeviceTotalMem_v2", out + places["totalGlobalMem"].offset, device)
  r.call("cuDeviceGetUuid_v2", out + places["uuid"].offset, device)


# ---- streams and events

@runs("cudaStreamCreate")
def stream_create(r: Runtime, out: int) -> None:
  r.call("cuStreamCreate", out, cuda.CU_STREAM_DEFAULT)


@runs("cudaEventCreate")
def event_create(r: Runtime, out: int) -> None:
  r.call("cuEventCreate", out, cuda.CU_EVENT_DEFAULT)


# ---- what is known of kernels

@runs("cudaFuncSetAttribute")
def func_set_attribute(r: Runtime, function: int, attribute: int, value: int) -> None:
  r.call("cuFuncSetAttribute", r.kernel(function), attribute, value)  # the driver has the same numbers


@runs("cudaFuncSetCacheConfig")
def func_set_cache_config(r: Runtime, function: int, config: int) -> None:
  r.call("cuFuncSetCacheConfig", r.kernel(function), config)


@runs("cudaFuncGetAttributes")
def func_get_attributes(r: Runtime, out: int, function: int) -> None:
  kernel = r.kernel(function)
  found = cudart.cudaFuncAttributes(**{
    name: r.made("cuFuncGetAttribute", number, kernel, kind=ctypes.c_int32) for name, number in FUNCTION.items()})
  r.machine.out(out, f"{ctypes.sizeof(found)}s", bytes(found))


@runs("cudaOccupancyMaxActiveBlocksPerMultiprocessor")
def max_active_blocks(r: Runtime, out: int, function: int, block: int, shared: int) -> None:
  r.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", out, r.kernel(function), block, shared)


@runs("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def max_active_blocks_with_flags(r: Runtime, out: int, function: int, block: int, shared: int, flags: int) -> None:
  r.call("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", out, r.kernel(function), block, shared, flags)


@runs("cudaOccupancyMaxActiveClusters")
def max_active_clusters(r: Runtime, out: int, function: int, config: int) -> None:
  r.call("cuOccupancyMaxActiveClusters", out, r.kernel(function), config)


@runs("cudaInitDevice", context=False)
def init_device(r: Runtime, device: int, flags: int, device_flags: int) -> None:
  """As cudaSetDevice, but that the thread's device stays."""
  r.initialize()
  r.made("cuDevicePrimaryCtxRetain", device)


@runs("cudaGetFuncBySymbol")
def get_func_by_symbol(r: Runtime, out: int, function: int) -> None: r.machine.out(out, "Q", r.kernel(function))


@runs("cudaFuncGetName", context=False)
def func_get_name(r: Runtime, out: int, function: int) -> None:
  if function not in r.kernels: raise Refusal(cudart.cudaErrorInvalidDeviceFunction)
  r.machine.out(out, "Q", r.text(r.kernels[function][1]))


@runs("cudaOccupancyAvailableDynamicSMemPerBlock")
def available_shared(r: Runtime, out: int, function: int, blocks: int, block: int) -> None:
  r.call("cuOccupancyAvailableDynamicSMemPerBlock", out, r.kernel(function), blocks, block)


@runs("cudaDeviceGetCacheConfig")
def device_get_cache_config(r: Runtime, out: int) -> None:
  r.call("cuCtxGetCacheConfig", out)


@runs("cudaChooseDevice", context=False)
def choose_device(r: Runtime, out: int, properties: int) -> None:
  """The first card that has at least the capability and the memory that are asked for, or else the first one."""
  wanted, found = r.struct(cudart.cudaDeviceProp, properties), 0
  for gpu in r.initialize().gpus:
    if gpu.card.capability >= (wanted.major, wanted.minor) and gpu.vram.size >= wanted.totalGlobalMem:
      found = gpu.index
      break
  r.machine.out(out, "i", found)
