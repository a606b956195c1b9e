"""What loads, stores and atomics of every memory do to the bytes: widths, signs, halves, read-modify-write."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tinyhw.tools.witness import draw
from tinyhw.tools.witness.floats import least, least_number, most, most_number
from tinyhw.tools.witness.softfloat import BF16, F16, FORMATS, Format
from tinyhw.tools.witness.state import State
from tinyhw.tools.witness.table import Mode

# The part of a load's name after its verb -> (bytes, bits of the sign or 0, half of the register or None)
LOADS: Final[dict[str, tuple[int, int, int | None]]] = {
  "b32": (4, 0, None), "b64": (8, 0, None), "b96": (12, 0, None), "b128": (16, 0, None), "u8": (1, 0, None),
  "i8": (1, 8, None), "u16": (2, 0, None), "i16": (2, 16, None),
  "d16_u8": (1, 0, 0), "d16_i8": (1, 8, 0), "d16_b16": (2, 0, 0), "d16_hi_u8": (1, 0, 1), "d16_hi_i8": (1, 8, 1),
  "d16_hi_b16": (2, 0, 1), "u8_d16": (1, 0, 0), "i8_d16": (1, 8, 0), "u16_d16": (2, 0, 0), "u8_d16_hi": (1, 0, 1),
  "i8_d16_hi": (1, 8, 1), "u16_d16_hi": (2, 0, 1),
  "dword": (4, 0, None), "dwordx2": (8, 0, None), "dwordx3": (12, 0, None), "dwordx4": (16, 0, None),
  "ubyte": (1, 0, None), "sbyte": (1, 8, None), "ushort": (2, 0, None), "sshort": (2, 16, None),
  "ubyte_d16": (1, 0, 0), "sbyte_d16": (1, 8, 0), "short_d16": (2, 0, 0), "ubyte_d16_hi": (1, 0, 1),
  "sbyte_d16_hi": (1, 8, 1), "short_d16_hi": (2, 0, 1)}
STORES: Final[dict[str, tuple[int, int]]] = {  # -> (bytes, first bit of the register)
  "b8": (1, 0), "b16": (2, 0), "b32": (4, 0), "b64": (8, 0), "b96": (12, 0), "b128": (16, 0), "d16_hi_b8": (1, 16),
  "d16_hi_b16": (2, 16), "b8_d16_hi": (1, 16), "b16_d16_hi": (2, 16), "byte": (1, 0), "short": (2, 0),
  "dword": (4, 0), "dwordx2": (8, 0), "dwordx3": (12, 0), "dwordx4": (16, 0), "byte_d16_hi": (1, 16),
  "short_d16_hi": (2, 16)}
Change = Callable[[int, int, int], int]


@dataclass(frozen=True)
class Atomic:
  """A read-modify-write of `width` bytes: `change(old, data, compare)`. `type` is how operands are drawn."""
  width: int
  change: Change
  type: str
  compares: bool = False


def signed(x: int, bits: int) -> int: return x - (1 << bits) if x >> bits - 1 & 1 else x


def _integer(name: str, n: int) -> Change:
  full = (1 << n) - 1
  table: dict[str, Change] = {
    "swap": lambda old, d, c: d, "add": lambda old, d, c: old + d & full, "sub": lambda old, d, c: old - d & full,
    "rsub": lambda old, d, c: d - old & full, "and": lambda old, d, c: old & d, "or": lambda old, d, c: old | d,
    "xor": lambda old, d, c: old ^ d, "umin": lambda old, d, c: min(old, d), "umax": lambda old, d, c: max(old, d),
    "smin": lambda old, d, c: d if signed(d, n) < signed(old, n) else old,
    "smax": lambda old, d, c: d if signed(d, n) > signed(old, n) else old,
    "inc": lambda old, d, c: 0 if old >= d else old + 1, "dec": lambda old, d, c: d if not old or old > d else old - 1,
    "csub": lambda old, d, c: max(0, old - d), "sub_clamp": lambda old, d, c: max(0, old - d),
    "cond_sub": lambda old, d, c: old - d if old >= d else old, "cmpswap": lambda old, d, c: d if old == c else old,
    "mskor": lambda old, d, c: old & ~d | c, "wrap": lambda old, d, c: (old - d if old >= d else old + c) & full}
  return table[name]


def _float(name: str, f: Format) -> Change:
  plain = Mode(0)
  if name == "add": return lambda old, d, c: f.add(old, d)
  if name == "cmpswap": return lambda old, d, c: d if f.order(old) == f.order(c) and not f.is_nan(old) else old
  pick = {"min": least, "max": most, "min_num": least_number, "max_num": most_number}[name]
  return lambda old, d, c: pick(f, plain, d, old)


def _halves(f: Format) -> Change:
  return lambda old, d, c: f.add(old & 0xFFFF, d & 0xFFFF) | f.add(old >> 16, d >> 16) << 16


def atomic(name: str) -> Atomic:
  """From the part of the name that says what is done: "add_u32", "cmpswap_b64", "smax_x2", "pk_add_f16", "min_f64"."""
  if name.startswith("pk_add"): return Atomic(4, _halves(BF16 if name.endswith("bf16") else F16), name[7:])
  m = re.fullmatch(r"(\w+?)(?:_([ubif])(32|64)|_x(2))?", name)
  assert m, name
  stem, letter, bits = m[1], m[2] or "u", int(m[3] or (64 if m[4] else 32))
  f = FORMATS[f"f{bits}"] if letter == "f" else None
  if f is not None: return Atomic(bits // 8, _float(stem, f), f.name, stem == "cmpswap")
  if stem in {"min", "max"}: stem = ("s" if letter == "i" else "u") + stem
  return Atomic(bits // 8, _integer(stem, bits), f"b{bits}", stem == "cmpswap")


def load(memory: bytearray, at: int, width: int) -> int: return int.from_bytes(memory[at:at + width], "little")


def store(memory: bytearray, at: int, width: int, value: int) -> None:
  memory[at:at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def put_loaded(s: State, register: int, at: int, value: int, sign: int, half: int | None, width: int) -> None:
  """What was loaded into a lane's registers: extended, or into one half, whose other one gfx942 clears (its memories
  have ECC: CDNA3 ISA manual, section 8.1.8 "16-bit memory loads")."""
  if sign and value >> sign - 1: value -= 1 << sign
  if half is not None:
    kept = 0 if s.isa == "gfx9" else s.v[register][at] & ~(0xFFFF << 16 * half) & 0xFFFFFFFF
    s.v[register][at] = kept | (value & 0xFFFF) << 16 * half
  else:
    for k in range(max(1, width // 4)): s.write(register + k, at, value >> 32 * k)


def words(s: State, register: int, at: int, width: int) -> int:
  """`width` bytes of a lane's registers."""
  return sum(s.v[register + k][at] << 32 * k for k in range(-(-width // 4))) & (1 << 8 * width) - 1


def drawn(type_: str, width: int, rng: Random) -> int:
  """An operand of an atomic. Floats are numbers whose sums stay in range, and no -0: the manuals do not order zeros."""
  if type_ not in FORMATS: return draw.value(type_, rng)
  f = FORMATS[type_]
  out = 0
  for k in range(8 * width // f.bits):
    x = draw.value(type_, rng)
    while f.exponent(x) + 6 > f.exponent(f.infinity) or f.denormal(x) or x == f.sign: x = draw.value(type_, rng)
    out |= x << f.bits * k
  return out
