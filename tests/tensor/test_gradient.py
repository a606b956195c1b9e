"""Derivatives against finite differences in float64, on the witness; and as kernels, on every device."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.strength import seed
from tests.tensor.witness import value
from tinyhw import Tensor, dtypes
from tinyhw.core.errors import InvalidArgument

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(seed(5))
X, Y = RNG.uniform(0.3, 2, (3, 4)), RNG.uniform(-2, 2, (3, 4))
Function = Callable[[Tensor, Tensor], Tensor]

CASES: dict[str, Function] = {
  "add_mul": lambda x, y: x * y + x - 3 * y,
  "div": lambda x, y: y / x + 1 / x,
  "matmul": lambda x, y: x @ y.T,
  "batched": lambda x, y: x.reshape(3, 2, 2) @ y.reshape(3, 2, 2),
  "exp_log": lambda x, y: y.exp() * x.log() + x.log2() - y.exp2(),
  "sin_cos": lambda x, y: x.sin() * y.cos(),
  "sqrt": lambda x, y: x.sqrt() + x.rsqrt() * y,
  "pow": lambda x, y: x ** y + x ** 2.5 + y ** 3,
  "maximum": lambda x, y: x.maximum(y) * x.minimum(y),
  "where": lambda x, y: (y > 0).where(x * y, x - y),
  "clip": lambda x, y: y.clip(-1, 1) * x,
  "relu": lambda x, y: y.relu() * x,
  "abs": lambda x, y: y.abs() * x,
  "sigmoid": lambda x, y: y.sigmoid() * x.tanh(),
  "gelu": lambda x, y: y.gelu() + x.silu() + y.softplus(),
  "more": lambda x, y: y.quick_gelu() * y.elu() + x.softsign() * y.leaky_relu(0.3) + y.tan(),
  "logs": lambda x, y: y.expm1() * x.log1p() + x.log10() * y.cos(),
  "remainder": lambda x, y: (y % x) * x + (x % -0.37),
  "powers": lambda x, y: x ** -1 + x ** -2.5 + x ** 0.5 + x ** 4 + 2 ** y + 1.5 ** y,
  "sum_axis": lambda x, y: (x * y).sum(0) * y.sum(0),
  "mean_var": lambda x, y: x.var(1) * y.mean(1) + y.std(1),
  "max": lambda x, y: x.max(1) * y.min(1),
  "prod": lambda x, y: x.prod(1) + y.prod((0, 1)),
  "prod_zero": lambda x, y: (y * (y > 0)).prod(0) * x.sum(0),
  "softmax": lambda x, y: x.softmax(1) * y.log_softmax(0),
  "logsumexp": lambda x, y: x.logsumexp(1) * y.logsumexp((0, 1)),
  "layernorm": lambda x, y: x.layernorm() * y,
  "cumsum": lambda x, y: x.cumsum(1) * y,
  "movement": lambda x, y: x.T.flip(1).pad([(1, 2), (0, 1)])[1:, :3].reshape(3, -1).sum(1) * y[:, ::-2].sum(1),
  "expand": lambda x, y: x[:, None, :1].expand(3, 4, 2) * y[:, :, None],
  "cat": lambda x, y: x.cat(y, dim=1).stack(y.repeat(1, 2)) ** 2,
  "take": lambda x, y: x[[0, 2, 0]] * y[[1, 1, 2], [0, 0, 3]][:, None],
  "gather": lambda x, y: x.gather(1, Tensor([[0, 1], [3, 3], [2, 0]])) * y[:, :2],
  "scatter": lambda x, y: x.scatter(1, Tensor([[0, 1], [3, 3], [2, 2]]), y[:, 1:3]) * y,
  "scatter_reduce": lambda x, y: x.scatter_reduce(0, Tensor([[0, 1, 1, 2], [2, 2, 1, 0]]), y[1:], "sum") * x
                                 + x.scatter_reduce(1, Tensor([[0, 0, 3], [1, 1, 1], [3, 2, 0]]), y[:, :3], "amax")
                                 + x.scatter_reduce(1, Tensor([[0, 0, 3], [1, 1, 1], [3, 2, 0]]), y[:, :3], "amin",
                                                    include_self=False)
                                 + x.scatter_reduce(1, Tensor([[0, 0, 3], [1, 1, 1], [3, 2, 0]]), y[:, 1:], "prod")
                                 + x.scatter_reduce(0, Tensor([[0, 0, 1, 2]]), y[:1], "mean"),
  "index_put": lambda x, y: x.index_put((Tensor([0, 2, 0]), Tensor([1, 1, 1])), y[:, 0], accumulate=True) * y,
  "cross_entropy": lambda x, y: y.cross_entropy(Tensor([0, 3, 1])) * x,
  "smoothed": lambda x, y: y.cross_entropy(x.softmax(1), label_smoothing=0.1),
  "binary": lambda x, y: y.binary_crossentropy_logits(x.sigmoid()),
  "cast": lambda x, y: x.cast(dtypes.float64) * y.contiguous(),
}


def loss(function: Function, x: Tensor, y: Tensor) -> Tensor:
  """A scalar in which every element of the result has another weight."""
  result = function(x, y)
  weights = Tensor(np.linspace(0.5, 1.5, result.numel()).reshape(result.shape), device=x.device).cast(result.dtype)
  return (result * weights).sum()


@pytest.mark.parametrize("name", CASES)
def test_a_derivative_agrees_with_finite_differences(name: str) -> None:
  inputs = [Tensor(X, requires_grad=True), Tensor(Y, requires_grad=True)]
  loss(CASES[name], *inputs).backward()
  step = 1e-6
  for which, (tensor, data) in enumerate(zip(inputs, (X, Y))):
    wanted = np.zeros_like(data)
    for place in np.ndindex(data.shape):
      ends = []
      for sign in (1, -1):
        moved = data.copy()
        moved[place] += sign * step
        ends.append(float(value(loss(CASES[name], *[Tensor(moved if i == which else d) for i,
                                                    d in enumerate((X, Y))]).uop)))
      wanted[place] = (ends[0] - ends[1]) / (2 * step)
    found = np.zeros_like(data) if tensor.grad is None else value(tensor.grad.uop)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["matmul", "softmax", "movement", "cross_entropy", "prod_zero", "mean_var"])
def test_derivatives_run_as_kernels(name: str, device: str) -> None:
  inputs = [Tensor(d.astype(np.float32), device=device, requires_grad=True) for d in (X, Y)]
  def function(x: Tensor, y: Tensor) -> Tensor:
    return y.cross_entropy(Tensor([0, 3, 1], device=device)) * x if name == "cross_entropy" else CASES[name](x, y)
  loss(function, *inputs).backward()
  for tensor in inputs:
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), value(tensor.grad.uop), rtol=1e-4, atol=1e-5)


def test_gradients_add_up_and_leaves_are_told_apart() -> None:
  w = Tensor.ones(3, requires_grad=True)
  (w * Tensor.ones(3)).sum().backward()      # the same constant is not the same variable
  assert w.grad is not None and w.grad.tolist() == [1, 1, 1]
  (w * 2).sum().backward()
  assert w.grad.tolist() == [3, 3, 3]
  w.zero_grad()
  y = (w * w).realize()                      # a realized value keeps its history
  assert y.tolist() == [1, 1, 1]
  (y * Tensor([1.0, 2.0, 3.0])).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [2, 4, 6]


def test_leaves_that_share_memory_or_are_views_are_variables_of_their_own() -> None:
  data = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).realize()
  turned, other, again = data.T.requires_grad_(), data.detach().requires_grad_(), Tensor(data, requires_grad=True)
  weights = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
  (turned * weights + other.T * 10 + again.T * weights * 100).sum().backward()
  assert turned.grad is not None and other.grad is not None and again.grad is not None
  assert turned.grad.tolist() == weights.tolist() and other.grad.tolist() == [[10.0] * 3] * 2
  assert again.grad.tolist() == (weights.T * 100).tolist()


def test_a_leaf_that_was_pending_when_it_was_used() -> None:
  w = Tensor([1.0, 2.0], requires_grad=True)
  with Tensor.no_grad(): w.assign(w * 3)
  y = (w * w).sum()
  assert y.item() == 45 and w.tolist() == [3, 6]     # both are in memory now
  y.backward()
  assert w.grad is not None and w.grad.tolist() == [6, 12]


def test_gradient_of_any_value() -> None:
  x = Tensor([1.0, 2.0], requires_grad=True)
  y = x * x
  z = (y * 3 + x).sum()
  assert [g.tolist() for g in z.gradient(y, x)] == [[3, 3], [7, 13]]


def test_detach_and_no_grad_cut_the_history() -> None:
  w = Tensor([2.0, 3.0], requires_grad=True)
  (w.detach() * w).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [2, 3]
  with Tensor.no_grad(): assert not (w * 2).requires_grad
  with pytest.raises(InvalidArgument, match="no leaf"): w.detach().sum().backward()
  with pytest.raises(InvalidArgument, match="reduce to a scalar"): (w * 2).backward()
  with pytest.raises(InvalidArgument, match="only floats"): Tensor([1, 2], requires_grad=True)


def test_a_step_changes_the_leaf_and_not_what_was_made_from_it() -> None:
  w = Tensor([1.0, 2.0], requires_grad=True)
  y = (w * w).sum()
  y.backward()
  assert w.grad is not None
  with Tensor.no_grad(): w.assign(w - 0.5 * w.grad)
  assert w.tolist() == [0, 0] and y.item() == 5


@pytest.mark.parametrize("realized", [False, True])
def test_what_requires_no_gradient_lets_none_through(realized: bool) -> None:
  x = Tensor([2.0, 3.0])
  before = x * 10                       # made before x was a variable
  x.requires_grad_()
  with Tensor.no_grad(): quiet = x * 100
  (x * x).sum().backward()
  gradient = x.grad
  assert gradient is not None and not quiet.requires_grad
  if realized: Tensor.realize(before, quiet, gradient)
  x.zero_grad()
  (x * (before + quiet + gradient)).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [224, 336]


def test_views_of_one_memory_are_variables_of_their_own() -> None:
  base = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
  a, b, c = (t.requires_grad_() for t in (base.detach(), base.T, base.reshape(4)))
  ((a * b).sum() + (c * 5).sum()).backward()
  assert [t.grad.tolist() for t in (a, b, c)] == [[[1, 3], [2, 4]], [[1, 2], [3, 4]], [5, 5, 5, 5]]
  assert base.grad is None


FUNCTIONS = ["gelu", "quick_gelu", "silu", "softplus", "sigmoid", "tanh", "elu", "expm1", "softsign"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_finite_and_right_where_functions_bend(name: str, device: str) -> None:
  """At 0, and far out, where a part of the function over- or underflows."""
  points = np.array([0.0, -300.0, -60.0, 60.0, 88.0])
  x = Tensor(points.astype(np.float32), device=device, requires_grad=True)
  getattr(x, name)().sum().backward()
  assert x.grad is not None
  at_zero = {"gelu": 0.5, "quick_gelu": 0.5, "silu": 0.5, "softplus": 0.5, "sigmoid": 0.25}.get(name, 1.0)
  grows = {"sigmoid": 0.0, "tanh": 0.0}.get(name, 1.0)
  wanted = [at_zero, 0.0, 0.0, grows, grows]
  if name == "expm1": wanted[3:] = np.exp(points[3:]).tolist()
  if name == "softsign": wanted[1:] = (1 / (1 + np.abs(points[1:]))**2).tolist()
  np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5, atol=1e-15)


CONSTANT: dict[str, Callable[[Tensor], Tensor]] = {
  "** 0": lambda x: x ** 0, "** 0.0": lambda x: x ** 0.0, "sign": Tensor.sign, "floor": Tensor.floor,
  "matrix_power": lambda x: x.matrix_power(0), "sign of slogdet": lambda x: x.slogdet()[0],
  "diagonal": lambda x: x.diagonal(2), "cummax": lambda x: x[:0].cummax(0)[0],
  "cummin": lambda x: x[:, :0].cummin(1)[0],
  "gather": lambda x: x.gather(0, Tensor.zeros(0, 2, dtype="int32")), "sum": lambda x: x[:0].sum(),
  "cat": lambda x: x[:0].cat(x[:0]), "masked_select": lambda x: x.masked_select(x > 5), "* 0": lambda x: x * 0}


@pytest.mark.parametrize("name", CONSTANT)
def test_what_does_not_change_with_a_leaf_has_a_gradient_of_zeros(name: str) -> None:
  x = Tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
  found = CONSTANT[name](x)
  assert found.requires_grad and not found.is_leaf
  found.sum().backward()
  assert x.grad is not None and x.grad.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("read", [False, True])
def test_a_leaf_gets_what_was_computed_of_it_when_it_was_pending(read: bool) -> None:
  """By hand: 5 each, of the last value; what came before takes itself away."""
  w = Tensor([1.0, 2.0], requires_grad=True)
  with Tensor.no_grad(): w.assign(w)
  difference = w - w
  if read: w.numpy()
  with Tensor.no_grad(): w.assign(difference)
  ((w * 5).sum() + difference.sum()).backward()
  assert w.grad is not None and w.grad.tolist() == [5, 5]
