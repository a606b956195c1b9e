"""Meanings of scalar instructions and comparisons that LLVM seldom selects, against formulas on Python integers.

The formulas are written from the RDNA3 ISA manual, section 16; they share nothing with the emulator.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw.emulator.amdgcn.all_tables import MEANINGS
from tinyhw.emulator.ptx.meanings import registered
from tinyhw.emulator.values.ops import Ops
from tinyhw.tools.fuzz.values import random, special

TYPES = {"u16": "i16", "i16": "i16", "u32": "i32", "i32": "i32", "u64": "i64", "i64": "i64", "f16": "half",
         "f32": "float", "f64": "double"}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
M32 = (1 << 32) - 1
Formula = Callable[..., tuple[int, ...]]
FORMULAS: dict[str, Formula] = {}


def signed(x: int, bits: int = 32) -> int: return x - (1 << bits) if x >> bits - 1 & 1 else x


def nonzero(x: int, bits: int) -> tuple[int, int]:
  """A result and SCC, which says that it is not zero."""
  x &= (1 << bits) - 1
  return x, x != 0


def carried(x: int) -> tuple[int, int]: return x & M32, not 0 <= x <= M32


def overflowed(x: int) -> tuple[int, int]: return x & M32, not -(1 << 31) <= x < 1 << 31


def field(a: int, b: int, bits: int) -> int: return a >> (b & bits - 1) & (1 << (b >> 16 & 0x7F)) - 1


def pack(low: int, high: int) -> tuple[int]: return (low & 0xFFFF | (high & 0xFFFF) << 16,)


def add(name: str, formula: Formula) -> None: FORMULAS[name] = formula


LOGIC: dict[str, Callable[[int, int], int]] = {
  "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "nand": lambda a, b: ~(a & b),
  "nor": lambda a, b: ~(a | b), "xnor": lambda a, b: ~(a ^ b), "and_not1": lambda a, b: a & ~b,
  "or_not1": lambda a, b: a | ~b}
WITH_EXEC = LOGIC | {"and_not0": lambda a, b: ~a & b, "or_not0": lambda a, b: ~a | b}
for n in (32, 64):
  for stem, f in LOGIC.items(): add(f"s_{stem}_b{n}", lambda a, b, f=f, n=n: nonzero(f(a, b), n))
  for stem, f in WITH_EXEC.items():
    def saved(a: int, e: int, f: Any = f, n: int = n) -> tuple[int, ...]:
      new, some = nonzero(f(a, e), n)
      return e, new, some
    add(f"s_{stem}_saveexec_b{n}", saved)
  for stem in ("and_not0", "and_not1"):
    def written(a: int, e: int, f: Any = WITH_EXEC[stem], n: int = n) -> tuple[int, ...]:
      new, some = nonzero(f(a, e), n)
      return new, new, some
    add(f"s_{stem}_wrexec_b{n}", written)
  add(f"s_not_b{n}", lambda a, n=n: nonzero(~a, n))
  add(f"s_bcnt0_i32_b{n}", lambda a, n=n: nonzero(n - a.bit_count(), 32))
  add(f"s_bcnt1_i32_b{n}", lambda a: nonzero(a.bit_count(), 32))
  add(f"s_clz_i32_u{n}", lambda a, n=n: (n - a.bit_length() if a else M32,))
  add(f"s_ctz_i32_b{n}", lambda a: ((a & -a).bit_length() - 1 & M32,))
  add(f"s_bfm_b{n}", lambda a, b, n=n: (((1 << (a & n - 1)) - 1 << (b & n - 1)) & (1 << n) - 1,))
  add(f"s_quadmask_b{n}", lambda a, n=n: nonzero(sum((a >> 4 * k & 15 != 0) << k for k in range(n // 4)), n))
  add(f"s_wqm_b{n}", lambda a, n=n: nonzero(sum(15 * (a >> 4 * k & 15 != 0) << 4 * k for k in range(n // 4)), n))
  for v in (0, 1):
    add(f"s_bitcmp{v}_b{n}", lambda a, b, v=v, n=n: (a >> (b & n - 1) & 1 == v,))
    add(f"s_bitset{v}_b{n}", lambda a, old, v=v, n=n: (old & ~(1 << (a & n - 1)) | v << (a & n - 1),))
  add(f"s_cselect_b{n}", lambda a, b, scc: (a if scc else b,))
  add(f"s_cmov_b{n}", lambda a, old, scc: (a if scc else old,))
  add(f"s_lshl_b{n}", lambda a, b, n=n: nonzero(a << (b & n - 1), n))
  add(f"s_lshr_b{n}", lambda a, b, n=n: nonzero(a >> (b & n - 1), n))
  add(f"s_ashr_i{n}", lambda a, b, n=n: nonzero(signed(a, n) >> (b & n - 1), n))
  add(f"s_brev_b{n}", lambda a, n=n: (int(f"{a:0{n}b}"[::-1], 2),))
  add(f"s_bfe_u{n}", lambda a, b, n=n: nonzero(field(a, b, n), n))
for k in range(1, 5): add(f"s_lshl{k}_add_u32", lambda a, b, k=k: carried((a << k) + b))
for stem, compare in {"eq": lambda a, b: a == b, "lg": lambda a, b: a != b, "gt": lambda a, b: a > b,
                      "ge": lambda a, b: a >= b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b}.items():
  add(f"s_cmp_{stem}_u32", lambda a, b, f=compare: (f(a, b),))
  add(f"s_cmp_{stem}_i32", lambda a, b, f=compare: (f(signed(a), signed(b)),))
add("s_cmp_eq_u64", lambda a, b: (a == b,))
add("s_cmp_lg_u64", lambda a, b: (a != b,))
add("s_pack_ll_b32_b16", pack)
add("s_pack_lh_b32_b16", lambda a, b: pack(a, b >> 16))
add("s_pack_hl_b32_b16", lambda a, b: pack(a >> 16, b))
add("s_pack_hh_b32_b16", lambda a, b: pack(a >> 16, b >> 16))
add("s_abs_i32", lambda a: nonzero(abs(signed(a)), 32))
add("s_absdiff_i32", lambda a, b: nonzero(abs(signed(signed(a) - signed(b) & M32)), 32))
add("s_sext_i32_i8", lambda a: (signed(a & 0xFF, 8) & M32,))
add("s_sext_i32_i16", lambda a: (signed(a & 0xFFFF, 16) & M32,))
add("s_mul_i32", lambda a, b: (a * b & M32,))
add("s_mul_hi_i32", lambda a, b: (signed(a) * signed(b) >> 32 & M32,))
add("s_mul_hi_u32", lambda a, b: (a * b >> 32,))
add("s_add_u32", lambda a, b: carried(a + b))
add("s_sub_u32", lambda a, b: carried(a - b))
add("s_addc_u32", lambda a, b, scc: carried(a + b + scc))
add("s_subb_u32", lambda a, b, scc: carried(a - b - scc))
add("s_add_i32", lambda a, b: overflowed(signed(a) + signed(b)))
add("s_sub_i32", lambda a, b: overflowed(signed(a) - signed(b)))
add("s_bitreplicate_b64_b32", lambda a: (sum(3 * (a >> k & 1) << 2 * k for k in range(32)),))
add("v_sad_u32", lambda a, b, c: (abs(a - b) + c & M32,))


def drawn(kind: str, count: int, rng: np.random.Generator) -> Any:
  """Special and random values of a source's type, as its dtype."""
  if kind in ("scc", "mask"): return rng.integers(0, 2, count).astype(bool)
  name = TYPES[kind]
  values = random(name, count, rng)
  values[:count // 2] = rng.choice(special(name), count // 2)
  return values.view(DTYPES.get(kind, values.dtype if kind[0] != "i" else f"i{values.dtype.itemsize}"))


def sources(name: str, count: int = 400) -> list[Any]:
  meaning = MEANINGS.get(name)
  assert meaning is not None, name
  rng = np.random.default_rng(sum(name.encode()))
  kinds = [k.removeprefix("d:") for k in meaning.sources]
  kinds = [kinds[0] if k == "exec" else k for k in kinds]
  return [drawn(k, count, rng) for k in kinds]


def pattern(x: Any) -> Any:
  """Integers without sign."""
  return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


@pytest.mark.parametrize("name", FORMULAS)
def test_scalar_instruction(name: str) -> None:
  meaning, values = MEANINGS.get(name), sources(name)
  assert meaning is not None
  with np.errstate(all="ignore"): results = meaning.function(Ops, *values)
  found = results if len(meaning.results) > 1 else (results,)
  for at, row in enumerate(zip(*(pattern(v).tolist() for v in values))):
    wanted = FORMULAS[name](*row)
    got = tuple(int(pattern(np.broadcast_to(f, len(values[0])))[at]) for f in found)
    assert got == tuple(int(w) for w in wanted), (name, [hex(v) for v in row])


FLOAT_NAMES = ("f", "lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "t")
COMPARISONS = [(n, t) for t in ("f16", "f32", "f64") for n in FLOAT_NAMES]
COMPARISONS += [(n, t) for t in ("i16", "u16", "i32", "u32", "i64", "u64") for n in ("lt", "eq", "le", "gt", "ne",
  "ge")]
COMPARISONS += [(n, t) for t in ("i32", "u32", "i64", "u64") for n in "ft"]


def holds(name: str, a: float, b: float) -> bool:
  """A comparison of two Python numbers; the n-forms negate, so that they hold for NaN."""
  table = {"f": False, "t": True, "lt": a < b, "eq": a == b, "le": a <= b, "gt": a > b, "ge": a >= b,
           "lg": a < b or a > b, "o": a == a and b == b, "u": a != a or b != b}
  if name in table: return table[name]
  if name == "ne": return a != b
  return not table[name[1:]]


@pytest.mark.parametrize("stem", ["v_cmp", "v_cmpx"])
@pytest.mark.parametrize(("name", "kind"), COMPARISONS)
def test_comparison(stem: str, name: str, kind: str) -> None:
  mnemonic = f"{stem}_{name}_{kind}"
  meaning, (a, b) = MEANINGS.get(mnemonic), sources(mnemonic)
  assert meaning is not None
  b[::5] = a[::5]
  found = np.broadcast_to(meaning.function(Ops, a, b), a.shape).tolist()
  assert found == [holds(name, x, y) for x, y in zip(a.tolist(), b.tolist())]


def test_no_operand_of_a_meaning_is_any() -> None:
  """So mypy knows all that may be done with it (`values.ops.Value`, `Operations`): a misspelt operation fails lint."""
  for m in (*MEANINGS, *registered()):
    assert "Any" not in re.findall(r"\w+", " ".join(map(str, m.function.__annotations__.values()))), m
