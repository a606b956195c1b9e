"""Inverses, determinants and equations: Gauss and Jordan's elimination with the greatest pivot of each column, and
Cholesky's, in float64 (of floats of 16 bits in float32).

Every step is the same few kernels: its number is data. Derivatives are those of the inverse, not of the steps.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.core import broadcast_shape
from tinyhw.function.decomposition import Decomposition
from tinyhw.ir.dtype import DType, dtypes

if TYPE_CHECKING:
  from typing import Self


class Solve(Decomposition):
  """The functions of square matrices."""
  __slots__ = ()

  def _square(self, name: str) -> tuple[Self, DType]:
    """This in the type to compute in, and the type of the result."""
    _, rows, columns = self._matrices(name)
    if rows != columns: raise InvalidShape(f"{name} of shape {self.shape}", hint="it is for square matrices")
    return self.cast(dtypes.float32 if self.dtype.bits < 32 else dtypes.float64), self.dtype

  def _flipped(self) -> Self:
    """The matrices transposed."""
    return self.transpose(-1, -2)

  def _eliminated(self, right: Self) -> tuple[Self, Self, Self]:
    """What this matrix's inverse makes of columns; the pivots; and which row each one was of. All without a history."""
    lead, n = self.shape[:-2], self.shape[-1]
    whole = self._still().cat(right._still(), dim=-1).contiguous()
    free = self._wrap(self._const(True, dtypes.bool, (*lead, n)))
    pivots, order = self._wrap(self._const(0, shape=(*lead, n))), free.cast(dtypes.int32)
    rows, columns = self._iota(n), self._iota(whole.shape[-1])
    def step(number: Self, *state: Self) -> list[Self]:
      a, left, found, places = state
      here = a._chosen_by(columns == number, -1).contiguous()
      size = left.where(here.isnan().where(math.inf, here.abs()), -1)
      at = size.argmax(-1, keepdim=True).contiguous()
      mine = rows == at
      line = a._chosen_by(mine.unsqueeze(-1), -2)
      pivot = here._chosen_by(mine, -1).unsqueeze(-1)
      line = (line / pivot).contiguous().unsqueeze(-2)
      # The pivot's row becomes the line; all others lose their part of it.
      done = mine.unsqueeze(-1).where(line, a - here.unsqueeze(-1) * line)
      now = rows == number
      return [done, left & mine.logical_not(), now.where(pivot, found), now.where(at, places)]
    whole, _, pivots, order = self._repeated(n, [whole, free.contiguous(), pivots.contiguous(), order.contiguous()],
                                             step)
    solved = whole.shrink([*(None for _ in range(self.ndim - 1)), (n, whole.shape[-1])])
    spread = order.unsqueeze(-1).expand(solved.shape)
    return solved.gather(-2, spread), pivots, order

  def _inverted(self) -> tuple[Self, Self, Self]:
    lead, n = self.shape[:-2], self.shape[-1]
    return self._eliminated(self._unit_matrix(lead, n))

  def inverse(self) -> Self:
    """The inverse of square matrices; infinities and NaNs where there is none."""
    wide, dtype = self._square("inverse")
    found, _, _ = wide._inverted()
    return found._as_linear(-(found @ wide @ found)).cast(dtype)
  inv = inverse

  def solve(self, other: Self, *, left: bool = True) -> Self:
    """What `self @ x == other` is of, or `x @ self == other` where not `left`: other is (..., n, k), or (..., n), a
    vector for each matrix."""
    if not left: return self._flipped().solve(other._flipped())._flipped()
    wide, dtype = self._square("solve")
    vector = other.ndim == 1 or other.ndim == self.ndim - 1 and other.shape == self.shape[:-1]
    right = (other.unsqueeze(-1) if vector else other).cast(wide.dtype)
    n = self.shape[-1]
    if right.ndim < 2 or right.shape[-2] != n:
      raise InvalidShape(f"solve of shape {self.shape} for shape {other.shape}", hint=f"it needs {n} rows")
    lead = broadcast_shape(self.shape[:-2], right.shape[:-2])
    wide, right = wide.expand((*lead, n, n)), right.expand((*lead, *right.shape[-2:]))
    if not wide.requires_grad and not right.requires_grad: found = wide._eliminated(right)[0]._one_way(wide, right)
    else:
      both, _, _ = wide._eliminated(wide._unit_matrix(lead, n).cat(right._still(), dim=-1))
      keep: list[tuple[int, int] | None] = [None] * (both.ndim - 1)
      inverse, found = both.shrink([*keep, (0, n)]), both.shrink([*keep, (n, both.shape[-1])])
      found = found._as_linear(inverse @ (right - wide @ found))
    return (found.squeeze(-1) if vector else found).cast(dtype)

  def _signs(self, pivots: Self, order: Self) -> Self:
    """The signs of the determinants: of the pivots and of the order of their rows."""
    n = self.shape[-1]
    later = self._iota(n) > self._iota(n).unsqueeze(-1)
    turned = (later & (order.unsqueeze(-1) > order.unsqueeze(-2))).cast(dtypes.int32).sum((-1, -2))
    return turned.bitwise_and(1).ne(0).where(-1, 1).cast(self.dtype) * pivots.sign().prod(-1)

  def slogdet(self) -> tuple[Self, Self]:
    """The sign of the determinant and the logarithm of its magnitude."""
    wide, dtype = self._square("slogdet")
    inverse, pivots, order = wide._inverted()
    # Behind a pivot of 0 nothing is known, and the determinant is 0.
    none = pivots.eq(0).any(-1)
    sign = none.where(0, wide._signs(pivots, order))
    size = none.where(-math.inf, pivots.abs().log().sum(-1))
    size = size._as_linear((inverse._flipped() * wide).sum((-1, -2)))
    return sign._unmoved_by(wide.sum((-1, -2))).cast(dtype), size.cast(dtype)

  def logdet(self) -> Self:
    """The logarithm of the determinant, NaN where that is negative."""
    sign, size = self.slogdet()
    return (sign < 0).where(math.nan, size)

  def det(self) -> Self:
    """The determinant of square matrices."""
    wide, dtype = self._square("det")
    inverse, pivots, order = wide._inverted()
    found = pivots.eq(0).any(-1).where(0, wide._signs(pivots, order) * pivots.abs().prod(-1))
    return found._as_linear(found * (inverse._flipped() * wide).sum((-1, -2))).cast(dtype)

  # *** triangles ***

  def cholesky(self, upper: bool = False) -> Self:
    """The lower triangle whose product with its transposed one is this, a symmetric matrix, of which the lower half is
    read (or the `upper` one, transposed); NaN where that is not positive."""
    wide, dtype = self._square("cholesky")
    half = wide._flipped() if upper else wide
    n = self.shape[-1]
    keep = half.tril()
    even = keep + keep.tril(-1)._flipped()
    rows = self._iota(n)
    def step(number: Self, *state: Self) -> list[Self]:
      a, found = state
      column = a._chosen_by(rows == number, -1).contiguous()
      size = column._chosen_by(rows == number, -1).unsqueeze(-1).sqrt()
      line = (rows < number).where(0, column / size).contiguous()
      return [a - line.unsqueeze(-1) * line.unsqueeze(-2), (rows == number).where(line.unsqueeze(-1), found)]
    state = [even._still().contiguous(), even._wrap(even._const(0)).contiguous()]
    found = self._repeated(n, state, step)[1]
    if not wide.requires_grad: found = found._one_way(self)
    else:
      inverse = found._triangle_inverse()
      inner = inverse @ ((half + half._flipped()) * 0.5) @ inverse._flipped()
      found = found._as_linear(found @ (inner.tril(-1) + (rows == rows.unsqueeze(-1)).where(inner, 0) * 0.5))
    return (found._flipped() if upper else found).cast(dtype)

  def _substituted(self, right: Self) -> Self:
    """What the inverse of this lower triangle makes of columns, without a history."""
    n = self.shape[-1]
    rows, a = self._iota(n), self._still()
    def step(number: Self, *state: Self) -> list[Self]:
      (x,) = state
      now = (rows == number).unsqueeze(-1)
      line = (x._chosen_by(now, -2) / a._chosen_by(now & now._flipped(), (-2, -1)).unsqueeze(-1)).contiguous()
      column = (rows > number).where(a._chosen_by(rows == number, -1), 0).unsqueeze(-1)
      return [now.where(line.unsqueeze(-2), x - column * line.unsqueeze(-2))]
    return self._repeated(n, [right._still().contiguous()], step)[0]

  def _triangle_inverse(self) -> Self:
    return self._substituted(self._unit_matrix(self.shape[:-2], self.shape[-1]))

  def solve_triangular(self, other: Self, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Self:
    """What `self @ x == other` (`x @ self == other` where not `left`) is of, for a triangle: what is beyond it is not
    read, nor its diagonal where `unitriangular`, which counts as 1."""
    if not left:
      return self._flipped().solve_triangular(other._flipped(), upper=not upper, unitriangular=unitriangular)._flipped()
    wide, dtype = self._square("solve_triangular")
    n = self.shape[-1]
    if other.ndim < 2 or other.shape[-2] != n:
      raise InvalidShape(f"solve_triangular of shape {self.shape} for shape {other.shape}", hint=f"it needs {n} rows")
    lead = broadcast_shape(self.shape[:-2], other.shape[:-2])
    triangle = wide.triu() if upper else wide.tril()
    if unitriangular:
      rows = self._iota(n)
      triangle = (rows == rows.unsqueeze(-1)).where(1, triangle)
    triangle = triangle.expand((*lead, n, n))
    right = other.cast(wide.dtype).expand((*lead, *other.shape[-2:]))
    lower, turned = (x.flip(-2) if upper else x for x in (triangle.flip(-1) if upper else triangle, right))
    found = lower._substituted(turned)
    if upper: found = found.flip(-2)
    if triangle.requires_grad or right.requires_grad:
      inverse = lower._triangle_inverse()
      if upper: inverse = inverse.flip(-2).flip(-1)
      found = found._as_linear(inverse @ (right - triangle @ found))
    else: found = found._one_way(self, other)
    return found.cast(dtype)

  def triangular_solve(self, other: Self, upper: bool = True, transpose: bool = False,
                       unitriangular: bool = False) -> tuple[Self, Self]:
    """`other @ x == self` for a triangle `other`, and that triangle, as torch.triangular_solve has it."""
    a = other._flipped() if transpose else other
    found = a.solve_triangular(self, upper=upper is not transpose, unitriangular=unitriangular)
    return found, other._same()

  def cholesky_solve(self, other: Self, upper: bool = False) -> Self:
    """What `a @ x == self` is of, by the triangle of Cholesky's decomposition of `a`."""
    lower = other._flipped() if upper else other
    def solved(right: Self) -> Self:
      still = lower._still()
      return still._flipped().solve_triangular(still.solve_triangular(right, upper=False), upper=True)
    found = solved(self._still())
    if not self.requires_grad and not other.requires_grad: return found._one_way(self, other)
    # Of all of the matrix, as torch has it: also of what is beyond the triangle, which is not read.
    still, known = lower._still(), found.cast(lower.dtype)
    moved = lower @ (still._flipped() @ known) + still @ (lower._flipped() @ known)
    inverse = solved(self._unit_matrix(self.shape[:-2], lower.shape[-1]))
    return found._as_linear((inverse @ (self - moved)).cast(found.dtype))

  def cholesky_inverse(self, upper: bool = False) -> Self:
    """The inverse of the matrix whose triangle this is."""
    _, n, _ = self._matrices("cholesky_inverse")
    return self._unit_matrix(self.shape[:-2], n).cholesky_solve(self, upper)

  def matrix_rank(self, tol: float | None = None) -> Self:
    """How many singular values are greater than `tol`, or than what rounding makes of 0."""
    s = self.svd(full_matrices=False)[1]
    if not s.numel(): return self._wrap(self._const(0, dtypes.int32, self.shape[:-2]))
    eps = {64: 2.0**-52, 32: 2.0**-23}.get(self.dtype.bits, 2.0**-10) * max(self.shape[-2:])
    least: Any = s.max(-1, keepdim=True) * eps if tol is None else tol
    found: Self = (s > least).sum(-1)
    return found

  def matrix_power(self, n: int) -> Self:
    """The product of a square matrix with itself, `n` times; of its inverse where that is negative."""
    if not isinstance(n, int): raise InvalidArgument(f"matrix_power {n!r}", hint="it is an int")
    result: Self = self.inverse().matrix_power(-n) if n < 0 else super().matrix_power(n)
    return result

  def matrix_norm(self, ord: float | str = "fro", axis: tuple[int, int] = (-2, -1), keepdim: bool = False) -> Self:
    """The norm of matrices: "fro", "nuc" (the sum of the singular values), 2 and -2 (the greatest and the least of
    them), 1, -1, inf and -inf (of sums of columns and rows)."""
    a, b = self._axes(axis)
    if ord == "fro": return self.norm(2, (a, b), keepdim)
    last = self.movedim((a, b), (-2, -1))
    if ord in ("nuc", 2, -2):
      s = last.svd(full_matrices=False)[1]
      found = s.sum(-1) if ord == "nuc" else s.amax(-1) if ord == 2 else s.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
      sums = last.abs().sum(-2 if abs(float(ord)) == 1 else -1)
      found = sums.amax(-1) if float(ord) > 0 else sums.amin(-1)
    else: raise InvalidArgument(f"matrix_norm {ord!r}", hint='it is "fro", "nuc", 1, 2, inf or one of these negative')
    if not keepdim: return found
    for where in sorted((a, b)): found = found.unsqueeze(where)
    return found
