"""Integer, logic and shift instructions (PTX ISA, sections 9.7.1, 9.7.2 and 9.7.8)."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.ptx.meanings.registry import means
from tinyhw.emulator.values.ops import Operations as O
from tinyhw.emulator.values.ops import Ternary, V

INT: Final = "u16 u32 u64 s16 s32 s64"
_WIDE: Final = {2: ("u32", "i32"), 4: ("u64", "i64")}
_NAMES: Final = {(k, n): f"{k}{8 * n}" for k in "ui" for n in (1, 2, 4, 8)}


def _name(x: V) -> str: return _NAMES[x.dtype.kind, x.dtype.itemsize]


def _widened(o: O[V], x: V) -> V: return o.to(x, _WIDE[x.dtype.itemsize][x.dtype.kind == "i"])



@means("add", INT)
def add(o: O[V], a: V, b: V) -> V: return a + b

@means("sub", INT)
def sub(o: O[V], a: V, b: V) -> V: return a - b

@means("add.sat", "s32")
def add_sat(o: O[V], a: V, b: V) -> V:
  return o.to(o.clip(o.to(a, "i64") + o.to(b, "i64"), -1 << 31, (1 << 31) - 1), "i32")

@means("sub.sat", "s32")
def sub_sat(o: O[V], a: V, b: V) -> V:
  return o.to(o.clip(o.to(a, "i64") - o.to(b, "i64"), -1 << 31, (1 << 31) - 1), "i32")


# ---- products

@means("mul.lo", INT)
def mul_lo(o: O[V], a: V, b: V) -> V: return a * b

@means("mul.hi", INT)
def mul_hi(o: O[V], a: V, b: V) -> V:
  bits = a.dtype.itemsize * 8
  if bits < 64: return o.to(_widened(o, a) * _widened(o, b) >> bits, _name(a))
  x, y = o.bits(a, "u64") if a.dtype.kind == "i" else a, o.bits(b, "u64") if b.dtype.kind == "i" else b
  low, top = o.const("u64", 0xFFFFFFFF), 32
  xl, xh, yl, yh = x & low, x >> top, y & low, y >> top
  middle = (xl * yl >> top) + (xh * yl & low) + (xl * yh & low)
  high = xh * yh + (xh * yl >> top) + (xl * yh >> top) + (middle >> top)
  if a.dtype.kind == "u": return high
  zero = o.const("u64", 0)
  return o.bits(high - o.where(a < 0, y, zero) - o.where(b < 0, x, zero), "i64")

@means("mul.wide", "u16 u32 s16 s32")
def mul_wide(o: O[V], a: V, b: V) -> V: return _widened(o, a) * _widened(o, b)

@means("mad.lo", INT)
def mad_lo(o: O[V], a: V, b: V, c: V) -> V: return a * b + c

@means("mad.hi", INT)
def mad_hi(o: O[V], a: V, b: V, c: V) -> V: return mul_hi(o, a, b) + c

@means("mad.hi.sat", "s32")
def mad_hi_sat(o: O[V], a: V, b: V, c: V) -> V: return add_sat(o, mul_hi(o, a, b), c)

@means("mad.wide", "u16 u32 s16 s32")
def mad_wide(o: O[V], a: V, b: V, c: V) -> V: return _widened(o, a) * _widened(o, b) + c

def _low24(o: O[V], a: V) -> V: return o.to((a << 8) >> 8, "i64") if a.dtype.kind == "i" else o.to(a & 0xFFFFFF, "u64")

@means("mul24.lo", "u32 s32")
def mul24_lo(o: O[V], a: V, b: V) -> V: return o.to(_low24(o, a) * _low24(o, b), _name(a))

@means("mul24.hi", "u32 s32")
def mul24_hi(o: O[V], a: V, b: V) -> V: return o.to(_low24(o, a) * _low24(o, b) >> 16, _name(a))

@means("mad24.lo", "u32 s32")
def mad24_lo(o: O[V], a: V, b: V, c: V) -> V: return mul24_lo(o, a, b) + c

@means("mad24.hi", "u32 s32")
def mad24_hi(o: O[V], a: V, b: V, c: V) -> V: return mul24_hi(o, a, b) + c

@means("mad24.hi.sat", "s32")
def mad24_hi_sat(o: O[V], a: V, b: V, c: V) -> V: return add_sat(o, mul24_hi(o, a, b), c)

@means("sad", INT)
def sad(o: O[V], a: V, b: V, c: V) -> V: return c + o.where(a < b, b - a, a - b)


# ---- quotients: a divisor of 0 gives all ones, and the dividend as the rest

def _divided(o: O[V], a: V, b: V) -> tuple[V, V]:
  if a.dtype.kind == "i":
    bits = a.dtype.itemsize * 8
    def turned(v: V, sign: V) -> V: return (v ^ sign) - sign  # its negative where the sign is all ones
    s, t = a >> bits - 1, b >> bits - 1
    q, r = _divided(o, o.bits(turned(a, s), f"u{bits}"), o.bits(turned(b, t), f"u{bits}"))
    return turned(o.bits(q, _name(a)), s ^ t), turned(o.bits(r, _name(a)), s)
  one = o.where(b == 0, o.const(_name(a), 1), b)
  q = a // one
  return q, a - q * one

@means("div", INT)
def div(o: O[V], a: V, b: V) -> V: return o.where(b == 0, ~(a ^ a), _divided(o, a, b)[0])

@means("rem", INT)
def rem(o: O[V], a: V, b: V) -> V: return o.where(b == 0, ~(a ^ a), _divided(o, a, b)[1])


@means("abs", "s16 s32 s64")
def abs_(o: O[V], a: V) -> V: return o.where(a < 0, 0 - a, a)

@means("neg", "s16 s32 s64")
def neg(o: O[V], a: V) -> V: return 0 - a

@means("min", INT)
def min_(o: O[V], a: V, b: V) -> V: return o.min(a, b)

@means("max", INT)
def max_(o: O[V], a: V, b: V) -> V: return o.max(a, b)

@means("min.relu", "s32 s16x2")
def min_relu(o: O[V], a: V, b: V) -> V: return o.max(o.min(a, b), a ^ a)

@means("max.relu", "s32 s16x2")
def max_relu(o: O[V], a: V, b: V) -> V: return o.max(o.max(a, b), a ^ a)

means("add", "u16x2 s16x2")(add)
means("min", "u16x2 s16x2")(min_)
means("max", "u16x2 s16x2")(max_)


# ---- carries: CC.CF goes from one instruction to the next

def _unsigned(o: O[V], a: V) -> V: return o.bits(a, f"u{a.dtype.itemsize * 8}")

def _sum(o: O[V], a: V, b: V, carry: V) -> tuple[V, V]:
  x, y = _unsigned(o, a), _unsigned(o, b)
  s = x + y
  t = s + o.to(carry, _name(x))
  return o.bits(t, _name(a)), (s < x) | (t < s)

def _difference(o: O[V], a: V, b: V, carry: V) -> tuple[V, V]:
  """a + ~b + carry, as the chip (sm_90) has it: the carry is 1 where nothing is borrowed."""
  x, y = _unsigned(o, a), _unsigned(o, b)
  borrow = ~carry
  s = x - y
  t = s - o.to(borrow, _name(x))
  return o.bits(t, _name(a)), ~((x < y) | (s < t))

@means("add.cc", "u32 s32 u64 s64", carries="out")
def add_cc(o: O[V], a: V, b: V) -> tuple[V, V]: return _sum(o, a, b, o.const("bool", 0))

@means("addc", "u32 s32 u64 s64", carries="in")
def addc(o: O[V], a: V, b: V, carry: V) -> V: return _sum(o, a, b, carry)[0]

@means("addc.cc", "u32 s32 u64 s64", carries="in out")
def addc_cc(o: O[V], a: V, b: V, carry: V) -> tuple[V, V]: return _sum(o, a, b, carry)

@means("sub.cc", "u32 s32 u64 s64", carries="out")
def sub_cc(o: O[V], a: V, b: V) -> tuple[V, V]: return _difference(o, a, b, o.const("bool", 1))

@means("subc", "u32 s32 u64 s64", carries="in")
def subc(o: O[V], a: V, b: V, carry: V) -> V: return _difference(o, a, b, carry)[0]

@means("subc.cc", "u32 s32 u64 s64", carries="in out")
def subc_cc(o: O[V], a: V, b: V, carry: V) -> tuple[V, V]: return _difference(o, a, b, carry)

@means("mad.lo.cc", "u32 s32 u64 s64", carries="out")
def mad_lo_cc(o: O[V], a: V, b: V, c: V) -> tuple[V, V]: return _sum(o, a * b, c, o.const("bool", 0))

@means("mad.hi.cc", "u32 s32 u64 s64", carries="out")
def mad_hi_cc(o: O[V], a: V, b: V, c: V) -> tuple[V, V]: return _sum(o, mul_hi(o, a, b), c, o.const("bool", 0))

@means("madc.lo", "u32 s32 u64 s64", carries="in")
def madc_lo(o: O[V], a: V, b: V, c: V, carry: V) -> V: return _sum(o, a * b, c, carry)[0]

@means("madc.hi", "u32 s32 u64 s64", carries="in")
def madc_hi(o: O[V], a: V, b: V, c: V, carry: V) -> V: return _sum(o, mul_hi(o, a, b), c, carry)[0]

@means("madc.lo.cc", "u32 s32 u64 s64", carries="in out")
def madc_lo_cc(o: O[V], a: V, b: V, c: V, carry: V) -> tuple[V, V]: return _sum(o, a * b, c, carry)

@means("madc.hi.cc", "u32 s32 u64 s64", carries="in out")
def madc_hi_cc(o: O[V], a: V, b: V, c: V, carry: V) -> tuple[V, V]: return _sum(o, mul_hi(o, a, b), c, carry)


# ---- bits

@means("popc", "b32 b64")
def popc(o: O[V], a: V) -> V: return o.popcount(a)

@means("clz", "b32 b64")
def clz(o: O[V], a: V) -> V: return o.leading_zeros(a)

@means("brev", "b32 b64")
def brev(o: O[V], a: V) -> V: return o.reverse(a)

def _found(o: O[V], a: V) -> V:
  """The bits in which the highest that is no sign is the one that counts."""
  return _unsigned(o, o.where(a < 0, ~a, a)) if a.dtype.kind == "i" else a

@means("bfind", "u32 u64 s32 s64")
def bfind(o: O[V], a: V) -> V:
  x = _found(o, a)
  return o.where(x == 0, o.const("u32", 0xFFFFFFFF), o.const("u32", a.dtype.itemsize * 8 - 1) - o.leading_zeros(x))

@means("bfind.shiftamt", "u32 u64 s32 s64")
def bfind_shift(o: O[V], a: V) -> V:
  x = _found(o, a)
  return o.where(x == 0, o.const("u32", 0xFFFFFFFF), o.leading_zeros(x))

@means("fns", "b32")
def fns(o: O[V], mask: V, base: V, offset: V) -> V:
  """The n-th set bit from `base` on: upward for a positive offset, downward for a negative one; at it for 0. There is
  none from bit 32 on."""
  beyond, base = base > 31, base & 31
  up, down = mask & (o.const("u32", 0xFFFFFFFF) << base), o.reverse(mask) & (o.const("u32", 0xFFFFFFFF) << (31 - base))
  none = o.const("u32", 0xFFFFFFFF)
  bits = o.where(offset < 0, down, up)
  count = o.to(o.where(offset < 0, 0 - offset, offset), "u32")
  for k in range(1, 32):  # take away the lowest bits that come before
    bits = o.where(count > k, bits & (bits - 1), bits)
  at = o.trailing_zeros(bits)
  result = o.where(offset < 0, 31 - at, at)
  result = o.where((bits == 0) | (count > 32), none, result)
  return o.where(beyond, none, o.where(offset == 0, o.where(mask >> base & 1 == 1, base, none), result))

def _shifted_left(o: O[V], a: V, n: V) -> V:
  """a << n, 0 for n of the width or more; n is u32."""
  bits = a.dtype.itemsize * 8
  t = _name(a)
  return o.where(n >= bits, a ^ a, a << o.to(o.where(n >= bits, o.const("u32", 0), n), t))

def _shifted_right(o: O[V], a: V, n: V) -> V:
  """a >> n, of a signed value with its sign."""
  bits = a.dtype.itemsize * 8
  t = _name(a)
  if a.dtype.kind == "i": return a >> o.to(o.where(n >= bits, o.const("u32", bits - 1), n), t)
  return o.where(n >= bits, a ^ a, a >> o.to(o.where(n >= bits, o.const("u32", 0), n), t))

@means("shl", "b16 b32 b64")
def shl(o: O[V], a: V, n: V) -> V: return _shifted_left(o, a, n)

@means("shr", "b16 b32 b64 " + INT)
def shr(o: O[V], a: V, n: V) -> V: return _shifted_right(o, a, n)

def _places(o: O[V], bits: int, *counts: V) -> tuple[V, ...]:
  """Positions and lengths: of 32 bits their lowest byte counts; of 64, the chip (sm_90) takes them whole."""
  return tuple(n & 0xFF if bits == 32 else o.min(n, o.const("u32", 0xFF)) for n in counts)

@means("bfe", "u32 u64 s32 s64")
def bfe(o: O[V], a: V, position: V, length: V) -> V:
  bits = a.dtype.itemsize * 8
  pos, n = _places(o, bits, position, length)
  x = _unsigned(o, a)
  one = o.const(_name(x), 1)
  field = _shifted_right(o, x, pos) & (_shifted_left(o, one, n) - one)
  if a.dtype.kind == "u": return o.where(n == 0, a ^ a, field)
  top = o.min(pos + n - 1, o.const("u32", bits - 1))
  sign = o.where(n == 0, o.const("bool", 0), (_shifted_right(o, x, top) & one) == one)
  length = o.where(pos >= bits, o.const("u32", 0), o.min(n, bits - pos))
  fill = ~(_shifted_left(o, one, length) - one)
  return o.bits(o.where(n == 0, x ^ x, o.where(sign, field | fill, field)), _name(a))

@means("bfi", "b32 b64")
def bfi(o: O[V], a: V, b: V, position: V, length: V) -> V:
  pos, n = _places(o, 8 * a.dtype.itemsize, position, length)
  one = o.const(_name(a), 1)
  mask = _shifted_left(o, _shifted_left(o, one, n) - one, pos)
  return b & ~mask | _shifted_left(o, a, pos) & mask

def _extended(o: O[V], a: V, n: V) -> V:
  """The low n bits (0 to 31) of a, with their sign for a signed type."""
  x, one = _unsigned(o, a), o.const("u32", 1)
  field = x & (one << n) - one
  if a.dtype.kind == "u": return field
  sign = (n != 0) & (x >> (n - 1 & 31) & 1 == 1)
  return o.bits(o.where(sign, x | o.const("u32", 0xFFFFFFFF) << n, field), "i32")

@means("szext.clamp", "u32 s32")
def szext_clamp(o: O[V], a: V, n: V) -> V: return o.where(n >= 32, a, _extended(o, a, n & 31))

@means("szext.wrap", "u32 s32")
def szext_wrap(o: O[V], a: V, n: V) -> V: return _extended(o, a, n & 31)

@means("bmsk.clamp", "b32")
def bmsk_clamp(o: O[V], a: V, b: V) -> V:
  one = o.const("u32", 1)
  return _shifted_left(o, _shifted_left(o, one, o.min(b, o.const("u32", 32))) - one, o.min(a, o.const("u32", 32)))

@means("bmsk.wrap", "b32")
def bmsk_wrap(o: O[V], a: V, b: V) -> V:
  one = o.const("u32", 1)
  return (one << (b & 31)) - one << (a & 31)


# ---- logic

@means("and", "pred b16 b32 b64")
def and_(o: O[V], a: V, b: V) -> V: return a & b

@means("or", "pred b16 b32 b64")
def or_(o: O[V], a: V, b: V) -> V: return a | b

@means("xor", "pred b16 b32 b64")
def xor(o: O[V], a: V, b: V) -> V: return a ^ b

@means("not", "pred b16 b32 b64")
def not_(o: O[V], a: V) -> V: return ~a

@means("cnot", "b16 b32 b64")
def cnot(o: O[V], a: V) -> V: return o.to(a == 0, _name(a))

@means("shf.l.clamp", "b32")
def shf_l_clamp(o: O[V], a: V, b: V, c: V) -> V: return _funnel_left(o, a, b, o.min(c, o.const("u32", 32)))

@means("shf.l.wrap", "b32")
def shf_l_wrap(o: O[V], a: V, b: V, c: V) -> V: return _funnel_left(o, a, b, c & 31)

@means("shf.r.clamp", "b32")
def shf_r_clamp(o: O[V], a: V, b: V, c: V) -> V: return _funnel_right(o, a, b, o.min(c, o.const("u32", 32)))

@means("shf.r.wrap", "b32")
def shf_r_wrap(o: O[V], a: V, b: V, c: V) -> V: return _funnel_right(o, a, b, c & 31)

def _funnel_left(o: O[V], a: V, b: V, n: V) -> V: return o.to(o.pack(a, b) << o.to(n, "u64") >> 32, "u32")

def _funnel_right(o: O[V], a: V, b: V, n: V) -> V: return o.to(o.pack(a, b) >> o.to(n, "u64"), "u32")

_SELECTORS: Final[dict[str, list[tuple[int, ...]]]] = {  # bytes of the four places, by the low two bits of c
  "f4e": [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)],
  "b4e": [(0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)],
  "rc8": [(k, k, k, k) for k in range(4)],
  "ecl": [tuple(max(k, i) for i in range(4)) for k in range(4)],
  "ecr": [tuple(min(k, i) for i in range(4)) for k in range(4)],
  "rc16": [(0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)]}

@means("prmt", "b32")
def prmt(o: O[V], a: V, b: V, c: V) -> V:
  both, out = o.pack(a, b), o.const("u32", 0)
  for k in range(4):
    control = c >> 4 * k & 15
    byte = o.to(both >> o.to((control & 7) * 8, "u64"), "u32") & 0xFF
    sign = o.where(byte >> 7 == 1, o.const("u32", 0xFF), o.const("u32", 0))
    out = out | o.where(control >> 3 == 1, sign, byte) << 8 * k
  return out

def _prmt_mode(table: list[tuple[int, ...]]) -> Ternary:
  def permuted(o: O[V], a: V, b: V, c: V) -> V:
    selector = o.lookup("u32", [sum(s << 4 * k for k, s in enumerate(row)) for row in table], c & 3)
    return prmt(o, a, b, selector)
  return permuted

for _mode, _table in _SELECTORS.items(): means(f"prmt.{_mode}", "b32")(_prmt_mode(_table))


# ---- dot products

def _parts(o: O[V], x: V, bits: int, signed: bool) -> list[V]:
  x = o.bits(x, "i32") if signed else x
  return [o.to(x << 32 - bits * (k + 1) >> 32 - bits, "i32") if signed else
          o.bits(x >> bits * k & (1 << bits) - 1, "i32") for k in range(32 // bits)]

def _dp4a(s: bool, t: bool) -> Ternary:
  def dot(o: O[V], a: V, b: V, c: V) -> V:
    for x, y in zip(_parts(o, a, 8, s), _parts(o, b, 8, t)): c = c + x * y
    return c
  return dot

def _dp2a(s: bool, t: bool, high: bool) -> Ternary:
  def dot(o: O[V], a: V, b: V, c: V) -> V:
    bytes_ = _parts(o, b, 8, t)[2:] if high else _parts(o, b, 8, t)[:2]
    for x, y in zip(_parts(o, a, 16, s), bytes_): c = c + x * y
    return c
  return dot

for _s in ("u32", "s32"):
  for _t in ("u32", "s32"):
    means("dp4a", _t, first=_s)(_dp4a(_s == "s32", _t == "s32"))
    for _half in ("lo", "hi"): means(f"dp2a.{_half}", _t, first=_s)(_dp2a(_s == "s32", _t == "s32", _half == "hi"))
