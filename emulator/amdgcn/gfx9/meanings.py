"""Meanings of what only gfx9 has, or has otherwise (CDNA3 ISA manual, chapter 12).

Most differ in their names alone: v_add_u32 is what later generations call v_add_nc_u32.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhw.emulator.amdgcn.meanings import floats, integer, scalar  # noqa: F401  (integer has what is renamed here)
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS, F, Function
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V
from tinyhw.emulator.values.small_floats import BF8_FNUZ as BF8
from tinyhw.emulator.values.small_floats import FP8_FNUZ as FP8
from tinyhw.emulator.values.small_floats import SmallFloat, decoded, encoded, stochastic


def M(mnemonics: str, signature: str, *, exact: bool = True) -> Callable[[F], F]:
  """Register a meaning of gfx9 alone."""
  return MEANINGS(mnemonics, signature, exact=exact, isa="gfx9")


# ---- other names
def _alias(name: str, other: str) -> None:
  """gfx9's `name` is what later generations call `other`."""
  meaning = MEANINGS.get(other)
  assert meaning is not None, other
  signature = f"{'pk ' if meaning.packed else ''}{', '.join(meaning.results)}({', '.join(meaning.sources)})"
  M(name, signature, exact=meaning.exact)(meaning.function)

for _name, _other in (
    ("v_add_u32", "v_add_nc_u32"), ("v_sub_u32", "v_sub_nc_u32"), ("v_subrev_u32", "v_subrev_nc_u32"),
    ("v_add_i32", "v_add_nc_i32"), ("v_sub_i32", "v_sub_nc_i32"), ("v_add_u16", "v_add_nc_u16"),
    ("v_sub_u16", "v_sub_nc_u16"), ("v_add_i16", "v_add_nc_i16"), ("v_sub_i16", "v_sub_nc_i16"),
    ("v_addc_co_u32", "v_add_co_ci_u32"), ("v_subb_co_u32", "v_sub_co_ci_u32"),
    ("v_subbrev_co_u32", "v_subrev_co_ci_u32"), ("v_mul_legacy_f32", "v_mul_dx9_zero_f32"),
    ("v_ffbh_u32", "v_clz_i32_u32"), ("v_ffbl_b32", "v_ctz_i32_b32"), ("v_ffbh_i32", "v_cls_i32"),
    ("v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"), ("v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"),
    ("v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"), ("v_cvt_pknorm_i16_f32", "v_cvt_pk_norm_i16_f32"),
    ("v_cvt_pknorm_i16_f16", "v_cvt_pk_norm_i16_f16"), ("v_cvt_pknorm_u16_f32", "v_cvt_pk_norm_u16_f32"),
    ("v_cvt_pknorm_u16_f16", "v_cvt_pk_norm_u16_f16"), ("v_exp_legacy_f32", "v_exp_f32"),
    ("v_log_legacy_f32", "v_log_f32"), ("v_fma_legacy_f16", "v_fma_f16"), ("v_mad_legacy_u16", "v_mad_u16"),
    ("v_mad_legacy_i16", "v_mad_i16"), ("v_div_fixup_legacy_f16", "v_div_fixup_f16"),
    *((f"v_cmp_tru_{t}", f"v_cmp_t_{t}") for t in ("f16", "f32", "f64")),
    ("s_flbit_i32_b32", "s_clz_i32_u32"), ("s_flbit_i32_b64", "s_clz_i32_u64"), ("s_flbit_i32", "s_cls_i32"),
    ("s_flbit_i32_i64", "s_cls_i32_i64"), ("s_ff1_i32_b32", "s_ctz_i32_b32"), ("s_ff1_i32_b64", "s_ctz_i32_b64"),
    *((f"s_{op}n2_{t}", f"s_{op}_not1_{t}") for op in ("and", "or") for t in ("b32", "b64")),
    *((f"s_{op}n{k}_saveexec_b64", f"s_{op}_not{k - 1}_saveexec_b64")
      for op in ("and", "or") for k in (1, 2)),
    *((f"s_andn{k}_wrexec_b64", f"s_and_not{k - 1}_wrexec_b64") for k in (1, 2))):
  _alias(_name, _other)

# v_cmpx writes its SGPR pair, or VCC, as well as EXEC (6.2.2)
for _meaning in [m for m in MEANINGS if m.mnemonic.startswith("v_cmpx_")]:
  _types = ", ".join(_meaning.sources)

  def _both(o: O[V], a: V, b: V, compare: Function = _meaning.function) -> tuple[V, V]:
    return (r := compare(o, a, b)), r
  M(_meaning.mnemonic.replace("_t_f", "_tru_f"), f"mask, exec({_types})")(_both)


# ---- scalar
@M("s_ff0_i32_b32", "u32(u32)")
def ff0_32(o: O[V], a: V) -> V: return scalar.ctz(o, ~a)

@M("s_ff0_i32_b64", "u32(u64)")
def ff0_64(o: O[V], a: V) -> V: return scalar.ctz(o, ~a)


# ---- moves and integers
@M("v_mov_b64", "u64(u64)")
def mov64(o: O[V], a: V) -> V: return a

@M("v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", "u32(u32)")
def accvgpr(o: O[V], a: V) -> V: return a

