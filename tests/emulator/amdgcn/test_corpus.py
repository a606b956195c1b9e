"""The gfx1100 emulator against independent witnesses: the same LLVM IR compiled for this CPU, or NumPy.

Here each case runs once, at an optimization level that its name decides; `python -m tinyhw.tools.fuzz` runs all levels,
more inputs, waves of 64 lanes and more random programs.
"""
from __future__ import annotations

import zlib

import pytest

from tests.strength import THOROUGH, seed, seeds, some
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import all_cases
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import check

CASES = all_cases()
CHUNKS = [some(CASES, 4)[k:k + 60] for k in range(0, len(some(CASES, 4)), 60)]
PROGRAMS = 72


def level(case: Case) -> int:
  """The level at which a case runs here."""
  return case.levels[zlib.crc32(case.name.encode()) % len(case.levels)]


def run(cases: list[Case], features: str = "") -> None:
  found = []
  for n in range(4):
    chosen = [c for c in cases if level(c) == n]
    if chosen: found += check(chosen, [n], features=features, seed=seed(0))
  assert not found, "\n".join(map(str, found))


def test_names_are_unique() -> None:
  assert len({c.name for c in CASES}) == len(CASES)


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: f"{chunk[0].name}..{chunk[-1].name}")
def test_corpus(chunk: list[Case]) -> None:
  run(chunk)


@pytest.mark.parametrize("first", [24 * n for n in seeds(range(PROGRAMS // 24))])
def test_random_programs(first: int) -> None:
  run(programs(range(first, first + 24)))


def test_waves_of_64_lanes() -> None:
  cases = [c for c in CASES if not c.name.startswith("amdgcn_")][::6 if THOROUGH else 24]
  run([*cases, *programs(range(1000, 1016))], "+wavefrontsize64")
