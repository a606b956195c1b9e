"""Serves the system calls of programs in other processes, and lets the machine go on meanwhile.

One thread does all: it answers calls, one after another, and in between the device goes on. It sleeps in `select` on
the listener, and looks at doorbells as often as there was something to do lately: each 20 us, down to each millisecond.

A call is answered at once, but for those that wait for the device (`Parked`). They are answered when the device says
so, or when a signal comes for their thread: then with ERESTARTSYS, of which the thread's kernel makes a new call or
EINTR, as the signal's handler wants it.

Paths are looked at when the call comes, and the kernel reads them again where the call goes on: a program that changes
them in between fools itself alone, for all that runs here is its user's.
"""
from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tinyhw.autogen import linux_trace as linux
from tinyhw.mock.clients.filter import LIBC, NAMES
from tinyhw.mock.clients.listener import Listener, TrappedCall
from tinyhw.mock.clients.memory import ClientMemory
from tinyhw.mock.clients.spawn import Started, ended, kill_filtered
from tinyhw.mock.clients.tree import ATTRIBUTES, OPENS, PATHS, STATS, Tree, flags_of
from tinyhw.mock.clients.witness import WatchedListener, Witness
from tinyhw.mock.memory import Refused

ERESTARTSYS: Final = 512  # linux/errno.h: the kernel's own, no program sees it
SOON_S: Final = 20e-6  # between two looks at doorbells while there is something to do
LATER_S: Final = 1e-3  # and at most
RESTED_S: Final = 2e-3  # without anything to do, after which looks become rarer
SIGNALS_S: Final = 10e-3  # between two looks for signals of threads that wait
FRESH_S: Final = 20e-3  # for so long a thread's number is taken to be still its own
NOBODY_S: Final = 0.2  # where no device is open


class Parked(Protocol):
  """A call that waits for the device."""

  def poll(self, now: float) -> int | None:
    """What the call returns, None while it waits."""

  def interrupted(self) -> None:
    """A signal comes: the call will be made again, or fail with EINTR."""

  def end(self) -> None:
    """It waits no more, for whatever reason."""


class Device(Protocol):
  """What a vendor's machine is to programs."""
  tree: Tree
  types: tuple[int, ...]

  def open(self, client: Client, node: str) -> tuple[int, Callable[[], None]]:
    """Open a device node: a descriptor, and what is to be called when the client has it. Raises OSError."""

  def file(self, client: Client, fd: int) -> Any:
    """What a client's descriptor is of; None for those that are not the device's."""

  def node_of(self, file: Any) -> str | None:
    """The device node that a file is of; None for others."""

  def ioctl(self, client: Client, call: TrappedCall, file: Any, request: int, address: int) -> int | Parked:
    """An ioctl on one of the device's files; raises OSError."""

  def go_on(self, called: Callable[[], bool]) -> bool:
    """Look at doorbells and let queues run for a while, at most until somebody calls. Whether there was work."""

  def watches(self) -> bool:
    """Whether there are doorbells to look at."""

  def ended(self, client: Client) -> None:
    """The process has ended."""

  def replaced(self, client: Client) -> None:
    """Another program runs in the process: its memory is gone."""


@dataclass(eq=False)
class Client:
  """A process. `pidfd` tells of its end."""
  pid: int
  pidfd: int
  memory: ClientMemory
  execs: float = 0.0  # since when it may be becoming another program
  used: bool = False  # whether it has opened a device
  threads: dict[int, float] = field(default_factory=dict)  # each with the time when it was seen last


