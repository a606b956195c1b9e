"""Launches of kernels: what programs say of one, and the turns that run it."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core import progress
from tinyhw.core.errors import InvalidArgument, MachineFault
from tinyhw.core.printf import Printed
from tinyhw.core.timeout import Terms, ticker
from tinyhw.mock.cuda.calls import Failed, invalid, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.memory import allocations
from tinyhw.mock.cuda.memory.arrays import rows
from tinyhw.mock.cuda.modules.libraries import function_for
from tinyhw.mock.cuda.modules.modules import Function
from tinyhw.mock.cuda.streams import children, parameters
from tinyhw.mock.cuda.streams.streams import Event, Job, Stream, stream_of
from tinyhw.mock.cuda.watching import Doing
from tinyhw.mock.nv.chip.jobs import Turns

if TYPE_CHECKING:
  from tinyhw.emulator.engines.ptx_repeat import Repeated
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.ptx.launch.overlap import Overlap
  from tinyhw.emulator.schedule import Idle
  from tinyhw.emulator.simt import Stats

CYCLES_PER_INSTRUCTION: Final = 4
PORTABLE: Final = 8  # blocks of a cluster on every card that has clusters (CUDA Programming Guide)
WORKSPACE: Final = 8  # bytes in which blocks of a cooperative launch meet (cooperative_groups/details/driver_abi.h)
OFTEN: Final = 0.5  # how likely it is that a launch that may begin early does
FAVOURS: Final = 0.5, 0.95  # of two that run beside one another, how often the second has a turn: it may come far ahead
LONG: Final = 1_000_000.0  # what launches of one shape may cost in the reference: later ones run one after the other


class Shape:
  """A kernel with sizes that it may be launched with. Raises InvalidArgument, or Failed, for others."""

  def __init__(self, function: Function, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
               cluster: tuple[int, int, int] | None, cooperative: bool = False) -> None:
    from tinyhw.emulator.engines.ptx_repeat import Repeated
    from tinyhw.emulator.ptx.launch.grid import Dispatch, check
    self.function, self.grid, self.block, self.shared, self.cluster = function, grid, block, shared, cluster
    m = function.context.machine
    if cluster is not None and cluster != (1, 1, 1): check_cluster(function, cluster)
    if shared > function.dynamic_limit:
      raise invalid(f"{shared:,} bytes of dynamic shared memory, {function.dynamic_limit:,} at most "
                    "(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it)")
    self.cooperative = cooperative
    self.dispatch = dispatch = Dispatch(
      function.program, grid, block, params_size=function.params_size, dynamic_shared=shared, cluster=cluster,
      arch=function.context.gpu.card.arch)
    check(dispatch)
    if cooperative: _check_cooperative(function, grid, block)
    self.repeated = Repeated(m.space, dispatch, watchdog=m.watchdog, engine=m.engine)
    both = (m.engine or os.environ.get("EMU", "")) == "both"  # those compare all of memory
    self.overlaps = not (both or cooperative or children.launches(function.module))
    self.says = self.overlaps and "griddepcontrol.launch_dependents" in function.module.text
    self.spent = 0.0  # in the reference, beside other launches, in microseconds as `overlap` counts them


@dataclass(frozen=True)
class Launch:
  """A launch with its parameters."""

  shape: Shape
  params: bytes

  @property
  def function(self) -> Function:
    return self.shape.function

  def turns(self, stream: Stream) -> Turns:
    """Run the blocks, and what they launch."""
    return children.run(stream, self, shaped) if children.launches(self.function.module) else self.alone(stream)

  def alone(self, stream: Stream) -> Turns:
    """Run the blocks."""
    m, function, shape, job = stream.machine, self.function, self.shape, stream.at
    by = job.by if job else None
    stream.terms = terms = m.agreed.get(by or 0) if m.agreed else None
    observer = m.observer if terms is None or terms.observer is None else terms.observer
    if observer is None and job is not None: observer = job.observer
    at = m.parameters.put(self.params)
    try:
      plain = terms is None and observer is None and not shape.cooperative
      overlap = self._overlap(stream, job) if plain and job and job.launch else None
      stats = shape.repeated.at_once(at) if plain and overlap is None else None
      if stats is not None: pass
      elif overlap is not None: stats = yield from self._beside(overlap, at, by)
      elif shape.cooperative: stats = yield from self._together(at, terms, by, observer)
      else: stats = yield from self._turns(shape.repeated, at, terms, by, observer)
    except MachineFault as fault:
      self.explain(fault)
      raise
    finally: m.parameters.free(at)
    for why, count in stats.mistakes.items(): m.ignored.note("compiled code", f"of kernel {function.name}", why, count)
    m.executed += stats.instructions
    card, waves = stream.context.gpu.card, max(stats.waves, 1)
    took = stats.instructions // waves * -(-waves // (4 * card.sms)) * CYCLES_PER_INSTRUCTION * 1000 // card.clock_mhz
    m.clock.advance(took)
    stream.context.gpu.kernels_ns += took

  def explain(self, fault: MachineFault) -> None:
    """Say which line of the PTX a fault is at, once."""
    if fault.work is not None: return
    function, shape = self.function, self.shape
    fault.work, fault.kernel = f"kernel {function.name}", function.name
    function.program.explain(fault, shape.grid, shape.block, function.module.text.splitlines(), shape.cluster)

  def _together(self, at: int, terms: Terms | None, by: int | None,
                observer: Observer | None) -> Generator[Idle | None, None, Stats]:
    """Run them with a workspace, in which they meet."""
    from tinyhw.emulator.engines.ptx_repeat import Repeated
    m = self.function.context.machine
    piece = allocations.allocate(m, self.function.context, WORKSPACE)
    try:
      m.space.write(piece.address, WORKSPACE.to_bytes(4, "little") + bytes(4))
      dispatch = replace(self.shape.dispatch, workspace=piece.address)
      return (yield from self._turns(Repeated(m.space, dispatch, watchdog=m.watchdog, engine=m.engine), at, terms, by,
                                     observer))
    finally: allocations.release(m, piece)

  def _overlap(self, stream: Stream, job: Job) -> Overlap | None:
    """What the launch knows of that before it or behind it, if it runs beside one of them."""
    from tinyhw.emulator.ptx.launch.overlap import Overlap
    m, first, behind = stream.machine, stream.queue[0], stream.queue[1] if len(stream.queue) > 1 else None
    if job is not first: overlap = Overlap(lambda: first.done)
    elif not self.shape.says or behind is None or not behind.early or m.rng.random() >= OFTEN: return None
    elif self.shape.spent > LONG or (behind.launch is not None and behind.launch.spent > LONG): return None
    else: overlap = Overlap()
    job.overlap, stream.favour = overlap, m.rng.choice(FAVOURS)
    return overlap

  def _beside(self, overlap: Overlap, at: int, by: int | None) -> Generator[Idle | None, None, Stats]:
    """Run them beside another launch, and print what they print."""
    from tinyhw.emulator.engines.beside import turns
    from tinyhw.emulator.ptx.launch.grid import Grid
    from tinyhw.emulator.simt import Stats
    m, tick = self.function.context.machine, ticker(None, by in (None, threading.main_thread().ident))
    with self._printing(tick) as printed:
      d = replace(self.shape.dispatch, params=at, tick=tick, printed=printed, overlap=overlap)
      grid = Grid(m.space, d, m.watchdog, Stats())
      try: yield from turns(grid, m.engine)
      finally: self.shape.spent += overlap.cost
    return grid.stats

  def _turns(self, repeated: Repeated, at: int, terms: Terms | None, by: int | None,
             observer: Observer | None) -> Generator[Idle | None, None, Stats]:
    """Run them turn by turn, and print what they print."""
    tick = ticker(terms, by in (None, threading.main_thread().ident))
    with self._printing(tick) as printed: return (yield from repeated.start(at, tick, printed, observer))

  @contextmanager
  def _printing(self, tick: Callable[[], None] | None) -> Iterator[Printed]:
    """The buffer of what threads print, as large as the context has it; it is written when the launch is over."""
    printed = Printed(self.function.context.limits[cuda.CU_LIMIT_PRINTF_FIFO_SIZE])
    try: yield printed
    finally:
      progress.over(self.function.name)
      printed.write(tick)


def prepare(m: CudaMachine, context: Context, handle: int, grid: tuple[int, int, int], block: tuple[int, int, int],
            shared: int, params: int, extra: int, cluster: tuple[int, int, int] | None = None,
            cooperative: bool = False) -> Launch:
  """A launch from what the client says. Raises Failed for what the driver refuses."""
  function = function_for(m, handle, context)
  if function.context is not context:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, f"kernel {function.name} is of another context")
  return shaped(function, grid, block, shared, _given(m, function, params, extra), cluster, cooperative)


def shaped(function: Function, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, data: bytes,
           cluster: tuple[int, int, int] | None = None, cooperative: bool = False) -> Launch:
  """A launch of a kernel with its parameters."""
  key = grid, block, shared, cluster, cooperative
  shape = function.shapes.get(key)
  if shape is None:
    try: shape = Shape(function, grid, block, shared, cluster, cooperative)
    except InvalidArgument as error:
      raise invalid(str(error)) from None
    function.shapes.keep(key, shape)
  return Launch(shape, data)


def _given(m: CudaMachine, function: Function, params: int, extra: int) -> bytes:
  """The bytes of a launch's parameters."""
  size = function.params_size
  if extra:
    words = m.get(extra, "5Q")
    given = dict(zip(words[::2], words[1::2]))
    if set(given) != {cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT}:
      raise invalid("extra has CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE and an end")
    length, = m.get(given[cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT], "Q")
    if length < size or length > parameters.LIMIT:
      raise invalid(f"{function.name} has {size} bytes of parameters, {length} are given")
    return m.user.read(given[cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT], size)
  if not function.params: return b""
  places = m.get(params, f"{len(function.params)}Q")
  found = m.user.gather([(place, length) for place, (_, length) in zip(places, function.params, strict=True)])
  if function.packed: return found
  data, start = bytearray(size), 0
  for offset, length in function.params:
    data[offset:offset + length] = found[start:start + length]
    start += length
  return bytes(data)


