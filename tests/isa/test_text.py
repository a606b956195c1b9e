"""The text of random words of every row against llvm-mc 19, generation by generation, and how many rows are exact.

`python -m tests.isa.test_text` prints the counts. Without llvm-mc 19 the witness is LLVM 22's own listing of compiled
code (tests/isa/test_assemble.py).
"""
from __future__ import annotations

import random
import re
import shutil
import subprocess
from dataclasses import dataclass, field

import pytest

from tests.isa.test_decode import random_fields
from tinyhw.core.errors import DecodeError
from tinyhw.isa.amdgcn import LITERAL, Row, Table, table

LLVM_MC = shutil.which("llvm-mc-19")
CPUS = {"gfx9": "gfx942", "gfx11": "gfx1100", "gfx12": "gfx1201"}
WIDE = "llvm-mc 19 shows the 16-bit integer constant 0x3800 as 0.5: it takes the operand for a 32-bit one"
# Rows whose text is not llvm-mc 19's, and why: (generation, pattern of mnemonics, evidence).
DISAGREE = (
  ("gfx11", "v_cmpx?_class_f16|v_align(bit|byte)_b32", WIDE),
  ("gfx12", "v_cmpx?_class_f16|v_align(bit|byte)_b32", WIDE),
)


@dataclass
class Report:
  """What came of one generation: rows, those compared, those that differ, and an example by mnemonic."""
  rows: int = 0
  compared: set[int] = field(default_factory=set)
  wrong: set[int] = field(default_factory=set)
  differ: dict[str, str] = field(default_factory=dict)

  @property
  def exact(self) -> int: return len(self.compared - self.wrong)


def disassembled(generation: str, words: list[bytes]) -> list[list[str] | None]:
  """llvm-mc's lines for each word, none where it refuses; None where the marker after the word was lost.

  An s_nop with a number after each word, twice, tells which lines belong to it.
  """
  assert LLVM_MC is not None
  given = []
  for n, data in enumerate(words):
    given += [" ".join(f"0x{b:02x}" for b in data), f"0x{n & 255:02x} 0x{n >> 8 & 255:02x} 0x80 0xbf " * 2]
  command = [LLVM_MC, "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={CPUS[generation]}", "-mattr=+real-true16"]
  done = subprocess.run(command, input="\n".join(given), capture_output=True, text=True, check=False)
  texts = (re.sub(r"\s+", " ", text.strip()) for text in done.stdout.splitlines() if text.startswith("\t"))
  given = [line for line in texts if line and line[0] != "."]
  out: list[list[str] | None] = [None] * len(words)
  at = start = 0  # a mark has 16 bits: it belongs to one of the next words
  for k in range(1, len(given)):
    if not given[k].startswith("s_nop ") or given[k] != given[k - 1]: continue
    n = at + (int(given[k].split()[1], 0) - at & 0xFFFF)
    if n >= min(len(words), at + 64): continue  # the number of another s_nop
    out[n], at = given[start:k - 1], n + 1
    start = k + 1
  return out


def compare(generation: str, seed: int, words: int = 3) -> Report:
  """llvm-mc on random words of every row. Words with an operand that LLVM marks as invalid are not compared.

  LLVM 19 does not know the halves of every 16-bit instruction: `v1` there is `v1.l` here.
  """
  assert LLVM_MC is not None
  rng, isa, report = random.Random(seed), table(generation), Report()
  items: list[tuple[bytes, str, int, str]] = []
  for number, row in enumerate(isa.rows()):
    if row.variant == "w64": continue  # llvm-mc takes words of waves of 32 here
    report.rows += 1
    for _ in range(words):
      i = isa.decode(isa.encode(row, random_fields(rng, row)))
      if i.row is row: items.append((i.data, str(i), number, f"{row.mnemonic} {row.variant}"))
  theirs_of = disassembled(generation, [code for code, _, _, _ in items])
  for (code, mine, number, name), found in zip(items, theirs_of, strict=True):
    if found is None: continue  # LLVM lost its place
    theirs = " | ".join(found) or "refused"
    if "/*" in theirs: continue
    report.compared.add(number)
    if re.sub(r"(v\d+)\.l", r"\1", theirs) == re.sub(r"(v\d+)\.l", r"\1", mine): continue
    report.wrong.add(number)
    report.differ[name] = f"{code.hex()}: {mine!r}, LLVM {theirs!r}"
  return report


@pytest.mark.skipif(LLVM_MC is None, reason="llvm-mc-19 is not installed")
@pytest.mark.parametrize("generation", CPUS)
def test_text_of_every_row_is_llvms(generation: str) -> None:
  report = compare(generation, 7)
  known = [re.compile(pattern) for g, pattern, _ in DISAGREE if g == generation]
  new = {name: what for name, what in report.differ.items() if not any(p.fullmatch(name.split()[0]) for p in known)}
  assert not new
  assert len(report.compared) >= report.rows - 5 and report.exact >= report.rows - 12, (report.rows, report.exact)


# Scalar codes that random words seldom hold: VCC, trap registers, null, M0, EXEC, apertures, vccz, execz, scc, inline.
CODES = (106, 107, 108, 123, 124, 125, 126, 127, 192, 193, 208, 235, 236, 237, 238, 239, 240, 248, 251, 252, 253)
LITERALS = (3, 0x3C00, 0x12345678, 0x3F800000, 0xFFFFFFFF)
# Operands for which llvm-mc 19 is no judge of the others' text, with the evidence.
UNJUDGED = re.compile(
  r"v_(wmma|swmmac)_"  # a matrix in scalar registers: llvm-mc refuses or shows it as invalid, the hardware has no form
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
@pytest.mark.parametrize("generation", CPUS)
def test_special_operands_and_literals_are_llvms(generation: str) -> None:
  """Refusals must agree too."""
  assert LLVM_MC is not None
  words = special_words(table(generation), random.Random(9))
  theirs = disassembled(generation, [data for data, _, _ in words])
  wrong, count = [], 0
  for n, (data, mine, row) in enumerate(words):
    found = theirs[n]
    if found is None or len(found) > 1 or found and "/*" in found[0]: continue  # LLVM lost its place, or says invalid
    count += 1
    other = re.sub(r"(v\d+)\.l", r"\1", found[0]) if found else None
    if mine is None and other is not None and not other.startswith(row.mnemonic): continue  # it went on inside the word
    if (re.sub(r"(v\d+)\.l", r"\1", mine) if mine else None) != other:
      wrong.append(f"{row.mnemonic} {row.variant} {data.hex()}: {mine!r}, LLVM {other!r}")
  assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong[:20])
  assert count > {"gfx9": 2400, "gfx11": 5000, "gfx12": 5000}[generation], count  # gfx9 has no literals in VOP3


def main() -> None:
  """Print the counts of each generation, and each row that differs."""
  for generation in CPUS:
    report = compare(generation, 7)
    print(f"{generation}: {report.exact} of {report.rows} rows are text-exact ({len(report.compared)} compared)")
    for name, what in sorted(report.differ.items()): print(f"  {name} {what}")


if __name__ == "__main__": main()
