"""Two runs of a program submit the same; what one does otherwise is named by packet and field."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.queues.conftest import MACHINES, PROGRAM, record
from tinyhw.queues import diff
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


def longest(a: list[int], b: list[int]) -> int:
  """How many a longest common sequence has, by the table."""
  table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
  for i, x in enumerate(a):
    for j, y in enumerate(b): table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
  return table[-1][-1]


@pytest.mark.parametrize("most", (500, 3))
def test_what_two_sequences_have_in_common(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """As much as there is; and where the search gives up, nothing wrong."""
  monkeypatch.setattr(diff, "MOST", most)
  rng = random.Random(27)
  for _ in range(600):
    kinds = rng.randint(1, 4)
    a, b = ([rng.randrange(kinds) for _ in range(rng.randint(0, 14))] for _ in range(2))
    found = diff.common(a, b)
    assert all(a[x] == b[y] for x, y in found)
    assert all(p[0] < q[0] and p[1] < q[1] for p, q in zip(found, found[1:]))
    if most == 500: assert len(found) == longest(a, b), (a, b)
