"""A walk over one line of assembler text, by the template of a row."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from tinyhw.isa.amdgcn.model import Row
from tinyhw.isa.amdgcn.names import NAMES, Names


class Reject(Exception):
  """A row does not fit the line: how far it did, and what stood there."""

  def __init__(self, at: int, what: str) -> None:
    self.at, self.what = at, what
    super().__init__(what)


compiled = cache(re.compile)


@cache
def pieces(wanted: str) -> tuple[str, ...]:
  """The words and signs of a fixed part of a template."""
  return tuple(re.findall(r"(?a)\w+|[^\w\s]", wanted))


@dataclass
class AsmLine:
  """The walk over one line: position, and the fields found so far."""
  row: Row
  text: str
  isa: str
  at: int = 0
  fields: dict[str, int] = field(default_factory=dict)
  literal: int | None = None
  accumulation: bool | None = None

  @property
  def names(self) -> Names:
    """What its table calls registers, messages and policies."""
    return NAMES[self.row.table or self.isa]

  def space(self) -> None:
    while self.text[self.at:self.at + 1] == " ": self.at += 1

  def word(self, wanted: str) -> None:
    """A fixed part of the template."""
    for piece in pieces(wanted):
      self.space()
      end = self.at + len(piece)
      if self.text[self.at:end] != piece or piece[-1].isalnum() and self.text[end:end + 1].isalnum():
        raise Reject(self.at, f"expected {piece!r}")
      self.at = end

  def take(self, pattern: str) -> re.Match[str] | None:
    """The pattern at this place, if it is there."""
    self.space()
    found = compiled(pattern).match(self.text, self.at)
    if found: self.at = found.end()
    return found

  def need(self, pattern: str, name: str) -> re.Match[str]:
    found = self.take(pattern)
    if found is None: raise Reject(self.at, f"operand {name}: {self.text[self.at:].split(',')[0]!r} is no {name}")
    return found

  def put(self, name: str, value: int) -> None: self.fields[name] = self.fields.get(name, 0) | value
