"""Files that somebody asked for: what cannot be written is told by its name, which the system's own error of a write
does not have."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tinyhw.core.errors import InvalidArgument


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
  """For the block that writes a file. Raises InvalidArgument, which names it, where that cannot be."""
  try: yield
  except OSError as error: raise unwritten(path, error) from None


def unwritten(path: str | os.PathLike[str], error: OSError) -> InvalidArgument:
  """The error of a file that cannot be written."""
  return InvalidArgument(f"cannot be written: {error.strerror or error}", where=os.fspath(path))


def save(path: str | os.PathLike[str], data: str | bytes) -> None:
  """Write a file, a text as UTF-8. Raises as `writing`."""
  with writing(path):
    if isinstance(data, str): Path(path).write_text(data, encoding="utf-8")
    else: Path(path).write_bytes(data)
