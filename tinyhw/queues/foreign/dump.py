"""What a dump of another program holds. Readers fill a `Dump`; everything behind them reads it."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

UNKNOWN: Final = -1
LONGEST: Final = 4096  # letters of a line that is looked at: no form has longer ones, and patterns take their time


@dataclass
class Ring:
  """A ring, or a part of one, or an indirect buffer.

  `kind` is one of "pm4", "sdma", "aql", or empty where the ring's packets are of no table that we have. A word that
  the file leaves out is None. `first` is the index of words[0]; `size` the dwords of the whole ring, 0 where this is
  none. Pointers are indices in the ring; UNKNOWN where the file does not say.
  """
  name: str
  kind: str
  words: list[int | None]
  first: int = 0
  size: int = 0
  read: int = UNKNOWN
  write: int = UNKNOWN
  driver_write: int = UNKNOWN
  address: int = UNKNOWN
  line: int = 0

  @property
  def whole(self) -> bool:
    """Whether all of the ring is here, with pointers that lie in it."""
    return bool(self.size) and len(self.words) == self.size and 0 <= self.read < self.size > self.write >= 0

  @property
  def pending(self) -> int:
    """Dwords between the read and the write pointer; UNKNOWN where the file does not say."""
    if UNKNOWN in (self.read, self.write): return UNKNOWN
    if self.size: return (self.write - self.read) % self.size
    return self.write - self.read if self.write >= self.read else UNKNOWN  # it wraps nobody knows where

  def behind_read(self, index: int) -> int:
    """Dwords from the read pointer to an index; UNKNOWN before it, in a part of a ring."""
    if self.size: return (index - self.read) % self.size
    return max(index - self.read, UNKNOWN)


@dataclass
class DumpedRegisters:
  """Registers of one place, by the names that the file has for them."""
  where: str
  values: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Fault:
  """A page fault that the kernel driver kept: whose hub, the page, the status register."""
  hub: str
  address: int
  status: int


@dataclass
class Table:
  """Rows of a debugger's listing, by its own columns."""
  name: str
  rows: list[dict[str, str | int]] = field(default_factory=list)


@dataclass
class Dump:
  """What a file holds. `facts` are its "name: value" lines, `versions` those of hardware blocks, `rest` lines that
  are neither and that nothing else here was made of."""
  form: str
  facts: list[tuple[str, str]] = field(default_factory=list)
  versions: dict[str, tuple[int, ...]] = field(default_factory=dict)
  timed_out: str = ""
  faults: list[Fault] = field(default_factory=list)
  registers: list[DumpedRegisters] = field(default_factory=list)
  rings: list[Ring] = field(default_factory=list)
  tables: list[Table] = field(default_factory=list)
  rest: list[str] = field(default_factory=list)


# Rings of amdgpu by the beginnings of their names (`sprintf(ring->name, ...)` in gfx_v11_0.c, sdma_v6_0.c,
# amdgpu_gfx.c, amdgpu_mes.c). MES's own queue, and those of video and display, have packets that no table here has.
_KINDS: Final = (("gfx", "pm4"), ("comp", "pm4"), ("kiq", "pm4"), ("mes_kiq", "pm4"), ("sdma", "sdma"))


def kind_of(ring: str) -> str:
  """What packets a ring of amdgpu has, by its name; empty where no table here has them."""
  return next((kind for start, kind in _KINDS if ring.startswith(start)), "")
