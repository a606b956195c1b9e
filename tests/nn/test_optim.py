"""Optimizers against PyTorch's values, against the papers' formulas in NumPy, and what they refuse."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, dtypes, nn
from tinyhw.core.errors import InvalidArgument
from tinyhw.nn.optim import Optimizer, OptimizerGroup

FILES = Path(__file__).parent / "files"
sys.path.insert(0, str(FILES))
import values  # noqa: E402

LEARNED = json.loads((FILES / "learned.json").read_text())["learned"]


def parameters(count: int = 2, dtype: Any = np.float32) -> list[Tensor]:
  return [Tensor(a.astype(dtype), requires_grad=True) for a in values.START[:count]]


def learn(optimizer: Optimizer | OptimizerGroup, leaves: list[Tensor], steps: int = values.STEPS) -> None:
  for step in range(steps):
    for i, p in enumerate(leaves): p.grad = Tensor(values.gradient(i, step), dtype=p.dtype)
    optimizer.step()


@pytest.mark.parametrize("name", values.OPTIMIZERS)
def test_as_torch_learns(name: str) -> None:
  kind, options = values.OPTIMIZERS[name]
  leaves = parameters(1 if kind == "Muon" else 2)
  learn(getattr(nn.optim, kind)(leaves, **options), leaves)
  # PyTorch iterates Muon in bfloat16, whose relative step is 2**-8.
  tolerance = 4e-3 if kind == "Muon" else 2e-6
  for p, want in zip(leaves, LEARNED[name], strict=True):
    np.testing.assert_allclose(p.numpy(), want, atol=tolerance, rtol=tolerance)


def norm(x: Any) -> Any: return np.sqrt((x * x).sum())


def lars(p: Any, steps: int, lr: float, momentum: float, decay: float, nesterov: bool, classic: bool, t: float,
         of: int) -> Any:
  v = None
  for step in range(steps):
    g = values.gradient(of, step).astype(np.float64)
    ratio = t * norm(p) / (norm(g) + decay * norm(p)) if norm(p) > 0 and norm(g) > 0 else 1
    g = ratio * (g + decay * p) * (lr if classic else 1)
    if momentum:
      v = g if v is None else momentum * v + g
      g = g + momentum * v if nesterov else v
    p = p - g * (1 if classic else lr)
  return p


@pytest.mark.parametrize("momentum, nesterov", [(0.0, False), (0.9, False), (0.9, True)])
@pytest.mark.parametrize("classic", [True, False])
def test_lars(momentum: float, nesterov: bool, classic: bool) -> None:
  leaves = parameters()
  learn(nn.optim.LARS(leaves, 0.5, momentum, 0.01, nesterov, classic, 0.1), leaves)
  for i, p in enumerate(leaves):
    want = lars(values.START[i].astype(np.float64), values.STEPS, 0.5, momentum, 0.01, nesterov, classic, 0.1, i)
    np.testing.assert_allclose(p.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lamb(decay: float) -> None:
  leaves = parameters()
  learn(nn.optim.LAMB(leaves, 0.1, (0.8, 0.9), 1e-6, decay), leaves)
  for i, leaf in enumerate(leaves):
    p, m, v = values.START[i].astype(np.float64), 0, 0
    for step in range(values.STEPS):
      g = values.gradient(i, step).astype(np.float64)
      m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
      change = (m / (1 - 0.8 ** (step + 1))) / (np.sqrt(v / (1 - 0.9 ** (step + 1))) + 1e-6) + decay * p
      p = p - 0.1 * norm(p) / norm(change) * change
    np.testing.assert_allclose(leaf.numpy(), p, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [nn.optim.LARS, nn.optim.LAMB])
def test_a_trust_ratio_of_nothing_is_one(make: Any) -> None:
  """A parameter, or a gradient, of zeros."""
  leaves = [Tensor.zeros(3, requires_grad=True), Tensor.ones(3, requires_grad=True)]
  optimizer = make(leaves, lr=1.0, weight_decay=0.0)
  leaves[0].grad, leaves[1].grad = Tensor.ones(3), Tensor.zeros(3)
  optimizer.step()
  np.testing.assert_allclose(leaves[0].numpy(), -np.ones(3), rtol=1e-5)
  assert leaves[1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_orthogonal_keeps_the_singular_vectors(shape: tuple[int, int]) -> None:
  """The iteration in NumPy on the singular values alone; the vectors stay."""
  x = np.random.default_rng(3).normal(size=shape)
  u, s, vt = np.linalg.svd(x, full_matrices=False)
  s = s / norm(x)
  for _ in range(5): s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
  got = Tensor(x.astype(np.float32)).newton_schulz(5, (3.4445, -4.775, 2.0315)).numpy()
  np.testing.assert_allclose(got, u * s @ vt, atol=2e-5)


def test_groups_have_options_of_their_own() -> None:
  first, second = parameters()
  optimizer = nn.optim.SGD([{"params": [first], "lr": 0.5}, {"params": second, "momentum": 0.9}], lr=0.1)
  learn(optimizer, [first, second], 2)
  g = [[values.gradient(i, s) for s in range(2)] for i in range(2)]
  np.testing.assert_allclose(first.numpy(), values.START[0] - 0.5 * (g[0][0] + g[0][1]), rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(second.numpy(), values.START[1] - 0.1 * (1.9 * g[1][0] + g[1][1]), rtol=1e-5, atol=1e-6)
  assert [g.lr for g in optimizer.groups] == [0.5, 0.1] and optimizer.lr == 0.5
  optimizer.lr = 0.25
  assert [g.lr for g in optimizer.groups] == [0.25, 0.25]


def test_several_optimizers_are_one() -> None:
  matrix, vector = parameters()
  both = OptimizerGroup(nn.optim.Muon([matrix], lr=0.05), nn.optim.SGD([vector], lr=0.1))
  assert both.parameters[0] is matrix and both.parameters[1] is vector
  learn(both, [matrix, vector])
  np.testing.assert_allclose(matrix.numpy(), LEARNED["Muon"][0], atol=4e-3)
  np.testing.assert_allclose(vector.numpy(), LEARNED["SGD"][1], atol=2e-6)
  both.zero_grad()
  assert matrix.grad is vector.grad is None


def test_a_new_rate_reaches_a_recorded_step() -> None:
  w = Tensor([1.0], requires_grad=True)
  optimizer = nn.optim.SGD([w], lr=1.0)
  @TinyJit
  def step(x: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = (w * x).sum().backward()
    optimizer.step(loss)
    return loss
  for _ in range(4): step(Tensor([1.0]))
  assert w.item() == -3
  optimizer.lr = 0.5
  for _ in range(2): step(Tensor([1.0]))
  assert w.item() == -4


def test_a_rate_is_a_tensor_that_schedulers_assign_to() -> None:
  w, step = Tensor([8.0], requires_grad=True), Tensor([0.0]).realize()
  optimizer = nn.optim.SGD([w], lr=1.0)
  assert optimizer.lr.shape == (1,) and optimizer.lr.item() == 1 and optimizer.lr.dtype is dtypes.float32

  @TinyJit
  def learned() -> Tensor:
    optimizer.zero_grad()
    w.sum().backward()
    Tensor.realize(*optimizer.schedule_step())
    step.assign(step + 1).realize()
    optimizer.lr.assign(0.5 ** step).realize()               # as a scheduler that is recorded, too
    return w * 1

  assert [learned().item() for _ in range(5)] == [7.0, 6.5, 6.25, 6.125, 6.0625]
  optimizer.lr *= 4
  assert optimizer.param_groups[0]["lr"] == 0.125
  optimizer.param_groups[0]["lr"] = 0.25
  assert optimizer.lr.item() == 0.25 and optimizer.param_groups[0]["params"][0] is w
  optimizer.param_groups[0]["weight_decay"] = 0.5
  optimizer.zero_grad(set_to_none=False)
  assert w.grad is not None and w.grad.item() == 0
  optimizer.step()
  assert w.item() == 6.0625 * (1 - 0.25 * 0.5)
  assert set(optimizer.param_groups[0].keys()) == {"params", "lr", "momentum", "weight_decay", "nesterov", "dampening"}
  with pytest.raises(InvalidArgument, match="no option 'beta'"): optimizer.param_groups[0]["beta"] = 1
  with pytest.raises(InvalidArgument, match=r"rate of shape \(2,\)"): optimizer.lr = Tensor([1.0, 2.0])


def test_double_precision_learns_in_double_precision() -> None:
  leaves = parameters(dtype=np.float64)
  learn(nn.optim.SGD(leaves, lr=0.1), leaves, 1)
  np.testing.assert_allclose(leaves[0].numpy(), values.START[0] - 0.1 * values.gradient(0, 0).astype(np.float64),
                             rtol=1e-15, atol=1e-15)


def square() -> Tensor: return Tensor.ones(2, 2, requires_grad=True)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
  "momentum": (lambda: nn.optim.SGD([square()], nesterov=True), "Nesterov's momentum with momentum 0.0"),
  "dampening": (lambda: nn.optim.SGD([square()], momentum=0.5, dampening=0.5, nesterov=True), "and dampening 0.5"),
  "beta": (lambda: nn.optim.Adam([square()], betas=(0.9, 1.0)), r"beta 1.0 is not in \[0, 1\)"),
  "rate": (lambda: nn.optim.SGD([square()], lr=float("nan")), "learning rate nan"),
  "no number": (lambda: nn.optim.SGD([square()], lr=Tensor([1.0])),  # type: ignore[arg-type]
                "is a number, not a Tensor"),
  "option": (lambda: nn.optim.SGD([{"params": square(), "betas": 1}]),
             "SGD has no option 'betas'; a group may have params"),
  "empty": (lambda: nn.optim.SGD([{"params": []}]), "a group without parameters"),
  "twice": (lambda: nn.optim.SGD([{"params": p} for p in [square()] * 2]), "in two groups"),
  "vector": (lambda: nn.optim.Muon([Tensor.ones(3, requires_grad=True)]), r"not for a parameter of shape \(3,\)"),
  "none": (lambda: OptimizerGroup(), "no optimizers"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
  call, message = REFUSED[what]
  with pytest.raises(InvalidArgument, match=message): call()


def test_a_negative_rate_changes_nothing() -> None:
  optimizer = nn.optim.SGD([square()], lr=0.1)
  with pytest.raises(InvalidArgument, match="learning rate -1 is negative"): optimizer.lr = -1
  assert optimizer.lr == 0.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adams_first_steps_have_all_their_digits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """1 - 0.999 has few of them in float32; and what new tensors are by default does not matter."""
  monkeypatch.setattr(dtypes, "default_float", dtypes.float16)
  p = Tensor([1.0, -2.0], dtype=dtype, requires_grad=True)
  optimizer = nn.optim.Adam([p], lr=0.5)
  value, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
  for step in range(1, 5):
    optimizer.zero_grad()
    (p * p * p).sum().backward()
    optimizer.step()
    g = 3 * value * value
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    value = value - 0.5 * (m / (1 - 0.9 ** step)) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8)
  np.testing.assert_allclose(p.numpy(), value, rtol=2e-6 if dtype == "float32" else 1e-13)
