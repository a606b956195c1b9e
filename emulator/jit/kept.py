"""Memory that a dispatch which may be run again finds as it was: what it may write is kept first."""
from __future__ import annotations

import os
from typing import Final

from tinyhw.core.memory import PAGE, Mapping, Region
from tinyhw.emulator.values.ops import Array

LARGEST: Final = 1 << 30  # bytes that are kept of what a dispatch writes


class Suspicion(Exception):
  """The reference has to look."""


def extents(m: Mapping, start: int, end: int) -> list[tuple[int, int]]:
  """The parts of a range of a mapping that somebody has written, in whole pages of its file."""
  fd = getattr(m.backing, "fd", -1)
  if fd < 0: return [(start, end)]
  first = m.offset - m.start  # from addresses to places in the file
  out, at, stop = list[tuple[int, int]](), (start + first) // PAGE * PAGE, end + first
  while at < stop:
    try: data = os.lseek(fd, at, os.SEEK_DATA)
    except OSError: break  # no data up to the end
    if data >= stop: break
    at = os.lseek(fd, data, os.SEEK_HOLE)
    out.append((max(data - first, start), min(at - first, end)))
  return out


class Kept:
  """What was in ranges of memory before they were written."""

  def __init__(self) -> None:
    self._kept: list[tuple[Mapping, int, list[tuple[int, Array]], list[tuple[int, int]]]] = []
    self._bytes = 0

  def keep(self, m: Mapping, start: int, end: int) -> None:
    """Keep what is in a range, before it is written for the first time. Raises Suspicion where that cannot be."""
    if any(a is m and at == start for a, at, _, _ in self._kept): return
    found = extents(m, start, end)
    self._bytes += sum(b - a for a, b in found)
    if self._bytes > LARGEST: raise Suspicion
    if found != [(start, end)] and not isinstance(m.backing, Region): raise Suspicion
    data = [(a, m.u8[a - m.start:b - m.start].copy()) for a, b in found]
    self._kept.append((m, start, data, _holes(m, start, end, found)))

  def undo(self) -> None:
    """Memory as it was."""
    for m, _, data, holes in self._kept:
      for at, old in data: m.u8[at - m.start:at - m.start + len(old)] = old
      for start, end in holes:
        assert isinstance(m.backing, Region)
        m.backing.discard(start - m.start + m.offset, end - start)


def _holes(m: Mapping, start: int, end: int, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
  """Whole pages of a range that no extent has."""
  first = m.offset - m.start
  at, out = (start + first) // PAGE * PAGE - first, list[tuple[int, int]]()
  for a, b in [*found, (end, end)]:
    stop = a if a < end else -(-(end + first) // PAGE) * PAGE - first
    if at < stop and not (a < end and a == start): out.append((at, stop))
    at = -(-(b + first) // PAGE) * PAGE - first
  return out
