"""What was made once for work that comes again, by what it is known by.

Each place that recognizes its work has a `Kept` of its own: packets and submissions of a queue, launches of a kernel,
schedules, programs, code in memory. Its laws (`tests/core/test_kept.py`):

- A key finds what was kept under it last. It costs what a dict's `get` costs, which it is.
- At most `limit` things are kept: what was kept first goes first. Keeping a thing again makes it the newest.
- A thing that is made of what may change says so by `stands`; `standing` finds no other. One that does not stand stays
  in its place: it may stand again (its code is put back, its run has ended), or another is kept there.
- Where making a thing raises, nothing is kept, and nothing that was kept goes.
- Threads may share one: two that want the same thing may both make it, and the later one stays. A fork's child goes on
  with what there was. Nothing here has to be closed: what is kept lets go of its own when it is gone.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Stands(Protocol):
  """What may be kept although what it was made of may change."""

  def stands(self) -> bool:
    """Whether all that it was made of is as it was. Raises what a new one's making would raise."""


S = TypeVar("S", bound=Stands)


class Kept(dict[K, V]):
  """See the module. Where `get` finds nothing, `made` or `keep` follow."""

  __slots__ = ("limit",)

  def __init__(self, limit: int) -> None:
    super().__init__()
    self.limit = limit

  def keep(self, key: K, value: V) -> V:
    """Keep a thing, as the newest; returns it."""
    self.pop(key, None)
    while len(self) >= self.limit:
      try: self.pop(next(iter(self)), None)
      except (StopIteration, RuntimeError): break  # another thread is at it
    self[key] = value
    return value

  def made(self, key: K, make: Callable[[], V]) -> V:
    """What is kept; else it is made now."""
    found = self.get(key)
    return found if found is not None else self.keep(key, make())

  def standing(self: Kept[K, S], key: K) -> S | None:
    """What is kept, where it stands."""
    found = self.get(key)
    return found if found is not None and found.stands() else None
