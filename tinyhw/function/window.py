"""Convolution: a sum of products over windows that slide over the last axes. A window is a view, not a copy."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.loss import Loss
from tinyhw.function.reduction import DTypeLike, named, sum_dtype
from tinyhw.ir.dtype import promote
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self

Sizes = int | Sequence[int]
Matrix = Sequence[Sequence[float]]


def each(sizes: Sizes, count: int, what: str) -> tuple[int, ...]:
  """One number for each of `count` axes."""
  found = (sizes,) * count if isinstance(sizes, int) else tuple(sizes)
  if len(found) == 1: found *= count
  if len(found) != count or not all(isinstance(s, int) for s in found):
    raise InvalidShape(f"{what} {sizes!r} for {count} axes", hint="give one int, or one for each axis")
  return found


def check_padding(name: str, padding: str, stride: Sequence[int]) -> None:
  """Refuses a padding by name that there is not, or not with that stride."""
  if padding not in ("same", "valid"):
    raise InvalidArgument(f'{name}: padding {padding!r} is neither "same" nor "valid"')
  if padding == "same" and any(s != 1 for s in stride):
    raise InvalidArgument(f'{name}: padding "same" needs a stride of 1, not {tuple(stride)}')


# Winograd's F(4, 3): four results of a kernel of 3 from six elements by six products (Lavin and Gray 2015).
_ELEMENTS: Matrix = [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
                     [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]]
_WEIGHTS: Matrix = [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
                    [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]
_RESULTS: Matrix = [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]


class Window(Loss):
  """The convolutions."""
  __slots__ = ()

  def conv2d(self, weight: Self, bias: Self | None = None, *, groups: int = 1, stride: Sizes = 1, dilation: Sizes = 1,
             padding: Sizes | str = 0, dtype: DTypeLike = None, winograd: bool | None = None) -> Self:
    """Convolution of (batch, in, height, width), or (in, height, width), by weights (out, in/groups, ...); of as many
    axes as the weights have behind the first two.

    `padding` is a number, one for each axis, (before, after) from the last axis on, "same" or "valid". `winograd` (the
    variable WINO=1 unless told) computes kernels of 3 by 3 with fewer products and a little more rounding.
    """
    return self._convolved("conv2d", weight.ndim - 2, weight, bias, groups, stride, dilation, padding, dtype, winograd)

  def conv1d(self, weight: Self, bias: Self | None = None, *, groups: int = 1, stride: Sizes = 1, dilation: Sizes = 1,
             padding: Sizes | str = 0) -> Self:
    """Convolution of (batch, in, length) by weights (out, in/groups, kernel)."""
    return self._convolved("conv1d", 1, weight, bias, groups, stride, dilation, padding)

  def conv3d(self, weight: Self, bias: Self | None = None, *, groups: int = 1, stride: Sizes = 1, dilation: Sizes = 1,
             padding: Sizes | str = 0) -> Self:
    """Convolution of (batch, in, depth, height, width) by weights (out, in/groups, kernel of three axes)."""
    return self._convolved("conv3d", 3, weight, bias, groups, stride, dilation, padding)

  def _padding_of(self, name: str, padding: Sizes | str, kernel: Sequence[int], stride: Sequence[int],
                  dilation: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of each of the last axes."""
    if isinstance(padding, str):
      check_padding(name, padding, stride)
      if padding == "valid": return [(0, 0)] * len(kernel)
      reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
      return [(r // 2, r - r // 2) for r in reach]
    if not isinstance(padding, int) and len(padding) == 2 * len(kernel):
      flat = list(padding)
      return list(zip(flat[::2], flat[1::2]))[::-1]
    return [(p, p) for p in each(padding, len(kernel), f"{name}: padding")]

  def _convolved(self, name: str, rank: int, weight: Self, bias: Self | None, groups: int, stride: Sizes,
                 dilation: Sizes,
                 padding: Sizes | str, dtype: DTypeLike = None, winograd: bool | None = None) -> Self:
    if rank >= 1 and self.ndim == rank + 1 and weight.ndim == rank + 2:
      return self.unsqueeze(0)._convolved(name, rank, weight, bias, groups, stride, dilation, padding, dtype,
                                          winograd).squeeze(0)
    if (rank < 1 or self.ndim != rank + 2 or weight.ndim != rank + 2 or groups < 1 or weight.shape[0] % groups
        or self.shape[1] != weight.shape[1] * groups):
      raise InvalidShape(f"{name} of shape {self.shape} by weights of shape {weight.shape} in {groups} groups")
    if bias is not None and bias.shape != weight.shape[:1]:
      raise InvalidShape(f"{name} by weights of shape {weight.shape} with a bias of shape {bias.shape}")
    batch = self.shape[0]
    out, depth, *kernel = weight.shape
    steps, apart = each(stride, rank, f"{name}: stride"), each(dilation, rank, f"{name}: dilation")
    if min(steps) < 1 or min(apart) < 1: raise InvalidArgument(f"{name} with stride {stride} and dilation {dilation}")
    x = self.pad([None, None, *self._padding_of(name, padding, kernel, steps, apart)])
    if any(s < d * (k - 1) + 1 for s, k, d in zip(x.shape[2:], kernel, apart)):
      raise InvalidShape(f"{name}: a kernel of {tuple(kernel)} is larger than the padded {x.shape[2:]}")
    common = promote(self.dtype, weight.dtype)
    wide = named(dtype) or sum_dtype(common)
    if winograd is None: winograd = os.environ.get("WINO", "0") not in ("", "0")
    if winograd and kernel == [3, 3] and set(steps) == set(apart) == {1} and common.is_float:
      result = x.cast(common).cast(wide)._winograd(weight.cast(common).cast(wide), groups)
    else:
      cut = x.cast(common).cast(wide).windows(kernel, steps, apart)
      places = cut.shape[2:2 + rank]
      parts = cut.reshape(batch, groups, 1, depth, *places, *kernel)
      w = weight.cast(common).cast(wide).reshape(1, groups, out // groups, depth, *(1,) * rank, *kernel)
      axes = (3, *range(4 + rank, 4 + 2 * rank))
      result = (parts * w)._reduce(Ops.ADD, axes, False).reshape(batch, out, *places)
    if dtype is None: result = result.cast(common)
    return result if bias is None else result + bias._along_axis(1, rank + 2)

  def _by_matrix(self, rows: Matrix) -> Self:
    """A matrix of numbers times the last two axes, times the matrix transposed."""
    made: Any = type(self)
    matrix: Self = made(rows, device=self.device, dtype=self.dtype)
    return matrix.matmul(self).matmul(matrix.T)

  def _winograd(self, weight: Self, groups: int) -> Self:
    """A convolution by 3x3 kernels: tiles of 6x6 elements and the kernels are transformed, multiplied, and summed."""
    batch, _, height, width = self.shape
    out, depth = weight.shape[:2]
    rows, columns = height - 2, width - 2
    down, across = -(-rows // 4), -(-columns // 4)
    tiles = self._grown([(0, 0), (0, 0), (0, down * 4 + 2 - height), (0, across * 4 + 2 - width)]).windows((6, 6),
                                                                                                           (4, 4))
    elements = tiles.contiguous()._by_matrix(_ELEMENTS).contiguous().reshape(batch, groups, 1, depth, down, across,
                                                                             6, 6)
    weights = weight._by_matrix(_WEIGHTS).contiguous().reshape(1, groups, out // groups, depth, 1, 1, 6, 6)
    products = (elements * weights)._reduce(Ops.ADD, 3, False).contiguous()
    found = products._by_matrix(_RESULTS).reshape(batch, out, down, across, 4, 4).permute(0, 1, 2, 4, 3, 5)
    return found.reshape(batch, out, down * 4, across * 4).shrink([None, None, (0, rows), (0, columns)])

  def conv_transpose2d(self, weight: Self, bias: Self | None = None, *, groups: int = 1, stride: Sizes = 1,
                       dilation: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0) -> Self:
    """The derivative of a convolution by its input: (batch, in, ...) by weights (in, out/groups, ...) of as many axes;
    `output_padding` makes the end of each axis longer."""
    return self._transposed("conv_transpose2d", weight.ndim - 2, weight, bias, groups, stride, dilation, padding,
                            output_padding)

  def conv_transpose1d(self, weight: Self, bias: Self | None = None, *, groups: int = 1, stride: Sizes = 1,
                       dilation: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0) -> Self:
    """As `conv_transpose2d`, of one axis."""
    return self._transposed("conv_transpose1d", 1, weight, bias, groups, stride, dilation, padding, output_padding)

  def conv_transpose3d(self, weight: Self, bias: Self | None = None, *, groups: int = 1, stride: Sizes = 1,
                       dilation: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0) -> Self:
    """As `conv_transpose2d`, of three axes."""
    return self._transposed("conv_transpose3d", 3, weight, bias, groups, stride, dilation, padding, output_padding)

  def _transposed(self, name: str, rank: int, weight: Self, bias: Self | None, groups: int, stride: Sizes,
                  dilation: Sizes, padding: Sizes, output_padding: Sizes) -> Self:
    if rank >= 1 and self.ndim == rank + 1 and weight.ndim == rank + 2:
      return self.unsqueeze(0)._transposed(name, rank, weight, bias, groups, stride, dilation, padding,
                                           output_padding).squeeze(0)
    if (rank < 1 or self.ndim != rank + 2 or weight.ndim != rank + 2 or groups < 1 or self.shape[1] % groups
        or self.shape[1] != weight.shape[0]):
      raise InvalidShape(f"{name} of shape {self.shape} by weights of shape {weight.shape} in {groups} groups")
    steps, apart = each(stride, rank, f"{name}: stride"), each(dilation, rank, f"{name}: dilation")
    margins, more = each(padding, rank, f"{name}: padding"), each(output_padding, rank, f"{name}: output_padding")
    kernel = weight.shape[2:]
    if any(m >= max(s, d) for m, s, d in zip(more, steps, apart)):
      raise InvalidArgument(f"{name}: output_padding {more} reaches the stride {steps} and the dilation {apart}")
    # Zeros between the elements: one more axis each, of which the first position holds them.
    x = self
    if max(steps) > 1:
      spread = [s for n in self.shape[2:] for s in (n, 1)]
      wide = self.reshape(*self.shape[:2], *spread)
      wide = wide._grown([(0, 0), (0, 0), *(p for s in steps for p in ((0, 0), (0, s - 1)))])
      whole = wide.reshape(*self.shape[:2], *(n * s for n, s in zip(self.shape[2:], steps)))
      x = whole.shrink([None, None, *((0, (n - 1) * s + 1 if n else 0) for n, s in zip(self.shape[2:], steps))])
    turned = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1).flip(tuple(range(2, rank + 2)))
    flat = [p for k, d, m, o in reversed(list(zip(kernel, apart, margins, more)))
            for p in (d * (k - 1) - m, d * (k - 1) - m + o)]
    return x._convolved(name, rank, turned, bias, groups, 1, apart, flat)
