"""The mappings of GPU memory as compiled code reads them."""
from __future__ import annotations

import numpy as np

from tinyhw.core.memory import AddressSpace


class Memory:
  """The mappings of an address space as compiled code reads them: rows of start, size, distance to the host, access."""

  def __init__(self, space: AddressSpace) -> None:
    self._mappings = space.mappings()  # keeps the memory itself
    rows = [(m.start, m.end - m.start, m.u8.ctypes.data - m.start & (1 << 64) - 1, m.access) for m in self._mappings]
    self.table = np.array(rows, np.uint64).reshape(-1, 4)
