"""The gfx11 decoder and its text against LLVM: the assembler inside llvmlite, and llvm-mc 19 where it is installed."""
from __future__ import annotations

import io
import random
import re
import subprocess
import sys

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile

from tests.strength import examples, seed
from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.text import text
from tinyhw.tools.ledger.llvm import LLVM_MC, random_fields

TABLE = table("gfx11")


@pytest.mark.parametrize("generation, least", [("gfx9", 5900), ("gfx90a", 5700), ("gfx11", 7500), ("gfx1150", 7600),
                                                ("gfx12", 7500)])
def test_every_row_decodes_to_itself(generation: str, least: int) -> None:
  """Random legal fields of each row: encode, decode, compare the row and each field."""
  rng = random.Random(seed(11))
  count, isa = 0, table(generation)
  for row in isa.rows():
    if row.family == "EXP": continue
    for _ in range(2):
      fields = random_fields(rng, row)
      if row.variant == "w64": fields |= {n: v & 0x7F for n, v in fields.items() if n == "vdst"} | {
        n: 256 + v % 128 for n, v in fields.items() if n.startswith("src")}  # fewer registers than waves of 32 take
      code = isa.encode(row, fields)
      i = isa.decode(code)
      # soffset null with offset 0, index keys that waves of 32 have too: one meaning, two rows
      if (row.variant, i.variant) in {("sgpr", "imm"), ("w64", "")}: continue
      assert i.row is row and i.size == row.size and i.data == code, (row.mnemonic, row.variant, i.mnemonic, i.variant)
      rtn = row.returns and "cpol" in fields
      assert {k: v for k, v in i.fields.items()} == (fields | {"cpol": fields["cpol"] | 1} if rtn else fields)
      assert str(i)
      count += 1
  assert count > least


PROGRAM = """
target triple = "amdgcn-amd-amdhsa"
@lds = internal addrspace(3) global [64 x i32] poison
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q, half %s, i64 %n) {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr half, ptr addrspace(1) %p, i32 %i
  %a = load half, ptr addrspace(1) %g
  %g2 = getelementptr half, ptr addrspace(1) %q, i32 %i
  %c = load half, ptr addrspace(1) %g2
  %d = fadd half %a, %c
  %e = fmul half %d, %s
  %w = fpext half %e to double
  %dv = fdiv double %w, 3.0
  %f = fptrunc double %dv to float
  %sq = call float @llvm.sqrt.f32(float %f)
  %i64 = sext i32 %i to i64
  %ud = udiv i64 %n, %i64
  %sum = add i64 %ud, 77
  %l = getelementptr i32, ptr addrspace(3) @lds, i32 %i
  %tr = trunc i64 %sum to i32
  store i32 %tr, ptr addrspace(3) %l
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  %m = xor i32 %i, 5
  %l2 = getelementptr i32, ptr addrspace(3) @lds, i32 %m
  %lv = load i32, ptr addrspace(3) %l2
  %cmp = icmp sgt i32 %lv, 3
  br i1 %cmp, label %then, label %end
then:
  %h = getelementptr float, ptr addrspace(1) %p, i32 %m
  store float %sq, ptr addrspace(1) %h
  %old = atomicrmw add ptr addrspace(1) %q, i32 %lv syncscope("agent") monotonic
  %h2 = getelementptr i32, ptr addrspace(1) %q, i32 %m
  store i32 %old, ptr addrspace(1) %h2
  br label %end
end:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
declare float @llvm.sqrt.f32(float)
"""


