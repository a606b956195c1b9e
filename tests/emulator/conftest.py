"""What tests of the emulator share."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tinyhw import Device


@pytest.fixture
def sm_90(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """A mock GPU of this generation, new for the test."""
  monkeypatch.setenv("MOCKGPU", "sm_90")
  Device.close()
  yield
  Device.close()
