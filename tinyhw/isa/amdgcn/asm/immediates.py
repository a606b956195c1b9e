"""Forms of the 16-bit immediate of scalar instructions, as text to a number."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tinyhw.core.environment import digits
from tinyhw.isa.amdgcn.names import INDEXED, VERSION_FLAGS, VERSIONS, Names
from tinyhw.isa.amdgcn.text import DELAYS, DEPCTR, SKIPS
from tinyhw.isa.amdgcn.values import number

Pieces = tuple[tuple[int, int, int], ...]


def counters(text: str, fields: dict[str, Pieces], start: int) -> int | None:
  """`name(value) name(value)` into a word that starts with all counters at their defaults."""
  value = start
  for part in re.split(r"[\s&,]+", re.sub(r"\s*([()])\s*", r"\1 ", text).replace("( ", "(").strip()):
    m = re.fullmatch(r"(?a)(\w+?)(_sat)?\((\w+)\)", part)
    count = number(m[3]) if m else None
    if m is None or count is None or m[1] not in fields: return None
    top = (1 << sum(w for _, _, w in fields[m[1]])) - 1
    if m[2]: count = min(count, top)
    if count > top: return None
    for at, bit, width in fields[m[1]]:
      part_top = (1 << width) - 1
      value = value & ~(part_top << at) | (count >> bit & part_top) << at
  return value


def waitcnt(text: str, names: Names) -> int | None:
  """s_waitcnt's counters; those that are not named do not wait."""
  fields = names.counters
  return counters(text, fields, sum((1 << w) - 1 << at for pieces in fields.values() for at, _, w in pieces))


def delay(text: str) -> int | None:
  """s_delay_alu's three fields."""
  value = 0
  places = {"instid0": (0, DELAYS), "instskip": (4, SKIPS), "instid1": (7, DELAYS)}
  for part in text.split("|"):
    m = re.fullmatch(r"(?a)\s*(\w+)\((\w+)\)\s*", part)
    if m is None or m[1] not in places or m[2] not in places[m[1]][1]: return None
    at, names = places[m[1]]
    value |= names.index(m[2]) << at
  return value


def hwreg(text: str, names: Names) -> int | None:
  """hwreg(NAME) or hwreg(NAME, first bit, bits)."""
  m = re.fullmatch(r"(?a)hwreg\((\w+)(?:, *(\d+), *(\d+))?\)", text)
  if m is None: return None
  ident = next((k for k, n in names.hwregs.items() if n == m[1]), int(m[1]) if digits(m[1]) else 64)
  at, size = int(m[2] or 0), int(m[3] or 32)
  return ident | at << 6 | size - 1 << 11 if ident < 64 and at < 32 and 1 <= size <= 32 else None


def message(text: str, names: Names) -> int | None:
  """sendmsg(NAME) or sendmsg(NUMBER, 0, 0); on gfx9 sendmsg(NAME, OPERATION, STREAM), each a name or a number."""
  if names.operations: return staged_message(names, text)
  m = re.fullmatch(r"(?a)sendmsg\((\w+)(?:, *0, *0)?\)", text)
  if m is None: return None
  return next((k for k, n in names.messages.items() if n == m[1]), int(m[1]) if digits(m[1]) else None)


def staged_message(names: Names, text: str) -> int | None:
  """gfx9's message: an id, an operation and a stream."""
  m = re.fullmatch(r"(?a)sendmsg\((\w+)(?:, *(\w+))?(?:, *(\d+))?\)", text)
  if m is None: return None
  ident = next((k for k, n in names.messages.items() if n == m[1]), number(m[1]))
  operations = names.operations.get(m[1], {})
  operation = next((k for k, n in operations.items() if n == m[2]), number(m[2] or "0"))
  stream = int(m[3] or 0)
  if ident is None or operation is None or ident > 15 or operation > 7 or stream > 3: return None
  return ident | operation << 4 | stream << 8


def indexed(text: str, _: Names) -> int | None:
  """gpr_idx(SRC0,DST) and the like."""
  m = re.fullmatch(r"gpr_idx\(([A-Z0-9, ]*)\)", text)
  parts = [p.strip() for p in m[1].split(",") if p.strip()] if m else []
  return sum(1 << INDEXED.index(p) for p in set(parts)) if m and set(parts) <= set(INDEXED) else None


def version(text: str, _: Names) -> int | None:
  """s_version's number or name, with flags behind bars."""
  value = 0
  for part in text.replace("(", "").replace(")", "").split("|"):
    names = {n: k for k, n in VERSIONS.items()} | {n: bit for bit, n in VERSION_FLAGS}
    found = names.get(part.strip(), number(part.strip()))
    if found is None: return None
    value |= found
  return value


SIMM16: Final[dict[str, Callable[[str, Names], int | None]]] = {
  "SWaitCnt": waitcnt, "GPRIdxMode": indexed, "Version": version,
  "DepCtr": lambda t, _: counters(t, {f"depctr_{n}": ((at, 0, w),) for n, at, w in DEPCTR}, 0xFF9F),
  "SDelayALU": lambda t, _: delay(t), "hwreg": hwreg, "SendMsg": message,
}
