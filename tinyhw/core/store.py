"""Compiled code on disk, by a digest of what it was made from; a file that is not exactly what was written is ignored.

A file is a line that names the format, the SHA-256 of all that follows, the length of a JSON header, the header and the
code. The folder is the user's alone, since what lies there is executed. Files appear whole (written beside,
then renamed), so processes can share the folder; the oldest go when it grows beyond its limit.
"""
from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any, Final

FORMAT: Final = b"tinyhw compiled code 1\n"
LIMIT: Final = 256 << 20  # bytes in the folder
LARGEST: Final = 64 << 20  # bytes of one file
SELDOM: Final = 256  # of so many saves one looks through the folder, which takes long where there are many files
Entry = tuple[dict[str, Any], bytes]


class Store:
  """The folder, or nothing where none can be used: then nothing is found and nothing is kept."""

  def __init__(self, folder: Path | None) -> None: self.folder = folder

  def load(self, key: str) -> Entry | None:
    """(header, object) as it was saved under this key."""
    if self.folder is None: return None
    path = self.folder / key
    try:
      with path.open("rb") as file: data = file.read(LARGEST + 1)
      os.utime(path)  # the last use decides what goes first
    except OSError: return None
    return _unpacked(data)

  def holds(self, key: str) -> bool:
    """Whether there is a file of this key."""
    return self.folder is not None and (self.folder / key).is_file()

  def save(self, key: str, header: dict[str, Any], code: bytes) -> None:
    """Keep an object with its header; a folder that cannot be written keeps nothing."""
    if self.folder is None: return
    text = json.dumps(header, separators=(",", ":")).encode()
    rest = len(text).to_bytes(8, "little") + text + code
    digest = hashlib.sha256(rest).digest()
    data = FORMAT + digest + rest
    if len(data) > LARGEST: return
    try:
      handle, beside = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".tmp")
      try:
        with os.fdopen(handle, "wb") as file: file.write(data)
        os.replace(beside, self.folder / key)
      except BaseException:
        os.unlink(beside)
        raise
      if digest[0] % SELDOM == 0: self._trim()
    except OSError: return

  def _trim(self) -> None:
    assert self.folder is not None
    with os.scandir(self.folder) as found: files = [(e.stat(), e.path) for e in found if e.is_file()]
    total = sum(s.st_size for s, _ in files)
    for stat, path in sorted(files, key=lambda f: f[0].st_mtime):
      if total <= LIMIT: break
      os.unlink(path)
      total -= stat.st_size


def _unpacked(data: bytes) -> Entry | None:
  """The parts of a file; None when it is not exactly what was written."""
  at = len(FORMAT)
  rest = data[at + 32:]
  if data[:at] != FORMAT or hashlib.sha256(rest).digest() != data[at:at + 32]: return None
  size = int.from_bytes(rest[:8], "little")
  try: header = json.loads(rest[8:8 + size])
  except ValueError: return None
  return (header, rest[8 + size:]) if isinstance(header, dict) else None


@cache
def store_in(wanted: str | None, name: str, usual: Callable[[], Path]) -> Store:
  """The store of this name in the folder `wanted`; "0" for none, None for the usual folder."""
  if wanted == "0": return Store(None)
  folder = (Path(wanted) if wanted else usual()) / name
  try:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stat = folder.stat()
  except OSError: return Store(None)
  private = stat.st_uid == os.getuid() and not stat.st_mode & 0o022  # others could plant code that we would run
  return Store(folder if private else None)


@cache
def sources_digest(patterns: Sequence[str]) -> bytes:
  """Changes with every change of these source files: of what decides the compiled code on our side."""
  import tinyhw
  root = os.path.dirname(tinyhw.__file__)
  digest = hashlib.sha256()
  for pattern in patterns:
    for name in sorted(glob(pattern, root_dir=root, recursive=True)):
      with open(os.path.join(root, name), "rb", buffering=0) as file: digest.update(name.encode() + file.read())
  return digest.digest()
