"""Functions whose way depends on how long an axis is, and gradients that go where others do not."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.strength import seed
from tinyhw import Tensor, dtypes
from tinyhw.compile import schedule

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize("size", [1, 2, 33])
def test_logcumsumexp(size: int) -> None:
  x = np.random.default_rng(seed(size)).normal(size=(3, size)).astype(np.float32) * 30
  x[1, size // 3:] += 200
  if size > 32: x[0, :size // 2] = -np.inf
  wanted = np.logaddexp.accumulate(x.astype(np.float64), axis=1)
  t = Tensor(x, requires_grad=True)
  found = t.logcumsumexp(1)
  np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(Tensor(x.T.copy()).logcumsumexp(0).numpy(), wanted.T, rtol=1e-5, atol=1e-5)
  # Of results that are numbers: each element's share of each.
  g = np.where(np.isfinite(wanted), np.random.default_rng(1).normal(size=x.shape), 0)
  (slope,) = found.gradient(t, gradient=Tensor(g.astype(np.float32)))
  with np.errstate(invalid="ignore"):
    share = np.where(np.arange(size)[:, None] <= np.arange(size), np.exp(x[:, :, None] - wanted[:, None, :]), 0)
  shares = (np.nan_to_num(share) * g[:, None, :]).sum(-1)
  np.testing.assert_allclose(slope.numpy(), np.where(np.isfinite(x), shares, 0), rtol=2e-4, atol=1e-4)


def test_logcumsumexp_of_many_is_no_square() -> None:
  items = schedule([Tensor.empty(1 << 14).logcumsumexp(0).uop]).items
  assert len(items) <= 16 and max(b.arg.size for i in items for b in i.buffers) == 1 << 14


@pytest.mark.parametrize("size", [0, 1, 64, 65, 200])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(size: int, right: bool) -> None:
  rng = np.random.default_rng(seed(size))
  row = np.sort(rng.integers(-20, 20, size)).astype(np.float32)
  values = np.concatenate([rng.integers(-25, 25, 21), [np.inf, -np.inf, np.nan, 0.5]]).astype(np.float32).reshape(5, 5)
  wanted = np.searchsorted(row, values, side="right" if right else "left")
  assert (Tensor(row).searchsorted(Tensor(values), right=right).numpy() == wanted).all()
  rows = np.sort(rng.integers(-20, 20, (2, 3, size)), axis=-1).astype(np.int32)
  asked = rng.integers(-25, 25, (2, 3, 4)).astype(np.int32)
  found = Tensor(rows).searchsorted(Tensor(asked), right=right)
  assert found.dtype is dtypes.int32 and found.shape == (2, 3, 4)
  for i in np.ndindex(2, 3):
    assert (found.numpy()[i] == np.searchsorted(rows[i], asked[i], side="right" if right else "left")).all()


def test_searchsorted_of_many_is_no_table() -> None:
  items = schedule([Tensor.empty(1 << 14).searchsorted(Tensor.empty(1 << 10)).uop]).items
  assert len(items) <= 16 and max(b.arg.size for i in items for b in i.buffers) == 1 << 14


@pytest.mark.parametrize("shape", [(4, 50), (40, 500)])
@pytest.mark.parametrize("name", ["std_mean", "var_mean"])
def test_a_deviation_and_its_mean_are_one_kernel(shape: tuple[int, int], name: str) -> None:
  x = np.random.default_rng(seed(3)).normal(size=shape).astype(np.float32)
  for device in ("LLVM", "PYTHON"):
    t = Tensor(x, device=device, requires_grad=True)
    spread, middle = getattr(t, name)(1)
    if device == "LLVM": assert [len(i.ast.src) for i in schedule([spread.uop, middle.uop])] == [2]
    spread.realize(middle)
    np.testing.assert_allclose(middle.numpy(), x.mean(1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(spread.numpy(), (x.std if name == "std_mean" else x.var)(1, ddof=1), rtol=1e-4)
    (slope,) = (spread.sum() + middle.sum()).gradient(t)
    apart = (x - x.mean(1, keepdims=True)) / (shape[1] - 1)
    wanted = (apart / x.std(1, ddof=1, keepdims=True) if name == "std_mean" else 2 * apart) + 1 / shape[1]
    np.testing.assert_allclose(slope.numpy(), wanted, rtol=1e-3, atol=1e-5)


def test_what_spreads_otherwise_is_a_kernel_of_its_own() -> None:
  x = Tensor.empty(8, 8).realize()
  for other in (x - x.mean(1), x.transpose(0, 1) - x.mean(1, keepdim=True)):
    assert len(schedule([x.mean(1).uop, other.square().sum(1).uop])) >= 2


def test_unpooled_elements_get_the_gradient_of_their_place() -> None:
  """Also those of which another one took the place, as torch has it."""
  index = np.array([[[0, 3, 3, 5]]], np.int32)
  x = Tensor(np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4), requires_grad=True)
  out = x.max_unpool1d(Tensor(index), 2)
  assert out.tolist() == [[[1, 0, 0, 3, 0, 4, 0, 0]]]
  (slope,) = (out * Tensor(np.arange(8, dtype=np.float32))).sum().gradient(x)
  assert slope.tolist() == [[[0, 3, 3, 5]]]


@pytest.mark.parametrize("upper", [False, True])
def test_the_gradient_of_cholesky_solve_is_of_the_whole_matrix(upper: bool) -> None:
  rng = np.random.default_rng(seed(5))
  low = np.tril(rng.normal(size=(2, 4, 4))) + 3 * np.eye(4)
  triangle = low.swapaxes(1, 2) if upper else low
  b, g = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4, 3))
  a, right = (Tensor(v, dtype=dtypes.float64, requires_grad=True) for v in (triangle, b))
  found = right.cholesky_solve(a, upper=upper)
  whole = low @ low.swapaxes(1, 2)
  np.testing.assert_allclose(found.numpy(), np.linalg.solve(whole, b), rtol=1e-9)
  by_right, by_triangle = found.gradient(right, a, gradient=Tensor(g, dtype=dtypes.float64))
  back = np.linalg.solve(whole, g)
  np.testing.assert_allclose(by_right.numpy(), back, rtol=1e-9)
  common = back @ np.linalg.solve(whole, b).swapaxes(1, 2)
  common = common + common.swapaxes(1, 2)
  np.testing.assert_allclose(by_triangle.numpy(), -(triangle @ common if upper else common @ triangle), rtol=1e-8)


def test_a_gradient_is_by_what_is_asked_for() -> None:
  """Also by what requires none; what was not used has zeros."""
  x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True)
  y = (x * w).sum()
  assert [g.tolist() for g in y.gradient(w, x)] == [[1, 2], [3, 4]]
  assert x.sum().gradient(w)[0].tolist() == [0, 0]
  assert y.gradient(w)[0].tolist() == [1, 2]
  assert y.gradient(Tensor([1.0], requires_grad=True))[0].tolist() == [0]       # not used


def _slope(f: Callable[[Array], float], at: Array, eps: float = 1e-6) -> Array:
  """The derivative by differences."""
  found = np.zeros_like(at)
  for k in np.ndindex(*at.shape):
    step = np.zeros_like(at)
    step[k] = eps
    found[k] = (f(at + step) - f(at - step)) / (2 * eps)
  return found


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (2, 4), (2, 3, 2), (3, 1), (1, 3)])
def test_derivatives_of_factors(shape: tuple[int, ...]) -> None:
  """Those of qr and svd against NumPy's differences, at random weights; signs of factors are free: NumPy's get ours."""
  rng = np.random.default_rng(5)
  at = rng.standard_normal(shape)
  x = Tensor(at, requires_grad=True)
  q, r = x.qr()
  weights = [rng.standard_normal(t.shape) for t in (q, r)]
  def signed(a: Array) -> tuple[Array, Array]:
    b, c = np.linalg.qr(a)
    sign = np.sign(np.einsum("...mk,...mk->...k", b, q.numpy()))
    return b * sign[..., None, :], c * sign[..., :, None]
  ((q * Tensor(weights[0])).sum() + (r * Tensor(weights[1])).sum()).backward()
  wanted = _slope(lambda a: float(sum((f * w).sum() for f, w in zip(signed(a), weights))), at)
  assert x.grad is not None and np.allclose(x.grad.numpy(), wanted, rtol=1e-5, atol=1e-6)
  alone = Tensor(at, requires_grad=True)
  (alone.qr("r")[1] * Tensor(weights[1])).sum().backward()
  wanted = _slope(lambda a: float((signed(a)[1] * weights[1]).sum()), at)
  assert alone.grad is not None and np.allclose(alone.grad.numpy(), wanted, rtol=1e-5, atol=1e-6)
  for full in (False, True):
    y = Tensor(at, requires_grad=True)
    u, s, vh = y.svd(full)
    k = s.shape[-1]
    a, b, c = (rng.standard_normal(n) for n in (u[..., :k].shape, s.shape, vh[..., :k, :].shape))
    pairs = (u[..., :k] * Tensor(a)).sum(-2) * (vh[..., :k, :] * Tensor(c)).sum(-1)   # alike for both signs of a pair
    (pairs + s * Tensor(b)).sum().backward()
    def value(h: Array, a: Array = a, b: Array = b, c: Array = c) -> float:
      u, s, vh = np.linalg.svd(h, full_matrices=False)
      return float(((u * a).sum(-2) * (vh * c).sum(-1) + s * b).sum())
    assert y.grad is not None and np.allclose(y.grad.numpy(), _slope(value, at), rtol=1e-5, atol=1e-6)
    assert np.allclose((u[..., :k] * s.unsqueeze(-2)).matmul(vh[..., :k, :]).numpy(), at)


def test_no_gradient_of_what_turns_freely() -> None:
  """Equal singular values, and those that are 0: the sum of values has its derivative all the same."""
  for at in (np.eye(3), np.diag([2.0, 2.0, 0.0]), np.ones((3, 2))):
    x = Tensor(at, requires_grad=True)
    u, s, vh = x.svd(False)
    (u.matmul(vh).sum() * 0 + s.square().sum()).backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), 2 * at)
