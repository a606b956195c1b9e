"""The suite finds changes of the emulator's meanings: the short form of its mutation score."""
from __future__ import annotations

from tests.strength import THOROUGH
from tinyhw.tools.conform import mutation
from tinyhw.tools.mutate.score import mutants

WANTED = {"add3", "lshl_add", "sub_co"}  # functions whose changes are all found


def test_changes_of_meanings_are_found() -> None:
  chosen = mutants(["integer"])
  chosen = chosen[::9] if THOROUGH else [m for m in chosen if m[1].function in WANTED][:5]
  score = mutation.measure(chosen, most=2)
  assert chosen and score.percent >= (95 if THOROUGH else 100), [str(m) for m, _ in score.survivors]
