"""Meanings of vector integer, bit, move and packed instructions (RDNA3 ISA manual, 16: VOP1, VOP2, VOP3 and VOP3P)."""
from __future__ import annotations

from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS as M
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import V


# ---- moves and selection
@M("v_mov_b32", "u32(u32)")
def mov(o: O[V], a: V) -> V: return a

@M("v_mov_b16", "u16(u16)")
def mov16(o: O[V], a: V) -> V: return a

@M("v_cndmask_b32", "u32(u32, u32, mask)")
def cndmask(o: O[V], a: V, b: V, c: V) -> V: return o.where(c, b, a)

@M("v_cndmask_b16", "u16(u16, u16, mask)")
def cndmask16(o: O[V], a: V, b: V, c: V) -> V: return o.where(c, b, a)

@M("v_swap_b32", "u32, s:u32(d:u32, u32)")
def swap(o: O[V], d: V, a: V) -> tuple[V, V]: return a, d

@M("v_swap_b16", "u16, s:u16(d:u16, u16)")
def swap16(o: O[V], d: V, a: V) -> tuple[V, V]: return a, d


# ---- addition and multiplication
@M("v_add_nc_u32 v_add_nc_i32", "u32(u32, u32)")
def add(o: O[V], a: V, b: V) -> V: return a + b

@M("v_sub_nc_u32", "u32(u32, u32)")
def sub(o: O[V], a: V, b: V) -> V: return a - b

@M("v_subrev_nc_u32", "u32(u32, u32)")
def subrev(o: O[V], a: V, b: V) -> V: return b - a

@M("v_sub_nc_i32", "i32(i32, i32)")
def sub_i(o: O[V], a: V, b: V) -> V: return a - b

@M("v_add_nc_u16", "u16(u16, u16)")
def add16(o: O[V], a: V, b: V) -> V: return a + b

@M("v_add_nc_i16", "i16(i16, i16)")
def add_i16(o: O[V], a: V, b: V) -> V: return a + b

@M("v_sub_nc_u16", "u16(u16, u16)")
def sub16(o: O[V], a: V, b: V) -> V: return a - b

@M("v_sub_nc_i16", "i16(i16, i16)")
def sub_i16(o: O[V], a: V, b: V) -> V: return a - b

@M("v_add_co_u32", "u32, mask(u32, u32)")
def add_co(o: O[V], a: V, b: V) -> tuple[V, V]:
  s = a + b
  return s, s < a

@M("v_sub_co_u32", "u32, mask(u32, u32)")
def sub_co(o: O[V], a: V, b: V) -> tuple[V, V]: return a - b, a < b

@M("v_subrev_co_u32", "u32, mask(u32, u32)")
def subrev_co(o: O[V], a: V, b: V) -> tuple[V, V]: return b - a, b < a

@M("v_add_co_ci_u32", "u32, mask(u32, u32, mask)")
def add_co_ci(o: O[V], a: V, b: V, c: V) -> tuple[V, V]:
  s = o.to(a, "u64") + o.to(b, "u64") + o.to(c, "u64")
  return o.to(s, "u32"), s > 0xFFFFFFFF

@M("v_sub_co_ci_u32", "u32, mask(u32, u32, mask)")
def sub_co_ci(o: O[V], a: V, b: V, c: V) -> tuple[V, V]:
  d = o.to(a, "i64") - o.to(b, "i64") - o.to(c, "i64")
  return o.to(d, "u32"), d < 0

@M("v_subrev_co_ci_u32", "u32, mask(u32, u32, mask)")
def subrev_co_ci(o: O[V], a: V, b: V, c: V) -> tuple[V, V]: return sub_co_ci(o, b, a, c)

@M("v_add3_u32", "u32(u32, u32, u32)")
def add3(o: O[V], a: V, b: V, c: V) -> V: return a + b + c

@M("v_lshl_add_u32", "u32(u32, u32, u32)")
def lshl_add(o: O[V], a: V, b: V, c: V) -> V: return (a << (b & 31)) + c

@M("v_add_lshl_u32", "u32(u32, u32, u32)")
def add_lshl(o: O[V], a: V, b: V, c: V) -> V: return a + b << (c & 31)

@M("v_xad_u32", "u32(u32, u32, u32)")
def xad(o: O[V], a: V, b: V, c: V) -> V: return (a ^ b) + c

@M("v_mul_lo_u32", "u32(u32, u32)")
def mul_lo(o: O[V], a: V, b: V) -> V: return a * b

