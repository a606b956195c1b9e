"""Files that tinyhw writes for itself: compiled code by a digest of what it was made from, and the folders they are in.

What lies in a store is executed, so folders and files are the user's alone (`own_folder`, `read_own`): owner, mode
and kind are asked of what was opened, never of a path, and links are not followed. A file is a line that names the
format, the SHA-256 of its key and of all that follows, the length of a JSON header, the header and the code; what is
not exactly what was written is not there. Files appear whole (written beside, then renamed), so processes share a
folder. The oldest go when it grows beyond its limit: files of a store's own names, in a folder that a store has made
and marked, and nothing else.
"""
from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any, Final

FORMAT: Final = b"tinyhw compiled code 2\n"
LIMIT: Final = 256 << 20  # bytes in the folder
LARGEST: Final = 64 << 20  # bytes of one file
SELDOM: Final = 256  # of so many saves one looks through the folder, which takes long where there are many files
SUFFIX: Final = ".tinyhw"
MARK_NAME: Final = "CACHEDIR.TAG"  # the Cache Directory Tagging Specification: programs that make backups leave it out
MARK: Final = b"""Signature: 8a477f597d28d172789f06886806bc55
# tinyhw made this folder: it keeps compiled code here, and removes what is oldest.
"""
_KEY: Final = re.compile(r"[0-9A-Za-z_-]{1,200}")
_NAME: Final = re.compile(rf"\.?{_KEY.pattern}{re.escape(SUFFIX)}")  # with a dot: not written to its end yet
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TOLD: Final[set[str]] = set()
Entry = tuple[dict[str, Any], bytes]


def is_own(found: os.stat_result) -> bool:
  """Whether nobody but this user (and root) could have written what was found."""
  return found.st_uid == os.geteuid() and not found.st_mode & 0o022


@contextmanager
def own_folder(path: Path) -> Iterator[int]:
  """A folder of the user's alone, opened. Raises OSError: it is not there, is no folder, or is not the user's alone."""
  handle = os.open(path, _FOLDER)
  try:
    if not is_own(os.fstat(handle)): raise PermissionError(errno.EPERM, "others may write there", str(path))
    yield handle
  finally: os.close(handle)


def make_own_folder(path: Path) -> None:
  """Have a folder of the user's alone, and what lies above it, under any umask. A home that does not exist is not made:
  who has none is to leave nothing behind. Raises OSError."""
  if not path.is_absolute(): raise FileNotFoundError(errno.ENOENT, "there is no home folder", str(path))
  missing = [p for p in (path, *path.parents) if not p.exists()]
  if (home := Path(os.path.expanduser("~"))) in missing:
    raise FileNotFoundError(errno.ENOENT, "the home folder does not exist", str(home))
  for folder in reversed(missing):
    with suppress(FileExistsError):  # another process was first
      folder.mkdir(0o700)
      folder.chmod(0o700)
  with own_folder(path): pass


def read_own(folder: int, name: str) -> bytes:
  """The bytes of a file in an open folder. Raises OSError, also for what is no file of the user's alone, or larger than
  LARGEST. It never waits: a FIFO of that name is no file."""
  handle = os.open(name, _READ, dir_fd=folder)
  with os.fdopen(handle, "rb", buffering=0) as file:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or not is_own(found) or found.st_size > LARGEST:
      raise PermissionError(errno.EPERM, "no file of this user's alone", name)
    data = file.read(LARGEST)
    with suppress(OSError): os.utime(handle)  # the last use decides what goes first
  return data or b""


def write_own(folder: int, name: str, data: bytes, mode: int = 0o600) -> None:
  """Write a file in an open folder: it appears whole, in place of what has its name, or not at all. Raises OSError."""
  beside = f".{os.urandom(8).hex()}{SUFFIX}"
  handle = os.open(beside, _NEW, mode, dir_fd=folder)
  try:
    with os.fdopen(handle, "wb", buffering=0) as file:
      os.fchmod(handle, mode)
      left = memoryview(data)
      while left: left = left[file.write(left):]
    os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
  except BaseException:
    with suppress(OSError): os.unlink(beside, dir_fd=folder)
    raise


