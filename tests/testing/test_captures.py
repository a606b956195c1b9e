"""`--record-failures` and `queue_capture`, as their users have them."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing import forked
from tinyhw.queues.capture import Capture
from tinyhw.queues.events import Note

pytest_plugins = ["pytester"]
TESTS = """
import pytest
from tinyhw import Tensor
from tinyhw.devices.captured import RECORDING

def add(n, wanted): assert (Tensor([1.0, 2.0]) + n).tolist() == wanted
def good(): add(1, [2.0, 3.0])

@pytest.mark.mockgpu("sm_90")
def test_own(): add(1, [2.0, 4.0])
def test_good(): good()
def test_shared():
  assert RECORDING.recorder is None  # nothing of the tests before
  add(1, [0.0])

@pytest.fixture(scope="module")
def wide(): return Tensor([5.0]).realize()
def test_wide(wide): assert (wide + 1).tolist() == [6.0]  # behind the failure, whose traceback holds tensors
def test_behind_it(wide): assert (wide + 2).tolist() == [0.0]

def test_fixture(queue_capture):
  good()
  capture = queue_capture.read()
  assert sum(len(s.follow.launches) for s in capture if s.follow) == 1
  good()
  assert sum(len(s.follow.launches) for s in queue_capture.read() if s.follow) == 2
  queue_capture.assert_stream(queue_capture.path)
def test_wide_again(wide): assert (wide + 3).tolist() == [8.0]
"""


def test_what_failing_tests_submitted_is_kept(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
  """Of these alone; on a machine of their own, on the shared one, behind a fixture that outlives its tests."""
  for variable in ("MOCKGPU", "DEV", "EMU_CHECK", "PYTEST_ADDOPTS", "RECORD"):
    monkeypatch.delenv(variable, raising=False)
  monkeypatch.setenv("PYTHONPATH", str(Path(pytest.importorskip("tinyhw").__path__[0]).parent))
  pytester.makepyfile(test_kept=TESTS)
  done = forked.run(pytester, "--mockgpu=gfx1100", "--record-failures")
  done.assert_outcomes(passed=4, failed=3)
  done.stdout.fnmatch_lines(["*what its queues held is kept: captures/test_kept.py_test_own.thq",
                             "tinyhw doctor captures/test_kept.py_test_own.thq"])
  kept = {p.stem.rpartition(".py_")[2]: Capture(p) for p in Path(pytester.path, "captures").iterdir()}
  assert set(kept) == {"test_own", "test_shared", "test_behind_it"}
  launches = {name: sum(len(s.follow.launches) for s in c if s.follow is not None) for name, c in kept.items()}
  assert launches == {"test_own": 1, "test_shared": 1, "test_behind_it": 3}
  notes = [s.event.text for s in kept["test_behind_it"] if isinstance(s.event, Note)]
  names = [n.rpartition("::")[2] for n in notes]
  assert names == ["test_shared failed", "test_wide", "test_behind_it", "test_behind_it failed"]
