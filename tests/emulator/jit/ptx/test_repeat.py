"""Launches that are run again: what they leave, count and raise is what a launch by itself does."""
from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import kernel
from tinyhw.core.errors import Interrupted, MachineFault, PageFault, WatchdogExpired
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.engines.ptx_repeat import Repeated
from tinyhw.emulator.jit.ptx.launch import repeat as compiled
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse

DATA, PARAMS, SIZE = 0x1_0000_0000, 0x3_0000_0000, 1 << 16
ADD = "mad.lo.u32 %r1, %t, 4, 0; cvt.u64.u32 %l1, %r1; add.u64 %l2, %in, %l1; add.u64 %l3, %out, %l1; "
PLAIN = ADD + "ld.global.u32 %r2, [%l2]; add.u32 %r2, %r2, 1; st.global.u32 [%l3], %r2;"
SHARED = ADD + """mov.u32 %r3, s; add.u32 %r3, %r3, %r1; ld.shared.u32 %r4, [%r3]; ld.global.u32 %r2, [%l2];
  st.shared.u32 [%r3], %r2; bar.sync 0; add.u32 %r2, %r2, %r4; st.global.u32 [%l3], %r2;"""
STACK = ADD + """mov.u32 %r3, own; ld.local.u32 %r4, [%r3]; ld.global.u32 %r2, [%l2]; st.local.u32 [%r3], %r2;
  add.u32 %r2, %r2, %r4; st.global.u32 [%l3], %r2;"""
LONG = ADD + """red.global.add.u32 [%out+4096], 1; ld.global.u32 %r2, [%l2]; mov.u32 %r5, 0;
  again: add.u32 %r2, %r2, %r5; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 9000; @%p1 bra again;
  st.global.u32 [%l3], %r2;"""
WAITS = ADD + """ld.global.u32 %r2, [%l2]; setp.eq.u32 %p1, %t, 0; @%p1 bra last;
  wait: ld.volatile.global.u32 %r4, [%out]; setp.eq.u32 %p2, %r4, 77; @!%p2 bra wait; bra store;
  last: mov.u32 %r2, 77;
  store: st.global.u32 [%l3], %r2;"""


class Runs:
  """A kernel, ready to be run again and again; parameters of run n are at PARAMS + 256 n."""

  def __init__(self, body: str, more: str = "", *, block: int = 1, grid: int = 1, watchdog: int = 1_000_000) -> None:
    self.space, self.count = AddressSpace("repeat"), 0
    for at in (DATA, DATA + SIZE, PARAMS):
      self.space.map(at, SIZE, Region("data", SIZE))
    self.program = Program(link(parse(kernel(body, more))), "k", 0)
    self.dispatch = Dispatch(self.program, (grid, 1, 1), (block, 1, 1), 0, 16)
    self.repeated = Repeated(self.space, self.dispatch, watchdog=watchdog, engine="jit")
    self.rng = np.random.default_rng(0)

  def params(self, source: int = DATA, out: int = DATA + SIZE) -> int:
    at, self.count = PARAMS + 256 * (self.count % 64), self.count + 1
    self.space.write(at, source.to_bytes(8, "little") + out.to_bytes(8, "little"))
    return at

  def run(self, **where: int) -> tuple[Stats, bool]:
    """What it did, and whether it was done at once."""
    params = self.params(**where)
    found = self.repeated.at_once(params)
    if found is not None: return found, True
    return ended(self.repeated.start(params, None, [])), False

  def check(self, threads: int) -> bool:
    """One run with new data against the reference; whether it was done at once."""
    self.space.write(DATA, self.rng.integers(0, 1 << 30, SIZE // 4, np.uint32).tobytes())
    self.space.write(DATA + SIZE, bytes(SIZE))
    stats, at_once = self.run()
    found = self.space.read(DATA + SIZE, SIZE)
    self.space.write(DATA + SIZE, bytes(SIZE))
    expected = dispatch(self.space, replace(self.dispatch, params=self.params()), engine="jit")
    assert found == self.space.read(DATA + SIZE, SIZE)
    assert (stats.instructions, stats.waves) == (expected.instructions, expected.waves)
    return at_once


def ended(run: Generator[Any, None, Stats]) -> Stats:
  while True:
    try: next(run)
    except StopIteration as over: return over.value


@pytest.mark.parametrize("threads, grid", [(1, 1), (32, 1), (33, 3), (256, 4)])
@pytest.mark.parametrize("body, more", [(PLAIN, ""), (SHARED, ".shared .align 4 .b8 s[1024];\n"),
                                        (".local .align 4 .b8 own[16];" + STACK, "")], ids=["plain", "shared", "stack"])
def test_what_it_leaves_and_counts(body: str, more: str, threads: int, grid: int) -> None:
  runs = Runs(body, more, block=threads, grid=grid)
  assert [runs.check(threads) for _ in range(5)] == [False, False, True, True, True]


def test_a_long_one_goes_on_in_turns() -> None:
  runs = Runs(LONG, block=32)
  assert [runs.check(32) for _ in range(4)] == [False] * 4
  assert runs.repeated._again is not None


@pytest.mark.left("threads that wait")
def test_threads_that_wait_for_each_other_go_back_to_the_reference() -> None:
  runs = Runs(WAITS, block=32)
  for _ in range(3): assert not runs.check(32)
  assert runs.repeated._again is None


def test_new_mappings_are_seen() -> None:
  runs = Runs(PLAIN, block=32)
  assert [runs.check(32) for _ in range(3)][-1]
  runs.space.map(DATA + 4 * SIZE, SIZE, Region("more", SIZE))
  assert not runs.run(out=DATA + 4 * SIZE)[1]
  assert runs.space.read(DATA + 4 * SIZE, 128) == runs.space.read(DATA + SIZE, 128)
  assert runs.run(out=DATA + 4 * SIZE)[1]
  runs.space.unmap(DATA + 4 * SIZE, SIZE)
  with pytest.raises(PageFault) as told: runs.run(out=DATA + 4 * SIZE)
  assert told.value.address == DATA + 4 * SIZE
  assert not runs.check(32)


def test_a_fault_is_the_same_and_the_next_run_is_fine() -> None:
  runs = Runs(PLAIN, block=32)
  assert [runs.check(32) for _ in range(3)][-1]
  texts = set()
  for _ in range(2):
    with pytest.raises(MachineFault) as told: runs.run(out=DATA + SIZE + 2)
    texts.add(str(told.value))
    runs.check(32)
  assert len(texts) == 1 and "misaligned" in texts.pop()


def test_patience_and_the_watchdog() -> None:
  runs = Runs(LONG, block=32, watchdog=20_000)
  for _ in range(3):
    with pytest.raises(WatchdogExpired): runs.run()
  runs = Runs(LONG, block=32)
  for _ in range(3): runs.check(32)
  def tick() -> None: raise Interrupted("of the test")
  with pytest.raises(Interrupted): ended(runs.repeated.start(runs.params(), tick, []))
  runs.check(32)


def test_large_ones_and_other_engines_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
  runs = Runs(PLAIN, block=32)
  runs.repeated = Repeated(runs.space, runs.dispatch, watchdog=1000, engine="ref")
  assert [runs.check(32) for _ in range(4)] == [False] * 4
  monkeypatch.setattr(compiled, "LARGEST", 64)
  runs = Runs(PLAIN, block=32)
  assert [runs.check(32) for _ in range(4)] == [False] * 4


def test_engines_are_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")
  runs = Runs(PLAIN, block=32)
  runs.repeated = Repeated(runs.space, runs.dispatch, watchdog=1000)
  assert runs.run()[0].engine == "ref"
