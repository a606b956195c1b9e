"""Physical memory as one range of addresses, and caches of its lines, for many accesses at a time.

Arrays have a row for each access: `physical` (i64) addresses, `units` which of a kind of cache it meets, `uncached`
whether the page is MTYPE UC; bytes are u8 [n, width]. No access crosses a line of `LINE` bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.memory import U8, Backing, Region

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Units = Any  # i64 [n], or one int for all
Below = Callable[[Units, I64, int, Bools], U8]  # where a cache gets its lines from: units, addresses, width, uncached

LINE: Final = 128  # bytes of a line of GL2 (the topology's cache properties); the other caches' divide it
SPAN: Final = 40  # bits of an address inside of one backing
_TYPES: Final[dict[int, Any]] = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}


def taken(flat: U8, at: I64, width: int) -> U8:
  """`width` bytes at each place of an array of bytes."""
  kind = _TYPES.get(width)
  if kind is not None and not (at & width - 1).any():
    rows: U8 = flat.view(kind).take(at >> width.bit_length() - 1).view(np.uint8).reshape(-1, width)
    return rows
  return flat.take(at[:, None] + np.arange(width))


def put(flat: U8, at: I64, raw: U8) -> None:
  """Store rows of bytes; where they meet, the last one wins."""
  width = raw.shape[1]
  kind = _TYPES.get(width)
  if kind is not None and not (at & width - 1).any():
    flat.view(kind)[at >> width.bit_length() - 1] = np.ascontiguousarray(raw).view(kind).reshape(-1)
  else:
    flat[at[:, None] + np.arange(width)] = raw


class Physical:
  """All memory of a machine: each backing lies at its own base."""

  def __init__(self, system: Region) -> None:
    self._system = system
    self._bases: dict[int, int] = {}
    self._backings: list[Backing | None] = []
    self.shared: list[int] = []  # numbers of those that the host has before it

  def base(self, backing: Backing) -> int:
    """Where a backing begins."""
    found = self._bases.get(id(backing))
    if found is None:
      found = self._bases[id(backing)] = len(self._backings) << SPAN
      self._backings.append(backing)
      if not isinstance(backing, Region) or backing is self._system:
        self.shared.append(found >> SPAN)
    return found

  def forget(self, backing: Backing) -> None:
    """Let go of a backing that will not be seen again."""
    found = self._bases.pop(id(backing), None)
    if found is not None:
      self._backings[found >> SPAN] = None

  def size(self, index: int) -> int:
    """Bytes of a backing by the number in its addresses; 0 for one that is gone."""
    backing = self._backings[index]
    return 0 if backing is None else backing.size

  def _parts(self, physical: I64) -> list[tuple[U8, Any, I64]]:
    """(bytes, rows, offsets) of each backing that is still there."""
    top = physical >> SPAN
    first = int(top[0]) if len(top) else 0
    if (top == first).all():
      whole = self._backings[first] if len(top) else None
      return [] if whole is None else [(whole.u8, slice(None), physical & (1 << SPAN) - 1)]
    rows = [(self._backings[t], np.flatnonzero(top == t)) for t in np.unique(top).tolist()]
    return [(b.u8, r, physical[r] & (1 << SPAN) - 1) for b, r in rows if b is not None]

  def load(self, physical: I64, width: int) -> U8:
    """What memory itself holds."""
    parts = self._parts(physical)
    if len(parts) == 1 and isinstance(parts[0][1], slice):
      return taken(parts[0][0], parts[0][2], width)
    out = np.zeros((len(physical), width), np.uint8)
    for flat, rows, at in parts:
      out[rows] = taken(flat, at, width)
    return out

  def store(self, physical: I64, raw: U8) -> None:
    for flat, rows, at in self._parts(physical):
      put(flat, at, raw[rows])


class Cache:
  """Caches of one kind: `units` of them with `sets` lines each, direct-mapped; a line is dropped when another takes
  its place, and else stays until it is invalidated. It passes stores on at once."""

  def __init__(self, bit: str, units: int, size: int, line: int) -> None:
    self.bit = bit  # the bit of GCR_CNTL that invalidates it
    self.units, self.sets, self.line = units, size // line, line
    self.shift = line.bit_length() - 1
    self.tags: I64 = np.full(units * self.sets, -1, np.int64)
    self.data: U8 = np.zeros((units * self.sets, line), np.uint8)
    self.filled: I64 = np.zeros(units * self.sets, np.int64)  # when, on the history's clock

  def _slots(self, units: Units, physical: I64) -> tuple[I64, I64]:
    lines = physical >> self.shift
    slots: I64 = units * self.sets + lines % self.sets
    return lines, slots

  def _take(self, slots: I64, physical: I64, width: int) -> U8:
    return taken(self.data.reshape(-1), (slots << self.shift) + (physical & self.line - 1), width)

  def load(self, units: Units, physical: I64, width: int, uncached: Bools, below: Below, now: int) -> U8:
    """Bytes as a reader behind this cache sees them; lines that are not here come from below."""
    lines, slots = self._slots(units, physical)
    hit = self.tags[slots] == lines
    if hit.all():
      return self._take(slots, physical, width)
    miss = np.flatnonzero(~hit)
    _, first, back = np.unique(lines[miss] * self.units + slots[miss] // self.sets, return_index=True,
                               return_inverse=True)
    new = miss[first]
    rows = below(slots[new] // self.sets, lines[new] << self.shift, self.line, uncached[new])
    out = np.empty((len(physical), width), np.uint8)
    if hit.any():
      out[hit] = self._take(slots[hit], physical[hit], width)
    out[miss] = rows[back[:, None], (physical[miss] & self.line - 1)[:, None] + np.arange(width)]
    at = slots[new]
    self.tags[at], self.data[at], self.filled[at] = lines[new], rows, now
    return out

  def look(self, units: Units, physical: I64, width: int) -> tuple[U8, Bools, I64]:
    """(bytes, whether they are here, when they came), without changing anything."""
    lines, slots = self._slots(units, physical)
    return self._take(slots, physical, width), self.tags[slots] == lines, self.filled[slots]

  def update(self, units: Units, physical: I64, raw: U8) -> None:
    """A store passes: lines that are here have it."""
    lines, slots = self._slots(units, physical)
    hit = self.tags[slots] == lines
    if hit.any():
      put(self.data.reshape(-1), (slots[hit] << self.shift) + (physical[hit] & self.line - 1), raw[hit])

  def drop(self, units: Units, physical: I64) -> None:
    """Lines that these accesses meet are no more."""
    lines, slots = self._slots(units, physical)
    self.tags[slots[self.tags[slots] == lines]] = -1

  def invalidate(self, units: Units | None = None, ranges: list[tuple[int, int]] | None = None) -> None:
    """Forget all lines, those of some units, or those in ranges of physical addresses."""
    if units is not None:
      self.tags.reshape(self.units, self.sets)[units] = -1
    elif ranges is None:
      self.tags[:] = -1
    else:
      self.tags[self.within(ranges)] = -1

  def within(self, ranges: list[tuple[int, int]]) -> Bools:
    """Which slots hold lines that ranges touch."""
    found = np.zeros(len(self.tags), bool)
    for start, end in ranges:
      found |= (self.tags >= start >> self.shift) & (self.tags <= end - 1 >> self.shift)
    return found


class WriteBack(Cache):
  """GL2: one a GPU. It keeps what was stored, byte by byte, until it is asked to write it back or needs the place."""

  def __init__(self, bit: str, size: int, line: int, memory: Physical) -> None:
    super().__init__(bit, 1, size, line)
    self.memory = memory
    self.whole: Bools = np.zeros(self.sets, bool)  # lines of which all bytes are here, not those alone that are dirty
    self.dirty: Bools = np.zeros((self.sets, line), bool)
    self.unwritten: Bools = np.zeros(self.sets, bool)  # lines with a dirty byte
    self.under: U8 = np.zeros((self.sets, line), np.uint8)  # what memory held under bytes that became dirty

  def fetch(self, physical: I64, width: int, now: int) -> U8:
    """Bytes of pages of MTYPE NC."""
    lines, slots = self._slots(0, physical)
    hit = (self.tags[slots] == lines) & self.whole[slots]
    if hit.all():
      return self._take(slots, physical, width)
    miss = np.flatnonzero(~hit)
    new, back = np.unique(lines[miss], return_inverse=True)
    rows, at = self.memory.load(new << self.shift, self.line), new % self.sets
    partial = self.tags[at] == new
    rows = np.where(partial[:, None] & self.dirty[at], self.data[at], rows)
    out = np.empty((len(physical), width), np.uint8)
    if hit.any():
      out[hit] = self._take(slots[hit], physical[hit], width)
    out[miss] = rows[back[:, None], (physical[miss] & self.line - 1)[:, None] + np.arange(width)]
    known, others = at[partial], np.flatnonzero(~partial)
    self.data[known], self.whole[known], self.filled[known] = rows[partial], True, now
    _, last = np.unique(at[others][::-1], return_index=True)
    others = others[::-1][last]
    self._make_room(at[others], new[others], now)
    self.data[at[others]], self.whole[at[others]] = rows[others], True
    return out

  def _make_room(self, slots: I64, lines: I64, now: int) -> None:
    """Give slots, each named once, to other lines."""
    self.write_back(slots)
    self.tags[slots], self.filled[slots], self.whole[slots] = lines, now, False

  def keep(self, physical: I64, raw: U8, now: int) -> None:
    """Stores to pages of MTYPE NC."""
    lines, slots = self._slots(0, physical)
    while len(lines):  # lines of one slot, one after the other
      mine, first, back = np.unique(slots, return_index=True, return_inverse=True)
      turn = lines[first]
      now_in = turn[back] == lines
      other = self.tags[mine] != turn
      if other.any():
        self._make_room(mine[other], turn[other], now)
      at = (slots[now_in] << self.shift) + (physical[now_in] & self.line - 1)
      where = at[:, None] + np.arange(raw.shape[1])
      clean = ~self.dirty.reshape(-1)[where]
      if clean.any():
        below = self.memory.load(physical[now_in], raw.shape[1])
        self.under.reshape(-1)[where[clean]] = below[clean]
      self.data.reshape(-1)[where] = raw[now_in]
      self.dirty.reshape(-1)[where] = True
      self.unwritten[mine] = True
      rest = ~now_in
      lines, slots, physical, raw = lines[rest], slots[rest], physical[rest], raw[rest]

  def holds(self, physical: I64, width: int) -> tuple[U8, Bools, Bools, I64]:
    """(bytes, which are here, which are dirty and newer than memory: [n, width], when the line came)."""
    lines, slots = self._slots(0, physical)
    tagged = self.tags[slots] == lines
    value = self._take(slots, physical, width)
    at = (slots << self.shift) + (physical & self.line - 1)
    if not (self.unwritten[slots] & tagged).any():
      return value, (tagged & self.whole[slots])[:, None] & np.ones(width, bool), np.zeros(value.shape, bool), \
        self.filled[slots]
    dirty = taken(self.dirty.view(np.uint8).reshape(-1), at, width).view(bool) & tagged[:, None]
    same = taken(self.under.reshape(-1), at, width) == self.memory.load(physical, width)
    return value, dirty | (tagged & self.whole[slots])[:, None], dirty & same, self.filled[slots]

  def write_back(self, slots: I64 | None = None) -> None:
    """Write dirty bytes to memory; lines stay."""
    some = np.flatnonzero(self.unwritten) if slots is None else slots[self.unwritten[slots]]
    if not len(some):
      return
    row, column = np.nonzero(self.dirty[some])
    at = some[row]
    self.memory.store((self.tags[at] << self.shift) + column, self.data[at, column][:, None])
    self.dirty[some], self.unwritten[some] = False, False

  def clean(self, ranges: list[tuple[int, int]] | None = None) -> None:
    """Forget lines; bytes that were not written back stay."""
    chosen: Any = slice(None) if ranges is None else self.within(ranges)
    self.whole[chosen] = False
    self.tags[np.flatnonzero(~self.unwritten & (True if ranges is None else chosen))] = -1

  def discard(self, ranges: list[tuple[int, int]]) -> None:
    """Forget lines with all that they hold: their memory is gone."""
    chosen = self.within(ranges)
    self.tags[chosen], self.whole[chosen], self.dirty[chosen], self.unwritten[chosen] = -1, False, False, False
