"""Layers and losses without weights: PyTorch's order of parameters, its defaults, against NumPy."""
from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, nn
from tinyhw.core.errors import InvalidArgument
from tinyhw.nn.functions import LAYERS

Array = np.ndarray[Any, np.dtype[Any]]
X = np.linspace(-2.5, 2.5, 24, dtype=np.float32).reshape(2, 3, 4)
PLANE = np.random.default_rng(2).normal(size=(1, 2, 4, 4)).astype(np.float32)
TARGET = np.array([[0, 2, 1, -100], [1, 1, 0, 2]])


def softmax(x: Array, axis: int) -> Array:
  e = np.exp(x - x.max(axis, keepdims=True))
  result: Array = e / e.sum(axis, keepdims=True)
  return result


def windows(x: Array, size: int) -> Array:
  n, c, h, w = x.shape
  return x.reshape(n, c, h // size, size, w // size, size).swapaxes(3, 4).reshape(n, c, h // size, w // size, -1)


def erf(x: Array) -> Array: return np.vectorize(math.erf)(x)


CASES: dict[str, tuple[Any, Array, Callable[[Array], Any]]] = {
  "LeakyReLU(0.25)": (nn.LeakyReLU(0.25), X, lambda x: np.where(x < 0, x / 4, x)),
  "GELU()": (nn.GELU(), X, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
  "Hardtanh(-1, 2)": (nn.Hardtanh(-1, 2), X, lambda x: np.clip(x, -1, 2)),
  "Hardsigmoid()": (nn.Hardsigmoid(), X, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
  "Threshold(0.5, 7)": (nn.Threshold(0.5, 7), X, lambda x: np.where(x > 0.5, x, 7)),
  "Softplus(2)": (nn.Softplus(2), X, lambda x: np.log1p(np.exp(2 * x)) / 2),
  "Softmax(dim=1)": (nn.Softmax(dim=1), X, lambda x: softmax(x, 1)),
  "LogSoftmax(2)": (nn.LogSoftmax(2), X, lambda x: np.log(softmax(x, 2))),
  "Flatten()": (nn.Flatten(), X, lambda x: x.reshape(2, 12)),
  "Flatten(0, 1)": (nn.Flatten(0, 1), X, lambda x: x.reshape(6, 4)),
  "Unflatten(2, (2, 2))": (nn.Unflatten(2, (2, 2)), X, lambda x: x.reshape(2, 3, 2, 2)),
  "Identity(3, a=1)": (nn.Identity(3, a=1), X, lambda x: x),
  "MaxPool2d(2)": (nn.MaxPool2d(2), PLANE, lambda x: windows(x, 2).max(-1)),
  "MaxPool2d indices": (lambda x: nn.MaxPool2d(4, 4, 0, 1, True)(x)[1], PLANE, lambda x: windows(x, 4).argmax(-1)),
  "AvgPool2d(2, 2, 0, False, True, 3)": (nn.AvgPool2d(2, 2, 0, False, True, 3), PLANE,
                                         lambda x: windows(x, 2).sum(-1) / 3),
  "AvgPool1d(4)": (nn.AvgPool1d(4), X, lambda x: x.mean(-1, keepdims=True)),
  "AdaptiveAvgPool2d(1)": (nn.AdaptiveAvgPool2d(1), PLANE, lambda x: x.mean((2, 3), keepdims=True)),
  "LPPool2d(2, 4)": (nn.LPPool2d(2, 4), PLANE, lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
  "Upsample(scale_factor=2)": (nn.Upsample(scale_factor=2), PLANE, lambda x: x.repeat(2, 2).repeat(2, 3)),
  "Softmax2d()": (nn.Softmax2d(), PLANE, lambda x: softmax(x, 1)),
  "UpsamplingNearest2d": (nn.UpsamplingNearest2d(scale_factor=2), PLANE, lambda x: x.repeat(2, 2).repeat(2, 3)),
  "Fold": (nn.Fold((2, 2), 2), PLANE[0, :, :, :1].reshape(1, 4, 2)[:, :, :1], lambda x: x.reshape(1, 1, 2, 2)),
  "InstanceNorm2d(2)": (nn.InstanceNorm2d(2), PLANE, lambda x: (x - x.mean((2, 3), keepdims=True)) / np.sqrt(
    x.var((2, 3), keepdims=True) + 1e-5)),
  "TripletMarginWithDistanceLoss": (
    lambda x: nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))(x, x + 1, x - 2),
    X, lambda x: np.zeros(())),
  "PixelUnshuffle(4)": (nn.PixelUnshuffle(4), PLANE, lambda x: x.reshape(1, 32, 1, 1)),
  "ZeroPad2d(1)": (nn.ZeroPad2d(1), PLANE, lambda x: np.pad(x, [(0, 0)] * 2 + [(1, 1)] * 2)),
  "ConstantPad2d((1, 0, 2, 1), 3)": (nn.ConstantPad2d((1, 0, 2, 1), 3), PLANE,
                                     lambda x: np.pad(x, [(0, 0)] * 2 + [(2, 1), (1, 0)], constant_values=3)),
  "ReflectionPad1d(2)": (nn.ReflectionPad1d(2), X, lambda x: np.pad(x, [(0, 0)] * 2 + [(2, 2)], mode="reflect")),
  "ReplicationPad2d(1)": (nn.ReplicationPad2d(1), PLANE, lambda x: np.pad(x, [(0, 0)] * 2 + [(1, 1)] * 2, mode="edge")),
  "CircularPad1d(1)": (nn.CircularPad1d(1), X, lambda x: np.pad(x, [(0, 0)] * 2 + [(1, 1)], mode="wrap")),
  "CrossEntropyLoss()": (lambda x: nn.CrossEntropyLoss()(x, Tensor(TARGET)), X, lambda x: np.mean(
    [-np.log(softmax(x, 1)[b, c, i]) for b, row in enumerate(TARGET) for i, c in enumerate(row) if c >= 0])),
  "MSELoss(reduction='sum')": (lambda x: nn.MSELoss(reduction="sum")(x, x * 3), X, lambda x: (4 * x * x).sum()),
  "HuberLoss('none', 0.5)": (lambda x: nn.HuberLoss("none", 0.5)(x, x * 2), X,
                             lambda x: np.where(np.abs(x) < 0.5, x * x / 2, 0.5 * (np.abs(x) - 0.25))),
  "MarginRankingLoss(0.5)": (lambda x: nn.MarginRankingLoss(0.5)(x, x * 2, Tensor.ones(2, 3, 4)), X,
                             lambda x: np.maximum(0, x + 0.5).mean()),
  "CosineSimilarity(2)": (lambda x: nn.CosineSimilarity(2)(x, x * -3), X, lambda x: -np.ones((2, 3))),
  "Sequential": (nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Softmax(1)), X,
                 lambda x: softmax(np.maximum(x, 0).reshape(2, 12), 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_its_function(name: str) -> None:
  layer, data, wanted = CASES[name]
  np.testing.assert_allclose(layer(Tensor(data)).numpy(), wanted(data.astype(np.float64)), rtol=2e-5, atol=2e-6)


def test_layers_are_classes_of_the_room() -> None:
  x = Tensor([-1.0, 2.0])
  assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0.0, 2.0]
  again = pickle.loads(pickle.dumps(nn.LeakyReLU(0.5)))
  assert repr(again) == "LeakyReLU(negative_slope=0.5)" and isinstance(again, nn.LeakyReLU)
  assert nn.get_parameters([layer for layer in (nn.ReLU(), nn.ZeroPad2d(1), nn.Identity())]) == []
  for cls in LAYERS.values(): assert cls.__doc__
  with Tensor.train(): assert set(nn.Dropout2d(0.5)(Tensor.ones(4, 8, 2, 2)).numpy().ravel()) <= {0.0, 2.0}


def test_what_a_layer_does_not_take() -> None:
  with pytest.raises(TypeError, match="takes 1 arguments, not 2"): nn.ReLU(True, False)
  with pytest.raises(TypeError, match="unexpected keyword argument 'slope'"): nn.LeakyReLU(slope=1)
  with pytest.raises(TypeError, match="got 'alpha' twice"): nn.ELU(1.0, alpha=2.0)
  with pytest.raises(InvalidArgument, match='MSELoss with size_average; use reduction="mean"'): nn.MSELoss(False)
  with pytest.raises(InvalidArgument, match="ZeroPad2d with .*it takes 4 numbers, or one"): nn.ZeroPad2d((1, 2))
  with pytest.raises(AttributeError, match="no attribute 'Nothing'"): nn.Nothing()
