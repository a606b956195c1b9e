"""Meanings of what only gfx90a has: multiply-add of f32 with two roundings.

Denormals are flushed, whatever MODE says: operands, the product and the sum (CDNA2 ISA manual, 12.11, V_MAD_F32; of
V_MAC_F32, V_MADMK_F32 and V_MADAK_F32 it says nothing, but LLVM 19 makes them, under any MODE, of the intrinsic
llvm.amdgcn.fmad.ftz.f32, which flushes).
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS, F
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V


def M(mnemonics: str, signature: str) -> Callable[[F], F]:
  """Register a meaning of gfx90a alone."""
  return MEANINGS(mnemonics, signature, isa="gfx90a")


def _sum(o: O[V], product: V, a: V, b: V, c: V) -> V:
  product = o.where(o.isnan(product) & ~(o.isnan(a) | o.isnan(b)) & o.isnan(c), c, product)  # as o.fma has it
  return o.flush(o.flush(product) + o.flush(c))


@M("v_mac_f32", "f32(f32, f32, d:f32)")
@M("v_mad_f32 v_madak_f32", "f32(f32, f32, f32)")
def mad(o: O[V], a: V, b: V, c: V) -> V: return _sum(o, o.flush(a) * o.flush(b), a, b, c)


@M("v_madmk_f32", "f32(f32, f32, f32)")
def madmk(o: O[V], a: V, k: V, b: V) -> V: return mad(o, a, k, b)


@M("v_mad_legacy_f32", "f32(f32, f32, f32)")
def mad_legacy(o: O[V], a: V, b: V, c: V) -> V:
  """Zero times anything is zero."""
  a, b = o.flush(a), o.flush(b)
  return _sum(o, o.where((a == 0) | (b == 0), o.const("f32", 0), a * b), a, b, c)
