"""Views: tensors that are parts of others, or others in another shape. A change in place of a view changes what it is a
view of.

Tensors are values, and graphs of values: there is no memory that two of them share. So a view keeps how it was made,
and who assigns to it gives the tensor above a new value with that part changed, and so on up. Who uses it makes it anew
first, where something above has got another value since.

Changes have numbers, one row for all tensors: a tensor knows its last one, and a view the last one that it has seen.

What is a view is told by strides, as if there were memory that tensors shared.
"""
from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from tinyhw.core.locks import lock
from tinyhw.ir.size import Size, larger, plain

if TYPE_CHECKING:
  from tinyhw.ir.dtype import DType

T = TypeVar("T", bound="Viewed")
_counting = lock()


class Viewed(Protocol):
  """What views ask of a tensor."""
  changes: int
  _view: View | None
  @classmethod
  def arange(cls, start: float, /, *, device: Any) -> Self: ...
  @property
  def dtype(self) -> DType: ...
  @property
  def shape(self) -> tuple[int, ...]: ...
  @property
  def device(self) -> Any: ...
  def numel(self) -> int: ...
  def tolist(self) -> Any: ...
  def reshape(self, *shape: Any) -> Self: ...
  def permute(self, *axes: Any) -> Self: ...
  def expand(self, *shape: Any) -> Self: ...
  def __getitem__(self, index: Any) -> Self: ...
  def _with_part(self, index: Any, value: Self) -> Self: ...
  def scatter(self, axis: int, index: Self, src: Any) -> Self: ...
  def diagonal(self, offset: int, dim1: int, dim2: int) -> Self: ...
  def diagonal_scatter(self, src: Self, offset: int, dim1: int, dim2: int) -> Self: ...
  def bitcast(self, dtype: DType) -> Self: ...
  def detach(self) -> Self: ...


class Clock:
  """`now` is the number of the last change. Who sees it sees the changes up to it, whichever threads made them."""
  now = 0

  @classmethod
  def tick(cls, tensor: Any) -> None:
    """A tensor has got another value: its number."""
    with _counting:
      tensor.changes = number = cls.now + 1
      cls.now = number


class Views:
  """The views of a tensor that live."""
  __slots__ = ("known", "room")

  def __init__(self) -> None:
    self.known: list[weakref.ref[View]] = []
    self.room = 8

  def add(self, view: View) -> None:
    """One more."""
    if len(self.known) >= self.room:
      self.known = [r for r in self.known if r() is not None]
      self.room = 2 * len(self.known) + 8
    self.known.append(weakref.ref(view))

  def keep(self, whole: Any) -> None:
    """It has changed: they keep it until they are made anew."""
    for r in self.known:
      if (view := r()) is not None: view.kept = whole


class View(ABC):
  """How a tensor was made of another one. `of` refers to that, `up` is how that was made; the changes up to `version`
  are in its value, and up to `looked` there were no others. `wrote` says that something went up and nobody has realized
  it. In memory that both shared its elements would lie `strides` apart. `kept` is what it is a view of once that has
  changed: until this one is made anew it must not go."""
  __slots__ = ("of", "up", "version", "looked", "wrote", "strides", "kept", "_among", "__weakref__")
  of: weakref.ref[Any] | None
  tracks = True  # whether the history of what is assigned goes up, too
  writes = True  # whether what is assigned goes up

  def __init__(self, of: Any, strides: tuple[int, ...]) -> None:
    up = of._view
    self.of, self.up, self.wrote, self.strides = of._listed, up, False, strides
    self.kept: Any = None
    if of._views is None: of._views = Views()
    self._among: Views = of._views
    self._among.add(self)
    self.looked = self.version = of.changes if up is None else max(of.changes, up.version)

  @abstractmethod
  def forward(self, whole: T) -> T:
    """The view of a value."""

  @abstractmethod
  def back(self, whole: T, part: T) -> T:
    """The value with another one in the view."""

  def parent(self) -> Any:
    """What it is a view of; None where that does not live any more, or was replaced."""
    if self.of is None or (p := self.of()) is None: return None
    return p if p._views is self._among else None


