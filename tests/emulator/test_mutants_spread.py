"""The meanings' changes asked about by several processes: the same score."""
from __future__ import annotations

import pytest

from tinyhw.tools.mutate.mutants import Mutant
from tinyhw.tools.mutate.score import Score, measure
from tinyhw.tools.mutate.spread import drawn, spread


def parts(score: Score) -> tuple[int, list[tuple[Mutant, list[str]]], list[Mutant]]:
  def by(m: Mutant) -> int: return m.number
  return (score.killed, sorted(score.survivors, key=lambda row: by(row[0])), sorted(score.equivalent, key=by))


@pytest.mark.parametrize("seed", [5])
def test_several_processes_come_to_the_same_score(seed: int) -> None:
  alone = measure(drawn(("quiet",), 30, seed), most=2, seed=seed)
  assert parts(spread(("quiet",), 30, seed, "", 2, jobs=2)) == parts(alone)
  assert alone.killed > 5