@M("v_mul_lo_u16", "u16(u16, u16)")
def mul_lo16(o: O[V], a: V, b: V) -> V: return a * b

@M("v_mul_hi_u32", "u32(u32, u32)")
def mul_hi(o: O[V], a: V, b: V) -> V: return o.mul_high(a, b)

@M("v_mul_hi_i32", "i32(i32, i32)")
def mul_hi_i(o: O[V], a: V, b: V) -> V: return o.mul_high(a, b)

def _s24(o: O[V], a: V) -> V: return (a << 8) >> 8

@M("v_mul_u32_u24", "u32(u32, u32)")
def mul_u24(o: O[V], a: V, b: V) -> V: return (a & 0xFFFFFF) * (b & 0xFFFFFF)

@M("v_mul_i32_i24", "i32(i32, i32)")
def mul_i24(o: O[V], a: V, b: V) -> V: return _s24(o, a) * _s24(o, b)

@M("v_mul_hi_u32_u24", "u32(u32, u32)")
def mul_hi_u24(o: O[V], a: V, b: V) -> V: return o.mul_high(a & 0xFFFFFF, b & 0xFFFFFF)

@M("v_mul_hi_i32_i24", "i32(i32, i32)")
def mul_hi_i24(o: O[V], a: V, b: V) -> V: return o.mul_high(_s24(o, a), _s24(o, b))

@M("v_mad_u32_u24", "u32(u32, u32, u32)")
def mad_u24(o: O[V], a: V, b: V, c: V) -> V: return (a & 0xFFFFFF) * (b & 0xFFFFFF) + c

@M("v_mad_i32_i24", "i32(i32, i32, i32)")
def mad_i24(o: O[V], a: V, b: V, c: V) -> V: return _s24(o, a) * _s24(o, b) + c

@M("v_mad_u16", "u16(u16, u16, u16)")
def mad_u16(o: O[V], a: V, b: V, c: V) -> V: return a * b + c

@M("v_mad_i16", "i16(i16, i16, i16)")
def mad_i16(o: O[V], a: V, b: V, c: V) -> V: return a * b + c

@M("v_mad_u32_u16", "u32(u16, u16, u32)")
def mad_u32_u16(o: O[V], a: V, b: V, c: V) -> V: return o.to(a, "u32") * o.to(b, "u32") + c

@M("v_mad_i32_i16", "i32(i16, i16, i32)")
def mad_i32_i16(o: O[V], a: V, b: V, c: V) -> V: return o.to(a, "i32") * o.to(b, "i32") + c

@M("v_mad_u64_u32", "u64, mask(u32, u32, u64)")
def mad_u64_u32(o: O[V], a: V, b: V, c: V) -> tuple[V, V]:
  s = o.to(a, "u64") * o.to(b, "u64") + c
  return s, s < c

@M("v_mad_i64_i32", "i64, mask(i32, i32, i64)")
def mad_i64_i32(o: O[V], a: V, b: V, c: V) -> tuple[V, V]:
  p = o.to(a, "i64") * o.to(b, "i64")
  s = p + c
  return s, (s < 0) ^ (((p ^ s) & (c ^ s)) < 0)  # the top bit of the sum of 65 bits


# ---- minimum, maximum, median
@M("v_min_u32", "u32(u32, u32)")
@M("v_min_i32", "i32(i32, i32)")
@M("v_min_u16", "u16(u16, u16)")
@M("v_min_i16", "i16(i16, i16)")
def min_(o: O[V], a: V, b: V) -> V: return o.min(a, b)

@M("v_max_u32", "u32(u32, u32)")
@M("v_max_i32", "i32(i32, i32)")
@M("v_max_u16", "u16(u16, u16)")
@M("v_max_i16", "i16(i16, i16)")
def max_(o: O[V], a: V, b: V) -> V: return o.max(a, b)

@M("v_min3_u32", "u32(u32, u32, u32)")
@M("v_min3_i32", "i32(i32, i32, i32)")
@M("v_min3_u16", "u16(u16, u16, u16)")
@M("v_min3_i16", "i16(i16, i16, i16)")
def min3(o: O[V], a: V, b: V, c: V) -> V: return o.min(o.min(a, b), c)

@M("v_max3_u32", "u32(u32, u32, u32)")
@M("v_max3_i32", "i32(i32, i32, i32)")
@M("v_max3_u16", "u16(u16, u16, u16)")
@M("v_max3_i16", "i16(i16, i16, i16)")
def max3(o: O[V], a: V, b: V, c: V) -> V: return o.max(o.max(a, b), c)

