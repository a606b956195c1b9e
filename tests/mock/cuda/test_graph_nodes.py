"""Graphs node by node: copies, functions of the host, events, memory, graphs in graphs, conditions, changes, copies."""
from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, WAIT, Client, u64
from tests.mock.cuda.test_nodes_and_libraries import Work, error, node
from tests.strength import seed
from tinyhw.autogen import cuda

NONE = ctypes.c_size_t(0)
CONDITION = HEAD + """
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count(.param .u64 handle, .param .u64 at, .param .u32 most) {
  .reg .u64 %rd<3>; .reg .u32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd0, [handle]; ld.param.u64 %rd1, [at]; ld.param.u32 %r0, [most];
  ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;
  setp.lt.u32 %p, %r1, %r0; selp.u32 %r2, 1, 0, %p;
  { .param .b64 a; st.param.b64 [a], %rd0; .param .b32 b; st.param.b32 [b], %r2;
    call.uni cudaGraphSetConditional, (a, b); }
  ret; }
"""


def launched(client: Client, graph: int, flags: int = 0) -> int:
  ready = client.handle("cuGraphInstantiateWithFlags", u64(graph), u64(flags))
  client.call("cuGraphLaunch", u64(ready), u64(0))
  client.call("cuCtxSynchronize")
  return ready


def nodes_of(client: Client, graph: int) -> list[int]:
  count, out = ctypes.c_size_t(20), (ctypes.c_uint64 * 20)()
  client.call("cuGraphGetNodes", u64(graph), out, ctypes.byref(count))
  return [*out][:count.value]


def word(client: Client, at: int) -> int: return int(client.get(at, np.zeros(1, np.uint32))[0])


def row(to: int, come: int, size: int) -> cuda.CUDA_MEMCPY3D:
  return cuda.CUDA_MEMCPY3D(srcMemoryType=cuda.CU_MEMORYTYPE_UNIFIED, srcDevice=come, WidthInBytes=size, Height=1,
                            dstMemoryType=cuda.CU_MEMORYTYPE_UNIFIED, dstDevice=to, Depth=1)


def test_copies_and_functions_of_the_host(client: Client) -> None:
  """A copy in, a kernel, a copy out, a function that sees the result; then the copy's parameters change."""
  at, function, graph = client.alloc(4), client.function(WAIT, "add"), client.handle("cuGraphCreate", 0)
  come, to, seen = np.array([5], np.uint32), np.zeros(1, np.uint32), []
  first = node(client, graph, "Memcpy", (), ctypes.byref(row(at, come.ctypes.data, 4)), u64(client.context))
  work = Work(at, 2, func=function)
  kernel = client.handle("cuGraphAddKernelNode_v2", u64(graph), ctypes.byref(u64(first)), ctypes.c_size_t(1),
                         work.pointer)
  last = node(client, graph, "Memcpy", (kernel,), ctypes.byref(row(to.ctypes.data, at, 4)), u64(client.context))
  call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: seen.append((data, int(to[0]))))
  host = cuda.CUDA_HOST_NODE_PARAMS_v2(fn=ctypes.cast(call, ctypes.c_void_p).value, userData=77)
  node(client, graph, "Host", (last,), ctypes.byref(host))
  ready = launched(client, graph)
  assert seen == [(77, 3 * 5 + 2)]
  host.userData = 78
  client.call("cuGraphHostNodeSetParams", u64(last := nodes_of(client, graph)[-1]), ctypes.byref(host))
  client.call("cuGraphHostNodeGetParams", u64(last), ctypes.byref(asked := cuda.CUDA_HOST_NODE_PARAMS_v2()))
  assert (asked.userData, asked.fn) == (78, host.fn)
  host.userData = 77
  client.call("cuGraphExecHostNodeSetParams", u64(ready), u64(last), ctypes.byref(host))
  other = np.array([8], np.uint32)
  client.call("cuGraphExecMemcpyNodeSetParams", u64(ready), u64(first), ctypes.byref(row(at, other.ctypes.data, 4)),
              u64(client.context))
  client.call("cuGraphLaunch", u64(ready), u64(0))
  client.call("cuCtxSynchronize")
  assert seen[1] == (77, 3 * 8 + 2)
  told = cuda.CUDA_MEMCPY3D()
  client.call("cuGraphMemcpyNodeGetParams", u64(first), ctypes.byref(told))
  assert told.srcDevice == come.ctypes.data  # the graph itself is what it was
  found = cuda.CUDA_KERNEL_NODE_PARAMS_v2()
  client.call("cuGraphKernelNodeGetParams_v2", u64(kernel), ctypes.byref(found))
  where = ctypes.cast(found.kernelParams, ctypes.POINTER(ctypes.c_void_p))
  assert found.func == function and ctypes.c_uint64.from_address(where[0] or 0).value == at
  client.call("cuGraphNodeSetEnabled", u64(ready), u64(kernel), 0)
  client.call("cuGraphLaunch", u64(ready), u64(0))
  client.call("cuCtxSynchronize")
  assert seen[2] == (77, 8)
  assert error(client, "cuGraphNodeSetEnabled", u64(ready), u64(ready), 0) == "INVALID_HANDLE"


