"""The capture's file: a line that says what it is, then frames that each can be checked and skipped by themselves.

    magic            the line `MAGIC`
    frame            kind u8, form u8 (0 raw, 1 zstd), 2 bytes of zeros, bytes u32, crc32 of the stored bytes u32, bytes
    HEAD   (1)       msgpack map: format, program, and what else the recorder knew
    EVENTS (2)       msgpack list of events, in order; see `events`
    BLOB   (3)       16 bytes of xxh3-128 of the content, then the content as `form` says
    CHANGE (4)       16 bytes of xxh3-128 of a content, 16 of another one's, whose frame is before it; then where the
                     first differs from the second, a u32, and the bytes that it has there
    COUNTS (5)       the last frame, where a recorder came to its end and could count all: msgpack list of rows
                     [queue, submissions, {packets by kind}, {launches by kernel}]

Writing appends whole frames, so whatever ends the process, what was flushed is readable: a frame that is not all there
ends the file. The same content is stored once. Reading looks at frames' heads alone; contents are read and unpacked
when they are asked for.
"""
from __future__ import annotations

import fcntl
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol
from weakref import finalize

import msgpack
import xxhash
import zstandard

from tinyhw.core.errors import DecodeError, InvalidArgument, MissingFile
from tinyhw.core.written import unwritten

MAGIC: Final = b"tinyhw queue capture\n"
FORMAT: Final = 4  # 1 has no events of CUDA's calls, 2 no changes, 3 no counts
HEAD, EVENTS, BLOB, CHANGE, COUNTS = 1, 2, 3, 4, 5
HASH_BYTES: Final = 16
LEAST: Final = 1 << 10  # bytes below which nothing is packed: a program waits while its submission is written
PAGE: Final = 4096  # bytes up to which a content is packed in half the time; of pages it gets as small
_FRAME: Final = struct.Struct("<BBHII")
_AT: Final = struct.Struct("<I")
_CHANGE: Final = 2 * HASH_BYTES + _AT.size  # bytes in front of what has changed
RECENT: Final = 128  # contents that stay unpacked
RECENT_BYTES: Final = 1 << 16  # of the largest of them
WINDOW: Final = 1 << 16  # bytes that are read at once
INDEXED: Final = 1 << 18  # the same, while frames are looked for
_LARGEST: Final = 1 << 30  # bytes of a frame, packed or not: more is no frame of ours


content_hash: Final[Callable[[bytes | memoryview], bytes]] = xxhash.xxh3_128_digest
"""The name of a content: 16 bytes."""


