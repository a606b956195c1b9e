"""Tokens of PTX text, with their lines and columns."""
from __future__ import annotations

import re
import struct
from typing import Final, NamedTuple

from tinyhw.core.errors import DecodeError
from tinyhw.isa.ptx.model import At


class PtxSyntaxError(DecodeError):
  """Text that is no PTX. `line` and `column` count from 1; `expected` says what should have stood there."""

  def __init__(self, found: str, expected: str, at: At, *, hint: str | None = None) -> None:
    self.line, self.column, self.expected = *at, expected
    self.found = found
    super().__init__(f"{expected} expected, found {found}", where=f"PTX line {at[0]}, column {at[1]}", hint=hint)


class Token(NamedTuple):
  """`kind` is "name", "dot" (a modifier or directive, with its dot), "int", "float", "string", "op" or "end"."""
  kind: str
  text: str
  start: int
  end: int


_TOKEN: Final = re.compile(r"""
  (?:(?<![^\n])[ \t]*\#[^\n]*|\n+|[^\S\n]+|//[^\n]*|/\*.*?\*/)*(?:
  (?P<float>0[fF][0-9a-fA-F]{8}(?![\w$])|0[dD][0-9a-fA-F]{16}(?![\w$])
           |\d+\.\d*(?:[eE][+-]?\d+)?(?![\w$])|\d+[eE][+-]?\d+(?![\w$]))
 |(?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|0[0-7]*U?|[1-9]\d*U?)(?![\w$])
 |(?P<dot>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
 |(?P<name>(?:[A-Za-z_$]|%(?=[\w$]))[\w$]*)
 |(?P<string>"(?:[^"\\\n]|\\.)*")
 |(?P<op>\|\||&&|==|!=|<=|>=|<<|>>|[{}()\[\],;:@!|+\-*/%=<>&^~?])
 |(?P<end>\Z)
 |(?P<wrong>.))
""", re.VERBOSE | re.DOTALL)


_LONGEST: Final = 400  # digits of an integer


class Tokens(list[Token]):
  """The tokens of a text; the last one is of the kind "end"."""

  def __init__(self, source: str) -> None:
    self.source = source
    add, make = self.append, Token._make
    for found in _TOKEN.finditer(source):
      kind = found.lastgroup or ""
      start, end = found.span(kind)
      if kind == "wrong": raise PtxSyntaxError(repr(source[start]), "a token of PTX", self.place(start))
      add(make((kind, source[start:end], start, end)))
      if kind == "end": break

  def place(self, offset: int) -> At:
    """(line, column) of an offset in the text."""
    before = self.source.count("\n", 0, offset)
    return before + 1, offset - (self.source.rfind("\n", 0, offset) + 1) + 1


def integer(text: str) -> int:
  """The value of an integer token; a leading 0 makes it octal."""
  digits = text.removesuffix("U").lower()
  base = {"0x": 16, "0b": 2}.get(digits[:2], 8 if digits[0] == "0" else 10)
  if len(digits) > _LONGEST: return 1 << 4 * _LONGEST  # a number that nobody could mean
  return int(digits, base)


def float_bits(text: str) -> tuple[int, int]:
  """(bits, width) of a float token; decimals are of 64 bits."""
  if text[:2] in {"0f", "0F"}: return int(text[2:], 16), 32
  if text[:2] in {"0d", "0D"}: return int(text[2:], 16), 64
  return int(struct.unpack("<Q", struct.pack("<d", float(text)))[0]), 64