def cluster_limit(function: Function) -> int:
  """The most blocks that a cluster of a kernel may have; 0 on a card without clusters. More than every card has are for
  a function that allows it (CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)."""
  if function.context.gpu.card.capability < (9, 0): return 0
  from tinyhw.emulator.ptx.launch.grid import CLUSTER
  more = function.attributes.get(cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
  return CLUSTER if more else PORTABLE


def check_cluster(function: Function, cluster: tuple[int, int, int]) -> None:
  """Raises Failed for a cluster that the card has not."""
  if not (most := cluster_limit(function)):
    raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "clusters of blocks before compute capability 9.0")
  if math.prod(cluster) > most:
    raise Failed(cuda.CUDA_ERROR_INVALID_CLUSTER_SIZE, f"a cluster of {cluster} blocks, {most} at most")


def queued(stream: Stream, launch: Launch, early: bool) -> Job:
  """A launch put into a stream. It may begin `early`, when a launch before it allows that."""
  before = stream.queue[-1] if stream.queue else None
  job = stream.add(f"kernel {launch.function.name}", launch.turns(stream),
                   doing=Doing(cuda.CU_GRAPH_NODE_TYPE_KERNEL, launch=launch, exact=False))
  job.launch = launch.shape if launch.shape.overlaps else None
  job.explain, job.params = launch.explain, launch.params
  job.early = early and job.launch is not None and before is not None and before.launch is not None
  return job


