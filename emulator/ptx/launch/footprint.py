"""What memory a dispatch of PTX accesses: an observer that keeps ranges of bytes, to be compared with another's."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.emulator.observe import Access, Copy, Observer

READ, WRITTEN, ATOMIC = 1, 2, 3
_KINDS: Final = {"load": READ, "store": WRITTEN, "atomic": ATOMIC}
# By these a kernel orders its accesses with those of others that run beside it, or lets them do so.
_ORDERS: Final = frozenset({"volatile", "acquire", "release", "acq_rel", "relaxed", "mmio", "membar", "fence"})
_KEPT: Final = 1 << 16  # addresses that are put together at a time


class Footprint(Observer):
  """See the module: one for one dispatch. `orders`: the kernel has instructions by which it may meet others."""

  def __init__(self) -> None:
    self.orders = False
    self._found: dict[int, list[Any]] = {READ: [], WRITTEN: [], ATOMIC: []}  # arrays [n, 2]: begin, end
    self._waiting = dict.fromkeys(self._found, 0)
    self._asked: set[int] = set()

  def before(self, group: Any, pc: int, instruction: Any) -> None:
    if pc in self._asked: return
    self._asked.add(pc)
    i = instruction.line.instruction
    found = _ORDERS & {i.opcode, *i.modifiers}
    self.orders |= bool(found - {"relaxed"} if i.opcode in {"atom", "red"} else found)

  def access(self, group: Any, pc: int, instruction: Any, access: Access) -> None:
    if access.segment == "global": self._keep(_KINDS[access.kind], access.addresses[access.active], access.width)

  def copied(self, group: Any, pc: int, instruction: Any, copy: Copy) -> None:
    if copy.segment == "global": self._keep(_KINDS[copy.kind], np.atleast_1d(copy.addresses), copy.width)

  def _keep(self, kind: int, addresses: Any, width: int) -> None:
    if not len(addresses): return
    begin = np.unique(addresses.astype(np.uint64))
    self._found[kind].append(_merged(np.stack([begin, begin + np.uint64(width)], 1)))
    self._waiting[kind] += len(self._found[kind][-1])
    if self._waiting[kind] >= _KEPT: self._together(kind)

  def _together(self, kind: int) -> Any:
    rows = self._found[kind]
    if len(rows) > 1: self._found[kind] = rows = [_merged(np.concatenate(rows))]
    self._waiting[kind] = 0
    return rows[0] if rows else np.empty((0, 2), np.uint64)

  def ranges(self, most: int) -> list[list[int]]:
    """Rows of [address, bytes, kind]; none where they are more than so many, or a kernel may meet others."""
    if self.orders: return []
    rows = [[int(a), int(b - a), kind] for kind in self._found for a, b in self._together(kind)[:most + 1]]
    return rows if len(rows) <= most else []


def _merged(rows: Any) -> Any:
  """Ranges that touch or overlap as one, by address."""
  rows = rows[np.argsort(rows[:, 0], kind="stable")]
  ends = np.maximum.accumulate(rows[:, 1])
  first = np.flatnonzero(np.concatenate([[True], rows[1:, 0] > ends[:-1]]))
  return np.stack([rows[first, 0], np.concatenate([ends[first[1:] - 1], ends[-1:]])], 1)
