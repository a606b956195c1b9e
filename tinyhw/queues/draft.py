"""A capture that can be cut: events, packets and memory are left out, and what remains is a capture again.

    draft = Draft(Capture("run.thq"))
    smaller = draft.capture(Choice(gone=frozenset({draft.packets()[3]})))

Packets are cut out, not painted over: what is behind them moves up, rings are filled anew from where they began,
indirect buffers and pushbuffers become shorter, and those that nothing is left of go with the packet that leads to
them. Numbers that count what was made before (a doorbell's queue, a content's allocation) are counted anew.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import Writer, content_hash
from tinyhw.queues.events import Doorbell, Event, Program, Seen, parsed
from tinyhw.queues.fields import resized
from tinyhw.queues.world import Item
from tinyhw.wire import methods

Packet = tuple[int, int]
"""A packet of a submission: the number of its event, the address that an engine reads it at."""
Row = tuple[int, int]
"""Memory that a submission brings along: the number of its event, which of its rows."""


@dataclass(frozen=True)
class Choice:
  """What is left out (events by number, packets, rows of memory), and what is put in place of packets' words and
  of rows' contents."""
  events: frozenset[int] = frozenset()
  packets: frozenset[Packet] = frozenset()
  rows: frozenset[Row] = frozenset()
  words: Mapping[Packet, tuple[int, ...]] = field(default_factory=dict)
  contents: Mapping[Row, bytes] = field(default_factory=dict)

  def key(self) -> tuple[Any, ...]:
    """Equal for equal choices."""
    return (self.events, self.packets, self.rows, frozenset(self.words.items()),
            frozenset((row, content_hash(data)) for row, data in self.contents.items()))


@dataclass(eq=False)
class Node:
  """A packet among those that it stands with. `calls` is the piece that it leads to, `reads` are descriptors."""
  packet: Packet
  item: Item
  calls: int = 0
  reads: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Submission:
  """A doorbell's packets: those of the ring, and those of each piece by its address. `unit` is what the ring's numbers
  count, in bytes; `tells` says whether the doorbell's value is the write pointer; `gap` is how far behind the doorbell
  before it begins, which no doorbell tells of."""
  number: int
  step: Step
  queue: tuple[str, int]
  first: int
  base: int
  size: int
  unit: int
  tells: bool
  gap: int = 0
  ring: list[Node] = field(default_factory=list)
  streams: dict[int, list[Node]] = field(default_factory=dict)
  descriptors: dict[int, Item] = field(default_factory=dict)

  def nodes(self) -> Iterator[Node]:
    """All packets."""
    yield from self.ring
    for nodes in self.streams.values(): yield from nodes


class Draft:
  """See the module. The capture is gone through once; its file must stay open."""

  def __init__(self, capture: Capture) -> None:
    self.base = capture
    self.events: list[Event] = list(parsed(capture.reader.events()))
    self.submissions: dict[int, Submission] = {}
    self.starts: dict[tuple[str, int], int] = {}  # where each queue's ring begins to be filled
    self._makes: dict[int, tuple[str, int, int]] = {}  # event -> vendor, allocations and queues that it makes
    counts: dict[str, tuple[int, int]] = {}
    lasts: dict[tuple[str, int], int] = {}
    for step in capture:
      if step.world is not None:
        vendor, now = step.event.vendor, (len(step.world.allocations), len(step.world.queues))
        before = counts.get(vendor, (0, 0))
        if now != before: self._makes[step.number] = vendor, now[0] - before[0], now[1] - before[1]
        counts[vendor] = now
      if step.follow is None: continue
      made = self.submissions[step.number] = _submission(step)
      self.starts.setdefault(made.queue, made.first)
      made.gap = max(0, made.first - lasts.get(made.queue, made.first))
      assert isinstance(step.event, Doorbell)
      lasts[made.queue] = step.event.last

  # ---- what there is

  def packets(self, depth: int | None = None) -> list[Packet]:
    """All packets, or those of a depth, in order, each once."""
    return list(dict.fromkeys(n.packet for s in self.submissions.values() for n in s.nodes()
                              if depth is None or n.item.depth == depth))

  def depth(self) -> int:
    """How deep the deepest packet is."""
    return max((n.item.depth for s in self.submissions.values() for n in s.nodes()), default=0)

  def items(self) -> Iterator[tuple[Packet, Item]]:
    """All packets and descriptors with what they are."""
    for number, s in self.submissions.items():
      yield from {n.packet: n.item for n in s.nodes()}.items()
      for address, item in s.descriptors.items(): yield (number, address), item

  def rows(self) -> list[Row]:
    """All memory that submissions bring along."""
    return [(number, i) for number, event in enumerate(self.events) if isinstance(event, Doorbell)
            for i in range(len(event.memory))]

  def content(self, row: Row) -> bytes | None:
    """What a row of memory holds."""
    event = self.events[row[0]]
    return self.base.reader.blob(event.memory[row[1]][3]) if isinstance(event, Doorbell) else None

  # ---- what is made of it

  def capture(self, choice: Choice, path: Path | None = None) -> Capture:
    """What remains, as a capture in memory."""
    return Capture(_Made(self, path or self.base.reader.path, *_Builder(self, choice).run()))


