"""Runs tests against changed code: a process that has loaded what the tests need forks for each change.

    python -m tinyhw.tools.mutate.worker loaded ROOM,... TEST_FILE ...  has collected these; changes live functions
    python -m tinyhw.tools.mutate.worker bare                           has libraries only; modules load changed

Jobs come as lines of JSON, verdicts go the same way. A job's process may do what it likes: it has a limit of processor
time for each test, one of memory, one of time on the clock, a folder for temporary files and a process group, and all
are gone when it ends. What kills it or never ends counts as noticed, which the verdict says.
"""
from __future__ import annotations

import importlib
import json
import marshal
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TextIO

import pytest
from _pytest.runner import runtestprotocol

from tinyhw.tools.mutate.mutants import content, shape
from tinyhw.tools.mutate.places import File, functions
from tinyhw.tools.mutate.rooms import files
from tinyhw.tools.mutate.trace import QUIET, hook, processor

MEMORY: Final = 6 << 30   # bytes of private memory that a job may use
CORES: Final = 4.0        # least processor seconds of a test
CLOCK: Final = 60.0       # least seconds on the clock of a test, and of starting
TIMES: Final = 12         # times as long as it took unchanged


@dataclass
class Job:
  """A change (module, path and number of its file; number -1: none) and the tests to run, (name, seconds) each; `least`
  is the processor time that each may have at least."""
  id: int
  path: str
  module: str
  number: int
  tests: list[tuple[str, float]] = field(default_factory=list)
  least: float = CORES


def _say(pipe: int, **words: Any) -> None:
  os.write(pipe, (json.dumps(words) + "\n").encode())


def _named(items: dict[str, pytest.Item], name: str) -> list[pytest.Item]:
  """The test of this name, or all cases of it."""
  return [items[name]] if name in items else [i for n, i in items.items() if n.startswith(f"{name}[")]


class Apart:
  """What a child does first, and how it runs tests."""

  def __init__(self, job: Job, pipe: int) -> None:
    self.job, self.pipe = job, pipe

  def limit(self, seconds: float) -> None:
    """From now on, so many seconds of the processor more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + max(self.job.least, TIMES * seconds)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))

  def run(self, items: dict[str, pytest.Item]) -> None:
    """Run the job's tests among these, up to the first that fails."""
    chosen = [(item, seconds) for name, seconds in self.job.tests for item in _named(items, name)]
    for k, (item, seconds) in enumerate(chosen):
      _say(self.pipe, test=item.nodeid, seconds=seconds)
      os.environ["TINYHW_MUTATE_TEST"] = item.nodeid
      self.limit(seconds)
      reports = runtestprotocol(item, log=False, nextitem=chosen[k + 1][0] if k + 1 < len(chosen) else None)
      if any(r.failed for r in reports): return self.end("failed", item.nodeid)
    self.end("passed", "" if chosen or not self.job.tests else "no test was found")

  def end(self, verdict: str, by: str = "") -> None:
    """Say the verdict, and be gone."""
    _say(self.pipe, verdict=verdict, by=by, cpu=round(processor(), 3))
    os._exit(0)


@dataclass
class _Child:
  job: Job
  pid: int
  folder: str
  deadline: float
  text: bytes = b""
  last: str = ""
  verdict: dict[str, Any] | None = None


