"""The ladder on mock cards: all of it holds on whole ones, and stops at the right rung on ones with a defect."""
from __future__ import annotations

import pytest

from tests.bringup.climbing import climbed, first_broken
from tests.bringup.defect import Defect
from tests.bringup.defects_amd import DEFECTS as AMD
from tests.bringup.defects_nv import DEFECTS as NV
from tests.strength import some
from tinyhw.bringup.result import ABSENT, PASSED
from tinyhw.cli.benches import ladder_of

DEFECTS = {"AMD": AMD, "NV": NV}
CASES = [(vendor, defect) for vendor, rows in DEFECTS.items() for defect in some(rows, 9)]


@pytest.mark.parametrize("card", ["gfx1100", "gfx1201", "sm_90", "sm_80", "sm_120"])
def test_every_rung_holds(card: str) -> None:
  vendor = "NV" if card.startswith("sm_") else "AMD"
  wrong = [f"{r.rung}: {r.found}" for r in climbed(vendor, card) if r.state not in (PASSED, ABSENT)]
  assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("vendor", "defect"), CASES, ids=[f"{v}-{d.rung}" for v, d in CASES])
def test_a_defect_breaks_its_rung_first(vendor: str, defect: Defect) -> None:
  assert first_broken(vendor, defect) == defect.rung, defect.what


@pytest.mark.parametrize("vendor", DEFECTS)
def test_every_rung_has_a_defect(vendor: str) -> None:
  assert {d.rung for d in DEFECTS[vendor]} == {r.name for r in ladder_of(vendor)}
