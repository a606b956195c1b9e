"""Details of Tensor that other tests pass by: what is no number, what has no axis, derivatives at the ends."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.function.gradient import gradients
from tinyhw.ir.uop import UOp


class Reading:
  """Has an item, but is no array."""

  def item(self) -> float: return 3.0


@pytest.mark.parametrize("value", [Reading(), "1", None, {}, 1j], ids=lambda v: type(v).__name__)
def test_what_is_no_number_is_no_operand(value: Any) -> None:
  x = Tensor([1.0, 2.0], device="PYTHON")
  with pytest.raises(InvalidArgument, match=f"a {type(value).__name__} is not a number"): x + value


def test_a_running_sum_of_one_number_is_the_number() -> None:
  found = Tensor(2.5, device="PYTHON").cumsum()
  assert found.shape == () and found.item() == 2.5


def test_what_has_no_axis_has_no_length() -> None:
  with pytest.raises(TypeError, match=r"shape \(\) has no length"): len(Tensor(2.5, device="PYTHON"))
  assert len(Tensor.zeros(3, 2, device="PYTHON")) == 3


@pytest.mark.parametrize("divisor", [3.0, -3.0, 0.75, -0.75])
def test_a_remainder_grows_with_its_dividend_also_where_it_is_0(divisor: float) -> None:
  x = Tensor([6.0, 7.0, -6.0, 0.0, -0.5], device="PYTHON", requires_grad=True)
  (x % divisor).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [1.0] * 5
  y = Tensor([divisor] * 5, device="PYTHON", requires_grad=True)
  (x.detach() % y).sum().backward()
  assert y.grad is not None
  assert y.grad.tolist() == (-np.floor(x.numpy() / divisor)).tolist()


@pytest.mark.parametrize("smoothing", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("ignored", [None, 1])
def test_smoothed_labels(smoothing: float, ignored: int | None) -> None:
  """Of a share of each label every class has the same part."""
  logits, classes = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32), np.array([0, 3, 1, 1, 2])
  scores = logits - np.log(np.exp(logits).sum(1, keepdims=True))
  wanted = -((1 - smoothing) * scores[np.arange(5), classes] + smoothing * scores.mean(1))
  if ignored is not None: wanted = wanted[classes != ignored]
  found = Tensor(logits, device="PYTHON").sparse_categorical_crossentropy(
    Tensor(classes, device="PYTHON"), ignore_index=ignored, label_smoothing=smoothing)
  np.testing.assert_allclose(found.numpy(), wanted.mean(), rtol=1e-5)


def test_dropout_leaves_half_out_unless_told_otherwise() -> None:
  with Tensor.train(): found = Tensor.ones(4000, device="PYTHON").dropout().numpy()
  assert set(found.tolist()) == {0.0, 2.0} and 1800 < (found == 0).sum() < 2200


def test_what_has_no_derivative_is_named() -> None:
  x = Tensor([1.0, 2.0], device="PYTHON").uop
  root = UOp.sink(x * 2.0)
  with pytest.raises(Unsupported, match="derivative.*SINK"): gradients(root, root, [x])
