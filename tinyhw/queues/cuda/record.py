"""What a program asks of CUDA, into a capture: calls, memory, work with what it comes after, and what that has done.

    machine.watch = CudaRecorder(recorder, machine.user.read, machine.space.view)

The machine tells (`mock.cuda.watching` has what; nothing of it is imported). Work is on file before it can run. A
kernel's accesses are looked at by an observer where other work that nothing orders with it uses the same memory: only
there can a race be, and only there the reference interpreter runs it. Contents go by hashes, chunk by chunk, as in
`queues.record`. Work that the host knows to be over is forgotten: whatever comes is behind it. Of a queue whose work
nobody waits for the last `KEPT` are known, by all that they come after; older ones that have ended come after what is
before them in their queue, so at worst a kernel more is looked at.
"""
from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tinyhw.autogen import cuda
from tinyhw.queues.container import content_hash
from tinyhw.queues.cuda.stream import ARGUMENTS, PROGRAMS, timeline
from tinyhw.queues.cuda.text import inner
from tinyhw.queues.cuda.world import DEVICE, HOST
from tinyhw.queues.events import Buffer, Call, Function, Note, Program, Ran, Seen, Stream, Waited, Work
from tinyhw.queues.looked import CHUNK, SMALL
from tinyhw.queues.record import Recorder
from tinyhw.queues.world import PAGE, Allocation

VENDOR: Final = "cuda"
MOST: Final = 4096  # ranges of memory that a kernel accesses: of more nothing is told
KEPT: Final = 4096  # tasks of a queue, and its uses of an allocation, while the host waits for none
READ, WRITTEN, ATOMIC = 1, 2, 3
_COPY: Final = cuda.CU_GRAPH_NODE_TYPE_MEMCPY
_ROOM: Final = 1 << 8  # between two kernels' entries
_QUEUES: Final = 1 << 20  # queues that a capture has, at most: a number of work is which of its queue's, times these
Clock = dict[int, int]
"""How far each queue has come."""


@dataclass(eq=False, slots=True)
class Task:
  """Work that was queued: entry `value` of `queue`. `clock` is what it comes after, and itself; `uses` are the
  allocations that it may touch."""
  queue: int
  value: int
  clock: Clock
  doing: Any
  uses: tuple[Allocation, ...]
  seen: Any = None  # who looks at its kernel's accesses


