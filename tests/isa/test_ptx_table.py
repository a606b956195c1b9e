"""The table of PTX instructions against ptxas: what it allows is accepted, its neighbours are refused."""
from __future__ import annotations

import random

import pytest

from tests.isa import ptx_samples as samples
from tests.strength import examples, seed
from tinyhw.isa.ptx import forms

pytestmark = pytest.mark.skipif(samples.PTXAS is None, reason="needs ptxas")


def test_ptxas_accepts_what_the_table_has() -> None:
  texts = samples.samples(examples(3), random.Random(seed(1)))
  assert sum(map(len, texts.values())) > 400
  for target, of in texts.items():
    names = list(of)
    assert not {names[k]: text for k, text in samples.refused([of[n] for n in names], target).items()}


def test_ptxas_refuses_what_the_table_has_not() -> None:
  rng = random.Random(seed(2))
  of = samples.samples(3, rng)["sm_90a"]
  others = samples.neighbours(of, rng, examples(100))
  assert not any(forms.find(n) for n in others)
  refused = samples.refused([samples.like(n, of) for n in others], "sm_90a")
  assert not [n for k, n in enumerate(others) if k not in refused]
