"""Words of the terminal debugger: what a person types into numbers, limits and formats, and numbers into text."""
from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from tinyhw.core.environment import whole as number
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug.breaks import show
from tinyhw.emulator.debug.expression import Register
from tinyhw.emulator.debug.wave import TYPES

FORMATS: Final = {"x": "u32", "f": "f32", "d": "i32", "u": "u32", "h": "f16", "b": "u8", "g": "u64"}
LIMITS: Final = ("wave", "workgroup", "lane", "ignore")


def parse_limits(words: str) -> tuple[str, dict[str, int], str | None]:
  """"add+4 wave 3 if s4 > 1" to ("add+4", {"wave": 3}, "s4 > 1")."""
  head, _, condition = (words + " ").partition(" if ")
  limits: dict[str, int] = {}
  while m := re.search(rf"(?a)\s({'|'.join(LIMITS)})\s+(\w+)\s*$", head):
    if (value := number(m[2])) is None: raise InvalidArgument(f"{m[2]!r} is no number", where=m[1])
    limits[m[1]] = value
    head = head[:m.start()]
  return head.strip(), limits, condition.strip() or None


def parse_names(text: str) -> list[str]:
  """"v0 v4-v7" to the names of the registers."""
  names: list[str] = []
  for word in text.replace(",", " ").split():
    m = re.fullmatch(r"([sva])(\d{1,9})-(?:\1)?(\d{1,9})", word, re.ASCII)
    if m: names += [f"{m[1]}{k}" for k in range(int(m[2]), min(int(m[3]), 511) + 1)]
    else: names.append(word.lower())
  return names


def span(values: list[int]) -> str:
  """"12 to 32", or the one number."""
  low, high = min(values), max(values)
  return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def count(text: str) -> int:
  """How often; 1 without a word."""
  n = whole(text) if text else 1
  if n < 1: raise InvalidArgument(f"{n} times is not at least once")
  return n


def whole(text: str) -> int:
  if (value := number(text)) is None: raise InvalidArgument(f"{text!r} is no whole number")
  return value


def need(text: str, what: str) -> str:
  if not text: raise InvalidArgument(f"{what} is missing", hint="see help")
  return text


def kinds(kind: str) -> Any:
  """The NumPy type of a type's name."""
  if kind not in TYPES: raise InvalidArgument(f"no type is called {kind!r}", hint=", ".join(TYPES))
  return TYPES[kind]


def format_of(args: str, default: str) -> tuple[str, str]:
  """"/f v3" to ("f", "v3")."""
  m = re.fullmatch(r"(?a)(?:/(\w+))?\s*(.*)", args)
  assert m is not None
  form = m[1] or default
  if form and form not in FORMATS: raise InvalidArgument(f"no format /{form}", hint="/x /f /d /u /h /b /g")
  return form, m[2]


def typed(words: Any, form: str) -> Any:
  """u32 words read as a format."""
  dtype = np.dtype(TYPES[FORMATS[form]])
  return words.astype(f"u{dtype.itemsize}").view(dtype) if dtype.itemsize <= 4 else words


def convert(value: Any, form: str) -> Any:
  """A number read as a format: the bits of a whole number as f32 and so on."""
  if form in {"", "x", "u", "b", "g"} or isinstance(value, float): return value
  return Register("value", np.array([value & 0xFFFFFFFF], np.uint32), None).typed(FORMATS[form])


def number_text(value: Any, form: str) -> str:
  """A number in a format."""
  if form in {"x", "b", "g"} and not isinstance(value, float):
    return f"{int(value):0{ {'x': 8, 'b': 2, 'g': 16}[form] }x}"
  if form in {"f", "h"} or isinstance(value, float | np.floating): return f"{value:.7g}"
  return show(value) if form == "" else str(value)
