"""Products of matrices of a warp (PTX ISA, 9.7.14.5): which thread has which element, and exact sums."""
from __future__ import annotations

import random
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from tinyhw.isa.ptx.forms import Form
from tinyhw.tools.witness.ptx.table import Case, witness
from tinyhw.tools.witness.softfloat import BF8, BF16, F16, F32, F64, FP8, Format

_BITS: Final = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1, "e4m3": 8,
                "e5m2": 8, "f32": 32, "s32": 32}
_FORMATS: Final[dict[str, Format]] = {"f16": F16, "bf16": BF16, "f64": F64, "f32": F32, "e4m3": FP8, "e5m2": BF8}
Rows = list[tuple[int, ...]]
Place = tuple[int, int, int]


def number(bits: int, t: str) -> Fraction:
  """The number that an element is."""
  if t == "tf32": t, bits = "f32", bits & 0xFFFFE000
  if t in _FORMATS:
    m, e = _FORMATS[t].value(bits)
    return Fraction(m << e) if e >= 0 else Fraction(m, 1 << -e)
  n = _BITS[t]
  return Fraction(bits - (1 << n) if t[0] == "s" and bits >> n - 1 else bits)


def places(which: str, lane: int, index: int, shape: tuple[int, int], t: str, order: str) -> Place:
  """(product, row, column) of a thread's element of A, B or C, counted over its registers."""
  m, k = shape
  group, own = lane >> 2, lane & 3
  if (m, k, order) != (8, 4, "") and order:  # four products, each of eight lanes
    quarter, high, low = lane >> 2 & 3, 4 * (lane >= 16), lane & 3
    if which == "a": return (quarter, low + high, index) if order == "row" else (quarter, index + high, low)
    if which == "b": return (quarter, index, low + high) if order == "col" else (quarter, low, index + high)
    if t == "f16": return quarter, low + high, index
    return quarter, (lane & 1) + (index & 2) + high, (index & 4) + (lane & 2) + (index & 1)
  if which == "c": return 0, group + 8 * (index >> 1), 2 * own + (index & 1)
  n = max(1, 32 // _BITS[t])  # elements of a register
  register, part = divmod(index, n)
  if which == "b": return 0, own * n + part + 4 * n * register, group
  if m == 8: return 0, group, own * n + part + 4 * n * register
  return 0, group + 8 * (register & 1), own * n + part + 4 * n * (register >> 1)


def elements(words: tuple[int, ...], t: str) -> list[int]:
  """The elements of a thread's registers."""
  n = _BITS[t]
  if n >= 32: return list(words)
  return [w >> n * k & (1 << n) - 1 for w in words for k in range(32 // n)]


@witness("mma")
def mma(form: Form, rng: random.Random) -> Iterator[Case]:
  """Dense products."""
  words = form.name.split(".")
  if any(w.startswith("kind::") for w in words):
    yield from narrow(form, rng)
    return
  if words[1].startswith("sp"): return
  kinds = [w for w in words if w in _BITS]
  d, a, b, c = kinds
  found = next(re.fullmatch(r"m(\d+)n8k(\d+)", w) for w in words if re.fullmatch(r"m(\d+)n8k(\d+)", w))
  assert found is not None
  m, k = int(found[1]), int(found[2])
  quarters = (m, k, a) == (8, 4, "f16")
  order = {"a": words[words.index("aligned") + 2], "b": words[words.index("aligned") + 3], "c": "row"}
  order = order if quarters else dict.fromkeys("abc", "")
  size = {t: 64 if t == "f64" else 32 for t in _BITS}
  counts = {w: total * _BITS[t] // (32 * size[t]) for w, t, total in (("d", d, m * 8), ("a", a, m * k), ("b", b, 8 * k),
                                                                      ("c", c, m * 8))}
  if quarters: counts = {"d": 4 if d == "f16" else 8, "a": 2, "b": 2, "c": 4 if c == "f16" else 8}
  n = counts["d"]
  firsts = {"a": 0, "b": counts["a"], "c": counts["a"] + counts["b"]}

  def gathered(rows: Rows, which: str, t: str) -> dict[Place, Fraction]:
    out = {}
    for lane, row in enumerate(rows):
      own = row[firsts[which]:firsts[which] + counts[which]]
      for index, bits in enumerate(elements(own, t)):
        out[places(which, lane, index, (m, k), t, order[which])] = number(bits, t)
    return out

  def run(rows: Rows) -> list[Any]:
    x, y, z = gathered(rows, "a", a), gathered(rows, "b", b), gathered(rows, "c", c)
    out = []
    for lane in range(32):
      per = 2 if d == "f16" else 1
      found = []
      for index in range(n * per):
        q, row, column = places("c", lane, index, (m, k), d, order["c"])
        found.append(_right(form, d, z[q, row, column],
                            [(x[q, row, j], y[q, j, column]) for j in range(k)]))
      if d == "f16":
        def pair(low: Any, high: Any) -> Any: return lambda bits: low(bits & 0xFFFF) and high(bits >> 16)
        found = [pair(found[2 * j], found[2 * j + 1]) for j in range(n)]
      out.append(tuple(found) if n > 1 else found[0])
    return out

  def draw(r: random.Random) -> tuple[int, ...]:
    return tuple(_word(r, t) for t, w in ((a, "a"), (b, "b"), (c, "c")) for _ in range(counts[w]))
  raw = {t: "b64" if t == "f64" else "b32" for t in _BITS}
  at, text = 0, []
  for w in "dabc":
    text.append("{{" + ", ".join(f"{{{at + j}}}" for j in range(counts[w])) + "}}")
    at += counts[w]
  sources = [raw[t] for t, w in ((a, "a"), (b, "b"), (c, "c")) for _ in range(counts[w])]
  yield Case(form.name, f"{form.name} {', '.join(text)};", (raw[d],) * n, tuple(sources), run, draw, warp=True)


_SMALL: Final = {"e2m1": (4, 1, 1), "e2m3": (6, 3, 1), "e3m2": (6, 2, 3)}  # bits, fraction, the exponents' bias
_ORDERED: Final = (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)  # what metadata of a chunk may be


def small(code: int, t: str) -> Fraction:
  """The number of a narrow element, or of one of eight bits."""
  if t not in _SMALL: return number(code, t)
  bits, fraction, bias = _SMALL[t]
  exponent, rest = code >> fraction & (1 << bits - 1 - fraction) - 1, code & (1 << fraction) - 1
  x = (Fraction(rest, 1 << fraction) + bool(exponent)) * Fraction(2) ** (max(exponent, 1) - bias)
  return -x if code >> bits - 1 & 1 else x


def narrow(form: Form, rng: random.Random) -> Iterator[Case]:
  """Products with a .kind: dense, sparse, with scale factors. Elements lie in bytes (of four bits in the middle), or
  two of four bits in one."""
  m, words = form.modifiers, form.name.split(".")
  thin, scaled = "sp::ordered_metadata" in m, "block_scale" in m
  packed = bool({"kind::mxf4", "kind::mxf4nvf4"} & m)
  d, a, b = [w for w in words if w in {"f16", "f32"} or w in _SMALL or w in {"e4m3", "e5m2"}][:3]
  depth = (64 if packed else 32) << thin
  n, half = (8 if packed else 4), d == "f16"
  counts = {"d": 2 if half else 4, "a": 4, "b": 2 << thin, "c": 2 if half else 4}
  factors = next((int(w[11]) for w in words if w.startswith("scale_vec::")), 2 if packed else 1)
  ids = [(rng.choice({1: [0, 1, 2, 3], 2: [0, 2]}.get(factors, [0])), rng.randrange(2 + 2 * k)) for k in (0, 1)]
  firsts = {"a": 0, "b": 4, "c": 4 + counts["b"], "e": 4 + counts["b"] + counts["c"]}
  scales = firsts["e"] + thin

  def element(word: int, part: int, t: str) -> Fraction:
    code = word >> (4 if packed else 8) * part & (15 if packed else 255)
    return small(code >> 2 & 15 if t == "e2m1" and not packed else code & 63 if t in _SMALL else code, t)

  def scale(code: int) -> Fraction:
    return number(code, "e4m3") if "ue4m3" in m else Fraction(2) ** (code - 127)

  def dense(rows: Rows, row: int, column: int) -> Fraction:
    """An element of A, by the metadata of its row."""
    stored = column
    if thin:
      unit = 2 if packed else 1
      chunk, place = divmod(column // unit, 4)
      lane = 4 * (row % 8) + 2 * (chunk // 8) + row // 8
      code = rows[lane][firsts["e"]] >> 4 * (chunk % 8) & 15
      if place not in (code & 3, code >> 2): return Fraction(0)
      stored = (2 * chunk + (place == code >> 2)) * unit + column % unit
    register, lane = 2 * (stored // (4 * n)) + row // 8, 4 * (row % 8) + stored % (4 * n) // n
    return element(rows[lane][register], stored % n, a)

  def run(rows: Rows) -> list[Any]:
    def by(which: int, lane: int, column: int) -> Fraction:
      return scale(rows[lane][scales + which] >> 8 * (ids[which][0] + column * factors // depth) & 255)
    x = [[dense(rows, i, k) for k in range(depth)] for i in range(16)]
    y = [[element(rows[4 * j + k % (4 * n) // n][4 + k // (4 * n)], k % n, b) for k in range(depth)] for j in range(8)]
    if scaled:
      x = [[v * by(0, 4 * (i % 8) + 2 * ids[0][1] + i // 8, k) for k, v in enumerate(r)] for i, r in enumerate(x)]
      y = [[v * by(1, 4 * j + ids[1][1], k) for k, v in enumerate(r)] for j, r in enumerate(y)]
    out = []
    for lane, own in enumerate(rows):
      found = []
      for index in range(4):
        _, row, column = places("c", lane, index, (16, depth), d, "")
        word = own[firsts["c"] + (index // 2 if half else index)]
        c = number(word >> 16 * (index % 2) & 0xFFFF if half else word, d)
        found.append(_right(form, d, c, [(p, q) for p, q in zip(x[row], y[column]) if p and q]))
      if half:
        def pair(low: Any, high: Any) -> Any: return lambda bits: low(bits & 0xFFFF) and high(bits >> 16)
        found = [pair(found[0], found[1]), pair(found[2], found[3])]
      out.append(tuple(found))
    return out

  def draw(r: random.Random) -> tuple[int, ...]:
    given = [_word(r, t) for t, w in ((a, "a"), (b, "b"), (d, "c")) for _ in range(counts[w])]
    if thin: given.append(sum(r.choice(_ORDERED) << 4 * k for k in range(8)))
    if scaled:
      low, high = (0x28, 0x48) if "ue4m3" in m else (123, 132)
      given += [sum(r.randrange(low, high) << 8 * k for k in range(4)) for _ in "ab"]
    return tuple(given)
  at, text = 0, []
  for w in "dabc":
    text.append("{{" + ", ".join(f"{{{at + j}}}" for j in range(counts[w])) + "}}")
    at += counts[w]
  if thin:
    text.append(f"{{{at}}}, 0")
    at += 1
  if scaled: text += [f"{{{at + k}}}, {{{{{ids[k][0]}, {ids[k][1]}}}}}" for k in (0, 1)]
  total = sum(counts[w] for w in "abc") + thin + 2 * scaled
  yield Case(form.name, f"{form.name} {', '.join(text)};", ("b32",) * counts["d"], ("b32",) * total, run, draw,
             warp=True)


def _word(r: random.Random, t: str) -> int:
  """A register of elements: floats are finite and of moderate size."""
  if t == "tf32": t = "f32"
  if t not in _FORMATS: return r.getrandbits(32)
  f = _FORMATS[t]
  def one() -> int:
    return r.randrange(f.bias - 2, f.bias + 3) << f.mantissa | r.getrandbits(f.mantissa) | r.choice([0, f.sign])
  return sum(one() << f.bits * k for k in range(max(1, 32 // f.bits)))


def _sum(terms: list[tuple[int, int]]) -> Fraction:
  """Of fractions whose denominators are powers of two: exact, and many times quicker than one after the other."""
  whole = max(d for _, d in terms)
  return Fraction(sum(n * (whole // d) for n, d in terms), whole)


def _right(form: Form, t: str, c: Fraction, factors: list[tuple[Fraction, Fraction]]) -> Any:
  """What an element of the result may be: integers exactly, floats within the rounding of a sum of their type."""
  if "popc" in form.modifiers:
    differ = "xor" in form.modifiers
    return int(c + sum((p != q) if differ else (p and q) for p, q in factors)) & 0xFFFFFFFF
  terms = [(c.numerator, c.denominator), *((p.numerator * q.numerator, p.denominator * q.denominator)
                                           for p, q in factors)]
  total = _sum(terms)
  if t == "s32":
    x = int(total)
    if "satfinite" in form.modifiers: x = min(max(x, -1 << 31), (1 << 31) - 1)
    return x & 0xFFFFFFFF
  f = _FORMATS[t]
  weight = _sum([(abs(n), d) for n, d in terms])
  bound = weight * Fraction(2) ** -(f.mantissa if t != "f64" else 49)

  def good(bits: int) -> bool:
    return not f.is_nan(bits) and not f.is_inf(bits) and abs(number(bits, t) - total) <= bound
  return good


@witness("movmatrix")
def transposed(form: Form, rng: random.Random) -> Iterator[Case]:
  """Eight rows of eight elements of 16 bits, of which each thread has two."""
  def run(rows: Rows) -> list[Any]:
    matrix = [[rows[4 * r + c // 2][0] >> 16 * (c % 2) & 0xFFFF for c in range(8)] for r in range(8)]
    return [matrix[2 * (lane & 3)][lane >> 2] | matrix[2 * (lane & 3) + 1][lane >> 2] << 16 for lane in range(32)]
  yield Case(form.name, f"{form.name} {{0}}, {{1}};", ("b32",), ("b32",), run, warp=True)