class _Builder:
  """One choice's events, and the contents that are new in it."""

  def __init__(self, draft: Draft, choice: Choice) -> None:
    self.draft, self.choice = draft, choice
    self._numbers: dict[tuple[str, str, int], int] = {}  # (vendor, "queue" or "memory", number before) -> number now
    self._before: dict[tuple[str, str], int] = {}
    self._counts: dict[tuple[str, str], int] = {}
    self._cursors: dict[tuple[str, int], int] = {}
    self._blobs: dict[bytes, bytes] = {}
    self._gone: dict[int, set[int]] = {}
    self._gone_rows: dict[int, set[int]] = {}
    for event, address in choice.packets: self._gone.setdefault(event, set()).add(address)
    for event, row in choice.rows: self._gone_rows.setdefault(event, set()).add(row)

  def run(self) -> tuple[list[Event], dict[bytes, bytes]]:
    events: list[Event] = []
    for number, event in enumerate(self.draft.events):
      kept = number not in self.choice.events
      if number in self.draft._makes: self._count(number, kept)
      if not kept: continue
      made: Event | None = event
      if isinstance(event, Doorbell): made = self._doorbell(number, event)
      elif isinstance(event, Seen):
        made = copy(event)
        made.memory = list(self._memory(event.vendor, event.memory))
      if made is not None: events.append(made)
    return events, self._blobs

  def _count(self, number: int, kept: bool) -> None:
    vendor, memory, queues = self.draft._makes[number]
    for what, count in (("memory", memory), ("queue", queues)):
      for _ in range(count):
        before = self._before[vendor, what] = self._before.get((vendor, what), -1) + 1
        if not kept: continue
        now = self._counts[vendor, what] = self._counts.get((vendor, what), -1) + 1
        self._numbers[vendor, what, before] = now

  def _memory(self, vendor: str, rows: list[list[Any]]) -> Iterator[list[Any]]:
    for key, *rest in rows:
      now = self._numbers.get((vendor, "memory", key))
      if now is not None: yield [now, *rest]

  # ---- a submission

  def _doorbell(self, number: int, event: Doorbell) -> Doorbell | None:
    found, made, gone = self.draft.submissions.get(number), copy(event), self._gone_rows.get(number, set())
    rows = []
    for i, row in enumerate(event.memory):
      if i in gone: continue
      content = self.choice.contents.get((number, i))
      if content is not None: self._blobs[content_hash(content)] = content
      rows.append(row if content is None else [*row[:3], content_hash(content)])
    made.memory = list(self._memory(event.vendor, rows))
    made.touched = [now for key in event.touched
                    if (now := self._numbers.get((event.vendor, "memory", key))) is not None]
    if found is None: return made
    queue = self._numbers.get((event.vendor, "queue", event.queue))
    if queue is None: return None
    made.queue = queue
    pieces: dict[int, bytes] = {}
    data = _bytes(self._words(number, found, found.ring, pieces))
    if not data and found.ring: return None
    self._place(found, event, made, data)
    made.pieces = [[a, pieces.get(a, b)] for a, b in event.pieces if a in pieces or not found.ring]
    return made

  def _place(self, found: Submission, event: Doorbell, made: Doorbell, data: bytes) -> None:
    """Put words into the ring behind those of the submissions before."""
    key, size = found.queue, found.size or 1
    more = (event.last - event.first) * found.unit - sum(len(b) for _, b in event.ring)  # told of, and not written
    made.first = self._cursors.get(key, self.draft.starts[key]) + found.gap
    made.last = self._cursors[key] = made.first + (len(data) + max(more, 0)) // found.unit
    if found.tells: made.value = event.value + made.last - event.last
    if len(event.pointers) == 2: made.pointers = _pointers(found, event, made)
    start = made.first * found.unit % size
    head = min(len(data), size - start)
    made.ring = [[found.base + a, d] for a, d in ((start, data[:head]), (0, data[head:])) if d]

  def _words(self, number: int, found: Submission, nodes: list[Node], pieces: dict[int, bytes]) -> list[int]:
    """The words of what remains of these packets; pieces that they lead to are put down."""
    out: list[int] = []
    gone = self._gone.get(number, ())
    for node in nodes:
      if node.packet[1] in gone: continue
      words = self.choice.words.get(node.packet, node.item.words)
      if node.calls:
        inner = self._words(number, found, found.streams[node.calls], pieces)
        if not inner: continue
        pieces[node.calls] = _bytes(inner)
        words = resized(node.item, len(inner))
      for address in node.reads: pieces[address] = self._descriptor(number, found, address)
      out += words
    return out

  def _descriptor(self, number: int, found: Submission, address: int) -> bytes:
    event = self.draft.events[number]
    assert isinstance(event, Doorbell)
    raw: bytes = next(b for a, b in event.pieces if a == address)
    words = self.choice.words.get((number, address))
    return raw if words is None else _bytes(words) + raw[4 * len(words):]


