"""The suite's own mutation score: of small changes of the emulator's meanings, how many does the suite find?

    python -m tinyhw.tools.conform.mutation                          every change of the meanings
    python -m tinyhw.tools.conform.mutation --sample 100 --seed 3    some, by seed
    python -m tinyhw.tools.conform.mutation --module floats --json

The wanted results are baked before a change is made (`tools/mutate` makes them), so that the emulator is what any
other device is: the kernels' verdicts are all that is known of it. A change is asked about by the instructions whose
meaning can reach it, at most `--most` of them.
"""
from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from collections.abc import Iterable
from typing import Final

from tinyhw.arch import decoded
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import coverage
from tinyhw.tools.conform import run
from tinyhw.tools.conform.judge import BAD
from tinyhw.tools.conform.kernel import Packed, packs
from tinyhw.tools.mutate.equivalent import reason
from tinyhw.tools.mutate.mutants import Mutant, Source, planted
from tinyhw.tools.mutate.reach import GPUS
from tinyhw.tools.mutate.score import MODULES, TIMEOUT, Expired, Score, forget, mutants, users

MOST: Final = 12  # instructions asked about one change
KEPT: Final = 200  # instructions whose kernels stay made
# What changed code may raise: the changes are of operators, constants and names.
BROKEN: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError, RuntimeError)


class Kernels:
  """The kernels of an instruction, made while the emulator is right."""

  def __init__(self) -> None: self._made: dict[tuple[str, str], list[Packed]] = {}

  def of(self, isa: str, mnemonic: str) -> list[Packed]:
    """Those of a mnemonic of a generation."""
    known = self._made.pop((isa, mnemonic), None)
    if known is None:
      o = run.Options(GPUS[isa], "EMU")
      known = packs(decoded(GPUS[isa]), [b for b in run.baked(o, [mnemonic]) if not b.barred])
    self._made[isa, mnemonic] = known
    while len(self._made) > KEPT: del self._made[next(iter(self._made))]
    return known


def finds(kernels: Iterable[tuple[str, Packed]]) -> bool:
  """Whether a kernel says that something is wrong, or does not come to its end."""
  def expire(*_: object) -> None: raise Expired
  old = signal.signal(signal.SIGPROF, expire)
  signal.setitimer(signal.ITIMER_PROF, TIMEOUT)
  try:
    return any(r.verdict in BAD for isa, p in kernels for r in run.run_pack(p, run.Options(GPUS[isa], "EMU")))
  except (Error, Expired, *BROKEN): return True
  finally:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, old)


def measure(chosen: Iterable[tuple[Source, Mutant]], most: int = MOST, seed: int = 0) -> Score:
  """Make each change and run the kernels of the instructions that it may reach."""
  score, rng, kernels, known = Score(), random.Random(seed), Kernels(), users()
  for source, mutant in chosen:
    changes = source.changed(mutant)
    affected = sorted({pair for f, _ in changes for pair in known.get(id(f), ())
                       if coverage.status(pair[1], pair[0]) != "missing"})
    if not affected: continue
    if reason(*mutant.key) is not None:
      score.equivalent.append(mutant)
      continue
    rng.shuffle(affected)
    asked = [(isa, p) for isa, mnemonic in affected[:most] for p in kernels.of(isa, mnemonic)]
    forget(mutant.module)
    with planted(changes): found = finds(asked)
    forget(mutant.module)
    if found: score.killed += 1
    else: score.survivors.append((mutant, [m for _, m in affected]))
  return score


def main() -> int:
  """Print the score and what survived."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.conform.mutation", description=head, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--module", action="append", choices=MODULES, help="only this module (may be repeated)")
  parser.add_argument("--sample", type=int, default=0, help="this many changes, drawn by --seed")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--most", type=int, default=MOST, help=f"instructions asked about one change (default: {MOST})")
  parser.add_argument("--json", action="store_true")
  options = parser.parse_args()
  chosen = mutants(options.module or MODULES)
  if options.sample: chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
  began = time.monotonic()
  score = measure(chosen, options.most, options.seed)
  if options.json:
    print(json.dumps({"found": score.killed, "survived": len(score.survivors), "equivalent": len(score.equivalent),
                      "percent": round(score.percent, 2),
                      "survivors": [{"mutant": str(m), "mnemonics": names} for m, names in score.survivors]}, indent=1))
    return 0
  for mutant, names in score.survivors: print(f"{mutant}  ({', '.join(names[:4])})")
  print(f"{score.killed} of {score.counted} changes found, {score.percent:.1f} %; {len(score.equivalent)} more are "
        f"declared to change nothing; {time.monotonic() - began:.0f} s")
  return 0


if __name__ == "__main__": sys.exit(main())
