"""What is left of a process that ends badly is in the assertion."""
from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import apart


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("code", "words"), [
  ("import os\ndef deep(): os.abort()\nprint('so far', flush=True)\ndeep()",
   ["signal SIGABRT", "so far", "in deep", "Current thread"]),
  ("print('so far'); raise SystemExit(3)", ["exit status 3", "so far"]),
  ("import time\ndef waits(): time.sleep(60)\nwaits()", ["signal SIGABRT", "in waits", "did not end within 1 s"]),
])
def test_an_end_is_told(code: str, words: list[str], fresh: bool) -> None:
  with pytest.raises(AssertionError) as caught:
    apart.well(apart.run(["-c", code], {}, 1 if "sleep" in code else 60, fresh))
  assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("fresh", [False, True])
def test_a_good_end_is_its_output(fresh: bool) -> None:
  """A forked process has what the tests need imported."""
  code = "import sys; print(7, 'tinyhw.mock.amd.machine' in sys.modules)"
  assert apart.well(apart.run(["-c", code], {}, fresh=fresh)) == f"7 {not fresh}\n"


@pytest.mark.parametrize("fresh", [False, True])
def test_a_process_ends_as_ever(fresh: bool) -> None:
  """Also one that is forked: threads, then what is asked for at the end, while modules are there, then objects."""
  code = """
import atexit, sys, threading
from tinyhw.mock.amd import machine
class Object:
  def __del__(self): print("objects", flush=True)
kept = Object()
atexit.register(lambda: print("end", machine.__name__ in sys.modules))
threading.Thread(target=lambda: print("threads")).start()
"""
  assert apart.well(apart.run(["-c", code], {}, fresh=fresh)) == "threads\nend True\nobjects\n"


def test_native_threads_are_told_of_a_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Where the system leaves cores in the process's folder, and gdb reads them."""
  resource = pytest.importorskip("resource")
  monkeypatch.chdir(tmp_path)
  before = resource.getrlimit(resource.RLIMIT_CORE)
  try: resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
  except OSError: pytest.skip("no cores here")
  try: done = apart.run(["-c", "import os; os.abort()"], {})
  finally: resource.setrlimit(resource.RLIMIT_CORE, before)
  assert not os.listdir(tmp_path)
  if "native threads:" not in done.stderr: pytest.skip("no core was left here, or no gdb")
  assert re.search(r"abort|raise|pthread_kill", done.stderr.partition("native threads:")[2])
