"""Streams and events: work in order, done in turns that the seed decides while somebody waits.

What a stream has to wait for (an event, the legacy default stream, which waits for all blocking streams and they for
it) are jobs that come before; so a client that forgets to wait finds out.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import Error, Interrupted, MachineFault, PageFault, WatchdogExpired
from tinyhw.core.timeout import HELD, Stopped, Terms
from tinyhw.emulator.schedule import Idle
from tinyhw.mock.cuda.calls import Failed, invalid, only, serves
from tinyhw.mock.cuda.machine import Context, CudaMachine
from tinyhw.mock.cuda.watching import PLAIN, Doing
from tinyhw.mock.nv.chip.jobs import Turns, at_once
from tinyhw.mock.running import ASKED

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer
  from tinyhw.emulator.ptx.launch.overlap import Overlap
  from tinyhw.mock.cuda.memory.interprocess import SharedEvent
  from tinyhw.mock.cuda.streams.launches import Shape

# Of a stream; the least is 0. Told back, and of no effect: the seed says whose turn it is. (The range is unverified.)
GREATEST_PRIORITY: Final = -5
HOST_S = 0.2  # how long a function of the host may take before others get on
_COPIES: Final = (cuda.CU_GRAPH_NODE_TYPE_MEMCPY, cuda.CU_GRAPH_NODE_TYPE_MEMSET)
JOB_NS = 1000  # what a copy or a launch costs on the machine's clock, beside its instructions


@dataclass(eq=False)
class Job:
  """Work of a stream. It begins when all of `after` have ended, and those before it in the stream; but a launch that
  may begin `early` begins when the launch before it allows it (`overlap`), if the seed has it so."""

  what: str
  turns: Turns | OnHost
  after: list[Job] = field(default_factory=list)
  ready: Callable[[], bool] | None = None  # what another process has to do first
  by: int | None = None
  done: bool = False
  idle: Idle | None = None
  ended_ns: int = 0
  launch: Shape | None = None  # of one kernel that may run beside another one, and nothing else
  early: bool = False
  overlap: Overlap | None = None
  explain: Callable[[MachineFault], None] | None = None  # says which line of a kernel a place is
  of: str = ""  # the graph, and which of its nodes
  params: bytes = b""  # of a kernel
  over: bool = False  # nothing is left of it but to end behind the one before it
  doing: Doing = PLAIN[cuda.CU_GRAPH_NODE_TYPE_EMPTY]
  number: int = -1  # by which who watches knows it
  begun: bool = False
  observer: Observer | None = None  # who is to see what its kernel does


class Stream:
  """See the module. `legacy` is the default stream of a context; a `blocking` one waits for it."""

  def __init__(self, context: Context, flags: int, *, legacy: bool = False) -> None:
    self.context, self.machine, self.flags, self.legacy = context, context.machine, flags, legacy
    self.blocking = not legacy and not flags & cuda.CU_STREAM_NON_BLOCKING
    self.queue: deque[Job] = deque()
    self.last: Job | None = None
    self.at: Job | None = None  # the job that has its turn, or had the last one
    self.inside = False  # whether that is amid a turn
    self.favour = 0.0  # how likely it is that of two jobs the second has a turn
    self.terms: Terms | None = None
    self.handle = self.priority = 0
    self.attributes: dict[int, bytes] = {}
    self.capture: Any = None  # the graph that takes what is queued
    self.behind: list[int] | None = None  # what work comes after that a graph puts here, for who watches
    self.told: Any = None  # the list of nodes that cuStreamGetCaptureInfo gave out last
    self.name = f"CUDA{context.gpu.index}.stream{len(context.streams)}"
    context.streams.append(self)
    self.machine.streams.append(self)

  # ---- queueing

  def add(self, what: str, turns: Turns | OnHost, *after: Job,
          doing: Doing = PLAIN[cuda.CU_GRAPH_NODE_TYPE_EMPTY]) -> Job:
    """Queue work behind all that is here and what it has to wait for."""
    waits = list(after)
    if self.legacy:
      waits += [s.last for s in self.context.streams if s.blocking and s.last is not None]
    elif self.blocking and (legacy := self.context.streams[0].last) is not None:
      waits.append(legacy)
    job = Job(what, turns, [w for w in waits if not w.done], by=threading.get_ident(), doing=doing)
    if (watch := self.machine.watch) is not None:
      job.number = watch.queued(self, what, doing, self.behind, [w.number for w in waits if w.number >= 0])
      if self.behind is not None: self.behind = [job.number]
    self.queue.append(job)
    self.last = job
    return job

  def drop(self) -> None:
    """Nothing of this is done any more."""
    for job in self.queue:
      if not (self.inside and job is self.at): job.turns.close()  # a handler of a signal's has come amid its turn
      job.done = True
    self.queue.clear()

  def wait(self) -> None:
    """Run until all that is queued now has ended. Raises Failed with the error that it left."""
    self.machine_waits(self.machine, self.last, self.context)

  @staticmethod
  def machine_waits(machine: CudaMachine, job: Job | None, context: Context) -> None:
    """Run until a job has ended."""
    if job is not None and not job.done:
      start = time.perf_counter_ns()
      ended = machine.run(lambda: job.done or bool(context.error), None, machine.other_threads)
      if machine.watch is not None:
        machine.watch.waited([job], ended and not context.error, time.perf_counter_ns() - start, context)
      if not ended and not context.error:
        if HELD.raised is not None:
          machine.pictured()
          for stream in machine.streams: stream.leave(Stopped(f"stopped by {type(HELD.raised).__name__}"))
          raise Failed(cuda.CUDA_ERROR_LAUNCH_TIMEOUT, f"{job.what}: a signal ended the wait")
        if inside := next((s.name for s in machine.streams if s.inside), ""):
          raise Failed(cuda.CUDA_ERROR_LAUNCH_TIMEOUT, f"{job.what}: a signal's handler waits amid work of {inside}")
        machine.pictured()
        raise Failed(cuda.CUDA_ERROR_LAUNCH_TIMEOUT, f"{job.what} never ends: nobody can change what it waits for")
    elif job is not None and machine.watch is not None: machine.watch.waited([job], True, 0, context)
    context.check()

  # ---- the scheduler's view

  def doing(self) -> str:
    return self.at.what if self.at is not None else "nothing yet"

  def runnable(self) -> bool:
    return bool(self.queue) and not self.inside and (self._moves(self.queue[0]) or self._second() is not None)

  @staticmethod
  def _moves(job: Job) -> bool:
    """Whether a job could have a turn, when those before it allow it."""
    if isinstance(job.turns, OnHost) and not job.turns.ready: return False
    if job.ready is not None and not job.ready(): return False
    return all(a.done for a in job.after) and (job.idle is None or job.idle.changed())

  def _second(self) -> Job | None:
    """The second job, if it could have a turn before the first one has ended."""
    first = self.queue[0]
    if first.overlap is None or not first.overlap.open or len(self.queue) == 1: return None
    job, m = self.queue[1], self.machine
    if job.overlap is None and (m.agreed or m.observer is not None): return None  # who looks on sees one at a time
    return job if job.early and not job.over and self._moves(job) else None

  def _job(self) -> Job:
    """The job that has the next turn, if one can."""
    first, second = self.queue[0], self._second()
    if second is None: return first
    if not self._moves(first): return second
    draws = self.machine.draws
    if draws is not None: return second if draws.number(self.name, "the launch behind goes on", 2, 0.5) else first
    return second if self.machine.rng.random() < self.favour else first

  def run(self, packets: int) -> None:
    """Give the first job up to so many turns, and those behind it what is left."""
    while packets > 0 and self.runnable():
      packets -= 1
      job = self.at = self._job()
      job.idle = None
      try: idle = self._turn(job)
      except StopIteration:
        self._ended(job)
      except Interrupted as why:
        self.machine.taken_off(self, why)
        self._ended(job)
      except Failed as failed:
        self.fail(Error(failed.why), failed.code)
      except Error as error:
        self.fail(error)
      except BaseException as error:  # a mistake of the mock's own: what is queued behind must not run on its results
        self.fail(Error(f"stopped in the middle of {job.what} by {type(error).__name__}: {error}"),
                  cuda.CUDA_ERROR_UNKNOWN)
        raise
      else:
        if idle is not None and job is self.queue[0] and idle.hopeless():
          job.idle = idle
          self.fail(idle.error())
        else:
          job.idle = idle

  def _turn(self, job: Job) -> Idle | None:
    self.inside = True
    if not job.begun:
      job.begun = True
      if job.number >= 0 and self.machine.watch is not None: job.observer = self.machine.watch.began(job)
    try: idle = next(job.turns)
    finally: self.inside = False
    if not job.done: return idle
    job.turns.close()  # dropped meanwhile
    raise StopIteration

  def leave(self, why: Interrupted) -> None:
    """Take off what stands at the head, if it is the calling thread's: a signal has ended the wait for it."""
    if self.inside or self.standing() is None or self.queued_by() != threading.get_ident(): return
    job = self.queue[0]
    job.turns.close()
    self.machine.taken_off(self, why)
    self._ended(job)

  def _ended(self, job: Job) -> None:
    job.over = True
    if len(self.queue) > 1 and self.queue[1] is job: return
    if self.queue and self.queue[0] is job: self.queue.popleft()
    self.machine.clock.advance(JOB_NS)
    if job.doing.node == cuda.CU_GRAPH_NODE_TYPE_KERNEL: self.context.gpu.kernels_ns += JOB_NS
    elif job.doing.node in _COPIES: self.context.gpu.copies_ns += JOB_NS
    job.done, job.ended_ns = True, self.machine.clock.now_ns()
    if job.number >= 0 and self.machine.watch is not None: self.machine.watch.ended(job)
    self.terms = job.overlap = None
    if not self.queue: return
    following = self.queue[0]
    following.idle = None  # it may have waited for this one
    if following.over: self._ended(following)

  def fail(self, error: Error, code: int | None = None) -> None:
    """What runs has done what the chip refuses."""
    if self.standing() is not None and isinstance(error, MachineFault): self.explain(error)
    if self.machine.watch is not None: self.machine.watch.failed(self, str(error))
    self.machine.context_failed(self, code_of(error) if code is None else code, error)

  @property
  def busy(self) -> bool:
    return bool(self.queue)

  def queued_by(self) -> int | None:
    return self.queue[0].by if self.queue else None

  def standing(self) -> Idle | None:
    return self.queue[0].idle if self.queue else None

  def explain(self, fault: MachineFault) -> None:
    """Say of a place where threads stand which line it is."""
    if self.queue and (explain := self.queue[0].explain) is not None: explain(fault)

  def describe(self) -> str:
    return f"{self.name}: {len(self.queue)} jobs{f', first {self.queue[0].what}' if self.queue else ''}"

  def snapshot(self) -> dict[str, Any]:
    return {"jobs": len(self.queue), "first": self.queue[0].what if self.queue else ""}


