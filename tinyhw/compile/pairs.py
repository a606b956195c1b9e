"""64-bit integers for targets that have none: pairs of uint32, low word first, in memory and in registers.

Each operation is a rule that gives the two words of its result. What is proven to fit an int32, with all that it is
computed from, is computed as an int32. Floats come from and go to pairs by their bits, rounded as `ir.semantics` says.
"""
from __future__ import annotations

from collections.abc import Callable

from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import UOp

Pair = tuple[UOp, UOp]
U32, I32, F32 = dtypes.uint32, dtypes.int32, dtypes.float32
WIDE = (dtypes.int64, dtypes.uint64)
_MOST = 1 << 30           # elements of a buffer of pairs: words are counted in int32
# What an int32 computes exactly where operands and result fit it. (Shifts take their count modulo another width.)
_NARROWED = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.WHERE, Ops.MULACC,
                       *GroupOp.BITWISE, *GroupOp.COMPARE})


def word(value: int) -> UOp:
  """A constant of 32 bits."""
  return UOp.const(U32, value)


def constant(value: int) -> Pair:
  """The words of a constant."""
  return word(value & 0xFFFFFFFF), word(value >> 32 & 0xFFFFFFFF)


ZERO = constant(0)


def _negative(x: UOp) -> UOp:
  """Whether the sign of a high word is set."""
  return x.bitcast(I32) < 0


def choose(condition: UOp, a: Pair, b: Pair) -> Pair:
  """a where the condition holds, else b."""
  return condition.where(a[0], b[0]), condition.where(a[1], b[1])


def add(a: Pair, b: Pair) -> Pair:
  """a + b."""
  low = a[0] + b[0]
  return low, a[1] + b[1] + (low < a[0]).cast(U32)


def sub(a: Pair, b: Pair) -> Pair:
  """a - b."""
  return a[0] - b[0], a[1] - b[1] - (a[0] < b[0]).cast(U32)


def neg(a: Pair) -> Pair:
  """-a."""
  return sub(ZERO, a)


def mul(a: Pair, b: Pair) -> Pair:
  """a * b, by products of 16 bits."""
  (x, top), (y, bottom) = a, b
  x0, x1, y0, y1 = x & 0xFFFF, x >> 16, y & 0xFFFF, y >> 16
  one, other = x0 * y1, x1 * y0
  middle = (x0 * y0 >> 16) + (one & 0xFFFF) + (other & 0xFFFF)
  high = x1 * y1 + (one >> 16) + (other >> 16) + (middle >> 16)
  return x * y, high + x * bottom + top * y


def equal(a: Pair, b: Pair) -> UOp:
  """Whether both words are alike."""
  return ((a[0] ^ b[0]) | (a[1] ^ b[1])).eq(0)


def less(a: Pair, b: Pair, signed: bool) -> UOp:
  """a < b."""
  above = a[1].bitcast(I32) < b[1].bitcast(I32) if signed else a[1] < b[1]
  return above | (a[1].eq(b[1]) & (a[0] < b[0]))


def maximum(a: Pair, b: Pair, signed: bool) -> Pair:
  """The greater one."""
  return choose(less(a, b, signed), b, a)


def shl(a: Pair, count: UOp) -> Pair:
  """a << count % 64."""
  by, far = count & 31, (count & 32).ne(0)
  low, high = a[0] << by, (a[1] << by) | (a[0] >> 1 >> (31 - by))
  return far.where(word(0), low), far.where(low, high)


def shr(a: Pair, count: UOp, signed: bool) -> Pair:
  """a >> count % 64, with copies of the sign of a signed number."""
  by, far = count & 31, (count & 32).ne(0)
  low = (a[0] >> by) | (a[1] << 1 << (31 - by))
  if not signed: return far.where(a[1] >> by, low), far.where(word(0), a[1] >> by)
  high, sign = ((a[1].bitcast(I32) >> n).bitcast(U32) for n in (by.cast(I32), UOp.const(I32, 31)))
  return far.where(high, low), far.where(sign, high)