class Store:
  """The folder, or nothing where none can be used: then nothing is found and nothing is kept."""

  def __init__(self, folder: Path | None) -> None: self.folder = folder

  def load(self, key: str) -> Entry | None:
    """(header, object) as it was saved under this key."""
    if self.folder is None: return None
    try:
      with own_folder(self.folder) as folder: data = read_own(folder, _name(key))
    except OSError: return None
    return _unpacked(key, data)

  def holds(self, key: str) -> bool:
    """Whether there is a file of this key."""
    if self.folder is None: return False
    try: found = os.lstat(self.folder / _name(key))
    except OSError: return False
    return stat.S_ISREG(found.st_mode) and is_own(found)

  def save(self, key: str, header: dict[str, Any], code: bytes) -> None:
    """Keep an object with its header; a folder that cannot be written keeps nothing."""
    if self.folder is None: return
    text = json.dumps(header, separators=(",", ":")).encode()
    rest = len(text).to_bytes(8, "little") + text + code
    digest = _digest(key, rest)
    data = FORMAT + digest + rest
    if len(data) > LARGEST: return
    try:
      with own_folder(self.folder) as folder:
        write_own(folder, _name(key), data)
        if digest[0] % SELDOM == 0: _trim(folder)
    except OSError: return


def _name(key: str) -> str:
  if not _KEY.fullmatch(key): raise ValueError(f"{key!r} is no key")
  return key + SUFFIX


def _digest(key: str, rest: bytes) -> bytes: return hashlib.sha256(key.encode() + b"\0" + rest).digest()


def _unpacked(key: str, data: bytes) -> Entry | None:
  """The parts of a file; None when it is not exactly what was written under this key."""
  at = len(FORMAT)
  rest = data[at + 32:]
  if data[:at] != FORMAT or _digest(key, rest) != data[at:at + 32]: return None
  size = int.from_bytes(rest[:8], "little")
  try: header = json.loads(rest[8:8 + size])
  except ValueError: return None
  return (header, rest[8 + size:]) if isinstance(header, dict) else None


def _trim(folder: int) -> None:
  """Remove the oldest files of a store beyond its limit. Others may be at it too."""
  if not _marked(folder): return
  files = []
  with os.scandir(folder) as found:
    for e in found:
      if not _NAME.fullmatch(e.name): continue
      with suppress(FileNotFoundError):
        if e.is_file(follow_symlinks=False): files.append((e.stat(follow_symlinks=False), e.name))
  total = sum(s.st_size for s, _ in files)
  for s, name in sorted(files, key=lambda f: f[0].st_mtime):
    if total <= LIMIT: break
    with suppress(FileNotFoundError): os.unlink(name, dir_fd=folder)
    total -= s.st_size


def _marked(folder: int) -> bool:
  try: return read_own(folder, MARK_NAME) == MARK
  except OSError: return False


def _mark(path: Path) -> None:
  """Mark a folder as a store's, where it is empty or holds a store's files alone. Raises OSError for another's."""
  with own_folder(path) as folder:
    if _marked(folder): return
    names = set(os.listdir(folder))
    if all(map(_NAME.fullmatch, names)): write_own(folder, MARK_NAME, MARK)
    elif not (MARK_NAME in names and _marked(folder)):  # another process may have been first
      raise FileExistsError(errno.EEXIST, "tinyhw did not make this folder", str(path))


@cache
def store_in(wanted: str | None, name: str, usual: Callable[[], Path]) -> Store:
  """The store of this name in the folder `wanted`; "0" for none, None for the usual folder. Where there can be none,
  it is told once why."""
  if wanted == "0": return Store(None)
  folder = (Path(wanted) if wanted else usual()) / name
  try:
    if wanted: folder = folder.absolute()  # the process may go elsewhere
    make_own_folder(folder)
    _mark(folder)
  except (OSError, ValueError) as error:  # ValueError: a NUL in the path
    why = f"{error.filename or folder}: {error.strerror}" if isinstance(error, OSError) else f"{folder}: {error}"
    _tell(f"tinyhw: compiled code is not kept: {why}; TINYHW_CACHE=FOLDER says where it may be, TINYHW_CACHE=0 nowhere")
    return Store(None)
  return Store(folder)


def _tell(text: str) -> None:
  if text in _TOLD or sys.stderr is None: return
  _TOLD.add(text)
  with suppress(OSError, ValueError): print(text, file=sys.stderr)  # it may be closed


@cache
def sources_digest(patterns: Sequence[str]) -> bytes:
  """Changes with every change of these source files of the package: of what decides the compiled code on our side.
  Raises FileNotFoundError where a pattern has no file, for then a file that has moved would change nothing."""
  root = os.path.dirname(os.path.dirname(__file__))
  digest = hashlib.sha256()
  for pattern in patterns:
    names = sorted(glob(pattern, root_dir=root, recursive=True))
    if not names: raise FileNotFoundError(f"no source file of tinyhw is named {pattern}")
    for name in names:
      with open(os.path.join(root, name), "rb", buffering=0) as file: digest.update(name.encode() + file.read())
  return digest.digest()