@M("v_med3_u32", "u32(u32, u32, u32)")
@M("v_med3_i32", "i32(i32, i32, i32)")
@M("v_med3_u16", "u16(u16, u16, u16)")
@M("v_med3_i16", "i16(i16, i16, i16)")
def med3(o: O[V], a: V, b: V, c: V) -> V: return o.max(o.min(a, b), o.min(o.max(a, b), c))

@M("v_minmax_u32", "u32(u32, u32, u32)")
@M("v_minmax_i32", "i32(i32, i32, i32)")
def minmax(o: O[V], a: V, b: V, c: V) -> V: return o.max(o.min(a, b), c)

@M("v_maxmin_u32", "u32(u32, u32, u32)")
@M("v_maxmin_i32", "i32(i32, i32, i32)")
def maxmin(o: O[V], a: V, b: V, c: V) -> V: return o.min(o.max(a, b), c)


# ---- bits
@M("v_and_b32", "u32(u32, u32)")
@M("v_and_b16", "u16(u16, u16)")
def and_(o: O[V], a: V, b: V) -> V: return a & b

@M("v_or_b32", "u32(u32, u32)")
@M("v_or_b16", "u16(u16, u16)")
def or_(o: O[V], a: V, b: V) -> V: return a | b

@M("v_xor_b32", "u32(u32, u32)")
@M("v_xor_b16", "u16(u16, u16)")
def xor(o: O[V], a: V, b: V) -> V: return a ^ b

@M("v_xnor_b32", "u32(u32, u32)")
def xnor(o: O[V], a: V, b: V) -> V: return ~(a ^ b)

@M("v_not_b32", "u32(u32)")
@M("v_not_b16", "u16(u16)")
def not_(o: O[V], a: V) -> V: return ~a

@M("v_and_or_b32", "u32(u32, u32, u32)")
def and_or(o: O[V], a: V, b: V, c: V) -> V: return a & b | c

@M("v_or3_b32", "u32(u32, u32, u32)")
def or3(o: O[V], a: V, b: V, c: V) -> V: return a | b | c

@M("v_xor3_b32", "u32(u32, u32, u32)")
def xor3(o: O[V], a: V, b: V, c: V) -> V: return a ^ b ^ c

@M("v_lshl_or_b32", "u32(u32, u32, u32)")
def lshl_or(o: O[V], a: V, b: V, c: V) -> V: return a << (b & 31) | c

@M("v_lshlrev_b32", "u32(u32, u32)")
def lshlrev(o: O[V], n: V, a: V) -> V: return a << (n & 31)

@M("v_lshrrev_b32", "u32(u32, u32)")
def lshrrev(o: O[V], n: V, a: V) -> V: return a >> (n & 31)

@M("v_ashrrev_i32", "i32(i32, i32)")
def ashrrev(o: O[V], n: V, a: V) -> V: return a >> (n & 31)

@M("v_lshlrev_b16", "u16(u16, u16)")
def lshlrev16(o: O[V], n: V, a: V) -> V: return a << (n & 15)

@M("v_lshrrev_b16", "u16(u16, u16)")
def lshrrev16(o: O[V], n: V, a: V) -> V: return a >> (n & 15)

@M("v_ashrrev_i16", "i16(i16, i16)")
def ashrrev16(o: O[V], n: V, a: V) -> V: return a >> (n & 15)

@M("v_lshlrev_b64", "u64(u32, u64)")
def lshlrev64(o: O[V], n: V, a: V) -> V: return a << o.to(n & 63, "u64")

@M("v_lshrrev_b64", "u64(u32, u64)")
def lshrrev64(o: O[V], n: V, a: V) -> V: return a >> o.to(n & 63, "u64")

@M("v_ashrrev_i64", "i64(u32, i64)")
def ashrrev64(o: O[V], n: V, a: V) -> V: return a >> o.to(n & 63, "i64")

@M("v_bfe_u32", "u32(u32, u32, u32)")
def bfe_u(o: O[V], a: V, at: V, n: V) -> V: return a >> (at & 31) & ((o.const("u32", 1) << (n & 31)) - 1)

@M("v_bfe_i32", "i32(i32, u32, u32)")
def bfe_i(o: O[V], a: V, at: V, n: V) -> V:
  n, at = o.to(n & 31, "i64"), o.to(at & 31, "i64")
  field = o.to(a, "i64") >> at
  return o.to(o.where(n == 0, o.const("i64", 0), (field << 64 - n - (n == 0)) >> 64 - n - (n == 0)), "i32")

