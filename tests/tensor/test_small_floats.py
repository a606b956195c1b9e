"""Tensors of 8-bit floats on every device, against ml_dtypes: every number, every pair, and what is too large."""
from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.strength import THOROUGH, seed
from tinyhw import Tensor, dtypes
from tinyhw.ir.dtype import DType

KINDS = {dtypes.float8_e4m3fn: ml_dtypes.float8_e4m3fn, dtypes.float8_e5m2: ml_dtypes.float8_e5m2,
         dtypes.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz}
kinds = pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.name)
EVERY = np.arange(256, dtype=np.uint8)


def check(found: Tensor, wanted: np.ndarray[Any, Any]) -> None:
  """The same bits, but for NaN's."""
  nan = np.isnan(wanted.astype(np.float32))
  bits = found.bitcast(dtypes.uint8).numpy()
  assert ((bits == wanted.view(np.uint8)) | nan).all()
  assert np.isnan(found.numpy()[nan]).all()


@kinds
def test_what_moves_keeps_its_bits(dtype: DType, device: str) -> None:
  x = Tensor(EVERY, device=device).bitcast(dtype).contiguous().realize()
  assert (x.bitcast(dtypes.uint8).numpy() == EVERY).all()
  assert (x.flip(0).contiguous().bitcast(dtypes.uint8).numpy() == EVERY[::-1]).all()
  np.testing.assert_array_equal(x.numpy(), EVERY.view(KINDS[dtype]).astype(np.float32))
  assert x.data().format == "B" and x.nbytes() == 256


@kinds
def test_conversions_and_arithmetic(dtype: DType, device: str) -> None:
  rng = np.random.default_rng(seed(5))
  data = (rng.normal(size=1000) * np.exp2(rng.integers(-20, 18, 1000))).astype(np.float32)
  data[:8] = [math.inf, -math.inf, math.nan, 0.0, -0.0, 464.0, 465.0, 61440.0]
  with np.errstate(all="ignore"):
    check(Tensor(data, device=device).cast(dtype), data.astype(KINDS[dtype]))
    a, b = EVERY.view(KINDS[dtype]), rng.permutation(EVERY).view(KINDS[dtype])
    x, y = (Tensor(v.view(np.uint8), device=device).bitcast(dtype) for v in (a, b))
    some = ((x * y, a * b), (-x, -a), (x + y, a + b), (x - y, a - b), (x / y, a / b), (x.sqrt(), np.sqrt(a)))
    for found, wanted in some[:2 if device == "AMD" and not THOROUGH else None]:
      assert found.dtype is dtype
      check(found, wanted)
    np.testing.assert_array_equal((x < y).numpy(), a < b)
    np.testing.assert_array_equal(x.cast(dtypes.int32).numpy()[a == a], np.trunc(np.nan_to_num(
      a.astype(np.float64), posinf=2.0**31 - 1, neginf=-2.0**31)).astype(np.int64)[a == a])


@kinds
def test_lists_and_reductions(dtype: DType, device: str) -> None:
  x = Tensor([1.5, -0.001, 3.0, 0.0], dtype=dtype, device=device)
  assert x.tolist() == np.array([1.5, -0.001, 3.0, 0.0], KINDS[dtype]).astype(np.float32).tolist()
  assert x.max().item() == 3.0 and x.min().item() == x.tolist()[1] and x[:1].sum().item() == 1.5
  assert (x.float() @ x.float()).item() == pytest.approx(11.25)
  assert Tensor([1e6], dtype=dtype, device=device).isnan().item() == (dtype is not dtypes.float8_e5m2)
