"""Which instructions have no meaning: a reviewed list, and no meaning for what the table does not hold."""
from __future__ import annotations

import re

import pytest

from tinyhw.arch import DECODED
from tinyhw.core.errors import LayoutError
from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.binders import Binder, Binders
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.simt import Step
from tinyhw.isa.amdgcn import Instruction, table

TABLE = table("gfx11")
# Why each group is missing: graphics (export, interpolation, attributes, streams), ray tracing, trap handlers; and
# every image instruction, which the ledger counts apart.
GAPS = r"""
exp | v_interp_\w+ | lds_(direct|param)_load | ds_(add|sub)_gs_reg_rtn | ds_bvh_stack_rtn_b32 | s_cbranch_cdbg\w+
s_rfe_b64
"""


def test_gaps_are_the_reviewed_ones() -> None:
  pattern = re.compile("|".join(p.strip() for p in re.split(r"\s\|\s|\n", GAPS) if p.strip()))
  missing = [m for m in coverage.report(TABLE)["missing"] if not m.startswith("image_")]
  assert [m for m in missing if not pattern.fullmatch(m)] == []
  assert len(missing) < 20


def test_most_instructions_have_a_meaning() -> None:
  counts = {k: len(v) for k, v in coverage.report(TABLE).items()}
  total = sum(counts.values())
  assert total - counts["missing"] > 960 and counts["exact"] > 850


@pytest.mark.parametrize("isa", ["gfx9", "gfx90a", "gfx950", "gfx11", "gfx12"])
def test_what_compute_code_can_use_has_a_meaning(isa: str) -> None:
  assert not coverage.compute(table(isa)).intersection(coverage.report(table(isa))["missing"])


def test_no_meaning_is_for_an_instruction_of_no_table() -> None:
  extra = {m.mnemonic for m in MEANINGS}.difference(*(coverage.names(table(a.table)) for a in DECODED.values()))
  assert extra == set()


def test_signatures_name_known_types() -> None:
  known = {"u16", "i16", "f16", "u32", "i32", "f32", "u64", "i64", "f64", "mask", "vcc", "scc", "exec", "k", "ku"}
  fields = re.compile(r"i:(bitop3|byte_sel|op_sel|neg_lo|neg_hi)|mode:[A-Z0-9_]+")
  for m in MEANINGS:
    for t in (*m.results, *m.sources):
      assert t.removeprefix("d:").removeprefix("s:") in known or fields.fullmatch(t), m.mnemonic


def test_a_binder_is_taken_once_in_each_table() -> None:
  table: Binders[Binder] = Binders("the step")
  def one(i: Instruction, pc: int, mode: int) -> Step: return lambda group: None
  def other(i: Instruction, pc: int, mode: int) -> Step: return lambda group: None
  table("v_a", "v_b")(one)
  table("v_a", isa="gfx9")(other)
  assert table.get("v_a", "gfx9") is other and table.get("v_a", "gfx11") is one and table.get("v_c", "gfx9") is None
  with pytest.raises(LayoutError, match="gfx9: the step of v_a is registered twice"): table("v_a", isa="gfx9")(one)
