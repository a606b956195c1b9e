"""Races and divergent barriers: programs with exactly one, each beside its mended twin."""
from __future__ import annotations

import pytest

from tests.emulator.checking import check

# Each wave writes its own part of LDS and reads the next wave's, 128 bytes on.
SHARE = """
v_lshlrev_b32 v1, 2, v0
v_add_nc_u32 v2, 0x80, v1
v_and_b32 v2, 0xff, v2
ds_store_b32 v1, v0
{}
ds_load_b32 v3, v2
s_waitcnt lgkmcnt(0)
"""
GLOBAL = """
v_lshlrev_b32 v1, 2, v0
v_add_nc_u32 v2, 0x80, v1
v_and_b32 v2, 0xff, v2
global_store_b32 v1, v0, s[0:1]
{}
global_load_b32 v3, v2, s[0:1]
s_waitcnt vmcnt(0)
"""
LDS_ATOMIC = "v_mov_b32 v1, 0\nds_add_u32 v1, v0\n"


def test_lds_without_a_barrier() -> None:
  fixed = "s_waitcnt lgkmcnt(0)\ns_barrier"
  assert not list(check(SHARE.format(fixed), waves=2, lds=512))
  finding, = check(SHARE.format("s_waitcnt lgkmcnt(0)"), waves=2, lds=512)
  assert finding.kind == "race" and finding.instruction.startswith("ds_load_b32")
  assert finding.other_instruction is not None and finding.other_instruction.startswith("ds_store_b32")
  assert finding.wave is not None and finding.address == 128 * (1 - finding.wave)


def test_a_barrier_orders_only_what_was_waited_for() -> None:
  finding, = check(SHARE.format("s_barrier"), waves=2, lds=512)
  assert finding.kind == "race"


def test_a_load_that_was_waited_for_is_done_whatever_is_under_way_at_the_barrier() -> None:
  program = SHARE.format("s_waitcnt lgkmcnt(0)\ns_barrier") + \
    "{}v_add_nc_u32 v5, 1, v0\nds_bpermute_b32 v4, v1, v0\ns_barrier\nds_store_b32 v1, v5\ns_waitcnt lgkmcnt(0)\n"
  assert not list(check(program.format(""), waves=2, lds=512))
  assert len(check(program.format("ds_load_b32 v6, v2\n"), waves=2, lds=512)) == 1


SPLIT = SHARE.replace("lgkmcnt(0)", "").replace("s_waitcnt ", "s_wait_dscnt 0x0")


def test_split_barriers_order_what_comes_before_the_signal_and_behind_the_wait() -> None:
  fixed = "s_wait_dscnt 0x0\ns_barrier_signal -1\ns_barrier_wait 0xffff"
  assert not list(check(SPLIT.format(fixed), cpu="gfx1201", waves=2, lds=512))
  for hole in ("s_wait_dscnt 0x0", "s_barrier_signal -1\ns_barrier_wait 0xffff\ns_wait_dscnt 0x0",
               "s_wait_dscnt 0x0\ns_barrier_signal -1"):
    finding, = check(SPLIT.format(hole), cpu="gfx1201", waves=2, lds=512)
    assert finding.kind == "race"
  late = SPLIT.replace("ds_store_b32 v1, v0\n{}", "s_barrier_signal -1\nds_store_b32 v1, v0\n"
                       "s_wait_dscnt 0x0\ns_barrier_wait 0xffff")
  finding, = check(late, cpu="gfx1201", waves=2, lds=512)
  assert finding.kind == "race"


def test_a_wave_may_read_what_it_wrote() -> None:
  assert not list(check(SHARE.format("s_nop 0"), waves=1, lds=512, kinds={"race", "wait", "barrier"}))


def test_global_memory_without_a_barrier() -> None:
  fixed = "s_waitcnt_vscnt null, 0x0\ns_barrier"
  assert not list(check(GLOBAL.format(fixed), waves=2))
  finding, = check(GLOBAL.format("s_waitcnt_vscnt null, 0x0"), waves=2)
  assert finding.kind == "race" and "global memory" in finding.message


def test_a_read_before_the_other_waves_write() -> None:
  program = """
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 0
  ds_store_b32 v1, v4
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v2, 0x80, v1
  ds_load_b32 v3, v2
  s_waitcnt lgkmcnt(0)
  v_add_nc_u32 v3, 1, v3
  {}
  ds_store_b32 v1, v3
  """
  assert not list(check(program.format("s_barrier"), waves=2, lds=512))
  finding, = check(program.format("s_nop 0"), waves=2, lds=512)
  assert finding.kind == "race" and finding.instruction.startswith("ds_store_b32")


