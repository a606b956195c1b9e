"""Comparison and selection (PTX ISA, sections 9.7.6 and 9.7.7). The binder combines a comparison with a predicate."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.emulator.ptx.meanings.registry import means
from tinyhw.emulator.values.ops import Ops

O = type[Ops]
V = Any
ALL: Final = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
INT: Final = "b16 b32 b64 u16 u32 u64 s16 s32 s64"
FLOAT: Final = "f16 bf16 f32 f64 f16x2 bf16x2"

_ORDERED: Final[dict[str, Callable[[V, V], V]]] = {
  "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
  "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
_UNSIGNED: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _whole(compare: Callable[[V, V], V]) -> Callable[[O, V, V], V]:
  return lambda o, a, b: compare(a, b)


def _ordered(compare: Callable[[V, V], V]) -> Callable[[O, V, V], V]:
  """False where an operand is NaN."""
  return lambda o, a, b: compare(a, b) & ~(o.isnan(a) | o.isnan(b))


def _unordered(compare: Callable[[V, V], V]) -> Callable[[O, V, V], V]:
  """True where an operand is NaN."""
  return lambda o, a, b: compare(a, b) | o.isnan(a) | o.isnan(b)


for _name, _compare in _ORDERED.items():
  means(f"setp.{_name} set.{_name}", INT)(_whole(_compare))
  means(f"setp.{_name} set.{_name}", FLOAT)(_ordered(_compare))
  means(f"setp.{_name}u set.{_name}u", FLOAT)(_unordered(_compare))
for _name, _other in _UNSIGNED.items(): means(f"setp.{_name} set.{_name}", "u16 u32 u64")(_whole(_ORDERED[_other]))


@means("setp.num set.num", FLOAT)
def num(o: O, a: V, b: V) -> V: return ~(o.isnan(a) | o.isnan(b))

@means("setp.nan set.nan", FLOAT)
def nan(o: O, a: V, b: V) -> V: return o.isnan(a) | o.isnan(b)

@means("selp", ALL)
def selp(o: O, a: V, b: V, c: V) -> V: return o.where(c, a, b)

@means("slct", "s32 f32")
def slct(o: O, a: V, b: V, c: V) -> V: return o.where(c >= 0, a, b)
