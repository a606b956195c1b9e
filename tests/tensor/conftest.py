"""Every test that takes `device` runs on each device that needs no hardware, AMD being the mock; or on `DEV` alone, and
on a card where no `MOCKGPU` says otherwise."""
from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tinyhw import Device

DEVICES = (os.environ["DEV"],) if os.environ.get("DEV") else ("LLVM", "PYTHON", "AMD")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
  if "DEV" not in os.environ: monkeypatch.setenv("MOCKGPU", "1")
  return str(request.param)


@pytest.fixture(scope="module")
def two_cards() -> Iterator[None]:
  """A mock machine of two, for a whole module."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("MOCKGPU", "gfx1100,gfx1100")
    Device.close()
    yield
    Device.close()
