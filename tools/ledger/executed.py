"""Which instructions tests execute beside an independent witness: regenerates `executed.json` for the ledger.

    python -m tinyhw.tools.ledger.executed

"scalar witness": `tools/witness`, run by tests/emulator/amdgcn/test_single.py. "LLVM host": the corpus of `tools/fuzz`,
the same IR compiled for the GPU and for the host, run by tests/emulator/amdgcn/test_corpus.py (gfx1100). "silicon":
programs whose results on chips are known (`silicon.py`), run by tests/emulator/engines/test_silicon.py.
"""
from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Final

from tinyhw.emulator.amdgcn import coverage

RECORD: Final = Path(__file__).with_name("executed.json")
GPUS: Final = {"gfx11": "gfx1100", "gfx12": "gfx1201", "gfx9": "gfx942"}
SCALAR: Final = "scalar witness"
HOST: Final = "LLVM host"
SILICON: Final = "silicon"


def executed(isa: str) -> dict[str, list[str]]:
  """Mnemonic -> short names of the witnesses beside which tests execute it, as recorded."""
  found: dict[str, dict[str, list[str]]] = json.loads(RECORD.read_text())
  return found.get(isa, {})


def witnessed(isa: str) -> dict[str, str]:
  """Mnemonic -> kind of witness, of what `tools/witness` executes; computed from its tables and cases."""
  from tinyhw.tools.witness.cases import cases
  from tinyhw.tools.witness.run import bench
  from tinyhw.tools.witness.table import WITNESSES
  generation = bench(GPUS[isa]).table
  out = {}
  for mnemonic in sorted(generation.by_mnemonic):
    x = WITNESSES.get(mnemonic, isa)
    if x is None or coverage.status(mnemonic, isa) == "missing" or not cases(generation, mnemonic, x): continue
    out[mnemonic] = x.kind
  return out


def corpus() -> set[str]:
  """What the corpus executes on gfx1100, each case at the level at which the tests run it."""
  from tinyhw.tools.fuzz.corpus import all_cases
  from tinyhw.tools.fuzz.run import check
  seen: Counter[str] = Counter()
  for level in range(4):
    chosen = [c for c in all_cases() if c.levels[zlib.crc32(c.name.encode()) % len(c.levels)] == level]
    for k in range(0, len(chosen), 60): check(chosen[k:k + 60], [level], executed=seen)
  return {half.strip().replace("v_dual_", "v_") for name in seen for half in name.split("::")}


def on_silicon(isa: str) -> set[str]:
  """What has an effect in programs that leave on the emulator what they left on a chip."""
  from tinyhw.tools.ledger.silicon import witnessed as seen
  return {m for m in seen(isa) if coverage.status(m, isa) not in {"no effect", "missing"}}


def main() -> None:
  """Write the record."""
  record: dict[str, dict[str, list[str]]] = {isa: {m: [SCALAR] for m in witnessed(isa)} for isa in GPUS}
  for name in corpus(): record["gfx11"].setdefault(name, []).append(HOST)
  for isa, rows in record.items():
    for name in on_silicon(isa): rows.setdefault(name, []).append(SILICON)
  parts = []
  for isa, rows in record.items():
    lines = [f"  {json.dumps(m)}: {json.dumps(names)}" for m, names in sorted(rows.items())]
    parts.append(f' "{isa}": {{\n' + ",\n".join(lines) + "\n }")
  RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n")
  for isa, rows in record.items(): print(f"{isa}: {len(rows)} mnemonics executed beside a witness")


if __name__ == "__main__": main()
