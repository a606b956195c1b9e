"""The command `tinyhw`, and Python programs that use tinyhw, for tests: a process for each, forked from one that has
imported what they need.

Python's start and the imports take ten times as long as most commands. Tests of just that start Python themselves.
`tinyhw` calls the command, `python` a program's text; `stand_in` writes a program for `PATH`, so that shells start it
so, too. What is left of a process that ends badly or gets stuck is told by `tests/apart.py`.
"""
from __future__ import annotations

import array
import atexit
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NotRequired, TypedDict

ROOT: Final = Path(__file__).resolve().parent.parent
LONGEST: Final = 1 << 20  # bytes of a request
PATIENCE: Final = 30.0  # seconds in which a process that is aborted shows its threads
ROOMS: Final = ("cli", "compile", "devices", "drive", "emulator", "engine", "kernels", "mock", "queues", "tensor",
                "testing")  # whose modules are all imported
WARM: Final = ("llvmlite.binding", "pytest", "pdb", "hypothesis", "numpy.ma", "xml.etree.ElementTree", "platformdirs",
               "xdist.remote")
STAND_IN: Final = """#!{python} -IS
import array, json, os, signal, socket, sys
words = {first!r} + sys.argv[1:]
if words[:1] == ["-u"]: del words[0]
if words and words[0].startswith("-m") and words[0] != "-m": words[:1] = ["-m", words[0][2:]]
if not words or words[0] not in ("tinyhw", "-c", "-m") and not words[0].endswith(".py"):
  os.execv({python!r}, [{python!r}, *words])
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
  server.connect({at!r})
  request = {{"words": words, "env": dict(os.environ), "cwd": os.getcwd(), "stand_in": sys.argv[0]}}
  request = json.dumps(request).encode()
  server.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", range(3)))])
  pid = int(server.recv(64))
  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
  code = int(server.recv(64))
if code < 0:
  signal.signal(-code, signal.SIG_DFL)
  os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Request(TypedDict):
  """What a process is begun with. `words` are "tinyhw" and its arguments, or those of Python. With `faults` it shows
  where its threads stand when a signal ends it; `core` is how large a core it may leave. `stand_in` is the program that
  was called."""
  words: list[str]
  env: dict[str, str]
  cwd: str
  faults: NotRequired[bool]
  core: NotRequired[list[int]]
  stand_in: NotRequired[str]


class Ended(subprocess.CompletedProcess[str]):
  """A process that has ended; `late` where it was aborted, since it took longer than it may."""

  def __init__(self, words: list[str], code: int, out: str, err: str, pid: int, late: bool) -> None:
    super().__init__(words, code, out, err)
    self.pid, self.late = pid, late


def tinyhw(*words: str, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None,
           timeout: float = 180) -> subprocess.CompletedProcess[str]:
  """`tinyhw WORDS` in a process of its own. Raises subprocess.TimeoutExpired where it takes longer."""
  return _asked(["tinyhw", *words], stdin, env, cwd, timeout)


def python(text: str, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None,
           timeout: float = 180) -> subprocess.CompletedProcess[str]:
  """`python -c TEXT ARGUMENTS`, as `tinyhw`."""
  return _asked(["-c", text, *arguments], stdin, env, cwd, timeout)


def watched(words: list[str], env: Mapping[str, str], timeout: float) -> Ended:
  """Python with these arguments (`-c`, `-m` or a file, and more). It shows its threads where a signal ends it, and is
  aborted where it takes longer."""
  return _asked(words, "", env, None, timeout, faults=True)


def _asked(words: list[str], stdin: str, env: Mapping[str, str] | None, cwd: Path | None,
           timeout: float, faults: bool = False) -> Ended:
  request = Request(words=words, env=dict(os.environ if env is None else env), cwd=os.fspath(cwd or Path.cwd()),
                    faults=faults, core=list(resource.getrlimit(resource.RLIMIT_CORE)))
  with (tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server):
    given.write(stdin.encode())
    given.seek(0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
    server.connect(_server(os.getpid()))
    rights = array.array("i", [f.fileno() for f in (given, out, err)])
    server.sendmsg([json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    pid = int(server.recv(64))
    code = _status(server, timeout)
    if late := code is None:
      os.kill(pid, signal.SIGABRT if faults else signal.SIGKILL)
      if not faults: raise subprocess.TimeoutExpired(request["words"], timeout)
      if (code := _status(server, PATIENCE)) is None:
        os.kill(pid, signal.SIGKILL)
        code = _status(server, None)
    assert code is not None
    for stream in (out, err): stream.seek(0)
    return Ended(words, code, out.read().decode(), err.read().decode(), pid, late)


def _status(server: socket.socket, timeout: float | None) -> int | None:
  """With what a process ends; None where it takes longer."""
  server.settimeout(timeout)
  try: return int(server.recv(64))
  except TimeoutError: return None


def stand_in(path: Path) -> None:
  """Write a program that is called as `tinyhw`, or as Python where `path` has another name."""
  first = [path.name] if path.name == "tinyhw" else []
  path.write_text(STAND_IN.format(python=sys.executable, first=first, at=_server(os.getpid())))
  path.chmod(0o755)


@cache
def _server(owner: int) -> str:
  """Where the server of this process listens; a child that fork made has another one."""
  folder = tempfile.mkdtemp(prefix="tinyhw-tests-")
  at = f"{folder}/server"
  process = subprocess.Popen([sys.executable, "-m", __name__, at], cwd=ROOT, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
  assert process.stdin is not None and process.stdout is not None
  process.stdout.read(1)  # it listens

  def end() -> None:
    if os.getpid() != owner: return
    process.communicate()
    shutil.rmtree(folder, ignore_errors=True)
  atexit.register(end)
  return at


class _Server:
  """Forks a process for each request, and tells who asked how it ended."""

  def __init__(self, at: str) -> None:
    self._listens = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self._listens.bind(at)
    self._listens.listen(16)
    self._events = selectors.DefaultSelector()
    self._events.register(self._listens, selectors.EVENT_READ)
    self._events.register(0, selectors.EVENT_READ)  # its end is the owner's
    self._running: dict[int, tuple[int, socket.socket]] = {}

  def serve(self) -> list[str] | None:
    """In a child the words that it was asked for; in the server None, when its owner has gone."""
    os.write(1, b"\n")
    while True:
      for key, _ in self._events.select():
        if key.fd == 0: return None
        if key.fileobj is not self._listens: self._ended(key.fd)
        elif (words := self._begin(self._listens.accept()[0])) is not None: return words

  def _begin(self, asked: socket.socket) -> list[str] | None:
    message, rights, _, _ = asked.recvmsg(LONGEST, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(rights[0][2])
    if (pid := os.fork()) == 0:
      for handle, (_, other) in self._running.items():
        os.close(handle)
        other.close()
      self._events.close()
      self._listens.close()
      asked.close()
      return _become(json.loads(message), list(streams))
    for fd in streams: os.close(fd)
    asked.send(str(pid).encode())
    handle = os.pidfd_open(pid)
    self._running[handle] = pid, asked
    self._events.register(handle, selectors.EVENT_READ)
    return None

  def _ended(self, handle: int) -> None:
    pid, asked = self._running.pop(handle)
    self._events.unregister(handle)
    os.close(handle)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with asked:
      try: asked.send(str(code).encode())
      except BrokenPipeError: pass  # who asked has gone


def _become(request: Request, streams: list[int]) -> list[str]:
  """Make this process what one is that a shell has just begun."""
  for number, fd in enumerate(streams):
    os.dup2(fd, number)
    os.close(fd)
  own = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
  sys.path[:] = ["", *filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep)),
                 *(path for path in sys.path[1:] if path not in own)]
  os.environ.clear()
  os.environ.update(request["env"])
  os.chdir(request["cwd"])
  sys.stdin = open(0, encoding="utf-8", closefd=False)
  sys.stdout, sys.stderr = (open(n, "w", buffering=1 if n == 2 or os.isatty(n) else -1, encoding="utf-8", closefd=False,
                                 errors="strict" if n == 1 else "backslashreplace") for n in (1, 2))
  if core := request.get("core"): resource.setrlimit(resource.RLIMIT_CORE, (core[0], core[1]))
  if request.get("faults"):
    faulthandler.enable()
    _WATCHED.extend(request["words"])
  if request["words"][:2] == ["-m", "pytest"] and "stand_in" in request:
    sys.executable = request["stand_in"]  # so pytest's workers, and pytest in a test, are forked, too
  return request["words"]


def _warm() -> None:
  """What commands import and make once."""
  from tinyhw.isa.amdgcn import table
  from tinyhw.isa.ptx import forms
  from tinyhw.wire import methods, qmd
  for name in WARM: importlib.import_module(name)
  for room in ROOMS:
    package = importlib.import_module(f"tinyhw.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."): importlib.import_module(module.name)
  for name in ("gfx11", "gfx9", "gfx12"): table(name)
  for class_id in methods.CLASS_IDS: methods.by_address(methods.declared(class_id))
  for class_id in qmd.CLASS_IDS: qmd.versions(class_id)
  forms.rows()
  gc.collect()
  gc.freeze()


def _spared() -> None:
  """Called last at the end of a process: Python takes no modules apart that the server had imported, which is most of
  what a short process costs. What the process itself has made goes as ever. One that ends well then has no more to do;
  of others, and of those that `watched` is for, Python ends the interpreter, too."""
  for name in _WARM_MODULES:
    if (module := sys.modules.pop(name, None)) is not None: ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
  if not _ENDED: return
  with suppress(OSError, ValueError, AttributeError):  # a stream that is closed, full or gone: Python tells of it
    for own in _ENDED: vars(own).clear()
    gc.collect()
    for stream in (sys.stdout, sys.stderr): stream.flush()
    os._exit(0)


_ENDED: Final[list[types.ModuleType]] = []  # what is left of a program that has come to a good end
_WARM_MODULES: Final[list[str]] = []


_OWN: Final = types.ModuleType("__main__")  # of a program's text; it ends with the process, unlike this one
_WATCHED: Final[list[str]] = []  # the words of a program whose end is looked at


def _run(words: list[str]) -> None:
  """`tinyhw ARGUMENTS`, `-c TEXT ARGUMENTS`, `-m MODULE ARGUMENTS` or `FILE.py ARGUMENTS`."""
  from tinyhw.cli import main
  if words[0] == "tinyhw":
    sys.argv[:] = ["-c", *words[1:]]
    main()
  elif words[0] == "-c":
    sys.argv[:] = ["-c", *words[2:]]
    sys.modules["__main__"] = _OWN
    exec(compile(words[1], "<string>", "exec"), _OWN.__dict__)
  elif words[0] == "-m":
    sys.argv[:] = words[1:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
  else:
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


def _main() -> None:
  atexit.register(_spared)  # the first to be registered is the last to be called
  _warm()
  _WARM_MODULES.extend(name for name in sys.modules if name not in ("__main__", "builtins", "sys"))
  words = _Server(sys.argv[1]).serve()
  if words is None: return
  try: _run(words)
  except SystemExit as error:
    if error.code: raise
  if not _WATCHED: _ENDED.append(_OWN)


if __name__ == "__main__": _main()
