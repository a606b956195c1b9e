"""Handles of buffers: the lowest that is free, whatever came and went before."""
from __future__ import annotations

from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.mock.amd.driver.process import ProcessDevice


@settings(max_examples=examples(60))
@given(st.lists(st.one_of(st.none(), st.integers(0, 12), st.tuples(st.integers(0, 12))), max_size=40))
def test_handles_are_the_lowest_that_are_free(steps: list[None | int | tuple[int]]) -> None:
  """None enters a buffer, a number leaves the n-th one, a tuple enters one with a handle that it had before."""
  device = ProcessDevice(cast(Any, None), cast(Any, None))
  for step in steps:
    if isinstance(step, int):
      if device.buffers: device.leave(sorted(device.buffers)[step % len(device.buffers)])
    elif step is None:
      wanted = next(h for h in range(len(device.buffers) + 1) if h not in device.buffers)
      assert device.enter(cast(Any, object())) == wanted
    elif not device.buffers:
      device = ProcessDevice(cast(Any, None), cast(Any, None))
      assert device.enter(cast(Any, object()), step[0]) == step[0]
  free, top = device._handles
  assert sorted(free) == [h for h in range(top) if h not in device.buffers]
