"""Functions at the edges of what they take: options left out and given, sizes of 0 and 1, NaN, axes before and behind;
and what they refuse. Against NumPy, on PYTHON."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, dtypes
from tinyhw.core.errors import InvalidArgument

RNG = np.random.default_rng(17)
X = RNG.normal(size=(3, 4)).astype(np.float32)
CUBE = RNG.normal(size=(2, 3, 4)).astype(np.float32)
NAN = np.array([[1, np.nan, 3, 0], [2, 5, 5, np.nan]], np.float32)


def t(x: Any) -> Tensor: return Tensor(x, device="PYTHON")


def same(found: Any, wanted: Any, rtol: float = 2e-6) -> None:
  """A tensor's shape and values."""
  wanted = np.asarray(wanted)
  assert found.shape == wanted.shape
  np.testing.assert_allclose(found.numpy(), wanted, rtol=rtol, atol=1e-6)


# *** bits, padding, repetition ***


@pytest.mark.parametrize("mine, theirs", [
  (a, b) for a, b in itertools.permutations(("uint8", "int16", "float16", "float32", "uint32", "int64", "float64"), 2)
  if np.dtype(a).itemsize != np.dtype(b).itemsize])
def test_bits_read_in_another_size(mine: str, theirs: str) -> None:
  x = np.arange(2 * 16, dtype=np.uint8).reshape(2, 16) * 7 % 113
  found = t(x.view(mine)).bitcast(dtypes.named(theirs))
  assert found.shape == (2, 16 // np.dtype(theirs).itemsize)
  np.testing.assert_array_equal(found.numpy(), x.view(theirs))


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", range(3))
def test_padding_by_own_elements(mode: str, axis: int) -> None:
  most = {"reflect": CUBE.shape[axis] - 1, "circular": CUBE.shape[axis], "replicate": 5}[mode]
  for before, after in ((0, most), (most, 0), (1, most), (0, 0)):
    wide = [(before, after) if i == axis else (0, 0) for i in range(3)]
    same(t(CUBE).pad(wide, mode=mode), np.pad(CUBE, wide, mode=MODES[mode]))  # type: ignore[call-overload]
  if mode != "replicate":
    wide = [(most + 1, 0) if i == axis else (0, 0) for i in range(3)]
    with pytest.raises(InvalidArgument, match=f"at most {most} on a side"): t(CUBE).pad(wide, mode=mode)


@pytest.mark.parametrize("times", [(0, 2), (2, 0), (1, 1), (2, 1, 3), (3, 1, 2, 1)])
def test_repetition(times: tuple[int, ...]) -> None:
  same(t(X).repeat(*times), np.tile(X, times))
  same(t(X).tile(times[-1]), np.tile(X, times[-1]))


@pytest.mark.parametrize("size, step", [(0, 1), (1, 1), (1, 3), (2, 2), (4, 1), (3, 5)])
def test_windows_along_an_axis(size: int, step: int) -> None:
  wanted = np.lib.stride_tricks.sliding_window_view(X, size, 1)[:, ::step]
  for axis in (1, -1): same(t(X).unfold(axis, size, step), wanted)
  same(t(np.float32(3)).unfold(0, 1, 1), [3])


@pytest.mark.parametrize("formula, of, sizes", [
  ("... a b -> ... b a", CUBE, {}), ("... a b -> ... b a", X, {}), ("a ... -> ... a", CUBE, {}),
  ("(a b) ... -> a b ...", X, {"a": 3}), ("a b ... -> (a ...) b", X, {}), ("... -> 1 ...", X, {})])
def test_axes_that_are_not_named(formula: str, of: Any, sizes: dict[str, int]) -> None:
  wanted = {"... a b -> ... b a": lambda: of.swapaxes(-1, -2), "a ... -> ... a": lambda: np.moveaxis(of, 0, -1),
            "(a b) ... -> a b ...": lambda: of.reshape(3, 1, 4), "a b ... -> (a ...) b": lambda: of,
            "... -> 1 ...": lambda: of[None]}[formula]
  same(t(of).rearrange(formula, **sizes), wanted())


# *** products ***


@pytest.mark.parametrize("count", [0, 1, 2])
def test_products_along_a_number_of_axes(count: int) -> None:
  a, b = RNG.normal(size=(2, 3, 4)).astype(np.float32), RNG.normal(size=(3, 4, 2)[2 - count:] + (5,)).astype(np.float32)
  if count == 1: b = RNG.normal(size=(4, 2)).astype(np.float32)
  same(t(a).tensordot(t(b), count), np.tensordot(a, b, count), 1e-5)


def test_products_along_named_axes() -> None:
  b = RNG.normal(size=(4, 5, 2)).astype(np.float32)
  same(t(CUBE).tensordot(t(b), ((0, -1), (2, 0))), np.tensordot(CUBE, b, ((0, 2), (2, 0))), 1e-5)


@pytest.mark.parametrize("call, told", [
  (lambda: t(CUBE).bmm(t(np.ones((3, 4, 2), np.float32))), r"bmm of shapes \(2, 3, 4\) and \(3, 4, 2\)"),
  (lambda: t(CUBE).bmm(t(X.T)), "bmm of shapes .*it takes 3 and 3 axes"),
  (lambda: t(X).mm(t(X[0])), "it takes 2 and 2 axes"), (lambda: t(X).mv(t(X.T)), "it takes 2 and 1 axes"),
  (lambda: t(X).tensordot(t(X), 1), r"tensordot of shapes \(3, 4\) and \(3, 4\) along axes 1"),
  (lambda: t(X).repeat(2), r"\(2,\) gives fewer repeats than shape \(3, 4\) has axes"),
  (lambda: t(X).repeat(2, -1), "a negative number of times"),
  (lambda: t(X).unfold(1, 5, 1), "windows of 5 every 1 along axis 1"), (lambda: t(X).unfold(1, -1, 1), "windows of -1"),
  (lambda: t(X).unfold(1, 2, 0), "windows of 2 every 0"), (lambda: t(X).diagonal(0, 1, -1), "they are one"),
  (lambda: t(CUBE).diag(), "diag of shape"), (lambda: t(X).rearrange("a b"), "needs one '->'"),
  (lambda: t(X).rearrange("a -> a"), "1 axes in"), (lambda: t(X).rearrange("a b -> a"), "the same axes, each once"),
  (lambda: t(X).rearrange("a a -> a a"), "the same axes, each once"),
  (lambda: t(X).rearrange("a b -> b a", c=2), "c: no axis of"),
  (lambda: t(X).rearrange("a (b c) -> a b c"), "has 4 elements"),
  (lambda: t(X).rearrange("a (b c) -> a b c", c=3), "has 4 elements"),
  (lambda: t(X).rearrange("a (b -> a b"), "stays open"), (lambda: t(X).rearrange("a+b -> a b"), "in the formula"),
  (lambda: t(X).conv2d(t(X)), "by weights of shape"),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 3, 3), np.float32)), padding="full"), 'neither "same" nor "valid"'),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 3, 3), np.float32)), padding="same", stride=2), "needs a stride of 1"),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 3, 3), np.float32)), dilation=2),
   r"a kernel of \(3,\) is larger than the padded"),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 3, 5), np.float32))), r"a kernel of \(5,\) is larger than the padded"),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 3, 3), np.float32)), t(X[0])), "with a bias of shape"),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 3, 3), np.float32)), stride=0), "with stride 0"),
  (lambda: t(CUBE).conv1d(t(np.ones((2, 2, 3), np.float32))), "in 1 groups"),
  (lambda: t(CUBE[:, :, :1]).instance_norm(), "more than one value is needed"),
  (lambda: t(X).instance_norm(), "instance_norm of"),
  (lambda: t(X[0]).batch_norm(), "it needs"), (lambda: t(X).batch_norm(), "without training needs a running mean"),
  (lambda: t(X[:1]).batch_norm(training=True), "more than one value a channel"),
  (lambda: t(CUBE).group_norm(2), "in 2 groups"), (lambda: t(CUBE).group_norm(0), "in 0 groups"),
  (lambda: t(X).local_response_norm(2), "it needs"), (lambda: t(X).layer_norm(3), "its last axes are others"),
  (lambda: t(X).rms_norm((2, 3, 4)), "its last axes are others"), (lambda: t(X).softshrink(-0.5), "cannot be negative"),
  (lambda: t(X).quantile(0.5, interpolation="cubic"), "is none of linear, lower"),
  (lambda: t(X[:0]).quantile(0.5), "over no elements"), (lambda: t(X[:0]).median(), "over no elements"),
  (lambda: t(X).kthvalue(5), "the 5-th of the 4 elements"), (lambda: t(X).kthvalue(0), "the 0-th of the 4 elements"),
  (lambda: t(X).bincount(), "it is for a vector of integers"),
  (lambda: t(np.array([1.0])).bincount(), "it is for a vector of integers"),
  (lambda: t(X).gelu("erf"), 'neither "tanh" nor "none"'), (lambda: t(X).dropout(1.5), "with probability 1.5"),
  (lambda: t(X).dropout2d(-0.5), "with probability -0.5"),
  (lambda: t(CUBE).max_unpool1d(t(X), 2), "by indices of shape"),
  (lambda: t(CUBE).interpolate(), "size"), (lambda: t(CUBE).interpolate(2, 2), "size"),
  (lambda: t(CUBE).scaled_dot_product_attention(t(X), t(X[:2])), "attention of queries"),
  (lambda: t(X).scaled_dot_product_attention(t(X), t(X), t(np.ones((3, 3), bool)), is_causal=True), "give one"),
  (lambda: t(X).scaled_dot_product_attention(t(X), t(X), t(np.ones((3, 3), np.int32))), "an attention mask of"),
  (lambda: t(X).prelu(t(X[0, :3])), "prelu of shape"), (lambda: t(CUBE).glu(1), "glu"),
  (lambda: t(X > 0).bitcast(dtypes.int8), "bool has no bits to reinterpret"),
  (lambda: t(X).bitcast(dtypes.bool), "bitcast of shape|no bits"),
], ids=itertools.count())
def test_refused(call: Callable[[], Any], told: str) -> None:
  with pytest.raises(InvalidArgument, match=told): call()


