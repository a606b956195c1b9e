"""The types of PTX."""
from __future__ import annotations

from tinyhw.isa.ptx.forms import SIZES


def test_types_have_the_bytes_that_their_names_say() -> None:
  """Floats of 4 bits lie two in a byte, those of 6 bits one in each (section "Packed Floating Point Data Types")."""
  plain = [f"{kind}{bits}" for kind in ("b", "u", "s") for bits in (8, 16, 32, 64)]
  bits = {name: int(name[1:]) for name in plain} | {
    "pred": 8, "b128": 128, "f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8,
    **dict.fromkeys(("texref", "samplerref", "surfref"), 64)}
  several = {"f16": (2,), "bf16": (2,), "u16": (2,), "s16": (2,), "f32": (2,), "e4m3": (2, 4), "e5m2": (2, 4),
             "e2m3": (2, 4), "e3m2": (2, 4), "e2m1": (2, 4), "ue8m0": (2,), "s2f6": (2,)}
  of_one = bits | dict.fromkeys(("e2m3", "e3m2", "ue8m0", "s2f6"), 8) | {"e2m1": 4}
  packed = {f"{name}x{n}": of_one[name] * n for name, counts in several.items() for n in counts}
  assert {name: 8 * size for name, size in SIZES.items()} == bits | packed
