"""Meanings of vector floating-point instructions (RDNA3 ISA manual, section 16).

Transcendental instructions are marked approximate: the manual gives them an error of up to one or a few ULP; here they
are computed in f64 and rounded once. Sums, products and fused operations are exact.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS as M
from tinyhw.emulator.amdgcn.meanings.registry import F
from tinyhw.emulator.values.elementary import exp2, log2, sin_of_turns
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V

QUIET_BIT: Final = {"f16": 0x200, "f32": 0x400000, "f64": 1 << 51}
NAN: Final = {"f16": 0xFE00, "f32": 0xFFC00000, "f64": 0xFFF8 << 48}  # what operations make of numbers


def _for(pattern: str, signature: str, types: str = "f16 f32 f64", *,
         exact: bool = True) -> Callable[[F], F]:
  """Register a function for several float types: `T` in both texts stands for the type."""
  def register(function: F) -> F:
    for t in types.split(): M(pattern.replace("T", t), signature.replace("T", t), exact=exact)(function)
    return function
  return register


# ---- arithmetic
@_for("v_add_T", "T(T, T)")
def add(o: O[V], a: V, b: V) -> V: return a + b

@_for("v_sub_T", "T(T, T)", "f16 f32")
def sub(o: O[V], a: V, b: V) -> V: return a - b

@_for("v_subrev_T", "T(T, T)", "f16 f32")
def subrev(o: O[V], a: V, b: V) -> V: return b - a

@_for("v_mul_T", "T(T, T)")
def mul(o: O[V], a: V, b: V) -> V: return a * b

def _zero_wins(o: O[V], a: V, b: V, value: V) -> V: return o.where((a == 0) | (b == 0), o.const("f32", 0), value)

@M("v_mul_dx9_zero_f32", "f32(f32, f32)")
def mul_dx9(o: O[V], a: V, b: V) -> V: return _zero_wins(o, a, b, a * b)

@_for("v_fma_T", "T(T, T, T)")
def fma(o: O[V], a: V, b: V, c: V) -> V: return o.fma(a, b, c)

@_for("v_fmac_T", "T(T, T, d:T)", "f16 f32")
def fmac(o: O[V], a: V, b: V, c: V) -> V: return o.fma(a, b, c)

@_for("v_fmaak_T", "T(T, T, T)", "f16 f32")
def fmaak(o: O[V], a: V, b: V, k: V) -> V: return o.fma(a, b, k)

@_for("v_fmamk_T", "T(T, T, T)", "f16 f32")
def fmamk(o: O[V], a: V, k: V, b: V) -> V: return o.fma(a, k, b)

@M("v_fma_dx9_zero_f32", "f32(f32, f32, f32)")
def fma_dx9(o: O[V], a: V, b: V, c: V) -> V: return o.where((a == 0) | (b == 0), c, o.fma(a, b, c))

@M("v_fmac_dx9_zero_f32", "f32(f32, f32, d:f32)")
def fmac_dx9(o: O[V], a: V, b: V, c: V) -> V: return fma_dx9(o, a, b, c)

@M("v_mullit_f32", "f32(f32, f32, f32)")
def mullit(o: O[V], a: V, b: V, c: V) -> V:
  low = -o.from_bits("f32", 0x7F7FFFFF)
  bad = (b == low) | (o.isinf(b) & (b < 0)) | o.isnan(b) | (c <= 0) | o.isnan(c)
  return o.where(bad, low, _zero_wins(o, a, b, a * b))

M("v_pk_add_f16", "pk f16(f16, f16)")(add)
M("v_pk_mul_f16", "pk f16(f16, f16)")(mul)
M("v_pk_fma_f16", "pk f16(f16, f16, f16)")(fma)
M("v_pk_fmac_f16", "pk f16(f16, f16, d:f16)")(fma)


# ---- minimum, maximum, median
@_for("v_min_T", "T(T, T)")
def min_(o: O[V], a: V, b: V) -> V: return o.fmin(a, b)

@_for("v_max_T", "T(T, T)")
def max_(o: O[V], a: V, b: V) -> V: return o.fmax(a, b)

M("v_pk_min_f16", "pk f16(f16, f16)")(min_)
M("v_pk_max_f16", "pk f16(f16, f16)")(max_)

@_for("v_min3_T", "T(T, T, T)", "f16 f32")
def min3(o: O[V], a: V, b: V, c: V) -> V: return o.fmin(o.fmin(a, b), c)

@_for("v_max3_T", "T(T, T, T)", "f16 f32")
def max3(o: O[V], a: V, b: V, c: V) -> V: return o.fmax(o.fmax(a, b), c)

@_for("v_minmax_T", "T(T, T, T)", "f16 f32")
def minmax(o: O[V], a: V, b: V, c: V) -> V: return o.fmax(o.fmin(a, b), c)

@_for("v_maxmin_T", "T(T, T, T)", "f16 f32")
def maxmin(o: O[V], a: V, b: V, c: V) -> V: return o.fmin(o.fmax(a, b), c)

@_for("v_med3_T", "T(T, T, T)", "f16 f32")
def med3(o: O[V], a: V, b: V, c: V) -> V:
  nan = o.isnan(a) | o.isnan(b) | o.isnan(c)
  top = max3(o, a, b, c)
  rest = o.where(top == a, o.fmax(b, c), o.where(top == b, o.fmax(a, c), o.fmax(a, b)))  # a zero equals the other one
  return o.where(nan, min3(o, a, b, c), rest)


# ---- rounding and parts
@_for("v_floor_T", "T(T)")
def floor(o: O[V], a: V) -> V: return o.floor(a)

@_for("v_ceil_T", "T(T)")
def ceil(o: O[V], a: V) -> V: return o.ceil(a)

@_for("v_trunc_T", "T(T)")
def trunc(o: O[V], a: V) -> V: return o.trunc(a)

@_for("v_rndne_T", "T(T)")
def rndne(o: O[V], a: V) -> V: return o.rint(a)

@M("v_fract_f32", "f32(f32)")
def fract32(o: O[V], a: V) -> V:
  f = a - o.floor(a)
  return o.where(f < 1, f, o.where(o.isnan(f), f, o.from_bits("f32", 0x3F7FFFFF)))

@M("v_fract_f16", "f16(f16)")
def fract16(o: O[V], a: V) -> V:
  f = a - o.floor(a)
  return o.where(f < 1, f, o.where(o.isnan(f), f, o.from_bits("f16", 0x3BFF)))

@M("v_fract_f64", "f64(f64)")
def fract64(o: O[V], a: V) -> V:
  f = a - o.floor(a)
  return o.where(f < 1, f, o.where(o.isnan(f), f, o.from_bits("f64", 0x3FEFFFFFFFFFFFFF)))

@M("v_frexp_mant_f16", "f16(f16)")
@M("v_frexp_mant_f32", "f32(f32)")
@M("v_frexp_mant_f64", "f64(f64)")
def frexp_mant(o: O[V], a: V) -> V: return o.where(o.isnan(a) | o.isinf(a), a, o.frexp(a)[0])

@M("v_frexp_exp_i32_f32", "i32(f32)")
@M("v_frexp_exp_i32_f64", "i32(f64)")
def frexp_exp(o: O[V], a: V) -> V: return o.where(o.isnan(a) | o.isinf(a), o.const("i32", 0), o.frexp(a)[1])

@M("v_frexp_exp_i16_f16", "i16(f16)")
def frexp_exp16(o: O[V], a: V) -> V: return o.to(frexp_exp(o, a), "i16")

@M("v_ldexp_f32", "f32(f32, i32)")
@M("v_ldexp_f64", "f64(f64, i32)")
@M("v_ldexp_f16", "f16(f16, i16)")
def ldexp(o: O[V], a: V, e: V) -> V: return o.ldexp(a, e)


# ---- transcendental: f32 and f16 through f64
def _wide(o: O[V], a: V) -> V: return o.to(a, "f64")

def _rounded(o: O[V], x: V, like: V) -> V:
  return o.to(x, f"f{like.dtype.itemsize * 8}")

def _flushed(o: O[V], a: V) -> V:
  """f32 operands and results of the transcendental unit are flushed whatever MODE says."""
  return o.flush(a) if a.dtype.itemsize == 4 else a

@_for("v_rcp_T", "T(T)", exact=False)
@M("v_rcp_iflag_f32", "f32(f32)", exact=False)
def rcp(o: O[V], a: V) -> V: return _flushed(o, _rounded(o, o.fdiv(o.const("f64", 1), _wide(o, _flushed(o, a))), a))

@_for("v_rsq_T", "T(T)", exact=False)
def rsq(o: O[V], a: V) -> V:
  return _flushed(o, _rounded(o, o.fdiv(o.const("f64", 1), o.sqrt(_wide(o, _flushed(o, a)))), a))

@_for("v_sqrt_T", "T(T)", exact=False)
def sqrt(o: O[V], a: V) -> V: return _rounded(o, o.sqrt(_wide(o, _flushed(o, a))), a)

@_for("v_exp_T", "T(T)", "f16 f32", exact=False)
def exp(o: O[V], a: V) -> V: return _flushed(o, _rounded(o, exp2(o, _wide(o, _flushed(o, a))), a))

@_for("v_log_T", "T(T)", "f16 f32", exact=False)
def log(o: O[V], a: V) -> V: return _rounded(o, log2(o, _wide(o, _flushed(o, a))), a)

@_for("v_sin_T", "T(T)", "f16 f32", exact=False)
def sin(o: O[V], a: V) -> V:
  """Denormals count whatever their size is, and -0 stays -0. Whole and half turns are taken off exactly."""
  x = _wide(o, a)
  t = x - o.rint(x)
  half = o.copysign(o.const("f64", 0.5), t)
  return _rounded(o, o.where(x == 0, x, sin_of_turns(o, o.where(o.abs(t) > 0.25, half - t, t))), a)

@_for("v_cos_T", "T(T)", "f16 f32", exact=False)
def cos(o: O[V], a: V) -> V:
  """The sine of what is left to a quarter turn."""
  x = _wide(o, a)
  t = x - o.rint(x)
  return _rounded(o, sin_of_turns(o, 0.25 - o.where(t < 0, o.neg(t), t)), a)


# ---- division: scale, fused multiply-add with scale, fix-up
def _div_scale(o: O[V], t: str, a: V, den: V, num: V, near: int, step: int, tiny: int, low: int) -> tuple[V, V]:
  """The manual's cases, but for two that chips were seen to have (autogen/silicon.py): VCC where the result is NaN, and
  where the quotient's exponent is -126 (-1022) by those of its operands alone, denormal or not."""
  inverse = o.fdiv(o.const(t, 1), den)
  quotient = o.fdiv(num, den)
  zero = (num == 0) | (den == 0)
  big = ~zero & (o.exponent(num) - o.exponent(den) >= near)
  done = zero | big
  den_denormal = ~done & o.is_denormal(den)
  done = done | den_denormal
  inverse_denormal = o.is_denormal(inverse)
  quotient_denormal = o.is_denormal(quotient) | (o.exponent(num) - o.exponent(den) <= low)
  both = ~done & inverse_denormal & quotient_denormal
  done = done | both
  shrink = ~done & inverse_denormal
  done = done | shrink
  small = ~done & quotient_denormal
  done = done | small
  tiny_num = ~done & (o.exponent(num) <= tiny)
  is_den, is_num = a == den, a == num
  up = den_denormal | tiny_num | (big & is_den) | (small & is_num)
  # Where the inverse and the quotient are denormal the manual scales the denominator up, out of range; down is right.
  down = shrink | (both & is_den)
  scaled = o.where(up, o.ldexp(a, o.const("i32", step)), o.where(down, o.ldexp(a, o.const("i32", -step)), a))
  return o.where(zero, o.from_bits(t, NAN[t]), scaled), zero | big | both | small

