"""The command chooses the emulator's engine by the environment of its process: here that is a test's own."""
from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")
