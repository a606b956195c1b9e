"""What factors of matrices, spectra and bags refuse, and what PyTorch's values do not say."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tinyhw import InvalidArgument, InvalidShape, InvalidType, Tensor, nn
from tinyhw.core.errors import InvalidIndex, Unsupported


def signal() -> Tensor: return Tensor.ones(40)
def eye() -> Tensor: return Tensor.eye(3)
def ones() -> Tensor: return Tensor.ones(3, 2)
def places() -> Tensor: return Tensor([1, 2, 2, 0])
def none() -> Tensor: return Tensor([0])


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
  "lu of a vector": (lambda: signal().lu_factor(), InvalidShape, "it is for matrices"),
  "pivots": (lambda: eye().lu_unpack(Tensor([1, 2])), InvalidShape, r"integers of shape \(3,\)"),
  "lu_solve": (lambda: ones().lu_solve(ones(), Tensor([1, 2])), InvalidShape, "columns for square matrices"),
  "eigh": (lambda: ones().eigh(), InvalidShape, "it is for square matrices"),
  "half": (lambda: eye().eigh("X"), InvalidArgument, '"L" or "U"'),
  "driver": (lambda: ones().lstsq(ones(), driver="qr"), InvalidArgument, "gelsy, gels"),
  "rows": (lambda: ones().lstsq(Tensor.ones(4, 1)), InvalidShape, "it needs 3 rows"),
  "types": (lambda: ones().lstsq(ones().double()), InvalidArgument, "float32 and"),
  "tensorinv": (lambda: Tensor.ones(2, 3, 4).tensorinv(), InvalidShape, "6 elements meet 4"),
  "tensorsolve": (lambda: ones().tensorsolve(eye()), InvalidShape, "tensorsolve of shape"),
  "complex": (lambda: signal().stft(8, return_complex=True), Unsupported, "the last axis is real, imaginary"),
  "stft of integers": (lambda: Tensor([1, 2]).stft(2), InvalidType, "for floats"),
  "hop": (lambda: signal().stft(8, 0), InvalidArgument, "it is positive"),
  "window": (lambda: signal().stft(8, window=Tensor.ones(7)), InvalidShape, "win_length is 8"),
  "wide window": (lambda: signal().stft(8, win_length=9), InvalidArgument, "win_length <= n_fft = 8"),
  "short": (lambda: signal().stft(41, center=False), InvalidShape, "n_fft <= 40"),
  "parts": (lambda: Tensor.ones(5, 6).istft(8), InvalidShape, "5 frequencies, windows, 2"),
  "pairs": (lambda: Tensor.ones(4, 3).fft(), InvalidShape, "real and imaginary parts"),
  "norm": (lambda: Tensor.ones(4).rfft(norm="half"), InvalidArgument, "norm 'half'"),
  "axis of parts": (lambda: Tensor.ones(4, 2).fft(dim=1), InvalidIndex, "without that of the parts"),
  "fft of integers": (lambda: Tensor([1, 2]).rfft(), InvalidType, "for floats"),
  "exp": (lambda: Tensor.ones(2, 3).matrix_exp(), InvalidShape, "for square matrices"),
  "zeros": (lambda: Tensor.ones(5, 6, 2).istft(8, window=Tensor.zeros(8)), InvalidArgument, "leave out elements"),
  "mode": (lambda: places().embedding_bag(ones(), none(), mode="min"), InvalidArgument, '"sum", "mean", "max"'),
  "no bags": (lambda: places().embedding_bag(ones()), InvalidArgument, "a vector needs them"),
  "both": (lambda: places().reshape(2, 2).embedding_bag(ones(), none()), InvalidArgument, "each row is a bag"),
  "floats": (lambda: signal().embedding_bag(ones(), none()), InvalidType, "positions are integers"),
  "weights": (lambda: places().embedding_bag(ones(), none(), per_sample_weights=signal(), mode="sum"), InvalidArgument,
              "one for each position"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
  call, kind, message = REFUSED[what]
  with pytest.raises(kind, match=message): call()


def test_gradients_of_a_bag_by_frequency() -> None:
  """As documented; PyTorch 2.13 itself divides by the count of another row."""
  table = Tensor.ones(3, 2, requires_grad=True)
  places().embedding_bag(table, Tensor([0, 3]), scale_grad_by_freq=True, mode="sum").sum().backward()
  assert table.grad is not None and table.grad.tolist() == [[1.0, 1.0]] * 3


def test_a_table_is_shortened_in_place() -> None:
  layer = nn.EmbeddingBag(3, 2, max_norm=1.0, mode="max")
  layer.weight.assign(Tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])).realize()
  assert np.allclose(layer(Tensor([[0, 1]])).numpy(), [[0.6, 0.8]])
  assert np.allclose(layer.weight.numpy(), [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]])
  assert repr(layer) == "EmbeddingBag(3, 2, mode='max')"


def test_a_spectrum_and_back() -> None:
  signal, window = Tensor(np.sin(np.arange(37, dtype=np.float32))), Tensor.hann_window(10) + 0.1
  there = signal.stft(16, 4, 10, window, normalized=True)
  assert there.shape == (9, 10, 2)
  np.testing.assert_allclose(there.istft(16, 4, 10, window, normalized=True, length=37).numpy()[:36],
                             signal.numpy()[:36], atol=1e-6)


def complex_of(pairs: Any) -> Any:
  return pairs[..., 0] + 1j * pairs[..., 1]


@pytest.mark.parametrize("n", [1, 7, 98])
def test_fouriers_transforms(n: int) -> None:
  """As NumPy has them, by one product and taken apart; there and back again."""
  random = np.random.default_rng(n)
  pairs = random.normal(size=(2, n, 2)).astype(np.float32)
  z, x = complex_of(pairs), Tensor(pairs, device="PYTHON")
  close = partial(np.testing.assert_allclose, rtol=1e-4, atol=2e-5)
  close(complex_of(x.fft(norm="ortho").numpy()), np.fft.fft(z, norm="ortho"))
  close(complex_of(x.ifft(n + 1, dim=-2).numpy()), np.fft.ifft(z, n + 1, axis=0))
  close(complex_of(x[..., 0].rfft().numpy()), np.fft.rfft(z.real))
  close(x.irfft(2 * n + 1, norm="forward").numpy(), np.fft.irfft(z, 2 * n + 1, norm="forward"))
  assert np.array_equal(np.fft.fftfreq(n, 0.5).astype(np.float32), Tensor.fftfreq(n, 0.5).numpy())
  assert np.array_equal(np.fft.rfftfreq(n).astype(np.float32), Tensor.rfftfreq(n).numpy())
  shifted = Tensor.arange(n).fftshift()
  assert np.array_equal(np.fft.fftshift(np.arange(n)), shifted.numpy())
  assert shifted.ifftshift().tolist() == list(range(n))


def test_fouriers_transforms_along_several_axes() -> None:
  pairs = np.random.default_rng(3).normal(size=(2, 3, 4, 2))
  z, x = complex_of(pairs), Tensor(pairs, device="PYTHON")
  for name, told in (("fftn", {}), ("ifft2", {}), ("ifftn", {"dim": (0, 2)}), ("fft2", {"s": (4, 3)})):
    there = {"axes" if k == "dim" else k: v for k, v in told.items()}
    np.testing.assert_allclose(complex_of(getattr(x, name)(**told).numpy()), getattr(np.fft, name)(z, **there),
                               atol=1e-12)
  np.testing.assert_allclose(complex_of(x[..., 0].rfftn().numpy()), np.fft.rfftn(z.real), atol=1e-12)
  np.testing.assert_allclose(complex_of(x[..., 1].rfft2().numpy()), np.fft.rfft2(z.imag), atol=1e-12)
  np.testing.assert_allclose(x.irfftn().numpy(), np.fft.irfftn(z), atol=1e-12)
  np.testing.assert_allclose(x.irfft2(s=(3, 5)).numpy(), np.fft.irfft2(z, s=(3, 5)), atol=1e-12)
  signal = Tensor(pairs[..., 0], requires_grad=True, device="PYTHON")
  weight = Tensor(np.random.default_rng(4).normal(size=(2, 3, 3, 2)), device="PYTHON")
  (signal.rfft() * weight).sum().backward()
  assert signal.grad is not None
  want = np.fft.fft(complex_of(weight.numpy()).conj(), 4, axis=-1).real       # the transform's transposed matrix
  np.testing.assert_allclose(signal.grad.numpy(), want, atol=1e-12)


def test_exponentials_of_matrices() -> None:
  """[[0, -t], [t, 0]] turns by t; the derivative of the trace is the exponential, transposed."""
  for t in (0.5, 40.0):
    turn = Tensor([[0.0, -t], [t, 0.0]], dtype="float64", device="PYTHON").matrix_exp().numpy()
    np.testing.assert_allclose(turn, [[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]], atol=1e-12)
  x = Tensor([[[0.0, 1.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, -50.0]]], requires_grad=True, device="PYTHON")
  found = x.matrix_exp()
  values, vectors = np.linalg.eig(x.numpy()[1].astype(np.float64))
  want = vectors @ np.diag(np.exp(values)) @ np.linalg.inv(vectors)
  np.testing.assert_allclose(found.numpy(), [[[1, 1], [0, 1]], want], rtol=1e-5, atol=1e-6)
  found.diagonal(0, -2, -1).sum().backward()
  assert x.grad is not None
  np.testing.assert_allclose(x.grad.numpy(), found.numpy().swapaxes(1, 2), rtol=1e-4, atol=1e-5)
  assert Tensor([[1e9]], device="PYTHON").matrix_exp().isnan().item()
