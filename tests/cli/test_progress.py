"""Launches that take long show how far they are, on a terminal alone, and leave nothing behind."""
from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tinyhw.cli import progress as shown
from tinyhw.core import progress

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


def test_who_listens_hears_of_each_cohort_and_nobody_else() -> None:
  heard: list[tuple[int, int]] = []
  progress.tell(1, 2)
  with progress.heard(lambda begun, total: heard.append((begun, total))):
    progress.tell(0, 9)
    progress.tell(4, 9)
  progress.tell(8, 9)
  assert heard == [(0, 9), (4, 9)]


def test_a_short_launch_shows_nothing() -> None:
  line = shown.Line("k")
  line.hear(0, 10)
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
