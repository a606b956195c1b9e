"""Values with undefined bits: flipping those of the operands of a meaning flips only bits that the shadow names."""
from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.strength import examples
from tinyhw.emulator.amdgcn import all_tables  # noqa: F401  # registers the meanings of every generation
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS, Meaning
from tinyhw.emulator.check.arrays import SHADOW_OPS
from tinyhw.emulator.jit.values import Emitter, LLVMOps, Untranslatable
from tinyhw.emulator.jit.values import Value as Operand
from tinyhw.emulator.values.ops import DTYPES, Ops
from tinyhw.emulator.values.shadow import ShadowOps, unsigned

Value = Any
SHAPE = (1, 64)
ALL: list[Meaning] = list(MEANINGS)


def types_of(meaning: Meaning) -> list[str]:
  """The types of a meaning's sources."""
  named = {"mask": "bool", "vcc": "bool", "scc": "bool", "k": "i32", "ku": "u32", "exec": "".join(meaning.sources[:1])}
  return ["u32" if ":" in t and not t.startswith("d:") else named.get(t, t.removeprefix("d:")) for t in meaning.sources]


def numbers(rng: np.random.Generator, type_: str) -> Value:
  """Values of a type, of which some are small or all but."""
  dtype = DTYPES[type_]
  if dtype.kind == "b": return rng.integers(0, 2, SHAPE).astype(bool)
  raw = rng.integers(0, 1 << 64, SHAPE, np.uint64, endpoint=False) if dtype.itemsize == 8 else \
    rng.integers(0, 1 << dtype.itemsize * 8, SHAPE, np.uint64)
  shape = rng.integers(0, 4)
  if shape == 1: raw &= np.uint64(0xFF)
  if shape == 2: raw |= ~np.uint64(0xFF)
  return raw.astype(unsigned(dtype)).view(dtype)


def shadows(rng: np.random.Generator, dtype: Any) -> Value:
  """Undefined bits: some, one, all or none."""
  if dtype.kind == "b": return rng.integers(0, 3, SHAPE) == 0
  few = rng.integers(0, 1 << 63, SHAPE, np.uint64) & rng.integers(0, 1 << 63, SHAPE, np.uint64)
  one = np.uint64(1) << rng.integers(0, dtype.itemsize * 8, SHAPE).astype(np.uint64)
  chosen: Value = (few, one, few & np.uint64(0xFF), few | ~np.uint64(0), few & np.uint64(0))[rng.integers(0, 5)]
  return chosen.astype(unsigned(dtype))


def flipped(rng: np.random.Generator, value: Value, shadow: Value) -> Value:
  """Another value that the shadow allows."""
  bits = numbers(rng, {"b": "bool"}.get(shadow.dtype.kind) or f"u{shadow.dtype.itemsize * 8}")
  return (value.view(shadow.dtype) ^ (bits & shadow)).view(value.dtype)


def results(meaning: Meaning, o: Any, operands: list[Value]) -> list[Value]:
  with np.errstate(all="ignore"): found = meaning.function(o, *operands)
  return list(found) if isinstance(found, tuple) else [found]


def draws(meaning: Meaning, count: int) -> Iterator[tuple[np.random.Generator, list[Value], list[Value]]]:
  rng = np.random.default_rng(zlib.crc32(meaning.mnemonic.encode()))
  for _ in range(examples(count)):
    values = [numbers(rng, t) for t in types_of(meaning)]
    yield rng, values, [shadows(rng, v.dtype) for v in values]


@pytest.mark.parametrize("meaning", ALL, ids=lambda m: m.mnemonic)
def test_undefined_bits_reach_no_others(meaning: Meaning) -> None:
  for rng, values, undefined in draws(meaning, 4):
    shadowed = results(meaning, SHADOW_OPS, [SHADOW_OPS.made(v, s) for v, s in zip(values, undefined)])
    for _ in range(4):
      other = results(meaning, Ops, [flipped(rng, v, s) for v, s in zip(values, undefined)])
      for got, plain in zip(shadowed, other):
        value, shadow = SHADOW_OPS.parts(got)
        kind = unsigned(np.asarray(plain).dtype)
        changed = np.asarray(value).view(kind) ^ np.asarray(plain).view(kind)
        assert not np.any(changed if shadow is None else changed & ~shadow)


