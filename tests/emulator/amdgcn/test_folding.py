"""The emulator against what LLVM's optimizer folds AMDGPU intrinsics of constant arguments to."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw.arch import decoded
from tinyhw.tools.fuzz.build import gpu_object
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import cases_of
from tinyhw.tools.fuzz.folding import folded, folds
from tinyhw.tools.fuzz.run import Emulated, differing, emulated, inputs

CPUS = ["gfx1100", "gfx1201", "gfx942"]


def intrinsics(cpu: str) -> list[Case]:
  return [c for c in cases_of(cpu) if c.name.startswith("amdgcn_") and folds(c)]


@pytest.mark.parametrize("cpu", CPUS)
def test_constants_are_folded_to_what_the_emulator_computes(cpu: str) -> None:
  cases = intrinsics(cpu)
  machine = Emulated(gpu_object(cases, 1, cpu=cpu), decoded(cpu), "ref")
  names, values = set(), 0
  for case in cases:
    arrays = inputs(case, 5)
    known = folded(case, arrays, cpu)
    # LLVM's 2/pi ends some bits before that of AMD's manual (1201 bits), and is zero from there
    if "trig_preop" in case.name: known = {k: x for k, x in known.items() if x.any()}
    if not known: continue
    lanes = sorted(known)
    got = emulated(case, machine, 5)[-1][lanes]
    want = np.concatenate([known[k] for k in lanes])
    wrong = differing(case, case.outputs[0], np.ascontiguousarray(got), want)
    assert not wrong.size, (case.name, [[hex(a[lanes[int(k)]]) for a in arrays] for k in wrong[:3]],
                            got.reshape(-1)[wrong[:3]], want[wrong[:3]])
    names.add(case.name)
    values += len(lanes)
  assert len(names) >= 33 and values >= 4000, (sorted(names), values)
