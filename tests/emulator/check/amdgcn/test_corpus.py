"""No finding on compilers' output: cases of the corpus by LLVM for each generation, and this project's own kernels."""
from __future__ import annotations

import os
import subprocess
import sys
import zlib
from typing import Any

import numpy as np
import pytest

from tests.corpus.corpus import entries, run
from tests.strength import some
from tinyhw.arch import decoded
from tinyhw.core.errors import Unsupported
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Group
from tinyhw.tools.fuzz.build import gpu_object
from tinyhw.tools.fuzz.corpus import all_cases
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import Emulated, emulated

TENSORS = """
import numpy as np
from tinyhw import Tensor
rng = np.random.default_rng(0)
a = Tensor(rng.random((20, 30), np.float32), requires_grad=True)
b = Tensor(rng.random((30, 40), np.float32))
(a @ b).relu().mean().backward()
assert np.isfinite(a.grad.numpy()).all()
assert abs(Tensor(np.ones(20000, np.float32)).sum().numpy() - 20000) < 1
"""


@pytest.mark.parametrize(("cpu", "features", "lanes"), [
  ("gfx1100", "", 32), ("gfx1100", "+wavefrontsize64", 64), ("gfx1201", "", 32), ("gfx90a", "", 64),
  ("gfx942", "", 64)])
def test_no_finding_on_llvms_code(cpu: str, features: str, lanes: int) -> None:
  cases = [c for c in all_cases() if lanes == 32 or not c.name.startswith("amdgcn_")]
  cases = some(cases, 30) + programs(range(50, 54))
  ran, found = 0, []
  for level in range(4):
    chosen = [c for c in cases if c.levels[zlib.crc32(c.name.encode()) % len(c.levels)] == level]
    if not chosen: continue
    checker = Checker()
    machine = Emulated(gpu_object(chosen, level, cpu=cpu, features=features), decoded(cpu), observer=checker)
    for case in chosen:
      try: emulated(case, machine, 0)
      except Unsupported: continue
      ran += 1
      if len(checker.last): found.append(f"{case.name} at O{level}: {checker.last}")
  assert ran > 40 and not found, "\n".join(found[:5])


class Spoilt(Observer):
  """What one wave of each workgroup of two loads at some instructions is something else."""

  def __init__(self, pcs: set[int], wave: int) -> None: self.pcs, self.wave, self.times = pcs, wave, 0

  def after(self, group: Group, pc: int, instruction: Any) -> None:
    if pc not in self.pcs: return
    n = next(o.value for name, o in instruction.operands.items() if name in {"vdst", "vdata"})
    mine = group.waves % 2 == self.wave
    group.v[n] = np.where(mine[:, None], np.uint32(0x12345678), group.v[n])
    self.times += int(mine.sum())


def test_tritons_race_reads_what_it_throws_away() -> None:
  """docs/checks.md: wave 1 has a copy of what wave 0 loads, adds to and stores, and loads it at any time. What it has
  loaded is thrown away: with other values there the results are right, and with other ones in wave 0 they are not."""
  entry = max((e for e in entries() if (e.case, e.target, e.language) == ("layer_norm_backward", "gfx942", "Triton")),
              key=lambda e: e.compiler)
  checker = Checker()
  assert not run(entry, "ref", observer=checker)
  assert {(f.kind, f.wave) for f in checker.report} == {("race", 0)} and len(checker.report) == 2
  loads = {f.other_pc for f in checker.report if f.other_pc is not None}
  assert all("load" in str(f.other_instruction) and "store" in f.instruction for f in checker.report)
  for wave, right in ((1, True), (0, False)):
    spoilt = Spoilt(loads, wave)
    assert (not run(entry, "ref", observer=spoilt)) == right and spoilt.times == 2 * 6


def test_no_finding_on_tensors_kernels() -> None:
  done = subprocess.run([sys.executable, "-c", TENSORS], capture_output=True, text=True,
                        env=os.environ | {"MOCKGPU": "1", "DEV": "AMD", "EMU_CHECK": "1"})
  assert done.returncode == 0 and done.stderr == "", done.stderr
