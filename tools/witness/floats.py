"""Witnesses of float arithmetic: RDNA3 ISA manual, sections 16.7 to 16.12; RDNA4's and CDNA3's names beside them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.tools.witness.integers import field
from tinyhw.tools.witness.softfloat import BF8, BF16, DOWN, F16, F32, F64, FP8, UP, ZERO, Format, convert
from tinyhw.tools.witness.table import EXACT, WITNESSES, Mode

ALL: Final = (F16, F32, F64)
Function = Callable[..., Any]


def lane(names: str, signature: str, function: Function, **options: Any) -> None:
  """A float instruction: it takes MODE, and MODE's rounding and denormals count."""
  WITNESSES.lane(names, signature, function, EXACT, **({"mode": True, "rounds": True} | options))


def bare(names: str, signature: str, function: Function, **options: Any) -> None:
  """A float instruction whatever MODE says."""
  WITNESSES.lane(names, signature, function, EXACT, **options)


# ---- arithmetic

def added(f: Format) -> Function: return lambda m, a, b: f.add(a, b, m.rounding(f))


def subtracted(f: Format) -> Function: return lambda m, a, b: f.sub(a, b, m.rounding(f))


def multiplied(f: Format) -> Function: return lambda m, a, b: f.mul(a, b, m.rounding(f))


def fused(f: Format) -> Function: return lambda m, a, b, c: f.fma(a, b, c, m.rounding(f))


for f in ALL:
  t = f.name
  lane(f"v_add_{t}", f"{t} {t} -> {t}", added(f))
  lane(f"v_mul_{t}", f"{t} {t} -> {t}", multiplied(f))
  lane(f"v_fma_{t}", f"{t} {t} {t} -> {t}", fused(f))
  if f is F64: continue
  lane(f"v_sub_{t}", f"{t} {t} -> {t}", subtracted(f))
  lane(f"v_subrev_{t}", f"{t} {t} -> {t}", lambda m, a, b, f=f: f.sub(b, a, m.rounding(f)))
  lane(f"v_fmac_{t}", f"{t} {t} d:{t} -> {t}", fused(f))
  lane(f"v_fmaak_{t} v_fmamk_{t}", f"{t} {t} {t} -> {t}", fused(f))
  lane(f"s_add_{t}", f"{t} {t} -> {t}", added(f))
  lane(f"s_sub_{t}", f"{t} {t} -> {t}", subtracted(f))
  lane(f"s_mul_{t}", f"{t} {t} -> {t}", multiplied(f))
  lane(f"s_fmac_{t}", f"{t} {t} d:{t} -> {t}", fused(f))
lane("v_fmac_f64", "f64 f64 d:f64 -> f64", fused(F64))
lane("s_fmaak_f32 s_fmamk_f32", "f32 f32 f32 -> f32", fused(F32))
for f, name in ((F16, "f16"), (F32, "f32")):
  lane(f"v_pk_add_{name}", f"pk {name} {name} -> {name}", added(f))
  lane(f"v_pk_mul_{name}", f"pk {name} {name} -> {name}", multiplied(f))
  lane(f"v_pk_fma_{name}", f"pk {name} {name} {name} -> {name}", fused(f))
lane("v_fma_legacy_f16", "f16 f16 f16 -> f16", fused(F16))


def apart(m: Mode, a: int, b: int, c: int) -> int:
  """A product rounded before it is added: what LLVM's FMAD says of V_MAD_F16 and its like (CDNA3 has V_FMA_F16 too)."""
  product = F16.mul(a, b, m.rounding(F16))
  return F16.add(F16.flush(product) if m.flushes_out(F16) else product, c, m.rounding(F16))


lane("v_mad_f16 v_mad_legacy_f16 v_madak_f16 v_madmk_f16", "f16 f16 f16 -> f16", apart)
lane("v_mac_f16", "f16 f16 d:f16 -> f16", apart)
lane("v_pk_fmac_f16", "pk f16 f16 d:f16 -> f16", fused(F16))


def dx9(m: Mode, a: int, b: int, c: int) -> int:
  """A zero factor gives a zero product, whatever the other is."""
  return c if F32.is_zero(a) or F32.is_zero(b) else F32.fma(a, b, c, m.rounding(F32))


