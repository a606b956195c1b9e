"""A ring's words as packets.

A ring in use has three parts: what is read, what waits between the pointers, and older words behind the write pointer.
Packets that wait begin at the read pointer. Of those before it the beginning is not known: the longest run of headers
that ends at the read pointer is taken, and words before it are shown as words.

Packets are decoded by the tables of the generation that the dump names. Of another generation, and of the graphics
ring's own packets, opcodes are named and words shown: a table of another generation would tell something wrong.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tinyhw.autogen.pm4_gfx11 import OPCODES
from tinyhw.core.errors import DecodeError
from tinyhw.queues.amd.effects import effects
from tinyhw.queues.amd.stream import meaning
from tinyhw.queues.foreign.dump import UNKNOWN, Dump, Ring
from tinyhw.queues.world import Item
from tinyhw.wire import aql, pm4, sdma

TABLES: Final = {"pm4": "gfx11", "sdma": "SDMA v6"}
"""Names of the tables that packets are decoded by."""
# Blocks whose version says whether these are theirs, the first that a dump names: GC 11 comes with SDMA 6.
_OWN: Final = {"pm4": (("GC", 11),), "sdma": (("SDMA0", 6), ("GC", 11))}
_AQL: Final = aql.PACKET_BYTES // 4


@dataclass(slots=True)
class Placed:
  """A packet, or words that are none, and the index of the first in the ring. `unknown`: those that the file leaves
  out, which are 0 in the item."""
  index: int
  item: Item
  unknown: frozenset[int] = frozenset()


def foreign_generation(dump: Dump, kind: str) -> str:
  """The block and version whose packets our tables do not have; empty where they have, or the dump does not say."""
  for block, major in _OWN.get(kind, ()):
    if version := dump.versions.get(block):
      return "" if version[0] == major else f"{block} {'.'.join(map(str, version[:3]))}"
  return ""


def packets(ring: Ring, named_only: bool = False) -> list[Placed]:
  """All words of a ring, in the order in which they were written: the oldest first, the pending ones last.

  `named_only`: headers are named and nothing is decoded, for a generation that we have no tables of.
  """
  words, turn, read = ring.words, ring.first, 0
  if ring.whole:
    turn = ring.write
    words = words[turn:] + words[:turn]
    read = len(words) if ring.read == ring.write else (ring.read - turn) % ring.size
  elif ring.read != UNKNOWN:
    at = (ring.read - turn) % ring.size if ring.size else ring.read - turn
    if 0 < at <= len(words): read = at
  walk = _Walk(ring, words, turn, named_only)
  walk.before(read)
  walk.onward(read)
  return walk.out


class _Walk:
  """The parts of one ring. `words` are in the order of writing; `turn` is the ring's index of the first."""

  def __init__(self, ring: Ring, words: list[int | None], turn: int, named_only: bool) -> None:
    self.out: list[Placed] = []
    self._ring, self._words, self._turn, self._named = ring, words, turn, named_only
    self._plain = tuple(w or 0 for w in words)  # sizes are read of these; what is not known is asked before
    self._size = _SIZES.get(ring.kind, _none)

  def before(self, end: int) -> None:
    """Up to the read pointer."""
    if not end: return
    lands = bytearray(end + 1)
    lands[end], start, at = 1, end, end
    while at > 0:
      at -= 1
      if self._words[at] is None: continue
      size = self._size(self._plain, at)
      if size and at + size <= end and lands[at + size] and self._likely(at): lands[at], start = 1, at
    self._add(0, start, "words before the first packet that is known")
    while start < end: start = self._packet(start, end)

  def onward(self, at: int) -> None:
    """From the read pointer on."""
    end = len(self._words)
    while at < end: at = self._packet(at, end)

  def _likely(self, at: int) -> bool:
    """Whether a word may be a header: one whose opcode the vendor names."""
    return self._ring.kind != "pm4" or self._plain[at] >> 30 == 2 or self._plain[at] >> 8 & 0xFF in OPCODES

  def _packet(self, at: int, end: int) -> int:
    """Add the packet at an index; the index behind it."""
    known = self._words[at] is not None or self._ring.kind == "aql"  # whose packets are all of one size
    size = self._size(self._plain, at) if known else 0
    if not size:
      stop = at + 1
      # SDMA's lengths follow from its packets: behind an unknown one nothing can be found.
      while stop < end and (self._words[stop] is None or self._ring.kind in ("sdma", "") or
                            not self._size(self._plain, stop)): stop += 1
      self._add(at, stop, self._why(at, known))
      return stop
    stop = min(at + size, end)
    taken = self._words[at:stop]
    missing = sum(w is None for w in taken)
    head = _NAMES[self._ring.kind](self._plain, at)
    if at + size > end: self._add(at, stop, f"{head} of {size} dwords, which end behind what is here")
    elif missing: self._add(at, stop, f"{head}: {missing} of its {size} dwords are not in the listing")
    elif self._named: self._add(at, stop, f"{head} by its opcode in {TABLES[self._ring.kind]}")
    else: self._decoded(at, stop, head)
    return stop

  def _why(self, at: int, known: bool) -> str:
    if not known: return "dwords that are not in the listing"
    if not self._ring.kind: return "dwords"
    return f"{_NAMES[self._ring.kind](self._plain, at)}: no packet that is known begins here"

  def _decoded(self, at: int, stop: int, head: str) -> None:
    words, kind = self._plain[at:stop], self._ring.kind
    try:
      if kind == "aql":
        packet = aql.decode(b"".join(w.to_bytes(4, "little") for w in words))
        found = Item(self._where(at), words, packet, effects=effects(packet))
      else:
        made = meaning(kind, words, 0)
        found = Item(self._where(at), words, made.packet, effects=list(made.effects))
    except DecodeError as error:
      found = Item(self._where(at), words, None, error=error.message if head in error.message else
                   f"{head}: {error.message}")
    self.out.append(Placed(self._index(at), found))

  def _add(self, at: int, stop: int, why: str) -> None:
    """Words that are no packet."""
    if at == stop: return
    unknown = frozenset(i for i, w in enumerate(self._words[at:stop]) if w is None)
    self.out.append(Placed(self._index(at), Item(self._where(at), self._plain[at:stop], None, error=why), unknown))

  def _index(self, at: int) -> int:
    return (at + self._turn) % self._ring.size if self._ring.size else at + self._turn

  def _where(self, at: int) -> int:
    return 4 * self._index(at) + max(self._ring.address, 0)


