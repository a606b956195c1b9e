"""A capture read back: its events in order, each with the world as it was then, and memory as it was known.

    for step in Capture("run.thq"):
      if step.follow is not None: print(step.number, step.queue, len(step.follow.items))

Nothing is kept that was gone through: a long capture is read in little memory. Contents come from the file when they
are asked for.
"""
from __future__ import annotations

import os
from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tinyhw.queues.container import Frames, Reader, Told
from tinyhw.queues.events import Doorbell, Event, Program, Ran, Seen, parsed
from tinyhw.queues.vendors import new_world
from tinyhw.queues.world import Allocation, Follow, Queue, World


@dataclass(frozen=True, slots=True)
class CapturedKernel:
  """A kernel in GPU memory: its entry, and the bytes of its arguments."""
  name: str
  entry: int
  argument_bytes: int
  program: str


@dataclass(slots=True)
class Step:
  """An event, with what it meant: `queue` and `follow` of a doorbell; `submission` counts those."""
  number: int
  event: Event
  world: World | None
  queue: Queue | None = None
  follow: Follow | None = None
  submission: int = -1


class Memory:
  """The newest known content of each vendor's memory, by chunks: what the file has of it can be read."""

  def __init__(self, reader: Frames) -> None:
    self._reader = reader
    self._chunks: dict[int, dict[int, tuple[int, bytes]]] = {}  # allocation -> first byte -> (bytes, hash)
    self._pieces: list[tuple[int, bytes]] = []
    self._starts: dict[int, bytes] = {}  # of these, by their first byte

  def learn(self, rows: list[list[Any]]) -> None:
    """Take contents by their hash."""
    for key, at, size, name in rows: self._chunks.setdefault(key, {})[at] = size, name

  def at_hand(self, pieces: list[tuple[int, bytes]]) -> None:
    """What the submission that is looked at brings along."""
    self._pieces, self._starts = pieces, dict(reversed(pieces))

  def versions(self, made: Allocation) -> dict[int, tuple[int, bytes]]:
    """Hashes of an allocation's chunks, by their first byte."""
    return self._chunks.get(made.key, {})

  def read(self, world: World, address: int, size: int) -> bytes | None:
    """Bytes at a GPU address; None where they are not known, fewer where what is known ends."""
    if (piece := self._starts.get(address)) is not None and len(piece) >= size: return piece[:size]
    for start, piece in self._pieces:
      if start <= address < start + len(piece): return piece[address - start:address - start + size]
    made = world.find(address)
    if made is None: return None
    known, out, at = self._chunks.get(made.key, {}), b"", address - made.address
    while len(out) < size:
      row = _chunk(known, at)
      if row is None: break
      data = self._reader.blob(row[2])
      if data is None: break
      out += data[at - row[0]:at - row[0] + size - len(out)]
      at = row[0] + row[1]
      if at >= made.size: break
    return out or None

  def knows(self, world: World, address: int) -> bool:
    """Whether the byte at a GPU address is known, without reading it."""
    if any(start <= address < start + len(piece) for start, piece in self._pieces): return True
    made = world.find(address)
    row = None if made is None else _chunk(self._chunks.get(made.key, {}), address - made.address)
    return row is not None and self._reader.has(row[2])


def _chunk(known: dict[int, tuple[int, bytes]], at: int) -> tuple[int, int, bytes] | None:
  """(first byte, bytes, hash) of the chunk that holds a byte. Chunks are of two sizes, by which they begin."""
  for start in (at & ~0xFFF, at & ~0xFFFF, 0):
    if (found := known.get(start)) is not None and at < start + found[0]: return start, *found
  return None


_NO_CODE: Final[tuple[list[int], dict[int, Program]]] = [], {}


