"""What functions do without options and at the ends of their ranges, against NumPy; and the optimizers' formulas."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, dtypes, nn
from tinyhw.core.errors import InvalidArgument

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(5)
X, Y = (RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
CUBE = RNG.normal(size=(2, 3, 4)).astype(np.float32)
N = np.array([[3, 0, -2, 7], [0, 0, 0, 0], [1, 1, 5, -9]], np.int32)


def t(x: Any) -> Tensor: return Tensor(x, device="PYTHON")


def softplus(x: Array) -> Array: return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
  # Reductions take every axis and drop it.
  "sum": (lambda: t(X).sum(), X.sum()), "prod": (lambda: t(X).prod(), X.prod()),
  "max": (lambda: t(X).max(), X.max()), "min": (lambda: t(X).min(), X.min()),
  "any": (lambda: t(N).any(), True), "any 1": (lambda: t(N).any(1), N.any(1)), "all": (lambda: t(N).all(), False),
  "all 1": (lambda: t(N).all(1), N.all(1)), "mean": (lambda: t(X).mean(), X.mean()),
  "mean 0": (lambda: t(X).mean(0), X.mean(0)), "var": (lambda: t(X).var(), X.var(ddof=1)),
  "var 1": (lambda: t(X).var(1), X.var(1, ddof=1)), "var biased": (lambda: t(X).var(correction=0), X.var()),
  "var kept": (lambda: t(X).var(0, keepdim=True), X.var(0, ddof=1, keepdims=True)),
  "std": (lambda: t(X).std(), X.std(ddof=1)), "std biased": (lambda: t(X).std(1, correction=0), X.std(1)),
  "var of one": (lambda: t(X[:1, :1]).var(), math.nan), "argmax": (lambda: t(X).argmax(), X.argmax()),
  "argmin": (lambda: t(X).argmin(), X.argmin()), "argmax 1": (lambda: t(X).argmax(1), X.argmax(1)),
  "argmin kept": (lambda: t(X).argmin(0, keepdim=True), X.argmin(0, keepdims=True)),
  "argmax all kept": (lambda: t(X).argmax(keepdim=True), np.full((1, 1), X.argmax())),
  "argmax equal": (lambda: t(N).argmax(1), N.argmax(1)), "cumsum": (lambda: t(X).cumsum(), X.cumsum(0)),
  "cumsum 1": (lambda: t(X).cumsum(1), X.cumsum(1)), "cumsum -1": (lambda: t(X).cumsum(-1), X.cumsum(1)),
  "cumsum of none": (lambda: t(X[:0]).cumsum(), X[:0]), "cumsum of one": (lambda: t(X[:1]).cumsum(), X[:1]),
  "logsumexp": (lambda: t(X).logsumexp(), np.log(np.exp(X).sum())),
  "logsumexp kept": (lambda: t(X).logsumexp(1, keepdim=True), np.log(np.exp(X).sum(1, keepdims=True))),
  "softmax": (lambda: t(X).softmax(), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
  "softmax 0": (lambda: t(X).softmax(0), np.exp(X) / np.exp(X).sum(0)),
  "log_softmax": (lambda: t(X).log_softmax(), X - np.log(np.exp(X).sum(1, keepdims=True))),
  "layernorm": (lambda: t(X).layernorm(), (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)),
  "layernorm eps": (lambda: t(X).layernorm((0, 1), 0.5), (X - X.mean()) / np.sqrt(X.var() + 0.5)),
  # Losses
  "bce": (lambda: t(X).binary_crossentropy_logits(t(Y)), (softplus(X) - X * Y).mean()),
  "bce sum": (lambda: t(X).binary_crossentropy_logits(t(Y), "sum"), (softplus(X) - X * Y).sum()),
  "bce none": (lambda: t(X).binary_crossentropy_logits(t(Y), "none"), softplus(X) - X * Y),
  "mse": (lambda: t(X).mse_loss(t(Y)), ((X - Y) ** 2).mean()),
  "mse none": (lambda: t(X).mse_loss(t(Y), "none"), (X - Y) ** 2),
  # Matrices of every number of axes
  "2 by 2": (lambda: t(X) @ t(Y.T), X @ Y.T), "1 by 2": (lambda: t(X[0]) @ t(Y.T), X[0] @ Y.T),
  "2 by 1": (lambda: t(X) @ t(Y[0]), X @ Y[0]), "1 by 1": (lambda: t(X[0]) @ t(Y[0]), X[0] @ Y[0]),
  "3 by 2": (lambda: t(CUBE) @ t(Y.T), CUBE @ Y.T), "2 by 3": (lambda: t(X.T) @ t(CUBE), X.T @ CUBE),
  "3 by 3": (lambda: t(CUBE) @ t(CUBE.transpose(0, 2, 1)), CUBE @ CUBE.transpose(0, 2, 1)),
  "1 by 3": (lambda: t(X[:, 0]) @ t(CUBE), X[:, 0] @ CUBE), "3 by 1": (lambda: t(CUBE) @ t(Y[0]), CUBE @ Y[0]),
  # Shapes
  "size": (lambda: [t(CUBE).size(0), t(CUBE).size(-1)], [2, 4]), "flatten": (lambda: t(CUBE).flatten(), CUBE.ravel()),
  "flatten 1": (lambda: t(CUBE).flatten(1), CUBE.reshape(2, 12)), "squeeze": (lambda: t(X[None, :, None]).squeeze(), X),
  "squeeze 0": (lambda: t(X[None, :, None]).squeeze(0), X[:, None]), "transpose": (lambda: t(X).transpose(), X.T),
  "transpose 0 2": (lambda: t(CUBE).transpose(0, 2), CUBE.swapaxes(0, 2)), "flip": (lambda: t(X).flip(0), X[::-1]),
  "cat": (lambda: t(X).cat(t(Y)), np.concatenate((X, Y))),
  "cat 1": (lambda: t(X).cat(t(Y), dim=1), np.concatenate((X, Y), 1)),
  "stack": (lambda: t(X).stack(t(Y)), np.stack((X, Y))), "roll": (lambda: t(X).roll(1), np.roll(X, 1)),
  "roll back": (lambda: t(X).roll(-3, 1), np.roll(X, -3, 1)), "triu": (lambda: t(X).triu(), np.triu(X)),
  "tril": (lambda: t(X).tril(), np.tril(X)), "triu 1": (lambda: t(X).triu(1), np.triu(X, 1)),
  "tril -1": (lambda: t(X).tril(-1), np.tril(X, -1)), "repeat": (lambda: t(X).repeat(2, 3), np.tile(X, (2, 3))),
  "interleave": (lambda: t(X).repeat_interleave(2), X.repeat(2)),
  "interleave 1": (lambda: t(X).repeat_interleave(3, 1), X.repeat(3, 1)),
  "pad": (lambda: t(X).pad((1, 2)), np.pad(X, ((0, 0), (1, 2)))),
  "pad both": (lambda: t(X).pad((1, 2, 3, 0), value=7), np.pad(X, ((3, 0), (1, 2)), constant_values=7)),
  "pad axes": (lambda: t(X).pad(((0, 1), None)), np.pad(X, ((0, 1), (0, 0)))),
  "one hot": (lambda: t(np.array([2, 0, 1])).one_hot(4), np.eye(4, dtype=np.int32)[[2, 0, 1]]),
  "split": (lambda: t(X).split(2)[1], X[2:]), "split sizes": (lambda: t(X).split([1, 3], 1)[1], X[:, 1:]),
  "chunk": (lambda: t(X).chunk(2)[0], X[:2]), "last": (lambda: t(X)[-1], X[-1]), "first": (lambda: t(X)[-3], X[0]),
  "last column": (lambda: t(X)[:, 3], X[:, 3]), "conv2d": (
    lambda: t(CUBE[None]).conv2d(t(np.ones((1, 2, 3, 4), np.float32))), CUBE.sum().reshape(1, 1, 1, 1)),
  "max_pool2d": (lambda: t(X[None, None]).max_pool2d(), np.array([[[[X[:2, :2].max(), X[:2, 2:].max()]]]])),
  "avg_pool2d": (lambda: t(X[None, None]).avg_pool2d(), np.array([[[[X[:2, :2].mean(), X[:2, 2:].mean()]]]])),
  "mT": (lambda: t(CUBE).mT, CUBE.swapaxes(1, 2)), "T": (lambda: t(X).T, X.T),
  "tolist": (lambda: t(CUBE).tolist(), CUBE.tolist()), "tolist of none": (lambda: t(CUBE[:, :0]).tolist(), [[], []]),
  "tolist of nothing": (lambda: t(CUBE[:0]).tolist(), []), "tolist of one": (lambda: t(2.5).tolist(), 2.5),
  "tolist of rows": (lambda: np.zeros(np.array(t(CUBE[:, :, :0]).tolist()).shape), CUBE[:, :, :0]),
  "classes": (lambda: t(X).sparse_categorical_crossentropy(t(np.array([1, 0, 3]))),
              -(X - np.log(np.exp(X).sum(1, keepdims=True)))[[0, 1, 2], [1, 0, 3]].mean()),
  "classes ignored": (lambda: t(X).sparse_categorical_crossentropy(t(np.array([1, 7, 3])), ignore_index=7),
                      -(X - np.log(np.exp(X).sum(1, keepdims=True)))[[0, 2], [1, 3]].mean()),
  # Numbers beside tensors: on the left, beyond the type, as NumPy's scalars and arrays
  "2 **": (lambda: 2 ** t(X), 2 ** X), "3 **": (lambda: 3 ** t(X), 3 ** X), "** 2": (lambda: t(X) ** 2, X ** 2),
  "** 3": (lambda: t(X) ** 3, X ** 3), "** 0.5": (lambda: t(abs(X)) ** 0.5, abs(X) ** 0.5),
  "2.0 **": (lambda: 2.0 ** t(N), 2.0 ** N), "list": (lambda: t(X) + [1, 2, 3, 4], X + [1, 2, 3, 4]),
  "scalar": (lambda: t(X) * np.float32(3), X * 3), "0d": (lambda: t(X) * np.array(3, np.float32), X * 3),
  "array": (lambda: t(X) * Y, X * Y), "array of one": (lambda: t(X) + np.ones((1, 1), np.float32), X + 1),
  **{f"{name} {side}": (lambda f=f, v=v: f(t(N), v), f(N.astype(np.int64), v))
     for name, f in (("<", lambda a, b: a < b), ("<=", lambda a, b: a <= b), (">", lambda a, b: a > b),
                     (">=", lambda a, b: a >= b), ("==", lambda a, b: a == b), ("!=", lambda a, b: a != b))
     for side, v in (("far above", 1 << 40), ("far below", -(1 << 40)), ("inside", 1))},
  "<< 31": (lambda: t(N) << 31, N << 31), "<< 32": (lambda: t(N) << 32, N * 0), "<< 0": (lambda: t(N) << 0, N),
  ">> 32": (lambda: t(N) >> 32, N >> 31), ">> 31": (lambda: t(N) >> 31, N >> 31),
  ">> -1": (lambda: t(N) >> -1, N >> 31),
  "uint8 >> 8": (lambda: t(np.array([200, 3], np.uint8)) >> 8, np.zeros(2, np.uint8)),
  "uint8 << 300": (lambda: t(np.array([200, 3], np.uint8)) << 300, np.zeros(2, np.uint8)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_case(name: str) -> None:
  make, wanted = CASES[name]
  found, wanted = make(), np.asarray(wanted)
  if isinstance(found, Tensor):
    assert found.shape == wanted.shape
    found = found.numpy()
  np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
  "odd padding": (lambda: t(X).pad((1, 2, 3)), InvalidArgument, r"padding \(1, 2, 3\) of shape \(3, 4\)"),
  "much padding": (lambda: t(X).pad((1,) * 6), InvalidArgument, "give .before, after. for the last axes"),
  "short padding": (lambda: t(X).pad(((1, 1),)), InvalidArgument, "give .before, after. for each axis"),
  "past the end": (lambda: t(X)[3], IndexError, "index 3 of axis 0"),
  "before the start": (lambda: t(X)[:, -5], IndexError, "index -5 of axis 1"),
  "loop over a scalar": (lambda: list(t(1.0)), TypeError, r"a tensor of shape \(\) has no elements to go through"),
  "no integers": (lambda: Tensor.randint(3, low=4, high=4, device="PYTHON"), InvalidArgument, r"no integers in 4\.\.3"),
  "integer noise": (lambda: Tensor.rand(2, dtype=dtypes.int32, device="PYTHON"), InvalidArgument, "use randint"),
  "shift of a float": (lambda: t(X) << t(N), InvalidArgument, "shift of"),
  "bits of two": (lambda: t(np.array([1], np.uint64)) & t(np.array([1], np.int8)), InvalidArgument, "and of"),
  "operand": (lambda: t(X) + object(), InvalidArgument, "is not a number or a Tensor"),
  "layer norm": (lambda: nn.LayerNorm(3, device="PYTHON")(t(X)), InvalidArgument, "layer norm over"),
  "no parameters": (lambda: nn.optim.SGD([]), InvalidArgument, "without parameters"),
  "learning rate": (lambda: nn.optim.SGD([t(X)], -1.0), InvalidArgument, "learning rate -1.0 is negative"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake(name: str) -> None:
  make, kind, message = MISTAKES[name]
  with pytest.raises(kind, match=message): make()


def test_random_numbers_without_options() -> None:
  Tensor.manual_seed(3)
  numbers = Tensor.randint(2000, device="PYTHON").numpy()
  assert numbers.dtype == np.int32 and set(numbers) == set(range(10))
  unit = Tensor.uniform(2000, device="PYTHON").numpy()
  assert 0 <= unit.min() < 0.02 and 0.98 < unit.max() < 1
  normal = Tensor.normal(4000, device="PYTHON").numpy()
  assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1
  wide = Tensor.normal(4000, mean=5.0, std=3.0, device="PYTHON").numpy()
  assert abs(wide.mean() - 5) < 0.3 and abs(wide.std() - 3) < 0.3
  for made in (Tensor.rand(0, 3, device="PYTHON"), Tensor.randint(0, device="PYTHON")):
    assert made.numpy().size == 0 and made.shape[0] == 0
  assert Tensor.rand(1, device="PYTHON").shape == (1,) and 0 <= Tensor.rand(1, device="PYTHON").item() < 1
  Tensor.manual_seed()
  first = Tensor.rand(4, device="PYTHON").numpy()
  assert (Tensor.rand(4, device="PYTHON").numpy() != first).any(), "each draw is another"
  Tensor.manual_seed(0)
  assert (Tensor.rand(4, device="PYTHON").numpy() == first).all(), "the seed is 0 unless said"


def test_sums_have_the_type_that_holds_them() -> None:
  half, small = t(np.full((4, 3), 0.1, np.float16)), t(np.full((4, 3), 100, np.int8))
  assert half.sum().dtype is dtypes.float16 and half.sum(dtype=dtypes.float32).dtype is dtypes.float32
  assert half.sum(0, dtype=dtypes.float64).dtype is dtypes.float64
  assert small.sum().dtype is dtypes.int32 and small.sum().item() == 1200
  assert small.sum(dtype=dtypes.int64).dtype is dtypes.int64 and small.prod(0).dtype is dtypes.int32
  assert half.mean().dtype is dtypes.float16 and small.mean().dtype is dtypes.float32


def test_more_ways_to_make_a_tensor() -> None:
  empty = Tensor.empty(2, 3, device="PYTHON")
  assert empty.dtype is dtypes.float32 and empty.shape == (2, 3)
  assert Tensor.empty(2, dtype="int8", device="PYTHON").dtype is dtypes.int8
  assert Tensor.empty(0, 3, device="PYTHON").numpy().shape == (0, 3)
  Tensor.manual_seed(1)
  for made, bound in ((Tensor.kaiming_uniform(64, 50, device="PYTHON"), math.sqrt(6 / (1 + 0.01 ** 2) / 50)),
                      (Tensor.kaiming_uniform(64, 50, a=2.0, device="PYTHON"), math.sqrt(6 / 5 / 50)),
                      (Tensor.glorot_uniform(64, 50, device="PYTHON"), math.sqrt(6 / 114))):
    values = abs(made.numpy())
    assert made.shape == (64, 50) and bound * 0.99 < values.max() <= bound * 1.0001
  steps = Tensor.rand(500, device="PYTHON").numpy().astype(np.float64) * 2 ** 23
  assert (steps == np.trunc(steps)).all() and {0, 1} == set((steps % 2).astype(int)), "all of 23 bits are drawn"
  for wrong in ((2.5,), ("x",), (None,)):
    with pytest.raises((InvalidArgument, TypeError)): Tensor.zeros(*wrong, device="PYTHON")
  with pytest.raises(InvalidArgument, match="is not a shape"): Tensor.zeros(2, -1, device="PYTHON")


def test_layers_without_options() -> None:
  norm = nn.LayerNorm(4, device="PYTHON")
  assert norm.weight is not None and norm.bias is not None and norm.eps == 1e-5
  normal = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
  np.testing.assert_allclose(norm(t(X)).numpy(), normal, rtol=1e-5, atol=1e-5)
  norm.weight.assign(t(Y[0]))
  norm.bias.assign(t(Y[1]))
  np.testing.assert_allclose(norm(t(X)).numpy(), normal * Y[0] + Y[1], rtol=1e-5, atol=1e-5)
  plain = nn.LayerNorm((3, 4), affine=False, device="PYTHON")
  assert plain.weight is None and plain.bias is None and not nn.get_parameters(plain)
  np.testing.assert_allclose(plain(t(X)).numpy(), (X - X.mean()) / np.sqrt(X.var() + 1e-5), rtol=1e-5, atol=1e-5)
  linear = nn.Linear(4, 2, device="PYTHON")
  assert linear.bias is not None and len(nn.get_parameters(linear)) == 2
  bound = 1 / math.sqrt(4)
  for p in (linear.weight, linear.bias): assert (abs(p.numpy()) <= bound).all() and p.requires_grad
  wanted = X @ linear.weight.numpy().T + linear.bias.numpy()
  np.testing.assert_allclose(linear(t(X)).numpy(), wanted, rtol=1e-5, atol=1e-6)
  assert nn.Linear(4, 2, bias=False, device="PYTHON").bias is None
  table = nn.Embedding(5, 3, device="PYTHON")
  assert (table(t(np.array([4, 0, 4]))).numpy() == table.weight.numpy()[[4, 0, 4]]).all()


def sgd(p: Array, gradients: list[Array], lr: float = 0.01, momentum: float = 0.0, decay: float = 0.0,
        nesterov: bool = False) -> Array:
  """PyTorch's SGD."""
  v = None
  for gradient in gradients:
    g = gradient + decay * p
    if momentum:
      v = g if v is None else momentum * v + g
      g = g + momentum * v if nesterov else v
    p = p - lr * g
  return p


