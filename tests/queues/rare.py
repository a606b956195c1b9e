"""Races that few orders show, and how many schedules each way of `tinyhw explore` needs to find one.

`python -m tests.queues.rare` measures the table of docs/explore.md.
"""
from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable
from typing import Final

from tests.mock.races import RIGS, Race, race
from tinyhw.core.schedule import Schedule
from tinyhw.mock.draws import Draws, strategy
from tinyhw.queues.explore import WAYS, Outcome, explore

# `f=1` changes nothing that anybody reads. The outcomes are those that a program's writer expects: others are the bug.
RARE: Final = [
  race("a value that stands for one packet", "r", "0", "one queue's fourth packet meets the moment of the other's 17th",
       compute="f=1 " * 16 + "x=1 x=0 " + "f=1 " * 4, computeb="f=1 " * 3 + "r=x"),
  race("two values, each for one packet", "rs", "00 01 10", "two moments have to be met, one behind the other",
       compute="f=1 " * 6 + "x=1 x=0 " + "f=1 " * 6 + "y=1 y=0", computeb="f=1 r=x f=1 s=y"),
  race("a token that is handed round", "z", "0", "a third queue comes between two that hand it over",
       compute="x=1 " + "f=1 " * 5 + "x==2 y=1 y=0", computeb="x==1 " + "f=1 " * 5 + "x=2", computec="f=1 z=y"),
]
FEW: Final = 1000  # runs of a search that finds nothing


def runs(kind: str, planted: Race) -> Callable[[Schedule], Outcome]:
  """Runs a race by a schedule, on a machine of its own."""
  def run(schedule: Schedule) -> Outcome:
    draws = Draws(schedule.of_machine(0), strategy(schedule.rest))
    rig = RIGS[kind](0, draws)
    try: found = rig.outcome(planted)
    finally: rig.close()
    wrong = "" if found in planted.outcomes else f"{planted.shows} is {found}"
    return Outcome(Schedule((tuple(draws.departures()),)), wrong, draws.digest(), sum(draws.turns.values()),
                   (tuple(draws.log),))
  return run


def needed(kind: str, planted: Race, way: str, seeds: range) -> list[int]:
  """After how many schedules it was found, a number a seed; FEW where it was not."""
  run = runs(kind, planted)
  found = [explore(run, runs=FEW, seconds=600, way=way, seed=seed) for seed in seeds]
  return [s.runs if s.failures else FEW for s in found]


if __name__ == "__main__":
  seeds = range(int(re.sub(r"\D", "", "".join(sys.argv[1:])) or 10))
  print(f"| race | {' | '.join(WAYS)} |\n|---|{'---:|' * len(WAYS)}")
  for planted in RARE:
    rows = [needed("AMD", planted, way, seeds) for way in WAYS]
    print(f"| {planted.name} | " + " | ".join(
      f"{statistics.median(r):.0f}" + (f" ({r.count(FEW)} of {len(r)} not)" if FEW in r else "") for r in rows) + " |",
      flush=True)
