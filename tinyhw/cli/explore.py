"""`tinyhw explore`: run a program under many orders of its mock GPUs' queues, and make one that fails short."""
from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from tinyhw.cli import faulted
from tinyhw.cli.record import name_cards
from tinyhw.cli.served import Runs, ServedProgram
from tinyhw.core.schedule import Schedule
from tinyhw.core.written import save
from tinyhw.queues.explore import (
  WAYS,
  Found,
  Outcome,
  Search,
  again,
  explore,
  sentences,
  shrink,
)

FIXED: Final = ("MOCKGPU", "DEV", "MOCKGPU_MEMORY", "EMU", "MOCKGPU_SEED", "MOCKGPU_FAULTS")  # what a replay needs
SHOWN: Final = 30  # lines of what a run printed


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--runs", type=click.IntRange(1), default=1000, show_default=True, help="Schedules to run at most.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True,
              help="How long to look at most.")
@click.option("--jobs", type=click.IntRange(1), default=lambda: min(os.cpu_count() or 1, 8),
              show_default="the processors, 8 at most", help="Runs at once.")
@click.option("--strategy", type=click.Choice(WAYS), default="mixed", show_default=True,
              help="How schedules are chosen: few departures from known runs, priorities with change points (PCT), any "
              "order, or these in turns.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed tries others.")
@click.option("--mockgpu", metavar="CARDS", help="Mock cards, as MOCKGPU has them (gfx1100, sm_90); DEV is their "
              "vendor's driver where it is not set.")
@click.option("--memory", type=click.Choice(["strong", "weak"]), help="weak: caches keep stale lines (AMD's cards).")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=20.0, show_default=True,
              help="Seconds that one run may take.")
@click.option("--all", "all_failures", is_flag=True, help="Go on after a failure, and report each kind once.")
@click.option("--replays", type=click.IntRange(1), default=10, show_default=True,
              help="How often the shortened schedule is run again.")
@click.option("--faults", metavar="FILE", help="Faults that each run has (docs/explore.md), as MOCKGPU_FAULTS; the "
              "word each fails every call of the kernel driver once instead of looking for schedules.")
@click.option("--errno", "errnos", default="ENOMEM,EIO", show_default=True, metavar="NAMES",
              help="With --faults each: how calls of the kernel driver fail.")
@click.option("--status", "statuses", default="NV_ERR_NO_MEMORY", show_default=True, metavar="NAMES",
              help="With --faults each: what NVIDIA's RM and UVM answer, a call each.")
@click.option("--result", "results", default="CUDA_ERROR_OUT_OF_MEMORY", show_default=True, metavar="NAMES",
              help="With --faults each: what libcuda's functions return (DEV=CUDA).")
@click.option("-o", "--output", default="explore.json", show_default=True, metavar="FILE",
              help="Where the shortened schedule goes; further ones are FILE-2 and on.")
@click.option("--json", "as_json", is_flag=True, help="Say it as JSON.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(runs: int, seconds: float, jobs: int, strategy: str, seed: int, mockgpu: str | None, memory: str | None,
            timeout: float, all_failures: bool, replays: int, faults: str | None, errnos: str, statuses: str,
            results: str, output: str, as_json: bool, program: tuple[str, ...]) -> None:
  """Run PROGRAM under many schedules of its mock GPUs: which queue goes on when, how late signals come, in how many
  pieces copies are made, when the host looks. One under which it fails (its exit status is not 0, or a test fails) is
  made short, told in words, and written to a file that replays it.

  Programs in Python, and pytest's tests, run in forks of a process that has imported what they need; others begin anew
  each time. The exit status is 1 where a schedule fails.

  \b
  Examples:
    tinyhw explore --mockgpu gfx1100 -- python program.py
    tinyhw explore --faults each --mockgpu sm_90 -- python program.py
    tinyhw explore --runs 5000 -- pytest test_queues.py::test_two_queues
    MOCKGPU_SCHEDULE=explore.json MOCKGPU=gfx1100 DEV=AMD python program.py
  """
  what = ServedProgram.of(program)
  what.check()
  environment = variables(mockgpu, memory)
  if faults == "each":
    how = {"errno": errnos.split(","), "status": statuses.split(","), "result": results.split(",")}
    with Runs(what, environment, jobs, timeout) as run: return faulted.each(run, how, as_json)
  if faults:
    Path(faults).stat()
    environment["MOCKGPU_FAULTS"] = str(Path(faults).resolve())
  show = not as_json and sys.stderr.isatty()

  def told(search: Search) -> None:
    if show: click.echo(f"\r{line(search)}", nl=False, err=True)
  with Runs(what, environment, jobs, timeout) as run:
    search = explore(run, runs=runs, seconds=seconds, jobs=jobs, way=strategy, seed=seed, all_failures=all_failures,
                     told=told)
    if show: click.echo("\r\033[K", nl=False, err=True)
    found = [] if search.interrupted else [shortened(run, number, outcome, replays)
                                           for number, outcome in search.failures.values()]
  files = [written(f, n, output, environment, what) for n, f in enumerate(found)]
  if as_json: click.echo(json.dumps(row(search, found, files)))
  else: report(search, found, files, what, environment)
  if search.failures: sys.exit(1)


