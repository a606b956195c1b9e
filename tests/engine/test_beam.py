"""`BEAM`: programs are measured on the device and held to the kernel without options; what is found is kept on disk."""
from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, schedule
from tinyhw.compile.render.base import Renderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.registry import Device
from tinyhw.engine import beam
from tinyhw.engine.run import program_of
from tinyhw.ir.uop import UOp


def graph(factor: float) -> UOp:
  x = Tensor.empty(64, 32, device="LLVM")
  return schedule([(x * factor).sum(1).uop]).items[0].ast


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_program_with_other_results_has_no_time(device: str) -> None:
  opened = Device[device]
  right, wrong = graph(3.0), graph(3.5)
  with beam._Race(right, opened) as race:
    assert race.seconds(compile_kernel(right, opened.renderer), math.inf) is not None
    assert race.seconds(compile_kernel(right, opened.renderer), 0.0) is None, "too slow"
    assert race.seconds(compile_kernel(wrong, opened.renderer), math.inf) is None


def test_what_is_found_is_used_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  searches: list[int] = []
  wanted = (Opt(OptKind.VECTOR, 1, 8), Opt(OptKind.UNROLL, 1, 2))
  def found(ast: UOp, renderer: Renderer, width: int, judge: object) -> ProgramSpec:
    searches.append(width)
    return compile_kernel(ast, renderer, wanted)
  monkeypatch.setattr(beam, "search", found)
  monkeypatch.setenv("CACHEDB", str(tmp_path))
  monkeypatch.setenv("BEAM", "3")
  ast, opened = graph(5.0), Device["LLVM"]
  specs: Sequence[ProgramSpec] = [program_of(ast, opened.renderer, opened) for _ in range(2)]
  assert searches == [3] and [s.opts for s in specs] == [wanted, wanted] and specs[0].binary == specs[1].binary
  # Without a search, and with another one, it is another program.
  monkeypatch.delenv("BEAM")
  assert program_of(ast, opened.renderer, opened).opts != wanted and searches == [3]
  monkeypatch.setenv("BEAM", "1")
  assert program_of(ast, opened.renderer, opened).opts == wanted and searches == [3, 1]


def test_values_are_those_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
  """A short search, on the device itself."""
  from tinyhw.compile import search
  monkeypatch.setattr(search, "_ROUNDS", 1)
  monkeypatch.setattr(search, "neighbours", lambda opts, kernel: iter([(*opts, Opt(OptKind.VECTOR, 0, 4)),
                                                                       (Opt(OptKind.UPCAST, 0, 9),)]))
  monkeypatch.setenv("CACHEDB", "0")
  x = np.arange(12, dtype=np.float32)
  monkeypatch.setenv("BEAM", "2")
  assert (Tensor(x, device="LLVM") * 7 + 1).numpy().tolist() == (x * 7 + 1).tolist()


def test_a_wrong_width(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("BEAM", "wide")
  with pytest.raises(InvalidArgument, match="BEAM: 'wide' is no number of lists"): beam.width()


def test_short_launches_are_repeated_and_the_fastest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
  """A long launch is known well enough after one."""
  ast, opened = graph(9.0), Device["PYTHON"]
  for times, launches, limit in (([1e-6, 3e-7, 2e-6] + [1e-6] * 20, 8, 1.0), ([9.0, 1.0], 1, 20.0),
                                 ([0.03, 0.02, 0.04, 0.01], 3, 1.0), ([0.01, 0.02, 0.01], 2, 1e-3)):
    left = list(times)
    def launch(*_: object, wait: bool, left: list[float] = left) -> float: return left.pop(0)
    with beam._Race(ast, opened) as race, monkeypatch.context() as patch:
      patch.setattr(type(opened.runtime), "load", lambda *_, launch=launch: launch)
      assert race._results(race.plain, limit)[0] == min(times[:launches])
    assert len(times) - len(left) == launches


@pytest.mark.parametrize("others, winner", [
  ([[2.0, 2.0, 1.0, 2.0, 2.0]], 0),       # one good turn is chance
  ([[0.99, 0.99, 0.99, 0.99, 0.99]], 0),  # as good as the same
  ([[1.5, 0.8, 0.8, 0.8, 0.8]], 1),
  ([[0.8, 0.8, 0.8, 0.8, 0.8], [0.9, 0.7, 0.9, 0.9, 0.9]], 2)])
def test_the_heuristics_program_is_given_up_for_what_is_faster_in_most_turns(
    others: list[list[float]], winner: int, monkeypatch: pytest.MonkeyPatch) -> None:
  ast, opened = graph(11.0), Device["LLVM"]
  programs = [compile_kernel(ast, opened.renderer, opts)
              for opts in ((), (Opt(OptKind.VECTOR, 1, 8),), (Opt(OptKind.VECTOR, 1, 16),))]
  times = {programs[n].binary: iter(t) for n, t in enumerate([[1.0] * 5, *others])}
  def load(self: object, binary: bytes, name: str) -> object: return lambda *_, wait: next(times[binary])
  with beam._Race(ast, opened) as race, monkeypatch.context() as patch:
    patch.setattr(type(opened.runtime), "load", load)
    assert race.fastest(programs[:1 + len(others)]) is programs[winner]
    assert race.fastest(programs[:1]) is programs[0]
