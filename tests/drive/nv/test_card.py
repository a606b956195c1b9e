"""The steps that take up a card, on a mock one, and on one where a step fails."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhw import Device
from tinyhw.core.errors import MachineFault, PageFault
from tinyhw.drive.nv import report
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
                                                   "inline data", "a kernel", "a chain", "an inline QMD",
                                                   "local memory", "clusters", "two queues", "large copies", "a fault"]
  found = json.loads((tmp_path / "found.json").read_text())
  assert found["gpu"]["classes"]["0xcbc0"] == "HOPPER_COMPUTE_A" and found["launch"]["qmd"] == [4, 0]
  assert nvcard.main(["--qmd", "3.0"]) == 1
  told = capsys.readouterr().out
  assert "QMD version 3.0" in told and "a kernel           FAILED" in told and "executes nothing of it" in told


def test_a_fault_as_a_card_tells_it() -> None:
  """What RM and the kernel's log said of an H200's (driver 580.159.04)."""
  line = ("NVRM: Xid (PCI:0000:00:06): 31, pid=468, name=python3, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE "
          "GRAPHICS GPC1 GPCCLIENT_T1_6 faulted @ 0x6fff_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE")
  found = report._XID.search(line)
  assert found is not None and found[2] == "31" and found[3].startswith("channel 0x0000000a")
  fault = report._told(found[3], PageFault(0x6FFF_0000_0000, "access", 0, reason="FAULT_PDE"))
  assert str(fault) == "GPU page fault: write at 0x6fff00000000 (FAULT_PDE)"


def test_the_first_failure_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
  def stops(self: nvcard.Check) -> str: raise MachineFault("the channel stopped")
  monkeypatch.setattr(nvcard.Check, "kernel", stops)
  assert nvcard.main([]) == 1
  told = capsys.readouterr().out
  assert "a kernel           FAILED: the channel stopped" in told and "--qmd 3.0" in told
  monkeypatch.setattr(nvcard.Check, "copies", stops)
  assert nvcard.main([]) == 1 and "inline data" not in capsys.readouterr().out
  with pytest.raises(SystemExit): nvcard.main(["--qmd", "x"])
