"""Random legal instructions as programs: a result or an error of the project's tree, never anything else."""
from __future__ import annotations

import random

import pytest

from tests.emulator.gpu import Gpu
from tests.strength import examples, seed
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import Dispatch, coverage, dispatch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.tools.ledger.llvm import random_fields


@pytest.mark.parametrize(("cpu", "count"), [("gfx1100", 1200), ("gfx1201", 400), ("gfx942", 400)])
def test_random_programs_end_in_a_result_or_an_error(cpu: str, count: int) -> None:
  rng, count = random.Random(seed(21)), examples(count)
  gpu = Gpu(1 << 22, cpu)
  generation = table(gpu.arch.isa)
  end = assemble("s_endpgm", generation)
  rows = [r for r in generation.rows() if r.family != "EXP" and not r.mnemonic.startswith(("s_trap", "s_sleep"))
          and all(coverage.status(p.strip().replace("v_dual_", "v_"), generation.name) != "missing"
                  for p in r.mnemonic.split("::"))]
  code, data = gpu.alloc(4096), gpu.alloc(1 << 16)
  finished = 0
  for _ in range(count):
    program = b""
    for _ in range(4):
      row = rng.choice(rows)
      program += generation.encode(row, random_fields(rng, row))
    gpu.space.write(code, program + end * 4)
    d = Dispatch(code, (rng.choice([1, 3]), 1, 1), (rng.choice([20, 32, 64, 100]), 1, 1), 31 | 0xC0 << 12 | 1 << 21,
                 16 << 1 | 1 << 7, 0, tuple(rng.getrandbits(32) if k % 2 == 0 else 1 for k in range(16)), lds_size=4096,
                 wave32=32 in gpu.arch.wave_sizes and rng.random() < 0.7, scratch_base=data, scratch_size=64,
                 scratch_waves=512)
    try: dispatch(gpu.space, gpu.arch, d, watchdog=2000)
    except Error: continue
    finished += 1
  assert finished > count / 8  # most of gfx942's rows access memory
