"""docs/bringup.md says what the rungs say, and its story is what happens."""
from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from tests.bringup.defect import built_in
from tests.bringup.page import DEFECTS, PAGE, filled
from tinyhw.cli.bringup import command


def test_the_tables_are_those_of_the_declarations() -> None:
  text = PAGE.read_text()
  assert text == filled(text), "python -m tests.bringup.page writes them anew"


def test_the_story_is_what_the_ladder_tells(monkeypatch: pytest.MonkeyPatch) -> None:
  """In child processes, as the command runs."""
  monkeypatch.setenv("MOCKGPU", "gfx1100")
  told = re.search(r"(?a)## A story.*?```\n(.*?)```", PAGE.read_text(), re.S)
  assert told is not None
  defect = next(d for d in DEFECTS["AMD"] if d.rung == "signals.order")
  with built_in(defect): done = CliRunner().invoke(command, ["AMD", "--largest", "4M"])
  lines = iter(done.output.splitlines())
  for wanted in told[1].splitlines(): assert wanted in lines, f"{wanted}\n{done.output}"
  assert done.exit_code == 1
