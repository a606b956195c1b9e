"""Changed meanings are noticed: a part of the mutation score, drawn by a seed, and the list of what changes nothing."""
from __future__ import annotations

import random

from tests.strength import examples
from tinyhw.tools.mutate.equivalent import AROUND, MEANINGS
from tinyhw.tools.mutate.score import MACHINERY, measure, mutants

SAMPLE = examples(30)


def test_a_sample_of_changes_is_noticed() -> None:
  chosen = random.Random(11).sample(mutants(("floats", "integer", "scalar")), SAMPLE)
  score = measure(chosen, most=3)
  assert score.counted > SAMPLE // 2
  assert score.percent >= 90, "\n".join(str(m) for m, _ in score.survivors)


def test_a_sample_of_changes_around_the_meanings_is_noticed() -> None:
  chosen = random.Random(5).sample(mutants(("dpp", "sdwa")), SAMPLE // 2)
  score = measure(chosen, among=[("gfx11", "@dpp"), ("gfx9", "@dpp"), ("gfx9", "@sdwa"), ("gfx11", "v_cmp_lt_f32")])
  assert score.percent >= 90, "\n".join(str(m) for m, _ in score.survivors)


def test_every_rule_of_what_changes_nothing_fits_something() -> None:
  for rules, modules in ((MEANINGS, None), (AROUND, MACHINERY)):
    found = [m for _, m in (mutants() if modules is None else mutants(modules))]
    assert [r for r in rules if not any(r.fits(*m.key) for m in found)] == []