@M("v_div_scale_f32", "f32, mask(f32, f32, f32)")
def div_scale32(o: O[V], a: V, den: V, num: V) -> tuple[V, V]:
  return _div_scale(o, "f32", a, den, num, 96, 64, 23, -126)

@M("v_div_scale_f64", "f64, mask(f64, f64, f64)")
def div_scale64(o: O[V], a: V, den: V, num: V) -> tuple[V, V]:
  return _div_scale(o, "f64", a, den, num, 768, 128, 53, -1022)

@M("v_div_fmas_f32", "f32(f32, f32, f32, vcc)")
def div_fmas32(o: O[V], a: V, b: V, c: V, vcc: V) -> V:
  """The manual says a factor of 2**32; only 2**64 up or down, by the size of the quotient, undoes V_DIV_SCALE's."""
  factor = o.where(o.exponent(c) > 127, o.const("i32", 64), o.const("i32", -64))
  return o.fma_scaled(a, b, c, o.where(vcc, factor, o.const("i32", 0)))

@M("v_div_fmas_f64", "f64(f64, f64, f64, vcc)")
def div_fmas64(o: O[V], a: V, b: V, c: V, vcc: V) -> V:
  factor = o.where(o.exponent(c) > 1023, o.const("i32", 128), o.const("i32", -128))
  return o.fma_scaled(a, b, c, o.where(vcc, factor, o.const("i32", 0)))