def enqueue(stream: Stream, launch: Launch, said: Asked | None = None) -> None:
  """Queue a launch, or have a graph take it. An event that it may record early is recorded when it has ended: nobody
  can count on more."""
  event = said.event if said else None
  if stream.capture is not None:
    node = stream.capture.take_launch(stream, launch, said.attributes if said else {}, said is not None and said.early)
    if said and event: event.node, event.job = (stream.capture, {node: said.edge}), None
    return
  job = queued(stream, launch, said is not None and said.early)
  if event: event.node, event.job = None, job


@serves("cuLaunchKernel")
def launch_kernel(m: CudaMachine, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, shared: int,
                  handle: int, params: int, extra: int) -> None:
  stream = stream_of(m, handle)
  enqueue(stream, prepare(m, stream.context, function, (gx, gy, gz), (bx, by, bz), shared, params, extra))


@serves("cuLaunchCooperativeKernel")
def launch_cooperative_kernel(m: CudaMachine, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
                              shared: int, handle: int, params: int) -> None:
  stream = stream_of(m, handle)
  enqueue(stream, prepare(m, stream.context, function, (gx, gy, gz), (bx, by, bz), shared, params, 0,
                          cooperative=True))


def _check_cooperative(function: Function, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
  """Raises Failed for more blocks than can run at a time."""
  from tinyhw.emulator.ptx.launch.grid import BLOCKS_A_SM, RESIDENT
  most = min(BLOCKS_A_SM, RESIDENT // (-(-math.prod(block) // 32) * 32)) * function.context.gpu.card.sms
  if math.prod(grid) > most:
    raise Failed(cuda.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, f"{math.prod(grid)} blocks, {most} fit")


@dataclass
class Asked:
  """What the attributes of a launch ask for: those of a graph's node, beginning early, and an event with the edge that
  stands for it in a graph."""

  attributes: dict[int, bytes] = field(default_factory=dict)
  early: bool = False
  event: Event | None = None
  edge: bytes = b""

  @property
  def cluster(self) -> tuple[int, int, int] | None:
    """The cluster's size."""
    data = self.attributes.get(cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    if data is None: return None
    size = cuda.CUstreamAttrValue.from_buffer_copy(data).clusterDim
    return size.x, size.y, size.z

  @property
  def cooperative(self) -> bool:
    """Whether the blocks run together."""
    return any(self.attributes.get(cuda.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, b"")[:4])


# Attributes that change nothing here: hints, which are told back of graphs' nodes. Blocks may form clusters of the size
# that is preferred, or of the other one: here always of the other.
HINTS: Final = frozenset({
  cuda.CU_LAUNCH_ATTRIBUTE_PRIORITY, cuda.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
  cuda.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, cuda.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
  cuda.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE})


def asked(m: CudaMachine, attributes: int, count: int) -> Asked:
  """What an array of CUlaunchAttribute asks for. Raises Failed for what is not modelled, or not allowed."""
  found = Asked()
  for attribute in rows(m, attributes, cuda.CUlaunchAttribute, count):
    kind, value = attribute.id, attribute.value
    if kind in HINTS or kind in (cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cuda.CU_LAUNCH_ATTRIBUTE_COOPERATIVE):
      found.attributes[kind] = bytes(value)
    elif kind == cuda.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      found.early = bool(value.programmaticStreamSerializationAllowed)
    elif kind == cuda.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      said = value.programmaticEvent
      _recorded(m, found, said.event, said.flags, cuda.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
                bool(said.triggerAtBlockStart))
    elif kind == cuda.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      begun = value.launchCompletionEvent
      _recorded(m, found, begun.event, begun.flags, cuda.CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, True)
    elif kind not in (cuda.CU_LAUNCH_ATTRIBUTE_IGNORE, cuda.CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY):
      raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"launch attribute {kind} is not modelled")
  return found


def _recorded(m: CudaMachine, found: Asked, handle: int, flags: int, kind: int, at_start: bool) -> None:
  """An event that the launch records (cuda.h, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)."""
  event: Event = m.find(handle, Event)
  if not event.flags & cuda.CU_EVENT_DISABLE_TIMING or event.flags & cuda.CU_EVENT_INTERPROCESS:
    raise invalid("a launch records events without timing, of this process")
  if flags: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"flags {flags:#x} of a launch's event")
  if found.event is not None: raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, "two events of one launch")
  port = cuda.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER if at_start else cuda.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
  found.event, found.edge = event, bytes(cuda.CUgraphEdgeData(from_port=port, type=kind))


@serves("cuLaunchKernelEx")
def launch_kernel_ex(m: CudaMachine, config: int, function: int, params: int, extra: int) -> None:
  c = configuration(m, config)
  stream, said = stream_of(m, c.hStream), asked(m, c.attrs, c.numAttrs)
  enqueue(stream, prepare(m, stream.context, function, (c.gridDimX, c.gridDimY, c.gridDimZ),
                          (c.blockDimX, c.blockDimY, c.blockDimZ), c.sharedMemBytes, params, extra, said.cluster,
                          said.cooperative), said)


def configuration(m: CudaMachine, config: int) -> Any:
  """A CUlaunchConfig."""
  return cuda.CUlaunchConfig.from_buffer_copy(m.user.read(config, ctypes.sizeof(cuda.CUlaunchConfig)))