def variables(mockgpu: str | None, memory: str | None) -> dict[str, str]:
  """The environment of the runs."""
  environment = dict(os.environ)
  for name in ("MOCKGPU_SCHEDULE", "MOCKGPU_SCHEDULE_OUT"): environment.pop(name, None)
  if mockgpu: name_cards(environment, mockgpu)
  if memory: environment["MOCKGPU_MEMORY"] = memory
  environment.setdefault("EMU", "ref")  # compiled code, which comes when it is ready, has other turns
  return environment


def shortened(run: Runs, number: int, outcome: Outcome, replays: int) -> Found:
  """A failure with its shortest schedule."""
  shrunk, count = shrink(run, outcome)
  alike = again(run, shrunk, replays)
  told = run(shrunk.schedule, explains=True)
  if told.failure == shrunk.failure and told.schedule.machines == shrunk.schedule.machines: shrunk = told
  return Found(outcome, number, shrunk, count, alike)


def written(found: Found, n: int, output: str, environment: Mapping[str, str], program: ServedProgram) -> str:
  """The file of a schedule, with what it is of."""
  path = Path(output) if n == 0 else Path(output).with_stem(f"{Path(output).stem}-{n + 1}")
  schedule = Schedule(found.shrunk.schedule.machines, program=program.words,
                      environment={k: environment[k] for k in FIXED if k in environment})
  save(path, schedule.text())
  return str(path)


def line(search: Search) -> str:
  """How far it is."""
  speed = search.runs / search.seconds if search.seconds else 0.0
  return (f"{search.runs:,} runs, {len(search.digests):,} distinct schedules, "
          f"{search.seconds:.1f} s ({speed:.0f} runs/s)")


def replayed(file: str, environment: Mapping[str, str], program: ServedProgram) -> str:
  """The command that replays a schedule."""
  given = [f"MOCKGPU_SCHEDULE={file}", *(f"{k}={environment[k]}" for k in FIXED if k in environment)]
  return " ".join([*map(shlex.quote, given), *map(shlex.quote, program.words)])


def report(search: Search, found: list[Found], files: list[str], program: ServedProgram,
           environment: Mapping[str, str]) -> None:
  """What came of it, for people."""
  end = "; interrupted" if search.interrupted else "; there are no others" if search.exhausted else ""
  click.echo(f"{line(search)}{end}")
  if not search.failures: click.echo("no schedule failed")
  if not any(o.turns for _, o in search.failures.values()) and search.digests <= {""}:
    click.echo("the program has made no mock GPU: set MOCKGPU and DEV, or name cards with --mockgpu")
  if search.interrupted:
    for failure, (number, _) in search.failures.items():
      click.echo(f"run {number} failed, and was not shortened: {failure}")
  for f, file in zip(found, files):
    click.echo(f"run {f.run} failed: {f.shrunk.failure}")
    short = len(f.shrunk.schedule)
    if short == 0: click.echo("  it fails in the default order too: no schedule is needed")
    else:
      click.echo(f"  {plural(len(f.first.schedule), 'departure')} from the default order, shortened to {short} "
                 f"in {f.shrinks} runs:")
      for text in sentences(f.shrunk): click.echo(f"    {text}")
    click.echo(f"  it fails again {f.replays[0]} of {f.replays[1]} times: {replayed(file, environment, program)}")
    if tail := f.shrunk.log.rstrip().splitlines()[-SHOWN:]: click.echo("  what it printed:")
    for text in tail: click.echo(f"    {text}")


def row(search: Search, found: list[Found], files: list[str]) -> dict[str, Any]:
  """The same as an object."""
  return {
    "runs": search.runs, "distinct": len(search.digests), "seconds": round(search.seconds, 3),
    "interrupted": search.interrupted,
    "failures": [{
      "failure": f.shrunk.failure, "run": f.run, "way": f.first.way, "departures": len(f.first.schedule),
      "shortened": [d.row() for _, d in f.shrunk.schedule.flat()], "words": list(sentences(f.shrunk)),
      "shrinks": f.shrinks, "replays": f.replays, "file": file, "printed": f.shrunk.log,
    } for f, file in zip(found, files)],
  }


def plural(count: int, word: str) -> str: return f"{count} {word}{'' if count == 1 else 's'}"
