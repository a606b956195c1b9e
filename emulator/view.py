"""How the waves of a dispatch see memory where caches stand between, for whoever models those.

Without a view, waves and everybody else see one memory, and nothing is paid for the question. A view is asked for each
access of the reference interpreter, wave by wave, for waves on different compute units may see different bytes.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tinyhw.core.memory import U64
from tinyhw.emulator.values.ops import Array

if TYPE_CHECKING:
  from tinyhw.emulator.simt import Group



class View(Protocol):
  """Memory of one dispatch. Arrays have a row for each access; `rows` tells the wave of `group` that makes it.

  `kind` is "vector", "scalar" or "scratch". Faults are PageFaults with the index of the access in `.lane`.
  """

  def load(self, group: Group, rows: Array, addresses: U64, width: int, kind: str) -> Array:
    """`width` bytes at each address, in the forms that `AddressSpace.gather` gives."""
    ...

  def store(self, group: Group, rows: Array, addresses: U64, values: Array, kind: str) -> None:
    """Store values as `AddressSpace.scatter` does."""
    ...

  def atomic(self, group: Group, rows: Array, addresses: U64, width: int,
             modify: Callable[[Array, Array], Array | None]) -> Array | None:
    """Let `modify(cells, index)` change the cells at the addresses (u32 or u64, of which access k is cells[index[k]]);
    returns what it returns."""
    ...

  def invalidate(self, group: Group, mnemonic: str) -> None:
    """The waves execute an instruction that invalidates a cache."""
    ...


def loaded(group: Group, addresses: Array, width: int, mask: Array | None, kind: str) -> Array:
  """A load of every wave through the group's view: of the shape of `addresses` where its waves saw the same, else
  [waves, columns]. Elements outside of `mask` (bools [1 or waves, lanes], None for all) are 0."""
  view, shape, size = group.cohort.view, addresses.shape, group.size
  assert view is not None
  columns = shape[-1] if shape else 1
  spread = np.broadcast_to(addresses.reshape(-1, columns) if shape else addresses.reshape(1, 1), (size, columns))
  use = np.ones((size, columns), bool) if mask is None else np.broadcast_to(
    mask.any(axis=1, keepdims=True) if columns == 1 and mask.shape[1] > 1 else mask, (size, columns))
  found = view.load(group, np.nonzero(use)[0], spread[use].astype(np.uint64), width, kind)
  out = np.zeros((size, columns, *found.shape[1:]), found.dtype)
  out[use] = found
  if not shape or shape[0] == 1 != size:
    awake = out[use.any(axis=1)]
    if len(awake) and (awake == awake[0]).all() and (use == use[0]).all(): return awake[:1] if shape else awake[0, 0]
  return out