def _added(client: Client, at: int, value: int, graph: int, after: int = 0) -> int:
  work = Work(at, value, func=client.function(WAIT, "add"))
  return client.handle("cuGraphAddKernelNode_v2", u64(graph), ctypes.byref(u64(after)) if after else None,
                       ctypes.c_size_t(int(bool(after))), work.pointer)


def test_graphs_in_graphs_copies_and_edges(client: Client) -> None:
  at, inner, outer = client.alloc(4), client.handle("cuGraphCreate", 0), client.handle("cuGraphCreate", 0)
  client.call("cuMemsetD32_v2", u64(at), 1, ctypes.c_size_t(1))
  first = _added(client, at, 1, inner)
  second = _added(client, at, 2, inner, first)
  child = node(client, outer, "ChildGraph", (), u64(inner))
  _added(client, at, 3, outer, child)
  launched(client, outer)
  assert word(client, at) == 3 * (3 * (3 * 1 + 1) + 2) + 3
  copied = client.handle("cuGraphClone", u64(inner))
  twin = client.handle("cuGraphNodeFindInClone", u64(second), u64(copied))
  assert error(client, "cuGraphNodeFindInClone", ctypes.byref(u64(0)), u64(child), u64(copied)) == "INVALID_VALUE"
  count, nodes, edges = ctypes.c_size_t(4), (ctypes.c_uint64 * 4)(), (ctypes.c_uint64 * 4)(*[7] * 4)
  client.call("cuGraphNodeGetDependencies_v2", u64(twin), nodes, edges, ctypes.byref(count))
  assert count.value == 1 and edges[0] == 0 and nodes[0] not in (first, second)
  one = ctypes.c_uint64 * 1
  client.call("cuGraphRemoveDependencies", u64(copied), one(nodes[0]), one(twin), ctypes.c_size_t(1))
  count.value = 4
  client.call("cuGraphGetRootNodes", u64(copied), nodes, ctypes.byref(count))
  assert count.value == 2 and twin in nodes[:2]
  client.call("cuGraphDestroyNode", u64(twin))
  launched(client, copied)
  assert word(client, at) == 3 * 45 + 1 and error(client, "cuGraphNodeGetType", u64(twin), None) == "INVALID_HANDLE"


def test_an_update_takes_parameters_and_refuses_other_shapes(client: Client) -> None:
  at, graphs = client.alloc(4), [client.handle("cuGraphCreate", 0) for _ in range(3)]
  client.call("cuMemsetD32_v2", u64(at), 0, ctypes.c_size_t(1))
  for graph, values in zip(graphs, ((1, 1), (2, 4), (3,)), strict=True):
    last = 0
    for value in values: last = _added(client, at, value, graph, last)
  ready = launched(client, graphs[0])
  assert word(client, at) == 4
  info = cuda.CUgraphExecUpdateResultInfo()
  client.call("cuGraphExecUpdate_v2", u64(ready), u64(graphs[1]), ctypes.byref(info))
  client.call("cuGraphLaunch", u64(ready), u64(0))
  assert word(client, at) == 3 * (3 * 4 + 2) + 4
  assert error(client, "cuGraphExecUpdate_v2", u64(ready), u64(graphs[2]), ctypes.byref(info)) == \
    "GRAPH_EXEC_UPDATE_FAILURE" and info.result == cuda.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED


