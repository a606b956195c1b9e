"""The steps that take up a card, on a mock one, and on one where a step fails."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhw import Device
from tinyhw.core.errors import MachineFault
from tinyhw.tools import nvcard


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  with Device.aside():
    monkeypatch.setenv("MOCKGPU", "sm_90")
    yield


def test_all_steps_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
  assert nvcard.main(["--record", str(tmp_path / "found.json")]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert [line[:18].strip() for line in lines] == ["driver and cards", "questions to RM", "channels", "copy engine",
                                                   "inline data", "a kernel", "a chain", "an inline QMD"]
  found = json.loads((tmp_path / "found.json").read_text())
  assert found["gpu"]["classes"]["0xcbc0"] == "HOPPER_COMPUTE_A" and found["launch"]["qmd"] == [4, 0]
  assert nvcard.main(["--qmd", "3.0"]) == 1
  told = capsys.readouterr().out
  assert "QMD version 3.0" in told and "a kernel           FAILED" in told and "executes nothing of it" in told


def test_the_first_failure_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
  def stops(self: nvcard.Check) -> str: raise MachineFault("the channel stopped")
  monkeypatch.setattr(nvcard.Check, "kernel", stops)
  assert nvcard.main([]) == 1
  told = capsys.readouterr().out
  assert "a kernel           FAILED: the channel stopped" in told and "--qmd 3.0" in told
  monkeypatch.setattr(nvcard.Check, "copies", stops)
  assert nvcard.main([]) == 1 and "inline data" not in capsys.readouterr().out
  with pytest.raises(SystemExit): nvcard.main(["--qmd", "x"])
