"""Asks cases of packets, methods and ioctls of a device: one after the other in a room, and in a new one behind a case
that takes its room away. Rooms are in processes of their own: one that hangs inside the kernel is ended."""
from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tinyhw.bringup.bench import end_child
from tinyhw.bringup.rung import RungEnd
from tinyhw.core.errors import Error, Unsupported
from tinyhw.tools.conform.client.question import Differs, Heard, Question, shown
from tinyhw.tools.conform.judge import BAD, Result

SECONDS: Final = 10.0  # that a case may take
GRACE_S: Final = 15.0  # more than that until its process is ended: opening the device, and what waits round up
Make = Callable[[], Any]


def result(q: Question, verdict: str, detail: str = "", **more: Any) -> Result:
  """A result with the words that describe a case."""
  return Result(q.id, q.mnemonic, q.unit, q.form, q.source, shown(q.text), "", verdict, detail, asked=q.asked,
                kind=q.kind, **more)


def ask(q: Question, room: Any, seconds: float = SECONDS) -> Result:
  """Ask one case. Whatever of the tree, or of the system, it raises is a result."""
  heard = Heard()
  room.bench.begin(seconds)
  try: q.play(room, heard)
  except Differs as d:
    told = {"instruction": q.name, "where": d.where, "wanted": d.wanted, "found": d.found,
            "operands": {}}
    return result(q, "fail", str(d), difference=told, digest=heard.digest)
  except Unsupported as error: return result(q, "unsupported", error.headline())
  except (Error, RungEnd, OSError) as error: return result(q, "error", _said(error))
  return result(q, "pass", digest=heard.digest)


def _said(error: Error | RungEnd | OSError) -> str:
  text = error.headline() if not isinstance(error, OSError) else str(error)
  return f"{type(error).__name__}: {text}".partition("\n")[0]


def asked(questions: Sequence[Question], make: Make) -> Iterator[Result]:
  """Ask in this process, each room as long as it holds."""
  room = None
  for q in questions:
    try:
      if room is None: room = make()
      found = ask(q, room)
    except (Error, RungEnd, OSError) as error: found = result(q, "error", f"no room: {_said(error)}")
    if (found.verdict in BAD or q.alone) and room is not None:
      left, room = room, None
      _leave(left)
    yield found
  if room is not None: _leave(room)


def _leave(room: Any) -> None:
  try: room.close()
  except (Error, RungEnd, OSError): pass  # the device is gone: that has been told


def apart(questions: Sequence[Question], make: Make) -> Iterator[Result]:
  """Ask in child processes, one for as many cases as it answers."""
  left = list(questions)
  while left:
    count = 0
    for found in _life(left, make):
      count += 1
      yield found
    left = left[count:]


def _life(questions: Sequence[Question], make: Make) -> Iterator[Result]:
  """The results of the first questions, as many as one process answers: at least one."""
  read, write = os.pipe()
  child = os.fork()
  if child == 0:
    os.close(read)
    _child(questions, make, write)
  os.close(write)
  number, rest = 0, b""
  try:
    while True:
      until = time.monotonic() + SECONDS + GRACE_S
      ready, _, _ = select.select([read], [], [], max(0.0, until - time.monotonic()))
      if not ready:
        end_child(child)
        yield result(questions[number], "error", f"no answer within {SECONDS + GRACE_S:.0f} s: its process was ended")
        return
      data = os.read(read, 1 << 16)
      if not data: break
      *lines, rest = (rest + data).split(b"\n")
      for line in lines:
        number += 1
        yield Result(**json.loads(line))
  finally: os.close(read)
  _, status = os.waitpid(child, 0)
  if status and number < len(questions):
    how = f"signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "its own exit"
    yield result(questions[number], "error", f"its process ended by {how}")


def _child(questions: Sequence[Question], make: Make, write: int) -> None:
  """The child's whole life: it never returns, and runs nothing that its parent would run at its end."""
  code = 1
  try:
    try:
      for found in asked(questions, make):
        row = {k: v for k, v in vars(found).items()}
        with os.fdopen(os.dup(write), "wb") as pipe: pipe.write(json.dumps(row).encode() + b"\n")
        if found.verdict in BAD: break
      code = 0
    except BaseException:
      sys.excepthook(*sys.exc_info())  # a mistake of ours is told as such, and the parent hears that this ended
      raise
  finally: os._exit(code)
