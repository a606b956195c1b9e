"""Hardware command queues: ordered commands made into words once, patched for each submission, written into a ring.

    CommandStream    the commands of one submission, while they are built: packets, and names for the fields that change
    BoundStream      the same as words, with a setter for each name: a launch costs a few stores
    Ring             the memory that the device reads, its two pointers and its doorbell
    HardwareQueue    a ring with a name, and what was submitted to it last (for reports)

What a packet looks like is the business of the driver's own commands; where a field lies in it comes from the packet's
declaration.

A launch costs about 5 us of Python. A repeated launch leaves out the registers that the queue holds
already.
"""
from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tinyhw.core.errors import EncodeError, InvalidArgument, WaitTimeout
from tinyhw.core.layout import Packet
from tinyhw.core.port import Port

_WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class LoadedCode:
  """Code in GPU memory: where, the file that it came in ("amdgcn" or "cubin"), and of each kernel its name, its entry's
  address and the bytes of its arguments."""
  address: int
  size: int
  name: str
  kind: str
  file: bytes
  kernels: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Patch:
  """One word's share of a named value: `word = word & keep | (value >> right << left) & ~keep`."""
  index: int
  keep: int
  right: int
  left: int


@dataclass(frozen=True, slots=True)
class _Limit:
  """What values a name may take: 0..largest, with `align` low zero bits."""
  largest: int
  zero_bits: int
  where: str

  def and_(self, other: _Limit) -> _Limit:
    return _Limit(min(self.largest, other.largest), max(self.zero_bits, other.zero_bits),
                  self.where if self.largest < other.largest else other.where)


@dataclass(frozen=True, slots=True)
class Low:
  """The low dword of a named 64-bit value, for a field of 32 bits."""
  name: str


Slot = str | Low