class Writer:
  """Appends to a new file. Threads must take turns; `flush` hands everything so far to the system. Where that has no
  room for it the file ends with what was flushed before; InvalidArgument says so once."""

  def __init__(self, path: str | os.PathLike[str], head: dict[str, Any]) -> None:
    self.path, self.bytes_stored = Path(path), 0
    self._pack = msgpack.Packer(use_bin_type=True)
    self._zstd, self._quick = (zstandard.ZstdCompressor(level=level) for level in (1, -1))
    self._known: set[bytes] = set()
    self._events: list[Any] = []
    self._frames: list[bytes | memoryview] = []
    try: self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error: raise MissingFile(f"cannot be written: {error.strerror}", where=str(path)) from None
    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # others that want this name take another
    os.ftruncate(self._fd, 0)
    self._frames.append(MAGIC)
    self._frame(HEAD, self._pack.pack({"format": FORMAT, **head}))
    self.flush()

  def event(self, row: list[Any]) -> None:
    """Put an event behind the others."""
    self._events.append(row)

  def blob(self, content: bytes | memoryview, name: bytes) -> None:
    """Keep a content under its hash, once."""
    if name in self._known: return
    self._known.add(name)
    self._frame(BLOB, content, name)

  def has(self, name: bytes) -> bool:
    """Whether a content is kept."""
    return name in self._known

  def change(self, name: bytes, base: bytes, at: int, data: bytes) -> None:
    """Keep a content that has these bytes at `at` and else is as another one, which is kept."""
    self._known.add(name)
    self._put(CHANGE, 0, b"".join((name, base, _AT.pack(at), data)))

  def counts(self, rows: list[Any]) -> None:
    """End with what there is, counted: nothing may come behind it."""
    self.flush()
    self._frame(COUNTS, self._pack.pack(rows))

  def flush(self) -> None:
    """Write all that waits, blobs before the events that name them."""
    if self._events:
      self._frame(EVENTS, self._pack.pack(self._events))
      self._events = []
    if not self._frames or self._fd < 0: return
    data = b"".join(self._frames)
    self._frames = []
    self.bytes_stored += len(data)
    whole, view = os.lseek(self._fd, 0, os.SEEK_CUR), memoryview(data)
    try:
      while view: view = view[os.write(self._fd, view):]
    except OSError as error:  # what is whole can be read; nothing more comes
      with suppress(OSError): os.ftruncate(self._fd, whole)
      os.close(self._fd)
      self._fd = -1
      raise unwritten(self.path, error) from None

  def close(self) -> None:
    """Flush and close; safe to call twice."""
    if self._fd < 0: return
    self.flush()
    os.close(self._fd)
    self._fd = -1

  def _frame(self, kind: int, content: bytes | memoryview, prefix: bytes = b"") -> None:
    form = 0
    if len(content) >= LEAST:
      packed = (self._quick if len(content) <= PAGE else self._zstd).compress(content)
      if len(packed) < len(content): form, content = 1, packed
    self._put(kind, form, prefix + content if prefix else content)

  def _put(self, kind: int, form: int, stored: bytes | memoryview) -> None:
    self._frames += (_FRAME.pack(kind, form, 0, len(stored), zlib.crc32(stored)), stored)


Told = Callable[[int, int], None]
"""How far a capture's events are gone through: frames of them, of all."""


class Frames(Protocol):
  """What a capture is read from: a file (`Reader`), or what was made of one (`draft`)."""

  @property
  def path(self) -> Path:
    """The file, or what it is called in errors."""

  @property
  def cut(self) -> int:
    """Where it ends amid a frame, or -1."""

  @property
  def head(self) -> dict[str, Any]:
    """What the recorder said of the program."""

  def events(self) -> Iterator[list[Any]]:
    """The events' rows, in order."""

  def names(self) -> list[bytes]:
    """The hashes of all contents."""

  def has(self, name: bytes) -> bool:
    """Whether `blob` gives this content."""

  def blob(self, name: bytes) -> bytes | None:
    """A content by its hash."""

  def close(self) -> None:
    """Let go of what it holds."""


