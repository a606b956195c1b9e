"""Tensors on another host: LLVM's code for the lowest level of processors, NumPy and the C library without what newer
processors have. Every device gives the bits that it gives here."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.strength import THOROUGH
from tinyhw import Tensor, dtypes
from tinyhw.core.host import levels

ALL = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
DEVICES = {"LLVM": (dtypes.float16, dtypes.float32), "PYTHON": ALL, "AMD": (dtypes.float32,)}


def digests(device: str) -> dict[str, str]:
  """Values of programs as their bits; a NaN is any NaN."""
  rng, found = np.random.default_rng(0), {}
  a, b = (rng.uniform(-4, 4, (17, 33)) for _ in range(2))
  a[0, :8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 65504.0, 1e30]
  for dtype in ALL if THOROUGH else DEVICES[device]:
    with np.errstate(all="ignore"): x, y = (Tensor(v.astype(np.float32), device=device).cast(dtype) for v in (a, b))
    whole = [t.cast(k) for t in (x, y) for k in (dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.int64)]
    values = {"sum": y.sum(0), "mean": y.mean(), "matmul": y @ y.transpose(0, 1), "softmax": y.softmax(1),
              "max": x.maximum(y), "fused": x * y + x, "divided": x / y, "exp": x.exp(), "log": y.abs().log(),
              "sin": y.sin(), "tanh": y.tanh(), "sqrt": y.abs().sqrt(), "trunc": x.trunc()}
    values |= {f"whole {k}": t for k, t in enumerate(whole)}
    for name, t in values.items():
      array = (t.cast(dtypes.float32) if t.dtype == dtypes.bfloat16 else t).numpy()
      if array.dtype.kind == "f": array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
      found[f"{name} {dtype.name}"] = hashlib.sha256(array.tobytes()).hexdigest()
  return found


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_gives_the_same_bits(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  here = digests(device)
  simd = np.show_config(mode="dicts")["SIMD Extensions"]
  environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", [])),
                              "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX512F",
                              "TINYHW_CPU": levels(llvm.get_process_triple(), llvm.get_host_cpu_features())[0]}
  code = f"import json; from tests.tensor.test_host_levels import digests; print(json.dumps(digests({device!r})))"
  done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)
  assert not done.returncode, done.stderr
  there = json.loads(done.stdout)
  assert sorted(n for n in here if here[n] != there[n]) == []