lane("v_fma_dx9_zero_f32", "f32 f32 f32 -> f32", dx9)
lane("v_fmac_dx9_zero_f32", "f32 f32 d:f32 -> f32", dx9)


def flushed(function: Function) -> Function:
  """RDNA4's V_FMA_DX9_ZERO_F32 and V_CUBE*_F32 have no denormals, whatever MODE says (RDNA4 ISA manual, 7.2.4)."""
  return lambda m, *values: F32.flush(function(m, *map(F32.flush, values)))


lane("v_fma_dx9_zero_f32", "f32 f32 f32 -> f32", flushed(dx9), isa="gfx12")
lane("v_mul_dx9_zero_f32 v_mul_legacy_f32", "f32 f32 -> f32",
     lambda m, a, b: 0 if F32.is_zero(a) or F32.is_zero(b) else F32.mul(a, b, m.rounding(F32)))


def lit(m: Mode, a: int, b: int, c: int) -> int:
  """v_mullit_f32 (RDNA3 ISA manual, V_MULLIT_F32)."""
  worst = F32.largest | F32.sign
  if F32.is_nan(b) or b in (worst, F32.inf(True)) or F32.is_nan(c) or F32.order(c) <= 0: return worst
  if F32.is_zero(a) or F32.is_zero(b): return 0
  return F32.mul(a, b, m.rounding(F32))


lane("v_mullit_f32", "f32 f32 f32 -> f32", lit)

# ---- least, most, middle


def before(f: Format, a: int, b: int) -> bool:
  """a < b, where -0 is less than +0."""
  return f.less(a, b) or f.is_zero(a) and f.is_zero(b) and f.negative(a) and not f.negative(b)


def least(f: Format, m: Mode, a: int, b: int) -> int:
  """V_MIN: with IEEE a signalling NaN comes out quiet; else the number wins."""
  for x in (a, b):
    if m.ieee and f.signals(x): return f.quiet(x)
  if f.is_nan(b): return a
  if f.is_nan(a): return b
  return a if before(f, a, b) else b


def most(f: Format, m: Mode, a: int, b: int) -> int:
  """V_MAX, the mirror image."""
  for x in (a, b):
    if m.ieee and f.signals(x): return f.quiet(x)
  if f.is_nan(b): return a
  if f.is_nan(a): return b
  return a if before(f, b, a) else b


def least_number(f: Format, m: Mode, a: int, b: int) -> int:
  """minimumNumber of IEEE 754-2019 (RDNA4 ISA manual, V_MIN_NUM)."""
  if f.is_nan(a): return f.quiet(a) if f.is_nan(b) else b
  return a if f.is_nan(b) or before(f, a, b) else b


def most_number(f: Format, m: Mode, a: int, b: int) -> int:
  if f.is_nan(a): return f.quiet(a) if f.is_nan(b) else b
  return a if f.is_nan(b) or before(f, b, a) else b


def minimum(f: Format, m: Mode, a: int, b: int) -> int:
  """minimum of IEEE 754-2019: a NaN comes out (RDNA4 ISA manual, V_MINIMUM)."""
  return f.nan if f.is_nan(a) or f.is_nan(b) else a if before(f, a, b) else b


def maximum(f: Format, m: Mode, a: int, b: int) -> int:
  return f.nan if f.is_nan(a) or f.is_nan(b) else a if before(f, b, a) else b


Pick = Callable[[Format, Mode, int, int], int]


def middle(low: Pick, high: Pick) -> Function:
  """V_MED3: the least of three where one is NaN, else the greatest of what is left without the greatest."""
  def median(f: Format, m: Mode, a: int, b: int, c: int) -> int:
    if f.is_nan(a) or f.is_nan(b) or f.is_nan(c): return low(f, m, low(f, m, a, b), c)
    top = high(f, m, high(f, m, a, b), c)
    if f.order(top) == f.order(a): return high(f, m, b, c)
    return high(f, m, a, c) if f.order(top) == f.order(b) else high(f, m, a, b)
  return median