class Capture:
  """See the module. Without `following` no submission's packets are looked at: steps have no `follow`, memory is not
  known. Raises MissingFile, or DecodeError for what is no capture or a damaged one."""

  def __init__(self, path: str | os.PathLike[str] | Frames, *, following: bool = True) -> None:
    self.following = following
    self.reader: Frames = Reader(path) if isinstance(path, str | os.PathLike) else path
    self.head = self.reader.head
    self.worlds: dict[str, World] = {}
    self.memories: dict[str, Memory] = {}
    self.kernels: dict[tuple[str, int], CapturedKernel] = {}
    self.programs: list[Program] = []
    self._code: dict[str, tuple[list[int], dict[int, Program]]] = {}  # of a vendor: where code begins, the newest there
    self._events = self._submissions = 0  # gone through

  @property
  def cut(self) -> bool:
    """Whether the file ends amid a frame: its program was ended from outside."""
    return self.reader.cut >= 0

  def tells(self, told: Told) -> None:
    """Have somebody hear how far its events are read."""
    if isinstance(self.reader, Reader): self.reader.told = told

  def world(self, vendor: str) -> World:
    """A vendor's, as far as was read."""
    if vendor not in self.worlds:
      self.worlds[vendor] = new_world(vendor)
      self.memories[vendor] = Memory(self.reader)
    return self.worlds[vendor]

  def __iter__(self) -> Iterator[Step]:
    """Go through all from the beginning."""
    self.worlds, self.memories, self.kernels, self.programs, self._code = {}, {}, {}, [], {}
    self._events = self._submissions = 0
    yield from self.further(self.reader.events())

  def further(self, rows: Iterator[list[Any]]) -> Iterator[Step]:
    """Go on behind what was gone through, with the events that follow (`Reader.grown`)."""
    for event in parsed(rows):
      number, self._events = self._events, self._events + 1
      world = self.world(event.vendor) if event.vendor else None
      step = Step(number, event, world)
      if world is not None:
        memory = self.memories[event.vendor]
        world.apply(event, number)
        if isinstance(event, Doorbell): self._submissions += self._doorbell(step, event, world, memory)
        elif isinstance(event, Seen | Ran): memory.learn(event.memory)
        elif isinstance(event, Program): self._program(event)
      yield step

  def program(self, vendor: str, address: int) -> Program | None:
    """The code that lies at a GPU address, as far as was read."""
    starts, there = self._code.get(vendor, _NO_CODE)
    at = bisect_right(starts, address) - 1
    if at < 0: return None
    found = there[starts[at]]
    return found if address < found.address + found.size else None

  def before_the_end(self) -> int:
    """How many events there are up to the last submission, with what was seen of it: behind these a program takes its
    queues and memory down."""
    found, gone = 0, 0  # `gone`: what was taken down up to the last submission
    worlds: dict[str, World] = {}
    for number, event in enumerate(parsed(self.reader.events()), 1):
      if event.vendor: worlds.setdefault(event.vendor, new_world(event.vendor)).apply(event, number)
      submits = isinstance(event, Doorbell) and event.queue >= 0
      if not submits and not isinstance(event, Seen): continue
      now = sum(len(w.freed) + sum(q.closed for q in w.queues) for w in worlds.values())
      if submits: gone = now
      if now == gone: found = number
    return found

  def _doorbell(self, step: Step, event: Doorbell, world: World, memory: Memory) -> bool:
    if not self.following:
      if not 0 <= event.queue < len(world.queues): return False
      step.queue, step.submission = world.queues[event.queue], self._submissions
      step.queue.at = event.last
      return True
    memory.learn(event.memory)
    memory.at_hand([(at, data) for at, data in (*event.ring, *event.pieces)])
    def read(address: int, size: int) -> bytes | None: return memory.read(world, address, size)
    def knows(address: int) -> bool: return memory.knows(world, address)
    step.follow = world.submitted(event, read, knows)
    if step.follow is None: return False
    world.signalled(step.follow.items)
    step.queue, step.submission = world.queues[event.queue], self._submissions
    return True

  def _program(self, event: Program) -> None:
    self.programs.append(event)
    starts, there = self._code.setdefault(event.vendor, ([], {}))
    if event.address not in there: insort(starts, event.address)
    there[event.address] = event
    found = self.worlds[event.vendor].find(event.address)
    if found is not None and not found.label: found.label = f"code of {event.name}"
    for name, entry, size in event.kernels:
      self.kernels[event.vendor, entry] = CapturedKernel(name, entry, size, event.name)

  def close(self) -> None:
    """Let go of the file."""
    self.reader.close()