def code_of(error: Error) -> int:
  """The CUresult of a fault."""
  if isinstance(error, PageFault):
    return cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  if isinstance(error, WatchdogExpired):
    return cuda.CUDA_ERROR_LAUNCH_TIMEOUT
  text = str(error)
  if "misaligned" in text or "not aligned" in text or "multiple of" in text:
    return cuda.CUDA_ERROR_MISALIGNED_ADDRESS
  if "assertion failed" in text:
    return cuda.CUDA_ERROR_ASSERT
  if isinstance(error, MachineFault):
    return cuda.CUDA_ERROR_LAUNCH_FAILED
  return cuda.CUDA_ERROR_UNKNOWN


def stream_of(m: CudaMachine, handle: int, context: Context | None = None) -> Stream:
  """The stream of a handle: 0 and CU_STREAM_LEGACY are the context's default one, CU_STREAM_PER_THREAD the thread's. So
  is 0 for functions of that kind."""
  if not handle and m.has_own_default:
    handle = cuda.CU_STREAM_PER_THREAD
  if handle in (0, cuda.CU_STREAM_LEGACY):
    return (context or m.working()).streams[0]
  if handle == cuda.CU_STREAM_PER_THREAD:
    context = context or m.working()
    own = m.of_thread(context)
    if own is None:
      own = m.keep_for_thread(context, Stream(context, 0))
    return own
  found: Stream = m.find(handle, Stream)
  found.context.check()
  return found


