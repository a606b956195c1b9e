"""Vectors of the host begin at any element: a row of an odd length, a window that moves by one."""
from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor

SIZES = st.sampled_from([4, 8, 16, 32])


@pytest.mark.parametrize("device", ["LLVM", "C"])
@settings(max_examples=examples(25), deadline=None)
@given(rows=st.integers(1, 5), size=SIZES, before=st.integers(0, 5), after=st.integers(0, 5), summed=st.booleans(),
       kind=st.sampled_from(["float32", "float64", "int16", "uint8"]))
def test_rows_begin_anywhere(device: str, rows: int, size: int, before: int, after: int, summed: bool,
                             kind: Any) -> None:
  if device == "C" and shutil.which("clang") is shutil.which("gcc") is None: pytest.skip("there is no C compiler")
  whole = (np.arange(rows * (before + size + after)) % 97).astype(kind).reshape(rows, -1)
  other = (np.arange(rows * size) % 89).astype(kind).reshape(rows, size)
  part = whole[:, before:before + size]
  got = Tensor(whole, device=device)[:, before:before + size] * Tensor(other, device=device)
  want = part * other
  if summed: got, want = got.sum(1, dtype=got.dtype), want.sum(1, dtype=want.dtype)
  np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_a_window_that_moves_by_one() -> None:
  """The gradient of a convolution's weights walks rows of 5 elements, four at a time."""
  rng = np.random.default_rng(0)
  x, g = (rng.normal(size=s).astype(np.float32) for s in ((2, 4, 7, 5), (2, 6, 6, 4)))
  w = Tensor.zeros(6, 2, 3, 2, requires_grad=True)
  y = Tensor(x).conv2d(w, groups=2, dilation=(2, 1), padding=(1, 0))
  assert y.shape == (2, 6, 5, 4)
  (y * Tensor(g[:, :, :5])).sum().backward()
  padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
  want = np.zeros((6, 2, 3, 2))
  for o in range(6):
    for c in range(2):
      for i in range(3):
        for j in range(2):
          want[o, c, i, j] = (padded[:, o // 3 * 2 + c, 2 * i:2 * i + 5, j:j + 4] * g[:, o, :5]).sum()
  assert w.grad is not None
  np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-4, atol=1e-4)
