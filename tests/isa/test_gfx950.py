"""gfx950's own instructions: the generated rows (LLVM 21's description) against what LLVM 24 assembles."""
from __future__ import annotations

from pathlib import Path

import pytest

from tinyhw.core.errors import DecodeError, InvalidArgument
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

NEW, OLD = table("gfx950"), table("gfx9")
VECTORS = [line.split(" | ") for line in (Path(__file__).parent / "gfx950.txt").read_text().splitlines()
           if not line.startswith("#")]


def test_every_row_of_its_own_is_what_llvm_assembles() -> None:
  """Code gives the text, and the text the code: bits that the text does not show may differ, as SDWA's and op_sel's."""
  seen = set()
  for code, text in VECTORS:
    i = NEW.decode(bytes.fromhex(code))
    assert str(i) == text and i.size * 2 == len(code)
    assert str(NEW.decode(assemble(text, NEW))) == text
    seen.add(i.row)
  own = [row for row in NEW.rows() if row.mnemonic not in OLD.mnemonics]
  assert len(own) > 100 and set(own) <= seen, {row.mnemonic for row in set(own) - seen}


def test_a_bitwise_function_of_three_is_shown() -> None:
  assert str(NEW.decode(assemble("v_bitop3_b32 v1, v2, v3, v4 bitop3:0xca", NEW))).endswith(" bitop3:0xca")


def test_the_generation_before_says_who_has_them() -> None:
  code = assemble("v_prng_b32_e32 v0, v1", NEW)
  with pytest.raises(DecodeError, match=r"no gfx9 instruction \(gfx950 and later have v_prng_b32\)"): OLD.decode(code)


def test_matrices_of_xf32_are_gone() -> None:
  """CDNA4 ISA manual, chapter 7, has none; LLVM 24 refuses them for gfx950."""
  text = "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]"
  code = assemble(text, OLD)
  with pytest.raises(DecodeError, match="no gfx950 instruction"): NEW.decode(code)
  with pytest.raises(InvalidArgument, match="xf32"): assemble(text, NEW)


@pytest.mark.parametrize("text", [
  "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3] cbsz:4",
  "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[20:23], v[0:15] blgp:4",
  "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:9], v[12:19], v[0:3], v20, v21 cbsz:5"])
def test_a_matrix_has_the_registers_of_its_format(text: str) -> None:
  """LLVM 24: "wrong register tuple size for cbsz value"."""
  with pytest.raises(InvalidArgument, match="goes with other operands"): assemble(text, NEW)


def test_the_first_half_alone_is_no_instruction() -> None:
  """CDNA4 ISA manual 7.2.1: four dwords, of which the first two have the scales."""
  code = assemble("v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], v20, v21", NEW)
  assert len(code) == 16
  for wrong in (code[:8], code[:8] + code[:8]):
    with pytest.raises(DecodeError, match="no gfx950 instruction"): NEW.decode(wrong)
