"""Witnesses of conversions and transcendental functions (RDNA3 ISA manual, sections 16.8 and 16.12)."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import mpmath

from tinyhw.tools.witness.floats import bare, lane
from tinyhw.tools.witness.integers import field, signed
from tinyhw.tools.witness.softfloat import (
  DOWN,
  F16,
  F32,
  F64,
  RNE,
  ZERO,
  Format,
  convert,
  from_integer,
  integer,
  to_integer,
)
from tinyhw.tools.witness.table import MPMATH, WITNESSES, Mode

RANGE: Final = {"i8": (-128, 127), "u8": (0, 255), "i16": (-0x8000, 0x7FFF), "u16": (0, 0xFFFF),
                "i32": (-(1 << 31), (1 << 31) - 1), "u32": (0, (1 << 32) - 1)}

# ---- integers and floats

for f, types in ((F16, ("i16", "u16")), (F32, ("i32", "u32")), (F64, ("i32", "u32"))):
  for t in types:
    lane(f"v_cvt_{f.name}_{t}", f"{t} -> {f.name}", lambda m, a, f=f: from_integer(a, f, m.rounding(f)))
    bare(f"v_cvt_{t}_{f.name}", f"{f.name} -> {t}", lambda a, f=f, t=t: to_integer(a, f, *RANGE[t]))
for t in ("i32", "u32"):
  lane(f"s_cvt_f32_{t}", f"{t} -> f32", lambda m, a: from_integer(a, F32, m.rounding(F32)))
  bare(f"s_cvt_{t}_f32", f"f32 -> {t}", lambda a, t=t: to_integer(a, F32, *RANGE[t]))
for k in range(4):
  lane(f"v_cvt_f32_ubyte{k}", "b32 -> f32", lambda m, a, k=k: from_integer(field(a, 8 * k, 8), F32))
bare("v_cvt_floor_i32_f32 v_cvt_flr_i32_f32", "f32 -> i32", lambda a: to_integer(a, F32, *RANGE["i32"], DOWN))


def nearest(a: int) -> int:
  """floor(a + 0.5), of the exact sum."""
  if F32.is_nan(a) or F32.is_inf(a): return to_integer(a, F32, *RANGE["i32"])
  m, e = F32.value(a)
  low = min(e, -1)
  total = (m << e - low) + (1 << -1 - low)
  return max(-(1 << 31), min((1 << 31) - 1, total >> -low))


bare("v_cvt_nearest_i32_f32 v_cvt_rpi_i32_f32", "f32 -> i32", nearest)
bare("v_cvt_off_f32_i4", "b32 -> f32", lambda a: F32.round(signed(a, 4), -4))

# ---- floats and floats

lane("v_cvt_f16_f32 s_cvt_f16_f32", "f32 -> f16", lambda m, a: convert(a, F32, F16, m.rounding(F16)))
lane("v_cvt_f32_f16 s_cvt_f32_f16", "f16 -> f32", lambda m, a: convert(a, F16, F32))
lane("s_cvt_hi_f32_f16", "b32 -> f32", lambda m, a: convert(a >> 16, F16, F32))
lane("v_cvt_f32_f64", "f64 -> f32", lambda m, a: convert(a, F64, F32, m.rounding(F32)))
lane("v_cvt_f64_f32", "f32 -> f64", lambda m, a: convert(a, F32, F64))


def both(one: Callable[[int], int], bits: int = 16) -> Callable[[int, int], int]:
  """A conversion of two sources, packed."""
  return lambda a, b: one(a) & (1 << bits) - 1 | (one(b) & (1 << bits) - 1) << bits


bare("v_cvt_pk_rtz_f16_f32 s_cvt_pk_rtz_f16_f32 v_cvt_pkrtz_f16_f32", "f32 f32 -> v2f16",
     both(lambda a: convert(a, F32, F16, ZERO)))


def whole(t: str) -> Callable[[int], int]:
  """A float as an integer of a type."""
  return lambda a: to_integer(a, F32, *RANGE[t])


def limited(t: str) -> Callable[[int], int]:
  """A wider integer saturated to a type."""
  return lambda a: max(RANGE[t][0], min(RANGE[t][1], a))


def normalized(f: Format, signed_: bool) -> Callable[[int], int]:
  """A number in [-1, 1] or [0, 1] as a 16-bit fraction, to the nearest."""
  top = 0x7FFF if signed_ else 0xFFFF

  def fraction(a: int) -> int:
    if f.is_nan(a): return 0
    if f.is_inf(a): return (-top if signed_ else 0) if f.negative(a) else top
    m, e = f.value(a)
    return max(-top if signed_ else 0, min(top, integer(m * top, e, RNE)))
  return fraction


for f in (F16, F32):
  for letter in "iu":
    one = normalized(f, letter == "i")
    names = f"v_cvt_pk_norm_{letter}16_{f.name} v_cvt_pknorm_{letter}16_{f.name}"
    bare(names, f"{f.name} {f.name} -> b32", both(one))
    if f is F16: bare(f"v_cvt_norm_{letter}16_f16", f"f16 -> {letter}16", one)
for t in ("i16", "u16"):
  bare(f"v_cvt_pk_{t}_f32", "f32 f32 -> b32", both(whole(t)))
  wide = t.replace("16", "32")
  WITNESSES.lane(f"v_cvt_pk_{t}_{wide}", f"{wide} {wide} -> b32", both(limited(t)))


def into_byte(a: int, b: int, c: int) -> int:
  """V_CVT_PK_U8_F32: the number as a byte, into byte b of c."""
  at = 8 * (b & 3)
  return c & ~(0xFF << at) | to_integer(a, F32, 0, 255) << at


bare("v_cvt_pk_u8_f32", "f32 b32 b32 -> b32", into_byte)

# ---- transcendental functions

PRECISION: Final = 160


def exact(x: Any, f: Format) -> int:
  """An mpmath number as a pattern."""
  if mpmath.isnan(x): return f.nan
  if mpmath.isinf(x): return f.inf(x < 0)
  m, e = x.man_exp
  return f.round(-m if x < 0 and m > 0 else m, e)


def number(a: int, f: Format) -> Any:
  m, e = f.value(a)
  return mpmath.ldexp(mpmath.mpf(m), e)


def power(f: Format, a: int) -> int:
  """2**a."""
  if f.is_nan(a): return f.nan
  if f.is_inf(a): return 0 if f.negative(a) else a
  with mpmath.workprec(PRECISION):
    x = number(a, f)
    if abs(x) > 5000: return f.inf(False) if x > 0 else 0
    return exact(mpmath.power(2, x), f)


def logarithm(f: Format, a: int) -> int:
  """log2(a)."""
  if f.is_nan(a): return f.nan
  if f.is_zero(a): return f.inf(True)
  if f.negative(a): return f.nan
  if f.is_inf(a): return a
  with mpmath.workprec(PRECISION): return exact(mpmath.log(number(a, f), 2), f)


def turn(f: Format, a: int, function: Callable[[Any], Any]) -> int:
  """A function of 2 pi a; the whole turns are taken off first."""
  if f.is_nan(a) or f.is_inf(a): return f.nan
  if f.is_zero(a): return a if function is mpmath.sin else f.bias << f.mantissa
  m, e = f.value(a)
  if e < 0: m &= (1 << -e) - 1
  if e >= 0: m = 0
  eighths = m << 3 >> -e if e < 0 else 0
  with mpmath.workprec(PRECISION):
    if e >= 0 or m << 2 == eighths // 2 << -e:  # a multiple of a quarter turn
      quarter = eighths // 2
      table = (0, 1, 0, -1) if function is mpmath.sin else (1, 0, -1, 0)
      return f.round(table[quarter], 0)
    return exact(function(2 * mpmath.pi * mpmath.ldexp(mpmath.mpf(m), e)), f)


def flushed(function: Callable[[int], int]) -> Callable[[Mode, int], int]:
  """f32's functions of 1 ULP flush denormals on both sides, whatever MODE says."""
  return lambda m, a: F32.flush(function(F32.flush(a)))


