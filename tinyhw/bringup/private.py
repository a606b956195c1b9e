"""What a report must not tell: names of persons and hosts, paths, numbers of one piece. Taken out by rule.

Everything that goes into a report passes through `Private`. Text of a fixed place (lines of sysfs and procfs) goes by
the line's name; everything else by the values that this process, and the benches, know of themselves. What is taken
out keeps its length, so that a capture stays one.
"""
from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tinyhw.queues.container import Reader, Writer

# Lines whose value tells one piece from another: of KFD's properties, of NVIDIA's procfs.
_LINES: Final = re.compile(
  rb"(?a)(?m:^)((?:unique_id|hive_id|location_id|domain|serial_number) |"
  rb"(?:GPU UUID|Serial Number|Board ID|Bus Location):[ \t]*)([^\n]+)")
_UUID: Final = re.compile(rb"(?ai)\b(GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_HOME: Final = re.compile(rb"(?a)/(?:home|root|Users|tmp|mnt|media|srv|work)/[^\s\0\"',;:)]*")
_WORDS: Final = 3  # letters below which a name is no secret that could be told from other text
_BYTES: Final = 6  # bytes below which a value is not looked for in contents, where it would be found by chance


def known() -> set[bytes]:
  """What this process knows of its host and its user."""
  found = {socket.gethostname(), socket.gethostname().partition(".")[0], os.path.expanduser("~"), os.getcwd()}
  try: found.add(getpass.getuser())
  except (KeyError, OSError): pass  # a user without a name
  return {name.encode() for name in found if len(name) >= _WORDS and name not in ("/", "root", "localhost")}


class Private:
  """Takes secrets out of text, bytes, plain values and captures."""

  def __init__(self, secrets: Iterable[bytes] = ()) -> None:
    given = {s for s in (*secrets, *known()) if len(s) >= _WORDS}
    ordered = sorted(given, key=len, reverse=True)
    words = [re.escape(s) if not _is_word(s) else rb"\b" + re.escape(s) + rb"\b" for s in ordered]
    self._all = re.compile(b"|".join(words)) if words else None
    long = [re.escape(s) for s in ordered if len(s) >= _BYTES]
    self._long = re.compile(b"|".join(long)) if long else None

  def bytes(self, data: bytes, *, content: bool = False) -> bytes:
    """Of the same length. A `content` may be anything: only long values are looked for in it."""
    data = _LINES.sub(lambda m: m[1] + b"0" * len(m[2]), data)
    data = _UUID.sub(lambda m: re.sub(rb"(?ai)[0-9a-f]", b"0", m[0].removeprefix(b"GPU-")).rjust(len(m[0]), b"0"), data)
    pattern = self._long if content else self._all
    if not content: data = _HOME.sub(lambda m: b"/" + b"x" * (len(m[0]) - 1), data)
    return data if pattern is None else pattern.sub(lambda m: b"\0" * len(m[0]) if not m[0].isascii() else
                                                    b"0" * len(m[0]), data)

  def value(self, value: Any) -> Any:
    """A plain value, whatever is in it."""
    if isinstance(value, str): return self.bytes(value.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")
    if isinstance(value, bytes): return self.bytes(value)
    if isinstance(value, list | tuple): return [self.value(v) for v in value]
    if isinstance(value, dict): return {self.value(k): self.value(v) for k, v in value.items()}
    return value

  def capture(self, path: Path, to: Path) -> None:
    """A capture without secrets: events by value, contents by theirs; its head says nothing of the process."""
    reader = Reader(path)
    try:
      writer = Writer(to, {**self.value(reader.head), "program": ["tinyhw", "bringup"], "pid": 0, "run": ""})
      try:
        for name in reader.names():
          content = reader.blob(name)
          if content is not None: writer.blob(self.bytes(content, content=True), name)
        for row in reader.events(): writer.event(self.value(row))
      finally: writer.close()
    finally: reader.close()


def _is_word(secret: bytes) -> bool: return re.fullmatch(rb"(?a)\w+", secret) is not None
