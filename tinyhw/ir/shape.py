"""Views of memory: how the elements of a tensor, moved by reshape, permute, expand, pad, shrink, flip, lie in a buffer.

A `View` is one affine map from indices to an element number, with a mask: a box of indices outside of which the value
is zero. A `ShapeTracker` is a chain of views, needed when a reshape cannot be told by one. Both are immutable values.
`ShapeTracker.expression` gives the exact element number and validity as UOps.

Sizes, strides, offsets and bounds of masks are ints or `Size`s. What holds for every value of their Variables is used;
where that is not known, a view is told in the more general way (one more view, a mask that may mask nothing).
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.size import Size, always_most, index, larger, smaller
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import Ops, UOp, movement_shape

Shape = tuple[int, ...]
Mask = tuple[tuple[int, int], ...]


def contiguous_strides(shape: Shape) -> Shape:
  """Row-major strides in elements; axes of size 1 have stride 0."""
  strides: list[int] = []
  step = 1
  for size in reversed(shape):
    strides.append(step if size != 1 else 0)
    step *= size
  return tuple(reversed(strides))


@dataclass(frozen=True)
class View:
  """Element `offset + sum(index * stride)`, valid where `low <= index < high` for each axis of the mask (None: all)."""
  shape: Shape
  strides: Shape
  offset: int = 0
  mask: Mask | None = None

  @staticmethod
  def contiguous(shape: Shape) -> View:
    """The row-major view of a whole buffer."""
    return View(shape, contiguous_strides(shape))

  @staticmethod
  def make(shape: Shape, strides: Shape, offset: int, mask: Mask | None) -> View:
    """The view in its one normal form: stride 0 on axes of size 1, no mask that masks nothing."""
    if mask is not None and all(bounds == (0, size) for bounds, size in zip(mask, shape)): mask = None
    if mask is not None and any(always_most(high, low) for low, high in mask): mask = ((0, 0),) * len(shape)
    # An axis of which one index is valid may as well not move: its step goes into the offset.
    bounds = mask if mask is not None else tuple((0, size) for size in shape)
    offset += sum(stride * low for stride, (low, high) in zip(strides, bounds) if high - low == 1)
    strides = tuple(0 if stride == 0 or high - low == 1 or always_most(high, low) else stride
                    for stride, (low, high) in zip(strides, bounds))
    return View(shape, strides, offset, mask)

  @property
  def is_contiguous(self) -> bool:
    """Whether element i of the tensor, in row-major order, is element i of the buffer."""
    return self.offset == 0 and self.mask is None and self.strides == contiguous_strides(self.shape)

  def permute(self, order: Sequence[int]) -> View:
    """Axis i of the result is axis order[i]."""
    return View(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order), self.offset,
                tuple(self.mask[i] for i in order) if self.mask is not None else None)

  def expand(self, shape: Shape) -> View:
    """Axes of size 1 repeat."""
    mask = self.mask
    if mask is not None:
      mask = tuple((0, new) if old == 1 != new and m == (0, 1) else (0, 0) if old == 1 != new else m
                   for old, new, m in zip(self.shape, shape, mask))
    return View.make(shape, self.strides, self.offset, mask)

  def shrink(self, bounds: Sequence[tuple[int, int]]) -> View:
    """Keeps start <= index < stop."""
    offset = self.offset + sum(start * stride for (start, _), stride in zip(bounds, self.strides))
    mask = self.mask
    if mask is not None:
      mask = tuple((smaller(larger(low - start, 0), stop - start), smaller(larger(high - start, 0), stop - start))
                   for (low, high), (start, stop) in zip(mask, bounds))
    return View.make(tuple(stop - start for start, stop in bounds), self.strides, offset, mask)

  def pad(self, padding: Sequence[tuple[int, int]]) -> View:
    """Adds masked indices before and after."""
    offset = self.offset - sum(before * stride for (before, _), stride in zip(padding, self.strides))
    mask = self.mask if self.mask is not None else tuple((0, size) for size in self.shape)
    mask = tuple((low + before, high + before) for (low, high), (before, _) in zip(mask, padding))
    shape = tuple(before + size + after for size, (before, after) in zip(self.shape, padding))
    return View.make(shape, self.strides, offset, mask)

  def flip(self, axes: Sequence[bool]) -> View:
    """Reverses the axes marked True."""
    offset = self.offset + sum((size - 1) * stride for size, stride, f in zip(self.shape, self.strides, axes) if f)
    mask = self.mask
    if mask is not None:
      mask = tuple((size - high, size - low) if f else (low, high)
                   for (low, high), size, f in zip(mask, self.shape, axes))
    return View(self.shape, tuple(-stride if f else stride for stride, f in zip(self.strides, axes)), offset, mask)

  def reshape(self, shape: Shape) -> View | None:
    """The same elements under another shape, or None when one view cannot tell it."""
    if shape == self.shape: return self
    if 0 in shape: return View.contiguous(shape)
    if self.is_contiguous: return View.contiguous(shape)
    if self.mask is not None and any(always_most(high, low) for low, high in self.mask):
      if not shape: return None  # a scalar has no axis whose mask could say that nothing is valid
      return View.make(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape))
    blocks = self._blocks()
    strides: list[int] = []
    mask: list[tuple[int, int]] = []
    sizes = list(shape)
    offset = self.offset
    # Blocks and new axes are matched from the last: a block is split into the axes whose sizes multiply to it.
    for size, stride, (low, high) in reversed(blocks):
      part: list[int] = []
      while (product := math.prod(part)) != size or (sizes and sizes[-1] == 1):
        if not sizes or product != size and always_most(size, product): return None
        part.append(sizes.pop())
      if len(part) > 1 and (low, high) != (0, size) and any(isinstance(s, Size) for s in (*part, low, high)):
        if sum(s != 1 for s in part) > 1: return None    # how a mask splits is not known
      step = stride
      for i, axis in enumerate(part):
        inner_low, inner_high = 0, axis
        if i == len(part) - 1 or math.prod(part[i + 1:]) == 1:
          inner_low, inner_high = low, high            # the outermost axis takes what is left of the mask
          low, high = 0, 1
        elif (low, high) != (0, axis * math.prod(part[i + 1:])):
          if low % axis == 0 and high % axis == 0: low, high = low // axis, high // axis
          elif low // axis == (high - 1) // axis:
            inner_low, inner_high = low % axis, (high - 1) % axis + 1
            low, high = low // axis, low // axis + 1
          else: return None
        else: low, high = low // axis, high // axis
        strides.append(step)
        mask.append((inner_low, inner_high))
        step *= axis
    if any(s != 1 for s in sizes): return None
    strides += [0] * len(sizes)
    mask += [(0, 1)] * len(sizes)
    return View.make(shape, tuple(reversed(strides)), offset, tuple(reversed(mask)))

  def _blocks(self) -> list[tuple[int, int, tuple[int, int]]]:
    """The axes merged as far as strides and mask allow: (size, stride of the innermost, mask). Size 1 axes vanish."""
    blocks: list[tuple[int, int, tuple[int, int]]] = []
    mask = self.mask if self.mask is not None else tuple((0, size) for size in self.shape)
    for size, stride, (low, high) in zip(self.shape, self.strides, mask):
      if size == 1: continue
      if blocks:
        outer, outer_stride, (outer_low, outer_high) = blocks[-1]
        one_row = outer_high - outer_low == 1
        if outer_stride == stride * size and ((low, high) == (0, size) or one_row):
          if not one_row: low, high = 0, (outer_high - outer_low) * size
          blocks[-1] = (outer * size, stride, (outer_low * size + low, outer_low * size + high))
          continue
      blocks.append((size, stride, (low, high)))
    return blocks or [(1, 0, (0, 1))]


@dataclass(frozen=True)
class ShapeTracker:
  """A chain of views: the last one is indexed by the tensor's indices, each gives the flat index of the one before, the
  first gives the element of the buffer."""
  views: tuple[View, ...]

  @staticmethod
  def contiguous(shape: Shape) -> ShapeTracker:
    """The row-major view of a buffer."""
    return _contiguous(shape)

  @property
  def shape(self) -> Shape: return self.views[-1].shape
  @property
  def is_contiguous(self) -> bool: return len(self.views) == 1 and self.views[0].is_contiguous

  def _with(self, view: View) -> ShapeTracker: return ShapeTracker((*self.views[:-1], view))

  def apply(self, op: Ops, arg: tuple[Any, ...]) -> ShapeTracker:
    """The tracker after a movement operation with that UOp's arg."""
    movement_shape(op, self.shape, arg)     # refuses an argument that does not fit
    last = self.views[-1]
    if op is Ops.RESHAPE:
      view = last.reshape(arg)
      return self._with(view) if view is not None else replace(self, views=(*self.views, View.contiguous(arg)))
    if op is Ops.PERMUTE: return self._with(last.permute(arg))
    if op is Ops.EXPAND: return self._with(last.expand(arg))
    if op is Ops.PAD: return self._with(last.pad(arg))
    if op is Ops.SHRINK: return self._with(last.shrink(arg))
    if op is Ops.FLIP: return self._with(last.flip(arg))
    raise InvalidArgument(f"{op.name} is no movement operation")

  def with_sizes(self, change: Callable[[Any], Any]) -> ShapeTracker:
    """The tracker with other sizes."""
    return ShapeTracker(tuple(View(*(change(part) for part in (v.shape, v.strides, v.offset, v.mask)))
                              for v in self.views))

  def expression(self, indices: Sequence[UOp], done: dict[UOp, UOp] | None = None) -> tuple[UOp, UOp]:
    """(element number, validity) at the indices, one index UOp per axis. The number is meant only where valid."""
    done = {} if done is None else done
    valid = UOp.const(dtypes.bool, True)
    at = list(indices)
    flat: UOp | None = None
    for view in reversed(self.views):
      if flat is not None: at = unflatten(flat, view.shape)
      flat = index(view.offset)
      for at_, stride in zip(at, view.strides):
        if stride != 0: flat = flat + at_ * stride
      for at_, size, (low, high) in zip(at, view.shape, view.mask or ()):
        if low != 0: valid = valid & (at_ >= low)
        if high != size: valid = valid & (at_ < high)
      flat = simplify(flat, done)
    assert flat is not None
    return flat, simplify(valid, done)


