"""Interpolation: the last axes at other sizes. Each axis is a product with a matrix that is computed in the kernel."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.core.errors import InvalidArgument, InvalidShape, Unsupported
from tinyhw.function.pooling import Pooling
from tinyhw.ir.dtype import DType, dtypes

if TYPE_CHECKING:
  from typing import Self

_AXES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def _taps(center: float, n: int, cubic: bool) -> dict[int, float]:
  """The places among n elements that make the value at a center, with the weight of each."""
  if not cubic: center = max(center, 0.0)
  low = math.floor(center) if cubic else min(int(center), n - 1)
  rest, a = center - low, -0.75
  def near(t: float) -> float: return ((a + 2) * t - (a + 3)) * t * t + 1
  def far(t: float) -> float: return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
  around = ((-1, far(rest + 1)), (0, near(rest)), (1, near(1 - rest)), (2, far(2 - rest)))
  found: dict[int, float] = {}
  for step, weight in around if cubic else ((0, 1 - rest), (1, rest)):
    place = min(max(low + step, 0), n - 1)
    found[place] = found.get(place, 0.0) + weight
  return found


class Resize(Pooling):
  """The functions that change sizes."""
  __slots__ = ()

  def interpolate(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
                  mode: str = "nearest", align_corners: bool | None = None,
                  recompute_scale_factor: bool | None = None, antialias: bool = False) -> Self:
    """The axes behind the first two at another size, or scaled by a factor; of several sizes or factors as many of the
    last ones. `mode` is "nearest", "nearest-exact",
    "linear" ("bilinear", "trilinear"), "bicubic" or "area"; `align_corners` puts the corners' centers together."""
    modes = ("nearest", "nearest-exact", "area", *_AXES)
    if mode not in modes: raise InvalidArgument(f"interpolation mode {mode!r} is none of {', '.join(modes)}")
    if antialias: raise Unsupported("option", "antialias of interpolate", hint="blur before")
    told = scale_factor if size is None else size
    rank = min(len(told), self.ndim) if isinstance(told, (tuple, list)) else self.ndim - 2
    first = self.ndim - rank
    if rank < 1 or mode in _AXES and mode != "linear" and _AXES[mode] != rank:
      raise InvalidShape(f"interpolation {mode!r} of shape {self.shape}", hint="axes behind the first two are resized")
    if align_corners is not None and mode not in _AXES:
      raise InvalidArgument(f"align_corners with mode {mode!r}", hint="it is for linear and cubic modes")
    if (size is None) is (scale_factor is None):
      raise InvalidArgument("interpolate needs a size or a scale_factor, one of them")
    area = self.shape[first:]
    factors: list[float | None] = [None] * rank
    if size is not None: wanted = [size] * rank if isinstance(size, int) else list(size)
    else:
      assert scale_factor is not None
      given = [float(scale_factor)] * rank if isinstance(scale_factor, (int, float)) else list(scale_factor)
      if len(given) != rank: raise InvalidShape(f"scale_factor {scale_factor} for {rank} axes")
      wanted = [math.floor(n * f) for n, f in zip(area, given)]
      if not recompute_scale_factor: factors = [f for f in given]
    if len(wanted) != rank or min(wanted) < 1 or min(area) < 1:
      raise InvalidShape(f"interpolation of shape {self.shape} to {tuple(wanted)}")
    if mode == "area": return self._adaptive_average("interpolate", rank, wanted)
    wide, dtype = self._in_wide() if self.dtype.is_float else (self, self.dtype)
    if self.dtype is dtypes.uint8 and mode in _AXES and rank == 2:
      return self._bytes_weighted(first, area, wanted, factors, bool(align_corners), mode == "bicubic")._same()
    if not self.dtype.is_float and mode in _AXES: raise InvalidArgument(
      f"interpolation {mode!r} of {self.dtype}", hint="cast it to a float, and round the result")
    result = wide
    for i, (n, m, factor) in enumerate(zip(area, wanted, factors)):
      if n == m and factor in (None, 1.0): continue
      last = result.movedim(first + i, -1)
      last = last._nearest(n, m, factor, mode) if mode not in _AXES else last._weighted(
        n, m, factor, bool(align_corners), mode == "bicubic")
      result = last.movedim(-1, first + i)
    return result.cast(dtype)._same()

  upsample = interpolate

  def _centers(self, n: int, m: int, factor: float | None, aligned: bool, dtype: DType) -> Self:
    """Where each of the m results is among the n elements."""
    places = self._iota(m).cast(dtype)
    if aligned: return places * ((n - 1) / (m - 1) if m > 1 else 0.0)
    return (places + 0.5) * (n / m if factor is None else 1 / factor) - 0.5

  def _nearest(self, n: int, m: int, factor: float | None, mode: str) -> Self:
    places = self._iota(m).cast(dtypes.float32)
    scale = n / m if factor is None else 1 / factor
    at = (places + 0.5) * scale if mode == "nearest-exact" else places * scale
    mask = at.floor().cast(dtypes.int32).minimum(n - 1).unsqueeze(1) == self._iota(n)
    whole = self._wrap(self._const(True, dtypes.bool, (1,)))
    return self.unsqueeze(-2)._picked(mask, (self.ndim,), whole).squeeze(-1)

  def _bytes_weighted(self, first: int, area: Sequence[int], wanted: Sequence[int], factors: Sequence[float | None],
                      aligned: bool, cubic: bool) -> Self:
    """Pictures of bytes as PyTorch makes them: the last axis first, each axis rounded to bytes, by weights in fixed
    point with as many bits as 16 have room for. They are known before: the device's floats have no part in them."""
    result: Self = self
    for i in reversed(range(len(area))):
      n, m, factor = area[i], wanted[i], factors[i]
      if n == m: continue
      scale = ((n - 1) / (m - 1) if m > 1 else 0.0) if aligned else n / m if factor is None else 1 / factor
      rows = [_taps(scale * k if aligned else (k + 0.5) * scale - 0.5, n, cubic) for k in range(m)]
      most = max(max(row.values()) for row in rows)
      bits = next(b for b in range(23) if int(0.5 + most * (2 << b)) >= 1 << 15)
      places, weights = self._iota(n), self._wrap(self._const(0, dtypes.int32, (m, n)))
      for tap in range(max(map(len, rows))):
        told = [list(row.items())[tap] if tap < len(row) else (0, 0.0) for row in rows]
        at = self._column([place for place, _ in told])
        weight = self._column([int(w * (1 << bits) + math.copysign(0.5, w)) for _, w in told])
        weights = weights + (at == places).where(weight, 0)
      total = result.movedim(first + i, -1).cast(dtypes.int32).matmul(weights.T)
      result = ((total + (1 << bits - 1)) >> bits).clip(0, 255).cast(dtypes.uint8).movedim(-1, first + i)
    return result

  def _column(self, values: list[int]) -> Self:
    """Numbers beside this tensor, one in a row."""
    made: Self = type(self)(values, device=self.device, dtype=dtypes.int32)  # type: ignore[call-arg]  # as a Tensor is
    return made.unsqueeze(1)

  def _weighted(self, n: int, m: int, factor: float | None, aligned: bool, cubic: bool) -> Self:
    center = self._centers(n, m, factor, aligned, self.dtype)
    places = self._iota(n)
    if not cubic:
      center = center.maximum(0)
      first = center.floor()
      rest = (center - first).unsqueeze(1)
      low = first.cast(dtypes.int32).minimum(n - 1)
      high = (low + 1).minimum(n - 1)
      weights = (low.unsqueeze(1) == places).where(1 - rest, 0) + (high.unsqueeze(1) == places).where(rest, 0)
      return self.matmul(weights.T)
    first = center.floor()
    rest, low = center - first, first.cast(dtypes.int32)
    a = -0.75
    def near(t: Self) -> Self: return ((a + 2) * t - (a + 3)) * t * t + 1
    def far(t: Self) -> Self: return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    taps = ((-1, far(rest + 1)), (0, near(rest)), (1, near(1 - rest)), (2, far(2 - rest)))
    total: Self | None = None
    for shift, weight in taps:
      match = (low + shift).clip(0, n - 1).unsqueeze(1) == places
      part = match.where(weight.unsqueeze(1), 0)
      total = part if total is None else total + part
    assert total is not None
    return self.matmul(total.T)
