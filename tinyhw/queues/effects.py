"""What a packet does, in words that both vendors share: memory that it reads and writes, what it waits for and signals.

Doctor, linter, differ and timeline go by these and by nothing of a vendor's. An effect that depends on what is not
known (a register's value, a count in memory) says so by `size` 0.
"""
from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntFlag
from typing import Final, NamedTuple


class Does(Enum):
  """The kinds of effects."""
  READ = "reads"
  WRITE = "writes"
  STAMP = "stamps"         # the time to memory, which no two runs share
  ATOMIC = "changes"
  WAIT = "waits for"       # for a value in memory
  SIGNAL = "signals"       # a value to memory, that somebody may wait for
  LAUNCH = "launches"
  IDLE = "waits until idle"  # for what the same queue has begun
  ACQUIRE = "acquires"     # caches are invalidated: what others wrote is seen behind it
  RELEASE = "releases"     # caches are written back: what was written before is seen by others
  INTERRUPT = "interrupts"
  CALL = "goes to"         # other words, at an address


class Clock(Enum):
  """When an effect happens, relative to what its queue has begun before."""
  NOW = "at once"
  BEHIND = "behind what was begun"


class Caches(IntFlag):
  """Whose contents an acquire forgets (its `value`) and a release writes back."""
  DATA = 1      # of the cores that run kernels: GL0 and GL1, L1
  SCALAR = 2    # AMD's scalar cache, NVIDIA's constant cache
  CODE = 4
  SHARED = 8    # of the whole GPU: GL2


ALL_CACHES: Final = Caches.DATA | Caches.SCALAR | Caches.CODE | Caches.SHARED


class Effect(NamedTuple):
  """`address` and `size` are bytes of GPU memory. Of a wait and a signal `value` and `compare` (">=", "==", ...) say
  what is compared with or written, under `mask`, in `size` bytes. Of an acquire and a release `value` says which
  `Caches`; an acquire of a range has `address` and `size`."""
  does: Does
  address: int = 0
  size: int = 0
  value: int = 0
  compare: str = ""
  mask: int = (1 << 64) - 1
  clock: Clock = Clock.NOW

  @property
  def end(self) -> int: return self.address + self.size

  @property
  def always(self) -> bool:
    """Whether any value ends a wait."""
    return self.compare == "always" or self.compare == ">=" and not self.value & self.mask

  def met(self, seen: int) -> bool:
    """Whether a wait is over when memory holds this. Raises KeyError for an effect that is no wait."""
    return COMPARE[self.compare](seen & self.mask, self.value & self.mask, self.size)

  def __str__(self) -> str:
    verb: str = self.does.value
    if self.does is Does.WAIT: return f"waits for {self.address:#x} {self.compare} {self.value:#x}"
    if self.does is Does.SIGNAL: return f"signals {self.address:#x} {self.compare or '='} {self.value:#x}"
    if not self.address: return verb
    return f"{verb} {self.address:#x}" + (f"..{self.end:#x}" if self.size else "")


def _circular(seen: int, value: int, size: int) -> bool:
  """`seen` came after `value` or is it, in numbers that wrap."""
  bits = 8 * (size or 4)
  return (seen - value & (1 << bits) - 1) < 1 << bits - 1


COMPARE: Final[dict[str, Callable[[int, int, int], bool]]] = {
  "always": lambda seen, value, size: True, "<": lambda seen, value, size: seen < value,
  "<=": lambda seen, value, size: seen <= value, "==": lambda seen, value, size: seen == value,
  "!=": lambda seen, value, size: seen != value, ">=": lambda seen, value, size: seen >= value,
  ">": lambda seen, value, size: seen > value, "circular >=": _circular,
  "strict >=": lambda seen, value, size: _signed(seen, size) >= _signed(value, size),
  "&": lambda seen, value, size: bool(seen & value), "nor": lambda seen, value, size: bool(~(seen | value)
                                                                                           & (1 << 8 * size) - 1)}


def _signed(value: int, size: int) -> int:
  bits = 8 * (size or 4)
  value &= (1 << bits) - 1
  return value - (1 << bits) if value >> bits - 1 else value
