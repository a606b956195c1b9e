"""Whose clock a time is of: a mock's says nothing of a card, and nobody is told otherwise."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.engine.test_viz import data
from tinyhw import Device, Tensor
from tinyhw.compile.compiler import _programs
from tinyhw.core.trace import Whose
from tinyhw.devices.profile import Profile
from tinyhw.engine import viz
from tinyhw.engine.viz import Viz

MOCKS: Final = {"AMD": "gfx1100", "NV": "sm_90", "CUDA": "sm_90"}
LINE: Final = re.compile(r" ms of the host \([\d,.]+ us on the mock's clock\) ")


@pytest.fixture(params=[*MOCKS, "LLVM"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
  monkeypatch.setenv("MOCKGPU", MOCKS.get(request.param, ""))
  _programs.clear()
  Device.close()
  yield request.param
  Device.close()


def work(kind: str) -> None:
  x = Tensor([1.0, 2.0, 3.0], device=kind)
  assert (x.sum() + 4).tolist() == 10


def test_a_runtime_says_whose_clock_its_times_are_of(kind: str) -> None:
  assert Device[kind].runtime.clock is (Whose.MOCK if kind in MOCKS else Whose.HOST)


def test_debug_shows_no_speed_of_a_mock(kind: str, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
  monkeypatch.setenv("DEBUG", "2")
  work(kind)
  lines = [line for line in capsys.readouterr().err.splitlines() if " ms in all " in line]
  assert lines and all((LINE.search(line) is not None) is (kind in MOCKS) for line in lines)
  assert all(("GFLOPS" in line and "GB/s" in line) is (kind not in MOCKS) for line in lines)


def test_tracks_of_a_profile_name_their_clock(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
  made = Profile()
  made._registered = os.getpid()
  monkeypatch.setenv("PROFILE", "1")
  for module in ("tinyhw.devices.profile", "tinyhw.engine.run"): monkeypatch.setattr(f"{module}.PROFILE", made)
  work(kind)
  names = {e["args"]["name"] for e in made.trace()["traceEvents"] if e["name"] == "thread_name"}
  assert f"{kind} (host's clock)" in names
  assert {name for name in names if "queue" in name} <= {f"{kind} compute queue (mock's clock)"}
  assert (kind in ("AMD", "NV")) is any("queue" in name for name in names)  # those that tell when a launch began


def test_a_page_of_viz_shows_the_time_of_the_host_beside_a_mocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
  made = Viz()
  made._process = os.getpid()
  monkeypatch.setenv("VIZ", "1")
  monkeypatch.setattr(viz, "VIZ", made)
  work(kind)
  pages = data(made.page())
  assert pages and all(page["clock"] == Device[kind].runtime.clock.value for page in pages)
  assert all((page["mocked"] is not None) is (kind in MOCKS) for page in pages)
  if kind in MOCKS: assert all(page["seconds"] > page["mocked"] for page in pages)  # no mock is that fast


def test_a_search_says_whose_clock_has_decided(kind: str, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
  monkeypatch.setenv("DEBUG", "1")
  monkeypatch.setenv("BEAM", "1")
  work(kind)
  lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("BEAM")]
  assert lines and all((f" on {kind}, by the mock's clock: " in line) is (kind in MOCKS) for line in lines)
