"""Programmatic dependent launches: attributes of launches, edges with ports, what captures make of them, attributes of
graphs' kernels."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import Client, u32, u64
from tests.mock.cuda.test_nodes_and_libraries import Work
from tinyhw.autogen import cuda

TWO = """.version 8.0
.target sm_90
.address_size 64
.visible .entry first(.param .u64 at, .param .u32 value) {
  .reg .u64 %rd; .reg .u32 %r<3>;
  ld.param.u64 %rd, [at]; ld.param.u32 %r1, [value];
  griddepcontrol.launch_dependents;
  st.global.u32 [%rd], %r1; ret; }
.visible .entry second(.param .u64 at, .param .u32 value) {
  .reg .u64 %rd; .reg .u32 %r<3>;
  ld.param.u64 %rd, [at]; ld.param.u32 %r1, [value];
  griddepcontrol.wait;
  ld.global.u32 %r2, [%rd]; mad.lo.u32 %r2, %r2, 10, %r1; st.global.u32 [%rd], %r2; ret; }
"""
Edge = cuda.CUgraphEdgeData
PLAIN, EARLY, BEGUN = Edge(), Edge(from_port=1, type=1), Edge(from_port=2, type=1)
INVALID = cuda.CUDA_ERROR_INVALID_VALUE


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.machine.close()


def attribute(kind: str, **fields: Any) -> cuda.CUlaunchAttribute:
  found = cuda.CUlaunchAttribute(id=getattr(cuda, f"CU_LAUNCH_ATTRIBUTE_{kind}"))
  for name, value in fields.items():
    if not isinstance(value, dict): setattr(found.value, name, value)
    else:
      for inner, it in value.items(): setattr(getattr(found.value, name), inner, it)
  return found


def launch(c: Client, function: int, at: int, value: int, stream: int, *attributes: cuda.CUlaunchAttribute) -> int:
  given = u64(at), u32(value)
  places, array = (ctypes.c_void_p * 2)(*map(ctypes.addressof, given)), (cuda.CUlaunchAttribute * 4)(*attributes)
  config = cuda.CUlaunchConfig(**{f"{side}Dim{axis}": 1 for side in ("grid", "block") for axis in "XYZ"},
                               attrs=ctypes.addressof(array), numAttrs=len(attributes), hStream=stream)
  return c.code("cuLaunchKernelEx", ctypes.byref(config), u64(function), places, None)


def edges(c: Client, graph: int) -> list[tuple[int, int, bytes]]:
  """What comes from where, and how."""
  count, come, to, data = ctypes.c_size_t(8), (ctypes.c_uint64 * 8)(), (ctypes.c_uint64 * 8)(), (Edge * 8)()
  c.call("cuGraphGetEdges_v2", u64(graph), come, to, data, ctypes.byref(count))
  return [(come[i], to[i], bytes(data[i])) for i in range(count.value)]


def kernels(c: Client) -> tuple[int, int, int]:
  """Memory of four bytes, and the two kernels."""
  module, at = c.handle("cuModuleLoadData", TWO.encode() + b"\0"), c.alloc(4)
  return at, *(c.handle("cuModuleGetFunction", u64(module), name) for name in (b"first", b"second"))


def result(c: Client, at: int) -> int: return int(c.get(at, np.zeros(1, np.uint32))[0])


def test_a_launch_that_may_begin_early_sees_what_comes_before(client: Client) -> None:
  c = client
  at, first, second = kernels(c)
  stream, event = c.handle("cuStreamCreate", 1), c.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
  other = c.handle("cuStreamCreate", 1)
  assert launch(c, first, at, 4, stream, attribute("PROGRAMMATIC_EVENT", programmaticEvent={"event": event})) == 0
  c.call("cuStreamWaitEvent", u64(other), u64(event), 0)
  early = attribute("PROGRAMMATIC_STREAM_SERIALIZATION", programmaticStreamSerializationAllowed=1)
  assert launch(c, second, at, 2, other, early) == 0
  c.call("cuCtxSynchronize")
  assert result(c, at) == 42
  timed = c.handle("cuEventCreate", 0)
  for kind, field in (("PROGRAMMATIC_EVENT", "programmaticEvent"),
                      ("LAUNCH_COMPLETION_EVENT", "launchCompletionEvent")):
    assert launch(c, first, at, 4, stream, attribute(kind, **{field: {"event": timed}})) == INVALID
    assert launch(c, first, at, 4, stream, attribute(kind, **{field: {"event": 1}})) == cuda.CUDA_ERROR_INVALID_HANDLE


@pytest.mark.parametrize("kind, port, of_type", [
  ("PROGRAMMATIC_STREAM_SERIALIZATION", 1, 1), ("PROGRAMMATIC_EVENT", 1, 1), ("AT_START", 2, 1),
  ("LAUNCH_COMPLETION_EVENT", 2, 0)])
def test_captures_make_edges_of_them(client: Client, kind: str, port: int, of_type: int) -> None:
  """One behind the other in a stream, or in two by an event; a fill behind an early kernel waits for all of it."""
  c = client
  at, first, second = kernels(c)
  stream, event = c.handle("cuStreamCreate", 1), c.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
  other = c.handle("cuStreamCreate", 1)
  c.call("cuStreamBeginCapture_v2", u64(stream), cuda.CU_STREAM_CAPTURE_MODE_GLOBAL)
  if kind == "PROGRAMMATIC_STREAM_SERIALIZATION":
    assert launch(c, first, at, 4, stream) == 0
    assert launch(c, second, at, 2, stream, attribute(kind, programmaticStreamSerializationAllowed=1)) == 0
  else:
    said = (attribute(kind, launchCompletionEvent={"event": event}) if kind == "LAUNCH_COMPLETION_EVENT" else
            attribute("PROGRAMMATIC_EVENT", programmaticEvent={"event": event,
                                                               "triggerAtBlockStart": int(kind == "AT_START")}))
    assert launch(c, first, at, 4, stream, said) == 0
    c.call("cuStreamWaitEvent", u64(other), u64(event), 0)
    pointers, status = [ctypes.c_uint64() for _ in range(5)], ctypes.c_int()
    plain = [ctypes.byref(p) for p in pointers[:3]]
    assert c.code("cuStreamGetCaptureInfo_v3", u64(other), ctypes.byref(status), *plain, None,
                  ctypes.byref(pointers[4])) == cuda.CUDA_ERROR_LOSSY_QUERY
    c.call("cuStreamGetCaptureInfo_v3", u64(other), ctypes.byref(status), *map(ctypes.byref, pointers))
    assert pointers[4].value == 1 and Edge.from_address(pointers[3].value).from_port == port
    assert launch(c, second, at, 2, other) == 0
    done = c.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
    c.call("cuEventRecord", u64(done), u64(other))
    c.call("cuStreamWaitEvent", u64(stream), u64(done), 0)
  c.call("cuMemsetD8Async", u64(at + 3), ctypes.c_uint8(1), ctypes.c_size_t(1), u64(stream))
  graph = ctypes.c_uint64()
  c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph))
  found = edges(c, graph.value)
  assert found[0][2] == bytes(Edge(from_port=port, type=of_type))
  assert found[1:] and all(data == bytes(8) for *_, data in found[1:])
  ready = c.handle("cuGraphInstantiateWithFlags", graph, u64(0))
  c.call("cuGraphLaunch", u64(ready), u64(0))
  c.call("cuCtxSynchronize")
  assert result(c, at) == 42 + (1 << 24)


def by_hand(c: Client) -> tuple[int, int, list[int]]:
  """A graph of two kernels and nothing, without an edge; the memory, the graph, its nodes."""
  at, first, second = kernels(c)
  graph = c.handle("cuGraphCreate", 0)
  works = Work(at, 4, func=first), Work(at, 2, func=second)
  nodes = [c.handle("cuGraphAddKernelNode_v2", u64(graph), None, ctypes.c_size_t(0), work.pointer) for work in works]
  return at, graph, [*nodes, c.handle("cuGraphAddEmptyNode", u64(graph), None, ctypes.c_size_t(0))]


def change(c: Client, what: str, graph: int, come: Sequence[int], to: Sequence[int], *data: Edge) -> int:
  n = len(come)
  return c.code(f"cuGraph{what}Dependencies_v2", u64(graph), (ctypes.c_uint64 * n)(*come), (ctypes.c_uint64 * n)(*to),
                (Edge * n)(*data) if data else None, ctypes.c_size_t(n))


def test_edges_by_hand_are_checked_and_told(client: Client) -> None:
  c = client
  at, graph, (first, second, nothing) = by_hand(c)
  for edge in (Edge(from_port=1), Edge(from_port=3, type=1), Edge(type=1), Edge(to_port=1), Edge(type=2),
               Edge(reserved=(ctypes.c_uint8 * 5)(1))):
    assert change(c, "Add", graph, [first], [second], edge) == INVALID, bytes(edge)
  for come, to in ((first, nothing), (nothing, second)):
    assert change(c, "Add", graph, [come], [to], EARLY) == INVALID
  assert change(c, "Add", graph, [first, first], [second, second], EARLY, PLAIN) == INVALID and not edges(c, graph)
  assert change(c, "Add", graph, [first, first], [second, nothing], EARLY, Edge(from_port=2)) == 0
  assert change(c, "Add", graph, [first], [second], PLAIN) == INVALID  # there is one
  assert edges(c, graph) == [(first, second, bytes(EARLY)), (first, nothing, bytes(Edge(from_port=2)))]
  count, out, data = ctypes.c_size_t(2), (ctypes.c_uint64 * 2)(), (Edge * 2)()
  for name, args in (("cuGraphNodeGetDependencies", (second,)), ("cuGraphNodeGetDependentNodes", (first,))):
    c.call(f"{name}_v2", u64(*args), out, data, ctypes.byref(count))
    assert data[0].from_port == 1 and out[0] in (first, second)
    assert c.code(f"{name}_v2", u64(*args), out, None, ctypes.byref(count)) == cuda.CUDA_ERROR_LOSSY_QUERY
    assert c.code(name, u64(*args), out, ctypes.byref(count)) == cuda.CUDA_ERROR_LOSSY_QUERY
    c.call(name, u64(*args), None, ctypes.byref(count))
  ready, copy = c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0)), c.handle("cuGraphClone", u64(graph))
  assert [data for *_, data in edges(c, copy)] == [bytes(EARLY), bytes(Edge(from_port=2))]
  c.call("cuGraphLaunch", u64(ready), u64(0))
  c.call("cuCtxSynchronize")
  assert result(c, at) == 42
  assert change(c, "Remove", graph, [first], [second]) == INVALID  # there is no plain one
  assert change(c, "Remove", graph, [first], [second], EARLY) == 0
  assert change(c, "Add", graph, [first], [second], BEGUN) == 0
  update = cuda.CUgraphExecUpdateResultInfo()
  assert c.code("cuGraphExecUpdate_v2", u64(ready), u64(graph), ctypes.byref(update)) != 0
  assert update.result == cuda.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED


def test_attributes_of_kernels_in_graphs(client: Client) -> None:
  """Set, told, copied; they stay when the parameters change, and a cluster that cannot be is refused."""
  c = client
  at, graph, (first, second, nothing) = by_hand(c)
  names = ("PRIORITY", "CLUSTER_DIMENSION", "COOPERATIVE", "CLUSTER_SCHEDULING_POLICY_PREFERENCE")
  kinds = {n: getattr(cuda, f"CU_KERNEL_NODE_ATTRIBUTE_{n}") for n in names}

  def told(node: int, name: str) -> cuda.CUstreamAttrValue:
    value = cuda.CUstreamAttrValue()
    c.call("cuGraphKernelNodeGetAttribute", u64(node), kinds[name], ctypes.byref(value))
    return value

  def put(node: int, kind: int, value: cuda.CUstreamAttrValue) -> int:
    return c.code("cuGraphKernelNodeSetAttribute", u64(node), kind, ctypes.byref(value))
  assert told(first, "PRIORITY").priority == 0
  assert put(first, kinds["PRIORITY"], cuda.CUstreamAttrValue(priority=-3)) == 0
  assert put(first, kinds["COOPERATIVE"], cuda.CUstreamAttrValue(cooperative=1)) == 0
  policy = cuda.CUstreamAttrValue(clusterSchedulingPolicyPreference=1)
  assert put(first, kinds["CLUSTER_SCHEDULING_POLICY_PREFERENCE"], policy) == 0
  size = cuda.CUstreamAttrValue()
  size.clusterDim.x, size.clusterDim.y, size.clusterDim.z = 3, 1, 1
  assert put(first, kinds["CLUSTER_DIMENSION"], size) == INVALID  # one block
  assert put(first, 99, size) == INVALID and put(nothing, kinds["PRIORITY"], size) == INVALID
  assert put(first, cuda.CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, size) == cuda.CUDA_ERROR_NOT_SUPPORTED
  c.call("cuGraphKernelNodeCopyAttributes", u64(second), u64(first))
  work = cuda.CUDA_KERNEL_NODE_PARAMS_v2()
  c.call("cuGraphKernelNodeGetParams_v2", u64(second), ctypes.byref(work))
  c.call("cuGraphKernelNodeSetParams_v2", u64(second), ctypes.byref(work))
  assert told(second, "PRIORITY").priority == -3 and told(second, "COOPERATIVE").cooperative == 1
  assert told(second, "CLUSTER_SCHEDULING_POLICY_PREFERENCE").clusterSchedulingPolicyPreference == 1
  assert change(c, "Add", graph, [first], [second], EARLY) == 0
  c.call("cuGraphLaunch", u64(c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))), u64(0))
  c.call("cuCtxSynchronize")
  assert result(c, at) == 42
