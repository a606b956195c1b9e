"""Functions at the edges of what they take: options left out and given, sizes of 0 and 1, NaN, axes before and behind;
and what they refuse. Against NumPy, on PYTHON."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor, dtypes
from tinyhw.core.errors import InvalidArgument, InvalidNumber

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


def grouped(names: list[str], draw: Any) -> list[list[str]]:
  """Names in their order, some of them joined."""
  found: list[list[str]] = []
  for name in names:
    if found and draw(st.booleans()): found[-1].append(name)
    else: found.append([name])
  return found


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_any_formula_is_numpys_reshape_and_transpose(data: Any) -> None:
  draw = data.draw
  names = list("abcde")[:draw(st.integers(1, 5))]
  sizes = {n: draw(st.integers(1, 3)) for n in names}
  unnamed = draw(st.integers(0, len(names)))               # as many at one place are the ellipsis
  first = draw(st.integers(0, len(names) - unnamed))
  rest = names[first:first + unnamed]
  ellipsis = draw(st.sampled_from(["...", "\u2026"])) if unnamed else ""
  head, tail = (grouped(part, draw) for part in (names[:first], names[first + unnamed:]))
  own = [n for n in names if n not in rest]
  order = draw(st.permutations([*own, *(["..."] if rest else [])]))
  right = grouped(list(order), draw)
  alone = [g for g in right if g == ["..."]] and draw(st.booleans())     # it stands apart, or joined in parentheses
  def side(groups: list[list[str]], bare: bool) -> str:
    out = []
    for g in groups:
      text = " ".join(ellipsis if n == "..." else n for n in g)
      out.append(text if len(g) == 1 and (g != ["..."] or bare) else f"({text})")
    return " ".join(out)
  left = " ".join([side(head, True), ellipsis, side(tail, True)])
  shape = [math.prod(sizes[n] for n in g) for g in (*head, *([n] for n in rest), *tail)]
  array = np.arange(math.prod(shape)).reshape(shape)
  ends = [n for g in right for n in (m for k in g for m in (rest if k == "..." else [k]))]
  moved = array.reshape([sizes[n] for n in names]).transpose([names.index(n) for n in ends])
  wanted: list[int] = []
  for g in right:
    if g == ["..."] and alone: wanted += [sizes[n] for n in rest]
    else: wanted.append(math.prod(sizes[n] for k in g for n in (rest if k == "..." else [k])))
  same(t(array).rearrange(f"{left} -> {side(right, bool(alone))}", **{n: sizes[n] for n in own}),
       moved.reshape(wanted))


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


# *** what a tensor is made of, and like ***


def test_like_another() -> None:
  x = Tensor(np.ones((200, 10), np.float64), device="PYTHON")
  for made, low, high in ((x.rand_like(), 0.0, 1.0), (x.randn_like(), -5.0, 5.0)):
    assert made.shape == (200, 10) and made.dtype is dtypes.float64 and made.device == "PYTHON"
    drawn = made.numpy()
    assert low <= drawn.min() < drawn.max() < high and not made.requires_grad
  half = x.rand_like(dtype="float16", device="LLVM", requires_grad=True)
  assert half.dtype is dtypes.float16 and half.device == "LLVM" and half.requires_grad
  assert x.randn_like(dtype=dtypes.float32, device="LLVM", requires_grad=True).requires_grad
  for empty in (x.empty_like(), x.new_empty(200, 10)):
    assert empty.shape == (200, 10) and empty.dtype is dtypes.float64 and empty.device == "PYTHON"
  assert x.empty_like(dtype="int8", device="LLVM").device == "LLVM" and x.new_empty((3,), dtype="int8").shape == (3,)
  given = x.new_tensor([1, 2], requires_grad=True)
  assert given.dtype is dtypes.float64 and given.device == "PYTHON" and given.requires_grad
  assert x.new_tensor([1, 2], dtype="int8").dtype is dtypes.int8


def test_initial_weights_spread_as_their_formulas_say() -> None:
  def spread(x: Tensor) -> tuple[float, float]: return float(x.numpy().std()), float(abs(x.numpy()).max())
  options: dict[str, Any] = {"device": "PYTHON"}
  deviation, most = spread(Tensor.scaled_uniform(60, 50, **options))
  assert 0.9 * 3000**-0.5 < most <= 3000**-0.5 and abs(deviation * math.sqrt(3 * 3000) - 1) < 0.05
  assert abs(spread(Tensor.xavier_normal(60, 50, **options))[0] * math.sqrt(55) - 1) < 0.05
  assert abs(spread(Tensor.xavier_normal(60, 50, gain=3.0, **options))[0] * math.sqrt(55) - 3) < 0.15
  most = spread(Tensor.xavier_uniform(30, 10, 5, **options))[1]
  assert 0.95 < most * math.sqrt((30 * 5 + 10 * 5) / 6) <= 1
  assert 0.95 < spread(Tensor.glorot_uniform(30, 10, 5, **options))[1] * math.sqrt((30 + 50) / 6) <= 1
  for mode, fan in (("fan_in", 50), ("fan_out", 150)):
    most = spread(Tensor.kaiming_uniform(30, 10, 5, a=1.0, mode=mode, **options))[1]
    assert 0.95 < most * math.sqrt(fan / 3) <= 1
    deviation = spread(Tensor.kaiming_normal(30, 10, 5, a=0.0, mode=mode, **options))[0]
    assert abs(deviation * math.sqrt(fan / 2) - 1) < 0.06


@pytest.mark.parametrize("name, axes", [("dropout1d", 1), ("dropout2d", 2), ("dropout3d", 3)])
def test_whole_channels_are_dropped(name: str, axes: int) -> None:
  x = t(np.ones((20, 10, *(2,) * axes), np.float32))
  with Tensor.train(): found = getattr(x, name)(0.25).numpy().reshape(200, -1)
  assert set(np.unique(found)) == {0, np.float32(4 / 3)} and (found == found[:, :1]).all()
  assert 20 < (found[:, 0] == 0).sum() < 80
  for same_ in (getattr(x, name)(0.25), getattr(x, name)(0.0, training=True)): same(same_, x.numpy())
  same(getattr(x, name)(1.0, training=True), np.zeros(x.shape))


def test_matrices_of_ones_below_a_diagonal() -> None:
  for rows, columns, offset in ((3, None, 0), (3, 5, 1), (4, 2, -1)):
    same(Tensor.tri(rows, columns, offset, device="PYTHON"), np.tri(rows, columns, offset))


def test_cut_to_a_shape() -> None:
  same(t(CUBE).shrink_to(1, None, 3), CUBE[:1, :, :3])
  same(t(CUBE).shrink_to((2, 2, 2)), CUBE[:, :2, :2])


def test_lists_of_tensors() -> None:
  same(Tensor([t(X), t(X + 1)]), np.stack((X, X + 1)))
  mixed = Tensor([t(np.float32(1.5)), 2.5], device="PYTHON", dtype="float64")
  assert mixed.dtype is dtypes.float64 and mixed.tolist() == [1.5, 2.5]


def test_singular_values_of_nothing() -> None:
  u, s, v = t(np.zeros((2, 0, 3), np.float32)).svd()
  assert u.shape == (2, 0, 0) and s.shape == (2, 0) and v.shape == (2, 3, 3)
  same(v, np.stack([np.eye(3)] * 2))


def test_running_statistics() -> None:
  for running in ("running_mean", "running_var"):
    kept = Tensor(np.array([1, 2, 3], np.float32), device="PYTHON")
    t(CUBE).instance_norm(**{running: kept}, momentum=0.25)
    now = CUBE.mean((0, 2)) if running == "running_mean" else CUBE.var(2, ddof=1).mean(0)
    same(kept, np.array([1, 2, 3]) * 0.75 + now * 0.25, 1e-5)


def test_one_sample_goes_back() -> None:
  w = RNG.normal(size=(3, 2, 3)).astype(np.float32)
  whole = t(CUBE).conv_transpose1d(t(w), stride=2, padding=1, output_padding=1)
  same(t(CUBE[1]).conv_transpose1d(t(w), stride=2, padding=1, output_padding=1), whole.numpy()[1], 1e-5)
  wide = np.zeros((2, 10), np.float32)  # 4 places 2 apart, and a kernel of 3: 9 elements, with one more
  for i in range(4): wide[:, 2 * i:2 * i + 3] += np.einsum("i,iok->ok", CUBE[1][:, i], w)
  same(t(CUBE[1]).conv_transpose1d(t(w), stride=2, padding=1, output_padding=1), wide[:, 1:9], 1e-5)


@pytest.mark.parametrize("call, told", [
  (lambda: Tensor.einsum("ab,c", t(X), t(X)), "einsum 'ab,c' of shapes"),
  (lambda: Tensor.einsum("ab,ab", t(X)), "has 2 terms for 1 tensors"),
  (lambda: Tensor.einsum("ab->ac", t(X)), "must be axes of the terms"),
  (lambda: Tensor.einsum("a1->a", t(X)), "einsum 'a1->a' of shapes"), (lambda: t(X)["a":], "slice"),
  (lambda: t(X).scatter(0, t(np.zeros((1, 4), int)), 1.0, reduce="max"), 'neither "add" nor "multiply"'),
  (lambda: t(X).scatter(0, t(np.zeros((4, 4), int)), t(X)), "scatter of shape"),
  (lambda: t(X).scatter(0, t(np.zeros((1, 4), int)), t(X.astype(np.float64))), "cast one of them"),
  (lambda: t(X).index_add(0, t(np.array([0, 1])), t(X)), r"rows of shape \(3, 4\) where \(2, 4\) are needed"),
  (lambda: t(X).repeat_interleave([1, 2], 0), "2 numbers of repeats for axis 0"),
  (lambda: t(X).repeat_interleave(-1, 0), "-1 repeats"),
  (lambda: t(X).matmul(t(np.float32(1))), "a scalar has no axis"),
  (lambda: t(X).cross(t(X), 1), "the axis needs 3 elements"), (lambda: t(X).matrix_power(2), "square matrices"),
  (lambda: t(X).sparse_categorical_crossentropy(t(np.array([1, 2]))), r"need targets of shape \(3,\), not \(2,\)"),
  (lambda: t(X).cross_entropy(t(X[:2])), "do not fit targets of shape"),
  (lambda: t(X).unflatten(1, (3, 2)), r"axis 1 of shape \(3, 4\) does not split"),
  (lambda: t(X).movedim((0, 1), 0), "different counts of axes"),
  (lambda: t(X).narrow(1, 2, 3), "3 elements from 2 on of axis 1"), (lambda: t(X).narrow(1, -5, 1), "from -5 on"),
  (lambda: t(X).narrow(0, 0, -1), "-1 elements from 0"),
  (lambda: t(CUBE[None]).max_pool2d(5), "windows of|kernel"),
  (lambda: t(CUBE[None]).pixel_shuffle(2), "no multiple of 2"),
  (lambda: t(CUBE).pixel_unshuffle(2), "no multiple of 2"),
  (lambda: t(CUBE).channel_shuffle(2), "in 2 groups"),
  (lambda: t(np.ones((3, 2, 4), np.float32)).scaled_dot_product_attention(t(CUBE), t(CUBE), enable_gqa=True),
   "3 heads of queries for 2 of keys"),
  (lambda: t(X).interpolate(2), "axes behind the first two"),
  (lambda: t(CUBE).interpolate(scale_factor=0.1), r"to \(0,\)"),
  (lambda: t(CUBE).conv_transpose1d(t(np.ones((2, 2, 3), np.float32))), "conv_transpose1d of shape"),
  (lambda: t(X).assign(Tensor(X, device="LLVM")), "assign of a value on LLVM to a tensor on PYTHON"),
  (lambda: t(X).stack(t(CUBE)), "shape"),
  (lambda: t(X).mse_loss(t(X), "all"), "is none of"),
], ids=itertools.count())
def test_refused_too(call: Callable[[], Any], told: str) -> None:
  with pytest.raises((InvalidArgument, TypeError), match=told): call()


def test_a_leaf_is_no_result() -> None:
  leaf = Tensor([1.0, 2.0], device="PYTHON", requires_grad=True)
  with pytest.raises(InvalidArgument, match="from a value with a history"): leaf.assign(leaf * 2)
  leaf.assign((leaf * 2).detach())
  assert leaf.tolist() == [2, 4]
  with Tensor.no_grad(): leaf.assign(leaf + 1)
  assert leaf.tolist() == [3, 5]


def test_python_ints_are_int64_where_int32_does_not_hold_them() -> None:
  for made in (Tensor([1, 2 ** 40]), Tensor(2 ** 40).reshape(1), Tensor.full((2,), -2 ** 63), Tensor([-2 ** 31 - 1]),
               Tensor([True]).where(2 ** 40, 1)):
    assert made.dtype is dtypes.int64 and max(map(abs, made.tolist())) > 2 ** 31
  assert Tensor([2 ** 31 - 1, -2 ** 31]).dtype is dtypes.int32 and Tensor([2 ** 40, 0.5]).dtype is dtypes.float32
  assert Tensor([2 ** 64 - 1, 0], dtype="uint64").tolist() == [2 ** 64 - 1, 0]
  assert Tensor(-1, dtype="uint8").item() == 255
  x = Tensor([1, 2])
  refused: list[Callable[[], Any]] = [
    lambda: Tensor([2 ** 63]), lambda: Tensor(2 ** 63), lambda: Tensor.full((2,), 2 ** 63),
    lambda: Tensor([2 ** 64], dtype="uint64"), lambda: Tensor(300, dtype="uint8"), lambda: x.fill_(2 ** 40),
    lambda: x.masked_fill(x > 0, 2 ** 40), lambda: x.__setitem__(0, 2 ** 40), lambda: x.pad((1, 1), value=2 ** 40),
    lambda: x.full_like(2 ** 40)]
  for wrong in refused:
    with pytest.raises(InvalidNumber, match="does not fit"): wrong()
