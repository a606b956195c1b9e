"""`tinyhw explore --faults each`: every call of the kernel driver, or of libcuda, fails once, and the program has to
say so and end."""
from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import click

from tinyhw.cli.served import Runs
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.schedule import Schedule
from tinyhw.core.written import save
from tinyhw.mock.injected import code
from tinyhw.queues.explore import Outcome, ordinal

VERDICTS: Final = ("went on", "one error", "raw", "hung", "not reached")
KEYS: Final = {"ioctl": "errno", "status": "status", "call": "result"}  # what says how a call of a kind fails
BAD: Final = frozenset({"raw", "hung"})


def verdict(outcome: Outcome) -> str:
  """How a program took a failed call."""
  if outcome.timed_out: return "hung"
  if not outcome.failure: return "went on" if outcome.struck else "not reached"
  return "one error" if outcome.handled or outcome.failure.startswith("exit status") else "raw"


def each(run: Runs, how: Mapping[str, Sequence[str]], as_json: bool) -> None:
  """Run it once to see which calls there are, then once for each call and way to fail: `how` has names of errnos,
  statuses of RM and CUresults, by key. The exit status is 1 where it hung, or ended without an error of its own."""
  for key, names in how.items():
    for name in names: code(key, name, "it", f"--{key}")
  none = run.folder / "none.toml"
  save(none, "")
  first = run(Schedule(), more={"MOCKGPU_FAULTS": str(none)})
  if first.failure: raise InvalidArgument(f"the program fails without a fault: {first.failure}", where="--faults each")
  counts: Counter[tuple[str, str]] = Counter()
  rows = []
  for kind, call in first.calls:
    counts[kind, call] += 1
    rows += [(kind, call, counts[kind, call], name) for name in how[KEYS[kind]]]
  with ThreadPoolExecutor(run.jobs) as pool:
    outcomes = list(pool.map(lambda row: _failed(run, *row), rows))
  found = [(*row[1:], verdict(o), o.failure) for row, o in zip(rows, outcomes, strict=True)]
  if as_json:
    names = "call", "nth", "answer", "verdict", "failure"
    click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in found]))
  else:
    totals = Counter(row[3] for row in found)
    click.echo(f"{len(first.calls)} calls, {len(found)} runs: " + ", ".join(
      f"{totals[v]} {v}" for v in VERDICTS if totals[v]))
    for call, nth, name, came, failure in found:
      if came in BAD: click.echo(f"  {came}: the {ordinal(nth)} {call} with {name}: {failure}")
  if any(row[3] in BAD for row in found): sys.exit(1)


def _failed(run: Runs, kind: str, call: str, nth: int, name: str) -> Outcome:
  path = run.folder / f"{kind}-{call}-{nth}-{name}.toml"
  save(path, f'[[fault]]\nkind = "{kind}"\nname = "{call}"\nnth = {nth}\n{KEYS[kind]} = "{name}"\n')
  return run(Schedule(), more={"MOCKGPU_FAULTS": str(path)})
