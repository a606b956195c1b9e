"""/dev/kfd and render nodes for programs in other processes: what `mock.clients.host` asks of a device.

Which file a client's descriptor is of is read from /proc each time, for programs copy, close and inherit descriptors
without a call that comes here: /dev/kfd is a file of its own for each process, render nodes are one file, in which each
open has a place (`lseek`) that copies of its descriptor share.
"""
from __future__ import annotations

import ctypes
import errno
import itertools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tinyhw.autogen import kfd
from tinyhw.core.environment import digits
from tinyhw.core.errors import OutOfMemory, Unsupported
from tinyhw.core.ioctl import Request, split
from tinyhw.mock.amd.broken import may_fail
from tinyhw.mock.amd.chip.aql import NO_DOORBELL
from tinyhw.mock.amd.chip.queue import Queue, State
from tinyhw.mock.amd.driver import drm
from tinyhw.mock.amd.driver.events import TIMEOUT_INFINITE, Waiting
from tinyhw.mock.amd.driver.process import OpenFile
from tinyhw.mock.amd.hosted.files import CARD_PATH, KFD_PATH, RENDER_PATH, tree_of
from tinyhw.mock.amd.hosted.machine import HostedMachine, HostedPlaces
from tinyhw.mock.amd.hosted.user import UserCopy
from tinyhw.mock.clients.host import MARK, Client, Parked
from tinyhw.mock.clients.listener import Listener, TrappedCall
from tinyhw.mock.memory import Refused

KFD_TYPE: Final = split(kfd.AMDKFD_IOC_GET_VERSION).group
TURNS: Final = 256  # of queues, behind which the host looks for calls at the latest
_LINK: Final = f"/memfd:{MARK}"
_WAIT: Final = ctypes.sizeof(kfd.kfd_ioctl_wait_events_args)
_EVENTS: Final = split(kfd.AMDKFD_IOC_WAIT_EVENTS).number


