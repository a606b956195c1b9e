"""Runs of a program, each in a fork of the process that serves them: requests are a line of JSON each, and so are
answers. What a run leaves behind is gone with its process; files that it writes are not.
"""
from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from tinyhw.core import ending
from tinyhw.core.errors import Error
from tinyhw.core.written import save
from tinyhw.devices import explored

TIMED_OUT: Final = 124
GRACE_S: Final = 2.0
_ROOTS: Final = frozenset({"tinyhw", "numpy", "llvmlite", "cffi", "ml_dtypes"}) | sys.stdlib_module_names
_NEVER: Final = frozenset({"antigravity", "this", "idlelib", "turtle"})


class Ran(Exception):
  """How a run of the program ended, where it did not end well. `failure` is what two runs have in common that fail
  alike."""

  def __init__(self, code: int, failure: str, handled: bool = False) -> None:
    super().__init__(failure)
    self.code, self.failure, self.handled = code, failure, handled


def serve(requests: int, answers: int, body: Callable[[], None]) -> None:
  """Serve requests until there are no more. `body` runs the program once, and raises Ran."""
  with os.fdopen(requests) as lines, os.fdopen(answers, "w") as out:
    for line in lines:
      request = json.loads(line)
      if "import" in request: answer = {"imported": warm(request["import"])}
      else: answer = _run(request, body)
      print(json.dumps(answer), file=out, flush=True)


def warm(names: Sequence[str]) -> int:
  """Import modules ahead, those that are the program's own not."""
  before = len(sys.modules)
  for name in names:
    if name.partition(".")[0] in _ROOTS - _NEVER and name not in sys.modules:
      with suppress(ImportError): importlib.import_module(name)
  if "tinyhw.devices.registry" in sys.modules: _used()
  gc.collect()
  gc.freeze()
  return len(sys.modules) - before


def _used() -> None:
  """Have made what tinyhw makes once for a process when it is first used: codecs of packets, tables, a first kernel.
  The devices of it are closed again."""
  from tinyhw import Device, Tensor
  with suppress(Error): (Tensor([1.0, 2.0]) + 1).tolist()  # a program that needs another device has its own error
  Device.close()
  explored.begin()


def modules() -> list[str]:
  """What a run has imported of what may be imported ahead."""
  return [name for name in list(sys.modules) if name.partition(".")[0] in _ROOTS - _NEVER]


def _run(request: dict[str, Any], body: Callable[[], None]) -> dict[str, Any]:
  """One run in a fork."""
  sys.stdout.flush()
  sys.stderr.flush()
  pid = os.fork()
  if pid == 0: _child(request, body)
  handle = os.pidfd_open(pid)
  try:
    timed_out = not select.select([handle], [], [], request["seconds"])[0]
    if timed_out:
      _kill(pid, signal.SIGTERM)
      select.select([handle], [], [], GRACE_S)
    _kill(pid, signal.SIGKILL)  # what it has left behind, too
    status = os.waitpid(pid, 0)[1]
  finally: os.close(handle)
  return {"code": TIMED_OUT if timed_out else os.waitstatus_to_exitcode(status)}


def _kill(pid: int, number: int) -> None:
  with suppress(ProcessLookupError): os.killpg(pid, number)


def _child(request: dict[str, Any], body: Callable[[], None]) -> NoReturn:
  """The run: what it prints goes to a file, what it came to is written, and nothing of the server is gone back to."""
  code = 70
  try:
    os.setpgrp()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2): os.dup2(log, stream)
    os.environ.update(request["environment"])
    explored.begin()

    def stopped(number: int, frame: FrameType | None) -> NoReturn:
      traceback.print_stack(frame)
      _tell(request, f"it had not ended after {request['seconds']:g} s")
      os._exit(TIMED_OUT)
    signal.signal(signal.SIGTERM, stopped)
    failure, code, handled = "", 0, False
    try: body()
    except Ran as ran: failure, code, handled = ran.failure, ran.code, ran.handled
    ending.end()
    _tell(request, failure, handled)
  finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _tell(request: dict[str, Any], failure: str, handled: bool = False) -> None:
  explored.finish()
  row = {"failure": failure, "handled": handled, "modules": modules() if request.get("modules") else []}
  save(Path(request["result"]), json.dumps(row))
