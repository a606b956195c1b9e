"""Graphs by hand: nodes are added, looked at, changed, copied."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.graphs import works
from tinyhw.mock.cuda.graphs.edges import checked, nodes_of, told
from tinyhw.mock.cuda.graphs.graphs import Graph, Node, Ready, dropped
from tinyhw.mock.cuda.graphs.works import AllocWork, ConditionalWork, EventWork, FreeWork, GraphWork, KernelWork, Work
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.memory.allocations import release
from tinyhw.mock.cuda.memory.arrays import given, place
from tinyhw.mock.cuda.streams.streams import Event

Make = Callable[[CudaMachine, int], Work]
"""A work from a pointer to what a program says of it."""


@serves("cuGraphCreate")
def graph_create(m: CudaMachine, out: int, flags: int) -> None:
  only(flags, 0, "a graph")
  graph = Graph()
  graph.handle = m.new(graph)
  m.out(out, "Q", graph.handle)


@serves("cuGraphDestroy")
def graph_destroy(m: CudaMachine, handle: int) -> None:
  graph: Graph = m.find(handle, Graph)
  if graph.owned: raise invalid("the graph is a node's, and goes with it")
  for node in graph.all():
    if isinstance(node.work, ConditionalWork) and node.work.condition.piece.address in m.pieces:
      m.handles.pop(node.work.condition.piece.address, None)
      release(m, node.work.condition.piece)
  graph.forget(m)


def _add(m: CudaMachine, out: int, handle: int, after: int, count: int, work: Work, edges: int = 0) -> Node:
  graph: Graph = m.find(handle, Graph)
  come = nodes_of(m, graph, after, count, edges)
  checked(come, work.kind)
  node = graph.add(m, work, come)
  m.out(out, "Q", node.handle)
  return node


def _kernel(m: CudaMachine, pointer: int) -> Work:
  return works.kernel(m, m.working(), given(m, pointer, cuda.CUDA_KERNEL_NODE_PARAMS_v2))


def _copy(m: CudaMachine, pointer: int) -> Work:
  m.working()
  return works.copy(m, given(m, pointer, cuda.CUDA_MEMCPY3D_v2))


def _fill(m: CudaMachine, pointer: int) -> Work:
  return works.fill(m, given(m, pointer, cuda.CUDA_MEMSET_NODE_PARAMS_v1))


def _host(m: CudaMachine, pointer: int) -> Work: return works.host(given(m, pointer, cuda.CUDA_HOST_NODE_PARAMS_v2))


# Kinds of nodes whose parameters are set and told alike: their name, how a work is made, whether a context is named.
_KINDS: dict[str, tuple[int, Make, bool, str]] = {
  "Kernel": (cuda.CU_GRAPH_NODE_TYPE_KERNEL, _kernel, False, "_v2"),
  "Memcpy": (cuda.CU_GRAPH_NODE_TYPE_MEMCPY, _copy, True, ""),
  "Memset": (cuda.CU_GRAPH_NODE_TYPE_MEMSET, _fill, True, ""),
  "Host": (cuda.CU_GRAPH_NODE_TYPE_HOST, _host, False, "")}


def _of_kind(m: CudaMachine, handle: int, kind: int) -> Node:
  node: Node = m.find(handle, Node)
  if node.kind != kind: raise invalid(f"a node of kind {node.kind}, not {kind}")
  return node


def _changed(m: CudaMachine, handle: int, original: Node, work: Work) -> None:
  """Another work for a node of a graph that can be launched."""
  node = m.find(handle, Ready).node(original)
  if work.kind != node.kind: raise invalid(f"a node of kind {node.kind}, not {work.kind}")
  if isinstance(work, KernelWork) and isinstance(node.work, KernelWork) and (
      work.launch.function.context is not node.work.launch.function.context):
    raise invalid("a kernel of another context")
  node.work = _in_place_of(node.work, work)


def _in_place_of(old: Work, new: Work) -> Work:
  """A node's new work: a kernel has the attributes that the node was given before."""
  return new.having(old.attributes) if isinstance(old, KernelWork) and isinstance(new, KernelWork) else new


