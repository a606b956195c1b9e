"""A port that writes down what goes through it: `RecordingPort(port, recorder)`, the driver cannot tell.

A `Recorder` owns the file and may have several ports (AMD's and NVIDIA's of one process). At a doorbell it follows the
submission from the ring on, as the engine will (`submitted`), and keeps the words and the memory that they lead to
(`looked`): kernel arguments, and each buffer that a pointer in packets or arguments names. What the device leaves
behind is looked at when the program has waited; of that only hashes are kept, since a replay makes it again. All is on
file before the doorbell rings, so whatever ends the process, what it submitted is there.

Memory that the host cannot see is filled by submissions, which are there; hashes of it are told only where who composes
hands in `peek`.

Threads may share it: one lock, held while an event is made. A forked child writes no more: it opens its devices anew,
with a capture of its own where its caller makes one.
"""
from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol
from weakref import WeakSet

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.port import Port, Protection
from tinyhw.queues.container import Writer, content_hash
from tinyhw.queues.cuda.stream import kind_of
from tinyhw.queues.events import Close, Doorbell, Event, File, Ioctl, Mmap, Munmap, Note, Open, Program, Seen, Waited
from tinyhw.queues.events import Work as StreamedWork
from tinyhw.queues.looked import Looks, Peek
from tinyhw.queues.submitted import Submitted
from tinyhw.queues.tally import Tally
from tinyhw.queues.vendors import new_world
from tinyhw.queues.world import MOVES_NOTHING, PAGE, World


class Code(Protocol):
  """Code in GPU memory; `kernels` are rows of (name, entry, argument bytes)."""
  address: int
  size: int
  name: str
  kind: str
  file: bytes
  kernels: tuple[tuple[str, int, int], ...]


Codes = Callable[[str], Iterable[list[Code]]]
"""What lies in the memory of each of a vendor's devices as code: a device's list only grows."""


