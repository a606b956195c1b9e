"""MODE.FP16_OVFL: a half that overflows becomes the largest number instead of infinity (RDNA4 ISA manual, 3.4.3).

True infinities stay: those of an infinite operand, and those of a division by zero or the logarithm of zero.
"""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from tinyhw.emulator.amdgcn.meanings.registry import Function, Meaning
from tinyhw.emulator.amdgcn.modes import FP16_OVFL
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V

_LARGEST: Final = 0x7BFF
_POLES: Final = re.compile(r"v_(s_)?(rcp|rsq|log)_f16")  # infinite where the operand is zero
# these choose, they round nothing
_MOVES: Final = re.compile(r"(?a)[vs]_(pk_)?(min|max|med3|cndmask)\w*|v_div_fixup_f16")


def limited(meaning: Meaning, mode: int) -> Meaning:
  """The meaning under a MODE: with FP16_OVFL, finite operands give finite halves."""
  if not FP16_OVFL.of(mode) or meaning.results != ("f16",) or _MOVES.fullmatch(meaning.mnemonic): return meaning
  floats = [t.removeprefix("d:") in {"f16", "f32", "f64"} for t in meaning.sources]
  pole = bool(_POLES.fullmatch(meaning.mnemonic))
  return replace(meaning, function=_limited(meaning.function, floats, pole))


def _limited(function: Function, floats: list[bool], pole: bool) -> Function:
  def clamped(o: O[V], *values: V) -> V:
    result: V = function(o, *values)
    over = o.isinf(result)
    for x, is_float in zip(values, floats):
      if not is_float: continue
      over = over & ~o.isinf(x)
      if pole: over = over & (x != 0)
    return o.where(over, o.copysign(o.from_bits("f16", _LARGEST), result), result)
  return clamped
