"""The bytes of a file, mapped and never changed, with cuts that are checked."""
from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from reprlib import Repr
from typing import Any, Final

from tinyhw.core.errors import DecodeError, MissingFile
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.tensor.tensor import Tensor

QUOTED: Final = 200  # letters
_QUOTE: Final = Repr()
_QUOTE.maxstring = _QUOTE.maxother = QUOTED
_QUOTE.maxlist = _QUOTE.maxtuple = 16
Data = str | os.PathLike[str] | bytes | bytearray | memoryview | Tensor


@dataclass(frozen=True)
class File:
  """Bytes and what to call them."""
  data: memoryview
  name: str

  @staticmethod
  def of(source: Data) -> File:
    """A file by its path, mapped; bytes, or those of a tensor, as they are."""
    if isinstance(source, Tensor):
      if source.dtype is not dtypes.uint8: source = source.bitcast(dtypes.uint8)
      return File(source.data().cast("B"), f"the tensor on {source.device}")
    if isinstance(source, (bytes, bytearray, memoryview)): return File(memoryview(source).cast("B"), "the data")
    path = os.fspath(source)
    try:
      with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return File(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""), str(path))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
      raise MissingFile(f"{path!r} cannot be read: {error}" if isinstance(error, ValueError) else
                        f"{path} cannot be read: {error.strerror or error}") from None

  def damaged(self, what: str, hint: str | None = None) -> DecodeError:
    """The error that says what is wrong with this file."""
    return DecodeError(what, where=self.name, hint=hint)

  def cut(self, start: int, size: int, what: str) -> memoryview:
    """Bytes start..start+size, which must be in the file."""
    if start < 0 or size < 0 or start + size > len(self.data):
      raise self.damaged(f"{what} is {size:,} bytes at {start:,}, and the file has {len(self.data):,}")
    return self.data[start:start + size]


def shown(value: Any) -> str:
  """What a file says, as an error quotes it: a name may be as long as the file, and a list as deep."""
  return _QUOTE.repr(value)


def tensor(raw: memoryview, dtype: DType, shape: tuple[int, ...], device: str | None) -> Tensor:
  """The elements in row-major order, as little-endian bytes, on a device. Any byte but 0 is True."""
  if not raw.nbytes: return Tensor.full(shape, 0, device=device, dtype=dtype)
  if dtype is dtypes.bool: return Tensor(raw, device=device).ne(0).reshape(shape)
  return Tensor(raw, device=device, dtype=dtype).reshape(shape)
