"""What a recorder counts while it records, for the last frame of a capture: nobody needs to go through one to know it.

    tally.submitted(vendor, queue, counted, launches)   # of a submission that is written down
    tally.rows()                                        # None: something cannot be counted by what the recorder knows

A submission of a plan has as many packets of each kind as the first one had. Kernels are counted by the names that they
have when they are launched.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.queues.world import Queue

KEPT: Final = 1 << 12  # sorts of submissions that are counted apart

Counted = Counter[str]
"""Packets by the names of their kinds."""
Launched = list[tuple[int, int]]
"""Launches by (entry, argument bytes)."""


@dataclass(slots=True)
class QueueTally:
  """Of the queues of one name."""
  submissions: int = 0
  packets: Counted = field(default_factory=Counter)
  kernels: Counted = field(default_factory=Counter)


@dataclass(slots=True, eq=False)
class Alike:
  """Submissions that differ in values alone."""
  vendor: str
  queue: str
  packets: Counted
  launches: Launched
  times: int = 0


class Tally:
  """See the module."""

  def __init__(self) -> None:
    self.whole = True  # whether all is counted
    self._queues: dict[str, QueueTally] = {}
    self._alike: dict[Hashable, Alike] = {}
    self._kernels: dict[tuple[str, int], str] = {}

  def loaded(self, vendor: str, kernels: Iterable[Sequence[Any]]) -> None:
    """There are kernels more: rows of (name, entry, argument bytes)."""
    self._fold()  # what was launched by now has the names of now
    for name, entry, _ in kernels: self._kernels[vendor, entry] = name

  def again(self, key: Hashable) -> bool:
    """Count one more of a sort; False where it is new."""
    found = self._alike.get(key)
    if found is None: return False
    found.times += 1
    return True

  def first(self, key: Hashable, vendor: str, queue: Queue, packets: Counted | None, launches: Launched) -> None:
    """Count the first of a sort. `packets`: None where some words are none."""
    if len(self._alike) >= KEPT: self._fold()
    if packets is None: self.whole = False
    else:
      self._queues.setdefault(str(queue), QueueTally())
      self._alike[key] = Alike(vendor, str(queue), packets, launches, 1)

  def submitted(self, vendor: str, queue: Queue, packets: Counted | None, launches: Launched) -> None:
    """Count one that is like no other."""
    if packets is None: self.whole = False
    else: self._add(Alike(vendor, str(queue), packets, launches, 1))

  def rows(self) -> list[list[Any]] | None:
    """[queue, submissions, packets by kind, launches by kernel], in the order of their first submissions."""
    self._fold()
    if not self.whole: return None
    return [[name, q.submissions, dict(q.packets), dict(q.kernels)] for name, q in self._queues.items()]

  def _fold(self) -> None:
    alike, self._alike = self._alike, {}
    for one in alike.values(): self._add(one)

  def _add(self, one: Alike) -> None:
    to = self._queues.setdefault(one.queue, QueueTally())
    to.submissions += one.times
    for name, count in one.packets.items(): to.packets[name] += count * one.times
    for entry, _ in one.launches:
      kernel = self._kernels.get((one.vendor, entry))
      if kernel is None: self.whole = False  # its name is another one, by what lies there
      else: to.kernels[f"kernel {kernel}"] += one.times
