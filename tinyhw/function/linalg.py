"""Products of matrices and vectors."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.core import ConstType, broadcast_shape, expand_to
from tinyhw.function.formula import einsum_parts
from tinyhw.function.reduction import DTypeLike, named, sum_dtype
from tinyhw.function.sorting import Sorting
from tinyhw.ir.dtype import promote
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self


class Linalg(Sorting):
  """The products."""
  __slots__ = ()

  def matmul(self, other: Self, dtype: DTypeLike = None) -> Self:
    """Product of matrices in the last two axes, the ones before broadcast; a vector on either side as in NumPy.

    Accumulates as `sum` does, and has the operands' type.
    """
    x, w = self, self._right(other)
    if x.ndim == 0 or w.ndim == 0:
      raise InvalidShape(f"matmul of shapes {x.shape} and {w.shape}: a scalar has no axis")
    inner, axis = x.shape[-1], -min(w.ndim, 2)
    if inner != w.shape[axis]:
      raise InvalidShape(f"matmul of shapes {x.shape} and {w.shape}: {inner} columns meet {w.shape[axis]} rows")
    common = promote(x.dtype, w.dtype)
    kind = named(dtype)
    wide = kind or sum_dtype(common)
    left, right = x.uop, w.uop
    if w.ndim > 1:
      left = left.reshape((*left.shape[:-1], 1, inner))
      axes = tuple(range(w.ndim))
      right = right.permute((*axes[:-2], axes[-1], axes[-2]))
      # (..., M, 1, K) against (..., 1, N, K)
      if x.ndim > 1 and w.ndim > 2: right = right.reshape((*right.shape[:-2], 1, *right.shape[-2:]))
    # The product of two 16-bit floats is exact in the accumulator's type.
    left, right = (u.cast(common).cast(wide) for u in (left, right))
    shape = broadcast_shape(left.shape, right.shape)
    product = self._wrap(expand_to(left, shape).alu(Ops.MUL, expand_to(right, shape)), x, w)
    total = product._reduce(Ops.ADD, -1, False)
    return total.cast(common) if kind is None else total

  def dot(self, other: Self, dtype: DTypeLike = None) -> Self:
    """As `matmul`."""
    return self.matmul(other, dtype)

  def __matmul__(self, other: Self) -> Self: return self.matmul(other)
  def __rmatmul__(self, other: Self) -> Self: return self._right(other).matmul(self)

  def _right(self, other: Self) -> Self:
    found: Self = self._operand(other)
    return found

  def _ranks_must_be(self, name: str, other: Self, mine: int, theirs: int) -> None:
    if self.ndim != mine or other.ndim != theirs:
      raise InvalidShape(f"{name} of shapes {self.shape} and {other.shape}: it takes {mine} and {theirs} axes",
                         hint="matmul takes any")

  def mm(self, other: Self) -> Self:
    """Product of two matrices."""
    self._ranks_must_be("mm", other, 2, 2)
    return self.matmul(other)

  def bmm(self, other: Self) -> Self:
    """Products of two batches of matrices."""
    self._ranks_must_be("bmm", other, 3, 3)
    if self.shape[0] != other.shape[0]: raise InvalidShape(f"bmm of shapes {self.shape} and {other.shape}")
    return self.matmul(other)

  def mv(self, other: Self) -> Self:
    """Product of a matrix and a vector."""
    self._ranks_must_be("mv", other, 2, 1)
    return self.matmul(other)

  def vdot(self, other: Self) -> Self:
    """Sum of the products of two vectors."""
    self._ranks_must_be("vdot", other, 1, 1)
    return self.matmul(other)

  def inner(self, other: Self) -> Self:
    """Sums of products along the last axes, for all positions of the others."""
    if not self.ndim or not other.ndim: return self * other
    n, m = self.shape[-1], other.shape[-1]
    if n != m: raise InvalidShape(f"inner of shapes {self.shape} and {other.shape}: {n} elements meet {m}")
    found = self.reshape(-1, n).matmul(other.reshape(-1, n).transpose(0, 1))
    return found.reshape(*self.shape[:-1], *other.shape[:-1])

  def outer(self, other: Self) -> Self:
    """Every element of a vector times every element of the other."""
    self._ranks_must_be("outer", other, 1, 1)
    return self.unsqueeze(1) * other
  ger = outer

  def _added(self, product: Self, beta: ConstType, alpha: ConstType) -> Self:
    scaled = product if alpha == 1 else product * alpha
    # With a beta of 0 what was there counts for nothing, also a NaN.
    if beta == 0: return scaled
    return (self if beta == 1 else self * beta) + scaled

  def addmm(self, mat1: Self, mat2: Self, *, beta: ConstType = 1, alpha: ConstType = 1) -> Self:
    """beta * self + alpha * (mat1 @ mat2)."""
    return self._added(mat1.mm(mat2), beta, alpha)

  def addmv(self, mat: Self, vec: Self, *, beta: ConstType = 1, alpha: ConstType = 1) -> Self:
    """beta * self + alpha * (mat @ vec)."""
    return self._added(mat.mv(vec), beta, alpha)

  def addr(self, vec1: Self, vec2: Self, *, beta: ConstType = 1, alpha: ConstType = 1) -> Self:
    """beta * self + alpha * vec1.outer(vec2)."""
    return self._added(vec1.outer(vec2), beta, alpha)

  def baddbmm(self, batch1: Self, batch2: Self, *, beta: ConstType = 1, alpha: ConstType = 1) -> Self:
    """beta * self + alpha * batch1.bmm(batch2)."""
    return self._added(batch1.bmm(batch2), beta, alpha)

  def addbmm(self, batch1: Self, batch2: Self, *, beta: ConstType = 1, alpha: ConstType = 1) -> Self:
    """beta * self + alpha * the sum of batch1.bmm(batch2) over the batch."""
    return self._added(batch1.bmm(batch2).sum(0), beta, alpha)

  def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike = None) -> Self:
    """`x @ weight + bias`, with `weight` of shape (in, out); a vector is multiplied element by element."""
    if (kind := named(dtype)) is not None:
      self, weight, bias = self.cast(kind), weight.cast(kind), None if bias is None else bias.cast(kind)
    result = self * weight if weight.ndim == 1 else self.matmul(weight)
    return result if bias is None else result + bias

  @classmethod
  def einsum(cls, formula: str, *operands: Any, dtype: DTypeLike = None) -> Self:
    """Sums of products by a formula: `Tensor.einsum("ij,jk->ik", a, b)`. An axis that the result lacks is summed; `...`
    are axes that broadcast; without `->` the letters that occur once are the result's, in order."""
    listed = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    tensors: list[Any] = list(operands[0] if listed else operands)
    if not isinstance(formula, str) or not tensors: raise InvalidArgument("einsum takes a formula and tensors")
    terms, result = einsum_parts(formula, [t.shape for t in tensors])
    names = list(dict.fromkeys([*result, *(c for t in terms for c in t)]))
    sizes: dict[str, int] = {}
    for term, t in zip(terms, tensors):
      for name, size in zip(term, t.shape):
        if sizes.get(name, 1) not in (1, size) and size != 1:
          raise InvalidShape(f"einsum {formula!r} of shapes {', '.join(str(t.shape) for t in tensors)}",
                             hint=f"{name} has two sizes")
        sizes[name] = size if sizes.get(name, 1) == 1 or not size else sizes[name]
    product: Any = None
    common = promote(*(t.dtype for t in tensors))
    kind = named(dtype)
    wide = kind or sum_dtype(common)
    for term, t in zip(terms, tensors):
      x = t.cast(common)
      own = list(term)
      while len(set(own)) < len(own):        # an axis that occurs twice is a diagonal
        name = next(c for c in own if own.count(c) > 1)
        i, j = [k for k, c in enumerate(own) if c == name][:2]
        x = x.diagonal(0, i, j)
        own = [c for k, c in enumerate(own) if k not in (i, j)] + [name]
      x = x.permute([own.index(c) for c in names if c in own])
      x = x.reshape([x.shape[[c for c in names if c in own].index(c)] if c in own else 1 for c in names]).cast(wide)
      product = x if product is None else product * x
    product = product.expand([sizes[c] for c in names])
    summed = tuple(range(len(result), len(names)))
    total: Self = product._reduce(Ops.ADD, summed, False) if summed else product
    return total if kind else total.cast(common)

  def tensordot(self, other: Self, axis: int | Sequence[Sequence[int]] = 2) -> Self:
    """Sums of products along axes of both: the last of this and the first of the other, or those that are named."""
    if isinstance(axis, int) and not 0 <= axis <= min(self.ndim, other.ndim):
      raise InvalidShape(f"tensordot of shapes {self.shape} and {other.shape} along {axis} axes")
    if isinstance(axis, int): mine, theirs = list(range(self.ndim - axis, self.ndim)), list(range(axis))
    else: mine, theirs = [self._axis(a) for a in axis[0]], [other._axis(a) for a in axis[1]]
    if [self.shape[a] for a in mine] != [other.shape[a] for a in theirs]:
      raise InvalidShape(f"tensordot of shapes {self.shape} and {other.shape} along axes {axis}")
    left = [a for a in range(self.ndim) if a not in mine]
    right = [a for a in range(other.ndim) if a not in theirs]
    inner = math.prod(self.shape[a] for a in mine)
    rows, columns = [self.shape[a] for a in left], [other.shape[a] for a in right]
    x = self.permute(left + mine).reshape(math.prod(rows), inner)
    w = other.permute(theirs + right).reshape(inner, math.prod(columns))
    return x.matmul(w).reshape([*rows, *columns])

  def kron(self, other: Self) -> Self:
    """Every element of this times the whole other, side by side."""
    n = max(self.ndim, other.ndim)
    x, y = self._at_least(n), other._at_least(n)
    left = x.reshape([s for size in x.shape for s in (size, 1)])
    right = y.reshape([s for size in y.shape for s in (1, size)])
    return (left * right).reshape([a * b for a, b in zip(x.shape, y.shape)])

  def trace(self) -> Self:
    """Sum of a matrix's diagonal."""
    if self.ndim != 2: raise InvalidShape(f"trace of shape {self.shape}", hint="it is for matrices")
    return self.diagonal().sum()

  def cross(self, other: Self, axis: int = -1) -> Self:
    """The vector product of the three elements along an axis."""
    axis = self._axis(axis)
    if self.shape[axis] != 3 or other.shape[axis] != 3:
      raise InvalidShape(f"cross of shapes {self.shape} and {other.shape}", hint="the axis needs 3 elements")
    a, b, c, d = self.roll(-1, axis), other.roll(1, axis), self.roll(1, axis), other.roll(-1, axis)
    return a * b - c * d

  @classmethod
  def multi_dot(cls, tensors: Sequence[Any]) -> Self:
    """The product of several matrices, in the order that costs least; the first and the last may be vectors."""
    parts = list(tensors)
    if not parts: raise InvalidArgument("multi_dot of no tensors")
    while len(parts) > 1:
      # What costs least next is multiplied first.
      def cost(i: int) -> int:
        rows: int = parts[i].shape[0] if parts[i].ndim > 1 else 1
        columns: int = parts[i + 1].shape[-1] if parts[i + 1].ndim > 1 else 1
        return rows * int(parts[i].shape[-1]) * columns
      best = min(range(len(parts) - 1), key=cost)
      parts[best:best + 2] = [parts[best].matmul(parts[best + 1])]
    result: Self = parts[0]
    return result

  def matrix_power(self, n: int) -> Self:
    """The product of a square matrix with itself, `n` times."""
    if self.ndim < 2 or self.shape[-1] != self.shape[-2]:
      raise InvalidShape(f"matrix_power of shape {self.shape}", hint="it is for square matrices")
    result: Self | None = None
    square = self
    while n:
      if n & 1: result = square if result is None else result.matmul(square)
      n >>= 1
      if n: square = square.matmul(square)
    if result is not None: return result._same()
    rows = self._iota(self.shape[-1])
    return (rows == rows.unsqueeze(1)).cast(self.dtype).expand(self.shape)._unmoved_by(self)

  def newton_schulz(self, steps: int, params: Sequence[float], eps: float = 1e-7) -> Self:
    """Matrices with the same singular vectors, and singular values moved towards 1 by steps of an odd polynomial whose
    coefficients are `params`, from the one of x on. The first step is of the matrix by its norm (at least `eps`)."""
    if self.ndim < 2 or not self.dtype.is_float or not params:
      raise InvalidShape(f"newton_schulz of shape {self.shape}, {self.dtype}", hint="it is for matrices of floats")
    tall = self.shape[-2] > self.shape[-1]
    x = self.transpose(-2, -1) if tall else self
    x = x / x.square().sum((-2, -1), keepdim=True).sqrt().maximum(eps)
    for _ in range(steps):
      gram = x.matmul(x.transpose(-2, -1)).contiguous()
      factor, power = gram * params[1] if len(params) > 1 else None, gram
      for p in params[2:]:
        power = power.matmul(gram)
        factor = factor + power * p
      x = (x * params[0] if factor is None else x * params[0] + factor.matmul(x)).contiguous()
    return x.transpose(-2, -1) if tall else x

  def vecdot(self, other: Self, axis: int = -1) -> Self:
    """Sums of products of vectors along an axis."""
    return (self * self._right(other)).sum(axis)

  def vander(self, N: int | None = None, increasing: bool = False) -> Self:
    """The powers of a vector's elements as columns, from the highest on or `increasing`."""
    if self.ndim < 1: raise InvalidShape("vander of a scalar", hint="it is for vectors")
    count = self.shape[-1] if N is None else N
    powers = self._iota(count) if increasing else count - 1 - self._iota(count)
    found: Self = self.unsqueeze(-1) ** powers.cast(self.dtype)
    return found

  def block_diag(self, *others: Self) -> Self:
    """Matrices one after another on the diagonal of a matrix of zeros."""
    parts = [t._at_least(2) for t in (self, *others)]
    if any(t.ndim != 2 for t in parts): raise InvalidShape("block_diag is for matrices, vectors and scalars")
    rows, columns = sum(t.shape[0] for t in parts), sum(t.shape[1] for t in parts)
    down = across = 0
    total: Any = None
    for t in parts:
      wide = t._grown([(down, rows - down - t.shape[0]), (across, columns - across - t.shape[1])])
      total = wide if total is None else total + wide
      down, across = down + t.shape[0], across + t.shape[1]
    result: Self = total
    return result

  def cov(self, *, correction: int = 1, fweights: Self | None = None, aweights: Self | None = None) -> Self:
    """Covariances of variables, which are rows of observations; these count `fweights` times, and with `aweights`."""
    x = self.reshape(1, -1) if self.ndim < 2 else self
    if x.ndim > 2: raise InvalidShape(f"cov of shape {self.shape}", hint="it takes a matrix of observations")
    weight: Any = fweights
    if aweights is not None: weight = aweights if weight is None else weight * aweights
    if weight is None:
      count: Any = x.shape[1]
      apart = x - x.mean(1, keepdim=True)
      found = apart @ apart.T
      below: Any = count - correction
    else:
      total = weight.sum()
      apart = x - (x * weight).sum(1, keepdim=True) / total
      found = (apart * weight) @ apart.T
      below = total - (correction if aweights is None else (weight * aweights).sum() / total * correction)
    result: Self = found / below
    return result.reshape(()) if x.shape[0] == 1 else result

  def corrcoef(self) -> Self:
    """Correlations of variables, which are rows of observations."""
    found = self.cov()
    if not found.ndim: return found / found
    size = found.diagonal().sqrt()
    return (found / size.unsqueeze(1) / size).clip(-1, 1)

  def trapezoid(self, x: Self | None = None, *, dx: float = 1.0, axis: int = -1) -> Self:
    """The integral along an axis of lines between the elements, at the places `x`, or `dx` apart."""
    return self._trapezoids(x, dx, axis).sum(axis)
  trapz = trapezoid

  def cumulative_trapezoid(self, x: Self | None = None, *, dx: float = 1.0, axis: int = -1) -> Self:
    """The integrals up to each element but the first; see `trapezoid`."""
    return self._trapezoids(x, dx, axis).cumsum(axis)

  def _trapezoids(self, x: Self | None, dx: float, axis: int) -> Self:
    axis = self._axis(axis)
    size = self.shape[axis]
    if not size: return self
    middle = (self.narrow(axis, 0, size - 1) + self.narrow(axis, 1, size - 1)) * 0.5
    if x is None: return middle * dx
    steps = x.diff(axis=-1 if x.ndim == 1 else axis)
    if x.ndim == 1: steps = steps.reshape([-1 if a == axis else 1 for a in range(self.ndim)])
    return middle * steps

  @property
  def H(self) -> Self:
    """A matrix transposed."""
    if self.ndim != 2: raise InvalidShape(f"H of shape {self.shape}", hint="it is for matrices; mT takes any")
    return self.transpose(0, 1)

  @property
  def mH(self) -> Self:
    """The last two axes exchanged."""
    return self.transpose(-1, -2)
