"""What arithmetic on this processor costs beside NumPy's: cases of `tinyhw bench`."""
from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhw.cli.measure import Seconds, child, repeat, rest
from tinyhw.core.errors import Error

MANY = 16 << 20


def _softmax(x: Any) -> Any:
  e = np.exp(x - x.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)


@dataclass(frozen=True)
class Work:
  """Arithmetic on arrays of random float32 of these shapes, in Tensor and in NumPy (where it has that)."""
  shapes: tuple[tuple[int, ...], ...]
  tensor: Callable[..., Any]
  numpy: Callable[..., Any] | None
  name: str = ""  # in this module
  text: str = ""  # of `tensor`, on operands a and b

  def arrays(self) -> list[Any]:
    """The operands, 0 to 1."""
    rng = np.random.default_rng(0)
    return [rng.random(shape, dtype=np.float32) for shape in self.shapes]

  def ours(self) -> Seconds:
    """Warm: graph, cached kernels, launches, wait."""
    from tinyhw import Device, Tensor
    operands = [Tensor(a, device="LLVM").realize() for a in self.arrays()]
    def run() -> Tensor:
      result: Tensor = self.tensor(*operands).realize()
      Device["LLVM"].synchronize()
      return result
    if self.numpy is not None and not np.allclose(run().numpy(), self.numpy(*self.arrays()), rtol=1e-4, atol=1e-5):
      raise Error("wrong values", where="LLVM")
    rest()
    return repeat(run, runs=15, warm=3)

  def searched(self) -> Seconds:
    """As `ours`, in a process of its own that has searched for the kernels' options (`BEAM=2`) before."""
    code = f"from tinyhw.cli.arithmetic import {self.name}; print({self.name}.ours())"
    with tempfile.TemporaryDirectory() as folder:
      return [float(text) for text in child(code, BEAM="2", CACHEDB=folder).strip("[]\n").split(", ")]

  def theirs(self) -> Seconds:
    """The same in NumPy."""
    operands, function = self.arrays(), self.numpy
    assert function is not None
    return repeat(lambda: function(*operands), runs=15, warm=3)

  def tinygrads(self) -> Seconds:
    """The same text on tinygrad's Tensor and this processor, through clang, in a process of its own."""
    code = ("import time\nfrom tinyhw.cli.arithmetic import Work\nfrom tinygrad import Device, Tensor\n"
            f"a, b = ([Tensor(x).realize() for x in Work({self.shapes}, len, None).arrays()] * 2)[:2]\n"
            "def run():\n"
            "  start = time.perf_counter()\n"
            f"  ({self.text}).realize()\n"
            "  Device[Device.DEFAULT].synchronize()\n"
            "  return time.perf_counter() - start\n"
            "for _ in range(3): run()\n"
            "print([run() for _ in range(15)])")
    return [float(text) for text in child(code, DEV="CPU", CPU="1").strip("[]\n").split(", ")]


def _product(n: int) -> Work:
  """A product of two matrices of n by n."""
  return Work(((n, n), (n, n)), lambda a, b: a @ b, lambda a, b: a @ b, f"PRODUCT_{n}")


PRODUCT_512, PRODUCT_1024 = map(_product, (512, 1024))
ADD = Work(((MANY,), (MANY,)), lambda a, b: a + b, lambda a, b: a + b)
SUM = Work(((MANY,),), lambda a: a.sum(), lambda a: a.sum())
CHAIN = Work(((MANY,), (MANY,)), lambda a, b: (a * 2 + b) * a - b, lambda a, b: (a * 2 + b) * a - b)
SOFTMAX = Work(((512, 1024),), lambda a: a.softmax(), _softmax, "SOFTMAX", "a.softmax()")
CONVOLUTION = Work(((4, 16, 32, 32), (32, 16, 3, 3)), lambda x, w: x.conv2d(w), None, text="a.conv2d(b)")


def new_kernel() -> Seconds:
  """From a tensor expression of a shape that was never seen to its value: schedule, compile, link, run."""
  from tinyhw import Tensor
  sizes, kept = itertools.count(1001, 2), os.environ.get("CACHEDB")
  os.environ["CACHEDB"] = "0"
  def run() -> Any: return (Tensor.full((next(sizes),), 2.0, device="LLVM").contiguous() * 3 + 1).sum().item()
  try: return repeat(run, runs=15, warm=2)
  finally:
    del os.environ["CACHEDB"]
    if kept is not None: os.environ["CACHEDB"] = kept
