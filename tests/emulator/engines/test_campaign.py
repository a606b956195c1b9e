"""A bounded part of the random campaign, always the same programs (tests/campaign has what campaigns do with them)."""
from __future__ import annotations

from collections import Counter

import pytest

from tests.strength import examples, seed
from tinyhw.tools.fuzz.campaign import KINDS, plan

PROGRAMS = {"instructions": 6, "programs": 6, "bytes": 1200, "compiled": 12, "texts": 100, "files": 150,
            "compiled-texts": 4}
FIRST = 1_000_000


@pytest.mark.parametrize("kind", PROGRAMS)
def test_random_machine_code(kind: str) -> None:
  first, count = seed(FIRST), examples(PROGRAMS[kind])
  endings = Counter(KINDS[kind](number) for number in range(first, first + count))
  assert sum(endings.values()) == count


@pytest.mark.parametrize(("programs", "batch"), [(1, 1), (1013, 1), (5000, 3), (1 << 13, 7)])
def test_each_program_has_one_task(programs: int, batch: int) -> None:
  kinds, numbers = ["bytes", "files", "compiled"], []
  task_of = plan(kinds, FIRST, programs, batch)
  tasks = [t for t in map(task_of, range(10_000)) if t is not None]
  for k, task in enumerate(tasks):
    assert (task.number, task.kind) == (k, kinds[k % 3])
    numbers += range(task.first, task.first + task.count)
  assert numbers == list(range(FIRST, FIRST + programs))
