"""Conversions (PTX ISA, sections 9.7.9.21 and 9.7.9.22): of integers and floats of every size, bf16, tf32, fp8."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.core.environment import digits
from tinyhw.emulator.values import rounding
from tinyhw.emulator.values.ops import DTYPES, Binary, Ops, Ternary, Unary, V
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.small_floats import BF8, E2M1, E2M3, E3M2, FP8, decoded, encoded
from tinyhw.isa.ptx.forms import SIZES, Form

MODES: Final = {"rn": rounding.NEAREST, "rz": rounding.ZERO, "rm": rounding.DOWN, "rp": rounding.UP}
_INTEGRAL: Final = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
FLOATS: Final = frozenset({"f16", "f32", "f64", "bf16"})
NAN: Final = {"f16": 0x7FFF, "f32": 0x7FFFFFFF, "bf16": 0x7FFF}
_FP8: Final = {"e4m3x2": FP8, "e5m2x2": BF8, "e2m3x2": E2M3, "e3m2x2": E3M2, "e2m1x2": E2M1}
_FOUR: Final = {t.replace("x2", "x4"): kind for t, kind in _FP8.items()}
_FRACTION: Final = {"f16": (10, 15), "bf16": (7, 127)}  # bits, and the exponents' bias


def name_of(type_: str) -> str:
  """The name that `Ops` has for a type of PTX."""
  return f"i{type_[1:]}" if type_[0] == "s" and digits(type_[1:]) else type_


def f32_of_bf16(o: O[V], x: V) -> V:
  """bf16 bits (u16) as f32."""
  return o.bits(o.to(x, "u32") << 16, "f32")


def _odd32(o: O[V], wide: V) -> V:
  """f64 as f32 rounded to odd."""
  near = o.to(wide, "f32")
  raw = o.bits(near, "u32")
  back = o.to(near, "f64")
  down = o.abs(back) > o.abs(wide)
  return o.bits(o.where((back != wide) & ~o.isnan(wide), o.where(down, raw - 1, raw) | 1, raw), "f32")


def rounded_bits(o: O[V], raw: V, drop: int, mode: str) -> V:
  """The bits of f32 numbers without the lowest `drop`, rounded."""
  mask, half = (1 << drop) - 1, 1 << drop - 1
  if mode == "rn": raw = raw + (half - 1) + (raw >> drop & 1)
  elif mode == "rna": raw = raw + half
  elif mode in {"rm", "rp"}:
    away = (raw >> 31 == 1) if mode == "rm" else (raw >> 31 == 0)
    raw = o.where(away, raw + mask, raw)
  return raw & (0xFFFFFFFF ^ mask)


def bf16_of(o: O[V], x: V, mode: str = "rn") -> V:
  """f32 or f64 as bf16 bits (u16); NaN is 0x7FFF."""
  narrow = x if x.dtype.itemsize == 4 else _odd32(o, x) if x.dtype.itemsize == 8 else o.to(x, "f32")
  raw = o.bits(narrow, "u32")
  finite = (raw & 0x7FFFFFFF) < 0x7F800000
  out = o.where(finite, rounded_bits(o, raw, 16, mode), raw) >> 16
  return o.to(o.where(o.isnan(x), o.const("u32", 0x7FFF), out), "u16")


def canonical(o: O[V], x: V, type_: str) -> V:
  """The value with NaN as the chip makes it."""
  if type_ not in NAN or type_ == "bf16": return x
  return o.where(o.isnan(x), o.from_bits(type_, NAN[type_]), x)


def saturated(o: O[V], x: V, type_: str) -> V:
  """.sat: between 0 and 1, NaN is +0."""
  zero, one = o.const(type_, 0), o.const(type_, 1)
  return o.where(x > zero, o.where(x > one, one, x), zero)


def function(form: Form) -> Callable[..., Any]:
  """What a `cvt` computes: `f(o, *sources)` of the form's types."""
  m = form.modifiers
  if "pack" in m: return _pack(form.name.split(".")[3])
  target, source = form.types
  mode = next((r for r in ("rna", "rn", "rz", "rm", "rp") if r in m), "rn")
  if "rs" in m: return _at_random_four(target, "relu" in m) if target in _FOUR else _at_random_two(target[:-2], m)
  if target == "s2f6x2": return _to_fixed(source, "relu" in m)
  if source == "s2f6x2": return _from_fixed(m)
  if target in {"f16x2", "bf16x2"} and source == "f32": return _pair(_narrow(target[:-2], mode, m))
  if target in _FP8: return _to_fp8(target, source, "relu" in m)
  if source in _FP8: return _from_fp8(source, target, "relu" in m)
  if target == "tf32": return _tf32(mode, m)
  if target == "ue8m0x2": return _to_scale(source, mode == "rp", "satfinite" in m)
  if source == "ue8m0x2": return _from_scale
  if source == "f32" and target in {"f16", "bf16"} and m & {"relu", "satfinite"}: return _narrow(target, mode, m)
  integral = next((i for i in _INTEGRAL if i in m), None)
  if source not in FLOATS: return _from_integer(target, source, mode, "sat" in m)
  if target not in FLOATS: return _to_integer(target, source, integral or "rzi", "ftz" in m)
  return _between_floats(target, source, mode, integral, "ftz" in m, "sat" in m)


