"""All cases. A name occurs once."""
from __future__ import annotations

from tests.tensor.operators import (
  table_elements,
  table_factors,
  table_more,
  table_movement,
  table_network,
  table_reduction,
  table_seldom,
)
from tests.tensor.operators.cases import Case

CASES: list[Case] = [*table_elements.CASES, *table_movement.CASES, *table_reduction.CASES, *table_network.CASES,
                     *table_more.CASES, *table_factors.CASES, *table_seldom.CASES]
assert len({c.name for c in CASES}) == len(CASES), "two cases of one name"