class Reshaped(View):
  """The same elements in row-major order."""
  __slots__ = ("shape",)

  def __init__(self, of: Any, shape: Any, strides: tuple[int, ...]) -> None:
    super().__init__(of, strides)
    self.shape = shape

  def forward(self, whole: T) -> T: return whole.reshape(self.shape)
  def back(self, whole: T, part: T) -> T: return part.reshape(whole.shape)


class Permuted(View):
  """Axes in another order."""
  __slots__ = ("order",)

  def __init__(self, of: Any, order: tuple[int, ...]) -> None:
    old = strides_of(of)
    super().__init__(of, tuple([old[a] for a in order]))
    self.order = order

  def forward(self, whole: T) -> T: return whole.permute(self.order)

  def back(self, whole: T, part: T) -> T:
    return part.permute([self.order.index(a) for a in range(len(self.order))]) if self.order else part


class Indexed(View):
  """A part that ints, slices, None and Ellipsis choose."""
  __slots__ = ("index",)

  def __init__(self, of: Any, index: Any, strides: tuple[int, ...]) -> None:
    super().__init__(of, strides)
    self.index = _kept(index)

  def forward(self, whole: T) -> T: return whole[self.index]
  def back(self, whole: T, part: T) -> T: return whole._with_part(self.index, part)


def _kept(index: Any) -> Any:
  """An index with the values that its Variables have now."""
  if isinstance(index, tuple): return tuple(map(_kept, index))
  if isinstance(index, slice): return slice(*map(_kept, (index.start, index.stop, index.step)))
  return plain(index) if isinstance(index, Size) else index


class Expanded(View):
  """Elements repeated along axes. What is assigned to it is its own from then on: no memory could hold it."""
  __slots__ = ("shape",)
  writes = False

  def __init__(self, of: Any, shape: Any, strides: tuple[int, ...]) -> None:
    super().__init__(of, strides)
    self.shape = shape

  def forward(self, whole: T) -> T: return whole.expand(self.shape)
  def back(self, whole: T, part: T) -> T: raise AssertionError("nothing goes up from here")


class Diagonal(View):
  """A diagonal of two axes, as a last axis."""
  __slots__ = ("where",)

  def __init__(self, of: Any, where: tuple[int, int, int]) -> None:
    old = strides_of(of)
    super().__init__(of, (*(s for axis, s in enumerate(old) if axis not in where[1:]), old[where[1]] + old[where[2]]))
    self.where = where

  def forward(self, whole: T) -> T: return whole.diagonal(*self.where)
  def back(self, whole: T, part: T) -> T: return whole.diagonal_scatter(part, *self.where)


class Places(View):
  """The elements that a function finds at places of their own, such as windows."""
  __slots__ = ("function",)

  def __init__(self, of: Any, function: Callable[[Any], Any], strides: tuple[int, ...]) -> None:
    super().__init__(of, strides)
    self.function = function

  def forward(self, whole: T) -> T:
    found: T = self.function(whole)
    return found

  def back(self, whole: T, part: T) -> T:
    places = self.function(type(whole).arange(whole.numel(), device=whole.device).reshape(whole.shape))
    return whole.reshape(-1).scatter(0, places.reshape(-1), part.reshape(-1)).reshape(whole.shape)


class Detached(View):
  """The same without its history, which a change does not bring along either."""
  __slots__ = ()
  tracks = False

  def __init__(self, of: Any) -> None: super().__init__(of, strides_of(of))
  def forward(self, whole: T) -> T: return whole.detach()
  def back(self, whole: T, part: T) -> T: return part.detach()


