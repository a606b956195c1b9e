"""Where docs/accuracy.md says that torch means the same, it does: elementwise functions against torch, if installed."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tensor.test_values import ANY, check, pairs, whole
from tinyhw import Tensor

torch = pytest.importorskip("torch")
Array = np.ndarray[Any, np.dtype[Any]]
KINDS = [np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]


def operands(kind: Any) -> tuple[Array, Array]:
  return pairs(np.array(ANY, kind) if np.dtype(kind).kind == "f" else whole(kind))


def both(function: Callable[..., Any], *arrays: Array) -> tuple[Tensor, Array]:
  """What tinyhw and torch make of the same arrays."""
  return function(*map(Tensor, arrays)), function(*map(torch.from_numpy, arrays)).numpy()


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_operators(kind: Any) -> None:
  a, b = operands(kind)
  ops = [operator.add, operator.sub, operator.mul, operator.lt, operator.le, operator.eq, operator.ne]
  if np.dtype(kind).kind != "f":
    ops += [operator.and_, operator.or_, operator.xor]
    check(*both(operator.pow, a[b >= 0], b[b >= 0]), a[b >= 0], b[b >= 0])
  elif kind is np.float16: ops.append(operator.truediv)       # its quotients of // round at each step in torch
  else: ops += [operator.truediv, operator.floordiv]
  for op in ops: check(*both(op, a, b), a, b)
  if np.dtype(kind).kind != "f":
    c = b != 0
    for op in (operator.floordiv, operator.mod): check(*both(op, a[c], b[c]), a[c], b[c])
    for op in (operator.lshift, operator.rshift): check(*both(op, a, b), a, b)
    check(*both(operator.truediv, a, b), a, b)
  else:
    ours, theirs = both(operator.mod, a, b)
    same = ours.numpy()
    assert ((same == theirs) | np.isnan(same) & np.isnan(theirs)).all(), "equal, but for the sign of a zero"


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_functions(kind: Any) -> None:
  a, _ = operands(kind)
  for name in ("neg", "abs", "trunc", "floor", "ceil", "round", "square", "isnan", "isinf"):
    check(*both(lambda x, n=name: getattr(x, n)(), a), a)
  for other in (np.bool_, *KINDS):
    if np.dtype(kind).kind == "f" and np.dtype(other).kind in "iu": continue      # saturates here
    theirs = torch.from_numpy(a).to(getattr(torch, np.dtype(other).name)).numpy()
    check(Tensor(a).cast(np.dtype(other).name), theirs, a)


CURVES = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sigmoid", "sqrt",
          "rsqrt", "reciprocal"]


@pytest.mark.parametrize("name", CURVES)
def test_special_values_of_functions(name: str) -> None:
  a = np.array([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -2.5, 3.0], np.float32)
  ours, theirs = both(lambda x: getattr(x, name)(), a)
  found = ours.numpy()
  np.testing.assert_allclose(found, theirs, rtol=1e-6, atol=1e-7)
  zero = theirs == 0
  assert (np.signbit(found[zero]) == np.signbit(theirs[zero])).all()


def test_activations() -> None:
  x = np.array([0.0, 1.0, -1.0, 8.0, -8.0, 0.1, -30.0, 30.0, math.inf, math.nan], np.float32)
  f = torch.nn.functional
  for name, theirs in {"silu": f.silu, "softplus": f.softplus, "elu": f.elu, "softsign": f.softsign, "relu": f.relu,
                       "relu6": f.relu6, "leaky_relu": f.leaky_relu, "hardtanh": f.hardtanh,
                       "gelu": lambda v: f.gelu(v, approximate="tanh")}.items():
    wanted = theirs(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(getattr(Tensor(x), name)().numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_powers() -> None:
  a, b = pairs(np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, math.inf, -math.inf, math.nan]))
  ours, theirs = both(operator.pow, a, b)
  np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-15)
  x = np.array(ANY, np.float32)
  for exponent in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 1.7):
    ours, theirs = both(lambda v, e=exponent: v ** e, x)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)
  check(*both(lambda v: v ** 3, whole(np.int16)))


def test_promotion() -> None:
  kinds = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]
  for a in kinds:
    for b in kinds:
      ours, theirs = both(operator.add, np.ones(2, a), np.ones(2, b))
      assert ours.numpy().dtype == theirs.dtype, (a, b)
    for number in (True, 2, 2.5):
      ours, theirs = both(lambda v, n=number: v + n, np.ones(2, a))
      if a is not np.bool_ or number is True: assert ours.numpy().dtype == theirs.dtype, (a, number)
