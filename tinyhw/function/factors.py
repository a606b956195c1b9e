"""Factors of matrices: LU with the greatest pivot of each column, eigenvalues of symmetric matrices; and what is solved
by them: least squares, Moore and Penrose's inverse. In float64 (of floats of 16 bits in float32).

Derivatives are those of the factors, not of the steps to them.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.core import broadcast_shape
from tinyhw.function.solve import Solve
from tinyhw.ir.dtype import DType, dtypes

if TYPE_CHECKING:
  from typing import Self


class LeastSquares(NamedTuple):
  """What `lstsq` gives; tensors of no elements for what was not asked for."""
  solution: Any
  residuals: Any
  rank: Any
  singular_values: Any


class Factors(Solve):
  """The functions that take matrices apart."""
  __slots__ = ()

  def _doubled_matrices(self, name: str) -> tuple[Self, DType]:
    """Matrices in the type to compute in, and the type of the result."""
    self._matrices(name)
    return self.cast(dtypes.float32 if self.dtype.bits < 32 else dtypes.float64), self.dtype

  def matrix_exp(self) -> Self:
    """e to the power of square matrices: Taylor's polynomial of degree 16 of a part of each that is small, squared as
    often as it was halved. NaN where a norm is beyond 2**24."""
    wide, dtype = self._square("matrix_exp")
    if not self.numel(): return self._same()
    size = wide._still().abs().sum(-2).max(-1)[..., None, None].contiguous()
    count = size.maximum(1.0).log2().ceil().contiguous()
    small = (wide * (-count).exp2()).contiguous()
    powers = [wide._unit_matrix(self.shape[:-2], self.shape[-1]), small]
    for _ in range(3): powers.append((powers[-1] @ small).contiguous())
    found = powers[0] * (1 / math.factorial(16))
    for first in (12, 8, 4, 0):               # four terms at a time, from the highest on
      found = found @ powers[4]
      for k in range(4): found = found + powers[k] * (1 / math.factorial(first + k))
      found = found.contiguous()
    for k in range(24): found = (count > k).where(found @ found, found).contiguous()
    return (size <= 2.0 ** 24).where(found, math.nan).cast(dtype)

  # *** LU ***

  def lu_factor(self, *, pivot: bool = True) -> tuple[Self, Self]:
    """L below the diagonal, where it is 1, and U from it on, of P @ L @ U; and for each row the one, counted from 1,
    that it was exchanged with. A column without a pivot leaves a 0 in U."""
    wide, dtype = self._doubled_matrices("lu_factor")
    lead, rows, columns = self._matrices("lu_factor")
    k = min(rows, columns)
    if not self.numel(): return self._same(), self._emptied((*lead, k)).cast(dtypes.int32)
    found, pivots, order = wide._exchanged(k, pivot)
    if not wide.requires_grad: return found._one_way(self).cast(dtype), pivots
    # With P.T dA = dL U + L dU the part of inv(L) P.T dA inv(U) below the diagonal turns L, the rest U.
    keep: list[tuple[int, int] | None] = [None] * len(lead)
    moved = wide.gather(-2, order.unsqueeze(-1).expand(wide.shape))
    corner = found.shrink([*keep, (0, k), (0, k)])
    one = found._unit_matrix(lead, k)
    lower, upper = corner.tril(-1) + one, corner.triu()
    right = one._inverse_of_upper(upper)
    inner = lower._triangle_inverse() @ moved.shrink([*keep, (0, k), (0, k)]) @ right
    left, above = lower @ inner.tril(-1), inner.triu() @ upper
    linear = left.tril(-1) + above
    if columns > k:
      beside = found.shrink([*keep, None, (k, columns)])
      rest = moved.shrink([*keep, None, (k, columns)]) - left @ beside
      linear = linear.cat(lower._triangle_inverse() @ rest, dim=-1)
    if rows > k:
      below = found.shrink([*keep, (k, rows), None])
      rest = moved.shrink([*keep, (k, rows), None]) - below @ above
      linear = linear.cat(rest @ right, dim=-2)
    return found._as_linear(linear).cast(dtype), pivots

  def _inverse_of_upper(self, upper: Self) -> Self:
    """The inverse of an upper triangle, of which this is the unit matrix."""
    return upper._flipped()._substituted(self)._flipped()

  def _exchanged(self, k: int, pivot: bool) -> tuple[Self, Self, Self]:
    """Both triangles in one, the exchanges, and which row each one was. All without a history."""
    lead, count = self.shape[:-2], self.shape[-2]
    rows, columns, steps = self._iota(count), self._iota(self.shape[-1]), self._iota(k)
    def step(number: Self, *state: Self) -> list[Self]:
      a, order, found = state
      here = a._chosen_by(columns == number, -1).contiguous()
      now, free = rows == number, rows >= number
      size = free.where(here.isnan().where(math.inf, here.abs()), -1)
      at = size.argmax(-1, keepdim=True).cast(dtypes.int32).contiguous() if pivot else number.expand(*lead, 1)
      other = rows == at
      line, old = a._chosen_by(other.unsqueeze(-1), -2), a._chosen_by(now.unsqueeze(-1), -2)
      line, old = line.contiguous(), old.contiguous()
      a = now.unsqueeze(-1).where(line.unsqueeze(-2), other.unsqueeze(-1).where(old.unsqueeze(-2), a))
      head, first = here._chosen_by(other, -1).unsqueeze(-1), here._chosen_by(now, -1).unsqueeze(-1)
      column = other.where(first, here)
      none = head.eq(0)
      factor = (rows > number).where(none.where(0, column / none.where(1, head)), 0).contiguous().unsqueeze(-1)
      a = (columns > number).where(a - factor * line.unsqueeze(-2), a)
      a = ((columns == number) & (rows > number).unsqueeze(-1)).where(factor, a)
      mine, theirs = order._chosen_by(now, -1).unsqueeze(-1), order._chosen_by(other, -1).unsqueeze(-1)
      return [a, now.where(theirs, other.where(mine, order)), (steps == number).where(at + 1, found)]
    order = rows.expand(*lead, count).contiguous()
    found = self._wrap(self._const(0, dtypes.int32, (*lead, k))).contiguous()
    whole, order, found = self._repeated(k, [self._still().contiguous(), order, found], step)
    return whole, found, order

  def lu(self, *, pivot: bool = True, get_infos: bool = False) -> tuple[Self, ...]:
    """As `lu_factor`, by its older name; with `get_infos` also which column, counted from 1, is the first without a
    pivot, or 0. (The three factors are `Tensor.lu_unpack(*a.lu())`.)"""
    both, pivots = self.lu_factor(pivot=pivot)
    if not get_infos: return both, pivots
    none, k = both._still().diagonal(0, -2, -1).eq(0), pivots.shape[-1]
    if not k: return both, pivots, pivots.sum(-1).cast(dtypes.int32)
    first = none.where(self._iota(k), k).min(-1) + 1
    return both, pivots, (first > k).where(0, first).cast(dtypes.int32)

  def _places_of_rows(self, rows: int) -> Self:
    """Which row each one was, by exchanges."""
    places, steps = self._iota(rows), self._iota(self.shape[-1])
    def step(number: Self, *state: Self) -> list[Self]:
      (order,) = state
      now, other = places == number, places == self._chosen_by(steps == number, -1).unsqueeze(-1) - 1
      mine, theirs = order._chosen_by(now, -1).unsqueeze(-1), order._chosen_by(other, -1).unsqueeze(-1)
      return [now.where(theirs, other.where(mine, order))]
    return self._repeated(self.shape[-1], [places.expand(*self.shape[:-1], rows).contiguous()], step)[0]

  def lu_unpack(self, pivots: Self, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Self, Self, Self]:
    """P, L and U of what `lu_factor` gives."""
    lead, rows, columns = self._matrices("lu_unpack")
    k = min(rows, columns)
    if not pivots.dtype.is_int or pivots.shape != (*lead, k):
      raise InvalidShape(f"lu_unpack of shape {self.shape} by pivots {pivots.dtype} {pivots.shape}",
                         hint=f"they are integers of shape {(*lead, k)}")
    keep: list[tuple[int, int] | None] = [None] * len(lead)
    none = self._emptied((0,))
    lower = upper = moved = none
    if unpack_pivots:
      order = pivots.cast(dtypes.int32)._places_of_rows(rows).unsqueeze(-2)
      moved = order.eq(self._iota(rows).unsqueeze(-1)).cast(self.dtype)
    if unpack_data:
      left = self.shrink([*keep, None, (0, k)])
      lower = (self._iota(rows).unsqueeze(-1) == self._iota(k)).where(1, left.tril(-1))
      upper = self.shrink([*keep, (0, k), None]).triu()
    return moved, lower, upper

  def lu_solve(self, LU_data: Self, LU_pivots: Self, *, left: bool = True, adjoint: bool = False) -> Self:
    """What `a @ x == self` is of, by `lu_factor` of `a`; `x @ a == self` where not `left`, `a.mT` with `adjoint`."""
    if not left:
      return self._flipped().lu_solve(LU_data, LU_pivots, adjoint=not adjoint)._flipped()
    lead, rows, columns = LU_data._matrices("lu_solve")
    if rows != columns or self.ndim < 2 or self.shape[-2] != rows or LU_pivots.shape != (*lead, rows):
      raise InvalidShape(f"lu_solve of shape {self.shape} by shapes {LU_data.shape} and {LU_pivots.shape}",
                         hint="it takes columns for square matrices and their pivots")
    lead = broadcast_shape(lead, self.shape[:-2])
    right = self.expand(*lead, *self.shape[-2:])
    order = LU_pivots.cast(dtypes.int32)._places_of_rows(rows)
    if adjoint:
      turned = LU_data._flipped()
      found = turned.solve_triangular(turned.solve_triangular(right, upper=False), upper=True, unitriangular=True)
      order = order.argsort(-1).cast(dtypes.int32)
    place = order.unsqueeze(-1).expand(*lead, *self.shape[-2:])
    if adjoint: return found.gather(-2, place)
    found = LU_data.solve_triangular(right.gather(-2, place), upper=False, unitriangular=True)
    return LU_data.solve_triangular(found, upper=True)

  # *** eigenvalues ***

  def eigh(self, UPLO: str = "L") -> tuple[Self, Self]:
    """The eigenvalues of symmetric matrices, rising, and their vectors as columns. The lower half is read, or for "U"
    the upper one. Vectors of equal values may turn among each other: no gradient goes through that."""
    if UPLO not in ("L", "U"): raise InvalidArgument(f'eigh of {UPLO!r}', hint='it is "L" or "U"')
    wide, dtype = self._square("eigh")
    lead, n, _ = self._matrices("eigh")
    if not self.numel(): return self._emptied((*lead, n)), self._same()
    still = wide._still()
    half = still.triu()._flipped() if UPLO == "U" else still.tril()
    even = (half + half.tril(-1)._flipped()).contiguous()
    # Moved to where no value is negative, these are the singular values; their places are told by the vectors.
    shift = even.square().sum((-2, -1), keepdim=True).sqrt() * 1.5
    tiny = shift.eq(0).where(1, shift)
    moved = even / tiny + even._unit_matrix(lead, n)
    vectors = moved.contiguous().svd()[2]._flipped().flip(-1).contiguous()
    values = (vectors * (even @ vectors)).sum(-2)
    order = values.contiguous().argsort(-1).contiguous()
    values = values.gather(-1, order).contiguous()
    vectors = vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape)).contiguous()
    if not wide.requires_grad: return values.cast(dtype)._one_way(self), vectors.cast(dtype)._one_way(self)
    change = vectors._flipped() @ wide @ vectors
    gap = values.unsqueeze(-2) - values.unsqueeze(-1)
    apart = gap.ne(0)
    turn = vectors @ (apart.where(1 / apart.where(gap, 1), 0) * change)
    return values._as_linear(change.diagonal(0, -2, -1)).cast(dtype), vectors._as_linear(turn).cast(dtype)

  def eigvalsh(self, UPLO: str = "L") -> Self:
    """The eigenvalues of symmetric matrices, rising."""
    return self.eigh(UPLO)[0]

  def svdvals(self) -> Self:
    """The singular values, falling."""
    return self.svd(full_matrices=False)[1]

  def cond(self, p: float | str | None = None) -> Self:
    """How much solving by this may stretch: its norm times its inverse's, for 2 (None) the greatest by the least
    singular value."""
    if p in (None, 2, -2):
      s = self.svdvals()
      if not s.shape[-1]: return self._wrap(self._const(0, shape=self.shape[:-2]))
      great, small = s.narrow(-1, 0, 1).squeeze(-1), s.narrow(-1, s.shape[-1] - 1, 1).squeeze(-1)
      return small / great if p == -2 else great / small
    assert p is not None
    return self.matrix_norm(p) * self.inverse().matrix_norm(p)

  # *** of matrices that need not be square ***

  def _pseudo(self, least: Self | float, of: Self | float) -> tuple[Self, Self, Self]:
    """Moore and Penrose's inverse by singular values that are greater than `least`, or `of` times the greatest one;
    how many these are; all singular values. The derivative is that of a matrix of as many."""
    still = self._still()
    u, s, v = still.svd(full_matrices=False)
    most: Any = of * s.narrow(-1, 0, 1)
    there = s > most.maximum(least)
    found = ((v._flipped() * there.where(1 / there.where(s, 1), 0).unsqueeze(-2)) @ u._flipped()).contiguous()
    rank = there.sum(-1)
    if not self.requires_grad: return found._one_way(self), rank, s
    rows, columns = (self._unit_matrix(self.shape[:-2], n) for n in self.shape[-2:])
    turned, back = self._flipped(), found._flipped()
    linear = (found @ back @ turned @ (rows - still @ found) + (columns - found @ still) @ turned @ back @ found
              - found @ self @ found)
    return found._as_linear(linear), rank, s

  def pinv(self, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Self:
    """Moore and Penrose's inverse: singular values up to `atol`, or `rtol` (`rcond`) times the greatest, count as 0: by
    default what rounding makes of 0, where no `atol` is told. `hermitian`: the lower half is read."""
    wide, dtype = self._doubled_matrices("pinv")
    if hermitian:
      half = self._square("pinv")[0].tril()
      wide = half + half.tril(-1)._flipped()
    if not self.numel(): return self._flipped()
    rtol = rcond if rtol is None else rtol
    if rtol is None: rtol = 0.0 if atol is not None else self._epsilon() * max(self.shape[-2:])
    def limit(x: Any) -> Any: return x.cast(wide.dtype).unsqueeze(-1) if isinstance(x, Factors) else float(x)
    return wide._pseudo(limit(0.0 if atol is None else atol), limit(rtol))[0].cast(dtype)

  def pinverse(self, rcond: float = 1e-15) -> Self:
    """As `pinv`, by its older name."""
    return self.pinv(rcond)

  def _epsilon(self) -> float:
    """How far 1 is from the next number."""
    return 2.0 ** -{64: 52, 32: 23, 16: 10 if self.dtype is dtypes.float16 else 7}.get(self.dtype.bits, 3)

  def lstsq(self, other: Self, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """x that makes `self @ x - other` least: (solution, residuals, rank, singular values). Of several the shortest one;
    singular values up to `rcond` times the greatest count as 0. With the driver "gels", "gelsd" or "gelss" there are
    residuals where there are more rows than columns; with the latter two, singular values."""
    drivers = ("gelsy", "gels", "gelsd", "gelss")
    if driver not in (None, *drivers):
      raise InvalidArgument(f"lstsq by driver {driver!r}", hint=f"it is one of {', '.join(drivers)}")
    wide, dtype = self._doubled_matrices("lstsq")
    lead, rows, columns = self._matrices("lstsq")
    if other.dtype is not self.dtype: raise InvalidArgument(f"lstsq of {self.dtype} and {other.dtype}")
    vector = other.ndim == self.ndim - 1 and other.shape[-1:] == (rows,)
    right = (other.unsqueeze(-1) if vector else other).cast(wide.dtype)
    if right.ndim < 2 or right.shape[-2] != rows:
      raise InvalidShape(f"lstsq of shape {self.shape} for shape {other.shape}", hint=f"it needs {rows} rows")
    lead = broadcast_shape(lead, right.shape[:-2])
    wide, right = wide.expand(*lead, rows, columns), right.expand(*lead, *right.shape[-2:])
    none = self._emptied((0,))
    if not wide.numel():
      found = self._wrap(self._const(0, shape=(*lead, columns, *right.shape[-1:])))
      return LeastSquares(found.squeeze(-1) if vector else found, none, self._wrap(self._const(
        0, dtypes.int32, lead)), none)
    inverse, rank, sizes = wide._pseudo(0.0, self._epsilon() * max(rows, columns) if rcond is None else rcond)
    found = inverse @ right
    residuals = (wide @ found - right).square().sum(-2) if rows > columns and driver not in (None, "gelsy") else none
    found = found.squeeze(-1) if vector else found
    return LeastSquares(found.cast(dtype), residuals.cast(dtype), rank,
                        sizes.cast(dtype) if driver in ("gelsd", "gelss") else none)

  def tensorinv(self, ind: int = 2) -> Self:
    """The inverse by `tensordot` of `ind` axes: of the first ones to the rest, as many elements each."""
    if not 0 < ind <= self.ndim: raise InvalidArgument(f"tensorinv of shape {self.shape} at {ind}")
    first, rest = self.shape[:ind], self.shape[ind:]
    if math.prod(first) != math.prod(rest):
      raise InvalidShape(f"tensorinv of shape {self.shape}: {math.prod(first)} elements meet {math.prod(rest)}")
    return self.reshape(math.prod(first), math.prod(rest)).inverse().reshape(*rest, *first)

  def tensorsolve(self, other: Self, axis: Any = None) -> Self:
    """x whose `tensordot` with this over all of x's axes is `other`; `axis` are those of this that come last before."""
    moved = self if axis is None else self.movedim(tuple(axis), tuple(range(-len(tuple(axis)), 0)))
    rest = moved.shape[other.ndim:]
    if moved.shape[:other.ndim] != other.shape or math.prod(rest) != other.numel():
      raise InvalidShape(f"tensorsolve of shape {self.shape} for shape {other.shape}")
    return moved.reshape(other.numel(), other.numel()).solve(other.flatten()).reshape(rest)
