"""What the runtime calls of the driver, with which arguments: its functions one by one, with numbers that tell them
apart. Nothing is behind them here; what the driver does is for other tests."""
from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.memory.arrays import Array
from tinyhw.mock.cuda.runtime import arrays as runtime_arrays
from tinyhw.mock.cuda.runtime import graphs as runtime_graphs
from tinyhw.mock.cuda.runtime import memory as runtime_memory
from tinyhw.mock.cuda.runtime.functions import RUNS, Refusal
from tinyhw.mock.memory import UserMemory

assert runtime_arrays and runtime_graphs
CONTEXT, KERNEL, VARIABLE, WHOLE, ARRAY = 77, 88, 0x5000, 64, 0x900
HOST, DEVICE, UNIFIED = cuda.CU_MEMORYTYPE_HOST, cuda.CU_MEMORYTYPE_DEVICE, cuda.CU_MEMORYTYPE_UNIFIED
KINDS = {cudart.cudaMemcpyHostToHost: (HOST, HOST), cudart.cudaMemcpyHostToDevice: (HOST, DEVICE),
         cudart.cudaMemcpyDeviceToHost: (DEVICE, HOST), cudart.cudaMemcpyDeviceToDevice: (DEVICE, DEVICE),
         cudart.cudaMemcpyDefault: (UNIFIED, UNIFIED)}
UP, DOWN = cudart.cudaMemcpyHostToDevice, cudart.cudaMemcpyDeviceToHost


class Driver:
  """A runtime whose driver notes what it is called with; structs as their bytes."""

  def __init__(self) -> None:
    self.calls: list[tuple[Any, ...]] = []
    self.machine, self.user, self.handles = self, UserMemory(), {ARRAY: Array.__new__(Array)}
    self.handles[ARRAY].size, self.handles[ARRAY].flags = (1, 2, 3), 5
    self.outs: dict[int, tuple[Any, ...]] = {}
    self.current = 0

  def context(self) -> int:
    self.current += 1
    return CONTEXT

  def initialize(self) -> None: self.current += 1
  def kernel(self, function: int) -> int: return KERNEL + function + 0 * self.context()
  def variable(self, symbol: int) -> tuple[int, int]: return VARIABLE + symbol + 0 * self.context(), WHOLE
  def element(self, array: int) -> int: return 4
  def out(self, pointer: int, form: str, *values: Any) -> None: self.outs[pointer] = (form, *values)

  def struct(self, kind: Any, pointer: int) -> Any:
    return kind.from_buffer_copy(ctypes.string_at(pointer, ctypes.sizeof(kind)))

  def call(self, name: str, *arguments: Any) -> None:
    kinds = {"cuMemcpy3D_v2": 0, "cuMemcpy3DAsync_v2": 0, "cuGraphAddMemcpyNode": 4, "cuGraphAddKernelNode_v2": 4}
    at = kinds.get(name)
    if at is not None:
      kind = cuda.CUDA_KERNEL_NODE_PARAMS_v2 if "Kernel" in name else cuda.CUDA_MEMCPY3D
      box = kind.from_buffer_copy(ctypes.string_at(arguments[at], ctypes.sizeof(kind)))
      told = {n: getattr(box, n) for n, *_ in kind._fields_ if "reserved" not in n}
      arguments = (*arguments[:at], {n: v for n, v in told.items() if v}, *arguments[at + 1:])
    self.calls.append((name, *arguments))


def called(name: str, *given: Any) -> list[tuple[Any, ...]]:
  r, (handler, within) = Driver(), RUNS[name]
  run: Any = handler
  run(r, *given)
  assert within, "a program's first call makes a context"
  return r.calls