def _directed(o: Any, x: V, target: str, mode: str) -> V:
  """A number as a float, rounded another way than to nearest even: of NumPy's here, of other values their own."""
  plain: Any = x
  found: Any = rounding.convert(plain, target, MODES[mode]) if o is Ops else o.rounded(x, target, mode)
  return found


def _number(o: O[V], x: V, type_: str) -> V: return f32_of_bf16(o, x) if type_ == "bf16" else x


def _from_integer(target: str, source: str, mode: str, sat: bool) -> Unary:
  if target in FLOATS:
    if target == "bf16":
      def to_brain(o: O[V], x: V) -> V:
        return bf16_of(o, _odd64(o, x), mode)
      return to_brain
    def to_float(o: O[V], x: V) -> V:
      y = o.to(x, target) if mode == "rn" else _directed(o, x, target, mode)
      return saturated(o, y, target) if sat else y
    return to_float
  name = name_of(target)
  if not sat: return lambda o, x: o.to(x, name)
  low, high = int(np.iinfo(DTYPES[name]).min), int(np.iinfo(DTYPES[name]).max)

  def clipped(o: O[V], x: V) -> V:
    own = np.iinfo(x.dtype)
    return o.to(o.clip(x, max(low, int(own.min)), min(high, int(own.max))), name)
  return clipped


def _odd64(o: O[V], x: V) -> V:
  """Integers as f64 of which the last bit says whether more were there."""
  if x.dtype.itemsize < 8: return o.to(x, "f64")
  raw = o.to(x, "u64")
  negative = raw >> 63 == 1 if x.dtype.kind == "i" else raw != raw
  size = o.where(negative, o.const("u64", 0) - raw, raw)
  rest = o.to(size & 0x7FF != 0, "u64")
  cut = o.to(size >> 11 | rest, "f64") * o.const("f64", 2048)
  found = o.where(size >> 53 != 0, cut, o.to(size, "f64"))
  return o.where(negative, -found, found)


def _to_integer(target: str, source: str, integral: str, ftz: bool) -> Unary:
  name, bits = name_of(target), SIZES[target] * 8
  special = source == "f64" or target in {"s64", "u64"}

  def convert(o: O[V], x: V) -> V:
    x = _number(o, x, source)
    if ftz: x = o.flush(x)
    y = o.to_int(getattr(o, _INTEGRAL[integral])(x), name)
    if special: y = o.where(o.isnan(x), o.to(o.const("u64", 1 << bits - 1), name), y)
    return y
  return convert


