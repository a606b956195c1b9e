"""The end of the process: what is to be done then is done here, in one order, whoever asked for it first.

`at_end(step, what)` has a function called when Python ends, while all of Python still works. Steps follow each other as
they stand in `Step`; of one step the last to ask is called first. What one raises is told, and the others are called
all the same. Nobody else in the package registers with `atexit`.

When they are called Python has joined all threads that are no daemons, and daemons still run. So each step leaves what
is safe to run on with: a device that is closed refuses, threads that are gone are not made again, no process that
compiles is started anew (`ends()`). Behind the last step nobody but this thread gets into LLVM any more, whose
own destructors run when Python is gone, and would run under a thread that is in it.

A forked child ends by itself: it does what it has asked for, and of its parent's only what was `inherited`.

Who has given C code functions to call asks for `LIBRARIES`: from there on, and when Python is gone, they answer with an
error and call no Python.
"""
from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from tinyhw.core.locks import llvm_lock

Work = Callable[[], object]
_LLVM_S: Final = 10.0  # how long a thread that is in LLVM is waited for


class Step(IntEnum):
  """What ends when."""
  REPORTS = 0    # what tells of the run and asks devices for it: profiles, pages, findings
  DEVICES = 1    # queued work is done, devices close, and mock machines with them
  LIBRARIES = 2  # functions of ours that C code holds: from here on they answer that all is over
  THREADS = 3    # native threads and pools
  COMPILERS = 4  # processes that compile
  FILES = 5      # temporary files and folders


_asked: Final[list[tuple[Step, Work, bool]]] = []


def at_end(step: Step, what: Work, inherited: bool = False) -> None:
  """Have a function called at the end of this process; with `inherited`, at the end of its forked children too."""
  _asked.append((step, what, inherited))


def end() -> None:
  """Do it all, once. What is asked for meanwhile is done in its turn, or next, where its step is over."""
  while _asked:
    step = min(row[0] for row in _asked)
    at = max(i for i, row in enumerate(_asked) if row[0] is step)
    what = _asked.pop(at)[1]
    try: what()
    except BaseException: sys.excepthook(*sys.exc_info())  # one that fails, or is interrupted, holds up no other
  if (lock := llvm_lock()) is not None: lock.acquire(timeout=_LLVM_S)  # for good


def _in_child() -> None:
  _asked[:] = [row for row in _asked if row[2]]


atexit.register(end)
os.register_at_fork(after_in_child=_in_child)
