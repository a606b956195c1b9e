"""Views: tensors that are parts of others, or others in another shape. A change in place of a view changes what it is a
view of.

Tensors are values, and graphs of values: there is no memory that two of them share. So a view keeps how it was made,
and who assigns to it gives the tensor above a new value with that part changed, and so on up. It looks up only when it
is changed: until then it keeps the value that it had when it was made.
"""
from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw.ir.dtype import DType
  from tinyhw.tensor import Tensor


class View(ABC):
  """How a tensor was made of another one. `of` refers to that, `up` is how that was made, `version` counts what had
  been assigned to it then, `wrote` says that something went up and nobody has realized it."""
  __slots__ = ("of", "up", "version", "wrote")
  of: weakref.ref[Any] | None
  tracks = True  # whether the history of what is assigned goes up, too

  def __init__(self, of: Any) -> None:
    self.of, self.up, self.version, self.wrote = of._listed, of._view, of.changes, False

  @abstractmethod
  def forward(self, whole: Tensor) -> Tensor:
    """The view of a value."""

  @abstractmethod
  def back(self, whole: Tensor, part: Tensor) -> Tensor:
    """The value with another one in the view."""

  def parent(self) -> Tensor | None:
    """What it is a view of, if that still lives."""
    return None if self.of is None else self.of()


class Reshaped(View):
  """The same elements in row-major order."""
  __slots__ = ("shape",)

  def __init__(self, of: Any, shape: Any) -> None:
    super().__init__(of)
    self.shape = shape

  def forward(self, whole: Tensor) -> Tensor: return whole.reshape(self.shape)
  def back(self, whole: Tensor, part: Tensor) -> Tensor: return part.reshape(whole.shape)


class Permuted(View):
  """Axes in another order."""
  __slots__ = ("order",)

  def __init__(self, of: Any, order: tuple[int, ...]) -> None:
    super().__init__(of)
    self.order = order

  def forward(self, whole: Tensor) -> Tensor: return whole.permute(self.order)

  def back(self, whole: Tensor, part: Tensor) -> Tensor:
    return part.permute([self.order.index(a) for a in range(len(self.order))]) if self.order else part


class Indexed(View):
  """A part that ints, slices, None and Ellipsis choose."""
  __slots__ = ("index",)

  def __init__(self, of: Any, index: Any) -> None:
    super().__init__(of)
    self.index = index

  def forward(self, whole: Tensor) -> Tensor: return whole[self.index]
  def back(self, whole: Tensor, part: Tensor) -> Tensor: return whole._with_part(self.index, part)


class Diagonal(View):
  """A diagonal of two axes, as a last axis."""
  __slots__ = ("where",)

  def __init__(self, of: Any, where: tuple[int, int, int]) -> None:
    super().__init__(of)
    self.where = where

  def forward(self, whole: Tensor) -> Tensor: return whole.diagonal(*self.where)
  def back(self, whole: Tensor, part: Tensor) -> Tensor: return whole.diagonal_scatter(part, *self.where)


class Detached(View):
  """The same without its history, which a change does not bring along either."""
  __slots__ = ()
  tracks = False
  def forward(self, whole: Tensor) -> Tensor: return whole.detach()
  def back(self, whole: Tensor, part: Tensor) -> Tensor: return part.detach()


class Bitcast(View):
  """The same memory as another type, which no gradient goes through."""
  __slots__ = ("dtype",)
  tracks = False

  def __init__(self, of: Any, dtype: DType) -> None:
    super().__init__(of)
    self.dtype = dtype

  def forward(self, whole: Tensor) -> Tensor: return whole.bitcast(self.dtype)
  def back(self, whole: Tensor, part: Tensor) -> Tensor: return part.bitcast(whole.dtype)


def above(view: View) -> list[tuple[View, Tensor | None]]:
  """The views from this one up to the last one of a tensor that lives, each with the tensor above it where that lives.
  """
  chain: list[tuple[View, Tensor | None]] = []
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


def stale(chain: list[tuple[View, Tensor | None]]) -> bool:
  """Whether something above has another value than when the views were made."""
  return any(p is not None and p.changes != v.version for v, p in chain)


def values(chain: list[tuple[View, Tensor | None]]) -> list[Tensor]:
  """What each view of a chain is a view of, as it is now: of those that are gone it is made anew."""
  out: list[Tensor] = []
  for n, (_, p) in reversed([*enumerate(chain, 1)]):
    if p is not None and not stale(chain[n:]): out.append(p)
    else: out.append(chain[n][0].forward(out[-1]))  # the last one lives
  return out[::-1]
