"""What factors of matrices, spectra and bags refuse, and what PyTorch's values do not say."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import InvalidArgument, InvalidShape, InvalidType, Tensor, nn
from tinyhw.core.errors import Unsupported


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
