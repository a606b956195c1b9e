"""The text of random words of every row against llvm-mc 19, generation by generation, and how many rows are exact.

Without llvm-mc 19 the witness is LLVM 22's own listing of compiled code (tests/isa/test_assemble.py).
"""
from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.strength import seed
from tinyhw.arch import decoded
from tinyhw.cli.cold import code as compiled_kernel
from tinyhw.core.errors import DecodeError
from tinyhw.isa.amdgcn import MEMBERS, Row, Table, table
from tinyhw.isa.amdgcn.codes import LITERAL
from tinyhw.tools.ledger.llvm import CPUS, DISAGREE, LLVM_MC, check, disassembled, random_fields

OBJDUMP = shutil.which("llvm-objdump-19")
TABLES = [*CPUS, *(m for m in MEMBERS if m != "gfx950")]  # LLVM 19 does not know gfx950: tests/isa/test_gfx950.py
RECORD = Path(__file__).parents[2] / "tools/ledger/llvm.json"


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation", TABLES)
def test_text_of_every_row_is_llvms(generation: str) -> None:
  """The committed record is what llvm-mc says now, and every difference in it has a reason."""
  report = check(generation)
  assert report == json.loads(RECORD.read_text())[generation]
  assert set(report["different"].values()) <= {why for g, _, why in DISAGREE if g == table(generation).name}
  assert report["compared"] >= report["rows"] - 2 and report["exact"] >= report["rows"] - 15, report


# Scalar codes that random words seldom hold: VCC, trap registers, null, M0, EXEC, apertures, vccz, execz, scc, inline.
CODES = (106, 107, 108, 123, 124, 125, 126, 127, 192, 193, 208, 235, 236, 237, 238, 239, 240, 248, 251, 252, 253)
LITERALS = (3, 0x3C00, 0xFFF0, 0x12345678, 0x3F800000, 0x7FFFFFFF, 0xFFFFFFFF)
# Operands for which llvm-mc 19 is no judge of the others' text, with the evidence.
UNJUDGED = re.compile(
  r"v_(wmma|swmmac)_"  # a matrix in scalar registers: llvm-mc refuses or shows it as invalid, the hardware has no form
  r"|s_alloc_vgpr|v_mov_b16"  # LLVM 19 does not know it, or in its mode true16 alone
  r"|v_(cmpx?_class_f16|alignb\w+_b32|dot2_b?f16_b?f16)")  # 16-bit types in the hardware, 32-bit ones to LLVM 19


def special_words(isa: Table, rng: random.Random) -> list[tuple[bytes, str | None, Row]]:
  """(bytes, text or None where the decoder refuses) of rows with a special scalar or a literal in one operand."""
  out = []
  for row in isa.rows():
    if UNJUDGED.match(row.mnemonic) or row.family in {"SMEM", "FLAT"}: continue
    for name, _, kind, _, _, _ in row.operands:
      if kind not in "sx" or not name.startswith(("src", "ssrc", "soffset")): continue
      declared = sum((1 << w) - 1 << bit for _, bit, w in row.fields[name])
      codes = [*rng.sample(CODES, 1), *[LITERAL] * (name in row.literal_operands)]
      for code in codes:
        if code & ~declared: continue
        fields = random_fields(rng, row) | {name: code}
        wanted = any(fields[n] == LITERAL for n in row.literal_operands)
        data = isa.encode(row, fields, rng.choice(LITERALS) if wanted else None)
        try: i = isa.decode(data)
        except DecodeError: out.append((data, None, row))
        else:
          if i.row is row: out.append((data, str(i), row))
  return out


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation", TABLES)
def test_special_operands_and_literals_are_llvms(generation: str) -> None:
  """Refusals must agree too."""
  assert LLVM_MC is not None
  words = special_words(table(generation), random.Random(seed(9)))
  theirs = disassembled(generation, [data for data, _, _ in words])
  wrong, count = [], 0
  for n, (data, mine, row) in enumerate(words):
    found = theirs[n]
    if found is None or len(found) > 1 or found and "/*" in found[0]: continue  # LLVM lost its place, or says invalid
    count += 1
    other = found[0] if found else None
    if mine is None and other is not None and not other.startswith(row.mnemonic): continue  # it went on inside the word
    if mine != other:
      wrong.append(f"{row.mnemonic} {row.variant} {data.hex()}: {mine!r}, LLVM {other!r}")
  assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:20])
  # gfx9 has no literals in VOP3, and gfx1100 no scalar second source with DPP, which gfx1150 has
  assert count > {"gfx9": 2400, "gfx90a": 2300, "gfx11": 4500, "gfx1150": 5000, "gfx12": 5000}[generation], count


@pytest.mark.skipif(OBJDUMP is None, reason="llvm-objdump-19 is not installed")
@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_whole_kernels_are_shown_as_llvms_disassembler_shows_them(cpu: str, tmp_path: Path) -> None:
  """Compiled code, instruction by instruction: what llvm-objdump 19 prints (branch targets aside)."""
  assert OBJDUMP is not None
  path, isa, count = tmp_path / "kernel.co", table(decoded(cpu).isa), 0
  path.write_bytes(compiled_kernel(1, cpu))
  listing = subprocess.run([OBJDUMP, "-d", path], capture_output=True, text=True, check=True).stdout
  for line in listing.splitlines():
    if (found := re.fullmatch(r"\s+(.*?)\s*// [0-9A-F]+: ([0-9A-F ]+?)(?: <.*>)?", line)) is None: continue
    data = b"".join(int(word, 16).to_bytes(4, "little") for word in found[2].split())
    if not found[1].startswith(("s_branch", "s_cbranch")):
      assert str(isa.decode(data.ljust(16, b"\0"))) == re.sub(r"\s+", " ", found[1])
      count += 1
  assert count > 900
