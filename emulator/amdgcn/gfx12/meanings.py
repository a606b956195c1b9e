"""Meanings of what RDNA4 (gfx12) adds or renames: minimum and maximum in both IEEE styles, scalar floats, 64-bit scalar
arithmetic, 8-bit floats (RDNA4 ISA manual, sections 6.8, 7.5, 7.6, 7.10 and 16).

`num` in a name is IEEE 754-2019's minimumNumber or maximumNumber, which prefers a number to a NaN; `minimum` and
`maximum` give NaN where an operand is one. In both -0 is less than +0.
"""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.amdgcn.meanings import floats, integer, scalar
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS as M
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import Ternary, V
from tinyhw.emulator.values.small_floats import BF8, FP8, SmallFloat, decoded, dot4, encoded, stochastic

_F16_F32: Final = ("f16", "f32")


# ---- without denormals, whatever MODE says (7.2.4)
def _without_denormals(function: Ternary) -> Ternary:
  return lambda o, a, b, c: o.flush(function(o, o.flush(a), o.flush(b), o.flush(c)))

for _name, _three in (("fma_dx9_zero", floats.fma_dx9), ("cubeid", floats.cubeid), ("cubema", floats.cubema),
                      ("cubesc", floats.cubesc), ("cubetc", floats.cubetc)):
  M(f"v_{_name}_f32", "f32(f32, f32, f32)", isa="gfx12")(_without_denormals(_three))


# ---- minimum and maximum
def _nan_or(o: O[V], a: V, b: V, number: V) -> V:
  """The first NaN, made quiet; a sum of both would leave it to the engine which one comes out."""
  return o.where(o.isnan(a), a + a, o.where(o.isnan(b), b + b, number))

def minimum(o: O[V], a: V, b: V) -> V: return _nan_or(o, a, b, o.fmin(a, b))

def maximum(o: O[V], a: V, b: V) -> V: return _nan_or(o, a, b, o.fmax(a, b))

def minimum3(o: O[V], a: V, b: V, c: V) -> V: return minimum(o, minimum(o, a, b), c)

def maximum3(o: O[V], a: V, b: V, c: V) -> V: return maximum(o, maximum(o, a, b), c)

def minimummaximum(o: O[V], a: V, b: V, c: V) -> V: return maximum(o, minimum(o, a, b), c)

def maximumminimum(o: O[V], a: V, b: V, c: V) -> V: return minimum(o, maximum(o, a, b), c)

for _t in ("f16", "f32", "f64"):
  for _name, _function in (("min_num", floats.min_), ("max_num", floats.max_), ("minimum", minimum),
                           ("maximum", maximum)):
    M(f"v_{_name}_{_t}", f"{_t}({_t}, {_t})")(_function)
for _t in _F16_F32:
  for _name, _function in (("min_num", floats.min_), ("max_num", floats.max_), ("minimum", minimum),
                           ("maximum", maximum)):
    M(f"s_{_name}_{_t}", f"{_t}({_t}, {_t})")(_function)
  for _name, _three in (("min3_num", floats.min3), ("max3_num", floats.max3), ("med3_num", floats.med3),
                        ("minmax_num", floats.minmax), ("maxmin_num", floats.maxmin), ("minimum3", minimum3),
                        ("maximum3", maximum3), ("minimummaximum", minimummaximum), ("maximumminimum", maximumminimum)):
    M(f"v_{_name}_{_t}", f"{_t}({_t}, {_t}, {_t})")(_three)
for _name, _function in (("min_num", floats.min_), ("max_num", floats.max_), ("minimum", minimum),
                         ("maximum", maximum)):
  M(f"v_pk_{_name}_f16", "pk f16(f16, f16)")(_function)


# ---- scalar floats: the vector instructions' results, in SGPRs; f16 leaves zeros in the upper half
for _t in _F16_F32:
  for _name, _function in (("add", floats.add), ("sub", floats.sub), ("mul", floats.mul)):
    M(f"s_{_name}_{_t}", f"{_t}({_t}, {_t})")(_function)
  for _name, _one in (("ceil", floats.ceil), ("floor", floats.floor), ("trunc", floats.trunc),
                      ("rndne", floats.rndne)):
    M(f"s_{_name}_{_t}", f"{_t}({_t})")(_one)
  M(f"s_fmac_{_t}", f"{_t}({_t}, {_t}, d:{_t})")(floats.fma)
  for _name, _function in floats.COMPARISONS:
    if _name not in {"f", "t"}: M(f"s_cmp_{_name}_{_t}", f"scc({_t}, {_t})")(_function)