@dataclass(eq=False, slots=True)
class Lane:
  """A queue of the capture: a stream, or a branch of graphs that are launched into it."""
  key: int
  name: str
  count: int = 0  # of its work
  tasks: dict[int, Task] = field(default_factory=dict)  # by value, those that are not forgotten

  def forget(self, known: int) -> None:
    """Forget work up to a value, as far as it has ended."""
    for value in list(self.tasks):
      if value > known or self.tasks[value].doing is not None: break
      del self.tasks[value]

  def bound(self) -> None:
    """Forget the older half of very many, as far as it has ended."""
    if len(self.tasks) <= KEPT: return
    for value in list(self.tasks)[:KEPT // 2]:
      if self.tasks[value].doing is not None: break
      del self.tasks[value]


class CudaRecorder:
  """See the module. `read` gives bytes of the program, None where there are none; `view` those of a card, as they are
  now; `observe` makes who looks at the accesses of one kernel."""

  def __init__(self, recorder: Recorder, read: Callable[[int, int], bytes | None],
               view: Callable[[int, int], memoryview | None], observe: Callable[[], Any]) -> None:
    self._recorder, self._read, self._view, self._observe = recorder, read, view, observe
    self._world = recorder.world(VENDOR)
    self._local = threading.local()
    self._lanes: dict[tuple[int, int], Lane] = {}  # by stream and branch
    self._streams: list[Any] = []  # so that no other has the identity of one of them
    self._all: dict[int, Lane] = {}  # by the queue's number
    self._users: dict[int, dict[int, list[int]]] = {}  # allocation -> queue -> values of its work that may touch it
    self._gone: list[int] = []  # of these, which have work that may not be over
    self._host: Clock = {}  # what the host knows to be over
    self._known: dict[int, dict[int, bytes]] = {}  # by allocation and first byte
    self._functions: dict[Any, int] = {}
    self._texts: dict[str, bytes] = {}

  # ---- calls

  def _stack(self) -> list[tuple[str, list[int], list[list[Any]]]]:
    found: list[tuple[str, list[int], list[list[Any]]]] | None = getattr(self._local, "stack", None)
    if found is None: found = self._local.stack = []
    return found

  def entered(self, symbol: str, arguments: tuple[Any, ...]) -> None:
    plain = [_plain(a) for a in arguments]
    self._stack().append((symbol, plain, inner(symbol, plain, True, self._read)))

  def called(self, symbol: str, arguments: tuple[Any, ...], code: int) -> None:
    stack = self._stack()
    _, plain, before = stack.pop()
    after = inner(symbol, plain, False, self._read) if code == cuda.CUDA_SUCCESS else []
    self._recorder.tell(VENDOR, Call(symbol=symbol, arguments=plain, result=code, depth=len(stack),
                                     inner=sorted([*before, *after])))

  # ---- memory

  def came(self, piece: Any) -> None:
    kind = HOST if piece.host else DEVICE
    self._recorder.tell(VENDOR, Buffer(address=piece.address, size=piece.size, kind=kind, gpu=piece.device if
                                       piece.context is not None or piece.gpu is not None else 0))

  def went(self, piece: Any) -> None:
    made = self._world.find(piece.address)
    if made is not None and made.address == piece.address:
      self._known.pop(made.key, None)
      self._gone.append(made.key)
      self._forget_users()
    self._recorder.tell(VENDOR, Buffer(address=piece.address, size=piece.size, kind=HOST if piece.host else DEVICE,
                                       gpu=0, gone=True))

  # ---- work

  def queued(self, stream: Any, what: str, doing: Any, after: list[int] | None, others: list[int]) -> int:
    behind = [*(self.tail(stream) if after is None else after), *others]
    lane = self._lane(stream, None if after is None else behind)
    value = lane.count = lane.count + 1
    clock = dict(self._host)
    for n in behind: _join(clock, self._clock(n))
    direct = [[n % _QUEUES, n // _QUEUES] for n in dict.fromkeys(behind)]
    clock[lane.key] = value
    stack = self._stack()
    event = Work(address=timeline(lane.key), value=value, nbytes=8, queue=lane.key, first=value - 1, last=value,
                 node=doing.node, what=what, call=stack[0][0] if stack else "",
                 after=[row for row in direct if row[0] != lane.key],
                 reads=[list(r) for r in doing.reads], writes=[list(r) for r in doing.writes], handle=doing.handle,
                 orders=[] if (o := doing.order) is None else [
                   [o.address, o.size, o.value, -1 if o.how is None else o.how]])
    if doing.launch is not None: self._kernel(event, doing.launch)
    uses = self._uses(event)
    event.touched = sorted(made.key for made in uses)
    lane.tasks[value] = Task(lane.key, value, clock, doing, uses)
    lane.bound()
    for made in uses: self._used(made, lane.key, value)
    self._recorder.tell(VENDOR, event)
    self._recorder.submissions += 1
    self._recorder.flush()
    return value * _QUEUES + lane.key

  def _task(self, number: int) -> Task:
    """Work that has not ended."""
    return self._all[number % _QUEUES].tasks[number // _QUEUES]

  def _clock(self, number: int) -> Clock:
    """What work comes after, and itself; of what is forgotten all that the host knows, and its queue up to it."""
    queue, value = number % _QUEUES, number // _QUEUES
    task = self._all[queue].tasks.get(value)
    if task is not None: return task.clock
    return self._host if value <= self._host.get(queue, 0) else self._host | {queue: value}

  def _used(self, made: Allocation, queue: int, value: int) -> None:
    values = self._users.setdefault(made.key, {}).setdefault(queue, [])
    values.append(value)
    if len(values) < KEPT: return
    del values[:bisect_right(values, self._host.get(queue, 0))]  # what comes is behind these
    if len(values) >= KEPT: del values[:KEPT // 2]  # what meets one of them, meets those behind it too

  def tail(self, stream: Any) -> list[int]:
    lane = self._lane(stream, None)
    return [lane.count * _QUEUES + lane.key] if lane.count else []

  def _lane(self, stream: Any, behind: list[int] | None) -> Lane:
    """Where work is put: into its stream. A graph's, into that queue whose last work it comes after."""
    branch = 0
    while True:
      key = id(stream), branch
      lane = self._lanes.get(key)
      if lane is None:
        if not branch: self._streams.append(stream)
        name = stream.name + (f" branch {branch}" if branch else "")
        lane = self._lanes[key] = Lane(len(self._world.queues), name)
        self._all[lane.key] = lane
        self._recorder.tell(VENDOR, Stream(queue=lane.key, name=lane.name, gpu=stream.context.gpu.index,
                                           handle=stream.handle))
      if behind is None or not lane.count: return lane
      if any(self._clock(n).get(lane.key, 0) >= lane.count for n in behind): return lane
      branch += 1

  def _kernel(self, event: Work, launch: Any) -> None:
    function, shape = launch.function, launch.shape
    entry = self._functions.get(function)
    if entry is None:
      entry = self._functions[function] = PROGRAMS + _ROOM * len(self._world.allocations)
      text = function.module.text
      if text not in self._texts: self._texts[text] = self._recorder.keep(text.encode())
      self._recorder.tell(VENDOR, Program(address=entry, size=1, name=function.name, kind="ptx",
                                          image=self._texts[text],
                                          kernels=[[function.name, entry, function.params_size]]))
      names = [p.name for p in function.module.linked.module.entries[function.name].params]
      self._recorder.tell(VENDOR, Function(entry=entry, parameters=[
        [name.removeprefix(f"{function.name}_"), offset, size]  # nvcc's have it in front
        for name, (offset, size) in zip(names, function.params)]))
    event.entry, event.grid, event.block, event.shared = entry, [*shape.grid], [*shape.block], shape.shared
    event.pieces = [[ARGUMENTS, launch.params]]

  def _uses(self, event: Work) -> tuple[Allocation, ...]:
    """The allocations that work names: by its ranges, or by what may be a pointer in a kernel's parameters."""
    addresses = [address for address, _ in (*event.reads, *event.writes)]
    if event.entry:
      data = event.pieces[0][1]
      addresses = np.frombuffer(data, np.uint64, len(data) // 8).tolist()
    found = {made.key: made for a in addresses if a >= PAGE and (made := self._world.find(a)) is not None
             and made.kind in (DEVICE, HOST)}
    return tuple(found.values())

  # ---- what becomes of it

  def began(self, job: Any) -> Any:
    task = self._task(job.number)
    if task.doing.launch is None or not self._meets(task): return None
    task.seen = self._observe()
    return task.seen

  def _meets(self, task: Task) -> bool:
    """Whether other work that nothing orders with this may touch the same memory."""
    for made in task.uses:
      for queue, values in self._users.get(made.key, {}).items():
        if queue == task.queue: continue
        n = bisect_right(values, task.clock.get(queue, 0))  # those before it are what it comes after
        if n == len(values): continue
        other = self._all[queue].tasks.get(values[n])
        if other is None or other.clock.get(task.queue, 0) < task.value: return True  # one is over, this has not begun
    return False

  def ended(self, job: Any) -> None:
    task = self._task(job.number)
    if task.doing.launch is not None:
      accesses = self._accessed(task)
      memory = [row for made in task.uses for row in self._changed(made, 0, made.size, made.kind == HOST)]
    else:
      both = (READ, task.doing.reads), (WRITTEN, task.doing.writes)
      accesses = [[a, n, how] for how, rows in both for a, n in rows if task.doing.exact]
      memory = []
      if task.doing.node != cuda.CU_GRAPH_NODE_TYPE_MEM_FREE:
        ours = {made.key for made in task.uses if made.kind == DEVICE}
        host = task.doing.node == _COPY and not any(
          (made := self._world.find(a)) is not None and made.key in ours for a, _ in task.doing.reads)
        for address, size in task.doing.writes:
          if (made := self._world.find(address)) is not None:
            memory += self._changed(made, address - made.address, size, host or made.kind == HOST)
    self._recorder.tell(VENDOR, Ran(queue=task.queue, value=task.value, memory=memory, accesses=accesses))
    task.seen, task.doing, task.uses = None, None, ()

  def _accessed(self, task: Task) -> list[list[int]]:
    """What a kernel was seen to access of memory that is, or was, the program's."""
    if task.seen is None: return []
    return [row for row in task.seen.ranges(MOST) if self._world.find(row[0]) or self._world.was(row[0])]

  def _changed(self, made: Allocation, first: int, size: int, content: bool) -> list[list[Any]]:
    """Rows of the chunks whose contents are others than the last time."""
    view = self._view(made.address, made.size)
    if view is None: return []
    step, known, rows = PAGE if made.size <= SMALL else CHUNK, self._known.setdefault(made.key, {}), []
    for at in range(first // step * step, min(first + size, made.size), step):
      chunk = view[at:at + step]
      name = content_hash(chunk)
      if known.get(at) == name: continue
      known[at] = name
      if content: self._recorder.keep(chunk)
      rows.append([made.key, at, len(chunk), name])
    return rows

  def waited(self, jobs: Iterable[Any], met: bool, ns: int, context: Any) -> None:
    if ns: self._recorder.tell(VENDOR, Waited(met=met, ns=ns))
    if met: self._saw([j.number for j in jobs if j.number >= 0])
    self._recorder.flush()

  def _saw(self, numbers: list[int]) -> None:
    """The host knows that work is over, with all that it came after."""
    told = [(queue, value) for n in numbers
            if self._host.get(queue := n % _QUEUES, 0) < (value := n // _QUEUES)]
    if not told: return
    clocks = [self._clock(value * _QUEUES + queue) for queue, value in told]
    for clock in clocks: _join(self._host, clock)
    self._recorder.tell(VENDOR, Seen(memory=[], signals=[[timeline(queue), 8, value] for queue, value in told]))
    for queue in {queue for clock in clocks for queue in clock}: self._all[queue].forget(self._host[queue])
    self._forget_users()

  def _forget_users(self) -> None:
    """Forget who used memory that is gone, as soon as that is over."""
    gone, self._gone = self._gone, []
    for key in gone:
      users = self._users.get(key, {}).items()
      if any(values and values[-1] > self._host.get(queue, 0) for queue, values in users): self._gone.append(key)
      else: self._users.pop(key, None)

  def failed(self, stream: Any, text: str) -> None:
    job = stream.at
    task = self._task(job.number) if job is not None and job.number >= 0 else None
    if task is not None and task.seen is not None:  # what it did until then
      self._recorder.tell(VENDOR, Ran(queue=task.queue, value=task.value, accesses=self._accessed(task)))
    self._recorder.tell(VENDOR, Note(kind="fault", text=f"{stream.name}: {text}"))
    self._recorder.flush()


def _plain(value: Any) -> int:
  """An argument as a number."""
  if isinstance(value, int): return value
  if isinstance(value, float): return int(np.float32(value).view(np.uint32))
  try: return int.from_bytes(memoryview(value).cast("B")[:8], "little")
  except TypeError: return 0  # what no declaration has


def _join(clock: Clock, other: Clock) -> None:
  for queue, value in other.items():
    if clock.get(queue, 0) < value: clock[queue] = value
