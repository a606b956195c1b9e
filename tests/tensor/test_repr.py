"""What print(tensor) shows: the value, shape, dtype and device; it never raises."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, dtypes


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_value_shape_dtype_and_device_are_shown(device: str) -> None:
  x = Tensor([[1.5, 2.0], [3.0, -4.25]], device=device, requires_grad=True)
  assert str(x) == repr(x) == f"{x}" == (
    "Tensor([[ 1.5 ,  2.  ],\n        [ 3.  , -4.25]], shape=(2, 2), dtype=dtypes.float32, "
    f"device='{device}', requires_grad=True)")
  assert str((x.detach() * 2)[1]) == f"Tensor([ 6. , -8.5], shape=(2,), dtype=dtypes.float32, device='{device}')"
  assert str(Tensor(7, device=device)) == f"Tensor(7, shape=(), dtype=dtypes.int32, device='{device}')"
  assert str(Tensor([True], device=device)).startswith("Tensor([ True], shape=(1,), dtype=dtypes.bool")
  assert str([Tensor([1], device=device)]) == f"[Tensor([1], shape=(1,), dtype=dtypes.int32, device='{device}')]"


def test_large_empty_and_narrow_ones() -> None:
  text = str(Tensor(np.arange(1 << 20, dtype=np.int32)))
  assert text.startswith("Tensor([      0,       1,       2, ..., 1048573, 1048574, 1048575], shape=(1048576,)")
  assert str(Tensor.zeros(0, 3)) == "Tensor([], shape=(0, 3), dtype=dtypes.float32, device='LLVM')"
  assert str(Tensor([1.5], dtype=dtypes.bfloat16)).startswith("Tensor([1.5], shape=(1,), dtype=dtypes.bfloat16")
  assert "nan" in str(Tensor([float("nan")])) and "inf" in str(Tensor([float("-inf")]))


def test_a_recording_is_not_disturbed() -> None:
  seen: list[str] = []

  @TinyJit
  def f(x: Tensor) -> Tensor:
    y = x * 2
    seen.append(repr(y))
    return y + 1
  for k in range(4): assert f(Tensor([float(k)])).tolist() == [2 * k + 1]
  assert any("not computed while a TinyJit records" in text for text in seen), seen
  assert all(text.startswith("Tensor(") and "shape=(1,)" in text for text in seen)


def test_one_that_is_not_made_yet_is_shown() -> None:
  assert repr(Tensor.__new__(Tensor)) == "Tensor(<not made yet>)"


LOST = """
import tinyhw
from tinyhw import Tensor, Device
x = Tensor([1.0, 2.0], device="AMD").realize()
y, bad = x + 1, Tensor.full((2,), 1.0, device="METAL") + 1
Device.close()
print(repr(x)); print(repr(y)); print(bad)
"""


def test_what_cannot_be_had_says_why() -> None:
  done = subprocess.run([sys.executable, "-c", LOST], env={"MOCKGPU": "1", "PATH": "/usr/bin", "HOME": "/tmp"},
                        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=120)
  assert done.returncode == 0, done.stderr
  lost, computed, missing = done.stdout.splitlines()
  for text in (lost, computed):
    assert text.startswith("Tensor(<AMD: ") and "was lost" in text and "shape=(2,)" in text, text
  assert missing.startswith("Tensor(<unsupported device METAL"), missing
