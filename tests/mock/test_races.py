"""Races are drawn: what a chip may show some seed shows, and nothing else any."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final

import pytest

from tests.mock.races import RACES, RIGS, Race, possible

SEEDS: Final = range(100)


def run(kind: str, seed: int) -> list[str]:
  """The outcomes of all races, one after the other on one machine."""
  rig = RIGS[kind](seed)
  try: return [rig.outcome(race) for race in RACES]
  finally: rig.close()


@cache
def drawn(kind: str) -> list[Counter[str]]:
  """How often each outcome of each race comes."""
  rows = [run(kind, seed) for seed in SEEDS]
  return [Counter(column) for column in zip(*rows)]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_table_has_what_interleavings_of_whole_steps_have(race: Race) -> None:
  assert race.outcomes == possible(race) and len(race.outcomes) > 1


@pytest.mark.parametrize("kind", RIGS)
@pytest.mark.parametrize("number", range(len(RACES)), ids=[race.name for race in RACES])
def test_every_outcome_is_drawn_and_no_other(number: int, kind: str) -> None:
  assert set(drawn(kind)[number]) == RACES[number].outcomes, drawn(kind)[number]


@pytest.mark.parametrize("kind", RIGS)
def test_a_seed_draws_the_same_again(kind: str) -> None:
  for seed in SEEDS[:4]: assert run(kind, seed) == run(kind, seed)
