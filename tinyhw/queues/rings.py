"""Submissions that a look at a process's rings finds: what lies between the write pointer seen last and the one now.

    rings = Rings(recorder, process, memory)
    rings.look()              # before its calls, behind them, at intervals, and before it ends
    rings.rung("amd", where)  # behind a store to a doorbell, where these are watched

`memory` shows what the process has mapped. Submissions go into the capture as a recorder's own do, with the words that
they lead to and the memory that they name, as all this lies there when somebody looks. What cannot be seen is told by
a line of kind "recorder", each once: rings and pointers that are not mapped, entries that were overwritten between two
looks, AQL packets whose headers the engine has taken, words and contents that may be later ones.
"""
from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from tinyhw.autogen import hsa
from tinyhw.core.errors import Error
from tinyhw.queues.container import content_hash
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Doorbell, Seen
from tinyhw.queues.plans import Named, watched
from tinyhw.queues.record import Recorder
from tinyhw.queues.world import PAGE, Allocation, Queue, World
from tinyhw.wire import aql, gpfifo

GRACE_S: Final = 0.01  # that a doorbell may come behind its ring's write pointer
KEPT: Final = 1 << 20  # bytes of an allocation that is kept as a whole where a submission names it
SIGNALS: Final = 64  # that are looked at: those that submissions named last
_RANGED: Final = (Does.READ, Does.WRITE, Does.CALL)
_TYPE: Final = 0xFF  # of an AQL packet's header


class RingMemory(Protocol):
  """A process's memory."""

  def read(self, address: int, size: int) -> bytes | None:
    """Bytes; None where there is none, fewer where it ends."""

  def shows(self, address: int, names: tuple[str, ...] = ("",)) -> bool:
    """Whether the program can read there, by a mapping of a file that begins with one of these names."""

  def there(self) -> bool:
    """Whether the process has not ended."""


@dataclass(slots=True)
class Look:
  """What was seen of a ring: the entry that was taken last (of NVIDIA's), how many submissions, whether its pointer was
  seen, and what hides it all. `waits`: what a watched doorbell is still to tell of."""
  last: bytes = b""
  submissions: int = 0
  seen: bool = False
  hidden: str = ""
  waits: tuple[int, float] = -1, 0.0  # the write pointer whose doorbell has not rung yet, and since when


