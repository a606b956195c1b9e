"""The system calls of another program: chosen ones are shown to who watches, before and behind them, with its memory.

    status = run(["./program"], os.environ, {linux_trace.NR_ioctl}, watcher)

A filter of seccomp stops the program at these calls alone, and ptrace shows them; the rest runs at full speed. Threads,
children that fork makes and programs that exec starts are followed. It needs no privilege, no other program and no
library in the program; x86-64 only. What a program stores to mapped memory is no call: `ProcessMemory` shows what lies
there, and who watches is called at intervals and before a program's memory goes, to look at it. Stores to a few chosen
places are shown one by one, behind the store: the processor's debug registers stop the thread, memory and instructions
stay as they are.

The programs end when their tracer does, however that ends (PTRACE_O_EXITKILL). Signals of the terminal are theirs. A
set-user-id program that they start has no privileges then, as for any tracer.
"""
from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tinyhw.autogen import linux_trace as linux
from tinyhw.core.errors import DeviceError, InvalidArgument

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p
_LIBC.ptrace.restype = ctypes.c_long
_OPTIONS: Final = (linux.PTRACE_O_TRACESYSGOOD | linux.PTRACE_O_TRACEFORK | linux.PTRACE_O_TRACEVFORK
                   | linux.PTRACE_O_TRACECLONE | linux.PTRACE_O_TRACEEXEC | linux.PTRACE_O_TRACESECCOMP
                   | linux.PTRACE_O_TRACEEXIT | linux.PTRACE_O_EXITKILL)
PLACES: Final = 4  # that a processor can watch (Intel SDM 3B, 17.2: DR0 to DR3)
_STATUS, _CONTROL = (linux.USER_DEBUGREG + 8 * n for n in (linux.DR_STATUS, linux.DR_CONTROL))
_LENGTHS: Final = {4: linux.DR_LEN_4, 8: linux.DR_LEN_8}
Place = tuple[int, int]
"""An address, and how many bytes it has: 4 or 8, of which it is a multiple."""
_CALL: Final = signal.SIGTRAP | 0x80  # a stop at a call, with PTRACE_O_TRACESYSGOOD (ptrace(2))


