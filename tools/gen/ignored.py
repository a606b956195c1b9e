"""Bits that AMD's chips ignore in an instruction, as LLVM 22's disassembler has them.

An encoding gives fields to sources that not every instruction has. LLVM 19's tables fix such bits at zero; LLVM 22's
leave them open, and its assembler fills them with the inline constant 0. Its records are not asked but llvm-mc itself:
each bit of each row that is no field is flipped, and where the decoded instruction and its operands stay the same,
LLVM ignores the bit. Bits that decode to something that the text does not show are not ignored. The bits that a row is
found to ignore are then drawn at random together, and must still decode to the same instruction.
"""
from __future__ import annotations

import hashlib
import json
import lzma
import random
import re
import shutil
import subprocess
import textwrap
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from tinyhw.core.errors import LayoutError, MissingTool
from tinyhw.isa.amdgcn import Row, Table
from tinyhw.tools.gen import amdgcn
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.sources import Sources
from tinyhw.tools.ledger.llvm import CPUS, even, random_fields

LLVM_MC: Final = shutil.which("llvm-mc-22")
INSTRUCTIONS: Final = "amdgpu19_compact.json.xz"
SAMPLES: Final = 2  # random legal words of a row, each of which must have the same ignored bits
TOGETHER: Final = 4  # random choices of all ignored bits of a row
CHUNK: Final = 4000


