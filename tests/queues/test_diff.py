"""Two runs of a program submit the same; what one does otherwise is named by packet and field."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.queues.conftest import MACHINES, PROGRAM, record
from tinyhw.queues.capture import Capture
from tinyhw.queues.diff import StreamsDiffer, assert_stream, compare


def test_two_runs_are_the_same_stream(captured: Path, tmp_path: Path) -> None:
  done = record(tmp_path / "again.thq", captured.stem)
  assert done.returncode == 0, done.stderr
  assert not [str(c) for c in compare(Capture(captured), Capture(tmp_path / "again.thq"))]
  assert_stream(captured, tmp_path / "again.thq")


@pytest.mark.parametrize("device", MACHINES)
def test_another_grid_is_told_by_its_packet_and_field(device: str, tmp_path: Path) -> None:
  for name, program in (("a", PROGRAM), ("b", PROGRAM.replace("3.0]", "3.0, 4.0]").replace("4.0]\n", "4.0, 5.0]\n"))):
    done = record(tmp_path / f"{name}.thq", device, program)
    assert done.returncode == 0, done.stderr
  changes = list(compare(Capture(tmp_path / "a.thq"), Capture(tmp_path / "b.thq")))
  assert changes and any(change.fields() for change in changes)
  with pytest.raises(StreamsDiffer, match="packets differ"): assert_stream(tmp_path / "a.thq", tmp_path / "b.thq")