def test_what_has_no_other_spelling_is_no_keyword() -> None:
  with pytest.raises(TypeError, match="unexpected keyword argument 'others'"):
    t(X).cat(others=t(X))  # type: ignore[call-arg]


# *** order ***


def test_running_extremes_keep_what_is_no_number() -> None:
  for name, function in (("cummax", np.maximum), ("cummin", np.minimum)):
    for axis in (0, 1):
      values, places = getattr(t(NAN), name)(axis)
      wanted = function.accumulate(NAN, axis)
      np.testing.assert_array_equal(values.numpy(), wanted)
      np.testing.assert_array_equal(np.take_along_axis(NAN, places.numpy(), axis), wanted)
  values, places = t(np.array([1, 3, 3, 2])).cummax()
  assert values.tolist() == [1, 3, 3, 3] and places.tolist() == [0, 1, 2, 2]


def test_sorted_along_every_axis() -> None:
  for x in (X[0], X, CUBE):
    for axis in range(-x.ndim, x.ndim):
      values, places = t(x).sort(axis)
      same(values, np.sort(x, axis))
      np.testing.assert_array_equal(places.numpy(), np.argsort(x, axis))
      same(t(x).sort(axis, descending=True)[0], -np.sort(-x, axis))
  assert t(np.array([3, 1, 3, 1])).argsort().tolist() == [1, 3, 0, 2]
  assert t(np.array([3, 1, 3, 1])).argsort(descending=True).tolist() == [0, 2, 1, 3]
  np.testing.assert_array_equal(t(NAN).sort()[0].numpy(), np.sort(NAN))
  same(t(X).msort(), np.sort(X, 0))


