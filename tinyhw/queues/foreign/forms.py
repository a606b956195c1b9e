"""Which program made a file: the forms that are known, and what tells them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.queues.foreign import debugfs, devcoredump, rocgdb, umr
from tinyhw.queues.foreign.dump import Dump

# The first whose mark a text has is its form.
_TEXTS: Final[tuple[tuple[Callable[[str], bool], Callable[[str], Dump]], ...]] = (
  (devcoredump.is_one, devcoredump.read), (umr.is_one, umr.read), (rocgdb.is_one, rocgdb.read))


def read(data: bytes, path: str) -> Dump | None:
  """What a file holds; None where it is of no form that is known. Raises DecodeError for a damaged one."""
  if debugfs.ring_of(path) and not _text(data): return debugfs.read(data, path)
  text = data.decode("utf-8", "replace")
  return next((reader(text) for is_one, reader in _TEXTS if is_one(text)), None)


def _text(data: bytes) -> bool:
  """Whether the beginning is text: the three pointers of a ring are not."""
  return bool(data) and all(b in b"\t\n\r\x1b" or b >= 32 for b in data[:12])
