"""The suite finds changes of the emulator's meanings: the short form of its mutation score."""
from __future__ import annotations

from tests.strength import THOROUGH
from tinyhw.tools.conform import mutation
from tinyhw.tools.conform.client import mutation as handlers
from tinyhw.tools.mutate.score import mutants

WANTED = {"add3", "lshl_add", "sub_co"}  # functions whose changes are all found


def test_changes_of_meanings_are_found() -> None:
  chosen = mutants(["integer"])
  chosen = chosen[::9] if THOROUGH else [m for m in chosen if m[1].function in WANTED][:5]
  score = mutation.measure(chosen, most=2)
  assert chosen and score.percent >= (95 if THOROUGH else 100), [str(m) for m, _ in score.survivors]


def test_changes_of_handlers_are_found() -> None:
  """The short form of the score of packets, methods and calls: a handler's changes, each seen by a case."""
  found = handlers.measure(
    ["mock.amd.chip.sdma"], 0 if THOROUGH else 4, 5, only=lambda m: m.function.endswith((
      "SdmaQueue.write_linear", "SdmaQueue.cond_exe", "write_linear", "cond_exe")),
    among=["gfx1100/packet/sdma/SDMA_PKT_WRITE*", "gfx1100/packet/sdma/SDMA_PKT_COND_EXE*"])
  assert found.score.killed >= 2 and not found.score.survivors, [str(m) for m, _ in found.score.survivors]