def test_memory_of_a_graphs_own(client: Client) -> None:
  """Its address is known before it is there; it is the same at each launch; nobody may launch over what is left."""
  graph, out = client.handle("cuGraphCreate", 0), np.zeros(1, np.uint32)
  p = cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1(bytesize=8192)
  p.poolProps.allocType = cuda.CU_MEM_ALLOCATION_TYPE_PINNED
  p.poolProps.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  first = node(client, graph, "MemAlloc", (), ctypes.byref(p))
  fill = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=p.dptr, value=9, elementSize=4, width=4, height=1)
  second = node(client, graph, "Memset", (first,), ctypes.byref(fill), u64(client.context))
  third = node(client, graph, "Memcpy", (second,), ctypes.byref(row(out.ctypes.data, p.dptr, 4)), u64(client.context))
  ready = launched(client, graph)
  assert out[0] == 9 and word(client, p.dptr + 4) == 9
  assert error(client, "cuGraphLaunch", u64(ready), u64(0)) == "INVALID_VALUE"
  client.call("cuMemFreeAsync", u64(p.dptr), u64(0))
  client.call("cuGraphLaunch", u64(ready), u64(0))
  client.call("cuCtxSynchronize")
  used = [u64(0), u64(0)]
  for which, cell in enumerate(used):
    client.call("cuDeviceGetGraphMemAttribute", 0, which, ctypes.byref(cell))
  assert [c.value for c in used] == [8192, 8192]
  client.call("cuMemFree_v2", u64(p.dptr))
  node(client, graph, "MemFree", (third,), u64(p.dptr))
  for _ in range(2): launched(client, graph)
  assert error(client, "cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), u64(p.dptr),
               ctypes.c_size_t(4)) == "INVALID_VALUE"


def test_memory_that_a_launch_on_the_way_brings(client: Client) -> None:
  """It may be freed, behind that launch, before it is there; where no launch brings it the stream fails."""
  stream, graph = client.handle("cuStreamCreate", 1), client.handle("cuGraphCreate", 0)
  client.call("cuStreamBeginCapture_v2", u64(stream), 0)
  at = client.handle("cuMemAllocAsync", ctypes.c_size_t(64), u64(stream))
  client.call("cuStreamEndCapture", u64(stream), ctypes.byref(cell := u64(graph)))
  ready = client.handle("cuGraphInstantiateWithFlags", cell, u64(0))
  for _ in range(2):
    client.call("cuGraphLaunch", u64(ready), u64(stream))
    assert at not in client.machine.pieces
    client.call("cuMemFreeAsync", u64(at), u64(stream))
    client.call("cuStreamSynchronize", u64(stream))
    assert at not in client.machine.pieces
  client.call("cuMemFreeAsync", u64(at), u64(stream))
  assert error(client, "cuStreamSynchronize", u64(stream)) == "INVALID_VALUE"


def test_edges_are_told_alike_by_every_call(client: Client) -> None:
  """Of random graphs: both versions, by nodes and of the whole; nodes without any before them are roots."""
  rng = random.Random(seed(6))
  for _ in range(3):
    graph, edges, nodes = client.handle("cuGraphCreate", 0), set[tuple[int, int]](), list[int]()
    for _ in range(6):
      before = rng.sample(nodes, rng.randint(0, min(3, len(nodes))))
      nodes.append(node(client, graph, "Empty", tuple(before)))
      edges |= {(b, nodes[-1]) for b in before}

    def told(name: str, *given: Any, lists: int = 1) -> list[tuple[int, ...]]:
      """What a call tells, as often as it is asked for how much that is; version 2 tells data of edges, too."""
      count, more = ctypes.c_size_t(), [None] if name.endswith("_v2") else []
      client.call(name, *given, *[None] * lists, *more, ctypes.byref(count))
      cells = [(ctypes.c_uint64 * 20)() for _ in range(lists)]
      client.call(name, *given, *cells, *more, ctypes.byref(count))
      return sorted(zip(*([*c][:count.value] for c in cells)))
    for v in ("", "_v2"):
      assert told(f"cuGraphGetEdges{v}", u64(graph), lists=2) == sorted(edges)
      for n in nodes:
        assert told(f"cuGraphNodeGetDependencies{v}", u64(n)) == sorted((a,) for a, b in edges if b == n)
        assert told(f"cuGraphNodeGetDependentNodes{v}", u64(n)) == sorted((b,) for a, b in edges if a == n)
    assert told("cuGraphGetNodes", u64(graph)) == sorted((n,) for n in nodes)
    assert told("cuGraphGetRootNodes", u64(graph)) == sorted((n,) for n in nodes if all(b != n for _, b in edges))


