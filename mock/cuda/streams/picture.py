"""Who waits for whom among streams, as plain rows: taken where nobody gets on, before a lost context drops its work.

Streams wait for the jobs of other streams (events, the legacy default stream), for functions of the host, for other
processes; kernels wait for memory that somebody has to write. Of work that is queued, copies and fills say what they
write, and a kernel that has a pointer into memory may write there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tinyhw.core.errors import MachineFault, PageFault, WatchdogExpired

if TYPE_CHECKING:
  from tinyhw.mock.cuda.machine import CudaMachine, Piece
  from tinyhw.mock.cuda.streams.streams import Job, Stream

POINTER: Final = 8
_WANTED: Final = (">=", "==", "any bit of", "without a bit of")  # CU_STREAM_WAIT_VALUE_GEQ, EQ, AND, NOR


@dataclass(frozen=True)
class Edge:
  """`who` waits for `what`, which `writer` would end; `why` is the sentence. `writer` is empty where nobody would."""

  who: str
  what: str
  writer: str
  why: str


@dataclass
class Picture:
  """What stands: the waits, where the waves of kernels stand (stream, work, places), and what is at a faulting
  address."""

  edges: list[Edge] = field(default_factory=list)
  stood: list[tuple[str, str, list[MachineFault]]] = field(default_factory=list)
  memory: list[str] = field(default_factory=list)


def take(m: CudaMachine, stream: Stream | None = None, error: MachineFault | None = None) -> Picture:
  """What stands now; `error` is what a stream's work was stopped for. The lock is held."""
  made = Picture(stood=m.stood())
  if isinstance(error, PageFault) and error.address is not None: made.memory = list(history(m, error.address))
  named = {name for name, _, _ in made.stood}
  if stream is not None and isinstance(error, WatchdogExpired) and stream.name not in named:
    made.stood.append((stream.name, stream.doing(), [error]))
  for s in m.streams:
    if s.queue: made.edges += _edges(m, s)
  return made


def _edges(m: CudaMachine, stream: Stream) -> Iterator[Edge]:
  """What the first job of a stream waits for."""
  job, who = stream.queue[0], f"{stream.name}, at {said(stream.queue[0])},"
  for before in job.after:
    if before.done: continue
    other = next((s for s in m.streams if before in s.queue), None)
    name = "a stream that is gone" if other is None else other.name
    event = _event_of(m, before)
    what = f"{event}, recorded in {name}" if event else f"{said(before)} of {name}"
    yield Edge(stream.name, what, "" if other is None else name, f"{who} waits for {what}{_behind(other, before)}")
  if (order := job.doing.order) is not None and job.ready is not None and not job.ready():
    piece = m.piece_at(order.address)
    writer, how = _writer(m, stream, order.address, piece)
    yield Edge(stream.name, f"{order.address:#x}", writer, f"{who} waits for {order.address:#x} "
               f"({place(m, piece, order.address)}) to be {_WANTED[order.how or 0]} {order.value:#x}: {how}")
  elif job.ready is not None and not job.ready():
    why = f"{who} waits for an event that another process has to record"
    yield Edge(stream.name, "an event", "another process", why)
  if getattr(job.turns, "ready", True) is False:
    yield Edge(stream.name, "its end", "the host", f"{who} waits for the function, which has not returned")
  if job.idle is None: return
  for address, _ in list(job.idle.watched):
    piece = m.piece_at(address)
    where = f"{address:#x} ({place(m, piece, address)})"
    writer, how = _writer(m, stream, address, piece)
    yield Edge(stream.name, f"{address:#x}", writer, f"{who} waits for {where} to change: {how}")


def _behind(stream: Stream | None, job: Job) -> str:
  """What comes before a job in its stream."""
  if stream is None or stream.queue[0] is job: return ""
  return f", which comes behind {said(stream.queue[0])}"


def _writer(m: CudaMachine, waits: Stream, address: int, piece: Piece | None) -> tuple[str, str]:
  """The stream that has work queued which writes an address, and the sentence."""
  maybe = "", "nothing that is queued writes there: the host should, or work that never came"
  for stream in m.streams:
    for n, job in enumerate(stream.queue):
      if stream is waits and not n: continue
      order = job.doing.order
      if order is not None and order.how is None and order.address == address or any(
          at <= address < at + size for at, size in job.doing.writes):
        if stream is waits: return stream.name, f"{said(job)} would write there, behind it in its own stream"
        return stream.name, f"{said(job)} of {stream.name} would write there and waits itself"
      if maybe[0] or piece is None or not any(piece.address <= p < piece.address + piece.size for p in _words(job)):
        continue
      maybe = stream.name, f"{said(job)} of {stream.name} has a pointer to this memory, and has not run"
  return maybe


def _words(job: Job) -> Iterator[int]:
  for at in range(0, len(job.params) - POINTER + 1, POINTER):
    yield int.from_bytes(job.params[at:at + POINTER], "little")


def _event_of(m: CudaMachine, job: Job) -> str:
  """The event that a job is the record of."""
  return next((f"event {handle:#x}" for handle, thing in m.handles.items() if getattr(thing, "job", None) is job), "")


def said(job: Job) -> str:
  """A job in words."""
  return f"{job.what} ({job.of})" if job.of else job.what


def place(m: CudaMachine, piece: Piece | None, address: int) -> str:
  """Memory in words, with an offset."""
  if piece is None: return "memory that nobody has"
  name = m.space.used.get(piece.address, (0, "memory"))[1]
  return f"{name}, {piece.size:,} bytes at {piece.address:#x}, [{address - piece.address:#x}]"


def history(m: CudaMachine, address: int) -> Iterator[str]:
  """What an address is and was."""
  piece = m.piece_at(address)
  if piece is not None: yield f"{address:#x} is in {place(m, piece, address)}"
  gone = m.was(address)
  yield from gone
  if piece is not None or gone: return
  yield f"no memory was ever at {address:#x}" + (
    ", as far back as is known" if len(m.freed) == m.freed.maxlen else "")
  below = m.pieces.below(address)
  if below is not None and address - below.address < 1 << 30:
    end = below.address + below.size
    yield f"{address - end:,} bytes past the end of {place(m, below, end)}"