def adam(p: Array, gradients: list[Array], lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
         eps: float = 1e-8, decay: float = 0.0, decoupled: bool = False) -> Array:
  """PyTorch's Adam and AdamW."""
  m, v = np.zeros_like(p), np.zeros_like(p)
  for k, gradient in enumerate(gradients, 1):
    g = gradient if decoupled else gradient + decay * p
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
    change = m / (1 - betas[0] ** k) / (np.sqrt(v / (1 - betas[1] ** k)) + eps)
    p = p - lr * (change + (decay * p if decoupled else 0))
  return p


OPTIMIZERS: dict[str, tuple[Callable[[list[Tensor]], Any], Callable[[Array, list[Array]], Array]]] = {
  "SGD": (lambda p: nn.optim.SGD(p), lambda p, g: sgd(p, g)),
  "SGD momentum": (lambda p: nn.optim.SGD(p, 0.1, 0.9), lambda p, g: sgd(p, g, 0.1, 0.9)),
  "SGD nesterov": (lambda p: nn.optim.SGD(p, 0.1, 0.5, 0.2, True), lambda p, g: sgd(p, g, 0.1, 0.5, 0.2, True)),
  "SGD decay": (lambda p: nn.optim.SGD(p, 0.1, weight_decay=0.3), lambda p, g: sgd(p, g, 0.1, decay=0.3)),
  "Adam": (lambda p: nn.optim.Adam(p), lambda p, g: adam(p, g)),
  "Adam decay": (lambda p: nn.optim.Adam(p, 0.1, (0.5, 0.75), 1e-3, 0.4),
                 lambda p, g: adam(p, g, 0.1, (0.5, 0.75), 1e-3, 0.4)),
  "AdamW": (lambda p: nn.optim.AdamW(p), lambda p, g: adam(p, g, decay=0.01, decoupled=True)),
  "AdamW decay": (lambda p: nn.optim.AdamW(p, 0.1, weight_decay=0.4),
                  lambda p, g: adam(p, g, 0.1, decay=0.4, decoupled=True)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_is_pytorchs_formula(name: str) -> None:
  make, formula = OPTIMIZERS[name]
  parameter, other = (Tensor(x, device="PYTHON", requires_grad=True) for x in (X, Y))
  gradients = [RNG.normal(size=X.shape).astype(np.float32) for _ in range(3)]
  optimizer = make([parameter, other, parameter])
  assert len(optimizer.parameters) == 2
  for g in gradients:
    optimizer.zero_grad()
    assert parameter.grad is None
    (parameter * t(g)).sum().backward()
    optimizer.step()
  wanted = formula(X.astype(np.float64), [g.astype(np.float64) for g in gradients])
  np.testing.assert_allclose(parameter.numpy(), wanted, rtol=1e-4, atol=1e-5)
  assert (other.numpy() == Y).all(), "what has no gradient stays"


def test_a_gradient_comes_back_to_its_device() -> None:
  a = Tensor(X, device="LLVM", requires_grad=True)
  (a.to("PYTHON") * 3).sum().backward()
  assert a.grad is not None and a.grad.device == "LLVM" and (a.grad.numpy() == 3).all()
