"""Processes that tests start, with all that is left of one that a signal ended or that got stuck.

Python shows where its threads stand (faulthandler). Where the process left a core (`ulimit -c unlimited`, as `.ci/run`
has it; the system's core_pattern a plain name) and gdb is there, it shows the native threads too.
"""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import command

TAIL = 6000  # letters of standard error that are shown


def run(words: Sequence[str], environment: Mapping[str, str], timeout: float = 120,
        fresh: bool = False) -> subprocess.CompletedProcess[str]:
  """Python with these arguments. One that takes longer is aborted, which shows its threads. `fresh`: it has imported
  nothing; else it is forked from a process that has (`command`)."""
  began = time.time()
  done = (_started if fresh else command.watched)(list(words), {**os.environ, **environment}, timeout)
  if done.late: done.stderr += f"\nit did not end within {timeout:g} s"
  if done.returncode < 0: done.stderr += native(done.pid, began)
  return done


def _started(words: list[str], env: Mapping[str, str], timeout: float) -> command.Ended:
  process = subprocess.Popen([sys.executable, "-X", "faulthandler", *words], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**env, "PYTHONPATH": os.pathsep.join(sys.path)})
  late = False
  try: out, err = process.communicate(timeout=timeout)
  except subprocess.TimeoutExpired:
    late = True
    process.send_signal(signal.SIGABRT)
    try: out, err = process.communicate(timeout=command.PATIENCE)
    except subprocess.TimeoutExpired:
      process.kill()
      out, err = process.communicate()
  return command.Ended(words, process.returncode, out, err, process.pid, late)


def native(pid: int, since: float) -> str:
  """The native threads of a process that has left a core here since then; the core is removed."""
  for name in (f"core.{pid}", "core"):
    core = Path(name)
    if not core.is_file() or core.stat().st_mtime < since - 1: continue
    try:
      if (gdb := shutil.which("gdb")) is None: return f"\n{core} is left, and there is no gdb"
      shown = subprocess.run([gdb, "-batch", "-ex", "thread apply all bt 40", sys.executable, str(core)], text=True,
                             capture_output=True, timeout=120)
      return f"\nnative threads:\n{shown.stdout[-20_000:]}"
    finally: core.unlink()
  return ""


def well(done: subprocess.CompletedProcess[str]) -> str:
  """The standard output of a process that ended well. Raises AssertionError with all that is left of another one."""
  code = done.returncode
  status = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
  words = done.stderr if code < 0 else done.stderr[-TAIL:]
  assert code == 0, f"{status}\n{done.stdout}{words}"
  return done.stdout
