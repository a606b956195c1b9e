"""Witnesses of v_cmp_* and v_cmpx_* of every type, and of the class tests (RDNA3 ISA manual, section 16.9)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.tools.witness.softfloat import F16, F32, F64, Format
from tinyhw.tools.witness.table import EXACT, WITNESSES

lane = WITNESSES.lane
INTEGER: Final[dict[str, Callable[[int, int], bool]]] = {
  "f": lambda a, b: False, "lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b,
  "gt": lambda a, b: a > b, "ne": lambda a, b: a != b, "ge": lambda a, b: a >= b, "t": lambda a, b: True}
# name -> which of (less, equal, greater, unordered) give true
FLOAT: Final = {"f": "", "lt": "<", "eq": "=", "le": "<=", "gt": ">", "lg": "<>", "ge": ">=", "o": "<=>", "u": "?",
                "nge": "<?", "nlg": "=?", "ngt": "<=?", "nle": ">?", "neq": "<>?", "nlt": "=>?", "t": "<=>?"}


def relation(f: Format, a: int, b: int) -> str:
  """How two floats stand to each other."""
  if f.is_nan(a) or f.is_nan(b): return "?"
  x, y = f.order(a), f.order(b)
  return "<" if x < y else ">" if x > y else "="


def classes(f: Format, a: int) -> int:
  """The number of the bit of v_cmp_class that describes a."""
  if f.is_nan(a): return 0 if f.signals(a) else 1
  minus = f.negative(a)
  if f.is_inf(a): return 2 if minus else 9
  if f.is_zero(a): return 5 if minus else 6
  if f.denormal(a): return 4 if minus else 7
  return 3 if minus else 8


for prefix, result in (("v_cmp_", "mask"), ("v_cmpx_", "exec")):
  for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
    for stem, test in INTEGER.items(): lane(f"{prefix}{stem}_{t}", f"{t} {t} -> {result}", test)
  for f in (F16, F32, F64):
    for stem, signs in FLOAT.items():
      # RDNA4 has no f and t forms; gfx9 calls t "tru"
      names = f"{prefix}{stem}_{f.name}" + (f" {prefix}tru_{f.name}" if stem == "t" else "")
      lane(names, f"{f.name} {f.name} -> {result}", lambda a, b, f=f, signs=signs: relation(f, a, b) in signs, EXACT)
    lane(f"{prefix}class_{f.name}", f"{f.name} b32 -> {result}" if f is not F16 else f"{f.name} b16 -> {result}",
         lambda a, b, f=f: b >> classes(f, a) & 1, EXACT)
for f in (F16, F32):  # RDNA4's scalar comparisons
  for stem, signs in FLOAT.items():
    if stem not in {"f", "t"}:
      lane(f"s_cmp_{stem}_{f.name}", f"{f.name} {f.name} -> scc",
           lambda a, b, f=f, signs=signs: relation(f, a, b) in signs, EXACT)
