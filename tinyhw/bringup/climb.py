"""A ladder is climbed: rungs in order, each in a process that can be ended, with a time limit of its own.

Waits of a rung end by the bench's time limit. A call of a kernel driver may never return, and a device may take its
process down: so rungs run in a child process (a *life*), which tells its parent what it begins and what came of it. The
parent opens no device. It ends a child that says nothing for longer than the rung may take, notes the rung as broken,
and goes on in a new life; a child that cannot be ended (it hangs inside the kernel) is left behind. A rung that takes
the device away from its process (`alone`) has a life of its own, which is also what proves that the device is there
again for the next one.
"""
from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

from tinyhw.bringup.bench import end_child
from tinyhw.bringup.result import ABSENT, BLOCKED, BROKEN, PASSED, Result
from tinyhw.bringup.rung import LOOK, Absent, Broken, Rung, RungEnd
from tinyhw.core.errors import Error

GRACE_S: Final = 5.0  # more than a rung's own limit: opening the device, and what a wait rounds up


class Bench(Protocol):
  """What rungs are handed. `begin` is told how long the next rung may take."""
  def begin(self, seconds: float) -> None: ...
  def submitted(self) -> Sequence[str]:
    """What was submitted since `begin`, a packet a line."""
  def facts(self) -> dict[str, Any]:
    """What is known of the device, without names of persons, hosts and pieces."""
  def secrets(self) -> Sequence[bytes]:
    """What tells this piece from others, as bytes of calls and files have it."""
  def close(self) -> None: ...


B = TypeVar("B", bound=Bench)
Tell = Callable[[dict[str, Any]], None]


def attempt(rung: Rung[B], bench: B) -> Result:
  """Run one rung; whatever of the tree, or of the system, it raises is a result."""
  start = time.monotonic()
  bench.begin(rung.seconds)
  made = Result(rung.name, BROKEN)
  try:
    made.evidence, made.state = rung.run(bench), PASSED
  except Broken as broken:
    made.found, made.wanted, made.look_at = broken.found, broken.wanted, broken.look_at
    made.packets = list(broken.packets or bench.submitted())
  except Absent as absent: made.state, made.evidence = ABSENT, absent.message
  except (Error, RungEnd, OSError) as error:
    made.found, made.wanted, made.look_at = _text(error), "no error", LOOK
    made.facts, made.packets = list(getattr(error, "facts", ())), list(bench.submitted())
  made.seconds = time.monotonic() - start
  return made


def _text(error: Error | RungEnd | OSError) -> str:
  return error.headline() if not isinstance(error, OSError) else f"{os.strerror(error.errno or 0)} ({error})"


def _life(rungs: Sequence[Rung[B]], make: Callable[[], B], done: Callable[[str], bool], tell: Tell) -> None:
  """Run these rungs on one bench, as far as what they stand on holds."""
  bench = make()
  try:
    for rung in rungs:
      if not all(done(n) for n in rung.needs): continue
      tell({"begins": rung.name})
      result = attempt(rung, bench)
      tell({"result": result.row()})
      if result.state == BROKEN: break  # what it leaves behind is nobody's to stand on: the next rung gets a new life
    tell(_known(bench))
  finally: bench.close()


def _known(bench: Bench) -> dict[str, Any]:
  """What is known of the device at the end of a life: nothing where it does not answer."""
  try: return {"facts": bench.facts(), "secrets": [s.hex() for s in bench.secrets()]}
  except (Error, RungEnd, OSError): return {"facts": {}, "secrets": []}


def lives(rungs: Sequence[Rung[B]]) -> Iterator[list[Rung[B]]]:
  """Rungs that share a process: those that follow each other, but for each that wants one alone."""
  together: list[Rung[B]] = []
  for rung in rungs:
    if rung.alone:
      if together: yield together
      together = []
      yield [rung]
    else: together.append(rung)
  if together: yield together