def serve(run: Callable[[Apart], None], out: TextIO) -> None:
  """Fork for each job that comes, until there come no more; verdicts go to `out`."""
  select = selectors.DefaultSelector()
  select.register(0, selectors.EVENT_READ)
  children: dict[int, _Child] = {}
  given, open_ = b"", True
  while open_ or children:
    for key, _ in select.select(1.0):
      words = os.read(key.fd, 1 << 16)
      if key.fd == 0:
        if not words:
          open_ = False
          select.unregister(key.fd)
        *lines, given = (given + words).split(b"\n")
        for line in lines:
          job = Job(**json.loads(line))
          pipe, child = _fork(job, run)
          children[pipe] = child
          select.register(pipe, selectors.EVENT_READ)
      else:
        child = children[key.fd]
        _hear(child, words)
        if not words:
          select.unregister(key.fd)
          print(json.dumps(_buried(key.fd, children.pop(key.fd))), file=out, flush=True)
    for child in children.values():
      if time.monotonic() > child.deadline:
        if child.verdict is None and computing(child.pid):  # a busy machine: what ends it is the processor time
          child.deadline += CLOCK / 12
          continue
        child.verdict = child.verdict or {"verdict": "hung", "by": child.last, "cpu": 0.0}
        os.killpg(child.pid, signal.SIGKILL)


def computing(group: int) -> bool:
  """Whether a process of a group runs or waits for a processor, and for nothing else."""
  for path in Path("/proc").glob("[0-9]*/stat"):
    try: words = path.read_text().rpartition(")")[2].split()
    except OSError: continue  # it has ended
    if words[0] == "R" and int(words[2]) == group: return True
  return False


def _fork(job: Job, run: Callable[[Apart], None]) -> tuple[int, _Child]:
  folder = tempfile.mkdtemp(prefix="tinyhw-mutate-")
  read, write = os.pipe()
  pid = os.fork()
  if not pid:
    try:
      os.setsid()
      # Where a session has a share of the processors for itself, it is as nice as who asked.
      with suppress(OSError): Path("/proc/self/autogroup").write_text(str(os.nice(0)))
      os.close(read)
      null = os.open(os.devnull, os.O_RDWR)
      for fd in (0, 1, 2): os.dup2(null, fd)
      os.environ["TMPDIR"] = tempfile.tempdir = folder
      resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
      resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
      apart = Apart(job, write)
      apart.limit(CLOCK / TIMES)
      run(apart)
      apart.end("failed", "while modules load")
    except BaseException as e:
      _say(write, verdict="failed", by=f"{type(e).__name__}: {e}"[:200], cpu=round(processor(), 3))
    finally: os._exit(1)
  os.close(write)
  return read, _Child(job, pid, folder, time.monotonic() + CLOCK * 2)


def _hear(child: _Child, words: bytes) -> None:
  *lines, child.text = (child.text + words).split(b"\n")
  for line in lines:
    said = json.loads(line)
    if "verdict" in said: child.verdict = said
    else: child.last, child.deadline = said["test"], time.monotonic() + max(CLOCK, TIMES * said["seconds"])


def _buried(pipe: int, child: _Child) -> dict[str, Any]:
  """What became of a job whose process has ended, or was killed."""
  os.close(pipe)
  try: os.killpg(child.pid, signal.SIGKILL)
  except ProcessLookupError: pass
  _, status = os.waitpid(child.pid, 0)
  shutil.rmtree(child.folder, ignore_errors=True)
  died = {"verdict": "died", "by": f"{child.last} (status {os.waitstatus_to_exitcode(status)})", "cpu": 0.0}
  return {"id": child.job.id, **(child.verdict or died)}


class Plugin:
  """Pytest's: hypothesis says only that an example fails; `loop` is given the items instead of running them."""

  def __init__(self, loop: Callable[[dict[str, pytest.Item]], None]) -> None: self.loop = loop

  @pytest.hookimpl(tryfirst=True)
  def pytest_collection(self, session: pytest.Session) -> None:
    from hypothesis import Phase, settings
    settings.register_profile("changed", settings(), phases=(Phase.explicit, Phase.generate), database=None,
                              report_multiple_bugs=False, print_blob=False)
    settings.load_profile("changed")

  @pytest.hookimpl(tryfirst=True)
  def pytest_runtestloop(self, session: pytest.Session) -> bool:
    if not session.testsfailed: self.loop({item.nodeid: item for item in session.items})
    return True


