"""The wait states of gfx942 and gfx90a: each rule just kept and just broken, and the s_nops of LLVM's code, each made
one shorter."""
from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.emulator.checking import check
from tests.emulator.gpu import Gpu, compile_gpu
from tinyhw.emulator.check.checker import Checker
from tinyhw.isa.amdgcn import table

LANE = "v_readfirstlane_b32 s4, v0"
CMPX = "v_cmpx_eq_u32 vcc, v0, v0"
DPP = "v_mov_b32_dpp v3, v2 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf"
MFMA = "v_mfma_f32_32x32x8_f16 v[16:31], v[2:3], v[2:3], v[16:31]"
SMALL = "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[2:3], v[2:3], {}"
# name -> (first instruction, second one, wait states between them)
CASES = {
  "VALU writes SGPR, VMEM reads it": ("v_mov_b32 v3, s0\ns_mov_b32 s5, s1\ns_nop 7\nv_readfirstlane_b32 s4, v3",
                                      "global_load_dword v2, v1, s[4:5]", 5),
  "lane select": (LANE, "v_readlane_b32 s5, v1, s4", 4),
  "v_div_fmas": ("v_cmp_eq_u32 vcc, v0, v0", "v_div_fmas_f32 v2, v1, v1, v1", 4),
  "src_vccz": ("v_cmp_eq_u32 vcc, v0, v0", "v_mov_b32 v2, src_vccz", 5),
  "data of a wide store": ("v_mov_b32 v4, 0\ns_nop 7\nglobal_store_dwordx4 v1, v[4:7], s[0:1]", "v_mov_b32 v5, 0", 2),
  "M0 and s_movrels": ("s_mov_b32 m0, 0", "s_movrels_b32 s5, s6", 1),
  "DPP reads a VGPR": ("v_mov_b32 v2, v0", DPP, 2),
  "DPP under a new EXEC": (CMPX, DPP, 5),
  "an SGPR as constant": (LANE, "v_add_u32 v2, s4, v1", 2),
  "readfirstlane under a new EXEC": (CMPX, "v_readfirstlane_b32 s6, v1", 4),
  "readlane of a new VGPR": ("v_mov_b32 v2, v0", "v_readlane_b32 s4, v2, 0", 1),
  "a result that SDWA moved": (
    "v_add_f16_sdwa v2, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
    "v_mov_b32 v3, v2", 1),
  "a transcendental result": ("v_rcp_f32 v2, v1", "v_add_f32 v3, v2, v2", 1),
  "s_setreg and s_getreg": ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 12",
                            "s_getreg_b32 s4, hwreg(HW_REG_MODE)", 2),
  "a dot product's result": ("v_dot2_f32_f16 v2, v1, v1, v2", "v_mov_b32 v3, v2", 3),
  "another dot product": ("v_dot2_f32_f16 v2, v1, v1, v2", "v_dot4_i32_i8 v2, v1, v1, v2", 3),
  "a matrix of a new VGPR": ("v_mov_b32 v2, 0", MFMA, 2),
  "a matrix under a new EXEC": (CMPX, MFMA, 4),
  "a matrix stored": (MFMA, "global_store_dword v1, v16, s[0:1]", 11),
  "a matrix overwritten": (MFMA, "v_mov_b32 v31, 0", 11),
  "C overwritten under a matrix": (SMALL.format("v[40:43]"), "v_mov_b32 v40, 0", 1),
  "C of another size": (MFMA, SMALL.format("v[16:19]"), 9),
  "C of the same size, 2 passes": (SMALL.format("v[4:7]"), SMALL.format("v[4:7]"), 2),
  "A out of a matrix": (MFMA, "v_mfma_f32_32x32x8_f16 v[32:47], v[16:17], v[2:3], v[32:47]", 11),
}


