"""Every mistake that a driver of NVIDIA's can make and a chip does not forgive is noticed."""
from __future__ import annotations

import re

import pytest

from tests.drive.mistakes import Mistake
from tests.drive.nv import programs
from tests.drive.nv.mistakes import MARK, MISTAKES, PAGE, table
from tests.drive.plant import planted
from tests.strength import seeds
from tinyhw.mock.nv.machine import NvMachine

SEEDS = 4  # orders of channels and engines in which a mistake may show


def machine(seed: int) -> NvMachine:
  return NvMachine("sm_90,sm_90", seed=seed, vram=1 << 28, system_memory=1 << 28, engine="ref")


def test_names_are_apart() -> None: assert len({m.name for m in MISTAKES}) == len(MISTAKES) >= 50


@pytest.mark.parametrize("seed", seeds(range(SEEDS)))
def test_the_driver_as_it_is_has_none(seed: int) -> None:
  with programs.small(): assert programs.all_of(machine(seed)) == []


def evidence_of(mistake: Mistake) -> list[str]:
  """What the programs tell of a driver with the mistake, in the first order that shows it."""
  with programs.small(), planted(*mistake.changes):
    for seed in range(SEEDS):
      if evidence := programs.all_of(machine(seed)): return evidence
  return []


@pytest.mark.filterwarnings("ignore:.*was closed before its work was done")
@pytest.mark.parametrize("mistake", MISTAKES, ids=[m.name for m in MISTAKES])
def test_a_mistake_is_noticed(mistake: Mistake) -> None:
  evidence = evidence_of(mistake)
  assert evidence, f"nothing notices: {mistake.what}"
  assert any(re.search(mistake.found, line) for line in evidence), "\n".join(evidence)


def test_the_page_has_the_score() -> None:
  """To write it: python -m tests.drive.nv.mistakes."""
  assert PAGE.read_text().endswith(MARK + table())
