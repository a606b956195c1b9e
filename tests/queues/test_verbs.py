"""What all verbs of queues have in common: an example, `--json`, one line where a file is not what it should be."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tinyhw.cli import progress, tinyhw
from tinyhw.core.errors import Error, InvalidArgument, MissingFile
from tinyhw.queues import summary
from tinyhw.queues.capture import Capture
from tinyhw.queues.world import Follow

READERS = ("assemble", "bisect", "debug", "decode", "diff", "doctor", "lint", "replay", "timeline", "top")
VERBS = (*READERS, "explore", "record")


def run(*arguments: str) -> Result: return CliRunner().invoke(tinyhw, arguments)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_an_example_and_says_it_to_programs(verb: str) -> None:
  told = run(verb, "--help").output
  assert "\n  Examples:\n" in told and f"\n    tinyhw {verb} " in told and "--json" in told


@pytest.mark.parametrize("verb", READERS)
def test_a_file_that_is_none_is_one_line(verb: str, tmp_path: Path) -> None:
  (tmp_path / "bytes").write_bytes(bytes(range(128, 256)))
  for name in ("missing", "bytes", "."):
    file = str(tmp_path / name)
    done = run(verb, *([file] if verb == "diff" else []), file, *(["--once"] if verb == "top" else []))
    assert isinstance(done.exception, Error | OSError) and "\n" not in str(done.exception), (name, done.output)


def test_what_is_not_there_is_told(captured: Path) -> None:
  file, other = str(captured), "sm_90" if "AMD" in captured.name else "gfx1100"
  for arguments in (("decode", file, "--queue", "NONE"), ("decode", file, "--dispatch", "999"),
                    ("decode", file, "--around", "0x1"), ("decode", file, "--summary", "--queue", "NONE"),
                    ("replay", file, "--dump", "9999"), ("replay", file, "--dump", "last"),
                    ("replay", file, "--mockgpu", other), ("bisect", file, "--script", "there-is-no-such-program"),
                    ("decode", "-", "--kind", "pm4", "--arch", "sm_90"),
                    ("decode", "-", "--kind", "qmd", "--arch", "gfx1100")):
    assert isinstance(run(*arguments).exception, InvalidArgument), arguments


def test_a_program_is_not_run_for_nothing(tmp_path: Path) -> None:
  for arguments, wanted in ((("-o", str(tmp_path / "no" / "run.thq")), MissingFile),
                            (("-o", str(tmp_path / "run.thq"), "--mockgpu", "gfx1"), Error)):
    done = run("record", *arguments, "--", "there-is-no-such-program")
    assert isinstance(done.exception, wanted) and "there-is-no" not in str(done.exception)


def test_counts_are_those_of_the_packets(captured: Path, tmp_path: Path) -> None:
  """Of what `tinyhw record` says at its end, and `timeline --json`."""
  follows: list[Follow] = [step.follow for step in Capture(captured) if step.follow is not None]
  found = summary.of_capture(Capture(captured, following=False))
  assert sum(n for n, _ in found.queues.values()) == len(follows)
  assert found.kernels.total() == sum(len(f.launches) for f in follows)
  assert found.packets.total() == sum(item.packet is not None for f in follows for item in f.items)
  row = json.loads(run("timeline", str(captured), "-o", str(tmp_path / "run.html"), "--json").output)
  assert row["spans"] > found.packets.total() and row["findings"] == 0


def test_assembled_words_for_programs(tmp_path: Path) -> None:
  text = tmp_path / "ring.txt"
  text.write_text(".kind pm4\nACQUIRE_MEM(coher_size=1, coher_base=0)\n")
  row = json.loads(run("assemble", str(text), "--json").output)
  assert row["kind"] == "pm4" and run("assemble", str(text)).output.split() == [f"{w:08x}" for w in row["words"]]


def test_how_far_a_capture_is_read_is_told(captured: Path) -> None:
  told = list[tuple[int, int]]()
  capture = Capture(captured)
  capture.tells(lambda done, total: told.append((done, total)))
  for _ in capture: pass
  assert [done for done, _ in told] == list(range(1, told[-1][1] + 1)) and {total for _, total in told} == {len(told)}
  line = progress.Line("lint")
  line.went(3, 2000)
  line._show()  # which is what its timer does
  try: assert "3 of 2,000 pieces of the capture" in line._bar.tasks[0].fields["told"]
  finally: line.end()
