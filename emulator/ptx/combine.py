"""Reductions of values in memory, as bits: what red, multimem and their like make of what is there and what comes."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.emulator.ptx import memory, operands
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.meanings import convert
from tinyhw.emulator.values.ops import Ops

Value = Any
HALVES: Final = frozenset({"f16", "bf16", "f16x2", "bf16x2"})
_NAMES: Final = ("add", "min", "max", "and", "or", "xor")


def operation(modifiers: frozenset[str]) -> str:
  """The operation that an instruction names; "" for none."""
  return next((n for n in _NAMES if n in modifiers), "")


def combined(o: Any, t: str, name: str, a: Value, b: Value) -> Value:
  """Two values of a type, as unsigned integers of its size."""
  if name in {"and", "or", "xor"}: return a & b if name == "and" else a | b if name == "or" else a ^ b
  if t in HALVES:
    parts = [_half(o, t.removesuffix("x2"), name, x, y) for x, y in zip(_parts(o, a, t), _parts(o, b, t))]
    return _together(o, parts)
  dtype = np.dtype({"u": "u", "b": "u", "s": "i", "f": "f"}[t[0]] + str(a.dtype.itemsize))
  x, y = a.view(dtype), b.view(dtype)
  with np.errstate(over="ignore", invalid="ignore"):
    return (x + y if name == "add" else o.min(x, y) if name == "min" else o.max(x, y)).view(a.dtype)


def total(t: str, name: str, values: list[Value], wide: bool) -> Value:
  """Several values combined in their order; `wide` makes sums of halves in f32, and rounds once."""
  if not wide or t not in HALVES or len(values) == 1:
    out = values[0]
    for v in values[1:]: out = combined(Ops, t, name, out, v)
    return out
  sums = numbers(Ops, t, values[0])
  for v in values[1:]: sums = [a + b for a, b in zip(sums, numbers(Ops, t, v))]
  return rounded(Ops, t, sums)


def numbers(o: Any, t: str, x: Value) -> list[Value]:
  """A half, or two, as f32."""
  return [_number(o, t.removesuffix("x2"), p) for p in _parts(o, x, t)]


def rounded(o: Any, t: str, values: list[Value]) -> Value:
  """The inverse of `numbers`."""
  return _together(o, [_bits(o, t.removesuffix("x2"), v) for v in values])


def serial(group: Warps, space: str, at: Value, t: str, name: str, data: Value) -> Value:
  """Have memory combined with data thread by thread; the old values."""
  given = operands.full(group, data)
  size = data.dtype.itemsize
  return memory.serial(group, space, at, size, lambda old, lane: combined(Ops, t, name, old, given[lane]))


def _parts(o: Any, x: Value, t: str) -> list[Value]:
  return [o.to(x, "u16"), o.to(x >> 16, "u16")] if t.endswith("x2") else [x]


def _together(o: Any, parts: list[Value]) -> Value:
  return parts[0] if len(parts) == 1 else o.to(parts[0], "u32") | o.to(parts[1], "u32") << 16


def _number(o: Any, t: str, bits: Value) -> Value:
  return o.to(o.bits(bits, "f16"), "f32") if t == "f16" else convert.f32_of_bf16(o, bits)


def _bits(o: Any, t: str, x: Value) -> Value:
  with np.errstate(over="ignore"):
    if t == "bf16": return convert.bf16_of(o, x)
    out = o.to(x, "f16")
  return o.where(o.isnan(out), o.const("u16", 0x7FFF), o.bits(out, "u16"))


def _half(o: Any, t: str, name: str, a: Value, b: Value) -> Value:
  x, y = _number(o, t, a), _number(o, t, b)
  with np.errstate(over="ignore", invalid="ignore"):
    return _bits(o, t, x + y if name == "add" else o.fmin(x, y) if name == "min" else o.fmax(x, y))
