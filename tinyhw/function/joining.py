"""Functions that put tensors beside each other, take them apart, and add elements around them."""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidIndex, InvalidMode, InvalidShape
from tinyhw.function.core import ConstType, broadcast_shape, fitting, scalar_dtype
from tinyhw.function.movement import Movement
from tinyhw.function.spelling import of_several
from tinyhw.ir.dtype import dtypes, promote
from tinyhw.ir.size import Size, larger, plain

if TYPE_CHECKING:
  from typing import Self

Padding = Sequence[tuple[int, int] | None]
MODES = ("constant", "reflect", "replicate", "circular")

MOST_PIECES = 1 << 16  # of an axis that has not so many elements: the others would be empty


class Joining(Movement):
  """The functions that join, split and pad."""
  __slots__ = ()

  # *** padding ***

  def pad(self, padding: int | Sequence[int] | Padding, mode: str = "constant", value: ConstType | None = None) -> Self:
    """Elements added around: ((before, after) or None for each axis), or a flat list (before, after) from the last
    axis on. `mode` says which: a constant `value` (0), or the tensor's own: "reflect" (without the border itself),
    "replicate" (the border's) or "circular" (from the other end). A negative padding cuts."""
    if mode not in MODES: raise InvalidMode(f"padding mode {mode!r} is none of {', '.join(MODES)}")
    if mode != "constant" and value is not None: raise InvalidArgument(f"padding mode {mode!r} takes no value")
    full = self._padding(padding)
    grown = tuple((larger(b, 0), larger(a, 0)) for b, a in full)
    def cut(x: Self) -> Self: return x.shrink([(larger(-b, 0), s - larger(-a, 0)) for s, (b, a) in zip(x.shape, full)])
    if mode == "constant": return cut(self)._padded(grown, 0 if value is None else value)._same()
    # What is cut away may have been repeated before, but not by going around.
    result = cut(self) if mode == "circular" else self
    for axis, (before, after) in enumerate(grown):
      if before or after: result = result._extended(axis, before, after, mode)
    return (result if mode == "circular" else cut(result))._same()      # no view, also where nothing is added

  def _padding(self, padding: int | Sequence[int] | Padding) -> tuple[tuple[int, int], ...]:
    """(before, after) of each axis."""
    if isinstance(padding, (int, Size)): return ((plain(padding), plain(padding)),) * self.ndim
    if padding and all(isinstance(p, (int, Size)) for p in padding):
      flat: list[int] = [plain(p) for p in padding]  # type: ignore[arg-type]  # all of them are ints
      if len(flat) % 2 or len(flat) > 2 * self.ndim:
        raise InvalidShape(f"padding {padding} of shape {self.shape}", hint="give (before, after) for the last axes")
      pairs = list(zip(flat[::2], flat[1::2]))[::-1]
      return ((0, 0),) * (self.ndim - len(pairs)) + tuple(pairs)
    full = tuple((0, 0) if p is None else tuple(map(plain, p))  # type: ignore[arg-type]  # none is an int
                 for p in padding)
    if len(full) > self.ndim or any(len(p) != 2 for p in full) or padding and len(full) != self.ndim:
      raise InvalidShape(f"padding {padding} of shape {self.shape}", hint="give (before, after) for each axis")
    return full or ((0, 0),) * self.ndim  # type: ignore[return-value]  # each has two ints

  def pad_to(self, *shape: Any, value: ConstType = 0) -> Self:
    """Zeros, or another value, behind the last elements of each axis, up to these sizes (None: the axis stays)."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if len(sizes) != self.ndim or any(n is not None and n < s for n, s in zip(sizes, self.shape)):
      raise InvalidShape(f"pad of shape {self.shape} to {sizes}")
    return self._padded([(0, 0 if n is None else n - s) for n, s in zip(sizes, self.shape)], value)

  def _padded(self, padding: Sequence[tuple[int, int]], value: ConstType) -> Self:
    padded = self._grown(padding)
    if self.dtype.is_bool: value = bool(value)
    if scalar_dtype(value, self.dtype) is self.dtype: fitting(value, self.dtype)
    if value == 0 and math.copysign(1, value) > 0: return padded
    inside = self._wrap(self._const(True, dtypes.bool).pad(tuple(padding)))
    return inside.where(padded, value)

  def _extended(self, axis: int, before: int, after: int, mode: str) -> Self:
    """An axis longer by its own elements."""
    size = self.shape[axis]
    most = {"reflect": size - 1, "circular": size, "replicate": before + after if size else 0}[mode]
    if max(before, after) > most:
      raise InvalidShape(f"{mode} padding by {before}, {after} of axis {axis} of shape {self.shape}",
                         hint=f"at most {most} on a side")
    if mode == "circular":
      times = self.repeat([3 if i == axis else 1 for i in range(self.ndim)])
      return times.narrow(axis, size - before, before + size + after)
    if mode == "reflect":
      parts = [self.narrow(axis, 1, before).flip(axis), self, self.narrow(axis, size - 1 - after, after).flip(axis)]
    else:
      first, last = self.narrow(axis, 0, 1), self.narrow(axis, size - 1, 1)
      def wide(x: Self, n: int) -> Self: return x.expand([n if i == axis else s for i, s in enumerate(x.shape)])
      parts = [wide(first, before), self, wide(last, after)]
    head, *rest = (p for p in parts if p.shape[axis])
    return head.cat(*rest, dim=axis)

  # *** joining ***

  @of_several("dim")
  def cat(self, *others: Self, dim: int = 0) -> Self:
    """Joined with others along an axis. (An empty tensor of one axis joins anything, as in PyTorch.)"""
    tensors = [t for t in (self, *others) if t.shape != (0,)] or [self]
    first = tensors[0]
    dim = first._axis(dim)
    for t in tensors[1:]:
      if t.shape[:dim] + t.shape[dim + 1:] != first.shape[:dim] + first.shape[dim + 1:] or t.ndim != first.ndim:
        raise InvalidShape(f"shapes {', '.join(str(x.shape) for x in tensors)} do not join along axis {dim}")
    if not first.ndim: raise InvalidIndex("tensors of shape () have no axis to join along", hint="use stack")
    dtype = promote(*(t.dtype for t in (self, *others)))
    pieces = [t.cast(dtype) for t in tensors if t.shape[dim]]
    if not pieces: return first.cast(dtype)._same()
    if len(pieces) == 1: return pieces[0]._same()
    total, start = sum(t.shape[dim] for t in pieces), 0
    result: Self | None = None
    for t in pieces:
      size = t.shape[dim]
      padding = [(start, total - start - size) if i == dim else (0, 0) for i in range(first.ndim)]
      piece = t._grown(padding)
      # Chosen, not added: no bit of an element changes.
      if result is None: result = piece
      else: result = self._wrap(self._const(True, dtypes.bool, t.shape).pad(tuple(padding))).where(piece, result)
      start += size
    assert result is not None
    return result
  concat = cat
  concatenate = cat

  @of_several("dim")
  def stack(self, *others: Self, dim: int = 0) -> Self:
    """Joined with others of the same shape along a new axis."""
    for t in others:
      if t.shape != self.shape: raise InvalidShape(f"shapes {self.shape} and {t.shape} do not stack: they differ")
    return self.unsqueeze(dim).cat(*(t.unsqueeze(dim) for t in others), dim=self._axis(dim, extra=1))

  @of_several()
  def hstack(self, *others: Self) -> Self:
    """Joined along axis 1, vectors along their only one."""
    parts = [t._at_least(1) for t in (self, *others)]
    return parts[0].cat(*parts[1:], dim=0 if parts[0].ndim == 1 else 1)

  @of_several()
  def vstack(self, *others: Self) -> Self:
    """Joined along axis 0, where vectors are rows."""
    parts = [t._at_least(2) for t in (self, *others)]
    return parts[0].cat(*parts[1:], dim=0)
  row_stack = vstack

  @of_several()
  def dstack(self, *others: Self) -> Self:
    """Joined along axis 2; vectors are rows first, and get a new last axis."""
    parts = [t if t.ndim > 2 else t._at_least(2).unsqueeze(-1) for t in (self, *others)]
    return parts[0].cat(*parts[1:], dim=2)

  @of_several()
  def column_stack(self, *others: Self) -> Self:
    """Joined along axis 1, where vectors are columns."""
    parts = [t.reshape(-1, 1) if t.ndim < 2 else t for t in (self, *others)]
    return parts[0].cat(*parts[1:], dim=1)

  @of_several()
  def broadcast_tensors(self, *others: Self) -> tuple[Self, ...]:
    """All expanded to their common shape."""
    shape = broadcast_shape(*(t.shape for t in (self, *others)))
    return tuple(t.expand(shape) for t in (self, *others))

  @of_several("indexing")
  def meshgrid(self, *others: Self, indexing: str = "ij") -> tuple[Self, ...]:
    """The vectors expanded to a common grid, each along an axis of its own; "xy" exchanges the first two."""
    if indexing not in ("ij", "xy"): raise InvalidArgument(f'indexing {indexing!r} is neither "ij" nor "xy"')
    vectors = [t.reshape(-1) for t in (self, *others)]
    if any(t.ndim > 1 for t in (self, *others)): raise InvalidShape("meshgrid is for vectors and scalars")
    n = len(vectors)
    shape = tuple(v.numel() for v in vectors)
    grids = tuple(v.reshape(tuple(-1 if i == k else 1 for i in range(n))).expand(shape) for k, v in enumerate(vectors))
    return grids if indexing == "ij" or n < 2 else tuple(g.transpose(0, 1) for g in grids)

  @of_several()
  def cartesian_prod(self, *others: Self) -> Self:
    """Every combination of elements of the vectors, one a row."""
    if not others: return self._same()
    grids = self.meshgrid(*others)
    flat = [g.reshape(-1) for g in grids]
    return flat[0].stack(*flat[1:], dim=-1)

  @of_several()
  def atleast_1d(self, *others: Self) -> Any:
    """With one axis at least; of several tensors all of them."""
    return self._each_at_least(1, others)

  @of_several()
  def atleast_2d(self, *others: Self) -> Any:
    """With two axes at least; of several tensors all of them."""
    return self._each_at_least(2, others)

  @of_several()
  def atleast_3d(self, *others: Self) -> Any:
    """With three axes at least (a matrix gets a new last one); of several tensors all of them."""
    found = tuple(t._at_least(2).unsqueeze(-1) if t.ndim < 3 else t for t in (self, *others))
    return found if others else found[0]

  def _each_at_least(self, axes: int, others: tuple[Self, ...]) -> Any:
    found = tuple(t._at_least(axes) for t in (self, *others))
    return found if others else found[0]

  # *** splitting ***

  def split(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[Self, ...]:
    """Cut along an axis into pieces of that size (the last may be smaller), or of those sizes."""
    axis = self._axis(axis)
    if not self.shape: raise InvalidShape("a tensor of shape () has no axis to split")
    total = self.shape[axis]
    if isinstance(sizes, (int, Size)):
      if sizes < 0 or sizes == 0 and total: raise InvalidShape(f"pieces of {sizes} along axis {axis}")
      lengths = [min(sizes, total - i) for i in range(0, total, sizes)] if total else [0]
    else: lengths = list(sizes)
    if sum(lengths) != total or any(n < 0 for n in lengths):
      raise InvalidShape(f"sizes {lengths} do not add up to {total}, the size of axis {axis}")
    starts = itertools.accumulate(lengths, initial=0)
    return tuple(self.narrow(axis, start, size) for start, size in zip(starts, lengths))

  def chunk(self, count: int, axis: int = 0) -> tuple[Self, ...]:
    """Cut along an axis into at most `count` pieces of one size (the last may be smaller)."""
    if not self.shape: raise InvalidShape("a tensor of shape () has no axis to split")
    size = self.shape[self._axis(axis)]
    if count < 1 or not size and count > MOST_PIECES: raise InvalidArgument(f"{count} chunks of {size} elements")
    return self.split(-(-size // count), axis) if size else self.split([0] * count, axis)

  def split_with_sizes(self, sizes: Sequence[int], axis: int = 0) -> tuple[Self, ...]:
    """Cut along an axis into pieces of these sizes."""
    return self.split(list(sizes), axis)

  def unsafe_chunk(self, count: int, axis: int = 0) -> tuple[Self, ...]:
    """As `chunk`: pieces are values of their own anyway."""
    return self.chunk(count, axis)

  def unsafe_split(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[Self, ...]:
    """As `split`: pieces are values of their own anyway."""
    return self.split(sizes, axis)

  def tensor_split(self, sections: Any, axis: int = 0) -> tuple[Self, ...]:
    """Cut along an axis into that many pieces (the first ones are longer by one), or before those positions."""
    axis = self._axis(axis)
    total = self.shape[axis]
    if hasattr(sections, "tolist"): sections = sections.tolist()
    if isinstance(sections, int):
      if not 1 <= sections <= max(total, MOST_PIECES): raise InvalidArgument(f"{sections} sections of {total} elements")
      short, longer = divmod(total, sections)
      return self.split([short + (i < longer) for i in range(sections)], axis)
    marks = [slice(0, s).indices(total)[1] for s in sections]
    ends = [0, *marks, total]
    return tuple(self.narrow(axis, start, max(stop - start, 0)) for start, stop in zip(ends, ends[1:]))

  def hsplit(self, sections: int | Sequence[int]) -> tuple[Self, ...]:
    """`tensor_split` along axis 1, of a vector along its only one."""
    return self.tensor_split(sections, 0 if self.ndim == 1 else 1)
  def vsplit(self, sections: int | Sequence[int]) -> tuple[Self, ...]:
    """`tensor_split` along axis 0."""
    return self.tensor_split(sections, 0)
  def dsplit(self, sections: int | Sequence[int]) -> tuple[Self, ...]:
    """`tensor_split` along axis 2."""
    return self.tensor_split(sections, 2)

  def unbind(self, axis: int = 0) -> tuple[Self, ...]:
    """The elements along an axis, without it."""
    axis = self._axis(axis)
    if not self.shape: raise InvalidShape("a tensor of shape () has no axis to go along")
    return tuple(self.select(axis, i) for i in range(self.shape[axis]))

  def select(self, axis: int, index: int) -> Self:
    """One position of an axis, without it."""
    axis = self._axis(axis)
    size = self.shape[axis] if self.shape else 0
    if not -size <= index < size: raise InvalidIndex(f"index {index} of axis {axis} of shape {self.shape}")
    return self.narrow(axis, index % size, 1).squeeze(axis)

  def repeat_interleave(self, repeats: int | Sequence[int] | Self, axis: int | None = None, *,
                        output_size: int | None = None) -> Self:
    """Each element `repeats` times in a row; a number for each position of the axis says it for each. `output_size`:
    what the axis's size will be, which need not be said."""
    if output_size is not None:
      found = self.repeat_interleave(repeats, axis)
      if (size := found.shape[axis or 0]) != output_size:
        raise InvalidShape(f"repeat_interleave to a size of {size}, not {output_size}")
      return found
    if axis is None: return self.flatten().repeat_interleave(repeats, 0)
    axis = self._axis(axis)
    shape = self.shape
    if isinstance(repeats, int):
      if repeats < 0: raise InvalidArgument(f"{repeats} repeats")
      wide = self.unsqueeze(axis + 1).expand(*shape[:axis + 1], repeats, *shape[axis + 1:])
      return wide.reshape(*shape[:axis], shape[axis] * repeats, *shape[axis + 1:])
    # The result's shape depends on the numbers: they are read.
    times = list(repeats) if isinstance(repeats,
                                        Sequence) else repeats.tolist()  # type: ignore[attr-defined]  # a Tensor's
    if isinstance(times, int): return self.repeat_interleave(times, axis)
    if len(times) == 1: return self.repeat_interleave(times[0], axis)
    if len(times) != shape[axis]:
      raise InvalidShape(f"{len(times)} numbers of repeats for axis {axis} of shape {shape}")
    parts = [self.narrow(axis, i, 1).repeat_interleave(n, axis) for i, n in enumerate(times) if n]
    return parts[0].cat(*parts[1:], dim=axis) if parts else self.narrow(axis, 0, 0)