def _registered(name: str, kind: int, make: Make, contexts: bool, suffix: str) -> None:
  def add(m: CudaMachine, out: int, handle: int, after: int, count: int, params: int, context: int = 0) -> None:
    if contexts and context: m.find(context, Context, cuda.CUDA_ERROR_INVALID_CONTEXT).check()
    _add(m, out, handle, after, count, make(m, params))

  def put(m: CudaMachine, handle: int, params: int) -> None:
    node = _of_kind(m, handle, kind)
    node.work = _in_place_of(node.work, make(m, params))

  def put_ready(m: CudaMachine, handle: int, node: int, params: int, context: int = 0) -> None:
    _changed(m, handle, _of_kind(m, node, kind), make(m, params))

  def get(m: CudaMachine, handle: int, out: int) -> None:
    told = _of_kind(m, handle, kind).work.given
    if told is None: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "the parameters of what a stream's capture took")
    m.give(out, bytes(told))
  serves(f"cuGraphAdd{name}Node{suffix}")(add)
  serves(f"cuGraph{name}NodeSetParams{suffix}")(put)
  serves(f"cuGraphExec{name}NodeSetParams{suffix}")(put_ready)
  serves(f"cuGraph{name}NodeGetParams{suffix}")(get)


for _name, _row in _KINDS.items(): _registered(_name, *_row)


@serves("cuGraphAddEmptyNode")
def graph_add_empty_node(m: CudaMachine, out: int, handle: int, after: int, count: int) -> None:
  _add(m, out, handle, after, count, works.nothing())


# ---- graphs in graphs

def _child(m: CudaMachine, handle: int) -> GraphWork:
  child = m.find(handle, Graph).copied(m)
  if any(isinstance(n.work, ConditionalWork) for n in child.all()): raise invalid("a child with conditional nodes")
  child.handle, child.owned = m.new(child), True
  return GraphWork(child)


@serves("cuGraphAddChildGraphNode")
def graph_add_child_graph_node(m: CudaMachine, out: int, handle: int, after: int, count: int, child: int) -> None:
  if child == handle: raise invalid("a graph inside itself")
  _add(m, out, handle, after, count, _child(m, child))


@serves("cuGraphChildGraphNodeGetGraph")
def graph_child_graph_node_get_graph(m: CudaMachine, handle: int, out: int) -> None:
  work = _of_kind(m, handle, cuda.CU_GRAPH_NODE_TYPE_GRAPH).work
  assert isinstance(work, GraphWork)
  m.out(out, "Q", work.graph.handle)


@serves("cuGraphExecChildGraphNodeSetParams")
def graph_exec_child_graph_node_set_params(m: CudaMachine, handle: int, node: int, child: int) -> None:
  _changed(m, handle, _of_kind(m, node, cuda.CU_GRAPH_NODE_TYPE_GRAPH), _child(m, child))


# ---- events

def _event(kind: str, record: bool) -> None:
  number = cuda.CU_GRAPH_NODE_TYPE_EVENT_RECORD if record else cuda.CU_GRAPH_NODE_TYPE_WAIT_EVENT

  def add(m: CudaMachine, out: int, handle: int, after: int, count: int, event: int) -> None:
    _add(m, out, handle, after, count, EventWork(m.find(event, Event), record))

  def get(m: CudaMachine, handle: int, out: int) -> None:
    m.out(out, "Q", _of_kind(m, handle, number).work.given.handle)

  def put(m: CudaMachine, handle: int, event: int) -> None:
    _of_kind(m, handle, number).work = EventWork(m.find(event, Event), record)

  def put_ready(m: CudaMachine, handle: int, node: int, event: int) -> None:
    _changed(m, handle, _of_kind(m, node, number), EventWork(m.find(event, Event), record))
  serves(f"cuGraphAdd{kind}Node")(add)
  serves(f"cuGraph{kind}NodeGetEvent")(get)
  serves(f"cuGraph{kind}NodeSetEvent")(put)
  serves(f"cuGraphExec{kind}NodeSetEvent")(put_ready)


_event("EventRecord", True)
_event("EventWait", False)


# ---- memory

