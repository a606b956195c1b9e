"""Every mistake that a driver can make and a chip does not forgive is noticed: by values, an error or a finding."""
from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.drive import programs
from tests.drive.mistakes import MARK, MISTAKES, PAGE, Mistake, table
from tests.drive.plant import Change, planted
from tests.strength import seeds
from tinyhw.mock.machine import Machine

HAS_WEAK = "memory" in inspect.signature(Machine).parameters
SEEDS = 3  # orders of the queues in which a mistake may show


def machine(seed: int, mode: str) -> Machine:
  options: dict[str, Any] = {"memory": "weak"} if mode == "weak" else {}
  return Machine("gfx1100,gfx1100", seed=seed, **options)


def test_names_are_apart() -> None: assert len({m.name for m in MISTAKES}) == len(MISTAKES) >= 50


@pytest.mark.parametrize("seed", seeds(range(3)))
@pytest.mark.parametrize("mode", ["strict", "weak"] if HAS_WEAK else ["strict"])
def test_the_driver_as_it_is_has_none(seed: int, mode: str) -> None:
  with programs.small(): assert programs.all_of(machine(seed, mode)) == []


def evidence_of(mistake: Mistake) -> list[str]:
  """What the programs tell of a driver with the mistake, in the first order of queues that shows it."""
  with programs.small(), planted(*mistake.changes):
    for seed in range(SEEDS):
      if evidence := programs.all_of(machine(seed, mistake.mode)): return evidence
  return []


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m.name for m in MISTAKES])
def test_a_mistake_is_noticed(mistake: Mistake) -> None:
  if mistake.mode == "weak" and not HAS_WEAK:
    with planted(*mistake.changes): pytest.skip("needs a memory with caches")
  evidence = evidence_of(mistake)
  assert evidence, f"nothing notices: {mistake.what}"
  assert any(re.search(mistake.found, line) for line in evidence), "\n".join(evidence)


def test_the_page_has_the_score() -> None:
  """To write it: python -m tests.drive.mistakes."""
  assert PAGE.read_text().endswith(MARK + table())


@pytest.mark.parametrize(("place", "old"), [("Kfd.alloc", "no such text"), ("Kfd.gone", "a"), ("Gone.alloc", "a"),
                                            ("Kfd.alloc", "size")])
def test_a_place_that_is_gone_is_an_error(place: str, old: str) -> None:
  with pytest.raises(LookupError), planted(Change(f"tinyhw.drive.amd.kfd:{place}", old, "")): pass
