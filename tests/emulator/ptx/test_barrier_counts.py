"""Barriers that wait for so many threads (bar.sync a, b), on both engines.

The PTX ISA, bar: a warp that comes counts as a whole; when the count is reached the barrier is as new. So what comes
beyond it waits for others, and where nobody comes any more that is a deadlock.
"""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.jit.ptx.test_jit import both, kernel, run
from tests.strength import examples
from tinyhw.core.errors import Error, MachineFault

pytestmark = pytest.mark.left("bar", "threads that wait")
STORE = "mad.wide.u32 %l1, %t, 4, %out; st.global.u32 [%l1], 1;"
NEVER = "barrier 1 never completes: 32 of 64 threads have come, and nobody else can"
ODD = "and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 1; setp.gt.u32 %p2, %t, 31; setp.gt.u32 %p3, %t, 63;"

# (threads of the block, what they do, which fault it is, or None)
CASES = {
  "more than it waits for": (96, "bar.sync 1, 64;", NEVER), "twice as many": (128, "bar.sync 1, 64;", None),
  "a count in a register": (96, "mov.u32 %r3, 64; bar.sync 1, %r3;", NEVER),
  "a warp comes late": (96, "@!%p2 bra A; bar.sync 1, 64; A: @%p2 bra B; bar.sync 1, 64; B:", NEVER),
  "a warp has ended": (64, "@%p2 exit; bar.sync 1, 64;", NEVER),
  "a warp goes around": (64, "@%p2 bra A; bar.sync 1, 64; A:", NEVER),
  "threads have ended": (64, "@%p1 exit; bar.sync 1, 64;", None),
  "part of the last warp": (48, "bar.sync 1, 64;", None), "all of them with a count": (96, "bar.sync 1, 96;", None),
  "who arrives counts": (96, "@%p3 bra A; @%p2 bra C; bar.sync 1, 64; bra A; C: bar.arrive 1, 64; A:", None),
  "with votes": (96, "bar.red.popc.u32 %r3, 1, 64, %p1;", NEVER),
  "one after the other": (64, "bar.sync 1, 64; bar.sync 1, 64; bar.sync 2, 64;", None),
  "no whole warps": (80, "bar.sync 1, 80;", "a barrier for 80 threads, which are no whole warps"),
}


@pytest.mark.parametrize("name", CASES)
def test_who_comes_to_a_barrier(name: str) -> None:
  """As the manual has it; a deadlock is told by both engines in the same words."""
  block, body, fault = CASES[name]
  text = kernel(f"{ODD} {body} {STORE}")
  if fault is None:
    found, _ = both(text, b"", block=block)
    ended = "exit" in body
    assert found[:4 * block].view(np.uint32).tolist() == [0 if ended and t % 2 else 1 for t in range(block)]
    return
  told = []
  for how in ("ref", "jit"):
    with pytest.raises(MachineFault) as caught: run(text, "k", b"", how, block=block)
    told.append(str(caught.value.message))
  assert told == [told[0]] * 2 and told[0].startswith(fault)


@settings(max_examples=examples(15))
@given(warps=st.integers(1, 6), count=st.integers(1, 6), rounds=st.integers(1, 3),
       kind=st.sampled_from(["sync", "red.or.pred %p5,"]))
def test_how_many_of_a_block_pass(warps: int, count: int, rounds: int, kind: str) -> None:
  """All of them where their number is a multiple of the count, else a fault, on both engines."""
  if warps % count: rounds = 1  # who has to wait in the end is open
  last = ", %p1" if "red" in kind else ""
  body = " ".join(f"bar.{kind} 1, {32 * count}{last};" for _ in range(rounds))
  outcomes = []
  for how in ("ref", "jit"):
    try: found, _ = run(kernel(f"{ODD} {body} {STORE}"), "k", b"", how, block=32 * warps)
    except Error as error: outcomes.append(type(error).__name__)
    else: outcomes.append(found[:128 * warps].view(np.uint32).sum())
  assert outcomes == [32 * warps if warps % count == 0 else "MachineFault"] * 2