M("s_fmaak_f32", "f32(f32, f32, f32)")(floats.fmaak)
M("s_fmamk_f32", "f32(f32, f32, f32)")(floats.fmamk)
M("s_cvt_f32_f16", "f32(f16)")(floats.cvt_f32)
M("s_cvt_f32_i32", "f32(i32)")(floats.cvt_f32)
M("s_cvt_f32_u32", "f32(u32)")(floats.cvt_f32)
M("s_cvt_f16_f32", "f16(f32)")(floats.cvt_f16)
M("s_cvt_i32_f32", "i32(f32)")(floats.cvt_i32)
M("s_cvt_u32_f32", "u32(f32)")(floats.cvt_u32)
M("s_cvt_pk_rtz_f16_f32", "u32(f32, f32)")(floats.cvt_pk_rtz)

@M("s_cvt_hi_f32_f16", "f32(u32)")
def cvt_hi(o: O[V], a: V) -> V: return o.to(o.bits(o.to(a >> 16, "u16"), "f16"), "f32")

for _t in _F16_F32:
  for _name, _one in (("exp", floats.exp), ("log", floats.log), ("rcp", floats.rcp), ("rsq", floats.rsq),
                      ("sqrt", floats.sqrt)):
    M(f"v_s_{_name}_{_t}", f"{_t}({_t})", exact=False)(_one)


# ---- integers: new names, and 64 bits
M("s_add_co_u32", "u32, scc(u32, u32)")(scalar.add_u)
M("s_sub_co_u32", "u32, scc(u32, u32)")(scalar.sub_u)
M("s_add_co_i32", "i32, scc(i32, i32)")(scalar.add_i)
M("s_sub_co_i32", "i32, scc(i32, i32)")(scalar.sub_i)
M("s_addk_co_i32", "i32, scc(d:i32, k)")(scalar.addk)
M("s_add_co_ci_u32", "u32, scc(u32, u32, scc)")(scalar.addc)
M("s_sub_co_ci_u32", "u32, scc(u32, u32, scc)")(scalar.subb)
M("v_mad_co_u64_u32", "u64, mask(u32, u32, u64)")(integer.mad_u64_u32)
M("v_mad_co_i64_i32", "i64, mask(i32, i32, i64)")(integer.mad_i64_i32)

@M("s_add_nc_u64", "u64(u64, u64)")
def add64(o: O[V], a: V, b: V) -> V: return a + b

@M("s_sub_nc_u64", "u64(u64, u64)")
def sub64(o: O[V], a: V, b: V) -> V: return a - b

@M("s_mul_u64", "u64(u64, u64)")
def mul64(o: O[V], a: V, b: V) -> V: return a * b


# ---- 8-bit floats; `i:` is a field of the instruction, `mode:` one of MODE
for _name, _small in (("fp8", FP8), ("bf8", BF8)):
  @M(f"v_cvt_f32_{_name}", "f32(u32, i:byte_sel)", isa="gfx12")
  def cvt_small(o: O[V], a: V, at: V, t: SmallFloat = _small) -> V: return decoded(o, a >> 8 * at & 0xFF, t)

  @M(f"v_cvt_pk_f32_{_name}", "u64(u32, i:op_sel)", isa="gfx12")
  def cvt_pk(o: O[V], a: V, select: V, t: SmallFloat = _small) -> V:
    word = a >> 16 * (select & 1)
    return o.pack(*(o.bits(decoded(o, word >> shift & 0xFF, t), "u32") for shift in (0, 8)))

  @M(f"v_cvt_pk_{_name}_f32", "u32(f32, f32, d:u32, i:op_sel, mode:FP16_OVFL)", isa="gfx12")
  def cvt_to_pk(o: O[V], a: V, b: V, old: V, select: V, limit: V, t: SmallFloat = _small) -> V:
    shift = 16 * (select >> 3 & 1)
    pair = encoded(o, a, t, limit) | encoded(o, b, t, limit) << 8
    return old & ~(o.const("u32", 0xFFFF) << shift) | pair << shift

  # section 7.6.1: the seed is added to the value, and the sum is truncated
  @M(f"v_cvt_sr_{_name}_f32", "u32(f32, u32, d:u32, i:byte_sel, mode:FP16_OVFL)", isa="gfx12")
  def cvt_sr(o: O[V], a: V, seed: V, old: V, at: V, limit: V, t: SmallFloat = _small) -> V:
    shift = 8 * (at & 3)
    return old & ~(o.const("u32", 0xFF) << shift) | stochastic(o, a, seed, t, limit) << shift

for _name, _a, _b in (("fp8_fp8", FP8, FP8), ("fp8_bf8", FP8, BF8), ("bf8_fp8", BF8, FP8), ("bf8_bf8", BF8, BF8)):
  @M(f"v_dot4_f32_{_name}", "f32(u32, u32, f32, i:neg_lo, i:neg_hi)", exact=False)
  def dot(o: O[V], a: V, b: V, c: V, negative: V, absolute: V, s: SmallFloat = _a, t: SmallFloat = _b) -> V:
    """neg_hi takes source 2's absolute value, neg_lo negates it."""
    c = o.where(absolute != 0, o.abs(c), c)
    return dot4(o, a, b, o.where(negative != 0, o.neg(c), c), s, t)
