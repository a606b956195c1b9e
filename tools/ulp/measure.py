"""Arguments over the whole range of a type, and the greatest error of a function over them."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyhw.ir.dtype import DType, dtypes
from tinyhw.tensor.tensor import Tensor
from tinyhw.tools.ulp.functions import Array, Judged, mp

# (bits of the significand after the point, least and greatest exponent of a normal number)
FORMATS = {dtypes.float16: (10, -14, 15), dtypes.bfloat16: (7, -126, 127), dtypes.float32: (23, -126, 127),
           dtypes.float64: (52, -1022, 1023)}
TYPES = tuple(FORMATS)


def _kind(dtype: DType) -> np.dtype[Any]: return np.dtype(dtype.numpy if dtype.numpy is not None else np.float32)


def _bits(x: Array, dtype: DType) -> Array:
  """float64 values, all of them numbers of the type, as the type's memory."""
  if dtype is dtypes.bfloat16: return (x.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
  return np.ascontiguousarray(x.astype(_kind(dtype))).view(f"u{dtype.itemsize}")


def _values(bits: Array, dtype: DType) -> Array:
  """The type's memory as float64."""
  with np.errstate(invalid="ignore"):       # signalling NaNs
    if dtype is dtypes.bfloat16: return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(_kind(dtype)).astype(np.float64)


def _rounded(x: Array, dtype: DType) -> Array:
  """float64 values as numbers of the type."""
  with np.errstate(all="ignore"):
    if dtype is dtypes.bfloat16:       # toward zero will do: any number near will
      return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
    return x.astype(_kind(dtype)).astype(np.float64)


def arguments(function: Judged, dtype: DType, size: int, seed: int = 0) -> list[Array]:
  """Arguments as float64: of one 16-bit argument all there are. Otherwise about `size`: a third of every binade of
  either sign, a third of the function's ranges, the rest of where it is difficult; and what is special."""
  rng = np.random.default_rng(seed)
  if dtype.bits == 16 and function.second is None: return [_values(np.arange(1 << 16, dtype=np.uint16), dtype)]
  mantissa, low, high = FORMATS[dtype]
  exponents = np.arange(low - mantissa, high + 1)
  if size // 6 < exponents.size: exponents = np.unique(rng.choice(exponents, size // 6))
  exponents = np.repeat(exponents, max(1, size // 6 // exponents.size))
  edge = rng.random(exponents.size) < 0.1
  binades = np.ldexp(np.where(edge, 1.0, rng.uniform(1, 2, exponents.size)), exponents)
  share = max(1, size // 3 // len(function.ranges))
  inside = [rng.uniform(a, b, share) for a, b in function.ranges]
  near = np.array(function.near)
  steps = np.arange(-3, 4) * 2.0**-mantissa
  around = [(near[:, None] * (1 + steps)).reshape(-1), near * (1 + rng.normal(size=near.size) * 1e-3)]
  if near.size:
    apart = rng.normal(size=size // 6) * 2.0**-rng.uniform(1, mantissa, size // 6)
    around.append(rng.choice(near, size // 6) * (1 + apart))
  largest = math.ldexp(2 - 2.0**-mantissa, high)
  special = [0.0, 1.0, 2.0, 0.5, 3.0, math.ldexp(1, low - mantissa), math.ldexp(1, low), largest, math.inf]
  x = _rounded(np.concatenate([binades, -binades, *inside, *around, special, np.negative(special), [math.nan]]), dtype)
  if function.second is None: return [x]
  named = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, largest, math.inf, -math.inf, math.nan])
  y = _rounded(function.second(x.astype(_kind(dtype)), rng).astype(np.float64), dtype)
  return [np.concatenate([x, np.repeat(named, named.size)]), np.concatenate([y, np.tile(named, named.size)])]


def run(function: Judged, dtype: DType, device: str, x: Sequence[Array]) -> Array:
  """What the device gives, as float64."""
  tensors = [Tensor(_bits(a, dtype), device=device).bitcast(dtype) for a in x]
  unsigned = {2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[dtype.itemsize]
  found = function.call(*tensors)
  assert found.dtype is dtype
  return _values(found.contiguous().bitcast(unsigned).numpy(), dtype)


def oracle(function: Judged, dtype: DType, x: Sequence[Array]) -> list[Any]:
  """The exact values: float64 numbers for the narrower types, mpmath's for float64 where all arguments are finite."""
  with np.errstate(all="ignore"): double = np.asarray(function.double(*x), np.float64)
  if dtype is not dtypes.float64: return list(double)
  defined = np.logical_and.reduce([np.isfinite(a) & (a != 0) for a in x]) & ~np.isnan(double)
  return [function.exact(*(mp.mpf(float(a[i])) for a in x)) if defined[i] else double[i] for i in range(double.size)]


def errors(found: Array, x: Sequence[Array], exact: list[Any], function: Judged, dtype: DType) -> Array:
  """The error of each result in units in the last place of the exact value; infinite for a NaN or a sign of a zero that
  is wrong. An infinity counts as the next power of two, so that what overflows is measured as if it did not."""
  mantissa, low, high = FORMATS[dtype]
  with np.errstate(all="ignore"): double = np.asarray(function.double(*x), np.float64)
  if dtype is not dtypes.float64:
    top = math.ldexp(1, high + 1)
    wanted, got = (np.clip(np.array(v, np.float64), -top, top) for v in (exact, found))
    _, exponent = np.frexp(wanted)
    with np.errstate(invalid="ignore"):
      off = np.ldexp(np.abs(got - wanted), mantissa - np.clip(exponent - 1, low, high))
  else: off = np.array([_error(f, e, mantissa, low, high) for f, e in zip(found.tolist(), exact)])
  zero = np.array([e == 0 for e in exact])
  wrong = (np.isnan(found) != np.isnan(double)) | zero & ((found != 0) | (np.signbit(found) != np.signbit(double)))
  return np.where(wrong, math.inf, np.where(np.isnan(double), 0.0, off))


def _error(found: float, exact: Any, mantissa: int, low: int, high: int) -> float:
  if exact != exact or found != found or exact == 0: return 0.0
  top = mp.ldexp(1, high + 1)
  got, wanted = (max(min(mp.mpf(v), top), -top) for v in (found, exact))
  exponent = min(max(mp.frexp(wanted)[1] - 1, low), high)
  return float(mp.ldexp(abs(got - wanted), mantissa - exponent))


Worst = tuple[float, tuple[float, ...]]


def measure(function: Judged, dtype: DType, devices: Sequence[str], size: int, seed: int = 0) -> dict[str, Worst]:
  """For each device the greatest error, to three digits after the point, and the arguments that have it."""
  x = arguments(function, dtype, size, seed)
  exact = oracle(function, dtype, x)
  worst = {}
  for device in devices:
    off = errors(run(function, dtype, device, x), x, exact, function, dtype)
    at = int(np.argmax(off))
    worst[device] = round(float(off[at]), 3), tuple(float(a[at]) for a in x)
  return worst
