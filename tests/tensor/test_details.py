"""Details of Tensor that other tests pass by: what is no number, and what has no axis."""
from __future__ import annotations

from typing import Any

import pytest

from tinyhw import Tensor
from tinyhw.core.errors import InvalidArgument


class Reading:
  """Has an item, but is no array."""

  def item(self) -> float: return 3.0


@pytest.mark.parametrize("value", [Reading(), "1", None, {}, 1j], ids=lambda v: type(v).__name__)
def test_what_is_no_number_is_no_operand(value: Any) -> None:
  x = Tensor([1.0, 2.0], device="PYTHON")
  with pytest.raises(InvalidArgument, match=f"a {type(value).__name__} is not a number"): x + value


def test_a_running_sum_of_one_number_is_the_number() -> None:
  found = Tensor(2.5, device="PYTHON").cumsum()
  assert found.shape == () and found.item() == 2.5
