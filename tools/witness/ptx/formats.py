"""The formats of PTX's floats, and how numbers of one compare (PTX ISA, 9.7.4)."""
from __future__ import annotations

from typing import Final

from tinyhw.tools.witness.softfloat import BF16, F16, F32, F64, Format

FORMATS: Final[dict[str, Format]] = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def compared(name: str, f: Format, a: int, b: int, ftz: bool = False) -> bool:
  """A comparison of floats; those that end with u hold for NaN too."""
  if ftz: a, b = f.flush(a), f.flush(b)
  nan = f.is_nan(a) or f.is_nan(b)
  if name in {"num", "nan"}: return nan == (name == "nan")
  if nan: return len(name) == 3
  x, y = f.order(a), f.order(b)
  return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[name[:2]]