class Recorder:
  """The file, and what is known of the process; see the module."""

  def __init__(self, path: str | os.PathLike[str], head: dict[str, Any] | None = None, *,
               codes: Codes | None = None) -> None:
    self._lock = threading.RLock()
    self._mine = True  # in a forked child, and when it is closed, it writes no more
    self._writer = Writer(path, head or {})
    self._codes = codes
    self._of: dict[str, Submitted] = {}  # by vendor
    self._tally = Tally()
    self._threads: dict[int, int] = {}
    self._loaded: dict[tuple[str, int], tuple[list[Code], int]] = {}  # what `codes` gave last, how much of it is told
    self._start = time.perf_counter_ns()
    self.events = 0
    self.submissions = 0
    _RECORDERS.add(self)

  @property
  def path(self) -> str: return str(self._writer.path)

  @property
  def bytes_stored(self) -> int: return self._writer.bytes_stored

  def port(self, port: Port, vendor: str, peek: Peek | None = None,
           still: Callable[[], int] | None = None) -> RecordingPort:
    """A port of "amd" or "nv" that tells this recorder. `peek` shows a mock's device memory, which is as it was as long
    as `still` gives the same number, and changes while it gives -1."""
    with self._lock:
      looks = self._vendor(vendor).looks
      looks.port = port
      if peek is not None: looks.peek = peek
      if still is not None: looks.still = still
    return RecordingPort(port, self, vendor, self.world(vendor))

  def _vendor(self, vendor: str) -> Submitted:
    found = self._of.get(vendor)
    if found is None:
      world = new_world(vendor)
      found = self._of[vendor] = Submitted(world, Looks(world, self._writer), self._tally, vendor)
    return found

  def world(self, vendor: str) -> World:
    """What a vendor's calls have made so far."""
    with self._lock: return self._vendor(vendor).world

  def keep(self, content: bytes | memoryview) -> bytes:
    """Store a content; its hash."""
    name = content_hash(content)
    with self._lock:
      if self._mine: self._writer.blob(content, name)
    return name

  def note(self, kind: str, text: str) -> None:
    """Put a line of somebody's into the capture."""
    self.tell("", Note(kind=kind, text=text))

  def flush(self) -> None:
    """Have all that was told on file."""
    with self._lock:
      if self._mine: self._flush()

  def _flush(self, counts: list[Any] | None = None) -> None:
    """Write what waits, and behind it counts. The program that is recorded goes on without its capture where there is
    no more room for that."""
    try:
      if counts is not None: self._writer.counts(counts)
      self._writer.flush()
    except InvalidArgument as error:
      self._mine = False
      print(f"tinyhw: {error}; the capture ends here, after {self.events:,} events", file=sys.stderr)

  def close(self) -> None:
    """End the capture; safe to call twice. Ports go on without it."""
    with self._lock:
      if self._mine: self._flush(self._tally.rows())
      if self._mine: self._writer.close()
      self._mine = False

  # ---- for the ports

  def left_behind(self) -> None:
    """In a forked child: the capture is the parent's."""
    self._mine = False

  def tell(self, vendor: str, event: Event, thread: int | None = None) -> None:
    """Put an event into the capture, behind the others; of another process's thread by its number."""
    with self._lock:
      if not self._mine: return
      if isinstance(event, Program): self._tally.loaded(vendor, event.kernels)
      elif isinstance(event, StreamedWork): self._work(vendor, event)
      elif isinstance(event, Doorbell): self._tally.whole = False  # another one has followed it
      self._tell(vendor, event, threading.get_ident() if thread is None else thread)

  def _work(self, vendor: str, event: StreamedWork) -> None:
    """Count work in a stream."""
    queue, launches = self._of[vendor].world.queues[event.queue], [(event.entry, 0)] if event.entry else []
    self._tally.submitted(vendor, queue, Counter({kind_of(event).__name__: 1}), launches)

  def _tell(self, vendor: str, event: Event, thread: int) -> None:
    event.at_ns = time.perf_counter_ns() - self._start
    event.thread = self._threads.setdefault(thread, len(self._threads))
    event.vendor = vendor
    if vendor and not isinstance(event, MOVES_NOTHING): self._called(self._of[vendor], event)
    self._writer.event(event.row())
    self.events += 1

  def _called(self, of: Submitted, event: Event) -> None:
    """Follow a call."""
    world = of.world
    gone = len(world.freed)
    world.apply(event, self.events)
    of.called(world.freed[gone:])
    if len(world.freed) > gone: self._before_a_free(of, event)

  def _before_a_free(self, of: Submitted, event: Event) -> None:
    """Memory was given back: what the host had seen by then says whether it was still in use."""
    values = of.signals()
    if values == of.told: return
    of.told = values
    self._writer.event(Seen(memory=[], signals=values, at_ns=event.at_ns, thread=event.thread,
                            vendor=event.vendor).row())
    self.events += 1

  def hides(self, vendor: str, address: int, length: int) -> None:
    """Addresses of the process are about to be given back: nothing is looked at there any more."""
    with self._lock:
      of = self._of[vendor]
      of.looks.hides(of.world.mapped_from(address, length))

  def rung(self, vendor: str, address: int, value: int, nbytes: int) -> None:
    """A doorbell is about to ring."""
    with self._lock:
      if not self._mine: return
      of = self._of[vendor]
      queue = of.world.rung(address, value)
      if queue is None: event = Doorbell(address=address, value=value, nbytes=nbytes)
      else:
        if self._codes is not None: self._tell_programs(vendor, of, self._codes)
        event = of.follow(queue, address, value, nbytes, self.submissions)
        self.submissions += 1
      self._tell(vendor, event, threading.get_ident())
      self._flush()

  def seen(self, vendor: str) -> None:
    """The program has waited: look at what the submissions that have ended left behind."""
    with self._lock:
      if not self._mine: return
      of = self._of[vendor]
      values = of.signals()
      told, of.told = of.told, values
      rows = of.over()
      if rows or values != told: self.tell(vendor, Seen(memory=rows, signals=values))

  def _tell_programs(self, vendor: str, of: Submitted, codes: Codes) -> None:
    """Name code that is new in GPU memory."""
    for n, loaded in enumerate(codes(vendor)):
      before, told = self._loaded.get((vendor, n), (loaded, 0))
      if before is not loaded: told = 0  # another device has its place
      if told == len(loaded): continue
      self._loaded[vendor, n] = loaded, len(loaded)
      for code in loaded[told:]:
        of.loaded(code.kernels)
        self._writer.blob(code.file, name := content_hash(code.file))
        self.tell(vendor, Program(address=code.address, size=code.size, name=code.name, kind=code.kind, image=name,
                                  kernels=[list(k) for k in code.kernels]))


