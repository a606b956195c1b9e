"""What the kernel's log says of one driver, as /dev/kmsg shows it: new lines, by the numbers of their records.

The log is a ring: what is oldest goes, so lines are not counted. A record is "priority,number,time,flags;text", and
lines that begin with a blank belong to the one before.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.core.environment import digits
from tinyhw.core.locks import lock
from tinyhw.core.port import Port

PATH = "/dev/kmsg"


class KernelLog:
  """The lines that have one of these words in them. Threads may share it."""

  def __init__(self, words: Sequence[str]) -> None:
    self._words, self._next, self._lock = tuple(words), 0, lock()

  def new(self, port: Port) -> list[str]:
    """The texts of what came since the last call; none where this user may not read the log."""
    try: text = port.read(PATH).decode(errors="replace")
    except OSError: return []
    found, last = [], -1
    with self._lock:
      for line in text.splitlines():
        head, mark, said = line.partition(";")
        number = head.split(",")[1:2]
        if not mark or not number or not digits(number[0]): continue
        last = int(number[0])
        if last >= self._next and any(word in said for word in self._words): found.append(said)
      self._next = max(self._next, last + 1)
    return found
