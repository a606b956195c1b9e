"""The end of seccomp's user notification that a host has: calls that wait, and their answers (seccomp_unotify(2))."""
from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

from tinyhw.autogen import linux_trace as linux
from tinyhw.mock.clients.filter import LIBC, failed

_SIZE: Final = ctypes.sizeof(linux.seccomp_notif)


class TrappedCall:
  """A call of a client's thread, which waits for an answer."""

  __slots__ = ("id", "thread", "number", "arguments")

  def __init__(self, id: int, thread: int, number: int, arguments: tuple[int, ...]) -> None:
    self.id, self.thread, self.number, self.arguments = id, thread, number, arguments


class Listener:
  """See the module. A call whose thread is gone meanwhile is answered to nobody, which is no error."""

  def __init__(self, fd: int) -> None:
    self.fd = fd
    sizes = linux.seccomp_notif_sizes()
    if LIBC.syscall(ctypes.c_long(linux.NR_seccomp), ctypes.c_ulong(linux.SECCOMP_GET_NOTIF_SIZES), ctypes.c_ulong(0),
                    ctypes.byref(sizes)): raise failed()
    # A newer kernel's structures may be longer: it wants room for all of them.
    self._room = ctypes.create_string_buffer(max(_SIZE, sizes.seccomp_notif))
    self._told = linux.seccomp_notif.from_buffer(self._room)
    self._blank = bytes(len(self._room))
    self._answer_room = ctypes.create_string_buffer(max(ctypes.sizeof(linux.seccomp_notif_resp),
                                                        sizes.seccomp_notif_resp))
    self._answer = linux.seccomp_notif_resp.from_buffer(self._answer_room)
    self._file = linux.seccomp_notif_addfd()
    self._id = ctypes.c_uint64()

  def receive(self) -> TrappedCall | None:
    """The next call; None where its thread is gone again."""
    self._room.raw = self._blank
    if LIBC.ioctl(self.fd, ctypes.c_ulong(linux.SECCOMP_IOCTL_NOTIF_RECV), self._room):
      if ctypes.get_errno() in (errno.ENOENT, errno.EINTR): return None
      raise failed()
    told = self._told
    return TrappedCall(told.id, told.pid, told.data.nr, tuple(told.data.args))

  def waits(self, call: TrappedCall) -> bool:
    """Whether the call still waits: else its thread's number may be another's by now."""
    self._id.value = call.id
    return not LIBC.ioctl(self.fd, ctypes.c_ulong(linux.SECCOMP_IOCTL_NOTIF_ID_VALID), ctypes.byref(self._id))

  def answer(self, call: TrappedCall, value: int) -> None:
    """The call returns a value; below zero it is an error's number."""
    self._send(call, value if value >= 0 else 0, value if value < 0 else 0, 0)

  def go_on(self, call: TrappedCall) -> None:
    """The call runs as if nobody had listened."""
    self._send(call, 0, 0, linux.SECCOMP_USER_NOTIF_FLAG_CONTINUE)

  def _send(self, call: TrappedCall, value: int, error: int, flags: int) -> None:
    answer = self._answer
    answer.id, answer.val, answer.error, answer.flags = call.id, value, error, flags
    if LIBC.ioctl(self.fd, ctypes.c_ulong(linux.SECCOMP_IOCTL_NOTIF_SEND), self._answer_room): self._gone()

  def give(self, call: TrappedCall, fd: int, close_on_exec: bool, answer: bool = True) -> int:
    """The client gets a copy of a descriptor; with `answer` that is what the call returns. Its number there.

    Raises OSError where the client may have no more files; the call still waits then.
    """
    file = self._file
    file.id, file.srcfd, file.newfd = call.id, fd, 0
    file.flags = linux.SECCOMP_ADDFD_FLAG_SEND if answer else 0
    file.newfd_flags = os.O_CLOEXEC if close_on_exec else 0
    number = int(LIBC.ioctl(self.fd, ctypes.c_ulong(linux.SECCOMP_IOCTL_NOTIF_ADDFD), ctypes.byref(file)))
    if number < 0: self._gone()
    return number

  @staticmethod
  def _gone() -> None:
    if ctypes.get_errno() not in (errno.ENOENT, errno.EINPROGRESS): raise failed()


  def close(self) -> None:
    os.close(self.fd)