METHODS = {"linear": "linear", "lower": "lower", "higher": "higher", "midpoint": "midpoint", "nearest": "nearest"}


@pytest.mark.parametrize("method", METHODS)
def test_quantiles(method: Any) -> None:
  for axis, keepdim in itertools.product((None, 0, 1, -1), (False, True)):
    for q in (0.0, 0.3, 1.0):
      wanted = np.quantile(X.astype(np.float64), q, axis, keepdims=keepdim, method=method)
      same(t(X).quantile(q, axis, keepdim, method), wanted, 1e-5)
  same(t(X).quantile(t(np.array([0.25, 0.5], np.float32)), 1), np.quantile(X, [0.25, 0.5], 1), 1e-5)
  assert math.isnan(t(NAN).quantile(0.5).item())


def test_where_numbers_belong() -> None:
  rows, flat = np.array([1, 3, 3, 5], np.float32), np.array([[0, 3], [5, 9], [1, 4]], np.float32)
  for right, side in ((False, "left"), (True, "right")):
    np.testing.assert_array_equal(t(rows).searchsorted(t(flat), right=right).numpy(), np.searchsorted(rows, flat, side))
    np.testing.assert_array_equal(t(flat).bucketize(t(rows), right=right).numpy(), np.searchsorted(rows, flat, side))
    assert t(rows).searchsorted(3.0, right=right).item() == np.searchsorted(rows, 3.0, side)
    two = t(np.stack((rows, rows + 2))).searchsorted(t(flat[:2]), right=right)
    np.testing.assert_array_equal(two.numpy(), np.stack((np.searchsorted(rows, flat[0], side),
                                                         np.searchsorted(rows + 2, flat[1], side))))


