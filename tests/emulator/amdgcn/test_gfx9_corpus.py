"""gfx942 against independent witnesses: a third of the corpus, each case at one level.

`python -m tinyhw.tools.fuzz --arch gfx942` runs all of it at every level.
"""
from __future__ import annotations

import zlib

import pytest

from tests.strength import some
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.corpus import cases_of
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import check

CPU = "gfx942"
CASES = some(cases_of(CPU)[1:], 6)
CHUNKS = [CASES[k:k + 60] for k in range(0, len(CASES), 60)]


def run(cases: list[Case]) -> None:
  found = []
  for n in range(4):
    chosen = [c for c in cases if c.levels[zlib.crc32(c.name.encode()) % len(c.levels)] == n]
    if chosen: found += check(chosen, [n], cpu=CPU)
  assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: f"{chunk[0].name}..{chunk[-1].name}")
def test_corpus(chunk: list[Case]) -> None:
  run(chunk)


def test_random_programs() -> None:
  run(programs(range(3000, 3020)))