def _patches(packet: Packet, field_name: str, body: int, slot: Slot) -> tuple[list[Patch], _Limit]:
  """How to store a value of the field into words, when the packet's body starts at word `body`."""
  field = next((f for f in packet.FIELDS if f.name == field_name), None)
  where = f"{type(packet).__name__}.{field_name}"
  if field is None: raise EncodeError("no such field", where=where)
  if isinstance(slot, Low):
    if field.lo % 32 or field.width != 32:
      raise EncodeError("is not a whole dword, and cannot take half of a value", where=where)
    return [Patch(body + field.lo // 32, 0, 0, 0)], _Limit((1 << 64) - 1, 0, where)
  patches = []
  for dword in range(field.lo // 32, (field.lo + field.width - 1) // 32 + 1):
    lo, hi = max(field.lo, 32 * dword), min(field.lo + field.width, 32 * dword + 32)
    mask = ((1 << (hi - lo)) - 1) << (lo - 32 * dword)
    patches.append(Patch(body + dword, _WORD & ~mask, lo - field.lo + field.shift, lo - 32 * dword))
  return patches, _Limit(field.limit, field.shift, where)


def _plain(rows: Sequence[tuple[int, int, int, int]]) -> tuple[int, int]:
  """The words that a value exactly is, low and high; -1 where there is none."""
  whole = all(keep == 0 and left == 0 for _, keep, _, left in rows) and [row[2] for row in rows] in ([0], [0, 32])
  return (rows[0][0], rows[1][0] if len(rows) == 2 else -1) if whole else (-1, -1)


class BoundStream:
  """The words of one submission with named values to fill in. Reusable: set what changes, submit again."""
  __slots__ = ("_limits", "_names", "_slots", "label", "room", "words")

  def __init__(
    self, words: Iterable[int], slots: Mapping[str, Sequence[Patch]], limits: Mapping[str, _Limit], label: str
  ) -> None:
    self.words: array[int] | memoryview[int] = array("I", words)
    self.label = label
    self.room = 0  # see `HardwareQueue.room_for`
    self._slots = {name: tuple((p.index, p.keep, p.right, p.left) for p in patches) for name, patches in slots.items()}
    self._limits = dict(limits)
    # Of each name: its largest value, the bits that must be zero, and the words that its value exactly is (low, high or
    # -1), where it needs no masks.
    self._names = {name: (limits[name].largest, (1 << limits[name].zero_bits) - 1, *_plain(rows))
                   for name, rows in self._slots.items()}

  @property
  def names(self) -> tuple[str, ...]: return tuple(self._slots)

  def places(self, name: str) -> tuple[tuple[int, int, int, int], ...]:
    """Where a name's value is: (word, what of it stays, bits of the value to drop, place)."""
    return self._slots.get(name, ())

  def move(self, memory: memoryview[int]) -> None:
    """Have the words in memory of dwords that has room for them."""
    memory[:] = memoryview(self.words)
    self.words = memory

  def set(self, name: str, value: int) -> None:
    """Fill in a named value everywhere it appears. Raises EncodeError when a field cannot hold it."""
    largest, zeros, low, high = self._names[name]
    if not 0 <= value <= largest or value & zeros:
      limit = self._limits[name]
      raise EncodeError(
        f"{name} = {value:#x} does not fit (at most {limit.largest:#x}, {limit.zero_bits} low zero bits)",
        where=limit.where,
      )
    words = self.words
    if low >= 0:
      words[low] = value & _WORD
      if high >= 0: words[high] = value >> 32
      return
    for index, keep, right, left in self._slots[name]:
      words[index] = words[index] & keep | (value >> right << left) & ~keep & _WORD


class CommandStream:
  """Commands in order, as they are built. `emit` takes an encoded packet and the names of fields to be filled in
  later."""

  def __init__(self, label: str = "") -> None:
    self.label = label
    self.words: list[int] = []
    self._slots: dict[str, list[Patch]] = {}
    self._limits: dict[str, _Limit] = {}

  def emit(
    self, encoded: Sequence[int], packet: Packet, slots: Mapping[str, Slot] | None = None, header: int = 0
  ) -> None:
    """Append a packet's words, of which the first `header` do not belong to its declaration. `slots` maps field names
    to the names of values to be filled in later."""
    body = len(self.words) + header
    for field_name, slot in (slots or {}).items():
      name = slot.name if isinstance(slot, Low) else slot
      patches, limit = _patches(packet, field_name, body, slot)
      self._slots.setdefault(name, []).extend(patches)
      known = self._limits.get(name)
      self._limits[name] = limit if known is None else limit.and_(known)
    self.words.extend(encoded)

  def mark_words(self, name: str, low: int, high: int) -> None:
    """Two whole words take a named 64-bit value."""
    self._slots.setdefault(name, []).extend((Patch(low, 0, 0, 0), Patch(high, 0, 32, 0)))
    self._limits[name] = _Limit((1 << 64) - 1, 0, name)

  def mark_word(self, name: str, patch: Patch, largest: int, zero_bits: int = 0) -> None:
    """A share of one word takes a named value of at most `largest`, with so many low bits zero."""
    self._slots.setdefault(name, []).append(patch)
    limit, known = _Limit(largest, zero_bits, name), self._limits.get(name)
    self._limits[name] = limit if known is None else known.and_(limit)

  def bind(self, **values: int) -> BoundStream:
    """The words, ready to be patched and submitted."""
    bound = BoundStream(self.words, self._slots, self._limits, self.label)
    for name, value in values.items(): bound.set(name, value)
    return bound


class PointerUnit:
  """What a queue's read and write pointers count: PM4 rings dwords, SDMA rings bytes."""
  DWORDS = 1
  BYTES = 4


class Ring:
  """The host's side of one ring.

  The write pointer only grows; the device may report its read pointer with or without the wraps, so only the remainder
  by the ring's size is used, and one word always stays free. With `keep_whole` a submission is never split by the
  ring's end: the rest is filled with no-operations (`pad(n)` gives n words of them).
  """

  def __init__(
    self,
    port: Port,
    *,
    memory: memoryview,
    read_pointer: memoryview,
    write_pointer: memoryview,
    doorbell: int,
    unit: int,
    pad: Callable[[int], Sequence[int]] | None = None,
    keep_whole: bool = False,
    start: int = 0,
  ) -> None:
    self._port, self._unit, self._pad, self._keep_whole, self._doorbell = port, unit, pad, keep_whole, doorbell
    self.words = memory.cast("I")
    self.size = len(self.words)
    if self.size & (self.size - 1): raise InvalidArgument(f"{self.size} words are not a power of two", where="Ring")
    self._read, self._write = read_pointer[:8].cast("Q"), write_pointer[:8].cast("Q")
    self.at = start  # words written since the queue was made
    self.free_to = start  # as `at` counts: how far the device is known to have left room

  @property
  def read_at(self) -> int:
    """Where the device reads, as a word index in the ring."""
    return int(self._read[0]) // self._unit % self.size

  def pointers(self) -> str:
    """The pointers that host and device look at, in words since the queue was made, for people."""
    return f"its read pointer is {int(self._read[0]) // self._unit:#x} words, its write pointer {self.at:#x}"

  @property
  def used(self) -> int:
    """Words that the device has not taken yet."""
    return (self.at - self.read_at) % self.size

  def has_room(self, count: int) -> bool:
    """Whether so many words fit now. The device is asked where what it has said before is not enough."""
    if self.free_to - self.at < count:
      self.free_to = self.at + self.size - 1 - (self.at - int(self._read[0]) // self._unit) % self.size
    return self.free_to - self.at >= count

  def _make_room(self, count: int, timeout_s: float, name: str) -> None:
    if count >= self.size:
      raise InvalidArgument(f"{count} words do not fit a ring of {self.size}", where=name,
                            hint="use an indirect buffer")
    self.ring_doorbell()  # what was written so far has to be read before there is room for the rest
    self.wait_for_room(count, timeout_s, name)

  def wait_for_room(self, count: int, timeout_s: float, name: str) -> None:
    """Wait until so many words fit. Raises WaitTimeout."""
    def fits() -> bool: return self.has_room(count)
    if not fits() and not self._port.wait(fits, timeout_s):
      raise WaitTimeout(
        name,
        packet=f"host, for {count} free words in the ring",
        address=self._doorbell,
        wanted=count,
        seen=self.size - 1 - self.used,
        seconds=timeout_s,
        hint="the device does not read its ring: see the packet at its read pointer",
      )

  def push(self, words: array[int] | memoryview[int], timeout_s: float = 30.0, name: str = "ring") -> int:
    """Write words behind those already there; returns where they start. The device sees them after `ring_doorbell`."""
    start, count, size = self.at, len(words), self.size
    where = start & (size - 1)
    end = where + count
    if end > size and self._keep_whole and self._pad is not None and count < size:
      self.push(array("I", self._pad(size - where)), timeout_s, name)
      return self.push(words, timeout_s, name)
    if self.free_to - start < count and not self.has_room(count): self._make_room(count, timeout_s, name)
    if end <= size: self.words[where:end] = words
    else:
      source = memoryview(words)
      self.words[where:] = source[:size - where]
      self.words[:end - size] = source[size - where:]
    self.at = start + count
    return start

  def ring_doorbell(self) -> None:
    """Publish the write pointer, then tell the device."""
    value = self.at * self._unit
    self._write[0] = value
    self._port.doorbell(self._doorbell, value)

  def read_back(self, start: int, count: int) -> list[int]:
    """Words written at `start`, as long as they were not overwritten."""
    return [self.words[(start + i) & (self.size - 1)] for i in range(count)]


@dataclass(frozen=True, slots=True)
class Submission:
  """What was written to a ring: where, how much, and the timeline value that it ends with. `words` where they are not
  the ring's."""
  start: int
  count: int
  value: int
  label: str
  words: Sequence[int] | None = None


class Decoder(Protocol):
  """Turns words into lines of text, one a packet."""
  def __call__(self, words: Sequence[int]) -> list[str]: ...


class HardwareQueue:
  """One ring of a device with its name and its last submissions."""

  def __init__(self, name: str, ring: Ring, decode: Decoder, keep: int = 16) -> None:
    self.name, self.ring, self._decode = name, ring, decode
    self._sent: deque[tuple[int, int, int, str, Sequence[int] | None]] = deque(maxlen=keep)
    self.wait_stream: BoundStream | None = None  # made by the driver: waits until `address` holds `value`

  @property
  def history(self) -> list[Submission]:
    """The last submissions, oldest first."""
    return [Submission(*row) for row in self._sent]

  def words_for(self, stream: BoundStream, waits: int) -> int:
    """Words of the ring that are enough for a submission with so many waits, also where the ring's end is near."""
    words = 2 * len(stream.words)
    if waits and self.wait_stream is not None: words += 2 * waits * len(self.wait_stream.words)
    return words if words < self.ring.size else self.ring.size - 1

  def room_for(self, stream: BoundStream) -> int:
    """`words_for` with one wait, which is the most where no other device is waited for."""
    stream.room = self.words_for(stream, 1)
    return stream.room

  def submit(
    self, stream: BoundStream, value: int, waits: Iterable[tuple[int, int]] = (), timeout_s: float = 30.0
  ) -> None:
    """Write the stream, after waits for (address, value) pairs, and ring the doorbell once."""
    ring = self.ring
    start = ring.at
    if waits: self.push_waits(waits, timeout_s)
    ring.push(stream.words, timeout_s, self.name)
    ring.ring_doorbell()
    self.remember(start, ring.at - start, value, stream.label)

  def push_waits(self, waits: Iterable[tuple[int, int]], timeout_s: float) -> None:
    """Write waits for (address, value) pairs."""
    for address, wanted in waits:
      assert self.wait_stream is not None
      self.wait_stream.set("address", address)
      self.wait_stream.set("value", wanted & _WORD)
      self.ring.push(self.wait_stream.words, timeout_s, self.name)

  def remember(self, start: int, count: int, value: int, label: str, words: Sequence[int] | None = None) -> None:
    """Keep a submission for reports."""
    self._sent.append((start, count, value, label, words))

  def words_of(self, submission: Submission) -> list[int]:
    """The words of a submission, read back from the ring (empty once they were overwritten)."""
    if submission.words is not None: return list(submission.words)
    if self.ring.at - submission.start > self.ring.size: return []
    return self.ring.read_back(submission.start, submission.count)

  def text_of(self, submission: Submission) -> list[str]:
    """The packets of a submission, one a line."""
    words = self.words_of(submission)
    return self._decode(words) if words else ["(overwritten in the ring)"]

  def unfinished(self, done_value: int) -> list[Submission]:
    """Submissions that the timeline has not passed, oldest first."""
    return [s for s in self.history if s.value > done_value]
