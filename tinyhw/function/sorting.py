"""Functions of order: sort, the greatest ones, what is unique, where a number belongs.

The place of an element in a short axis is how many come before it: that is a comparison of all with all and a sum, and
the element for a place is picked by it. Longer axes are sorted by one byte of their bits after another, in stretches
that count theirs. NaN counts as the greatest; equal elements keep their order.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.core import broadcast_shape
from tinyhw.function.scan import Scan
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, highest

if TYPE_CHECKING:
  from typing import Self

SHORT = 64              # elements of an axis that are all compared with all
STRETCH = 1 << 10       # elements that one thread counts
FEW = 8                 # elements that topk finds one after another
_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


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
    if highest(size) > SHORT and not isinstance(size, Size):
      if count is not None and count <= FEW and count > 0: at = last._first_few(descending, count)
      else: at = last._order(descending).narrow(-1, 0, size if count is None else count)
      return last.gather(-1, at).movedim(-1, axis), at.movedim(-1, axis)
    ranks = last._ranks(descending).contiguous()
    place = ranks.unsqueeze(-2) == self._iota(size if count is None else count).unsqueeze(1)
    values = last.unsqueeze(-2)._picked(place, (last.ndim,), self._wrap(self._const(True, dtypes.bool,
                                                                                    (1,)))).squeeze(-1)
    at = place.where(self._iota(size), 0).sum(-1)
    return values.movedim(-1, axis), at.movedim(-1, axis)

  def _keys(self, descending: bool) -> Self:
    """Unsigned integers of the same order, or of the inverse one; a NaN is the greatest, the zeros are equal."""
    x = self._still()
    if x.dtype.is_bool: x = x.cast(dtypes.uint8)
    if x.dtype.is_float and x.dtype.bits_type is not None: x = x.cast(dtypes.float32)
    kind = _UNSIGNED[x.dtype.itemsize]
    top = 1 << (kind.bits - 1)
    if x.dtype.is_float:
      bits = (x + 0.0).bitcast(kind)
      keys = x.isnan().where(kind.max, (bits >= top).where(bits.bitwise_not(), bits.bitwise_xor(top)))
    else: keys = x.bitcast(kind).bitwise_xor(top) if x.dtype.is_signed else x
    return keys.cast(kind).bitwise_not() if descending else keys.cast(kind)

  def _order(self, descending: bool) -> Self:
    """Where the elements of the last axis are in order, as int32."""
    lead, size = self.shape[:-1], self.shape[-1]
    blocks = -(-size // STRETCH)
    length = -(-size // blocks)
    rows = math.prod(lead)
    keys = self._keys(descending).reshape(rows, size)
    # What is added is the greatest, and behind all of its like.
    keys = keys._padded([(0, 0), (0, blocks * length - size)], keys.dtype.max).contiguous()
    at = self._iota(blocks * length).expand(rows, blocks * length)
    made: Any = type(self)
    one = keys._wrap(keys._const(1, dtypes.int32, (rows, blocks, length)))
    for low in range(0, 8 if self.dtype.is_bool else keys.dtype.bits, 8):
      # A count of bits as data: each byte is done by the same kernels.
      byte = keys if keys.dtype.bits == 8 else keys.rshift(made([low], device=self.device, dtype=keys.dtype))
      byte = byte.bitwise_and(255).cast(dtypes.int32)
      byte = (byte if low == 0 else byte._picked_by(1, at)).reshape(rows, blocks, length).contiguous()
      none = one._wrap(one._const(0, shape=(rows, blocks, 256)))
      counts = none._scattered(2, byte, one, Ops.ADD)
      # Before a byte of a stretch are all lesser ones, and its like of the stretches before.
      line = counts.permute(0, 2, 1).reshape(rows, 256 * blocks)
      starts = (line._running(Ops.ADD) - line).reshape(rows, 256, blocks).permute(0, 2, 1)
      places = starts._scattered(2, byte, one, Ops.ADD, before=True).reshape(rows, blocks * length)
      at = at._scattered(1, places, at, unique=True, whole=True)
    return at.shrink([None, (0, size)]).reshape(self.shape)

  def _first_few(self, descending: bool, count: int) -> Self:
    """Where the first few elements of the last axis in order are, as int32: each is the greatest of those left."""
    size = self.shape[-1]
    keys = self._keys(not descending).contiguous()
    places = self._iota(size)
    found: list[Self] = []
    left = keys._wrap(keys._const(True, dtypes.bool))
    for _ in range(count):
      top = left.where(keys, 0).max(-1, keepdim=True)
      at = size - (left & keys.eq(top)).where(size - places, 0).max(-1, keepdim=True)
      found.append(at.contiguous())
      left = left & places.ne(found[-1])
    return found[0].cat(*found[1:], dim=-1)

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
    """The middle element, the lesser of two; NaN where there is one. Along an axis also where it was. Of all elements,
    equal ones share the gradient."""
    if axis is None:
      if not self.numel(): raise InvalidArgument(f"median over no elements of shape {self.shape} has no value")
      flat = self.flatten()
      return flat._shared(flat.median(0)[0])
    size = self.shape[self._axis(axis)] if self.ndim else 1
    values, at = self.kthvalue((size + 1) // 2, axis, keepdim)
    if not self.dtype.is_float or not self.ndim: return values, at
    broken = self.isnan().any(axis, keepdim)
    return broken.where(math.nan, values), broken.where(self.isnan().cast(dtypes.int32).argmax(axis, keepdim), at)

  def quantile(self, q: float | Self, axis: int | None = None, keepdim: bool = False,
               interpolation: str = "linear", _numbers: bool = False) -> Self:
    """The element below which a part `q` of the others is, between neighbours by `interpolation`; NaN where there is
    one. Several `q` are a new first axis."""
    names = ("linear", "lower", "higher", "midpoint", "nearest")
    if interpolation not in names:
      raise InvalidArgument(f"interpolation {interpolation!r} is none of {', '.join(names)}")
    shape = (1,) * self.ndim if axis is None else None
    x = self.flatten() if axis is None else self.movedim(axis, -1)
    size = x.shape[-1]
    if not size: raise InvalidArgument(f"quantile over no elements of shape {self.shape} has no value")
    values = x._sorted(-1, False)[0]
    if not _numbers: values = x.isnan().any(-1, keepdim=True).where(math.nan, values)
    part: Any = q if isinstance(q, Sorting) else self._wrap(self._const(q, dtype=self.dtype, shape=()))
    at = (part * (size - 1)).reshape(-1)
    if _numbers: at = part.reshape(-1) * (x.isnan().logical_not().sum(-1, keepdim=True) - 1).maximum(0)
    below, above = at.floor(), at.ceil()
    def pick(place: Self) -> Self:
      found: Self = values.gather(-1, place.cast(dtypes.int32)) if _numbers else values[(..., place.cast(dtypes.int32))]
      return found
    if interpolation == "linear": found = pick(below) + (pick(above) - pick(below)) * (at - below)
    elif interpolation == "midpoint": found = (pick(below) + pick(above)) / 2
    else: found = pick({"lower": below, "higher": above, "nearest": at.round()}[interpolation])
    found = found.movedim(-1, 0)
    if keepdim: found = found.reshape(-1, *shape) if shape else found.unsqueeze(self._axis(axis or 0) + 1)
    result: Self = found.squeeze(0) if part.ndim == 0 else found
    return result

  def _shared(self, found: Self) -> Self:
    """One of a vector's elements, with a gradient that all that are equal to it share."""
    if not self.dtype.is_float or not self._asked or self.numel() < 2: return found
    same = self._still().eq(found._still()) | self.isnan() & found.isnan()
    mean: Self = same.where(self, 0).sum() / same.sum()
    return found._still()._with_derivative((mean, lambda: mean.const_like(1)))

  def nanmedian(self, axis: int | None = None, keepdim: bool = False) -> Any:
    """The middle element of those that are numbers, the lesser of two; along an axis also where it was."""
    if axis is None:
      if not self.numel(): return self.median()
      flat = self.flatten()
      return flat._shared(flat.nanmedian(0)[0])
    if not self.dtype.is_float or not self.ndim: return self.median(axis, keepdim)
    values, at = self._sorted(axis, False)
    last = (self.isnan().logical_not().sum(axis, keepdim=True) - 1).maximum(0) // 2
    found = values.gather(axis, last), at.gather(axis, last)
    axis = self._axis(axis)
    return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))

  def nanquantile(self, q: float | Self, axis: int | None = None, keepdim: bool = False,
                  interpolation: str = "linear") -> Self:
    """As `quantile`, of the elements that are numbers."""
    return self.quantile(q, axis, keepdim, interpolation, True)

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
    values, inverse, counts = self.flatten()._runs()
    found = [values, *([inverse.reshape(self.shape)] if return_inverse else []), *([counts] if return_counts else [])]
    return found[0] if len(found) == 1 else tuple(found)

  # *** where numbers belong ***

  def searchsorted(self, values: Any, *, right: bool = False, side: str | None = None, sorter: Self | None = None,
                   out_int32: bool = True) -> Self:
    """Where the values belong in this sorted last axis, as int32 (int64 unless `out_int32`): before what is equal, or
    behind it (`right`, or side "right"). `sorter` are the positions that sort it."""
    if side not in (None, "left", "right"): raise InvalidArgument(f'side {side!r} is neither "left" nor "right"')
    if sorter is not None: return self.gather(-1, sorter).searchsorted(values, right=right, side=side,
                                                                       out_int32=out_int32)
    if not out_int32: return self.searchsorted(values, right=right, side=side).cast(dtypes.int64)
    right = right or side == "right"
    found: Any = self._operand(values)
    def below(number: Self) -> Self:                     # a NaN is above all numbers
      above: Self = number > found if right else number >= found
      return above.logical_not()
    size = self.shape[-1]
    if isinstance(size, Size) or size <= SHORT:
      found = found.unsqueeze(-1)
      dense: Self = below(self.unsqueeze(-2) if self.ndim > 1 else self).sum(-1)
      return dense
    # Halves of what is left, the greatest power of two first: how many are surely below.
    shape, sequence = found.shape, self._still()
    if self.ndim == 1: found = found.reshape(-1)
    else:
      lead = broadcast_shape(self.shape[:-1], shape[:-1])
      shape = (*lead, shape[-1])
      sequence, found = sequence.expand((*lead, size)), found.expand(shape)
    count: Self = found._wrap(found._const(0, dtypes.int32))
    for step in (1 << b for b in reversed(range(size.bit_length()))):
      more = count + step
      there = sequence.gather(-1, more.minimum(size) - 1)
      count = ((more <= size) & below(there)).where(more, count).contiguous()
    return count.reshape(shape)

  def bucketize(self, boundaries: Self, *, right: bool = False, out_int32: bool = True) -> Self:
    """Between which of the sorted boundaries each element is, as int32 (as int64 unless `out_int32`)."""
    return boundaries.searchsorted(self, right=right, out_int32=out_int32)

  def isin(self, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Self:
    """Whether each element is one of the others, or is none of them; whether these are unique makes no difference."""
    found = self._operand(test_elements).reshape(-1)
    if not found.numel(): return self._wrap(self._const(invert, dtypes.bool))
    result: Self = (self.unsqueeze(-1) == found).any(-1)
    return result.logical_not() if invert else result

  def bincount(self, weights: Self | None = None, minlength: int = 0) -> Self:
    """How often each number from 0 on occurs, or the sum of the weights where it does; the greatest one is read."""
    if self.ndim != 1 or not self.dtype.is_int: raise InvalidShape(f"bincount of {self.dtype} of shape {self.shape}",
                                                                    hint="it is for a vector of integers")
    size = max(minlength, int(self._extreme_value()) + 1 if self.numel() else 0)
    if weights is not None and not weights.dtype.is_float: weights = weights.double()
    what = self._wrap(self._const(1, dtypes.int32)) if weights is None else weights
    none = what._wrap(what._const(0, shape=(size,)))
    return none._scattered(0, self._counted(size), what, Ops.ADD)

  def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Self:
    """How many elements are in each of the equal intervals of min..max; of the elements' own range when both are
    equal."""
    x = self.flatten()
    if not x.numel(): return self._wrap(self._const(0, shape=(bins,)))
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
    order, places = flat._sorted(0, False)
    values, inverse, counts = order._runs()
    # Where the sorted element is among them, its own place is told.
    inverse = inverse._scattered(0, places, inverse, unique=True, whole=True) if flat.numel() else inverse
    found = [values, *([inverse.reshape(self.shape)] if return_inverse else []), *([counts] if return_counts else [])]
    return found[0] if len(found) == 1 else tuple(found)

  def _runs(self) -> tuple[Self, Self, Self]:
    """The elements of a vector without repetitions of the one before, the number of each one's run, and their lengths.
    """
    size = self.numel()
    if not size: return self, self.cast(dtypes.int32), self.cast(dtypes.int32)
    new = self._wrap(self._const(True, dtypes.bool, (1,)))
    if size > 1: new = new.cat(self.narrow(0, 1, size - 1).ne(self.narrow(0, 0, size - 1)))
    at, count = new._marked(None)
    ends = at.narrow(0, 1, count - 1).cat(at._wrap(at._const(size, shape=(1,))))
    return self[at], new.cast(dtypes.int32).cumsum(0) - 1, ends - at
