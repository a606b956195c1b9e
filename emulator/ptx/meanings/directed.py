"""Quotients, reciprocals and roots in the directed roundings, by the sign of what nearest even left over."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.emulator.values import rounding
from tinyhw.emulator.values.ops import Array, error_of_product


def _quotient(mode: int, a: Array, b: Array) -> Array:
  plain = np.true_divide(a, b)
  if a.dtype.itemsize == 8:
    return rounding.each(lambda x, y: x / y if y else None, plain, mode, a, b, rest=rounding.quotient_rest)
  finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
  side = np.where(finite, np.sign(a.astype(np.float64) - plain.astype(np.float64) * b) * np.where(b < 0, -1, 1), 0.0)
  over = finite & np.isinf(plain)
  side = np.where(over, -np.sign(plain), side)
  tiny = finite & (plain == 0) & (a != 0)
  side = np.where(tiny, np.sign(a) * np.sign(b), side)
  return rounding.step(plain, side, mode)


def _reciprocal(mode: int, a: Array) -> Array: return _quotient(mode, a.dtype.type(1), a)


def _root(mode: int, a: Array) -> Array:
  plain = np.sqrt(a)
  if a.dtype.itemsize == 8:
    even = np.frexp(a)[1] & ~1
    x, r = np.ldexp(a, -even), np.ldexp(plain, -(even >> 1))  # near 1, where a product and what it loses are exact
    p = r * r
    left = (x - p) - error_of_product(r, r, p)
    return rounding.step(plain, np.where(a > 0, np.sign(left), 0.0), mode)
  wide = plain.astype(np.float64)
  return rounding.step(plain, np.sign(a.astype(np.float64) - wide * wide), mode)


FUNCTIONS: Final[dict[str, Callable[..., Array]]] = {"div": _quotient, "rcp": _reciprocal, "sqrt": _root}
