"""Who is told of what a program asks of its cards: calls, memory, and work in streams with what it comes after.

`Watch` is what such a one has; nobody is asked where there is none (`CudaMachine.watch`). Work is told with its order
as CUDA's manual has it, not as it happens to run: behind what is in its stream, behind events that it waits for, the
legacy default stream and the streams that block with it, and in a graph by its edges alone.
"""
from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from tinyhw.autogen import cuda

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Observer
  from tinyhw.mock.cuda.graphs.graphs import Node
  from tinyhw.mock.cuda.machine import Context, CudaMachine, Piece
  from tinyhw.mock.cuda.streams.launches import Launch
  from tinyhw.mock.cuda.streams.streams import Job, Stream

Range = tuple[int, int]
"""Address and bytes."""
MOST_ROWS: Final = 256  # of a box that are told one by one


@dataclass(frozen=True, slots=True)
class Order:
  """A value that a stream writes to memory, or waits for there: `how` is one of CU_STREAM_WAIT_VALUE_*, or None: it
  writes."""
  address: int
  size: int
  value: int
  how: int | None


@dataclass(frozen=True, slots=True)
class Doing:
  """What a job does: `node` is one of CU_GRAPH_NODE_TYPE_*, also outside of graphs. What it `reads` and `writes` is all
  of it where `exact`, beside an `order`. `handle` is an event's."""
  node: int = cuda.CU_GRAPH_NODE_TYPE_EMPTY
  reads: tuple[Range, ...] = ()
  writes: tuple[Range, ...] = ()
  launch: Launch | None = None
  handle: int = 0
  exact: bool = True
  order: Order | None = None


PLAIN: Final = {node: Doing(node, exact=node != cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL) for node in range(
  cuda.CU_GRAPH_NODE_TYPE_CONDITIONAL + 1)}


def box_rows(first: int, width: int, pitch: int, count: int, slice_: int = 0,
             slices: int = 1) -> tuple[Range, ...] | None:
  """The bytes of a box, rows that touch as one; None where they are too many to tell."""
  if pitch == width: width, count = width * count, 1
  if count == 1 and slice_ == width: width, slices = width * slices, 1
  if count * slices > MOST_ROWS: return None
  return tuple((first + z * slice_ + y * pitch, width) for z in range(slices) for y in range(count))


class Watch(Protocol):
  """See the module. Threads call it at once; of all but calls the machine's lock is held. Nothing may be raised, or
  call the machine's functions."""

  def entered(self, symbol: str, arguments: tuple[Any, ...]) -> None:
    """A function of libcuda or libcudart begins; each is `called` when it has ended."""

  def called(self, symbol: str, arguments: tuple[Any, ...], code: int) -> None:
    """It has ended with this code."""

  def came(self, piece: Piece) -> None:
    """There is memory."""

  def went(self, piece: Piece) -> None:
    """It is gone."""

  def queued(self, stream: Stream, what: str, doing: Doing, after: list[int] | None, others: list[int]) -> int:
    """A stream has work, behind the numbers `after` and `others`; its own number. None: behind all in the stream."""

  def tail(self, stream: Stream) -> list[int]:
    """What work comes after that is put into a stream next."""

  def began(self, job: Job) -> Observer | None:
    """A job has its first turn. Who is to see a kernel's accesses."""

  def ended(self, job: Job) -> None:
    """It has ended."""

  def waited(self, jobs: Iterable[Job], met: bool, ns: int, context: Context) -> None:
    """The host has waited for jobs, or has seen that they have ended."""

  def failed(self, stream: Stream, text: str) -> None:
    """What runs has done what a chip refuses."""


class Pieces(dict[int, "Piece"]):
  """A machine's memory by address; no two pieces have an address together."""

  def __init__(self, machine: CudaMachine) -> None:
    super().__init__()
    self._machine = machine
    self._starts: list[int] = []

  def below(self, address: int) -> Piece | None:
    """The piece that begins at an address, or the last one before it."""
    i = bisect_right(self._starts, address) - 1
    return self[self._starts[i]] if i >= 0 else None

  def at(self, address: int) -> Piece | None:
    """The piece that an address is in."""
    found = self.below(address)
    return found if found is not None and address < found.address + found.size else None

  def __setitem__(self, address: int, piece: Piece) -> None:
    if address not in self: insort(self._starts, address)
    super().__setitem__(address, piece)
    if (watch := self._machine.watch) is not None: watch.came(piece)

  def __delitem__(self, address: int) -> None:
    if (watch := self._machine.watch) is not None: watch.went(self[address])
    super().__delitem__(address)
    del self._starts[bisect_left(self._starts, address)]


class Spread:
  """A graph that is put into a stream, for who is told: each node comes after those that its edges come from."""

  def __init__(self, stream: Stream, watch: Watch) -> None:
    self._stream, self._watch, self._outer = stream, watch, stream.behind
    self._start = watch.tail(stream) if self._outer is None else self._outer
    self._done: dict[Node, list[int]] = {}

  def before(self, node: Node) -> None:
    """A node is queued next."""
    after = [n for a in node.after for n in self._done.get(a, ())] if node.after else self._start
    self._stream.behind = self._done[node] = list(dict.fromkeys(after))

  def after(self, node: Node) -> None:
    """It was queued: what the stream stands behind now is the node's."""
    assert self._stream.behind is not None
    self._done[node] = self._stream.behind

  def end(self) -> None:
    """All were: the stream goes on behind those that no other comes after."""
    inner = {a for node in self._done for a in node.after}
    sinks = list(dict.fromkeys(n for node, numbers in self._done.items() if node not in inner for n in numbers))
    sinks = sinks or self._start
    self._stream.behind = self._outer
    if self._outer is not None: self._stream.behind = sinks
    elif sinks != self._watch.tail(self._stream):
      self._watch.queued(self._stream, "the graph's end", PLAIN[cuda.CU_GRAPH_NODE_TYPE_EMPTY], sinks, [])