@M("v_bfi_b32", "u32(u32, u32, u32)")
def bfi(o: O[V], m: V, a: V, b: V) -> V: return m & a | ~m & b

@M("v_bfm_b32", "u32(u32, u32)")
def bfm(o: O[V], n: V, at: V) -> V: return (o.const("u32", 1) << (n & 31)) - 1 << (at & 31)

@M("v_bfrev_b32", "u32(u32)")
def bfrev(o: O[V], a: V) -> V: return o.reverse(a)

@M("v_bcnt_u32_b32", "u32(u32, u32)")
def bcnt(o: O[V], a: V, b: V) -> V: return o.popcount(a) + b

@M("v_clz_i32_u32", "u32(u32)")
def clz(o: O[V], a: V) -> V: return o.where(a == 0, o.const("u32", 0xFFFFFFFF), o.leading_zeros(a))

@M("v_ctz_i32_b32", "u32(u32)")
def ctz(o: O[V], a: V) -> V: return o.where(a == 0, o.const("u32", 0xFFFFFFFF), o.trailing_zeros(a))

@M("v_cls_i32", "u32(i32)")
def cls(o: O[V], a: V) -> V:
  flipped = o.bits(a ^ (a >> 31), "u32")
  return o.where(flipped == 0, o.const("u32", 0xFFFFFFFF), o.leading_zeros(flipped))

@M("v_alignbit_b32", "u32(u32, u32, u16)")
def alignbit(o: O[V], a: V, b: V, n: V) -> V: return o.to(o.pack(b, a) >> o.to(n & 31, "u64"), "u32")

@M("v_alignbyte_b32", "u32(u32, u32, u16)")
def alignbyte(o: O[V], a: V, b: V, n: V) -> V: return o.to(o.pack(b, a) >> o.to((n & 3) * 8, "u64"), "u32")

@M("v_perm_b32", "u32(u32, u32, u32)")
def perm(o: O[V], a: V, b: V, sel: V) -> V:
  data = o.pack(b, a)
  out = o.const("u32", 0)
  for k in range(4):
    s = sel >> 8 * k & 0xFF
    byte = o.to(data >> o.to((s & 7) * 8, "u64"), "u32") & 0xFF
    sign = o.to(data >> o.to(((s & 3) * 2 + 1) * 8 + 7, "u64"), "u32") & 1
    fixed = o.where(s >= 13, o.const("u32", 0xFF), o.where(s == 12, o.const("u32", 0), sign * 0xFF))
    byte = o.where(s >= 8, fixed, byte)
    out = out | byte << 8 * k
  return out


# ---- conversions between integers, packing
@M("v_cvt_i32_i16", "i32(i16)")
def cvt_i32_i16(o: O[V], a: V) -> V: return o.to(a, "i32")

@M("v_cvt_u32_u16", "u32(u16)")
def cvt_u32_u16(o: O[V], a: V) -> V: return o.to(a, "u32")

@M("v_cvt_pk_u16_u32", "u32(u32, u32)")
def cvt_pk_u16(o: O[V], a: V, b: V) -> V: return o.clip(a, 0, 0xFFFF) | o.clip(b, 0, 0xFFFF) << 16

@M("v_cvt_pk_i16_i32", "u32(i32, i32)")
def cvt_pk_i16(o: O[V], a: V, b: V) -> V:
  return o.bits(o.clip(a, -0x8000, 0x7FFF) & 0xFFFF | o.clip(b, -0x8000, 0x7FFF) << 16, "u32")

@M("v_pack_b32_f16", "u32(u16, u16)")
def pack(o: O[V], a: V, b: V) -> V: return o.to(a, "u32") | o.to(b, "u32") << 16

@M("v_sat_pk_u8_i16", "u16(u32)")
def sat_pk(o: O[V], a: V) -> V:
  low, high = o.bits(a << 16, "i32") >> 16, o.bits(a, "i32") >> 16
  return o.to(o.clip(low, 0, 255) | o.clip(high, 0, 255) << 8, "u16")


# ---- bytes: sums of absolute differences, averages
def _byte(o: O[V], a: V, k: int) -> V: return o.to(a >> 8 * k & 0xFF, "i64")

def _sad(o: O[V], a: V, b: V, skip_zero: bool = False) -> V:
  total = o.const("i64", 0)
  for k in range(4):
    x, y = _byte(o, a, k), _byte(o, b, k)
    d = o.abs(x - y)
    total = total + (o.where(y == 0, o.const("i64", 0), d) if skip_zero else d)
  return o.to(total, "u32")