@functools.lru_cache(4096)
def _contiguous(shape: Shape) -> ShapeTracker: return ShapeTracker((View.contiguous(shape),))


def unflatten(flat: UOp, shape: Shape) -> list[UOp]:
  """The indices, one per axis, of the element that is number `flat` in row-major order."""
  indices: list[UOp] = []
  inner = 1
  for i, size in enumerate(reversed(shape)):
    at = flat // inner if inner != 1 else flat
    indices.append((at % size if i < len(shape) - 1 else at) if size != 1 else UOp.const(dtypes.index, 0))
    inner *= size
  return indices[::-1]


def move_indices(op: Ops, arg: tuple[Any, ...], shape: Shape, indices: Sequence[UOp],
                 done: dict[UOp, UOp]) -> tuple[list[UOp], UOp]:
  """(indices of the source, validity) for indices of a movement operation's result; `shape` is the source's."""
  valid = UOp.const(dtypes.bool, True)
  if op is Ops.RESHAPE:
    flat = UOp.const(dtypes.index, 0)
    for i, stride in zip(indices, contiguous_strides(arg)):
      if stride != 0: flat = flat + i * stride
    return [simplify(i, done) for i in unflatten(simplify(flat, done), shape)], valid
  if op is Ops.PERMUTE:
    source = list(indices)
    for k, axis in enumerate(arg): source[axis] = indices[k]
    return source, valid
  if op is Ops.EXPAND:
    return [UOp.const(dtypes.index, 0) if size == 1 else i for size, i in zip(shape, indices)], valid
  if op is Ops.SHRINK: return [simplify(i + start, done) for i, (start, _) in zip(indices, arg)], valid
  if op is Ops.FLIP:
    return [simplify((size - 1) - i, done) if f else i for i, size, f in zip(indices, shape, arg)], valid
  for i, size, (before, after) in zip(indices, shape, arg):     # PAD
    if before != 0: valid = valid & (i >= before)
    if after != 0: valid = valid & (i < size + before)
  return [simplify(i - before, done) for i, (before, _) in zip(indices, arg)], simplify(valid, done)
