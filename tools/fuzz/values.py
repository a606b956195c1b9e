"""Inputs: special values of each type, each with each, then random ones of several kinds. Deterministic for a seed."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tinyhw.tools.fuzz.case import STORED, Array, split, width

# Mantissa and exponent bits.
FORMATS: Final = {"half": (10, 5), "bfloat": (7, 8), "float": (23, 8), "double": (52, 11)}


def special(kind: str) -> Array:
  """Values at which operations change their behaviour, as stored."""
  dtype = np.dtype(STORED[kind])
  if kind == "i1": return np.array([0, 1], dtype)
  if kind not in FORMATS:
    n = dtype.itemsize * 8
    values = {0, 1, 2, 3, 5, 7, n - 1, n, 31, 32, 100, 127, 128, 255, (1 << n - 1) - 1, 1 << n - 1, (1 << n - 1) + 1,
              -1, -2,
              -3, -7, -100, (1 << n // 2) - 1, 1 << n // 2, 0x5555555555555555, 0x123456789ABCDEF0}
    return np.array(sorted({v & (1 << n) - 1 for v in values}), np.uint64).astype(dtype)
  mantissa, exponent = FORMATS[kind]
  bias, top = (1 << exponent - 1) - 1, (1 << exponent) - 1
  one = bias << mantissa
  positive = [0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1, one, one + 1, one - 1,
              one + (1 << mantissa),
              one - (1 << mantissa), one | 1 << mantissa - 1, (bias + 1 << mantissa) | 1 << mantissa - 2,
              (bias + mantissa << mantissa) + 1, (bias + mantissa + 1 << mantissa) + 1,
              (bias - mantissa - 1) << mantissa,
              (top << mantissa) - 1, top << mantissa, top << mantissa | 1 << mantissa - 1]
  for n in (7, 8, 15, 16, 31, 32, 63, 64):  # around the ends of the integer types
    if n < bias: positive += [(bias + n << mantissa) - 1, bias + n << mantissa, (bias + n << mantissa) + 1]
  sign = 1 << mantissa + exponent
  return np.array(sorted({v | s for v in positive if 0 <= v < sign for s in (0, sign)}), np.uint64).astype(dtype)


def random(kind: str, count: int, rng: np.random.Generator) -> Array:
  """Patterns of every size: all bits at random, small whole numbers, nearby exponents. No signalling NaN."""
  dtype = np.dtype(STORED[kind])
  if kind == "i1": return rng.integers(0, 2, count).astype(dtype)
  n = dtype.itemsize * 8
  bits = rng.integers(0, 1 << 63, count, dtype=np.uint64) << np.uint64(1) | rng.integers(0, 2, count, dtype=np.uint64)
  if kind not in FORMATS:
    out = bits >> rng.integers(0, 64, count).astype(np.uint64)
    out = np.where(rng.random(count) < 0.3, np.uint64(0) - out, out)
    return out.astype(dtype)
  mantissa, exponent = FORMATS[kind]
  bias = (1 << exponent - 1) - 1
  raw = bits >> np.uint64(64 - n)
  near = rng.integers(bias - min(bias - 1, 12), bias + min(bias, 12), count).astype(np.uint64) << np.uint64(mantissa)
  near |= raw & np.uint64((1 << mantissa) - 1 | 1 << n - 1)
  whole = near & ~np.uint64((1 << max(0, mantissa - 6)) - 1)
  which = rng.integers(0, 3, count)
  out = np.where(which == 0, raw, np.where(which == 1, near, whole))
  top = np.uint64(((1 << exponent) - 1) << mantissa)
  nan = (out & top == top) & (out & np.uint64((1 << mantissa) - 1) != 0)
  return np.where(nan, out | np.uint64(1 << mantissa - 1), out).astype(dtype)


def draw(kinds: Sequence[str], lanes: int, rng: np.random.Generator) -> list[Array]:
  """An array for each input: pairs of special values first, then random ones, in one random order of lanes."""
  order = rng.permutation(lanes)
  out = []
  stride = 1
  for kind in kinds:
    n, scalar = split(kind)
    slots, special_values = width(kind), special(scalar)
    count = lanes * slots
    some: Any = random(scalar, count, rng).reshape(lanes, slots)
    share = lanes * 5 // 8
    for element in range(n):
      at = np.arange(share) // stride if element == 0 else rng.integers(0, len(special_values), share)
      some[:share, element] = special_values[at % len(special_values)]
    if stride > 1 or n > 1: some[share:lanes * 3 // 4, 0] = special_values[rng.integers(0, len(special_values),
                                                                                        lanes * 3 // 4 - share)]
    stride *= len(special_values)
    array = np.ascontiguousarray(some[order])
    out.append(array if slots > 1 else array.reshape(lanes))
  return out
