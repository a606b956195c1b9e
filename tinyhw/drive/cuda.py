"""NVIDIA GPUs through CUDA's driver API: the functions of libcuda, which are handed in.

A "binary" is PTX, which the driver compiles, or what else it loads. A device is its primary context with one stream
that runs in order, so launches and copies are asynchronous and `copyout` and `synchronize` wait. A TinyJit's launches
are one CUgraph. Threads may share a device: `lock` is held while a launch's arguments are put together, and a device
closes when nobody is amid a call (`Users`). What is open does not pass through fork: a child is told to open the device
anew.
"""
from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError, DeviceError, InvalidArgument, OutOfMemory, Unsupported, WaitTimeout
from tinyhw.core.locks import lock
from tinyhw.core.timeout import within
from tinyhw.core.trace import Whose
from tinyhw.drive.base import Allocation, Dim3, Launch, Program, Runner, Runtime
from tinyhw.drive.nv.bare import PtxKernel, is_ptx
from tinyhw.drive.users import Users
from tinyhw.wire.codeobject import Argument, CodeObject

NAMES: Final = ("libcuda.so.1", "libcuda.so")
LOG: Final = 4000  # characters of a log that an error quotes
_SLACK: Final = 64 << 10  # bytes behind those: driver 580 writes past the size it is told of a log longer than that
_NAME: Final = 256  # bytes for a device's name
_PLAIN_SHARED: Final = 48 << 10  # bytes of shared memory that a block has unasked (CUDA C++ Programming Guide)
_CLUSTERS: Final = 9, 0  # the first compute capability that has them
_FITS: Final = 1 << 31  # what counts of a launch are below, in any case
_POLL_S: Final = 1e-4
_REFUSED: Final = {cuda.CUDA_ERROR_INVALID_VALUE, cuda.CUDA_ERROR_INVALID_CLUSTER_SIZE,
                   cuda.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES}  # of a launch that is not as the kernel wants it
LOST: Final = {cuda.CUDA_ERROR_ILLEGAL_ADDRESS, cuda.CUDA_ERROR_LAUNCH_FAILED, cuda.CUDA_ERROR_MISALIGNED_ADDRESS,
               cuda.CUDA_ERROR_LAUNCH_TIMEOUT, cuda.CUDA_ERROR_ILLEGAL_INSTRUCTION, cuda.CUDA_ERROR_INVALID_PC,
               cuda.CUDA_ERROR_ASSERT, cuda.CUDA_ERROR_HARDWARE_STACK_ERROR, cuda.CUDA_ERROR_ECC_UNCORRECTABLE,
               cuda.CUDA_ERROR_INVALID_ADDRESS_SPACE}  # the context is gone with all its memory


def system_library() -> Any:
  """libcuda of this machine. Raises DeviceError where there is none."""
  for name in NAMES:
    try: return ctypes.CDLL(name)
    except OSError: continue
  raise DeviceError("there is no CUDA driver (libcuda.so.1)", where="CUDA",
                    hint="use a machine with an NVIDIA GPU and its driver, or set MOCKGPU=sm_90 for a mock one")


class Library:
  """The driver API. What a function refuses raises DeviceError with the name of its code, which is its `code`."""

  def __init__(self, library: Any) -> None:
    self._library = library
    self._functions: dict[str, Any] = {}

  def function(self, name: str) -> Any:
    """A function, with its types. Raises DeviceError where this driver does not have it."""
    found = self._functions.get(name)
    if found is None:
      try: found = self._library[name]  # one of our own: the types are not for others who use the library
      except AttributeError:
        raise DeviceError(f"the CUDA driver has no {name}", where="CUDA", hint="it is older than CUDA 12") from None
      found.restype, found.argtypes = ctypes.c_int32, cuda.FUNCTIONS[name]
      self._functions[name] = found
    return found

  def call(self, name: str, *arguments: Any) -> None:
    """Call a function."""
    if (code := self.function(name)(*arguments)) != cuda.CUDA_SUCCESS: raise self.failed(name, code)

  def number(self, kind: Any, name: str, *arguments: Any) -> int:
    """Call a function whose first parameter is where it puts a number or a handle of that ctypes class."""
    room = kind()
    self.call(name, ctypes.byref(room), *arguments)
    return int(room.value or 0)

  def handle(self, name: str, *arguments: Any) -> int:
    """Call a function that makes something."""
    return self.number(ctypes.c_uint64, name, *arguments)

  def failed(self, name: str, code: int) -> DeviceError:
    """The error of a call that returned `code`, with the driver's own last words where it keeps a log."""
    error = DeviceError(f"{name}: {cuda.RESULTS.get(code, f'error {code}')}{self.said()}", where="CUDA")
    error.code = code  # type: ignore[attr-defined]
    return error

  def said(self) -> str:
    """The last line of the driver's log; drivers before CUDA 12.9 keep none."""
    try: function = self.function("cuLogsDumpToMemory")
    except DeviceError: return ""
    room, size = ctypes.create_string_buffer(LOG + _SLACK), ctypes.c_size_t(LOG)
    if function(None, room, ctypes.byref(size), 0) != cuda.CUDA_SUCCESS: return ""
    text = room.value.decode(errors="replace").strip()
    return f"\n  {text[text.rfind('[CUDA]'):]}" if text else ""


