"""Calls of the driver for graphs, captures, occupancy and addresses that few programs make: each does what it says."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, WAIT, Client, u32, u64
from tests.mock.cuda.test_nodes_and_libraries import error, node
from tests.mock.cuda.test_virtual import UNIT, granted, physical
from tinyhw.autogen import cuda

COUNT = ctypes.c_size_t


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90,sm_90")
  yield client
  client.machine.close()


def handles(*given: int) -> ctypes.Array[ctypes.c_uint64]:
  return (ctypes.c_uint64 * max(len(given), 1))(*given)


def ready(c: Client, graph: int, flags: int = 0) -> int:
  return c.handle("cuGraphInstantiateWithFlags", u64(graph), ctypes.c_uint64(flags))


def filled(c: Client, graph: int, at: int, value: int, after: tuple[int, ...] = ()) -> int:
  fill = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=at, pitch=4, value=value, elementSize=4, width=1, height=1)
  return node(c, graph, "Memset", after, ctypes.byref(fill), u64(c.context))


def word(c: Client, at: int) -> int: return int(c.get(at, np.zeros(1, np.uint32))[0])


# ---- captures

def test_a_capture_is_told_and_its_dependencies_change(client: Client) -> None:
  c, at = client, client.alloc(4)
  stream, function = c.handle("cuStreamCreate", 1), c.function(WAIT, "add")
  status, number, graph, after, count = (ctypes.c_int(9), ctypes.c_uint64(), ctypes.c_uint64(),
                                         ctypes.POINTER(ctypes.c_uint64)(), COUNT(9))
  told = tuple(map(ctypes.byref, (status, number, graph, after, count)))
  c.call("cuStreamGetCaptureInfo_v2", u64(stream), *told)
  assert status.value == cuda.CU_STREAM_CAPTURE_STATUS_NONE and count.value == 9
  for name in ("cuStreamUpdateCaptureDependencies", "cuStreamUpdateCaptureDependencies_v2"):
    more = (None,) * name.endswith("_v2")
    assert error(c, name, u64(stream), handles(), *more, COUNT(0), 0) == "ILLEGAL_STATE"
  c.call("cuStreamBeginCapture_v2", u64(stream), 0)
  nodes = []
  for value in (1, 2, 3):
    assert c.launch(function, 1, 1, [u64(at), u32(value)], stream) == 0
    c.call("cuStreamGetCaptureInfo_v2", u64(stream), *told)
    assert status.value == cuda.CU_STREAM_CAPTURE_STATUS_ACTIVE and count.value == 1
    nodes.append(after[0])
  first, again = number.value, ctypes.c_uint64()
  c.call("cuStreamGetCaptureInfo", u64(stream), ctypes.byref(status), ctypes.byref(again))
  assert again.value == first
  update = "cuStreamUpdateCaptureDependencies"
  c.call(update, u64(stream), handles(nodes[0]), COUNT(1), cuda.CU_STREAM_SET_CAPTURE_DEPENDENCIES)
  c.call(update, u64(stream), handles(nodes[1]), COUNT(1), cuda.CU_STREAM_ADD_CAPTURE_DEPENDENCIES)
  c.call("cuStreamGetCaptureInfo_v2", u64(stream), *told)
  assert [*after[:count.value]] == nodes[:2]
  assert error(c, update, u64(stream), handles(nodes[0]), COUNT(1), 2) == "INVALID_VALUE"
  assert c.launch(function, 1, 1, [u64(at), u32(4)], stream) == 0
  pairs = COUNT()
  come, to = handles(*[0] * 8), handles(*[0] * 8)
  c.call("cuGraphGetEdges", u64(graph.value), None, None, ctypes.byref(pairs))
  c.call("cuGraphGetEdges", u64(graph.value), come, to, ctypes.byref(pairs))
  edges = {(come[k], to[k]) for k in range(pairs.value)}
  c.call("cuStreamGetCaptureInfo_v2", u64(stream), *told)
  assert edges == {(nodes[0], nodes[1]), (nodes[1], nodes[2]), (nodes[0], after[0]), (nodes[1], after[0])}


def test_the_capture_mode_of_a_thread(client: Client) -> None:
  mode = ctypes.c_int(cuda.CU_STREAM_CAPTURE_MODE_RELAXED)
  for wanted in (cuda.CU_STREAM_CAPTURE_MODE_GLOBAL, cuda.CU_STREAM_CAPTURE_MODE_RELAXED):
    client.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert mode.value == wanted
    mode.value = cuda.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  mode.value = 3
  assert error(client, "cuThreadExchangeStreamCaptureMode", ctypes.byref(mode)) == "INVALID_VALUE"


# ---- graphs

def test_a_graph_in_a_graph_changes(client: Client) -> None:
  """The node has a copy; what is ready takes another graph of its shape."""
  c, at = client, client.alloc(8)
  inner, outer, other = (c.handle("cuGraphCreate", 0) for _ in range(3))
  filled(c, inner, at, 5)
  filled(c, other, at + 4, 6)
  child, first = node(c, outer, "ChildGraph", (), u64(inner)), filled(c, outer, at, 1)
  seen = ctypes.c_uint64()
  c.call("cuGraphChildGraphNodeGetGraph", u64(child), ctypes.byref(seen))
  assert seen.value != inner and error(c, "cuGraphDestroy", u64(seen.value)) == "INVALID_VALUE"
  assert error(c, "cuGraphChildGraphNodeGetGraph", u64(first), ctypes.byref(seen)) == "INVALID_VALUE"
  c.call("cuGraphDestroyNode", u64(first))
  run = ready(c, outer)
  c.call("cuMemsetD32_v2", u64(at), 0, COUNT(2))
  c.call("cuGraphExecChildGraphNodeSetParams", u64(run), u64(child), u64(other))
  c.call("cuGraphLaunch", u64(run), u64(0))
  assert (word(c, at), word(c, at + 4)) == (0, 6)
  info = cuda.CUgraphExecUpdateResultInfo()
  c.call("cuGraphExecUpdate_v2", u64(run), u64(outer), ctypes.byref(info))
  c.call("cuGraphLaunch", u64(run), u64(0))
  assert word(c, at) == 5
  two = c.handle("cuGraphCreate", 0)
  filled(c, two, at, 1, (filled(c, two, at, 2),))
  third = c.handle("cuGraphCreate", 0)
  node(c, third, "ChildGraph", (), u64(two))
  assert error(c, "cuGraphExecUpdate_v2", u64(run), u64(third), ctypes.byref(info)) == "GRAPH_EXEC_UPDATE_FAILURE"
  assert info.result == cuda.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED


@pytest.mark.parametrize("kind", ["EventRecord", "EventWait"])
def test_events_of_nodes_change(client: Client, kind: str) -> None:
  c, seen = client, ctypes.c_uint64()
  one, two, three = (c.handle("cuEventCreate", 0) for _ in range(3))
  graph = c.handle("cuGraphCreate", 0)
  own = node(c, graph, kind, (), u64(one))
  other = node(c, graph, "Empty")
  c.call(f"cuGraph{kind}NodeSetEvent", u64(own), u64(two))
  c.call(f"cuGraph{kind}NodeGetEvent", u64(own), ctypes.byref(seen))
  assert seen.value == two
  for name in (f"cuGraph{kind}NodeGetEvent", f"cuGraph{kind}NodeSetEvent"):
    assert error(c, name, u64(other), ctypes.byref(seen) if "Get" in name else u64(two)) == "INVALID_VALUE"
  run = ready(c, graph)
  c.call(f"cuGraphExec{kind}NodeSetEvent", u64(run), u64(own), u64(three))
  ours = c.machine.handles[run].graph.nodes[0].work
  assert ours.given.handle == three and ours.kind == (
    cuda.CU_GRAPH_NODE_TYPE_EVENT_RECORD if kind == "EventRecord" else cuda.CU_GRAPH_NODE_TYPE_WAIT_EVENT)
  c.call("cuGraphLaunch", u64(run), u64(0))
  c.call("cuGraphDestroyNode", u64(own))


def test_nodes_are_switched_off(client: Client) -> None:
  c, at, seen = client, client.alloc(4), ctypes.c_uint()
  graph = c.handle("cuGraphCreate", 0)
  one = filled(c, graph, at, 1)
  two, empty = filled(c, graph, at, 2, (one,)), node(c, graph, "Empty")
  run = ready(c, graph)
  for enabled, wanted in ((0, 1), (1, 2)):
    c.call("cuGraphNodeSetEnabled", u64(run), u64(two), enabled)
    c.call("cuGraphNodeGetEnabled", u64(run), u64(two), ctypes.byref(seen))
    c.call("cuGraphLaunch", u64(run), u64(0))
    assert seen.value == enabled and word(c, at) == wanted
  assert error(c, "cuGraphNodeSetEnabled", u64(run), u64(empty), 0) == "INVALID_VALUE"


def test_how_a_graph_is_made_ready(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  graph, auto = c.handle("cuGraphCreate", 0), cuda.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
  for flags in (0, auto):
    params = cuda.CUDA_GRAPH_INSTANTIATE_PARAMS(flags=flags, result_out=9)
    run = c.handle("cuGraphInstantiateWithParams", u64(graph), ctypes.byref(params))
    c.call("cuGraphExecGetFlags", u64(run), ctypes.byref(out))
    assert out.value == flags and params.result_out == cuda.CUDA_GRAPH_INSTANTIATE_SUCCESS


def allocation(device: int, size: int) -> cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1:
  given = cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1(bytesize=size)
  given.poolProps.allocType = cuda.CU_MEM_ALLOCATION_TYPE_PINNED
  given.poolProps.location.type, given.poolProps.location.id = cuda.CU_MEM_LOCATION_TYPE_DEVICE, device
  return given


def test_memory_of_graphs(client: Client) -> None:
  """What a graph has is told; a launch finds what the one before left, and frees it where it was asked to."""
  c, out = client, ctypes.c_uint64()
  current, high = cuda.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, cuda.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH

  def bytes_of(attribute: int) -> int:
    c.call("cuDeviceGetGraphMemAttribute", 0, attribute, ctypes.byref(out))
    return out.value
  graph, given = c.handle("cuGraphCreate", 0), allocation(0, 1 << 20)
  made = node(c, graph, "MemAlloc", (), ctypes.byref(given))
  told = cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1()
  c.call("cuGraphMemAllocNodeGetParams", u64(made), ctypes.byref(told))
  assert bytes(told) == bytes(given) and given.dptr
  run = ready(c, graph, cuda.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
  for _ in range(2):
    c.call("cuGraphLaunch", u64(run), u64(0))
    c.call("cuCtxSynchronize")
    assert bytes_of(current) == bytes_of(high) == 1 << 20
  c.call("cuDeviceGraphMemTrim", 0)
  c.call("cuMemFreeAsync", u64(given.dptr), u64(0))
  c.call("cuCtxSynchronize")
  assert (bytes_of(current), bytes_of(high)) == (0, 1 << 20)
  for attribute, value in ((current, 0), (high, 1), (cuda.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, 0)):
    assert error(c, "cuDeviceSetGraphMemAttribute", 0, attribute, ctypes.byref(u64(value))) == "INVALID_VALUE"
  for attribute in (cuda.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, high):
    c.call("cuDeviceSetGraphMemAttribute", 0, attribute, ctypes.byref(u64(0)))
    assert bytes_of(high) == 0
  plain = ready(c, graph)
  c.call("cuGraphLaunch", u64(plain), u64(0))
  assert error(c, "cuGraphLaunch", u64(plain), u64(0)) == "INVALID_VALUE"
  freed = node(c, graph, "MemFree", (made,), u64(given.dptr))
  c.call("cuGraphMemFreeNodeGetParams", u64(freed), ctypes.byref(out))
  assert out.value == given.dptr
  assert error(c, "cuGraphClone", ctypes.byref(out), u64(graph)) == "NOT_SUPPORTED"
  for bad, why in ((allocation(0, 64), "NOT_SUPPORTED"), (allocation(1, 64), "INVALID_VALUE")):
    if why == "NOT_SUPPORTED": bad.poolProps.location.type = cuda.CU_MEM_LOCATION_TYPE_HOST
    new = c.handle("cuGraphCreate", 0)
    assert error(c, "cuGraphAddMemAllocNode", ctypes.byref(out), u64(new), None, COUNT(0), ctypes.byref(bad)) == why


def test_nodes_by_their_kind(client: Client) -> None:
  c, at = client, client.alloc(8)
  graph = c.handle("cuGraphCreate", 0)

  def fill(where: int, value: int) -> cuda.CUgraphNodeParams:
    given = cuda.CUgraphNodeParams(type=cuda.CU_GRAPH_NODE_TYPE_MEMSET)
    m = given.memset
    m.dst, m.value, m.elementSize, m.width, m.height = where, value, 4, 1, 1
    return given
  one = c.handle("cuGraphAddNode", u64(graph), None, COUNT(0), ctypes.byref(fill(at, 3)))
  two = c.handle("cuGraphAddNode", u64(graph), handles(one), COUNT(1), ctypes.byref(fill(at + 4, 4)))
  run = ready(c, graph)
  c.call("cuGraphExecNodeSetParams", u64(run), u64(two), ctypes.byref(fill(at + 4, 5)))
  c.call("cuGraphNodeSetParams", u64(one), ctypes.byref(fill(at, 6)))
  c.call("cuGraphLaunch", u64(run), u64(0))
  assert (word(c, at), word(c, at + 4)) == (3, 5)
  c.call("cuGraphLaunch", u64(ready(c, graph)), u64(0))
  assert (word(c, at), word(c, at + 4)) == (6, 4)
  empty = cuda.CUgraphNodeParams(type=cuda.CU_GRAPH_NODE_TYPE_EMPTY)
  assert error(c, "cuGraphNodeSetParams", u64(one), ctypes.byref(empty)) == "INVALID_VALUE"
  assert error(c, "cuGraphExecNodeSetParams", u64(run), u64(one), ctypes.byref(empty)) == "INVALID_VALUE"


def test_a_condition_goes_with_its_graph(client: Client) -> None:
  c = client
  before = c.machine.gpus[0].allocator.free_bytes
  graph = c.handle("cuGraphCreate", 0)
  handle = c.handle("cuGraphConditionalHandleCreate", u64(graph), u64(c.context), 0, 0)
  given = cuda.CUgraphNodeParams(type=cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL)
  given.conditional.handle, given.conditional.type, given.conditional.size = handle, cuda.CU_GRAPH_COND_TYPE_IF, 1
  c.handle("cuGraphAddNode_v2", u64(graph), None, None, COUNT(0), ctypes.byref(given))
  assert c.machine.gpus[0].allocator.free_bytes < before
  assert c.machine.space.used[handle][0] == 4
  out = ctypes.c_uint64()
  assert error(c, "cuGraphClone", ctypes.byref(out), u64(graph)) == "NOT_SUPPORTED"
  c.call("cuGraphDestroy", u64(graph))
  assert c.machine.gpus[0].allocator.free_bytes == before and handle not in c.machine.handles


def test_objects_of_a_program(client: Client) -> None:
  """A reference of each graph; the last one that goes calls back."""
  c, gone = client, list[int]()
  kind = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
  destroy, out = kind(gone.append), ctypes.c_uint64()
  graph, flag = c.handle("cuGraphCreate", 0), cuda.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
  for count, flags in ((0, flag), (1, 0), (1 << 31, flag)):
    assert error(c, "cuUserObjectCreate", ctypes.byref(out), u64(5), destroy, u32(count), u32(flags)) == "INVALID_VALUE"
  thing = c.handle("cuUserObjectCreate", u64(5), destroy, 2, flag)
  c.call("cuUserObjectRetain", u64(thing), 1)
  c.call("cuGraphRetainUserObject", u64(graph), u64(thing), 2, cuda.CU_GRAPH_USER_OBJECT_MOVE)
  c.call("cuGraphRetainUserObject", u64(graph), u64(thing), 1, 0)
  assert error(c, "cuGraphRetainUserObject", u64(graph), u64(thing), 1, 2) == "INVALID_VALUE"
  assert error(c, "cuGraphReleaseUserObject", u64(graph), u64(thing), 4) == "INVALID_VALUE"
  c.call("cuGraphReleaseUserObject", u64(graph), u64(thing), 2)
  c.call("cuUserObjectRelease", u64(thing), 1)
  assert not gone
  c.call("cuGraphDestroy", u64(graph))
  assert gone == [5]


# ---- occupancy

LARGE = HEAD + """
.visible .entry large() .maxntid 512, 1, 1 { .shared .align 4 .b8 s[40000]; .reg .u32 %r; mov.u32 %r, s; ret; }
.visible .entry small() { ret; }
"""


def test_the_best_block(client: Client) -> None:
  """By threads, by static and dynamic shared memory, by a limit; all that fit of the card's SMs."""
  c, least, best, room = client, ctypes.c_int(), ctypes.c_int(), COUNT()
  small, large = c.function(LARGE, "small"), c.function(LARGE, "large")
  sized = ctypes.CFUNCTYPE(COUNT, ctypes.c_int)(lambda block: 100 * block)

  def found(function: int, sizes: object, dynamic: int, limit: int, flags: tuple[int, ...] = ()) -> tuple[int, int]:
    c.call("cuOccupancyMaxPotentialBlockSize" + "WithFlags" * len(flags), ctypes.byref(least), ctypes.byref(best),
           u64(function), sizes, COUNT(dynamic), limit, *flags)
    return least.value // 132, best.value
  assert found(small, None, 0, 0) == found(small, None, 0, 0, (0,)) == (2, 1024)
  assert found(small, None, 0, 100) == (32, 64)  # of 96 there are 21, of 100 16
  assert found(large, None, 0, 0) == (4, 512)
  assert found(small, None, 100 << 10, 0) == (2, 1024) and found(small, None, 150 << 10, 0) == (1, 1024)
  assert found(small, sized, 0, 0) == (2, 1024)
  for blocks, block, wanted in ((1, 512, (227 << 10) - 40000), (4, 512, (57 << 10) - 1024 - 40000)):
    c.call("cuOccupancyAvailableDynamicSMemPerBlock", ctypes.byref(room), u64(large), blocks, block)
    assert room.value == wanted


