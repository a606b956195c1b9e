"""Random linear programs give the same in every language that this machine compiles and runs as in the UOp emulator."""
from __future__ import annotations

import numpy as np
import pytest

from tests.compile import test_render_c as c
from tests.compile import test_render_opencl as opencl
from tests.compile.families import Run
from tests.compile.test_render_differential import COUNT, OUTPUTS, Program, on_emulator
from tests.strength import seeds

# name: (threads or one loop, how it runs)
MACHINES: dict[str, tuple[bool, Run]] = {
  name: (False, c.runner(name)) for name in c.COMPILERS}
MACHINES["opencl"] = True, opencl.run


@pytest.mark.parametrize("seed", seeds(range(100, 112)))
@pytest.mark.parametrize("machine", MACHINES)
def test_all_languages_agree(machine: str, seed: int) -> None: agree(seed, *MACHINES[machine])


def agree(seed: int, threads: bool, run: Run) -> None:
  """The program of that seed, a thread or a step of a loop for each element, gives what the UOp emulator has."""
  data = Program(seed).data()
  outputs = []
  for execute, uops in ((on_emulator, Program(seed).for_threads()),
                        (run, Program(seed).for_threads() if threads else Program(seed).for_one_thread())):
    out = [np.zeros(COUNT, d.numpy) for d in OUTPUTS]
    execute(uops, [*out, *(d.copy() for d in data)])
    outputs.append(out)
  for wanted, found in zip(*outputs):
    different = ~((wanted == found) | ((wanted != wanted) & (found != found)))
    assert not different.any(), f"{found[different][:4]}, the emulator has {wanted[different][:4]}"
