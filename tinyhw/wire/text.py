"""The text of packets read back: `NAME(field=0x10, mode=enum_member, payload=(0x1, 0x2))`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tinyhw.core.errors import DecodeError
from tinyhw.core.layout import Packet

WHOLE = re.compile(r"(?a)\s*(\w+)\((.*)\)\s*", re.S)
ASSIGNMENT = re.compile(r"(?a)(\w+)=(\([^()]*\)|[^,()\s]+)(?:,\s*|\s*$)")


def _number(text: str, where: str) -> int:
  try:
    return int(text, 0)
  except ValueError:
    raise DecodeError(f"{text!r} is no number", where=where) from None


def parse(line: str, classes: Iterable[type[Packet]]) -> Packet:
  """The packet that a line shows. Raises DecodeError for an unknown packet, field or member, and for text left over."""
  whole = WHOLE.fullmatch(line)
  if whole is None:
    raise DecodeError(f"{line[:60]!r} is not of the form NAME(field=value, ...)", where="packet text")
  cls = next((c for c in classes if c.__name__ == whole[1]), None)
  if cls is None:
    raise DecodeError(f"no packet is named {whole[1]}", where="packet text")
  fields = {f.name: f for f in cls.FIELDS}
  values: dict[str, Any] = {}
  at = 0
  for row in ASSIGNMENT.finditer(whole[2]):
    if row.start() != at:
      break
    at, key, value = row.end(), row[1], row[2]
    where = f"{cls.__name__}.{key}"
    if key in values:
      raise DecodeError("is given twice", where=where)
    if key == cls.REST:
      values[key] = tuple(_number(v.strip(), where) for v in value.strip("()").split(",") if v.strip())
    elif key not in fields:
      raise DecodeError("no such field", where=where)
    else:
      enum = fields[key].enum
      values[key] = enum[value].value if enum is not None and value in enum.__members__ else _number(value, where)
  if at != len(whole[2]):
    raise DecodeError(f"cannot read {whole[2][at : at + 40]!r}", where=cls.__name__)
  missing = [f.name for f in cls.FIELDS if f.default is None and f.name not in values]
  if missing:
    raise DecodeError(f"{', '.join(missing)} must be given", where=cls.__name__)
  return cls(**values)