def _between_floats(target: str, source: str, mode: str, integral: str | None, ftz: bool,
                    sat: bool) -> Unary:
  def convert(o: O[V], x: V) -> V:
    if source == target == "bf16" and integral is None: return x
    x = _number(o, x, source)
    if ftz and source == "f32": x = o.flush(x)
    if integral is not None: x = getattr(o, _INTEGRAL[integral])(x)
    if target == "bf16":
      out = bf16_of(o, x, mode)
      return o.where(o.isnan(x), o.to(_short_nan(o, x) >> 16, "u16"), out) if source == "f64" else out
    if x.dtype == DTYPES[target]: y = x
    else: y = o.to(x, target) if mode == "rn" else _directed(o, x, target, mode)
    if sat: y = saturated(o, y, target)
    if ftz and target == "f32": y = o.flush(y)
    if target == "f32" and source == "bf16" and not sat and integral is None: return y  # its bits, moved
    if target == "f32" and source == "f64" and not sat: return o.where(o.isnan(x), o.bits(_short_nan(o, x), "f32"), y)
    return canonical(o, y, target)
  return convert


def _short_nan(o: O[V], x: V) -> V:
  """The bits u32 of the NaN of f32 that one of f64 becomes: quiet, with its sign and what there is room for."""
  raw = o.bits(x, "u64")
  return o.to(raw >> 32 & 0x80000000 | raw >> 29 & 0x3FFFFF, "u32") | o.const("u32", 0x7FC00000)


def _narrow(target: str, mode: str, modifiers: frozenset[str]) -> Unary:
  """f32 to f16 or bf16 bits (u16), with .relu and .satfinite."""
  top = {"f16": 0x7BFF, "bf16": 0x7F7F}[target]

  def convert(o: O[V], x: V) -> V:
    if target == "bf16": raw = bf16_of(o, x, mode)
    else:
      y = o.to(x, "f16") if mode == "rn" else _directed(o, x, "f16", mode)
      raw = o.bits(canonical(o, y, "f16"), "u16")
    nan = o.isnan(x)
    if "satfinite" in modifiers:
      raw = o.where(~nan & ((raw & 0x7FFF) > top), raw & 0x8000 | o.const("u16", top), raw)
    if "relu" in modifiers: raw = o.where(~nan & (raw >> 15 == 1), o.const("u16", 0), raw)
    return o.bits(raw, "f16") if target == "f16" else raw
  return convert


def _pair(one: Unary) -> Binary:
  """Two f32 to a packed pair: the first becomes the upper half."""
  def convert(o: O[V], a: V, b: V) -> V:
    def bits(x: V) -> V: return o.to(o.bits(x, "u16") if x.dtype.kind == "f" else x, "u32")
    return bits(one(o, a)) << 16 | bits(one(o, b))
  return convert


def _tf32(mode: str, modifiers: frozenset[str]) -> Unary:
  def convert(o: O[V], x: V) -> V:
    raw = o.bits(x, "u32")
    finite = (raw & 0x7FFFFFFF) < 0x7F800000
    out = o.where(finite, rounded_bits(o, raw, 13, mode), raw)
    nan = o.isnan(x)
    if "satfinite" in modifiers:
      out = o.where(~nan & ((out & 0x7FFFFFFF) > 0x7F7FE000), raw & 0x80000000 | o.const("u32", 0x7F7FE000), out)
    if "relu" in modifiers: out = o.where(~nan & (raw >> 31 == 1), o.const("u32", 0), out)
    # As sm_90 has NaN; of satfinite, which it has not, the manual says which one comes out.
    if "satfinite" in modifiers: told = o.const("u32", 0x7FFFFFFF)
    else: told = raw & 0xFFFFE000 if mode == "rna" else o.const("u32", 0x7FFFE000)
    return o.where(nan, told, out)
  return convert


def _to_fp8(target: str, source: str, relu: bool) -> Unary:
  kind = _FP8[target]
  room = 4 if kind.bits == 4 else 8

  def one(o: O[V], x: V) -> V:
    code = o.where(o.isnan(x), o.const("u32", kind.nan), encoded(o, x, kind, o.const("u32", 1)))
    return o.where(~o.isnan(x) & (code >> kind.bits - 1 == 1), o.const("u32", 0), code) if relu else code

  def convert(o: O[V], a: V, b: V | None = None) -> V:
    if source == "f16x2": x, y = (o.to(o.bits(o.to(half, "u16"), "f16"), "f32") for half in (a >> 16, a))
    elif source == "bf16x2": x, y = o.bits(a & 0xFFFF0000, "f32"), o.bits(a << 16, "f32")
    else:
      assert b is not None, "two of f32"
      x, y = a, b
    return o.to(one(o, x) << room | one(o, y), f"u{2 * room}")
  return convert