class Climb:
  """The run of a ladder. `shown` is told each result as it comes, `leave` is called at the end of each child; `inside`
  runs rungs in this process (for debuggers and tests: nothing ends one that hangs). `secrets` are bytes that tell this
  piece, host or person from others, as benches know them."""

  def __init__(self, rungs: Sequence[Rung[B]], make: Callable[[], B], *, kept: dict[str, Result] | None = None,
               shown: Callable[[Result], None] = lambda result: None,
               leave: Callable[[], None] = lambda: None, inside: bool = False) -> None:
    self.rungs, self._make, self._inside = list(rungs), make, inside
    self._shown, self._leave = shown, leave
    self.secrets: set[bytes] = set()
    self.results: dict[str, Result] = {}
    self.facts: dict[str, Any] = {}
    self._kept = kept or {}

  def run(self) -> list[Result]:
    """All results, in the order of the ladder."""
    for rung in self.rungs:
      if (known := self._kept.get(rung.name)) is not None:
        known.kept = True
        self._note(known)
    for life in lives([r for r in self.rungs if r.name not in self.results]):
      waiting: list[Rung[Any]] = life
      while waiting := self._open(waiting): self._live(waiting)
    return [self.results[r.name] for r in self.rungs]

  def _holds(self, name: str) -> bool:
    """Whether a rung stands: it passed, or is not part of this run."""
    known = self.results.get(name)
    return known is None or known.state == PASSED

  def _open(self, rungs: Sequence[Rung[Any]]) -> list[Rung[Any]]:
    """Those that are not done. What stands on a broken rung is noted as blocked."""
    waiting = []
    for rung in rungs:
      if rung.name in self.results: continue
      under = next((n for n in rung.needs if not self._holds(n)), None)
      if under is None: waiting.append(rung)
      else:
        known = self.results[under]
        if known.state == ABSENT: self._note(Result(rung.name, ABSENT, evidence=f"{under}: {known.evidence}"))
        else: self._note(Result(rung.name, BLOCKED, found=f"stands on {under}, which is {known.state}"))
    return waiting

  def _note(self, result: Result) -> None:
    self.results[result.rung] = result
    self._shown(result)

  # ---- a life

  def _live(self, rungs: Sequence[Rung[Any]]) -> None:
    if self._inside: return self._told_by(rungs)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
      os.close(read)
      self._in_child(rungs, write)
    os.close(write)
    try: self._listen(rungs, child, read)
    finally: os.close(read)

  def _told_by(self, rungs: Sequence[Rung[Any]]) -> None:
    def tell(row: dict[str, Any]) -> None: self._hear(row)
    try: _life(rungs, self._make, self._passed, tell)
    except (Error, RungEnd, OSError) as error: self._lost(rungs, "", f"the bench: {_text(error)}")

  def _passed(self, name: str) -> bool: return self._holds(name)

  def _in_child(self, rungs: Sequence[Rung[Any]], write: int) -> None:
    """The child's whole life: it never returns, and runs nothing that its parent would run at its end."""
    code = 1
    try:
      def tell(row: dict[str, Any]) -> None:
        if "result" in row: self.results[row["result"]["rung"]] = Result(**row["result"])
        os.write(write, json.dumps(row).encode() + b"\n")
      try:
        _life(rungs, self._make, self._passed, tell)
        self._leave()
        code = 0
      except (Error, RungEnd, OSError) as error: tell({"lost": _text(error)})
      except BaseException:
        sys.excepthook(*sys.exc_info())  # a mistake of ours is told as such, and the parent hears that this ended
        raise
    finally: os._exit(code)

  def _hear(self, row: dict[str, Any]) -> str:
    """Take in what a life tells; the rung that runs now."""
    if "begins" in row:
      return str(row["begins"])
    if "result" in row: self._note(Result(**row["result"]))
    if "facts" in row:
      self.facts.update(row["facts"])
      self.secrets.update(bytes.fromhex(s) for s in row["secrets"])
    return ""

  def _listen(self, rungs: Sequence[Rung[Any]], child: int, read: int) -> None:
    """Hear a life to its end, or end it."""
    limits = {r.name: r.seconds for r in rungs}
    running, rest, lost = "", b"", ""
    since = time.monotonic()
    while True:
      limit = limits.get(running, max(limits.values())) + GRACE_S
      ready, _, _ = select.select([read], [], [], max(0.0, since + limit - time.monotonic()))
      if not ready:
        end_child(child)
        return self._lost(rungs, running, f"did not answer within {limit:.0f} s: its process was ended")
      data = os.read(read, 1 << 16)
      if not data: break
      *lines, rest = (rest + data).split(b"\n")
      for line in lines:
        row = json.loads(line)
        since, lost = time.monotonic(), str(row.get("lost", lost))
        running = self._hear(row)
    _, status = os.waitpid(child, 0)
    if running or lost:
      how = f"signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "its own exit"
      self._lost(rungs, running, lost or f"its process ended by {how}")
    elif not any(r.name in self.results for r in rungs): self._lost(rungs, "", "its process told nothing")

  def _lost(self, rungs: Sequence[Rung[Any]], running: str, found: str) -> None:
    """A life ended before its time: that is the rung's that ran, or of the first that had not begun."""
    name = running or next((r.name for r in rungs if r.name not in self.results), rungs[-1].name)
    self._note(Result(name, BROKEN, found=found, wanted="an answer", look_at=
                      "the kernel's log (dmesg), and the rung alone: --only " + name))
