"""What queues do right now, as far as a capture tells that may still grow: what was submitted, where each queue stands.

    board = Board(Reader("run.thq"))
    while True: board.update(); print(board.queues)

`update` goes on behind what was read, so that its cost is that of what is new.
"""
from __future__ import annotations

import fcntl
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.queues import listing
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import Reader
from tinyhw.queues.events import CLOCK, Note
from tinyhw.queues.happens import Happens
from tinyhw.queues.timeline import kind_of, name_of
from tinyhw.queues.world import Queue

NOTES: Final = 5  # of the last lines that are kept


@dataclass(eq=False)
class QueueRow:
  """A queue. `last` is the newest packet that was submitted, `waits` what it stands at; empty where it goes on."""
  name: str
  vendor: str
  submissions: int = 0
  packets: int = 0
  launches: int = 0
  copied: int = 0
  last: str = ""
  waits: str = ""
  ahead: int = 0
  closed: bool = False

  def row(self) -> dict[str, Any]:
    """As plain values."""
    return dict(vars(self))


@dataclass
class Board:
  """See the module. `kernels` counts launches by name, `memory` is bytes in use by vendor."""
  reader: Reader
  queues: dict[tuple[str, int], QueueRow] = field(default_factory=dict)
  kernels: Counter[str] = field(default_factory=Counter)
  memory: dict[str, int] = field(default_factory=dict)
  notes: list[str] = field(default_factory=list)
  events: int = 0
  at_ns: int = 0

  def __post_init__(self) -> None:
    self.capture = Capture(self.reader)
    self._happens = Happens(self.capture)

  def update(self) -> int:
    """Take what the file has by now; returns how many events were new."""
    before = self.events
    for step in self.capture.further(self.reader.grown()): self._feed(step)
    if self.events > before: self._stand()
    return self.events - before

  @property
  def ended(self) -> bool:
    """Whether nobody writes the capture any more."""
    with open(self.reader.path, "rb") as file:
      try: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
      except BlockingIOError: return False
    return True

  def row(self) -> dict[str, Any]:
    """All as plain values."""
    return {"at_ns": self.at_ns, "clock": CLOCK.value, "events": self.events,
            "queues": [r.row() for r in self.queues.values()], "kernels": dict(self.kernels.most_common()),
            "memory": self.memory, "notes": self.notes}

  def _feed(self, step: Step) -> None:
    self.events += 1
    self.at_ns = max(self.at_ns, step.event.at_ns)
    self._happens.feed(step)
    if isinstance(step.event, Note): self.notes = [*self.notes, f"{step.event.kind}: {step.event.text}"][-NOTES:]
    if step.follow is None or step.queue is None: return
    names = listing.Names(self.capture, step.event.vendor, step.world)
    row = self._of(step.event.vendor, step.queue)
    row.submissions += 1
    row.packets += len(step.follow.items)
    row.launches += len(step.follow.launches)
    for launch in step.follow.launches:
      self.kernels[(names.at(launch.entry) or f"code at {launch.entry:#x}").removeprefix("kernel ")] += 1
    for item in step.follow.items:
      kind = kind_of(item)
      if kind == "copy": row.copied += max(e.size for e in item.effects)
    if step.follow.items: row.last = name_of(step.follow.items[-1], kind_of(step.follow.items[-1]), names)

  def _of(self, vendor: str, queue: Queue) -> QueueRow:
    return self.queues.setdefault((vendor, queue.key), QueueRow(str(queue), vendor))

  def _stand(self) -> None:
    for runner in self._happens.runners.values():
      row = self._of(runner.vendor, runner.queue)
      names = listing.Names(self.capture, runner.vendor, self.capture.worlds.get(runner.vendor))
      row.ahead, row.closed, row.waits = len(runner.ahead), runner.queue.closed, ""
      if runner.waits is not None and runner.ahead:
        row.waits = name_of(runner.ahead[0].item, "wait", names).removeprefix("waits for ")
    for vendor, world in self.capture.worlds.items(): self.memory[vendor] = world.used


def exists(path: str) -> bool:
  """Whether a capture has begun."""
  return os.path.isfile(path) and os.path.getsize(path) > 0
