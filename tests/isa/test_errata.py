"""Instructions of the errata: what LLVM 22 emits for them, and what they read as."""
from __future__ import annotations

import io
import re

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile

from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

PROGRAM = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.ds.bpermute.fi.b32(i32, i32)
declare {i32, i32} @llvm.amdgcn.ds.bvh.stack.push4.pop1.rtn(i32, i32, <4 x i32>, i32 immarg)
declare {i32, i32} @llvm.amdgcn.ds.bvh.stack.push8.pop1.rtn(i32, i32, <8 x i32>, i32 immarg)
declare {i64, i32} @llvm.amdgcn.ds.bvh.stack.push8.pop2.rtn(i32, i32, <8 x i32>, i32 immarg)
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %a, i32 %b, <8 x i32> %d, <4 x i32> %e) {
  %x = call i32 @llvm.amdgcn.ds.bpermute.fi.b32(i32 %a, i32 %b)
  store volatile i32 %x, ptr addrspace(1) %p
  %y = call {i32, i32} @llvm.amdgcn.ds.bvh.stack.push8.pop1.rtn(i32 %a, i32 %b, <8 x i32> %d, i32 16)
  %y0 = extractvalue {i32, i32} %y, 0
  store volatile i32 %y0, ptr addrspace(1) %p
  %z = call {i64, i32} @llvm.amdgcn.ds.bvh.stack.push8.pop2.rtn(i32 %a, i32 %b, <8 x i32> %d, i32 0)
  %z0 = extractvalue {i64, i32} %z, 0
  store volatile i64 %z0, ptr addrspace(1) %p
  %w = call {i32, i32} @llvm.amdgcn.ds.bvh.stack.push4.pop1.rtn(i32 %a, i32 %b, <4 x i32> %e, i32 4)
  %w0 = extractvalue {i32, i32} %w, 0
  store volatile i32 %w0, ptr addrspace(1) %p
  ret void
}
"""


def test_llvm_22_emits_the_words() -> None:
  """The listing and the object of LLVM 22's compiler: each of the four is in both, and reads as in the listing."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1201")
  wanted = [re.sub(r"\s+", " ", line.split(";")[0]).strip()
            for line in machine.emit_assembly(llvm.parse_assembly(PROGRAM)).split("\n") if "\tds_b" in line]
  elf = ELFFile(io.BytesIO(machine.emit_object(llvm.parse_assembly(PROGRAM))))
  code, isa, at, found = elf.get_section_by_name(".text").data(), table("gfx12"), 0, []
  while len(found) < len(wanted):
    i = isa.decode(code, at)
    if i.mnemonic.startswith("ds_b"): found.append(str(i))
    at += i.size
  assert found == wanted and len({line.split()[0] for line in found}) == 4
  assert all(isa.decode(assemble(line, isa)).mnemonic == line.split()[0] for line in found)


@pytest.mark.parametrize("generation, text, code", [
  ("gfx11", "v_swap_b16 v1.l, v2.h", "82cd027e"), ("gfx12", "v_swap_b16 v1.l, v2.h", "82cd027e"),
  ("gfx12", "s_alloc_vgpr s3", "035380be"), ("gfx12", "s_alloc_vgpr 64", "c05380be"),
])
def test_words_by_the_manuals(generation: str, text: str, code: str) -> None:
  """Opcodes of the manuals (RDNA3 section 15.3.2, RDNA4's VOP1 and SOP1 tables) in their encodings' places."""
  isa = table(generation)
  assert assemble(text, isa).hex() == code and str(isa.decode(bytes.fromhex(code))) == text
