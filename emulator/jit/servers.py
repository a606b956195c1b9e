"""The processes that compile, as their users have them: started when they are wanted, replaced when they end.

There are two, one for code that is wanted soon and one for code that is worth LLVM's time, so that none waits for the
other. A text over which LLVM ends or never ends costs its process, and nothing else.
"""
from __future__ import annotations

import hashlib
import os
import select
import site
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

import llvmlite

from tinyhw.core.ending import Step, at_end
from tinyhw.core.host import Host
from tinyhw.core.kept import Kept
from tinyhw.emulator.jit.refusal import CompilerFailed, NotCompiled

QUICK, HOT = range(2)  # as in `compiler`, which this process does not import
SECONDS: Final = (20.0, 60.0)  # of a processor, that LLVM may take over a program: the first time, and when it is hot
_SHARE: Final = 0.05  # of a processor, that LLVM gets on the busiest machine: what gets less stands still
_TICKS: Final = os.sysconf("SC_CLK_TCK")
REQUEST: Final = struct.Struct("<IBBI")  # number, how (`compiler`), bytes of the processor's name, bytes of text
ANSWER: Final = struct.Struct("<IBI")  # number, whether it was compiled, bytes of the object file or of what is wrong
_NICENESS: Final = (0, 5)
_SCRIPT: Final = str(Path(__file__).with_name("compiler.py"))  # imported, it would bring LLVM into this process
_LOOK: Final = 0.1  # seconds between two looks whether the process is about to end


