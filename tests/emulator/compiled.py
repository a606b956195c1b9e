"""Launches of PTX on both engines."""
from __future__ import annotations

from typing import Any

import pytest

from tinyhw.emulator.engines import ptx_compiled


def compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
  """Have launches run on both engines, and fail where compiled code has no form of a kernel."""
  original = ptx_compiled.compiled

  def compiled(grid: Any) -> Any:
    found = original(grid)
    assert found is not None, grid.stats.interpreted
    return found
  monkeypatch.setattr(ptx_compiled, "compiled", compiled)
  monkeypatch.setenv("EMU", "both")