def _quiet(o: O[V], t: str, x: V) -> V: return o.bits(o.bits(x, f"u{t[1:]}") | QUIET_BIT[t], t)

def _div_fixup(o: O[V], t: str, q: V, den: V, num: V, under: int, top: int) -> V:
  sign = o.where(o.signbit(den) ^ o.signbit(num), o.const(t, -1), o.const(t, 1))
  zero, inf = o.const(t, 0), o.fdiv(o.const(t, 1), o.const(t, 0))
  nan = o.from_bits(t, NAN[t])
  # a quotient far beyond the range comes out of the refinement as NaN (inf - inf): it is an overflow
  r = o.where(o.isnan(q), inf, o.abs(q))
  r = o.where(o.exponent(num) - o.exponent(den) < under, zero, o.where(o.exponent(den) == top, inf, r))
  r = o.where(o.isinf(den) | (num == 0), zero, r)
  r = o.where((den == 0) | o.isinf(num), inf, r)
  r = o.copysign(r, sign)
  r = o.where((den == 0) & (num == 0) | o.isinf(den) & o.isinf(num), nan, r)
  return o.where(o.isnan(num), _quiet(o, t, num), o.where(o.isnan(den), _quiet(o, t, den), r))

@M("v_div_fixup_f32", "f32(f32, f32, f32)")
def div_fixup32(o: O[V], q: V, den: V, num: V) -> V: return _div_fixup(o, "f32", q, den, num, -150, 255)

