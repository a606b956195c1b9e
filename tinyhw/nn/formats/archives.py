"""The files in tar and zip archives as tensors of bytes, and a tensor of bytes as a file to read."""
from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.spelling import by_any_spelling
from tinyhw.ir.dtype import dtypes
from tinyhw.nn.formats.source import Data, File, tensor
from tinyhw.tensor.tensor import Tensor

try:
  from lzma import LZMAError
except ImportError: LZMAError = zlib.error  # type: ignore[assignment,misc]  # a Python built without it


class _Bytes(io.RawIOBase):
  """Bytes that lie in memory, as a file."""

  def __init__(self, data: memoryview) -> None:
    super().__init__()
    self._bytes, self._at = data, 0

  def readable(self) -> bool: return True
  def seekable(self) -> bool: return True

  def readinto(self, buffer: Any) -> int:
    part = self._bytes[self._at:self._at + len(buffer)]
    buffer[:len(part)] = part
    self._at += len(part)
    return len(part)

  def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
    start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._bytes)}[whence]
    self._at = min(max(start + offset, 0), len(self._bytes))
    return self._at


class TensorIO(_Bytes):
  """A vector of uint8 as a file to read; its value is read when this is made."""

  def __init__(self, t: Tensor) -> None:
    if t.ndim != 1 or t.dtype is not dtypes.uint8:
      raise InvalidArgument(f"a file of {t.dtype} of shape {t.shape}", hint="it is a vector of uint8")
    super().__init__(t.data().cast("B"))


@by_any_spelling
def tar_extract(path: Data, device: str | None = None) -> dict[str, Tensor]:
  """The regular files of a tar archive, compressed or not, by their names, as vectors of uint8."""
  file = File.of(path)
  try:
    with tarfile.open(fileobj=io.BufferedReader(_Bytes(file.data)), mode="r:*") as archive:
      return {m.name: tensor(memoryview(part.read()), dtypes.uint8, (m.size,), device)
              for m in archive if m.isreg() and (part := archive.extractfile(m)) is not None}
  except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, LZMAError) as error:
    raise file.damaged(f"no tar archive: {error}") from None


@by_any_spelling
def zip_extract(path: Data, device: str | None = None) -> dict[str, Tensor]:
  """The files of a zip archive by their names, as vectors of uint8."""
  file = File.of(path)
  try:
    with zipfile.ZipFile(io.BufferedReader(_Bytes(file.data))) as archive:
      return {m.filename: tensor(memoryview(archive.read(m)), dtypes.uint8, (m.file_size,), device)
              for m in archive.infolist() if not m.filename.endswith("/")}
  except (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, zlib.error, LZMAError) as error:
    raise file.damaged(f"no zip archive: {error}") from None
