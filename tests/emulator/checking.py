"""Hand-written machine code under the checks: `check(text)` assembles it, runs it and returns the report."""
from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from tests.emulator.gpu import Gpu
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.emulator.check.bounds import Bounds
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.check.report import DEFAULT, Report
from tinyhw.emulator.jit.amdgcn.detect import detect
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

SCRATCH = 256  # bytes of a lane


def code_of(text: str, isa: str) -> bytes:
  """Lines of assembly; `name:` marks a place that branches can name, `;` a comment."""
  rows = [line.split(";")[0].strip() for line in text.strip().splitlines()]
  rows = [r for r in rows if r]
  labels: dict[str, int] = {}
  at = 0
  for row in rows:
    if row.endswith(":"): labels[row[:-1]] = at
    else: at += len(assemble(re.sub(r"(s_\w*branch\w*) [a-z]\w*$", r"\1 0", row), table(isa)))
  out = b""
  for row in rows:
    if row.endswith(":"): continue
    if m := re.fullmatch(r"(s_\w*branch\w*) ([a-z]\w*)", row):
      row = f"{m[1]} {(labels[m[2]] - len(out) - 4) // 4 & 0xFFFF}"
    out += assemble(row, table(isa))
  return out


def check(text: str, *, cpu: str = "gfx1100", waves: int = 1, workgroups: int = 1, lds: int = 0, scratch: bool = False,
          vgprs: int = 64, kinds: Collection[str] = DEFAULT, lanes: int = 32) -> Report:
  """Run the program with s[0:1] the address of 64 KiB of numbers, s2 the workgroup's number, v0 the work-item's.

  What watched code says to have no finding has none.
  """
  gpu = Gpu(1 << 21, cpu)  # all of it is kept and compared
  code = code_of(text + "\n s_endpgm", gpu.arch.table)
  entry = gpu.put(np.frombuffer(code, np.uint8))
  data = gpu.put(np.arange(1 << 14, dtype=np.uint32))
  granule = 8 if lanes == 32 else 4
  d = Dispatch(
    entry, (workgroups, 1, 1), (waves * lanes, 1, 1), rsrc1=vgprs // granule - 1 | 0xC0 << 12, rsrc2=2 << 1 | 1 << 7,
    user_data=(data & 0xFFFFFFFF, data >> 32), lds_size=lds, wave32=lanes == 32,
    **({"scratch_base": gpu.alloc(SCRATCH * lanes * 64), "scratch_size": SCRATCH, "scratch_waves": 64} if scratch
       else {}))
  before = bytes(gpu.space.find(data).u8)
  clean = detect(gpu.space, gpu.arch, d, 100_000, Bounds(gpu.space, lds, {}, "LDS")) is not None
  after = gpu.space.find(data).u8.copy()
  gpu.space.find(data).u8[:] = np.frombuffer(before, np.uint8)
  if not clean: assert bytes(after) == before, "a dispatch that is run again finds memory as it was"
  checker = Checker(kinds)
  dispatch(gpu.space, gpu.arch, d, watchdog=100_000, observer=checker)
  if clean:
    assert not {f.kind for f in checker.report} & DEFAULT, f"watched code saw nothing of {checker.report}"
    assert bytes(after) == bytes(gpu.space.find(data).u8)
  SEEN.append((clean, bool(checker.report)))
  return checker.report


SEEN: list[tuple[bool, bool]] = []
