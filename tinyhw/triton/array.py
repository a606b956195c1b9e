"""NumPy arrays as arguments of Triton kernels."""
from __future__ import annotations

from typing import Any

import numpy as np


class Array(np.ndarray[Any, np.dtype[Any]]):
  """A NumPy array that Triton takes for a tensor: it has `data_ptr`. Views of it are such arrays too."""

  def data_ptr(self) -> int:
    """Host address of the first element."""
    return int(self.ctypes.data)

  def stride(self, axis: int | None = None) -> Any:
    """Strides in elements, as torch has them."""
    steps = tuple(s // self.itemsize for s in self.strides)
    return steps if axis is None else steps[axis]

  def ptr_range(self) -> int:
    """Bytes from the first element to the end of the memory."""
    return extent(self)[1] - self.data_ptr()


def array(data: Any, dtype: Any = None) -> Array:
  """`data` for Triton kernels; an array that has the right type already is not copied, so kernels store into it."""
  return np.asarray(data, dtype).view(Array)


def extent(a: np.ndarray[Any, np.dtype[Any]]) -> tuple[int, int]:
  """[first, end) host addresses of the memory that an array is a view of."""
  while isinstance(a.base, np.ndarray): a = a.base
  low, high = np.lib.array_utils.byte_bounds(a)
  return int(low), int(high)