def choices(suffix: str, low: Pick, high: Pick, names: tuple[str, str, str]) -> None:
  """Register the family of one kind of minimum and maximum."""
  lo, hi, med = names
  median = middle(low, high)
  for f in ALL:
    t = f"{suffix}{f.name}"
    for name, pick in ((lo, low), (hi, high)):
      def two(m: Mode, a: int, b: int, f: Format = f, pick: Pick = pick) -> int: return pick(f, m, a, b)
      lane(f"v_{name}_{t}", f"{f.name} {f.name} -> {f.name}", two)
      if f is not F64: lane(f"s_{name}_{t}", f"{f.name} {f.name} -> {f.name}", two)
      if f is F16: lane(f"v_pk_{name}_{t}", "pk f16 f16 -> f16", two)
      def three(m: Mode, a: int, b: int, c: int, f: Format = f, pick: Pick = pick) -> int:
        return pick(f, m, pick(f, m, a, b), c)
      if f is not F64: lane(f"v_{name}3_{t}", f"{f.name} {f.name} {f.name} -> {f.name}", three)
    if f is F64: continue
    three_of = f"{f.name} {f.name} {f.name} -> {f.name}"
    lane(f"v_{hi}{lo}_{t}", three_of, lambda m, a, b, c, f=f: low(f, m, high(f, m, a, b), c))
    lane(f"v_{lo}{hi}_{t}", three_of, lambda m, a, b, c, f=f: high(f, m, low(f, m, a, b), c))
    if med: lane(f"v_{med}_{t}", three_of, lambda m, a, b, c, f=f: median(f, m, a, b, c))


choices("", least, most, ("min", "max", "med3"))
choices("num_", least_number, most_number, ("min", "max", "med3"))
choices("", minimum, maximum, ("minimum", "maximum", ""))

# ---- rounding to whole numbers, parts of a number

WHOLE: Final = {"trunc": ZERO, "ceil": UP, "floor": DOWN, "rndne": 0}


def fraction(f: Format) -> Function:
  """x - floor(x), less than one (CDNA3 ISA manual, V_FRACT_F32: clamped to 0x3f7fffff)."""
  below = (f.bias << f.mantissa) - 1

  def fract(m: Mode, a: int) -> int:
    if f.is_nan(a) or f.is_inf(a): return f.nan
    r = f.sub(a, f.whole(a, DOWN), m.rounding(f))
    return min(r, below) if not f.negative(r) else r
  return fract


def significand(f: Format, a: int) -> int:
  """The number in [0.5, 1) times its sign; zeros, infinities and NaN as they are."""
  if f.is_nan(a) or f.is_inf(a) or f.is_zero(a): return a
  m, _ = f.value(a)
  return f.round(m, -abs(m).bit_length())


def exponent(f: Format, a: int) -> int:
  """The power of two that goes with `significand`."""
  if f.is_nan(a) or f.is_inf(a) or f.is_zero(a): return 0
  m, e = f.value(a)
  return abs(m).bit_length() + e


for f in ALL:
  t = f.name
  for stem, how in WHOLE.items():
    lane(f"v_{stem}_{t}", f"{t} -> {t}", lambda m, a, f=f, how=how: f.whole(a, how))
    if f is not F64: lane(f"s_{stem}_{t}", f"{t} -> {t}", lambda m, a, f=f, how=how: f.whole(a, how))
  lane(f"v_fract_{t}", f"{t} -> {t}", fraction(f))
  bare(f"v_frexp_mant_{t}", f"{t} -> {t}", lambda a, f=f: significand(f, a))
  integer = "i16" if f is F16 else "i32"
  bare(f"v_frexp_exp_{integer}_{t}", f"{t} -> {integer}", lambda a, f=f: exponent(f, a))
  lane(f"v_ldexp_{t}", f"{t} {integer} -> {t}", lambda m, a, b, f=f: f.scaled(a, b, m.rounding(f)), rounds=False)

# ---- division


def division_scale(f: Format) -> Function:
  """V_DIV_SCALE: (scaled operand, whether the quotient is scaled back by V_DIV_FMAS)."""
  step = 64 if f is F32 else 128
  near, tiny = (96, 23) if f is F32 else (768, 53)

  def scale(a: int, b: int, c: int) -> tuple[int | list[int], int]:
    up, down = f.scaled(a, step), f.scaled(a, -step)
    if f.is_zero(b) or f.is_zero(c): return f.nan, 1  # the flag as on silicon
    same_b, same_c = f.order(a) == f.order(b), f.order(a) == f.order(c)
    if f.exponent(c) - f.exponent(b) >= near: return (up if same_b else a), 1
    if f.denormal(b): return up, 0
    inverse = f.denormal(f.div(f.bias << f.mantissa, b))
    quotient = f.denormal(f.div(c, b)) or f.exponent(c) - f.exponent(b) <= 1 - f.bias  # on silicon by exponents
    # "only scale the denominator" by the manual's factor takes it out of range; the quotient needs the inverse factor
    if inverse and quotient: return ([down, up] if same_b else a), 1
    if inverse: return down, 0
    if quotient: return (up if same_c else a), 1
    return (up if f.exponent(c) <= tiny else a), 0
  return scale


