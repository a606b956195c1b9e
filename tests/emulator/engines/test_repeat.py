"""Dispatches that are run again: what is kept for them changes nothing of what they do."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import ARCH, Gpu
from tests.emulator.jit.amdgcn.test_jit import descriptor, program, prologue, store
from tests.strength import seeds
from tinyhw.core.errors import Error
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import Repeated, start
from tinyhw.emulator.jit.amdgcn import repeat, run
from tinyhw.emulator.jit.background import BACKGROUND
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.program import program as lines

CODE, OUT, FAR = 0x1_0000_0000, 0x1_0010_0000, 0x2_0000_0000
# Each lane adds s3 to LDS s2 times, which begins with 0, and stores what is there, and s4 once.
TEXT = """
  v_lshlrev_b32_e32 v1, 2, v0
  v_mov_b32_e32 v2, s3
loop:
  ds_add_u32 v1, v2
  s_sub_u32 s2, s2, 1
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 loop
  s_waitcnt lgkmcnt(0)
  BARRIER
  ds_load_b32 v3, v1
  s_lshl_b32 s5, s4, 7
  v_add_nc_u32_e32 v4, s5, v1
  s_waitcnt lgkmcnt(0)
  global_store_b32 v4, v3, s[0:1]
  s_endpgm
"""


def assemble(text: str = TEXT, barrier: bool = False) -> bytes:
  text = text.replace("BARRIER", "s_barrier" if barrier else "")
  return b"".join(item.code for item in lines(text, table("gfx11"), "test"))


def words(count: int, value: int, at: int = OUT) -> tuple[int, ...]: return at & 0xFFFFFFFF, at >> 32, count, value


class Machine:
  """A GPU whose dispatches are run by one way of running them."""

  def __init__(self, code: bytes, d: Dispatch, engine: str, again: bool, watchdog: int = 10_000_000) -> None:
    self.gpu, self._dispatch, self._engine, self._watchdog = Gpu(1 << 22), d, engine, watchdog
    self.gpu.space.write(CODE, code)
    options: dict[str, Any] = {"watchdog": watchdog, "engine": engine}
    self._repeated = Repeated(self.gpu.space, ARCH, d, **options) if again else None
    self._runs = 0

  def _turns(self, user_data: tuple[int, ...]) -> Any:
    if self._repeated is not None: return self._repeated.start(user_data, lambda: None)
    return start(self.gpu.space, ARCH, replace(self._dispatch, user_data=user_data), watchdog=self._watchdog,
                 engine=self._engine)

  def run(self, user_data: tuple[int, ...]) -> Any:
    """Turns, waves and instructions, or the error. Every other dispatch that is kept is first asked to run at once."""
    self._runs += 1
    try:
      if self._repeated is not None and self._runs % 2:
        stats = self._repeated.at_once(user_data)
        if stats is not None: return 1, stats.waves, stats.instructions, list(stats.outside)
      running, turns = self._turns(user_data), 0
      while True:
        try: idle = next(running)
        except StopIteration as end: return turns, end.value.waves, end.value.instructions, list(end.value.outside)
        assert idle is None
        turns += 1
    except Error as e: return type(e), str(e), [getattr(e, k, None) for k in ("pc", "lane", "wave", "address")]


def two(d: Dispatch, engine: str = "jit", code: bytes = b"", **more: Any) -> tuple[Machine, Machine]:
  code = code or assemble()
  return Machine(code, d, engine, False, **more), Machine(code, d, engine, True, **more)


def same(machines: tuple[Machine, Machine], user_data: tuple[int, ...], size: int = 8192) -> Any:
  plain, repeated = (m.run(user_data) for m in machines)
  assert plain == repeated
  a, b = (m.gpu.space.read(OUT, size) for m in machines)
  assert a == b
  return plain


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
  """Whether each run that was kept ready ended at once."""
  seen: list[bool] = []
  original: Callable[[repeat.Again, tuple[int, ...]], int] = repeat.Again.run
  def watched(self: repeat.Again, user_data: tuple[int, ...]) -> int:
    how = original(self, user_data)
    if how != repeat.STALE: seen.append(how == repeat.ENDED)
    return how
  monkeypatch.setattr(repeat.Again, "run", watched)
  yield seen


@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("block, grid", [(32, 1), (64, 3), (40, 5), (1, 1)])
def test_other_user_data(block: int, grid: int, barrier: bool, quick: list[bool]) -> None:
  """Compiled code is left at a barrier, and entered anew."""
  machines, rng = two(_shaped(block, grid), code=assemble(barrier=barrier)), random.Random(block)
  for _ in range(6): same(machines, words(rng.randrange(1, 50), rng.getrandbits(20), OUT + 4 * rng.randrange(8)))
  assert quick == [not barrier] * 5


def _shaped(block: int, grid: int) -> Dispatch:
  return replace(descriptor(lds=1024), block=(block, 1, 1), grid=(grid, 1, 1), user_data=())


def test_a_run_that_takes_longer_goes_on(quick: list[bool]) -> None:
  """More instructions than one turn has, and the watchdog's."""
  machines = two(_shaped(64, 2), watchdog=1_000_000)
  for count in (3, 3, run.TURN, 5, 5, run.TURN * 2, 7, 300_000, 9):
    same(machines, words(count, 1))
    BACKGROUND.wait()  # a better form of the code is another one: what was kept ready for the old one is not used
  assert quick.count(True) >= 2 and quick.count(False) == 3


