"""Functions of the runtime that are the driver's under another name: what they give is what the driver has."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.mock.cuda.test_runtime import FACTOR, SCALE, Program
from tests.mock.cuda.test_runtime_objects import DOWN, FETCH, UP, channel, program, run
from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.runtime.functions import RUNS, SAME
from tinyhw.mock.cuda.runtime.tables import FUNCTION, PROPERTIES, WITHOUT_CONTEXT

FLOAT, SIGNED = cudart.cudaChannelFormatKindFloat, cudart.cudaChannelFormatKindSigned
INVALID, UNSUPPORTED = cudart.cudaErrorInvalidValue, cudart.cudaErrorNotSupported


# ---- devices and kernels

LATE = {cudart.cudaErrorInitializationError, cudart.cudaErrorDeviceUninitialized, cudart.cudaErrorUnknown}


@pytest.mark.parametrize("first", range(8))
def test_any_function_may_be_a_programs_first(first: int) -> None:
  """It makes what it needs of the driver: null pointers or handles are what is wrong with it, if anything is."""
  names = [n for n in sorted({*RUNS, *SAME} & {*cudart.FUNCTIONS}) if n.startswith("cuda")]
  for name in names[first::8]:
    p = Program()
    given = [0 if issubclass(kind, ctypes._SimpleCData) else kind() for kind in cudart.FUNCTIONS[name]]
    assert p.code(name, *given) not in LATE, (name, p.machine.logs[-2:])


def test_memory_that_a_program_has_not() -> None:
  """What a function reads or writes of the program's own is not there: an invalid value, and the log says where."""
  p = Program()
  for name, *given in (("cudaLaunchKernelExC", 0, 1, 0), ("cudaGetDeviceProperties", 0x10, 0), ("cudaMalloc", 0x10, 8)):
    assert p.code(name, *given) == INVALID
    assert f"bytes at {given[0]:#x} cannot be" in p.machine.logs[-1]


def test_what_the_tables_name_is_declared() -> None:
  """In the headers; no function is both the driver's and the runtime's own."""
  assert {*WITHOUT_CONTEXT} <= {*SAME} and not {*SAME} & {*RUNS}
  assert {*FUNCTION} <= {name for name, *_ in cudart.cudaFuncAttributes._fields_}
  assert {*SAME} <= {*cudart.FUNCTIONS, *cudart.BY_VALUE} and {*SAME.values()} <= {*cuda.FUNCTIONS, *cuda.BY_VALUE}


def test_what_a_card_is() -> None:
  """Each field of cudaDeviceProp that tells an attribute does, and they are fields."""
  p, out = Program("sm_90,sm_80"), cudart.cudaDeviceProp()
  assert {*PROPERTIES} <= {name for name, *_ in cudart.cudaDeviceProp._fields_}
  for device in (0, 1):
    p("cudaGetDeviceProperties", ctypes.byref(out), device)
    for field, names in PROPERTIES.items():
      found = getattr(out, field)
      for k, name in enumerate([names] if isinstance(names, str) else names):
        number = getattr(cuda, f"CU_DEVICE_ATTRIBUTE_{name}")
        wanted = p.made("cudaDeviceGetAttribute", number, device, kind=ctypes.c_int32)
        assert (found if isinstance(names, str) else found[k]) == wanted, field


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_fractions_are_channels_too(bits: int, channels: int) -> None:
  p, told = Program(), cudart.cudaChannelFormatDesc()
  for sign in ("Unsigned", "Signed"):
    kind = getattr(cudart, f"cudaChannelFormatKind{sign}Normalized{bits}X{channels}")
    given = channel(bits, kind, channels)
    p("cudaGetChannelDesc", ctypes.byref(told), p.made("cudaMallocArray", ctypes.byref(given), 4, 4, 0))
    assert bytes(told) == bytes(given)