class OnHost:
  """The turns of a function of the host, on a thread of its own, as the driver has it. Nothing else goes on until it
  has returned, unless that takes long: then it waits for somebody, perhaps for one who calls the driver."""

  def __init__(self, machine: CudaMachine, do: Callable[[], None]) -> None:
    self._machine, self._do = machine, do
    self._thread: threading.Thread | None = None
    self._waited = False

  @property
  def ready(self) -> bool:
    """Whether there is anything to do in a turn."""
    return self._thread is None or not self._thread.is_alive()

  def __iter__(self) -> OnHost: return self

  def __next__(self) -> None:
    if self._thread is None:
      self._thread = threading.Thread(target=self._do, name="tinyhw mock CUDA host function", daemon=True)
      self._thread.start()
      self._thread.join(HOST_S)
      if self._thread.is_alive():
        self._waited = True
        self._machine.on_host += 1
    if self._thread.is_alive(): return
    self.close()
    raise StopIteration

  def close(self) -> None:
    """Nobody waits for it any more."""
    if self._waited: self._machine.on_host -= 1
    self._waited = False


# ---- streams

@serves("cuStreamCreate", "cuStreamCreateWithPriority")
def stream_create(m: CudaMachine, out: int, flags: int, priority: int = 0) -> None:
  only(flags, cuda.CU_STREAM_NON_BLOCKING, "a stream")
  stream = Stream(m.working(), flags)
  stream.priority = max(GREATEST_PRIORITY, min(priority, 0))
  stream.handle = m.new(stream)
  m.out(out, "Q", stream.handle)