def _mark(job: Job) -> File | None:
  """The job's file; processes that its tests start have the change too."""
  if job.number < 0: return None
  file = File(Path(job.path), job.module)
  kept = Path(tempfile.gettempdir()) / "changed.code"
  kept.write_bytes(marshal.dumps(file.code(job.number)))
  os.environ["TINYHW_MUTATE_CODE"] = f"{job.module}={kept}"
  return file


def live(paths: set[str]) -> dict[str, dict[Any, list[FunctionType]]]:
  """The functions of this process by their source and their code's shape."""
  import gc
  real: dict[str, str] = {}
  out: dict[str, dict[Any, list[FunctionType]]] = {p: {} for p in paths}
  gc.unfreeze()  # the tests' own settings may have frozen them
  for f in gc.get_objects():
    if not isinstance(f, FunctionType): continue
    name = f.__code__.co_filename
    if name not in real: real[name] = os.path.realpath(name)
    if real[name] in out: out[real[name]].setdefault(shape(f.__code__), []).append(f)
  return out


def plant(file: File, number: int, known: dict[Any, list[FunctionType]]) -> bool:
  """Change the live functions; whether there are any."""
  before, planted = dict(functions(file.code())), False
  for key, code in functions(file.code(number)):
    old = before.get(key)
    if old is None or content(code) == content(old): continue
    for f in known.get(shape(old), ()):
      f.__code__, planted = code, True
  return planted


def loaded(out: TextIO, test_files: list[str], paths: set[str]) -> None:
  """Collect, then serve."""
  def loop(items: dict[str, pytest.Item]) -> None:
    known = live(paths)

    def run(apart: Apart) -> None:
      file = _mark(apart.job)
      if file is not None and not plant(file, apart.job.number, known[str(file.path)]): apart.end("unplanted")
      apart.run(items)
    import gc
    gc.collect()
    gc.freeze()
    serve(run, out)
  pytest.main([*QUIET, "--capture=sys", *test_files], plugins=[Plugin(loop)])


def bare(out: TextIO) -> None:
  """Load what the package stands on, then serve."""
  import hypothesis.strategies  # noqa: F401
  import llvmlite.binding  # noqa: F401
  import msgpack  # noqa: F401
  import numpy  # noqa: F401

  def run(apart: Apart) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] in {"tinyhw", "tests"}]: del sys.modules[name]
    _mark(apart.job)
    importlib.import_module("sitecustomize")  # plants what _mark has left
    names = list(dict.fromkeys(name.split("::")[0] for name, _ in apart.job.tests))
    pytest.main([*QUIET, "--capture=sys", *names], plugins=[Plugin(apart.run)])
  serve(run, out)


class Server:
  """A worker, seen from outside."""

  def __init__(self, *words: str) -> None:
    import subprocess
    # No plugins that are installed: pytest imports the packages of those itself, past the changed modules.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "TINYHW_CACHE": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    self.process = subprocess.Popen([sys.executable, "-m", "tinyhw.tools.mutate.worker", *words], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, env=environment)

  def give(self, job: Job) -> None:
    """Hand a job over."""
    assert self.process.stdin is not None
    print(json.dumps(asdict(job)), file=self.process.stdin, flush=True)

  def take(self) -> dict[str, Any]:
    """The next verdict."""
    assert self.process.stdout is not None
    line = self.process.stdout.readline()
    if not line: raise RuntimeError(f"the worker is gone: exit status {self.process.wait()}")
    return dict(json.loads(line))

  def close(self) -> None:
    """No more jobs."""
    assert self.process.stdin is not None
    self.process.stdin.close()
    self.process.wait()


if __name__ == "__main__":
  hook()
  verdicts = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # pytest's words are no verdicts
  if sys.argv[1] == "bare": bare(verdicts)
  else: loaded(verdicts, sys.argv[3:], {str(file.path) for room in sys.argv[2].split(",") for file in files(room)})
