"""The long form of the corpus: every case at every level, for as many seeds as asked.

    python -m tinyhw.tools.fuzz                        every case at O0 to O3
    python -m tinyhw.tools.fuzz --match fdiv --seeds 20
    python -m tinyhw.tools.fuzz --programs 500         random programs too
    python -m tinyhw.tools.fuzz --wave64               waves of 64 lanes
    python -m tinyhw.tools.fuzz --mnemonics            what the compiler emits for the corpus, with counts
"""
from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter

from tinyhw.emulator.engines.amdgcn import ENGINES
from tinyhw.tools.fuzz.build import gpu_assembly, mnemonics
from tinyhw.tools.fuzz.corpus import cases_of
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import check

CHUNK = 50  # cases in one module


def main() -> int:
  """Run what the command line asks for; the exit status is 1 where witnesses disagree."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--match", default="", help="only cases whose name matches this regular expression")
  parser.add_argument("--levels", default="0123", help="LLVM optimization levels (default: 0123)")
  parser.add_argument("--seeds", type=int, default=1, help="sets of inputs for each case")
  parser.add_argument("--programs", type=int, default=0, help="random programs besides the cases")
  parser.add_argument("--arch", "--cpu", dest="cpu", default="gfx1100")
  parser.add_argument("--engine", default="ref", choices=ENGINES, help="what runs the machine code (default: ref)")
  parser.add_argument("--wave64", action="store_true", help="compile for waves of 64 lanes")
  parser.add_argument("--mnemonics", action="store_true", help="list the compiler's mnemonics and stop")
  options = parser.parse_args()
  features = "+wavefrontsize64" if options.wave64 else ""
  levels = [int(level) for level in options.levels]
  cases = [c for c in [*cases_of(options.cpu), *programs(range(options.programs))] if re.search(options.match, c.name)]
  if options.wave64: cases = [c for c in cases if not c.name.startswith("amdgcn_")]  # written for 32 lanes
  chunks = [cases[k:k + CHUNK] for k in range(0, len(cases), CHUNK)]
  if options.mnemonics:
    total: Counter[str] = Counter()
    for level in levels:
      for chunk in chunks: total += mnemonics(gpu_assembly(chunk, level, cpu=options.cpu, features=features))
    for name, count in total.most_common(): print(name, count)
    return 0
  start, wrong = time.monotonic(), 0
  for seed in range(options.seeds):
    for at, chunk in enumerate(chunks):
      for mismatch in check(chunk, levels, seed=seed, cpu=options.cpu, features=features,
                            engine=options.engine):
        wrong += 1
        print(f"seed {seed}: {mismatch}", flush=True)
      if sys.stderr.isatty(): print(f"seed {seed}: {at + 1} of {len(chunks)} modules", end="\r", file=sys.stderr)
  runs = len(cases) * len(levels) * options.seeds
  print(f"{len(cases)} cases, {runs} runs, {wrong} disagree, {time.monotonic() - start:.1f} s")
  return 1 if wrong else 0


if __name__ == "__main__": sys.exit(main())
