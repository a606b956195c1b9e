"""Programs that run again and again, for verbs that try them: in forks of a warm process, or each anew."""
from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.core.schedule import Schedule, read
from tinyhw.core.written import save
from tinyhw.devices.explored import EXPLAINS, GIVEN, OUT, draw_of
from tinyhw.queues.explore import Outcome

TIMED_OUT: Final = 124
_LAST: Final = 40  # lines of a log that are looked through for an error


@dataclass(frozen=True)
class ServedProgram:
  """What runs: a Python program (`python` holds what stands behind the interpreter), or any other command."""
  words: tuple[str, ...]
  python: tuple[str, ...] | None

  @classmethod
  def of(cls, words: Sequence[str]) -> ServedProgram:
    """The program of a command line."""
    first, rest = words[0], tuple(words[1:])
    name = Path(first).name
    if name in ("pytest", "py.test"): return cls(tuple(words), ("-m", "pytest", *rest))
    if name.startswith("python") and rest and (rest[0] == "-m" or not rest[0].startswith("-")):
      return cls(tuple(words), rest)
    if first.endswith(".py"): return cls((sys.executable, *words), tuple(words))
    return cls(tuple(words), None)

  def check(self) -> None:
    """Raises InvalidArgument where there is no such file."""
    if self.python and self.python[0] != "-m" and not Path(self.python[0]).is_file():
      raise InvalidArgument(f"{self.python[0]}: there is no such file",
                            hint="as in: tinyhw explore -- python program.py, or -- pytest test_x.py")


class Server:
  """A process that forks runs; see `tinyhw.testing.server`."""

  def __init__(self, program: ServedProgram, environment: Mapping[str, str], log: Path) -> None:
    assert program.python is not None
    theirs, requests = os.pipe()
    answers, back = os.pipe()
    self.log = log
    with log.open("wb") as out:
      self.process = subprocess.Popen(
        [sys.executable, "-m", "tinyhw.testing.server", str(theirs), str(back), *program.python], env=dict(environment),
        stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(theirs, back), start_new_session=True)
    os.close(theirs)
    os.close(back)
    self._requests: IO[str] = os.fdopen(requests, "w")
    self._answers: IO[str] = os.fdopen(answers)

  def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
    """A request and its answer. Raises DeviceError where the server has ended."""
    with suppress(BrokenPipeError):
      print(json.dumps(request), file=self._requests, flush=True)
    line = self._answers.readline()
    if not line:
      text = self.log.read_text(errors="replace").strip()
      raise DeviceError(f"the program cannot be run\n{text}", where="tinyhw explore")
    answer: dict[str, Any] = json.loads(line)
    return answer

  def close(self) -> None:
    """No more requests; what runs is ended."""
    with suppress(OSError): self._requests.close()
    with suppress(ProcessLookupError): os.killpg(self.process.pid, signal.SIGTERM)
    self.process.wait()
    self._answers.close()


class Runs:
  """Runs a program by schedules; threads may call it at once, as many as there are jobs."""

  def __init__(self, program: ServedProgram, environment: Mapping[str, str], jobs: int, seconds: float) -> None:
    self.program, self.environment, self.jobs, self.seconds = program, dict(environment), jobs, seconds
    self._folder = tempfile.TemporaryDirectory(prefix="tinyhw-explore-")
    self._free: queue.SimpleQueue[tuple[int, Server | None]] = queue.SimpleQueue()
    self._servers: list[Server] = []
    self.folder = Path(self._folder.name)
    self._warm: list[str] | None = None

  def __enter__(self) -> Runs:
    for n in range(self.jobs):
      server = None
      if self.program.python is not None:
        server = Server(self.program, self.environment, self.folder / f"server{n}")
        self._servers.append(server)
      self._free.put((n, server))
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               trace: TracebackType | None) -> None:
    for server in self._servers: server.close()
    self._folder.cleanup()

  def __call__(self, schedule: Schedule, explains: bool = False,
               more: Mapping[str, str] | None = None) -> Outcome:
    """What the program comes to under a schedule; `more` variables are set for this run alone."""
    n, server = self._free.get()
    try:
      given, out, log, result = (self.folder / f"{name}{n}" for name in ("schedule", "out", "log", "result"))
      save(given, schedule.text())
      for path in (out, log, result): path.unlink(missing_ok=True)
      environment = {GIVEN: str(given), OUT: str(out), EXPLAINS: "1" if explains else "", **(more or {})}
      if server is None: failure = self._from_its_beginning(environment, log)
      else: failure = self._forked(server, environment, log, result)
      handled = result.exists() and bool(json.loads(result.read_text())["handled"])
      return replace(self._outcome(schedule, normal(failure), out, log), handled=handled,
                     timed_out="had not ended" in failure)
    finally: self._free.put((n, server))

  def _forked(self, server: Server, environment: Mapping[str, str], log: Path, result: Path) -> str:
    request = {"environment": environment, "log": str(log), "result": str(result), "seconds": self.seconds,
               "modules": self._warm is None}
    code = server.ask(request)["code"]
    if not result.exists(): return f"the program ended with {told(code)}"
    row = json.loads(result.read_text())
    if self._warm is None:
      self._warm = row["modules"]
      for each in self._servers:  # nobody else runs yet
        each.ask({"import": self._warm})
    return str(row["failure"])

  def _from_its_beginning(self, environment: Mapping[str, str], log: Path) -> str:
    with log.open("wb") as out:
      try: child = subprocess.Popen(self.program.words, env={**self.environment, **environment},
                                    stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
      except OSError as error: raise InvalidArgument(f"cannot be run: {error.strerror}",
                                                     where=self.program.words[0]) from None
      try: code = child.wait(self.seconds)
      except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return f"it had not ended after {self.seconds:g} s"
    if code == 0: return ""
    lines = log.read_text(errors="replace").splitlines()[-_LAST:]
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"the program ended with {told(code)}: {said}".rstrip(": ")

  def _outcome(self, schedule: Schedule, failure: str, out: Path, log: Path) -> Outcome:
    if not out.exists(): return Outcome(schedule, failure, log=text_of(log))
    row = json.loads(out.read_text())
    given = out.with_suffix(".schedule")
    save(given, json.dumps(row["schedule"]))
    made = replace(read(given), program=self.program.words)
    return Outcome(made, failure, row["digest"], row["turns"], tuple(tuple(map(draw_of, m)) for m in row["draws"]),
                   tuple(tuple(d[-1] for d in m) for m in row["draws"]), text_of(log),
                   calls=tuple((kind, name) for calls in row["calls"] for kind, name in calls), struck=row["struck"])


_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{5,}")


def normal(failure: str) -> str:
  """A failure without what differs from process to process."""
  return _ADDRESS.sub("0x...", failure)


def text_of(log: Path) -> str:
  """What a run has printed."""
  return log.read_text(errors="replace") if log.exists() else ""


def told(code: int) -> str:
  """An exit status, or the signal that it stands for."""
  return f"status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
