"""Contents of rings that come late: a fault that is declared (`mock.injected`).

The stores to a ring arrive behind the doorbell that tells of them, as from a write-combining buffer that nobody has
flushed. Until then the engine reads what lay there at the doorbell before. How many turns of the machine that takes is
drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
  from tinyhw.mock.running import Running

KIND: Final = "late ring"
_MOST: Final = 8  # turns
_DRAWN: Final = "contents of the ring come late"


class LateRing:
  """What an engine reads of one ring. `look` gives its bytes as memory has them."""

  def __init__(self, machine: Running, name: str, look: Callable[[], bytes]) -> None:
    self._machine, self._name, self._look = machine, name, look
    self._before = self._stale = b""
    self._until = 0

  def rung(self) -> None:
    """The doorbell has rung."""
    machine, now, draws = self._machine, self._look(), self._machine.draws
    if machine.injected.of(KIND, self._name) is not None:
      more = draws.number(self._name, _DRAWN, _MOST) if draws is not None else machine.rng.randrange(_MOST)
      self._stale, self._until = self._before or bytes(len(now)), machine.turns + 1 + more
      machine.trace.add(self._name, "late", f"the ring's contents come {1 + more} turns behind the doorbell")
    self._before = now

  def read(self, at: int, size: int) -> bytes | None:
    """Bytes that lay in the ring before; None where all has come."""
    return self._stale[at:at + size] if self._machine.turns <= self._until and self._stale else None


def of(machine: Running, name: str, look: Callable[[], bytes]) -> LateRing | None:
  """A ring's, where a fault is declared that it may have."""
  return LateRing(machine, name, look) if any(f.kind == KIND for f in machine.injected.faults) else None