def test_a_kernels_name_and_the_cards() -> None:
  p = Program("sm_80,sm_90")
  assert p.text("cudaGetErrorName", 0) == "cudaSuccess"
  assert ctypes.string_at(p.made("cudaFuncGetName", SCALE)) == b"scale"
  assert p.code("cudaFuncGetName", ctypes.byref(ctypes.c_uint64()), 0x99) == cudart.cudaErrorInvalidDeviceFunction
  assert p.made("cudaDeviceGetCacheConfig", kind=ctypes.c_int32) == cuda.CU_FUNC_CACHE_PREFER_NONE
  memory = p.machine.gpus[1].vram.size
  for major, minor, size, wanted in ((8, 0, 0, 0), (8, 1, 0, 1), (9, 0, memory, 1), (9, 0, memory + 1, 0),
                                     (12, 0, 0, 0), (7, 5, 1, 0)):
    asked = cudart.cudaDeviceProp(major=major, minor=minor, totalGlobalMem=size)
    assert p.made("cudaChooseDevice", ctypes.byref(asked), kind=ctypes.c_int32) == wanted
  p("cudaInitDevice", 1, 0, 0)
  assert p.made("cudaGetDevice", kind=ctypes.c_int32) == 0 and p.machine.gpus[1].primary is not None
  width = p.made("cudaDeviceGetTexture1DLinearMaxWidth", ctypes.byref(channel(32, FLOAT, 4)), 1)
  assert width == p.made("cudaDeviceGetTexture1DLinearMaxWidth", ctypes.byref(channel(32, FLOAT)), 1) > 1 << 20