@pytest.mark.parametrize("flags", [0, cuda.CU_EVENT_RECORD_EXTERNAL])
def test_events_of_a_capture(client: Client, flags: int) -> None:
  """One that is recorded for others is a node; another only names a place within the graph."""
  stream, event = client.handle("cuStreamCreate", 1), client.handle("cuEventCreate", 0)
  client.call("cuStreamBeginCapture_v2", u64(stream), 0)
  client.call("cuEventRecordWithFlags", u64(event), u64(stream), flags)
  graph, count = ctypes.c_uint64(), ctypes.c_size_t()
  client.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph))
  client.call("cuGraphGetNodes", u64(graph.value), None, ctypes.byref(count))
  assert count.value == bool(flags)


def test_a_captured_stream_makes_memory_and_joins_another_graph(client: Client) -> None:
  stream, graph = client.handle("cuStreamCreate", 1), client.handle("cuGraphCreate", 0)
  out = np.zeros(1, np.uint32)
  before = node(client, graph, "Empty")
  client.call("cuStreamBeginCaptureToGraph", u64(stream), u64(graph), ctypes.byref(u64(before)), None,
              ctypes.c_size_t(1), 0)
  at = client.handle("cuMemAllocAsync", ctypes.c_size_t(64), u64(stream))
  client.call("cuMemsetD32Async", u64(at), 6, ctypes.c_size_t(1), u64(stream))
  client.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(out.ctypes.data), u64(at), ctypes.c_size_t(4), u64(stream))
  client.call("cuMemFreeAsync", u64(at), u64(stream))
  status, number, into, last, count = ctypes.c_int(), u64(0), u64(0), u64(0), ctypes.c_size_t()
  client.call("cuStreamGetCaptureInfo_v3", u64(stream), *map(ctypes.byref, (status, number, into, last)), None,
              ctypes.byref(count))
  assert (status.value, into.value, count.value) == (cuda.CU_STREAM_CAPTURE_STATUS_ACTIVE, graph, 1)
  kind = ctypes.c_int()
  client.call("cuGraphNodeGetType", ctypes.c_uint64.from_address(last.value), ctypes.byref(kind))
  assert kind.value == cuda.CU_GRAPH_NODE_TYPE_MEM_FREE
  ended = u64(0)
  client.call("cuStreamEndCapture", u64(stream), ctypes.byref(ended))
  assert ended.value == graph
  launched(client, graph)
  assert out[0] == 6


def test_a_condition_is_a_contexts(client: Client) -> None:
  """The current one's where none is named."""
  graph, bad = client.handle("cuGraphCreate", 0), ctypes.byref(u64(0))
  client.handle("cuGraphConditionalHandleCreate", u64(graph), u64(0), 0, 0)
  assert error(client, "cuGraphConditionalHandleCreate", bad, u64(graph), u64(graph), 0, 0) == "INVALID_CONTEXT"
  assert error(client, "cuGraphConditionalHandleCreate", bad, u64(graph), u64(0), 0, 2) == "INVALID_VALUE"
  client.call("cuCtxSetCurrent", u64(0))
  client.handle("cuGraphConditionalHandleCreate", u64(graph), u64(client.context), 0, 0)
  assert error(client, "cuGraphConditionalHandleCreate", bad, u64(graph), u64(0), 0, 0) == "INVALID_CONTEXT"