class Server:
  """A process that compiles, or none yet."""

  over: ClassVar[bool] = False  # this process ends, and needs no others

  def __init__(self, hot: bool) -> None:
    self._hot = hot
    self.lock = threading.Lock()  # held by who has a job
    self.process: subprocess.Popen[bytes] | None = None
    self._words = -1  # memory with what LLVM says last
    self.limit = SECONDS[hot]  # of a processor, for what is compiled now
    self._began = self._spent = 0.0  # when the last text was sent, and what the process had taken until then
    self._number = 0
    self.known: Kept[bytes, bytes] = Kept(256)  # object files at hand, by the digest of their text

  def start(self) -> None:
    """Have a process, without waiting until it is ready. Raises CompilerFailed."""
    if self.process is not None and self.process.poll() is None: return
    self.stop()
    if self.over: raise CompilerFailed("this process ends")
    self._words = os.memfd_create("tinyhw compiler", os.MFD_CLOEXEC)
    # -P keeps the script's own folder, and the modules in it, from the path
    command = [sys.executable, "-P", _SCRIPT, str(_NICENESS[self._hot]), str(os.cpu_count() or 1), REQUEST.format,
               ANSWER.format]
    place, environment = str(Path(llvmlite.__file__).parent.parent), dict(os.environ)
    environment.pop("TINYHW_RUN_CARDS", None)  # of `tinyhw run`: children of the program have mock cards
    if place not in (*site.getsitepackages(), site.getusersitepackages()):  # where it would not be found
      environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), place]))
    try: self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words,
                                         env=environment, start_new_session=True)
    except OSError as error:
      os.close(self._words)
      raise CompilerFailed(f"no process that compiles: {error}") from None
    assert self.process.stdin is not None
    os.set_blocking(self.process.stdin.fileno(), False)

  def stop(self) -> None:
    """End the process, if there is one."""
    process, self.process = self.process, None
    if process is None: return
    process.kill()
    self._close(process)
    process.wait()

  def forget(self) -> None:
    """In a forked child: the process is its parent's."""
    process, self.process = self.process, None
    self.lock = threading.Lock()
    if process is None: return
    self._close(process)
    process.returncode = 0  # nobody here waits for it

  def _close(self, process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
      assert pipe is not None
      with suppress(OSError): pipe.close()
    os.close(self._words)

  def send(self, text: str, host: Host, until: float, how: int) -> int:
    """Have a text compiled for a processor; its number. Raises CompilerFailed."""
    self.start()
    assert self.process is not None and self.process.stdin is not None
    self._number += 1
    self._began, self._spent = time.monotonic(), self._taken()
    data, cpu = (text + host.functions).encode(), host.cpu.encode()
    left = memoryview(REQUEST.pack(self._number, how, len(cpu), len(data)) + cpu + data)
    handle = self.process.stdin.fileno()
    while left:
      self._wait(handle, select.POLLOUT, until)
      try: left = left[os.write(handle, left):]
      except OSError: raise self._failed() from None
    return self._number

  def receive(self, until: float) -> tuple[int, bytes]:
    """The next object file with its number. Raises NotCompiled; CompilerFailed where there is none by `until`."""
    number, good, size = ANSWER.unpack(self._read(ANSWER.size, until))
    data = self._read(size, until)
    if not good: raise NotCompiled(data.decode(errors="replace"))
    return number, data

  def _read(self, size: int, until: float) -> bytes:
    assert self.process is not None and self.process.stdout is not None
    handle, data = self.process.stdout.fileno(), b""
    while len(data) < size:
      self._wait(handle, select.POLLIN, until)
      part = os.read(handle, size - len(data))
      if not part: raise self._failed()
      data += part
    return data

  def _wait(self, handle: int, event: int, until: float) -> None:
    """Return when a pipe is ready. Raises CompilerFailed when it takes too long, or there is nobody to wait for."""
    ready = select.poll()
    ready.register(handle, event)
    while not ready.poll(1000 * max(0, min(until - time.monotonic(), _LOOK))):
      over = time.monotonic() >= until and not self._works()
      if not over and threading.main_thread().is_alive(): continue
      self.stop()
      raise CompilerFailed(f"LLVM did not end within {self.limit:g} s" if over else "this process ends")

  def _taken(self) -> float:
    """Seconds of a processor that the process has taken."""
    assert self.process is not None
    try: fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError: return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS

  def _works(self) -> bool:
    """Whether LLVM is at work on a machine that has others too, and has not had its seconds yet."""
    taken = self._taken() - self._spent
    return taken < self.limit and taken >= _SHARE * (time.monotonic() - self._began)

  def _failed(self) -> CompilerFailed:
    """What to tell of a process that has ended by itself."""
    assert self.process is not None
    self.process.wait()
    status = self.process.returncode
    words = os.pread(self._words, 4096, 0).decode(errors="replace").strip().partition("\n")[0]
    self.stop()
    return CompilerFailed(f"LLVM gave up: {words or f'its process ended with {status}'}")


class Job:
  """The texts of one program, which are compiled as soon as they are sent. The server is this job's until its end.

  Programs have texts in common: what the server has compiled before is at hand.
  """

  def __init__(self, server: Server, host: Host, seconds: float, how: int = QUICK) -> None:
    self._server, self._host, self._seconds, self._how = server, host, seconds, how
    self._wanted: list[bytes] = []  # what was sent, by its digest
    self._found: dict[bytes, bytes] = {}
    self._sent: dict[int, bytes] = {}  # what is being compiled

  def __enter__(self) -> Job:
    self._server.lock.acquire()
    self._server.limit = self._seconds
    try: self._server.start()
    except BaseException:
      self._server.lock.release()
      raise
    return self

  def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
    if kind is not None and not issubclass(kind, NotCompiled): self._server.stop()  # an answer may be half read
    self._server.lock.release()

  def send(self, text: str) -> None:
    """Have a text compiled. Raises CompilerFailed."""
    digest = hashlib.sha256(f"{self._how} {self._host}\n{text}".encode()).digest()
    self._wanted.append(digest)
    if (known := self._server.known.get(digest)) is not None: self._found[digest] = known
    elif digest not in self._sent.values():
      until = time.monotonic() + self._seconds
      self._sent[self._server.send(text, self._host, until, self._how)] = digest

  def objects(self) -> list[bytes]:
    """The object files in the order of texts. Raises NotCompiled, and CompilerFailed when LLVM ends, or does not."""
    until = time.monotonic() + self._seconds
    while self._sent:
      number, data = self._server.receive(until)
      if (digest := self._sent.pop(number, None)) is None: continue  # of a job that came to no end
      self._found[digest] = data
      self._server.known.keep(digest, data)
    return [self._found[digest] for digest in self._wanted]


_SERVERS: Final = (Server(False), Server(True))


def job(hot: bool, host: Host, more: float = 0.0, *, soon: bool = False) -> Job:
  """A new job for a processor, to be entered; waits for the one before. Code that is wanted `soon` is compiled by the
  process for that, also where it is to be hot; `more` are seconds beyond SECONDS that it may take."""
  late = hot and not soon
  return Job(_SERVERS[late], host, SECONDS[late] + more, HOT if hot else QUICK)


def expect() -> None:
  """Start the process for code that is wanted soon: it will be."""
  server = _SERVERS[False]
  if server.process is None and server.lock.acquire(blocking=False):
    try: server.start()
    except CompilerFailed: pass  # said when code is wanted
    finally: server.lock.release()


def _stop() -> None:
  Server.over = True  # threads that live on start none
  for server in _SERVERS: server.stop()


def _forget() -> None:
  Server.over = False
  for server in _SERVERS: server.forget()


at_end(Step.COMPILERS, _stop, inherited=True)
os.register_at_fork(after_in_child=_forget)
