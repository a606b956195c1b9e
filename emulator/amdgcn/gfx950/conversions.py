"""gfx950's conversions of small floats with a scale (CDNA4 ISA manual, 7.3 and V_CVT_SCALEF32_*).

A scale is the exponent of a f32, 255 of which is NaN. What is made smaller is divided by it, what is made larger is
multiplied, as OCP's microscaling formats have it (AMD's Composable Kernel holds its fast path against the same). A
power of two is exact, so each number is rounded once. Floats of 6 and 4 bits saturate; those of 8 bits obey
MODE.FP16_OVFL. Sources of 16 bits keep denormals (7.4). How seeds round is not specified to the bit: here they are
added below the last bit that is kept, as `small_floats.stochastic` has it.
"""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.amdgcn.gfx950.meanings import M, prng
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V
from tinyhw.emulator.values.small_floats import BF8, E2M1, FP8, SmallFloat, decoded, encoded, stochastic

BYTES: Final[dict[str, SmallFloat]] = {"fp8": FP8, "bf8": BF8}
_NAN: Final = 0x7FF8000000000000


def power(o: O[V], scale: V, sign: int) -> V:
  """Two to the exponent of a scale (f32 as u32) times `sign`, as f64."""
  e = o.to(scale >> 23 & 0xFF, "u64")
  value = (e + (1023 - 127) if sign > 0 else o.const("u64", 1023 + 127) - e) << 52
  return o.bits(o.where(scale >> 23 & 0xFF == 255, o.const("u64", _NAN), value), "f64")


def times(o: O[V], x: V, factor: V) -> V:
  """f32 times a power of two. A NaN stays as it is: which of two a processor's product hands on is not specified."""
  return o.where(o.isnan(x), x, o.to(o.to(x, "f64") * factor, "f32"))


def wide(o: O[V], code: V, t: SmallFloat, factor: V) -> V:
  """f32 of a code, times a power of two."""
  return times(o, decoded(o, code, t), factor)


def narrow(o: O[V], x: V, t: SmallFloat, factor: V, limit: V) -> V:
  """Code of f32 times a power of two, rounded to nearest even."""
  return encoded(o, times(o, x, factor), t, limit)


def narrow_by(o: O[V], x: V, seed: V, t: SmallFloat, factor: V, limit: V) -> V:
  """The same, rounded by a seed."""
  return stochastic(o, times(o, x, factor), seed, t, limit)


def half_of(o: O[V], bits: V, kind: str) -> V:
  """f32 of a half: of its 16 bits as u32."""
  return o.bits(bits << 16, "f32") if kind == "bf16" else o.to(o.bits(o.to(bits, "u16"), "f16"), "f32")


def as_half(o: O[V], x: V, kind: str) -> V:
  """The 16 bits of f32 rounded to nearest even, as u32."""
  if kind == "f16": return o.to(o.bits(o.to(x, "f16"), "u16"), "u32")
  raw = o.bits(x, "u32")
  return o.where(o.isnan(x), raw >> 16 | 0x40, raw + 0x7FFF + (raw >> 16 & 1) >> 16)


def halves(o: O[V], word: V, kind: str) -> tuple[V, V]:
  """f32 of both halves of a register."""
  return half_of(o, word & 0xFFFF, kind), half_of(o, word >> 16, kind)


def both(o: O[V], low: V, high: V, kind: str) -> V:
  """Two f32 as the halves of a register."""
  return as_half(o, low, kind) | as_half(o, high, kind) << 16


def two(o: O[V], word: V, kind: str) -> tuple[V, V]:
  """The two f32 of a source: of two registers, or halves of one."""
  if kind == "f32": return o.bits(o.to(word, "u32"), "f32"), o.bits(o.to(word >> 32, "u32"), "f32")
  return halves(o, word, kind)


def placed(o: O[V], old: V, byte: V, at: V) -> V:
  """A byte put where op_sel's upper bits say."""
  shift = 8 * (at >> 2 & 3)
  return old & ~(o.const("u32", 0xFF) << shift) | byte << shift


