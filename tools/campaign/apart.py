"""Programs in a process of their own, so that a crash, a hang or a leak is seen and named, and run again elsewhere.

    python -m tinyhw.tools.campaign.apart DESCRIPTOR     such a process: tasks come on standard input, results go back
"""
from __future__ import annotations

import faulthandler
import mmap
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Final

from tinyhw.core.errors import Error
from tinyhw.tools.campaign.task import Done, Finding, Task, cause

_AT: Final = struct.Struct("=qd")  # number of the program, time at which it began


class Stopped(Error):
  """The campaign is being ended: what runs has no result."""


class Apart:
  """A process that runs tasks; what it is at, and since when, is seen from here."""

  def __init__(self, environment: Mapping[str, str]) -> None:
    self.environment = environment
    with tempfile.TemporaryFile() as file:
      file.truncate(_AT.size)
      self._at = mmap.mmap(file.fileno(), _AT.size)
      self.process = subprocess.Popen([sys.executable, "-m", "tinyhw.tools.campaign.apart", str(file.fileno())],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(file.fileno(),),
                                      env=os.environ | {"OPENBLAS_NUM_THREADS": "1", **environment})

  @property
  def at(self) -> tuple[int, float]: return _AT.unpack(self._at[:])

  def run(self, task: Task, first: int, count: int) -> Done | str:
    """Have it run some programs of a task. A text says how the process ended instead, at program `at[0]`."""
    self._at[:] = _AT.pack(first, time.monotonic())
    assert self.process.stdin is not None and self.process.stdout is not None
    try:
      pickle.dump((task, first, count), self.process.stdin)
      self.process.stdin.flush()
    except BrokenPipeError: return self._ended()
    while not select.select([self.process.stdout], [], [], min(1.0, task.limits.hang))[0]:
      if time.monotonic() - self.at[1] > task.limits.hang: return f"still running after {task.limits.hang:g} s"
    try: done: Done = pickle.load(self.process.stdout)
    except (EOFError, pickle.UnpicklingError): return self._ended()
    return done

  def _ended(self) -> str:
    code = self.process.wait()
    return f"the process ended with {signal.Signals(-code).name if code < 0 else f'status {code}'}"

  def stop(self) -> None:
    """End the process, whatever it is at."""
    self.process.kill()
    self.process.wait()


class ApartPool:
  """The processes of this one that run tasks, one for each thread that has a task. Threads may call it at once."""

  def __init__(self) -> None:
    self._free: SimpleQueue[Apart] = SimpleQueue()
    self._all: set[Apart] = set()
    self._lock = threading.Lock()
    self._stopped = False

  def _take(self, environment: Mapping[str, str]) -> Apart:
    try:
      while (apart := self._free.get_nowait()).environment != environment: self._drop(apart)
      return apart
    except Empty: pass
    with self._lock:
      if self._stopped: raise Stopped("the campaign is being ended", where="campaign")
      apart = Apart(environment)
      self._all.add(apart)
      return apart

  def _drop(self, apart: Apart) -> None:
    apart.stop()
    with self._lock: self._all.discard(apart)

  def stop(self) -> None:
    """End all."""
    with self._lock: self._stopped, ending = True, list(self._all)
    for apart in ending: apart.stop()

  def run(self, task: Task) -> Done:
    """The results of a task. A process that dies is replaced and its programs run again, for nothing that was counted
    is lost with it; a program that takes its process along each time, or hangs, is named, and the others are run."""
    total = Done(worker=f"{os.uname().nodename}:{os.getpid()}", commit=commit())
    tries, start = Counter[int](), time.monotonic()
    spans = [(task.first, task.first + task.count)]
    while spans:
      first, end = spans.pop()
      apart = self._take(task.environment)
      done = apart.run(task, first, end - first)
      if isinstance(done, Done):
        total.add(done)
        if what := _leak(task, done):
          total.findings.append(Finding(end - 1, what, cause(what)))
          self._drop(apart)
        else: self._free.put(apart)
        continue
      number = apart.at[0]
      self._drop(apart)
      if self._stopped: raise Stopped("the campaign is being ended", where="campaign")
      tries[number] += 1
      if tries[number] < task.limits.tries and "still running" not in done: spans.append((first, end))
      else:
        total.lost.append((number, done))
        spans += [span for span in ((number + 1, end), (first, number)) if span[0] < span[1]]
    total.wall = time.monotonic() - start
    return total


def _leak(task: Task, done: Done) -> str:
  if done.memory > task.limits.memory: return f"{done.memory >> 10} MiB of memory in use"
  return f"{done.files} open files" if done.files > task.limits.files else ""


@cache
def commit() -> str:
  """Which sources these are: git's name of the checkout, or the version that is installed."""
  from importlib.metadata import version
  root = Path(__file__).resolve().parents[2]
  try: said = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"],
                             capture_output=True, text=True, check=True).stdout.strip()
  except (OSError, subprocess.CalledProcessError): return version("tinyhw")
  return said


# ---- in the process

def _run(task: Task, first: int, count: int, at: mmap.mmap) -> Done:
  function, done, start = task.function(), Done(), os.times()
  for number in range(first, first + count):
    at[:] = _AT.pack(number, time.monotonic())
    try: answer = function(number, task.parameters)
    except Exception as error:  # whatever a random program does is what is looked for
      text = f"{type(error).__name__}: {error}"
      done.findings.append(Finding(number, text, cause(text)))
      continue
    done.endings[answer.ending] += 1
    done.rows += answer.rows
    done.findings += [Finding(number, text, cause(text)) for text in answer.wrong]
  end = os.times()
  done.seconds = sum(end[:4]) - sum(start[:4])
  done.memory = int(Path("/proc/self/statm").read_text().split()[1]) * (os.sysconf("SC_PAGE_SIZE") >> 10)
  done.files = len(os.listdir("/proc/self/fd"))
  return done


def _watch(parent: int) -> None:
  while os.getppid() == parent: time.sleep(1.0)
  os._exit(1)  # killed: nobody wants what this computes


def serve(tasks: BinaryIO, answers: BinaryIO, at: Any) -> None:
  """The process's life. What the programs print goes to standard error, a crash with its Python frames too."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
  faulthandler.enable()
  threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
  while True:
    try: task, first, count = pickle.load(tasks)
    except EOFError: return
    pickle.dump(_run(task, first, count, at), answers)
    answers.flush()


if __name__ == "__main__":
  out = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)
  serve(sys.stdin.buffer, out, mmap.mmap(int(sys.argv[1]), _AT.size))