def test_a_fault_is_the_same_and_leaves_nothing(quick: list[bool]) -> None:
  machines = two(_shaped(64, 1))
  for at in (OUT, OUT, FAR, OUT, OUT): same(machines, words(4, 2, at))
  assert True in quick


def test_code_and_mappings_that_change_are_seen(quick: list[bool]) -> None:
  machines = two(_shaped(32, 1))
  for _ in range(3): same(machines, words(2, 5))
  for m in machines: m.gpu.space.write(CODE, assemble(TEXT.replace("ds_add_u32", "ds_sub_u32")))
  before = machines[1].gpu.space.read(OUT, 4)
  for _ in range(3): same(machines, words(2, 5))
  assert machines[1].gpu.space.read(OUT, 4) != before
  for m in machines:  # the memory that the code stores to goes, and other memory comes to its place
    m.gpu.space.unmap(CODE, 1 << 22)
    m.gpu.space.map(CODE, 1 << 20, m.gpu.region)
    m.gpu.space.map(OUT, 1 << 20, m.gpu.region, 2 << 20)
  for _ in range(3): same(machines, words(3, 9))
  assert quick.count(True) >= 3


def test_lds_beyond_the_workgroup_is_told(quick: list[bool]) -> None:
  machines = two(replace(_shaped(64, 1), lds_size=0))
  for _ in range(3): assert same(machines, words(1, 1))[3]
  assert not any(quick)


def test_lds_that_only_a_later_run_goes_beyond_is_told(quick: list[bool]) -> None:
  text = """
  v_lshlrev_b32_e32 v1, 2, v0
  v_add_nc_u32_e32 v1, s2, v1
  v_mov_b32_e32 v2, s3
  ds_store_b32 v1, v2
  s_waitcnt lgkmcnt(0)
  s_endpgm
"""
  machines = two(_shaped(32, 1), code=assemble(text))
  for _ in range(4): assert not same(machines, words(0, 1))[3]
  assert quick[-1]
  assert same(machines, words(1 << 20, 1))[3]


def test_auto_comes_to_it(quick: list[bool]) -> None:
  machines = two(_shaped(32, 1), "auto")
  for _ in range(6): same(machines, words(2000, 3))
  assert True in quick


@pytest.mark.parametrize("seed", seeds(range(3)))
def test_random_programs(seed: int, quick: list[bool]) -> None:
  """Registers of all kinds, branches and memory: nothing is left over from the run before."""
  rng = random.Random(seed)
  end = assemble("s_endpgm") * 8
  code = prologue(32) + program(rng, 1) + b"".join(store(n) for n in range(12)) + end
  machines = two(descriptor(32, 27), code=code)
  for _ in range(4):
    data = np.frombuffer(rng.randbytes(8192), np.uint32).tobytes()
    for m in machines: m.gpu.space.write(OUT, data)
    same(machines, (OUT & 0xFFFFFFFF, OUT >> 32, rng.getrandbits(32), rng.getrandbits(32)), 1 << 16)
  assert quick
