"""The runtime's functions of memory: allocations, copies, fills, variables."""
from __future__ import annotations

import ctypes
from typing import Any

from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.memory.allocations import rectangle
from tinyhw.mock.cuda.memory.arrays import place
from tinyhw.mock.cuda.runtime.functions import Refusal, Runtime, runs


@runs("cudaFree")
def free(r: Runtime, address: int) -> None:
  if address: r.call("cuMemFree_v2", address)


@runs("cudaMalloc")
def malloc(r: Runtime, out: int, size: int) -> None: _made(r, "cuMemAlloc_v2", out, size)


@runs("cudaMallocHost")
def malloc_host(r: Runtime, out: int, size: int) -> None: _made(r, "cuMemAllocHost_v2", out, size)


def _made(r: Runtime, name: str, out: int, size: int) -> None:
  """Memory; none at all is a null pointer, and no error as in the driver."""
  if size: r.call(name, out, size)
  else: r.machine.out(out, "Q", 0)


@runs("cudaMemcpy")
def memcpy(r: Runtime, to: int, come: int, size: int, kind: int) -> None:
  _copy(r, to, come, size, kind, ())


@runs("cudaMemcpyAsync")
def memcpy_async(r: Runtime, to: int, come: int, size: int, kind: int, stream: int) -> None:
  _copy(r, to, come, size, kind, (stream,))


def _copy(r: Runtime, to: int, come: int, size: int, kind: int, stream: tuple[int, ...]) -> None:
  if not size: return  # pointers of no bytes may be anything
  names = {cudart.cudaMemcpyHostToDevice: "cuMemcpyHtoD", cudart.cudaMemcpyDeviceToHost: "cuMemcpyDtoH",
           cudart.cudaMemcpyDeviceToDevice: "cuMemcpyDtoD", cudart.cudaMemcpyHostToHost: "cuMemcpy",
           cudart.cudaMemcpyDefault: "cuMemcpy"}
  if kind not in names: raise Refusal(cudart.cudaErrorInvalidMemcpyDirection, f"a copy of kind {kind}")
  plain = names[kind] == "cuMemcpy"
  r.call(names[kind] + ("Async" if stream else "") + ("" if plain else "_v2"), to, come, size, *stream)


@runs("cudaMemcpyPeer")
def memcpy_peer(r: Runtime, to: int, to_device: int, come: int, from_device: int, size: int) -> None:
  r.call("cuMemcpy", to, come, size)  # one address space


@runs("cudaMemset")
def memset(r: Runtime, to: int, value: int, size: int) -> None:
  r.call("cuMemsetD8_v2", to, value & 0xFF, size)


@runs("cudaMemsetAsync")
def memset_async(r: Runtime, to: int, value: int, size: int, stream: int) -> None:
  r.call("cuMemsetD8Async", to, value & 0xFF, size, stream)


@runs("cudaMemcpyToSymbol")
def memcpy_to_symbol(r: Runtime, symbol: int, come: int, size: int, offset: int, kind: int) -> None:
  _copy(r, part(r, symbol, size, offset), come, size, kind, ())


@runs("cudaMemcpyFromSymbol")
def memcpy_from_symbol(r: Runtime, to: int, symbol: int, size: int, offset: int, kind: int) -> None:
  _copy(r, to, part(r, symbol, size, offset), size, kind, ())


@runs("cudaMemcpyToSymbolAsync")
def memcpy_to_symbol_async(r: Runtime, symbol: int, come: int, size: int, offset: int, kind: int,
                           stream: int) -> None:
  _copy(r, part(r, symbol, size, offset), come, size, kind, (stream,))


@runs("cudaMemcpyFromSymbolAsync")
def memcpy_from_symbol_async(r: Runtime, to: int, symbol: int, size: int, offset: int, kind: int,
                             stream: int) -> None:
  _copy(r, to, part(r, symbol, size, offset), size, kind, (stream,))


@runs("cudaMemPoolExportToShareableHandle")
def pool_export(r: Runtime, out: int, pool: int, kind: int, flags: int) -> None:
  """The driver's flags have 64 bits."""
  r.call("cuMemPoolExportToShareableHandle", out, pool, kind, flags)


@runs("cudaMemPoolImportFromShareableHandle")
def pool_import(r: Runtime, out: int, handle: int, kind: int, flags: int) -> None:
  r.call("cuMemPoolImportFromShareableHandle", out, handle, kind, flags)


