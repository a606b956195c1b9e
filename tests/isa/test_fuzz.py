"""Random words of every family against llvm-mc 19: what one side takes, the other takes, and reads alike.

The differences that remain are listed with their reason: LLVM 19 does not show the halves of some 16-bit instructions,
has no form of some images, and lets some operands pass that the hardware has not.
"""
from __future__ import annotations

import random
import re

import pytest

from tests.strength import seeds
from tinyhw.core.errors import DecodeError
from tinyhw.isa.amdgcn import Instruction, Table, table
from tinyhw.isa.amdgcn.codes import SDWA_SELECTIONS
from tinyhw.tools.ledger.llvm import LLVM_MC, disassembled

WORDS = 4000
WAVE64 = "+wavefrontsize64"  # has matrices of its own
HALVES = "LLVM 19 has no text for the upper half of a register here, outside of its mode true16"
IMAGE = "LLVM 19 has no form with so many registers, and shows the first one it has"
# Both sides decode, and read differently: (pattern of our text, reason).
READ = ((r"v_.*\.[lh]\b.*", HALVES), (r"image_.*", IMAGE),
        (r"v_wmma_.* 0\.15915494 .*", "LLVM writes the constant as a double where a matrix has eight registers"),
        (r"v_(cmpx?_class_f16|align(bit|byte)_b32|dot2_b?f16_b?f16).*", "a 16-bit source, of 32 bits to LLVM 19"))
# LLVM refuses what we decode: (pattern of our text, reason).
REFUSED = ((r"(v_swap_b16|s_alloc_vgpr|ds_bpermute_fi_b32|ds_bvh_stack_push\w+) .*", "added by autogen/errata"),
           (r"v_.*\.[lh]\b.*", HALVES),
           (r"v_(cmpx?_class_f16|align(bit|byte)_b32|dot2_b?f16_b?f16).*", "a 16-bit source, of 32 bits to LLVM 19"))
# We refuse what LLVM decodes: (pattern of its text, reason).
TAKEN = (
  (r"image_.*", "registers beyond the last one, or an image without one of its forms"),
  (r"v_\w+_dpp .*", "a scalar second source with DPP, which gfx1100 has not and LLVM's assembler refuses"),
  (r".*src_lds_direct.*", "no source of RDNA3 and RDNA4 (manuals: operand tables)"),
  (r"t?buffer_.* 0x[0-9a-f]+ .*|t?buffer_.* -?\d+\.\d+ .*", "a literal as offset, which the encoding has not"),
  (r"v_(interp|accvgpr|swap|readfirstlane|readlane|wmma|swmmac|mfma|smfmac|permlane|movrel|swaprel)\w* .*"
   r"(src_\w+|null|vcc|exec|m0|ttmp|\bs\d|s\[|\d).*", "a source that is a vector register, from the scalar side"),
)


def plain(i: Instruction) -> bytes:
  """The instruction with the bits of unused sources as LLVM 19 has them: it refuses others, LLVM 22 ignores them."""
  return (int.from_bytes(i.data, "little") ^ i.spare).to_bytes(i.size, "little")


def words(isa: Table, seed: int) -> list[bytes]:
  """Opcodes of the table with random other bits, and wholly random words of a family; 16 bytes each."""
  rng, out = random.Random(seed), []
  families = [(f, prefix) for f, prefix in isa.module.FAMILIES if f in isa.opcodes]
  while len(out) < WORDS:
    family, prefix = rng.choice(families)
    mask, opcodes = isa.opcodes[family]
    word = rng.getrandbits(128)
    if rng.random() < 0.8: word = word & ~mask | rng.choice(list(opcodes))
    else: word = word & ~((1 << len(prefix)) - 1 << 32 - len(prefix)) | int(prefix, 2) << 32 - len(prefix)
    out.append(word.to_bytes(16, "little"))
  return out


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation", ["gfx9", "gfx11", "gfx1150", "gfx12"])
@pytest.mark.parametrize("seed", seeds([1]))
def test_random_words_are_llvms(generation: str, seed: int) -> None:
  isa = table(generation)
  ours: list[tuple[bytes, str | None]] = []
  for word in words(isa, seed):
    try: found = isa.decode(word)
    except DecodeError as error:
      if "selection" not in str(error): ours.append((word[:12], None))  # LLVM may show a reserved one as another
    else: ours.append((plain(found), str(found)))
  same = refused = 0
  wrong = []
  heard = disassembled(generation, [c for c, _ in ours])
  again = [k for k, (_, mine) in enumerate(ours) if heard[k] == [] and mine and mine.startswith("v_swmmac")]
  for k, lines in zip(again, disassembled(generation, [ours[k][0] for k in again], WAVE64)): heard[k] = lines
  for (code, mine), theirs in zip(ours, heard, strict=True):
    if theirs is None or theirs and "/*" in theirs[0]: continue  # a lost mark; an operand that LLVM calls invalid
    if mine is None:
      if not theirs: refused += 1
      elif not listed(TAKEN, theirs[0]): wrong.append(f"{code.hex()}: refused here, LLVM {theirs[0]!r}")
    elif not theirs:
      if not listed(REFUSED, mine): wrong.append(f"{code.hex()}: {mine!r}, refused by LLVM")
    elif mine == theirs[0]: same += 1
    elif re.sub(r" op_sel:\[[01,]+\]", "", mine) == theirs[0]: continue  # LLVM does not show these halves: HALVES
    elif not listed(READ, mine): wrong.append(f"{code.hex()}: {mine!r}, LLVM {theirs[0]!r}")
  assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])
  assert same > WORDS // 3 and refused > WORDS // 6, (same, refused)


def listed(known: tuple[tuple[str, str], ...], text: str) -> bool: return any(re.fullmatch(p, text) for p, _ in known)


def test_reserved_selections_are_refused() -> None:
  """SDWA's selection 7 and destination rule 3 are reserved; llvm-mc has no text for them."""
  isa = table("gfx9")
  row = next(r for r in isa.by_mnemonic["v_add_f32"] if r.variant == "sdwa")
  isa.decode(isa.encode(row, {}))
  for name, value in (*((n, 7) for n in SDWA_SELECTIONS), ("dst_unused", 3)):
    with pytest.raises(DecodeError, match="selection"): isa.decode(isa.encode(row, {name: value}))
