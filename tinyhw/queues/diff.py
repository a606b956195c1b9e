"""Two captures beside each other: submissions and packets aligned, fields compared, without what no two runs share.

    for change in compare(Capture("before.thq"), Capture("after.thq")): print(change)
    assert_stream("golden.thq", "run.thq")
"""
from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from tinyhw.core.errors import Error
from tinyhw.queues.capture import Capture
from tinyhw.queues.normal import Normal, Row


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


def _by_queue(capture: Capture) -> dict[str, list[ShownPacket]]:
  found: dict[str, list[ShownPacket]] = {}
  for packets in shown(capture):
    for packet in packets: found.setdefault(packet.queue, []).append(packet)
  return found


def _aligned(old: list[ShownPacket], new: list[ShownPacket]) -> Iterator[Change]:
  matcher = SequenceMatcher(None, [p.key for p in old], [p.key for p in new], autojunk=False)
  for what, a, b, c, d in matcher.get_opcodes():
    if what == "equal": continue
    if what == "replace": yield from _replaced(old[a:b], new[c:d])
    else:
      yield from (Change(p, None) for p in old[a:b])
      yield from (Change(None, p) for p in new[c:d])


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
