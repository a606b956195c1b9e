"""Which tests execute which lines: each test file is run once under coverage, and kept by its contents.

    python -m tinyhw.tools.mutate.trace tests/drive/test_queue.py     (what `Map.of` runs)

A kept trace stands while the test's file, the helpers beside it, the conftests and the rooms are as they were. Where a
source file has changed since, its lines are carried over by their text: the trace of a line that is new is that of its
neighbours. `--retrace` makes all anew.
"""
from __future__ import annotations

import difflib
import functools
import gc
import gzip
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tinyhw.tools.mutate.rooms import ROOMS, ROOT, files

KEPT: Final = ROOT / ".venv" / "mutate"
HOOK: Final = Path(__file__).resolve().parent / "hook"
QUIET: Final = ("-q", "--tb=no", "--no-header", "--no-summary",
                *(x for name in ("cacheprovider", "xdist", "faulthandler") for x in ("-p", f"no:{name}")))


@dataclass
class Test:
  """A test: processor seconds, whether it passes, and the lines that it executes by the source's path."""
  seconds: float
  passed: bool
  lines: dict[str, set[int]] = field(default_factory=dict)


@cache
def sources() -> dict[str, str]:
  """Path relative to the root -> text, of all files of all rooms."""
  return {str(f.path.relative_to(ROOT)): f.text for room in ROOMS for f in files(room)}


def _digest(test_file: str) -> str:
  """Of a test file, of what it may share, and of where it is looked what is executed."""
  helpers = [p for folder in {ROOT / "tests", (ROOT / test_file).parent} for p in folder.glob("*.py")
             if not p.name.startswith("test_")]
  h = hashlib.sha256(repr(sorted({source for room in ROOMS.values() for source in room.sources})).encode())
  for p in sorted({ROOT / test_file, *helpers}): h.update(p.read_bytes())
  return h.hexdigest()


class Map:
  """What the tests of some files execute."""

  def __init__(self) -> None:
    self.tests: dict[str, Test] = {}
    self.at_import: set[tuple[str, int, str]] = set()  # (source, line, name) of functions called while modules load

  @classmethod
  def of(cls, test_files: Iterable[str], anew: Collection[str] = (), jobs: int = 1) -> Map:
    """The map of these test files, traced now where it is not kept, or where a file is to be traced `anew`."""
    test_files = list(test_files)
    waiting = [t for t in test_files if t in anew or not _kept(t).exists()]

    def trace(name: str) -> None:
      print(f"tracing {name}", file=sys.stderr, flush=True)
      done = subprocess.run([sys.executable, "-m", "tinyhw.tools.mutate.trace", name], cwd=ROOT,
                            stdin=subprocess.DEVNULL, check=False)
      if done.returncode: raise RuntimeError(f"{name} could not be traced: exit status {done.returncode}")
    with ThreadPoolExecutor(jobs) as pool: list(pool.map(trace, waiting))
    out = cls()
    for name in test_files: out._add(json.loads(gzip.decompress(_kept(name).read_bytes())))
    return out

  def _add(self, kept: dict[str, Any]) -> None:
    moved = {name: _moved(text, sources()[name]) for name, text in kept["sources"].items() if name in sources()}
    for name, line, function in kept["at_import"]:
      for now in moved.get(name, {}).get(line, ()): self.at_import.add((name, now, function))
    sets: dict[tuple[str, str], set[int]] = {}
    for test, (seconds, passed, lines) in kept["tests"].items():
      entry = self.tests[test] = Test(seconds, passed)
      for name, mask in lines.items():
        if name not in moved: continue
        if (name, mask) not in sets:
          sets[name, mask] = {x for n in _bits(int(mask, 16)) for x in moved[name].get(n, ())}
        entry.lines[name] = sets[name, mask]


def _bits(mask: int) -> list[int]:
  return [n for n, bit in enumerate(reversed(bin(mask)[2:])) if bit == "1"]


@cache
def _moved(then: str, now: str) -> dict[int, tuple[int, ...]]:
  """Where the lines of a text are in a later one (from 1); lines put in or changed go with those that they replace, or
  with the line before."""
  a, b = then.split("\n"), now.split("\n")
  if a == b: return {n: (n,) for n in range(1, len(a) + 1)}
  out: dict[int, list[int]] = {}
  for tag, i, i2, j, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
    if tag == "equal":
      for k in range(i2 - i): out.setdefault(i + k + 1, []).append(j + k + 1)
    else:
      for n in range(i + 1, i2 + 1) if tag == "replace" else (i, i + 1):
        out.setdefault(n, []).extend(range(j + 1, j2 + 1))
  return {n: tuple(x) for n, x in out.items()}


def _kept(test_file: str) -> Path:
  return KEPT / f"{test_file.replace('/', '.')}.{_digest(test_file)[:16]}.gz"


def hook() -> None:
  """Let Python processes of tests begin with `hook/sitecustomize.py`, also where they get a path made of sys.path.

  Ctrl-C works in them: what a shell runs in the background ignores it, and a test that waits for it would never end.
  """
  signal.signal(signal.SIGINT, signal.default_int_handler)
  sys.path.insert(0, str(HOOK))
  os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))