class _Made:
  """See `container.Frames`: events and contents in memory, over those of a file."""
  cut: Final = -1

  def __init__(self, draft: Draft, path: Path, events: list[Event], blobs: dict[bytes, bytes]) -> None:
    self.path, self.head, self._events = path, draft.base.head, events
    self._reader, self._blobs = draft.base.reader, blobs

  def events(self) -> Iterator[list[Any]]: return (event.row() for event in self._events)

  def names(self) -> list[bytes]: return list(dict.fromkeys([*self._reader.names(), *self._blobs]))

  def has(self, name: bytes) -> bool: return name in self._blobs or self._reader.has(name)

  def blob(self, name: bytes) -> bytes | None:
    found = self._blobs.get(name)
    return self._reader.blob(name) if found is None else found

  def close(self) -> None: self._reader.close()


def _submission(step: Step) -> Submission:
  event, queue, world, follow = step.event, step.queue, step.world, step.follow
  assert isinstance(event, Doorbell) and queue is not None and world is not None and follow is not None
  made = Submission(step.submission, step, (event.vendor, event.queue), event.first, queue.ring, queue.size,
                    world.unit(queue), world.told(queue, event.value) is not None)
  pieces = {address: len(data) for address, data in event.pieces}
  path: list[Node] = []
  for item in follow.items:
    del path[item.depth:]
    node = Node((step.number, item.address), item)
    if item.depth == 0: made.ring.append(node)
    elif len(path) == item.depth: _below(made, path, node, pieces)
    path.append(node)
  return made


def _below(made: Submission, path: list[Node], node: Node, pieces: dict[int, int]) -> None:
  """A packet that another leads to: one of a stream of packets, or a descriptor."""
  parent, item = path[-1], node.item
  if not item.words:  # not all of it is known: what is, stays as it is
    if item.address in pieces: parent.reads.append(item.address)
    return
  if isinstance(parent.item.packet, methods.Send) or parent.packet[1] in made.descriptors:
    if item.address not in pieces: return  # words of the pushbuffer itself
    made.descriptors[item.address] = item
    next(n for n in reversed(path) if n.packet[1] not in made.descriptors).reads.append(item.address)
    return
  if not parent.calls:
    if item.address not in pieces: return
    parent.calls = item.address
  stream = made.streams.setdefault(parent.calls, [])
  if not stream or item.address > stream[-1].item.address: stream.append(node)  # each once, however often it is called


def _pointers(found: Submission, event: Doorbell, made: Doorbell) -> list[int]:
  """The ring's read and write pointer in memory: as far behind and ahead of the submission as they were."""
  read, write = event.pointers
  if found.tells: return [max(made.first - max(event.first - read, 0), 0), write + made.last - event.last]
  entries = found.size // found.unit or 1  # they wrap with the ring
  return [(read + made.first - event.first) % entries, (write + made.last - event.last) % entries]


def _bytes(words: list[int] | tuple[int, ...]) -> bytes: return b"".join(w.to_bytes(4, "little") for w in words)


def saved(capture: Capture, path: Path) -> None:
  """Write a capture with the contents that it names, and no others."""
  writer = Writer(path, {k: v for k, v in capture.head.items() if k != "format"})
  for event in parsed(capture.reader.events()):
    names = [row[3] for row in event.memory] if isinstance(event, Doorbell | Seen) else \
      [event.image] if isinstance(event, Program) else []
    for name in names:
      content = capture.reader.blob(name)
      if content is not None: writer.blob(content, name)
    writer.event(event.row())
  writer.close()
