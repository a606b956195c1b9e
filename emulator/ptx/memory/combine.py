"""Reductions of values in memory, as bits: what red, multimem and their like make of what is there and what comes."""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.meanings import convert
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.values.ops import Array, B, Operations, Ops
from tinyhw.emulator.values.small_floats import BF8, FP8, encoded
from tinyhw.isa.ptx.forms import SIZES

HALVES: Final = frozenset({"f16", "bf16", "f16x2", "bf16x2"})
BYTES: Final = {"e4m3": FP8, "e5m2": BF8}
NARROW: Final = HALVES | {t + more for t in BYTES for more in ("", "x2", "x4")}  # more of them in a register, or one
_NAMES: Final = ("add", "min", "max", "and", "or", "xor")


def operation(modifiers: frozenset[str]) -> str:
  """The operation that an instruction names; "" for none."""
  return next((n for n in _NAMES if n in modifiers), "")


def combined(o: Operations[B], t: str, name: str, a: B, b: B) -> B:
  """Two values of a type, as unsigned integers of its size."""
  if name in {"and", "or", "xor"}: return a & b if name == "and" else a | b if name == "or" else a ^ b
  if t in NARROW:
    parts = [_one(o, t.partition("x")[0], name, x, y) for x, y in zip(_parts(o, a, t), _parts(o, b, t))]
    return _together(o, parts, t)
  dtype = np.dtype({"u": "u", "b": "u", "s": "i", "f": "f"}[t[0]] + str(a.dtype.itemsize))
  x, y = a.view(dtype), b.view(dtype)
  with np.errstate(over="ignore", invalid="ignore"):
    return (x + y if name == "add" else o.min(x, y) if name == "min" else o.max(x, y)).view(a.dtype)


def total(t: str, name: str, values: list[Array], wide: bool) -> Array:
  """Several values combined in their order; `wide` makes sums of halves in f32 and rounds once, of bytes in f16."""
  if not wide or t not in NARROW or len(values) == 1:
    out = values[0]
    for v in values[1:]: out = combined(Ops, t, name, out, v)
    return out
  sums = numbers(Ops, t, values[0])
  for v in values[1:]: sums = [added(Ops, t, a, b) for a, b in zip(sums, numbers(Ops, t, v))]
  return rounded(Ops, t, sums)


def added(o: Operations[B], t: str, a: B, b: B) -> B:
  """The sum of numbers of a type, as f32, between which and the result there is more than the type has."""
  if t in HALVES: return a + b
  with np.errstate(over="ignore", invalid="ignore"): return o.to(o.to(a + b, "f16"), "f32")


def numbers(o: Operations[B], t: str, x: B) -> list[B]:
  """A half, a byte, or more of them, as f32."""
  return [_number(o, t.partition("x")[0], p) for p in _parts(o, x, t)]


def rounded(o: Operations[B], t: str, values: list[B]) -> B:
  """The inverse of `numbers`."""
  return _together(o, [_bits(o, t.partition("x")[0], v) for v in values], t)


def serial(group: Warps, space: str, at: Array, t: str, name: str, data: Array) -> Array:
  """Have memory combined with data thread by thread; the old values."""
  given = operands.full(group, data)
  size = data.dtype.itemsize
  return spaces.serial(group, space, at, size, lambda old, lane: combined(Ops, t, name, old, given[lane]))


def _parts(o: Operations[B], x: B, t: str) -> list[B]:
  if t not in HALVES: return [o.to(x >> 8 * k, "u8") if k else o.to(x, "u8") for k in range(SIZES[t])]
  return [o.to(x, "u16"), o.to(x >> 16, "u16")] if t.endswith("x2") else [x]


def _together(o: Operations[B], parts: list[B], t: str) -> B:
  if len(parts) > 1 and t not in HALVES:
    out = o.to(parts[0], "u32")
    for k, part in enumerate(parts[1:], 1): out = out | o.to(part, "u32") << 8 * k
    return o.to(out, f"u{8 * len(parts)}")
  return parts[0] if len(parts) == 1 else o.to(parts[0], "u32") | o.to(parts[1], "u32") << 16


def _number(o: Operations[B], t: str, bits: B) -> B:
  if t == "e5m2": return o.to(o.bits(o.to(bits, "u16") << 8, "f16"), "f32")
  if t == "e4m3":  # f16 with another bias of the exponent, but for NaN
    code = o.to(bits, "u16")
    x = o.to(o.bits((code & 0x80) << 8 | (code & 0x7F) << 7, "f16"), "f32") * o.const("f32", 256)
    return o.where((code & 0x7F) == 0x7F, o.from_bits("f32", 0x7FC00000), x)
  return o.to(o.bits(bits, "f16"), "f32") if t == "f16" else convert.f32_of_bf16(o, bits)


def _bits(o: Operations[B], t: str, x: B) -> B:
  if t in BYTES:  # as cvt makes them: what is too large becomes the largest
    code = encoded(o, x, BYTES[t], o.const("u32", 1))
    return o.to(o.where(o.isnan(x), o.const("u32", BYTES[t].nan), code), "u8")
  with np.errstate(over="ignore"):
    if t == "bf16": return convert.bf16_of(o, x)
    out = o.to(x, "f16")
  return o.where(o.isnan(out), o.const("u16", 0x7FFF), o.bits(out, "u16"))


def _one(o: Operations[B], t: str, name: str, a: B, b: B) -> B:
  x, y = _number(o, t, a), _number(o, t, b)
  with np.errstate(over="ignore", invalid="ignore"):
    return _bits(o, t, x + y if name == "add" else o.fmin(x, y) if name == "min" else o.fmax(x, y))