@pytest.mark.parametrize("blocks, block, wanted", [
  (1, 64, 227 << 10), (2, 1024, 113 << 10), (32, 32, (228 << 10) // 32 - 1024)])
def test_dynamic_shared_memory_for_so_many_blocks(blocks: int, block: int, wanted: int) -> None:
  p = Program()
  assert p.made("cudaOccupancyAvailableDynamicSMemPerBlock", SCALE, blocks, block) == wanted
  for bad in ((0, 64), (33, 32), (3, 1024)):
    assert p.code("cudaOccupancyAvailableDynamicSMemPerBlock", ctypes.byref(ctypes.c_uint64()), SCALE, *bad) == INVALID


# ---- arrays

def test_levels_of_an_array() -> None:
  p = program()
  kind, extent = channel(32, SIGNED), cudart.cudaExtent(width=8, height=4, depth=0)
  whole = p.made("cudaMallocMipmappedArray", ctypes.byref(kind), extent, 3, 0)
  for level, size in ((0, (8, 4, 0)), (1, (4, 2, 0)), (2, (2, 1, 0))):
    one = p.made("cudaGetMipmappedArrayLevel", whole, level)
    told, of, flags = cudart.cudaChannelFormatDesc(), cudart.cudaExtent(), ctypes.c_uint32(9)
    p("cudaArrayGetInfo", ctypes.byref(told), ctypes.byref(of), ctypes.byref(flags), one)
    assert bytes(told) == bytes(kind) and (of.width, of.height, of.depth) == size and flags.value == 0
    p("cudaArrayGetInfo", 0, 0, 0, one)
  out = ctypes.c_uint64()
  assert p.code("cudaGetMipmappedArrayLevel", ctypes.byref(out), whole, 3) == INVALID
  assert p.code("cudaArrayGetInfo", 0, 0, 0, whole) == INVALID
  p("cudaGetChannelDesc", ctypes.byref(told), whole)
  for _ in range(2): p("cudaFreeMipmappedArray", 0)
  p("cudaFreeMipmappedArray", whole)
  assert p.code("cudaGetMipmappedArrayLevel", ctypes.byref(out), whole, 0) != 0
  one = p.made("cudaMallocMipmappedArray", ctypes.byref(kind), extent, 0, 0)  # as with one level
  assert p.code("cudaGetMipmappedArrayLevel", ctypes.byref(out), one, 1) == INVALID


def test_bytes_go_from_array_to_array() -> None:
  p, kind = program(), channel(32, SIGNED)
  data = np.arange(24, dtype=np.int32).reshape(6, 4)
  one, two = (p.made("cudaMallocArray", ctypes.byref(kind), 4, 6, 0) for _ in range(2))
  narrow = p.made("cudaMallocArray", ctypes.byref(kind), 3, 6, 0)
  for array, rows in ((one, data), (two, np.zeros_like(data))):
    p("cudaMemcpy2DToArray", array, 0, 0, rows.ctypes.data, 16, 16, 6, UP)
  p("cudaMemcpyArrayToArray", two, 4, 3, one, 4, 1, 32, cudart.cudaMemcpyDeviceToDevice)
  seen = np.zeros((6, 4), np.int32)
  p("cudaMemcpy2DFromArray", seen.ctypes.data, 16, two, 0, 0, 16, 6, DOWN)
  wanted = np.zeros(24, np.int32)
  wanted[13:21] = data.reshape(-1)[5:13]
  assert (seen.reshape(-1) == wanted).all()
  for to, x, y, come, from_x, from_y in ((narrow, 0, 0, one, 0, 0), (two, 0, 0, one, 4, 0)):
    assert p.code("cudaMemcpyArrayToArray", to, x, y, come, from_x, from_y, 16, 3) == UNSUPPORTED


@pytest.mark.parametrize("kind", ["mipmapped", "linear", "rows"])
def test_what_a_texture_looks_at(kind: str) -> None:
  """Each kind of resource is read where it is."""
  p, data = program(), np.arange(128, dtype=np.float32).reshape(2, 64)
  resource, sampling = cudart.cudaResourceDesc(), cudart.cudaTextureDesc()
  if kind == "mipmapped":
    sampling.normalizedCoords = 1  # the fraction of each is a half
    resource.resType, extent = cudart.cudaResourceTypeMipmappedArray, cudart.cudaExtent(width=64, height=2, depth=0)
    resource.res.mipmap.mipmap = p.made("cudaMallocMipmappedArray", ctypes.byref(channel(32, FLOAT)), extent, 1, 0)
    level = p.made("cudaGetMipmappedArrayLevel", resource.res.mipmap.mipmap, 0)
    p("cudaMemcpy2DToArray", level, 0, 0, data.ctypes.data, 256, 256, 2, UP)
  else:
    memory = p.made("cudaMalloc", data.nbytes)
    p("cudaMemcpy", memory, data.ctypes.data, data.nbytes, UP)
    if kind == "linear":
      resource.resType = cudart.cudaResourceTypeLinear
      resource.res.linear.devPtr, resource.res.linear.sizeInBytes = memory, data.nbytes
      resource.res.linear.desc = channel(32, FLOAT)
    else:
      resource.resType = cudart.cudaResourceTypePitch2D
      rows = resource.res.pitch2D
      rows.devPtr, rows.width, rows.height, rows.pitchInBytes, rows.desc = memory, 64, 2, 256, channel(32, FLOAT)
  made = ctypes.byref(resource), ctypes.byref(sampling), 0
  texture, out = p.made("cudaCreateTextureObject", *made), p.made("cudaMalloc", 32)
  told = cudart.cudaResourceDesc()
  p("cudaGetTextureObjectResourceDesc", ctypes.byref(told), texture)
  assert bytes(told) == bytes(resource)
  if kind != "linear":  # the kernel fetches from the second row of a plane
    run(p, FETCH, 8, ctypes.c_uint64(out), ctypes.c_uint64(texture))
    seen = np.zeros(8, np.float32)
    p("cudaMemcpy", seen.ctypes.data, out, 32, DOWN)
    assert (seen == (data[1, 32] if kind == "mipmapped" else data[1, :8])).all()
  found = cuda.CUDA_RESOURCE_DESC()
  assert ctypes.CDLL("libcuda.so.1").cuTexObjectGetResourceDesc(ctypes.byref(found), ctypes.c_uint64(texture)) == 0
  if kind == "linear":
    linear = found.res.linear
    assert (linear.devPtr, linear.sizeInBytes, linear.format, linear.numChannels) == (
      memory, data.nbytes, cuda.CU_AD_FORMAT_FLOAT, 1)
  sampling.readMode = 7
  assert p.code("cudaCreateTextureObject", ctypes.byref(ctypes.c_uint64()), *made) == INVALID
  p("cudaDestroyTextureObject", texture)
  p("cudaDestroyTextureObject", 0)
  assert p.code("cudaGetTextureObjectResourceDesc", ctypes.byref(told), texture) == INVALID


def test_surface_objects() -> None:
  p = program()
  resource = cudart.cudaResourceDesc(resType=cudart.cudaResourceTypeArray)
  resource.res.array.array = p.made("cudaMallocArray", ctypes.byref(channel(32, FLOAT)), 8, 4,
                                    cuda.CUDA_ARRAY3D_SURFACE_LDST)
  surface, told = p.made("cudaCreateSurfaceObject", ctypes.byref(resource)), cudart.cudaResourceDesc()
  p("cudaGetSurfaceObjectResourceDesc", ctypes.byref(told), surface)
  assert bytes(told) == bytes(resource)
  assert p.code("cudaGetTextureObjectTextureDesc", ctypes.byref(told), surface) == INVALID
  for handle in (0, surface): p("cudaDestroySurfaceObject", handle)
  assert p.code("cudaGetSurfaceObjectResourceDesc", ctypes.byref(told), surface) == INVALID
  assert p.code("cudaDestroySurfaceObject", surface) != 0


# ---- memory

def test_memory_of_the_host_and_managed_memory() -> None:
  p = Program("sm_90,sm_90")
  for flags in (0, cuda.CU_MEMHOSTALLOC_DEVICEMAP, cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_WRITECOMBINED):
    at = p.made("cudaHostAlloc", 64, flags)
    assert p.made("cudaHostGetFlags", at + 63, kind=ctypes.c_uint32) == flags
  one = p.made("cudaMalloc", 64)
  for bad in (16, one, at + 64, at - 1):
    assert p.code("cudaHostGetFlags", ctypes.byref(ctypes.c_uint32()), bad) == INVALID
  assert p.code("cudaHostAlloc", ctypes.byref(ctypes.c_uint64()), 64, 8) == INVALID
  managed, seen = p.made("cudaMallocManaged", 4096, cuda.CU_MEM_ATTACH_GLOBAL), ctypes.c_int32()
  for kind, number, wanted in ((cuda.CU_MEM_LOCATION_TYPE_DEVICE, 1, 1), (cuda.CU_MEM_LOCATION_TYPE_DEVICE, 0, 0),
                               (cuda.CU_MEM_LOCATION_TYPE_HOST, 0, -1)):
    where = cudart.cudaMemLocation(type=kind, id=number)
    p("cudaMemAdvise", managed, 4096, cuda.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, where)
    p("cudaMemPrefetchAsync", managed, 4096, where, 0, 0)
    p("cudaStreamSynchronize", 0)
    for attribute in (cuda.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                      cuda.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION):
      p("cudaMemRangeGetAttribute", ctypes.byref(seen), 4, attribute, managed, 4096)
      assert seen.value == wanted, (kind, number, attribute)
  pitch, at = ctypes.c_uint64(5), ctypes.c_uint64(5)
  for width, height in ((0, 4), (4, 0)):
    p("cudaMallocPitch", ctypes.byref(at), ctypes.byref(pitch), width, height)
    assert at.value == pitch.value == 0
  data, out = np.arange(16, dtype=np.uint32), np.zeros(16, np.uint32)
  one, two = p.made("cudaMalloc", 64), 0
  p("cudaSetDevice", 1)
  two = p.made("cudaMalloc", 64)
  p("cudaMemcpy", one, data.ctypes.data, 64, cudart.cudaMemcpyDefault)
  p("cudaMemcpyPeerAsync", two, 1, one, 0, 60, 0)
  p("cudaMemcpyPeerAsync", two, 1, one, 0, 0, 0)
  box = cudart.cudaMemcpy3DPeerParms(srcDevice=0, dstDevice=1, extent=cudart.cudaExtent(width=4, height=1, depth=1))
  box.srcPtr = cudart.cudaPitchedPtr(ptr=one + 8, pitch=4, xsize=4, ysize=1)
  box.dstPtr = cudart.cudaPitchedPtr(ptr=two + 60, pitch=4, xsize=4, ysize=1)
  p("cudaDeviceSynchronize")
  p("cudaMemcpy3DPeer", ctypes.byref(box))
  p("cudaMemcpy", out.ctypes.data, two, 64, DOWN)
  assert out.tolist() == [*range(15), 2]


# ---- graphs

def test_copies_of_variables_in_graphs() -> None:
  """Nodes that copy to a variable and from it; their parameters change, before and after the graph is made ready."""
  p, graph = program(), 0
  graph = p.made("cudaGraphCreate", 0)
  given, out = (ctypes.c_uint32 * 2)(11, 12), (ctypes.c_uint32 * 2)()
  at = ctypes.addressof
  first = ctypes.c_uint64(p.made("cudaGraphAddMemcpyNodeToSymbol", graph, 0, 0, FACTOR, at(given), 4, 0, UP))
  last = p.made("cudaGraphAddMemcpyNodeFromSymbol", graph, ctypes.byref(first), 1, at(out), FACTOR, 4, 0, DOWN)

  def left(ready: int) -> list[int]:
    p("cudaGraphLaunch", ready, 0)
    p("cudaDeviceSynchronize")
    found = list(out)
    out[0] = out[1] = 0
    return found
  assert left(p.made("cudaGraphInstantiate", graph, 0)) == [11, 0]
  p("cudaGraphMemcpyNodeSetParamsToSymbol", first.value, FACTOR, at(given) + 4, 2, 2, UP)
  p("cudaGraphMemcpyNodeSetParamsFromSymbol", last, at(out) + 4, FACTOR, 4, 0, DOWN)
  ready = p.made("cudaGraphInstantiate", graph, 0)
  assert left(ready) == [0, 12 << 16 | 11]
  p("cudaGraphExecMemcpyNodeSetParamsToSymbol", ready, first.value, FACTOR, at(given), 4, 0, UP)
  p("cudaGraphExecMemcpyNodeSetParamsFromSymbol", ready, last, at(out), FACTOR, 2, 0, DOWN)
  assert left(ready) == [11, 0]
  assert p.code("cudaGraphAddMemcpyNodeToSymbol", ctypes.byref(first), graph, 0, 0, FACTOR, at(given), 4, 1,
                UP) == INVALID


def test_nodes_of_any_kind() -> None:
  """What cudaGraphAddNode makes is what the other functions make; its parameters change."""
  p, graph = program(), 0
  graph, memory = p.made("cudaGraphCreate", 0), p.made("cudaMalloc", 64)
  data, out = np.arange(16, dtype=np.uint32), np.zeros(16, np.uint32)

  def params(kind: str, **fields: object) -> cudart.cudaGraphNodeParams:
    made = cudart.cudaGraphNodeParams(type=getattr(cudart, f"cudaGraphNodeType{kind}"))
    for name, value in fields.items(): setattr(made, name, value)
    return made

  def copy(to: int, come: int, size: int, kind: int) -> cudart.cudaGraphNodeParams:
    box = cudart.cudaMemcpy3DParms(extent=cudart.cudaExtent(width=size, height=1, depth=1), kind=kind)
    box.srcPtr = cudart.cudaPitchedPtr(ptr=come, pitch=64, xsize=64, ysize=1)
    box.dstPtr = cudart.cudaPitchedPtr(ptr=to, pitch=64, xsize=64, ysize=1)
    made = params("Memcpy")
    made.memcpy.copyParams = box
    return made
  values = ctypes.c_uint64(memory), ctypes.c_uint32(8)
  places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
  kernel = params("Kernel", kernel=cudart.cudaKernelNodeParamsV2(
    func=SCALE, gridDim=cudart.dim3(x=1, y=1, z=1), blockDim=cudart.dim3(x=64, y=1, z=1),
    kernelParams=ctypes.addressof(places)))
  last: list[int] = []

  def add(given: cudart.cudaGraphNodeParams) -> int:
    before = (ctypes.c_uint64 * 1)(*last)
    last[:] = [p.made("cudaGraphAddNode", graph, before if last else 0, 0, len(last), ctypes.byref(given))]
    return last[0]
  first = add(copy(memory, data.ctypes.data, 64, UP))
  add(params("Empty"))
  node = add(kernel)
  add(copy(out.ctypes.data, memory, 64, DOWN))
  other = params("MemAlloc")
  other.alloc.poolProps.allocType = cuda.CU_MEM_ALLOCATION_TYPE_PINNED
  other.alloc.poolProps.location.type, other.alloc.bytesize = cuda.CU_MEM_LOCATION_TYPE_DEVICE, 4096
  add(other)
  assert other.alloc.dptr
  gone = params("MemFree")
  gone.free.dptr = other.alloc.dptr
  add(gone)
  ready = p.made("cudaGraphInstantiate", graph, 0)

  def run_it() -> list[int]:
    p("cudaGraphLaunch", ready, 0)
    p("cudaDeviceSynchronize")
    return [int(x) for x in out]
  assert run_it() == [*(data[:8] * 3), *data[8:]]
  values[1].value = 2
  p("cudaGraphExecNodeSetParams", ready, node, ctypes.byref(kernel))
  assert run_it() == [*(data[:2] * 3), *data[2:]]
  p("cudaGraphExecNodeSetParams", ready, first, ctypes.byref(copy(memory, data.ctypes.data + 4, 60, UP)))
  assert run_it()[:4] == [3, 6, 3, 4]
  assert p.code("cudaGraphExecNodeSetParams", ready, first, ctypes.byref(kernel)) == INVALID
  p("cudaGraphNodeSetParams", first, ctypes.byref(copy(memory, data.ctypes.data + 8, 56, UP)))
  ready = p.made("cudaGraphInstantiate", graph, 0)
  assert run_it()[:4] == [6, 9, 12, 15]  # the graph has the kernel that it was given
  assert p.code("cudaGraphNodeSetParams", first, ctypes.byref(kernel)) == INVALID


def test_conditions_of_the_runtimes_graphs() -> None:
  p = program()
  graph, memory = p.made("cudaGraphCreate", 0), p.made("cudaMalloc", 8)
  for value in (0, 1):
    handle = p.made("cudaGraphConditionalHandleCreate", graph, value, cuda.CU_GRAPH_COND_ASSIGN_DEFAULT)
    given = cudart.cudaGraphNodeParams(type=cudart.cudaGraphNodeTypeConditional)
    given.conditional.handle, given.conditional.type, given.conditional.size = handle, cuda.CU_GRAPH_COND_TYPE_IF, 1
    p.made("cudaGraphAddNode", graph, 0, 0, 0, ctypes.byref(given))
    body = ctypes.c_uint64.from_address(given.conditional.phGraph_out).value
    fill = cudart.cudaMemsetParams(dst=memory + 4 * value, value=7, elementSize=4, width=1, height=1)
    p.made("cudaGraphAddMemsetNode", body, 0, 0, ctypes.byref(fill))
  p("cudaMemset", memory, 0, 8)
  p("cudaGraphLaunch", p.made("cudaGraphInstantiate", graph, 0), 0)
  seen = np.zeros(2, np.uint32)
  p("cudaMemcpy", seen.ctypes.data, memory, 8, DOWN)
  assert seen.tolist() == [0, 7]
