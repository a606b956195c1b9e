"""Costs that may grow with what lives, and first calls of programs with many steps: cases of `tinyhw bench`."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.cli.measure import Seconds, child, repeat

CARDS: Final = {"LLVM": "", "AMD": "gfx1100", "NV": "sm_90", "CUDA": "sm_90"}
LSTM: Final = '''
import time
from tinyhw import Tensor
STEPS, LAYERS, UNITS = 12, 2, 16
def weight(*shape): return (Tensor.randn(*shape) * 0.1).realize().requires_grad_()
layers = [(weight(UNITS, 4 * UNITS), weight(UNITS, 4 * UNITS), weight(4 * UNITS)) for _ in range(LAYERS)]
words = [Tensor.randn(4, UNITS).realize() for _ in range(STEPS)]
start = time.perf_counter()
h, c = ([Tensor.zeros(4, UNITS) for _ in layers] for _ in range(2))
for x in words:
  for n, (inner, outer, bias) in enumerate(layers):
    i, f, g, o = ((x @ inner + h[n] @ outer + bias)[:, UNITS * k:UNITS * (k + 1)] for k in range(4))
    c[n] = f.sigmoid() * c[n] + i.sigmoid() * g.tanh()
    x = h[n] = o.sigmoid() * c[n].tanh()
loss = (x * x).sum()
loss.backward()
Tensor.realize(loss, *(w.grad for layer in layers for w in layer))
assert 0 < loss.item() < 100
print(time.perf_counter() - start)
'''
ALLOCATIONS: Final = '''
import statistics, time
from tinyhw import Device
runtime = Device[Device.DEFAULT].runtime
held = [runtime.alloc(4096) for _ in range({live})]
seconds = []
for _ in range(300):
  start = time.perf_counter()
  one = runtime.alloc(4096)
  seconds.append(time.perf_counter() - start)
  held.append(one)
print(statistics.median(seconds))
'''


def lstm(device: str) -> Seconds:
  """Loss and gradients of two layers of an LSTM over twelve steps, from the graph on, with nothing kept."""
  return [float(child(LSTM, DEV=device, MOCKGPU=CARDS[device], CACHEDB="0", TINYHW_CACHE="0")) for _ in range(2)]


def allocation(device: str, live: int) -> Seconds:
  """4 KiB more where so many are there."""
  return [float(child(ALLOCATIONS.format(live=live), DEV=device, MOCKGPU=CARDS[device])) for _ in range(3)]


def listed(numpy: bool) -> Seconds:
  """A tensor, or an array, of a list of a million floats."""
  from tinyhw import Tensor
  values = [float(k) for k in range(1_000_000)]
  def made() -> Any: return np.array(values, np.float32) if numpy else Tensor(values, device="LLVM").realize()
  return repeat(made, runs=5)
