"""One vendor's submissions, as a recorder follows them: where they lead, what they may change, and which are over.

A submission that comes again is known by its words (`World.submits`), and where it leads by the bytes of its arguments.
"""
from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final

import numpy as np

from tinyhw.queues.effects import Does
from tinyhw.queues.events import Doorbell
from tinyhw.queues.looked import Looked, Looks, Place, Rows
from tinyhw.queues.plans import KnownSubmission, Named, SubmissionPlan, sets, stamped, watched
from tinyhw.queues.tally import Tally
from tinyhw.queues.world import PAGE, Allocation, Queue, World, counted

REACHES: Final = 1 << 12  # submissions whose memory is known
PENDING: Final = 1 << 10  # submissions whose end was not seen, while a program waits for none
SIGNALS: Final = 256  # signals that are looked at: those that submissions named last
_NAMES: Final = frozenset((Does.LAUNCH, Does.ACQUIRE, Does.RELEASE))  # effects whose memory is not the submission's
_READS: Final = frozenset((Does.READ, Does.CALL))
_NONE: Final[dict[int, int]] = {}
_PLACE: Final = itemgetter(0, 1)  # of a row of memory

Arguments = list[tuple[int, bytes | None]]
"""(Allocation, bytes) of what launches are given."""
Ranges = dict[tuple[int, int, int], tuple[Allocation, Looked]]
"""What is named by ranges: by allocation, first byte and end, in whole pages."""


@dataclass(slots=True)
class Reach:
  """Allocations that are named by an address alone, by their keys, and ranges of others."""
  whole: dict[int, tuple[Allocation, Looked]] = field(default_factory=dict)
  ranges: Ranges = field(default_factory=dict)


@dataclass(slots=True)
class Led:
  """Where a submission leads: what is to be looked at, what of it the submission `may` change, and the keys of all."""
  all: Reach
  may: Reach
  touched: list[int]


@dataclass(slots=True)
class Pending:
  """A submission whose end was not seen: where it signals (bytes by address), and what it may change."""
  number: int
  signals: dict[int, int]
  may: Reach


