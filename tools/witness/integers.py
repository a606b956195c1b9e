"""Witnesses of integer vector instructions: RDNA3 ISA manual, sections 16.7 to 16.12; CDNA3 and RDNA4 share them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.tools.witness.table import WITNESSES

M32: Final = (1 << 32) - 1
lane = WITNESSES.lane


def field(x: int, at: int, bits: int) -> int: return x >> at & (1 << bits) - 1


def signed(x: int, bits: int) -> int:
  """The low bits of x as a signed number."""
  x &= (1 << bits) - 1
  return x - (1 << bits) if x >> bits - 1 else x


def reverse(x: int, bits: int) -> int: return int(f"{x:0{bits}b}"[::-1], 2)


def leading(x: int, bits: int) -> int: return bits - x.bit_length() if x else -1


def trailing(x: int) -> int: return (x & -x).bit_length() - 1


def sign_run(x: int, bits: int) -> int:
  """How many leading bits equal the sign; -1 when all do."""
  top = x >> bits - 1 & 1
  return next((k for k in range(1, bits) if x >> bits - 1 - k & 1 != top), -1)


# ---- moves, bits

lane("v_mov_b32", "b32 -> b32", lambda a: a)
lane("v_mov_b16", "b16 -> b16", lambda a: a)
lane("v_mov_b64", "b64 -> b64", lambda a: a)
lane("v_swap_b32", "d:b32 b32 -> b32 s:b32", lambda d, a: (a, d))
lane("v_swap_b16", "d:b16 b16 -> b16 s:b16", lambda d, a: (a, d))
for bits in (16, 32):
  lane(f"v_not_b{bits}", f"b{bits} -> b{bits}", lambda a: ~a)
  lane(f"v_and_b{bits}", f"b{bits} b{bits} -> b{bits}", lambda a, b: a & b)
  lane(f"v_or_b{bits}", f"b{bits} b{bits} -> b{bits}", lambda a, b: a | b)
  lane(f"v_xor_b{bits}", f"b{bits} b{bits} -> b{bits}", lambda a, b: a ^ b)
lane("v_xnor_b32", "b32 b32 -> b32", lambda a, b: ~(a ^ b))
lane("v_xor3_b32", "b32 b32 b32 -> b32", lambda a, b, c: a ^ b ^ c)
lane("v_or3_b32", "b32 b32 b32 -> b32", lambda a, b, c: a | b | c)
lane("v_and_or_b32", "b32 b32 b32 -> b32", lambda a, b, c: a & b | c)
lane("v_bfi_b32", "b32 b32 b32 -> b32", lambda a, b, c: a & b | ~a & c)
lane("v_bfrev_b32", "b32 -> b32", lambda a: reverse(a, 32))
lane("v_bfm_b32", "b32 b32 -> b32", lambda a, b: (1 << (a & 31)) - 1 << (b & 31))
lane("v_bfe_u32", "b32 b32 b32 -> b32", lambda a, b, c: field(a, b & 31, c & 31))
lane("v_bfe_i32", "b32 b32 b32 -> b32",
     lambda a, b, c: signed(signed(a, 32) >> (b & 31), c & 31) if c & 31 else 0)
lane("v_bcnt_u32_b32", "b32 u32 -> b32", lambda a, b: a.bit_count() + b)
lane("v_clz_i32_u32 v_ffbh_u32", "b32 -> b32", lambda a: leading(a, 32))
lane("v_ctz_i32_b32 v_ffbl_b32", "b32 -> b32", lambda a: trailing(a))
lane("v_cls_i32 v_ffbh_i32", "b32 -> b32", lambda a: sign_run(a, 32))
lane("v_alignbit_b32", "b32 b32 b16 -> b32", lambda a, b, c: (a << 32 | b) >> (c & 31))
lane("v_alignbyte_b32", "b32 b32 b16 -> b32", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3))
lane("v_cvt_i32_i16", "i16 -> b32", lambda a: a)
lane("v_cvt_u32_u16", "u16 -> b32", lambda a: a)


def permuted(a: int, b: int, select: int) -> int:
  """v_perm_b32: bytes 0 to 3 are S1's, 4 to 7 S0's; 8 to 11 repeat the sign of a half."""
  data, out = a << 32 | b, 0
  for k in range(4):
    n = field(select, 8 * k, 8)
    if n >= 13: byte = 0xFF
    elif n == 12: byte = 0
    elif n >= 8: byte = 0xFF * field(data, 16 * (n - 8) + 15, 1)
    else: byte = field(data, 8 * n, 8)
    out |= byte << 8 * k
  return out


lane("v_perm_b32", "b32 b32 b32 -> b32", permuted)
lane("v_pack_b32_f16", "f16 f16 -> b32", lambda a, b: a | b << 16)
lane("v_sat_pk_u8_i16", "b32 -> b16", lambda a: sum(max(0, min(255, signed(a >> 16 * k, 16))) << 8 * k for k in (0, 1)))

# ---- shifts

for bits in (16, 32):
  lane(f"v_lshlrev_b{bits}", f"b{bits} b{bits} -> b{bits}", lambda a, b, n=bits: b << (a & n - 1))
  lane(f"v_lshrrev_b{bits}", f"b{bits} b{bits} -> b{bits}", lambda a, b, n=bits: b >> (a & n - 1))
  lane(f"v_ashrrev_i{bits}", f"b{bits} i{bits} -> b{bits}", lambda a, b, n=bits: b >> (a & n - 1))
lane("v_lshlrev_b64", "b32 b64 -> b64", lambda a, b: b << (a & 63))
lane("v_lshrrev_b64", "b32 b64 -> b64", lambda a, b: b >> (a & 63))
lane("v_ashrrev_i64", "b32 i64 -> b64", lambda a, b: b >> (a & 63))
lane("v_lshl_or_b32", "b32 b32 b32 -> b32", lambda a, b, c: a << (b & 31) | c)
lane("v_lshl_add_u32", "b32 b32 u32 -> b32", lambda a, b, c: (a << (b & 31)) + c)
lane("v_lshl_add_u64", "b64 b32 u64 -> b64", lambda a, b, c: (a << (b & 7)) + c)
lane("v_add_lshl_u32", "u32 u32 b32 -> b32", lambda a, b, c: a + b << (c & 31))
lane("v_xad_u32", "b32 b32 u32 -> b32", lambda a, b, c: (a ^ b) + c)
lane("v_add3_u32", "u32 u32 u32 -> b32", lambda a, b, c: a + b + c)

# ---- addition and multiplication; results leave their type where clamp saturates

for t in ("u32", "i32", "u16", "i16"):
  lane(f"v_add_nc_{t}", f"{t} {t} -> {t}", lambda a, b: a + b)
  lane(f"v_sub_nc_{t}", f"{t} {t} -> {t}", lambda a, b: a - b)
  if t == "u32": lane(f"v_subrev_nc_{t}", f"{t} {t} -> {t}", lambda a, b: b - a)
for t in ("u32", "i32", "u16", "i16"):  # gfx9's names
  lane(f"v_add_{t}", f"{t} {t} -> {t}", lambda a, b: a + b)
  lane(f"v_sub_{t}", f"{t} {t} -> {t}", lambda a, b: a - b)
  if t[0] == "u": lane(f"v_subrev_{t}", f"{t} {t} -> {t}", lambda a, b: b - a)


def carry(x: int) -> tuple[int, int]:
  """A sum or difference and whether it left 32 bits."""
  return x, int(not 0 <= x <= M32)


lane("v_add_co_u32", "u32 u32 -> u32 mask", lambda a, b: carry(a + b))
lane("v_sub_co_u32", "u32 u32 -> u32 mask", lambda a, b: carry(a - b))
lane("v_subrev_co_u32", "u32 u32 -> u32 mask", lambda a, b: carry(b - a))
lane("v_add_co_ci_u32 v_addc_co_u32", "u32 u32 mask -> u32 mask", lambda a, b, c: carry(a + b + c))
lane("v_sub_co_ci_u32 v_subb_co_u32", "u32 u32 mask -> u32 mask", lambda a, b, c: carry(a - b - c))
lane("v_subrev_co_ci_u32 v_subbrev_co_u32", "u32 u32 mask -> u32 mask", lambda a, b, c: carry(b - a - c))
lane("v_mul_lo_u32", "u32 u32 -> b32", lambda a, b: a * b)
lane("v_mul_hi_u32", "u32 u32 -> b32", lambda a, b: a * b >> 32)
lane("v_mul_hi_i32", "i32 i32 -> b32", lambda a, b: a * b >> 32)
lane("v_mul_lo_u16", "u16 u16 -> b16", lambda a, b: a * b)
lane("v_mul_u32_u24", "u32 u32 -> u32", lambda a, b: field(a, 0, 24) * field(b, 0, 24))
lane("v_mul_i32_i24", "u32 u32 -> i32", lambda a, b: signed(a, 24) * signed(b, 24))
lane("v_mul_hi_u32_u24", "u32 u32 -> b32", lambda a, b: field(a, 0, 24) * field(b, 0, 24) >> 32)
lane("v_mul_hi_i32_i24", "u32 u32 -> b32", lambda a, b: signed(a, 24) * signed(b, 24) >> 32)
lane("v_mad_u32_u24", "u32 u32 u32 -> u32", lambda a, b, c: field(a, 0, 24) * field(b, 0, 24) + c)
lane("v_mad_i32_i24", "u32 u32 i32 -> i32", lambda a, b, c: signed(a, 24) * signed(b, 24) + c)
lane("v_mad_u16 v_mad_legacy_u16", "u16 u16 u16 -> u16", lambda a, b, c: a * b + c)
lane("v_mad_i16 v_mad_legacy_i16", "i16 i16 i16 -> i16", lambda a, b, c: a * b + c)
lane("v_mad_u32_u16", "u16 u16 u32 -> u32", lambda a, b, c: a * b + c)
lane("v_mad_i32_i16", "i16 i16 i32 -> i32", lambda a, b, c: a * b + c)
lane("v_mad_u64_u32 v_mad_co_u64_u32", "u32 u32 u64 -> u64 mask",
     lambda a, b, c: (a * b + c, a * b + c >> 64 & 1))
# the carry out of the signed form is that of the sum of 64 bits with sign
lane("v_mad_i64_i32 v_mad_co_i64_i32", "i32 i32 i64 -> i64 mask",
     lambda a, b, c: (a * b + c, a * b + c >> 64 & 1))

# ---- least, most, middle

ORDER: Final[dict[str, Callable[..., int]]] = {"min": min, "max": max}
for t in ("u32", "i32", "u16", "i16"):
  for stem, pick in ORDER.items():
    lane(f"v_{stem}_{t}", f"{t} {t} -> {t}", lambda a, b, f=pick: f(a, b))
    lane(f"v_{stem}3_{t}", f"{t} {t} {t} -> {t}", lambda a, b, c, f=pick: f(a, b, c))
  lane(f"v_med3_{t}", f"{t} {t} {t} -> {t}", lambda a, b, c: sorted((a, b, c))[1])
  if t[1:] == "32":
    lane(f"v_maxmin_{t}", f"{t} {t} {t} -> {t}", lambda a, b, c: min(max(a, b), c))
    lane(f"v_minmax_{t}", f"{t} {t} {t} -> {t}", lambda a, b, c: max(min(a, b), c))
lane("v_cndmask_b32", "m32 m32 mask -> b32", lambda a, b, c: b if c else a)
lane("v_cndmask_b16", "m16 m16 mask -> b16", lambda a, b, c: b if c else a)

# ---- bytes

SPLITS: Final = (0, 8, 16, 24)


def sad8(a: int, b: int, c: int) -> int: return sum(abs(field(a, k, 8) - field(b, k, 8)) for k in SPLITS) + c


def msad8(a: int, b: int, c: int) -> int:
  """Bytes of the reference (S1) that are zero count nothing."""
  return sum(abs(field(a, k, 8) - field(b, k, 8)) for k in SPLITS if field(b, k, 8)) + c


def quad(one: Callable[[int, int, int], int], bits: int) -> Callable[[int, int, int], int]:
  """Four sums at the four byte offsets of eight bytes."""
  def sums(a: int, b: int, c: int) -> int:
    return sum((one(field(a, 8 * k, 32), b, field(c, bits * k, bits)) & (1 << bits) - 1) << bits * k for k in range(4))
  return sums


lane("v_sad_u8", "b32 b32 u32 -> u32", sad8)
lane("v_sad_hi_u8", "b32 b32 u32 -> u32", lambda a, b, c: (sad8(a, b, 0) << 16) + c)
lane("v_sad_u16", "b32 b32 u32 -> u32",
     lambda a, b, c: sum(abs(field(a, k, 16) - field(b, k, 16)) for k in (0, 16)) + c)
lane("v_sad_u32", "u32 u32 u32 -> u32", lambda a, b, c: abs(a - b) + c)
lane("v_msad_u8", "b32 b32 u32 -> u32", msad8)
lane("v_qsad_pk_u16_u8", "b64 b32 b64 -> b64", quad(sad8, 16))
lane("v_mqsad_pk_u16_u8", "b64 b32 b64 -> b64", quad(msad8, 16))
lane("v_mqsad_u32_u8", "b64 b32 b128 -> b128", quad(msad8, 32))
lane("v_lerp_u8", "b32 b32 b32 -> b32",
     lambda a, b, c: sum((field(a, k, 8) + field(b, k, 8) + field(c, k, 1) >> 1) << k for k in SPLITS))

# ---- packed and dot products

for t in ("u16", "i16"):
  lane(f"v_pk_add_{t}", f"pk {t} {t} -> {t}", lambda a, b: a + b)
  lane(f"v_pk_sub_{t}", f"pk {t} {t} -> {t}", lambda a, b: a - b)
  lane(f"v_pk_mad_{t}", f"pk {t} {t} {t} -> {t}", lambda a, b, c: a * b + c)
  for stem, pick in ORDER.items(): lane(f"v_pk_{stem}_{t}", f"pk {t} {t} -> {t}", lambda a, b, f=pick: f(a, b))
lane("v_pk_mul_lo_u16", "pk u16 u16 -> b16", lambda a, b: a * b)
lane("v_pk_lshlrev_b16", "pk b16 b16 -> b16", lambda a, b: b << (a & 15))
lane("v_pk_lshrrev_b16", "pk b16 b16 -> b16", lambda a, b: b >> (a & 15))
lane("v_pk_ashrrev_i16", "pk b16 i16 -> b16", lambda a, b: b >> (a & 15))


def dot(a: int, b: int, bits: int, a_signed: bool, b_signed: bool) -> int:
  """The sum of products of the elements of two dwords."""
  total = 0
  for k in range(0, 32, bits):
    x, y = field(a, k, bits), field(b, k, bits)
    total += (signed(x, bits) if a_signed else x) * (signed(y, bits) if b_signed else y)
  return total


lane("v_dot4_u32_u8", "b32 b32 u32 -> u32", lambda a, b, c: dot(a, b, 8, False, False) + c)
lane("v_dot8_u32_u4", "b32 b32 u32 -> u32", lambda a, b, c: dot(a, b, 4, False, False) + c)
lane("v_dot2_u32_u16", "b32 b32 u32 -> u32", lambda a, b, c: dot(a, b, 16, False, False) + c)
lane("v_dot2_i32_i16", "b32 b32 i32 -> i32", lambda a, b, c: dot(a, b, 16, True, True) + c)
lane("v_dot4_i32_i8", "b32 b32 i32 -> i32", lambda a, b, c: dot(a, b, 8, True, True) + c)
lane("v_dot8_i32_i4", "b32 b32 i32 -> i32", lambda a, b, c: dot(a, b, 4, True, True) + c)
lane("v_dot2c_i32_i16", "b32 b32 d:i32 -> i32", lambda a, b, c: dot(a, b, 16, True, True) + c)
lane("v_dot4c_i32_i8", "b32 b32 d:i32 -> i32", lambda a, b, c: dot(a, b, 8, True, True) + c)
lane("v_dot8c_i32_i4", "b32 b32 d:i32 -> i32", lambda a, b, c: dot(a, b, 4, True, True) + c)
