"""The files that clients see in the place of the system's: device nodes, sysfs and procfs, in a real folder.

A folder of temporary files has what sysfs would have, with relative links inside of it alone. A client's call that
names a file below one of `prefixes` is made on the folder's; a descriptor that it gets so is a real one, and so are all
calls on that. Device nodes are empty files there: `stat` says that they are devices, and opening one is the vendor's.
"""
from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from tinyhw.autogen import linux_trace as linux
from tinyhw.mock.clients.filter import LIBC
from tinyhw.mock.clients.listener import TrappedCall
from tinyhw.mock.clients.memory import ClientMemory
from tinyhw.mock.memory import Refused

HERE: Final = ctypes.c_int(linux.AT_FDCWD).value
_STAT, _STATX = ctypes.sizeof(linux.stat), ctypes.sizeof(linux.statx)


@dataclass
class Tree:
  """See the module. `nodes` are the device nodes, each with its numbers; `prefixes` the paths that are served."""
  folder: str
  prefixes: tuple[bytes, ...] = ()
  nodes: dict[str, tuple[int, int]] = field(default_factory=dict)
  live: dict[str, Callable[[], bytes]] = field(default_factory=dict)  # by its place, what a file says when it is opened

  @cached_property
  def _live_names(self) -> frozenset[str]: return frozenset(map(os.path.basename, self.live))

  def fill(self, files: Iterable[tuple[str, bytes]], links: Iterable[tuple[str, str]], folders: Iterable[str]) -> None:
    """Make files, links (each relative to where it stands) and folders, by absolute paths; then the nodes."""
    made: set[str] = set()

    def parent(path: str) -> str:
      place = f"{self.folder}{path}"
      above = os.path.dirname(place)
      if above not in made:
        os.makedirs(above, exist_ok=True)
        made.add(above)
      return place
    for path in folders: os.makedirs(parent(path), exist_ok=True)
    for path, data in files:
      fd = os.open(parent(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
      os.write(fd, data)
      os.close(fd)
    for path, target in links: os.symlink(target, parent(path))
    for path in self.nodes:
      if not os.path.exists(parent(path)): os.mknod(parent(path), 0o666)

  def serves(self, path: bytes) -> str | None:
    """The file of the folder that a client's path means; None for the system's."""
    if path[:1] != b"/": return None
    if b"//" in path or b"/./" in path: path = path.replace(b"/./", b"/").replace(b"//", b"/")
    return self.folder + os.fsdecode(path) if path.startswith(self.prefixes) else None

  def node(self, path: str) -> str | None:
    """The device node that a file of the folder is."""
    name = path[len(self.folder):]
    return name if name in self.nodes else None

  # ---- calls

  def opened(self, path: str, flags: int) -> int:
    """Open a file that is no node; raises OSError as sysfs would."""
    if flags & os.O_ACCMODE != os.O_RDONLY or flags & os.O_TRUNC:
      os.stat(path)
      raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    if os.path.basename(path) in self._live_names and (live := self.live.get(real := os.path.realpath(path))):
      os.unlink(real)
      with open(real, "xb") as file: file.write(live())
    return os.open(path, flags & ~(os.O_CREAT | os.O_EXCL) | os.O_CLOEXEC)

  def stat(self, call: TrappedCall, memory: ClientMemory, path: str) -> int:
    """stat, lstat, fstat, newfstatat and statx of a file of the folder; 0 or an error's number, below zero."""
    a, number = call.arguments, call.number
    where = os.fsencode(path)
    extended = number == linux.NR_statx
    room = ctypes.create_string_buffer(_STATX if extended else _STAT)
    at = HERE
    if extended:
      done = LIBC.syscall(ctypes.c_long(number), ctypes.c_long(at), where,
                          ctypes.c_long(a[2] & ~linux.AT_EMPTY_PATH & 0xFFFFFFFF), ctypes.c_ulong(a[3]), room)
    else:
      flags = (a[3] & linux.AT_SYMLINK_NOFOLLOW if number == linux.NR_newfstatat else
               linux.AT_SYMLINK_NOFOLLOW if number == linux.NR_lstat else 0)
      done = LIBC.syscall(ctypes.c_long(linux.NR_newfstatat), ctypes.c_long(at), where, room, ctypes.c_long(flags))
    if done: return -ctypes.get_errno()
    numbers = self.nodes.get(path[len(self.folder):])
    if numbers is not None: _is_device(room, extended, *numbers)
    memory.write(a[4] if extended else a[2] if number == linux.NR_newfstatat else a[1], room.raw)
    return 0

  @staticmethod
  def access(path: str, mode: int) -> int:
    """access and its kin."""
    if os.access(path, mode & 7): return 0
    try: os.stat(path)
    except OSError as missing: return -(missing.errno or errno.ENOENT)
    return -errno.EACCES

  @staticmethod
  def readlink(memory: ClientMemory, path: str, address: int, size: int) -> int:
    """readlink and its kin."""
    if size <= 0: return -errno.EINVAL
    try: text = os.fsencode(os.readlink(path))[:size]
    except OSError as wrong: return -(wrong.errno or errno.EINVAL)
    memory.write(address, text)
    return len(text)


def _is_device(room: ctypes.Array[ctypes.c_char], extended: bool, major: int, minor: int) -> None:
  """Have a file's data say that it is a character device."""
  if extended:
    long: Any = linux.statx.from_buffer(room)
    long.stx_mode = stat.S_IFCHR | long.stx_mode & 0o7777
    long.stx_rdev_major, long.stx_rdev_minor = major, minor
    return
  short: Any = linux.stat.from_buffer(room)
  short.st_mode = stat.S_IFCHR | short.st_mode & 0o7777
  short.st_rdev = os.makedev(major, minor)


PATHS: Final = {  # call -> where its folder's descriptor (None: it has none) and its path stand
  linux.NR_open: (None, 0), linux.NR_openat: (0, 1), linux.NR_openat2: (0, 1), linux.NR_stat: (None, 0),
  linux.NR_lstat: (None, 0), linux.NR_newfstatat: (0, 1), linux.NR_statx: (0, 1), linux.NR_access: (None, 0),
  linux.NR_faccessat: (0, 1), linux.NR_faccessat2: (0, 1), linux.NR_readlink: (None, 0), linux.NR_readlinkat: (0, 1),
  linux.NR_getxattr: (None, 0), linux.NR_lgetxattr: (None, 0), linux.NR_listxattr: (None, 0),
  linux.NR_llistxattr: (None, 0)}
STATS: Final = frozenset((linux.NR_stat, linux.NR_lstat, linux.NR_fstat, linux.NR_newfstatat, linux.NR_statx))
ATTRIBUTES: Final = frozenset((linux.NR_getxattr, linux.NR_lgetxattr, linux.NR_listxattr, linux.NR_llistxattr))
OPENS: Final = frozenset((linux.NR_open, linux.NR_openat, linux.NR_openat2))


def flags_of(call: TrappedCall, memory: ClientMemory) -> int:
  """The flags of an open. Raises Refused where openat2's structure cannot be read."""
  a = call.arguments
  if call.number == linux.NR_open: return a[1] & 0xFFFFFFFF
  if call.number == linux.NR_openat: return a[2] & 0xFFFFFFFF
  if a[3] < 8: raise Refused(errno.EINVAL, "openat2: no structure")
  return int.from_bytes(memory.read(a[2], 8), "little") & 0xFFFFFFFF