def ptx_of(binary: bytes) -> bytes | None:
  """The PTX that a binary is, or that a cubin carries; None where there is none to read."""
  if is_ptx(binary): return binary
  from tinyhw.wire.cubin import Cubin
  try: return Cubin(binary).ptx
  except (DecodeError, Unsupported): return None


class ContextUsers(Users):
  """`with users:` has the context current to the thread, and stay open meanwhile. Raises what `check` does."""

  def __init__(self, device: CudaRuntime) -> None:
    super().__init__(device)
    self._device = device

  def entered(self) -> None: self._device.run("cuCtxSetCurrent", self._device.context)


class CudaProgram(Program):
  """A kernel of a module."""

  def __init__(self, device: CudaRuntime, name: str, function: int, kernel: PtxKernel | None = None):
    self.name, self.device, self.function = name, device, function
    self.kernel = kernel  # what `tinyhw.launch` has to know of the parameters
    self._packed: Packed | None = None
    self._dynamic = 0  # bytes of shared memory that the function was allowed

  @property
  def clusters(self) -> bool:
    """Whether a launch may be in clusters of blocks."""
    return self.device.capability >= _CLUSTERS

  def launch(self, params: bytes, grid: Dim3, block: Dim3, *, dynamic_lds: int = 0,
             cluster: Dim3 | None = None) -> None:
    """Launch with the parameters as bytes and so much dynamic shared memory, in clusters of so many blocks.

    Raises InvalidArgument for what the driver says no launch of this kernel can have.
    """
    device, where = self.device, f"{self.device.name}, kernel {self.name}"
    if cluster is not None and not self.clusters:
      raise Unsupported("clusters of blocks on", device.processor, where=where)
    if max(*grid, *block, *(cluster or ()), dynamic_lds) >= _FITS:
      raise InvalidArgument(f"grid {grid}, block {block}, {dynamic_lds:,} bytes of shared memory: {_FITS:,} and more",
                            where=where)
    data, size = ctypes.create_string_buffer(params, max(len(params), 1)), ctypes.c_size_t(len(params))
    extra = (ctypes.c_void_p * 5)(cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, ctypes.addressof(data),
                                  cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, ctypes.addressof(size),
                                  cuda.CU_LAUNCH_PARAM_END_AS_INT)
    with device.users, device.lock:
      try:
        self.allow(dynamic_lds)
        if cluster is None:
          device.call("cuLaunchKernel", self.function, *grid, *block, dynamic_lds, device.stream, None, extra)
        else: self._clustered(grid, block, dynamic_lds, cluster, extra)
      except DeviceError as error:
        if getattr(error, "code", 0) in _REFUSED: raise InvalidArgument(error.message, where=where) from None
        raise device.told(error) from None

  def allow(self, dynamic: int) -> None:
    """Have the driver take launches with so much dynamic shared memory; the device's lock is held."""
    own = self.kernel.group_segment_size if self.kernel is not None else 0
    if own + dynamic > _PLAIN_SHARED and dynamic > self._dynamic:
      self.device.call("cuFuncSetAttribute", self.function, cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       dynamic)
      self._dynamic = dynamic

  def _clustered(self, grid: Dim3, block: Dim3, dynamic: int, cluster: Dim3, extra: Any) -> None:
    (gx, gy, gz), (bx, by, bz) = grid, block
    asked = cuda.CUlaunchAttribute(id=cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    asked.value.clusterDim = cuda.CUlaunchAttributeValue_union_clusterDim(*cluster)
    config = cuda.CUlaunchConfig(gridDimX=gx, gridDimY=gy, gridDimZ=gz, blockDimX=bx, blockDimY=by, blockDimZ=bz,
                                 sharedMemBytes=dynamic, hStream=self.device.stream, attrs=ctypes.addressof(asked),
                                 numAttrs=1)
    self.device.call("cuLaunchKernelEx", ctypes.byref(config), self.function, None, extra)

  def packed(self, buffers: int, values: int) -> Packed:
    """Where a launch's arguments lie; the device's lock is held."""
    if self._packed is None or (self._packed.buffers, self._packed.values) != (buffers, values):
      self._packed = Packed(buffers, values)
    return self._packed

  def __call__(self, buffers: Sequence[Allocation], values: Sequence[int | float], grid: Dim3, block: Dim3,
               wait: bool = False) -> float | None:
    device = self.device
    with device.users:
      with device.lock:
        events = (device.event(), device.event()) if wait else None
        if events: device.call("cuEventRecord", events[0], device.stream)
        packed = self.packed(len(buffers), len(values))
        packed.fill([device.address(b) for b in buffers], values)
        if self.dynamic_bytes: self.allow(self.dynamic_bytes)
        device.call("cuLaunchKernel", self.function, *grid, *block, self.dynamic_bytes, device.stream, packed.places,
                    None)
        if events: device.call("cuEventRecord", events[1], device.stream)
      if not events: return None
      try:
        device.call("cuEventSynchronize", events[1])
        elapsed = ctypes.c_float()
        device.call("cuEventElapsedTime_v2" if device.has("cuEventElapsedTime_v2") else "cuEventElapsedTime",
                    ctypes.byref(elapsed), *events)
      finally:
        for event in events: device.release("cuEventDestroy_v2", event)
      return elapsed.value * 1e-3


class Packed:
  """The arguments of a kernel as cuLaunchKernel takes them: a place for each, and a list of the places."""

  def __init__(self, buffers: int, values: int) -> None:
    self.buffers, self.values = buffers, values
    self._pointers, self._numbers = (ctypes.c_uint64 * max(buffers, 1))(), (ctypes.c_int32 * max(values, 1))()
    at, then = ctypes.addressof(self._pointers), ctypes.addressof(self._numbers)
    places = [at + 8 * i for i in range(buffers)] + [then + 4 * i for i in range(values)]
    self.places = (ctypes.c_void_p * max(len(places), 1))(*places)

  def fill(self, addresses: Sequence[int], values: Sequence[int | float]) -> None:
    """Put the arguments in."""
    self._pointers[:self.buffers] = list(addresses)
    if values: self._numbers[:self.values] = [int(v) for v in values]


class GraphRunner(Runner):
  """Launches as one CUgraph, in their order. Nodes are told what has changed since the time before."""

  def __init__(self, launches: Sequence[Launch]) -> None:
    super().__init__(launches)
    self._device: CudaRuntime = launches[0].program.device  # type: ignore[attr-defined]
    self._nodes: list[int] = []
    self._graph = self._exec = 0
    self._known: list[tuple[Any, ...]] = []
    self._packed: list[Packed] = []

  def __call__(self, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
               grids: Sequence[Dim3] | None = None) -> None:
    device = self._device
    with device.users:
      now = [(tuple(device.address(memory[k]) for k in l.buffers), tuple(values[n]) if values else (),
              l.grid if grids is None else grids[n])
             for n, l in enumerate(self.launches)]
      with device.lock:
        if not self._exec: self._build(now)
        else:
          for n, (new, old) in enumerate(zip(now, self._known)):
            if new != old: self._change(n, new)
        self._known = now
        device.call("cuGraphLaunch", self._exec, device.stream)

  def _params(self, n: int, arguments: tuple[Any, ...]) -> Any:
    launch, packed, (addresses, numbers, grid) = self.launches[n], self._packed[n], arguments
    packed.fill(addresses, numbers)
    program: Any = launch.program
    (gx, gy, gz), (bx, by, bz) = grid, launch.block
    return cuda.CUDA_KERNEL_NODE_PARAMS_v2(
      func=program.function, gridDimX=gx, gridDimY=gy, gridDimZ=gz, blockDimX=bx, blockDimY=by, blockDimZ=bz,
      sharedMemBytes=program.dynamic_bytes, kernelParams=ctypes.addressof(packed.places))

  def _build(self, now: Sequence[tuple[Any, ...]]) -> None:
    device = self._device
    self._graph = device.library.handle("cuGraphCreate", 0)
    self._packed = [Packed(len(a), len(v)) for a, v, _ in now]
    for launch in self.launches:
      program: Any = launch.program
      program.allow(program.dynamic_bytes)
    for n, arguments in enumerate(now):
      before = (ctypes.c_uint64 * 1)(self._nodes[-1] if self._nodes else 0)
      self._nodes.append(device.library.handle(
        "cuGraphAddKernelNode_v2", self._graph, before if self._nodes else None, len(self._nodes[-1:]),
        ctypes.byref(self._params(n, arguments))))
    self._exec = device.library.handle("cuGraphInstantiateWithFlags", self._graph, 0)
    device.owned |= {self._graph: "cuGraphDestroy", self._exec: "cuGraphExecDestroy"}

  def _change(self, n: int, arguments: tuple[Any, ...]) -> None:
    self._device.call("cuGraphExecKernelNodeSetParams_v2", self._exec, self._nodes[n],
                      ctypes.byref(self._params(n, arguments)))

  def __del__(self) -> None:
    for handle in (self._exec, self._graph):
      if handle: self._device.give_back(handle)


class CudaRuntime(Runtime):
  """The CUDA device of that number. Raises DeviceError where there is none.

  `signature` tells what a launch has to know of a kernel of a PTX module's text; without it, the driver is asked.
  """
  clock = Whose.CARD

  texture_headers = False  # handles of textures are the driver's, which makes them of descriptions

  def __init__(self, library: Any, index: int = 0, name: str = "CUDA"):
    self.name, self.index = name, index
    self.library = Library(library)
    self.call = self.library.call
    self.lock, self.closed, self.pid = lock(), True, os.getpid()
    self.owned: dict[int, str] = {}  # what is to be given back, and how
    self.lost: DeviceError | None = None
    self.examine: Callable[[], Sequence[str]] | None = None  # who waits for whom, when the context is lost
    self.signature: Callable[[bytes, str], PtxKernel] | None = None
    self._limits: dict[int, float] = {}  # by thread: how many seconds it waits
    self.call("cuInit", 0)
    self.count = self.library.number(ctypes.c_int32, "cuDeviceGetCount")
    if index >= self.count: raise DeviceError(f"no CUDA device {index}; there are {self.count}", where=name)
    self.device = self.library.number(ctypes.c_int32, "cuDeviceGet", index)
    self.capability = (self.attribute(cuda.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                       self.attribute(cuda.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
    self.context = self.library.handle("cuDevicePrimaryCtxRetain", self.device)
    self.closed = False
    self.users = ContextUsers(self)
    with self.users: self.stream = self.library.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING)
    self._modules: dict[bytes, int] = {}
    self._allocated: set[int] = set()  # addresses
    self._peers: set[int] = set()

  @property
  def processor(self) -> str:
    """The device's compute capability: "sm_90"."""
    return f"sm_{self.capability[0]}{self.capability[1]}"

  def attribute(self, number: int) -> int:
    """One of CU_DEVICE_ATTRIBUTE_*."""
    return self.library.number(ctypes.c_int32, "cuDeviceGetAttribute", number, self.device)

  def has(self, name: str) -> bool:
    """Whether this driver has a function."""
    try: self.library.function(name)
    except DeviceError: return False
    return True

  def describe(self) -> str:
    room = ctypes.create_string_buffer(_NAME)
    self.call("cuDeviceGetName", room, _NAME, self.device)
    major, minor = divmod(self.library.number(ctypes.c_int32, "cuDriverGetVersion"), 1000)
    return f"{room.value.decode(errors='replace')} ({self.processor}) through CUDA {major}.{minor // 10}"

  def siblings(self) -> int: return self.count

  # ---- calls

  def check(self) -> None:
    """Raise DeviceError where the device cannot be used from here."""
    if os.getpid() != self.pid:
      raise DeviceError(f"opened by process {self.pid} and used by its fork {os.getpid()}", where=self.name,
                        hint="CUDA does not pass through fork: open it in the child alone")
    if self.closed: raise DeviceError("the device was closed", where=self.name)
    if self.lost is not None: raise self.lost.again()  # a new one: an error that was raised keeps its frames

  def run(self, name: str, *arguments: Any) -> None:
    """A call whose error is the device's."""
    try: self.call(name, *arguments)
    except DeviceError as error:
      raise self.told(error) from None

  def told(self, error: DeviceError) -> DeviceError:
    """The error as the device's; one that has cost it the context is kept, and says how to get on."""
    if getattr(error, "code", 0) not in LOST: return error
    first, *rest = error.message.split("\n")
    way_on = f"the context is lost with its memory; Device[{self.name!r}].reset() makes a new one"
    facts = () if self.examine is None else tuple(self.examine())
    self.lost = DeviceError("\n".join([f"{first}: {way_on}", *rest]), where=self.name, facts=facts)
    return self.lost.again()

  def raise_faults(self) -> None:
    """Raise what queued work has left."""
    self.synchronize()

  def event(self) -> int: return self.library.handle("cuEventCreate", 0)

  def release(self, how: str, handle: int) -> None:
    """Give something back, whatever state the context is in."""
    self.library.function(how)(handle)

  def give_back(self, handle: int) -> None:
    """Give an owned thing back, once. Takes no lock: finalizers do it, wherever they run."""
    if os.getpid() != self.pid or self.closed: return
    if (how := self.owned.pop(handle, None)) is not None: self.library.function(how)(handle)

  # ---- memory

  def alloc(self, nbytes: int) -> Allocation:
    if nbytes <= 0: raise InvalidArgument(f"cannot allocate {nbytes} bytes", where=self.name)
    with self.users:
      try: address = self.library.handle("cuMemAlloc_v2", nbytes)
      except DeviceError as error:
        if getattr(error, "code", 0) != cuda.CUDA_ERROR_OUT_OF_MEMORY: raise self.told(error) from None
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        raise OutOfMemory(self.name, nbytes, free.value) from None
      self._allocated.add(address)
      return Allocation(address, nbytes)

  def free(self, allocation: Allocation) -> None:
    address, allocation.address = allocation.address, None
    if address is None: return
    if self.lost is not None and not self.closed: return  # its memory is gone already
    with self.users:
      self._allocated.discard(address)  # before it may be another's
      self.run("cuMemFree_v2", address)

  def address(self, allocation: Allocation, nbytes: int = 0) -> int:
    """Where memory is, which has so many bytes."""
    if allocation.address is None: raise InvalidArgument("the allocation was freed", where=self.name)
    if nbytes > allocation.size:
      raise InvalidArgument(f"a copy of {nbytes:,} bytes, but the allocation has {allocation.size:,}", where=self.name)
    return allocation.address

  def copyin(self, dst: Allocation, data: memoryview) -> None:
    with self.users:
      address = self.address(dst, data.nbytes)
      if not data.nbytes: return
      host = np.frombuffer(data.cast("B"), np.uint8)
      self.run("cuMemcpyHtoDAsync_v2", address, host.ctypes.data, data.nbytes, self.stream)
      self.run("cuStreamSynchronize", self.stream)  # pinned memory is read later than the call returns

  def copyout(self, dst: memoryview, src: Allocation) -> None:
    with self.users:
      address = self.address(src, dst.nbytes)
      if not dst.nbytes: return
      host = np.frombuffer(dst.cast("B"), np.uint8)
      self.run("cuMemcpyDtoHAsync_v2", host.ctypes.data, address, dst.nbytes, self.stream)
      self.run("cuStreamSynchronize", self.stream)

  def copy(self, dst: Allocation, src: Allocation, nbytes: int) -> None:
    with self.users:
      target, source = self.address(dst, nbytes), self.address(src, nbytes)
      if not nbytes or source == target: return
      self.run("cuMemcpyAsync", target, source, nbytes, self.stream)  # by unified addresses, also those of a peer

  def is_peer(self, other: Runtime) -> bool:
    return other is self or isinstance(other, CudaRuntime) and other.library._library is self.library._library

  # ---- programs

  def load(self, binary: bytes, kernel: str) -> Program:
    with self.users:
      return CudaProgram(self, kernel, self._function(self._module(binary, kernel), kernel))

  def load_kernel(self, binary: bytes, kernel: str) -> CudaProgram:
    """A kernel of PTX, or of a cubin, for launches with parameters of any kind.

    What its parameters are says the PTX, also that in a cubin; without any, the driver says where they are.
    """
    with self.users:
      module = self._module(binary, kernel)
      text, told = ptx_of(binary), None
      if text is not None and self.signature is not None: told = self.signature(text, kernel)  # names those there are
      function = self._function(module, kernel)
      return CudaProgram(self, kernel, function, self.parameters(function, kernel) if told is None else told)

  def parameters(self, function: int, kernel: str) -> PtxKernel:
    """What the driver says of a kernel's parameters."""
    found: list[Argument] = []
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    asked = self.library.function("cuFuncGetParamInfo")
    while True:
      code = asked(function, len(found), ctypes.byref(offset), ctypes.byref(size))
      if code == cuda.CUDA_ERROR_INVALID_VALUE: break
      if code != cuda.CUDA_SUCCESS: raise self.library.failed("cuFuncGetParamInfo", code)
      kind = "pointer_or_value" if size.value == 8 else "by_value"
      found.append(Argument(f"parameter {len(found)}", kind, offset.value, size.value))
    end = max((a.offset + a.size for a in found), default=0)
    shared = self.library.number(ctypes.c_int32, "cuFuncGetAttribute", cuda.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                 function)
    return PtxKernel(kernel, tuple(found), end, shared, (None,) * len(found))

  def loaded(self) -> list[tuple[int, CodeObject]]:
    """AMD's code objects in memory: none."""
    return []

  def _module(self, binary: bytes, kernel: str) -> int:
    with self.lock:
      module = self._modules.get(binary)
      if module is None: module = self._modules[binary] = self._loaded(binary, kernel)
      return module

  def _function(self, module: int, kernel: str) -> int:
    try: return self.library.handle("cuModuleGetFunction", module, kernel.encode())
    except DeviceError as error:
      raise DeviceError(f"kernel {kernel!r} does not load: {error.message}", where=self.name) from None

  def _loaded(self, binary: bytes, kernel: str) -> int:
    log = ctypes.create_string_buffer(LOG)
    options = (ctypes.c_int32 * 2)(cuda.CU_JIT_ERROR_LOG_BUFFER, cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG)
    text = ctypes.create_string_buffer(binary)
    try: return self.library.handle("cuModuleLoadDataEx", text, 2, options, values)
    except DeviceError as error:
      said = " ".join(log.value.decode(errors="replace").split())
      raise DeviceError(f"kernel {kernel!r} does not load: {said or error.message}", where=self.name) from None

  def runner(self, launches: Sequence[Launch]) -> Runner:
    return GraphRunner(launches) if launches else Runner(launches)

  def synchronize(self) -> None:
    with self.users:
      seconds = self._limits.get(threading.get_ident())
      if seconds is not None: self._wait(seconds)
      self.run("cuStreamSynchronize", self.stream)

  @contextmanager
  def limited(self, seconds: float) -> Iterator[None]:
    """In the block the calling thread waits so long."""
    with within(self._limits, seconds): yield

  def _wait(self, seconds: float) -> None:
    """Wait for what is queued. Raises WaitTimeout when the time is over: what still runs, only a new context ends."""
    end, query = time.monotonic() + seconds, self.library.function("cuStreamQuery")
    while (code := query(self.stream)) == cuda.CUDA_ERROR_NOT_READY:
      if time.monotonic() >= end:
        self.lost = DeviceError(f"work still ran after {seconds:.3g} s; Device[{self.name!r}].reset() makes a new "
                                "context", where=self.name)
        raise WaitTimeout(self.name, packet="a stream", seconds=seconds)
      time.sleep(_POLL_S)
    if code != cuda.CUDA_SUCCESS: raise self.told(self.library.failed("cuStreamQuery", code))

  def close(self) -> None:
    if self.closed: return
    if os.getpid() != self.pid:  # all is the parent's
      self.closed = True
      return
    if not self.users.shut(): return
    self.library.function("cuCtxSetCurrent")(self.context)
    # Each by itself: the context may be another library's, too, and outlive this.
    while self.owned:
      handle, how = self.owned.popitem()
      self.library.function(how)(handle)
    for module in self._modules.values(): self.library.function("cuModuleUnload")(module)
    for address in tuple(self._allocated): self.library.function("cuMemFree_v2")(address)
    self.library.function("cuStreamDestroy_v2")(self.stream)
    self.library.function("cuCtxSetCurrent")(None)
    self.library.function("cuDevicePrimaryCtxReset_v2" if self.lost else "cuDevicePrimaryCtxRelease_v2")(self.device)