@serves("cuStreamDestroy_v2")
def stream_destroy(m: CudaMachine, handle: int) -> None:
  stream: Stream = m.find(handle, Stream)
  del m.handles[handle]  # what is queued is still done
  stream.add("the stream's end", at_once(lambda: forget(m, stream)))


def forget(m: CudaMachine, stream: Stream) -> None:
  """A stream is gone."""
  if stream in m.streams:
    m.streams.remove(stream)
    stream.context.streams.remove(stream)


@serves("cuStreamSynchronize")
def stream_synchronize(m: CudaMachine, handle: int) -> None:
  stream = stream_of(m, handle)
  if stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is captured")
  stream.wait()


@serves("cuStreamQuery")
def stream_query(m: CudaMachine, handle: int) -> None:
  stream = stream_of(m, handle)
  m.run(lambda: not stream.queue, 0.0, most=ASKED)
  stream.context.check()
  if stream.queue:
    raise Failed(cuda.CUDA_ERROR_NOT_READY)
  if m.watch is not None and stream.last is not None: m.watch.waited([stream.last], True, 0, stream.context)


@serves("cuStreamWaitEvent")
def stream_wait_event(m: CudaMachine, handle: int, event: int, flags: int) -> None:
  stream, waited = stream_of(m, handle), m.find(event, Event)
  only(flags, cuda.CU_EVENT_WAIT_EXTERNAL, "a wait")
  if stream.capture is not None and flags & cuda.CU_EVENT_WAIT_EXTERNAL:
    stream.capture.take_event(stream, waited, False)
  elif waited.node is not None:
    capture, edges = waited.node
    capture.join(stream, edges)
  elif stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a captured stream waits for an event from outside")
  elif waited.shared is not None:
    stream.add("the wait for an event", at_once(lambda: None)).ready = waited.shared.passed()
  elif waited.job is not None:
    stream.add("the wait for an event", at_once(lambda: None), waited.job,
               doing=Doing(cuda.CU_GRAPH_NODE_TYPE_WAIT_EVENT, handle=event))


@serves("cuStreamGetCtx")
def stream_get_ctx(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "Q", stream_of(m, handle).context.handle)


@serves("cuStreamGetCtx_v2")
def stream_get_ctx_v2(m: CudaMachine, handle: int, out: int, green: int) -> None:
  stream_get_ctx(m, handle, out)
  if green: m.out(green, "Q", 0)  # it is none of a green context


