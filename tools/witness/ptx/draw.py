"""Operands: where instructions change their behaviour, and patterns of every size."""
from __future__ import annotations

import random
from typing import Final

from tinyhw.isa.ptx.forms import SIZES
from tinyhw.tools.witness import draw

_LIKE: Final = {"s": "i", "u": "u", "b": "b"}


def value(type_: str, rng: random.Random) -> int:
  """One pattern of a type of PTX."""
  if type_ == "pred": return rng.getrandbits(1)
  for packed, one in (("f16x2", "f16"), ("bf16x2", "bf16"), ("f32x2", "f32"), ("u16x2", "b16"), ("s16x2", "b16")):
    if type_ == packed:
      bits = 32 if one == "f32" else 16
      return draw.value(one, rng) | draw.value(one, rng) << bits
  if type_ in {"f16", "bf16", "f32", "f64"}: return draw.value(type_, rng)
  bits = 8 * SIZES[type_]
  return draw.value(f"b{max(bits, 8)}", rng) & (1 << bits) - 1


def values(type_: str, rng: random.Random, count: int) -> list[int]:
  """Some of them."""
  return [value(type_, rng) for _ in range(count)]