# ---- addresses

def test_what_addresses_refuse(client: Client) -> None:
  c, out, size = client, ctypes.c_uint64(), COUNT(UNIT)
  p = cuda.CUmemAllocationProp_v1(type=cuda.CU_MEM_ALLOCATION_TYPE_PINNED)
  p.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  for option in (cuda.CU_MEM_ALLOC_GRANULARITY_MINIMUM, cuda.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED):
    c.call("cuMemGetAllocationGranularity", ctypes.byref(out), ctypes.byref(p), option)
    assert out.value == UNIT
  assert error(c, "cuMemGetAllocationGranularity", ctypes.byref(out), ctypes.byref(p), 2) == "INVALID_VALUE"
  p.location.type = cuda.CU_MEM_LOCATION_TYPE_HOST
  assert error(c, "cuMemCreate", ctypes.byref(out), size, ctypes.byref(p), u64(0)) == "NOT_SUPPORTED"
  one = physical(c, UNIT)
  told = cuda.CUmemAllocationProp_v1()
  c.call("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(told), u64(one))
  assert told.type == cuda.CU_MEM_ALLOCATION_TYPE_PINNED and told.location.type == cuda.CU_MEM_LOCATION_TYPE_DEVICE
  assert error(c, "cuMemGetAllocationPropertiesFromHandle", None, u64(one)) == "INVALID_VALUE"
  for given in ((UNIT + 1, 0, 0), (0, 0, 0), (UNIT, 3, 0), (UNIT, 0, 1)):
    assert error(c, "cuMemAddressReserve", ctypes.byref(out), COUNT(given[0]), COUNT(given[1]), u64(0),
                 u64(given[2])) == "INVALID_VALUE"
  at = c.handle("cuMemAddressReserve", COUNT(2 * UNIT), COUNT(0), u64(0), u64(0))
  where = cuda.CUmemLocation(type=cuda.CU_MEM_LOCATION_TYPE_DEVICE)
  for name, given in (("cuMemRetainAllocationHandle", (u64(at),)),
                      ("cuMemGetAccess", (ctypes.byref(where), u64(at)))):
    assert error(c, name, ctypes.byref(out), *given) == "INVALID_VALUE"
    assert error(c, name, ctypes.byref(out), *given[:-1], u64(at - 1)) == "INVALID_VALUE"
  for address, length, offset, flags in ((at, 2 * UNIT, 0, 0), (at + 4096, UNIT, 0, 0), (at, UNIT, 4096, 0),
                                         (at, UNIT, 0, 1), (at + 2 * UNIT, UNIT, 0, 0), (at, 0, 0, 0)):
    assert error(c, "cuMemMap", u64(address), COUNT(length), COUNT(offset), u64(one), u64(flags)) == "INVALID_VALUE"
  c.call("cuMemMap", u64(at), size, COUNT(0), u64(one), u64(0))
  assert error(c, "cuMemMap", u64(at), size, COUNT(0), u64(one), u64(0)) == "INVALID_VALUE"
  d = cuda.CUmemAccessDesc_v1(flags=cuda.CU_MEM_ACCESS_FLAGS_PROT_READ)
  d.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  assert error(c, "cuMemSetAccess", u64(at), size, ctypes.byref(d), COUNT(1)) == "NOT_SUPPORTED"
  granted(c, at, UNIT)
  c.call("cuMemGetAccess", ctypes.byref(out), ctypes.byref(where), u64(at + UNIT - 1))
  assert out.value == cuda.CU_MEM_ACCESS_FLAGS_PROT_READWRITE and at in c.machine.space.used
  granted(c, at, UNIT, cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE)
  assert at not in c.machine.space.used


def test_all_of_a_cards_memory_is_to_be_had(client: Client) -> None:
  free, total = COUNT(), COUNT()
  client.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
  assert free.value == total.value
  at = client.alloc(total.value)
  client.call("cuMemFree_v2", u64(at))
  assert client.alloc(total.value) == at


# ---- launches

FULL = HEAD + """
.visible .entry full(.param .u64 at) { .shared .align 4 .b8 s[49152]; .reg .u32 %r; mov.u32 %r, s; ret; }
.visible .entry bad(.param .u64 at) {
  .reg .u64 %rd; .reg .u32 %r<4>; .reg .pred %p<4>;
  ld.param.u64 %rd, [at]; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.x;
  setp.eq.u32 %p1, %r1, 2; setp.eq.and.u32 %p1, %r2, 3, %p1; setp.eq.and.u32 %p1, %r3, 1, %p1;
  @%p1 st.global.u32 [%rd], %r1; ret; }
"""


def test_no_dynamic_shared_memory_beside_all_that_there_is(client: Client) -> None:
  function = client.function(FULL, "full")
  assert client.launch(function, 1, 1, [u64(0)]) == 0
  assert client.launch(function, 1, 1, [u64(0)], shared=1) == cuda.CUDA_ERROR_INVALID_VALUE


def test_a_fault_names_its_thread(client: Client) -> None:
  """Grid and block have sides of their own."""
  function, given = client.function(FULL, "bad"), u64(8)
  places = (ctypes.c_void_p * 1)(ctypes.addressof(given))
  client.call("cuLaunchKernel", u64(function), 1, 3, 1, 2, 4, 1, 0, u64(0), places, None)
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  text = "\n".join(client.machine.logs)
  assert "workgroup 0,2,0" in text and "thread 1,3,0 of its block" in text


def test_an_array_is_not_destroyed_under_a_copy(client: Client) -> None:
  d = cuda.CUDA_ARRAY_DESCRIPTOR_v2(Width=64, Height=1, Format=cuda.CU_AD_FORMAT_UNSIGNED_INT32, NumChannels=1)
  array = client.handle("cuArrayCreate_v2", ctypes.byref(d))
  data, at = np.arange(64, dtype=np.uint32), client.alloc(256)
  client.call("cuMemcpyHtoA_v2", u64(array), COUNT(0), ctypes.c_void_p(data.ctypes.data), COUNT(256))
  stream = client.handle("cuStreamCreate", 1)
  box = cuda.CUDA_MEMCPY2D_v2(srcMemoryType=cuda.CU_MEMORYTYPE_ARRAY, srcArray=array, WidthInBytes=256, Height=1,
                              dstMemoryType=cuda.CU_MEMORYTYPE_DEVICE, dstDevice=at, dstPitch=256)
  client.call("cuMemcpy2DAsync_v2", ctypes.byref(box), u64(stream))
  client.call("cuArrayDestroy", u64(array))
  client.call("cuMemsetD8_v2", u64(client.alloc(1 << 16)), 0xFF, COUNT(1 << 16))
  assert (client.get(at, data) == data).all()


def test_hints_of_a_part_of_managed_memory(client: Client) -> None:
  at, seen = client.handle("cuMemAllocManaged", COUNT(4 * 4096), cuda.CU_MEM_ATTACH_GLOBAL), ctypes.c_int()
  client.call("cuMemAdvise", u64(at + 2 * 4096), COUNT(4096), cuda.CU_MEM_ADVISE_SET_READ_MOSTLY, 0)
  for page, wanted in ((0, 0), (1, 0), (2, 1), (3, 0)):
    client.call("cuMemRangeGetAttribute", ctypes.byref(seen), COUNT(4), cuda.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                u64(at + 4096 * page), COUNT(4096))
    assert seen.value == wanted, page
