"""The ladder on mock cards: all of it holds on whole ones, and stops at the right rung on ones with a defect."""
from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from tests.bringup.climbing import climbed, first_broken
from tests.bringup.defect import Defect, changed
from tests.bringup.defects_amd import DEFECTS as AMD
from tests.bringup.defects_nv import DEFECTS as NV
from tests.strength import THOROUGH, some
from tinyhw.bringup.result import ABSENT, BROKEN, PASSED
from tinyhw.cli.benches import ladder_of

DEFECTS = {"AMD": AMD, "NV": NV}
CASES = [(vendor, defect) for vendor, rows in DEFECTS.items() for defect in some(rows[3:], 17)]
CARDS = ["gfx1100", "gfx1201", "gfx942", "sm_80", "sm_90", "sm_120"] if THOROUGH else ["gfx1201", "gfx942", "sm_90"]
WIDE = [d for d in AMD if d.rung.startswith(("waves.", "shapes.", "faults.", "processes."))]
FOUND_ON_WIDE = {"waves.wide": "waves.exec"}  # where no wave is without an upper half
ABSENT_ON = {"sm_80": {"shapes.clusters"}}


@pytest.mark.parametrize("card", CARDS)
def test_every_rung_holds(card: str) -> None:
  results = climbed("NV" if card.startswith("sm_") else "AMD", card)
  wrong = [f"{r.rung}: {r.found}" for r in results if r.state not in (PASSED, ABSENT)]
  assert not wrong, "\n".join(wrong)
  absent = {r.rung for r in results if r.state == ABSENT}
  assert absent == {"peers.copy"} | ABSENT_ON.get(card, set())


@pytest.mark.parametrize("vendor", DEFECTS)
def test_two_cards_are_peers(vendor: str) -> None:
  cards = {"AMD": "gfx1100,gfx1100", "NV": "sm_90,sm_90"}[vendor]
  assert climbed(vendor, cards, only=("peers",))[-1].state == PASSED


@pytest.mark.parametrize(("vendor", "defect"), CASES, ids=[f"{v}-{d.rung}" for v, d in CASES])
def test_a_defect_breaks_its_rung_first(vendor: str, defect: Defect) -> None:
  assert first_broken(vendor, defect) == defect.rung, defect.what


@pytest.mark.parametrize("defect", some(WIDE, 5), ids=lambda d: d.rung)
def test_a_defect_breaks_its_rung_where_waves_have_64_lanes(defect: Defect) -> None:
  """In the programs of gfx9."""
  assert first_broken("AMD", replace(defect, cards=("gfx942",))) == FOUND_ON_WIDE.get(defect.rung, defect.rung)


@pytest.mark.parametrize("vendor", DEFECTS)
def test_every_rung_has_a_defect(vendor: str) -> None:
  """One, of its own, in a place that is still there."""
  for d in DEFECTS[vendor]:
    module, _, name = d.place.partition(":")
    assert changed(import_module(module), name, d)
  assert [d.rung for d in DEFECTS[vendor]] == [d.rung for d in dict.fromkeys(DEFECTS[vendor])]
  assert {d.rung for d in DEFECTS[vendor]} == {r.name for r in ladder_of(vendor)}


def test_another_qmd_is_told_by_the_first_kernel() -> None:
  """One of 3.0 is taken by an H200, never runs, and nothing tells of it; the mock says so."""
  results = climbed("NV", "sm_90", only=("waves.end",), options={"qmd": (3, 0)})
  assert [r.rung for r in results if r.state == BROKEN] == ["waves.end"]
  assert "executes nothing of it" in results[-1].found and "--qmd" in results[-1].look_at
