"""The whole kernels of the other tests, compiled for gfx1201."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulator.amdgcn.test_kernels import (  # noqa: F401  (collected here, and run under `gfx12`)
  test_a_read_outside_names_pc_instruction_and_lane,
  test_a_trap_stops_the_program,
  test_a_write_to_read_only_memory_stores_nothing,
  test_an_endless_loop_meets_the_watchdog,
  test_atomics_with_return_are_serial,
  test_compare_and_swap_takes_a_lock,
  test_dpp_folds_into_arithmetic,
  test_lanes_exchange_values,
  test_loop_with_another_count_in_each_lane,
  test_private_arrays_calls_and_switches,
  test_sum_through_lds_and_barriers,
  test_work_item_and_workgroup_ids,
  test_workgroups_that_wait_for_each_other_make_progress,
)
from tests.emulator.gpu import generation


@pytest.fixture(autouse=True)
def gfx12() -> Iterator[None]:
  """What names no GPU means gfx1201."""
  with generation("gfx1201"): yield
