"""`tinyhw demo`: one network, three devices, the same losses; then one launch's command queue, packet by packet."""
from __future__ import annotations

import csv
import gzip
import io
import json
import os
import time
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from tinyhw.cli.numbers import Whole
from tinyhw.core.errors import Error

if TYPE_CHECKING:
  from tinyhw.tensor.tensor import Tensor

TOLERANCE = 1e-4  # largest difference of losses between devices: they round exp and log differently


@dataclass
class Run:
  """What one device did: loss and seconds of each step (the first one compiles), accuracy on samples kept back."""
  device: str
  losses: list[float] = field(default_factory=list)
  seconds: list[float] = field(default_factory=list)
  accuracy: float = 0.0
  queue: list[str] = field(default_factory=list)
  report: list[str] = field(default_factory=list)


def load_digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
  """UCI optical digits: images f32 [1797, 64] in 0..1, digits i32 [1797]; source and licence are in data/README.md."""
  raw = gzip.decompress(files("tinyhw.cli").joinpath("data/optdigits.csv.gz").read_bytes()).decode()
  rows = np.array(list(csv.reader(io.StringIO(raw))), dtype=np.int32)
  return (rows[:, :64] / 16).astype(np.float32), rows[:, 64].astype(np.int32)


class Network:
  """64-32-10 with ReLU. The same seed gives the same weights on every device: they come out of a kernel."""

  def __init__(self, device: str) -> None:
    from tinyhw import Tensor
    Tensor.manual_seed(1)
    def weights(inputs: int, outputs: int) -> Tensor:
      bound = inputs ** -0.5
      return Tensor.uniform(inputs, outputs, low=-bound, high=bound, device=device, requires_grad=True).realize()
    self.w1, self.w2 = weights(64, 32), weights(32, 10)
    self.b1 = Tensor.zeros(32, device=device, requires_grad=True)
    self.b2 = Tensor.zeros(10, device=device, requires_grad=True)

  def __call__(self, x: Tensor) -> Tensor: return (x @ self.w1 + self.b1).relu() @ self.w2 + self.b2


def train(device: str, steps: int, batch: int) -> Run:
  """Train on the first samples, test on the last 297."""
  from tinyhw import Device, Tensor, nn
  images, digits = load_digits()
  network, run = Network(device), Run(device)
  optimizer = nn.optim.SGD([network.w1, network.b1, network.w2, network.b2], lr=0.5)
  order = np.random.default_rng(0).permutation(1500)
  with Tensor.train():
    for step in range(steps):
      at = order[np.arange(step * batch, (step + 1) * batch) % len(order)]
      x, y = Tensor(images[at], device=device), Tensor(digits[at], device=device)
      start = time.perf_counter()
      optimizer.zero_grad()
      loss = network(x).cross_entropy(y)
      loss.backward()
      optimizer.step()
      run.losses.append(loss.item())
      run.seconds.append(time.perf_counter() - start)
  guess = network(Tensor(images[1500:], device=device)).numpy().argmax(1)
  run.accuracy = float((guess == digits[1500:]).mean())
  if device == "AMD":
    (Tensor([1.0, 2.0, 3.0], device=device) + 1).realize()
    Device[device].synchronize()
    runtime: Any = Device[device].runtime
    run.queue, run.report = runtime.last_submission(), Device.report()
  return run


@click.command()
@click.option("--steps", default=20, show_default=True, type=Whole(1), help="Training steps.")
@click.option("--batch", default=128, show_default=True, type=Whole(1, 1500), help="Samples a step.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def command(steps: int, batch: int, as_json: bool) -> None:
  """Train a small network (64-32-10, cross entropy, SGD) on UCI's optical digits, on LLVM, PYTHON and AMD.

  The AMD device is a mock gfx1100, unless MOCKGPU=0 asks for a real card. Exit status 1 when the losses differ.
  """
  from rich.console import Console
  from rich.progress import Progress, TextColumn, TimeElapsedColumn
  os.environ.setdefault("MOCKGPU", "1")
  console = Console()
  runs = []
  columns = TextColumn("{task.description}"), TimeElapsedColumn()
  with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
    for device in ("LLVM", "PYTHON", "AMD"):
      task = bar.add_task(f"training on {device}")
      runs.append(train(device, steps, batch))
      bar.remove_task(task)
  spread = max(max(step) - min(step) for step in zip(*(r.losses for r in runs), strict=True))
  if as_json:
    click.echo(json.dumps({"runs": [vars(r) for r in runs], "largest_difference": spread}))
  else: show(console, runs, spread)
  if spread > TOLERANCE:
    raise Error(f"losses differ by {spread:.2e}, more than {TOLERANCE:.0e}", where="demo",
                      hint="run the tests to find the device at fault")


def show(console: Any, runs: list[Run], spread: float) -> None:
  """The three tables of the demo."""
  from rich.table import Table
  losses = Table(title="Loss by step", title_justify="left")
  losses.add_column("step", justify="right")
  for run in runs: losses.add_column(run.device, justify="right")
  steps = len(runs[0].losses)
  for i in sorted({*range(0, steps, max(1, steps // 8)), steps - 1}):
    losses.add_row(str(i), *(f"{r.losses[i]:.6f}" for r in runs))
  losses.add_row("accuracy", *(f"{r.accuracy:.1%}" for r in runs))
  console.print(losses)
  console.print(f"The devices agree: the largest difference of a loss is {spread:.1e}.\n" if spread <= TOLERANCE
                else f"[red]The devices do not agree: losses differ by {spread:.1e}.[/red]\n")
  console.print("The compute queue of one AMD launch (Tensor([1, 2, 3]) + 1), as it went to the command processor:")
  for line in next(r.queue for r in runs if r.device == "AMD"):
    console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
  console.print("\nWhat the mock accepted in this run and does not model:")
  for line in next(r.report for r in runs if r.device == "AMD"):
    console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
  speed = Table(title="\nTime of a training step", title_justify="left")
  for name in ("device", "first (compiles)", "median of the others", "against LLVM"):
    speed.add_column(name, justify="right")
  base = float(np.median(runs[0].seconds[1:] or runs[0].seconds))
  for run in runs:
    median = float(np.median(run.seconds[1:] or run.seconds))
    speed.add_row(run.device, f"{run.seconds[0] * 1e3:.0f} ms", f"{median * 1e3:.2f} ms", f"{median / base:.1f} x")
  console.print(speed)