def part(r: Runtime, symbol: int, size: int, offset: int) -> int:
  """Where bytes of a variable lie."""
  address, whole = r.variable(symbol)
  if offset + size > whole:
    raise Refusal(cudart.cudaErrorInvalidValue, f"{size} bytes at {offset} of a variable of {whole}")
  return address + offset


@runs("cudaGetSymbolAddress")
def get_symbol_address(r: Runtime, out: int, symbol: int) -> None: r.machine.out(out, "Q", r.variable(symbol)[0])


@runs("cudaGetSymbolSize")
def get_symbol_size(r: Runtime, out: int, symbol: int) -> None: r.machine.out(out, "Q", r.variable(symbol)[1])


@runs("cudaPointerGetAttributes")
def pointer_get_attributes(r: Runtime, out: int, address: int) -> None:
  found = cudart.cudaPointerAttributes(type=cudart.cudaMemoryTypeUnregistered, device=-2, hostPointer=address)
  piece = r.machine.pieces.at(address)
  if piece is not None:
    found = cudart.cudaPointerAttributes(
      type=cudart.cudaMemoryTypeManaged if piece.managed else cudart.cudaMemoryTypeHost if piece.host
      else cudart.cudaMemoryTypeDevice, device=piece.device, devicePointer=address,
      hostPointer=address if piece.host else 0)
  r.machine.out(out, f"{ctypes.sizeof(found)}s", bytes(found))


@runs("cudaHostGetFlags")
def host_get_flags(r: Runtime, out: int, address: int) -> None:
  r.call("cuMemHostGetFlags", out, address)


@runs("cudaMemAdvise")
def mem_advise(r: Runtime, address: int, size: int, advice: int, where: Any) -> None:
  r.call("cuMemAdvise_v2", address, size, advice, _located(where))


@runs("cudaMemPrefetchAsync")
def mem_prefetch(r: Runtime, address: int, size: int, where: Any, flags: int, stream: int) -> None:
  r.call("cuMemPrefetchAsync_v2", address, size, _located(where), flags, stream)


def _located(where: Any) -> int:
  """A cudaMemLocation as the driver's functions get it: in one register. Its kinds have the driver's numbers."""
  return int(where.type) | (int(where.id) & 0xFFFF_FFFF) << 32


@runs("cudaMemcpyPeerAsync")
def memcpy_peer_async(r: Runtime, to: int, to_device: int, come: int, from_device: int, size: int,
                      stream: int) -> None:
  if size: r.call("cuMemcpyAsync", to, come, size, stream)


# ---- rows and boxes

def sides(kind: int) -> tuple[int, int]:
  """The driver's kinds of memory that a copy of this kind comes from and goes to."""
  host, device, any_kind = cuda.CU_MEMORYTYPE_HOST, cuda.CU_MEMORYTYPE_DEVICE, cuda.CU_MEMORYTYPE_UNIFIED
  found = {cudart.cudaMemcpyHostToDevice: (host, device), cudart.cudaMemcpyDeviceToHost: (device, host),
           cudart.cudaMemcpyDeviceToDevice: (device, device), cudart.cudaMemcpyHostToHost: (host, host),
           cudart.cudaMemcpyDefault: (any_kind, any_kind)}.get(kind)
  if found is None: raise Refusal(cudart.cudaErrorInvalidMemcpyDirection, f"a copy of kind {kind}")
  return found


def fill_side(box: Any, side: str, kind: int, address: int, pitch: int) -> None:
  """One end of a CUDA_MEMCPY3D that is memory."""
  setattr(box, side + "MemoryType", kind)
  setattr(box, side + ("Host" if kind == cuda.CU_MEMORYTYPE_HOST else "Device"), address)
  setattr(box, side + "Pitch", pitch)


def copy_box(r: Runtime, box: cuda.CUDA_MEMCPY3D, stream: tuple[int, ...]) -> None:
  """Copy it, at once or on a stream."""
  name = "cuMemcpy3DAsync_v2" if stream else "cuMemcpy3D_v2"
  r.call(name, ctypes.addressof(box), *stream)


@runs("cudaMemcpy2D", "cudaMemcpy2DAsync")
def memcpy_2d(r: Runtime, to: int, to_pitch: int, come: int, come_pitch: int, width: int, height: int, kind: int,
              *stream: int) -> None:
  if width > to_pitch or width > come_pitch:
    raise Refusal(cudart.cudaErrorInvalidPitchValue, f"rows of {width} bytes, {to_pitch} and {come_pitch} apart")
  first, last = sides(kind)
  box = cuda.CUDA_MEMCPY3D(WidthInBytes=width, Height=height, Depth=1)
  fill_side(box, "src", first, come, come_pitch)
  fill_side(box, "dst", last, to, to_pitch)
  copy_box(r, box, stream)