@pytest.mark.parametrize("optimization", [0, 1, 2, 3])
def test_compiled_code_reads_as_llvm_prints_it(optimization: int) -> None:
  """LLVM 22's own listing of a module, instruction by instruction, against the decoded object (its mode is true16)."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1100", opt=optimization)
  listing = machine.emit_assembly(llvm.parse_assembly(PROGRAM))
  elf = ELFFile(io.BytesIO(machine.emit_object(llvm.parse_assembly(PROGRAM))))
  code = elf.get_section_by_name(".text").data()
  lines = [re.sub(r"\s+", " ", line.split(";")[0]).strip() for line in listing.split("\n") if line.startswith("\t")]
  lines = [line for line in lines if line and not line.startswith(".")]
  at, wrong = 0, []
  for line in lines:
    i = TABLE.decode(code, at)
    while i.mnemonic == "s_code_end": at += i.size; i = TABLE.decode(code, at)
    at += i.size
    if "branch" not in line and text(i, true16=True) != line: wrong.append((line, str(i)))
  assert len(lines) > 100 and not wrong


def test_unknown_words_are_refused() -> None:
  with pytest.raises(DecodeError, match="no gfx11 instruction") as caught: TABLE.decode(b"\xff" * 8, where=0x1000)
  assert "0x1000" in str(caught.value) and caught.value.words == (0xFFFFFFFF, 0xFFFFFFFF)
  with pytest.raises(DecodeError, match="literal"): TABLE.decode(bytes.fromhex("ff0080be"))
  with pytest.raises(DecodeError): TABLE.decode(b"\x00")


def test_encode_never_truncates() -> None:
  row = next(r for r in TABLE.by_mnemonic["v_add_f32"] if r.variant == "e32")
  with pytest.raises(EncodeError, match="does not fit"): TABLE.encode(row, {"vdst": 256})
  with pytest.raises(EncodeError, match="no field"): TABLE.encode(row, {"vdst": 1, "foo": 0})
  with pytest.raises(EncodeError, match="literal"): TABLE.encode(row, {"src0": 255})
  literal = TABLE.decode(TABLE.encode(row, {"src0": 255, "src1": 1, "vdst": 2}, literal=0x40490FDB))
  assert str(literal) == "v_add_f32_e32 v2, 0x40490fdb, v1" and literal.size == 8


def test_random_bytes_decode_or_are_refused() -> None:
  rng = random.Random(seed(13))
  known = 0
  for _ in range(examples(20_000)):
    code = rng.randbytes(16)
    try: i = TABLE.decode(code)
    except DecodeError: continue
    known += 1
    assert i.data == code[:i.size] and 4 <= i.size <= 16
  assert known > examples(5000)


def test_a_cold_process_decodes_at_once() -> None:
  """A new process parses the rows of what it decodes, and imports neither the text's modules nor the emulator."""
  program = """
import sys
from tinyhw.isa.amdgcn import table
t = table("gfx11")
for word in ("000080bf", "0000b0bf"): t.decode(bytes.fromhex(word))
print(sum(len(rows) for rows in t._parsed.values()))
rooms = "tinyhw.isa", "tinyhw.emulator", "tinyhw.autogen", "numpy", "llvm"
print(*sorted(m for m in sys.modules if m.startswith(rooms)))
"""
  out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.splitlines()
  parts = ("codes", "images", "model", "tables")
  assert int(out[0]) <= 8
  assert out[1].split() == ["tinyhw.autogen", "tinyhw.autogen.amdgcn_gfx11", "tinyhw.isa", "tinyhw.isa.amdgcn",
                            *(f"tinyhw.isa.amdgcn.{part}" for part in parts)]


@pytest.mark.parametrize("code, text", [
  ("ff020406db0f4940", "v_add_f32_e32 v2, 0x40490fdb, v1"), ("ff0204060000803f", "v_add_f32_e32 v2, 1.0, v1"),
  ("ff00a29103000000", "s_and_not1_b64 s[34:35], 3, s[0:1]"), ("fd0080be", "s_mov_b32 s0, src_scc"),
  ("fb0080be", "s_mov_b32 s0, src_vccz"), ("fc0080be", "s_mov_b32 s0, src_execz"),
  ("eb0080be", "s_mov_b32 s0, src_shared_base"), ("eb0180be", "s_mov_b64 s[0:1], src_shared_base"),
  ("ff02007e78563412", "v_mov_b32_e32 v0, 0x12345678"),
])
def test_special_operands_and_literals_read_as_llvm_prints_them(code: str, text: str) -> None:
  """Literals with the value of an inline constant look like it; apertures have one name in both widths."""
  i = TABLE.decode(bytes.fromhex(code))
  assert i.size * 2 == len(code) and str(i) == text
  if LLVM_MC is None: return
  given = " ".join(f"0x{b:02x}" for b in i.data)
  done = subprocess.run([LLVM_MC, "--disassemble", "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100"], input=given,
                        capture_output=True, text=True, check=True)
  assert re.sub(r"\s+", " ", done.stdout.splitlines()[-1]).strip() == str(i)


@pytest.mark.parametrize("name", ["gfx9", "gfx90a", "gfx950", "gfx11", "gfx1150", "gfx12"])
def test_rows_of_a_mnemonic_are_those_of_the_whole_table(name: str) -> None:
  generation = table(name)
  assert all(generation.rows_of(m) == rows for m, rows in generation.by_mnemonic.items())
  assert generation.rows_of("v_no_such_thing") == ()
