"""Operand values: where instructions change their behaviour, then patterns of every size. Deterministic for a seed."""
from __future__ import annotations

import random
from functools import cache

from tinyhw.tools.witness.softfloat import Format
from tinyhw.tools.witness.table import format_of, width_of


@cache
def special(type_: str) -> tuple[int, ...]:
  """Patterns at which operations change."""
  f, n = format_of(type_), width_of(type_)
  if f is not None: return _floats(f)
  top = 1 << n - 1
  values = [0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 127, 128, 255, 256, top - 1, top, top + 1, -1, -2, -3, -128,
            0x5555555555555555, 0x8000, 0x7FFF, 0xFFFF, 0x10000, 0x00FF00FF00FF00FF, 0x123456789ABCDEF0, 0x800000,
            0xFFFFFF]
  return tuple(dict.fromkeys(v & (1 << n) - 1 for v in values))


def _floats(f: Format) -> tuple[int, ...]:
  one, step = f.bias << f.mantissa, 1 << f.mantissa
  positive = [0, 1, step - 1, step, step + 1, one, one + 1, one - 1, one + step, one - step, one + step // 2,
              one + step + step // 2, f.infinity - 1, f.infinity, f.nan, f.infinity | 1,
              (f.bias + f.mantissa) * step + 1, (f.bias + f.mantissa + 1) * step + 1, (f.bias - f.mantissa - 1) * step]
  for n in (7, 8, 15, 16, 31, 32):
    if n < f.bias: positive += [(f.bias + n) * step - 1, (f.bias + n) * step]
  return tuple(v | s for v in positive for s in (0, f.sign))


def value(type_: str, rng: random.Random) -> int:
  """One pattern of a type."""
  chance = rng.random
  if chance() < 0.4:
    some = special(type_)
    return some[int(chance() * len(some))]
  f, n = format_of(type_), width_of(type_)
  bits = rng.getrandbits(n)
  if f is None:
    bits >>= int(chance() * n) if chance() < 0.6 else 0
    return -bits & (1 << n) - 1 if chance() < 0.3 else bits
  kind = chance()
  if kind < 0.3: return bits
  low, high = max(1, f.bias - 12), min(2 * f.bias, f.bias + 12)
  near = low + int(chance() * (high - low)) << f.mantissa
  fraction = bits & (1 << f.mantissa) - 1
  if kind < 0.6: fraction &= -1 << max(0, f.mantissa - 6)
  if kind > 0.95: near = 0
  return near | fraction | bits & f.sign
