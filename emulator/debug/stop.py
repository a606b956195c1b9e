"""What a run that stands tells: why it stands, and which calls a wave is in."""
from __future__ import annotations

from dataclasses import dataclass

from tinyhw.core.errors import Error
from tinyhw.core.source import Spot
from tinyhw.emulator.debug.breaks import Break


@dataclass(frozen=True)
class Stop:
  """Why the run stands, in one line of `text`. `waves` stand together at `pc`, `wave` is the one looked at.

  `reason` is "start", "breakpoint", "memory", "lds", "watch", "check", "step", "barrier", "fault", "interrupted" or
  "end".
  """
  reason: str
  text: str
  wave: int | None = None
  waves: tuple[int, ...] = ()
  pc: int | None = None
  breakpoint: Break | None = None
  error: Error | None = None

  def __str__(self) -> str: return self.text


@dataclass(frozen=True)
class Frame:
  """A level of the calls that a wave is in: where it stands, in which function, on which line where that is known.

  `spot` of an inlined function says so; the frame behind it has the same PC.
  """
  pc: int
  where: str
  spot: Spot | None = None

  def __str__(self) -> str:
    text = f"{self.pc:#x} <{self.where}>"
    if self.spot is None: return text
    return f"{text} {self.spot.function} at {self.spot}{' (inlined)' if self.spot.inlined else ''}"
