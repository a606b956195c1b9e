"""All cases on one device: `python -m tests.tensor.operators.sweep --device AMD`. (AMD is the mock unless told
otherwise.)"""
from __future__ import annotations

import argparse
import os
import sys
import time
from fnmatch import fnmatch

from tests.tensor.operators.expected import Expected
from tests.tensor.operators.run import failure
from tests.tensor.operators.table import CASES


def main() -> int:
  """Counts, seconds, and what failed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--device", default="LLVM", help="any device name (default LLVM)")
  parser.add_argument("--only", default="*", metavar="PATTERN", help="cases whose name fits")
  parser.add_argument("--part", default="0/1", metavar="I/N", help="every N-th case, from the I-th on")
  parser.add_argument("--slowest", type=int, default=0, metavar="N", help="also show the N slowest")
  options = parser.parse_args()
  os.environ.setdefault("MOCKGPU", "1")
  first, step = map(int, options.part.split("/"))
  chosen = [c for c in CASES if fnmatch(c.name, options.only)][first::step]
  known = Expected()
  failed, spent = 0, []
  began = time.perf_counter()
  for case in chosen:
    start = time.perf_counter()
    try: why = failure(case, options.device, known.of(case))
    except KeyError: why = "no expected value: run python -m tests.tensor.operators.generate"
    except Exception as error: why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    spent.append((time.perf_counter() - start, case.name))
    if why:
      failed += 1
      print(f"FAILED {case.name}: {case.ours}: {why}", flush=True)
  for seconds, name in sorted(spent, reverse=True)[:options.slowest]: print(f"{seconds:8.3f} s  {name}")
  total = time.perf_counter() - began
  print(f"{options.device}: {len(chosen) - failed} of {len(chosen)} cases pass, {failed} fail; {total:.1f} s, "
        f"{time.process_time():.1f} s of CPU, {total / max(len(chosen), 1) * 1000:.0f} ms a case")
  return 1 if failed else 0


if __name__ == "__main__": sys.exit(main())
