"""Activations, dropouts and pools that chance has a part in."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.chance import Chance
from tinyhw.function.window import Sizes, each
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self

_SATURATED = -1.7580993408473766  # -scale * alpha of SELU: what it gives far below 0


class Odds(Chance):
  """The functions of networks that draw."""
  __slots__ = ()

  def rrelu(self, lower: float = 1 / 8, upper: float = 1 / 3, training: bool | None = None) -> Self:
    """x, or times a slope below 0: while training a random one of lower..upper for each element, else their middle."""
    if not lower <= upper: raise InvalidArgument(f"rrelu with slopes of {lower}..{upper}")
    if not (type(self).training if training is None else training): return self.leaky_relu((lower + upper) / 2)
    if not self.dtype.is_float: raise InvalidArgument(f"rrelu of {self.dtype}", hint="it is for floats")
    slope = self.uniform(self.shape, low=lower, high=upper, device=self.device, dtype=self.dtype)
    return (self > 0).where(self, self * slope)

  def _saturated(self, p: float, training: bool | None, shape: tuple[int, ...]) -> Self:
    """What is dropped gets SELU's least value, and all is scaled so that mean 0 and variance 1 stay."""
    if not 0 <= p <= 1: raise InvalidArgument(f"dropout probability has to be between 0 and 1, but got {p}")
    if not (type(self).training if training is None else training) or p == 0 or not self.numel(): return self._same()
    if p == 1: return self * 0
    scale = 1 / math.sqrt((_SATURATED ** 2 * p + 1) * (1 - p))
    kept = self.rand(shape, device=self.device, dtype=dtypes.float32) >= p
    return kept.where(self, _SATURATED) * scale - _SATURATED * scale * p

  def alpha_dropout(self, p: float = 0.5, training: bool | None = None) -> Self:
    """Dropout for networks of SELUs: while training elements become SELU's least value with probability p, and mean and
    variance stay."""
    return self._saturated(p, training, self.shape)

  def feature_alpha_dropout(self, p: float = 0.5, training: bool | None = None) -> Self:
    """As `alpha_dropout`, of whole channels of (batch, channels, ...)."""
    if self.ndim < 2: raise InvalidShape(f"feature_alpha_dropout of shape {self.shape}", hint="give (batch, channels)")
    return self._saturated(p, training, (*self.shape[:2], *(1,) * (self.ndim - 2)))

  def feature_dropout(self, p: float = 0.5, training: bool | None = None) -> Self:
    """As `dropout`, of whole channels of (batch, channels, ...)."""
    if self.ndim < 2: raise InvalidShape(f"feature_dropout of shape {self.shape}", hint="give (batch, channels)")
    return self._dropped(p, training, self.ndim - 2)

  def _fractional(self, rank: int, kernel_size: Sizes, output_size: Sizes | None, output_ratio: Any,
                  return_indices: bool, samples: Self | None) -> Any:
    """Windows begin at random places that go over the image evenly (Graham, arXiv:1412.6071)."""
    name = f"fractional_max_pool{rank}d"
    if self.ndim not in (rank + 1, rank + 2):
      raise InvalidShape(f"{name} of shape {self.shape}", hint=f"give (channels, {rank} axes), or with a batch")
    if self.ndim == rank + 1:
      found = self.unsqueeze(0)._fractional(rank, kernel_size, output_size, output_ratio, return_indices, samples)
      return tuple(x.squeeze(0) for x in found) if return_indices else found.squeeze(0)
    if (output_size is None) is (output_ratio is None):
      raise InvalidArgument(f"{name} with output_size {output_size} and output_ratio {output_ratio}",
                            hint="give one of them")
    kernel, area, lead = each(kernel_size, rank, f"{name}: kernel_size"), self.shape[-rank:], self.shape[:2]
    if output_size is not None: wanted: Sequence[int] = each(output_size, rank, f"{name}: output_size")
    else:
      ratios = (output_ratio,) * rank if isinstance(output_ratio, float) else tuple(output_ratio)
      if not all(0 < r < 1 for r in ratios): raise InvalidArgument(f"{name} with output_ratio {ratios}", hint="0..1")
      wanted = [int(n * r) for n, r in zip(area, ratios)]
    if any(count < 1 or count + k - 1 > n for n, k, count in zip(area, kernel, wanted)):
      raise InvalidShape(f"{name} of shape {self.shape} to {tuple(wanted)} windows of {tuple(kernel)}",
                         hint="windows + kernel - 1 is at most the size")
    if samples is None: samples = self.rand((*lead, rank), device=self.device, dtype=dtypes.float32)
    if samples.shape != (*lead, rank):
      raise InvalidShape(f"_random_samples of shape {samples.shape}", hint=f"give {(*lead, rank)}")
    place: Any = 0
    for i, (n, k, count) in enumerate(zip(area, kernel, wanted)):
      # PyTorch's samples of images are (for the columns, for the rows), of volumes in the order of the axes.
      drawn = samples[:, :, rank - 1 - i if rank == 2 else i].float().unsqueeze(-1)
      step = (n - k) / (count - 1) if count > 1 else 0.0
      steps = self._iota(count).float()
      begin = ((steps + drawn) * step).trunc() - (drawn * step).trunc()
      begin = (steps < count - 1).where(begin, n - k).int()
      at = (begin.unsqueeze(-1) + self._iota(k)).reshape(
        *lead, *(c if j == i else 1 for j in range(rank) for c in (count,)), *(k if j == i else 1 for j in range(rank)))
      place = at if i == 0 else place * n + at
    count, size = math.prod(wanted), math.prod(kernel)
    line = place.reshape(*lead, count * size)
    windows = self.reshape(*lead, math.prod(area)).gather(2, line).reshape(*lead, count, size)
    top = windows._first_of_equals(windows.amax(-1), 1).reshape(*lead, *wanted)
    if not return_indices: return top
    first = windows._still().argmax(-1, keepdim=True)
    return top, line.reshape(*lead, count, size).gather(-1, first).reshape(*lead, *wanted)

  def fractional_max_pool2d(self, kernel_size: Sizes, output_size: Sizes | None = None,
                            output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
                            _random_samples: Self | None = None) -> Any:
    """The greatest elements of windows over the last two axes, as many as `output_size` or a part `output_ratio` of the
    sizes says, that begin at random places; with `return_indices` also where in the plane each one was."""
    return self._fractional(2, kernel_size, output_size, output_ratio, return_indices, _random_samples)

  def fractional_max_pool3d(self, kernel_size: Sizes, output_size: Sizes | None = None,
                            output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
                            _random_samples: Self | None = None) -> Any:
    """As `fractional_max_pool2d`, over the last three axes."""
    return self._fractional(3, kernel_size, output_size, output_ratio, return_indices, _random_samples)
