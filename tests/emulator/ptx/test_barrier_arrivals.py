"""Arrivals at named barriers: small programs on both engines, against all orders that their warps could run in.

PTX ISA, bar/barrier: an arrival counts all threads of its warp and does not wait; when as many as `b` says have come,
whoever they are, those that wait go on and the barrier is as new. So arrivals alone can end a phase, and what comes
later begins the next one.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.jit.ptx.test_jit import kernel, run
from tests.strength import examples
from tinyhw.core.errors import MachineFault

pytestmark = pytest.mark.left("bar", "threads that wait")
STORE = "mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], 1;"


@dataclass(frozen=True)
class Step:
  """Warps of `who`, as bits, come to a barrier; `waits` or only arrive."""
  who: int
  number: int
  waits: bool


@dataclass(frozen=True)
class Program:
  """What a block of so many warps does; `counts` is how many warps each barrier waits for, 0 for the block's."""
  warps: int
  counts: tuple[int, ...]
  steps: tuple[Step, ...]

  def text(self) -> str:
    """As PTX: each step is code that the other warps jump over."""
    lines = ["shr.u32 %r1, %t, 5;"]
    for n, s in enumerate(self.steps):
      lines.append(f"shr.u32 %r2, {s.who}, %r1; and.b32 %r2, %r2, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra L{n};")
      count = self.counts[s.number]
      many = f", {32 * (count or self.warps)}" if count or not s.waits else ""
      lines.append(f"bar.{'sync' if s.waits else 'arrive'} {s.number}{many}; L{n}:")
    return kernel(" ".join([*lines, STORE]))

  def outcomes(self) -> set[bool]:
    """Whether all warps come to their end, in every order that there is."""
    todo = [tuple(s for s in self.steps if s.who >> w & 1) for w in range(self.warps)]
    first = (0,) * self.warps, (0,) * len(self.counts), (-1,) * self.warps
    seen, open_ = {first}, [first]
    ends: set[bool] = set()
    while open_:
      at, came, waits = open_.pop()
      ready = [w for w in range(self.warps) if waits[w] < 0 and at[w] < len(todo[w])]
      if not ready: ends.add(all(x < 0 for x in waits))
      for w in ready:
        s = todo[w][at[w]]
        new, rest = list(came), list(waits)
        new[s.number] += 1
        if s.waits: rest[w] = s.number
        if new[s.number] == (self.counts[s.number] or self.warps):
          new[s.number], rest = 0, [-1 if x == s.number else x for x in rest]
        state = tuple(x + (k == w) for k, x in enumerate(at)), tuple(new), tuple(rest)
        if state not in seen:
          seen.add(state)
          open_.append(state)
    return ends

  def data(self) -> bytes:
    """As what `TABLE` reads: a row a step, and one of zeros."""
    rows = [(s.who, s.number, 32 * (self.counts[s.number] or self.warps),
             1 if not s.waits else 2 if self.counts[s.number] else 3) for s in self.steps]
    return np.array([*rows, (0, 0, 0, 0)], np.uint32).tobytes()


# the same with all numbers in registers: one kernel for every program
TABLE = kernel(f"""shr.u32 %r1, %t, 5; mov.u64 %l2, %in;
A: ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%l2]; add.u64 %l2, %l2, 16; setp.eq.u32 %p1, %r5, 0; @%p1 bra Z;
shr.u32 %r2, %r2, %r1; and.b32 %r2, %r2, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra A;
setp.eq.u32 %p1, %r5, 2; @%p1 bra C; setp.eq.u32 %p1, %r5, 3; @%p1 bra B; bar.arrive %r3, %r4; bra A;
B: bar.sync %r3; bra A;
C: bar.sync %r3, %r4; bra A;
Z: {STORE}""")


def ends(text: str, warps: int, how: str, data: bytes = b"") -> bool:
  """Whether a kernel comes to its end on an engine; a deadlock is told as one of a barrier."""
  try: found, stats = run(text, "k", data, how, block=32 * warps, size=4096)
  except MachineFault as fault:
    assert fault.message.startswith("barrier ") and "never completes" in fault.message, fault
    return False
  assert found[:128 * warps:4].all() and stats.engine == how, stats.interpreted
  return True


def these(*steps: tuple[int, int, bool], warps: int = 3, counts: tuple[int, ...] = (0, 2)) -> Program:
  return Program(warps, counts, tuple(Step(*s) for s in steps))


@st.composite
def programs(draw: st.DrawFn) -> Program:
  warps = draw(st.integers(1, 4))
  counts = tuple(draw(st.lists(st.integers(0, warps), min_size=1, max_size=3)))
  step = st.builds(Step, st.integers(1, (1 << warps) - 1), st.integers(0, len(counts) - 1), st.booleans())
  whole = [n for n, count in enumerate(counts) if not count]  # who has ended does not count for these
  steps = draw(st.lists(step, min_size=1, max_size=5))
  return Program(warps, counts, tuple(s if s.number not in whole else Step((1 << warps) - 1, s.number, True)
                                      for s in steps))


FOUND = (
  these((3, 1, False), (7, 0, True), (4, 1, True)),  # two arrivals are a phase
  these((3, 1, False), (7, 0, True), (4, 1, True), (1, 1, True)),
  these((1, 1, True), (6, 1, False), (2, 1, False), (7, 0, True), (2, 1, True)),  # one ends what another waits in
  these((1, 1, False), (7, 0, True), (6, 1, True)),  # one that waits is let go, for the other nobody comes
  these((1, 0, False), (6, 0, True), (7, 1, True), counts=(0, 3)),  # who arrives counts for those that name no count
)


def agree(program: Program, text: str, data: bytes = b"") -> None:
  """Both engines do what some order of the warps does; so they agree where all orders do."""
  possible = program.outcomes()
  for how in ("ref", "jit"): assert ends(text, program.warps, how, data) in possible, how


@pytest.mark.parametrize("program", FOUND)
def test_arrivals_that_the_text_counts(program: Program) -> None: agree(program, program.text())


@settings(max_examples=examples(40), deadline=None)
@given(programs())
def test_arrivals_that_a_table_counts(program: Program) -> None: agree(program, TABLE, program.data())
