"""Trace events on one clock: what happened on which queue, engine or call, and when."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Whose(Enum):
  """Whose clock a device's times are of. A mock's clock moves by what a card might take, and says nothing of one."""
  HOST = "host's clock"
  CARD = "card's clock"
  MOCK = "mock's clock"


class Clock:
  """Nanoseconds: the host's monotonic clock, or with `step_ns` a virtual one that moves so much at each reading."""

  def __init__(self, *, step_ns: int | None = None) -> None:
    self._step, self._virtual = step_ns, 0

  def now_ns(self) -> int:
    if self._step is None: return time.monotonic_ns()
    self._virtual += self._step
    return self._virtual

  def advance(self, ns: int) -> None:
    """Move a virtual clock forward, for timed waits that nothing else would end; the host's clock moves by itself."""
    self._virtual += ns

  @property
  def virtual(self) -> bool: return self._step is not None

  @property
  def whose(self) -> Whose:
    """A virtual one is a mock's."""
    return Whose.MOCK if self.virtual else Whose.HOST


@dataclass(frozen=True, slots=True)
class TraceEvent:
  """`source` is a queue, engine or call ("GPU0.PM4.0"), `kind` what it did ("packet", "dispatch", "ioctl", "fault")."""
  time_ns: int
  source: str
  kind: str
  name: str
  fields: dict[str, Any] = field(default_factory=dict)
  clock: Whose = Whose.HOST

  def __str__(self) -> str:
    shown = " ".join(f"{k}={v:#x}" if isinstance(v, int) and v > 9 else f"{k}={v}" for k, v in self.fields.items())
    when = f"{self.time_ns / 1e6:12.3f} ms ({self.clock.value})"
    return f"{when}  {self.source:<14} {self.kind:<9} {self.name} {shown}".rstrip()


class Trace:
  """Events in order. Whoever would build a costly event checks `enabled` first; `keep` bounds memory (oldest go): fewer
  where only errors are kept."""

  def __init__(self, clock: Clock, *, enabled: bool = False, keep: int | None = None) -> None:
    self.clock, self.enabled = clock, enabled
    self._keep = keep
    self._events: list[TraceEvent] = []
    self.dropped = 0

  @property
  def keep(self) -> int:
    """How many events stay."""
    return (100_000 if self.enabled else 1000) if self._keep is None else self._keep

  def add(self, source: str, kind: str, name: str, /, **fields: Any) -> None:
    """Record an event now, whether or not `enabled`: errors and refusals are always kept."""
    self._events.append(TraceEvent(self.clock.now_ns(), source, kind, name, fields, self.clock.whose))
    keep = self.keep
    if len(self._events) > keep + keep // 4:
      self.dropped += len(self._events) - keep
      del self._events[:-keep]

  def __iter__(self) -> Iterator[TraceEvent]: return iter(self._events)

  def __len__(self) -> int: return len(self._events)

  def where(self, predicate: Callable[[TraceEvent], bool]) -> list[TraceEvent]:
    return [e for e in self._events if predicate(e)]
