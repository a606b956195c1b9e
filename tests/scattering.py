"""What SCATTER means, in NumPy: the witness of the compiler's tests and of Tensor's."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import ScatterArg

Array = np.ndarray[Any, np.dtype[Any]]
HOW: dict[Ops | None, Any] = {None: lambda old, new: new, Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum}


def scattered(how: ScatterArg, table: Array, index: Array, value: Array) -> Array:
  """The table after the values went to their places, one after another; or what was there before each, else 0."""
  found, old = np.moveaxis(table.copy(), how.axis, -1), np.zeros_like(np.moveaxis(value, how.axis, -1))
  places, values = np.moveaxis(index, how.axis, -1), np.moveaxis(value, how.axis, -1)
  for at in np.ndindex(places.shape):
    row, place = found[at[:-1]], int(places[at])
    if not 0 <= place < row.size: continue
    old[at] = row[place]
    row[place] = HOW[how.op](row[place], values[at])
  return np.ascontiguousarray(np.moveaxis(old if how.before else found, -1, how.axis))
