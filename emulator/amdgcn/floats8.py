"""The two 8-bit float formats of CDNA3: FP8 (1-4-3, bias 8) and BF8 (1-5-2, bias 16) (CDNA3 ISA manual, section 7.2).

Neither has an infinity or -0: 0x80 is the only NaN.
"""
from __future__ import annotations

from typing import Final

import numpy as np


def _values(fraction: int, bias: int) -> np.ndarray:
  """The value of each of the 256 codes, as f64."""
  codes = np.arange(256)
  exponent, low = codes >> fraction & (1 << 7 - fraction) - 1, codes & (1 << fraction) - 1
  normal = np.ldexp(1 + low / (1 << fraction), exponent - bias)
  small = np.ldexp(low / (1 << fraction), 1 - bias)
  out = np.where(exponent > 0, normal, small) * np.where(codes >> 7, -1.0, 1.0)
  out[0x80] = np.nan
  return out


FP8: Final = _values(3, 8)
BF8: Final = _values(2, 16)
