"""Functions of windows that slide over the last axes: convolution and pooling. A window is a view, not a copy."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.reduction import Reduction

if TYPE_CHECKING:
  from typing import Self

Sizes = int | Sequence[int]


def _pair(sizes: Sizes) -> tuple[int, ...]:
  return (sizes, sizes) if isinstance(sizes, int) else tuple(sizes)


class Window(Reduction):
  """The functions of sliding windows."""
  __slots__ = ()

  def windows(self, size: Sequence[int], stride: Sequence[int]) -> Self:
    """All windows over the last axes: (..., places of each axis, positions within the window of each axis)."""
    rank, first = len(size), self.ndim - len(size)
    result = self
    for k, step in zip(size, stride):
      # Axis `first` is the next one to cut; its places and positions move to the end.
      if k < 1 or step < 1 or result.shape[first] < k:
        raise InvalidArgument(f"windows of {tuple(size)} every {tuple(stride)} of shape {self.shape}")
      result = result._slide(first, k, step)
    order = [*range(first), *(first + 2 * n for n in range(rank)), *(first + 2 * n + 1 for n in range(rank))]
    return result.permute(order)

  def _slide(self, axis: int, k: int, step: int) -> Self:
    """(..., n, ...) to (..., ..., places, k): the axis repeated and read as lines of n + 1 moves on by one in each "
    "line."""
    n = self.shape[axis]
    last = self.movedim(axis, -1)
    lead = last.shape[:-1]
    times = -(-k * (n + 1) // n)
    row = last.unsqueeze(-2).expand(*lead, times, n).reshape(*lead, times * n)
    lines = row.shrink([*(None for _ in lead), (0, k * (n + 1))]).reshape(*lead, k, n + 1)
    places = lines.shrink([*(None for _ in lead), None, (0, n - k + 1)])
    return places._every([1] * (len(lead) + 1) + [step]).transpose(-1, -2)

  def conv2d(self, weight: Self, bias: Self | None = None, groups: int = 1, stride: Sizes = 1,
             padding: Sizes = 0) -> Self:
    """Convolution of (batch, in, height, width) by weights (out, in/groups, kernel height, kernel width)."""
    if self.ndim != 4 or weight.ndim != 4 or self.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
      raise InvalidArgument(f"conv2d of shape {self.shape} by weights of shape {weight.shape} in {groups} groups")
    batch, channels = self.shape[:2]
    out, depth, *kernel = weight.shape
    (top, left), step = _pair(padding), _pair(stride)
    cut = self.pad([None, None, (top, top), (left, left)]).windows(kernel, step)
    height, width = cut.shape[2:4]
    x = cut.reshape(batch, groups, 1, depth, height, width, *kernel)
    w = weight.reshape(1, groups, out // groups, depth, 1, 1, *kernel)
    result = (x * w).sum((3, 6, 7)).reshape(batch, out, height, width)
    return result if bias is None else result + bias.reshape(1, out, 1, 1)

  def max_pool2d(self, kernel: Sizes = 2, stride: Sizes | None = None) -> Self:
    """Greatest element of each window over the last two axes; windows lie side by side unless a stride is given."""
    return self.windows(_pair(kernel), _pair(kernel if stride is None else stride)).max((-2, -1))

  def avg_pool2d(self, kernel: Sizes = 2, stride: Sizes | None = None) -> Self:
    """Average of each window over the last two axes; windows lie side by side unless a stride is given."""
    return self.windows(_pair(kernel), _pair(kernel if stride is None else stride)).mean((-2, -1))
