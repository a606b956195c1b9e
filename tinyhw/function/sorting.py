"""Functions of order: sort, the greatest ones, what is unique, where a number belongs.

The place of an element in the sorted axis is how many come before it: that is a comparison of all with all and a sum,
and the element for a place is picked by it. NaN counts as the greatest; equal elements keep their order.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.scan import Scan
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self


class Sorting(Scan):
  """The functions of order."""
  __slots__ = ()

  def _less(self, other: Self) -> Self:
    """Whether this comes before the other: NaN is the greatest."""
    if not self.dtype.is_float: return self < other
    return (self < other) | (other.isnan() & self.isnan().logical_not())

  def _ranks(self, descending: bool) -> Self:
    """The place of each element of the last axis in the sorted one, as int32."""
    size = self.shape[-1]
    x = self._still()
    mine, theirs = x.unsqueeze(-1), x.unsqueeze(-2)
    before, behind = (mine._less(theirs), theirs._less(mine)) if descending else (theirs._less(mine),
                                                                                  mine._less(theirs))
    earlier = self._iota(size) < self._iota(size).unsqueeze(1)
    return (before | (behind.logical_not() & earlier)).sum(-1)

  def _sorted(self, axis: int, descending: bool, count: int | None = None) -> tuple[Self, Self]:
    """The first `count` elements of the sorted axis, and where they were."""
    axis = self._axis(axis)
    if not self.ndim: return self._same(), self._wrap(self._const(0, dtypes.int32))
    last = self.movedim(axis, -1)
    size = last.shape[-1]
    ranks = last._ranks(descending).contiguous()
    place = ranks.unsqueeze(-2) == self._iota(size if count is None else count).unsqueeze(1)
    values = last.unsqueeze(-2)._picked(place, (last.ndim,), self._wrap(self._const(True, dtypes.bool,
                                                                                    (1,)))).squeeze(-1)
    at = place.where(self._iota(size), 0).sum(-1)
    return values.movedim(-1, axis), at.movedim(-1, axis)

  def sort(self, axis: int = -1, descending: bool = False, stable: bool = True) -> tuple[Self, Self]:
    """The elements along an axis in order, and where they were, as int32."""
    return self._sorted(axis, descending)

  def argsort(self, axis: int = -1, descending: bool = False, stable: bool = True) -> Self:
    """Where the elements along an axis are in order, as int32."""
    return self._sorted(axis, descending)[1]

  def msort(self) -> Self:
    """Sorted along the first axis."""
    return self._sorted(0, False)[0]

  def topk(self, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Self, Self]:
    """The `k` greatest elements along an axis (or the least), in order, and where they were, as int32."""
    size = self.shape[self._axis(axis)] if self.ndim else 1
    if not 0 <= k <= size: raise InvalidShape(f"topk of {k} out of the {size} elements of axis {axis}")
    return self._sorted(axis, largest, k)

  def kthvalue(self, k: int, axis: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
    """The `k`-th least element along an axis, counted from 1, and where it was."""
    size = self.shape[self._axis(axis)] if self.ndim else 1
    if not 1 <= k <= size: raise InvalidShape(f"the {k}-th of the {size} elements of axis {axis}")
    values, at = self._sorted(axis, False, k)
    if not self.ndim: return values, at
    found = values.narrow(axis, k - 1, 1), at.narrow(axis, k - 1, 1)
    return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))

  def median(self, axis: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lesser of two; NaN where there is one. Along an axis also where it was."""
    if axis is None:
      if not self.numel(): raise InvalidArgument(f"median over no elements of shape {self.shape} has no value")
      return self.flatten().median(0)[0]
    size = self.shape[self._axis(axis)] if self.ndim else 1
    values, at = self.kthvalue((size + 1) // 2, axis, keepdim)
    if not self.dtype.is_float or not self.ndim: return values, at
    broken = self.isnan().any(axis, keepdim)
    return broken.where(math.nan, values), broken.where(self.isnan().cast(dtypes.int32).argmax(axis, keepdim), at)

  def quantile(self, q: float | Self, axis: int | None = None, keepdim: bool = False,
               interpolation: str = "linear") -> Self:
    """The element below which a part `q` of the others is, between neighbours by `interpolation`; NaN where there is
    one.
    Several `q` are a new first axis."""
    names = ("linear", "lower", "higher", "midpoint", "nearest")
    if interpolation not in names:
      raise InvalidArgument(f"interpolation {interpolation!r} is none of {', '.join(names)}")
    shape = (1,) * self.ndim if axis is None else None
    x = self.flatten() if axis is None else self.movedim(axis, -1)
    size = x.shape[-1]
    if not size: raise InvalidArgument(f"quantile over no elements of shape {self.shape} has no value")
    values = x._sorted(-1, False)[0]
    values = x.isnan().any(-1, keepdim=True).where(math.nan, values)
    part: Any = q if isinstance(q, Sorting) else self._wrap(self._const(q, dtype=self.dtype, shape=()))
    at = (part * (size - 1)).reshape(-1)
    below, above = at.floor(), at.ceil()
    def pick(place: Self) -> Self:
      found: Self = values[(..., place.cast(dtypes.int32))]
      return found
    if interpolation == "linear": found = pick(below) + (pick(above) - pick(below)) * (at - below)
    elif interpolation == "midpoint": found = (pick(below) + pick(above)) / 2
    else: found = pick({"lower": below, "higher": above, "nearest": at.round()}[interpolation])
    found = found.movedim(-1, 0)
    if keepdim: found = found.reshape(-1, *shape) if shape else found.unsqueeze(self._axis(axis or 0) + 1)
    result: Self = found.squeeze(0) if part.ndim == 0 else found
    return result

  def mode(self, axis: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
    """The most frequent element along an axis, the least of several, and the last place where it is."""
    axis = self._axis(axis)
    if not self.ndim: return self._same(), self._wrap(self._const(0, dtypes.int32))
    last = self.movedim(axis, -1)
    size = last.shape[-1]
    still = last._still()
    count = (still.unsqueeze(-1) == still.unsqueeze(-2)).sum(-1)
    # Of the most frequent the least: of all elements the one with the least rank.
    often = count == count.max(-1, keepdim=True)
    best = often.where(size - last._ranks(False), 0)
    chosen = still._picked(best == best.max(-1, keepdim=True), (last.ndim - 1,),
                           self._wrap(self._const(True, dtypes.bool, (1,))))
    at = (still == chosen).where(self._iota(size), -1).max(-1, keepdim=True)
    values, places = last.gather(-1, at).movedim(-1, axis), at.movedim(-1, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))

  def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The flat elements without repetitions of the one before; where each element went; how often each was repeated."""
    flat = self.flatten()
    size = flat.numel()
    new = flat.narrow(0, 0, min(size, 1)).eq(flat.narrow(0, 0, min(size, 1))).logical_or(True)
    if size > 1: new = new.cat(flat.narrow(0, 1, size - 1).ne(flat.narrow(0, 0, size - 1)))
    values = flat.masked_select(new)
    inverse = new.cast(dtypes.int32).cumsum(0) - 1
    counts = (self._iota(values.numel()).unsqueeze(1) == inverse).sum(1)
    found = [values, *([inverse.reshape(self.shape)] if return_inverse else []), *([counts] if return_counts else [])]
    return found[0] if len(found) == 1 else tuple(found)

  # *** where numbers belong ***

  def searchsorted(self, values: Any, *, right: bool = False) -> Self:
    """Where the values belong in this sorted last axis, as int32: before what is equal, or behind it."""
    found: Any = self._operand(values)
    sequence = self.unsqueeze(-2) if self.ndim > 1 else self
    below: Self = sequence <= found.unsqueeze(-1) if right else sequence < found.unsqueeze(-1)
    return below.sum(-1)

  def bucketize(self, boundaries: Self, *, right: bool = False) -> Self:
    """Between which of the sorted boundaries each element is, as int32."""
    return boundaries.searchsorted(self, right=right)

  def isin(self, others: Any) -> Self:
    """Whether each element is one of the others."""
    found = self._operand(others).reshape(-1)
    if not found.numel(): return self._wrap(self._const(False, dtypes.bool))
    result: Self = (self.unsqueeze(-1) == found).any(-1)
    return result

  def bincount(self, weights: Self | None = None, minlength: int = 0) -> Self:
    """How often each number from 0 on occurs, or the sum of the weights where it does; the greatest one is read."""
    if self.ndim != 1 or not self.dtype.is_int: raise InvalidShape(f"bincount of {self.dtype} of shape {self.shape}",
                                                                    hint="it is for a vector of integers")
    size = max(minlength, int(self._extreme_value()) + 1 if self.numel() else 0)
    match = self._iota(size).unsqueeze(1) == self
    if weights is None: return match.sum(-1)
    return match.where(weights, 0).sum(-1)

  def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Self:
    """How many elements are in each of the equal intervals of min..max; of the elements' own range when both are
    equal."""
    x = self.flatten()
    low: Any = min if min != max else x.min()
    high: Any = max if min != max else x.max()
    place: Self = ((x - low) * (bins / (high - low))).floor()
    place = (x == high).where(bins - 1, place)
    inside: Self = (x >= low) & (x <= high)
    match: Self = (self._iota(bins).cast(x.dtype).unsqueeze(1) == place) & inside
    return match.sum(-1).cast(self.dtype)

  def unique(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """The different elements in order; where each element is among them; how often each occurs. How many is read."""
    flat = self.flatten()
    if not flat.numel(): values, counts = flat, flat.cast(dtypes.int32)
    else:
      order, _ = flat._sorted(0, False)
      first = order.narrow(0, 0, 1).cast(dtypes.int32) * 0 + 1
      new = first.bool().cat(order.narrow(0, 1, flat.numel() - 1).ne(order.narrow(0, 0, flat.numel() - 1)))
      values = order.masked_select(new)
      counts = (values.unsqueeze(1) == flat).sum(1)
    inverse = (values.unsqueeze(0)._less(flat.unsqueeze(1))).sum(1).reshape(self.shape)
    found = [values, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return found[0] if len(found) == 1 else tuple(found)
