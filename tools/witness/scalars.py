"""Witnesses of scalar instructions: RDNA3 ISA manual, sections 16.1 to 16.4; RDNA4's and CDNA3's beside them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.tools.witness.integers import M32, field, leading, reverse, sign_run, signed, trailing
from tinyhw.tools.witness.table import WITNESSES

lane = WITNESSES.lane
LOGIC: Final[dict[str, Callable[[int, int], int]]] = {
  "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "nand": lambda a, b: ~(a & b),
  "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b), "and_not1": lambda a, b: a & ~b,
  "or_not1": lambda a, b: a | ~b}
NOT0: Final[dict[str, Callable[[int, int], int]]] = {"and_not0": lambda a, b: ~a & b, "or_not0": lambda a, b: ~a | b}
OLD_NAMES: Final = {"and_not1": "andn2", "or_not1": "orn2", "and_not0": "andn1", "or_not0": "orn1"}  # gfx9's


def tested(x: int, bits: int) -> tuple[int, bool]:
  """A result and SCC: whether it is not zero."""
  return x, x & (1 << bits) - 1 != 0


def carried(x: int) -> tuple[int, bool]: return x, not 0 <= x <= M32


def overflowed(x: int) -> tuple[int, bool]: return x, not -(1 << 31) <= x < 1 << 31


def both(stem: str, form: str) -> str:
  """A name and gfx9's for the same."""
  return " ".join(form.format(n) for n in (stem, OLD_NAMES.get(stem)) if n)


