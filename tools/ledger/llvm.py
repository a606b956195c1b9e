"""How the disassembler compares with llvm-mc 19, on random legal words of every row of an instruction table.

    python -m tinyhw.tools.ledger.llvm            # compare, and write tools/ledger/llvm.json, which the ledger shows

The samplers here serve the tests too: operands legal for their size and kind, modifiers where the row takes them.
"""
from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinyhw.arch import DECODED
from tinyhw.core.errors import MissingTool
from tinyhw.isa.amdgcn import Row, table
from tinyhw.isa.amdgcn.codes import REGISTERS_ONLY
from tinyhw.isa.amdgcn.images import IMAGES

LLVM_MC = shutil.which("llvm-mc-19")
CPUS = {"gfx9": "gfx942", "gfx11": "gfx1100", "gfx12": "gfx1201"}
WIDE = "llvm-mc 19 shows the 16-bit integer constant 0x3800 as 0.5: it takes the operand for a 32-bit one"
TRUE16 = "llvm-mc 19 knows it in its mode true16 alone"
UNKNOWN = "llvm-mc 19 does not know it (autogen/errata)"
# Instructions whose text is not llvm-mc 19's, and why: (generation, pattern of mnemonics, evidence).
DISAGREE = (
  ("gfx11", "v_cmpx?_class_f16|v_align(bit|byte)_b32", WIDE),
  ("gfx11", "image_get_resinfo", "llvm-mc 19 has no list of one address, and shows four"),
  ("gfx11", "v_swap_b16", UNKNOWN),
  ("gfx11", "v_mov_b16", TRUE16),
  ("gfx12", "v_mov_b16", TRUE16),
  ("gfx12", r"v_swap_b16|s_alloc_vgpr|ds_bpermute_fi_b32|ds_bvh_stack_push\w+", UNKNOWN),
  ("gfx12", "v_cmpx?_class_f16|v_align(bit|byte)_b32", WIDE),
)
SEEDS = (7, 8, 9)


VECTOR_ONLY = {"v_readfirstlane_b32", "v_swap_b32", "v_permlane64_b32", "v_swaprel_b32", "v_readlane_b32",
               "v_movrels_b32", "v_movrelsd_b32", "v_movrelsd_2_b32"}
INLINE: list[int] = [*range(128, 209), *range(240, 249)]
WAVE_PATTERNS = [0x130, 0x134, 0x138, 0x13C, 0x142, 0x143]  # lane patterns of gfx9: wave_shl:1 ... row_bcast:31
MODIFIERS = {"neg", "abs", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "omod"}


def scalar(rng: random.Random, dwords: int, source: bool) -> int:
  """Code of a scalar operand that is legal for its size."""
  if source and rng.random() < 0.25: return rng.choice(INLINE)
  if dwords <= 2 and rng.random() < 0.1: return 106
  align = 4 if dwords >= 3 else max(dwords, 1)
  return rng.randrange(0, 104 - max(dwords, 1)) // align * align


IMAGE_CHOICES = {"dmask": 16, "dim": 8, "a16": 2, "tfe": 2, "d16": 2}


def image_choices(row: Row, name: str) -> list[int]:
  """Values of a field that decides how many registers an image takes, for which LLVM 19 has a form.

  It has none for atomics of three channels or with residency (tfe), for lists of one address, for samples of
  multisampled images, nor for four texels in 16 bits with residency, on gfx12 in 16 bits at all; there it shows a form
  with other registers.
  """
  single = bool({"ssamp", "samp"} & set(row.fields)) or "_mip" in row.mnemonic  # images of one sample
  if "_atomic_" in row.mnemonic:
    if name == "dmask": return [3, 15] if "cmpswap" in row.mnemonic else [1, 3]
    if name == "tfe": return [0]
  if name == "dim": return [n for n in range(8) if not (n > 5 and single or row.variant == "nsa" and n in {0, 4})]
  if row.variant == "nsa" and name == "a16": return [0]
  if "gather4" in row.mnemonic and name == ("d16" if row.isa == "gfx12" else "tfe"): return [0]
  return list(range(IMAGE_CHOICES[name]))


