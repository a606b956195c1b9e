"""Cases of RDNA4 alone, reached by LLVM's intrinsics: 8-bit floats, permutations.

The formulas are written from the RDNA4 ISA manual (7-Apr-2025) and OCP's specification of 8-bit floats, and share
nothing with the emulator.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tinyhw.tools.fuzz.case import Array, Case, Witness
from tinyhw.tools.fuzz.intrinsics import intrinsic

U32: Final = np.uint32


def _value(code: int, kind: str) -> float:
  """The number that a code of E4M3 ("fp8") or E5M2 ("bf8") stands for."""
  fraction, bias = (3, 7) if kind == "fp8" else (2, 15)
  sign, magnitude = -1.0 if code & 0x80 else 1.0, code & 0x7F
  if kind == "fp8" and magnitude == 0x7F: return float("nan")
  if kind == "bf8" and magnitude >= 0x7C: return sign * float("inf") if magnitude == 0x7C else float("nan")
  exponent, mantissa = magnitude >> fraction, magnitude & (1 << fraction) - 1
  if not exponent: return sign * mantissa * 2.0 ** (1 - bias - fraction)
  return sign * ((1 << fraction) + mantissa) * 2.0 ** (exponent - bias - fraction)


VALUES: Final = {kind: np.array([_value(code, kind) for code in range(256)]) for kind in ("fp8", "bf8")}
TOP: Final = {"fp8": 0x7E, "bf8": 0x7B}  # the largest numbers
BEYOND: Final = {"fp8": 0x7F, "bf8": 0x7C}  # what larger ones become: NaN, infinity


def _bytes(x: Array) -> Array: return np.ascontiguousarray(x).view(np.uint8).reshape(-1, 4)


def _floats(x: Array) -> Array: return x.astype(np.float32).view(U32)


def _nearest(x: float, kind: str) -> int:
  """The code of the nearest number, ties to the even code; overflow from half a step above the largest."""
  numbers, top = VALUES[kind][:TOP[kind] + 1], TOP[kind]
  sign = 0x80 if np.signbit(x) else 0
  if np.isnan(x): return 0x7F | sign
  size = abs(x)
  step = numbers[top] - numbers[top - 1]
  if size >= numbers[top] + step / 2: return BEYOND[kind] | sign
  distance = np.abs(numbers - size)
  best = np.flatnonzero(distance == distance.min())
  return int(best[best % 2 == 0][0] if len(best) > 1 else best[0]) | sign


def _below(x: float, kind: str) -> int:
  """The code of the largest number not above x's size."""
  sign = 0x80 if np.signbit(x) else 0
  return int(np.searchsorted(VALUES[kind][:TOP[kind] + 1], abs(x), side="right") - 1) | sign


def _narrowed(x: Array, kind: str) -> Array:
  with np.errstate(all="ignore"):
    return np.array([_nearest(float(v), kind) for v in x.view(np.float32)], U32)



def _without_nan(arrays: list[Array], rng: np.random.Generator) -> None:
  for x in arrays[:2]:
    f = x.view(np.float32)
    f[:] = np.where(np.isnan(f), np.float32(1.5), f)


def _near(arrays: list[Array], rng: np.random.Generator) -> None:
  """Sizes that 8 bits can hold, and some that they cannot."""
  for x in arrays[:2]: x.view(np.float32)[:] = np.exp2(rng.uniform(-20, 17, x.shape)) * rng.choice([-1, 1], x.shape)


def _finite(arrays: list[Array], rng: np.random.Generator) -> None:
  """Codes of moderate numbers; source 2 is an eighth."""
  for x in arrays[:2]:
    raw = _bytes(x)
    raw[:] = rng.choice(np.flatnonzero(np.abs(VALUES["fp8"]) < 64), raw.shape)
  arrays[2].view(np.float32)[:] = rng.integers(-64, 64, arrays[2].shape) / 8