# *** losses, normalization, attention ***


def test_cross_entropy_of_many_labels() -> None:
  labels = np.array([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 1, 1]], np.float32)
  each = labels * np.log1p(np.exp(-X)) + (1 - labels) * np.log1p(np.exp(X))
  same(t(X).multilabel_soft_margin_loss(t(labels)), each.mean(), 1e-5)
  same(t(X).multilabel_soft_margin_loss(t(labels), t(labels[1]), "none"), (each * labels[1]).mean(-1), 1e-5)


def test_nothing_times_a_logarithm() -> None:
  a, b = np.array([0, 0, 0, 2, 0, 1.5], np.float32), np.array([0, 3, np.nan, 3, np.inf, 1], np.float32)
  np.testing.assert_allclose(t(a).xlogy(t(b)).numpy(), [0, 0, np.nan, 2 * np.log(3), 0, 0], rtol=1e-6)


def test_normalization_by_given_numbers() -> None:
  mean, scale, weight, bias = (RNG.normal(size=3).astype(np.float32) for _ in range(4))
  def up(x: Any) -> Any: return x[None, :, None]
  plain = (CUBE - up(mean)) * up(scale)
  same(t(CUBE).batchnorm(None, None, t(mean), t(scale)), plain, 1e-5)
  same(t(CUBE).batchnorm(t(weight), None, t(mean), t(scale)), plain * up(weight), 1e-5)
  same(t(CUBE).batchnorm(t(weight), t(bias), t(mean), t(scale)), plain * up(weight) + up(bias), 1e-5)
  same(t(CUBE).batchnorm(None, t(bias), t(mean), t(scale)), plain + up(bias), 1e-5)
  two = CUBE[:, :, :2]
  wanted = (two - two.mean(-1, keepdims=True)) / np.sqrt(two.var(-1, keepdims=True) + 1e-5)
  same(t(two).instance_norm(), wanted, 1e-4)
  same(t(two).instance_norm(weight=t(weight), bias=t(bias)), wanted * up(weight) + up(bias), 1e-4)


def test_attention_may_forget() -> None:
  """A part of the weights is dropped while training, and the others grow; a value of ones shows their sum."""
  q, ones = RNG.normal(size=(40, 8)).astype(np.float32), np.ones((40, 1), np.float32)
  with Tensor.train(): found = t(q).scaled_dot_product_attention(t(q), t(ones), dropout_p=0.5).numpy()
  assert np.ptp(found) > 0.1 and 0.5 < found.mean() < 1.5
  same(t(q).scaled_dot_product_attention(t(q), t(ones), dropout_p=0.5), ones)
  with Tensor.train(): same(t(q).scaled_dot_product_attention(t(q), t(ones)), ones)


# *** windows ***


@pytest.mark.parametrize("kernel, stride, padding", [(2, None, 0), (3, 2, 1), (2, 3, 0), (4, 4, 2)])
def test_pooled_and_back(kernel: int, stride: int | None, padding: int) -> None:
  """Each greatest element is where it was, and there are zeros elsewhere."""
  x = RNG.permutation(2 * 10).reshape(1, 2, 10).astype(np.float32) + 1
  options: dict[str, Any] = {"kernel_size": kernel, "stride": stride, "padding": padding}
  top, at = t(x).max_pool1d(**options, return_indices=True)
  step = stride or kernel
  area = (top.shape[-1] - 1) * step + kernel - 2 * padding
  found = top.max_unpool1d(at, **options)
  assert found.shape == (1, 2, area)
  wide = top.max_unpool1d(at, **options, output_size=(10,)).numpy()
  chosen = np.isin(x, top.numpy())
  np.testing.assert_array_equal(wide, np.where(chosen, x, 0))
  np.testing.assert_array_equal(found.numpy()[..., :min(area, 10)], wide[..., :min(area, 10)])


