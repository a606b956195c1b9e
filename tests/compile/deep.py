"""A deep graph: forward and backward of a small transformer, for how scheduling and compiling grow with its layers.

`python -m tests.compile.deep 12` says how long each step takes.
"""
from __future__ import annotations

import sys
import time

import numpy as np

from tinyhw import Tensor
from tinyhw.compile import Schedule, schedule
from tinyhw.engine.run import kernel_for

WIDTH, HEADS, LENGTH, BATCH = 64, 4, 16, 2


class Layer:
  """Attention and a feed-forward part, each behind a normalization."""

  def __init__(self, rng: np.random.Generator, device: str) -> None:
    def new(*shape: int) -> Tensor:
      return Tensor((rng.standard_normal(shape) * 0.05).astype(np.float32), device=device, requires_grad=True).realize()
    self.parameters = [new(WIDTH), new(WIDTH), new(WIDTH, 3 * WIDTH), new(WIDTH, WIDTH), new(WIDTH), new(WIDTH),
                       new(WIDTH, 4 * WIDTH), new(4 * WIDTH, WIDTH)]

  def __call__(self, x: Tensor) -> Tensor:
    scale1, shift1, project, out, scale2, shift2, up, down = self.parameters
    h = normalized(x, scale1, shift1) @ project
    def heads(i: int) -> Tensor:
      part = h[:, :, i * WIDTH:(i + 1) * WIDTH]
      return part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
    scores = (heads(0) @ heads(1).transpose(-1, -2)) * (HEADS / WIDTH) ** 0.5
    x = x + (scores.softmax(-1) @ heads(2)).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ out
    h = normalized(x, scale2, shift2) @ up
    return x + (h * (h * 1.702).sigmoid()) @ down


def normalized(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
  """Layer normalization, written out."""
  centred = x - x.mean(-1, keepdim=True)
  return centred * ((centred * centred).mean(-1, keepdim=True) + 1e-5).rsqrt() * scale + shift


def graph(layers: int, device: str) -> list[Tensor]:
  """The loss and all gradients, not computed yet."""
  rng = np.random.default_rng(0)
  made = [Layer(rng, device) for _ in range(layers)]
  x = Tensor(rng.standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32), device=device)
  for layer in made: x = layer(x)
  loss = (x * x).mean()
  loss.backward()
  return [loss, *(p.grad for layer in made for p in layer.parameters if p.grad is not None)]


def plan(tensors: list[Tensor]) -> Schedule: return schedule([t.uop for t in tensors])


def main(layers: int, device: str = "LLVM") -> None:
  """Prints seconds of each step."""
  times = [time.perf_counter()]
  def lap() -> float:
    times.append(time.perf_counter())
    return times[-1] - times[-2]
  tensors = graph(layers, device)
  text = [f"graph and backward {lap():.2f} s"]
  items = plan(tensors)
  text.append(f"schedule {lap():.2f} s")
  for item in items: kernel_for(item.ast, item.device)
  text.append(f"compile {lap():.2f} s")
  print(f"{layers} layers: {', '.join(text)}; {len(items)} kernels, {len({i.ast for i in items})} different")


if __name__ == "__main__": main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
