"""What race checks of both vendors keep: the latest accesses to each byte of memory, by pages of what is touched.

A store of what is there already changes nothing and makes no race, on neither vendor's machines: compilers let several
threads store one value, and programs set a flag from many (`Shadow.changes`).
"""
from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from tinyhw.emulator.values.ops import TRUE
from tinyhw.emulator.values.ops import Array as Value

PAGE: Final = 4096
# A plain read beside a compare-and-swap is how a loop around one begins: what it read is compared again.
PLAIN, ATOMIC, COMPARE = range(3)
SLOTS: Final = ("write", "read", "read2")
UNKNOWN: Final = 256  # what is no byte


class Shadow:
  """The latest accesses to each byte: the last write, the last read, and the last one by another wave before that.

  A table is a dictionary of arrays by slot; `TABLES` has their types and what they hold before anybody came.
  """

  TABLES: ClassVar[dict[str, tuple[Any, int]]] = {"wave": (np.int32, -1), "clock": (np.int32, 0), "pc": (np.int64, 0)}
  wave: dict[str, Value]
  clock: dict[str, Value]
  pc: dict[str, Value]

  def __init__(self, size: int) -> None:
    self.size = size
    for name, (kind, fill) in self.TABLES.items():
      setattr(self, name, {k: np.full(size, fill, kind) if fill else np.zeros(size, kind) for k in SLOTS})
    self.value = np.full(size, UNKNOWN, np.int16)  # the byte that the last write left, where it is known

  def grow(self, size: int) -> None:
    """More bytes, untouched."""
    for name, (_, fill) in self.TABLES.items():
      table = getattr(self, name)
      for k, old in table.items(): table[k] = np.concatenate([old, np.full(size - self.size, fill, old.dtype)])
    self.value = np.concatenate([self.value, np.full(size - self.size, UNKNOWN, np.int16)])
    self.size = size

  def changes(self, index: Value, data: Value | None) -> Value:
    """Whether an access makes another byte of each; one that stores no known `data` (None) may."""
    return TRUE if data is None else self.value[index] != data

  def stored(self, index: Value, data: Value | None) -> None:
    """These bytes are written; `data` None: nobody knows what with."""
    self.value[index] = UNKNOWN if data is None else data


def apart(data: Value | None, a: Value, b: Value) -> Value:
  """Whether two stores side by side, `a` and `b` of the bytes that are stored, leave different bytes."""
  return TRUE if data is None else data[a] != data[b]


class Memory:
  """Shadows of the pages of global memory that a dispatch touches."""

  def __init__(self, shadow: type[Shadow]) -> None:
    self.shadow = shadow(16 * PAGE)
    self._pages: dict[int, int] = {}

  def index(self, addresses: Value, width: int) -> Value:
    """Where the shadow of `width` bytes from each address is: [accesses * width]."""
    each = np.arange(width, dtype=np.int64)
    last = addresses + np.uint64(width - 1)
    if ((addresses ^ last) >= np.uint64(PAGE)).any():  # some cross a page: byte by byte
      return self._places((addresses[:, None] + each.astype(np.uint64)).reshape(-1))
    return (self._places(addresses)[:, None] + each).reshape(-1)

  def _places(self, addresses: Value) -> Value:
    number = addresses // np.uint64(PAGE)
    pages: Value
    if (number == number[0]).all(): pages, inverse = number[:1], np.zeros(len(number), np.intp)
    else: pages, inverse = np.unique(number, return_inverse=True)
    slots = np.array([self._pages.setdefault(int(p), len(self._pages)) for p in pages], np.int64)
    if len(self._pages) * PAGE > self.shadow.size: self.shadow.grow(max(2 * self.shadow.size, len(self._pages) * PAGE))
    return slots[inverse.reshape(-1)] * PAGE + (addresses % np.uint64(PAGE)).astype(np.int64)
