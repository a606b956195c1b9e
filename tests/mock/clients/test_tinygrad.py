"""tinygrad's own driver for /dev/kfd, unmodified, beside NumPy. TINYHW_TINYGRAD names a Python that has it."""
from __future__ import annotations

import os

import pytest

from tests.mock.clients.running import run

PROGRAM = """
from tinygrad import Device, Tensor, TinyJit
import numpy as np
assert Device.DEFAULT == "AMD"
rng = np.random.default_rng(0)
a, b = rng.standard_normal((64, 48)).astype(np.float32), rng.standard_normal((48, 33)).astype(np.float32)
assert (Tensor([1, 2, 3]) + 1).tolist() == [2, 3, 4]
np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(Tensor(a).softmax(1).numpy().sum(1), 1, rtol=1e-5)
f = TinyJit(lambda t, s: ((t * 2 + 1).contiguous() + s).realize())
for i in range(5):
  t, s = (Tensor(np.full((4, 4), n, np.float32)).realize() for n in (i, 10 * i))
  assert f(t, s).numpy().tolist() == [[12.0 * i + 1] * 4] * 4
big = np.arange(1 << 20, dtype=np.float32)
np.testing.assert_array_equal((Tensor(big) + 1).numpy(), big + 1)
print("end")
"""


def test_its_programs() -> None:
  python = os.environ.get("TINYHW_TINYGRAD")
  if python is None: pytest.skip("TINYHW_TINYGRAD names no Python that has tinygrad")
  done = run(python, "-c", PROGRAM, DEV="AMD")
  assert done.stdout == "end\n" and not done.returncode, done.stderr
  assert "hung" not in done.stderr
