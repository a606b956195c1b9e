"""Decompositions of matrices: QR by Householder's reflections, SVD by Jacobi's rotations.

What changes from step to step is data or stays in its place, so that all steps are the same few kernels.

Steps are one template (`_repeated`): the graph of a step is made once and its state put in, and the
step's number is data. So a hundred steps are the same few kernels. Where nothing goes back through
them they are done at once by one schedule (`engine/loops.py`); else, and while a TinyJit records,
they are a graph.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.devices import watch
from tinyhw.function.odds import Odds
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self


class Decomposition(Odds):
  """The decompositions."""
  __slots__ = ()

  def _matrices(self, name: str) -> tuple[tuple[int, ...], int, int]:
    """The axes before, rows and columns."""
    if self.ndim < 2: raise InvalidShape(f"{name} of shape {self.shape}", hint="it is for matrices")
    if not self.dtype.is_float: raise InvalidArgument(f"{name} of {self.dtype}", hint="cast to a float")
    return self.shape[:-2], self.shape[-2], self.shape[-1]

  def _unit_matrix(self, lead: tuple[int, ...], size: int) -> Self:
    rows = self._iota(size)
    return (rows == rows.unsqueeze(1)).cast(self.dtype).expand(*lead, size, size)

  def _chosen_by(self, mask: Self, axis: int | tuple[int, ...]) -> Self:
    """The element along an axis where a mask of it is True, which it is once."""
    axes = self._axes(axis)
    found = self._picked(mask, axes, self._wrap(self._const(True, dtypes.bool, (1,))))
    return found._without(axes)

  def _repeated(self, count: int, state: Sequence[Self], step: Callable[..., Sequence[Self]]) -> list[Self]:
    """What becomes of a state by steps, each a function of its number (an int32 of shape (1,)) and of the state: it
    is asked once, for a state that stands for all, and what it gives is realized by each step. The steps are done at
    once, unless a gradient may go back through them or a TinyJit records: then they are a graph."""
    if not state[0].numel(): return list(state)
    def stands(shape: tuple[int, ...], dtype: DType, like: Self) -> Self:
      found = like._wrap(UOp.new_buffer(self._device, math.prod(shape), dtype).reshape(shape))
      found.requires_grad = like.requires_grad
      return found
    number, inside = stands((1,), dtypes.int32, state[0]._still()), [stands(s.shape, s.dtype, s) for s in state]
    made: Any = type(self)
    results = step(number, *inside)
    if watch.watching() is None and not any(x.requires_grad for x in (*state, *results)):
      start = made([0], device=self.device, dtype=dtypes.int32)
      found = self._steps(count, [x.uop.contiguous() for x in (number + 1, *results)],
                          [x.uop for x in (number, *inside)], [x.uop for x in (start, *state)])
      if found is not None: return [self._wrap(u) for u in found[1:]]
    template = UOp.sink(*(x.uop.contiguous() for x in results))
    now = [s.uop for s in state]
    for i in range(count):
      place = made([i], device=self.device, dtype=dtypes.int32).uop
      now = list(template.substitute({number.uop: place, **dict(zip((x.uop for x in inside), now))}).src)
    return [self._wrap(u, *state) for u in now]

  def qr(self, mode: str = "reduced") -> tuple[Self, Self]:
    """Q with orthonormal columns and R, upper triangular, whose product this is: of (..., m, n) "reduced" to
    k = min(m, n) columns and rows, "complete" with all m, or "r": Q is empty."""
    if mode not in ("reduced", "complete", "r"):
      raise InvalidArgument(f'qr mode {mode!r} is none of "reduced", "complete", "r"')
    lead, rows, columns = self._matrices("qr")
    if self.requires_grad and self.numel() and (mode != "complete" or rows <= columns): return self._qr_learning(mode)
    wide, dtype = self._in_wide()
    r, q = wide.contiguous(), wide._unit_matrix(lead, rows).contiguous()
    down, across = wide._iota(rows), wide._iota(columns)
    def reflected(step: Self, *state: Self) -> list[Self]:
      r, q = state
      column = r._chosen_by(across == step, -1)
      head = column._chosen_by(down == step, -1).unsqueeze(-1)
      tail = (down > step).where(column, 0)
      rest = tail.square().sum(-1, keepdim=True)
      none = rest.eq(0)                # the column is triangular already
      size = (head * head + none.where(1, rest)).sqrt()
      size = (head < 0).where(size, -size)
      v = (tail / none.where(1, head - size) + (down == step)).contiguous()
      factor = none.where(0, (size - head) / size).unsqueeze(-1).contiguous()
      return [r - factor * v.unsqueeze(-1) * (v.unsqueeze(-1) * r).sum(-2, keepdim=True),
              q - factor * v.unsqueeze(-2) * (q * v.unsqueeze(-2)).sum(-1, keepdim=True)]
    r, q = self._repeated(min(rows - 1, columns), [r, q], reflected)
    upper, k = r.triu().cast(dtype), rows if mode == "complete" else min(rows, columns)
    keep: list[tuple[int, int] | None] = [None] * len(lead)
    right = upper.shrink([*keep, (0, k), None])
    right = right._one_way(self)
    if mode == "r": return self._emptied((0,)), right
    return q.shrink([*keep, None, (0, k)]).cast(dtype)._one_way(self), right

  def _qr_learning(self, mode: str) -> tuple[Self, Self]:
    """QR whose derivatives are those of the factors, not of the steps to them. With Q.T dA = (M) R the lower half of M
    turns Q (an antisymmetric matrix), and what is left of it goes into R."""
    wide, dtype = self._in_wide()
    q, r = wide._still().qr("reduced")
    k = q.shape[-1]
    def turned(x: Self) -> Self: return x.transpose(-1, -2)
    lead: list[tuple[int, int] | None] = [None] * (self.ndim - 2)
    square: Any = r.shrink([*lead, None, (0, k)])
    inverse: Self = square.inv()   # `Solve` has it
    scaled = wide.shrink([*lead, None, (0, k)]).matmul(inverse)
    common = turned(q).matmul(scaled)
    lower = common.tril(-1)
    turn = lower - turned(lower)
    right = r._as_linear(turned(q).matmul(wide) - turn.matmul(r)).triu()
    if mode == "r": return self._emptied((0,)), right.cast(dtype)
    return q._as_linear(q.matmul(turn) + scaled - q.matmul(common)).cast(dtype), right.cast(dtype)

  def _as_linear(self, linear: Self) -> Self:
    """This value with the derivative of another one, which is linear in what has a gradient."""
    return self._still()._with_derivative((linear, lambda: linear.const_like(1)), once=True)

  def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
    """U, S, Vh: this is U @ diag(S) @ Vh, U and Vh have orthonormal columns and rows, S falls and is not negative. With
    `full_matrices` U and Vh are square. (As torch.linalg.svd.)"""
    lead, rows, columns = self._matrices("svd")
    if rows < columns:
      v, s, u = self.transpose(-1, -2).svd(full_matrices)
      return u.transpose(-1, -2), s, v.transpose(-1, -2)
    wide, dtype = self._in_wide()
    k = columns
    if not k or not self.numel():
      return (self._unit_matrix(lead, rows), self._emptied((*lead, k)), self._unit_matrix(lead, columns))
    if self.requires_grad: return self._svd_learning(full_matrices)
    half = (k + 1) // 2
    more = 2 * half - k
    keep: list[tuple[int, int] | None] = [None] * len(lead)
    # Columns of this above, of the right vectors below them: both are turned alike, by pairs (left, right).
    both = wide.cat(wide._unit_matrix(lead, k), dim=-2)._grown([(0, 0)] * (len(lead) + 1) + [(0, more)])
    left, right = (both.shrink([*keep, None, part]).contiguous() for part in ((0, half), (half, 2 * half)))
    if k > 1:
      sweeps = (7 if wide.dtype.bits == 32 else 9) + max(k.bit_length() - 3, 0)
      left, right = self._repeated(sweeps * (2 * half - 1), [left, right], lambda _, a, b: a._turned(b, rows))
    both = left.cat(right, dim=-1)
    turned, vectors = both.shrink([*keep, (0, rows), (0, k)]), both.shrink([*keep, (rows, rows + k), (0, k)])
    sizes, order = turned._root_of_squares(-2, False).contiguous()._sorted(-1, True)
    places = order.contiguous().unsqueeze(-2)
    turned = turned.take_along_dim(places, -1)
    vectors = vectors.take_along_dim(places, -1)
    nothing = (sizes <= sizes.narrow(-1, 0, 1) * (2.0**-22 if wide.dtype.bits == 32 else 2.0**-51)).unsqueeze(-2)
    u = (turned / nothing.where(1, sizes.unsqueeze(-2))).contiguous()
    # Columns that S makes 0, and those of a square U, are made orthogonal to the rest.
    whole = rows if full_matrices else k
    basis, _ = nothing.where(0, u)._still().qr("complete" if full_matrices else "reduced")
    mine = nothing.logical_not()._grown([(0, 0)] * (len(lead) + 1) + [(0, whole - k)])
    u = mine.where(u._grown([(0, 0)] * (len(lead) + 1) + [(0, whole - k)]), basis)
    u, s, vh = (x.cast(dtype)._one_way(self) for x in (u, sizes, vectors.transpose(-1, -2)))
    return u, s, vh

  def _svd_learning(self, full_matrices: bool) -> tuple[Self, Self, Self]:
    """SVD of no fewer rows than columns whose derivatives are those of the factors, not of the steps to them. Vectors
    of equal values may turn among each other: no gradient goes through that, nor through columns that S makes 0."""
    wide, dtype = self._in_wide()
    whole, s, vh = wide._still().svd(full_matrices)
    k = s.shape[-1]
    u, v, across, down = whole.narrow(-1, 0, k), vh.transpose(-1, -2), s.unsqueeze(-2), s.unsqueeze(-1)
    change = u.transpose(-1, -2).matmul(wide.matmul(v))
    gap = across.square() - down.square()
    apart = gap.ne(0)
    gap = apart.where(1 / apart.where(gap, 1), 0)
    scale = across.ne(0).where(1 / across.ne(0).where(across, 1), 0)
    back = change.transpose(-1, -2)
    left = u.matmul(gap * (change * across + down * back))
    beside = (wide.matmul(v) - u.matmul(change)) * scale
    right = v.matmul(gap * (down * change + back * across))
    more = whole.shape[-1] - k
    vectors = u._as_linear(left + beside)
    if more: vectors = vectors.cat(whole.narrow(-1, k, more), dim=-1)
    values = s._as_linear(change.diagonal(0, -2, -1))
    return vectors.cast(dtype), values.cast(dtype), v._as_linear(right).transpose(-1, -2).cast(dtype)

  def _turned(self, other: Self, rows: int) -> tuple[Self, Self]:
    """Each pair of columns turned until they are orthogonal in the first `rows`; then the columns take other partners:
    in one round less than there are columns each meets each, and stands where it was."""
    keep: list[tuple[int, int] | None] = [None] * (self.ndim - 2)
    a, b = (x.shrink([*keep, (0, rows), None]) for x in (self, other))
    first, second, common = ((x * y).sum(-2, keepdim=True) for x, y in ((a, a), (b, b), (a, b)))
    straight = common.eq(0)
    slope = (second - first) / (2 * straight.where(1, common))
    tangent = (slope < 0).where(-1, 1) / (slope.abs() + (slope * slope + 1).sqrt())
    tangent = straight.where(0, tangent).contiguous()
    cosine = (tangent * tangent + 1).rsqrt()
    left, right = cosine * (self - tangent * other), cosine * (tangent * self + other)
    half = self.shape[-1]
    if half == 1: return left, right
    def part(x: Self, start: int, stop: int) -> Self: return x.narrow(-1, start, stop - start)
    upper = part(left, 0, 1).cat(part(right, 0, 1), part(left, 1, half - 1), dim=-1)
    lower = part(right, 1, half).cat(part(left, half - 1, half), dim=-1)
    return upper, lower