def functions(f: Format) -> dict[str, Callable[[int], int]]:
  """The functions of one format."""
  one = f.bias << f.mantissa
  return {"rcp": lambda a: f.div(one, a), "sqrt": f.sqrt, "rsq": lambda a: inverse_root(f, a),
          "exp": lambda a: power(f, a), "log": lambda a: logarithm(f, a),
          "sin": lambda a: turn(f, a, mpmath.sin), "cos": lambda a: turn(f, a, mpmath.cos)}


def inverse_root(f: Format, a: int) -> int:
  """1 / sqrt(a)."""
  if f.is_nan(a) or f.negative(a) and not f.is_zero(a): return f.nan
  if f.is_zero(a): return f.inf(f.negative(a))
  if f.is_inf(a): return 0
  with mpmath.workprec(PRECISION): return exact(1 / mpmath.sqrt(number(a, f)), f)


for f in (F16, F32, F64):
  for stem, one_of in functions(f).items():
    if f is F64 and stem not in {"rcp", "sqrt", "rsq"}: continue
    names = f"v_{stem}_{f.name}"
    if f is not F64 and stem not in {"sin", "cos"}: names += f" v_s_{stem}_{f.name}"
    if f is F32 and stem == "rcp": names += " v_rcp_iflag_f32"
    if f is F32 and stem in {"exp", "log"}: names += f" v_{stem}_legacy_f32"
    run = flushed(one_of) if f is F32 and stem not in {"sin", "cos"} else lambda m, a, g=one_of: g(a)
    WITNESSES.lane(names, f"{f.name} -> {f.name}", run, MPMATH, mode=True, rounds=True,
                   ulp=1 if f is not F64 else 1 << 29)


@cache
def two_over_pi() -> int:
  """The first 1201 bits of 2 / pi after the point."""
  with mpmath.workprec(1400): return int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, 1201)))


def trig_preop(m: Mode, a: int, b: int) -> int:
  """V_TRIG_PREOP_F64: 53 bits of 2 / pi, from where the argument's exponent and the segment say."""
  shift, e = 53 * (b & 31), F64.exponent(a)
  if e > 1077: shift += e - 1077
  digits = two_over_pi() << shift & (1 << 1201) - 1
  segment = digits >> 1201 - 53
  return F64.round(segment, -53 - shift + (128 if e >= 1968 else 0), ZERO)


lane("v_trig_preop_f64", "f64 b32 -> f64", trig_preop)