@M("v_subrev_u16", "u16(u16, u16)")
def subrev16(o: O[V], a: V, b: V) -> V: return b - a

@M("v_lshl_add_u64", "u64(u64, u32, u64)")
def lshl_add64(o: O[V], a: V, n: V, b: V) -> V: return (a << o.to(n & 7, "u64")) + b

@M("v_cvt_pkaccum_u8_f32", "u32(f32, u32, d:u32)")
def cvt_pkaccum(o: O[V], a: V, at: V, old: V) -> V: return floats.cvt_pk_u8(o, a, at, old)


# ---- multiply-add with two roundings; MODE allows a denormal product as it allows a denormal result
@M("v_mac_f16", "f16(f16, f16, d:f16, mode:FP_DENORM)")
@M("v_mad_f16 v_mad_legacy_f16 v_madak_f16 v_madmk_f16", "f16(f16, f16, f16, mode:FP_DENORM)")
def mad(o: O[V], a: V, b: V, c: V, denormals: V) -> V:
  product = a * b
  product = o.where(o.isnan(product) & ~(o.isnan(a) | o.isnan(b)) & o.isnan(c), c, product)  # as o.fma has it
  return o.where((denormals & 8) != 0, product, o.flush(product)) + c

@M("v_fmac_f64", "f64(f64, f64, d:f64)")
def fmac64(o: O[V], a: V, b: V, c: V) -> V: return o.fma(a, b, c)


# ---- two f32 in register pairs
M("v_pk_add_f32", "pk f32(f32, f32)")(floats.add)
M("v_pk_mul_f32", "pk f32(f32, f32)")(floats.mul)
M("v_pk_fma_f32", "pk f32(f32, f32, f32)")(floats.fma)


# ---- dot products; those of floats flush denormals whatever MODE says (6.4)
def _dot(o: O[V], a: V, b: V, c: V, bits: int, signed: bool) -> V:
  """c plus the products of elements; c comes in i64 where the sum saturates."""
  top, mask = 1 << bits - 1, (1 << bits) - 1
  total = o.to(c, "i64")
  x, y = o.to(a, "i64"), o.to(b, "i64")
  for k in range(0, 32, bits):
    p, q = x >> k & mask, y >> k & mask
    total = total + (((p ^ top) - top) * ((q ^ top) - top) if signed else p * q)
  return o.to(total, f"{c.dtype.kind}{c.dtype.itemsize * 8}")

for _bits in (16, 8, 4):
  def _signed(o: O[V], a: V, b: V, c: V, bits: int = _bits) -> V: return _dot(o, a, b, c, bits, True)
  M(f"v_dot{32 // _bits}_i32_i{_bits}", "i32(u32, u32, i32)")(_signed)
  M(f"v_dot{32 // _bits}c_i32_i{_bits}", "i32(u32, u32, d:i32)")(_signed)

@M("v_dot2_u32_u16", "u32(u32, u32, u32)")
def dot2_u16(o: O[V], a: V, b: V, c: V) -> V: return _dot(o, a, b, c, 16, False)

@M("v_dot2_f32_f16", "f32(u32, u32, f32)", exact=False)
@M("v_dot2c_f32_f16", "f32(u32, u32, d:f32)", exact=False)
def dot2(o: O[V], a: V, b: V, c: V) -> V:
  def half(x: V, at: int) -> V: return o.to(o.flush(o.bits(o.to(x >> at & 0xFFFF, "u16"), "f16")), "f64")
  return o.flush(o.to(half(a, 0) * half(b, 0) + half(a, 16) * half(b, 16) + o.to(o.flush(c), "f64"), "f32"))


# ---- 8-bit floats (7.2): the FNUZ formats
def conversions(isa: str, formats: dict[str, SmallFloat]) -> None:
  """Register the conversions of 8-bit floats of a table, by their names' formats."""
  for name, small in formats.items():
    @MEANINGS(f"v_cvt_f32_{name}", "f32(u32)", isa=isa)
    def _cvt_small(o: O[V], a: V, t: SmallFloat = small) -> V: return decoded(o, a & 0xFF, t)

    @MEANINGS(f"v_cvt_pk_f32_{name}", "u64(u32)", isa=isa)
    def _cvt_pk(o: O[V], a: V, t: SmallFloat = small) -> V:
      return o.pack(*(o.bits(decoded(o, a >> shift & 0xFF, t), "u32") for shift in (0, 8)))

    @MEANINGS(f"v_cvt_pk_{name}_f32", "u16(f32, f32, mode:FP16_OVFL)", isa=isa)
    def _cvt_to_pk(o: O[V], a: V, b: V, limit: V, t: SmallFloat = small) -> V:
      return o.to(encoded(o, a, t, limit) | encoded(o, b, t, limit) << 8, "u16")

    @MEANINGS(f"v_cvt_sr_{name}_f32", "u32(f32, u32, d:u32, i:op_sel, mode:FP16_OVFL)", exact=False, isa=isa)
    def _cvt_sr(o: O[V], a: V, seed: V, old: V, at: V, limit: V, t: SmallFloat = small) -> V:
      shift = 8 * (at >> 2 & 3)
      return old & ~(o.const("u32", 0xFF) << shift) | stochastic(o, a, seed, t, limit) << shift

conversions("gfx9", {"fp8": FP8, "bf8": BF8})
