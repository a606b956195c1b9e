"""Immediates with names of their own, and operands at the ends of their ranges, against llvm-mc 19; files' directives
and PTX's rarer forms."""
from __future__ import annotations

import re

import pytest

from tests.isa.test_spellings import llvm_assembles
from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.isa.amdgcn.names import NAMES
from tinyhw.isa.amdgcn.program import program
from tinyhw.isa.amdgcn.text import text
from tinyhw.isa.ptx import forms, parse
from tinyhw.isa.ptx import text as ptx_text
from tinyhw.isa.ptx.model import Arguments, Instruction, Int, Name, Sum, Variable
from tinyhw.tools.ledger.llvm import CPUS, LLVM_MC, disassembled

NEEDED = pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")

# (text with the plainest immediate, the numbers to put there, the generations that have it)
MESSAGES = [i | o << 4 | s << 8 for i in range(16) for o in range(8) for s in range(4)] + [1024, 0x8001, 0x400, 0x380]
SWIZZLES = sorted({*(0x8000 | n for n in (*range(256), 0x100, 0x4000)), *range(0, 0x8000, 53),
                   *(31 | x << 10 for x in range(32)), *(32 - g | o << 5 for g in (2, 3, 4, 8, 31) for o in range(32)),
                   *((a | o << 5 | x << 10) for a in (0, 3, 30) for o in (0, 5, 31) for x in (0, 1, 4, 31))})
IMMEDIATES: dict[str, tuple[str, list[int], tuple[str, ...]]] = {
  "hwreg": ("s_getreg_b32 s0, 0", [n | at << 6 | w << 11 for n in range(64) for at, w in ((0, 31), (4, 1))],
            ("gfx9", "gfx11", "gfx12")),
  "sendmsg": ("s_sendmsg 0", MESSAGES, ("gfx9", "gfx11", "gfx12")),
  "rtn": ("s_sendmsg_rtn_b32 s0, 0", list(range(256)), ("gfx11", "gfx12")),
  "waitcnt": ("s_waitcnt 0", [*range(0, 0x10000, 509), *(0xFFFF ^ 1 << k for k in range(16))], ("gfx9", "gfx11")),
  "delay": ("s_delay_alu 0", [a | b << 4 | c << 7 for a in range(12) for b in range(6) for c in range(12)],
            ("gfx11", "gfx12")),
  "depctr": ("s_waitcnt_depctr 0", [*range(0, 0x10000, 1021), 0xFFFE, 0xFFE3], ("gfx11",)),
  "version": ("s_version 0", [*range(0x20), *(k | 1 << b for k in (4, 9, 31) for b in range(8, 16)), 0xE006],
              ("gfx11", "gfx12")),
  "gpr_idx": ("s_set_gpr_idx_on s0, 0", list(range(16)), ("gfx9",)),
  "swizzle": ("ds_swizzle_b32 v0, v1 offset:1", SWIZZLES, ("gfx9", "gfx11", "gfx12")),
}


@NEEDED
@pytest.mark.parametrize("generation, what", [(g, w) for w, (_, _, where) in IMMEDIATES.items() for g in where])
def test_immediates_with_names(generation: str, what: str) -> None:
  """Each word's text is LLVM's, and assembles to what LLVM has for it."""
  line, numbers, _ = IMMEDIATES[what]
  isa, words = table(generation), []
  try: start = int.from_bytes(plain := assemble(line, isa), "little")
  except InvalidArgument: pytest.skip(f"{generation} has no {line.split()[0]}")
  if what == "swizzle": start -= 1
  for n in numbers: words.append((start | n).to_bytes(len(plain), "little"))
  known = [(word, theirs[0]) for word, theirs in zip(words, disassembled(generation, words), strict=True) if theirs]
  assert [text(isa.decode(word)) for word, _ in known] == [theirs for _, theirs in known]
  back = llvm_assembles(generation, [theirs for _, theirs in known])
  wrong = [line for (_, line), data in zip(known, back, strict=True) if data and data != assemble(line, isa)]
  assert not wrong and len(known) > len(words) // 2