REMEMBERING: Final = ("tinyhw.emulator.", "tinyhw.isa.")  # packages whose modules remember what they have made
COMPILED: Final = (("tinyhw.emulator.jit.ptx.module.code", "_MEMORY"),
                   ("tinyhw.emulator.jit.ptx.module.code", "_BESIDE"),
                   ("tinyhw.emulator.jit.amdgcn.forms", "_MEMORY"))


class Memories:
  """What the emulator remembers from test to test: of what is remembered only the first test would be seen to execute
  the lines, and it may be the one that notices nothing."""

  def __init__(self) -> None:
    self._caches = [o for o in gc.get_objects() if isinstance(o, functools._lru_cache_wrapper)
                    and str(getattr(o, "__module__", "")).startswith(REMEMBERING)]

  def forget(self) -> None:
    """Empty it all."""
    for remembered in self._caches: remembered.cache_clear()
    for module, name in COMPILED: getattr(sys.modules.get(module), name, {}).clear()
    for server in getattr(sys.modules.get("tinyhw.emulator.jit.servers"), "_SERVERS", ()): server.known.clear()


def processor() -> float:
  """Processor seconds of this process and of those that it has waited for."""
  return sum(x.ru_utime + x.ru_stime for x in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Tracer:
  """Pytest's plugin: a context of coverage for each test."""

  def __init__(self, where: str) -> None:
    import coverage
    self.where = where
    self.names = {str(ROOT / name): name for name in sources()}
    self.cover = coverage.Coverage(data_file=None, include=list(self.names), config_file=False)
    self.seconds: dict[str, float] = {}
    self.failed: set[str] = set()
    self.called: set[tuple[str, int, str]] = set()
    self.memories: Memories | None = None
    os.environ.update({"TINYHW_MUTATE_TRACE": where, "TINYHW_MUTATE_FILES": "\n".join(self.names)})
    hook()

  def __call__(self, frame: Any, event: str, _: Any) -> None:
    if event == "call" and "tinyhw" in frame.f_code.co_filename:
      code = frame.f_code
      self.called.add((code.co_filename, code.co_firstlineno, code.co_name))

  @pytest.hookimpl(wrapper=True)
  def pytest_collection(self, session: pytest.Session) -> Any:
    sys.setprofile(self)
    try: return (yield)
    finally: sys.setprofile(None)

  @pytest.hookimpl(wrapper=True)
  def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
    if self.memories is None:
      self.memories = Memories()
      self.cover.start()
    self.memories.forget()
    self.cover.switch_context(item.nodeid)
    os.environ["TINYHW_MUTATE_TEST"] = item.nodeid
    start = processor()
    try: return (yield)
    finally: self.seconds[item.nodeid] = processor() - start

  def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
    if report.failed: self.failed.add(report.nodeid)
    if report.skipped and report.when != "call": self.failed.add(report.nodeid)

  def result(self) -> dict[str, Any]:
    """What is kept."""
    import coverage
    if self.seconds: self.cover.stop()
    masks: dict[str, dict[str, int]] = {t: {} for t in self.seconds}
    found = [self.cover.get_data()] if self.seconds else []
    for apart in Path(self.where).glob("apart*"):
      data = coverage.CoverageData(str(apart))
      data.read()
      found.append(data)
    for data in found:
      for path in data.measured_files():
        name = self.names.get(path)
        for line, tests in data.contexts_by_lineno(path).items() if name else ():
          for test in tests:
            if test in masks: masks[test][str(name)] = masks[test].get(str(name), 0) | 1 << line
    real = {path: os.path.realpath(path) for path, _, _ in self.called}
    called = {(self.names[real[p]], line, name) for p, line, name in self.called if real[p] in self.names}
    touched = {name for lines in masks.values() for name in lines} | {name for name, _, _ in called}
    return {
      "tests": {t: (round(s, 4), t not in self.failed, {n: hex(m) for n, m in masks[t].items()})
                for t, s in self.seconds.items()},
      "at_import": sorted(called),
      "sources": {name: sources()[name] for name in sorted(touched)}}


def main(test_file: str) -> int:
  """Run a test file and keep its trace."""
  with tempfile.TemporaryDirectory() as where:
    tracer = Tracer(where)
    os.environ["TINYHW_CACHE"] = "0"
    with open(os.devnull, "w") as sink:
      out, sys.stdout = sys.stdout, sink
      pytest.main([*QUIET, "--capture=sys", test_file], plugins=[tracer])
      sys.stdout = out
    result = tracer.result()
  KEPT.mkdir(parents=True, exist_ok=True)
  for old in KEPT.glob(f"{test_file.replace('/', '.')}.*.gz"): old.unlink()
  _kept(test_file).write_bytes(gzip.compress(json.dumps(result).encode(), 4))
  return 0


if __name__ == "__main__": sys.exit(main(sys.argv[1]))