class AmdDevice:
  """See the module. `listener` is set before the first call comes."""

  types: tuple[int, ...] = KFD_TYPE, drm.DRM_TYPE
  listener: Listener

  def __init__(self, machine: HostedMachine, folder: str) -> None:
    self.machine = machine
    self.tree = tree_of(machine, folder)
    self._serials = itertools.count(1)
    self._files: dict[str, OpenFile] = {}  # by what tells it: the file's name, or its place
    self._call: TrappedCall | None = None
    self._requests: dict[int, Request] = {}  # taken apart
    self._bells: list[tuple[Queue, memoryview, int]] = []
    self._seen: list[int] = []  # of each doorbell
    self._known: list[Queue] = []
    self.rung: Callable[[], None] | None = None  # hears of doorbells before queues do
    machine.file_of = self._file
    machine.given = self._give

  # ---- files

  def _name(self, pid: int, fd: int) -> str | None:
    """What tells a descriptor's open file; None for those of others."""
    try: link = os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError: return None
    if not link.startswith(_LINK): return None
    name = link[len(_LINK):].partition(" ")[0]
    if name != "gpus": return name
    try:
      with open(f"/proc/{pid}/fdinfo/{fd}") as file: return f"gpus {int(file.readline().split()[1])}"
    except (OSError, ValueError, IndexError): return None

  def _file(self, pid: int, fd: int) -> OpenFile | None:
    name = self._name(pid, fd)
    return None if name is None else self._files.get(name)

  def file(self, client: Client, fd: int) -> OpenFile | None: return self._file(client.pid, fd)

  def node_of(self, file: OpenFile) -> str | None:
    if file.kind == "dmabuf": return None
    return KFD_PATH if file.gpu is None else f"{RENDER_PATH}{128 + file.gpu.index}"

  def open(self, client: Client, node: str) -> tuple[int, Callable[[], None]]:
    machine, pid = self.machine, client.pid
    with machine.lock:
      if node == KFD_PATH:
        places = machine.kfd.process(pid).places
        assert isinstance(places, HostedPlaces)
        fd = os.open(f"/proc/self/fd/{places.kfd}", os.O_RDWR | os.O_CLOEXEC)
        name, file = os.readlink(f"/proc/self/fd/{fd}")[len(_LINK):].partition(" ")[0], OpenFile(-1, "kfd", pid)
        file = self._files.get(name, file)
      else:
        render = node.startswith(RENDER_PATH)
        number = node[len(RENDER_PATH if render else CARD_PATH):]
        assert digits(number)
        gpu = machine.gpus[int(number) - 128 * render]
        fd = os.open(f"/proc/self/fd/{machine.file}", os.O_RDWR | os.O_CLOEXEC)
        place = next(self._serials)
        os.lseek(fd, place, os.SEEK_SET)
        name, file = f"gpus {place}", OpenFile(-1, "render", pid, gpu)
    def has() -> None: self._files[name] = file
    return fd, has

  def _give(self, file: OpenFile, fd: int) -> int:
    """A client that is being served gets a dma-buf."""
    assert self._call is not None
    number = self.listener.give(self._call, fd, True, answer=False)
    if number < 0: raise Refused(errno.EMFILE, "the process may have no more files")
    self._files[os.readlink(f"/proc/self/fd/{fd}")[len(_LINK):].partition(" ")[0]] = file
    return number

  # ---- calls

  def ioctl(self, client: Client, call: TrappedCall, file: OpenFile, request: int, address: int) -> int | Parked:
    machine = self.machine
    parts = self._requests.get(request) or self._requests.setdefault(request, split(request))
    with machine.lock:
      self._call = call
      try:
        if machine.watched: may_fail(machine, file, request)
        argument = (ctypes.c_ubyte * parts.size)()
        if parts.direction & 1 and parts.size: client.memory.fill(address, argument)
        if file.kind == "kfd" and parts.number == _EVENTS and parts.size == _WAIT and file.pid == client.pid:
          return self._wait(client, kfd.kfd_ioctl_wait_events_args.from_buffer(argument), address)
        try: value = self._called(file, request, argument, client)
        finally:
          if machine.queues != self._known: self._find_bells()  # before the client can ring
          if parts.direction & 2: client.memory.spill(address, argument)
        return value
      except (MemoryError, OutOfMemory) as short:
        raise Refused(errno.ENOMEM, f"ioctl {request:#x}: {short}") from None
      except Refused as refusal:
        machine.trace.add("kernel", "refused", f"ioctl {request:#x}: {refusal.why}",
                          errno=errno.errorcode.get(refusal.errno or 0, "?"))
        raise
      finally: self._call = None

  def _called(self, file: OpenFile, request: int, argument: Any, client: Client) -> int:
    if file.kind == "kfd": return self.machine.kfd.ioctl(file, request, argument, client.pid)
    if file.kind == "dmabuf": raise Refused(errno.ENOTTY, "a dma-buf has no such ioctl here")
    return drm.ioctl(self.machine, file, request, argument)

  def _wait(self, client: Client, args: Any, address: int) -> int | Parked:
    """WAIT_EVENTS: what has not happened yet is waited for while the machine goes on."""
    events = self.machine.kfd.process(client.pid).events
    waiting = events.begin(args.events_ptr, args.num_events, args.wait_for_all != 0)
    parked = EventWait(client, waiting, args, address)
    try: value = parked.poll(time.monotonic())
    except OSError:
      parked.end()
      raise
    if value is None: return parked
    parked.end()
    return value

  # ---- the machine

  def watches(self) -> bool: return bool(self.machine.queues)

  def go_on(self, called: Callable[[], bool]) -> bool:
    machine = self.machine
    rang, seen = False, self._seen
    for i, (queue, words, at) in enumerate(self._bells):
      value = words[at]
      if value == seen[i]: continue
      seen[i] = value
      rang = True
      if self.rung is not None: self.rung()
      if machine.watched and machine.injected.of("lost doorbell") is not None: continue
      with machine.lock: queue.ring_doorbell(value)
    copies = machine.kfd.user_buffers
    if copies and (rang or any(q.state is State.BLOCKED for q in self._known)): self._take()
    if not machine.queues or machine.idle(): return rang
    with suppress(Unsupported):  # the queue has stopped, its client is told of a hang, and the report says why
      machine.run(called, 0.0, lambda: True, most=TURNS)
    if copies: self._each_copy(UserCopy.give)
    return True

  def _take(self) -> None:
    """GPUs see what clients have stored in their own memory; what they have unmapped is gone."""
    self._each_copy(UserCopy.take)
    kfd = self.machine.kfd
    for buffer, process in kfd.user_buffers.items():
      if not buffer.gone and isinstance(buffer.backing, UserCopy) and buffer.backing.gone:
        kfd.user_memory_gone(process.pid, buffer.backing.address, buffer.backing.address + buffer.size)

  def _each_copy(self, do: Callable[[UserCopy], None]) -> None:
    for buffer in self.machine.kfd.user_buffers:
      if isinstance(buffer.backing, UserCopy) and buffer.mapped: do(buffer.backing)

  def _find_bells(self) -> None:
    """Where each queue's doorbell lies. A new queue's has not been rung."""
    seen = {id(row[0]): value for row, value in zip(self._bells, self._seen, strict=True)}
    self._known, self._bells, self._seen = list(self.machine.queues), [], []
    for queue in self._known:
      words, at = queue.device.doorbell_words, queue.doorbell // 8
      assert words is not None
      if id(queue) not in seen: words[at] = NO_DOORBELL
      self._bells.append((queue, words, at))
      self._seen.append(seen.get(id(queue), NO_DOORBELL))

  # ---- ends

  def ended(self, client: Client) -> None:
    machine = self.machine
    with machine.lock:
      for queue in machine.queues:
        if queue.process.pid == client.pid and (queue.state is State.BLOCKED or queue.standing() is not None):
          machine.found(f"{queue.describe()}; its process {client.pid} has ended meanwhile")
      for name, file in list(self._files.items()):
        if file.pid != client.pid: continue
        del self._files[name]
        if file.buffer is not None: self.machine.kfd.drop(file.buffer)
      self.machine.kfd.end_process(client.pid)
      self._find_bells()

  replaced = ended


class EventWait:
  """A WAIT_EVENTS that goes on; `address` is where its arguments lie in the client."""

  def __init__(self, client: Client, waiting: Waiting, args: Any, address: int) -> None:
    self.client, self.waiting, self.args, self.address = client, waiting, args, address
    self._until = float("inf") if args.timeout == TIMEOUT_INFINITE else time.monotonic() + args.timeout / 1e3

  def poll(self, now: float) -> int | None:
    if self.waiting.state() == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT and now < self._until: return None
    self.args.wait_result = kfd.KFD_IOC_WAIT_RESULT_FAIL
    try: self.args.wait_result = self.waiting.result()
    finally: self._tell()
    return 0

  def interrupted(self) -> None:
    """The call is made again with what is left of its time (kfd_wait_on_events)."""
    if self.args.timeout == TIMEOUT_INFINITE: return
    self.args.timeout = max(0, round((self._until - time.monotonic()) * 1e3))
    self._tell()

  def end(self) -> None: self.waiting.end()

  def _tell(self) -> None: self.client.memory.write(self.address, bytes(self.args))
