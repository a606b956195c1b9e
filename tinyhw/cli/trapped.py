"""What a call costs a program that `tinyhw run` has on mock AMD cards, for `tinyhw bench`."""
from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from tinyhw.cli.children import START
from tinyhw.cli.measure import Seconds, repeat
from tinyhw.core.errors import Error

CARDS: Final = "gfx1100"
_TIMES: Final = """
import fcntl, json, os, time
from tinyhw.autogen import kfd
fd, told = os.open("/dev/kfd", os.O_RDWR), kfd.kfd_ioctl_get_version_args()
def ioctl(): fcntl.ioctl(fd, kfd.AMDKFD_IOC_GET_VERSION, told)
def redirected(): os.close(os.open("/dev/dri/renderD128", os.O_RDWR))
seconds = []
for _ in range(30):
  start = time.perf_counter()
  for _ in range(50): {call}()
  seconds.append((time.perf_counter() - start) / 50)
print(json.dumps(seconds[5:]))
"""
_OPENS: Final = "import os; os.open('/dev/kfd', os.O_RDWR)"


def _run(code: str) -> str:
  """Standard output of Python code on mock cards."""
  words = [sys.executable, "-c", START, "run", "--mockgpu", CARDS, "--", sys.executable, "-c", code]
  done = subprocess.run(words, capture_output=True, text=True, timeout=120)
  if done.returncode: raise Error(f"a measured program failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
  return done.stdout


def ioctls() -> Seconds:
  """Of an ioctl of /dev/kfd."""
  return list(json.loads(_run(_TIMES.format(call="ioctl"))))


def opens() -> Seconds:
  """Of opening a render node, and closing it."""
  return list(json.loads(_run(_TIMES.format(call="redirected"))))


def whole() -> Seconds:
  """Of a program that opens /dev/kfd, from the command to its end."""
  return repeat(lambda: _run(_OPENS), runs=5, warm=1)