@pytest.mark.parametrize("meaning", ALL, ids=lambda m: m.mnemonic)
def test_of_defined_values_all_is_defined_and_the_same(meaning: Meaning) -> None:
  for _, values, _ in draws(meaning, 2):
    for got, plain in zip(results(meaning, SHADOW_OPS, values), results(meaning, Ops, values)):
      value, shadow = SHADOW_OPS.parts(got)
      assert shadow is None and np.array_equal(np.asarray(value).view(np.uint8), np.asarray(plain).view(np.uint8))


def _shadow_of(function: Any, *operands: tuple[int, int]) -> int:
  """The shadow that a function of u32 has, of (value, shadow) pairs."""
  found = function(*[SHADOW_OPS.made(np.array([[v]], np.uint32), np.array([[s]], np.uint32)) for v, s in operands])
  shadow = SHADOW_OPS.parts(found)[1]
  return 0 if shadow is None else int(shadow.reshape(-1)[0])


@pytest.mark.parametrize(("function", "operands", "shadow"), [
  (lambda a, b: a & b, ((0x0F, 0xFF), (0x0F, 0)), 0x0F), (lambda a, b: a | b, ((0, 0xFF), (0x0F, 0)), 0xF0),
  (lambda a, b: a + b, ((0, 0xF0), (0, 0)), 0xF0), (lambda a, b: a + b, ((0, 0xF0), (0x10, 0)), 0x1F0),
  (lambda a, b: a - b, ((0x100, 0x0F), (0, 0)), 0x0F), (lambda a, b: a * b, ((0, 0xFFFFFFFF), (0, 0)), 0),
  (lambda a, b: a * b, ((0, 0xFFFFFF00), (0x10, 0)), 0xFFFFF000), (lambda a, b: a << b, ((0, 1), (4, 0)), 0x10),
  (lambda a, b: a >> b, ((0, 0x80000000), (31, 0)), 1), (lambda a, b: a < b, ((0, 0xFF), (0x100, 0)), 0),
  (lambda a, b: a < b, ((0, 0xFF), (0x80, 0)), 1), (lambda a, b: a == b, ((0x100, 0xFF), (0x200, 0)), 0),
  (lambda a, b: a == b, ((0x100, 0xFF), (0x180, 0)), 1), (lambda a, b: a ^ a, ((0, 0xFF), (0, 0)), 0),
  (SHADOW_OPS.min, ((0, 0xFFFFFFFF), (0xFF, 0)), 0xFF), (lambda a, b: SHADOW_OPS.popcount(a), ((0, 3), (0, 0)), 3),
  (lambda a, b: SHADOW_OPS.leading_zeros(a), ((0x100, 0xFF), (0, 0)), 0),
  (lambda a, b: SHADOW_OPS.where(a < 1, b, b), ((0, 1), (5, 0)), 0)])
def test_bits_that_nothing_reaches_stay_defined(function: Any, operands: tuple[tuple[int, int], ...],
                                                shadow: int) -> None:
  assert _shadow_of(function, *operands) == shadow


@pytest.mark.parametrize("meaning", ALL, ids=lambda m: m.mnemonic)
def test_llvm_values_serve_the_same_rules(meaning: Meaning) -> None:
  """What the JIT can translate it can translate with shadows."""
  e = Emitter(32)
  base = LLVMOps(e)
  o = ShadowOps(base)
  operands = [Operand(e, f"%v{k}", DTYPES[t], True) for k, t in enumerate(types_of(meaning))]
  try: results(meaning, base, operands)
  except Untranslatable: return
  shadowed = [o.made(v, Operand(e, f"%s{k}", unsigned(v.dtype), True)) for k, v in enumerate(operands)]
  found = results(meaning, o, shadowed)
  assert all(s is None or s.dtype == unsigned(v.dtype) for v, s in map(o.parts, found))
