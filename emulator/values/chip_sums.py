"""Sums of products as NVIDIA's matrix units make them, bit for bit; `EMU_SUMS=chip` asks for them.

The manual leaves open how a unit adds. It was measured (Xie and others, MMA-Sim, arXiv 2511.10909, on chips from Volta
to Blackwell): the exact products of a step and the accumulator are shifted to the greatest exponent among them and cut
off behind some bits, whose sum is cut off to f32 or rounded to f16. A denormal number has its type's least exponent.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tinyhw.core.environment import variable
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.values.ops import Array

VARIABLE: Final = "EMU_SUMS"
LEAST: Final = {"f16": -14, "bf16": -126, "tf32": -126, "f32": -126, "e4m3": -6, "e5m2": -14}  # exponents of normals
_EMPTY: Final = -126  # the exponent of a zero
_SMALL: Final = ("e4m3", "e5m2")


@dataclass(frozen=True)
class Unit:
  """How many products are added at a time, bits that are kept behind the greatest exponent, bits behind the point of
  an f32 that comes out."""
  steps: int
  kept: int
  result: int = 23


def wanted() -> bool:
  """Whether sums are to be the chip's. Raises InvalidArgument."""
  value = variable(VARIABLE, b"EMU_SUMS")
  if value not in {"", "exact", "chip"}:
    raise InvalidArgument(f"{value!r} is no way to add", where=VARIABLE, hint='"exact" (rounded once) or "chip"')
  return value == "chip"


def unit(sm: int, name: str, a: str, sparse: bool = False) -> Unit | None:
  """The unit of compute capability `sm` that does an instruction (mma, wmma or wgmma) on elements of type `a`; None for
  sums that have nothing to lose: integers, and f64, whose multiply-adds are fused."""
  if a not in LEAST or a == "f32": return None
  if sparse: raise Unsupported("sums as the chip's", f"of sparse matrices: {VARIABLE}=exact has them rounded once")
  if sm < 70 or sm > 120: raise Unsupported("sums as the chip's", f"for sm_{sm}")
  kept = 23 if sm < 75 else 24 if sm < 90 else 25
  words = 4 if sm < 75 else 8 if sm < 90 else 16  # halves at a time; as many bytes as these have of other types
  steps = words // 2 if a == "tf32" else 2 * words if a in _SMALL else words
  if a in _SMALL and (sm == 89 or name == "wgmma"): return Unit(steps, 13, 13)
  if sm == 90 and name == "wmma" and a == "tf32": return Unit(4, kept)  # an H200: in halves of its depth
  return Unit(steps, kept)


def product(a: Array, b: Array, c: Array, kinds: tuple[str, str], result: str, by: Unit) -> Array:
  """A [.., rows, k] times B [.., k, columns] plus C [.., rows, columns], all f64 that hold numbers of their types:
  `kinds` of A and B, and `result`, f16 or f32, in which the sums are."""
  for first in range(0, a.shape[-1], by.steps):
    some = slice(first, first + by.steps)
    c = _step(a[..., some], b[..., some, :], c, kinds, result, by).astype(np.float64)
  return c.astype({"f16": np.float16, "f32": np.float32}[result])


def _step(a: Array, b: Array, c: Array, kinds: tuple[str, str], result: str, by: Unit) -> Array:
  x, y = np.swapaxes(a, -1, -2)[..., :, :, None], b[..., :, None, :]  # [.., k, rows, columns]
  with np.errstate(invalid="ignore", over="ignore"):
    plain = (x * y).sum(axis=-3) + c
  fine = np.isfinite(plain)
  (sx, ex), (sy, ey) = (_parts(np.where(np.isfinite(m), m, 0.0), kind) for m, kind in zip((x, y), kinds))
  sc, ec = _parts(np.where(fine, c, 0.0), result)
  significands = np.concatenate([sx * sy, sc[..., None, :, :]], axis=-3)
  exponents = np.concatenate([ex + ey, ec[..., None, :, :]], axis=-3)
  most = exponents.max(axis=-3)
  cut = np.trunc(np.ldexp(significands, by.kept + exponents - most[..., None, :, :])).sum(axis=-3)
  total = np.ldexp(cut, most - by.kept)
  if result == "f16": out = total.astype(np.float16)
  else:
    s, e = _parts(total, "f32")
    with np.errstate(over="ignore"): out = np.ldexp(np.trunc(np.ldexp(s, by.result)), e - by.result).astype(np.float32)
  odd = np.where(np.isnan(plain), np.nan, plain).astype(out.dtype)
  bits = np.dtype(f"u{out.dtype.itemsize}")
  odd = np.where(np.isnan(odd), np.array((1 << 8 * bits.itemsize - 1) - 1, bits).view(out.dtype), odd)
  return np.where(fine, out, odd)


def _parts(x: Array, kind: str) -> tuple[Array, Array]:
  """Significands, of normal numbers from 1 to below 2, and exponents."""
  m, e = np.frexp(x)
  s, e = m * 2.0, e - 1
  least = LEAST[kind]
  low = np.minimum(e - least, 0)
  return np.ldexp(s, low), np.where(x == 0, _EMPTY, e - low)
