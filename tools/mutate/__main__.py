"""How many small changes of the code do the tests notice?

    python -m tinyhw.tools.mutate --room drive --sample 100 --seed 3     a room's code, by the tests that answer for it
    python -m tinyhw.tools.mutate --room drive --again survivors.json    only what an earlier run (--json) left
    python -m tinyhw.tools.mutate --room drive --unreached               lines that no test executes
    python -m tinyhw.tools.mutate                       the meanings, by the single-instruction witness: every change
    python -m tinyhw.tools.mutate --module floats       of one module
    python -m tinyhw.tools.mutate --sample 100 --seed 3 some, by seed
    python -m tinyhw.tools.mutate --json
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tinyhw.tools.mutate import measure as rooms
from tinyhw.tools.mutate.rooms import ROOMS, ROOT, test_files
from tinyhw.tools.mutate.trace import Map


def main() -> int:
  """Print the score and the survivors."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.mutate", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--room", action="append", choices=tuple(ROOMS), help="the code of this room (may be repeated)")
  parser.add_argument("--module", action="append", help="only this module: of the meanings (may be repeated), or, with "
                      "--room, those that begin so (drive.amd)")
  parser.add_argument("--match", default="", help="only instructions with this in their mnemonic (rooms: functions)")
  parser.add_argument("--sample", type=int, default=0, help="this many changes, drawn by --seed")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--most", type=int, default=12, help="instructions asked about one change (default: 12)")
  parser.add_argument("--tests", action="store_true", help="ask the emulator's tests too, where the witness is silent")
  parser.add_argument("--jobs", type=int, default=1, help="changes asked at once")
  parser.add_argument("--scheduler", default="", metavar="tcp://HOST:PORT", help="have the workers of this Dask "
                      "scheduler ask about the meanings' changes")
  parser.add_argument("--results", type=Path, metavar="FILE", help="of the meanings: keep results in this file; the "
                      "same command goes on where it was stopped")
  parser.add_argument("--budget", type=float, default=rooms.BUDGET, metavar="SECONDS",
                      help=f"processor time of the tests that one change is shown to (rooms; default {rooms.BUDGET:g})")
  parser.add_argument("--again", type=Path, metavar="FILE", help="only the survivors of a room in this JSON")
  parser.add_argument("--retrace", action="store_true", help="run all tests anew to see what they execute")
  parser.add_argument("--unreached", action="store_true", help="with --room: list the lines that no test executes, "
                      "and ask nothing")
  parser.add_argument("--all", action="store_true", help="with --room: say of each change what noticed it")
  parser.add_argument("--json", action="store_true")
  options = parser.parse_args()
  if options.room and (options.scheduler or options.results):
    parser.error("--scheduler and --results are of the meanings: not with --room")
  return _rooms(options) if options.room else _meanings(options, parser)


def _rooms(options: argparse.Namespace) -> int:
  scores, start, traced = [], time.monotonic(), set[str]()
  for room in options.room:
    modules = tuple(options.module or ("",))
    found = [p for p in rooms.places(room)
             if p.mutant.module.startswith(modules) and options.match in p.mutant.function]
    if options.again:
      wanted = {s["name"] for s in json.loads(options.again.read_text())["survivors"]}
      found = [p for p in found if p.name in wanted]
    if options.sample: found = rooms.sample(found, options.sample, options.seed)
    files = test_files(room)
    known = Map.of(files, {*files} - traced if options.retrace else (), options.jobs)
    traced |= {*files}
    if options.unreached:
      for p in rooms.unreached(room, found, known):
        print(f"{p.file.path.relative_to(ROOT)}:{p.mutant.line} {p.mutant.function}\n    {p.mutant.source}")
      continue
    scores.append(rooms.measure(room, found, known, options.jobs, options.budget))
  if options.unreached: return 0
  if options.json:
    left = [o for score in scores for o in score.survivors]
    every = [o for score in scores for o in score.outcomes] if options.all else []
    print(json.dumps({
      "rooms": {s.room: {"noticed": s.counted - len(s.survivors), "survived": len(s.survivors),
                         "equivalent": len(s.equivalent), "percent": round(s.percent, 1)} for s in scores},
      "survivors": [{"name": o.place.name, "line": o.place.mutant.line, "mutant": str(o)} for o in left],
      **({"outcomes": [{"name": o.place.name, "verdict": o.verdict, "by": o.by} for o in every]} if every else {})},
      indent=1))
    return 0
  for score in scores:
    for o in score.outcomes if options.all else score.survivors:
      print(f"{o}\n    {o.verdict}: {o.by}" if options.all else o)
    print(f"{score.room}: {score.counted - len(score.survivors)} of {score.counted} changes noticed, "
          f"{score.percent:.1f} %; {len(score.equivalent)} more are declared to change nothing; "
          f"{time.monotonic() - start:.0f} s")
  return 0


def _meanings(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
  from tinyhw.tools.mutate.score import MACHINERY, MODULES, measure
  from tinyhw.tools.mutate.spread import drawn, spread
  for name in options.module or ():
    if name not in (*MODULES, *MACHINERY): parser.error(f"no module {name}: {', '.join((*MODULES, *MACHINERY))}")
  start, modules = time.monotonic(), tuple(options.module or MODULES)
  if options.scheduler or options.results or options.jobs > 1:
    if options.tests or not {*modules} <= {*MODULES}:
      parser.error(f"several processes ask the witness about the meanings alone ({', '.join(MODULES)})")
    score = spread(modules, options.sample, options.seed, options.match, options.most, scheduler=options.scheduler,
                   jobs=options.jobs, results=options.results)
  else: score = measure(drawn(modules, options.sample, options.seed), options.match, options.most, options.seed,
                        options.tests)
  if options.json:
    print(json.dumps({"killed": score.killed, "survived": len(score.survivors), "equivalent": len(score.equivalent),
                      "percent": round(score.percent, 2),
                      "survivors": [{"mutant": str(m), "mnemonics": names} for m, names in score.survivors]}, indent=1))
    return 0
  for mutant, names in score.survivors: print(f"{mutant}  ({', '.join(names[:4])})")
  print(f"{score.killed} of {score.counted} changes noticed, {score.percent:.1f} %; {len(score.equivalent)} more are "
        f"declared to change nothing; {time.monotonic() - start:.0f} s")
  return 0


if __name__ == "__main__": sys.exit(main())
