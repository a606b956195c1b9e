"""How great a number may be that a function is given, whatever it is for: a size, a position, an element.

An integer beyond the widest float is none of them. It is refused where functions are entered: nothing
behind it has to think of numbers that Python neither makes a float of nor writes as text.
"""
from __future__ import annotations

import sys
from typing import Any, Final

from tinyhw.core.errors import InvalidNumber

GREATEST: Final = int(sys.float_info.max)
MAY_HOLD: Final = frozenset({int, tuple, list, slice})


def refuse_beyond(name: str, values: Any) -> None:
  """Raises InvalidNumber where one of the values, or of what lists, tuples and slices among them hold, is an integer
  that no type can have."""
  for value in values:
    kind = type(value)
    if kind not in MAY_HOLD: continue
    if kind is int:
      if not -GREATEST <= value <= GREATEST:
        raise InvalidNumber(f"{name}() of an integer of {value.bit_length():,} bits",
                            hint="no size, position or element is so large")
    elif kind is slice: refuse_beyond(name, (value.start, value.stop, value.step))
    elif value: refuse_beyond(name, value)
