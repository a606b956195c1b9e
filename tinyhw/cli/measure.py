"""How `tinyhw bench` measures."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial

from tinyhw.core.ending import Step, at_end
from tinyhw.core.errors import Error

Seconds = list[float]
SETTLING = 20  # runs until what is hot has been compiled


def repeat(run: Callable[[], object], *, runs: int = 7, warm: int = 2) -> Seconds:
  """Seconds of some runs, after some that are not counted."""
  for _ in range(warm): run()
  seconds = []
  for _ in range(runs):
    start = time.perf_counter()
    run()
    seconds.append(time.perf_counter() - start)
  return seconds


def rest() -> None:
  """Let NumPy's threads fall asleep: they look for the next product for some time, on the processors of who runs next.
  """
  time.sleep(0.2)


def settle(run: Callable[[], object], runs: int = SETTLING) -> None:
  """Run until what is hot has been compiled."""
  from tinyhw.emulator.jit.background import BACKGROUND
  for _ in range(runs):
    run()
    BACKGROUND.wait()


def process(code: str, *, runs: int = 5, **env: str) -> Seconds:
  """Seconds of a whole Python process, start to exit."""
  return repeat(lambda: child(code, **env), runs=runs, warm=1)


def child(code: str, **env: str) -> str:
  """Standard output of Python code in a fresh process."""
  env = os.environ | _bytecode() | env
  done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=900)
  if done.returncode: raise Error(f"a measured process failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
  return done.stdout


@cache
def _bytecode() -> dict[str, str]:
  """Variables with which a process finds bytecode of its modules, as it does where a package is installed. Where the
  environment has Python leave none, a folder of this process's own has it."""
  if not sys.dont_write_bytecode or "PYTHONPYCACHEPREFIX" in os.environ: return {}
  folder = tempfile.mkdtemp(prefix="tinyhw-bytecode-")
  at_end(Step.FILES, partial(shutil.rmtree, folder, ignore_errors=True))
  return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
