"""`nn.functional` and `nn.init` as PyTorch's users call them: parameters by their places and names."""
from __future__ import annotations

import inspect
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, nn
from tinyhw.core.errors import InvalidArgument
from tinyhw.function.spelling import IN_PLACE, _other_names
from tinyhw.nn import functional as F
from tinyhw.nn import init

FILES = Path(__file__).parent / "files"
sys.path.insert(0, str(FILES))
import calls  # noqa: E402

KEPT = np.load(FILES / "functional.npz")


@pytest.mark.parametrize("number", range(len(calls.CALLS)), ids=[f"{i} {c[0]}" for i, c in enumerate(calls.CALLS)])
def test_a_call_is_torchs(number: int) -> None:
  name, args, kwargs = calls.CALLS[number]
  given = [Tensor(a, device="PYTHON") if isinstance(a, np.ndarray) else a for a in args]
  kwargs = {k: Tensor(a, device="PYTHON") if isinstance(a, np.ndarray) else a for k, a in kwargs.items()}
  found: Any = getattr(F, name)(*given, **kwargs)
  for i, f in enumerate(found if isinstance(found, tuple) else (found,)):
    want = KEPT[f"{number} {i}"]
    assert f.shape == want.shape
    np.testing.assert_allclose(f.numpy(), want, rtol=2e-5, atol=2e-6)


def test_rows_are_calls_of_tensors_functions() -> None:
  """Each parameter is one of the function's own, by any spelling; what `help` shows are PyTorch's."""
  for name, function in F.FUNCTIONS.items():
    method = getattr(Tensor, name)
    known = {*inspect.signature(inspect.unwrap(method)).parameters, *_other_names(method), "size_average", "reduce"}
    if name in IN_PLACE: known.add("inplace")
    assert set(list(inspect.signature(function).parameters)[1:]) <= known | {"inplace"}, name
  assert str(inspect.signature(F.relu6)) == "(input, inplace=False)" and F.conv2d.__doc__


def test_functions_by_place_and_name() -> None:
  x = Tensor([[1.0, -2.0]])
  assert F.linear(x, Tensor([[1.0, 1.0], [0.0, 2.0], [3.0, 0.0]]), Tensor([0.0, 0.0, 1.0])).tolist() == [[-1, -4, 4]]
  assert F.softmax(x, dim=0).tolist() == [[1.0, 1.0]] and F.relu(x, inplace=True) is x and x.tolist() == [[1.0, 0.0]]
  assert F.unfold(Tensor.arange(6).reshape(1, 1, 2, 3), 2).tolist() == [[[0, 1], [1, 2], [3, 4], [4, 5]]]
  assert F.mse_loss(Tensor([1.0]), Tensor([3.0]), reduction="sum").item() == 4.0
  assert set(F.dropout(Tensor.ones(50)).tolist()) == {0.0, 2.0} and F.dropout(x, training=False).tolist() == x.tolist()
  table = Tensor([[3.0, 4.0], [6.0, 8.0]])
  assert F.embedding(Tensor([0]), table, max_norm=1.0).numpy() == pytest.approx(np.array([[0.6, 0.8]]))
  assert table[1].tolist() == [6.0, 8.0]
  with pytest.raises(InvalidArgument, match="mse_loss with size_average"): F.mse_loss(x, x, True)
  with pytest.raises(TypeError, match="conv2d.. misses 'weight'"): F.conv2d(x)
  with pytest.raises(TypeError, match="unexpected keyword argument 'slope'"): F.leaky_relu(x, slope=1)
  with pytest.raises(AttributeError, match="'nothing'"): F.nothing(x)


def test_first_values() -> None:
  w = nn.Linear(40, 50).weight
  assert init.uniform_(w, 2, 3) is w and 2 <= w.numpy().min() < 2.1 < 2.9 < w.numpy().max() < 3 and w.requires_grad
  assert abs(init.normal_(w, 5, 0.1).numpy().mean() - 5) < 0.02
  assert abs(init.trunc_normal_(w, std=4.0, a=-1, b=1).numpy()).max() <= 1
  for name, bound in (("xavier_uniform_", math.sqrt(6 / 90)), ("kaiming_uniform_", math.sqrt(6 / 40))):
    found = abs(getattr(init, name)(w).numpy()).max()
    assert 0.97 * bound < found <= bound * 1.0001
  for name, deviation, told in (("xavier_normal_", math.sqrt(2 / 90) * 3, {"gain": 3}),
                                ("kaiming_normal_", math.sqrt(2 / 50), {"mode": "fan_out", "nonlinearity": "relu"})):
    assert abs(getattr(init, name)(w, **told).numpy().std() / deviation - 1) < 0.1
  assert init.constant_(w, 2.5).tolist()[3][3] == 2.5 and init.zeros_(w).numpy().sum() == 0
  assert np.array_equal(init.eye_(w).numpy(), np.eye(50, 40)) and init.ones_(w).numpy().all()
  zeros = (init.sparse_(w, 0.25).numpy() == 0).sum(0)
  assert (zeros == 13).all()
  for shape in ((3, 2), (2, 1, 3)):
    q = init.orthogonal_(Tensor.zeros(*shape), gain=2.0).numpy().reshape(shape[0], -1)
    small = q @ q.T if q.shape[0] < q.shape[1] else q.T @ q
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-5)
  x = Tensor.arange(20).reshape(1, 4, 5).float()
  kernel = init.dirac_(Tensor.zeros(4, 2, 3), groups=2)
  assert x.conv1d(kernel, padding=1, groups=2).tolist() == x.tolist()


def test_gains() -> None:
  assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("leaky_relu", 1) == 1.0
  assert init.calculate_gain("relu") == init.calculate_gain("leaky_relu", 0)
  for call, why in ((lambda: init.calculate_gain("sine"), "nonlinearity 'sine'"),
                    (lambda: init.xavier_uniform_(Tensor.zeros(3)), "two axes or more"),
                    (lambda: init.eye_(Tensor.zeros(3)), "it is for matrices"),
                    (lambda: init.kaiming_normal_(Tensor.zeros(3, 3), mode="fan"), "neither")):
    with pytest.raises(InvalidArgument, match=why): call()
