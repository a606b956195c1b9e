"""Copies of tensors by Python's protocols (copy, deepcopy, pickle): values apart, leaves of their own."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, Variable, dtypes, nn
from tinyhw.core.errors import InvalidArgument

WAYS: dict[str, Callable[[Any], Any]] = {
  "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}
MODELS = {name: WAYS[name] for name in ("deepcopy", "pickle")}


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_leaf_learns_for_itself(way: str) -> None:
  x = Tensor([1.0, 2.0], requires_grad=True)
  y = WAYS[way](x)
  assert y.requires_grad and y.is_leaf
  (x * y * 3).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [3, 6] and y.grad.tolist() == [3, 6] and x.grad is not y.grad
  y.assign(Tensor([5.0, 5.0]))
  assert x.tolist() == [1, 2]
  x.assign(Tensor([7.0, 8.0]))
  assert y.tolist() == [5, 5]


def test_a_copy_has_the_gradient_and_the_history() -> None:
  x = Tensor([1.0, 2.0], requires_grad=True)
  (x * x).sum().backward()
  y = copy.copy(x)
  assert y.grad is not None and y.grad.tolist() == [2, 4]
  (y * 10).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [2, 4] and y.grad.tolist() == [12, 14]
  z = copy.deepcopy(x * 5)
  z.sum().backward()
  assert not z.is_leaf and x.grad.tolist() == [7, 9]
  back = pickle.loads(pickle.dumps(x * 5))
  assert back.tolist() == [5, 10] and back.is_leaf and not back.requires_grad


@pytest.mark.parametrize("way", MODELS)
def test_a_copied_model_is_trained_alone(way: str) -> None:
  model = nn.Linear(3, 2)
  tied = {"a": model, "b": [model]}
  other = MODELS[way](tied)
  assert other["a"] is other["b"][0] and other["a"].weight is not model.weight
  before = model.weight.numpy()
  optimizer = nn.optim.SGD(nn.get_parameters(other), lr=0.5)
  optimizer.zero_grad()
  other["a"](Tensor.ones(1, 3)).sum().backward()
  optimizer.step()
  assert model.weight.grad is None
  np.testing.assert_array_equal(model.weight.numpy(), before)
  np.testing.assert_allclose(other["a"].weight.numpy(), before - 0.5, atol=1e-6)


@pytest.mark.parametrize("dtype", [d.name for d in dtypes.all() if d is not dtypes.void and d is not dtypes.index])
def test_every_dtype_and_shape_is_pickled(dtype: str) -> None:
  for shape in ((), (0,), (2, 3), (2, 0, 3)):
    x = Tensor.arange(int(np.prod(shape))).cast(dtype).reshape(shape)
    y = WAYS["pickle"](x)
    assert y.shape == shape and y.dtype is x.dtype and y.device == x.device
    assert bytes(y.data()) == bytes(x.data())


def test_a_group_of_devices_is_kept() -> None:
  devices = ("LLVM", "LLVM:1")
  for axis in (None, 0, 1):
    x = Tensor.arange(8.0).reshape(2, 4).shard(devices, axis).realize()
    for way in WAYS.values():
      y = way(x)
      assert y.devices == devices and y.shard_axis == axis and y.tolist() == x.tolist()


def test_a_size_that_launches_decide_is_the_number_that_it_was() -> None:
  n = Variable("copied", 1, 10)
  x = Tensor.ones(n.bind(4), 2)
  assert WAYS["pickle"](x).shape == (4, 2) and copy.deepcopy(x).shape == (n, 2)


def test_a_copy_within_a_recording() -> None:
  @TinyJit
  def step(x: Tensor) -> tuple[Tensor, Tensor]:
    kept = copy.deepcopy(x)
    return kept + 1, x * 2
  for number in range(1, 6):
    more, twice = step(Tensor([number]))
    assert (more.item(), twice.item()) == (number + 1, number * 2)


def test_a_pickle_names_a_device_that_is_not_there() -> None:
  raw = pickle.dumps(Tensor([1]))
  with pytest.raises(InvalidArgument, match="LLUM"): pickle.loads(raw.replace(b"LLVM", b"LLUM"))
