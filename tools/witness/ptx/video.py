"""Video instructions: the manual's pseudocode (PTX ISA, 9.7.18) on integers of any size."""
from __future__ import annotations

import random
from collections.abc import Iterator

from tinyhw.isa.ptx.forms import Form
from tinyhw.tools.witness.ptx.table import Case, Function, witness

_PARTS = ("b0", "b1", "b2", "b3", "h0", "h1", "")


def signed(x: int, bits: int) -> int:
  """Bits as a signed integer."""
  x &= (1 << bits) - 1
  return x - (1 << bits) if x >> bits - 1 else x


def extracted(x: int, type_: str, part: str) -> int:
  """partSelectSignExtend."""
  size = {"b": 8, "h": 16}.get(part[:1], 32)
  if part: x >>= size * int(part[1])
  return signed(x, size) if type_ == "s32" else x & (1 << size) - 1


def clamped(x: int, negative: bool, bits: int) -> int:
  """CLAMP to the range of a destination."""
  low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if negative else (0, (1 << bits) - 1)
  return max(low, min(high, x))


def primary(name: str, modifiers: frozenset[str], a: int, b: int) -> int:
  """The first stage."""
  if name == "vadd": return a + b
  if name == "vsub": return a - b
  if name == "vabsdiff": return abs(a - b)
  if name == "vmin": return min(a, b)
  if name == "vmax": return max(a, b)
  if name == "vavrg": return a + b + 1 >> 1 if a + b >= 0 else a + b >> 1
  if name == "vset":
    return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[
      next(m for m in ("eq", "ne", "lt", "le", "gt", "ge") if m in modifiers)])
  count = b & 31 if "wrap" in modifiers else min(b, 32)
  return a << count if name == "vshl" else a >> count


def _scalar(form: Form, dsel: str, asel: str, bsel: str) -> Function:
  m, name = form.modifiers, form.row.opcode
  d, s, t = form.types if name != "vset" else ("u32", *form.types)
  bits = {"b": 8, "h": 16}.get(dsel[:1], 32)

  def run(a: int, b: int, c: int = 0) -> int:
    x = primary(name, m, extracted(a, s, asel), extracted(b, t, bsel))
    x = clamped(x, d == "s32", bits) if "sat" in m else signed(x, 33)
    third = extracted(c, d, "")
    if "add" in m: x += third
    if "min" in m: x = min(x, third)
    if "max" in m: x = max(x, third)
    if dsel:
      at, mask = bits * int(dsel[1]), (1 << bits) - 1
      x = (x & mask) << at | c & ~(mask << at)
    return x & 0xFFFFFFFF
  return run


@witness("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
def scalar(form: Form, rng: random.Random) -> Iterator[Case]:
  """With parts of all operands, at random."""
  second = {"add", "min", "max"} & form.modifiers
  for _ in range(3):
    parts = ["" if second else rng.choice(_PARTS), rng.choice(_PARTS), rng.choice(_PARTS)]
    words = [f"{{{k}}}.{p}" if p else f"{{{k}}}" for k, p in enumerate(parts)]
    third = bool(second or parts[0])
    if third: words.append("{3}")
    yield Case(form.name, f"{form.name} {', '.join(words)};", ("b32",), ("b32",) * (2 + third), _scalar(form, *parts))


@witness("vmad")
def vmad(form: Form, rng: random.Random) -> Iterator[Case]:
  """With parts and signs at random."""
  m = form.modifiers
  for _ in range(3):
    parts = rng.choice(_PARTS), rng.choice(_PARTS)
    signs = rng.choice([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)])
    if "po" in m: signs = 0, 0, 0

    def run(a: int, b: int, c: int, parts: tuple[str, str] = parts, signs: tuple[int, int, int] = signs) -> int:
      product = extracted(a, form.types[1], parts[0]) * extracted(b, form.types[2], parts[1])
      final = "s32" in form.types[1:] or bool(signs[0] ^ signs[1]) or bool(signs[2])
      lsb = 0
      if "po" in m: lsb = 1
      elif signs[0] ^ signs[1]: product, lsb = ~product, 1
      elif signs[2]: c, lsb = ~c & 0xFFFFFFFF, 1
      x = product + (signed(c, 32) if final else c) + lsb
      x >>= 7 if "shr7" in m else 15 if "shr15" in m else 0
      if "sat" in m: x = clamped(x, final, 32)
      return x & 0xFFFFFFFF
    words = [f"{'-' if s else ''}{{{k}}}{'.' if p else ''}{p}" for k, (s, p) in enumerate(zip(signs, (*parts, "")), 1)]
    yield Case(form.name, f"{form.name} {{0}}, {', '.join(words)};", ("b32",), ("b32",) * 3, run)


@witness(*(f"{name}{n}" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset") for n in (2, 4)))
def simd(form: Form, rng: random.Random) -> Iterator[Case]:
  """With masks and places at random."""
  name, m = form.row.opcode, form.modifiers
  n = int(name[-1])
  d, s, t = form.types if not name.startswith("vset") else ("u32", *form.types)
  bits, letter = 32 // n, "h" if n == 2 else "b"
  for _ in range(3):
    chosen = [k for k in range(n) if rng.random() < 0.6] or [0]
    mask = rng.choice(["", letter + "".join(str(k) for k in reversed(chosen))])
    if not mask: chosen = list(range(n))
    places = [[rng.randrange(2 * n) for _ in range(n)] if rng.random() < 0.6 else [] for _ in range(2)]

    def run(a: int, b: int, c: int, chosen: list[int] = chosen, places: list[list[int]] = places) -> int:
      def vector(at: list[int], type_: str) -> list[int]:
        both = a | b << 32
        parts = [both >> bits * k & (1 << bits) - 1 for k in at]
        return [signed(x, bits) if type_ == "s32" else x for x in parts]
      x, y = vector(places[0] or list(range(n)), s), vector(places[1] or list(range(n, 2 * n)), t)
      found = [primary(name.rstrip("24"), m, p, q) for p, q in zip(x, y)]
      if "sat" in m: found = [clamped(v, d == "s32", bits) for v in found]
      if "add" in m: return c + sum(found[k] for k in chosen) & 0xFFFFFFFF
      out = 0
      for k in range(n): out |= ((found[k] if k in chosen else c >> bits * k) & (1 << bits) - 1) << bits * k
      return out
    words = ["{0}" + (f".{mask}" if mask else "")]
    words += [f"{{{k}}}" + (f".{letter}{''.join(map(str, reversed(p)))}" if p else "") for k, p in enumerate(places, 1)]
    yield Case(form.name, f"{form.name} {', '.join([*words, '{3}'])};", ("b32",), ("b32",) * 3, run)
