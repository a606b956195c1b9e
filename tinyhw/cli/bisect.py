"""`tinyhw bisect`: the first submission that shows a fault, and the smallest stream that still does."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from tinyhw.cli import complete
from tinyhw.cli.decode import captured
from tinyhw.cli.progress import counted
from tinyhw.cli.trials import MockBench, Script
from tinyhw.core.errors import InvalidArgument, MissingFile
from tinyhw.core.written import save
from tinyhw.queues import calls, listing
from tinyhw.queues.capture import Capture
from tinyhw.queues.doctor import examine
from tinyhw.queues.draft import saved
from tinyhw.queues.reproduce import written
from tinyhw.queues.shown import KINDS, Differs, Ends, Predicate, Trial, by_itself, predicate
from tinyhw.queues.shrink import SECONDS, TRIALS, First, Shrinker

_SCRIPT: Final = "script"


@click.command()
@click.argument("file")
@click.option("--until", metavar="WHAT", shell_complete=complete.until,
              help=f"What to look for: {', '.join(KINDS)} [what the capture shows by itself].")
@click.option("--script", metavar="COMMAND", help="Who says whether a capture shows it: the command gets its path; "
              "status 0 says yes, 125 that it cannot be told, above that ends the search, others no.")
@click.option("--first", "only_first", is_flag=True, help="Only the first submission at which it shows.")
@click.option("-o", "--output", metavar="NAME", help="Write NAME.thq, NAME.txt and NAME.py [FILE's name with .small].")
@click.option("--mockgpu", metavar="CARDS", help="Mock cards to run on [the capture's own].")
@click.option("--trials", default=TRIALS, show_default=True, type=click.IntRange(3), metavar="N",
              help="How many streams may be tried.")
@click.option("--seconds", default=SECONDS, show_default=True, type=click.FloatRange(0.001), metavar="S",
              help="How long the search may take.")
@click.option("--quiet", is_flag=True, help="No line that shows how far it is.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(file: str, until: str | None, script: str | None, only_first: bool, output: str | None,
            mockgpu: str | None, trials: int, seconds: float, quiet: bool, as_json: bool) -> None:
  """Find the smallest part of FILE, a capture of `tinyhw record`, that still shows what is wrong with it.

  Submissions, packets, calls, memory and fields are left out while it still shows, each time on a fresh mock machine.
  The result is a capture, a text for people, and a Python program that shows it again with tinyhw alone. Ctrl-C ends
  the search; what was found by then is written.

  \b
  Examples:
    tinyhw bisect hang.thq
    tinyhw bisect run.thq --until finding:race -o race
    tinyhw bisect run.thq --until left:0x7f0000001000:4 --first
    tinyhw bisect run.thq --script "python check.py"
  """
  if until is not None and script is not None:
    raise InvalidArgument("either a script says what shows, or --until does", where="--script")
  capture = Capture(file)
  name = _name(file, output)
  bench = MockBench(capture, mockgpu)
  if mockgpu: capture.head["mockgpu"] = mockgpu
  with counted("bisect", quiet or as_json) as tell:
    shrinker = Shrinker(capture, Script(script or ""), bench, trials=trials, seconds=seconds, tell=tell)
    try:
      _choose(shrinker, until, script, bench)
      shown = shrinker.check()
      bench.bound(shown.signature[0] == "endless")
      if not as_json: click.echo(f"{shown.kind}: {shown.text}")
      found = shrinker.bisect()
      if not as_json: click.echo("\n".join(_first_lines(shrinker, found)))
      if not only_first: shrinker.shrink()
    except Ends as ends: raise InvalidArgument(f"the search was ended: {ends}", where="--script") from None
  files = _write(shrinker, name, file, found) if not only_first or output is not None else []
  row = {"until": shrinker.predicate.name, "shown": shown.text, "first": {"submission": found.submission,
         "queue": found.queue}, "before": asdict(shrinker.before), "after": asdict(shrinker.size()),
         "trials": shrinker.trials, "whole": shrinker.whole, "files": files}
  if as_json: click.echo(json.dumps(row))
  elif not only_first: click.echo("\n".join(_summary(shrinker, found)[2:]))
  if not as_json and files: click.echo(f"written: {', '.join(files)}")


def _name(file: str, output: str | None) -> Path:
  """What the files are called, without their ending."""
  path = Path(output) if output is not None else Path(file).with_suffix(".small")
  if path.suffix in (".thq", ".txt", ".py"): path = path.with_suffix("")
  made = Path(f"{path}.thq")
  if made.exists() and made.samefile(file):
    raise InvalidArgument("would be written over itself", where=file, hint="name others: -o small")
  if not path.parent.is_dir(): raise MissingFile("there is no such folder", where=str(path.parent))
  return path


def _choose(shrinker: Shrinker, until: str | None, script: str | None, bench: MockBench) -> None:
  """What is looked for; None says that the capture shows it by itself."""
  if script is not None: return
  capture = shrinker.draft.base
  vendor = next((e.vendor for e in shrinker.draft.events if e.vendor), "")
  wanted: Predicate | Differs | None
  if until is not None: wanted = predicate(until, vendor)
  else:
    trial = Trial(capture, bench)
    wanted = by_itself(trial)
    if wanted is None:
      why = f" (it could not be run to its end: {trial.outcome.refused})" if trial.outcome.refused else ""
      raise InvalidArgument(f"shows no fault, no hang, no finding, and leaves behind what was captured{why}",
                            where=str(capture.reader.path), hint="say what to look for: --until, or --script")
  if isinstance(wanted, Differs):
    left = wanted.found(Trial(capture, bench))
    if left is None:
      raise InvalidArgument("leaves behind what the capture saw there", where=str(capture.reader.path),
                            hint="--until left:ADDRESS:BYTES looks for bytes that both have")
    shrinker.end_behind(left.submission)
    wanted = left
  shrinker.predicate = wanted


def _first_lines(shrinker: Shrinker, found: First) -> Iterator[str]:
  yield _where(shrinker, found)
  capture = shrinker.result()
  *_, step = (s for s in capture if s.follow is not None)
  names = listing.Names(capture, step.event.vendor, step.world)
  for launch in step.follow.launches if step.follow is not None else []:
    yield f"  it launches {names.launched(launch)}"


def _where(shrinker: Shrinker, found: First) -> str:
  at = f"shown by submission {found.submission}, {found.queue}"
  return f"first {at}" if shrinker.bisected else f"{at}, or an earlier one: {shrinker.stopped}"


def _summary(shrinker: Shrinker, found: First) -> list[str]:
  before, after = shrinker.before, shrinker.size()
  rows = [f"{getattr(after, n):,} of {getattr(before, n):,} {label}" for n, label in (
    ("submissions", "submissions"), ("packets", "packets"), ("calls", "calls"), ("memory", "chunks of memory"))]
  why = "" if shrinker.whole else f"; not the smallest: {shrinker.stopped}"
  return [f"{found.shown.kind}: {found.shown.text}", _where(shrinker, found),
          f"what it takes: {', '.join(rows)} ({shrinker.trials:,} trials{why})"]


def _write(shrinker: Shrinker, name: Path, file: str, found: First) -> list[str]:
  """The capture, the text and the reproducer."""
  capture, summary = shrinker.result(), _summary(shrinker, found)
  paths = [Path(f"{name}{ending}") for ending in (".thq", ".txt", ".py")]
  saved(capture, paths[0])
  made = Capture(paths[0])
  text = [*summary, "", "what remains:", *captured(made, None, None, None, False, False, False), "", "the doctor:",
          *(f"  {line}" for line in examine(made).lines()), "", "calls that it needs:",
          *(f"  {line}" for step in made if step.follow is None and (line := calls.text(step))), "",
          f"again: python {paths[2].name}, or tinyhw replay {paths[0].name}"]
  save(paths[1], "\n".join(text) + "\n")
  signature: Any = shrinker.wanted if shrinker.predicate.name != _SCRIPT else None
  told = "\n".join([*summary, "", f"Made by `tinyhw bisect` of {Path(file).name}."])
  save(paths[2], written(made, told, shrinker.predicate.name, signature))
  return [str(p) for p in paths]

