"""Functions that move elements without changing them: shapes, order, padding, slices, indexing, joining.

They cost nothing by themselves: the compiler turns a chain of them into index arithmetic of the kernel that
reads the elements.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.core import ConstType, broadcast_shape
from tinyhw.function.elementwise import Elementwise
from tinyhw.ir.dtype import dtypes, promote
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self

Padding = Sequence[tuple[int, int] | None]


def _flat(args: tuple[Any, ...]) -> tuple[int, ...]:
  """`f(2, 3)` and `f((2, 3))` mean the same."""
  if len(args) == 1 and isinstance(args[0], (tuple, list)): args = tuple(args[0])
  for a in args:
    if not isinstance(a, int): raise InvalidArgument(f"an int is needed in {args}, not {a!r}")
  return args


@dataclass
class Index:
  """An index in parts: for each axis the bounds and the step; the shape of the result; index tensors by axis of it."""
  bounds: list[tuple[int, int]] = field(default_factory=list)
  steps: list[int] = field(default_factory=list)
  shape: list[int] = field(default_factory=list)
  tensors: list[tuple[int, Any]] = field(default_factory=list)

  def add(self, bounds: tuple[int, int], step: int, size: int | None) -> None:
    """One more axis; it is not in the result when `size` is None."""
    self.bounds.append(bounds)
    self.steps.append(step)
    if size is not None: self.shape.append(size)

  @property
  def backward(self) -> tuple[bool, ...]:
    """Which axes are read from their end."""
    return tuple(s < 0 for s in self.steps)


class Movement(Elementwise):
  """The functions that move elements."""
  __slots__ = ()

  # *** shape ***

  def reshape(self, *shape: Any) -> Self:
    """The same elements in row-major order under another shape; one size may be -1."""
    new = _flat(shape)
    if new.count(-1) > 1: raise InvalidArgument(f"only one size of {new} may be -1")
    if -1 in new:
      known = -math.prod(new)
      new = tuple((self.numel() // known if known else 0) if s == -1 else s for s in new)
    if math.prod(new) != self.numel() or any(s < 0 for s in new):
      raise InvalidArgument(f"shape {self.shape} with {self.numel()} elements does not reshape to {_flat(shape)}")
    return self._derive(self.uop.reshape(new))
  view = reshape

  def flatten(self, start: int = 0, end: int = -1) -> Self:
    """Axes `start`..`end` joined into one."""
    start, end = self._axis(start), self._axis(end)
    if not self.shape: return self.reshape(1)
    return self.reshape(*self.shape[:start], math.prod(self.shape[start:end + 1]), *self.shape[end + 1:])

  def unflatten(self, axis: int, sizes: Sequence[int]) -> Self:
    """An axis split into several; one size may be -1."""
    axis = self._axis(axis)
    part = tuple(sizes)
    if -1 in part: part = tuple(self.shape[axis] // -math.prod(part) if s == -1 else s for s in part)
    return self.reshape(*self.shape[:axis], *part, *self.shape[axis + 1:])

  def squeeze(self, axis: int | None = None) -> Self:
    """Without the axes of size 1, or without that one if its size is 1."""
    if axis is None: return self.reshape(tuple(s for s in self.shape if s != 1))
    axis = self._axis(axis)
    one = bool(self.shape) and self.shape[axis] == 1
    return self.reshape(self.shape[:axis] + self.shape[axis + 1:] if one else self.shape)

  def unsqueeze(self, axis: int) -> Self:
    """With a new axis of size 1."""
    axis = self._axis(axis, extra=1)
    return self.reshape(self.shape[:axis] + (1,) + self.shape[axis:])

  def expand(self, *shape: Any) -> Self:
    """Axes of size 1 repeated to the new size (-1 keeps a size); new axes may be added in front."""
    new = _flat(shape)
    if len(new) < self.ndim: raise InvalidArgument(f"shape {self.shape} does not expand to {new}: it has more axes")
    old = (1,) * (len(new) - self.ndim) + self.shape
    wanted = tuple(o if n == -1 else n for o, n in zip(old, new))
    if any(o not in (1, n) for o, n in zip(old, wanted)):
      raise InvalidArgument(f"shape {self.shape} does not expand to {new}: only axes of size 1 do")
    return self._derive(self.uop.reshape(old).expand(wanted))
  broadcast_to = expand

  def expand_as(self, other: Elementwise) -> Self:
    """Expanded to the other's shape."""
    return self.expand(other.shape)

  # *** order ***

  def permute(self, *order: Any) -> Self:
    """Axis i of the result is axis `order[i]`."""
    axes = _flat(order)
    found = tuple(self._axis(a) for a in axes) if self.ndim else ()
    if sorted(found) != list(range(self.ndim)):
      raise InvalidArgument(f"{axes} is not an order of the {self.ndim} axes of shape {self.shape}")
    return self._derive(self.uop.permute(found))

  def transpose(self, axis0: int = 1, axis1: int = 0) -> Self:
    """Two axes exchanged."""
    order = list(range(self.ndim))
    a, b = self._axis(axis0), self._axis(axis1)
    if order: order[a], order[b] = order[b], order[a]
    return self.permute(order)
  swapaxes = transpose

  @property
  def T(self) -> Self:
    """All axes in reverse order."""
    return self.permute(tuple(range(self.ndim))[::-1])

  @property
  def mT(self) -> Self:
    """The last two axes exchanged."""
    return self.transpose(-1, -2)

  def movedim(self, source: int, target: int) -> Self:
    """One axis moved to another place."""
    order = list(range(self.ndim))
    order.insert(self._axis(target), order.pop(self._axis(source)))
    return self.permute(order)

  def flip(self, *axes: Any) -> Self:
    """Reversed along the axes (all, when none is named)."""
    chosen = self._axes(_flat(axes) if axes else None)
    return self._derive(self.uop.flip(tuple(i in chosen for i in range(self.ndim))))

  # *** padding and cutting ***

  def pad(self, padding: Sequence[int] | Padding, value: ConstType = 0) -> Self:
    """Elements added around: ((before, after) or None for each axis), or a flat list (before, after) from the last
    axis on."""
    if padding and all(isinstance(p, int) for p in padding):
      flat: list[int] = list(padding)  # type: ignore[arg-type]  # all of them are ints
      if len(flat) % 2 or len(flat) > 2 * self.ndim:
        raise InvalidArgument(f"padding {padding} of shape {self.shape}", hint="give (before, after) for the last axes")
      pairs = list(zip(flat[::2], flat[1::2]))[::-1]
      return self.pad([(0, 0)] * (self.ndim - len(pairs)) + pairs, value)
    full = tuple((0, 0) if p is None else tuple(p) for p in padding)  # type: ignore[arg-type]  # none is an int
    if len(full) != self.ndim or any(len(p) != 2 for p in full):
      raise InvalidArgument(f"padding {padding} of shape {self.shape}", hint="give (before, after) for each axis")
    # A negative padding cuts.
    cut = self.shrink([(max(-b, 0), s - max(-a, 0)) for s, (b, a) in zip(self.shape, full)])
    grown = tuple((max(b, 0), max(a, 0)) for b, a in full)
    padded = cut._derive(cut.uop.pad(grown))
    if value == 0 and math.copysign(1, value) > 0: return padded
    inside = self._wrap(self._const(True, dtypes.bool, cut.shape).pad(grown))
    return inside.where(padded, value)

  def shrink(self, bounds: Sequence[tuple[int, int] | None]) -> Self:
    """Keeps start <= i < stop of each axis (None: all of it)."""
    full = tuple((0, s) if b is None else (b[0], b[1]) for b, s in zip(bounds, self.shape))
    if len(bounds) != self.ndim or any(not 0 <= start <= stop <= s for (start, stop), s in zip(full, self.shape)):
      raise InvalidArgument(f"bounds {tuple(bounds)} do not fit shape {self.shape}")
    return self._derive(self.uop.shrink(full))

  def repeat(self, *repeats: Any) -> Self:
    """The whole tensor side by side, `repeats[i]` times along axis i."""
    times = _flat(repeats)
    if len(times) < self.ndim: raise InvalidArgument(f"{times} gives fewer repeats than shape {self.shape} has axes")
    shape = (1,) * (len(times) - self.ndim) + self.shape
    apart = self.reshape(tuple(itertools.chain.from_iterable((1, s) for s in shape)))
    spread = apart.expand(tuple(itertools.chain.from_iterable(zip(times, shape))))
    return spread.reshape(tuple(t * s for t, s in zip(times, shape)))

  def repeat_interleave(self, repeats: int, axis: int | None = None) -> Self:
    """Each element `repeats` times in a row."""
    if axis is None: return self.flatten().repeat_interleave(repeats, 0)
    axis = self._axis(axis)
    shape = self.shape
    wide = self.unsqueeze(axis + 1).expand(*shape[:axis + 1], repeats, *shape[axis + 1:])
    return wide.reshape(*shape[:axis], shape[axis] * repeats, *shape[axis + 1:])

  # *** joining and splitting ***

  def cat(self, *others: Self, dim: int = 0) -> Self:
    """Joined with others along an axis."""
    tensors = [self, *others]
    dim = self._axis(dim)
    for t in others:
      if t.shape[:dim] + t.shape[dim + 1:] != self.shape[:dim] + self.shape[dim + 1:] or t.ndim != self.ndim:
        raise InvalidArgument(f"shapes {', '.join(str(x.shape) for x in tensors)} do not join along axis {dim}")
    dtype = promote(*(t.dtype for t in tensors))
    pieces = [t.cast(dtype) for t in tensors if t.shape[dim]]
    if not pieces: return self.cast(dtype)
    total, start = sum(t.shape[dim] for t in pieces), 0
    result: Self | None = None
    for t in pieces:
      size = t.shape[dim]
      padding = [(start, total - start - size) if i == dim else (0, 0) for i in range(self.ndim)]
      piece = t.pad(padding)
      # Chosen, not added: no bit of an element changes.
      if result is None: result = piece
      else: result = self._wrap(self._const(True, dtypes.bool, t.shape).pad(tuple(padding))).where(piece, result)
      start += size
    assert result is not None
    return result

  def stack(self, *others: Self, dim: int = 0) -> Self:
    """Joined with others of the same shape along a new axis."""
    return self.unsqueeze(dim).cat(*(t.unsqueeze(dim) for t in others), dim=self._axis(dim, extra=1))

  def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
    """Cut along an axis into pieces of that size (the last may be smaller), or of those sizes."""
    dim = self._axis(dim)
    total = self.shape[dim]
    lengths = [min(sizes, total - i) for i in range(0, total, sizes)] if isinstance(sizes, int) else list(sizes)
    if sum(lengths) != total: raise InvalidArgument(f"sizes {lengths} do not add up to {total}, the size of axis {dim}")
    starts = itertools.accumulate(lengths, initial=0)
    before, after = [None] * dim, [None] * (self.ndim - dim - 1)
    return tuple(self.shrink([*before, (start, start + size), *after]) for start, size in zip(starts, lengths))

  def chunk(self, count: int, dim: int = 0) -> tuple[Self, ...]:
    """Cut along an axis into at most `count` pieces of one size (the last may be smaller)."""
    return self.split(max(1, -(-self.shape[self._axis(dim)] // count)), dim)

  def roll(self, shift: int, dim: int = 0) -> Self:
    """Moved along an axis, around its end."""
    dim = self._axis(dim)
    cut = (self.shape[dim] - shift) % max(self.shape[dim], 1)
    if cut == 0: return self._same()
    head, tail = self.split([cut, self.shape[dim] - cut], dim)
    return tail.cat(head, dim=dim)

  # *** indices ***

  def _iota(self, size: int) -> Self:
    """0, 1, ... size-1 as int32 on this device: the sum of the bits of the position, each a padded constant."""
    return self._wrap(iota(size, self.device))

  def _index(self, index: Any) -> Index:
    """What an index asks for, axis by axis."""
    items = list(index) if isinstance(index, tuple) else [index]
    if (n := sum(i is Ellipsis for i in items)) > 1: raise InvalidArgument("an index has at most one ellipsis")
    taken = sum(i is not None and i is not Ellipsis for i in items)
    if taken > self.ndim: raise InvalidArgument(f"{taken} indices for shape {self.shape}")
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[at:at + n] = [slice(None)] * (self.ndim - taken)
    found = Index()
    for item in items:
      if item is None: found.shape.append(1)
      else: self._index_axis(item, len(found.bounds), found)
    return found

  def _index_axis(self, item: Any, axis: int, found: Index) -> None:
    size = self.shape[axis]
    if not isinstance(item, Movement) and (isinstance(item, (list, tuple)) or getattr(item, "shape", ()) != ()):
      item = type(self)(item, device=self.device)  # type: ignore[call-arg]  # a Tensor is made of data
    if isinstance(item, Movement):
      if not item.dtype.is_int:
        raise InvalidArgument(f"an index tensor of {item.dtype}",
                              hint="use integers; for a mask use where, the shape cannot depend on values")
      found.tensors.append((len(found.shape), item))
      found.add((0, size), 1, size)
    elif isinstance(item, slice):
      try: start, stop, step = item.indices(size)
      except (TypeError, ValueError) as error: raise InvalidArgument(f"slice {item}: {error}") from None
      if not (count := len(range(start, stop, step))): found.add((0, 0), 1, 0)
      else:
        last = start + (count - 1) * step
        found.add((min(start, last), max(start, last) + 1), step, count)
    else:
      try: position = item.__index__()
      except (AttributeError, TypeError):
        raise InvalidArgument(f"{type(item).__name__} is not an index: {item!r}") from None
      if not -size <= position < size: raise IndexError(f"index {position} of axis {axis} of shape {self.shape}")
      found.add((position % size, position % size + 1), 1, None)

  def __getitem__(self, index: Any) -> Self:
    """NumPy's indexing: ints, slices with any step, None, ..., and integer tensors (out of range, these read 0)."""
    wanted = self._index(index)
    cut = self.shrink(wanted.bounds)
    if any(wanted.backward): cut = cut._derive(cut.uop.flip(wanted.backward))
    if any(abs(s) > 1 for s in wanted.steps): cut = cut._every([abs(s) for s in wanted.steps])
    result = cut.reshape(tuple(wanted.shape))
    return result._take(wanted.tensors) if wanted.tensors else result

  def _placed(self, wanted: Index, shape: tuple[int, ...]) -> Self:
    """The inverse of indexing without tensors: zeros of a shape, with these elements at the places of the index."""
    spans = [high - low for low, high in wanted.bounds]
    steps = [abs(s) for s in wanted.steps]
    counts = [-(-span // step) for span, step in zip(spans, steps)]
    apart = self.reshape(tuple(itertools.chain.from_iterable((c, 1) for c in counts)))
    apart = apart.pad([p for step in steps for p in ((0, 0), (0, step - 1))])
    spread = apart.reshape(tuple(c * step for c, step in zip(counts, steps))).shrink([(0, span) for span in spans])
    if any(wanted.backward): spread = spread._derive(spread.uop.flip(wanted.backward))
    return spread.pad([(low, size - high) for (low, high), size in zip(wanted.bounds, shape)])

  def _every(self, steps: list[int]) -> Self:
    """Each `steps[i]`-th element along axis i."""
    counts = [-(-s // step) for s, step in zip(self.shape, steps)]
    padded = self.pad([(0, c * step - s) for s, c, step in zip(self.shape, counts, steps)])
    apart = padded.reshape(tuple(itertools.chain.from_iterable(zip(counts, steps))))
    first = apart.shrink([b for c, step in zip(counts, steps) for b in ((0, c), (0, min(step, 1)))])
    return first.reshape(tuple(counts))

  def _take(self, tensors: list[tuple[int, Any]]) -> Self:
    """Indexing by integer tensors: the sum over the indexed axes of the elements where all indices match."""
    axes = [axis for axis, _ in tensors]
    rest = [a for a in range(self.ndim) if a not in axes]
    wide = broadcast_shape(*(t.shape for _, t in tensors))
    n, k, r = len(wide), len(axes), len(rest)
    mask: Self | None = None
    found: Self | None = None
    for j, (axis, t) in enumerate(tensors):
      size = self.shape[axis]
      place = t._places()
      place = (place < 0).where(place + size, place).reshape((1,) * (n - t.ndim) + t.shape + (1,) * (k + r))
      match = place == self._iota(size).reshape((1,) * (n + j) + (size,) + (1,) * (k - 1 - j + r))
      mask = match if mask is None else mask & match
      inside = (place >= 0) & (place < size)
      found = inside if found is None else found & inside
    assert mask is not None and found is not None
    values = self.permute(axes + rest).reshape((1,) * n + tuple(self.shape[a] for a in axes + rest))
    summed = values._picked(mask, range(n, n + k), found)
    kept = tuple(self.shape[a] for a in rest)
    result = summed.reshape(wide + kept)
    # Neighbouring index tensors leave their result where they stood, others in front (NumPy's rule).
    if axes[-1] - axes[0] != k - 1: return result
    first = axes[0]
    order = [n + i for i in range(first)] + list(range(n)) + [n + i for i in range(first, r)]
    return result.permute(order)

  def gather(self, dim: int, index: Self) -> Self:
    """Element `index[i, j, ...]` of axis `dim`, at each other position of `index`."""
    dim = self._axis(dim)
    if index.ndim != self.ndim or any(i > s for a, (i, s) in enumerate(zip(index.shape, self.shape)) if a != dim):
      raise InvalidArgument(f"gather from shape {self.shape} by indices of shape {index.shape} along axis {dim}")
    values = self.shrink([None if a == dim else (0, i) for a, i in enumerate(index.shape)])
    # (index axes..., positions of dim)
    values = values.movedim(dim, -1).unsqueeze(dim)
    place = index._places().unsqueeze(-1)
    mask, inside = place == self._iota(self.shape[dim]), (place >= 0) & (place < self.shape[dim])
    return values._picked(mask, (self.ndim,), inside).squeeze(-1)

  def _places(self) -> Self:
    """This index in a type that counts elements, without wrapping: what is too large for one is in no axis."""
    return self.cast(dtypes.int32 if self.dtype.bits < 32 or self.dtype is dtypes.int32 else dtypes.int64)

  def _picked(self, mask: Self, axes: Sequence[int], inside: Self) -> Self:
    """The element along the axes where the mask is True, which is True once at most: where `inside`, else it is 0. The
    axes get size 1."""
    if self.dtype.is_bool: return self._derive((mask & self).uop.reduce(Ops.MAX, axes))
    # Nothing changes by adding -0.0, not even the sign of a zero.
    picked = mask.where(self, -0.0 if self.dtype.is_float else 0)
    total = picked._derive(picked.uop.reduce(Ops.ADD, axes))
    return inside.where(total, 0) if self.dtype.is_float else total

  def _diagonal_mask(self, diagonal: int, upper: bool) -> Self:
    rows, columns = self.shape[-2:]
    distance = self._iota(columns) - self._iota(rows).unsqueeze(1)
    return distance >= diagonal if upper else distance <= diagonal

  def triu(self, diagonal: int = 0) -> Self:
    """The upper triangle of the last two axes, the rest 0."""
    return self._diagonal_mask(diagonal, True).where(self, False)

  def tril(self, diagonal: int = 0) -> Self:
    """The lower triangle of the last two axes, the rest 0."""
    return self._diagonal_mask(diagonal, False).where(self, False)

  def one_hot(self, classes: int) -> Self:
    """A new last axis that is 1 at each element's value and else 0, as int32."""
    return (self.unsqueeze(-1) == self._iota(classes)).cast(dtypes.int32)


def iota(size: int, device: str) -> UOp:
  """0, 1, ... size-1 as int32: the sum over the bits of the position, each one a constant padded with a zero in front.

  Movement alone makes it, so it costs index arithmetic in the kernel that uses it and no memory.
  """
  bits = max(size - 1, 0).bit_length()
  total = UOp.const(dtypes.int32, 0, device, (2,) * bits)
  for i in range(bits):
    bit = UOp.const(dtypes.int32, 1 << (bits - 1 - i), device, (1,)).pad(((1, 0),))
    total = total.alu(Ops.ADD, bit.reshape(tuple(2 if j == i else 1 for j in range(bits))).expand((2,) * bits))
  return total.reshape((1 << bits,)).shrink(((0, size),))
