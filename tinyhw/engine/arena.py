"""Memory that intermediate results share: those that are never alive at one time may lie in one place.

Steps of a schedule run in order on each device (hardware queues have one timeline), so a place may be given on as soon
as the last step that reads it is queued. A step's own results never lie where it still reads. Places are whole
allocations: the largest result says how large. `PLAN=0` in the environment gives every result memory of its own.

Only those results share memory that no tensor can ask for again, in a schedule and in what TinyJit
has recorded. A gradient that has not gone back yet asks for all below it.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tinyhw.core.environment import variable


class Life(NamedTuple):
  """A result of `nbytes` on a device, and the first and the last step that touch it."""
  device: str
  nbytes: int
  first: int
  last: int


class SharedPlace(NamedTuple):
  """Memory that results share."""
  device: str
  nbytes: int


@dataclass(eq=False)
class _Shared:
  place: SharedPlace
  times: list[tuple[int, int]] = field(default_factory=list)  # first and last steps, in order; none overlap

  def fits(self, life: Life) -> bool:
    """Whether the place is free at that time."""
    at = bisect_left(self.times, (life.first, -1))
    before = at == 0 or self.times[at - 1][1] < life.first
    return before and (at == len(self.times) or life.last < self.times[at][0])


def planning() -> bool:
  """Whether memory is shared."""
  return variable("PLAN", b"PLAN") != "0"


def lives(steps: Iterable[Sequence[int]], shared: Sequence[tuple[int, str, int]]) -> dict[int, Life]:
  """The lives of numbered memory. `steps` name what each step touches; `shared` are (number, device, bytes) of the
  results in question."""
  first: dict[int, int] = {}
  last: dict[int, int] = {}
  for at, touched in enumerate(steps):
    for number in touched:
      first.setdefault(number, at)
      last[number] = at
  return {n: Life(device, nbytes, first[n], last[n]) for n, device, nbytes in shared if n in first}


def places(wanted: dict[int, Life]) -> tuple[dict[int, int], list[SharedPlace]]:
  """(the place of each result by its number, the places). The largest results choose first, each the smallest place
  that is free while it lives."""
  shared: list[_Shared] = []
  found: dict[int, int] = {}
  for number, life in sorted(wanted.items(), key=lambda row: (-row[1].nbytes, row[1].first, row[0])):
    # Places come in falling size: the last that is free wastes the least.
    at = next((i for i in reversed(range(len(shared))) if shared[i].place.device == life.device
               and shared[i].fits(life)), len(shared))
    if at == len(shared): shared.append(_Shared(SharedPlace(life.device, life.nbytes)))
    times = shared[at].times
    times.insert(bisect_left(times, (life.first, life.last)), (life.first, life.last))
    found[number] = at
  return found, [s.place for s in shared]
