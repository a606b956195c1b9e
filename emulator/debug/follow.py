"""What the vendors' followers of approximate results share: origins, the memories that hold them, where they arrived.

A value carries a set of origins: the approximate instructions (by PC) that it was computed from, as bits of a u64; past
63 origins the rest share one bit. The set of a result is the union of its sources'. What a value decides by control
flow alone does not mark what is computed afterwards: it is reported where it decides. So the sets tell what may depend
on an approximate result, not what differs.
"""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.emulator.debug.parts import Follower, Reached

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Cohort

Bits = npt.NDArray[np.uint64]
SHARED: Final = 63  # the bit of all origins past the first 63
NONE: Final = np.uint64(0)
_PAGE: Final = 10  # dwords of a page, as a power of two


class Cells:
  """The origins of a memory's dwords. Only pages that have any are kept: {page: [1024 dwords]}."""

  def __init__(self) -> None: self.pages: dict[int, Bits] = {}

  def read(self, at: Any, on: Any) -> Bits | None:
    """Of dwords by number, where `on`; None where there are none."""
    if not self.pages: return None
    out = np.zeros(at.shape, np.uint64)
    pages = at >> _PAGE
    for page in np.unique(pages[on]).tolist():
      if page not in self.pages: continue
      here = on & (pages == page)
      out[here] = self.pages[page][at[here] & (1 << _PAGE) - 1]
    return out if out.any() else None

  def write(self, at: Any, on: Any, bits: Bits | None, keep: bool = False) -> None:
    """Dwords take over origins (None: none), which are [.., dwords or 1]; with `keep` beside those that they have."""
    if bits is None and not self.pages: return
    given = np.zeros(at.shape, np.uint64) if bits is None else np.broadcast_to(bits, at.shape)
    pages = at >> _PAGE
    for page in np.unique(pages[on]).tolist():
      here = on & (pages == page)
      if page not in self.pages:
        if not given[here].any(): continue
        self.pages[page] = np.zeros(1 << _PAGE, np.uint64)
      kept, place = self.pages[page], at[here] & (1 << _PAGE) - 1
      if keep: np.bitwise_or.at(kept, place, given[here])
      else: kept[place] = given[here]


class Tracker(Follower):
  """The sets of one dispatch; a recorder calls it. It costs nothing to speak of until something approximate runs."""

  def __init__(self) -> None:
    self.origins: dict[int, int] = {}  # PC -> bit
    self.executed: Counter[int] = Counter()  # PC of an approximate instruction -> waves
    self.memory = Cells()
    self.first: dict[Cohort, int] = {}
    self.counts: dict[Cohort, int] = {}
    self._lds: dict[Cohort, Cells] = {}
    self._reached: dict[tuple[str, int], list[int]] = {}  # (sink, PC) -> [waves, bits]

  def cohort(self, cohort: Cohort) -> None:
    """Workgroups start: their registers are clean."""
    group = cohort.runnable[0]
    for old in [c for c in self.first if not c.left and c is not cohort]: self.forget(old)
    self.first[cohort], self.counts[cohort] = int(group.waves.min()), group.size
    self._lds[cohort] = Cells()

  def forget(self, cohort: Cohort) -> None:
    """It has ended."""
    kept: tuple[dict[Cohort, Any], ...] = (self.first, self.counts, self._lds)
    for by_cohort in kept: by_cohort.pop(cohort, None)

  def lds(self, cohort: Cohort) -> Cells: return self._lds[cohort]

  def bit(self, pc: int) -> Any:
    """That of an approximate instruction."""
    return np.uint64(1 << min(self.origins.setdefault(pc, len(self.origins)), SHARED))

  def arrived(self, sink: str, pc: int, bits: Bits | None, lanes: Any = None) -> None:
    """Values with these origins, [waves, lanes or 1], arrived in those lanes (None: all)."""
    if bits is None: return
    if lanes is not None: bits = np.where(lanes, bits, NONE)
    waves = int(bits.any(axis=1).sum())
    if not waves: return
    kept = self._reached.setdefault((sink, pc), [0, 0])
    kept[0] += waves
    kept[1] |= int(np.bitwise_or.reduce(bits, axis=None))

  def reached(self) -> list[Reached]:
    """Where values of approximate instructions arrived, by PC."""
    bits = {bit: pc for pc, bit in self.origins.items() if bit < SHARED}
    shared = tuple(pc for pc, bit in self.origins.items() if bit >= SHARED)
    out = []
    for (sink, pc), (waves, mask) in sorted(self._reached.items(), key=lambda r: (r[0][1], r[0][0])):
      origins = tuple(bits[k] for k in range(SHARED) if mask >> k & 1) + (shared if mask >> SHARED & 1 else ())
      out.append(Reached(sink, pc, waves, origins))
    return out


def union(parts: Any) -> Bits | None:
  """Of sets that can be broadcast together; None where all are None."""
  out: Bits | None = None
  for part in parts:
    if part is not None: out = part if out is None else out | part
  return out
