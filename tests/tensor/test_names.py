"""Names, keywords and errors: every spelling that users of PyTorch and tinygrad type means the same, mistakes raise
what
they catch, and data of others becomes a tensor."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Error, InvalidArgument, InvalidIndex, InvalidShape, InvalidType, Tensor, dtypes
from tinyhw.function.spelling import SPELLINGS, accept_all_spellings, of_several

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 11


def t(x: Any = X) -> Tensor: return Tensor(x, device="PYTHON")


SAME: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
  "dim, axis": (lambda: t().sum(dim=1), lambda: t().sum(axis=1)),
  "keepdim, keepdims": (lambda: t().sum(1, keepdim=True), lambda: t().sum(1, keepdims=True)),
  "axes of mean": (lambda: t().mean(dim=(0, 2)), lambda: t().mean(axis=(0, 2))),
  "flip dims": (lambda: t().flip(dims=(0, 1)), lambda: t().flip(0, 1)),
  "contiguous_backward": (lambda: t().contiguous_backward(), t),
  "permute order": (lambda: t().permute(order=(2, 0, 1)), lambda: t().permute(2, 0, 1)),
  "reshape by None in front": (lambda: t().reshape(None, None, 2, 2), lambda: t().reshape(2, 3, 2, 2)),
  "permute dims": (lambda: t().permute(dims=(2, 0, 1)), lambda: t().permute(2, 0, 1)),
  "roll": (lambda: t().roll(shifts=1, dims=0), lambda: t().roll(1, 0)),
  "full": (lambda: Tensor.full((2,), fill_value=3), lambda: Tensor.full((2,), 3)),
  "zeros of a size": (lambda: Tensor.zeros(size=(2, 3)), lambda: Tensor.zeros(2, 3)),
  "arange end": (lambda: Tensor.arange(1, end=4), lambda: Tensor.arange(1, 4)),
  "clamp": (lambda: t().clamp(min=-1, max=2), lambda: t().clip(-1, 2)),
  "cat of a list": (lambda: Tensor.cat([t(), t()], 1), lambda: t().cat(t(), dim=1)),
  "stack, two ways": (lambda: Tensor.stack(t(), t(), dim=1), lambda: Tensor.stack([t(), t()], axis=1)),
  "split": (lambda: t().split(split_size_or_sections=2, dim=2)[1], lambda: t().split(2, 2)[1]),
  "chunk": (lambda: t().chunk(chunks=2, dim=2)[1], lambda: t().chunk(2, 2)[1]),
  "gather": (lambda: t().gather(dim=2, index=Tensor([[[1]]], device="PYTHON")),
             lambda: t().gather(2, Tensor([[[1]]], device="PYTHON"))),
  "one_hot": (lambda: t([1, 0]).one_hot(num_classes=3), lambda: t([1, 0]).one_hot(3)),
  "leaky_relu": (lambda: t().leaky_relu(negative_slope=0.5), lambda: t().leaky_relu(0.5)),
  "randint": (lambda: seeded(lambda: Tensor.randint(3, 9, (4,))),
              lambda: seeded(lambda: Tensor.randint(4, low=3, high=9))),
  "randint of a high": (lambda: seeded(lambda: Tensor.randint(5, (2, 2))),
                        lambda: seeded(lambda: Tensor.randint(2, 2, high=5))),
  "pool": (lambda: t().max_pool2d(kernel_size=2, stride=1), lambda: t().max_pool2d(2, 1)),
  "unflatten": (lambda: t().unflatten(dim=2, sizes=(2, 2)), lambda: t().unflatten(2, (2, 2))),
  "eye": (lambda: Tensor.eye(n=2, m=3), lambda: Tensor.eye(2, 3)),
}


def seeded(make: Callable[[], Tensor]) -> Tensor:
  Tensor.manual_seed(7)
  return make()


@pytest.mark.parametrize("name", SAME)
def test_two_spellings_are_one(name: str) -> None:
  one, other = SAME[name]
  np.testing.assert_array_equal(one().numpy(), other().numpy())


def test_a_parameter_is_given_once() -> None:
  with pytest.raises(TypeError, match="got 'dim' and 'axis': they are the same parameter"): t().sum(dim=1, axis=1)
  with pytest.raises(TypeError, match="twice"): t().flip(0, dims=1)
  with pytest.raises(TypeError, match="unexpected keyword"): t().sum(dimensions=1)


def test_spellings_are_added_to_what_a_class_declares() -> None:
  class Thing:
    def both(self, axis: int, keepdim: bool = False) -> tuple[int, bool]: return axis, keepdim
    def apart(self, axis0: int, dim: int) -> tuple[int, int]: return axis0, dim
    @classmethod
    def made(cls, value: int) -> int: return value
    @staticmethod
    def still(*axes: int) -> tuple[int, ...]: return axes
    @of_several("dim")
    def several(self, *others: Any, dim: int = 0) -> tuple[int, int]: return 1 + len(others), dim
  accept_all_spellings(Thing)
  thing: Any = Thing()
  assert thing.both(dim=1, keepdims=True) == (1, True) and Thing.made(fill_value=3) == 3  # type: ignore[call-arg]
  assert thing.apart(dim0=1, axis=2) == (1, 2) and Thing.several([thing, thing], 5) == (2, 5)  # type: ignore[arg-type]
  assert inspect.signature(Thing.both) == inspect.signature(inspect.unwrap(Thing.both)), "documentation sees it"
  assert len({name for row in SPELLINGS for name in row}) == sum(map(len, SPELLINGS)), "a spelling has one meaning"


ONES = np.ones((2, 3), np.float32)
MISTAKES: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
  ("axis", lambda: t().sum(3), IndexError, "axis 3 of a tensor of shape .2, 3, 4.; it has 3 axes"),
  ("axis kind", lambda: t().sum("x"), TypeError, "'x' is not an axis"),
  ("axis twice", lambda: t().sum((0, 0)), RuntimeError, "occurs twice"),
  ("broadcast", lambda: t(ONES) + t(np.ones(2, np.float32)), RuntimeError, "do not broadcast"),
  ("reshape", lambda: t().reshape(5, 5), RuntimeError, "does not reshape"),
  ("two unknown", lambda: t().reshape(-1, -1), ValueError, "only one size"),
  ("matmul", lambda: t(ONES) @ t(ONES), RuntimeError, "3 columns meet 2 rows"),
  ("mm", lambda: t().mm(t()), RuntimeError, "matmul takes any"),
  ("cat", lambda: Tensor.cat([t(ONES), t(ONES[:, :2])]), RuntimeError, "do not join"),
  ("cat of none", lambda: Tensor.cat([]), ValueError, "of no tensors"),
  ("stack", lambda: Tensor.stack([t(ONES), t(ONES[:1])]), RuntimeError, "do not stack"),
  ("index", lambda: t()[2], IndexError, "index 2 of axis 0"),
  ("many indices", lambda: t()[0, 0, 0, 0], IndexError, "too many indices: 4"),
  ("float index", lambda: t()[t([1.0])], TypeError, "use integers, or a mask"),
  ("mask shape", lambda: t()[t([True, False, True])], IndexError, "a mask of shape"),
  ("gather", lambda: t().gather(0, t([1])), RuntimeError, "gather from shape"),
  ("gather type", lambda: t([1.0]).gather(0, t([0.0])), TypeError, "use integers"),
  ("scatter type", lambda: t([1.0]).scatter(0, t([0]), t([1])), TypeError,
   "scatter of dtypes.int32 into dtypes.float32"),
  ("scatter reduce", lambda: t([1.0]).scatter_reduce(0, t([0]), t([1.0]), "max"), ValueError, "none of sum, prod"),
  ("pad mode", lambda: t().pad((1, 1), mode="mirror"), ValueError, "none of constant, reflect, replicate, circular"),
  ("reflect", lambda: t().pad((4, 0), mode="reflect"), RuntimeError, "at most 3 on a side"),
  ("pad value", lambda: t().pad((1, 0), mode="circular", value=2), ValueError, "takes no value"),
  ("rounding", lambda: t().div(2, rounding_mode="up"), ValueError, 'neither "trunc" nor "floor"'),
  ("approximate", lambda: t().gelu(approximate="fast"), ValueError, 'neither "tanh" nor "none"'),
  ("conv", lambda: t(np.ones((1, 2, 4, 4), np.float32)).conv2d(t(np.ones((1, 3, 2, 2), np.float32))), RuntimeError,
   "by weights"),
  ("conv rank", lambda: t(ONES).conv1d(t(ONES)), RuntimeError, "conv1d of shape"),
  ("conv stride",
   lambda: t(np.ones((1, 1, 4, 4), np.float32)).conv2d(t(np.ones((1, 1, 2, 2), np.float32)), stride=(1, 2, 3)),
   RuntimeError, "one for each axis"),
  ("conv same",
   lambda: t(np.ones((1, 1, 4), np.float32)).conv1d(t(np.ones((1, 1, 2), np.float32)), stride=2, padding="same"),
   ValueError, "needs a stride of 1"),
  ("output padding", lambda: t(np.ones((1, 1, 4), np.float32)).conv_transpose1d(
    t(np.ones((1, 1, 2), np.float32)), output_padding=1), ValueError, "output_padding"),
  ("pool", lambda: t(np.ones((1, 1, 2, 2), np.float32)).max_pool2d(3), RuntimeError, "windows of"),
  ("pool padding", lambda: t(np.ones((1, 1, 4, 4), np.float32)).avg_pool2d(2, padding=2), ValueError, "more than half"),
  ("interpolate", lambda: t(np.ones((1, 1, 4, 4), np.float32)).interpolate(2, mode="linearly"), ValueError,
   "none of nearest"),
  ("two sizes", lambda: t(np.ones((1, 1, 4), np.float32)).interpolate(2, scale_factor=2), ValueError, "one of them"),
  ("corners", lambda: t(np.ones((1, 1, 4), np.float32)).interpolate(2, align_corners=True), ValueError,
   "align_corners"),
  ("einsum terms", lambda: Tensor.einsum("ij,jk", t(ONES)), RuntimeError, "2 terms for 1 tensors"),
  ("einsum sizes", lambda: Tensor.einsum("ij,ij->i", t(ONES), t(ONES[:, :2])), RuntimeError, "j has two sizes"),
  ("einsum result", lambda: Tensor.einsum("ij->k", t(ONES)), RuntimeError, "axes of the terms"),
  ("rearrange", lambda: t().rearrange("a b c -> a b"), RuntimeError, "the same axes"),
  ("rearrange sizes", lambda: t().rearrange("a (b c) d -> a b c d"), RuntimeError, "give its sizes as keywords"),
  ("topk", lambda: t().topk(9), RuntimeError, "topk of 9 out of the 4"),
  ("split", lambda: t().split([1, 1], 2), RuntimeError, "do not add up to 4"),
  ("reduction", lambda: t([1.0]).mse_loss(t([2.0]), reduction="max"), ValueError, 'none of "mean", "sum", "none"'),
  ("labels", lambda: t(ONES).cross_entropy(t([1, 2, 0])), RuntimeError, "need targets of shape"),
  ("attention", lambda: t().scaled_dot_product_attention(t(), t(), attn_mask=t([True]), is_causal=True), ValueError,
   "give one"),
  ("dropout", lambda: t().dropout(2), ValueError, "probability 2"),
  ("randint", lambda: Tensor.randint(3, low=4, high=4), ValueError, "no integers in 4..3"),
  ("multinomial", lambda: t([1.0, 2.0]).multinomial(3), ValueError, "without replacement"),
  ("lerp", lambda: t([1.0]).lerp(t([1]), 0.5), TypeError, "cast one of them"),
  ("diagonal", lambda: t().diagonal(0, 1, 1), RuntimeError, "they are one"),
  ("one_hot", lambda: t([1.0]).one_hot(3), TypeError, "it is for integers"),
  ("empty max", lambda: t(np.ones((0,), np.float32)).max(), ValueError, "reduction dim to be specified"),
  ("qr", lambda: t([1.0]).qr(), RuntimeError, "it is for matrices"),
  ("qr mode", lambda: t(ONES).qr("economic"), ValueError, "none of"),
  ("shape", lambda: Tensor.zeros(-1), RuntimeError, "is not a shape"),
  ("set", lambda: t().__setitem__(0, t(ONES)), RuntimeError, "does not expand to"),
  ("text", lambda: Tensor("abc"), TypeError, "cannot be made from a str"),
]


@pytest.mark.parametrize(("make", "kind", "message"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_raises_what_users_catch(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
  with pytest.raises(kind, match=message) as found: make()
  assert isinstance(found.value, Error), "it is one of the project's tree"


def test_the_kinds_of_mistakes() -> None:
  assert issubclass(InvalidShape, RuntimeError) and issubclass(InvalidIndex, IndexError) and issubclass(InvalidType,
                                                                                                        TypeError)
  assert all(issubclass(kind, InvalidArgument) and issubclass(kind, ValueError)
             for kind in (InvalidShape, InvalidIndex, InvalidType))


# ---- data of others

class Giver:
  """An array that speaks DLPack only."""

  def __init__(self, array: Any) -> None: self.array = array
  def __dlpack__(self, **options: Any) -> Any: return self.array.__dlpack__()
  def __dlpack_device__(self) -> Any: return self.array.__dlpack_device__()


def test_arrays_by_dlpack() -> None:
  x = np.arange(6, dtype=np.int16).reshape(2, 3).T
  for found in (Tensor.from_dlpack(Giver(x)), Tensor(Giver(x)), Tensor.from_dlpack(x),
                Tensor(Giver(x), dtype="float32")):
    assert found.tolist() == x.tolist()
  assert np.from_dlpack(t(X)).tolist() == X.tolist(), "and the other way"
  with pytest.raises(InvalidType, match="does not speak DLPack"): Tensor.from_dlpack([1])
  assert Tensor.from_numpy(x, device="PYTHON").tolist() == x.tolist()


def test_tensors_of_torch() -> None:
  torch = pytest.importorskip("torch")
  x = torch.arange(6.0).reshape(2, 3).T
  assert Tensor(x.requires_grad_()).tolist() == x.tolist()
  half = Tensor(x.detach().to(torch.bfloat16))
  assert half.dtype is dtypes.bfloat16 and half.tolist() == x.tolist()
  assert Tensor.from_dlpack(torch.utils.dlpack.to_dlpack(x.detach())).tolist() == x.tolist()
  assert Tensor(torch.tensor(True)).item() is True


# ---- changes in place

def test_in_place_functions_give_the_tensor_a_new_value() -> None:
  x = t([1.0, -2.0, 3.0])
  kept = x * 1
  assert x.add_(1) is x and x.tolist() == [2, -1, 4] and kept.tolist() == [1, -2, 3]
  assert x.mul_(2).sub_(1).relu_().tolist() == [3, 0, 7]
  assert x.clamp_(1, 5).neg_().tolist() == [-3, -1, -5]
  assert x.zero_().tolist() == [0, 0, 0] and x.fill_(2.5).tolist() == [2.5] * 3
  assert x.copy_(t([1, 2, 3])).tolist() == [1, 2, 3] and x.dtype is dtypes.float32
  assert x.masked_fill_(x > 1, 0).tolist() == [1, 0, 0]
  whole = t([1, 2])
  with pytest.raises(InvalidArgument, match="cast the value first"): whole.add_(0.5)
  assert whole.scatter_add_(0, t([0, 0]), t([5, 6])).tolist() == [12, 2]


def test_families_of_types() -> None:
  every = set(dtypes.all())
  assert {*dtypes.floats, *dtypes.ints, dtypes.bool} == every and {*dtypes.fp8s} < {*dtypes.floats}
  assert {*dtypes.uints, *dtypes.sints} == {*dtypes.ints}
  for d in every:
    assert (dtypes.is_float(d), dtypes.is_int(d), dtypes.is_bool(d)) == (d in dtypes.floats, d in dtypes.ints,
                                                                        d is dtypes.bool)
    assert dtypes.is_unsigned(d) == (d in dtypes.uints)


def test_a_parameter_says_so() -> None:
  x = Tensor([1.0, 2.0])
  assert not x.is_param and x.is_param_().is_param and not (x * 2).is_param and not x.is_param_(False).requires_grad


def test_a_random_tensor_of_a_seed_is_the_same() -> None:
  def drawn() -> list[Any]:
    Tensor.manual_seed(11)
    return [Tensor.randperm(20, device="PYTHON").tolist(), t([1.0, 0.0, 3.0]).multinomial(8, replacement=True).tolist(),
            t([0.1, 0.9] * 8).bernoulli().tolist(), Tensor.trunc_normal(5, device="PYTHON").tolist()]
  first = drawn()
  assert first == drawn() and sorted(first[0]) == list(range(20)) and first[0] != list(range(20))
  assert 1 not in first[1]


def test_distributions() -> None:
  Tensor.manual_seed(2)
  weights = t([[1.0, 3.0, 0.0], [2.0, 2.0, 4.0]])
  drawn = weights.multinomial(2000, replacement=True).numpy()
  shares = np.stack([np.bincount(row, minlength=3) / 2000 for row in drawn])
  np.testing.assert_allclose(shares, [[0.25, 0.75, 0], [0.25, 0.25, 0.5]], atol=0.04)
  without = np.sort(weights[1].multinomial(3).numpy())
  assert without.tolist() == [0, 1, 2]
  cut = Tensor.trunc_normal(2000, mean=1.0, std=2.0, a=-1.0, b=2.0, device="PYTHON").numpy()
  assert -1 <= cut.min() and cut.max() <= 2 and abs(cut.mean() - 0.60) < 0.08
  assert abs(float(np.mean(t(np.full(2000, 0.3, np.float32)).bernoulli().numpy())) - 0.3) < 0.04
  assert abs(float(Tensor.kaiming_normal(40, 50, device="PYTHON").numpy().std()) - (2 / 50) ** 0.5) < 0.01
  assert Tensor.xavier_uniform(30, 20, device="PYTHON").numpy().max() <= (6 / 50) ** 0.5
  with Tensor.train(): kept = (t(np.ones((50, 40, 2), np.float32)).dropout1d(0.5).numpy() != 0)
  assert (kept[..., 0] == kept[..., 1]).all() and 0.4 < kept.mean() < 0.6


def test_tinygrads_names_and_keywords() -> None:
  x = Tensor([[1.0, 2], [3, 4]])
  assert x.pad_to(3, None).tolist() == [[1, 2], [3, 4], [0, 0]] and x.clamp(min_=2, max_=3).tolist() == [[2, 2], [3, 3]]
  assert Tensor([1, 3]).xor(Tensor([1, 1])).tolist() == [0, 2]
  assert x.const_like(2, dtype=dtypes.int32).tolist() == [[2, 2], [2, 2]]
  assert x.clone(device="PYTHON").device == "PYTHON" and dtypes.fields()["int8"] is dtypes.int8
  assert Tensor.einsum("ij,ij->", x.half(), x.half(), dtype=dtypes.float32).dtype is dtypes.float32
  assert x.linear(x.half(), dtype=dtypes.float64).dtype is dtypes.float64
  image = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
  assert Tensor(image).avg_pool2d(2, 1, dilation=3).tolist() == [[[[9, 10], [14, 15]]]]
  rows = Tensor(image[0, :4, :4])     # as many of the last axes as there are sizes
  assert rows.interpolate((2, 2)).tolist() == rows.unsqueeze(0).interpolate((2, 2))[0].tolist() == [[[0, 2], [10, 12]]]
  assert Tensor([b"ab", b"cd"], dtype="uint8").tolist() == [[97, 98], [99, 100]]
  assert dtypes.finfo(dtypes.float16) == (5, 10) and dtypes.finfo(dtypes.fp8e4m3) == (4, 3)
  assert dtypes.min(dtypes.int8) == -128 and dtypes.max(dtypes.uint16) == 65535
  with pytest.raises(IndexError): Tensor.ones(3, 3)[[0, 1], [0, 1, 2]]
  assert Tensor.zeros(0, 3).data().itemsize == 4
  with pytest.raises(ValueError, match="deviation"): Tensor.normal(3, std=-1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "fp8e4m3", "fp8e5m2"])
def test_random_numbers_of_narrow_types_stay_below_1(dtype: str) -> None:
  Tensor.manual_seed(3)
  drawn = Tensor.rand(20000, dtype=dtype).float().numpy()
  Tensor.manual_seed(3)
  wide = Tensor.rand(20000).numpy()
  assert 0 <= drawn.min() and drawn.max() < 1 and np.all(drawn <= wide) and np.all(wide - drawn < 2.0 ** -2)


def test_a_list_of_arrays_is_one_tensor() -> None:
  rows = [np.array([1.0, 2]), np.array([3, 4])]
  assert Tensor(rows).tolist() == [[1, 2], [3, 4]] and Tensor(rows).dtype is dtypes.float64
  assert Tensor(rows, dtype="int8").dtype is dtypes.int8
  with pytest.raises(InvalidArgument, match="side by side"): Tensor([np.ones(2), np.ones(3)])


def test_pytorchs_forms_of_names() -> None:
  x = Tensor([[1.0, 2.0]])
  assert x.to(dtypes.float16).dtype is x.to(dtype="float16").dtype is dtypes.float16 and x.to(x.device) is x
  there = x.to("PYTHON", dtypes.int32)
  assert (there.device, there.dtype) == ("PYTHON", dtypes.int32) and x.to(there).dtype is dtypes.int32
  assert x.to(x, copy=True) is not x and x.view(2, 1).shape == (2, 1) and x.view(size=(2, 1)).shape == (2, 1)
  assert x.view(dtypes.int32).tolist() == [[0x3F800000, 0x40000000]] and x.numpy(force=True).shape == (1, 2)
  assert x.mm(mat2=x.T).tolist() == [[5.0]] and x.pad(pad=(1, 0)).tolist() == [[0, 1, 2]]
  assert x.new_ones(2, dtype="int8", device="PYTHON").device == "PYTHON" and x.new_tensor([1], device="PYTHON").shape
  assert Tensor.isin(Tensor([1, 2, 3]), test_elements=Tensor([2]), invert=True).tolist() == [True, False, True]
  assert Tensor([1]).isin([], invert=True).tolist() == [True]
  assert Tensor([[1]]).pad_to(2, 2, value=7).tolist() == [[1, 7], [7, 7]]
  assert [part.tolist() for part in Tensor([1, 2, 3]).tensor_split(indices_or_sections=2)] == [[1, 2], [3]]
  ones, zeros = Tensor.ones(2, buffer=True), x.zeros_like(buffer=True)
  assert ones.tolist() == [1, 1] and zeros.tolist() == [[0, 0]]
  whole = Tensor.uniform(300, low=-3, high=4, dtype="int8").numpy()
  assert whole.dtype == np.int8 and set(whole.tolist()) == set(range(-2, 4))
  cube = Tensor(np.arange(8, dtype=np.float32).reshape(1, 1, 2, 2, 2))
  np.testing.assert_allclose(cube.lp_pool3d(2, 2).item(), 140 ** 0.5, rtol=1e-6)