def _stochastic(kind: str, byte: int) -> Witness:
  """The fraction and the seed's upper bits are added before what is too long is cut off."""
  drop = 20 if kind == "fp8" else 21

  def witness(arrays: list[Array]) -> list[Array]:
    x, seed, old = arrays
    moved = ((x & U32(0x7FFFFFFF)) + (seed >> U32(32 - drop)) | x & U32(0x80000000)).view(np.float32)
    codes = np.array([_below(float(v), kind) for v in moved], U32)
    out = _bytes(old).copy()
    out[:, byte] = codes
    return [out.view(U32).reshape(-1)]
  return witness


def _small(arrays: list[Array], rng: np.random.Generator) -> None:
  """Numbers that stay below the largest whatever is added."""
  arrays[0].view(np.float32)[:] = np.exp2(rng.uniform(-18, 8, len(arrays[0]))) * rng.choice([-1, 1], len(arrays[0]))


def _dot(a: str, b: str) -> Witness:
  def witness(arrays: list[Array]) -> list[Array]:
    x, y = VALUES[a][_bytes(arrays[0])], VALUES[b][_bytes(arrays[1])]
    return [_floats((x * y).sum(axis=1) + arrays[2].view(np.float32).astype(np.float64))]
  return witness


def _widened(kind: str, which: int | slice) -> Witness:
  """f32 of some bytes of a dword."""
  return lambda arrays: [_floats(VALUES[kind][_bytes(arrays[0])[:, which]])]


def small_floats() -> Iterator[Case]:
  """Conversions from and to 8-bit floats, and dot products of them."""
  for kind in ("fp8", "bf8"):
    for byte in range(4):
      yield intrinsic(f"cvt.f32.{kind}", "float", ("i32",), _widened(kind, byte), extra=[f"i32 {byte}"],
                      label=f"cvt_f32_{kind}_{byte}")
      yield intrinsic(f"cvt.sr.{kind}.f32", "i32", ("float", "i32", "i32"), _stochastic(kind, byte),
                      extra=[f"i32 {byte}"], label=f"cvt_sr_{kind}_f32_{byte}", fill=_small)
    for word in range(2):
      flag = "true" if word else "false"
      yield intrinsic(f"cvt.pk.f32.{kind}", "<2 x float>", ("i32",), _widened(kind, slice(2 * word, 2 * word + 2)),
                      extra=[f"i1 {flag}"], label=f"cvt_pk_f32_{kind}_{word}")
      for name, fill in (("any", _without_nan), ("near", _near)):
        yield intrinsic(f"cvt.pk.{kind}.f32", "i32", ("float", "float", "i32"), _pair(kind, word),
                        extra=[f"i1 {flag}"], label=f"cvt_pk_{kind}_f32_{word}_{name}", fill=fill)
    for other in ("fp8", "bf8"):
      yield intrinsic(f"dot4.f32.{kind}.{other}", "float", ("i32", "i32", "float"), _dot(kind, other), fill=_finite)


def _pair(kind: str, word: int) -> Witness:
  def witness(arrays: list[Array]) -> list[Array]:
    pair = _narrowed(arrays[0], kind) | _narrowed(arrays[1], kind) << U32(8)
    keep = arrays[2] & U32(0xFFFF if word else 0xFFFF0000)
    return [(keep | pair << U32(16 * word)).astype(U32)]
  return witness


def _chosen(rows: int) -> Witness:
  """Each lane names a lane of its row of 16, or of the row beside it."""
  def witness(arrays: list[Array]) -> list[Array]:
    old, x, selector = arrays
    lane = np.arange(len(x))
    return [x[lane & ~15 ^ 16 * rows | (selector & U32(15)).astype(np.int64)]]
  return witness


def lanes() -> Iterator[Case]:
  """Permutations within rows."""
  for rows, name in enumerate(("permlane16.var", "permlanex16.var")):
    yield intrinsic(name, "i32", ("i32",) * 3, _chosen(rows), extra=["i1 false", "i1 false"])


def all_gfx12() -> list[Case]:
  """Every case of this page."""
  return [*small_floats(), *lanes()]
