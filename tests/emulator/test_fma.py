"""Products with a sum, rounded once: the fast ways are for arrays in which no lane needs more."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.strength import examples, seed
from tinyhw.emulator.values.ops import Ops
from tinyhw.tools.witness.softfloat import F16, F32, F64, Format


def patterns(f: Format, values: list[int]) -> np.ndarray:
  """Floats of these bits."""
  return np.array(values, f"u{f.bits // 8}").view(f"f{f.bits // 8}")


def near_ties(f: Format, rng: random.Random) -> tuple[int, int, int]:
  """Factors whose product is half a unit of the addend's last place, or less than that by far too little for f64 to see
  it; among normal numbers or among denormal ones."""
  k = rng.randrange(f.mantissa * 2 // 3, f.mantissa + 1)
  one = f.bias << f.mantissa
  above, below = one + (1 << f.mantissa - k), f.round((1 << k) - 1, -k)  # 1 + 2**-k, 1 - 2**-k
  if rng.random() < 0.3: above = below = one
  small = rng.random() < 0.5
  exponent = 1 if small else rng.randrange(f.bias // 2, f.bias + 40 if f.bias > 40 else f.bias + 8)
  addend = rng.getrandbits(f.mantissa) | (0 if small else exponent << f.mantissa)
  half = exponent - f.bias - f.mantissa - 1
  return f.scaled(above, half // 2), f.scaled(below, half - half // 2), addend | f.sign * rng.getrandbits(1)


def far_apart(f: Format, rng: random.Random) -> tuple[int, int, int]:
  """Exponents near both ends of the range and past it, in products and sums."""
  def number(exponent: int) -> int:
    field = max(0, min(2 * f.bias, exponent + f.bias))
    return field << f.mantissa | rng.getrandbits(f.mantissa) | f.sign * rng.getrandbits(1)
  top = rng.choice((-2 * f.bias, -f.bias - f.mantissa, -f.bias, -f.bias + f.mantissa, f.bias - f.mantissa, f.bias, 0))
  first = max(-f.bias, min(f.bias, rng.randrange(-f.bias, f.bias)))
  return number(first), number(top - first + rng.randrange(-2, 3)), number(top + rng.randrange(-60, 61))


@pytest.mark.parametrize("f", [F16, F32, F64], ids=lambda f: f.name)
@pytest.mark.parametrize("draw", [near_ties, far_apart])
def test_fma_rounds_once_whatever_the_other_lanes_hold(draw: Any, f: Format) -> None:
  rng = random.Random(seed(f.bits))
  plain = [f.bias << f.mantissa | 1 << f.mantissa - 1] * 3  # 1.5 * 1.5 + 1.5 needs nothing
  for _ in range(examples(250)):
    case = draw(f, rng)
    wanted = f.fma(*case)
    with np.errstate(all="ignore"):
      alone = Ops.fma(*(patterns(f, [x])[0] for x in case))
      lanes = Ops.fma(*(patterns(f, [x, y])[None] for x, y in zip(case, plain)))
    for got in (np.asarray(alone), lanes[0, :1]):
      bits = int(got.view(f"u{f.bits // 8}").reshape(-1)[0])
      assert bits == wanted or f.is_nan(bits) and f.is_nan(wanted), (f.name, [hex(x) for x in case], hex(bits))