# ---- rounding by random bits

def at_random(o: O[V], x: V, seed: V, bits: int, fraction: int, bias: int) -> V:
  """f32 rounded to a float of fewer bits, as f32: away from zero where the seed, of so many bits, and what is cut off
  have a carry together. What is too large for the float's exponents is rounded as if it were not."""
  raw = o.bits(o.abs(x), "u32")
  least = o.const("u32", 128 - bias)  # the exponent of the smallest normal number
  exponent = o.to(o.max(raw >> 23, least), "u64")
  up, down = ((o.const("u64", 1023 + 127 + fraction) - exponent) << 52), ((exponent + (1023 - 127 - fraction)) << 52)
  steps = o.to(o.abs(x), "f64") * o.bits(up, "f64") + o.to(seed, "f64") * o.const("f64", 2.0 ** -bits)
  found = o.copysign(o.to(o.floor(steps) * o.bits(down, "f64"), "f32"), x)
  return o.where(raw < 0x7F800000, found, x)


def _at_random_two(target: str, modifiers: frozenset[str]) -> Ternary:
  """Two f32: the first takes the upper 16 random bits, of which f16 needs 13."""
  fraction, bias = _FRACTION[target]
  bits = 23 - fraction
  both = _pair(_narrow(target, "rn", modifiers))

  def convert(o: O[V], a: V, b: V, seed: V) -> V:
    x, y = (at_random(o, v, s & (1 << bits) - 1, bits, fraction, bias) for v, s in ((a, seed >> 16), (b, seed)))
    return both(o, x, y)
  return convert


def _at_random_four(target: str, relu: bool) -> Unary:
  """Four f32: two take the upper 16 random bits and two the lower ones; of e2m1 each has eight, two the upper ones of
  both halves."""
  kind = _FOUR[target]
  room, bits = (4, 8) if kind.bits == 4 else (8, 16)
  shifts = (24, 8, 16, 0) if kind.bits == 4 else (16, 16, 0, 0)

  def convert(o: O[V], *given: V) -> V:
    *values, seed = given
    out = o.const("u32", 0)
    for k, (x, shift) in enumerate(zip(values, shifts)):
      y = at_random(o, x, seed >> shift & (1 << bits) - 1, bits, kind.fraction, kind.bias)
      code = o.where(o.isnan(x), o.const("u32", kind.nan), encoded(o, y, kind, o.const("u32", 1)))
      if relu: code = o.where(~o.isnan(x) & (code >> kind.bits - 1 == 1), o.const("u32", 0), code)
      out = out | code << room * (3 - k)
    return o.to(out, f"u{4 * room}")
  return convert


# ---- numbers of two bits before the point and six behind it (PTX ISA, section 5.2.4)

def _power(o: O[V], code: V) -> V:
  """A scale factor as f64: a power of two, whose last code is NaN."""
  exponent = (o.to(code, "u64") + (1023 - 127)) << 52
  return o.where(code == 255, o.const("f64", float("nan")), o.bits(exponent, "f64"))


def _to_fixed(source: str, relu: bool) -> Unary:
  """f32 or bf16 divided by scale factors, to nearest even; what is too large becomes the largest, NaN too."""
  def one(o: O[V], x: V, scale: V) -> V:
    wide = o.fdiv(o.to(x, "f64"), _power(o, scale)) * o.const("f64", 64)
    wide = o.where(o.isnan(wide), o.const("f64", 127), wide)
    if relu: wide = o.fmax(wide, o.const("f64", 0))
    whole = o.fmin(o.fmax(o.rint(wide), o.const("f64", -128)), o.const("f64", 127))
    return o.bits(o.to_int(whole, "i32"), "u32") & 0xFF

  def convert(o: O[V], *given: V) -> V:
    values, rest = (given[:2], given[2:]) if source == "f32" else (
      (o.bits(given[0] & 0xFFFF0000, "f32"), o.bits(given[0] << 16, "f32")), given[1:])
    scale = o.to(rest[0], "u32") if rest else o.const("u32", 0x7F7F)
    return o.to(one(o, values[0], scale >> 8 & 0xFF) << 8 | one(o, values[1], scale & 0xFF), "u16")
  return convert


