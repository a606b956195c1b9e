"""Typed buffer formats: components in memory to and from registers (RDNA3 ISA manual, sections 9.3 and 10.8).

A format's name lists the bits of its components from the most significant one: in 2_10_10_10 the X component is in the
ten lowest bits. The manuals do not say how a store rounds; here numbers are rounded to the nearest code, numbers out of
range are clamped to it, and f16 and smaller floats are truncated, as the manual has it for D16 of 32-bit floats.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from tinyhw.emulator.values import rounding
from tinyhw.emulator.values.ops import F16, F32, F64, U16, U32
from tinyhw.emulator.values.ops import Array as Value

SIGNED: Final = ("SNORM", "SSCALED", "SINT")
INTEGER: Final = ("UINT", "SINT")
KINDS: Final = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT")
FLOATS: Final = frozenset({10, 11, 16, 32})  # bits of a float
SMALL_FLOATS: Final = {10: 5, 11: 4}  # bits of an unsigned float -> how far its bits are from those of an f16


@dataclass(frozen=True)
class Format:
  """`bits` of the components X, Y, Z, W that there are, and how their numbers are read ("UNORM", "FLOAT", ...)."""
  name: str
  bits: tuple[int, ...]
  kind: str

  @property
  def size(self) -> int:
    """Bytes of an element."""
    return sum(self.bits) // 8

  @property
  def integer(self) -> bool: return self.kind in INTEGER


@cache
def parse(name: str) -> Format:
  """A format from the vendor's name, like 10_11_11_FLOAT. Raises ValueError for one that no chip reads numbers from."""
  *bits, kind = name.split("_")
  found = Format(name, tuple(int(b) for b in reversed(bits)), kind)
  if kind not in KINDS or kind == "FLOAT" and not set(found.bits) <= FLOATS: raise ValueError(name)
  return found


def _fields(f: Format, words: list[Value]) -> list[Value]:
  """The raw components, as u32."""
  out, at = [], 0
  for bits in f.bits:
    word = words[at // 32] >> np.uint32(at % 32)
    out.append(word if bits == 32 else word & np.uint32((1 << bits) - 1))
    at += bits
  return out


def _extend(raw: Value, bits: int) -> Value:
  shift = np.int32(32 - bits)
  return np.asarray(raw).view(np.int32) << shift >> shift


def _number(f: Format, raw: Value, bits: int) -> Value:
  """A component as the bits of an f32, or of an integer."""
  if f.kind == "UINT": return raw
  if f.kind == "SINT": return _extend(raw, bits).view(U32)
  if f.kind == "FLOAT":
    if bits == 32: return raw
    half = raw if bits == 16 else raw << np.uint32(SMALL_FLOATS[bits])
    return np.asarray(half).astype(U16).view(F16).astype(F32).view(U32)
  x = (_extend(raw, bits) if f.kind in SIGNED else np.asarray(raw)).astype(F64)
  if f.kind == "UNORM": x = x / ((1 << bits) - 1)
  if f.kind == "SNORM": x = np.maximum(x / ((1 << bits - 1) - 1), -1.0)
  return x.astype(F32).view(U32)


def _truncated(x: Value) -> Value: return rounding.convert(x, "f16", rounding.ZERO)


def _rounded(x: Value) -> Value: return x.astype(F16)


def load(f: Format, words: list[Value], selects: tuple[int, ...], d16: bool) -> list[Value]:
  """The chosen components of elements in `words` (u32 arrays of one shape), as u32 registers' values.

  `selects` has a code for each component wanted: 0 and 1 are constants, 4 to 7 stand for X to W; a component that the
  format lacks is 0. With `d16` each value has 16 bits.
  """
  raw = _fields(f, words)
  numbers = [_number(f, r, b) for r, b in zip(raw, f.bits)]
  one: Value = U32.type(1) if f.integer else F32.type(1).view(U32)
  half = _truncated if 32 in f.bits else _rounded  # D16 truncates floats of 32 bits alone (section 9.3.1)
  out: list[Value] = []
  for select in selects:
    if select == 1: value: Value = one
    elif select >= 4 and select - 4 < len(numbers): value = numbers[select - 4]
    else: value = U32.type(0)
    if d16:
      if f.integer: value = np.asarray(value) & np.uint32(0xFFFF)
      else: value = half(np.asarray(value).view(F32)).view(U16).astype(U32)
    out.append(value)
  return out


def _code(f: Format, value: Value, bits: int, d16: bool) -> Value:
  """A register's value as the raw bits of a component, u32."""
  value = np.asarray(value)
  if f.integer:
    if f.kind == "UINT":
      x = value & np.uint32(0xFFFF) if d16 else value
      return np.minimum(x, np.uint32((1 << bits) - 1))
    wide = (_extend(value & np.uint32(0xFFFF), 16) if d16 else value.view(np.int32)).astype(np.int64)
    return np.clip(wide, -(1 << bits - 1), (1 << bits - 1) - 1).astype(np.int32).view(U32) & np.uint32((1 << bits) - 1)
  number = (value & np.uint32(0xFFFF)).astype(U16).view(F16).astype(F32) if d16 else value.view(F32)
  if f.kind == "FLOAT":
    if bits == 32: return number.view(U32)
    if bits in SMALL_FLOATS: number = np.where(number > 0, number, np.where(np.isnan(number), number, np.float32(0)))
    half = rounding.convert(number, "f16", rounding.ZERO).view(U16).astype(U32)
    return half & np.uint32(0xFFFF) if bits == 16 else (half & np.uint32(0x7FFF)) >> np.uint32(SMALL_FLOATS[bits])
  x = np.nan_to_num(number.astype(F64), nan=0.0)
  low, high = {"UNORM": (0, (1 << bits) - 1), "USCALED": (0, (1 << bits) - 1),
               "SNORM": (-((1 << bits - 1) - 1), (1 << bits - 1) - 1),
               "SSCALED": (-(1 << bits - 1), (1 << bits - 1) - 1)}[f.kind]
  if f.kind.endswith("NORM"): x = x * float(high)
  whole = np.rint(np.clip(x, float(low), float(high))).astype(np.int64)
  return (whole & np.int64((1 << bits) - 1)).astype(U32)


# Instruction tables whose stores fill components that the program does not give with the first one, instead of with 0
# (RDNA4 ISA manual, sections 9.3 and 10.4.2).
REPEATING: Final = frozenset({"gfx12"})


def components(f: Format, given: dict[int, Value], selects: tuple[int, ...], isa: str) -> list[Value | None]:
  """What is stored as each component of a format, None for 0, from a program's values by the component that they are.

  What is stored as X is the one that a load would fill with X.
  """
  first = given[min(given)] if isa in REPEATING and len(given) < len(f.bits) else None
  return [next((x for k, x in given.items() if selects[k] == 4 + c), first) for c in range(len(f.bits))]


def store(f: Format, values: list[Value | None], d16: bool) -> list[Value]:
  """The dwords (or the low bytes of one) of elements from the values of X, Y, Z, W; None stands for 0."""
  words: list[Value] = [U32.type(0)] * max(1, f.size // 4)
  at = 0
  for value, bits in zip(values, f.bits):
    if value is not None: words[at // 32] = words[at // 32] | _code(f, value, bits, d16) << np.uint32(at % 32)
    at += bits
  return words
