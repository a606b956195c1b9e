"""Device memory that nobody has written, by pages."""
from __future__ import annotations

import errno
import os

import numpy as np

from tinyhw.core.memory import PAGE, AddressSpace
from tinyhw.emulator.values.ops import Array


class Holes:
  """Pages of the memory behind an address space that nobody has written: files of memory have holes there."""

  def __init__(self, space: AddressSpace) -> None:
    self._space = space
    self._known: dict[int, bool] = {}

  def at(self, addresses: Array) -> Array:
    """Whether each address lies in such a page. Ask before the access: reading fills a hole with zeros."""
    pages, inverse = np.unique(addresses // np.uint64(PAGE), return_inverse=True)
    return np.array([self._hole(int(p)) for p in pages], bool)[inverse.reshape(-1)].reshape(addresses.shape)

  def _hole(self, page: int) -> bool:
    known = self._known.get(page)
    if known is None: known = self._known[page] = self._ask(page * PAGE)
    return known

  def _ask(self, address: int) -> bool:
    m = self._space.find(address)
    fd = getattr(m.backing, "fd", -1) if m is not None else -1
    if m is None or fd < 0: return False
    offset = getattr(m.backing, "base", 0) + m.offset + address - m.start
    try: return os.lseek(fd, offset, os.SEEK_DATA) >= offset + PAGE
    except OSError as error: return error.errno == errno.ENXIO  # no data up to the end

  def stored(self, addresses: Array) -> None:
    """These are written now."""
    for page in np.unique(addresses // np.uint64(PAGE)): self._known[int(page)] = False