def test_two_waves_store_to_one_place() -> None:
  program = "v_mov_b32 v1, {}\nds_store_b32 v1, v0\ns_waitcnt lgkmcnt(0)\n"
  finding, = check(program.format("0"), waves=2, lds=512)
  assert finding.kind == "race" and finding.pc == finding.other_pc and finding.address == 0
  assert not list(check(program.format("0"), waves=1, lds=512))
  assert not list(check(program.format("0"), waves=1, workgroups=4, lds=512))


def test_atomics_do_not_race_with_each_other_but_with_plain_reads() -> None:
  zero = "v_mov_b32 v1, 0\nv_mov_b32 v2, 0\nds_store_b32 v1, v2\ns_waitcnt lgkmcnt(0)\n"
  only = "s_cmp_eq_u32 s2, 0\n"
  assert not list(check(zero + only + LDS_ATOMIC, waves=1, lds=512))
  start = "v_mov_b32 v9, 0\n"
  finding, = check(start + LDS_ATOMIC + "s_waitcnt lgkmcnt(0)\nds_load_b32 v3, v1\n", waves=2, lds=512, kinds={"race"})
  assert finding.instruction.startswith("ds_load") and str(finding.other_instruction).startswith("ds_add")
  assert not list(check(start + LDS_ATOMIC + "s_waitcnt lgkmcnt(0)\ns_barrier\nds_load_b32 v3, v1\n", waves=2, lds=512,
                        kinds={"race"}))


def test_workgroups_that_store_to_one_place_are_found_when_asked_for() -> None:
  program = "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v3, s2\n{}global_store_b32 v1, v3, s[0:1]\n"
  assert not list(check(program.format(""), workgroups=2))
  kinds = {"race", "workgroup-race"}
  finding, = check(program.format(""), workgroups=2, kinds=kinds)
  assert finding.kind == "workgroup-race" and finding.workgroup == 1
  apart = "v_lshl_add_u32 v1, s2, 8, v1\n"
  assert not list(check(program.format(apart), workgroups=2, kinds=kinds))


@pytest.mark.parametrize("store", ["ds_store_b32 v1, v3", "global_store_b32 v1, v3, s[0:1]"])
def test_a_store_of_what_is_there_already_changes_nothing(store: str) -> None:
  """As on PTX: `*o = 1` by two waves, the `*changed = 1` of a search; another value is a race."""
  same = f"v_mov_b32 v1, 0\nv_mov_b32 v3, {{}}\n{store}\ns_waitcnt lgkmcnt(0)\n"
  apart = "v_readfirstlane_b32 s4, v0\ns_cmp_lt_u32 s4, 32\ns_cbranch_scc1 other\n{}s_endpgm\nother:\n{}"
  kinds = {"race", "workgroup-race"}
  for value, races in (("1", 0), ("v0", 1)):
    assert len(check(same.format(value), waves=2, lds=512)) == races
    assert len(check(apart.format(same.format(1), same.format(value)), waves=2, lds=512, kinds=kinds)) == races
  assert not list(check(same.format("1"), workgroups=2, lds=512, kinds=kinds))
  read = same.format(1) + "{}\nds_load_b32 v4, v1\nglobal_load_b32 v5, v1, s[0:1]\ns_waitcnt vmcnt(0)"
  assert len(check(read.format(""), waves=2, lds=512)) == 1  # who reads it may see what was there before


WAVE_OF = "v_readfirstlane_b32 s4, v0\ns_cmp_lt_u32 s4, 32\n"


@pytest.mark.parametrize(("program", "text"), [
  (WAVE_OF + "s_cbranch_scc1 done\ns_barrier\ndone:\n", "has ended"),
  (WAVE_OF + "s_cbranch_scc1 other\ns_barrier\ns_endpgm\nother:\ns_barrier\n", "another barrier"),
])
def test_barriers_that_not_all_waves_meet(program: str, text: str) -> None:
  finding, = check(program, waves=2)
  assert finding.kind == "barrier" and text in finding.message and finding.other_pc is not None
  assert finding.pc != finding.other_pc and finding.instruction == "s_barrier"


@pytest.mark.parametrize("program", [
  WAVE_OF + "s_cbranch_scc1 done\ns_nop 0\ndone:\ns_barrier\n",
  WAVE_OF + "s_barrier\ns_cbranch_scc1 done\ns_nop 0\ndone:\n",
  "v_cmp_lt_u32 vcc_lo, 5, v0\ns_and_saveexec_b32 s4, vcc_lo\ns_barrier\n",  # in divergent control flow of a wave
  "s_mov_b32 s4, 3\nagain:\ns_barrier\ns_sub_u32 s4, s4, 1\ns_cmp_lg_u32 s4, 0\ns_cbranch_scc1 again\n",
])
def test_barriers_that_all_waves_meet(program: str) -> None: assert not list(check(program, waves=2))
