"""Writes the expected values of all cases, by PyTorch: `python -m tests.tensor.operators.generate` where it is
installed."""
from __future__ import annotations

import sys

import torch

from tests.tensor.operators.expected import PATH, save
from tests.tensor.operators.table import CASES
from tests.tensor.operators.theirs import expected


def main() -> int:
  """All values, or which cases torch refuses."""
  torch.set_num_threads(1)
  values, refused = {}, 0
  for case in CASES:
    try: values[case.digest()] = expected(case)
    except Exception as error:
      refused += 1
      print(f"{case.name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", file=sys.stderr)
  if refused: return 1
  save(values, torch.__version__)
  print(f"{len(CASES)} cases, {PATH.stat().st_size:,} bytes, torch {torch.__version__}")
  return 0


if __name__ == "__main__": sys.exit(main())