def alloc_node(m: CudaMachine, params: int) -> AllocWork:
  """An allocation; its address is known at once, and told."""
  p = given(m, params, cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1)
  where = p.poolProps.location
  if where.type != cuda.CU_MEM_LOCATION_TYPE_DEVICE or p.poolProps.allocType != cuda.CU_MEM_ALLOCATION_TYPE_PINNED:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"a graph's memory at a location of kind {where.type}")
  gpu = m.gpu(where.id)
  context = m.working()
  if context.gpu is not gpu:
    if gpu.primary is None: raise invalid(f"device {where.id} has no context")
    context = gpu.primary
  p.dptr = (reserved := works.Reserved(m, context, p)).address
  m.out(params + place(cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1, "dptr"), "Q", p.dptr)
  return AllocWork(m, reserved, p)


@serves("cuGraphAddMemAllocNode")
def graph_add_mem_alloc_node(m: CudaMachine, out: int, handle: int, after: int, count: int, params: int) -> None:
  _add(m, out, handle, after, count, alloc_node(m, params))


@serves("cuGraphAddMemFreeNode")
def graph_add_mem_free_node(m: CudaMachine, out: int, handle: int, after: int, count: int, address: int) -> None:
  if address not in m.reserved: raise invalid(f"{address:#x} is no graph's memory")
  _add(m, out, handle, after, count, FreeWork(m, address))


@serves("cuGraphMemAllocNodeGetParams")
def graph_mem_alloc_node_get_params(m: CudaMachine, handle: int, out: int) -> None:
  m.user.write(out, bytes(_of_kind(m, handle, cuda.CU_GRAPH_NODE_TYPE_MEM_ALLOC).work.given))


@serves("cuGraphMemFreeNodeGetParams")
def graph_mem_free_node_get_params(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "Q", _of_kind(m, handle, cuda.CU_GRAPH_NODE_TYPE_MEM_FREE).work.given)


_MEMORY = (cuda.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, cuda.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
           cuda.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, cuda.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)


@serves("cuDeviceGetGraphMemAttribute")
def device_get_graph_mem_attribute(m: CudaMachine, device: int, attribute: int, out: int) -> None:
  """What is freed goes back at once: the bytes that are reserved are those in use."""
  gpu = m.gpu(device)
  if attribute not in _MEMORY: raise invalid(f"attribute {attribute} of a graph's memory")
  m.out(out, "Q", gpu.graph_most if attribute in _MEMORY[1::2] else gpu.graph_bytes)


@serves("cuDeviceSetGraphMemAttribute")
def device_set_graph_mem_attribute(m: CudaMachine, device: int, attribute: int, value: int) -> None:
  if attribute not in _MEMORY[1::2] or m.get(value, "Q")[0]: raise invalid("the highest values alone are set, to 0")
  m.gpu(device).graph_most = m.gpu(device).graph_bytes


@serves("cuDeviceGraphMemTrim")
def device_graph_mem_trim(m: CudaMachine, device: int) -> None:
  m.gpu(device)  # nothing is held back that could go


# ---- conditions, and nodes of any kind

@serves("cuGraphConditionalHandleCreate")
def graph_conditional_handle_create(m: CudaMachine, out: int, handle: int, context: int, default: int,
                                    flags: int) -> None:
  graph = m.find(handle, Graph)
  owner = m.find(context, Context, cuda.CUDA_ERROR_INVALID_CONTEXT) if context else m.working()
  only(flags, cuda.CU_GRAPH_COND_ASSIGN_DEFAULT, "a condition")
  m.out(out, "Q", works.Condition(m, graph, owner, default if flags else None).piece.address)


def _conditional(m: CudaMachine, p: Any, told: int) -> Work:
  condition: works.Condition = m.find(p.handle, works.Condition, cuda.CUDA_ERROR_INVALID_VALUE)
  if condition.used: raise invalid("the handle is another node's")
  most = {cuda.CU_GRAPH_COND_TYPE_IF: 2, cuda.CU_GRAPH_COND_TYPE_WHILE: 1, cuda.CU_GRAPH_COND_TYPE_SWITCH: 1 << 20}
  if p.type not in most or not 1 <= p.size <= most[p.type]: raise invalid(f"{p.size} bodies of a node of kind {p.type}")
  bodies = [Graph() for _ in range(p.size)]
  for body in bodies: body.handle, body.owned = m.new(body), True
  handles = (ctypes.c_uint64 * p.size)(*(b.handle for b in bodies))
  condition.used = True
  m.out(told, "Q", ctypes.addressof(handles))
  return ConditionalWork(condition, p.type, bodies, handles)


