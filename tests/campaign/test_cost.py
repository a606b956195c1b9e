"""The simulation of many workers, where its answer is known otherwise."""
from __future__ import annotations

import pytest

from tinyhw.tools.campaign.cost import Fleet, simulate


def test_a_free_scheduler_leaves_only_the_last_tasks() -> None:
  s = simulate(Fleet(8, overhead=0.0, spread=0.0), 80, 3.0)
  assert (s.done, s.again, s.wall, s.efficiency) == (80, 0, pytest.approx(30.0), pytest.approx(1.0))


def test_a_slow_scheduler_decides() -> None:
  """A hundred workers, tasks of a second, 0.1 s of the scheduler for each: it is always busy, ten at work."""
  s = simulate(Fleet(100, overhead=0.1, spread=0.0), 3000, 1.0)
  assert s.efficiency == pytest.approx(0.1, rel=0.05)
  assert s.wall == pytest.approx(3000 * 0.1, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_whoever_dies_each_task_is_done(seed: int) -> None:
  s = simulate(Fleet(20, overhead=0.001, deaths=60.0, back=5.0), 600, 10.0, seed)
  calm = simulate(Fleet(20, overhead=0.001), 600, 10.0, seed)
  assert s.done == calm.done == 600 and s.again > 50 and calm.again == 0
  assert s.efficiency < 0.95 * calm.efficiency
