"""Launches that take long show how far they are, on a terminal alone, and leave nothing behind."""
from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.mock.cuda.client import Client, u64
from tinyhw.cli import progress as shown
from tinyhw.core import progress
from tinyhw.emulator.check.checker import checker

BLOCKS = 3000

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  st.global.u32 [%d1], %r1;
  ret;
}
"""
PROGRAM = """
import sys
import tinyhw.cli.progress as p
p.AFTER_S = 0.0
from tinyhw.cli import main
main()
"""


class Listener:
  """Keeps what it hears."""

  def __init__(self) -> None: self.heard: list[tuple[str, int, int]] = []

  def hear(self, kernel: str, done: int, total: int) -> None: self.heard.append((kernel, done, total))

  def over(self, kernel: str) -> None: self.heard.append((kernel, -1, -1))


def test_who_listens_hears_of_each_cohort_and_nobody_else() -> None:
  listener = Listener()
  progress.tell("k", 1, 2)
  with progress.heard(listener):
    progress.tell("k", 0, 9)
    progress.tell("k", 4, 9)
    progress.over("k")
  progress.tell("k", 8, 9)
  assert listener.heard == [("k", 0, 9), ("k", 4, 9), ("k", -1, -1)]


@pytest.mark.parametrize(("engine", "check"), [("ref", ""), ("jit", ""), ("auto", ""), ("jit", "report")])
def test_launches_of_a_program_tell_how_far_they_are(engine: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """By every way a launch runs, and it is over behind the last."""
  monkeypatch.setenv("EMU", engine)
  client = Client()
  if check: client.machine.observer = checker(check)
  out = client.alloc(4 * BLOCKS)
  listener = Listener()
  with progress.heard(listener):
    assert client.launch(client.function(PTX, "k"), BLOCKS, 1, [u64(out)]) == 0
    client.call("cuCtxSynchronize")
  assert (client.get(out, np.zeros(BLOCKS, np.uint32)) == np.arange(BLOCKS)).all()
  *told, last = listener.heard
  assert last == ("k", -1, -1) and {(kernel, total) for kernel, _, total in told} == {("k", BLOCKS)}
  done = [row[1] for row in told]
  assert done == sorted(done) and done[0] == 0 < done[-1] <= BLOCKS, done


def test_a_program_s_long_launch_is_shown_below_the_cursor_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(shown, "AFTER_S", 0.0)
  monkeypatch.setattr(shown, "LOOK_S", 0.001)
  ours, theirs = pty.openpty()
  line, told = shown.Launches(theirs), b""
  line.hear("first", 3, 1000)
  while b"first: 3 of 1,000 blocks, 0:00" not in told: told += os.read(ours, 1 << 16)
  line.hear("second", 1, 7)  # a shorter one
  line.over("first")
  while b"second: 1 of 7 blocks, 0:00" not in told: told += os.read(ours, 1 << 16)
  line.over("second")
  line.end()
  os.write(theirs, b"|")
  while b"|" not in told: told += os.read(ours, 1 << 16)
  draws = told.removesuffix(b"|").split(b"\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K")[1:]
  assert all(draw.endswith(b"\x1b8") and b"\n" not in draw for draw in draws) and draws[-1] == b"\x1b8"
  for file in (ours, theirs): os.close(file)


def test_nothing_is_shown_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
  asked: list[shown.Launches] = []
  monkeypatch.setattr(shown, "listen", asked.append)
  monkeypatch.setattr(shown, "at_end", lambda step, what: None)
  for term, terminal, shows in (("xterm", False, 0), ("dumb", True, 0), ("xterm", True, 1)):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(shown.os, "isatty", lambda file, terminal=terminal: terminal)
    shown.launches()
    assert len(asked) == shows, (term, terminal)
  os.close(asked[0]._terminal)


def test_a_short_launch_shows_nothing() -> None:
  line = shown.Line("k")
  line.hear("k", 0, 10)
  line.end()
  line._show()  # the timer, too late
  assert line._bar is None


@pytest.mark.parametrize("as_json", [False, True])
def test_a_terminal_is_shown_the_workgroups(as_json: bool, tmp_path: Path) -> None:
  (tmp_path / "k.ptx").write_text(PTX)
  command = [sys.executable, "-c", PROGRAM, "launch", str(tmp_path / "k.ptx"), "--grid", "16383", "--block", "1",
             "--arg", "out:u32:16383", "--device", "EMU", "--check", *(["--json"] if as_json else [])]
  environment = os.environ | {"EMU": "ref", "MOCKGPU": "", "TERM": "xterm", "COLUMNS": "120"}
  ours, theirs = pty.openpty()
  with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=theirs) as running:
    os.close(theirs)
    assert running.stdout is not None
    told = b""
    output = b""
    while running.poll() is None or select.select([ours], [], [], 0)[0]:
      ready, _, _ = select.select([ours, running.stdout], [], [], 0.1)
      if running.stdout in ready: output += os.read(running.stdout.fileno(), 1 << 16)
      if ours in ready:
        try: told += os.read(ours, 1 << 16)
        except OSError: break  # the other end is closed
    output += running.stdout.read()
  os.close(ours)
  assert running.returncode == 0, (told, output)
  assert (b"of 16,383 workgroups" in told) != as_json and b"workgroups" not in output
  done = subprocess.run(command, env=environment, capture_output=True)
  assert done.returncode == 0 and done.stderr == b""
