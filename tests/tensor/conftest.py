"""Every test that takes `device` runs on each device that needs no hardware, AMD being the mock; or on `DEV` alone."""
from __future__ import annotations

import os

import pytest

DEVICES = (os.environ["DEV"],) if os.environ.get("DEV") else ("LLVM", "PYTHON", "AMD")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
  monkeypatch.setenv("MOCKGPU", "1")
  return str(request.param)