@M("v_sad_u8", "u32(u32, u32, u32)")
def sad_u8(o: O[V], a: V, b: V, c: V) -> V: return _sad(o, a, b) + c

@M("v_sad_hi_u8", "u32(u32, u32, u32)")
def sad_hi_u8(o: O[V], a: V, b: V, c: V) -> V: return (_sad(o, a, b) << 16) + c

@M("v_msad_u8", "u32(u32, u32, u32)")
def msad_u8(o: O[V], a: V, b: V, c: V) -> V: return _sad(o, a, b, True) + c

@M("v_sad_u16", "u32(u32, u32, u32)")
def sad_u16(o: O[V], a: V, b: V, c: V) -> V:
  low = o.abs(o.to(a & 0xFFFF, "i64") - o.to(b & 0xFFFF, "i64"))
  high = o.abs(o.to(a >> 16, "i64") - o.to(b >> 16, "i64"))
  return o.to(low + high, "u32") + c

@M("v_sad_u32", "u32(u32, u32, u32)")
def sad_u32(o: O[V], a: V, b: V, c: V) -> V: return o.where(a > b, a - b, b - a) + c

@M("v_lerp_u8", "u32(u32, u32, u32)")
def lerp(o: O[V], a: V, b: V, c: V) -> V:
  out = o.const("u32", 0)
  for k in (0, 8, 16, 24): out = out | ((a >> k & 0xFF) + (b >> k & 0xFF) + (c >> k & 1) >> 1) << k
  return out


# ---- packed 16-bit
for _name, _function, _type in (
    ("add_i16", add_i16, "i16"), ("add_u16", add16, "u16"), ("sub_i16", sub_i16, "i16"), ("sub_u16", sub16, "u16"),
    ("min_i16", min_, "i16"), ("min_u16", min_, "u16"), ("max_i16", max_, "i16"), ("max_u16", max_, "u16"),
    ("mul_lo_u16", mul_lo16, "u16"), ("lshlrev_b16", lshlrev16, "u16"), ("lshrrev_b16", lshrrev16, "u16"),
    ("ashrrev_i16", ashrrev16, "i16")):
  M(f"v_pk_{_name}", f"pk {_type}({_type}, {_type})")(_function)
M("v_pk_mad_u16", "pk u16(u16, u16, u16)")(mad_u16)
M("v_pk_mad_i16", "pk i16(i16, i16, i16)")(mad_i16)


# ---- dot products of integers; iu4 and iu8 take the sign of each source from its neg_lo bit (`signed0`, `signed1`)
def _unsigned_dot(a: V, b: V, c: V, bits: int) -> V:
  element = (1 << bits) - 1
  for k in range(0, 32, bits): c = c + (a >> k & element) * (b >> k & element)
  return c

@M("v_dot4_u32_u8", "u32(u32, u32, u32)")
def dot4(o: O[V], a: V, b: V, c: V) -> V: return _unsigned_dot(a, b, c, 8)

@M("v_dot8_u32_u4", "u32(u32, u32, u32)")
def dot8(o: O[V], a: V, b: V, c: V) -> V: return _unsigned_dot(a, b, c, 4)


# ---- comparisons: v_cmp gives a mask, v_cmpx sets EXEC
def _f(o: O[V], a: V, b: V) -> V: return (a < a) & (b < b)
def _lt(o: O[V], a: V, b: V) -> V: return a < b
def _eq(o: O[V], a: V, b: V) -> V: return a == b
def _le(o: O[V], a: V, b: V) -> V: return a <= b
def _gt(o: O[V], a: V, b: V) -> V: return a > b
def _ne(o: O[V], a: V, b: V) -> V: return a != b
def _ge(o: O[V], a: V, b: V) -> V: return a >= b
def _t(o: O[V], a: V, b: V) -> V: return (a == a) | (b == b)

for _type in ("i16", "u16", "i32", "u32", "i64", "u64"):
  for _name, _function in (("f", _f), ("lt", _lt), ("eq", _eq), ("le", _le), ("gt", _gt), ("ne", _ne), ("ge", _ge),
                           ("t", _t)):
    M(f"v_cmp_{_name}_{_type}", f"mask({_type}, {_type})")(_function)
    M(f"v_cmpx_{_name}_{_type}", f"exec({_type}, {_type})")(_function)
