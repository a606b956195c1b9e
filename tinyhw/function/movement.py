"""Functions that move elements without changing them: shapes, order, slices, windows.

They cost nothing by themselves: the compiler turns a chain of them into index arithmetic of the kernel that
reads the elements.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidShape, InvalidType, Unsupported
from tinyhw.function.activation import Activation
from tinyhw.function.views import Diagonal, Expanded, Indexed, Permuted, Places, Reshaped, reshaped, strides_of
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, highest, plain, worth
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self


def flat(args: tuple[Any, ...]) -> tuple[int, ...]:
  """`f(2, 3)` and `f((2, 3))` mean the same."""
  if len(args) == 1 and isinstance(args[0], (tuple, list)): args = tuple(args[0])
  for a in args:
    if not isinstance(a, (int, Size)): raise InvalidType(f"an int is needed in {args}, not {a!r}")
  return tuple(plain(a) for a in args)


class Movement(Activation):
  """The functions that move elements."""
  __slots__ = ()

  # *** shape ***

  def reshape(self, *shape: Any) -> Self:
    """The same elements in row-major order under another shape; one size may be -1, None keeps the size of that
    axis. Where Variables decide whether the shape has as many elements, their present values are asked, as by
    `shrink`: a tensor of shape (4, 3) reshapes to (n, 3) where n is 4, and is copied into memory for the greatest n."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if None in sizes:
      if None in sizes[self.ndim:]: raise InvalidShape(f"{sizes} keeps a size that shape {self.shape} has not")
      sizes = tuple(self.shape[i] if s is None else s for i, s in enumerate(sizes))
    new = flat(sizes)
    if new.count(-1) > 1: raise InvalidShape(f"only one size of {new} may be -1")
    if -1 in new:
      known = -math.prod(new)
      if not isinstance(self.numel(), Size): known = worth(known)
      new = tuple((self.numel() // known if known else 0) if s == -1 else s for s in new)
    if math.prod(new) != (count := self.numel()) and isinstance(count, Size) and \
       math.prod(new) == worth(count) == highest(count):
      return self.shrink([(0, highest(s)) for s in self.shape]).reshape(new)
    if isinstance(wanted := math.prod(new), Size) and not isinstance(count, Size) and worth(wanted) == count:
      room = self.flatten()._grown([(0, highest(wanted) - count)]).contiguous()
      return room.shrink([(0, wanted)]).reshape(new)
    if math.prod(new) != count or any(s < 0 for s in new):
      raise InvalidShape(f"shape {self.shape} with {self.numel()} elements does not reshape to {sizes}")
    result = self._derive(self.uop.reshape(new))
    strides = reshaped(self.shape, strides_of(self), new)
    if strides is not None: result._view = Reshaped(self, new, strides)
    return result

  def view(self, *shape: Any) -> Self:
    """The same elements under another shape, as `reshape`; of a dtype, the same memory as another type."""
    return self.bitcast(shape[0]) if len(shape) == 1 and isinstance(shape[0], DType) else self.reshape(*shape)

  def view_as(self, other: Self) -> Self:
    """Under the other's shape."""
    return self.reshape(other.shape)
  reshape_as = view_as

  def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
    """Axes `start_dim`..`end_dim` joined into one."""
    start, end = self._axis(start_dim), self._axis(end_dim)
    if not self.shape: return self.reshape(1)
    if start > end: raise InvalidShape(f"axes {start_dim}..{end_dim} of shape {self.shape} are none")
    return self.reshape(*self.shape[:start], math.prod(self.shape[start:end + 1]), *self.shape[end + 1:])

  def ravel(self) -> Self:
    """All elements in one axis."""
    return self.reshape(-1) if self.numel() else self.reshape(0)

  def unflatten(self, axis: int, sizes: Sequence[int]) -> Self:
    """An axis split into several; one size may be -1."""
    axis = self._axis(axis)
    part = tuple(sizes)
    if -1 in part: part = tuple(self.shape[axis] // max(-math.prod(part), 1) if s == -1 else s for s in part)
    if math.prod(part) != self.shape[axis]:
      raise InvalidShape(f"axis {axis} of shape {self.shape} does not split into {tuple(sizes)}")
    return self.reshape(*self.shape[:axis], *part, *self.shape[axis + 1:])

  def squeeze(self, axis: int | Sequence[int] | None = None) -> Self:
    """Without the axes of size 1, or without those among the chosen ones."""
    chosen = self._axes(axis)
    return self.reshape(tuple(s for i, s in enumerate(self.shape) if s != 1 or i not in chosen))

  def unsqueeze(self, axis: int) -> Self:
    """With a new axis of size 1."""
    axis = self._axis(axis, extra=1)
    return self.reshape(self.shape[:axis] + (1,) + self.shape[axis:])

  def _at_least(self, axes: int) -> Self:
    return self if self.ndim >= axes else self.reshape((1,) * (axes - self.ndim) + self.shape)

  def expand(self, *shape: Any) -> Self:
    """Axes of size 1 repeated to the new size (-1 or None keeps a size); new axes may be added in front."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    new = flat(tuple(-1 if s is None else s for s in sizes))
    if len(new) < self.ndim: raise InvalidShape(f"shape {self.shape} does not expand to {new}: it has more axes")
    old = (1,) * (len(new) - self.ndim) + self.shape
    wanted = tuple(o if n == -1 else n for o, n in zip(old, new))
    if any(o not in (1, n) for o, n in zip(old, wanted)):
      raise InvalidShape(f"shape {self.shape} does not expand to {new}: only axes of size 1 do")
    result = self._derive(self.uop.reshape(old).expand(wanted))
    steps = (*(0,) * (len(new) - self.ndim), *strides_of(self))
    result._view = Expanded(self, wanted, tuple([s if o == n else 0 for s, o, n in zip(steps, old, wanted)]))
    return result
  broadcast_to = expand

  def expand_as(self, other: Activation) -> Self:
    """Expanded to the other's shape."""
    return self.expand(other.shape)

  # *** order ***

  def permute(self, *axes: Any) -> Self:
    """Axis i of the result is axis `axes[i]`."""
    order = flat(axes)
    found = tuple(self._axis(a) for a in order) if self.ndim else ()
    if sorted(found) != list(range(self.ndim)) or len(order) != self.ndim:
      raise InvalidShape(f"{order} is not an order of the {self.ndim} axes of shape {self.shape}")
    result = self._derive(self.uop.permute(found))
    result._view = Permuted(self, found)
    return result

  def transpose(self, axis0: int = 1, axis1: int = 0) -> Self:
    """Two axes exchanged."""
    order = list(range(self.ndim))
    a, b = self._axis(axis0), self._axis(axis1)
    if order: order[a], order[b] = order[b], order[a]
    return self.permute(order)
  swapaxes = transpose
  swapdims = transpose

  def t(self) -> Self:
    """A matrix transposed; fewer axes stay as they are."""
    if self.ndim > 2: raise InvalidShape(f"t() of shape {self.shape}", hint="it is for matrices; use mT or transpose")
    return self.T

  @property
  def T(self) -> Self:
    """All axes in reverse order."""
    return self.permute(tuple(range(self.ndim))[::-1])

  @property
  def mT(self) -> Self:
    """The last two axes exchanged."""
    return self.transpose(-1, -2)

  def movedim(self, source_axis: int | Sequence[int], target_axis: int | Sequence[int]) -> Self:
    """Axes moved to other places; the rest keeps its order."""
    sources, targets = self._axes(source_axis), self._axes(target_axis)
    if len(sources) != len(targets):
      raise InvalidShape(f"{source_axis} and {target_axis} name different counts of axes")
    order = [a for a in range(self.ndim) if a not in sources]
    for target, source in sorted(zip(targets, sources)): order.insert(target, source)
    return self.permute(order)
  moveaxis = movedim

  def flip(self, *axes: Any) -> Self:
    """Reversed along the axes (all, when none is named)."""
    chosen = self._axes(flat(axes) if axes else None)
    return self._derive(self.uop.flip(tuple(i in chosen for i in range(self.ndim))))

  def fliplr(self) -> Self:
    """Axis 1 reversed."""
    return self.flip(1)

  def flipud(self) -> Self:
    """Axis 0 reversed."""
    return self.flip(0)

  def rot90(self, k: int = 1, axis: Sequence[int] = (0, 1)) -> Self:
    """Turned `k` times by a quarter, from the first axis towards the second."""
    a, b = self._axes(axis) if len(axis) == 2 else (0, 0)
    if a == b: raise InvalidShape(f"rot90 needs two axes, not {tuple(axis)}")
    if k % 4 == 0: return self._same()
    if k % 4 == 2: return self.flip(a, b)
    return self.flip(b).transpose(a, b) if k % 4 == 1 else self.transpose(a, b).flip(b)

  def roll(self, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Self:
    """Moved along axes, around their ends; the flat tensor when no axis is named."""
    if axis is None: return self.flatten().roll(shift, 0).reshape(self.shape) if self.ndim else self._same()
    shifts = (shift,) if isinstance(shift, int) else tuple(shift)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if len(shifts) != len(axes): raise InvalidShape(f"{len(shifts)} shifts along {len(axes)} axes")
    result = self._same()
    for s, a in zip(shifts, axes): result = result._rolled(s, self._axis(a))
    return result

  def _rolled(self, shift: int, axis: int) -> Self:
    size = self.shape[axis]
    cut = (size - shift) % max(size, 1)
    if cut == 0: return self
    turned = self.repeat([2 if i == axis else 1 for i in range(self.ndim)])
    return turned.shrink([(cut, cut + size) if i == axis else None for i in range(self.ndim)])

  def rearrange(self, formula: str, **sizes: int) -> Self:
    """Axes by name: `"b (h w) c -> b c h w"`. Parentheses join or split an axis, `...` is what is not named; sizes that
    the shape does not tell are keywords."""
    from tinyhw.function.formula import rearranged
    result: Self = rearranged(self, formula, sizes)
    return result

  # *** cutting and repeating ***

  def shrink(self, bounds: Sequence[tuple[int, int] | None]) -> Self:
    """Keeps start <= i < stop of each axis (None: all of it). Where Variables decide whether `stop` is within the axis,
    their present values are asked; for others what is beyond the end is 0."""
    full = tuple((0, s) if b is None else (plain(b[0]), plain(b[1])) for b, s in zip(bounds, self.shape))
    beyond = [stop - s for (_, stop), s in zip(full, self.shape)]
    if len(bounds) != self.ndim or any(not 0 <= start <= stop for start, stop in full) or any(
        highest(n) > 0 and worth(n) > 0 for n in beyond):
      raise InvalidShape(f"bounds {tuple(bounds)} do not fit shape {self.shape}")
    more = tuple((0, max(highest(n), 0)) for n in beyond)
    result = self._derive((self.uop.pad(more) if any(n for _, n in more) else self.uop).shrink(full))
    result._view = Indexed(self, tuple(slice(None) if b is None else slice(*b) for b in bounds), strides_of(self))
    return result

  def shrink_to(self, *shape: Any) -> Self:
    """The first elements of each axis (None: all of them)."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return self.shrink([None if s is None else (0, s) for s in sizes])

  def narrow(self, axis: int, start: int, length: int) -> Self:
    """`length` elements of an axis from `start` on."""
    axis = self._axis(axis)
    size = self.shape[axis] if self.shape else 0
    read: Any = start
    start, length = plain(read.item() if hasattr(read, "item") else start), plain(length)
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
      raise InvalidShape(f"{length} elements from {start} on of axis {axis} of shape {self.shape}")
    return self.shrink([(first, first + length) if i == axis else None for i in range(self.ndim)])

  def repeat(self, *repeats: Any) -> Self:
    """The whole tensor side by side, `repeats[i]` times along axis i."""
    times = flat(repeats)
    if len(times) < self.ndim: raise InvalidShape(f"{times} gives fewer repeats than shape {self.shape} has axes")
    if any(n < 0 for n in times): raise InvalidShape(f"{times} repeats: a negative number of times")
    shape = (1,) * (len(times) - self.ndim) + self.shape
    apart = self.reshape(tuple(itertools.chain.from_iterable((1, s) for s in shape)))
    spread = apart.expand(tuple(itertools.chain.from_iterable(zip(times, shape))))
    return spread.reshape(tuple(t * s for t, s in zip(times, shape)))._same()

  def tile(self, *dims: Any) -> Self:
    """As `repeat`; axes in front that are not named are there once."""
    times = flat(dims)
    return self.repeat((1,) * (self.ndim - len(times)) + times)

  # *** diagonals and windows ***

  def _emptied(self, shape: tuple[int, ...]) -> Self:
    """No element of this, in a shape of none."""
    return self.reshape(-1).shrink(((0, 0),)).reshape(shape)

  def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
    """The diagonal of two axes as a new last axis; `offset` counts to the right of the main one."""
    a, b = self._axis(dim1), self._axis(dim2)
    if a == b: raise InvalidShape(f"diagonal of axes {dim1} and {dim2} of shape {self.shape}: they are one")
    last = self.movedim((a, b), (-2, -1))
    rows, columns = last.shape[-2:]
    lead = last.shape[:-2]
    top, left = max(-offset, 0), max(offset, 0)
    n = max(min(rows - top, columns - left), 0)
    if not n: return self._emptied((*lead, 0))
    keep: list[tuple[int, int] | None] = [None] * len(lead)
    square = last.shrink([*keep, (top, top + n), (left, left + n)]).reshape(*lead, n * n)
    # n more at the end make n rows of n + 1: the diagonal is their first column.
    lines = square._grown([(0, 0)] * len(lead) + [(0, n)]).reshape(*lead, n, n + 1)
    result = lines.shrink([*keep, None, (0, 1)]).reshape(*lead, n)
    result._view = Diagonal(self, (offset, a, b))
    return result

  def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Self:
    """Matrices with the last axis on a diagonal, else 0; the two axes of the matrices are `dim1` and `dim2`."""
    lead, n = self.shape[:-1], self.shape[-1]
    size = n + abs(offset)
    lines = self.unsqueeze(-1)._grown([(0, 0)] * (len(lead) + 1) + [(0, n)]).reshape(*lead, n * (n + 1))
    square = lines.shrink([*(None for _ in lead), (0, n * n)]).reshape(*lead, n, n)
    shift = (max(-offset, 0), max(offset, 0))
    placed = square._grown([(0, 0)] * len(lead) + [(s, size - n - s) for s in shift])
    return placed.movedim((-2, -1), (dim1, dim2))

  def diag(self, diagonal: int = 0) -> Self:
    """A matrix with this vector on a diagonal, or the diagonal of this matrix."""
    if self.ndim == 1: return self.diag_embed(diagonal)
    if self.ndim == 2: return self.diagonal(diagonal)._same()          # no view, as PyTorch has it
    raise InvalidShape(f"diag of shape {self.shape}", hint="it is for vectors and matrices; use diagonal or diag_embed")

  def diagflat(self, offset: int = 0) -> Self:
    """A matrix with all elements on a diagonal."""
    return self.flatten().diag_embed(offset)

  def unfold(self, axis: int, size: int, step: int) -> Self:
    """All windows of `size` elements along an axis, each `step` further; their elements are a new last axis."""
    axis = self._axis(axis)
    if not self.shape: return self.reshape(1).unfold(0, size, step).squeeze(0)
    if size < 0 or step < 1 or size > self.shape[axis]:
      raise InvalidShape(f"windows of {size} every {step} along axis {axis} of shape {self.shape}")
    result = self._slide(axis, size, step).movedim(-2, axis)
    steps = strides_of(self)
    result._view = Places(self, lambda x: x.unfold(axis, size, step),
                          (*steps[:axis], steps[axis] * step, *steps[axis + 1:], steps[axis]))
    return result

  def windows(self, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int] | None = None) -> Self:
    """All windows over the last axes: (..., places of each axis, positions within the window of each axis)."""
    rank, first = len(size), self.ndim - len(size)
    result = self
    for k, step, apart in zip(size, stride, dilation or [1] * rank):
      # Axis `first` is the next one to cut; its places and positions move to the end.
      if k < 1 or step < 1 or apart < 1 or result.shape[first] < apart * (k - 1) + 1:
        raise InvalidShape(f"windows of {tuple(size)} every {tuple(stride)} of shape {self.shape}")
      result = result._slide(first, k, step, apart)
    order = [*range(first), *(first + 2 * n for n in range(rank)), *(first + 2 * n + 1 for n in range(rank))]
    return result.permute(order)

  def _slide(self, axis: int, k: int, step: int, apart: int = 1) -> Self:
    """(..., n, ...) to (..., ..., places, k): the axis repeated and read as lines of n + `apart` moves on by that many
    in each line."""
    n = self.shape[axis]
    last = self.movedim(axis, -1)
    lead = last.shape[:-1]
    keep: list[tuple[int, int] | None] = [None] * len(lead)
    if k <= 1 or step >= apart * (k - 1) + 1:
      # Windows that do not overlap are a reshape.
      reach = apart * (k - 1) + 1 if k else 0
      count = (n - reach) // step + 1
      padded = last._grown([(0, 0)] * len(lead) + [(0, max(count * step - n, 0))])
      lines = padded.shrink([*keep, (0, count * step)]).reshape(*lead, count, step)
      return lines.shrink([*keep, None, (0, reach)])._every([1] * (len(lead) + 1) + [apart])
    times = -(-k * (n + apart) // n)
    row = last.unsqueeze(-2).expand(*lead, times, n).reshape(*lead, times * n)
    lines = row.shrink([*keep, (0, k * (n + apart))]).reshape(*lead, k, n + apart)
    places = lines.shrink([*keep, None, (0, n - apart * (k - 1))])
    return places._every([1] * (len(lead) + 1) + [step]).transpose(-1, -2)

  def _every(self, steps: list[int]) -> Self:
    """Each `steps[i]`-th element along axis i."""
    if all(s == 1 for s in steps): return self
    counts = [-(-s // step) for s, step in zip(self.shape, steps)]
    padded = self._grown([(0, c * step - s) for s, c, step in zip(self.shape, counts, steps)])
    apart = padded.reshape(tuple(itertools.chain.from_iterable(zip(counts, steps))))
    first = apart.shrink([b for c, step in zip(counts, steps) for b in ((0, c), (0, min(step, 1)))])
    return first.reshape(tuple(counts))

  def _grown(self, padding: Sequence[tuple[int, int]]) -> Self:
    """Zeros added before and after each axis."""
    return self._derive(self.uop.pad(tuple(padding)))

  def pixel_shuffle(self, upscale_factor: int) -> Self:
    """(..., c * r * r, h, w) to (..., c, h * r, w * r)."""
    r = upscale_factor
    *lead, channels, height, width = self.shape
    if r < 1 or channels % (r * r):
      raise InvalidShape(f"{channels} channels of shape {self.shape} are no multiple of {r}**2")
    apart = self.reshape(*lead, channels // (r * r), r, r, height, width)
    k = len(lead)
    spread = apart.permute(*range(k + 1), k + 3, k + 1, k + 4, k + 2)
    return spread.reshape(*lead, channels // (r * r), height * r, width * r)._same()

  def pixel_unshuffle(self, downscale_factor: int) -> Self:
    """(..., c, h * r, w * r) to (..., c * r * r, h, w)."""
    r = downscale_factor
    *lead, channels, height, width = self.shape
    if r < 1 or height % r or width % r:
      raise InvalidShape(f"{height} by {width} of shape {self.shape} are no multiple of {r}")
    apart = self.reshape(*lead, channels, height // r, r, width // r, r)
    k = len(lead)
    spread = apart.permute(*range(k + 1), k + 2, k + 4, k + 1, k + 3)
    return spread.reshape(*lead, channels * r * r, height // r, width // r)._same()

  def channel_shuffle(self, groups: int) -> Self:
    """Axis 1 as (groups, rest) transposed."""
    if self.ndim < 2 or groups < 1 or self.shape[1] % groups:
      raise InvalidShape(f"channel_shuffle of shape {self.shape} in {groups} groups")
    apart = self.unflatten(1, (groups, self.shape[1] // groups))
    return apart.transpose(1, 2).reshape(self.shape)._same()

  # *** places ***

  def _iota(self, size: int) -> Self:
    """0, 1, ... size-1 as int32 on this device: the sum of the bits of the position, each a padded constant."""
    return self._wrap(iota(size, self._device))

  def _diagonal_mask(self, diagonal: int, upper: bool) -> Self:
    if self.ndim < 2: raise InvalidShape(f"triangles of shape {self.shape}", hint="they need two axes")
    rows, columns = self.shape[-2:]
    distance = self._iota(columns) - self._iota(rows).unsqueeze(1)
    return distance >= diagonal if upper else distance <= diagonal

  def triu(self, diagonal: int = 0) -> Self:
    """The upper triangle of the last two axes, the rest 0."""
    return self._diagonal_mask(diagonal, True).where(self, False)

  def tril(self, diagonal: int = 0) -> Self:
    """The lower triangle of the last two axes, the rest 0."""
    return self._diagonal_mask(diagonal, False).where(self, False)


def iota(size: int, device: str) -> UOp:
  """0, 1, ... size-1 as int32: the sum over the bits of the position, each one a constant padded with a zero in front.

  Movement alone makes it, so it costs index arithmetic in the kernel that uses it and no memory.
  """
  if type(size) is int and size > 1 << 31: raise Unsupported("positions", f"0..{size - 1}", hint="they are int32")
  return _iota(size, device) if type(size) is int else _iota.__wrapped__(plain(size), device)


@functools.lru_cache(maxsize=64)
def _iota(size: int, device: str) -> UOp:
  bits = max(highest(size) - 1, 0).bit_length()
  total = UOp.const(dtypes.int32, 0, device, (2,) * bits)
  for i in range(bits):
    bit = UOp.const(dtypes.int32, 1 << (bits - 1 - i), device, (1,)).pad(((1, 0),))
    total = total.alu(Ops.ADD, bit.reshape(tuple(2 if j == i else 1 for j in range(bits))).expand((2,) * bits))
  return total.reshape((1 << bits,)).shrink(((0, size),))