class Submitted:
  """See the module."""

  def __init__(self, world: World, looks: Looks, tally: Tally, vendor: str) -> None:
    self.world, self.looks = world, looks
    self._tally, self._vendor = tally, vendor
    self.pending: list[Pending] = []  # those whose end was not seen yet
    self.ended = Reach()  # what those may have changed that have ended since the program last waited
    self.values: dict[int, dict[int, int]] = {}  # signalled at an address: value -> submission
    self.reaches: dict[tuple[Any, ...], Led] = {}  # by plan and arguments, as long as memory is where it is
    self._version = 0  # of the world that these are of
    self._argument_bytes: dict[int, int] = {}  # of kernels, by their entries
    self._most: dict[SubmissionPlan, int] = {}  # argument bytes of a plan's kernels
    self._watched: dict[int, int] = {}  # bytes of a signal, by its address: those that are looked at
    self._places: list[Place] = []  # the same
    self._last: list[Place] = []  # of them those that the last submission named
    self._pointers: dict[int, list[Place]] = {}  # of a queue's ring
    self.told: list[list[int]] = []  # values of signals as they were told last

  def called(self, gone: Sequence[Allocation]) -> None:
    """A call was made, behind which these are gone."""
    self.looks.called(gone)
    self._pointers.clear()

  def loaded(self, kernels: Iterable[tuple[str, int, int]]) -> None:
    """There are kernels more: rows of (name, entry, argument bytes)."""
    self._argument_bytes |= {entry: size for _, entry, size in kernels}
    self._most.clear()

  # ---- signals

  def signals(self) -> list[list[int]]:
    """Values of the signals that submissions have named."""
    number = self.looks.number
    return [[place[0], place[1], value] for place in self._places if (value := number(place)) is not None]

  def _watch(self, places: list[Place]) -> None:
    """The last are kept."""
    if places == self._last: return
    kept, self._last = self._watched, places
    for address, size in places:
      kept.pop(address, None)
      kept[address] = size
    while len(kept) > SIGNALS: del kept[next(iter(kept))]
    self._places = list(kept.items())

  # ---- submissions

  def follow(self, queue: Queue, address: int, value: int, nbytes: int, number: int) -> Doorbell:
    """What a doorbell submits, as submission `number`."""
    world, looks, read = self.world, self.looks, self.looks.read
    first, last = world.pending(queue, value, read)
    ring = [(at, read(at, size) or b"") for at, size in world.ring_pieces(queue, first, last)]
    queue.at = last
    found = world.submits(queue, ring, read)
    self._count(queue, found, ring)
    signals = self._known(found, number) if isinstance(found, KnownSubmission) else self._named(found, number)
    given, arguments = self._arguments(found)
    led = self._led(found, arguments)
    self.told = self.signals()
    if (pointers := self._pointers.get(queue.key)) is None:
      pointers = self._pointers[queue.key] = world.pointers(queue)
    now = looks.now()
    rows: Rows = []
    for made, looked in led.all.whole.values():
      if made.host or now is None or looked.when != now: rows += looks.whole(made, looked, now, True)
    for (_, begin, end), (made, looked) in led.all.ranges.items():
      rows += looks.part(made, looked, begin, end, now, True)
    for made, begin, end in given:
      if made.key in led.all.whole: continue
      written = _written(made, begin, end, found.pieces)
      rows += looks.part(made, looks.at(made), begin, end, now, True, written)
    if len(rows) > 1: rows.sort(key=_PLACE)
    self.pending.append(Pending(number, signals, led.may))
    if len(self.pending) >= PENDING: self._bound()
    return Doorbell(address=address, value=value, nbytes=nbytes, queue=queue.key, first=first, last=last,
                    ring=[list(row) for row in ring], pieces=[list(row) for row in found.pieces], memory=rows,
                    touched=led.touched, signals=self.told, pointers=[looks.number(place) or 0 for place in pointers])

  def _count(self, queue: Queue, found: Named | KnownSubmission, ring: list[tuple[int, bytes]]) -> None:
    if not self._tally.whole: return
    if isinstance(found, Named): self._tally.submitted(self._vendor, queue, found.packets, found.launches)
    elif not self._tally.again(key := (self._vendor, queue.key, found.plan)):
      apart = replace(queue, state=copy.deepcopy(queue.state))
      packets = counted(self.world.follow(apart, ring, self.looks.read).items)
      self._tally.first(key, self._vendor, queue, packets, found.plan.launches)

  def _known(self, found: KnownSubmission, number: int) -> dict[int, int]:
    """Note what a submission of a plan signals; bytes by address."""
    plan = found.plan
    self._watch(plan.watched)
    self.looks.stamped.update(plan.stamped)
    for address, value, place in plan.told:
      self.values.setdefault(address, {})[value if place < 0 else found.values[place]] = number
    return plan.signalled

  def _named(self, found: Named, number: int) -> dict[int, int]:
    """The same of one without a plan."""
    self._watch(watched(found.effects))
    self.looks.stamped.update(stamped(found.effects))
    signals = [e for e in found.effects if sets(e)]
    for e in signals: self.values.setdefault(e.address, {})[e.value] = number
    return {e.address: e.size for e in signals}

  def _arguments(self, found: Named | KnownSubmission) -> tuple[list[tuple[Allocation, int, int]], Arguments]:
    """Where launches have their arguments, as ranges of allocations, and what is there."""
    plan = found.plan if isinstance(found, KnownSubmission) else None
    most = None if plan is None else self._most.get(plan)
    if most is None:
      launches = found.launches if isinstance(found, Named) else found.plan.launches
      most = self._longest(launches)
      if plan is not None:
        if len(self._most) >= REACHES: self._most.clear()
        self._most[plan] = most
    ranges: list[tuple[Allocation, int, int]] = []
    arguments: Arguments = []
    for address, size in found.arguments if isinstance(found, KnownSubmission) else found.roots:
      if not size: continue
      if most and size > most: size = most
      made = self.world.find(address)
      if made is None: continue
      at = address - made.address
      size = min(size, made.size - at)
      ranges.append((made, at, at + size))
      arguments.append((made.key, self.looks.read(address, size)))
    return ranges, arguments

  def _longest(self, launches: list[tuple[int, int]]) -> int:
    """The most argument bytes of kernels whose launches do not say how many there are; 0 where nobody knows."""
    if any(size for _, size in launches): return 0
    known = [self._argument_bytes.get(entry, 0) for entry, _ in launches]
    return max(known, default=0) if all(known) else 0

  def _led(self, found: Named | KnownSubmission, arguments: Arguments) -> Led:
    """Where a submission leads, and what its arguments point to."""
    if isinstance(found, Named): return self._lead(found, arguments)
    if found.loose:
      low, high = self.world.span
      for value in found.loose:
        if low <= value < high: return self._lead(found.named(), arguments)
    if self.world.version != self._version: self.reaches, self._version = {}, self.world.version
    key = found.plan, *arguments
    led = self.reaches.get(key)
    if led is None:
      if len(self.reaches) >= REACHES: self.reaches.clear()
      led = self.reaches[key] = self._lead(found.named(), arguments)
    return led

  def _lead(self, found: Named, arguments: Arguments) -> Led:
    """The same, by all that a submission names."""
    reads, may, exact = Reach(), Reach(), set[int]()
    for effect in found.effects:
      if not effect.size or effect.does in _NAMES: continue
      exact.add(effect.address)
      self._name(reads if effect.does in _READS else may, effect.address, effect.size)
    for address, size in found.roots:
      if not size and address not in exact: self._name(may, address, 0)
    low, high = self.world.span
    for _, raw in arguments:
      if not raw: continue
      words = np.frombuffer(raw, np.uint32, len(raw) // 4).astype(np.uint64)
      pointers = words[:-1] | words[1:] << np.uint64(32)
      pointers = pointers[(pointers >= max(low, PAGE)) & (pointers < high)]
      for pointer in set(pointers.tolist()): self._name(may, pointer, 0)
    whole = reads.whole | may.whole
    ranges = {place: at for place, at in (reads.ranges | may.ranges).items() if place[0] not in whole}
    may.ranges = {place: at for place, at in may.ranges.items() if place[0] not in may.whole}
    return Led(Reach(whole, ranges), may,
               sorted({*whole, *(place[0] for place in ranges), *(key for key, _ in arguments)}))

  def _name(self, reach: Reach, address: int, size: int) -> None:
    """Note that an address is named, with so many bytes, 0 for nobody knows."""
    made = self.world.find(address)
    if made is None: return
    if not size: reach.whole[made.key] = made, self.looks.at(made)
    else:
      first, last = address - made.address, min(address + size, made.end) - made.address
      reach.ranges[made.key, first // PAGE * PAGE, -(-last // PAGE) * PAGE] = made, self.looks.at(made)

  # ---- the end

  def over(self) -> Rows:
    """What the submissions that have ended left behind, and no other may change."""
    self._end()
    whole, ranges, self.ended = self.ended.whole, self.ended.ranges, Reach()
    if self.pending:
      others = {key for one in self.pending for key in (*one.may.whole, *(place[0] for place in one.may.ranges))}
      whole = {key: at for key, at in whole.items() if key not in others}
      ranges = {place: at for place, at in ranges.items() if place[0] not in others}
    looks, rows = self.looks, Rows()
    now = looks.now()
    for made, looked in whole.values():
      if made.freed_at < 0: rows += looks.whole(made, looked, now, False)
    for (key, first, last), (made, looked) in ranges.items():
      if made.freed_at < 0 and key not in whole: rows += looks.part(made, looked, first, last, now, False)
    return rows

  def _end(self) -> None:
    """Find those that have ended."""
    open_, ended, over = list[Pending](), self.ended, dict[int, int]()
    for one in self.pending:
      if all(self._over(*place, over) >= one.number for place in one.signals.items()):
        ended.whole |= one.may.whole
        ended.ranges |= one.may.ranges
      else: open_.append(one)
    self.pending = open_

  def _bound(self) -> None:
    """A program that does not wait has no end of submissions: forget those that have ended, and what is gone of their
    memory; and of those whose end cannot be seen the older half, whose memory is not looked at then."""
    self._end()
    ended = self.ended
    ended.whole = {key: at for key, at in ended.whole.items() if at[0].freed_at < 0}
    ended.ranges = {place: at for place, at in ended.ranges.items() if at[0].freed_at < 0}
    if len(ended.ranges) >= PENDING: ended.ranges = {}  # these are not looked at
    if len(self.pending) < PENDING // 2: return
    del self.pending[:len(self.pending) - PENDING // 2]
    first = self.pending[0].number
    self.values = {at: kept for at, values in self.values.items()
                   if (kept := {value: n for value, n in values.items() if n >= first})}

  def _over(self, address: int, size: int, known: dict[int, int]) -> int:
    """The submission whose signal is at a place; -1 for none. `known`: those that were looked at."""
    if (found := known.get(address)) is not None: return found
    value, values = self.looks.number((address, size)), self.values.get(address, _NONE)
    found = known[address] = -1 if value is None else values.get(value, -1)
    while found >= 0 and values[first := next(iter(values))] < found: del values[first]  # these are told by it
    return found


def _written(made: Allocation, first: int, last: int, pieces: list[tuple[int, bytes]]) -> tuple[int, int]:
  """The bytes of an allocation that a driver has written for a submission: arguments, and words beside them."""
  for at, data in pieces:
    if made.address <= at < made.end:
      at -= made.address
      if at < first: first = at
      if at + len(data) > last: last = at + len(data)
  return first, last
