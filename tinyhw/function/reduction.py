"""Functions that combine the elements along axes: sums, extremes, products of matrices, softmax, losses."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.core import broadcast_shape
from tinyhw.function.movement import Movement
from tinyhw.ir.dtype import DType, dtypes, promote
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self

Axes = int | Sequence[int] | None


def sum_dtype(dtype: DType) -> DType:
  """What a sum is accumulated in: at least 32 bits of the same kind, int32 for bools."""
  if dtype.is_bool: return dtypes.int32
  return promote(dtype, dtypes.float32 if dtype.is_float else dtypes.int32 if dtype.is_signed else dtypes.uint32)


class Reduction(Movement):
  """The functions that combine elements along axes."""
  __slots__ = ()

  def _reduce(self, op: Ops, axes: Axes, keepdim: bool) -> Self:
    chosen = self._axes(axes)
    result = self._derive(self.uop.reduce(op, chosen))
    if op is Ops.ADD and self.dtype.is_float: result = result + 0.0       # a sum of -0.0 alone is 0.0, as NumPy has it
    return result if keepdim else result.reshape(tuple(s for i, s in enumerate(self.shape) if i not in chosen))

  def _count(self, axes: Axes) -> int:
    return math.prod(self.shape[a] for a in self._axes(axes))

  def sum(self, axis: Axes = None, keepdim: bool = False, dtype: DType | None = None) -> Self:
    """Sum. Small integers sum in 32 bits; 16-bit floats sum in float32 and the result is rounded once."""
    wide = self.cast(dtype or sum_dtype(self.dtype))._reduce(Ops.ADD, axis, keepdim)
    return wide.cast(self.dtype) if dtype is None and self.dtype.is_float else wide

  def prod(self, axis: Axes = None, keepdim: bool = False, dtype: DType | None = None) -> Self:
    """Product, in the types that `sum` uses."""
    wide = self.cast(dtype or sum_dtype(self.dtype))._reduce(Ops.MUL, axis, keepdim)
    return wide.cast(self.dtype) if dtype is None and self.dtype.is_float else wide

  def _not_empty(self, axes: Axes, what: str) -> None:
    if self._count(axes) == 0: raise InvalidArgument(f"{what} over no elements of shape {self.shape} has no value")

  def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Greatest element; NaN if there is one."""
    self._not_empty(axis, "max")
    return self._reduce(Ops.MAX, axis, keepdim)

  def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Least element; NaN if there is one."""
    self._not_empty(axis, "min")
    if self.dtype.is_float: return -((-self)._reduce(Ops.MAX, axis, keepdim))
    return self.bitwise_not()._reduce(Ops.MAX, axis, keepdim).bitwise_not()

  def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Whether some element is not zero."""
    return self.bool()._reduce(Ops.MAX, axis, keepdim)

  def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Whether no element is zero."""
    return self.bool().logical_not()._reduce(Ops.MAX, axis, keepdim).logical_not()

  def mean(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """Average; of integers as the default float."""
    wide, dtype = self._in_wide()
    return (wide.sum(axis, keepdim) / self._count(axis)).cast(dtype)

  def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
    """Variance, divided by the count less `correction`."""
    wide, dtype = self._in_wide()
    apart = wide - wide.mean(axis, keepdim=True)
    count = self._count(axis) - correction
    total = apart.square().sum(axis, keepdim)
    return (total / count if count > 0 else total * math.nan).cast(dtype)

  def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
    """Standard deviation."""
    return self.var(axis, keepdim, correction).sqrt()

  def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
    """Position of the first greatest element (of the flat tensor for None), as int32; a NaN counts as the greatest."""
    if axis is None:
      flat = self.flatten().argmax(0)
      return flat.reshape((1,) * self.ndim) if keepdim else flat
    self._not_empty(axis, "argmax")
    axis = self._axis(axis)
    if not self.shape: return self._wrap(self._const(0, dtypes.int32))
    size = self.shape[axis]
    found = self == self.max(axis, keepdim=True)
    if self.dtype.is_float: found = found | self.isnan()
    # The first one is where "places left to the end" is greatest.
    left = (size - self._iota(size)).reshape(tuple(size if i == axis else 1 for i in range(self.ndim)))
    return size - found.where(left, 0).max(axis, keepdim)

  def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
    """Position of the first least element, as int32."""
    return (-self if self.dtype.is_float else self.bitwise_not()).argmax(axis, keepdim)

  def cumsum(self, axis: int = 0) -> Self:
    """Running sum along an axis."""
    axis = self._axis(axis)
    if not self.shape or self.shape[axis] == 0: return self._same()
    size = self.shape[axis]
    last = self.cast(sum_dtype(self.dtype)).movedim(axis, -1)
    places = self._iota(size)
    mask = places.reshape(1, size) <= places.reshape(size, 1)
    total = mask.where(last.unsqueeze(-2), 0).sum(-1).movedim(-1, axis)
    return total.cast(self.dtype) if self.dtype.is_float else total

  # *** matrices ***

  def matmul(self, other: Self, dtype: DType | None = None) -> Self:
    """Product of matrices in the last two axes, the ones before broadcast; a vector on either side as in NumPy.

    Accumulates as `sum` does.
    """
    x, w = self, self._right(other)
    if x.ndim == 0 or w.ndim == 0:
      raise InvalidArgument(f"matmul of shapes {x.shape} and {w.shape}: a scalar has no axis")
    inner, axis = x.shape[-1], -min(w.ndim, 2)
    if inner != w.shape[axis]:
      raise InvalidArgument(f"matmul of shapes {x.shape} and {w.shape}: {inner} columns meet {w.shape[axis]} rows")
    common = promote(x.dtype, w.dtype)
    column = w.ndim == 1
    left = x.reshape(*x.shape[:-1], 1, inner) if not column else x
    right = w.transpose(-1, -2) if not column else w
    if x.ndim > 1 and w.ndim > 2:
      # (..., M, 1, K) against (..., 1, N, K)
      right = right.reshape(*right.shape[:-2], 1, *right.shape[-2:])
    wide = dtype or sum_dtype(common)
    # The product of two 16-bit floats is exact in the accumulator's type.
    product = left.cast(common).cast(wide) * right.cast(common).cast(wide)
    total = product._reduce(Ops.ADD, -1, False)
    return total.cast(common) if dtype is None and common.is_float else total
  dot = matmul

  def __matmul__(self, other: Self) -> Self: return self.matmul(other)
  def __rmatmul__(self, other: Self) -> Self: return self._right(other).matmul(self)

  def _right(self, other: Self) -> Self:
    found: Self = self._operand(other)
    return found

  def linear(self, weight: Self, bias: Self | None = None) -> Self:
    """`x @ weight + bias`, with `weight` of shape (in, out)."""
    result = self.matmul(weight)
    return result if bias is None else result + bias

  # *** normalization ***

  def _softmax_parts(self, axis: int) -> tuple[Self, Self, Self]:
    apart = self - self.max(axis, keepdim=True).detach_()
    small = apart.exp()
    return apart, small, small.sum(axis, keepdim=True)

  def detach_(self) -> Self:
    """This value without its history (what `Tensor.detach` gives)."""
    return self._wrap(self.uop.detach())

  def softmax(self, axis: int = -1) -> Self:
    """exp(x) / sum(exp(x)) along an axis, without overflow."""
    wide, dtype = self._in_wide()
    _, small, total = wide._softmax_parts(axis)
    return (small / total).cast(dtype)

  def log_softmax(self, axis: int = -1) -> Self:
    """Logarithm of softmax, without overflow."""
    wide, dtype = self._in_wide()
    apart, _, total = wide._softmax_parts(axis)
    return (apart - total.log()).cast(dtype)

  def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
    """log(sum(exp(x))), without overflow."""
    wide, dtype = self._in_wide()
    top = wide.max(axis, keepdim=True).detach_()
    total = (wide - top).exp().sum(axis, keepdim=True).log() + top
    shape = tuple(s for i, s in enumerate(self.shape) if i not in self._axes(axis))
    return (total if keepdim else total.reshape(shape)).cast(dtype)

  def layernorm(self, axis: Axes = -1, eps: float = 1e-5) -> Self:
    """Mean 0 and variance 1 along axes."""
    apart = self - self.mean(axis, keepdim=True)
    return apart * (apart.square().mean(axis, keepdim=True) + eps).rsqrt()

  # *** losses ***

  def _averaged(self, reduction: str, weight: Self | None = None) -> Self:
    if reduction == "none": return self
    if reduction == "sum": return self.sum()
    if reduction != "mean": raise InvalidArgument(f'reduction {reduction!r} is none of "mean", "sum", "none"')
    return self.mean() if weight is None else self.sum() / weight.sum()

  def sparse_categorical_crossentropy(self, target: Self, ignore_index: int | None = None, label_smoothing: float = 0.0,
                                      reduction: str = "mean") -> Self:
    """Cross entropy of logits (..., classes) and class numbers (...)."""
    if self.shape[:-1] != target.shape:
      raise InvalidArgument(f"logits of shape {self.shape} need targets of shape {self.shape[:-1]}, not {target.shape}")
    scores = self.log_softmax(-1)
    chosen = target.one_hot(self.shape[-1]).bool()
    loss = -chosen.where(scores, 0).sum(-1)
    if label_smoothing: loss = (1 - label_smoothing) * loss - label_smoothing * scores.mean(-1)
    if ignore_index is None: return loss._averaged(reduction)
    counted = target.ne(ignore_index)
    return counted.where(loss, 0)._averaged(reduction, counted.cast(loss.dtype))

  def cross_entropy(self, target: Self, reduction: str = "mean", label_smoothing: float = 0.0) -> Self:
    """Cross entropy of logits (batch, classes, ...) and class numbers (batch, ...) or probabilities of the logits'
    shape."""
    last = self.movedim(1, -1) if self.ndim > 1 else self
    if target.ndim < self.ndim:
      return last.sparse_categorical_crossentropy(target, label_smoothing=label_smoothing, reduction=reduction)
    if target.shape != self.shape:
      raise InvalidArgument(f"logits of shape {self.shape} do not fit targets of shape {target.shape}")
    goal = target.movedim(1, -1) if self.ndim > 1 else target
    goal = goal * (1 - label_smoothing) + label_smoothing / last.shape[-1]
    return (-(last.log_softmax(-1) * goal).sum(-1))._averaged(reduction)

  def binary_crossentropy_logits(self, target: Self, reduction: str = "mean") -> Self:
    """Cross entropy of logits and probabilities of one class."""
    broadcast_shape(self.shape, target.shape)
    return (self.softplus() - self * target)._averaged(reduction)

  def mse_loss(self, target: Self, reduction: str = "mean") -> Self:
    """Squared difference."""
    return (self - target).square()._averaged(reduction)