_RECORDERS: Final[WeakSet[Recorder]] = WeakSet()


def _in_child() -> None:
  for recorder in list(_RECORDERS): recorder.left_behind()


os.register_at_fork(after_in_child=_in_child)


class RecordingPort:
  """See the module: `core.port.Port`, each call handed on."""

  def __init__(self, port: Port, recorder: Recorder, vendor: str, world: World) -> None:
    self.inner, self._recorder, self._vendor, self._world = port, recorder, vendor, world

  def __getattr__(self, name: str) -> Any: return getattr(self.inner, name)

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    try: fd = self.inner.open(path, flags)
    except OSError as error:
      self._tell(Open(path=path, flags=flags, errno=error.errno or 0))
      raise
    self._tell(Open(path=path, flags=flags, fd=fd))
    return fd

  def close(self, fd: int) -> None:
    self.inner.close(fd)
    self._tell(Close(fd=fd))

  def read(self, path: str) -> bytes:
    content = self.inner.read(path)
    if self._world.tells(path): self._tell(File(path=path, content=content))
    return content

  def listdir(self, path: str) -> list[str]: return self.inner.listdir(path)

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    before, inner_before = raw(argument), self._world.inner(argument)
    event = Ioctl(fd=fd, request=request, before=before, after=b"", inner_before=inner_before)
    try: event.result = self.inner.ioctl(fd, request, argument)
    except OSError as error:
      event.errno = error.errno or 0
      raise
    finally:
      event.after, event.inner_after = raw(argument), self._world.inner(argument)
      self._tell(event)
    return event.result

  def reserve(self, size: int, align: int = PAGE) -> int: return self.inner.reserve(size, align)

  def mmap(self, fd: int, length: int, offset: int = 0, address: int | None = None,
           protection: Protection = Protection.READ | Protection.WRITE) -> int:
    event = Mmap(fd=fd, length=length, offset=offset, protection=int(protection))
    try: event.address = self.inner.mmap(fd, length, offset, address, protection)
    except OSError as error:
      event.errno = error.errno or 0
      raise
    finally: self._tell(event)
    return event.address

  def munmap(self, address: int, length: int) -> None:
    self._recorder.hides(self._vendor, address, length)
    self.inner.munmap(address, length)
    self._tell(Munmap(address=address, length=length))

  def memory(self, address: int, length: int) -> memoryview: return self.inner.memory(address, length)

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    self._recorder.rung(self._vendor, address, value, nbytes)
    self.inner.doorbell(address, value, nbytes)

  def fence(self) -> None: self.inner.fence()

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    start = time.perf_counter_ns()
    met = self.inner.wait(done, timeout_s)
    self._tell(Waited(met=met, ns=time.perf_counter_ns() - start))
    self._recorder.seen(self._vendor)
    return met

  def poll(self, fd: int, timeout_s: float) -> bool: return self.inner.poll(fd, timeout_s)
  def now_ns(self) -> int: return self.inner.now_ns()
  def pid(self) -> int: return self.inner.pid()

  def _tell(self, event: Event) -> None: self._recorder.tell(self._vendor, event)


def raw(argument: Any) -> bytes:
  """The bytes of a ctypes object."""
  if argument is None or not isinstance(argument, ctypes.Structure | ctypes.Union | ctypes.Array): return b""
  return bytes(memoryview(argument).cast("B")) if ctypes.sizeof(argument) else b""