class Host:
  """See the module. `run` returns the program's exit status when it and all that it has started have ended."""

  def __init__(self, device: Device, started: Started, name: str, witness: Witness | None = None) -> None:
    self.device, self.started, self.name, self.witness = device, started, name, witness
    self.listener = Listener(started.listener) if witness is None else WatchedListener(started.listener, witness)
    self.calls = self.looks = 0
    self._threads: dict[int, Client] = {}
    self._clients: dict[int, Client] = {}
    self._parked: dict[int, tuple[TrappedCall, Client, Parked]] = {}
    self._rest = select.epoll()
    self._rest.register(started.told, select.EPOLLIN)
    self._called = select.poll()
    self._called.register(self.listener.fd, select.POLLIN)
    self._line = b""
    self._status: int | None = None
    self._looked = 0.0

  def used(self) -> bool:
    """Whether any program has looked for a device."""
    return self.looks > 0

  def run(self) -> int:
    """Serve until all programs have ended; the first one's exit status. Raises InvalidArgument where it is none."""
    LIBC.prctl(linux.PR_SET_TIMERSLACK, *(ctypes.c_ulong(n) for n in (1, 0, 0, 0)))  # sleeps of 20 us are that long
    listener, device, sleep, rested = self.listener.fd, self.device, SOON_S, time.monotonic()
    both = [listener, self._rest.fileno()]
    while True:
      readable, _, _ = select.select(both, [], [], sleep)
      now = time.monotonic()
      if readable:
        rested = now
        if listener in readable and not self._heard(): break
        if both[1] in readable: self._others()
      if device.go_on(self._somebody_calls): rested = now
      if self._parked: self._answer(now)
      if not device.watches(): sleep = SIGNALS_S if self._parked else NOBODY_S
      else: sleep = min(LATER_S, max(SOON_S, (now - rested - RESTED_S) / 8))
    self._all_gone()
    while self._status is None: self._told()
    return self._status

  def _somebody_calls(self) -> bool: return bool(self._called.poll(0))

  # ---- what the host hears

  def _heard(self) -> bool:
    """Take and answer a call. False where nobody can call any more."""
    for _, events in self._called.poll(0):
      if events & select.POLLIN:
        call = self.listener.receive()
        if call is not None: self._serve(call)
      elif events & (select.POLLHUP | select.POLLERR): return False
    return True

  def _others(self) -> None:
    for fd, _ in self._rest.poll(0):
      if fd == self.started.told: self._told()
      elif (client := next((c for c in self._clients.values() if c.pidfd == fd), None)) is not None: self._gone(client)

  def _told(self) -> None:
    """The guard tells of the program."""
    data = os.read(self.started.told, 4096)
    if not data:  # the guard is gone, and the program with it
      if self._status is None: self._status = 128 + signal.SIGKILL
      self._rest.unregister(self.started.told)
      kill_filtered()
      return
    *lines, self._line = (self._line + data).split(b"\n")
    for line in lines:
      status = ended(line.decode(), self.name)
      if status is not None: self._status = status

  def _gone(self, client: Client) -> None:
    self._rest.unregister(client.pidfd)
    os.close(client.pidfd)
    del self._clients[client.pid]
    for thread in client.threads: self._threads.pop(thread, None)
    for key, (_, owner, parked) in list(self._parked.items()):
      if owner is client:
        parked.end()
        del self._parked[key]
    if client.used:
      if self.witness is not None: self.witness.ending(client)
      self.device.ended(client)

  def _all_gone(self) -> None:
    for client in list(self._clients.values()): self._gone(client)

  def _client(self, call: TrappedCall) -> Client | None:
    """The process of a call's thread; None where it has ended."""
    thread = call.thread
    client, now = self._threads.get(thread), time.monotonic()
    if client is not None and (now - client.threads[thread] < FRESH_S
                               or os.path.exists(f"/proc/{client.pid}/task/{thread}")):
      client.threads[thread] = now
      return client
    try:
      with open(f"/proc/{thread}/status") as file: pid = next(int(li[5:]) for li in file if li.startswith("Tgid:"))
      client = self._clients.get(pid)
      if not self.listener.waits(call): return None  # what stands in /proc is another's
      if client is None:
        client = self._clients[pid] = Client(pid, os.pidfd_open(pid), ClientMemory(pid))
        self._rest.register(client.pidfd, select.EPOLLIN)
    except (OSError, StopIteration): return None
    client.threads[thread] = now
    self._threads[thread] = client
    return client

  # ---- calls

  def _serve(self, call: TrappedCall) -> None:
    client = self._client(call)
    if client is None: return
    self.calls += 1
    try:
      if call.number == linux.NR_ioctl: self._ioctl(client, call)
      elif call.number in NAMES[-2:]:
        client.execs = time.monotonic()
        self.listener.go_on(call)
      elif call.number == linux.NR_fstat: self._stat_of(client, call, call.arguments[0])
      else: self._path(client, call)
    except OSError as refusal:
      self.listener.answer(call, -(refusal.errno or errno.EIO))

  def _ioctl(self, client: Client, call: TrappedCall) -> None:
    file = self.device.file(client, call.arguments[0] & 0xFFFFFFFF)
    if file is None: return self.listener.go_on(call)
    if self.witness is not None: self.witness.entered(client, call, self.device.node_of(file))
    answer = self.device.ioctl(client, call, file, call.arguments[1] & 0xFFFFFFFF, call.arguments[2])
    if isinstance(answer, int): self.listener.answer(call, answer)
    else: self._parked[call.id] = call, client, answer

  def _stat_of(self, client: Client, call: TrappedCall, fd: int) -> None:
    """fstat and its kin."""
    file, tree = self.device.file(client, fd & 0xFFFFFFFF), self.device.tree
    node = None if file is None else self.device.node_of(file)
    if node is None: self.listener.go_on(call)
    else: self.listener.answer(call, tree.stat(call, client.memory, tree.folder + node))

  def _path(self, client: Client, call: TrappedCall) -> None:
    a, memory, tree = call.arguments, client.memory, self.device.tree
    folder, at = PATHS[call.number]
    try: path = memory.text(a[at])
    except Refused: return self.listener.go_on(call)  # the kernel knows what to say
    beside = a[folder] & 0xFFFFFFFF if folder is not None else linux.AT_FDCWD
    if not path:
      if call.number in STATS and folder is not None: return self._stat_of(client, call, beside)
      return self.listener.go_on(call)
    place = tree.serves(path)
    if place is None and path[:1] != b"/" and beside != linux.AT_FDCWD:
      with contextlib.suppress(OSError):
        above = os.readlink(f"/proc/{client.pid}/fd/{beside}")
        if above.startswith(tree.folder): place = f"{above}/{os.fsdecode(path)}"
    if place is None: return self.listener.go_on(call)
    self.looks += 1
    if call.number in OPENS: return self._open(client, call, place)
    number = call.number
    if number in STATS: value = tree.stat(call, memory, place)
    elif number in (linux.NR_readlink, linux.NR_readlinkat): value = tree.readlink(memory, place, a[at + 1], a[at + 2])
    elif number in ATTRIBUTES: value = -errno.EOPNOTSUPP if os.path.lexists(place) else -errno.ENOENT
    else: value = tree.access(place, a[at + 1])
    self.listener.answer(call, value)

  def _open(self, client: Client, call: TrappedCall, place: str) -> None:
    flags, tree = flags_of(call, client.memory), self.device.tree
    node = tree.node(place)
    if node is None or flags & getattr(os, "O_PATH", 0):
      fd = tree.opened(place, flags)
      try: self.listener.give(call, fd, bool(flags & os.O_CLOEXEC))
      finally: os.close(fd)
      return
    if flags & os.O_DIRECTORY: raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if client.used: self._replaced(client)
    client.execs = 0.0  # it has become what it is
    if self.witness is not None: self.witness.entered(client, call, None)
    fd, has = self.device.open(client, node)
    client.used = True
    try:
      if self.listener.give(call, fd, bool(flags & os.O_CLOEXEC)) >= 0: has()
    finally: os.close(fd)

  # ---- what takes time

  def _answer(self, now: float) -> None:
    """Answer those calls that wait no more."""
    look = now - self._looked >= SIGNALS_S
    if look: self._looked = now
    for key, (call, _, parked) in list(self._parked.items()):
      try: value = parked.poll(now)
      except OSError as refusal: value = -(refusal.errno or errno.EIO)
      if value is None and look:
        if not self.listener.waits(call): value = 0  # the thread is gone
        elif signalled(call.thread):
          with contextlib.suppress(OSError): parked.interrupted()  # its process may be ending, without its memory
          value = -ERESTARTSYS
      if value is None: continue
      del self._parked[key]
      parked.end()
      self.listener.answer(call, value)
    if look:
      for client in self._clients.values():
        if client.used and client.execs: self._replaced(client)

  def _replaced(self, client: Client) -> None:
    """See whether a client that may have become another program has; then its memory on GPUs is gone."""
    if not client.execs: return
    try: there = holds(client.pid)
    except OSError: return
    if there:
      if time.monotonic() - client.execs > 1: client.execs = 0.0  # it could not be run
      return
    client.execs, client.used = 0.0, False
    if self.witness is not None: self.witness.ending(client)
    self.device.replaced(client)

  def close(self) -> None:
    """Take down all that runs, and let go of it."""
    self._all_gone()
    self.listener.close()
    self._rest.close()
    self.started.close()


MARK: Final = "tinyhw-"


def holds(pid: int) -> bool:
  """Whether a process has memory or files of a device. Raises OSError where it has ended."""
  with open(f"/proc/{pid}/maps") as file:
    if f"/memfd:{MARK}" in file.read(): return True
  for fd in os.listdir(f"/proc/{pid}/fd"):
    with contextlib.suppress(OSError):
      if os.readlink(f"/proc/{pid}/fd/{fd}").startswith(f"/memfd:{MARK}"): return True
  return False


def signalled(thread: int) -> bool:
  """Whether a signal waits for a thread that it does not block."""
  try:
    with open(f"/proc/{thread}/status") as file:
      rows = dict(line.split(":", 1) for line in file if line.startswith(("SigPnd", "ShdPnd", "SigBlk", "SigIgn")))
  except OSError: return False
  pending, shared, blocked, ignored = (int(rows[name], 16) for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn"))
  return bool((pending | shared) & ~blocked & ~ignored)
