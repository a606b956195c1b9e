"""What a launch, a copy and a training step cost beside the arithmetic: cases of `tinyhw bench`."""
from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tinyhw.cli.measure import Seconds, child, repeat, settle
from tinyhw.core.errors import Error

CONVNET = '''
import time; start = time.perf_counter()
import numpy as np
from tinyhw import Tensor, nn
def weights(*shape):
  bound = float(np.prod(shape[1:])) ** -0.5
  return Tensor.uniform(*shape, low=-bound, high=bound, requires_grad=True)
first, second, hidden, last = weights(16, 1, 3, 3), weights(32, 16, 3, 3), weights(64, 800), weights(10, 64)
optimizer, rng = nn.optim.Adam([first, second, hidden, last], lr=1e-3), np.random.default_rng(0)
x = Tensor(rng.random((64, 1, 28, 28), dtype=np.float32))
y = Tensor(rng.integers(0, 10, 64).astype(np.int32))
with Tensor.train():
  x = x.conv2d(first).relu().max_pool2d(2).conv2d(second).relu().max_pool2d(2)
  loss = ((x.reshape(64, -1) @ hidden.T).relu() @ last.T).cross_entropy(y)
  loss.backward()
  optimizer.step()
  assert 2 < loss.item() < 3
print(time.perf_counter() - start)
'''

TRANSFORMER = '''
import time
import numpy as np
from tinyhw import Tensor, nn
layers = [nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True) for _ in range(LAYERS)]
optimizer, rng = nn.optim.Adam(nn.get_parameters(layers), lr=1e-3), np.random.default_rng(0)
x, y = (Tensor(rng.standard_normal((2, 16, 64), dtype=np.float32)).realize() for _ in range(2))
for parameter in optimizer.params: parameter.realize()
start = time.perf_counter()
with Tensor.train():
  h = x
  for layer in layers: h = layer(h)
  loss = (h - y).square().mean()
  optimizer.zero_grad()
  loss.backward()
  optimizer.step()
  assert loss.item() > 0
print(time.perf_counter() - start)
'''

DIGITS = '''
import time; start = time.perf_counter()
import numpy as np
from tinyhw import Tensor, TinyJit, nn
from tinyhw.cli.demo import load_digits
images, digits = load_digits()
images, test = images.reshape(-1, 1, 8, 8), np.arange(len(digits)) % 5 == 0
Tensor.manual_seed(2)
net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = nn.optim.Adam(nn.get_parameters(net), lr=4e-3)
@TinyJit
def step(x, y):
  optimizer.zero_grad()
  loss = net(x).cross_entropy(y)
  loss.backward()
  optimizer.step()
  return loss.realize()
rng, kept = np.random.default_rng(2), np.flatnonzero(~test)
with Tensor.train():
  for _ in range(20):
    order = rng.permutation(kept)
    for at in order[:len(order) // 64 * 64].reshape(-1, 64): step(Tensor(images[at]), Tensor(digits[at]))
right = (net(Tensor(images[test])).numpy().argmax(1) == digits[test]).mean()
assert right >= 0.97, f"{right:.1%} of the digits are right"
print(time.perf_counter() - start)
'''


RECORDED = '''
import contextlib, os, statistics, sys, tempfile, time
from tinyhw.cli.overheads import network
from tinyhw.queues.capture import Capture
from tinyhw.queues.effects import Does
from tinyhw.queues.happens import pointers
from tinyhw.toolbox.record import recording
from tinyhw import Tensor
with tempfile.TemporaryDirectory() as folder:
  path = os.path.join(folder, "run.thq")
  with recording(path) if RECORD else contextlib.nullcontext():
    step, x, y = network(DEVICE)
    with Tensor.train():
      for _ in range(20): step(x, y).item()
      seconds = []
      for _ in range(60):
        start = time.perf_counter()
        step(x, y).item()
        seconds.append(time.perf_counter() - start)
  named, capture = 0, Capture(path) if RECORD else ()
  for s in capture:
    if s.follow is None: continue
    named += sum(e.size for i in s.follow.items for e in i.effects if e.does in (Does.READ, Does.WRITE))
    named += sum(s.world.find(at).size for l in s.follow.launches for at in {p[0] for p in pointers(capture, s, l)})
  print(statistics.median(seconds), os.path.getsize(path) if RECORD else 0, named)
'''
RUNS = 5  # processes of a recorded step, for the machine has other work


def _recorded(device: str, cards: str, record: bool) -> list[float]:
  code = f"DEVICE, RECORD = {device!r}, {record}\n{RECORDED}"
  return [float(word) for word in child(code, MOCKGPU=cards).split()]


