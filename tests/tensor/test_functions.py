"""Each function of Tensor against NumPy, on every device."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.strength import seed
from tinyhw import Device, Tensor, dtypes
from tinyhw.function.random import threefry

Array = np.ndarray[Any, np.dtype[Any]]
F = np.array([[-2.5, -1.0, -0.5, 0.0], [0.25, 1.0, 1.5, 3.0], [0.1, 7.0, -3.25, 2.0]], np.float32)
P = np.abs(F) + 0.5
I = np.array([[-7, -1, 0], [3, 8, 2147483647]], np.int32)
D = np.array([[2, -3, 5], [-2, 3, 7]], np.int32)


def softmax(x: Array, axis: int = -1) -> Array:
  e = np.exp(x - x.max(axis, keepdims=True))
  return e / e.sum(axis, keepdims=True)


def sigmoid(x: Array) -> Array: return 1 / (1 + np.exp(-x))


CASES: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Array, ...]]] = [
  ("add", lambda a, b: a + b, lambda a, b: a + b, (F, P)),
  ("broadcast", lambda a, b: a[:, None] * b, lambda a, b: a[:, None] * b, (F, F[0])),
  ("reverse", lambda a: 2 - a, lambda a: 2 - a, (F,)),
  ("reverse_div", lambda a: 1 / a, lambda a: 1 / a, (P,)),
  ("int_div", lambda a, b: a // b, lambda a, b: a // b, (I, D)),
  ("int_mod", lambda a, b: a % b, lambda a, b: a % b, (I, D)),
  ("true_div", lambda a, b: a / b, lambda a, b: (a / b).astype(np.float32), (I, D)),
  ("float_div", lambda a: a // 0.75, lambda a: a // np.float32(0.75), (F,)),
  ("float_mod", lambda a: a % 0.75, lambda a: a % np.float32(0.75), (F,)),
  ("int_and_float", lambda a: a + 0.5, lambda a: (a + 0.5).astype(np.float32), (D,)),
  ("neg", lambda a: -a, lambda a: -a, (I,)),
  ("bits", lambda a, b: (a & b) | (a ^ 5), lambda a, b: (a & b) | (a ^ 5), (I, D)),
  ("invert", lambda a: ~a, lambda a: ~a, (I,)),
  ("shift", lambda a: (a << 3) ^ (a >> 2), lambda a: (a << 3) ^ (a >> 2), (I,)),
  ("compare", lambda a, b: (a < b) | (a >= b) & (a != b), lambda a, b: (a < b) | (a >= b) & (a != b), (I, D)),
  ("le_nan", lambda a: a <= math.nan, lambda a: a <= math.nan, (F,)),
  ("where", lambda a, b: (a > 0).where(a, b), lambda a, b: np.where(a > 0, a, b), (F, P)),
  ("where_numbers", lambda a: (a > 0).where(1, 0), lambda a: np.where(a > 0, 1, 0).astype(np.int32), (F,)),
  ("maximum", lambda a, b: a.maximum(b).minimum(1), lambda a, b: np.minimum(np.maximum(a, b), 1), (F, -P)),
  ("minimum_int", lambda a, b: a.minimum(b), np.minimum, (I, D)),
  ("clip", lambda a: a.clip(-1, 2), lambda a: a.clip(-1, 2), (F,)),
  ("exp", lambda a: a.exp(), np.exp, (F,)),
  ("exp2", lambda a: a.exp2(), np.exp2, (F,)),
  ("log", lambda a: a.log(), np.log, (P,)),
  ("log2", lambda a: a.log2(), np.log2, (P,)),
  ("sin", lambda a: a.sin(), np.sin, (F,)),
  ("cos", lambda a: a.cos(), np.cos, (F,)),
  ("sqrt", lambda a: a.sqrt(), np.sqrt, (P,)),
  ("rsqrt", lambda a: a.rsqrt(), lambda a: 1 / np.sqrt(a), (P,)),
  ("reciprocal", lambda a: a.reciprocal(), lambda a: 1 / a, (P,)),
  ("pow", lambda a: a ** 3, lambda a: a ** 3, (F,)),
  ("pow_root", lambda a: a ** 1.7, lambda a: a ** np.float32(1.7), (P,)),
  ("pow_tensor", lambda a, b: a ** b, lambda a, b: a ** b, (P, F)),
  ("rpow", lambda a: 2 ** a, lambda a: 2 ** a, (F,)),
  ("floor", lambda a: a.floor(), np.floor, (F,)),
  ("ceil", lambda a: a.ceil(), np.ceil, (F,)),
  ("round", lambda a: a.round(), np.round, (F,)),
  ("trunc", lambda a: a.trunc(), np.trunc, (F,)),
  ("sign", lambda a: a.sign(), np.sign, (F,)),
  ("abs", lambda a: abs(a), np.abs, (F,)),
  ("relu", lambda a: a.relu(), lambda a: np.maximum(a, 0), (F,)),
  ("sigmoid", lambda a: (a * 50).sigmoid(), lambda a: sigmoid(a * 50), (F,)),
  ("tanh", lambda a: a.tanh(), np.tanh, (F,)),
  ("gelu", lambda a: a.gelu(),
   lambda a: 0.5 * a * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (a + np.float32(0.044715) * a ** 3))), (F,)),
  ("silu", lambda a: a.silu(), lambda a: a * sigmoid(a), (F,)),
  ("softplus", lambda a: a.softplus(), lambda a: np.log1p(np.exp(a)), (F,)),
  ("sum", lambda a: a.sum(), lambda a: a.sum(), (F,)),
  ("sum_axis", lambda a: a.sum(0), lambda a: a.sum(0), (F,)),
  ("sum_keep", lambda a: a.sum((0, 1), keepdim=True), lambda a: a.sum((0, 1), keepdims=True), (F,)),
  ("sum_bool", lambda a: (a > 0).sum(), lambda a: (a > 0).sum().astype(np.int32), (F,)),
  ("prod", lambda a: a.prod(1), lambda a: a.prod(1), (P,)),
  ("max", lambda a: a.max(1), lambda a: a.max(1), (F,)),
  ("min_int", lambda a: a.min(0), lambda a: a.min(0), (I,)),
  ("mean", lambda a: a.mean(0), lambda a: a.mean(0), (F,)),
  ("mean_int", lambda a: a.mean(), lambda a: a.mean().astype(np.float32), (D,)),
  ("var", lambda a: a.var(1), lambda a: a.var(1, ddof=1), (F,)),
  ("std", lambda a: a.std(), lambda a: a.std(ddof=1), (F,)),
  ("any_all", lambda a: (a > 2).any(0) ^ (a > -2).all(0), lambda a: (a > 2).any(0) ^ (a > -2).all(0), (F,)),
  ("argmax", lambda a: a.argmax(1), lambda a: a.argmax(1).astype(np.int32), (F,)),
  ("argmin", lambda a: a.argmin(), lambda a: np.int32(a.argmin()), (F,)),
  ("cumsum", lambda a: a.cumsum(1), lambda a: a.cumsum(1), (F,)),
  ("softmax", lambda a: a.softmax(1), lambda a: softmax(a), (F,)),
  ("log_softmax", lambda a: a.log_softmax(0), lambda a: np.log(softmax(a, 0)), (F,)),
  ("logsumexp", lambda a: a.logsumexp(1), lambda a: np.log(np.exp(a).sum(1)), (F,)),
  ("layernorm", lambda a: a.layernorm(),
   lambda a: (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5), (F,)),
  ("matmul", lambda a, b: a @ b.T, lambda a, b: a @ b.T, (F, P)),
  ("matvec", lambda a, b: a @ b, lambda a, b: a @ b, (F, P[0])),
  ("vecmat", lambda a, b: a @ b, lambda a, b: a @ b, (F[:, 0].copy(), P)),
  ("batched", lambda a, b: a.reshape(3, 2, 2) @ b.reshape(3, 2, 2),
   lambda a, b: a.reshape(3, 2, 2) @ b.reshape(3, 2, 2), (F, P)),
  ("int_matmul", lambda a, b: a @ b.T, lambda a, b: a @ b.T, (D, D)),
  ("reshape", lambda a: a.reshape(2, -1).T.reshape(4, 3), lambda a: a.reshape(2, -1).T.reshape(4, 3), (F,)),
  ("permute", lambda a: a.reshape(3, 2, 2).permute(2, 0, 1), lambda a: a.reshape(3, 2, 2).transpose(2, 0, 1), (F,)),
  ("flip", lambda a: a.flip(0), lambda a: a[::-1], (F,)),
  ("pad", lambda a: a.pad([(1, 0), (2, 3)], value=1.5),
   lambda a: np.pad(a, [(1, 0), (2, 3)], constant_values=1.5), (F,)),
  ("pad_flat", lambda a: a.pad((1, -1)), lambda a: np.pad(a[:, :-1], [(0, 0), (1, 0)]), (F,)),
  ("repeat", lambda a: a.repeat(2, 3), lambda a: np.tile(a, (2, 3)), (F,)),
  ("interleave", lambda a: a.repeat_interleave(2, 1), lambda a: a.repeat(2, 1), (F,)),
  ("cat", lambda a, b: a.cat(b, a, dim=1), lambda a, b: np.concatenate([a, b, a], 1), (F, P)),
  ("stack", lambda a, b: a.stack(b, dim=1), lambda a, b: np.stack([a, b], 1), (F, P)),
  ("split", lambda a: a.split([1, 3], dim=1)[1] + a.chunk(2, dim=1)[0][:, :1], lambda a: a[:, 1:] + a[:, :1], (F,)),
  ("roll", lambda a: a.roll(1, 1), lambda a: np.roll(a, 1, 1), (F,)),
  ("slices", lambda a: a[::-2, 1:], lambda a: a[::-2, 1:], (F,)),
  ("negative_step", lambda a: a[..., ::-3], lambda a: a[..., ::-3], (F,)),
  ("take", lambda a: a[[2, 0, -1]], lambda a: a[[2, 0, -1]], (F,)),
  ("take_two", lambda a: a[[0, 2], [3, 1]], lambda a: a[[0, 2], [3, 1]], (F,)),
  ("triangle", lambda a: a.tril() - a.triu(1), lambda a: np.tril(a) - np.triu(a, 1), (F,)),
  ("one_hot", lambda a: (a % 3).one_hot(3), lambda a: np.eye(3, dtype=np.int32)[a % 3], (np.abs(D),)),
  ("saturating", lambda a: (a * 1e10).cast(dtypes.int32), lambda a: np.array(np.clip(
    (a * np.float32(1e10)).astype(np.float64), -2**31, 2**31 - 1), np.int64).astype(np.int32), (F,)),
  ("bitcast", lambda a: a.bitcast(dtypes.int32), lambda a: a.view(np.int32), (F,)),
]


@pytest.mark.parametrize(("name", "ours", "theirs", "inputs"), CASES, ids=[c[0] for c in CASES])
def test_a_function_agrees_with_numpy(name: str, ours: Any, theirs: Any, inputs: tuple[Array, ...],
                                      device: str) -> None:
  found = ours(*(Tensor(x, device=device) for x in inputs)).numpy()
  with np.errstate(all="ignore"): wanted = np.asarray(theirs(*inputs))
  assert found.shape == wanted.shape and found.dtype == wanted.dtype
  np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


def test_creation(device: str) -> None:
  Tensor.manual_seed(3)
  np.testing.assert_array_equal(Tensor.arange(3, 40, 4, device=device).numpy(), np.arange(3, 40, 4))
  np.testing.assert_array_equal(Tensor.eye(3, 4, device=device).numpy(), np.eye(3, 4))
  np.testing.assert_allclose(Tensor.linspace(-1, 1, 5, device=device).numpy(), np.linspace(-1, 1, 5), atol=1e-7)
  assert Tensor.zeros(2, 3, device=device).tolist() == [[0.0] * 3] * 2
  assert Tensor.full((2,), 7, device=device).tolist() == [7, 7]
  assert Tensor([[True], [False]], device=device).tolist() == [[True], [False]]
  assert Tensor(b"\x01\x02", device=device).tolist() == [1, 2]
  assert Tensor([1.5, -2], dtype=dtypes.bfloat16, device=device).tolist() == [1.5, -2.0]
  assert Tensor(5, device=device).item() == 5
  assert Tensor.ones(0, 3, device=device).sum().item() == 0
  assert Tensor.ones(0, 3, device=device).numpy().shape == (0, 3)


def test_random_numbers_have_their_distribution(device: str) -> None:
  Tensor.manual_seed(1)
  x, y = Tensor.rand(2000, device=device).numpy(), Tensor.randn(2000, device=device).numpy()
  assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - 0.5) < 0.02 and abs(x.std() - 0.2887) < 0.02
  assert abs(y.mean()) < 0.06 and abs(y.std() - 1) < 0.05 and len(np.unique(x)) > 1990
  n = Tensor.randint(500, low=-3, high=4, device=device).numpy()
  assert set(n.tolist()) == set(range(-3, 4))


def test_random_numbers_are_the_same_bits_on_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "gfx1100,sm_90")
  Device.close()
  try:
    found = []
    for device in ("LLVM", "PYTHON", "AMD", "NV"):
      Tensor.manual_seed(7)
      drawn = [Tensor.rand(300, device=device), Tensor.randn(3000, device=device),
               Tensor.randint(300, high=1000, device=device), Tensor.ones(300, device=device).multinomial(300),
               Tensor.empty(300, device=device).exponential_(), Tensor.trunc_normal(300, device=device)]
      found.append([t.numpy().tobytes() for t in drawn])
    assert all(f == found[0] for f in found)
  finally: Device.close()


# Random123's kat_vectors for threefry2x32, 20 rounds: counter, key, result.
THREEFRY = [((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
            ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
            ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0))]


@pytest.mark.parametrize(("counter", "key", "wanted"), THREEFRY)
def test_threefry_gives_the_published_vectors(counter: Any, key: Any, wanted: Any, device: str) -> None:
  words = [Tensor([w], dtype=dtypes.uint32, device=device).uop for w in (*counter, *key)]
  found = threefry((words[0], words[1]), (words[2], words[3]))
  assert tuple(Tensor(w).item() for w in found) == wanted


def test_assign_leaves_what_was_computed_alone(device: str) -> None:
  w = Tensor([1.0, 2.0], device=device).realize()
  lazy, view = w * 10, w.reshape(2, 1)
  w.assign(w + 1)
  assert w.tolist() == [2, 3] and lazy.tolist() == [10, 20] and view.tolist() == [[2], [3]]
  w[0] = 9
  assert w.tolist() == [9, 3]


SETS = [np.s_[0], np.s_[1:3, ::2], np.s_[..., -1], np.s_[::-2, 3:0:-1], np.s_[:, 1:1], np.s_[2, 1], np.s_[:]]


@pytest.mark.parametrize("index", SETS, ids=str)
def test_parts_are_assigned(index: Any, device: str) -> None:
  wanted, tensor = F.copy(), Tensor(F, device=device)
  other = np.arange(wanted[index].size, dtype=np.float32).reshape(wanted[index].shape) + 100
  wanted[index] = other
  tensor[index] = Tensor(other, device=device)
  np.testing.assert_array_equal(tensor.numpy(), wanted)
  tensor[index], wanted[index] = -1, -1
  tensor[tensor > 5] = 0
  wanted[wanted > 5] = 0
  np.testing.assert_array_equal(tensor.numpy(), wanted)


def test_numpy_data_keeps_its_type() -> None:
  for data in (np.float64(3.5), np.array(2, np.int8), np.arange(6, dtype=np.uint16)[::-2], np.arange(3, dtype=">i4")):
    found = Tensor(data).numpy()
    np.testing.assert_array_equal(found, data)
    assert found.dtype == np.asarray(data).dtype.newbyteorder("=")


def test_copies_between_devices(device: str) -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]]).T
  y = (x.to(device) + 1).to("PYTHON")
  assert y.device == "PYTHON" and y.tolist() == [[2, 4], [3, 5]]


@pytest.mark.parametrize("shape", [(3, 4099), (1, 16384), (700, 9), (2, 33, 129), (4096,)])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_long_reductions(shape: tuple[int, ...], axis: int | None, device: str) -> None:
  x = np.random.default_rng(seed(1)).integers(-1000, 1000, shape).astype(np.int32)
  t = Tensor(x, device=device)
  np.testing.assert_array_equal(t.sum(axis).numpy(), x.sum(axis, dtype=np.int32))
  np.testing.assert_array_equal(t.float().max(axis).numpy(), x.max(axis).astype(np.float32))


@pytest.mark.parametrize("size", [17, 64, 100])
def test_matrix_products(size: int, device: str) -> None:
  a, b = np.random.default_rng(seed(2)).integers(-9, 9, (2, size, size)).astype(np.float32)
  x, y = Tensor(a, device=device), Tensor(b, device=device)
  np.testing.assert_array_equal((x @ y).numpy(), a @ b)
  np.testing.assert_array_equal((x.T @ y + 1).relu().numpy(), np.maximum(a.T @ b + 1, 0))


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrix_rank(rank: int, dtype: str) -> None:
  """Products of thin matrices of whole numbers have the rank of these; rounding adds none."""
  draw = np.random.default_rng(rank)
  matrices = np.stack([draw.integers(-3, 4, (5, rank)) @ draw.integers(-3, 4, (rank, 4)) for _ in range(3)])
  expected = np.linalg.matrix_rank(matrices.astype(np.float64))
  np.testing.assert_array_equal(Tensor(matrices.astype(dtype)).matrix_rank().numpy(), expected)


def test_matrix_rank_by_a_tolerance() -> None:
  x = np.diag([4.0, 1.0, 0.25]).astype(np.float32)
  assert [Tensor(x).matrix_rank(tol=tol).item() for tol in (0.1, 0.5, 2, 5)] == [3, 2, 1, 0]
  assert Tensor(x[:, :0]).matrix_rank().item() == 0


def test_covariances_with_weights() -> None:
  draw = np.random.default_rng(5)
  x, f, a = draw.standard_normal((3, 6)), draw.integers(1, 4, 6), draw.uniform(0.5, 2, 6)
  for fweights in (None, f):
    for aweights in (None, a):
      for correction in (0, 1):
        got = Tensor(x).cov(correction=correction, fweights=None if fweights is None else Tensor(fweights),
                            aweights=None if aweights is None else Tensor(aweights))
        np.testing.assert_allclose(got.numpy(), np.cov(x, ddof=correction, fweights=fweights, aweights=aweights), 1e-9)
