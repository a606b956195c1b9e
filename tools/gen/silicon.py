"""Values that instructions gave on chips, for the ledger's witness "silicon".

tinygrad's tests of instructions (`test/amd/hw`) state what programs of a few instructions leave in registers; they were
held against hardware (RDNA3 but for a few). What is taken are facts alone: the words of the programs, which load their
own inputs, and the values that are stated. `silicon_record.py` runs the tests in a process of its own, with results
that note what is asserted of them, so a checkout is given as a source, and what its tests import must be there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.silicon_record import MODULES
from tinyhw.tools.gen.sources import Origin, Sources, head

FOLDER = "test/amd/hw"
ORIGIN = Origin("tinygrad/tinygrad", "commit a9069c177a9da9cca18593edf55acd2e6073cca6", "MIT")
NOTES = [
  "PROGRAMS: test;table;start;lanes;words;checks. `start` is what registers hold, zeros in v0 to v15, s0 to s15 and",
  "VCC or whatever the chip began with, and the wave's size. s[80:81] is the address of the kernel's arguments, which",
  "is that of a buffer of zeros; v255 is the lane; MODE is 0x3c0: no f32 denormals, DX10_CLAMP and IEEE set.",
  "A check: PLACE[,PLACE...] [f16|f32|f64|u] RELATION [VALUE [ALLOWED]]. A place: registers of 32 bits low first (v2:1",
  "is v2 of lane 1), >>, the first bit, &, the mask. Bits are hexadecimal, or @ and a place; the sum of places as",
  "numbers is decimal. ~ allows a distance, abs< asks the size. UNTRACED: tests of which an assertion is left out.",
]


def rows(root: Path) -> list[dict[str, Any]]:
  """What the recorder says of a checkout. Raises LayoutError where a test could not be followed to its end."""
  recorder = Path(__file__).with_name("silicon_record.py")
  done = subprocess.run([sys.executable, str(recorder), str(root)], capture_output=True, text=True)
  if done.returncode: raise LayoutError(f"the tests cannot be recorded: {done.stderr[-300:]}", where=str(root))
  found: list[dict[str, Any]] = json.loads(done.stdout)
  for row in found:
    if row.get("failed"): raise LayoutError(f"{row['name']}: {row['failed']}", where=row["file"])
  return found


def generate(sources: Sources) -> str:
  files = [sources.find(n) for n in FAMILY.needs]
  root = Path(str(files[0].path).removesuffix(files[0].name))
  found = rows(root)
  runs: dict[str, int] = {}
  out = [head("What programs of a few instructions left in registers of AMD chips.", [(ORIGIN, f) for f in files],
              "tinyhw gen silicon", NOTES), 'PROGRAMS = """\\']
  for row in found:
    if "code" not in row or not row["checks"]: continue
    test = f"{row['file'].removesuffix('.py').removeprefix('test_')}.{row['name'].replace('.test_', '.')}"
    runs[test] = runs.get(test, 0) + 1
    if runs[test] > 1: test += f".{runs[test]}"
    out.append(f"{test};{row['isa']};{row['start']};{row['lanes']};{row['code']};{'|'.join(dict.fromkeys(row['checks']))}")
  out += ['"""', "UNTRACED = ("]
  out += [f'  "{row["file"].removesuffix(".py").removeprefix("test_")}.{row["name"].replace(".test_", ".")}",'
          for row in found if row.get("untraced")]
  return "\n".join([*out, ")"]) + "\n"


FAMILY = Family("silicon", "silicon", "values that instructions gave on chips",
                tuple(f"{FOLDER}/{name}.py" for name in ("helpers", *(f"test_{m}" for m in MODULES))), generate)