def leading_zeros(a: Pair) -> UOp:
  """The zero bits above the highest one; 63 for 0."""
  high = a[1].eq(0)
  x, found = high.where(a[0], a[1]), high.where(word(32), word(0))
  for n in (16, 8, 4, 2, 1):
    free = (x >> (32 - n)).eq(0)
    x, found = free.where(x << n, x), found + free.where(word(n), word(0))
  return found


def _divide(n: Pair, d: Pair) -> tuple[Pair, Pair]:
  """Quotient and remainder of unsigned numbers, not of d = 0: digits of 16 bits, as one divides by hand. The first two
  digits' quotient is right, or up to two too great once the divisor's highest bit is set (Knuth, 4.3.1, theorem B)."""
  if d[1].op is Ops.CONST and d[1].arg == 0 and d[0].op is Ops.CONST and d[0].arg < 1 << 16:
    return _divide_by_digit(n, d[0])
  by = leading_zeros(d)
  v0, v1 = shl(d, by)
  high, first = v1 & 0xFFFF, v1 >> 16
  rest, low = shr(shr(n, word(1), False), 63 - by, False), shl(n, by)
  digits: list[UOp] = []
  for digit in (low[1] >> 16, low[1] & 0xFFFF, low[0] >> 16, low[0] & 0xFFFF):
    w0, w1, w2 = (rest[0] << 16) | digit, (rest[1] << 16) | (rest[0] >> 16), rest[1] >> 16
    q = rest[1] // first
    q = (q < 0x10000).where(q, word(0xFFFF))
    x0, x1, x2, x3 = q * (v0 & 0xFFFF), q * (v0 >> 16), q * high, q * first
    p0 = x0 + (x1 << 16)
    part = (x1 >> 16) + x2 + (p0 < x0).cast(U32)
    p1 = part + (x3 << 16)
    p2 = (x3 >> 16) + (p1 < part).cast(U32)
    borrow = (w1 < p1) | (w1.eq(p1) & (w0 < p0))
    w0, w1, w2 = w0 - p0, w1 - p1 - (w0 < p0).cast(U32), w2 - p2 - borrow.cast(U32)
    for _ in range(2):
      over = _negative(w2)
      s0, s1 = add((w0, w1), (v0, v1))
      carry = (s1 < w1) | (s1.eq(w1) & (s0 < w0))
      w0, w1, w2 = over.where(s0, w0), over.where(s1, w1), over.where(w2 + carry.cast(U32), w2)
      q = q - over.cast(U32)
    rest = w0, w1
    digits.append(q)
  a, b, c, e = digits
  return ((c << 16) | e, (a << 16) | b), shr(rest, by, False)


