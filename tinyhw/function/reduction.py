"""Functions that combine the elements along axes: sums, extremes, moments, norms."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidIndex, InvalidShape
from tinyhw.function.core import ConstType, broadcast_shape
from tinyhw.function.indexing import Indexing
from tinyhw.ir.dtype import DType, dtypes, promote
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, larger, lowest

if TYPE_CHECKING:
  from typing import Self

Axes = int | Sequence[int] | None
DTypeLike = DType | str | None


def sum_dtype(dtype: DType) -> DType:
  """What a sum is accumulated in: at least 32 bits of the same kind, int32 for bools."""
  if dtype.is_bool: return dtypes.int32
  return promote(dtype, dtypes.float32 if dtype.is_float else dtypes.int32 if dtype.is_signed else dtypes.uint32)


def named(dtype: DTypeLike) -> DType | None:
  """A dtype by itself or by its name."""
  return dtypes.named(dtype) if isinstance(dtype, str) else dtype


class Reduction(Indexing):
  """The functions that combine elements along axes."""
  __slots__ = ()

  def _reduce(self, op: Ops, axes: Axes, keepdim: bool) -> Self:
    chosen = self._axes(axes)
    result = self._derive(self.uop.reduce(op, chosen))
    if op is Ops.ADD and self.dtype.is_float: result = result + 0.0       # a sum of -0.0 alone is 0.0, as NumPy has it
    return result if keepdim else result._without(chosen)

  def _without(self, axes: Sequence[int]) -> Self:
    return self.reshape(tuple(s for i, s in enumerate(self.shape) if i not in axes))

  def _count(self, axes: Axes) -> int:
    return math.prod(self.shape[a] for a in self._axes(axes))

  def sum(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None) -> Self:
    """Sum. Small integers sum in 32 bits; 16-bit floats sum in float32 and the result is rounded once."""
    kind = named(dtype)
    wide = self.cast(kind or sum_dtype(self.dtype))._reduce(Ops.ADD, axis, keepdim)
    return wide.cast(self.dtype) if kind is None and self.dtype.is_float else wide

  def prod(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None) -> Self:
    """Product, in the types that `sum` uses."""
    kind = named(dtype)
    wide = self.cast(kind or sum_dtype(self.dtype))._reduce(Ops.MUL, axis, keepdim)
    return wide.cast(self.dtype) if kind is None and self.dtype.is_float else wide

  def _not_empty(self, axes: Axes, what: str) -> None:
    count = self._count(axes)
    if count == 0 and axes is None:
      more = "" if what.startswith("arg") else " Specify the reduction dim with the 'dim' argument."
      raise InvalidArgument(f"{what}(): Expected reduction dim to be specified for input.numel() == 0.{more}")
    if count == 0:
      empty = next(i for i in self._axes(axes) if not self.shape[i])
      raise InvalidIndex(f"{what}(): Expected reduction dim {empty} to have non-zero size.")
    if lowest(count) < 1:
      raise InvalidArgument(f"{what} over {count} elements, which may be none, has no value then",
                            hint="give the Variable a greater minimum")

  def amax(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Greatest element; NaN if there is one. Equal ones share the gradient."""
    return self._max_along(axis, keepdim, "amax")

  def amin(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Least element; NaN if there is one. Equal ones share the gradient."""
    return self._min_along(axis, keepdim, "amin")

  def _max_along(self, axis: Axes, keepdim: bool, what: str) -> Self:
    self._not_empty(axis, what)
    return self._reduce(Ops.MAX, axis, keepdim)

  def _min_along(self, axis: Axes, keepdim: bool, what: str) -> Self:
    self._not_empty(axis, what)
    if self.dtype.is_float: return -((-self)._reduce(Ops.MAX, axis, keepdim))
    return self.bitwise_not()._reduce(Ops.MAX, axis, keepdim).bitwise_not()

  def max(self, axis: Axes | Self = None, keepdim: bool = False) -> Self:
    """Greatest element; NaN if there is one. Along one axis the first one has the gradient, else equal ones share it.
    Of two tensors their `maximum`."""
    if isinstance(axis, Reduction): return self.maximum(axis)
    return self._first_one(self._max_along(axis, keepdim, "max"), "argmax", axis, keepdim)

  def min(self, axis: Axes | Self = None, keepdim: bool = False) -> Self:
    """Least element; NaN if there is one. Along one axis the first one has the gradient, else equal ones share it.
    Of two tensors their `minimum`."""
    if isinstance(axis, Reduction): return self.minimum(axis)
    return self._first_one(self._min_along(axis, keepdim, "min"), "argmin", axis, keepdim)

  def _first_one(self, found: Self, name: str, axis: Axes, keepdim: bool) -> Self:
    """A value whose gradient is that of the element at the position that `name` finds along one axis."""
    if not isinstance(axis, int) or not found.dtype.is_float or not self._asked or not self.ndim: return found
    at = getattr(self._still(), name)(axis, keepdim=True)
    picked = self.gather(axis, at)
    picked = picked if keepdim else picked._without([self._axis(axis)])
    return found._still()._with_derivative((picked, lambda: picked.const_like(1)))

  def aminmax(self, axis: int | None = None, keepdim: bool = False) -> tuple[Self, Self]:
    """Least and greatest element."""
    return self.amin(axis, keepdim), self.amax(axis, keepdim)

  def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Whether some element is not zero."""
    return self.bool()._reduce(Ops.MAX, axis, keepdim)

  def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Whether no element is zero."""
    return self.bool().logical_not()._reduce(Ops.MAX, axis, keepdim).logical_not()

  def equal(self, other: Self) -> bool:
    """Whether the other has this shape and these elements; read."""
    same: Any = self.shape == other.shape and self.eq(other).all()
    return bool(same)

  def allclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close (`isclose`); read."""
    close: Any = self.isclose(other, rtol, atol, equal_nan).all()
    return bool(close)

  def count_nonzero(self, axis: Axes = None) -> Self:
    """How many elements are not zero."""
    return self.bool().sum(axis)

  def mean(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None) -> Self:
    """Average; of integers as the default float."""
    wide, kind = self._in_wide() if dtype is None else self.cast(named(dtype) or self.dtype)._in_wide()
    count = self._count(axis)
    total = wide.sum(axis, keepdim)
    return (total / count if count else total * math.nan).cast(kind)

  def nansum(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Sum of the elements that are numbers."""
    return self.isnan().where(0, self).sum(axis, keepdim)

  def nanmean(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Average of the elements that are numbers."""
    there = self.isnan().logical_not()
    wide, kind = self._in_wide()
    return (there.where(wide, 0).sum(axis, keepdim) / there.sum(axis, keepdim)).cast(kind)

  def _moments(self, axis: Axes, keepdim: bool, correction: ConstType | None, unbiased: bool | None) -> tuple[Self,
                                                                                                              Self]:
    """Variance and mean, in the type that is computed in."""
    if isinstance(axis, bool): axis, unbiased = None, axis
    if unbiased is not None: correction = int(unbiased)
    wide, _ = self._in_wide()
    chosen = self._axes(axis)
    middle = wide.mean(axis, keepdim=True)
    apart = wide - middle
    count = self._count(axis) - (1 if correction is None else correction)
    total = apart.square().sum(axis, keepdim)
    if isinstance(count, Size) and lowest(count) < 1:
      there = self._operand(count) > 0
      found = there.where(total / there.where(self._operand(count), 1), math.nan)
    else:
      found = total / (larger(count, 0) if isinstance(count, Size) else max(count, 0))
    return found, middle if keepdim else middle._without(chosen)

  def var(self, axis: Axes = None, keepdim: bool = False, correction: ConstType | None = 1, *,
          unbiased: bool | None = None) -> Self:
    """Variance, divided by the count less `correction`; `unbiased` is a correction of 1 or 0."""
    return self._moments(axis, keepdim, correction, unbiased)[0].cast(self._in_wide()[1])

  def std(self, axis: Axes = None, keepdim: bool = False, correction: ConstType | None = 1, *,
          unbiased: bool | None = None) -> Self:
    """Standard deviation."""
    return self._moments(axis, keepdim, correction, unbiased)[0]._safe_root().cast(self._in_wide()[1])

  def var_mean(self, axis: Axes = None, keepdim: bool = False, correction: ConstType | None = 1, *,
               unbiased: bool | None = None) -> tuple[Self, Self]:
    """Variance and average."""
    spread, middle = self._moments(axis, keepdim, correction, unbiased)
    return spread.cast(self._in_wide()[1]), middle.cast(self._in_wide()[1])

  def std_mean(self, axis: Axes = None, keepdim: bool = False, correction: ConstType | None = 1, *,
               unbiased: bool | None = None) -> tuple[Self, Self]:
    """Standard deviation and average."""
    spread, middle = self._moments(axis, keepdim, correction, unbiased)
    return spread._safe_root().cast(self._in_wide()[1]), middle.cast(self._in_wide()[1])

  def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
    """Position of the first greatest element (of the flat tensor for None), as int32; a NaN counts as the greatest."""
    if axis is None:
      self._not_empty(None, "argmax")
      flat = self.flatten().argmax(0)
      return flat.reshape((1,) * self.ndim) if keepdim else flat
    self._not_empty(axis, "argmax")
    axis = self._axis(axis)
    if not self.shape: return self._wrap(self._const(0, dtypes.int32))
    size = self.shape[axis]
    found = self == self.amax(axis, keepdim=True)
    if self.dtype.is_float: found = found | self.isnan()
    # The first one is where "places left to the end" is greatest.
    left = (size - self._iota(size)).reshape(tuple(size if i == axis else 1 for i in range(self.ndim)))
    return size - found.where(left, 0).amax(axis, keepdim)

  def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
    """Position of the first least element, as int32."""
    self._not_empty(axis, "argmin")
    return (-self if self.dtype.is_float else self.bitwise_not()).argmax(axis, keepdim)

  def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """log(sum(exp(x))), without overflow."""
    wide, dtype = self._in_wide()
    if not self._count(axis): return (wide.sum(axis, keepdim) - math.inf).cast(dtype)
    top = wide.amax(axis, keepdim=True)._still()
    # An infinity stays what it is: nothing is subtracted from it.
    top = (top.abs() < math.inf).where(top, 0)
    total = (wide - top).exp().sum(axis, keepdim=True).log() + top
    return (total if keepdim else total._without(self._axes(axis))).cast(dtype)

  # *** norms ***

  def norm(self, p: float | str | None = "fro", axis: Axes = None, keepdim: bool = False,
           dtype: DTypeLike = None) -> Self:
    """The p-norm of the elements along axes: sum(|x|^p)^(1/p); "fro" is 2, inf and -inf are the greatest and the least
    magnitude, 0 counts what is not zero."""
    if p in (None, "fro"): p = 2.0
    if isinstance(p, str): raise InvalidArgument(f"norm {p!r}", hint='numbers, "fro", inf and -inf are known')
    assert p is not None
    x, kind = (self.cast(named(dtype) or self.dtype) if dtype else self)._in_wide()
    if p == 0: return x.ne(0).cast(x.dtype).sum(axis, keepdim).cast(kind)
    if math.isinf(p): return (x.abs().amax(axis, keepdim) if p > 0 else x.abs().amin(axis, keepdim)).cast(kind)
    if p == 1: return x.abs().sum(axis, keepdim).cast(kind)
    if p == 2: return x._root_of_squares(axis, keepdim).cast(kind)
    power = x.abs()._safe_power(p).sum(axis, keepdim)
    return power._safe_power(1 / p).cast(kind)

  def _root_of_squares(self, axis: Axes, keepdim: bool) -> Self:
    """sqrt(sum(x * x)), whose derivative where all are 0 is 0."""
    return self.square().sum(axis, keepdim)._safe_root()

  def _safe_root(self) -> Self:
    """The square root, whose derivative at 0 is 0."""
    return self.eq(0).where(0, self.eq(0).where(1, self).sqrt())

  def _safe_power(self, p: float) -> Self:
    """A power of numbers that are not negative, whose derivative at 0 is 0."""
    zero = self.eq(0)
    return zero.where(0 if p > 0 else math.inf, zero.where(1, self).pow(p))

  def dist(self, other: Self, p: float = 2.0) -> Self:
    """The p-norm of the difference."""
    return (self - other).norm(p)

  def normalize(self, p: float = 2.0, axis: Axes = 1, eps: float = 1e-12) -> Self:
    """Divided by the p-norm along axes, or by `eps` where that is less."""
    return self / self.norm(p, axis, keepdim=True).maximum(eps)

  def cosine_similarity(self, other: Self, axis: int = 1, eps: float = 1e-8) -> Self:
    """The cosine of the angle between vectors along an axis; norms count as `eps` at least."""
    if self.shape != other.shape:
      common = broadcast_shape(self.shape, other.shape)
      return self.expand(common).cosine_similarity(other.expand(common), axis, eps)
    product = (self * other).sum(axis)
    return product / (self.norm(2, axis).maximum(eps) * other.norm(2, axis).maximum(eps))

  def pairwise_distance(self, other: Self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Self:
    """The p-norm of `self - other + eps` along the last axis."""
    return (self - other + eps).norm(p, -1, keepdim)

  def pdist(self, p: float = 2.0) -> Self:
    """The p-norms of the differences of each two rows of a matrix, in order."""
    if self.ndim != 2: raise InvalidShape(f"pdist of shape {self.shape}", hint="it is for a matrix")
    n = self.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    made: Any = type(self)
    first, second = (self[made([pair[k] for pair in pairs], device=self.device, dtype=dtypes.int32)] for k in (0, 1))
    return (first - second).norm(p, -1)

  def renorm(self, p: float, axis: int, maxnorm: float) -> Self:
    """Each part along an axis with a p-norm of `maxnorm` at most."""
    axis = self._axis(axis)
    size = self.norm(p, [a for a in range(self.ndim) if a != axis], keepdim=True)
    return (size > maxnorm).where(self * (maxnorm / (size + 1e-7)), self)

  def sum_to_size(self, *size: Any) -> Self:
    """Summed to a shape that broadcasts to this one."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)
    more = self.ndim - len(wanted)
    if more < 0 or any(w not in (1, s) for w, s in zip(wanted, self.shape[more:])):
      raise InvalidShape(f"sum_to_size of shape {self.shape} to {wanted}")
    axes = [*range(more), *(a + more for a, w in enumerate(wanted) if w != self.shape[a + more])]
    return (self.sum(axes, keepdim=True) if axes else self._same()).reshape(wanted)

  def vector_norm(self, ord: float = 2.0, axis: Axes = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Self:
    """As `norm`, over all axes also where none is named."""
    return self.norm(ord, None if axis == () else axis, keepdim, dtype)

  def cdist(self, other: Self, p: float = 2.0, compute_mode: str | None = None) -> Self:
    """The p-norms of the differences of every row of this and every row of the other. (They
    are computed as they are written, whatever `compute_mode` allows.)"""
    return (self.unsqueeze(-2) - other.unsqueeze(-3)).norm(p, -1)
