"""All cases on one device, shared among processes: `python -m tests.tensor.operators.sweep --device AMD`. (AMD, NV and
CUDA are mocks unless told otherwise, of gfx1100 and sm_90.)"""
from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from itertools import repeat
from multiprocessing import get_context

from tests.tensor.operators.expected import Expected
from tests.tensor.operators.run import failure
from tests.tensor.operators.table import CASES

Spent = tuple[float, str]  # seconds, name of a case


def part(device: str, pattern: str, first: int, step: int) -> tuple[int, list[Spent], float]:
  """Runs every step-th case whose name fits the pattern, from the first on, and prints what fails: how many do, the
  seconds of each, and of the processor."""
  known = Expected()
  failed, spent = 0, []
  for case in [c for c in CASES if fnmatch(c.name, pattern)][first::step]:
    start = time.perf_counter()
    try: why = failure(case, device, known.of(case))
    except KeyError: why = "no expected value: run python -m tests.tensor.operators.generate"
    except Exception as error: why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    spent.append((time.perf_counter() - start, case.name))
    if why:
      failed += 1
      print(f"FAILED {case.name}: {case.ours}: {why}", flush=True)
  return failed, spent, time.process_time()


def main() -> int:
  """Counts, seconds, and what failed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--device", default="LLVM", help="any device name (default LLVM)")
  parser.add_argument("--only", default="*", metavar="PATTERN", help="cases whose name fits")
  parser.add_argument("--part", default="0/1", metavar="I/N", help="every N-th case, from the I-th on")
  parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N",
                      help="processes (default: one for each processor)")
  parser.add_argument("--slowest", type=int, default=0, metavar="N", help="also show the N slowest")
  options = parser.parse_args()
  os.environ.setdefault("MOCKGPU", "sm_90" if options.device.partition(":")[0] in {"NV", "CUDA"} else "1")
  first, step = map(int, options.part.split("/"))
  jobs = max(options.jobs, 1)
  parts = repeat(options.device), repeat(options.only), [first + k * step for k in range(jobs)], repeat(step * jobs)
  began = time.perf_counter()
  if jobs == 1: done = [*map(part, *parts)]
  else:
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool: done = [*pool.map(part, *parts)]
  total = time.perf_counter() - began
  failed, spent, busy = sum(d[0] for d in done), [s for d in done for s in d[1]], sum(d[2] for d in done)
  for seconds, name in sorted(spent, reverse=True)[:options.slowest]: print(f"{seconds:8.3f} s  {name}")
  print(f"{options.device}: {len(spent) - failed} of {len(spent)} cases pass, {failed} fail; {total:.1f} s in {jobs} "
        f"processes, {busy:.1f} s of CPU, {busy / max(len(spent), 1) * 1000:.0f} ms a case")
  return 1 if failed else 0


if __name__ == "__main__": sys.exit(main())
