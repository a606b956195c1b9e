"""Networks learn, and learn the same on every device."""
from __future__ import annotations

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, nn
from tinyhw.core.errors import InvalidArgument

RNG = np.random.default_rng(11)
X = RNG.normal(size=(32, 16)).astype(np.float32)
LABELS = (X @ RNG.normal(size=(16, 4)).astype(np.float32)).argmax(1).astype(np.int32)
FIRST, SECOND = (RNG.uniform(-0.25, 0.25, s).astype(np.float32) for s in ((12, 16), (4, 12)))


class Network:
  """16-12-4 with known weights."""

  def __init__(self, device: str):
    self.layers = [nn.Linear(16, 12, device=device), nn.Linear(12, 4, device=device)]
    state = {"layers.0.weight": FIRST, "layers.1.weight": SECOND, "layers.0.bias": np.zeros(12, np.float32),
             "layers.1.bias": np.zeros(4, np.float32)}
    nn.load_state_dict(self, {name: Tensor(data, device=device) for name, data in state.items()})

  def __call__(self, x: Tensor) -> Tensor: return self.layers[1](self.layers[0](x).relu())


def train(device: str, steps: int, jit: bool, make: type[nn.optim.Optimizer] = nn.optim.SGD,
          lr: float = 0.5) -> list[float]:
  network = Network(device)
  optimizer = make(nn.get_parameters(network), lr)
  x, labels = Tensor(X, device=device), Tensor(LABELS, device=device)
  def step(x: Tensor, labels: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = network(x).sparse_categorical_crossentropy(labels).backward()
    optimizer.step(loss)
    return loss
  run = TinyJit(step) if jit else step
  return [float(run(x, labels).item()) for _ in range(steps)]


def reference(steps: int, lr: float) -> list[float]:
  """The same in NumPy, with the derivative by hand."""
  w1, w2, b1, b2 = FIRST.copy(), SECOND.copy(), np.zeros(12, np.float32), np.zeros(4, np.float32)
  losses = []
  for _ in range(steps):
    h = X @ w1.T + b1
    a = np.maximum(h, 0)
    z = a @ w2.T + b2
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    losses.append(float(-np.log(p[np.arange(32), LABELS]).mean()))
    dz = (p - np.eye(4, dtype=np.float32)[LABELS]) / 32
    dh = dz @ w2 * (h > 0)
    w2, b2, w1, b1 = w2 - lr * dz.T @ a, b2 - lr * dz.sum(0), w1 - lr * dh.T @ X, b1 - lr * dh.sum(0)
  return losses


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_a_network_learns_as_the_reference_does(device: str, jit: bool) -> None:
  np.testing.assert_allclose(train(device, 5, jit), reference(5, 0.5), rtol=2e-5)


@pytest.mark.parametrize("make", [nn.optim.Adam, nn.optim.AdamW], ids=["Adam", "AdamW"])
def test_adam_learns_the_same_eagerly_and_replayed(make: type[nn.optim.Optimizer]) -> None:
  eager = train("LLVM", 8, False, make, 0.02)
  np.testing.assert_allclose(train("LLVM", 8, True, make, 0.02), eager, rtol=1e-5)
  assert eager[-1] < 0.8 * eager[0]


def test_momentum_and_weight_decay() -> None:
  w = Tensor([1.0, -2.0], requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.01)
  value, velocity = np.array([1.0, -2.0]), np.zeros(2)
  for i in range(3):
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
    g = 2 * value + 0.01 * value
    velocity = g if i == 0 else 0.9 * velocity + g
    value = value - 0.1 * velocity
  np.testing.assert_allclose(w.numpy(), value, rtol=1e-5)


def test_state() -> None:
  network = Network("LLVM")
  state = nn.get_state_dict(network)
  assert list(state) == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
  with pytest.raises(InvalidArgument, match="lacks"): nn.load_state_dict(network, {})
  before = network.layers[0].weight.numpy()
  state["layers.0.weight"], state["layers.1.bias"] = state["layers.0.weight"] + 1, Tensor([1.0, 2.0, 3.0])
  with pytest.raises(InvalidArgument, match=r"the state has 'layers.1.bias' of shape \(3,\), the model of shape"):
    nn.load_state_dict(network, state)
  np.testing.assert_array_equal(network.layers[0].weight.numpy(), before)     # none of it was loaded


def test_layers() -> None:
  x = Tensor(X[:, :6])
  y = nn.LayerNorm(6)(x).numpy()
  np.testing.assert_allclose(y.mean(1), 0, atol=1e-6)
  np.testing.assert_allclose(y.std(1), 1, atol=1e-3)
  table = nn.Embedding(5, 3)
  np.testing.assert_array_equal(table(Tensor([4, 0])).numpy(), table.weight.numpy()[[4, 0]])


def test_dropout_is_for_training_only() -> None:
  Tensor.manual_seed(2)
  x = Tensor.ones(1000)
  assert x.dropout(0.5).numpy().min() == 1
  with Tensor.train(): y = x.dropout(0.25).numpy()
  assert {round(v, 4) for v in y.tolist()} == {0.0, 1.3333} and 0.2 < (y == 0).mean() < 0.3
