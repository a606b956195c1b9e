"""PROFILE: what a run did as a trace, with the times of the device's own clock where it has one."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.devices.test_closed import run_apart
from tinyhw import Tensor, TinyJit
from tinyhw.core.kept import Kept
from tinyhw.devices import profile
from tinyhw.devices.profile import Profile, ProfileEvent


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Profile:
  """A profile of this test's own, which is not written."""
  made = Profile()
  made._registered = os.getpid()
  monkeypatch.setenv("PROFILE", "1")
  for module in ("tinyhw.devices.profile", "tinyhw.engine.run"): monkeypatch.setattr(f"{module}.PROFILE", made)
  return made


def rows(made: Profile, kind: str) -> list[dict[str, Any]]:
  return [e for e in made.trace()["traceEvents"] if e.get("cat") == kind]


def test_kernels_copies_schedules_and_compilations(taken: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr("tinyhw.engine.planned._planned", Kept(64))
  x = Tensor([1.0, 2.0, 1234.5], device="PYTHON")
  assert (x * 3 - 7.25).sum().tolist() == pytest.approx(3690.75)
  assert len(rows(taken, "schedule")) == 1 and rows(taken, "copy") and rows(taken, "compile")
  kernel, = rows(taken, "kernel")
  assert kernel["dur"] > 0 and kernel["args"]["bytes"] == 16 and kernel["name"].startswith("r")


def test_replays_are_shown_kernel_by_kernel(taken: Profile) -> None:
  step = TinyJit(lambda t: (t + 1).sum())
  for _ in range(3): step(Tensor([1.0, 2.0], device="PYTHON").realize())
  assert len(rows(taken, "kernel")) == 3


def test_the_clock_of_a_device_is_laid_beside_the_hosts() -> None:
  made = Profile()
  made._registered = os.getpid()
  made.kernel("AMD", "a", (10.0, 13.0), (1000.5, 1002.5), {})
  made.kernel("AMD", "b", (14.0, 15.0), (1003.0, 1003.5), {})
  made.add(ProfileEvent("host", "c", "copy", 9.0, 9.5))
  found = {(e["name"], made_on): (e["ts"] * 1e-6, e["dur"] * 1e-6) for e in made.trace()["traceEvents"]
           if e["ph"] == "X" for made_on in ["device" if "device start (s)" in e["args"] else "host"]}
  assert found["a", "device"] == (pytest.approx(11.0), pytest.approx(2.0))   # its end is not after the host's
  assert found["b", "device"] == (pytest.approx(13.5), pytest.approx(0.5))
  assert found["c", "host"] == (pytest.approx(9.0), pytest.approx(0.5))


def test_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(profile, "LIMIT", 2)
  made = Profile()
  made._registered = os.getpid()
  for k in range(5): made.add(ProfileEvent("host", "e", "copy", k, k + 1))
  assert len(rows(made, "copy")) == 2 and made.trace()["otherData"] == {"dropped events": 3}


def test_a_run_leaves_a_file_with_times_of_the_gpu(tmp_path: Path) -> None:
  run_apart("assert (Tensor([1.0, 2.0], device=NAME) + 1).tolist() == [2, 3]", PROFILE=str(tmp_path / "trace.json"))
  trace = json.loads((tmp_path / "trace.json").read_text())
  names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
  track = "AMD compute queue (mock's clock)"
  own = [e for e in trace["traceEvents"] if names.get(e.get("tid")) == track and e["ph"] == "X"]
  assert len(own) == 1 and own[0]["dur"] > 0 and "device start (s)" in own[0]["args"]


def test_a_file_that_cannot_be_written_is_told() -> None:
  code = "from tinyhw import Tensor; print((Tensor([1.0]) + 1).tolist())"
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                        env={**os.environ, "PROFILE": "/nowhere/x.json", "PYTHONPATH": os.pathsep.join(sys.path)})
  assert done.stdout == "[2.0]\n" and done.returncode == 0
  assert "PROFILE: /nowhere/x.json: cannot be written: No such file" in done.stderr
