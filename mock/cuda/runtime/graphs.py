"""The runtime's functions of graphs whose parameters differ from the driver's: kernels by functions of the host, copies
by cudaMemcpy3DParms or a count of bytes, contexts that are the current one."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.memory.arrays import place
from tinyhw.mock.cuda.runtime.functions import Refusal, Runtime, runs
from tinyhw.mock.cuda.runtime.memory import box_of, fill_side, part, sides

Struct = Any


def _kernel(r: Runtime, given: Any) -> cuda.CUDA_KERNEL_NODE_PARAMS_v2:
  grid, block = given.gridDim, given.blockDim
  return cuda.CUDA_KERNEL_NODE_PARAMS_v2(
    func=r.kernel(given.func), gridDimX=grid.x, gridDimY=grid.y, gridDimZ=grid.z, blockDimX=block.x, blockDimY=block.y,
    blockDimZ=block.z, sharedMemBytes=given.sharedMemBytes, kernelParams=given.kernelParams, extra=given.extra)


def _kernel_at(r: Runtime, pointer: int) -> Struct: return _kernel(r, r.struct(cudart.cudaKernelNodeParams, pointer))


def _copy_at(r: Runtime, pointer: int) -> Struct:
  given = r.struct(cudart.cudaMemcpy3DParms, pointer)
  return box_of(r, given, given.kind)


def _line(to: int, come: int, count: int, kind: int) -> cuda.CUDA_MEMCPY3D:
  """A copy of bytes."""
  first, last = sides(kind)
  box = cuda.CUDA_MEMCPY3D(WidthInBytes=count, Height=1, Depth=1)
  fill_side(box, "src", first, come, count)
  fill_side(box, "dst", last, to, count)
  return box


def _line_to_symbol(r: Runtime, symbol: int, come: int, count: int, offset: int, kind: int) -> Struct:
  return _line(part(r, symbol, count, offset), come, count, kind)


def _line_from_symbol(r: Runtime, to: int, symbol: int, count: int, offset: int, kind: int) -> Struct:
  return _line(to, part(r, symbol, count, offset), count, kind)


def _fill_at(r: Runtime, pointer: int) -> Struct: return r.struct(cudart.cudaMemsetParams, pointer)  # the driver's


def _registered(node: str, name: str, suffix: str, make: Callable[..., Struct], context: bool) -> None:
  """Adding nodes of a kind, and setting their parameters."""
  def add(r: Runtime, out: int, graph: int, after: int, count: int, *given: int) -> None:
    current = (r.context(),) if context else ()
    params = make(r, *given)
    r.call(f"cuGraphAdd{name}Node{suffix}", out, graph, after, count, ctypes.addressof(params), *current)

  def put(r: Runtime, handle: int, *given: int) -> None:
    params = make(r, *given)
    r.call(f"cuGraph{name}NodeSetParams{suffix}", handle, ctypes.addressof(params))

  def put_ready(r: Runtime, ready: int, handle: int, *given: int) -> None:
    current = (r.context(),) if context else ()
    params = make(r, *given)
    r.call(f"cuGraphExec{name}NodeSetParams{suffix}", ready, handle, ctypes.addressof(params), *current)
  runs(f"cudaGraphAdd{name}Node{node}")(add)
  if f"cudaGraph{name}NodeSetParams{node}" != "cudaGraphMemsetNodeSetParams":  # which is the driver's
    runs(f"cudaGraph{name}NodeSetParams{node}")(put)
  runs(f"cudaGraphExec{name}NodeSetParams{node}")(put_ready)


_registered("", "Kernel", "_v2", _kernel_at, False)
_registered("", "Memcpy", "", _copy_at, True)
_registered("1D", "Memcpy", "", lambda r, *given: _line(*given), True)
_registered("ToSymbol", "Memcpy", "", _line_to_symbol, True)
_registered("FromSymbol", "Memcpy", "", _line_from_symbol, True)
_registered("", "Memset", "", _fill_at, True)


@runs("cudaGraphKernelNodeGetParams")
def graph_kernel_node_get_params(r: Runtime, handle: int, out: int) -> None:
  found = cuda.CUDA_KERNEL_NODE_PARAMS_v2()
  r.call("cuGraphKernelNodeGetParams_v2", handle, ctypes.addressof(found))
  host = next((at for at in r.kernels if r.loaded_kernel(at) == found.func), 0)
  told = cudart.cudaKernelNodeParams(func=host, sharedMemBytes=found.sharedMemBytes, kernelParams=found.kernelParams,
                                     extra=found.extra)
  for axis in "XYZ":
    setattr(told.gridDim, axis.lower(), getattr(found, f"gridDim{axis}"))
    setattr(told.blockDim, axis.lower(), getattr(found, f"blockDim{axis}"))
  r.told(out, told)


@runs("cudaGraphConditionalHandleCreate")
def graph_conditional_handle_create(r: Runtime, out: int, graph: int, default: int, flags: int) -> None:
  r.call("cuGraphConditionalHandleCreate", out, graph, r.context(), default, flags)


def _any(r: Runtime, pointer: int) -> cuda.CUgraphNodeParams:
  """A cudaGraphNodeParams as the driver has it; kinds of nodes have its numbers."""
  given = r.struct(cudart.cudaGraphNodeParams, pointer)
  out = cuda.CUgraphNodeParams(type=given.type)
  kind = given.type
  if kind == cudart.cudaGraphNodeTypeKernel:
    found = _kernel(r, given.kernel)
    for name, *_ in cuda.CUDA_KERNEL_NODE_PARAMS_v2._fields_: setattr(out.kernel, name, getattr(found, name))
  elif kind == cudart.cudaGraphNodeTypeMemcpy:
    out.memcpy.copyParams = box_of(r, given.memcpy.copyParams, given.memcpy.copyParams.kind)
  elif kind == cudart.cudaGraphNodeTypeMemset:
    for name in ("dst", "pitch", "value", "elementSize", "width", "height"):
      setattr(out.memset, name, getattr(given.memset, name))
  elif kind == cudart.cudaGraphNodeTypeConditional:
    for name in ("handle", "type", "size"): setattr(out.conditional, name, getattr(given.conditional, name))
    out.conditional.ctx = r.context()
  elif kind in (cudart.cudaGraphNodeTypeHost, cudart.cudaGraphNodeTypeGraph, cudart.cudaGraphNodeTypeWaitEvent,
                cudart.cudaGraphNodeTypeEventRecord, cudart.cudaGraphNodeTypeMemFree,
                cudart.cudaGraphNodeTypeMemAlloc):
    out.reserved1 = given.reserved1  # the same words
  elif kind != cudart.cudaGraphNodeTypeEmpty:
    raise Refusal(cudart.cudaErrorNotSupported, f"nodes of kind {kind} are not modelled")
  return out


@runs("cudaGraphAddNode")
def graph_add_node(r: Runtime, out: int, graph: int, after: int, edges: int, count: int, params: int) -> None:
  given = _any(r, params)
  r.call("cuGraphAddNode_v2", out, graph, after, edges, count, ctypes.addressof(given))
  union = place(cudart.cudaGraphNodeParams, "reserved1")
  if given.type == cudart.cudaGraphNodeTypeConditional:
    at = params + union + place(cudart.cudaConditionalNodeParams, "phGraph_out")
    r.machine.out(at, "Q", given.conditional.phGraph_out)
  elif given.type == cudart.cudaGraphNodeTypeMemAlloc:
    r.machine.out(params + union + place(cudart.cudaMemAllocNodeParamsV2, "dptr"), "Q", given.alloc.dptr)


@runs("cudaGraphNodeSetParams")
def graph_node_set_params(r: Runtime, handle: int, params: int) -> None:
  given = _any(r, params)
  r.call("cuGraphNodeSetParams", handle, ctypes.addressof(given))


@runs("cudaGraphExecNodeSetParams")
def graph_exec_node_set_params(r: Runtime, ready: int, handle: int, params: int) -> None:
  given = _any(r, params)
  r.call("cuGraphExecNodeSetParams", ready, handle, ctypes.addressof(given))
