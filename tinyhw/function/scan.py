"""Running results along an axis: sums, products, extremes.

Up to `SHORT` elements each result is a masked reduction of the whole axis. Longer axes are gone through in order, what
has come together so far in memory; or in blocks, whose own results are run over in the same way.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tinyhw.function.core import ConstType
from tinyhw.function.reduction import DTypeLike, Reduction, named, sum_dtype
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, highest

if TYPE_CHECKING:
  from typing import Self

SHORT = 32
BLOCK = 256            # of products that have a gradient, whose derivative by masks is exact at zeros
STRETCH = 1 << 10      # elements that one thread goes through


class Scan(Reduction):
  """The functions that run along an axis."""
  __slots__ = ()

  def _running(self, op: Ops) -> Self:
    """The reductions of the first 1, 2, ... elements of the last axis."""
    size = self.shape[-1]
    if highest(size) <= 1: return self._same()
    start = {Ops.ADD: -0.0 if self.dtype.is_float else 0, Ops.MUL: 1, Ops.MAX: self.dtype.min}[op]
    exact = op is Ops.MUL and self.dtype.is_float and self._asked
    if isinstance(size, Size) or size <= (BLOCK if exact else SHORT):
      mask = self._iota(size) <= self._iota(size).unsqueeze(1)
      spread = mask.where(self.unsqueeze(-2), start)
      result = spread._derive(spread.uop.reduce(op, (spread.ndim - 1,))).squeeze(-1)
      return result + 0.0 if op is Ops.ADD and self.dtype.is_float else result
    lead, length = self.shape[:-1], BLOCK if exact else STRETCH
    if not exact and size <= STRETCH: return self._in_order(op, start)
    blocks = -(-size // length)
    padded = self._padded([(0, 0)] * len(lead) + [(0, blocks * length - size)], start)
    inner = padded.reshape(*lead, blocks, length)._running(op).contiguous()
    before = inner.shrink([*(None for _ in lead), (0, blocks - 1), (length - 1, length)]).squeeze(-1)._running(op)
    before = before._padded([(0, 0)] * len(lead) + [(1, 0)], start).unsqueeze(-1)
    whole = inner + before if op is Ops.ADD else inner * before if op is Ops.MUL else inner.maximum(before)
    return whole.reshape(*lead, blocks * length).shrink([*(None for _ in lead), (0, size)])

  def _in_order(self, op: Ops, start: ConstType) -> Self:
    """As `_running`, one element after another: each finds in one place what came together before it."""
    place = self._wrap(self._const(0, dtypes.int32))
    before = self._wrap(self._const(start, shape=(*self.shape[:-1], 1)))._scattered(self.ndim - 1, place, self, op,
                                                                                    before=True)
    if op is Ops.ADD: return before + self + 0.0 if self.dtype.is_float else before + self
    return before * self if op is Ops.MUL else before.maximum(self)

  def _along(self, axis: int, op: Ops) -> Self:
    return self.movedim(axis, -1)._running(op).movedim(-1, axis)

  def cumsum(self, axis: int = 0, dtype: DTypeLike = None) -> Self:
    """Running sum along an axis, in the types that `sum` uses."""
    kind = named(dtype)
    wide = self.cast(kind or sum_dtype(self.dtype))
    axis = self._axis(axis)
    total = wide._along(axis, Ops.ADD) if self.ndim else wide._same()
    return total.cast(self.dtype) if kind is None and self.dtype.is_float else total

  def cumprod(self, axis: int, dtype: DTypeLike = None) -> Self:
    """Running product along an axis, in the types that `sum` uses."""
    kind = named(dtype)
    wide = self.cast(kind or sum_dtype(self.dtype))
    axis = self._axis(axis)
    total = wide._along(axis, Ops.MUL) if self.ndim else wide._same()
    return total.cast(self.dtype) if kind is None and self.dtype.is_float else total

  def cummax(self, axis: int = 0) -> tuple[Self, Self]:
    """Running maximum along an axis, and where it is (the last place of equal ones) as int32; NaN from the first on."""
    axis = self._axis(axis)
    if not self.ndim: return self._same(), self._wrap(self._const(0, dtypes.int32))
    last = self.movedim(axis, -1)
    top = last._still()._running(Ops.MAX)
    # A place counts where the element is the running maximum of then: the greatest such place up to now.
    here = last == top
    if self.dtype.is_float: here = here | last.isnan()
    at = here.where(self._iota(last.shape[-1]), 0)._running(Ops.MAX)
    places = at.movedim(-1, axis)
    return self.gather(axis, places), places

  def cummin(self, axis: int = 0) -> tuple[Self, Self]:
    """Running minimum along an axis, and where it is (the last place of equal ones) as int32; NaN from the first on."""
    if self.dtype.is_float:
      least, places = (-self).cummax(axis)
      return -least, places
    least, places = self.bitwise_not().cummax(axis)
    return least.bitwise_not(), places

  def logcumsumexp(self, axis: int = 0) -> Self:
    """log of the running sum of exp(x), without overflow."""
    wide, dtype = self._in_wide()
    axis = self._axis(axis)
    if not self.ndim or not self.shape[axis]: return wide._same().cast(dtype)
    last = wide.movedim(axis, -1)
    if not isinstance(last.shape[-1], Size) and last.shape[-1] > SHORT: return last._doubled().movedim(
      -1, axis).cast(dtype)
    top = last._still()._running(Ops.MAX)
    top = (top.abs() < math.inf).where(top, 0).unsqueeze(-1)
    size = last.shape[-1]
    mask = self._iota(size) <= self._iota(size).unsqueeze(1)
    apart = mask.where(last.unsqueeze(-2) - top, -math.inf).exp()
    return (apart.sum(-1).log() + top.squeeze(-1)).movedim(-1, axis).cast(dtype)

  def _doubled(self) -> Self:
    """logcumsumexp of the last axis: sums of 1, 2, 4 ... neighbours, each from two of half as many."""
    lead, size, found = self.ndim - 1, self.shape[-1], self.contiguous()
    for step in (1 << b for b in range((size - 1).bit_length())):
      before = found.shrink([*(None for _ in range(lead)), (0, size - step)])
      before = before._padded([(0, 0)] * lead + [(step, 0)], -math.inf)
      found = found._log_of_two(before).contiguous()
    return found

  def _log_of_two(self, other: Self) -> Self:
    """log(exp(x) + exp(y)), and how much of it each one is: nothing of nothing."""
    x, y = self._still(), other._still()
    top, same = x.maximum(y), x.eq(y)
    found = top + (same.where(0, (x - y).abs()) * -1).exp().log1p()
    def share(of: Self) -> Self: return found.eq(-math.inf).where(0, (of - found).exp())
    return found._with_derivative((self, lambda: share(x)), (other, lambda: share(y)))

  def diff(self, n: int = 1, axis: int = -1, prepend: Self | None = None, append: Self | None = None) -> Self:
    """Differences of neighbours along an axis, `n` times; of bools whether they differ."""
    axis = self._axis(axis)
    if not n: return self._same()
    parts = [t for t in (prepend, self, append) if t is not None]
    result = parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else self._same()
    for _ in range(n):
      size = result.shape[axis]
      if not size: break
      after, before = result.narrow(axis, 1, size - 1), result.narrow(axis, 0, size - 1)
      result = after.ne(before) if result.dtype.is_bool else after - before
    return result
