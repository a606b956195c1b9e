"""The record of what tests execute beside a witness is true; what has a meaning but no witness is a reviewed list."""
from __future__ import annotations

import re

import pytest

from tinyhw.emulator.amdgcn import coverage
from tinyhw.isa.amdgcn import table
from tinyhw.tools.ledger.executed import GPUS, SCALAR, SILICON, executed, on_silicon, witnessed

# Why each group has no witness: what stops the wave or hands it over (a debugger's, the trap's); messages to the host;
# the chip's clocks and its stream-out counters; barriers, which take more than one instruction to see; GWS and ordered
# counts; halves of waves one after the other.
GAPS = r"""
s_(trap|code_end|sethalt|setkill|sendmsg|sendmsghalt|sendmsg_rtn_b32|sendmsg_rtn_b64|endpgm_saved)
s_(subvector_loop_begin|subvector_loop_end|barrier_signal|barrier_signal_isfirst|get_barrier_state)
s_(atc_probe|atc_probe_buffer|memtime|memrealtime) ds_(gws_\w+|ordered_count)
global_atomic_ordered_add_b64
"""


@pytest.mark.parametrize("isa", GPUS)
def test_the_record_is_true(isa: str) -> None:
  recorded = executed(isa)
  assert {m for m, names in recorded.items() if SCALAR in names} == set(witnessed(isa)), \
    "python -m tinyhw.tools.ledger.executed"
  assert {m for m, names in recorded.items() if SILICON in names} == on_silicon(isa), \
    "python -m tinyhw.tools.ledger.executed"
  assert set(recorded) <= coverage.names(table(isa))


@pytest.mark.parametrize("isa", GPUS)
def test_enough_instructions_have_a_witness(isa: str) -> None:
  assert len(executed(isa)) >= 900


@pytest.mark.parametrize("isa", GPUS)
def test_what_has_no_witness_is_reviewed(isa: str) -> None:
  generation = table(isa)
  known = set(executed(isa))
  without = [m for m in generation.by_mnemonic if "::" not in m and m not in known
             and coverage.status(m, isa) != "missing"]
  pattern = re.compile("|".join(GAPS.split()))
  assert [m for m in without if not pattern.fullmatch(m)] == []