def field_value(rng: random.Random, row: Row, name: str, width: int) -> int:
  """A legal value of one field of a row."""
  spec = next((o for o in row.operands if o[0] == name), None)
  kind, dwords, half = (spec[2], spec[3], spec[5]) if spec else ("", 0, "")
  if row.family in IMAGES and kind == "v": return rng.randrange(250 if name == "vdata" else 240)
  if row.family in IMAGES and name in IMAGE_CHOICES: return rng.choice(image_choices(row, name))
  last = (128 if half[:1] == "h" else 256) - max(dwords, 1)
  if kind in {"v", "a"}: return rng.randrange(last + 1) | (256 if width > 8 else 0)
  if kind == "p": return 256 + rng.randrange(last + 1)
  if kind == "g":  # either file of vector registers: bit 9, or a field of its own
    code = rng.randrange(0, 256 - dwords) | (rng.getrandbits(1) << 9 if width > 9 else 0)
    return code | 256 if name in {"src0", "src1"} else code
  if kind == "w": return rng.randrange(256) if rng.random() < 0.7 else 256 + scalar(rng, 1, True)
  if kind == "c": return 0 if rng.random() < 0.5 else 0x80 | scalar(rng, 2, False)
  if kind in {"y", "z"} and rng.random() < 0.3: return rng.choice(INLINE)
  if kind in {"x", "y", "z"}:
    only = kind != "x" or row.mnemonic in VECTOR_ONLY or "wmma" in row.mnemonic or rng.random() < 0.5
    return 256 + rng.randrange(last + 1) if only else scalar(rng, dwords, True)
  if kind == "s":
    if name == "sbase": return rng.choice([0, 4, 8, 20, 96])
    if name in {"srsrc", "rsrc", "ssamp", "samp"}: return rng.choice([0, 4, 8, 20, 96])
    constants = spec is not None and spec[4] not in REGISTERS_ONLY
    return scalar(rng, dwords, constants and (name.startswith("src") or name == "soffset" and width >= 8))
  if name in {"neg", "abs"} and not re.search(r"_f\d\d$", row.mnemonic): return 0
  if name in {"neg", "abs"} and row.mnemonic.startswith(("v_cvt_pk_u8", "v_ldexp")): return 0
  if name.endswith("_sel") and name != "op_sel": return rng.randrange(7)
  if name == "dst_unused": return rng.randrange(3)
  if name == "op_sel": return 0 if row.family == "VOP3" else rng.getrandbits(width)
  if name in MODIFIERS: return rng.getrandbits(width) if rng.random() < 0.3 else (7 if name == "op_sel_hi" else 0)
  if name == "dpp_ctrl" and row.isa == "gfx9" and any(o[3] == 2 for o in row.operands):
    return 0x150 + rng.randrange(16)  # instructions on 64 bits have no other lane pattern
  if name == "dpp_ctrl":
    late = [0x150 + rng.randrange(16), *([0x160 + rng.randrange(16)] if row.isa != "gfx9" else WAVE_PATTERNS)]
    return rng.choice([rng.randrange(256), 0x101 + rng.randrange(15), 0x111 + rng.randrange(15),
                       0x121 + rng.randrange(15), 0x140, 0x141, rng.choice(late)])
  return rng.getrandbits(width)


def even(fields: dict[str, int], row: Row) -> dict[str, int]:
  """gfx90a and later have groups of vector registers that start at even ones; LLVM's assembler refuses others."""
  return {name: value & ~1 if any(o[0] == name and o[2] in "vagxpyz" and o[3] > 1 for o in row.operands) else value
          for name, value in fields.items()}


def random_fields(rng: random.Random, row: Row) -> dict[str, int]:
  out = {}
  for name, pieces in row.fields.items():
    declared = sum(((1 << w) - 1) << bit for _, bit, w in pieces)
    out[name] = field_value(rng, row, name, max(bit + w for _, bit, w in pieces)) & declared
  return out