class Rings:
  """The rings of one process; see the module."""

  def __init__(self, recorder: Recorder, process: int, memory: RingMemory) -> None:
    self._recorder, self._process, self._memory = recorder, process, memory
    self._looks: dict[tuple[str, int], Look] = {}
    self._known: dict[tuple[str, int, int], bytes] = {}  # hashes of chunks, by vendor, allocation and first byte
    self._told: set[str] = set()
    self._bells: dict[str, set[int]] = {}  # of a vendor: where doorbells are that are watched
    self._signals: dict[str, dict[int, int]] = {}  # of a vendor: bytes of what is waited for and signalled, by address
    self._values: dict[str, list[list[int]]] = {}  # what was told of these last

  def look(self, vendors: tuple[str, ...], last: bool = False) -> int:
    """Take down what is new in the rings of these vendors' queues; how many submissions. Where doorbells are watched,
    what is in a ring waits for its own for a moment, and no longer where it is the `last` look."""
    count, told = 0, False
    for vendor in vendors:
      world = self._recorder.world(vendor)
      for queue in world.queues:
        if not queue.closed and (last or not self._waits(vendor, world, queue)):
          count += self._look(vendor, world, queue)
      told |= self._tell_signals(vendor, world)
    if count or told: self._recorder.flush()
    return count

  def _tell_signals(self, vendor: str, world: World) -> bool:
    """What signals hold now, where it is not what was told."""
    values = self._held(vendor, world)
    if values == self._values.get(vendor, []): return False
    self._values[vendor] = values
    self._recorder.tell(vendor, Seen(memory=[], signals=values), self._process)
    return True

  def _held(self, vendor: str, world: World) -> list[list[int]]:
    return [[address, size, int.from_bytes(raw, "little")] for address, size in self._signals.get(vendor, {}).items()
            if (raw := self._bytes(world, address, size)) is not None and len(raw) == size]

  def _watch(self, vendor: str, found: Named) -> None:
    """Look at what a submission waits for and signals, from now on."""
    kept = self._signals.setdefault(vendor, {})
    for address, size in watched(found.effects):
      kept.pop(address, None)
      if size: kept[address] = size
    while len(kept) > SIGNALS: del kept[next(iter(kept))]

  def watches(self, vendor: str, bells: Iterable[int]) -> None:
    """Stores to these doorbells are told."""
    self._bells[vendor] = set(bells)

  def rung(self, vendor: str, address: int) -> int:
    """A doorbell has rung: take down what is new in the ring that it is of, or in all that it may be of."""
    world = self._recorder.world(vendor)
    count = sum(self._look(vendor, world, queue, address) for queue in world.queues
                if not queue.closed and world.rings_at(queue, address))
    if count: self._recorder.flush()
    return count

  def _waits(self, vendor: str, world: World, queue: Queue) -> bool:
    """Whether a queue's doorbell is watched, and has not told yet of what is in its ring."""
    bells = self._bells.get(vendor)
    if not bells or not any(world.rings_at(queue, at) for at in bells): return False
    pointer, look, now = self._pointer(world, queue), self._of(vendor, queue), time.monotonic()
    if pointer is None: return False
    if look.waits[0] != pointer: look.waits = pointer, now
    return now - look.waits[1] < GRACE_S

  def end(self, vendors: tuple[str, ...]) -> None:
    """The process's memory is gone: what was not seen by now is not seen."""
    for vendor in vendors:
      for queue in self._recorder.world(vendor).queues:
        look, queue.closed = self._of(vendor, queue), True
        if look.hidden: self._tell(f"{queue}: {look.hidden}: submissions are not seen")
        elif not look.submissions: self._tell(f"{queue}: its write pointer has shown no submission")

  def _look(self, vendor: str, world: World, queue: Queue, bell: int = 0) -> bool:
    look, pointer = self._of(vendor, queue), self._pointer(world, queue)
    if pointer is None:
      if not look.seen and not look.hidden and self._memory.there():  # else it ends, and has taken this down
        look.hidden = "its write pointer is not in memory that the program has mapped"
      return False
    look.seen, look.hidden = True, ""
    if not queue.size: return False
    first, last = world.found(queue, pointer)
    last += self._rounds(vendor, world, queue)
    if queue.kind == "aql": last = self._written(world, queue, first, last)
    if last <= first: return False
    room = world.room(queue)
    lost = max(0, last - first - room)
    taken = self._taken(world, queue, first + lost, last)
    if taken is None:
      look.hidden = "its ring is not in memory that the program has mapped"
      return False
    again = self._pointer(world, queue)  # what was written meanwhile may lie over what was read
    lost = max(lost, world.found(queue, again)[1] - first - room) if again is not None else lost
    if lost: first = self._overwritten(queue, first, last, lost)
    queue.at = last
    if first == last: return False
    if lost: taken = self._taken(world, queue, first, last) or []
    self._submitted(vendor, world, queue, pointer, (first, last), taken, bell)
    return True

  def _overwritten(self, queue: Queue, first: int, last: int, lost: int) -> int:
    """Say how much is gone, and where the first entry is that is left. Packets of PM4 and SDMA have no size of their
    own to begin at."""
    same = queue.kind in ("aql", "gpfifo")
    left = "" if same else "; where the next packet begins is not known, the rest of this look is left out"
    self._recorder.note("recorder", f"{queue}: {min(lost, last - first)} of {last - first} entries of the ring from "
                                    f"{first} on were overwritten between two looks{left}")
    return min(first + lost, last) if same else last

  def _rounds(self, vendor: str, world: World, queue: Queue) -> int:
    """Entries of a whole round of NVIDIA's ring, whose pointer counts within it: the entry that was seen last has
    changed, which comes behind all others."""
    look = self._of(vendor, queue)
    if queue.kind != "gpfifo" or not look.last: return 0
    now = self._taken(world, queue, queue.at - 1, queue.at)
    return queue.size // gpfifo.SIZE if now and now[0][1] != look.last else 0

  def _written(self, world: World, queue: Queue, first: int, last: int) -> int:
    """Up to where AQL packets are valid: a packet's place is taken before its words are there, its header comes last.
    The engine makes headers of what it has read invalid again."""
    read = self._value(world, queue, 0) or 0
    for index in range(max(first, read, last - world.room(queue)), last):
      raw = self._taken(world, queue, index, index + 1)
      if raw and raw[0][1][0] & _TYPE == hsa.HSA_PACKET_TYPE_INVALID: return index
    return last

  def _submitted(self, vendor: str, world: World, queue: Queue, pointer: int, entries: tuple[int, int],
                 ring: list[tuple[int, bytes]], bell: int) -> None:
    look = self._of(vendor, queue)
    event = Doorbell(address=bell, value=pointer - (queue.kind == "aql"), nbytes=8, queue=queue.key, first=entries[0],
                     last=entries[1], ring=[list(row) for row in ring])
    pieces: dict[int, bytes] = {}
    def read(at: int, size: int) -> bytes | None:
      raw = self._bytes(world, at, size)
      if raw is not None and world.find(at) is None: pieces.setdefault(at, raw)  # it has no place among the memory
      return raw
    try:
      submitted = world.submits(queue, ring, read)
      found = submitted if isinstance(submitted, Named) else submitted.named()
    except Error as error:  # the program goes on, whatever it has written
      self._tell(f"{queue}: a submission is not followed: {str(error).partition(chr(10))[0]}")
      found = Named([], [], [], [])
    self._watch(vendor, found)
    event.signals = self._values[vendor] = self._held(vendor, world)
    event.pieces = [list(row) for row in found.pieces]
    event.pieces += [[at, raw] for at, raw in pieces.items() if all(at != row[0] for row in event.pieces)]
    event.memory = list(self._named(vendor, world, found))
    event.touched = sorted({row[0] for row in event.memory})
    values = [self._value(world, queue, n) for n in range(2)]
    if None not in values: event.pointers = [v for v in values if v is not None]
    self._passed(world, queue, entries, values[0], ring)
    look.submissions += 1
    if queue.kind == "gpfifo": look.last = b"".join(raw for _, raw in ring)[-gpfifo.SIZE:]
    self._recorder.tell(vendor, event, self._process)
    self._recorder.submissions += 1

  def _passed(self, world: World, queue: Queue, entries: tuple[int, int], read: int | None,
              ring: list[tuple[int, bytes]]) -> None:
    """Say where the engine was before us."""
    if read is None or world.reached(queue, read, entries[0]) <= entries[0]: return
    self._tell(f"{queue}: the engine had read submissions before they were seen; what they lead to, and the contents "
               "that they name, may be later ones")
    heads = [raw[at] & _TYPE for _, raw in ring for at in range(0, len(raw), aql.PACKET_BYTES)]
    if queue.kind == "aql" and hsa.HSA_PACKET_TYPE_INVALID in heads:
      self._tell(f"{queue}: the engine had taken the headers of AQL packets before they were seen: their types are not "
                 "known")

  # ---- memory that submissions name

  def _named(self, vendor: str, world: World, found: Named) -> Iterator[list[object]]:
    """Rows of the contents that a submission names and the capture has not yet."""
    ranges = [(e.address, e.size) for e in found.effects if e.does in _RANGED and e.size]
    exact = {address for address, _ in ranges}
    ranges += [(address, size) for address, size in found.roots if size or address not in exact]
    ranges += [(p, 0) for at, size in found.roots if size for p in self._pointers(world, at, size)]
    seen = set[tuple[int, int]]()
    for address, size in ranges:
      made = world.find(address)
      if made is None: continue
      at = address - made.address
      whole = made.size <= KEPT
      if not whole and (not size or size > KEPT):
        self._tell(f"{made}: {made.size} bytes at {made.address:#x} are named by submissions, their contents are not "
                   f"kept (at most {KEPT} are)")
        continue
      first, end = (0, made.size) if whole else (at // PAGE * PAGE, min(at + size, made.size))
      if (made.key, first) in seen: continue
      seen.add((made.key, first))
      yield from self._chunks(vendor, world, made, first, end)

  def _pointers(self, world: World, address: int, size: int) -> list[int]:
    """What may be pointers among a kernel's arguments."""
    raw = self._bytes(world, address, size) or b""
    words = np.frombuffer(raw, np.uint32, len(raw) // 4).astype(np.uint64)
    if len(words) < 2: return []
    low, high = world.span
    values = words[:-1] | words[1:] << np.uint64(32)
    found: list[int] = np.unique(values[(values >= max(low, PAGE)) & (values < high)]).tolist()
    return found

  def _chunks(self, vendor: str, world: World, made: Allocation, first: int, end: int) -> Iterator[list[object]]:
    raw = self._bytes(world, made.address + first, end - first)
    if raw is None:
      if made.kind not in ("DOORBELL", "MMIO"): self._tell(f"{made}: the program has not mapped it, its contents are "
                                                           "not seen")
      return
    for at in range(0, len(raw), PAGE):
      chunk = raw[at:at + PAGE]
      name, key = content_hash(chunk), (vendor, made.key, first + at)
      if self._known.get(key) == name: continue
      self._known[key] = self._recorder.keep(chunk)
      yield [made.key, first + at, len(chunk), name]

  # ---- reading

  def _bytes(self, world: World, address: int, size: int) -> bytes | None:
    """Bytes at a GPU address, where the process has them mapped."""
    made = world.find(address)
    if made is not None: size = min(size, made.end - address)
    if made is not None and made.host:
      at = address - made.address
      return self._memory.read(made.host + at, min(size, made.shown - at)) if at < made.shown else None
    if not world.UNTOLD or not self._memory.shows(address, world.UNTOLD): return None
    return self._memory.read(address, size)

  def _pointer(self, world: World, queue: Queue) -> int | None:
    """The write pointer."""
    made, at, size = world.write_pointer_at(queue)
    raw = self._memory.read(made.host + at, size) if made is not None and made.host and at < made.shown else (
      self._bytes(world, at + (made.address if made is not None else 0), size))
    return None if raw is None or len(raw) < size else int.from_bytes(raw, "little")

  def _value(self, world: World, queue: Queue, which: int) -> int | None:
    """The ring's read pointer (0) or write pointer (1), where memory has them."""
    places = world.pointers(queue)
    raw = self._bytes(world, *places[which]) if places else None
    return None if raw is None else int.from_bytes(raw, "little")

  def _taken(self, world: World, queue: Queue, first: int, last: int) -> list[tuple[int, bytes]] | None:
    """Entries of a ring; None where they are not mapped."""
    rows = []
    for at, size in world.ring_pieces(queue, first, last):
      raw = self._bytes(world, at, size)
      if raw is None or len(raw) < size: return None
      rows.append((at, raw))
    return rows

  def _of(self, vendor: str, queue: Queue) -> Look: return self._looks.setdefault((vendor, queue.key), Look())

  def _tell(self, text: str) -> None:
    """A line into the capture, once."""
    if text in self._told: return
    self._told.add(text)
    self._recorder.note("recorder", text)
