"""The record of what tests execute beside an independent witness is true."""
from __future__ import annotations

import pytest

from tinyhw.emulator.amdgcn import coverage
from tinyhw.isa.amdgcn import table
from tinyhw.tools.ledger.executed import GPUS, SCALAR, executed, witnessed


@pytest.mark.parametrize("isa", GPUS)
def test_the_record_is_true(isa: str) -> None:
  recorded = executed(isa)
  assert {m for m, names in recorded.items() if SCALAR in names} == set(witnessed(isa)), \
    "python -m tinyhw.tools.ledger.executed"
  assert set(recorded) <= coverage.names(table(isa))


@pytest.mark.parametrize("isa", GPUS)
def test_enough_instructions_have_a_witness(isa: str) -> None:
  assert len(executed(isa)) >= 900
