"""Minima and maxima with MODE.IEEE: a signalling NaN comes out quiet (RDNA3 ISA manual, V_MIN_F32, section 3.4.2)."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from tinyhw.emulator.amdgcn.meanings.overflow import limited
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS, Function, Meaning
from tinyhw.emulator.amdgcn.modes import IEEE
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V

_EXTREMES: Final = re.compile(r"v_(pk_)?(min|max|min3|max3|med3|minmax|maxmin)_f(16|32|64)")
_QUIET_BIT: Final = {"f16": 0x200, "f32": 0x400000, "f64": 1 << 51}
_NAN: Final = {"f16": 0x7E00, "f32": 0x7FC00000, "f64": 0x7FF8 << 48}


def _signals(o: O[V], x: V, t: str) -> V: return o.isnan(x) & (o.bits(x, "u" + t[1:]) & _QUIET_BIT[t] == 0)


def quieting(function: Function, t: str) -> Function:
  """The minimum, maximum or median of two or three values of a float type with IEEE set."""
  def quiet(o: O[V], a: V, b: V, *rest: V) -> V:
    nan = o.from_bits(t, _NAN[t])
    first = _signals(o, a, t) | _signals(o, b, t)
    plain: V = function(o, a, b, *rest)
    if not rest: return o.where(first, nan, plain)
    c, = rest  # two of them first: their NaN is quiet when it meets the third
    return o.where(_signals(o, c, t), nan, o.where(first, c, plain))
  return quiet


def meaning_of(mnemonic: str, isa: str, mode: int) -> Meaning | None:
  """The meaning of an instruction under a MODE, apart from its rounding."""
  meaning = MEANINGS.get(mnemonic, isa)
  if meaning is not None: meaning = limited(meaning, mode)
  if meaning is None or not IEEE.of(mode) or not _EXTREMES.fullmatch(mnemonic): return meaning
  return replace(meaning, function=quieting(meaning.function, meaning.results[0]))
