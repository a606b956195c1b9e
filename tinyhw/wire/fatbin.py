"""Fat binaries, as nvcc puts them into programs: the same code for several targets, as PTX and as machine code.

NVIDIA documents the wrapper alone (`fatbinary_section.h`). The rest was read off what nvcc 13.0 makes of known texts.
"""
from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tinyhw.core.errors import DecodeError, Unsupported

WRAPPER_MAGIC: Final = 0x466243B1  # FATBINC_MAGIC
LINKED: Final = 2  # FATBINC_LINK_VERSION: the wrapper has a list of the fat binaries that were linked
MAGIC: Final = 0xBA55ED50
HEADER: Final = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes behind it
ENTRY: Final = struct.Struct("<HHIQIIHHIQQQQ")
PTX: Final = 1
_LZ4, _ZSTD = 0x2000, 0x8000


@dataclass(frozen=True)
class FatbinEntry:
  """The code for one target: `kind` 1 is PTX, 2 machine code; `sm` is 90 for sm_90 and sm_90a alike."""

  kind: int
  sm: int
  payload: bytes
  flags: int = 0
  length: int = 0  # bytes of the code, where `payload` is compressed

  def code(self) -> bytes:
    """The code's bytes. Raises Unsupported for a compression that this Python cannot undo."""
    data = self.payload
    if self.flags & _LZ4: data = lz4(data, self.length)
    elif self.flags & _ZSTD: data = _zstd(data)
    if self.flags & (_LZ4 | _ZSTD) and len(data) != self.length:
      raise DecodeError(f"{len(data)} bytes of code, {self.length} were told", where="fat binary")
    return data

  def text(self) -> str:
    """The PTX, of an entry that is some. Raises what `code` does, and DecodeError for what is no text."""
    return ptx_text(self.code(), "fat binary")


def ptx_text(data: bytes, where: str) -> str:
  """The PTX that something carries, without the zeros behind it. Raises DecodeError for what is no text."""
  try: return data.rstrip(b"\0").decode()
  except UnicodeDecodeError as error:
    raise DecodeError(f"its PTX has byte {data[error.start]:#x} at {error.start:#x}, which is no UTF-8",
                      where=where) from None


def entries(data: bytes) -> Iterator[FatbinEntry]:
  """What a fat binary holds, in order. Raises DecodeError for what is none, or is cut."""
  if len(data) < HEADER.size: raise DecodeError(f"{len(data)} bytes are no fat binary", where="fat binary")
  magic, version, start, size = HEADER.unpack_from(data)
  if magic != MAGIC or version != 1:
    raise DecodeError(f"magic {magic:#x}, version {version}: 1 of {MAGIC:#x} is known", where="fat binary")
  end, at = start + size, start
  if end > len(data): raise DecodeError(f"{end} bytes, of which {len(data)} are there", where="fat binary")
  while at < end:
    if at + ENTRY.size > end: raise DecodeError(f"an entry at {at} is cut", where="fat binary")
    kind, _, head, padded, packed, _, _, _, sm, _, flags, _, length = ENTRY.unpack_from(data, at)
    if head < ENTRY.size or at + head + padded > end or packed > padded:
      raise DecodeError(f"an entry at {at} of {head} + {padded} bytes leaves it", where="fat binary")
    yield FatbinEntry(kind, sm, data[at + head:at + head + (packed or padded)], flags, length)
    at += head + padded


def size_of(head: bytes) -> int:
  """The bytes of a fat binary, by its header. Raises DecodeError where that is cut."""
  if len(head) < HEADER.size: raise DecodeError(f"{len(head)} bytes are no fat binary", where="fat binary")
  _, _, start, size = HEADER.unpack_from(head)
  return int(start + size)


def lz4(data: bytes, length: int) -> bytes:
  """A block of LZ4 undone; `length` is what comes of it at the most. Raises DecodeError for what is none."""
  out, at = bytearray(), 0

  def count(first: int) -> int:
    nonlocal at
    total = first
    while first == 15 or first == 255:
      first = data[at]
      at += 1
      total += first
    return total

  try:
    while at < len(data):
      token = data[at]
      at += 1
      literals = count(token >> 4)
      out += data[at:at + literals]
      if at + literals > len(data): raise IndexError
      at += literals
      if at == len(data): break
      back = data[at] | data[at + 1] << 8
      at += 2
      wanted = count(token & 15) + 4
      if not 0 < back <= len(out) or len(out) + wanted > length: raise IndexError
      for _ in range(-(-wanted // back)):  # what is copied may be what the copy has just made
        out += out[len(out) - back:len(out) - back + min(wanted, back)]
        wanted -= back
  except IndexError: raise DecodeError(f"byte {at} is not LZ4", where="fat binary") from None
  return bytes(out)


def _zstd(data: bytes) -> bytes:
  """Zstandard undone, by Python's own module (3.14) or by PyPI's zstandard."""
  for name in ("compression.zstd", "zstandard"):
    try: module = importlib.import_module(name)
    except ImportError: continue
    try:
      found: bytes = (module.decompress(data) if name == "compression.zstd"
                      else module.ZstdDecompressor().decompressobj().decompress(data))
    except module.ZstdError as error: raise DecodeError(f"its code is no zstd: {error}", where="fat binary") from None
    return found
  raise Unsupported("code compressed by", "zstd", where="fat binary",
                    hint="compile with nvcc --compress-mode=none, or pip install zstandard")