def fixup(f: Format) -> Function:
  """V_DIV_FIXUP: the special cases of a division; b is the denominator, c the numerator."""
  def fixed(m: Mode, a: int, b: int, c: int) -> int | list[int]:
    minus = f.negative(b) != f.negative(c)
    if f.is_nan(c) or f.is_nan(b): return f.nan
    if f.is_zero(b) and f.is_zero(c) or f.is_inf(b) and f.is_inf(c): return f.nan
    if f.is_zero(b) or f.is_inf(c): return f.inf(minus)
    if f.is_inf(b) or f.is_zero(c): return f.zero(minus)
    limit = {"f16": 1 << 20, "f32": 150, "f64": 1075}[f.name]
    if f.exponent(c) - f.exponent(b) < -limit:  # UNDERFLOW: a zero, or what MODE rounds to
      return [f.zero(minus), f.round(-1 if minus else 1, -5000, m.rounding(f))]
    if f.is_nan(a): return [f.inf(minus), f.nan]  # a refinement that overflowed, or that met a NaN
    if f is not F16 and f.exponent(b) == (2 << f.bits - f.mantissa - 2) - 1: return f.overflow(minus, m.rounding(f))
    return a & ~f.sign | f.zero(minus)
  return fixed


def division_fma(f: Format, step: int) -> Function:
  """V_DIV_FMAS. The manuals' factor of 2**32 or 2**64 would not undo V_DIV_SCALE's 2**64 or 2**128: a quotient of two
  or more was scaled down by it, a smaller one up."""
  def scaled(m: Mode, a: int, b: int, c: int, flag: int) -> list[int]:
    """Rounded once, or before the scaling too."""
    power = flag * (step if f.exponent(c) > f.bias else -step)
    return [f.fma(a, b, c, m.rounding(f), scale=power), f.scaled(f.fma(a, b, c, m.rounding(f)), power, m.rounding(f))]
  return scaled


lane("v_div_fixup_legacy_f16", "f16 f16 f16 -> f16", fixup(F16))
lane("v_div_fmas_f32", "f32 f32 f32 vcc -> f32", division_fma(F32, 64))
lane("v_div_fmas_f64", "f64 f64 f64 vcc -> f64", division_fma(F64, 128))
for f in (F32, F64):
  bare(f"v_div_scale_{f.name}", f"{f.name} {f.name} {f.name} -> {f.name} mask", division_scale(f), rounds=True)
for f in ALL: lane(f"v_div_fixup_{f.name}", f"{f.name} {f.name} {f.name} -> {f.name}", fixup(f))

# ---- cube maps


def face(x: int, y: int, z: int) -> int:
  """0, 1: x is the major axis, and its sign; 2, 3: y; 4, 5: z. Ties go to z, then y; NaN is never the greater."""
  def reaches(a: int, b: int) -> bool:
    return not F32.is_nan(a) and not F32.is_nan(b) and a & ~F32.sign >= b & ~F32.sign
  axis = 2 if reaches(z, x) and reaches(z, y) else 1 if reaches(y, x) else 0
  major = (x, y, z)[axis]
  return 2 * axis + (not F32.is_nan(major) and F32.order(major) < 0)


def minus(x: int) -> int: return x ^ F32.sign


