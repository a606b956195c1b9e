"""Memory that lies elsewhere in a replay than in its capture: what was an address there, is which one here.

    moves = Moves()
    moves.add(0x7f0000000000, 4096, 0x600000000000)
    moves.at(0x7f0000000010)                          # 0x600000000010; any other number as it is
"""
from __future__ import annotations

import ctypes
from bisect import bisect_right, insort
from typing import Any

Patch = tuple[int, int, int]
"""The address of a word, the word, and the one that is to be there."""


class Moves:
  """Ranges of the capture, and where each begins here. A range that is added again goes somewhere else."""

  def __init__(self) -> None:
    self._starts: list[int] = []
    self._there: dict[int, tuple[int, int]] = {}  # first byte -> (bytes, first byte here)

  def __bool__(self) -> bool: return bool(self._starts)

  def add(self, start: int, size: int, here: int) -> None:
    """A range lies there from now on."""
    if start not in self._there: insort(self._starts, start)
    self._there[start] = size, here

  def drop(self, start: int) -> None:
    """Its memory was given back."""
    if self._there.pop(start, None) is not None: self._starts.remove(start)

  def at(self, address: int) -> int:
    """An address of the capture, here."""
    i = bisect_right(self._starts, address) - 1
    if i < 0: return address
    start = self._starts[i]
    size, here = self._there[start]
    return address - start + here if address < start + size else address

  def ranges(self) -> list[tuple[int, int]]:
    """(first byte, byte behind the last) of each, in the capture."""
    return [(start, start + self._there[start][0]) for start in self._starts]

  def struct(self, given: Any) -> None:
    """Move what is an address in a C struct: numbers of 64 bits in a range, in arrays and inner structs too."""
    for name, kind, *_ in given._fields_:
      value = getattr(given, name)
      if kind is ctypes.c_uint64: setattr(given, name, self.at(value))
      elif isinstance(value, ctypes.Structure | ctypes.Union): self.struct(value)
      elif isinstance(value, ctypes.Array):
        for i, one in enumerate(value):
          if isinstance(one, ctypes.Structure | ctypes.Union): self.struct(one)
          elif value._type_ is ctypes.c_uint64: value[i] = self.at(one)