@NEEDED
@pytest.mark.parametrize("generation", CPUS)
def test_names_are_llvms(generation: str) -> None:
  """Each register and message that has a name, by that name."""
  isa, names = table(generation), NAMES[generation]
  lines = [f"s_getreg_b32 s0, hwreg({name})" for name in names.hwregs.values()]
  for message in names.messages.values():
    if "RTN" in message: continue  # s_sendmsg_rtn_b32's
    operations = names.operations.get(message, {})
    lines += [f"s_sendmsg sendmsg({message}, {operation})" for operation in operations.values()] or \
             [f"s_sendmsg sendmsg({message})"]
  theirs = llvm_assembles(generation, lines)
  known = [(line, data) for line, data in zip(lines, theirs, strict=True) if data is not None]
  assert [assemble(line, isa) for line, _ in known] == [data for _, data in known]
  assert len(known) > 0.7 * len(lines), [line for line, data in zip(lines, theirs, strict=True) if data is None]


ENDS = """
s_movk_i32 s0, 0xffff
s_movk_i32 s0, -0x8000
s_movk_i32 s0, 0
global_load_dword v0, v[2:3], off offset:-4096
global_load_dword v0, v[2:3], off offset:4095
global_load_dword v0, v[2:3], off offset:2047
global_load_dword v0, v[2:3], off offset:-8388608
global_load_dword v0, v[2:3], off offset:8388607
ds_read_b32 v0, v1 offset:65535
ds_load_b32 v0, v1 offset:65535
v_add_f32 v255, v255, v255
v_mov_b32 v0, s101
v_mov_b32 v0, ttmp15
s_mov_b64 s[100:101], s[98:99]
s_mov_b64 s[104:105], s[102:103]
s_load_dwordx4 s[96:99], s[0:1], 0x0
s_load_b128 s[100:103], s[0:1], 0x0
s_load_b256 s[96:103], s[0:1], 0x0
s_load_b128 ttmp[8:11], s[0:1], 0x0
s_load_dwordx8 ttmp[0:7], s[0:1], 0x0
global_load_dwordx4 v[252:255], v[2:3], off
global_load_b128 v[252:255], v[2:3], off
s_version UC_VERSION_GFX11|UC_VERSION_W32_BIT
s_version UC_VERSION_GFX12 | UC_VERSION_W64_BIT
s_version 3 | UC_VERSION_MDP_BIT
v_pk_add_f16 v0, v1, 0.5
v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]
v_mad_u16 v0, v1, v2, v3 op_sel:[1,0,1,1]
v_mad_i16 v0, v1, v2, v3 op_sel:[0,0,0,1]
v_pk_fma_f16 v0, v1, v2, 0x1234
v_pk_add_f16 v0, 1.25, v1
v_add_f16 v0, 1.5, v2
v_mov_b64_dpp v[0:1], v[2:3] row_newbcast:1 row_mask:0xf bank_mask:0xf
v_mov_b64_dpp v[0:1], v[2:3] quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf
v_mov_b32_dpp v0, v2 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf
v_fma_f16 v0, v1, v2, 1.5
image_load v[0:3], v[4:5], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D
image_load v[0:3], [v4, v6], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D
image_sample_d v[0:3], [v4, v6, v8, v10, v[12:13]], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D
ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM, 3, 1, 0, 2)
ds_swizzle_b32 v0, v1 offset:swizzle(SWAP, 16)
ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE, 8)
ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST, 8, 5)
ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM, "01pip")
""".strip().splitlines()


@NEEDED
@pytest.mark.parametrize("generation", CPUS)
def test_lines_at_the_ends_of_ranges(generation: str) -> None:
  """What LLVM takes gives its bytes, whose text it would print; what it refuses is refused."""
  isa, taken, refused = table(generation), 0, []
  for line, theirs in zip(ENDS, llvm_assembles(generation, ENDS), strict=True):
    try: mine: bytes | None = assemble(line, isa)
    except InvalidArgument: mine = None
    if theirs is None:
      if mine is not None: refused.append(line)
      continue
    assert mine == theirs, line
    assert assemble(text(isa.decode(theirs)), isa) == theirs
    taken += 1
  assert taken > 15 and not refused, refused


