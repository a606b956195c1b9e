"""Variables of the environment that are asked for often, and what people write in such texts.

`os.environ` finds out by an exception that a name is not there, which costs more than all else of a small launch.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Final

LONGEST: Final = 100  # letters of a number
_DATA: Final[Any] = getattr(os.environ, "_data", None)  # CPython's: what os.environ itself looks up, encoded


def variable(name: str, encoded: bytes) -> str:
  """The value now, "" where there is none; `encoded` is the name in bytes."""
  if _DATA is None: return os.environ.get(name, "")
  value = _DATA.get(encoded)
  return "" if value is None else value if isinstance(value, str) else os.fsdecode(value)


raw: Final[Callable[[bytes], object]] = (lambda name: os.environ.get(os.fsdecode(name))) if _DATA is None else _DATA.get
"""What a variable is set to, in a form that is only good for comparing it with what it was."""


def digits(text: str | bytes) -> bool:
  """Whether a text is one or more of the digits 0 to 9. Python's own questions count those of all scripts, which are no
  numbers in any language here."""
  return text.isascii() and text.isdigit()


def count(text: str) -> int | None:
  """What a count in a variable or on a command line says: 1 to 18 digits. None for any other text; Python's `int`
  takes digits of all scripts, and raises for more than 4,300."""
  return int(text) if digits(text) and len(text) <= 18 else None


def whole(text: str) -> int | None:
  """A whole number as a person writes it: an optional sign, then 10, 0x1f, 0b11 or 0o17. None for any other text: one
  with digits of other scripts or beyond 100 letters is no number here."""
  text = text.strip()
  if not text.isascii() or len(text) > LONGEST: return None
  try: return int(text, 0)
  except ValueError: return None


def real(text: str) -> float | None:
  """A number as `float` reads it, of ASCII alone and at most 100 letters; None for any other text, and for a number
  that no double has room for."""
  if not text.isascii() or len(text) > LONGEST: return None
  try: found = float(text)
  except ValueError: return None
  return None if math.isinf(found) and any(map(str.isdigit, text)) else found
