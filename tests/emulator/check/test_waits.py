"""Results used before their wait: programs with exactly one such hazard, each beside its mended twin."""
from __future__ import annotations

import pytest

from tests.emulator.checking import check

LOAD = "v_lshlrev_b32 v1, 2, v0\nglobal_load_b32 v2, v1, s[0:1]\n"
# name -> (generation, program with a hole for the wait, the wait that mends it, a wait that does not, register)
CASES = {
  "a loaded register is read": ("gfx1100", LOAD + "{}\nv_add_f32 v3, v2, v2", "s_waitcnt vmcnt(0)",
                                "s_waitcnt lgkmcnt(0)", "v2"),
  "a loaded register is overwritten": ("gfx1100", LOAD + "{}\nv_mov_b32 v2, 0", "s_waitcnt vmcnt(0)", "s_nop 5", "v2"),
  "a loaded register is stored": ("gfx1100", LOAD + "{}\nglobal_store_b32 v1, v2, s[0:1]", "s_waitcnt vmcnt(0)",
                                  "s_waitcnt_vscnt null, 0x0", "v2"),
  "the older of two loads": (
    "gfx1100", LOAD + "global_load_b32 v3, v1, s[0:1] offset:4\n{}\nv_add_f32 v4, v2, v2", "s_waitcnt vmcnt(1)",
    "s_waitcnt vmcnt(2)", "v2"),
  "a store counts apart": (
    "gfx1100", LOAD + "global_store_b32 v1, v0, s[0:1]\n{}\nv_add_f32 v4, v2, v2", "s_waitcnt vmcnt(0)",
    "s_waitcnt vmcnt(1)", "v2"),
  "scalar loads return in any order": (
    "gfx1100", "s_load_b32 s4, s[0:1], 0x0\ns_load_b32 s5, s[0:1], 0x4\n{}\ns_mov_b32 s6, s4", "s_waitcnt lgkmcnt(0)",
    "s_waitcnt lgkmcnt(1)", "s4"),
  "a scalar load's register is overwritten": (
    "gfx1100", "s_load_b32 s4, s[0:1], 0x0\n{}\ns_mov_b32 s4, 0", "s_waitcnt lgkmcnt(0)", "s_nop 0", "s4"),
  "LDS returns in order": (
    "gfx1100", "v_lshlrev_b32 v1, 2, v0\nds_store_b32 v1, v0\nds_load_b32 v2, v1\nds_load_b32 v3, v1\n{}\n"
    "v_add_f32 v4, v2, v2", "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(2)", "v2"),
  "LDS behind a scalar load": (
    "gfx1100", "v_lshlrev_b32 v1, 2, v0\nds_store_b32 v1, v0\nds_load_b32 v2, v1\ns_load_b32 s4, s[0:1], 0x0\n{}\n"
    "v_add_f32 v4, v2, v2", "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(1)", "v2"),
  "an atomic that returns": (
    "gfx1100", "v_lshlrev_b32 v1, 2, v0\nglobal_atomic_add_u32 v2, v1, v0, s[0:1] glc\n{}\nv_mov_b32 v3, v2",
    "s_waitcnt vmcnt(0)", "s_waitcnt_vscnt null, 0x0", "v2"),
  "a flat load that global memory serves": (
    "gfx1100", "v_mov_b32 v2, s0\nv_mov_b32 v3, s1\nflat_load_b32 v4, v[2:3]\n{}\nv_mov_b32 v5, v4",
    "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_waitcnt lgkmcnt(0)", "v4"),
  "a register that M0 names": ("gfx1100", LOAD + "s_mov_b32 m0, 1\n{}\nv_movrels_b32 v5, v1", "s_waitcnt vmcnt(0)",
                               "s_nop 0", "v2"),
  "a readlane of another lane's value": (
    "gfx1100", LOAD + "s_mov_b32 exec_lo, 1\n{}\nv_readlane_b32 s4, v2, 7", "s_waitcnt vmcnt(0)", "s_nop 0", "v2"),
  "gfx12: a loaded register is read": ("gfx1201", LOAD + "{}\nv_add_f32 v3, v2, v2", "s_wait_loadcnt 0x0",
                                       "s_wait_storecnt 0x0", "v2"),
  "gfx12: LDS and loads in one wait": (
    "gfx1201", LOAD + "ds_store_b32 v1, v0\nds_load_b32 v3, v1\n{}\nv_add_f32 v4, v3, v3", "s_wait_loadcnt_dscnt 0x0",
    "s_wait_loadcnt 0x0", "v3"),
  "gfx12: a value of the scalar unit": (
    "gfx1201", "v_mov_b32 v1, s3\ns_mov_b32 s2, 1\n{}\ns_mov_b32 s4, s2", "s_wait_alu 0xfffe", "s_wait_alu 0xfffd",
    "s2"),
  "gfx12: a carry": (
    "gfx1201", "v_add_co_u32 v1, vcc_lo, v0, v0\nv_add_co_ci_u32 v2, vcc_lo, v0, v0, vcc_lo\n{}\n"
    "v_add_co_ci_u32 v3, vcc_lo, v0, v0, vcc_lo\n", "s_wait_alu 0xfffd", "s_wait_alu 0xfffe", "vcc_lo"),
  "gfx12: a mask that a compare writes": (
    "gfx1201", "v_mov_b32 v1, s3\nv_cmp_eq_u32 s2, v0, v0\n{}\nv_cndmask_b32 v2, v0, v0, s2", "s_wait_alu 0xf1ff",
    "s_wait_alu 0xfffd", "s2"),
  "gfx942: loads and stores count together": (
    "gfx942", LOAD.replace("b32 v2", "dword v2") + "global_store_dword v1, v0, s[0:1]\n{}\nv_add_f32 v4, v2, v2",
    "s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(2)", "v2"),
  "gfx942: LDS": ("gfx942", "v_lshlrev_b32 v1, 2, v0\nds_write_b32 v1, v0\nds_read_b32 v2, v1\n{}\nv_mov_b32 v3, v2",
                  "s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)", "v2"),
  "gfx942: scalar loads": ("gfx942", "s_load_dword s4, s[0:1], 0x0\n{}\ns_mov_b32 s6, s4", "s_waitcnt lgkmcnt(0)",
                           "s_waitcnt lgkmcnt(1)", "s4"),
  "gfx12: scalar loads": ("gfx1201", "s_load_b32 s4, s[0:1], 0x0\n{}\ns_mov_b32 s6, s4", "s_wait_kmcnt 0x0",
                          "s_wait_dscnt 0x0", "s4"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_missing_wait_is_found_and_each_wait_counts(name: str) -> None:
  cpu, program, right, wrong, register = CASES[name]
  lanes = 64 if cpu == "gfx942" else 32
  assert not list(check(program.format(right), cpu=cpu, lds=1024, lanes=lanes))
  for wait in ("", wrong):
    finding, = check(program.format(wait), cpu=cpu, lds=1024, lanes=lanes)
    assert finding.kind == "wait" and finding.register == register and finding.workgroup == finding.wave == 0
    assert finding.other_pc is not None and finding.other_pc < finding.pc


@pytest.mark.parametrize(("register", "left"), [("s6", "v_cmp_eq_u32 s6, v0, v0"), (
  "vcc_lo", "v_cmp_eq_u32 vcc_lo, v0, v0")])
def test_a_scalar_instruction_that_reads_waits_for_the_vector_unit(register: str, left: str) -> None:
  """It is not issued before vector instructions have written their SGPRs (RDNA4 ISA manual, 5.7); a move of a constant
  reads none."""
  program = f"v_cndmask_b32 v1, v0, v0, {register}\n{left}\n{{}}\nv_cndmask_b32 v2, v0, v0, {register}"
  start = f"s_mov_b32 {register}, 0\ns_mov_b32 s8, 0\n"
  assert not list(check(start + program.format("s_add_co_u32 s9, s8, 1"), cpu="gfx1201"))
  for other in ("s_nop 0", "s_mov_b32 s9, 1", "v_mov_b32 v3, s8"):
    finding, = check(start + program.format(other), cpu="gfx1201")
    assert finding.kind == "wait" and finding.register == register


INTO_LDS = """
v_lshlrev_b32 v1, 2, v0
s_mov_b32 m0, 0
s_nop 4
global_load_lds_dword v1, s[0:1]
{}
ds_read_b32 v3, v1
s_waitcnt lgkmcnt(0)
"""


def test_a_load_into_lds_is_waited_for_before_lds_is_read() -> None:
  assert not list(check(INTO_LDS.format("s_waitcnt vmcnt(0)"), cpu="gfx942", lanes=64, lds=1024))
  for wait in ("s_waitcnt lgkmcnt(0)", "s_nop 0"):
    finding, = check(INTO_LDS.format(wait), cpu="gfx942", lanes=64, lds=1024)
    assert finding.kind == "wait" and finding.address == 0
    assert finding.instruction.startswith("ds_read") and str(finding.other_instruction).startswith("global_load_lds")


@pytest.mark.parametrize("program", [
  "global_load_b32 v2, v1, s[0:1]\nglobal_load_b32 v2, v1, s[0:1] offset:4\ns_waitcnt vmcnt(0)\nv_mov_b32 v3, v2",
  "global_load_b32 v2, v1, s[0:1]\ns_waitcnt vmcnt(5)\ns_waitcnt vmcnt(0)\nv_mov_b32 v3, v2",
  # lanes that the load does not write
  "s_mov_b32 exec_lo, 0xff\nglobal_load_b32 v2, v1, s[0:1]\ns_mov_b32 exec_lo, 0xff00\nv_mov_b32 v2, 1",
  # an address that is computed anew while the load is under way
  "global_load_b32 v2, v1, s[0:1]\nv_mov_b32 v1, 0\ns_mov_b32 s0, 0",
])
def test_what_the_hardware_orders_is_no_finding(program: str) -> None:
  assert not list(check("v_lshlrev_b32 v1, 2, v0\n" + program))