def _none(words: Sequence[int], at: int) -> int: return 0


def _pm4_size(words: Sequence[int], at: int) -> int:
  word = words[at]
  if word >> 30 == 3: return pm4.size_of(word)
  return int(word == pm4.PACKET_2)


def _aql_size(words: Sequence[int], at: int) -> int: return _AQL


def _aql_name(words: Sequence[int], at: int) -> str:
  cls = aql.KINDS.get(words[at] & 0xFF)
  return f"packet type {words[at] & 0xFF}" if cls is None else cls.__name__


def _pm4_name(words: Sequence[int], at: int) -> str:
  word = words[at]
  return pm4.name(word) if word >> 30 == 3 else f"{word:#010x}"


_SIZES: Final[dict[str, Callable[[Sequence[int], int], int]]] = {
  "pm4": _pm4_size, "sdma": sdma.size_of, "aql": _aql_size}
_NAMES: Final[dict[str, Callable[[Sequence[int], int], str]]] = {
  "pm4": _pm4_name, "sdma": lambda words, at: sdma.name(words[at]), "aql": _aql_name}


def pending(ring: Ring, found: list[Placed]) -> Iterator[Placed]:
  """Those that wait: from the read pointer on."""
  if ring.pending < 1: return
  for placed in found:
    if 0 <= ring.behind_read(placed.index) < ring.pending: yield placed