@pytest.mark.parametrize("which", ["if", "while", "switch"])
def test_conditions_that_kernels_set(client: Client, which: str) -> None:
  at, graph = client.alloc(8), client.handle("cuGraphCreate", 0)
  client.call("cuMemsetD32_v2", u64(at), 0, ctypes.c_size_t(2))
  handle = client.handle("cuGraphConditionalHandleCreate", u64(graph), u64(client.context), 1,
                         cuda.CU_GRAPH_COND_ASSIGN_DEFAULT)
  kind, size = {"if": (cuda.CU_GRAPH_COND_TYPE_IF, 2), "while": (cuda.CU_GRAPH_COND_TYPE_WHILE, 1),
                "switch": (cuda.CU_GRAPH_COND_TYPE_SWITCH, 3)}[which]
  p = cuda.CUgraphNodeParams(type=cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL)
  p.conditional.handle, p.conditional.type, p.conditional.size, p.conditional.ctx = handle, kind, size, client.context
  added, found = client.handle("cuGraphAddNode_v2", u64(graph), None, None, NONE, ctypes.byref(p)), ctypes.c_int(-1)
  client.call("cuGraphNodeGetType", u64(added), ctypes.byref(found))
  assert found.value == cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL
  bodies = (ctypes.c_uint64 * size).from_address(p.conditional.phGraph_out)
  if which == "while":
    values: tuple[Any, ...] = u64(handle), u64(at), ctypes.c_uint32(4)
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
    work = cuda.CUDA_KERNEL_NODE_PARAMS_v2(func=client.function(CONDITION, "count"),
                                           kernelParams=ctypes.addressof(places),
                                           **{f"{s}Dim{a}": 1 for s in ("grid", "block") for a in "XYZ"})
    client.handle("cuGraphAddKernelNode_v2", u64(bodies[0]), None, NONE, ctypes.byref(work))
  else:
    for i, body in enumerate(bodies): _added(client, at + 4, i + 5, body)
  ready = launched(client, graph)
  assert [word(client, at), word(client, at + 4)] == {"if": [0, 5], "while": [4, 0], "switch": [0, 6]}[which]
  if which == "while":  # the default counts at each launch: one turn more
    client.call("cuGraphLaunch", u64(ready), u64(0))
    assert word(client, at) == 5


def test_events_of_a_graph_are_those_of_the_program(client: Client) -> None:
  graph, event, stream = client.handle("cuGraphCreate", 0), client.handle("cuEventCreate", 0), client.handle(
    "cuStreamCreate", 1)
  at = client.alloc(4)
  client.call("cuMemsetD32_v2", u64(at), 1, ctypes.c_size_t(1))
  node(client, graph, "EventRecord", (_added(client, at, 1, graph),), u64(event))
  ready = client.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))
  client.call("cuGraphLaunch", u64(ready), u64(0))
  client.call("cuStreamWaitEvent", u64(stream), u64(event), 0)
  client.call("cuMemsetD32Async", u64(at), 50, ctypes.c_size_t(1), u64(stream))
  client.call("cuCtxSynchronize")
  assert word(client, at) == 50


def test_what_graphs_do_not_model_is_said(client: Client) -> None:
  graph, out = client.handle("cuGraphCreate", 0), u64(0)
  p = cuda.CUgraphNodeParams(type=cuda.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
  assert error(client, "cuGraphAddNode_v2", ctypes.byref(out), u64(graph), None, None, NONE,
               ctypes.byref(p)) == "NOT_SUPPORTED"
  assert error(client, "cuGraphInstantiateWithFlags", ctypes.byref(out), u64(graph),
               u64(cuda.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)) == "NOT_SUPPORTED"
  assert any("graphs that kernels launch" in line for line in client.machine.report())


def test_objects_go_with_the_last_reference(client: Client) -> None:
  graph, gone = client.handle("cuGraphCreate", 0), []
  destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(gone.append)
  thing = client.handle("cuUserObjectCreate", u64(5), destroy, 1, cuda.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
  client.call("cuUserObjectRetain", u64(thing), 2)
  for _ in range(2): client.call("cuUserObjectRelease", u64(thing), 1)
  client.call("cuGraphRetainUserObject", u64(graph), u64(thing), 1, cuda.CU_GRAPH_USER_OBJECT_MOVE)
  assert gone == []
  client.call("cuGraphDestroy", u64(graph))
  assert gone == [5]
  other = client.handle("cuUserObjectCreate", u64(6), destroy, 1, cuda.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
  client.call("cuUserObjectRelease", u64(other), 1)
  assert gone == [5, 6] and error(client, "cuUserObjectRelease", u64(other), 1) == "INVALID_HANDLE"
