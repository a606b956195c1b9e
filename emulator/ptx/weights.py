"""What instructions cost the reference that are far from what most cost: microseconds of a warp, measured.

The choice of an engine goes by them, and the length of turns: both by counts, never by a clock.
"""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.ptx.module.scope import Line

_PRODUCT, _FRAGMENT, _COPY, _FETCH, _FRACTIONS = 50, 25, 15, 15, 1000
_WHOLE: Final = 40 * _PRODUCT  # a product of a whole tile
_WEIGHTS: Final = {"mma": _PRODUCT, "wmma": _FRAGMENT, "wgmma": 8 * _PRODUCT, "tcgen05": _FRAGMENT, "tex": _FETCH,
                   "tld4": _FETCH, "suld": _FETCH, "sust": _FETCH, "sured": _FETCH}
_EXACT: Final = frozenset({"add", "sub", "mul", "mad", "fma", "div", "rcp", "sqrt"})  # of f64, by fractions
_ROUNDINGS: Final = frozenset({"rz", "rm", "rp"})


def of(line: Line) -> int:
  """The weight of an instruction, 0 for most."""
  i = line.instruction
  known = _WEIGHTS.get(i.opcode, 0)
  if i.opcode == "tcgen05": return _WHOLE if "mma" in i.modifiers else known
  if i.opcode == "wmma" and "mma" in i.modifiers: return _PRODUCT
  if i.opcode == "cp" and "async" in i.modifiers[:1]: return _COPY
  if i.opcode in _EXACT and not _ROUNDINGS.isdisjoint(i.modifiers) and "f64" in i.modifiers: return _FRACTIONS
  return known


__all__ = ["of"]
