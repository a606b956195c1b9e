"""What nobody has written decides something: programs with one such use, each beside its mended twin."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.checking import check
from tests.emulator.gpu import Gpu, compile_gpu
from tinyhw.emulator.check.checker import Checker

STORE = "v_lshlrev_b32 v1, 2, v0\n"
# name -> (program with a hole, what mends it, register of the finding, words of its message)
CASES = {
  "a stored register": (STORE + "{}\nglobal_store_b32 v1, v5, s[0:1]", "v_mov_b32 v5, 0", "v5", "v5, which nobody"),
  "a sum of an undefined register": (
    STORE + "{}\nv_add_nc_u32 v6, v5, v0\nglobal_store_b32 v1, v6, s[0:1]", "v_mov_b32 v5, 0", "v6", "v5, which"),
  "an undefined accumulator": (
    STORE + "{}\nv_fmac_f32 v5, v0, v0\nglobal_store_b32 v1, v5, s[0:1]", "v_mov_b32 v5, 0", "v5", "v5, which nobody"),
  "lanes that a divergent write leaves out": (
    STORE + "{}\ns_mov_b32 exec_lo, 0xff\nv_mov_b32 v5, 1\ns_mov_b32 exec_lo, -1\nglobal_store_b32 v1, v5, s[0:1]",
    "v_mov_b32 v5, 0", "v5", "stored"),
  "an address": ("{}\nglobal_load_b32 v2, v5, s[0:1]\ns_waitcnt vmcnt(0)", "v_mov_b32 v5, 0", "v5", "address"),
  "a scalar address": ("{}\ns_load_b32 s8, s[0:1], s6\ns_waitcnt lgkmcnt(0)", "s_mov_b32 s6, 0", "s6", "address"),
  "a scalar branch": ("{}\ns_cmp_eq_u32 s6, 0\ns_cbranch_scc1 done\ns_nop 0\ndone:", "s_mov_b32 s6, 0", "scc",
                      "where to go depends on s6"),
  "a branch on lanes": ("{}\nv_cmp_eq_u32 vcc_lo, 0, v5\ns_cbranch_vccz done\ns_nop 0\ndone:", "v_mov_b32 v5, 0",
                        "vcc_lo", "where to go depends on v5"),
  "EXEC": ("{}\nv_cmp_gt_u32 vcc_lo, 16, v5\ns_and_saveexec_b32 s6, vcc_lo", "v_mov_b32 v5, 0", "vcc_lo", "EXEC"),
  "LDS that nobody wrote": (
    STORE + "{}\nds_load_b32 v5, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_b32 v1, v5, s[0:1]",
    "ds_store_b32 v1, v0\ns_waitcnt lgkmcnt(0)", "v5", "LDS at 0x0"),
  "LDS of which a half was written": (
    STORE + "ds_store_b16 v1, v0\n{}\nds_load_b32 v5, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_b32 v1, v5, s[0:1]",
    "ds_store_b16 v1, v0 offset:2", "v5", "LDS at 0x0"),
  "scratch that nobody wrote": (
    STORE + "{}\nscratch_load_b32 v5, off, off offset:16\ns_waitcnt vmcnt(0)\nglobal_store_b32 v1, v5, s[0:1]",
    "scratch_store_b32 off, v0, off offset:16", "v5", "scratch at 0x10"),
  "a spilled undefined register": (
    STORE + "{}\nscratch_store_b32 off, v5, off offset:16\nscratch_load_b32 v6, off, off offset:16\n"
    "s_waitcnt vmcnt(0)\nglobal_store_b32 v1, v6, s[0:1]", "v_mov_b32 v5, 0", "v6", "scratch at 0x10"),
  "a lane that nobody wrote": (
    STORE + "{}\ns_mov_b32 exec_lo, 0xff\nv_mov_b32 v5, 1\ns_mov_b32 exec_lo, -1\nv_readlane_b32 s6, v5, 9\n"
    "s_cmp_eq_u32 s6, 0\ns_cbranch_scc1 done\ns_nop 0\ndone:", "v_mov_b32 v5, 0", "scc", "where to go"),
  "a register that M0 names": (
    STORE + "{}\ns_mov_b32 m0, 2\nv_movrels_b32 v7, v3\nglobal_store_b32 v1, v7, s[0:1]", "v_mov_b32 v5, 0", "v7",
    "v5, which nobody"),
  "a register that M0 has written": (
    STORE + "{}\nglobal_store_b32 v1, v5, s[0:1]", "s_mov_b32 m0, 2\nv_movreld_b32 v3, v0", "v5", "v5, which nobody"),
  "the upper half of a register": (
    STORE + "{}\nglobal_load_d16_b16 v5, v1, s[0:1]\ns_waitcnt vmcnt(0)\nglobal_store_b32 v1, v5, s[0:1]",
    "v_mov_b32 v5, 0", "v5", "v5, which nobody"),
}


def test_a_half_that_is_loaded_into_a_whole_register() -> None:
  """With ECC, as MI300 has it, a 16-bit load writes its register as a whole (CDNA3 ISA manual, 9.1.6)."""
  program = STORE + "global_load_short_d16{} v5, v1, s[0:1]\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v5, s[0:1]"
  for half in ("", "_hi"): assert not list(check(program.format(half), cpu="gfx942", lanes=64))


def test_a_part_of_a_register_that_is_left_as_it_was() -> None:
  program = STORE + "{}\nv_mov_b32_sdwa v5, v0 dst_sel:WORD_1 dst_unused:{} src0_sel:DWORD\n" \
    "global_store_dword v1, v5, s[0:1]"
  for first, unused, count in (("s_nop 0", "UNUSED_PRESERVE", 1), ("v_mov_b32 v5, 0", "UNUSED_PRESERVE", 0),
                               ("s_nop 0", "UNUSED_PAD", 0)):
    assert len(check(program.format(first, unused), cpu="gfx942", lanes=64)) == count


@pytest.mark.parametrize("name", CASES)
def test_each_use_is_found_and_each_write_counts(name: str) -> None:
  program, mend, register, words = CASES[name]
  assert not list(check(program.format(mend), lds=1024, scratch=True))
  finding, = check(program.format(""), lds=1024, scratch=True)
  assert finding.kind == "undefined" and finding.register == register and words in finding.message, finding


@pytest.mark.parametrize("program", [
  "v_mov_b32 v6, v5\nscratch_store_b32 off, v6, off",  # copying and spilling decides nothing
  "v_writelane_b32 v5, s6, 3\nv_readlane_b32 s7, v5, 3",
  "v_and_b32 v6, 0, v5\nglobal_store_b32 v1, v6, s[0:1]",
  "v_xor_b32 v5, v0, v0\nglobal_store_b32 v1, v5, s[0:1]",
  "v_or_b32 v6, -1, v5\nglobal_store_b32 v1, v6, s[0:1]",
  "global_load_d16_b16 v5, v1, s[0:1]\ns_waitcnt vmcnt(0)\nv_and_b32 v6, 0xffff, v5\nglobal_store_b32 v1, v6, s[0:1]",
  "global_load_d16_b16 v5, v1, s[0:1]\ns_waitcnt vmcnt(0)\nglobal_store_b16 v1, v5, s[0:1]",
  "global_load_d16_b16 v5, v1, s[0:1]\ns_waitcnt vmcnt(0)\nv_lshlrev_b32 v6, 16, v5\nglobal_store_b32 v1, v6, s[0:1]",
  "global_load_d16_b16 v5, v1, s[0:1]\nglobal_load_d16_hi_b16 v5, v1, s[0:1]\ns_waitcnt vmcnt(0)\n"
  "global_store_b32 v1, v5, s[0:1]",
  "v_cndmask_b32 v6, v0, v5, s6\nv_and_b32 v6, 0, v6\nglobal_store_b32 v1, v6, s[0:1]",
  "s_and_b32 s7, s6, 0\ns_cbranch_scc1 done\ns_nop 0\ndone:",
  "s_or_b32 s7, s6, 1\ns_cbranch_scc1 done\ns_nop 0\ndone:",
  # lanes that are switched off
  "s_mov_b32 exec_lo, 0xff\nv_mov_b32 v5, 1\nglobal_store_b32 v1, v5, s[0:1]",
  "v_cmp_gt_u32 vcc_lo, 16, v0\ns_and_saveexec_b32 s6, vcc_lo\ns_or_b32 exec_lo, exec_lo, s6",
])
def test_what_decides_nothing_is_no_finding(program: str) -> None:
  assert not list(check(STORE + program, lds=1024, scratch=True))


# On every generation: programs that hold what nobody wrote (v5, v7, the memory at 64 of LDS) and decide nothing by it.
# {store} and {load} are LDS's dwords, {out} a store to memory, {add} an addition.
NAMES = {
  "gfx1100": {"store": "ds_store_b32", "load": "ds_load_b32", "out": "global_store_b32", "wait": "s_waitcnt lgkmcnt(0)",
              "add": "v_add_nc_u32", "mad": "v_mad_u64_u32", "lanes": "vcc_lo"},
  "gfx1201": {"store": "ds_store_b32", "load": "ds_load_b32", "out": "global_store_b32", "wait": "s_wait_dscnt 0x0",
              "add": "v_add_nc_u32", "mad": "v_mad_co_u64_u32", "lanes": "vcc_lo"},
  "gfx942": {"store": "ds_write_b32", "load": "ds_read_b32", "out": "global_store_dword",
             "wait": "s_waitcnt lgkmcnt(0)", "add": "v_add_u32", "mad": "v_mad_u64_u32", "lanes": "vcc"}}
NAMES["gfx1150"] = NAMES["gfx1100"]
HARMLESS = {
  "LDS that is stored undefined, loaded and thrown away":
    "{store} v1, v5\n{wait}\n{load} v6, v1\n{wait}\nv_cndmask_b32 v6, v6, v0, {lanes}\n{out} v1, v6, s[0:1]",
  "LDS that nobody wrote and a select throws away":
    "{load} v6, v1\n{wait}\nv_cndmask_b32 v6, v6, v0, {lanes}\n{out} v1, v6, s[0:1]",
  "LDS of which an undefined half is not used":
    "v_mov_b32 v7, 0xffff\nv_bfi_b32 v6, v7, v0, v5\n{store} v1, v6\n{wait}\n{load} v6, v1\n{wait}\n"
    "v_and_b32 v6, 0xffff, v6\n{out} v1, v6, s[0:1]",
  "the low half of a product whose high half is undefined":
    "v_mov_b32 v6, v0\n{mad} v[8:9], {lanes}, v0, v1, v[6:7]\n{out} v1, v8, s[0:1]",
  "a sum whose upper bits are undefined": "v_lshlrev_b32 v6, 8, v5\n{add} v6, v6, v0\nv_and_b32 v6, 0xff, v6\n"
                                          "{out} v1, v6, s[0:1]"}


@pytest.mark.parametrize("cpu", NAMES)
@pytest.mark.parametrize("name", HARMLESS)
def test_a_copy_is_no_use(cpu: str, name: str) -> None:
  lanes = 64 if cpu == "gfx942" else 32
  start = STORE + (f"s_mov_b{lanes} {NAMES[cpu]['lanes']}, -1\ns_nop 4\n")
  assert not list(check((start + HARMLESS[name]).format(**NAMES[cpu]), cpu=cpu, lanes=lanes, lds=1024,
                        kinds={"undefined"}))


@pytest.mark.parametrize("cpu", NAMES)
def test_what_went_through_lds_is_found_at_its_use(cpu: str) -> None:
  lanes = 64 if cpu == "gfx942" else 32
  program = STORE + "{store} v1, v5\n{wait}\n{load} v6, v1\n{wait}\n{out} v1, v6, s[0:1]"
  finding, = check(program.format(**NAMES[cpu]), cpu=cpu, lanes=lanes, lds=1024)
  assert finding.kind == "undefined" and finding.register == "v6" and "stored to memory" in finding.message


@pytest.mark.parametrize(("program", "found"), [
  ("v_pk_mul_f32 v[8:9], v[4:5], v[0:1] op_sel_hi:[0,1]", 0), ("v_pk_mul_f32 v[8:9], v[4:5], v[0:1]", 1),
  ("v_pk_fma_f32 v[8:9], v[4:5], v[4:5], v[0:1] op_sel_hi:[0,0,1]", 0),
  ("v_pk_add_f32 v[8:9], v[6:7], v[0:1] op_sel:[1,0]", 0), ("v_pk_add_f32 v[8:9], v[6:7], v[0:1] op_sel_hi:[0,1]", 1),
  ("v_pk_mov_b32 v[8:9], v[4:5], v[6:7] op_sel:[0,1]", 0), ("v_pk_mov_b32 v[8:9], v[4:5], v[6:7] op_sel:[1,1]", 1)])
def test_components_that_are_not_used_are_not_read(program: str, found: int) -> None:
  """Of the pairs v[4:5] and v[6:7] only v4 and v7 are written."""
  start = "v_lshlrev_b32 v1, 3, v0\nv_mov_b32 v4, v0\nv_mov_b32 v7, v0\n"
  whole = start + program + "\ns_nop 1\nglobal_store_dwordx2 v1, v[8:9], s[0:1]"
  assert len(check(whole, cpu="gfx942", lanes=64, kinds={"undefined"})) == found


COPY = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %x
  %q = getelementptr i32, ptr addrspace(1) %b, i32 %x
  %v = load i32, ptr addrspace(1) %p
  store i32 %v, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""


def test_device_memory_that_nobody_wrote() -> None:
  gpu = Gpu(1 << 20)
  kernel = gpu.load(compile_gpu(COPY))["k"]
  written, fresh, out = gpu.put(np.arange(64, dtype=np.uint32)), gpu.alloc(4096), gpu.alloc(4096)
  checker = Checker()
  gpu.launch(kernel, (1, 1, 1), (64, 1, 1), [written, out], observer=checker)
  assert not len(checker.report)
  gpu.launch(kernel, (1, 1, 1), (64, 1, 1), [fresh, out], observer=checker)
  finding, = checker.report
  assert f"device memory at {fresh:#x}, which nobody has written" in finding.message
  assert str(finding.other_instruction).startswith("global_load_b32")
