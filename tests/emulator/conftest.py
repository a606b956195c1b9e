"""What tests of the emulator share."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tinyhw import Device


@pytest.fixture
def sm_90(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """A mock GPU of this generation, new for the test."""
  monkeypatch.setenv("MOCKGPU", "sm_90")
  Device.close()
  yield
  Device.close()


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """Of PTX: what compiled code leaves to the reference in launches that end well is what the mark `left` says, patterns
  of how its name begins, and nothing else. The reference does the same, so results would not tell."""
  if not request.path.name.startswith("test_ptx"): return (yield)
  from tinyhw.emulator.jit.ptx import engine
  onward, found = engine.onward, set[str]()

  def seen(grid: Any, running: Any) -> Iterator[Any]:
    yield from onward(grid, running)
    found.update(grid.stats.interpreted, grid.stats.helped)
  monkeypatch.setattr(engine, "onward", seen)
  yield
  wanted = [pattern for mark in request.node.iter_markers("left") for pattern in mark.args]
  assert not [name for name in found if not any(re.match(pattern, name) for pattern in wanted)]
