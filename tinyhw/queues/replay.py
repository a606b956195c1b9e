"""A capture again, on another machine of the same generation: its calls, its memory, its submissions.

    replay = Replay(Capture("run.thq"), {"amd": port})
    for done in replay.run(): print(done.submission, done.differences)

The calls that make memory and queues are made again (`amd.again`, `nv.again`), so that everything lies at the addresses
that the packets name. Memory whose addresses are taken gets others: packets, arguments that the code object calls
pointers, and calls are moved with it (`moved`); numbers that only may be addresses are told (`unsure`). Before a
doorbell the host's stores are made again: the bytes that the capture saw change and that no submission had signalled.
Behind it the replay waits until all that the submission signals has come, or until nothing can go on any more; then
what the device has left behind is compared with what the capture saw there.

Ports are handed in: a mock's, or the system's. Nothing is kept of what was gone through.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import DeviceError
from tinyhw.core.port import Port
from tinyhw.queues.again import Again
from tinyhw.queues.arguments import Facts
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import content_hash
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.events import Doorbell, Seen
from tinyhw.queues.happens import arguments_at, facts_of
from tinyhw.queues.vendors import new_again
from tinyhw.queues.world import PAGE, Allocation, Launch, World

_CARDS: Final = ("VRAM",)  # what a host leaves alone while work for it is queued; in VIDMEM there are pushbuffers too
MOST_UNSURE: Final = 20  # numbers that are told
SETTLE_S: Final = 2.0  # how long a submission may take before the replay goes on without it
Look = Callable[[int, int, int], memoryview | None]
"""(GPU by its place among those in use, address, bytes) -> device memory that the host has not mapped, on a mock."""


@dataclass(frozen=True, slots=True)
class Difference:
  """Memory that is not what the capture saw behind a submission: which bytes of which allocation, as chunks."""
  allocation: Allocation
  offset: int
  size: int

  def __str__(self) -> str:
    at = self.allocation.address + self.offset
    return f"{self.allocation} bytes {self.offset:#x}..{self.offset + self.size:#x} (at {at:#x}) differ"


@dataclass(slots=True)
class Done:
  """A submission that was made again. `signals`: what it is to signal last; `open`: what of it has not come (yet)."""
  step: Step
  signals: list[Effect] = field(default_factory=list)
  open: list[Effect] = field(default_factory=list)
  differences: list[Difference] = field(default_factory=list)
  compared: int = 0  # chunks


@dataclass(frozen=True, slots=True)
class _Queued:
  """A submission of the capture's program: what it reaches, and what it signals last."""
  vendor: str
  queue: int
  touched: set[int]
  signals: dict[int, int]

  def has_ended(self, seen: Mapping[int, int]) -> bool:
    """Whether signals have its values, or later ones."""
    return any(seen.get(address, -1) >= value for address, value in self.signals.items())
_AROUND: Final = 32  # bytes on each side of a number, by which a code object's are known