def _divide_by_digit(n: Pair, d: UOp) -> tuple[Pair, Pair]:
  """The same for a constant of 16 bits."""
  rest, digits = word(0), []
  for digit in (n[1] >> 16, n[1] & 0xFFFF, n[0] >> 16, n[0] & 0xFFFF):
    step = (rest << 16) | digit
    digits.append(step // d)
    rest = step % d
  a, b, c, e = digits
  return ((c << 16) | e, (a << 16) | b), (rest, word(0))


def divide(a: Pair, b: Pair, signed: bool, remainder: bool) -> Pair:
  """IDIV or MOD: toward zero, with the dividend's sign; 0 where the divisor is 0."""
  below, minus = _negative(a[1]), _negative(b[1])
  n, d = (choose(below, neg(a), a), choose(minus, neg(b), b)) if signed else (a, b)
  n, d = ((simplify(x[0]), simplify(x[1])) for x in (n, d))
  found = _divide(n, d)[remainder]
  if signed: found = choose(below if remainder else below.ne(minus), neg(found), found)
  return choose(equal(b, ZERO), ZERO, found)


def from_int(x: UOp) -> Pair:
  """A bool or an integer of at most 32 bits."""
  if not x.dtype.is_signed: return x.cast(U32), word(0)
  narrow = x.cast(I32)
  return narrow.bitcast(U32), (narrow >> 31).bitcast(U32)


def to_float(a: Pair, signed: bool) -> UOp:
  """The nearest float32, ties to even."""
  minus = _negative(a[1]) if signed else UOp.const(dtypes.bool, False)
  magnitude = choose(minus, neg(a), a)
  zeros = leading_zeros(magnitude)
  low, high = shl(magnitude, zeros)
  kept, rest = high >> 8, (high & 0xFF) | low.ne(0).cast(U32)     # the last bit tells that there is more below
  up = (word(0x80) < rest) | (rest.eq(0x80) & (kept & 1).ne(0))
  bits = ((190 - zeros) << 23) + (kept - (1 << 23)) + up.cast(U32)
  bits = equal(magnitude, ZERO).where(word(0), bits)
  return (bits | (minus.cast(U32) << 31)).bitcast(F32)


def from_float(x: UOp, signed: bool) -> Pair:
  """A float32 toward zero, within bounds, 0 for NaN."""
  bits = x.bitcast(U32)
  minus, exponent = _negative(bits), (bits >> 23) & 0xFF
  number = (bits & 0x7FFFFF) | 0x800000, word(0)
  found = choose(exponent < 150, shr(number, 150 - exponent, False), shl(number, exponent - 150))
  found = choose(exponent < 127, ZERO, found)
  if signed: found = choose(minus, neg(found), found)
  low, high = (dtypes.int64.min, dtypes.int64.max) if signed else (0, dtypes.uint64.max)
  top = choose(minus, constant(int(low)), constant(int(high)))
  found = choose(exponent < 127 + 64 - signed, found if signed else choose(minus, ZERO, found), top)
  return choose(word(0x7F800000) < (bits & 0x7FFFFFFF), ZERO, found)


_Rule = Callable[[bool, tuple[Pair, ...]], Pair]
RULES: dict[Ops, _Rule] = {
  Ops.ADD: lambda signed, s: add(*s),
  Ops.SUB: lambda signed, s: sub(*s),
  Ops.MUL: lambda signed, s: mul(*s),
  Ops.MULACC: lambda signed, s: add(mul(s[0], s[1]), s[2]),
  Ops.NEG: lambda signed, s: neg(*s),
  Ops.AND: lambda signed, s: (s[0][0] & s[1][0], s[0][1] & s[1][1]),
  Ops.OR: lambda signed, s: (s[0][0] | s[1][0], s[0][1] | s[1][1]),
  Ops.XOR: lambda signed, s: (s[0][0] ^ s[1][0], s[0][1] ^ s[1][1]),
  Ops.MAX: lambda signed, s: maximum(s[0], s[1], signed),
  Ops.SHL: lambda signed, s: shl(s[0], s[1][0]),
  Ops.SHR: lambda signed, s: shr(s[0], s[1][0], signed),
  Ops.IDIV: lambda signed, s: divide(s[0], s[1], signed, False),
  Ops.MOD: lambda signed, s: divide(s[0], s[1], signed, True),
}
"""The words of an operation's result: of a signed type or not, and the words of its sources."""
COMPARISONS: dict[Ops, Callable[[bool, Pair, Pair], UOp]] = {
  Ops.CMPLT: lambda signed, a, b: less(a, b, signed),
  Ops.CMPEQ: lambda signed, a, b: equal(a, b),
  Ops.CMPNE: lambda signed, a, b: equal(a, b).logical_not(),
}


def _wide(dtype: DType) -> bool:
  return (dtype.base if isinstance(dtype, PtrDType) else dtype.scalar) in WIDE


def _fits(u: UOp) -> bool:
  """Whether a value is an int32's in every thread and launch."""
  return u.dtype.is_int and int(u.vmin) >= I32.min and int(u.vmax) <= I32.max


class _Pairs:
  """Goes through a graph once, sources first: what each node becomes."""

  def __init__(self, target: str) -> None:
    self.target = target
    self.plain: dict[UOp, UOp] = {}                    # of all but values of 64 bits
    self.pair: dict[UOp, Pair] = {}
    self.stores: dict[UOp, tuple[UOp, ...]] = {}       # what a STORE became
    self.totals: list[UOp] = []
    self.narrow: dict[UOp, UOp] = {}                   # as an int32, where it fits

  def words(self, u: UOp) -> Pair:
    """The words of any integer."""
    return self.pair[u] if u in self.pair else from_int(self.plain[u])

  def as_int32(self, u: UOp) -> UOp:
    """A value that fits an int32."""
    if u in self.narrow: return self.narrow[u]
    return self.pair[u][0].bitcast(I32) if u in self.pair else self.plain[u].cast(I32)

  def one(self, u: UOp) -> None:
    """Notes what a node becomes."""
    op, dtype = u.op, u.dtype
    if isinstance(dtype, PtrDType) and _wide(dtype):
      if dtype.size > _MOST: raise self.refused(f"{dtype.base.name} in a buffer of {dtype.size:,}")
      if op is not Ops.INDEX: self.plain[u] = u.replace(dtype=U32.ptr(2 * dtype.size, dtype.space))
      return                                           # an INDEX is made where it is used
    if _wide(dtype):
      if dtype.count > 1: raise self.refused(f"vectors of {dtype.name}")
      self.value(u)
    elif op is Ops.STORE: self.store(u)
    elif op is Ops.BARRIER:
      self.plain[u] = u.replace(src=tuple(x for s in u.src for x in self.stores.get(s, (self.plain.get(s, s),))))
    elif op is Ops.SINK:
      # Totals first: a register's low word is set when its high word has been computed.
      made = dict.fromkeys((*self.totals, *(x for s in u.src for x in self.stores.get(s, (self.plain.get(s, s),)))))
      self.plain[u] = u.replace(src=tuple(made))
    elif any(s in self.pair for s in u.src): self.from_pairs(u)
    else:
      src = tuple(self.plain[s] for s in u.src)
      self.plain[u] = u if src == u.src else u.replace(src=src)

  def refused(self, what: str) -> Unsupported:
    """The error of what pairs cannot be."""
    return Unsupported("arithmetic", what, arch=self.target, where="64-bit integers as pairs")

  def index(self, u: UOp, part: int) -> UOp:
    """The INDEX of a word."""
    pointer, at, *gate = u.src
    return self.plain[pointer].index(self.plain[at] * 2 + part, *(self.plain[g] for g in gate))

  def store(self, u: UOp) -> None:
    """STORE, of both words."""
    place, value, *rest = u.src
    after = tuple(self.plain[r] for r in rest)
    if rest and _wide(value.dtype): self.totals += self.pair[value]      # a loop that loads what it has stored
    if not _wide(value.dtype):
      src = (self.plain[place], self.plain[value], *after)
      self.stores[u] = (u if src == u.src else u.replace(src=src),)
    else: self.stores[u] = tuple(UOp(Ops.STORE, dtypes.void, (self.index(place, i), self.pair[value][i], *after), u.arg)
                                 for i in range(2))
    if len(self.stores[u]) == 1: self.plain[u] = self.stores[u][0]

  def value(self, u: UOp) -> None:
    """A value of 64 bits."""
    op, signed = u.op, u.dtype.is_signed
    if op is Ops.CONST: self.pair[u] = constant(int(u.arg))
    elif op is Ops.LOAD:
      others = [s for s in u.src[1:] if s.op is not Ops.BARRIER]
      barrier = tuple(self.plain[s] for s in u.src[1:] if s.op is Ops.BARRIER)
      first, second = (UOp(Ops.LOAD, U32, (self.index(u.src[0], i), *(self.pair[s][i] for s in others), *barrier))
                       for i in range(2))
      self.pair[u] = first, second
    elif op is Ops.DEFINE_ACC:
      loops = tuple(self.plain[s] for s in u.src[1:])
      low, high = (UOp(Ops.DEFINE_ACC, U32, (x, *loops), ("word", u.arg, i)) for i, x in enumerate(self.pair[u.src[0]]))
      self.pair[u] = low, high
    elif op is Ops.ASSIGN:
      registers, total = self.pair[u.src[0]], self.pair[u.src[1]]
      self.totals += total
      low, high = (UOp(Ops.ASSIGN, U32, each) for each in zip(registers, total))
      self.pair[u] = low, high
    elif op is Ops.REDUCE:
      loops = tuple(self.plain[s] for s in u.src[1:])
      low, high = (UOp(Ops.REDUCE, U32, (x, *loops), u.arg) for x in self.pair[u.src[0]])
      self.pair[u] = low, high
    elif op is Ops.CAST:
      x = u.src[0]
      if _fits(x) and not x.dtype.is_bool: self.narrow[u] = self.as_int32(x)
      if x.dtype.is_float:
        if x.dtype is dtypes.float64: raise self.refused("CAST of float64 to 64 bits")
        self.pair[u] = from_float(self.plain[x].cast(F32), signed)
      else: self.pair[u] = self.words(x)
    elif op is Ops.BITCAST:
      if u.src[0].dtype not in WIDE: raise self.refused(f"BITCAST of {u.src[0].dtype.name}")
      self.pair[u] = self.pair[u.src[0]]
    elif op is Ops.WHERE and not _fits(u):
      self.pair[u] = choose(self.plain[u.src[0]], self.pair[u.src[1]], self.pair[u.src[2]])
    elif op in _NARROWED and _fits(u) and all(_fits(s) or s.dtype.is_bool for s in u.src):
      src = tuple(self.plain[s] if s.dtype.is_bool else self.as_int32(s) for s in u.src)
      self.narrow[u] = UOp(op, I32, src)
      self.pair[u] = from_int(self.narrow[u])
    elif op is Ops.WHERE: self.pair[u] = choose(self.plain[u.src[0]], self.pair[u.src[1]], self.pair[u.src[2]])
    elif op in RULES: self.pair[u] = RULES[op](signed, tuple(map(self.words, u.src)))
    else: raise self.refused(f"{op.name} on {u.dtype.name}")

  def from_pairs(self, u: UOp) -> None:
    """What is computed from values of 64 bits and is none."""
    op, first = u.op, u.src[0]
    if op is Ops.CAST:
      a, dtype = self.pair[first], u.dtype
      if dtype.is_bool: self.plain[u] = (a[0] | a[1]).ne(0)
      elif dtype.is_int: self.plain[u] = (self.narrow[first] if first in self.narrow else a[0]).cast(dtype)
      elif dtype is dtypes.float64: raise self.refused("CAST of 64 bits to float64")
      # What is beyond a float32's 24 bits is infinite as a half: rounding it twice is no harm.
      else: self.plain[u] = to_float(a, first.dtype.is_signed).cast(dtype)
    elif op in COMPARISONS:
      if all(map(_fits, u.src)): self.plain[u] = UOp(op, u.dtype, tuple(map(self.as_int32, u.src)))
      else: self.plain[u] = COMPARISONS[op](first.dtype.is_signed, self.pair[first], self.pair[u.src[1]])
    elif op in (Ops.SHL, Ops.SHR) and u.src[1] in self.pair:
      self.plain[u] = UOp(op, u.dtype, (self.plain[first], self.pair[u.src[1]][0]))
    else: raise self.refused(f"{op.name} to {u.dtype!r}")


def without_wide_integers(sink: UOp, target: str) -> UOp:
  """An expanded graph (`compile.expand`) for a target without 64-bit integers: they are pairs."""
  nodes = sink.toposort()
  if not any(_wide(u.dtype) for u in nodes): return sink
  pairs = _Pairs(target)
  for u in nodes: pairs.one(u)
  return simplify(pairs.plain[sink])
