"""Meanings of scalar instructions: SOP1, SOP2, SOPC, SOPK (RDNA3 ISA manual, sections 16.1 to 16.5).

A SOPK immediate comes as `k`, sign-extended by the loop to i32. `exec` in a signature is the EXEC mask as bits.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhw.emulator.amdgcn.meanings import integer
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS as M
from tinyhw.emulator.amdgcn.meanings.registry import F
from tinyhw.emulator.values.ops import Binary, V
from tinyhw.emulator.values.ops import Operations as O


def _both(stem: str, signature: str, *, prefix: str = "b") -> Callable[[F], F]:
  """Register a function for 32 and 64 bits: `T` stands for u32 and u64."""
  def register(function: F) -> F:
    for n in ("32", "64"): M(f"{stem}_{prefix}{n}", signature.replace("T", "u" + n))(function)
    return function
  return register


# ---- moves
@_both("s_mov", "T(T)")
def mov(o: O[V], a: V) -> V: return a

@_both("s_cmov", "T(T, d:T, scc)")
def cmov(o: O[V], a: V, old: V, scc: V) -> V: return o.where(scc, a, old)

@_both("s_cselect", "T(T, T, scc)")
def cselect(o: O[V], a: V, b: V, scc: V) -> V: return o.where(scc, a, b)

@M("s_movk_i32", "i32(k)")
def movk(o: O[V], k: V) -> V: return k

@M("s_cmovk_i32", "i32(k, d:i32, scc)")
def cmovk(o: O[V], k: V, old: V, scc: V) -> V: return o.where(scc, k, old)

@M("s_sext_i32_i8", "i32(i32)")
def sext8(o: O[V], a: V) -> V: return a << 24 >> 24

@M("s_sext_i32_i16", "i32(i32)")
def sext16(o: O[V], a: V) -> V: return a << 16 >> 16

@M("s_pack_ll_b32_b16", "u32(u32, u32)")
def pack_ll(o: O[V], a: V, b: V) -> V: return a & 0xFFFF | b << 16

@M("s_pack_lh_b32_b16", "u32(u32, u32)")
def pack_lh(o: O[V], a: V, b: V) -> V: return a & 0xFFFF | b & 0xFFFF0000

@M("s_pack_hh_b32_b16", "u32(u32, u32)")
def pack_hh(o: O[V], a: V, b: V) -> V: return a >> 16 | b & 0xFFFF0000

@M("s_pack_hl_b32_b16", "u32(u32, u32)")
def pack_hl(o: O[V], a: V, b: V) -> V: return a >> 16 | b << 16


# ---- arithmetic
@M("s_add_u32", "u32, scc(u32, u32)")
def add_u(o: O[V], a: V, b: V) -> tuple[V, V]:
  s = a + b
  return s, s < a

@M("s_sub_u32", "u32, scc(u32, u32)")
def sub_u(o: O[V], a: V, b: V) -> tuple[V, V]: return a - b, a < b

@M("s_add_i32", "i32, scc(i32, i32)")
def add_i(o: O[V], a: V, b: V) -> tuple[V, V]:
  s = a + b
  return s, ((a ^ s) & (b ^ s)) < 0

@M("s_sub_i32", "i32, scc(i32, i32)")
def sub_i(o: O[V], a: V, b: V) -> tuple[V, V]:
  d = a - b
  return d, ((a ^ b) & (a ^ d)) < 0

@M("s_addk_i32", "i32, scc(d:i32, k)")
def addk(o: O[V], a: V, k: V) -> tuple[V, V]: return add_i(o, a, k)

@M("s_mulk_i32", "i32(d:i32, k)")
def mulk(o: O[V], a: V, k: V) -> V: return a * k

# The carry is SCC instead of a lane's bit of a mask.
addc = M("s_addc_u32", "u32, scc(u32, u32, scc)")(integer.add_co_ci)
subb = M("s_subb_u32", "u32, scc(u32, u32, scc)")(integer.sub_co_ci)

@M("s_mul_i32", "u32(u32, u32)")
def mul(o: O[V], a: V, b: V) -> V: return a * b

@M("s_mul_hi_u32", "u32(u32, u32)")
@M("s_mul_hi_i32", "i32(i32, i32)")
def mul_hi(o: O[V], a: V, b: V) -> V: return o.mul_high(a, b)

@M("s_abs_i32", "i32, scc(i32)")
def abs_(o: O[V], a: V) -> tuple[V, V]:
  r = o.where(a < 0, -a, a)
  return r, r != 0

@M("s_absdiff_i32", "i32, scc(i32, i32)")
def absdiff(o: O[V], a: V, b: V) -> tuple[V, V]: return abs_(o, a - b)

@M("s_min_i32", "i32, scc(i32, i32)")
@M("s_min_u32", "u32, scc(u32, u32)")
def min_(o: O[V], a: V, b: V) -> tuple[V, V]: return o.min(a, b), a < b

@M("s_max_i32", "i32, scc(i32, i32)")
@M("s_max_u32", "u32, scc(u32, u32)")
def max_(o: O[V], a: V, b: V) -> tuple[V, V]: return o.max(a, b), a >= b

for _n in (1, 2, 3, 4):
  @M(f"s_lshl{_n}_add_u32", "u32, scc(u32, u32)")
  def lshl_add(o: O[V], a: V, b: V, n: int = _n) -> tuple[V, V]:
    s = (o.to(a, "u64") << n) + o.to(b, "u64")
    return o.to(s, "u32"), s > 0xFFFFFFFF


# ---- bits
@_both("s_and", "T, scc(T, T)")
def and_(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := a & b), r != 0

@_both("s_or", "T, scc(T, T)")
def or_(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := a | b), r != 0

@_both("s_xor", "T, scc(T, T)")
def xor(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := a ^ b), r != 0

@_both("s_and_not1", "T, scc(T, T)")
def and_not1(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := a & ~b), r != 0

@_both("s_or_not1", "T, scc(T, T)")
def or_not1(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := a | ~b), r != 0

@_both("s_nand", "T, scc(T, T)")
def nand(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := ~(a & b)), r != 0

@_both("s_nor", "T, scc(T, T)")
def nor(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := ~(a | b)), r != 0

@_both("s_xnor", "T, scc(T, T)")
def xnor(o: O[V], a: V, b: V) -> tuple[V, V]: return (r := ~(a ^ b)), r != 0

@_both("s_not", "T, scc(T)")
def not_(o: O[V], a: V) -> tuple[V, V]: return (r := ~a), r != 0

def _shift(o: O[V], n: V, like: V) -> V:
  """A shift count in the type of what is shifted."""
  width = like.dtype.itemsize * 8
  return o.to(n & width - 1, f"{like.dtype.kind}{width}")

@M("s_lshl_b32", "u32, scc(u32, u32)")
@M("s_lshl_b64", "u64, scc(u64, u32)")
def lshl(o: O[V], a: V, n: V) -> tuple[V, V]: return (r := a << _shift(o, n, a)), r != 0

@M("s_lshr_b32", "u32, scc(u32, u32)")
@M("s_lshr_b64", "u64, scc(u64, u32)")
@M("s_ashr_i32", "i32, scc(i32, u32)")
@M("s_ashr_i64", "i64, scc(i64, u32)")
def shr(o: O[V], a: V, n: V) -> tuple[V, V]: return (r := a >> _shift(o, n, a)), r != 0

@M("s_bfe_u32", "u32, scc(u32, u32)")
def bfe_u32(o: O[V], a: V, s: V) -> tuple[V, V]:
  n = s >> 16 & 0x7F
  r = o.where(n >= 32, a >> (s & 31), a >> (s & 31) & ((o.const("u32", 1) << (n & 31)) - 1))
  return r, r != 0

@M("s_bfe_i32", "i32, scc(i32, u32)")
def bfe_i32(o: O[V], a: V, s: V) -> tuple[V, V]:
  n = o.to(o.min(s >> 16 & 0x7F, o.const("u32", 32)), "i64")
  field = o.to(a, "i64") >> o.to(s & 31, "i64")
  left = o.where(n == 0, o.const("i64", 1), 64 - n)
  r = o.to(o.where(n == 0, o.const("i64", 0), field << left >> left), "i32")
  return r, r != 0

@M("s_bfe_u64", "u64, scc(u64, u32)")
def bfe_u64(o: O[V], a: V, s: V) -> tuple[V, V]:
  n, at = o.to(s >> 16 & 0x7F, "u64"), o.to(s & 63, "u64")
  r = o.where(n >= 64, a >> at, a >> at & ((o.const("u64", 1) << (n & 63)) - 1))
  return r, r != 0

@M("s_bfe_i64", "i64, scc(i64, u32)")
def bfe_i64(o: O[V], a: V, s: V) -> tuple[V, V]:
  n, at = o.to(o.min(s >> 16 & 0x7F, o.const("u32", 64)), "i64"), o.to(s & 63, "i64")
  n = o.min(n, 64 - at)
  left = o.where(n == 0, o.const("i64", 1), 64 - n - at)
  right = o.where(n == 0, o.const("i64", 1), 64 - n)
  r = o.where(n == 0, o.const("i64", 0), a << left >> right)
  return r, r != 0

@M("s_bfm_b32", "u32(u32, u32)")
def bfm32(o: O[V], n: V, at: V) -> V: return (o.const("u32", 1) << (n & 31)) - 1 << (at & 31)

@M("s_bfm_b64", "u64(u32, u32)")
def bfm64(o: O[V], n: V, at: V) -> V: return (o.const("u64", 1) << o.to(n & 63, "u64")) - 1 << o.to(at & 63, "u64")

@M("s_bitset0_b32", "u32(u32, d:u32)")
def bitset0(o: O[V], n: V, old: V) -> V: return old & ~(o.const("u32", 1) << (n & 31))

@M("s_bitset1_b32", "u32(u32, d:u32)")
def bitset1(o: O[V], n: V, old: V) -> V: return old | o.const("u32", 1) << (n & 31)

@M("s_bitset0_b64", "u64(u32, d:u64)")
def bitset0_64(o: O[V], n: V, old: V) -> V: return old & ~(o.const("u64", 1) << o.to(n & 63, "u64"))

@M("s_bitset1_b64", "u64(u32, d:u64)")
def bitset1_64(o: O[V], n: V, old: V) -> V: return old | o.const("u64", 1) << o.to(n & 63, "u64")

@_both("s_brev", "T(T)")
def brev(o: O[V], a: V) -> V: return o.reverse(a)

@_both("s_bcnt1_i32", "u32, scc(T)")
def bcnt1(o: O[V], a: V) -> tuple[V, V]: return (r := o.popcount(a)), r != 0

@_both("s_bcnt0_i32", "u32, scc(T)")
def bcnt0(o: O[V], a: V) -> tuple[V, V]: return (r := o.popcount(~a)), r != 0

@_both("s_clz_i32", "u32(T)", prefix="u")
def clz(o: O[V], a: V) -> V: return o.where(a == 0, o.const("u32", 0xFFFFFFFF), o.leading_zeros(a))

@_both("s_ctz_i32", "u32(T)")
def ctz(o: O[V], a: V) -> V: return o.where(a == 0, o.const("u32", 0xFFFFFFFF), o.trailing_zeros(a))

@M("s_cls_i32", "u32(i32)")
def cls32(o: O[V], a: V) -> V:
  x = o.bits(a ^ a >> 31, "u32")
  return o.where(x == 0, o.const("u32", 0xFFFFFFFF), o.leading_zeros(x))

@M("s_cls_i32_i64", "u32(i64)")
def cls64(o: O[V], a: V) -> V:
  x = o.bits(a ^ a >> 63, "u64")
  return o.where(x == 0, o.const("u32", 0xFFFFFFFF), o.leading_zeros(x))

@M("s_bitreplicate_b64_b32", "u64(u32)")
def bitreplicate(o: O[V], a: V) -> V:
  x = o.to(a, "u64")
  for n, mask in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F), (2, 0x3333333333333333),
                  (1, 0x5555555555555555)):
    x = (x | x << n) & o.const("u64", mask)
  return x | x << 1

def _any_of_quads(o: O[V], a: V) -> V:
  """Bit 4k is set where any bit of quad k is."""
  bits = a.dtype.itemsize * 8
  x = a | a >> 1
  return (x | x >> 2) & o.const(f"u{bits}", 0x1111111111111111 & (1 << bits) - 1)

@_both("s_wqm", "T, scc(T)")
def wqm(o: O[V], a: V) -> tuple[V, V]: return (r := _any_of_quads(o, a) * 15), r != 0

@_both("s_quadmask", "T, scc(T)")
def quadmask(o: O[V], a: V) -> tuple[V, V]:
  q = _any_of_quads(o, a)
  r = q & 0
  for k in range(a.dtype.itemsize * 2): r = r | (q >> 4 * k & 1) << k
  return r, r != 0


# ---- comparisons
for _name, _function in (("eq", lambda o, a, b: a == b), ("lg", lambda o, a, b: a != b), ("gt", lambda o, a, b: a > b),
                         ("ge", lambda o, a, b: a >= b), ("lt", lambda o, a, b: a < b), ("le", lambda o, a, b: a <= b)):
  for _type in ("i32", "u32", "u64"):
    if _type == "u64" and _name not in {"eq", "lg"}: continue
    M(f"s_cmp_{_name}_{_type}", f"scc({_type}, {_type})")(_function)
  M(f"s_cmpk_{_name}_i32", "scc(d:i32, k)")(_function)
  M(f"s_cmpk_{_name}_u32", "scc(d:u32, ku)")(_function)

@M("s_bitcmp0_b32", "scc(u32, u32)")
def bitcmp0(o: O[V], a: V, n: V) -> V: return (a >> (n & 31) & 1) == 0

@M("s_bitcmp1_b32", "scc(u32, u32)")
def bitcmp1(o: O[V], a: V, n: V) -> V: return (a >> (n & 31) & 1) == 1

@M("s_bitcmp0_b64", "scc(u64, u32)")
def bitcmp0_64(o: O[V], a: V, n: V) -> V: return (a >> o.to(n & 63, "u64") & 1) == 0

@M("s_bitcmp1_b64", "scc(u64, u32)")
def bitcmp1_64(o: O[V], a: V, n: V) -> V: return (a >> o.to(n & 63, "u64") & 1) == 1


# ---- EXEC: `saveexec` keeps the old mask in the destination, `wrexec` the new one
_mask: Binary
for _name, _mask in (
    ("and", lambda o, a, e: a & e), ("or", lambda o, a, e: a | e), ("xor", lambda o, a, e: a ^ e),
    ("nand", lambda o, a, e: ~(a & e)), ("nor", lambda o, a, e: ~(a | e)), ("xnor", lambda o, a, e: ~(a ^ e)),
    ("and_not0", lambda o, a, e: ~a & e), ("or_not0", lambda o, a, e: ~a | e),
    ("and_not1", lambda o, a, e: a & ~e), ("or_not1", lambda o, a, e: a | ~e)):
  @_both(f"s_{_name}_saveexec", "T, exec, scc(T, exec)")
  def saveexec(o: O[V], a: V, e: V, f: Binary = _mask) -> tuple[V, V, V]:
    new = f(o, a, e)
    return e, new, new != 0
  if _name in {"and_not0", "and_not1"}:
    @_both(f"s_{_name}_wrexec", "T, exec, scc(T, exec)")
    def wrexec(o: O[V], a: V, e: V, f: Binary = _mask) -> tuple[V, V, V]:
      new = f(o, a, e)
      return new, new, new != 0
