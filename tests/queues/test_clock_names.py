"""Times that the queue tools tell are of the recorder's clock, the host's, and say so to people and to programs."""
from __future__ import annotations

import json
import re
from pathlib import Path

import click
from click.testing import CliRunner

from tinyhw.cli import decode, top
from tinyhw.core.trace import Whose
from tinyhw.queues import calls, page, trace
from tinyhw.queues.capture import Capture
from tinyhw.queues.events import Waited
from tinyhw.queues.timeline import timeline

HOST = Whose.HOST.value
MS = re.compile(r"\d ms\b")


def told(command: click.Command, *arguments: str) -> list[str]:
  done = CliRunner().invoke(command, arguments, catch_exceptions=False)
  assert done.exit_code == 0, done.output
  return done.output.splitlines()


def test_decode(captured: Path) -> None:
  times = [line for line in told(decode.command, str(captured), "--calls") if MS.search(line)]
  assert times and all(f" ms ({HOST})" in line for line in times)
  assert {json.loads(line)["clock"] for line in told(decode.command, str(captured), "--json")} == {HOST}


def test_top(captured: Path) -> None:
  assert f" s ({HOST})" in " ".join(told(top.command, str(captured), "--once"))
  assert json.loads(told(top.command, str(captured), "--once", "--json")[-1])["clock"] == HOST


def test_timeline(captured: Path) -> None:
  taken = timeline(Capture(captured))
  assert page.data(taken)["clock"] == HOST
  assert json.loads("".join(trace.text(taken)))["otherData"]["clock"] == HOST


def test_a_wait(captured: Path) -> None:
  waits = [calls.text(step) for step in Capture(captured) if isinstance(step.event, Waited)]
  assert waits and all(f" ms ({HOST}): " in text for text in waits)
