"""Tokens of PTX text, with their lines and columns."""
from __future__ import annotations

import re
import struct
from itertools import accumulate, chain
from typing import Final

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError
from tinyhw.isa.ptx.model import At

_SHOWN: Final = 100  # characters of what was found that a message has


class PtxSyntaxError(DecodeError):
  """Text that is no PTX. `line` and `column` count from 1; `expected` says what should have stood there."""

  def __init__(self, found: str, expected: str, at: At, *, hint: str | None = None) -> None:
    self.line, self.column, self.expected = *at, expected
    self.found = found
    shown = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}... ({len(found):,} characters)"
    super().__init__(f"{expected} expected, found {shown}", where=f"PTX line {at[0]}, column {at[1]}", hint=hint)


# What stands between two tokens, a token, and what is none.
_TOKEN: Final = re.compile(r"""
  ((?:(?<![^\n])[ \t]*\#[^\n]*|\n+|[^\S\n]+|//[^\n]*|/\*.*?\*/)*)(?:
  (0[fF][0-9a-fA-F]{8}(?![\w$])|0[dD][0-9a-fA-F]{16}(?![\w$])
   |\d+\.\d*(?:[eE][+-]?\d+)?(?![\w$])|\d+[eE][+-]?\d+(?![\w$])  # floats
   |(?:0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|0[0-7]*U?|[1-9]\d*U?)(?![\w$])  # integers
   |\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*  # modifiers and directives
   |(?:[A-Za-z_$]|%(?=[\w$]))[\w$]*  # names
   |"(?:[^"\\\n]|\\.)*"
   |\|\||&&|==|!=|<=|>=|<<|>>|[{}()\[\],;:@!|+\-*/%=<>&^~?]
   |\Z)
 |(.))
""", re.VERBOSE | re.DOTALL | re.ASCII)  # digits and letters of other scripts are none


_FLOAT: Final = re.compile(r"^0[fFdD]|[.eE]")  # of a number that is not hexadecimal
_LONGEST: Final = 400  # digits of an integer


class _Kinds(dict[str, str]):
  """Kinds of tokens by their texts."""

  def __missing__(self, text: str) -> str:
    first = text[:1]
    if first.isalpha() or first in {"_", "$"} or first == "%" and text != "%": kind = "name"
    elif first == ".": kind = "dot"
    elif digits(first):
      kind = "int" if text[:2] in {"0x", "0X"} or not _FLOAT.search(text) else "float"
    else: kind = "string" if first == '"' else "op" if text else "end"
    self[text] = kind
    return kind


class Tokens:
  """The tokens of a text, in columns: what the collector had to look at would be an object each.

  `kinds` are "name", "dot" (a modifier or directive, with its dot), "int", "float", "string", "op" and "end", which the
  last three are, so that one can look two ahead. `texts`, `starts` and `ends` are what they are and where.
  """

  def __init__(self, source: str) -> None:
    self.source = source
    rows = _TOKEN.findall(source)
    self.texts: list[str] = [text for _, text, _ in rows]
    # each row begins where the one before it ends
    edges = [*accumulate(chain.from_iterable(zip(map(len, [skipped for skipped, _, _ in rows]), map(len, self.texts))))]
    self.starts, self.ends = edges[::2], edges[1::2]
    wrong = [found for _, _, found in rows]
    if any(wrong):
      i = next(i for i, found in enumerate(wrong) if found)
      raise PtxSyntaxError(repr(wrong[i]), "a token of PTX", self.place(self.starts[i]))
    self.texts += [""] * 2
    for column in (self.starts, self.ends): column += column[-1:] * 2
    self.kinds = [*map(_Kinds().__getitem__, self.texts)]

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