@serves("cuStreamGetDevice")
def stream_get_device(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "i", stream_of(m, handle).context.gpu.index)


# Of a stream: they are told back, and change nothing. What they are before somebody sets them is cuda.h's default.
_ATTRIBUTES: Final = frozenset({
  cuda.CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW, cuda.CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN,
  cuda.CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, cuda.CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY})
_FIRST: Final = {
  cuda.CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY: cuda.CUstreamAttrValue(syncPolicy=cuda.CU_SYNC_POLICY_AUTO),
  cuda.CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: cuda.CUstreamAttrValue(
    memSyncDomainMap=cuda.CUlaunchMemSyncDomainMap(default_=0, remote=1))}


@serves("cuStreamSetAttribute")
def stream_set_attribute(m: CudaMachine, handle: int, attribute: int, value: int) -> None:
  stream = stream_of(m, handle)
  if attribute not in _ATTRIBUTES: raise invalid(f"attribute {attribute} of a stream cannot be set")
  stream.attributes[attribute] = m.user.read(value, ctypes.sizeof(cuda.CUstreamAttrValue))


@serves("cuStreamGetAttribute")
def stream_get_attribute(m: CudaMachine, handle: int, attribute: int, out: int) -> None:
  stream = stream_of(m, handle)
  if attribute == cuda.CU_STREAM_ATTRIBUTE_PRIORITY: data = bytes(cuda.CUstreamAttrValue(priority=stream.priority))
  elif attribute not in _ATTRIBUTES: raise invalid(f"a stream has no attribute {attribute}")
  else: data = stream.attributes.get(attribute) or bytes(_FIRST.get(attribute, cuda.CUstreamAttrValue()))
  m.user.write(out, data)


@serves("cuStreamCopyAttributes")
def stream_copy_attributes(m: CudaMachine, to: int, come: int) -> None:
  there, here = stream_of(m, to), stream_of(m, come)
  if there.context is not here.context: raise invalid("the streams are of two contexts")
  there.attributes = dict(here.attributes)


@serves("cuStreamGetFlags")
def stream_get_flags(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "I", stream_of(m, handle).flags)


@serves("cuStreamGetPriority")
def stream_get_priority(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "i", stream_of(m, handle).priority)


@serves("cuStreamGetId")
def stream_get_id(m: CudaMachine, handle: int, out: int) -> None:
  m.out(out, "Q", m.streams.index(stream_of(m, handle)))


