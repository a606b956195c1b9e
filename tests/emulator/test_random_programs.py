"""Random legal instructions as programs: a result or an error of the project's tree, never anything else."""
from __future__ import annotations

import random

from tests.emulator.gpu import ARCH, Gpu
from tests.isa.test_decode import TABLE
from tinyhw.core.errors import TinyhwError
from tinyhw.emulator.amdgcn import Dispatch, coverage, dispatch
from tinyhw.tools.ledger.llvm import random_fields

END = bytes.fromhex("0000b0bf")


def test_random_programs_end_in_a_result_or_an_error() -> None:
  rng = random.Random(21)
  rows = [r for r in TABLE.rows() if r.family != "EXP" and not r.mnemonic.startswith(("s_trap", "s_sleep"))
          and all(coverage.status(p.strip().replace("v_dual_", "v_"), TABLE.name) != "missing"
                  for p in r.mnemonic.split("::"))]
  gpu = Gpu(1 << 22)
  code, data = gpu.alloc(4096), gpu.alloc(1 << 16)
  finished = 0
  for _ in range(1200):
    program = b""
    for _ in range(4):
      row = rng.choice(rows)
      program += TABLE.encode(row, random_fields(rng, row))
    gpu.space.write(code, program + END * 4)
    d = Dispatch(code, (rng.choice([1, 3]), 1, 1), (rng.choice([20, 32, 64, 100]), 1, 1), 31 | 0xC0 << 12 | 1 << 21,
                 16 << 1 | 1 << 7, 0, tuple(rng.getrandbits(32) if k % 2 == 0 else 1 for k in range(16)), lds_size=4096,
                 wave32=rng.random() < 0.7, scratch_base=data, scratch_size=64, scratch_waves=512)
    try: dispatch(gpu.space, ARCH, d, watchdog=2000)
    except TinyhwError: continue
    finished += 1
  assert finished > 400
