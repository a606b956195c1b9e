"""A program is started under a filter, with a guard beside it that takes down what is left when its host is gone.

Three processes: the host, a guard that it forks, and the program, which the guard forks. The guard adopts whatever the
program leaves behind (PR_SET_CHILD_SUBREAPER), so that all of it stays below the host, which may then look into its
memory (Yama's rule). When the host ends, however it ends, the guard kills what still runs and removes the host's
folder; when the guard is killed, the program is (PR_SET_PDEATHSIG), and the host, which adopts the rest, kills what has
the filter.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from tinyhw.autogen import linux_trace as linux
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.mock.clients.filter import LIBC, Instruction, install

_SIGNALS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


@dataclass
class Started:
  """A program that was started: its listener, where the guard tells of it (`pid N`, `status N`, or `exec why`), and
  what keeps the guard waiting."""
  listener: int
  told: int
  alive: int
  guard: int

  def close(self) -> None:
    """Have the guard kill what still runs, and wait until that is done."""
    os.close(self.alive)
    os.close(self.told)
    with contextlib.suppress(ChildProcessError): os.waitpid(self.guard, 0)


def start(words: Sequence[str], environment: Mapping[str, str], instructions: Sequence[Instruction],
          folder: str) -> Started:
  """Start a program. Raises DeviceError where the system lets nobody have a listener."""
  zero = ctypes.c_ulong(0)
  LIBC.prctl(linux.PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), zero, zero, zero)
  ours, theirs = socket.socketpair()
  told, telling = os.pipe()
  waiting, alive = os.pipe()
  guard = os.fork()
  if not guard:
    for fd in (ours.fileno(), told, alive): os.close(fd)
    _forever(lambda: _guard(words, environment, instructions, folder, theirs, telling, waiting))
  theirs.close()
  for fd in (telling, waiting): os.close(fd)
  with ours: _, fds, _, _ = socket.recv_fds(ours, 1, 1)
  started = Started(fds[0] if fds else -1, told, alive, guard)
  if fds: return started
  kept = os.dup(told)
  started.close()  # the guard ends, and with it what it may tell
  with os.fdopen(kept, "rb") as pipe: why = pipe.read().decode()
  why = next((line.partition(" ")[2] for line in why.splitlines() if line.startswith("seccomp ")), why)
  raise DeviceError(f"this system does not let a program's calls come to a host ({why})", where="seccomp",
                    hint="Linux 5.9 or newer is needed, and no other listener around it (EBUSY); a container wants a "
                         "seccomp profile that allows seccomp and process_vm_readv: docker run --security-opt "
                         "seccomp=unconfined")


def _forever(do: Callable[[], None]) -> NoReturn:
  """What a forked child does; it never comes back."""
  try: do()
  finally: os._exit(127)


def _program(words: Sequence[str], environment: Mapping[str, str], instructions: Sequence[Instruction],
             theirs: socket.socket, telling: int, guard: int) -> None:
  """The child that becomes the program. What fails is told."""
  step = "seccomp"
  try:
    zero = ctypes.c_ulong(0)
    LIBC.prctl(linux.PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), zero, zero, zero)
    if os.getppid() != guard: return
    listener = install(instructions)
    socket.send_fds(theirs, [b"x"], [listener])
    os.close(listener)
    step = "exec"
    os.execvpe(words[0], list(words), dict(environment))
  except OSError as error:
    os.write(telling, f"{step} {error.strerror}\n".encode())


def _guard(words: Sequence[str], environment: Mapping[str, str], instructions: Sequence[Instruction], folder: str,
           theirs: socket.socket, telling: int, waiting: int) -> None:
  """Start the program, tell how it ends, and stay until the host is gone."""
  before = {number: signal.getsignal(number) for number in _SIGNALS}
  for number in _SIGNALS: signal.signal(number, signal.SIG_IGN)  # the terminal's are the program's
  zero = ctypes.c_ulong(0)
  LIBC.prctl(linux.PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), zero, zero, zero)
  woken, wakes = os.pipe()
  os.set_blocking(wakes, False)
  signal.set_wakeup_fd(wakes)
  signal.signal(signal.SIGCHLD, lambda number, frame: None)
  me, child = os.getpid(), os.fork()
  if not child:
    signal.set_wakeup_fd(-1)
    for number, handler in {**before, signal.SIGCHLD: signal.SIG_DFL}.items():
      signal.signal(number, signal.SIG_DFL if handler is signal.default_int_handler else handler)
    _forever(lambda: _program(words, environment, instructions, theirs, telling, me))
  theirs.close()
  os.write(telling, f"pid {child}\n".encode())
  while True:
    try: readable, _, _ = select.select([waiting, woken], [], [])
    except InterruptedError: continue
    if waiting in readable: break
    os.read(woken, 4096)
    _reap(child, telling)
  _kill_all(me)
  shutil.rmtree(folder, ignore_errors=True)
  os._exit(0)


def _reap(child: int, telling: int) -> None:
  """Take note of the children that have ended."""
  while True:
    try: pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError: return
    if not pid: return
    if pid != child: continue
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError): os.write(telling, f"status {code}\n".encode())


def _kill_all(above: int) -> None:
  """Kill all that descends from a process; what they have started meanwhile too."""
  while below := descendants(above):
    for pid in below:
      with contextlib.suppress(ProcessLookupError, PermissionError): os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError): os.waitpid(-1, 0)


def kill_filtered() -> None:
  """Kill all below this process that runs under a filter, which it has from a program that was started here."""
  own, me = _filters(os.getpid()), os.getpid()
  while below := [pid for pid in descendants(me) if _filters(pid) > own]:
    for pid in below:
      with contextlib.suppress(ProcessLookupError, PermissionError): os.kill(pid, signal.SIGKILL)
      with contextlib.suppress(ChildProcessError): os.waitpid(pid, 0)  # of others' children the parents take note


def _filters(pid: int) -> int:
  """How many of seccomp's filters a process has; 0 for one that has ended."""
  with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
    for line in file:
      if line.startswith("Seccomp_filters:"): return int(line.split()[1])
  return 0


def descendants(above: int) -> list[int]:
  """The processes below one, as far as they have not ended."""
  parents: dict[int, int] = {}
  for name in os.listdir("/proc"):
    if not name.isascii() or not name.isdigit(): continue
    with contextlib.suppress(OSError, ValueError, IndexError):
      with open(f"/proc/{name}/stat") as file: state, parent = file.read().rpartition(")")[2].split()[:2]
      if state != "Z" or int(parent) == above: parents[int(name)] = int(parent)
  found, more = list[int](), {above}
  while more:
    more = {pid for pid, parent in parents.items() if parent in more}
    found += more
  return found


def ended(line: str, program: str) -> int | None:
  """What the guard's line says: a program's exit status as a shell tells it, None where it goes on.

  Raises InvalidArgument where it could not be run.
  """
  what, _, text = line.partition(" ")
  if what == "exec": raise InvalidArgument(f"{program}: cannot be run: {text}", where="run")
  if what != "status": return None
  return 128 - int(text) if text.startswith("-") else int(text)
