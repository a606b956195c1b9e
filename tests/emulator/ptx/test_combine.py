"""What reductions make of two values of each type, beside Python's numbers."""
from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw.emulator.ptx.memory.combine import combined, operation, total
from tinyhw.emulator.values.ops import Ops

WAYS: dict[str, Callable[[Any, Any], Any]] = {
  "add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
  "xor": lambda a, b: a ^ b}
OF = {"u32": "add min max", "s32": "add min max", "u64": "add min max", "s64": "min max", "b32": "and or xor",
      "b64": "and or xor", "f32": "add", "f64": "add", "f16": "add min max", "bf16": "add min max",
      "f16x2": "add min max", "bf16x2": "add min max"}


def bits_of(x: float, t: str) -> int:
  """A number as a float type, to nearest even."""
  if t == "f16": return int(np.float16(x).view(np.uint16))
  if t == "f64": return int(struct.unpack("<Q", struct.pack("<d", x))[0])
  word = int(np.float32(x).view(np.uint32))
  return word if t == "f32" else word + 0x7FFF + (word >> 16 & 1) >> 16


def number(bits: int, t: str) -> Any:
  """A value of a type."""
  if t == "f16": return float(np.uint16(bits).view(np.float16))
  if t == "bf16": return float(np.uint32(bits << 16).view(np.float32))
  if t == "f32": return float(np.uint32(bits).view(np.float32))
  if t == "f64": return float(np.uint64(bits).view(np.float64))
  size = int(t[1:])
  return bits - (bits >> size - 1 << size) if t[0] == "s" else bits


@pytest.mark.parametrize("t, name", [(t, name) for t, names in OF.items() for name in names.split()])
def test_two_values(t: str, name: str) -> None:
  """And several: one after the other."""
  rng, one, many = random.Random(name + t), t.removesuffix("x2"), 1 + t.endswith("x2")
  size = {"bf16": 16}.get(one) or int(one[1:])
  def made(a: int, b: int) -> int:
    x = WAYS[name](number(a, one), number(b, one))
    return bits_of(x, one) if "f" in one else x & (1 << size) - 1
  def value() -> int:
    if "f" not in one: return rng.choice([0, 1, (1 << size) - 1, 1 << size - 1, rng.getrandbits(size)])
    return bits_of(rng.randrange(-999, 999) / 8, one)
  dtype = np.dtype(f"u{size * many // 8}")
  rows = [[[value() for _ in range(many)] for _ in range(64)] for _ in range(3)]
  def packed(row: list[list[int]]) -> Any:
    return np.array([sum(v << size * k for k, v in enumerate(x)) for x in row], dtype)
  given = [packed(row) for row in rows]
  two = packed([[made(a, b) for a, b in zip(x, y)] for x, y in zip(*rows[:2])])
  assert (combined(Ops, t, name, *given[:2]) == two).all()
  three = packed([[made(made(a, b), c) for a, b, c in zip(x, y, z)] for x, y, z in zip(*rows)])
  assert (total(t, name, given, False) == three).all()
  assert (total(t, name, given[:1], True) == given[0]).all()


def test_names() -> None:
  for name in WAYS: assert operation(frozenset({"async", name, "u32"})) == name
  assert operation(frozenset({"async", "inc"})) == ""
