"""What reports ask of a vendor: its words, units of instructions, what branches do, what fits on a chip."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw.emulator.observe import Access, Copy
  from tinyhw.emulator.simt import Cohort, Group


@dataclass(frozen=True)
class Words:
  """How a vendor calls things. `units` has the units in the order in which they are shown, each with its colour's name,
  `scalar` those that no lane takes part in; `sector` and `line` are the bytes that caches move and hold. `sinks` says
  in words where a `Follower` sees values arrive."""
  wave: str
  group: str
  item: str
  shared: str
  scratch: str
  short: str  # shared memory in a few letters
  sector: int
  line: int
  units: Mapping[str, str] = field(default_factory=dict)
  scalar: frozenset[str] = frozenset()
  sinks: Mapping[str, str] = field(default_factory=dict)

  def waves(self, count: int) -> str:
    """"2 waves"."""
    return f"{count:,} {self.wave}{'s' if count != 1 else ''}"


@dataclass(frozen=True)
class Facts:
  """What is known of a launch beside what it executed: the generation, lanes of a wave, registers by name, bytes of
  shared memory of a workgroup and of a lane's own memory, how much of it a chip holds at once."""
  arch: str
  lanes: int
  registers: Mapping[str, int]
  lds: int
  scratch: int
  occupancy: str


@dataclass
class Reached:
  """Values of approximate instructions that arrived at `sink` in the instruction at `pc`; `waves` counts executions by
  waves, `origins` the PCs of the approximate instructions."""
  sink: str
  pc: int
  waves: int
  origins: tuple[int, ...]


class Follower(ABC):
  """Follows the results of instructions that are not exact; a recorder calls it."""

  @abstractmethod
  def cohort(self, cohort: Cohort) -> None:
    """Workgroups start: their registers are clean."""

  @abstractmethod
  def before(self, group: Group, pc: int, i: Any) -> None:
    """What the instruction reads, and where that arrives."""

  @abstractmethod
  def access(self, group: Group, pc: int, i: Any, access: Access) -> None:
    """What the instruction loads or stores."""

  def copied(self, group: Group, pc: int, i: Any, copy: Copy) -> None:
    """What a thread of it loads or stores in bulk."""
    return None

  @abstractmethod
  def after(self, group: Group, pc: int, i: Any) -> None:
    """What the instruction wrote carries what it read."""

  @abstractmethod
  def reached(self) -> list[Reached]:
    """Where values of approximate instructions arrived, by PC."""


class Vendor(ABC):
  """One launch, as far as a report needs to know whose machine code it is."""
  words: Words
  barriers: frozenset[str] = frozenset()  # mnemonics that count as one

  @abstractmethod
  def unit(self, i: Any) -> str:
    """The part of the chip that executes an instruction: one of `words.units`."""

  @abstractmethod
  def status(self, i: Any) -> str:
    """"exact", "approximate", "missing" or "no effect"."""

  @abstractmethod
  def branches(self, i: Any) -> bool:
    """Whether an instruction is a conditional branch."""

  @abstractmethod
  def taken(self, group: Group, i: Any) -> tuple[int, int]:
    """(waves of which a conditional branch takes lanes along, waves whose lanes it parts)."""

  @abstractmethod
  def facts(self) -> Facts:
    """See there."""

  def follower(self) -> Follower | None:
    """What follows values of its approximate instructions, if that is known."""
    return None

  def cohort(self, cohort: Cohort) -> None:
    """Workgroups begin."""
    return None

  def mask(self, group: Group, i: Any) -> Any:
    """The lanes that execute an instruction: None for all, or bools [1 or waves, lanes]."""
    return group.mask

  def comes(self, group: Group, i: Any) -> int:
    """How many of the group's waves execute the instruction now; the others wait and come to it again."""
    return group.size

  def segment(self, i: Any, access: Access) -> str:
    """The memory that an access counts for."""
    return access.segment
