"""Which instructions have no meaning: a reviewed list, and no meaning for what the table does not hold."""
from __future__ import annotations

import re

from tinyhw.arch import DECODED
from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.meaning import MEANINGS
from tinyhw.isa.amdgcn import table

TABLE = table("gfx11")
# Why each group is missing: graphics (export, interpolation, attributes), formatted buffers, global data share,
# debugger and trap handler, ray tracing, address translation probes.
GAPS = r"""
exp | v_interp_\w+ | lds_(direct|param)_load | t?buffer_(load|store)_\w*format_\w+ | buffer_load_lds_\w+
ds_gws_\w+ | ds_(add|sub)_gs_reg_rtn | ds_ordered_count | ds_bvh_stack_rtn_b32 | ds_condxchg32_rtn_b64
s_cbranch_cdbg\w+ | s_rfe_b64 | s_sethalt | s_setkill | s_sendmsghalt | s_endpgm_saved | s_atc_probe(_buffer)?
s_subvector_loop_(begin|end) | s_movrelsd_2_b32 | v_swaprel_b32 | global_(load|store)_addtid_b32
"""


def test_gaps_are_the_reviewed_ones() -> None:
  pattern = re.compile("|".join(p.strip() for p in re.split(r"\s\|\s|\n", GAPS) if p.strip()))
  missing = coverage.report(TABLE)["missing"]
  assert [m for m in missing if not pattern.fullmatch(m)] == []
  assert len(missing) < 90


def test_most_instructions_have_a_meaning() -> None:
  counts = {k: len(v) for k, v in coverage.report(TABLE).items()}
  total = sum(counts.values())
  assert total - counts["missing"] > 960 and counts["exact"] > 850


def test_no_meaning_is_for_an_instruction_of_no_table() -> None:
  # comparisons are registered by type; there are no 16-bit integer ones that are always false or true
  extra = {m.mnemonic for m in MEANINGS}.difference(*(coverage.names(table(a.isa)) for a in DECODED.values()))
  assert extra == {f"v_cmp{x}_{c}_{t}" for x in ("", "x") for c in "ft" for t in ("i16", "u16")}


def test_signatures_name_known_types() -> None:
  known = {"u16", "i16", "f16", "u32", "i32", "f32", "u64", "i64", "f64", "mask", "vcc", "scc", "exec", "k", "ku"}
  fields = re.compile(r"i:(byte_sel|op_sel|neg_lo|neg_hi)|mode:\d+")
  for m in MEANINGS:
    for t in (*m.results, *m.sources):
      assert t.removeprefix("d:").removeprefix("s:") in known or fields.fullmatch(t), m.mnemonic
