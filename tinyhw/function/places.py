"""What reading and writing by index tensors is made of.

An element that an index names is the sum over its axis of what stands at the place that the index equals: the compiler
makes a load of that (`compile.fold`). Values that go to their places are a SCATTER.

A SCATTER is a kernel that makes the table, and one that stores into it, in a loop of kind ORDER
where one step needs what another has stored. It has no atomics, so there is one order and one
result on all devices. Running results find what came before in a table of one place, a radix sort
counts and places its bytes, and the gradient of indexing goes the same way.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.core.errors import InvalidType
from tinyhw.function.joining import Joining
from tinyhw.function.movement import iota
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import ScatterArg, UOp

if TYPE_CHECKING:
  from typing import Self


def chosen(match: UOp, values: UOp, inside: UOp, axes: Sequence[int]) -> UOp:
  """The value along the axes where the match is True, which is True once at most: where `inside`, else it is 0. The
  axes get size 1."""
  if values.dtype.is_bool: return match.alu(Ops.AND, values).reduce(Ops.MAX, axes)
  # Nothing changes by adding -0.0, not even the sign of a zero.
  zero = UOp.const(values.dtype, -0.0 if values.dtype.is_float else 0, match.device, match.shape)
  total = match.where(values, zero).reduce(Ops.ADD, axes)
  if not values.dtype.is_float: return total
  return inside.where(total, UOp.const(values.dtype, 0, match.device, total.shape))


def picked(table: UOp, index: UOp, axis: int) -> UOp:
  """The elements of a table that an index names on an axis, 0 where there are none such; the other axes are alike. The
  gradient goes to the elements."""
  size, device = table.shape[axis], table.device
  assert device is not None, "a table is somewhere"
  shape = (*index.shape, size)
  order = (*(a for a in range(len(table.shape)) if a != axis), axis)
  wide = table.permute(order)
  wide = wide.reshape((*wide.shape[:axis], 1, *wide.shape[axis:])).expand(shape)
  place = index.reshape((*index.shape, 1))
  count = iota(size, device).cast(index.dtype).reshape((*(1,) * len(index.shape), size)).expand(shape)
  end = iota(size + 1, device).shrink(((size, size + 1),)).cast(index.dtype).reshape((1,) * len(shape))
  inside = (place < place.const_like(0)).logical_not().alu(Ops.AND, place < end.expand(place.shape))
  found = chosen(place.expand(shape).eq(count), wide, inside, (len(shape) - 1,)).reshape(index.shape)
  return UOp(Ops.GATHER, table.dtype, (found, table, index), axis)


class Places(Joining):
  """Reading and writing along an axis."""
  __slots__ = ()

  def _places(self) -> Self:
    """This index in a type that counts elements, without wrapping: what is too large for one is in no axis."""
    if not self.dtype.is_int: raise InvalidType(f"an index tensor of {self.dtype}", hint="use integers")
    return self.cast(dtypes.int32 if self.dtype.bits < 32 or self.dtype is dtypes.int32 else dtypes.int64)

  def _counted(self, size: int) -> Self:
    """This index along an axis of a size as int32: from the front; outside of the axis where it names nothing."""
    place = self._places()
    place = (place < 0).where(place + size, place)
    if place.dtype is dtypes.int32: return place
    return ((place >= 0) & (place < size)).where(place, -1).cast(dtypes.int32)

  def _picked(self, mask: Self, axes: Sequence[int], inside: Self) -> Self:
    """The element along the axes where the mask is True, which is True once at most: where `inside`, else it is 0. The
    axes get size 1."""
    *_, values = self._together(mask, promotes=False)[::-1]
    match = mask._together(self, promotes=False)[0]
    shape = tuple(1 if a in axes else s for a, s in enumerate(match.shape))
    there = inside.uop.reshape((1,) * (len(shape) - inside.ndim) + inside.shape)
    return self._derive(chosen(match, values, there.expand(shape), axes))

  def _picked_by(self, axis: int, place: Self) -> Self:
    """The elements that an index along an axis, as `_counted` gives it, names: 0 where it names none."""
    return self._derive(picked(self.uop, place.uop, axis))

  def _scattered(self, axis: int, place: Self, values: Self, op: Ops | None = None, *, unique: bool = False,
                 before: bool = False, whole: bool = False) -> Self:
    """This with the values at the places of an axis (`_counted`), in their order; see SCATTER."""
    how = ScatterArg(axis, op, unique, before, whole)
    return self._wrap(self.uop.scatter(place.uop, values.uop, how), self, values)