@serves("cuGraphAddNode_v2")
def graph_add_node(m: CudaMachine, out: int, handle: int, after: int, edges: int, count: int, params: int) -> None:
  _add(m, out, handle, after, count, _any(m, params), edges)


@serves("cuGraphAddNode")
def graph_add_node_1(m: CudaMachine, out: int, handle: int, after: int, count: int, params: int) -> None:
  graph_add_node(m, out, handle, after, 0, count, params)


def _any(m: CudaMachine, params: int) -> Work:
  """A work of the kind that CUgraphNodeParams names."""
  p = given(m, params, cuda.CUgraphNodeParams)
  at = params + place(cuda.CUgraphNodeParams, "kernel")
  if p.type == cuda.CU_GRAPH_NODE_TYPE_KERNEL: return works.kernel(m, m.working(), p.kernel)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_MEMCPY: return works.copy(m, p.memcpy.copyParams)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_MEMSET: return works.fill(m, p.memset)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_HOST: return works.host(p.host)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_GRAPH: return _child(m, p.graph.graph)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_EMPTY: return works.nothing()
  if p.type == cuda.CU_GRAPH_NODE_TYPE_EVENT_RECORD: return EventWork(m.find(p.eventRecord.event, Event), True)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_WAIT_EVENT: return EventWork(m.find(p.eventWait.event, Event), False)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_MEM_ALLOC: return alloc_node(m, at)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_MEM_FREE: return FreeWork(m, p.free.dptr)
  if p.type == cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return _conditional(m, p.conditional, at + place(cuda.CUDA_CONDITIONAL_NODE_PARAMS, "phGraph_out"))
  raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"nodes of kind {p.type} are not modelled")


@serves("cuGraphNodeSetParams")
def graph_node_set_params(m: CudaMachine, handle: int, params: int) -> None:
  node, kind = m.find(handle, Node), m.get(params, "I")[0]
  if kind != node.kind: raise invalid(f"a node of kind {node.kind}, not {kind}")
  node.work = _in_place_of(node.work, _any(m, params))


@serves("cuGraphExecNodeSetParams")
def graph_exec_node_set_params(m: CudaMachine, handle: int, node: int, params: int) -> None:
  _changed(m, handle, m.find(node, Node), _any(m, params))


@serves("cuGraphDestroyNode")
def graph_destroy_node(m: CudaMachine, handle: int) -> None:
  node: Node = m.find(handle, Node)
  node.graph.nodes.remove(node)
  for other in node.graph.nodes: other.after.pop(node, None)
  dropped(m, node)


@serves("cuGraphGetNodes")
def graph_get_nodes(m: CudaMachine, handle: int, out: int, count: int) -> None:
  told(m, m.find(handle, Graph).nodes, out, count)


@serves("cuGraphGetRootNodes")
def graph_get_root_nodes(m: CudaMachine, handle: int, out: int, count: int) -> None:
  told(m, [n for n in m.find(handle, Graph).nodes if not n.after], out, count)


@serves("cuGraphNodeGetType")
def graph_node_get_type(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "i", m.find(handle, Node).kind)


# ---- copies

@serves("cuGraphClone")
def graph_clone(m: CudaMachine, out: int, handle: int) -> None:
  original = m.find(handle, Graph)
  if any(isinstance(n.work, (AllocWork, FreeWork, ConditionalWork)) for n in original.all()):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "copies of graphs with memory or conditions of their own")
  graph = original.copied(m)
  graph.handle = m.new(graph)
  m.out(out, "Q", graph.handle)


@serves("cuGraphNodeFindInClone")
def graph_node_find_in_clone(m: CudaMachine, out: int, original: int, clone: int) -> None:
  found = m.find(clone, Graph).clones.get(m.find(original, Node))
  if found is None: raise invalid("the graph is no copy of the node's")
  m.out(out, "Q", found.handle)