for n in (32, 64):
  for stem, f in LOGIC.items():
    lane(both(stem, f"s_{{}}_b{n}"), f"b{n} b{n} -> b{n} scc", lambda a, b, f=f, n=n: tested(f(a, b), n))
  for stem, f in (LOGIC | NOT0).items():
    lane(both(stem, f"s_{{}}_saveexec_b{n}"), f"b{n} exec{n} -> b{n} exec{n} scc",
         lambda a, e, f=f, n=n: (e, *tested(f(a, e), n)))
  for stem in ("and_not0", "and_not1"):
    lane(both(stem, f"s_{{}}_wrexec_b{n}"), f"b{n} exec{n} -> b{n} exec{n} scc",
         lambda a, e, f=(LOGIC | NOT0)[stem], n=n: (f(a, e), *tested(f(a, e), n)))
  lane(f"s_mov_b{n}", f"b{n} -> b{n}", lambda a: a)
  lane(f"s_cmov_b{n}", f"b{n} d:b{n} scc -> b{n}", lambda a, d, c: a if c else d)
  lane(f"s_cselect_b{n}", f"b{n} b{n} scc -> b{n}", lambda a, b, c: a if c else b)
  lane(f"s_not_b{n}", f"b{n} -> b{n} scc", lambda a, n=n: tested(~a, n))
  lane(f"s_brev_b{n}", f"b{n} -> b{n}", lambda a, n=n: reverse(a, n))
  lane(f"s_bcnt0_i32_b{n}", f"b{n} -> b32 scc", lambda a, n=n: tested(n - a.bit_count(), 32))
  lane(f"s_bcnt1_i32_b{n}", f"b{n} -> b32 scc", lambda a: tested(a.bit_count(), 32))
  lane(f"s_clz_i32_u{n} s_flbit_i32_b{n}", f"b{n} -> b32", lambda a, n=n: leading(a, n))
  lane(f"s_ctz_i32_b{n} s_ff1_i32_b{n}", f"b{n} -> b32", trailing)
  lane(f"s_ff0_i32_b{n}", f"b{n} -> b32", lambda a, n=n: trailing(~a & (1 << n) - 1))
  lane(f"s_quadmask_b{n}", f"b{n} -> b{n} scc",
       lambda a, n=n: tested(sum((field(a, 4 * k, 4) != 0) << k for k in range(n // 4)), n))
  lane(f"s_wqm_b{n}", f"b{n} -> b{n} scc",
       lambda a, n=n: tested(sum(15 * (field(a, 4 * k, 4) != 0) << 4 * k for k in range(n // 4)), n))
  lane(f"s_bitset0_b{n}", f"b32 d:b{n} -> b{n}", lambda a, d, n=n: d & ~(1 << (a & n - 1)))
  lane(f"s_bitset1_b{n}", f"b32 d:b{n} -> b{n}", lambda a, d, n=n: d | 1 << (a & n - 1))
  lane(f"s_bitcmp0_b{n}", f"b{n} b32 -> scc", lambda a, b, n=n: not field(a, b & n - 1, 1))
  lane(f"s_bitcmp1_b{n}", f"b{n} b32 -> scc", lambda a, b, n=n: field(a, b & n - 1, 1))
  lane(f"s_lshl_b{n}", f"b{n} b32 -> b{n} scc", lambda a, b, n=n: tested(a << (b & n - 1), n))
  lane(f"s_lshr_b{n}", f"b{n} b32 -> b{n} scc", lambda a, b, n=n: tested(a >> (b & n - 1), n))
  lane(f"s_ashr_i{n}", f"i{n} b32 -> b{n} scc", lambda a, b, n=n: tested(a >> (b & n - 1), n))
  lane(f"s_bfm_b{n}", f"b32 b32 -> b{n}", lambda a, b, n=n: (1 << (a & n - 1)) - 1 << (b & n - 1))
  lane(f"s_bfe_u{n}", f"b{n} b32 -> b{n} scc",
       lambda a, b, n=n: tested(field(a, b & n - 1, field(b, 16, 7)), n))
  lane(f"s_bfe_i{n}", f"i{n} b32 -> b{n} scc",
       lambda a, b, n=n: tested(signed(a >> (b & n - 1), field(b, 16, 7)) if field(b, 16, 7) else 0, n))
lane("s_cls_i32 s_flbit_i32", "b32 -> b32", lambda a: sign_run(a, 32))
lane("s_cls_i32_i64 s_flbit_i32_i64", "i64 -> b32", lambda a: sign_run(a & (1 << 64) - 1, 64))
lane("s_sext_i32_i8", "b32 -> b32", lambda a: signed(a, 8))
lane("s_sext_i32_i16", "b32 -> b32", lambda a: signed(a, 16))
lane("s_bitreplicate_b64_b32", "b32 -> b64", lambda a: sum(3 * field(a, k, 1) << 2 * k for k in range(32)))
lane("s_abs_i32", "i32 -> b32 scc", lambda a: tested(abs(a), 32))
lane("s_absdiff_i32", "i32 i32 -> b32 scc", lambda a, b: tested(abs(signed(a - b, 32)), 32))

lane("s_add_u32 s_add_co_u32", "u32 u32 -> b32 scc", lambda a, b: carried(a + b))
lane("s_sub_u32 s_sub_co_u32", "u32 u32 -> b32 scc", lambda a, b: carried(a - b))
lane("s_add_i32 s_add_co_i32", "i32 i32 -> b32 scc", lambda a, b: overflowed(a + b))
lane("s_sub_i32 s_sub_co_i32", "i32 i32 -> b32 scc", lambda a, b: overflowed(a - b))
lane("s_addc_u32 s_add_co_ci_u32", "u32 u32 scc -> b32 scc", lambda a, b, c: carried(a + b + c))
lane("s_subb_u32 s_sub_co_ci_u32", "u32 u32 scc -> b32 scc", lambda a, b, c: carried(a - b - c))
lane("s_add_nc_u64", "u64 u64 -> b64", lambda a, b: a + b)
lane("s_sub_nc_u64", "u64 u64 -> b64", lambda a, b: a - b)
lane("s_mul_u64", "u64 u64 -> b64", lambda a, b: a * b)
lane("s_mul_i32", "i32 i32 -> b32", lambda a, b: a * b)
lane("s_mul_hi_u32", "u32 u32 -> b32", lambda a, b: a * b >> 32)
lane("s_mul_hi_i32", "i32 i32 -> b32", lambda a, b: a * b >> 32)
for k in range(1, 5): lane(f"s_lshl{k}_add_u32", "u32 u32 -> b32 scc", lambda a, b, k=k: carried((a << k) + b))
for t in ("i32", "u32"):
  lane(f"s_min_{t}", f"{t} {t} -> b32 scc", lambda a, b: (min(a, b), a < b))
  # SCC of a tie: RDNA4's and CDNA3's manuals say that the first is selected; RDNA3's has > for the same instruction
  lane(f"s_max_{t}", f"{t} {t} -> b32 scc", lambda a, b: (max(a, b), a >= b))
lane("s_pack_ll_b32_b16", "b32 b32 -> b32", lambda a, b: field(a, 0, 16) | field(b, 0, 16) << 16)
lane("s_pack_lh_b32_b16", "b32 b32 -> b32", lambda a, b: field(a, 0, 16) | field(b, 16, 16) << 16)
lane("s_pack_hl_b32_b16", "b32 b32 -> b32", lambda a, b: field(a, 16, 16) | field(b, 0, 16) << 16)
lane("s_pack_hh_b32_b16", "b32 b32 -> b32", lambda a, b: field(a, 16, 16) | field(b, 16, 16) << 16)

COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
  "eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
  "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}
for stem, test in COMPARE.items():
  for t in ("i32", "u32"):
    lane(f"s_cmp_{stem}_{t}", f"{t} {t} -> scc", test)
    lane(f"s_cmpk_{stem}_{t}", f"d:{t} {'k' if t == 'i32' else 'ku'} -> scc", test)
for stem in ("eq", "lg"): lane(f"s_cmp_{stem}_u64", "u64 u64 -> scc", COMPARE[stem])
lane("s_movk_i32", "k -> b32", lambda k: k)
lane("s_cmovk_i32", "d:b32 k scc -> b32", lambda d, k, c: k if c else d)
lane("s_addk_i32 s_addk_co_i32", "d:i32 k -> b32 scc", lambda d, k: overflowed(d + k))
lane("s_mulk_i32", "d:i32 k -> b32", lambda d, k: d * k)
