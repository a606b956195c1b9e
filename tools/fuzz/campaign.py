"""Random machine code for as long as wished: instructions against the witness, programs on both engines, any bytes.

    python -m tinyhw.tools.fuzz.campaign --seconds 3600
    python -m tinyhw.tools.fuzz.campaign --programs 10000000 --only bytes --results campaign.sqlite
    python -m tinyhw.tools.fuzz.campaign --only compiled --seed 73 --programs 1
    python -m tinyhw.tools.fuzz.campaign --scheduler tcp://HOST:8786 --batch 20 --results campaign.sqlite --keep-going
    make fuzz SECONDS=600

Every program has a number; one that failed is run again alone by its kind and number. Programs run in processes of
their own, so that a crash, a hang or a leak is seen and named. With --results nothing that was counted is lost: the
same command goes on where a run was stopped. It stops at the first thing that is wrong, unless --keep-going.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from tinyhw.core.errors import Error
from tinyhw.tools.campaign.run import arguments, command
from tinyhw.tools.campaign.task import Answer, Task
from tinyhw.tools.fuzz.drawn import KINDS

ROUND: Final = {"bytes": 1000, "compiled": 8, "instructions": 8, "programs": 4}  # programs of a kind in turn
WORK: Final = "tinyhw.tools.fuzz.campaign:work"


def work(number: int, parameters: Mapping[str, Any]) -> Answer:
  """The program of a number."""
  return Answer(KINDS[parameters["kind"]](number))


def plan(kinds: Sequence[str], first: int, programs: int, batch: int = 1, work: str = WORK
         ) -> Callable[[int], Task | None]:
  """The task of a number: the kinds take turns, and programs are numbered through."""
  sizes = [batch * ROUND.get(kind, 1) for kind in kinds]
  before = [0, *accumulate(sizes)]

  def task(number: int) -> Task | None:
    turn, k = divmod(number, len(kinds))
    done = turn * before[-1] + before[k]
    count = min(sizes[k], programs - done)
    return Task(number, kinds[k], work, first + done, count, {"kind": kinds[k]}) if count > 0 else None
  return task


def main() -> int:
  """Run, and say what came of it."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.campaign", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  arguments(parser)
  parser.add_argument("--programs", type=int, default=1 << 62, help="stop after this many")
  parser.add_argument("--seed", type=int, default=0, help="number of the first program")
  parser.add_argument("--only", default="", choices=("", *KINDS))
  parser.add_argument("--batch", type=int, default=1, help="times as many programs a task: of clusters")
  options = parser.parse_args()
  if min(options.jobs, options.programs, options.batch) < 1:
    parser.error("--jobs, --programs and --batch want 1 or more")
  kinds = [options.only] if options.only else list(KINDS)
  what = {"campaign": "fuzz", "kinds": kinds, "seed": options.seed, "programs": options.programs,
          "batch": options.batch}
  try: return command(plan(kinds, options.seed, options.programs, options.batch), what, options,
                      lambda kind, number: f"--only {kind} --seed {number} --programs 1")
  except Error as error: parser.error(str(error))


if __name__ == "__main__": sys.exit(main())
