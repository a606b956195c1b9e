"""What an engine does while the host engine goes on: copies and launches, each a job in turns.

A method that starts a job returns at once, as on the chip; only who waits for idle (WFI, WAIT_FOR_IDLE, a release that
says so) comes after its end. So what a driver takes for granted without waiting is tried: the seed decides.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyhw.core.errors import MachineFault

if TYPE_CHECKING:
  from tinyhw.core.timeout import Terms
  from tinyhw.emulator.schedule import Idle

Turns = Generator["Idle | None", None, None]


def at_once(do: Callable[[], None]) -> Turns:
  """A job of one turn."""
  do()
  return
  yield None


@dataclass(eq=False)
class Job:
  """Work of an engine in turns, and what it is in words. A job waits for those before it unless it is `beside` them.

  `idle` is set while nothing of it can go on until memory changes.
  """

  what: str
  turns: Turns
  beside: bool = False
  by: int | None = None  # the thread that queued it
  terms: Terms | None = None  # what that thread wants of a launch
  dispatch: bool = False
  idle: Idle | None = None
  explain: Callable[[MachineFault], None] | None = None  # says where in the program a fault is


class Jobs:
  """The jobs of one channel that have begun or wait for others of it."""

  def __init__(self) -> None:
    self.queue: list[Job] = []

  def __bool__(self) -> bool:
    return bool(self.queue)

  def add(self, job: Job) -> None:
    self.queue.append(job)

  def clear(self) -> None:
    for job in self.queue:
      job.turns.close()
    self.queue.clear()

  def movable(self) -> list[Job]:
    """Those that could have a turn now."""
    found = []
    for i, job in enumerate(self.queue):
      if i and not job.beside:
        break
      if job.idle is None or job.idle.changed():
        found.append(job)
    return found

  def standing(self) -> Job | None:
    """A job of which nothing can go on, if there is one."""
    return next((job for job in self.queue if job.idle is not None), None)
