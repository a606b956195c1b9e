"""Derivatives of derivatives (`create_graph`), against finite differences of the first ones in float64."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.strength import seed
from tinyhw import Tensor
from tinyhw.core.errors import Unsupported

Array = np.ndarray[Any, np.dtype[Any]]
X = np.random.default_rng(seed(11)).uniform(0.2, 0.9, (2, 4))
WEIGHTS = np.array([[1.0, -2, 3, 0.5], [2, 1, -1, 4]])

CASES: dict[str, Callable[[Tensor], Tensor]] = {
  # what the graph itself derives
  "power": lambda x: x ** 3 + x ** x,
  "quotient": lambda x: x / (1 + x * x) + x.sqrt(),
  "softmax": lambda x: x.softmax(1) * x,
  "norms": lambda x: x.layernorm() + (x * 2).logsumexp(1, keepdim=True),
  "parts": lambda x: (x[:, ::2].square().cat(x.flip(1)[:, 1:3].exp(), dim=1)) * x[[1, 0]],
  "matmul": lambda x: (x.T @ x @ x.T).T,
  "convolution": lambda x: x.reshape(1, 1, 2, 4).conv2d(x.reshape(1, 1, 4, 2)[:, :, :1], padding=(0, 1, 0, 0))[0, 0],
  "greatest": lambda x: x.max(1, keepdim=True) ** 3 * x,
  # what says its derivative
  "erf": lambda x: x.erf() * (2 * x).erfc() + x.erfinv(),
  "gelu": lambda x: x.gelu("none") + (x - 0.5).gelu(),
  "hyperbolic": lambda x: x.sinh() * x.cosh() + x.asinh() + x.atanh(),
  "angles": lambda x: x.asin() * x.atan() + x.atan2(1 - x * x) + x.hypot(2 * x * x),
  "gamma": lambda x: (x + 1).lgamma() + (x + 2).digamma(),
  "activations": lambda x: (x - 0.5).mish() + x.silu() + x.softplus() + x.elu() + (x - 1).sigmoid() * x.tanh(),
}


def first(function: Callable[[Tensor], Tensor], values: Array) -> Array:
  """The first derivative of the weighted sum."""
  x = Tensor(values, requires_grad=True)
  y = function(x)
  return (y * Tensor(WEIGHTS.reshape(-1)[:y.numel()].reshape(y.shape))).sum().gradient(x)[0].numpy()


@pytest.mark.parametrize("name", CASES)
def test_a_derivative_is_derived_again(name: str) -> None:
  function = CASES[name]
  x = Tensor(X, requires_grad=True)
  y = function(x)
  once = (y * Tensor(WEIGHTS.reshape(-1)[:y.numel()].reshape(y.shape))).sum().gradient(x, create_graph=True)[0]
  direction = np.cos(np.arange(8.0)).reshape(2, 4)
  twice = (once * Tensor(direction)).sum().gradient(x)[0].numpy()
  # The second derivative is symmetric: along `direction` it is the change of the first.
  step = 1e-6
  wanted = (first(function, X + step * direction) - first(function, X - step * direction)) / (2 * step)
  np.testing.assert_allclose(twice, wanted, rtol=2e-5, atol=2e-5)
  np.testing.assert_allclose(once.numpy(), first(function, X), rtol=1e-12)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_three_times(device: str) -> None:
  x = Tensor([0.5, 2.0], device=device, requires_grad=True)
  g = (x ** 4 + x.erf()).sum()
  for _ in range(3): g, = (g if g.shape == () else g.sum()).gradient(x, create_graph=True)
  density = [-4 / math.sqrt(math.pi) * math.exp(-v * v) * (1 - 2 * v * v) for v in (0.5, 2.0)]
  np.testing.assert_allclose(g.numpy(), [24 * v + d for v, d in zip((0.5, 2.0), density)], rtol=1e-5)


def test_backward_with_a_history() -> None:
  """The penalty of a gradient's size, as networks learn with it."""
  w, x = Tensor([2.0, -1.0], requires_grad=True), Tensor([3.0, 0.5], requires_grad=True)
  (w * x * x).sum().backward(create_graph=True)
  assert x.grad is not None and x.grad.requires_grad
  penalty, x.grad, w.grad = (x.grad * x.grad).sum(), None, None       # (2 w x)^2
  penalty.backward()
  assert w.grad is not None and np.allclose(w.grad.numpy(), [8 * 2 * 9, 8 * -1 * 0.25])
  (w * x).sum().backward(retain_graph=True)
  assert x.grad is not None and not x.grad.requires_grad


def test_what_has_no_second_derivative_says_so() -> None:
  x = Tensor.eye(3, requires_grad=True)
  with pytest.raises(Unsupported, match="second derivative"): x.qr()[1].sum().gradient(x, create_graph=True)
  assert not x.qr()[1].sum().gradient(x)[0].requires_grad
