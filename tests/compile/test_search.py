"""The search for options, with costs that are counted instead of measured: so what it finds is the same everywhere."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.compile.test_kernels import HOST, LOCAL, check
from tests.compile.witness import buffer, matmul
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.search import Judge, neighbours, search
from tinyhw.ir.uop import Ops, UOp


def executed(program: ProgramSpec) -> float:
  """Operations of all threads."""
  total, around = 0, 1
  for u in program.uops:
    if u.op is Ops.RANGE: around *= int(u.src[0].vmax)
    total += around
    if u.op is Ops.ENDRANGE: around //= int(u.src[0].src[0].vmax)
  return total * float(np.prod(program.grid) * np.prod(program.block))


def product() -> tuple[UOp, dict[UOp, np.ndarray]]:
  memory: dict[UOp, np.ndarray] = {}
  rng = np.random.default_rng(0)
  a, b = (buffer(rng.integers(-3, 4, s).astype(np.float32), memory) for s in ((4, 6), (6, 4)))
  return matmul(a, b), memory


class Counting(Judge):
  """Measures by a function; in the race at the end by another, if there is one."""

  def __init__(self, measure: Callable[[ProgramSpec], float | None],
               again: Callable[[ProgramSpec], float | None] | None = None) -> None:
    self.measure, self.again = measure, again or measure
    self.measured: list[tuple[Opt, ...]] = []
    self.raced: list[tuple[Opt, ...]] = []

  def seconds(self, program: ProgramSpec, limit: float) -> float | None:
    self.measured.append(program.opts)
    found = self.measure(program)
    return None if found is None or found > limit else found

  def fastest(self, programs: Sequence[ProgramSpec]) -> ProgramSpec:
    self.raced = [p.opts for p in programs]
    return min(programs, key=lambda p: self.again(p) or 0.0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None: monkeypatch.setattr("tinyhw.compile.search._ROUNDS", 3)


@pytest.mark.parametrize("width", [1, 2])
def test_what_is_found_is_no_worse_and_right(width: int) -> None:
  u, memory = product()
  ast = schedule([u]).items[0].ast
  judge = Counting(executed)
  found = search(ast, LOCAL, width, judge)
  assert executed(found) < min(executed(compile_kernel(ast, LOCAL, opts)) for opts in (None, ()))
  assert len(set(judge.measured)) == len(judge.measured), "a list is measured once"
  assert search(ast, LOCAL, width, Counting(executed)).opts == found.opts
  check([u], memory, "local", found.opts)


def test_programs_that_may_not_be_used_are_not_found() -> None:
  ast = schedule([product()[0]]).items[0].ast
  assert search(ast, LOCAL, 1, Counting(lambda program: None)).opts == compile_kernel(ast, LOCAL).opts
  def without_upcast(program: ProgramSpec) -> float | None:
    return None if any(o.kind is OptKind.UPCAST for o in program.opts) else executed(program)
  found = search(ast, LOCAL, 1, Counting(without_upcast))
  assert found.opts and not any(o.kind is OptKind.UPCAST for o in found.opts)


def test_what_was_fast_by_chance_does_not_take_the_heuristics_place() -> None:
  """The finalists are raced against the heuristic's program, which comes first."""
  ast = schedule([product()[0]]).items[0].ast
  usual = compile_kernel(ast, LOCAL).opts
  judge = Counting(executed, lambda program: 1.0 if program.opts == usual else 2.0)
  assert search(ast, LOCAL, 2, judge).opts == usual
  assert judge.raced[0] == usual and 1 < len(judge.raced) <= 5 and len(set(judge.raced)) == len(judge.raced)


def test_neighbours_are_one_step_away_and_cover_what_the_target_has() -> None:
  ast = schedule([product()[0]]).items[0].ast
  opts = (Opt(OptKind.UPCAST, 0, 4),)
  near = set(neighbours(opts, optimize(ast, LOCAL, opts)))
  assert () in near and (Opt(OptKind.UPCAST, 0, 2),) in near and (*opts, Opt(OptKind.LOCAL, 1, 2)) in near
  assert {o.kind for n in near for o in n} == {OptKind.UPCAST, OptKind.UNROLL, OptKind.LOCAL, OptKind.GROUP,
                                               OptKind.GROUPTOP, OptKind.PADTO, OptKind.SWAP, OptKind.NOLOCALS}
  host = {o.kind for n in neighbours((), optimize(ast, HOST, ())) for o in n}
  assert host == {OptKind.UPCAST, OptKind.UNROLL, OptKind.VECTOR, OptKind.THREAD, OptKind.PADTO, OptKind.SWAP,
                  OptKind.PACK}
