"""`tinyhw explore --faults each`: every call of the kernel driver fails once, and the program has to say so and end."""
from __future__ import annotations

import errno
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import click

from tinyhw.cli.served import Runs
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.schedule import Schedule
from tinyhw.queues.explore import Outcome, ordinal

VERDICTS: Final = ("went on", "one error", "raw", "hung", "not reached")
BAD: Final = frozenset({"raw", "hung"})


def verdict(outcome: Outcome) -> str:
  """How a program took a failed call."""
  if outcome.timed_out: return "hung"
  if not outcome.failure: return "went on" if outcome.struck else "not reached"
  return "one error" if outcome.handled or outcome.failure.startswith("exit status") else "raw"


def each(run: Runs, errnos: Sequence[str], as_json: bool) -> None:
  """Run it once to see which calls there are, then once for each call and errno. The exit status is 1 where it hung, or
  ended without an error of its own."""
  for name in errnos:
    if not hasattr(errno, name): raise InvalidArgument(f"no errno is called {name!r}", where="--errno")
  none = run.folder / "none.toml"
  none.write_text("")
  first = run(Schedule(), more={"MOCKGPU_FAULTS": str(none)})
  if first.failure: raise InvalidArgument(f"the program fails without a fault: {first.failure}", where="--faults each")
  counts: Counter[str] = Counter()
  rows = []
  for call in first.calls:
    counts[call] += 1
    rows += [(call, counts[call], name) for name in errnos]
  with ThreadPoolExecutor(run.jobs) as pool:
    outcomes = list(pool.map(lambda row: _failed(run, *row), rows))
  found = [(*row, verdict(o), o.failure) for row, o in zip(rows, outcomes, strict=True)]
  if as_json:
    names = "call", "nth", "errno", "verdict", "failure"
    click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in found]))
  else:
    totals = Counter(row[3] for row in found)
    click.echo(f"{len(first.calls)} calls, {len(found)} runs: " + ", ".join(
      f"{totals[v]} {v}" for v in VERDICTS if totals[v]))
    for call, nth, name, how, failure in found:
      if how in BAD: click.echo(f"  {how}: the {ordinal(nth)} {call} with {name}: {failure}")
  if any(row[3] in BAD for row in found): sys.exit(1)


def _failed(run: Runs, call: str, nth: int, name: str) -> Outcome:
  path = run.folder / f"{call}-{nth}-{name}.toml"
  path.write_text(f'[[fault]]\nkind = "ioctl"\nname = "{call}"\nnth = {nth}\nerrno = "{name}"\n')
  return run(Schedule(), more={"MOCKGPU_FAULTS": str(path)})
