"""Who looks on changes nothing: PTX runs under an observer as it runs without one, and shows what it executes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.ptx.test_ptx import HEAD, kernel
from tests.strength import examples, seeds
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.observe import Access, Observer
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse
from tinyhw.tools.fuzz import ptx as fuzz
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import inputs

BASE = 0x1_0000_0000


class Looking(Observer):
  """Keeps what it is shown: PC, instruction, lanes."""

  def __init__(self) -> None:
    self.seen: list[tuple[int, str, int]] = []
    self.open = 0

  def before(self, group: Any, pc: int, instruction: Any) -> None:
    self.open += 1
    self.seen.append((pc, str(instruction), int(group.lanes.sum())))

  def access(self, group: Any, pc: int, instruction: Any, access: Access) -> None:
    assert (pc, str(instruction)) == self.seen[-1][:2]

  def after(self, group: Any, pc: int, instruction: Any) -> None: self.open -= 1


def both(text: str, threads: int = 64, grid: int = 2) -> tuple[np.ndarray[Any, Any], Looking]:
  """The memory of a kernel under an observer, which is that without one."""
  found, seen = [], Looking()
  for observer in (None, seen):
    space = AddressSpace()
    space.map(BASE, 8192, Region("memory", 8192))
    space.write(BASE + 4096, np.uint64(BASE).tobytes())
    program = Program(link(parse(text)), "k", 0)
    d = Dispatch(program, (grid, 1, 1), (threads, 1, 1), BASE + 4096)
    dispatch(space, d, observer=observer)
    found.append(np.frombuffer(space.read(BASE, 4096), np.uint32).copy())
  assert (found[0] == found[1]).all() and seen.open == 0
  return found[0], seen


# What ends a block, behind a guard that some threads have.
GUARDED = ("@{g} exit;", "@{g} ret;", "@{g} bra OUT;", "@{g} call (%r3), f, (%r2);", "@{g} call g;",
           "@{g} shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;", "@{g} vote.sync.ballot.b32 %r3, %p2, -1;",
           "@{g} bar.warp.sync 0xFFFFFFFF;", "@{g} brx.idx %r4, TO;")
FUNCTIONS = """.func (.reg .b32 %y) f (.reg .b32 %x) { add.u32 %y, %x, 7; ret; }
.func (.reg .b32 %y) h (.reg .b32 %x) { .reg .pred %q; setp.gt.u32 %q, %x, 50; add.u32 %y, %x, 9; @%q ret;
  add.u32 %y, %y, 1; }
.func g { }"""


@pytest.mark.parametrize("guard", ["%p1", "!%p1"])
@pytest.mark.parametrize("which", ["none", "some", "all", "a warp"])
@pytest.mark.parametrize("text", GUARDED)
def test_guards_of_what_ends_a_block(text: str, which: str, guard: str) -> None:
  """A guard decides under an observer, too, and the instruction is shown with the threads whose guard is true."""
  warp = any(word in text for word in ("shfl", "vote", "bar."))  # the whole warp does it, or no thread of it
  if warp and which == "some": which = "a warp"
  limit = {"none": 0, "some": 37, "all": 64, "a warp": 32}[which]
  body = f"""setp.lt.u32 %p1, %t, {limit}; setp.eq.u32 %p2, %t, 3; mul.lo.u32 %r2, %t, 3; mov.u32 %r3, 1;
    and.b32 %r4, %t, 1; mov.u32 %r5, %ctaid.x; mad.lo.u32 %r5, %r5, 256, 0; cvt.u64.u32 %l1, %r5; add.u64 %o, %o, %l1;
    TO: .branchtargets MID, OUT;
    {text.format(g=guard)}
    MID: add.u32 %r3, %r3, 100; st.global.b32 [%o], %r3;
    OUT: st.global.b32 [%o + 512], %r3;"""
  text = kernel(body).replace(HEAD, HEAD + FUNCTIONS)
  out, seen = both(text)
  taken = limit if guard == "%p1" else 64 - limit
  word = text.split(guard + " ")[1].split()[0].rstrip(";")
  shown = sum(lanes for _, i, lanes in seen.seen if f" {word}" in i and i.startswith("@"))
  assert shown == (2 * 64 if word == "bra" else 2 * taken)  # a branch is executed by all
  if word in {"exit", "ret"}: assert (out[:64] != 0).sum() == (out[128:192] != 0).sum() == 64 - taken


def test_the_end_of_a_function_returns() -> None:
  out, _ = both(kernel("call (%r1), h, (%t); call g; st.global.b32 [%o], %r1;").replace(HEAD, HEAD + FUNCTIONS), grid=1)
  assert out[:64].tolist() == [t + 9 + (t <= 50) for t in range(64)]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("start", seeds(range(1)))
def test_llvms_programs(level: int, start: int) -> None:
  """Random programs, which LLVM compiles, with and without one."""
  cases = list(programs(range(start, start + 4)))
  emulated = fuzz.Emulated(fuzz.assembly(cases, level))
  for case in cases:
    given = inputs(case, 1)
    found = []
    for observer in (None, Looking()):
      arrays = [*(np.copy(a) for a in given), *fuzz.outputs(case)]
      emulated.run(case, arrays, observer)
      found.append(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
    assert found[0] == found[1], case.name


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 70), st.sampled_from(["", "!"])), min_size=1, max_size=6))
def test_exits_one_after_another(steps: list[tuple[int, int, str]]) -> None:
  """Threads leave where they are told to: against a model."""
  body, alive, count = "mov.u32 %r1, 0;", np.ones(64, bool), np.zeros(64, np.uint32)
  for shift, limit, sign in steps:
    body += f"shr.u32 %r2, %t, {shift}; setp.lt.u32 %p1, %r2, {limit}; add.u32 %r1, %r1, 1; st.global.b32 [%o], %r1;"
    body += f"@{sign}%p1 exit;"
    count += alive
    less = (np.arange(64) >> shift) < limit
    alive &= less if sign else ~less
  out, _ = both(kernel(body), grid=1)
  assert (out[:64] == count).all()
