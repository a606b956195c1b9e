"""Graphs: nodes with what they come after, made by hand or captured from streams, and launched as a whole.

A launch puts the nodes into its stream in one of the orders that their edges allow, which the seed decides. What a
body of a conditional node does is known when its turn comes: it runs within that node's.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.graphs.works import AllocWork, ConditionalWork, EventWork, FreeWork, KernelWork, Reserved, Work
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.memory.allocations import release, settle
from tinyhw.mock.cuda.memory.arrays import place
from tinyhw.mock.cuda.streams.launches import Launch
from tinyhw.mock.cuda.streams.streams import Event, Job, Stream, stream_of
from tinyhw.mock.cuda.watching import Doing, Spread
from tinyhw.mock.nv.chip.jobs import Turns, at_once

Edge = cuda.CUgraphEdgeData
EARLY: Final = bytes(cuda.CUgraphEdgeData(from_port=cuda.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                          type=cuda.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC))
PLAIN: Final = bytes(ctypes.sizeof(cuda.CUgraphEdgeData))  # an edge that waits for all of what comes before


@dataclass(eq=False)
class Node:
  """A node: its work, and what it comes after, by which edges. A disabled one does nothing."""

  graph: Graph
  work: Work
  after: Edges
  handle: int = 0
  enabled: bool = True

  @property
  def kind(self) -> int: return self.work.kind

  def queue(self, stream: Stream, last: Node | None = None) -> Job | None:
    """Put it into a stream, behind the node that was queued there last."""
    edge = Edge.from_buffer_copy(self.after[last]) if last in self.after else Edge()
    early = edge.type == cuda.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    return self.work.queue(stream, early)


Edges = dict[Node, bytes]
"""What a node comes after: the nodes, each with the CUgraphEdgeData of the edge from it."""


class Graph:
  """A graph. `clones` are nodes of the graph that it was copied from, with their copies here."""

  def __init__(self) -> None:
    self.nodes: list[Node] = []
    self.handle = 0
    self.clones: dict[Node, Node] = {}
    self.owned = False  # by a node, which goes with it
    self.objects: Counter[UserObject] = Counter()  # and how often it refers to each

  def add(self, m: CudaMachine, work: Work, after: Edges) -> Node:
    """A new node."""
    node = Node(self, work, dict(after))
    node.handle = m.new(node)
    self.nodes.append(node)
    return node

  def order(self, m: CudaMachine) -> list[Node]:
    """The nodes in an order that the edges allow. Raises Failed for a cycle."""
    left, done, out = list(self.nodes), set[Node](), list[Node]()
    while left:
      ready = [n for n in left if all(a in done for a in n.after)]
      if not ready:
        raise invalid("the graph has a cycle")
      node = ready[0] if len(ready) == 1 else m.rng.choice(ready)
      left.remove(node)
      done.add(node)
      out.append(node)
    return out

  @staticmethod
  def queue(stream: Stream, nodes: list[Node]) -> Job | None:
    """Put all of it into a stream, its nodes in an order; the last job."""
    job: Job | None = None
    last: Node | None = None
    spread = Spread(stream, stream.machine.watch) if stream.machine.watch is not None else None
    for n, node in enumerate(nodes):
      if spread is not None: spread.before(node)
      if node.enabled:
        made, last = node.queue(stream, last), node
        if made is not None:
          job = made
          if not job.of: job.of = f"node {n + 1} of {len(nodes)} of graph {node.graph.handle:#x}"
      if spread is not None: spread.after(node)
    if spread is not None: spread.end()
    return job

  def turns(self, stream: Stream) -> Turns:
    """All of it, within a job of a stream."""
    for node in self.order(stream.machine):
      if node.enabled: yield from node.work.turns(stream)

  def copied(self, m: CudaMachine) -> Graph:
    """A copy with nodes of its own."""
    made = Graph()
    for node in self.nodes:
      made.clones[node] = made.add(m, node.work.copied(m), {})
      made.clones[node].enabled = node.enabled
    for node in self.nodes: made.clones[node].after = {
      made.clones[a]: edge for a, edge in node.after.items()}
    return made

  def all(self) -> list[Node]:
    """Its nodes, and those of the graphs in them."""
    found = list(self.nodes)
    for node in self.nodes:
      for inner in inside(node): found += inner.all()
    return found

  def forget(self, m: CudaMachine) -> None:
    """The graph goes, with the graphs in it."""
    for node in self.nodes: dropped(m, node)
    for thing, count in self.objects.items(): thing.released(count)
    m.handles.pop(self.handle, None)


def inside(node: Node) -> list[Graph]:
  """The graphs in a node."""
  inner: Graph | None = getattr(node.work, "graph", None)
  return [inner] if inner is not None else list(getattr(node.work, "bodies", ()))


def dropped(m: CudaMachine, node: Node) -> None:
  """A node goes, with the graphs in it."""
  m.handles.pop(node.handle, None)
  for inner in inside(node): inner.forget(m)


def joined(some: Edges, more: Edges) -> Edges:
  """Edges together; where two come from one node, the one that waits for all of it stays."""
  return {**some, **{node: PLAIN if node in some and some[node] != edge else edge for node, edge in more.items()}}


@dataclass(eq=False)
class Ready:
  """An instantiated graph: a copy, so that changes of the graph do not reach it."""

  graph: Graph
  flags: int = 0
  handle: int = 0
  reserved: list[Reserved] = field(default_factory=list)  # memory that a launch leaves

  def node(self, original: Node) -> Node:
    """The node here that a node of the graph has become. Raises Failed where none has."""
    found = self.graph.clones.get(original)
    if found is None: raise invalid("the node is none of this graph's")
    return found


class UserObject:
  """Something of the program's that graphs keep: its destructor is called when nobody refers to it any more."""

  def __init__(self, pointer: int, destroy: int, count: int) -> None:
    self.pointer, self.destroy, self.count = pointer, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(destroy), count

  def released(self, count: int) -> None:
    """References go."""
    if count > self.count: raise invalid(f"{count} references of {self.count}")
    self.count -= count
    if not self.count: self.destroy(self.pointer)


