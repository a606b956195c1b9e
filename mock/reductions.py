"""What an operation on one memory location leaves there, by its name; engines of all vendors have these.

All values are unsigned integers of one width, unless a name says S.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Meaning = Callable[[int, int, int, int], int]  # old value, source, compare value, all ones of the width -> new value


def signed(value: int, ones: int) -> int:
  """The two's complement number that a value of a width stands for."""
  return value - ones - 1 if value > ones >> 1 else value


MEANINGS: Final[dict[str, Meaning]] = {
  "SWAP": lambda old, source, compare, ones: source,
  "CMPSWAP": lambda old, source, compare, ones: source if old == compare else old,
  "ADD": lambda old, source, compare, ones: old + source & ones,
  "SUB": lambda old, source, compare, ones: old - source & ones,
  "SMIN": lambda old, source, compare, ones: source if signed(source, ones) < signed(old, ones) else old,
  "UMIN": lambda old, source, compare, ones: min(old, source),
  "SMAX": lambda old, source, compare, ones: source if signed(source, ones) > signed(old, ones) else old,
  "UMAX": lambda old, source, compare, ones: max(old, source),
  "AND": lambda old, source, compare, ones: old & source,
  "OR": lambda old, source, compare, ones: old | source,
  "XOR": lambda old, source, compare, ones: old ^ source,
  "INC": lambda old, source, compare, ones: 0 if old >= source else old + 1,
  "DEC": lambda old, source, compare, ones: source if old == 0 or old > source else old - 1,
}
