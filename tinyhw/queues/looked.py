"""What a recorder finds in one vendor's memory: bytes at GPU addresses, and which chunks are others than the last time.

Contents go by their hash, chunk by chunk. What lay still behind the last change is one hash, so memory that does not
change costs reading it once. Views and where numbers lie are kept until a call may have moved something.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.core.port import Port
from tinyhw.queues.container import Writer, content_hash
from tinyhw.queues.world import PAGE, Allocation, World

SMALL: Final = 1 << 16  # bytes of an allocation that is kept by pages
CHUNK: Final = 1 << 16  # bytes of a chunk of a larger one
CHANGED: Final = 1 << 10  # bytes of a page that are kept as a change of what it was before
CHANGES: Final = 15     # of it, one behind the other
NEAR: Final = 1 << 12   # pages, and places of numbers, whose views are kept

Peek = Callable[[int, int, int], memoryview | None]
"""(GPU by its place among those in use, address, bytes) -> device memory that the host has not mapped, on a mock."""
Place = tuple[int, int]
"""(GPU address, bytes) of a number in memory."""
Time = tuple[int, int] | None
"""A time at which memory that the host has not mapped is as it is; None where nobody says."""
Rows = list[list[Any]]


@dataclass(slots=True)
class Stored:
  """A page whose content was stored last: its first byte, what it holds, and how many changes that is."""
  at: int
  content: bytes
  name: bytes
  changes: int


@dataclass(slots=True)
class Looked:
  """What was found in an allocation so far: hashes of its chunks of `step` bytes (by their first byte), of all from a
  byte on (`tail`), and of the range of chunks that was looked at last. `view` is where the process has it mapped, at
  `host`, or where it was shown after so many calls (`shown`). `when` says when all of it was looked at, where it can
  only change with time."""
  step: int = 0
  known: dict[int, bytes] = field(default_factory=dict)
  tail: tuple[int, bytes] | None = None
  range: tuple[int, int, bytes] | None = None
  stored: Stored | None = None
  view: memoryview | None = None
  host: int = 0
  shown: int = -1
  when: Time = None


class Looks:
  """See the module. `peek` and `still` are `Recorder.port`'s."""

  def __init__(self, world: World, writer: Writer) -> None:
    self._world, self._writer = world, writer
    self.port: Port | None = None
    self.peek: Peek | None = None
    self.still: Callable[[], int] | None = None
    self.stamped: set[int] = set()  # pages that submissions signal into
    self.known: dict[int, Looked] = {}  # by allocation
    self._calls = 0  # so far
    self._near: dict[int, tuple[int, int, memoryview]] = {}  # by page: an allocation there, and where it is mapped
    self._numbers: dict[Place, memoryview] = {}

  def called(self, gone: Iterable[Allocation] = ()) -> None:
    """A call was made: memory may be elsewhere, or gone."""
    self._calls += 1
    self._near.clear()
    self._numbers.clear()
    for made in gone: self.known.pop(made.key, None)

  def hides(self, hidden: Iterable[Allocation]) -> None:
    """These are about to be unmapped."""
    self._near.clear()
    self._numbers.clear()
    for made in hidden:
      if (looked := self.known.get(made.key)) is not None: looked.view = None

  def now(self) -> Time:
    """See `Time`."""
    if self.still is None or (runs := self.still()) < 0: return None
    return runs, self._calls

  # ---- bytes

  def at(self, made: Allocation) -> Looked:
    """What was found in an allocation."""
    found = self.known.get(made.key)
    if found is None: found = self.known[made.key] = Looked()
    return found

  def view(self, made: Allocation, looked: Looked) -> memoryview | None:
    """All of an allocation's bytes, where somebody sees them."""
    if made.host:
      if looked.view is None or looked.host != made.host:
        if self.port is None: return None
        looked.view, looked.host = self.port.memory(made.host, made.size), made.host
      return looked.view
    if not made.address or self.peek is None: return None
    if looked.view is None or looked.host or looked.shown != self._calls:
      looked.view = self.peek(self._world.place(made), made.address, made.size)
      looked.host, looked.shown = 0, self._calls
    return looked.view

  def read(self, address: int, size: int) -> bytes | None:
    """Bytes at a GPU address, as far as an allocation goes; None where there is none, or nobody sees it."""
    near = self._near.get(address // PAGE)
    if near is not None and near[0] <= address and address + size <= near[1] and size > 0:
      at = address - near[0]
      return bytes(near[2][at:at + size])
    made = self._world.find(address)
    if made is None or size <= 0: return None
    view = self.view(made, self.at(made))
    if view is None: return None
    if made.host:
      if len(self._near) >= NEAR: self._near.clear()
      self._near[address // PAGE] = made.address, made.end, view
    at = address - made.address
    return bytes(view[at:at + size])

  def number(self, place: Place) -> int | None:
    """The number at a place; None where nobody sees it."""
    kept = self._numbers.get(place)
    if kept is not None: return kept[0]
    address, size = place
    raw = self.read(address, size)
    if raw is None or len(raw) != size: return None
    near = self._near.get(address // PAGE)
    if near is not None and size in (4, 8) and near[0] <= address and address + size <= near[1]:
      if len(self._numbers) >= NEAR: self._numbers.clear()
      self._numbers[place] = near[2][address - near[0]:address - near[0] + size].cast("I" if size == 4 else "Q")
    return int.from_bytes(raw, "little")

  # ---- changes

  def whole(self, made: Allocation, looked: Looked, now: Time, content: bool) -> Rows:
    """Rows of an allocation's chunks whose contents are others than the last time; with `content` they are stored too,
    where the host can have made them. `now` as this says."""
    if not made.host:
      if now is not None and looked.when == now: return []
      looked.when = now
    view, end = self.view(made, looked), made.size
    if view is None: return []
    if not looked.step: looked.step = CHUNK if end > SMALL else PAGE
    if looked.tail is not None:
      at, name = looked.tail
      if content_hash(view[at:]) == name:
        if not at: return []
        end = at
    rows = self._chunks(made, looked, view, 0, end, content)
    if rows: looked.range = None
    elif end == looked.step: return rows  # one chunk in front of what is still
    if end == made.size or not rows:
      first = rows[-1][1] + looked.step if rows else 0
      looked.tail = (first, content_hash(view[first:])) if made.size - first > looked.step else None
    return rows

  def part(self, made: Allocation, looked: Looked, first: int, last: int, now: Time, content: bool,
           written: tuple[int, int] | None = None) -> Rows:
    """The same of the chunks of a range of bytes. What is written a bit further each time is stored by its changes:
    `written` says where, and all else of a page is as it was."""
    if now is not None and not made.host and looked.when == now: return []
    view = self.view(made, looked)
    if view is None: return []
    if not looked.step: looked.step = PAGE  # what is named by ranges is small beside its allocation
    step = looked.step
    first, last = first // step * step, min(-(-last // step) * step, made.size)
    if last - first > step:  # most is as it was
      name = first, last, content_hash(view[first:last])
      if looked.range == name: return []
      looked.range = name
    rows = self._chunks(made, looked, view, first, last, content, written if step == PAGE else None)
    if rows:
      if last - first <= step: looked.range = None
      if looked.tail is not None and last > looked.tail[0]: looked.tail = None
    return rows

  def _chunks(self, made: Allocation, looked: Looked, view: memoryview, first: int, last: int, content: bool,
              written: tuple[int, int] | None = None) -> Rows:
    """Rows of whole chunks."""
    step, known, hashed = looked.step, looked.known, content_hash
    rows: Rows = []
    for at in range(first, last, step):
      chunk = view[at:at + step]
      name = hashed(chunk)
      if known.get(at) == name: continue
      known[at] = name
      if made.host and (content or self._has_signal(made.address + at, len(chunk))):
        if written is None: self._writer.blob(chunk, name)
        else: looked.stored = self._store(looked.stored, at, bytes(chunk), name, *written)
      rows.append([made.key, at, len(chunk), name])
    return rows

  def _has_signal(self, address: int, size: int) -> bool:
    """Whether submissions signal into a chunk: what they leave there is kept, since times are in it too."""
    return any(page in self.stamped for page in range(address // PAGE, -(-(address + size) // PAGE)))

  def _store(self, before: Stored | None, at: int, content: bytes, name: bytes, first: int, last: int) -> Stored:
    """Store a page's content, as a change of what it was before where it is nothing else from byte `first` of the
    allocation to `last`."""
    if self._writer.has(name): return Stored(at, content, name, CHANGES)
    if before is not None and before.at == at and before.changes < CHANGES:
      first, last, was = max(first - at, 0), min(last - at, len(content)), before.content
      if last - first <= CHANGED and was[:first] == content[:first] and was[last:] == content[last:]:
        self._writer.change(name, before.name, first, content[first:last])
        return Stored(at, content, name, before.changes + 1)
    self._writer.blob(content, name)
    return Stored(at, content, name, 0)
