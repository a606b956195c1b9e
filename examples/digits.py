"""A small convolutional network learns handwritten digits. `python examples/digits.py [FOLDER]`.

FOLDER has MNIST's four files (or a set of the same form); without it the 1,797 digits of 8x8 points are used that
scikit-learn carries (`pip install scikit-learn`).
"""
from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from tinyhw import Tensor, TinyJit, nn

Digits = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # training images and labels, test images and labels


class Network:
  """Two convolutions with pooling, two linear layers: (batch, 1, size, size) to (batch, 10) scores."""

  def __init__(self, size: int):
    self.first, self.second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    self.third, self.last = nn.Linear(32 * (size // 4) ** 2, 64), nn.Linear(64, 10)

  def __call__(self, x: Tensor) -> Tensor:
    x = self.first(x).relu().max_pool2d(2)
    x = self.second(x).relu().max_pool2d(2)
    return self.last(self.third(x.reshape(x.shape[0], -1)).relu())


def small_digits() -> Digits:
  """scikit-learn's digits, every fifth for the test; 0 to 1."""
  from sklearn.datasets import load_digits
  x, y = load_digits(return_X_y=True)
  images, labels = (x / 16).astype(np.float32).reshape(-1, 1, 8, 8), y.astype(np.int32)
  test = np.arange(len(labels)) % 5 == 0
  return images[~test], labels[~test], images[test], labels[test]


def mnist_digits(folder: str) -> Digits:
  """A folder of MNIST's form; 0 to 1."""
  x, y, xt, yt = (t.numpy() for t in nn.datasets.mnist(folder))
  return (x / 255).astype(np.float32), y.astype(np.int32), (xt / 255).astype(np.float32), yt.astype(np.int32)


def batches(images: np.ndarray, labels: np.ndarray, size: int,
            rng: np.random.Generator) -> Iterator[tuple[Tensor, Tensor]]:
  """The images in a new order, in whole batches."""
  order = rng.permutation(len(labels))
  for i in range(0, len(order) - size + 1, size):
    chosen = order[i:i + size]
    yield Tensor(images[chosen]), Tensor(labels[chosen])


def learn(digits: Digits, epochs: int, batch: int = 64, steps: int | None = None) -> tuple[list[float], float]:
  """(losses of all steps, the part of the test images that is recognised)."""
  x, y, xt, yt = digits
  Tensor.manual_seed(2)
  network = Network(x.shape[-1])
  optimizer = nn.optim.Adam(nn.get_parameters(network), lr=4e-3)

  @TinyJit
  def step(images: Tensor, labels: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = network(images).sparse_categorical_crossentropy(labels).backward()
    optimizer.step(loss)
    return loss

  rng, losses = np.random.default_rng(2), []
  with Tensor.train():
    for _ in range(epochs):
      for images, labels in batches(x, y, batch, rng):
        if steps is None or len(losses) < steps: losses.append(step(images, labels).item())
  return losses, float((network(Tensor(xt)).argmax(-1).numpy() == yt).mean())


def main() -> None:
  parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
  parser.add_argument("folder", nargs="?", help="MNIST's four files")
  parser.add_argument("--epochs", type=int, default=20)
  given, start = parser.parse_args(), time.perf_counter()
  losses, right = learn(mnist_digits(given.folder) if given.folder else small_digits(), given.epochs)
  print(f"{len(losses)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}, {right:.1%} of the test digits right, "
        f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__": main()