@dataclass
class LlvmReport:
  """What came of one generation: rows, those compared, those that differ, and an example by mnemonic."""
  rows: int = 0
  compared: set[int] = field(default_factory=set)
  wrong: set[int] = field(default_factory=set)
  differ: dict[str, str] = field(default_factory=dict)

  @property
  def exact(self) -> int: return len(self.compared - self.wrong)


def disassembled(generation: str, words: list[bytes], features: str = "") -> list[list[str] | None]:
  """llvm-mc's lines for each word, none where it refuses the start; None where the marker after the word was lost.

  An s_nop with a number after each word, twice, tells which lines belong to it: after a refusal LLVM goes on inside
  the word, and a literal may take the marker. Where llvm-mc dies, as it does of a reserved selection of SDWA, it is
  started again behind that word.
  """
  if LLVM_MC is None: raise MissingTool("llvm-mc-19 is not installed", where="tools/ledger/llvm.py")
  given = []
  for n, data in enumerate(words):
    given += [" ".join(f"0x{b:02x}" for b in data), f"0x{n & 255:02x} 0x{n >> 8 & 255:02x} 0x80 0xbf " * 2]
  command = [LLVM_MC, "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={CPUS.get(generation, generation)}",
             f"-mattr={features}"]
  done = subprocess.run(command, input="\n".join(given), capture_output=True, text=True, check=False)
  texts = (re.sub(r"\s+", " ", text.strip()) for text in done.stdout.splitlines() if text.startswith("\t"))
  given = [line for line in texts if line and line[0] != "."]
  refused = {int(n) // 2 for n in re.findall(r"<stdin>:(\d+):1: \w+: invalid instruction", done.stderr)}
  out: list[list[str] | None] = [None] * len(words)
  at = start = 0  # a mark has 16 bits: it belongs to one of the next words
  for k in range(1, len(given)):
    if not given[k].startswith("s_nop ") or given[k] != given[k - 1]: continue
    n = at + (int(given[k].split()[1], 0) - at & 0xFFFF)
    if n >= min(len(words), at + 64): continue  # the number of another s_nop
    # after a lost mark, its word's lines are here too
    out[n] = [] if n in refused else given[start:k - 1] if n == at else None
    at = n + 1
    start = k + 1
  if done.returncode < 0 and at < len(words):  # llvm-mc has died of a word, or of bytes inside one that it refused
    out[at + 1:] = disassembled(generation, words[at + 1:], features)
  return out


def compare(generation: str, seed: int, words: int = 3) -> LlvmReport:
  """llvm-mc on random words of every row. Words with an operand that LLVM marks as invalid are not compared."""
  rng, isa, report = random.Random(seed), table(generation), LlvmReport()
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
    if theirs == mine: continue
    report.wrong.add(number)
    report.differ[name] = f"{code.hex()}: {mine!r}, LLVM {theirs!r}"
  return report


def check(isa: str) -> dict[str, Any]:
  """How a table's text compares: rows, those compared, those exact, and why each differing instruction differs.

  A difference without a known reason shows the two texts. Raises MissingTool without llvm-mc 19.
  """
  reports = [compare(isa, seed) for seed in SEEDS]
  compared = set().union(*(r.compared for r in reports))
  wrong = set().union(*(r.wrong for r in reports))
  different = {}
  for name, shown in sorted(item for r in reports for item in r.differ.items()):
    mnemonic = name.split()[0]
    known = (why for g, pattern, why in DISAGREE if g == table(isa).name and re.fullmatch(pattern, mnemonic))
    different[mnemonic] = next(known, shown)
  return {"rows": reports[0].rows, "compared": len(compared), "exact": len(compared - wrong), "different": different}


def main() -> None:
  """Compare every table and write the record."""
  path = Path(__file__).with_name("llvm.json")
  found = {isa: check(isa) for isa in sorted({a.table for a in DECODED.values()})}
  path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
  for isa, one in found.items():
    print(f"{isa}: {one['exact']} of {one['rows']} rows have llvm-mc 19's text ({one['compared']} compared)")
    for mnemonic, why in one["different"].items(): print(f"  {mnemonic}: {why}")


if __name__ == "__main__": main()