CUBE: Final[dict[str, Function]] = {
  "id": lambda m, x, y, z: F32.round(face(x, y, z), 0),
  "ma": lambda m, x, y, z: F32.scaled((x, y, z)[face(x, y, z) // 2], 1, m.rounding(F32)),
  "sc": lambda m, x, y, z: (minus(z), z, x, x, x, minus(x))[face(x, y, z)],
  "tc": lambda m, x, y, z: (minus(y), minus(y), z, minus(z), minus(y), minus(y))[face(x, y, z)]}
for part, function in CUBE.items():
  lane(f"v_cube{part}_f32", "f32 f32 f32 -> f32", function)
  lane(f"v_cube{part}_f32", "f32 f32 f32 -> f32", flushed(function), isa="gfx12")

# ---- dot products: products and sums in f32 (or the type itself), to nearest even, in the manual's order


def dot2(source: Format, f: Format, after: bool) -> Function:
  """Two products, and the accumulator at the end (V_DOT2_*) or at the start (V_DOT2C, V_DOT2ACC)."""
  def total(a: int, b: int, c: int) -> list[int]:
    """In the manual's order, or rounded once: the order of the chip's additions is not specified."""
    parts = [f.mul(convert(field(a, k, 16), source, f), convert(field(b, k, 16), source, f)) for k in (0, 16)]
    order = [*parts, c] if after else [c, *parts]
    return [f.add(f.add(order[0], order[1]), order[2]), once([(field(a, k, 16), field(b, k, 16)) for k in (0, 16)],
                                                              source, f, c)]
  return total


def flushing_dot2(a: int, b: int, c: int) -> list[int]:
  """V_DOT2_F32_F16 and V_DOT2C_F32_F16 without denormals."""
  a, b = (F16.flush(field(x, 0, 16)) | F16.flush(field(x, 16, 16)) << 16 for x in (a, b))
  return [F32.flush(x) for x in dot2(F16, F32, False)(a, b, F32.flush(c))]


def once(products: list[tuple[int, int]], source: Format, f: Format, c: int) -> int:
  """The exact sum of products and c, rounded to nearest even."""
  values = [F64.mul(convert(a, source, F64), convert(b, source, F64)) for a, b in products] + [convert(c, f, F64)]
  if any(F64.is_nan(v) or F64.is_inf(v) for v in values):
    total = 0
    for v in values: total = F64.add(total, v)
    return convert(total, F64, f)
  m = sum(F64.value(v)[0] << F64.value(v)[1] + 1100 for v in values)
  return f.round(m, -1100)


bare("v_dot2_f32_f16", "b32 b32 f32 -> f32", dot2(F16, F32, True), clamps=False)
# CDNA3's flush denormals of sources and results (CDNA3 ISA manual, section 6.4)
bare("v_dot2_f32_f16", "b32 b32 f32 -> f32", flushing_dot2, clamps=False, isa="gfx9")
bare("v_dot2c_f32_f16", "b32 b32 d:f32 -> f32", flushing_dot2, clamps=False, isa="gfx9")
bare("v_dot2_f32_bf16", "b32 b32 f32 -> f32", dot2(BF16, F32, True), clamps=False)
bare("v_dot2acc_f32_f16", "b32 b32 d:f32 -> f32", dot2(F16, F32, False), clamps=False)


def dot4(first: Format, second: Format) -> Function:
  """Four products of 8-bit floats and the accumulator, in the manual's order or rounded once."""
  def total(a: int, b: int, c: int) -> list[int]:
    pairs = [(convert(field(a, k, 8), first, F32), convert(field(b, k, 8), second, F32)) for k in range(0, 32, 8)]
    in_order = c
    for x, y in pairs: in_order = F32.add(in_order, F32.mul(x, y))
    return [in_order, once(pairs, F32, F32, c)]
  return total


for one, first in (("fp8", FP8), ("bf8", BF8)):
  for two, second in (("fp8", FP8), ("bf8", BF8)):
    bare(f"v_dot4_f32_{one}_{two}", "b32 b32 f32 -> f32", dot4(first, second), clamps=False)
bare("v_dot2_f16_f16", "b32 b32 f16 -> f16", dot2(F16, F16, True), clamps=False)



def without_denormals(a: int, b: int, c: int) -> list[int]:
  """V_DOT2_BF16_BF16 flushes them, whatever MODE says (RDNA3 ISA manual, section 7.2.4)."""
  a, b = (BF16.flush(field(x, 0, 16)) | BF16.flush(field(x, 16, 16)) << 16 for x in (a, b))
  return [BF16.flush(x) for x in dot2(BF16, BF16, True)(a, b, BF16.flush(c))]


bare("v_dot2_bf16_bf16", "b32 b32 bf16 -> bf16", without_denormals, clamps=False)
