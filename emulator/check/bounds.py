"""Accesses past what was allocated that hardware lets pass: past shared memory, in the rest of an array's last page."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tinyhw.core.memory import PAGE, AddressSpace
from tinyhw.emulator.observe import Access

UNKNOWN: Final = "overruns in memory whose bounds nobody said (raw addresses, buffers of other programs)"
VERBS: Final = {"load": "reads", "store": "writes", "atomic": "changes"}


class Bounds:
  """What a dispatch may touch: a workgroup's memory (`lds` bytes, called `shared`), and of pages whose use is known the
  bytes in use.

  The address space knows some of that, `used` the rest. `unknown` says whether other memory was touched.
  """

  def __init__(self, space: AddressSpace, lds: int, used: Mapping[int, tuple[int, str]],
               shared: str) -> None:
    self.lds, self.shared, self.unknown = lds, shared, False
    rows = sorted((start, start + size, name or f"the array at {start:#x}")
                  for start, (size, name) in {**used, **space.used}.items())
    self.starts = np.array([start for start, _, _ in rows], np.uint64)
    self.ends = np.array([end for _, end, _ in rows], np.uint64)
    self.names = [name for _, _, name in rows]

  def find(self, access: Access) -> tuple[int, int, int, str] | None:
    """Row, lane and address of the first element past an end, and what is wrong with it."""
    last = access.addresses + np.uint64(access.width)
    if access.segment == "lds": wrong = access.active & (last > np.uint64(self.lds))
    elif len(self.starts):
      at = np.maximum(np.searchsorted(self.starts, access.addresses, "right"), 1) - 1
      end = self.ends[at]
      page = -(-end.astype(np.int64) // PAGE) * PAGE  # behind the last page is a page fault, or another array
      inside = (access.addresses >= self.starts[at]) & (access.addresses < page.astype(np.uint64))
      wrong = access.active & inside & (last > end)
      if not self.unknown: self.unknown = bool((access.active & ~inside).any())
    else:
      self.unknown = self.unknown or bool(access.active.any())
      return None
    if not wrong.any(): return None
    row, lane = (int(n) for n in np.argwhere(wrong)[0])
    address = int(access.addresses[row, lane])
    verb, count = VERBS[access.kind], int(wrong.sum())
    lanes = f", as do {count - 1} more lanes" if count > 1 else ""
    if access.segment == "lds":
      return row, lane, address, f"{verb} {self.shared} at {address:#x}, of {self.lds:#x} bytes{lanes}"
    k = int(at[row, lane])
    past = address + access.width - int(self.ends[k])
    return row, lane, address, (f"{verb} {address:#x}, up to {past:,} bytes past the end of {self.names[k]} "
                                f"({int(self.ends[k] - self.starts[k]):,} bytes){lanes}")