def box_of(r: Runtime, given: Any, kind: int) -> cuda.CUDA_MEMCPY3D:
  """A cudaMemcpy3DParms, or one of peers, as the driver has it. Where an array takes part, widths count elements."""
  arrays = [a for a in (given.srcArray, given.dstArray) if a]
  elements = [r.element(a) for a in arrays]
  if len(set(elements)) > 1: raise Refusal(cudart.cudaErrorInvalidValue, "arrays with elements of different sizes")
  extent = given.extent
  box = cuda.CUDA_MEMCPY3D(WidthInBytes=extent.width * (elements[0] if elements else 1), Height=extent.height,
                           Depth=extent.depth)
  for side, memory in zip(("src", "dst"), sides(kind), strict=True):
    array, at, pointer = (getattr(given, side + n) for n in ("Array", "Pos", "Ptr"))
    if bool(array) == bool(pointer.ptr):
      raise Refusal(cudart.cudaErrorInvalidValue, f"an array and a pointer, or neither, for {side}")
    if array:
      setattr(box, side + "MemoryType", cuda.CU_MEMORYTYPE_ARRAY)
      setattr(box, side + "Array", array)
    else:
      fill_side(box, side, memory, pointer.ptr, pointer.pitch)
      setattr(box, side + "Height", pointer.ysize)
    setattr(box, side + "XInBytes", at.x * (elements[0] if array else 1))
    setattr(box, side + "Y", at.y)
    setattr(box, side + "Z", at.z)
  return box


@runs("cudaMemcpy3D", "cudaMemcpy3DAsync")
def memcpy_3d(r: Runtime, parameters: int, *stream: int) -> None:
  given = r.struct(cudart.cudaMemcpy3DParms, parameters)
  copy_box(r, box_of(r, given, given.kind), stream)


@runs("cudaMemcpy3DPeer", "cudaMemcpy3DPeerAsync")
def memcpy_3d_peer(r: Runtime, parameters: int, *stream: int) -> None:
  copy_box(r, box_of(r, r.struct(cudart.cudaMemcpy3DPeerParms, parameters), cudart.cudaMemcpyDefault), stream)


@runs("cudaMallocPitch")
def malloc_pitch(r: Runtime, out: int, pitch: int, width: int, height: int) -> None:
  if width and height: r.call("cuMemAllocPitch_v2", out, pitch, width, height, 4)
  else:
    r.machine.out(out, "Q", 0)
    r.machine.out(pitch, "Q", 0)


@runs("cudaMalloc3D")
def malloc_3d(r: Runtime, out: int, extent: Any) -> None:
  found = cudart.cudaPitchedPtr(xsize=extent.width, ysize=extent.height)
  at = ctypes.addressof(found)
  malloc_pitch(r, at, at + place(cudart.cudaPitchedPtr, "pitch"), extent.width, extent.height * extent.depth)
  r.machine.out(out, f"{ctypes.sizeof(found)}s", bytes(found))


@runs("cudaMemset2D", "cudaMemset2DAsync")
def memset_2d(r: Runtime, to: int, pitch: int, value: int, width: int, height: int, *stream: int) -> None:
  r.call("cuMemsetD2D8Async" if stream else "cuMemsetD2D8_v2", to, pitch, value & 0xFF, width, height, *stream)


@runs("cudaMemset3D", "cudaMemset3DAsync")
def memset_3d(r: Runtime, to: Any, value: int, extent: Any, *stream: int) -> None:
  if not extent.width * extent.height * extent.depth: return
  if extent.depth == 1: places, whole = range(to.ptr, to.ptr + 1), extent.height
  else:
    step = to.pitch * to.ysize
    if to.ysize < extent.height: raise Refusal(cudart.cudaErrorInvalidValue, f"slices of {to.ysize} rows")
    rectangle(to.pitch, extent.width, extent.height)
    rectangle(step, (extent.height - 1) * to.pitch + extent.width, extent.depth)
    if to.ysize == extent.height: places, whole = range(to.ptr, to.ptr + 1), extent.height * extent.depth
    else: places, whole = range(to.ptr, to.ptr + step * extent.depth, step), extent.height
  for at in places: memset_2d(r, at, to.pitch, value, extent.width, whole, *stream)
