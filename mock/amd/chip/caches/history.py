"""Who wrote and who read each dword of memory last, and when, on a clock that counts accesses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tinyhw.mock.amd.chip.caches.lines import I64, SPAN, Physical

PAGE_SHIFT: Final = 12
DWORDS: Final = 1 << PAGE_SHIFT - 2
WHO_BITS: Final = 24  # of a stamp: the clock above, the number of an action below


class Agent(ABC):
  """Whoever accesses memory: a queue that executes packets, or a dispatch."""

  @abstractmethod
  def describe(self, detail: object) -> str:
    """The agent doing something, for people."""

  def kind(self, detail: object) -> object:
    """What is the same for all that are told of once."""
    return self.describe(detail)

  @property
  def running(self) -> bool:
    """Whether it is a dispatch that has not ended."""
    return False


@dataclass(frozen=True)
class Action:
  """An agent doing one thing: a packet, or the instruction at a PC."""

  agent: Agent
  detail: object

  def __str__(self) -> str:
    return self.agent.describe(self.detail)

  @property
  def kind(self) -> object:
    return self.agent.kind(self.detail)


class History:
  """Stamps of the last write and the last read of each dword; 0 where there was none."""

  def __init__(self, physical: Physical) -> None:
    self.now = 0
    self._physical = physical
    self._actions: list[Action] = []
    self._numbers: dict[tuple[int, object], int] = {}
    self._pages: dict[int, npt.NDArray[np.int32]] = {}  # by backing: the slot of each page, 0 for none
    self._used = 1
    self._stamps: I64 = np.zeros((64, 2, DWORDS), np.int64)

  def tick(self) -> int:
    self.now += 1
    return self.now

  def number(self, agent: Agent, detail: object) -> int:
    """The number of an action."""
    key = id(agent), detail
    found = self._numbers.get(key)
    if found is None:
      found = self._numbers[key] = len(self._actions)
      self._actions.append(Action(agent, detail))
    return found

  def action(self, stamp: int) -> Action:
    """Who made a stamp that is not 0."""
    return self._actions[stamp & (1 << WHO_BITS) - 1]

  @staticmethod
  def when(stamp: int) -> int:
    return stamp >> WHO_BITS

  def places(self, physical: I64, width: int) -> I64:
    """Where the stamps of the dwords of accesses are: [n, dwords]. Accesses cross no page."""
    top = physical >> SPAN
    pages = (physical & (1 << SPAN) - 1) >> PAGE_SHIFT
    slots = np.empty(len(physical), np.int64)
    kinds = [int(top[0])] if (top == top[0]).all() else np.unique(top).tolist()
    for kind in kinds:
      table = self._pages.get(kind)
      if table is None:
        table = self._pages[kind] = np.zeros((self._physical.size(kind) >> PAGE_SHIFT) + 1, np.int32)
      rows = slice(None) if len(kinds) == 1 else np.flatnonzero(top == kind)
      found = table[pages[rows]]
      if not found.all():
        self._add(table, np.unique(pages[rows][found == 0]))
        found = table[pages[rows]]
      slots[rows] = found
    dword = (physical & (1 << PAGE_SHIFT) - 1) >> 2
    count = max(1, width + 3 >> 2) if not (physical & 3).any() else (width + 6 >> 2)
    places: I64 = (slots * 2 * DWORDS + dword)[:, None] + np.arange(count)
    return places

  def _add(self, table: npt.NDArray[np.int32], pages: I64) -> None:
    """Make room for pages that were not seen yet."""
    end = self._used + len(pages)
    if end >= len(self._stamps):
      grown = np.zeros((max(2 * len(self._stamps), end + 1), 2, DWORDS), np.int64)
      grown[: self._used] = self._stamps[: self._used]
      self._stamps = grown
    table[pages] = np.arange(self._used, end)
    self._used = end

  def writers(self, places: I64) -> I64:
    """Stamps of the last writes."""
    return self._stamps.reshape(-1)[places]

  def readers(self, places: I64) -> I64:
    return self._stamps.reshape(-1)[places + DWORDS]

  def wrote(self, places: I64, action: int) -> None:
    self._stamps.reshape(-1)[places] = self.now << WHO_BITS | action

  def has_read(self, places: I64, action: int) -> None:
    self._stamps.reshape(-1)[places + DWORDS] = self.now << WHO_BITS | action

  def forget(self, start: int, size: int) -> None:
    """Memory is nobody's any more: whoever gets it next has nothing to do with who had it."""
    table = self._pages.get(start >> SPAN)
    if table is not None:
      first = (start & (1 << SPAN) - 1) >> PAGE_SHIFT
      slots = table[first : first + (size >> PAGE_SHIFT)]
      self._stamps[slots[slots > 0]] = 0
