"""The schedule that the environment asks of this process's mock machines, and what they drew.

`MOCKGPU_SCHEDULE` names a file that says what is drawn (`core.schedule`); `MOCKGPU_SCHEDULE_OUT` one that is written at
the process's end: the departures of each machine, which is the schedule that replays the run. Machines are counted in
the order in which they are made.
"""
from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tinyhw.core.ending import Step, at_end
from tinyhw.core.schedule import Draw, Rest, Schedule, read
from tinyhw.core.written import save
from tinyhw.mock.draws import Draws, strategy
from tinyhw.mock.injected import Injected
from tinyhw.mock.injected import read as read_faults

GIVEN: Final = "MOCKGPU_SCHEDULE"
OUT: Final = "MOCKGPU_SCHEDULE_OUT"
EXPLAINS: Final = "MOCKGPU_SCHEDULE_TEXT"  # has the file at OUT say what ran, for people


@dataclass
class Followed:
  """The draws of this process's machines so far."""
  schedule: Schedule
  source: str
  machines: list[Draws] = field(default_factory=list)

  def next(self) -> Draws:
    """Those of the next machine."""
    number = len(self.machines)
    rest = replace(self.schedule.rest, seed=self.schedule.rest.seed * 1009 + number)
    draws = Draws(self.schedule.of_machine(number), strategy(rest), explains=bool(os.environ.get(EXPLAINS)))
    self.machines.append(draws)
    return draws

  def row(self) -> dict[str, Any]:
    """What came of it, for the explorer."""
    out = replace(self.schedule, rest=Rest(), machines=tuple(tuple(d.departures()) for d in self.machines))
    return {
      "schedule": json.loads(out.text()),
      "digest": " ".join(d.digest() for d in self.machines), "turns": sum(sum(d.turns.values()) for d in self.machines),
      "draws": [[draw_row(draw, d.texts.get(n, "")) for n, draw in enumerate(d.log)] for d in self.machines],
      "calls": [i.calls for i in _injected], "struck": sum(len(i.happened) for i in _injected),
      "missed": [[d.row() for d in draws.missed.values()] for draws in self.machines],
    }

  def write(self, path: str) -> None:
    """Write what the variable asks for."""
    part = Path(f"{path}.{os.getpid()}")
    save(part, json.dumps(self.row()))
    part.replace(path)


def draw_row(draw: Draw, text: str) -> list[Any]:
  """A draw as JSON has it."""
  return [draw.at, draw.what, list(draw.of) if not isinstance(draw.of, int) else draw.of, draw.took, draw.default, text]


def draw_of(row: Sequence[Any]) -> Draw:
  """The draw of a row."""
  at, what, of, took, default, _ = row
  return Draw(at, what, of if isinstance(of, int) else tuple(of), took, default)


_injected: list[Injected] = []  # the faults of this process's machines
_followed: list[Followed] = []  # the one of this process


def begin() -> None:
  """Forget what was drawn: machines are counted anew."""
  _followed.clear()
  _injected.clear()


def draws() -> Draws | None:
  """What the next machine of this process goes by; None where its seed draws."""
  path, out = os.environ.get(GIVEN, ""), os.environ.get(OUT, "")
  if not path and not out: return None
  if not _followed or _followed[0].source != path:
    begin()
    _followed.append(Followed(read(path, GIVEN) if path else Schedule(), path))
    if out: at_end(Step.REPORTS, finish)
  return _followed[0].next()


def injected(path: str) -> Injected:
  """The faults that a file declares, for the next machine."""
  made = Injected(read_faults(path, "MOCKGPU_FAULTS"))
  _injected.append(made)
  return made


def finish() -> None:
  """Write what was drawn, where that is asked for."""
  if _followed and (out := os.environ.get(OUT)): _followed[0].write(out)


os.register_at_fork(after_in_child=begin)
