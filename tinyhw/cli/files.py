"""What commands read: files and standard input, which may be anything, and arrays of NumPy's (.npy) as data alone."""
from __future__ import annotations

import math
import os
import stat
import sys
import tokenize
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tinyhw.core.errors import InvalidArgument

LARGEST: Final = 1 << 30  # bytes of what is no file: a device may never end
_MAGIC: Final = b"\x93NUMPY"
# What NumPy raises over a head that is none: it is read as Python's text.
_NO_HEAD: Final = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError, OverflowError)


def contents(path: str | os.PathLike[str]) -> bytes:
  """The bytes of a file, or of a pipe. Raises InvalidArgument."""
  try:
    with open(path, "rb") as file:
      if stat.S_ISREG(os.fstat(file.fileno()).st_mode): return file.read()
      found = file.read(LARGEST)
  except (OSError, ValueError) as error: raise _unread(error, os.fspath(path)) from None
  if len(found) == LARGEST: raise InvalidArgument(f"does not end within {LARGEST:,} bytes", where=os.fspath(path))
  return found


def text(path: str | os.PathLike[str]) -> str:
  """The text of a file; of standard input for "-". Raises InvalidArgument."""
  try:
    if os.fspath(path) != "-": return contents(path).decode()
    return sys.stdin.read()
  except (OSError, UnicodeDecodeError) as error:
    raise _unread(error, "standard input" if os.fspath(path) == "-" else os.fspath(path)) from None


def _unread(error: OSError | ValueError, where: str) -> InvalidArgument:
  return InvalidArgument(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=where)


def load(path: str | os.PathLike[str], where: str) -> npt.NDArray[Any]:
  """The array of a file. Raises InvalidArgument: there is none, it is damaged, it holds Python's objects."""
  try:
    with open(path, "rb") as file:
      if file.read(len(_MAGIC)) != _MAGIC: raise InvalidArgument("is no .npy file", where=where)
      file.seek(0)
      try: shape, fortran, kind = _head(file)
      except _NO_HEAD: raise InvalidArgument("is no .npy file: its head cannot be read", where=where) from None
      if kind.hasobject: raise InvalidArgument("holds objects of Python, which are not read", where=where)
      size, left = math.prod(shape) * kind.itemsize, os.fstat(file.fileno()).st_size - file.tell()
      if any(type(n) is not int or n < 0 or n >> 62 for n in shape) or size > left:
        raise InvalidArgument("is damaged: its head tells of more elements than there are", where=where)
      flat = np.frombuffer(file.read(size), kind) if size else np.zeros(math.prod(shape), kind)
      return flat.reshape(shape[::-1]).T.copy() if fortran else flat.reshape(shape).copy()
  except (OSError, ValueError) as error:  # ValueError: a NUL in the path, more axes than NumPy has
    if isinstance(error, InvalidArgument): raise
    raise _unread(error, where) from None


def _head(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
  version = np.lib.format.read_magic(file)
  if version == (1, 0): return np.lib.format.read_array_header_1_0(file)
  # In 3.0 names of fields are encoded otherwise, which nobody asks for.
  if version in ((2, 0), (3, 0)): return np.lib.format.read_array_header_2_0(file)
  raise ValueError(version)