@pytest.mark.parametrize("generation, line", [
  ("gfx11", "global_load_b32 v0, v[2:3], off offset:4096"), ("gfx11", "global_load_b32 v0, v[2:3], off offset:-4097"),
  ("gfx12", "global_load_b32 v0, v[2:3], off offset:8388608"), ("gfx11", "s_movk_i32 s0, 0x10000"),
  ("gfx11", "s_movk_i32 s0, -0x8001"), ("gfx11", "ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,4)"),
  ("gfx11", "s_version UC_VERSION_GFX99"), ("gfx11", "v_pk_add_f16 v0, v1, v2 op_sel:[1,0,1]"),
  ("gfx11", "image_load v[0:3], [v4, v5, v6, v7, v8, v9], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D")])
def test_lines_beyond_the_ends(generation: str, line: str) -> None:
  with pytest.raises(InvalidArgument): assemble(line, table(generation))


@pytest.mark.parametrize("lanes, taken", [(0x150, True), (0x15F, True), (0x0E4, False), (0x121, False)])
def test_lane_patterns_of_64_bits(lanes: int, taken: bool) -> None:
  """gfx9's instructions on 64 bits have row_newbcast alone; those on 32 bits have all."""
  isa = table("gfx9")
  wide = bytearray(assemble("v_mov_b64_dpp v[0:1], v[2:3] row_newbcast:1 row_mask:0xf bank_mask:0xf", isa))
  narrow = bytearray(assemble("v_mov_b32_dpp v0, v2 row_newbcast:1 row_mask:0xf bank_mask:0xf", isa))
  for code in (wide, narrow):
    code[5], code[6] = lanes & 0xFF, code[6] & 0xFE | lanes >> 8
  assert isa.decode(bytes(narrow)).fields["dpp_ctrl"] == lanes
  if taken: assert isa.decode(bytes(wide)).fields["dpp_ctrl"] == lanes
  else:
    with pytest.raises(DecodeError, match="of an instruction on 64 bits"): isa.decode(bytes(wide))


@pytest.mark.parametrize("line", [
  "image_load v[0:3], [v4, v6], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D",
  "image_load v[0:3], v[4:5], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D"])
def test_addresses_of_images_in_both_forms(line: str) -> None:
  isa = table("gfx11")
  assert text(isa.decode(assemble(line, isa))) == line


@NEEDED
@pytest.mark.parametrize("generation", CPUS)
def test_groups_at_the_ends_of_the_register_files(generation: str) -> None:
  """For every scalar code and group size: LLVM reads the group, or both refuse it."""
  isa = table(generation)
  lines = ["s_mov_b64 s[0:1], s[0:1]", "s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_load_dwordx8 s[8:15], s[0:1], 0x0",
           "s_load_dwordx16 s[16:31], s[0:1], 0x0", "global_load_dwordx4 v[4:7], v[2:3], off",
           "global_load_dwordx3 v[4:6], v[2:3], off"]
  for line in lines:
    plain = assemble(line, isa)
    operand, row = next(iter(isa.decode(plain).operands)), isa.decode(plain).row
    base = {n: isa.decode(plain).fields[n] for n in row.fields}
    codes = range(256) if line[0] == "g" else range(128)
    words = [isa.encode(row, {**base, operand: code}) for code in codes]
    for word, theirs in zip(words, disassembled(generation, words), strict=True):
      try: mine = text(isa.decode(word))
      except DecodeError: mine = None
      if theirs and mine is not None: assert mine == theirs[0]
      elif theirs is not None and mine is not None: pytest.fail(f"{mine} is refused by LLVM")
      elif line[0] == "g" and theirs: pytest.fail(f"{theirs[0]} is refused here")