COPIED = {UP: "cuMemcpyHtoD", DOWN: "cuMemcpyDtoH", cudart.cudaMemcpyDeviceToDevice: "cuMemcpyDtoD"}
CALLS: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [
  ("cudaFree", (1,), ("cuMemFree_v2", 1)), ("cudaMalloc", (1, 2), ("cuMemAlloc_v2", 1, 2)),
  ("cudaMallocHost", (1, 2), ("cuMemAllocHost_v2", 1, 2)),
  *((("cudaMemcpy", (1, 2, 3, k), (f"{n}_v2", 1, 2, 3))) for k, n in COPIED.items()),
  *((("cudaMemcpyAsync", (1, 2, 3, k, 4), (f"{n}Async_v2", 1, 2, 3, 4))) for k, n in COPIED.items()),
  *(("cudaMemcpy", (1, 2, 3, k), ("cuMemcpy", 1, 2, 3)) for k in KINDS if k not in COPIED),
  *(("cudaMemcpyAsync", (1, 2, 3, k, 4), ("cuMemcpyAsync", 1, 2, 3, 4)) for k in KINDS if k not in COPIED),
  ("cudaMemcpyPeer", (1, 2, 3, 4, 5), ("cuMemcpy", 1, 3, 5)),
  ("cudaMemcpyPeerAsync", (1, 2, 3, 4, 5, 6), ("cuMemcpyAsync", 1, 3, 5, 6)),
  ("cudaMemset", (1, 0x102, 3), ("cuMemsetD8_v2", 1, 2, 3)),
  ("cudaMemsetAsync", (1, 0x102, 3, 4), ("cuMemsetD8Async", 1, 2, 3, 4)),
  ("cudaMemset2D", (1, 2, 0x103, 4, 5), ("cuMemsetD2D8_v2", 1, 2, 3, 4, 5)),
  ("cudaMemset2DAsync", (1, 2, 0x103, 4, 5, 6), ("cuMemsetD2D8Async", 1, 2, 3, 4, 5, 6)),
  ("cudaMallocPitch", (1, 2, 3, 4), ("cuMemAllocPitch_v2", 1, 2, 3, 4, 4)),
  ("cudaMemPoolExportToShareableHandle", (1, 2, 3, 4), ("cuMemPoolExportToShareableHandle", 1, 2, 3, 4)),
  ("cudaMemPoolImportFromShareableHandle", (1, 2, 3, 4), ("cuMemPoolImportFromShareableHandle", 1, 2, 3, 4)),
  ("cudaHostGetFlags", (1, 2), ("cuMemHostGetFlags", 1, 2)),
  ("cudaMemAdvise", (1, 2, 3, cudart.cudaMemLocation(type=1, id=-1)),
   ("cuMemAdvise_v2", 1, 2, 3, 0xFFFF_FFFF_0000_0001)),
  ("cudaMemPrefetchAsync", (1, 2, cudart.cudaMemLocation(type=2, id=3), 4, 5),
   ("cuMemPrefetchAsync_v2", 1, 2, 0x3_0000_0002, 4, 5)),
  ("cudaMemcpyToSymbol", (1, 2, 3, 4, UP), ("cuMemcpyHtoD_v2", VARIABLE + 5, 2, 3)),
  ("cudaMemcpyFromSymbol", (1, 2, 3, 4, DOWN), ("cuMemcpyDtoH_v2", 1, VARIABLE + 6, 3)),
  ("cudaMemcpyToSymbolAsync", (1, 2, 3, 4, UP, 5), ("cuMemcpyHtoDAsync_v2", VARIABLE + 5, 2, 3, 5)),
  ("cudaMemcpyFromSymbolAsync", (1, 2, 3, 4, DOWN, 5), ("cuMemcpyDtoHAsync_v2", 1, VARIABLE + 6, 3, 5)),
  ("cudaFuncSetAttribute", (1, 2, 3), ("cuFuncSetAttribute", KERNEL + 1, 2, 3)),
  ("cudaFuncSetCacheConfig", (1, 2), ("cuFuncSetCacheConfig", KERNEL + 1, 2)),
  ("cudaOccupancyMaxActiveBlocksPerMultiprocessor", (1, 2, 3, 4),
   ("cuOccupancyMaxActiveBlocksPerMultiprocessor", 1, KERNEL + 2, 3, 4)),
  ("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", (1, 2, 3, 4, 5),
   ("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 1, KERNEL + 2, 3, 4, 5)),
  ("cudaOccupancyMaxActiveClusters", (1, 2, 3), ("cuOccupancyMaxActiveClusters", 1, KERNEL + 2, 3)),
  ("cudaStreamCreate", (1,), ("cuStreamCreate", 1, 0)), ("cudaEventCreate", (1,), ("cuEventCreate", 1, 0)),
  ("cudaGetMipmappedArrayLevel", (1, 2, 3), ("cuMipmappedArrayGetLevel", 1, 2, 3)),
  ("cudaFreeArray", (1,), ("cuArrayDestroy", 1)), ("cudaFreeMipmappedArray", (1,), ("cuMipmappedArrayDestroy", 1)),
  ("cudaGraphConditionalHandleCreate", (1, 2, 3, 4), ("cuGraphConditionalHandleCreate", 1, 2, CONTEXT, 3, 4)),
]


@pytest.mark.parametrize(("name", "given", "wanted"), CALLS, ids=[f"{k}-{c[0]}" for k, c in enumerate(CALLS)])
def test_what_the_driver_is_called_with(name: str, given: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
  assert called(name, *given) == [wanted]


@pytest.mark.parametrize("name", ["cudaFree", "cudaFreeArray", "cudaFreeMipmappedArray"])
def test_nothing_is_freed_of_null(name: str) -> None: assert called(name, 0) == []


def test_nothing_is_copied_or_allocated_of_no_bytes() -> None:
  assert called("cudaMemcpy", 1, 2, 0, 99) == called("cudaMemcpyAsync", 1, 2, 0, 99, 3) == []
  assert called("cudaMemcpyPeerAsync", 1, 2, 3, 4, 0, 5) == []
  for name, given, outs in (("cudaMalloc", (1, 0), {1: ("Q", 0)}), ("cudaMallocHost", (1, 0), {1: ("Q", 0)}),
                            ("cudaMallocPitch", (1, 2, 0, 4), {1: ("Q", 0), 2: ("Q", 0)}),
                            ("cudaMallocPitch", (1, 2, 3, 0), {1: ("Q", 0), 2: ("Q", 0)})):
    r = Driver()
    handler: Any = RUNS[name][0]
    handler(r, *given)
    assert r.outs == outs and not r.calls
  with pytest.raises(Refusal): called("cudaMemcpy", 1, 2, 3, 5)


def side(which: str, kind: int, address: int, pitch: int) -> dict[str, int]:
  return {f"{which}MemoryType": kind, f"{which}{'Host' if kind == HOST else 'Device'}": address, f"{which}Pitch": pitch}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [(), (9,)])
def test_boxes_of_rows(kind: int, stream: tuple[int, ...]) -> None:
  """From and to memory of the kinds that the copy names, and arrays."""
  (come, to), more = KINDS[kind], "Async" * bool(stream)
  name = f"cuMemcpy3D{more}_v2"
  rows = {"WidthInBytes": 5, "Height": 6, "Depth": 1}
  assert called(f"cudaMemcpy2D{more}", 1, 20, 3, 40, 5, 6, kind, *stream) == [
    (name, {**side("src", come, 3, 40), **side("dst", to, 1, 20), **rows}, *stream)]
  def array(which: str, handle: int, x: int, y: int) -> dict[str, int]:
    return {f"{which}{n}": v for n, v in (("MemoryType", cuda.CU_MEMORYTYPE_ARRAY), ("Array", handle), ("XInBytes", x),
                                          ("Y", y))}
  assert called(f"cudaMemcpy2DToArray{more}", 11, 12, 13, 14, 15, 5, 6, kind, *stream) == [
    (name, {**side("src", come, 14, 15), **array("dst", 11, 12, 13), **rows}, *stream)]
  assert called(f"cudaMemcpy2DFromArray{more}", 11, 12, 13, 14, 15, 5, 6, kind, *stream) == [
    (name, {**array("src", 13, 14, 15), **side("dst", to, 11, 12), **rows}, *stream)]
  if not stream:
    assert called("cudaMemcpy2DArrayToArray", 11, 12, 13, 14, 15, 16, 5, 6, kind) == [
      (name, {**array("src", 14, 15, 16), **array("dst", 11, 12, 13), **rows})]
  given = cudart.cudaMemcpy3DParms(kind=kind, extent=cudart.cudaExtent(width=5, height=6, depth=7),
                                   srcPtr=cudart.cudaPitchedPtr(ptr=1, pitch=2, xsize=3, ysize=4), dstArray=11,
                                   srcPos=cudart.cudaPos(x=21, y=22, z=23), dstPos=cudart.cudaPos(x=31, y=32, z=33))
  assert called(f"cudaMemcpy3D{more}", ctypes.addressof(given), *stream) == [(name, {
    **side("src", come, 1, 2), "srcHeight": 4, "srcXInBytes": 21, "srcY": 22, "srcZ": 23,
    **array("dst", 11, 31 * 4, 32), "dstZ": 33, "WidthInBytes": 20, "Height": 6, "Depth": 7}, *stream)]


@pytest.mark.parametrize("stream", [(), (9,)])
def test_fills_of_slices(stream: tuple[int, ...]) -> None:
  """One behind the other."""
  to = cudart.cudaPitchedPtr(ptr=1000, pitch=10, xsize=8, ysize=3)
  extent = cudart.cudaExtent(width=5, height=2, depth=3)
  more = "Async" * bool(stream)
  assert called(f"cudaMemset3D{more}", to, 0x107, extent, *stream) == [
    (f"cuMemsetD2D8{more or '_v2'}", 1000 + 30 * z, 10, 7, 5, 2, *stream) for z in range(3)]


def test_nodes_of_graphs() -> None:
  """Copies of bytes, of a variable, kernels: their parameters are the driver's."""
  row = {"WidthInBytes": 6, "Height": 1, "Depth": 1}
  assert called("cudaGraphAddMemcpyNode1D", 1, 2, 3, 4, 50, 51, 6, UP) == [
    ("cuGraphAddMemcpyNode", 1, 2, 3, 4, {**side("src", HOST, 51, 6), **side("dst", DEVICE, 50, 6), **row}, CONTEXT)]
  assert called("cudaGraphAddMemcpyNodeToSymbol", 1, 2, 3, 4, 50, 51, 6, 7, UP) == [
    ("cuGraphAddMemcpyNode", 1, 2, 3, 4, {**side("src", HOST, 51, 6), **side("dst", DEVICE, VARIABLE + 57, 6), **row},
     CONTEXT)]
  assert called("cudaGraphAddMemcpyNodeFromSymbol", 1, 2, 3, 4, 50, 51, 6, 7, DOWN) == [
    ("cuGraphAddMemcpyNode", 1, 2, 3, 4, {**side("src", DEVICE, VARIABLE + 58, 6), **side("dst", HOST, 50, 6), **row},
     CONTEXT)]
  given = cudart.cudaKernelNodeParams(func=5, gridDim=cudart.dim3(x=11, y=12, z=13),
                                      blockDim=cudart.dim3(x=14, y=15, z=16), sharedMemBytes=17, kernelParams=18,
                                      extra=19)
  wanted = {"func": KERNEL + 5, "gridDimX": 11, "gridDimY": 12, "gridDimZ": 13, "blockDimX": 14, "blockDimY": 15,
            "blockDimZ": 16, "sharedMemBytes": 17, "kernelParams": 18, "extra": 19}
  assert called("cudaGraphAddKernelNode", 1, 2, 3, 4, ctypes.addressof(given)) == [
    ("cuGraphAddKernelNode_v2", 1, 2, 3, 4, wanted)]


@pytest.mark.parametrize(("offset", "size", "right"), [(0, WHOLE, True), (WHOLE, 0, True), (1, WHOLE, False),
                                                       (WHOLE, 1, False), (WHOLE + 1, 0, False)])
def test_parts_of_variables(offset: int, size: int, right: bool) -> None:
  r: Any = Driver()
  if right: assert runtime_memory.part(r, 3, size, offset) == VARIABLE + 3 + offset
  else:
    with pytest.raises(Refusal): runtime_memory.part(r, 3, size, offset)
