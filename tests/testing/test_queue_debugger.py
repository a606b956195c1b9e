"""`pytest --tinyhw-debug`: the queue debugger at a failing test's last dispatch, at a terminal and without one."""
from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

from tests import command
from tests.testing import forked

TESTS = """
import pytest
from tinyhw import Tensor
@pytest.mark.mockgpu("gfx1100")
def test_right(): assert (Tensor([1.0]) + 1).tolist() == [2.0]
@pytest.mark.mockgpu("gfx1100")
def test_wrong(): assert (Tensor([1.0, 2.0]) * 2).tolist() == [2.0, 5.0]
def test_elsewhere(): assert False
"""


def test_the_prompt_opens_at_the_last_dispatch_of_a_test_that_fails(tmp_path: Path) -> None:
  (tmp_path / "test_it.py").write_text(TESTS)
  (tmp_path / "captures").mkdir()
  terminal, side = os.openpty()
  environment = {**os.environ, "TMPDIR": str(tmp_path / "captures"), "TERM": "dumb", "COLUMNS": "200",
                 "PYTEST_ADDOPTS": "", "XDG_STATE_HOME": str(tmp_path)}
  command.stand_in(tmp_path / "python")
  child = subprocess.Popen([tmp_path / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
                            *([] if forked.INSTALLED else ["-p", "tinyhw.testing.plugin"]), "--tinyhw-debug",
                            "test_it.py"],
                           cwd=tmp_path, env=environment, stdin=side, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
  os.close(side)
  os.write(terminal, b"next\nquit\n")
  watch = threading.Timer(120, child.kill)
  watch.start()
  text = child.communicate()[0].decode()
  watch.cancel()
  os.close(terminal)
  assert child.returncode == 1, text
  assert text.count("tinyhw queue debugger") == 1 and "breakpoint 1: dispatch 0" in text, text
  assert "RELEASE_MEM" in text.partition("breakpoint 1: dispatch 0")[2], text  # behind `next`
  again = re.search(r"^tinyhw debug -b 'dispatch 0' (\S+)$", text, re.M)
  assert again is not None and Path(again[1]).is_file(), text
  assert [f.name for f in (tmp_path / "captures").glob("tinyhw-debug-*/*")] == ["test_wrong.thq"]  # and no other
  told = text.partition("dispatch 0, the last one:")[2]
  assert re.search(r"^=> .* DISPATCH_DIRECT\(.*kernel e_2_", told, re.M), text
