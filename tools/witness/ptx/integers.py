"""Integers, logic, shifts, comparisons, selections (PTX ISA, 9.7.1, 9.7.2, 9.7.6, 9.7.8), in Python integers."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.tools.witness.ptx.formats import FORMATS, compared
from tinyhw.tools.witness.ptx.table import Case, plain, witness

Function = Callable[..., Any]
_LANES: Final = {"u16x2": "u16", "s16x2": "s16"}


def value(x: int, t: str) -> int:
  """Bits as the integer of a type."""
  n = 8 * SIZES[t]
  return x - (1 << n) if t[0] == "s" and x >> n - 1 else x


def clamped(x: int, t: str) -> int:
  """Into the range of a type."""
  n = 8 * SIZES[t]
  low, high = (-(1 << n - 1), (1 << n - 1) - 1) if t[0] == "s" else (0, (1 << n) - 1)
  return min(max(x, low), high)


def truncated(a: int, b: int) -> int:
  """A quotient toward zero."""
  return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def wide(t: str) -> int: return 8 * SIZES[t]


# ---- arithmetic of one type: f(form, values as integers) -> integer of any size

def low24(x: int, t: str) -> int:
  """The low 24 bits of an operand."""
  x &= 0xFFFFFF
  return x - (1 << 24) if t[0] == "s" and x >> 23 else x


def arithmetic(form: Form) -> Function | None:
  """What an integer instruction computes."""
  op, m, t = form.row.opcode, form.modifiers, form.type
  t = _LANES.get(t, t)
  n = wide(t)
  high = "hi" in m
  def cut(x: int) -> int: return clamped(x, t) if "sat" in m else x
  def relu(x: int) -> int: return max(x, 0) if "relu" in m else x
  table: dict[str, Function] = {
    "add": lambda a, b: cut(a + b), "sub": lambda a, b: cut(a - b),
    "mul": lambda a, b: a * b >> n if high else a * b,
    "mad": lambda a, b, c: cut((a * b >> n if high else a * b) + c),
    "mul24": lambda a, b: low24(a, t) * low24(b, t) >> (16 if high else 0),
    "mad24": lambda a, b, c: cut(value((low24(a, t) * low24(b, t) >> (16 if high else 0)) & 0xFFFFFFFF, t) + c),
    "sad": lambda a, b, c: c + abs(a - b), "abs": abs, "neg": lambda a: -a,
    "div": lambda a, b: truncated(a, b) if b else -1, "rem": lambda a, b: a - b * truncated(a, b) if b else -1,
    "min": lambda a, b: relu(min(a, b)), "max": lambda a, b: relu(max(a, b))}
  return table.get(op)


def typed(form: Form, f: Function) -> Function:
  """The function on bits: sources of their types, halves apart."""
  if form.type in _LANES:
    t = _LANES[form.type]
    def pair(*words: int) -> int:
      out = 0
      for k in (0, 16): out |= (f(*[value(w >> k & 0xFFFF, t) for w in words]) & 0xFFFF) << k
      return out
    return pair
  return lambda *words: f(*[value(w, s) for w, s in zip(words, form.sources)])


def integers(form: Form) -> Iterator[Case]:
  """Cases of an instruction on integers; none for carries, which need another one."""
  f = arithmetic(form)
  if f is None: return
  if "cc" in form.modifiers: yield from carries(form)
  else: yield plain(form, typed(form, f))


# ---- carries: one instruction makes the carry, the next one takes it

def carries(form: Form) -> Iterator[Case]:
  """add.cc and its like: the carry is read by addc into the second result."""
  op, t, m = form.row.opcode, form.type, form.modifiers
  n = wide(t)
  mask = (1 << n) - 1
  takes = op in {"addc", "subc", "madc"}
  sub = op in {"sub", "subc"}
  count = 3 if op in {"mad", "madc"} else 2
  raw = f"b{n}"

  def run(*given: int) -> tuple[int, ...]:
    values, carry = [*given[:count]], 0
    if takes: carry = int(given[-2] + given[-1] > 0xFFFFFFFF)
    if count == 3:
      a, b = (value(v, t) for v in values[:2])
      product = (a * b >> n if "hi" in m else a * b) & mask
      total = product + values[2] + carry
    elif sub: total = values[0] - values[1] - (takes and 1 - carry)  # what subtractions leave is 1 without a borrow
    else: total = values[0] + values[1] + carry
    left = int(total < 0) if sub else int(total > mask)
    return (total & mask, left) if "cc" in m else (total & mask,)
  results = (raw, "b32") if "cc" in m else (raw,)
  words = [f"{{{len(results) + k}}}" for k in range(count)]
  sources = (raw,) * count
  before = after = ""
  if takes:
    before = f"add.cc.u32 %r77, {{{len(results) + count}}}, {{{len(results) + count + 1}}};"
    sources = (*sources, "b32", "b32")
  if "cc" in m: after = " subc.u32 {1}, 0, 0; neg.s32 {1}, {1};" if sub else " addc.u32 {1}, 0, 0;"
  yield Case(form.name, f"{form.name} {{0}}, {', '.join(words)};{after}", results, sources, run, setup=before)


@witness("addc", "subc", "madc")
def with_carry(form: Form, rng: random.Random) -> Iterator[Case]:
  """Extended precision."""
  yield from carries(form)


@witness("mul24", "mad24", "sad", "rem")
def only_integers(form: Form, rng: random.Random) -> Iterator[Case]:
  """Instructions that have no floats."""
  yield from integers(form)


# ---- bits

def found(x: int, t: str) -> int:
  """bfind: the highest bit that is no sign."""
  if t[0] == "s" and x >> wide(t) - 1: x ^= (1 << wide(t)) - 1
  return x.bit_length() - 1 if x else 0xFFFFFFFF


def nth(mask: int, base: int, offset: int) -> int:
  """fns."""
  if base > 31: return 0xFFFFFFFF
  if not offset: return base if mask >> base & 1 else 0xFFFFFFFF
  order = range(base, 32) if offset > 0 else range(base, -1, -1)
  here = [k for k in order if mask >> k & 1]
  return here[abs(offset) - 1] if abs(offset) <= len(here) else 0xFFFFFFFF


def extracted(x: int, at: int, length: int, t: str) -> int:
  """bfe: bit by bit, as the manual writes it."""
  n = wide(t)
  if n == 32: at, length = at & 0xFF, length & 0xFF
  if t[0] == "u" or not length: sign = 0
  else: sign = x >> min(at + length - 1, n - 1) & 1
  out = 0
  for k in range(n): out |= (x >> at + k & 1 if k < length and at + k < n else sign) << k
  return out


def inserted(a: int, b: int, at: int, length: int, n: int) -> int:
  """bfi."""
  if n == 32: at, length = at & 0xFF, length & 0xFF
  for k in range(min(length, n)):
    if at + k < n: b = b & ~(1 << at + k) | (a >> k & 1) << at + k
  return b


def extended(x: int, n: int, t: str, wraps: bool) -> int:
  """szext."""
  n = n & 31 if wraps else n
  if n >= 32: return x
  if not n: return 0
  x &= (1 << n) - 1
  return x - (1 << n) if t[0] == "s" and x >> n - 1 else x


def mask_of(a: int, b: int, wraps: bool) -> int:
  """bmsk: b ones from bit a on."""
  a, b = (a & 31, b & 31) if wraps else (min(a, 32), min(b, 32))
  return ((1 << b) - 1) << a


def dot(form: Form) -> Function:
  """dp4a and dp2a."""
  s, t = form.types
  def part(x: int, k: int, bits: int, of: str) -> int:
    x = x >> bits * k & (1 << bits) - 1
    return x - (1 << bits) if of[0] == "s" and x >> bits - 1 else x
  if form.row.opcode == "dp4a": return lambda a, b, c: c + sum(part(a, k, 8, s) * part(b, k, 8, t) for k in range(4))
  first = 2 if "hi" in form.modifiers else 0
  return lambda a, b, c: c + sum(part(a, k, 16, s) * part(b, k + first, 8, t) for k in range(2))


def permuted(form: Form) -> Function:
  """prmt."""
  modes = {"f4e": lambda k, c: k + c, "b4e": lambda k, c: (c - k) % 8, "rc8": lambda k, c: c,
           "ecl": lambda k, c: max(k, c), "ecr": lambda k, c: min(k, c), "rc16": lambda k, c: k % 2 + 2 * (c % 2)}
  mode = next((modes[x] for x in modes if x in form.modifiers), None)
  def run(a: int, b: int, c: int) -> int:
    both, out = a | b << 32, 0
    for k in range(4):
      control = mode(k, c & 3) if mode else c >> 4 * k & 15
      byte = both >> 8 * (control & 7) & 0xFF
      if control & 8: byte = 0xFF if byte >> 7 else 0
      out |= byte << 8 * k
    return out
  return run


def shifted(form: Form) -> Function:
  """shl, shr, shf."""
  op, m = form.row.opcode, form.modifiers
  if op == "shf":
    def funnel(a: int, b: int, c: int) -> int:
      n = c & 31 if "wrap" in m else min(c, 32)
      both = b << 32 | a
      return both << n >> 32 if "l" in m else both >> n
    return funnel
  n, t = wide(form.type), form.type
  if op == "shl": return lambda a, k: a << min(k, n)
  return lambda a, k: value(a, t) >> min(k, n)


@witness("popc", "clz", "brev", "bfind", "fns", "bfe", "bfi", "szext", "bmsk", "dp4a", "dp2a", "prmt", "shl", "shr",
         "shf", "and", "or", "xor", "not", "cnot")
def bits(form: Form, rng: random.Random) -> Iterator[Case]:
  """Bit by bit."""
  op, m, t = form.row.opcode, form.modifiers, form.type
  n = wide(t) if t != "pred" else 1
  simple: dict[str, Function] = {
    "popc": lambda a: a.bit_count(), "clz": lambda a: n - a.bit_length(),
    "brev": lambda a: int(f"{a:0{n}b}"[::-1], 2), "fns": lambda a, b, c: nth(a, b, value(c, "s32")),
    "bfind": lambda a: n - 1 - found(a, t) if "shiftamt" in m and found(a, t) < n else found(a, t),
    "bfe": lambda a, b, c: extracted(a, b, c, t), "bfi": lambda a, b, c, d: inserted(a, b, c, d, n),
    "szext": lambda a, b: extended(a, b, t, "wrap" in m), "bmsk": lambda a, b: mask_of(a, b, "wrap" in m),
    "dp4a": dot(form) if op == "dp4a" else int, "dp2a": dot(form) if op == "dp2a" else int,
    "prmt": permuted(form), "shl": shifted(form), "shr": shifted(form), "shf": shifted(form),
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "not": lambda a: ~a,
    "cnot": lambda a: int(a == 0)}
  small = {"bfe": (1, 2), "bfi": (2, 3), "fns": (1, 2), "shl": (1,), "shr": (1,), "shf": (2,), "szext": (1,),
           "bmsk": (0, 1)}
  case = plain(form, simple[op])
  yield case
  if op in small:  # counts near the width
    def draw(r: random.Random) -> tuple[int, ...]:
      return tuple(r.randrange(0, 70) if k in small[op] else r.getrandbits(8 * SIZES[s])
                   for k, s in enumerate(case.sources))
    yield plain(form, simple[op], draw=draw)


@witness("lop3")
def lop3(form: Form, rng: random.Random) -> Iterator[Case]:
  """A table of eight bits."""
  combine = next((x for x in ("and", "or") if x in form.modifiers), "")
  for lut in (rng.getrandbits(8), rng.getrandbits(8), 0x80, 0xFE):
    def run(a: int, b: int, c: int, q: int = 0, lut: int = lut) -> Any:
      out = 0
      for k in range(32): out |= (lut >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k
      if not combine: return out
      return out, (int(out != 0) & q if combine == "and" else int(out != 0) | q)
    if combine:
      yield Case(form.name, f"{form.name} {{0}}|{{1}}, {{2}}, {{3}}, {{4}}, {lut}, {{5}};", ("b32", "pred"),
                 ("b32",) * 3 + ("pred",), run)
    else: yield Case(form.name, f"{form.name} {{0}}, {{1}}, {{2}}, {{3}}, {lut};", ("b32",), ("b32",) * 3, run)


# ---- comparisons, selections

_COMPARE: Final[dict[str, Function]] = {
  "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
  "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b,
  "hi": lambda a, b: a > b, "hs": lambda a, b: a >= b}


def holds(form: Form, t: str, a: int, b: int) -> bool:
  """Whether a comparison holds."""
  name = next(m for m in form.name.split(".")[1:2])
  if t in FORMATS: return compared(name, FORMATS[t], a, b, "ftz" in form.modifiers)
  return bool(_COMPARE[name](value(a, t), value(b, t)))


def joined(form: Form, p: bool, q: int) -> bool:
  """With the predicate that a comparison is combined with."""
  words = form.name.split(".")
  if "and" in words: return p and bool(q)
  if "or" in words: return p or bool(q)
  return p != bool(q) if "xor" in words else p


@witness("setp", "set")
def comparisons(form: Form, rng: random.Random) -> Iterator[Case]:
  """Of one value, or of each half."""
  t, u, packed = form.type, form.types[0], form.type.endswith("x2")
  one = t.removesuffix("x2")
  combined = "q" in form.sources
  q = ", {4}" if combined else ""

  def halves(a: int, b: int) -> list[bool]:
    if not packed: return [holds(form, t, a, b)]
    return [holds(form, one, a >> k & 0xFFFF, b >> k & 0xFFFF) for k in (0, 16)]
  if form.row.opcode == "setp":
    single = t in {"f16", "bf16"}
    def predicates(a: int, b: int, c: int = 0) -> Any:
      p = halves(a, b)
      first = joined(form, p[0], c)
      if single: return int(first)
      return int(first), int(joined(form, p[1] if packed else not p[0], c))
    sources = (t, t, *(["pred"] if combined else []))
    if single:
      text = f"{form.name} {{0}}, {{1}}, {{2}}{', {3}' if combined else ''};"
      yield Case(form.name, text, ("pred",), sources, predicates)
    else: yield Case(form.name, f"{form.name} {{0}}|{{1}}, {{2}}, {{3}}{q};", ("pred", "pred"), sources, predicates)
    return
  ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
  target = u.removesuffix("x2")
  if packed and u in {"u32", "s32"}: target = "u16"
  true = ones.get(target, (1 << 8 * SIZES[target]) - 1)
  def run(a: int, b: int, c: int = 0) -> int:
    return sum(true << 16 * k for k, p in enumerate(halves(a, b)) if joined(form, p, c))
  yield plain(form, run)


@witness("selp", "slct")
def selections(form: Form, rng: random.Random) -> Iterator[Case]:
  """By a predicate or by a sign."""
  if form.row.opcode == "selp":
    yield plain(form, lambda a, b, c: a if c else b)
    return
  if form.type == "s32":
    yield plain(form, lambda a, b, c: b if c >> 31 else a)
    return
  f = FORMATS["f32"]
  def by_number(a: int, b: int, c: int) -> int:
    if "ftz" in form.modifiers: c = f.flush(c)
    return a if not f.is_nan(c) and (f.is_zero(c) or not f.negative(c)) else b
  yield plain(form, by_number)


