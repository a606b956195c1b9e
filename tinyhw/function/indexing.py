"""Functions of positions: indexing, gathering, scattering, masks.

A position is compared with the places of its axis, and what matches is summed: nothing of that is put into memory.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidIndex, InvalidIndexType, InvalidShape, InvalidType, Unsupported
from tinyhw.function.core import ConstType, broadcast_shape
from tinyhw.function.places import Places
from tinyhw.function.views import Indexed, reshaped, strides_of
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, is_size, larger, plain, smaller, worth
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self


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


def _common(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
  """The shape that index tensors have together."""
  try: return broadcast_shape(*shapes)
  except InvalidShape as error: raise InvalidIndex(f"index tensors: {error}") from None


def _cut(item: slice, size: int) -> tuple[tuple[int, int], int, int]:
  """(bounds, step, size) of a slice, where launches decide its bounds or the size of the axis."""
  if item.step not in (None, 1, -1) or item.step == -1 and (item.start, item.stop) != (None, None):
    raise Unsupported("slice", f"[{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}:"
                      f"{item.step}] of an axis of size {size}, which launches decide",
                      hint="cut it with a step of 1 first, or of a known size")
  def place(x: Any, absent: int) -> int:
    if x is None: return absent
    try: at = plain(x) if isinstance(x, Size) else x.__index__()
    except (AttributeError, TypeError): raise InvalidType(f"slice {item}: {x!r} is no number") from None
    return smaller(at if at >= 0 else larger(at + size, 0), size)
  start = place(item.start, 0)
  stop = larger(place(item.stop, size), start)
  return (start, stop), item.step or 1, stop - start


class Indexing(Places):
  """The functions of positions."""
  __slots__ = ()

  # *** what an index says ***

  def _items(self, index: Any) -> list[Any]:
    """The parts of an index, data as tensors; a mask is the positions where it is True, one part an axis of it."""
    found: list[Any] = []
    for item in index if isinstance(index, tuple) else [index]:
      if isinstance(item, bool):
        raise InvalidIndexType("a bool is no index", hint="unsqueeze, or use a mask of the shape")
      if not isinstance(item, Indexing) and (isinstance(item, (list, tuple)) or getattr(item, "shape", ()) != ()):
        item = type(self)(item, device=self.device)  # type: ignore[call-arg]  # a Tensor is made of data
        if not item.numel(): item = item.cast(dtypes.default_int)
      if isinstance(item, Indexing) and item.dtype.is_bool:
        # The axes that it meets are those behind the items before it.
        before = sum(1 for i in found if i is not None and i is not Ellipsis)
        if not any(i is Ellipsis for i in found) and self.shape[before:before + item.ndim] != item.shape:
          raise InvalidIndex(f"a mask of shape {item.shape} for axes of sizes {self.shape[before:before + item.ndim]}")
        found += item.nonzero(as_tuple=True)
      else: found.append(item)
    return found

  def _index(self, index: Any) -> Index:
    """What an index asks for, axis by axis."""
    items = self._items(index)
    if (n := sum(i is Ellipsis for i in items)) > 1: raise InvalidIndex("an index has a single ellipsis at most")
    taken = sum(1 for i in items if i is not None and i is not Ellipsis)
    if taken > self.ndim: raise InvalidIndex(f"too many indices: {taken} for shape {self.shape}")
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[at:at + n] = [slice(None)] * (self.ndim - taken)
    found = Index()
    for item in items:
      if item is None: found.shape.append(1)
      else: self._index_axis(item, len(found.bounds), found)
    return found

  def _index_axis(self, item: Any, axis: int, found: Index) -> None:
    size = self.shape[axis]
    if isinstance(item, Indexing):
      if not item.dtype.is_int:
        raise InvalidIndexType(f"an index tensor of {item.dtype}", hint="use integers, or a mask")
      found.tensors.append((len(found.shape), item))
      found.add((0, size), 1, size)
    elif isinstance(item, slice) and any(isinstance(x, Size) for x in (size, item.start, item.stop)):
      found.add(*_cut(item, size))
    elif isinstance(item, slice):
      try: start, stop, step = item.indices(size)
      except (TypeError, ValueError) as error: raise InvalidType(f"slice {item}: {error}") from None
      if not (count := len(range(start, stop, step))): found.add((0, 0), 1, 0)
      else:
        last = start + (count - 1) * step
        found.add((min(start, last), max(start, last) + 1), step, count)
    else:
      try: position = plain(item) if isinstance(item, Size) else item.__index__()
      except (AttributeError, TypeError):
        raise InvalidIndexType(f"{type(item).__name__} is not an index: {item!r}") from None
      if not -size <= position < size: raise InvalidIndex(
        f"index {position} of axis {axis} of shape {self.shape} is out of bounds")
      found.add((position % size, position % size + 1), 1, None)

  # *** reading ***

  def __getitem__(self, index: Any) -> Self:
    """PyTorch's indexing: ints, slices with any step, None, ..., integer tensors (out of range, these read 0),
    masks."""
    wanted = self._index(index)
    cut = self.shrink(wanted.bounds)
    if any(wanted.backward): cut = cut._derive(cut.uop.flip(wanted.backward))
    if any(abs(s) > 1 for s in wanted.steps): cut = cut._every([abs(s) for s in wanted.steps])
    result = cut.reshape(tuple(wanted.shape))
    if wanted.tensors: return result._take(wanted.tensors)
    strides = reshaped(cut.shape, tuple([n * s for n, s in zip(strides_of(self), wanted.steps)]), result.shape)
    assert strides is not None, "axes of size 1 come and go"
    result._view = Indexed(self, index, strides)
    return result

  def _take(self, tensors: list[tuple[int, Any]]) -> Self:
    """Indexing by integer tensors: the sum over the indexed axes of the elements where all indices match."""
    axes = [axis for axis, _ in tensors]
    rest = [a for a in range(self.ndim) if a not in axes]
    wide = _common([t.shape for _, t in tensors])
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
    if self.requires_grad and result.numel():
      # The gradient goes to lines of the indexed axes as one.
      table = self.permute(axes + rest).reshape(math.prod(self.shape[a] for a in axes), *kept)
      rows = result.reshape(math.prod(wide), *kept)
      line = self._lines(tensors, wide).reshape(-1, *(1,) * r).expand(rows.shape)
      result = self._derive(UOp(Ops.GATHER, self.dtype, (rows.uop, table.uop, line.uop), 0)).reshape(wide + kept)
    # Neighbouring index tensors leave their result where they stood, others in front (NumPy's rule).
    if axes[-1] - axes[0] != k - 1: return result
    first = axes[0]
    return result.permute([n + i for i in range(first)] + list(range(n)) + [n + i for i in range(first, r)])

  def _lines(self, tensors: list[tuple[int, Any]], wide: tuple[int, ...]) -> Self:
    """Where index tensors point, in the axes that they index as one; -1 where one is out of its axis."""
    line: Any = None
    inside: Any = None
    for axis, t in tensors:
      size = self.shape[axis]
      place = t._counted(size)
      there = (place >= 0) & (place < size)
      line, inside = (place, there) if line is None else (line * size + place, inside & there)
    found: Self = inside.where(line, -1)
    return found.expand(wide)

  def gather(self, axis: int, index: Self) -> Self:
    """Element `index[i, j, ...]` of an axis, at each other position of `index`."""
    axis = self._axis(axis)
    if not index.numel() or not self.ndim and index.shape == (1,):     # as PyTorch has it, whatever their shapes
      return self.reshape(1).gather(0, index) if index.numel() else self._emptied(index.shape)
    if index.ndim != self.ndim or any(i > s for a, (i, s) in enumerate(zip(index.shape, self.shape)) if a != axis):
      raise InvalidShape(f"gather from shape {self.shape} by indices of shape {index.shape} along axis {axis}")
    if not self.ndim: return self.reshape(1).gather(0, index.reshape(1)).reshape(())
    values = self.shrink([None if a == axis else (0, i) for a, i in enumerate(index.shape)])
    return values._picked_by(axis, index._places())

  def take_along_dim(self, index: Self, axis: int | None = None) -> Self:
    """As `gather`, where the other axes broadcast; of the flat tensor when no axis is named."""
    if axis is None: return self.flatten().gather(0, index.flatten())
    axis = self._axis(axis)
    if index.ndim != self.ndim: raise InvalidShape(f"indices of shape {index.shape} for shape {self.shape}")
    common = broadcast_shape(*((*s[:axis], 1, *s[axis + 1:]) for s in (self.shape, index.shape)))
    def spread(x: Self) -> Self: return x.expand((*common[:axis], x.shape[axis], *common[axis + 1:]))
    return spread(self).gather(axis, spread(index._counted(self.shape[axis])))

  def index_select(self, axis: int, index: Self) -> Self:
    """The chosen positions of an axis, in the order of a vector."""
    axis = self._axis(axis)
    if not self.ndim: return self.reshape(1).index_select(0, index).reshape(())
    if index.ndim > 1: raise InvalidShape(f"index_select by indices of shape {index.shape}", hint="give a vector")
    return self[(slice(None),) * axis + (index.reshape(-1),)]

  def combinations(self, r: int = 2, with_replacement: bool = False) -> Self:
    """Every choice of r elements of a vector in their order, one a row; `with_replacement` of one several times too."""
    if self.ndim != 1: raise InvalidShape(f"combinations of shape {self.shape}", hint="give a vector")
    if r < 1: raise InvalidArgument(f"combinations of {r} elements")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = [i for places in choose(range(self.shape[0]), r) for i in places]
    if not chosen: return self.narrow(0, 0, 0).reshape(0, 1).expand(0, r)
    return self[chosen].reshape(-1, r)

  def take(self, index: Self) -> Self:
    """Elements of the flat tensor, in the shape of `index`."""
    return self.flatten()[index]

  def embedding(self, weight: Self, padding_idx: int | None = None) -> Self:
    """The rows of a table that these positions name; a row `padding_idx` gets no gradient."""
    if weight.ndim != 2: raise InvalidShape(f"embedding in a table of shape {weight.shape}", hint="give a matrix")
    if padding_idx is None: return weight[self]
    at = padding_idx % weight.shape[0]
    still = self._iota(weight.shape[0]).eq(at).unsqueeze(1)
    return still.where(weight._wrap(weight.uop.detach()), weight)[self]

  def one_hot(self, classes: int = -1) -> Self:
    """A new last axis that is 1 at each element's value and else 0, as int32; of one more class than the greatest
    element for -1, which is read."""
    if not self.dtype.is_int: raise InvalidType(f"one_hot of {self.dtype}", hint="it is for integers")
    if classes == -1:
      if not self.numel(): raise InvalidArgument("one_hot of no elements", hint="say how many classes")
      classes = int(self._extreme_value()) + 1
    return self._is_class(classes).cast(dtypes.int32)

  def _is_class(self, classes: int) -> Self:
    """Whether each integer is 0, 1, ...: a new last axis."""
    if not self.dtype.is_int: raise InvalidType(f"class numbers of {self.dtype}", hint="they are integers")
    same: Self = self.unsqueeze(-1).eq(self._iota(classes))
    return same

  def _extreme_value(self) -> ConstType:
    """The greatest element, read."""
    top: Any = self._derive(self.uop.reduce(Ops.MAX, range(self.ndim)))
    value: ConstType = top.item()
    return value

  # *** masks, whose results have a shape that depends on values: they are read ***

  def _marked(self, size: int | None) -> tuple[Self, int]:
    """Where the flat elements are that are not zero, as int32, as many as `size` says: those that lack are -1. How many
    there are, read unless `size` says it."""
    marks: Any = self.bool().flatten().cast(dtypes.int32)
    count = size if size is not None else int(marks.sum().item()) if self.numel() else 0
    none = self._wrap(self._const(-1, dtypes.int32, (count,)))
    if not count or not self.numel(): return none, count
    # Each one goes to the place that its running sum says.
    return none._scattered(0, marks.ne(0).where(marks.cumsum(0) - 1, -1), self._iota(self.numel()), unique=True,
                           whole=size is None), count

  def nonzero(self, as_tuple: bool = False, *, size: int | None = None, value: int = 0) -> Any:
    """Positions of the elements that are not zero, one a row; or a vector for each axis. How many there are is read;
    with a `size` the first that many are given, and `value` where there are fewer."""
    at, count = self._marked(size)
    there = at >= 0
    found: list[Any] = []
    rest: Any = at
    for size in self.shape[::-1]:
      found.append(rest % max(size, 1))
      rest = rest // max(size, 1)
    found = found[::-1] if size is None else [there.where(f, int(value)) for f in found[::-1]]
    if as_tuple: return tuple(found) if self.ndim else (at,)
    return found[0].stack(*found[1:], dim=1) if found else self._wrap(self._const(0, dtypes.int32, (count, 0)))

  argwhere = nonzero

  def masked_select(self, mask: Self, *, size: int | None = None, value: ConstType = 0) -> Self:
    """The elements where the mask, which broadcasts, is True, in one axis. How many there are is read; with a `size`
    the first that many are given, and `value` where there are fewer."""
    if not mask.dtype.is_bool: raise InvalidType(f"a mask of {mask.dtype}", hint="compare it with something")
    shape = broadcast_shape(self.shape, mask.shape)
    at, _ = mask.expand(shape).flatten()._marked(size)
    flat = self.expand(shape).flatten()
    chosen: Self = flat[at] if flat.numel() else flat._wrap(flat._const(0, shape=at.shape))
    return chosen if size is None else (at >= 0).where(chosen, value).cast(self.dtype)

  def masked_scatter(self, mask: Self, source: Self) -> Self:
    """The elements of `source`, in their order, where the mask is True."""
    if not mask.dtype.is_bool: raise InvalidType(f"a mask of {mask.dtype}", hint="compare it with something")
    shape = broadcast_shape(self.shape, mask.shape)
    marks: Any = mask.expand(shape).flatten()
    rank = marks.cast(dtypes.int32).cumsum(0) - 1
    values = source.flatten()[rank].reshape(shape)
    result: Self = marks.reshape(shape).where(values.cast(self.dtype), self)
    return result

  # *** writing ***

  def _placed(self, wanted: Index, shape: tuple[int, ...]) -> Self:
    """The inverse of indexing without tensors: zeros of a shape, with these elements at the places of the index."""
    spans = [high - low for low, high in wanted.bounds]
    steps = [abs(s) for s in wanted.steps]
    counts = [-(-span // step) for span, step in zip(spans, steps)]
    apart = self.reshape(tuple(itertools.chain.from_iterable((c, 1) for c in counts)))
    apart = apart._grown([p for step in steps for p in ((0, 0), (0, step - 1))])
    spread = apart.reshape(tuple(c * step for c, step in zip(counts, steps))).shrink([(0, span) for span in spans])
    if any(wanted.backward): spread = spread._derive(spread.uop.flip(wanted.backward))
    return spread._grown([(low, size - high) for (low, high), size in zip(wanted.bounds, shape)])

  def _as_long_as(self, shape: tuple[int, ...]) -> Self:
    """This cut to sizes that Variables decide, where present values say that they are its own."""
    if self.ndim > len(shape): return self
    last = shape[len(shape) - self.ndim:]
    asked = [is_size(s) and n != 1 and worth(n) == worth(s) for n, s in zip(self.shape, last)]
    return self.shrink([(0, s) if ask else None for s, ask in zip(last, asked)]) if any(asked) else self

  def _with_part(self, index: Any, value: Self, accumulate: bool = False) -> Self:
    """This with other values (or more, to accumulate) at the places of an index."""
    wanted = self._index(index)
    part = tuple(wanted.shape)
    while value.ndim > len(part) and value.shape[0] == 1: value = value.reshape(value.shape[1:])
    if 0 in part and value.expand(part).numel() == 0: return self._same()          # nothing changes
    if wanted.tensors or accumulate:
      cut = self.shrink(wanted.bounds)
      if any(wanted.backward): cut = cut._derive(cut.uop.flip(wanted.backward))
      cut = cut._every([abs(s) for s in wanted.steps]).reshape(part)
      value = cut._with_rows(wanted.tensors, value.cast(self.dtype), accumulate) if wanted.tensors else cut + value
    spread = value.cast(self.dtype)._as_long_as(part).expand(part)._placed(wanted, self.shape)
    if part == self.shape and not any(wanted.backward): return spread
    mask = self._wrap(self._const(True, dtypes.bool, part))._placed(wanted, self.shape)
    return mask.where(spread, self)

  def _with_rows(self, tensors: list[tuple[int, Any]], value: Self, accumulate: bool) -> Self:
    """This with other values where index tensors say: the indexed axes become one, along which rows are scattered."""
    axes = [axis for axis, _ in tensors]
    rest = [a for a in range(self.ndim) if a not in axes]
    wide = _common([t.shape for _, t in tensors])
    kept = tuple(self.shape[a] for a in rest)
    count = math.prod(self.shape[a] for a in axes)
    if not math.prod(wide): return self
    line = self._lines(tensors, wide).reshape(-1, *(1 for _ in rest))
    n = len(wide)
    if axes[-1] - axes[0] == len(axes) - 1:
      first = axes[0]
      value = value.expand((*kept[:first], *wide, *kept[first:]))
      value = value.permute([*range(first, first + n), *range(first), *range(first + n, value.ndim)])
    else: value = value.expand((*wide, *kept))
    if not value.numel(): return self
    rows = value.reshape(-1, *kept)
    table = self.permute(axes + rest).reshape(count, *kept)
    table = table._scattered(0, line.expand(rows.shape), rows, Ops.ADD if accumulate else None)
    order = axes + rest
    back = table.reshape([self.shape[a] for a in order])
    return back.permute([order.index(a) for a in range(self.ndim)])

  def scatter(self, axis: int, index: Self, src: Any, reduce: str | None = None) -> Self:
    """The elements of `src` (or one number) written to the positions `index` of an axis. Of several for one place the
    last one stays; with `reduce` "add" or "multiply" all of them and what was there are combined."""
    if reduce not in (None, "add", "multiply"):
      raise InvalidArgument(f'reduce {reduce!r} is neither "add" nor "multiply"', hint="scatter_reduce has more")
    values: Any = src if isinstance(src, Indexing) else self._like(self, src).expand(index.shape).cast(self.dtype)
    if reduce is not None: return self.scatter_reduce(axis, index, values, "sum" if reduce == "add" else "prod")
    if not self.ndim: return self.reshape(1).scatter(0, index.reshape(1), values.reshape(1)).reshape(())
    axis, place, values = self._writers(axis, index, values)
    return self._scattered(axis, place, values)

  def _writers(self, axis: int, index: Self, src: Self) -> tuple[int, Self, Self]:
    """The axis, who writes where on it, and the values: of this tensor's other axes."""
    if src.dtype is not self.dtype:
      raise InvalidType(f"scatter of {src.dtype} into {self.dtype}", hint="cast one of them")
    for other in (index, src): self._operand(other)      # on the same device
    axis = self._axis(axis)
    if index.ndim != self.ndim or src.ndim != self.ndim or any(i > s for i, s in zip(index.shape, src.shape)) or any(
        i > s for a, (i, s) in enumerate(zip(index.shape, self.shape)) if a != axis):
      raise InvalidShape(f"scatter of shape {src.shape} into shape {self.shape} by indices of shape {index.shape} "
                         f"along axis {axis}")
    place, values = index._counted(self.shape[axis]), src.shrink([(0, i) for i in index.shape])
    # Where an index has fewer positions on another axis nothing is written.
    more = [(0, 0) if a == axis else (0, s - i) for a, (s, i) in enumerate(zip(self.shape, index.shape))]
    if all(after == 0 for _, after in more): return axis, place, values
    return axis, (place + 1)._grown(more) - 1, values._grown(more)

  def scatter_add(self, axis: int, index: Self, src: Self) -> Self:
    """The elements of `src` added at the positions `index` of an axis."""
    return self.scatter_reduce(axis, index, src, "sum")

  def scatter_reduce(self, axis: int, index: Self, src: Self, reduce: str, include_self: bool = True) -> Self:
    """The elements of `src` combined at the positions `index` of an axis: "sum", "prod", "mean", "amax" or "amin", with
    what was there or, without `include_self`, only where nothing was written."""
    names = {"sum": Ops.ADD, "prod": Ops.MUL, "mean": Ops.ADD, "amax": Ops.MAX, "amin": Ops.MAX}
    if reduce not in names: raise InvalidArgument(f"reduce {reduce!r} is none of {', '.join(names)}")
    if not self.ndim:
      return self.reshape(1).scatter_reduce(0, index.reshape(1), src.reshape(1), reduce, include_self).reshape(())
    axis, place, values = self._writers(axis, index, src)
    base = self
    if not include_self:
      written = self._wrap(self._const(False, dtypes.bool))._scattered(
        axis, place, values._wrap(values._const(True, dtypes.bool)))
      base = written.where({Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: self.dtype.max if reduce == "amin" else self.dtype.min}[
        names[reduce]], self).cast(self.dtype)
    if reduce in ("amax", "amin"): return base._extremes_at(axis, place, values, reduce == "amin")
    if reduce == "prod": return base._products_at(axis, place, values)
    total = base._scattered(axis, place, values, Ops.ADD)
    if reduce == "sum": return total
    start = self._wrap(self._const(1 if include_self else 0, dtypes.int32))
    many = start._scattered(axis, place, values._wrap(values._const(1, dtypes.int32)), Ops.ADD)
    many = many.maximum(1).cast(self.dtype)
    return total / many if self.dtype.is_float else total // many

  def _extremes_at(self, axis: int, place: Self, values: Self, least: bool) -> Self:
    """The greatest, or the least, of this and the values of a place. Equal ones share its gradient."""
    if least and not self.dtype.is_float:
      return self.bitwise_not()._extremes_at(axis, place, values.bitwise_not(), False).bitwise_not()
    if least: return -(-self)._extremes_at(axis, place, -values, False)
    top = self._still()._scattered(axis, place, values._still(), Ops.MAX)
    if not self._asked and not values._asked: return top
    mine, theirs = self.eq(top), values.eq(top._picked_by(axis, place))
    many = mine.cast(self.dtype)._scattered(axis, place, theirs.cast(self.dtype), Ops.ADD)
    shares = values * (theirs.cast(self.dtype) / many._picked_by(axis, place))
    return top._with_slopes(self * (mine.cast(self.dtype) / many), axis, place, shares)

  def _products_at(self, axis: int, place: Self, values: Self) -> Self:
    """The product of this and the values of a place."""
    if not self._asked and not values._asked: return self._scattered(axis, place, values, Ops.MUL)
    x, v = self._still(), values._still()
    zeros = x.eq(0).cast(self.dtype)._scattered(axis, place, v.eq(0).cast(self.dtype), Ops.ADD)
    others = x.eq(0).where(1, x)._scattered(axis, place, v.eq(0).where(1, v), Ops.MUL)
    def slope(e: Self, count: Self, rest: Self) -> Self:
      """The product of all others."""
      found: Self = e.eq(0).where(count.eq(1).where(rest, 0), count.eq(0).where(rest / e, 0))
      return found
    shares = values * slope(v, zeros._picked_by(axis, place), others._picked_by(axis, place))
    product: Self = zeros.eq(0).where(others, 0)
    return product._with_slopes(self * slope(x, zeros, others), axis, place, shares)

  def _with_slopes(self, mine: Self, axis: int, place: Self, theirs: Self) -> Self:
    """This value with the derivative of a sum: of `mine` and of what goes to the places."""
    linear = mine._scattered(axis, place, theirs, Ops.ADD)
    return self._with_derivative((linear, lambda: linear.const_like(1)))

  def _rows(self, axis: int, index: Self, source: Self) -> tuple[Self, Self]:
    """A vector of positions and the rows for them, both in the shape of the rows."""
    axis = self._axis(axis)
    wanted = (*self.shape[:axis], index.numel(), *self.shape[axis + 1:])
    if source.shape != wanted and source.ndim:
      raise InvalidShape(f"rows of shape {source.shape} where {wanted} are needed")
    line = index.reshape([-1 if a == axis else 1 for a in range(self.ndim)])
    return line.expand(wanted), source.expand(wanted)

  def index_add(self, axis: int, index: Self, source: Self, *, alpha: ConstType = 1) -> Self:
    """`alpha` times the rows of `source` added to those that a vector names."""
    line, rows = self._rows(axis, index, source if alpha == 1 else source * alpha)
    return self.scatter_reduce(axis, line, rows, "sum")

  def index_copy(self, axis: int, index: Self, source: Self) -> Self:
    """The rows of `source` in place of those that a vector names."""
    return self.scatter(axis, *self._rows(axis, index, source))

  def index_fill(self, axis: int, index: Self, value: ConstType) -> Self:
    """One value in all rows that a vector names."""
    if not self.ndim: return self.reshape(1).index_fill(axis, index, value).reshape(())
    axis = self._axis(axis)
    place = index._counted(self.shape[axis]).reshape(-1)
    none = self._wrap(self._const(False, dtypes.bool, (self.shape[axis],)))
    named = none._scattered(0, place, place._wrap(place._const(True, dtypes.bool)))
    return named.reshape([-1 if a == axis else 1 for a in range(self.ndim)]).where(value, self).cast(self.dtype)

  def index_put(self, index: Sequence[Self], values: Self, accumulate: bool = False) -> Self:
    """Values at the places that tensors name together; with `accumulate` they are added."""
    return self._with_part(tuple(index), values, accumulate)

  def select_scatter(self, src: Self, axis: int, index: int) -> Self:
    """Another value at one position of an axis."""
    return self._with_part((slice(None),) * self._axis(axis) + (index,), src)

  def slice_scatter(self, src: Self, axis: int = 0, start: int | None = None, stop: int | None = None,
                    step: int = 1) -> Self:
    """Another value at a slice of an axis."""
    return self._with_part((slice(None),) * self._axis(axis) + (slice(start, stop, step),), src)

  def diagonal_scatter(self, src: Self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
    """Another value on a diagonal."""
    a, b = self._axis(dim1), self._axis(dim2)
    last = self.movedim((a, b), (-2, -1))
    rows, columns = last.shape[-2:]
    mask = (self._iota(columns) - self._iota(rows).unsqueeze(1)).eq(offset)
    square = src.diag_embed(offset)
    need = [max(s, t) for s, t in zip((rows, columns), square.shape[-2:])]
    wide = square._grown([(0, 0)] * (square.ndim - 2) + [(0, n - s) for n, s in zip(need, square.shape[-2:])])
    cut = wide.shrink([*(None for _ in wide.shape[:-2]), (0, rows), (0, columns)])
    return mask.where(cut, last).movedim((-2, -1), (a, b))
