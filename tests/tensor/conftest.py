"""Every test that takes `device` runs on each device that needs no hardware; AMD is the mock."""
from __future__ import annotations

import pytest

DEVICES = ("LLVM", "PYTHON", "AMD")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
  monkeypatch.setenv("MOCKGPU", "1")
  return str(request.param)
