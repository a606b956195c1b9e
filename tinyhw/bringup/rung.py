"""What a rung is, and a ladder of them.

    @LADDER.rung("queue.nop", needs=("queue.create",), why="The engine fetches what the host wrote.", seconds=5)
    def nop(b: AmdBench) -> str:
      b.compute.push(...)
      return "the read pointer moved by 8 words"   # the evidence

A rung returns its evidence, or raises Broken with what was found, what was wanted and where to look. Another error of
the tree, or an errno, is a broken rung too: its text is what was found.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeVar

from tinyhw.core.errors import InvalidArgument, LayoutError

B = TypeVar("B")
LOOK: Final = "the calls of the capture: tinyhw bringup DEV --report out.zip, then tinyhw decode --calls"


class RungEnd(Exception):
  """How a rung ends that does not return. It is a result, no error of the product: it never leaves the climb."""

  def headline(self) -> str: return str(self)


class Broken(RungEnd):
  """A rung does not hold. `found` is what the device did, `wanted` what it should have, `look_at` where to go on, and
  `packets` what was submitted, a packet a line."""

  def __init__(self, found: str, wanted: str, look_at: str = LOOK, packets: Sequence[str] = ()) -> None:
    self.found, self.wanted, self.look_at, self.packets = found, wanted, look_at, tuple(packets)
    super().__init__(found, wanted, look_at, packets)

  def __str__(self) -> str: return f"{self.found}; wanted: {self.wanted}"


class Absent(RungEnd):
  """What a rung is about is not there, which is no mistake: a second card, a counter, a tool. `message` says it."""

  def __init__(self, message: str) -> None:
    self.message = message
    super().__init__(message)


@dataclass(frozen=True)
class Rung(Generic[B]):
  """One step. `alone` is for one that takes the device away from its process: it gets a process of its own."""
  name: str
  needs: tuple[str, ...]
  why: str
  seconds: float
  run: Callable[[B], str] = field(repr=False)
  alone: bool = False

  @property
  def branch(self) -> str: return self.name.partition(".")[0]


class Ladder(Generic[B]):
  """The rungs of a vendor, in the order of their declaration: each stands on ones that were declared before it."""

  def __init__(self, vendor: str) -> None:
    self.vendor = vendor
    self._rungs: dict[str, Rung[B]] = {}

  def rung(self, name: str, *, needs: Collection[str] = (), why: str, seconds: float = 5.0,
           alone: bool = False) -> Callable[[Callable[[B], str]], Callable[[B], str]]:
    """Declare a rung. Raises LayoutError for a name that is taken, or a need that is not declared yet."""
    def declare(function: Callable[[B], str]) -> Callable[[B], str]:
      if name in self._rungs: raise LayoutError(f"rung {name} is declared twice", where=self.vendor)
      if missing := [n for n in needs if n not in self._rungs]:
        raise LayoutError(f"rung {name} needs {', '.join(missing)}, which is not declared before it", where=self.vendor)
      self._rungs[name] = Rung(name, tuple(needs), why, seconds, function, alone)
      return function
    return declare

  def __iter__(self) -> Iterator[Rung[B]]: return iter(self._rungs.values())
  def __len__(self) -> int: return len(self._rungs)

  def __getitem__(self, name: str) -> Rung[B]:
    """The rung. Raises InvalidArgument, which names those like it."""
    found = self._rungs.get(name)
    if found is None:
      close = get_close_matches(name, self._rungs, 3, 0.4)
      raise InvalidArgument(f"no rung is called {name!r}", where=self.vendor,
                            hint=f"there are {', '.join(close)}" if close else "--list has their names")
    return found

  @property
  def branches(self) -> list[str]:
    """In the order of the ladder."""
    return list(dict.fromkeys(r.branch for r in self))

  def under(self, names: Collection[str]) -> set[str]:
    """These rungs, and all that they stand on."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
      name = waiting.pop()
      if name in found: continue
      found.add(name)
      waiting += self[name].needs
    return found

  def chosen(self, until: str | None = None, only: Collection[str] = ()) -> list[Rung[B]]:
    """In order: those up to a rung, or of branches (and rungs) with what these stand on. Raises InvalidArgument."""
    if until is not None: self[until]
    names = set(self._rungs)
    if only:
      for name in only:
        if name not in self.branches: self[name]
      names = self.under([r.name for r in self if r.name in only or r.branch in only])
    rows = []
    for rung in self:
      if rung.name in names: rows.append(rung)
      if rung.name == until: break
    return rows


def plain(value: Any) -> str:
  """A number as evidence shows it: small ones in decimal, others in hex."""
  return str(value) if not isinstance(value, int) or 0 <= value < 1024 else f"{value:#x}"
