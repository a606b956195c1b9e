"""The assembler as people write: spellings that LLVM takes give LLVM's bytes, and whole listings its sections."""
from __future__ import annotations

import io
import re

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile

from tests.isa.test_assemble import llvm_assembles
from tests.isa.test_decode import PROGRAM
from tinyhw.arch import decoded
from tinyhw.core.errors import InvalidArgument
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.isa.amdgcn.program import program
from tinyhw.tools.ledger.llvm import LLVM_MC

# Of every generation, where it has the instruction. Numbers take the shortest encoding that holds them.
SPELLINGS = """
v_add_f32 v0, v1, v2
V_ADD_F32 v[0], v[1], v[2]
v_mov_b32 v0, 0x40
v_mov_b32 v0, 0x3f800000
v_mov_b32 v0, 0x3e22f983
v_mov_b32 v0, 0xFFFFFFF0
v_mov_b32 v0, 4294967295
v_mov_b32 v0, 1.0e3
v_mov_b32 v0, -0x80000000
v_mov_b32 v0, 0.15915494
s_mov_b32 s0, 3.14
s_mov_b32 s0, 0b101
s_mov_b32 s0, 1<<4
s_mov_b32 s0, (3+4)*8
s_mov_b64 s[0:1], 0x3ff0000000000000
s_mov_b64 s[0:1], 0xffffffffffffffff
s_mov_b64 s[0:1], 0xffffffff
s_mov_b64 s[0:1], 1.0
s_add_u32 s0, s0, 0xffffffff
v_mul_f32 v0, 2.5, v1
v_mul_f32 v0, -s0, v1
v_max_f32 v0, -|v0|, v1
v_fma_f32 v0, |v1|, -v2, abs(v3)
v_fma_f32 v0, v1, 0x3f000000, v2
v_add_f64 v[0:1], v[2:3], 0x4000000000000000
v_add_f16 v0, 0x3c00, v1
v_add_f16 v0, 3.5, v1
v_add_f16 v0, 0xfff0, v1
v_mul_lo_u16 v0, 0xffff, v1
v_mul_lo_u16 v0, 1.0, v1
v_pk_add_f16 v0, 0x3c00, v1
v_pk_add_u16 v0, 0x10, v1
v_lshlrev_b64 v[0:1], 0x2, v[2:3]
v_fmaak_f32 v0, v1, v2, 1.5
v_fmamk_f32 v0, v1, 0.5, v2
v_bfe_u32 v0, v1, 3, 0x5
v_mov_b32 v0, v1 row_shl:1
v_mov_b32_dpp v0, v1 row_shr:0x1
v_mov_b32_dpp v0, v1 row_shl:1 bound_ctrl:0
v_mov_b32_dpp v0, v1 row_shl:1 row_mask:15 bank_mask:15
s_waitcnt vmcnt(0) lgkmcnt(0)
s_waitcnt lgkmcnt(0), vmcnt(0)
s_waitcnt vmcnt(0) & expcnt(0)
s_waitcnt vmcnt_sat(100)
s_delay_alu instid0(VALU_DEP_1)|instid1(VALU_DEP_2)
s_getreg_b32 s0, hwreg(HW_REG_MODE,0,32)
s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3
s_setreg_imm32_b32 hwreg(HW_REG_MODE), -1
s_load_b64 s[0:1], s[4:5], null
s_load_dwordx2 s[0:1], s[4:5], 0x10
global_load_dword v0, v[2:3], off
global_load_dword v0, v1, s[0:1] offset:-0x10
buffer_load_dword v0, v1, s[0:3], 0 offen offset:4
ds_read_b32 v0, v1 offset:0x10
ds_write_b32 v0, v1 offset:4
v_add_u32 v0, 0x40, v1
v_cvt_f32_f16 v0, v1
image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:2D
v_add3_u32 v0, s0, v1, 5
v_cndmask_b32_e64 v0, 0, 1, s0
s_movk_i32 s0, -1
s_cbranch_execz 4
s_branch -1
""".strip().splitlines()


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation, least", [("gfx9", 45), ("gfx11", 55), ("gfx12", 45)])
def test_spellings_that_llvm_takes_give_llvms_bytes(generation: str, least: int) -> None:
  same, wrong = 0, []
  for line, theirs in zip(SPELLINGS, llvm_assembles(generation, SPELLINGS), strict=True):
    if theirs is None: continue
    try: mine = assemble(line, table(generation))
    except InvalidArgument as error: mine = str(error).encode()
    same += mine == theirs
    if mine != theirs: wrong.append(f"{line}: {mine!r}, LLVM {theirs.hex()}")
  assert not wrong, "\n".join(wrong)
  assert same >= least, same


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("optimization", [0, 2])
def test_a_compilers_whole_listing_gives_its_code(optimization: int, cpu: str) -> None:
  """clang -S and -c agree: labels, alignment, directives, several functions."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=cpu, opt=optimization)
  listing = machine.emit_assembly(llvm.parse_assembly(PROGRAM))
  elf = ELFFile(io.BytesIO(machine.emit_object(llvm.parse_assembly(PROGRAM))))
  code = b"".join(i.code for i in program(listing, table(decoded(cpu).isa), "listing"))
  assert "branch" in listing and code == elf.get_section_by_name(".text").data()


def test_labels_comments_and_symbols() -> None:
  text = """
    .set N, 4            // a constant
    size = N * 2
  start: v_mov_b32 v0, size /* and
    a comment of lines */
  loop:                  ; in LLVM's way
    s_sub_u32 s0, s0, N
    s_cbranch_scc0 loop
    s_cbranch_scc1 end
    s_branch start
    .p2align 4
  end: s_endpgm
    .long 1, size
  """
  items = program(text, table("gfx11"), "test")
  assert b"".join(i.code for i in items).hex() == "".join((  # llvm-mc 19's bytes
    "8802007e", "00848080", "feffa1bf", "0400a2bf", "fbffa0bf", "000080bf" * 3, "0000b0bf", "0100000008000000"))
  assert [i.number for i in items][:2] == [4, 7]


@pytest.mark.parametrize("text, message", [
  ("s_nop 0\ns_branch nowhere", "t: line 2: 's_branch nowhere': there is no label 'nowhere'"),
  ("x:\nx:", "t: line 2: 'x' is a label already"),
  ("1: s_branch 1b", "t: line 1: '1' is a local label; give it a name"),
  (".macro m", "t: line 1: directive '.macro' is not taken; code, labels, numbers and alignment are"),
  ("/* a\nb */ s_add_u32 s0, s0, f@rel32@lo+4", "addresses of symbols are a linker's to fill in"),
  ("s_branch x\n.fill 40000, 4\nx:", "t: line 1: 's_branch x': 'x' is 160000 bytes away; a branch reaches whole"),
  ("s_branch 2.5", "'2.5' is no branch target"),
  (".p2align 40", "no power of two"), ("x = y", "'y' is no number"),
])
def test_what_is_not_taken_is_named(text: str, message: str) -> None:
  with pytest.raises(InvalidArgument, match=re.escape(message)) as caught: program(text, table("gfx11"), "t")
  assert "\n" not in str(caught.value)