OLD_MFMA = "v_mfma_f32_32x32x8f16 v[16:31], v[2:3], v[2:3], v[16:31]"
OLD_SMALL = "v_mfma_f32_4x4x4f16 v[4:7], v[2:3], v[2:3], {}"
DOUBLE = "v_mfma_f64_4x4x4f64 v[8:9], v[2:3], v[2:3], v[8:9]"
# gfx90a's that are others, and those that it has not (0)
CASES_OF_CDNA2 = {
  **{name: CASES[name] for name in (
    "VALU writes SGPR, VMEM reads it", "lane select", "v_div_fmas", "src_vccz", "M0 and s_movrels", "DPP reads a VGPR",
    "DPP under a new EXEC", "s_setreg and s_getreg", "a dot product's result", "another dot product")},
  "data of a wide store": (*CASES["data of a wide store"][:2], 1),
  **{name: (*CASES[name][:2], 0) for name in (
    "an SGPR as constant", "readfirstlane under a new EXEC", "readlane of a new VGPR", "a result that SDWA moved",
    "a transcendental result")},
  "a matrix of a new VGPR": ("v_mov_b32 v2, 0", OLD_MFMA, 2),
  "a matrix under a new EXEC": (CMPX, OLD_MFMA, 4),
  "a matrix stored": (OLD_MFMA, "global_store_dword v1, v16, s[0:1]", 19),
  "a matrix overwritten": (OLD_MFMA, "v_mov_b32 v31, 0", 19),
  "C overwritten under a matrix": (OLD_SMALL.format("v[40:43]"), "v_mov_b32 v40, 0", 1),
  "C of another size": (OLD_MFMA, OLD_SMALL.format("v[16:19]"), 16),
  "C of the same size": (OLD_SMALL.format("v[4:7]"), OLD_SMALL.format("v[4:7]"), 0),
  "A out of a matrix": (OLD_MFMA, "v_mfma_f32_32x32x8f16 v[32:47], v[16:17], v[2:3], v[32:47]", 19),
  "a matrix of doubles upon itself": (DOUBLE, DOUBLE, 4),
  "a matrix of doubles stored": (DOUBLE, "global_store_dword v1, v8, s[0:1]", 9),
  "a matrix of doubles into one of floats": (DOUBLE, OLD_SMALL.format("v[8:11]"), 0),
}
EACH = [("gfx942", CASES[name], name) for name in CASES] + [("gfx90a", c, n) for n, c in CASES_OF_CDNA2.items()]


def test_a_division_after_a_division_needs_no_wait() -> None:
  """As LLVM's code has it: v_div_fmas reads VCC, and scalar code gives it the next one's."""
  program = """v_lshlrev_b32 v1, 4, v0\ns_mov_b64 vcc, 0\ns_nop 7\nv_div_fmas_f32 v2, v1, v1, v1
s_mov_b64 vcc, 0\nv_div_fmas_f32 v3, v1, v1, v1"""
  assert not check(program, cpu="gfx942", lanes=64, kinds={"wait-states"}, vgprs=128).rows()