class Bitcast(View):
  """The same memory as another type, which no gradient goes through."""
  __slots__ = ("dtype",)
  tracks = False

  def __init__(self, of: Any, dtype: DType, strides: tuple[int, ...]) -> None:
    super().__init__(of, strides)
    self.dtype = dtype

  def forward(self, whole: T) -> T: return whole.bitcast(self.dtype)
  def back(self, whole: T, part: T) -> T: return part.bitcast(whole.dtype)


def in_row_major_order(shape: tuple[int, ...]) -> tuple[int, ...]:
  """Strides of elements side by side."""
  strides: list[int] = []
  step = 1
  for size in reversed(shape):
    strides.append(step)
    step *= larger(size, 1)
  return tuple(strides[::-1])


def strides_of(tensor: Any) -> tuple[int, ...]:
  """How far apart a tensor's elements lie in the memory of what it is a view of."""
  view: View | None = tensor._view
  return in_row_major_order(tensor.shape) if view is None else view.strides


def reshaped(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
  """The strides of the same elements in another shape, or None where no strides give them, surely: they would be
  copied."""
  if new == shape: return strides
  if 0 in shape or strides == in_row_major_order(shape): return in_row_major_order(new)
  axes = [(size, step) for size, step in zip(shape, strides) if size != 1]
  found: list[int] = []
  for size in reversed(new):
    if size == 1:
      found.append(found[-1] if found else 1)
      continue
    if not axes: return None
    whole, step = axes.pop()
    found.append(step)
    while whole != size and axes and axes[-1][1] == step * whole: whole *= axes.pop()[0]   # they are one axis
    if whole == size: continue
    if isinstance(whole, Size) or isinstance(size, Size) or whole % size: return None
    axes.append((whole // size, step * size))
  return tuple(found[::-1])


def above(view: View) -> list[tuple[View, Any]]:
  """The views from this one up to the last one of a tensor that lives, each with the tensor above it where that lives.
  """
  chain: list[tuple[View, Any]] = []
  at: View | None = view
  lives = 0
  while at is not None:
    chain.append((at, p := at.parent()))
    if p is not None: lives = len(chain)
    at = at.up if p is None else p._view  # it may be something else by now
  return chain[:lives]


def same_index(a: Any, b: Any) -> bool:
  """Whether two indices are surely one."""
  if a is b: return True
  if type(a) is not type(b): return False
  if isinstance(a, tuple): return len(a) == len(b) and all(map(same_index, a, b))
  if isinstance(a, slice): return all(map(same_index, (a.start, a.stop, a.step), (b.start, b.stop, b.step)))
  return isinstance(a, int) and bool(a == b)


def stale(view: View, chain: Sequence[tuple[View, Viewed | None]]) -> bool:
  """Whether something above has got another value since the view was made."""
  return any(p is not None and p.changes > view.version for _, p in chain)


def values(chain: Sequence[tuple[View, T | None]]) -> list[T]:
  """What each view of a chain is a view of, as it is now: of those that are gone it is made anew."""
  out: list[T] = []
  for n, (_, p) in reversed([*enumerate(chain, 1)]):
    out.append(chain[n][0].forward(out[-1]) if p is None else p)  # the last one lives
  return out[::-1]


def overlap(a: Viewed, b: Viewed) -> bool:
  """Whether two tensors are views of one that lives, with an element in common; or one of the other."""
  def line(t: Viewed) -> list[tuple[View | None, Viewed]]:
    found = [] if t._view is None else above(t._view)
    return [(None, t), *((view, p) for view, p in found if p is not None)]
  whole = next((p for _, p in line(a) if any(p is q for _, q in line(b))), None)
  if whole is None: return False
  def places(t: Viewed) -> set[int]:
    at = type(t).arange(whole.numel(), device="LLVM").reshape(whole.shape)
    if t is not whole and t._view is not None:
      chain = above(t._view)
      end = next(n for n, (_, p) in enumerate(chain, 1) if p is whole)
      for view, _ in reversed(chain[:end]): at = view.forward(at)
    return set(at.reshape(-1).tolist())
  return not places(a).isdisjoint(places(b))
