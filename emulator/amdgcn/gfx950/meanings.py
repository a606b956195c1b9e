"""Meanings of what only gfx950 has, or has otherwise than gfx942 (CDNA4 ISA manual, 7.2 and chapter 12)."""
from __future__ import annotations

from collections.abc import Callable

from tinyhw.emulator.amdgcn.gfx9.meanings import conversions
from tinyhw.emulator.amdgcn.gfx12.meanings import maximum3, minimum3
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS, F
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V
from tinyhw.emulator.values.small_floats import BF8, FP8


def M(mnemonics: str, signature: str, *, exact: bool = True) -> Callable[[F], F]:
  """Register a meaning of gfx950 alone."""
  return MEANINGS(mnemonics, signature, exact=exact, isa="gfx950")


conversions("gfx950", {"fp8": FP8, "bf8": BF8})  # OCP's formats, under the names that gfx942 has for the FNUZ ones


# ---- integers
@M("v_prng_b32", "u32(u32)")
def prng(o: O[V], a: V) -> V: return (a << 1) ^ ((a >> 31) * 197)


def _truth(o: O[V], a: V, b: V, c: V, table: V) -> V:
  """The function of three bits that a table of eight bits says, the first operand's the highest of the index."""
  out = a & 0
  for k in range(8):
    term = (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    out = out | o.where((table >> k & 1) != 0, term, a & 0)
  return out

@M("v_bitop3_b32", "u32(u32, u32, u32, i:bitop3)")
def bitop3(o: O[V], a: V, b: V, c: V, table: V) -> V: return _truth(o, a, b, c, table)

@M("v_bitop3_b16", "u16(u16, u16, u16, i:bitop3)")
def bitop3_16(o: O[V], a: V, b: V, c: V, table: V) -> V: return _truth(o, a, b, c, table)


# ---- minima and maxima of three halves, those of f32 are RDNA4's
M("v_pk_minimum3_f16", "pk f16(f16, f16, f16)")(minimum3)
M("v_pk_maximum3_f16", "pk f16(f16, f16, f16)")(maximum3)
