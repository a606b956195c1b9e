"""How many kernels common programs become: a change of the scheduler shows here, for better or for worse."""
from __future__ import annotations

from tests.compile import deep


def test_work_grows_with_layers_and_different_kernels_do_not() -> None:
  plans = [deep.plan(deep.graph(layers, "LLVM")) for layers in (2, 3, 4)]
  first, second, third = (len(p) for p in plans)
  assert third - second == second - first
  assert len({i.ast for i in plans[1]}) == len({i.ast for i in plans[2]})
