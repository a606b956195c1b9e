"""Functions that read an image where a grid says, and put windows back together."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidMode, InvalidShape
from tinyhw.function.resize import Resize
from tinyhw.function.window import Sizes, each
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self


class Sampling(Resize):
  """The functions of grids and windows."""
  __slots__ = ()

  def grid_sample(self, grid: Self, mode: str = "bilinear", padding_mode: str = "zeros",
                  align_corners: bool = False) -> Self:
    """The elements of (batch, channels, height, width) at the points (x, y) of a grid (batch, rows, columns, 2), which
    go from -1 to 1; of volumes too, at (x, y, z). `mode` is "bilinear", "nearest" or "bicubic"; `padding_mode` what is
    beyond the border: "zeros", "border" or "reflection"."""
    rank = self.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
      raise InvalidMode(f"grid_sample of mode {mode!r} with padding {padding_mode!r}",
                        hint="there are bilinear, nearest and bicubic; zeros, border and reflection")
    if rank not in (2, 3) or grid.ndim != self.ndim or grid.shape[-1] != rank or grid.shape[0] != self.shape[0] or (
        mode == "bicubic" and rank != 2) or not all(self.shape[2:]):
      raise InvalidShape(f"grid_sample of shape {self.shape} by a grid of shape {grid.shape}")
    batch, channels, area, places = *self.shape[:2], self.shape[2:], grid.shape[1:-1]
    points = [grid[..., rank - 1 - i].reshape(batch, math.prod(places)) for i in range(rank)]
    at = [(p + 1) * ((n - 1) / 2) if align_corners else ((p + 1) * n - 1) / 2 for p, n in zip(points, area)]
    if mode != "bicubic": at = [p._bounded(n, padding_mode, align_corners) for p, n in zip(at, area)]
    total: Any = None
    for taps in itertools.product(*(p._taps(mode) for p in at)):
      weight: Any = None
      place: Any = None
      inside: Any = None
      for (position, share), n in zip(taps, area):
        if mode == "bicubic": position = position._bounded(n, padding_mode, align_corners)
        # What is far outside, or NaN, is no place.
        there = (position > -1) & (position < n)
        line = there.where(position, 0).cast(dtypes.int32)
        place, inside = (line, there) if place is None else (place * n + line, inside & there)
        if share is not None: weight = share if weight is None else weight * share
      found = self.reshape(batch, channels, math.prod(area))._picked_by(
        2, inside.where(place, -1).unsqueeze(1).expand(batch, channels, math.prod(places)))
      part = found if weight is None else found * weight.unsqueeze(1)
      total = part if total is None else total + part
    result: Self = total.reshape(batch, channels, *places)
    return result

  def _bounded(self, n: int, padding_mode: str, aligned: bool) -> Self:
    """Positions along an axis, those beyond its ends put into it (not for "zeros")."""
    if padding_mode == "zeros": return self
    if padding_mode == "border": return self._within(0, n - 1)
    low, high = (0.0, float(n - 1)) if aligned else (-0.5, n - 0.5)
    span = high - low
    if not span: return self * 0
    size = (self - low).abs()
    times = (size / span).floor()
    rest = size - times * span
    turned = (times * 0.5).frac().eq(0).where(rest + low, span - rest + low)
    return turned._within(0, n - 1)

  def _taps(self, mode: str) -> list[tuple[Self, Self | None]]:
    """The places along an axis that a point is made of, and their shares."""
    if mode == "nearest": return [(self._wrap(self.round().uop.detach()), None)]
    first = self._wrap(self.floor().uop.detach())
    rest = self - first
    if mode == "bilinear": return [(first, 1 - rest), (first + 1, rest)]
    a = -0.75
    def near(t: Self) -> Self: return ((a + 2) * t - (a + 3)) * t * t + 1
    def far(t: Self) -> Self: return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return [(first - 1, far(rest + 1)), (first, near(rest)), (first + 1, near(1 - rest)), (first + 2, far(2 - rest))]

  def affine_grid(self, size: Sequence[int], align_corners: bool = False) -> Self:
    """The grid for `grid_sample` that matrices (batch, 2, 3), or (batch, 3, 4), make of the points of (batch, channels,
    ...)."""
    rank = len(size) - 2
    if rank not in (2, 3) or self.shape != (size[0], rank, rank + 1):
      raise InvalidShape(f"affine_grid of shape {self.shape} for a size of {tuple(size)}")
    area = tuple(size[2:])
    lines = []
    for n in area:
      i = self._iota(n).cast(self.dtype)
      lines.append((i * (2 / (n - 1) if n > 1 else 0) - (1 if n > 1 else 0)) if align_corners else (i * 2 + 1) / n - 1)
    points = [line.reshape([n if i == a else 1 for a in range(rank)]).expand(area)
              for i, (line, n) in enumerate(zip(lines, area))][::-1]
    base = points[0].stack(*points[1:], points[0].const_like(1), dim=-1)
    grid = base.reshape(1, math.prod(area), rank + 1).matmul(self.transpose(1, 2))
    return grid.reshape(size[0], *area, rank)

  def fold(self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
           stride: Sizes = 1) -> Self:
    """Windows (batch, channels * elements, places) added up where they lie in an image of `output_size`: what
    `torch.nn.Fold` does."""
    if self.ndim == 2:
      return self.unsqueeze(0).fold(output_size, kernel_size, dilation, padding, stride).squeeze(0)
    area, kernel, apart, margin, steps = (each(x, 2, f"fold: {name}") for x, name in (
      (output_size, "output_size"), (kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"),
      (stride, "stride")))
    if min((*area, *kernel, *apart, *steps)) < 1 or min(margin) < 0: raise InvalidArgument(f"fold by {kernel}, {steps}")
    places = [(n + 2 * m - d * (k - 1) - 1) // s + 1 for n, m, d, k, s in zip(area, margin, apart, kernel, steps)]
    if self.ndim != 3 or self.shape[1] % math.prod(kernel) or self.shape[2] != math.prod(places) or min(places) < 1:
      raise InvalidShape(f"fold of shape {self.shape} by windows of {kernel} into {area}",
                         hint=f"it needs (batch, a multiple of {math.prod(kernel)}, {math.prod(places)})")
    batch, channels = self.shape[0], self.shape[1] // math.prod(kernel)
    lines = []
    for k, d, m, s, n, size in zip(kernel, apart, margin, steps, places, area):
      line = self._iota(k).unsqueeze(1) * d + self._iota(n) * s - m
      lines.append(((line >= 0) & (line < size)).where(line, -1))
    rows, columns = lines[0].reshape(kernel[0], 1, places[0], 1), lines[1].reshape(1, kernel[1], 1, places[1])
    at = ((rows >= 0) & (columns >= 0)).where(rows * area[1] + columns, -1).reshape(-1)
    values = self.reshape(batch, channels, math.prod(kernel) * math.prod(places))
    none = self._wrap(self._const(0, shape=(batch, channels, math.prod(area))))
    total = none._scattered(2, at.expand(values.shape), values, Ops.ADD)
    return total.reshape(batch, channels, *area)