class Capture:
  """A capture of streams into a graph; `after`, what its first nodes come after."""

  def __init__(self, m: CudaMachine, origin: Stream, graph: Graph | None = None, after: Edges | None = None) -> None:
    self.machine, self.origin = m, origin
    self.graph = graph or Graph()
    self.started = len(self.graph.nodes)
    self.last: dict[Stream, Edges] = {origin: after or {}}
    self.number = m.counted()

  def take(self, stream: Stream, work: Work, early: bool = False) -> Node:
    """Work of a captured stream becomes a node, which may begin `early`: when the kernels before it allow it. Where it
    is no kernel it comes after all of them."""
    after, kernel = self.last.get(stream, {}), cuda.CU_GRAPH_NODE_TYPE_KERNEL
    if work.kind != kernel: after = dict.fromkeys(after, PLAIN)
    elif early: after = {a: edge if any(edge) or a.kind != kernel else EARLY for a, edge in after.items()}
    node = self.graph.add(self.machine, work, after)
    self.last[stream] = {node: PLAIN}
    return node

  def take_turn(self, stream: Stream, kind: int, what: str, do: Callable[[], None], doing: Doing | None = None) -> None:
    """Work that is done in one turn."""
    self.take(stream, Work(kind, what, do, doing=doing))

  def take_launch(self, stream: Stream, launch: Launch, attributes: dict[int, bytes], early: bool) -> Node:
    """A launch of a kernel."""
    return self.take(stream, KernelWork(launch, attributes=attributes), early)

  def take_event(self, stream: Stream, event: Event, record: bool) -> None:
    """An event that the graph records, or waits for, each time it runs."""
    self.take(stream, EventWork(event, record))

  def take_alloc(self, stream: Stream, device: int, size: int) -> int:
    """Memory of the graph's own on a card; its address."""
    p = cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1(bytesize=size)
    p.poolProps.allocType, p.poolProps.location.id = cuda.CU_MEM_ALLOCATION_TYPE_PINNED, device
    p.poolProps.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
    reserved = Reserved(self.machine, stream.context, p)
    p.dptr = reserved.address
    self.take(stream, AllocWork(self.machine, reserved, p))
    return reserved.address

  def take_free(self, stream: Stream, address: int) -> None:
    """The end of an allocation."""
    self.take(stream, FreeWork(self.machine, address))

  def tail(self, stream: Stream) -> tuple[Capture, Edges]:
    """What an event that is recorded now stands for."""
    return self, self.last.get(stream, {})

  def join(self, stream: Stream, edges: Edges) -> None:
    """A stream waits for an event that stands for these edges: it is captured, too."""
    if stream.capture is None: stream.capture = self
    elif stream.capture is not self:
      raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would become one")
    self.last[stream] = joined(self.last.get(stream, {}), edges)