# ---- without a scale

@M("v_cvt_f32_bf16", "f32(u16)")
def cvt_f32_bf16(o: O[V], a: V) -> V: return half_of(o, o.to(a, "u32"), "bf16")

for _kind in ("f16", "bf16"):
  @M(f"v_cvt_pk_{_kind}_f32", "u32(f32, f32)")
  def _pk(o: O[V], a: V, b: V, kind: str = _kind) -> V: return both(o, a, b, kind)

  @M(f"v_cvt_sr_{_kind}_f32", "u16(f32, u32)", exact=False)
  def _sr(o: O[V], a: V, seed: V, kind: str = _kind) -> V:
    """The seed is added below the last bit of a normal number, and the rest is cut off."""
    raw = o.bits(a, "u32")
    drop = 16 if kind == "bf16" else 13
    magnitude = raw & 0x7FFFFFFF
    moved = o.where(magnitude >= 0x7F800000, raw, raw + (seed >> 32 - drop))
    cut = o.where(magnitude > 0x7F800000, raw, moved & (0xFFFFFFFF << drop & 0xFFFFFFFF))
    return o.to(as_half(o, o.bits(cut, "f32"), kind), "u16")

for _name, _low, _high in (("i8", -128, 127), ("u8", 0, 255)):
  @M(f"v_ashr_pk_{_name}_i32", "u16(i32, i32, i32)")
  def _ashr(o: O[V], a: V, b: V, n: V, low: int = _low, high: int = _high) -> V:
    x, y = (o.to(o.bits(o.clip(v >> (n & 31), low, high), "u32") & 0xFF, "u32") for v in (a, b))
    return o.to(x | y << 8, "u16")


# ---- one or two numbers with a scale

for _name, _small in BYTES.items():
  @M(f"v_cvt_scalef32_pk_{_name}_f32", "u16(f32, f32, u32, mode:FP16_OVFL)")
  def _pk8(o: O[V], a: V, b: V, scale: V, limit: V, t: SmallFloat = _small) -> V:
    f = power(o, scale, -1)
    return o.to(narrow(o, a, t, f, limit) | narrow(o, b, t, f, limit) << 8, "u16")

  @M(f"v_cvt_scalef32_sr_{_name}_f32", "u32(f32, u32, u32, d:u32, i:op_sel, mode:FP16_OVFL)", exact=False)
  def _sr8(o: O[V], a: V, seed: V, scale: V, old: V, at: V, limit: V, t: SmallFloat = _small) -> V:
    return placed(o, old, narrow_by(o, a, seed, t, power(o, scale, -1), limit), at)

  @M(f"v_cvt_scalef32_f32_{_name}", "u32(u32, u32, i:op_sel)")
  def _f32_8(o: O[V], a: V, scale: V, at: V, t: SmallFloat = _small) -> V:
    return o.bits(wide(o, a >> 8 * (at & 3) & 0xFF, t, power(o, scale, 1)), "u32")

  @M(f"v_cvt_scalef32_f16_{_name}", "u16(u32, u32, i:op_sel)")
  def _f16_8(o: O[V], a: V, scale: V, at: V, t: SmallFloat = _small) -> V:
    return o.to(as_half(o, wide(o, a >> 8 * (at & 3) & 0xFF, t, power(o, scale, 1)), "f16"), "u16")

  @M(f"v_cvt_scalef32_pk_f32_{_name}", "u64(u32, u32, i:op_sel)")
  def _pk_f32_8(o: O[V], a: V, scale: V, at: V, t: SmallFloat = _small) -> V:
    word, f = a >> 16 * (at & 1), power(o, scale, 1)
    return o.pack(*(o.bits(wide(o, word >> shift & 0xFF, t, f), "u32") for shift in (0, 8)))

  for _kind in ("f16", "bf16"):
    @M(f"v_cvt_scalef32_pk_{_name}_{_kind}", "u16(u32, u32, mode:FP16_OVFL)")
    def _pk8_half(o: O[V], a: V, scale: V, limit: V, t: SmallFloat = _small, kind: str = _kind) -> V:
      f = power(o, scale, -1)
      low, high = (narrow(o, x, t, f, limit) for x in halves(o, a, kind))
      return o.to(low | high << 8, "u16")

    @M(f"v_cvt_scalef32_sr_{_name}_{_kind}", "u32(u16, u32, u32, d:u32, i:op_sel, mode:FP16_OVFL)", exact=False)
    def _sr8_half(o: O[V], a: V, seed: V, scale: V, old: V, at: V, limit: V, t: SmallFloat = _small,
                  kind: str = _kind) -> V:
      x = half_of(o, o.to(a, "u32"), kind)
      return placed(o, old, narrow_by(o, x, seed, t, power(o, scale, -1), limit), at)

    @M(f"v_cvt_scalef32_pk_{_kind}_{_name}", "u32(u32, u32, i:op_sel)")
    def _pk_half_8(o: O[V], a: V, scale: V, at: V, t: SmallFloat = _small, kind: str = _kind) -> V:
      word, f = a >> 16 * (at & 1), power(o, scale, 1)
      return both(o, wide(o, word & 0xFF, t, f), wide(o, word >> 8 & 0xFF, t, f), kind)


