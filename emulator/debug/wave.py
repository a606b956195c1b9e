"""One wave as a person sees it, as far as vendors agree: where it is, which lanes are active, its registers by name."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import InvalidArgument

if TYPE_CHECKING:
  from tinyhw.core.source import Variable
  from tinyhw.emulator.debug.engine import Engine
  from tinyhw.emulator.simt import Cohort, Group

TYPES: Final = {"u32": np.uint32, "i32": np.int32, "f32": np.float32, "u16": np.uint16, "i16": np.int16,
                "f16": np.float16, "u64": np.uint64, "i64": np.int64, "f64": np.float64, "u8": np.uint8, "i8": np.int8}


@dataclass(frozen=True)
class WaveInfo:
  """A line about a wave: `state` is "running", "at barrier", "ended" or "not started"; `active` counts lanes."""
  wave: int
  workgroup: tuple[int, int, int]
  state: str
  pc: int | None
  active: int
  lanes: int
  instructions: int


class Wave(ABC):
  """A wave of a dispatch that stands. Raises InvalidArgument for one that has ended or not started."""

  examples: ClassVar[str]  # names of registers, for errors
  by_lane: ClassVar[bool] = False  # whether a condition with a lane is asked of that lane alone

  def __init__(self, engine: Engine, number: int) -> None:
    self.engine, self.number = engine, number

  @property
  def workgroup(self) -> tuple[int, int, int]:
    """The workgroup's place in the grid."""
    x, y, _ = self.engine.dispatch.grid
    n = self.number // self.engine.waves_a_group
    return n % x, n // x % y, n // (x * y)

  @property
  def state(self) -> str:
    """"running", "at barrier", "ended" or "not started"."""
    found = self.engine.find(self.number)
    if found is not None: return "running" if found[3] else "at barrier"
    return "ended" if self.number < self.engine.started else "not started"

  def info(self) -> WaveInfo:
    """What a list of waves shows."""
    found, lanes = self.engine.find(self.number), self.engine.lanes
    if found is None: return WaveInfo(self.number, self.workgroup, self.state, None, 0, lanes, 0)
    group = found[1]
    return WaveInfo(self.number, self.workgroup, "running" if found[3] else "at barrier", group.pc,
                    self.exec.bit_count(), lanes, group.count)

  def _place(self) -> tuple[Cohort, Group, int]:
    found = self.engine.find(self.number)
    if found is None:
      if not 0 <= self.number < self.engine.wave_count:
        raise InvalidArgument(f"no wave {self.number}", hint=f"there are waves 0 to {self.engine.wave_count - 1}")
      raise InvalidArgument(f"wave {self.number} has {self.state.replace('not started', 'not started yet')}",
                            hint="its registers are gone" if self.state == "ended" else "let the others go on first")
    return found[0], found[1], found[2]

  @property
  def pc(self) -> int: return self._place()[1].pc

  # ---- what the vendor knows

  @property
  @abstractmethod
  def exec(self) -> int:
    """The active lanes as bits."""

  @abstractmethod
  def active(self) -> npt.NDArray[np.bool_]:
    """The active lanes as bools [lanes]."""

  @abstractmethod
  def named(self, name: str) -> Any:
    """What a name in an expression means of what a wave has: a number, an array or an `expression.Register`; None for
    a name that is none of its."""

  @abstractmethod
  def values(self, name: str) -> Any:
    """A register by name: [1] of one that all lanes share, else [lanes]. Raises InvalidArgument for other names."""

  @abstractmethod
  def write(self, name: str, value: int, lane: int | None = None) -> None:
    """Set a register, of one lane or of all. Raises InvalidArgument for a bad name, lane or value."""

  @abstractmethod
  def lds(self) -> npt.NDArray[np.uint8]:
    """The memory that its workgroup shares, itself: writing to it writes that memory."""

  def value(self, variable: Variable) -> Any:
    """What a variable of the source holds: a number, or an array over the lanes."""
    raise InvalidArgument(variable.trouble or "its place is not known", where=variable.name)
