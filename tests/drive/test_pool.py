"""Native threads of the host: the same bits for any number of them, from several Python threads, after a fork."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.core.errors import InvalidArgument
from tinyhw.drive import pool as pools
from tinyhw.drive.cpu import compiled

SMALL = 192
CODE = """
import os
from tests.drive.test_pool import digest
child = os.fork() if {fork} else 0
if child: raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(digest(), flush=True)
if {fork}: os._exit(0)
"""


def product() -> Tensor:
  rng = np.random.default_rng(3)
  a, b = (Tensor(rng.standard_normal((SMALL, SMALL), dtype=np.float32), device="LLVM") for _ in range(2))
  return (a @ b).realize()


def digest() -> str:
  """Of values that large kernels give: products in tiles, sums, long arithmetic."""
  x = product()
  values = [x, x.exp().sum(0), (x * 2 + 1).sin(), x.softmax(1), x.sum()]
  return hashlib.sha256(b"".join(v.numpy().tobytes() for v in values)).hexdigest()


@pytest.mark.parametrize(("threads", "fork"), [(1, False), (3, False), (5, True)])
def test_values_do_not_depend_on_threads(threads: int, fork: bool) -> None:
  """Nor on whether the pool is that of a forked child, whose parent had one."""
  before = "from tests.drive.test_pool import product; product(); " if fork else ""
  done = subprocess.run([sys.executable, "-W", "ignore", "-c", before + CODE.format(fork=fork)], text=True,
                        env=os.environ | {pools.VARIABLE: str(threads)}, capture_output=True, timeout=60)
  assert not done.returncode, done.stderr
  assert done.stdout.strip() == digest()


def test_several_python_threads_launch_at_once() -> None:
  """One of them has the pool at a time, the others compute alone."""
  wanted, found = product().numpy(), []
  def one() -> None:
    for _ in range(5): found.append(product().numpy())
  threads = [threading.Thread(target=one) for _ in range(4)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert len(found) == 20 and all((f == wanted).all() for f in found)


def test_a_pool_ends_and_is_alone_then() -> None:
  if not pools.supported(): pytest.skip("no pool on this system")
  made = pools.Pool(compiled(pools.source()), 4)
  assert made.size == 4
  made.stop()
  made.stop()
  assert made.size == 1


@pytest.mark.parametrize("text", ["0", "none", "65", "-1"])
def test_a_wrong_number_of_threads(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv(pools.VARIABLE, text)
  with pytest.raises(InvalidArgument, match="TINYHW_CORES: .* is no number of threads from 1 to 64"): pools.cores()