# ---- two numbers of 4 bits in a byte

def _fp4(o: O[V], low: V, high: V, scale: V, old: V, at: V) -> V:
  f, limit = power(o, scale, -1), o.const("u32", 1)
  return placed(o, old, narrow(o, low, E2M1, f, limit) | narrow(o, high, E2M1, f, limit) << 4, at)

@M("v_cvt_scalef32_pk_fp4_f32", "u32(f32, f32, u32, d:u32, i:op_sel)")
def pk_fp4_f32(o: O[V], a: V, b: V, scale: V, old: V, at: V) -> V: return _fp4(o, a, b, scale, old, at)

@M("v_cvt_scalef32_pk_f32_fp4", "u64(u32, u32, i:op_sel)")
def pk_f32_fp4(o: O[V], a: V, scale: V, at: V) -> V:
  byte, f = a >> 8 * (at & 3), power(o, scale, 1)
  return o.pack(*(o.bits(wide(o, byte >> shift & 15, E2M1, f), "u32") for shift in (0, 4)))

for _kind in ("f16", "bf16"):
  @M(f"v_cvt_scalef32_pk_fp4_{_kind}", "u32(u32, u32, d:u32, i:op_sel)")
  def _pk4(o: O[V], a: V, scale: V, old: V, at: V, kind: str = _kind) -> V:
    return _fp4(o, *halves(o, a, kind), scale, old, at)

  @M(f"v_cvt_scalef32_pk_{_kind}_fp4", "u32(u32, u32, i:op_sel)")
  def _pk_half_4(o: O[V], a: V, scale: V, at: V, kind: str = _kind) -> V:
    byte, f = a >> 8 * (at & 3), power(o, scale, 1)
    return both(o, wide(o, byte & 15, E2M1, f), wide(o, byte >> 4 & 15, E2M1, f), kind)

for _kind in ("f32", "f16", "bf16"):
  @M(f"v_cvt_scalef32_sr_pk_fp4_{_kind}", f"u32(u{64 if _kind == 'f32' else 32}, u32, u32, d:u32, i:op_sel)",
     exact=False)
  def _sr4(o: O[V], a: V, seed: V, scale: V, old: V, at: V, kind: str = _kind) -> V:
    f, limit = power(o, scale, -1), o.const("u32", 1)
    low, high = (narrow_by(o, x, s, E2M1, f, limit) for x, s in zip(two(o, a, kind), (seed, prng(o, seed))))
    return placed(o, old, low | high << 4, at)
