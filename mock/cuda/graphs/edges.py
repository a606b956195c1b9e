"""Edges of graphs: what comes after what, and by which port. A kernel behind a programmatic edge may begin before the
one in front of it has ended; here it begins then, as a card is free to do."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.graphs.graphs import PLAIN, Edges, Graph, Node
from tinyhw.mock.cuda.machine import CudaMachine

WIDTH: Final = len(PLAIN)
_KERNEL: Final = cuda.CU_GRAPH_NODE_TYPE_KERNEL


def _named(m: CudaMachine, graph: Graph, pointer: int, count: int) -> list[Node]:
  """Nodes of a graph that a program names."""
  found: list[Node] = [m.find(h, Node) for h in m.get(pointer, f"{count}Q")] if count else []
  if any(n.graph is not graph for n in found):
    raise invalid("a dependency is of another graph")
  return found


def _data(m: CudaMachine, edges: int, count: int) -> list[bytes]:
  """The data of edges that a program gives, or none."""
  if not edges or not count: return [PLAIN] * count
  data = m.user.read(edges, count * WIDTH)
  return [data[i:i + WIDTH] for i in range(0, len(data), WIDTH)]


def nodes_of(m: CudaMachine, graph: Graph, pointer: int, count: int, edges: int = 0) -> Edges:
  """The nodes of a graph that a program names, with the edges from them."""
  found = dict(zip(_named(m, graph, pointer, count), _data(m, edges, count), strict=True))
  checked(found, _KERNEL)  # what comes behind is not told yet
  return found


def checked(come: Edges, to: int) -> None:
  """Raises Failed for edges that a node of a kind cannot have: cuda.h, CUgraphEdgeData and CUgraphDependencyType."""
  ports = cuda.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, cuda.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER
  for node, data in come.items():
    edge = cuda.CUgraphEdgeData.from_buffer_copy(data)
    early = edge.type == cuda.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
    if edge.to_port or any(edge.reserved): raise invalid("an edge's to_port and reserved bytes are 0")
    if edge.type != cuda.CU_GRAPH_DEPENDENCY_TYPE_DEFAULT and not early: raise invalid(f"an edge of type {edge.type}")
    if edge.from_port and (node.kind != _KERNEL or edge.from_port not in ports):
      raise invalid(f"port {edge.from_port} of a node of kind {node.kind}")
    if early and (to != _KERNEL or edge.from_port not in ports):
      raise invalid("a programmatic edge joins two kernels, from the port PROGRAMMATIC or LAUNCH_ORDER")
    if edge.from_port == cuda.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC and not early:
      raise invalid("an edge from the port PROGRAMMATIC is of the programmatic type")


@serves("cuGraphAddDependencies")
def graph_add_dependencies(m: CudaMachine, handle: int, come: int, to: int, count: int, edges: int = 0) -> None:
  graph = m.find(handle, Graph)
  new: dict[tuple[Node, Node], bytes] = {}
  for first, second, edge in _rows(m, graph, come, to, count, edges):
    if first in second.after or (first, second) in new: raise invalid("there is such an edge already")
    checked({first: edge}, second.kind)
    new[first, second] = edge
  for (first, second), edge in new.items(): second.after[first] = edge


def _rows(m: CudaMachine, graph: Graph, come: int, to: int, count: int,
          edges: int) -> Iterable[tuple[Node, Node, bytes]]:
  return zip(_named(m, graph, come, count), _named(m, graph, to, count), _data(m, edges, count), strict=True)


@serves("cuGraphAddDependencies_v2")
def graph_add_dependencies_2(m: CudaMachine, handle: int, come: int, to: int, edges: int, count: int) -> None:
  graph_add_dependencies(m, handle, come, to, count, edges)


@serves("cuGraphRemoveDependencies")
def graph_remove_dependencies(m: CudaMachine, handle: int, come: int, to: int, count: int, edges: int = 0) -> None:
  rows = list(_rows(m, m.find(handle, Graph), come, to, count, edges))
  if len({(first, second) for first, second, _ in rows}) < count or any(
      second.after.get(first) != edge for first, second, edge in rows):
    raise invalid("there is no such edge")
  for first, second, _ in rows: del second.after[first]


@serves("cuGraphRemoveDependencies_v2")
def graph_remove_dependencies_2(m: CudaMachine, handle: int, come: int, to: int, edges: int, count: int) -> None:
  graph_remove_dependencies(m, handle, come, to, count, edges)


# ---- looked at

_ZEROS: Final = 1 << 16  # of one store

def told(m: CudaMachine, found: list[Node], out: int, count: int) -> None:
  """A list of nodes, as far as the program has room; without any, how many there are."""
  room, = m.get(count, "Q")
  m.out(count, "Q", len(found) if not out else min(room, len(found)))
  if out:
    if room > len(found) and not m.user.mapped(out, 8 * room, True): raise invalid(f"no room for {room:,} nodes")
    m.out(out, f"{len(found[:room])}Q", *(n.handle for n in found[:room]))
    for at in range(len(found), room, _ZEROS): m.give(out + 8 * at, bytes(8 * min(_ZEROS, room - at)))


def _told_data(m: CudaMachine, data: list[bytes], out: int, edges: int, count: int) -> None:
  """The data of edges, before their ends are told. Raises Failed where some have any that there is no place for."""
  if edges and not out: raise invalid("edges are told with the nodes at their ends")
  room, = m.get(count, "Q")
  if out and not edges and any(map(any, data)):
    raise Failed(cuda.CUDA_ERROR_LOSSY_QUERY, "edges have data, and there is no place for it")
  if edges: m.user.write(edges, b"".join(data[:room]))


def _around(before: bool) -> Callable[[CudaMachine, int, int, int, int], None]:
  """What tells the nodes before one, or behind it."""
  def tell(m: CudaMachine, handle: int, out: int, edges: int, count: int) -> None:
    node: Node = m.find(handle, Node)
    found = node.after if before else {n: n.after[node] for n in node.graph.nodes if node in n.after}
    _told_data(m, list(found.values()), out, edges, count)
    told(m, list(found), out, count)
  return tell


def _registered(name: str, before: bool) -> None:
  tell = _around(before)
  serves(f"{name}_v2")(tell)
  serves(name)(lambda m, handle, out, count: tell(m, handle, out, 0, count))


_registered("cuGraphNodeGetDependencies", True)
_registered("cuGraphNodeGetDependentNodes", False)


@serves("cuGraphGetEdges_v2")
def graph_get_edges(m: CudaMachine, handle: int, come: int, to: int, edges: int, count: int) -> None:
  rows = [(a, n, edge) for n in m.find(handle, Graph).nodes for a, edge in n.after.items()]
  if bool(come) != bool(to): raise invalid("one list of an edge's two ends is null")
  room = m.get(count, "Q")
  _told_data(m, [edge for *_, edge in rows], come, edges, count)
  told(m, [a for a, *_ in rows], come, count)
  if to:
    m.out(count, "Q", *room)
    told(m, [n for _, n, _ in rows], to, count)


@serves("cuGraphGetEdges")
def graph_get_edges_1(m: CudaMachine, handle: int, come: int, to: int, count: int) -> None:
  graph_get_edges(m, handle, come, to, 0, count)
