"""Which system calls of a program come to its host: a filter of seccomp, and the listener that tells of them.

Calls that name files come always, and ioctl where the request's type is one of the devices'. All else, and all other
ioctls, run at full speed: the filter is some comparisons of numbers. mmap, read and close need no telling, for a device
is a file of real memory. The filter holds for all that the program starts, and can never be taken off.
"""
from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Collection, Sequence
from typing import Any, Final

from tinyhw.autogen import linux_trace as linux
from tinyhw.core.errors import DeviceError

LIBC: Final = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
NAMES: Final = (linux.NR_open, linux.NR_openat, linux.NR_openat2, linux.NR_stat, linux.NR_lstat, linux.NR_fstat,
                linux.NR_newfstatat, linux.NR_statx, linux.NR_access, linux.NR_faccessat, linux.NR_faccessat2,
                linux.NR_readlink, linux.NR_readlinkat, linux.NR_getxattr, linux.NR_lgetxattr, linux.NR_listxattr,
                linux.NR_llistxattr, linux.NR_execve, linux.NR_execveat)
"""Calls that name files, or begin another program."""

Instruction = tuple[int, int, int, int]  # code, jump when true, jump when false, operand


def program(numbers: Collection[int], types: Collection[int]) -> list[Instruction]:
  """The filter: calls of these numbers, and ioctls whose requests are of these types, wait for the listener.

  A call by another architecture's numbers (32-bit programs) runs as it is.
  """
  load, jump = linux.BPF_LD | linux.BPF_W | linux.BPF_ABS, linux.BPF_JMP | linux.BPF_JEQ | linux.BPF_K
  mask, give = linux.BPF_ALU | linux.BPF_AND | linux.BPF_K, linux.BPF_RET | linux.BPF_K
  places: Any = linux.seccomp_data
  numbers, types = sorted(numbers), sorted(types)
  # Jumps count from the instruction behind: ALLOW and NOTIFY are the last two.
  rows: list[tuple[int, str, str, int]] = [
    (load, "", "", places.arch.offset), (jump, "", "allow", linux.AUDIT_ARCH_X86_64),
    (load, "", "", places.nr.offset), *((jump, "tell", "", n) for n in numbers),
    (jump, "", "allow", linux.NR_ioctl), (load, "", "", places.args.offset + 8),
    (mask, "", "", linux._IOC_TYPEMASK << linux._IOC_TYPESHIFT),
    *((jump, "tell", "", t << linux._IOC_TYPESHIFT) for t in types),
    (give, "", "", linux.SECCOMP_RET_ALLOW), (give, "", "", linux.SECCOMP_RET_USER_NOTIF)]
  at = {"allow": len(rows) - 2, "tell": len(rows) - 1}
  return [(code, at[yes] - i - 1 if yes else 0, at[no] - i - 1 if no else 0, operand)
          for i, (code, yes, no, operand) in enumerate(rows)]


def install(instructions: Sequence[Instruction]) -> int:
  """Have the filter hold for this thread and all that it starts from here on; the listener's descriptor.

  Raises OSError where the system does not let it: EBUSY where another listener listens already.
  """
  code = (linux.sock_filter * len(instructions))(*(linux.sock_filter(*row) for row in instructions))
  holder = linux.sock_fprog(len(instructions), ctypes.addressof(code))
  zero = ctypes.c_ulong(0)
  if LIBC.prctl(linux.PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero): raise failed()
  listens = linux.SECCOMP_FILTER_FLAG_NEW_LISTENER
  for flags in (listens | linux.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listens):  # the first is of Linux 5.19
    fd = int(LIBC.syscall(ctypes.c_long(linux.NR_seccomp), ctypes.c_ulong(linux.SECCOMP_SET_MODE_FILTER),
                          ctypes.c_ulong(flags), ctypes.byref(holder)))
    if fd >= 0: return fd
    if ctypes.get_errno() != errno.EINVAL: break
  raise failed()


def failed() -> OSError:
  """What the last function of the C library failed with."""
  code = ctypes.get_errno()
  return OSError(code, os.strerror(code))


def need_linux(where: str) -> None:
  """Raises DeviceError where calls have other numbers."""
  if sys.platform != "linux" or platform.machine() != "x86_64":
    raise DeviceError("programs in other processes are served on x86-64 Linux alone", where=where)
