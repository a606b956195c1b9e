"""The corpus through both engines at once: memory and the number of instructions must agree, and the witness too."""
from __future__ import annotations

import pytest

from tests.strength import THOROUGH, seed, seeds
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import cases_of
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import check

GPUS = ("gfx1100", "gfx1201", "gfx942")
ONE_IN = 6 if THOROUGH else 144


def cases(gpu: str) -> list[Case]:
  """Some cases of each kind: `python -m tinyhw.tools.fuzz --engine both --cpu GPU` runs all."""
  known = cases_of(gpu)
  return [*known[GPUS.index(gpu)::ONE_IN], *programs(seeds(range(2000, 2004)))]


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("gpu", GPUS)
def test_both_engines_agree(gpu: str, level: int) -> None:
  found = check([c for c in cases(gpu) if level in c.levels], [level], cpu=gpu, engine="both", seed=seed(0))
  assert not found, "\n".join(map(str, found))