class Replay:
  """See the module. `look` shows a vendor's device memory where the machine is a mock. Memory whose addresses are taken
  gets others, with `moving` all that it can be done for; then packets and arguments name these (`again.moves`)."""

  def __init__(self, capture: Capture, ports: Mapping[str, Port], *, look: Mapping[str, Look] | None = None,
               settle_s: float = SETTLE_S, moving: bool = False) -> None:
    self.capture, self._ports, self._look, self._settle_s = capture, ports, look or {}, settle_s
    self._moving = moving
    self._unsure: dict[str, bytes] = {}  # see `unsure`
    self._queued: list[_Queued] = []  # submissions of which the program had not seen the end
    self._stored: list[tuple[Allocation, int, Any]] = []  # by the host, since the last submission
    self._patched: dict[tuple[str, int], dict[int, tuple[bytes, bytes]]] = {}  # by page; see `_patches`
    self.agains: dict[str, Again] = {}
    self._old: dict[tuple[str, int, int], bytes] = {}  # hashes of chunks, as the capture knew them last
    self._signalled: dict[str, dict[int, set[int]]] = {}
    self._sizes: dict[str, dict[int, int]] = {}
    self._stamps: dict[str, dict[int, int]] = {}
    self._open: list[tuple[str, Effect]] = []

  def run(self, until: int | None = None) -> Iterator[Done]:
    """Go through the capture up to a submission; each is given when it was waited for and compared."""
    return (done for done, over in self.staged(until) if over)

  def staged(self, until: int | None = None, events: int | None = None) -> Generator[tuple[Done, bool], None, None]:
    """As `run`; each submission is also given (False) when its doorbell has rung, before anybody waits for it. Of the
    capture so many events are gone through."""
    last: Done | None = None
    for step in islice(self.capture, events):
      event, vendor = step.event, step.event.vendor
      if not vendor: continue
      if isinstance(event, Seen):
        if last is not None and last.step.event.vendor == vendor: self._compare(event, last, step)
        continue
      if last is not None and step.follow is not None:
        yield last, True
        last = None
      if step.follow is None:
        self._again(vendor, step).make(event)
        continue
      if until is not None and step.submission > until: return
      last = self._submission(vendor, step)
      yield last, False
      self._settle()
      last.open = [e for v, e in self._open if v == vendor and e in last.signals]
    if last is not None: yield last, True

  def _again(self, vendor: str, step: Step) -> Again:
    found = self.agains.get(vendor)
    if found is None:
      if vendor not in self._ports:
        raise DeviceError(f"the capture has queues of {vendor}, and no port to such a device is at hand",
                          where="replay", hint="name mock cards of that vendor: --mockgpu")
      assert step.world is not None
      found = self.agains[vendor] = new_again(vendor, self._ports[vendor], step.world)
      found.moving, found.untold = self._moving, bool(self.capture.head.get("sniffed"))
    return found

  # ---- a submission

  def _submission(self, vendor: str, step: Step) -> Done:
    event, again, queue = step.event, self._again(vendor, step), step.queue
    assert isinstance(event, Doorbell) and queue is not None and step.follow is not None and step.world is not None
    self._host_stores(vendor, event, again, step.world)
    for address, data in (*event.ring, *event.pieces): again.store(address, data)
    if again.moves: self._move(vendor, step, again)
    for made, at, content in self._stored: self._look_for(vendor, made, at, content, again)
    self._stored = []
    again.submit(queue, event)
    done = Done(step)
    effects = [e for i in step.follow.items for e in i.effects]
    self._stamps.setdefault(vendor, {}).update((e.address, e.size) for e in effects if e.does is Does.STAMP)
    signals = [e for e in effects if e.does is Does.SIGNAL and not step.world.takes_back(e.address)]
    for effect in signals:
      self._signalled.setdefault(vendor, {}).setdefault(effect.address, set()).add(effect.value)
      self._sizes.setdefault(vendor, {})[effect.address] = effect.size
    newest = {e.address: e for e in signals if not e.compare}
    self._open = [(v, e) for v, e in self._open if v != vendor or e.address not in newest]
    done.signals = list(newest.values())
    self._queued.append(_Queued(vendor, queue.key, set(event.touched), {e.address: e.value for e in done.signals}))
    self._open += [(vendor, e) for e in done.signals]
    return done

  def _settle(self) -> None:
    """Wait until all signals have come, or nothing goes on."""
    def come() -> bool:
      self._open = [(v, e) for v, e in self._open if not self._has_come(v, e)]
      return not self._open
    if come(): return
    for vendor in {v for v, _ in self._open}: self._ports[vendor].wait(come, self._settle_s)
    come()

  def _has_come(self, vendor: str, effect: Effect) -> bool:
    raw = self.bytes_at(vendor, effect.address, effect.size)
    return raw is not None and int.from_bytes(raw, "little") == effect.value

  def memory(self, vendor: str, address: int, size: int) -> bytes | None:
    """Bytes at a GPU address, as they are now; None where there is no memory that can be seen."""
    made = self.agains[vendor].world.find(address) if vendor in self.agains else None
    return self.bytes_at(vendor, address, min(size, made.end - address)) if made is not None else None

  def bytes_at(self, vendor: str, address: int, size: int) -> bytes | None:
    """Memory as it is now, as far as it can be seen."""
    again = self.agains[vendor]
    made = again.world.find(address)
    view = None if made is None else self._view(vendor, made)
    if made is None or view is None: return None
    return bytes(view[address - made.address:address - made.address + size])

  def _view(self, vendor: str, made: Allocation) -> memoryview | None:
    """All of an allocation, where it can be seen."""
    found = self.agains[vendor].view(made)
    if found is not None or vendor not in self._look: return found
    again = self.agains[vendor]
    return self._look[vendor](again.world.place(made), again.moves.at(made.address), made.size)

  def _host_stores(self, vendor: str, event: Doorbell, again: Again, world: World) -> None:
    """Make the host's stores again: what changed since the capture saw these chunks last. The card's own memory that a
    submission reaches of which the program has not seen the end is as the device had left it so far: here it is
    further."""
    seen = {address: value for address, _, value in event.signals}
    self._queued = [q for i, q in enumerate(self._queued) if q.vendor != vendor or not any(
      later.has_ended(seen) for later in self._queued[i:] if (later.vendor, later.queue) == (vendor, q.queue))]
    busy = {key for q in self._queued if q.vendor == vendor for key in q.touched}
    for key, at, size, name in event.memory:
      old, self._old[vendor, key, at] = self._old.get((vendor, key, at)), name
      view = again.view(world.allocations[key])
      if view is None or key in busy and world.allocations[key].kind in _CARDS: continue
      new = self.capture.reader.blob(name)
      if new is None: continue
      chunk = np.frombuffer(view[at:at + size], np.uint8)
      wanted = np.frombuffer(new, np.uint8)
      before = None if old is None else self.capture.reader.blob(old)
      changed = np.ones(len(wanted), bool) if old is None else wanted != (
        chunk if before is None or len(before) != len(wanted) else np.frombuffer(before, np.uint8))
      self._keep_signals(vendor, world.allocations[key].address + at, wanted, changed)
      chunk[changed] = wanted[changed]
      if again.moves: self._stored.append((world.allocations[key], at, np.where(changed, wanted, 0).astype(np.uint8)))

  def _keep_signals(self, vendor: str, address: int, wanted: Any, changed: Any) -> None:
    """Values that submissions have signalled are theirs, not the host's."""
    for at, values in self._signalled.get(vendor, {}).items():
      size, offset = self._sizes[vendor][at], at - address
      if not 0 <= offset <= len(wanted) - size: continue
      value = int.from_bytes(wanted[offset:offset + size].tobytes(), "little")
      if value in values: changed[offset:offset + size] = False

  # ---- memory that lies elsewhere

  def _move(self, vendor: str, step: Step, again: Again) -> None:
    """Have a submission's packets and arguments name memory where it lies here."""
    assert step.follow is not None and step.queue is not None
    for at, old, new in again.moved(step.queue, step.follow): self._patch(vendor, again, at, old, new, 4)
    for at, value in again.numbers(): self._tell(f"data at {at:#x} of submission {step.submission}", value, again.world)
    for launch in step.follow.launches: self._arguments(vendor, step, launch, again)

  def _arguments(self, vendor: str, step: Step, launch: Launch, again: Again) -> None:
    """The pointers among a kernel's arguments; where its object does not say which these are, they are told."""
    assert step.world is not None
    at, size = arguments_at(self.capture, vendor, launch)
    raw = self.capture.memories[vendor].read(step.world, at, size) if size else None
    known = facts_of(self.capture, vendor, launch)
    for offset in range(0, len(raw or b"") - 7, 8):
      value = int.from_bytes((raw or b"")[offset:offset + 8], "little")
      if again.moves.at(value) == value: continue
      if known is not None and known.pointers is not None and offset - known.first in known.pointers:
        self._patch(vendor, again, at + offset, value, again.moves.at(value), 8)
      elif known is not None and _is_none(known, launch, offset, value):
        self._patch(vendor, again, at + offset, value, value, 8)
      else: self._tell(f"argument at byte {offset} of a launch in submission {step.submission}", value, step.world)

  def _patch(self, vendor: str, again: Again, at: int, old: int, new: int, size: int) -> None:
    there, here = old.to_bytes(size, "little"), new.to_bytes(size, "little")
    again.store(at, here)
    self._patched.setdefault((vendor, at // PAGE), {})[at] = there, here

  def _patches(self, vendor: str, start: int, end: int) -> Iterator[tuple[int, tuple[bytes, bytes]]]:
    """What was changed of a range: its address, its bytes in the capture and here."""
    for page in range((start - 7) // PAGE, (end - 1) // PAGE + 1):
      for at, row in self._patched.get((vendor, page), {}).items():
        if at < end and at + len(row[0]) > start: yield at, row

  def _tell(self, what: str, value: int, world: World, around: bytes = b"") -> None:
    """Note what is not moved, though it may be an address; and the bytes around it, where they may be code's."""
    made = world.find(value)
    text = f"{what} has {value:#x}, in {made}: nothing says that it is an address, it is not moved"
    if len(self._unsure) < MOST_UNSURE: self._unsure.setdefault(text, around)

  def _look_for(self, vendor: str, made: Allocation, at: int, content: Any, again: Again) -> None:
    """Tell of numbers in data that the host has stored which would be addresses of moved memory."""
    start = made.address + at
    for place, (there, _) in self._patches(vendor, start, start + len(content)):  # these are known
      content[max(place - start, 0):place - start + len(there)] = 0
    numbers = content[:len(content) & ~7].view(np.uint64)
    for start, end in again.moves.ranges():
      for place in np.flatnonzero((numbers >= start) & (numbers < end))[:MOST_UNSURE]:
        number = made.address + at + 8 * int(place)
        around = self.capture.memories[vendor].read(again.world, number - _AROUND, 2 * _AROUND)
        self._tell(made.at(number), int(numbers[place]), again.world, around or b"")

  @property
  def unsure(self) -> list[str]:
    """What may be an address of moved memory, where nothing says that it is one. Amid the bytes of a code object, as
    its file has them, there are none."""
    images = [self.capture.reader.blob(p.image) or b"" for p in self.capture.programs] if self._unsure else []
    return [text for text, around in self._unsure.items() if not around or not any(around in i for i in images)]

  def _unmoved(self, vendor: str, address: int, here: memoryview) -> memoryview:
    """Memory as it would be where nothing had moved: what was changed for this is put back."""
    mine = list(self._patches(vendor, address, address + len(here))) if self._patched else []
    if not mine: return here
    copy = bytearray(here)
    for at, (there, now) in mine:
      if at < address: continue
      place = slice(at - address, at - address + len(now))
      if copy[place] == now: copy[place] = there
    return memoryview(copy)

  # ---- what is left behind

  def _compare(self, event: Seen, done: Done, step: Step) -> None:
    assert step.world is not None
    for key, at, size, name in event.memory:
      self._old[event.vendor, key, at] = name
      made = step.world.allocations[key]
      view = self._view(event.vendor, made)
      if view is None: continue
      done.compared += 1
      here = self._unmoved(event.vendor, made.address + at, view[at:at + size])
      if content_hash(here) != name: self._differ(event.vendor, made, at, here, name, done)

  def _differ(self, vendor: str, made: Allocation, at: int, here: memoryview, name: bytes, done: Done) -> None:
    """Note a chunk's differing bytes, without those that the time is in; as a whole where the file has its hash alone.
    """
    there = self.capture.reader.blob(name)
    if there is None or len(there) != len(here):
      done.differences.append(Difference(made, at, len(here)))
      return
    differs = np.frombuffer(there, np.uint8) != np.frombuffer(here, np.uint8)
    for stamp, size in self._stamps.get(vendor, {}).items():
      lo = stamp - made.address - at
      if -size < lo < len(here): differs[max(lo, 0):lo + size] = False
    places = np.flatnonzero(differs)
    if len(places): done.differences.append(Difference(made, at + int(places[0]), int(places[-1] - places[0]) + 1))

  def dump(self, vendor: str, made: Allocation) -> bytes:
    """An allocation's bytes as they are now. Raises DeviceError where they cannot be seen."""
    view = self._view(vendor, made)
    if view is None: raise DeviceError(f"{made} cannot be seen by the host", where="replay")
    return bytes(view)


def _is_none(known: Facts, launch: Launch, offset: int, value: int) -> bool:
  """Whether bytes of a kernel's arguments are no address for sure: an argument of fewer bytes, or in front of them, in
  a constant bank, two sizes of the launch."""
  sizes = (*launch.grid, *launch.block)
  return offset - known.first in known.small or (
    offset < known.first and value & 0xFFFFFFFF in sizes and value >> 32 in sizes)
