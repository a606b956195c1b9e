"""Linux ioctl request numbers: what they are made of (include/uapi/asm-generic/ioctl.h)."""
from __future__ import annotations

from typing import NamedTuple

from tinyhw.core.layout import Struct, Union


class Ioctl(NamedTuple):
  """A driver's call: the vendor's name and the argument's struct or union (None when the call has no argument)."""
  name: str
  struct: type[Struct] | type[Union] | None


class Request(NamedTuple):
  """A request number taken apart. Direction: 0 none, 1 write to the driver, 2 read from it, 3 both."""
  direction: int
  group: int
  number: int
  size: int


def split(request: int) -> Request:
  """The parts of a request number: direction 2 bits, argument size 14 bits, group and number 8 bits each."""
  return Request(request >> 30 & 3, request >> 8 & 0xFF, request & 0xFF, request >> 16 & 0x3FFF)