class Reader:
  """A file's frames. `head` is what the recorder said; `cut` is where a frame begins that is not all there, or -1.
  `told` hears how far its events are read."""

  def __init__(self, path: str | os.PathLike[str]) -> None:
    self.path = Path(path)
    try: self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe does not hang
    except OSError as error: raise MissingFile(f"cannot be opened: {error.strerror}", where=str(path)) from None
    self._closes = finalize(self, os.close, self._fd)
    self._closes.atexit = False  # at the end of a process the kernel does it
    status = os.fstat(self._fd)
    if stat.S_ISDIR(status.st_mode): raise InvalidArgument("is a folder, not a capture", where=str(path))
    if not stat.S_ISREG(status.st_mode): raise InvalidArgument("is no file that can be read twice", where=str(path))
    size = status.st_size
    if os.pread(self._fd, len(MAGIC), 0) != MAGIC:
      raise DecodeError("is no capture of tinyhw", where=str(path),
                        hint="`tinyhw record` makes one; raw words want --kind")
    self._end = len(MAGIC)  # of the frames that were seen
    self._unzip = zstandard.ZstdDecompressor()
    self._blobs: dict[bytes, tuple[int, int, int]] = {}
    self._changes: set[bytes] = set()  # of these
    self._window = 0, b""  # the bytes from one on that were read last
    self._recent: dict[bytes, bytes] = {}  # unpacked: submissions read the same again and again
    self._event_frames: list[tuple[int, int, int]] = []
    self._given = 0  # of them by `grown`
    self._counts: tuple[int, int, int] | None = None
    self.cut = -1
    self.head: dict[str, Any] = {}
    self.told: Told | None = None
    self._index(size)

  def grown(self) -> Iterator[list[Any]]:
    """Events that no call before has given, with what a recorder has written since the file was opened."""
    size = os.fstat(self._fd).st_size
    if size > self._end:
      self.cut = -1
      self._index(size)
    given, self._given = self._given, len(self._event_frames)
    return self._rows(self._event_frames[given:])

  def _index(self, size: int) -> None:
    at, head, unpack = self._end, _FRAME.size, _FRAME.unpack_from
    first, there, far = at, b"", 0  # the bytes from one on, and up to where a frame's head may begin in them
    heads: list[tuple[int, int, int]] = []
    blobs, events = self._blobs, self._event_frames
    while at < size:
      if at + head > size: self.cut = at; break
      if at >= far: first, there, far = at, (read := os.pread(self._fd, INDEXED, at)), at + len(read) - _CHANGE - head
      kind, form, zeros, stored, _ = unpack(there, at - first)
      if not HEAD <= kind <= COUNTS or form > 1 or zeros or stored > _LARGEST:
        raise DecodeError(f"no frame at byte {at}: the file is damaged there", where=str(self.path))
      if at + head + stored > size: self.cut = at; break
      if kind == COUNTS: self._counts = at, form, stored
      elif kind >= BLOB:
        if stored < (HASH_BYTES if kind == BLOB else _CHANGE):
          raise DecodeError(f"no content at byte {at}", where=str(self.path))
        name = there[at - first + head:at - first + head + HASH_BYTES]
        blobs[name] = at, form, stored
        if kind == CHANGE: self._changes.add(name)
      elif kind == EVENTS: events.append((at, form, stored))
      else: heads.append((at, form, stored))
      at += head + stored
    self._end = at
    if self.head: return
    if not heads: raise DecodeError("ends before it says what it is", where=str(self.path))
    found = self._unpacked(self._content(heads[0]), -1)
    if not isinstance(found, dict): raise DecodeError("has a head that is none", where=str(self.path))
    if not isinstance(found.get("format"), int) or not 1 <= found["format"] <= FORMAT:
      raise DecodeError(f"has format {found.get('format')!r}, this tinyhw reads 1 to {FORMAT}", where=str(self.path),
                        hint="a newer tinyhw reads it")
    self.head = found

  def counts(self) -> list[list[Any]] | None:
    """Rows of COUNTS; None where no such frame is the last one."""
    if self._counts is None or self._counts[0] + _FRAME.size + self._counts[2] != self._end: return None
    rows = self._unpacked(self._content(self._counts), self._counts[0])
    if not isinstance(rows, list) or not all(_counts_a_queue(row) for row in rows):
      raise DecodeError(f"has no counts at byte {self._counts[0]}", where=str(self.path))
    return rows

  def events(self) -> Iterator[list[Any]]:
    """The events' rows, in order. Raises DecodeError for a frame that is damaged."""
    return self._rows(self._event_frames)

  def _rows(self, frames: list[tuple[int, int, int]]) -> Iterator[list[Any]]:
    for n, place in enumerate(frames, 1):
      if self.told is not None: self.told(n, len(frames))
      rows = self._unpacked(self._content(place), place[0])
      if type(rows) is not list: raise self._no_events(place[0])
      for row in rows:
        if type(row) is not list or not row: raise self._no_events(place[0])
        yield row

  def _no_events(self, at: int) -> DecodeError:
    return DecodeError(f"has no events at byte {at}", where=str(self.path))

  def names(self) -> list[bytes]:
    """The hashes of all contents."""
    return list(self._blobs)

  def has(self, name: bytes) -> bool:
    """Whether the file has this content."""
    return name in self._blobs

  def blob(self, name: bytes) -> bytes | None:
    """A content by its hash; None where the file has only its name."""
    if (found := self._recent.get(name)) is not None: return found
    place = self._blobs.get(name)
    if place is None: return None
    content = self._content(place, HASH_BYTES) if name not in self._changes else self._changed(name)
    if len(content) <= RECENT_BYTES:
      if len(self._recent) >= RECENT: del self._recent[next(iter(self._recent))]
      self._recent[name] = content
    return content

  def _changed(self, name: bytes) -> bytes:
    """A content by its changes. Raises DecodeError where what it was made of is not before it."""
    changes, at = list[tuple[int, bytes]](), 0
    while name in self._changes:
      place = self._blobs[name]
      change = self._content(place, HASH_BYTES)
      name, (where,), data = change[:HASH_BYTES], _AT.unpack_from(change, HASH_BYTES), change[HASH_BYTES + _AT.size:]
      changes.append((where, data))
      at = self._blobs.get(name, place)[0]
      if at >= place[0]: raise DecodeError(f"has a change of nothing at byte {place[0]}", where=str(self.path))
      if name in self._recent: break
    content = bytearray(self._recent.get(name) or self._content(self._blobs[name], HASH_BYTES))
    for where, data in reversed(changes):
      if where + len(data) > len(content):
        raise DecodeError(f"has a change behind the end of what is at byte {at}", where=str(self.path))
      content[where:where + len(data)] = data
    return bytes(content)

  def _bytes(self, at: int, size: int) -> bytes:
    """Bytes of the file, fewer at its end. Most are asked for in order: what is behind them is read with them."""
    first, there = self._window
    if at < first or at + size > first + len(there):
      if size > WINDOW: return os.pread(self._fd, size, at)
      self._window = first, there = at, os.pread(self._fd, WINDOW, at)
    return there[at - first:at - first + size]

  def _content(self, place: tuple[int, int, int], prefix: int = 0) -> bytes:
    at, form, size = place
    frame = os.pread(self._fd, _FRAME.size + size, at) if prefix else self._bytes(at, _FRAME.size + size)
    stored = frame[_FRAME.size:]
    if len(stored) < size or zlib.crc32(stored) != int.from_bytes(frame[_FRAME.size - 4:_FRAME.size], "little"):
      raise DecodeError(f"is damaged: the frame at byte {at} has another checksum", where=str(self.path))
    if not form: return stored[prefix:] if prefix else stored
    try:
      if zstandard.frame_content_size(stored[prefix:]) > _LARGEST: raise zstandard.ZstdError("too large")
      return self._unzip.decompress(stored[prefix:], max_output_size=_LARGEST)
    except zstandard.ZstdError as error:
      raise DecodeError(f"cannot unpack the frame at byte {at}: {error}", where=str(self.path)) from None

  def _unpacked(self, content: bytes, at: int) -> Any:
    """The value of a frame at a byte, or of the head (-1)."""
    try: return msgpack.unpackb(content, raw=False, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
      what = f"what is at byte {at}" if at >= 0 else "its head"
      raise DecodeError(f"cannot read {what}: {error}", where=str(self.path)) from None

  def close(self) -> None:
    """Let go of the file."""
    self._closes()


def _counts_a_queue(row: Any) -> bool:
  """Whether it is a row of COUNTS."""
  if not isinstance(row, list) or len(row) != 4 or not isinstance(row[0], str) or not _is_count(row[1]): return False
  return all(isinstance(found, dict) and all(isinstance(name, str) and _is_count(n) for name, n in found.items())
             for found in row[2:])


def _is_count(value: Any) -> bool: return type(value) is int and value >= 0
