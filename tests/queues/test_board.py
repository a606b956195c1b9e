"""`top` reads a capture that grows: at any byte, in any steps, it comes to the same."""
from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from click.testing import CliRunner

from tests.queues.conftest import record
from tests.queues.test_doctor import HANG
from tinyhw.cli.top import command, table
from tinyhw.core.errors import DecodeError
from tinyhw.queues.board import Board
from tinyhw.queues.capture import Capture
from tinyhw.queues.container import MAGIC, Reader, Writer


def test_a_file_that_grows(captured: Path, tmp_path: Path) -> None:
  """Whatever was written when it looked, nothing is counted twice, left out, or taken for damage."""
  data, grown, draw = captured.read_bytes(), tmp_path / "grown.thq", random.Random(7)
  whole = Board(Reader(captured))
  assert whole.update() == len(list(Capture(captured)))
  head = next(n for n in range(len(MAGIC), len(data)) if _opens(data[:n], grown))
  cuts = sorted(draw.sample(range(head, len(data)), 40))
  grown.write_bytes(data[:head])
  board, at = Board(Reader(grown)), head
  for cut in [*cuts, len(data)]:
    with grown.open("ab") as f: f.write(data[at:cut])
    at = cut
    board.update()
  assert board.row() == whole.row() and board.update() == 0
  assert sum(r["submissions"] for r in whole.row()["queues"]) == sum(s.follow is not None for s in Capture(captured))
  assert sum(whole.kernels.values()) == sum(r.launches for r in whole.queues.values()) > 0


def _opens(data: bytes, path: Path) -> bool:
  path.write_bytes(data)
  try: Capture(path).close()
  except DecodeError: return False
  return True


def test_memory_in_use_is_the_sum_of_the_living(captured: Path) -> None:
  """After each call."""
  capture, most = Capture(captured), 0
  for step in capture:
    if step.world is None: continue
    assert step.world.used == sum(m.size for m in step.world.living())
    most = max(most, step.world.used)
    for made in step.world.living(): assert step.world.find(made.address + made.size - 1) is made
  assert most > 0


def test_it_ends_with_the_writer(captured: Path, tmp_path: Path) -> None:
  writer = Writer(tmp_path / "run.thq", {"program": ["a"]})
  board = Board(Reader(tmp_path / "run.thq"))
  assert not board.ended
  writer.close()
  assert board.ended


def test_where_a_queue_stands(tmp_path: Path) -> None:
  """While the program hangs: of the capture as it is before the program gives up."""
  done = record(tmp_path / "hang.thq", "AMD", HANG, TINYHW_TIMEOUT_S="1")
  assert done.returncode == 0, done.stderr
  stands = set()
  board = Board(Reader(tmp_path / "hang.thq"))
  for step in board.capture.further(board.reader.grown()):
    board._feed(step)
    board._stand()
    stands |= {(r.name, r.waits) for r in board.queues.values() if r.waits}
  assert any(w.endswith(">= 0x3") for _, w in stands)


def test_the_command(captured: Path, tmp_path: Path) -> None:
  shutil.copy(captured, tmp_path / "run.thq")
  run = CliRunner().invoke(command, [str(tmp_path / "run.thq"), "--json"])
  found = json.loads(run.output)
  assert run.exit_code == 0 and len(found["queues"]) >= 2
  text = CliRunner().invoke(command, [str(tmp_path / "run.thq"), "--once"]).output
  assert all(row["name"] in text for row in found["queues"])
  none = CliRunner().invoke(command, [str(tmp_path / "no.thq"), "--once"])
  assert "no capture is there" in str(none.exception)
  board = Board(Reader(captured))
  board.update()
  assert table(board, {}, 1.0).renderables
