"""Every mistake that a driver can make and a chip does not forgive is noticed: by values, an error or a finding."""
from __future__ import annotations

import re

import pytest

from tests.drive import programs
from tests.drive.mistakes import MARK, MISTAKES, PAGE, Mistake, table
from tests.drive.plant import Change, planted
from tests.strength import seeds
from tinyhw.mock.amd.card import CARDS
from tinyhw.mock.amd.machine import Machine

SEEDS = 3  # orders of the queues in which a mistake may show


def machine(seed: int, mode: str) -> Machine:
  return Machine("gfx1100,gfx1100", seed=seed, memory="weak" if mode == "weak" else "strong")


def test_names_are_apart() -> None: assert len({m.name for m in MISTAKES}) == len(MISTAKES) >= 50


@pytest.mark.parametrize(("mode", "seed"), [("strict", n) for n in seeds(range(3))] + [("weak", n) for n in seeds([0])])
def test_the_driver_as_it_is_has_none(mode: str, seed: int) -> None:
  with programs.small(): assert programs.all_of(machine(seed, mode)) == []


@pytest.mark.parametrize(("card", "seed"), [(c, n) for c in CARDS if c != "gfx1100" for n in seeds([1])])
def test_the_driver_has_none_on_other_cards(card: str, seed: int) -> None:
  with programs.small(): assert programs.all_of(Machine(f"{card},{card}", seed=seed)) == []


def evidence_of(mistake: Mistake) -> list[str]:
  """What the programs tell of a driver with the mistake, in the first order of queues that shows it."""
  with programs.small(), planted(*mistake.changes):
    for seed in range(SEEDS):
      if evidence := programs.all_of(machine(seed, mistake.mode)): return evidence
  return []


@pytest.mark.parametrize("mistake", MISTAKES, ids=[m.name for m in MISTAKES])
def test_a_mistake_is_noticed(mistake: Mistake) -> None:
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
