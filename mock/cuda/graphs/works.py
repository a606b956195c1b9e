"""What nodes of graphs do: kernels, copies, fills, functions of the host, events, memory, whole graphs.

A work is what a client has said (`given`, the driver's struct) and turns on a stream that do it. Works do not change:
whoever sets a node's parameters gives it another one, so graphs and their copies share them.
"""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import Failed, invalid
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.memory import allocations, boxes
from tinyhw.mock.cuda.streams.launches import Asked, Launch, prepare, queued, shaped
from tinyhw.mock.cuda.streams.streams import Event, Job, OnHost, Stream
from tinyhw.mock.cuda.watching import PLAIN, Doing
from tinyhw.mock.memory import page_align
from tinyhw.mock.nv.chip.jobs import Turns, at_once

if TYPE_CHECKING:
  from tinyhw.mock.cuda.graphs.graphs import Graph

HostFunction: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Work:
  """A work that is done in one turn; `kind` is one of CU_GRAPH_NODE_TYPE_*."""

  def __init__(self, kind: int, what: str, do: Callable[[], None], given: Any = None,
               doing: Doing | None = None) -> None:
    self.kind, self.what, self.do, self.given = kind, what, do, given
    self.doing = PLAIN[kind] if doing is None else doing

  def turns(self, stream: Stream) -> Turns | OnHost:
    """Do it on a stream."""
    return OnHost(stream.machine, self.do) if self.kind == cuda.CU_GRAPH_NODE_TYPE_HOST else at_once(self.do)

  def queue(self, stream: Stream, early: bool = False) -> Job | None:
    """Put it into a stream. A kernel may begin `early`: when the one that was queued last allows it."""
    return stream.add(self.what, self.turns(stream), doing=self.doing)

  def copied(self, m: CudaMachine) -> Work:
    """The same for a copy of the graph."""
    return self


def nothing() -> Work:
  """The work of an empty node."""
  return Work(cuda.CU_GRAPH_NODE_TYPE_EMPTY, "nothing", lambda: None)


class KernelWork(Work):
  """A launch. The parameters' values stay here, for who asks for them, and what attributes were set."""

  def __init__(self, launch: Launch, given: Any = None, attributes: dict[int, bytes] | None = None) -> None:
    super().__init__(cuda.CU_GRAPH_NODE_TYPE_KERNEL, f"kernel {launch.function.name}", lambda: None)
    self.launch, function, shape = launch, launch.function, launch.shape
    self.attributes = attributes or {}
    if shape.cooperative and not self.attributes:  # by a call of its own
      self.attributes = {cuda.CU_LAUNCH_ATTRIBUTE_COOPERATIVE: bytes(cuda.CUstreamAttrValue(cooperative=1))}
    self.data = ctypes.create_string_buffer(launch.params, len(launch.params) + 1)
    places = [ctypes.addressof(self.data) + offset for offset, _ in function.params]
    self.places = (ctypes.c_uint64 * max(len(places), 1))(*places)
    self.given = cuda.CUDA_KERNEL_NODE_PARAMS_v2(
      func=function.handle, sharedMemBytes=shape.shared, kernelParams=ctypes.addressof(self.places),
      **{f"{side}Dim{axis}": size for side, sizes in (("grid", shape.grid), ("block", shape.block))
         for axis, size in zip("XYZ", sizes, strict=True)})
    if given is not None: self.given.func, self.given.kern = given.func, given.kern

  def turns(self, stream: Stream) -> Turns: return self.launch.turns(stream)

  def queue(self, stream: Stream, early: bool = False) -> Job | None: return queued(stream, self.launch, early)

  def having(self, attributes: dict[int, bytes]) -> KernelWork:
    """The same with other attributes. Raises Failed for those that the kernel cannot have."""
    launch, shape, said = self.launch, self.launch.shape, Asked(attributes)
    if (said.cluster, said.cooperative) != (shape.cluster, shape.cooperative):
      launch = shaped(shape.function, shape.grid, shape.block, shape.shared, launch.params, said.cluster,
                      said.cooperative)
    return KernelWork(launch, self.given, attributes)


def kernel(m: CudaMachine, context: Context, p: Any) -> KernelWork:
  """What CUDA_KERNEL_NODE_PARAMS says."""
  return KernelWork(prepare(m, context, p.func or getattr(p, "kern", 0), (p.gridDimX, p.gridDimY, p.gridDimZ),
                            (p.blockDimX, p.blockDimY, p.blockDimZ), p.sharedMemBytes, p.kernelParams, p.extra), p)


def copy(m: CudaMachine, p: cuda.CUDA_MEMCPY3D) -> Work:
  """What CUDA_MEMCPY3D says. What lies at the ends is looked at when it is done: memory of the graph's own is not
  there yet."""
  box = (p.WidthInBytes, p.Height, p.Depth)
  to, come = boxes.side(m, p, "dst", box), boxes.side(m, p, "src", box)

  def do() -> None:
    if all(box): boxes.move(m, to, come, box)
  return Work(cuda.CU_GRAPH_NODE_TYPE_MEMCPY, "a copy of rows", do, p, boxes.doing(to, come, box))


def fill(m: CudaMachine, p: Any) -> Work:
  """What CUDA_MEMSET_NODE_PARAMS says."""
  if p.elementSize not in (1, 2, 4): raise invalid(f"elements of {p.elementSize} bytes")
  pitch = p.pitch or p.width * p.elementSize
  if p.width * p.height: allocations.rectangle(pitch, p.width * p.elementSize, p.height)

  def do() -> None: allocations.fill(m, p.dst, pitch, p.value, p.elementSize, p.width, p.height)
  given = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=p.dst, pitch=p.pitch, value=p.value, elementSize=p.elementSize,
                                          width=p.width, height=p.height)
  return Work(cuda.CU_GRAPH_NODE_TYPE_MEMSET, "a fill", do, given,
              allocations.filling(p.dst, pitch, p.width * p.elementSize, p.height))


