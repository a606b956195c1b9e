"""Comparison and selection (PTX ISA, sections 9.7.6 and 9.7.7). The binder combines a comparison with a predicate."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.ptx.meanings.registry import means
from tinyhw.emulator.values.ops import Binary, V
from tinyhw.emulator.values.ops import Operations as O

ALL: Final = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
INT: Final = "b16 b32 b64 u16 u32 u64 s16 s32 s64"
FLOAT: Final = "f16 bf16 f32 f64 f16x2 bf16x2"

WHOLE: Final[dict[str, Binary]] = {
  "eq": lambda o, a, b: a == b, "ne": lambda o, a, b: a != b, "lt": lambda o, a, b: a < b,
  "le": lambda o, a, b: a <= b, "gt": lambda o, a, b: a > b, "ge": lambda o, a, b: a >= b}
_UNSIGNED: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _ordered(compare: Binary) -> Binary:
  """False where an operand is NaN."""
  return lambda o, a, b: compare(o, a, b) & ~(o.isnan(a) | o.isnan(b))


def _unordered(compare: Binary) -> Binary:
  """True where an operand is NaN."""
  return lambda o, a, b: compare(o, a, b) | o.isnan(a) | o.isnan(b)


for _name, _compare in WHOLE.items():
  means(f"setp.{_name} set.{_name}", INT)(_compare)
  means(f"setp.{_name} set.{_name}", FLOAT)(_ordered(_compare))
  means(f"setp.{_name}u set.{_name}u", FLOAT)(_unordered(_compare))
for _name, _other in _UNSIGNED.items(): means(f"setp.{_name} set.{_name}", "u16 u32 u64")(WHOLE[_other])


@means("setp.num set.num", FLOAT)
def num(o: O[V], a: V, b: V) -> V: return ~(o.isnan(a) | o.isnan(b))

@means("setp.nan set.nan", FLOAT)
def nan(o: O[V], a: V, b: V) -> V: return o.isnan(a) | o.isnan(b)

@means("selp", ALL)
def selp(o: O[V], a: V, b: V, c: V) -> V: return o.where(c, a, b)

@means("slct", "s32 f32")
def slct(o: O[V], a: V, b: V, c: V) -> V: return o.where(c >= 0, a, b)