# ---- to run

def instantiate(m: CudaMachine, graph: Graph, flags: int) -> Ready:
  """A graph that can be launched."""
  known = (cuda.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | cuda.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
           | cuda.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
  if flags & cuda.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH:
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "graphs that kernels launch")
  only(flags, known, "an instantiation")
  graph.order(m)
  ready = Ready(graph.copied(m), flags)
  works = [node.work for node in ready.graph.all()]
  freed = {w.address for w in works if isinstance(w, FreeWork)}
  ready.reserved = [w.reserved for w in works if isinstance(w, AllocWork) and w.reserved.address not in freed]
  ready.handle = m.new(ready)
  return ready


@serves("cuGraphInstantiateWithFlags")
def graph_instantiate(m: CudaMachine, out: int, handle: int, flags: int) -> None:
  m.out(out, "Q", instantiate(m, m.find(handle, Graph), flags).handle)


@serves("cuGraphInstantiateWithParams")
def graph_instantiate_with_params(m: CudaMachine, out: int, handle: int, params: int) -> None:
  kind = cuda.CUDA_GRAPH_INSTANTIATE_PARAMS
  p = kind.from_buffer_copy(m.user.read(params, ctypes.sizeof(kind)))
  ready = instantiate(m, m.find(handle, Graph), p.flags)
  m.out(params + place(kind, "result_out"), "I", cuda.CUDA_GRAPH_INSTANTIATE_SUCCESS)
  m.out(out, "Q", ready.handle)


@serves("cuGraphExecGetFlags")
def graph_exec_get_flags(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "Q", m.find(handle, Ready).flags)


@serves("cuGraphLaunch")
def graph_launch(m: CudaMachine, handle: int, on: int) -> None:
  ready, stream = m.find(handle, Ready), stream_of(m, on)
  nodes = ready.graph.order(m)
  if stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph inside a captured one")
  if ready.reserved:
    settle(m, stream.context)  # what an earlier launch left is there, or was freed, by now
    for left in ready.reserved:
      if left.address not in m.pieces: continue
      if not ready.flags & cuda.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH:
        raise invalid(f"the graph's memory at {left.address:#x} was not freed since the last launch")
      release(m, m.pieces[left.address])
  for node in ready.graph.all():
    work = node.work
    if isinstance(work, ConditionalWork) and work.condition.default is not None:
      stream.add("the default of a condition", at_once(partial(work.condition.put, m, work.condition.default)))
  ready.graph.queue(stream, nodes)


@serves("cuGraphUpload")
def graph_upload(m: CudaMachine, handle: int, on: int) -> None:
  m.find(handle, Ready)
  stream_of(m, on)


@serves("cuGraphExecDestroy")
def graph_exec_destroy(m: CudaMachine, handle: int) -> None:
  ready: Ready = m.find(handle, Ready)
  ready.graph.forget(m)
  del m.handles[handle]


# ---- changes of what can be launched

@serves("cuGraphExecUpdate_v2")
def graph_exec_update(m: CudaMachine, handle: int, graph: int, info: int) -> None:
  """Nodes are paired in the order in which they were made, as the driver's manual asks of who updates."""
  ready, new = m.find(handle, Ready), m.find(graph, Graph)
  result, where = _difference(ready.graph, new)
  kind = cuda.CUgraphExecUpdateResultInfo
  if info: m.user.write(info, bytes(kind(result=result, errorNode=where.handle if where else 0)))
  if result != cuda.CU_GRAPH_EXEC_UPDATE_SUCCESS:
    raise Failed(cuda.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, f"the graphs differ: result {result}")
  _take(m, ready.graph, new)


