"""Older mnemonics that LLVM's assembler takes for an instruction of a generation that has renamed it.

LLVM's instruction dump lists instructions, not aliases: llvm-mc itself is asked. Each mnemonic of the other
generations is assembled in a few lines, with the operands that it has there; what the bytes mean says which
instruction it names.
"""
from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess

from tinyhw.core.errors import DecodeError, EncodeError, LayoutError, MissingTool
from tinyhw.isa.amdgcn import Instruction, Row, Table, table
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.sources import Sources
from tinyhw.tools.ledger.llvm import CPUS, LLVM_MC, even, random_fields

PLAIN = frozenset("cpol offset clamp omod neg abs op_sel acc gds tfe offset0 offset1".split())  # forms that differ


def assembled(lines: list[str], cpu: str) -> list[bytes | None]:
  """llvm-mc's bytes of each line, None where it refuses one. Raises MissingTool without llvm-mc 19."""
  if LLVM_MC is None: raise MissingTool("llvm-mc-19 is not installed", where="tinyhw gen aliases")
  command = [LLVM_MC, "-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}", "--show-encoding"]
  done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
  refused = {int(n) - 1 for n in re.findall(r"<stdin>:(\d+):\d+: error:", done.stderr)}
  codes = iter(re.findall(r"encoding: \[([0-9a-fx,]*)\]", done.stdout))
  return [None if n in refused else bytes(int(b, 16) for b in next(codes).split(",")) for n in range(len(lines))]


def example(isa: Table, row: Row, rng: random.Random, plain: bool) -> Instruction | None:
  """A legal instruction of the row, without modifiers when `plain`."""
  fields = even(random_fields(rng, row), row)
  if plain: fields |= {name: 0 for name in PLAIN & fields.keys()}
  try: return isa.decode(isa.encode(row, fields))
  except (DecodeError, EncodeError): return None


def aliases(isa: Table) -> dict[str, str]:
  """Alias -> mnemonic of one generation. Raises LayoutError for a name of two instructions."""
  rng, lines, names = random.Random(4), list[str](), list[str]()
  for other in map(table, CPUS):
    for row in other.rows():
      if other is isa or row.mnemonic in isa.mnemonics or "::" in row.mnemonic: continue
      found = [i for k in range(4) if (i := example(other, row, rng, k < 2)) is not None]
      lines += map(str, found)
      names += [row.mnemonic] * len(found)
  out: dict[str, str] = {}
  for name, code in zip(names, assembled(lines, CPUS[isa.name]), strict=True):
    if code is None: continue
    meant = isa.decode(code).mnemonic
    if out.setdefault(name, meant) != meant: raise LayoutError(f"{name} is {out[name]} and {meant}", where=isa.name)
  return dict(sorted(out.items()))


def generate(sources: Sources) -> str:
  found = {name: aliases(table(name)) for name in CPUS}
  if LLVM_MC is None: raise MissingTool("llvm-mc-19 is not installed", where="tinyhw gen aliases")
  version = subprocess.run([LLVM_MC, "--version"], capture_output=True, text=True, check=True).stdout
  digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
  out = ['"""Older mnemonics of instructions that a generation has renamed, as LLVM\'s assembler takes them.', "",
         "Generated; do not edit. Source:",
         f"  llvm-mc of LLVM {version.split('version ')[1].split()[0]}, licence Apache-2.0 WITH LLVM-exception,",
         f"  asked with lines of the other generations' mnemonics; its answers: sha256 {digest}",
         "Generator: tinyhw gen aliases", '"""', "from __future__ import annotations", "", "ALIASES = {"]
  for name, pairs in found.items():
    out.append(f'  "{name}": {{')
    out += [f"    {alias!r}: {mnemonic!r}," for alias, mnemonic in pairs.items()]
    out.append("  },")
  return "\n".join([*out, "}"]) + "\n"


FAMILY = Family("aliases", "amdgcn_aliases", "older mnemonics that LLVM's assembler takes", (), generate)
