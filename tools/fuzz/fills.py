"""Inputs shaped for one kind of case: ranges in which an instruction's bound holds, whole numbers, indices."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyhw.tools.fuzz.case import Array


def as_floats(x: Array) -> Array:
  """Stored patterns as floats of their size (2 bytes: half)."""
  return x.view({2: np.float16, 4: np.float32, 8: np.float64}[x.dtype.itemsize])


def _replace(arrays: list[Array], make: Callable[[Array], Array]) -> None:
  for x in arrays:
    f = as_floats(x)
    with np.errstate(all="ignore"): f[:] = make(f)


def normal(arrays: list[Array], rng: np.random.Generator) -> None:
  """No subnormal inputs or results: the instruction flushes them."""
  def mend(f: Array) -> Array:
    tiny = np.finfo(f.dtype).tiny * 16
    huge = 1 / tiny
    return np.where(np.isfinite(f) & (f != 0) & ((np.abs(f) < tiny) | (np.abs(f) > huge)), np.sign(f) * 3, f)
  _replace(arrays, mend)


def moderate(arrays: list[Array], rng: np.random.Generator) -> None:
  """Quotients, products and reciprocals of these stay far from the ends of the range; no zeros."""
  for x in arrays: as_floats(x)[:] = np.where(rng.random(x.shape) < 0.5, -1, 1) * np.exp2(rng.uniform(-6, 6, x.shape))


def positive(arrays: list[Array], rng: np.random.Generator) -> None:
  """Positive and of moderate size, where the fraction is exact in every formula."""
  _replace(arrays, lambda f: np.where(np.isfinite(f) & (np.abs(f) < 1e4), np.abs(f), 2.75))


def numbers(arrays: list[Array], rng: np.random.Generator) -> None:
  """No infinities, no NaN."""
  _replace(arrays, lambda f: np.where(np.isfinite(f), f, 1.5))


def normal_numbers(arrays: list[Array], rng: np.random.Generator) -> None:
  """No infinities, no NaN, and nothing subnormal: some generations flush it."""
  numbers(arrays, rng)
  normal(arrays, rng)


def turns(arrays: list[Array], rng: np.random.Generator) -> None:
  """Angles of a few turns, small exponents."""
  for x in arrays: as_floats(x)[:] = rng.uniform(-8, 8, x.shape)


def tame(arrays: list[Array], rng: np.random.Generator) -> None:
  """Eighths: sums of products are exact."""
  for x in arrays: as_floats(x)[:] = rng.integers(-64, 64, x.shape) / 8


def whole(arrays: list[Array], rng: np.random.Generator) -> None:
  """Small whole numbers as floats: sums are exact in any order."""
  for x in arrays: as_floats(x)[:] = rng.integers(-8, 8, x.shape) if x.dtype.itemsize == 2 else rng.integers(-100,
    100, x.shape)