def test_the_words_of_an_unknown_instruction_are_shown() -> None:
  for size, shown in ((4, 1), (8, 2), (12, 2)):
    with pytest.raises(DecodeError) as raised: table("gfx11").decode(b"\xff" * size)
    assert raised.value.words == (0xFFFFFFFF,) * shown


# *** files ***


@pytest.mark.parametrize("line, data", [
  (".byte 1, 0x1ff, -1", "01ffff"), (".short 0x1234", "3412"), (".2byte 5", "0500"), (".long 1", "01000000"),
  (".int -2", "feffffff"), (".4byte 0x12345678", "78563412"), (".quad 3", "03" + "00" * 7), (".8byte -1", "ff" * 8),
  (".fill 3", "000000"), (".fill 2, 2", "00000000"), (".fill 2, 2, 0x1ff", "ff01ff01"), (".fill 1, 8, -1", "ff" * 8),
  (".byte 7\n.p2align 2", "07000000"), (".byte 7\n.align 8", "07000000000080bf"),
  (".long 7\n.p2alignl 3, 0x1234", "0700000034120000"), (".long 7\n.balignl 8, 5", "0700000005000000"),
  (".long 7\n.balign 4", "07000000"), (".long 7\n.p2align 0", "07000000"), ("x = 3\n.long x*2", "06000000"),
  (".section .data\n.long 1\n.text\n.long 2", "02000000"),
  (".pushsection .note\n.long 1\n.popsection\n.long 2", "02000000"),
  (".long 3\n.popsection\n.long 2", "0300000002000000"),
  (".pushsection .note\n.pushsection .text\n.long 4\n.popsection\n.long 1\n.popsection\n.long 2", "0400000002000000")])
def test_directives(line: str, data: str) -> None:
  assert b"".join(i.code for i in program(line, table("gfx11"), "t")).hex() == data


# *** PTX ***

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.mark.parametrize("name, size", [
  *((f"{k}{n}", n // 8) for k in "bus" for n in (8, 16, 32, 64)), ("f16", 2), ("bf16", 2), ("f32", 4), ("tf32", 4),
  ("f64", 8), ("f16x2", 4), ("bf16x2", 4), ("u16x2", 4), ("s16x2", 4), ("f32x2", 8), ("b128", 16), ("pred", 1),
  ("e4m3", 1), ("e5m2", 1), ("e4m3x2", 2), ("e5m2x2", 2), ("texref", 8), ("samplerref", 8), ("surfref", 8)])
def test_bytes_of_a_type_of_ptx(name: str, size: int) -> None: assert forms.SIZES[name] == size


def test_rare_forms_of_ptx() -> None:
  module = parse(HEAD + """
.global .b8 x[16];
.global .b8 part[2] = {0xFF(x), 0xFF00(generic(x)+4)};
.func (.reg .b32 r) f (.reg .b32 a, .reg .b32 b);
.entry k ()
{
  .reg .b32 %r<9>; .reg .b64 %d;
  mov.u32 %r1, (1 + 2) * 3;
  mov.u32 %r2, ~5;
  mov.u64 %d, x[3];
  mov.b32 %r3, WARP_SZ;
  call (%r1), f, (5, %r2);
  call (%r1), f, (5);
  ld.global.b8 %r4, [x+2];
  ret;
}
""")
  assert parse(ptx_text(module)) == module
  part = next(i for i in module.items if isinstance(i, Variable) and i.name == "part")
  assert part.initializer == (Sum("x", 0, "0xFF"), Sum("x", 4, "0xFF00 generic"))
  body = module.entries["k"].body
  assert body is not None
  found = [s for s in body if isinstance(s, Instruction)]
  assert [s.operands[1] for s in found[:4]] == [Int(9), Int((1 << 64) - 6, True), Sum("x", 3, "element"), Int(32)]
  assert [s.operands[2] for s in found[4:6]] == [Arguments((Int(5), Name("%r2"))), Arguments((Int(5),))]
  assert re.search(r"x\[3\]", ptx_text(module))
