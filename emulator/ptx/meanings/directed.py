"""Quotients, reciprocals and roots in the directed roundings, by the sign of what nearest even left over."""
from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tinyhw.emulator.values import rounding

V = Any


def _quotient(mode: int, a: V, b: V) -> V:
  plain = np.true_divide(a, b)
  if a.dtype.itemsize == 8:
    return rounding._each(lambda x, y: x / y if y else None, plain, mode, a, b)
  finite = np.isfinite(a) & np.isfinite(b) & (b != 0)
  side = np.where(finite, np.sign(a.astype(np.float64) - plain.astype(np.float64) * b) * np.where(b < 0, -1, 1), 0.0)
  over = finite & np.isinf(plain)
  side = np.where(over, -np.sign(plain), side)
  tiny = finite & (plain == 0) & (a != 0)
  side = np.where(tiny, np.sign(a) * np.sign(b), side)
  return rounding._step(plain, side, mode)


def _reciprocal(mode: int, a: V) -> V: return _quotient(mode, a.dtype.type(1), a)


def _side(x: float, root: float) -> float:
  """The sign of x minus the square of its rounded root."""
  if not (np.isfinite(x) and x > 0): return 0.0
  square = Fraction(root) ** 2
  return float((Fraction(x) > square) - (Fraction(x) < square))


def _root(mode: int, a: V) -> V:
  plain = np.sqrt(a)
  if a.dtype.itemsize == 8:
    r = np.array(plain)
    flat, given = r.reshape(-1), np.broadcast_to(a, r.shape).reshape(-1)
    side = np.array([_side(float(x), float(y)) for x, y in zip(given, flat)]).reshape(r.shape)
    return rounding._step(plain, side, mode)
  wide = plain.astype(np.float64)
  side = np.where(np.isfinite(plain) & (a > 0), np.sign(a.astype(np.float64) - wide * wide), 0.0)
  return rounding._step(plain, side, mode)


FUNCTIONS: Final[dict[str, Callable[..., V]]] = {"div": _quotient, "rcp": _reciprocal, "sqrt": _root}
