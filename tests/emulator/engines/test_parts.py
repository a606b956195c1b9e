"""Dispatches of many workgroups that are run again, in parts, in one thread or two: they do what they did before."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.emulator.engines.test_repeat import CODE, FAR, OUT, TEXT, Machine, assemble, same, two, words
from tests.emulator.gpu import ARCH
from tests.emulator.jit.amdgcn.test_jit import descriptor, program, prologue, store
from tests.strength import seeds
from tinyhw.core.errors import Interrupted
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import Repeated
from tinyhw.emulator.jit.amdgcn import parts, run, threads
from tinyhw.emulator.jit.background import BACKGROUND

SIZE = 1 << 17  # bytes that all workgroups store to
# The workgroup that is s3 goes round s2 times more than the others, and stores 1 for all that.
UNEVEN = """
  v_lshlrev_b32_e32 v1, 2, v0
  s_mov_b32 s6, 1
  s_cmp_lg_u32 s3, s4
  s_cbranch_scc1 loop
  s_mov_b32 s6, s2
loop:
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 loop
  s_add_u32 s6, s6, s4
  v_mov_b32_e32 v2, s6
  s_lshl_b32 s5, s4, 8
  v_add_nc_u32_e32 v4, s5, v1
  global_store_b32 v4, v2, s[0:1]
  s_endpgm
"""


def shaped(block: int, grid: int, lds: int = 1024) -> Dispatch:
  return replace(descriptor(lds=lds), block=(block, 1, 1), grid=(grid, 1, 1), user_data=())


@pytest.fixture(params=[1, 2])
def runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
  """How many parts each run in parts has entered; with two threads they are small."""
  seen: list[int] = []
  original: Callable[..., Any] = parts.Parts.run

  def watched(self: parts.Parts, *args: Any) -> Any:
    seen.append(0)
    turns = original(self, *args)
    while True:
      try: yield next(turns)
      except StopIteration: return
      finally: seen[-1] = len(self._had)
  monkeypatch.setattr(parts.Parts, "run", watched)
  monkeypatch.setenv(threads.VARIABLE, str(request.param))
  if request.param > 1: monkeypatch.setattr(threads, "WORTH", 1)
  yield seen


@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("block, grid", [(64, 300), (40, 65), (32, 33)])
def test_other_user_data(block: int, grid: int, barrier: bool, runs: list[int]) -> None:
  machines, rng = two(shaped(block, grid), code=assemble(barrier=barrier)), random.Random(block)
  for _ in range(5): same(machines, words(rng.randrange(1, 9), rng.getrandbits(20), OUT + 4 * rng.randrange(8)), SIZE)
  assert len(runs) >= 3 and min(runs) >= (1 if grid < 300 else 3)


def test_parts_that_take_longer_go_on_and_the_others_begin(runs: list[int]) -> None:
  """More instructions than one turn has, of one workgroup, and the watchdog's."""
  machines = two(shaped(64, 300, 0), code=assemble(UNEVEN), watchdog=1_000_000)
  long = run.TURN
  for slow, n in ((7, 3), (7, 3), (150, 3), (150, long), (299, 2), (299, long), (0, long), (140, 400_000), (9, 9)):
    same(machines, words(n, slow), SIZE)
    BACKGROUND.wait()
  assert len(runs) >= 4 and min(runs) < max(runs)


def test_a_fault_is_the_same_and_leaves_nothing(runs: list[int]) -> None:
  machines = two(shaped(64, 300))
  for at in (OUT, OUT, OUT, FAR, OUT, OUT, OUT):
    plain, repeated = (m.run(words(4, 2, at)) for m in machines)
    assert plain == repeated
    if at == OUT: assert len({m.gpu.space.read(OUT, SIZE) for m in machines}) == 1
  assert len(runs) >= 2


def test_code_and_mappings_that_change_are_seen(runs: list[int]) -> None:
  machines = two(shaped(64, 130))
  for _ in range(3): same(machines, words(2, 5), SIZE)
  for m in machines: m.gpu.space.write(CODE, assemble(TEXT.replace("ds_add_u32", "ds_sub_u32")))
  before = machines[1].gpu.space.read(OUT, 4)
  for _ in range(3): same(machines, words(2, 5), SIZE)
  assert machines[1].gpu.space.read(OUT, 4) != before
  for m in machines:
    m.gpu.space.unmap(CODE, 1 << 22)
    m.gpu.space.map(CODE, 1 << 20, m.gpu.region)
    m.gpu.space.map(OUT, 1 << 20, m.gpu.region, 2 << 20)
  for _ in range(3): same(machines, words(3, 9), SIZE)
  assert len(runs) >= 3


def test_runs_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
  """Parts of one dispatch between parts of another: they share the memory of registers."""
  monkeypatch.setenv(threads.VARIABLE, "1")
  machine = Machine(assemble(), shaped(64, 300), "jit", True)
  space, d = machine.gpu.space, shaped(64, 300)
  both = [Repeated(space, ARCH, d, watchdog=10_000_000, engine="jit") for _ in range(2)]
  outs = OUT, OUT + SIZE
  for value in range(1, 5):
    turns = [kept.start(words(3, value + 7 * k, out), lambda: None) for k, (kept, out) in enumerate(zip(both, outs))]
    going, rng = [*turns], random.Random(value)
    while going:
      chosen = rng.choice(going)
      try: assert next(chosen) is None
      except StopIteration: going.remove(chosen)
    for k, out in enumerate(outs):
      assert set(memoryview(space.read(out, 300 * 128)).cast("I")) == {3 * (value + 7 * k)}
  assert all(kept._parts is not None for kept in both)


def test_what_ends_it_from_outside_ends_it_between_parts(runs: list[int]) -> None:
  machine, looks = Machine(assemble(), shaped(64, 300), "jit", True), 0
  kept = Repeated(machine.gpu.space, ARCH, shaped(64, 300), watchdog=10_000_000, engine="jit")
  for _ in range(3): list(kept.start(words(1, 1), lambda: None))

  def tick() -> None:
    nonlocal looks
    looks += 1
    if looks == 2: raise Interrupted("enough")
  before = len(runs)
  with pytest.raises(Interrupted): list(kept.start(words(2, 2), lambda: tick))
  assert len(runs) == before + 1 and runs[-1] >= 1
  list(kept.start(words(3, 5), lambda: None))
  assert set(memoryview(machine.gpu.space.read(OUT, 300 * 128)).cast("I")) == {15}


@pytest.mark.parametrize("seed", seeds(range(2)))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Registers of all kinds, branches and memory: nothing is left over from the part and the run before."""
  monkeypatch.setenv(threads.VARIABLE, "1")  # workgroups store to the same places
  rng = random.Random(seed)
  code = prologue(32) + program(rng, 1) + b"".join(store(n) for n in range(12)) + assemble("s_endpgm") * 8
  machines = two(replace(descriptor(64, 27), grid=(70, 1, 1)), code=code)
  for _ in range(4):
    data = rng.randbytes(8192)
    for m in machines: m.gpu.space.write(OUT, data)
    same(machines, (OUT & 0xFFFFFFFF, OUT >> 32, rng.getrandbits(32), rng.getrandbits(32)), 1 << 16)