@M("v_div_fixup_f64", "f64(f64, f64, f64)")
def div_fixup64(o: O[V], q: V, den: V, num: V) -> V: return _div_fixup(o, "f64", q, den, num, -1075, 2047)

@M("v_div_fixup_f16", "f16(f16, f16, f16)")
def div_fixup16(o: O[V], q: V, den: V, num: V) -> V: return _div_fixup(o, "f16", q, den, num, -1000, 1000)


@cache
def _two_over_pi() -> int:
  """2/pi * 2**1201, by Machin's formula in integers."""
  bits = 1201
  one = 1 << bits + 64

  def arctan_inverse(n: int) -> int:
    total, term, k, sign = 0, one // n, 1, 1
    while term:
      total += sign * (term // k)
      term //= n * n
      k, sign = k + 2, -sign
    return total
  pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
  return 2 * one * (1 << bits) // pi

@M("v_trig_preop_f64", "f64(f64, u32)")
def trig_preop(o: O[V], a: V, segment: V) -> V:
  table = _two_over_pi()
  e = o.exponent(a)
  shift = o.to(segment & 31, "i32") * 53 + o.where(e > 1077, e - 1077, o.const("i32", 0))
  # result = bits [1200 - shift, 1148 - shift] of the fraction, taken from a table of 64-bit windows
  windows = o.lookup("u64", [table >> 1201 - 53 - s & (1 << 53) - 1 if s <= 1148 else table << s - 1148 & (1 << 53) - 1
                             for s in range(0, 31 * 53 + 970 + 1)], shift)
  scale = -53 - shift + o.where(e >= 1968, o.const("i32", 128), o.const("i32", 0))
  return o.ldexp(o.to(windows, "f64"), scale)


# ---- cube maps (used by some reductions of coordinates; plain arithmetic)
def _cube(o: O[V], x: V, y: V, z: V) -> tuple[V, V]:
  return (o.abs(z) >= o.abs(x)) & (o.abs(z) >= o.abs(y)), o.abs(y) >= o.abs(x)

@M("v_cubeid_f32", "f32(f32, f32, f32)")
def cubeid(o: O[V], x: V, y: V, z: V) -> V:
  in_z, in_y = _cube(o, x, y, z)
  c = o.const
  return o.where(in_z, o.where(z < 0, c("f32", 5), c("f32", 4)), o.where(
    in_y, o.where(y < 0, c("f32", 3), c("f32", 2)), o.where(x < 0, c("f32", 1), c("f32", 0))))

@M("v_cubema_f32", "f32(f32, f32, f32)")
def cubema(o: O[V], x: V, y: V, z: V) -> V:
  in_z, in_y = _cube(o, x, y, z)
  return o.where(in_z, z, o.where(in_y, y, x)) * o.const("f32", 2)

@M("v_cubesc_f32", "f32(f32, f32, f32)")
def cubesc(o: O[V], x: V, y: V, z: V) -> V:
  in_z, in_y = _cube(o, x, y, z)
  return o.where(in_z, o.where(z < 0, -x, x), o.where(in_y, x, o.where(x < 0, z, -z)))

@M("v_cubetc_f32", "f32(f32, f32, f32)")
def cubetc(o: O[V], x: V, y: V, z: V) -> V:
  in_z, in_y = _cube(o, x, y, z)
  return o.where(in_z, -y, o.where(in_y, o.where(y < 0, -z, z), -y))


# ---- conversions
@M("v_cvt_f32_f16", "f32(f16)")
@M("v_cvt_f32_f64", "f32(f64)")
@M("v_cvt_f32_i32", "f32(i32)")
@M("v_cvt_f32_u32", "f32(u32)")
def cvt_f32(o: O[V], a: V) -> V: return o.to(a, "f32")

@M("v_cvt_f64_f32", "f64(f32)")
@M("v_cvt_f64_i32", "f64(i32)")
@M("v_cvt_f64_u32", "f64(u32)")
def cvt_f64(o: O[V], a: V) -> V: return o.to(a, "f64")

@M("v_cvt_f16_f32", "f16(f32)")
@M("v_cvt_f16_i16", "f16(i16)")
@M("v_cvt_f16_u16", "f16(u16)")
def cvt_f16(o: O[V], a: V) -> V: return o.to(a, "f16")

@M("v_cvt_i32_f32", "i32(f32)")
@M("v_cvt_i32_f64", "i32(f64)")
def cvt_i32(o: O[V], a: V) -> V: return o.to_int(a, "i32")

@M("v_cvt_u32_f32", "u32(f32)")
@M("v_cvt_u32_f64", "u32(f64)")
def cvt_u32(o: O[V], a: V) -> V: return o.to_int(a, "u32")

@M("v_cvt_i16_f16", "i16(f16)")
def cvt_i16(o: O[V], a: V) -> V: return o.to_int(a, "i16")

@M("v_cvt_u16_f16", "u16(f16)")
def cvt_u16(o: O[V], a: V) -> V: return o.to_int(a, "u16")

@M("v_cvt_nearest_i32_f32", "i32(f32)")
def cvt_nearest(o: O[V], a: V) -> V: return o.to_int(o.floor(_wide(o, a) + o.const("f64", 0.5)), "i32")

@M("v_cvt_floor_i32_f32", "i32(f32)")
def cvt_floor(o: O[V], a: V) -> V: return o.to_int(o.floor(a), "i32")

@M("v_cvt_off_f32_i4", "f32(u32)")
def cvt_off(o: O[V], a: V) -> V: return o.to(o.bits(a << 28, "i32") >> 28, "f32") * o.const("f32", 0.0625)

for _k in range(4):
  @M(f"v_cvt_f32_ubyte{_k}", "f32(u32)")
  def cvt_ubyte(o: O[V], a: V, k: int = _k) -> V: return o.to(a >> 8 * k & 0xFF, "f32")

def _pair(o: O[V], low: V, high: V) -> V:
  return o.to(o.bits(low, "u16"), "u32") | o.to(o.bits(high, "u16"), "u32") << 16

@M("v_cvt_pk_i16_f32", "u32(f32, f32)")
def cvt_pk_i16(o: O[V], a: V, b: V) -> V: return _pair(o, o.to_int(a, "i16"), o.to_int(b, "i16"))

@M("v_cvt_pk_u16_f32", "u32(f32, f32)")
def cvt_pk_u16(o: O[V], a: V, b: V) -> V: return _pair(o, o.to_int(a, "u16"), o.to_int(b, "u16"))

def _norm(o: O[V], a: V, t: str) -> V:
  x = o.where(o.isnan(a), o.const("f64", 0), _wide(o, a))
  if t == "i16": return o.to_int(o.rint(o.fmin(o.fmax(x, o.const("f64", -1)), o.const("f64", 1)) * 32767.0), t)
  return o.to_int(o.rint(o.fmin(o.fmax(x, o.const("f64", 0)), o.const("f64", 1)) * 65535.0), t)

@M("v_cvt_norm_i16_f16", "i16(f16)")
def cvt_norm_i16(o: O[V], a: V) -> V: return _norm(o, a, "i16")

@M("v_cvt_norm_u16_f16", "u16(f16)")
def cvt_norm_u16(o: O[V], a: V) -> V: return _norm(o, a, "u16")

@M("v_cvt_pk_norm_i16_f32", "u32(f32, f32)")
@M("v_cvt_pk_norm_i16_f16", "u32(f16, f16)")
def cvt_pk_norm_i16(o: O[V], a: V, b: V) -> V: return _pair(o, _norm(o, a, "i16"), _norm(o, b, "i16"))

@M("v_cvt_pk_norm_u16_f32", "u32(f32, f32)")
@M("v_cvt_pk_norm_u16_f16", "u32(f16, f16)")
def cvt_pk_norm_u16(o: O[V], a: V, b: V) -> V: return _pair(o, _norm(o, a, "u16"), _norm(o, b, "u16"))

@M("v_cvt_pk_u8_f32", "u32(f32, u32, u32)")
def cvt_pk_u8(o: O[V], a: V, at: V, old: V) -> V:
  shift = (at & 3) * 8
  byte = o.to(o.to_int(a, "u8"), "u32")
  return old & ~(o.const("u32", 0xFF) << shift) | byte << shift

def _toward_zero16(o: O[V], a: V) -> V:
  """f32 to f16 toward zero: round to nearest, step back where that went outward."""
  r = o.to(a, "f16")
  outward = o.abs(o.to(r, "f64")) > o.abs(_wide(o, a))
  raw = o.bits(r, "u16")
  return o.bits(o.where(outward & ~o.isinf(a), raw - 1, raw), "f16")

@M("v_cvt_pk_rtz_f16_f32", "u32(f32, f32)")
def cvt_pk_rtz(o: O[V], a: V, b: V) -> V: return _pair(o, _toward_zero16(o, a), _toward_zero16(o, b))


# ---- dot products
def _halves(o: O[V], a: V) -> tuple[V, V]:
  return o.bits(o.to(a & 0xFFFF, "u16"), "f16"), o.bits(o.to(a >> 16, "u16"), "f16")

@M("v_dot2_f32_f16", "f32(u32, u32, f32)", exact=False)
def dot2(o: O[V], a: V, b: V, c: V) -> V:
  (al, ah), (bl, bh) = _halves(o, a), _halves(o, b)
  return o.to(_wide(o, al) * _wide(o, bl) + _wide(o, ah) * _wide(o, bh) + _wide(o, c), "f32")

@M("v_dot2acc_f32_f16", "f32(u32, u32, d:f32)", exact=False)
def dot2acc(o: O[V], a: V, b: V, c: V) -> V: return dot2(o, a, b, c)

def _bf16(o: O[V], a: V) -> V: return o.bits(o.to(a, "u32") << 16, "f32")

@M("v_dot2_f32_bf16", "f32(u32, u32, f32)", exact=False)
def dot2_bf16(o: O[V], a: V, b: V, c: V) -> V:
  low = _wide(o, _bf16(o, a & 0xFFFF)) * _wide(o, _bf16(o, b & 0xFFFF))
  high = _wide(o, _bf16(o, a >> 16)) * _wide(o, _bf16(o, b >> 16))
  return o.to(low + high + _wide(o, c), "f32")

@M("v_dot2_f16_f16", "f16(u32, u32, f16)", exact=False)
def dot2_f16(o: O[V], a: V, b: V, c: V) -> V:
  (al, ah), (bl, bh) = _halves(o, a), _halves(o, b)
  return o.to(_wide(o, al) * _wide(o, bl) + _wide(o, ah) * _wide(o, bh) + _wide(o, c), "f16")


@M("v_dot2_bf16_bf16", "u16(u32, u32, u16)", exact=False)
def dot2_bf16_bf16(o: O[V], a: V, b: V, c: V) -> V:
  """Without denormals, whatever MODE says (RDNA3 ISA manual, section 7.2.4)."""
  low = _wide(o, o.flush(_bf16(o, a & 0xFFFF))) * _wide(o, o.flush(_bf16(o, b & 0xFFFF)))
  high = _wide(o, o.flush(_bf16(o, a >> 16))) * _wide(o, o.flush(_bf16(o, b >> 16)))
  raw = o.bits(o.to(low + high + _wide(o, o.flush(_bf16(o, c))), "f32"), "u32")
  rounded = raw + 0x7FFF + (raw >> 16 & 1) >> 16
  rounded = o.where((rounded & 0x7F80) == 0, rounded & 0x8000, rounded)
  return o.to(o.where(o.isnan(o.bits(raw, "f32")), o.const("u32", 0x7FC0), rounded), "u16")


# ---- comparisons and classes
def _f(o: O[V], a: V, b: V) -> V: return (a < a) & (b < b)
def _lt(o: O[V], a: V, b: V) -> V: return a < b
def _eq(o: O[V], a: V, b: V) -> V: return a == b
def _le(o: O[V], a: V, b: V) -> V: return a <= b
def _gt(o: O[V], a: V, b: V) -> V: return a > b
def _lg(o: O[V], a: V, b: V) -> V: return (a < b) | (a > b)
def _ge(o: O[V], a: V, b: V) -> V: return a >= b
def _o(o: O[V], a: V, b: V) -> V: return (a == a) & (b == b)
def _u(o: O[V], a: V, b: V) -> V: return (a != a) | (b != b)
def _nge(o: O[V], a: V, b: V) -> V: return ~(a >= b)
def _nlg(o: O[V], a: V, b: V) -> V: return ~_lg(o, a, b)
def _ngt(o: O[V], a: V, b: V) -> V: return ~(a > b)
def _nle(o: O[V], a: V, b: V) -> V: return ~(a <= b)
def _neq(o: O[V], a: V, b: V) -> V: return ~(a == b)
def _nlt(o: O[V], a: V, b: V) -> V: return ~(a < b)
def _t(o: O[V], a: V, b: V) -> V: return ~_f(o, a, b)

def _class(o: O[V], a: V, mask: V) -> V:
  """Bits: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf."""
  negative, nan, inf = o.signbit(a), o.isnan(a), o.isinf(a)
  zero, denormal = a == 0, o.is_denormal(a)
  width = a.dtype.itemsize * 8
  quiet_bit = {16: 9, 32: 22, 64: 51}[width]
  raw = o.bits(a, f"u{width}")
  quiet = (raw >> quiet_bit & 1) == 1
  def c(n: int) -> V: return o.const("i32", n)
  kind = o.where(inf, c(0), o.where(zero, c(3), o.where(denormal, c(2), c(1))))
  index = o.where(nan, o.where(quiet, c(1), c(0)), o.where(negative, kind + 2, 9 - kind))
  return (o.to(mask, "i32") >> index & 1) == 1

COMPARISONS = (("f", _f), ("lt", _lt), ("eq", _eq), ("le", _le), ("gt", _gt), ("lg", _lg), ("ge", _ge), ("o", _o),
               ("u", _u), ("nge", _nge), ("nlg", _nlg), ("ngt", _ngt), ("nle", _nle), ("neq", _neq), ("nlt", _nlt),
               ("t", _t))
for _type in ("f16", "f32", "f64"):
  for _name, _function in COMPARISONS:
    M(f"v_cmp_{_name}_{_type}", f"mask({_type}, {_type})")(_function)
    M(f"v_cmpx_{_name}_{_type}", f"exec({_type}, {_type})")(_function)
  _bits = "u16" if _type == "f16" else "u32"
  M(f"v_cmp_class_{_type}", f"mask({_type}, {_bits})")(_class)
  M(f"v_cmpx_class_{_type}", f"exec({_type}, {_bits})")(_class)
