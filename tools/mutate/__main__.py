"""The mutation score of the meanings against the single-instruction witness.

    python -m tinyhw.tools.mutate                       every change
    python -m tinyhw.tools.mutate --module floats       of one module
    python -m tinyhw.tools.mutate --sample 100 --seed 3 some, by seed
    python -m tinyhw.tools.mutate --json
"""
from __future__ import annotations

import argparse
import json
import random
import sys
import time

from tinyhw.tools.mutate.score import MACHINERY, MODULES, measure, mutants


def main() -> int:
  """Print the score and the survivors."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.mutate", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--module", action="append", choices=(*MODULES, *MACHINERY),
                      help=f"only this module (may be repeated); not in the meanings' score: {', '.join(MACHINERY)}")
  parser.add_argument("--match", default="", help="only instructions with this in their mnemonic")
  parser.add_argument("--sample", type=int, default=0, help="this many changes, drawn by --seed")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--most", type=int, default=12, help="instructions asked about one change (default: 12)")
  parser.add_argument("--tests", action="store_true", help="ask the emulator's tests too, where the witness is silent")
  parser.add_argument("--json", action="store_true")
  options = parser.parse_args()
  chosen = mutants(options.module or MODULES)
  if options.sample: chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
  start = time.monotonic()
  score = measure(chosen, options.match, options.most, options.seed, options.tests)
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
