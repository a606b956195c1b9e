"""Pooling: the greatest, or the average, of windows that slide over the last axes."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.window import Sizes, Window, each
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self

Size = int | None


class Pooling(Window):
  """The functions that pool."""
  __slots__ = ()

  def _slots(self, name: str, kernel: Sequence[int], stride: Sizes | None, padding: Sizes, dilation: Sizes,
             ceil_mode: bool,
             fill: float | int) -> tuple[Self, list[tuple[int, int]], list[tuple[int, int]], tuple[int, ...]]:
    """All windows (..., places, positions), padded by `fill`; the padding, steps and distances."""
    rank = len(kernel)
    if self.ndim < rank + 1: raise InvalidShape(f"{name} of shape {self.shape} over {rank} axes")
    steps = each(tuple(kernel) if stride is None or stride == () else stride, rank, f"{name}: stride")
    margins = self._margins(name, padding, rank)
    apart = each(dilation, rank, f"{name}: dilation")
    if any(min(m) < 0 or max(m) > k // 2 for m, k in zip(margins, kernel)):
      raise InvalidArgument(f"{name}: padding {padding} is more than half of the kernel {tuple(kernel)}")
    around = []
    for size, k, s, (m, n), d in zip(self.shape[-rank:], kernel, steps, margins, apart):
      if k < 1 or s < 1 or d < 1: raise InvalidShape(f"{name}: windows of {k} every {s} at distances of {d}")
      room = size + m + n - d * (k - 1) - 1
      if room < 0: raise InvalidShape(f"{name}: windows of {tuple(kernel)} every {steps} of shape {self.shape}")
      count = (-(-room // s) if ceil_mode else room // s) + 1
      if ceil_mode and (count - 1) * s >= size + m: count -= 1       # a window begins in the tensor or before it
      around.append((m, max((count - 1) * s + d * (k - 1) + 1 - size - m, 0)))
    cut = self._padded([(0, 0)] * (self.ndim - rank) + around, fill)
    ends = [(0, m + size + after) for size, (m, after) in zip(self.shape[-rank:], around)]
    return cut.windows(kernel, steps, apart), around, margins, tuple(e for _, e in ends)

  @staticmethod
  def _margins(name: str, padding: Sizes, rank: int) -> list[tuple[int, int]]:
    """(before, after) of each axis; a flat list says them from the last axis on."""
    if not isinstance(padding, int) and len(padding) == 2 * rank and rank > 1:
      return list(zip(padding[::2], padding[1::2]))[::-1]
    return [(m, m) for m in each(padding, rank, f"{name}: padding")]

  def _greatest(self, name: str, rank: int, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes,
                ceil_mode: bool, return_indices: bool) -> Any:
    sizes = each(kernel, rank, f"{name}: kernel_size")
    low: Any = self.dtype.min
    cut, around, _, _ = self._slots(name, sizes, stride, padding, dilation, ceil_mode, low)
    axes = tuple(range(cut.ndim - rank, cut.ndim))
    top = cut._first_of_equals(cut.amax(axes), rank)
    if not return_indices: return top
    area = self.shape[-rank:]
    places = self._iota(math.prod(area)).reshape(area)
    at, *_ = places._slots(name, sizes, stride, padding, dilation, ceil_mode, 0) if rank < places.ndim else (
      places.unsqueeze(0)._slots(name, sizes, stride, padding, dilation, ceil_mode, 0))
    there, *_ = places._wrap(places._const(True, dtypes.bool)).unsqueeze(0)._slots(name, sizes, stride, padding,
                                                                                   dilation,
                                                                                   ceil_mode, False)
    still = cut._still()
    found = (still == top._still().reshape(*top.shape, *(1,) * rank))
    if self.dtype.is_float: found = found | still.isnan()
    # The first one of the window in the order of the places.
    count = math.prod(area)
    left = (found & there.squeeze(0)).where(count - at.squeeze(0), 0)
    return top, count - left.max(axes)

  def _first_of_equals(self, top: Self, rank: int) -> Self:
    """The greatest of each window, with a gradient that goes to the first one alone, as PyTorch has it: equal ones are
    many behind a ReLU."""
    if not self.dtype.is_float or not self._asked: return top
    axes, sizes = tuple(range(self.ndim - rank, self.ndim)), self.shape[-rank:]
    still, count = self._still(), math.prod(sizes)
    same = still.eq(top._still().reshape(*top.shape, *(1,) * rank)) | still.isnan()
    left = same.where(count - self._iota(count).reshape(sizes), 0)
    picked: Self = (same & left.eq(left.amax(axes, keepdim=True))).where(self, 0).sum(axes)
    return top._still()._with_derivative((picked, lambda: picked.const_like(1)))

  def max_pool2d(self, kernel_size: Sizes = 2, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Greatest element of each window over the last two axes; windows lie side by side unless a stride is given.

    `ceil_mode` keeps a last window that is not whole; with `return_indices` also where in the plane each one was.
    A kernel of several sizes says over how many axes.
    """
    rank = 2 if isinstance(kernel_size, int) else len(kernel_size)
    return self._greatest("max_pool2d", rank, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  def max_pool1d(self, kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """As `max_pool2d`, over the last axis."""
    return self._greatest("max_pool1d", 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  def max_pool3d(self, kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """As `max_pool2d`, over the last three axes."""
    return self._greatest("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

  def _average(self, name: str, rank: int, kernel: Sizes, stride: Sizes | None, padding: Sizes, ceil_mode: bool,
               count_include_pad: bool, divisor: int | None, dilation: Sizes = 1) -> Self:
    sizes = each(kernel, rank, f"{name}: kernel_size")
    wide, dtype = self._in_wide()
    cut, around, margins, ends = wide._slots(name, sizes, stride, padding, dilation, ceil_mode, 0)
    total = cut.sum(tuple(range(cut.ndim - rank, cut.ndim)))
    if divisor is not None: return (total / divisor).cast(dtype)
    area = self.shape[-rank:]
    # What lies behind the padding, which only ceil_mode reaches, never counts.
    beyond = [end - size - sum(m) for end, size, m in zip(ends, area, margins)]
    if all(b <= 0 for b in beyond) and (count_include_pad or not any(map(sum, margins))):
      return (total / math.prod(sizes)).cast(dtype)
    counted = [size + sum(m) if count_include_pad else size for size, m in zip(area, margins)]
    ones = wide._wrap(wide._const(1, shape=tuple(counted)))
    before = [0 if count_include_pad else m for m, _ in margins]
    spread = ones._grown([(b, max(end - b - c, 0)) for b, c, end in zip(before, counted, ends)])
    spread = spread.shrink([(0, end) for end in ends])
    steps = each(sizes if stride is None or stride == () else stride, rank, f"{name}: stride")
    here = spread.windows(sizes, steps, each(dilation, rank, f"{name}: dilation")).sum(tuple(range(rank, 2 * rank)))
    return (total / here).cast(dtype)

  def avg_pool2d(self, kernel_size: Sizes = 2, stride: Sizes | None = None, *, padding: Sizes = 0, dilation: Sizes = 1,
                 ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Self:
    """Average of each window over the last two axes; windows lie side by side unless a stride is given.

    Padding counts as zeros unless `count_include_pad` is False; `divisor_override` divides the sums instead. A kernel
    of several sizes says over how many axes.
    """
    rank = 2 if isinstance(kernel_size, int) else len(kernel_size)
    return self._average("avg_pool2d", rank, kernel_size, stride, padding, ceil_mode, count_include_pad,
                         divisor_override, dilation)

  def avg_pool1d(self, kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> Self:
    """As `avg_pool2d`, over the last axis."""
    return self._average("avg_pool1d", 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

  def avg_pool3d(self, kernel_size: Sizes, stride: Sizes | None = None, *, padding: Sizes = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> Self:
    """As `avg_pool2d`, over the last three axes."""
    return self._average("avg_pool3d", 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

  def lp_pool2d(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
                ceil_mode: bool = False) -> Self:
    """The p-norm of each window over the last two axes."""
    return self._norms("lp_pool2d", 2, norm_type, kernel_size, stride, ceil_mode)

  def lp_pool1d(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
                ceil_mode: bool = False) -> Self:
    """The p-norm of each window over the last axis."""
    return self._norms("lp_pool1d", 1, norm_type, kernel_size, stride, ceil_mode)

  def lp_pool3d(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
                ceil_mode: bool = False) -> Self:
    """The p-norm of each window over the last three axes."""
    return self._norms("lp_pool3d", 3, norm_type, kernel_size, stride, ceil_mode)

  def _norms(self, name: str, rank: int, p: float, kernel: Sizes, stride: Sizes | None, ceil_mode: bool) -> Self:
    sizes = each(kernel, rank, f"{name}: kernel_size")
    total = (self ** p)._average(name, rank, sizes, stride, 0, ceil_mode, True, 1)
    return total.relu() ** (1 / p)

  # *** pooling to a size ***

  def _shares(self, name: str, output_size: Size | Sequence[Size], rank: int) -> list[tuple[int, int]]:
    """The size of each axis and of its result."""
    if self.ndim < rank + 1: raise InvalidShape(f"{name} of shape {self.shape} over {rank} axes")
    area = self.shape[-rank:]
    wanted = (output_size,) * rank if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(wanted) != rank: raise InvalidShape(f"{name} of shape {self.shape} to {output_size}")
    return [(size, size if w is None else w) for size, w in zip(area, wanted)]

  def _parts(self, size: int, count: int) -> Self:
    """Which elements of an axis each of `count` parts has, as (parts, elements)."""
    part, place = self._iota(count).unsqueeze(1), self._iota(size)
    return (place >= part * size // count) & (place < ((part + 1) * size + count - 1) // count)

  def _adaptive_average(self, name: str, rank: int, output_size: Size | Sequence[Size]) -> Self:
    result, dtype = self._in_wide()
    for i, (size, count) in enumerate(self._shares(name, output_size, rank)):
      if size == count: continue
      axis = self.ndim - rank + i
      last = result.movedim(axis, -1)
      if count and size % count == 0: last = last.reshape(*last.shape[:-1], count, size // count).mean(-1)
      else:
        mine = self._parts(size, count)
        last = mine.where(last.unsqueeze(-2), 0).sum(-1) / mine.sum(-1)
      result = last.movedim(-1, axis)
    return result.cast(dtype)._same()

  def _adaptive_greatest(self, name: str, rank: int, output_size: Size | Sequence[Size],
                         return_indices: bool = False) -> Any:
    if return_indices: return self._adaptive_positions(self._shares(name, output_size, rank))
    result = self
    for i, (size, count) in enumerate(self._shares(name, output_size, rank)):
      if size == count: continue
      axis = self.ndim - rank + i
      last = result.movedim(axis, -1)
      if count and size % count == 0: last = last.reshape(*last.shape[:-1], count, size // count).max(-1)
      else: last = self._parts(size, count).where(last.unsqueeze(-2), self.dtype.min).max(-1)
      result = last.movedim(-1, axis)
    return result._same()

  def _adaptive_positions(self, shares: Sequence[tuple[int, int]]) -> tuple[Self, Self]:
    """The greatest elements of parts, and where in the plane each one was: the first one of its part."""
    rank = len(shares)
    lead, counts, area = self.shape[:-rank], [count for _, count in shares], [size for size, _ in shares]
    place: Any = 0
    inside: Any = None
    for i, (size, count) in enumerate(shares):
      # No part is longer than this.
      most = -(-size // count) + 1 if count else 1
      part, step = self._iota(count).unsqueeze(1), self._iota(most)
      at = part * size // max(count, 1) + step
      there = at < ((part + 1) * size + count - 1) // max(count, 1)
      shape = [n if k == i else 1 for k in range(rank) for n in (count,)] + [most if k == i else 1 for k in range(rank)]
      at, there = at.reshape(shape), there.reshape(shape)
      place, inside = place * size + at, there if inside is None else inside & there
    spread = place.shape
    line = inside.where(place, -1).reshape(-1)
    flat = self.reshape(*lead, math.prod(area))
    values = flat._picked_by(len(lead), line.expand(*lead, *line.shape)).reshape(*lead, math.prod(counts), -1)
    values = inside.reshape(math.prod(counts), -1).where(values, self.dtype.min)
    first = values._still().argmax(-1, keepdim=True)
    found = values.gather(-1, first).reshape(*lead, *counts)
    line = line.reshape(math.prod(counts), math.prod(spread[rank:]))
    at = line.expand(*lead, *line.shape).gather(-1, first)
    return found, at.reshape(*lead, *counts)

  def adaptive_avg_pool1d(self, output_size: Size | Sequence[Size]) -> Self:
    """Averages of as many parts of the last axis as wanted."""
    return self._adaptive_average("adaptive_avg_pool1d", 1, output_size)
  def adaptive_avg_pool2d(self, output_size: Size | Sequence[Size]) -> Self:
    """Averages of as many parts of the last two axes as wanted; None keeps a size."""
    return self._adaptive_average("adaptive_avg_pool2d", 2, output_size)
  def adaptive_avg_pool3d(self, output_size: Size | Sequence[Size]) -> Self:
    """Averages of as many parts of the last three axes as wanted; None keeps a size."""
    return self._adaptive_average("adaptive_avg_pool3d", 3, output_size)
  def adaptive_max_pool1d(self, output_size: Size | Sequence[Size], return_indices: bool = False) -> Any:
    """Greatest elements of as many parts of the last axis as wanted; with `return_indices` also where they were."""
    return self._adaptive_greatest("adaptive_max_pool1d", 1, output_size, return_indices)
  def adaptive_max_pool2d(self, output_size: Size | Sequence[Size], return_indices: bool = False) -> Any:
    """Greatest elements of as many parts of the last two axes as wanted, None keeps a size; with `return_indices` also
    where in the plane they were."""
    return self._adaptive_greatest("adaptive_max_pool2d", 2, output_size, return_indices)
  def adaptive_max_pool3d(self, output_size: Size | Sequence[Size], return_indices: bool = False) -> Any:
    """Greatest elements of as many parts of the last three axes as wanted, None keeps a size; with `return_indices`
    also where they were."""
    return self._adaptive_greatest("adaptive_max_pool3d", 3, output_size, return_indices)

  # *** the way back ***

  def _unpooled(self, name: str, rank: int, index: Self, kernel: Sizes, stride: Sizes | None, padding: Sizes,
                output_size: Sequence[int] | None) -> Self:
    if index.shape != self.shape: raise InvalidShape(f"{name} of shape {self.shape} by indices of shape {index.shape}")
    sizes, margins = each(kernel, rank, f"{name}: kernel_size"), each(padding, rank, f"{name}: padding")
    steps = each(sizes if stride is None else stride, rank, f"{name}: stride")
    area = [(n - 1) * s + k - 2 * m for n, s, k, m in zip(self.shape[-rank:], steps, sizes, margins)]
    if output_size is not None: area = list(output_size)[-rank:]
    lead = self.shape[:-rank]
    zeros, flat = self._wrap(self._const(0, shape=(*lead, math.prod(area)))), (*lead, math.prod(self.shape[-rank:]))
    places, values = index.reshape(*flat), self.reshape(*flat)
    spread = zeros.scatter(len(lead), places, values)
    if self.requires_grad:
      # Each element gets the gradient of its place, also where a later one has taken it: as torch has it.
      total = zeros.scatter_add(len(lead), places, values)
      spread = spread._still()._with_derivative((total, lambda: total.const_like(1)))
    return spread.reshape(*lead, *area)

  def max_unpool1d(self, index: Self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                   output_size: Sequence[int] | None = None) -> Self:
    """As `max_unpool2d`, over the last axis."""
    return self._unpooled("max_unpool1d", 1, index, kernel_size, stride, padding, output_size)
  def max_unpool2d(self, index: Self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                   output_size: Sequence[int] | None = None) -> Self:
    """Zeros with these elements where `max_pool2d` found them (its indices); the last of several for one place."""
    return self._unpooled("max_unpool2d", 2, index, kernel_size, stride, padding, output_size)
  def max_unpool3d(self, index: Self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
                   output_size: Sequence[int] | None = None) -> Self:
    """As `max_unpool2d`, over the last three axes."""
    return self._unpooled("max_unpool3d", 3, index, kernel_size, stride, padding, output_size)
