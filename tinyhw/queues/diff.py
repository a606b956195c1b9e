"""Two captures beside each other: submissions and packets aligned, fields compared, without what no two runs share.

    for change in compare(Capture("before.thq"), Capture("after.thq")): print(change)
    assert_stream("golden.thq", "run.thq")
"""
from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from typing import Final

from tinyhw.core.errors import Error
from tinyhw.queues.capture import Capture
from tinyhw.queues.normal import Normal, Row

MOST: Final = 500  # differences of submissions within one stretch


class StreamsDiffer(Error, AssertionError):
  """Two captures submit other packets."""


@dataclass(frozen=True, slots=True)
class ShownPacket:
  """A packet of a capture, normalised, with its place."""
  submission: int
  queue: str
  address: int
  depth: int
  name: str
  rows: tuple[Row, ...]

  @property
  def key(self) -> tuple[str, str, int, tuple[Row, ...]]: return self.queue, self.name, self.depth, self.rows

  @property
  def place(self) -> str: return f"submission {self.submission}, {self.queue}, {self.address:#x}"

  def __str__(self) -> str: return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.rows)})"


@dataclass(frozen=True, slots=True)
class Change:
  """A packet that only one capture has (the other is None), or one whose fields differ."""
  before: ShownPacket | None
  after: ShownPacket | None

  def fields(self) -> list[tuple[str, str, str]]:
    """(field, before, after) of those that differ; empty where one is missing."""
    if self.before is None or self.after is None: return []
    old, new = dict(self.before.rows), dict(self.after.rows)
    return [(k, old.get(k, "-"), new.get(k, "-")) for k in {**old, **new} if old.get(k) != new.get(k)]

  def __str__(self) -> str:
    if self.before is None: return f"+ {self.after and self.after.place}: {self.after}"
    if self.after is None: return f"- {self.before.place}: {self.before}"
    changed = ", ".join(f"{k}: {a} -> {b}" for k, a, b in self.fields())
    other = f" ({self.after.place})" if self.after.place != self.before.place else ""
    return f"~ {self.before.place}{other}: {self.before.name} {changed}"


def shown(capture: Capture) -> Iterator[list[ShownPacket]]:
  """The packets of each submission, normalised."""
  normal = Normal(capture)
  for step in capture:
    if step.follow is not None:
      yield [ShownPacket(step.submission, str(step.queue), item.address, item.depth, name, tuple(rows))
             for item, name, rows in normal.rows(step)]


def compare(before: Capture, after: Capture) -> Iterator[Change]:
  """What differs, in order. Queues are compared each by itself: which of two engines is told first is no difference."""
  old, new = (_by_queue(c) for c in (before, after))
  for queue in {**old, **new}: yield from _aligned(old.get(queue, []), new.get(queue, []))


Packets = list[ShownPacket]


def _by_queue(capture: Capture) -> dict[str, list[Packets]]:
  found: dict[str, list[Packets]] = {}
  for packets in shown(capture):
    if packets: found.setdefault(packets[0].queue, []).append(packets)
  return found


def _aligned(old: list[Packets], new: list[Packets]) -> Iterator[Change]:
  """Submissions first, by their packets and then by the kinds of these: packets come again thousands of times."""
  for a, b in _runs(old, new, lambda packets: tuple(p.key for p in packets)):
    for c, d in _runs(a, b, lambda packets: tuple((p.name, p.depth) for p in packets), equal=True):
      alike = len(c) == len(d) and all(len(p) == len(q) for p, q in zip(c, d))
      for p, q in zip(c, d) if alike else [(list(chain.from_iterable(c)), list(chain.from_iterable(d)))]:
        yield from _packets(p, q)


def _runs(old: list[Packets], new: list[Packets], key: Callable[[Packets], Hashable],
          equal: bool = False) -> Iterator[tuple[list[Packets], list[Packets]]]:
  """The stretches that differ by a key; with `equal` those between them too."""
  numbers: dict[Hashable, int] = {}
  a, b = ([numbers.setdefault(key(packets), len(numbers)) for packets in side] for side in (old, new))
  i = j = 0
  for x, y in (*common(a, b), (len(a), len(b))):
    if i < x or j < y: yield old[i:x], new[j:y]
    if equal and x < len(a): yield old[x:x + 1], new[y:y + 1]
    i, j = x + 1, y + 1


