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
_U16: Final = np.dtype("u2")


def operation(modifiers: frozenset[str]) -> str:
  """The operation that an instruction names; "" for none."""
  return next((n for n in _NAMES if n in modifiers), "")


def combined(t: str, name: str, a: Value, b: Value) -> Value:
  """Two values of a type, as unsigned integers of its size."""
  if name in {"and", "or", "xor"}: return a & b if name == "and" else a | b if name == "or" else a ^ b
  if t in HALVES:
    parts = [_half(t.removesuffix("x2"), name, x, y) for x, y in zip(_parts(a, t), _parts(b, t))]
    return _together(parts, a.dtype)
  dtype = np.dtype({"u": "u", "s": "i", "f": "f"}[t[0]] + str(a.dtype.itemsize))
  x, y = a.view(dtype), b.view(dtype)
  with np.errstate(over="ignore", invalid="ignore"):
    return (x + y if name == "add" else np.minimum(x, y) if name == "min" else np.maximum(x, y)).view(a.dtype)


def total(t: str, name: str, values: list[Value], wide: bool) -> Value:
  """Several values combined in their order; `wide` makes sums of halves in f32, and rounds once."""
  if not wide or t not in HALVES or len(values) == 1:
    out = values[0]
    for v in values[1:]: out = combined(t, name, out, v)
    return out
  parts, one = [], t.removesuffix("x2")
  for numbers in zip(*[[_number(one, p) for p in _parts(v, t)] for v in values]):
    found = numbers[0]
    for n in numbers[1:]: found = found + n
    parts.append(_bits(one, found))
  return _together(parts, values[0].dtype)


def serial(group: Warps, space: str, at: Value, t: str, name: str, data: Value) -> Value:
  """Have memory combined with data thread by thread; the old values."""
  given = operands.full(group, data)
  return memory.serial(group, space, at, data.dtype.itemsize, lambda old, lane: combined(t, name, old, given[lane]))


def _parts(x: Value, t: str) -> list[Value]:
  return [x.astype(_U16), (x >> x.dtype.type(16)).astype(_U16)] if t.endswith("x2") else [x]


def _together(parts: list[Value], dtype: Any) -> Value:
  if len(parts) == 1: return parts[0]
  return parts[0].astype(dtype) | parts[1].astype(dtype) << dtype.type(16)


def _number(t: str, bits: Value) -> Value:
  return bits.view(np.float16).astype(np.float32) if t == "f16" else convert.f32_of_bf16(Ops, bits)


def _bits(t: str, x: Value) -> Value:
  with np.errstate(over="ignore"):
    if t == "bf16": return convert.bf16_of(Ops, x)
    out = x.astype(np.float16)
  return np.where(np.isnan(out), np.uint16(0x7FFF), out.view(np.uint16))


def _half(t: str, name: str, a: Value, b: Value) -> Value:
  x, y = _number(t, a), _number(t, b)
  with np.errstate(over="ignore", invalid="ignore"):
    return _bits(t, x + y if name == "add" else Ops.fmin(x, y) if name == "min" else Ops.fmax(x, y))