def _from_fixed(modifiers: frozenset[str]) -> Unary:
  """Such numbers times scale factors, as bf16."""
  narrow = _narrow("bf16", "rn", modifiers)

  def one(o: O[V], code: V, scale: V) -> V:
    number = o.to(o.bits(code << 24, "i32") >> 24, "f64") * o.const("f64", 1 / 64)
    return o.to(narrow(o, o.to(number * _power(o, scale), "f32")), "u32")

  def convert(o: O[V], a: V, *rest: V) -> V:
    x, scale = o.to(a, "u32"), o.to(rest[0], "u32") if rest else o.const("u32", 0x7F7F)
    return one(o, x >> 8 & 0xFF, scale >> 8 & 0xFF) << 16 | one(o, x & 0xFF, scale & 0xFF)
  return convert


# ---- powers of two


def _to_scale(source: str, up: bool, satfinite: bool) -> Unary:
  """f32 or bf16 as powers of two, whatever their sign: their exponents, of which the last is NaN."""
  def one(o: O[V], raw: V) -> V:
    size = raw & 0x7FFFFFFF
    code, rest = size >> 23, size & 0x7FFFFF
    if up:
      more = o.where(code == 0, o.where(size > 0x400000, o.const("u32", 1), o.const("u32", 0)),
                     o.where(rest != 0, o.const("u32", 1), o.const("u32", 0)))
      code = code + more
    if satfinite: code = o.where(code > 254, o.const("u32", 254), code)
    return o.where(size > 0x7F800000, o.const("u32", 255), code)

  def convert(o: O[V], a: V, b: V | None = None) -> V:
    if source == "bf16x2": x, y = a & 0xFFFF0000, a << 16
    else:
      assert b is not None, "two of f32"
      x, y = o.bits(a, "u32"), o.bits(b, "u32")
    return o.to(one(o, x) << 8 | one(o, y), "u16")
  return convert


def _from_scale(o: O[V], a: V) -> V:
  """Powers of two as bf16: the least is subnormal."""
  x = o.to(a, "u32")

  def one(code: V) -> V:
    number = o.where(code == 0, o.const("u32", 0x40), code << 7)
    return o.where(code == 255, o.const("u32", 0x7FFF), number)
  return one(x >> 8 & 0xFF) << 16 | one(x & 0xFF)


def _from_fp8(source: str, target: str, relu: bool) -> Unary:
  kind = _FP8[source]

  def one(o: O[V], code: V) -> V:
    x = decoded(o, code, kind)
    if target == "bf16x2": return o.bits(x, "u32") >> 16  # nothing is lost
    half = o.where(o.isnan(x), o.const("u16", 0x7FFF), o.bits(o.to(x, "f16"), "u16"))
    if relu: half = o.where(~o.isnan(x) & (half >> 15 == 1), o.const("u16", 0), half)
    return o.to(half, "u32")

  room = 4 if kind.bits == 4 else 8

  def convert(o: O[V], a: V) -> V:
    x = o.to(a, "u32")
    mask = (1 << room) - 1
    return one(o, x >> room & mask) << 16 | one(o, x & mask)
  return convert


def _pack(target: str) -> Ternary:
  bits, signed = int(target[1:]), target[0] == "s"
  low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
  mask = (1 << bits) - 1

  def convert(o: O[V], a: V, b: V, c: V | None = None) -> V:
    x, y = (o.bits(o.clip(v, low, high), "u32") & mask for v in (a, b))
    both = x << bits | y
    return both if c is None else both | c << 2 * bits
  return convert
