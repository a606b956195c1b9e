"""Layers, optimizers and questions that are seldom used, against PyTorch's values (2.13)."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, Tensor, dtypes, nn
from tinyhw.core.errors import InvalidArgument, InvalidShape, InvalidType, Unsupported
from tinyhw.nn import functional as F

LOSSES = {
  "few": ({"lr": 0.5, "max_iter": 4}, [5.830076517, 5.7141205492, 4.8239131317, 4.9898423203, 4.6887615926,
                                       4.4352464952, 4.3493524147, 3.9196044873]),
  "a short memory": ({"history_size": 2, "max_iter": 5}, [
    5.830076517, 5.6196828131, 4.6127711608, 4.6978151189, 6.8599022565, 5.9841635749, 5.9648512485, 6.5356284959,
    6.5347558186, 6.5334770313])}


@pytest.mark.parametrize("name", LOSSES)
def test_lbfgs_goes_where_torchs_goes(name: str) -> None:
  options, wanted = LOSSES[name]
  w = Tensor(np.array([[1.0, -2.0], [0.5, 3.0]]), requires_grad=True)
  b = Tensor(np.array([0.25, -0.5]), requires_grad=True)
  x = Tensor(np.array([[1.0, 2.0], [-1.0, 0.5], [0.25, -0.75]]))
  made: Any = nn.optim.LBFGS
  optimizer, losses = made([w, b], **options), []
  def closure() -> Tensor:
    optimizer.zero_grad()
    loss = ((x @ w.T + b).tanh() - 0.3).square().sum()
    loss.backward()
    losses.append(loss.item())
    return loss
  for _ in range(2): optimizer.step(closure)
  np.testing.assert_allclose(losses, wanted, atol=2e-8)
  with pytest.raises(InvalidArgument, match="give a function"): optimizer.step(None)
  with pytest.raises(Unsupported, match="strong_wolfe"): made([w], line_search_fn="strong_wolfe")


def test_dropout_of_selus_keeps_mean_and_variance() -> None:
  Tensor.manual_seed(3)
  x = Tensor.randn(40000)
  found = F.alpha_dropout(x, 0.3, training=True).numpy()
  assert abs(found.mean()) < 0.03 and abs(found.var() - 1) < 0.03
  scale = 1 / math.sqrt((1.7580993408473766 ** 2 * 0.3 + 1) * 0.7)
  least = -1.7580993408473766 * scale * 0.7
  assert abs(np.isclose(found, least, atol=1e-5).mean() - 0.3) < 0.02
  channels = F.feature_alpha_dropout(Tensor.ones(20, 30, 2, 2), 0.5, training=True).numpy().reshape(600, 4)
  assert (channels == channels[:, :1]).all() and len(np.unique(channels)) == 2
  assert nn.AlphaDropout(0.5)(x).tolist() == x.tolist()
  with Tensor.train(): slopes = -nn.RReLU(0.25, 0.5)(-Tensor.ones(4000)).numpy()
  assert 0.25 <= slopes.min() < 0.26 and 0.49 < slopes.max() <= 0.5


def test_layers_that_learn_their_sizes() -> None:
  image = Tensor.randn(2, 3, 6, 5)
  lazy: Any = nn.LazyConv2d  # type: ignore[attr-defined]  # made by a table
  layer = lazy(4, 3, padding=1)
  with pytest.raises(InvalidArgument, match="LazyConv2d has no weights before its first call"): nn.get_parameters(layer)
  net = nn.Sequential(layer, nn.ReLU()).eval().train()
  assert "LazyConv2d(4, 3, padding=1)" in repr(net) and layer(image).shape == (2, 4, 6, 5)
  assert type(layer) is nn.Conv2d and sorted(nn.get_state_dict(layer)) == ["bias", "weight"]
  linear: Any = nn.LazyLinear  # type: ignore[attr-defined]
  assert linear(7, bias=False)(image).shape == (2, 3, 6, 7)
  assert nn.SyncBatchNorm.convert_sync_batchnorm(layer) is layer


def test_softmax_of_many_classes_is_a_distribution() -> None:
  made = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True)
  x, classes = Tensor.randn(6, 8), Tensor([0, 5, 19, 3, 12, 9])
  logs = made.log_prob(x)
  np.testing.assert_allclose(np.exp(logs.numpy()).sum(1), 1, rtol=1e-5)
  found = made(x, classes)
  np.testing.assert_allclose(found.output.numpy(), logs.numpy()[np.arange(6), classes.numpy()], rtol=1e-6)
  assert found.loss.item() == pytest.approx(-found.output.numpy().mean(), rel=1e-6)
  assert {k: v.shape for k, v in nn.get_state_dict(made).items()} == {
    "head.weight": (6, 8), "head.bias": (6,), "tail.0.0.weight": (4, 8), "tail.0.1.weight": (6, 4),
    "tail.1.0.weight": (2, 8), "tail.1.1.weight": (10, 2)}
  with pytest.raises(InvalidArgument, match="numbers that grow"): nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4])


def test_what_is_asked_of_a_tensor() -> None:
  x = Tensor.ones(2, 3, 4)
  assert x.stride() == (12, 4, 1) and x.stride(1) == 4 and x.is_contiguous() and x.storage_offset() == 0
  assert x.type() == "dtypes.float32" and x.type("int8").dtype is dtypes.int8 and x.get_device() == -1
  assert x.is_signed() and not Tensor([1], dtype="uint8").is_signed() and not x.is_complex()
  assert x.is_same_size(x + 1) and Tensor(2.0).is_nonzero() and x.pin_memory() is x
  learned = Tensor([1.0], requires_grad=True) * 2
  assert learned.detach_() is learned and learned.is_leaf and not learned.requires_grad and learned.item() == 2
  wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (x.data_ptr, InvalidType, "no address"), (x.eigvals, Unsupported, "eigenvalues are complex"),
    (lambda: x.as_strided((3, 9), (9, 1)), InvalidShape, "element 26"),
    (lambda: x.index_reduce(0, Tensor([0]), x[:1], "sum"), InvalidArgument, '"prod"'),
    (lambda: Tensor.ones(2, 3, 4).fill_diagonal_(1), InvalidShape, "matrices, and cubes"),
    (lambda: x[..., :2].hfft(norm="loud"), InvalidArgument, "'ortho'"),
    (lambda: F.fractional_max_pool2d(x, 2), InvalidArgument, "give one of them"),
    (lambda: x.mvlgamma(0), InvalidArgument, "at least 1"),
    (lambda: F.mse_loss(x, x, weight=x[0]), InvalidShape, "weights")]
  for call, error, message in wrong:
    with pytest.raises(error, match=message): call()


def test_random_numbers_in_place() -> None:
  Tensor.manual_seed(7)
  tries = Tensor.empty(20000).geometric_(0.3).numpy()
  assert tries.min() == 1 and abs(tries.mean() - 1 / 0.3) < 0.1
  logs = np.log(Tensor.empty(20000).log_normal_(0.5, 0.25).numpy())
  assert abs(logs.mean() - 0.5) < 0.01 and abs(logs.std() - 0.25) < 0.01
  quarters = np.percentile(Tensor.empty(20001).cauchy_(2.0, 0.5).numpy(), [25, 50, 75])
  np.testing.assert_allclose(quarters, [1.5, 2, 2.5], atol=0.05)
  assert set(Tensor.empty(200, dtype="int32").random_(-2, 3).tolist()) == {-2, -1, 0, 1, 2}
  assert set(Tensor.empty(200).random_(2).tolist()) == {0, 1}
  with pytest.raises(InvalidArgument, match="expects p"): Tensor.empty(2).geometric_(1.5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_the_steps_of_a_sequence_are_the_same_kernels(kind: str) -> None:
  layer = getattr(nn, kind)(3, 4)
  def compiled(steps: int) -> int:
    layer(Tensor.ones(steps, 2, 3, buffer=True))[0].realize()
    return len(Device[Device.DEFAULT].kernels)
  first = compiled(9)
  assert compiled(15) - first <= 6       # what the input brings, and the steps beside each other
