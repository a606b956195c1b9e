"""Convolution and pooling against NumPy's sliding windows."""
from __future__ import annotations

import numpy as np
import pytest

from tests.strength import seed
from tests.tensor.witness import value
from tinyhw import Tensor
from tinyhw.core.errors import InvalidArgument

RNG = np.random.default_rng(seed(4))


def reference(x: np.ndarray, w: np.ndarray, groups: int, stride: int, padding: int) -> np.ndarray:
  x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
  cut = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
  parts = zip(np.split(cut, groups, 1), np.split(w, groups, 0))
  return np.concatenate([np.einsum("bchwij,ocij->bohw", a, b) for a, b in parts], 1)


@pytest.mark.parametrize(("groups", "stride", "padding"), [(1, 1, 0), (2, 2, 1), (1, 3, 2)])
def test_convolution(groups: int, stride: int, padding: int, device: str) -> None:
  x, w = RNG.integers(-4, 5, (2, 4, 9, 7)).astype(np.float32), RNG.integers(-4, 5, (6, 4 // groups, 3,
    2)).astype(np.float32)
  found = Tensor(x, device=device).conv2d(Tensor(w, device=device), Tensor([1.0] * 6, device=device), groups=groups,
                                          stride=stride, padding=padding)
  np.testing.assert_array_equal(found.numpy(), reference(x, w, groups, stride, padding) + 1)


@pytest.mark.parametrize(("kernel", "stride"), [(2, None), (3, 1), (2, 3)])
def test_pooling(kernel: int, stride: int | None, device: str) -> None:
  x = RNG.integers(-9, 10, (2, 3, 8, 11)).astype(np.float32)
  step = stride or kernel
  cut = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))[:, :, ::step, ::step]
  np.testing.assert_array_equal(Tensor(x, device=device).max_pool2d(kernel, stride).numpy(), cut.max((-2, -1)))
  np.testing.assert_allclose(Tensor(x, device=device).avg_pool2d(kernel, stride).numpy(), cut.mean((-2, -1)),
                             rtol=1e-6, atol=1e-6)


def test_the_derivative_of_a_convolution() -> None:
  x, w = (Tensor(RNG.normal(size=s), requires_grad=True) for s in ((1, 2, 5, 4), (3, 2, 2, 3)))
  data = w.numpy()
  def loss(weight: Tensor) -> Tensor: return (x.conv2d(weight, stride=2, padding=1).max_pool2d((2, 1)) ** 2).sum()
  loss(w).backward()
  assert w.grad is not None and x.grad is not None and x.grad.shape == x.shape
  for place in [(0, 0, 0, 0), (1, 1, 1, 2), (2, 0, 0, 1)]:
    ends = []
    for sign in (1, -1):
      moved = data.copy()
      moved[place] += sign * 1e-6
      ends.append(float(value(loss(Tensor(moved)).uop)))
    np.testing.assert_allclose(w.grad.numpy()[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-6)


def test_mistakes() -> None:
  with pytest.raises(InvalidArgument, match="conv2d of shape"): Tensor.ones(1, 2, 5, 5).conv2d(Tensor.ones(3, 3, 2, 2))
  with pytest.raises(InvalidArgument, match="windows of"): Tensor.ones(1, 1, 2, 2).max_pool2d(3)