@pytest.mark.parametrize("cpu, case", [pytest.param(c, case, id=f"{c} {name}") for c, case, name in EACH])
def test_each_rule_just_kept_and_just_broken(cpu: str, case: tuple[str, str, int]) -> None:
  first, second, states = case
  def run(between: str) -> list[str]:
    program = f"v_lshlrev_b32 v1, 4, v0\ns_nop 15\n{first}\n{between}\n{second}"
    return [str(f) for f in check(program, cpu=cpu, lanes=64, kinds={"wait-states"}, vgprs=128)]
  def nops(count: int) -> str: return "s_nop 7\n" * (count // 8) + f"s_nop {count % 8 - 1}\n" * (count % 8 > 0)
  assert not run(nops(states))
  if not states: return
  finding, = run(nops(states - 1))
  assert f"{states} wait states are needed" in finding and f"there are {states - 1} " in finding


@pytest.mark.parametrize("program", [
  "v_dot2_f32_f16 v2, v1, v1, v2\nv_dot2_f32_f16 v2, v1, v1, v2",  # forwarded to the accumulator
  f"{MFMA}\n{MFMA}",
  "v_cmp_eq_u32 vcc, v0, v0\nv_addc_co_u32 v2, vcc, v1, v1, vcc",  # a carry, not a constant
  "s_mov_b32 s4, 0\nv_add_u32 v2, s4, v1",  # the hardware sees to it
  "v_mov_b32 v2, v0\nv_mov_b32 v3, v2",
])
def test_what_the_hardware_resolves_is_no_finding(program: str) -> None:
  text = "v_lshlrev_b32 v1, 4, v0\ns_nop 15\n" + program
  assert not list(check(text, cpu="gfx942", lanes=64, kinds={"wait-states"}, vgprs=128))


# intrinsic, types of A and C, elements of C
FORMS = (
  ("f32.32x32x1f32", "float", "float", 32), ("f32.16x16x1f32", "float", "float", 16),
  ("f32.4x4x1f32", "float", "float", 4), ("f32.32x32x2f32", "float", "float", 16),
  ("f32.16x16x4f32", "float", "float", 4), ("f32.32x32x4f16", "<4 x half>", "float", 32),
  ("f32.16x16x4f16", "<4 x half>", "float", 16), ("f32.4x4x4f16", "<4 x half>", "float", 4),
  ("f32.32x32x8f16", "<4 x half>", "float", 16), ("f32.16x16x16f16", "<4 x half>", "float", 4),
  ("i32.16x16x4i8", "i32", "i32", 16), ("i32.32x32x16.i8", "i64", "i32", 16), ("f64.16x16x4f64", "double", "double", 4),
  ("f64.4x4x4f64", "double", "double", 1), ("f32.16x16x8.xf32", "<2 x float>", "float", 4),
  ("f32.32x32x16.bf8.fp8", "i64", "float", 16))
FORMS_OF_CDNA2 = (*(f for f in FORMS if not f[0].endswith((".i8", ".xf32", ".fp8"))),
                  ("f32.32x32x4bf16", "<2 x i16>", "float", 16), ("f32.16x16x16bf16.1k", "<4 x i16>", "float", 4))
# What becomes of the product: stored, accumulated upon, added to itself, multiplied
USES = ("store", "chain", "add", "multiply")
SIZES = {"float": 4, "i32": 4, "double": 8, "i64": 8, "<4 x half>": 8, "<2 x float>": 8, "<2 x i16>": 4, "<4 x i16>": 8}


def matrix_kernel(name: str, a: str, c: str, count: int, use: str) -> str:
  """A kernel that multiplies matrices and uses the product."""
  kind = f"<{count} x {c}>" if count > 1 else c
  wide, narrow = count * SIZES[c] * 8, SIZES[a] * 8
  def product(x: str, z: str) -> str:
    return f"call {kind} @llvm.amdgcn.mfma.{name}({a} {x}, {a} {x}, {kind} {z}, i32 0, i32 0, i32 0)"
  narrowed = f"%t = {'trunc' if wide > narrow else 'bitcast'} i{wide} %b to i{narrow}" if wide > narrow else ""
  body = {
    "store": f"%r = {product('%x', '%z')}",
    "chain": f"%q = {product('%x', '%z')}\n  %r = {product('%x', '%q')}",
    "add": f"%q = {product('%x', '%z')}\n  %r = {'add' if c == 'i32' else 'fadd'} {kind} %q, %q",
    "multiply": f"%q = {product('%x', '%z')}\n  %b = bitcast {kind} %q to i{wide}\n  {narrowed}\n"
                f"  %y = bitcast i{narrow} %{'t' if narrowed else 'b'} to {a}\n  %r = {product('%y', '%z')}"}[use]
  return f"""
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %o) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr {a}, ptr addrspace(1) %a, i32 %i
  %x = load {a}, ptr addrspace(1) %p
  %z = load {kind}, ptr addrspace(1) %a, align 16
  {body}
  store {kind} %r, ptr addrspace(1) %o, align 16
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare {kind} @llvm.amdgcn.mfma.{name}({a}, {a}, {kind}, i32, i32, i32)
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64" }}
"""


def shortened(name: str, a: str, c: str, count: int, use: str, cpu: str = "gfx942") -> list[str]:
  """Run LLVM's kernel, then once for each s_nop made one shorter; the s_nops whose lack is not found."""
  gpu = Gpu(1 << 20, cpu)
  kernel = gpu.load(compile_gpu(matrix_kernel(name, a, c, count, use), 2, cpu=cpu))["k"]
  source, target = gpu.put(np.zeros(8192, np.uint8)), gpu.put(np.zeros(8192, np.uint8))

  def clean() -> bool:
    checker = Checker({"wait-states"})
    gpu.launch(kernel, (1, 1, 1), (64, 1, 1), [source, target], observer=checker)
    return not len(checker.report)
  assert clean(), (name, use)
  missed, pc = [], kernel.entry
  while (i := table("gfx90a" if cpu == "gfx90a" else "gfx9").decode(gpu.space.read(pc, 16))).mnemonic != "s_endpgm":
    if i.mnemonic == "s_nop" and (count := i.fields["simm16"]):
      gpu.space.write(pc, struct.pack("<I", i.words[0] - 1))
      if clean(): missed.append(f"{name} {use} {i}")
      gpu.space.write(pc, i.data)
    pc += i.size
  return missed


def test_every_s_nop_of_llvms_matrix_kernels_is_needed() -> None:
  """LLVM gives one product of 2 passes 2 states before the next one upon it; the manual's table gives it 0."""
  chosen = [(form, USES[(k + more) % 4]) for k, form in enumerate(FORMS) for more in (0, 1)]
  missed = [m for form, use in chosen for m in shortened(*form, use)]
  assert missed in ([], ["f32.4x4x1f32 chain s_nop 1"])


def test_every_s_nop_of_llvms_matrix_kernels_for_gfx90a_is_needed() -> None:
  chosen = [(form, USES[(k + more) % 4]) for k, form in enumerate(FORMS_OF_CDNA2) for more in (0, 1)]
  assert not [m for form, use in chosen for m in shortened(*form, use, "gfx90a")]
