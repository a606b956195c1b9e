"""How programs in other processes are run: by anybody, unmodified."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import command

REFUSED = "this system does not let a program's calls come to a host"
OURS = {"DEV", "MOCKGPU", "EMU_CHECK", "TINYHW_ROCM", "TINYHW_TINYGRAD"}  # of the tests' own environment
ROOT = Path(__file__).parents[3]
TINYHW = (sys.executable, "-c", "from tinyhw.cli import main; main()")


def run(*words: str, cards: str = "gfx1100", **environment: str) -> subprocess.CompletedProcess[str]:
  """A program on mock cards. A test is skipped where the system has no listener for its calls, which the host says."""
  kept = {k: v for k, v in os.environ.items() if k not in OURS}
  done = command.tinyhw("run", "--mockgpu", cards, "--", *words, timeout=100,
                        env={**kept, "PYTHONPATH": str(ROOT), **environment})
  refused = next((line for line in done.stderr.splitlines() if REFUSED in line), None)
  if done.returncode and refused is not None: pytest.skip(refused)
  return done


def script(text: str, cards: str = "gfx1100", **environment: str) -> list[str]:
  """What a program in Python prints, line by line, as it does so: it may fork, or become another. It must end well."""
  done = run(sys.executable, "-u", "-c", text, cards=cards, **environment)
  assert not done.returncode, done.stdout + done.stderr
  return done.stdout.splitlines()
