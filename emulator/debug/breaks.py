"""What makes a run stand: breakpoints on places, mnemonics and memory, watches on values, conditions on waves."""
from __future__ import annotations

import fnmatch
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug.expression import Expression
from tinyhw.emulator.debug.wave import Wave

if TYPE_CHECKING:
  from tinyhw.emulator.debug.code import Code
  from tinyhw.emulator.observe import Access
  from tinyhw.emulator.simt import Group

KINDS: Final = {"r": ("load", "atomic"), "w": ("store", "atomic"), "rw": ("load", "store", "atomic")}


@dataclass(eq=False)
class Break(ABC):
  """Base: a number, and who it counts for.

  It counts for waves for which `condition` holds, of wave number `wave` and workgroup number `workgroup` where they are
  given, with lane `lane` active; the first `ignore` times it only counts.
  """
  number: int
  condition: Expression | None = None
  wave: int | None = None
  workgroup: int | None = None
  lane: int | None = None
  ignore: int = 0
  temporary: bool = False
  enabled: bool = True
  hits: int = 0
  names: tuple[str, str] = ("wave", "workgroup")  # as the vendor calls them

  @property
  @abstractmethod
  def what(self) -> str:
    """What it is, in a few words."""

  @property
  def limits(self) -> str:
    """Its conditions, in words."""
    numbers = (self.names[0], self.wave), (self.names[1], self.workgroup), ("lane", self.lane)
    parts = [f"{n} {v}" for n, v in numbers if v is not None]
    if self.condition is not None: parts.append(f"if {self.condition.text}")
    if self.ignore: parts.append(f"ignore {self.ignore}")
    return " ".join(parts)

  def __str__(self) -> str: return f"{self.what} {self.limits}".rstrip()

  def counts(self, wave: Wave, code: Code) -> bool:
    """Whether it counts for a wave."""
    if self.wave is not None and wave.number != self.wave: return False
    if self.workgroup is not None and wave.number // wave.engine.waves_a_group != self.workgroup: return False
    if self.lane is not None and not wave.exec >> self.lane & 1: return False
    return self.condition is None or self.condition.true(wave, code, self.lane)

  def hit(self) -> bool:
    """Count a hit; whether the run stands for it."""
    self.hits += 1
    if self.hits <= self.ignore: return False
    if self.temporary: self.enabled = False
    return True


@dataclass(eq=False)
class PlaceBreak(Break):
  """The run stands before the instructions at `addresses`, of a line there may be several; `place` is how a person
  calls it."""
  addresses: tuple[int, ...] = ()
  place: str = ""

  @property
  def what(self) -> str: return f"at {self.place}"


@dataclass(eq=False)
class MnemonicBreak(Break):
  """The run stands before an instruction whose mnemonic fits the pattern ("v_exp_*")."""
  pattern: str = ""

  @property
  def what(self) -> str: return f"on {self.pattern}"

  def fits(self, mnemonic: str) -> bool:
    """Whether an instruction is one of those; a dual instruction is each of its halves."""
    return any(fnmatch.fnmatchcase(m.strip(), self.pattern) for m in (mnemonic, *mnemonic.split("::")))


@dataclass(eq=False)
class MemoryBreak(Break):
  """The run stands after an instruction that touched [start, start + size) of a segment; `access` is r, w or rw."""
  segment: str = "global"
  start: int = 0
  size: int = 4
  access: str = "rw"

  def __post_init__(self) -> None:
    if self.access not in KINDS: raise InvalidArgument(f"{self.access!r} is no access", hint="r, w or rw")
    if self.size < 1: raise InvalidArgument(f"a range of {self.size} bytes")
    if not 0 <= self.start <= self.start + self.size <= 1 << 64:
      raise InvalidArgument(f"{self.start:#x} is no 64-bit address")

  @property
  def what(self) -> str:
    name = "memory" if self.segment != "lds" else "lds" if self.names[0] == "wave" else "shared"
    return f"{name} {self.start:#x}..{self.start + self.size - 1:#x} {self.access}"

  def touched(self, group: Group, access: Access) -> tuple[int, int, int] | None:
    """(row of the wave, lane, address) of the first access of a group inside the range, or None."""
    if access.kind not in KINDS[self.access]: return None
    segment = "global" if access.segment == "scalar" else access.segment
    if segment != self.segment: return None
    at: Any = access.addresses
    last = self.start + self.size - 1
    inside = access.active & (at <= np.uint64(last)) & (at + np.uint64(access.width - 1) >= np.uint64(self.start))
    if not inside.any(): return None
    row, lane = (int(x) for x in np.argwhere(inside)[0])
    return row, lane, int(at[row, lane])


@dataclass(eq=False)
class Watch(Break):
  """The run stands after an instruction that changed the value of an expression for one wave."""
  expression: Expression = field(default_factory=lambda: Expression("0"))
  of: int = 0  # the wave
  old: Any = None

  @property
  def what(self) -> str: return f"watch {self.expression.text} of {self.names[0]} {self.of}"

  def changed(self, wave: Wave, code: Code) -> str | None:
    """"1 -> 2" when the value is another one than before, else None."""
    new = self.expression.value(wave, code)
    old, self.old = self.old, new
    if old is None or np.array_equal(old, new, equal_nan=isinstance(new, float)): return None
    if not isinstance(new, np.ndarray): return f"{show(old)} -> {show(new)}"
    lanes = np.flatnonzero(np.asarray(old) != new)
    if not lanes.size: return None  # a NaN that stayed
    k = int(lanes[0])
    more = f", and {lanes.size - 1} more lanes" if lanes.size > 1 else ""
    return f"lane {k}: {show(np.asarray(old)[k].item())} -> {show(new[k].item())}{more}"


def show(value: Any) -> str:
  """A number for a person: integers in hex where that is shorter to read."""
  if isinstance(value, bool | np.bool_): return str(bool(value))
  if isinstance(value, float): return repr(value)
  return str(value) if -1024 < value < 1024 else f"{value:#x}" if value >= 0 else str(value)