def host(p: Any) -> Work:
  """What CUDA_HOST_NODE_PARAMS says."""
  if not p.fn: raise invalid("a function of the host is null")
  call, data = HostFunction(p.fn), p.userData
  return Work(cuda.CU_GRAPH_NODE_TYPE_HOST, "a host function", lambda: call(data),
              cuda.CUDA_HOST_NODE_PARAMS_v2(fn=p.fn, userData=p.userData))


class EventWork(Work):
  """The record of an event, or the wait for one, in the stream that the graph is launched in."""

  def __init__(self, event: Event, record: bool) -> None:
    kind = cuda.CU_GRAPH_NODE_TYPE_EVENT_RECORD if record else cuda.CU_GRAPH_NODE_TYPE_WAIT_EVENT
    if event.flags & cuda.CU_EVENT_INTERPROCESS:
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "an event for other processes in a graph")
    super().__init__(kind, "an event" if record else "the wait for an event", lambda: None, event,
                     Doing(kind, handle=event.handle))
    self.event, self.record = event, record

  def queue(self, stream: Stream, early: bool = False) -> Job | None:
    job = stream.add(self.what, self.turns(stream), *([self.event.job] if not self.record and self.event.job else []),
                     doing=self.doing)
    if self.record: self.event.node, self.event.job = None, job
    return job


class GraphWork(Work):
  """A graph as a node of another one."""

  def __init__(self, graph: Graph) -> None:
    super().__init__(cuda.CU_GRAPH_NODE_TYPE_GRAPH, "a graph", lambda: None)
    self.graph = graph

  def queue(self, stream: Stream, early: bool = False) -> Job | None:
    return self.graph.queue(stream, self.graph.order(stream.machine))

  def turns(self, stream: Stream) -> Turns: return self.graph.turns(stream)

  def copied(self, m: CudaMachine) -> Work: return GraphWork(self.graph.copied(m))


class Reserved:
  """Addresses that a graph's memory has whenever it is there."""

  def __init__(self, m: CudaMachine, context: Context, p: Any) -> None:
    if p.bytesize <= 0: raise invalid(f"an allocation of {p.bytesize} bytes")
    self.context, self.size, self.whole = context, p.bytesize, page_align(p.bytesize)
    self.address = allocations.addresses_for(m, self.whole)
    m.reserved[self.address] = self

  def take(self, m: CudaMachine) -> None:
    """The memory comes."""
    if self.address in m.pieces:
      raise Failed(cuda.CUDA_ERROR_INVALID_VALUE, f"the graph's memory at {self.address:#x} was not freed")
    allocations.allocate(m, self.context, self.size, reserved=self)
    gpu = self.context.gpu
    gpu.graph_bytes += self.whole
    gpu.graph_most = max(gpu.graph_most, gpu.graph_bytes)


class AllocWork(Work):
  """Memory that comes when the node is done."""

  def __init__(self, m: CudaMachine, reserved: Reserved, given: Any) -> None:
    super().__init__(cuda.CU_GRAPH_NODE_TYPE_MEM_ALLOC, "an allocation", lambda: reserved.take(m), given, Doing(
      cuda.CU_GRAPH_NODE_TYPE_MEM_ALLOC, writes=((reserved.address, reserved.size),)))
    self.reserved = reserved


class FreeWork(Work):
  """Memory that goes when the node is done."""

  def __init__(self, m: CudaMachine, address: int) -> None:
    def do() -> None:
      piece = m.pieces.get(address)
      if piece is None: raise invalid(f"{address:#x} is not the start of an allocation")
      allocations.release(m, piece)
    super().__init__(cuda.CU_GRAPH_NODE_TYPE_MEM_FREE, "the end of an allocation", do, address, Doing(
      cuda.CU_GRAPH_NODE_TYPE_MEM_FREE, writes=((address, 1),)))
    self.address = address


class Condition:
  """A conditional handle: four bytes of memory, by their address, which kernels write with
  cudaGraphSetConditional."""

  def __init__(self, m: CudaMachine, graph: Graph, context: Context, default: int | None) -> None:
    self.graph, self.default, self.used = graph, default, False
    self.piece = allocations.allocate(m, context, 4, "a conditional handle")
    self.put(m, default or 0)
    m.handles[self.piece.address] = self

  def put(self, m: CudaMachine, value: int) -> None:
    """Have it say this."""
    m.space.write(self.piece.address, struct.pack("<I", value))

  def value(self, m: CudaMachine) -> int:
    """What it says now."""
    return int.from_bytes(m.space.read(self.piece.address, 4), "little")


class ConditionalWork(Work):
  """Bodies that run as a condition says: IF, IF with an else, WHILE, SWITCH."""

  def __init__(self, condition: Condition, which: int, bodies: Sequence[Graph], handles: Any) -> None:
    super().__init__(cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL, "a conditional", lambda: None)
    self.condition, self.which, self.bodies, self.handles = condition, which, list(bodies), handles

  def turns(self, stream: Stream) -> Turns:
    m = stream.machine
    if self.which == cuda.CU_GRAPH_COND_TYPE_WHILE:
      while self.condition.value(m):
        yield from self.bodies[0].turns(stream)
        yield None
      return
    value = self.condition.value(m)
    at = value if self.which == cuda.CU_GRAPH_COND_TYPE_SWITCH else int(not value)
    if at < len(self.bodies): yield from self.bodies[at].turns(stream)

  def copied(self, m: CudaMachine) -> Work:
    return ConditionalWork(self.condition, self.which, [b.copied(m) for b in self.bodies], None)
