"""Graphs: nodes with what they come after, made by hand or captured from streams, and launched as a whole.

A launch puts the nodes into its stream in one of the orders that their edges allow, which the seed decides.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tinyhw.autogen import cuda
from tinyhw.mock.cuda import memory
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.modules import Launch, prepare
from tinyhw.mock.cuda.streams import Event, Stream, at_once, stream_of
from tinyhw.mock.nv.jobs import Turns

Work = Callable[[Stream], Turns]


@dataclass(eq=False)
class Node:
  """A node: what it does on a stream. `kind` is one of CU_GRAPH_NODE_TYPE_*."""

  graph: Graph
  what: str
  kind: int
  work: Work
  after: list[Node]
  launch: Launch | None = None
  handle: int = 0


class Graph:
  """A graph."""

  def __init__(self, context: Context | None) -> None:
    self.context = context
    self.nodes: list[Node] = []
    self.handle = 0

  def add(self, m: CudaMachine, what: str, kind: int, work: Work, after: Iterable[Node],
          launch: Launch | None = None) -> Node:
    """A new node."""
    node = Node(self, what, kind, work, list(after), launch)
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


@dataclass(eq=False)
class Ready:
  """An instantiated graph: copies of the nodes, so that changes of the graph do not reach it."""

  graph: Graph
  nodes: dict[Node, Node] = field(default_factory=dict)  # of the graph -> ours


class Capture:
  """A capture of streams into a graph."""

  def __init__(self, m: CudaMachine, origin: Stream, mode: int) -> None:
    self.machine, self.origin, self.mode = m, origin, mode
    self.graph = Graph(origin.context)
    self.last: dict[Stream, list[Node]] = {}

  def take(self, stream: Stream, what: str, work: Callable[[], Turns], launch: Launch | None = None) -> None:
    """Work of a captured stream becomes a node."""
    kind = cuda.CU_GRAPH_NODE_TYPE_KERNEL if launch is not None else cuda.CU_GRAPH_NODE_TYPE_MEMCPY
    node = self.graph.add(self.machine, what, kind, (lambda s: launch.turns(s)) if launch is not None
                          else (lambda s: work()), self.last.get(stream, []), launch)
    self.last[stream] = [node]

  def tail(self, stream: Stream) -> tuple[Capture, list[Node]]:
    """What an event that is recorded now stands for."""
    return self, list(self.last.get(stream, []))


def wait_captured(m: CudaMachine, stream: Stream, event: Event) -> None:
  """A stream waits for an event of a capture: it joins the capture."""
  if event.node is None:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a captured stream waits for an event from outside")
  capture, nodes = event.node
  if stream.capture is None:
    stream.capture = capture
  elif stream.capture is not capture:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would become one")
  capture.last[stream] = [*capture.last.get(stream, []), *nodes]


# ---- capture

@serves("cuStreamBeginCapture_v2")
def stream_begin_capture(m: CudaMachine, handle: int, mode: int) -> None:
  stream = stream_of(m, handle)
  if stream.legacy:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy default stream cannot be captured")
  if stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_ILLEGAL_STATE, "the stream is captured already")
  stream.capture = Capture(m, stream, mode)


@serves("cuStreamEndCapture")
def stream_end_capture(m: CudaMachine, handle: int, out: int) -> None:
  stream = stream_of(m, handle)
  capture: Capture | None = stream.capture
  if capture is None or capture.origin is not stream:
    raise Failed(cuda.CUDA_ERROR_ILLEGAL_STATE, "no capture began on this stream")
  joined = set(capture.last.get(stream, []))
  work = list(joined)
  while work:
    for node in work.pop().after:
      if node not in joined:
        joined.add(node)
        work.append(node)
  for other in stream.context.streams:
    if other.capture is capture:
      other.capture = None
  if len(joined) != len(capture.graph.nodes):
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work of another stream was not joined by an event")
  capture.graph.handle = m.new(capture.graph)
  m.out(out, "Q", capture.graph.handle)


@serves("cuStreamIsCapturing")
def stream_is_capturing(m: CudaMachine, handle: int, out: int) -> None:
  active = stream_of(m, handle).capture is not None
  m.out(out, "i", cuda.CU_STREAM_CAPTURE_STATUS_ACTIVE if active else cuda.CU_STREAM_CAPTURE_STATUS_NONE)


# ---- graphs by hand

@serves("cuGraphCreate")
def graph_create(m: CudaMachine, out: int, flags: int) -> None:
  if flags:
    raise invalid("flags of a graph must be 0")
  graph = Graph(m.stack[-1] if m.stack else None)
  graph.handle = m.new(graph)
  m.out(out, "Q", graph.handle)


@serves("cuGraphDestroy")
def graph_destroy(m: CudaMachine, handle: int) -> None:
  graph: Graph = m.find(handle, Graph)
  for node in graph.nodes:
    m.handles.pop(node.handle, None)
  del m.handles[handle]


def _after(m: CudaMachine, graph: Graph, pointer: int, count: int) -> list[Node]:
  found = [m.find(h, Node) for h in m.get(pointer, f"{count}Q")] if count else []
  if any(n.graph is not graph for n in found):
    raise invalid("a dependency is of another graph")
  return found


def _launch(m: CudaMachine, context: Context, pointer: int) -> Launch:
  kind = cuda.CUDA_KERNEL_NODE_PARAMS_v2
  p = kind.from_buffer_copy(m.user.read(pointer, ctypes.sizeof(kind)))
  return prepare(m, context, p.func or p.kern, (p.gridDimX, p.gridDimY, p.gridDimZ),
                 (p.blockDimX, p.blockDimY, p.blockDimZ), p.sharedMemBytes, p.kernelParams, p.extra)


@serves("cuGraphAddKernelNode_v2")
def graph_add_kernel_node(m: CudaMachine, out: int, handle: int, after: int, count: int, params: int) -> None:
  graph, context = m.find(handle, Graph), m.working()
  launch = _launch(m, context, params)
  node = graph.add(m, f"kernel {launch.function.name}", cuda.CU_GRAPH_NODE_TYPE_KERNEL, launch.turns,
                   _after(m, graph, after, count), launch)
  m.out(out, "Q", node.handle)


@serves("cuGraphKernelNodeSetParams_v2")
def graph_kernel_node_set_params(m: CudaMachine, handle: int, params: int) -> None:
  node: Node = m.find(handle, Node)
  node.launch = _launch(m, m.working(), params)
  node.work = node.launch.turns


@serves("cuGraphAddEmptyNode")
def graph_add_empty_node(m: CudaMachine, out: int, handle: int, after: int, count: int) -> None:
  graph = m.find(handle, Graph)
  node = graph.add(m, "nothing", cuda.CU_GRAPH_NODE_TYPE_EMPTY, lambda s: at_once(lambda: None),
                   _after(m, graph, after, count))
  m.out(out, "Q", node.handle)


@serves("cuGraphAddMemsetNode")
def graph_add_memset_node(m: CudaMachine, out: int, handle: int, after: int, count: int, params: int,
                          context: int) -> None:
  graph = m.find(handle, Graph)
  kind = cuda.CUDA_MEMSET_NODE_PARAMS_v1
  p = kind.from_buffer_copy(m.user.read(params, ctypes.sizeof(kind)))
  if p.elementSize not in (1, 2, 4):
    raise invalid(f"elements of {p.elementSize} bytes")

  def work(stream: Stream) -> Turns:
    return at_once(lambda: memory.fill(m, p.dst, p.pitch or p.width * p.elementSize, p.value, p.elementSize, p.width,
                                       p.height))
  node = graph.add(m, "a fill", cuda.CU_GRAPH_NODE_TYPE_MEMSET, work, _after(m, graph, after, count))
  m.out(out, "Q", node.handle)


@serves("cuGraphAddDependencies")
def graph_add_dependencies(m: CudaMachine, handle: int, come: int, to: int, count: int) -> None:
  graph = m.find(handle, Graph)
  for first, second in zip(_after(m, graph, come, count), _after(m, graph, to, count), strict=True):
    second.after.append(first)


@serves("cuGraphGetNodes")
def graph_get_nodes(m: CudaMachine, handle: int, out: int, count: int) -> None:
  nodes = m.find(handle, Graph).nodes
  room, = m.get(count, "Q")
  m.out(count, "Q", len(nodes) if not out else min(room, len(nodes)))
  if out:
    nodes = nodes[:room]
    m.out(out, f"{len(nodes)}Q", *(n.handle for n in nodes))


@serves("cuGraphNodeGetType")
def graph_node_get_type(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "i", m.find(handle, Node).kind)


# ---- to run

@serves("cuGraphInstantiateWithFlags")
def graph_instantiate(m: CudaMachine, out: int, handle: int, flags: int) -> None:
  graph: Graph = m.find(handle, Graph)
  ready = Ready(Graph(graph.context))
  for node in graph.order(m):
    copy = Node(ready.graph, node.what, node.kind, node.work, [ready.nodes[a] for a in node.after], node.launch)
    ready.nodes[node] = copy
    ready.graph.nodes.append(copy)
  m.out(out, "Q", m.new(ready))


@serves("cuGraphExecKernelNodeSetParams_v2")
def graph_exec_kernel_node_set_params(m: CudaMachine, handle: int, node: int, params: int) -> None:
  ready, original = m.find(handle, Ready), m.find(node, Node)
  ours = ready.nodes.get(original)
  if ours is None or ours.launch is None:
    raise invalid("the node is no kernel of this graph")
  launch = _launch(m, m.working(), params)
  if launch.function.context is not ours.launch.function.context:
    raise invalid("a kernel of another context")
  ours.launch, ours.work = launch, launch.turns


@serves("cuGraphLaunch")
def graph_launch(m: CudaMachine, handle: int, on: int) -> None:
  ready, stream = m.find(handle, Ready), stream_of(m, on)
  nodes = ready.graph.order(m)
  if stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph inside a captured one")
  for node in nodes:
    stream.add(node.what, node.work(stream))


@serves("cuGraphUpload")
def graph_upload(m: CudaMachine, handle: int, on: int) -> None:
  m.find(handle, Ready)
  stream_of(m, on)


@serves("cuGraphExecDestroy")
def graph_exec_destroy(m: CudaMachine, handle: int) -> None:
  m.find(handle, Ready)
  del m.handles[handle]