@serves("cuStreamAddCallback")
def stream_add_callback(m: CudaMachine, handle: int, callback: int, data: int, flags: int) -> None:
  import ctypes
  only(flags, 0, "a callback")
  call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)(callback)
  stream = stream_of(m, handle)
  if stream.capture is not None:
    raise Failed(cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a graph takes cuLaunchHostFunc, not callbacks")
  stream.add("a callback", OnHost(m, lambda: call(handle, 0, data)), doing=PLAIN[cuda.CU_GRAPH_NODE_TYPE_HOST])


@serves("cuLaunchHostFunc")
def launch_host_func(m: CudaMachine, handle: int, function: int, data: int) -> None:
  import ctypes
  call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
  queue(m, handle, "a host function", lambda: call(data), cuda.CU_GRAPH_NODE_TYPE_HOST)


def queue(m: CudaMachine, handle: int, what: str, do: Callable[[], None],
          node: int = cuda.CU_GRAPH_NODE_TYPE_EMPTY, doing: Doing | None = None) -> Job | None:
  """Queue what is done in one turn, or have a graph take it, as a node of a kind. The job; None for a graph's. `doing`
  is told to who watches, where it is more than its kind."""
  stream = stream_of(m, handle)
  if stream.capture is not None:
    stream.capture.take_turn(stream, node, what, do, doing)
    return None
  return stream.add(what, OnHost(m, do) if node == cuda.CU_GRAPH_NODE_TYPE_HOST else at_once(do),
                    doing=doing or PLAIN[node])


@serves("cuCtxSynchronize")
def ctx_synchronize(m: CudaMachine) -> None: _synchronized(m.context())


@serves("cuCtxSynchronize_v2")
def ctx_synchronize_v2(m: CudaMachine, handle: int) -> None:
  _synchronized(m.find(handle, Context, cuda.CUDA_ERROR_INVALID_CONTEXT) if handle else m.context())


def _synchronized(context: Context) -> None:
  for stream in list(context.streams):
    stream.wait()
  context.check()


# ---- events

class Event:
  """An event: the job that it was recorded behind, and when that ended."""

  def __init__(self, context: Context, flags: int) -> None:
    self.context, self.flags = context, flags
    self.job: Job | None = None
    self.node: Any = None  # of a graph, where a captured stream recorded it
    self.shared: SharedEvent | None = None  # with other processes
    self.handle = 0


@serves("cuEventCreate")
def event_create(m: CudaMachine, out: int, flags: int) -> None:
  only(flags, cuda.CU_EVENT_BLOCKING_SYNC | cuda.CU_EVENT_DISABLE_TIMING | cuda.CU_EVENT_INTERPROCESS, "an event")
  if flags & cuda.CU_EVENT_INTERPROCESS and not flags & cuda.CU_EVENT_DISABLE_TIMING:
    raise invalid("an event for other processes has CU_EVENT_DISABLE_TIMING")
  event = Event(m.working(), flags)
  event.handle = m.new(event)
  m.out(out, "Q", event.handle)


@serves("cuEventDestroy_v2")
def event_destroy(m: CudaMachine, handle: int) -> None:
  m.find(handle, Event)
  del m.handles[handle]


@serves("cuEventRecord", "cuEventRecordWithFlags")
def event_record(m: CudaMachine, handle: int, on: int, flags: int = 0) -> None:
  event, stream = m.find(handle, Event), stream_of(m, on)
  only(flags, cuda.CU_EVENT_RECORD_EXTERNAL, "a record")
  if event.context is not stream.context:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "event and stream are of different contexts")
  if stream.capture is not None:
    if flags & cuda.CU_EVENT_RECORD_EXTERNAL: stream.capture.take_event(stream, event, True)
    else: event.node, event.job = stream.capture.tail(stream), None
    return
  event.node = None
  event.job = stream.add("an event", at_once(event.shared.recorded() if event.shared else lambda: None),
                         doing=Doing(cuda.CU_GRAPH_NODE_TYPE_EVENT_RECORD, handle=handle))


@serves("cuEventQuery")
def event_query(m: CudaMachine, handle: int) -> None:
  event: Event = m.find(handle, Event)
  event.context.check()
  if event.shared is not None:
    if not m.run(event.shared.passed(), 0.0, most=ASKED): raise Failed(cuda.CUDA_ERROR_NOT_READY)
    return
  job = event.job
  if job is None: return
  if not job.done:
    m.run(lambda: job.done, 0.0, most=ASKED)
    event.context.check()
  if not job.done:
    raise Failed(cuda.CUDA_ERROR_NOT_READY)
  if m.watch is not None: m.watch.waited([job], True, 0, event.context)


@serves("cuEventSynchronize")
def event_synchronize(m: CudaMachine, handle: int) -> None:
  event: Event = m.find(handle, Event)
  if event.shared is not None:
    passed = event.shared.passed()
    m.run(lambda: passed() or bool(event.context.error), None, m.other_threads)
    event.context.check()
  else: Stream.machine_waits(m, event.job, event.context)


@serves("cuEventElapsedTime", "cuEventElapsedTime_v2")
def event_elapsed_time(m: CudaMachine, out: int, first: int, second: int) -> None:
  a, b = m.find(first, Event), m.find(second, Event)
  if (a.flags | b.flags) & cuda.CU_EVENT_DISABLE_TIMING or a.job is None or b.job is None:
    raise Failed(cuda.CUDA_ERROR_INVALID_HANDLE, "an event without timing, or that was not recorded")
  if not (a.job.done and b.job.done):
    raise Failed(cuda.CUDA_ERROR_NOT_READY)
  m.out(out, "f", (b.job.ended_ns - a.job.ended_ns) / 1e6)
