"""Video instructions (PTX ISA, section 9.7.18): parts of operands, an operation on them, what becomes of its result.

Values of operands are i64: the manual's 33 bits. A function takes the operation's name and its modifiers when it is
bound and gives a pure function of the three operands, u32 to u32.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tinyhw.emulator.ptx.meanings.compare import WHOLE
from tinyhw.emulator.values.ops import Binary, Ternary, V
from tinyhw.emulator.values.ops import Operations as O

_FAR: Final = 1 << 20  # shifted by 32, what is beyond saturates as this does


def part(o: O[V], x: V, signed: bool, bits: int, at: int) -> V:
  """The bits of a u32 from a place on, extended to i64."""
  up = 32 - bits - at
  if signed: return o.to(o.bits(x, "i32") << up >> 32 - bits, "i64")
  return o.to(x << up >> 32 - bits, "i64")


def selected(selector: str) -> tuple[int, int]:
  """(bits, the first of them) of .b0 to .b3, .h0, .h1 or of all."""
  if not selector: return 32, 0
  size = 8 if selector[0] == "b" else 16
  return size, size * int(selector[1:])


def _low(o: O[V], x: V) -> V: return o.to(x, "u32")


def _limits(signed: bool, bits: int) -> tuple[int, int]:
  return (-1 << bits - 1, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _limited(o: O[V], x: V, low: int, high: int) -> V: return o.min(o.max(x, o.const("i64", low)), o.const("i64", high))


def operation(opcode: str, modifiers: frozenset[str]) -> Binary:
  """What the first stage computes of two i64: `f(o, a, b)`. It is exact, but that a shift to the left by 32 may give
  less where more would saturate alike, and has the same lower 33 bits."""
  name = opcode.rstrip("24")
  simple: dict[str, Binary] = {
    "vadd": lambda o, a, b: a + b, "vsub": lambda o, a, b: a - b,
    "vabsdiff": lambda o, a, b: o.where(a < b, b - a, a - b),
    "vmin": lambda o, a, b: o.min(a, b), "vmax": lambda o, a, b: o.max(a, b),
    "vavrg": lambda o, a, b: a + b + o.to(a + b >= 0, "i64") >> 1}
  if name in simple: return simple[name]
  if name == "vset":
    compare = next(WHOLE[m] for m in WHOLE if m in modifiers)
    return lambda o, a, b: o.to(compare(o, a, b), "i64")
  wraps, left = "wrap" in modifiers, name == "vshl"

  def shifted(o: O[V], a: V, b: V) -> V:
    n = b & 31 if wraps else o.min(b, o.const("i64", 32))
    if not left: return a >> n
    return o.where(n == 32, _limited(o, a, -_FAR, _FAR) & -2 | a & 1, a) << n
  return shifted


def scalar(opcode: str, modifiers: Sequence[str], types: Sequence[str], selectors: Sequence[str]) -> Ternary:
  """vadd and its like: `f(o, a, b, c)`. `types` are those of result, a and b, `selectors` their parts."""
  m = frozenset(modifiers)
  signed = types[0] == "s32" and opcode != "vset"
  compute, limits = operation(opcode, m), _limits(signed, selected(selectors[0])[0])
  (n, at), a_part, b_part = selected(selectors[0]), selected(selectors[1]), selected(selectors[2])
  second = next((x for x in ("add", "min", "max") if x in m), "")
  mask = (1 << n) - 1 << at

  def run(o: O[V], a: V, b: V, c: V) -> V:
    x = compute(o, part(o, a, types[1] == "s32", *a_part), part(o, b, types[2] == "s32", *b_part))
    if "sat" in m: x = _limited(o, x, *limits)
    else: x = x << 31 >> 31  # 33 bits
    if second:
      third = part(o, c, signed, 32, 0)
      x = x + third if second == "add" else o.min(x, third) if second == "min" else o.max(x, third)
    return _low(o, x) << at & mask | c & (0xFFFFFFFF ^ mask)
  return run


def product(modifiers: Sequence[str], types: Sequence[str], selectors: Sequence[str], negated: tuple[bool, bool]) \
    -> Ternary:
  """vmad: `f(o, a, b, c)`. `negated` says of the product and of c whether they are."""
  m = frozenset(modifiers)
  signed = "s32" in types[1:] or any(negated)
  shift = 7 if "shr7" in m else 15 if "shr15" in m else 0
  unsigned = "s32" not in types[1:]
  a_part, b_part = selected(selectors[1]), selected(selectors[2])
  low, high = _limits(signed, 32)

  def run(o: O[V], a: V, b: V, c: V) -> V:
    x, y = part(o, a, types[1] == "s32", *a_part), part(o, b, types[2] == "s32", *b_part)
    if not signed: return _unsigned(o, o.bits(x, "u64") * o.bits(y, "u64"), c)
    if unsigned:
      p = o.bits(x, "u64") * o.bits(y, "u64")
      # more than 2**62 saturates alike, and where nothing saturates only the lower bits count
      x = o.bits(o.min(p, o.const("u64", 1 << 62)) if "sat" in m else p, "i64")
    else: x = x * y
    third = part(o, ~c if negated[1] and not negated[0] else c, True, 32, 0)
    if negated[0]: x = ~x
    if "po" in m or any(negated): third = third + 1
    x = x + third >> shift
    return _low(o, _limited(o, x, low, high) if "sat" in m else x)

  def _unsigned(o: O[V], p: V, c: V) -> V:
    x = p + o.to(c, "u64")
    if "po" in m: x = x + 1
    x = x >> shift
    return _low(o, o.min(x, o.const("u64", 0xFFFFFFFF)) if "sat" in m else x)
  return run


def simd(opcode: str, modifiers: Sequence[str], types: Sequence[str], selectors: Sequence[str]) -> Ternary:
  """vadd2, vadd4 and their like: `f(o, a, b, c)`. `selectors` are the mask's and those of a and b, "" for what holds
  without one."""
  m = frozenset(modifiers)
  count = int(opcode[-1])
  bits = 32 // count
  signed = types[0] == "s32" and not opcode.startswith("vset")
  compute, limits = operation(opcode, m), _limits(signed, bits)
  every = list(range(count))
  places = [[int(d) for d in reversed(s[1:])] if s else d
            for s, d in zip(selectors, (every, every, [count + k for k in every]))]

  def run(o: O[V], a: V, b: V, c: V) -> V:
    def element(k: int, type_: str) -> V: return part(o, (a, b)[k // count], type_ == "s32", bits, k % count * bits)
    found = [compute(o, element(places[1][k], types[1]), element(places[2][k], types[2])) for k in every]
    if "sat" in m: found = [_limited(o, x, *limits) for x in found]
    if "add" in m:
      total = o.to(c, "i64")
      for k in every:
        if k in places[0]: total = total + found[k]
      return _low(o, total)
    out = c
    for k in every:
      mask = (1 << bits) - 1 << bits * k
      if k in places[0]: out = out & (0xFFFFFFFF ^ mask) | _low(o, found[k]) << bits * k & mask
    return out
  return run