def _packets(old: Packets, new: Packets) -> Iterator[Change]:
  matcher = SequenceMatcher(None, [p.key for p in old], [p.key for p in new], autojunk=False)
  for what, a, b, c, d in matcher.get_opcodes():
    if what == "equal": continue
    if what == "replace": yield from _replaced(old[a:b], new[c:d])
    else:
      yield from (Change(p, None) for p in old[a:b])
      yield from (Change(None, p) for p in new[c:d])


def common(a: list[int], b: list[int]) -> list[tuple[int, int]]:
  """Places of a longest sequence that both have in common, by Myers' greedy search: quick where few differ. Behind
  `MOST` differences it gives up: the rest has no more in common than its end."""
  first = next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
  most = min(len(a), len(b)) - first
  last = next((n for n in range(most) if a[-1 - n] != b[-1 - n]), most)
  found = [(n, n) for n in range(first)]
  found += [(first + x, first + y) for x, y in _middle(a[first:len(a) - last], b[first:len(b) - last])]
  return found + [(len(a) - n, len(b) - n) for n in range(last, 0, -1)]


def _middle(a: list[int], b: list[int]) -> list[tuple[int, int]]:
  """The same of what differs where it begins and where it ends."""
  if not a or not b: return []
  ends, trace = {1: 0}, list[dict[int, int]]()
  for d in range(min(len(a) + len(b), MOST) + 1):
    trace.append({k: ends[k] for k in range(-d - 1, d + 2) if k in ends})
    for k in range(-d, d + 1, 2):
      x = ends[k + 1] if k == -d or k != d and ends[k - 1] < ends[k + 1] else ends[k - 1] + 1
      while x < len(a) and x - k < len(b) and a[x] == b[x - k]: x += 1
      ends[k] = x
      if x >= len(a) and x - k >= len(b): return _back(trace, len(a), len(b))
  inside = [(ends[k], ends[k] - k) for k in range(-d, d + 1, 2) if ends[k] <= len(a) and ends[k] - k <= len(b)]
  return _back(trace, *max(inside, key=sum)) if inside else []


def _back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
  """The way to a place: what both have in common on it."""
  found: list[tuple[int, int]] = []
  for d in range(len(trace) - 1, -1, -1):
    ends, k = trace[d], x - y
    before = k + 1 if k == -d or k != d and ends[k - 1] < ends[k + 1] else k - 1
    start = ends[before]
    found += [(n, n - k) for n in range(x - 1, start + (before < k) - 1, -1)]
    x, y = start, start - before
  return found[::-1]


def _replaced(old: list[ShownPacket], new: list[ShownPacket]) -> Iterator[Change]:
  """Packets in each other's place: those of one name are the same packet with other fields."""
  matcher = SequenceMatcher(None, [p.name for p in old], [p.name for p in new], autojunk=False)
  for what, a, b, c, d in matcher.get_opcodes():
    if what == "equal": yield from (Change(p, q) for p, q in zip(old[a:b], new[c:d]))
    else:
      yield from (Change(p, None) for p in old[a:b])
      yield from (Change(None, p) for p in new[c:d])


def assert_stream(golden: str | os.PathLike[str], path: str | os.PathLike[str], most: int = 10) -> None:
  """Raise StreamsDiffer, with the first changes, unless a capture submits what a golden one does."""
  changes = list(compare(Capture(golden), Capture(path)))
  if changes:
    raise StreamsDiffer(f"{len(changes)} packets differ from {os.fspath(golden)}", where=os.fspath(path),
                        hint=f"look with tinyhw diff {os.fspath(golden)} {os.fspath(path)}; where it is right, record "
                        "the golden capture anew", facts=[str(c) for c in changes[:most]])
