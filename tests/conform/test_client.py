"""Cases of packets, methods and calls: right devices pass them, wrong ones are told apart, and one that hangs or ends
its process leaves the others standing."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tinyhw.cli import tinyhw
from tinyhw.core.errors import Unsupported
from tinyhw.mock.amd.chip.sdma import SdmaQueue


def command(*words: str) -> Result:
  return CliRunner().invoke(tinyhw, ["conform", *words])


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx1100")


def test_a_wrong_copy_is_found_and_what_is_written_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  """Copies of five bytes leave one out; the others are right."""
  files = {n: tmp_path / n for n in ("a.json", "a.xml", "a.html", "may.json", "right.json")}
  only = ("--only", "SDMA_PKT_COPY_LINEAR/4-", "--only", "SDMA_PKT_COPY_LINEAR/5-")
  assert command("AMD", *only, "--record", str(files["right.json"])).exit_code == 0
  whole = SdmaQueue._piece

  def short(self: Any, source: int, target: int, size: int) -> None: whole(self, source, target, size - (size == 5))
  monkeypatch.setattr(SdmaQueue, "_piece", short)
  done = command("AMD", *only, "--json-file", str(files["a.json"]), "--junit", str(files["a.xml"]),
                 "--html", str(files["a.html"]), "--write-may-fail", str(files["may.json"]))
  assert done.exit_code == 1 and not isinstance(done.exception, Exception), (done.output, done.exc_info)
  said = json.loads(files["a.json"].read_text())
  bad = [r for r in said["results"] if r["verdict"] != "pass"]
  assert bad and {r["id"].split("/")[-1].split("-")[0] for r in bad} == {"5"}
  assert said["cases"]["pass"] == len(said["results"]) - len(bad) > 3
  assert said["kinds"] == {"packets": {"count": 1, "covered": 1}}
  assert "memory 1[" in bad[0]["detail"] and "SDMA_PKT_COPY_LINEAR(" in bad[0]["text"]
  assert "SDMA_PKT_COPY_LINEAR" in files["a.html"].read_text() and "<failure" in files["a.xml"].read_text()
  assert command("AMD", *only, "--may-fail", str(files["may.json"])).exit_code == 0
  against = command("AMD", *only, "--may-fail", str(files["may.json"]), "--against", str(files["right.json"]))
  assert against.exit_code == 1 and f"{len(bad)} cases differ from the record" in against.output
  monkeypatch.setattr(SdmaQueue, "_piece", whole)
  stale = command("AMD", *only, "--may-fail", str(files["may.json"]))
  assert stale.exit_code == 1 and "may fail by the list, and does not" in stale.output


@pytest.mark.parametrize("end", ["refusal", "exit"])
def test_a_case_that_takes_the_device_away_leaves_the_others(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
  whole = SdmaQueue._copy

  def broken(self: Any, source: int, target: int, size: int) -> None:
    if size != 5: return whole(self, source, target, size)
    if end == "exit": os._exit(3)
    raise Unsupported("copies of", "5 bytes")
  monkeypatch.setattr(SdmaQueue, "_copy", broken)
  done = command("AMD", "--only", "SDMA_PKT_COPY_LINEAR/4-", "--only", "SDMA_PKT_COPY_LINEAR/5-", "--json")
  said = json.loads(done.stdout)
  verdicts = {r["id"].split("/")[-1]: r["verdict"] for r in said["results"]}
  assert {v for k, v in verdicts.items() if k.startswith("4-")} == {"pass"}
  assert {v for k, v in verdicts.items() if k.startswith("5-")} == {"error" if end == "exit" else "unsupported"}


def test_identifiers_are_one_each_and_a_case_is_shown() -> None:
  found = command("--list", "--only", "gfx1100/packet").output.split()
  assert len(set(found)) == len(found) > 100
  shown = command("--show", "gfx1100/packet/sdma/SDMA_PKT_COPY_LINEAR/4194308").output
  assert "count=0x400003" in shown