def recorded(device: str, cards: str, record: bool) -> Seconds:
  """A training step of 784-128-10 on mock cards, each launch its own submission, while it is recorded or is not."""
  return [_recorded(device, cards, record)[0] for _ in range(RUNS)]


def captured(device: str, cards: str, file: bool) -> list[float]:
  """Bytes of the capture of 80 such steps, or of the buffers that their copies and kernels name, each time."""
  return [_recorded(device, cards, True)[1 if file else 2]]


def launches(device: str, count: int = 1) -> Seconds:
  """So many launches of a loaded three-element kernel and a wait, below Tensor: encode, ring, decode, run, signal."""
  from tinyhw import Device, Tensor
  from tinyhw.engine.run import Step, listening
  steps: list[Step] = []
  with listening(steps.append): tensor = (Tensor([1, 2, 3], device=device) + 1).realize()
  step = next(s for s in reversed(steps) if s.kernel is not None)
  assert step.kernel is not None
  spec, program, runtime = step.kernel.spec, step.kernel.program, Device[device].runtime
  buffers = [step.buffers[i].allocation for i in spec.buffer_order]
  def run() -> None:
    for _ in range(count): program(buffers, step.values, spec.grid, spec.block)
    runtime.synchronize()
  settle(run, 500)
  seconds = repeat(run, runs=500, warm=100)
  if tensor.tolist() != [2, 3, 4]: raise Error("wrong sum", where=f"launches on {device}")
  return seconds


def copies() -> Seconds:
  """64 bytes to the mock GPU and back."""
  from tinyhw import Device
  runtime = Device["AMD"].runtime
  memory, data, back = runtime.alloc(64), memoryview(bytes(range(64))), memoryview(bytearray(64))
  def run() -> None:
    runtime.copyin(memory, data)
    runtime.copyout(back, memory)
  seconds = repeat(run, runs=500, warm=50)
  runtime.free(memory)
  if back != data: raise Error("wrong bytes", where="copies")
  return seconds


def replayed() -> Seconds:
  """A kernel of three elements on LLVM, replayed by a TinyJit."""
  from tinyhw import Tensor, TinyJit
  step, x = TinyJit(lambda t: (t + 1).realize()), Tensor([1, 2, 3], device="LLVM").realize()
  seconds = repeat(lambda: step(x), runs=2000, warm=100)
  if step(x).tolist() != [2, 3, 4]: raise Error("wrong sum", where="replayed")
  return seconds


def network(device: str = "LLVM") -> tuple[Callable[..., Any], Any, Any]:
  """A training step of 784-128-10 with SGD on a device, and a batch of 32."""
  from tinyhw import Tensor, nn
  def weights(*shape: int) -> Tensor:
    return Tensor.uniform(*shape, low=-0.05, high=0.05, device=device, requires_grad=True)
  rng, (first, second) = np.random.default_rng(0), (weights(784, 128), weights(128, 10))
  optimizer = nn.optim.SGD([first, second], lr=0.01)
  def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = ((x @ first).relu() @ second).cross_entropy(y)
    loss.backward()
    optimizer.step()
    return loss.realize()
  x = Tensor(rng.random((32, 784), dtype=np.float32), device=device).realize()
  return step, x, Tensor(rng.integers(0, 10, 32).astype(np.int32), device=device).realize()


def training(jit: bool) -> Seconds:
  """The step, replayed or as it is."""
  from tinyhw import Tensor, TinyJit
  step, x, y = network()
  run = TinyJit(step) if jit else step
  with Tensor.train():
    before = run(x, y).item()
    seconds = repeat(lambda: run(x, y), runs=100, warm=5)
    if not run(x, y).item() < before: raise Error("it does not learn", where="training")
  return seconds


def first_step(kept: bool) -> Seconds:
  """A convolutional network's first training step on LLVM, from the imports on; `kept`: where another process has left
  its kernels."""
  seconds = []
  for _ in range(3):
    with tempfile.TemporaryDirectory() as folder:
      for _ in range(1 + kept): out = child(CONVNET, DEV="LLVM", CACHEDB=folder)
      seconds.append(float(out))
  return seconds


def transformer(layers: int) -> Seconds:
  """The first training step of a transformer's encoder with Adam on LLVM: schedule, compilation, kernels."""
  return [float(child(f"LAYERS = {layers}{TRANSFORMER}", DEV="LLVM", CACHEDB="0")) for _ in range(3)]


def digits() -> Seconds:
  """A small convolutional network learns the digits of `tinyhw demo` until 97 of 100 are right; with imports."""
  return [float(child(DIGITS, DEV="LLVM", CACHEDB="0"))]