def test_convolutions_of_one_sample() -> None:
  w = RNG.normal(size=(2, 3, 3)).astype(np.float32)
  windows = np.lib.stride_tricks.sliding_window_view(CUBE[0], 3, 1)
  wanted = np.einsum("iwk,oik->ow", windows, w)
  same(t(CUBE[0]).conv1d(t(w)), wanted, 1e-5)
  same(t(CUBE[:1]).conv1d(t(w)), wanted[None], 1e-5)
  wide = np.einsum("iwk,oik->ow", np.lib.stride_tricks.sliding_window_view(np.pad(CUBE[0], ((0, 0), (1, 1))), 3, 1), w)
  same(t(CUBE[0]).conv1d(t(w), padding="same"), wide, 1e-5)
  same(t(CUBE[0]).conv1d(t(w), padding="valid"), wanted, 1e-5)


@pytest.mark.parametrize("aligned", [False, True])
def test_cubic_resizing_weighs_four_neighbours(aligned: bool) -> None:
  """By Keys's kernel with a = -3/4; beyond the ends are the ends."""
  def kernel(d: float) -> float:
    d, a = abs(d), -0.75
    if d <= 1: return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0
  for size in (3, 6, 9):
    weights = np.zeros((size, 6))
    for i in range(size):
      at = i * 5 / (size - 1) if aligned else (i + 0.5) * 6 / size - 0.5
      for j in range(math.floor(at) - 1, math.floor(at) + 3): weights[i, min(max(j, 0), 5)] += kernel(at - j)
    x = RNG.normal(size=(1, 2, 6, 6)).astype(np.float32)
    found = t(x).interpolate((size, 6), mode="bicubic", align_corners=aligned)
    same(found, np.einsum("ij,bcjk->bcik", weights, x), 1e-5)


# *** chance ***


def test_integers_like_another() -> None:
  x = t(np.zeros((40, 50), np.int32))
  few, shifted = x.randint_like(3).numpy(), x.randint_like(5, 9).numpy()
  assert set(np.unique(few)) == {0, 1, 2} and set(np.unique(shifted)) == {5, 6, 7, 8}
  floats = t(np.zeros((30, 20), np.float32)).randint_like(2, 4)
  assert floats.dtype is dtypes.float32 and set(np.unique(floats.numpy())) == {2, 3}


def test_drawn_classes() -> None:
  logits = t(np.log(np.array([[0.7, 0.2, 0.1]] * 600, np.float32)))
  soft, hard = logits.gumbel_softmax(), logits.gumbel_softmax(hard=True).numpy()
  np.testing.assert_allclose(soft.numpy().sum(1), 1, rtol=1e-5)
  np.testing.assert_allclose(hard.sum(1), 1, rtol=1e-5)
  shares = (hard > 0.5).mean(0)
  assert abs(shares[0] - 0.7) < 0.08 and abs(shares[1] - 0.2) < 0.07
  assert logits.gumbel_softmax(0.01).numpy().max(1).mean() > 0.97 > logits.gumbel_softmax(5.0).numpy().max(1).mean()
  assert t(np.zeros((1,), np.float32)).gumbel_softmax().tolist() == [1]
  assert t(np.zeros((0, 2), np.float32)).gumbel_softmax().shape == (0, 2)


def test_ones_by_chance() -> None:
  assert t(np.array([1.0], np.float32)).bernoulli().tolist() == [1]
  found = t(np.full((2000,), 0.25, np.float32)).bernoulli().numpy()
  assert set(np.unique(found)) == {0, 1} and abs(found.mean() - 0.25) < 0.05
  assert abs(t(np.zeros(2000, np.float32)).bernoulli(0.75).numpy().mean() - 0.75) < 0.05
