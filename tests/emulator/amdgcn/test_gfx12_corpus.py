"""gfx1201 against independent witnesses: a third of the corpus and the cases of its own, each at one level.

`python -m tinyhw.tools.fuzz --arch gfx1201` runs all of them at every level.
"""
from __future__ import annotations

import zlib

import pytest

from tests.strength import THOROUGH
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import cases_of
from tinyhw.tools.fuzz.gfx12 import all_gfx12
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import check

CPU = "gfx1201"
OWN = {c.name for c in all_gfx12()}
CASES = [c for k, c in enumerate(cases_of(CPU)) if THOROUGH or k % 6 == 0 or c.name in OWN]
CHUNKS = [CASES[k:k + 60] for k in range(0, len(CASES), 60)]


def run(cases: list[Case], features: str = "") -> None:
  found = []
  for n in range(4):
    chosen = [c for c in cases if c.levels[zlib.crc32(c.name.encode()) % len(c.levels)] == n]
    if chosen: found += check(chosen, [n], cpu=CPU, features=features)
  assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: f"{chunk[0].name}..{chunk[-1].name}")
def test_corpus(chunk: list[Case]) -> None:
  run(chunk)


def test_random_programs() -> None:
  run(programs(range(2000, 2020)))


def test_waves_of_64_lanes() -> None:
  cases = [c for c in CASES if not c.name.startswith("amdgcn_")][::8 if THOROUGH else 16]
  run([*cases, *programs(range(2020, 2028))], "+wavefrontsize64")