def _difference(ours: Graph, new: Graph) -> tuple[int, Node | None]:
  """Why a graph cannot take another's parameters: one of CU_GRAPH_EXEC_UPDATE_*, and the node where."""
  if len(ours.nodes) != len(new.nodes): return cuda.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, None
  places = {node: i for i, node in enumerate((*ours.nodes, *new.nodes))}
  for a, b in zip(ours.nodes, new.nodes, strict=True):
    if a.kind != b.kind: return cuda.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b
    if ({places[x]: edge for x, edge in a.after.items()}
        != {places[x] - len(ours.nodes): edge for x, edge in b.after.items()}):
      return cuda.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b
    if isinstance(a.work, KernelWork) and isinstance(b.work, KernelWork) and (
        a.work.launch.function.context is not b.work.launch.function.context):
      return cuda.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, b
    if isinstance(a.work, (AllocWork, FreeWork, ConditionalWork)) and a.work is not b.work:
      return cuda.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, b
    for inner, other in zip(inside(a), inside(b), strict=True):
      found = _difference(inner, other)
      if found[0] != cuda.CU_GRAPH_EXEC_UPDATE_SUCCESS: return found
  return cuda.CU_GRAPH_EXEC_UPDATE_SUCCESS, None


def _take(m: CudaMachine, ours: Graph, new: Graph) -> None:
  for a, b in zip(ours.nodes, new.nodes, strict=True):
    for inner, other in zip(inside(a), inside(b), strict=True): _take(m, inner, other)
    if not inside(a): a.work = b.work
    ours.clones[b] = a


@serves("cuGraphNodeSetEnabled")
def graph_node_set_enabled(m: CudaMachine, handle: int, node: int, enabled: int) -> None:
  ours = m.find(handle, Ready).node(m.find(node, Node))
  if ours.kind not in (cuda.CU_GRAPH_NODE_TYPE_KERNEL, cuda.CU_GRAPH_NODE_TYPE_MEMSET,
                       cuda.CU_GRAPH_NODE_TYPE_MEMCPY):
    raise invalid(f"a node of kind {ours.kind} is not disabled")
  ours.enabled = bool(enabled)


@serves("cuGraphNodeGetEnabled")
def graph_node_get_enabled(m: CudaMachine, handle: int, node: int, out: int) -> None:
  m.out(out, "I", int(m.find(handle, Ready).node(m.find(node, Node)).enabled))


# ---- objects of a program's own

@serves("cuUserObjectCreate")
def user_object_create(m: CudaMachine, out: int, pointer: int, destroy: int, count: int, flags: int) -> None:
  if not destroy or not 0 < count < 1 << 31 or flags != cuda.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC:
    raise invalid(f"{count} references, flags {flags:#x}")
  m.out(out, "Q", m.new(UserObject(pointer, destroy, count)))


@serves("cuUserObjectRetain")
def user_object_retain(m: CudaMachine, handle: int, count: int) -> None:
  m.find(handle, UserObject).count += count


@serves("cuUserObjectRelease")
def user_object_release(m: CudaMachine, handle: int, count: int) -> None:
  thing: UserObject = m.find(handle, UserObject)
  thing.released(count)
  if not thing.count: m.handles.pop(handle, None)


@serves("cuGraphRetainUserObject")
def graph_retain_user_object(m: CudaMachine, handle: int, thing: int, count: int, flags: int) -> None:
  graph, kept = m.find(handle, Graph), m.find(thing, UserObject)
  only(flags, cuda.CU_GRAPH_USER_OBJECT_MOVE, "a reference")
  if not 0 < count < 1 << 31: raise invalid(f"{count} references")
  if not flags: kept.count += count
  graph.objects[kept] += count


@serves("cuGraphReleaseUserObject")
def graph_release_user_object(m: CudaMachine, handle: int, thing: int, count: int) -> None:
  graph, kept = m.find(handle, Graph), m.find(thing, UserObject)
  if graph.objects[kept] < count: raise invalid(f"the graph has not {count} references")
  graph.objects[kept] -= count
  kept.released(count)
