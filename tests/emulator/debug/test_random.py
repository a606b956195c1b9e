"""Random instructions: the debugger's loop and the recorder against the interpreter alone."""
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.emulator.gpu import Gpu
from tests.strength import examples, seed
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import Dispatch, coverage, dispatch
from tinyhw.emulator.debug.amdgcn.debugger import AmdDebugger
from tinyhw.emulator.debug.record import Recorder
from tinyhw.emulator.debug.report import Report
from tinyhw.isa.amdgcn import Row, Table, table
from tinyhw.tools.ledger.llvm import random_fields

END = bytes.fromhex("0000b0bf")
CPUS = {"gfx1100": ("gfx11", END), "gfx1201": ("gfx12", END), "gfx942": ("gfx9", bytes.fromhex("000081bf"))}


def rows_of(isa: Table) -> list[Row]:
  """Rows of instructions that are executed."""
  return [r for r in isa.rows() if r.family != "EXP" and not r.mnemonic.startswith(("s_trap", "s_sleep", "ds_gws"))
          and all(coverage.status(p.strip().replace("v_dual_", "v_"), isa.name) != "missing"
                  for p in r.mnemonic.split("::"))]


def programs(gpu: Gpu, isa: Table, end: bytes, count: int, seed: int) -> Iterator[Dispatch]:
  """Dispatches of a few random instructions, each written over the one before."""
  rng, rows = random.Random(seed), rows_of(isa)
  code, data = gpu.alloc(4096), gpu.alloc(1 << 16)
  wave64 = isa.name == "gfx9"
  while count:
    program = b""
    try:
      for _ in range(5):
        row = rng.choice(rows)
        program += isa.encode(row, random_fields(rng, row))
    except Error: continue
    count -= 1
    gpu.space.write(code, program + end * 4)
    users = tuple(rng.getrandbits(32) if k % 2 == 0 else 1 for k in range(16))
    yield Dispatch(code, (rng.choice([1, 3]), 1, 1), (rng.choice([20, 64, 150]), 1, 1), 31 | 0xC0 << 12 | 1 << 21,
                   16 << 1 | 1 << 7, 0, users, lds_size=4096, wave32=not wave64 and rng.random() < 0.7,
                   scratch_base=data, scratch_size=64, scratch_waves=512)


def outcome(run: Any) -> tuple[Any, str]:
  try: return run(), ""
  except Error as error: return None, f"{type(error).__name__}: {error}"


def same_end(text: str, other: str) -> bool:
  """Whether two runs ended alike. A block's instructions are counted as it begins, the debugger counts each by itself:
  the place where a wave has used up its instructions is not the same."""
  return text == other or text.startswith("WatchdogExpired") and other.startswith("WatchdogExpired")


@pytest.mark.parametrize("cpu", CPUS)
def test_debugger_recorder_and_interpreter_agree(cpu: str) -> None:
  """The same memory, count of instructions and error, however it is run."""
  name, end = CPUS[cpu]
  isa, gpu = table(name), Gpu(1 << 18, cpu)
  rng, finished = random.Random(seed(7)), 0
  for d in programs(gpu, isa, end, examples(150), seed=seed(5)):
    before = gpu.region.u8.copy()
    stats, error = outcome(lambda d=d: dispatch(gpu.space, gpu.arch, d, watchdog=3000))
    after = gpu.region.u8.copy()

    gpu.region.u8[:] = before
    recorder = Recorder()
    seen, seen_error = outcome(lambda d=d, r=recorder: dispatch(gpu.space, gpu.arch, d, watchdog=3000, observer=r))
    assert seen_error == error and (gpu.region.u8 == after).all()
    if seen is not None:
      report = Report.of(recorder)
      assert report.executed == seen.instructions == stats.instructions
      assert report.html() and report.json() and all(i.lanes <= report.wave_lanes for i in report.instructions)

    gpu.region.u8[:] = before
    code = (d.entry_pc, d.entry_pc + 4096)
    with AmdDebugger(gpu.space, gpu.arch, d, {"start": d.entry_pc}, [code], watchdog=3000) as debugger:
      if rng.random() < 0.5: debugger.break_on("*", ignore=rng.randrange(4), temporary=True)
      while (stop := debugger.run()).reason == "breakpoint": assert debugger.disassemble() and debugger.waves()
      if stop.reason == "end":
        finished += 1
        assert not error and debugger.engine.stats.instructions == stats.instructions
      else: assert stop.reason == "fault" and same_end(stop.text, error)
      assert (gpu.region.u8 == after).all()
    gpu.region.u8[:] = before
  assert finished > 10


@pytest.mark.parametrize("cpu", CPUS)
def test_snapshots_of_random_programs_come_back(cpu: str) -> None:
  """Going back to a snapshot and on again gives the same end."""
  name, end = CPUS[cpu]
  isa, gpu = table(name), Gpu(1 << 18, cpu)
  for d in programs(gpu, isa, end, 40, seed=11):
    before = gpu.region.u8.copy()
    with AmdDebugger(gpu.space, gpu.arch, d, {}, [(d.entry_pc, d.entry_pc + 4096)], watchdog=3000) as debugger:
      debugger.stepi(2)
      if debugger.last.reason == "fault" or debugger.ended: continue
      kept, memory = debugger.snapshot(), gpu.region.u8.copy()
      first, end_memory = debugger.run(), gpu.region.u8.copy()
      debugger.restore(kept)
      assert (gpu.region.u8 == memory).all() and debugger.diff(kept) == []
      again = debugger.run()
      assert (again.reason, again.text) == (first.reason, first.text) and (gpu.region.u8 == end_memory).all()
    gpu.region.u8[:] = before