def instructions(cpu: str, words: Sequence[bytes], features: str = "") -> list[str]:
  """What llvm-mc 22 decodes each word to: its record's name and operands; "" where it is not one whole instruction.

  Each word is a block of its own, behind which an s_nop with its number stands twice. llvm-mc dies of some words
  (branches past the end of the address space, some formats of buffers): then halves are asked until they are found.
  """
  if LLVM_MC is None:
    raise MissingTool("llvm-mc-22 is not installed", where="tinyhw gen ignored", hint="apt-get install llvm-22")
  if len(words) > CHUNK: return [
    i for k in range(0, len(words), CHUNK) for i in instructions(cpu, words[k:k + CHUNK], features)]
  lines: list[str] = []
  for n, data in enumerate(words):
    mark = f"[0x{n & 255:02x} 0x{n >> 8:02x} 0x80 0xbf]"
    lines += ["[" + " ".join(f"0x{b:02x}" for b in data) + "]", mark, mark]
  command = [LLVM_MC, "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}", f"-mattr={features}", "--show-inst"]
  done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
  if done.returncode < 0:
    half = len(words) // 2
    return [i for part in (words[:half], words[half:]) for i in instructions(cpu, part, features)] if half else [""]
  shown = re.split(r"^\t(?=[a-z])", done.stdout, flags=re.M)[1:]
  texts = [" ".join(re.findall(r"(?:MCInst #\d+ |MCOperand )([^\s>]+)", block)) for block in shown]
  refused = {(int(n) - 1) // 3 for n in re.findall(r"<stdin>:(\d+):\d+: \w+: invalid instruction", done.stderr)}
  out, at = [], 0
  for n in range(len(words)):
    end = next((k for k in range(at, len(texts) - 1) if texts[k] == texts[k + 1] and re.fullmatch(
      rf"S_NOP_\w+ Imm:{n}", texts[k])), None)
    if end is None: raise LayoutError("llvm-mc's answer has lost its marks", where=words[n].hex())
    out.append(texts[at] if end == at + 1 and n not in refused else "")
    at = end + 2
  return out


def probed(isa: Table, cpu: str, rows: Sequence[Row], features: str = "") -> list[int | None]:
  """For each row the bits outside of its fields that LLVM ignores, None where it knows none of the row's words.

  Raises LayoutError where samples disagree.
  """
  rng = random.Random(22)
  bases = [[isa.encode(r, even(random_fields(rng, r), r)) for _ in range(SAMPLES)] for r in rows]
  words: list[bytes] = []
  places: list[tuple[int, int, int]] = []  # (row, sample, bit or -1)
  for k, row in enumerate(rows):
    free = [bit for bit in range(8 * row.size) if not row.declared >> bit & 1]
    for s, base in enumerate(bases[k]):
      for bit in (-1, *free):
        words.append(base if bit < 0 else flipped(base, 1 << bit))
        places.append((k, s, bit))
  found = dict(zip(places, instructions(cpu, words, features), strict=True))
  out: list[int | None] = []
  for k, row in enumerate(rows):
    samples = [s for s in range(SAMPLES) if found[k, s, -1]]
    masks = {sum(1 << bit for bit in range(8 * row.size) if found.get((k, s, bit)) == found[k, s, -1]) for s in samples}
    if len(masks) > 1: raise LayoutError(f"ignores {' or '.join(map(hex, masks))}", where=f"{isa.name} {row.mnemonic}")
    out.append(masks.pop() if masks else None)
  together(isa, cpu, rows, bases, out, features)
  return out


def everywhere(isa: Table, cpu: str, rows: Sequence[Row]) -> list[int]:
  """The same; rows that LLVM knows where halves of registers have names alone (v_mov_b16) are asked with these."""
  out = probed(isa, cpu, rows)
  again = [k for k, mask in enumerate(out) if mask is None] if isa.name in amdgcn.HALVES else []
  for k, mask in zip(again, probed(isa, cpu, [rows[k] for k in again], "+real-true16"), strict=True): out[k] = mask
  return [mask or 0 for mask in out]


def flipped(code: bytes, bits: int) -> bytes:
  """The word with these bits the other way round."""
  return (int.from_bytes(code, "little") ^ bits).to_bytes(len(code), "little")


def together(isa: Table, cpu: str, rows: Sequence[Row], bases: Sequence[Sequence[bytes]], masks: Sequence[int | None],
             features: str) -> None:
  """Raises LayoutError where several ignored bits at once are not ignored."""
  rng, words, where = random.Random(23), list[bytes](), list[str]()
  for row, samples, mask in zip(rows, bases, masks, strict=True):
    if not mask: continue
    for base in samples:
      words += [base, *(flipped(base, rng.getrandbits(96) & mask) for _ in range(TOGETHER))]
      where += [f"{isa.name} {row.mnemonic} {row.variant}"] * (TOGETHER + 1)
  found = instructions(cpu, words, features)
  for k in range(0, len(words), TOGETHER + 1):
    if found[k] and len(set(found[k:k + TOGETHER + 1])) > 1:
      raise LayoutError("bits that LLVM ignores one by one change the instruction together", where=where[k])


def strict(records: dict[str, Any], generation: str, source: Sources) -> tuple[Table, dict[tuple[object, ...], str]]:
  """The generation's table before any bit is ignored, and LLVM's record of each row by what tells rows apart."""
  rows = amdgcn.select(records, generation, ignored={})
  module = ModuleType(f"strict_{generation}")
  exec(amdgcn.emit(rows, generation, source.find(INSTRUCTIONS).path), module.__dict__)
  return Table(generation, module), {(r.mnemonic, r.variant, r.size, r.value & r.mask): r.name for r in rows}


def generate(sources: Sources) -> str:
  """The module's text: generation -> mask of ignored bits -> LLVM's records of the rows that ignore them."""
  with lzma.open(sources.find(INSTRUCTIONS).path) as file: records = json.loads(file.read())
  found: dict[str, dict[int, list[str]]] = {}
  for generation, cpu in CPUS.items():
    isa, names = strict(records, generation, sources)
    rows = [r for r in isa.rows() if r.variant != "w64"]  # llvm-mc takes words of waves of 32 here
    masks: dict[str, set[int]] = {}
    for row, mask in zip(rows, everywhere(isa, cpu, rows), strict=True):
      masks.setdefault(names[row.mnemonic, row.variant, row.size, row.value], set()).add(mask & row.mask)
    by_mask: dict[int, list[str]] = {}
    for name, several in masks.items():
      if len(several) > 1: raise LayoutError(f"{name}: its rows ignore different bits", where=generation)
      if mask := several.pop(): by_mask.setdefault(mask, []).append(name)
    found[generation] = {mask: sorted(by_mask[mask]) for mask in sorted(by_mask)}
  if LLVM_MC is None: raise MissingTool("llvm-mc-22 is not installed", where="tinyhw gen ignored")
  version = subprocess.run([LLVM_MC, "--version"], capture_output=True, text=True, check=True).stdout
  digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
  out = ['"""Bits that a chip ignores in an instruction, outside of its fields: unused sources of an encoding.', "",
         "Generated; do not edit. Source:",
         f"  llvm-mc of LLVM {version.split('version ')[1].split()[0]}, licence Apache-2.0 WITH LLVM-exception,",
         "  asked with each bit of each row of LLVM 19's tables flipped; its answers:",
         f"  sha256 {digest}",
         "Generator: tinyhw gen ignored", '"""', "from __future__ import annotations", "",
         "# generation -> mask of the bits -> LLVM's records of the instructions",
         "IGNORED: dict[str, dict[int, str]] = {"]
  for generation, groups in found.items():
    out.append(f'  "{generation}": {{')
    for mask, listed in groups.items(): out += [f"    {mask:#x}: (", *(
      f"      {line + ' '!r}" for line in textwrap.wrap(" ".join(listed), 110)), "    ),"]
    out.append("  },")
  return "\n".join([*out, "}"]) + "\n"


FAMILY = Family("ignored", "amdgcn_ignored", "bits that instructions ignore", (INSTRUCTIONS,), generate)