@dataclass(frozen=True, slots=True)
class SystemCall:
  """A call of a thread of a process: its number and arguments."""
  process: int
  thread: int
  number: int
  arguments: tuple[int, ...]

  def read(self, address: int, size: int) -> bytes | None:
    """The program's memory; None where there is none. Fewer bytes where it ends."""
    try:
      fd = os.open(f"/proc/{self.thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
      try: return os.pread(fd, size, address) or None
      finally: os.close(fd)
    except (OSError, OverflowError): return None

  def text(self, address: int) -> str | None:
    """A string of the program's; None where there is none."""
    found = b""
    while b"\0" not in found:
      part = self.read(address + len(found), 256 - (address + len(found)) % 256)
      if part is None or len(found) > 4096: return None
      found += part
    return os.fsdecode(found.partition(b"\0")[0])

  def path(self, fd: int) -> str:
    """What a descriptor is of; empty for none."""
    try: return os.readlink(f"/proc/{self.thread}/fd/{fd}")
    except OSError: return ""


class ProcessMemory:
  """A process's memory, while it runs and while it stands; of the program that runs there when this is made."""

  def __init__(self, process: int) -> None:
    self._process, self._fd = process, os.open(f"/proc/{process}/mem", os.O_RDONLY | os.O_CLOEXEC)
    self._spans: list[tuple[int, int, str]] | None = None

  def read(self, address: int, size: int) -> bytes | None:
    """Bytes; None where there is none, fewer where it ends."""
    try: return os.pread(self._fd, size, address) or None
    except (OSError, OverflowError): return None

  def shows(self, address: int, names: tuple[str, ...] = ("",)) -> bool:
    """Whether the program can read there, by a mapping of a file that begins with one of these names; `""`: any."""
    if self._spans is None: self._spans = list(_mappings(self._process))
    i = bisect_right(self._spans, address, key=lambda row: row[0]) - 1
    return i >= 0 and address < self._spans[i][1] and self._spans[i][2].startswith(names)

  def there(self) -> bool:
    """Whether the process has not ended."""
    return any(True for _ in _mappings(self._process))

  def moved(self) -> None:
    """The process has mapped something, or taken it down."""
    self._spans = None

  def close(self) -> None:
    """Look no more."""
    os.close(self._fd)


def _mappings(process: int) -> Iterator[tuple[int, int, str]]:
  """(first byte, byte behind the last, file) of what a process can read, by address; none where it has ended."""
  try:
    with open(f"/proc/{process}/maps") as file: lines = file.readlines()
  except OSError: return
  for line in lines:
    span, access, _, _, _, *name = line.split(None, 5)
    first, end = span.split("-")
    if "r" in access: yield int(first, 16), int(end, 16), name[0].rstrip("\n") if name else ""


class Watcher(Protocol):
  """Who is shown calls."""

  def entered(self, call: SystemCall) -> Any:
    """A call begins. What is not None comes back when it has returned; None: it is not shown."""

  def returned(self, call: SystemCall, kept: Any, value: int) -> None:
    """It has returned; an error is a negative number of errno."""

  def passed(self) -> None:
    """An interval has passed; the programs run."""

  def places(self, process: int) -> Sequence[Place]:
    """Stores to which places of a process are shown: the first `PLACES` of them. Asked for whenever a thread stands."""

  def stored(self, process: int, address: int) -> None:
    """A thread has stored to one of these places; it stands behind the store."""

  def blind(self, process: int, why: str) -> None:
    """This system shows no stores of a process."""

  def ending(self, process: int) -> None:
    """A thread of a process ends, and maybe all; its memory is still there."""

  def became(self, process: int) -> None:
    """Another program runs in a process; the one before is gone with its memory."""


def run(words: Sequence[str], environment: Mapping[str, str], numbers: Collection[int], watcher: Watcher,
        every_s: float = 0.002) -> int:
  """Run a program until it and all that it has started have ended; its exit status. The watcher hears of time at least
  each `every_s`. Raises InvalidArgument where there is no such program, and DeviceError where this system lets nobody
  look."""
  if sys.platform != "linux" or platform.machine() != "x86_64":
    raise DeviceError("calls of other programs are looked at on x86-64 Linux alone", where=words[0])
  told, telling = os.pipe()
  child = os.fork()
  if not child: _begin(words, environment, numbers, telling)
  os.close(telling)
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's is the program's
  mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # it is waited for
  try: status = _Tracer(child, watcher, every_s).run()
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    signal.signal(signal.SIGINT, before)
    with os.fdopen(told, "rb") as pipe: why = pipe.read().decode()
  if why.startswith("exec "): raise InvalidArgument(f"cannot be run: {why[5:]}", where=words[0])
  if why:
    raise DeviceError(f"this system lets nobody look at a program's calls ({why})", where=words[0],
                      hint="see kernel.yama.ptrace_scope; containers want another seccomp profile, or SYS_PTRACE")
  return status


def _begin(words: Sequence[str], environment: Mapping[str, str], numbers: Collection[int], telling: int) -> None:
  """The child: be traced, have the filter, become the program. What fails is told."""
  step = "ptrace"
  try:
    _need(_LIBC.ptrace(linux.PTRACE_TRACEME, 0, None, None))
    os.kill(os.getpid(), signal.SIGSTOP)  # until the tracer has said what it wants
    step = "seccomp"
    _filter(numbers)
    step = "exec"
    os.execvpe(words[0], list(words), dict(environment))
  except OSError as error:
    text = error.strerror if step == "exec" else f"{step}: {error.strerror}"
    os.write(telling, (f"exec {text}" if step == "exec" else str(text)).encode())
  finally: os._exit(127)


def _filter(numbers: Collection[int]) -> None:
  """Have the kernel stop this process at calls of these numbers."""
  load, jump, give = linux.BPF_LD | linux.BPF_W | linux.BPF_ABS, linux.BPF_JMP | linux.BPF_JEQ | linux.BPF_K, \
    linux.BPF_RET | linux.BPF_K
  places: Any = linux.seccomp_data
  wanted, count = sorted(numbers), len(numbers)
  rows = [(load, 0, 0, places.arch.offset), (jump, 0, count + 1, linux.AUDIT_ARCH_X86_64),
          (load, 0, 0, places.nr.offset), *((jump, count - n, 0, number) for n, number in enumerate(wanted)),
          (give, 0, 0, linux.SECCOMP_RET_ALLOW), (give, 0, 0, linux.SECCOMP_RET_TRACE)]
  program = (linux.sock_filter * len(rows))(*(linux.sock_filter(*row) for row in rows))
  holder = linux.sock_fprog(len(rows), ctypes.addressof(program))
  for option, one, two in ((linux.PR_SET_NO_NEW_PRIVS, 1, None), (
      linux.PR_SET_SECCOMP, linux.SECCOMP_MODE_FILTER, ctypes.addressof(holder))):
    _need(_LIBC.prctl(option, ctypes.c_ulong(one), ctypes.c_void_p(two), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _need(result: int) -> None:
  """Raises OSError for a function of the C library that failed."""
  if result: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class _Tracer:
  """Goes on with threads that stand, and shows their calls."""

  def __init__(self, child: int, watcher: Watcher, every_s: float) -> None:
    self._child, self._watcher, self._every_s = child, watcher, every_s
    self._known: dict[int, int] = {}  # threads, each with its process
    self._inside: dict[int, tuple[SystemCall, Any]] = {}
    self._watched: dict[int, tuple[Place, ...]] = {}  # of each thread, those that its registers have
    self._asked: set[int] = set()  # threads that are to stand for a moment
    self._status = 0

  def run(self) -> int:
    _, status = os.waitpid(self._child, 0)
    if not os.WIFSTOPPED(status): return os.waitstatus_to_exitcode(status)
    _ptrace(linux.PTRACE_SETOPTIONS, self._child, _OPTIONS)
    self._known[self._child] = self._child
    self._go_on(self._child)
    looked = time.monotonic()
    while True:
      try: thread, status = os.waitpid(-1, linux.WALL | os.WNOHANG)
      except ChildProcessError: return self._status
      if not thread: signal.sigtimedwait({signal.SIGCHLD}, self._every_s)
      elif os.WIFSTOPPED(status): self._stopped(thread, status)
      else: self._ended(thread, status)
      if (now := time.monotonic()) - looked < self._every_s: continue
      looked = now
      self._watcher.passed()

  def _ended(self, thread: int, status: int) -> None:
    self._known.pop(thread, None)
    self._inside.pop(thread, None)
    self._watched.pop(thread, None)
    self._asked.discard(thread)
    if thread == self._child:
      code = os.waitstatus_to_exitcode(status)
      self._status = 128 - code if code < 0 else code

  def _stopped(self, thread: int, status: int) -> None:
    event, number = status >> 16, os.WSTOPSIG(status)
    new = thread not in self._known
    if new: self._known[thread] = _process_of(thread)
    if event == linux.PTRACE_EVENT_SECCOMP: self._entered(thread)
    elif number == _CALL: self._returned(thread)
    elif event == linux.PTRACE_EVENT_EXEC:  # its other threads are gone
      self._inside.pop(thread, None)
      self._watched.pop(thread, None)
      self._watcher.became(thread)
      self._go_on(thread)
    elif event == linux.PTRACE_EVENT_EXIT:
      self._watcher.ending(self._known[thread])
      self._go_on(thread)
    elif event or new and number == signal.SIGSTOP: self._go_on(thread)
    elif number == signal.SIGSTOP and thread in self._asked:
      self._asked.discard(thread)
      self._go_on(thread)
    elif number == signal.SIGTRAP and self._stored(thread): self._go_on(thread)
    else: self._go_on(thread, number)

  # ---- stores

  def _stored(self, thread: int) -> bool:
    """Whether a thread stands behind a store that is watched; who watches hears of it."""
    watched = self._watched.get(thread, ())
    if not watched: return False
    ctypes.set_errno(0)
    traps = _ptrace(linux.PTRACE_PEEKUSER, thread, _STATUS)  # the C library gives the word, or -1 and an error
    hit = [] if ctypes.get_errno() else [place for n, place in enumerate(watched) if traps & linux.DR_TRAP0 << n]
    if not hit: return False
    _ptrace(linux.PTRACE_POKEUSER, thread, _STATUS, 0)
    for address, _ in hit: self._watcher.stored(self._known[thread], address)
    return True

  def _arm(self, thread: int) -> None:
    """Have a standing thread's registers watch what is wanted of its process; its other threads stand for a moment."""
    process = self._known.get(thread, thread)
    wanted = tuple(self._watcher.places(process)[:PLACES])
    if wanted == self._watched.get(thread, ()): return
    self._watched[thread] = wanted
    control, size, failed = 0, linux.DR_CONTROL_SIZE, _ptrace(linux.PTRACE_POKEUSER, thread, _CONTROL, 0) < 0
    for n, (address, length) in enumerate(wanted):
      failed = failed or _ptrace(linux.PTRACE_POKEUSER, thread, linux.USER_DEBUGREG + 8 * n, address) < 0
      control |= 1 << n * linux.DR_ENABLE_SIZE + linux.DR_LOCAL_ENABLE_SHIFT
      control |= (linux.DR_RW_WRITE | _LENGTHS[length]) << linux.DR_CONTROL_SHIFT + n * size
    failed = failed or _ptrace(linux.PTRACE_POKEUSER, thread, _CONTROL, control) < 0
    if failed and ctypes.get_errno() != errno.ESRCH:
      self._watcher.blind(process, os.strerror(ctypes.get_errno()))
      return
    for other, of in self._known.items():
      if of != process or other == thread or other in self._asked or self._watched.get(other, ()) == wanted: continue
      self._asked.add(other)
      if _LIBC.tgkill(process, other, signal.SIGSTOP): self._asked.discard(other)

  def _entered(self, thread: int) -> None:
    info = linux.ptrace_syscall_info()
    if _ptrace(linux.PTRACE_GET_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info)) < 0: return
    call = SystemCall(self._known[thread], thread, int(info.seccomp.nr), tuple(int(a) for a in info.seccomp.args))
    kept = self._watcher.entered(call)
    if kept is None: return self._go_on(thread)
    self._inside[thread] = call, kept
    _ptrace(linux.PTRACE_SYSCALL, thread)

  def _returned(self, thread: int) -> None:
    info = linux.ptrace_syscall_info()
    _ptrace(linux.PTRACE_GET_SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info))
    if info.op != linux.PTRACE_SYSCALL_INFO_EXIT:
      _ptrace(linux.PTRACE_SYSCALL, thread)
      return
    row = self._inside.pop(thread, None)
    if row is not None: self._watcher.returned(*row, int(info.exit.rval))
    self._go_on(thread)

  def _go_on(self, thread: int, number: int = 0) -> None:
    self._arm(thread)
    _ptrace(linux.PTRACE_CONT, thread, 0, number)


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> int:
  """A call of ptrace; a thread that is gone meanwhile is no error."""
  if request == linux.PTRACE_SETOPTIONS: address, data = 0, address
  return int(_LIBC.ptrace(request, thread, ctypes.c_void_p(address), ctypes.c_void_p(data)))


def _process_of(thread: int) -> int:
  """The process of a thread."""
  try:
    with open(f"/proc/{thread}/status") as file:
      return next((int(line.split()[1]) for line in file if line.startswith("Tgid:")), thread)
  except OSError: return thread  # it has ended
